// SPDX-License-Identifier: Apache-2.0
// Rows of numbers. Input: a byte that chooses the kind of file, the file.
#include "base/memory.h"
#include "tests/fuzz/fuzz.h"
#include "traces/files/array.h"

#include <stdlib.h>

FUZZ_TARGET(array)
{
    static const char *const names[] = {"a.npy", "a.csv", "a.tsv", "a.safetensors"};
    enum { ROWS = 64, COLUMNS = 1 << 16 };
    fuzz_bytes in = {data, size};
    const char *name = names[fuzz_byte(&in) % 4];
    dsc_array *a;
    dsc_error err = {0};
    int rc = dsc_array_open(&a, fuzz_file(name, in.data, in.size), &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    int64_t rows = dsc_array_rows(a), columns = dsc_array_columns(a);
    fuzz_require(rows >= 1 && columns >= 1, "there are elements", NULL);
    void *row = NULL;
    if (columns <= COLUMNS && !dsc_alloc(&row, (size_t)columns, sizeof(double), NULL)) {
        for (int64_t i = 0; i < rows && i < ROWS; i++) {
            rc = dsc_array_row(a, i, row, &err);
            if (rc)
                fuzz_refused(rc, &err);
        }
        rc = dsc_array_row(a, rows - 1, row, &err);
        if (rc)
            fuzz_refused(rc, &err);
        fuzz_require(dsc_array_row(a, rows, row, &err) == DSC_EUSAGE, "no row behind the last",
                     NULL);
    }
    free(row);
    dsc_array_close(a);
    return 0;
}
