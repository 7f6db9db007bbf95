#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Size limits: functions at most 120 lines, files at most 800, lines at most 100 columns. An SPDX
# line opens every source file.
top=${top_srcdir:-.}
cd "$top" || exit 99
failed=0 passed=0
for f in $(find base theory traces sim plots cli live -name '*.[ch]' -o -name '*.cu' | sort) \
    tests/*.[ch] tests/*/*.[ch]; do
    [ -f "$f" ] || continue
    bad=$(awk -v f="$f" '
        NR == 1 && !/SPDX-License-Identifier/ { print f ": no SPDX line" }
        { n = length($0); gsub(/[\200-\277]/, ""); if (length($0) > 100) print f ":" NR ": " n " columns" }
        /^[A-Za-z_].*\(/ && !/;[ \t]*$/ { name = $0; start = NR }
        /^\{/ { open = NR }
        /^\}/ { if (open && NR - open > 120) print f ":" start ": " NR - open " lines: " name; open = 0 }
        END { if (NR > 800) print f ": " NR " lines" }' "$f")
    if [ -n "$bad" ]; then
        echo "not ok - $bad"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
