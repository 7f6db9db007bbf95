// SPDX-License-Identifier: Apache-2.0
// SpecTr (Sun et al. 2023) Lemma 3; theory/lemma3.h. The upper bound is the least, over token sets
// N with complement A, of
//
//   B(N) = sum over y in A of min(target(y), 1 - (1 - draft(y))^k)
//        + sum over draft tuples x of min(draft(x_1) .. draft(x_k), target(tokens of x in N)).
//
// It is not only tight for the paper's examples, but alpha_k for every pair of distributions. For
// the first sum is at most target(A), and the second at most the probability of the tuples that
// have a token in N, 1 - draft(A)^k: B(N) <= target(A) + 1 - draft(A)^k, of which the least is
// alpha_k (theory/otm.h), while the lemma says that no B(N) is less than alpha_k. So nothing has to
// be enumerated.
#include "theory/lemma3.h"

#include "theory/otm.h"

#include <math.h>

dsc_lemma3 dsc_lemma3_bounds(const dsc_curve *c, int k)
{
    double upper = dsc_otm_value(c, k).accept;
    return (dsc_lemma3){k, -expm1(k * log1p(-1. / k)) * upper, upper};
}
