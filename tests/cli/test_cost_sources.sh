#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Costs from measurements, as users meet them: metrics pages, benchmarks, tables of engines, wall
# times and the quartiles of a measured table, with what they cannot tell and exit codes. The wall
# times of Spec-Bench, where they are, against least squares by another program.
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
says() { # WORDS: on stderr or stdout of the last call
    check "'$1'" grep -qF -e "$1" out err
}
# A metrics page: seconds, steps of sequences, first tokens, tokens, iterations, running, drafts, draft
# tokens, accepted tokens.
page() {
    printf 'vllm:inter_token_latency_seconds_sum %s\nvllm:inter_token_latency_seconds_count %s
vllm:time_to_first_token_seconds_count %s\nvllm:generation_tokens_total %s
vllm:iteration_tokens_total_count %s\nvllm:num_requests_running %s
vllm:spec_decode_num_drafts_total %s\nvllm:spec_decode_num_draft_tokens_total %s
vllm:spec_decode_num_accepted_tokens_total %s\n' "$@"
}
page 0 0 0 0 0 0 0 0 0 >start.txt
page 90 9000 10 9010 9000 1 0 0 0 >one.txt
page 85.6 8000 80 8080 1000 8 0 0 0 >eight.txt
page 59.2 4000 40 10040 1000 4 4000 16000 6000 >drafts.txt
good trace import "$sample/rag.jsonl" --tokenizer "$sample/tokenizer.json" -o rag.dst

# --- a server ----------------------------------------------------------------------------------
all=start.txt,one.txt,start.txt,eight.txt,start.txt,drafts.txt
good sim rag.dst --method ngram --cost prometheus:$all
says 'cost: 3 loads of 1 to 20 tokens (extrapolated beyond them): step = 0.0099 + 0.0001 x tokens'
says 'draft_s 0.000725'
good sim rag.dst --method ngram --batch-size 1,4 --cost prometheus:start.txt,drafts.txt
says 'cost: no speedup: every step was measured with drafts'
check "no claim about batch sizes" sh -c '! grep -q "no batch size is slower" out'
bad 4 'no speedup: every step was measured' tune rag.dst --method ngram \
    --cost prometheus:start.txt,drafts.txt
good tune rag.dst --method ngram --cost prometheus:start.txt,drafts.txt --objective throughput
bad 4 'one load without drafts' sim rag.dst --method ngram --cost prometheus:start.txt,one.txt
bad 4 'wrong order' sim rag.dst --method ngram --cost prometheus:one.txt,start.txt
bad 4 'no token was generated' sim rag.dst --method ngram --cost prometheus:one.txt,one.txt
bad 2 'prometheus:BEFORE,AFTER' sim rag.dst --method ngram --cost prometheus:one.txt

good advise rag.dst --metrics $all --batch-size 1 -o served
says '  10040 output tokens in 1000 steps of 14.8 ms at a batch size of 4'
says '  4 draft tokens per draft, of which 37.5 % are accepted: mean acceptance length 2.500'
says "requests, 5385 output tokens; cost prometheus:$all"
good advise rag.dst --metrics start.txt,drafts.txt --cost linear:.02,.0005 --batch-size 1 -o both
says 'mean acceptance length 2.500'
says '; cost linear:.02,.0005'
program advise rag.dst --metrics start.txt,drafts.txt -o alone >out 2>err
check "one pair has no verdict" test $? = 4
says 'mean acceptance length 2.500'
says 'add a measurement without speculation'
cp one.txt taken.tsv
bad 2 'taken.tsv is an input' advise rag.dst --metrics start.txt,eight.txt,start.txt,taken.tsv \
    -o taken --force
bad 2 '--metrics BEFORE,AFTER' advise rag.dst --metrics one.txt -o odd

# --- benchmarks and tables of engines ------------------------------------------------------------
bench() { # step, duration, chunks
    echo "{\"duration\": $2, \"output_lens\": [3], \"ttfts\": [0.1], \"itls\": [[$1, $1]]$3}"
}
bench 0.010 0.020 >one.json
bench 0.0107 0.002675 >eight.json
good sim rag.dst --method ngram --cost bench:one.json,eight.json
says 'cost: 2 loads of 1 to 8 tokens (extrapolated beyond them): step = 0.0099 + 0.0001 x tokens'
echo '{"duration": 1}' >start.json
bad 4 '--save-detailed' sim rag.dst --method ngram --cost bench:start.json
echo '{"token_counts": [1, 64], "step_time_ms": [9.1, 15.4]}' >steps.json
good sim rag.dst --method ngram --cost sps:steps.json
says 'cost: no speedup: the times of this table are of steps with a draft'
bad 4 'no table of steps per second' sim rag.dst --method ngram --cost sps:one.json

# --- quartiles -----------------------------------------------------------------------------------
awk 'BEGIN { print "tokens\ttarget_s\ttarget_s_low\ttarget_s_high"
    for (t = 1; t <= 64; t *= 2) print t "\t" .01 + .001 * t "\t" .007 + .001 * t "\t" .012 + .001 * t }' \
    >wide.tsv
good sim rag.dst --method ngram --cost table:wide.tsv
says 'cost: quartiles are more than 1.5x apart in 2 of 7 cells: tokens 1, tokens 2'
says 'speedup_cost_low'
good sweep rag.dst --method ngram,llma --num-speculative-tokens 2,6 --cost table:wide.tsv -o one.tsv
for shard in 1 2; do
    good sweep rag.dst --method ngram,llma --num-speculative-tokens 2,6 --cost table:wide.tsv \
        --shard $shard/2 -o part$shard.tsv
done
good merge part1.tsv part2.tsv -o merged.tsv
check "shards have the quartiles" sh -c \
    'grep -v "^# command" one.tsv >a; grep -v "^# command" merged.tsv >b; cmp a b'
check "and the cells" grep -q '^# cost_caveat: quartiles are more than 1.5x apart in 2 of 7 cells' one.tsv
check "in two columns, around the speedup" awk -F '\t' '/^#/ { next }
    !n++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { wrong += !($at["speedup_cost_low"] < $at["speedup"] && $at["speedup"] < $at["speedup_cost_high"]) }
    END { exit n != 5 || wrong }' one.tsv
awk 'BEGIN { print "tokens\ttarget_s\ttarget_s_low\ttarget_s_high"
    for (t = 1; t <= 64; t *= 2) print t "\t" .01 + .001 * t "\t" .005 + .001 * t "\t" .05 + .001 * t }' \
    >wider.tsv
good advise rag.dst --cost table:wider.tsv --batch-size 1 -o spread
says 'within the quartiles of the measured times the speedup falls to 1 or below'
says 'Cost: quartiles are more than 1.5x apart in'
check "tune says so, too" grep -q 'within the quartiles .*, where the verdict changes' spread.tsv
check "with the bounds that are printed" grep -q "$(sed -n 's/.*; \(.*\) within the quartiles.*/\1/p' spread.tsv |
    awk '{ printf "  %.2f to %.2f ", $1, $3 }')" out

# --- wall times ----------------------------------------------------------------------------------
bad 4 'neither step times (verify_s) nor wall times' sim rag.dst --method ngram --cost fit:rag.dst
bench=${DSC_TEST_DATA:-nowhere}/specbench
if [ ! -d "$bench" ]; then
    skip "wall times of Spec-Bench" "no data"
    summary
    exit
fi
worst() { # the worst held-out residual, percent
    sed -n 's/.*residuals//p' err | grep -oE '[+-][0-9.]+ %' | tr -d '+ %-' | sort -g | tail -n 1
}
for log in vanilla:0.6 eagle:1.6 sps-68m:6.5; do # as was measured, a little above
    name=${log%:*}
    good trace import "$bench/$name.jsonl" --questions "$bench/questions.jsonl" \
        --tokenizer "$bench/../tokenizers/llama2.json" -o "$name.dst"
    good sim rag.dst --method none --cost "fit:$name.dst"
    check "$name: worst residual $(worst) % is at most ${log#*:} %" \
        holds 'x > 0 && x <= y' x="$(worst)" y="${log#*:}"
done
good sim rag.dst --method none --cost fit:vanilla.dst
if ! command -v python3 >/dev/null; then
    skip "least squares by another program" "no python3"
    summary
    exit
fi
sed -nE 's/.*wall_s = ([^ ]+) x steps \+ ([^ ]+) x prompt tokens \+ ([^ ]+) x thousand.*/\1 \2 \3/p' err >fitted
good trace export vanilla.dst --format csv -o lengths.csv
cat >solve.py <<'END'
# wall = a steps + b prompt + c steps x context, weighted by 1 / wall, by the normal equations.
import csv, json, sys
rows = list(csv.DictReader(open("lengths.csv")))
A = [[0.0] * 4 for _ in range(3)]
for row, line in zip(rows, open(sys.argv[1])):
    choice = json.loads(line)["choices"][0]
    wall, steps = sum(choice["wall_time"]), sum(choice["decoding_steps"])
    prompt, output = int(row["prompt_tokens"]), int(row["output_tokens"])
    x = [steps, prompt, steps * (prompt + output / 2) / 1000]
    for i in range(3):
        for j, v in enumerate(x + [wall]):
            A[i][j] += x[i] * v / wall
for i in range(3):
    for r in range(3):
        if r != i:
            f = A[r][i] / A[i][i]
            A[r] = [v - f * w for v, w in zip(A[r], A[i])]
print(*(A[i][3] / A[i][i] for i in range(3)))
END
check "python3 solves" sh -c "python3 solve.py '$bench/vanilla.jsonl' >solved"
# The fit gives requests that lie apart no weight, least squares does.
check "the times are those of least squares within 0.5, 5 and 5 %: $(cat fitted solved | tr '\n' ' ')" \
    sh -c 'paste -d " " fitted solved | awk "function near(x, y, e) { return x > y * (1 - e) && x < y * (1 + e) }
        { exit !(near(\$1, \$4, .005) && near(\$2, \$5, .05) && near(\$3, \$6, .05)) }"'
summary
