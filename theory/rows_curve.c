// SPDX-License-Identifier: Apache-2.0
// The curve of a pair of fp32 rows by cells of the ratio; theory/rows_curve.h. Cells partition the
// tokens by their true ratio (theory/ratio_cells.h), so the masses are exact except for the
// rounding of sums.
#include "theory/rows_curve.h"

#include "theory/rows/fast_exp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT32_MAX
#define WANTED (UINT32_MAX - 1)

void dsc_rows_curve_init(dsc_rows_curve *c)
{
    memset(c, 0, sizeof *c);
    for (int i = DSC_BOTTOM; i <= DSC_TOP + 1; i++)
        c->edge[i] = dsc_ratio_cell_edge(i);
}

void dsc_rows_curve_fini(dsc_rows_curve *c)
{
    free(c->cell);
    free(c->found);
    free(c->token);
    c->token = NULL;
    c->found = NULL;
    c->cell = NULL;
    c->cell_capacity = c->found_capacity = c->token_capacity = 0;
}

// --- cells ---------------------------------------------------------------------------------------

static inline void add(dsc_mass *to, dsc_mass m)
{
    to->draft += m.draft;
    to->target += m.target;
}

// Suffix sums of [DSC_BOTTOM, DSC_TOP], four parts at a time: an addition waits for the previous
// one in its part.
static void sum_from_above(dsc_mass *above)
{
    enum { PARTS = 4, CELLS = DSC_INNER_CELLS / PARTS };
    dsc_mass total[PARTS + 1] = {{0, 0}}, *part = above + DSC_SINKS;
    for (int i = 0; i < CELLS; i++)
        for (int p = 0; p < PARTS; p++)
            add(&total[p], part[p * CELLS + i]);
    total[PARTS] = above[DSC_TOP];
    for (int p = PARTS; p-- > 0;)
        add(&total[p], total[p + 1]);
    for (int i = CELLS; i-- > 0;)
        for (int p = 0; p < PARTS; p++) {
            add(&total[p + 1], part[p * CELLS + i]);
            part[p * CELLS + i] = total[p + 1];
        }
    add(&above[DSC_BOTTOM], above[DSC_SINKS]);
}

// Merges the parts of both end cells and turns the masses of cells into sums from above.
static void close_cells(dsc_rows_curve *c)
{
    for (int i = 0; i < DSC_SINKS - 1; i++) {
        add(&c->above[DSC_BOTTOM], c->above[i]);
        add(&c->above[DSC_TOP], c->above[DSC_TOP + 1 + i]);
    }
    c->above[DSC_TOP + 1] = (dsc_mass){0, 0};
    sum_from_above(c->above);
    c->draft_sum = c->above[DSC_BOTTOM].draft;
    c->target_sum = c->above[DSC_BOTTOM].target;
}

size_t dsc_rows_curve_cell(const dsc_rows_curve *c, double ratio)
{
    const float x = (float)ratio;
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t first = (127 + DSC_LOWEST_OCTAVE) << 23;
    const int32_t guess = ((bits - first) >> DSC_CELL_SHIFT) + DSC_SINKS;
    size_t i = guess < DSC_BOTTOM ? DSC_BOTTOM : guess > DSC_TOP ? DSC_TOP : (size_t)guess;
    while (i > DSC_BOTTOM && ratio < c->edge[i])
        i--;
    while (i < DSC_TOP && ratio >= c->edge[i + 1])
        i++;
    return i;
}

dsc_mass dsc_rows_curve_below_cell(const dsc_rows_curve *c, size_t i)
{
    const dsc_mass *all = &c->above[DSC_BOTTOM], *above = &c->above[i];
    return (dsc_mass){fmax(all->draft - above->draft, 0), fmax(all->target - above->target, 0)};
}

// --- the pass ------------------------------------------------------------------------------------

// Reports the first invalid element of tokens begin, begin + 1, ..; -0 is valid.
static int bad_element(const float *draft, const float *target, size_t begin, size_t n,
                       dsc_error *err)
{
    size_t x = 0;
    while (x < n && draft[x] >= 0 && draft[x] < INFINITY && target[x] >= 0 && target[x] < INFINITY)
        x++;
    if (x == n)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "element %zu of a row is not a probability (draft %g, target %g)", begin + x,
                    (double)draft[x], (double)target[x]);
}

DSC_FOR_EVERY_PROCESSOR
static double mass_alone(const float *draft, const float *target, size_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t x = 0; x < n; x++)
        sum += (target[x] > 0 ? 0.0 : 1.0) * (double)draft[x];
    return sum;
}

// The probabilities of a block: in place, or computed into scratch[].
static const float *dists_of(const dsc_row_source *row, size_t begin, float *scratch)
{
    if (row->dist)
        return row->dist + begin;
    dsc_log_row_block(row->log, begin, scratch);
    return scratch;
}

// The address of the elements from token `x` on.
static const void *memory_of(const dsc_row_source *row, size_t x)
{
    if (row->dist)
        return row->dist + x;
    return row->log->logp ? (const void *)(row->log->logp + x) : row->log->bf16 + x;
}

// The pass over both rows that sums the masses of all cells.
static int fill(dsc_rows_curve *c, dsc_error *err)
{
    enum { BLOCK = DSC_LOG_ROW_BLOCK }; // divisible by DSC_SINKS, so that a token keeps its part
    float scratch[2][BLOCK];
    int rc = DSC_OK;
    memset(c->above, 0, sizeof c->above);
    c->draft_alone = 0;
    for (size_t begin = 0; begin < c->vocab && !rc; begin += BLOCK) {
        size_t n = c->vocab - begin < BLOCK ? c->vocab - begin : BLOCK;
        const float *draft = dists_of(&c->draft, begin, scratch[0]);
        const float *target = dists_of(&c->target, begin, scratch[1]);
        const void *ahead[2] = {memory_of(&c->draft, begin + n), memory_of(&c->target, begin + n)};
        uint32_t largest = dsc_ratio_histogram(draft, target, n, c->above, c->cell + begin, ahead);
        if (c->target.dist || c->target.log->zeros)
            c->draft_alone += mass_alone(draft, target, n);
        if (largest >= DSC_NOT_FINITE)
            rc = bad_element(draft, target, begin, n, err);
    }
    close_cells(c);
    if (c->draft.log)
        dsc_log_row_finish(c->draft.log, c->draft_sum);
    if (c->target.log)
        dsc_log_row_finish(c->target.log, c->target_sum);
    return rc;
}

int dsc_rows_curve_set(dsc_rows_curve *c, const dsc_row_source *draft, const dsc_row_source *target,
                       size_t vocab, dsc_error *err)
{
    if (vocab > INT32_MAX)
        return dsc_fail(err, DSC_EUSAGE, "%zu tokens; at most 2^31 - 1 are possible", vocab);
    int rc = dsc_resize(&c->cell, &c->cell_capacity, vocab, err);
    if (!rc)
        rc = dsc_resize(&c->found, &c->found_capacity, vocab, err);
    if (!rc)
        rc = dsc_resize(&c->token, &c->token_capacity, vocab, err);
    if (rc)
        return rc;
    c->draft = *draft;
    c->target = *target;
    c->vocab = vocab;
    c->tokens = c->wants = 0;
    c->estimates = false;
    memset(c->begin, 0xff, sizeof c->begin);
    rc = fill(c, err);
    if (rc)
        return rc;
    double d = c->draft_sum, t = c->target_sum;
    if (d > 0 && t > 0 && d < 2 * t && t < 2 * d)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "rows that sum to %g (draft) and %g (target) are not distributions", d, t);
}

// Merges the parts of either end cell (theory/ratio_cells.h).
static size_t whole_cell(size_t cell)
{
    return cell < DSC_BOTTOM ? DSC_BOTTOM : cell > DSC_TOP ? DSC_TOP : cell;
}

static void want(dsc_rows_curve *c, size_t cell)
{
    size_t first = cell == DSC_BOTTOM ? 0 : cell;
    size_t parts = cell == DSC_BOTTOM || cell == DSC_TOP ? DSC_SINKS : 1;
    for (size_t i = 0; i < parts; i++)
        c->wanted[c->wants++] = (uint16_t)(first + i);
    c->begin[cell] = WANTED;
    c->count[cell] = 0;
}

// The elements of a row at some tokens.
static void some_of(const dsc_row_source *row, const uint32_t *token, size_t n, float *dist)
{
    if (!row->dist) {
        dsc_log_row_some(row->log, token, n, dist);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dist[i] = row->dist[token[i]];
}

// Copies the masses of the found tokens to their cells' ranges of token[].
static void place(dsc_rows_curve *c, size_t n)
{
    enum { AT_ONCE = 1024 };
    const uint32_t *found = c->found;
    float draft[AT_ONCE], target[AT_ONCE];
    for (size_t done = 0; done < n; done += AT_ONCE) {
        size_t some = n - done < AT_ONCE ? n - done : AT_ONCE;
        some_of(&c->draft, found + done, some, draft);
        some_of(&c->target, found + done, some, target);
        for (size_t i = 0; i < some; i++) {
            size_t cell = whole_cell(c->cell[found[done + i]]);
            c->token[c->begin[cell] + c->count[cell]++] = (dsc_mass){draft[i], target[i]};
        }
    }
}

// Stores the masses of the tokens of the wanted cells, one cell after the other.
static void look_up(dsc_rows_curve *c)
{
    const uint32_t *found = c->found;
    const uint16_t *cell_of = c->cell;
    size_t n = dsc_ratio_select(cell_of, c->vocab, c->wanted, c->wants, c->found);
    for (size_t i = 0; i < n; i++)
        c->count[whole_cell(cell_of[found[i]])]++;
    for (size_t i = 0; i < c->wants; i++) {
        size_t cell = c->wanted[i];
        if (whole_cell(cell) != cell)
            continue;
        c->begin[cell] = (uint32_t)c->tokens;
        c->tokens += c->count[cell];
        c->count[cell] = 0;
    }
    place(c, n);
    c->wants = 0;
}

void dsc_rows_curve_prepare(dsc_rows_curve *c)
{
    c->estimates = true;
}

void dsc_rows_curve_look_up(dsc_rows_curve *c)
{
    c->estimates = false;
    if (c->wants)
        look_up(c);
}

// The masses of a cell's tokens with ratio <= at, and of the others.
static dsc_mass divide_cell(const dsc_rows_curve *c, size_t cell, double at, dsc_mass *above)
{
    const dsc_mass *token = c->token + c->begin[cell];
    double d = 0, t = 0, d_above = 0, t_above = 0;
#pragma omp simd reduction(+ : d, t, d_above, t_above)
    for (uint32_t i = 0; i < c->count[cell]; i++) {
        const double in = token[i].target <= at * token[i].draft ? 1 : 0;
        d += in * token[i].draft;
        t += in * token[i].target;
        d_above += (1 - in) * token[i].draft;
        t_above += (1 - in) * token[i].target;
    }
    *above = (dsc_mass){d_above, t_above};
    return (dsc_mass){d, t};
}

// Estimates the masses in a cell as if its tokens were evenly spread over it.
static dsc_mass estimate_cell(const dsc_rows_curve *c, size_t cell, double at, dsc_mass *above)
{
    const double *edge = c->edge + cell;
    const dsc_mass *from = c->above + cell;
    const double share = (at - edge[0]) / (edge[1] - edge[0]);
    const dsc_mass all = {from[0].draft - from[1].draft, from[0].target - from[1].target};
    *above = (dsc_mass){(1 - share) * all.draft, (1 - share) * all.target};
    return (dsc_mass){share * all.draft, share * all.target};
}

dsc_mass dsc_rows_curve_divide(dsc_rows_curve *c, double at, dsc_mass *above)
{
    const size_t cell = dsc_rows_curve_cell(c, at);
    if (c->begin[cell] == UNKNOWN)
        want(c, cell);
    if (c->begin[cell] == WANTED && (!c->estimates || c->wants >= DSC_WANTED))
        look_up(c);
    dsc_mass below = (c->begin[cell] == WANTED ? estimate_cell : divide_cell)(c, cell, at, above);
    add(&below, dsc_rows_curve_below_cell(c, cell));
    add(above, c->above[cell + 1]);
    return below;
}

dsc_mass dsc_rows_curve_below(dsc_rows_curve *c, double at)
{
    dsc_mass above;
    return at > 0 ? dsc_rows_curve_divide(c, at, &above) : (dsc_mass){c->draft_alone, 0};
}
