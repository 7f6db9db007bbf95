// SPDX-License-Identifier: Apache-2.0
// Draft/target overlap: the queries that verification rules make about the draft and target
// distributions of one next token, wherever the distributions are stored: as rows of probabilities
// in memory (dsc_rows_overlap) or as logits on a device (sim/model.h). Two queries are enough for
// k-Seq, SpecInfer rejection, optimal transport and block verification: the masses up to a ratio,
// which give the curve W of theory/curve.h, and a sample of the residual.
#ifndef DSC_THEORY_OVERLAP_H
#define DSC_THEORY_OVERLAP_H

#include "base/memory.h"
#include "theory/rows/ratio_slot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dsc_mass {
    double draft, target;
} dsc_mass;

enum { DSC_RESIDUAL_LINES = 64 };

// The residual of a rule. A token with draft mass d and target mass t has (keep t - take d)+, where
// keep and take are those of the last line with from d <= t. Some tokens have a residual of their
// own.
typedef struct dsc_residual {
    size_t lines; // >= 1; from[] ascends, from[0] = 0
    double from[DSC_RESIDUAL_LINES], keep[DSC_RESIDUAL_LINES], take[DSC_RESIDUAL_LINES];
    size_t own; // token[own] have residual[own] >= 0 instead; residual NULL: they have 0
    const int32_t *token;
    const double *residual;
} dsc_residual;

typedef struct dsc_overlap dsc_overlap;

typedef struct dsc_overlap_type {
    // Masses of the tokens with target <= ratio draft; ratio >= 0.
    dsc_mass (*overlap_below)(dsc_overlap *m, double ratio);
    // Announces the number of calls of overlap_below that follow, so that each becomes cheaper.
    void (*prepare)(dsc_overlap *m, int questions);
    // Optional (NULL: overlap_below is always exact). Between prepare and look_up, overlap_below
    // returns estimates and notes the ratios; look_up then looks up all of them at once. A caller
    // runs its computation on the estimates first, calls look_up, and runs it again.
    void (*look_up)(dsc_overlap *m);
    // Returns the sum of a residual. Unless that is 0 or token is NULL, *token becomes the sample
    // at u in [0, 1): the first token whose running sum exceeds u times the sum.
    double (*residual)(dsc_overlap *m, const dsc_residual *r, double u, int32_t *token);
} dsc_overlap_type;

struct dsc_overlap {
    const dsc_overlap_type *type;
    size_t vocab;
};

// Tokens sorted by the slots of their ratios (theory/rows/ratio_slot.h), for many queries.
// Zero-initialize.
typedef struct dsc_rows_order {
    uint16_t *slot;  // [vocab]
    dsc_mass *token; // [vocab], slot after slot
    size_t slot_capacity, token_capacity;
    dsc_mass upto[DSC_RATIO_SLOTS + 1];  // masses of all lower slots
    uint32_t begin[DSC_RATIO_SLOTS + 1]; // first token of each slot
} dsc_rows_order;

// Allocates memory for `vocab` tokens. DSC_ENOMEM.
int dsc_rows_order_reserve(dsc_rows_order *o, size_t vocab, dsc_error *err);
void dsc_rows_order_fini(dsc_rows_order *o);

// The overlap of two rows in memory.
typedef struct dsc_rows_overlap {
    dsc_overlap base;
    const double *draft, *target; // [vocab] distributions; draft NULL: there is no draft
    double *room;                 // [vocab] scratch for `residual`
    dsc_rows_order *order;        // memory to sort them, or NULL
    bool ordered;
} dsc_rows_overlap;

// Leaves `order` NULL; the caller may set it.
void dsc_rows_overlap_set(dsc_rows_overlap *m, const double *draft, const double *target,
                          size_t vocab, double *room);

// W(c) = sum (target - c draft)+, c >= 0.
double dsc_overlap_curve(dsc_overlap *m, double c);

// The residual (target - c draft)+ of SpecInfer rejection.
void dsc_residual_above(dsc_residual *r, double c);

// Writes the residual of two distributions, except for tokens with their own residual, into
// out[vocab] and returns its sum.
double dsc_residual_fill(const dsc_residual *r, const double *draft, const double *target,
                         size_t vocab, double *out);

#endif
