// SPDX-License-Identifier: Apache-2.0
// What a method may ask of a model. Recorded traces, synthetic pairs and live engines stand behind
// the same three questions, so that a method is written once.
#ifndef DSC_SIM_MODEL_H
#define DSC_SIM_MODEL_H

#include "sim/draft.h"

typedef struct dsc_model dsc_model;

// The target's greedy continuation after a node.
typedef struct dsc_next {
    int32_t token;
    bool ends; // generation stops with this token (end of output): nothing is drafted past it
} dsc_next;

// Descriptors are const; instances embed dsc_model as their first member.
typedef struct dsc_model_type {
    const char *name;
    bool on_path_only; // knows only what was recorded: asks off the recorded path are refused

    // One forward pass over the committed tokens and all nodes of the draft.
    int (*score)(dsc_model *m, const dsc_draft *d, dsc_error *err);
    // After score: the greedy token after node `node` (-1: after the last committed token).
    // DSC_EABSENT when that is off the recorded path (counted in m->refused, never invented).
    int (*next)(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err);
    // Appends the tokens of one step to the committed output.
    int (*commit)(dsc_model *m, const int32_t *token, size_t n, dsc_error *err);
} dsc_model_type;

struct dsc_model {
    const dsc_model_type *type;
    const int32_t *output; // [length] committed output tokens
    int64_t length;
    bool ended;
    int64_t refused; // off-path questions so far
};

#endif
