// SPDX-License-Identifier: Apache-2.0
// The result of draftscope tune as comments, table rows, engine settings and text.
#ifndef DSC_CLI_TUNE_H
#define DSC_CLI_TUNE_H

#include "base/memory.h"
#include "cli/cli.h"
#include "sim/drafter.h"
#include "sim/tune/advice.h"
#include "sim/verifier.h"

// --- a configuration as settings of an inference engine (tune_engine.c) ------------------------

#define CLI_ENGINES "vllm|sglang|hf|llamacpp|trtllm"
typedef enum cli_engine { CLI_VLLM, CLI_SGLANG, CLI_HF, CLI_LLAMACPP, CLI_TRTLLM } cli_engine;
enum { CLI_ENGINE_COUNT = CLI_TRTLLM + 1 };

// The configuration to run up to a batch size.
typedef struct cli_engine_choice {
    const dsc_config *config; // NULL: speculation is off
    const dsc_verifier_type *rule;
    int64_t batch;
} cli_engine_choice;

// Returns NULL when the engine has settings for this configuration, else the reason, a static text.
const char *cli_engine_lacks(cli_engine engine, const dsc_config *config);
// Returns whether the engine has the method, whatever its parameters.
bool cli_engine_has(cli_engine engine, const dsc_drafter_type *drafter);
// "draft-model, ngram, ...": appends the methods that the engine has.
int cli_engine_methods(dsc_buffer *out, cli_engine engine, dsc_error *err);

// Configuration lines for the choices, none of which the engine lacks, by ascending batch size;
// comments begin with '#'.
int cli_engine_lines(dsc_buffer *out, cli_engine engine, const cli_engine_choice *choice,
                     size_t choices, dsc_error *err);

// --- the result (tune_report.c, tune_table.c) --------------------------------------------------

enum {
    CLI_TUNE_BATCH,
    CLI_TUNE_RANK,
    CLI_TUNE_METHOD,
    CLI_TUNE_RULE,
    CLI_TUNE_PARAMETERS,
    CLI_TUNE_DEV,
    CLI_TUNE_TEST,
    CLI_TUNE_TEST_LOW,
    CLI_TUNE_TEST_HIGH,
    CLI_TUNE_RATIO,
    CLI_TUNE_RATIO_LOW,
    CLI_TUNE_RATIO_HIGH,
    CLI_TUNE_SIGNIFICANT,
    CLI_TUNE_DRAFTED,
    CLI_TUNE_METRICS, // DSC_METRICS of them
    CLI_TUNE_COLUMNS = CLI_TUNE_METRICS + DSC_METRICS
};
extern const dsc_column cli_tune_columns[CLI_TUNE_COLUMNS];

// As named on the command line.
typedef struct cli_tune_naming {
    const char *objective, *search, *engine;
} cli_tune_naming;

// "llma n=2 num-speculative-tokens=16": appends the method and its parameters.
int cli_tune_name(dsc_buffer *b, const dsc_trial *x, dsc_error *err);

// A comment line: KEYTAIL: TEXT.
int cli_tune_comment(dsc_table *t, dsc_error *err, const char *key, const char *tail,
                     const char *format, ...) DSC_PRINTF(5, 6);

// standing[price] in all of these is the ranking for that price (dsc_tune_rank).

// Comments: how it was searched, and for each price the best and those not significantly worse.
int cli_tune_describe(dsc_table *t, const dsc_tune *found, dsc_standing *const *standing,
                      const cli_tune_naming *name, int threads, dsc_error *err);
// A dsc_advice_fits: whether the engine, a cli_engine, has settings for a trial.
bool cli_tune_engine_fits(const void *engine, const dsc_trial *x);
// Lines for the engine name->engine by the verdict on the configurations that it has settings for;
// a comment for each of them.
int cli_tune_engine_lines(dsc_buffer *out, const dsc_tune *found, dsc_standing *const *standing,
                          cli_engine engine, const cli_tune_naming *name, int threads,
                          dsc_error *err);
int cli_tune_comment_lines(dsc_table *t, const char *lines, dsc_error *err);

// A comment with the verdict on the requests with one value of the field of --by, the number-th;
// `tune` is the search on these (dsc_tune_group).
int cli_tune_describe_group(dsc_table *t, const dsc_tune *tune, size_t price, const dsc_standing *s,
                            const char *value, size_t number, int threads, dsc_error *err);

// The columns; `by` NULL or a further key column. DSC_EUSAGE: it is the name of another column.
int cli_tune_table_columns(dsc_table *t, const char *by, dsc_error *err);
// The first `top` rows of one price (0: all), of the requests with `value` in the key column.
int cli_tune_price_rows(dsc_table *t, const dsc_tune *tune, size_t price, const dsc_standing *s,
                        int64_t top, const char *value, dsc_error *err);
// The columns without a further key, and the first `top` rows of each price.
int cli_tune_rows(dsc_table *t, const dsc_tune *found, dsc_standing *const *standing, int64_t top,
                  dsc_error *err);
// For a person, on stdout: comments [first, end), the rows in columns, the lines (may be NULL).
void cli_tune_print(const dsc_table *t, size_t first, size_t end, const char *lines);

#endif
