// SPDX-License-Identifier: Apache-2.0
// Draws the share of target calls that accepted 0, 1, 2, ... draft tokens for a few configurations:
// the fastest one and those that differ from it in n alone, or the fastest few in a table without
// draft lengths and n.
#include "plots/draw/panel.h"
#include "plots/draw/select.h"
#include "plots/figure/figures.h"

#include <math.h>

enum { LINES = 4 }; // more lines cross too often to be readable

typedef struct chosen {
    size_t row[LINES]; // table rows, the best first
    size_t rows;
    bool by_n;     // the rows differ in n only
    double length; // if by_n, of all of them; `group` is what else they share
    const char *group;
    const char *name[LINES]; // "n = 3"
    double mean[LINES];
    dsc_key key[LINES], box[LINES]; // the names with the means; as boxes
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
static void choose_by_n(dsc_plot *p, chosen *ch, const dsc_selection *s, size_t best, int k, int n)
{
    dsc_groups g = dsc_group(p, s, k, n);
    dsc_plot_grid grid = dsc_grid(p, s, &g, k, n);
    size_t *there = dsc_plot_new(p, size_t, grid.ny), count = 0, ix = 0, at = 0, rank[LINES];
    if (p->rc)
        return;
    while (grid.x[ix] != ch->length)
        ix++;
    for (size_t j = 0; j < grid.ny; j++) {
        size_t row = dsc_plot_grid_row(&grid, g.of[best], ix, j);
        if (row == s->row[best])
            at = count;
        if (row != SIZE_MAX)
            there[count++] = j;
    }
    ch->rows = dsc_thin(count, LINES, at, rank);
    for (size_t i = 0; i < ch->rows; i++) {
        ch->name[i] = dsc_text(p, "n = %g", grid.y[there[rank[i]]]);
        ch->row[i] = dsc_plot_grid_row(&grid, g.of[best], ix, there[rank[i]]);
    }
    ch->group = g.label[g.of[best]];
    ch->by_n = true;
}

static void choose_best_few(dsc_plot *p, chosen *ch, const dsc_selection *s, bool *taken)
{
    dsc_groups g = dsc_group(p, s, -1, -1);
    for (size_t i; !p->rc && ch->rows < LINES && (i = best_left(s, taken)) != SIZE_MAX;) {
        ch->name[ch->rows] = g.label[g.of[i]];
        ch->row[ch->rows++] = s->row[i];
        for (size_t j = 0; j < s->rows; j++) // one row of each group
            taken[j] = taken[j] || g.of[j] == g.of[i];
    }
}

// Takes all rows but those of the first batch size: acceptance does not depend on it.
static void take_other_batches(const dsc_selection *s, bool *taken)
{
    int batch = dsc_table_find(s->table, "batch");
    double first = batch < 0 ? 0 : dsc_table_real(s->table, s->row[0], (size_t)batch);
    for (size_t i = 0; i < s->rows && batch >= 0; i++)
        taken[i] = taken[i] || dsc_table_real(s->table, s->row[i], (size_t)batch) != first;
}

static void choose(dsc_plot *p, chosen *ch, const dsc_selection *s, int column)
{
    const dsc_table *t = s->table;
    int k = dsc_table_find(t, "num_speculative_tokens"), n = dsc_table_find(t, "n");
    bool *taken = dsc_plot_new(p, bool, s->rows);
    dsc_cell count;
    if (p->rc)
        return;
    for (size_t i = 0; i < s->rows; i++)
        taken[i] = !counts_of(t, s->row[i], column, &count);
    take_other_batches(s, taken);
    size_t best = best_left(s, taken), row = best == SIZE_MAX ? SIZE_MAX : s->row[best];
    ch->length = dsc_value_at(t, row, k);
    if (row == SIZE_MAX)
        dsc_refuse(p, "column 'accept_histogram' has no counts to draw");
    else if (!isnan(ch->length) && !isnan(dsc_value_at(t, row, n)))
        choose_by_n(p, ch, s, best, k, n);
    else
        choose_best_few(p, ch, s, taken);
}

// Computes share[rows][*bins] in percent, NaN beyond a row's own list, and the means.
static double *make_shares(dsc_plot *p, chosen *ch, int column, size_t *bins)
{
    dsc_cell count;
    size_t kept = 0;
    *bins = 0;
    for (size_t i = 0; i < ch->rows; i++) // a row chosen for its n may be empty
        if (counts_of(p->table, ch->row[i], column, &count)) {
            *bins = (size_t)count.i > *bins ? (size_t)count.i : *bins;
            ch->name[kept] = ch->name[i];
            ch->row[kept++] = ch->row[i];
        }
    ch->rows = kept;
    double *out = dsc_plot_numbers(p, kept * *bins);
    for (size_t i = 0; out && i < kept; i++) {
        counts_of(p->table, ch->row[i], column, &count);
        double calls = 0, tokens = 0;
        for (int64_t m = 0; m < count.i; m++) {
            calls += dsc_cell_element(&count, m);
            tokens += (double)m * dsc_cell_element(&count, m);
        }
        for (int64_t m = 0; m < count.i; m++)
            out[i * *bins + (size_t)m] = 100 * dsc_cell_element(&count, m) / calls;
        ch->mean[i] = tokens / calls;
        ch->key[i] =
            (dsc_key){dsc_text(p, "%s%s%.2f", ch->name[i], *ch->name[i] ? ": " : "", ch->mean[i]),
                      (ch->by_n ? dsc_ramp_style(i, kept) : (int)i)};
        ch->box[i] = (dsc_key){ch->key[i].label, ch->key[i].style + DSC_KEY_BOX};
    }
    return out;
}

static void put_data(dsc_plot *p, const chosen *ch, const double *share, size_t bins)
{
    dsc_data_text(p, "configuration", "parameters in which the rows differ");
    dsc_data_number(p, "accepted", "accepted draft tokens, bonus excluded");
    dsc_data_number(p, "share_percent", "percentage of target calls");
    for (size_t i = 0; i < ch->rows * bins; i++)
        if (isfinite(share[i]))
            dsc_data_row(p, &ch->name[i / bins], (double[]){(double)(i % bins), share[i]});
}

static void put_finding(dsc_writer *w, const chosen *ch, const double *share, size_t bins)
{
    dsc_put(w,
            "Bar chart: share of target calls by accepted draft tokens (0 to %zu, bonus "
            "excluded)",
            bins - 1);
    if (ch->by_n)
        dsc_put(w, " at draft length %g", ch->length);
    for (size_t i = 0; i < ch->rows; i++)
        dsc_put(w, "%s %.2f%s%s%s", i ? ";" : ". The mean is", ch->mean[i],
                i ? "" : " tokens per call", *ch->name[i] ? " with " : "", ch->name[i]);
    dsc_put(w, ". No token is accepted in %.0f %% of the calls", share[0]);
    dsc_put(w, "%s%s.", ch->rows > 1 ? " with " : "", ch->rows > 1 ? ch->name[0] : "");
}

static void draw(dsc_plot *plot)
{
    chosen ch = {.rows = 0};
    size_t bins;
    int column = dsc_need(plot, "accept_histogram", DSC_LISTS);
    dsc_selection s = dsc_select(plot, plot->table, plot->options, NULL);
    choose(plot, &ch, &s, column);
    double *share = make_shares(plot, &ch, column, &bins), *x = dsc_plot_numbers(plot, bins);
    if (plot->rc)
        return;
    double height = dsc_is_narrow(plot) ? 420 : 460;
    if (!ch.by_n)
        height += 18 * (double)ch.rows; // long labels take a line each
    for (size_t m = 0; m < bins; m++)
        x[m] = (double)m;
    dsc_panel panel = {"", "share of target calls (%)", share, 0};
    dsc_panels p = {
        .title = "Accepted draft tokens per target call",
        .subtitle = ch.by_n ? dsc_text(plot, "at draft length %g%s%s; ticks at the top: means",
                                       ch.length, *ch.group ? ", " : "", ch.group)
                            : "ticks at the top: means",
        .x_label = "accepted draft tokens (bonus excluded)",
        .key_title = "mean:",
        .x = x,
        .nx = bins,
        .key = ch.key,
        .lines = ch.rows,
        .panel = &panel,
        .panels = 1,
        .bars = true,
        .legend = ch.box,
        .legends = ch.rows,
        .mark = ch.mean,
    };
    dsc_draw_panels(plot, &p, "accept_histogram", 720, height);
    put_finding(&plot->finding, &ch, share, bins);
    put_data(plot, &ch, share, bins);
}

const dsc_figure_type dsc_figure_accept_histogram = {
    .name = "accept-histogram",
    .summary =
        "share of target calls by number of accepted draft tokens, for the fastest configurations",
    .needs = "accept_histogram",
    .draw = draw,
};
