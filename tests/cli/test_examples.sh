#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples of the manual pages run, and print what the pages show.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
LC_ALL=C
export LC_ALL
man_dir=$top/cli/man
live=
[ -x "${DRAFTSCOPE%/*}/draftscope-live" ] && live=yes
mkdir bin
printf '#!/bin/sh\nexec "$DRAFTSCOPE" "$@"\n' >bin/draftscope
chmod +x bin/draftscope
for path in "$man_dir"/*.[157]; do
    page=${path##*/}
    awk '/^\.SH / { inside = $2 == "EXAMPLES" } /^\.EE/ { code = 0 } inside && code
        /^\.EX/ { code = 1 }' "$path" |
        sed -e 's/\\-/-/g' -e 's/\\(aq/'\''/g' -e 's/\\(dq/"/g' -e 's/\\&//g' -e 's/\\e/\\/g' >"$page.sh"
    if grep -q 'draftscope \(plot\|report\)' "$page.sh" && ! command -v gnuplot >/dev/null; then
        skip "$page: the examples run" "no gnuplot"
        continue
    fi
    if grep -q 'draftscope live' "$page.sh" && ! [ "$live" ]; then
        skip "$page: the examples run" "no draftscope-live"
        continue
    fi
    mkdir "run-$page"
    ln -s "$top/live" "run-$page/live"
    ln -s "$top/traces" "run-$page/traces"
    ln -s "$top/tests" "run-$page/tests"
    check "$page: the examples run" \
        sh -c 'cd "run-$1" && PATH=$2/bin:$PATH && sh -eu "../$1.sh" >"../$1.out" 2>&1 ||
            { cat "../$1.out"; false; }' sh "$page" "$work"
    # What a page shows of their output, as lines between .nf and .fi.
    awk '/^\.SH / { inside = $2 == "EXAMPLES" } /^\.fi/ { shown = 0 } inside && shown
        /^\.nf/ { shown = 1 }' "$path" | sed -e 's/\\-/-/g' -e 's/\\&//g' | tr -s ' \t' ' ' >shown
    tr -s ' \t' ' ' <"$page.out" >printed
    while read -r line; do
        check "$page: '$line' is what is printed" grep -qF -e "$line" printed
    done <shown
done

summary
