#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory runs out at any moment of a live run, a recording or a profile (scarce.c). There is one line
# of error. During a request the exit status is 3, and finished requests are printed and kept; before
# the first request and after the last one it is 1. The passes of a profile are tested the same way.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
scarce=${SCARCE:-${draftscope%/*}/tests/reliability/scarce_live}
fixtures=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}
DSC_SCARCE=yes "$scarce" list </dev/null
if ! [ -e 1/scarce ]; then
    echo "malloc cannot be replaced here: skipped"
    exit 77
fi

# Each prompt needs more memory than the one before, for the KV cache, the method and the pass.
awk 'BEGIN { for (i = 1; i <= 4; i++) {
    printf "{\"prompt\": [1"; for (j = 0; j < 8 * i; j++) printf ", %d", 3 + j * i % 60
    printf "], \"references\": [[5"; for (j = 0; j < 200 * i * i; j++) printf ", %d", 3 + j * 7 % 61
    print "]]}" } }' >prompts.jsonl
models="--target $fixtures/llama --prompts ../prompts.jsonl --max-tokens 16
    --threads 1 --device cpu --progress never"
least=4

value() { # FIELD of `out`
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" out
}
# Runs the command once for each allocation, which fails.
each() { # command and method: calls `verdict` in the folder of each run, 1, 2, 3 ...
    rm -rf [1-9]*
    # shellcheck disable=SC2086
    DSC_SCARCE=yes "$scarce" "$@" $models </dev/null
    n=0 in_run=0
    while n=$((n + 1)); do
        cd "$work/$n" || exit 99
        code=$(cat code)
        [ -e scarce ] || break
        verdict
    done
    cd "$work" || exit 99
    check "$1: without it, all goes well: exit $code" test "$code" = 0
    check "$1: $in_run of $((n - 1)) are in the run" test "$in_run" -ge "$least"
}
one_line() {
    test "$(wc -l <err)" = 1 && grep -q '^draftscope: .*memory' err
}

# --- live run ----------------------------------------------------------------------------------

verdict() {
    case $code in
    0 | 1) ;;
    3)
        in_run=$((in_run + 1))
        check "run, $n: the request is named: $(cat err)" grep -q 'prompts.jsonl:[1-4]: ' err
        check "run, $n: as many lines as requests" \
            test "$(wc -l <kept.jsonl)" -eq "$(value requests)"
        ;;
    *) not_ok "run, $n: exit $code ($(cat err))" ;;
    esac
    [ $code = 0 ] || check "run, $n: one line, not: $(cat err)" one_line
}
each run --method llma --n 2 --num-speculative-tokens 8 --json -o kept.jsonl

models="$models --draft $fixtures/llama"

# --- live record -------------------------------------------------------------------------------

verdict() {
    case $code in
    0 | 1) ;;
    3)
        in_run=$((in_run + 1))
        place=$(sed -n 's/.*prompts.jsonl:\([1-4]\): .*/\1/p' err)
        check "record, $n: the request is named: $(cat err)" test "$place"
        if [ "${place:-1}" = 1 ]; then
            check "record, $n: no trace" test ! -e kept.dst
        else
            "$draftscope" trace verify kept.dst >verified 2>&1 || not_ok "record, $n: $(cat verified)"
            check "record, $n: what was finished" grep -q ": ok, $((place - 1)) requests" verified
        fi
        ;;
    *) not_ok "record, $n: exit $code ($(cat err))" ;;
    esac
    [ $code = 0 ] || check "record, $n: one line, not: $(cat err)" one_line
}
each record --method draft-model --num-speculative-tokens 3 -o kept.dst

# --- live profile ------------------------------------------------------------------------------

verdict() {
    case $code in
    0 | 1) check "profile, $n: a table without a failure" test $code = 0 -o ! -e kept.tsv ;;
    3)
        in_run=$((in_run + 1))
        check "profile, $n: says what is kept: $(cat err)" \
            grep -q 'passes of up to [1-8] tokens are in kept.tsv: .*memory' err
        most=$(sed -n 's/.*passes of up to \([0-9]*\) tokens.*/\1/p' err)
        rows=$(grep -c '^[0-9]' kept.tsv)
        check "profile, $n: a full grid of up to $most tokens" sh -c '[ $(($2 % 2)) = 0 ] &&
            tail -n 1 kept.tsv | grep -q "^$1.16.1"' sh "$most" "$rows"
        ;;
    *) not_ok "profile, $n: exit $code ($(cat err))" ;;
    esac
    [ $code = 0 ] || check "profile, $n: one line, not: $(cat err)" one_line
}
least=1 # a pass of more tokens than those before
models="--target $fixtures/llama --threads 1 --device cpu --progress never"
each profile --tokens 1,2,4,8 --context 0,16 --repeats 1 -o kept.tsv

summary
