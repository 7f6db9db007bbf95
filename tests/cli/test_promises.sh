#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every promise once: the table of docs/data.md (method x rule x kind of data) against what sim, sweep and
# tune do on a trace of each kind; every method x rule on every kind of synthetic model; every command
# on every kind of trace; every live command with every pair of demo models. A command succeeds, or it
# refuses with one line (notes may come before it) and exit code 2, 3 or 4. It never crashes and never
# fails silently. Without DSC_TEST_ALL, sweeps and synthetic models run for every fifth pair of method
# and rule.
# $pair, $extra and the like are lists of words.
# shellcheck disable=SC2086,SC2094
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
demo=${LIVE_DEMO:-$top/live/demo}
LC_ALL=C
export LC_ALL

# Runs the program; sets `code`. Anything but success or one line of refusal is a failure.
orderly() { # arguments
    "$draftscope" "$@" >out 2>err </dev/null
    code=$?
    case $code in
    0) ok ;;
    2 | 3 | 4)
        grep -vE '^draftscope: (evaluate|note|rule): ' err >lines
        if [ "$(grep -c '^draftscope: ' lines)" = 1 ] && [ "$(grep -vc '^draftscope: ' lines)" = 0 ]; then
            ok
        else
            not_ok "$*: not one line: $(cat err)"
        fi
        ;;
    *) not_ok "$*: exit code $code: $(cat err)" ;;
    esac
}

# --- one trace of each kind --------------------------------------------------------------------
head -n 3 "$sample/rag.jsonl" >three.jsonl
good trace import three.jsonl --tokenizer bytes -o text.dst
good trace import three.jsonl --tokenizer "$sample/tokenizer.json" -o ids.dst
good trace import "$top/tests/data/import/specbench.jsonl" --tokenizer bytes -o steps.dst
pair="--target markov:8 --draft markov:8 --requests 3 --prompt-tokens 4 --max-tokens 24"
good trace synth $pair -o logprobs.dst
good trace synth $pair --logprobs 8 -o distributions.dst
good trace synth $pair --logprobs 4 -o top.dst
good trace synth $pair --logprobs 8 --temperature 0 -o greedy.dst
good trace reduce distributions.dst --rank-depth 8 -o reduced.dst
good trace import "$top/tests/data/import/acclen.jsonl" --vocab-size 258 -o lengths.dst
traces="text ids steps logprobs distributions top greedy reduced lengths"
"$draftscope" list methods | sed 's/ .*//' >methods
"$draftscope" list rules | sed 's/ .*//' >rules

# --- the table of docs/data.md -----------------------------------------------------------------
# Prints "method rule kind answer" for every cell. "all others": the rules that no other line of the
# method has; "all": every rule.
awk -F'|' -v methods="$(tr '\n' ' ' <methods)" -v rules="$(tr '\n' ' ' <rules)" '
    function words(text, list) { gsub(/[`,]/, " ", text); return split(text, list, " ") }
    function answer(text) { return text ~ /from ranks as deep/ ? "ranks" : text ~ /^ *exact/ ? "yes" : text ~ /^ *no/ ? "no" : "-" }
    /^\| method \| rule \|/ { inside = 1; next }
    !/^\|/ { inside = 0 }
    !inside || /^\|-/ { next }
    {
        lines++; m[lines] = $2; r[lines] = $3
        for (c = 4; c <= 7; c++) cell[lines, c] = answer($c)
        n = words($2, mm); k = words($3, rr)
        for (i = 1; i <= n; i++) for (j = 1; j <= k; j++) if (index(rules " ", rr[j] " ")) named[mm[i] " " rr[j]] = 1
    }
    END {
        split("ids steps logprobs distributions", kind, " ")
        nr = split(rules, all, " ")
        for (l = 1; l <= lines; l++) {
            n = words(m[l], mm)
            others = r[l] ~ /all others/; every = r[l] ~ /^ *all *$/
            k = others || every ? nr : words(r[l], rr)
            for (i = 1; i <= n; i++) for (j = 1; j <= k; j++) {
                rule = others || every ? all[j] : rr[j]
                if (others && (mm[i] " " rule) in named) continue
                for (c = 4; c <= 7; c++) print mm[i], rule, kind[c - 3], cell[l, c]
            }
        }
    }' "$top/docs/data.md" >promises
check "the table has a line for every method" sh -c '
    while read -r m; do grep -q "^$m " promises || { echo "$m is missing"; exit 1; }; done <methods'
check "the table is read" test "$(grep -c ' yes$' promises)" -gt 20 -a "$(grep -c ' no$' promises)" -gt 60
while read -r method rule kind answer; do
    [ "$answer" = ranks ] && kind=reduced answer=yes # trace reduce computes the ranks
    orderly sim $kind.dst --method "$method" --rule "$rule"
    case $answer in
    yes) check "docs/data.md: $method with $rule on $kind: $(cat err)" test $code = 0 ;;
    no) check "docs/data.md: $method with $rule on $kind was to be refused" test $code != 0 ;;
    esac
done <promises

# --- sim, sweep and tune agree -----------------------------------------------------------------
pairs=0
while read -r method; do
    while read -r rule; do
        pairs=$((pairs + 1))
        [ -z "${DSC_TEST_ALL:-}" ] && [ $((pairs % 5)) != 0 ] && continue
        for trace in $traces; do
            orderly sim $trace.dst --method "$method" --rule "$rule"
            alone=$code
            orderly sweep $trace.dst --method "$method" --rule "$rule" -o table.tsv --force
            check "$method, $rule, $trace: sweep $code, sim $alone" test $code = $alone
            rm -f table.tsv table.tsv.part
        done
        for models in "markov:8 --draft markov:8" "iid:.5" "ngram:three.jsonl --draft ngram:three.jsonl"; do
            orderly sim --target $models --method "$method" --rule "$rule" --requests 2 --max-tokens 8 \
                --prompt-tokens 8
        done
    done <rules
    for trace in $traces; do
        orderly tune $trace.dst --method "$method" --resamples 100
        orderly serve $trace.dst --method "$method" --cost linear:0.02,0.0002,0.002 \
            --arrivals closed:2 --requests 4 -o load.tsv --force
        served=$code
        orderly sim $trace.dst --method "$method"
        check "$method, $trace: serve $served, sim $code" test $served = $code
    done
done <methods

# --- every command on every kind of trace ------------------------------------------------------
for trace in $traces; do
    for command in "trace info" "trace info --json" "trace verify" "trace export" "trace export --format csv" \
        "trace export --format jsonl" "theory acceptance --trace" "theory bound --trace" "theory block --trace" \
        "plot acceptance-by-position" "plot heatmap" "report" "validate"; do
        extra=
        case $command in
        plot*) extra="-o figure.svg --force" ;;
        report) extra="-o report.html --force" ;;
        esac
        orderly $command $trace.dst $extra
    done
    orderly trace export $trace.dst --format npy -o columns --force
    orderly trace cut $trace.dst --tokens 8 -o cut.dst --force
    orderly trace merge $trace.dst $trace.dst -o merged.dst --force
    orderly trace reduce $trace.dst -o less.dst --force
    orderly trace append $trace.dst text.dst
done
for figure in $("$draftscope" list figures | sed 's/ .*//'); do
    for table in text.dst three.jsonl "$top/traces/sample/README.md"; do
        orderly plot "$figure" "$table" -o figure.svg --force
    done
done

# --- live --------------------------------------------------------------------------------------
if [ -x "${draftscope%/*}/draftscope-live" ] && [ -d "$demo" ]; then
    printf '{"prompt": "one two"}\n' >prompt.jsonl
    for target in target draft eagle medusa; do
        for draft in none target draft eagle medusa; do
            pair="--target $demo/$target --threads 1"
            [ $draft = none ] || pair="$pair --draft $demo/$draft"
            orderly live profile $pair --tokens 1,2 --context 4 --repeats 1 -o cost.tsv --force
            orderly live record $pair --prompts prompt.jsonl --max-tokens 4 -o record.dst --force
            [ $target = target ] || continue
            while read -r method; do
                orderly live run $pair --prompts prompt.jsonl --max-tokens 4 --method "$method"
            done <methods
        done
        orderly live run --target "$demo/$target" --prompts prompt.jsonl --max-tokens 4 --method none
    done
fi
summary
