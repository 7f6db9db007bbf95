// SPDX-License-Identifier: Apache-2.0
// Runs the simulator's loop over all requests and keeps their steps: at every position, or one
// after the other from the first token on, which the prefill gives.
#include "sim/serve/serve_replay.h"

#include "sim/model/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(const dsc_trace *trace, const dsc_config *config, const dsc_run_options *options,
               dsc_error *err)
{
    dsc_results results;
    const int rc = dsc_run(trace, config, 1, options, &results, err);
    if (!rc)
        dsc_results_fini(&results);
    return rc;
}

// --- every position ------------------------------------------------------------------------------

// The step at a position. The last token is always the target's own.
static int keep_position(void *user, const dsc_step_record *r, dsc_error *err)
{
    const dsc_serve_source *s = user;
    const dsc_serve_item *item = &s->item[r->request];
    if (r->step >= item->output)
        return dsc_fail(err, DSC_EINPUT, "the steps go on after the %d tokens of the output",
                        item->output);
    const int64_t length = s->tree ? s->longest : r->draft_length; // trees end with the output
    ((dsc_serve_draft *)item->draft)[r->step] = (dsc_serve_draft){
        (uint16_t)(length < UINT16_MAX ? length : UINT16_MAX), (uint16_t)r->accepted_tokens};
    return DSC_OK;
}

int dsc_serve_replay_everywhere(dsc_serve_source *s, const dsc_trace *trace,
                                const dsc_config *config, const dsc_run_options *options,
                                dsc_error *err)
{
    dsc_run_options o = *options;
    o.engine = DSC_ENGINE_LOOP;
    o.steps = DSC_STEPS_EVERYWHERE;
    o.watched = DSC_EVERY_REQUEST;
    o.step = keep_position;
    o.user = s;
    return run(trace, config, &o, err);
}

// --- scripts -------------------------------------------------------------------------------------

// The steps of a request under way.
typedef struct script {
    dsc_serve_pass *pass; // [count]
    size_t count, capacity;
} script;

static int keep_step(void *user, const dsc_step_record *r, dsc_error *err)
{
    script *s = &((script *)user)[r->request];
    if (!r->step)
        return DSC_OK; // the prefill
    if (r->draft_calls > DSC_SERVE_LONGEST || r->target_call_tokens > INT32_MAX / 4)
        return dsc_fail(err, DSC_EUSAGE,
                        "a step has %" PRId64 " passes of the draft model; a served draft takes at "
                        "most %d",
                        r->draft_calls, DSC_SERVE_LONGEST);
    const int rc = dsc_resize(&s->pass, &s->capacity, s->count + 1, err);
    if (!rc)
        s->pass[s->count++] = (dsc_serve_pass){.verified = (int32_t)r->target_call_tokens - 1,
                                               .drafted = (int32_t)r->draft_tokens,
                                               .accepted = (int32_t)r->accepted_tokens,
                                               .emitted = (int32_t)r->emitted_tokens,
                                               .draft_passes = (int32_t)r->draft_calls,
                                               .draft_tokens = (int32_t)r->draft_call_tokens};
    return rc;
}

// The widest step and the most passes of the draft model.
static void find_limits(dsc_serve_source *s, const script *x)
{
    for (size_t i = 0; i < x->count; i++) {
        const dsc_serve_pass *p = &x->pass[i];
        s->widest = p->verified > s->widest ? p->verified : s->widest;
        s->longest = p->draft_passes > s->longest ? p->draft_passes : s->longest;
        if (p->draft_passes)
            s->drafting = DSC_SERVE_DRAFT_EACH;
    }
}

int dsc_serve_replay_requests(dsc_serve_source *s, const dsc_trace *trace, size_t requests,
                              const dsc_config *config, const dsc_run_options *options,
                              dsc_error *err)
{
    script *all;
    dsc_run_options o = *options;
    int rc = dsc_new(&all, requests, err);
    rc = rc ?: dsc_new(&s->script, requests, err);
    o.engine = DSC_ENGINE_LOOP;
    o.steps = DSC_STEPS_AFTER_PREFILL;
    o.watched = DSC_EVERY_REQUEST;
    o.step = keep_step;
    o.user = all;
    rc = rc ?: run(trace, config, &o, err);
    s->overlap = config->drafter->parallel;
    s->longest = 1; // a policy with 0 would never draft
    for (size_t i = 0; i < requests && all; i++) {
        find_limits(s, &all[i]);
        if (rc)
            free(all[i].pass);
        else
            s->script[i] = all[i].pass;
        for (size_t p = 0; !rc && !trace && p < all[i].count; p++)
            s->item[i].output += all[i].pass[p].emitted;
    }
    free(all);
    return rc;
}

static int make_request(dsc_serve_source *s, const dsc_workload *load, size_t r, dsc_error *err)
{
    char id[24];
    dsc_token_view prompt;
    const int rc = dsc_workload_prompt(load->target, (int64_t)r, load->prompt_tokens, &prompt, err);
    if (rc)
        return rc;
    const int64_t tokens = prompt.count ? prompt.count : load->prompt_tokens;
    s->item[r] = (dsc_serve_item){.prompt = (int32_t)tokens, .output = 1}; // the prefill's token
    s->request[r] = (int64_t)r;
    snprintf(id, sizeof id, "%zu", r);
    return dsc_strndup(&s->id[r], id, strlen(id), err);
}

int dsc_serve_replay_workload(dsc_serve_source *s, const dsc_config *config,
                              const dsc_run_options *options, dsc_error *err)
{
    const dsc_workload *load = options->workload;
    const size_t count = (size_t)load->requests;
    int rc = dsc_serve_source_init(s, count, err);
    for (size_t r = 0; r < count && !rc; r++)
        rc = make_request(s, load, r, err);
    return rc ? rc : dsc_serve_replay_requests(s, NULL, count, config, options, err);
}
