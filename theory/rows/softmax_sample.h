// SPDX-License-Identifier: Apache-2.0
// Internal: about where top-p cuts a row of logits, by a sample of its tokens
// (theory/rows/softmax.h). What it says is a guess, and has to be held against the row.
#ifndef DSC_THEORY_SOFTMAX_SAMPLE_H
#define DSC_THEORY_SOFTMAX_SAMPLE_H

#include "theory/rows/softmax.h"

enum {
    DSC_SOFTMAX_BINS = 1024, // of depths below the most probable token
    DSC_SOFTMAX_DEEP = 8,    // bins for what is deeper, taken in turn: an addition to the sum that
                             // the one before it went to would wait for it
};

// One of sixteen tokens, by depth: token x is in bin (most - logit[x]) scale.
typedef struct dsc_softmax_sample {
    double most, scale;
    double decay; // by how much an exponent falls from a bin to the next one
    struct dsc_softmax_bin {
        double weight, tokens; // after `end`: of this bin and all deeper ones, of the whole row
    } bin[DSC_SOFTMAX_BINS + DSC_SOFTMAX_DEEP];
} dsc_softmax_sample;

// No tokens yet, of a distribution of which top-p will keep top_p.
void dsc_softmax_sample_begin(dsc_softmax_sample *p, const dsc_softmax *s, double top_p);
// Some tokens of a block: weight[dsc_softmax_in_block] the exponentials of all.
void dsc_softmax_sample_add(dsc_softmax_sample *p, const dsc_softmax *s, size_t block,
                            const double *weight);
// All tokens are in.
void dsc_softmax_sample_end(dsc_softmax_sample *p);

// How much weight there is below a logit, exactly.
typedef struct dsc_softmax_known {
    float logit;
    double below;
} dsc_softmax_known;

typedef struct dsc_softmax_guess {
    float low, at, high; // with near certainty in [low, high), probably about `at`
    double tokens;       // about how many have logits in [low, high)
} dsc_softmax_guess;

// The logit that the tokens below have `left` of the weight. It is the better the nearer to it
// something is known; nothing: {-INFINITY, 0}.
dsc_softmax_guess dsc_softmax_sample_guess(const dsc_softmax_sample *p, double left,
                                           dsc_softmax_known known);

#endif
