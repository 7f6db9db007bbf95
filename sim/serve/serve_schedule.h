// SPDX-License-Identifier: Apache-2.0
// What the engine's scheduler and a policy's forecast of the next step have in common.
#ifndef DSC_SIM_SERVE_SCHEDULE_H
#define DSC_SIM_SERVE_SCHEDULE_H

#include "base/rng.h"
#include "sim/serve/serve.h"

// Tokens of a sequence that are known: its prompt and what it has emitted.
static inline int32_t dsc_serve_known(const dsc_serve_sequence *s)
{
    return s->prompt + s->emitted;
}

static inline bool dsc_serve_decodes(const dsc_serve_sequence *s)
{
    return s->emitted > 0 && s->computed == dsc_serve_known(s) - 1;
}

// Blocks of the KV cache for a sequence of that many tokens.
static inline int64_t dsc_serve_blocks(const dsc_serve_options *o, int64_t tokens)
{
    return (tokens + o->block_size - 1) / o->block_size;
}

// Whether a waiting request may be admitted: all tokens that it has must find room, although only
// those of its first chunk get it (scheduler_reserve_full_isl of vLLM, on by default). A request
// that was preempted in a step of its script keeps the draft of this step, which needs room, too.
static inline bool dsc_serve_fits(const dsc_serve_options *o, const dsc_serve_sequence *s,
                                  int64_t free_blocks)
{
    return !o->kv_blocks || dsc_serve_blocks(o, dsc_serve_known(s) + s->tokens) <= free_blocks;
}

// Tokens of a sequence in a step, from what it needs and the budget.
static inline int32_t dsc_serve_share(const dsc_serve_options *o, const dsc_serve_sequence *s,
                                      int64_t budget)
{
    const int32_t threshold = o->long_prefill_token_threshold;
    int64_t need = dsc_serve_known(s) + s->tokens - s->computed;
    if (threshold && need > threshold)
        need = threshold;
    return (int32_t)(need < budget ? need : budget);
}

// Adds `tokens` tokens of a sequence to a step.
static inline void dsc_serve_add(dsc_serve_step *step, const dsc_serve_sequence *s, int32_t tokens)
{
    const bool decoding = dsc_serve_decodes(s);
    *(decoding ? &step->decoding : &step->prefilling) += 1;
    *(decoding ? &step->decode_tokens : &step->prefill_tokens) += tokens;
    *(decoding ? &step->decode_context : &step->prefill_context) += s->computed;
}

// The item that a request of the run has.
static inline const dsc_serve_item *dsc_serve_item_of(const dsc_serve_pool *pool, int64_t number)
{
    const size_t which = pool->shuffled ? dsc_rng_below(pool->seed, (uint64_t)number, 0,
                                                        DSC_RNG_REQUEST, (uint32_t)pool->count)
                                        : (size_t)number % pool->count;
    return &pool->item[which];
}

#endif
