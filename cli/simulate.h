// SPDX-License-Identifier: Apache-2.0
// What sim and sweep share: a method's options beside the command's own, and the trace they run on.
#ifndef DSC_CLI_SIMULATE_H
#define DSC_CLI_SIMULATE_H

#include "cli/cli.h"
#include "sim/drafter.h"
#include "sim/language.h"

// Finds --method NAME in argv before everything else is parsed (its options depend on it).
// DSC_EUSAGE when it is missing or unknown.
int cli_find_method(int argc, char **argv, const dsc_drafter_type **out, dsc_error *err);
// The same of --method NAME[,NAME...], in that order.
enum { CLI_MAX_METHODS = 32 };
int cli_find_methods(int argc, char **argv, const dsc_drafter_type *out[CLI_MAX_METHODS],
                     size_t *count, dsc_error *err);

// --help of a command whose options include a method's: all methods when none is named. `models`:
// and those of cli/workload.h.
void cli_print_method_help(const char *usage, const char *about, const dsc_option *own,
                           size_t count, bool models, int argc, char **argv);

// Takes the parsed parameters of config->drafter over, and prepares it.
int cli_config_fill(dsc_config *config, const dsc_option_value *parameter, dsc_error *err);

// Says on stderr, once, what a user would otherwise have to guess from a column of zeros: the
// chosen references do not occur in the trace or, where that is NULL, in what the model `target` is
// asked.
// `value`: the drafter's options as parsed, single or lists.
int cli_note_missing_references(const dsc_trace *trace, const dsc_language *target,
                                const dsc_drafter_type *drafter, const dsc_option_value *value,
                                dsc_error *err);

#endif
