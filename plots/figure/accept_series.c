// SPDX-License-Identifier: Apache-2.0
// Indexes acceptance probabilities by pair of distributions, rule and number of drafts.
#include "plots/figure/accept_series.h"

#include "plots/draw/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 500 };

static const struct {
    const char *column, *low, *high, *label;
} rule[DSC_ACCEPT_RULES] = {
    [DSC_ACCEPT_OTM] = {"otm", "otm_low", "otm_high", "OTM (optimal)"},
    [DSC_ACCEPT_KSEQ] = {"kseq", "kseq_low", "kseq_high", "k-Seq"},
    [DSC_ACCEPT_SPECINFER] = {"specinfer", "specinfer_low", "specinfer_high", "SpecInfer"},
    [DSC_ACCEPT_SINGLE] = {"rejection", "rejection_low", "rejection_high", "single draft"},
};

static int collect_pairs(dsc_accept_series *s, int column, dsc_error *err)
{
    const dsc_table *t = s->selection.table;
    int rc = dsc_new(&s->pair, MOST_PAIRS, err);
    for (size_t i = 0; !rc && i < s->selection.rows; i++) {
        const char *pair = dsc_table_at(t, s->selection.row[i], (size_t)column)->text;
        size_t j = s->pairs; // rows of one pair are adjacent: search from the latest
        while (j && strcmp(s->pair[j - 1], pair))
            j--;
        if (!j && s->pairs == MOST_PAIRS)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "the table has more than %d pairs: filter by pair, or make it with "
                          "theory accept --summary",
                          MOST_PAIRS);
        else if (!j)
            s->pair[s->pairs++] = pair;
    }
    return rc;
}

static size_t find_pair(const dsc_accept_series *s, const char *pair)
{
    size_t j = s->pairs - 1;
    while (strcmp(s->pair[j], pair))
        j--;
    return j;
}

static size_t find_k(const dsc_accept_series *s, double k)
{
    size_t i = 0;
    while (s->k[i] != k)
        i++;
    return i;
}

// Cells without a row stay NaN; a range is stored only where there is no number.
static int fill(dsc_accept_series *s, int pair_column, int k_column, dsc_error *err)
{
    const dsc_table *t = s->selection.table;
    size_t count = s->pairs * DSC_ACCEPT_RULES * s->nk;
    bool any = false;
    int rc = dsc_new(&s->value, 3 * count, err);
    if (rc)
        return rc;
    s->low = s->value + count;
    s->high = s->low + count;
    for (size_t i = 0; i < 3 * count; i++)
        s->value[i] = NAN;
    for (size_t i = 0; i < s->selection.rows; i++) {
        size_t row = s->selection.row[i];
        double k = dsc_table_real(t, row, (size_t)k_column);
        const char *pair = dsc_table_at(t, row, (size_t)pair_column)->text;
        if (!dsc_drawable(k))
            continue;
        for (size_t r = 0; r < DSC_ACCEPT_RULES; r++) {
            size_t at = dsc_accept_at(s, find_pair(s, pair), r) + find_k(s, k);
            if (isfinite(s->value[at]) || isfinite(s->low[at]))
                return dsc_fail(err, DSC_EUSAGE, "two rows have the same pair and k (%s, k = %g)",
                                pair, k);
            s->value[at] = dsc_number_at(t, row, rule[r].column);
            if (isnan(s->value[at])) {
                s->low[at] = dsc_number_at(t, row, rule[r].low);
                s->high[at] = dsc_number_at(t, row, rule[r].high);
                s->ranges = s->ranges || isfinite(s->low[at]);
            }
            any = any || isfinite(s->value[at]) || isfinite(s->low[at]);
        }
    }
    return any ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "the table has no finite acceptance probability to draw");
}

int dsc_accept_series_init(dsc_accept_series *s, const dsc_table *t, const dsc_figure_options *o,
                           const char *who, dsc_error *err)
{
    int column[6]; // pair k rejection specinfer kseq otm
    *s = (dsc_accept_series){0};
    int rc = dsc_need_columns(t, who, DSC_ACCEPT_NEEDS, column, err);
    if (!rc)
        rc = dsc_need_text(t, who, "pair", &column[0], err);
    if (!rc)
        rc = dsc_select(&s->selection, t, o, NULL, err);
    if (!rc)
        rc = collect_pairs(s, column[0], err);
    if (!rc)
        rc = dsc_distinct(&s->selection, column[1], &s->k, &s->nk, err);
    if (!rc && !s->nk)
        rc = dsc_fail(err, DSC_EUSAGE, "column 'k' has no numbers");
    if (!rc)
        rc = fill(s, column[0], column[1], err);
    if (rc)
        dsc_accept_series_fini(s);
    return rc;
}

void dsc_accept_series_fini(dsc_accept_series *s)
{
    free(s->pair);
    free(s->k);
    free(s->value);
    dsc_selection_fini(&s->selection);
    *s = (dsc_accept_series){0};
}

const char *dsc_accept_rule(size_t r)
{
    return rule[r].label;
}

int dsc_accept_data(const dsc_accept_series *s, dsc_table *data, dsc_error *err)
{
    int rc = dsc_table_add_column(data, "pair", DSC_CELL_TEXT,
                                  "draft distribution to target distribution", err);
    if (!rc)
        rc = dsc_table_add_column(data, "k", DSC_CELL_REAL, "drafts per position", err);
    for (size_t r = 0; !rc && r < DSC_ACCEPT_RULES; r++)
        rc = dsc_data_numbers(data, rule[r].column, err);
    for (size_t r = 0; !rc && s->ranges && r < DSC_ACCEPT_RULES; r++) {
        rc = dsc_data_numbers(data, rule[r].low, err);
        if (!rc)
            rc = dsc_data_numbers(data, rule[r].high, err);
    }
    for (size_t i = 0; !rc && i < s->pairs * s->nk; i++) {
        double number[DSC_DATA_NUMBERS] = {s->k[i % s->nk]};
        bool any = false;
        for (size_t r = 0; r < DSC_ACCEPT_RULES; r++) {
            size_t at = dsc_accept_at(s, i / s->nk, r) + i % s->nk;
            double *range = &number[1 + DSC_ACCEPT_RULES + 2 * r];
            number[1 + r] = s->value[at];
            range[0] = s->low[at];
            range[1] = s->high[at];
            any = any || isfinite(s->value[at]) || isfinite(s->low[at]);
        }
        if (any)
            rc = dsc_data_row(data, s->pair[i / s->nk], number,
                              1 + DSC_ACCEPT_RULES * (s->ranges ? 3 : 1), err);
    }
    return rc;
}
