// SPDX-License-Identifier: Apache-2.0
// What is left of two rows once the output token y is known: the numbers from which every lossless
// rule on i.i.d. drafts can be replayed, conditionally on y, for k = 1..K drafts. They are the
// columns kseq, specinfer and otm of a trace (traces/trace/trace.h).
#ifndef DSC_THEORY_SUFFICIENT_H
#define DSC_THEORY_SUFFICIENT_H

#include "base/memory.h"
#include "theory/rows/log_row.h"

// Memory, kept between positions (one per thread).
typedef struct dsc_sufficient_work dsc_sufficient_work;
int dsc_sufficient_work_new(dsc_sufficient_work **out, dsc_error *err);
void dsc_sufficient_work_free(dsc_sufficient_work *w);

// Computes the statistics of two rows [vocab], fp32 distributions (each is divided by its sum) or
// log-probabilities as models return them; these become probabilities block by block during the
// pass and are not stored, and the results of each dsc_log_row are filled in. draft_y >= 0 and
// target_y > 0 are the probabilities of y before that division. K in [1, 64]. Writes
//   kseq[K][2]           rho and beta of dsc_kseq_best,
//   specinfer[K + 1]     c_1 .. c_{K+1} of theory/specinfer.h,
//   otm[K (K + 3) / 2]   dsc_otm_sampler_survivors at y for k = 1, .., K, one after the other.
// Results do not depend on threads. DSC_EINPUT: an element is negative or not finite, or the sums
// are not those of distributions.
int dsc_sufficient_of_sources(const dsc_row_source *draft, const dsc_row_source *target,
                              size_t vocab, double draft_y, double target_y, int K, float *kseq,
                              float *specinfer, float *otm, dsc_sufficient_work *w, dsc_error *err);

#endif
