// SPDX-License-Identifier: Apache-2.0
// A method on prompts: what `live run` and `live record` have in common before the first request.
#ifndef DSC_LIVE_JOB_H
#define DSC_LIVE_JOB_H

#include "cli/method.h"
#include "live/program/prompts.h"
#include "live/program/run.h"

typedef struct live_job {
    const dsc_option_value *model; // [LIVE_PAIR_OPTIONS]
    live_pair pair;
    live_prompts prompts;
    dsc_config config;
    const dsc_verifier_type *rule;
    bool greedy; // temperature 0, or a replay, whose record contains all answers of the target
    live_run run;
} live_job; // zero-initialize; live_job_fini

// Prepares the method and chooses its rule, that of --rule or the usual one, and the prompts. The
// call, which has live_pair_options as its second table, outlives the job.
int live_job_begin(live_job *job, const cli_call *call, dsc_error *err);
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
