// SPDX-License-Identifier: Apache-2.0
// Draws the share of target calls that accepted 0, 1, 2, ... draft tokens for a few configurations:
// the fastest one and those that differ from it in n alone, or the fastest few in a table without
// draft lengths and n.
#include "plots/draw/data.h"
#include "plots/draw/panel.h"
#include "plots/draw/select.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 4 }; // more lines cross too often to be readable

typedef struct chosen {
    size_t row[LINES]; // table rows, the best first
    size_t rows;
    bool by_n;     // the rows differ in n only
    double length; // if by_n, of all of them; `group` is what else they share
    char group[160];
    char name[LINES][160], label[LINES][200]; // "n = 3"; with its mean, for the key
    double mean[LINES];
    dsc_key key[LINES];
} chosen;

// Reads the counts of row r; returns whether there is anything to draw.
static bool counts_of(const dsc_table *t, size_t r, int column, dsc_cell *count)
{
    double total = 0;
    *count = dsc_list_at(t, r, column);
    for (int64_t i = 0; i < count->i; i++) {
        double x = dsc_cell_element(count, i);
        if (x < 0)
            return false;
        total += x;
    }
    return total > 0;
}

// The index into the selection of the best row not yet taken; SIZE_MAX if none is left.
static size_t best_left(const dsc_selection *s, const bool *taken)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->rows; i++)
        if (!taken[i] && (best == SIZE_MAX ||
                          dsc_merit_at(s->table, s->row[i]) > dsc_merit_at(s->table, s->row[best])))
            best = i;
    return best;
}

// Chooses every n at the best row's draft length, in its group, thinned to LINES.
static int choose_by_n(chosen *ch, const dsc_plot_grid *grid, const dsc_groups *g, size_t group,
                       size_t best_row, double length, dsc_error *err)
{
    size_t *there, count = 0, ix = 0, best = 0, rank[LINES];
    int rc = dsc_new(&there, grid->ny, err);
    if (rc)
        return rc;
    while (grid->x[ix] != length)
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
    ch->length = length;
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

// Takes all rows but those of the first batch size: acceptance does not depend on it.
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
    if ((rc = dsc_new(&taken, s->rows, err)))
        return rc;
    for (size_t i = 0; i < s->rows; i++)
        taken[i] = !counts_of(t, s->row[i], column, &count);
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

// Computes share[rows][*bins] in percent, NaN beyond a row's own list, and the means. *out is owned
// by the caller.
static int make_shares(chosen *ch, const dsc_table *t, int column, double **out, size_t *bins,
                       dsc_error *err)
{
    dsc_cell count;
    size_t kept = 0;
    *bins = 0;
    for (size_t i = 0; i < ch->rows; i++) // a row chosen for its n may be empty
        if (counts_of(t, ch->row[i], column, &count)) {
            *bins = (size_t)count.i > *bins ? (size_t)count.i : *bins;
            memmove(ch->name[kept], ch->name[i], sizeof ch->name[0]);
            ch->row[kept++] = ch->row[i];
        }
    ch->rows = kept;
    int rc = dsc_new(out, kept * *bins, err);
    for (size_t i = 0; !rc && i < kept; i++) {
        counts_of(t, ch->row[i], column, &count);
        double calls = 0, tokens = 0;
        size_t n = (size_t)count.i;
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
    static const dsc_column column[] = {
        {"configuration", DSC_CELL_TEXT, "parameters in which the rows differ"},
        {"accepted", DSC_CELL_REAL, "accepted draft tokens, bonus excluded"},
        {"share_percent", DSC_CELL_REAL, "percentage of target calls"},
    };
    int rc = dsc_data_columns(data, column, 3, err);
    for (size_t i = 0; !rc && i < ch->rows * bins; i++)
        if (isfinite(share[i]))
            rc = dsc_data_row(data, ch->name[i / bins], (double[]){(double)(i % bins), share[i]}, 2,
                              err);
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
        dsc_put(&w, " at draft length %g", ch->length);
    for (size_t i = 0; i < ch->rows; i++)
        dsc_put(&w, "%s %.2f%s%s%s", i ? ";" : ". The mean is", ch->mean[i],
                i ? "" : " tokens per call", *ch->name[i] ? " with " : "", ch->name[i]);
    dsc_put(&w, ". No token is accepted in %.0f %% of the calls", share[0]);
    dsc_put(&w, "%s%s.", ch->rows > 1 ? " with " : "", ch->rows > 1 ? ch->name[0] : "");
    return w.rc;
}

// Whether the shares span so much that a linear axis would show only the first one.
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
    double *x, height = dsc_is_narrow(o, terminal) ? 420 : 460;
    if (!ch->by_n)
        height += 18 * (double)ch->rows; // long labels take a line each
    int rc = dsc_new(&x, bins, err);
    if (rc)
        return rc;
    for (size_t m = 0; m < bins; m++)
        x[m] = (double)m;
    bool log_y = needs_log(share, ch->rows * bins);
    char subtitle[256] = "ticks at the top: means";
    if (ch->by_n)
        snprintf(subtitle, sizeof subtitle, "at draft length %g%s%s; ticks at the top: means",
                 ch->length, ch->group[0] ? ", " : "", ch->group);
    dsc_panel panel = {
        "", log_y ? "share of target calls (%, log scale)" : "share of target calls (%)", share, 0};
    dsc_panels p = {
        .title = "Accepted draft tokens per target call",
        .subtitle = subtitle,
        .x_label = "accepted draft tokens (bonus excluded)",
        .key_title = "mean:",
        .x = x,
        .nx = bins,
        .key = ch->key,
        .lines = ch->rows,
        .panel = &panel,
        .panels = 1,
        .log_y = log_y,
        .mark = ch->mean,
    };
    rc = dsc_draw_panels(&p, "accept_histogram", o, terminal, 720, height, &out->script, err);
    free(x);
    return rc ? rc : put_finding(ch, share, bins, &out->finding, err);
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    int column;
    dsc_selection s = {0};
    chosen ch = {.rows = 0};
    double *share = NULL;
    size_t bins = 0;
    int rc = dsc_need_list(t, "accept-histogram", "accept_histogram", &column, err);
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
    .summary =
        "share of target calls by number of accepted draft tokens, for the fastest configurations",
    .needs = "accept_histogram",
    .script = script,
};
