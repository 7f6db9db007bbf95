// SPDX-License-Identifier: Apache-2.0
// The array type that the readers of all formats share.
#ifndef DSC_TRACES_ARRAY_INTERNAL_H
#define DSC_TRACES_ARRAY_INTERNAL_H

#include "traces/files/array.h"
#include "traces/files/safetensors.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct dsc_array {
    char *path; // path of the file, for messages
    int64_t rows, columns;
    unsigned char *map; // the file [bytes]; NULL for safetensors
    size_t bytes;
    struct stat opened;    // the file before it was mapped
    dsc_safetensors *file; // or NULL
    // binary: elements in row-major order
    const unsigned char *data; // NULL: text
    dsc_dtype dtype;           // F16, BF16, F32 or F64
    bool big_endian;
    // text
    int64_t *start; // [rows] offset in bytes of each row's line
    char separator; // ',', ';', '\t', or ' ' for any run of blanks
};

// Sets rows and columns from a shape; all but the last dimension are flattened, rank 1 is one row.
// DSC_EINPUT: rank 0, no elements, more than memory can address. `what` begins the message.
static inline int dsc_array_shape(dsc_array *a, const char *what, int rank, const int64_t *shape,
                                  dsc_error *err)
{
    int64_t total;
    if (rank < 1)
        return dsc_fail(err, DSC_EINPUT, "%s: a single number; rows of numbers are expected", what);
    a->rows = 1;
    a->columns = shape[rank - 1];
    for (int i = 0; i + 1 < rank; i++)
        if (__builtin_mul_overflow(a->rows, shape[i], &a->rows))
            return dsc_fail(err, DSC_EINPUT, "%s: the shape overflows", what);
    if (a->rows < 1 || a->columns < 1)
        return dsc_fail(err, DSC_EINPUT, "%s: the array has no elements", what);
    if (__builtin_mul_overflow(a->rows, a->columns, &total) || total > INT64_MAX / 8)
        return dsc_fail(err, DSC_EINPUT, "%s: the shape overflows", what);
    return DSC_OK;
}

// Read the mapped file and set all members but path, map and bytes.
int dsc_array_read_npy(dsc_array *a, dsc_error *err);
int dsc_array_read_csv(dsc_array *a, dsc_error *err);

int dsc_array_csv_row(const dsc_array *a, int64_t i, double *out, dsc_error *err);

#endif
