// SPDX-License-Identifier: Apache-2.0
// Every quantity of the curve for one pair of distributions and k = 1..kmax: exactly from the
// sorted curve, or certified to 1e-6 from fp32 rows in one pass, without sorting.
//
// DSC_EUSAGE: a pointer is NULL, where nothing else is stated.
#ifndef DSC_THEORY_ACCEPTANCE_H
#define DSC_THEORY_ACCEPTANCE_H

#include "theory/curve.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_MAX_DRAFTS = 64 }; // per position

typedef struct dsc_rule_acceptance {
    int k;
    double single;    // sum min(draft, target)
    double specinfer; // SpecInfer, with replacement
    double kseq, kseq_rho;
    double otm; // alpha_k, i.i.d. drafts
} dsc_rule_acceptance;

// All quantities for k[i] in [1, DSC_MAX_DRAFTS] drafts, into out[i]; NaN for another k, and for a
// curve that is NULL or was not initialized. Nothing when `k` or `out` is NULL. This is the
// specification of dsc_acceptance_of_rows.
DSC_API void dsc_acceptance_of_curve(const dsc_curve *c, const int *k, size_t count,
                                     dsc_rule_acceptance *out);

// Memory of dsc_acceptance_of_rows, kept between calls (one per thread); it grows with the
// vocabulary. *out is owned by the caller. DSC_ENOMEM.
typedef struct dsc_acceptance_work dsc_acceptance_work;
DSC_API int dsc_acceptance_work_new(dsc_acceptance_work **out, dsc_error *err);
DSC_API void dsc_acceptance_work_free(dsc_acceptance_work *w); // NULL is allowed

// The same for k = 1..kmax (kmax <= DSC_MAX_DRAFTS) from fp32 rows, which need not be normalized
// (each is divided by its sum). One pass over both rows fills a histogram over ln(target/draft);
// convexity bounds what a bucket can hide, and only buckets that may contain an optimum are read
// again. The four acceptances are within DSC_ACCEPTANCE_CERTIFIED of dsc_acceptance_of_curve for
// the rows in double, rho within 1e-5 of itself. Results do not depend on threads; between
// instruction sets they may differ within the bound. DSC_EINPUT: an element is negative or not
// finite, or the sum of a row is 0. DSC_EUSAGE: kmax is outside [1, DSC_MAX_DRAFTS], or vocab
// above 2^32 - 1. DSC_ENOMEM.
#define DSC_ACCEPTANCE_CERTIFIED 1e-6
DSC_API int dsc_acceptance_of_rows(const float *draft, const float *target, size_t vocab, int kmax,
                                   dsc_rule_acceptance *out, dsc_acceptance_work *w,
                                   dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif
