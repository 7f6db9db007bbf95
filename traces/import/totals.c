// SPDX-License-Identifier: Apache-2.0
// Turns totals into a result table. With h(m) the number of drafts with m accepted tokens, n their
// sum: the rate at position d is sum_{m >= d} h(m) / n (unconditional: what vLLM and llama.cpp
// print), the conditional acceptance rate at position d is sum_{m >= d} h(m) / sum_{m >= d-1} h(m)
// (given that position d - 1 was accepted: EAGLE's d-alpha, where every draft is that long). Check:
// vLLM's rates .740 .473 .309 .187 .099 .057 give block efficiency 1 + their sum = 2.865.
#include "traces/import/totals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- the list ----------------------------------------------------------------------------------

void dsc_totals_drop(dsc_totals_list *list)
{
    dsc_totals *t = &list->item[--list->count];
    free(t->id);
    free(t->histogram);
}

void dsc_totals_fini(dsc_totals_list *list)
{
    while (list->count)
        dsc_totals_drop(list);
    free(list->item);
    *list = (dsc_totals_list){0};
}

int dsc_totals_add(dsc_totals_list *list, const char *id, size_t length, dsc_totals **out,
                   dsc_error *err)
{
    dsc_totals t = {NULL, -1, -1, -1, -1, NULL, length};
    int rc = dsc_resize(&list->item, &list->capacity, list->count + 1, err);
    if (!rc)
        rc = dsc_strndup(&t.id, id, strlen(id), err);
    if (!rc)
        rc = dsc_new(&t.histogram, length, err);
    if (rc) {
        free(t.id);
        return rc;
    }
    *out = &list->item[list->count++];
    **out = t;
    return DSC_OK;
}

static int check_histogram(dsc_totals *t, dsc_error *err)
{
    int64_t drafts = 0, accepted = 0;
    for (size_t m = 0; m < t->histogram_length; m++) {
        drafts += t->histogram[m];
        accepted += t->histogram[m] * (int64_t)m;
    }
    if (drafts != t->drafts)
        return dsc_fail(err, DSC_EINPUT,
                        "the histogram adds up to %lld drafts, but there were %lld",
                        (long long)drafts, (long long)t->drafts);
    if (t->accepted < 0)
        t->accepted = accepted;
    if (accepted != t->accepted)
        return dsc_fail(err, DSC_EINPUT,
                        "the histogram adds up to %lld accepted tokens (bonus excluded), but there "
                        "were %lld",
                        (long long)accepted, (long long)t->accepted);
    return DSC_OK;
}

int dsc_totals_check(dsc_totals *t, dsc_error *err)
{
    int rc = t->histogram_length ? check_histogram(t, err) : DSC_OK;
    if (!rc && t->accepted >= 0 && t->drafted >= 0 && t->accepted > t->drafted)
        rc = dsc_fail(err, DSC_EINPUT, "%lld tokens were accepted, but only %lld drafted",
                      (long long)t->accepted, (long long)t->drafted);
    if (rc || t->output_tokens < 0 || t->accepted < 0 || t->drafts == 0)
        return rc;
    // The end (EOS token, length limit) may have cut all but one token of the last step.
    int64_t longest = t->histogram_length ? (int64_t)t->histogram_length - 1 : t->accepted;
    if (t->output_tokens > t->accepted + t->drafts - longest - 1)
        return DSC_OK; // steps without a draft are not counted, so there may be more tokens
    return dsc_fail(
        err, DSC_EINPUT,
        "%lld drafts with %lld accepted tokens wrote more than the %lld tokens of the output",
        (long long)t->drafts, (long long)t->accepted, (long long)t->output_tokens);
}

// --- the table ---------------------------------------------------------------------------------

static const dsc_column columns[] = {
    {"id", DSC_CELL_TEXT, "the request's id or number, or the labels of the server"},
    {"output_tokens", DSC_CELL_REAL, "tokens of the output; nan: the source does not say"},
    {"num_drafts", DSC_CELL_INT, "drafts that were verified, one per step with a draft"},
    {"num_draft_tokens", DSC_CELL_REAL, "draft tokens given to the target to verify"},
    {"num_accepted_tokens", DSC_CELL_REAL, "draft tokens accepted, bonus excluded"},
    {"acceptance_rate", DSC_CELL_REAL,
     "num_accepted_tokens / num_draft_tokens (ratio of totals, bonus excluded)"},
    {"block_efficiency", DSC_CELL_REAL,
     "1 + num_accepted_tokens / num_drafts: tokens per step with a draft, bonus included; where "
     "the accepted tokens are not given, output_tokens / num_drafts"},
    {"accept_histogram", DSC_CELL_LIST,
     "drafts of which 0, 1, 2, ... tokens were accepted; they add up to num_drafts"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static double ratio(double a, double b)
{
    return b != 0 ? a / b : NAN;
}

static double known(int64_t n)
{
    return n >= 0 ? (double)n : NAN;
}

static double block_efficiency(const dsc_totals *t)
{
    double n = (double)t->drafts;
    return t->accepted >= 0 ? ratio(n + (double)t->accepted, n) : ratio(known(t->output_tokens), n);
}

static dsc_cell real(double x)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = x};
}

// Drafts of which at least `depth` tokens were accepted; NaN when unknown.
static double survivors(const dsc_totals *t, size_t depth)
{
    int64_t n = 0;
    for (size_t m = depth; m < t->histogram_length; m++)
        n += t->histogram[m];
    return t->histogram_length ? (double)n : NAN;
}

static int add_row(dsc_table *out, const dsc_totals *t, size_t depth, dsc_cell *cell,
                   dsc_error *err)
{
    size_t n = 0;
    cell[n++] = (dsc_cell){.type = DSC_CELL_TEXT, .text = t->id};
    cell[n++] = real(known(t->output_tokens));
    cell[n++] = (dsc_cell){.type = DSC_CELL_INT, .i = t->drafts};
    cell[n++] = real(known(t->drafted));
    cell[n++] = real(known(t->accepted));
    cell[n++] = real(ratio(known(t->accepted), known(t->drafted)));
    cell[n++] = real(block_efficiency(t));
    cell[n++] =
        (dsc_cell){.type = DSC_CELL_LIST, .i = (int64_t)t->histogram_length, .list = t->histogram};
    for (size_t d = 1; d <= depth; d++) {
        cell[n++] = real(ratio(survivors(t, d), (double)t->drafts));
        cell[n++] = real(ratio(survivors(t, d), survivors(t, d - 1)));
    }
    return dsc_table_add_row(out, cell, err);
}

static int add_columns(dsc_table *out, size_t depth, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < COLUMNS && !rc; c++)
        rc = dsc_table_add_column(out, columns[c].name, columns[c].type, columns[c].help, err);
    for (size_t d = 1; d <= depth && !rc; d++) {
        char name[64];
        snprintf(name, sizeof name, "rate_%zu", d);
        rc = dsc_table_add_column(out, name, DSC_CELL_REAL,
                                  d > 1 ? NULL
                                        : "share of the drafts whose token 1, 2, ... was accepted "
                                          "(unconditional: vLLM's per-position rate)",
                                  err);
        snprintf(name, sizeof name, "conditional_acceptance_rate_%zu", d);
        if (!rc)
            rc = dsc_table_add_column(out, name, DSC_CELL_REAL,
                                      d > 1 ? NULL
                                            : "share of the drafts whose token 1, 2, ... was "
                                              "accepted, of those whose token before it was",
                                      err);
    }
    return rc;
}

static int64_t sum(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 ? a + b : -1;
}

// Adds an item "all" with the sums. A count that is unknown for one item is unknown for all.
static int add_sum(dsc_totals_list *list, size_t length, dsc_error *err)
{
    dsc_totals *all;
    size_t items = list->count;
    int rc = dsc_totals_add(list, "all", length, &all, err);
    if (rc)
        return rc;
    all->output_tokens = all->drafts = all->drafted = all->accepted = 0;
    for (size_t i = 0; i < items; i++) {
        const dsc_totals *t = &list->item[i];
        all->output_tokens = sum(all->output_tokens, t->output_tokens);
        all->drafts += t->drafts;
        all->drafted = sum(all->drafted, t->drafted);
        all->accepted = sum(all->accepted, t->accepted);
        if (t->histogram_length == 0 && t->drafts > 0)
            all->histogram_length = 0;
        for (size_t m = 0; m < t->histogram_length && m < all->histogram_length; m++)
            all->histogram[m] += t->histogram[m];
    }
    return DSC_OK;
}

static int make_table(dsc_table *out, dsc_totals_list *list, dsc_error *err)
{
    size_t length = 0;
    dsc_cell *cell = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (list->item[i].histogram_length > length)
            length = list->item[i].histogram_length;
    size_t depth = length ? length - 1 : 0;
    int rc = list->count > 1 ? add_sum(list, length, err) : DSC_OK;
    if (!rc)
        rc = add_columns(out, depth, err);
    if (!rc)
        rc = dsc_new(&cell, COLUMNS + 2 * depth, err);
    for (size_t i = 0; i < list->count && !rc; i++)
        rc = add_row(out, &list->item[i], depth, cell, err);
    free(cell);
    return rc;
}

// --- the import --------------------------------------------------------------------------------

// Counts skipped responses and passes their messages on to the caller.
typedef struct counter {
    const dsc_totals_options *options;
    int64_t left_out;
} counter;

static void count_skipped(void *user, const char *message)
{
    counter *c = user;
    c->left_out++;
    if (c->options->skipped)
        c->options->skipped(c->options->user, message);
}

int dsc_totals_import(dsc_table *out, const dsc_totals_driver *driver, const char *const *paths,
                      size_t count, const dsc_totals_options *options, int64_t *left_out,
                      dsc_error *err)
{
    dsc_totals_list list = {0};
    counter c = {options, 0};
    dsc_totals_options counted = {options->skip_errors, count_skipped, &c};
    dsc_error local; // skipping needs the messages even if the caller does not
    int rc = driver->read(&list, paths, count, &counted, err ? err : &local);
    if (!rc && list.count == 0)
        rc = dsc_fail(err, DSC_EINPUT, "the input has no totals");
    if (!rc)
        rc = make_table(out, &list, err);
    if (left_out)
        *left_out = c.left_out;
    dsc_totals_fini(&list);
    return rc;
}
