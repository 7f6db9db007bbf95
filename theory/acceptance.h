// SPDX-License-Identifier: Apache-2.0
// Acceptance of every rule for i.i.d. drafts, for one pair of distributions and several numbers of
// drafts: from the sorted curve, or from fp32 rows in one pass without sorting.
#ifndef DSC_THEORY_ACCEPTANCE_H
#define DSC_THEORY_ACCEPTANCE_H

#include "theory/curve.h"

enum { DSC_MAX_DRAFTS = 64 }; // drafts per position

typedef struct dsc_rule_acceptance {
    int k;
    double single;    // sum min(draft, target)
    double specinfer; // SpecInfer rejection with replacement
    double kseq, kseq_rho;
    double otm; // alpha_k, the optimum for i.i.d. drafts
} dsc_rule_acceptance;

// All quantities for k[i] in [1, DSC_MAX_DRAFTS] drafts, into out[i]. This is the specification of
// dsc_acceptance_of_rows.
void dsc_acceptance_of_curve(const dsc_curve *c, const int *k, size_t count,
                             dsc_rule_acceptance *out);

// Memory of dsc_acceptance_of_rows, reused between calls (one per thread).
typedef struct dsc_acceptance_work dsc_acceptance_work;
int dsc_acceptance_work_new(dsc_acceptance_work **out, dsc_error *err);
void dsc_acceptance_work_free(dsc_acceptance_work *w);

// Computes the acceptances for k = 1..kmax (kmax <= DSC_MAX_DRAFTS) from fp32 rows in one pass,
// without sorting. The rows are distributions up to a factor, and their sums differ by less than a
// factor of 2; each is divided by its sum. The four acceptances are within DSC_ACCEPTANCE_ERROR of
// dsc_acceptance_of_curve for the same rows in double, rho within 1e-6 of itself. Results do not
// depend on threads. DSC_EINPUT: an element is negative or not finite, or the sums differ by more.
#define DSC_ACCEPTANCE_ERROR 1e-9
int dsc_acceptance_of_rows(const float *draft, const float *target, size_t vocab, int kmax,
                           dsc_rule_acceptance *out, dsc_acceptance_work *w, dsc_error *err);

#endif
