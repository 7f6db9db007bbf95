// SPDX-License-Identifier: Apache-2.0
// The result of draftscope tune as comments, table rows, engine settings and text.
#ifndef DSC_CLI_TUNE_H
#define DSC_CLI_TUNE_H

#include "base/memory.h"
#include "cli/tune/engine.h"
#include "sim/drafter.h"
#include "sim/tune/advice.h"
#include "sim/verifier.h"

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
    const char *objective, *search;
} cli_tune_naming;

// The verdict for a batch size (tune_verdict.c).
typedef struct cli_verdict {
    dsc_advice all; // on all methods
    dsc_advice own; // on the configurations that the engine has settings for; without one as `all`
    bool differs;   // the best of all was judged, and the engine lacks it
} cli_verdict;

// "llma n=2 num-speculative-tokens=16": appends the method and its parameters.
int cli_tune_name(dsc_buffer *b, const dsc_trial *x, dsc_error *err);

// A comment line: KEYTAIL: TEXT.
int cli_tune_comment(dsc_table *t, dsc_error *err, const char *key, const char *tail,
                     const char *format, ...) DSC_PRINTF(5, 6);

// standing[price] in all of these is the ranking for that price (dsc_tune_rank).

// The end of a search that returned `rc`: one that was interrupted after a configuration besides
// `none` was finished goes on to its verdict, *stopped and quickly. Otherwise returns rc.
int cli_tune_ended(dsc_tune *found, int rc, bool *stopped, dsc_error *err);
// The verdict for each price, *out [prices]. `use` NULL: no engine.
int cli_tune_judge(cli_verdict **out, const dsc_tune *found, dsc_standing *const *standing,
                   const cli_engine_use *use, int threads, dsc_error *err);
// Appends a verdict in words.
int cli_tune_verdict_words(dsc_buffer *b, const dsc_tune *found, const dsc_standing *s,
                           const dsc_advice *a, dsc_error *err);
// Appends the best of all methods, which the engine lacks, in words.
int cli_tune_best_of_all(dsc_buffer *b, const dsc_tune *found, const dsc_standing *s,
                         const cli_engine_use *use, const cli_verdict *v, dsc_error *err);
// For a person, on stdout: a row for each price.
int cli_tune_print_verdicts(const dsc_tune *found, dsc_standing *const *standing,
                            const cli_verdict *v, const cli_engine_use *use, dsc_error *err);
// Lines for the engine by its verdicts, and remarks.
int cli_tune_engine_lines(dsc_buffer *out, const dsc_tune *found, dsc_standing *const *standing,
                          const cli_engine_use *use, const cli_verdict *v, dsc_error *err);

// Acceptance for load tests without a draft model (tune_acceptance.c).
#define CLI_ACCEPTANCES "vllm|sglang|tensorrt-llm"
typedef enum cli_acceptance {
    CLI_ACCEPTANCE_VLLM,
    CLI_ACCEPTANCE_SGLANG,
    CLI_ACCEPTANCE_TRTLLM,
} cli_acceptance;
// Appends the engine's settings that simulate these metrics with drafts of `tokens` tokens, after a
// remark on what they hide.
int cli_tune_acceptance(dsc_buffer *b, cli_acceptance kind, const dsc_metrics *m, int64_t tokens,
                        dsc_error *err);

// The same for the configuration of each verdict.
int cli_tune_acceptance_lines(dsc_buffer *out, const dsc_tune *found, dsc_standing *const *standing,
                              const cli_verdict *v, cli_acceptance kind, dsc_error *err);

// What predictions with this cost leave out.
const char *cli_tune_not_modeled(const dsc_cost *cost);
// Comments: how it was searched, and for each price the best, those not significantly worse, the
// upper bound, and the verdict.
int cli_tune_describe(dsc_table *t, const dsc_tune *found, dsc_standing *const *standing,
                      const cli_tune_naming *name, const cli_engine_use *use, const cli_verdict *v,
                      dsc_error *err);
// A comment KEY_N for each line.
int cli_tune_comment_lines(dsc_table *t, const char *key, const char *lines, dsc_error *err);

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

#endif
