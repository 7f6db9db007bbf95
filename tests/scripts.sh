#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every script, example and page with commands has a row in scripts.tsv: its path, or a pattern of paths,
# and the script that runs it and names it, or after "by hand: " why none does. And every test script is in
# a list of Makefile.inc.
set -eu
top=$(cd "${top_srcdir:-.}" && pwd)
git -C "$top" rev-parse --git-dir >/dev/null 2>&1 || {
    echo "no git checkout: skipped"
    exit 77
}
cd "$top"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    git ls-files -- '*.sh' '*.py' '*.ipynb' '*.sbatch' '*.awk' 'examples/*.c' contrib/container/Dockerfile |
        grep -v '^tests/.*/test_[a-z0-9_]*\.sh$'
    git ls-files -z -- '*.md' | xargs -0 grep -lE '^```(sh|console|python|c)$'
} >"$work/files"
grep -v '^#' tests/scripts.tsv >"$work/rows"
: >"$work/used"
tab=$(printf '\t')
while read -r file; do
    ran=
    while IFS=$tab read -r pattern test; do
        # shellcheck disable=SC2254 # a pattern
        case $file in
        $pattern)
            ran=$test
            echo "$pattern" >>"$work/used"
            break
            ;;
        esac
    done <"$work/rows"
    [ "$ran" ] || echo "$file: nothing runs it: tests/scripts.tsv has no row for it"
done <"$work/files" >"$work/wrong"
while IFS=$tab read -r pattern test; do
    grep -qxF -e "$pattern" "$work/used" || echo "$pattern of tests/scripts.tsv: no script or page with commands"
    name=${pattern##*/}
    case $test:$name in
    "by hand: "?*) continue ;;
    *:*\**) name=$(basename "${pattern%/*}") ;;
    *.py | *.c | *.md) name=${name%.*} ;;
    esac
    grep -v '^ *#' "$test" | grep -qF -e "$name" || echo "$pattern of tests/scripts.tsv: $test does not name $name"
done <"$work/rows" >>"$work/wrong"
git ls-files 'tests/*/test_*.sh' | while read -r test; do
    grep -qE "%D%/${test#tests/}( |\$)" tests/Makefile.inc || echo "$test: not in a list of tests/Makefile.inc"
done >>"$work/wrong"
sed 's/^/not ok - /' "$work/wrong"
echo "$(wc -l <"$work/files") scripts, $(wc -l <"$work/wrong") rows or lists are wrong"
[ ! -s "$work/wrong" ] && [ -s "$work/files" ]
