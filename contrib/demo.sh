#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the main job on the bundled sample: recorded answers -> traces -> sweeps -> figures -> report,
# and a verdict.
# Usage: demo.sh PROGRAM SOURCE_ROOT OUTPUT_FOLDER
set -eu
draftscope=$1 sample=$2/traces/sample out=$3

rm -rf "$out"
mkdir -p "$out"

# name, references to copy from, description
while read -r name references what; do
    "$draftscope" trace import --tokenizer "$sample/tokenizer.json" "$sample/$name.jsonl" \
        -o "$out/$name.dst"
    "$draftscope" sweep "$out/$name.dst" --method llma --n 1:8 --num-speculative-tokens 1:32 \
        --references "$references" --cost linear:0.020,0.0002 -o "$out/$name.tsv"
done <<END
rag docs answers that quote retrieved passages
cache docs answers to queries much like earlier ones
edits turns texts edited over several turns
END
for figure in llma-speedup llma-stats heatmap accept-histogram; do
    "$draftscope" plot "$figure" "$out/rag.tsv" -o "$out/$figure.svg"
done
"$draftscope" report "$out/rag.tsv" "$out/cache.tsv" "$out/edits.tsv" -o "$out/report.html" \
    --title "LLMA on the bundled sample"

echo
echo "Replayed the recorded outputs of traces/sample with LLMA. A target forward pass takes 20 ms and"
echo "0.2 ms for each token in it. The best match length n and draft length of an 8 x 32 grid:"
echo
printf '%-8s %9s %14s %5s %6s %17s %9s\n' trace requests output_tokens n length \
    block_efficiency speedup
for name in rag cache edits; do
    awk -F '\t' -v name="$name" '
        /^#/ { next }
        !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
        $at["speedup"] > best { best = $at["speedup"]; row = $0 }
        END {
            split(row, f, "\t")
            printf "%-8s %9d %14d %5d %6d %17.2f %8.2fx\n", name, f[at["requests"]],
                f[at["output_tokens"]], f[at["n"]], f[at["num_speculative_tokens"]],
                f[at["block_efficiency"]], best
        }' "$out/$name.tsv"
done
echo
echo "These are the best of 256 settings on the requests that they are reported on. A verdict is judged on"
echo "other requests. draftscope advise gives it, for every method that these data can answer:"
echo
"$draftscope" advise "$out/rag.dst" --cost linear:0.020,0.0002 --engine vllm -o "$out/advice"
echo
echo "Figures and tables: $out"
echo "The report:         $out/report.html"
