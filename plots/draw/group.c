// SPDX-License-Identifier: Apache-2.0
// Orders selected rows: the distinct values of a column, groups of rows that differ in the axes
// only, and the grid of each group over two columns.
#include "plots/draw/glossary.h"
#include "plots/draw/select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

size_t dsc_sort_distinct(double *v, size_t n)
{
    size_t kept = 0;
    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0; i < n; i++)
        if (!kept || v[i] != v[kept - 1])
            v[kept++] = v[i];
    return kept;
}

double *dsc_distinct(dsc_plot *p, const dsc_selection *s, int column, size_t *count)
{
    double *v = dsc_plot_new(p, double, s->rows);
    size_t n = 0;
    *count = 0;
    if (p->rc)
        return v;
    for (size_t i = 0; i < s->rows; i++) {
        double x = dsc_table_real(s->table, s->row[i], (size_t)column);
        if (dsc_drawable(x))
            v[n++] = x;
    }
    *count = dsc_sort_distinct(v, n);
    return v;
}

size_t dsc_thin(size_t all, size_t most, size_t keep, size_t *chosen)
{
    size_t n = all < most ? all : most, nearest = 0;
    for (size_t i = 0; i < n; i++) {
        chosen[i] = n < 2 ? 0 : (i * (all - 1) + (n - 1) / 2) / (n - 1);
        if (i + 1 < n && chosen[i] <= keep)
            nearest = i;
    }
    // `keep` replaces the nearest rank below it, unless that is the first.
    if (n < all && chosen[nearest] != keep && keep != all - 1)
        chosen[nearest ? nearest : 1] = keep;
    return n;
}

enum { MOST_GROUPS = 500 };

// Orders rows by their text parameters, then by the axes.
typedef struct order {
    const dsc_table *t;
    int axis[2];
} order;

static int compare_rows(const void *pa, const void *pb, void *context)
{
    const order *o = context;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    for (size_t c = 0; c < o->t->columns; c++) {
        if (o->t->column[c].type != DSC_CELL_TEXT)
            continue;
        int d = strcmp(dsc_table_at(o->t, a, c)->text, dsc_table_at(o->t, b, c)->text);
        if (d)
            return d;
    }
    for (int i = 0; i < 2; i++) {
        if (o->axis[i] < 0)
            continue;
        double x = dsc_table_real(o->t, a, (size_t)o->axis[i]);
        double y = dsc_table_real(o->t, b, (size_t)o->axis[i]);
        if (x != y)
            return (x > y) - (x < y);
    }
    return 0;
}

// Finds the columns that separate groups: every text, and every free numeric parameter. A parameter
// that follows from the others (LLMA's max_match = max(5, n)) is not free: no two rows that agree
// in the texts and the axes differ in it.
static bool *find_splitting(dsc_plot *p, const dsc_selection *s, int x, int y)
{
    const dsc_table *t = s->table;
    bool *splits = dsc_plot_new(p, bool, t->columns);
    size_t *sorted = dsc_plot_new(p, size_t, s->rows);
    order o = {t, {x, y}};
    if (p->rc)
        return NULL;
    memcpy(sorted, s->row, s->rows * sizeof *sorted);
    qsort_r(sorted, s->rows, sizeof *sorted, compare_rows, &o);
    for (size_t c = 0; c < t->columns; c++) {
        splits[c] = t->column[c].type == DSC_CELL_TEXT && dsc_is_parameter(t, c);
        if (splits[c] || !dsc_is_parameter(t, c) || (int)c == x || (int)c == y)
            continue;
        for (size_t i = 1; i < s->rows && !splits[c]; i++)
            splits[c] =
                !compare_rows(&sorted[i - 1], &sorted[i], &o) &&
                !dsc_same_cell(dsc_table_at(t, sorted[i - 1], c), dsc_table_at(t, sorted[i], c));
    }
    return splits;
}

static bool varies(const dsc_selection *s, size_t column)
{
    for (size_t i = 1; i < s->rows; i++)
        if (!dsc_same_cell(dsc_table_at(s->table, s->row[0], column),
                           dsc_table_at(s->table, s->row[i], column)))
            return true;
    return false;
}

// Labels the groups by the splitting columns that vary; splits[] marks these alone afterwards.
static void label_groups(dsc_plot *p, dsc_groups *g, const dsc_selection *s, bool *splits)
{
    const dsc_table *t = s->table;
    const char *comma = "";
    dsc_writer *w = dsc_text_begin(p);
    for (size_t c = 0; c < t->columns; c++) {
        splits[c] = splits[c] && g->groups > 1 && varies(s, c);
        if (!splits[c])
            continue;
        dsc_put(w, "%s%s (", comma, t->column[c].name);
        dsc_put_values(w, t, s->row, s->rows, c);
        dsc_put(w, ")");
        comma = ", ";
    }
    g->varying = dsc_text_end(p);
    for (size_t i = 0; i < g->groups && !p->rc; i++) {
        w = dsc_text_begin(p);
        for (size_t c = 0; c < t->columns; c++) {
            const dsc_cell *cell = dsc_table_at(t, g->first[i], c);
            const char *name = t->column[c].name;
            if (!splits[c] || dsc_is_missing(cell))
                continue;
            dsc_put(w, "%s%s%s", w->to->length ? ", " : "", dsc_term_label(name),
                    dsc_term_equals(name));
            dsc_put_cell(w, cell);
        }
        g->label[i] = dsc_text_end(p);
    }
}

dsc_groups dsc_group(dsc_plot *p, const dsc_selection *s, int x, int y)
{
    bool *splits = find_splitting(p, s, x, y);
    dsc_groups g = {
        .of = dsc_plot_new(p, size_t, s->rows),
        .first = dsc_plot_new(p, size_t, MOST_GROUPS),
        .label = dsc_plot_new(p, const char *, MOST_GROUPS),
    };
    for (size_t i = 0; !p->rc && i < s->rows; i++) {
        size_t j = 0;
        while (j < g.groups && !dsc_rows_agree(s->table, splits, g.first[j], s->row[i]))
            j++;
        if (j == MOST_GROUPS)
            dsc_refuse(p, "the table has more than %d groups of rows: select some with --where",
                       MOST_GROUPS);
        else if (j == g.groups)
            g.first[g.groups++] = s->row[i];
        g.of[i] = j;
    }
    if (!p->rc)
        label_groups(p, &g, s, splits);
    return g;
}

void dsc_check_groups(dsc_plot *p, const dsc_groups *g, size_t most)
{
    if (g->groups > most)
        dsc_refuse(p,
                   "the table has %zu groups of rows and the figure shows at most %zu: "
                   "filter by %.500s",
                   g->groups, most, g->varying);
}

// --- grid ----------------------------------------------------------------------------------

// The index of x in the ascending values v, one of which it is.
static size_t index_of(const double *v, size_t n, double x)
{
    return (size_t)((const double *)bsearch(&x, v, n, sizeof *v, by_value) - v);
}

static void fill_grid(dsc_plot *p, dsc_plot_grid *grid, const dsc_selection *s, const dsc_groups *g,
                      int x, int y)
{
    const dsc_table *t = s->table;
    for (size_t i = 0; i < s->rows; i++) {
        double vx = dsc_value_at(t, s->row[i], x), vy = y < 0 ? 0 : dsc_value_at(t, s->row[i], y);
        if (isnan(vx) || isnan(vy))
            continue;
        size_t *at = &grid->at[(g->of[i] * grid->ny + index_of(grid->y, grid->ny, vy)) * grid->nx +
                               index_of(grid->x, grid->nx, vx)];
        if (*at != SIZE_MAX) {
            const char *and = y < 0 ? "" : dsc_text(p, ", %s = %g", t->column[y].name, vy);
            dsc_refuse(p, "rows %zu and %zu have the same configuration (%s = %g%s)", *at + 1,
                       s->row[i] + 1, t->column[x].name, vx, and);
        }
        *at = s->row[i];
    }
}

dsc_plot_grid dsc_grid(dsc_plot *p, const dsc_selection *s, const dsc_groups *g, int x, int y)
{
    dsc_plot_grid grid = {.ny = 1};
    size_t cells = 0;
    grid.x = dsc_distinct(p, s, x, &grid.nx);
    grid.y = y < 0 ? dsc_plot_new(p, double, 1) : dsc_distinct(p, s, y, &grid.ny);
    if (!p->rc && (!grid.nx || !grid.ny))
        dsc_refuse(p, "column '%s' has no numbers", s->table->column[grid.nx ? y : x].name);
    // At most rows x rows x groups cells, where rows fit in memory: check the product.
    if (__builtin_mul_overflow(grid.nx, grid.ny, &cells) ||
        __builtin_mul_overflow(cells, g->groups, &cells) || cells > (size_t)1 << 24)
        dsc_refuse(p, "a grid of %zu x %zu points in %zu groups cannot be drawn", grid.nx, grid.ny,
                   g->groups);
    grid.at = dsc_plot_new(p, size_t, p->rc ? 0 : cells);
    for (size_t i = 0; !p->rc && i < cells; i++)
        grid.at[i] = SIZE_MAX;
    if (!p->rc)
        fill_grid(p, &grid, s, g, x, y);
    return grid;
}

size_t dsc_plot_grid_row(const dsc_plot_grid *grid, size_t group, size_t ix, size_t iy)
{
    return grid->at[(group * grid->ny + iy) * grid->nx + ix];
}
