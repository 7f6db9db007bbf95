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
//
// A server's steps compute chunks of prompts in the same pass as decode tokens. For those there is
// a column
//
//   prefill_tokens  tokens of one more sequence in the same pass, a chunk of its prompt; without
//                   the column 0
//
// Rows where it is above 0 follow the others and are a second full grid, sorted by tokens, context,
// batch, then prefill_tokens, over some of the points of the first. `context` is that of the
// decoding sequences and of the chunk; draft_s is not read there. What a chunk adds to a pass is
// the difference of target_s to the row without it, or 0 if that is larger, interpolated linearly
// in each key, from 0 at no prefill tokens on: it depends on the decode tokens far less than the
// pass does, so few rows are enough. The decoding sequences may have another context than the
// chunk.
#include "sim/cost/cost.h"

#include "base/order.h"
#include "base/sha256.h"
#include "base/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS, CONTEXT, BATCH, PREFILL, AXES };
static const char *const axis_name[AXES] = {"tokens", "context", "batch", "prefill_tokens"};
static const double least_key[AXES] = {1, 0, 1, 0};

typedef struct axis {
    double *key;  // [count] ascending
    size_t count; // 1 when the column is absent
    int column;   // of the file, or -1
} axis;

// Rows [first, first + count) of the file, one for each combination of keys.
typedef struct lattice {
    axis axis[AXES];
    size_t first, count;
} lattice;

typedef struct grid {
    char *path;
    lattice decode, mixed; // without prefill tokens and with some; mixed.count 0: not measured
    // [again][tokens][context][batch]; NULL: not measured
    double *target[2], *draft[2];
    double *target_quartile[2], *draft_quartile[2]; // first and third; NULL: not measured
    double *added;    // [mixed: tokens][context][batch][prefill] seconds that the chunk adds
    dsc_arena memory; // of keys and times
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

static int read_axis(grid *g, const dsc_table *t, int which, lattice *l, dsc_error *err)
{
    axis *a = &l->axis[which];
    int rc = dsc_arena_new(&g->memory, &a->key, l->count, err);
    a->count = 1;
    a->column = dsc_table_find(t, axis_name[which]);
    if (rc || a->column < 0)
        return rc;
    for (size_t r = 0; r < l->count; r++) {
        double x = dsc_table_real(t, l->first + r, (size_t)a->column);
        if (!(x >= least_key[which] && x <= 1e9 && x == floor(x)))
            return dsc_fail(err, DSC_EINPUT, "%s:%zu: %s must be a whole number from %g to 1e9",
                            g->path, line_of(t, l->first + r), axis_name[which], least_key[which]);
        a->key[r] = x;
    }
    qsort(a->key, l->count, sizeof *a->key, dsc_by_real);
    size_t kept = 1;
    for (size_t r = 1; r < l->count; r++)
        if (a->key[r] != a->key[kept - 1])
            a->key[kept++] = a->key[r];
    a->count = kept;
    return DSC_OK;
}

// Compares the keys of row r with those of the row before, in the order of the axes: -1, 0, 1.
static int rises(const lattice *l, const dsc_table *t, size_t r)
{
    for (int a = 0; a < AXES; a++) {
        int c = l->axis[a].column;
        double d =
            c < 0 ? 0 : dsc_table_real(t, r, (size_t)c) - dsc_table_real(t, r - 1, (size_t)c);
        if (d != 0)
            return d > 0 ? 1 : -1;
    }
    return 0;
}

static int fail_hole(const grid *g, const dsc_table *t, const lattice *l, size_t r,
                     const double key[AXES], dsc_error *err)
{
    char where[120] = "";
    size_t n = 0;
    for (int a = 0; a < AXES; a++)
        if (l->axis[a].column >= 0)
            n += (size_t)snprintf(where + n, sizeof where - n, "%s%s %.0f", n ? ", " : "",
                                  axis_name[a], key[a]);
    return dsc_fail(err, DSC_EINPUT, "%s:%zu: no row for %s: the grid has a hole", g->path,
                    line_of(t, r), where);
}

// The keys of a cell; the last axis varies fastest.
static void keys_of(const lattice *l, size_t cell, double key[AXES])
{
    for (int a = AXES; a-- > 0; cell /= l->axis[a].count)
        key[a] = l->axis[a].key[cell % l->axis[a].count];
}

// Checks that the rows contain every cell once, in order.
static int check_grid(const grid *g, const dsc_table *t, const lattice *l, dsc_error *err)
{
    size_t cells = 1;
    for (size_t r = 1; r < l->count; r++) {
        int step = rises(l, t, l->first + r);
        if (step <= 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s:%zu: %s: rows are sorted by tokens, then context, then batch%s",
                            g->path, line_of(t, l->first + r),
                            step ? "the keys fall" : "the keys come twice",
                            l->first ? ", then prefill_tokens" : "");
    }
    for (int a = 0; a < AXES; a++)
        cells *= l->axis[a].count;
    // A missing cell is found at row l->count at the latest.
    for (size_t r = 0; r < cells; r++) {
        double key[AXES];
        keys_of(l, r, key);
        bool same = r < l->count;
        for (int x = 0; x < AXES && same; x++)
            same = l->axis[x].column < 0 ||
                   dsc_table_real(t, l->first + r, (size_t)l->axis[x].column) == key[x];
        if (!same)
            return fail_hole(g, t, l, l->first + r, key, err);
    }
    return DSC_OK;
}

static int read_lattice(grid *g, const dsc_table *t, lattice *l, dsc_error *err)
{
    int rc = DSC_OK;
    for (int a = 0; a < AXES && !rc; a++)
        rc = read_axis(g, t, a, l, err);
    return rc ? rc : check_grid(g, t, l, err);
}

static int read_some_times(grid *g, const dsc_table *t, const lattice *l, const char *name,
                           double **out, dsc_error *err)
{
    int column = dsc_table_find(t, name);
    if (column < 0)
        return DSC_OK;
    int rc = dsc_arena_new(&g->memory, out, l->count, err);
    for (size_t r = 0; r < l->count && !rc; r++) {
        (*out)[r] = dsc_table_real(t, l->first + r, (size_t)column);
        if (!(isfinite((*out)[r]) && (*out)[r] > 0))
            rc = dsc_fail(err, DSC_EINPUT, "%s:%zu: %s must be a time in seconds above 0", g->path,
                          line_of(t, l->first + r), name);
    }
    return rc;
}

static int read_times(grid *g, const dsc_table *t, const char *name, double **out, dsc_error *err)
{
    return read_some_times(g, t, &g->decode, name, out, err);
}

// Reads both quartiles of a model's passes, or leaves them NULL.
static int read_quartiles(grid *g, const dsc_table *t, const char *const name[2],
                          const double *typical, double *out[2], dsc_error *err)
{
    double *quartile[2] = {NULL, NULL};
    int rc = read_times(g, t, name[0], &quartile[0], err);
    if (!rc)
        rc = read_times(g, t, name[1], &quartile[1], err);
    for (size_t r = 0; r < g->decode.count && !rc && quartile[0] && quartile[1]; r++)
        if (quartile[0][r] > quartile[1][r])
            rc = dsc_fail(err, DSC_EINPUT, "%s:%zu: %s is above %s", g->path, line_of(t, r),
                          name[0], name[1]);
    // The mean over rounds lies outside of the quartiles when a round was slow.
    for (size_t r = 0; r < g->decode.count && !rc && quartile[0] && quartile[1]; r++) {
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

// The points on either side of x, and how far it is from the first to the second.
static int place(const grid *g, const lattice *l, int which, double x, size_t *at, double *share,
                 dsc_error *err)
{
    const axis *a = &l->axis[which];
    *at = 0;
    *share = 0;
    if (a->column < 0)
        return DSC_OK;
    if (!(x >= a->key[0] && x <= a->key[a->count - 1]))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: a pass with %s %.6g%s was not measured: the table goes from %.0f to "
                        "%.0f%s and is not extrapolated",
                        g->path, axis_name[which], x,
                        l->first && which != PREFILL ? " next to prefill tokens" : "", a->key[0],
                        a->key[a->count - 1], l->first && which != PREFILL ? " there" : "");
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

// The cells around a point, with their weights. Those that a point lies on the edge of have the
// weight 0 and may not exist.
enum { CORNERS = 1 << AXES };
typedef struct corners {
    size_t cell[CORNERS];
    double weight[CORNERS];
} corners;

static int find_corners(const grid *g, const lattice *l, const double key[AXES], corners *out,
                        dsc_error *err)
{
    size_t at[AXES];
    double share[AXES];
    for (int a = 0; a < AXES; a++) {
        int rc = place(g, l, a, key[a], &at[a], &share[a], err);
        if (rc)
            return rc;
    }
    for (int corner = 0; corner < CORNERS; corner++) {
        double weight = 1;
        size_t cell = 0;
        for (int a = 0; a < AXES; a++) {
            int next = corner >> a & 1;
            weight *= next ? share[a] : 1 - share[a];
            cell = cell * l->axis[a].count + at[a] + (size_t)next;
        }
        out->cell[corner] = cell;
        out->weight[corner] = weight;
    }
    return DSC_OK;
}

static int look_up(const grid *g, double *const times[2], double *const quartiles[2], int quartile,
                   dsc_pass pass, double *out, dsc_error *err)
{
    const double key[AXES] = {pass.tokens, pass.context, pass.batch, 0};
    corners c;
    int rc = find_corners(g, &g->decode, key, &c, err);
    if (rc)
        return rc;
    *out = 0;
    for (int i = 0; i < CORNERS; i++)
        if (c.weight[i] > 0)
            *out += c.weight[i] * cell_time(times, quartiles, pass.again, c.cell[i], quartile);
    return DSC_OK;
}

// Sets g->added from the mixed rows, whose other keys are points of the rows without a chunk.
static int read_added(grid *g, const dsc_table *t, dsc_error *err)
{
    int rc = read_some_times(g, t, &g->mixed, "target_s", &g->added, err);
    for (size_t r = 0; r < g->mixed.count && !rc; r++) {
        double key[AXES], alone;
        keys_of(&g->mixed, r, key);
        const dsc_pass pass = {key[TOKENS], key[CONTEXT], key[BATCH], false};
        rc = look_up(g, g->target, g->target_quartile, 0, pass, &alone, err);
        g->added[r] = fmax(g->added[r] - (rc ? 0 : alone), 0);
    }
    return rc;
}

// Divides the rows: those without prefill tokens come first.
static int divide(grid *g, const dsc_table *t, dsc_error *err)
{
    const int column = dsc_table_find(t, axis_name[PREFILL]);
    while (g->decode.count < t->rows &&
           (column < 0 || dsc_table_real(t, g->decode.count, (size_t)column) == 0))
        g->decode.count++;
    g->mixed.first = g->decode.count;
    g->mixed.count = t->rows - g->decode.count;
    for (size_t r = g->mixed.first; r < t->rows; r++)
        if (r == 0 || dsc_table_real(t, r, (size_t)column) == 0)
            return dsc_fail(err, DSC_EINPUT,
                            "%s:%zu: rows where prefill_tokens is 0 come before all others, and "
                            "there is at least one",
                            g->path, line_of(t, r));
    return DSC_OK;
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
    int rc = divide(g, t, err);
    if (!rc)
        rc = read_lattice(g, t, &g->decode, err);
    if (!rc)
        rc = read_columns(g, t, err);
    if (!rc && g->mixed.count)
        rc = read_lattice(g, t, &g->mixed, err);
    return rc || !g->mixed.count ? rc : read_added(g, t, err);
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
    const axis *a = g->decode.axis;
    const size_t cells = g->decode.count;
    char named[120] = "";
    size_t wide = 0, used = 0;
    for (size_t i = 0; i < cells; i++) {
        double key[AXES];
        if (!(spread_of(g, i) > DSC_COST_WIDE) || wide++ >= NAMED)
            continue;
        keys_of(&g->decode, i, key);
        for (int x = 0; x < PREFILL; x++)
            if (a[x].column >= 0 && used < sizeof named)
                used += (size_t)snprintf(named + used, sizeof named - used, "%s%s %.0f",
                                         x > 0            ? " "
                                         : *named != '\0' ? ", "
                                                          : "",
                                         axis_name[x], key[x]);
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
    cost->mixed = g->mixed.count > 0;
    report_spread(cost, g);
    snprintf(cost->note, sizeof cost->note, "table of SHA-256 %s", hash);
    return rc;
}

// What `tokens` of a chunk after pass.context others add. Below the smallest measured chunk the
// time is proportional to its tokens.
static int prefill_time(const dsc_cost *cost, dsc_pass pass, double tokens, double *seconds,
                        dsc_error *err)
{
    const grid *g = cost->model;
    const double least = g->mixed.axis[PREFILL].key[0];
    const double key[AXES] = {pass.tokens, pass.context, pass.batch, fmax(tokens, least)};
    corners c;
    int rc = find_corners(g, &g->mixed, key, &c, err);
    if (rc)
        return rc;
    *seconds = 0;
    for (int i = 0; i < CORNERS; i++)
        if (c.weight[i] > 0)
            *seconds += c.weight[i] * g->added[c.cell[i]];
    *seconds *= fmin(tokens / least, 1);
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
                                      .draft = draft_time,
                                      .prefill = prefill_time};
