#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets for a number of executions each, several at a time, and prints a table of
# executions and findings. A finding ends the process of its target; the remaining executions then
# run in another. Findings are fuzz-found/NAME-*, logs fuzz-found/NAME.log, and inputs that reach
# new code fuzz-found/NAME/. Exits with 1 where there is a finding.
#
#   long.sh RUNS JOBS NAME...   in the build folder; top_srcdir is the source
#   long.sh RUNS - NAME         one target, as each of the above runs it
set -u
# A target has a processor for itself; threads that wait for each other made imports 4 times slower.
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
runs=$1 jobs=$2
shift 2
top=${top_srcdir:-.}
most=20 # findings of one target, after which it is given up

# The executions of the process that wrote the log.
executed() { # log
    awk '/^stat::number_of_executed_units:/ { n = $2 } END { print n + 0 }' "$1"
}

run_target() { # name
    left=$runs findings=0 before=$(date +%s)
    mkdir -p "fuzz-found/$1"
    : >"fuzz-found/$1.log"
    while [ "$left" -gt 0 ] && [ "$findings" -lt "$most" ]; do
        code=0
        "tests/fuzz/fuzz_$1" -runs="$left" -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
            -dict="$top/tests/fuzz/words.dict" -print_final_stats=1 -verbosity=1 \
            -artifact_prefix="fuzz-found/$1-" "fuzz-found/$1" "$top/tests/fuzz/corpus/$1" \
            </dev/null >"fuzz-found/$1.last" 2>&1 || code=$?
        done=$(executed "fuzz-found/$1.last")
        cat "fuzz-found/$1.last" >>"fuzz-found/$1.log"
        left=$((left - done))
        [ "$code" = 0 ] && break
        if [ "$done" = 0 ]; then
            echo "fuzz_$1 did not start: fuzz-found/$1.log" >&2
            break
        fi
        findings=$((findings + 1))
    done
    rm -f "fuzz-found/$1.last"
    printf '%-12s %12d %9d %9d\n' "$1" $((runs - left)) "$findings" $(($(date +%s) - before)) \
        >"fuzz-found/$1.result"
}

if [ "$jobs" = - ]; then
    run_target "$1"
    exit 0
fi
mkdir -p fuzz-found
for name in "$@"; do
    rm -f "fuzz-found/$name.result"
done
printf '%s\n' "$@" | top_srcdir=$top xargs -P "$jobs" -I NAME sh "$0" "$runs" - NAME
printf '%-12s %12s %9s %9s\n' target executions findings seconds
for name in "$@"; do
    cat "fuzz-found/$name.result" || exit 1
done | awk '{ print; executions += $2; findings += $3; short += $2 < runs }
    END {
        printf "%-12s %12d %9d\n", "all", executions, findings
        if (findings)
            print "The inputs are fuzz-found/NAME-*; fuzz-found/NAME.log has the reports."
        exit findings > 0 || short > 0
    }' runs="$runs"
