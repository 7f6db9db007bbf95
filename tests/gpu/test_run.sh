#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run.sh itself, without a GPU: what it writes when everything is absent, when checks fail
# and in a dry run is JSON that says so; and bundle.sh with programs of this build.
top=${top_srcdir:-.}
top=$(cd "$top" && pwd) || exit 99
build=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0
ok() { # condition's exit code, name
    if [ "$1" = 0 ]; then
        echo "ok - $2"
        passed=$((passed + 1))
    else
        echo "not ok - $2"
        failed=$((failed + 1))
    fi
}
valid() { # results.json is JSON with what it must have; python is not needed, only used
    command -v python3 >/dev/null || return 0
    python3 - "$1" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert set(r) >= {"date", "gpu", "driver", "checks", "passed", "failed", "absent"}, r.keys()
count = {"passed": 0, "failed": 0, "absent": 0, "not run": 0}
for c in r["checks"]:
    count[c["outcome"]] += 1
    assert isinstance(c["output"], list) and c["command"], c
for k in ("passed", "failed", "absent"):
    assert count[k] == r[k], (k, count, r[k])
assert r["dry_run"] or not count["not run"], count
END
}
bundle() { # an unpacked bundle with programs that answer with an exit code of their own
    rm -rf "$work/b" && mkdir -p "$work/b/bin" "$work/b/live/demo/target" "$work/b/live/demo/draft" \
        "$work/b/tests/oracle/fixtures" "$work/b/live/demo/eagle"
    cp "$top/tests/gpu/run.sh" "$work/b/"
    for program in check_ops test_fixtures draftscope-live; do
        cat >"$work/b/bin/$program" <<END
#!/bin/sh
printf '%s\n' 'a "quoted" line \\ and a	tab' '$2'
exit $1
END
        chmod +x "$work/b/bin/$program"
    done
}

# nvidia-smi may be on the machine of the test; what the script makes of it is not tested here.
bundle 77 ''
sh "$work/b/run.sh" --out "$work/r1" >"$work/log" 2>&1
[ $? = 77 ]
ok $? "nothing there: exit code 77"
valid "$work/r1/results.json" && grep -q '"passed": 0' "$work/r1/results.json" &&
    grep -q '"outcome": "absent", "exit_code": 77' "$work/r1/results.json"
ok $? "nothing there: JSON that says so"

bundle 5 ''
sh "$work/b/run.sh" --out "$work/r2" --only ops,fixtures >"$work/log" 2>&1
[ $? = 1 ]
ok $? "failing checks: exit code 1"
valid "$work/r2/results.json" && grep -q '"failed": 2' "$work/r2/results.json" &&
    grep -q 'a \\"quoted\\" line \\\\ and a' "$work/r2/results.json"
ok $? "failing checks: JSON with their output"

bundle 0 '{"divergences": 0.0}'
sh "$work/b/run.sh" --out "$work/r3" --only ops,lossless,profile >"$work/log" 2>&1
ok $? "passing checks: exit code 0"
valid "$work/r3/results.json" && grep -q '"passed": 11' "$work/r3/results.json"
ok $? "passing checks: JSON that says so"

bundle 0 '{"divergences": 0.5}'
sh "$work/b/run.sh" --out "$work/r4" --only lossless >"$work/log" 2>&1
[ $? = 1 ] && valid "$work/r4/results.json" && grep -q '"failed": 7' "$work/r4/results.json"
ok $? "texts that differ from plain decoding fail"

sh "$work/b/run.sh" --out "$work/r5" --dry-run >"$work/log" 2>&1
ok $? "dry run: exit code 0"
valid "$work/r5/results.json" && grep -q '"dry_run": true' "$work/r5/results.json" &&
    ! ls "$work/r5" | grep -q '\.log$'
ok $? "dry run: JSON, nothing run"
rm -rf "$work/b/bin"
sh "$work/b/run.sh" --out "$work/r6" --dry-run >"$work/log" 2>&1
valid "$work/r6/results.json" && grep -q 'no bin/check_ops' "$work/r6/results.json"
ok $? "dry run without programs: JSON that names them"
sh "$work/b/run.sh" --no-such >"$work/log" 2>&1
[ $? = 2 ]
ok $? "usage: exit code 2"

# What others print is indented: CI adds up lines that say how many passed and failed.
if [ -x "$build/live/check_ops" ]; then
    sh "$top/tests/gpu/bundle.sh" "$top" "$build" "$work/b.tar.gz" live/check_ops >"$work/log" &&
        mkdir "$work/u" && tar -xf "$work/b.tar.gz" -C "$work/u"
    ok $? "a bundle of check_ops"
    sed "s/^/# /" "$work/log"
    u=$work/u/draftscope-gpu
    ls "$u/lib" >"$work/libs"
    ! grep -Eq '^(libcu|libgsl|libc\.)' "$work/libs" && grep -q libopenblas "$work/libs"
    ok $? "its libraries: OpenBLAS, neither CUDA's, nor GSL, nor the C library"
    sh "$u/run.sh" --out "$work/r7" --only ops >"$work/log" 2>&1
    code=$?
    sed "s/^/# /" "$work/log"
    valid "$work/r7/results.json" && { [ $code = 77 ] || [ $code = 0 ]; }
    ok $? "the bundle runs: passed, or absent without a device"
fi

# Drafts that are forced, on the processors: what a machine under load measures is of no matter here.
if [ -x "$build/draftscope-live" ] && [ -d "$top/live/demo/target" ]; then
    rm -rf "$work/u" && mkdir "$work/u"
    sh "$top/tests/gpu/bundle.sh" "$top" "$build" "$work/b.tar.gz" draftscope-live draftscope \
        >"$work/log" && tar -xf "$work/b.tar.gz" -C "$work/u"
    ok $? "a bundle with recorded drafts"
    u=$work/u/draftscope-gpu
    sh "$u/run.sh" --out "$work/r8" --device cpu --only forced >"$work/log" 2>&1
    code=$?
    sed "s/^/# /" "$work/log"
    valid "$work/r8/results.json" && [ $code -le 1 ] && grep -q '"failed": 0' "$work/r8/results.json"
    [ $? = $code ]
    ok $? "they are run, exit code $code"
    for method in tree spectr pearl; do
        grep -Eq "speedup of $method: predicted [0-9.]*, measured [0-9.]*, error .* %: (pass|fail)" \
            "$work/r8/results.json"
        ok $? "$method: a verdict in the JSON"
    done
    ! grep -E '	(acceptance_rate|block_efficiency|accept_distance)	.*	fail	' "$work/r8"/*.tsv
    ok $? "what was accepted is what is predicted"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
