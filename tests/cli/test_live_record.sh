#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope live record, replays and live profile on the CPU: a run, its recording and the replay
# have equal counts; a killed and an interrupted recording; a cost table used to the end. $1 is for
# the inner sh.
# shellcheck disable=SC2016,SC2094
. "${top_srcdir:-.}/tests/cli/common.sh"
fixtures=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}
demo=${LIVE_DEMO:-$top/live/demo}
if ! [ -x "${draftscope%/*}/draftscope-live" ]; then
    echo "no draftscope-live: skipped"
    exit 77
fi
program() {
    "$draftscope" live "$@" --threads 1 --device cpu
}
# Prints the counts of a run as whole numbers, including expected ones. Zeros at the end of sim's
# histogram belong to lengths that no request allowed.
counts() {
    sed -n 's/.*"output_tokens": \([0-9.]*\).*"target_calls": \([0-9.]*\).*"num_accepted_tokens": \([0-9.]*\).*"accept_histogram": \(\[[^]]*\]\).*/\1 \2 \3 \4/p' "$1" |
        sed 's/\.0\([], ]\)/\1/g; s/\(,0\)*\]/]/'
}
same() { # description, two outputs with counts
    a=$(counts "$2") b=$(counts "$3")
    if [ -n "$a" ] && [ "$a" = "$b" ]; then ok; else not_ok "$1: '$a' and '$b'"; fi
}

awk 'BEGIN { for (i = 0; i < 6; i++)
    printf "{\"prompt\": [1, %d, %d, 7, %d], \"references\": [[%d, 9, 11, 7]]}\n",
        3 + i, 20 + 3 * i, 40 + i, 5 + i }' >ids.jsonl

# --- the same counts ---------------------------------------------------------------------------

run_record_sim() { # name, models and method
    name=$1
    shift
    good run --prompts "$prompts" --max-tokens "$most" --json "$@"
    cp out run.json
    good record --prompts "$prompts" --max-tokens "$most" -o "$name.dst" --num-drafts 2 "$@"
    check "$name.dst is a good trace" "$draftscope" trace verify "$name.dst"
}
simulate() { # name, method
    name=$1
    shift
    "$draftscope" sim "$name.dst" --json "$@" >sim.json 2>err || not_ok "sim $*: $(cat err)"
    same "run and simulation: $name" run.json sim.json
}
prompts=ids.jsonl most=24
for f in llama gpt2 gpt_neox; do
    [ -d "$fixtures/$f" ] || continue
    run_record_sim $f --target "$fixtures/$f" --draft "$fixtures/$f" --method draft-model --num-speculative-tokens 3
    simulate $f --method draft-model --num-speculative-tokens 3
done
most=40
run_record_sim eagle --target "$fixtures/llama" --draft "$fixtures/llama_eagle" --method draft-model \
    --num-speculative-tokens 3
simulate eagle --method draft-model --num-speculative-tokens 3
run_record_sim medusa --target "$fixtures/llama" --draft "$fixtures/llama_medusa" --method draft-model \
    --num-speculative-tokens 2
simulate medusa --method draft-model --num-speculative-tokens 2
run_record_sim llma --target "$fixtures/llama" --draft "$fixtures/llama_old" --method llma \
    --references all --num-speculative-tokens 4
simulate llma --method llma --references all --num-speculative-tokens 4
if [ -d "$demo/target" ]; then
    printf '{"prompt": "Tom has 3 apples and buys 4 more. How many apples does he have?"}\n' >text.jsonl
    prompts=text.jsonl
    run_record_sim demo --target "$demo/target" --draft "$demo/draft" --method draft-model --num-speculative-tokens 4
    simulate demo --method draft-model --num-speculative-tokens 4
    check "texts are recorded" sh -c '"$1" trace info demo.dst | grep -q "^recorded .*\"text\""' sh \
        "$draftscope"
fi

# Distributions of a greedy recording have another temperature: replaying sampled drafts prints a
# note.
into sim.out "$draftscope" sim llama.dst --method spectr --num-drafts 2 --rule kseq
check "distributions from which nothing was sampled" grep -q 'note: spectr: .* temperature 0, .* temperature 1' err
into sim.out "$draftscope" sim llama.dst --method draft-model --num-speculative-tokens 3
check "ranks are those of the run" sh -c '! grep -q note err'
good record --target "$fixtures/llama" --draft "$fixtures/llama_old" --method draft-model --num-speculative-tokens 2 \
    --prompts ids.jsonl --max-tokens 12 --temperature .8 --num-drafts 2 -o drawn.dst
into sim.out "$draftscope" sim drawn.dst --method spectr --num-drafts 2 --rule kseq
check "distributions from which tokens were sampled" sh -c '! grep -q note err'

# --- what is recorded --------------------------------------------------------------------------

info() { # TRACE FIELD
    "$draftscope" trace info "$1" | sed -n "s/^$2  *//p"
}
good record --target "$fixtures/llama" --draft "$fixtures/llama_old" --method draft-model --num-speculative-tokens 2 \
    --prompts ids.jsonl --requests 2 --max-tokens 12 --logprobs top:5 --rollouts 3 --rank-depth 2 \
    --temperature .8 --seed 3 -o all.dst
check "a trace with every column" "$draftscope" trace verify all.dst
info all.dst recorded >recorded
for column in target_logp draft_logp draft_argmax target_argmax draft_entropy draft_rank kseq \
    specinfer otm draft_rollout target_rollout steps_aligned step_drafted step_draft_s \
    step_verify_s draft_rows target_rows; do
    check "$column is recorded" grep -q "\"$column\"" recorded
done
info all.dst provenance >provenance
for word in '"method":"draft-model"' '"temperature":0.8' '"max_tokens":12' '"head":false' \
    '"seed":3' '"config_sha256"' '"device":"cpu"' 'draftscope live record'; do
    check "the provenance contains $word" grep -qF "$word" provenance
done
good record --target "$fixtures/llama" --draft "$fixtures/llama_old" --method pearl \
    --prompts ids.jsonl --requests 2 --max-tokens 12 --num-drafts 1 -o pearl.dst
check "PEARL's steps are logged" sh -c '"$1" trace verify pearl.dst >/dev/null &&
    "$1" trace info pearl.dst | grep -q "\"steps\""' sh "$draftscope"
bad 2 'exists already' record --target "$fixtures/llama" --method none --prompts ids.jsonl \
    --max-tokens 4 -o all.dst
good record --target "$fixtures/llama" --method none --prompts ids.jsonl --max-tokens 4 \
    -o all.dst --force
bad 2 '--rollouts requires a draft model' record --target "$fixtures/llama" --method none --prompts ids.jsonl \
    --max-tokens 4 --rollouts 2 -o x.dst
bad 2 'top:M' record --target "$fixtures/llama" --method none --prompts ids.jsonl --logprobs many \
    -o x.dst
bad 2 '-o NAME.dst' record --target "$fixtures/llama" --method none --prompts ids.jsonl
bad 4 'exceeds the context of' record --target "$fixtures/llama" --method none --prompts ids.jsonl \
    --max-tokens 1000 -o x.dst
check "a refused command leaves no files" test ! -e x.dst -a ! -e x.dst.tmp

# --- trees and marginals -----------------------------------------------------------------------

# One recording replays every smaller tree with the counts of its live run.
models="--target $fixtures/llama"
of_method() { # trace, draft model, method...
    trace=$1 draft=$2
    shift 2
    good run $models --draft "$fixtures/$draft" --prompts ids.jsonl --max-tokens 40 --json "$@"
    cp out run.json
    "$draftscope" sim "$trace" --json "$@" >sim.json 2>err || not_ok "sim $trace $*: $(cat err)"
    same "run and simulation of $trace: $*" run.json sim.json
}
for draft in llama_old llama_eagle; do
    good record $models --draft "$fixtures/$draft" --method none --prompts ids.jsonl --max-tokens 40 \
        --candidates 4:3 -o trees.dst --force
    check "candidates of $draft" "$draftscope" trace verify trees.dst
    for tree in "4 3 20" "4 3 9" "3 3 13" "1 3 3"; do
        # shellcheck disable=SC2086
        set -- $tree
        of_method trees.dst $draft --method dynamic-tree --num-steps $1 --eagle-topk $2 \
            --num-draft-tokens $3
    done
done
good record $models --draft "$fixtures/llama_medusa" --method none --prompts ids.jsonl \
    --max-tokens 40 --rank-depth 2 --marginals 2:16 -o offsets.dst
check "marginals" "$draftscope" trace verify offsets.dst
of_method offsets.dst llama_medusa --method parallel --num-speculative-tokens 2
of_method offsets.dst llama_medusa --method ddtree --num-speculative-tokens 2 --num-draft-tokens 12
# They survive JSON lines and a merge.
for trace in trees offsets; do
    into $trace.jsonl "$draftscope" trace export $trace.dst
    "$draftscope" trace import --vocab-size 256 $trace.jsonl -o again.dst --force --progress never \
        >out 2>err || not_ok "import of $trace: $(cat err)"
    hash_of() { "$draftscope" trace info --json "$1" | sed -n 's/.*"hash": "\([0-9a-f]*\)".*/\1/p'; }
    check "$trace: exported and imported" test "$(hash_of $trace.dst)" = "$(hash_of again.dst)"
done
rejects 2 'eagle-topk 4 is larger (draftscope live record --candidates 9:4' \
    "$draftscope" sim trees.dst --method dynamic-tree --num-steps 9 --eagle-topk 4 --num-draft-tokens 9
good record $models --draft "$fixtures/llama_old" --method none --prompts ids.jsonl --max-tokens 40 \
    --candidates 4:3:12 -o few.dst
of_method few.dst llama_old --method dynamic-tree --num-steps 4 --eagle-topk 3 --num-draft-tokens 13
rejects 2 'best 12 candidates; --num-draft-tokens 14 needs 13' \
    "$draftscope" sim few.dst --method dynamic-tree --num-steps 4 --eagle-topk 3 --num-draft-tokens 14
rejects 2 'needs the candidates of a draft model, which the trace lacks' \
    "$draftscope" sim offsets.dst --method dynamic-tree
rejects 2 'needs the marginals of a parallel drafter, which the trace lacks' \
    "$draftscope" sim trees.dst --method ddtree
rejects 2 'marginals of 2 offsets; --num-speculative-tokens 3' \
    "$draftscope" sim offsets.dst --method parallel --num-speculative-tokens 3
rejects 2 'all of the 16 recorded candidates of an offset' \
    "$draftscope" sim offsets.dst --method ddtree --num-speculative-tokens 2 --num-draft-tokens 200
record_trees() { # draft model, words, options
    draft=$1 words=$2
    shift 2
    bad 2 "$words" record $models --draft "$fixtures/$draft" --method none --prompts ids.jsonl \
        --max-tokens 40 -o bad.dst "$@"
}
record_trees llama_medusa 'Medusa heads have marginals' --candidates 4:3
record_trees llama_old 'drafts token after token' --marginals 2:4
record_trees llama_medusa '3 offsets exceed the 2 Medusa heads' --rank-depth 2 --marginals 3:4
record_trees llama_old 'STEPS:TOPK or STEPS:TOPK:NODES expected' --candidates 4
record_trees llama_old 'OFFSETS:TOP expected' --marginals 4
record_trees llama_old "'x' is not an integer" --candidates 4:x
bad 2 '--candidates requires a draft model' record $models --method none --prompts ids.jsonl \
    -o bad.dst --candidates 4:3

# --- replayed runs ---------------------------------------------------------------------------

good run --target "$fixtures/llama_old" --method llma --references all --num-speculative-tokens 4 --replay llama.dst \
    --json --baseline
cp out replayed.json
into sim.json "$draftscope" sim llama.dst --method llma --references all --num-speculative-tokens 4 --json
same "replayed and simulated" replayed.json sim.json
bad 2 'outputs are as recorded' run --target "$fixtures/llama_old" --method none --replay llama.dst \
    --max-tokens 5
into said "$draftscope" trace synth --target markov:300 --requests 3 --max-tokens 9 -o other.dst
bad 4 'is not in the target' run --target "$fixtures/llama_old" --method none --json \
    --replay other.dst
# Beyond the record the target answers itself: the model that wrote the record takes the same steps
# again.
good record --method none --target "$fixtures/llama" --prompts ids.jsonl --max-tokens 24 \
    -o greedy.dst
for method in lookahead ouroboros threshold pearl; do
    set -- --method $method --target "$fixtures/llama" --json
    case $method in lookahead) ;; *) set -- "$@" --draft "$fixtures/llama_old" ;; esac
    good run "$@" --prompts ids.jsonl --max-tokens 24
    cp out free.json
    good run "$@" --replay greedy.dst
    same "$method, free and replayed" free.json out
done

# --- killed and interrupted --------------------------------------------------------------------

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "{\"prompt\": [1, %d, %d, 7]}\n",
    3 + i % 50, 4 + i % 41 }' >many.jsonl
begin() { # trace: a recording in the background, until a shard of it is finished
    "$draftscope" live record --target "$fixtures/llama" --draft "$fixtures/llama_old" \
        --method draft-model --num-speculative-tokens 2 --prompts many.jsonl --max-tokens 40 --logprobs dense \
        --num-drafts 1 --threads 1 --device cpu -o "$1" >out 2>err </dev/null &
    process=$!
    wait_until $process [ -e "$1.tmp/manifest.json" ]
}
begin killed.dst
stop $process KILL
check "finished shards of a killed recording" sh -c \
    '"$1" trace verify killed.dst.tmp >/dev/null && [ ! -e killed.dst ]' sh "$draftscope"
begin stopped.dst
stop $process INT
# A background job of a shell without job control starts with SIGINT ignored, but the program handles it
# again.
check "exit 130 after SIGINT, not $got" test $got = 130
check "finished requests are kept" "$draftscope" trace verify stopped.dst
check "not all of them" test "$(info stopped.dst requests)" -lt 3000
check "the note on the interruption" grep -q 'interrupted: the first [0-9]* requests are in stopped.dst' err

# --- logits that are not finite ----------------------------------------------------------------

# A checkpoint that divides zero by zero after token 66: its embedding is zero, and so is the norm's
# epsilon.
mkdir zero
sed 's/"rms_norm_eps": [0-9.e-]*/"rms_norm_eps": 0/' "$fixtures/llama/config.json" >zero/config.json
model=$fixtures/llama/model.safetensors
header=$(od -A n -t u8 -N 8 "$model" | tr -d ' ')
begin=$(dd if="$model" bs=1 skip=8 count="$header" 2>/dev/null |
    sed -n 's/.*"model.embed_tokens.weight":{"dtype":"F32","shape":\[67,32\],"data_offsets":\[\([0-9]*\),.*/\1/p')
cp "$model" zero/model.safetensors
chmod u+w zero/model.safetensors
dd if=/dev/zero of=zero/model.safetensors bs=1 seek=$((8 + header + begin + 66 * 128)) count=128 \
    conv=notrunc 2>err
for token in 10 20 66 30; do
    echo "{\"prompt\": [1, $token, 7]}"
done >zero.jsonl
bad 4 'zero.jsonl:3: ' run --target zero --method none --prompts zero.jsonl --max-tokens 8 --json \
    -o zero.out.jsonl
check "the error names the reason: $(cat err)" grep -q 'are not finite' err
check "finished requests are counted" grep -q '"requests": 2' out
check "and kept" test "$(wc -l <zero.out.jsonl)" = 2
bad 4 'zero.jsonl:3: ' record --target zero --method none --prompts zero.jsonl --max-tokens 8 \
    -o zero.dst
check "a good trace" "$draftscope" trace verify zero.dst
check "of the finished requests" test "$(info zero.dst requests)" = 2

# --- a cost table ------------------------------------------------------------------------------

good profile --target "$fixtures/llama" --draft "$fixtures/llama_old" --tokens 1:8 --context 0:48 \
    --batch-size 1,2 --repeats 2 -o cost.tsv
check "a row for each cell" test "$(grep -c '^[0-9]' cost.tsv)" = 48
check "half of them at the ends of the grid, with parts of prompts" test \
    "$(awk -F '\t' '/^[0-9]/ && $4 > 0 && ($1 == 1 || $1 == 8) && ($2 == 0 || $2 == 48)' cost.tsv |
        wc -l)" = 24
for word in target_measured draft_measured device_name 'column target_share' \
    'column target_again_s' 'column draft_again_s' command repeats; do
    check "the table contains $word" grep -q "^# $word" cost.tsv
done
into sim.json "$draftscope" sim llama.dst --method draft-model --num-speculative-tokens 3 --cost table:cost.tsv --batch-size 1,2 --json
check "sim reads it: $(cat err)" grep -q '"speedup": [0-9]' sim.json
if command -v gnuplot >/dev/null; then
    check "plot cost draws it" "$draftscope" plot cost cost.tsv -o cost.svg
fi
good profile --shape "$fixtures/llama/config.json" --random-weights 1 --dtype f32 --tokens 2 \
    --context 5 --prefill-tokens 0 --repeats 1 -o one.tsv
check "no prefill tokens" sh -c '! grep -q prefill_tokens one.tsv'
check "one cell" test "$(grep -c '^[0-9]' one.tsv)" = 1
check "one model alone never runs after another" sh -c '! grep -q again_s one.tsv'
bad 2 'one.tsv exists already' profile --target "$fixtures/llama" -o one.tsv
bad 2 'the model has 32 learned positions' profile --target "$fixtures/gpt2" --context 4096 -o x.tsv
bad 2 'measured with a batch size of 1' profile --target "$fixtures/llama" \
    --draft "$fixtures/llama_eagle" --batch-size 2 --tokens 1 --context 0 -o x.tsv
good profile --target "$fixtures/llama" --draft "$fixtures/llama_eagle" --tokens 1:4 \
    --context 0:16 --repeats 1 -o eagle.tsv
bad 2 "'0' is not an integer from 1" profile --target "$fixtures/llama" --tokens 0:4 -o x.tsv
check "a refused command leaves no files" test ! -e x.tsv -a ! -e x.tsv.tmp

summary
