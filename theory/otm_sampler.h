// SPDX-License-Identifier: Apache-2.0
// An exact optimal-transport sampler: k i.i.d. drafts in, an output with exactly the target's
// distribution out, accepted with probability alpha_k - gap, gap <= 1e-6 and usually far below.
//
// With A the maximiser of otm.h: drafts all in A are chosen among with weights, and rejected with
// weight 1; when some draft is outside A, one of those outside is always chosen. The weight of a
// token is a function of its ratio target/draft only. See otm_sampler.c for the mathematics.
#ifndef DSC_THEORY_OTM_SAMPLER_H
#define DSC_THEORY_OTM_SAMPLER_H

#include "base/memory.h"
#include "theory/rows/overlap.h"

typedef struct dsc_otm_sampler dsc_otm_sampler;

// Memory for one sampler; built again for each position. *out owned by the caller.
DSC_API int dsc_otm_sampler_new(dsc_otm_sampler **out, dsc_error *err);
DSC_API void dsc_otm_sampler_free(dsc_otm_sampler *s);

// Fits the weights for k in [1, 64] drafts at one position. The rows [vocab] are distributions up
// to a factor (each is divided by its sum: every function below means the distributions) and are
// not kept. DSC_EINPUT: an element is negative or not finite, a sum is 0 or not finite.
DSC_API int dsc_otm_sampler_build(dsc_otm_sampler *s, const double *draft, const double *target,
                                  size_t vocab, int k, dsc_error *err);
DSC_API int dsc_otm_sampler_build_f32(dsc_otm_sampler *s, const float *draft, const float *target,
                                      size_t vocab, int k, dsc_error *err);

// The same of two distributions wherever they lie, whose sums are 1 up to rounding.
DSC_API int dsc_otm_sampler_build_overlap(dsc_otm_sampler *s, dsc_overlap *m, int k,
                                          dsc_error *err);

DSC_API int dsc_otm_sampler_drafts(const dsc_otm_sampler *s);    // k
DSC_API double dsc_otm_sampler_alpha(const dsc_otm_sampler *s);  // alpha_k, the bound
DSC_API double dsc_otm_sampler_accept(const dsc_otm_sampler *s); // Pr(accepted), exactly
DSC_API double dsc_otm_sampler_gap(const dsc_otm_sampler *s);    // the difference, >= 0

// Below, draft_x and target_x are elements of the rows that were given to build.

// Pr(accepted and the output is x), at most the target's mass of x. Only for draft_x > 0 can it
// be positive.
DSC_API double dsc_otm_sampler_flow(const dsc_otm_sampler *s, double draft_x, double target_x);

// Chooses. draft[i], target[i]: the rows at the tokens of the k drafts; uniform[2 k + 2]:
// independent uniforms in [0, 1). Returns the index of the accepted draft, or -1: rejected, draw
// from the residual.
DSC_API int dsc_otm_sampler_choose(const dsc_otm_sampler *s, const double *draft,
                                   const double *target, const double *uniform);
// The distribution of that choice: probability[i] of draft i, probability[k] of rejection.
DSC_API void dsc_otm_sampler_dist(const dsc_otm_sampler *s, const double *draft,
                                  const double *target, double *probability);

// The distribution to draw from after a rejection, (target - flow) normalised, at one token; 0 when
// nothing is ever rejected.
DSC_API double dsc_otm_sampler_residual_at(const dsc_otm_sampler *s, double draft_x,
                                           double target_x);
// The same, up to a factor, of all tokens of a meeting (nothing, when nothing is ever rejected);
DSC_API void dsc_otm_sampler_residual(const dsc_otm_sampler *s, dsc_residual *out);
// or of the rows that were given to build: into residual[vocab]; returns the sum.
DSC_API double dsc_otm_sampler_residuals(const dsc_otm_sampler *s, const double *draft,
                                         const double *target, size_t vocab, double *residual);

// Conditional replay: Pr(accepted | y), and dist[0] = Pr(rejected | y), dist[m] = Pr(accepted and
// exactly m of the k drafts are y | y); target_y > 0.
DSC_API double dsc_otm_sampler_given(const dsc_otm_sampler *s, double draft_y, double target_y);
DSC_API void dsc_otm_sampler_survivors(const dsc_otm_sampler *s, double draft_y, double target_y,
                                       double *dist);

#endif
