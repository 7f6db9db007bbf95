// SPDX-License-Identifier: Apache-2.0
// Triggers, accepted tokens and decoding steps per request against copy length k, a line per
// match length n: Figure 4 of LLMA (Yang et al., 2023, arXiv 2304.04487, section 3.5).
#include "plots/draw/panel.h"
#include "plots/draw/series.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTITIES = 3 };

// The paper's words, and the table's where they differ.
static const struct {
    const char *column, *label, *short_name;
} quantity[QUANTITIES] = {
    {"triggers_per_request", "triggers (drafts) per request", "triggers"},
    {"accepted_per_request", "accepted tokens per request (bonus excluded)", "accepted tokens"},
    {"steps_per_request", "decoding steps (target calls) per request", "decoding steps"},
};

// "triggers 12.1 to 42.8, ..." over everything drawn.
static int put_finding(const dsc_series *s, double *const *value, dsc_buffer *to, dsc_error *err)
{
    size_t count = s->groups.groups * s->lines * s->grid.nx;
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w,
            "Three line charts against copy length k (%g to %g), a line per match length n (%g "
            "to %g), per request: ",
            s->grid.x[0], s->grid.x[s->grid.nx - 1], s->grid.y[0], s->grid.y[s->grid.ny - 1]);
    for (int q = 0; q < QUANTITIES; q++) {
        double lo = INFINITY, hi = -INFINITY;
        size_t least = 0;
        for (size_t i = 0; i < count; i++) {
            hi = fmax(hi, value[q][i]); // fmin and fmax pass over NaN
            least = value[q][i] < lo ? i : least;
            lo = fmin(lo, value[q][i]);
        }
        dsc_put(&w, "%s%s %.1f to %.1f", q ? ", " : "", quantity[q].short_name, lo, hi);
        const char *group = s->groups.label[least / s->grid.nx / s->lines];
        if (q == QUANTITIES - 1)
            dsc_put(&w, ", fewest steps at n = %s, k = %g%s%s",
                    s->label[least / s->grid.nx % s->lines], s->grid.x[least % s->grid.nx],
                    group[0] ? ", " : "", group);
    }
    dsc_put(&w, ".");
    return w.rc;
}

static int compose(const dsc_series *s, const dsc_figure_options *o, const char *terminal,
                   double *const *value, dsc_drawing *out, dsc_error *err)
{
    size_t groups = s->groups.groups;
    bool narrow = o->width > 0 && o->width < 520;
    dsc_canvas canvas;
    int rc = dsc_canvas_init(
        &canvas, terminal, o, 1080,
        (narrow ? 110 + 230 * QUANTITIES * (double)groups : 100 + 300 * (double)groups), err);
    if (rc)
        return rc;
    dsc_panel panel[DSC_PANEL_GROUPS * QUANTITIES];
    for (size_t i = 0; i < groups * QUANTITIES; i++) {
        size_t group = i / QUANTITIES, q = i % QUANTITIES;
        // Side by side, the group is named once in its row; stacked, above every panel.
        panel[i] = (dsc_panel){q && !canvas.narrow ? "" : s->groups.label[group], quantity[q].label,
                               value[q] + group * s->lines * s->grid.nx, (int)q};
    }
    dsc_panels p = {
        .title = o->title ? o->title : "Decoding statistics by copy length and match length",
        .subtitle = s->note,
        .x_label = "copy length k (tokens)",
        .key_title = "match length n:",
        .x = s->grid.x,
        .nx = s->grid.nx,
        .key = s->key,
        .lines = s->lines,
        .panel = panel,
        .panels = groups * QUANTITIES,
        .columns = QUANTITIES,
        .best_panel = SIZE_MAX,
    };
    dsc_writer w = {.to = &out->script, .err = err};
    dsc_put_panels(&w, &canvas, "llma_stats", &p);
    return w.rc ? w.rc : put_finding(s, value, &out->finding, err);
}

static bool any_finite(const double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (isfinite(v[i]))
            return true;
    return false;
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    int column[6]; // k n requests, then the three counts
    dsc_series s;
    double *value[QUANTITIES] = {NULL};
    const char *name[QUANTITIES];
    int rc = dsc_need_columns(t, "llma-stats", dsc_figure_llma_stats.needs, column, err);
    if (!rc)
        rc = dsc_series_init(&s, t, o, column[0], column[1], err);
    if (rc)
        return rc;
    for (int q = 0; q < QUANTITIES; q++) {
        name[q] = quantity[q].column;
        if (!rc)
            rc = dsc_series_values(&s, column[3 + q], column[2], &value[q], err);
        if (!rc && !any_finite(value[q], s.groups.groups * s.lines * s.grid.nx))
            rc = dsc_fail(err, DSC_EUSAGE,
                          "%s: no finite number to draw (column '%s' over 'requests')",
                          quantity[q].short_name, t->column[column[3 + q]].name);
    }
    if (!rc)
        rc = compose(&s, o, terminal, value, out, err);
    if (!rc)
        rc = dsc_series_data(&s, name, value, QUANTITIES, &out->data, err);
    for (int q = 0; q < QUANTITIES; q++)
        free(value[q]);
    dsc_series_fini(&s);
    return rc;
}

const dsc_figure_type dsc_figure_llma_stats = {
    .name = "llma-stats",
    .summary = "triggers, accepted tokens and target calls per request against k (LLMA Figure 4)",
    .needs = "num_speculative_tokens n requests num_drafts_started num_accepted_tokens target_calls",
    .script = script,
};
