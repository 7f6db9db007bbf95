// SPDX-License-Identifier: Apache-2.0
// Groups the rows of a table into lines over one column, chooses at most DSC_STYLES of them, labels
// them by what differs, and finds their best points.
#include "plots/draw/lines.h"

#include "plots/draw/label.h"

#include <math.h>

static double value_of(const dsc_lines *l, size_t group, size_t ix, int column)
{
    return dsc_value_at(l->selection.table, dsc_plot_grid_row(&l->grid, group, ix, 0), column);
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
            double v = value_of(l, g, x, of.y), other;
            if (isnan(v))
                continue;
            c->best[g] = of.less_is_better ? fmin(c->best[g], v) : fmax(c->best[g], v);
            other = best == SIZE_MAX ? v : value_of(l, best, x, of.y);
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
static void choose_lines(dsc_plot *p, dsc_lines *l, dsc_lines_of of)
{
    size_t n = l->groups.groups, even[DSC_STYLES];
    choice c = {.keep = dsc_plot_new(p, bool, n), .best = dsc_plot_new(p, double, n)};
    if (p->rc)
        return;
    if (!of.any) {
        keep_best(l, of, &c);
        keep_of_each(l, of, &c);
    }
    size_t evenly = dsc_thin(n, DSC_STYLES, 0, even);
    for (size_t i = 0; i < evenly; i++)
        keep(&c, even[i]);
    for (size_t g = 0; g < n; g++)
        keep(&c, g);
    for (size_t g = 0; g < n; g++)
        if (c.keep[g])
            l->line[l->lines++] = g;
}

static void label_lines(dsc_plot *p, dsc_lines *l, dsc_lines_of of)
{
    bool *skip = dsc_plot_new(p, bool, of.table->columns);
    if (skip)
        skip[of.x] = true;
    for (size_t i = 0; i < l->lines; i++) {
        l->label[i] =
            dsc_line_label(p, of.table, l->groups.first, l->groups.groups, l->line[i], skip);
        l->key[i] = (dsc_key){l->label[i], (int)i};
    }
}

const char *dsc_left_out(dsc_plot *p, size_t drawn, size_t all, const char *noun, size_t dropped)
{
    dsc_writer *w = dsc_text_begin(p);
    if (drawn < all)
        dsc_put(w, "%zu of %zu %s drawn", drawn, all, noun);
    if (dropped)
        dsc_put(w, "%s%zu row%s of other methods left out", drawn < all ? "; " : "", dropped,
                dropped == 1 ? "" : "s");
    return dsc_text_end(p);
}

// Drops the rows without an x; a group without any has no line.
static void drop_empty(dsc_plot *p, dsc_selection *s, int x)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->rows; i++)
        if (!isnan(dsc_value_at(s->table, s->row[i], x)))
            s->row[kept++] = s->row[i];
    s->rows = kept;
    if (!p->rc && !kept)
        dsc_refuse(p, "column '%s' has no numbers", s->table->column[x].name);
}

void dsc_lines_init(dsc_plot *p, dsc_lines *l, dsc_lines_of of)
{
    *l = (dsc_lines){.selection = dsc_select(p, of.table, of.options, NULL)};
    drop_empty(p, &l->selection, of.x);
    l->groups = dsc_group(p, &l->selection, of.x, -1);
    l->grid = dsc_grid(p, &l->selection, &l->groups, of.x, -1);
    l->x = l->grid.x;
    l->nx = l->grid.nx;
    choose_lines(p, l, of);
    label_lines(p, l, of);
    l->note = dsc_left_out(p, l->lines, l->groups.groups, of.noun, l->selection.dropped);
    l->value = dsc_lines_values(p, l, of.y);
    if (!p->rc)
        dsc_check_any(p, l->value, l->lines * l->nx, of.table->column[of.y].name);
}

double *dsc_lines_values(dsc_plot *p, const dsc_lines *l, int column)
{
    double *v = dsc_plot_new(p, double, l->lines * l->nx);
    for (size_t i = 0; v && i < l->lines * l->nx; i++)
        v[i] = value_of(l, l->line[i / l->nx], i % l->nx, column);
    return v;
}

void dsc_lines_data(dsc_plot *p, const dsc_lines *l, const char *x, const char *const *column,
                    double *const *value, size_t values)
{
    dsc_data_text(p, "line", "parameters of the line");
    dsc_data_number(p, x, NULL);
    for (size_t j = 0; j < values; j++)
        dsc_data_number(p, column[j], NULL);
    for (size_t i = 0; i < l->lines * l->nx; i++) {
        double number[DSC_DATA_COLUMNS] = {l->x[i % l->nx]};
        const char *label = l->label[i / l->nx];
        bool any = false;
        for (size_t j = 0; j < values; j++) {
            number[1 + j] = value[j][i];
            any = any || !isnan(value[j][i]);
        }
        if (any)
            dsc_data_row(p, &(const char *){*label ? label : "all"}, number);
    }
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

void dsc_check_any(dsc_plot *p, const double *v, size_t n, const char *column)
{
    if (!p->rc && dsc_best_of(v, n, false) == SIZE_MAX)
        dsc_refuse(p, "column '%.60s' has no finite number to draw", column);
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

const char *dsc_label_best(dsc_plot *p, const char *label, const dsc_bests *b, size_t j,
                           const double *x, size_t nx)
{
    if (b->best[j] == SIZE_MAX || nx == 1)
        return label;
    return dsc_text(p, "%s%s(%g%s)", label, *label ? " " : "", x[b->best[j]],
                    b->last[j] ? "+" : "");
}
