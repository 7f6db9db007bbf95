#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual pages agree with the program: every option, value, default, result field, command,
# method, figure, tensor and exit code is on its page and nothing else is; mandoc and groff have no
# complaint (where they are installed).
# The examples are test_examples.sh's.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
LC_ALL=C
export LC_ALL
man_dir=$top/cli/man

# same NAME PROGRAM_SAYS PAGE_SAYS: two files of lines, in any order.
same() {
    sort "$2" >program_says
    sort "$3" >page_says
    check "$1 ($(grep -c . program_says))" diff program_says page_says
}

# The words of a page: fonts, escapes and the names of font macros taken off.
plain() {
    sed -e 's/\\f[BIRP]//g' -e 's/\\-/-/g' -e 's/\\&//g' -e 's/\\(aq/'\''/g' -e 's/\\(dq/"/g' \
        -e 's/^\.\(BI\|BR\|RB\|IR\|RI\|B\|I\) //' "$man_dir/$1"
}

# entries PAGE SECTION [SUBSECTION]: "TAG<tab>TEXT" of each tagged paragraph; without a subsection
# those of the section that are in none.
entries() {
    plain "$1" | awk -v section="$2" -v sub_section="${3-}" '
        function flush() { if (tag != "") print tag "\t" text; tag = text = "" }
        /^\.SH / { flush(); sh = substr($0, 5); ss = ""; next }
        /^\.SS / { flush(); ss = substr($0, 5); next }
        /^\.TP/ { flush(); if (sh == section && ss == sub_section) { getline; tag = $0 } next }
        /^\./ { flush(); next }
        tag != "" { text = text (text == "" ? "" : " ") $0 }
        END { flush() }'
}

subsections() { # PAGE SECTION
    plain "$1" | awk -v section="$2" '/^\.SH / { sh = substr($0, 5) }
        /^\.SS / && sh == section { print substr($0, 5) }'
}

# "HEAD<tab>HELP" of each option below the headings of a help text on stdin.
help_entries() { # HEADINGS, joined by |
    awk -v headings="^($1)" '
        /^[^ ]/ { inside = $0 ~ headings; next }
        !inside { next }
        match($0, /^  (-[A-Za-z], )?--[a-z][a-z-]*( [^ ]+)?/) {
            if (n++) print head "\t" text
            head = substr($0, 3, RLENGTH - 2); text = substr($0, RLENGTH + 1); next
        }
        n { text = text " " $0 }
        END { if (n) print head "\t" text }' | squeeze
}

squeeze() {
    sed -e 's/   */ /g' -e 's/	 */	/' -e 's/ *$//'
}

# TEXT becomes its default: "(default 18)" or nothing.
defaults() {
    awk -F '\t' '{ d = match($2, /\(default [^)]*\)/) ? substr($2, RSTART, RLENGTH) : ""
        print $1 "\t" d }'
}

first_column() {
    sed 's/	.*//'
}

# "NAME<tab>MEANING" of each field below a heading of a help text on stdin.
help_fields() { # HEADING
    awk -v heading="$1" '
        /^[^ ]/ { inside = $0 == heading; next }
        inside && /^  [^ ]/ {
            if (n++) printf "\n"
            long = substr($0, 26, 1) != " " # then its meaning begins on the next line
            name = substr($0, 3, long ? 98 : 24); sub(/ *$/, "", name)
            printf "%s\t%s", name, long ? "" : substr($0, 27); next
        }
        inside { printf " %s", $0 }
        END { printf "\n" }' | squeeze
}

# options NAME PAGE SUBSECTION HEADINGS HELP_ARGUMENTS...
options() {
    name=$1 page=$2 sub_section=$3 headings=$4 section=${SECTION:-OPTIONS}
    shift 4
    "$DRAFTSCOPE" "$@" --help | help_entries "$headings" | defaults >program
    entries "$page" "$section" "$sub_section" | defaults >page
    same "$name" program page
}

# --- commands and options ----------------------------------------------------------------------

commands_of() {
    "$DRAFTSCOPE" "$@" --help | awk '/^Commands/ { inside = 1; next } !NF { inside = 0 } inside' |
        sed -e 's/^  *//' -e 's/  */	/'
}

commands_of >commands
first_column <commands >program
entries draftscope.1 COMMANDS | first_column >page
same "draftscope(1): the commands" program page
while IFS='	' read -r command summary; do
    check "draftscope-$command(1): its name and summary" \
        grep -q "^draftscope-$command - $summary\$" <<EOF
$(plain "draftscope-$command.1")
EOF
done <commands

entries draftscope.1 OPTIONS | first_column >page
printf '%s\n' --help --json-schema --version >program
same "draftscope(1): options" program page
check "draftscope --help, --version, -h" \
    sh -c '"$DRAFTSCOPE" --help && "$DRAFTSCOPE" --version && "$DRAFTSCOPE" -h'

for command in advise sim sweep merge tune serve plot report validate list; do
    options "draftscope-$command(1): options" "draftscope-$command.1" "" 'Options|Models|Against' "$command"
done

"$DRAFTSCOPE" list methods | sed 's/ .*//' >methods
sed 's/^/Method /' methods >program
subsections draftscope-methods.7 METHODS >page
same "draftscope-methods(7): the methods" program page
while read -r method; do
    for command in sim sweep; do
        SECTION=METHODS options "draftscope-methods(7): options of $method" draftscope-methods.7 \
            "Method $method" "Method $method:" "$command" --method "$method"
    done
done <methods
"$DRAFTSCOPE" list rules | sed 's/ .*//' >program
entries draftscope-methods.7 RULES | first_column >page
same "draftscope-methods(7): the rules" program page

commands_of trace | first_column >trace_commands
sed 's/^/draftscope trace /' trace_commands >program
subsections draftscope-trace.1 OPTIONS >page
same "draftscope-trace(1): the commands" program page
while read -r command; do
    options "draftscope-trace(1): options of $command" draftscope-trace.1 \
        "draftscope trace $command" Options trace "$command"
done <trace_commands

# The second program, where it was built.
live=
[ -x "${DRAFTSCOPE%/*}/draftscope-live" ] && live=yes
: >live_commands
if [ "$live" ]; then
    commands_of live >listed
    first_column <listed >live_commands
    entries draftscope-live.1 COMMANDS | squeeze >page
    same "draftscope-live(1): the commands" listed page
    sed 's/^/draftscope live /' live_commands >program
    subsections draftscope-live.1 OPTIONS >page
    same "draftscope-live(1): options of every command" program page
    while read -r command; do
        options "draftscope-live(1): options of $command" draftscope-live.1 \
            "draftscope live $command" 'Options|Models' live "$command"
    done <live_commands
    "$DRAFTSCOPE" live run --help | help_fields "Measured fields" >program
    entries draftscope-live.1 "OUTPUT FIELDS" "draftscope live run" | squeeze >page
    same "draftscope-live(1): measured fields, word for word" program page
    "$DRAFTSCOPE" live run --help | help_fields "Fields of EAGLE-3 heads" >program
    entries draftscope-live.1 "OUTPUT FIELDS" "draftscope live run --draft EAGLE-3" | squeeze >page
    same "draftscope-live(1): fields of EAGLE-3 heads, word for word" program page
    "$DRAFTSCOPE" live run --help | help_fields "Fields of --json only" >program
    entries draftscope-live.1 "OUTPUT FIELDS" "draftscope live run --json" | squeeze >page
    same "draftscope-live(1): fields of --json only, word for word" program page
else
    skip "draftscope-live(1)" "not built"
fi

commands_of theory | first_column >theory_commands
entries draftscope-theory.1 COMMANDS | first_column >page
same "draftscope-theory(1): the commands" theory_commands page
for section in OPTIONS "OUTPUT FIELDS" FORMULAS; do
    sed 's/^/draftscope theory /' theory_commands >program
    subsections draftscope-theory.1 "$section" >page
    same "draftscope-theory(1): $section of every command" program page
done
while read -r command; do
    options "draftscope-theory(1): options of $command" draftscope-theory.1 \
        "draftscope theory $command" 'Distributions|Options' theory "$command"
    for section in Columns:"OUTPUT FIELDS" Formulas:FORMULAS; do
        "$DRAFTSCOPE" theory "$command" --help | help_fields "${section%%:*}" >program
        entries draftscope-theory.1 "${section#*:}" "draftscope theory $command" | squeeze >page
        same "draftscope-theory(1): ${section%%:*} of $command, word for word" program page
    done
done <theory_commands
"$DRAFTSCOPE" theory accept --zipf 90,1,1 --num-drafts 9 --json | tr ',{' '\n\n' |
    sed -n 's/^ *"\([a-z0-9_]*\)": .*/\1/p' | sed 's/_\(low\|high\)$//' | sort -u >program
entries draftscope-theory.1 "OUTPUT FIELDS" "draftscope theory accept" | first_column | sort >page
comm -23 program page >missing
check "draftscope-theory(1): every column that accept writes" sh -c '! grep . missing'

# Every option that is mentioned anywhere is one of some command.
{
    while IFS='	' read -r command summary; do "$DRAFTSCOPE" "$command" --help; done <commands
    while read -r command; do "$DRAFTSCOPE" trace "$command" --help; done <trace_commands
    while read -r command; do "$DRAFTSCOPE" live "$command" --help; done <live_commands
    while read -r command; do "$DRAFTSCOPE" theory "$command" --help; done <theory_commands
    "$DRAFTSCOPE" list methods | sed 's/^/--/' # --METHOD.PARAMETER
    echo " --help --json-schema --version --PARAMETER --name --length --gamma --k --batch " # the last four: synonyms
} | tr ' ,=' '\n\n\n' | sed -n 's/^\(--[A-Za-z][A-Za-z-]*\).*/\1/p' | sort -u >known
for path in "$man_dir"/*.[157]; do
    plain "${path##*/}" | tr ' ,=[]()' '\n\n\n\n\n\n\n' |
        sed -n 's/^"*\(--[A-Za-z][A-Za-z-]*\).*/\1/p' | sort -u >mentioned
    comm -13 known mentioned >unknown
    check "${path##*/}: mentions only options there are" sh -c '! grep . unknown'
done

# --- fields, figures, files --------------------------------------------------------------------

for command in sim sweep; do
    "$DRAFTSCOPE" "$command" --help | awk '/^Result fields/ { inside = 1; next }
        inside && /^  [a-z]/ { if (n++) printf "\n"; printf "%s\t", $1; $1 = "" }
        inside { printf "%s", $0 " " }
        END { printf "\n" }' | squeeze >program
    entries "draftscope-$command.1" "OUTPUT FIELDS" | squeeze >all
    first_column <program >names
    awk -F '\t' 'NR == FNR { wanted[$1]; next } $1 in wanted' names all >page
    same "draftscope-$command(1): result fields, word for word" program page
done

"$DRAFTSCOPE" tune --help | help_fields Columns >program
entries draftscope-tune.1 "OUTPUT FIELDS" | squeeze >page
same "draftscope-tune(1): columns, word for word" program page

"$DRAFTSCOPE" serve --help | help_fields Columns >program
entries draftscope-serve.1 "OUTPUT FIELDS" | squeeze >page
same "draftscope-serve(1): columns, word for word" program page
"$DRAFTSCOPE" serve --help | help_fields "Columns with --per-request" >program
entries draftscope-serve.1 "OUTPUT FIELDS" "With --per-request" | squeeze >page
same "draftscope-serve(1): columns of requests, word for word" program page
"$DRAFTSCOPE" serve --help | help_fields "Columns of --occupancy" >program
entries draftscope-serve.1 "OUTPUT FIELDS" "With --occupancy" | squeeze >page
same "draftscope-serve(1): columns over time, word for word" program page

# A trace with everything a trace can hold.
echo '{"prompt": "ab", "output": [98, 257], "references": ["abc"], "logprobs": [-1, -1],' \
    '"draft_rows": [[[98, -1]], []], "target_rows": [[[98, -1]], []],' \
    '"draft_logprobs": [-1, null], "draft_argmax": [1, 2], "target_argmax": [1, 2],' \
    '"draft_entropy": [1, 2], "target_entropy": [1, 2],' \
    '"draft_ranks": {"depth": 1, "ranks": [[0], [null]]},' \
    '"statistics": {"k": 1, "kseq": [[[1, 0]], [[1, 1]]], "specinfer": [[0, 1], [0, 0]],' \
    '"otm": [[1, 0], [0, 1]]},' \
    '"rollouts": {"length": 1, "draft": [[1], [2]], "target": [[1, 2], [2, 3]]},' \
    '"candidates": {"steps": 1, "topk": 1, "nodes": 1, "token": [[1], [2]], "parent": [[0], [null]],' \
    '"logp": [[-1], [null]], "scored": [[1], [1]]},' \
    '"marginals": {"offsets": 1, "top": 1, "token": [[[1]], [[2]]], "logp": [[[-1]], [[0]]],' \
    '"logp_y": [[-1], [-2]]},' \
    '"steps": {"aligned": true, "accepted": [1], "drafted": [1], "draft_s": [0.5],' \
    '"verify_s": [1]}, "accept": {"NAME": {"cap": 2, "accepted": [1, 1]}}}' >all.jsonl
check "a small trace" "$DRAFTSCOPE" trace import --tokenizer bytes all.jsonl -o all.dst

# undocumented NAME PAGE: what stands in the file `program` and not on the page.
undocumented() {
    { entries "$2" "OUTPUT FIELDS" | first_column | tr -d ' ' | tr ',' '\n'
      subsections draftscope-methods.7 METHODS |
        while read -r s; do entries draftscope-methods.7 METHODS "$s"; done | first_column |
        sed -n 's/.*--\([a-z-]*\).*/\1/p' | tr - _; } | sort -u >page
    sort -u program | comm -23 - page >missing
    check "$1 ($(grep -c . program))" sh -c '! grep . missing'
}
{ "$DRAFTSCOPE" sim all.dst --method llma | sed 's/ .*//'
  "$DRAFTSCOPE" sim all.dst --method llma --per-request | grep -v '^#' | head -n 1 | tr '\t' '\n'
} >program
undocumented "draftscope-sim(1): every field that is printed" draftscope-sim.1
into said "$DRAFTSCOPE" sweep all.dst --method llma -o all.tsv
grep -v '^#' all.tsv | head -n 1 | tr '\t' '\n' >program
undocumented "draftscope-sweep(1): every column that is written" draftscope-sweep.1
into said "$DRAFTSCOPE" sweep all.dst --method llma --shard 1/1 -o all.shard
sed -n 's/^# column \([a-z_]*\): \(.*\)/\1\t\2/p' all.shard >program
entries draftscope-merge.1 DESCRIPTION Shards >page
same "draftscope-merge(1): columns of a shard, word for word" program page
"$DRAFTSCOPE" trace info all.dst | sed 's/ .*//' >program
undocumented "draftscope-trace(1): every field of info" draftscope-trace.1

"$DRAFTSCOPE" validate --help | help_fields Rows >program
entries draftscope-validate.1 ROWS | squeeze >page
same "draftscope-validate(1): Rows, word for word" program page
for section in Columns:--published "Columns with --live:--live"; do
    "$DRAFTSCOPE" validate --help | help_fields "${section%%:*}" >program
    entries draftscope-validate.1 "OUTPUT FIELDS" "${section#*:}" | squeeze >page
    same "draftscope-validate(1): ${section%%:*}, word for word" program page
done

"$DRAFTSCOPE" list figures | sed 's/  */	/' >program
entries draftscope-plot.1 FIGURES | sed 's/\. *Needs .*//' >page
same "draftscope-plot(1): the figures and their summaries" program page
"$DRAFTSCOPE" list models | sed 's/.*(\(.*\))$/\1/' >program
subsections draftscope-trace.1 MODELS >page
same "draftscope-trace(1): the kinds of model" program page
"$DRAFTSCOPE" list formats | sed 's/ .*//' | tr '[:lower:]' '[:upper:]' | sed 's/.*/.SH & FORMAT/' >program
plain draftscope-trace.5 | grep '^\.SH [A-Z]* FORMAT$' >page
same "draftscope-trace(5): the import formats" program page

sed -n 's/^ "\([a-z0-9_]*\)":.*/\1/p' all.dst/manifest.json >program
entries draftscope-trace.5 "TRACE FOLDER" manifest.json | first_column >page
same "draftscope-trace(5): fields of the manifest" program page
tr -d '\000-\037' <all.dst/shard-00000.safetensors | tr '}' '\n' |
    sed -n 's/.*"\([A-Za-z_.]*\)":{"dtype":"\([A-Z0-9]*\)".*/\1 \2/p' | grep -v '^__pad' >program
entries draftscope-trace.5 "TRACE FOLDER" Shards | first_column | cut -d ' ' -f 1,2 >page
same "draftscope-trace(5): tensors and their types" program page
sed -n 's/^# \([a-z_]*\): .*/\1/p' all.tsv >program
entries draftscope-trace.5 "RESULT TABLES" Comments | first_column | tr -d ' ' | tr ',' '\n' >page
same "draftscope-trace(5): comments of a result table" program page

# --- exit codes --------------------------------------------------------------------------------

codes() { # PAGE
    entries "$1" "EXIT STATUS" | first_column | tr -d ' ' | tr ',' '\n'
}
printf '%s\n' 0 1 2 3 4 130 143 141 >program
codes draftscope.1 >page
same "draftscope(1): exit codes" program page
for path in "$man_dir"/draftscope-*.1; do
    page=${path##*/}
    codes "$page" >page
    printf '%s\n' 0 1 2 >least
    sort page | comm -13 - least >missing
    check "$page: exit codes 0, 1 and 2" sh -c '! grep . missing'
done

# exits CODE PAGE 'WORDS' ARGUMENTS...: the program exits so, and the page of the command says it may.
exits() {
    code=$1 page=$2
    shift 2
    if [ "$code" = 0 ]; then good "$@"; else bad "$code" "$@"; fi
    codes "$page" | grep -x "$code" >listed
    check "$page lists exit code $code" test -s listed
}
printf 'num_speculative_tokens\tn\tspeedup\n4\t1\t1.5\n8\t1\t2\n' >table.tsv
exits 0 draftscope.1 --version
exits 2 draftscope.1 "unknown command 'nonsense'" nonsense
exits 2 draftscope-sim.1 "'-1' is not an integer from" sim all.dst --method llma --num-speculative-tokens -1
exits 4 draftscope-sim.1 'nothing.dst' sim nothing.dst --method none
exits 2 draftscope-sweep.1 'all.tsv exists already' sweep all.dst --method llma -o all.tsv
exits 4 draftscope-sweep.1 'nothing.dst' sweep nothing.dst --method llma -o new.tsv
exits 2 draftscope-tune.1 'unknown option --lenth' tune all.dst --method llma --lenth 3
exits 4 draftscope-tune.1 'nothing.dst' tune nothing.dst --method llma
exits 2 draftscope-merge.1 'one or more shards of a sweep expected' merge
exits 4 draftscope-merge.1 'all.tsv' merge all.tsv -o new.tsv
exits 2 draftscope-trace.1 'all.dst exists already' trace import --tokenizer bytes all.jsonl -o all.dst
exits 4 draftscope-trace.1 'nothing.dst' trace verify nothing.dst
exits 2 draftscope-plot.1 "unknown figure 'nonsense'" plot nonsense table.tsv -o new.svg
exits 4 draftscope-plot.1 'nothing.tsv' plot heatmap nothing.tsv -o new.svg
exits 2 draftscope-report.1 'at least one result expected' report
exits 4 draftscope-report.1 'nothing.tsv' report nothing.tsv -o new.html
exits 2 draftscope-list.1 "'nonsense' is not one of methods" list nonsense
if [ "$live" ]; then
    exits 2 draftscope-live.1 "unknown live command 'nonsense'" live nonsense
    exits 4 draftscope-live.1 'nothing' live run --method none --target nothing --prompts all.jsonl
fi
exits 2 draftscope-theory.1 'no distributions given' theory accept
exits 2 draftscope-validate.1 'give --published, or --trace' validate
exits 2 draftscope-validate.1 "unknown row 'nonsense'" validate --published nonsense
exits 4 draftscope-validate.1 'nothing' validate --published --tables nothing
exits 2 draftscope-theory.1 "unknown theory command 'nonsense'" theory nonsense
exits 4 draftscope-theory.1 'nothing.csv' theory accept --draft nothing.csv --target nothing.csv
mkdir empty
PATH=$work/empty "$DRAFTSCOPE" plot heatmap table.tsv -o new.svg >said 2>&1
check "exit 3, as in draftscope-plot.1: no gnuplot" test $? = 3
if [ -w /dev/full ]; then
    program() {
        "$draftscope" "$@" >/dev/full
    }
    exits 1 draftscope-list.1 'No space left' list methods
    exits 1 draftscope-sim.1 'No space left' sim all.dst --method none
    exits 1 draftscope-theory.1 'No space left' theory accept --bernoulli .5,.25
else
    skip "exit 1 on a full disk" "no /dev/full"
fi

# --- the pages themselves ----------------------------------------------------------------------

quiet() { # no word on stdout or stderr, and success
    "$@" >lint 2>&1 || { cat lint; return 1; }
    cat lint
    test ! -s lint
}
groff_quiet() {
    quiet sh -c 'groff -man -ww -Tutf8 "$1" >/dev/null' sh "$1"
}
for path in "$man_dir"/*.[157]; do
    page=${path##*/}
    check "$page: begins with its licence, has no line over 120 characters" \
        awk 'NR == 1 && !/SPDX-License-Identifier: Apache-2.0$/ { bad = 1; print }
            length > 120 { bad = 1; print } END { exit bad }' "$path"
    if command -v mandoc >/dev/null; then
        check "$page: mandoc -T lint" quiet mandoc -T lint -W warning "$path"
    else
        skip "$page: mandoc -T lint" "no mandoc"
    fi
    if command -v groff >/dev/null; then
        check "$page: groff -ww" groff_quiet "$path"
    else
        skip "$page: groff -ww" "no groff"
    fi
done

summary
