// SPDX-License-Identifier: Apache-2.0
// THE speculative loop: propose, score, verify, commit. There is one; only the model behind it and
// the clock differ between replay, synthetic pairs and live runs.
#ifndef DSC_SIM_LOOP_H
#define DSC_SIM_LOOP_H

#include "sim/counts.h"
#include "sim/drafter.h"
#include "sim/verifier.h"

// Scratch of one thread, reused from request to request. Zero-initialise.
typedef struct dsc_loop {
    dsc_draft draft;
    dsc_verdict verdict;
} dsc_loop;

DSC_API void dsc_loop_fini(dsc_loop *loop);

// Runs one request to its end on `target` (just begun, nothing committed) and adds what happened to
// *counts, whose histogram has room for drafter->limit() accepted tokens (or as many as the output
// can hold). `request` is shown to the drafter without its output unless it is flagged sees_output.
DSC_API int dsc_loop_run(dsc_loop *loop, const dsc_config *config, const dsc_verifier_type *rule,
                         dsc_model *target, const dsc_request *request, uint64_t seed,
                         dsc_arena *arena, dsc_counts *counts, dsc_error *err);

#endif
