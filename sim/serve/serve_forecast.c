// SPDX-License-Identifier: Apache-2.0
// Forecast of the next step: the scheduler's rules (sim/serve/serve.c) applied to what the engine
// contains after the verification, before the requests that are complete leave.
#include "sim/serve/serve_forecast.h"

#include "sim/serve/serve_schedule.h"

typedef dsc_serve_sequence sequence;

typedef struct forecast {
    dsc_serve_step *step;
    int64_t budget, sampled, running, free_blocks;
} forecast;

static void add(forecast *f, const sequence *s, int32_t tokens)
{
    if (!tokens)
        return;
    f->budget -= tokens;
    f->sampled += s->computed + tokens >= dsc_serve_known(s);
    dsc_serve_add(f->step, s, tokens);
}

static void add_running(forecast *f, const dsc_serve_engine *e)
{
    for (int64_t i = 0; i < e->running_count; i++) {
        const sequence *s = &e->running[i];
        if (s->emitted == s->output) {
            f->free_blocks += s->blocks;
            continue;
        }
        f->running++;
        // After the verification, `scheduled` is the number of emitted tokens: where there are
        // some, the next draft is being chosen.
        const int64_t most = s->scheduled ? 1 : f->budget;
        add(f, s, dsc_serve_share(e->options, s, most < f->budget ? most : f->budget));
    }
}

// A request that waits, from the head of the queue; false: it does not get in.
static bool add_waiting(forecast *f, const dsc_serve_engine *e, const sequence *s)
{
    const int32_t tokens = dsc_serve_share(e->options, s, f->budget);
    if (!tokens || f->running == e->options->max_num_seqs ||
        !dsc_serve_fits(e->options, s, f->free_blocks))
        return false;
    f->running++;
    f->free_blocks -= dsc_serve_blocks(e->options, tokens);
    add(f, s, tokens);
    return true;
}

int64_t dsc_serve_forecast(const dsc_serve_engine *e, dsc_serve_step *out)
{
    forecast f = {
        .step = out, .budget = e->options->max_num_batched_tokens, .free_blocks = e->free_blocks};
    bool in = true;
    out->decoding = out->decode_tokens = out->decode_context = 0;
    out->prefilling = out->prefill_tokens = out->prefill_context = 0;
    add_running(&f, e);
    for (int64_t i = e->preempted_count; in && i-- > 0;)
        in = add_waiting(&f, e, &e->preempted[i]);
    for (int64_t i = e->admitted; in && i < e->arrived && f.running < e->options->max_num_seqs;
         i++) {
        const dsc_serve_item *item = dsc_serve_item_of(e->pool, i);
        in = add_waiting(&f, e, &(sequence){.prompt = item->prompt, .output = item->output});
    }
    return f.sampled;
}
