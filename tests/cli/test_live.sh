#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope live on the CPU: every method emits the output of plain decoding, on tiny random models
# and on the demo models; fields of the result; refused inputs and their messages; interruption.
# $run is a list of words; tr and the program itself are used as they are.
# shellcheck disable=SC2086,SC2020,SC2094
. "${top_srcdir:-.}/tests/cli/common.sh"
fixtures=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}
demo=${LIVE_DEMO:-$top/live/demo}
if ! [ -x "${draftscope%/*}/draftscope-live" ]; then
    echo "no draftscope-live: skipped"
    exit 77
fi
program() {
    "$draftscope" live "$@"
}
# Prints the value of a field of `out`.
field() {
    sed -n "s/.*\"$1\": \(\[[^]]*\]\|[^,}]*\).*/\1/p" out
}
is() { # FIELD VALUE
    check "$1 is $(field "$1"), not $2" test "$(field "$1")" = "$2"
}

cat >ids.jsonl <<'END'
{"prompt": [1, 5, 9, 13, 17, 21, 5, 9], "references": [[5, 9, 13, 2, 40, 41]]}
{"prompt": [3, 60, 61, 62], "id": "second"}
END
threads=--threads=1

# --- every method, on tiny models --------------------------------------------------------------
llama=$fixtures/llama
"$draftscope" list methods | sed "s/ .*//; /recorded\|^parallel$\|^ddtree$/d" >methods # those two: below
while read -r method; do
    good run --target "$llama" --draft "$llama" --middle "$llama" --method "$method" \
        --prompts ids.jsonl --max-tokens 24 --baseline --json $threads
    is method "\"$method\""
    is divergences 0.0
    is output_tokens 48
    check "$method: tokens = accepted + calls" test "$method" = pearl -o \
        $(($(field num_accepted_tokens) + $(field target_calls))) = 48
done <methods
for model in "$fixtures"/*/; do
    grep -q 'eagle\|medusa\|gpt2' <<END && continue
$model
END
    good run --target "$model" --method ngram --prompts ids.jsonl --max-tokens 16 --baseline --json \
        $threads
    is divergences 0.0
done
for head in llama_eagle llama_eagle_nobias llama_eagle_embed llama_eagle3 llama_eagle3_norm; do
    for method in draft-model tree dynamic-tree sequoia spectr pearl ouroboros; do
        good run --target "$llama" --draft "$fixtures/$head" --method $method --prompts ids.jsonl \
            --max-tokens 24 --baseline --json $threads
        is divergences 0.0
    done
done
good run --target "$llama" --draft "$fixtures/llama_medusa" --method tree --tree chain:2 \
    --prompts ids.jsonl --max-tokens 24 --baseline --json $threads
is divergences 0.0
for method in parallel ddtree; do # the heads of one pass
    good run --target "$llama" --draft "$fixtures/llama_medusa" --method $method \
        --num-speculative-tokens 2 --prompts ids.jsonl --max-tokens 24 --baseline --json $threads
    is divergences 0.0
    good run --target "$llama" --draft "$fixtures/llama_medusa" --method $method \
        --num-speculative-tokens 2 --prompts ids.jsonl --max-tokens 24 --temperature 0.8 --json $threads
    bad 2 "Medusa heads" run --target "$llama" --draft "$fixtures/llama_medusa" --method $method \
        --num-speculative-tokens 3 --prompts ids.jsonl --max-tokens 8
    bad 2 "predicts all offsets in one pass" run --target "$llama" --draft "$llama" --method $method \
        --prompts ids.jsonl --max-tokens 8
done
good run --target "$fixtures/gpt2" --method lookahead --window 2 --level 3 --guesses 2 \
    --prompts ids.jsonl --max-tokens 8 --baseline --json $threads
is divergences 0.0

# A draft model that is the target is accepted up to the end of the output, and so is a middle
# model, whatever the small one drafted before it.
good run --target "$llama" --draft "$llama" --method draft-model --num-speculative-tokens 5 --prompts ids.jsonl \
    --max-tokens 24 --json $threads
is target_calls 8
is draft_acceptance_rate 1.0
is accept_histogram '[0,0,0,0,0,8]'
good run --target "$llama" --draft "$fixtures/llama_fp16" --middle "$llama" --method cascade \
    --num-speculative-tokens 10 --prompts ids.jsonl --max-tokens 24 --json $threads
is target_calls 6
is num_accepted_tokens 42

# A copied draft may be longer than the output, and than the whole text.
i=0 long=3
while [ $i -lt 300 ]; do
    long="$long, $((3 + i * 7 % 60))"
    i=$((i + 1))
done
echo "{\"prompt\": [3, 10, 17], \"references\": [[$long]]}" >long.jsonl
good run --target "$llama" --method llma --n 1 --num-speculative-tokens 200 --prompts long.jsonl --max-tokens 24 --baseline \
    --json $threads
is divergences 0.0
check "long drafts: $(field num_draft_tokens)" test "$(field num_draft_tokens)" -ge 200

# Sampled outputs: the same seed gives the same tokens; plain decoding samples others.
draw() { # SEED FILE
    good run --target "$llama" --draft "$fixtures/llama_fp16" --method spectr --prompts ids.jsonl \
        --max-tokens 24 --temperature 1.5 --top-p 0.9 --seed "$1" --baseline --json -o "$2" $threads
    is rule '"kseq"'
    is divergences null
    sed 's/"metadata.*//' "$2" >"$2.tokens"
}
draw 1 one.jsonl
draw 1 again.jsonl
draw 2 other.jsonl
check "one seed, one output" cmp -s one.jsonl.tokens again.jsonl.tokens
check "another seed, another output" sh -c '! cmp -s one.jsonl.tokens other.jsonl.tokens'

# Outputs can be imported, with references, and simulated with equal counts.
same_as_sim() { # MODEL MAX_TOKENS METHOD PARAMETERS...
    model=$1 most=$2
    shift 2
    good run --target "$model" --prompts ids.jsonl --max-tokens "$most" --json -o run.jsonl \
        --force $threads --method "$@"
    metrics <out >live.metrics
    calls=$(field target_calls) accepted=$(field num_accepted_tokens)
    drafts=$(field num_drafts) drafted=$(field num_draft_tokens)
    check "the output is imported" "$draftscope" trace import run.jsonl --vocab-size 67 -o run.dst \
        --force --progress never
    into out "$draftscope" sim run.dst --json --method "$@"
    is target_calls "$calls"
    is num_accepted_tokens "$accepted"
    is num_drafts "$drafts"
    is num_draft_tokens "$drafted"
    metrics <out >sim.metrics
    check "the six metrics of sim" cmp live.metrics sim.metrics
    check "six of them" [ "$(wc -l <sim.metrics)" = 6 ]
}
same_as_sim "$llama" 24 llma --n 1 --num-speculative-tokens 4
for most in 1 2 22 23 24; do
    same_as_sim "$llama" $most oracle --num-speculative-tokens 5
    is draft_acceptance_rate "$([ $most = 1 ] && echo null || echo 1.0)"
done
good run --target "$llama" --method none --prompts ids.jsonl --max-tokens 4 -o run.jsonl --force
bad 2 "run.jsonl exists already (--force" run --target "$llama" --method none --prompts ids.jsonl \
    -o run.jsonl

# Any of a model's EOS tokens ends an output, whether drafted or not.
mkdir ends
cp "$llama"/config.json "$llama"/model.safetensors ends
tokens_of() { # LINE FILE: of the output
    sed -n "$1"'s/.*"output":{"tokens":\[\([0-9,]*\)\].*/\1/p' "$2"
}
good run --target "$llama" --method none --prompts ids.jsonl --max-tokens 24 -o all.jsonl
end=$(tokens_of 1 all.jsonl | cut -d , -f 6)
tokens_of 1 all.jsonl | sed -e "s/^/,/" -e "s/\(,$end\),.*/\1/" -e "s/^,//" >wanted
echo "{\"eos_token_id\": [66, 65, $end]}" >ends/generation_config.json
for method in none draft-model oracle ngram lookahead tree ouroboros pearl; do
    good run --target ends --draft "$llama" --method $method --prompts ids.jsonl --max-tokens 24 \
        --baseline --json -o ends.jsonl --force $threads
    is divergences 0.0
    tokens_of 1 ends.jsonl >got
    check "$method: ends with token $end" cmp -s wanted got
    check "$method: the finish reason" grep -q '"finish_reason":"stop"' ends.jsonl
done
same_as_sim ends 24 oracle --num-speculative-tokens 3
is draft_acceptance_rate 1.0

# The fields of sim under their names, and the measured fields.
"$draftscope" sim run.dst --method llma --json | tr ',{' '\n\n' | sed -n 's/^ *"\([a-z0-9_]*\)": .*/\1/p' |
    grep -v '^block_efficiency_' >sim_fields
good run --target "$llama" --method llma --prompts ids.jsonl --max-tokens 4 --baseline --json
tr ',{' '\n\n' <out | sed -n 's/^ *"\([a-z0-9_]*\)": .*/\1/p' >live_fields
head -n "$(wc -l <sim_fields)" live_fields >first_fields
check "the fields of sim come first" cmp -s sim_fields first_fields
for name in prefill_s draft_s verify_s select_s time_s tokens_per_s baseline_tokens_per_s divergences \
    divergence_requests divergence_positions divergence_margins; do
    check "field $name" grep -qx $name live_fields
done

# --- random weights, list ----------------------------------------------------------------------
cat >shape.json <<'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
 "torch_dtype": "bfloat16"}
END
sed 's/"vocab_size": 300/"vocab_size": 500/' shape.json >wide.json
good run --shape ./shape.json --draft-shape ./shape.json --random-weights 3 --method draft-model \
    --prompts ids.jsonl --max-tokens 8 --baseline --json $threads
is divergences 0.0
bad 2 "--random-weights" run --shape ./shape.json --method none --prompts ids.jsonl
bad 4 "different vocabularies" run --shape ./shape.json --draft-shape ./wide.json \
    --random-weights 3 --method draft-model --prompts ids.jsonl
bad 2 "--random-weights requires --shape" run --target "$llama" --random-weights 3 --method none \
    --prompts ids.jsonl
good run --target "$fixtures/qwen3_moe" --method ngram --prompts ids.jsonl --max-tokens 16 --baseline --json \
    $threads
is divergences 0.0
bad 2 "a mixture of experts (qwen3_moe)" profile --target "$fixtures/qwen3_moe" -o x.tsv
bad 2 "random weights of a mixture" run --shape "$fixtures/qwen3_moe/config.json" --random-weights 1 \
    --method none --prompts ids.jsonl
good run --target "$fixtures/gemma3_vision" --method ngram --prompts ids.jsonl --max-tokens 16 --baseline --json \
    $threads
is divergences 0.0
check "a part that is not run" grep -q "not run: the vision tower (34 tensors)" err
good run --target "$llama" --dtype bf16 --method none --prompts ids.jsonl --max-tokens 8 --json $threads
is target_dtype '"BF16"'
bad 4 "download it (hf download HuggingFaceTB/SmolLM2-135M --local-dir SmolLM2-135M) and give --target" \
    run --target HuggingFaceTB/SmolLM2-135M --method none --prompts ids.jsonl
bad 4 "and give --draft b.c" run --target "$llama" --draft a/b.c --method draft-model --prompts ids.jsonl
bad 4 "./no/config.json: No such file" run --target ./no --method none --prompts ids.jsonl
good list
check "list: the processors" grep -q '^  cpu  ' out
good list --json
check "list: shapes" grep -q '"kind": "shape", "name": "llama-2-7b"' out
# The program must not link GSL (whose license is incompatible with CUDA's).
if command -v ldd >/dev/null; then
    LD_LIBRARY_PATH=${draftscope%/*}/.libs ldd "$(program_file draftscope-live)" >libraries
    check "no GSL" sh -c '! grep -q libgsl libraries'
    # These libraries are loaded on demand, because loading takes longer than most commands.
    check "neither OpenBLAS nor CUDA" sh -c '! grep -Eq "libopenblas[^ ]*\.so|libcu" libraries'
fi

# --- errors ------------------------------------------------------------------------------------
run="run --method none --max-tokens 8"
bad 2 "--method NAME expected" run --target "$llama" --prompts ids.jsonl
bad 2 "--target DIR (or" $run --prompts ids.jsonl
bad 2 "--draft DIR" run --target "$llama" --method draft-model --prompts ids.jsonl
bad 2 "none of them" $run --target "$llama"
bad 2 "no argument without -p" $run --target "$llama" --prompts ids.jsonl more
bad 2 "tokenizer.json" $run --target "$llama" -p text
bad 2 "rule rejection verifies one" run --target "$llama" --draft "$llama" --method spectr \
    --rule rejection --prompts ids.jsonl
bad 2 "Medusa heads" run --target "$llama" --draft "$fixtures/llama_medusa" --method draft-model \
    --num-speculative-tokens 5 --prompts ids.jsonl --max-tokens 8
bad 2 "a complete model is required" $run --target "$fixtures/llama_eagle" --prompts ids.jsonl
bad 4 "nowhere" $run --target nowhere --prompts ids.jsonl
mkdir pickle
cp "$llama/config.json" pickle
: >pickle/pytorch_model.bin
bad 4 "safetensors" $run --target pickle --prompts ids.jsonl
bad 4 "nothing.jsonl" $run --target "$llama" --prompts nothing.jsonl
bad 2 "no device is called 'tpu'" $run --target "$llama" --device tpu --prompts ids.jsonl
if "$draftscope" live list | grep -q 'cuda .*not built in'; then
    bad 3 "CUDA" $run --target "$llama" --device cuda --prompts ids.jsonl
fi
{
    cat ids.jsonl
    echo '{"prompt": [1, 2'
} >broken.jsonl
bad 4 "broken.jsonl:3:" $run --target "$llama" --prompts broken.jsonl
good $run --target "$llama" --prompts broken.jsonl --requests 2 --json
is requests 2
echo '{"prompt": [1, 99]}' >outside.jsonl
bad 4 "outside.jsonl:1:" $run --target "$llama" --prompts outside.jsonl
echo '{"prompt": "text"}' >text.jsonl
bad 4 "text.jsonl:1:" $run --target "$llama" --prompts text.jsonl
echo '{"prompt": []}' >empty.jsonl
bad 4 "empty.jsonl:1:" $run --target "$llama" --prompts empty.jsonl
echo '{"promt": [1]}' >mistyped.jsonl
bad 4 "empty.jsonl:1:" $run --target pickle --prompts empty.jsonl # read before the weights are
bad 4 "'promt'" $run --target "$llama" --prompts mistyped.jsonl
bad 4 "ids.jsonl:1: a prompt of 8 tokens" $run --target "$llama" --prompts ids.jsonl --context 12
# Prompts may come through a FIFO.
mkfifo prompts
cat ids.jsonl >prompts &
good $run --target "$llama" --prompts prompts --json
is requests 2
wait $!
bad 4 "exceeds the context of" run --target "$llama" --method none --prompts ids.jsonl --max-tokens 100000
for side in a b; do
    mkdir $side
    cp "$llama"/config.json "$llama"/model.safetensors $side
done
cp "$top/tests/data/tokenizers/llama3-style.json" a/tokenizer.json
bad 4 "tokenizer.json" run --target a --draft b --method draft-model --prompts ids.jsonl
cp "$top/tests/data/tokenizers/qwen2-style.json" b/tokenizer.json
bad 4 "different vocabularies" run --target a --draft b --method draft-model --prompts ids.jsonl
bad 2 "unknown live command" nonsense
if [ -w /dev/full ]; then
    "$draftscope" live $run --target "$llama" --prompts ids.jsonl >/dev/full 2>err
    check "exit 1 on a full disk" test $? = 1
fi

# draftscope looks for draftscope-live in its own folder, where it is installed, and on the PATH.
mkdir alone together
cp "$draftscope" alone/draftscope
cp "$draftscope" "$(program_file draftscope-live)" together
libraries=LD_LIBRARY_PATH=${draftscope%/*}/.libs
check "in the folder of draftscope" env PATH="$work/alone" "$libraries" together/draftscope live list
check "on the PATH" env PATH="$work/together" "$libraries" alone/draftscope live list
PATH=$work/alone alone/draftscope live list >out 2>err
code=$?
check "exit 3 without draftscope-live" test $code = 3 -o $code = 0 # 0: one is installed
check "and one line" sh -c '! test -s err || grep -q "draftscope-live was found neither" err'

# --- interrupted -------------------------------------------------------------------------------
i=0
while [ $i -lt 4000 ]; do
    echo '{"prompt": [1, 2, 3, 4]}'
    i=$((i + 1))
done >many.jsonl
"$draftscope" live run --shape ./shape.json --random-weights 1 --method ngram --prompts many.jsonl \
    --max-tokens 100 --json --progress json -o part.jsonl $threads >out 2>err &
victim=$!
wait_until $victim grep -q "done" err
stop $victim INT
check "exit 130" test $got = 130
check "finished requests are on disk" test "$(wc -l <part.jsonl)" = "$(field requests)"
check "some of them" test "$(field requests)" -ge 1 -a "$(field requests)" -lt 4000

# While models are read there is nothing to clean up. The prompts show when.
mkfifo wait
for command in run record; do
    "$draftscope" live $command --target "$llama" --method none --prompts wait -o early.dst $threads \
        >out 2>err &
    victim=$!
    { : >opened && exec sleep 600; } >wait &
    writer=$!
    wait_until $victim [ -e opened ]
    stop $victim TERM
    check "$command: ended by SIGTERM while it read" test $got = 143
    kill $writer
    rm opened
    check "$command: nothing is left" sh -c '! ls -d early.dst*'
done

# --- the demo models ---------------------------------------------------------------------------
if [ -d "$demo/target" ]; then
    question='Question: Tom has 3 apples and buys 4 more. How many apples does he have?
Answer:'
    good run --target "$demo/target" --method none -p "$question" --max-tokens 20 $threads
    check "an answer of words" grep -q '[a-z]' out
    good run --target "$demo/target" --method ngram -p "$question" again --max-tokens 20 --json --baseline \
        $threads
    is requests 2
    is divergences 0.0
    bad 2 "prompt 1: a prompt of" run --target "$demo/target" --method none -p "$question" \
        --max-tokens 100000
    for method in draft-model spectr lookahead ouroboros pearl llma; do
        [ -d "$demo/draft" ] || continue
        good run --target "$demo/target" --draft "$demo/draft" --method $method -p "$question" \
            --max-tokens 48 --baseline --json $threads
        check "$method: divergences of rounding only: $(field divergence_margins)" \
            test "$(field divergences)" = 0.0
    done
    for head in eagle eagle3; do
        [ -d "$demo/$head" ] || continue
        for method in tree dynamic-tree; do
            good run --target "$demo/target" --draft "$demo/$head" --method $method -p "$question" \
                --max-tokens 48 --baseline --json $threads
            is divergences 0.0
        done
    done
    if [ -d "$demo/medusa" ]; then
        good run --target "$demo/target" --draft "$demo/medusa" --method tree -p "$question" \
            --max-tokens 48 --baseline --json $threads
        is divergences 0.0
        is tree '"medusa"'
        check "a note on the tree" grep -q 'note: using --tree medusa for Medusa heads' err
        good run --target "$demo/target" --draft "$demo/medusa" --method tree --tree chain:3 \
            -p "$question" --max-tokens 8 --json $threads
        is tree '"chain:3"'
        for method in parallel ddtree; do
            good run --target "$demo/target" --draft "$demo/medusa" --method $method -p "$question" \
                --max-tokens 48 --baseline --json $threads
            is divergences 0.0
        done
    fi
else
    echo "no demo models: left out"
fi

summary
