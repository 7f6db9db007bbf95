#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Predicts the steps of a small server from a measured cost table, runs the same steps on the demo
# models, and compares the seconds. Tables and steps are measured in turn, because the speed of a
# shared machine changes within seconds and within minutes: over many turns both are measured under
# the same mixture of conditions. Seconds still need a quiet machine. The exit code is 1 when the
# total is off by more than 10 %.
# Usage: served_steps.sh PROGRAM SOURCE_ROOT OUTPUT_FOLDER
# OUTPUT_FOLDER gets served-steps.tsv, -cost.tsv and -schedule.jsonl, which belong to
# tests/validation, and live/served-steps.tsv and .svg.
# DEVICE: the device of the models (cpu). TURNS: of tables and steps (15). FIGURES=no: no figure
# (without gnuplot).
# $models is a list of words.
# shellcheck disable=SC2086
set -eu
draftscope=$1 demo=$2/live/demo out=$3
device=${DEVICE:-cpu} turns=${TURNS:-15} figures=${FIGURES:-yes}
models="--device $device --threads 1 --target $demo/target --draft $demo/draft --progress never"
steps=$out/served-steps

rm -rf "$out"
mkdir -p "$out/live" "$out/turns"

# A closed loop: which steps there are does not depend on what they take.
serve() { # cost table, schedule
    "$draftscope" serve "$out/served.dst" --method draft-model --num-speculative-tokens 3 \
        --cost "table:$1" --arrivals closed:6 --requests 24 --drain --max-num-seqs 8 \
        --max-num-batched-tokens 64 --schedule "$2" -o "$out/serve.tsv" --force
}
# Means of the cells of tables with the same rows; the comments are those of the first.
average() { # tables...
    awk -F '\t' -v OFS='\t' '
        FNR == 1 { file++; rows = 0 }
        /^#/ { if (file == 1) print; next }
        ++rows == 1 { if (file == 1) print; columns = NF; next }
        {
            if (rows > most) most = rows
            for (c = 1; c <= NF; c++) { sum[rows, c] += $c; empty[rows, c] = $c == "" }
        }
        END {
            for (r = 2; r <= most; r++)
                for (c = 1; c <= columns; c++) {
                    if (!empty[r, c]) printf "%.9g", sum[r, c] / file
                    printf "%s", c < columns ? OFS : "\n"
                }
        }' "$@"
}

"$draftscope" live record $models --method none --prompts "$demo/problems.jsonl" --requests 24 \
    --max-tokens 96 --rank-depth 8 -o "$out/served.dst"
for turn in $(seq "$turns"); do
    # Sequences, tokens, contexts and parts of prompts as far as the server needs them.
    "$draftscope" live profile $models --tokens 1:4 --context 0,64,256 --batch-size 1:8 \
        --prefill-tokens 4,16,32,64 -o "$out/turns/cost-$turn.tsv"
    [ -e "$steps-schedule.jsonl" ] || serve "$out/turns/cost-$turn.tsv" "$steps-schedule.jsonl"
    "$draftscope" live profile $models --schedule "$steps-schedule.jsonl" \
        -o "$out/turns/steps-$turn.tsv"
done 2>"$out/turns/log"
average "$out"/turns/cost-*.tsv >"$steps-cost.tsv"
serve "$steps-cost.tsv" "$steps-schedule.jsonl"
# The predicted seconds are those of the mean table. What was run must be what is predicted now.
sed -n 's/.*"target_s": \([^,]*\), "draft_s": \([^,]*\), .*"tokens": \[\([^]]*\)\].*/\1 \2 \3/p' \
    "$steps-schedule.jsonl" >"$out/turns/predicted"
average "$out"/turns/steps-*.tsv | awk -F '\t' -v OFS='\t' -v CONVFMT=%.9g -v OFMT=%.9g \
    -v predicted="$out/turns/predicted" '
    /^# total: / { next }
    /^#/ { print; next }
    !head++ { for (i = 1; i <= NF; i++) at[$i] = i; print; next }
    {
        getline line <predicted
        n = split(line, p, " ")
        tokens = split(p[3], t, ",")
        for (i = sum = 0; i < tokens; sum += t[i]) i++
        if (tokens != $at["sequences"] || sum != $at["decode_tokens"] + $at["prefill_tokens"])
            exit 1
        $at["predicted_target_s"] = p[1]
        $at["predicted_draft_s"] = p[2]
        $at["predicted_s"] = p[1] + p[2]
        $at["error_percent"] = 100 * ($at["predicted_s"] / $at["measured_s"] - 1)
        print
    }' >"$out/live/served-steps.tsv"

# The measured sums as figures to predict (tests/validation/README.md).
awk -F '\t' -v OFS='\t' -v OFMT=%.9g -v CONVFMT=%.9g -v turns="$turns" '
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
        print "# note: the steps are priced by a cost table that the same program measured on the same machine, " turns " times in turn with the steps; nothing is fitted to them"
        print "source", "case", "quantity", "at", "published", "tolerance", "kind", "witness", "note"
        figure("total_s", target + draft, "10%", "prediction")
        figure("target_s", target, "shown", "prediction")
        figure("draft_s", draft, "shown", "prediction")
        figure("steps", steps, "0", "identity")
    }' "$out/live/served-steps.tsv" >"$steps.tsv"
if [ "$figures" = yes ]; then
    "$draftscope" plot served-steps "$out/live/served-steps.tsv" -o "$out/live/served-steps.svg"
fi
"$draftscope" validate served-steps --published --tables "$out" -o "$out/result.tsv"
