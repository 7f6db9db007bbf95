// SPDX-License-Identifier: Apache-2.0
// Draws the conditional acceptance rate by position in the draft: among the calls that drafted
// position j and accepted every earlier one, the share that accepted it (theory/block.h), with
// Wilson's 95 % interval (Wilson 1927), one line per method and rule. A draft that is accepted
// completely contains no information on the position after its end. Dashed: the constant rate of
// i.i.d. acceptance.
#include "plots/draw/label.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/figures.h"

#include <math.h>

static const double CUT = 0.05; // share of missing draft tokens from which on it is mentioned
enum { LINES = 5, LEAST = 5 };  // most lines; fewest cases for which a rate is drawn

typedef struct conditional_rates {
    dsc_selection selection;
    const dsc_table *lengths; // the selected rows with their draft lengths
    size_t row[LINES], index[LINES], lines, groups;
    size_t depth; // positions drawn
    double *x;    // [depth] 1, 2, ...
    // [lines][depth]: accepted / reached, its interval, the rate over all depths.
    double *rate, *low, *high, *iid, *reached;
    double cut[LINES]; // share of the draft tokens of full length that were not drafted
    const char *label[LINES];
    dsc_key key[LINES];
} conditional_rates;

// Element i of a list cell; 0 after its end.
static double element(const dsc_table *t, size_t row, int column, size_t i)
{
    dsc_cell c = dsc_list_at(t, row, column);
    return (int64_t)i < c.i ? dsc_cell_element(&c, (int64_t)i) : 0;
}

static size_t elements(const dsc_table *t, size_t row, int column)
{
    return (size_t)dsc_list_at(t, row, column).i;
}

// --- which rows ----------------------------------------------------------------------------

// Whether row a represents its combination of texts better than row b: the row with the longest
// drafts covers every position; ties go to the faster one.
static bool is_better(const conditional_rates *h, size_t a, size_t b)
{
    const dsc_table *t = h->selection.table;
    double x = dsc_table_real(h->lengths, a, 0), y = dsc_table_real(h->lengths, b, 0);
    if (x != y && !(isnan(x) && isnan(y)))
        return x > y || isnan(y);
    return dsc_merit_at(t, h->selection.row[a]) > dsc_merit_at(t, h->selection.row[b]);
}

// Writes one row of each combination of texts to first[]; returns their number.
static size_t represent(const conditional_rates *h, int column, size_t *first)
{
    const dsc_table *t = h->selection.table;
    size_t n = 0;
    for (size_t i = 0; i < h->selection.rows; i++) {
        size_t j = 0;
        if (elements(t, h->selection.row[i], column) < 2)
            continue; // nothing was ever accepted
        while (j < n && !dsc_same_texts(t, h->selection.row[first[j]], h->selection.row[i]))
            j++;
        if (j == n)
            first[n++] = i;
        else if (is_better(h, i, first[j]))
            first[j] = i;
    }
    return n;
}

// Chooses at most LINES of them, the fastest, in the table's order, and labels them.
static void choose(dsc_plot *p, conditional_rates *h, int column)
{
    const dsc_table *t = h->selection.table;
    size_t *first = dsc_plot_new(p, size_t, h->selection.rows);
    bool *skip = dsc_plot_new(p, bool, t->columns);
    if (p->rc)
        return;
    h->groups = represent(h, column, first);
    for (size_t i = 0; i < h->groups; i++) {
        size_t faster = 0;
        for (size_t j = 0; j < h->groups; j++) {
            double x = dsc_merit_at(t, h->selection.row[first[j]]);
            double y = dsc_merit_at(t, h->selection.row[first[i]]);
            faster += x > y || (x == y && j < i);
        }
        if (faster < LINES) {
            h->row[h->lines] = h->selection.row[first[i]];
            h->index[h->lines++] = first[i];
        }
    }
    if (!h->lines)
        dsc_refuse(p, "acceptance-by-position: no row has an accepted token");
    for (size_t c = 0; c < t->columns; c++)
        skip[c] = t->column[c].type != DSC_CELL_TEXT;
    for (size_t i = 0; i < h->lines; i++) {
        double length = dsc_table_real(h->lengths, h->index[i], 0);
        h->label[i] = dsc_line_label(p, t, h->row, h->lines, i, skip);
        if (length >= 1 && t->rows > 1)
            h->label[i] = dsc_text(p, "%s%sdraft length %g, row %zu", h->label[i],
                                   *h->label[i] ? ", " : "", length, h->row[i] + 1);
        h->key[i] = (dsc_key){h->label[i], (int)i};
    }
}

// --- numbers -------------------------------------------------------------------------------

// Wilson's 95 % interval of a share of n cases.
static void wilson(double share, double n, double *low, double *high)
{
    const double z = 1.959963984540054, zz = z * z / n;
    double middle = (share + zz / 2) / (1 + zz);
    double half = sqrt(share * (1 - share) * zz + zz * zz / 4) / (1 + zz);
    *low = fmax(0, middle - half);
    *high = fmin(1, middle + half);
}

// The number of calls that drafted position j + 1 and accepted the j before it. If the table does
// not contain it: all calls that accepted j, or for position 1 all that had a draft.
static double reached_at(const conditional_rates *h, size_t row, int column, size_t j,
                         double at_least)
{
    const dsc_table *t = h->selection.table;
    int reached = dsc_table_find(t, "conditional_acceptance_reached");
    double drafts = dsc_number_at(t, row, "num_drafts");
    if (reached >= 0 && elements(t, row, reached) + 1 >= elements(t, row, column))
        return element(t, row, reached, j);
    return !j && drafts > 0 && drafts < at_least ? drafts : at_least;
}

// The number of positions of a row: its draft length, as far as any token was accepted.
static size_t depth_of(const conditional_rates *h, size_t line, int column)
{
    double length = dsc_table_real(h->lengths, h->index[line], 0);
    size_t seen = elements(h->selection.table, h->row[line], column) - 1;
    return length >= 1 && length < (double)seen ? (size_t)length : seen;
}

static void fill_line(dsc_plot *p, conditional_rates *h, size_t line, int column)
{
    const dsc_table *t = h->selection.table;
    size_t row = h->row[line], n = elements(t, row, column), depth = depth_of(h, line, column);
    double at_least = 0, accepted = 0, cases = 0;
    for (size_t m = 0; m < n; m++) {
        double x = element(t, row, column, m);
        if (!(x >= 0 && x < 1e300))
            dsc_refuse(p, "row %zu: accept_histogram contains a count of %g", row + 1, x);
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
    double length = dsc_table_real(h->lengths, h->index[line], 0);
    double full = length * dsc_number_at(t, row, "num_drafts");
    h->cut[line] = 1 - dsc_number_at(t, row, "num_draft_tokens") / full;
}

static void fill(dsc_plot *p, conditional_rates *h, int column)
{
    for (size_t i = 0; i < h->lines; i++) {
        size_t depth = depth_of(h, i, column);
        h->depth = depth > h->depth ? depth : h->depth;
    }
    size_t count = h->lines * h->depth;
    h->x = dsc_plot_numbers(p, h->depth);
    h->rate = dsc_plot_numbers(p, count);
    h->low = dsc_plot_numbers(p, count);
    h->high = dsc_plot_numbers(p, count);
    h->iid = dsc_plot_numbers(p, count);
    h->reached = dsc_plot_numbers(p, count);
    for (size_t j = 0; !p->rc && j < h->depth; j++)
        h->x[j] = (double)j + 1;
    for (size_t i = 0; !p->rc && i < h->lines; i++)
        fill_line(p, h, i, column);
    if (!p->rc && dsc_best_of(h->rate, count, false) == SIZE_MAX)
        dsc_refuse(p, "acceptance-by-position: no position was reached %d times", LEAST);
}

// --- words ---------------------------------------------------------------------------------

// "draft-model: 0.71 at position 1 (0.70 to 0.72), 0.83 at position 5 (0.80 to 0.85), i.i.d. 0.75"
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
        dsc_put(w, "%s%.3f at position %zu (%.3f to %.3f)", i ? ", " : "", rate[j], j + 1,
                h->low[at], h->high[at]);
    }
    dsc_put(w, ", i.i.d. %.3f", h->iid[line * h->depth + last - 1]);
    if (h->cut[line] > CUT) // meaningless if a draft is more than one sequence
        dsc_put(w,
                "; drafts are on average %.0f %% shorter than the draft length, and a position "
                "after the end of a draft counts as rejected",
                100 * h->cut[line]);
}

static void put_finding(dsc_writer *w, const conditional_rates *h)
{
    dsc_put(w,
            "Line chart: conditional acceptance rate by position in the draft (1 to %zu), given "
            "that every earlier position was accepted. ",
            h->depth);
    for (size_t i = 0; i < h->lines; i++) {
        dsc_put(w, "%s", i ? "; " : "");
        put_line(w, h, i);
    }
    dsc_put(w, ". The intervals (95 %%, Wilson) assume that calls are independent.");
}

static void put_data(dsc_plot *p, const conditional_rates *h)
{
    dsc_data_text(p, "line", "parameters of the line");
    dsc_data_numbers(p, "position reached acceptance low high iid");
    for (size_t i = 0; i < h->lines * h->depth; i++) {
        const char *line = h->label[i / h->depth];
        const double v[] = {h->x[i % h->depth], h->reached[i], h->rate[i],
                            h->low[i],          h->high[i],    h->iid[i]};
        if (!isnan(h->rate[i]))
            dsc_data_row(p, &(const char *){*line ? line : "all"}, v);
    }
}

static void draw(dsc_plot *plot)
{
    conditional_rates h = {.lines = 0};
    int column = dsc_need(plot, "accept_histogram", DSC_LISTS);
    h.selection = dsc_select(plot, plot->table, plot->options, NULL);
    h.lengths = dsc_length_table(plot, &h.selection);
    choose(plot, &h, column);
    fill(plot, &h, column);
    if (plot->rc)
        return;
    bool cut = false;
    double height = (dsc_is_narrow(plot) ? 420 : 440) + 10 * (double)h.lines;
    for (size_t i = 0; i < h.lines; i++)
        cut = cut || h.cut[i] > CUT;
    const char *less = dsc_left_out(plot, h.lines, h.groups, "lines", 0);
    dsc_panel panel = {"", "conditional acceptance rate", h.rate, 0};
    dsc_panels p = {
        .title = "Conditional acceptance rate by position",
        .subtitle =
            dsc_text(plot, "bands: 95 %% intervals%s%s%s",
                     cut ? "; lower bounds where drafts end early" : "", *less ? "; " : "", less),
        .x_label = "position in the draft",
        .x = h.x,
        .nx = h.depth,
        .key = h.key,
        .lines = h.lines,
        .panel = &panel,
        .panels = 1,
        .low = h.low,
        .high = h.high,
        .interval = true,
        .predicted = h.iid,
        .predicted_label = "i.i.d. acceptance (reference)",
    };
    dsc_draw_panels(plot, &p, "by_position", 720, height);
    put_finding(&plot->finding, &h);
    put_data(plot, &h);
}

// Whether some draft has several positions.
static bool fits(dsc_plot *p)
{
    int column = dsc_table_find(p->table, "accept_histogram");
    for (size_t i = 0; i < p->table->rows; i++)
        if (elements(p->table, i, column) > 2)
            return true;
    return false;
}

const dsc_figure_type dsc_figure_by_position = {
    .name = "acceptance-by-position",
    .summary =
        "conditional acceptance rate by position with 95 % intervals, and the i.i.d. reference",
    .needs = "accept_histogram",
    .fits = fits,
    .draw = draw,
};
