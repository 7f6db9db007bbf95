#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One check of run.sh. Usage: checks.sh CHECK OUT DEVICE [dry]
# Prints each command with "$ " and runs it; with `dry` it only prints. Exit codes: 0 the check
# passed, 3 or 77 something that it needs is missing on this machine, anything else it failed.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
check=$1 out=$2 device=$3 dry=${4:-}
cd "$here" || exit 2
live=bin/draftscope-live demo=live/demo
exec 3>&1 # the log, where a command's own output goes to a file

# try COMMAND...
try() {
    printf '$ %s\n' "$*" >&3
    [ "$dry" ] || "$@"
}
need() {
    for file; do
        if [ ! -e "$file" ] && ! command -v "$file" >/dev/null 2>&1; then
            echo "This check needs $file, which is not on this machine."
            exit 77
        fi
    done
}
on_cpu() {
    [ "$device" = cpu ]
}

# --- models of random weights ------------------------------------------------------------------
config() { # FILE, architecture, hidden, feed forward, layers, heads, key heads, tokens, tied
    cat >"$out/$1" <<END
{"architectures": ["$2"], "model_type": "llama", "hidden_size": $3, "intermediate_size": $4,
 "num_hidden_layers": $5, "num_attention_heads": $6, "num_key_value_heads": $7, "vocab_size": $8,
 "tie_word_embeddings": $9, "rope_theta": 500000.0, "max_position_embeddings": 8192}
END
}
# Llama 3 8B with an EAGLE-1 head and with Llama 3.2 1B; on a CPU, models of a few million
# parameters.
write_shapes() {
    if on_cpu; then
        config target.json LlamaForCausalLM 256 896 6 8 2 2048 false
        config draft.json LlamaForCausalLM 128 448 2 8 2 2048 true
        config small.json LlamaForCausalLM 64 224 1 4 2 2048 true
        config head.json EagleForCausalLM 256 896 1 8 2 2048 false
        config llama-2.json LlamaForCausalLM 64 224 2 4 2 32000 true
    else
        config target.json LlamaForCausalLM 4096 14336 32 32 8 128256 false
        config draft.json LlamaForCausalLM 2048 8192 16 32 8 128256 true
        config small.json LlamaForCausalLM 512 2048 4 8 2 128256 true
        config head.json EagleForCausalLM 4096 14336 1 32 8 128256 false
    fi
}

# --- the checks --------------------------------------------------------------------------------
ops() {
    need bin/check_ops
    try bin/check_ops --device "$device" "$@"
}

bench() { # sections, options of check_ops
    sections=$1
    shift
    if on_cpu; then
        sections=overlap # the others are of 8 G parameters
    fi
    ops "--bench=$sections" "$@"
}

fixtures() {
    need bin/test_fixtures tests/oracle/fixtures
    try bin/test_fixtures --device "$device" tests/oracle/fixtures
}

sampling() { # device: samples of the device against a CPU's; rules: every method with every rule
    need "bin/test_live_$1"
    try "bin/test_live_$1" --device "$device"
}

# Runs a method on the demo models, greedy. `--baseline` runs plain decoding in the same call; the
# outputs must not differ ("divergences" counts differences) if a token's result is the same in
# every pass.
lossless() { # method
    need $live $demo/target $demo/draft
    prompts=$demo/prompts.jsonl answer=$out/lossless-$1.json
    if [ ! -e $prompts ]; then
        prompts=$out/prompts.jsonl
        printf '{"prompt": "%s"}\n' 'Tom has 3 apples and buys 4 more.' 'The train leaves at' \
            'Once there was' >"$prompts"
    fi
    case $1 in
    lookahead | llma) set -- --method "$1" ;;
    tree)
        need $demo/eagle
        set -- --method tree --draft $demo/eagle
        ;;
    *) set -- --method "$1" --draft $demo/draft ;;
    esac
    try $live run --device "$device" --batch-invariant --target $demo/target "$@" \
        --prompts "$prompts" --max-tokens 64 --baseline --json >"$answer" || return
    [ ! "$dry" ] || return 0
    cat "$answer"
    grep -Eq '"divergences": *0(\.0*)?[,}]' "$answer" && return 0
    echo "The method and plain decoding emitted different tokens."
    return 1
}

# compute-sanitizer is slow, so it runs the smaller shapes and one run of the demo models.
# `check_ops` requests more memory than there is on purpose, which is no error of the program.
sanitizer() { # memcheck, racecheck, synccheck, initcheck, or live: memcheck of a run
    if on_cpu; then
        echo "compute-sanitizer needs a GPU."
        exit 77
    fi
    tool=$1
    sanitizer=$(command -v compute-sanitizer) ||
        sanitizer=${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer
    need "$sanitizer"
    case $tool in
    memcheck) set -- --tool memcheck --report-api-errors no bin/check_ops --quick ;;
    live)
        need $live $demo/target $demo/draft
        set -- --tool memcheck --report-api-errors no $live run --target $demo/target \
            --draft $demo/draft --method draft-model -p "Tom has" --max-tokens 8
        ;;
    *) set -- --tool "$tool" bin/check_ops --quick ;;
    esac
    need bin/check_ops
    log=$out/compute-sanitizer-$tool.log
    try "$sanitizer" --error-exitcode 9 "$@" --device "$device" >"$log" 2>&1
    code=$?
    [ ! "$dry" ] || return 0
    cat "$log"
    if grep -q 'Device not supported' "$log"; then
        echo "compute-sanitizer does not support the device on this machine."
        return 77
    fi
    return $code
}

# Measures the latency of a pass by its tokens and the context before it.
profile() { # name of the table, shape, options
    need $live
    table=$out/$1.tsv shape=$2
    shift 2
    if on_cpu; then
        write_shapes
        shape=$out/target.json
        set -- --tokens 1,2,4 --context 0,128 --repeats 3
    fi
    rm -f "$table"
    try $live profile --device "$device" --shape "$shape" --random-weights 1 --dtype bf16 "$@" \
        --prefill-tokens 0 --progress never -o "$table" || return
    [ "$dry" ] || cat "$table"
}
short_grid="--tokens 1,2,4,8,16,32,64,128 --context 0,128,192,512,4096 --repeats 6"
full_grid="--tokens 1,2,4,8,16,32,64,128 --context 0,128,192,512,2048,4096,8192"

# LLMA's Section 3.2 on models of random weights: replays the simulator's steps on recorded answers
# and times them. For every copy length, the speedup must be within 5 % of the simulator's from a
# measured cost table.
llma() { # shape, copy lengths
    name=llma-$1 shape=$1
    shift
    need $live bin/draftscope rag.dst
    widths=1:24 requests=4
    if on_cpu; then
        write_shapes
        shape=$out/llama-2.json widths=1,8,24 requests=1
        set -- "$1"
    fi
    results=$out/$name.jsonl cost=$out/$name.cost.tsv
    rm -f "$results" "$cost" "$out/$name.tsv"
    try $live profile --device "$device" --shape "$shape" --random-weights 1 --dtype bf16 \
        --tokens $widths --context 0:2048 --prefill-tokens 0 --progress never -o "$cost" || return
    for k; do
        try $live run --device "$device" --shape "$shape" --random-weights 1 --dtype bf16 \
            --method llma --n 1 --num-speculative-tokens "$k" --replay rag.dst --requests $requests --baseline \
            --json --progress never >>"$results" || return
    done
    judge rag.dst "$name"
}

# Compares the runs of NAME.jsonl with predictions from the trace and the table NAME.cost.tsv.
judge() { # trace, name
    table=$out/$2.tsv
    try bin/draftscope validate --trace "$1" --live "$out/$2.jsonl" \
        --cost "table:$out/$2.cost.tsv" --speedup-tolerance 5 -o "$table" --force
    judged=$?
    [ "$dry" ] || [ ! -s "$table" ] || say_speedup "$table"
    return $judged
}

# Prints the speedups as lines of the log, whose end is in results.json.
say_speedup() { # table
    grep -v '^#' "$1" | awk -F '\t' '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["quantity"] == "speedup" {
            printf "speedup of %s (%s): predicted %.4f, measured %.4f, ", $at["method"],
                $at["parameters"], $at["predicted"], $at["measured"]
            printf "error %.2f %%, tolerance %s: %s\n", $at["error_percent"], $at["tolerance"],
                $at["verdict"]
        }'
}

# Replays recorded drafts on models of random weights with published shapes. The models run the
# passes; the accepted tokens are recorded. Passes are measured, the speedup is predicted from them
# and the trace, and compared with several runs, each with its own seed.
# shellcheck disable=SC2086 # $models and $some are lists of words
drafted() { # name, trace, draft's shape, runs, method and its options
    name=$1 trace=$2 with=$3 runs=$4
    shift 4
    need $live bin/draftscope "$trace"
    write_shapes
    results=$out/$name.jsonl cost=$out/$name.cost.tsv
    rm -f "$results" "$cost" "$out/$name.tsv"
    models="--device $device --shape $out/target.json --draft-shape $out/$with --random-weights 1"
    models="$models --dtype bf16" some=
    if on_cpu; then
        models="$models --threads 1" some="--requests 2" runs=2
    fi
    [ "$name" != replay-pearl ] || models="$models $(second_device)"
    try $live profile $models --tokens 1,2,3,4,5,6,8,12,16,17,24,26,32 --context 0:256 \
        --prefill-tokens 0 --progress never -o "$cost" || return
    seed=0
    while [ $seed -lt "$runs" ]; do
        try $live run $models --replay "$trace" --replay-draft $some --seed $seed --baseline --json \
            --progress never "$@" >>"$results" || return
        seed=$((seed + 1))
    done
    judge "$trace" "$name"
}
# PEARL's two models run at the same time, on two GPUs if there are two.
second_device() {
    if [ "$device" = cuda ] && [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -gt 1 ]; then
        echo "--draft-device cuda:1"
    fi
}
replay() { # what
    case $1 in
    eagle) drafted replay-eagle eagle.dst head.json 3 --method tree --tree eagle ;;
    spectr)
        drafted replay-spectr sampled.dst draft.json 9 --method spectr --num-drafts 4 --num-speculative-tokens 4 \
            --rule kseq
        ;;
    pearl) drafted replay-pearl greedy.dst draft.json 3 --method pearl --num-speculative-tokens 4 ;;
    llama-2-7b) llma llama-2-7b 5 10 20 ;;
    *-all) llma "${1%-all}" 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 ;;
    esac
}

# The part of a step outside all passes, at 1 G parameters and 128 k tokens of random weights, whose
# flat distributions take the longest in top-k and top-p: 5 % at most.
selection() { # how tokens are sampled
    need $live
    write_shapes
    answer=$out/selection-$1.json
    case $1 in
    greedy) set -- --method draft-model ;;
    sampled) set -- --method draft-model --temperature 1 ;;
    top-k) set -- --method draft-model --temperature 1 --top-k 50 ;;
    top-p) set -- --method draft-model --temperature 1 --top-p .9 ;;
    block) set -- --method draft-model --rule block --temperature 1 ;;
    *) set -- --method spectr --num-drafts 4 --rule "$1" --temperature 1 ;;
    esac
    printf '{"prompt": [1, 5, 25, 125, 625]}\n' >"$out/ids.jsonl"
    try $live run --device "$device" --shape "$out/draft.json" --draft-shape "$out/small.json" \
        --random-weights 1 --dtype bf16 --num-speculative-tokens 4 --prompts "$out/ids.jsonl" --max-tokens 256 \
        "$@" --progress never --json >"$answer" || return
    [ "$dry" ] || awk '
        { gsub(/[",:]/, " ") }
        { for (i = 1; i < NF; i++) if ($i ~ /^(draft|verify|select)_s$/) s[$i] = $(i + 1) }
        END {
            step = s["draft_s"] + s["verify_s"] + s["select_s"]
            if (!(step > 0)) {
                print "The answer has no seconds of its steps."
                exit 1
            }
            share = 100 * s["select_s"] / step
            printf "selection %.2f %% of a step (5 %% at most): ", share
            printf "draft %g s, verify %g s, select %g s\n", s["draft_s"], s["verify_s"],
                s["select_s"]
            exit !(share <= 5)
        }' "$answer"
}

# Compares all methods on the demo models with their predictions, with fewer configurations than
# `make validate`, because a machine may be available for ten minutes at a time.
validate() {
    need bin/draftscope $live validate.sh $demo/problems.jsonl
    DEVICE=$device FIGURES=no QUICK=yes try sh validate.sh bin/draftscope "$here" "$out/validate"
    judged=$?
    for table in "$out"/validate/*.tsv; do # where the archive takes them from
        [ ! -e "$table" ] || cp "$table" "$out/validate-${table##*/}"
    done
    return $judged
}

# shellcheck disable=SC2086 # a grid is a list of words
case $check in
list) need $live && try $live list ;;
open) ops --open ;;
ops-quick) ops --quick ;;
ops-full) ops ;;
bench) bench products,attention,rows,sampling,overlap ;;
bench-no-prefetch) bench products --prefetch-mb 0 ;; # compare with the products of bench
fixtures) fixtures ;;
sampling-*) sampling "${check#sampling-}" ;;
lossless-*) lossless "${check#lossless-}" ;;
sanitizer-*) sanitizer "${check#sanitizer-}" ;;
profile-*-short) shape=${check#profile-} && profile "$check" "${shape%-short}" $short_grid ;;
profile-*) profile "$check" "${check#profile-}" $full_grid ;;
selection-*) selection "${check#selection-}" ;;
replay-*) replay "${check#replay-}" ;;
validate) validate ;;
*)
    echo "checks.sh: there is no check named $check; run.sh --list lists them" >&2
    exit 2
    ;;
esac
