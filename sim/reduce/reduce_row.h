// SPDX-License-Identifier: Apache-2.0
// One recorded row, read for what a reduced trace keeps of it.
#ifndef DSC_SIM_REDUCE_ROW_H
#define DSC_SIM_REDUCE_ROW_H

#include "theory/rows/log_row.h"
#include "traces/trace/trace.h"

// What a row says of itself and of the output's token y.
typedef struct dsc_row_facts {
    double mass;     // of the whole row: 1 but for rounding; what follows is divided by it
    double logp_y;   // ln of y's probability; -inf: none
    bool has_logp_y; // false: y is not listed, and the row has mass that is not
    double entropy;  // nats; of a whole row
    int32_t argmax;  // of equals the lowest id
    bool has_argmax; // false: a token that is not listed may be more probable
    int64_t rank_y;  // how many tokens are more probable, or as likely and of a lower id
    bool has_rank_y;
} dsc_row_facts;

// Every token is listed, or no mass is unlisted.
bool dsc_row_is_whole(const dsc_row *r, int64_t vocab_size);

// A dense row, to be read (dsc_log_row_read, or on the way to statistics), and its facts after
// that.
void dsc_row_dense(const dsc_row *r, int32_t y, dsc_log_row *out);
void dsc_row_dense_facts(const dsc_log_row *r, dsc_row_facts *out);

// A list, without its entropy. Its tokens are the most probable of the row, except that y may have
// been added (as servers do): an unlisted token has at most the mass of any other listed one, and
// of the tail.
void dsc_row_read_listed(const dsc_row *r, int32_t y, dsc_row_facts *out);

// The distribution of a list without tail, and its entropy; `facts` are those of
// dsc_row_read_listed.
void dsc_row_spread_listed(const dsc_row *r, int64_t vocab_size, float *dist, dsc_row_facts *facts);

#endif
