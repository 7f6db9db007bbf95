#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The verdict of serve by load: over loads, methods and SLOs it is that of the rows' own numbers and it
# does not flip from load to load; around the cost at which speculation stops paying, what is
# recommended is faster in the table, cheap drafts are recommended and expensive ones are not; an
# oracle never wins, an SLO and an engine count, any number of threads gives the same answer.
# advise simulates the loads of logs, and the report has a section on them.
# $iid is a list of words.
# shellcheck disable=SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst

comment() { # FILE KEY: its value
    sed -n "s/^# $2: //p" "$1"
}
says() { # FILE KEY TEXT
    case $(comment "$1" "$2") in
    *"$3"*) ok ;;
    *) not_ok "$2 of $1 is '$(comment "$1" "$2")', without '$3'" ;;
    esac
}
# speed FILE METHOD K LOAD: tokens per second.
speed() {
    awk -F '\t' -v m="$2" -v k="$3" -v l="$4" '/^#/ { next }
        !head++ { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["method"] == m && (m == "none" || $c["num_speculative_tokens"] == k) &&
            $c["arrivals"] == l { print $c["tokens_per_s"] }' "$1"
}

# Every verdict of a table against its rows.
judged() { # FILE
    wrong=$(awk -f "$top/tests/cli/verdicts.awk" "$1")
    check "verdicts of $1 are those of its rows: $wrong" test -z "$wrong"
}
# The advice at each load in the order of the file: on, off or none.
advice() { # FILE
    sed -n 's/^# load_verdict_[0-9]*: [^ ]*: \(run\|leave\|no\).*/\1/p' "$1" | sed 's/run/on/; s/leave/off/; s/no/none/' | tr '\n' ' '
}
# Whether utility never jumps: between two loads that differ by little, the gain of the best row changes
# by less than a factor.
gentle() { # FILE FACTOR
    awk -F '\t' -v most="$2" '/^#/ { next }
        !head++ { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["advice"] != "" && $c["method"] != "none" && $c["gain_low"] != "nan" {
            at = $c["qps"]
            if (seen++ && (gain / $c["gain"] > most || $c["gain"] / gain > most))
                bad = 1
            gain = $c["gain"]
        }
        END { exit bad || seen < 4 }' "$1"
}

# --- around the threshold ------------------------------------------------------------------------
# A pass costs 20 ms and each token between nothing and 50 ms: from where speculation always pays
# to where it never does, over the loads at which that changes.
iid="--target iid:0.7 --method draft-model --num-speculative-tokens 2,4 --max-tokens 60"
on=0 off=0
for token in 0 0.0005 0.002 0.005 0.02 0.05; do
    good serve $iid --prompt-tokens 1 --cost linear:0.02,$token,0.001 --arrivals closed:1,4,16 \
        --requests 160 -o cost.tsv --force
    judged cost.tsv
    for load in 1 2 3; do
        verdict=$(comment cost.tsv load_verdict_$load)
        k=$(echo "$verdict" | sed -n 's/.*num-speculative-tokens=\([0-9]*\).*/\1/p')
        case $verdict in
        *": run draft-model"*)
            on=$((on + 1))
            check "$token s: $verdict" awk -v x="$(speed cost.tsv draft-model "$k" "${verdict%%: *}")" \
                -v y="$(speed cost.tsv none 0 "${verdict%%: *}")" 'BEGIN { exit !(y > 0 && x > y) }'
            [ $token = 0.05 ] && not_ok "expensive drafts are recommended: $verdict"
            ;;
        *": leave speculation off"*)
            off=$((off + 1))
            [ $token = 0 ] && not_ok "cheap drafts are not recommended: $verdict"
            ;;
        *) not_ok "$token s: no verdict: $verdict" ;;
        esac
    done
done
check 'both verdicts occur' test "$on" -gt 3 -a "$off" -gt 3
says cost.tsv load_answer_1 'speculation pays at no load, 1 to 16 clients; at 1 to 16 clients leave'
good serve $iid --cost linear:0.02,0.002,0.001 --arrivals closed:1,2,4,8,16,32 --requests 160 -o up.tsv
says up.tsv load_answer_1 'speculation pays up to a load between '

# --- loads, methods and SLOs ---------------------------------------------------------------------
rag="serve rag.dst --method ngram,suffix,llma --num-speculative-tokens 4 --cost linear:0.02,0.0002"
for slo in '' ttft=0.3 tpot=0.03 ttft=1,tpot=0.1; do
    for arrivals in poisson:1:9:1 gamma:2:8:2,2 constant:2:8:3 closed:1,8,64; do
        good $rag --arrivals $arrivals ${slo:+--slo $slo} -o grid.tsv --force
        judged grid.tsv
    done
done
good serve rag.dst --method suffix --num-speculative-tokens 4 --cost linear:0.02,0.0002 --arrivals poisson:2:5.6:0.2 \
    --slo ttft=1,tpot=0.1 -o fine.tsv
judged fine.tsv
check 'the gain changes gently with the load' gentle fine.tsv 1.15
case $(advice fine.tsv) in
'on on on on on on on on on on on on on on '*) ok ;;
*) not_ok "the advice flips: $(advice fine.tsv)" ;;
esac
# An engine that costs the same for any number of tokens: speculation alone keeps the queue stable.
good serve rag.dst --method suffix --num-speculative-tokens 4 --cost linear:0.02,0 --max-num-seqs 4 \
    --arrivals poisson:0.4:1.6:0.2 --slo ttft=1 -o alone.tsv
judged alone.tsv
check 'it is on at every load' sh -c \
    'test "$(grep -c "^# load_verdict_.*: run suffix" alone.tsv)" = "$(grep -c "^# load_verdict" alone.tsv)"'
check 'where speculation alone keeps up it is on' grep -q '; without speculation the queue grows$' alone.tsv
$draftscope $rag --arrivals poisson:2,4 --json >each.json
check 'JSON has the verdicts' grep -q '^{"#": {.*"load_verdict_2": "poisson:4: run ' each.json
check 'and the rows' test "$(grep -c '"advice": "run"' each.json)" = 2

# What the intervals need: the elasticity is that of two runs, over all requests of one that drains.
column() { # FILE COLUMN LOAD: of ngram
    awk -F '\t' -v name="$2" -v l="$3" '/^#/ { next }
        !head++ { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $1 == "ngram" && $c["arrivals"] == l { print $c[name] }' "$1"
}
good serve rag.dst --method ngram --num-speculative-tokens 4 --cost linear:0.02,0.0002 --drain --requests 400 \
    --arrivals poisson:4,3.8 --slo tpot=0.03 -o twice.tsv
set -- poisson:4 poisson:3.8
check 'load_elasticity is that of two loads' holds \
    '(log((.1 + .9 * g / r) / e) - log((.1 + .9 * h / s) / f)) / log(1 / .95) - x < 1e-6 &&
     (log((.1 + .9 * g / r) / e) - log((.1 + .9 * h / s) / f)) / log(1 / .95) - x > -1e-6 && g / r < .9 && x < -.5' \
    g="$(column twice.tsv goodput $1)" r="$(column twice.tsv requests_per_s $1)" e="$(column twice.tsv e2e_mean_s $1)" \
    h="$(column twice.tsv goodput $2)" s="$(column twice.tsv requests_per_s $2)" f="$(column twice.tsv e2e_mean_s $2)" \
    x="$(column twice.tsv load_elasticity $1)"

# --- what counts ---------------------------------------------------------------------------------
rag="serve rag.dst --method ngram,suffix --num-speculative-tokens 4 --cost linear:0.02,0.0004"
good $rag --arrivals poisson:1:9:4 --threads 1 -o a.tsv
good $rag --arrivals poisson:1:9:4 --threads 3 -o b.tsv
grep -v '^# command' a.tsv >a
grep -v '^# command' b.tsv >b
check 'the same answer for any number of threads' cmp a b
for share in 1/3 2/3 3/3; do
    good $rag --arrivals poisson:1:9:4 --shard $share -o "part${share%/3}.tsv"
done
good merge part1.tsv part2.tsv part3.tsv -o merged.tsv
check 'merged shards have the table and the answer of one process' cmp a.tsv merged.tsv
for table in a.tsv merged.tsv; do
    judged "$table"
done
says a.tsv load_verdict_1 'as fast as without speculation from arrival to last token (95 %: '
says a.tsv load_verdict_3 'the queue grows'
says a.tsv load_answer_1 'Poisson arrivals: speculation pays up to a load between 1 and '
good $rag --arrivals closed:1 --requests 100 --speculation fixed --speculation oracle -o oracle.tsv
case $(comment oracle.tsv load_verdict_1) in
*oracle*) not_ok 'an oracle is recommended' ;;
*': run '*) ok ;;
*) not_ok "no recommendation next to an oracle" ;;
esac
good $rag --arrivals poisson:1 --slo ttft=9,tpot=0.03 -o slo.tsv
says slo.tsv slo 'ttft=9,tpot=0.03'
judged slo.tsv
says slo.tsv load_verdict_1 'times the utility of no speculation'
says slo.tsv load_verdict_1 'within the SLO '
good serve rag.dst --method ngram,llma --ngram.num-speculative-tokens 4 --llma.num-speculative-tokens 8 \
    --ngram.semantics vllm --cost linear:0.02,0.0002 --arrivals closed:1,2 --requests 100 --engine vllm -o vllm.tsv
judged vllm.tsv
says vllm.tsv load_verdict_1 ': run ngram num-speculative-tokens=4 semantics=vllm'
says vllm.tsv load_best_of_all_1 'vllm has no setting for it: it has no such method'
check 'and is printed' grep -q '(best of all, no setting of vllm: llma num-speculative-tokens=8)' out
good serve rag.dst --method ngram --num-speculative-tokens 4 --cost linear:0.02,0.0002 \
    --arrivals closed:1,2 --requests 100 --engine vllm -o other.tsv
says other.tsv load_verdict_1 'no recommendation: vllm has no setting for any of these configurations'
says other.tsv load_answer_1 'Closed loop: no verdict'
bad 2 'the engine supports none of the methods' serve rag.dst --method ngram --cost linear:0.02,0.0002 \
    --arrivals closed:1 --engine tensorrt-llm
check 'settings of the engine' grep -q '^# engine_line_2: vllm serve MODEL --speculative-config' vllm.tsv
good serve $iid --cost linear:0.02,0.0008,0.001 --arrivals closed:1,16,128 --requests 200 --engine vllm \
    --draft-kind eagle3 -o tiers.tsv
check 'a draft length for each number of running requests' grep -qE \
    '^# engine_line_2: .*"eagle3".*"num_speculative_tokens_per_batch_size": \[\[1, 1, 4\], ' tiers.tsv
check 'a person sees the answer' grep -q '^Closed loop: speculation pays' out
good serve rag.dst --method none --cost linear:0.02,0.0004 --arrivals closed:1 --requests 50 -o none.tsv
check 'nothing that drafts: no answer' test -z "$(comment none.tsv load_answer_1)" -a ! -s out
good $rag --arrivals closed:1 --requests 20 --per-request -o each.tsv
check 'a row per request: no answer' test -z "$(comment each.tsv load_answer_1)"
good $rag --arrivals closed:1 --requests 1 --drain -o few.tsv
says few.tsv load_verdict_1 'no recommendation: there are fewer than 2 blocks'

# --- advise --------------------------------------------------------------------------------------
good advise rag.dst --cost linear:0.02,0.0004 --batch-size 1 --arrivals closed:1,2 -o load
check 'the command is printed' grep -q '^  draftscope serve rag.dst --arrivals closed:1,2 --cost ' out
check 'and the answer' grep -q '^Closed loop: speculation pays at every load, 1 to 2 clients' out
check 'rows are written' grep -q '^# load_answer_1: ' load-load.tsv
good advise rag.dst --cost linear:0.02,0.0004 --batch-size 1 -o plain
check 'without arrivals no load' test ! -e plain-load.tsv
i=0
while [ $i -lt 12 ]; do
    printf '{"prompt": "a b c d %s", "output": "a b c d a b c d %s", "metadata": {"arrival_s": %s}}\n' $i $i $((i * 2))
    i=$((i + 1))
done >timed.jsonl
good advise timed.jsonl --tokenizer bytes --cost linear:0.02,0.0004 --batch-size 1 -o timed
check 'recorded arrivals are served' grep -q '^recorded:x4 ' out
rm timed.tsv timed.html
bad 2 'timed-load.tsv exists already' advise timed.jsonl --tokenizer bytes --cost linear:0.02,0.0004 -o timed
wrong="advise rag.dst --cost linear:0.02,0.0004 -o wrong"
bad 2 '--slo needs loads' $wrong --slo ttft=1
bad 2 '--prefill-time needs loads' $wrong --prefill-time 0.001
bad 2 "--slo: 'ttft'" $wrong --slo ttft
bad 2 "'poisson' is not auto, closed:CLIENTS" $wrong --arrivals poisson
bad 2 '0 of 29 requests have arrival_s' $wrong --arrivals recorded
bad 2 '--arrivals needs costs in seconds' advise rag.dst --arrivals closed:1 -o wrong
printf 'tokens\ttarget_s\n1\t1\n64\t2\n' >cost.table
bad 2 '--prefill-time S gives' advise rag.dst --cost table:cost.table --arrivals closed:1 -o wrong
check 'a refused command leaves nothing' sh -c '! ls -d wrong* 2>/dev/null'

# --- report --------------------------------------------------------------------------------------
if command -v gnuplot >/dev/null; then
    good report a.tsv vllm.tsv -o load-report.html
    check 'the first screen says up to which load' grep -q \
        '<strong>Poisson arrivals: speculation pays up to a load between ' load-report.html
    check 'a chapter on loads' grep -q '<h2>Serving under load</h2>' load-report.html
    check 'the verdict at each load' grep -q '<td class="text">poisson:5</td>' load-report.html
    check 'and what its gain is made of' grep -q '<td class="text">e2e_mean_s [0-9.]*, without [0-9.]*' load-report.html
    check 'settings of the engine' grep -q 'vllm serve MODEL --speculative-config' load-report.html
    check 'figures by load' grep -q 'Line chart: .*tokens per second by ' load-report.html
    check 'no lists of sums' sh -c '! grep -q "<th scope=\"col\" class=\"text\">block_" load-report.html'
    good report a.tsv --latex -o tex
    check 'LaTeX, too' grep -q 'speculation pays up to a load between' tex/report.tex
    check 'the report of advise has both verdicts' sh -c \
        'grep -q "Closed loop: speculation pays" load.html && grep -q "batch size 1" load.html'
else
    skip 'reports' 'no gnuplot'
fi
summary
