// SPDX-License-Identifier: Apache-2.0
// The engine: admits, schedules, prices, commits. Every quantity of a step is a sum over the
// running sequences, so a step costs a few nanoseconds for each of them.
#include "sim/serve/serve.h"

#include "sim/serve/serve_policy.h"
#include "sim/serve/serve_schedule.h"
#include "sim/serve/serve_script.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef dsc_serve_engine engine;
typedef dsc_serve_sequence sequence;

// --- arrivals ------------------------------------------------------------------------------------

// The request after those that are measured, or after all.
static int64_t end_of(const dsc_serve_options *o)
{
    return o->ramp + o->requests;
}

static double arrival_after(const engine *e, int64_t i, double last_s)
{
    const bool any = !e->options->drain || i < end_of(e->options);
    return any ? dsc_arrivals_next(e->arrivals, i, last_s) : INFINITY;
}

static void open_window(engine *e)
{
    e->opened = true;
    e->before = *e->totals;
    e->before.begin_s = e->now_s;
}

static void close_window(engine *e)
{
    e->closed = true;
    e->after = *e->totals;
    e->after.end_s = e->now_s;
}

// A request has arrived at `at`, not later than now.
static void arrive(engine *e, double at)
{
    const dsc_serve_options *o = e->options;
    if (e->arrived == o->ramp)
        open_window(e);
    if (e->arrived == end_of(o))
        close_window(e);
    e->totals->waiting_area += e->now_s - at;
    e->arrived++;
}

// Client of a closed loop: sends the next request now.
static void send(engine *e)
{
    if (e->options->drain && e->arrived == end_of(e->options))
        return;
    e->sent[e->arrived % e->arrivals->clients] = e->now_s;
    arrive(e, e->now_s);
}

static void take_arrivals(engine *e)
{
    while (e->next_arrival_s <= e->now_s) {
        const double at = e->next_arrival_s;
        arrive(e, at);
        e->next_arrival_s = arrival_after(e, e->arrived, at);
    }
}

// The request that is next in line, out of `preempted` or new.
static sequence *head(engine *e, sequence *fresh)
{
    if (e->preempted_count)
        return &e->preempted[e->preempted_count - 1];
    const dsc_serve_item *item = dsc_serve_item_of(e->pool, e->admitted);
    *fresh = (sequence){.number = e->admitted,
                        .item = item,
                        .draft = item->draft,
                        .prompt = item->prompt,
                        .output = item->output,
                        .arrival_s = e->sent ? e->sent[e->admitted % e->arrivals->clients]
                                             : e->head_arrival_s};
    if (e->pool->script)
        fresh->pass = e->pool->script[item - e->pool->item];
    return fresh;
}

static void leave_queue(engine *e)
{
    if (e->preempted_count) {
        e->preempted_count--;
        return;
    }
    e->admitted++;
    if (!e->sent)
        e->head_arrival_s = arrival_after(e, e->admitted, e->head_arrival_s);
}

// --- scheduling ----------------------------------------------------------------------------------

static void preempt_newest(engine *e)
{
    sequence *s = &e->running[--e->running_count];
    e->free_blocks += s->blocks;
    e->totals->preemptions++;
    e->totals->recomputed_tokens += s->computed;
    s->preemptions++;
    s->blocks = s->computed = s->scheduled = s->k = 0;
    if (!e->pool->script)
        s->tokens = 0;
    e->preempted[e->preempted_count++] = *s;
}

// Gives a sequence room for `tokens` tokens in its KV cache, if there are free blocks.
static bool reserve(engine *e, sequence *s, int64_t tokens)
{
    if (!e->options->kv_blocks)
        return true;
    const int64_t more = dsc_serve_blocks(e->options, tokens) - s->blocks;
    if (more <= 0)
        return true;
    if (more > e->free_blocks)
        return false;
    e->free_blocks -= more;
    s->blocks += (int32_t)more;
    return true;
}

// Of a tree that has no room for all tokens, the first levels are verified.
static int32_t share_tree(const engine *e, sequence *s, int32_t tokens)
{
    const dsc_serve_level *tree = e->pool->tree;
    const int32_t drafted = s->computed + tokens - dsc_serve_known(s);
    if (drafted < 0 || drafted == s->tokens)
        return tokens;
    while (tree[s->k].tokens > drafted)
        s->k--;
    s->tokens = tree[s->k].tokens;
    return tokens - drafted + s->tokens;
}

// A step of a script is served whole, now or later.
static int32_t share_script(const sequence *s, int64_t budget)
{
    const int32_t before = dsc_serve_known(s) - 1 - s->computed;
    return before + 1 + s->tokens <= budget ? before + 1 + s->tokens
           : before < budget                ? before
                                            : (int32_t)budget;
}

// Tokens of a sequence in this step.
static inline int32_t share(const engine *e, sequence *s, int64_t budget)
{
    if (e->pool->script && s->emitted)
        return share_script(s, budget);
    const int32_t tokens = dsc_serve_share(e->options, s, budget);
    return e->pool->tree ? share_tree(e, s, tokens) : tokens;
}

// Returns the budget that is left; sets *preempted where a sequence had to go.
static int64_t schedule_running(engine *e, int64_t budget, bool *preempted)
{
    for (int64_t i = 0; i < e->running_count; i++) {
        sequence *s = &e->running[i];
        s->scheduled = share(e, s, budget);
        const int64_t slots = s->computed + s->scheduled + e->options->lookahead;
        while (s->scheduled && !reserve(e, s, slots)) {
            *preempted = true;
            preempt_newest(e);
            if (i == e->running_count)
                return budget;
        }
        if (!s->scheduled)
            continue;
        budget -= s->scheduled;
        dsc_serve_add(&e->step, s, s->scheduled);
    }
    return budget;
}

static int admit(engine *e, int64_t budget, dsc_error *err)
{
    const dsc_serve_options *o = e->options;
    while (budget > 0 && dsc_serve_waiting(e) && e->running_count < o->max_num_seqs) {
        sequence fresh, *s = head(e, &fresh);
        // In its widest step, a request has slots for the draft at hand and for the next one.
        const int64_t whole =
            dsc_serve_blocks(o, (int64_t)s->prompt + s->output + o->lookahead + e->pool->widest);
        if (o->kv_blocks && whole > o->kv_blocks)
            return dsc_fail(err, DSC_EINPUT,
                            "request %" PRId64 " has a prompt of %d and an output of %d tokens: it "
                            "needs %" PRId64 " blocks of the KV cache, which has %" PRId64,
                            s->number, s->prompt, s->output, whole, o->kv_blocks);
        s->scheduled = share(e, s, budget);
        // Slots for the draft model's tokens are reserved from the next step on.
        if (!dsc_serve_fits(o, s, e->free_blocks) || !reserve(e, s, s->scheduled))
            return DSC_OK;
        budget -= s->scheduled;
        dsc_serve_add(&e->step, s, s->scheduled);
        e->running[e->running_count++] = *s;
        leave_queue(e);
    }
    return DSC_OK;
}

static int schedule(engine *e, dsc_error *err)
{
    dsc_serve_step *step = &e->step;
    bool preempted = false;
    memset(step, 0, offsetof(dsc_serve_step, drafts));
    const int64_t budget = schedule_running(e, e->options->max_num_batched_tokens, &preempted);
    return preempted ? DSC_OK : admit(e, budget, err);
}

// --- commit --------------------------------------------------------------------------------------

// What a draft after the tokens so far offers, and how much of it would be accepted.
static void look_ahead(const engine *e, sequence *s)
{
    const dsc_serve_pool *pool = e->pool;
    const int32_t left = s->output - s->emitted - 1;
    int32_t available = pool->levels, run = 0;
    if (s->draft) {
        available = s->draft[s->emitted].available;
        run = s->draft[s->emitted].run;
    } else if (left > 0 && e->policy->k) {
        const double u =
            dsc_rng_uniform(pool->seed, (uint64_t)s->number, (uint32_t)s->emitted, DSC_RNG_ACCEPT);
        while (run < available && u < pool->survival[run])
            run++;
    }
    s->most = available < e->policy->k ? available : e->policy->k;
    s->most = s->most < left ? s->most : left;
    s->run = run < s->most ? run : s->most;
    s->k = s->most;
}

// Tokens that a sequence emits in this step; `k` and `run` are those of its verified draft.
static int32_t verify(engine *e, sequence *s)
{
    const int32_t after = s->computed + s->scheduled, drafted = after - dsc_serve_known(s);
    dsc_serve_totals *t = e->totals;
    if (!dsc_serve_decodes(s))
        t->prefill_tokens += s->scheduled;
    if (drafted < 0) {
        s->computed = after;
        return 0;
    }
    const int32_t k = e->pool->tree ? s->k : drafted, accepted = k < s->run ? k : s->run;
    s->computed = dsc_serve_known(s) + accepted;
    s->emitted += accepted + 1;
    t->num_draft_tokens += drafted;
    t->num_accepted_tokens += accepted;
    t->num_drafts += drafted > 0;
    if (drafted && e->policy->type->observe)
        e->policy->type->observe(e->policy, s, k, accepted);
    s->run = s->k = s->tokens = 0;
    return accepted + 1;
}

// The tokens of the trees of which the policy chose the levels.
static void count_nodes(engine *e, sequence *const *slot, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const dsc_serve_level level = e->pool->tree[slot[i]->k];
        slot[i]->tokens = level.tokens;
        e->step.draft_tokens += level.draft_tokens;
    }
}

// Verifies all drafts, then chooses the next ones. scheduled becomes the number of emitted tokens.
static int verify_all(engine *e, sequence **slot, dsc_error *err)
{
    int64_t count = 0;
    for (int64_t i = 0; i < e->running_count; i++) {
        sequence *s = &e->running[i];
        s->scheduled = s->scheduled ? verify(e, s) : 0;
        if (!s->scheduled || s->emitted == s->output)
            continue;
        look_ahead(e, s);
        slot[count++] = s;
    }
    if (!e->policy->k)
        return DSC_OK;
    const int rc = e->policy->type->choose(e->policy, e, slot, count, err);
    dsc_serve_step *step = &e->step;
    memset(step->drafts, 0, ((size_t)e->policy->k + 1) * sizeof *step->drafts);
    for (int64_t i = 0; i < count; i++) {
        const int32_t k = slot[i]->tokens = slot[i]->k;
        step->drafts[k]++;
        step->longest = k > step->longest ? k : step->longest;
        step->draft_context += k ? slot[i]->computed + 1 : 0;
    }
    for (int32_t k = step->longest; k-- > 1;)
        step->drafts[k] += step->drafts[k + 1];
    if (e->pool->tree)
        count_nodes(e, slot, count);
    return rc;
}

static int advance_clock(engine *e, dsc_error *err)
{
    dsc_serve_totals *t = e->totals;
    dsc_serve_step *step = &e->step;
    const int rc = dsc_serve_draft_time(e->price, step, &step->draft_s, err);
    step->overhead_s = e->price->overhead_s;
    step->seconds = dsc_serve_step_time(e->price, step->target_s, step->draft_s);
    const double used =
        e->options->kv_blocks ? (double)(e->options->kv_blocks - e->free_blocks) : 0;
    e->now_s += step->seconds;
    t->steps++;
    t->target_s += step->target_s;
    t->draft_s += step->draft_s;
    t->overhead_s += step->overhead_s;
    t->running_area += step->seconds * (double)e->running_count;
    t->waiting_area += step->seconds * (double)dsc_serve_waiting(e);
    t->block_area += step->seconds * used;
    return rc;
}

static void count_maxima(engine *e)
{
    dsc_serve_totals *t = e->totals;
    if (!e->opened || e->closed)
        return;
    const int64_t waiting = dsc_serve_waiting(e), used = e->options->kv_blocks - e->free_blocks;
    t->most_running = e->running_count > t->most_running ? e->running_count : t->most_running;
    t->most_waiting = waiting > t->most_waiting ? waiting : t->most_waiting;
    if (e->options->kv_blocks && used > t->most_blocks)
        t->most_blocks = used;
}

// A sequence emitted `tokens` tokens at once.
static void stamp(engine *e, sequence *s, int32_t tokens)
{
    dsc_serve_totals *t = e->totals;
    const double gap = e->now_s - s->last_s;
    const bool first = s->chunks++ == 0;
    s->last_s = e->now_s;
    t->output_tokens += tokens;
    if (first)
        s->first_s = e->now_s;
    if (!dsc_serve_is_measured(e->options, s->number))
        return;
    t->measured_tokens += tokens;
    if (first) {
        dsc_latency_add(&t->ttft, e->now_s - s->arrival_s, 1);
        return;
    }
    dsc_latency_add(&t->itl, gap, 1);
    dsc_latency_add(&t->itl_token, gap / tokens, tokens);
}

static int complete(engine *e, const sequence *s, dsc_error *err)
{
    dsc_serve_totals *t = e->totals;
    const dsc_serve_options *o = e->options;
    t->completed++;
    e->free_blocks += s->blocks;
    if (dsc_serve_is_measured(o, s->number)) {
        const double ttft = s->first_s - s->arrival_s;
        const double tpot = s->output > 1 ? (s->last_s - s->first_s) / (s->output - 1) : 0;
        if (s->output > 1)
            dsc_latency_add(&t->tpot, tpot, 1);
        dsc_latency_add(&t->e2e, s->last_s - s->arrival_s, 1);
        t->measured++;
        t->good += ttft <= o->slo_ttft_s && tpot <= o->slo_tpot_s;
    }
    return o->complete ? o->complete(o->user, s, err) : DSC_OK;
}

// Stamps what was emitted; those that are complete leave, the others keep their order.
static int commit(engine *e, dsc_error *err)
{
    int64_t kept = 0, complete_count = 0;
    int rc = DSC_OK;
    for (int64_t i = 0; i < e->running_count && !rc; i++) {
        sequence *s = &e->running[i];
        if (s->scheduled)
            stamp(e, s, s->scheduled);
        if (s->emitted < s->output) {
            if (kept < i)
                e->running[kept] = *s;
            kept++;
            continue;
        }
        complete_count++;
        rc = complete(e, s, err);
    }
    e->running_count = kept;
    while (e->sent && complete_count-- > 0)
        send(e);
    return rc;
}

static int step(engine *e, sequence **slot, dsc_error *err)
{
    int rc = schedule(e, err);
    rc = rc ?: dsc_serve_target_time(e->price, &e->step, &e->step.target_s, err);
    if (!rc) {
        count_maxima(e);
        if (e->options->pass)
            rc = e->options->pass(e->options->user, e, err);
    }
    if (!rc && e->pool->script)
        dsc_serve_script_verify(e);
    else if (!rc)
        rc = verify_all(e, slot, err);
    rc = rc ?: advance_clock(e, err);
    if (!rc && e->options->step)
        rc = e->options->step(e->options->user, e, err);
    rc = rc ?: commit(e, err);
    take_arrivals(e);
    return rc;
}

// --- run -----------------------------------------------------------------------------------------

static int check_options(const dsc_serve_options *o, const dsc_serve_pool *pool, dsc_error *err)
{
    if (o->requests < 1 || o->ramp < 0 || o->ramp > INT64_MAX - o->requests)
        return dsc_fail(err, DSC_EUSAGE,
                        "%" PRId64 " requests after a ramp of %" PRId64
                        ": at least one request must be measured",
                        o->requests, o->ramp);
    if (o->max_num_seqs < 1 || o->max_num_batched_tokens < o->max_num_seqs)
        return dsc_fail(err, DSC_EUSAGE,
                        "--max-num-batched-tokens is %d and --max-num-seqs is %d: the tokens of a "
                        "step must be at least the sequences, of which there is at least one",
                        o->max_num_batched_tokens, o->max_num_seqs);
    if (o->block_size < 1 || o->kv_blocks < 0 || o->lookahead < 0 ||
        o->long_prefill_token_threshold < 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "the block size of the KV cache must be at least 1; its blocks, the "
                        "lookahead and the prefill threshold must be at least 0");
    return pool->script && pool->widest >= o->max_num_batched_tokens
               ? dsc_fail(err, DSC_EUSAGE,
                          "--max-num-batched-tokens is %d, but a step of a request has %d tokens "
                          "and is served whole: %d are needed",
                          o->max_num_batched_tokens, 1 + pool->widest, 1 + pool->widest)
               : DSC_OK;
}

static int begin(engine *e, sequence ***slot, dsc_error *err)
{
    const dsc_serve_options *o = e->options;
    dsc_serve_totals *t = e->totals;
    const size_t room = (size_t)o->max_num_seqs;
    dsc_latency *const all[] = {&t->ttft, &t->tpot, &t->itl, &t->itl_token, &t->e2e};
    int rc = dsc_new(&e->running, room, err);
    rc = rc ?: dsc_new(&e->preempted, room, err);
    rc = rc ?: dsc_new(slot, room, err);
    for (size_t i = 0; i < sizeof all / sizeof *all && !rc; i++)
        rc = dsc_latency_init(all[i], err);
    if (!rc && e->arrivals->kind == DSC_ARRIVALS_CLOSED)
        rc = dsc_new(&e->sent, (size_t)e->arrivals->clients, err);
    if (rc)
        return rc;
    e->free_blocks = o->kv_blocks;
    e->next_arrival_s = e->head_arrival_s = INFINITY;
    if (!e->sent) {
        e->next_arrival_s = e->head_arrival_s = arrival_after(e, 0, 0);
        e->begin_s = e->now_s = e->next_arrival_s;
        take_arrivals(e);
    }
    for (int64_t i = 0; e->sent && i < e->arrivals->clients; i++)
        send(e);
    return DSC_OK;
}

// The sums of the window are what its end has more than its begin.
static void keep_window(dsc_serve_totals *t, const dsc_serve_totals *before,
                        const dsc_serve_totals *after)
{
    t->steps = after->steps - before->steps;
    t->completed = after->completed - before->completed;
    t->output_tokens = after->output_tokens - before->output_tokens;
    t->num_draft_tokens = after->num_draft_tokens - before->num_draft_tokens;
    t->num_accepted_tokens = after->num_accepted_tokens - before->num_accepted_tokens;
    t->num_drafts = after->num_drafts - before->num_drafts;
    t->prefill_tokens = after->prefill_tokens - before->prefill_tokens;
    t->recomputed_tokens = after->recomputed_tokens - before->recomputed_tokens;
    t->preemptions = after->preemptions - before->preemptions;
    t->begin_s = before->begin_s;
    t->end_s = after->end_s;
    t->draft_s = after->draft_s - before->draft_s;
    t->target_s = after->target_s - before->target_s;
    t->overhead_s = after->overhead_s - before->overhead_s;
    t->idle_s = after->idle_s - before->idle_s;
    t->running_area = after->running_area - before->running_area;
    t->waiting_area = after->waiting_area - before->waiting_area;
    t->block_area = after->block_area - before->block_area;
}

static int serve(engine *e, sequence **slot, dsc_error *err)
{
    dsc_serve_totals *t = e->totals;
    int rc = DSC_OK;
    const dsc_serve_options *o = e->options;
    while ((t->measured < o->requests || !(e->closed || o->drain)) && !rc) {
        if (!e->running_count && !dsc_serve_waiting(e)) {
            t->idle_s += e->next_arrival_s - e->now_s;
            e->now_s = e->next_arrival_s;
            take_arrivals(e);
        }
        rc = step(e, slot, err);
    }
    if (!e->closed)
        close_window(e);
    keep_window(t, &e->before, &e->after);
    return rc;
}

int dsc_serve_run(dsc_serve_totals *out, const dsc_serve_pool *pool, const dsc_arrivals *arrivals,
                  const dsc_serve_price *price, dsc_serve_policy *policy,
                  const dsc_serve_options *options, dsc_error *err)
{
    engine *e;
    sequence **slot = NULL;
    *out = (dsc_serve_totals){0};
    int rc = check_options(options, pool, err);
    rc = rc ?: dsc_new(&e, 1, err);
    if (rc)
        return rc;
    e->options = options;
    e->pool = pool;
    e->arrivals = arrivals;
    e->price = price;
    e->policy = policy;
    e->totals = out;
    rc = begin(e, &slot, err);
    if (!rc && policy->type->begin)
        rc = policy->type->begin(policy, e, err);
    rc = rc ?: serve(e, slot, err);
    free(slot);
    free(e->running);
    free(e->preempted);
    free(e->sent);
    free(e);
    return rc;
}

void dsc_serve_totals_fini(dsc_serve_totals *t)
{
    dsc_latency_fini(&t->ttft);
    dsc_latency_fini(&t->tpot);
    dsc_latency_fini(&t->itl);
    dsc_latency_fini(&t->itl_token);
    dsc_latency_fini(&t->e2e);
    *t = (dsc_serve_totals){0};
}
