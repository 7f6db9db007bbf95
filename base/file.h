// SPDX-License-Identifier: Apache-2.0
// Output files that appear under their name only when they are complete and on disk.
#ifndef DSC_BASE_FILE_H
#define DSC_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

// Written as PATH.tmp beside PATH; commit flushes, syncs, renames and syncs the folder.
typedef struct dsc_outfile {
    FILE *stream; // write here
    char *path, *temporary;
} dsc_outfile;

// DSC_EUSAGE when `path` exists and `force` is false; DSC_EIO when it cannot be created.
DSC_API int dsc_outfile_open(dsc_outfile *f, const char *path, bool force, dsc_error *err);
// On failure (full disk) nothing appears under the final name; the record is closed either way.
DSC_API int dsc_outfile_commit(dsc_outfile *f, dsc_error *err);
// Closes and removes the temporary; harmless after commit or on a zeroed record.
DSC_API void dsc_outfile_abort(dsc_outfile *f);

// Makes a rename inside the folder of `path` durable.
DSC_API int dsc_sync_folder(const char *path, dsc_error *err);

// The whole of a file as a NUL-terminated string; DSC_EINPUT when it is missing, not readable or
// longer than `limit` bytes. *out owned by the caller.
DSC_API int dsc_read_file(char **out, size_t *length, const char *path, size_t limit,
                          dsc_error *err);

// DSC_OK for a regular file, which has an end; DSC_EINPUT when it is missing or something else, as
// a FIFO, which would be waited for.
DSC_API int dsc_check_regular(const char *path, dsc_error *err);

// Maps a whole regular file for reading: *map [*bytes], undone by munmap. DSC_EINPUT when it is
// missing, not a regular file, or shorter than `least` >= 1 bytes (`kind`: "a .npy file", for that
// sentence); DSC_ENOMEM when it cannot be addressed.
DSC_API int dsc_map_file(void **map, size_t *bytes, const char *path, size_t least,
                         const char *kind, dsc_error *err);

#endif
