#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of docs/cookbook.md and README.md run after `make demo`, in order, in one folder for
# each page. A block that begins with ```sh is run. Each line of a ```text block must be in what the
# ```sh block before it printed (runs of spaces count as one; a line of dots stands for any lines).
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
LC_ALL=C
export LC_ALL
command -v gnuplot >/dev/null || {
    echo "no gnuplot: the demo draws figures"
    exit 77
}
[ -x "${DRAFTSCOPE%/*}/draftscope-live" ] && live=yes || live=

# A shell looks at the last command of a pipe only, so the program's own failures are kept in a file.
mkdir bin
cat >bin/draftscope <<'END'
#!/bin/sh
"$DRAFTSCOPE" "$@" && exit
code=$?
echo "exit code $code: draftscope $*" >>"$FAILURES"
exit $code
END
chmod +x bin/draftscope
FAILURES=$work/failures
export FAILURES
check "the demo runs" sh "$top/contrib/demo.sh" "$draftscope" "$top" "$work/demo"

# A file for each block, in the folder: NUMBER.sh or NUMBER.text, and in NUMBER.title the heading
# above it.
blocks() { # page, folder
    awk -v folder="$2" '
        /^```$/ && file { close(file); file = ""; next }
        /^```(sh|text)$/ && !file {
            number = sprintf("%s/%03d", folder, ++count)
            print title >(number ".title")
            close(number ".title")
            file = number "." substr($0, 4)
            printf "" >file
            next
        }
        /^#/ && !file { title = $0; sub(/^#+ */, "", title) }
        file { print >file }' "$1"
}

# Leaves what the block prints in `printed`. A block that needs models is skipped without the
# program that runs them; the exit code is then 1.
run_block() { # script, folder to run it in, title
    if grep -q 'draftscope live' "$1" && ! [ "$live" ]; then
        skip "$3" "no draftscope-live"
        return 1
    fi
    : >failures
    check "$3: the commands run" sh -c 'cd "$2" && PATH=$1/bin:$PATH && sh -eu "$3" >"$1/printed" 2>&1 &&
        ! [ -s "$1/failures" ] || { cat "$1/failures" "$1/printed"; false; }' sh "$work" "$2" "$work/$1"
}
shown_lines() { # excerpt, title
    tr -s ' \t' ' ' <printed >squeezed
    tr -s ' \t' ' ' <"$1" >shown
    while read -r line; do
        [ "$line" = ... ] || check "$2: '$line' is printed" grep -qF -e "$line" squeezed
    done <shown
}
run_page() { # name, page, fewest blocks of commands
    mkdir "blocks-$1" "run-$1"
    for folder in contrib live plots tests traces; do
        ln -s "$top/$folder" "run-$1/$folder"
    done
    cp -r demo "run-$1/demo"
    blocks "$top/$2" "blocks-$1"
    ran=0 printed=
    for title in "blocks-$1"/*.title; do
        read -r name <"$title"
        block=${title%.title}
        if [ -f "$block.sh" ]; then
            ran=$((ran + 1))
            run_block "$block.sh" "run-$1" "$2, $name" && printed=yes || printed=
        elif [ "$printed" ]; then
            shown_lines "$block.text" "$2, $name"
        fi
    done
    check "$2 has at least $3 blocks of commands, not $ran" [ "$ran" -ge "$3" ]
}
run_page cookbook docs/cookbook.md 15
run_page readme README.md 1

summary
