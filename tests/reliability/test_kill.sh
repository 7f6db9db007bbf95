#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random moments of an import, of an import that replaces a trace, of a merge and of an
# append. Finished shards can be read, no incomplete result has a final name, and the next run gives
# the result of an undisturbed one. The moments are fractions of the measured time of a whole run.
# With DSC_TEST_QUICK set, there are a fifth as many.
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
    "$DRAFTSCOPE" trace merge x.dst.tmp --shard-tokens 15000 -o taken.dst
    check "$run: and taken" test "$(hash_of taken.dst)" = "$(hash_of x.dst.tmp)"
    rm -rf taken.dst
}

# Checks that the final name is the former trace or the complete result.
look_at_name() { # run, number
    case $1 in
    import | merge)
        [ ! -e x.dst ] || check "$1 $2: complete" test "$(hash_of x.dst)" = "$result" ;;
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
    import | merge) [ ! -e x.dst ] || rm -rf x.dst ;;
    append) [ "$(hash_of x.dst)" = "$old" ] || return ;;
    esac
    check "$1 $2: the next run" sh run.sh "$1"
    check "$1 $2: gives the same" test "$(hash_of x.dst)" = "$result"
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

part=${DSC_TEST_QUICK:+5}
kill_runs import "$new" $((60 / ${part:-1}))
kill_runs replace "$new" $((15 / ${part:-1}))
kill_runs merge "$merged" $((15 / ${part:-1}))
kill_runs append "$grown" $((60 / ${part:-1}))
summary
