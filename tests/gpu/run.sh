#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the checks that need a GPU, from a bundle of `make gpu-bundle`: unpack it and run this script
# in it. The most valuable checks come first, and results are on disk after each of them. checks.sh
# has the commands of each check, results.sh writes results.json and the archive, libraries.sh finds
# CUDA's libraries.
usage() {
    cat <<'END'
Usage: run.sh [--out DIR] [--archive FILE.tar.gz] [--device cuda[:N]] [--minutes N] [--only LIST]
              [--skip-passed FILE|DIR] [--dry-run] [--list]
  --out DIR            is where results.json, logs and tables are written (gpu-results).
  --archive FILE       packs them into one file, anew after every check.
  --device D           is the device; cpu tries the script itself with small models (cuda).
  --minutes N          ends the run in time: a check that would take longer than what is left is
                       recorded as not run.
  --only LIST          names checks, groups (ops for ops-quick and ops-full) or steps (1 to 4).
  --skip-passed FILE   leaves out what passed in an earlier call: its archive, its results.json or
                       the folder of that.
  --dry-run            prints the commands and writes results.json, and runs nothing.
  --list               lists the checks in their order, with the minutes they are expected to take.
Exit codes: 0 nothing that was run has failed; 1 a check failed or was stopped at its limit, or
results could not be written; 2 usage; 3 the device, a library or every program is not on this
machine; 128 + n after signal n.
END
}

# step, check, expected seconds, limit in seconds. The expectation was calculated from the passes of
# each check on an H200, not measured; it only decides what still fits into --minutes.
plan() {
    cat <<'END'
1 ops-quick 15 120
1 bench 40 240
1 profile-llama-3-8b-short 40 240
1 fixtures 15 120
1 lossless-draft-model 10 90
1 lossless-tree 10 90
1 ops-full 90 300
2 replay-eagle 80 300
2 replay-spectr 110 400
2 replay-llama-2-7b 50 240
2 selection-greedy 15 90
2 selection-top-p 15 90
3 sanitizer-memcheck 120 400
3 sanitizer-racecheck 180 500
3 sampling-device 30 240
3 sampling-rules 60 300
3 replay-pearl 80 300
3 lossless-pearl 10 90
3 bench-no-prefetch 25 180
3 lossless-spectr 10 90
3 lossless-lookahead 10 90
3 lossless-ouroboros 10 90
3 lossless-llma 10 90
3 selection-sampled 15 90
3 selection-top-k 15 90
3 selection-block 15 90
3 selection-kseq 15 90
3 selection-otm 15 90
3 selection-specinfer 15 90
3 profile-llama-3-8b 60 300
3 profile-deepseek-coder-1.3b 40 240
3 replay-llama-2-7b-all 150 500
3 sanitizer-synccheck 120 400
3 sanitizer-initcheck 120 400
3 sanitizer-live 60 300
4 profile-llama-2-13b 80 360
4 replay-llama-2-13b-all 220 580
4 validate 480 590
END
}
list_plan() {
    plan | awk '
        BEGIN { print "step  check                         minutes  limit  minutes so far" }
        {
            sum += $3
            printf "%-5d %-29s %7.1f %6.1f %15.1f\n", $1, $2, $3 / 60, $4 / 60, sum / 60
        }'
}

now() {
    date -u +%Y-%m-%dT%H:%M:%SZ
}
fail_usage() {
    echo "run.sh: $*" >&2
    exit 2
}

# --- options -----------------------------------------------------------------------------------
here=$(cd "$(dirname "$0")" && pwd) || exit 2
out=gpu-results archive='' device=cuda minutes='' only='' skip='' dry=false
while [ $# -gt 0 ]; do
    case $1 in
    --out | --archive | --device | --minutes | --only | --skip-passed)
        [ $# -gt 1 ] || fail_usage "$1 needs a value; --help lists the options"
        case $1 in
        --out) out=$2 ;;
        --archive) archive=$2 ;;
        --device) device=$2 ;;
        --minutes) minutes=$2 ;;
        --only) only=$2 ;;
        --skip-passed) skip=$2 ;;
        esac
        shift
        ;;
    --dry-run) dry=true ;;
    --list | --help)
        case $1 in
        --list) list_plan ;;
        --help) usage ;;
        esac
        exit 0
        ;;
    *) fail_usage "$1 is no option of this script; --help lists the options" ;;
    esac
    shift
done
case $device in
cpu | cuda | cuda:[0-9] | cuda:[0-9][0-9]) ;;
*) fail_usage "--device $device: cuda, cuda:N or cpu is expected" ;;
esac
if [ -n "$minutes" ]; then
    echo "$minutes" | grep -Eq '^(0|[1-9][0-9]*)(\.[0-9]+)?$' ||
        fail_usage "--minutes $minutes: a number of minutes is expected"
fi

# chosen CHECK STEP WORD: whether a word of --only selects this check.
chosen() {
    [ "$3" = "$1" ] || [ "$3" = "$2" ] || {
        [ "$3" = "${1%%-*}" ] && ! plan | grep -q "^[0-9] $3 "
    }
}
wanted() { # check, step
    [ -n "$only" ] || return 0
    for word in $(echo "$only" | tr ',' ' '); do
        ! chosen "$1" "$2" "$word" || return 0
    done
    return 1
}
for word in $(echo "$only" | tr ',' ' '); do
    plan | while read -r step check rest; do
        ! chosen "$check" "$step" "$word" || echo "$check"
    done | grep -q . || fail_usage "--only $word: --list lists the checks"
done

# --- the folder, the machine -------------------------------------------------------------------
command -v timeout >/dev/null || {
    echo "run.sh: timeout was not found: install the coreutils" >&2
    exit 3
}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd) || exit 2
if [ -n "$archive" ]; then
    mkdir -p "$(dirname "$archive")" || exit 2
    archive=$(cd "$(dirname "$archive")" && pwd)/$(basename "$archive")
fi
state=$out/.run
rm -rf "$state" && mkdir "$state" && : >"$state/checks" || exit 2
# shellcheck source=tests/gpu/results.sh
. "$here/results.sh"
# shellcheck source=tests/gpu/libraries.sh
. "$here/libraries.sh"
started=$(now) stopped_by='' not_written='' library_path=''
began=$(date +%s)
ends=
[ -z "$minutes" ] || ends=$(awk "BEGIN { printf \"%d\", $began + 60 * $minutes }")

gpu=absent driver=absent memory=absent driver_cuda=absent
ask_driver() {
    command -v nvidia-smi >/dev/null 2>&1 || return 0
    smi=$(timeout 30 nvidia-smi --query-gpu=name,driver_version,memory.total \
        --format=csv,noheader 2>/dev/null | head -n 1)
    [ -n "$smi" ] || return 0
    gpu=${smi%%,*} driver=$(echo "$smi" | cut -d, -f2 | sed 's/^ *//')
    memory=$(echo "$smi" | cut -d, -f3 | sed 's/^ *//')
    driver_cuda=$(timeout 30 nvidia-smi 2>/dev/null |
        sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -n 1)
}
ask_driver
programs=$(cat "$here"/bin/* 2>/dev/null | sha256sum | cut -c 1-64)
if [ -n "$skip" ]; then
    read_earlier "$skip" ||
        fail_usage "--skip-passed $skip: a results.json or an archive is expected"
fi

# --- running -----------------------------------------------------------------------------------
child='' current=''
stop() { # signal, its number
    trap '' HUP INT TERM
    stopped_by=$1
    if [ -n "$child" ]; then
        kill -TERM "$child" 2>/dev/null
        wait "$child"
    fi
    if [ -n "$current" ]; then
        record "$current" interrupted "The script was stopped by $1 while this check ran." null \
            $(($(date +%s) - start)) "$limit" "$out/$current.log"
    fi
    save false ''
    rm -rf "$state"
    echo "run.sh: stopped by $1; results so far are in $out/results.json" >&2
    exit $((128 + $2))
}
trap 'stop HUP 1' HUP
trap 'stop INT 2' INT
trap 'stop TERM 15' TERM

# Prints the last line of a log that is not empty.
last_line() {
    grep -av '^\$ ' "$1" | grep -a '[^[:space:]]' | tail -n 1 | cut -c 1-400
}
# attempt CHECK LIMIT: runs the check in a process group of its own and sets $code, $seconds,
# $outcome and $reason. The shell handles signals only while it waits, hence the background job.
# $because explains the limit.
attempt() {
    current=$1 limit=$2 log=$out/$1.log
    start=$(date +%s)
    save false "$1"
    timeout -k 10 "$limit" sh "$here/checks.sh" "$1" "$out" "$device" >"$log" 2>&1 &
    child=$!
    wait "$child"
    code=$?
    child=''
    seconds=$(($(date +%s) - start))
    shorten "$log"
    reason=$(last_line "$log")
    case $code in
    0) outcome=passed reason='' ;;
    3 | 77) outcome=absent ;;
    124 | 137)
        outcome=failed
        if [ $code = 124 ] || [ $seconds -ge "$limit" ]; then
            outcome="timed out" reason="It was stopped after $limit s, $because."
        fi
        ;;
    *) outcome=failed reason="Exit code $code${reason:+: $reason}" ;;
    esac
}
finish() { # of an attempt
    record "$current" "$outcome" "$reason" $code $seconds "$limit" "$log"
    current=''
    save false ''
}

# run CHECK EXPECTED LIMIT
run() {
    if when=$(passed_earlier "$1"); then
        record "$1" "passed earlier" "It passed in the run of $when." null 0 null ""
    elif [ $dry = true ]; then
        sh "$here/checks.sh" "$1" "$out" "$device" dry >"$state/log" 2>&1
        case $? in
        0) reason="This is a dry run." ;;
        *) reason="This is a dry run. $(last_line "$state/log")" ;;
        esac
        record "$1" "not run" "$reason" null 0 "$3" "$state/log"
    else
        most=$3 because="its limit"
        if [ -n "$ends" ]; then
            left=$((ends - $(date +%s) - 5)) # for writing what is found
            [ $left -gt 0 ] || left=0
            if [ $left -lt "$2" ]; then
                reason="Out of time: it takes about $2 s, and $left s were left."
                record "$1" "not run" "$reason" null 0 "$3" ""
                return
            fi
            [ "$most" -le $left ] || most=$left because="as --minutes $minutes were nearly over"
        fi
        attempt "$1" "$most"
        finish
    fi
}

# --- what must be on the machine ---------------------------------------------------------------
# give_up CHECK LINE: no other check could run.
give_up() {
    record "$1" absent "$2" null 0 null ""
    save true ''
    rm -rf "$state"
    echo "run.sh: $2" >&2
    exit 3
}
# The checks that need a missing program report it.
preflight() {
    ls "$here"/bin/* >/dev/null 2>&1 || give_up libraries "There are no programs in $here/bin."
    find_libraries || give_up libraries "$(say_missing)"
    record libraries passed "" null 0 null ""
    because="its limit"
    for check in list open; do
        case $check in
        list) [ -e "$here/bin/draftscope-live" ] || continue ;;
        open) [ -e "$here/bin/check_ops" ] || continue ;;
        esac
        attempt $check 120
        [ "$outcome" = passed ] ||
            give_up $check "$device cannot be used: ${reason:-exit code $code}"
        finish
    done
}
if [ $dry = true ]; then
    find_libraries || record libraries absent "$(say_missing)" null 0 null ""
else
    preflight
fi
ready=$(count passed) # which is not a result of a check

# --- all checks --------------------------------------------------------------------------------
plan >"$state/plan"
while read -r step check expected most; do
    if wanted "$check" "$step"; then
        run "$check" "$expected" "$most" </dev/null
    fi
done <"$state/plan"
save true ''
ran=$(count passed "passed earlier") failed=$(count failed "timed out")
echo "$ran passed, $failed failed, $(count absent) absent, $(count "not run") not run:" \
    "$out/results.json"
rm -rf "$state"
if [ -n "$not_written" ]; then
    echo "run.sh: $not_written could not be written" >&2
    exit 1
fi
[ "$failed" = 0 ] || exit 1
[ $dry = true ] || [ "$ran" -gt "$ready" ] || exit 3
