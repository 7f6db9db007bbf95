// SPDX-License-Identifier: Apache-2.0
// Confidence-scheduled verification (DSpark, arXiv:2607.05147; merged into vLLM by pull request
// 47808: class AdaptiveVerificationManager of vllm-project/vllm,
// vllm/v1/worker/gpu/spec_decode/adaptive_verification.py, commit 057929c3). The survival of slot k
// of request r is the product of the first k confidences of the request. Slots in falling order of
// their survival: as it falls along a request, the first B of them are prefixes of drafts, and of
// all choices of B slots they have the largest expected number of accepted tokens. B is where
//
//     (requests sampled + sum of the first B survivals) / time of the step with T + B tokens
//
// is largest, T being all other tokens of the step, prefill chunks included. The fraction is not
// unimodal, so every B is tried, and the fewest tokens win a tie, as np.argmax has it. A draft
// model that has a pass for each draft token takes longer for longer drafts, so every limit of the
// length is tried with every B; vLLM, whose head drafts in one pass, always pays for the whole
// draft.
//
// vLLM chooses B from the confidences of an earlier step, because it prepares a step while another
// one runs; here they are those of the drafts at hand. The tokens B may exceed what T leaves of the
// budget: then they displace prefill, which has to be computed later and so is priced now.
#include "sim/serve/serve_policy.h"

#include "base/number.h"
#include "sim/serve/serve_forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 512, FEW = 24 };
typedef enum confidence { POSITION, CALIBRATED, ORACLE, CONSTANT } confidence;

// The next slot of a request.
typedef struct candidate {
    double survival;
    int32_t request, depth; // index of the request; depth from 1
} candidate;

typedef struct choice {
    candidate last; // the last slot that is taken, in the order of slots
    int32_t limit;  // of the length; 0: no draft
    double rate;    // expected tokens per second
    double worse;   // a quotient certainly below `rate`
} choice;

typedef struct adaptive {
    confidence kind;
    double constant;
    double *curve; // [k] survival by depth; POSITION: of items with recorded drafts
    const dsc_serve_pool *pool;
    int32_t room;            // most draft tokens of a request
    const double **survival; // [max_num_seqs] of each request by depth, [usable]
    double *own;             // [max_num_seqs][room] CALIBRATED: these
    int32_t *usable;         // [max_num_seqs] slots of a request
    int64_t count;           // of requests
    // The slots in order: sorted, or where all requests have one curve, from depth `low` to `high`,
    // which have the same survival, request by request.
    bool one_curve;
    const double *all; // [step.longest] the one curve
    int32_t low, high;
    candidate next;
    candidate *order; // [order_room]
    size_t order_room;
    const candidate *at; // the next one
    int64_t left;
    double *target_s;           // [max_num_batched_tokens + 1] by B
    int64_t *taken;             // [k + 1] slots of at most that depth so far
    double *expected, *draft_s; // [k + 1] their survival; time of the draft passes
    dsc_serve_step step;        // the candidate
} adaptive;

static int open_adaptive(dsc_serve_policy *policy, const char *text, dsc_error *err)
{
    static const char constant[] = "constant:";
    adaptive *a;
    char *end;
    const int rc = dsc_new(&a, 1, err);
    if (rc)
        return rc;
    policy->state = a;
    a->kind = POSITION;
    if (!text || !strcmp(text, "position"))
        return DSC_OK;
    a->kind = !strcmp(text, "oracle") ? ORACLE : CALIBRATED;
    if (a->kind == ORACLE || !strcmp(text, "calibrated"))
        return DSC_OK;
    if (!strncmp(text, constant, strlen(constant))) {
        a->kind = CONSTANT;
        a->constant = dsc_strtod(text + strlen(constant), &end);
        if (end > text + strlen(constant) && !*end && a->constant >= 0 && a->constant <= 1)
            return DSC_OK;
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--speculation: '%.60s' is not a confidence of adaptive; choose position, "
                    "calibrated, oracle or constant:P with P in [0, 1]",
                    text);
}

bool dsc_serve_policy_calibrates(const dsc_serve_policy *policy)
{
    const adaptive *a = policy->state;
    return policy->type == &dsc_serve_policy_adaptive && a->kind == CALIBRATED;
}

static void free_rows(adaptive *a)
{
    free(a->curve);
    free(a->survival);
    free(a->own);
    free(a->usable);
    free(a->order);
    free(a->target_s);
    free(a->taken);
    free(a->expected);
    free(a->draft_s);
}

static void close_adaptive(void *state)
{
    if (state)
        free_rows(state);
    free(state);
}

// The share of recorded drafts whose first i + 1 tokens are accepted, where steps with the longest
// draft begin: other positions lie within accepted drafts and would be accepted more often. It is
// the product of the conditional acceptance rates, because some drafts are short. `tried` and
// `accepted` have k + 2 elements, zeroed.
static void measure(const dsc_serve_pool *pool, int32_t k, int64_t *tried, int64_t *accepted,
                    double *curve)
{
    double survival = 1;
    for (size_t i = 0; i < pool->count; i++) {
        const dsc_serve_item *item = &pool->item[i];
        for (int32_t t = 1, run; item->draft && t < item->output - 1; t += run + 1) {
            const int32_t left = item->output - t - 1;
            int32_t most = item->draft[t].available < k ? item->draft[t].available : k;
            most = most < left ? most : left;
            run = item->draft[t].run < most ? item->draft[t].run : most;
            tried[run < most ? run + 1 : most]++;
            accepted[run]++;
        }
    }
    for (int32_t i = k; i-- > 1;) {
        tried[i] += tried[i + 1];
        accepted[i] += accepted[i + 1];
    }
    for (int32_t i = 0; i < k; i++) {
        survival *= tried[i + 1] ? (double)accepted[i + 1] / (double)tried[i + 1] : 0;
        curve[i] = survival;
    }
}

static int measure_pool(const dsc_serve_pool *pool, int32_t k, double *curve, dsc_error *err)
{
    int64_t *counts;
    const size_t room = (size_t)k + 2;
    const int rc = dsc_new(&counts, 2 * room, err);
    if (!rc)
        measure(pool, k, counts, counts + room, curve);
    free(counts);
    return rc;
}

// An engine that schedules by confidence has one for every draft token.
static int check_confidences(const dsc_serve_pool *pool, dsc_error *err)
{
    for (size_t i = 0; i < pool->count; i++)
        if (!pool->item[i].confidence)
            return dsc_fail(err, DSC_EUSAGE,
                            "adaptive:calibrated: request %zu has no calibrated confidences; "
                            "dsc_serve_confidence_read gives them to the requests of a trace",
                            i);
    return DSC_OK;
}

static int allocate(adaptive *a, size_t k, const dsc_serve_options *o, dsc_error *err)
{
    const size_t requests = (size_t)o->max_num_seqs;
    int rc = dsc_new(&a->curve, k + 1, err);
    rc = rc ?: dsc_new(&a->survival, requests, err);
    if (!rc && a->kind == CALIBRATED)
        rc = dsc_new(&a->own, requests * (k + 1), err);
    rc = rc ?: dsc_new(&a->usable, requests, err);
    rc = rc ?: dsc_new(&a->target_s, (size_t)o->max_num_batched_tokens + 1, err);
    rc = rc ?: dsc_new(&a->taken, k + 1, err);
    rc = rc ?: dsc_new(&a->expected, k + 1, err);
    rc = rc ?: dsc_new(&a->draft_s, k + 1, err);
    return rc;
}

static int begin_adaptive(dsc_serve_policy *policy, const dsc_serve_engine *e, dsc_error *err)
{
    adaptive *a = policy->state;
    const size_t k = (size_t)policy->k;
    if (e->pool->tree || e->pool->script)
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation adaptive weighs single draft tokens in sequence; levels of "
                        "a tree and recorded steps are served with --speculation fixed");
    free_rows(a);
    *a = (adaptive){.kind = a->kind, .constant = a->constant, .pool = e->pool, .room = policy->k};
    int rc = allocate(a, k, e->options, err);
    if (!rc && k && a->kind == CALIBRATED)
        rc = check_confidences(a->pool, err);
    if (!rc && a->kind == POSITION)
        rc = measure_pool(a->pool, policy->k, a->curve, err);
    for (size_t i = 0; i < k && !rc && (a->kind == ORACLE || a->kind == CONSTANT); i++)
        a->curve[i] = a->kind == ORACLE ? 1 : pow(a->constant, (double)(i + 1));
    return rc;
}

// --- survivals -----------------------------------------------------------------------------------

// The products of the confidences of the draft after the tokens so far.
static const double *multiply(double *own, const dsc_serve_sequence *s)
{
    const float *chance = s->item->confidence + s->emitted;
    double product = 1;
    for (int32_t d = 0; d < s->most; d++)
        own[d] = product *= (double)chance[d];
    return own;
}

static const double *survival_of(adaptive *a, const dsc_serve_sequence *s, int64_t i)
{
    if (a->kind == CALIBRATED)
        return multiply(a->own + i * a->room, s);
    if (a->kind != POSITION)
        return a->curve;
    if (s->item->survival)
        return s->item->survival;
    return s->draft ? a->curve : a->pool->survival;
}

// --- slots in falling order of their survival ----------------------------------------------------

static bool before(const candidate *x, const candidate *y)
{
    if (x->survival != y->survival)
        return x->survival > y->survival;
    return x->request < y->request || (x->request == y->request && x->depth < y->depth);
}

static int compare(const void *x, const void *y)
{
    return before(x, y) ? -1 : before(y, x);
}

// Slots of one bucket, a few of them.
static void sort_bucket(candidate *order, int32_t count)
{
    if (count > FEW) {
        qsort(order, (size_t)count, sizeof *order, compare);
        return;
    }
    for (int32_t i = 1; i < count; i++) {
        const candidate moving = order[i];
        int32_t at = i;
        for (; at > 0 && before(&moving, &order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = moving;
    }
}

// 32 buckets for each factor of two: the exponent and the first bits of the mantissa.
static int32_t bucket_of(double survival)
{
    enum { SHIFT = 47, ONE = 1023 << 5 };
    uint64_t bits;
    memcpy(&bits, &survival, sizeof bits);
    const int64_t bucket = ONE - (int64_t)(bits >> SHIFT);
    return (int32_t)(bucket < 0 ? 0 : bucket < BUCKETS ? bucket : BUCKETS - 1);
}

// The first `slots` slots in order, those of requests with curves of their own.
static int sort_slots(adaptive *a, int64_t slots, dsc_error *err)
{
    int32_t end[BUCKETS + 1] = {0};
    const int rc = dsc_resize(&a->order, &a->order_room, (size_t)slots, err);
    if (rc)
        return rc;
    for (int64_t i = 0; i < a->count; i++)
        for (int32_t d = 0; d < a->usable[i]; d++)
            end[bucket_of(a->survival[i][d]) + 1]++;
    for (int b = 0; b < BUCKETS; b++)
        end[b + 1] += end[b];
    for (int64_t i = 0; i < a->count; i++)
        for (int32_t d = 0; d < a->usable[i]; d++)
            a->order[end[bucket_of(a->survival[i][d])]++] =
                (candidate){a->survival[i][d], (int32_t)i, d + 1};
    for (int32_t b = 0, begin = 0; b < BUCKETS; begin = end[b++])
        sort_bucket(a->order + begin, end[b] - begin);
    a->left = slots;
    a->at = a->order;
    return DSC_OK;
}

static bool same(const double *x, const double *y, int32_t n)
{
    return x == y || !memcmp(x, y, (size_t)n * sizeof *x);
}

// The slots that can be accepted. `step` gets what the draft passes need. Returns their number.
static int64_t collect(adaptive *a, dsc_serve_sequence *const *slot, int64_t count)
{
    int64_t slots = 0;
    dsc_serve_step *step = &a->step;
    step->longest = 0;
    step->draft_context = 0;
    a->count = count;
    a->one_curve = true;
    a->all = NULL;
    for (int64_t i = 0; i < count; i++) {
        const dsc_serve_sequence *s = slot[i];
        const double *survival = survival_of(a, s, i);
        int32_t n = a->kind == ORACLE ? s->run : s->most;
        while (n > 0 && survival[n - 1] <= 0)
            n--;
        a->survival[i] = survival;
        a->usable[i] = n;
        slots += n;
        for (; step->longest < n; step->longest++)
            step->drafts[step->longest + 1] = 0;
        if (!n)
            continue;
        step->drafts[n]++;
        step->draft_context += s->computed + 1;
        a->all = a->all ? a->all : survival;
        a->one_curve = a->one_curve && same(survival, a->all, n);
    }
    for (int32_t k = step->longest; k-- > 1;)
        step->drafts[k] += step->drafts[k + 1];
    return slots;
}

// Depths from `low` on that have the same survival: their slots come request by request.
static void begin_depths(adaptive *a, int32_t low)
{
    const double *curve = a->all;
    a->low = a->high = low;
    while (a->high < a->step.longest && curve[a->high] == curve[low - 1])
        a->high++;
    a->next = (candidate){curve[low - 1], 0, low - 1};
}

static bool next_of_curve(adaptive *a, candidate *out)
{
    candidate *next = &a->next;
    next->depth++;
    while (next->depth > a->high || next->depth > a->usable[next->request]) {
        if (++next->request == a->count) {
            if (a->high == a->step.longest)
                return false;
            begin_depths(a, a->high + 1);
        }
        next->depth = a->low;
    }
    *out = *next;
    return true;
}

static bool next_of_order(adaptive *a, candidate *out)
{
    if (!a->left)
        return false;
    a->left--;
    *out = *a->at++;
    return true;
}

static inline bool next_slot(adaptive *a, candidate *out)
{
    return a->one_curve ? next_of_curve(a, out) : next_of_order(a, out);
}

// --- the best number of slots --------------------------------------------------------------------

// The passes of the draft model follow the target's pass of the step at hand, not of the next one.
static int price_drafts(adaptive *a, const dsc_serve_engine *e, int32_t first, dsc_error *err)
{
    const int32_t longest = a->step.longest;
    int rc = DSC_OK;
    memcpy(&a->step, &e->step, offsetof(dsc_serve_step, draft_context));
    for (int32_t limit = first; limit <= longest && !rc; limit++) {
        a->taken[limit] = 0;
        a->expected[limit] = 0;
        a->step.longest = limit;
        rc = dsc_serve_draft_time(e->price, &a->step, &a->draft_s[limit], err);
    }
    a->step.longest = longest;
    return rc;
}

static void improve(choice *best, candidate last, int32_t limit, double rate)
{
    // A value of at most worse x time has a quotient below `rate`, whatever is rounded.
    *best = (choice){last, limit, rate, rate * (1 - 1e-9)};
}

// Takes `next` under all limits of the length that allow it and have room, from `first` on.
static void take(adaptive *a, const dsc_serve_price *price, candidate next, int32_t first,
                 double sampled, int64_t room, choice *best)
{
    for (int32_t limit = next.depth > first ? next.depth : first; limit <= a->step.longest;
         limit++) {
        if (a->taken[limit] == room)
            continue;
        const int64_t drafted = ++a->taken[limit];
        const double value = sampled + (a->expected[limit] += next.survival);
        const double time = dsc_serve_step_time(price, a->target_s[drafted], a->draft_s[limit]);
        if (value <= best->worse * time)
            continue;
        const double rate = value / time;
        if (rate > best->rate)
            improve(best, next, limit, rate);
    }
}

static int search(adaptive *a, const dsc_serve_engine *e, int64_t slots, int64_t sampled,
                  choice *best, dsc_error *err)
{
    const dsc_serve_price *price = e->price;
    const int32_t first = price->drafting == DSC_SERVE_DRAFT_EACH ? 1 : a->step.longest;
    const int64_t room = e->options->max_num_batched_tokens - a->step.decode_tokens;
    candidate next = {0};
    if (!slots || room <= 0)
        return DSC_OK;
    const int64_t most = slots < room ? slots : room;
    int rc = dsc_serve_target_times(price, &a->step, (size_t)most + 1, a->target_s, err);
    rc = rc ?: price_drafts(a, e, first, err);
    if (!rc && !a->one_curve)
        rc = sort_slots(a, slots, err);
    if (rc)
        return rc;
    improve(best, next, 0, (double)sampled / dsc_serve_step_time(price, a->target_s[0], 0));
    if (a->one_curve)
        begin_depths(a, 1);
    while (a->taken[first] < room && next_slot(a, &next))
        take(a, price, next, first, (double)sampled, room, best);
    return DSC_OK;
}

static int choose_adaptive(dsc_serve_policy *policy, const dsc_serve_engine *e,
                           dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    adaptive *a = policy->state;
    choice best = {.limit = 0};
    if (!count)
        return DSC_OK;
    const int64_t sampled = dsc_serve_forecast(e, &a->step);
    const int64_t slots = collect(a, slot, count);
    const int rc = search(a, e, slots, sampled, &best, err);
    for (int64_t i = 0; i < count && !rc; i++) {
        const double *survival = a->survival[i];
        const int32_t most = a->usable[i] < best.limit ? a->usable[i] : best.limit;
        int32_t k = 0;
        while (k < most &&
               (survival[k] > best.last.survival ||
                (survival[k] == best.last.survival &&
                 (i < best.last.request || (i == best.last.request && k < best.last.depth)))))
            k++;
        slot[i]->k = k;
    }
    return rc;
}

const dsc_serve_policy_type dsc_serve_policy_adaptive = {
    .name = "adaptive",
    .summary = "drafts where they raise the expected tokens per second of the step the most",
    .usage = "position|calibrated|oracle|constant:P",
    .optional = true,
    .open = open_adaptive,
    .begin = begin_adaptive,
    .choose = choose_adaptive,
    .close = close_adaptive};
