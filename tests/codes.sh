#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exit codes in test scripts. A usage error ends with 2, and so does a call that is mistyped or out of date. Therefore
# a check for exit code 2, or for any failure, names the words of the message with `bad` or `rejects` of cli/common.sh,
# and the exit code of every other call is looked at. A line excepts itself with "# any code: REASON".
cd "${top_srcdir:-.}" || exit 99

find_codes() { # files...
    awk '
    function judge(line, next_line) {
        sub(/^[ \t]+/, "", line)
        if (line ~ /^#|# any code: /)
            return
        if (line ~ code "\"? *(=|-eq) *\"?2\"?([^0-9]|$)" && line !~ /\] && .*(last|grep) /)
            print at ": accepts exit code 2 without words: " line
        else if (line ~ code "\"? *(!=|-ne|-gt) *\"?0\"?([^0-9]|$)" && line !~ /^if |\|\| (return|continue)/)
            print at ": accepts any failure: " line
        else if (line ~ "(^|[^a-z0-9])! " call)
            print at ": accepts any failure: " line
        else if (line ~ "^" call && line !~ /\|\||&&|[$][?]| [|] | [|]$|&$|\047$|\) *\{/ &&
            next_line !~ /[$][?]|^[ \t]*[})]/)
            print at ": nobody looks at the exit code: " line
    }
    BEGIN { code = "[$]([?]|code|got|rc|status)"; call = "(\"[$](draftscope|DRAFTSCOPE)\"|program) " }
    FNR == 1 { if (held != "") judge(held, ""); held = part = "" }
    part == "" { here = FILENAME ":" FNR }
    sub(/\\$/, "") { part = part $0; next }
    { line = part $0; part = ""; if (held != "") judge(held, line); held = line; at = here }
    END { judge(held, "") }' "$@"
}

# The check finds what it is there for.
sample=$(mktemp) || exit 99
trap 'rm -f "$sample"' EXIT
cat >"$sample" <<'END'
"$draftscope" sim a.dst \
    --method llma >out
program sim a.dst # any code: a reason
program sim a.dst 2>err || not_ok "$(cat err)"
check "usage" test $? = 2
[ $? = 2 ] && grep -q 'the words' err
check "a failure" sh -c '! "$draftscope" sim a.dst'
check "a failure" test "$code" != 0
END
if [ "$(find_codes "$sample" | grep -c .)" != 4 ]; then
    echo "not ok - the check itself"
    find_codes "$sample"
    exit 1
fi
scripts=$(find tests -name '*.sh' ! -name codes.sh ! -path tests/cli/common.sh)
# shellcheck disable=SC2086
found=$(find_codes $scripts)
if [ "$found" ]; then
    echo "not ok - calls whose exit code may be that of a usage error: $(echo "$found" | wc -l)"
    echo "$found"
    exit 1
fi
echo "ok - $(echo "$scripts" | wc -l) scripts"
