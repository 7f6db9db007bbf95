// SPDX-License-Identifier: Apache-2.0
// What sim and sweep share: what they say about the trace they run on.
#ifndef DSC_CLI_SIMULATE_H
#define DSC_CLI_SIMULATE_H

#include "cli/method.h"
#include "sim/language.h"

// Says on stderr, once, what a user would otherwise have to guess from a column of zeros: the
// chosen references do not occur in the trace or, where that is NULL, in what the model `target` is
// asked.
// `value`: the drafter's options as parsed, single or lists.
int cli_note_missing_references(const dsc_trace *trace, const dsc_language *target,
                                const dsc_drafter_type *drafter, const dsc_option_value *value,
                                dsc_error *err);

#endif
