// SPDX-License-Identifier: Apache-2.0
// Draws the speedup of parallel drafting by window (PEARL, Liu et al. 2024, arXiv 2408.11850), one
// line per acceptance rate and speed ratio. The best window is marked: the ratio (Theorem 1), or
// the better of its two neighboring integers. A table of published figures is drawn as predicted
// and published tokens per second by window, one panel per pair of models.
#include "plots/draw/data.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PANELS = 6, FILTERS = 32, PREDICTED = 0, PUBLISHED, SIDES };

// The lines of either kind of table.
typedef struct windows {
    dsc_selection selection;
    dsc_groups groups;           // lines, or panels of a published table
    size_t line[DSC_STYLES + 1]; // group of each line
    size_t lines, panels;
    double *x;
    size_t nx;
    double *value; // [panels][lines][nx]
    double mark[DSC_STYLES];
    char label[DSC_STYLES][160], group[PANELS][160];
    const char *kind; // form or quantity of the rows, owned by the table
    dsc_key key[DSC_STYLES];
    dsc_panel panel[PANELS];
} windows;

static void windows_fini(windows *d)
{
    free(d->x);
    free(d->value);
    dsc_groups_fini(&d->groups);
    dsc_selection_fini(&d->selection);
}

// Returns `value` if a row has it, else the value of the first row.
static const char *value_or_first(const dsc_table *t, const char *column, const char *value)
{
    int c = dsc_table_find(t, column);
    if (c < 0 || t->column[c].type != DSC_CELL_TEXT || !t->rows)
        return value;
    for (size_t i = 0; i < t->rows; i++)
        if (!strcmp(dsc_table_at(t, i, (size_t)c)->text, value))
            return value;
    return dsc_table_at(t, 0, (size_t)c)->text;
}

// Selects by the user's filters, and by `column` = `value` unless a filter names that column or no
// row has the value.
static int select_rows(windows *d, const dsc_table *t, const dsc_figure_options *o,
                       const char *column, const char *value, dsc_error *err)
{
    dsc_figure_filter filter[FILTERS];
    dsc_figure_options mine = *o;
    bool named = dsc_table_find(t, column) < 0;
    if (o->filters >= FILTERS)
        return dsc_fail(err, DSC_EUSAGE, "more than %d filters", FILTERS - 1);
    for (size_t i = 0; i < o->filters; i++) {
        filter[i] = o->filter[i];
        named = named || !strcmp(o->filter[i].column, column);
    }
    if (!named)
        filter[mine.filters++] = (dsc_figure_filter){column, value_or_first(t, column, value)};
    mine.filter = filter;
    return dsc_select(&d->selection, t, &mine, NULL, err);
}

// Writes the values of a group to line[nx]; NaN where there is no row.
static int fill_line(const windows *d, size_t group, int window, int column, double *line,
                     dsc_error *err)
{
    const dsc_table *t = d->selection.table;
    for (size_t i = 0; i < d->nx; i++)
        line[i] = NAN;
    for (size_t r = 0; r < d->selection.rows; r++) {
        size_t row = d->selection.row[r];
        double at = dsc_table_real(t, row, (size_t)window);
        double v = dsc_table_real(t, row, (size_t)column);
        for (size_t i = 0; d->groups.of[r] == group && i < d->nx; i++) {
            if (d->x[i] != at || !dsc_drawable(v))
                continue;
            if (!isnan(line[i]))
                return dsc_fail(err, DSC_EUSAGE,
                                "two rows have the same configuration (window = %g)", at);
            line[i] = v;
        }
    }
    return DSC_OK;
}

static double group_real(const windows *d, size_t group, const char *column)
{
    return dsc_number_at(d->selection.table, d->groups.first[group], column);
}

static int start(windows *d, const dsc_table *t, const dsc_figure_options *o, int window,
                 const char *column, const char *value, dsc_error *err)
{
    int rc = select_rows(d, t, o, column, value, err);
    if (!rc)
        rc = dsc_group(&d->groups, &d->selection, (int[]){window, -1}, err);
    if (!rc)
        rc = dsc_distinct(&d->selection, window, &d->x, &d->nx, err);
    if (!rc && !d->nx)
        rc = dsc_fail(err, DSC_EUSAGE, "column 'window' has no numbers");
    return rc;
}

// Whether the lines differ in both parameters; then thinning them would mislead.
static bool two_parameters(const windows *d)
{
    bool alpha = false, ratio = false;
    for (size_t g = 1; g < d->groups.groups; g++) {
        alpha = alpha || group_real(d, g, "alpha") != group_real(d, 0, "alpha");
        ratio = ratio || group_real(d, g, "ratio") != group_real(d, 0, "ratio");
    }
    return alpha && ratio;
}

// The value of text column `name`, which is the same in all selected rows: they are filtered by it.
static const char *kind_of(const windows *d, const char *name, const char *otherwise)
{
    const char *kind = dsc_text_at(d->selection.table, d->selection.row[0], name);
    return *kind ? kind : otherwise;
}

// Places a tick at the best window of each line, only one if lines share it.
static void mark_best(windows *d)
{
    for (size_t j = 0; j < d->lines; j++) {
        double best = group_real(d, d->line[j], "best_window");
        d->mark[j] = best >= d->x[0] && best <= d->x[d->nx - 1] ? best : NAN; // NaN for NaN
        for (size_t k = 0; k < j; k++)
            if (d->mark[k] == best)
                d->mark[j] = NAN;
    }
}

// Reads a table of the closed form: one line per group.
static int read_closed_form(windows *d, const dsc_table *t, const dsc_figure_options *o, int window,
                            dsc_error *err)
{
    int speedup, rc = dsc_need_column(t, "pearl-window", "speedup", &speedup, err);
    if (!rc)
        rc = start(d, t, o, window, "form", "pearl", err);
    if (!rc && two_parameters(d))
        rc = dsc_check_groups(&d->groups, DSC_STYLES, err);
    if (rc)
        return rc;
    d->kind = kind_of(d, "form", "pearl");
    d->lines = dsc_thin(d->groups.groups, DSC_STYLES, d->groups.groups - 1, d->line);
    d->panels = 1;
    rc = dsc_new(&d->value, d->lines * d->nx, err);
    for (size_t j = 0; j < d->lines && !rc; j++) {
        const char *label = d->groups.label[d->line[j]];
        double *v = d->value + j * d->nx;
        snprintf(d->label[j], sizeof d->label[j], "%.150s", label[0] ? label : "speedup");
        d->key[j] = (dsc_key){d->label[j], (int)j};
        rc = fill_line(d, d->line[j], window, speedup, v, err);
    }
    if (!rc)
        rc = dsc_check_any(d->value, d->lines * d->nx, "speedup", err);
    mark_best(d);
    d->panel[0] = (dsc_panel){"", "speedup over decoding without speculation", d->value, 0};
    return rc;
}

static const char *unit_of(const char *quantity)
{
    return !strcmp(quantity, "tokens_per_s") ? "tokens per second" : quantity;
}

// Reads a table of published figures: one panel per pair of models, with a predicted and a
// published line.
static int read_published(windows *d, const dsc_table *t, const dsc_figure_options *o, int window,
                          dsc_error *err)
{
    int column[4]; // pair quantity predicted published
    int rc = dsc_need_columns(t, "pearl-window", "pair quantity predicted published", column, err);
    if (!rc)
        rc = dsc_need_text(t, "pearl-window", "pair", &column[0], err);
    if (!rc)
        rc = start(d, t, o, window, "quantity", "tokens_per_s", err);
    if (!rc)
        rc = dsc_check_groups(&d->groups, PANELS, err);
    if (rc)
        return rc;
    d->lines = SIDES;
    d->panels = d->groups.groups;
    d->kind = kind_of(d, "quantity", "tokens_per_s");
    d->key[PREDICTED] = (dsc_key){"predicted", 0};
    d->key[PUBLISHED] = (dsc_key){"published", 1};
    rc = dsc_new(&d->value, d->panels * SIDES * d->nx, err);
    for (size_t g = 0; g < d->panels && !rc; g++) {
        double *side = d->value + g * SIDES * d->nx, ratio = group_real(d, g, "ratio");
        const char *pair = dsc_table_at(t, d->groups.first[g], (size_t)column[0])->text;
        rc = fill_line(d, g, window, column[2], side, err);
        if (!rc)
            rc = fill_line(d, g, window, column[3], side + d->nx, err);
        if (isnan(ratio))
            snprintf(d->group[g], sizeof d->group[g], "%.100s", pair);
        else
            snprintf(d->group[g], sizeof d->group[g], "%.100s (%.2f)", pair, ratio);
        d->panel[g] = (dsc_panel){d->group[g], unit_of(d->kind), side, 0};
    }
    return rc ? rc : dsc_check_any(d->value, d->panels * SIDES * d->nx, "predicted", err);
}

static int put_finding(const windows *d, bool published, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    dsc_put(&w, "Line chart: %s by window (%g to %g)",
            published                         ? "PEARL, predicted and published,"
            : !strcmp(d->kind, "speculative") ? "speedup of speculative decoding"
                                              : "speedup of parallel drafting",
            d->x[0], d->x[d->nx - 1]);
    for (size_t i = 0; i < d->panels * d->lines; i++) {
        const double *v = d->value + i * d->nx;
        size_t best = dsc_best_of(v, d->nx, false);
        const char *name = published ? d->group[i / SIDES] : d->label[i];
        if (best == SIZE_MAX)
            continue;
        dsc_put(&w, "%s %s%s%s best %.*f at %g", i ? ";" : ":", name, published ? ", " : "",
                published ? d->key[i % SIDES].label : "", published ? 1 : 2, v[best], d->x[best]);
    }
    dsc_put(&w, ".");
    return w.rc;
}

static int put_data(const windows *d, bool published, dsc_table *data, dsc_error *err)
{
    size_t step = published ? SIDES : 1;
    int rc = dsc_table_add_column(data, published ? "pair" : "line", DSC_CELL_TEXT, NULL, err);
    if (!rc)
        rc = dsc_data_numbers(data, published ? "window predicted published" : "window speedup",
                              err);
    for (size_t i = 0; i < d->panels * d->lines; i += step)
        for (size_t j = 0; j < d->nx && !rc; j++) {
            const double *v = d->value + i * d->nx;
            const double number[] = {d->x[j], v[j], published ? v[d->nx + j] : NAN};
            if (!isnan(number[1]) || !isnan(number[2]))
                rc = dsc_data_row(data, published ? d->group[i / SIDES] : d->label[i], number,
                                  1 + step, err);
        }
    return rc;
}

static int compose(const windows *d, bool published, const dsc_figure_options *o,
                   const char *terminal, dsc_drawing *out, dsc_error *err)
{
    bool narrow = dsc_is_narrow(o, terminal);
    double rows = (double)(narrow ? d->panels : (d->panels + 2) / 3), keys = (double)d->lines;
    bool speculative = !published && !strcmp(d->kind, "speculative");
    bool pearl = !published && !strcmp(d->kind, "pearl");
    char note[160] = "in parentheses: target time over draft time, the best window (Theorem 1)",
         of[96];
    int used = 0;
    double height = published ? (narrow ? 110 : 90) + (narrow ? 230 : 290) * rows
                              : 440 + (narrow ? 18 * keys : 9 * keys);
    if (!published)
        used = snprintf(note, sizeof note, "ticks at the top: best %s%s",
                        speculative ? "lengths" : "windows",
                        pearl ? " (Theorem 1: next to the ratio)" : "");
    if (!published && d->lines < d->groups.groups)
        snprintf(note + used, sizeof note - (size_t)used, "; %zu of %zu lines drawn", d->lines,
                 d->groups.groups);
    snprintf(of, sizeof of, "Speedup of parallel drafting by window%s%.40s", pearl ? "" : ", ",
             pearl ? "" : d->kind);
    dsc_panels p = {
        .title = published     ? "PEARL by window: predicted and published"
                 : speculative ? "Speedup of speculative decoding by draft length"
                               : of,
        .subtitle = note,
        .x_label = published     ? "window (draft tokens)"
                   : speculative ? "draft length (tokens per target call)"
                                 : "window (draft tokens per iteration)",
        .x = d->x,
        .nx = d->nx,
        .key = d->key,
        .lines = d->lines,
        .panel = d->panel,
        .panels = d->panels,
        .columns = d->panels < 3 ? d->panels : 3,
        .reference_label = published ? NULL : "no speculation",
        .mark = published ? NULL : d->mark,
    };
    return dsc_draw_panels(&p, "pearl_window", o, terminal, published && d->panels > 1 ? 1000 : 720,
                           height, &out->script, err);
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    windows d = {.lines = 0};
    bool published = dsc_table_find(t, "published") >= 0;
    int window, rc = dsc_need_column(t, "pearl-window", "window", &window, err);
    if (!rc)
        rc = published ? read_published(&d, t, o, window, err)
                       : read_closed_form(&d, t, o, window, err);
    if (!rc)
        rc = compose(&d, published, o, terminal, out, err);
    if (!rc)
        rc = put_finding(&d, published, &out->finding, err);
    if (!rc)
        rc = put_data(&d, published, &out->data, err);
    windows_fini(&d);
    return rc;
}

const dsc_figure_type dsc_figure_pearl_window = {
    .name = "pearl-window",
    .summary = "speedup of parallel drafting (PEARL) by window, the optimum marked",
    .needs = "alpha ratio window",
    .script = script,
};
