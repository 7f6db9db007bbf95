#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make gpu-bundle: packs what tests/gpu/run.sh needs on a machine with a GPU and cuBLAS of CUDA 13
# but no compiler and no packages: programs, their shared libraries other than CUDA's and the C
# library, OpenBLAS, which a program may open by name only when it is needed, fixtures, demo models,
# scripts. Usage: bundle.sh SOURCE BUILD OUT.tar.gz PROGRAM...
set -eu
source=$1 build=$2 out=$3
shift 3
limit=60000000
name=draftscope-gpu
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
    ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
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
done <"$work/taken"

for script in run.sh checks.sh results.sh libraries.sh README.md; do
    cp "$source/tests/gpu/$script" "$root/"
done
cp "$source/contrib/validate.sh" "$root/"
# Outputs to replay on models of random weights: LLMA's development set in Llama 2's tokens if
# present, else the sample.
data=${DSC_TEST_DATA:-}
if [ -n "$data" ] && [ -e "$data/llma/rag.jsonl" ] && [ -e "$data/tokenizers/llama2.json" ]; then
    set -- "$data/tokenizers/llama2.json" "$data/llma/rag.jsonl"
else
    set -- "$source/traces/sample/tokenizer.json" "$source/traces/sample/rag.jsonl"
fi
if [ -e "$root/bin/draftscope" ]; then
    "$build/draftscope" trace import --tokenizer "$1" "$2" -o "$root/rag.dst" --progress never
fi
# Drafts to replay on models of random weights: those of the demo models on a few prompts.
record() { # trace, draft model, options
    trace=$root/$1.dst draft=$source/live/demo/$2
    shift 2
    "$build/draftscope" live record --device cpu --threads 1 --target "$source/live/demo/target" \
        --draft "$draft" --method none --prompts "$source/live/demo/prompts.jsonl" --requests 6 \
        --max-tokens 96 --progress never "$@" -o "$trace"
}
if [ -d "$source/live/demo/target" ] && [ -e "$root/bin/draftscope-live" ]; then
    record greedy draft --num-drafts 1 --rank-depth 8 --rollouts 8
    record eagle eagle --num-drafts 1 --rank-depth 8
    record sampled draft --num-drafts 4 --temperature 1
fi
for folder in tests/oracle/fixtures live/demo; do
    if [ -d "$source/$folder" ]; then
        mkdir -p "$root/$folder"
        cp -r "$source/$folder/." "$root/$folder/"
    fi
done
tar --sort=name --owner=0 --group=0 --numeric-owner -C "$work" -czf "$out" $name
bytes=$(wc -c <"$out")
echo "$out: $bytes bytes, $(ls "$root/bin" | wc -l) programs, $(ls "$root/lib" | wc -l) libraries"
[ "$bytes" -le $limit ] || {
    echo "bundle: more than $limit bytes" >&2
    exit 1
}
