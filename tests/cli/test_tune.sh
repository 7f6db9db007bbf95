#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope tune: the best configuration of the sample, by every search, in every output; and every
# way to get it wrong.
. "${top_srcdir:-.}/tests/cli/common.sh"
LC_ALL=C
export LC_ALL
sample=$top/traces/sample

tune() {
    "$DRAFTSCOPE" tune "$@" >out 2>err </dev/null
}
says() { # WORDS: in the last output
    check "'$1'" grep -qF -e "$1" out
}
rows() { # of a table in JSON lines: without its comments
    grep '"rank"' "$1"
}
value() { # KEY FILE: of the first row
    rows "$2" | head -n 1 | sed "s/.*\"$1\": \"*\([^,\"}]*\).*/\1/"
}

"$DRAFTSCOPE" trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst \
    >/dev/null 2>&1 || exit 1

# --- one configuration is what sim says ----------------------------------------------------------
cost=linear:0.02,0.0002
tune rag.dst --method llma --n 2 --num-speculative-tokens 16 --cost $cost --split 0 --json
cp out one
into two "$DRAFTSCOPE" sim rag.dst --method llma --n 2 --num-speculative-tokens 16 --cost $cost --json
wanted=$(sed 's/.*"speedup": \([^,}]*\).*/\1/' two)
check "the figure is that of sim, $wanted" close_to "$(value test one)" "$wanted" 1e-12
says 'none: selected and reported on the same 29 requests'

# --- searches ------------------------------------------------------------------------------------
grid="rag.dst --method llma,ngram --n 1:4 --num-speculative-tokens 4,8,16,32 --prompt-lookup-max 2:4 \
    --ngram.num-speculative-tokens 4,8,16 --cost $cost --top 0"
tune $grid -o grid.tsv
cp grid.tsv out
check "all of both grids, and none" test "$(grep -vc '^#' grid.tsv)" = 27
says '16 of 16 configurations'
says 'selection set: 15 requests; test set: 14 others'
says 'are not significantly worse'
check "sorted by what was chosen by" sh -c 'grep -v "^#" grid.tsv | tail -n +2 | cut -f 6 >a
    sort -g -r a | diff a -'
check "ranked from 1" sh -c 'grep -v "^#" grid.tsv | tail -n +2 | cut -f 2 >a; seq 26 | diff a -'
check "the best is its own reference" sh -c 'grep -v "^#" grid.tsv | sed -n 2p | cut -f 10-13 |
    grep -x "1	1	1	no"'
tune $grid --json --threads 1
cp out grid.json
tune $grid --json --threads 3
check "threads change nothing" sh -c 'grep \"rank\" grid.json >a; grep \"rank\" out | diff a -'
tune $grid --json --seed 1
check "the seed does" sh -c 'grep \"rank\" grid.json >a; ! grep \"rank\" out | diff a - >/dev/null'
tune $grid --search coordinate --json
check "coordinate search finds the same" test "$(value parameters out)" = "$(value parameters grid.json)"
check "and tries less" test "$(rows out | wc -l)" -lt 25
says 'of 16 configurations, 2 rounds'
tune $grid --search coordinate --start llma.num-speculative-tokens=32 --start n=4 --json
says '2 rounds from n=4 num-speculative-tokens=32'
check "from elsewhere it may end elsewhere" \
    holds 'a < b && a > 0.99 * b' a="$(value selection out)" b="$(value selection grid.json)"
one="rag.dst --method llma --num-speculative-tokens 1:64 --cost linear:0.02,0.0008 --top 0"
tune $one --json
cp out grid.json
tune $one --json --search golden
check "golden section finds the same" test "$(value parameters out)" = "$(value parameters grid.json)"
check "and asks for nine, and none" test "$(rows out | wc -l)" = 10
tune rag.dst --method ngram --prompt-lookup-max 1:3 --prompt-lookup-min 1:3
says '6 of 9 configurations'
says '3 combinations, the first: --prompt-lookup-min 2 exceeds --prompt-lookup-max 1'

# --- objectives, models, outputs -----------------------------------------------------------------
tune rag.dst --method llma --num-speculative-tokens 1:64 --objective block_efficiency --top 1 --json
check "without a price the longest is best" sh -c 'test "$(sed -n "s/.*tokens=\([0-9]*\)\".*/\1/p" out | head -n 1)" -gt 16'
tune rag.dst --method llma --num-speculative-tokens 8 --cost $cost --objective throughput --split 0 --json
check "throughput is tokens per second" holds 'a > 50 && a < 150' a="$(value test out)"
tune --target markov:50,3 --method draft-model,threshold --num-speculative-tokens 0:4 --assistant-confidence-threshold 0.2,0.4 \
    --cost linear:0.02,0.0002,0.002 --requests 40 --max-tokens 32 --top 0 --json
check "methods on a model" grep -q '"rule": "rejection"' out
check "a draft length of 0 is no speculation" sh -c 'grep "num-speculative-tokens=0" out | grep -q "\"test\": 1.0,"'
tune rag.dst --method llma --num-speculative-tokens 4,8 -o a.jsonl
check "JSON lines in a file" grep -q '^{"#": {.*"best": "llma num-speculative-tokens=8: ' a.jsonl
bad 2 "a.jsonl exists" tune rag.dst --method llma --num-speculative-tokens 4,8 -o a.jsonl
tune rag.dst --method llma --num-speculative-tokens 4 -o a.jsonl --force
check "--force" test "$(rows a.jsonl | wc -l)" = 2
tune rag.dst --method llma
says 'llma defaults'
check "a pipe gets the whole table" test "$(grep -vc '^#' out)" = 3
tune rag.dst --method llma --n 1:2 --cost $cost --batch-size 1,8 -o full.tsv
check "with a file, one row per batch size" test "$(grep -c ' to .*  run llma n=[12]$' out)" = 2
check "rounded" sh -c '! grep -q "[0-9]\\.[0-9][0-9][0-9]" out'

# --- other names, and texts that are given once per value --------------------------------------
tune rag.dst --method pld --pld.k 4,8 --semantics vllm --json
check "a synonym is the method" grep -q '"parameters": "num-speculative-tokens=[48] semantics=vllm"' out
into two "$DRAFTSCOPE" recommend rag.dst --method llma -k 4..8:4 --json
tune rag.dst --method llma --length 4,8 --json
check "commands, options and ranges have synonyms" sh -c 'grep \"rank\" out >a; grep \"rank\" two | diff a -'
trees="--target markov:50,3 --requests 4 --max-tokens 8 --temperature 0 --json"
tune $trees --method medusa --tree eagle --tree 2^2
check "trees are given one by one" sh -c 'grep -q "tree=eagle" out && grep -q "tree=2^2" out'
tune $trees --method medusa
check "medusa is its tree" test "$(value parameters out)" = tree=medusa

# --- sizes of a method that is given no option ----------------------------------------------------
# A machine on which every token in a pass costs as much as a pass: a CPU. Default sizes lose, and
# what tune chooses does not.
cpu="--cost linear:0.010,0.010,0.002 --requests 30 --max-tokens 48 --temperature 0"
tune --target markov:50,3 --method tree,sequoia,dynamic-tree,draft-model $cpu --top 0 --json
check "small sizes are tried" sh -c 'grep -q "tree=chain:1" out && grep -q "budget=2 " out &&
    grep -q "num-steps=1 eagle-topk=2 num-draft-tokens=2" out && grep -q "\"num-speculative-tokens=1\"" out'
check "and the defaults" sh -c 'grep -q "tree=eagle" out && grep -q "budget=64 depth=8" out &&
    grep -q "num-steps=8 eagle-topk=10 num-draft-tokens=60" out && grep -q "num-speculative-tokens=5" out'
check "the first is not slower than plain decoding" holds 'x >= 1' x="$(value test out)"
slow() { # PARAMETERS: the speedup of that row is below 1
    check "$1 is slower than plain decoding" \
        holds 'x < 1' x="$(grep -F "\"$1\"" out | sed 's/.*"test": \([^,]*\).*/\1/')"
}
slow "tree=eagle"
slow "num-steps=8 eagle-topk=10 num-draft-tokens=60"
tune --target markov:50,3 --method lookahead,ouroboros $cpu --top 0 --json
check "all sizes" test "$(grep -c '"lookahead"' out) $(grep -c '"ouroboros"' out)" = "60 108"
slow "window=7 level=5 guesses=7"
check "no size that loses is first" holds 'x >= 1' x="$(value test out)"
tune --target markov:50,3 --method lookahead --window 7 $cpu --top 0 --json
check "a list leaves the others at their defaults" test "$(grep -c '"lookahead"' out)" = 1
tune --target markov:50,3 --method lookahead,draft-model --draft-model.k 2 $cpu --top 0 --json
check "a list of one method is not one of others" test \
    "$(grep -c '"lookahead"' out) $(grep -c '"draft-model"' out)" = "60 1"
tune --target markov:50,3 --method spectr,spectr-tree --cost linear:0.010,0.010,0.002 --requests 4 \
    --max-tokens 8 --top 0 --json
check "numbers of drafts" sh -c 'grep -q "num-drafts=1 num-speculative-tokens=1" out &&
    grep -q "branches=1\"" out'

# --- engines --------------------------------------------------------------------------------------
ngram="--method ngram --prompt-lookup-max 3 --num-speculative-tokens 16 --cost $cost"
tune rag.dst $ngram --engine vllm
says '{"method": "ngram", "num_speculative_tokens": 16, "prompt_lookup_max": 3, "prompt_lookup_min": 1}'
says '# best: ngram prompt-lookup-max=3 num-speculative-tokens=16 semantics=vllm: '
tune rag.dst $ngram --engine transformers
says 'model.generate(**inputs, prompt_lookup_num_tokens=16, max_matching_ngram_size=3)'
says 'semantics=transformers: '
tune rag.dst $ngram --engine transformers --prompt-lookup-min 2
says 'no recommendation: the engine has no setting for any configuration that was tried'
says '# best_of_all_methods: ngram prompt-lookup-max=3 num-speculative-tokens=16 prompt-lookup-min=2 semantics=transformers: '
says 'transformers has no setting for it: transformers tries every match down to one token'
tune rag.dst $ngram --engine vllm --semantics original
says 'it looks n-grams up in another way (--semantics)'
tune rag.dst --method llma,ngram --llma.k 16 --ngram.k 1 --cost $cost --engine vllm -o lines.tsv
says '# best of all methods: llma num-speculative-tokens=16: '
says 'vllm has no setting for it: it has no such method; this is number 2'
check "the verdict is on what the engine has" grep -q '^# verdict: run ngram num-speculative-tokens=1 ' lines.tsv
check "and a comment has the best of all" grep -q '^# best_of_all_methods: llma num-speculative-tokens=16: ' lines.tsv
check "engine lines are in the table" grep -q '^# engine_line_3: vllm serve MODEL' lines.tsv
chain="--target markov:50,3 --method draft-model --num-speculative-tokens 3 --requests 40 --max-tokens 16 --cost linear:.02,.0001,.0005"
tune $chain --engine sglang
says '--speculative-algorithm STANDALONE --speculative-draft-model-path DRAFT --speculative-num-steps 3'
tune $chain --engine tensorrt-llm
says '{"decoding_type": "Draft_Target", "max_draft_len": 3, "speculative_model": "DRAFT"}'
tune $chain --engine llama.cpp
says '--spec-type draft-simple --spec-draft-n-max 3 --spec-draft-n-min 0 --spec-draft-p-min 0'
tune $chain --engine vllm --draft-kind mtp --rule block
says '{"method": "mtp", "num_speculative_tokens": 3, "draft_sample_method": "probabilistic", "rejection_sample_method": "block"}'
tune $chain --engine sglang --rule block
says 'no recommendation: the engine has no setting for any configuration that was tried'
bad 2 "supports none of the methods; it supports " tune $chain --engine sglang --draft-kind medusa
tune $chain --export-acceptance vllm --json
check "acceptance for load tests" grep -q 'synthetic_acceptance_rates.*num_speculative_tokens.*: 3' out
tune $chain --export-acceptance tensorrt-llm
says 'TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS='

# --- the verdict ---------------------------------------------------------------------------------
two="--target iid:.5 --method chain --num-speculative-tokens 1:8 --cost linear:.02,.002,.003 --batch-size 1,32"
tune $two --engine vllm
says '# verdict_batch_1: run draft-model num-speculative-tokens=1: 1.2'
says '# verdict_batch_32: leave speculation off: '
says '"num_speculative_tokens_per_batch_size": [[1, 1, 1], [2, 32, 0]]'
check "method none competes, once" sh -c 'test "$(grep -c "	none	" out)" = 2'
tune $two --method chain,none
check "also when it is listed" sh -c 'test "$(grep -c "	none	" out)" = 2'
for engine in vllm sglang tensorrt-llm llama.cpp transformers; do
    tune --target iid:.3 --method chain --num-speculative-tokens 4:8 --cost linear:.02,.002,.003 --engine $engine
    says 'leave speculation off'
    check "$engine: no line that slows down" sh -c '! grep -q "vllm serve\|launch_server\|generate(\|llama-server\|trtllm-serve" out'
    tune --target iid:.9 --method chain --num-speculative-tokens 4 --engine $engine
    says 'no recommendation: cost model unit prices draft tokens at nothing; best observed: '
    check "$engine: no line without costs" sh -c '! grep -q "vllm serve\|launch_server\|generate(\|llama-server\|trtllm-serve" out'
    tune $chain --split 0 --engine $engine
    says 'no recommendation: the result is exploratory'
    check "$engine: no line that was not held out" sh -c '! grep -q "vllm serve\|launch_server\|generate(\|llama-server\|trtllm-serve" out'
done
tune --target iid:.9 --method chain --num-speculative-tokens 4 --objective block_efficiency
says 'no recommendation: block efficiency does not contain the cost of drafting'
tune --target iid:.9 --method oracle --num-speculative-tokens 4 --cost $cost
says '# verdict: no recommendation: no method that drafts was tried'

# --- what is wrong -------------------------------------------------------------------------------
bad 2 "--method NAME expected" tune rag.dst
bad 2 "did you mean llma?" tune rag.dst --method lma
bad 2 "unknown method ''" tune rag.dst --method llma,
bad 2 "llma is given twice" tune rag.dst --method llma,llma
bad 2 "unknown option --nn (did you mean --n?)" tune rag.dst --method llma --nn 3
bad 2 "unknown option --guesses (it is an option of method lookahead)" tune rag.dst --method llma --guesses 3
bad 2 "unknown option --per-request (it is an option of draftscope sim, draftscope serve)" tune rag.dst --per-request
bad 2 "'n' is not [METHOD.]PARAMETER=VALUE" tune rag.dst --method llma --start n
bad 2 "ngram is not one of the methods" tune rag.dst --method llma --start ngram.k=3
bad 2 "unknown parameter 'nn'" tune rag.dst --method llma --start nn=3
bad 2 "unknown option --ngram.num-speculative-tokens" tune rag.dst --method llma --ngram.num-speculative-tokens 3
bad 2 "--num-speculative-tokens: 'x' is not an integer" tune rag.dst --method llma --num-speculative-tokens x
bad 2 "method llma: --num-speculative-tokens is given twice" tune rag.dst --method llma --num-speculative-tokens 3 --num-speculative-tokens 4
bad 2 "'num-speculative-tokens=5' is not a value of --num-speculative-tokens" tune rag.dst --method llma --num-speculative-tokens 3,4 --start num-speculative-tokens=5
bad 2 "more than 1000000 configurations" tune rag.dst --method llma --num-speculative-tokens 0:999999 --n 1,2
bad 2 "try a coordinate search" tune rag.dst --method llma --num-speculative-tokens 1:4 --n 1:2 --search golden
bad 2 "numbers in ascending order" tune rag.dst --method llma --num-speculative-tokens 4,1 --search golden
bad 2 "numbers in ascending order" tune rag.dst --method llma --tie first,random --search golden
bad 2 "supports none of the methods; it supports draft-model" tune rag.dst --method llma --engine sglang
bad 2 "no configuration to try: --prompt-lookup-min 4" tune rag.dst --method ngram --prompt-lookup-min 4
bad 2 "--split: '1'" tune rag.dst --method llma --split 1
bad 2 "--resamples: '3'" tune rag.dst --method llma --resamples 3
bad 2 "--cost: 'free'" tune rag.dst --method llma --cost free
bad 2 "not neither" tune --method llma
bad 2 "not both" tune rag.dst --method llma --target markov:50,3
bad 2 "a split takes at least 2 requests" tune --target markov:50,3 --method draft-model --requests 1
bad 2 "too many arguments" tune rag.dst rag.dst --method llma
bad 2 "needs column draft_argmax" tune rag.dst --method draft-model --num-speculative-tokens 1:3
bad 2 "1024 MiB" tune --target markov:50,3 --method draft-model --num-speculative-tokens 1:9999 --requests 100000
bad 4 "nothing.dst" tune nothing.dst --method llma

summary
