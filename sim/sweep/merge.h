// SPDX-License-Identifier: Apache-2.0
// The tables of all shards of a sweep, added up to the table that one process would have written,
// byte for byte.
#ifndef DSC_SIM_MERGE_H
#define DSC_SIM_MERGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dsc_merge_options {
    const char *version; // of this program: tables of another one are refused
    bool force;          // replace an existing result
    bool jsonl;          // JSON lines instead of TSV
    int (*progress)(void *user, int64_t done, int64_t total); // tables; nonzero stops. May be NULL
    void *user;
} dsc_merge_options;

// Tables may come in any order. Command and trace of the result are those of shard 1: other shards
// may have found the same trace elsewhere. DSC_EUSAGE: a shard is missing or there twice, or tables
// are not of one sweep (trace hash, seed, grid, cost, version, division). DSC_EINPUT: a table is
// unfinished or malformed.
DSC_API int dsc_merge(const char *const *part, size_t count, const char *path,
                      const dsc_merge_options *options, dsc_error *err);

#endif
