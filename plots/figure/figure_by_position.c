// SPDX-License-Identifier: Apache-2.0
// Acceptance by depth: of the calls that drafted position j and accepted all before it, the share
// that accepted it too (the conditional acceptance rate, theory/block.h), with Wilson's 95 %
// interval (Wilson 1927), a line per method and rule. A draft accepted whole says nothing of the
// position behind its end. Dashed: the same for every depth, as i.i.d. acceptance has it.
#include "plots/draw/label.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double CUT = 0.05; // share of missing draft tokens that is worth a word
enum { LINES = 5, LEAST = 5 };  // lines; cases without which a share says nothing

typedef struct conditional_rates {
    dsc_selection selection;
    dsc_table lengths; // its rows with their draft lengths
    size_t row[LINES], index[LINES], lines, groups;
    size_t depth; // positions drawn
    double *x;    // [depth] 1, 2, ...
    // [lines][depth]: accepted / reached, its interval, the rate over all depths.
    double *rate, *low, *high, *iid, *reached;
    double cut[LINES]; // share of the draft tokens of full length that were not drafted
    char label[LINES][DSC_LINE_LABEL];
    dsc_key key[LINES];
} conditional_rates;

static void conditional_rates_fini(conditional_rates *h)
{
    free(h->x);
    free(h->rate);
    dsc_table_fini(&h->lengths);
    dsc_selection_fini(&h->selection);
}

static double number(const dsc_table *t, size_t row, const char *column)
{
    int c = dsc_table_find(t, column);
    return c < 0 ? NAN : dsc_table_real(t, row, (size_t)c);
}

// Element i of a list, or of the integer that a list of one element is read as; 0 behind its end.
static double element(const dsc_table *t, size_t row, int column, size_t i)
{
    const dsc_cell *c = dsc_table_at(t, row, (size_t)column);
    if (c->type == DSC_CELL_LIST)
        return (int64_t)i < c->i ? dsc_cell_element(c, (int64_t)i) : 0;
    return i || c->type != DSC_CELL_INT ? 0 : (double)c->i;
}

static size_t elements(const dsc_table *t, size_t row, int column)
{
    const dsc_cell *c = dsc_table_at(t, row, (size_t)column);
    return c->type == DSC_CELL_LIST ? (size_t)c->i : c->type == DSC_CELL_INT;
}

// --- which rows ----------------------------------------------------------------------------

static bool same_texts(const dsc_table *t, size_t a, size_t b)
{
    for (size_t c = 0; c < t->columns; c++)
        if (t->column[c].type == DSC_CELL_TEXT && dsc_is_parameter(t, c) &&
            !dsc_same_cell(dsc_table_at(t, a, c), dsc_table_at(t, b, c)))
            return false;
    return true;
}

static double merit(const dsc_table *t, size_t row)
{
    double v = number(t, row, "speedup");
    v = dsc_drawable(v) ? v : number(t, row, "block_efficiency");
    return dsc_drawable(v) ? v : -INFINITY;
}

// Of rows that differ in numbers only the one with the longest drafts, which sees every depth;
// then the faster one.
static bool is_better(const conditional_rates *h, size_t a, size_t b)
{
    const dsc_table *t = h->selection.table;
    double x = dsc_table_real(&h->lengths, a, 0), y = dsc_table_real(&h->lengths, b, 0);
    if (x != y && !(isnan(x) && isnan(y)))
        return x > y || isnan(y);
    return merit(t, h->selection.row[a]) > merit(t, h->selection.row[b]);
}

// One row of each combination of texts into first[]; returns how many.
static size_t represent(const conditional_rates *h, int column, size_t *first)
{
    const dsc_table *t = h->selection.table;
    size_t n = 0;
    for (size_t i = 0; i < h->selection.rows; i++) {
        size_t j = 0;
        if (elements(t, h->selection.row[i], column) < 2)
            continue; // nothing was ever accepted
        while (j < n && !same_texts(t, h->selection.row[first[j]], h->selection.row[i]))
            j++;
        if (j == n)
            first[n++] = i;
        else if (is_better(h, i, first[j]))
            first[j] = i;
    }
    return n;
}

// At most LINES of them, the fastest, in the table's order; and what to call them.
static int choose(conditional_rates *h, int column, dsc_error *err)
{
    const dsc_table *t = h->selection.table;
    size_t *first, skipped = 0;
    const char **skip = NULL;
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = err};
    int rc = dsc_new(&first, h->selection.rows, err);
    if (rc)
        return rc;
    h->groups = represent(h, column, first);
    for (size_t i = 0; i < h->groups; i++) {
        size_t faster = 0;
        for (size_t j = 0; j < h->groups; j++) {
            double x = merit(t, h->selection.row[first[j]]);
            double y = merit(t, h->selection.row[first[i]]);
            faster += x > y || (x == y && j < i);
        }
        if (faster < LINES) {
            h->row[h->lines] = h->selection.row[first[i]];
            h->index[h->lines++] = first[i];
        }
    }
    free(first);
    if (!h->lines)
        return dsc_fail(err, DSC_EUSAGE, "no draft token was accepted in any row");
    rc = dsc_new(&skip, t->columns + 1, err);
    for (size_t c = 0; c < t->columns && !rc; c++)
        if (t->column[c].type != DSC_CELL_TEXT)
            skip[skipped++] = t->column[c].name;
    for (size_t i = 0; i < h->lines && !rc; i++) {
        b.length = 0;
        dsc_put(&w, "%s", "");
        dsc_put_distinct(&w, t, h->row, h->lines, i, skip);
        if (!w.rc && !b.length)
            dsc_put_method(&w, t, h->row[i]);
        rc = w.rc;
        if (!rc)
            snprintf(h->label[i], DSC_LINE_LABEL, "%s", b.data);
        h->key[i] = (dsc_key){h->label[i], (int)i};
    }
    dsc_buffer_fini(&b);
    free(skip);
    return rc;
}

// --- numbers -------------------------------------------------------------------------------

// Wilson's interval of a share of n cases at 95 %.
static void wilson(double share, double n, double *low, double *high)
{
    const double z = 1.959963984540054, zz = z * z / n;
    double middle = (share + zz / 2) / (1 + zz);
    double half = sqrt(share * (1 - share) * zz + zz * zz / 4) / (1 + zz);
    *low = fmax(0, middle - half);
    *high = fmin(1, middle + half);
}

// Calls that drafted position j + 1 and accepted the j before it. Where the table does not say:
// all that accepted j, and of position 1 all that had a draft.
static double reached_at(const conditional_rates *h, size_t row, int column, size_t j,
                         double at_least)
{
    const dsc_table *t = h->selection.table;
    int reached = dsc_table_find(t, "conditional_acceptance_reached");
    double drafts = number(t, row, "num_drafts");
    if (reached >= 0 && elements(t, row, reached) + 1 >= elements(t, row, column))
        return element(t, row, reached, j);
    return !j && drafts > 0 && drafts < at_least ? drafts : at_least;
}

// The positions of a row: those that a draft has, as far as any was accepted.
static size_t depth_of(const conditional_rates *h, size_t line, int column)
{
    double length = dsc_table_real(&h->lengths, h->index[line], 0);
    size_t seen = elements(h->selection.table, h->row[line], column) - 1;
    return length >= 1 && length < (double)seen ? (size_t)length : seen;
}

static int fill_line(conditional_rates *h, size_t line, int column, dsc_error *err)
{
    const dsc_table *t = h->selection.table;
    size_t row = h->row[line], n = elements(t, row, column), depth = depth_of(h, line, column);
    double at_least = 0, accepted = 0, cases = 0;
    for (size_t m = 0; m < n; m++) {
        double x = element(t, row, column, m);
        if (!(x >= 0 && x < 1e300))
            return dsc_fail(err, DSC_EUSAGE, "row %zu: a count of %g", row + 1, x);
        at_least += x;
    }
    for (size_t j = 0; j < depth; j++) {
        double reached = reached_at(h, row, column, j, at_least);
        at_least -= element(t, row, column, j);
        size_t at = line * h->depth + j;
        accepted += fmin(at_least, reached);
        cases += reached;
        if (!(reached >= LEAST))
            continue;
        h->reached[at] = reached;
        h->rate[at] = fmax(0, fmin(1, at_least / reached));
        wilson(h->rate[at], reached, &h->low[at], &h->high[at]);
    }
    for (size_t j = 0; j < depth; j++)
        if (!isnan(h->rate[line * h->depth + j]))
            h->iid[line * h->depth + j] = accepted / cases;
    double length = dsc_table_real(&h->lengths, h->index[line], 0);
    double full = length * number(t, row, "num_drafts");
    h->cut[line] = 1 - number(t, row, "num_draft_tokens") / full;
    return DSC_OK;
}

static int fill(conditional_rates *h, int column, dsc_error *err)
{
    for (size_t i = 0; i < h->lines; i++) {
        size_t depth = depth_of(h, i, column);
        h->depth = depth > h->depth ? depth : h->depth;
    }
    size_t count = h->lines * h->depth;
    int rc = dsc_new(&h->x, h->depth, err);
    if (!rc)
        rc = dsc_new(&h->rate, 5 * count, err);
    if (rc)
        return rc;
    h->low = h->rate + count;
    h->high = h->low + count;
    h->iid = h->high + count;
    h->reached = h->iid + count;
    for (size_t j = 0; j < h->depth; j++)
        h->x[j] = (double)j + 1;
    for (size_t i = 0; i < 5 * count; i++)
        h->rate[i] = NAN;
    for (size_t i = 0; i < h->lines && !rc; i++)
        rc = fill_line(h, i, column, err);
    if (!rc && dsc_best_of(h->rate, count, false) == SIZE_MAX)
        rc = dsc_fail(err, DSC_EUSAGE, "no position was reached %d times", LEAST);
    return rc;
}

static int conditional_rates_init(conditional_rates *h, const dsc_table *t,
                                  const dsc_figure_options *o, dsc_error *err)
{
    int column;
    int rc = dsc_need_column(t, "acceptance-by-position", "accept_histogram", &column, err);
    if (!rc && t->rows && t->column[column].type != DSC_CELL_LIST &&
        t->column[column].type != DSC_CELL_INT)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "conditional acceptance rate: column 'accept_histogram' holds no lists");
    if (!rc)
        rc = dsc_select(&h->selection, t, o, NULL, err);
    if (!rc)
        rc = dsc_length_table(&h->lengths, &h->selection, o->x, err);
    if (!rc)
        rc = choose(h, column, err);
    return rc ? rc : fill(h, column, err);
}

// --- words ---------------------------------------------------------------------------------

// "chain: 0.71 at depth 1 (0.70 to 0.72), 0.83 at depth 5 (0.80 to 0.85), i.i.d. 0.75"
static void put_line(dsc_writer *w, const conditional_rates *h, size_t line)
{
    const double *rate = h->rate + line * h->depth;
    size_t last = h->depth;
    while (last && isnan(rate[last - 1]))
        last--;
    if (!last)
        return;
    dsc_put(w, "%s%s", h->label[line], *h->label[line] ? ": " : "");
    for (int i = 0; i < (last > 1 ? 2 : 1); i++) {
        size_t j = i ? last - 1 : 0, at = line * h->depth + j;
        dsc_put(w, "%s%.3f at depth %zu (%.3f to %.3f)", i ? ", " : "", rate[j], j + 1, h->low[at],
                h->high[at]);
    }
    dsc_put(w, ", the same at every depth %.3f", h->iid[line * h->depth + last - 1]);
    if (h->cut[line] > CUT) // of no meaning where a draft is more than one sequence
        dsc_put(w,
                "; %.0f %% of the draft tokens were not drafted, what they end counts as "
                "rejected",
                100 * h->cut[line]);
}

static int put_finding(const conditional_rates *h, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w,
            "Line chart: acceptance by depth in the draft (1 to %zu), given that all before it "
            "was accepted. ",
            h->depth);
    for (size_t i = 0; i < h->lines; i++) {
        dsc_put(&w, "%s", i ? "; " : "");
        put_line(&w, h, i);
    }
    dsc_put(&w, ". Intervals (95 %%, Wilson) take the calls for independent.");
    return w.rc;
}

static int put_data(const conditional_rates *h, dsc_table *data, dsc_error *err)
{
    static const char *const name[] = {"depth", "reached", "acceptance", "low", "high", "iid"};
    int rc = dsc_table_add_column(data, "line", DSC_CELL_TEXT, "what tells the lines apart", err);
    for (size_t i = 0; !rc && i < sizeof name / sizeof *name; i++)
        rc = dsc_table_add_column(data, name[i], DSC_CELL_REAL, NULL, err);
    for (size_t i = 0; !rc && i < h->lines * h->depth; i++) {
        const char *line = h->label[i / h->depth];
        const double v[] = {h->x[i % h->depth], h->reached[i], h->rate[i],
                            h->low[i],          h->high[i],    h->iid[i]};
        dsc_cell cell[7] = {{.type = DSC_CELL_TEXT, .text = *line ? line : "all"}};
        for (size_t j = 0; j < 6; j++)
            cell[1 + j] = (dsc_cell){.type = DSC_CELL_REAL, .r = v[j]};
        if (!isnan(h->rate[i]))
            rc = dsc_table_add_row(data, cell, err);
    }
    return rc;
}

static int compose(const conditional_rates *h, const dsc_figure_options *o, const char *terminal,
                   dsc_drawing *out, dsc_error *err)
{
    dsc_canvas canvas;
    bool narrow = o->width > 0 && o->width < 520, cut = false;
    char subtitle[200];
    int rc = dsc_canvas_init(&canvas, terminal, o, 720,
                             (narrow ? 420 : 440) + 10 * (double)h->lines, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < h->lines; i++)
        cut = cut || h->cut[i] > CUT;
    int used = snprintf(subtitle, sizeof subtitle, "bands: 95 %% intervals%s",
                        cut ? "; where drafts end early, the acceptance is at least this" : "");
    if (h->lines < h->groups)
        snprintf(subtitle + used, sizeof subtitle - (size_t)used, "; %zu of %zu lines drawn",
                 h->lines, h->groups);
    dsc_panel panel = {"", "acceptance, given that all before it was accepted", h->rate, 0};
    dsc_panels p = {
        .title = o->title ? o->title : "Acceptance by depth in the draft",
        .subtitle = subtitle,
        .x_label = "position in the draft",
        .x = h->x,
        .nx = h->depth,
        .key = h->key,
        .lines = h->lines,
        .panel = &panel,
        .panels = 1,
        .columns = 1,
        .low = h->low,
        .high = h->high,
        .interval = true,
        .predicted = h->iid,
        .predicted_label = "the same at every depth (i.i.d.)",
        .best_panel = SIZE_MAX,
    };
    dsc_writer w = {.to = &out->script, .err = err};
    dsc_put_panels(&w, &canvas, "by_position", &p);
    rc = w.rc ? w.rc : put_finding(h, &out->finding, err);
    return rc ? rc : put_data(h, &out->data, err);
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    conditional_rates h = {.lines = 0};
    int rc = conditional_rates_init(&h, t, o, err);
    if (!rc)
        rc = compose(&h, o, terminal, out, err);
    conditional_rates_fini(&h);
    return rc;
}

// Drafts of two tokens at least: one depth is no curve.
static bool fits(const dsc_table *t)
{
    int column = dsc_table_find(t, "accept_histogram");
    for (size_t i = 0; i < t->rows && column >= 0; i++)
        if (elements(t, i, column) > 2)
            return true;
    return false;
}

const dsc_figure_type dsc_figure_by_position = {
    .name = "acceptance-by-position",
    .summary = "acceptance by depth in the draft with 95 % intervals, and the i.i.d. line",
    .needs = "accept_histogram",
    .fits = fits,
    .script = script,
};
