// SPDX-License-Identifier: Apache-2.0
// Cells partition the tokens by their true ratio (acceptance_cells.c), so the masses are exact but
// for the rounding of sums: a token is below or it is not.
#include "theory/rows_curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN UINT32_MAX
#define WANTED (UINT32_MAX - 1)

int dsc_rows_curve_init(dsc_rows_curve *c, dsc_error *err)
{
    *c = (dsc_rows_curve){.kernel = NULL};
    const dsc_rows_kernel *const *kernel = dsc_rows_kernels;
    while (!(*kernel)->supported())
        kernel++;
    c->kernel = *kernel;
    return dsc_cells_init(&c->cells, err);
}

void dsc_rows_curve_fini(dsc_rows_curve *c)
{
    dsc_cells_fini(&c->cells);
    free(c->token);
    c->token = NULL;
    c->capacity = 0;
}

static int bad_element(const float *draft, const float *target, size_t vocab, dsc_error *err)
{
    size_t x = 0;
    while (x < vocab && draft[x] >= 0 && draft[x] < INFINITY && target[x] >= 0 &&
           target[x] < INFINITY)
        x++;
    if (x == vocab) // a -0
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "element %zu of a row is not a probability (draft %g, target %g)", x,
                    (double)draft[x], (double)target[x]);
}

int dsc_rows_curve_set(dsc_rows_curve *c, const float *draft, const float *target, size_t vocab,
                       dsc_error *err)
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
    c->draft = draft;
    c->target = target;
    c->vocab = vocab;
    c->tokens = c->wants = 0;
    c->sketch = false;
    memset(c->begin, 0xff, sizeof c->begin);
    dsc_cells_reset(&c->cells, 0);
    uint32_t worst = c->kernel->histogram(draft, target, vocab, (127 + DSC_LOWEST_OCTAVE) << 23,
                                          c->cells.above, c->cells.slot);
    if (worst >= DSC_ROWS_NOT_FINITE && (rc = bad_element(draft, target, vocab, err)))
        return rc;
    dsc_cells_close(&c->cells);
    double d = c->cells.draft_sum, t = c->cells.target_sum;
    if (d > 0 && t > 0 && d < 2 * t && t < 2 * d)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT, "rows that sum to %g (draft) and %g (target) are no laws", d,
                    t);
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

// Writes down the tokens of the wanted slots, one slot after the other.
static void look_up(dsc_rows_curve *c)
{
    const uint32_t *found = c->cells.found;
    const uint16_t *slot_of = c->cells.slot;
    size_t n = c->kernel->select(slot_of, c->vocab, c->wanted, c->wants, c->cells.found);
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
    for (size_t i = 0; i < n; i++) {
        size_t slot = whole_slot(slot_of[found[i]]);
        c->token[c->begin[slot] + c->count[slot]++] =
            (dsc_mass){c->draft[found[i]], c->target[found[i]]};
    }
    c->wants = 0;
}

void dsc_rows_curve_sketch(dsc_rows_curve *c)
{
    c->sketch = true;
}

void dsc_rows_curve_look_up(dsc_rows_curve *c)
{
    c->sketch = false;
    if (c->wants)
        look_up(c);
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

dsc_mass dsc_rows_curve_below(dsc_rows_curve *c, double at)
{
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
