// SPDX-License-Identifier: Apache-2.0
// Internal: checking, locking, making and removing the folders of traces.
#ifndef DSC_TRACES_TRACE_FOLDER_H
#define DSC_TRACES_TRACE_FOLDER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// *exists: whether anything has the name `path`. If so, it must be a folder that contains only a
// manifest and shards (temporary names included), and the manifest itself if `with_manifest`;
// DSC_EUSAGE names anything else. Only such a folder may be replaced or removed.
int dsc_trace_folder_check(const char *path, bool with_manifest, bool *exists, dsc_error *err);
// Checks as above, without requiring a manifest, then removes the files and the folder. DSC_OK when
// nothing has that name.
int dsc_trace_folder_remove(const char *path, dsc_error *err);
// Removes the shards from number `shards` on and the temporary files, which no manifest lists.
// Other files stay. The caller must hold the lock.
int dsc_trace_folder_trim(const char *path, size_t shards, dsc_error *err);
// Locks the folder of an existing trace for one writer; closing *fd releases the lock. DSC_EUSAGE
// when another run holds it.
int dsc_trace_folder_lock(const char *path, int *fd, dsc_error *err);
// Makes the folder `path` for one writer and locks it; closing *fd releases the lock. Files that a
// killed writer left there are removed. DSC_EUSAGE when a running writer holds the lock.
int dsc_trace_folder_make(const char *path, int *fd, dsc_error *err);

#endif
