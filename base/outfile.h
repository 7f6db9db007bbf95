// SPDX-License-Identifier: Apache-2.0
// Output files that appear under their final name only when they are complete and on disk. All
// writers of files use this header. The temporary file lies in the same folder under a name that
// nobody can predict and that is never shared, so two runs with one output cannot mix, and a link
// that waits under that name is not followed.
#ifndef DSC_BASE_OUTFILE_H
#define DSC_BASE_OUTFILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

// Zero-initialize, open, write to `stream`, then commit or abort.
typedef struct dsc_outfile {
    FILE *stream;
    char *path, *temporary; // temporary: NULL for standard output
    bool replace;
} dsc_outfile;

// Opens an output. "-" is standard output. DSC_EUSAGE: `path` is no regular file, or exists while
// `force` is false. DSC_EIO: its folder does not take a new file.
int dsc_outfile_open(dsc_outfile *f, const char *path, bool force, dsc_error *err);

// The same checks without a file: for commands that write at the end of long work.
int dsc_outfile_check(const char *path, bool force, dsc_error *err);

// Flushes, syncs, publishes and syncs the folder. Closes the file in every case. On failure nothing
// appears under the final name; a complete file whose name another run took meanwhile is kept, and
// the message names it.
int dsc_outfile_commit(dsc_outfile *f, dsc_error *err);

// Commits several outputs that belong together: all of them are on disk before the first one gets
// its name, so a full disk leaves none of them.
int dsc_outfile_commit_all(dsc_outfile *f, size_t count, dsc_error *err);

// Closes and removes the temporary file. Harmless after commit or on a zeroed record.
void dsc_outfile_abort(dsc_outfile *f);

// Gives the complete file `temporary` the name `path`. With `replace` an existing file makes room,
// and its mode and owner are kept; otherwise DSC_EUSAGE when the name is taken. The folder is
// synced.
int dsc_publish(const char *temporary, const char *path, bool replace, dsc_error *err);

// Returns whether both names lead to one file or folder. A name without a file equals none.
bool dsc_same_file(const char *a, const char *b);

// Makes a rename inside the folder of `path` durable.
int dsc_sync_folder(const char *path, dsc_error *err);

// The length of the final name when name[0, length) is the temporary name of an output, otherwise
// 0.
size_t dsc_outfile_final_length(const char *name, size_t length);

#endif
