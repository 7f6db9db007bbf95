#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program as its user meets it: the whole workflow, and every wrong use of it. Each bad call must
# end with the documented exit code and one line on stderr that names what is wrong, where and the limit.
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
tokenizer=$sample/tokenizer.json

value() { # key of a one-line JSON object on stdin
    sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p"
}

# --- the whole workflow ----------------------------------------------------------------------
good trace import --tokenizer "$tokenizer" "$sample/rag.jsonl" -o rag.dst
good trace import --tokenizer "$tokenizer" --format jsonl "$sample/cache.jsonl" "$sample/edits.jsonl" -o both.dst
good trace verify rag.dst both.dst
good trace info rag.dst --json
check "29 requests" grep -q '"requests": 29' out
good trace info both.dst
check "references are documents or earlier turns" [ "$(awk '
    $1 == "documents" || $1 == "turns" { print $2 }' out | tr '\n' ' ')" = "24 18 " ]
for output in '[98, 257], "draft_entropy": [1, 2]' '[98], "draft_entropy": [6]'; do
    echo "{\"prompt\": \"ab\", \"output\": $output}"
done >entropy.jsonl
good trace import --tokenizer bytes entropy.jsonl -o entropy.dst
good trace info entropy.dst
check "the mean entropy is that of a token" grep -qE '^mean_draft_entropy_nats +3(\.0+)?$' out
good sim rag.dst --method llma --n 1 --num-speculative-tokens 18 --json
check "counts of the golden file" [ "$(value target_calls <out)" = 2084 ]
good sim rag.dst --method llma --n 1 --num-speculative-tokens 18 --json --evaluate loop --threads 2
check "the loop gives the same counts" [ "$(value num_draft_tokens <out)" = 23919 ]
good sim rag.dst --method none
check "no speculation: one token per call" grep -qE '^block_efficiency +1\.0000' out
good sim rag.dst --method oracle --num-speculative-tokens 1 --json
check "the oracle accepts all" [ "$(value draft_acceptance_rate <out)" = 1.0 ]
good sim rag.dst --method llma --per-request
check "a line per request" [ "$(grep -cv '^#' out)" = 30 ]
good sim rag.dst --method llma --per-request --json
check "an object per request" [ "$(grep -c '"request": ' out)" = 29 ]
"$draftscope" sim both.dst --method llma --references turns --json | value num_accepted_tokens >turns
"$draftscope" sim both.dst --method llma --references docs --json | value num_accepted_tokens >docs
check "references choose" [ "$(cat turns)" != "$(cat docs)" ]
good sim rag.dst --method llma --references turns
check "a note when there is nothing to copy from" grep -q "kind 'turns'" err

good sweep rag.dst --method llma --n 1:3 --num-speculative-tokens 1:9:4,20 --semantics paper,code -o grid.tsv
check "24 configurations" [ "$(grep -c '^llma' grid.tsv)" = 24 ]
check "no part file is left" [ ! -e grid.tsv.part ]
good sweep rag.dst --method llma --n 1:3 --num-speculative-tokens 1:9:4,20 --semantics paper,code -o grid.jsonl --threads 1
check "24 JSON lines and a head" [ "$(wc -l <grid.jsonl)" = 25 ]
good sweep rag.dst --method llma --n 1:3 --num-speculative-tokens 1:9:4,20 --semantics paper,code --json
check "--json prints the same lines" cmp out grid.jsonl
check "and makes no file" [ ! -e ./- ]
head -n 9 grid.jsonl >again.jsonl.part
good sweep rag.dst --method llma --n 1:3 --num-speculative-tokens 1:9:4,20 --semantics paper,code -o again.jsonl
check "unfinished JSON lines go on" grep -q 'going on after 8 of 24 configurations' err
check "and are the same in the end" cmp again.jsonl grid.jsonl
head -n 9 grid.jsonl >named.tsv.part
bad 2 'has the rows of this sweep as JSON lines' sweep rag.dst --method llma --n 1:3 \
    --num-speculative-tokens 1:9:4,20 --semantics paper,code -o named.tsv
good sweep rag.dst --method llma --n 1:3 --num-speculative-tokens 1:9:4,20 --semantics paper,code --json -o named.tsv
check "--json decides the form of the file" cmp named.tsv grid.jsonl
bad 2 '--shard and --json' sweep rag.dst --method llma --shard 1/2 --json
bad 2 '-o FILE or --json' sweep rag.dst --method llma
good sweep rag.dst --method llma --n 1:3 --num-speculative-tokens 1:9:4,20 --semantics paper,code -o loop.tsv --evaluate loop --threads 2 --block 5
grep -v '^# command' grid.tsv >a
grep -v '^# command' loop.tsv >b
check "threads, blocks and engine change nothing" cmp -s a b
good sweep rag.dst --method suffix --max-spec-factor 1,2.5 --branches 0,1 -o suffix.tsv
check "every value of a real parameter" sh -c 'grep -v "^#" suffix.tsv | cut -f 6 | sort -u | tr "\n" " " | grep -q "^1 2.5 max_spec_factor"'
cached="rag.dst --method suffix --max-cached-requests 0,2,100 --max-tree-depth 6,24 --max-spec-offset 0,1.5"
good sweep $cached -o cached.tsv
good sweep $cached -o stepped.tsv --evaluate loop
grep -v '^# command' cached.tsv >a
grep -v '^# command' stepped.tsv >b
check "settings that share a cache of earlier outputs are those of the loop" cmp -s a b
check "a cache of earlier outputs changes the drafts" [ "$(grep '^suffix' a | cut -f 12 | sort -u | wc -l)" -gt 8 ]
good serve rag.dst --method suffix --max-cached-requests 2 --cost linear:.02,.001 --arrivals poisson:1 --requests 20 -o served.tsv
check "serve takes cached outputs in the order of the trace" grep -q "in their own order" err
bad 2 'prompt-lookup-min 2 exceeds' sweep rag.dst --method ngram --prompt-lookup-max 1 --prompt-lookup-min 2 -o x.tsv
good sweep rag.dst --method llma --cost linear:0.02,0.001 --n 1 --num-speculative-tokens 18 -o cost.tsv
# 5385 calls of 21 ms against 2084 of 20 ms and 2084 + 23919 tokens of 1 ms
check "speed-up of the linear cost" grep -q "	1.6708" cost.tsv
printf 'tokens\ttarget_s\n1\t0.021\n2\t0.022\n19\t0.039\n' >line.tsv
good sim rag.dst --method llma --cost table:line.tsv --n 1 --num-speculative-tokens 18 --json
check "the same line as a table" grep -q '"speedup": 1.6708' out
good sweep rag.dst --method llma --cost table:line.tsv --n 1 --num-speculative-tokens 18 -o table.tsv
check "in a sweep too" grep -q "	1.6708" table.tsv
good sim rag.dst --method llma --cost linear:0.02,0.001 --n 1 --num-speculative-tokens 18 --batch-size 1,4,64 --json
check "a line for each batch, and where it breaks even" \
    [ "$(head -n 1 out | grep -c '"break_even_batch": "4"')$(grep -c '"tokens_per_s"' out)" = 13 ]
check "batch 1 is no batch" grep -q '"speedup": 1.6708.*"batch": 1,' out
good sim rag.dst --method llma --cost linear:0.02,0.001 --n 1 --num-speculative-tokens 18 --batch-size 1,4,64
check "the text names it too" grep -q 'smallest batch size that is slower than no speculation: 4' out
good list costs -v
check "all costs, shapes and machines" \
    [ "$(grep -cE '^(unit|linear|table|roofline|fit)  |^  (llama-2-7b|h200)  ' out)" = 7 ]
check "published steps, fitted and held out" \
    [ "$(grep -cE '^  roofline:.* [+-][0-9.]+ % (fitted|held out)$' out)" = 26 ]
good sim rag.dst --method llma --cost roofline:llama-3.1-8b,eagle3,a100 --batch-size 1,64
bad 2 'gpu-memory-utilization=0.9: tp=2 would hold them' sim rag.dst --method llma --cost roofline:llama-3.1-70b,h100
bad 2 'GB of KV cache (batch size 4096' sim rag.dst --method llma --batch-size 1,4096 --cost roofline:llama-3.1-8b,rtx-4090
good sim --target iid:0.8 --method pearl --requests 2 --max-tokens 50 --cost linear:1,0,0.25 --timeline steps.tsv
check "a timeline of two lanes" [ "$(grep -v '^#' steps.tsv | cut -f 1 | sort -u | tr '\n' ' ')" = "draft lane target " ]
bad 2 'steps.tsv exists already' sim --target iid:0.8 --method pearl --requests 2 --max-tokens 50 --timeline steps.tsv
good sim --target iid:0.8 --method pearl --requests 2 --max-tokens 50 --timeline steps.tsv --force
# Draft passes of uneven widths have the time of the mean, rounded up to a whole token: no less than
# that of their tokens.
awk 'BEGIN { print "tokens\ttarget_s\tdraft_s"; for (t = 1; t <= 64; t *= 2) print t "\t1\t" t / 100 }' >width.tsv
good sim --target markov:20 --method dynamic-tree --eagle-topk 3 --num-draft-tokens 12 --requests 1 \
    --max-tokens 40 --cost table:width.tsv --timeline width.steps
check "draft passes cost what their tokens do" awk -F '\t' '$1 == "draft" { t = 100 * ($4 - $3)
        more += t > $5 + .5; less += !(t > $5 - 1e-6) } END { print more, less; exit less || !more }' width.steps
bad 2 'runs no steps for --timeline' sim rag.dst --method llma --evaluate expect --timeline no.tsv
check "a refusal leaves no timeline" [ ! -e no.tsv ]

# The six metrics have the same names and values in sim, sweep and trace info on the same steps.
good trace cut rag.dst --requests 0:0 -o one.dst
good sim one.dst --method llma --n 1 --k 6 --json
metrics <out >sim.metrics
check "six metrics" [ "$(wc -l <sim.metrics)" = 6 ]
check "each has a value" [ "$(grep -c ' [0-9.]' sim.metrics)" = 6 ]
good sweep one.dst --method llma --n 1 --k 6 -o one.jsonl
tail -n 1 one.jsonl | metrics >sweep.metrics
check "sweep has the metrics of sim" cmp sim.metrics sweep.metrics
good tune one.dst --method llma --n 1 --k 6 --split 0 -o one.best.jsonl
grep '"method": "llma"' one.best.jsonl | metrics >tune.metrics
check "tune has the metrics of sim" cmp sim.metrics tune.metrics
good sim one.dst --method llma --n 1 --k 6 --timeline one.steps
column() { # number: of the target's steps, as a list
    awk -F '\t' -v c="$1" '$1 == "target" { printf "%s%s", n++ ? ", " : "", $c }' one.steps
}
good trace export one.dst -o one.out.jsonl
sed "s/}\$/, \"steps\": {\"aligned\": true, \"accepted\": [$(column 7)], \"drafted\": [$(column 6)]}}/" \
    one.out.jsonl >logged.jsonl
good trace import --tokenizer "$tokenizer" logged.jsonl -o logged.dst
good trace info logged.dst --json
metrics <out >info.metrics
check "trace info has the metrics of sim" cmp sim.metrics info.metrics

good trace export rag.dst -o rag.out.jsonl
good trace import --tokenizer "$tokenizer" rag.out.jsonl -o again.dst
"$draftscope" trace info rag.dst --json | grep '"hash"' >a
"$draftscope" trace info again.dst --json | grep '"hash"' >b
check "export and import give the same trace" cmp -s a b
good trace merge rag.dst both.dst -o joined.dst
good trace merge rag.dst -o grown.dst
good trace append grown.dst both.dst
good trace cut joined.dst --requests 0:28 -o head.dst
"$draftscope" trace info head.dst --json | grep '^  "hash"' >head.hash
check "merged, and cut again: the same trace" cmp -s a head.hash
good trace cut joined.dst --requests 30:40 --sample 5 --seed 7 --tokens 20 -o few.dst
check "says what is left out" grep -q 'note: text is left out' err
good trace verify joined.dst grown.dst few.dst
check "as many requests" [ "$(cut -d , -f 2 out | tr -d '\n')" = ' 45 requests 45 requests 5 requests' ]
good trace export rag.dst --format csv
check "a CSV row per request" [ "$(wc -l <out)" = 30 ]
good trace export rag.dst --format csv-positions
check "a CSV row per output token" \
    [ "$(($(wc -l <out) - 1))" = "$("$draftscope" trace info rag.dst | awk '$1 == "output_tokens" { print $2 }')" ]
bad 2 'no steps' trace export rag.dst --format csv-steps -o steps.csv
check "nothing is left" [ ! -e steps.csv ] && [ ! -e steps.csv.tmp ]
bad 2 'add -o FOLDER' trace export rag.dst --format npy
good trace export rag.dst --format npy -o columns
check "a file per column" [ "$(find columns -name '*.npy' | wc -l)" = 18 ]
bad 2 'columns exists already' trace export rag.dst --format npy -o columns
good trace export rag.dst --format npy -o columns --force
: >columns/notes.txt
bad 2 "notes.txt', which is not a .npy file" trace export rag.dst --format npy -o columns --force
bad 1 'absent' trace export rag.dst --format npy -o absent/columns
gzip -c "$sample/rag.jsonl" >rag.jsonl.gz
good trace import --tokenizer bytes rag.jsonl.gz -o bytes.dst
good trace info bytes.dst --json
check "bytes tokenizer" grep -q '"tokenizer": "bytes"' out
good list methods -v
check "all methods" [ "$(grep -cE '^(none|oracle|llma) ' out)" = 3 ]
for what in rules figures formats; do good list $what; done
for what in methods rules; do
    into names "$draftscope" list $what
    good list $what -v
    for item in paper engines needs trace; do
        check "$what: $item of each" [ "$(grep -cE "^    $item: +[a-zA-Z]" out)" = "$(wc -l <names)" ]
    done
done
good list models -v
check "all models" [ "$(grep -cE '^(ngram|markov|iid) .*\(.*:' out)" = 3 ]
check "their items" grep -q '^  order=N  .*(default 3)$' out
cp "$top/LICENSES/GPL-3.0-or-later.txt" corpus.txt
for draft in corpus.txt corpus.txt,order=2; do
    good sim --target ngram:corpus.txt,order=3 --draft ngram:$draft --method draft-model --requests 4 \
        --max-tokens 40 --temperature 0 --json
    cp out $draft.json
done
good sim --target ngram:corpus.txt,order=3 --method draft-model --requests 4 --max-tokens 40 --temperature 0 --json
check "drafts of n-grams one token shorter, if none are named" cmp out corpus.txt,order=2.json
check "and not of the same" sh -c '! cmp -s out corpus.txt.json'
for what in '' trace 'trace import' 'trace info' 'trace merge' 'trace append' 'trace cut' 'trace verify' 'trace export' sim sweep plot report list; do
    # shellcheck disable=SC2086
    good $what --help
    check "help of '$what' says usage" grep -q '^Usage: draftscope' out
done
good --version

if command -v gnuplot >/dev/null 2>&1; then
    for figure in llma-speedup llma-stats heatmap accept-histogram; do
        good plot $figure grid.tsv --where semantics=paper -o $figure.svg
        check "$figure.gp and its data are next to it" [ -s $figure.gp ] && [ -s $figure.data.tsv ]
    done
    good plot timeline steps.tsv -o steps.svg
    good plot llma-speedup grid.tsv --where semantics=code -o -
    check "drawn in the terminal" grep -q 'copy length k' out
    good report grid.tsv -o report.html
    check "a whole page" grep -q '</html>' report.html
    bad 2 'heatmap.data.tsv exists already' plot heatmap grid.tsv --where semantics=paper -o heatmap.svg
    bad 2 'report.html exists already' report grid.tsv -o report.html
    good report grid.tsv -o report.html --force
    good report rag.dst grid.tsv --latex -o report
    check "LaTeX and its figures" [ -s report/report.tex ] && [ -s report/figure-1.pdf ]
    bad 2 'report/report.tex exists already' report rag.dst grid.tsv --latex -o report
    good report grid.tsv --latex -o report.tex
    rm report.tex
    bad 2 'report-figure-1.pdf exists' report grid.tsv --latex -o report.tex
    bad 4 'absent.tsv' report absent.tsv --latex -o new
    check "nothing is left of it" [ ! -e new ]
    bad 2 "needs a column 'color'" plot heatmap grid.tsv --column color -o x.svg
    bad 2 'the name must end in .svg' plot heatmap grid.tsv -o x.gif
    bad 4 'absent.tsv' plot heatmap absent.tsv -o x.svg
    bad 4 'absent.tsv' report absent.tsv -o x.html
    bad 2 'did you mean heatmap' plot heatmpa grid.tsv -o x.svg
    env PATH=/nonexistent "$draftscope" plot heatmap grid.tsv --where semantics=paper -o x.svg 2>err
    check "exit 3 without gnuplot" [ $? = 3 ]
    check "says what is missing" grep -q gnuplot err
    check "nothing half-drawn" [ ! -e x.svg ]
fi

# --- usage: exit 2 ---------------------------------------------------------------------------
good
check "without a command there is a guide" grep -q 'draftscope advise\|draftscope tune' out
bad 2 'did you mean sweep' sweeep
bad 2 'import, synth, info' trace
bad 2 'did you mean verify' trace verfy x
bad 2 'did you mean llma' sim rag.dst --method lmma
bad 2 '--method NAME expected' sim rag.dst
bad 2 'one trace' sim --method llma
bad 2 'too many' sim rag.dst both.dst --method llma
bad 2 'from 1 to 1024' sim rag.dst --method llma --n 0
bad 2 'from 0 to 1000000' sim rag.dst --method llma --num-speculative-tokens -1
bad 2 "'1:4' is not an integer" sim rag.dst --method llma --num-speculative-tokens 1:4
bad 2 'paper|code' sim rag.dst --method llma --semantics pape
bad 2 'did you mean --semantics' sim rag.dst --method llma --semantic code
bad 2 'it is an option of method llma' sim rag.dst --method none --n 1
bad 2 'needs a value' sim rag.dst --method llma --num-speculative-tokens
bad 2 "'free' is unknown; choose unit" sim rag.dst --method llma --cost free
bad 2 'is not linear:FIXED_S' sim rag.dst --method llma --cost linear:1
good sim rag.dst --method llma --cost table:line.tsv --n 1 --num-speculative-tokens 18 --evaluate expect --json
grep '"speedup"' out >walked
good sim rag.dst --method llma --cost table:line.tsv --n 1 --num-speculative-tokens 18 --evaluate loop --json
grep '"speedup"' out >stepped
check "priced from the walk as from the loop" sh -c 'test -s walked && cmp -s walked stepped'
bad 4 'not extrapolated' sim rag.dst --method llma --cost table:line.tsv --num-speculative-tokens 30 --evaluate loop
bad 4 'nowhere.tsv' sim rag.dst --method llma --cost table:nowhere.tsv
bad 4 'verify_s' sim rag.dst --method llma --cost fit:rag.dst
bad 2 'did you mean llama-2-7b' sim rag.dst --method llma --cost roofline:lama-2-7b,none,h100
bad 2 '--batch-size and --per-request cannot be combined' sim rag.dst --method llma --batch-size 2 --per-request
bad 2 "'0' is not an integer from 1 to 65536" sim rag.dst --method llma --batch-size 0
bad 2 'is not linear:FIXED_S' sim rag.dst --method llma --cost linear:-1,0
bad 2 'is not linear:FIXED_S' sim rag.dst --method llma --cost linear:nan,0
bad 2 'is not linear:FIXED_S' sim rag.dst --method llma --cost linear:0,0
bad 2 'is not linear:FIXED_S' sim rag.dst --method llma --cost linear:1,0,-1
bad 2 'draft model' sim rag.dst --method pearl
bad 2 "the range '9:1' is empty" sweep rag.dst --method llma --num-speculative-tokens 9:1 -o x.tsv
bad 2 'from 1' sweep rag.dst --method llma --n 0:3 -o x.tsv
bad 2 '1 is given twice' sweep rag.dst --method llma --num-speculative-tokens 1,2,1 -o x.tsv
bad 2 "'' is not an integer" sweep rag.dst --method llma --num-speculative-tokens '' -o x.tsv
bad 2 "'' is not an integer" sweep rag.dst --method llma --num-speculative-tokens 1, -o x.tsv
bad 2 'more than 10000000 configurations' sweep rag.dst --method llma --num-speculative-tokens 1:100000 --n 1:1000 -o x.tsv
bad 2 '-o FILE' sweep rag.dst --method llma
bad 2 'exists already (--force' sweep rag.dst --method llma -o grid.tsv
bad 2 'exists already (--force' trace import --tokenizer bytes "$sample/rag.jsonl" -o rag.dst
bad 2 'exists already (--force' trace export rag.dst -o grid.tsv
bad 2 'not a regular file' sweep rag.dst --method llma -o /dev/full
bad 2 'not a regular file' sweep rag.dst --method llma -o /dev/full --force
bad 2 'both have a request' trace merge rag.dst rag.dst -o x.dst
bad 2 'both have a request' trace append grown.dst rag.dst
bad 2 "the tokenizer of rag.dst is" trace merge rag.dst bytes.dst -o x.dst
bad 2 '-o NAME.dst' trace merge rag.dst
bad 2 'the traces to append' trace append rag.dst
bad 2 'request 29 does not exist: rag.dst has 29 requests' trace cut rag.dst --requests 29 -o x.dst
bad 2 '30 requests out of 29' trace cut rag.dst --sample 30 -o x.dst
bad 2 '--requests, --where, --sample or --tokens' trace cut rag.dst -o x.dst
bad 4 'absent.dst' trace append absent.dst rag.dst
bad 2 '-o NAME.dst' trace import --tokenizer bytes "$sample/rag.jsonl"
bad 2 'at least one input file expected' trace import --tokenizer bytes -o x.dst
bad 2 'did you mean llma' trace import --format lama --tokenizer bytes "$sample/rag.jsonl" -o x.dst
check "a good table is left alone" cmp -s a b

# --- bad input: exit 4 -----------------------------------------------------------------------
bad 4 'absent.dst' sim absent.dst --method llma
bad 4 'manifest.json' sim . --method llma
bad 4 'absent.jsonl' trace import --tokenizer bytes absent.jsonl -o x.dst
bad 4 'absent.json' trace import --tokenizer absent.json "$sample/rag.jsonl" -o x.dst
bad 4 'rag.jsonl' trace import --tokenizer "$sample/rag.jsonl" "$sample/rag.jsonl" -o x.dst

line() { # words, one line of input
    printf '%s\n' '{"prompt": "p", "output": "o"}' "$2" >bad.jsonl
    bad 4 "$1" trace import --format jsonl --tokenizer bytes bad.jsonl -o x.dst
    grep -q 'bad.jsonl:2' err || not_ok "no line number: $(cat err)"
    [ ! -e x.dst ] && [ ! -e x.dst.tmp ] || not_ok "something is left over after: $2"
}
line 'bad.jsonl:2:' '{"prompt": "p", "output": "o"'
line 'output' '{"prompt": "p"}'
line 'output' '{"prompt": "p", "output": 7}'
line 'prompt' '{"prompt": null, "output": "o"}'
line 'ouput' '{"prompt": "p", "ouput": "o"}'
line 'references' '{"prompt": "p", "output": "o", "references": "r"}'
line 'references[1]' '{"prompt": "p", "output": "o", "references": ["r", 1]}'
line '999' '{"prompt": "p", "output": [1, 999]}'
line '-1' '{"prompt": "p", "output": [1, -1]}'
line 'kind' '{"prompt": "p", "output": "o", "references": [{"text": "r", "kind": "book"}]}'
line 'logprobs' '{"prompt": "p", "output": "o", "logprobs": [0.5]}'
line 'bad.jsonl:2' '[]'
line 'bad.jsonl:2' "$(printf '{"prompt": "p", "output": "\377"}')"
line 'bad.jsonl:2' '{"prompt": "p", "prompt": "q", "output": "o"}'

printf '%s\n' '{"prompt": "p", "output": ""}' '{"prompt": "p", "output": "ab", "references": ["a"]}' >ok.jsonl
good trace import --tokenizer bytes ok.jsonl -o ok.dst
good sim ok.dst --method llma --n 4 --num-speculative-tokens 3
printf '%s\n' '{"prompt": [1], "output": []}' >empty.jsonl
good trace import --tokenizer bytes empty.jsonl -o empty.dst
good sim empty.dst --method llma --json
check "no call, no ratio" grep -q '"block_efficiency": null' out
head -c 5000 rag.jsonl.gz >cut.gz
bad 4 'cut.gz' trace import --tokenizer bytes cut.gz -o x.dst
printf '%s\n' '{"prompt": "p", "output": "o"}' 'no' '{"prompt": "p", "output": "o"}' >some.jsonl
good trace import --tokenizer bytes --on-error skip some.jsonl -o some.dst
check "one line left out" grep -q 'some.jsonl:2' err

cp -r rag.dst changed.dst
printf 'X' | dd of=changed.dst/shard-00000.safetensors bs=1 seek=90000 conv=notrunc 2>/dev/null
bad 4 'shard-00000.safetensors' trace verify changed.dst
cp -r rag.dst short.dst
head -c 100000 rag.dst/shard-00000.safetensors >short.dst/shard-00000.safetensors
bad 4 'shard-00000.safetensors' sim short.dst --method llma
rm short.dst/shard-00000.safetensors
bad 4 'shard-00000.safetensors' sim short.dst --method llma

# --- outputs that cannot be written: exit 1 ----------------------------------------------------
bad 1 'cannot write' sweep rag.dst --method llma -o absent/x.tsv
bad 1 'absent' trace import --tokenizer bytes "$sample/rag.jsonl" -o absent/x.dst
if [ -c /dev/full ]; then
    for command in 'sim rag.dst --method llma --json' 'sim rag.dst --method llma --per-request' \
        'trace info rag.dst' 'trace export rag.dst' 'list methods' '--help'; do
        # shellcheck disable=SC2086
        "$draftscope" $command >/dev/full 2>err
        check "full disk: $command" [ $? = 1 ]
        check "full disk is said: $command" grep -qi 'no space' err
    done
fi

# --- memory does not grow with draft length times requests ---------------------------------------
awk 'BEGIN { for (r = 0; r < 2; r++) {
    printf "{\"prompt\": \"p\", \"references\": [\"x abc\"], \"output\": \""
    for (i = 0; i < 60000; i++) printf "abc"
    print "\"}" } }' >long.jsonl
good trace import --tokenizer bytes long.jsonl -o long.dst
if (ulimit -v 700000 && "$draftscope" --version) >/dev/null 2>&1; then # not so under a sanitizer
    check "a long draft of a long output fits in 700 MB" \
        sh -c 'ulimit -v 700000 && "$0" sim long.dst --method llma --num-speculative-tokens 1000000 >out 2>err' \
        "$draftscope"
fi

# --- interrupted and taken up again ------------------------------------------------------------
i=0
while [ $i -lt 40 ]; do
    cat "$sample/rag.jsonl"
    i=$((i + 1))
done >many.jsonl
good trace import --tokenizer "$tokenizer" many.jsonl -o many.dst
slow="sweep many.dst --method llma --n 1:4 --num-speculative-tokens 1:16 --evaluate loop --block 1 --threads 1"
has_rows() {
    [ "$(cat cut.tsv.part 2>/dev/null | grep -c '^llma')" -ge 2 ]
}
interrupt() { # signal, exit code
    rm -f cut.tsv cut.tsv.part
    "$draftscope" $slow -o cut.tsv 2>err &
    pid=$!
    wait_until $pid has_rows
    stop $pid "$1"
    check "SIG$1 ends with $2, not $got" [ $got = "$2" ]
    check "SIG$1: nothing under the final name" [ ! -e cut.tsv ]
    check "SIG$1: finished rows are kept" has_rows
}
# shellcheck disable=SC2086
good $slow -o cut.tsv
mv cut.tsv whole.tsv
for signal in INT:130 TERM:143 KILL:137; do
    interrupt ${signal%:*} ${signal#*:}
    printf 'llma	1	3	tor' >>cut.tsv.part # as if the kill had come in the middle of a line
    # shellcheck disable=SC2086
    good $slow -o cut.tsv
    check "SIG${signal%:*}: says that it goes on" grep -q 'going on after' err
    check "SIG${signal%:*}: the same table in the end" cmp -s whole.tsv cut.tsv
done
interrupt INT 130
bad 2 'different sweep' sweep many.dst --method llma --n 1:5 --num-speculative-tokens 1:8 -o cut.tsv
good sweep many.dst --method llma --n 1:5 --num-speculative-tokens 1:8 -o cut.tsv --force
# The draft length has several names, and so have methods and commands.
good sim --target iid:.8 --method draft-model --num-speculative-tokens 3 --requests 20 --json
cp out by_name
check "three tokens are drafted" grep -q '"num_speculative_tokens": 3' by_name
for name in '--length 3' '--gamma 3' '--gamma=3' '-k 3' '--k 3'; do
    # shellcheck disable=SC2086
    good replay --target iid:.8 --method chain $name --requests 20 --json
    check "$name is --num-speculative-tokens 3" cmp -s by_name out
done
good sim rag.dst --method llma --batch-size 2 --json
cp out by_name
good sim rag.dst --method llma --batch 2 --json
check "--batch is --batch-size" cmp -s by_name out
# Text output: counts have a mean per request, parameters do not.
good sim rag.dst --method llma
check "a parameter has no mean" grep -qE '^num_speculative_tokens +18$' out
check "counts have one" [ "$(grep -cE '^(num_drafts|target_calls|num_draft_tokens) .* per request$' out)" = 3 ]
good sim rag.dst --method llma --progress json
check "progress as JSON lines" grep -q '"total": 5385' err

# --- on a terminal -------------------------------------------------------------------------------
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    terminal() {
        script -qec "$*" /dev/null </dev/null | tr -d '\r' >out
    }
    terminal "'$draftscope' sweep rag.dst --method ngram,suffix --num-speculative-tokens 2:16:2 \
        --cost linear:.02,.0005 --batch-size 1,16 -o best.tsv --progress never"
    check "a sweep ends with the best five of each batch size" \
        sh -c 'test "$(grep -c "^batch size" out)" = 2 && test "$(grep -c "^ngram\|^suffix" out)" = 10'
    check "numbers are rounded, and what a method lacks is empty" sh -c '! grep -q "nan\|[0-9]\.[0-9]\{5\}" out'
    best=$(grep -v '^#' best.tsv | awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["batch"] == 16 && $c["speedup"] > m { m = $c["speedup"] } END { printf "%.4g\n", m }')
    check "the best of batch size 16 comes first" sh -c 'sed "1,/batch size 16/d" out | sed -n 2p | grep -q " $1 "' sh "$best"
    terminal "'$draftscope' tune rag.dst --method ngram --num-speculative-tokens 2:8 --cost linear:.02,.0005 \
        --batch-size 1,16 --progress never"
    check "tune: a row for each batch size" test "$(grep -c '^ *[0-9]* .* run ngram\|leave speculation off' out)" = 2
else
    echo "no script: terminals are not tested"
fi
summary
