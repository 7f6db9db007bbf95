#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Predicts the steps of a small server from a measured cost table, runs the same steps on the demo
# models, and compares the seconds. Seconds need a quiet machine. The exit code is 1 when the total
# is off by more than 10 %.
# Usage: served_steps.sh PROGRAM SOURCE_ROOT OUTPUT_FOLDER
# OUTPUT_FOLDER gets served-steps.tsv, -cost.tsv and -schedule.jsonl, which belong to
# tests/validation, and live/served-steps.tsv and .svg.
# DEVICE: the device of the models (cpu). REPEATS: of every pass and step (27). FIGURES=no: no
# figure (without gnuplot).
# $models is a list of words.
# shellcheck disable=SC2086
set -eu
draftscope=$1 demo=$2/live/demo out=$3
device=${DEVICE:-cpu} repeats=${REPEATS:-27} figures=${FIGURES:-yes}
models="--device $device --threads 1 --target $demo/target --draft $demo/draft --progress never"
steps=$out/served-steps

rm -rf "$out"
mkdir -p "$out/live"
"$draftscope" live record $models --method none --prompts "$demo/problems.jsonl" --requests 24 \
    --max-tokens 96 --rank-depth 8 -o "$out/served.dst"
# Sequences, tokens, contexts and parts of prompts as far as the server below needs them.
"$draftscope" live profile $models --tokens 1:4 --context 0,64,256 --batch-size 1:8 \
    --prefill-tokens 4,16,32,64 --repeats "$repeats" -o "$steps-cost.tsv"
"$draftscope" serve "$out/served.dst" --method draft-model --num-speculative-tokens 3 \
    --cost "table:$steps-cost.tsv" --arrivals closed:6 --requests 24 --max-num-seqs 8 \
    --max-num-batched-tokens 64 --schedule "$steps-schedule.jsonl" -o "$out/serve.tsv"
"$draftscope" live profile $models --schedule "$steps-schedule.jsonl" --repeats "$repeats" \
    -o "$out/live/served-steps.tsv"

# The measured sums as figures to predict (tests/validation/README.md).
awk -F '\t' -v OFS='\t' -v OFMT='%.9g' -v CONVFMT='%.9g' '
    /^# total: / { total = substr($0, 10) }
    /^#/ { next }
    !head++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
    {
        steps++
        target += $at["measured_target_s"]
        draft += $at["measured_draft_s"]
    }
    function figure(quantity, value, tolerance, kind) {
        print "demo models", "closed:6, draft-model, 3 draft tokens", quantity, "nan", value, tolerance, kind, "-", "-"
    }
    END {
        print "# source: draftscope live profile --schedule on the demo models, a run of contrib/served_steps.sh (tests/validation/live/README.md)"
        print "# note: measured: " total
        print "# note: the steps are priced by a cost table that the same program measured on the same machine; nothing is fitted to them"
        print "source", "case", "quantity", "at", "published", "tolerance", "kind", "witness", "note"
        figure("total_s", target + draft, "10%", "prediction")
        figure("target_s", target, "shown", "prediction")
        figure("draft_s", draft, "shown", "prediction")
        figure("steps", steps, "0", "identity")
    }' "$out/live/served-steps.tsv" >"$steps.tsv"
if [ "$figures" = yes ]; then
    "$draftscope" plot served-steps "$out/live/served-steps.tsv" -o "$out/live/served-steps.svg"
fi
"$draftscope" validate served-steps --published --tables "$out"
