// SPDX-License-Identifier: Apache-2.0
// An exact optimal-transport sampler: it takes k i.i.d. drafts and returns an output with exactly
// the target's distribution. It accepts with probability alpha_k - gap, where gap <= 1e-6 and
// usually far smaller.
//
// Let A be the maximizer of otm.h. If all drafts are in A, one of them is chosen with weights and
// may be rejected, where rejection has weight 1. If some draft is outside A, one of those outside
// is always chosen. The weight of a token is a function of its ratio target/draft only. The
// mathematics is in otm_sampler.c.
#ifndef DSC_THEORY_OTM_SAMPLER_H
#define DSC_THEORY_OTM_SAMPLER_H

#include "base/memory.h"
#include "theory/rows/overlap.h"

typedef struct dsc_otm_sampler dsc_otm_sampler;

// Memory of one sampler, which is built again for each position. *out is owned by the caller.
int dsc_otm_sampler_new(dsc_otm_sampler **out, dsc_error *err);
void dsc_otm_sampler_free(dsc_otm_sampler *s);

// Fits the weights for k in [1, 64] drafts at one position. The rows [vocab] are distributions up
// to a factor: each is divided by its sum, and every function below refers to the normalized
// distributions. They are not kept. DSC_EINPUT: an element is negative or not finite, or a sum is 0
// or not finite.
int dsc_otm_sampler_build(dsc_otm_sampler *s, const double *draft, const double *target,
                          size_t vocab, int k, dsc_error *err);

// Builds the sampler from an overlap (theory/rows/overlap.h) of two distributions whose sums are 1
// up to rounding.
int dsc_otm_sampler_build_overlap(dsc_otm_sampler *s, dsc_overlap *m, int k, dsc_error *err);

double dsc_otm_sampler_accept(const dsc_otm_sampler *s); // Pr(accepted), exactly
double dsc_otm_sampler_gap(const dsc_otm_sampler *s);    // alpha_k, the bound, minus that; >= 0

// Below, draft_x and target_x are elements of the rows that were given to build.

// Verifies the k drafts. draft[i] and target[i] are the elements at draft token i; uniform[2 k + 2]
// are independent uniforms in [0, 1). Returns the index of the accepted draft, or -1: all are
// rejected, and the output is sampled from the residual.
int dsc_otm_sampler_choose(const dsc_otm_sampler *s, const double *draft, const double *target,
                           const double *uniform);
// The distribution of that result: probability[i] of draft i, probability[k] of rejection.
void dsc_otm_sampler_dist(const dsc_otm_sampler *s, const double *draft, const double *target,
                          double *probability);

// The residual (target - accepted flow), which is the output's distribution up to a factor after a
// rejection, as a rule for all tokens of an overlap of distributions; it is empty when no rejection
// is possible.
void dsc_otm_sampler_residual(const dsc_otm_sampler *s, dsc_residual *out);
// Conditional replay: dist[0] = Pr(rejected | y), dist[m] = Pr(accepted and exactly m of the k
// drafts are y | y). target_y > 0.
void dsc_otm_sampler_survivors(const dsc_otm_sampler *s, double draft_y, double target_y,
                               double *dist);

#endif
