// SPDX-License-Identifier: Apache-2.0
// --target, --draft and what belongs to them: the models of a run that are no recording.
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

// Makes the models that the options name, and, where there is a --target and a method needs them,
// the ones that they do not: a pair's own half, or n-grams one token shorter. DSC_EUSAGE as well
// when trace and --target are both given, or neither.
int cli_workload_make(cli_workload *w, const dsc_option_value *value,
                      const dsc_drafter_type *const *drafter, size_t drafters, bool trace,
                      dsc_error *err);
// The rule of that name, or the one for the method here, which it says on stderr where the trace
// decided (NULL: no trace). NULL: DSC_EUSAGE.
const dsc_verifier_type *cli_workload_rule(const cli_workload *w, const dsc_trace *trace,
                                           const char *name, const dsc_drafter_type *drafter,
                                           dsc_error *err);
// Comment lines: model, draft, temperature and so on, as given; none without --target.
int cli_workload_comments(dsc_table *t, const dsc_option_value *value, dsc_error *err);
void cli_workload_free(cli_workload *w);

#endif
