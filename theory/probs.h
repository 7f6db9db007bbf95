// SPDX-License-Identifier: Apache-2.0
// Next-token distributions: validation, conversion from logits, and synthetic families.
//
// DSC_EUSAGE: a pointer is NULL.
#ifndef DSC_THEORY_PROBS_H
#define DSC_THEORY_PROBS_H

#include "base/memory.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// A distribution whose sum differs from 1 by more than this is refused. fp32 softmax outputs of 150
// 000 tokens are within 1e-5; half-precision outputs are not.
#define DSC_PROBS_TOLERANCE 1e-4

// Checks that row[vocab] is a distribution (vocab >= 1; elements finite and >= 0; sum within
// DSC_PROBS_TOLERANCE of 1, or, with `normalize`, any positive finite sum) and divides it by its
// sum. DSC_EINPUT: "`what`: element 17 is negative (-0.25)", "`what`: the sum is 10, not 1: these
// look like logits (use --logits) or unnormalized probabilities (use --normalize)".
DSC_API int dsc_probs_check(const char *what, double *row, size_t vocab, bool normalize,
                            dsc_error *err);

// Converts logits[vocab] in place into the distribution that a sampler with these settings draws
// from, in the order of HF transformers: temperature, top-k, top-p. temperature > 0, or 0: all mass
// is on the first largest logit. top_k <= 0 or >= vocab: off (ties with the k-th largest logit are
// kept, as in transformers). top_p in (0, 1]: the smallest set of most probable tokens whose mass
// reaches top_p; 1: off. Logits may be -inf (not all), never NaN or +inf: DSC_EINPUT. A setting is
// out of range: DSC_EUSAGE.
DSC_API int dsc_probs_softmax(const char *what, double *logits, size_t vocab, double temperature,
                              int64_t top_k, double top_p, dsc_error *err);

// Families of pairs, into draft[] and target[] of `vocab` tokens: NaN when a parameter is outside
// its range or the other array is NULL. SpecTr App. B: Ber(p) has tokens 1 (mass p) and 0,
// vocab = 2. U(d) to U(d/r): vocab = d, and the target is uniform over the first d/r tokens (r
// divides d).
DSC_API void dsc_probs_bernoulli(double draft_p, double target_p, double draft[2],
                                 double target[2]);
DSC_API void dsc_probs_uniform(size_t vocab, size_t r, double *draft, double *target);
// Zipf: draft(rank) ~ rank^-exponent, target(rank) ~ draft(rank) exp(noise z), with z standard
// normal from Philox (seed, rank). Such pairs resemble two models with one tokenizer. noise >= 0;
// |exponent| ln(vocab) + 10 noise is finite.
DSC_API void dsc_probs_zipf(size_t vocab, double exponent, double noise, uint64_t seed,
                            double *draft, double *target);

#ifdef __cplusplus
}
#endif

#endif
