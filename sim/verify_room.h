// SPDX-License-Identifier: Apache-2.0
// Scratch memory of verification rules, one per thread, reused from step to step.
#ifndef DSC_SIM_VERIFY_ROOM_H
#define DSC_SIM_VERIFY_ROOM_H

#include "sim/verifier.h"
#include "theory/gbv.h"
#include "theory/otm_sampler.h"
#include "theory/rows/overlap.h"

// A node of traversal verification (sim/verify/traversal.c).
typedef struct dsc_traversal_node dsc_traversal_node;

enum { DSC_VERIFY_LISTS = 5 }; // of nodes, each as long as the draft and one more

// Zero but for the arena; dsc_verify_room_fini frees all else.
struct dsc_verify_room {
    dsc_arena *arena;                  // of all arrays below, which grow
    double *draft, *target, *residual; // [vocab] rows of probabilities
    size_t draft_capacity, target_capacity, residual_capacity;
    double *draft_of, *target_of, *residual_of; // [candidates] probabilities; residual masses
    size_t draft_of_capacity, target_of_capacity, residual_of_capacity;
    dsc_rows_order order;
    int32_t *live, *candidate, *token; // nodes of the draft; tokens of the candidates
    int32_t *first, *sibling; // children of node j - 1: first[j], then by sibling; -1: no more
    int32_t *lists;           // storage of these DSC_VERIFY_LISTS
    size_t lists_capacity;
    dsc_traversal_node *traversal; // [nodes + 1]
    size_t traversal_capacity;
    dsc_gbv_order gbv;
    dsc_otm_sampler *otm;
};

void dsc_verify_room_fini(dsc_verify_room *r);

#endif
