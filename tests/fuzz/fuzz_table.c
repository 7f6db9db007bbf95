// SPDX-License-Identifier: Apache-2.0
// Result tables, TSV and JSON lines. Input: the file.
#include "base/table.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <stdlib.h>

FUZZ_FORMAT(table, .parts = 1, .change = {fuzz_change_lines})

// Checks that a table that was read can be written and read again, in the same shape.
static void check_again(const dsc_table *t, bool jsonl)
{
    dsc_table again = {0};
    dsc_error err = {0};
    const char *path = fuzz_path("again");
    FILE *f = fopen(path, "w");
    if (!f)
        exit(99);
    (jsonl ? dsc_table_write_jsonl_head : dsc_table_write_tsv_head)(t, f);
    for (size_t i = 0; i < t->rows; i++)
        (jsonl ? dsc_table_write_jsonl_row : dsc_table_write_tsv_row)(t, i, f);
    fclose(f);
    int rc = dsc_table_read(&again, path, &err);
    fuzz_require(rc == DSC_OK, jsonl ? "as JSON lines it is read again" : "as TSV it is read again",
                 &err);
    fuzz_require(again.rows == t->rows && (!t->rows || again.columns == t->columns),
                 "rows and columns are as many as before", NULL);
    dsc_table_fini(&again);
}

FUZZ_TARGET(table)
{
    dsc_table t = {0};
    dsc_error err = {0};
    int rc = dsc_table_read(&t, fuzz_file("table", data, size), &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    check_again(&t, true);
    if (t.columns) // JSON lines without a row have none
        check_again(&t, false);
    dsc_table_fini(&t);
    return 0;
}
