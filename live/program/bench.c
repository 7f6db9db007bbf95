// SPDX-License-Identifier: Apache-2.0
// Rooms, random KV caches and timed passes of a model; and the batches of a pass over sequences of
// different lengths, one for each number of tokens.
#include "live/program/bench.h"

#include "base/order.h"
#include "live/device/clock.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WORD = 64 };

// --- room ----------------------------------------------------------------------------------------

dsc_dtype live_stored_dtype(const live_weights *w)
{
    return w->config.layers         ? w->layer[0].qkv.dtype
           : w->config.medusa_heads ? w->medusa[0].out.dtype
                                    : w->config.dtype;
}

static int check_memory(const live_bench *n, live_bench_size size, dsc_error *err)
{
    const live_config *c = &n->w->config;
    const dsc_dtype dtype = n->b->type->memory.cache_dtype(live_stored_dtype(n->w));
    double need = live_room_bytes(c, size.rows, size.outputs), spare, all;
    need += (double)size.slots * (double)size.sequences * live_config_cache_bytes(c, dtype);
    int rc = n->b->type->memory.available(n->b, &spare, &all, err);
    if (!rc && need > spare)
        rc = dsc_fail(err, DSC_ENOMEM,
                      "%" PRId64 " sequences of %" PRId64 " tokens need %.3g GB on %s, %.3g GB are "
                      "free",
                      size.sequences, size.slots, need * 1e-9, n->b->device, spare * 1e-9);
    return rc;
}

static int fill_cache(const live_bench *n, uint64_t seed, dsc_error *err)
{
    const live_cache *k = &n->cache;
    const int64_t cells = k->sequences * k->slots * k->width;
    int rc = DSC_OK;
    for (int64_t i = 0; i < k->layers && !rc; i++) {
        const uint64_t stream = UINT64_C(0x6361636865) << 16 | (uint64_t)(2 * i);
        rc = n->b->type->memory.fill(n->b, k->k[i], k->dtype, cells, seed, stream, 1, err);
        if (!rc)
            rc = n->b->type->memory.fill(n->b, k->v[i], k->dtype, cells, seed, stream + 1, 1, err);
    }
    return rc;
}

int live_bench_open(live_bench *n, const live_weights *w, const live_weights *target,
                    live_bench_size size, uint64_t seed, dsc_error *err)
{
    const live_config *c = &w->config;
    *n = (live_bench){.w = w, .target = target, .b = w->backend};
    if (c->experts)
        return dsc_fail(err, DSC_EUSAGE,
                        "a mixture of experts (%s) is run for its results; its times on a CPU are "
                        "not those of an engine and are not measured",
                        c->model_type);
    int rc = check_memory(n, size, err);
    if (!rc)
        rc = live_room_new(&n->room, w, size.rows, size.outputs, err);
    if (!rc && c->layers)
        rc = live_cache_new(&n->cache, w, size.sequences, size.slots, err);
    if (!rc)
        rc = fill_cache(n, seed, err);
    if (!rc && live_config_is_head(c))
        rc = n->b->type->memory.alloc(n->b, &n->features.rows,
                                      (size_t)(size.slots * c->hidden) * sizeof(float), err);
    if (!rc && n->features.rows)
        rc = n->b->type->memory.fill(n->b, n->features.rows, DSC_F32, size.slots * c->hidden, seed,
                                     1, 1, err);
    n->features.slots = size.slots;
    return rc;
}

void live_bench_close(live_bench *n)
{
    if (!n->b)
        return;
    live_room_free(&n->room);
    live_cache_free(&n->cache, n->b);
    n->b->type->memory.free(n->b, n->features.rows);
    *n = (live_bench){0};
}

int live_bench_pass(live_bench *n, const live_batch *batch, double *seconds, dsc_error *err)
{
    const double start = live_now_s();
    int rc =
        live_pass(n->w, n->target, &n->cache, &n->room, &n->features, &n->features, batch, err);
    if (!rc)
        rc = n->b->type->pass.wait(n->b, err);
    *seconds = live_now_s() - start;
    return rc;
}

// --- times ---------------------------------------------------------------------------------------

double live_quantile(const double *x, int n, double share)
{
    const double at = share * (n - 1);
    const int i = (int)at, next = i + 1 < n ? i + 1 : i;
    return x[i] + (at - i) * (x[next] - x[i]);
}

double live_typical(double *time, int repeats)
{
    double sum = 0;
    int rounds = 0;
    for (int from = 0; from < repeats; from += LIVE_IN_A_ROW, rounds++) {
        const int n = from + LIVE_IN_A_ROW < repeats ? LIVE_IN_A_ROW : repeats - from;
        qsort(time + from, (size_t)n, sizeof *time, dsc_by_real);
        sum += live_quantile(time + from, n, .5);
    }
    return sum / rounds;
}

// --- spans ---------------------------------------------------------------------------------------

static int by_tokens(const void *a, const void *b)
{
    const int32_t x = ((const live_span *)a)->tokens, y = ((const live_span *)b)->tokens;
    return (x > y) - (x < y);
}

// The lists of sequences of one number of tokens, which are a chain after no tokens: the shift adds
// their contexts. `row`: of the first in the pass.
static int make_part(live_batch *out, dsc_arena *memory, const live_span *span, size_t count,
                     int64_t row, int64_t vocab, dsc_error *err)
{
    const int64_t tokens = span->tokens, words = (tokens + WORD - 1) / WORD;
    const size_t rows = count * (size_t)tokens;
    int32_t *token, *shift, *position;
    uint64_t *mask;
    int rc = dsc_arena_new(memory, &token, rows, err);
    if (!rc)
        rc = dsc_arena_new(memory, &shift, count, err);
    if (!rc)
        rc = dsc_arena_new(memory, &position, (size_t)tokens, err);
    if (!rc)
        rc = dsc_arena_new(memory, &mask, (size_t)(tokens * words), err);
    if (rc)
        return rc;
    for (size_t i = 0; i < rows; i++)
        token[i] = (int32_t)(((uint64_t)row + i) * UINT64_C(2654435761) % (uint64_t)vocab);
    for (size_t s = 0; s < count; s++)
        shift[s] = span[s].context;
    for (int64_t i = 0; i < tokens; i++) {
        position[i] = (int32_t)i;
        for (int64_t w = 0; w < words; w++) {
            const int64_t seen = i + 1 - w * WORD;
            mask[i * words + w] = seen >= WORD ? UINT64_MAX
                                  : seen > 0   ? (UINT64_C(1) << seen) - 1
                                               : 0;
        }
    }
    *out = (live_batch){.tokens = tokens,
                        .sequences = (int64_t)count,
                        .token = token,
                        .shift = shift,
                        .position = position,
                        .slot = position,
                        .mask = mask,
                        .words = words,
                        .used = tokens};
    return DSC_OK;
}

// The rows whose logits are computed.
static int make_outputs(live_batch *first, dsc_arena *memory, const live_span *span, size_t count,
                        dsc_error *err)
{
    int32_t *output;
    int64_t row = 0;
    int rc = dsc_arena_new(memory, &output, (size_t)live_batch_rows(first), err);
    for (size_t s = 0; s < count && !rc; s++)
        for (int32_t i = 0; i < span[s].tokens; i++, row++)
            if (!span[s].last || i == span[s].tokens - 1)
                output[first->outputs++] = (int32_t)row;
    first->output = output;
    return rc;
}

int live_spans_batch(const live_batch **out, dsc_arena *memory, live_span *span, size_t count,
                     int64_t vocab, dsc_error *err)
{
    live_batch *first = NULL, *last = NULL;
    int64_t row = 0;
    int rc = DSC_OK;
    qsort(span, count, sizeof *span, by_tokens);
    for (size_t from = 0, to; from < count && !rc; from = to) {
        live_batch *part;
        for (to = from + 1; to < count && span[to].tokens == span[from].tokens;)
            to++;
        rc = dsc_arena_new(memory, &part, 1, err);
        if (!rc)
            rc = make_part(part, memory, span + from, to - from, row, vocab, err);
        if (rc)
            break;
        row += part->tokens * part->sequences;
        if (last)
            last->next = part;
        last = part;
        first = first ? first : part;
    }
    if (!rc)
        rc = make_outputs(first, memory, span, count, err);
    *out = first;
    return rc;
}
