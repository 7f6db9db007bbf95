// SPDX-License-Identifier: Apache-2.0
// The acceptance of drafts, read from whatever convention it was measured in. The text is
//
//   iid:.7                    the same at every position
//   rates:.917,.837,.648      by position, of all drafts: vLLM's "Per-position acceptance rate"
//   conditional:.917,.913     by position, of the drafts whose earlier tokens were all accepted
//   al:3.1@5                  mean acceptance length, bonus included, of drafts of 5 tokens
//   rate:.62@5                accepted tokens / draft tokens, of drafts of 5 tokens
//   histogram:150,200,650     drafts that accepted 0, 1, ..., all of their tokens
//   table:FILE, or FILE       a table with one of these columns: totals of a server, results
//
// Rates may be percentages; numbers are separated by commas, semicolons, spaces or lines, and may
// be in parentheses or brackets. In place of numbers by position there may be the path of a file
// with them, where text after a '#' is a comment. Items NAME=VALUE follow after a comma: later=H
// is the conditional rate of all positions that are not listed (rates, conditional, histogram,
// table), request-sd=S the spread of the requests (iid, conditional; theory/request_effect.h), and
// COLUMN=VALUE, the last item of a table, the row.
//
// A position that no draft reached has no influence: after a rate of 0 all rates are 0. The
// rates of later positions than those of a list are unknown, unless `later` gives them.
#ifndef DSC_SIM_ACCEPTANCE_H
#define DSC_SIM_ACCEPTANCE_H

#include "base/option.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_ACCEPTANCE_POSITIONS = 4096, DSC_ACCEPTANCE_NOTE = 400 };

typedef struct dsc_acceptance_rates {
    // [positions] in [0, 1]: that position j + 1 is accepted if all before it are
    double *conditional_rate;
    int positions;     // >= 1; 1 where all positions have the same rate
    double later;      // the same for positions after these; NaN: unknown
    double request_sd; // of the effect of a request on the logit of its rates
    bool one_draft;    // the rates are those of one draft at a position; false: iid, a model
    // How the text was understood: the mean acceptance length that it means, and what it might
    // have meant instead. Empty for iid.
    char note[DSC_ACCEPTANCE_NOTE];
} dsc_acceptance_rates; // zero-initialize; dsc_acceptance_rates_fini frees

// A form of such a text, "NAME:ITEM,...".
typedef struct dsc_spec_form {
    const char *name, *usage, *summary;
    const dsc_option *item; // [items] those that may be given as NAME=VALUE
    size_t items;
} dsc_spec_form;

// The form at index i, or NULL after the last one.
const dsc_spec_form *dsc_acceptance_form(size_t i);

// Whether the text names acceptance rates: it begins with the name of a form and a colon, or is the
// path of a file, or numbers, whose form is missing.
bool dsc_acceptance_is(const char *text);

// Reads the text. DSC_EUSAGE, DSC_EINPUT (of a file): what is wrong and what would be right; a list
// that cannot be what it is said to be is refused with the name of the other form. *out is
// unchanged then.
DSC_API int dsc_acceptance_rates_read(dsc_acceptance_rates *out, const char *text, dsc_error *err);
DSC_API void dsc_acceptance_rates_fini(dsc_acceptance_rates *r); // NULL allowed

// The same from row `row` of a table that was read from `path`. DSC_EINPUT.
struct dsc_table;
int dsc_acceptance_rates_of_row(dsc_acceptance_rates *out, const struct dsc_table *t, size_t row,
                                const char *path, dsc_error *err);
// The row with the totals: the only one, or the one with id "all". DSC_EINPUT: there is none.
int dsc_acceptance_row(size_t *row, const struct dsc_table *t, const char *path, dsc_error *err);

// The conditional rates of `length` positions into rate[length]; NaN: unknown. Does nothing when a
// pointer is NULL.
DSC_API void dsc_acceptance_rates_fill(const dsc_acceptance_rates *r, int64_t length, double *rate);

// Fails with DSC_EUSAGE: a draft is longer than the positions that have a rate.
int dsc_acceptance_too_long(int64_t positions, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif
