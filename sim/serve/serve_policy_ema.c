// SPDX-License-Identifier: Apache-2.0
// SGLang's adaptive speculation (--speculative-adaptive): the draft length of all requests is one
// of a few tiers, one above a moving average of the number of accepted draft tokens
// (sim/controller.h). The names, and the defaults, which SGLang has refined by batch size since,
// are those of class AdaptiveSpeculativeParams of sgl-project/sglang,
// python/sglang/srt/speculative/adaptive_spec_params.py, commit 13d3f642. The method's draft length
// is a tier, and the first one.
#include "sim/serve/serve_policy.h"

#include "base/number.h"
#include "sim/controller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ema {
    dsc_candidates tier; // draft lengths
    int32_t initial;     // index
    dsc_ema average;
    int64_t requests, accepted; // of the current batch
} ema;

static bool read_setting(ema *x, const char **text)
{
    const struct {
        const char *name;
        double *value, least, most;
        bool whole;
    } setting[] = {{"ema_alpha=", &x->average.ema_alpha, 0, 1, false},
                   {"update_interval=", &x->average.update_interval, 1, 1e9, true},
                   {"warmup_batches=", &x->average.warmup_batches, 0, 1e9, true},
                   {"down_hysteresis=", &x->average.down_hysteresis, -1e9, 1e9, false},
                   {"up_hysteresis=", &x->average.up_hysteresis, -1e9, 1e9, false}};
    static const char tiers[] = "candidate_steps=";
    if (!strncmp(*text, tiers, strlen(tiers))) {
        *text += strlen(tiers);
        return dsc_candidates_read(&x->tier, 1, DSC_SERVE_LONGEST, text);
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
    *x = (ema){.tier = {{1, 3, 7}, 3},
               .average = {.ema_alpha = 0.2,
                           .update_interval = 5,
                           .warmup_batches = 10,
                           .down_hysteresis = -0.25}};
    bool good = true, more = p != NULL;
    while (more && (good = read_setting(x, &p)) && (more = *p == ','))
        p++;
    if (!good || (p && *p))
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation: '%.60s' is not ema:SETTING=VALUE,...; the settings are "
                        "ema_alpha in [0, 1], update_interval, warmup_batches, down_hysteresis, "
                        "up_hysteresis and candidate_steps, at most %d lengths as 1/3/7",
                        text, DSC_MOST_CANDIDATES);
    if (!policy->k)
        return DSC_OK;
    x->initial = dsc_candidates_add(&x->tier, policy->k);
    if (x->initial < 0 || x->tier.count < 2)
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation: ema needs 2 to %d draft lengths, with that of the method "
                        "(%d); change candidate_steps",
                        DSC_MOST_CANDIDATES, policy->k);
    policy->k = x->tier.k[x->tier.count - 1];
    return DSC_OK;
}

static int begin_ema(dsc_serve_policy *policy, const dsc_serve_engine *e, dsc_error *err)
{
    ema *x = policy->state;
    (void)e, (void)err;
    dsc_ema_begin(&x->average, &x->tier, x->initial);
    x->requests = x->accepted = 0;
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

static int choose_ema(dsc_serve_policy *policy, const dsc_serve_engine *e,
                      dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    ema *x = policy->state;
    (void)e, (void)err;
    if (x->requests) // the end of a batch that verified drafts
        dsc_ema_update(&x->average, &x->tier, (double)x->accepted / (double)x->requests);
    x->requests = x->accepted = 0;
    const int32_t k = x->tier.k[x->average.current];
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
