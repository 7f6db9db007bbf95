#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope advise: from logs to a verdict; the verdict is that of tune, the imported trace is used
# again, what data cannot answer is listed, and no line of an engine slows a server down.
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
says() { # WORDS: in the last output
    check "'$1'" grep -qF -e "$1" out
}
advise() {
    good advise "$@"
}
rag="$sample/rag.jsonl"
tokenizer=$sample/tokenizer.json

advise "$rag" --tokenizer "$tokenizer" --cost linear:.02,.0005 --batch-size 1,64 --engine vllm
says 'advice.dst: 29 requests, 5385 output tokens; cost linear:.02,.0005'
says 'The verdict is chosen on 15 requests and judged on 14 others.'
says '  draft-model, hf-dynamic, tree, dynamic-tree, parallel, ddtree, spectr, spectr-tree, pearl: record the draft model: draftscope live record --draft DIR'
check 'a recording is named once' test "$(grep -c 'record the draft model' out)" -eq 1
says '  threshold, cascade, lookahead, ouroboros: run it live: draftscope live run'
check 'ngram-tree competes' awk -F '\t' '$3 == "ngram-tree" { n++ } END { exit n != 8 }' advice.tsv
says '  recorded: needs accept lengths by position: import accept lengths'
says 'vllm serve MODEL --speculative-config'
says '# no speculation: leave the speculative options out'
check "trace, table and report" test -d advice.dst -a -s advice.tsv -a -s advice.html
check "the report has the verdict" grep -q 'batch size 1</td><td class="text">run ' advice.html
says '# batch size 1: run '

# --- the verdict is that of tune ---------------------------------------------------------------
good tune advice.dst --method ngram,suffix,llma --ngram.semantics vllm \
    --ngram.num-speculative-tokens 2,3,4,5,6,8,10,12,16 --prompt-lookup-max 2:4 \
    --suffix.num-speculative-tokens 4,8,16,32 --n 1:3 --llma.num-speculative-tokens 4,8,16,32 \
    --cost linear:.02,.0005 --batch-size 1,64 --engine vllm -o tune.tsv
for batch in 1 64; do
    sed -n "s/^# verdict_batch_$batch: //p" tune.tsv >of_tune
    sed -n "s/^# verdict_batch_$batch: //p" advice.tsv >of_advise
    check "batch size $batch: the verdict of tune" cmp of_tune of_advise
done

# --- JSON lines are the table ------------------------------------------------------------------
good advise advice.dst --cost linear:.02,.0005 --batch-size 1 --arrivals poisson:2 -o lines --json
grep -v '"#"' out >printed
check "nothing but rows and their comments" test "$(grep -vc '^{' out)" -eq 0
check "a row for each configuration" test "$(wc -l <printed)" -eq "$(grep -vc '^#\|^batch' lines.tsv)"
check "the verdict is in the comments" sh -c 'head -n 1 out | grep -q "\"verdict\": \"run "'
check "the loads are in their file" grep -q '^# load_verdict_1: ' lines-load.tsv
check "the report is written" test -s lines.html
check "the command is that of advise" grep -q '^# command: .* advise advice.dst .*--arrivals' lines.tsv

# --- the trace is used again -------------------------------------------------------------------
# shellcheck disable=SC2012
before=$(ls -di advice.dst)
advise "$rag" --tokenizer "$tokenizer" --cost linear:.02,.0005 --force
# shellcheck disable=SC2012
check "the same logs are not imported again" test "$(ls -di advice.dst)" = "$before"
bad 2 'advice.tsv exists already' advise "$rag" --tokenizer "$tokenizer" --cost linear:.02,.0005
rm advice.tsv advice.html
bad 2 'advice.dst was made of other files' advise "$sample/edits.jsonl" --tokenizer "$tokenizer"
bad 2 'advice.dst was made of other files' advise "$rag" --tokenizer bytes --cost linear:.02,.0005
advise "$sample/edits.jsonl" --tokenizer "$tokenizer" --cost linear:.02,.0005 --force
says 'advice.dst: 8 requests'

# --- traces, draft models, no costs ------------------------------------------------------------
good trace synth --target markov:50 --draft markov:50 --requests 60 --max-tokens 40 -o pair.dst
good trace import "$rag" --tokenizer "$tokenizer" -o rag.dst
advise pair.dst --cost linear:.02,.0001,.0005 --batch-size 1 -o pair --engine tensorrt-llm
says 'run draft-model num-speculative-tokens='
says 'trtllm-serve MODEL --config draft.yaml'
check "the trace itself is used" test ! -e pair.dst/pair.dst
advise pair.dst --cost linear:.02,.0001 --batch-size 1 -o free
says ': give a cost with the draft model: --draft-shape, or a third number of linear'
advise pair.dst -o unit
says 'no verdict: cost model unit prices draft tokens at nothing'
says 'Without costs there is no verdict: give --target-shape and --gpu, or --cost'
printf 'tokens\ttarget_s\n1\t1\n64\t2\n' >cost.tsv
cp cost.tsv kept.tsv
bad 2 'cost.tsv is an input' advise pair.dst --cost table:cost.tsv -o cost --force
check "an input is not overwritten" cmp cost.tsv kept.tsv
(
    ulimit -f 2
    trap '' XFSZ
    exec "$draftscope" advise pair.dst --cost linear:.02,.0001,.0005 -o dry
) 2>err | cat >out
says 'run draft-model num-speculative-tokens='
check "without room for the table there is a verdict and one line" grep -q 'cannot write dry.tsv' err
check "and no file" test ! -e dry.tsv -a ! -e dry.html
bad 4 'nothing.jsonl' advise nothing.jsonl --tokenizer bytes --cost linear:.02,.0005 -o nothing
# --- a roofline in short, what engines have ----------------------------------------------------
advise rag.dst --target-shape llama-3-8b --gpu h100 -o roof
says 'cost roofline:llama-3-8b,none,h100'
bad 2 'are given together' advise rag.dst --target-shape llama-3-8b -o half
bad 2 'are two ways' advise rag.dst --target-shape llama-3-8b --gpu h100 --cost unit -o both
advise rag.dst --cost linear:.02,.0005 --batch-size 1 --engine vllm -o own
says '(best of all, no setting of vllm: llma'
check "the report is on what the engine has" grep -q '^# verdict: run suffix' own.tsv

# --- logs that weaken a verdict ------------------------------------------------------------------
for i in 1 2 3 4 5 6; do
    printf '{"prompt": "%s", "output": "a b a b a b %s", "metadata": {"model": "m%s"}}\n' "$([ $i = 1 ] || echo p)" $((i % 4)) $((i % 2))
done >odd.jsonl
printf '{"prompt": "p", "output": ""}\n' >>odd.jsonl
advise odd.jsonl --tokenizer bytes --cost linear:.02,.0005 -o odd
says '1 of 7 prompts are empty'
says '1 of 7 outputs are empty'
says '1 of 7 requests repeat an earlier one'
says 'The outputs are of 2 models'

# --- an engine's overheads, costs and bounds -----------------------------------------------------
advise rag.dst --target-shape llama-3-8b --gpu h100 --engine sglang -o own --force
says 'cost roofline:llama-3-8b,none,h100,engine=sglang'
says 'Not modeled: arrival of requests, queueing, other work of the server.'
advise rag.dst --cost roofline:llama-3-8b,h100 --engine llama.cpp --batch-size 1 -o own --force
says 'The roofline has the shares and overheads of vllm, because there are none of llama.cpp.'
says 'llama-server -m MODEL --spec-type ngram-simple --spec-ngram-simple-size-n '
advise rag.dst --cost roofline:llama-3-8b,h100,engine=vllm --engine sglang --batch-size 1 -o own --force
says 'cost roofline:llama-3-8b,h100,engine=vllm'
advise rag.dst --cost linear:.02,.0005 --batch-size 1 -o own --force
says 'Not modeled: arrival of requests, queueing, other work of the server, memory.'
good tune rag.dst --method ngram,oracle --cost linear:.02,.0005
says '# best: ngram '
says '# upper_bound: oracle '

# --- logs and pages that cannot be used ----------------------------------------------------------
import=$top/tests/data/import
bad 2 '--metrics one.txt: one page is given' advise rag.dst --metrics one.txt -o none
bad 2 '--metrics a,b,c: a page has no pair' advise rag.dst --metrics a,b,c -o none
sed 's/"wall_time": \[0.5\]/"wall_time": [NaN]/' "$import/specbench.jsonl" >time.jsonl
bad 4 "time.jsonl:1:" advise time.jsonl --tokenizer bytes --questions "$import/questions.jsonl" \
    --cost linear:.02,.0005 -o none
printf '{"id": "a", "prompt": "p", "output": "x"}\n{"id": "a", "prompt": "q", "output": "y"}\n' >twice.jsonl
bad 4 "twice.jsonl:2: requests 0 and 1 have the same id 'a'" \
    advise twice.jsonl --tokenizer bytes --cost linear:.02,.0005 -o none
page() { # FILE, tokens so far
    cat >"$1" <<END
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:generation_tokens_total{engine="0",model_name="m"} $2
vllm:prompt_tokens_total{engine="0",model_name="m"} $2
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} $2
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} $2
END
}
page early.txt 5000
page late.txt 70
bad 4 'decreased' advise rag.dst --metrics early.txt,late.txt -o none
bad 2 'log files or a trace expected' advise --cost linear:.02,.0005
good advise rag.dst --cost roofline:llama-2-7b,a10,gpu-memory-utilization=.7 --batch-size 1,64 -o small
check "a batch without memory is left out" sh -c '
    grep -q "batch size 64 is left out: --cost: llama-2-7b needs" err &&
    ! grep -q "^# verdict_batch_64" small.tsv && grep -q "^# cost: roofline" small.tsv'
bad 2 'no batch size is left' advise rag.dst --cost roofline:llama-2-7b,a10,gpu-memory-utilization=.7 --batch-size 64 -o none
check "a refused command leaves nothing" sh -c '! ls -d nothing* 2>/dev/null'
summary
