// SPDX-License-Identifier: Apache-2.0
// Input files that are read or mapped whole.
#ifndef DSC_BASE_FILE_H
#define DSC_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

// Reads a whole file into a NUL-terminated string, *out, owned by the caller. DSC_EINPUT: the file
// is missing, unreadable or longer than `limit` bytes.
int dsc_read_file(char **out, size_t *length, const char *path, size_t limit, dsc_error *err);

// The same for a file of text. It is read up to the first NUL byte, which is DSC_EINPUT.
int dsc_read_text(char **out, const char *path, size_t limit, dsc_error *err);

// DSC_EINPUT unless the path is a regular file, which has an end. A FIFO, for example, would block
// the reader.
int dsc_check_regular(const char *path, dsc_error *err);

// DSC_EINPUT when `path` no longer leads to the file that stat described by *before, or when the
// size or the time of the last modification of that file is another one.
int dsc_check_unchanged(const char *path, const struct stat *before, dsc_error *err);

// Maps a whole regular file for reading: *map [*bytes], undone by munmap. DSC_EINPUT: it is
// missing, not a regular file, or shorter than `least` >= 1 bytes; `kind` ("a .npy file") names the
// format in that message. DSC_ENOMEM: it does not fit into the address space.
int dsc_map_file(void **map, size_t *bytes, const char *path, size_t least, const char *kind,
                 dsc_error *err);

#endif
