// SPDX-License-Identifier: Apache-2.0
// It is not only tight for the paper's examples: it equals alpha_k for every pair of distributions.
// The first sum is at most target(A), and the second at most the probability of the tuples that
// have a token in N, 1 - draft(A)^k. So B(N) <= target(A) + 1 - draft(A)^k, whose minimum is
// alpha_k (theory/otm.h), while by the lemma no B(N) is below alpha_k. So nothing has to be
// enumerated.
#include "theory/lemma3.h"

#include "theory/otm.h"

#include <math.h>

dsc_lemma3 dsc_lemma3_bounds(const dsc_curve *c, int k)
{
    double upper = dsc_otm_value(c, k).accept;
    return (dsc_lemma3){k, -expm1(k * log1p(-1. / k)) * upper, upper};
}
