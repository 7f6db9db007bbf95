#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope live --draft-layers: layers of the target as draft model. Every method that takes a draft
# model gives the counts that it gives with a checkpoint of these layers as --draft, on a fixture and
# on the demo target; counts of transformers' assistant_early_exit; names in results; errors.
. "${top_srcdir:-.}/tests/cli/common.sh"
fixtures=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}
demo=${LIVE_DEMO:-$top/live/demo}
keep=$(dirname "$draftscope")/tests/cli/keep_layers
if ! [ -x "${draftscope%/*}/draftscope-live" ] || ! [ -x "$keep" ]; then
    echo "no draftscope-live or no keep_layers: skipped"
    exit 77
fi
program() {
    "$draftscope" live "$@"
}
# The value of a field of `out`, and what must not differ between two runs.
field() {
    sed -n "s/.*\"$1\": \(\[[^]]*\]\|[^,}]*\).*/\1/p" out
}
is() { # FIELD VALUE
    check "$1 is $(field "$1"), not $2" test "$(field "$1")" = "$2"
}
counts() {
    for name in output_tokens target_calls num_draft_tokens num_accepted_tokens draft_calls \
        draft_call_tokens target_call_tokens accept_histogram width_histogram outputs_sha256 \
        request_target_calls request_accept_histogram; do
        echo "$name $(field $name)"
    done
}
cat >ids.jsonl <<'END'
{"prompt": [1, 5, 9, 13, 17, 21, 5, 9]}
{"prompt": [3, 60, 61, 62], "id": "second"}
END

# --- equal to a checkpoint of these layers -------------------------------------------------------
# TARGET LAYERS "LAYER..." PROMPTS METHODS...
same_as_folder() {
    target=$1 layers=$2 list=$3 prompts=$4
    shift 4
    mkdir -p alone
    # shellcheck disable=SC2086
    check "a folder with layers $list" "$keep" "$target" alone $list
    [ -e "$target/tokenizer.json" ] && cp "$target/tokenizer.json" alone
    for method; do
        for sampling in 0 0.8; do
            set -- run --target "$target" --method "$method" --prompts "$prompts" --requests 2 \
                --max-tokens $most --temperature $sampling --threads 1 --json --middle "$target"
            good "$@" --draft alone
            counts >want
            good "$@" --draft-layers "$layers" --baseline
            [ $sampling != 0 ] || is divergences 0.0
            counts >got
            check "$method $layers at temperature $sampling: $(diff want got | head -n 4)" \
                cmp -s want got
        done
    done
}
most=24
with_draft='draft-model tree dynamic-tree sequoia spectr pearl ouroboros cascade threshold hf-dynamic'
# shellcheck disable=SC2086
same_as_folder "$fixtures/llama" 0:1 0 ids.jsonl $with_draft
for method in $("$draftscope" list methods | sed 's/ .*//'); do # none is forgotten
    program run --target "$fixtures/llama" --method "$method" --prompts ids.jsonl \
        --middle "$fixtures/llama" --max-tokens 8 >out 2>err && continue
    ! grep -q 'it cannot run on models' err || continue
    check "$method: $(cat err)" grep -q -e '--draft DIR (or' err
    case " $with_draft parallel ddtree " in
    *" $method "*) ok ;;
    *) same_as_folder "$fixtures/llama" 1: 1 ids.jsonl "$method" ;;
    esac
done
most=16 # of 32 positions
same_as_folder "$fixtures/gpt2" 1 1 ids.jsonl draft-model
most=24
same_as_folder "$fixtures/qwen3" 0:1 0 ids.jsonl draft-model
same_as_folder "$fixtures/gpt_neox" 1:2 1 ids.jsonl draft-model

# --- the demo target -----------------------------------------------------------------------------
if [ -e "$demo/target/model.safetensors" ]; then
    same_as_folder "$demo/target" 0:2 '0 1' "$demo/prompts.jsonl" draft-model tree
    same_as_folder "$demo/target" 0,2:4 '0 2 3' "$demo/prompts.jsonl" draft-model
    # All layers are the target: everything is accepted up to the end of the output.
    good run --target "$demo/target" --draft-layers : --method draft-model \
        --num-speculative-tokens 5 --prompts "$demo/prompts.jsonl" --max-tokens 48 --threads 1 --json
    is draft_acceptance_rate 1.0
    # transformers 5.24.0, assistant_early_exit (tests/oracle/early_exit.py): target calls, accepted.
    while read -r layers calls accepted; do
        good run --target "$demo/target" --draft-layers "0:$layers" --method draft-model \
            --num-speculative-tokens 5 --prompts "$demo/prompts.jsonl" --requests 8 --max-tokens 64 \
            --threads 1 --json
        is request_target_calls "$calls"
        is request_num_accepted_tokens "$accepted"
    done <<'END'
1 [38,45,38,41,41,40,34,45] [26,19,26,23,23,24,30,19]
2 [27,42,30,30,35,27,25,32] [37,22,34,34,29,37,39,32]
3 [19,26,23,26,24,25,19,24] [45,38,41,38,40,39,45,40]
END
fi

# --- names ---------------------------------------------------------------------------------------
good run --target "$fixtures/llama" --draft-layers 0:1 --method draft-model --prompts ids.jsonl \
    --max-tokens 8 --json
is draft_layers '"0:1"'
is draft_architecture '"llama"'
one=$(field draft_weights_sha256)
check "layers are not the target" test "$one" != "$(field target_weights_sha256)"
good run --target "$fixtures/llama" --draft-layers 1: --method draft-model --prompts ids.jsonl \
    --max-tokens 8 --json
check "other layers, another hash" test "$one" != "$(field draft_weights_sha256)"
good record --target "$fixtures/llama" --draft-layers 0:1 --method draft-model --prompts ids.jsonl \
    --max-tokens 24 -o layers.dst
check "the trace names the layers" grep -q '"layers": *"0:1"' layers.dst/manifest.json
good run --target "$fixtures/llama" --draft-layers 0:1 --method draft-model --prompts ids.jsonl \
    --max-tokens 24 --json
cp out run.json
"$draftscope" validate --trace layers.dst --live run.json >out 2>err
code=$?
check "the run agrees with the trace: $(cat err)" test $code = 0
good run --target "$fixtures/llama" --draft-layers 1:2 --method draft-model --prompts ids.jsonl \
    --max-tokens 24 --json
cp out run.json
rejects 4 'the weights of the draft' "$draftscope" validate --trace layers.dst --live run.json
good profile --target "$fixtures/llama" --draft-layers 0:1 --tokens 1:8 --context 0:32 \
    --prefill-tokens 0 --repeats 1 -o cost.tsv
check "the table names the layers" grep -q '^# draft-layers: 0:1' cost.tsv
check "the table has times of the draft model" grep -q '^# column draft_again_s' cost.tsv
into out "$draftscope" sim layers.dst --method draft-model --cost table:cost.tsv --json
check "sim reads it: $(cat err)" grep -q '"speedup": [0-9]' out
good list
check "list has the option" grep -q -e '--draft-layers' out

# --- errors --------------------------------------------------------------------------------------
refuse() { # words options...
    words=$1
    shift
    bad 2 "$words" run --target "$fixtures/llama" --method draft-model --prompts ids.jsonl "$@"
}
refuse 'outside of the target, which has the 2 layers 0:2' --draft-layers 0:3
refuse 'contains no layer' --draft-layers 1:1
refuse 'layers ascend' --draft-layers 1,0
refuse 'is not FIRST:LAST' --draft-layers first
refuse '--draft and --draft-layers cannot be combined' --draft-layers 0:1 --draft "$fixtures/llama"
refuse '--draft-shape and --draft-layers cannot be combined' --draft-layers 0:1 \
    --draft-shape llama-3-8b --random-weights 1
refuse '--draft-device and --draft-layers cannot be combined' --draft-layers 0:1 --draft-device cuda:1
refuse 'predicts all offsets in one pass' --draft-layers 0:1 --method parallel
bad 2 'contains draft heads' run --target "$fixtures/llama_eagle" --draft-layers 0:1 \
    --method draft-model --prompts ids.jsonl
good run --target "$fixtures/llama" --draft-layers 0:1 --method ngram --prompts ids.jsonl --max-tokens 4
check "a note where it is not used" grep -q -e '--draft-layers is not used' err

summary
