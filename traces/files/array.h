// SPDX-License-Identifier: Apache-2.0
// Reads rows of numbers from files of other programs: NumPy's .npy, safetensors, CSV.
//
// The file is memory-mapped and each row is converted on request, so an array may be larger than
// memory. The caller checks the numbers (probabilities, logits): NaN and infinities are returned as
// they are.
#ifndef DSC_TRACES_ARRAY_H
#define DSC_TRACES_ARRAY_H

#include "base/status.h"

#include <stdint.h>

typedef struct dsc_array dsc_array; // immutable once open; may be shared by threads

// Opens `spec`, by its ending:
//   FILE.npy           format versions 1 to 3; f2, f4 or f8 in either byte order, C order
//   FILE.safetensors   the only F16, BF16, F32 or F64 tensor of the file; one of several is
//   selected
//                      by FILE.safetensors:NAME
//   FILE.csv, .tsv, .txt  a row per line, as decimals (including "nan" and "inf"), separated by the
//                      first of comma, semicolon and tab that the first row contains, otherwise by
//                      blanks; blank lines, lines that begin with #, and a first line without any
//                      number (a header) are skipped
// A vector is one row; in an array of more than two dimensions all but the last are flattened.
// DSC_EINPUT names the file and the byte or line: wrong format, truncated, too long, unsupported
// type, Fortran order, no elements, rows of different lengths. dsc_array_row checks the fields of a
// CSV file. *out is owned by the caller.
int dsc_array_open(dsc_array **out, const char *spec, dsc_error *err);
void dsc_array_close(dsc_array *a); // NULL is allowed

int64_t dsc_array_rows(const dsc_array *a);    // >= 1
int64_t dsc_array_columns(const dsc_array *a); // >= 1

// Writes row i, 0 <= i < rows, to out[columns]. DSC_EUSAGE: no such row. DSC_EINPUT: a field of a
// CSV file is not a number, and the message names line and column; or the file has changed since it
// was opened.
int dsc_array_row(const dsc_array *a, int64_t i, double *out, dsc_error *err);

#endif
