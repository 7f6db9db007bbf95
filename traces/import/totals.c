// SPDX-License-Identifier: Apache-2.0
// Totals of servers as a result table, with the metrics of base/metrics.h as far as the counters
// allow. Check: vLLM's acceptance rates by position .740 .473 .309 .187 .099 .057 give a mean
// acceptance length of 1 + their sum = 2.865.
#include "traces/import/totals.h"

#include "base/metrics.h"

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
    {DSC_COL_ID, DSC_CELL_TEXT, "id or number of the request, or the labels of the server"},
    {DSC_COL_OUTPUT_TOKENS, DSC_CELL_REAL,
     "tokens of the output; nan: the source does not contain it"},
    {DSC_COL_NUM_DRAFTS, DSC_CELL_INT, "drafts that were verified, one per step with a draft"},
    {DSC_COL_NUM_DRAFT_TOKENS, DSC_CELL_REAL,
     "draft tokens that the target verified; nan: the source does not contain it"},
    {DSC_COL_NUM_ACCEPTED_TOKENS, DSC_CELL_REAL,
     "draft tokens accepted, bonus excluded; nan: the source does not contain it"},
    DSC_METRIC_COLUMNS,
    {"tokens_per_draft", DSC_CELL_REAL,
     "output_tokens / num_drafts; it counts the tokens of prefill and of steps without a draft as "
     "well, so it is at least mean_acceptance_length unless the last step was cut"},
    {DSC_COL_ACCEPT_HISTOGRAM, DSC_CELL_LIST,
     "drafts of which 0, 1, 2, ... tokens were accepted; the sum is num_drafts"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static double known(int64_t n)
{
    return n >= 0 ? (double)n : (double)NAN;
}

static dsc_cell real(double x)
{
    return (dsc_cell){.type = DSC_CELL_REAL, .r = x};
}

static dsc_cell list(const int64_t *number, size_t length)
{
    return (dsc_cell){.type = DSC_CELL_LIST, .list = number, .i = (int64_t)length};
}

// Sources give no draft lengths. They are known where the mean is the greatest: all drafts then
// have a token at every position of the histogram. Target calls without a draft are counted
// nowhere.
static int count(dsc_metric_counts *c, const dsc_totals *t, dsc_arena *arena, dsc_error *err)
{
    const size_t n = t->histogram_length;
    const int64_t longest = (int64_t)n - 1;
    int64_t *lengths;
    *c = (dsc_metric_counts){.output_tokens = known(t->output_tokens),
                             .target_calls = NAN,
                             .num_drafts = (double)t->drafts,
                             .num_draft_tokens = known(t->drafted),
                             .num_accepted_tokens = known(t->accepted),
                             .accepted = list(t->histogram, n)};
    if (longest < 1 || t->drafted < 0 || t->drafted / longest != t->drafts || t->drafted % longest)
        return DSC_OK;
    int rc = dsc_arena_new(arena, &lengths, 2 * n, err);
    if (rc)
        return rc;
    memset(lengths, 0, 2 * n * sizeof *lengths);
    lengths[longest] = t->drafts;
    lengths[(int64_t)n + longest] = t->histogram[longest];
    c->lengths = list(lengths, n);
    c->whole = list(lengths + n, n);
    return DSC_OK;
}

static int add_row(dsc_table *out, const dsc_totals *t, dsc_error *err)
{
    dsc_arena arena = {0};
    dsc_metric_counts counts;
    dsc_metrics metrics;
    dsc_cell cell[COLUMNS] = {{.type = DSC_CELL_TEXT, .text = t->id}};
    size_t n = 1;
    int rc = count(&counts, t, &arena, err);
    if (!rc)
        rc = dsc_metrics_init(&metrics, &counts, &arena, err);
    if (!rc) {
        cell[n++] = real(counts.output_tokens);
        cell[n++] = (dsc_cell){.type = DSC_CELL_INT, .i = t->drafts};
        cell[n++] = real(counts.num_draft_tokens);
        cell[n++] = real(counts.num_accepted_tokens);
        dsc_metrics_cells(&metrics, cell + n);
        n += DSC_METRICS;
        cell[n++] = real(t->drafts ? counts.output_tokens / counts.num_drafts : (double)NAN);
        cell[n++] = list(t->histogram, t->histogram_length);
        rc = dsc_table_add_row(out, cell, err);
    }
    dsc_arena_fini(&arena);
    return rc;
}

static int add_columns(dsc_table *out, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < COLUMNS && !rc; c++) {
        dsc_column x = columns[c];
        if (strcmp(x.name, DSC_COL_BLOCK_EFFICIENCY) == 0)
            x.help = "nan: servers do not count their target calls without a draft; see "
                     "mean_acceptance_length";
        rc = dsc_table_add_column(out, x.name, x.type, x.help, err);
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
    for (size_t i = 0; i < list->count; i++)
        if (list->item[i].histogram_length > length)
            length = list->item[i].histogram_length;
    int rc = list->count > 1 ? add_sum(list, length, err) : DSC_OK;
    if (!rc)
        rc = add_columns(out, err);
    for (size_t i = 0; i < list->count && !rc; i++)
        rc = add_row(out, &list->item[i], err);
    return rc;
}

// --- the import --------------------------------------------------------------------------------

int dsc_totals_import(dsc_table *out, const dsc_totals_driver *driver, const char *const *paths,
                      size_t count, const dsc_totals_options *options, int64_t *left_out,
                      dsc_error *err)
{
    dsc_totals_list list = {0};
    dsc_error local; // skipping needs the messages even if the caller does not
    int rc = driver->read(&list, paths, count, options, err ? err : &local);
    if (!rc && list.count == 0)
        rc = dsc_fail(err, DSC_EINPUT, "the input has no totals");
    if (!rc)
        rc = make_table(out, &list, err);
    if (left_out)
        *left_out = list.left_out;
    dsc_totals_fini(&list);
    return rc;
}
