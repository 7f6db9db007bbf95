// SPDX-License-Identifier: Apache-2.0
// SGLang's adaptive speculation (--speculative-adaptive): the draft length of all requests is one
// of a few, about one above a moving average of the number of accepted draft tokens. From classes
// AdaptiveStepSlot, AdaptiveSpeculativeParams and AdaptiveStepRouter of sgl-project/sglang,
// python/sglang/srt/speculative/adaptive_spec_params.py, commit 015c8726, and
// adaptive_step_router.py, commit a12239f6, with their names and defaults.
//
// A slot has the settings for batches from `bs` requests on, up to the next slot. Each batch that
// verified drafts moves its slot's average by ema_alpha towards the mean of its requests. After
// warmup_batches, every update_interval batches the length falls while the average is at most the
// candidate below - 0.5 + down_hysteresis (0.5 + down_hysteresis where that is 0), else it rises
// while the average is above the length - 0.5 + up_hysteresis. From 0 it rises to the next
// candidate, to see what is accepted. ceiling_coeff > 0 caps lengths at that multiple of the
// average. Batches are not padded to the sizes of CUDA graphs here before a slot is looked up.
#include "sim/serve/serve_policy.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 16, MOST_SLOTS = 16 };

typedef struct slot {
    int64_t bs;
    int32_t step[MOST_STEPS]; // [steps] draft lengths, ascending
    int32_t steps;
    double ema_alpha, update_interval, warmup_batches, down_hysteresis, up_hysteresis,
        ceiling_coeff;
    // Of a run:
    int32_t current; // index
    double average;
    int64_t batches;
} slot;

typedef struct ema {
    slot slot[MOST_SLOTS]; // [slots] ascending by bs
    int32_t slots;
    bool own;      // no longer the default slots
    slot settings; // of a new slot
    // Of the current batch:
    int64_t requests, accepted;
} ema;

static const slot initial = {.bs = 1,
                             .ema_alpha = 0.2,
                             .update_interval = 5,
                             .warmup_batches = 10,
                             .down_hysteresis = -0.25};

static void set_defaults(ema *x)
{
    *x = (ema){.slots = 4, .settings = initial};
    for (int i = 0; i < 4; i++)
        x->slot[i] = initial;
    x->slot[1].bs = 8;
    x->slot[2].bs = 32;
    x->slot[3].bs = 64;
    for (int i = 1; i < 4; i++)
        x->slot[i].down_hysteresis = 0;
    memcpy(x->slot[0].step, (int32_t[]){1, 3, 5, 7}, 4 * sizeof(int32_t));
    memcpy(x->slot[1].step, (int32_t[]){0, 1, 3}, 3 * sizeof(int32_t));
    memcpy(x->slot[2].step, (int32_t[]){0, 1}, 2 * sizeof(int32_t));
    for (int i = 0; i < 4; i++)
        x->slot[i].steps = 4 - i;
}

// --- settings ------------------------------------------------------------------------------------

// Adds a length to those in ascending order; false: there is no room.
static bool add_step(slot *s, int32_t k)
{
    int32_t i = 0;
    while (i < s->steps && s->step[i] < k)
        i++;
    if (i < s->steps && s->step[i] == k)
        return true;
    if (s->steps == MOST_STEPS)
        return false;
    memmove(s->step + i + 1, s->step + i, (size_t)(s->steps++ - i) * sizeof *s->step);
    s->step[i] = k;
    return true;
}

static bool read_whole(const char **text, double least, double most, double *out)
{
    char *end;
    *out = dsc_strtod(*text, &end);
    const bool ok = end > *text && *out >= least && *out <= most && *out == floor(*out);
    *text = end;
    return ok;
}

static bool read_steps(slot *s, const char **text)
{
    double k;
    s->steps = 0;
    do {
        if (!read_whole(text, 0, DSC_SERVE_LONGEST, &k) || !add_step(s, (int32_t)k))
            return false;
    } while (**text == '/' && (*text)++);
    return true;
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
    } setting[] = {{"ema_alpha=", &s->ema_alpha, 0, 1, false},
                   {"update_interval=", &s->update_interval, 1, 1e9, true},
                   {"warmup_batches=", &s->warmup_batches, 0, 1e9, true},
                   {"down_hysteresis=", &s->down_hysteresis, -1e9, 1e9, false},
                   {"up_hysteresis=", &s->up_hysteresis, -1e9, 1e9, false},
                   {"ceiling_coeff=", &s->ceiling_coeff, 0, 1e9, false}};
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
        return read_steps(s, text);
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
        while (s->steps && s->step[s->steps - 1] > k)
            s->steps--;
        if (!s->steps)
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
        good = good && x->slot[i].steps;
    if (!good || (p && *p))
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation: '%.80s' is not ema:SETTING=VALUE,...; the settings are "
                        "candidate_steps, at most %d lengths as 1/3/7, ema_alpha in [0, 1], "
                        "update_interval, warmup_batches, down_hysteresis, up_hysteresis and "
                        "ceiling_coeff, and bs=REQUESTS before those of a batch size, ascending",
                        text, MOST_STEPS);
    return policy->k ? limit_steps(x, policy->k, err) : DSC_OK;
}

// --- a run ---------------------------------------------------------------------------------------

// The method's draft length, or where that is no candidate the one in the middle.
static void begin_slot(slot *s, int32_t k)
{
    s->current = s->steps / 2;
    for (int32_t i = 0; i < s->steps; i++)
        s->current = s->step[i] == k ? i : s->current;
    s->average = s->step[s->current] - 1;
    s->batches = 0;
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

static void probe(slot *s)
{
    s->current += s->current + 1 < s->steps;
    if (s->step[s->current] > 0 && s->average < 0)
        s->average = s->step[s->current] - 1;
}

static void move(slot *s)
{
    const int32_t before = s->current;
    while (s->current > 0) {
        const int32_t below = s->step[s->current - 1];
        if (s->average > (below ? below - 0.5 : 0.5) + s->down_hysteresis)
            break;
        s->current--;
    }
    const bool fell = s->current < before;
    while (!fell && s->current < s->steps - 1 &&
           s->average > s->step[s->current] - 0.5 + s->up_hysteresis)
        s->current++;
    const double ceiling = fmax(1, ceil(s->average * s->ceiling_coeff));
    while (s->ceiling_coeff > 0 && s->current <= before && s->current > 0 &&
           s->step[s->current] > ceiling)
        s->current--;
}

// The end of a batch.
static void update(slot *s, int64_t requests, int64_t accepted)
{
    if (s->step[s->current] > 0) {
        const double mean = (double)accepted / (double)requests;
        s->average = (1 - s->ema_alpha) * s->average + s->ema_alpha * mean;
    }
    s->batches++;
    const double since = (double)s->batches - s->warmup_batches;
    if (since <= 0 || fmod(since, s->update_interval) != 0)
        return;
    if (s->step[s->current] == 0)
        probe(s);
    else
        move(s);
}

static int choose_ema(dsc_serve_policy *policy, const dsc_serve_engine *e,
                      dsc_serve_sequence *const *sequence, int64_t count, dsc_error *err)
{
    ema *x = policy->state;
    slot *verified = slot_of(x, e->step.decoding);
    (void)err;
    // Without drafts, a batch counts where none were to be made.
    if (x->requests || (e->step.decoding && verified->step[verified->current] == 0))
        update(verified, x->requests, x->accepted);
    x->requests = x->accepted = 0;
    const slot *next = slot_of(x, count);
    const int32_t k = next->step[next->current];
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
