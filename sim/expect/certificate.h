// SPDX-License-Identifier: Apache-2.0
// What verification rules accept on the recorded distributions of a trace, and what no rule can
// exceed: rejection sampling, block verification, GBV for several numbers of sequences, and an
// upper bound for every lossless rule on that many independent sequences.
//
// A draft of L tokens is verified at every output position that L tokens follow, by conditional
// replay: given the recorded output, which is a sample of the target, the probability that the
// first i tokens are accepted (theory/gbv.h, theory/single.h).
//
// The bound of the first token is exact at each position: the optimal-transport value of its two
// distributions (theory/otm.h). For the first i > 1 tokens it holds in the mean. With Q(A) and P(A)
// the probabilities of a set A of paths under the draft model and the target, no rule for K
// independent sequences matches the target's first i tokens with a probability above
// 1 - Q(A)^K + P(A), whatever A is. For A = {target/draft <= c}
// without the paths whose first i - 1 tokens are much more probable under the draft model, the
// means of P(A) and of Q(A) = E_target[draft/target; A] over positions follow from the output's
// first i - 1 tokens and the distributions of the last one, and Q^K is convex, so the mean of
// Q(A)^K is at least the K-th power of the mean. The best c is found on one half of the requests
// and applied to the other. The bound is an estimate: few positions give a noisy one. A second
// bound holds given each output: its first i tokens y are accepted only where a path drafts them,
// so with a probability of at most min(1, (1 - (1 - Q(y))^K) / P(y)). The lower sum of the two is
// reported.
#ifndef DSC_SIM_CERTIFICATE_H
#define DSC_SIM_CERTIFICATE_H

#include "traces/trace/trace.h"

enum { DSC_CERTIFICATE_PATHS = 16, DSC_CERTIFICATE_LENGTH = 32 }; // at most

// One rule with one draft length.
typedef struct dsc_certified {
    double accepted; // mean number of accepted tokens of a draft
    double half;     // half of its 95 % interval over requests; NaN: one request
    // Positions where its last token is accepted less often than by block verification; of `block`,
    // than by rejection sampling, which would contradict the theory. GBV: drafts of one token only.
    int64_t below;
    int64_t above; // positions where it exceeds the bound of one token: a contradiction
} dsc_certified;

// [L - 1] is that of drafts of L tokens; of `gbv` and `bound` also by path number.
typedef struct dsc_certificate {
    int64_t positions[DSC_CERTIFICATE_LENGTH];
    dsc_certified rejection[DSC_CERTIFICATE_LENGTH], block[DSC_CERTIFICATE_LENGTH];
    dsc_certified gbv[DSC_CERTIFICATE_PATHS][DSC_CERTIFICATE_LENGTH];
    dsc_certified bound[DSC_CERTIFICATE_PATHS][DSC_CERTIFICATE_LENGTH];
} dsc_certificate;

// For `paths[count]` numbers of sequences, each in [1, 64], and drafts of 1 .. length tokens. The
// result does not depend on `threads` >= 1. DSC_EUSAGE: the trace lacks the rows of a
// model, or a number is outside its range. DSC_EINPUT: a row does not list all of its mass.
int dsc_certify(dsc_certificate *out, const dsc_trace *trace, const int *paths, size_t count,
                int length, int threads, dsc_error *err);

#endif
