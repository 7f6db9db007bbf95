// SPDX-License-Identifier: Apache-2.0
// Draws speedup, or tokens per second, by batch size, one line per configuration. Verification is
// nearly free while a forward pass is memory-bound and costs its full price once it is
// compute-bound; the batch sizes beyond which speculation slows decoding down are marked.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct batches {
    dsc_lines lines;
    const char *column;
    double *value;           // [lines][nx]
    double even[DSC_STYLES]; // break-even: batch size at which a line falls below 1, NaN: none
    bool falls;              // some line has a break-even
    char label[DSC_STYLES][DSC_LINE_LABEL + 32];
    dsc_key key[DSC_STYLES];
} batches;

static bool is_speedup(const batches *b)
{
    return !strcmp(b->column, "speedup");
}

// The size at which v falls from 1 or above to below 1 for the last time, interpolated over
// log(size); NaN if v ends at 1 or above, or never reaches 1.
static double break_even(const double *x, const double *v, size_t n)
{
    double even = NAN, from = NAN, at = NAN;
    for (size_t i = 0; i < n; i++) {
        if (isnan(v[i]))
            continue;
        if (from >= 1 && v[i] < 1)
            even = at * pow(x[i] / at, (from - 1) / (from - v[i]));
        else if (v[i] >= 1)
            even = NAN;
        from = v[i];
        at = x[i];
    }
    return even;
}

static void find_even(batches *b)
{
    size_t nx = b->lines.nx;
    for (size_t j = 0; j < b->lines.lines; j++) {
        const char *name = b->lines.label[j];
        b->even[j] = is_speedup(b) ? break_even(b->lines.x, b->value + j * nx, nx) : NAN;
        b->falls = b->falls || !isnan(b->even[j]);
        if (isnan(b->even[j]))
            snprintf(b->label[j], sizeof b->label[j], "%s", name);
        else
            snprintf(b->label[j], sizeof b->label[j], "%s%s(%.3g)", name, *name ? " " : "",
                     b->even[j]);
        b->key[j] = (dsc_key){b->label[j], (int)j};
    }
}

static int batches_init(batches *b, const dsc_table *t, const dsc_figure_options *o, dsc_error *err)
{
    int column[2];
    b->column = o->column ? o->column : "speedup";
    int rc = dsc_need_column(t, "batch", "batch", &column[0], err);
    if (!rc)
        rc = dsc_need_column(t, "batch", b->column, &column[1], err);
    if (rc)
        return rc;
    dsc_lines_of of = {.table = t,
                       .x = column[0],
                       .y = column[1],
                       .less_is_better = dsc_term_less_is_better(b->column),
                       .noun = "configurations"};
    rc = dsc_lines_init(&b->lines, of, o, err);
    if (!rc && !(b->lines.x[0] > 0))
        rc = dsc_fail(err, DSC_EUSAGE, "batch: a batch size of %g; it must be greater than 0",
                      b->lines.x[0]);
    if (!rc)
        rc = dsc_lines_values(&b->lines, of.y, &b->value, err);
    if (!rc)
        rc = dsc_check_any(b->value, b->lines.lines * b->lines.nx, b->column, err);
    if (!rc)
        find_even(b);
    return rc;
}

// "draft-model, draft length 4: 2.10 at 1, 0.87 at 256, even at 96"
static void put_line(dsc_writer *w, const batches *b, size_t j)
{
    const double *v = b->value + j * b->lines.nx;
    const char *name = b->lines.label[j];
    size_t first = 0, last = b->lines.nx;
    while (first < b->lines.nx && isnan(v[first]))
        first++;
    while (last && isnan(v[last - 1]))
        last--;
    if (!last)
        return;
    dsc_put(w, "%s%s%.4g at %g", name, *name ? ": " : "", v[first], b->lines.x[first]);
    if (last - 1 > first)
        dsc_put(w, ", %.4g at %g", v[last - 1], b->lines.x[last - 1]);
    if (!isnan(b->even[j]))
        dsc_put(w, ", break-even at %.3g", b->even[j]);
    else if (is_speedup(b) && v[last - 1] >= 1)
        dsc_put(w, ", no break-even in this range");
}

static int put_finding(const batches *b, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w, "Line chart: %s by batch size (%g to %g). ", dsc_term_title(b->column),
            b->lines.x[0], b->lines.x[b->lines.nx - 1]);
    for (size_t j = 0; j < b->lines.lines; j++) {
        dsc_put(&w, "%s", j ? "; " : "");
        put_line(&w, b, j);
    }
    dsc_put(&w, ".");
    return w.rc;
}

static int compose(const batches *b, const dsc_table *t, const dsc_figure_options *o,
                   const char *terminal, dsc_drawing *out, dsc_error *err)
{
    char heading[100], title[128];
    double height = (dsc_is_narrow(o, terminal) ? 420 : 460) + 10 * (double)b->lines.lines;
    const char *cost = dsc_table_get_comment(t, "cost");
    dsc_buffer subtitle = {0}, label = {0};
    dsc_writer sub = {.to = &subtitle, .err = err}, y = {.to = &label, .err = err};
    dsc_put(&sub, "%s%s%s",
            b->falls ? "ticks and parentheses: break-even batch size (interpolated)" : "",
            b->falls && b->lines.note[0] ? "; " : "", b->lines.note);
    dsc_put(&y, "%s",
            is_speedup(b) ? "speedup over the same batch without speculation"
                          : dsc_term_title(b->column));
    if (cost)
        dsc_put(&y, " (cost: %s)", cost);
    dsc_term_heading(b->column, heading, sizeof heading);
    snprintf(title, sizeof title, "%s by batch size", heading);
    dsc_panel panel = {"", label.data, b->value, 0};
    dsc_panels p = {
        .title = title,
        .subtitle = subtitle.data,
        .x_label = dsc_term_title("batch"),
        .x = b->lines.x,
        .nx = b->lines.nx,
        .key = b->key,
        .lines = b->lines.lines,
        .panel = &panel,
        .panels = 1,
        .log_x = true,
        .reference_label = is_speedup(b) ? "no speculation" : NULL,
        .mark = b->even,
    };
    int rc = sub.rc ? sub.rc : y.rc;
    if (!rc)
        rc = dsc_draw_panels(&p, "batch", o, terminal, 720, height, &out->script, err);
    dsc_buffer_fini(&subtitle);
    dsc_buffer_fini(&label);
    return rc;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    batches b = {.column = NULL};
    int rc = batches_init(&b, t, o, err);
    if (!rc)
        rc = compose(&b, t, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&b, &out->finding, err);
    if (!rc)
        rc = dsc_lines_data(&b.lines, "batch", &b.column, &b.value, 1, &out->data, err);
    free(b.value);
    dsc_lines_fini(&b.lines);
    return rc;
}

// Whether there are several batch sizes.
static bool fits(const dsc_table *t)
{
    int c = dsc_table_find(t, "batch");
    for (size_t i = 1; c >= 0 && i < t->rows; i++)
        if (!dsc_same_cell(dsc_table_at(t, 0, (size_t)c), dsc_table_at(t, i, (size_t)c)))
            return true;
    return false;
}

const dsc_figure_type dsc_figure_batch = {
    .name = "batch",
    .summary = "speedup by batch size, one line per configuration, break-even marked",
    .needs = "batch speedup",
    .fits = fits,
    .script = script,
};
