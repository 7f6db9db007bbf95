// SPDX-License-Identifier: Apache-2.0
// Measured pass times: a result table (base/table.h) with the columns
//
//   tokens    tokens of each sequence in the pass: the last committed one and the draft
//   context   tokens of each sequence before them; without the column, times do not depend on it
//   batch     sequences in the pass; without the column, times do not depend on it
//   target_s  seconds of a pass of the target
//   draft_s   seconds of a pass of the draft model; without the column, methods with one are
//             refused
//   target_again_s, draft_again_s
//             seconds of a pass directly after one of the same model, as in plain decoding and for
//             all but the first token of a draft; without the columns, these passes take target_s
//             and draft_s
//   target_s_low, target_s_high, draft_s_low, draft_s_high
//             quartiles of target_s and draft_s; passes directly after another are taken to vary by
//             the same factor
//
// and any others. The rows are a full grid, sorted by tokens, then context, then batch. Between its
// points times are interpolated, linearly in each key; outside of its range they are refused.
#include "sim/cost/cost.h"

#include "base/order.h"
#include "base/sha256.h"
#include "base/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS, CONTEXT, BATCH, AXES };
static const char *const axis_name[AXES] = {"tokens", "context", "batch"};
static const double least_key[AXES] = {1, 0, 1};

typedef struct axis {
    double *key;  // [count] ascending
    size_t count; // 1 when the column is absent
    int column;   // of the file, or -1
} axis;

typedef struct grid {
    char *path;
    axis axis[AXES];
    // [again][tokens][context][batch]; NULL: not measured
    double *target[2], *draft[2];
    double *target_quartile[2], *draft_quartile[2]; // first and third; NULL: not measured
    dsc_arena memory;                               // of keys and times
} grid;

static void free_grid(void *model)
{
    grid *g = model;
    if (!g)
        return;
    dsc_arena_fini(&g->memory);
    free(g->path);
    free(g);
}

// The line of a row in the file, for messages.
static size_t line_of(const dsc_table *t, size_t row)
{
    return t->first_line + row;
}

static int read_axis(grid *g, const dsc_table *t, int which, axis *a, dsc_error *err)
{
    int rc = dsc_arena_new(&g->memory, &a->key, t->rows, err);
    a->count = 1;
    a->column = dsc_table_find(t, axis_name[which]);
    if (rc || a->column < 0)
        return rc;
    for (size_t r = 0; r < t->rows; r++) {
        double x = dsc_table_real(t, r, (size_t)a->column);
        if (!(x >= least_key[which] && x <= 1e9 && x == floor(x)))
            return dsc_fail(err, DSC_EINPUT, "%s:%zu: %s must be a whole number from %g to 1e9",
                            g->path, line_of(t, r), axis_name[which], least_key[which]);
        a->key[r] = x;
    }
    qsort(a->key, t->rows, sizeof *a->key, dsc_by_real);
    size_t kept = 1;
    for (size_t r = 1; r < t->rows; r++)
        if (a->key[r] != a->key[kept - 1])
            a->key[kept++] = a->key[r];
    a->count = kept;
    return DSC_OK;
}

// Compares the keys of row r with those of the row before, in the order of the axes: -1, 0, 1.
static int rises(const grid *g, const dsc_table *t, size_t r)
{
    for (int a = 0; a < AXES; a++) {
        int c = g->axis[a].column;
        double d =
            c < 0 ? 0 : dsc_table_real(t, r, (size_t)c) - dsc_table_real(t, r - 1, (size_t)c);
        if (d != 0)
            return d > 0 ? 1 : -1;
    }
    return 0;
}

static int fail_hole(const grid *g, const dsc_table *t, size_t r, const double key[AXES],
                     dsc_error *err)
{
    char where[120] = "";
    size_t n = 0;
    for (int a = 0; a < AXES; a++)
        if (g->axis[a].column >= 0)
            n += (size_t)snprintf(where + n, sizeof where - n, "%s%s %.0f", n ? ", " : "",
                                  axis_name[a], key[a]);
    return dsc_fail(err, DSC_EINPUT, "%s:%zu: no row for %s: the grid has a hole", g->path,
                    line_of(t, r), where);
}

// Checks that the rows contain every cell once, in order.
static int check_grid(const grid *g, const dsc_table *t, dsc_error *err)
{
    const axis *a = g->axis;
    for (size_t r = 1; r < t->rows; r++) {
        int step = rises(g, t, r);
        if (step <= 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s:%zu: %s: rows are sorted by tokens, then context, then batch",
                            g->path, line_of(t, r), step ? "the keys fall" : "the keys come twice");
    }
    // A missing cell is found at row t->rows at the latest.
    size_t inner = a[CONTEXT].count * a[BATCH].count;
    for (size_t r = 0; r / inner < a[TOKENS].count; r++) {
        const double key[AXES] = {a[TOKENS].key[r / inner],
                                  a[CONTEXT].key[r / a[BATCH].count % a[CONTEXT].count],
                                  a[BATCH].key[r % a[BATCH].count]};
        bool same = r < t->rows;
        for (int x = 0; x < AXES && same; x++)
            same = a[x].column < 0 || dsc_table_real(t, r, (size_t)a[x].column) == key[x];
        if (!same)
            return fail_hole(g, t, r, key, err);
    }
    return DSC_OK;
}

static int read_times(grid *g, const dsc_table *t, const char *name, double **out, dsc_error *err)
{
    int column = dsc_table_find(t, name);
    if (column < 0)
        return DSC_OK;
    int rc = dsc_arena_new(&g->memory, out, t->rows, err);
    for (size_t r = 0; r < t->rows && !rc; r++) {
        (*out)[r] = dsc_table_real(t, r, (size_t)column);
        if (!(isfinite((*out)[r]) && (*out)[r] > 0))
            rc = dsc_fail(err, DSC_EINPUT, "%s:%zu: %s must be a time in seconds above 0", g->path,
                          line_of(t, r), name);
    }
    return rc;
}

// Reads both quartiles of a model's passes, or leaves them NULL.
static int read_quartiles(grid *g, const dsc_table *t, const char *const name[2],
                          const double *typical, double *out[2], dsc_error *err)
{
    double *quartile[2] = {NULL, NULL};
    int rc = read_times(g, t, name[0], &quartile[0], err);
    if (!rc)
        rc = read_times(g, t, name[1], &quartile[1], err);
    for (size_t r = 0; r < t->rows && !rc && quartile[0] && quartile[1]; r++)
        if (quartile[0][r] > quartile[1][r])
            rc = dsc_fail(err, DSC_EINPUT, "%s:%zu: %s is above %s", g->path, line_of(t, r),
                          name[0], name[1]);
    // The mean over rounds lies outside of the quartiles when a round was slow.
    for (size_t r = 0; r < t->rows && !rc && quartile[0] && quartile[1]; r++) {
        quartile[0][r] = fmin(quartile[0][r], typical[r]);
        quartile[1][r] = fmax(quartile[1][r], typical[r]);
    }
    for (int q = 0; q < 2 && quartile[0] && quartile[1]; q++)
        out[q] = quartile[q];
    return rc;
}

static int read_columns(grid *g, const dsc_table *t, dsc_error *err)
{
    static const char *const target[] = {"target_s", "target_again_s"};
    static const char *const draft[] = {"draft_s", "draft_again_s"};
    static const char *const target_quartile[] = {"target_s_low", "target_s_high"};
    static const char *const draft_quartile[] = {"draft_s_low", "draft_s_high"};
    int rc = DSC_OK;
    for (int again = 0; again < 2 && !rc; again++) {
        rc = read_times(g, t, target[again], &g->target[again], err);
        if (!rc)
            rc = read_times(g, t, draft[again], &g->draft[again], err);
    }
    if (!rc)
        rc = read_quartiles(g, t, target_quartile, g->target[0], g->target_quartile, err);
    return rc || !g->draft[0]
               ? rc
               : read_quartiles(g, t, draft_quartile, g->draft[0], g->draft_quartile, err);
}

static int read_grid(grid *g, const dsc_table *t, dsc_error *err)
{
    static const char *const needed[] = {"tokens", "target_s"};
    for (int i = 0; i < 2; i++)
        if (dsc_table_find(t, needed[i]) < 0)
            return dsc_fail(err, DSC_EINPUT, "%s: a table of costs needs a column %s", g->path,
                            needed[i]);
    if (!t->rows)
        return dsc_fail(err, DSC_EINPUT, "%s: the table has no rows", g->path);
    int rc = DSC_OK;
    for (int a = 0; a < AXES && !rc; a++)
        rc = read_axis(g, t, a, &g->axis[a], err);
    if (!rc)
        rc = check_grid(g, t, err);
    return rc ? rc : read_columns(g, t, err);
}

// Third quartile / first quartile of a cell, the larger of both models.
static double spread_of(const grid *g, size_t cell)
{
    double spread = 1;
    if (g->target_quartile[0])
        spread = g->target_quartile[1][cell] / g->target_quartile[0][cell];
    if (g->draft_quartile[0])
        spread = fmax(spread, g->draft_quartile[1][cell] / g->draft_quartile[0][cell]);
    return spread;
}

// Names the cells whose quartiles are far apart, as far as there is room.
static void report_spread(dsc_cost *cost, const grid *g)
{
    enum { NAMED = 3 };
    const axis *a = g->axis;
    const size_t cells = a[TOKENS].count * a[CONTEXT].count * a[BATCH].count;
    char named[120] = "";
    size_t wide = 0, used = 0;
    for (size_t i = 0; i < cells; i++) {
        const size_t at[AXES] = {i / (a[CONTEXT].count * a[BATCH].count),
                                 i / a[BATCH].count % a[CONTEXT].count, i % a[BATCH].count};
        if (!(spread_of(g, i) > DSC_COST_WIDE) || wide++ >= NAMED)
            continue;
        for (int x = 0; x < AXES; x++)
            if (a[x].column >= 0 && used < sizeof named)
                used += (size_t)snprintf(named + used, sizeof named - used, "%s%s %.0f",
                                         x > 0            ? " "
                                         : *named != '\0' ? ", "
                                                          : "",
                                         axis_name[x], a[x].key[at[x]]);
    }
    if (wide)
        snprintf(cost->spread_caveat, sizeof cost->spread_caveat,
                 "quartiles are more than %gx apart in %zu of %zu cells: %s%s", DSC_COST_WIDE, wide,
                 cells, named, wide > NAMED ? ", ..." : "");
}

static int open_table(dsc_cost *cost, const char *path, dsc_error *err)
{
    grid *g;
    char hash[DSC_SHA256_HEX];
    dsc_table t = {0};
    int rc = dsc_new(&g, 1, err);
    if (rc)
        return rc;
    rc = dsc_strndup(&g->path, path, strlen(path), err);
    if (!rc)
        rc = dsc_table_read(&t, path, err);
    if (!rc) {
        rc = read_grid(g, &t, err);
        dsc_table_fini(&t);
    }
    if (!rc)
        rc = dsc_sha256_file(path, hash, err);
    if (rc) {
        free_grid(g);
        return rc;
    }
    cost->model = g;
    cost->spread = g->target_quartile[0] || g->draft_quartile[0];
    report_spread(cost, g);
    snprintf(cost->note, sizeof cost->note, "table of SHA-256 %s", hash);
    return rc;
}

// The points on either side of x, and how far it is from the first to the second.
static int place(const grid *g, int which, double x, size_t *at, double *share, dsc_error *err)
{
    const axis *a = &g->axis[which];
    *at = 0;
    *share = 0;
    if (a->column < 0)
        return DSC_OK;
    if (!(x >= a->key[0] && x <= a->key[a->count - 1]))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: a pass with %s %.6g was not measured: the table goes from %.0f to "
                        "%.0f and is not extrapolated",
                        g->path, axis_name[which], x, a->key[0], a->key[a->count - 1]);
    while (*at + 2 < a->count && a->key[*at + 1] < x)
        ++*at;
    if (a->count > 1)
        *share = (x - a->key[*at]) / (a->key[*at + 1] - a->key[*at]);
    return DSC_OK;
}

// The time of a cell at a quartile: 0, or -1 and 1 for the first and the third.
static double cell_time(double *const times[2], double *const quartiles[2], bool again, size_t cell,
                        int quartile)
{
    const double typical = times[again && times[1]][cell];
    if (!quartile || !quartiles[0])
        return typical;
    const double at = quartiles[quartile > 0][cell];
    return again && times[1] ? typical * (at / times[0][cell]) : at;
}

static int look_up(const grid *g, double *const times[2], double *const quartiles[2], int quartile,
                   dsc_pass pass, double *out, dsc_error *err)
{
    const double key[AXES] = {pass.tokens, pass.context, pass.batch};
    size_t at[AXES];
    double share[AXES];
    for (int a = 0; a < AXES; a++) {
        int rc = place(g, a, key[a], &at[a], &share[a], err);
        if (rc)
            return rc;
    }
    *out = 0;
    for (int corner = 0; corner < 1 << AXES; corner++) {
        double weight = 1;
        size_t cell = 0;
        for (int a = 0; a < AXES; a++) {
            int next = corner >> a & 1;
            weight *= next ? share[a] : 1 - share[a];
            cell = cell * g->axis[a].count + at[a] + (size_t)next;
        }
        if (weight > 0)
            *out += weight * cell_time(times, quartiles, pass.again, cell, quartile);
    }
    return DSC_OK;
}

static int target_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    const grid *g = cost->model;
    return look_up(g, g->target, g->target_quartile, cost->quartile, pass, seconds, err);
}

static int draft_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    const grid *g = cost->model;
    if (!g->draft[0])
        return dsc_fail(err, DSC_EINPUT,
                        "%s: the table lacks column draft_s, but the method calls a draft model",
                        g->path);
    return look_up(g, g->draft, g->draft_quartile, cost->quartile, pass, seconds, err);
}

const dsc_cost_type dsc_cost_table = {.name = "table",
                                      .summary = "measured times, interpolated",
                                      .usage = "FILE",
                                      .open = open_table,
                                      .close = free_grid,
                                      .target = target_time,
                                      .draft = draft_time};
