// SPDX-License-Identifier: Apache-2.0
// A synthetic language as a parallel drafter: the marginal of its token at each offset after the
// committed output, q_j(y) = sum over x of q_(j - 1)(x) p(y | x), which is exact where a token
// depends on at most the one before it.
#include "sim/model/model_synthetic.h"

#include <string.h>

// The marginal at `offset` >= 1 into out[vocab_size], from the one before it.
static int propagate(dsc_model_synthetic *m, int64_t offset, bool base, const double *before,
                     double *out, dsc_error *err)
{
    const dsc_language *l = m->language;
    const int32_t vocab = l->vocab_size;
    const int64_t position = (int64_t)m->prompt + m->base.length + offset;
    int rc = dsc_resize(&m->conditional, &m->conditional_capacity, (size_t)vocab, err);
    memset(out, 0, (size_t)vocab * sizeof *out);
    for (int32_t x = 0; x < (l->reach ? vocab : 1) && !rc; x++) {
        const dsc_place at = {&x, l->reach, position, offset, m->request};
        const double weight = l->reach ? before[x] : 1;
        dsc_dist dist;
        if (!(weight > 0))
            continue;
        rc = dsc_model_synthetic_dist(m, &at, base, &dist, err);
        if (rc)
            return rc;
        dsc_dist_fill(&dist, m->conditional);
        for (int32_t y = 0; y < vocab; y++)
            out[y] += weight * m->conditional[y];
    }
    return rc;
}

static int first_marginal(dsc_model_synthetic *m, bool base, double *out, dsc_error *err)
{
    const size_t length = m->prompt + (size_t)m->base.length;
    const dsc_place at = {m->text, length, (int64_t)length, 0, m->request};
    dsc_dist dist;
    int rc = dsc_model_synthetic_dist(m, &at, base, &dist, err);
    if (!rc)
        dsc_dist_fill(&dist, out);
    return rc;
}

static int marginal(dsc_model *model, int64_t offset, bool base, dsc_dist *out, dsc_error *err)
{
    dsc_model_synthetic *m = (dsc_model_synthetic *)model;
    const size_t vocab = (size_t)m->language->vocab_size, rows = (size_t)offset + 1;
    int rc = dsc_resize(&m->marginal[base], &m->marginal_capacity[base], rows * vocab, err);
    while (!rc && m->marginals[base] < rows) {
        const size_t at = m->marginals[base];
        double *row = m->marginal[base] + at * vocab;
        rc = at ? propagate(m, (int64_t)at, base, row - vocab, row, err)
                : first_marginal(m, base, row, err);
        m->marginals[base] += !rc;
    }
    if (!rc)
        *out = (dsc_dist){.vocab_size = m->language->vocab_size,
                          .dense = m->marginal[base] + (size_t)offset * vocab};
    return rc;
}

static int64_t depth_of(const dsc_model *model, int32_t node)
{
    int64_t depth = 0;
    for (; node >= 0; node = ((const dsc_model_synthetic *)model)->draft->parent[node])
        depth++;
    return depth;
}

static int dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err)
{
    return marginal(m, depth_of(m, node), false, out, err);
}

static int base_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err)
{
    return marginal(m, depth_of(m, node), true, out, err);
}

static int next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err)
{
    const int64_t depth = depth_of(m, node);
    dsc_dist dist;
    int rc = marginal(m, depth, true, &dist, err);
    int32_t best = 0;
    for (int32_t x = 1; !rc && x < dist.vocab_size; x++)
        if (dist.dense[x] > dist.dense[best])
            best = x;
    *out = (dsc_next){best, dsc_model_ends(m, depth, best)};
    return rc;
}

static const dsc_model_type type = {.name = "parallel",
                                    .score = dsc_model_synthetic_score,
                                    .next = next,
                                    .dist = dist,
                                    .base_dist = base_dist,
                                    .marginal = marginal,
                                    .commit = dsc_model_synthetic_commit};

int dsc_model_synthetic_parallel(dsc_model_synthetic *m, dsc_error *err)
{
    if (m->language->reach > 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "model %s has no exact marginals, because a token depends on the last %zu; "
                        "a parallel drafter needs --draft markov: or acceptance rates",
                        m->language->type->name, m->language->reach);
    m->base.type = &type;
    return DSC_OK;
}
