// SPDX-License-Identifier: Apache-2.0
// Draws a bar for the best configuration of each method, rule and text parameter (--reuse on|off),
// in the table's order, so that an ablation keeps the order in which it was listed. The numeric
// parameters of the best configuration are written above its bar.
#include "plots/draw/data.h"
#include "plots/draw/glossary.h"
#include "plots/draw/label.h"
#include "plots/draw/lines.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BARS = 24, BAR_LABEL = 200 };

typedef struct bars {
    dsc_selection selection;
    const char *column;
    int value, low, high; // columns; low and high are -1 without intervals
    bool less;
    const bool *separate;           // [columns] the columns that separate bars
    size_t first[BARS], best[BARS]; // first and best row of each bar; SIZE_MAX: no number
    size_t bars, top;               // top: the best bar
    char label[BARS][BAR_LABEL], with[BARS][BAR_LABEL];
} bars;

static double value_of(const bars *b, size_t row, int column)
{
    double v = column < 0 || row == SIZE_MAX
                   ? NAN
                   : dsc_table_real(b->selection.table, row, (size_t)column);
    return dsc_drawable(v) ? v : NAN;
}

// --- which bars ----------------------------------------------------------------------------

static bool together(const bars *b, size_t x, size_t y)
{
    const dsc_table *t = b->selection.table;
    for (size_t c = 0; c < t->columns; c++)
        if (b->separate[c] && !dsc_same_cell(dsc_table_at(t, x, c), dsc_table_at(t, y, c)))
            return false;
    return true;
}

// Collects the bars; returns false if there are too many.
static bool collect(bars *b)
{
    b->bars = 0;
    for (size_t i = 0; i < b->selection.rows; i++) {
        size_t row = b->selection.row[i], j = 0;
        double v = value_of(b, row, b->value);
        while (j < b->bars && !together(b, b->first[j], row))
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

// Separates bars by column x (the option --x, or -1) and by all text parameters, or, if that gives
// too many bars, by the most important ones.
static int find_bars(bars *b, int x, bool *separate, dsc_error *err)
{
    static const char *const always[] = {"method", "rule", "cost", "trace_hash", "source"};
    const dsc_table *t = b->selection.table;
    for (size_t c = 0; c < t->columns; c++)
        separate[c] = (t->column[c].type == DSC_CELL_TEXT && dsc_is_parameter(t, c)) || (int)c == x;
    b->separate = separate;
    if (collect(b))
        return DSC_OK;
    for (size_t c = 0; c < t->columns; c++) {
        bool kept = (int)c == x;
        for (size_t i = 0; i < sizeof always / sizeof *always; i++)
            kept = kept || !strcmp(t->column[c].name, always[i]);
        separate[c] = separate[c] && kept;
    }
    return collect(b) ? DSC_OK
                      : dsc_fail(err, DSC_EUSAGE,
                                 "methods: more than %d bars: filter by method or rule", BARS);
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

static int label_bars(bars *b, dsc_error *err)
{
    const dsc_table *t = b->selection.table;
    const char **skip;
    size_t skipped = 0;
    dsc_buffer text = {0};
    dsc_writer w = {.to = &text, .err = err};
    int rc = dsc_new(&skip, t->columns + 2, err);
    if (rc)
        return rc;
    skip[skipped++] = "method"; // it is always part of the label
    for (size_t c = 0; c < t->columns; c++)
        if (!b->separate[c])
            skip[skipped++] = t->column[c].name;
    for (size_t j = 0; j < b->bars && !w.rc; j++) {
        size_t row = b->first[j];
        bool any = false;
        text.length = 0;
        dsc_put(&w, "%s, ", dsc_table_at(t, row, (size_t)dsc_table_find(t, "method"))->text);
        size_t before = text.length;
        dsc_put_distinct(&w, t, b->first, b->bars, j, skip);
        if (!w.rc)
            snprintf(b->label[j], BAR_LABEL, "%.*s",
                     (int)(text.length - (text.length == before ? 2 : 0)), text.data);
        text.length = 0;
        dsc_put(&w, "%s", "");
        for (size_t c = 0; c < t->columns && b->best[j] != SIZE_MAX; c++)
            if (dsc_is_parameter(t, c) && !b->separate[c] && varies(b, b->best[j], c))
                any |= dsc_put_parameter(&w, t, b->best[j], c, any ? ", " : "");
        if (!w.rc)
            snprintf(b->with[j], BAR_LABEL, "%s", text.data);
    }
    free(skip);
    dsc_buffer_fini(&text);
    return w.rc;
}

static int bars_init(bars *b, bool *separate, const dsc_table *t, const dsc_figure_options *o,
                     dsc_error *err)
{
    char end[128];
    int unused, x = -1;
    b->column = o->column                           ? o->column
                : dsc_table_find(t, "speedup") >= 0 ? "speedup"
                                                    : "block_efficiency";
    b->less = dsc_term_less_is_better(b->column);
    int rc = dsc_need_text(t, "methods", "method", &unused, err);
    if (!rc && o->x)
        rc = dsc_need_column(t, "methods", o->x, &x, err);
    if (!rc && x >= 0 && t->column[x].type == DSC_CELL_LIST)
        rc = dsc_fail(err, DSC_EUSAGE, "methods: --x %.60s contains lists; use a parameter", o->x);
    if (!rc)
        rc = dsc_need_column(t, "methods", b->column, &b->value, err);
    if (!rc)
        rc = dsc_select(&b->selection, t, o, NULL, err);
    if (!rc)
        rc = find_bars(b, x, separate, err);
    if (!rc)
        rc = label_bars(b, err);
    if (rc)
        return rc;
    snprintf(end, sizeof end, "%.100s_low", b->column);
    b->low = dsc_table_find(t, end);
    snprintf(end, sizeof end, "%.100s_high", b->column);
    b->high = dsc_table_find(t, end);
    double v[BARS];
    for (size_t j = 0; j < b->bars; j++)
        v[j] = value_of(b, b->best[j], b->value);
    b->top = dsc_best_of(v, b->bars, b->less);
    return dsc_check_any(v, b->bars, b->column, err);
}

// --- drawing -------------------------------------------------------------------------------

static bool is_ratio(const bars *b)
{
    return !strcmp(b->column, "speedup") || !strcmp(b->column, "block_efficiency");
}

// Writes the value of a bar: "2.31×".
static void put_value(dsc_writer *w, const bars *b, size_t j)
{
    double v = value_of(b, b->best[j], b->value);
    if (isnan(v))
        dsc_put(w, "no number");
    else
        dsc_put(w, is_ratio(b) && fabs(v) < 1e4 ? "%.2f" : "%.4g", v);
    if (!isnan(v) && !strcmp(b->column, "speedup"))
        dsc_put(w, "×");
}

// The axis from 0 to the longest bar; it includes the ends of intervals, and 1 for ratios.
static dsc_axis axis_of(const bars *b, int tics)
{
    double lo = 0, hi = is_ratio(b) ? 1 : 0;
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
        dsc_buffer value = {0};
        dsc_writer text = {.to = &value, .err = w->err};
        put_value(&text, b, j);
        memset(bar + 1, '#', length < sizeof bar - 48 ? length : sizeof bar - 48);
        snprintf(bar + strlen(bar), 48, " %.40s", text.rc ? "" : value.data);
        dsc_put_paragraph(w, c, 1, top + (double)j, (double)name, DSC_FONT_BODY, DSC_INK, 1,
                          b->label[j]);
        dsc_put_paragraph(w, c, (double)name + 2, top + (double)j, c->width, DSC_FONT_BODY, DSC_INK,
                          1, bar);
        dsc_buffer_fini(&value);
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

static void put_labels(dsc_writer *w, const dsc_canvas *c, const bars *b, const dsc_axis *a,
                       double left, double top, double right, double slot)
{
    for (size_t j = 0; j < b->bars; j++) {
        double y = top + (double)j * slot, v = value_of(b, b->best[j], b->value);
        double name = ((double)dsc_text_length(b->label[j]) + 2) * c->char_width;
        dsc_buffer value = {0};
        dsc_writer text = {.to = &value, .err = w->err};
        put_value(&text, b, j);
        dsc_put_paragraph(w, c, left, y, c->width - left, DSC_FONT_BODY, DSC_INK, 1, b->label[j]);
        if (b->with[j][0] && left + name + 8 * c->char_width < c->width)
            dsc_put_paragraph(w, c, left + name, y, c->width - left - name - 4, DSC_FONT_SMALL,
                              DSC_INK_SOFT, 1, b->with[j]);
        double end = fmax(isnan(v) ? 0 : v, value_of(b, b->best[j], b->high)); // passes over NaN
        double x = left + (fmax(end, 0) - a->lo) / (a->hi - a->lo) * (right - left);
        if (!text.rc)
            dsc_put_paragraph(w, c, x + 6, y + 0.71 * slot - c->line_height / 2, c->width,
                              DSC_FONT_BODY, DSC_INK, 1, value.data);
        dsc_buffer_fini(&value);
    }
}

static void put_bars(dsc_writer *w, const dsc_canvas *c, const bars *b, double top)
{
    double margin = 12, line = c->line_height;
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
    put_labels(w, c, b, &a, left, top, right, slot);
    for (size_t j = 0; is_ratio(b) && j < b->bars; j++) // not through the labels
        dsc_put(w,
                "set arrow from first 1, first %g to first 1, first %g nohead front lt 1 lw 1.5 "
                "dt (6,4) lc rgb '" DSC_INK_SOFT "'\n",
                (double)j + 0.45, (double)j + 0.97);
    dsc_put(w,
            "plot $bars using 1:7:(0):1:2:3:($4 > 0 ? %d : %d) with boxxyerror fs solid 1 "
            "noborder lc rgb variable notitle",
            0x0072B2, 0x8FBFDD);
    if (b->low >= 0 && b->high >= 0)
        dsc_put(
            w,
            ", \\\n     $bars using 1:7:5:6 with xerrorbars lt 1 lw 1.5 pt 7 ps 0 lc rgb '" DSC_INK
            "' notitle");
    dsc_put(w, "\n");
}

static void put_best(dsc_writer *w, const bars *b)
{
    dsc_put(w, "best ");
    put_value(w, b, b->top);
    dsc_put(w, ": %s%s%s", b->label[b->top], b->with[b->top][0] ? ", " : "", b->with[b->top]);
}

static int compose(const bars *b, const dsc_table *t, const dsc_figure_options *o,
                   const char *terminal, dsc_drawing *out, dsc_error *err)
{
    dsc_canvas c;
    dsc_figure_options mine = *o;
    bool dumb = !strcmp(terminal, "dumb");
    if (dumb && !o->height && b->bars > 19)
        mine.height = (double)b->bars + 5;
    int rc = dsc_canvas_init(&c, terminal, &mine, 720, fmax(220, 150 + 42 * (double)b->bars), err);
    if (rc)
        return rc;
    const char *cost = strcmp(b->column, "speedup") ? NULL : dsc_table_get_comment(t, "cost");
    dsc_key key = {"no speculation", DSC_KEY_REFERENCE};
    dsc_buffer subtitle = {0};
    dsc_writer sub = {.to = &subtitle, .err = err};
    put_best(&sub, b);
    dsc_put(&sub, "%s%s", cost ? "; cost: " : "", cost ? cost : "");
    if (b->low >= 0 && b->high >= 0)
        dsc_put(&sub, "; 95 %% intervals");
    dsc_writer w = {.to = &out->script, .err = err, .rc = sub.rc};
    if (!w.rc) {
        dsc_put_terminal(&w, &c, "methods");
        put_bar_data(&w, b);
        double top = dsc_put_heading(&w, &c, o->title ? o->title : "Best configuration per method",
                                     subtitle.data, NULL, &key, is_ratio(b) && !dumb);
        if (dumb && top + (double)b->bars > c.height)
            dsc_check_room(&w, &c, 0, 0);
        else if (dumb)
            put_dumb(&w, &c, b, top);
        else
            put_bars(&w, &c, b, top + 4);
    }
    dsc_buffer_fini(&subtitle);
    return w.rc;
}

static int put_finding(const bars *b, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w, "Bar chart: %s of the best configuration in each of %zu groups: ",
            dsc_term_title(b->column), b->bars);
    for (size_t j = 0; j < b->bars; j++) {
        dsc_put(&w, "%s%s ", j ? "; " : "", b->label[j]);
        put_value(&w, b, j);
        if (b->with[j][0])
            dsc_put(&w, " (%s)", b->with[j]);
    }
    dsc_put(
        &w,
        ". Each best was selected on the requests shown, so its value is optimistically biased.");
    return w.rc;
}

static int put_data(const bars *b, dsc_table *data, dsc_error *err)
{
    static const dsc_column text[] = {
        {"bar", DSC_CELL_TEXT, "parameters in which the bars differ"},
        {"best_with", DSC_CELL_TEXT, "further parameters of the best configuration"},
    };
    const bool interval = b->low >= 0 && b->high >= 0;
    int rc = dsc_data_columns(data, text, 2, err);
    if (!rc)
        rc = dsc_data_numbers(data, b->column, err);
    if (!rc && interval)
        rc = dsc_data_numbers(data, "low high", err);
    for (size_t j = 0; !rc && j < b->bars; j++) {
        const dsc_cell cell[5] = {
            {.type = DSC_CELL_TEXT, .text = b->label[j]},
            {.type = DSC_CELL_TEXT, .text = b->with[j]},
            {.type = DSC_CELL_REAL, .r = value_of(b, b->best[j], b->value)},
            {.type = DSC_CELL_REAL, .r = value_of(b, b->best[j], b->low)},
            {.type = DSC_CELL_REAL, .r = value_of(b, b->best[j], b->high)},
        };
        rc = dsc_table_add_row(data, cell, err);
    }
    return rc;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    bars b = {.low = -1, .high = -1};
    bool *separate;
    int rc = dsc_new(&separate, t->columns, err);
    if (rc)
        return rc;
    rc = bars_init(&b, separate, t, o, err);
    if (!rc)
        rc = compose(&b, t, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&b, &out->finding, err);
    if (!rc)
        rc = put_data(&b, &out->data, err);
    dsc_selection_fini(&b.selection);
    free(separate);
    return rc;
}

// Whether there are at least two bars. The rows of tune are ranked by its objective, which may be
// another quantity.
static bool fits(const dsc_table *t)
{
    static const dsc_figure_options all = {0};
    bars b = {.low = -1, .high = -1};
    bool *separate;
    if (dsc_table_find(t, "significant") >= 0 || dsc_new(&separate, t->columns, NULL))
        return false;
    bool two = !bars_init(&b, separate, t, &all, NULL) && b.bars > 1;
    dsc_selection_fini(&b.selection);
    free(separate);
    return two;
}

const dsc_figure_type dsc_figure_methods = {
    .name = "methods",
    .summary = "the best configuration of each method and rule as a bar, with its parameters",
    .needs = "method block_efficiency",
    .fits = fits,
    .compares = true,
    .script = script,
};
