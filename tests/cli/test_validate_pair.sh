#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two recorded runs of the same requests: measured speedups against sums done here and against an
# independent program (tests/golden/make_pair.py) on Spec-Bench's logs; matching by id and by prompt;
# input that must be refused.
. "${top_srcdir:-.}/tests/cli/common.sh"
data=${DSC_TEST_DATA:-$top/../shared/data}
golden=$top/tests/golden/pair.tsv

# log NAME SECONDS_A_STEP ACCEPTED: a log in Spec-Bench's format of 16 requests in two categories,
# whose turns take 0.1 s and SECONDS_A_STEP for each step of ACCEPTED + 1 tokens.
log() {
    awk -v step="$2" -v accepted="$3" 'BEGIN {
        for (q = 1; q <= 16; q++) {
            words = "w"; lengths = ""; tokens = 12 + 6 * q
            for (i = 1; i < tokens; i++) words = words " w"
            steps = int(tokens / (accepted + 1))
            for (i = 0; i < steps; i++) lengths = lengths (i ? ", " : "") (accepted + 1)
            printf "{\"question_id\": %d, \"category\": \"%s\", \"model_id\": \"m\", \"choices\": [{\"index\": 0, \"turns\": [\"%s\"], \"decoding_steps\": [%d], \"new_tokens\": [%d], \"wall_time\": [%.9g], \"accept_lengths\": [%s]}]}\n",
                q, q % 2 ? "odd" : "even", words, steps, steps * (accepted + 1), .1 + step * steps, lengths
        } }' >"$1.jsonl"
}
awk 'BEGIN { for (q = 1; q <= 16; q++)
    printf "{\"question_id\": %d, \"category\": \"%s\", \"turns\": [\"question %d\"]}\n", q, q % 2 ? "odd" : "even", q }' >questions.jsonl
trace() { # NAME
    "$draftscope" trace import --format specbench --tokenizer bytes --questions "${2:-questions.jsonl}" "$1.jsonl" \
        -o "$1.dst" --force >out 2>err || {
        not_ok "import of $1: $(cat err)"
    }
}
rows() {
    grep -v '^#' out
}
cell() { # VALUE COLUMN: of the table in `out`
    rows | awk -F '\t' -v value="$1" -v name="$2" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } $1 == value { print $at }'
}

# --- measured and predicted ------------------------------------------------------------------------

log a .02 0
log b .03 2
trace a
trace b
# The time of a request is a sum, and so is the speedup.
expected() { # odd, even or all
    awk -v which="$1" 'BEGIN { for (q = 1; q <= 16; q++) {
        if (which != "all" && (q % 2 ? "odd" : "even") != which) continue
        n = 12 + 6 * q; steps = int(n / 3)
        ta += .1 + .02 * n; na += n; tb += .1 + .03 * steps; nb += 3 * steps }
        printf "%.12g", ta / na / (tb / nb) }'
}
good validate a.dst b.dst
for value in all odd even; do
    check "measured, $value: $(cell $value measured)" close_to "$(cell $value measured)" "$(expected $value)" 1e-9
    # Times without noise are predicted without error.
    check "predicted, $value: $(cell $value predicted)" close_to "$(cell $value predicted)" "$(expected $value)" 1e-6
    check "within its interval" holds 'a <= b && b <= c' \
        a="$(cell $value measured_low)" b="$(cell $value measured)" c="$(cell $value measured_high)"
done
check "requests of the values" [ "$(cell odd requests) $(cell even requests) $(cell all requests)" = "8 8 16" ]
check "all are matched by id" grep -q 'matched requests: 16 by id, 0 by prompt; without a partner: 0 of A, 0 of B' err
good validate a.dst a.dst
check "a run has the speed of itself" [ "$(cell all measured) $(cell all measured_low)" = "1 1" ]
# Another field, and none.
good validate a.dst b.dst --by model_id
check "--by another field" [ "$(cell m requests)" = 16 ]
good validate a.dst b.dst --method none --cost linear:0.02,0 --speedup-tolerance 1000
check "a method on the text of A" [ "$(cell all predicted) $(cell all method)" = "1 none" ]
# The time of a step that the log does not have: a prediction that is wrong fails.
bad 1 'outside the tolerance' validate a.dst b.dst --method none --cost linear:0.02,0 --speedup-tolerance 1
check "the table is printed all the same" [ "$(cell all verdict)" = fail ]
good validate a.dst b.dst --json
check "an object per row" [ "$(grep -c '"quantity": "speedup"' out)" = 3 ]

# The steps of B by a cost model. Their drafts follow the rule of Hugging Face's assisted generation: 5
# tokens at first, then 1 less, since 2 are accepted, until a draft of 2 is accepted whole: 2 more.
priced() {
    awk 'BEGIN { for (q = 1; q <= 16; q++) {
        n = 12 + 6 * q; d = 5
        for (i = 0; i < int(n / 3); i++) {
            time += .02 + .001 * (d + 1) + .002 * d; plain += 3 * .021
            d = d == 2 ? 4 : d > 1 ? d - 1 : 1 } }
        printf "%.12g", plain / time }'
}
good validate a.dst b.dst --cost linear:0.02,0.001,0.002 --speedup-tolerance 1000
check "recorded steps, priced: $(cell all predicted), $(priced)" close_to "$(cell all predicted)" "$(priced)" 1e-9

# --- matching ----------------------------------------------------------------------------------------

# Other ids, the same prompts; then four requests less.
awk '{ sub(/"question_id": [0-9]*/, "\"question_id\": " 100 + NR); print }' b.jsonl >shifted.jsonl
awk '{ sub(/"question_id": [0-9]*/, "\"question_id\": " 100 + NR); print }' questions.jsonl >shifted-questions.jsonl
trace shifted shifted-questions.jsonl
good validate a.dst shifted.dst
check "by prompt" grep -q '0 by id, 16 by prompt' err
check "the same speedup" close_to "$(cell all measured)" "$(expected all)" 1e-9
good trace cut shifted.dst --requests 0:11 -o fewer.dst
good validate a.dst fewer.dst
check "those without a partner are counted" grep -q '12 by prompt; without a partner: 4 of A, 0 of B' err
check "and left out" [ "$(cell all requests)" = 12 ]
# The same ids with other prompts are other requests.
sed 's/question \([0-9]*\)"/another \1"/' questions.jsonl >other-questions.jsonl
cp b.jsonl other.jsonl
trace other other-questions.jsonl
bad 4 'no request in common' validate a.dst other.dst

# --- what must be refused ------------------------------------------------------------------------------

broken() { # 'words on stderr' SED_SCRIPT
    sed "$2" b.jsonl >broken.jsonl
    trace broken
    bad 4 "$1" validate a.dst broken.dst
}
broken 'broken.dst: request 3: wall_time is not a positive number' '3s/"wall_time": \[[^]]*\]/"wall_time": [0]/'
sed '3s/"wall_time": \[[^]]*\]/"wall_time": [NaN]/' b.jsonl >nan.jsonl
"$draftscope" trace import --format specbench --tokenizer bytes --questions questions.jsonl nan.jsonl -o nan.dst >out 2>err
check "NaN is not imported: exit $?" grep -q 'nan.jsonl:3' err
sed '3s/"wall_time": \[[^]]*\]/"wall_time": [-1]/' b.jsonl >minus.jsonl
"$draftscope" trace import --format specbench --tokenizer bytes --questions questions.jsonl minus.jsonl -o minus.dst >out 2>err
case $? in
0) bad 4 'not a positive number' validate a.dst minus.dst ;;
*) check "a negative time is not imported" grep -q 'wall_time' err ;;
esac
echo '{"id": "1", "prompt": "question 1", "output": "w w w"}' >untimed.jsonl
good trace import --tokenizer bytes untimed.jsonl -o untimed.dst
bad 4 'no metadata field wall_time' validate untimed.dst untimed.dst
echo '{"id": "1", "prompt": [1], "output": [2]}' >ids.jsonl
good trace import --vocab-size 9 ids.jsonl -o ids.dst
bad 4 'different models' validate a.dst ids.dst
for model in one two; do
    echo "{\"id\": \"1\", \"prompt\": \"q\", \"output\": \"w w w\", \"metadata\": {\"model\": \"$model\", \"wall_time\": 1}}" >$model.jsonl
    good trace import --tokenizer bytes $model.jsonl -o $model.dst
done
bad 4 "different models: request 1 of one.dst is of 'one', and of two.dst of 'two'" validate one.dst two.dst
bad 4 'nothing.dst' validate a.dst nothing.dst
bad 2 'two traces' validate a.dst
bad 2 'two traces' validate a.dst b.dst b.dst
bad 2 "has the metadata field 'topic'; a.dst has" validate a.dst b.dst --by topic
bad 2 'needs --cost' validate a.dst b.dst --method ngram
bad 2 'prices draft tokens at nothing' validate a.dst b.dst --method ngram --cost unit
# No draft of this log was accepted whole, so the import cannot tell how long its drafts were.
bad 4 'does not contain how many tokens each step drafted' validate b.dst a.dst --cost linear:0.02,0.001
bad 2 'unknown option --nonsense' validate a.dst b.dst --nonsense 1
bad 2 'belongs to the comparison of two traces' validate --published --by category

# --- Spec-Bench ----------------------------------------------------------------------------------------

if [ -r "$data/specbench/eagle.jsonl" ]; then
    for run in vanilla eagle sps-68m; do
        good trace import --format specbench --questions "$data/specbench/questions.jsonl" \
            --tokenizer "$data/tokenizers/llama2.json" "$data/specbench/$run.jsonl" -o "$run.dst"
    done
    good validate vanilla.dst eagle.dst
    rows >eagle.tsv
    check "EAGLE: every category is predicted within 3 %" \
        [ "$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "error_percent") at = i; next }
            $at < 3 && $at > -3' eagle.tsv | wc -l)" = 14 ]
    # The log of SpS lacks the lengths of its drafts, which adapt to the text.
    bad 1 'of 14 predicted speedups' validate vanilla.dst sps-68m.dst
    rows >sps-68m.tsv
    for run in eagle sps-68m; do
        awk -F '\t' -v run=$run '
            FNR == 1 { for (i = 1; i <= NF; i++) at[FILENAME, $i] = i; next }
            FNR == NR { if ($1 == run) for (c in at) { split(c, p, SUBSEP); if (p[1] == FILENAME) known[$2, p[2]] = $at[c] }; next }
            { n++
              split("requests measured per_request mean_rate", names, " ")
              for (k in names) {
                  x = $at[FILENAME, names[k]]; y = known[$1, names[k]]
                  if (x !~ /^[0-9]/ || !(x - y <= 1e-8 * y && y - x <= 1e-8 * y)) { print $1, names[k], x, y; bad++ }
              }
              x = $at[FILENAME, "predicted"]; y = known[$1, "simple_prediction"]
              if (run == "eagle" && !(x - y < .08 * y && y - x < .08 * y)) { print $1, "predicted", x, y; bad++ }
            }
            END { exit !(n == 14 && !bad) }' "$golden" $run.tsv >differs
        check "$run: as the independent program has it: $(cat differs)" test $? = 0 -a ! -s differs
    done
    # Published by Spec-Bench for Vicuna-7B on an A100, means of three other runs (Leaderboard.md,
    # 09244ff): the same machine within 10 %.
    published() { # RUN CATEGORY SPEEDUP
        x=$(awk -F '\t' -v value="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "mean_rate") at = i; next }
            $1 == value { print $at }' "$1.tsv")
        check "$1, $2: $x, published $3" close_to "$x" "$3" .1
    }
    published eagle translation 1.99
    published eagle summarization 2.23
    published eagle qa 2.12
    published eagle math_reasoning 2.67
    published eagle rag 2.04
    published eagle all 2.29
    published sps-68m translation 1.13
    published sps-68m summarization 1.62
    published sps-68m qa 1.49
    published sps-68m math_reasoning 1.47
    published sps-68m rag 1.55
    published sps-68m all 1.49
else
    skip "Spec-Bench" "no data"
fi

summary
