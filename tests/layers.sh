#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the layer rules of ARCHITECTURE.md. A room is a folder. It may include its own headers and
# those of the rooms that it depends on, and the dependencies have no cycle. In a build folder, the
# symbols of the objects are checked as well: no two source files depend on each other. Only cli
# prints to the terminal or exits.
build=$PWD
top=${top_srcdir:-.}
cd "$top" || exit 99
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0 passed=0

pass() { # what
    echo "ok - $1"
    passed=$((passed + 1))
}
fail() { # what, lines that show it
    echo "not ok - $1:"
    echo "$2"
    failed=$((failed + 1))
}
# Two exceptions: an output named "-" is standard output, and gnuplot is looked for in PATH.
allowed='^base/outfile\.c:.*stdout|^plots/draw/gnuplot\.c:.*getenv\("PATH"\)'
forbid() { # what, pattern, folders...
    what=$1 pattern=$2
    shift 2
    bad=$(grep -rnE "$pattern" --include='*.c' --include='*.h' "$@" | grep -vE ":[0-9]+: *//|$allowed" || true)
    if [ -n "$bad" ]; then
        fail "$what" "$bad"
    else
        pass "$what: none"
    fi
}

# Each room and the rooms that it depends on. `cli` has the code that its rooms share; no room depends
# on its commands (cmd_*.c, main.c). live uses only the argument parsing of cli.
cat >"$work/rooms" <<'END'
base
theory/rows base
theory base theory/rows
traces/files base
traces/tokenizer base traces/files
traces/trace base traces/files
traces/import base traces/files traces/tokenizer traces/trace
traces/export base traces/import traces/trace
plots/draw base
plots/figure base plots/draw
plots/report base plots/draw plots/figure
sim base theory theory/rows traces/trace
sim/draft base theory traces/trace sim
sim/verify base theory theory/rows sim
sim/model base traces/tokenizer traces/trace traces/import sim
sim/cost base traces/files traces/trace sim
sim/expect base theory traces/trace sim
sim/serve base sim sim/model sim/cost sim/expect sim/run
sim/run base sim sim/model sim/cost sim/expect
sim/sweep base traces/trace sim sim/model sim/cost sim/run
sim/tune base sim sim/cost sim/run
sim/reduce base theory theory/rows traces/trace
cli base traces/trace sim sim/model sim/cost sim/expect sim/run
cli/advise base traces/import traces/trace sim/cost sim/serve cli cli/trace cli/tune
cli/serve base sim/model sim/run sim/serve sim/sweep sim/tune cli cli/tune
cli/theory base theory traces/files traces/trace sim sim/draft sim/cost sim/expect cli
cli/trace base traces/trace traces/import sim/model sim/reduce cli
cli/tune base sim sim/tune cli
cli/validate base theory traces/trace traces/import sim sim/model sim/cost sim/run sim/serve sim/tune cli
roof base traces/import plots/draw plots/figure plots/report sim sim/model sim/cost sim/run sim/serve sim/sweep cli cli/advise cli/serve cli/theory cli/trace cli/tune cli/validate
live/device base theory/rows traces/files
live/device/cuda base theory/rows live/device
live/model base theory/rows traces/files traces/tokenizer sim/cost live/device
live/session base traces/trace sim sim/model sim/expect sim/run live/device live/model
live/program base theory traces/trace traces/tokenizer traces/import sim sim/draft sim/model sim/cost sim/run sim/serve sim/reduce live/device live/model live/session cli/cli.h cli/guard.h cli/method.h cli/result.h
END
sources=$(find base theory traces plots sim cli live -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')

# Lists every include of a header of the project as: room, room of the header, file:line, header.
# shellcheck disable=SC2086
grep -nE '^#include "[a-z]+/' $sources | awk -F '"' '
    function room(file) {
        if (file ~ /^cli\/(cmd_[a-z]*|main)\.c$/)
            return "roof"
        sub(/\/[^\/]*$/, "", file)
        return file
    }
    { split($1, at, ":"); print room(at[1]), room($2), at[1] ":" at[2], $2 }' >"$work/includes"
bad=$(awk '
    NR == FNR { known[$1]; for (i = 2; i <= NF; i++) may[$1, $i]; next }
    !($1 in known) { print $3 ": " $1 " is not in the list of rooms"; next }
    $1 != $2 && !(($1, $2) in may) && !(($1, $4) in may) { print $3 ": " $4 }' \
    "$work/rooms" "$work/includes")
if [ -n "$bad" ]; then
    fail "a room includes headers of a room that it does not depend on" "$bad"
else
    pass "$(wc -l <"$work/includes") includes, all along the listed dependencies"
fi
idle=$(awk '
    NR == FNR { used[$1, $2]; used[$1, $4]; next }
    { for (i = 2; i <= NF; i++) if (!(($1, $i) in used)) print $1 " on " $i }' \
    "$work/includes" "$work/rooms")
if [ -n "$idle" ]; then
    fail "a listed dependency of a room has no include" "$idle"
else
    pass "every dependency in the list of rooms exists"
fi
# A room comes after the rooms that it depends on; tsort reports where that is impossible.
if awk '{ print $1, $1; for (i = 2; i <= NF; i++) { sub(/\/[a-z]*\.h$/, "", $i); print $1, $i } }' \
    "$work/rooms" | tsort >/dev/null 2>"$work/loop"; then
    pass "$(wc -l <"$work/rooms") rooms, none of which depends on itself through others"
else
    fail "a room depends on itself through others" "$(cat "$work/loop")"
fi

forbid 'the library prints or exits' \
    '(^|[^a-z_])(printf|puts|putchar|perror|exit|abort|_exit) ?\(|stdout|stderr' \
    base theory traces plots sim
forbid 'the library reads the environment' '(^|[^a-z_])getenv ?\(' base theory traces plots sim
forbid 'GSL outside statistics' 'gsl/' theory traces plots cli sim live
forbid 'CUDA or BLAS outside live' '<(cuda|cublas|cblas)' base theory traces plots cli sim
# clang makes each of these functions a global symbol, so two with one name do not link.
again=$(grep -rhA1 '^DSC_FOR_EVERY_PROCESSOR' --include='*.c' base theory sim traces live |
    grep -oE '[a-z_0-9]+\(' | sort | uniq -d)
if [ -n "$again" ]; then
    fail "two functions for every processor have one name" "$again"
else
    pass "functions for every processor have distinct names"
fi

# A cycle is a list of source files, each of which needs a symbol of the next, and the last of the
# first. An object belongs to the source with the same path; the prefixes that automake and libtool
# add to its name are removed.
cycles() { # objects on stdin; prints the cycles, one per line
    xargs nm -A -g -P 2>/dev/null | awk -v build="$build/" -v files="$work/files" '
        NR == FNR { sub(/\.[a-z]*$/, ""); known[$1]; next }
        function source(object, name) {
            sub(/:$/, "", object)
            sub(/\[.*/, "", object)
            object = substr(object, length(build) + 1)
            sub(/\.libs\//, "", object)
            sub(/\.o$/, "", object)
            name = object
            sub(/.*\//, "", name)
            sub(/[^\/]*$/, "", object)
            sub(/.*-/, "", name)
            return object name
        }
        function reach(start, through, n, i, list) {
            n = split(needs[through], list, " ")
            for (i = 1; i <= n; i++)
                if (!((start, list[i]) in reached)) {
                    reached[start, list[i]]
                    reach(start, list[i])
                }
        }
        { file = source($1) }
        !(file in known) { next } # left by an earlier build
        $3 ~ /^[Uwv]$/ { if (!((file, $2) in wanted)) { wanted[file, $2]; use[++uses] = file " " $2 } }
        # Programs may each define a symbol of the same name; each uses its own.
        $3 !~ /^[Uwv]$/ && !((file, $2) in given) {
            given[file, $2]
            if ($2 in owner)
                owner[$2] = "several"
            else
                owner[$2] = file
        }
        END {
            for (i = 1; i <= uses; i++) {
                split(use[i], want, " ")
                to = owner[want[2]]
                if (to == "" || to == "several" || to == want[1] || (want[1], to) in edge)
                    continue
                edge[want[1], to]
                if (!(want[1] in needs))
                    user[++users] = want[1]
                needs[want[1]] = needs[want[1]] " " to
            }
            for (i = 1; i <= users; i++)
                reach(user[i], user[i])
            for (i = 1; i <= users; i++) {
                line = ""
                for (j = i; j <= users; j++)
                    if ((user[i], user[j]) in reached && (user[j], user[i]) in reached &&
                        !(user[j] in listed)) {
                        listed[user[j]]
                        line = line " " user[j]
                    }
                if (line)
                    print line
            }
            print users + 0 >files
        }' "$work/sources" -
}
for room in base theory traces plots sim cli live tests/ops; do
    [ ! -d "$build/$room" ] || find "$build/$room" -name '*.o'
done >"$work/objects"
find base theory traces plots sim cli live tests/ops -name '*.c' -o -name '*.cu' >"$work/sources"
if [ -s "$work/objects" ]; then
    found=$(cycles <"$work/objects")
    if [ -n "$found" ]; then
        fail "$(echo "$found" | wc -l) cycles of source files that need each other" "$found"
    elif [ "$(cat "$work/files")" -lt 100 ]; then
        fail "nm does not read the objects" "$(cat "$work/files") files need another"
    else
        pass "0 cycles among $(cat "$work/files") source files"
    fi
else
    echo "# no objects in $build: cycles of source files are not checked"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
