// SPDX-License-Identifier: Apache-2.0
// A result table as a file, in either format.
#ifndef DSC_TESTS_TABLE_FIXTURE_H
#define DSC_TESTS_TABLE_FIXTURE_H

#include "tests/close.h"

#include "base/table.h"

static inline void write_table(const dsc_table *t, const char *path, bool jsonl)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (jsonl ? dsc_table_write_jsonl_head : dsc_table_write_tsv_head)(t, f);
    for (size_t r = 0; r < t->rows; r++)
        (jsonl ? dsc_table_write_jsonl_row : dsc_table_write_tsv_row)(t, r, f);
    assert_int_equal(fclose(f), 0);
}

#endif
