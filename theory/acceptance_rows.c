// SPDX-License-Identifier: Apache-2.0
// Acceptance quantities from fp32 rows in one pass, certified; theory/acceptance.h.
//
// 1. One pass over both rows adds every token's masses to the cell of its ratio target/draft, 2^9
//    cells per octave (acceptance_kernel.h). The sums of the rows come with it, so rows need not
//    be normalized first: another sum only shifts the ratios.
// 2. The cells bound every quantity from both sides (acceptance_bounds.c).
// 3. While a pair of bounds is too far apart, the cells to blame are split (acceptance_cells.c); a
//    second time down to cells of one float.
// 4. What is still uncertain, a rho that hangs on the last digits, or sums of the rows more than
//    2^100 apart, goes the long way: the sorted curve.
//
// The error. Cells know their tokens' true ratios (no rounding there), so what is left is half the
// distance of the bounds, at most 4e-7, and the sums: doubles of one sign, in error by at most
// vocab 2^-53 of themselves, 2e-11 for 2^17 tokens. The order of the additions is that of the
// tokens on every path, so that kernels agree to the bit.
#include "theory/acceptance_bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int dsc_acceptance_work_new(dsc_acceptance_work **out, dsc_error *err)
{
    int rc = dsc_new(out, 1, err);
    if (rc)
        return rc;
    (*out)->kernel = dsc_rows_kernel_best();
    rc = dsc_cells_init(&(*out)->cells, err);
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

void dsc_acceptance_work_free(dsc_acceptance_work *w)
{
    if (!w)
        return;
    dsc_cells_fini(&w->cells);
    free(w);
}

// The histogram of a checked pair, its inner cells beginning at 2^(DSC_LOWEST_OCTAVE + octave).
static int fill(dsc_acceptance_work *w, const float *draft, const float *target, size_t vocab,
                int octave, dsc_error *err)
{
    dsc_cells *c = &w->cells;
    dsc_cells_reset(c, octave);
    int32_t first = (127 + DSC_LOWEST_OCTAVE + octave) << 23;
    const size_t early = DSC_ROWS_AHEAD * sizeof *draft; // may lie beyond the rows
    const void *ahead[2] = {(const void *)((uintptr_t)draft + early),
                            (const void *)((uintptr_t)target + early)};
    uint32_t worst = w->kernel->histogram(draft, target, vocab, first, c->above, c->slot, ahead);
    if (worst >= DSC_ROWS_NOT_FINITE) { // or a -0, which is all right
        int rc = dsc_cells_check(draft, target, 0, vocab, err);
        if (rc)
            return rc;
    }
    dsc_cells_close(c);
    if (!(c->draft_sum > 0) || !(c->target_sum > 0))
        return dsc_fail(err, DSC_EINPUT, "%s: sums to 0, which no factor makes 1",
                        c->draft_sum > 0 ? "target" : "draft");
    return DSC_OK;
}

// The road without cells: sorted, in double.
static int by_sorting(const dsc_acceptance_work *w, const float *draft, const float *target,
                      size_t vocab, int kmax, dsc_rule_acceptance *out, dsc_error *err)
{
    double *row[2] = {NULL, NULL};
    dsc_curve curve = {0};
    int k[DSC_MAX_DRAFTS];
    for (int i = 0; i < kmax; i++)
        k[i] = i + 1;
    int rc = dsc_alloc(&row[0], vocab, sizeof **row, err);
    if (!rc)
        rc = dsc_alloc(&row[1], vocab, sizeof **row, err);
    for (size_t x = 0; x < vocab && !rc; x++) {
        row[0][x] = draft[x] / w->cells.draft_sum;
        row[1][x] = target[x] / w->cells.target_sum;
    }
    if (!rc)
        rc = dsc_curve_init(&curve, row[0], row[1], vocab, err);
    if (!rc)
        dsc_acceptance_of_curve(&curve, k, (size_t)kmax, out);
    dsc_curve_fini(&curve);
    free(row[0]);
    free(row[1]);
    return rc;
}

// Equal rows, and rows without a common token. rho is 1, or k: what is left of SpecTr Eq. (6)
// there.
static bool is_trivial(const dsc_cells *c, const float *draft, const float *target, size_t vocab,
                       int kmax, dsc_rule_acceptance *out)
{
    dsc_mass bottom = c->above[DSC_BOTTOM], inner = c->above[DSC_SINKS];
    bool equal = memcmp(draft, target, vocab * sizeof *draft) == 0;
    bool disjoint = inner.draft == 0 && bottom.target == inner.target;
    if (!equal && !disjoint)
        return false;
    double all = equal ? 1 : 0;
    for (int k = 1; k <= kmax; k++)
        out[k - 1] = (dsc_rule_acceptance){k, all, all, all, equal ? 1 : k, all};
    return true;
}

// The true values are ordered by rule and by k; keeping that adds no error.
static void keep_order(int kmax, dsc_rule_acceptance *out)
{
    for (int i = 0; i < kmax; i++) {
        const dsc_rule_acceptance *fewer = &out[i ? i - 1 : 0];
        out[i].specinfer = fmax(fmax(out[i].specinfer, fewer->specinfer), out[i].single);
        out[i].kseq = fmax(fmax(out[i].kseq, fewer->kseq), out[i].specinfer);
        out[i].otm = fmax(fmax(out[i].otm, fewer->otm), out[i].kseq);
    }
}

int dsc_acceptance_of_rows(const float *draft, const float *target, size_t vocab, int kmax,
                           dsc_rule_acceptance *out, dsc_acceptance_work *w, dsc_error *err)
{
    if (!draft || !target || !out || !w)
        return dsc_fail(err, DSC_EUSAGE, "dsc_acceptance_of_rows: an argument is NULL");
    if (kmax < 1 || kmax > DSC_MAX_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE, "%d drafts; 1 to %d are possible", kmax, DSC_MAX_DRAFTS);
    if (vocab > UINT32_MAX)
        return dsc_fail(err, DSC_EUSAGE, "%zu tokens; at most 2^32 - 1 are possible", vocab);
    dsc_cells *c = &w->cells;
    w->splits = 0;
    w->sorted = false;
    int rc = dsc_cells_reserve(c, vocab, err);
    rc = rc ? rc : fill(w, draft, target, vocab, 0, err);
    if (rc)
        return rc;
    if (is_trivial(c, draft, target, vocab, kmax, out))
        return DSC_OK;
    double octave = nearbyint(log2(c->target_sum / c->draft_sum));
    bool usable = fabs(octave) <= 100;
    if (octave != 0 && usable)
        rc = fill(w, draft, target, vocab, (int)octave, err);
    while (usable && !rc) {
        dsc_rule_acceptance error[DSC_MAX_DRAFTS];
        dsc_doubts doubts;
        dsc_bounds_evaluate(c, kmax, out, error, &doubts);
        if (!doubts.count)
            break;
        rc = dsc_cells_split(c, w->kernel, draft, target, vocab, doubts.cell, doubts.count, &usable,
                             err);
        w->splits++;
    }
    w->sorted = !usable || out[0].single < 1e-7; // which 1 - W(1) gives to some digits only
    if (w->sorted && !rc)
        rc = by_sorting(w, draft, target, vocab, kmax, out, err);
    if (!rc)
        keep_order(kmax, out);
    return rc;
}
