// SPDX-License-Identifier: Apache-2.0
// Groups the rows of a table into lines over one column, chooses at most DSC_STYLES of them, labels
// them by what differs, and finds their best points.
#include "plots/draw/lines.h"

#include "plots/draw/data.h"
#include "plots/draw/label.h"

#include <math.h>
#include <stdlib.h>

static int label_lines(dsc_lines *l, int x, dsc_error *err)
{
    const char *const skip[] = {l->selection.table->column[x].name, NULL};
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = err};
    for (size_t i = 0; i < l->lines; i++) {
        b.length = 0;
        dsc_put(&w, "%s", "");
        dsc_put_distinct(&w, l->selection.table, l->groups.first, l->groups.groups, l->line[i],
                         skip);
        if (!w.rc && !b.length)
            dsc_put_method(&w, l->selection.table, l->groups.first[l->line[i]]);
        if (w.rc)
            break;
        snprintf(l->label[i], DSC_LINE_LABEL, "%s", b.data);
        l->key[i] = (dsc_key){l->label[i], (int)i};
    }
    dsc_buffer_fini(&b);
    return w.rc;
}

static int fill_rows(dsc_lines *l, int x, dsc_error *err)
{
    const dsc_table *t = l->selection.table;
    size_t count = 0;
    int rc = __builtin_mul_overflow(l->nx, l->groups.groups, &count) || count > (size_t)1 << 24
                 ? dsc_fail(err, DSC_EUSAGE, "%zu lines of %zu points cannot be drawn",
                            l->groups.groups, l->nx)
                 : dsc_new(&l->row, count, err);
    for (size_t i = 0; !rc && i < count; i++)
        l->row[i] = SIZE_MAX;
    for (size_t i = 0; !rc && i < l->selection.rows; i++) {
        size_t row = l->selection.row[i], at = 0;
        double v = dsc_table_real(t, row, (size_t)x);
        if (!dsc_drawable(v))
            continue;
        while (l->x[at] != v)
            at++;
        size_t *to = &l->row[l->groups.of[i] * l->nx + at];
        if (*to != SIZE_MAX)
            return dsc_fail(err, DSC_EUSAGE,
                            "rows %zu and %zu have the same configuration (%s = %g)", *to + 1,
                            row + 1, t->column[x].name, v);
        *to = row;
    }
    return rc;
}

static double value_at(const dsc_lines *l, size_t group, size_t ix, int column)
{
    size_t row = l->row[group * l->nx + ix];
    double v = row == SIZE_MAX ? NAN : dsc_table_real(l->selection.table, row, (size_t)column);
    return dsc_drawable(v) ? v : NAN;
}

// The groups chosen so far.
typedef struct choice {
    bool *keep; // [groups]
    size_t kept;
    double *best; // [groups] best value over all x
} choice;

static void keep(choice *c, size_t g)
{
    if (!c->keep[g] && c->kept < DSC_STYLES) {
        c->keep[g] = true;
        c->kept++;
    }
}

// Keeps the groups that are best at some x.
static void keep_best(const dsc_lines *l, dsc_lines_of of, choice *c)
{
    size_t n = l->groups.groups;
    for (size_t g = 0; g < n; g++)
        c->best[g] = NAN;
    for (size_t x = 0; x < l->nx; x++) {
        size_t best = SIZE_MAX;
        for (size_t g = 0; g < n; g++) {
            double v = value_at(l, g, x, of.y), other;
            if (isnan(v))
                continue;
            c->best[g] = of.less_is_better ? fmin(c->best[g], v) : fmax(c->best[g], v);
            other = best == SIZE_MAX ? v : value_at(l, best, x, of.y);
            if (best == SIZE_MAX || (of.less_is_better ? v < other : v > other))
                best = g;
        }
        if (best != SIZE_MAX)
            keep(c, best);
    }
}

// Keeps the best group of each combination of text parameters.
static void keep_of_each(const dsc_lines *l, dsc_lines_of of, choice *c)
{
    for (size_t g = 0; g < l->groups.groups; g++) {
        bool beaten = isnan(c->best[g]);
        for (size_t h = 0; h < l->groups.groups && !beaten; h++)
            beaten = (of.less_is_better ? c->best[h] < c->best[g] : c->best[h] > c->best[g]) &&
                     dsc_same_texts(l->selection.table, l->groups.first[g], l->groups.first[h]);
        if (!beaten)
            keep(c, g);
    }
}

// Chooses at most DSC_STYLES groups, in the table's order: those above, then others evenly.
static int choose_lines(dsc_lines *l, dsc_lines_of of, dsc_error *err)
{
    size_t n = l->groups.groups, even[DSC_STYLES];
    choice c = {NULL, 0, NULL};
    int rc = dsc_new(&c.keep, n, err);
    if (!rc)
        rc = dsc_new(&c.best, n, err);
    if (!rc && !of.any) {
        keep_best(l, of, &c);
        keep_of_each(l, of, &c);
    }
    size_t evenly = rc ? 0 : dsc_thin(n, DSC_STYLES, 0, even);
    for (size_t i = 0; i < evenly; i++)
        keep(&c, even[i]);
    for (size_t g = 0; g < n && !rc; g++)
        keep(&c, g);
    for (size_t g = 0; g < n && !rc; g++)
        if (c.keep[g])
            l->line[l->lines++] = g;
    free(c.keep);
    free(c.best);
    return rc;
}

static void put_note(dsc_lines *l, const char *noun)
{
    int used = 0;
    size_t dropped = l->selection.dropped;
    if (l->lines < l->groups.groups)
        used = snprintf(l->note, sizeof l->note, "%zu of %zu %s drawn", l->lines, l->groups.groups,
                        noun);
    if (dropped)
        snprintf(l->note + used, sizeof l->note - (size_t)used,
                 "%s%zu row%s of other methods left out", used ? "; " : "", dropped,
                 dropped == 1 ? "" : "s");
}

// Drops the rows without an x; a group without any has no line.
static int drop_empty(dsc_lines *l, int x, dsc_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->selection.rows; i++)
        if (dsc_drawable(dsc_table_real(l->selection.table, l->selection.row[i], (size_t)x)))
            l->selection.row[kept++] = l->selection.row[i];
    l->selection.rows = kept;
    return kept ? DSC_OK
                : dsc_fail(err, DSC_EUSAGE, "column '%s' has no numbers",
                           l->selection.table->column[x].name);
}

int dsc_lines_init(dsc_lines *l, dsc_lines_of of, const dsc_figure_options *o, dsc_error *err)
{
    *l = (dsc_lines){0};
    int rc = dsc_select(&l->selection, of.table, o, NULL, err);
    if (!rc)
        rc = drop_empty(l, of.x, err);
    if (!rc)
        rc = dsc_group(&l->groups, &l->selection, (int[]){of.x, -1}, err);
    if (!rc)
        rc = dsc_distinct(&l->selection, of.x, &l->x, &l->nx, err);
    if (!rc)
        rc = fill_rows(l, of.x, err);
    if (!rc)
        rc = choose_lines(l, of, err);
    if (!rc)
        rc = label_lines(l, of.x, err);
    if (rc)
        dsc_lines_fini(l);
    else
        put_note(l, of.noun);
    return rc;
}

void dsc_lines_fini(dsc_lines *l)
{
    free(l->x);
    free(l->row);
    dsc_groups_fini(&l->groups);
    dsc_selection_fini(&l->selection);
    *l = (dsc_lines){0};
}

int dsc_lines_values(const dsc_lines *l, int column, double **out, dsc_error *err)
{
    int rc = dsc_new(out, l->lines * l->nx, err);
    for (size_t i = 0; !rc && i < l->lines * l->nx; i++)
        (*out)[i] = value_at(l, l->line[i / l->nx], i % l->nx, column);
    return rc;
}

int dsc_lines_data(const dsc_lines *l, const char *x, const char *const *column,
                   double *const *value, size_t values, dsc_table *data, dsc_error *err)
{
    int rc = dsc_table_add_column(data, "line", DSC_CELL_TEXT, "parameters of the line", err);
    if (!rc)
        rc = dsc_table_add_column(data, x, DSC_CELL_REAL, NULL, err);
    for (size_t j = 0; !rc && j < values; j++)
        rc = dsc_table_add_column(data, column[j], DSC_CELL_REAL, NULL, err);
    for (size_t i = 0; !rc && i < l->lines * l->nx; i++) {
        double number[DSC_DATA_NUMBERS] = {l->x[i % l->nx]};
        const char *label = l->label[i / l->nx];
        bool any = false;
        for (size_t j = 0; j < values; j++) {
            number[1 + j] = value[j][i];
            any = any || !isnan(value[j][i]);
        }
        if (any)
            rc = dsc_data_row(data, *label ? label : "all", number, 1 + values, err);
    }
    return rc;
}

// --- the best points of lines --------------------------------------------------------------

size_t dsc_best_of(const double *v, size_t n, bool less_is_better)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i]) &&
            (best == SIZE_MAX || (less_is_better ? v[i] < v[best] : v[i] > v[best])))
            best = i;
    return best;
}

int dsc_check_any(const double *v, size_t n, const char *column, dsc_error *err)
{
    return dsc_best_of(v, n, false) < SIZE_MAX
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE, "column '%.60s' has no finite number to draw", column);
}

static bool is_last(const double *v, size_t n, size_t best)
{
    for (size_t i = best + 1; i < n; i++)
        if (!isnan(v[i]))
            return false;
    return true;
}

void dsc_find_bests(dsc_bests *b, const double *value, size_t lines, const double *x, size_t nx,
                    bool less_is_better)
{
    double range = x[nx - 1] - x[0];
    *b = (dsc_bests){.rises = false};
    for (size_t j = 0; j < lines; j++) {
        const double *v = value + j * nx;
        size_t best = dsc_best_of(v, nx, less_is_better), same = 0;
        b->best[j] = best;
        b->mark[j] = NAN;
        b->last[j] = best < SIZE_MAX && is_last(v, nx, best);
        b->rises = b->rises || (b->last[j] && nx > 1);
        if (best == SIZE_MAX || b->last[j])
            continue;
        for (size_t k = 0; k < j; k++)
            same += b->best[k] == best && !isnan(b->mark[k]);
        b->mark[j] = x[best] - (double)same * fmin(0.008 * range, 0.04 * fabs(x[best]));
    }
}

void dsc_label_best(char *out, size_t size, const char *label, const dsc_bests *b, size_t j,
                    const double *x, size_t nx)
{
    if (b->best[j] == SIZE_MAX || nx == 1)
        snprintf(out, size, "%s", label);
    else
        snprintf(out, size, "%s%s(%g%s)", label, *label ? " " : "", x[b->best[j]],
                 b->last[j] ? "+" : "");
}
