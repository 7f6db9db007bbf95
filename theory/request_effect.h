// SPDX-License-Identifier: Apache-2.0
// Requests differ: conditional acceptance rates by position with an effect of each request, a
// logistic regression with a random intercept (Stiratelli, Laird and Ware 1984, Biometrics 40(4)):
//   logit h_ij = intercept_j + sd z_i,   z_i standard normal,
// for position j of the drafts of request i. A vector of rates is the case sd = 0. It is estimated
// by maximum likelihood with the EM algorithm; the integrals over z are sums over a fixed grid.
//
// Easy requests are over-represented among drafts that get far, so conditional rates rise with the
// position where requests differ, and rates that were measured with one draft length are biased for
// another. The curve below weights each request by its output tokens and by the posterior of z.
#ifndef DSC_THEORY_REQUEST_EFFECT_H
#define DSC_THEORY_REQUEST_EFFECT_H

#include "theory/block.h"

enum { DSC_EFFECT_POSITIONS = 64 };

typedef struct dsc_request_effect {
    int positions;                          // fitted; the last one applies to all later positions
    double intercept[DSC_EFFECT_POSITIONS]; // at z = 0
    double sd;                              // >= 0
    double rate[DSC_EFFECT_POSITIONS];      // without an effect: accepted / at risk
    double gain; // log-likelihood minus that of the rates without an effect, >= 0; nats
    int iterations;
} dsc_request_effect;

// Fits the effect to count[requests][positions], position j + 1 of request i being
// count[i * positions + j] (dsc_conditional_add). Positions after the last one that any draft
// reached are left out. DSC_EUSAGE: there are no requests, no drafts, or positions are outside
// [1, DSC_EFFECT_POSITIONS]. DSC_ENOMEM.
int dsc_request_effect_fit(const dsc_conditional_count *count, size_t requests, int positions,
                           dsc_request_effect *out, dsc_error *err);

// ln of the likelihood of one request's counts, less that without an effect; for held-out requests.
// Positions whose fitted rate is 0 or 1 do not count, as they would decide alone.
double dsc_request_effect_gain(const dsc_request_effect *e, const dsc_conditional_count *count);

// Expected output tokens per target call by draft length, into plain[0 .. most] without the effect
// and into with[0 .. most] with it, for requests with these counts, [requests][stride], which write
// tokens[requests] > 0 output tokens each: with[L] is sum tokens / sum over requests of tokens
// times the posterior mean of 1/(1 + accepted(L, z)). DSC_ENOMEM.
int dsc_request_effect_curve(const dsc_request_effect *e, const dsc_conditional_count *count,
                             int stride, const double *tokens, size_t requests, int most,
                             double *plain, double *with, dsc_error *err);

#endif
