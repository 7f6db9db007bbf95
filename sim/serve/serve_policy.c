// SPDX-License-Identifier: Apache-2.0
// The list of policies, their parsing, and those without state: fixed, schedule, oracle.
#include "sim/serve/serve_policy.h"

#include <stdlib.h>
#include <string.h>

static int choose_most(dsc_serve_policy *policy, const dsc_serve_engine *engine,
                       dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    (void)policy, (void)engine, (void)slot, (void)count, (void)err;
    return DSC_OK;
}

static int choose_accepted(dsc_serve_policy *policy, const dsc_serve_engine *engine,
                           dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    (void)policy, (void)engine, (void)err;
    for (int64_t i = 0; i < count; i++)
        slot[i]->k = slot[i]->run;
    return DSC_OK;
}

// --- schedule ------------------------------------------------------------------------------------

// Steps over `c` and the spaces after it.
static bool pass(const char **text, char c)
{
    if (**text != c)
        return false;
    *text += 1 + strspn(*text + 1, " ");
    return true;
}

static bool read_size(const char **text, int64_t *out)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoll(*text, &end, 10);
    *text = end;
    return *out <= DSC_SERVE_LONGEST * 64;
}

typedef struct range {
    int64_t first, last, k; // of requests, inclusive
} range;

// FIRST-LAST=K, FIRST-=K or [FIRST,LAST,K].
static bool read_range(const char **text, range *r)
{
    if (pass(text, '['))
        return read_size(text, &r->first) && pass(text, ',') && read_size(text, &r->last) &&
               pass(text, ',') && read_size(text, &r->k) && pass(text, ']');
    if (!read_size(text, &r->first) || !pass(text, '-'))
        return false;
    r->last = r->first;
    if (**text != '=' && !read_size(text, &r->last))
        return false;
    return pass(text, '=') && read_size(text, &r->k);
}

static int set_range(dsc_serve_policy *policy, size_t *room, const range *r, dsc_error *err)
{
    const int rc = dsc_resize(&policy->by_size, room, (size_t)r->last + 1, err);
    if (rc)
        return rc;
    // A gap has the draft length of the range before it.
    for (int64_t size = policy->sizes; size && size < r->first; size++)
        policy->by_size[size] = policy->by_size[policy->sizes - 1];
    for (int64_t size = r->first; size <= r->last; size++)
        policy->by_size[size] = (int32_t)(r->k < policy->k ? r->k : policy->k);
    policy->sizes = r->last + 1;
    return DSC_OK;
}

// As vLLM's num_speculative_tokens_per_batch_size (vllm-project/vllm, vllm/v1/spec_decode/dynamic/
// utils.py, commit a6f6bb1d): inclusive ranges from 1 on, each of which goes on to the next one,
// and the last one without end; no length above the method's. The batch size is the number of
// requests that have tokens in the step before which the drafts are made
// (vllm/v1/core/sched/scheduler.py, dynamic_sd_lookup).
static int open_schedule(dsc_serve_policy *policy, const char *text, dsc_error *err)
{
    const char *p = text;
    const bool list = p[0] == '[' && p[1] == '[' && pass(&p, '[');
    range r;
    size_t room = 0;
    policy->sizes = 0;
    while (read_range(&p, &r) && (policy->sizes ? r.first >= policy->sizes : r.first == 1) &&
           r.last >= r.first) {
        const int rc = set_range(policy, &room, &r, err);
        if (rc)
            return rc;
        if (pass(&p, ','))
            continue;
        if ((list && !pass(&p, ']')) || *p)
            break;
        policy->by_size[0] = policy->by_size[1];
        return DSC_OK;
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--speculation: '%.60s' is not schedule:FIRST-LAST=K,... or vLLM's "
                    "schedule:[[FIRST,LAST,K],...], with ascending ranges of requests, the first "
                    "from 1 on, to at most %d",
                    text, DSC_SERVE_LONGEST * 64);
}

static int choose_by_size(dsc_serve_policy *policy, const dsc_serve_engine *engine,
                          dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    (void)err;
    const int64_t size = engine->step.decoding + engine->step.prefilling;
    const int32_t k = policy->by_size[size < policy->sizes ? size : policy->sizes - 1];
    for (int64_t i = 0; i < count; i++)
        slot[i]->k = slot[i]->most < k ? slot[i]->most : k;
    return DSC_OK;
}

static const dsc_serve_policy_type fixed = {
    .name = "fixed", .summary = "the method's draft length in every step", .choose = choose_most};
static const dsc_serve_policy_type schedule = {
    .name = "schedule",
    .summary = "a draft length for each number of requests in a step, as vLLM's "
               "num_speculative_tokens_per_batch_size",
    .usage = "1-4=5,5-16=3,17-=0",
    .open = open_schedule,
    .choose = choose_by_size};
static const dsc_serve_policy_type oracle = {
    .name = "oracle",
    .summary = "drafts exactly what will be accepted, so that no draft token is rejected",
    .choose = choose_accepted};

static const dsc_serve_policy_type *const types[] = {&fixed,
                                                     &schedule,
                                                     &dsc_serve_policy_adaptive,
                                                     &dsc_serve_policy_ema,
                                                     &dsc_serve_policy_off_above,
                                                     &oracle,
                                                     NULL};

const dsc_serve_policy_type *const *dsc_serve_policies(void)
{
    return types;
}

int dsc_serve_policy_parse(dsc_serve_policy *out, const char *text, int32_t k, dsc_error *err)
{
    const size_t name = strcspn(text, ":");
    *out = (dsc_serve_policy){.k = k};
    for (const dsc_serve_policy_type *const *t = types; *t; t++) {
        if (strncmp((*t)->name, text, name) || strlen((*t)->name) != name)
            continue;
        const bool given = text[name] == ':';
        if (given ? !(*t)->usage : (*t)->usage && !(*t)->optional)
            return dsc_fail(err, DSC_EUSAGE, "--speculation: '%.60s' is not %s%s%s", text,
                            (*t)->name, (*t)->usage ? ":" : "", (*t)->usage ? (*t)->usage : "");
        out->type = *t;
        const int rc = (*t)->open ? (*t)->open(out, given ? text + name + 1 : NULL, err) : DSC_OK;
        if (rc)
            dsc_serve_policy_fini(out);
        return rc;
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--speculation: '%.60s' is unknown; choose fixed, schedule:..., adaptive, "
                    "ema, off-above:QPS or oracle",
                    text);
}

void dsc_serve_policy_fini(dsc_serve_policy *policy)
{
    if (policy->type && policy->type->close)
        policy->type->close(policy->state);
    free(policy->by_size);
    *policy = (dsc_serve_policy){0};
}
