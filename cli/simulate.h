// SPDX-License-Identifier: Apache-2.0
// What sim, sweep and tune open, and their notes on it.
#ifndef DSC_CLI_SIMULATE_H
#define DSC_CLI_SIMULATE_H

#include "cli/cli.h"
#include "sim/acceptance.h"
#include "sim/cost/cost.h"
#include "sim/model/workload.h"
#include "sim/run/run.h"
#include "sim/verifier.h"
#include "traces/trace/trace_groups.h"

// The options of synthetic models, the second table of these commands.
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

// The trace or the models to simulate on, and how.
typedef struct cli_simulation {
    cli_progress progress;                 // the first field, as the user of cli_progress_step
    dsc_trace *trace;                      // NULL: the models
    dsc_language *target, *draft, *middle; // NULL: there is no such model
    dsc_acceptance_rates rates;            // of the draft model, if it is made of rates
    int64_t *order;
    dsc_workload load; // these models and their requests
    dsc_cost cost;
    int64_t *batch; // [batches] of --batch-size
    size_t batches;
    dsc_trace_groups by; // of --by; without it there is no field
    dsc_run_options run; // without a rule
} cli_simulation;

// Makes the models that `spec` names. With a target, it also makes the models that a method of the
// call needs and no specification names: the other half of a pair, or n-grams one token shorter.
typedef struct cli_model_specs {
    const char *target, *draft, *middle; // or NULL
    const char *tokenizer;               // of the text that an n-gram model is trained on
} cli_model_specs;
int cli_simulation_models(cli_simulation *s, const cli_call *call, const cli_model_specs *spec,
                          dsc_error *err);

// Opens what a command's argument and its options name: those of the models, --by, --cost,
// --batch-size, --evaluate, --seed and --threads, as far as it has them. cli_simulation_close
// frees, also after an error. DSC_EUSAGE also when a trace and --target are both given, or neither.
int cli_simulation_open(cli_simulation *s, const cli_call *call, dsc_error *err);
void cli_simulation_close(cli_simulation *s);
// Adds comment lines: those of every result, and the options of the models.
int cli_simulation_comments(const cli_simulation *s, const cli_call *call, dsc_table *t,
                            dsc_error *err);
// Returns the rule called `name`, or without a name the default rule of the method. Where the trace
// decides, a note on stderr names the rule. Returns NULL with DSC_EUSAGE in `err`.
const dsc_verifier_type *cli_simulation_rule(const cli_simulation *s, const char *name,
                                             const dsc_drafter_type *drafter, dsc_error *err);

// Says on stderr how acceptance rates were understood.
void cli_note_acceptance(const char *note);
// Adds the comment "acceptance" to a table: conditional rates by position, with the note on them.
int cli_comment_acceptance(dsc_table *t, const dsc_acceptance_rates *rates, dsc_error *err);

// Warns once on stderr when the chosen references do not occur in the trace or, where that is NULL,
// in the requests of the model `target`: every count would be zero. `value`: the drafter's options
// as parsed, single or lists.
int cli_note_missing_references(const dsc_trace *trace, const dsc_language *target,
                                const dsc_drafter_type *drafter, const dsc_option_value *value,
                                dsc_error *err);
// *head: a trace, which may be NULL, was recorded with a head of the target as draft model.
int cli_recorded_head(bool *head, const dsc_trace *trace, dsc_error *err);

// Returns whether what is expected comes from the draft model's recorded ranks, and not from
// probabilities.
bool cli_reads_ranks(const dsc_engine_choice *engine);
// Opens a trace to simulate, and notes on stderr if it is lossy.
int cli_open_replayed(dsc_trace **out, const char *path, dsc_error *err);

// Says on stderr that a live recording was greedy and its distributions are those of another
// temperature, when they are what `method` is expected by. `trace` may be NULL.
void cli_note_temperature(const dsc_trace *trace, const dsc_drafter_type *method,
                          const dsc_engine_choice *engine);

#endif
