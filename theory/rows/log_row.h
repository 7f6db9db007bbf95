// SPDX-License-Identifier: Apache-2.0
// A row over the vocabulary as models give it, the logarithms of its probabilities, made a
// distribution block by block, so that no distribution of the whole vocabulary need ever be written
// down. What the row says of itself is added up on the way.
#ifndef DSC_THEORY_LOG_ROW_H
#define DSC_THEORY_LOG_ROW_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DSC_LOG_ROW_BLOCK = 1024 }; // tokens; four arrays of floats fit in a first-level cache

typedef struct dsc_log_row {
    const float *logp;    // [vocab] natural logarithms, <= 0 and no NaN; or NULL and
    const uint16_t *bf16; // [vocab] the upper halves of such
    size_t vocab, y;      // the token whose rank is asked for
    // After all:
    double mass, mass_logp; // sums of p and of p ln p: within 3e-8 and 4e-6 of themselves
    int64_t rank_y;         // tokens that are more probable than y, or as likely and before it
    size_t argmax;          // of equals the first
    float most, logp_y;     // ln p of these two
    float dist_most;        // the distribution of argmax
    bool zeros;             // the last block has distributions that are 0
} dsc_log_row;

// A row that statistics are to be made of.
typedef struct dsc_row_source {
    const float *dist; // [vocab], a distribution up to a factor; or NULL and
    dsc_log_row *log;  // what it says of itself is filled in on the way
} dsc_row_source;

// Every block once, from the first to the last: of tokens begin, begin + 1, .. the distributions go
// into dist[DSC_LOG_ROW_BLOCK], in error by at most 8.6e-8 of themselves. Below 1e-38 they are 0:
// nothing depends on such, and subnormal numbers are slow. Returns how many tokens the block has.
size_t dsc_log_row_block(dsc_log_row *r, size_t begin, float *dist);
// After the last, with the sum of all distributions as they were given out.
void dsc_log_row_finish(dsc_log_row *r, double sum);

// All of this, for what the row says of itself.
DSC_API void dsc_log_row_read(dsc_log_row *r);

// The distributions of some tokens, dist[count], as blocks have them but for the last bit.
void dsc_log_row_some(const dsc_log_row *r, const uint32_t *token, size_t count, float *dist);

#endif
