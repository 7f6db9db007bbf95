#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the checks that need a GPU, from a bundle of `make gpu-bundle`: unpack it and run this script
# in it. The most valuable checks come first, and results are on disk after each of them. checks.sh
# has the commands of each check, results.sh writes results.json and the archive, libraries.sh finds
# CUDA's libraries.
usage() {
    cat <<'END'
Usage: run.sh [--out DIR] [--archive FILE.tar.gz] [--device cuda[:N,SWITCH,...]|cpu] [--minutes N]
              [--only LIST] [--skip-passed FILE|DIR] [--dry-run] [--list]
  --out DIR            is where results.json, logs and tables are written (gpu-results).
  --archive FILE       packs them into one file, anew after every check.
  --device D           is the device, with switches such as graphs=0 (draftscope-live(1)); cpu tries
                       the script itself with small models (cuda).
  --minutes N          ends the run in time: a check that would take longer than what is left is
                       recorded as not run.
  --only LIST          names checks, groups (ops for ops-quick and ops-full) or steps (1 to 4), which
                       run in the order given.
  --skip-passed FILE   leaves out what passed in an earlier call: its archive, its results.json or
                       the folder of that.
  --dry-run            prints the commands and writes results.json, and runs nothing.
  --list               lists the checks in their order, with the minutes they are expected to take.
When a check of correctness fails, it is run again with each switch of the device and under memcheck
(a minute together), and one line says STOP, with which the run ends, or GO ON, with the switch that
the other checks then have.
Exit codes: 0 nothing that was run has failed; 1 a check failed or was stopped at its limit, or
results could not be written; 2 usage; 3 the device, a library or every program is not on this
machine; 128 + n after signal n.
END
}

# step, check, expected seconds, limit in seconds. The expectation was calculated from the passes of
# each check on an H200, not measured; it only decides what still fits into --minutes, and is
# corrected by how long the checks before took.
plan() {
    cat <<'END'
1 ops-quick 20 120
1 bench 40 240
1 profile-llama-3-8b-short 40 240
1 fixtures 15 120
1 lossless-tree 10 90
1 replay-llama-2-7b 50 240
2 peer-graph 30 120
2 peer-transformers 60 200
2 real-gsm8k 20 240
2 real-transformers 60 300
2 replay-specbench-eagle 40 240
2 replay-specbench-sps-68m 40 240
2 replay-eagle 80 300
2 replay-spectr 110 400
2 replay-smollm2-greedy 30 240
2 replay-smollm2-sampled 30 240
2 real-humaneval 20 240
2 selection-greedy 15 90
2 selection-top-p 15 90
2 lossless-draft-model 10 90
2 ops-full 90 300
2 sanitizer-memcheck 120 400
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
cpu | cuda) ;;
cuda:*[!a-z0-9=,]* | cuda:) fail_usage "--device $device: cuda:N, cuda:SWITCH,... is expected" ;;
cuda:*) ;;
*) fail_usage "--device $device: cuda, cuda:N,SWITCH,... or cpu is expected" ;;
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
# The lines of the plan that are wanted: all, or those that --only names, in its order.
wanted() {
    [ -n "$only" ] || plan
    for word in $(echo "$only" | tr ',' ' '); do
        plan | while read -r step check rest; do
            ! chosen "$check" "$step" "$word" || echo "$step $check $rest"
        done
    done | awk '!seen[$2]++'
}
for word in $(echo "$only" | tr ',' ' '); do
    plan | while read -r step check rest; do
        ! chosen "$check" "$step" "$word" || echo "$check"
    done | grep . >/dev/null || fail_usage "--only $word: --list lists the checks"
done

# --- the folder, the machine -------------------------------------------------------------------
command -v timeout >/dev/null || {
    echo "run.sh: timeout was not found: install the coreutils" >&2
    exit 3
}
case $out in /*) ;; *) out=$(pwd)/$out ;; esac
case $here$out in
*[[:blank:]]*) fail_usage "a path without blanks is expected, of this script and of --out: $out" ;;
esac
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
started=$(now) stopped_by='' not_written='' library_path='' program_libraries='' verdict=''
# The CPU's products are the reference; OpenBLAS 0.3.21 errs on some processors that it does not know.
export OPENBLAS_CORETYPE=Haswell
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
programs=$(cat "$here"/bin/* "$here"/lib/libdraftscope* 2>/dev/null | sha256sum | cut -c 1-64)
if [ -n "$skip" ]; then
    read_earlier "$skip" ||
        fail_usage "--skip-passed $skip: a results.json or an archive is expected"
fi

# --- running -----------------------------------------------------------------------------------
child='' current='' works=false halted=false
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

# Prints the last line of a log that is not empty, or of each section of check_ops that has failed.
last_line() {
    awk '/^Failed section: / { all = all (all ? "; " : "") substr($0, 17) ": " last; next }
        /[^[:space:]]/ && !/^\$ / { last = $0 }
        END { print all ? all : last }' "$1" | cut -c 1-400
}
# What a check may lack on a machine whose device works: memory, a tool, a file that the bundle was
# made without.
excuses="out of memory|is not installed|GB (are|is) |GB free|weights need|which is not on this|does not support|needs a GPU"
# attempt CHECK LIMIT: runs the check in a process group of its own and sets $code, $seconds,
# $outcome and $reason. The shell handles signals only while it waits, hence the background job.
# $because explains the limit. A check that is repeated has another NAME, also in its log.
attempt() { # check, limit, name
    current=${3:-$1} limit=$2
    log=$out/$current.log start=$(date +%s)
    save false "$current"
    PROGRAM_LIBRARIES=$program_libraries CHECK_LOG=$log SWITCHES=$switches \
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
    3 | 77)
        outcome=absent
        if [ $works = true ] && ! echo "$reason" | grep -qE "$excuses"; then
            outcome=failed reason="Exit code $code on a device that works: ${reason:-no message}"
        fi
        ;;
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

# --- what a failure means ----------------------------------------------------------------------
# All diagnoses of a run take a minute together, and end with --minutes.
diagnosis_ends='' switches=''
remaining() {
    echo $((diagnosis_ends - $(date +%s)))
}
# again CHECK NAME: succeeds if it passes. Its outcome is one of its own in the results.
again() {
    because="as a diagnosis takes a minute"
    attempt "$1" "$(($(remaining) < 15 ? $(remaining) : 15))" "$2"
    repeated=$outcome outcome=diagnosis
    [ "$repeated" != passed ] || reason="It passes."
    finish
    [ "$repeated" = passed ]
}
# diagnose CHECK: runs what has failed of a check again: as it was, with one switch of the device after
# the other, and under memcheck. Where a switch makes it pass, the other checks run with it.
diagnose() {
    [ "$device" != cpu ] || return
    SECTIONS=$(sed -n 's/^Failed section: //p' "$out/$1.log" | tr '\n' ' ')
    [ -n "$SECTIONS" ] || [ "$outcome" = failed ] || # the one that was stopped
        SECTIONS=$(sed -n 's/^\$ .* --only \([a-z]*\).*/\1/p' "$out/$1.log" | tail -n 1)
    export SECTIONS
    if [ -z "$diagnosis_ends" ]; then
        diagnosis_ends=$(($(date +%s) + 60))
        [ -z "$ends" ] || [ "$ends" -gt $diagnosis_ends ] || diagnosis_ends=$ends
    fi
    before=$switches better='' tried='' sometimes='' memory=''
    for switch in '' overlap=0 graphs=0 prefetch=0 carveout=100; do
        [ "$(remaining)" -gt 3 ] || break
        case "$device $before " in *[:,\ ]"${switch:-none}"[,\ ]*) continue ;; esac # as it was
        switches="$before $switch"
        if again "$1" "$1.$(echo "${switch:-again}" | tr -d =)"; then
            [ -n "$switch" ] || sometimes=" It does not always fail: it passed when repeated as it was."
            better=${better:-$switch}
        else
            tried="$tried${tried:+, }${switch:-as it was}"
        fi
    done
    switches=$before
    if [ "$(remaining)" -gt 5 ]; then
        smaller=$1
        [ "$1" != ops-full ] || smaller=ops-quick
        export UNDER=memcheck
        again "$smaller" "$1.memcheck"
        unset UNDER
        memory=$(grep -aE '^=+ (Invalid|Program hit|.* error)' "$out/$1.memcheck.log" | head -n 1 |
            cut -c 1-200)
    fi
    unset SECTIONS
    if [ -n "$better" ]; then
        verdict="GO ON with $better: $1 passes with it.$sometimes"
        switches="$before $better"
    else
        verdict="STOP: $1 does not pass${tried:+ $tried}.$sometimes"
        halted=true
    fi
    verdict=$verdict${memory:+ memcheck: $memory}
    echo "run.sh: $verdict"
}

# Seconds that a check will probably take: what is expected, times how much longer the checks before
# took. Half a minute of checks as expected is added, so that a short one decides little.
spent=30 planned=30
probable() { # expected
    awk "BEGIN { printf \"%d\", $1 * $spent / $planned + .5 }"
}

# run CHECK EXPECTED LIMIT
run() {
    if [ $halted = true ]; then
        record "$1" "not run" "$verdict" null 0 "$3" ""
    elif when=$(passed_earlier "$1"); then
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
            takes=$(probable "$2")
            if [ $left -lt "$takes" ]; then
                reason="Out of time: it takes about $takes s, and $left s were left."
                record "$1" "not run" "$reason" null 0 "$3" ""
                return
            fi
            [ "$most" -le $left ] || most=$left because="as --minutes $minutes were nearly over"
        fi
        attempt "$1" "$most"
        finish
        case $outcome in
        passed) spent=$((spent + seconds)) planned=$((planned + $2)) ;;
        failed | "timed out")
            case $1:$because in
            *:as*) ;; # --minutes were over, which is no fault of the check
            ops-* | fixtures:* | lossless-*) diagnose "$1" ;;
            esac
            ;;
        esac
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
    if [ -e "$here/files.sha256" ]; then
        damaged=$(cd "$here" && sha256sum -c --quiet files.sha256 2>/dev/null | sed 's/: .*//' | head -n 1)
        [ -z "$damaged" ] || give_up files "$damaged is not as it was packed: unpack the bundle again."
    fi
    find_libraries || give_up libraries "$(say_missing)"
    record libraries passed "" null 0 null ""
    because="its limit"
    for check in list open; do
        case $check in
        list) [ -e "$here/bin/draftscope-live" ] || continue ;;
        open) [ -e "$here/bin/check_ops" ] || continue ;;
        esac
        attempt $check 120
        [ $code != 2 ] || fail_usage "--device $device: ${reason#Exit code 2: }"
        [ "$outcome" = passed ] ||
            give_up $check "$device cannot be used: ${reason:-exit code $code}"
        finish
    done
    works=true
}
if [ $dry = true ]; then
    find_libraries || record libraries absent "$(say_missing)" null 0 null ""
else
    preflight
fi
ready=$(count passed) # which is not a result of a check

# --- all checks --------------------------------------------------------------------------------
wanted >"$state/plan"
while read -r step check expected most; do
    run "$check" "$expected" "$most" </dev/null
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
