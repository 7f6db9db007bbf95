// SPDX-License-Identifier: Apache-2.0
// Internal: where a writer's full shards go, in the background. A shard handed over is written,
// synced and renamed while the writer gathers the next one. Hashes are taken of a group of finished
// shards at once (base/sha256.h) while those behind them are written, and then, unless the trace is
// appended to, a manifest names them. So on disk there is at any moment one file being written, and
// a manifest speaks of nothing that is not finished.
#ifndef DSC_TRACES_TRACE_STORE_H
#define DSC_TRACES_TRACE_STORE_H

#include "traces/trace/trace_internal.h"

#include <pthread.h>

typedef struct dsc_column {
    void *data;
    size_t count, capacity; // elements
} dsc_column;

// One shard in memory.
typedef struct dsc_shard_columns {
    dsc_column column[DSC_COLUMNS];
    dsc_dtype dense[DSC_SIDES]; // of its dense rows
    dsc_shard_entry entry;      // its counts
} dsc_shard_columns;

enum { DSC_STORE_GROUP = 8 }; // at most

// Shards being hashed; a thread of its own has all of this while `busy`.
typedef struct dsc_store_group {
    bool busy;
    pthread_t thread;
    const char *folder;
    size_t first, count; // shards; count 0: no group
    char sha256[DSC_STORE_GROUP][DSC_SHA256_HEX];
    dsc_trace_info info; // as the trace ends with it; strings are the caller's
    dsc_error failed;
} dsc_store_group;

// Zero-initialise, set `folder`, `group` and, for an append, `append` and what the trace has.
typedef struct dsc_trace_store {
    const char *folder;     // the caller's
    bool append;            // no manifests
    size_t group;           // shards, 1..DSC_STORE_GROUP, that are hashed and named together
    dsc_shard_entry *shard; // [shards] on disk
    size_t shards, capacity, hashed;
    int64_t saved; // requests that the manifest in the folder speaks of, if it is not an append's
    // The shard being written; a thread other than the caller's has all of this while `busy`.
    bool busy;
    pthread_t thread;
    const dsc_shard_columns *columns;
    dsc_trace_info info, written; // as the trace ends with it and with the last shard on disk;
                                  // strings are the caller's
    dsc_error failed;             // nothing goes on after it
    dsc_store_group hashing;      // the last group that was begun
} dsc_trace_store;

static inline dsc_dtype dsc_shard_dtype(const dsc_shard_columns *s, int c)
{
    for (dsc_model_side side = 0; side < DSC_SIDES; side++)
        if (c == dsc_row_column(side, COL_DRAFT_ROW_DENSE))
            return s->dense[side];
    return dsc_columns[c].dtype;
}

// Waits for the shard handed over before, and begins to write this one: until the next call it must
// not change, nor the strings of *info, whose counts include it. A failure (of either) stays.
int dsc_trace_store_put(dsc_trace_store *s, const dsc_shard_columns *columns,
                        const dsc_trace_info *info, dsc_error *err);
// The same for the last one (NULL: there is none left), written and hashed on return.
int dsc_trace_store_finish(dsc_trace_store *s, const dsc_shard_columns *columns,
                           const dsc_trace_info *info, dsc_error *err);
// The manifest of all shards; sets info->hash. After dsc_trace_store_finish.
int dsc_trace_store_manifest(dsc_trace_store *s, dsc_trace_info *info, dsc_error *err);
// Waits, and frees what the store owns.
void dsc_trace_store_fini(dsc_trace_store *s);

#endif
