// SPDX-License-Identifier: Apache-2.0
// A method on prompts: what `live run` and `live record` have in common before the first request.
#ifndef DSC_LIVE_JOB_H
#define DSC_LIVE_JOB_H

#include "cli/method.h"
#include "live/program/prompts.h"
#include "live/program/run.h"

typedef struct live_job {
    dsc_option_value model[LIVE_PAIR_OPTIONS], parameter[DSC_MAX_PARAMETERS];
    live_pair pair;
    live_prompts prompts;
    dsc_config config;
    const dsc_verifier_type *rule;
    live_run run;
} live_job; // zero-initialize; live_job_fini

// Prints a command's help: its own options, those of the models, those of methods.
void live_job_help(const char *usage, const char *about, const dsc_option *options, size_t count,
                   int argc, char **argv);
// Parses the command's options, of which --method is the first, into value[count], those of the
// models and of the method, and prepares job->config. *words: number of positional arguments.
int live_job_parse(live_job *job, const dsc_option *options, size_t count, dsc_option_value *value,
                   int argc, char **argv, size_t *words, dsc_error *err);
// Chooses the rule of that name, or (NULL) the usual one of the method.
int live_job_rule(live_job *job, const char *name, bool greedy, dsc_error *err);
// Reads the models' configurations, so that prompts can be read: live_pair_read.
int live_job_read(live_job *job, const live_want *want, dsc_error *err);
// Checks that each prompt and its output fit the context, less `reserve` tokens; then loads the
// weights and creates the sessions.
int live_job_open(live_job *job, int64_t reserve, dsc_error *err);
// Adds the location of prompt i to an error. During a run, DSC_ENOMEM is a lack of device memory:
// finished requests are kept, as when a device is absent.
int live_job_failed(const live_job *job, size_t i, int rc, dsc_error *err);
void live_job_fini(live_job *job);

#endif
