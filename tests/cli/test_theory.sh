#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# draftscope theory through the program: published and golden numbers, every kind of input, bounds
# where the probabilities are incomplete, the figures, and every error.
. "${top_srcdir:-.}/tests/cli/common.sh"

accept() {
    good theory accept "$@"
}

# near TOLERANCE K COLUMN=NUMBER...: the row of K of the table in `out` (the first; `pair` in the
# variable pair when set) has these numbers; null and nan are a number called nan.
near() {
    tolerance=$1 k=$2
    shift 2
    for want; do
        got=$(awk -F '\t' -v k="$k" -v name="${want%%=*}" -v pair="${pair-}" '
            /^#/ { next }
            !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
            $at["k"] == k && (pair == "" || $at["pair"] == pair) { print $at[name]; exit }' out)
        [ "$got,${want#*=}" = nan,nan ] && ok ||
            check "${pair-}: $want at k = $k, not '$got'" close_to "$got" "${want#*=}" 0 "$tolerance"
    done
}

columns() {
    grep -v '^#' out | head -n 1
}

# --- golden numbers --------------------------------------------------------------------------
# SpecTr, App. B. The numbers come from an independent program.
good theory accept --bernoulli .25,.5 --num-drafts 2 --json
check "one object" [ "$(wc -l <out)" = 1 ]
check "the worked example" grep -q '"specinfer": 0.8125, .*"kseq": 0.84759705.*"kseq_rho": 1.3903882.*"otm": 0.9375' out

accept --bernoulli .25,.1,.25,.5,.75,1 --num-drafts 1:8
pair='Ber(0.25) to Ber(0.1)'
near 1e-6 1 otm=.85 kseq=.85 kseq_rho=1 specinfer=.85 rejection=.85
near 1e-6 2 otm=1 kseq=.973072 kseq_rho=1.164096 specinfer=.9625 rejection=.85
near 1e-6 4 otm=1 kseq=.999230 kseq_rho=1.198973 specinfer=.997656
near 1e-6 8 otm=1 kseq=.999999 kseq_rho=1.199999 specinfer=.999991
pair='Ber(0.25) to Ber(0.25)'
near 1e-12 7 otm=1 kseq=1 kseq_rho=1 specinfer=1 rejection=1 lemma3_upper=1 otm_wor=1
pair='Ber(0.25) to Ber(0.5)'
near 1e-6 1 otm=.75 lemma3_upper=.75 otm_wor=.75 specinfer_wor=.75 otm_greedy=.75
near 1e-6 2 otm=.9375 kseq=.847597 kseq_rho=1.390388 specinfer=.8125 rejection=.75
near 1e-6 4 otm=1 kseq=.950217 kseq_rho=1.800869 specinfer=.894531
near 1e-6 8 otm=1 kseq=.996211 kseq_rho=1.984846 specinfer=.966629
pair='Ber(0.25) to Ber(0.75)'
near 1e-6 2 otm=.6875 kseq=.648268 kseq_rho=1.593070 specinfer=.625
near 1e-6 4 otm=.933594 kseq=.829887 kseq_rho=2.319550 specinfer=.789062
near 1e-6 8 otm=1 kseq=.962963 kseq_rho=2.851852 specinfer=.933258
pair='Ber(0.25) to Ber(1)'
near 1e-6 2 otm=.4375 kseq=.4375 kseq_rho=1.75 specinfer=.4375
near 1e-6 4 otm=.683594 kseq=.683594 kseq_rho=2.734375 specinfer=.683594
near 1e-6 8 otm=.899887 kseq=.899887 kseq_rho=3.599548 specinfer=.899887
# Both tokens are drafts when two are drawn without replacement.
near 1e-9 2 otm_wor=1 specinfer_wor=1 otm_greedy=1
pair=
check "no bounds, no further columns" [ "$(columns | wc -w)" = 12 ]

accept --uniform 32,1,2,4,32 --num-drafts 1,3,16
pair='U(32) to U(32/4)' # 1 - (1 - 1/r)^k
near 1e-12 1 otm=.25 kseq=.25
near 1e-12 3 otm=.578125 kseq=.578125 kseq_rho=2.3125
near 1e-12 16 otm=.98997740424238145 kseq=.98997740424238145
pair='U(32) to U(32/1)'
near 1e-12 16 otm=1 kseq=1 kseq_rho=1
pair='U(32) to U(32/32)'
near 1e-12 3 otm=.090850830078125 specinfer_wor=.09375 otm_wor=.09375 # 3 of 32
pair=

# --- requests that differ --------------------------------------------------------------------
# 1/E[1/(1 + accepted(L, z))] by Simpson's rule.
good theory speedup --acceptance-by-position .8,.7,.9 --request-sd 1.2 -k 1:3 --draft-cost .05 -o sd.tsv
awk -F '\t' '
BEGIN {
    for (j = 1; j <= 3; j++) logit[j] = log(substr(".8.7.9", 2 * j - 1, 2) / (1 - substr(".8.7.9", 2 * j - 1, 2)))
    for (i = 0; i <= 4000; i++) {
        z = 16 * i / 4000 - 8
        w = exp(-z * z / 2) * (i % 4000 == 0 ? 1 : i % 2 ? 4 : 2)
        all += w
        reach = tokens = 1
        for (j = 1; j <= 3; j++) { tokens += reach *= 1 / (1 + exp(-logit[j] - 1.2 * z)); calls[j] += w / tokens }
    }
}
/^#/ { next }
!names++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
{ d = $at["block_efficiency"] / (all / calls[$at["length"]]) - 1; rows += d * d < 1e-18 }
END { exit rows != 3 }' sd.tsv
check "the effect of a request is the integral" [ $? = 0 ]
good theory length --acceptance-by-position .8,.7,.9 --request-sd 0 -o same.tsv
good theory length --acceptance-by-position .8,.7,.9 -o plain.tsv
check "no spread, no effect" sh -c 'grep -v "^#" same.tsv >a; grep -v "^#" plain.tsv >b; cmp a b'
bad 2 '--request-sd needs --acceptance-by-position' theory length --alpha .8 --request-sd 1
bad 2 'at most 64 rates' theory length --acceptance-by-position "$(yes .9, | head -n 64 | tr -d '\n').9" --request-sd 1

# --- the orders that must hold -----------------------------------------------------------------
accept --zipf 500,1.1,.7 --seed 3 --num-drafts 1:16
check "rejection <= specinfer <= kseq <= otm <= 1, growing with k; the sampler within 1e-6" awk -F '\t' '
    /^#/ { next }
    !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
    {
        e = 1e-9
        s = $at["rejection"]; m = $at["specinfer"]; q = $at["kseq"]; o = $at["otm"]; greedy = $at["otm_greedy"]
        n += s > 0 && s < m + e && m < q + e && q < o + e && o < 1 + e && o > last - e && greedy > 0 &&
            greedy < 1 + e && $at["otm_wor"] > o - e && $at["lemma3_upper"] > o - e && $at["gap"] ~ /^[0-9]/ &&
            $at["gap"] < 1e-6
        last = o
    }
    END { exit n != 16 }' out
check "a bound has its two columns" sh -c "grep -v '^#' out | head -n 1 | grep -q 'specinfer_wor_low	specinfer_wor_high'"
check "there is no number next to bounds" awk -F '\t' '/^#/ { next }
    !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
    { lo = $at["specinfer_wor_low"]; hi = $at["specinfer_wor_high"]; n = $at["specinfer_wor"]
      bad += lo !~ /^[0-9]/ || hi !~ /^[0-9]/ || lo > hi || (n == "nan") != (hi - lo > 1e-10) ||
          (n != "nan" && (n < lo || n > hi)); rows++ }
    END { exit bad || rows != 16 }' out
cp out zipf3
accept --zipf 500,1.1,.7 --seed 3 --num-drafts 1:16
check "the same seed gives the same bytes" cmp -s out zipf3
accept --zipf 500,1.1,.7 --seed 4 --num-drafts 1:16
check "another seed does not" sh -c '! cmp -s out zipf3'
accept --zipf 1,0,0 --num-drafts 64
near 1e-12 64 rejection=1 specinfer=1 kseq=1 otm=1 otm_wor=1 specinfer_wor=1 otm_greedy=1

# --- rows of files -----------------------------------------------------------------------------
# The pair p = (.5, .3, .2), q = (.2, .3, .5) and (.6, .25, .1, .05), (.1, .2, .3, .4).
printf '.5,.3,.2\n.2,.3,.5\n' >p.csv
printf '.2,.3,.5\n.2,.3,.5\n' >q.csv
accept --draft p.csv --target q.csv --num-drafts 2,3,4
pair='row 0'
near 1e-11 2 otm=.86 kseq=.791355287257 kseq_rho=1.456776436283 specinfer=.76 rejection=.7
near 1e-11 3 otm=.988 kseq=.858518605654 kseq_rho=1.792593028269 specinfer=.808
near 1e-11 4 otm=1 kseq=.906007167812 kseq_rho=2.030035839058 specinfer=.8464
pair='row 1'
near 1e-11 2 otm=1 kseq=1 specinfer=1
pair=
accept --draft p.csv --target q.csv --num-drafts 2 --rows 1
check "--rows selects one of two rows" [ "$(grep -c '^row' out)" = 1 ]
pair='row 1'
near 1e-11 2 otm=1 kseq=1
pair=
printf '.6,.25,.1,.05\n' >p4.csv
printf '.1,.2,.3,.4\n' >q4.csv
accept --draft p4.csv --target q4.csv --num-drafts 2,4,8
near 1e-11 2 otm=.5775 kseq=.550560386369 kseq_rho=1.670402575794 specinfer=.5325
near 1e-11 4 otm=.77799375 kseq=.702875509755 kseq_rho=2.685836731702 specinfer=.66223125
near 1e-11 8 otm=.936579568711 kseq=.814473511234 kseq_rho=4.289470224680 specinfer=.776168591836

# A .npy file, version 1: magic, length of the header, the header to byte 128, the numbers.
npy() { # TYPE SHAPE FILE NUMBERS (as printf takes them)
    head=$(printf "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" "$1" "$2")
    { printf '\223NUMPY\001\000\166\000%-117s\n' "$head"; printf "$4"; } >"$3"
}
# 8-byte numbers: .25 .75, .5 .5; 4-byte numbers, both ends first
npy '<f8' '(1, 2)' p8.npy '\0\0\0\0\0\0\320\077\0\0\0\0\0\0\350\077'
npy '<f8' '(2,)' q8.npy '\0\0\0\0\0\0\340\077\0\0\0\0\0\0\340\077'
npy '<f4' '(1, 2)' p4.npy '\0\0\200\076\0\0\100\077'
npy '>f4' '(1, 2)' q4.npy '\077\0\0\0\077\0\0\0'
# A safetensors file: length of the header, the header, the numbers.
safetensors() { # HEADER (at most 200 bytes) FILE NUMBERS
    { printf '\310\0\0\0\0\0\0\0%-200s' "$1"; printf "$3"; } >"$2"
}
safetensors '{"p":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"q":{"dtype":"BF16","shape":[1,2],"data_offsets":[8,12]}}' \
    pq.safetensors '\0\0\200\076\0\0\100\077\0\077\0\077'
for files in 'p8.npy q8.npy' 'p4.npy q4.npy' 'p4.npy q8.npy' 'pq.safetensors:p pq.safetensors:q'; do
    accept --draft "${files% *}" --target "${files#* }" --num-drafts 2
    near 1e-12 2 otm=.9375 specinfer=.8125 rejection=.75
done

# --- logits ------------------------------------------------------------------------------------
# exp of these: 3, 1 and 1, 1; at temperature 1/2: 9, 1 and 1, 1
printf '1.0986122886681098,0\n' >p.logits.csv
printf '0,0\n' >q.logits.csv
accept --draft p.logits.csv --target q.logits.csv --num-drafts 2 --logits
near 1e-12 2 otm=.9375 specinfer=.8125 rejection=.75
accept --draft p.logits.csv --target q.logits.csv --num-drafts 1 --temperature .5
near 1e-12 1 rejection=.6
accept --draft p.logits.csv --target q.logits.csv --num-drafts 1 --temperature 0
near 1e-12 1 rejection=1 # the first of equals is the largest of both
accept --draft p.logits.csv --target q.logits.csv --num-drafts 1 --top-k 1
near 1e-12 1 rejection=.5 # equals of the largest are kept
accept --draft p.logits.csv --target q.logits.csv --num-drafts 1 --top-p .7
near 1e-12 1 rejection=.5 # the draft keeps one token, the target both
printf '3,1\n' >p.counts.csv
printf '5,5\n' >q.counts.csv
accept --draft p.counts.csv --target q.counts.csv --num-drafts 2 --normalize
near 1e-12 2 otm=.9375 specinfer=.8125 rejection=.75

# --- summary -----------------------------------------------------------------------------------
accept --draft p.csv --target q.csv --num-drafts 2,4 --summary
near 2e-6 2 positions=2 otm=.93 specinfer=.88 rejection=.85 kseq=.8956776436285
near 2e-6 4 otm=1 specinfer=.9232
check "quick columns only" [ "$(columns | wc -w)" = 8 ]
cp out one
accept --draft p.csv --target q.csv --num-drafts 2,4 --summary --threads 2
grep -v '^# command' one >a
grep -v '^# command' out >b
check "the number of threads does not change the result" cmp -s a b
accept --draft p.csv --target q.csv --num-drafts 2 --summary --complete
near 1e-11 2 otm=.93 kseq=.8956776436285 otm_wor=.992857142857 lemma3_upper=.93
good theory accept --draft p.csv --target q.csv --num-drafts 2 --summary --progress json
check "progress as JSON lines" grep -q '"total": 2, "unit": "positions"' err

# --- recorded rows -----------------------------------------------------------------------------
# ln of .25 .75 and .5 .5, rounded up, so that nothing is left for other tokens; then lists that leave
# a quarter and a half unlisted
rows='"draft_rows": [[[7, -1.386294], [9, -0.287682]], [[7, -0.693147], [8, -1.386294]]]'
rows="$rows, \"target_rows\": [[[7, -0.693147], [9, -0.693147]], [[7, -0.693147]]]"
printf '{"prompt": [1], "output": [7, 9], %s}\n{"prompt": [1], "output": [7, 7], %s}\n' "$rows" "$rows" >rows.jsonl
good trace import --format jsonl --vocab-size 16 rows.jsonl -o rows.dst
accept --trace rows.dst --request 1 --position 0 --num-drafts 2
near 1e-6 2 otm=.9375 specinfer=.8125 rejection=.75
check "the row names its position" grep -q '^request 1 position 0	2	' out
check "the hash is in the comments" grep -q '^# trace_hash: [0-9a-f]' out
accept --trace rows.dst --request 0 --num-drafts 1:3
check "two positions, three lines each" [ "$(grep -c '^request 0 position' out)" = 6 ]
pair='request 0 position 0'
near 1e-6 2 otm=.9375 otm_low=.9375 otm_high=.9375
pair='request 0 position 1'
# target: a half on 7, a half anywhere; all of it may be where the draft never is
near 1e-6 1 rejection=nan rejection_low=.5 rejection_high=1 otm=nan otm_low=.5 otm_high=1 otm_wor_low=.5 \
    otm_wor_high=1 specinfer_wor_low=.5 otm_greedy_low=.5 lemma3_upper_high=1 gap=nan
pair=
check "ranges: low <= high, and no number where there is a range" awk -F '\t' '/^#/ { next }
    !header { for (i = 1; i <= NF; i++) { at[$i] = i; name[i] = $i } n = NF; header = 1; next }
    { for (i = 1; i <= n; i++) if (name[i] ~ /_low$/) {
        q = substr(name[i], 1, length(name[i]) - 4); lo = $i; hi = $(i + 1)
        bad += !(lo < hi + 1e-12) || hi !~ /^[0-9]/ || ($at[q] == "nan") != (hi - lo > 1e-10); rows++ } }
    END { exit bad || !rows }' out
accept --trace rows.dst --summary --num-drafts 1,2
near 1e-6 2 positions=4 rejection=nan
check "means of ranges" grep -q 'otm_low	otm_high' out
good theory accept --trace rows.dst --request 0 --num-drafts 2 --json
check "null where there is a range" grep -q '"otm": null' out

# --- bad calls: exit 2 ---------------------------------------------------------------------------
bad 2 'theory expects a command: accept, speedup' theory
bad 2 'did you mean accept' theory acept
bad 2 'no distributions given' theory accept
bad 2 'one source' theory accept --bernoulli .1,.2 --zipf 10,1,1
bad 2 '--temperature and --bernoulli cannot be combined' theory accept --bernoulli .1,.2 --temperature 1
bad 2 '--request and --draft cannot be combined' theory accept --draft p.csv --target q.csv --request 1
bad 2 'also needs --target FILE' theory accept --draft p.csv
bad 2 'no distributions given' theory accept --target p.csv
bad 2 'from 0 to 1' theory accept --bernoulli 1.5,.5
bad 2 'from 0 to 1' theory accept --bernoulli .5,nan
bad 2 'P,Q' theory accept --bernoulli .5
bad 2 '0.1 is given twice' theory accept --bernoulli .5,.1,.1
bad 2 'divide' theory accept --uniform 32,3
bad 2 '64 does not divide 32' theory accept --uniform 32,64
bad 2 'V,S,NOISE' theory accept --zipf 100,1
bad 2 'integer' theory accept --zipf 0,1,1
bad 2 'from 0 to 100' theory accept --zipf 10,1,-1
bad 2 'from 1 to 64' theory accept --bernoulli .5,.1 --num-drafts 0
bad 2 'from 1 to 64' theory accept --bernoulli .5,.1 --num-drafts 65
bad 2 '2 is given twice' theory accept --bernoulli .5,.1 --num-drafts 2,1:3
bad 2 '--complete requires --summary' theory accept --bernoulli .5,.1 --complete
bad 2 'there is no row 2' theory accept --draft p.csv --target q.csv --rows 0:2
bad 2 'did you mean --bernoulli' theory accept --bernouli .5,.1
bad 2 'too many' theory accept p.csv --draft p.csv --target q.csv
bad 2 'not to logits' theory accept --draft p.csv --target q.csv --logits --normalize
bad 2 "--top-p: '0' is not" theory accept --draft p.csv --target q.csv --top-p 0
bad 2 "--temperature: '-1' is not" theory accept --draft p.csv --target q.csv --temperature -1
bad 2 '--trace needs --request I' theory accept --trace rows.dst
bad 2 'there is no request 2' theory accept --trace rows.dst --request 2
bad 2 'there is no output token 2' theory accept --trace rows.dst --request 0 --position 2
bad 2 '--position requires --request' theory accept --trace rows.dst --position 1 --summary
bad 2 'unlisted' theory accept --trace rows.dst --request 0 --temperature .5
good theory accept --bernoulli .5,.1 -o kept.tsv
bad 2 'exists already' theory accept --bernoulli .5,.2 -o kept.tsv
good theory accept --bernoulli .5,.2 -o kept.tsv --force

# --- bad input: exit 4 ---------------------------------------------------------------------------
rows_of() { # words, draft row
    printf '%s\n' "$2" >bad.csv
    bad 4 "$1" theory accept --draft bad.csv --target q.csv --rows 0
}
bad 4 'absent.csv' theory accept --draft absent.csv --target q.csv
bad 4 'p4.csv has a vocabulary of 4 and --target q.csv of 3; they must match' theory accept --draft p4.csv --target q.csv
printf '.5,.3,.2\n' >p1.csv
bad 4 'has 1 positions and --target q.csv has 2; they must match' theory accept --draft p1.csv --target q.csv
for row in '.5,-.1,.6' '-.5,.75,.75' '.5,nan,.5' '.5,inf,.5' '.5,.3,.3' '.5,.3,.19' '0,0,0'; do
    printf '%s\n.2,.3,.5\n' "$row" >bad.csv
    bad 4 'bad.csv' theory accept --draft bad.csv --target q.csv
done
printf '.5,.3,.3\n.2,.3,.5\n' >bad.csv
bad 4 'row 0: the sum is 1.1, not 1: these look like logits (use --logits) or unnormalized probabilities (use --normalize)' \
    theory accept --draft bad.csv --target q.csv
bad 4 'row 0' theory accept --draft bad.csv --target q.csv --summary
printf '0,0,0\n.2,.3,.5\n' >bad.csv
bad 4 'bad.csv' theory accept --draft bad.csv --target q.csv --normalize
printf '.5,x,.5\n' >bad.csv
bad 4 'bad.csv' theory accept --draft bad.csv --target q.csv
printf '.5,.5\n.5\n' >bad.csv
bad 4 'bad.csv' theory accept --draft bad.csv --target q.csv
: >bad.csv
bad 4 'bad.csv' theory accept --draft bad.csv --target q.csv
head -c 100 p8.npy >bad.npy
bad 4 'bad.npy' theory accept --draft bad.npy --target q8.npy
head -c 136 p8.npy >bad.npy
bad 4 'bad.npy' theory accept --draft bad.npy --target q8.npy
npy '<f8' '(99999999999, 99999999999)' bad.npy '\0'
bad 4 'bad.npy' theory accept --draft bad.npy --target q8.npy
npy '|O' '(1, 2)' bad.npy '\0\0\0\0\0\0\0\0'
bad 4 'bad.npy' theory accept --draft bad.npy --target q8.npy
printf 'no numbers at all' >bad.npy
bad 4 'bad.npy' theory accept --draft bad.npy --target q8.npy
bad 4 'pq.safetensors' theory accept --draft pq.safetensors:r --target q8.npy
safetensors '{"p":{"dtype":"F32","shape":[1,2],"data_offsets":[0,800]}}' bad.safetensors '\0\0\0\0'
bad 4 'bad.safetensors' theory accept --draft bad.safetensors:p --target q8.npy
bad 4 'absent.dst' theory accept --trace absent.dst --summary
printf '{"prompt": [1], "output": [7, 9]}\n' >bare.jsonl
good trace import --format jsonl --vocab-size 16 bare.jsonl -o bare.dst
bad 4 'rows.draft' theory accept --trace bare.dst --summary

# --- the other commands ----------------------------------------------------------------------
good theory --help
for command in $(sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' out); do
    good theory "$command" --help
    check "help of $command: usage, columns and formulas" \
        sh -c "grep -q '^Usage: draftscope theory $command' out && grep -q '^Columns' out && grep -q '^Formulas' out"
done
# closed NUMBER-OF-ROWS COLUMN=VALUE...: the last row of the table in `out`; a column that is not
# there is called none.
closed() {
    rows=$1
    shift
    check "$rows rows" [ "$(grep -vc '^#' out)" = $((rows + 1)) ]
    for want; do
        got=$(awk -F '\t' -v name="${want%%=*}" '/^#/ { next }
            !n { for (n = 1; n <= NF; n++) at[$n] = n; next }
            END { print name in at ? $at[name] : "none" }' out)
        [ "$got" = "${want#*=}" ] && ok || check "$want, not '$got'" close_to "$got" "${want#*=}" 0 1e-12
    done
}
good theory speedup --alpha .5,.8 -k 1,3 --draft-cost .2,.1
closed 8 alpha=.8 length=3 draft_cost=.1 accepted=1.952 block_efficiency=2.952 \
    speedup=2.2707692307692307 iid_accepted=none simulated_accepted=none
check "costs vary slowest, lengths fastest" [ "$(grep -v '^#' out | awk 'NR > 1 { printf "%s %s %s,", $3, $1, $2 }')" = \
    "0.2 0.5 1,0.2 0.5 3,0.2 0.8 1,0.2 0.8 3,0.1 0.5 1,0.1 0.5 3,0.1 0.8 1,0.1 0.8 3," ]
good theory speedup --histogram 2,2,4
closed 2 length=2 accepted=1.25 iid_accepted=1.25 iid_error_percent=0
good theory speedup --acceptance-by-position 1,0 -k 1 # a + a^2 = 1: 1 + a tokens of the first draft token, not 2
closed 1 length=1 iid_accepted=.6180339887498949 iid_error_percent=-19.098300562505255
good theory length --alpha .5 --draft-cost .1 -k 1,3 # 1.5/1.1, 1.75/1.2, 1.875/1.3, 1.9375/1.4
closed 2 best_length=2 speedup=1.4583333333333333 near_from=2 near_to=2 used_length=3 \
    used_speedup=1.4423076923076923 loss_percent=1.0989010989010989
good theory length --acceptance-by-position 1,0 --draft-cost .1
closed 1 best_length=1 iid_best_length=2 used_length=none
good trace import "$top/tests/golden/recorded.jsonl" --vocab-size 64 -o recorded.dst
good theory length --trace recorded.dst # 128 tokens in 63 calls
check "the longest recorded draft is that of the longest step" [ "$(grep -vc '^#' out)" = 8 ]
good sim recorded.dst --method recorded --drafter eagle -k 4 --json
field() { sed 's/.*"'"$1"'": *\([^,}]*\).*/\1/'; }
measured=$(field block_efficiency <out)
good theory length --trace recorded.dst --drafter eagle --fit-length 2 --max-speculative-tokens 5 --json
check "theory length measures what sim replays" [ "${#measured}" -gt 4 -a \
    "$(sed -n 4p out | field block_efficiency_measured)" = "$measured" ]
bad 2 'no accept lengths of drafter x' theory length --trace recorded.dst --drafter x
bad 2 'replaces --alpha' theory length --trace recorded.dst --alpha .5
bad 2 'need --trace' theory length --alpha .5 --held-out
bad 2 'one value is needed' theory length --trace recorded.dst --draft-cost .1,.2
good theory ouroboros --alpha .5 -k 2 --phrase 1 --draft-cost .2 --tokens-per-forward 2
closed 1 block_efficiency=1.875 speedup=1.5625 speculative_speedup=1.25 gain=1.25
good theory pearl --alpha .5 --ratio 2 -k 1,2 --form speculative,pearl
closed 4 form=pearl window=2 tokens_per_iteration=1.2 speedup=1.2 best_window=2 accepted=1
good theory tree --acceptance-by-rank .5,.25 --budget 3 --depth 1 --draft-cost .1 --summary
closed 1 tree=best nodes=3 depth=1 expected_tokens=1.75
bad 2 'exceeds --max-speculative-tokens 4' theory length --alpha .5 --max-speculative-tokens 4 -k 5
bad 2 'exactly one of' theory speedup --alpha .5 --histogram 1,2
good theory speedup --histogram 5,0,0 # a position that no step reached has no influence
closed 2 length=2 accepted=0 block_efficiency=1
bad 2 'cannot be combined' theory pearl --published --alpha .5
bad 2 'give --alpha and --ratio' theory pearl --alpha .5
good theory pearl --published
check "all of PEARL's tables are within tolerance" sh -c "! grep -q '	no$' out && grep -qv '^#' out"
if [ -c /dev/full ]; then
    "$draftscope" theory accept --bernoulli .5,.1 >/dev/full 2>err
    check "full disk" [ $? = 1 ]
    check "the error names the full disk" grep -qi 'no space' err
fi

# --- figures -----------------------------------------------------------------------------------
if command -v gnuplot >/dev/null 2>&1; then
    good theory accept --bernoulli .25,.1,.25,.5,.75,1 --num-drafts 1:16 -o b.tsv
    good theory accept --uniform 32,1,2,4,8,16,32 --num-drafts 1:16 --json -o u.jsonl
    good theory accept --trace rows.dst --request 0 --num-drafts 1:8 -o rows.tsv
    good plot spectr-bernoulli b.tsv -o b.svg
    good plot spectr-uniform u.jsonl -o u.svg
    good plot accept-vs-k rows.tsv -o rows.svg
    good plot accept-vs-k b.tsv --where 'pair=Ber(0.25) to Ber(0.5)' -o -
    check "drawn in the terminal" grep -q 'number of drafts K per position' out
    for figure in b u rows; do
        check "$figure.gp and its data are written" [ -s $figure.gp ] && [ -s $figure.data.tsv ]
    done
    check "five panels of 16 points" [ "$(grep -c '^Ber' b.data.tsv)" = 80 ]
    check "a band where a range is drawn" grep -q filledcurves rows.gp
    bad 2 'theory accept --bernoulli' plot spectr-bernoulli u.jsonl -o x.svg
    bad 2 'theory accept --uniform' plot spectr-uniform b.tsv -o x.svg
    printf 'k\tspeedup\n1\t2\n' >other.tsv
    bad 2 "needs a column 'pair'" plot accept-vs-k other.tsv -o x.svg
    seq 1 8 | awk '{ print ".5,.5" }' >many.csv
    good theory accept --draft many.csv --target many.csv --num-drafts 1 -o many.tsv
    bad 2 'filter by pair' plot accept-vs-k many.tsv -o x.svg
    good theory accept --draft many.csv --target many.csv --summary -o mean.tsv
    good plot accept-vs-k mean.tsv -o mean.svg
    good report b.tsv mean.tsv -o report.html
    check "figures in the report" grep -q 'SpecTr Figures 4 and 6' report.html
fi

good theory speedup --acceptance-by-position .9,.8,.7,.5 --steps 10000000 --seed 3 -o simulated.tsv
check "simulated steps agree with the closed form" awk -F '\t' '/^#/ { next }
    !n { n = split($0, name); for (i = 1; i <= n; i++) at[name[i]] = i; next }
    { d = $at["simulated_accepted"] - $at["accepted"]; e = $at["simulated_error"]
      rows += e > 0 && d < 5 * e && d > -5 * e }
    END { exit rows != 4 }' simulated.tsv
bad 2 "'-1' is not an integer" theory speedup --alpha .5 --steps -1

# --- certify -------------------------------------------------------------------------------------
# The rules and the bound on a chain of models: the theory is contradicted at no position, rules are
# in their order, and the table does not depend on the threads.
good trace synth --target markov:30,noise=.8 --logprobs 30 --requests 24 --max-tokens 80 -o chain.dst
good theory certify chain.dst -K 1,2,4 -k 3 --threads 1 -o certify.tsv
good theory certify chain.dst -K 1,2,4 -k 3 --threads 2 -o again.tsv
check "a line counts where block exceeds GBV" grep -qE \
    'block <= GBV, .* with GBV of 1 sequences at 0 of [0-9]+ positions \(0 %\), of 2 sequences at [0-9]+ of' err
check "the same with two threads" \
    sh -c 'grep -v "^# command" certify.tsv >a; grep -v "^# command" again.tsv | cmp - a'
cell() { # RULE DRAFTS LENGTH COLUMN
    awk -F '\t' -v rule="$1" -v k="$2" -v l="$3" -v name="$4" '
        /^#/ { next }
        !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
        $at["rule"] == rule && $at["drafts"] == k && $at["num_speculative_tokens"] == l {
            print $at[name] }' certify.tsv
}
ordered() { # LESS MORE
    check "$1 <= $2" holds 'a <= b + 1e-9' a="$1" b="$2"
}
for l in 1 2 3; do
    ordered "$(cell rejection '' $l accepted)" "$(cell block '' $l accepted)"
    ordered "$(cell block '' $l accepted)" "$(cell bound 1 $l accepted)"
    check "one sequence is a block" \
        [ "$(cell block '' $l accepted)" = "$(cell gbv 1 $l accepted)" ]
    for k in 2 4; do
        ordered "$(cell gbv $k $l accepted)" "$(cell bound $k $l accepted)"
    done
done
for rule in rejection block; do
    check "$rule: nothing above the bound" [ "$(cell $rule '' 1 above_bound)" = 0 ]
    check "block is never below rejection" [ "$(cell block '' 3 below_block)" = 0 ]
done
check "gbv: nothing above the bound" [ "$(cell gbv 4 1 above_bound)" = 0 ]
good theory accept --trace chain.dst --summary -K 2 --complete -o accept.tsv
otm=$(awk -F '\t' '/^#/ { next } !header { for (i = 1; i <= NF; i++) at[$i] = i; header = 1; next }
    { print $at["otm"] }' accept.tsv)
check "the bound of one token is the optimum ($otm)" close_to "$otm" "$(cell bound 2 1 accepted)" 0 1e-9
command -v gnuplot >/dev/null && good plot rules certify.tsv -o certify.svg
good trace synth --target markov:30 --requests 2 --max-tokens 8 -o without.dst
bad 2 'lacks the distributions of both models' theory certify without.dst
bad 2 'one trace expected' theory certify
bad 2 "--num-drafts: '65'" theory certify chain.dst -K 65
bad 2 'at most 16' theory certify chain.dst -K 1:17
good trace synth --target markov:30 --logprobs 5 --requests 2 --max-tokens 8 -o listed.dst
bad 4 'request 0: position 0: ' theory certify listed.dst
bad 4 '(--logprobs dense)' theory certify listed.dst

# --- regret --------------------------------------------------------------------------------------
# By hand: speedups 2 and 1.5 of constant lengths, 1.6 of a controller, 2.5 of an oracle.
tab=$(printf '\t')
tr ' ' "$tab" >by-hand.tsv <<'END'
method rule k controller requests speedup
ngram greedy 1 - 9 1.5
ngram greedy 2 - 9 2
adaptive-ngram greedy - ucb 9 1.6
adaptive-ngram greedy - oracle 9 2.5
hf-dynamic greedy - - 9 4
END
sed "s/$tab-/$tab/g" by-hand.tsv >table.tsv
good theory regret table.tsv -o regret.tsv
grep -v '^#' regret.tsv >found
tr ' ' "$tab" >expected <<'END'
group rank method parameters length speedup regret_fixed regret_bound
rule=greedy 1 hf-dynamic  adaptive 4 -0.5 -0.375
rule=greedy 2 adaptive-ngram controller=oracle bound 2.5 -0.19999999999999996 0
rule=greedy 3 ngram k=2 fixed 2 0 0.25
rule=greedy 4 adaptive-ngram controller=ucb adaptive 1.6 0.25 0.5625
rule=greedy 5 ngram k=1 fixed 1.5 0.33333333333333326 0.6666666666666667
END
check "regret by hand: $(diff found expected)" cmp -s found expected
good sweep --target markov:20,3 --requests 12 --max-tokens 40 --batch-size 1,8 --rule greedy,rejection \
    --method draft-model,adaptive --num-speculative-tokens 1:7 --controller ema,ucb \
    --cost linear:.02,.0005,.002 -o controllers.tsv
good theory regret controllers.tsv -o regret.tsv --force
check "four groups have a fastest constant length" \
    [ "$(awk -F '\t' '$5 == "fixed" && $7 == 0' regret.tsv | wc -l)" = 4 ]
grep -v "^ngram" table.tsv >adaptive.tsv
bad 4 'has a constant draft length' theory regret adaptive.tsv
bad 4 'sweep writes such tables' theory regret expected
bad 2 'a result table of sweep' theory regret

summary
