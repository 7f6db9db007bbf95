# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# What scripts that run the program begin with:
#
#     . "${top_srcdir:-.}/tests/cli/common.sh"
#
# sets `top` (the source) and `draftscope` (the program; DRAFTSCOPE where another shell runs it), both
# absolute, goes to `work`, a folder of its own that is removed at the end, and counts checks.
# `summary` is the last command. `plain_folder` is `work` or, if its path has blanks, a folder without (folder.sh).
top=$(cd "${top_srcdir:-.}" && pwd) || exit 99
draftscope=${DRAFTSCOPE:-$top/draftscope}
case $draftscope in */*) draftscope=$(cd "${draftscope%/*}" && pwd)/${draftscope##*/} ;; esac
DRAFTSCOPE=$draftscope
export DRAFTSCOPE
work=$(mktemp -d "${TMPDIR:-/tmp}/draftscope-test.XXXXXX") || exit 99
plain_folder=$work
case $work in *[[:blank:]]*) plain_folder=$(cd "${draftscope%/*}" && sh "$top/tests/folder.sh") || exit 99 ;; esac
trap 'rm -rf "$work" "$plain_folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 99
passed=0 failed=0

ok() {
    passed=$((passed + 1))
}
not_ok() {
    failed=$((failed + 1))
    echo "not ok - $*"
}
skip() { # description, why
    echo "ok - $1 # skipped: $2"
}
# The file of a program in the build folder: libtool leaves a script in place of one that is linked with a
# library of the tree, which is then in .libs, too.
program_file() { # name
    folder=${draftscope%/*}
    [ ! -f "$folder/.libs/$1" ] || folder=$folder/.libs
    echo "$folder/$1"
}
# Succeeds when all did.
summary() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}

# Whether an expression of awk is true of numbers. Comparisons alone accept nan and an empty value.
holds() { # EXPRESSION NAME=NUMBER...
    expression=$1
    shift
    awk "BEGIN { for (i = 1; i < ARGC - 1; i++) unfit += ARGV[i] !~ /=[-+]?[.]?[0-9][-+.0-9e]*\$/ }
        END { exit unfit || !($expression) }" "$@" /dev/null
}
# Whether two numbers differ by no more than a share of the second, which is then not 0, and a tolerance.
close_to() { # A B SHARE [TOLERANCE]
    holds "(b != 0 || $# > 3) && (a - b) ^ 2 <= (share * (b < 0 ? -b : b) + tolerance) ^ 2" \
        a="$1" b="$2" share="$3" tolerance="${4:-0}"
}

# Waits until a command succeeds. Fails when the process has ended first, and, as a check of its own, after
# five minutes.
wait_until() { # PROCESS command...
    awaited=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        kill -0 "$awaited" 2>/dev/null || return 1
        [ $tries -le 6000 ] || { not_ok "waited in vain for $*" && return 1; }
        sleep 0.05
    done
}
# Processor time of a process in hundredths of a second; fails when it has ended.
processor_time() { # PROCESS
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null |
        awk '$1 != "Z" { print $12 + $13; runs = 1 } END { exit !runs }'
}
# Sends a signal and waits for the end of the process: `got` is its exit code and `spent` the processor
# time, as above, that it took from the signal on, which no other process makes longer.
stop() { # PROCESS SIGNAL
    begun=$(processor_time "$1") spent=0 tries=0
    kill -s "$2" "$1" 2>/dev/null
    while now=$(processor_time "$1"); do
        spent=$((now - begun)) tries=$((tries + 1))
        [ $tries -le 6000 ] || { kill -9 "$1" && not_ok "SIG$2 did not end process $1"; }
        sleep 0.05
    done
    wait "$1" 2>/dev/null
    got=$?
}

# The command must succeed; what it prints is shown when it does not.
check() { # description, command...
    checked=$1
    shift
    if "$@" >said 2>&1; then
        ok
    else
        not_ok "$checked"
        sed 's/^/# /' said
    fi
}

# The six metrics of base/metrics.h in a JSON object on stdin, name and values to 12 digits.
metrics() {
    one='block_efficiency|mean_acceptance_length|draft_acceptance_rate|alpha_iid'
    list='acceptance_rate_pos|conditional_acceptance_rate'
    tr -d ' \n' | grep -oE "\"($one)\":[^],}]*|\"($list)\":\\[[^]]*\\]" | head -n 6 | tr -s '":,[]' ' ' |
        awk '{ printf "%s", $1; for (i = 2; i <= NF; i++) printf " %.12g", $i; print "" }'
}

# The command must succeed; what it prints stays in the file.
into() { # FILE, command...
    into_file=$1
    shift
    if "$@" >"$into_file" 2>err </dev/null; then ok; else not_ok "$* ($(cat err))"; fi
}
# What `good` and `bad` run; scripts whose calls have words in common say so with one of their own.
program() {
    "$draftscope" "$@"
}
good() { # arguments...: exit code 0; `out` and `err` stay
    into out program "$@"
}
# That exit code and, after notes, one line on stderr, which has the words. A call that is refused prints
# nothing, and its words are not those of any usage error: a mistyped command or option fails the check.
notes='^draftscope: (acceptance|evaluate|note|rule): '
usage='draftscope: unknown option command (did you mean see: draftscope --help)'
bad() { # exit code, 'words', arguments...
    expected=$1 words=$2
    shift 2
    rejects "$expected" "$words" program "$@"
}
rejects() { # exit code, 'words', command...
    expected=$1 words=$2
    shift 2
    "$@" >out 2>err </dev/null
    code=$?
    grep -vE "$notes" err >refusal
    if [ $code != "$expected" ]; then
        not_ok "exit $code, not $expected: $* ($(head -n 1 refusal))"
    elif ! grep -qF -e "$words" refusal; then
        not_ok "'$words' is not in: $(cat refusal)"
    elif [ "$(wc -l <refusal)" != 1 ]; then
        not_ok "more than one line on stderr: $*"
    elif [ "$code" = 2 ] && [ -s out ]; then
        not_ok "something on stdout: $*"
    elif [ "$code" = 2 ] && echo "$usage $*" | grep -qF -e "$words"; then
        not_ok "'$words' could be of another usage error: $*"
    else
        ok
    fi
}
