// SPDX-License-Identifier: Apache-2.0
// The draft's and the target's distribution of one next token, as rules ask about both together,
// wherever they lie: as rows of probabilities here (dsc_rows_overlap), or as logits on a device
// (sim/model.h). Two questions are enough for k-Seq, SpecInfer rejection, optimal transport and
// block verification: the masses up to a ratio, which are the curve W of theory/curve.h, and a draw
// from what a rule leaves of the target.
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

// What a rule leaves of the target: of a token with masses d and t, (keep t - take d)+, by the last
// line with from d <= t. Some tokens have a rest of their own.
typedef struct dsc_residual {
    size_t lines; // >= 1, ascending, from[0] = 0
    double from[DSC_RESIDUAL_LINES], keep[DSC_RESIDUAL_LINES], take[DSC_RESIDUAL_LINES];
    size_t own; // of token[own], rest[own] >= 0 in place of that; rest NULL: nothing
    const int32_t *token;
    const double *residual;
} dsc_residual;

typedef struct dsc_overlap dsc_overlap;

typedef struct dsc_overlap_type {
    // Masses of the tokens with target <= at draft, at >= 0.
    dsc_mass (*below)(dsc_overlap *m, double at);
    // So many questions are to come. true: until look_up, `below` estimates; it remembers what it
    // was asked for, and all of that is looked up at once. false: it is exact, and now no dearer.
    bool (*sketch)(dsc_overlap *m, int questions);
    void (*look_up)(dsc_overlap *m);
    // The sum of the rest; and, unless that is 0 or token NULL, into *token the one at u in [0, 1):
    // the first whose running sum exceeds u times the sum.
    double (*residual)(dsc_overlap *m, const dsc_residual *r, double u, int32_t *token);
} dsc_overlap_type;

struct dsc_overlap {
    const dsc_overlap_type *type;
    size_t vocab;
};

// Tokens by the slots of their ratios (theory/rows/ratio_slot.h), for many questions.
// Zero-initialise.
typedef struct dsc_rows_order {
    uint16_t *slot;  // [vocab]
    dsc_mass *token; // [vocab], slot by slot
    size_t slot_capacity, token_capacity;
    dsc_mass upto[DSC_RATIO_SLOTS + 1];  // masses of the slots below
    uint32_t begin[DSC_RATIO_SLOTS + 1]; // of the slots' tokens
} dsc_rows_order;

// Room for so many tokens. DSC_ENOMEM.
DSC_API int dsc_rows_order_reserve(dsc_rows_order *o, size_t vocab, dsc_error *err);
DSC_API void dsc_rows_order_fini(dsc_rows_order *o);

// Of rows in memory.
typedef struct dsc_rows_overlap {
    dsc_overlap base;
    const double *draft, *target; // [vocab] distributions; draft NULL: nothing was drawn
    double *room;                 // [vocab] scratch of `rest`
    dsc_rows_order *order;        // room to order them, or NULL
    bool ordered;
} dsc_rows_overlap;

// `order` is NULL then; the caller may set it.
DSC_API void dsc_rows_overlap_set(dsc_rows_overlap *m, const double *draft, const double *target,
                                  size_t vocab, double *room);

// W(c) = sum (target - c draft)+, c >= 0.
DSC_API double dsc_overlap_curve(dsc_overlap *m, double c);

// The rest (target - c draft)+, which is what SpecInfer rejection leaves.
DSC_API void dsc_residual_above(dsc_residual *r, double c);

// The rest of rows, but for tokens of their own, times a factor for each row (which makes it a
// distribution), into out[vocab]; returns the sum.
DSC_API double dsc_residual_fill(const dsc_residual *r, const double *draft, double draft_by,
                                 const double *target, double target_by, size_t vocab, double *out);

#endif
