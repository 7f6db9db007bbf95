# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034
# What the tests of this folder's scripts begin with:
#
#     . "${top_srcdir:-.}/tests/gpu/common.sh"
#
# sets `top` (the source) and `work`, a folder of its own that is removed at the end and whose path has no
# blanks, and counts checks. `summary` is the last command.
top=$(cd "${top_srcdir:-.}" && pwd) || exit 99
work=$(sh "$top/tests/folder.sh") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

ok() { # condition's exit code, name; a failure shows the log
    if [ "$1" = 0 ]; then
        echo "ok - $2"
        passed=$((passed + 1))
    else
        echo "not ok - $2"
        failed=$((failed + 1))
        [ ! -f "$work/log" ] || sed 's/^/# /' "$work/log"
    fi
}
# Succeeds when all did.
summary() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
