// SPDX-License-Identifier: Apache-2.0
// Reads the facts of one recorded row that a reduced trace contains.
#ifndef DSC_SIM_REDUCE_ROW_H
#define DSC_SIM_REDUCE_ROW_H

#include "theory/rows/log_row.h"
#include "traces/trace/trace.h"

// Facts of a row, and of the output's token y in it.
typedef struct dsc_row_facts {
    double mass;     // of the whole row, 1 up to rounding; the other facts are normalized by it
    double logp_y;   // log-probability of y; -inf: probability 0
    bool has_logp_y; // false: y is unlisted, and the row has unlisted mass
    double entropy;  // nats; for a complete row
    int32_t argmax;  // of several the lowest id
    bool has_argmax; // false: an unlisted token may be more probable
    int64_t rank_y;  // number of tokens that are more probable, or equally probable with a lower id
    bool has_rank_y;
} dsc_row_facts;

// Returns whether every token is listed or no mass is unlisted.
bool dsc_row_is_whole(const dsc_row *r, int64_t vocab_size);

// A dense row for reading (by dsc_log_row_read, or by the statistics), and its facts after that.
void dsc_row_dense(const dsc_row *r, int32_t y, dsc_log_row *out);
void dsc_row_dense_facts(const dsc_log_row *r, dsc_row_facts *out);

// Reads a list, without its entropy. Its tokens are the most probable of the row, and y may be
// added (as servers do). So an unlisted token has at most the mass of any listed token but y, and
// at most that of the tail.
void dsc_row_read_listed(const dsc_row *r, int32_t y, dsc_row_facts *out);

// Computes the distribution of a list without tail, and its entropy; `facts` come from
// dsc_row_read_listed.
void dsc_row_spread_listed(const dsc_row *r, int64_t vocab_size, float *dist, dsc_row_facts *facts);

#endif
