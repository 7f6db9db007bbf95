#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of the Python package, contrib/python/tests, with the program and the library of this
# build. PYTHON selects the interpreter. The test is skipped without numpy, pandas and pytest, and
# where only a static library is built.
. "${top_srcdir:-.}/tests/contrib/python.sh"
find_python numpy pandas pytest || exit 77
build=${DRAFTSCOPE%/*}
DRAFTSCOPE_LIBRARY=$build/.libs/libdraftscope.so
[ -f "$DRAFTSCOPE_LIBRARY" ] || {
    echo "skipped: no shared library: $DRAFTSCOPE_LIBRARY"
    exit 77
}
export DRAFTSCOPE_LIBRARY
# A sanitized library needs its runtime in the program, which python is not.
if [ -n "${SANITIZE_CFLAGS:-}" ]; then
    echo "skipped: the library is sanitized"
    exit 77
fi
"$python" -m pytest -q -p no:cacheprovider --basetemp "$work/pytest" --rootdir "$top/contrib/python" \
    "$top/contrib/python/tests" 2>&1 | tee "$work/said"
# "7 passed, 1 skipped in 2.00s" becomes a line that CI adds up.
tail -n 1 "$work/said" | awk '{
    for (i = 2; i <= NF; i++) {
        word = $i; gsub(/[^a-z]/, "", word)
        if (word == "passed") passed = $(i - 1)
        if (word == "failed" || word == "error" || word == "errors") failed += $(i - 1)
    }
    print passed + 0 " passed, " failed + 0 " failed"
    exit failed || !passed
}'
