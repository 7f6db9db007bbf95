#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shards of draftscope serve: whatever their number and the threads, the merged table is that of one
# process, byte for byte. An interrupted command keeps finished rows and goes on after them. Shards that do not belong together are refused.
# $load, $mixed and $each are lists of words.
# shellcheck disable=SC2086
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o rag.dst
load="serve rag.dst --method ngram,llma --num-speculative-tokens 2,4 --cost linear:0.02,0.0002"
# Rates that are served and rates that are not, clients, and listed times.
printf '0\n0.5\n1.5\n' >times.csv
mixed="$load --arrivals poisson:1:13:4 --arrivals closed:1,3 --arrivals file:times.csv \
    --speculation fixed --speculation oracle"
each="$load --arrivals poisson:2,9 --arrivals closed:2 --requests 40 --per-request"

# --- equality ------------------------------------------------------------------------------------
rows() { # file: rows without comments and header
    grep -vc '^#' "$1" | awk '{ print $1 - 1 }'
}
shards() { # number of shards, name, options...: computes and merges them
    n=$1 name=$2 i=0
    shift 2
    set -- "$@" --force
    while [ $i -lt "$n" ]; do
        i=$((i + 1))
        good "$@" --shard $i/"$n" --threads $((1 + i % 3)) -o "$name.$i"
    done
    good merge "$name".[0-9]* -o "$name.tsv" --force
    rm "$name".[0-9]*
}
for name in mixed each; do
    case $name in mixed) options=$mixed ;; *) options=$each ;; esac
    good $options --threads 1 -o $name.whole
    for threads in 2 5; do
        good $options --threads $threads -o $name.threads --force
        check "$name: $threads threads" cmp $name.threads $name.whole
    done
    for n in 1 2 3 7 40; do
        shards $n $name $options
        check "$name: $n shards" cmp $name.tsv $name.whole
    done
done
check 'rates above the capacity, and a largest stable one' \
    grep -q 'yes	[0-9]' mixed.whole
good $mixed --json -o whole.jsonl
for i in 1 2 3; do good $mixed --shard $i/3 -o m.$i; done
good merge m.3 m.1 m.2 -o merged.jsonl
check 'JSON lines from shards in any order' cmp merged.jsonl whole.jsonl
check 'no comment of shards is left' sh -c '! grep -E "shard_|split|types" merged.jsonl mixed.whole'
most=$(for i in 1 2 3; do rows m.$i; done | sort -n | tail -n 1)
least=$(for i in 1 2 3; do rows m.$i; done | sort -n | head -n 1)
check "shares of $least to $most rows" test $((most - least)) -le 4 -a "$(rows mixed.whole)" = 63

# --- job arrays and GNU parallel, as in contrib/parallel.md --------------------------------------
job() { # index of the task, and what follows sweep.sbatch
    SLURM_ARRAY_TASK_ID=$1
    export SLURM_ARRAY_TASK_ID
    shift
    sh "$top/contrib/slurm/sweep.sbatch" "$@"
}
for i in 1 2; do check "task $i" job $i 2 job $mixed; done
check 'a finished task does nothing' job 1 2 job $mixed
good merge job.1-of-2 job.2-of-2 -o job.tsv
check 'a job array of serve' cmp job.tsv mixed.whole
if parallel --version 2>/dev/null | grep -q GNU; then
    check 'GNU parallel' parallel --will-cite --joblog log --resume-failed \
        "$draftscope $each --shard {}/3 -o para.{}-of-3" ::: 1 2 3
    good merge para.*-of-3 -o para.tsv
    check 'shards by GNU parallel' cmp para.tsv each.whole
else
    skip 'GNU parallel' 'it is not installed'
fi

# --- refusals ------------------------------------------------------------------------------------
bad 2 "'0/3' is not I/N" $mixed --shard 0/3 -o x
bad 2 "'4/3' is not I/N" $mixed --shard 4/3 -o x
bad 2 '-o FILE expected' $mixed --shard 1/3
bad 2 'JSON lines' $mixed --shard 1/3 --json -o x
bad 2 '--shard and --timeline' $mixed --shard 1/3 --timeline t.json -o x
bad 2 '--shard and --occupancy' $mixed --shard 1/3 --occupancy t.tsv -o x
bad 2 'missing of 3 shards: 2' merge m.1 m.3 -o x
bad 2 'are both shard 1/3' merge m.1 m.1 m.2 m.3 -o x
good $load --arrivals closed:1 --requests 9 --shard 2/3 -o other.2
bad 2 'not one sweep' merge m.1 other.2 m.3 -o x
good sweep rag.dst --method ngram --shard 2/3 -o counts.2
bad 2 'not one sweep' merge m.1 counts.2 m.3 -o x
sed '$d' m.2 >short.2
bad 4 'is in no shard' merge m.1 short.2 m.3 -o x
sed 's/^\([0-9]*\)	0	/\1	1	/' m.2 >left.2
bad 4 'left.2:' merge m.1 left.2 m.3 -o x
check 'nothing is left of refused commands' test ! -e x -a ! -e x.part

# --- interruption --------------------------------------------------------------------------------
# The listed times are three requests, and a hundred million of one client never end.
long="$load --arrivals file:times.csv --arrivals closed:1 --threads 1 --requests 100000000 --drain"
"$draftscope" $long --order shuffle -o long.tsv >out 2>err &
victim=$!
check 'the first row is on disk while the second is computed' wait_until $victim grep -qs '^0	0	' long.tsv.part
stop $victim TERM
check 'SIGTERM: exit code 143' test $got = 143
check "one line: $(cat err)" grep -q 'interrupted: 1 of 10 rows are finished, in long.tsv.part;' err
check 'nothing has the final name' test ! -e long.tsv
bad 2 'different sweep' $long -o long.tsv
# Standard output gets what is finished.
mkfifo pipe
"$draftscope" $long --progress json >short.tsv 2>pipe &
victim=$!
head -n 1 pipe >first
stop $victim INT
check 'SIGINT: exit code 130' test $got = 130
check 'the finished row is printed' test "$(rows short.tsv)" = 1

# An interrupted command goes on: the first rows of a whole file are those that were finished.
good $mixed --shard 1/2 -o whole.1
head -n $(($(grep -c '^#' whole.1) + 11)) whole.1 >resumed.part
printf '5	0	cut' >>resumed.part
good $mixed --shard 1/2 -o resumed
check "it says where it goes on: $(cat err)" grep -q 'going on after 10 of' err
check 'the result is the same' cmp resumed whole.1
check 'nothing is left' test ! -e resumed.part
# A run whose timeline is written runs again.
good $mixed --timeline t.json -o timed
head -n $(($(grep -c '^#' timed) + 11)) timed >cells
{ # as a part file: the comments of shards, and numbers before the rows
    grep '^# [a-z_]*: ' whole.1 | sed 's|shard=1/2|shard=1/1|'
    awk -F '\t' '/^#/ { next } !h++ { print "unit\trows_left\t" $0; next } { print n++ "\t0\t" $0 }' cells
} >again.part
good $mixed --timeline t2.json -o again
check 'it goes on after the others' grep -q 'going on after' err
check 'the timeline is the same' cmp t.json t2.json
check 'the table is the same' cmp timed again
# Finished rows are not computed again: a changed cell stays.
head -n $(($(grep -c '^#' whole.1) + 11)) whole.1 |
    awk -F '\t' -v OFS='\t' '!/^#/ && $1 ~ /^[0-9]/ && !h++ { $NF = "0.125" } { print }' >kept.part
good $mixed --shard 1/2 -o kept
check 'a restored row is taken as it is' test "$(grep -c '	0\.125$' kept)" = 1
summary
