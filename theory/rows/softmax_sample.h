// SPDX-License-Identifier: Apache-2.0
// Internal: an estimate of the top-p cut of a row of logits from a sample of its tokens
// (theory/rows/softmax.h). It is a guess that must be checked against the row.
#ifndef DSC_THEORY_SOFTMAX_SAMPLE_H
#define DSC_THEORY_SOFTMAX_SAMPLE_H

#include "theory/rows/softmax.h"

enum {
    DSC_SOFTMAX_BINS = 1024, // ranges of depth below the most probable token
    DSC_SOFTMAX_DEEP = 8, // bins for deeper tokens, used in turn, because an addition waits for the
                          // previous one to the same bin
};

// A sample of one in sixteen tokens, by depth: token x is in bin (most - logit[x]) scale.
typedef struct dsc_softmax_sample {
    double most, scale;
    double decay; // decrease of the exponent from a bin to the next
    struct dsc_softmax_bin {
        double weight,
            tokens; // after `end`: estimates for the whole row, of this bin and all deeper ones
    } bin[DSC_SOFTMAX_BINS + DSC_SOFTMAX_DEEP];
} dsc_softmax_sample;

// Starts an empty sample of a distribution of which top-p keeps top_p.
void dsc_softmax_sample_begin(dsc_softmax_sample *p, const dsc_softmax *s, double top_p);
// Adds some tokens of a block; weight[dsc_softmax_in_block] holds all its exponentials.
void dsc_softmax_sample_add(dsc_softmax_sample *p, const dsc_softmax *s, size_t block,
                            const double *weight);
// Finishes the sample after the last block.
void dsc_softmax_sample_end(dsc_softmax_sample *p);

// The exact weight below a logit.
typedef struct dsc_softmax_known {
    float logit;
    double below;
} dsc_softmax_known;

typedef struct dsc_softmax_guess {
    float low, at, high; // the cut: almost certainly in [low, high), probably near `at`
    double tokens;       // estimated number of tokens with logits in [low, high)
} dsc_softmax_guess;

// Estimates the logit below which the tokens have weight `left`. The estimate improves the closer a
// known point is to it; without one, pass {-INFINITY, 0}.
dsc_softmax_guess dsc_softmax_sample_guess(const dsc_softmax_sample *p, double left,
                                           dsc_softmax_known known);

#endif
