#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The layer rule of ARCHITECTURE.md, by the includes: each folder may include its own headers and
# those of the folders it stands on. Also: only cli prints to the terminal or exits.
top=${top_srcdir:-.}
cd "$top" || exit 99
failed=0 passed=0

check() { # folder, folders it may include
    bad=$(grep -rnoE '^#include "[a-z]+/[a-z0-9_./]*"' --include='*.c' --include='*.h' "$1" 2>/dev/null |
        grep -vE "\"($2)[/\"]" || true)
    if [ -n "$bad" ]; then
        echo "not ok - $1 includes what it may not:"
        echo "$bad"
        failed=$((failed + 1))
    else
        echo "ok - $1 includes $2"
        passed=$((passed + 1))
    fi
}
forbid() { # what, pattern, folders...
    what=$1 pattern=$2
    shift 2
    bad=$(grep -rnE "$pattern" --include='*.c' --include='*.h' "$@" | grep -vE ':[0-9]+: *//' || true)
    if [ -n "$bad" ]; then
        echo "not ok - $what:"
        echo "$bad"
        failed=$((failed + 1))
    else
        echo "ok - $what: none"
        passed=$((passed + 1))
    fi
}

check base 'base'
check theory 'base|theory'
check traces 'base|traces'
check plots 'base|plots'
check sim 'base|theory|traces|sim'
check cli 'base|theory|traces|plots|sim|cli'
check live 'base|theory|traces|sim|live|cli/cli.h|cli/method.h'
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
    echo "not ok - two functions for every processor are called $again"
    failed=$((failed + 1))
else
    echo "ok - functions for every processor have names of their own"
    passed=$((passed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
