#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of README.md, docs/ and other pages run after `make demo`, in order, in one folder for each
# page, and the headings of docs/faq.md quote errors that the program prints. A block that begins with
# ```sh is run, and of ```console what follows the prompt. Each line of a ```text block must be in what the
# block before it printed (runs of spaces count as one; a line of dots stands for any lines).
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
        /^```(sh|text|console)$/ && !file {
            kind = substr($0, 4)
            number = sprintf("%s/%03d", folder, ++count)
            print title >(number ".title")
            close(number ".title")
            file = number "." (kind == "text" ? "text" : "sh")
            printf "" >file
            next
        }
        /^#/ && !file { title = $0; sub(/^#+ */, "", title) }
        file && kind == "console" { sub(/^\$ /, "") }
        file { print >file }' "$1"
}

# Leaves what the block prints in `printed`. A block is skipped without the program that runs models, GNU
# parallel or published data, where it needs them; the exit code is then 1.
run_block() { # script, folder to run it in, title
    if grep -q 'draftscope live' "$1" && ! [ "$live" ]; then
        skip "$3" "no draftscope-live"
        return 1
    fi
    if grep -q '^parallel ' "$1" && ! command -v parallel >/dev/null; then
        skip "$3" "no GNU parallel"
        return 1
    fi
    for data in gsm8k.dst:gsm8k llma/rag.jsonl:llma; do
        if grep -qF "${data%:*}" "$1" && ! [ -d "${DSC_TEST_DATA:-/nonexistent}/${data#*:}" ]; then
            skip "$3" "no ${data#*:} in DSC_TEST_DATA"
            return 1
        fi
    done
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
    ln -s demo/rag.dst "$work/monday.dst" "$work/tuesday.dst" "run-$1/"
    ln -s "$top/traces/sample/tokenizer.json" "run-$1/"
    for name in logs answers; do ln -s "$top/traces/sample/rag.jsonl" "run-$1/$name.jsonl"; done
    for data in gsm8k/train.jsonl gsm8k/test.jsonl llma tokenizers; do ln -s "${DSC_TEST_DATA-}/$data" "run-$1/"; done
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
# Logs of two days, for the page that merges them.
for day in monday tuesday; do
    awk -v day=$day 'BEGIN { split("chat qa rag", category); for (i = 0; i < 150; i++)
        printf "{\"id\": \"%s-%d\", \"prompt\": \"a\", \"output\": \"b\", \"metadata\": {\"category\": \"%s\"}}\n",
            day, i, category[1 + i % 3] }' >$day.jsonl
    good trace import --tokenizer bytes $day.jsonl -o $day.dst
done
run_page cookbook docs/cookbook.md 15
run_page readme README.md 2
for page in costs:1 data:2 faq:1 methods:3 metrics:1 results:2 serving:7 validation:1; do
    run_page "${page%:*}" "docs/${page%:*}.md" "${page#*:}"
done
run_page demo live/demo/README.md 1
run_page site contrib/site/index.md 1
run_page parallel contrib/parallel.md 1

# A fragment of a heading of the FAQ is printed by the command.
grep '^### ' "$top/docs/faq.md" >headings
faq() { # fragment, arguments
    fragment=$1
    shift
    check "docs/faq.md has a heading with \"$fragment\"" grep -qF -e "$fragment" headings
    "$DRAFTSCOPE" "$@" >message 2>&1 # any code: some headings are notes
    check "\"$fragment\" is printed by $*" grep -qF -e "$fragment" message
}
echo '{"prompt": "a", "output": "b"}' >text.jsonl
echo '{"question": "a", "reply": "b"}' >other.jsonl
printf '%s\n' '{"prompt": "a", "output": "b"}' '{"prompt": "a", "output": "b", "x": 1}' >field.jsonl
echo '{"prompt": [1], "output": [60]}' >ids.jsonl
echo 1,2,3 >logits.csv
echo .2,.3,.5 >one.csv
printf '.2,.3,.5\n.2,.3,.5\n' >two.csv
good trace import --tokenizer bytes text.jsonl -o text.dst
faq "is not a trace. Import it first" sim text.jsonl --method ngram
faq "a tokenizer or a vocabulary size is required" trace import text.jsonl -o new.dst
faq "exists already (--force replaces it)" trace import --tokenizer bytes text.jsonl -o text.dst
faq "unrecognized format; the nearest is" trace import --tokenizer bytes other.jsonl -o new.dst
faq "unknown field 'x'" trace import --tokenizer bytes field.jsonl -o new.dst
faq "token ids of this vocabulary are 0 to 49" trace import --vocab-size 50 ids.jsonl -o new.dst
faq "is 'bytes', but that of" trace merge text.dst demo/rag.dst -o new.dst
faq "unknown method" sim text.dst --method ngrm
faq "unknown option" sim text.dst --method ngram --lenth 3
faq "needs column draft_argmax of the trace" sim text.dst --method draft-model
faq "needs target logits for tokens that were never generated" sim text.dst --method lookahead
faq "references of kind 'turns': nothing is ever drafted" sim text.dst --method llma --references turns
faq "use --logits) or unnormalized probabilities (use --normalize)" theory accept --draft logits.csv --target one.csv
faq "they must match" theory accept --draft one.csv --target two.csv

summary
