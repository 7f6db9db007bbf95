// SPDX-License-Identifier: Apache-2.0
// Several traces as one: into a new trace, or behind one that there is.
#ifndef DSC_TRACES_TRACE_JOIN_H
#define DSC_TRACES_TRACE_JOIN_H

#include "traces/trace/trace.h"

// What makes one trace of others; {0} will do.
typedef struct dsc_join_options {
    bool force;                    // merge, cut: replace an existing output
    bool common;                   // leave out what not all traces have, instead of refusing them
    bool rename;                   // an id becomes "<number of the trace, from 1>/<id>"
    int64_t shard_tokens;          // as of dsc_trace_writer_open
    const char *version, *command; // for the provenance record, or NULL
    // Between requests: requests read and in all; nonzero stops (DSC_EINTERRUPT). May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    // Called with each thing that is left out. May be NULL.
    void (*note)(void *user, const char *message);
    void *user;
} dsc_join_options;

// The requests of all traces, in order, as the trace `out`. They must have the same tokenizer and,
// unless o->common, columns, parameters and drafters (in any order); no id may occur twice, unless
// o->rename. DSC_EUSAGE: the traces do not fit (which, in what), `out` exists, or would overwrite
// one of them; else as reading and writing. Source format and semantics become "mixed" where they
// differ. One shard and one request are held at a time, and the ids of all.
DSC_API int dsc_trace_merge(const char *const *paths, size_t count, const char *out,
                            const dsc_join_options *o, dsc_error *err);

// The same behind the requests of the trace `path`, which counts as number 1 for o->rename (its own
// ids stay). o->common: what the others have beyond it is left out; what they lack is refused in
// any case. See dsc_trace_writer_append.
DSC_API int dsc_trace_append(const char *path, const char *const *paths, size_t count,
                             const dsc_join_options *o, dsc_error *err);

// Provenance of a trace made of others: {"version", "command", "sources": [{"trace", "hash",
// "requests", "provenance"}]}. *out owned by the caller.
DSC_API int dsc_join_provenance(char **out, dsc_trace *const *trace, size_t count,
                                const dsc_join_options *o, dsc_error *err);

// DSC_EUSAGE when writing the trace `out` would remove the trace t before it is read: t lies under
// the name OUT.tmp or OUT.old.
DSC_API int dsc_join_check_names(const dsc_trace *t, const char *out, dsc_error *err);

#endif
