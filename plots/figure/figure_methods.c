// SPDX-License-Identifier: Apache-2.0
// Draws a bar for the best configuration of each method, rule and text parameter (--reuse on|off),
// in the table's order, so that an ablation keeps the order in which it was listed. The numeric
// parameters of the best configuration are written above its bar. Of a table by a metadata field, a
// second figure draws a bar for all requests and one for each value.
#include "plots/draw/glossary.h"
#include "plots/draw/label.h"
#include "plots/draw/lines.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { BARS = 24, LONGEST = 199 }; // most bars; bytes of a label

typedef struct bars {
    dsc_selection selection;
    const char *column, *by; // by: the metadata field that separates the bars, or NULL
    int value, low, high;    // columns; low and high are -1 without intervals
    bool less;
    bool *separate;                 // [columns] the columns that separate bars
    size_t first[BARS], best[BARS]; // first and best row of each bar; SIZE_MAX: no number
    size_t bars, top;               // top: the best bar
    const char *text[BARS];         // the values: "2.31×"
    const char *label[BARS], *with[BARS];
} bars;

static double value_of(const bars *b, size_t row, int column)
{
    return dsc_value_at(b->selection.table, row, column);
}

// --- which bars ----------------------------------------------------------------------------

// Collects the bars; returns false if there are too many.
static bool collect(bars *b)
{
    b->bars = 0;
    for (size_t i = 0; i < b->selection.rows; i++) {
        size_t row = b->selection.row[i], j = 0;
        double v = value_of(b, row, b->value);
        while (j < b->bars && !dsc_rows_agree(b->selection.table, b->separate, b->first[j], row))
            j++;
        if (j == BARS)
            return false;
        if (j == b->bars) {
            b->first[j] = row;
            b->best[b->bars++] = SIZE_MAX;
        }
        double best = value_of(b, b->best[j], b->value);
        if (!isnan(v) && (isnan(best) || (b->less ? v < best : v > best)))
            b->best[j] = row;
    }
    return true;
}

// Separates bars by the metadata field alone.
static void find_values(dsc_plot *p, bars *b)
{
    b->separate = dsc_plot_new(p, bool, p->table->columns);
    if (p->rc)
        return;
    b->separate[dsc_table_find(p->table, b->by)] = true;
    if (!collect(b))
        dsc_refuse(p, "by: more than %d values of %.60s: filter by it", BARS, b->by);
}

// Keeps the rows of the first batch size, and of tune those that won on the selection set.
static void keep_first(dsc_selection *s, const char *column)
{
    const dsc_table *t = s->table;
    const int c = dsc_table_find(t, column);
    size_t kept = 0;
    for (size_t i = 0; c >= 0 && i < s->rows; i++)
        if (dsc_same_cell(dsc_table_at(t, s->row[0], (size_t)c),
                          dsc_table_at(t, s->row[i], (size_t)c)))
            s->row[kept++] = s->row[i];
    s->rows = c >= 0 ? kept : s->rows;
}

// Separates bars by column x (the option --x, or -1) and by all text parameters, or, if that gives
// too many bars, by the most important ones.
static void find_bars(dsc_plot *p, bars *b, int x)
{
    static const char *const always[] = {"method", "rule", "cost", "trace_hash", "source", "batch"};
    const dsc_table *t = p->table;
    b->separate = dsc_plot_new(p, bool, t->columns);
    if (p->rc)
        return;
    for (size_t c = 0; c < t->columns; c++)
        b->separate[c] =
            (t->column[c].type == DSC_CELL_TEXT && dsc_is_parameter(t, c)) || (int)c == x ||
            !strcmp(t->column[c].name, "batch"); // a batch size is a condition, not a choice
    if (collect(b))
        return;
    for (size_t c = 0; c < t->columns; c++) {
        bool kept = (int)c == x;
        for (size_t i = 0; i < sizeof always / sizeof *always; i++)
            kept = kept || !strcmp(t->column[c].name, always[i]);
        b->separate[c] = b->separate[c] && kept;
    }
    if (!collect(b))
        dsc_refuse(p, "methods: more than %d bars: filter by method or rule", BARS);
}

// Whether parameter c varies among the rows of the method.
static bool varies(const bars *b, size_t row, size_t c)
{
    const dsc_table *t = b->selection.table;
    int method = dsc_table_find(t, "method");
    for (size_t i = 0; i < b->selection.rows; i++) {
        size_t other = b->selection.row[i];
        if (dsc_same_cell(dsc_table_at(t, row, (size_t)method),
                          dsc_table_at(t, other, (size_t)method)) &&
            !dsc_same_cell(dsc_table_at(t, row, c), dsc_table_at(t, other, c)))
            return true;
    }
    return false;
}

// The value of a bar: "2.31×".
static const char *value_text(dsc_plot *p, const bars *b, size_t j)
{
    double v = value_of(b, b->best[j], b->value);
    const char *unit = strcmp(b->column, "speedup") ? "" : "×";
    if (isnan(v))
        return "no number";
    return dsc_is_ratio(b->column) && fabs(v) < 1e4 ? dsc_text(p, "%.2f%s", v, unit)
                                                    : dsc_text(p, "%.4g%s", v, unit);
}

// The method of a bar for a value, and the prediction if there is one.
static bool put_chosen(dsc_writer *w, const bars *b, size_t row, int method)
{
    const dsc_table *t = b->selection.table;
    const double predicted = dsc_number_at(t, row, "predicted");
    dsc_put(w, "%s", dsc_table_at(t, row, (size_t)method)->text);
    if (!isnan(predicted))
        dsc_put(w, ", predicted %.4g", predicted);
    return true;
}

static void label_bars(dsc_plot *p, bars *b, int method)
{
    const dsc_table *t = p->table;
    bool *skip = dsc_plot_new(p, bool, t->columns);
    for (size_t c = 0; skip && c < t->columns; c++)
        skip[c] = !b->separate[c] || (int)c == method; // that is always part of the label
    const int value = b->by ? dsc_table_find(t, b->by) : method;
    for (size_t j = 0; j < b->bars && !p->rc; j++) {
        bool any = false;
        const char *more = b->by ? "" : dsc_distinct_label(p, t, b->first, b->bars, j, skip);
        b->label[j] = dsc_text(p, "%s%s%s", dsc_table_at(t, b->first[j], (size_t)value)->text,
                               *more ? ", " : "", more);
        b->label[j] = dsc_text(p, "%.*s", LONGEST, b->label[j]);
        dsc_writer *w = dsc_text_begin(p);
        if (b->by && b->best[j] != SIZE_MAX)
            any = put_chosen(w, b, b->best[j], method);
        for (size_t c = 0; c < t->columns && b->best[j] != SIZE_MAX; c++)
            if (dsc_is_parameter(t, c) && !b->separate[c] && varies(b, b->best[j], c))
                any |= dsc_put_parameter(w, t, b->best[j], c, any ? ", " : "");
        b->with[j] = dsc_text(p, "%.*s", LONGEST, dsc_text_end(p));
        b->text[j] = value_text(p, b, j);
    }
}

// The quantity of a figure by field. Unit costs make no speedup.
static const char *column_by(const dsc_plot *p)
{
    const char *cost = dsc_table_get_comment(p->table, "cost");
    const bool unit = cost && !strcmp(cost, "unit");
    static const char *const usual[] = {"test", "measured", "speedup"};
    if (p->options->column)
        return p->options->column;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (dsc_table_find(p->table, usual[i]) >= 0 && !(unit && i == 2))
            return usual[i];
    return "block_efficiency";
}

static void read_bars(dsc_plot *p, bars *b)
{
    const dsc_table *t = p->table;
    const char *option = p->options->x;
    double v[BARS];
    b->by = p->spec ? dsc_table_get_comment(t, "by") : NULL;
    if (p->spec && (!b->by || dsc_table_find(t, b->by) < 0))
        dsc_refuse(p, "the table has no rows by a metadata field; make it with --by FIELD");
    if (p->rc)
        return;
    b->column = b->by ? column_by(p) : dsc_result_column(p);
    b->less = dsc_term_less_is_better(b->column);
    int method = dsc_need(p, "method", DSC_NAMES);
    int x = option ? dsc_need(p, option, DSC_ANYTHING) : -1;
    if (x >= 0 && t->column[x].type == DSC_CELL_LIST)
        dsc_refuse(p, "methods: --x %.60s contains lists; use a parameter", option);
    b->value = dsc_need(p, b->column, DSC_ANYTHING);
    b->low = dsc_table_find(t, dsc_text(p, "%.100s_low", b->column));
    b->high = dsc_table_find(t, dsc_text(p, "%.100s_high", b->column));
    b->selection = b->by ? dsc_select_groups(p, t, p->options) : dsc_select(p, t, p->options, NULL);
    if (!p->rc && b->by) {
        keep_first(&b->selection, "batch");
        keep_first(&b->selection, "rank");
        find_values(p, b);
    } else {
        find_bars(p, b, x);
    }
    if (p->rc)
        return;
    label_bars(p, b, method);
    for (size_t j = 0; j < b->bars; j++)
        v[j] = value_of(b, b->best[j], b->value);
    b->top = dsc_best_of(v, b->bars, b->less);
    dsc_check_any(p, v, b->bars, b->column);
}

// --- drawing -------------------------------------------------------------------------------

static bool has_intervals(const bars *b)
{
    return b->low >= 0 && b->high >= 0;
}

// The axis from 0 to the longest bar; it includes the ends of intervals, and 1 for ratios.
static dsc_axis axis_of(const bars *b, int tics)
{
    double lo = 0, hi = dsc_is_ratio(b->column) ? 1 : 0;
    for (size_t j = 0; j < b->bars; j++) {
        const int column[] = {b->value, b->low, b->high};
        for (int i = 0; i < 3; i++) {
            double v = value_of(b, b->best[j], column[i]);
            lo = fmin(lo, v); // fmin and fmax ignore NaN
            hi = fmax(hi, v);
        }
    }
    return dsc_axis_fit(lo, hi, tics);
}

// Draws each bar as a row of characters with its label and value.
static void put_dumb(dsc_writer *w, const dsc_canvas *c, const bars *b, double top)
{
    size_t name = 8, room;
    for (size_t j = 0; j < b->bars; j++)
        name = dsc_text_length(b->label[j]) > name ? dsc_text_length(b->label[j]) : name;
    name = name > (size_t)c->width / 2 - 4 ? (size_t)c->width / 2 - 4 : name;
    room = (size_t)c->width - name - 16;
    dsc_axis a = axis_of(b, 5);
    for (size_t j = 0; j < b->bars; j++) {
        double v = value_of(b, b->best[j], b->value);
        size_t length = isnan(v) || v < 0 ? 0 : (size_t)(v / a.hi * (double)room);
        char bar[512] = "|";
        memset(bar + 1, '#', length < sizeof bar - 48 ? length : sizeof bar - 48);
        snprintf(bar + strlen(bar), 48, " %.40s", b->text[j]);
        dsc_put_paragraph(w, c, 1, top + (double)j, (double)name, DSC_FONT_BODY, DSC_INK, 1,
                          b->label[j]);
        dsc_put_paragraph(w, c, (double)name + 2, top + (double)j, c->width, DSC_FONT_BODY, DSC_INK,
                          1, bar);
    }
    dsc_put_empty_plot(w);
}

// Writes $bars: value, bottom, top, whether it is the best, low, high, middle. One unit of y is a
// bar with the text above it.
static void put_bar_data(dsc_writer *w, const bars *b)
{
    dsc_put(w, "$bars << EOD\n");
    for (size_t j = 0; j < b->bars; j++) {
        double v = value_of(b, b->best[j], b->value);
        double lo = value_of(b, b->best[j], b->low), hi = value_of(b, b->best[j], b->high);
        if (isnan(v))
            continue;
        dsc_put(w, "%.12g %g %g %d", v, (double)j + 0.52, (double)j + 0.9, j == b->top);
        if (isnan(lo) || isnan(hi))
            dsc_put(w, " ? ?");
        else
            dsc_put(w, " %.12g %.12g", lo, hi);
        dsc_put(w, " %g\n", (double)j + 0.71);
    }
    dsc_put(w, "EOD\nset datafile missing '?'\n");
}

static void put_labels(dsc_plot *p, const dsc_canvas *c, const bars *b, const dsc_axis *a,
                       double left, double top, double right, double slot)
{
    dsc_writer *w = &p->script;
    for (size_t j = 0; j < b->bars; j++) {
        double y = top + (double)j * slot, v = value_of(b, b->best[j], b->value);
        double name = ((double)dsc_text_length(b->label[j]) + 2) * c->char_width;
        dsc_put_paragraph(w, c, left, y, c->width - left, DSC_FONT_BODY, DSC_INK, 1, b->label[j]);
        if (b->with[j][0] && left + name + 8 * c->char_width < c->width)
            dsc_put_paragraph(w, c, left + name, y, c->width - left - name - 4, DSC_FONT_SMALL,
                              DSC_INK_SOFT, 1, b->with[j]);
        double end = fmax(isnan(v) ? 0 : v, value_of(b, b->best[j], b->high)); // passes over NaN
        double x = left + (fmax(end, 0) - a->lo) / (a->hi - a->lo) * (right - left);
        dsc_put_paragraph(w, c, x + 6, y + 0.71 * slot - c->line_height / 2, c->width,
                          DSC_FONT_BODY, DSC_INK, 1, b->text[j]);
        dsc_mark(p, dsc_axis_place(a, left, right, v), y + 0.71 * slot, b->label[j], "%s%s%s",
                 b->text[j], *b->with[j] ? ", " : "", b->with[j]);
    }
}

static void put_bars(dsc_plot *p, const dsc_canvas *c, const bars *b, double top)
{
    dsc_writer *w = &p->script;
    double margin = c->margin, line = c->line_height;
    double left = margin + 2 * c->char_width, right = c->width - margin - 9 * c->char_width;
    double bottom = c->height - 2.4 * line - 8, slot = (bottom - top) / (double)b->bars;
    dsc_axis a = axis_of(b, (right - left) > 400 ? 7 : 4);
    dsc_put_margins(w, c, left, top, right, bottom);
    dsc_check_room(w, c, right - left, slot * 1.6); // a bar and its label need 32 pixels
    dsc_put(w,
            "set yrange [%zu:0]\nunset ytics\n"
            "set grid noytics xtics back lt 1 lw 1 lc rgb '" DSC_GRID "'\nset border 1\n",
            b->bars);
    dsc_put_number_axis(w, &a);
    dsc_put_x_label(w, c, (dsc_place){left, top, right, bottom}, margin, c->width - margin,
                    dsc_term_title(b->column));
    put_labels(p, c, b, &a, left, top, right, slot);
    for (size_t j = 0; dsc_is_ratio(b->column) && j < b->bars; j++) // not through the labels
        dsc_put(w,
                "set arrow from first 1, first %g to first 1, first %g nohead front lt 1 lw 1.5 "
                "dt (6,4) lc rgb '" DSC_INK_SOFT "'\n",
                (double)j + 0.45, (double)j + 0.97);
    dsc_put(w,
            "plot $bars using 1:7:(0):1:2:3:($4 > 0 ? %d : %d) with boxxyerror fs solid 1 "
            "noborder lc rgb variable notitle",
            0x0072B2, 0x8FBFDD);
    if (has_intervals(b))
        dsc_put(
            w,
            ", \\\n     $bars using 1:7:5:6 with xerrorbars lt 1 lw 1.5 pt 7 ps 0 lc rgb '" DSC_INK
            "' notitle");
    dsc_put(w, "\n");
}

static const char *subtitle_of(dsc_plot *p, const bars *b)
{
    const char *cost =
        strcmp(b->column, "speedup") ? NULL : dsc_table_get_comment(p->table, "cost");
    return dsc_text(p, "best %s: %s%s%s%s%s%s", b->text[b->top], b->label[b->top],
                    *b->with[b->top] ? ", " : "", b->with[b->top], cost ? "; cost: " : "",
                    cost ? cost : "", has_intervals(b) ? "; 95 % intervals" : "");
}

static void put_finding(dsc_writer *w, const bars *b)
{
    dsc_put(w, "Bar chart: %s of the best configuration in each of %zu groups: ",
            dsc_term_title(b->column), b->bars);
    for (size_t j = 0; j < b->bars; j++) {
        dsc_put(w, "%s%s %s", j ? "; " : "", b->label[j], b->text[j]);
        if (*b->with[j])
            dsc_put(w, " (%s)", b->with[j]);
    }
    const bool elsewhere = !strcmp(b->column, "test") || !strcmp(b->column, "measured");
    dsc_put(w, "%s",
            elsewhere ? "."
                      : ". Each best was selected on the requests shown, so its value is "
                        "optimistically biased.");
}

static void put_data(dsc_plot *p, const bars *b)
{
    dsc_data_text(p, "bar", "parameters in which the bars differ");
    dsc_data_text(p, "best_with", "further parameters of the best configuration");
    dsc_data_number(p, b->column, NULL);
    if (has_intervals(b))
        dsc_data_numbers(p, "low high");
    for (size_t j = 0; j < b->bars; j++) {
        const size_t row = b->best[j];
        dsc_data_row(p, (const char *[]){b->label[j], b->with[j]},
                     (double[]){value_of(b, row, b->value), value_of(b, row, b->low),
                                value_of(b, row, b->high)});
    }
}

static void draw(dsc_plot *p)
{
    bars b = {.bars = 0};
    read_bars(p, &b);
    dsc_canvas c = dsc_canvas_of(p, 720, fmax(220, 150 + 42 * (double)b.bars), b.bars + 5);
    if (p->rc)
        return;
    dsc_writer *w = &p->script;
    const bool measured = b.column && !strcmp(b.column, "measured");
    const char *what = measured ? "Measured speedup" : "Best configuration";
    const char *title =
        b.by ? dsc_text(p, "%s by %.60s", what, b.by) : "Best configuration per method";
    const dsc_key key = {"no speculation", DSC_KEY_REFERENCE};
    dsc_put_terminal(w, &c, p->name);
    put_bar_data(w, &b);
    double top = dsc_put_heading(w, &c, title, subtitle_of(p, &b), NULL, &key,
                                 dsc_is_ratio(b.column) && !c.dumb);
    if (c.dumb && top + (double)b.bars > c.height)
        dsc_check_room(w, &c, 0, 0);
    else if (c.dumb)
        put_dumb(w, &c, &b, top);
    else
        put_bars(p, &c, &b, top + 4);
    put_finding(&p->finding, &b);
    put_data(p, &b);
}

// Whether there are at least two bars. The rows of tune are ranked by its objective, which may be
// another quantity.
static bool fits(dsc_plot *p)
{
    bars b = {.bars = 0};
    if (dsc_table_find(p->table, "significant") >= 0)
        return false;
    read_bars(p, &b);
    return !p->rc && b.bars > 1;
}

const dsc_figure_type dsc_figure_methods = {
    .name = "methods",
    .summary = "the best configuration of each method and rule as a bar, with its parameters",
    .needs = "method block_efficiency",
    .fits = fits,
    .compares = true,
    .draw = draw,
};

static bool fits_by(dsc_plot *p)
{
    bars b = {.bars = 0};
    if (!dsc_table_get_comment(p->table, "by"))
        return false;
    read_bars(p, &b);
    return !p->rc && b.bars > 1;
}

static const bool by_field = true;

const dsc_figure_type dsc_figure_by = {
    .name = "by",
    .summary =
        "the best configuration for each value of a metadata field as a bar (tables of --by)",
    .needs = "method",
    .spec = &by_field,
    .fits = fits_by,
    .draw = draw,
};
