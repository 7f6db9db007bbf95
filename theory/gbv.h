// SPDX-License-Identifier: Apache-2.0
// Greedy multi-path block verification, GBV (Thomas and Pal 2026, arXiv 2602.16961): of K paths
// that are sampled independently from the draft model, the greatest one is chosen, and block
// verification (theory/block_verify.h) decides on it as if it had been sampled alone, from the
// distribution that the choice gives it.
//
// Below every prefix the tokens are ordered by target/draft, and paths are compared at the first
// token in which they differ. With A the draft mass of all paths that come before a prefix, x the
// draft mass of the prefix, y that of its continuations that come before a token and z that of the
// token itself, the chosen path, given that it begins with the prefix, continues with the token
// with probability
//
//   [(A + y + z)^K - (A + y)^K] / [(A + x)^K - A^K].
//
// Only A/x, y/x and z/x matter. The differences of powers are factored, so no digits cancel.
#ifndef DSC_THEORY_GBV_H
#define DSC_THEORY_GBV_H

#include "base/memory.h"

#include <stdbool.h>

enum { DSC_GBV_PATHS = 1000 };

// The place of a prefix among all paths: A and x, scaled to a sum of 1.
typedef struct dsc_gbv_prefix {
    double before, here;
} dsc_gbv_prefix;

// The prefix without tokens.
dsc_gbv_prefix dsc_gbv_root(void);

// The probability that the best of `paths` paths continues with a token, given the prefix. `lower`
// is the draft probability of the tokens that come before it and `draft` its own. NaN: paths is
// outside [1, DSC_GBV_PATHS], or a probability outside [0, 1].
double dsc_gbv_probability(dsc_gbv_prefix prefix, double lower, double draft, int paths);

// The prefix that is longer by that token; draft > 0.
dsc_gbv_prefix dsc_gbv_next(dsc_gbv_prefix prefix, double lower, double draft);

// Whether token a comes before token b: its ratio target/draft is smaller, or equal and a < b. Both
// draft probabilities are positive.
bool dsc_gbv_is_before(const double *draft, const double *target, int32_t a, int32_t b);

// The draft probability of the tokens that come before `token`, O(vocab). NaN: an argument is NULL
// or the token has no draft probability.
double dsc_gbv_lower(const double *draft, const double *target, size_t vocab, int32_t token);

// Memory for dsc_gbv_dist. Zero-initialize.
typedef struct dsc_gbv_order {
    uint64_t *token; // [capacity] the tokens by target/draft, and as many of scratch
    size_t capacity;
} dsc_gbv_order;
void dsc_gbv_order_fini(dsc_gbv_order *order);

// dist[vocab]: dsc_gbv_probability of every token, which sums to 1. O(V paths).
// DSC_EUSAGE: an argument is NULL, or paths is outside its range. DSC_ENOMEM.
int dsc_gbv_dist(dsc_gbv_order *order, dsc_gbv_prefix prefix, const double *draft,
                 const double *target, size_t vocab, int paths, double *dist, dsc_error *err);

// The probabilities of a token of the output where it stands; `lower` is dsc_gbv_lower of it, 0 if
// draft is 0.
typedef struct dsc_path_token {
    double draft, target, lower; // target > 0
} dsc_path_token;

// Conditional replay: reach[i] becomes the probability that the first i + 1 tokens of a draft are
// accepted, given that the output continues with token[length] (theory/block_verify.h). One path is
// block verification.
void dsc_gbv_replay(const dsc_path_token *token, int length, int paths, double *reach);

#endif
