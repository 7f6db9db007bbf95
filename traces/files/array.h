// SPDX-License-Identifier: Apache-2.0
// Rows of numbers from files that other programs write: NumPy's .npy, safetensors, CSV.
//
// The file is memory-mapped and a row is converted when it is asked for, so an array may exceed
// memory. What the numbers mean (probabilities, logits) is the caller's to check: NaN and
// infinities are handed out as they are.
#ifndef DSC_TRACES_ARRAY_H
#define DSC_TRACES_ARRAY_H

#include "base/status.h"

#include <stdint.h>

typedef struct dsc_array dsc_array; // immutable once open; may be shared by threads

// Opens `spec`, by its ending:
//   FILE.npy           format versions 1 to 3; f2, f4 or f8 in either byte order, C order
//   FILE.safetensors   the only F16, BF16, F32 or F64 tensor in it, or, of several, the one named:
//                      FILE.safetensors:NAME
//   FILE.csv, .tsv, .txt  a row per line, in decimals ("nan" and "inf" too), separated by the first
//                      of comma, semicolon and tab that the first row has, else by blanks; blank
//                      lines and lines that begin with # are passed over, and so is a first line in
//                      which nothing is a number (a header)
// A vector is one row; of an array of more than two dimensions all but the last are flattened.
// DSC_EINPUT names the file and the byte or line: not such a file, truncated, too long, another
// type, Fortran order, no elements, rows of different lengths. What is in the fields of a CSV file
// is looked at by dsc_array_row. *out is owned by the caller.
DSC_API int dsc_array_open(dsc_array **out, const char *spec, dsc_error *err);
DSC_API void dsc_array_close(dsc_array *a); // NULL allowed

DSC_API int64_t dsc_array_rows(const dsc_array *a);    // >= 1
DSC_API int64_t dsc_array_columns(const dsc_array *a); // >= 1

// Row i, 0 <= i < rows, into out[columns]. DSC_EUSAGE: no such row; DSC_EINPUT: a field of a CSV
// file that is not a number, with its line and column.
DSC_API int dsc_array_row(const dsc_array *a, int64_t i, double *out, dsc_error *err);

#endif
