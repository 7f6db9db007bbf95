// SPDX-License-Identifier: Apache-2.0
// Parses the options of a method on prompts and opens its models: the cheap checks first, then the
// weights.
#include "live/program/job.h"

#include <inttypes.h>

void live_job_help(const char *usage, const char *about, const dsc_option *options, size_t count,
                   int argc, char **argv)
{
    const cli_help_section own[] = {{"Options", options, count},
                                    {"Models", live_pair_options, LIVE_PAIR_OPTIONS}};
    cli_print_method_help(usage, about, own, 2, argc, argv);
}

int live_job_parse(live_job *job, const dsc_option *options, size_t count, dsc_option_value *value,
                   int argc, char **argv, size_t *words, dsc_error *err)
{
    dsc_config *config = &job->config;
    dsc_option_set sets[3] = {
        {.table = options, .count = count, .value = value},
        {.table = live_pair_options, .count = LIVE_PAIR_OPTIONS, .value = job->model},
    };
    int rc = cli_find_method(sets, 2, argc, argv, &config->drafter, err);
    if (rc)
        return rc;
    sets[2] = (dsc_option_set){.table = config->drafter->option,
                               .count = config->drafter->option_count,
                               .value = job->parameter};
    rc = cli_parse(sets, 3, argc, argv, words, err);
    if (rc)
        return rc;
    if (!cli_apply_preset(value->text, config->drafter, job->parameter))
        live_pair_default_tree(job->model, config->drafter, job->parameter);
    return cli_config_fill(config, job->parameter, err);
}

int live_job_rule(live_job *job, const char *name, bool greedy, dsc_error *err)
{
    job->rule = name ? dsc_verifier_find(name, err) : dsc_pair_rule(job->config.drafter, greedy);
    return job->rule ? DSC_OK : DSC_EUSAGE;
}

int live_job_read(live_job *job, const live_want *want, dsc_error *err)
{
    int rc = live_pair_read(&job->pair, job->model, want, err);
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
