#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice a fault? mutants.tsv has faults of one line: in the file, the fragment `from`, which
# occurs there once, becomes `to`, and a user sees what `shows` says. Each is built in a copy of the
# source, and tests run until one fails: the test in the column `by`, which failed last time; else
# those of check-quick, the rest of check, and the parts of check-all whose files hold the fault. What
# fails first is written into the table. Before a release, and when tests leave the lists.
#
#   run.sh [ID]...    in a build folder of a git checkout; 86 faults take half an hour
#
# ID may be a pattern ('serve-*'). Exits with 1 where a fault survives that is not known to ("-" in `by`).
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
work=$(mktemp -d "${TMPDIR:-/tmp}/draftscope-mutants.XXXXXX") || exit 99
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
config=$(./config.status --config)

fail() {
    tail -n 40 "$work/log"
    echo "run.sh: $1" >&2
    exit 99
}

# Runs tests; a fault may make one endless, or greedy. A part is named first: "gpu TEST".
tests() { # part or "", tests, suites
    if [ "$1" ]; then
        set -- check-part PART="$1" ${2:+"part_tests_$1=$2"} ONLY="$3"
    else
        set -- check ${2:+"TESTS=$2"} ONLY="$3"
    fi
    # shellcheck disable=SC3045 # where there is no such limit, none is set
    (test "$1" = check-part || ulimit -v 16000000 2>/dev/null
        timeout -k 10 900 make "$@") >"$work/log" 2>&1 </dev/null
}

# Sets `by` to the first test of the log that failed, and its suite. One that did not end is in no log.
killer() { # part or ""
    awk -v part="$1" '/^(FAIL|ERROR):? / && !test { test = $2 }
        END { if (test) print (part ? part " " : "") test }' "$work/log" >"$work/killer"
    read -r by <"$work/killer" || {
        by=${was:-timeout}
        return
    }
    suite=$(sed -n 's/^not ok - suite //p' "$work/build/${by#* }.log" 2>/dev/null | head -n 1)
    by=$by${suite:+ $suite}
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

# Sets `by` to what notices the fault that has been built, or to "-".
find_killer() { # file, part, tests and suites that may
    if [ "$3" ]; then
        test=${3%% *} suites=
        [ "$test" = "$3" ] || suites=${3#* }
        tests "$2" "$test" "$suites" || {
            killer "$2"
            return
        }
    fi
    # shellcheck disable=SC2016 # variables of make
    for list in '$(quick_tests)' '$(filter-out $(quick_tests),$(live_tests) $(cuda_tests) $(code_tests) $(text_tests))'; do
        tests "" "$list" "" || {
            killer ""
            return
        }
    done
    for part in $(parts_of "$1"); do
        tests "$part" "" "" || {
            killer "$part"
            return
        }
    done
    by=-
}

mkdir "$work/source" "$work/build" &&
    (cd "$top" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) |
    tar -xf - -C "$work/source" && (cd "$work/source" && ./bootstrap) >"$work/log" 2>&1 || fail "no copy"
cd "$work/build" || exit 99
eval "'$work/source/configure' $config" >"$work/log" 2>&1 || fail "no configuration"
grep -v '^#\|^id	' "$table" | while IFS= read -r line; do
    selected=$#
    for pattern; do
        # shellcheck disable=SC2254 # a pattern
        case ${line%%"$tab"*} in $pattern) selected=0 ;; esac
    done
    [ "$selected" != 0 ] || printf '%s\n' "$line"
done >"$work/faults"
tests "" "" "" || fail "tests fail without a fault"
cut -f 6 "$work/faults" | grep '^[a-z]* ' | sort -u >"$work/parts"
while read -r part test suites; do
    tests "$part" "$test" "$suites" || fail "$test fails without a fault"
done <"$work/parts"

count=0 killed=0 status=0
while IFS=$tab read -r id file _ _ _ was; do
    start=$(date +%s)
    count=$((count + 1))
    cp "$work/source/$file" "$work/original"
    if ! mutate "$id" "$work/original" >"$work/source/$file"; then
        by="$id: the fragment does not occur once in $file" status=1
    elif ! make check TESTS= >"$work/log" 2>&1 </dev/null; then
        by="does not build: $(grep -m 1 ': error:\|\*\*\*' "$work/log")" status=1
    else
        part=${was%% *} expected=$was
        case $part in
        */* | - | timeout) part='' ;;
        *) expected=${was#* } ;;
        esac
        case $was in - | timeout) expected='' ;; esac
        find_killer "$file" "$part" "$expected"
        case $by in
        -) [ "$was" = - ] || status=1 ;;
        *) killed=$((killed + 1)) ;;
        esac
        awk -F '\t' -v OFS='\t' -v id="$id" -v by="$by" '$1 == id { $6 = by } { print }' "$table" \
            >"$table.new" && mv "$table.new" "$table"
    fi
    printf '%s\t%s\t%s s\n' "$id" "$by" $(($(date +%s) - start))
    cp "$work/original" "$work/source/$file"
done <"$work/faults"
echo "$killed of $count faults noticed"
exit $status
