// SPDX-License-Identifier: Apache-2.0
// A suffix index of the outputs of earlier requests, with eviction of the oldest. As in
// ArcticInference, the output of the current request is part of it and its prompt is not.
#include "sim/draft/suffix_cache.h"

#include <string.h>

enum { FORGET = 1024 }; // tokens of evicted requests at least, before their memory is reused

static int find_cache(dsc_suffix_cache **out, dsc_history *history, int64_t most, int32_t depth,
                      dsc_error *err)
{
    dsc_suffix_cache *c = *out = history->state;
    if (c)
        return DSC_OK;
    int rc = dsc_arena_new(&history->arena, &c, 1, err);
    if (rc)
        return rc;
    *c = (dsc_suffix_cache){.most = most};
    history->state = *out = c;
    return dsc_suffix_begin(&c->index, depth, &history->arena, err);
}

static int evict_oldest(dsc_suffix_cache *c, dsc_error *err)
{
    const int64_t start = c->start[c->oldest], end = c->start[c->oldest + 1];
    c->oldest++;
    return dsc_suffix_remove(&c->index, c->token + start, end - start, err);
}

// Forgets evicted requests when they have more tokens than those in the cache, which takes constant
// time per token of the trace.
static int forget_evicted(dsc_suffix_cache *c, dsc_error *err)
{
    const size_t first = (size_t)c->start[c->oldest], kept = c->tokens - first;
    if (first < FORGET || first < kept)
        return DSC_OK;
    c->requests -= c->oldest;
    for (size_t i = 0; i < c->requests; i++)
        c->start[i] = c->start[c->oldest + i] - (int64_t)first;
    memmove(c->token, c->token + first, kept * sizeof *c->token);
    c->tokens = kept;
    c->oldest = 0;
    return dsc_suffix_compact(&c->index, c->token, c->start, c->requests - 1, err);
}

int dsc_suffix_cache_begin(dsc_suffix_cache **out, dsc_history *history, int64_t most,
                           int32_t depth, dsc_error *err)
{
    int rc = find_cache(out, history, most, depth, err);
    dsc_suffix_cache *c = *out;
    if (!rc)
        rc = dsc_suffix_cache_append(c, c->last, (int64_t)c->last_count, err);
    if (!rc)
        rc = dsc_arena_resize(c->index.arena, &c->start, &c->start_capacity, c->requests + 1, err);
    if (rc)
        return rc;
    c->start[c->requests++] = (int64_t)c->tokens;
    while ((int64_t)(c->requests - c->oldest) > c->most && !rc)
        rc = evict_oldest(c, err);
    dsc_suffix_next_text(&c->index);
    return rc ? rc : forget_evicted(c, err);
}

int dsc_suffix_cache_append(dsc_suffix_cache *c, const int32_t *token, int64_t n, dsc_error *err)
{
    c->last_count = 0;
    if (n < 1)
        return DSC_OK;
    int rc =
        dsc_arena_resize(c->index.arena, &c->token, &c->token_capacity, c->tokens + (size_t)n, err);
    if (rc)
        return rc;
    memcpy(c->token + c->tokens, token, (size_t)n * sizeof *token);
    c->tokens += (size_t)n;
    return dsc_suffix_append(&c->index, token, n, err);
}

int dsc_suffix_cache_keep(dsc_suffix_cache *c, const int32_t *token, size_t n, dsc_error *err)
{
    int rc = dsc_arena_resize(c->index.arena, &c->last, &c->last_capacity, n, err);
    if (rc)
        return rc;
    if (n)
        memcpy(c->last, token, n * sizeof *token);
    c->last_count = n;
    return DSC_OK;
}

int32_t dsc_suffix_cache_find(const dsc_suffix_cache *c, dsc_token_view prompt,
                              const int32_t *output, int64_t length, int32_t *recent,
                              int32_t *match)
{
    const int64_t text = prompt.count + length, depth = c->index.depth;
    const int64_t n = (text < depth ? text : depth) - 1; // the program leaves the first token out
    if (c->index.length >= n)
        return dsc_suffix_last(&c->index, (int32_t)n, match);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = text - n + i;
        recent[i] = at < prompt.count ? prompt.id[at] : output[at - prompt.count];
    }
    return dsc_suffix_find(&c->index, recent, n, match);
}
