// SPDX-License-Identifier: Apache-2.0
// SGLang's adaptive speculation (--speculative-adaptive): the draft length of all requests is one
// of a few tiers, one above a moving average of the number of accepted draft tokens. From class
// AdaptiveSpeculativeParams of sgl-project/sglang,
// python/sglang/srt/speculative/adaptive_spec_params.py, commit 13d3f642, with its names and
// defaults. Each batch that verified drafts moves the average by ema_alpha towards the mean of its
// requests. After warmup_batches, every update_interval batches the tier falls while the average is
// at most the tier below - 0.5 + down_hysteresis, then rises while it is above the tier - 0.5 +
// up_hysteresis. The method's draft length is a tier, and the first one.
#include "sim/serve/serve_policy.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TIERS = 16 };

typedef struct ema {
    int32_t tier[MOST_TIERS]; // [tiers] draft lengths, ascending
    int32_t tiers, initial;   // number; index
    double ema_alpha, update_interval, warmup_batches, down_hysteresis, up_hysteresis;
    // Of a run:
    int32_t current; // index
    double average;
    int64_t batches, requests, accepted; // batches so far; of the current batch
} ema;

// Adds a tier to those in ascending order and returns its index, -1 where there is no room.
static int32_t add_tier(ema *x, int32_t k)
{
    int32_t i = 0;
    while (i < x->tiers && x->tier[i] < k)
        i++;
    if (i < x->tiers && x->tier[i] == k)
        return i;
    if (x->tiers == MOST_TIERS)
        return -1;
    memmove(x->tier + i + 1, x->tier + i, (size_t)(x->tiers++ - i) * sizeof *x->tier);
    x->tier[i] = k;
    return i;
}

static bool read_tiers(ema *x, const char **text)
{
    x->tiers = 0;
    do {
        char *end;
        const double k = dsc_strtod(*text, &end);
        if (end == *text || !(k >= 1 && k <= DSC_SERVE_LONGEST) || k != floor(k) ||
            add_tier(x, (int32_t)k) < 0)
            return false;
        *text = end;
    } while (**text == '/' && (*text)++);
    return true;
}

static bool read_setting(ema *x, const char **text)
{
    const struct {
        const char *name;
        double *value, least, most;
        bool whole;
    } setting[] = {{"ema_alpha=", &x->ema_alpha, 0, 1, false},
                   {"update_interval=", &x->update_interval, 1, 1e9, true},
                   {"warmup_batches=", &x->warmup_batches, 0, 1e9, true},
                   {"down_hysteresis=", &x->down_hysteresis, -1e9, 1e9, false},
                   {"up_hysteresis=", &x->up_hysteresis, -1e9, 1e9, false}};
    static const char tiers[] = "candidate_steps=";
    if (!strncmp(*text, tiers, strlen(tiers))) {
        *text += strlen(tiers);
        return read_tiers(x, text);
    }
    for (size_t i = 0; i < sizeof setting / sizeof *setting; i++) {
        const size_t length = strlen(setting[i].name);
        char *end;
        if (strncmp(*text, setting[i].name, length))
            continue;
        const double value = dsc_strtod(*text + length, &end);
        const bool ok = end > *text + length && value >= setting[i].least &&
                        value <= setting[i].most && (!setting[i].whole || value == floor(value));
        *setting[i].value = value;
        *text = end;
        return ok;
    }
    return false;
}

static int open_ema(dsc_serve_policy *policy, const char *text, dsc_error *err)
{
    ema *x;
    const char *p = text;
    const int rc = dsc_new(&x, 1, err);
    if (rc)
        return rc;
    policy->state = x;
    *x = (ema){.tier = {1, 3, 7},
               .tiers = 3,
               .ema_alpha = 0.2,
               .update_interval = 5,
               .warmup_batches = 10,
               .down_hysteresis = -0.25};
    bool good = true, more = p != NULL;
    while (more && (good = read_setting(x, &p)) && (more = *p == ','))
        p++;
    if (!good || (p && *p))
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation: '%.60s' is not ema:SETTING=VALUE,...; the settings are "
                        "ema_alpha in [0, 1], update_interval, warmup_batches, down_hysteresis, "
                        "up_hysteresis and candidate_steps, at most %d lengths as 1/3/7",
                        text, MOST_TIERS);
    if (!policy->k)
        return DSC_OK;
    x->initial = add_tier(x, policy->k);
    if (x->initial < 0 || x->tiers < 2)
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation: ema needs 2 to %d draft lengths, with that of the method "
                        "(%d); change candidate_steps",
                        MOST_TIERS, policy->k);
    policy->k = x->tier[x->tiers - 1];
    return DSC_OK;
}

static int begin_ema(dsc_serve_policy *policy, const dsc_serve_engine *e, dsc_error *err)
{
    ema *x = policy->state;
    (void)e, (void)err;
    x->current = x->initial;
    x->average = x->tier[x->initial] - 1;
    x->batches = x->requests = x->accepted = 0;
    return DSC_OK;
}

static void observe_ema(dsc_serve_policy *policy, dsc_serve_sequence *s, int32_t k,
                        int32_t accepted)
{
    ema *x = policy->state;
    (void)s, (void)k;
    x->requests++;
    x->accepted += accepted;
}

// The end of a batch that verified drafts.
static void update(ema *x)
{
    const double mean = (double)x->accepted / (double)x->requests;
    x->average = (1 - x->ema_alpha) * x->average + x->ema_alpha * mean;
    x->requests = x->accepted = 0;
    x->batches++;
    const double since = (double)x->batches - x->warmup_batches;
    if (since <= 0 || fmod(since, x->update_interval) != 0)
        return;
    while (x->current > 0 && x->average <= x->tier[x->current - 1] - 0.5 + x->down_hysteresis)
        x->current--;
    while (x->current < x->tiers - 1 && x->average > x->tier[x->current] - 0.5 + x->up_hysteresis)
        x->current++;
}

static int choose_ema(dsc_serve_policy *policy, const dsc_serve_engine *e,
                      dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    ema *x = policy->state;
    (void)e, (void)err;
    if (x->requests)
        update(x);
    const int32_t k = x->tier[x->current];
    for (int64_t i = 0; i < count; i++)
        slot[i]->k = slot[i]->most < k ? slot[i]->most : k;
    return DSC_OK;
}

const dsc_serve_policy_type dsc_serve_policy_ema = {
    .name = "ema",
    .summary = "SGLang's adaptive draft length, from a moving average of accepted tokens",
    .usage = "ema_alpha=0.2,update_interval=5,warmup_batches=10,down_hysteresis=-0.25,"
             "up_hysteresis=0,candidate_steps=1/3/7",
    .optional = true,
    .open = open_ema,
    .begin = begin_ema,
    .choose = choose_ema,
    .observe = observe_ema,
    .close = free};
