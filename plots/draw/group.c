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

int dsc_distinct(const dsc_selection *s, int column, double **out, size_t *count, dsc_error *err)
{
    double *v;
    size_t n = 0, kept = 0;
    int rc = dsc_new(&v, s->rows, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->rows; i++) {
        double x = dsc_table_real(s->table, s->row[i], (size_t)column);
        if (dsc_drawable(x))
            v[n++] = x;
    }
    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0; i < n; i++)
        if (!kept || v[i] != v[kept - 1])
            v[kept++] = v[i];
    *out = v;
    *count = kept;
    return DSC_OK;
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
    const int *axis;
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
    for (int i = 0; i < DSC_AXES; i++) {
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
static int find_splitting(bool *splits, const dsc_selection *s, const int axis[DSC_AXES],
                          dsc_error *err)
{
    const dsc_table *t = s->table;
    size_t *sorted;
    int rc = dsc_new(&sorted, s->rows, err);
    if (rc)
        return rc;
    memcpy(sorted, s->row, s->rows * sizeof *sorted);
    order o = {t, axis};
    qsort_r(sorted, s->rows, sizeof *sorted, compare_rows, &o);
    for (size_t c = 0; c < t->columns; c++) {
        splits[c] = t->column[c].type == DSC_CELL_TEXT && dsc_is_parameter(t, c);
        if (splits[c] || !dsc_is_parameter(t, c) || (int)c == axis[0] || (int)c == axis[1])
            continue;
        for (size_t i = 1; i < s->rows && !splits[c]; i++)
            splits[c] =
                !compare_rows(&sorted[i - 1], &sorted[i], &o) &&
                !dsc_same_cell(dsc_table_at(t, sorted[i - 1], c), dsc_table_at(t, sorted[i], c));
    }
    free(sorted);
    return DSC_OK;
}

static bool same_group(const dsc_table *t, const bool *splits, size_t a, size_t b)
{
    for (size_t c = 0; c < t->columns; c++)
        if (splits[c] && !dsc_same_cell(dsc_table_at(t, a, c), dsc_table_at(t, b, c)))
            return false;
    return true;
}

static bool varies(const dsc_selection *s, size_t column)
{
    for (size_t i = 1; i < s->rows; i++)
        if (!dsc_same_cell(dsc_table_at(s->table, s->row[0], column),
                           dsc_table_at(s->table, s->row[i], column)))
            return true;
    return false;
}

static int label_groups(dsc_groups *g, const dsc_selection *s, const bool *splits, dsc_error *err)
{
    const dsc_table *t = s->table;
    dsc_buffer all = {0};
    dsc_writer list = {.to = &all, .err = err};
    dsc_put(&list, "%s", "");
    for (size_t i = 0; i < g->groups && !list.rc; i++) {
        dsc_buffer b = {0};
        dsc_writer w = {.to = &b, .err = err};
        dsc_put(&w, "%s", "");
        for (size_t c = 0; c < t->columns; c++) {
            if (g->groups < 2 || !splits[c] || !varies(s, c))
                continue;
            const dsc_cell *cell = dsc_table_at(t, g->first[i], c);
            if (!dsc_is_missing(cell)) {
                const char *name = t->column[c].name;
                dsc_put(&w, "%s%s%s", b.length ? ", " : "", dsc_term_label(name),
                        dsc_term_equals(name));
                dsc_put_cell(&w, cell);
            }
            if (i)
                continue;
            dsc_put(&list, "%s%s (", all.length ? ", " : "", t->column[c].name);
            dsc_put_values(&list, t, s->row, s->rows, c);
            dsc_put(&list, ")");
        }
        g->label[i] = b.data;
        list.rc = list.rc ? list.rc : w.rc;
    }
    g->varying = all.data;
    return list.rc;
}

int dsc_group(dsc_groups *g, const dsc_selection *s, const int axis[DSC_AXES], dsc_error *err)
{
    *g = (dsc_groups){0};
    bool *splits = NULL;
    int rc = dsc_new(&splits, s->table->columns, err);
    if (!rc)
        rc = dsc_new(&g->of, s->rows, err);
    if (!rc)
        rc = dsc_new(&g->first, MOST_GROUPS, err);
    if (!rc)
        rc = dsc_new(&g->label, MOST_GROUPS, err);
    if (!rc)
        rc = find_splitting(splits, s, axis, err);
    for (size_t i = 0; !rc && i < s->rows; i++) {
        size_t j = 0;
        while (j < g->groups && !same_group(s->table, splits, g->first[j], s->row[i]))
            j++;
        if (j == MOST_GROUPS)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "the table has more than %d groups of rows: select some with --where",
                          MOST_GROUPS);
        else if (j == g->groups)
            g->first[g->groups++] = s->row[i];
        g->of[i] = j;
    }
    if (!rc)
        rc = label_groups(g, s, splits, err);
    free(splits);
    if (rc)
        dsc_groups_fini(g);
    return rc;
}

void dsc_groups_fini(dsc_groups *g)
{
    for (size_t i = 0; g->label && i < g->groups; i++)
        free(g->label[i]);
    free(g->label);
    free(g->of);
    free(g->first);
    free(g->varying);
    *g = (dsc_groups){0};
}

int dsc_check_groups(const dsc_groups *g, size_t most, dsc_error *err)
{
    return g->groups <= most
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
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

static int fill_grid(dsc_plot_grid *grid, const dsc_selection *s, const dsc_groups *g, int x, int y,
                     dsc_error *err)
{
    const dsc_table *t = s->table;
    for (size_t i = 0; i < s->rows; i++) {
        double vx = dsc_table_real(t, s->row[i], (size_t)x);
        double vy = dsc_table_real(t, s->row[i], (size_t)y);
        if (!dsc_drawable(vx) || !dsc_drawable(vy))
            continue;
        size_t *at = &grid->at[(g->of[i] * grid->ny + index_of(grid->y, grid->ny, vy)) * grid->nx +
                               index_of(grid->x, grid->nx, vx)];
        if (*at != SIZE_MAX)
            return dsc_fail(err, DSC_EUSAGE,
                            "rows %zu and %zu have the same configuration (%s = %g, %s = %g)",
                            *at + 1, s->row[i] + 1, t->column[x].name, vx, t->column[y].name, vy);
        *at = s->row[i];
    }
    return DSC_OK;
}

int dsc_plot_grid_init(dsc_plot_grid *grid, const dsc_selection *s, const dsc_groups *g, int x,
                       int y, dsc_error *err)
{
    *grid = (dsc_plot_grid){0};
    int rc = dsc_distinct(s, x, &grid->x, &grid->nx, err);
    if (!rc)
        rc = dsc_distinct(s, y, &grid->y, &grid->ny, err);
    if (!rc && (!grid->nx || !grid->ny))
        rc = dsc_fail(err, DSC_EUSAGE, "column '%s' has no numbers",
                      s->table->column[grid->nx ? y : x].name);
    // At most rows x rows x groups cells, where rows fit in memory: check the product.
    size_t cells = 0;
    if (!rc && (__builtin_mul_overflow(grid->nx, grid->ny, &cells) ||
                __builtin_mul_overflow(cells, g->groups, &cells) || cells > (size_t)1 << 24))
        rc = dsc_fail(err, DSC_EUSAGE, "a grid of %zu x %zu points in %zu groups cannot be drawn",
                      grid->nx, grid->ny, g->groups);
    if (!rc)
        rc = dsc_new(&grid->at, cells, err);
    for (size_t i = 0; !rc && i < cells; i++)
        grid->at[i] = SIZE_MAX;
    if (!rc)
        rc = fill_grid(grid, s, g, x, y, err);
    if (rc)
        dsc_plot_grid_fini(grid);
    return rc;
}

size_t dsc_plot_grid_row(const dsc_plot_grid *grid, size_t group, size_t ix, size_t iy)
{
    return grid->at[(group * grid->ny + iy) * grid->nx + ix];
}

void dsc_plot_grid_fini(dsc_plot_grid *grid)
{
    free(grid->x);
    free(grid->y);
    free(grid->at);
    *grid = (dsc_plot_grid){0};
}
