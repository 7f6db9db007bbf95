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

static bool read_size(const char **text, int64_t *out)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtoll(*text, &end, 10);
    *text = end;
    return *out <= DSC_SERVE_LONGEST * 64;
}

// FIRST-LAST=K, where the last tier may leave out LAST: it goes on without end.
static bool read_tier(const char **text, int64_t *first, int64_t *last, int64_t *k)
{
    if (!read_size(text, first) || *(*text)++ != '-')
        return false;
    *last = -1;
    if (**text != '=' && !read_size(text, last))
        return false;
    return *(*text)++ == '=' && read_size(text, k) && *k <= DSC_SERVE_LONGEST;
}

// Tiers follow each other from 1 on, as in vLLM's num_speculative_tokens_per_batch_size.
static int open_schedule(dsc_serve_policy *policy, const char *text, dsc_error *err)
{
    const char *p = text;
    size_t room = 0;
    int64_t first, last = 0, k = 0, next = 1;
    policy->k = 0;
    while (last >= 0 && read_tier(&p, &first, &last, &k) && first == next &&
           (last < 0 || last >= first)) {
        const int64_t end = last < 0 ? first : last;
        const int rc = dsc_resize(&policy->by_size, &room, (size_t)end + 1, err);
        if (rc)
            return rc;
        for (int64_t size = first; size <= end; size++)
            policy->by_size[size] = (int32_t)k;
        policy->by_size[0] = policy->by_size[1];
        policy->k = k > policy->k ? (int32_t)k : policy->k;
        policy->sizes = next = end + 1;
        if (!*p && (last < 0 || k == 0))
            return DSC_OK;
        if (*p++ != ',')
            break;
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--speculation: '%.60s' is not schedule:FIRST-LAST=K,..., with tiers from 1 "
                    "on without a gap, the last of which is FIRST-=K or has K = 0, and K at most "
                    "%d",
                    text, DSC_SERVE_LONGEST);
}

static int choose_by_size(dsc_serve_policy *policy, const dsc_serve_engine *engine,
                          dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    (void)err;
    const int64_t size = engine->running_count;
    const int32_t k = policy->by_size[size < policy->sizes ? size : policy->sizes - 1];
    for (int64_t i = 0; i < count; i++)
        slot[i]->k = slot[i]->most < k ? slot[i]->most : k;
    return DSC_OK;
}

static const dsc_serve_policy_type fixed = {
    .name = "fixed", .summary = "the method's draft length in every step", .choose = choose_most};
static const dsc_serve_policy_type schedule = {
    .name = "schedule",
    .summary = "a draft length for each number of running requests",
    .usage = "1-4=5,5-16=3,17-=0",
    .open = open_schedule,
    .choose = choose_by_size};
static const dsc_serve_policy_type oracle = {
    .name = "oracle",
    .summary = "drafts exactly what will be accepted: an upper bound",
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
