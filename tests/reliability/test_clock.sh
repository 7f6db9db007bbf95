#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wall clock is set back while a command runs: every reading of it (clock_gettime, gettimeofday,
# time) is an hour before the last one. Import, sweep and a live recording finish with the same
# output and with rates and remaining times that are not negative. Durations come from the monotonic
# clock, which nobody sets.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
case ${SANITIZE_CFLAGS:-} in
*sanitize*)
    echo "a preloaded library comes before the sanitizer's: skipped"
    exit 77
    ;;
esac
cat >back.c <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static _Atomic long readings;
int clock_gettime(clockid_t clock, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int rc = real(clock, t);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)
        t->tv_sec -= 3600 * ++readings;
    return rc;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}
EOF
cat >read.c <<'EOF'
#include <time.h>
int main(void)
{
    time_t first = time(NULL);
    return time(NULL) < first ? 0 : 1;
}
EOF
# shellcheck disable=SC2086
if ! ${CC:-cc} -shared -fPIC -o back.so back.c -ldl 2>err || ! ${CC:-cc} -o read read.c 2>>err ||
    ! LD_PRELOAD=./back.so ./read; then
    echo "the clock cannot be replaced here: skipped: $(cat err)"
    exit 77
fi

# Runs a command with either clock, in a folder of its own, with progress as JSON lines.
both() { # name, command...
    name=$1
    shift
    for clock in sound back; do
        mkdir -p $clock
        cd $clock || exit 99
        preload=
        [ $clock = back ] && preload=../back.so # a path without spaces
        LD_PRELOAD=$preload "$draftscope" "$@" --progress json >"$name.out" 2>"$name.err"
        code=$?
        cd "$work" || exit 99
        check "$name, $clock clock: exit code $code: $(tail -n 1 "$clock/$name.err")" test $code = 0
    done
    check "$name: progress is reported" grep -q '"per_s": ' "back/$name.err"
    check "$name: no rate or remaining time is negative" \
        sh -c '! grep -E "\"(per_s|left_s)\": *(-|nan|inf)" "$1"' sh "back/$name.err"
    check "$name: at the end there is a rate" sh -c 'tail -n 1 "$1" | grep -qv "\"per_s\": 0,"' sh "back/$name.err"
    check "$name: it goes forward" awk '{ match($0, /"done": [0-9]+/)
        n = substr($0, RSTART + 8, RLENGTH - 8) + 0; if (n < last) exit 1; last = n }' "back/$name.err"
}

awk 'BEGIN { for (i = 0; i < 4000; i++)
    printf "{\"prompt\": \"a b c d e f g %d\", \"output\": \"h a b c d e f g %d i\"}\n", i, i }' >many.jsonl
both import trace import ../many.jsonl -o many.dst --tokenizer bytes
check "import: the same trace" diff -r sound/many.dst back/many.dst
both sweep sweep many.dst --method llma --n 1:4 --num-speculative-tokens 1:16 --evaluate loop -o grid.tsv
check "sweep: the same table" cmp sound/grid.tsv back/grid.tsv
if [ -x "${draftscope%/*}/draftscope-live" ]; then
    fixtures=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}
    for i in 1 2 3; do
        echo "{\"prompt\": [1, $i, 3, 4, 5], \"references\": [[5, 6, 7]]}"
    done >ids.jsonl
    both record live record --target "$fixtures/llama" --prompts ../ids.jsonl --max-tokens 8 \
        --method llma --device cpu --threads 1 -o live.dst
    for clock in sound back; do # a recording has the times of its steps, which differ by chance
        good trace export $clock/live.dst --format jsonl -o $clock.jsonl
        sed 's/"\(draft_s\|verify_s\)":\[[^]]*\]//g' $clock.jsonl >$clock.tokens
    done
    check "record: the same tokens and probabilities" cmp sound.tokens back.tokens
    check "record: no time is negative" sh -c '! grep -E "_s\":\[([^]]*,)?-" back.jsonl'
fi
summary
