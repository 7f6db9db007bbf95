// SPDX-License-Identifier: Apache-2.0
// The options --target and --draft with those that belong to them, and the synthetic models that
// they describe.
#ifndef DSC_CLI_WORKLOAD_H
#define DSC_CLI_WORKLOAD_H

#include "cli/cli.h"
#include "sim/drafter.h"
#include "sim/model/workload.h"
#include "sim/verifier.h"

enum {
    CLI_WORKLOAD_TARGET,
    CLI_WORKLOAD_DRAFT,
    CLI_WORKLOAD_MIDDLE,
    CLI_WORKLOAD_TOKENIZER,
    CLI_WORKLOAD_RULE,
    CLI_WORKLOAD_TEMPERATURE,
    CLI_WORKLOAD_REQUESTS,
    CLI_WORKLOAD_PROMPT_TOKENS,
    CLI_WORKLOAD_MAX_TOKENS,
    CLI_WORKLOAD_ORDER,
    CLI_WORKLOAD_OPTIONS
};
extern const dsc_option cli_workload_options[CLI_WORKLOAD_OPTIONS];

typedef struct cli_workload {
    dsc_language *target, *draft, *middle; // owned
    int64_t *order;                        // owned
    dsc_workload load;
} cli_workload;

// Makes the models that the options name. With --target, it also makes the models that a method
// needs and no option names: the other half of a pair, or n-grams one token shorter. DSC_EUSAGE
// also when trace and --target are both given, or neither.
int cli_workload_make(cli_workload *w, const dsc_option_value *value,
                      const dsc_drafter_type *const *drafter, size_t drafters, bool trace,
                      dsc_error *err);
// Returns the rule called `name`, or without a name the default rule of the method. Where the trace
// (NULL: none) decides, a note on stderr names the rule. Returns NULL with DSC_EUSAGE in `err`.
const dsc_verifier_type *cli_workload_rule(const cli_workload *w, const dsc_trace *trace,
                                           const char *name, const dsc_drafter_type *drafter,
                                           dsc_error *err);
// Adds the options as comment lines (model, draft, temperature, ...); none without --target.
int cli_workload_comments(dsc_table *t, const dsc_option_value *value, dsc_error *err);
void cli_workload_free(cli_workload *w);

#endif
