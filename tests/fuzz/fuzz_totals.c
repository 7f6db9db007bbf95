// SPDX-License-Identifier: Apache-2.0
// Formats that have totals only: sglang's JSON, Prometheus' text. Input: a byte that chooses (bit
// 0: prometheus, 1: leave bad ones out, 2: probe), then files with 0xff between them, which is in
// no UTF-8 text.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include "traces/import/totals.h"

#include <stdio.h>

FUZZ_FORMAT(totals, .head = 1, .parts = 3, .mark = 0xff, .change = {fuzz_change_lines})

// A table that was made can be written.
static void check_table(const dsc_table *t)
{
    FILE *f = fopen("/dev/null", "w");
    if (!f)
        return;
    dsc_table_write_tsv_head(t, f);
    dsc_table_write_jsonl_head(t, f);
    for (size_t i = 0; i < t->rows; i++) {
        dsc_table_write_tsv_row(t, i, f);
        dsc_table_write_jsonl_row(t, i, f);
    }
    fclose(f);
}

FUZZ_TARGET(totals)
{
    enum { FILES = 3 };
    fuzz_bytes in = {data, size};
    uint8_t choice = fuzz_byte(&in);
    const char *path[FILES];
    size_t count = 0;
    do {
        char name[8];
        fuzz_bytes file = fuzz_before(&in, 0xff);
        snprintf(name, sizeof name, "%zu", count);
        path[count++] = fuzz_file(name, file.data, file.size);
    } while (in.size && count < FILES);

    dsc_error err = {0};
    dsc_table table = {0};
    const dsc_totals_options options = {.skip_errors = choice & 2};
    const dsc_totals_driver *driver = dsc_totals_find(choice & 1 ? "prometheus" : "sglang");
    int rc = choice & 4 ? dsc_totals_probe(&driver, path[0], &err) : DSC_OK;
    if (!rc && !driver)
        return 0; // none of ours
    if (!rc)
        rc = dsc_totals_import(&table, driver, path, count, &options, NULL, &err);
    if (rc)
        fuzz_refused(rc, &err);
    else
        check_table(&table);
    dsc_table_fini(&table);
    return 0;
}
