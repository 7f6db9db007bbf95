// SPDX-License-Identifier: Apache-2.0
// Cells partition the tokens by their true ratio (acceptance_cells.c), so the masses are exact but
// for the rounding of sums: a token is below or it is not.
#include "theory/rows_curve.h"

#include "theory/rows/fast_exp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT32_MAX
#define WANTED (UINT32_MAX - 1)

void dsc_rows_curve_fini(dsc_rows_curve *c)
{
    dsc_cells_fini(&c->cells);
    free(c->token);
    c->token = NULL;
    c->capacity = 0;
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

// The distributions of a block: where they are, or made in scratch[].
static const float *dists_of(const dsc_row_source *row, size_t begin, float *scratch)
{
    if (row->dist)
        return row->dist + begin;
    dsc_log_row_block(row->log, begin, scratch);
    return scratch;
}

// Where the elements from token `x` on are.
static const void *memory_of(const dsc_row_source *row, size_t x)
{
    if (row->dist)
        return row->dist + x;
    return row->log->logp ? (const void *)(row->log->logp + x) : row->log->bf16 + x;
}

// One pass over both rows: the masses of all cells.
static int fill(dsc_rows_curve *c, dsc_error *err)
{
    enum { BLOCK = DSC_LOG_ROW_BLOCK }; // divisible by DSC_SINKS: a token's part stays its own
    const int32_t first = (127 + DSC_LOWEST_OCTAVE) << 23;
    float scratch[2][BLOCK];
    int rc = DSC_OK;
    dsc_cells_reset(&c->cells, 0);
    c->draft_alone = 0;
    for (size_t begin = 0; begin < c->base.vocab && !rc; begin += BLOCK) {
        size_t n = c->base.vocab - begin < BLOCK ? c->base.vocab - begin : BLOCK;
        const float *draft = dists_of(&c->draft, begin, scratch[0]);
        const float *target = dists_of(&c->target, begin, scratch[1]);
        const void *ahead[2] = {memory_of(&c->draft, begin + n), memory_of(&c->target, begin + n)};
        uint32_t worst = c->kernel->histogram(draft, target, n, first, c->cells.above,
                                              c->cells.slot + begin, ahead);
        if (c->target.dist || c->target.log->zeros)
            c->draft_alone += mass_alone(draft, target, n);
        if (worst >= DSC_ROWS_NOT_FINITE)
            rc = dsc_cells_check(draft, target, begin, n, err);
    }
    dsc_cells_close(&c->cells);
    if (c->draft.log)
        dsc_log_row_finish(c->draft.log, c->cells.draft_sum);
    if (c->target.log)
        dsc_log_row_finish(c->target.log, c->cells.target_sum);
    return rc;
}

int dsc_rows_curve_set(dsc_rows_curve *c, const dsc_row_source *draft, const dsc_row_source *target,
                       size_t vocab, dsc_error *err)
{
    if (vocab > INT32_MAX)
        return dsc_fail(err, DSC_EUSAGE, "%zu tokens; at most 2^31 - 1 are possible", vocab);
    void *token = c->token;
    int rc = dsc_cells_reserve(&c->cells, vocab, err);
    if (!rc)
        rc = dsc_grow(&token, &c->capacity, vocab, sizeof *c->token, err);
    c->token = token;
    if (rc)
        return rc;
    c->draft = *draft;
    c->target = *target;
    c->base.vocab = vocab;
    c->tokens = c->wants = 0;
    c->sketch = false;
    memset(c->begin, 0xff, sizeof c->begin);
    rc = fill(c, err);
    if (rc)
        return rc;
    double d = c->cells.draft_sum, t = c->cells.target_sum;
    if (d > 0 && t > 0 && d < 2 * t && t < 2 * d)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "rows that sum to %g (draft) and %g (target) are no distributions", d, t);
}

// Either end lies in parts (acceptance_kernel.h).
static size_t whole_slot(size_t slot)
{
    return slot < DSC_BOTTOM ? DSC_BOTTOM : slot > DSC_TOP ? DSC_TOP : slot;
}

static void want(dsc_rows_curve *c, size_t slot)
{
    size_t first = slot == DSC_BOTTOM ? 0 : slot;
    size_t parts = slot == DSC_BOTTOM || slot == DSC_TOP ? DSC_SINKS : 1;
    for (size_t i = 0; i < parts; i++)
        c->wanted[c->wants++] = (uint16_t)(first + i);
    c->begin[slot] = WANTED;
    c->count[slot] = 0;
}

// Elements of a row at some tokens.
static void some_of(const dsc_row_source *row, const uint32_t *token, size_t n, float *dist)
{
    if (!row->dist) {
        dsc_log_row_some(row->log, token, n, dist);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dist[i] = row->dist[token[i]];
}

// The found tokens to the places of their slots.
static void place(dsc_rows_curve *c, size_t n)
{
    enum { AT_ONCE = 1024 };
    const uint32_t *found = c->cells.found;
    float draft[AT_ONCE], target[AT_ONCE];
    for (size_t done = 0; done < n; done += AT_ONCE) {
        size_t some = n - done < AT_ONCE ? n - done : AT_ONCE;
        some_of(&c->draft, found + done, some, draft);
        some_of(&c->target, found + done, some, target);
        for (size_t i = 0; i < some; i++) {
            size_t slot = whole_slot(c->cells.slot[found[done + i]]);
            c->token[c->begin[slot] + c->count[slot]++] = (dsc_mass){draft[i], target[i]};
        }
    }
}

// Writes down the tokens of the wanted slots, one slot after the other.
static void look_up(dsc_rows_curve *c)
{
    const uint32_t *found = c->cells.found;
    const uint16_t *slot_of = c->cells.slot;
    size_t n = c->kernel->select(slot_of, c->base.vocab, c->wanted, c->wants, c->cells.found);
    for (size_t i = 0; i < n; i++)
        c->count[whole_slot(slot_of[found[i]])]++;
    for (size_t i = 0; i < c->wants; i++) {
        size_t slot = c->wanted[i];
        if (whole_slot(slot) != slot)
            continue;
        c->begin[slot] = (uint32_t)c->tokens;
        c->tokens += c->count[slot];
        c->count[slot] = 0;
    }
    place(c, n);
    c->wants = 0;
}

// Of slot's tokens those with ratio <= at.
static dsc_mass below_in(const dsc_rows_curve *c, size_t slot, double at)
{
    const dsc_mass *token = c->token + c->begin[slot];
    double d = 0, t = 0;
#pragma omp simd reduction(+ : d, t)
    for (uint32_t i = 0; i < c->count[slot]; i++) {
        double in = token[i].target <= at * token[i].draft ? 1 : 0;
        d += in * token[i].draft;
        t += in * token[i].target;
    }
    return (dsc_mass){d, t};
}

static dsc_mass estimate_in(const dsc_rows_curve *c, size_t slot, double at)
{
    const double *edge = c->cells.floor + slot;
    const dsc_mass *above = c->cells.above + slot;
    double share = (at - edge[0]) / (edge[1] - edge[0]);
    return (dsc_mass){share * (above[0].draft - above[1].draft),
                      share * (above[0].target - above[1].target)};
}

static dsc_mass below(dsc_overlap *base, double at)
{
    dsc_rows_curve *c = (dsc_rows_curve *)base;
    if (at == 0)
        return (dsc_mass){c->draft_alone, 0};
    const dsc_mass *above = c->cells.above;
    size_t slot = dsc_cells_find(&c->cells, at);
    if (c->begin[slot] == UNKNOWN)
        want(c, slot);
    if (c->begin[slot] == WANTED && (!c->sketch || c->wants >= DSC_WANTED))
        look_up(c);
    dsc_mass inside = c->begin[slot] == WANTED ? estimate_in(c, slot, at) : below_in(c, slot, at);
    return (dsc_mass){fmax(above[DSC_BOTTOM].draft - above[slot].draft, 0) + inside.draft,
                      fmax(above[DSC_BOTTOM].target - above[slot].target, 0) + inside.target};
}

static void start_sketch(dsc_overlap *base, int questions)
{
    (void)questions;
    ((dsc_rows_curve *)base)->sketch = true;
}

static void end_sketch(dsc_overlap *base)
{
    dsc_rows_curve *c = (dsc_rows_curve *)base;
    c->sketch = false;
    if (c->wants)
        look_up(c);
}

static const dsc_overlap_type curve_type = {
    .overlap_below = below, .prepare = start_sketch, .look_up = end_sketch};

int dsc_rows_curve_init(dsc_rows_curve *c, dsc_error *err)
{
    *c = (dsc_rows_curve){.base.type = &curve_type, .kernel = dsc_rows_kernel_best()};
    return dsc_cells_init(&c->cells, err);
}
