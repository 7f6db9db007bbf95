// SPDX-License-Identifier: Apache-2.0
#include "plots/figure/accept_series.h"

#include "plots/draw/panel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PAIRS = 500 };

static const struct {
    const char *column, *low, *high, *label;
} rule[DSC_ACCEPT_RULES] = {
    [DSC_ACCEPT_OTM] = {"otm", "otm_low", "otm_high", "OTM (optimal)"},
    [DSC_ACCEPT_KSEQ] = {"kseq", "kseq_low", "kseq_high", "k-Seq"},
    [DSC_ACCEPT_SPECINFER] = {"specinfer", "specinfer_low", "specinfer_high", "multi-round"},
    [DSC_ACCEPT_SINGLE] = {"rejection", "rejection_low", "rejection_high", "one draft"},
};

static int collect_pairs(dsc_accept_series *s, int column, dsc_error *err)
{
    const dsc_table *t = s->selection.table;
    if (t->column[column].type != DSC_CELL_TEXT)
        return dsc_fail(err, DSC_EUSAGE, "column 'pair' holds no names of pairs");
    int rc = dsc_new(&s->pair, MOST_PAIRS, err);
    for (size_t i = 0; !rc && i < s->selection.rows; i++) {
        const char *pair = dsc_table_at(t, s->selection.row[i], (size_t)column)->text;
        size_t j = s->pairs; // rows of one pair stand together: look at the latest first
        while (j && strcmp(s->pair[j - 1], pair))
            j--;
        if (!j && s->pairs == MOST_PAIRS)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "the table holds more than %d pairs: filter by pair, or make it with "
                          "--summary",
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

static double number_at(const dsc_table *t, size_t row, const char *column)
{
    int c = dsc_table_find(t, column);
    double v = c < 0 ? NAN : dsc_table_real(t, row, (size_t)c);
    return dsc_drawable(v) ? v : NAN;
}

// Cells that are not met keep NaN; a range is kept only where there is no number.
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
                return dsc_fail(err, DSC_EUSAGE, "two rows are the same point (%s, k = %g)", pair,
                                k);
            s->value[at] = number_at(t, row, rule[r].column);
            if (isnan(s->value[at])) {
                s->low[at] = number_at(t, row, rule[r].low);
                s->high[at] = number_at(t, row, rule[r].high);
                s->ranges = s->ranges || isfinite(s->low[at]);
            }
            any = any || isfinite(s->value[at]) || isfinite(s->low[at]);
        }
    }
    return any ? DSC_OK : dsc_fail(err, DSC_EUSAGE, "the table has no finite acceptance to draw");
}

int dsc_accept_series_init(dsc_accept_series *s, const dsc_table *t, const dsc_figure_options *o,
                           const char *who, dsc_error *err)
{
    int column[6]; // pair k rejection specinfer kseq otm
    *s = (dsc_accept_series){0};
    int rc = dsc_need_columns(t, who, DSC_ACCEPT_NEEDS, column, err);
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

// --- panels ----------------------------------------------------------------------------------

// Where k-Seq, which is fast, loses most against the optimum: that is what the figure is about.
static size_t widest_loss(const dsc_accept_series *s, size_t *pair)
{
    double most = -1;
    size_t best = SIZE_MAX;
    for (size_t p = 0; p < s->pairs; p++)
        for (size_t i = 0; i < s->nk; i++) {
            double loss = s->value[dsc_accept_at(s, p, DSC_ACCEPT_OTM) + i] -
                          s->value[dsc_accept_at(s, p, DSC_ACCEPT_KSEQ) + i];
            if (loss > most) { // false for NaN
                most = loss;
                best = i;
                *pair = p;
            }
        }
    return best;
}

// The widest range, over everything drawn.
static void put_widest_range(dsc_writer *w, const dsc_accept_series *s)
{
    size_t count = s->pairs * DSC_ACCEPT_RULES * s->nk, widest = 0;
    for (size_t i = 0; i < count; i++)
        if (s->high[i] - s->low[i] > s->high[widest] - s->low[widest] || isnan(s->low[widest]))
            widest = i;
    dsc_put(w, " Bands are what is certain of rows with an unlisted tail: at most %.2g wide (%s).",
            s->high[widest] - s->low[widest], rule[widest / s->nk % DSC_ACCEPT_RULES].label);
}

static int put_finding(const dsc_accept_series *s, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    size_t pair = 0, at = widest_loss(s, &pair);
    dsc_put(&w,
            "Line chart%s: probability that a draft is accepted, by number of drafts k (%g to %g), "
            "for %zu pair%s of distributions.",
            s->pairs > 1 ? "s" : "", s->k[0], s->k[s->nk - 1], s->pairs, s->pairs > 1 ? "s" : "");
    if (at != SIZE_MAX) {
        const double *v = s->value + dsc_accept_at(s, pair, 0) + at;
        double loss = v[DSC_ACCEPT_OTM * s->nk] - v[DSC_ACCEPT_KSEQ * s->nk];
        if (loss < 5e-7)
            dsc_put(&w, " k-Seq reaches the optimum everywhere.");
        else
            dsc_put(&w,
                    " k-Seq is furthest from the optimum for %s at k = %g: %.4f against %.4f "
                    "(multi-round %.4f, one draft %.4f).",
                    s->pair[pair], s->k[at], v[DSC_ACCEPT_KSEQ * s->nk], v[DSC_ACCEPT_OTM * s->nk],
                    v[DSC_ACCEPT_SPECINFER * s->nk], v[DSC_ACCEPT_SINGLE * s->nk]);
    }
    if (s->ranges)
        put_widest_range(&w, s);
    return w.rc;
}

static int refuse_pairs(const dsc_accept_series *s, dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE,
                    "the table holds %zu pairs, a figure at most %d: filter by pair (%.60s, "
                    "%.60s, ...), or make the table with --summary",
                    s->pairs, DSC_ACCEPT_PANELS, s->pair[0], s->pair[1]);
}

int dsc_accept_draw(const dsc_accept_series *s, const dsc_figure_options *o, const char *terminal,
                    const char *name, const char *title, const char *subtitle, dsc_drawing *out,
                    dsc_error *err)
{
    if (s->pairs > DSC_ACCEPT_PANELS)
        return refuse_pairs(s, err);
    size_t columns = s->pairs > 2 ? 3 : s->pairs, rows = (s->pairs + columns - 1) / columns;
    bool narrow = o->width > 0 && o->width < 520;
    dsc_canvas canvas;
    int rc = dsc_canvas_init(&canvas, terminal, o, s->pairs > 1 ? 1080 : 720,
                             narrow ? 140 + 240 * (double)s->pairs
                                    : (s->pairs > 1 ? 120 : 160) + 300 * (double)rows,
                             err);
    if (rc)
        return rc;
    dsc_panel panel[DSC_ACCEPT_PANELS];
    dsc_key key[DSC_ACCEPT_RULES];
    for (size_t p = 0; p < s->pairs; p++)
        panel[p] = (dsc_panel){s->pair[p], "probability that a draft is accepted",
                               s->value + dsc_accept_at(s, p, 0), 0};
    for (int r = 0; r < DSC_ACCEPT_RULES; r++)
        key[r] = (dsc_key){rule[r].label, r};
    dsc_panels p = {
        .title = o->title ? o->title : title,
        .subtitle = subtitle,
        .x_label = "drafts per position, k",
        .x = s->k,
        .nx = s->nk,
        .key = key,
        .lines = DSC_ACCEPT_RULES,
        .panel = panel,
        .panels = s->pairs,
        .columns = columns,
        .low = s->ranges ? s->low : NULL,
        .high = s->ranges ? s->high : NULL,
        .best_panel = SIZE_MAX,
    };
    dsc_writer w = {.to = &out->script, .err = err};
    dsc_put_panels(&w, &canvas, name, &p);
    rc = w.rc ? w.rc : put_finding(s, &out->finding, err);
    return rc ? rc : dsc_accept_data(s, &out->data, err);
}

// --- data ------------------------------------------------------------------------------------

int dsc_accept_data(const dsc_accept_series *s, dsc_table *data, dsc_error *err)
{
    int rc = dsc_table_add_column(data, "pair", DSC_CELL_TEXT,
                                  "draft distribution to target distribution", err);
    if (!rc)
        rc = dsc_table_add_column(data, "k", DSC_CELL_REAL, "drafts per position", err);
    for (size_t r = 0; !rc && r < DSC_ACCEPT_RULES; r++)
        rc = dsc_table_add_column(data, rule[r].column, DSC_CELL_REAL, NULL, err);
    for (size_t r = 0; !rc && s->ranges && r < DSC_ACCEPT_RULES; r++) {
        rc = dsc_table_add_column(data, rule[r].low, DSC_CELL_REAL, NULL, err);
        if (!rc)
            rc = dsc_table_add_column(data, rule[r].high, DSC_CELL_REAL, NULL, err);
    }
    for (size_t i = 0; !rc && i < s->pairs * s->nk; i++) {
        dsc_cell cell[2 + 3 * DSC_ACCEPT_RULES] = {
            {.type = DSC_CELL_TEXT, .text = s->pair[i / s->nk]},
            {.type = DSC_CELL_REAL, .r = s->k[i % s->nk]},
        };
        bool any = false;
        for (size_t r = 0; r < DSC_ACCEPT_RULES; r++) {
            size_t at = dsc_accept_at(s, i / s->nk, r) + i % s->nk;
            dsc_cell *range = &cell[2 + DSC_ACCEPT_RULES + 2 * r];
            cell[2 + r] = (dsc_cell){.type = DSC_CELL_REAL, .r = s->value[at]};
            range[0] = (dsc_cell){.type = DSC_CELL_REAL, .r = s->low[at]};
            range[1] = (dsc_cell){.type = DSC_CELL_REAL, .r = s->high[at]};
            any = any || isfinite(s->value[at]) || isfinite(s->low[at]);
        }
        if (any)
            rc = dsc_table_add_row(data, cell, err);
    }
    return rc;
}
