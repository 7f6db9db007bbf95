#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make gpu-bundle: packs what tests/gpu/run.sh needs on a machine with a GPU and cuBLAS of CUDA 13
# but no compiler and no packages: programs, their shared libraries other than CUDA's and the C
# library, OpenBLAS, which a program may open by name only when it is needed, fixtures, demo models,
# traces, scripts. Usage: bundle.sh SOURCE BUILD OUT.tar.xz PROGRAM...
#
# DSC_TEST_DATA names the folder of real data, of which the bundle then has traces; DSC_SMOLLM2 the
# GGUF file of SmolLM2-135M-Instruct (contrib/real_model), whose outputs are recorded on this machine.
set -eu
source=$1 build=$(cd "$2" && pwd) out=$3
shift 3
limit=50000000 # bytes of the bundle and of what git tracks, which travels with it
name=draftscope-gpu
command -v xz >/dev/null || {
    echo "bundle: xz was not found (Debian: xz-utils)" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
root=$work/$name
mkdir -p "$root/bin" "$root/lib"

for program; do
    file=$build/$program
    [ -f "$file" ] || {
        echo "bundle: no $program in $build: make it first" >&2
        exit 1
    }
    # libtool leaves a script in place of a program that is linked with a library of the tree.
    real=$(dirname "$file")/.libs/$(basename "$file")
    [ -f "$real" ] && file=$real
    cp "$file" "$root/bin/"
    strip -S "$root/bin/$(basename "$program")"
    LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
done | sort -u >"$work/libraries"
if ! grep -q '/libopenblas' "$work/libraries"; then
    openblas=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | sed -n 's|.*libopenblas\.so\.0 .*=> ||p' |
        head -n 1)
    [ -n "$openblas" ] || {
        echo "bundle: libopenblas.so.0 was not found in the loader's cache: run ldconfig" >&2
        exit 1
    }
    {
        echo "$openblas"
        ldd "$openblas" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
    } | sort -u - "$work/libraries" -o "$work/libraries"
fi
# CUDA's libraries are on the other machine, and the C library's parts belong to its loader.
grep -vE '/(libcu|libnv|libc\.|libm\.|libmvec|libdl\.|librt\.|libpthread\.|ld-linux)' \
    "$work/libraries" >"$work/taken" || true
while read -r library; do
    cp -L "$library" "$root/lib/"
    case $library in
    */libdraftscope*) strip -S "$root/lib/$(basename "$library")" ;;
    esac
done <"$work/taken"

for script in run.sh checks.sh results.sh libraries.sh README.md; do
    cp "$source/tests/gpu/$script" "$root/"
done
cp "$source/contrib/validate.sh" "$root/"
quietly() { # command: what it prints is shown when it fails
    "$@" >"$work/said" 2>&1 || {
        cat "$work/said" >&2
        exit 1
    }
}
# Traces to replay on models of random weights. Answers in Llama 2's tokens, where they are: LLMA's
# development set, else the sample, and what two engines wrote and accepted on Spec-Bench.
import() { # trace, tokenizer, file, options
    [ -e "$root/bin/draftscope" ] || return 0
    import_to=$root/$1.dst
    shift
    quietly "$build/draftscope" trace import --tokenizer "$@" -o "$import_to" --progress never
}
data=${DSC_TEST_DATA:-} llama2=${DSC_TEST_DATA:-}/tokenizers/llama2.json
if [ -n "$data" ] && [ -e "$data/llma/rag.jsonl" ] && [ -e "$llama2" ]; then
    import rag "$llama2" "$data/llma/rag.jsonl"
else
    import rag "$source/traces/sample/tokenizer.json" "$source/traces/sample/rag.jsonl"
fi
for engine in eagle sps-68m; do
    [ ! -e "$data/specbench/$engine.jsonl" ] || [ ! -e "$llama2" ] ||
        import "specbench-$engine" "$llama2" "$data/specbench/$engine.jsonl" \
            --questions "$data/specbench/questions.jsonl"
done
# Drafts: those of the demo models on a few prompts, and those of SmolLM2's first layers.
record() { # trace, options
    trace=$root/$1.dst
    shift
    [ ! -e "$root/bin/draftscope-live" ] || quietly "$build/draftscope-live" record --device cpu \
        --method none --progress never -o "$trace" "$@"
}
demo() { # trace, draft model, options
    demo_trace=$1 demo_draft=$source/live/demo/$2
    shift 2
    record "$demo_trace" --threads 1 --target "$source/live/demo/target" --draft "$demo_draft" \
        --prompts "$source/live/demo/prompts.jsonl" --requests 6 --max-tokens 96 "$@"
}
if [ -d "$source/live/demo/target" ]; then
    demo greedy draft --num-drafts 1 --rank-depth 8 --rollouts 8
    demo eagle eagle --num-drafts 1 --rank-depth 8
    demo sampled draft --num-drafts 4 --temperature 1
fi
smollm2() { # trace, options
    smollm2_trace=$1
    shift
    record "$smollm2_trace" --target "$DSC_SMOLLM2" --dtype bf16 --draft-layers 0:24 \
        --prompts "$data/gsm8k/test.jsonl" --requests 6 --max-tokens 96 --num-drafts 1 "$@"
}
# The first prompts of each task, under the names of DSC_TEST_DATA, for the runs of the model itself; it
# comes separately (prepare.sh).
prompts() { # file, filter
    mkdir -p "$root/data/${1%/*}"
    case $1 in
    *.gz) gzip -dc "$data/$1" | head -n 8 | gzip -n >"$root/data/$1" ;;
    *) grep -F -e "${2:-}" "$data/$1" | head -n 8 >"$root/data/$1" ;;
    esac
}
if [ -n "${DSC_SMOLLM2:-}" ]; then
    for file in gsm8k/test.jsonl humaneval/HumanEval.jsonl.gz llma/rag.jsonl specbench/questions.jsonl; do
        [ -e "$data/$file" ] || {
            echo "bundle: DSC_SMOLLM2 needs the prompts of $file in DSC_TEST_DATA" >&2
            exit 1
        }
    done
    smollm2 smollm2-greedy --rank-depth 4 --rollouts 4
    smollm2 smollm2-sampled --temperature 1
    prompts gsm8k/test.jsonl
    prompts humaneval/HumanEval.jsonl.gz
    prompts llma/rag.jsonl
    prompts specbench/questions.jsonl '"summarization"'
    sha256sum <"$DSC_SMOLLM2" | sed 's/-$/smollm2.gguf/' >"$root/smollm2.sha256"
fi
for folder in tests/oracle/fixtures tests/oracle/gguf live/demo; do
    if [ -d "$source/$folder" ]; then
        mkdir -p "$root/$folder"
        cp -r "$source/$folder/." "$root/$folder/"
    fi
done
# run.sh finds out by it when a transfer was cut short.
(cd "$root" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$work/sums"
mv "$work/sums" "$root/files.sha256"
# A dictionary that takes in the parts that the programs have in common.
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$work" -cf - $name |
    xz --lzma2=preset=6,dict=128MiB >"$work/bundle"
bytes=$(wc -c <"$work/bundle")
tree=$(cd "$source" && { git ls-files -z 2>/dev/null || :; } |
    xargs -0 -r stat -c %s 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }')
echo "$out: $bytes bytes, $(ls "$root/bin" | wc -l) programs, $(ls "$root/lib" | wc -l) libraries"
[ "$tree" = 0 ] || echo "with the $tree bytes of what git tracks: $((bytes + tree)) bytes"
[ $((bytes + tree)) -le $limit ] || {
    echo "bundle: with the tree more than $limit bytes: see \"A smaller tree\" in tests/gpu/README.md" >&2
    exit 1
}
mv "$work/bundle" "$out"
