#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every function of the library, called with each argument at its limits: the calls are generated
# from the installed headers, so that a new function cannot be forgotten (tests/limits). What fails
# is listed in tests/limits/known.tsv. Builds with sanitizers see what only reads out of bounds.
. "${top_srcdir:-.}/tests/cli/common.sh"
. "$top/tests/cli/stage.sh"
limits=$top/tests/limits
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048
export ASAN_OPTIONS

(cd "$include" && find . -name '*.h' | sed 's|^\./||' | sort) >headers
while read -r header; do
    sed 's|//.*||; /^ *#/d' "$include/$header" | tr '\n' ' '
done <headers | tr ';' '\n' | grep -w DSC_API >declarations
generate() { # declarations
    awk -f "$limits/generate.awk" "$limits/feeds.tsv" "$1"
}
if generate declarations >calls.h 2>unfed; then ok; else not_ok "arguments: $(cat unfed)"; fi
echo 'DSC_API int dsc_new_function(const dsc_new_type *x)' | cat declarations - >with_new
if ! generate with_new >new.h 2>unfed && grep -q 'dsc_new_function.x: no line' unfed; then
    ok
else
    not_ok "a function whose arguments nothing feeds is refused"
fi

library=$libraries/libdraftscope.so
[ -f "$library" ] || library="$libraries/libdraftscope.a $(PKG_CONFIG_PATH=$libraries/pkgconfig \
    pkg-config --static --libs draftscope 2>/dev/null | sed 's/-ldraftscope//')"
# shellcheck disable=SC2086
check "the calls compile" $cc -std=gnu11 -O1 -g -w -I. -I"$include" "$limits/limits.c" -o limits \
    $library -lm -lpthread -Wl,-rpath,"$libraries"
cat >a.jsonl <<'END'
{"id":"a","prompt":[1,2],"output":[3,4,5]}
{"id":"b","prompt":[1,2],"output":[3,3]}
END
good trace import --format jsonl --vocab-size 10 a.jsonl -o a.dst
mkdir files
check "the calls run" sh -c "OMP_NUM_THREADS=1 ./limits a.dst files >failing 2>counts"
sed 's/^/# /' counts
cut -f 1-3 failing | sort -u >failed
grep -v '^#' "$limits/known.tsv" | sort -u >known
comm -23 failed known >unknown
if [ -s unknown ]; then not_ok "calls fail: $(cat unknown)"; else ok; fi
echo "# $(comm -12 failed known | wc -l) of $(wc -l <known) known ones fail here"
summary
