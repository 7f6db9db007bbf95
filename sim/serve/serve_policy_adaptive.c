// SPDX-License-Identifier: Apache-2.0
// Confidence-scheduled verification (DSpark, arXiv:2607.05147; vLLM pull request 47808). The
// survival of slot k of request r is the product of the first k confidences of the request. Slots
// in falling order of their survival: as it falls along a request, the first B of them are prefixes
// of drafts, and of all choices of B slots they have the largest expected number of accepted
// tokens. B is where
//
//     (requests sampled + sum of the first B survivals) / time of the step with T + B tokens
//
// is largest, T being all other tokens of the step, prefill chunks included. The fraction is not
// unimodal, so every B is tried. A draft model that has a pass for each draft token takes longer
// for longer drafts, so every limit of the length is tried with every B.
//
// The tokens B may exceed what T leaves of the budget: then they displace prefill, which has to be
// computed later and so is priced now.
#include "sim/serve/serve_policy.h"

#include "base/number.h"
#include "sim/serve/serve_forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum confidence { ORACLE, POSITION, CONSTANT } confidence;

// The next slot of a request.
typedef struct candidate {
    double survival;
    int32_t request, depth; // index of the request; depth from 1
} candidate;

typedef struct choice {
    candidate last; // the last slot that is taken, in the order of slots
    int32_t limit;  // of the length; 0: no draft
    double rate;    // expected tokens per second
} choice;

typedef struct adaptive {
    confidence kind;
    double constant;
    double *curve; // [k] survival by depth; POSITION: of items with recorded drafts
    const dsc_serve_pool *pool;
    candidate *heap;            // [max_num_seqs]
    int32_t *usable;            // [max_num_seqs] slots of a request
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
    a->kind = text && !strcmp(text, "oracle") ? ORACLE : POSITION;
    if (!text || a->kind == ORACLE || !strcmp(text, "position"))
        return DSC_OK;
    if (!strncmp(text, constant, strlen(constant))) {
        a->kind = CONSTANT;
        a->constant = dsc_strtod(text + strlen(constant), &end);
        if (end > text + strlen(constant) && !*end && a->constant >= 0 && a->constant <= 1)
            return DSC_OK;
    }
    return dsc_fail(err, DSC_EUSAGE,
                    "--speculation: '%.60s' is not a confidence of adaptive; choose position, "
                    "oracle or constant:P with P in [0, 1]",
                    text);
}

static void free_rows(adaptive *a)
{
    free(a->curve);
    free(a->heap);
    free(a->usable);
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

// The share of recorded drafts whose first i + 1 tokens are accepted, at all output positions: the
// product of the conditional acceptance rates, because some drafts are short. `tried` and
// `accepted` have k + 2 elements, zeroed.
static void measure(const dsc_serve_pool *pool, int32_t k, int64_t *tried, int64_t *accepted,
                    double *curve)
{
    double survival = 1;
    for (size_t i = 0; i < pool->count; i++) {
        const dsc_serve_item *item = &pool->item[i];
        for (int32_t t = 1; item->draft && t < item->output - 1; t++) {
            const int32_t left = item->output - t - 1;
            int32_t most = item->draft[t].available < k ? item->draft[t].available : k;
            most = most < left ? most : left;
            const int32_t run = item->draft[t].run < most ? item->draft[t].run : most;
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

static int begin_adaptive(dsc_serve_policy *policy, const dsc_serve_engine *e, dsc_error *err)
{
    adaptive *a = policy->state;
    const size_t k = (size_t)policy->k, requests = (size_t)e->options->max_num_seqs;
    free_rows(a);
    *a = (adaptive){.kind = a->kind, .constant = a->constant, .pool = e->pool};
    int rc = dsc_new(&a->curve, k, err);
    if (!rc)
        rc = dsc_new(&a->heap, requests, err);
    if (!rc)
        rc = dsc_new(&a->usable, requests, err);
    if (!rc)
        rc = dsc_new(&a->target_s, (size_t)e->options->max_num_batched_tokens + 1, err);
    if (!rc)
        rc = dsc_new(&a->taken, k + 1, err);
    if (!rc)
        rc = dsc_new(&a->expected, k + 1, err);
    if (!rc)
        rc = dsc_new(&a->draft_s, k + 1, err);
    if (!rc && a->kind == POSITION)
        rc = measure_pool(a->pool, policy->k, a->curve, err);
    for (size_t i = 0; i < k && !rc && a->kind != POSITION; i++)
        a->curve[i] = a->kind == ORACLE ? 1 : pow(a->constant, (double)(i + 1));
    return rc;
}

static const double *curve_of(const adaptive *a, const dsc_serve_sequence *s)
{
    return a->kind == POSITION && !s->draft ? a->pool->survival : a->curve;
}

// --- slots in falling order of their survival ----------------------------------------------------

static bool before(candidate x, candidate y)
{
    return x.survival > y.survival || (x.survival == y.survival && x.request < y.request);
}

static void sift(candidate *heap, int64_t count, int64_t i)
{
    const candidate moving = heap[i];
    for (int64_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && before(heap[child + 1], heap[child]);
        if (!before(heap[child], moving))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

// Counts the slots that can be accepted, and returns how many requests have one. `step` gets what
// the draft passes need.
static int64_t collect(adaptive *a, dsc_serve_sequence *const *slot, int64_t count)
{
    int64_t heaped = 0;
    dsc_serve_step *step = &a->step;
    step->longest = 0;
    step->draft_context = 0;
    for (int64_t i = 0; i < count; i++) {
        const dsc_serve_sequence *s = slot[i];
        const double *curve = curve_of(a, s);
        int32_t n = a->kind == ORACLE ? s->run : s->most;
        while (n > 0 && curve[n - 1] <= 0)
            n--;
        a->usable[i] = n;
        for (; step->longest < n; step->longest++)
            step->drafts[step->longest + 1] = 0;
        if (!n)
            continue;
        step->drafts[n]++;
        step->draft_context += s->computed + 1;
        a->heap[heaped++] = (candidate){curve[0], (int32_t)i, 1};
    }
    for (int32_t k = step->longest; k-- > 1;)
        step->drafts[k] += step->drafts[k + 1];
    for (int64_t i = heaped / 2; i-- > 0;)
        sift(a->heap, heaped, i);
    return heaped;
}

// The top's request goes on with its next slot, or leaves. Returns the number of those that remain.
static int64_t pop(adaptive *a, dsc_serve_sequence *const *slot, int64_t heaped)
{
    candidate *top = a->heap;
    if (top->depth < a->usable[top->request]) {
        top->survival = curve_of(a, slot[top->request])[top->depth];
        top->depth++;
    } else {
        *top = a->heap[--heaped];
    }
    if (heaped > 1)
        sift(a->heap, heaped, 0);
    return heaped;
}

// --- the best number of slots --------------------------------------------------------------------

static int price_drafts(adaptive *a, const dsc_serve_price *price, int32_t first, dsc_error *err)
{
    const int32_t longest = a->step.longest;
    int rc = DSC_OK;
    for (int32_t limit = first; limit <= longest && !rc; limit++) {
        a->taken[limit] = 0;
        a->expected[limit] = 0;
        a->step.longest = limit;
        rc = dsc_serve_draft_time(price, &a->step, &a->draft_s[limit], err);
    }
    a->step.longest = longest;
    return rc;
}

static int price_target(adaptive *a, const dsc_serve_price *price, int64_t drafted, dsc_error *err)
{
    dsc_serve_step *step = &a->step;
    step->decode_tokens += drafted;
    const int rc = dsc_serve_target_time(price, step, &a->target_s[drafted], err);
    step->decode_tokens -= drafted;
    return rc;
}

// Takes `next` under all limits of the length that allow it and have room, from `first` on.
static void take(adaptive *a, const dsc_serve_price *price, candidate next, int32_t first,
                 int64_t sampled, int64_t room, choice *best)
{
    for (int32_t limit = next.depth > first ? next.depth : first; limit <= a->step.longest;
         limit++) {
        if (a->taken[limit] == room)
            continue;
        const int64_t drafted = ++a->taken[limit];
        a->expected[limit] += next.survival;
        const double rate = ((double)sampled + a->expected[limit]) /
                            dsc_serve_step_time(price, a->target_s[drafted], a->draft_s[limit]);
        if (rate > best->rate)
            *best = (choice){next, limit, rate};
    }
}

static int search(adaptive *a, const dsc_serve_engine *e, dsc_serve_sequence *const *slot,
                  int64_t heaped, int64_t sampled, choice *best, dsc_error *err)
{
    const dsc_serve_price *price = e->price;
    const int32_t longest = a->step.longest;
    const int32_t first = price->drafting == DSC_SERVE_DRAFT_EACH ? 1 : longest;
    const int64_t room = e->options->max_num_batched_tokens - a->step.decode_tokens;
    if (!heaped)
        return DSC_OK;
    int rc = price_target(a, price, 0, err);
    if (rc)
        return rc;
    best->rate = (double)sampled / dsc_serve_step_time(price, a->target_s[0], 0);
    rc = price_drafts(a, price, first, err);
    // The highest limit takes every slot, so it has taken the most: the time of its number of
    // tokens is new, and those of the others are known.
    while (heaped && !rc && a->taken[first] < room) {
        if (a->taken[longest] < room)
            rc = price_target(a, price, a->taken[longest] + 1, err);
        if (!rc)
            take(a, price, a->heap[0], first, sampled, room, best);
        heaped = pop(a, slot, heaped);
    }
    return rc;
}

static int choose_adaptive(dsc_serve_policy *policy, const dsc_serve_engine *e,
                           dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    adaptive *a = policy->state;
    choice best = {.limit = 0};
    if (!count)
        return DSC_OK;
    const int64_t sampled = dsc_serve_forecast(e, &a->step);
    const int64_t heaped = collect(a, slot, count);
    const int rc = search(a, e, slot, heaped, sampled, &best, err);
    for (int64_t i = 0; i < count && !rc; i++) {
        const double *curve = curve_of(a, slot[i]);
        const int32_t most = a->usable[i] < best.limit ? a->usable[i] : best.limit;
        int32_t k = 0;
        while (k < most &&
               (curve[k] > best.last.survival ||
                (curve[k] == best.last.survival &&
                 (i < best.last.request || (i == best.last.request && k < best.last.depth)))))
            k++;
        slot[i]->k = k;
    }
    return rc;
}

const dsc_serve_policy_type dsc_serve_policy_adaptive = {
    .name = "adaptive",
    .summary = "drafts where they raise the expected tokens per second of the step the most",
    .usage = "position|oracle|constant:P",
    .optional = true,
    .open = open_adaptive,
    .begin = begin_adaptive,
    .choose = choose_adaptive,
    .close = close_adaptive};
