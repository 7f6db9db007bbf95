// SPDX-License-Identifier: Apache-2.0
// Draws speedup, or tokens per second, by batch size: of each method and rule, the best
// configuration at each batch size, whatever its draft length. Verification is nearly free while a
// forward pass is memory-bound and costs its full price once it is compute-bound; the batch sizes
// beyond which speculation slows decoding down are marked.
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/envelope.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

typedef struct batches {
    dsc_envelope lines;
    const char *note; // what is left out
    const char *column;
    double even[DSC_STYLES]; // break-even: batch size at which a line falls below 1, NaN: none
    bool falls;              // some line has a break-even
    dsc_key key[DSC_STYLES]; // with the break-even in parentheses
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

static void find_even(dsc_plot *p, batches *b)
{
    size_t nx = b->lines.nx;
    for (size_t j = 0; j < b->lines.lines; j++) {
        const char *name = b->lines.label[j];
        b->even[j] = is_speedup(b) ? break_even(b->lines.x, b->lines.value + j * nx, nx) : NAN;
        b->key[j] = (dsc_key){name, (int)j};
        if (isnan(b->even[j]))
            continue;
        b->falls = true;
        b->key[j].label = dsc_text(p, "%s%s(%.3g)", name, *name ? " " : "", b->even[j]);
    }
}

static void read_batches(dsc_plot *p, batches *b)
{
    b->column = p->options->column ? p->options->column : "speedup";
    int x = dsc_need(p, "batch", DSC_ANYTHING), y = dsc_need(p, b->column, DSC_ANYTHING);
    dsc_selection s = dsc_select(p, p->table, p->options, NULL);
    if (!p->rc)
        dsc_envelope_init(p, &b->lines, &s, x, y, -1, dsc_term_less_is_better(b->column));
    b->note = dsc_left_out(p, b->lines.lines, b->lines.methods, "lines", s.dropped);
    if (!p->rc && !(b->lines.x[0] > 0))
        dsc_refuse(p, "batch: a batch size of %g; it must be greater than 0", b->lines.x[0]);
    if (!p->rc)
        find_even(p, b);
}

// "draft-model, draft length 4: 2.10 at 1, 0.87 at 256, even at 96"
static void put_line(dsc_writer *w, const batches *b, size_t j)
{
    const double *v = b->lines.value + j * b->lines.nx;
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

static void put_finding(dsc_writer *w, const batches *b)
{
    dsc_put(w, "Line chart: %s by batch size (%g to %g). ", dsc_term_title(b->column),
            b->lines.x[0], b->lines.x[b->lines.nx - 1]);
    for (size_t j = 0; j < b->lines.lines; j++) {
        dsc_put(w, "%s", j ? "; " : "");
        put_line(w, b, j);
    }
    dsc_put(w, ".");
}

static const char *subtitle_of(dsc_plot *p, const batches *b)
{
    const char *part[] = {
        b->lines.several ? "best configuration of each method at each batch size" : "",
        b->falls ? "ticks and parentheses: break-even batch size (interpolated)" : "", b->note};
    const char *separator = "";
    dsc_writer *w = dsc_text_begin(p);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (*part[i]) {
            dsc_put(w, "%s%s", separator, part[i]);
            separator = "; ";
        }
    return dsc_text_end(p);
}

// One row per point, with the configuration that is best there.
static void put_data(dsc_plot *p, const batches *b)
{
    dsc_data_text(p, "line", "method and rule");
    dsc_data_text(p, "best_with", "further parameters of the best configuration");
    dsc_data_number(p, "batch", NULL);
    dsc_data_number(p, b->column, NULL);
    for (size_t i = 0; i < b->lines.lines * b->lines.nx; i++) {
        const char *label = b->lines.label[i / b->lines.nx], *with = b->lines.detail[i];
        if (!isnan(b->lines.value[i]))
            dsc_data_row(p, (const char *[]){*label ? label : "all", with ? with : ""},
                         (double[]){b->lines.x[i % b->lines.nx], b->lines.value[i]});
    }
}

static void draw(dsc_plot *plot)
{
    batches b = {.column = NULL};
    read_batches(plot, &b);
    if (plot->rc)
        return;
    double height = (dsc_is_narrow(plot) ? 420 : 460) + 10 * (double)b.lines.lines;
    const char *cost = dsc_table_get_comment(plot->table, "cost");
    const char *y = is_speedup(&b) ? "speedup over the same batch without speculation"
                                   : dsc_term_title(b.column);
    dsc_panel panel = {"", cost ? dsc_text(plot, "%s (cost: %s)", y, cost) : y, b.lines.value, 0};
    dsc_panels p = {
        .title = dsc_text(plot, "%s by batch size", dsc_term_heading(plot, b.column)),
        .subtitle = subtitle_of(plot, &b),
        .x_label = dsc_term_title("batch"),
        .x = b.lines.x,
        .nx = b.lines.nx,
        .key = b.key,
        .lines = b.lines.lines,
        .panel = &panel,
        .panels = 1,
        .log_x = true,
        .reference_label = is_speedup(&b) ? "no speculation" : NULL,
        .mark = b.even,
        .detail = b.lines.detail,
    };
    dsc_draw_panels(plot, &p, "batch", 720, height);
    put_finding(&plot->finding, &b);
    put_data(plot, &b);
}

static bool fits(dsc_plot *p)
{
    return dsc_is_priced(p->table) &&
           dsc_varies(p->table, (size_t)dsc_table_find(p->table, "batch"));
}

const dsc_figure_type dsc_figure_batch = {
    .name = "batch",
    .summary = "speedup by batch size, the best configuration of each method, break-even marked",
    .needs = "batch speedup",
    .fits = fits,
    .draw = draw,
};
