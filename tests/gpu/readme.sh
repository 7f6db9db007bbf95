#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rewrites the tables of README.md: the machine code of a build's kernels, and the predicted times.
#
#     readme.sh BUILD            both
#     readme.sh --check          exit code 1 if the predictions in README.md are out of date
#
# A table is between the comments <!-- NAME: begin --> and <!-- NAME: end -->.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

[ $# = 1 ] || {
    echo "usage: readme.sh BUILD | --check" >&2
    exit 2
}
cp "$here/README.md" "$work/README.md"
put() { # name; its table is in $work/table
    awk -v name="$1" -v table="$work/table" '
        $0 == "<!-- " name ": end -->" { inside = 0 }
        !inside { print }
        $0 == "<!-- " name ": begin -->" {
            inside = 1
            while ((getline line < table) > 0)
                print line
        }' "$work/README.md" >"$work/new"
    mv "$work/new" "$work/README.md"
}

awk -f "$here/roofline.awk" "$here/models.tsv" >"$work/table"
put prediction
if [ "$1" = --check ]; then
    diff "$here/README.md" "$work/README.md"
    exit
fi
"$here/sass.sh" --table "$1" >"$work/table"
put machine-code
cat "$work/README.md" >"$here/README.md"
