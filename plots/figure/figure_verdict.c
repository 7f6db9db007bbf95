// SPDX-License-Identifier: Apache-2.0
// Draws the held-out speedup of a tuning result with its 95 % interval, by condition: the best
// configuration of each method on the selection set, the judged one first. An interval that begins
// above 1 is what tune's verdict asks for.
#include "plots/draw/glossary.h"
#include "plots/draw/select.h"
#include "plots/draw/style.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { CONDITIONS = 8, METHODS = 4, ROWS = CONDITIONS * METHODS };

typedef struct intervals {
    const dsc_table *table;
    size_t row[ROWS], rows; // of the table, by condition and by rank
    double batch[CONDITIONS];
    size_t conditions, left_out; // conditions
    size_t longest;              // characters of a method's name
} intervals;

static double at(const intervals *v, size_t i, const char *column)
{
    return dsc_number_at(v->table, v->row[i], column);
}

static const char *method_at(const intervals *v, size_t i)
{
    return dsc_text_at(v->table, v->row[i], "method");
}

static bool begins_condition(const intervals *v, size_t i)
{
    return !i || at(v, i, "batch") != at(v, i - 1, "batch");
}

// Adds the best-ranked row of each of the first methods at one batch size. `none` is the reference.
static void add_condition(intervals *v, const size_t *row, size_t rows, double batch)
{
    size_t first = v->rows;
    while (v->rows - first < METHODS) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < rows; i++) {
            const char *method = dsc_text_at(v->table, row[i], "method");
            bool taken = !strcmp(method, "none") ||
                         dsc_number_at(v->table, row[i], "batch") != batch ||
                         isnan(dsc_number_at(v->table, row[i], "test"));
            for (size_t k = first; k < v->rows && !taken; k++)
                taken = !strcmp(method, method_at(v, k));
            if (!taken && (best == SIZE_MAX || dsc_number_at(v->table, row[i], "rank") <
                                                   dsc_number_at(v->table, best, "rank")))
                best = row[i];
        }
        if (best == SIZE_MAX)
            break;
        v->row[v->rows++] = best;
        size_t name = dsc_text_length(dsc_text_at(v->table, best, "method"));
        v->longest = name > v->longest ? name : v->longest;
    }
}

static void read_intervals(dsc_plot *p, intervals *v)
{
    int column[DSC_NEEDS];
    size_t conditions = 0;
    *v = (intervals){.table = p->table};
    dsc_need_columns(p, p->needs, column);
    dsc_selection s = dsc_select(p, p->table, p->options, NULL);
    const double *batch = p->rc ? NULL : dsc_distinct(p, &s, column[0], &conditions);
    if (p->rc)
        return;
    v->conditions = conditions < CONDITIONS ? conditions : CONDITIONS;
    v->left_out = conditions - v->conditions;
    for (size_t c = 0; c < v->conditions; c++)
        add_condition(v, s.row, s.rows, batch[c]);
    if (!v->rows)
        dsc_refuse(p, "verdict: column 'test' has no number to draw");
}

// --- drawing -----------------------------------------------------------------------------------

// Writes $best and $others: value, low, high, and the row, counted from the top.
static void put_rows(dsc_writer *w, const intervals *v, bool best)
{
    size_t line = 0;
    bool any = false;
    dsc_put(w, "$%s << EOD\n", best ? "best" : "others");
    for (size_t i = 0; i < v->rows; i++, line++) {
        bool first = begins_condition(v, i);
        line += first;
        if (first != best)
            continue;
        double x = at(v, i, "test"), lo = at(v, i, "test_low"), hi = at(v, i, "test_high");
        dsc_put(w, "%.12g %.12g %.12g %zu\n", x, isnan(lo) ? x : lo, isnan(hi) ? x : hi, line);
        any = true;
    }
    if (!any)
        dsc_put(w, "NaN NaN NaN NaN\n");
    dsc_put(w, "EOD\n");
}

static dsc_axis axis_of(const intervals *v, int tics)
{
    double lo = 1, hi = 1;
    for (size_t i = 0; i < v->rows; i++) {
        const double x[] = {at(v, i, "test"), at(v, i, "test_low"), at(v, i, "test_high")};
        for (int k = 0; k < 3; k++) {
            lo = fmin(lo, x[k]); // fmin and fmax ignore NaN
            hi = fmax(hi, x[k]);
        }
    }
    dsc_axis a = dsc_axis_fit(lo, hi, tics);
    if (a.lo == 1)
        a.lo -= a.step; // the reference must not lie on the frame
    return a;
}

static const char *condition_of(dsc_plot *p, const intervals *v, size_t i)
{
    return dsc_text(p, "batch size %g", at(v, i, "batch"));
}

// Writes the names on the left and the values on the right, and makes the rows answer the pointer.
static void put_names(dsc_plot *p, const dsc_canvas *c, const intervals *v, const dsc_axis *a,
                      dsc_place b, double slot)
{
    size_t line = 0;
    for (size_t i = 0; i < v->rows; i++, line++) {
        dsc_writer *w = &p->script;
        double x = at(v, i, "test");
        double y = b.top + (double)line * slot + (c->dumb ? 0 : (slot - 17) / 2);
        const char *parameters = dsc_text_at(v->table, v->row[i], "parameters");
        if (begins_condition(v, i)) {
            dsc_put_paragraph(w, c, c->margin, y, c->width, DSC_FONT_BODY, DSC_INK, 1,
                              condition_of(p, v, i));
            line++;
            y += slot;
        }
        dsc_put_paragraph(w, c, c->margin + c->char_width, y, b.left, DSC_FONT_SMALL,
                          begins_condition(v, i) ? DSC_INK : DSC_INK_SOFT, 1, method_at(v, i));
        dsc_put_paragraph(w, c, b.right + c->char_width, y, c->width, DSC_FONT_SMALL,
                          begins_condition(v, i) ? DSC_INK : DSC_INK_SOFT, 1,
                          dsc_text(p, "%.2f×", x));
        dsc_mark(p, dsc_axis_place(a, b.left, b.right, x), b.top + ((double)line + 0.5) * slot,
                 dsc_text(p, "%s: %.80s %.80s", condition_of(p, v, i), method_at(v, i), parameters),
                 "%.2f× (95 %%: %.2f to %.2f)", x, at(v, i, "test_low"), at(v, i, "test_high"));
    }
}

static void put_intervals(dsc_plot *p, const dsc_canvas *c, const intervals *v, double top)
{
    dsc_writer *w = &p->script;
    double name = ((double)v->longest + 2) * c->char_width;
    dsc_place b = {.left = c->margin + fmin(name, c->width / 3),
                   .top = top,
                   .right = c->width - c->margin - 6 * c->char_width,
                   .bottom = c->height - (c->dumb ? 3 : 2.4 * c->line_height + 8)};
    double lines = (double)(v->rows + v->conditions), slot = (b.bottom - b.top) / lines;
    dsc_axis a = axis_of(v, b.right - b.left > 400 ? 7 : 6);
    dsc_put_margins(w, c, b.left, b.top, b.right, b.bottom);
    dsc_check_room(w, c, b.right - b.left, slot * (c->dumb ? 4 : 5));
    dsc_put(w, "set yrange [%g:-0.5]\nunset ytics\nset border 1\n", lines - 0.5);
    if (!c->dumb)
        dsc_put(w, "set grid noytics xtics back lt 1 lw 1 lc rgb '" DSC_GRID "'\n");
    dsc_put_number_axis(w, &a);
    dsc_put_x_label(w, c, b, c->margin, c->width - c->margin, "held-out speedup (95 % interval)");
    put_names(p, c, v, &a, b, slot);
    if (c->dumb) {
        dsc_put(w, "set arrow from first 1, graph 0 to first 1, graph 1 nohead\n"
                   "plot $others using 1:4 with points pt 2 notitle, \\\n"
                   "     $best using 1:4 with points pt 1 notitle\n");
        return;
    }
    dsc_put(w, "set arrow from first 1, graph 0 to first 1, graph 1 nohead back lt 1 lw 1.5 "
               "dt (6,4) lc rgb '" DSC_INK_SOFT "'\n"
               "plot $others using 1:4:2:3 with xerrorbars lt 1 lw 1.5 pt 6 ps 0.7 "
               "lc rgb '" DSC_INK_SOFT "' notitle, \\\n"
               "     $best using 1:4:2:3 with xerrorbars lt 1 lw 2.5 pt 7 ps 0.9 ");
    dsc_put(w, "lc rgb '%s' notitle\n", dsc_style_color(0));
}

static void put_finding(dsc_plot *p, const intervals *v)
{
    dsc_writer *w = &p->finding;
    dsc_put(w, "Intervals: speedup on the test set by condition. ");
    for (size_t i = 0; i < v->rows; i++)
        if (begins_condition(v, i))
            dsc_put(w, "%s%s: %s %.2f (95 %% %.2f to %.2f)", i ? ". At " : "At ",
                    condition_of(p, v, i), method_at(v, i), at(v, i, "test"), at(v, i, "test_low"),
                    at(v, i, "test_high"));
    dsc_put(w, ".");
}

static void put_data(dsc_plot *p, const intervals *v)
{
    dsc_data_text(p, "method", NULL);
    dsc_data_text(p, "parameters", NULL);
    dsc_data_numbers(p, "batch rank test test_low test_high");
    for (size_t i = 0; i < v->rows; i++)
        dsc_data_row(
            p, (const char *[]){method_at(v, i), dsc_text_at(v->table, v->row[i], "parameters")},
            (double[]){at(v, i, "batch"), at(v, i, "rank"), at(v, i, "test"), at(v, i, "test_low"),
                       at(v, i, "test_high")});
}

static void draw(dsc_plot *p)
{
    intervals v;
    read_intervals(p, &v);
    double lines = (double)(v.rows + v.conditions);
    dsc_canvas c = dsc_canvas_of(p, 720, fmax(200, 140 + 20 * lines), (size_t)lines + 6);
    if (p->rc)
        return;
    dsc_writer *w = &p->script;
    const dsc_key key[] = {{"judged", 0 + DSC_KEY_POINT}, {"no speculation", DSC_KEY_REFERENCE}};
    dsc_put_terminal(w, &c, "verdict");
    put_rows(w, &v, true);
    put_rows(w, &v, false);
    const char *left_out =
        v.left_out ? dsc_text(p, "; %zu more batch sizes are not drawn", v.left_out) : "";
    double top = dsc_put_heading(
        w, &c, "Held-out speedup by condition",
        dsc_text(p, "best configuration of each method on the selection set%s", left_out), NULL,
        key, 2);
    put_intervals(p, &c, &v, top + (c.dumb ? 0 : 6));
    put_finding(p, &v);
    put_data(p, &v);
}

// A tuning result whose objective is a speedup.
static bool fits(dsc_plot *p)
{
    intervals v;
    const char *objective = dsc_table_get_comment(p->table, "objective");
    const char *cost = dsc_table_get_comment(p->table, "cost");
    if (!objective || strncmp(objective, "speedup", 7) || (cost && !strcmp(cost, "unit")))
        return false;
    read_intervals(p, &v);
    return !p->rc;
}

const dsc_figure_type dsc_figure_verdict = {
    .name = "verdict",
    .summary =
        "held-out speedup of each method with its 95 % interval, by batch size (tune, advise)",
    .needs = "batch rank method parameters test test_low test_high",
    .fits = fits,
    .draw = draw,
};
