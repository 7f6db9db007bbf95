// SPDX-License-Identifier: Apache-2.0
// Parses the options of a method on prompts and opens its models: the cheap checks first, then the
// weights.
#include "live/program/job.h"

#include <inttypes.h>
#include <string.h>

int live_job_begin(live_job *job, const cli_call *call, dsc_error *err)
{
    dsc_option_value parameter[DSC_MAX_PARAMETERS];
    const char *rule = cli_call_value(call, "rule")->text;
    job->model = call->more;
    job->greedy =
        call->more[LIVE_PAIR_TEMPERATURE].real == 0 || cli_call_value(call, "replay")->given;
    job->config.drafter = call->method[0];
    job->prompts.skip = cli_call_value(call, "skip")->integer;
    job->prompts.most = (size_t)cli_call_value(call, "requests")->integer;
    memcpy(parameter, call->list[0], sizeof parameter);
    live_pair_default_tree(job->model, call->method[0], parameter);
    int rc = cli_config_fill(&job->config, parameter, err);
    if (!rc)
        job->rule =
            rule ? dsc_verifier_find(rule, err) : dsc_pair_rule(call->method[0], job->greedy);
    return rc || job->rule ? rc : DSC_EUSAGE;
}

int live_job_read(live_job *job, const live_want *want, dsc_error *err)
{
    int rc = live_pair_read(&job->pair, job->model, want, err);
    job->prompts.tokenizer = job->pair.tokenizer;
    job->prompts.vocab = job->pair.config[LIVE_TARGET].vocab;
    return rc ? rc : live_pair_check_heads(&job->pair, &job->config, err);
}

static int check_lengths(const live_job *job, int64_t reserve, dsc_error *err)
{
    const int64_t room = live_pair_room(&job->pair, &job->config) - reserve;
    for (size_t i = 0; i < job->prompts.count; i++) {
        const live_prompt *p = &job->prompts.item[i];
        const int64_t recorded = p->request.output.count;
        const int64_t more = recorded ? recorded : job->run.max_tokens;
        char location[512];
        if (p->request.prompt.count + more <= room)
            continue;
        live_prompts_location(&job->prompts, i, location, sizeof location);
        return dsc_fail(err, p->line ? DSC_EINPUT : DSC_EUSAGE,
                        "%s: a prompt of %" PRId64 " tokens with %s %" PRId64
                        " exceeds the context of %" PRId64 " tokens",
                        location, p->request.prompt.count,
                        recorded ? "an output of" : "--max-tokens", more, room);
    }
    return DSC_OK;
}

int live_job_open(live_job *job, int64_t reserve, dsc_error *err)
{
    int rc = check_lengths(job, reserve, err);
    if (!rc)
        rc = live_pair_open(&job->pair, err);
    return rc ? rc
              : live_pair_sessions(&job->pair, &job->config,
                                   job->prompts.longest + job->run.max_tokens, err);
}

int live_job_failed(const live_job *job, size_t i, int rc, dsc_error *err)
{
    char location[512];
    live_prompts_location(&job->prompts, i, location, sizeof location);
    if (rc == DSC_ENOMEM)
        rc = err->status = DSC_EABSENT;
    return dsc_error_prefix(err, rc, "%s", location);
}

void live_job_fini(live_job *job)
{
    live_run_fini(&job->run);
    live_prompts_free(&job->prompts);
    live_pair_close(&job->pair);
    dsc_config_fini(&job->config);
}
