// SPDX-License-Identifier: Apache-2.0
// Notes on the trace that sim, sweep and tune share.
#ifndef DSC_CLI_SIMULATE_H
#define DSC_CLI_SIMULATE_H

#include "cli/method.h"
#include "sim/model/language.h"
#include "sim/run/run.h"

// Warns once on stderr when the chosen references do not occur in the trace or, where that is NULL,
// in the requests of the model `target`: every count would be zero. `value`: the drafter's options
// as parsed, single or lists.
int cli_note_missing_references(const dsc_trace *trace, const dsc_language *target,
                                const dsc_drafter_type *drafter, const dsc_option_value *value,
                                dsc_error *err);
// Returns whether what is expected comes from the draft model's recorded ranks, and not from
// probabilities.
bool cli_reads_ranks(const dsc_engine_choice *engine);
// Says on stderr that a live recording was greedy and its distributions are those of another
// temperature, when they are what `method` is expected by. `trace` may be NULL.
void cli_note_temperature(const dsc_trace *trace, const dsc_drafter_type *method,
                          const dsc_engine_choice *engine);

#endif
