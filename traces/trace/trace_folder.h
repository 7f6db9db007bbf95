// SPDX-License-Identifier: Apache-2.0
// Internal: writing a folder that appears under its final name only when it is complete.
#ifndef DSC_TRACES_TRACE_FOLDER_H
#define DSC_TRACES_TRACE_FOLDER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

// A kind of folder, and the files that belong to it. A folder with any other file is never replaced
// or removed.
typedef struct dsc_folder_kind {
    bool (*is_part)(const char *name);
    const char *noun, *name, *part; // for messages: "trace", "a trace folder", "part of a trace"
    const char *example;            // of a path, for messages: "NAME.dst"
    const char *index; // the file without which the folder is not of this kind, or NULL
} dsc_folder_kind;

extern const dsc_folder_kind dsc_trace_folder;

// A folder that is being written to. While it is open, no other run can write to it.
typedef struct dsc_outfolder {
    const dsc_folder_kind *kind;
    char *path, *temporary,
        *old; // PATH without trailing slashes; PATH.tmp, to write into; PATH.old
    int lock; // descriptor of the folder that is written to, or -1: closed
    bool force;
    bool keep; // an abort keeps the temporary folder
} dsc_outfolder;

// Makes the folder PATH.tmp; files that a killed run left there are removed. With `force`, the
// commit replaces an existing folder. DSC_EUSAGE: the name exists and `force` is false, or it is
// not a folder of this kind, or another run is writing to it. On failure abort f.
int dsc_outfolder_open(dsc_outfolder *f, const dsc_folder_kind *kind, const char *path, bool force,
                       dsc_error *err);
// Writes to the existing folder itself; f->temporary is NULL. DSC_EUSAGE when another run does.
int dsc_outfolder_append(dsc_outfolder *f, const char *path, dsc_error *err);
// Gives the temporary folder its final name; when it cannot be renamed, it is kept. The caller
// aborts f in any case.
int dsc_outfolder_commit(dsc_outfolder *f, dsc_error *err);
// Closes the folder, and removes the temporary one unless f->keep or f was committed.
void dsc_outfolder_abort(dsc_outfolder *f);

// Removes the shards of a trace from number `shards` on and the temporary files, which no manifest
// lists. Other files stay. The caller must hold the lock.
int dsc_trace_folder_trim(const char *path, size_t shards, dsc_error *err);

#endif
