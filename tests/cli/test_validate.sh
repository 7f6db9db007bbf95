#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Published figures: all come out within tolerance; each row fails when a figure is changed; broken
# tables, unknown rows and missing data are refused. Rows that need data run where the data are.
. "${top_srcdir:-.}/tests/cli/common.sh"
data=${DSC_TEST_DATA:-$top/../shared/data}
corpus=$top/traces/sample/edits.jsonl
validate() { # tables, arguments...
    folder=$1
    shift
    "$draftscope" validate --published --tables "$folder" --corpus "$corpus" "$@" >out 2>err </dev/null
}
program() {
    validate "$@"
}
# cells NAME...: these columns of the table in `out`, without its header.
cells() {
    grep -v '^#' out | awk -F '\t' -v names="$*" '
        NR == 1 { n = split(names, name, " "); for (i = 1; i <= NF; i++) column[$i] = i; next }
        { for (i = 1; i <= n; i++) printf "%s%s", $column[name[i]], i < n ? "\t" : "\n" }'
}

# --- every figure ----------------------------------------------------------------------------

tables=$top/tests/validation
rows="spectr-appb spectr-table1 pearl eagle ouroboros leviathan khisti identity serving served-steps"
data_rows="specbench llma"
if [ -r "$data/llma/rag.jsonl" ] && [ -r "$data/specbench/eagle.jsonl" ]; then
    with_data="--data $data"
    validate "$tables" --data "$data" $data_rows
    check "rows with data: $(cat err)" test $? = 0
    check "none is skipped" grep -q 'skipped: 0$' err
    check "replayed counts are no predictions" grep -qx 'draftscope: replay: 41 within tolerance' err
    check "conditional acceptance rates of EAGLE's log and counts of LLMA pass" \
        [ "$(cells quantity verdict | grep -cE '^(conditional_acceptance_rate|triggers|steps)	pass$')" = 19 ]
else
    with_data=
    echo "ok - rows with data # skipped: no data"
fi
validate "$tables"
check "all rows: $(cat err)" test $? = 0
cells row verdict >verdicts
for row in $rows; do
    check "$row has figures that pass" grep -qx "$row	pass" verdicts
done
for row in $data_rows; do
    check "$row is skipped without its data" grep -qx "$row	skipped" verdicts
    check "$row does not count as passed" sh -c '! grep -qx "$1	pass" verdicts' sh "$row"
done
check "no figure fails" sh -c '! grep -q "	fail$" verdicts'
# kind NAME VERDICT: how many figures of the kind have the verdict.
kind() {
    cells kind verdict | grep -c "^$1	$2\$"
}
check "kinds are counted apart" [ "$(head -n 1 err)" = \
    "draftscope: prediction: $(kind prediction pass) within tolerance, $(kind prediction disputed) disputed, $(kind prediction shown) shown without a verdict" ]
check "formulas" grep -qx "draftscope: formula: $(kind formula pass) within tolerance, $(kind formula disputed) disputed" err
check "identities" grep -qx "draftscope: identity: $(kind identity pass) within tolerance" err
check "orders" grep -qx "draftscope: order: $(kind order pass) in the same order" err
check "bounds hold and are not within tolerance" grep -qx "draftscope: bound: $(kind bound holds) lower bounds hold" err
check "rows without data" grep -qx 'draftscope: rows skipped: 2' err
check "every figure but a skipped row has a kind" \
    [ "$(cells kind verdict | grep -vcE '^(prediction|replay|formula|identity|order|bound)	|skipped$')" = 0 ]
check "every disputed figure says why" sh -c '! grep -q "disputed	-$" out'
check "every disputed figure has a witness" [ "$(cells witness verdict | grep -c '^-	disputed')" = 0 ]
check "both forms of Theorem 2" [ "$(cells quantity at predicted | awk '$2 == .9 { printf "%s %.0f;", $1, $3 }')" = \
    'accepted_as_printed 11;accepted_exact 9;accepted_simulated 9;' ]
"$draftscope" validate --help | awk '/^Rows/ { inside = 1; next } /^$/ { inside = 0 }
    inside && /^  [a-z]/ { print $1 }' | sort >listed
check "--help lists the rows" [ "$(cat listed)" = "$(printf '%s\n' $rows $data_rows | sort)" ]
for row in $rows $data_rows; do
    check "a table for $row" test -r "$tables/$row.tsv"
done

# The same figures as `theory pearl --published`, and the same predictions.
validate "$tables" pearl
cells source case quantity at published predicted |
    awk -F '\t' '/^Table/ { printf "%s %s %s %d %.4f %.6f\n", $1, $2, $3, $4 == "nan" ? 0 : $4, $5, $6 }' |
    sort >a
into out "$draftscope" theory pearl --published
cells table pair quantity window published predicted |
    awk -F '\t' '{ printf "Table %s %s %s %d %.4f %.6f\n", $1, $2, $3, $4, $5, $6 }' | sort >b
check "theory pearl --published has the same" cmp a b

# --- a figure that is wrong --------------------------------------------------------------------

# change ROW PATTERN NUMBER: in a copy, the published figure of the first line that fits.
change() {
    rm -rf changed
    mkdir changed
    cp "$tables"/* changed/
    awk -F '\t' -v OFS='\t' -v pattern="$2" -v number="$3" '
        !done && $0 ~ pattern { $5 = number; done = 1 } { print }' "$tables/$1.tsv" >"changed/$1.tsv"
    check "$1: something was changed" sh -c '! cmp -s "$1" "$2"' sh "$tables/$1.tsv" "changed/$1.tsv"
}
fails() { # ROW PATTERN NUMBER [ARGUMENTS]
    change "$1" "$2" "$3"
    row=$1
    shift 3
    bad 1 "out of tolerance, first $row," changed "$row" "$@"
    check "$row: the table is printed all the same" sh -c 'grep -q "	fail	" out && grep -q "	pass	" out'
}
fails spectr-appb '	kseq	2	' 0.848597
fails spectr-appb 'target_p' 0.11
fails spectr-table1 '	alpha	' 0.63
fails spectr-table1 '	speedup	8	' 1.66
fails pearl '	speedup	' 2.6
fails pearl '	best_window	' 4
fails pearl '	accepted	' 5
fails eagle '	chain_tau	' 3.1
fails eagle 'n_alpha	0	' 0.99
fails eagle 'tree_tau' 3.3
fails ouroboros 'HumanEval	ouroboros	' 11
fails ouroboros 'from verification' 62
fails ouroboros 'speculative_tokens_per_s' 19
fails leviathan 'speedup_expected' 3.3
fails khisti 'Dolly, K = 4	optimal	' 0.65
fails identity 'num_drafts' 44
fails serving 'GSM8K, eagle3	tokens_per_s	64	' 2300
fails serving 'GSM8K, none	e2e_p50_ms	32	' 5500
fails serving 'HumanEval, eagle3	step_ms	32	' 32
fails serving 'GSM8K, eagle3	mean_acceptance_length	8	' 3.1
fails serving 'GSM8K, none	tokens_per_s	64	' 2100
fails serving 'GSM8K	speedup_extrapolated	64	' 0.9
fails serving 'GSM8K	pays_up_to	' 64
# What is disputed and would come out is not disputed any more.
change eagle 'LLaMA2-Chat 70B	chain_tau	' 2.96
validate changed eagle
check "a dispute that is settled passes" sh -c '! grep -q disputed err'
# Without its witness, or when the witness is not out on the same side, nothing is disputed.
sed 's/	formula	accepted_simulated	/	formula	-	/' "$tables/pearl.tsv" >changed/pearl.tsv
bad 1 'out of tolerance, first pearl, Theorem 2, Theorem 2: accepted_exact' changed pearl
sed '/	accepted_simulated	0.9	/s/	11	/	9	/; /	accepted_exact	0.9	/s/	11	/	8.4	/' "$tables/pearl.tsv" >changed/pearl.tsv
validate changed pearl
check "a witness of another figure does not matter: $(cells quantity at verdict | awk '$1 == "accepted_exact" && $2 == .9 { print $3 }')" \
    [ "$(cells quantity at verdict | awk '$1 == "accepted_exact" && $2 == .9 { print $3 }')" = disputed ]
# The importers are asked.
change identity num_drafts 43.0
sed 's/\[11, 14/[12, 13/' "$tables/identity-sglang.json" >changed/identity-sglang.json
bad 1 'num_accepted_tokens' changed identity
if [ "$with_data" ]; then
    fails llma '	steps	' 48.28 --data "$data"
    fails llma '30B, retrieval	speedup	18' 2 --data "$data"
    fails specbench '	conditional_acceptance_rate	' 0.9 --data "$data"
    fails specbench 'EAGLE, math	speedup' 2.8 --data "$data"
fi

# --- requests and tables that make no sense ----------------------------------------------------

bad 2 'did you mean pearl?' "$tables" perl
bad 2 'see: draftscope validate --help' "$tables" nothing-like-it
bad 2 "unknown option --nonsense" "$tables" --nonsense x
bad 2 "not both" "$tables" --live x
rejects 2 'give --published, or --trace and --live' "$draftscope" validate pearl
bad 4 'no/pearl.tsv: No such file' no pearl
bad 4 'no/tokenizers/llama2.json' "$tables" --data no llma
bad 4 'no.jsonl' "$tables" --corpus no.jsonl ouroboros

broken() { # 'words on stderr' SED_SCRIPT [ROW]
    rm -rf changed
    mkdir changed
    cp "$tables"/* changed/
    row=${3:-pearl}
    sed "$2" "$tables/$row.tsv" >"changed/$row.tsv"
    bad 4 "$1" changed "$row"
}
broken "no column 'tolerance'" 's/	tolerance	/	tolerence	/'
broken "column 'published' is not numbers" 's/	27.95	/	many	/'
broken 'not finite' 's/	27.95	/	nan	/'
broken "the comment '# source" '/^# source/d'
broken "no given 'accepted'" '/	accepted	/d'
broken "'DeepSeek 6.7B/33B' has no given 'draft_tokens_per_s'" '/6.7B.*draft_tokens_per_s/d'
broken "there is no prediction of 'speed_up'" 's/	speedup	/	speed_up	/'
broken "tolerance 'about'" 's/	6%	/	about	/'
broken "tolerance '-6%'" 's/	6%	/	-6%	/'
broken "'GSM8K, none' has no given 'requests' at 8" '/none	requests	8	/d' serving
broken "'HumanEval, none' has no given 'e2e_p95_ms' at 1" '/	e2e_p95_ms	/d' serving
broken "'requests' at 1 is not from 1 to 2048" 's/	requests	1	64	/	requests	1	2049	/' serving
broken "'mean_acceptance_length' at 32 is not from 1 to 6" 's/	2.89	given/	6.1	given/' serving
broken "'max_tokens' is not from 1" 's/	max_tokens	nan	256	/	max_tokens	nan	0	/' serving
broken "there is no prediction of 'ttft_p90_ms'" 's/	ttft_p50_ms	/	ttft_p90_ms	/' serving
broken "kind 'guess'" 's/	prediction	/	guess	/'
broken "kind 'order' with tolerance '6%'" 's/	6%	prediction	/	6%	order	/'
broken "the witness 'accepted_guessed' is not a figure" 's/	accepted_simulated	as/	accepted_guessed	as/'
broken 'fields' '$s/	.*//'
broken 'no figures' '/^[^#s]/d; /^spec/d' eagle
broken 'draft_p or target_p is not from 0 to 1' 's/	target_p	nan	0.1	/	target_p	nan	1.1	/' spectr-appb
broken 'k is not from 1' 's/	otm	2	/	otm	-2	/' spectr-appb
broken "no given 'n_alpha' at 3" '/n_alpha	3	/d' eagle
broken 'numbers of layers are not positive' 's/	draft_layers	nan	32	/	draft_layers	nan	0	/' ouroboros

# --- where it goes -----------------------------------------------------------------------------

validate "$tables" --json eagle
check "an object per figure" [ "$(grep -c '"verdict": "' out)" = 21 ]
validate "$tables" eagle -o eagle.tsv
check "into a file" grep -q '^# source of eagle: Li et al' eagle.tsv
bad 2 'eagle.tsv exists already' "$tables" eagle -o eagle.tsv
validate "$tables" eagle -o eagle.tsv --force
check "replaced" test $? = 0
change eagle '	chain_tau	' 3.1
validate changed eagle -o failed.tsv
check "a table that fails is written" grep -q '	fail	' failed.tsv
check "in the source tree no option is needed" \
    sh -c 'cd "$1" && "$DRAFTSCOPE" validate --published identity' sh "$top"

summary
