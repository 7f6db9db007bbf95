// SPDX-License-Identifier: Apache-2.0
// Storage of the columns of a reduced request.
#include "sim/reduce/reduce_columns.h"

#include <math.h>

int dsc_reduced_init(dsc_reduced *c, int K, int32_t rank_depth, size_t n, dsc_arena *arena,
                     dsc_error *err)
{
    const size_t k = (size_t)K;
    *c = (dsc_reduced){.K = K, .rank_depth = rank_depth};
    struct {
        void *array;
        size_t elements, size; // per position
    } part[] = {
        {&c->logp[0], 1, sizeof(float)},
        {&c->logp[1], 1, sizeof(float)},
        {&c->entropy[0], 1, sizeof(float)},
        {&c->entropy[1], 1, sizeof(float)},
        {&c->argmax[0], 1, sizeof(int32_t)},
        {&c->argmax[1], 1, sizeof(int32_t)},
        {&c->rank, 1, sizeof(uint16_t)},
        {&c->ranks, (size_t)rank_depth, sizeof(uint16_t)},
        {&c->kseq, 2 * k, sizeof(float)},
        {&c->specinfer, k + 1, sizeof(float)},
        {&c->otm, k * (k + 3) / 2, sizeof(float)},
    };
    int rc = DSC_OK;
    for (size_t i = 0; i < sizeof part / sizeof *part && !rc; i++)
        rc = dsc_arena_alloc(arena, part[i].array, n * part[i].elements, part[i].size, err);
    return rc;
}

void dsc_reduced_keep(const dsc_reduced *c, int side, int64_t j, double logp,
                      const dsc_row_facts *facts)
{
    c->logp[side][j] = (float)fmin(logp, 0);
    c->argmax[side][j] = facts->argmax;
    c->entropy[side][j] = (float)facts->entropy;
    if (side == DSC_SIDE_DRAFT)
        c->rank[j] = dsc_reduced_rank(facts->rank_y);
}

int dsc_reduced_dists(const dsc_reduced *c, int64_t j, const dsc_row_source *draft,
                      const dsc_row_source *target, size_t vocab, double draft_y, double target_y,
                      dsc_sufficient_work *w, dsc_error *err)
{
    const int K = c->K;
    return dsc_sufficient_of_sources(draft, target, vocab, draft_y, fmax(target_y, 1e-300), K,
                                     c->kseq + j * 2 * K, c->specinfer + j * (K + 1),
                                     c->otm + j * (K * (K + 3) / 2), w, err);
}

void dsc_reduced_spread_ranks(const dsc_reduced *c, int64_t n)
{
    const int64_t depth = c->rank_depth;
    for (int64_t j = 0; j < n; j++)
        for (int64_t d = 0; d < depth; d++)
            c->ranks[j * depth + d] = j + d < n ? c->rank[j + d] : DSC_RANK_NONE;
}
