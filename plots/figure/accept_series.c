// SPDX-License-Identifier: Apache-2.0
// Indexes acceptance probabilities by pair of distributions, rule and number of drafts.
#include "plots/figure/accept_series.h"

#include <math.h>
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

// The index of a pair, which is added if it is new. Rows of one pair are adjacent.
static size_t pair_index(dsc_plot *p, dsc_accept_series *s, const char *pair)
{
    size_t j = s->pairs;
    while (j && strcmp(s->pair[j - 1], pair))
        j--;
    if (j)
        return j - 1;
    if (s->pairs == MOST_PAIRS) {
        dsc_refuse(p,
                   "the table has more than %d pairs: filter by pair, or make it with theory "
                   "accept --summary",
                   MOST_PAIRS);
        return 0;
    }
    s->pair[s->pairs] = pair;
    return s->pairs++;
}

static bool has_value(const dsc_accept_series *s, size_t at)
{
    return isfinite(s->value[at]) || isfinite(s->low[at]);
}

// Stores the values of a row; a range is stored only where there is no number.
static void fill_row(dsc_plot *p, dsc_accept_series *s, size_t row, size_t pair, size_t k)
{
    const dsc_table *t = s->selection.table;
    for (size_t r = 0; r < DSC_ACCEPT_RULES; r++) {
        size_t at = dsc_accept_at(s, pair, r) + k;
        if (has_value(s, at))
            dsc_refuse(p, "two rows have the same pair and k (%s, k = %g)", s->pair[pair], s->k[k]);
        s->value[at] = dsc_number_at(t, row, rule[r].column);
        if (isnan(s->value[at])) {
            s->low[at] = dsc_number_at(t, row, rule[r].low);
            s->high[at] = dsc_number_at(t, row, rule[r].high);
            s->ranges = s->ranges || isfinite(s->low[at]);
        }
    }
}

// Cells without a row stay NaN.
static void fill(dsc_plot *p, dsc_accept_series *s, const size_t *pair, int k_column)
{
    size_t count = s->pairs * DSC_ACCEPT_RULES * s->nk;
    bool any = false;
    s->value = dsc_plot_numbers(p, 3 * count);
    if (p->rc)
        return;
    s->low = s->value + count;
    s->high = s->low + count;
    for (size_t i = 0; i < s->selection.rows; i++) {
        double k = dsc_value_at(s->selection.table, s->selection.row[i], k_column);
        size_t at = 0;
        while (at < s->nk && s->k[at] != k)
            at++;
        if (at < s->nk)
            fill_row(p, s, s->selection.row[i], pair[i], at);
    }
    for (size_t i = 0; i < count; i++)
        any = any || has_value(s, i);
    if (!any)
        dsc_refuse(p, "the table has no finite acceptance probability to draw");
}

void dsc_accept_series_init(dsc_plot *p, dsc_accept_series *s)
{
    int column[6]; // pair k rejection specinfer kseq otm
    dsc_need_columns(p, DSC_ACCEPT_NEEDS, column);
    dsc_need(p, "pair", DSC_NAMES);
    *s = (dsc_accept_series){.selection = dsc_select(p, p->table, p->options, NULL)};
    s->pair = dsc_plot_new(p, const char *, MOST_PAIRS);
    size_t *pair = dsc_plot_new(p, size_t, s->selection.rows);
    for (size_t i = 0; !p->rc && i < s->selection.rows; i++)
        pair[i] = pair_index(p, s, dsc_text_at(p->table, s->selection.row[i], "pair"));
    s->k = dsc_distinct(p, &s->selection, column[1], &s->nk);
    if (!s->nk)
        dsc_refuse(p, "column 'k' has no numbers");
    fill(p, s, pair, column[1]);
}

const char *dsc_accept_rule(size_t r)
{
    return rule[r].label;
}

void dsc_accept_data(dsc_plot *p, const dsc_accept_series *s)
{
    dsc_data_text(p, "pair", "draft distribution to target distribution");
    dsc_data_number(p, "k", "drafts per position");
    for (size_t r = 0; r < DSC_ACCEPT_RULES; r++)
        dsc_data_number(p, rule[r].column, NULL);
    for (size_t r = 0; s->ranges && r < DSC_ACCEPT_RULES; r++) {
        dsc_data_number(p, rule[r].low, NULL);
        dsc_data_number(p, rule[r].high, NULL);
    }
    for (size_t i = 0; i < s->pairs * s->nk; i++) {
        double number[DSC_DATA_COLUMNS] = {s->k[i % s->nk]};
        bool any = false;
        for (size_t r = 0; r < DSC_ACCEPT_RULES; r++) {
            size_t at = dsc_accept_at(s, i / s->nk, r) + i % s->nk;
            double *range = &number[1 + DSC_ACCEPT_RULES + 2 * r];
            number[1 + r] = s->value[at];
            range[0] = s->low[at];
            range[1] = s->high[at];
            any = any || has_value(s, at);
        }
        if (any)
            dsc_data_row(p, &s->pair[i / s->nk], number);
    }
}
