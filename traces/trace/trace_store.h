// SPDX-License-Identifier: Apache-2.0
// Internal: writes the shards of a trace in the background. A shard that was handed over is
// written, synced and renamed while the writer fills the next one. A group of finished shards is
// hashed at once (base/sha256.h) while later shards are written; then, unless the trace is appended
// to, a manifest lists them. At any moment at most one file is incomplete, and the manifest lists
// finished shards only.
#ifndef DSC_TRACES_TRACE_STORE_H
#define DSC_TRACES_TRACE_STORE_H

#include "traces/trace/trace_manifest.h"

#include <pthread.h>

typedef struct dsc_column {
    void *data;
    size_t count, capacity; // elements
} dsc_column;

// One shard in memory.
typedef struct dsc_shard_columns {
    dsc_column column[DSC_COLUMNS];
    dsc_dtype dense[DSC_SIDES]; // type of the dense rows
    dsc_shard_entry entry;      // counts
} dsc_shard_columns;

enum { DSC_STORE_GROUP = 8 }; // most shards of a group

// Shards being hashed. While `busy`, everything here belongs to that thread.
typedef struct dsc_store_group {
    bool busy;
    pthread_t thread;
    const char *folder;
    size_t first, count; // shards; count 0: no group
    char sha256[DSC_STORE_GROUP][DSC_SHA256_HEX];
    dsc_trace_info info; // the trace that ends with this group; strings belong to the caller
    dsc_error failed;
} dsc_store_group;

// Zero-initialize and set `folder`, `group` and, for an append, `append` and the existing shards.
typedef struct dsc_trace_store {
    const char *folder;     // owned by the caller
    bool append;            // write no manifest before the end
    size_t group;           // shards, 1..DSC_STORE_GROUP, that are hashed together
    dsc_shard_entry *shard; // [shards] on disk
    size_t shards, capacity, hashed;
    int64_t saved; // requests covered by the manifest in the folder; 0 for an append
    // The shard being written. While `busy`, everything here belongs to that thread.
    bool busy;
    pthread_t thread;
    const dsc_shard_columns *columns;
    dsc_trace_info info, written; // the trace that ends with that shard, and with the last shard on
                                  // disk; strings belong to the caller
    dsc_error failed;             // final: nothing is written after it
    dsc_store_group hashing;      // the last group that was started
} dsc_trace_store;

static inline dsc_dtype dsc_shard_dtype(const dsc_shard_columns *s, int c)
{
    for (dsc_model_side side = 0; side < DSC_SIDES; side++)
        if (c == dsc_row_column(side, COL_DRAFT_ROW_DENSE))
            return s->dense[side];
    return dsc_columns[c].dtype;
}

// Waits for the previous shard and starts to write this one. Until the next call, the shard and the
// strings of *info must not change; the counts of *info include the shard. A failure of either
// shard is final.
int dsc_trace_store_put(dsc_trace_store *s, const dsc_shard_columns *columns,
                        const dsc_trace_info *info, dsc_error *err);
// Writes the last shard (NULL: there is none); on return all shards are written and hashed.
int dsc_trace_store_finish(dsc_trace_store *s, const dsc_shard_columns *columns,
                           const dsc_trace_info *info, dsc_error *err);
// Writes the manifest of all shards and sets info->hash. Call it after dsc_trace_store_finish.
int dsc_trace_store_manifest(dsc_trace_store *s, dsc_trace_info *info, dsc_error *err);
// Waits for the threads and frees what the store owns.
void dsc_trace_store_fini(dsc_trace_store *s);

#endif
