// SPDX-License-Identifier: Apache-2.0
// The parts of draftscope advise: logs as a trace, kept between runs; methods that data can answer.
#ifndef DSC_CLI_ADVISE_H
#define DSC_CLI_ADVISE_H

#include "cli/cli.h"

// How to read the logs.
typedef struct cli_advise_logs {
    const char *const *path; // [paths] files of one format, or one trace
    size_t paths;
    const char *format, *tokenizer, *questions; // as in trace import; NULL: not given
    const dsc_option_value *how;                // of CLI_OPTIONS_LOGS
    int32_t vocab_size;                         // for token ids without a tokenizer, else 0
    const char *cache;                          // the trace to make of files: NAME.dst
    bool force;                                 // replace a cache of other files
    int threads;
    int64_t progress;
} cli_advise_logs;

// Opens the logs. A cache that was made of the same files, by content, is used again; one of other
// files is DSC_EUSAGE without `force`.
int cli_advise_open(dsc_trace **out, const cli_advise_logs *logs, dsc_error *err);

// Appends the constants of an engine to the text of a roofline that names no engine's. *instead:
// the engine whose constants it has because there are none of this one, or NULL.
int cli_advise_preset(dsc_buffer *cost, const char *engine, const char **instead, dsc_error *err);

// DSC_EUSAGE: the pages are not pairs.
int cli_advise_check_metrics(const char *pages, dsc_error *err);
// Prints what a server did between each pair of snapshots, "BEFORE,AFTER[,BEFORE,AFTER...]"; if
// `quiet`, the snapshots are read and nothing is printed.
int cli_advise_metrics(const char *pages, bool quiet, dsc_error *err);

// What the logs lack or contain twice.
typedef struct cli_advise_facts {
    int64_t requests, empty_prompts, empty_outputs;
    int64_t lossy;    // requests that lack a part of what their source had
    int64_t repeated; // requests with the same prompt and output as an earlier one
    int64_t models;   // names in field `model` of the metadata, at most CLI_ADVISE_MODELS
    int64_t arrivals; // requests with a number arrival_s in their metadata
    int64_t longest;  // tokens of the longest request, its output included
} cli_advise_facts;
enum { CLI_ADVISE_MODELS = 16 };

int cli_advise_facts_of(cli_advise_facts *out, const dsc_trace *t, dsc_error *err);
// A line on stdout for each fact that weakens a verdict.
void cli_advise_print_facts(const cli_advise_facts *f);

#endif
