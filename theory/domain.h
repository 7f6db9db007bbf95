// SPDX-License-Identifier: Apache-2.0
// Internal: the domains of the arguments of theory's exported functions, which check them once.
#ifndef DSC_THEORY_DOMAIN_H
#define DSC_THEORY_DOMAIN_H

#include "theory/curve.h"
#include "theory/probs.h"

// Rounding leaves some probabilities above 1. NaN is none.
static inline bool dsc_is_probability(double p)
{
    return p >= 0 && p <= 1 + DSC_PROBS_TOLERANCE;
}

// Returns whether both are probabilities, of which the second is positive.
static inline bool dsc_is_given(double p, double positive)
{
    return dsc_is_probability(p) && dsc_is_probability(positive) && positive > 0;
}

// False for a curve that was not initialized.
static inline bool dsc_is_curve(const dsc_curve *c)
{
    return c && c->ratio;
}

// Returns whether row[vocab], which may be NULL, has elements that are finite and >= 0, and a sum
// within DSC_PROBS_TOLERANCE of 1.
bool dsc_is_distribution(const double *row, size_t vocab);

// DSC_EUSAGE, with the name of the function: one of the rows is not a distribution.
int dsc_check_pair(const char *function, const double *draft, const double *target, size_t vocab,
                   dsc_error *err);

// The same for acceptance with 1 to kmax drafts, into accept[kmax]: kmax is in [1, 64].
int dsc_check_drafts(const char *function, const double *draft, const double *target, size_t vocab,
                     int kmax, const double *accept, dsc_error *err);

// Sets x[count] to NaN; nothing when x is NULL.
void dsc_fill_nan(double *x, size_t count);

#endif
