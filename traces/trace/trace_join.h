// SPDX-License-Identifier: Apache-2.0
// Joins several traces: into a new trace, or appended to an existing one.
#ifndef DSC_TRACES_TRACE_JOIN_H
#define DSC_TRACES_TRACE_JOIN_H

#include "traces/trace/trace.h"

// Options of merge, append and cut; {0} is valid.
typedef struct dsc_join_options {
    bool force;                    // merge, cut: replace an existing output
    bool common;                   // drop fields that some trace lacks, instead of refusing them
    bool rename;                   // an id becomes "<number of the trace, from 1>/<id>"
    int64_t shard_tokens;          // see dsc_trace_writer_open
    const char *version, *command; // for the provenance record, or NULL
    // Called after each request with the requests copied and the total; nonzero stops
    // (DSC_EINTERRUPT). May be NULL.
    int (*progress)(void *user, int64_t done, int64_t total);
    // Called for each field that is left out. May be NULL.
    void (*note)(void *user, const char *message);
    void *user;
} dsc_join_options;

// Writes the requests of all traces, in order, as the trace `out`. All must have the same tokenizer
// and, unless o->common, the same columns, parameters and drafters (in any order); ids must be
// unique, unless o->rename. DSC_EUSAGE: two traces differ (the message names them and the
// difference), `out` exists, or writing it would overwrite a source. Other errors are those of
// reading and writing. Source format and semantics become "mixed" where they differ. Memory is one
// shard, one request and all ids.
int dsc_trace_merge(const char *const *paths, size_t count, const char *out,
                    const dsc_join_options *o, dsc_error *err);

// Appends the requests of all traces to the trace `path`, which counts as number 1 for o->rename
// (its own ids stay). With o->common, additional fields of the other traces are dropped; a field
// that they lack is refused in any case. See dsc_trace_writer_append.
int dsc_trace_append(const char *path, const char *const *paths, size_t count,
                     const dsc_join_options *o, dsc_error *err);

// The provenance of a derived trace: {"version", "command", "sources": [{"trace", "hash",
// "requests", "provenance"}]}. *out is owned by the caller.
int dsc_join_provenance(char **out, dsc_trace *const *trace, size_t count,
                        const dsc_join_options *o, dsc_error *err);

// DSC_EUSAGE when writing the trace `out` would remove the source t, because t has the name OUT.tmp
// or OUT.old.
int dsc_join_check_names(const dsc_trace *t, const char *out, dsc_error *err);

#endif
