// SPDX-License-Identifier: Apache-2.0
// Totals that serving engines give: how many drafts were verified, tokens drafted, tokens accepted.
// They carry no tokens, so they make no trace but a result table.
#ifndef DSC_TRACES_TOTALS_H
#define DSC_TRACES_TOTALS_H

#include "base/table.h"

#include <stdbool.h>

// One request, or all of a server. -1: the source does not say.
typedef struct dsc_totals {
    char *id;                // the source's own, or its number; owned
    int64_t output_tokens;   // a token of the prefill included
    int64_t drafts;          // drafts that were verified: steps with one (required)
    int64_t drafted;         // tokens of them
    int64_t accepted;        // of those accepted, bonus excluded
    int64_t *histogram;      // [histogram_length] drafts of which 0, 1, ... were accepted; owned
    size_t histogram_length; // 0: the source does not say
} dsc_totals;

typedef struct dsc_totals_list {
    dsc_totals *item; // [count]
    size_t count, capacity;
} dsc_totals_list; // zero-initialise

typedef struct dsc_totals_options {
    bool skip_errors;                                 // leave bad responses out
    void (*skipped)(void *user, const char *message); // called for each; may be NULL
    void *user;
} dsc_totals_options;

typedef struct dsc_totals_driver {
    const char *name, *summary;
    // Whether a file's first line, or first value where it is a document, looks like this format.
    bool (*probe)(const char *line, size_t length);
    int (*read)(dsc_totals_list *out, const char *const *paths, size_t count,
                const dsc_totals_options *options, dsc_error *err);
} dsc_totals_driver;

// NULL-terminated list of all drivers: sglang, prometheus.
DSC_API const dsc_totals_driver *const *dsc_totals_drivers(void);
// By name; NULL: none.
DSC_API const dsc_totals_driver *dsc_totals_find(const char *name);
// By the first line or value of a file; *out NULL when it fits none, or is no regular file.
DSC_API int dsc_totals_probe(const dsc_totals_driver **out, const char *path, dsc_error *err);

// Reads the inputs and adds the columns and a row per item to the empty table `out` (and, of
// several, a last row "all"). Errors name file, line and column; DSC_EINPUT also when the counts
// contradict each other. *left_out (may be NULL): what was left out with skip_errors.
DSC_API int dsc_totals_import(dsc_table *out, const dsc_totals_driver *driver,
                              const char *const *paths, size_t count,
                              const dsc_totals_options *options, int64_t *left_out, dsc_error *err);

// --- for drivers -----------------------------------------------------------------------------

void dsc_totals_fini(dsc_totals_list *list);
// An item of which all is unknown. id is copied; `histogram` of `length` zeros. *out is valid until
// the next call.
int dsc_totals_add(dsc_totals_list *list, const char *id, size_t length, dsc_totals **out,
                   dsc_error *err);
// Takes the last item away again.
void dsc_totals_drop(dsc_totals_list *list);
// The invariants: the histogram adds up to the drafts and to the accepted tokens, no more is
// accepted than drafted, and the steps did not write more than there is. Fills in `accepted` from
// the histogram. DSC_EINPUT says which is broken.
int dsc_totals_check(dsc_totals *t, dsc_error *err);

#endif
