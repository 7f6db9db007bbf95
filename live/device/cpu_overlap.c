// SPDX-License-Identifier: Apache-2.0
// Draft/target overlap from two rows of logits (theory/rows/softmax.h): the specification for other
// devices. On the CPU itself, where rows can be read in place, rules materialize the distributions
// instead (sim/model.h).
#include "live/device/cpu.h"

#include "theory/rows/row_sum.h"
#include "theory/rows/softmax.h"

#include <math.h>
#include <string.h>

static double mass_of(const live_dist_row *r, int64_t x)
{
    if (!r->logits)
        return 0;
    const float v = r->logits[x];
    const double depth = ((double)v - r->most) * r->by;
    const bool kept = v > r->kept.least || (v >= r->kept.least && x <= r->kept.last);
    return kept && depth > -DSC_SOFTMAX_LEAST ? r->scale * exp(depth) : 0;
}

static dsc_mass masses_of(const live_dists *l, int64_t x)
{
    return (dsc_mass){mass_of(&l->draft, x), mass_of(&l->target, x)};
}

static void sum_masses(live_masses *out, const live_dists *l, int64_t vocab)
{
    memset(out, 0, sizeof *out);
    for (int64_t x = 0; x < vocab; x++) {
        const dsc_mass m = masses_of(l, x);
        if (!(m.draft > 0 || m.target > 0))
            continue;
        const int slot = dsc_ratio_slot_of(m.draft, m.target);
        out->draft[slot] += dsc_mass_units(m.draft);
        out->target[slot] += dsc_mass_units(m.target);
        out->count[slot]++;
    }
}

int live_cpu_compare(live_backend *b, const live_comparison *c, int64_t vocab, dsc_error *err)
{
    (void)b;
    (void)err;
    for (int64_t i = 0; i < c->pairs && c->masses; i++)
        sum_masses(&c->masses[i], &c->dists[i], vocab);
    for (int64_t i = 0; i < c->queries; i++)
        c->mass[i] = masses_of(&c->dists[c->query[i].dists], c->query[i].token);
    return DSC_OK;
}

int live_cpu_list(live_backend *b, dsc_mass *out, const live_dists *dists, const uint64_t *wanted,
                  int64_t count, int64_t vocab, dsc_error *err)
{
    int64_t n = 0;
    (void)b;
    (void)err;
    for (int64_t x = 0; x < vocab && n < count; x++) {
        const dsc_mass m = masses_of(dists, x);
        if (!(m.draft > 0 || m.target > 0))
            continue;
        const int slot = dsc_ratio_slot_of(m.draft, m.target);
        if (wanted[slot / 64] >> slot % 64 & 1)
            out[n++] = m;
    }
    return DSC_OK;
}

int live_cpu_sample_residual(live_backend *b, live_residual_sample *out, const live_dists *dists,
                             const dsc_residual *residual, double u, int64_t vocab, dsc_error *err)
{
    cpu_scratch *work = &cpu_of(b)->work;
    int rc = live_cpu_scratch(work, (size_t)vocab * sizeof(double), err);
    if (rc)
        return rc;
    double *const left = work->data;
    for (int64_t x = 0; x < vocab; x++) {
        const dsc_mass m = masses_of(dists, x);
        size_t j = 0;
        while (j + 1 < residual->lines && residual->from[j + 1] * m.draft <= m.target)
            j++;
        left[x] = fmax(residual->keep[j] * m.target - residual->take[j] * m.draft, 0);
    }
    for (size_t i = 0; i < residual->own; i++)
        left[residual->token[i]] = residual->residual ? residual->residual[i] : 0;
    out->sum = dsc_row_sum(left, (size_t)vocab);
    out->token = out->sum > 0 ? (int32_t)dsc_row_find(left, (size_t)vocab, u * out->sum) : -1;
    return DSC_OK;
}
