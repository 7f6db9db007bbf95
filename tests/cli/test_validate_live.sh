#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope validate --live on the demo models: runs equal their predictions, exactly if greedy and
# within chance if sampled. It detects a wrong cost table, a wrong rule, wrong parameters, and other
# prompts, models and settings. The seconds in the lines are edited, so that no test depends on the
# speed of the machine.
. "${top_srcdir:-.}/tests/cli/common.sh"
demo=${LIVE_DEMO:-$top/live/demo}
if ! [ -x "${draftscope%/*}/draftscope-live" ] || ! [ -d "$demo/target" ]; then
    echo "no draftscope-live or no demo models: skipped"
    exit 77
fi

live() { # COMMAND arguments...: on the demo models, 12 prompts of 40 tokens
    command=$1
    shift
    "$draftscope" live "$command" --target "$demo/target" --draft "$demo/draft" \
        --prompts prompts.jsonl --max-tokens 40 --threads 1 --device cpu --progress never "$@" \
        2>err </dev/null || not_ok "live $command $*: $(cat err)"
}
run() { # RESULTS arguments...: another line
    to=$1
    shift
    live run --json "$@" >>"$to"
}
program() { # what good and bad run
    "$draftscope" validate "$@"
}
# cells NAME...: these columns of the table in `out`, without its header.
cells() {
    grep -v '^#' out | awk -F '\t' -v names="$*" '
        NR == 1 { n = split(names, name, " "); for (i = 1; i <= NF; i++) column[$i] = i; next }
        { for (i = 1; i <= n; i++) printf "%s%s", $column[name[i]], i < n ? "\t" : "\n" }'
}
has() { # a line of the cells named first
    cells "$1" >found
    check "'$2' among $1" grep -qxF -e "$2" found
}

head -n 12 "$demo/prompts.jsonl" >prompts.jsonl
live record --method none -o greedy.dst
live record --method none --temperature 1 --seed 5 --num-drafts 3 -o drawn.dst
for length in 1 2 4 7; do
    run greedy.jsonl --method draft-model --num-speculative-tokens $length --baseline
    run drawn.jsonl --method draft-model --num-speculative-tokens $length --temperature 1 --seed $length
done
run greedy.jsonl --method ngram
run greedy.jsonl --method llma --references all --num-speculative-tokens 4
run drawn.jsonl --method spectr --num-drafts 3 --num-speculative-tokens 3 --rule kseq --temperature 1
run drawn.jsonl --method spectr --num-drafts 2 --num-speculative-tokens 4 --rule otm --temperature 1

# --- runs equal their predictions ------------------------------------------------------------

good --trace greedy.dst --live greedy.jsonl
check "a sentence" grep -q ': 6 configurations: 6 pass, 0 fail, 0 are not predicted; worst' err
cells quantity verdict | grep -v '	pass$' >rest
check "shares are shown, all others pass" sh -c '! grep -v "^accept_share	shown$" rest'
cells quantity error at | awk -F '\t' '$1 != "draft_acceptance_rate" && !($2 < 1e-9 && $2 > -1e-9)' >errors
check "greedy counts are equal: $(cat errors)" test ! -s errors
has "method parameters quantity tolerance" "draft-model	num-speculative-tokens=4	block_efficiency	equal"
has "method parameters quantity tolerance verdict" \
    "draft-model	all	block_efficiency	1 % or |z| <= 3	pass"
has "method parameters quantity predicted measured" "draft-model	num-speculative-tokens=1	outputs	1	1"
has "method parameters quantity predicted measured" "draft-model	num-speculative-tokens=1	divergences	0	0"
has "method parameters quantity source" "draft-model	num-speculative-tokens=2	block_efficiency	loop: draft_rank"
has "method parameters quantity source" "ngram	num-speculative-tokens=10	block_efficiency	expect: output"
has "method parameters" "llma	num-speculative-tokens=4 references=all"
check "the columns" grep -qx "method	rule	parameters	temperature	quantity	at	predicted	measured	error	error_percent	se	z	tolerance	verdict	source	note" out
check "the trace's hash" grep -q '^# trace_hash: [0-9a-f]*$' out
# Block efficiency from the totals of the line.
calls=$(sed -n '1s/.*"target_calls": \([0-9]*\).*/\1/p' greedy.jsonl)
tokens=$(sed -n '1s/.*"output_tokens": \([0-9]*\).*/\1/p' greedy.jsonl)
cells quantity measured | awk -F '\t' -v be="$tokens $calls" 'BEGIN { split(be, x, " ") }
    $1 == "block_efficiency" { d = $2 - x[1] / x[2]; same = d < 1e-12 && d > -1e-12; exit }
    END { exit !same }'
check "block efficiency is tokens / calls" test $? = 0

good --trace drawn.dst --live drawn.jsonl
has "method parameters quantity source verdict" "draft-model	num-speculative-tokens=7	output_nll	entropy	pass"
check "six pass" grep -q ': 6 configurations: 6 pass, 0 fail' err
# 24 comparisons, with 11 degrees of freedom: Pr(t > 5.84) = Pr(normal > 3) / 24.
has "method rule parameters quantity tolerance" \
    "spectr	kseq	num-drafts=3 num-speculative-tokens=3	block_efficiency	|z| <= 5.84"
has "method rule parameters quantity source" \
    "draft-model	rejection	num-speculative-tokens=2	block_efficiency	expect: draft_logp, target_logp"
cp out first
good --trace drawn.dst --live drawn.jsonl --threads 3
check "threads change nothing" sh -c 'grep -v "^#" first >a; grep -v "^#" out >b; cmp -s a b'
# Of the pooled error, a percent; standard errors aside.
for tolerance in 0.01:fail 1:pass; do
    "$draftscope" validate --trace drawn.dst --live drawn.jsonl --z 1e-9 --pooled-tolerance ${tolerance%:*} \
        >out 2>err # any code: the table has the verdict
    has "parameters quantity tolerance verdict" \
        "all	block_efficiency	${tolerance%:*} % or |z| <= 1e-09	${tolerance#*:}"
done
good --trace drawn.dst --live drawn.jsonl --json
check "an object per row" grep -q '"quantity": "accept_distance"' out

# Repeats say nothing new; other seeds are further samples.
sed -n 1,2p greedy.jsonl >twice.jsonl
sed -n 1p greedy.jsonl >>twice.jsonl
good --trace greedy.dst --live twice.jsonl
check "two configurations" grep -q ': 2 configurations: 2 pass' err
sed -n 2p drawn.jsonl >seeds.jsonl
good --trace drawn.dst --live seeds.jsonl
cells quantity se | awk '$1 == "block_efficiency" { print $2; exit }' >one
run seeds.jsonl --method draft-model --num-speculative-tokens 2 --temperature 1 --seed 77
run seeds.jsonl --method draft-model --num-speculative-tokens 2 --temperature 1 --seed 78
good --trace drawn.dst --live seeds.jsonl
check "one configuration" grep -q ': 1 configurations: 1 pass' err
calls=$(sed 's/.*"target_calls": \([0-9]*\).*/\1/' seeds.jsonl | awk '{ s += $1 } END { print s }')
tokens=$(sed 's/.*"output_tokens": \([0-9]*\).*/\1/' seeds.jsonl | awk '{ s += $1 } END { print s }')
cells quantity measured | awk -F '\t' -v t="$tokens" -v c="$calls" '
    $1 == "block_efficiency" { d = $2 - t / c; same = d < 1e-12 && d > -1e-12; exit }
    END { exit !same }'
check "seeds are pooled" test $? = 0

# The first prompts of the trace, and a copy of the models under another name.
cp -r "$demo/target" other-name
head -n 5 prompts.jsonl >few.jsonl
into copied.jsonl "$draftscope" live run --target other-name --draft "$demo/draft" --prompts few.jsonl \
    --method draft-model --max-tokens 40 --threads 1 --device cpu --json
good --trace greedy.dst --live copied.jsonl
cat greedy.jsonl copied.jsonl copied.jsonl >both.jsonl
good --trace greedy.dst --live both.jsonl
check "a configuration of its own" grep -q ': 7 configurations: 7 pass' err
# Requests from the fifth on, pooled with others, and lines with a wrong first_request.
run part.jsonl --method draft-model --num-speculative-tokens 2 --skip 4 --requests 5
run part.jsonl --method draft-model --num-speculative-tokens 2 --skip 7
run part.jsonl --method draft-model --num-speculative-tokens 4 --requests 3
good --trace greedy.dst --live part.jsonl
check "parts are three configurations" grep -q ': 3 configurations: 3 pass' err
has "parameters quantity error" "all	block_efficiency	0"
run drawn-part.jsonl --method draft-model --num-speculative-tokens 2 --temperature 1 --seed 2 --skip 4 --requests 5
good --trace drawn.dst --live drawn-part.jsonl
outputs() { # as lists of one request each
    sed -n 's/.*"request_target_calls": \[\([^]]*\)\].*/\1/p' "$1" | tr ',' '\n'
}
outputs drawn-part.jsonl >part.calls
sed -n 2p drawn.jsonl >whole.jsonl
outputs whole.jsonl | sed -n 5,9p >whole.calls
check "a part has the samples of the whole" cmp whole.calls part.calls
sed '1s/"first_request": 4/"first_request": 5/' part.jsonl >claimed.jsonl
bad 4 'the prompts (hash ' --trace greedy.dst --live claimed.jsonl
sed '1s/"first_request": 4/"first_request": 9/' part.jsonl >claimed.jsonl
bad 4 'the line has requests up to 14' --trace greedy.dst --live claimed.jsonl
# An unknown field, and another version of the program.
sed '1s/^{/{"later": [1, 2], /; s/"version": "[^"]*"/"version": "9.9"/' greedy.jsonl >later.jsonl
good --trace greedy.dst --live later.jsonl

# --- seconds -----------------------------------------------------------------------------------

# Writes the seconds of a target of 1 ms per pass and 0.1 ms per token and of a draft model of 0.2 ms
# per pass into a line. The first request has those of the whole run; prefill takes no time.
timed() { # LINES
    awk 'function number(name) {
            match($0, "\"" name "\": [0-9]+"); return substr($0, RSTART + length(name) + 4, RLENGTH) + 0
        }
        function list(name, first, n,    i, s) {
            s = "\"" name "\": [" first; for (i = 1; i < n; i++) s = s ",0"
            sub("\"" name "\": \\[[^]]*\\]", s "]")
        }
        function put(name, x) { sub("\"" name "\": [0-9.e-]+", "\"" name "\": " x) }
        {
            n = number("requests"); target = number("target_calls") * 1e-3 + number("target_call_tokens") * 1e-4
            draft = number("draft_calls") * 2e-4
            list("request_time_s", target + draft, n); list("request_prefill_s", 0, n)
            list("request_baseline_time_s", number("output_tokens") * 1.1e-3, n)
            list("request_baseline_prefill_s", 0, n)
            put("draft_s", draft); put("verify_s", target); print
        }' "$1"
}
sed -n 1,4p greedy.jsonl >chains.jsonl
timed chains.jsonl >timed.jsonl
table() { # FACTOR of the target's times
    echo "tokens	context	batch	target_s	draft_s"
    awk -v factor="$1" 'BEGIN { for (t = 1; t <= 16; t++) for (c = 0; c <= 1024; c += 1024)
        printf "%d\t%d\t1\t%.6g\t0.0002\n", t, c, factor * (1e-3 + t * 1e-4) }'
}
table 1 >cost.tsv
table 3 >wrong.tsv
good --trace greedy.dst --live timed.jsonl --cost table:cost.tsv --seconds-tolerance 0.1 \
    --speedup-tolerance 0.1
has "method parameters quantity tolerance verdict" "draft-model	num-speculative-tokens=4	speedup	0.1 %	pass"
check "the worst speed-up" grep -q 'worst speedup error 0.0' err
good --trace greedy.dst --live timed.jsonl --cost linear:1e-3,1e-4,2e-4 --speedup-tolerance 0.1
bad 1 'verify_s_per_call' --trace greedy.dst --live timed.jsonl --cost table:wrong.tsv
check "the table is printed all the same" grep -q '	verify_s_per_call	.*	fail	' out
has "quantity verdict" "speedup	fail"
has "quantity verdict" "draft_s_per_call	pass"
good --trace greedy.dst --live timed.jsonl --cost table:wrong.tsv --seconds-tolerance 500 \
    --speedup-tolerance 500
# The median of repeats is robust to one that took much longer.
sed 's/"verify_s": \([0-9.]*\)/"verify_s": 9\1/' timed.jsonl | cat - timed.jsonl timed.jsonl >three.jsonl
good --trace greedy.dst --live three.jsonl --cost table:cost.tsv --seconds-tolerance 0.1
has "parameters quantity note" "num-speculative-tokens=1	verify_s_per_call	median of 3 runs"
# Passes that the cost table lacks are not extrapolated.
table 1 | awk -F '\t' 'NR == 1 || $1 <= 4' >short.tsv
good --trace greedy.dst --live timed.jsonl --cost table:short.tsv
has "method parameters quantity verdict" "draft-model	num-speculative-tokens=7	speedup	not predicted"

# --- errors are detected -----------------------------------------------------------------------

# A line that contains another rule than the one that ran.
run typical.jsonl --method draft-model --num-speculative-tokens 4 --rule typical --temperature 1
sed 's/"rule": "typical"/"rule": "rejection"/' typical.jsonl >claimed.jsonl
bad 1 'draft-model, rule rejection, num-speculative-tokens=4' --trace drawn.dst --live claimed.jsonl
good --trace drawn.dst --live typical.jsonl
has "rule quantity verdict" "typical	block_efficiency	not predicted"
# Swapped residuals: the counts hardly change, the likelihood of the outputs does.
swapped=${SWAPPED:-${draftscope%/*}/tests/cli/swapped_live}
if [ -x "$swapped" ]; then
    head -n 48 "$demo/problems.jsonl" >prompts.jsonl
    live record --method none --temperature 1 --seed 5 --num-drafts 1 -o problems.dst
    run honest.jsonl --method draft-model --num-speculative-tokens 4 --temperature 1
    good --trace problems.dst --live honest.jsonl
    "$swapped" run --target "$demo/target" --draft "$demo/draft" --prompts prompts.jsonl \
        --max-tokens 40 --threads 1 --device cpu --progress never --json --method draft-model --num-speculative-tokens 4 \
        --temperature 1 >swapped.jsonl 2>err
    bad 1 'draft-model, rule rejection, num-speculative-tokens=4: output_nll' --trace problems.dst --live swapped.jsonl
    head -n 12 "$demo/prompts.jsonl" >prompts.jsonl
else
    skip "a swapped residual" "no $swapped"
fi
# Outputs of the same length that are less probable than the target's, as with swapped residuals.
awk '{ match($0, /"request_output_nll": \[[^]]*/); n = split(substr($0, RSTART + 23, RLENGTH - 23), x, ",")
    for (i = 1; i <= n; i++) s = s (i > 1 ? "," : "") 1.3 * x[i]
    sub(/"request_output_nll": \[[^]]*/, "\"request_output_nll\": [" s); print; exit }' drawn.jsonl >unlikely.jsonl
bad 1 'draft-model, rule rejection, num-speculative-tokens=1: output_nll' --trace drawn.dst --live unlikely.jsonl
# Another length, greedy: one call more or less.
sed '1s/"num_speculative_tokens": 1/"num_speculative_tokens": 2/' greedy.jsonl | head -n 1 >claimed.jsonl
bad 1 'draft-model, rule greedy, num-speculative-tokens=2' --trace greedy.dst --live claimed.jsonl
# Another output.
sed '1s/"outputs_sha256": "[0-9a-f]*"/"outputs_sha256": "0"/' greedy.jsonl | head -n 1 >claimed.jsonl
bad 1 'outputs' --trace greedy.dst --live claimed.jsonl
sed 's/"divergences": 0.0/"divergences": 1.0/' greedy.jsonl | head -n 1 >claimed.jsonl
bad 1 'divergences' --trace greedy.dst --live claimed.jsonl
# On a device with other rounding both are shown without a verdict.
sed '1s/"device": "cpu"/"device": "cuda:0"/; 1s/"outputs_sha256": "[0-9a-f]*"/"outputs_sha256": "0"/' \
    greedy.jsonl | head -n 1 >claimed.jsonl
good --trace greedy.dst --live claimed.jsonl
has "quantity verdict" "outputs	shown"

# --- methods that need unrecorded probabilities ------------------------------------------------

run off.jsonl --method threshold --temperature 0 --baseline
good --trace greedy.dst --live off.jsonl
check "one is not predicted" grep -q ': 1 configurations: 0 pass, 0 fail, 1 are not predicted' err
check "with the simulator's reason" grep -q \
    "	not predicted	.*method threshold needs the draft model's probabilities off the output" out
timed off.jsonl >off-timed.jsonl
good --trace greedy.dst --live off-timed.jsonl --cost table:cost.tsv --speedup-tolerance 0.1
has "quantity source verdict" "speedup	measured counts	pass"
bad 1 'speedup' --trace greedy.dst --live off-timed.jsonl --cost table:wrong.tsv \
    --seconds-tolerance 500
"$draftscope" live run --target "$demo/target" --draft "$demo/draft" --method threshold \
    --replay greedy.dst --threads 1 --device cpu --json >>off.jsonl 2>err || not_ok "$(cat err)"
good --trace greedy.dst --live off.jsonl
has "method quantity verdict source" "threshold	block_efficiency	pass	replayed run"
check "one configuration" grep -q ': 1 configurations: 1 pass, 0 fail, 0 are not predicted' err
cat off.jsonl off.jsonl >repeated.jsonl # replayed ones too
good --trace greedy.dst --live repeated.jsonl
check "one configuration" grep -q ': 1 configurations: 1 pass' err
sed -n 2p off.jsonl >replayed.jsonl # by itself it is a measurement
good --trace greedy.dst --live replayed.jsonl
has "method quantity verdict" "threshold	block_efficiency	not predicted"
"$draftscope" live run --target "$demo/draft" --draft "$demo/draft" --method draft-model --num-speculative-tokens 3 \
    --replay greedy.dst --threads 1 --device cpu --json >>replayed.jsonl 2>err || # whatever the model
    not_ok "$(cat err)"
good --trace greedy.dst --live replayed.jsonl
check "that the simulator predicts" grep -q ': 2 configurations: ' err
sed -n 2p off.jsonl | sed 's/"trace_hash": "./"trace_hash": "x/' >forced.jsonl
bad 4 'forced.jsonl:1: the run replayed trace x' --trace greedy.dst --live forced.jsonl

# --- lines of another trace --------------------------------------------------------------------

bad 4 'greedy.jsonl:1: temperature is 0, but drawn.dst was recorded with 1' --trace drawn.dst \
    --live greedy.jsonl
cat greedy.jsonl drawn.jsonl >mixed.jsonl
bad 4 'mixed.jsonl:7: temperature is 1, but greedy.dst was recorded with 0' --trace greedy.dst \
    --live mixed.jsonl
sed '2s/"seed": 78/"seed": 77/; 3s/"seed": 78/"seed": 77/' seeds.jsonl >mixed.jsonl
bad 4 'mixed.jsonl:3: same configuration and seed as line 2, but different counts' --trace drawn.dst \
    --live mixed.jsonl
into said "$draftscope" live record --target "$demo/draft" --prompts prompts.jsonl --max-tokens 40 --method none \
    --threads 1 --device cpu -o models.dst
bad 4 'greedy.jsonl:1: the weights of the target (hash ' --trace models.dst --live greedy.jsonl
into said "$draftscope" live record --target "$demo/target" --draft "$demo/target" --prompts prompts.jsonl \
    --max-tokens 40 --method none --threads 1 --device cpu -o models.dst --force
bad 4 'greedy.jsonl:1: the weights of the draft (hash ' --trace models.dst --live greedy.jsonl
weights=$(sed -n '1s/.*"draft_weights_sha256": "\([0-9a-f]\{12\}\).*/\1/p' greedy.jsonl)
check "both hashes are named" grep -q "$weights) differ from those of models.dst (hash [0-9a-f]\{12\}" err
awk 'NR > 1' prompts.jsonl >others.jsonl
into others-run.jsonl "$draftscope" live run --target "$demo/target" --draft "$demo/draft" --prompts others.jsonl \
    --method draft-model --max-tokens 40 --threads 1 --device cpu --json
bad 4 'others-run.jsonl:1: the prompts (hash ' --trace greedy.dst --live others-run.jsonl
sed '1s/"max_tokens": 40/"max_tokens": 41/' greedy.jsonl >cut.jsonl
bad 4 'cut.jsonl:1: max_tokens is 41, but greedy.dst was recorded with 40' --trace greedy.dst --live cut.jsonl
into said "$draftscope" trace synth --target markov:300 --requests 12 --max-tokens 9 -o synth.dst
bad 4 "synth.dst: the provenance has no 'rule'" --trace synth.dst --live greedy.jsonl

# --- malformed lines ---------------------------------------------------------------------------

live run --method draft-model -o texts.jsonl --force >/dev/null
bad 4 'texts.jsonl:1: this is a generated text' --trace greedy.dst --live texts.jsonl
: >empty.jsonl
bad 4 'empty.jsonl: the file is empty' --trace greedy.dst --live empty.jsonl
{ sed -n 1p greedy.jsonl; echo; echo '{"method": '; } >broken.jsonl
bad 4 'broken.jsonl:3: not a line of live run --json' --trace greedy.dst --live broken.jsonl
broken() { # 'words' SED_SCRIPT
    sed "$2" greedy.jsonl >broken.jsonl
    bad 4 "$1" --trace greedy.dst --live broken.jsonl
}
broken "broken.jsonl:2: the run was interrupted" '2s/"interrupted": 0/"interrupted": 1/'
broken "broken.jsonl:1: schema 2" '1s/"schema": 1/"schema": 2/'
broken "broken.jsonl:1: field 'schema' is missing" '1s/"schema"/"scheme"/'
broken "broken.jsonl:3: field 'request_time_s' is missing" '3s/"request_time_s"/"times"/'
broken "broken.jsonl:1: field 'num_speculative_tokens' is missing" '1s/"num_speculative_tokens"/"gamma"/'
broken "'num_speculative_tokens' is not an integer from 0 to" '1s/"num_speculative_tokens": 1/"num_speculative_tokens": -1/'
broken "unknown method 'chian'" '1s/"method": "draft-model"/"method": "chian"/'
broken "unknown rule 'gredy'" '1s/"rule": "greedy"/"rule": "gredy"/'
broken "'request_time_s' has" '1s/"request_time_s": \[/&1,/'
broken "'request_target_calls' is not a list" '1s/"request_target_calls": \[[0-9]*/"request_target_calls": [-1/'
broken "'request_accept_histogram' has" '1s/"request_accept_histogram": \[/&1,/'
bad 4 'nothing.jsonl' --trace greedy.dst --live nothing.jsonl
bad 4 'nothing.dst' --trace nothing.dst --live greedy.jsonl
bad 2 'are both required' --trace greedy.dst
bad 2 'are both required' --live greedy.jsonl
bad 2 'not both' --published --trace greedy.dst --live greedy.jsonl
bad 2 'no argument with --live' pearl --trace greedy.dst --live greedy.jsonl
bad 2 'not a multiple of 4' --trace greedy.dst --live greedy.jsonl --bootstrap 10

# --- provenance of lines and recordings --------------------------------------------------------

"$draftscope" trace info greedy.dst | sed -n 's/^provenance  *//p' >provenance
for name in prompts_sha256 max_tokens; do
    check "the recording has $name" grep -q "\"$name\":" provenance
done
for hash in prompts_sha256 target_weights_sha256 draft_weights_sha256 target_config_sha256; do
    value=$(sed -n "1s/.*\"$hash\": \"\([0-9a-f]*\)\".*/\1/p" greedy.jsonl)
    check "$hash of both is one" grep -q "${value:-none}" provenance
done
check "no trace hash without --replay" sh -c '! grep -q trace_hash greedy.jsonl'
check "likelihoods of sampled outputs only" sh -c '! grep -q request_output_nll greedy.jsonl &&
    test "$(grep -c request_output_entropy drawn.jsonl)" = 6'
check "no baseline without --baseline" sh -c '! grep -q request_baseline drawn.jsonl'
random() { # SEED
    "$draftscope" live run --shape "$demo/draft/config.json" --random-weights "$1" --method none \
        --prompts ids.jsonl --max-tokens 2 --threads 1 --device cpu --json 2>err |
        sed 's/.*"target_weights_sha256": "\([0-9a-f]*\)".*/\1/'
}
echo '{"prompt": [1, 2, 3]}' >ids.jsonl
check "random weights by their seed" test "$(random 1)" = "$(random 1)" -a "$(random 1)" != "$(random 2)"
check "one hash" test "$(random 1 | wc -c)" = 65

summary
