// SPDX-License-Identifier: Apache-2.0
// Totals reported by serving engines: the numbers of drafts verified, tokens drafted and tokens
// accepted. They contain no tokens, so they are imported as a result table, not as a trace.
#ifndef DSC_TRACES_TOTALS_H
#define DSC_TRACES_TOTALS_H

#include "base/table.h"

#include <stdbool.h>

// The totals of one request, or of a server. -1: unknown.
typedef struct dsc_totals {
    char *id;                // the id in the source, or a number; owned
    int64_t output_tokens;   // including the token of the prefill
    int64_t drafts;          // drafts verified, that is, steps with a draft (required)
    int64_t drafted;         // draft tokens
    int64_t accepted;        // accepted draft tokens, bonus excluded
    int64_t *histogram;      // [histogram_length] drafts with 0, 1, ... accepted tokens; owned
    size_t histogram_length; // 0: unknown
} dsc_totals;

typedef struct dsc_totals_list {
    dsc_totals *item; // [count]
    size_t count, capacity;
    int64_t left_out; // responses that were skipped
} dsc_totals_list;    // zero-initialize

typedef struct dsc_totals_options {
    bool skip_errors;                                 // skip bad responses
    void (*skipped)(void *user, const char *message); // called for each of them; may be NULL
    void *user;
} dsc_totals_options;

typedef struct dsc_totals_driver {
    const char *name, *summary;
    // Returns whether a file's first line, or first value where it is a document, looks like this
    // format.
    bool (*probe)(const char *line, size_t length);
    int (*read)(dsc_totals_list *out, const char *const *paths, size_t count,
                const dsc_totals_options *options, dsc_error *err);
} dsc_totals_driver;

// The NULL-terminated list of all drivers: sglang, prometheus.
const dsc_totals_driver *const *dsc_totals_drivers(void);
// The driver of that name, or NULL.
const dsc_totals_driver *dsc_totals_find(const char *name);
// The driver that recognizes the first line or value of a file. *out is NULL when none does, or
// when it is not a regular file.
int dsc_totals_probe(const dsc_totals_driver **out, const char *path, dsc_error *err);

// Reads the inputs and adds the columns and a row per item to the empty table `out`; several items
// are followed by a row "all". Errors name file, line and column; DSC_EINPUT also when counts
// contradict each other. *left_out (may be NULL): the number of responses skipped with skip_errors.
int dsc_totals_import(dsc_table *out, const dsc_totals_driver *driver, const char *const *paths,
                      size_t count, const dsc_totals_options *options, int64_t *left_out,
                      dsc_error *err);

// --- for drivers -----------------------------------------------------------------------------

extern const dsc_totals_driver dsc_totals_sglang, dsc_totals_prometheus;

void dsc_totals_fini(dsc_totals_list *list);
// Adds an item whose counts are unknown, with a histogram of `length` zeros. id is copied. *out is
// valid until the next call.
int dsc_totals_add(dsc_totals_list *list, const char *id, size_t length, dsc_totals **out,
                   dsc_error *err);
// Removes the last item.
void dsc_totals_drop(dsc_totals_list *list);
// Checks the invariants: the histogram adds up to the drafts and to the accepted tokens, no more
// tokens are accepted than drafted, and the steps did not write more than the output. Sets
// `accepted` from the histogram if it is unknown. DSC_EINPUT names the contradiction.
int dsc_totals_check(dsc_totals *t, dsc_error *err);

#endif
