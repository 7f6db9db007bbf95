// SPDX-License-Identifier: Apache-2.0
// A file of results that grows line by line, may be left at any moment, and is taken up again.
//
// What is finished stands in PATH.part, in complete lines, on disk after every flush; one writer at
// a time holds its lock. The file gets its name by a rename, when everything is there.
#ifndef DSC_SIM_PART_FILE_H
#define DSC_SIM_PART_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct dsc_part_file {
    const char *path; // the caller's
    char *part;       // PATH.part
    FILE *stream;     // of it, for reading and writing
} dsc_part_file;      // zero-initialise; dsc_part_file_close frees

// Opens or creates PATH.part and locks it; `force`: empties it. DSC_EUSAGE: PATH exists and `force`
// is false, or another process holds the lock.
DSC_API int dsc_part_file_open(dsc_part_file *f, const char *path, bool force, dsc_error *err);
// Cuts what stands behind the last complete line, for the first time after opening. *length: bytes
// that are left; the stream stands there.
DSC_API int dsc_part_file_cut_line(dsc_part_file *f, long *length, dsc_error *err);
// Cuts to `length` bytes; the stream stands there.
DSC_API int dsc_part_file_cut(dsc_part_file *f, long length, dsc_error *err);
// Cuts the last `count` lines; the stream stands there.
DSC_API int dsc_part_file_cut_lines(dsc_part_file *f, size_t count, dsc_error *err);
// Everything written is on disk.
DSC_API int dsc_part_file_flush(dsc_part_file *f, dsc_error *err);
// Flushes and renames.
DSC_API int dsc_part_file_finish(dsc_part_file *f, dsc_error *err);
DSC_API void dsc_part_file_close(dsc_part_file *f); // PATH.part stays, unless it was renamed

#endif
