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
assert r["dry_run"] or r["not_run"] == 0 or r["minutes"], r["not_run"]
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
        "$work/b/live/demo/draft" "$work/b/live/demo/eagle" "$work/b/tests/oracle/fixtures"
    for script in run checks results libraries; do
        cp "$top/tests/gpu/$script.sh" "$work/b/"
    done
    touch "$work/b/lib/libcublas.so.13" "$work/b/lib/libcublasLt.so.13"
    for program in check_ops test_fixtures draftscope-live; do
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

bundle "$(ends 5 'the end')"
run r2 --only ops,fixtures
[ $? = 1 ] && valid "$work/r2/results.json" && has r2 '"failed": 3' &&
    has r2 'a \"quoted\" line \\ and a' && has r2 '"failures": ["not ok - this one"]' &&
    has r2 '"reason": "Exit code 5: the end"'
ok $? "failing checks: exit code 1, JSON with their output"

bundle "for last; do :; done # a table is asked for as the last option
    case \$* in *.tsv*) echo tokens >\"\$last\" ;; esac
    $(ends 0 '{"divergences": 0.0}')"
run r3 --only ops,lossless,profile --archive "$work/r3.tgz"
ok $? "passing checks: exit code 0"
valid "$work/r3/results.json" && has r3 '"passed": 16' && archived "$work/r3.tgz" &&
    [ -s "$work/unpacked/r3/lossless-tree.log" ]
ok $? "passing checks: JSON and an archive with the logs"

bundle "$(ends 0 '{"divergences": 0.5}')"
run r4 --only lossless
[ $? = 1 ] && valid "$work/r4/results.json" && has r4 '"failed": 7' &&
    has r4 'emitted different tokens'
ok $? "tokens that differ from plain decoding fail"

run r5 --dry-run
ok $? "dry run: exit code 0"
valid "$work/r5/results.json" && has r5 '"dry_run": true' && ! says r5 '.*' passed &&
    has r5 '"commands": ["bin/check_ops --device cuda --quick"]' &&
    [ -z "$(find "$work/r5" -name '*.log')" ]
ok $? "dry run: JSON with the commands, nothing run"
rm -rf "$work/b/bin"
run r6 --dry-run && valid "$work/r6/results.json" && has r6 'This check needs bin/check_ops'
ok $? "dry run without programs: JSON that names them"
run r6
[ $? = 3 ] && valid "$work/r6/results.json" && has r6 'There are no programs'
ok $? "no programs: exit code 3"
for options in --no-such "--only no-such" "--minutes two" "--device fpga" --minutes \
    "--skip-passed $work/none"; do
    # shellcheck disable=SC2086 # words
    run r6 $options
    [ $? = 2 ] && [ "$(wc -l <"$work/log")" -le 2 ]
    ok $? "usage: exit code 2 for $options"
done

# --- libraries ---------------------------------------------------------------------------------
# An ldd that misses one library, unless LD_LIBRARY_PATH has it.
mkdir "$work/tools"
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
    case \$* in *--bench*) echo 'it began'; echo \$\$ >'$work/hanging'; exec sleep 60 ;; esac
    echo done"
bundle "$hangs"
run r8 --only bench-no-prefetch,ops-full,ops-quick --minutes .6
[ $? = 2 ]
ok $? "usage: .6 is no number of JSON"
run r8 --only bench-no-prefetch,ops-full,ops-quick --minutes 0.6 --archive "$work/r8.tgz"
[ $? = 1 ] && valid "$work/r8/results.json" && says r8 ops-quick passed &&
    says r8 ops-full "not run" && says r8 bench-no-prefetch "timed out" &&
    has r8 'as --minutes 0.6 were nearly over' && has r8 '"output": ["it began"]' &&
    archived "$work/r8.tgz"
ok $? "a check that hangs is stopped; one that does not fit is not run"

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

# --- programs of this build --------------------------------------------------------------------
# Lines of other scripts are indented: CI adds up lines with numbers of passed and failed checks.
unpack() { # programs: a bundle in $u
    rm -rf "$work/u" && mkdir "$work/u"
    sh "$top/tests/gpu/bundle.sh" "$top" "$build" "$work/b.tar.gz" "$@" >"$work/log" 2>&1 &&
        tar -xf "$work/b.tar.gz" -C "$work/u"
    u=$work/u/draftscope-gpu
}
if [ -x "$build/tests/ops/check_ops" ]; then
    unpack tests/ops/check_ops
    ok $? "a bundle of check_ops"
    [ -e "$u/lib/libopenblas.so.0" ] &&
        [ -z "$(find "$u/lib" -name 'libcu*' -o -name 'libgsl*' -o -name 'libc.*')" ]
    ok $? "its libraries: OpenBLAS, neither CUDA's, nor GSL, nor the C library"
    "$u/run.sh" --out "$work/r14" --only ops-quick >"$work/log" 2>&1
    code=$?
    valid "$work/r14/results.json" && { [ $code = 3 ] || [ $code = 0 ]; }
    ok $? "the bundle runs: passed, or exit code 3 without a device"
fi

# On the CPU; measurements on a machine under load do not matter here.
if [ -x "$build/draftscope-live" ] && [ -d "$top/live/demo/target" ]; then
    unpack tests/ops/check_ops draftscope-live draftscope
    ok $? "a bundle with recorded drafts"
    "$u/run.sh" --out "$work/r15" --device cpu --minutes 2 --archive "$work/r15.tgz" \
        --only ops-quick,profile-llama-3-8b-short,lossless-draft-model,validate >"$work/log" 2>&1
    [ $? = 0 ] && valid "$work/r15/results.json" && archived "$work/r15.tgz" &&
        says r15 ops-quick passed && says r15 lossless-draft-model passed &&
        says r15 validate "not run" &&
        grep -q '^1	0	1	' "$work/unpacked/r15/profile-llama-3-8b-short.tsv"
    ok $? "two minutes on the CPU leave verdicts, tables and an archive"
    "$u/run.sh" --out "$work/r16" --device cpu \
        --only replay-eagle,replay-spectr,replay-pearl,replay-llama-2-7b >"$work/log" 2>&1
    code=$?
    valid "$work/r16/results.json" && [ $code -le 1 ] && has r16 '"failed": 0'
    [ $? = $code ]
    ok $? "recorded drafts are run, exit code $code"
    for method in tree spectr pearl llma; do
        said="speedup of $method \(.*\): predicted [0-9.]*, measured [0-9.]*, error .*"
        grep -Eq "$said %: (pass|fail)" "$work/r16/results.json"
        ok $? "$method: a verdict in the JSON"
    done
    ! grep -E '	(draft_acceptance_rate|block_efficiency|accept_distance)	.*	fail	' "$work/r16"/*.tsv
    ok $? "what was accepted is what is predicted"
fi
summary
