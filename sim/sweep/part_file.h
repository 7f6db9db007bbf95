// SPDX-License-Identifier: Apache-2.0
// A result file that grows line by line and can be resumed after an interruption at any moment.
//
// Finished results are complete lines of PATH.part, on disk after every flush. One writer at a time
// holds its lock. The file is renamed to PATH when it is complete. A file of that name which is not
// a table of draftscope is never changed. The path "-" is standard output, which gets the complete
// table and cannot be resumed.
#ifndef DSC_SIM_PART_FILE_H
#define DSC_SIM_PART_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct dsc_part_file {
    const char *path; // the caller's
    char *part;       // PATH.part; NULL for standard output
    bool force;       // an existing PATH is replaced
    FILE *stream;     // of it, for reading and writing
} dsc_part_file;      // zero-initialize; dsc_part_file_close frees

// Opens or creates PATH.part and locks it; with `force` it is emptied. DSC_EUSAGE: PATH exists and
// `force` is false, another process holds the lock, or PATH.part is a link or another file.
int dsc_part_file_open(dsc_part_file *f, const char *path, bool force, dsc_error *err);
// Cuts what follows the last complete line, and the last `count` complete lines. *length: the bytes
// that remain, which is also the position of the stream. Call it with count 0 after opening.
int dsc_part_file_cut_lines(dsc_part_file *f, size_t count, long *length, dsc_error *err);
// Cuts the file to `length` bytes and moves the stream there.
int dsc_part_file_cut(dsc_part_file *f, long length, dsc_error *err);
// Writes everything to disk.
int dsc_part_file_flush(dsc_part_file *f, dsc_error *err);
// Flushes the file and renames it to PATH.
int dsc_part_file_finish(dsc_part_file *f, dsc_error *err);
void dsc_part_file_close(dsc_part_file *f); // PATH.part remains unless it was renamed

#endif
