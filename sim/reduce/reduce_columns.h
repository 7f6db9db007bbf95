// SPDX-License-Identifier: Apache-2.0
// The columns of a request in a reduced trace, filled position by position.
#ifndef DSC_SIM_REDUCE_COLUMNS_H
#define DSC_SIM_REDUCE_COLUMNS_H

#include "sim/reduce/reduce_row.h"
#include "theory/sufficient.h"

typedef struct dsc_reduced {
    int K;                                       // number of drafts of the statistics; 0: none
    int32_t rank_depth;                          // >= 1
    float *logp[DSC_SIDES], *entropy[DSC_SIDES]; // [n]
    int32_t *argmax[DSC_SIDES];                  // [n]
    uint16_t *rank, *ranks;                      // [n] rank in its own row; [n][rank_depth]
    float *kseq, *specinfer, *otm;               // as in dsc_sufficient
} dsc_reduced;

// Allocates n positions in the arena.
int dsc_reduced_init(dsc_reduced *c, int K, int32_t rank_depth, size_t n, dsc_arena *arena,
                     dsc_error *err);

// Stores the facts of a row, and the log-probability of the output's token.
void dsc_reduced_keep(const dsc_reduced *c, int side, int64_t j, double logp,
                      const dsc_row_facts *facts);

// A rank that no draft can reach becomes DSC_RANK_NONE.
static inline uint16_t dsc_reduced_rank(int64_t rank)
{
    return (uint16_t)(rank < DSC_RANK_NONE ? rank : DSC_RANK_NONE);
}

// Stores the statistics of position j, from both rows, [vocab], and their elements at the output's
// token.
int dsc_reduced_dists(const dsc_reduced *c, int64_t j, const dsc_row_source *draft,
                      const dsc_row_source *target, size_t vocab, double draft_y, double target_y,
                      dsc_sufficient_work *w, dsc_error *err);

// Fills the ranks by depth. The rows follow the recorded output, so the start of a draft does not
// matter.
void dsc_reduced_spread_ranks(const dsc_reduced *c, int64_t n);

#endif
