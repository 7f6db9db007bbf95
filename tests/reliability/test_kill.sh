#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random moments of an import, of an import that replaces a trace, of a merge, of an append,
# of a recording, of a sweep and of served loads. Finished shards can be read, no incomplete result has a final name, and the next run gives
# the result of an undisturbed one. The moments are fractions of the measured time of a whole run.
# With DSC_TEST_ALL set, there are five times as many.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
LC_ALL=C
export LC_ALL
if ! sleep 0.001 2>/dev/null || [ "$(date +%N | tr -d '0-9')" ]; then
    echo "no sleep(1) or no date(1) for parts of a second: skipped"
    exit 77
fi
# --- inputs ------------------------------------------------------------------------------------

awk 'BEGIN { for (i = 0; i < 150; i++) {
    printf "{\"id\": \"a%d\", \"prompt\": \"question %d\", \"output\": \"", i, i
    for (j = 0; j < 40; j++) printf "word%d ", i * j % 97
    print "\"}" } }' >in.jsonl
sed 's/"id": "a/"id": "b/' in.jsonl >more.jsonl

import() { # files, the trace and other options
    "$DRAFTSCOPE" trace import --tokenizer bytes --shard-tokens 15000 --progress never "$@"
}
hash_of() { # trace: the hash, if it verifies
    "$DRAFTSCOPE" trace verify "$1" 2>&1 | sed -n 's/^.*: ok, .* hash //p'
}
# What two equal results have in common. Recordings differ in the seconds of their steps.
result_of() { # run, trace
    if [ "$1" = record ]; then
        "$DRAFTSCOPE" trace verify "$2" >/dev/null 2>&1 &&
            "$DRAFTSCOPE" trace info --json "$2" | grep -E '"(requests|output_tokens|draft_tokens)"'
    else
        hash_of "$2"
    fi
}
import in.jsonl -o a.dst && import more.jsonl -o b.dst && import in.jsonl more.jsonl -o c.dst ||
    exit 1
cp -r a.dst grown.dst
"$DRAFTSCOPE" trace append grown.dst b.dst --shard-tokens 15000 || exit 1
"$DRAFTSCOPE" trace merge a.dst b.dst --shard-tokens 15000 -o merged.dst || exit 1
old=$(hash_of a.dst) new=$(hash_of c.dst) grown=$(hash_of grown.dst) merged=$(hash_of merged.dst)
check "undisturbed runs verify" test -n "$old" -a -n "$new" -a -n "$grown" -a -n "$merged"

# Makes the files that a run starts from.
prepare() { # run
    case $1 in replace | append) cp -r a.dst x.dst ;; esac
}

# The program replaces its shell by exec, so that the signal reaches the program.
cat >run.sh <<'END'
case $1 in
import) set -- import --tokenizer bytes --progress never in.jsonl more.jsonl -o x.dst ;;
replace) set -- import --tokenizer bytes --progress never in.jsonl more.jsonl -o x.dst --force ;;
merge) set -- merge a.dst b.dst -o x.dst ;;
record) exec "$DRAFTSCOPE" live record --target "$FIXTURES/llama" --draft "$FIXTURES/llama_old" \
    --method draft-model --num-speculative-tokens 2 --prompts ids.jsonl --max-tokens 8 --num-drafts 1 \
    --logprobs dense --threads 1 --device cpu --progress never -o x.dst ;;
sweep) exec "$DRAFTSCOPE" sweep c.dst --method ngram --num-speculative-tokens 1:32 --block 1 \
    --threads 1 --progress never -o x.tsv ;;
serve) exec "$DRAFTSCOPE" serve c.dst --method ngram --num-speculative-tokens 1:4 \
    --cost linear:0.02,0.0002 --arrivals poisson:1:6:1 --arrivals closed:1:4 --requests 600 \
    --threads 2 --progress never -o x.tsv ;;
each) exec "$DRAFTSCOPE" serve c.dst --method ngram --num-speculative-tokens 4 \
    --cost linear:0.02,0.0002 --arrivals closed:1:4 --requests 1000 --per-request --threads 2 \
    --progress never -o x.tsv ;;
append) set -- append x.dst b.dst ;;
esac
exec "$DRAFTSCOPE" trace "$@" --shard-tokens 15000
END

# --- killing -----------------------------------------------------------------------------------

# Checks which files a killed run has left, and merges the finished shards.
look_at_rest() { # run, number
    run="$1 $2"
    for path in x.*; do
        case $path in
        x.dst | x.dst.tmp | x.dst.old | 'x.*') ;;
        *) not_ok "$run: left $path" ;;
        esac
    done
    check "$run: at most one .tmp" test "$(find x.dst* -name '*.tmp' -type f 2>/dev/null | wc -l)" -le 1
    [ -e x.dst.tmp/manifest.json ] || return
    finished=$((finished + 1))
    check "$run: what is finished can be read" test -n "$(hash_of x.dst.tmp)"
    [ $(($2 % 5)) = 0 ] || return
    "$DRAFTSCOPE" trace merge x.dst.tmp --shard-tokens 15000 -o taken.dst || not_ok "$run: not merged"
    check "$run: and taken" test "$(hash_of taken.dst)" = "$(hash_of x.dst.tmp)"
    rm -rf taken.dst
}

# Checks that the final name is the former trace or the complete result.
look_at_name() { # run, number
    case $1 in
    import | merge | record)
        [ ! -e x.dst ] || check "$1 $2: complete" test "$(result_of "$1" x.dst)" = "$result" ;;
    replace) # between two renames it is called x.dst.old
        name=x.dst
        [ -e x.dst ] || name=x.dst.old
        is=$(hash_of $name)
        check "$1 $2: the former or the new trace" test "$is" = "$old" -o "$is" = "$result" ;;
    append)
        is=$(hash_of x.dst)
        check "$1 $2: without or with what is appended" test "$is" = "$old" -o "$is" = "$result" ;;
    esac
}

# Runs the same command again, undisturbed.
run_again() { # run, number
    case $1 in
    import | merge | record) [ ! -e x.dst ] || rm -rf x.dst ;;
    append) [ "$(hash_of x.dst)" = "$old" ] || return ;;
    esac
    check "$1 $2: the next run" sh run.sh "$1"
    check "$1 $2: gives the same" test "$(result_of "$1" x.dst)" = "$result"
    check "$1 $2: leaves nothing else" test ! -e x.dst.tmp
}

now_us() {
    echo $(($(date +%s%N) / 1000))
}

kill_runs() { # run, result, how often
    result=$2 killed=0 finished=0
    prepare "$1"
    begin=$(now_us)
    sh run.sh "$1"
    whole=$(($(now_us) - begin))
    rm -rf x.dst*
    awk -v n="$3" -v seed="$whole" 'BEGIN { srand(seed); for (i = 0; i < n; i++)
        printf "%d %.6f\n", i, (i + rand()) / n * 1.05 * seed / 1e6 }' >moments
    while read -r number seconds; do
        prepare "$1"
        sh run.sh "$1" >/dev/null 2>&1 &
        sleep "$seconds"
        kill -9 $! 2>/dev/null
        wait $! 2>/dev/null || killed=$((killed + 1))
        look_at_rest "$1" "$number"
        look_at_name "$1" "$number"
        run_again "$1" "$number"
        rm -rf x.dst*
    done <moments
    echo "# $1: a whole run took $((whole / 1000)) ms; $killed of $3 were killed, $finished left" \
        "the finished shards are left"
}

# These go on after a kill, so they are killed again and again until they are complete.
kill_resumed() { # run, how often
    begin=$(now_us)
    sh run.sh "$1" && mv x.tsv whole.tsv
    most=$((($(now_us) - begin) / 2)) # of a run; what is finished by then is kept
    killed=0 complete=0 number=0
    while [ $number -lt "$2" ]; do
        number=$((number + 1))
        sh run.sh "$1" >/dev/null 2>&1 &
        sleep "$(awk -v n=$number -v most=$most \
            'BEGIN { srand(n); printf "%.4f", 0.002 + most * rand() / 1e6 }')"
        kill -9 $! 2>/dev/null
        wait $! 2>/dev/null || killed=$((killed + 1))
        for path in x.*; do
            case $path in
            x.tsv | x.tsv.part | x.tsv.part.sorted | 'x.*') ;;
            *) not_ok "$1 $number: left $path" ;;
            esac
        done
        if [ -e x.tsv ]; then
            complete=$((complete + 1))
            check "$1 $number: complete" cmp x.tsv whole.tsv
            rm x.tsv
        fi
    done
    check "$1: the next run" sh run.sh "$1"
    check "$1: gives the same" cmp x.tsv whole.tsv
    check "$1: leaves nothing else" test ! -e x.tsv.part -a ! -e x.tsv.part.sorted
    rm -f x.tsv whole.tsv
    echo "# $1: $killed of $2 were killed, $complete were complete"
}

some=12 few=3
[ -z "${DSC_TEST_ALL:-}" ] || some=60 few=15
kill_runs import "$new" $some
kill_runs replace "$new" $few
kill_runs merge "$merged" $few
kill_runs append "$grown" $some
kill_resumed sweep $some
kill_resumed serve $some
kill_resumed each $some
FIXTURES=${LIVE_FIXTURES:-$top/tests/oracle/fixtures}
export FIXTURES
if [ -x "${draftscope%/*}/draftscope-live" ]; then
    awk 'BEGIN { for (i = 0; i < 60; i++) printf "{\"prompt\": [1, %d, %d, 7]}\n",
        3 + i % 50, 4 + i % 41 }' >ids.jsonl
    sh run.sh record
    recorded=$(result_of record x.dst)
    check "an undisturbed recording verifies" test -n "$recorded"
    rm -rf x.dst
    kill_runs record "$recorded" $some
else
    skip "recordings" "no draftscope-live"
fi
summary
