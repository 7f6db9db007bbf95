// SPDX-License-Identifier: Apache-2.0
// Draws a measured cost table: the latency of a forward pass by its number of tokens, one line per
// context length and batch size, in one panel for the target and one for the draft model if the
// table contains it. Verification is free as long as a line is flat.
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 2 };

typedef struct costs {
    dsc_lines lines;
    double *value; // [models][lines][nx], in units of `unit`
    int models;    // target, and the draft model if there is any
    double scale;  // units per second
    const char *unit;
    double hi, spread; // the longest time; the largest ratio of times of one model
} costs;

// Reads the times of both models; the longest time determines the unit.
static int fill(costs *c, const dsc_table *t, dsc_error *err)
{
    static const char *const name[MODELS] = {"target_s", "draft_s"};
    size_t count = c->lines.lines * c->lines.nx;
    double *v = NULL;
    int rc = dsc_new(&c->value, MODELS * count, err);
    for (int m = 0; m < MODELS && !rc; m++) {
        int column = dsc_table_find(t, name[m]);
        if (column < 0)
            continue;
        rc = dsc_lines_values(&c->lines, column, &v, err);
        size_t any = rc ? SIZE_MAX : dsc_best_of(v, count, true);
        double lo = INFINITY, hi = 0;
        for (size_t i = 0; any != SIZE_MAX && i < count; i++) {
            c->value[(size_t)m * count + i] = v[i];
            lo = v[i] > 0 ? fmin(lo, v[i]) : lo;
            hi = v[i] > 0 ? fmax(hi, v[i]) : hi;
        }
        c->hi = fmax(c->hi, hi);
        c->spread = fmax(c->spread, hi / lo);
        c->models = any != SIZE_MAX ? m + 1 : c->models;
        if (!rc && !m)
            rc = dsc_check_any(v, count, "target_s", err);
        free(v);
        v = NULL;
    }
    c->scale = c->hi < 1e-3 ? 1e6 : c->hi < 1 ? 1e3 : 1;
    c->unit = c->hi < 1e-3 ? "µs" : c->hi < 1 ? "ms" : "s";
    for (size_t i = 0; !rc && i < (size_t)c->models * count; i++)
        c->value[i] *= c->scale;
    return rc;
}

static int costs_init(costs *c, const dsc_table *t, const dsc_figure_options *o, dsc_error *err)
{
    int column[2];
    int rc = dsc_need_columns(t, "cost", dsc_figure_cost.needs, column, err);
    dsc_lines_of of = {.table = t, .noun = "lines", .any = true};
    of.x = rc ? 0 : column[0];
    of.y = rc ? 0 : column[1];
    if (!rc)
        rc = dsc_lines_init(&c->lines, of, o, err);
    return rc ? rc : fill(c, t, err);
}

// Writes up to four points of a line: "12.1 ms with 1 token, 1.04 times that with 16, ...".
static void put_line(dsc_writer *w, const costs *c, size_t model, size_t line)
{
    size_t nx = c->lines.nx, chosen[4], n = dsc_thin(nx, 4, 0, chosen);
    const double *v = c->value + (model * c->lines.lines + line) * nx;
    double first = NAN;
    for (size_t i = 0; i < n; i++) {
        double y = v[chosen[i]], x = c->lines.x[chosen[i]];
        if (isnan(y))
            continue;
        if (isnan(first))
            dsc_put(w, "%.3g %s with %g token%s", y, c->unit, x, x == 1 ? "" : "s");
        else
            dsc_put(w, ", %.2f times that with %g", y / first, x);
        first = isnan(first) ? y : first;
    }
}

static int put_finding(const costs *c, dsc_buffer *to, dsc_error *err)
{
    static const char *const model[MODELS] = {"target", "draft model"};
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w, "Line chart%s: latency of a forward pass by its number of tokens (%g to %g)",
            c->models > 1 ? "s" : "", c->lines.x[0], c->lines.x[c->lines.nx - 1]);
    for (size_t m = 0; m < (size_t)c->models; m++)
        for (size_t j = 0; j < c->lines.lines; j++) {
            const char *name = c->lines.label[j];
            dsc_put(&w, "%s%s%s%s: ", m + j ? "; " : ". ", model[m], *name ? ", " : "", name);
            put_line(&w, c, m, j);
        }
    dsc_put(&w, ".");
    return w.rc;
}

static int compose(const costs *c, const dsc_figure_options *o, const char *terminal,
                   dsc_drawing *out, dsc_error *err)
{
    bool narrow = dsc_is_narrow(o, terminal), log_y = c->spread >= 10;
    size_t models = (size_t)c->models, count = c->lines.lines * c->lines.nx;
    double height = (narrow ? 150 + 270 * (double)models : 440) + 10 * (double)c->lines.lines;
    char label[MODELS][64];
    dsc_panel panel[MODELS];
    for (size_t m = 0; m < models; m++) {
        snprintf(label[m], sizeof label[m], "latency of a %s forward pass (%s%s)",
                 m ? "draft" : "target", c->unit, log_y ? ", log scale" : "");
        panel[m] = (dsc_panel){"", label[m], c->value + m * count, (int)m};
    }
    dsc_panels p = {
        .title = "Forward-pass latency by number of tokens",
        .subtitle = c->lines.note,
        .x_label = "tokens per sequence in the forward pass",
        .x = c->lines.x,
        .nx = c->lines.nx,
        .key = c->lines.key,
        .lines = c->lines.lines,
        .panel = panel,
        .panels = models,
        .log_y = log_y,
        .log_x = c->lines.x[0] > 0 && c->lines.x[c->lines.nx - 1] >= 16 * c->lines.x[0],
    };
    return dsc_draw_panels(&p, "cost", o, terminal, models > 1 ? 1000 : 720, height, &out->script,
                           err);
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    costs c = {.models = 0};
    char name[MODELS][16];
    int rc = costs_init(&c, t, o, err);
    if (!rc)
        rc = compose(&c, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&c, &out->finding, err);
    snprintf(name[0], sizeof name[0], "target_%s", c.unit ? c.unit : "");
    snprintf(name[1], sizeof name[1], "draft_%s", c.unit ? c.unit : "");
    if (!rc)
        rc = dsc_lines_data(&c.lines, "tokens", (const char *[]){name[0], name[1]},
                            (double *const[]){c.value, c.value + c.lines.lines * c.lines.nx},
                            (size_t)c.models, &out->data, err);
    free(c.value);
    dsc_lines_fini(&c.lines);
    return rc;
}

const dsc_figure_type dsc_figure_cost = {
    .name = "cost",
    .summary =
        "forward-pass latency by number of tokens, one line per context length and batch size",
    .needs = "tokens target_s",
    .script = script,
};
