#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The checks that need a GPU, from a bundle of `make gpu-bundle`: unpack it, run this script in it.
# What is not there (a device, a program, a model, compute-sanitizer) is reported as absent; a check
# that fails does not stop the others. Exit code: 0 all that was asked for passed, 1 some failed, 77
# there is no device, 2 usage.
usage() {
    cat <<'END'
Usage: run.sh [--out DIR] [--device cuda[:N]] [--only LIST] [--dry-run]
  --out DIR      results.json and a log per check (gpu-results)
  --device D     cuda; cpu tries the script, with models of a few million parameters in `selection`
                 and `forced`
  --only LIST    of ops, bench, fixtures, draws, lossless, sanitizer, profile, selection, forced,
                 validate; with commas
  --dry-run      say what would be run, and write results.json all the same
END
}
here=$(cd "$(dirname "$0")" && pwd) || exit 2
out=gpu-results device=cuda dry=no
only=ops,bench,fixtures,draws,lossless,sanitizer,profile,selection,forced,validate
while [ $# -gt 0 ]; do
    case $1 in
    --out | --device | --only)
        [ $# -gt 1 ] || {
            usage >&2
            exit 2
        }
        case $1 in
        --out) out=$2 ;;
        --device) device=$2 ;;
        --only) only=$2 ;;
        esac
        shift
        ;;
    --dry-run) dry=yes ;;
    --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done
bin=$here/bin
fixtures=$here/tests/oracle/fixtures
demo=$here/live/demo
LD_LIBRARY_PATH=$here/lib:${CUDA_HOME:-/usr/local/cuda}/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd) || exit 2
passed=0 failed=0 absent=0
checks=$out/checks.part
: >"$checks"

# --- JSON --------------------------------------------------------------------------------------
# A string: quotes and backslashes escaped, control characters left out.
text() {
    printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}
# The lines of a file as an array of strings, the last $2 at most.
lines() {
    [ -s "$1" ] || {
        printf '[]'
        return
    }
    tail -n "$2" "$1" | tr -d '\000-\011\013-\037' |
        sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$/",/; $s/,$//' | tr '\n' ' ' |
        sed 's/^/[/; s/ *$/]/'
}
# name, outcome, exit code or "null", seconds, log or "", command
record() {
    case $2 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    absent) absent=$((absent + 1)) ;;
    esac
    [ -s "$checks" ] && printf ',\n' >>"$checks"
    {
        printf '    {"check": %s, "outcome": %s, "exit_code": %s, "seconds": %s, "command": %s' \
            "$(text "$1")" "$(text "$2")" "$3" "$4" "$(text "$6")"
        printf ', "output": %s}' "$(lines "${5:-/dev/null}" "${7:-12}")"
    } >>"$checks"
    printf '%-8s %s\n' "$2" "$1"
}

# --- running -----------------------------------------------------------------------------------
wanted() {
    case ,$only, in
    *,"$1",*) return 0 ;;
    esac
    return 1
}
# run NAME LINES COMMAND...: records the outcome; the log is $out/NAME.log. Exit code 77: absent.
run() {
    name=$1 keep=$2
    shift 2
    log=$out/$name.log
    if [ $dry = yes ]; then
        record "$name" "not run" null 0 "" "$*"
        return 0
    fi
    # 3: a program says that there is no such device
    start=$(date +%s)
    "$@" >"$log" 2>&1
    code=$?
    seconds=$(($(date +%s) - start))
    case $code in
    0) outcome=passed ;;
    77 | 3) outcome=absent ;;
    *) outcome=failed ;;
    esac
    record "$name" $outcome $code $seconds "$log" "$*" "$keep"
    [ $outcome = passed ]
}
# need NAME FILE...: records the check as absent unless all files are there.
need() {
    name=$1
    shift
    for file; do
        if [ ! -e "$file" ]; then
            record "$name" absent null 0 "" "no ${file#"$here"/}"
            return 1
        fi
    done
}

gpu=absent driver=absent memory=absent
if command -v nvidia-smi >/dev/null 2>&1; then
    smi=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null |
        head -n 1)
    if [ -n "$smi" ]; then
        gpu=${smi%%,*} driver=$(echo "$smi" | cut -d, -f2 | sed 's/^ *//')
        memory=$(echo "$smi" | cut -d, -f3 | sed 's/^ *//')
    fi
fi

# --- the checks --------------------------------------------------------------------------------
if wanted ops && need ops "$bin/check_ops"; then
    run ops 40 "$bin/check_ops" --device "$device"
fi
if wanted bench && need bench "$bin/check_ops"; then
    run bench 400 "$bin/check_ops" --device "$device" --bench
fi
if wanted fixtures && need fixtures "$bin/test_fixtures" "$fixtures"; then
    run fixtures 40 "$bin/test_fixtures" --device "$device" "$fixtures"
fi

# Every method with every rule: what is drawn here against a CPU, and its law.
for program in test_live_device test_live_rules; do
    if wanted draws && need draws-$program "$bin/$program"; then
        run draws-$program 40 "$bin/$program" --device "$device"
    fi
done

# Every method on the demo models, greedy: `--baseline` decodes plainly in the same call, and the
# two must not differ ("divergences" counts them) when a token's result is the same in every pass.
lossless() {
    method=$1
    shift
    "$bin/draftscope-live" run --device "$device" --batch-invariant --target "$demo/target" \
        --method "$method" "$@" --prompts "$prompts" --max-tokens 64 --baseline --json || return
}
no_divergence() {
    lossless "$@" >"$out/lossless.json"
    code=$?
    cat "$out/lossless.json"
    [ $code = 0 ] || return $code
    grep -Eq '"divergences": *0(\.0*)?[,}]' "$out/lossless.json"
}
if wanted lossless; then
    prompts=$demo/prompts.jsonl
    if [ ! -e "$prompts" ]; then
        prompts=$out/prompts.jsonl
        printf '{"prompt": "%s"}\n' 'Tom has 3 apples and buys 4 more.' 'The train leaves at' \
            'Once there was' >"$prompts"
    fi
    for method in chain spectr tree lookahead ouroboros pearl llma; do
        need "lossless-$method" "$bin/draftscope-live" "$demo/target" "$demo/draft" || continue
        case $method in
        lookahead | llma) run "lossless-$method" 40 no_divergence $method ;;
        tree)
            need "lossless-$method" "$demo/eagle" || continue
            run "lossless-$method" 40 no_divergence $method --draft "$demo/eagle"
            ;;
        *) run "lossless-$method" 40 no_divergence $method --draft "$demo/draft" ;;
        esac
    done
fi

# compute-sanitizer is slow: the smaller shapes, and one run of the demo models.
if wanted sanitizer; then
    sanitizer=$(command -v compute-sanitizer) ||
        sanitizer=${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer
    for tool in memcheck racecheck synccheck initcheck; do
        need "sanitizer-$tool" "$sanitizer" "$bin/check_ops" || continue
        run "sanitizer-$tool" 20 "$sanitizer" --tool $tool --error-exitcode 9 "$bin/check_ops" \
            --device "$device" --quick
    done
    if need sanitizer-live "$sanitizer" "$bin/draftscope-live" "$demo/target" "$demo/draft"; then
        run sanitizer-live 20 "$sanitizer" --tool memcheck --error-exitcode 9 \
            "$bin/draftscope-live" run --device "$device" --target "$demo/target" \
            --draft "$demo/draft" --method chain -p "Tom has" --max-tokens 8
    fi
fi

# Models of random weights: a pass's time, by its tokens and the context in front of it.
if wanted profile; then
    for shape in deepseek-coder-1.3b llama-3-8b llama-2-13b; do
        need "profile-$shape" "$bin/draftscope-live" || continue
        run "profile-$shape" 400 "$bin/draftscope-live" profile --device "$device" --shape $shape \
            --random-weights 1 --dtype bf16 --tokens 1,2,4,8,16,32,64,128 \
            --context 0,512,4096,8192 -o "$out/$shape.tsv" || continue
    done
fi

# LLMA's Section 3.2, on models of random weights: the steps that the simulator takes on recorded
# answers, timed; the speed-up for every copy length within 5 % of what the simulator makes of a
# measured table.
forced() { # shape
    results=$out/llma-$1.jsonl cost=$out/llma-$1.cost.tsv
    rm -f "$results" "$cost"
    "$bin/draftscope-live" profile --device "$device" --shape "$1" --random-weights 1 --dtype bf16 \
        --tokens 1:24 --context 0:2048 -o "$cost" || return
    for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        "$bin/draftscope-live" run --device "$device" --shape "$1" --random-weights 1 --dtype bf16 \
            --method llma --n 1 --k $k --force "$here/rag.dst" --requests 4 --baseline --json \
            >>"$results" || return
    done
    "$bin/draftscope" validate --trace "$here/rag.dst" --live "$results" --cost "table:$cost" \
        --speedup-tolerance 5 -o "$out/llma-$1.tsv" --force
}

# Drafts that were recorded, with models of the shapes that papers have: Llama 3 8B with an EAGLE-1 head
# and with Llama 3.2 1B, of random weights. They make the passes, what is accepted is recorded.
config() { # FILE, architecture, hidden, feed forward, layers, heads, key heads, tokens, tied
    cat >"$out/$1" <<END
{"architectures": ["$2"], "model_type": "llama", "hidden_size": $3, "intermediate_size": $4,
 "num_hidden_layers": $5, "num_attention_heads": $6, "num_key_value_heads": $7, "vocab_size": $8,
 "tie_word_embeddings": $9, "rope_theta": 500000.0, "max_position_embeddings": 8192}
END
}
write_shapes() {
    case $device in
    cpu)
        config target.json LlamaForCausalLM 256 896 6 8 2 2048 false
        config draft.json LlamaForCausalLM 128 448 2 8 2 2048 true
        config small.json LlamaForCausalLM 64 224 1 4 2 2048 true
        config head.json EagleForCausalLM 256 896 1 8 2 2048 false
        ;;
    *)
        config target.json LlamaForCausalLM 4096 14336 32 32 8 128256 false
        config draft.json LlamaForCausalLM 2048 8192 16 32 8 128256 true
        config small.json LlamaForCausalLM 512 2048 4 8 2 128256 true
        config head.json EagleForCausalLM 4096 14336 1 32 8 128256 false
        ;;
    esac
}
# What of a step is neither a pass of the target nor of the draft model, at 1 G parameters and 128 k
# tokens of random weights, whose flat laws are the longest to cut: 5 % at most.
select_share() { # name, how tokens are drawn
    answer=$out/$1.json
    shift
    printf '{"prompt": [1, 5, 25, 125, 625]}\n' >"$out/ids.jsonl"
    "$bin/draftscope-live" run --device "$device" --shape "$out/draft.json" \
        --draft-shape "$out/small.json" --random-weights 1 --dtype bf16 --length 4 \
        --prompts "$out/ids.jsonl" --max-tokens 256 "$@" --json >"$answer" || return
    awk '
        { gsub(/[",:]/, " ") }
        { for (i = 1; i < NF; i++) if ($i ~ /^(draft|verify|select)_s$/) s[$i] = $(i + 1) }
        END {
            share = 100 * s["select_s"] / (s["draft_s"] + s["verify_s"] + s["select_s"])
            printf "selection %.2f %% of a step: draft %g s, verify %g s, select %g s\n", share,
                s["draft_s"], s["verify_s"], s["select_s"]
            exit !(share <= 5)
        }' "$answer"
}
if wanted selection; then
    write_shapes
    for how in greedy drawn top-k top-p block kseq otm multiround; do
        case $how in
        greedy) set -- --method chain ;;
        drawn) set -- --method chain --temperature 1 ;;
        top-k) set -- --method chain --temperature 1 --top-k 50 ;;
        top-p) set -- --method chain --temperature 1 --top-p .9 ;;
        block) set -- --method chain --rule block --temperature 1 ;;
        *) set -- --method spectr --drafts 4 --rule $how --temperature 1 ;;
        esac
        need "selection-$how" "$bin/draftscope-live" || continue
        run "selection-$how" 20 select_share "selection-$how" "$@"
    done
fi

# The speed-up as a line of the log, which results.json has the end of.
say_speedup() { # table
    grep -v '^#' "$1" | awk -F '\t' '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["quantity"] == "speedup" {
            printf "speedup of %s: predicted %.4f, measured %.4f, error %.2f %%, tolerance %s: %s\n",
                $at["method"], $at["predicted"], $at["measured"], $at["error_percent"],
                $at["tolerance"], $at["verdict"]
        }'
}
# Passes are measured, the speed-up predicted from them and the trace, and held against that of so
# many runs, each with a seed of its own.
# shellcheck disable=SC2086 # $models and $some are lists of words
drafted() { # name, trace, draft's shape, runs, method and its options
    stem=$out/$1 trace=$here/$2 with=$3 runs=$4
    shift 4
    results=$stem.jsonl cost=$stem.cost.tsv table=$stem.tsv
    rm -f "$results" "$cost" "$table"
    models="--device $device --shape $out/target.json --draft-shape $out/$with --random-weights 1"
    models="$models --dtype bf16" some=
    if [ "$device" = cpu ]; then
        models="$models --threads 1" some="--requests 2" runs=2
    fi
    case $stem in # PEARL's two models are to work side by side: on two GPUs where there are two
    */forced-pearl) models="$models $second" ;;
    esac
    "$bin/draftscope-live" profile $models --tokens 1,2,3,4,5,6,8,12,16,17,24,26,32 \
        --context 0:256 -o "$cost" || return
    ran=0
    while [ $ran -lt "$runs" ]; do
        "$bin/draftscope-live" run $models --force "$trace" --force-draft $some --seed $ran \
            --baseline --json "$@" >>"$results" || return
        ran=$((ran + 1))
    done
    "$bin/draftscope" validate --trace "$trace" --live "$results" --cost "table:$cost" \
        --speedup-tolerance 5 -o "$table" --force
    judged=$?
    [ ! -s "$table" ] || say_speedup "$table"
    return $judged
}
if wanted forced; then
    write_shapes
    second=
    if [ "$device" = cuda ] && [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -gt 1 ]; then
        second="--draft-device cuda:1"
    fi
    for method in eagle spectr pearl; do
        case $method in
        eagle) set -- eagle.dst head.json 3 --method tree --tree eagle ;;
        spectr) set -- drawn.dst draft.json 9 --method spectr --drafts 4 --length 4 --rule kseq ;;
        pearl) set -- greedy.dst draft.json 3 --method pearl --window 4 ;;
        esac
        need "forced-$method" "$bin/draftscope-live" "$bin/draftscope" "$here/$1" || continue
        run "forced-$method" 40 drafted "forced-$method" "$@"
    done
    shapes="llama-2-7b llama-2-13b"
    [ "$device" != cpu ] || shapes=
    for shape in $shapes; do
        need "forced-$shape" "$bin/draftscope-live" "$bin/draftscope" "$here/rag.dst" || continue
        run "forced-$shape" 40 forced "$shape"
    done
fi

# All methods on the demo models against their predictions.
predicted() {
    DEVICE=$device FIGURES=no sh "$here/validate.sh" "$bin/draftscope" "$here" "$out/validate"
}
if wanted validate && need validate "$bin/draftscope" "$here/validate.sh" "$demo/problems.jsonl"; then
    run validate 60 predicted
fi

# --- results.json ------------------------------------------------------------------------------
{
    printf '{\n  "date": %s,\n' "$(text "$(date -u +%Y-%m-%dT%H:%M:%SZ)")"
    printf '  "gpu": %s,\n  "driver": %s,\n' "$(text "$gpu")" "$(text "$driver")"
    printf '  "memory": %s,\n  "device": %s,\n' "$(text "$memory")" "$(text "$device")"
    printf '  "dry_run": %s,\n' "$([ $dry = yes ] && echo true || echo false)"
    printf '  "passed": %d,\n  "failed": %d,\n  "absent": %d,\n' $passed $failed $absent
    printf '  "checks": [\n'
    cat "$checks"
    printf '\n  ]\n}\n'
} >"$out/results.json.part" && mv "$out/results.json.part" "$out/results.json"
rm -f "$checks" "$out/lossless.json"
echo "$passed passed, $failed failed, $absent absent: $out/results.json"
[ $failed = 0 ] || exit 1
[ $dry = yes ] || [ $passed -gt 0 ] || exit 77
