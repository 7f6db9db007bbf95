# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# What scripts that run the program begin with:
#
#     . "${top_srcdir:-.}/tests/cli/common.sh"
#
# sets `top` (the source) and `draftscope` (the program; DRAFTSCOPE where another shell runs it), both
# absolute, goes to `work`, a folder of its own that is removed at the end, and counts checks.
# `summary` is the last command.
top=$(cd "${top_srcdir:-.}" && pwd) || exit 99
draftscope=${DRAFTSCOPE:-$top/draftscope}
case $draftscope in */*) draftscope=$(cd "${draftscope%/*}" && pwd)/${draftscope##*/} ;; esac
DRAFTSCOPE=$draftscope
export DRAFTSCOPE
work=$(mktemp -d "${TMPDIR:-/tmp}/draftscope-test.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
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

# Whether two numbers differ by no more than a share of the second, which is then not 0, and a tolerance.
# To mawk, nan is close to everything.
close_to() { # A B SHARE [TOLERANCE]
    awk -v a="$1" -v b="$2" -v share="$3" -v tolerance="${4-}" 'BEGIN {
        number = "^[-+]?[.]?[0-9]"; d = a - b; e = share * (b < 0 ? -b : b) + tolerance
        exit !(a ~ number && b ~ number && (b != 0 || tolerance != "") && d <= e && -d <= e) }'
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

# What `good` and `bad` run; scripts whose calls have words in common say so with one of their own.
program() {
    "$draftscope" "$@"
}
good() { # arguments...: exit code 0; `out` and `err` stay
    if program "$@" >out 2>err </dev/null; then ok; else not_ok "$* ($(cat err))"; fi
}
# That exit code and one line on stderr, which has the words. A call that is refused prints nothing.
bad() { # exit code, 'words', arguments...
    expected=$1 words=$2
    shift 2
    program "$@" >out 2>err </dev/null
    code=$?
    if [ $code != "$expected" ]; then
        not_ok "exit $code, not $expected: $* ($(head -n 1 err))"
    elif ! grep -qF -e "$words" err; then
        not_ok "'$words' is not in: $(cat err)"
    elif [ "$(wc -l <err)" != 1 ]; then
        not_ok "more than one line on stderr: $*"
    elif [ "$code" = 2 ] && [ -s out ]; then
        not_ok "something on stdout: $*"
    else
        ok
    fi
}
