// SPDX-License-Identifier: Apache-2.0
// SGLang's adaptive speculation (--speculative-adaptive): the draft length of all requests is one
// of a few, about one above a moving average of the number of accepted draft tokens. From classes
// AdaptiveStepSlot, AdaptiveSpeculativeParams and AdaptiveStepRouter of sgl-project/sglang,
// python/sglang/srt/speculative/adaptive_spec_params.py, commit 015c8726, and
// adaptive_step_router.py, commit a12239f6, with their names and defaults.
//
// A slot has the settings for batches from `bs` requests on, up to the next slot. Each batch that
// verified drafts updates its slot (sim/controller.h). Batches are not padded to the sizes of CUDA
// graphs here before a slot is looked up.
#include "sim/serve/serve_policy.h"

#include "base/number.h"
#include "sim/controller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SLOTS = 16 };

typedef struct slot {
    int64_t bs;
    dsc_candidates step; // draft lengths
    dsc_ema ema;
} slot;

typedef struct ema {
    slot slot[MOST_SLOTS]; // [slots] ascending by bs
    int32_t slots;
    bool own;      // no longer the default slots
    slot settings; // of a new slot
    // Of the current batch:
    int64_t requests, accepted;
} ema;

static const slot initial = {
    .bs = 1,
    .ema = {
        .ema_alpha = 0.2, .update_interval = 5, .warmup_batches = 10, .down_hysteresis = -0.25}};

static void set_defaults(ema *x)
{
    *x = (ema){.slots = 4, .settings = initial};
    for (int i = 0; i < 4; i++)
        x->slot[i] = initial;
    x->slot[1].bs = 8;
    x->slot[2].bs = 32;
    x->slot[3].bs = 64;
    for (int i = 1; i < 4; i++)
        x->slot[i].ema.down_hysteresis = 0;
    x->slot[0].step = (dsc_candidates){{1, 3, 5, 7}, 4};
    x->slot[1].step = (dsc_candidates){{0, 1, 3}, 3};
    x->slot[2].step = (dsc_candidates){{0, 1}, 2};
    x->slot[3].step = (dsc_candidates){{0}, 1};
}

// --- settings ------------------------------------------------------------------------------------

static bool read_whole(const char **text, double least, double most, double *out)
{
    char *end;
    *out = dsc_strtod(*text, &end);
    const bool ok = end > *text && *out >= least && *out <= most && *out == floor(*out);
    *text = end;
    return ok;
}

// Slots ascend; the first one of a user's own takes the place of the default slots.
static slot *add_slot(ema *x, double bs)
{
    if (!x->own)
        x->slots = 0;
    x->own = true;
    if (x->slots == MOST_SLOTS || (x->slots && (double)x->slot[x->slots - 1].bs >= bs))
        return NULL;
    x->slot[x->slots] = x->settings;
    x->slot[x->slots].bs = (int64_t)bs;
    return &x->slot[x->slots++];
}

static bool read_number(slot *s, const char **text)
{
    const struct {
        const char *name;
        double *value, least, most;
        bool whole;
    } setting[] = {{"ema_alpha=", &s->ema.ema_alpha, 0, 1, false},
                   {"update_interval=", &s->ema.update_interval, 1, 1e9, true},
                   {"warmup_batches=", &s->ema.warmup_batches, 0, 1e9, true},
                   {"down_hysteresis=", &s->ema.down_hysteresis, -1e9, 1e9, false},
                   {"up_hysteresis=", &s->ema.up_hysteresis, -1e9, 1e9, false},
                   {"ceiling_coeff=", &s->ema.ceiling_coeff, 0, 1e9, false}};
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

static bool read_setting(ema *x, const char **text)
{
    static const char steps[] = "candidate_steps=", bs[] = "bs=";
    const char *begin = *text;
    double value;
    if (!strncmp(begin, bs, strlen(bs))) {
        *text += strlen(bs);
        return read_whole(text, 1, 1e9, &value) && add_slot(x, value);
    }
    if (!strncmp(begin, steps, strlen(steps))) {
        slot *s = x->own ? &x->slot[x->slots - 1] : add_slot(x, 1);
        *text += strlen(steps);
        return dsc_candidates_read(&s->step, 0, DSC_SERVE_LONGEST, text);
    }
    if (x->own)
        return read_number(&x->slot[x->slots - 1], text);
    for (int32_t i = 0; i < x->slots; i++) {
        *text = begin;
        if (!read_number(&x->slot[i], text))
            return false;
    }
    *text = begin;
    return read_number(&x->settings, text);
}

// Leaves out the lengths that the method does not have.
static int limit_steps(ema *x, int32_t k, dsc_error *err)
{
    for (int32_t i = 0; i < x->slots; i++) {
        slot *s = &x->slot[i];
        while (s->step.count && s->step.k[s->step.count - 1] > k)
            s->step.count--;
        if (!s->step.count)
            return dsc_fail(err, DSC_EUSAGE,
                            "--speculation: ema has no candidate_steps from bs=%lld on that are at "
                            "most the method's draft length, %d: --num-speculative-tokens",
                            (long long)s->bs, k);
    }
    return DSC_OK;
}

static int open_ema(dsc_serve_policy *policy, const char *text, dsc_error *err)
{
    ema *x;
    const char *p = text;
    const int rc = dsc_new(&x, 1, err);
    if (rc)
        return rc;
    policy->state = x;
    set_defaults(x);
    bool good = true, more = p != NULL;
    while (more && (good = read_setting(x, &p)) && (more = *p == ','))
        p++;
    for (int32_t i = 0; i < x->slots; i++)
        good = good && x->slot[i].step.count;
    if (!good || (p && *p))
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation: '%.80s' is not ema:SETTING=VALUE,...; the settings are "
                        "candidate_steps, at most %d lengths as 1/3/7, ema_alpha in [0, 1], "
                        "update_interval, warmup_batches, down_hysteresis, up_hysteresis and "
                        "ceiling_coeff, and bs=REQUESTS before those of a batch size, ascending",
                        text, DSC_MOST_CANDIDATES);
    return policy->k ? limit_steps(x, policy->k, err) : DSC_OK;
}

// --- a run ---------------------------------------------------------------------------------------

// The method's draft length, or where that is no candidate the one in the middle.
static void begin_slot(slot *s, int32_t k)
{
    int32_t current = s->step.count / 2;
    for (int32_t i = 0; i < s->step.count; i++)
        current = s->step.k[i] == k ? i : current;
    dsc_ema_begin(&s->ema, &s->step, current);
}

static int begin_ema(dsc_serve_policy *policy, const dsc_serve_engine *e, dsc_error *err)
{
    ema *x = policy->state;
    (void)e, (void)err;
    for (int32_t i = 0; i < x->slots; i++)
        begin_slot(&x->slot[i], policy->k);
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

static slot *slot_of(ema *x, int64_t batch)
{
    int32_t i = x->slots - 1;
    while (i > 0 && x->slot[i].bs > batch)
        i--;
    return &x->slot[i];
}

static int32_t length_of(const slot *s)
{
    return s->step.k[s->ema.current];
}

static int choose_ema(dsc_serve_policy *policy, const dsc_serve_engine *e,
                      dsc_serve_sequence *const *sequence, int64_t count, dsc_error *err)
{
    ema *x = policy->state;
    slot *verified = slot_of(x, e->step.decoding);
    (void)err;
    // Without drafts, a batch counts where none were to be made.
    if (x->requests || (e->step.decoding && length_of(verified) == 0))
        dsc_ema_update(&verified->ema, &verified->step, (double)x->accepted / (double)x->requests);
    x->requests = x->accepted = 0;
    const int32_t k = length_of(slot_of(x, count));
    for (int64_t i = 0; i < count; i++)
        sequence[i]->k = sequence[i]->most < k ? sequence[i]->most : k;
    return DSC_OK;
}

const dsc_serve_policy_type dsc_serve_policy_ema = {
    .name = "ema",
    .summary = "SGLang's adaptive draft length, from a moving average of accepted tokens",
    .usage = "ema_alpha=0.2,update_interval=5,warmup_batches=10,bs=1,candidate_steps=1/3/5/7,"
             "down_hysteresis=-0.25,bs=8,candidate_steps=0/1/3,down_hysteresis=0,...",
    .optional = true,
    .open = open_ema,
    .begin = begin_ema,
    .choose = choose_ema,
    .observe = observe_ema,
    .close = free};
