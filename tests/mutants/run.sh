#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice a fault? mutants.tsv has faults of one line: in the file, the fragment `from`, which
# occurs there once, becomes `to`, and a user sees what `shows` says. Each is built in a copy of the
# source, and tests run until one fails: the test in the column `by`, which failed last time; else
# those of check-quick, the rest of check, and the parts of check-all whose files hold the fault. What
# fails first is written into the table. Before a release, and when tests leave the lists.
#
#   run.sh [ID]...    in a build folder, with live mode, of a git checkout; 95 faults take half an hour
#
# ID may be a pattern ('serve-*'). Exits with 1 where a fault survives that is not known to ("-" in `by`)
# or does not build, with 2 for an ID or a fragment that does not exist.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
top=$(cd "$here/../.." && pwd) || exit 99
table=$here/mutants.tsv
[ -e config.status ] && git -C "$top" rev-parse --git-dir >/dev/null 2>&1 || {
    echo "run.sh: run it in a build folder of a git checkout" >&2
    exit 2
}
LC_ALL=C
MAKEFLAGS=${MAKEFLAGS:--j$(nproc 2>/dev/null || echo 1)}
DSC_TEST_DATA=$(cd "${DSC_TEST_DATA:-$top/../shared/data}" 2>/dev/null && pwd)
export LC_ALL MAKEFLAGS DSC_TEST_DATA
tab=$(printf '\t')
work=$(sh "$top/tests/folder.sh") || exit 99
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'kill $process 2>/dev/null; exit 1' HUP INT TERM
process=''
# What runs in the background ignores SIGINT unless it is told not to.
reset=''
env --default-signal=INT true 2>/dev/null && reset='env --default-signal=INT'
config=$(./config.status --config)

fail() {
    tail -n 40 "$work/log"
    echo "run.sh: $1" >&2
    exit 99
}

# Runs make, whose children end with it: a fault may make a test endless, or greedy. It runs in the
# background, so that signals to this script need not wait for it.
limited() { # arguments of make...
    # shellcheck disable=SC3045,SC2086 # where there is no such limit, none is set
    (test "$1" = check-part || ulimit -v 16000000 2>/dev/null
        exec $reset timeout -k 10 900 make "$@") >"$work/log" 2>&1 </dev/null &
    process=$!
    wait $process
}

# Runs tests, and sets `by` to the first that fails and its suite. One that does not end is in no log.
notice() { # part or "", tests, suites
    if [ "$1" ]; then
        limited check-part PART="$1" ${2:+"part_tests_$1=$2"} ONLY="$3"
    else
        limited check ${2:+"TESTS=$2"} ONLY="$3"
    fi
    code=$?
    by=''
    [ $code != 0 ] || return 1
    test=$(awk '/^(FAIL|ERROR):? / { print $2; exit }' "$work/log")
    if [ "$test" ]; then
        suite=$(sed -n 's/^not ok - suite //p' "$work/build/$test.log" 2>/dev/null | head -n 1)
        by=${1:+$1 }$test${suite:+ $suite}
    elif [ $code = 124 ] || [ $code = 137 ]; then
        case $2 in
        *'$'* | '') by=timeout ;;
        *) by=${1:+$1 }$2${3:+ $3} ;;
        esac
    fi
}

# The parts of check-all that a file is in. Fuzzing and clang take longer than all else.
parts_of() { # file
    while IFS=$tab read -r part _ _ files; do
        case $part in "#"* | fuzz | clang | dist) continue ;; esac
        # shellcheck disable=SC2086 # a list of words
        (cd "$top" && git ls-files -- $files) | grep -qxF -e "$1" && echo "$part"
    done <"$top/tests/all.tsv"
}

# The original with the fragment of a fault replaced.
mutate() { # id, original
    awk -F '\t' -v id="$1" '
        FNR == NR { if ($1 == id) { from = $3; to = $4 } next }
        (at = index($0, from)) {
            found++
            found += index(substr($0, at + 1), from) > 0
            $0 = substr($0, 1, at - 1) to substr($0, at + length(from))
        }
        { print }
        END { exit found != 1 }' "$table" "$2"
}

# Sets `by` to what notices the fault that has been built, or to "-"; to nothing where make fails for
# another reason.
find_killer() { # file, part, test, suites: what may, or ""
    if [ "$3" ] && notice "$2" "$3" "$4"; then
        return
    fi
    # shellcheck disable=SC2016 # variables of make
    for list in '$(quick_tests)' '$(filter-out $(quick_tests),$(live_tests) $(cuda_tests) $(code_tests) $(text_tests))'; do
        notice "" "$list" "" && return
    done
    for part in $(parts_of "$1"); do
        notice "$part" "" "" && return
    done
    by=-
}

# The faults, before anything is built.
grep -v '^#\|^id	' "$table" >"$work/all"
for pattern in "${@:-*}"; do
    found=''
    while IFS= read -r line; do
        # shellcheck disable=SC2254 # a pattern
        case ${line%%"$tab"*} in $pattern) found=yes && printf '%s\n' "$line" ;; esac
    done <"$work/all" >>"$work/chosen"
    [ "$found" ] || {
        echo "run.sh: no fault '$pattern' in $table" >&2
        exit 2
    }
done
sort -u "$work/chosen" >"$work/faults"
while IFS=$tab read -r id file _; do
    mutate "$id" "$top/$file" >"$work/mutated" || {
        echo "run.sh: $id: the fragment does not occur once in $file: move the fault" >&2
        exit 2
    }
done <"$work/faults"

mkdir "$work/source" "$work/build" &&
    (cd "$top" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) |
    tar -xf - -C "$work/source" && (cd "$work/source" && ./bootstrap) >"$work/log" 2>&1 || fail "no copy"
cd "$work/build" || exit 99
eval "'$work/source/configure' $config" >"$work/log" 2>&1 || fail "no configuration"
limited check || fail "tests fail without a fault"
cut -f 6 "$work/faults" | grep '^[a-z]* ' | sort -u >"$work/parts"
while read -r part test suites; do
    ! notice "$part" "$test" "$suites" || fail "$test fails without a fault"
    if grep '^skipped: ' "$work/log"; then
        grep -v "$tab$part [^$tab]*\$" "$work/faults" >"$work/others"
        mv "$work/others" "$work/faults"
    fi
done <"$work/parts"

count=0 killed=0 status=0
while IFS=$tab read -r id file _ _ _ was; do
    start=$(date +%s)
    count=$((count + 1))
    cp "$work/source/$file" "$work/original"
    mutate "$id" "$work/original" >"$work/source/$file"
    by=''
    if limited check TESTS=; then
        case $was in
        '' | - | timeout) find_killer "$file" "" "" "" ;;
        tests/*' '*) find_killer "$file" "" "${was%% *}" "${was#* }" ;;
        tests/*) find_killer "$file" "" "$was" "" ;;
        *' '*) find_killer "$file" "${was%% *}" "${was#* }" "" ;;
        esac
    fi
    case $by in
    '') by="does not build: $(grep -m 1 ': error:\|\*\*\*' "$work/log")" status=1 ;;
    *)
        if [ "$by" != - ]; then
            killed=$((killed + 1))
        elif [ "$was" != - ]; then
            status=1
        fi
        awk -F '\t' -v OFS='\t' -v id="$id" -v by="$by" '$1 == id { $6 = by } { print }' "$table" \
            >"$table.new" && mv "$table.new" "$table"
        ;;
    esac
    printf '%s\t%s\t%s s\n' "$id" "$by" $(($(date +%s) - start))
    cp "$work/original" "$work/source/$file"
done <"$work/faults"
echo "$killed of $count faults noticed"
exit $status
