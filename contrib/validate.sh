#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares predictions with measurements on the demo models. It records the target's outputs,
# predicts every method of a grid from the recordings and a measured cost table, and runs all of them
# on the models. The exit code is 1 when a prediction fails.
# Usage: validate.sh PROGRAM SOURCE_ROOT OUTPUT_FOLDER
# DEVICE: the device of the models (cpu). FIGURES=no: no figures and no page (without gnuplot).
# QUICK=yes: fewer configurations of the sampled methods and fewer repeats of the timed runs. The
# number of requests per configuration stays, and so does the power of each comparison.
# Options of live commands are lists of words:
# shellcheck disable=SC2086
set -eu
draftscope=$1 demo=$2/live/demo out=$3
device=${DEVICE:-cpu} figures=${FIGURES:-yes}
tokens=96   # maximum new tokens per request
greedy=16   # problems at temperature 0
sampled=720 # problems at temperature 1: the same 240, three times
dense=64    # problems at temperature 1 with whole distributions
many=240    # problems in a run of a chain or a tree
few=12      # problems in a run of several drafts; the runs take turns through all of them
timed=8     # problems in a timed run
repeats=15  # repeats of the timed runs; a cost table is measured before each
chains="1 2 3 4 5 6 7 8" # draft lengths at temperature 1
drafts="1 2 3 4 5 6 7 8" # numbers of drafts
lengths="1 2 3 4 5 6"    # draft lengths with several drafts
if [ "${QUICK:-no}" = yes ]; then
    chains="2 4 8" drafts="2 4 8" lengths="2 4 6" repeats=5
fi
live="$draftscope live" models="--device $device --threads 1 --target $demo/target"
with_draft="--draft $demo/draft"

rm -rf "$out"
mkdir -p "$out/jobs" "$out/runs"
started=$(date +%s)
say() {
    echo "[$(($(date +%s) - started)) s] $*"
}
fail() {
    echo "validate.sh: $*" >&2
    exit 1
}

# --- recordings of the target ------------------------------------------------------------------
record() { # trace, draft model, prompts, requests, options of live record...
    trace=$out/$1.dst folder=$2 prompts=$3.jsonl requests=$4
    shift 4
    $live record $models --draft "$demo/$folder" --method none --prompts "$prompts" \
        --requests "$requests" --max-tokens $tokens --progress never "$@" -o "$trace"
}
say "recording"
cat "$demo/problems.jsonl" "$demo/problems.jsonl" "$demo/problems.jsonl" >"$out/problems.jsonl"
record sampled draft "$out/problems" $sampled --temperature 1 --num-drafts 8 &
sampling=$!
record greedy draft "$demo/problems" $greedy --rank-depth 8 --rollouts 20 --candidates 5:5
record eagle eagle "$demo/problems" $greedy --rank-depth 8
record eagle3 eagle3 "$demo/problems" $greedy --rank-depth 8 --candidates 5:5
record medusa medusa "$demo/problems" $greedy --rank-depth 4 --marginals 4:64
record dense draft "$out/problems" $dense --temperature 1 --logprobs dense
record references draft "$demo/references" 0
wait $sampling

# --- the methods on the models -----------------------------------------------------------------
# A job is a file with one command; the jobs of a set run in parallel.
count=0
job() { # set, options of live run...
    count=$((count + 1))
    set_of=$1
    shift
    mkdir -p "$out/jobs/$set_of"
    name=$set_of-$(printf '%04d' $count)
    cat >"$out/jobs/$set_of/$name" <<END
$live run $models --progress never --json $* \\
    >$out/runs/$name.json 2>$out/runs/$name.err || echo "$*" >>$out/failed
END
}
start() { # set, jobs at a time: their lines come to the end of OUT/SET.jsonl
    find "$out/jobs/$1" -type f | sort | xargs -P "$2" -n 1 sh
    [ ! -s "$out/failed" ] || fail "live run $(head -n 1 "$out/failed"): see $out/runs"
    for ran in "$out/jobs/$1"/*; do
        cat "$out/runs/${ran##*/}.json"
    done >>"$out/$1.jsonl"
}

some="--max-tokens $tokens --prompts $demo/problems.jsonl --requests $greedy"
for length in 1 2 3 4 5 6 7 8; do
    job greedy --method draft-model --num-speculative-tokens $length $with_draft $some
done
for threshold in 4 2; do
    job greedy --method sa-draft-model --match-threshold $threshold $with_draft $some
done
job greedy --method hf-dynamic $with_draft $some
for tree in 2^3 4^2; do
    job greedy --method tree --tree $tree $with_draft $some
done
job greedy --method sequoia --budget 16 --depth 5 $with_draft $some
for part in '' '--pre-verify off' '--post-verify off'; do
    job greedy --method pearl --num-speculative-tokens 4 $part $with_draft $some
done
job greedy --method ngram $some
job greedy --method suffix $some
for cached in 1 16; do
    job greedy --method suffix --max-cached-requests $cached $some
done
for match in BFS PROB; do
    job greedy --method ngram-tree --match-type $match $some
done
for controller in ema ucb; do
    job greedy --method adaptive --controller $controller $with_draft $some
    job greedy --method adaptive-ngram --controller $controller $some
    job greedy --method adaptive-suffix --controller $controller $some
done
# Methods that query a model off the recorded text; the simulator runs the models for them.
for source in "$some" "--replay $out/greedy.dst"; do
    job greedy --method lookahead $source
    job greedy --method threshold $with_draft $source
    for part in '' '--draft-lookahead off' '--phrases 0' '--from-verification off' '--reuse off'; do
        job greedy --method ouroboros $part $with_draft $source
    done
done
for length in 1 2 3 4 5; do
    job eagle --method draft-model --num-speculative-tokens $length --draft "$demo/eagle" $some
done
job eagle --method tree --tree eagle --draft "$demo/eagle" $some
for length in 1 2 3 4 5; do
    job eagle3 --method draft-model --num-speculative-tokens $length --draft "$demo/eagle3" $some
done
job eagle3 --method tree --tree eagle --draft "$demo/eagle3" $some
# From recorded candidates and marginals.
for tree in "5 26" "5 9" "3 16"; do
    tree="--num-steps ${tree% *} --eagle-topk 5 --num-draft-tokens ${tree#* }"
    job greedy --method dynamic-tree $tree --draft "$demo/draft" $some
    job eagle3 --method dynamic-tree $tree --draft "$demo/eagle3" $some
done
for length in 2 4; do
    job medusa --method parallel --num-speculative-tokens $length --draft "$demo/medusa" $some
    job medusa --method ddtree --num-speculative-tokens $length --num-draft-tokens 63 \
        --draft "$demo/medusa" $some
done
job medusa --method tree --tree medusa --draft "$demo/medusa" $some
for k in 4 8 16; do
    job references --method llma --num-speculative-tokens $k --max-tokens $tokens --prompts "$demo/references.jsonl"
done

at=0 most=$sampled
turn() { # problems: the next N at temperature 1, in $some
    [ $((at + $1)) -le "$most" ] || at=0
    some="--prompts $out/problems.jsonl --skip $at --requests $1 --temperature 1"
    some="$some --max-tokens $tokens"
    at=$((at + $1))
}
for length in $chains; do
    turn $many
    job sampled --method draft-model --num-speculative-tokens $length --rule rejection $with_draft $some
done
for branches in 2,2,1,1 4,2 2,2,2; do
    turn $many
    job sampled --method spectr-tree --branches $branches --rule specinfer $with_draft $some
done
for rule in kseq otm specinfer; do
    for number in $drafts; do
        for length in $lengths; do
            turn $few
            job sampled --method spectr --num-drafts $number --num-speculative-tokens $length --rule $rule \
                $with_draft $some
        done
    done
done
for rule in block traversal; do # of one sequence the same rule
    for length in 3 8; do
        turn $many
        job sampled --method draft-model --num-speculative-tokens $length --rule $rule $with_draft $some
    done
done
# GBV needs whole distributions, 8 KB for each position and model: fewer problems are recorded.
at=0 most=$dense
for number in 2 4; do
    for length in 3 6; do
        turn $dense
        job dense --method spectr --num-drafts $number --num-speculative-tokens $length --rule gbv \
            $with_draft $some
    done
done

some="--max-tokens $tokens --prompts $demo/problems.jsonl --requests $timed --baseline"
for length in 1 2 4 6 8; do
    job timed --method draft-model --num-speculative-tokens $length $with_draft $some
done
job timed --method ngram $some

# --- cost tables and timed runs ----------------------------------------------------------------
# Tables and runs are measured in turn, with no other job running. The speed of a shared machine
# changes within seconds and within minutes, and not by the same factor for small and large passes.
# Over many repeats, tables and runs are measured under the same mixture of conditions.
say "measuring seconds"
for repeat in $(seq $repeats); do
    $live profile $models $with_draft --tokens 1,2,3,4,5,6,7,8,9,10,11 --context 0:256 --prefill-tokens 0 \
        --progress never -o "$out/runs/cost-$repeat.tsv"
    start timed 1
done
awk -F '\t' -v OFS='\t' '
    FNR == 1 { file++; rows = 0 }
    /^#/ { if (file == 1) print; next }
    ++rows == 1 { if (file == 1) print; columns = NF; next }
    {
        if (rows > most) most = rows
        for (c = 1; c <= NF; c++) cell[rows, c, file] = $c
    }
    function mean(r, c,    i, sum) {
        for (i = 1; i <= file; i++) sum += cell[r, c, i]
        return sum / file
    }
    END {
        for (r = 2; r <= most; r++)
            for (c = 1; c <= columns; c++)
                printf "%.9g%s", mean(r, c), c < columns ? OFS : "\n"
    }' "$out"/runs/cost-*.tsv >"$out/cost.tsv"

say "counting: $count runs"
for set_of in greedy eagle eagle3 medusa references sampled dense; do
    start $set_of "$(nproc)"
done

# --- comparison --------------------------------------------------------------------------------
status=0
tables=
judge() { # set, trace, options of validate...
    set_of=$1 trace=$2
    shift 2
    echo "$set_of:"
    "$draftscope" validate --trace "$out/$trace.dst" --live "$out/$set_of.jsonl" "$@" \
        -o "$out/$set_of.tsv" || status=1
    tables="$tables $out/$set_of.tsv"
}
say "comparing"
for set_of in greedy eagle eagle3 medusa references sampled dense; do
    judge $set_of $set_of
done
judge timed greedy --cost "table:$out/cost.tsv"

if [ "$figures" = yes ]; then
    say "drawing"
    for figure in predicted-vs-measured error-by-method; do
        "$draftscope" plot $figure $tables -o "$out/$figure.svg"
    done
    "$draftscope" plot step-time-residuals "$out/timed.tsv" -o "$out/step-time-residuals.svg"
    "$draftscope" report "$out/greedy.dst" "$out/cost.tsv" $tables -o "$out/report.html" \
        --title "Predicted against measured: the demo models"
fi

echo
echo "Tokens per call of the target, over all configurations of a method, and speed-ups:"
echo
printf '%-12s %-11s %-10s %9s %9s %8s %7s %s\n' method rule of predicted measured 'error %' z verdict
for table in $tables; do
    awk -F '\t' '
        /^#/ { next }
        !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
        ($at["quantity"] == "block_efficiency" && $at["parameters"] == "all" && \
            FILENAME !~ /timed/) || $at["quantity"] == "speedup" {
            what = $at["quantity"] == "speedup" ? $at["parameters"] : "all"
            printf "%-12s %-11s %-10s %9.4f %9.4f %+8.2f %7s %s\n", $at["method"], $at["rule"], what,
                $at["predicted"], $at["measured"], $at["error_percent"],
                $at["z"] == "nan" ? "" : sprintf("%.2f", $at["z"]), $at["verdict"]
        }' "$table"
done
echo
say "done: $out"
exit $status
