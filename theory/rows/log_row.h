// SPDX-License-Identifier: Apache-2.0
// Log probabilities over the vocabulary, as models return them, converted to probabilities block by
// block, so that the whole distribution is never stored. Summary statistics of the row are computed
// in the same pass.
#ifndef DSC_THEORY_LOG_ROW_H
#define DSC_THEORY_LOG_ROW_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DSC_LOG_ROW_BLOCK = 1024 }; // tokens; four arrays of floats fit in the first-level cache

typedef struct dsc_log_row {
    const float *logp;    // [vocab] natural logarithms, <= 0 and no NaN; or NULL, and
    const uint16_t *bf16; // [vocab] the upper halves of such floats
    size_t vocab, y;      // rank_y and logp_y refer to token y
    // Results, complete after dsc_log_row_finish:
    double mass, mass_logp; // sums of p and of p ln p: relative errors 3e-8 and 4e-6
    int64_t rank_y; // number of tokens that are more probable than y, or equally probable with a
                    // lower id
    size_t argmax;  // the most probable token, the lowest id among equals
    float most, logp_y; // ln p of argmax and of y
    float dist_most;    // probability of argmax, as written to the block
    bool zeros;         // the last block contains probabilities that are 0
} dsc_log_row;

// The source of a row of probabilities.
typedef struct dsc_row_source {
    const float *dist; // [vocab], a distribution up to a factor; or NULL, and
    dsc_log_row *log;  // log probabilities; the results are filled in during the pass
} dsc_row_source;

// Converts one block. Call it for every block once, from the first to the last: the probabilities
// of tokens begin, begin + 1, .. go into dist[DSC_LOG_ROW_BLOCK], with relative error at most
// 8.6e-8. Below 1e-38 they are 0: nothing depends on such values, and subnormal numbers are slow.
// Returns the number of tokens in the block.
size_t dsc_log_row_block(dsc_log_row *r, size_t begin, float *dist);
// Call it after the last block, with the sum of all probabilities as they were written.
void dsc_log_row_finish(dsc_log_row *r, double sum);

// The whole pass, for the results only.
void dsc_log_row_read(dsc_log_row *r);

// Probabilities of some tokens, into dist[count]; they equal those of the blocks except for the
// last bit.
void dsc_log_row_some(const dsc_log_row *r, const uint32_t *token, size_t count, float *dist);

#endif
