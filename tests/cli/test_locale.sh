#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Numbers and names do not depend on the locale: results under German (decimal comma) and Turkish
# (dotless i) equal those under C, byte for byte. The locales are compiled here where localedef and its
# sources exist.
. "${top_srcdir:-.}/tests/cli/common.sh"
sample=$top/traces/sample
LOCPATH=$work/locales
export LOCPATH
mkdir "$LOCPATH"

# Writes results to the files of a folder.
results() { # folder
    mkdir "$1" && cd "$1" || exit 99
    good trace import --tokenizer "$sample/tokenizer.json" "$sample/rag.jsonl" -o x.dst
    good trace info x.dst --json
    mv out info
    good sim x.dst --method llma --num-speculative-tokens 4 --cost linear:.02,.001
    mv out sim
    good sweep x.dst --method llma --num-speculative-tokens 1:6 --cost linear:.02,.001 -o sweep.tsv
    good plot heatmap sweep.tsv -o figure.svg
    good tune x.dst --method llma,ngram --resamples 100 --cost linear:.02,.001
    mv out tune
    good theory length --alpha .55
    mv out theory
    rm -rf err out
    cd .. || exit 99
}

results C
for name in de_DE tr_TR; do
    if ! localedef -f UTF-8 -i $name "$LOCPATH/$name.UTF-8" 2>/dev/null; then
        skip "results under $name" "localedef cannot make it here"
        continue
    fi
    LC_ALL=$name.UTF-8
    export LC_ALL
    results $name
    unset LC_ALL
    check "results under $name equal those under C" diff -r C $name
done
summary
