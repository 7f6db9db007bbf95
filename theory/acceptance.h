// SPDX-License-Identifier: Apache-2.0
// Every quantity of the curve for one pair of distributions and k = 1..kmax: exactly from the
// sorted curve, or certified to 1e-6 from fp32 rows in one pass, without sorting.
#ifndef DSC_THEORY_ACCEPTANCE_H
#define DSC_THEORY_ACCEPTANCE_H

#include "theory/curve.h"

enum { DSC_MAX_DRAFTS = 64 }; // per position

typedef struct dsc_acceptance {
    int k;
    double single;    // sum min(draft, target)
    double specinfer; // SpecInfer, with replacement
    double kseq, kseq_rho;
    double otm; // alpha_k, i.i.d. drafts
} dsc_acceptance;

// out[i] for k[i] in [1, DSC_MAX_DRAFTS]. The specification of what follows.
DSC_API void dsc_acceptance_of_curve(const dsc_curve *c, const int *k, size_t count,
                                     dsc_acceptance *out);

// Memory of dsc_acceptance_of_rows, kept between calls (one per thread). Zero-initialise.
typedef struct dsc_acceptance_work dsc_acceptance_work;
DSC_API int dsc_acceptance_work_new(dsc_acceptance_work **out, dsc_error *err);
DSC_API void dsc_acceptance_work_free(dsc_acceptance_work *w);

// The same for k = 1..kmax (kmax <= DSC_MAX_DRAFTS) from fp32 rows, which need not be normalised
// (each is divided by its sum): one pass over both rows into a histogram over ln(target/draft);
// convexity bounds what each bucket can hide; only buckets that may hold an optimum are looked at
// again. |out - dsc_acceptance_of_curve of the rows in double| <= DSC_ACCEPTANCE_CERTIFIED for the
// four acceptances (rho: 1e-5 relative). Results do not depend on threads; between instruction sets
// they may differ within the bound. DSC_EINPUT: an element is negative or not finite, or a row's
// sum is 0.
#define DSC_ACCEPTANCE_CERTIFIED 1e-6
DSC_API int dsc_acceptance_of_rows(const float *draft, const float *target, size_t vocab, int kmax,
                                   dsc_acceptance *out, dsc_acceptance_work *w, dsc_error *err);

#endif
