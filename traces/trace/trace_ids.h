// SPDX-License-Identifier: Apache-2.0
// Internal: the set of request ids of a trace.
#ifndef DSC_TRACES_TRACE_IDS_H
#define DSC_TRACES_TRACE_IDS_H

#include "traces/trace/trace.h"

// The ids seen so far; memory is proportional to their bytes. Zero-initialize.
typedef struct dsc_id_set {
    dsc_buffer bytes; // all ids, concatenated
    int64_t *end;     // [count] end of id i in bytes
    size_t count, capacity;
    uint32_t *slot; // [slots] open addressing: 1 + index, or 0 when empty; at most half full
    size_t slots;   // a power of two
} dsc_id_set;

// Adds the id of request number set->count. DSC_EINPUT, with nothing added, when an earlier request
// has the same id.
int dsc_id_set_add(dsc_id_set *set, dsc_text_view id, dsc_error *err);
// The number of the request that has the id, or -1.
int64_t dsc_id_set_find(const dsc_id_set *set, dsc_text_view id);
void dsc_id_set_fini(dsc_id_set *set);

#endif
