// SPDX-License-Identifier: Apache-2.0
// The share of target calls that accepted 0, 1, 2, ... draft tokens, for a few configurations:
// the fastest one, and those that differ from it in n alone (or the fastest few, in a table
// without k and n).
#include "plots/draw/panel.h"
#include "plots/draw/select.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 4 }; // more cross too often to be followed

typedef struct chosen {
    size_t row[LINES]; // table rows, the best first
    size_t rows;
    bool by_n; // the rows differ in n only
    double k;  // of all of them when by_n, and what else they share
    char group[160];
    char name[LINES][160], label[LINES][200]; // "n = 3"; and its mean, for the key
    double mean[LINES];
    dsc_key key[LINES];
} chosen;

// Counts of row r: a list, or the integer that a list of one element is read as. False when there
// is nothing to draw in it.
static bool counts_of(const dsc_table *t, size_t r, int column, dsc_cell *count, size_t *n)
{
    const dsc_cell *c = dsc_table_at(t, r, (size_t)column);
    *count = c->type == DSC_CELL_LIST ? *c : (dsc_cell){.type = DSC_CELL_LIST, .list = &c->i};
    *n = c->type == DSC_CELL_LIST ? (size_t)c->i : 1;
    double total = 0;
    for (size_t i = 0; i < *n; i++) {
        double x = dsc_cell_element(count, (int64_t)i);
        if (x < 0)
            return false;
        total += x;
    }
    return total > 0;
}

// What makes a row the better: its speed-up, or its block efficiency where nothing was priced.
static double merit(const dsc_table *t, size_t row)
{
    static const char *const column[] = {"speedup", "block_efficiency"};
    for (size_t i = 0; i < 2; i++) {
        int c = dsc_table_find(t, column[i]);
        if (c >= 0 && isfinite(dsc_table_real(t, row, (size_t)c)))
            return dsc_table_real(t, row, (size_t)c);
    }
    return -INFINITY;
}

// Index into the selection of the best row not yet taken; SIZE_MAX when none is left.
static size_t best_left(const dsc_selection *s, const bool *taken)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->rows; i++)
        if (!taken[i] &&
            (best == SIZE_MAX || merit(s->table, s->row[i]) > merit(s->table, s->row[best])))
            best = i;
    return best;
}

// Every n at the best row's k, in its group, thinned to what can be told apart.
static int choose_by_n(chosen *ch, const dsc_plot_grid *grid, const dsc_groups *g, size_t group,
                       size_t best_row, double k, dsc_error *err)
{
    size_t *there, count = 0, ix = 0, best = 0, rank[LINES];
    int rc = dsc_new(&there, grid->ny, err);
    if (rc)
        return rc;
    while (grid->x[ix] != k)
        ix++;
    for (size_t j = 0; j < grid->ny; j++) {
        size_t row = dsc_plot_grid_row(grid, group, ix, j);
        if (row == best_row)
            best = count;
        if (row != SIZE_MAX)
            there[count++] = j;
    }
    ch->rows = dsc_thin(count, LINES, best, rank);
    for (size_t i = 0; i < ch->rows; i++) {
        snprintf(ch->name[i], sizeof ch->name[0], "n = %g", grid->y[there[rank[i]]]);
        ch->row[i] = dsc_plot_grid_row(grid, group, ix, there[rank[i]]);
    }
    snprintf(ch->group, sizeof ch->group, "%.150s", g->label[group]);
    ch->by_n = true;
    ch->k = k;
    free(there);
    return DSC_OK;
}

static int choose_best_few(chosen *ch, const dsc_selection *s, bool *taken, dsc_error *err)
{
    dsc_groups g;
    int rc = dsc_group(&g, s, (int[]){-1, -1}, err);
    if (rc)
        return rc;
    for (size_t i; ch->rows < LINES && (i = best_left(s, taken)) != SIZE_MAX;) {
        snprintf(ch->name[ch->rows], sizeof ch->name[0], "%.150s", g.label[g.of[i]]);
        ch->row[ch->rows++] = s->row[i];
        for (size_t j = 0; j < s->rows; j++) // one row of each group
            taken[j] = taken[j] || g.of[j] == g.of[i];
    }
    dsc_groups_fini(&g);
    return DSC_OK;
}

// Rows that differ in the batch size accept the same: all but the first size of each are taken.
static void take_other_batches(const dsc_selection *s, bool *taken)
{
    int batch = dsc_table_find(s->table, "batch");
    double first = batch < 0 ? 0 : dsc_table_real(s->table, s->row[0], (size_t)batch);
    for (size_t i = 0; i < s->rows && batch >= 0; i++)
        taken[i] = taken[i] || dsc_table_real(s->table, s->row[i], (size_t)batch) != first;
}

static int choose(chosen *ch, const dsc_selection *s, int column, dsc_error *err)
{
    const dsc_table *t = s->table;
    int k = dsc_table_find(t, "num_speculative_tokens"), n = dsc_table_find(t, "n"), rc;
    bool *taken;
    dsc_cell count;
    size_t length;
    if ((rc = dsc_new(&taken, s->rows, err)))
        return rc;
    for (size_t i = 0; i < s->rows; i++)
        taken[i] = !counts_of(t, s->row[i], column, &count, &length);
    take_other_batches(s, taken);
    size_t best = best_left(s, taken);
    double at = k < 0 || best == SIZE_MAX ? NAN : dsc_table_real(t, s->row[best], (size_t)k);
    if (best == SIZE_MAX) {
        rc = dsc_fail(err, DSC_EUSAGE, "column 'accept_histogram' has no counts to draw");
    } else if (n >= 0 && dsc_drawable(at) &&
               dsc_drawable(dsc_table_real(t, s->row[best], (size_t)n))) {
        dsc_groups g;
        dsc_plot_grid grid;
        rc = dsc_group(&g, s, (int[]){k, n}, err);
        if (!rc && !(rc = dsc_plot_grid_init(&grid, s, &g, k, n, err))) {
            rc = choose_by_n(ch, &grid, &g, g.of[best], s->row[best], at, err);
            dsc_plot_grid_fini(&grid);
        }
        dsc_groups_fini(&g);
    } else {
        rc = choose_best_few(ch, s, taken, err);
    }
    free(taken);
    return rc;
}

// share[rows][*bins] in per cent, NaN beyond a row's own list; the means into ch. *out owned by
// the caller.
static int make_shares(chosen *ch, const dsc_table *t, int column, double **out, size_t *bins,
                       dsc_error *err)
{
    dsc_cell count;
    size_t n, kept = 0;
    *bins = 0;
    for (size_t i = 0; i < ch->rows; i++) // a row chosen for its n may be empty
        if (counts_of(t, ch->row[i], column, &count, &n)) {
            *bins = n > *bins ? n : *bins;
            memmove(ch->name[kept], ch->name[i], sizeof ch->name[0]);
            ch->row[kept++] = ch->row[i];
        }
    ch->rows = kept;
    int rc = dsc_new(out, kept * *bins, err);
    for (size_t i = 0; !rc && i < kept; i++) {
        counts_of(t, ch->row[i], column, &count, &n);
        double calls = 0, tokens = 0;
        for (size_t m = 0; m < n; m++) {
            calls += dsc_cell_element(&count, (int64_t)m);
            tokens += (double)m * dsc_cell_element(&count, (int64_t)m);
        }
        for (size_t m = 0; m < *bins; m++)
            (*out)[i * *bins + m] =
                m < n ? 100 * dsc_cell_element(&count, (int64_t)m) / calls : NAN;
        ch->mean[i] = tokens / calls;
        snprintf(ch->label[i], sizeof ch->label[0], "%s%s%.2f", ch->name[i],
                 ch->name[i][0] ? ": " : "", ch->mean[i]);
        ch->key[i] = (dsc_key){ch->label[i], (int)i};
    }
    return rc;
}

static int put_data(const chosen *ch, const double *share, size_t bins, dsc_table *data,
                    dsc_error *err)
{
    int rc = dsc_table_add_column(data, "configuration", DSC_CELL_TEXT, "what tells the rows apart",
                                  err);
    if (!rc)
        rc = dsc_table_add_column(data, "accepted", DSC_CELL_INT, "draft tokens, bonus excluded",
                                  err);
    if (!rc)
        rc = dsc_table_add_column(data, "share_percent", DSC_CELL_REAL, "of target calls", err);
    for (size_t i = 0; !rc && i < ch->rows * bins; i++) {
        dsc_cell cell[3] = {{.type = DSC_CELL_TEXT, .text = ch->name[i / bins]},
                            {.type = DSC_CELL_INT, .i = (int64_t)(i % bins)},
                            {.type = DSC_CELL_REAL, .r = share[i]}};
        if (isfinite(share[i]))
            rc = dsc_table_add_row(data, cell, err);
    }
    return rc;
}

static int put_finding(const chosen *ch, const double *share, size_t bins, dsc_buffer *to,
                       dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w,
            "Line chart: share of target calls by accepted draft tokens (0 to %zu, bonus "
            "excluded)",
            bins - 1);
    if (ch->by_n)
        dsc_put(&w, " at k = %g", ch->k);
    for (size_t i = 0; i < ch->rows; i++)
        dsc_put(&w, "%s mean %s%s", i ? ";" : ":", ch->label[i], i ? "" : " tokens per call");
    dsc_put(&w, ". None is accepted in %.0f %% of the calls", share[0]);
    dsc_put(&w, "%s%s.", ch->rows > 1 ? " of " : "", ch->rows > 1 ? ch->name[0] : "");
    return w.rc;
}

// Whether the shares span so much that a linear axis would show the first one only.
static bool needs_log(const double *share, size_t count)
{
    double lo = INFINITY, hi = 0;
    for (size_t i = 0; i < count; i++)
        if (share[i] > 0) { // false for NaN
            lo = fmin(lo, share[i]);
            hi = fmax(hi, share[i]);
        }
    return hi > 50 * lo;
}

static int compose(const chosen *ch, const double *share, size_t bins, const dsc_figure_options *o,
                   const char *terminal, dsc_drawing *out, dsc_error *err)
{
    dsc_canvas canvas;
    bool narrow = o->width > 0 && o->width < 520;
    double *x, extra = ch->by_n ? 0 : 18 * (double)ch->rows; // long labels take a line each
    int rc = dsc_canvas_init(&canvas, terminal, o, 720, (narrow ? 420 : 460) + extra, err);
    if (!rc)
        rc = dsc_new(&x, bins, err);
    if (rc)
        return rc;
    for (size_t m = 0; m < bins; m++)
        x[m] = (double)m;
    bool log_y = needs_log(share, ch->rows * bins);
    char subtitle[256] = "ticks at the top: means";
    if (ch->by_n)
        snprintf(subtitle, sizeof subtitle, "at k = %g%s%s; ticks at the top: means", ch->k,
                 ch->group[0] ? ", " : "", ch->group);
    dsc_panel panel = {
        "", log_y ? "share of target calls (%, log scale)" : "share of target calls (%)", share, 0};
    dsc_panels p = {
        .title = o->title ? o->title : "Accepted draft tokens per target call",
        .subtitle = subtitle,
        .x_label = "accepted draft tokens (bonus excluded)",
        .key_title = "mean of",
        .x = x,
        .nx = bins,
        .key = ch->key,
        .lines = ch->rows,
        .panel = &panel,
        .panels = 1,
        .columns = 1,
        .log_y = log_y,
        .mark = ch->mean,
        .best_panel = SIZE_MAX,
    };
    dsc_writer w = {.to = &out->script, .err = err};
    dsc_put_panels(&w, &canvas, "accept_histogram", &p);
    free(x);
    return w.rc ? w.rc : put_finding(ch, share, bins, &out->finding, err);
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    int column;
    dsc_selection s = {0};
    chosen ch = {.rows = 0};
    double *share = NULL;
    size_t bins = 0;
    int rc = dsc_need_column(t, "accept-histogram", "accept_histogram", &column, err);
    if (!rc && t->rows && t->column[column].type != DSC_CELL_LIST &&
        t->column[column].type != DSC_CELL_INT)
        rc =
            dsc_fail(err, DSC_EUSAGE, "accept-histogram: column 'accept_histogram' holds no lists");
    if (!rc)
        rc = dsc_select(&s, t, o, NULL, err);
    if (!rc)
        rc = choose(&ch, &s, column, err);
    if (!rc)
        rc = make_shares(&ch, t, column, &share, &bins, err);
    if (!rc)
        rc = compose(&ch, share, bins, o, terminal, out, err);
    if (!rc)
        rc = put_data(&ch, share, bins, &out->data, err);
    free(share);
    dsc_selection_fini(&s);
    return rc;
}

const dsc_figure_type dsc_figure_accept_histogram = {
    .name = "accept-histogram",
    .summary = "share of target calls by number of accepted draft tokens, the fastest rows",
    .needs = "accept_histogram",
    .script = script,
};
