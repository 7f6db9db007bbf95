#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One check of run.sh. Usage: checks.sh CHECK OUT DEVICE [dry]
# Prints each command with "$ " and runs it; with `dry` it only prints. Exit codes: 0 the check
# passed, 3 or 77 something that it needs is missing on this machine, anything else it failed.
# Variables change a check: SECTIONS are those of check_ops to run, SWITCHES those of the device to add,
# UNDER is a tool of compute-sanitizer to run the programs under. CHECK_LOG is the file that all output
# goes to, PROGRAM_LIBRARIES the LD_LIBRARY_PATH of our programs, which is not that of other tools.
here=$(cd "$(dirname "$0")" && pwd) || exit 2
check=$1 out=$2 device=$3 dry=${4:-}
cd "$here" || exit 2
live=bin/draftscope-live demo=live/demo
under=
exec 3>&1 # the log, where a command's own output goes to a file

# try COMMAND...
# shellcheck disable=SC2086 # $under is a list of words
try() {
    printf '$ %s\n' "${under:+$under }$*" >&3
    [ "$dry" ] || $under env LD_LIBRARY_PATH="${PROGRAM_LIBRARIES:-}" "$@"
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
# Adds a switch to the device, in place of one of the same name; the CPU has none.
switch() { # NAME=VALUE
    on_cpu && return
    kept=$(echo "${device#cuda}" | tr ':,' '\n\n' | grep -v "^${1%=*}=\|^$" | paste -sd ,)
    device=cuda:${kept:+$kept,}$1
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
        config llama-68m.json LlamaForCausalLM 32 64 1 2 2 32000 true
        config llama-2-head.json EagleForCausalLM 64 224 1 4 4 32000 true
    else
        config target.json LlamaForCausalLM 4096 14336 32 32 8 128256 false
        config draft.json LlamaForCausalLM 2048 8192 16 32 8 128256 true
        config small.json LlamaForCausalLM 512 2048 4 8 2 128256 true
        config head.json EagleForCausalLM 4096 14336 1 32 8 128256 false
        config llama-2.json LlamaForCausalLM 4096 11008 32 32 32 32000 false
        config llama-68m.json LlamaForCausalLM 768 3072 2 12 12 32000 false
        config llama-2-head.json EagleForCausalLM 4096 11008 1 32 32 32000 false
    fi
}

# --- the checks --------------------------------------------------------------------------------
# Each section in a process of its own, so that the others run if one of them ends it.
ops() { # options of check_ops
    need bin/check_ops
    worst=0
    for section in ${SECTIONS:-rows products attention passes dists overlap invariance}; do
        try bin/check_ops --device "$device" --only "$section" "$@"
        code=$?
        [ $code != 0 ] || continue
        [ $worst != 0 ] && [ $worst != 3 ] || worst=$code
        echo "Failed section: $section"
    done
    return $worst
}

bench() { # sections, options of check_ops
    sections=$1
    shift
    need bin/check_ops
    if on_cpu; then
        sections=overlap # the others are of 8 G parameters
    fi
    try bin/check_ops --device "$device" --bench --only "$sections" "$@"
}

fixtures() {
    need bin/on_device tests/oracle/fixtures tests/oracle/gguf
    try bin/on_device --device "$device" fixtures
}

sampling() { # device: samples of the device against a CPU's; rules: every method with every rule
    need bin/on_device
    try env DSC_TEST_ALL=yes bin/on_device --device "$device" "live_$1"
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

# Has every program run under a tool of compute-sanitizer. `check_ops` requests more memory than
# there is on purpose, which is no error of the program.
sanitize() { # tool
    if on_cpu; then
        echo "compute-sanitizer needs a GPU."
        exit 77
    fi
    sanitizer=$(command -v compute-sanitizer) ||
        sanitizer=${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer
    need "$sanitizer"
    under="$sanitizer --error-exitcode 9 --target-processes all --tool $1"
    [ "$1" != memcheck ] || under="$under --report-api-errors no"
}
# It is slow, so it runs the smaller shapes and one run of the demo models.
sanitized() { # memcheck, racecheck, synccheck, initcheck, or live: memcheck of a run
    case $1 in
    live)
        sanitize memcheck
        need $live $demo/target $demo/draft
        try $live run --target $demo/target --draft $demo/draft --method draft-model -p "Tom has" \
            --max-tokens 8 --device "$device"
        ;;
    *)
        sanitize "$1"
        ops --quick
        ;;
    esac
    code=$?
    [ $code = 0 ] || ! grep -aq 'Device not supported' "${CHECK_LOG:-/dev/null}" || {
        echo "compute-sanitizer does not support the device on this machine."
        return 77
    }
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

# --- replays -------------------------------------------------------------------------------------
# Steps that the simulator takes on recorded requests are run on models of random weights and
# timed: the models run the passes, the accepted tokens are recorded. Every speedup must be within
# 5 % of the simulator's from a measured cost table.

# begin NAME TRACE OPTIONS...: the models of a replay, whose cost table `price` measures and whose
# runs `take` collects for `judge`.
begin() {
    name=$1 trace=$2 texts="--replay $2"
    shift 2
    models="--device $device --dtype bf16 $*"
    need $live bin/draftscope
    case $trace in
    "$out"/*) ;; # made by the check
    *) need "$trace" ;;
    esac
    results=$out/$name.jsonl cost=$out/$name.cost.tsv
    rm -f "$results" "$cost" "$out/$name.tsv"
}
# shellcheck disable=SC2086 # $models is a list of words
price() { # grid
    try $live profile $models --prefill-tokens 0 --progress never -o "$cost" "$@"
}
# shellcheck disable=SC2086 # $models and $texts are lists of words
take() { # method and its options
    try $live run $models $texts --baseline --json --progress never "$@" >>"$results"
}
# On a CPU, where the models are small and the machine may be busy, speeds are printed and not judged:
# the verdict is then whether rows of times are what fails, and no others.
verdict() { # exit code of validate, its tables
    code=$1
    shift
    on_cpu && [ "$code" = 1 ] || return "$code"
    fails=$(grep -h '	fail	' "$@")
    [ -n "$fails" ] && ! echo "$fails" | grep -vE '	(speedup|[a-z]*_s_per_[a-z]*)	'
}
# Compares the runs with predictions from the trace and the cost table.
judge() {
    table=$out/$name.tsv
    try bin/draftscope validate --trace "$trace" --live "$results" --cost "table:$cost" \
        --speedup-tolerance 5 -o "$table" --force
    judged=$?
    [ ! "$dry" ] && [ -s "$table" ] || return $judged
    say_speedup "$table"
    verdict $judged "$table"
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


# LLMA's Section 3.2.
llma() { # shape, copy lengths
    shape=$1 widths=1:24 requests=4
    shift
    if on_cpu; then
        write_shapes
        begin "llma-$shape" rag.dst --random-weights 1 --shape "$out/llama-2.json"
        widths=1,8,24 requests=1
        set -- "$1"
    else
        begin "llma-$shape" rag.dst --random-weights 1 --shape "$shape"
    fi
    price --tokens $widths --context 0:2048 || return
    for k; do
        take --method llma --n 1 --num-speculative-tokens "$k" --requests $requests || return
    done
    judge
}

# Recorded drafts, with several runs, each with its own seed.
drafted() { # name, trace, draft's shape, runs, method and its options
    runs=$4
    write_shapes
    begin "$1" "$2" --random-weights 1 --shape "$out/target.json" --draft-shape "$out/$3"
    shift 4
    if on_cpu; then
        models="$models --threads 1" runs=2
        set -- --requests 2 "$@"
    fi
    [ "$name" != replay-pearl ] || models="$models $(second_device)"
    price --tokens 1,2,3,4,5,6,8,12,16,17,24,26,32 --context 0:256 || return
    seed=0
    while [ $seed -lt "$runs" ]; do
        take --replay-draft --seed $seed "$@" || return
        seed=$((seed + 1))
    done
    judge
}

# What EAGLE and a 68M draft had accepted with Vicuna 7B on Spec-Bench, at these shapes: trees of 25 nodes
# in 5 levels, and chains whose lengths are not recorded.
specbench() { # engine
    engine=$1 requests=8
    write_shapes
    case $engine in
    eagle) set -- llama-2-head.json --num-speculative-tokens 25 --draft-passes 5 ;;
    *) set -- llama-68m.json --num-speculative-tokens 5 ;;
    esac
    begin "specbench-$engine" "specbench-$engine.dst" --random-weights 1 --shape "$out/llama-2.json" \
        --draft-shape "$out/$1"
    shift
    ! on_cpu || requests=2
    price --tokens 1,2,4,6,8,12,16,22,26 --context 0:2048 || return
    take --replay-draft --requests $requests --method recorded-steps "$@" || return
    judge
}

# SmolLM2-135M-Instruct itself, from smollm2.gguf: what it writes on the device is recorded there, and
# predicts the methods that are then run.
real_smollm2() { # task
    case $1 in
    gsm8k) prompts=data/gsm8k/test.jsonl ;;
    humaneval) prompts=data/humaneval/HumanEval.jsonl.gz ;;
    esac
    need_model || return
    need "$prompts"
    begin "real-$1" "$out/real-$1.dst" --target smollm2.gguf --draft-layers 0:24
    texts="--prompts $prompts --requests 8 --max-tokens 256" widths=1,2,3,4,6,8,11,16,25 contexts=0:512
    if on_cpu; then
        texts="--prompts $prompts --requests 1 --max-tokens 24" widths=1,4,11,25 contexts=0,512
    fi
    # shellcheck disable=SC2086 # lists of words
    try $live record $models $texts --method none --num-drafts 1 --rank-depth 4 --rollouts 4 \
        --progress never --force -o "$trace" || return
    price --tokens $widths --context $contexts || return
    take --method ngram && take --method suffix &&
        take --method draft-model --num-speculative-tokens 3 || return
    judge
}
need_model() {
    need smollm2.gguf
    [ -n "$dry" ] || sha256sum -c --quiet smollm2.sha256 >/dev/null 2>&1 || {
        echo "smollm2.gguf is not the file that the bundle was made with: it is part m1, then part m2."
        return 1
    }
}

# --- other programs ------------------------------------------------------------------------------
# Scripts of contrib/real_model, by the python3 that has PyTorch. They start our programs with the
# libraries of the bundle and run with those of the machine themselves.
python() { # script, options
    script=real_model/$1
    shift
    need python3 "$script" data/gsm8k/test.jsonl bin/draftscope
    cat >"$out/draftscope" <<END
#!/bin/sh
LD_LIBRARY_PATH='${PROGRAM_LIBRARIES:-}' exec '$here/bin/draftscope' "\$@"
END
    chmod +x "$out/draftscope"
    # The threads of a second library would wait for processors that the first one holds.
    ! on_cpu || export OMP_NUM_THREADS=1
    printf '$ %s\n' "python3 $script $*" >&3
    [ -n "$dry" ] || HF_HUB_OFFLINE=1 TQDM_DISABLE=1 python3 "$script" \
        --draftscope "$out/draftscope" --data data -o "$out/python" "$@"
}
peer() { # graph: PyTorch's pass; transformers: its methods, predicted from its own passes
    case $1 in
    graph) set -- --parts graph ;;
    *)
        need_model || return
        set -- --parts transformers --model smollm2.gguf --prompts 1 --minutes .7
        ! on_cpu || set -- "$@" --max-tokens 16 --repeats 1
        ;;
    esac
    python peer.py "$@" --device "${device%%:*}"
    code=$?
    for table in "$out"/python/peer*.tsv; do # where the archive takes them from
        [ ! -e "$table" ] || cp "$table" "$out/"
    done
    return $code
}
# The device's tokens, in float32, are those of transformers.
real_transformers() {
    need_model || return
    few="--prompts 2 --compared 4"
    ! on_cpu || few="--prompts 1 --compared 1 --max-tokens 16"
    # shellcheck disable=SC2086 # a list of words
    python validate.py --model smollm2.gguf --device "$device" --parts transformers $few
}

# What SmolLM2-135M-Instruct wrote, at its shape: methods without a draft model, and
# self-speculation with its first 24 layers, whose drafts are recorded as well.
smollm2() { # greedy or sampled
    layers="--draft-layers 0:24"
    self="--method draft-model --num-speculative-tokens 3 $layers --replay-draft"
    config smollm2.json LlamaForCausalLM 576 1536 30 9 3 49152 true
    begin "smollm2-$1" "smollm2-$1.dst" --random-weights 1 --shape "$out/smollm2.json"
    few='' widths=1,2,3,4,6,8,11,16,25 contexts=0:512
    if on_cpu; then
        few="--requests 1" widths=1,4,16 contexts=0,256
    fi
    # shellcheck disable=SC2086 # lists of words
    price $layers --tokens $widths --context $contexts || return
    # shellcheck disable=SC2086 # lists of words
    case $1 in
    greedy)
        take $few --method ngram && take $few --method suffix && take $few $self || return
        ;;
    sampled)
        for seed in 1 2 3; do
            take $few $self --seed $seed || return
        done
        ;;
    esac
    judge
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
        drafted replay-spectr sampled.dst draft.json 9 --method spectr --num-drafts 4 \
            --num-speculative-tokens 4 --rule kseq
        ;;
    pearl) drafted replay-pearl greedy.dst draft.json 3 --method pearl --num-speculative-tokens 4 ;;
    smollm2-*) smollm2 "${1#smollm2-}" ;;
    specbench-*) specbench "${1#specbench-}" ;;
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
    [ "$dry" ] || awk -v judged="$(on_cpu || echo yes)" '
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
            exit judged && !(share <= 5)
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
    [ "$dry" ] || verdict $judged "$out"/validate/*.tsv
}

[ -z "${UNDER:-}" ] || sanitize "$UNDER"
for word in ${SWITCHES:-}; do
    switch "$word"
done
# shellcheck disable=SC2086 # a grid is a list of words
case $check in
list) need $live && try $live list ;;
open) need bin/check_ops && try bin/check_ops --device "$device" --open ;;
ops-quick) ops --quick ;;
ops-full) ops ;;
bench) bench products,attention,rows,sampling,overlap ;;
bench-no-prefetch) # compare with the products of bench
    switch prefetch=0
    bench products
    ;;
fixtures) fixtures ;;
sampling-*) sampling "${check#sampling-}" ;;
lossless-*) lossless "${check#lossless-}" ;;
sanitizer-*) sanitized "${check#sanitizer-}" ;;
profile-*-short) shape=${check#profile-} && profile "$check" "${shape%-short}" $short_grid ;;
profile-*) profile "$check" "${check#profile-}" $full_grid ;;
selection-*) selection "${check#selection-}" ;;
replay-*) replay "${check#replay-}" ;;
real-transformers) real_transformers ;;
real-*) real_smollm2 "${check#real-}" ;;
peer-*) peer "${check#peer-}" ;;
validate) validate ;;
*)
    echo "checks.sh: there is no check named $check; run.sh --list lists them" >&2
    exit 2
    ;;
esac
