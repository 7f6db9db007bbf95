#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The layer rules of ARCHITECTURE.md. By the includes: a room, which is a folder, may include its own
# headers and those of the rooms it stands on, and no way through the rooms leads back. By the
# symbols of the objects, where this is run in a build folder: no two source files need each other.
# Also: only cli prints to the terminal or exits.
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
forbid() { # what, pattern, folders...
    what=$1 pattern=$2
    shift 2
    bad=$(grep -rnE "$pattern" --include='*.c' --include='*.h' "$@" | grep -vE ':[0-9]+: *//' || true)
    if [ -n "$bad" ]; then
        fail "$what" "$bad"
    else
        pass "$what: none"
    fi
}

# Each room and what it stands on. What cli's rooms share lies in cli; its commands (cmd_*.c, main.c)
# are the roof over them, which nothing stands on. live takes from cli what reads arguments.
cat >"$work/rooms" <<'END'
base
theory/rows base
theory base theory/rows
traces/files base
traces/tokenizer base
traces/trace base traces/files
traces/import base traces/files traces/tokenizer traces/trace
traces/export base traces/import traces/trace
plots/draw base
plots/figure base plots/draw
plots/report base plots/draw plots/figure
sim base theory theory/rows traces/trace
sim/draft base theory traces/trace sim
sim/verify base theory theory/rows sim
sim/model base traces/files traces/tokenizer traces/trace traces/import sim
sim/cost base traces/trace sim
sim/expect base traces/trace sim
sim/run base sim sim/model sim/cost sim/expect
sim/sweep base sim sim/model sim/cost sim/run
sim/tune base sim sim/cost sim/run
sim/reduce theory theory/rows traces/trace
cli base traces/trace sim sim/model sim/expect sim/run
cli/theory base theory traces/files traces/trace sim/draft cli
cli/trace base traces/trace traces/import sim/model sim/reduce cli
cli/tune base sim sim/tune cli
cli/validate base theory traces/trace traces/import sim sim/model sim/cost sim/run sim/tune cli
roof base traces/import plots/draw plots/figure plots/report sim sim/model sim/cost sim/run sim/sweep cli cli/theory cli/trace cli/tune cli/validate
live/device base theory/rows traces/files
live/device/cuda base theory/rows live/device
live/model base theory/rows traces/files traces/tokenizer sim/cost live/device
live/session base traces/trace sim sim/model sim/expect sim/run live/device live/model
live/program base theory traces/trace traces/tokenizer traces/import sim sim/cost sim/run sim/reduce live/device live/model live/session cli/cli.h cli/method.h
END
sources=$(find base theory traces plots sim cli live -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')

# Every include of an own header, as: room, room of what is included, file:line, header.
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
    !($1 in known) { print $3 ": " $1 " is in no list of rooms"; next }
    $1 != $2 && !(($1, $2) in may) && !(($1, $4) in may) { print $3 ": " $4 }' \
    "$work/rooms" "$work/includes")
if [ -n "$bad" ]; then
    fail "a room includes what it does not stand on" "$bad"
else
    pass "$(wc -l <"$work/includes") includes, of rooms that the including ones stand on"
fi
idle=$(awk '
    NR == FNR { used[$1, $2]; used[$1, $4]; next }
    { for (i = 2; i <= NF; i++) if (!(($1, $i) in used)) print $1 " on " $i }' \
    "$work/includes" "$work/rooms")
if [ -n "$idle" ]; then
    fail "a room is said to stand on what it does not include" "$idle"
else
    pass "the list of rooms says no more than there is"
fi
# A room that stands on others is after them; tsort says where that is impossible.
if awk '{ print $1, $1; for (i = 2; i <= NF; i++) { sub(/\/[a-z]*\.h$/, "", $i); print $1, $i } }' \
    "$work/rooms" | tsort >/dev/null 2>"$work/loop"; then
    pass "$(wc -l <"$work/rooms") rooms, none of which stands on itself by way of others"
else
    fail "a room stands on itself by way of others" "$(cat "$work/loop")"
fi

forbid 'the library prints or exits' \
    '(^|[^a-z_])(printf|puts|putchar|perror|exit|abort|_exit) ?\(|stdout|stderr' \
    base theory traces plots sim
forbid 'the library reads the environment' '(^|[^a-z_])getenv ?\(' base theory traces plots sim
forbid 'GSL outside statistics' 'gsl/' theory traces plots cli sim live
forbid 'CUDA or BLAS outside live' '<(cuda|cublas|cblas)' base theory traces plots cli sim
# clang makes a global symbol of each: two of one name do not link.
again=$(grep -rhA1 '^DSC_FOR_EVERY_PROCESSOR' --include='*.c' base theory sim traces live |
    grep -oE '[a-z_0-9]+\(' | sort | uniq -d)
if [ -n "$again" ]; then
    fail "two functions for every processor have one name" "$again"
else
    pass "functions for every processor have names of their own"
fi

# Circles: source files each of which needs a symbol of another, on and on, back to itself. An object
# belongs to the source at the same place; what automake and libtool put in its name is left out.
circles() { # objects on stdin: circles, one in a line
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
        !(file in known) { next } # what an earlier build has left
        $3 ~ /^[Uwv]$/ { if (!((file, $2) in wanted)) { wanted[file, $2]; use[++uses] = file " " $2 } }
        # Of programs that have one name for different things, each has its own.
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
                        !(user[j] in told)) {
                        told[user[j]]
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
    found=$(circles <"$work/objects")
    if [ -n "$found" ]; then
        fail "$(echo "$found" | wc -l) times source files need each other in a circle" "$found"
    elif [ "$(cat "$work/files")" -lt 100 ]; then
        fail "nm does not read the objects" "$(cat "$work/files") files need another"
    else
        pass "0 circles among $(cat "$work/files") source files"
    fi
else
    echo "# no objects in $build: circles between source files are not looked for"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
