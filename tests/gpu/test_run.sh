#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests tests/gpu/run.sh without a GPU. With programs that only exit, hang or lack a library: the
# results when checks fail, when the script is killed, when time is over, and in a second call. With
# the programs of this build: a bundle, and a run on the CPU.
. "${top_srcdir:-.}/tests/gpu/common.sh"
build=$(pwd)
valid() { # results.json is JSON with what it must have; python is not needed, only used
    command -v python3 >/dev/null || return 0
    python3 - "$1" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert set(r) >= {"started", "written", "finished", "gpu", "driver", "programs", "checks"}, r.keys()
count = {}
for c in r["checks"]:
    count[c["outcome"]] = count.get(c["outcome"], 0) + 1
    assert isinstance(c["output"], list) and isinstance(c["commands"], list), c
    assert c["outcome"] == "passed" or c["reason"], c
counts = ("passed", "absent", "timed_out", "not_run", "interrupted", "passed_earlier")
got = {k: r[k] for k in counts}
want = {k: count.get(k.replace("_", " "), 0) for k in got}
assert got == want, (got, want)
assert r["failed"] == count.get("failed", 0) + count.get("timed out", 0), r["failed"]
assert r["dry_run"] or r["not_run"] == 0 or r["minutes"] or r["verdict"], r["not_run"]
END
}
says() { # folder, check, outcome
    grep -q "{\"check\": \"$2\", \"outcome\": \"$3\"" "$work/$1/results.json"
}
has() { # folder, text
    grep -qF -e "$2" "$work/$1/results.json"
}
archived() { # archive: it unpacks, and its results.json is JSON
    rm -rf "$work/unpacked" && mkdir "$work/unpacked" && tar -xzf "$1" -C "$work/unpacked" &&
        valid "$(echo "$work"/unpacked/*/results.json)"
}
run() { # folder, options of run.sh
    folder=$work/$1
    shift
    sh "$work/b/run.sh" --out "$folder" "$@" >"$work/log" 2>&1
}

# A bundle whose programs run a piece of shell. $open is set for a call that only opens the device.
bundle() { # shell
    rm -rf "$work/b" && mkdir -p "$work/b/bin" "$work/b/lib" "$work/b/live/demo/target" \
        "$work/b/live/demo/draft" "$work/b/live/demo/eagle" "$work/b/tests/oracle/fixtures" \
        "$work/b/tests/oracle/gguf"
    for script in run checks results libraries; do
        cp "$top/tests/gpu/$script.sh" "$work/b/"
    done
    touch "$work/b/lib/libcublas.so.13" "$work/b/lib/libcublasLt.so.13"
    for program in check_ops on_device draftscope-live; do
        cat >"$work/b/bin/$program" <<END
#!/bin/sh
case " \$* " in *" list "* | *" --open "*) open=yes ;; *) open= ;; esac
$1
END
        chmod +x "$work/b/bin/$program"
    done
}
ends() { # a piece of shell: the exit code, a line
    printf '%s' "[ \$open ] && exit 0
        printf '%s\\n' 'a \"quoted\" line \\ and a	tab' 'not ok - this one' '$2'
        exit $1"
}

# --- outcomes ----------------------------------------------------------------------------------
bundle "echo 'cuda: no device: there is no driver' >&2; exit 77"
run r1
[ $? = 3 ] && [ "$(grep -c '^run.sh:' "$work/log")" = 1 ] && valid "$work/r1/results.json" &&
    says r1 list absent && has r1 '"finished": true' && has r1 'there is no driver'
ok $? "a device that cannot be used: exit code 3, one line, JSON"

bundle "$(ends 3 'cuda: 26.1 GB are needed, 15.9 GB are free')"
run r1 --only ops,fixtures
[ $? = 3 ] && valid "$work/r1/results.json" && says r1 ops-quick absent &&
    has r1 '"reason": "cuda: 26.1 GB are needed, 15.9 GB are free", "exit_code": 3'
ok $? "too little memory: absent, with the figures, and no check passed"

# A kernel that crashes is no device that is absent, whatever the program's exit code: 3 and 77 are
# also what cmocka returns for as many failures.
crash='check_ops: wait: cuda:0 H100: cudaStreamSynchronize: an illegal memory access was encountered'
for code in 1 3 77; do
    bundle "$(ends $code "$crash")"
    run r2 --only bench,profile-llama-3-8b-short
    [ $? = 1 ] && valid "$work/r2/results.json" && says r2 bench failed && has r2 '"failed": 2' &&
        grep -q "^failed *bench.*: Exit code $code.*: $crash\$" "$work/log" && [ "$(wc -l <"$work/log")" = 6 ]
    ok $? "a crashed kernel, exit code $code: a failure, in one line"
done

bundle "$(ends 5 'the end')"
run r2 --only ops,fixtures
[ $? = 1 ] && valid "$work/r2/results.json" && has r2 '"failed": 1' &&
    has r2 'a \"quoted\" line \\ and a' && has r2 '"failures": ["not ok - this one"' &&
    has r2 '"reason": "Exit code 5: rows: the end; products: the end'
ok $? "a failing check: exit code 1, JSON with its output"

# --- what a failure means ----------------------------------------------------------------------
says r2 ops-quick.again diagnosis && says r2 ops-quick.overlap0 diagnosis &&
    says r2 ops-quick.graphs0 diagnosis && says r2 ops-quick.prefetch0 diagnosis &&
    says r2 ops-quick.carveout100 diagnosis && says r2 ops-quick.memcheck diagnosis &&
    says r2 ops-full "not run" && says r2 fixtures "not run" &&
    grep -q '^run.sh: STOP: ops-quick does not pass as it was, overlap=0, graphs=0, prefetch=0, carveout=100\.$' \
        "$work/log" && has r2 '"verdict": "STOP: ops-quick does not pass'
ok $? "it fails with every switch: STOP, and the other checks are not run"

# The tools of the machine do not get the bundle's libraries, and the programs under them do.
mkdir "$work/tools"
cat >"$work/tools/compute-sanitizer" <<'END'
#!/bin/sh
echo "========= Invalid __global__ read of size 4 bytes, in ${LD_LIBRARY_PATH:-no folder}"
shift 5 # options with values
while [ "$1" != env ]; do shift; done
"$@" >/dev/null
exit 9
END
chmod +x "$work/tools/compute-sanitizer"
bundle "[ \$open ] && exit 0
    echo \"\$LD_LIBRARY_PATH\" >'$work/path'; exit 1"
PATH=$work/tools:$PATH LD_LIBRARY_PATH='' run r2 --only fixtures
[ $? = 1 ] && [ "$(cat "$work/path")" = "$work/b/lib" ] &&
    grep -q 'prefetch=0, carveout=100\. memcheck: =* Invalid __global__ read .* in no folder$' "$work/log"
ok $? "memcheck: its first line is in the verdict"

fails_unless() { # words of a command line, sections
    printf '%s' "[ \$open ] && exit 0
        case \"\$*\" in *$1*) exit 0 ;; *--only\ $2*|*fixtures*) echo 'it crashed'; exit 1 ;; esac"
}
bundle "$(fails_unless graphs=0 attention)"
run r3 --only ops-quick,fixtures --device cuda:1
[ $? = 1 ] && valid "$work/r3/results.json" && says r3 ops-quick failed && says r3 fixtures passed &&
    grep -q '^run.sh: GO ON with graphs=0: ops-quick passes with it.$' "$work/log" &&
    has r3 '"commands": ["bin/on_device --device cuda:1,graphs=0 fixtures"]' &&
    has r3 '"device": "cuda:1"'
ok $? "it passes with a switch: GO ON, and the other checks have it"
grep -q '"check": "ops-quick.overlap0".*"commands": \["bin/check_ops --device cuda:1,overlap=0 --only attention --quick"\]' \
    "$work/r3/results.json"
ok $? "only the failed section is repeated"
bundle "[ \$open ] && exit 0
    [ -e '$work/once' ] && exit 0
    echo 'it crashed'; touch '$work/once'; exit 1"
run r3 --only ops-quick --device cuda:overlap=0,prefetch=4
[ $? = 1 ] && grep -q 'GO ON with graphs=0: .* It does not always fail' "$work/log" &&
    ! says r3 ops-quick.overlap0 diagnosis && grep -q '^\$ .* --device cuda:overlap=0,prefetch=0 ' \
        "$work/r3/ops-quick.prefetch0.log"
ok $? "it does not always fail: the verdict says so; switches that are given are kept or replaced"

# Only the larger shapes fail: the smaller ones are no repetition.
bundle "$(fails_unless --quick products)"
run r3 --only ops-full,fixtures
[ $? = 1 ] && says r3 fixtures "not run" && grep -q '^run.sh: STOP: ops-full does not pass as it was' "$work/log"
ok $? "a failure of larger shapes is not passed by smaller ones"

bundle "for last; do :; done # a table is asked for as the last option
    case \$* in *.tsv*) echo tokens >\"\$last\" ;; esac
    $(ends 0 '{"divergences": 0.0}')"
run r3 --only profile,lossless,ops --archive "$work/r3.tgz"
ok $? "passing checks: exit code 0"
valid "$work/r3/results.json" && has r3 '"passed": 16' && archived "$work/r3.tgz" &&
    [ -s "$work/unpacked/r3/lossless-tree.log" ]
ok $? "passing checks: JSON and an archive with the logs"
[ "$(sed -n 's/^passed  *\([a-z0-9.-]*\).*/\1/p' "$work/log" | sed -n '4p;$p' | tr '\n' ' ')" = \
    "profile-llama-3-8b-short ops-full " ]
ok $? "--only: checks run in its order, those of a group in that of the plan"

bundle "$(ends 0 '{"divergences": 0.5}')"
run r4 --only lossless
[ $? = 1 ] && valid "$work/r4/results.json" && has r4 '"failed": 1' && has r4 'STOP: lossless-tree' &&
    has r4 'emitted different tokens'
ok $? "tokens that differ from plain decoding fail"

run r5 --dry-run
ok $? "dry run: exit code 0"
valid "$work/r5/results.json" && has r5 '"dry_run": true' && ! says r5 '.*' passed &&
    has r5 '"commands": ["bin/check_ops --device cuda --only rows --quick", ' &&
    [ -z "$(find "$work/r5" -name '*.log')" ]
ok $? "dry run: JSON with the commands, nothing run"
rm -rf "$work/b/bin"
run r6 --dry-run && valid "$work/r6/results.json" && has r6 'This check needs bin/check_ops'
ok $? "dry run without programs: JSON that names them"
run r6
[ $? = 3 ] && valid "$work/r6/results.json" && has r6 'There are no programs'
ok $? "no programs: exit code 3"
while IFS='|' read -r options words; do
    # shellcheck disable=SC2086 # words
    run r6 $options
    [ $? = 2 ] && grep -qF -e "$words" "$work/log" && [ "$(wc -l <"$work/log")" -le 2 ]
    ok $? "usage: exit code 2 for $options"
done <<END
--no-such|--no-such is no option of this script
--only no-such|--only no-such: --list lists the checks
--minutes two|--minutes two: a number of minutes is expected
--device fpga|cuda, cuda:N,SWITCH,... or cpu is expected
--device cuda:|cuda:N, cuda:SWITCH,... is expected
--device cuda:;|cuda:N, cuda:SWITCH,... is expected
--minutes|--minutes needs a value
--skip-passed $work/none|none: a results.json or an archive is expected
END

run "r 6" --dry-run
[ $? = 2 ] && grep -q "^run.sh: a path without blanks is expected, of this script and of --out: $work/r 6\$" "$work/log" && [ ! -e "$work/r 6" ]
ok $? "usage: exit code 2 for a folder with blanks, which is not made"

# --- libraries ---------------------------------------------------------------------------------
# An ldd that misses one library, unless LD_LIBRARY_PATH has it.
rm "$work/tools/compute-sanitizer"
cat >"$work/tools/ldd" <<'END'
#!/bin/sh
for folder in $(echo "$LD_LIBRARY_PATH" | tr : ' '); do
    [ ! -e "$folder/libnowhere.so.7" ] || exit 0
done
printf '\tlibnowhere.so.7 => not found\n'
END
chmod +x "$work/tools/ldd"
bundle "$(ends 0 '')"
PATH=$work/tools:$PATH run r7 --only ops
[ $? = 3 ] && grep -q '^run.sh: Libraries were not found: libnowhere.so.7\.' "$work/log" &&
    [ "$(wc -l <"$work/log")" = 2 ] && valid "$work/r7/results.json" && says r7 libraries absent
ok $? "a library that is missing: exit code 3 and one line"
touch "$work/found"
for at in cuda/targets/x86_64-linux/lib packages/nvidia/cu13/lib; do
    mkdir -p "$work/$at" && mv "$work/found" "$work/$at/libnowhere.so.7"
    PATH=$work/tools:$PATH CUDA_HOME=$work/cuda PYTHONPATH=$work/packages run r7 --only ops
    [ $? = 0 ] && has r7 "\"library_path\": \"$work/$at\""
    ok $? "a library is found in $at, and no other folder is added"
    mv "$work/$at/libnowhere.so.7" "$work/found"
done

# --- time, signals, a second call --------------------------------------------------------------
hangs="[ \$open ] && exit 0
    case \$* in *--bench*|*'--method tree'*) echo 'it began' >&2; echo \$\$ >'$work/hanging'; exec sleep 60 ;; esac
    echo done"
bundle "$hangs"
run r8 --only ops-quick --minutes .6
[ $? = 2 ] && grep -qF -e '--minutes .6: a number of minutes is expected' "$work/log"
ok $? "usage: .6 is no number of JSON"
run r8 --only lossless-tree,ops-full --minutes 0.3 --archive "$work/r8.tgz"
[ $? = 1 ] && valid "$work/r8/results.json" && says r8 ops-full "not run" &&
    says r8 lossless-tree "timed out" && has r8 'as --minutes 0.3 were nearly over' &&
    has r8 '"output": ["it began"]' && has r8 '"verdict": null' && archived "$work/r8.tgz"
ok $? "a check that hangs is stopped, with no diagnosis after the end; one that does not fit is not run"
# 40 s are expected of a profile, which half a minute has only because the checks before it were quick.
run r8 --only ops-quick,profile-llama-3-8b-short --minutes 0.55 && false
says r8 ops-quick passed && ! says r8 profile-llama-3-8b-short "not run"
ok $? "what is expected is corrected by how long the checks before took"

start() { # folder, options: returns when bench runs; its process is $script
    folder=$work/$1
    rm -f "$work/hanging"
    shift
    sh "$work/b/run.sh" --out "$folder" "$@" >"$work/log" 2>&1 &
    script=$!
    for _ in $(seq 200); do
        [ ! -s "$work/hanging" ] || return 0
        sleep .1
    done
}
start r9 --only ops-quick,bench,fixtures --archive "$work/r9.tgz"
kill -TERM $script
wait $script
[ $? = 143 ] && [ -z "$(tr -d '\0' 2>/dev/null <"/proc/$(cat "$work/hanging")/cmdline")" ]
ok $? "TERM: exit code 143, and what ran is ended"
valid "$work/r9/results.json" && has r9 '"finished": false' && has r9 '"stopped_by": "TERM"' &&
    says r9 ops-quick passed && says r9 bench interrupted && archived "$work/r9.tgz"
ok $? "TERM: results and archive are there"
start r10 --only ops-quick,bench,fixtures --archive "$work/r10.tgz"
kill -KILL $script
wait $script 2>/dev/null
kill "$(cat "$work/hanging")"
valid "$work/r10/results.json" && has r10 '"finished": false' && has r10 '"running": "bench"' &&
    says r10 ops-quick passed && archived "$work/r10.tgz" && has unpacked/r10 ops-quick
ok $? "KILL: results and archive of the checks before it are there"

for earlier in "$work/r10" "$work/r10.tgz" "$work/r10/results.json"; do
    run r11 --only ops-quick,fixtures --skip-passed "$earlier"
    [ $? = 0 ] && valid "$work/r11/results.json" && says r11 ops-quick "passed earlier" &&
        says r11 fixtures passed && [ ! -e "$work/r11/ops-quick.log" ]
    ok $? "a second call goes on from ${earlier##*/}"
done
run r12 --only ops-quick,fixtures --skip-passed "$work/r11" && says r12 fixtures "passed earlier" &&
    says r12 ops-quick "passed earlier"
ok $? "a third call knows what passed in the first"
echo '# another program' >>"$work/b/bin/check_ops"
run r12 --only ops-quick --skip-passed "$work/r11" && says r12 ops-quick passed &&
    grep -q 'another "programs"' "$work/log"
ok $? "what other programs passed is run again"

run r13 --list && [ "$(sed -n '2p' "$work/log" | cut -c 1-15)" = "1     ops-quick" ] &&
    [ "$(awk 'NR > 1 { print $1 }' "$work/log" | sort -c 2>&1)" = "" ]
ok $? "the list is in the order of steps"

bundle "case \" \$* \" in *' --open '*) echo 'no device is called that'; exit 2 ;; esac"
run r13 --only ops-quick --device cuda:junk=0
[ $? = 2 ] && grep -q '^run.sh: --device cuda:junk=0: no device is called that$' "$work/log"
ok $? "a switch that the programs do not know: exit code 2"
(cd "$work/b" && sha256sum bin/check_ops >files.sha256 && truncate -s -1 bin/check_ops)
run r13 --only ops-quick
[ $? = 3 ] && valid "$work/r13/results.json" &&
    grep -q '^run.sh: bin/check_ops is not as it was packed: unpack the bundle again.$' "$work/log"
ok $? "a bundle that was cut short: exit code 3 and one line"

# A device that fails after some launches, by the emulation.
if [ -x "$build/tests/cuda_host/check_ops" ]; then
    bundle "[ \$open ] && exit 0
        case \$0 in *check_ops) exec '$build/tests/cuda_host/check_ops' \"\$@\" ;; esac"
    EMULATED=launches=50 run r17 --only ops-quick,fixtures --archive "$work/r17.tgz"
    [ $? = 1 ] && archived "$work/r17.tgz" && says r17 open passed && says r17 ops-quick failed &&
        says r17 fixtures "not run" && has r17 'STOP: ops-quick does not pass' &&
        has r17 'cuda:0 emulated: cudaStreamSynchronize: an illegal memory access was encountered'
    ok $? "an emulated device that fails: exit code 1, STOP"
    EMULATED=memory=100000 run r17 --only ops-quick
    [ $? = 3 ] && says r17 ops-quick absent && has r17 'out of memory: '
    ok $? "an emulated device with little memory: absent"
fi

# --- programs of this build --------------------------------------------------------------------
unpack() { # programs: a bundle in $u
    rm -rf "$work/u" && mkdir "$work/u"
    sh "$top/tests/gpu/bundle.sh" "$top" "$build" "$work/b.tar.xz" "$@" >"$work/log" 2>&1 &&
        tar -xf "$work/b.tar.xz" -C "$work/u"
    u=$work/u/draftscope-gpu
}
# Every check runs on the CPU from a bundle that was unpacked elsewhere, or says what it lacks.
# Lines of other scripts are indented: CI adds up lines with numbers of passed and failed checks.
if [ -x "$build/draftscope-live" ] && [ -d "$top/live/demo/target" ] && command -v xz >/dev/null; then
    programs="tests/ops/check_ops draftscope-live draftscope"
    [ ! -e "$build/tests/cross/on_device" ] || programs="$programs tests/cross/on_device"
    # shellcheck disable=SC2086 # a list of words
    unpack $programs
    ok $? "a bundle"
    [ -e "$u/lib/libopenblas.so.0" ] && [ -z "$(find "$u/lib" -name 'libcu*' -o -name 'libc.*')" ]
    ok $? "its libraries: OpenBLAS, neither CUDA's nor the C library"
    if [ -e "$build/.libs/libdraftscope-cuda.so" ]; then # not with --disable-shared
        [ -e "$u/lib/libdraftscope-cuda.so" ] && [ "$(wc -c <"$u/bin/check_ops")" -lt 10000000 ]
        ok $? "the kernels are there once, and not in the programs"
    fi
    "$u/run.sh" --out "$work/r14" --only ops-quick >"$work/log" 2>&1
    code=$?
    valid "$work/r14/results.json" && { [ $code = 3 ] || [ $code = 0 ]; }
    ok $? "the bundle runs: passed, or exit code 3 without a device"
    # The longest are replaced by their smaller forms, unless all is to be tested.
    small='^ops-full|^sampling|-all$|'
    [ -z "${DSC_TEST_ALL:-}" ] || small=
    checks=$("$u/run.sh" --list | awk 'NR > 1 { print $2 }' | grep -vE "$small^validate$" | paste -sd ,)
    (cd / && "$u/run.sh" --out "$work/r15" --device cpu --archive "$work/r15.tgz" --only "$checks") \
        >"$work/log" 2>&1
    code=$?
    [ $code = 0 ] && valid "$work/r15/results.json" && archived "$work/r15.tgz" &&
        has r15 '"failed": 0' && says r15 ops-quick passed && says r15 lossless-tree passed &&
        says r15 sanitizer-memcheck absent && grep -q '^1	0	1	' \
        "$work/unpacked/r15/profile-llama-3-8b-short.tsv"
    ok $? "every check on the CPU: passed, or absent with a reason"
    [ "$(grep -c '"outcome": "absent"' "$work/r15/results.json")" = \
        "$(grep -cE '"outcome": "absent".*(needs a GPU|is not on this machine)' "$work/r15/results.json")" ]
    ok $? "what is absent is named"
    for method in tree spectr pearl llma; do
        said="speedup of $method \(.*\): predicted [0-9.]*, measured [0-9.]*, error .*"
        grep -Eq "$said %: (pass|fail)" "$work/r15/results.json"
        ok $? "$method: a predicted and a measured speedup in the JSON"
    done
    "$u/run.sh" --out "$work/r16" --device cpu --minutes 2 --only validate >"$work/log" 2>&1
    [ $? = 3 ] && says r16 validate "not run"
    ok $? "what does not fit into the minutes is not run"
fi
summary
