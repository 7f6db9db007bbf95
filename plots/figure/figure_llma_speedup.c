// SPDX-License-Identifier: Apache-2.0
// Speed-up against copy length k, a line per match length n: Figure 3 of LLMA (Yang et al.,
// "Inference with Reference", 2023, arXiv 2304.04487, section 3.5).
#include "plots/draw/panel.h"
#include "plots/draw/series.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>

typedef struct best {
    size_t index; // into [groups][lines][nx]; SIZE_MAX: no finite value
    double value;
} best;

static best find_best(const double *v, size_t count)
{
    best b = {SIZE_MAX, -INFINITY};
    for (size_t i = 0; i < count; i++)
        if (isfinite(v[i]) && v[i] > b.value)
            b = (best){i, v[i]};
    return b;
}

// "best 3.30x at n = 1, k = 32 (semantics = paper)"
static void put_best(dsc_writer *w, const dsc_series *s, best b)
{
    size_t group = b.index / (s->lines * s->grid.nx), line = b.index / s->grid.nx % s->lines;
    dsc_put(w, "best %.2f× at n = %s, k = %g", b.value, s->label[line],
            s->grid.x[b.index % s->grid.nx]);
    if (s->groups.label[group][0])
        dsc_put(w, " (%s)", s->groups.label[group]);
}

static int put_finding(const dsc_series *s, best b, const char *y_label, dsc_buffer *to,
                       dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(
        &w, "Line chart: %s by copy length k (%g to %g), a line per match length n (%g to %g): ",
        y_label, s->grid.x[0], s->grid.x[s->grid.nx - 1], s->grid.y[0], s->grid.y[s->grid.ny - 1]);
    put_best(&w, s, b);
    dsc_put(&w, ". Without speculation the speed-up is 1.");
    return w.rc;
}

static void natural_size(const dsc_series *s, const dsc_figure_options *o, double *width,
                         double *height)
{
    size_t panels = s->groups.groups;
    bool narrow = o->width > 0 && o->width < 520;
    *width = panels > 1 ? 1000 : 720;
    *height = narrow ? 130 + 250 * (double)panels : panels > 2 ? 760 : 460;
}

static int compose(const dsc_series *s, const dsc_table *t, const dsc_figure_options *o,
                   const char *terminal, double *value, dsc_drawing *out, dsc_error *err)
{
    size_t per_panel = s->lines * s->grid.nx;
    best b = find_best(value, s->groups.groups * per_panel);
    if (b.index == SIZE_MAX)
        return dsc_fail(err, DSC_EUSAGE, "column 'speedup' has no finite number to draw");
    double width, height;
    dsc_canvas canvas;
    natural_size(s, o, &width, &height);
    int rc = dsc_canvas_init(&canvas, terminal, o, width, height, err);
    if (rc)
        return rc;
    const char *cost = dsc_table_get_comment(t, "cost");
    dsc_buffer subtitle = {0}, label = {0};
    dsc_writer sub = {.to = &subtitle, .err = err}, y = {.to = &label, .err = err};
    dsc_put(&y, "speed-up over one token per call");
    if (cost)
        dsc_put(&y, " (cost: %s)", cost);
    put_best(&sub, s, b);
    dsc_put(&sub, "%s%s", s->note[0] ? "; " : "", s->note);
    dsc_panel panel[DSC_PANEL_GROUPS];
    for (size_t i = 0; i < s->groups.groups; i++)
        panel[i] = (dsc_panel){s->groups.label[i], label.data, value + i * per_panel, 0};
    dsc_panels p = {
        .title = o->title ? o->title : "Speed-up by copy length and match length",
        .subtitle = subtitle.data,
        .x_label = "copy length k (tokens)",
        .key_title = "match length n:",
        .x = s->grid.x,
        .nx = s->grid.nx,
        .key = s->key,
        .lines = s->lines,
        .panel = panel,
        .panels = s->groups.groups,
        .columns = s->groups.groups > 1 ? 2 : 1,
        .reference_label = "no speculation",
        .best_panel = b.index / per_panel,
        .best_line = b.index / s->grid.nx % s->lines,
        .best_x = b.index % s->grid.nx,
    };
    dsc_writer w = {.to = &out->script, .err = err, .rc = sub.rc ? sub.rc : y.rc};
    if (!w.rc)
        dsc_put_panels(&w, &canvas, "llma_speedup", &p);
    if (!w.rc)
        w.rc = put_finding(s, b, label.data, &out->finding, err);
    dsc_buffer_fini(&subtitle);
    dsc_buffer_fini(&label);
    return w.rc;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    int column[3];
    dsc_series s;
    double *value = NULL;
    int rc = dsc_need_columns(t, "llma-speedup", dsc_figure_llma_speedup.needs, column, err);
    if (!rc)
        rc = dsc_series_init(&s, t, o, column[0], column[1], err);
    if (rc)
        return rc;
    rc = dsc_series_values(&s, column[2], -1, &value, err);
    if (!rc)
        rc = compose(&s, t, o, terminal, value, out, err);
    if (!rc)
        rc = dsc_series_data(&s, (const char *[]){"speedup"}, &value, 1, &out->data, err);
    free(value);
    dsc_series_fini(&s);
    return rc;
}

const dsc_figure_type dsc_figure_llma_speedup = {
    .name = "llma-speedup",
    .summary = "speed-up against copy length k, a line per match length n (LLMA Figure 3)",
    .needs = "num_speculative_tokens n speedup",
    .script = script,
};
