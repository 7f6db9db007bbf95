#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope serve: one client without prefill time has the throughput of sim, whatever the threads
# the rows are the same, drafts are accepted as recorded, every load and limit that cannot be
# is refused in one line, an interruption keeps finished rows, and the timeline keeps the rules of
# its format.
# $dyadic, $one, $load and $base are lists of words.
# shellcheck disable=SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst
dyadic="--cost linear:0.015625,0.000244140625,0.0009765625"

# cell FILE COLUMN ROW: rows from 1 on.
cell() {
    awk -F '\t' -v name="$2" -v row="$3" '/^#/ { next }
        !head++ { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
        ++n == row { print $c }' "$1"
}
equal() { # description, a, b
    if [ -n "$2" ] && [ "$2" = "$3" ]; then ok; else not_ok "$1: '$2' and '$3'"; fi
}
near() { # description, a, b, share
    check "$1: $2 and $3" close_to "$2" "$3" "$4"
}

# --- one client is sim ---------------------------------------------------------------------------
# A pass of prefill alone costs a pass of one token, so none takes the time of sim exactly.
good sweep rag.dst --method none $dyadic --batch-size 1 -o sim.tsv
speed=$(cell sim.tsv tokens_per_s 1)
n=$(cell sim.tsv requests 1)
one="serve rag.dst --method none $dyadic --arrivals closed:1 --max-num-seqs 1 --requests $n --drain"
good $one --prefill-time 0 -o one.tsv
equal 'none, one client: tokens per second of sim' "$(cell one.tsv tokens_per_s 1)" "$speed"
equal 'one row' "$(grep -vc '^#' one.tsv)" 2
# Where the cost prices prefill tokens, the time grows by those of all prompts but one each.
good $one -o priced.tsv
good $one --per-request -o each.tsv
prompts=$(awk -F '\t' '/^#/ { next } !h++ { for (i = 1; i <= NF; i++) if ($i == "prompt_tokens") c = i; next }
    { s += $c - 1 } END { print s }' each.tsv)
slow=$(awk -v tokens="$(cell one.tsv output_tokens 1)" -v more="$prompts" -v x="$speed" \
    'BEGIN { printf "%.17g", tokens / (tokens / x + more * 0.000244140625) }')
near 'prefill tokens are priced' "$(cell priced.tsv tokens_per_s 1)" "$slow" 1e-12

# --- drafts --------------------------------------------------------------------------------------
# Accepted tokens do not depend on the load, and those of the first token's draft are the only ones
# that sim has in addition.
good serve rag.dst --method ngram,llma --num-speculative-tokens 4 $dyadic --arrivals closed:1,7 \
    --requests "$n" --drain -o two.tsv
equal 'none, two loads, two methods' "$(grep -vc '^#' two.tsv)" 7
for row in 3 5; do
    equal 'accepted tokens at every load' "$(cell two.tsv num_accepted_tokens $row)" \
        "$(cell two.tsv num_accepted_tokens $((row + 1)))"
done
good sweep rag.dst --method ngram --num-speculative-tokens 4 $dyadic -o ngram.tsv
near 'accepted tokens of sim, but for first tokens' "$(cell two.tsv num_accepted_tokens 3)" \
    "$(cell ngram.tsv num_accepted_tokens 1)" 0.02
# Draws follow the recorded probabilities: 200 requests of 256 tokens give 1 % for four errors.
good trace synth --target markov:50 --requests 200 -o markov.dst
good sweep markov.dst --method draft-model --num-speculative-tokens 3 --rule rejection,block \
    $dyadic -o sampled.tsv
for rule in rejection block; do
    row=$([ $rule = block ] && echo 2 || echo 1)
    good serve markov.dst --method draft-model --num-speculative-tokens 3 --rule $rule $dyadic \
        --arrivals closed:1 --requests 200 --drain -o served.tsv --force
    equal "rule $rule" "$(cell served.tsv rule 2)" $rule
    near "rule $rule: accepted per draft token" "$(awk -v a="$(cell served.tsv num_accepted_tokens 2)" \
        -v d="$(cell served.tsv num_draft_tokens 2)" 'BEGIN { print a / d }')" \
        "$(cell sampled.tsv draft_acceptance_rate $row)" 0.02
done
# 1 + 0.5 + 0.25 + 0.125 tokens of each pass, but for prefill and the end of an output.
good serve --target iid:0.5 --method draft-model --num-speculative-tokens 3 --max-tokens 2000 \
    $dyadic --arrivals closed:4 --requests 50 --drain -o iid.tsv
near 'i.i.d. acceptance' "$(awk -v a="$(cell iid.tsv num_accepted_tokens 2)" \
    -v d="$(cell iid.tsv num_drafts 2)" 'BEGIN { print 1 + a / d }')" 1.875 0.01
into totals.jsonl program sim markov.dst --method draft-model --num-speculative-tokens 3 --rule rejection --json
good serve totals.jsonl --method draft-model --num-speculative-tokens 3 $dyadic \
    --arrivals closed:1 --requests 200 --drain -o totals.tsv
near 'a table of totals' "$(awk -v a="$(cell totals.tsv num_accepted_tokens 2)" \
    -v d="$(cell totals.tsv num_draft_tokens 2)" 'BEGIN { print a / d }')" \
    "$(cell sampled.tsv draft_acceptance_rate 1)" 0.03

good trace import "$top/tests/data/import/specbench.jsonl" --tokenizer bytes -o steps.dst
good serve steps.dst --method recorded-steps --num-speculative-tokens 5 $dyadic --arrivals closed:1 \
    --requests 2 --drain -o steps.tsv
check 'recorded steps accept tokens' test "$(cell steps.tsv num_accepted_tokens 2)" -gt 0

# --- loads ---------------------------------------------------------------------------------------
load="serve rag.dst --method ngram --num-speculative-tokens 4 --cost linear:0.02,0.0002"
good $load --arrivals poisson:1:13:4 --threads 1 -o a.tsv
good $load --arrivals poisson:1:13:4 --threads 3 -o b.tsv
grep -v '^# command' a.tsv >a
grep -v '^# command' b.tsv >b
check 'the same rows for any number of threads' cmp a b
equal 'a low rate is served' "$(cell a.tsv saturated 5)" no
equal 'a rate above the capacity is saturated' "$(cell a.tsv saturated 8)" yes
check 'the largest stable rate is between the two' holds 'x >= 1 && x < 13' x="$(cell a.tsv largest_stable_qps 5)"
# Where every rate of the sweep is too high, lower ones are tried.
good $load --arrivals poisson:400 -o high.tsv
equal 'a rate that can never be served' "$(cell high.tsv saturated 1) $(cell high.tsv saturated 2)" 'yes yes'
for row in 1 2; do
    check 'the largest stable rate is far below it' \
        holds 'x > 0.5 && x < 60' x="$(cell high.tsv largest_stable_qps $row)"
done
stable=$(cell high.tsv largest_stable_qps 2)
good $load --arrivals "poisson:$stable" -o stable.tsv
equal 'at the largest stable rate the queue does not grow' "$(cell stable.tsv saturated 2)" no
good $load --arrivals "poisson:$(awk -v x="$stable" 'BEGIN { print 1.03 * x }')" -o above.tsv
equal 'and at 3 % more it does' "$(cell above.tsv saturated 2)" yes
good $load --arrivals constant:2 --arrivals gamma:2,3 --arrivals closed:2 --speculation fixed \
    --speculation oracle --slo ttft=0.5,tpot=0.1 -o kinds.tsv
for row in 1 2 3 4 5 6; do
    rate=$(cell kinds.tsv qps $row)
    [ "$rate" = nan ] || near "a steady state completes what arrives" "$(cell kinds.tsv requests_per_s $row)" "$rate" 0.02
done
equal 'three loads, two policies and none' "$(grep -vc '^#' kinds.tsv)" 10
equal 'an oracle wastes nothing' "$(cell kinds.tsv wasted_tokens 7)" 0
if command -v gnuplot >/dev/null; then
    good plot load-latency a.tsv -o latency.svg
    check 'no speculation is a line of the figure' grep -q '^none' latency.data.tsv
    good plot load-throughput two.tsv -o throughput.svg
    bad 2 '--slo ttft=S,tpot=S' plot goodput a.tsv -o goodput.svg
    good plot goodput kinds.tsv --where clients=2 -o goodput.svg
    printf 'method\tqps\tclients\tttft_p50_s\tmeasured\nngram\t5\t0\t0.1\tyes\n' >measured.tsv
    good plot load-latency a.tsv measured.tsv -o compared.svg
    good validate serving --published --tables "$top/tests/validation" -o cells.tsv
    good plot load-published cells.tsv -o cells.svg
    check 'published cells of both workloads are drawn' awk -F '\t' '/^#/ { next }
        $1 == "GSM8K" && $4 == 64 && $3 ~ /^throughput/ && $2 == "none" && $5 > 0 && $5 == $6 { fitted = 1 }
        $1 == "GSM8K" { a++ } $1 == "HumanEval" { b++ }
        END { exit !(fitted && a >= 24 && b >= 24) }' cells.data.tsv
    check 'measured loads are points next to the lines' grep -q '^ngram.*measured.5' compared.data.tsv
else
    skip 'figures' 'no gnuplot'
fi
echo 3 >one.csv
printf 'arrival_s,id\n0,a\n0.5,b\n1.5,c\n' >times.csv
good $load --arrivals file:times.csv --drain --per-request -o listed.tsv
equal 'as many requests as times' "$(grep -vc '^#' listed.tsv)" 7
equal 'the third arrives at its time in the file' "$(cell listed.tsv arrival_s 3)" 1.5
printf '%s\n' '{"prompt": "ab", "output": "cdef", "metadata": {"arrival_s": 7}}' \
    '{"prompt": "ab", "output": "cd", "metadata": {"arrival_s": 5}}' >late.jsonl
good trace import --tokenizer bytes late.jsonl -o late.dst
good serve late.dst --method none $dyadic --arrivals recorded:x2 --drain --per-request -o late.tsv
equal 'recorded arrivals are sorted' "$(cell late.tsv id 1) $(cell late.tsv arrival_s 2)" '1 1'

# --- the length of a run -------------------------------------------------------------------------
good $load --arrivals auto -o auto.tsv
check 'auto: from half of the smallest largest rate to above all' awk -F '\t' '/^#/ { next }
    !h++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { q = $at["qps"]; c = $at["largest_stable_qps"]; low = !low || q < low ? q : low; high = q > high ? q : high
        least = !least || c < least ? c : least; most = c > most ? c : most; seen[q]++ }
    END { n = length(seen); exit !(low <= least / 2 && low > 0 && high >= most && n >= 4 && n <= 11) }' auto.tsv
good $load --arrivals poisson:4 --requests 20 -o short.tsv
equal 'a run that is too short' "$(cell short.tsv saturated 2) $(cell short.tsv requests 2)" 'unknown 20'
check 'has a note' grep -q 'rows are too short for a steady state and get no verdict: .* has 20 requests and takes ' err
check 'and no verdict' grep -q '^# load_verdict_1: .*no recommendation: the runs are too short for a steady state' short.tsv
good $load --arrivals poisson:4 --half-width 0.1 -o wide.tsv
good $load --arrivals poisson:4 --half-width 0.005 -o narrow.tsv
check 'a narrower interval takes more requests' test "$(cell narrow.tsv requests 1)" -gt "$(cell wide.tsv requests 1)"
check 'and is narrower' holds 'a < b / 2' a="$(cell narrow.tsv e2e_mean_half_s 2)" b="$(cell wide.tsv e2e_mean_half_s 2)"
check 'and inside the wide one' holds 'a - b < h && b - a < h' a="$(cell narrow.tsv e2e_mean_s 2)" \
    b="$(cell wide.tsv e2e_mean_s 2)" h="$(cell wide.tsv e2e_mean_half_s 2)"
equal 'a method serves what none does' "$(cell wide.tsv requests 1) $(cell wide.tsv output_tokens 1)" \
    "$(cell wide.tsv requests 2) $(cell wide.tsv output_tokens 2)"
good $load --arrivals closed:60 --requests 87 --drain -o drained.tsv
good $load --arrivals closed:60 -o full.tsv
check 'a loop that drains does not keep all clients busy' holds 'a < 0.9 * b' \
    a="$(cell drained.tsv tokens_per_s 1)" b="$(cell full.tsv tokens_per_s 1)"
check 'one that goes on does' holds 'x > 59' x="$(cell full.tsv mean_running 1)"
# A default run has the numbers of 30000 requests: rates within 2 %, mean times within 3 % (their own
# intervals are 2 %).
good $load --arrivals poisson:1:4:1 -o default.tsv
good $load --arrivals poisson:1:4:1 --requests 30000 --half-width 1e-4 -o many.tsv
for row in 1 2 3 4 5 6 7 8; do
    check "row $row: $(cell default.tsv requests $row) requests for $(cell many.tsv requests $row)" \
        test "$(cell default.tsv requests $row)" -lt 3100 -a "$(cell many.tsv requests $row)" -gt 29900
    for column in requests_per_s:0.02 tokens_per_s:0.02 largest_stable_qps:0 mean_running:0.03 e2e_mean_s:0.03 tpot_mean_s:0.03; do
        near "row $row: ${column%:*}" "$(cell default.tsv "${column%:*}" $row)" "$(cell many.tsv "${column%:*}" $row)" "${column#*:}"
    done
done
bad 2 'a list of times is served as a whole' $load --arrivals file:times.csv --half-width 0.01
roof="serve --target iid:0.7 --method none --cost roofline:llama-3.1-8b,a100-80 --prompt-tokens 4000 --arrivals auto"
bad 2 '--kv-memory BYTES, --kv-blocks N or --max-num-seqs N limits them' $roof
good $roof --kv-memory 5e10 -o roof.tsv
check 'with room for some requests the loads are found' holds 'x > 0' x="$(cell roof.tsv largest_stable_qps 1)"
bad 2 'all requests arrive at one time' $load --arrivals file:one.csv

# --- policies ------------------------------------------------------------------------------------
good trace synth --target markov:50 --requests 40 --logprobs 50 -o rows.dst
policies="--speculation fixed --speculation adaptive --speculation adaptive:calibrated
    --speculation oracle --speculation ema"
served="--method draft-model --num-speculative-tokens 4 --cost linear:0.01,0.0006,0.001
    --arrivals closed:2,16 --requests 80 --rule rejection"
good serve rows.dst $served $policies --regret --threads 1 -o regret.tsv
good serve rows.dst $served $policies --regret --threads 3 -o threads.tsv
grep -v '^# command' regret.tsv >a
grep -v '^# command' threads.tsv >b
check 'the same regrets for any number of threads' cmp a b
equal 'none has no regret' "$(cell regret.tsv regret_fixed 1)" nan
equal 'the oracle has none over itself' "$(cell regret.tsv regret_oracle 9)" 0
# Rows 3 and 4 are policy fixed, at 2 and 16 clients. The best fixed length is that of a sweep.
good serve rows.dst $served -o sweep.tsv --num-speculative-tokens 0:4 --force
best=$(awk -F '\t' '/^#/ { next } !h++ { for (i = 1; i <= NF; i++) { if ($i == "clients") c = i
        if ($i == "e2e_mean_s") e = i; if ($i == "num_speculative_tokens") k = i }; next }
    $k != "nan" && $c == 16 && (!least || $e < least) { least = $e; best = $k } END { print best, least }' sweep.tsv)
equal 'the best fixed length' "$(cell regret.tsv best_fixed_k 4)" "${best% *}"
near 'regret over it' "$(awk -v r="$(cell regret.tsv regret_fixed 4)" 'BEGIN { print 1 + r }')" \
    "$(awk -v e="$(cell regret.tsv e2e_mean_s 4)" -v b="${best#* }" 'BEGIN { print e / b }')" 1e-5
check 'calibration improves the forecast' holds 'a > 0 && a < b' \
    a="$(cell regret.tsv confidence_brier 3)" b="$(cell regret.tsv recorded_brier 3)"
if command -v gnuplot >/dev/null; then
    good plot policies regret.tsv -o policies.svg
    check 'five policies are drawn' test "$(grep -vc '^#' policies.data.tsv)" = 11
else
    skip 'figure of policies' 'no gnuplot'
fi
good serve rag.dst --method ngram --num-speculative-tokens 4 $dyadic --arrivals closed:3 \
    --requests 40 --speculation 'schedule:[[1, 2, 4], [5, 6, 0]]' --speculation schedule:1-4=4,5-=0 \
    --speculation fixed -o schedule.tsv
equal 'a gap has the length before it' "$(cell schedule.tsv e2e_mean_s 2)" "$(cell schedule.tsv e2e_mean_s 3)"

# --- timeline and interruption -------------------------------------------------------------------
# events FILE PROCESS NAME: their number, of a file that keeps the rules of the format.
check_events=$(dirname "$draftscope")/tests/cli/check_trace_events
events() {
    "$check_events" "$1" >events || { cat events; return 1; }
    awk -v key="$2 $3" -F ': ' '$1 == key { print $2 }' events
}
good $load --arrivals closed:3 --requests 400 --drain --timeline time.json -o timed.tsv
equal 'a timeline has every request' "$(events time.json 2 'time to first token')" 400
equal 'and every step' "$(awk -F ': ' '/^1 / { n += $2 } END { print n }' events)" \
    "$(cell timed.tsv steps 2)"
good serve markov.dst --method draft-model --num-speculative-tokens 3 --rule rejection \
    --cost linear:0.0137,0.00031,0.0007 --overhead 0.0013 --arrivals poisson:0.7 --requests 60 --drain \
    --max-num-seqs 4 --timeline phases.json -o phases.tsv
equal 'phases of drafting, verification and the host' "$(events phases.json 1 overhead)" \
    "$(cell phases.tsv steps 2)"
check 'drafts are a track' test "$(events phases.json 1 draft)" -gt 100
equal 'every request decodes' "$(events phases.json 2 decode)" 60
good $load --arrivals closed:3 --requests 400 --drain --occupancy occupancy.tsv -o occupied.tsv
check 'running requests over time have the mean of the run' awk -F '\t' \
    -v mean="$(cell occupied.tsv mean_running 2)" '/^#/ { next }
    !h++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $1 == "ngram" { area += $at["running"] * $at["seconds"]; time += $at["seconds"]; n++ }
    END { d = area / time / mean - 1; exit !(n > 200 && n <= 400 && d < 1e-9 && d > -1e-9) }' \
    occupancy.tsv
bad 2 'occupancy.tsv exists already' $load --arrivals closed:3 --occupancy occupancy.tsv -o again.tsv
check 'and no table is written' test ! -e again.tsv
bad 2 'both name' $load --arrivals closed:3 --occupancy both.tsv --force -o both.tsv
bad 2 'is an input' $load --arrivals closed:3 --occupancy rag.dst/manifest.json --force -o again.tsv
"$draftscope" serve rag.dst --method ngram $dyadic --arrivals closed:1,2 --requests 100000000 \
    --drain -o long.tsv >out 2>err &
victim=$!
computes() { # for a fifth of a second
    [ "$(processor_time $victim)" -ge 20 ]
}
wait_until $victim computes
stop $victim INT
equal 'an interruption has its exit code' "$got" 130
check 'and says how many rows are finished' grep -q '0 of 4 rows are finished' err

# --- refusals ------------------------------------------------------------------------------------
base="serve rag.dst --method none $dyadic --requests 5"
bad 2 '--arrivals is missing' $base
bad 2 'constant:QPS' $base --arrivals often
bad 2 'at most 16384 loads' $base --arrivals closed:1-975808
bad 2 'gamma:QPS,CV' $base --arrivals gamma:2
bad 2 'serve needs seconds' serve rag.dst --method none --arrivals closed:1
bad 2 '--max-num-batched-tokens 4 is less than --max-num-seqs 8' $base --arrivals closed:1 \
    --max-num-seqs 8 --max-num-batched-tokens 4
bad 4 "request '" $base --arrivals closed:1 --kv-blocks 1
check 'and what it needs' grep -qE 'a prompt of [0-9]+ and an output of [0-9]+ tokens: it needs' err
bad 2 "--max-num-seqs: '0'" $base --arrivals closed:1 --max-num-seqs 0
bad 2 "--block-size: '0'" $base --arrivals closed:1 --block-size 0
bad 2 '--max-num-batched-tokens 255 is less' $base --arrivals closed:1 --max-num-batched-tokens 255
bad 2 'a block of 16 tokens takes' serve rag.dst --method none --cost roofline:llama-3.1-8b,a100-80 --arrivals closed:1 \
    --kv-memory 5
bad 2 'cannot be combined' $base --arrivals closed:1 --kv-memory 1e9 --kv-blocks 9
bad 2 'recorded arrivals belong to their requests' serve late.dst --method none $dyadic --arrivals recorded --order shuffle
bad 2 '--kv-blocks N takes blocks' $base --arrivals closed:1 --kv-memory 1e9
bad 2 'arrival_s' $base --arrivals recorded
bad 2 'needs a rate' serve rag.dst --method none $dyadic --arrivals closed:1 --duration 5
bad 2 '--drain and --half-width cannot be combined' $base --arrivals closed:1 --drain --half-width 0.01
bad 2 '--requests N is missing' serve rag.dst --method none $dyadic --arrivals closed:1 --drain
bad 2 'without a trace' $base --arrivals closed:1 --max-tokens 9
bad 2 '--rule needs a trace' serve --target iid:0.5 --method none --rule block $dyadic --arrivals closed:1
bad 2 'cannot be combined' $base --arrivals poisson:1 --duration 5
bad 2 'is not ttft=S' $base --arrivals closed:1 --slo ttft=0
bad 2 "'sometimes' is unknown" $base --arrivals closed:1 --speculation sometimes
bad 2 'vLLM' $base --arrivals closed:1 --speculation schedule:2-4=1
bad 2 'calibrated, oracle or constant:P' $base --arrivals closed:1 --speculation adaptive:sure
bad 2 'candidate_steps' $base --arrivals closed:1 --speculation ema:steps=3
bad 2 'off-above:QPS' $base --arrivals closed:1 --speculation off-above
bad 2 'lacks column draft_rows' serve markov.dst --method draft-model --rule greedy $dyadic \
    --arrivals closed:1 --requests 5 --speculation adaptive:calibrated
bad 2 'no draft model' serve rag.dst --method ngram $dyadic --arrivals closed:1 --requests 5 \
    --speculation adaptive:calibrated
bad 2 'adaptive:position takes given' serve --target iid:0.5 --method draft-model $dyadic \
    --arrivals closed:1 --requests 5 --speculation adaptive:calibrated
bad 2 '--regret and --per-request' $base --arrivals closed:1 --regret --per-request
bad 2 'cannot be served from a trace' serve markov.dst --method hf-dynamic --rule rejection $dyadic \
    --arrivals closed:1
bad 2 'needs column' serve rag.dst --method draft-model $dyadic --arrivals closed:1
bad 2 "unknown model 'zipf'" serve --target zipf:50 --method none $dyadic --arrivals closed:1
bad 2 'draft-model' serve --target iid:0.5 --method ngram $dyadic --arrivals closed:1
bad 2 'neither' serve --method none $dyadic --arrivals closed:1
bad 2 'one.tsv exists already' $base --arrivals closed:1 -o one.tsv
printf '1\n0\n' >down.csv
bad 4 'down.csv:2' $base --arrivals file:down.csv
printf 'a,b\n' >empty.csv
bad 4 'no arrival times' $base --arrivals file:empty.csv
good serve rag.dst --method none --arrivals closed:2 --requests 5 --kv-memory 4e9 \
    --cost roofline:llama-3.1-8b,a100-80 -o kv.tsv
check 'the KV cache is used' holds 'x > 0 && x < 1' x="$(cell kv.tsv kv_use_most 1)"
summary
