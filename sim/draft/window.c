// SPDX-License-Identifier: Apache-2.0
// The window of lookahead decoding: its levels, their nodes in a draft, and the step to the next
// position (sim/draft/window.h).
#include "sim/draft/window.h"

#include <string.h>

int dsc_window_begin(dsc_window *w, int64_t width, int64_t level, const dsc_drafter_input *in,
                     dsc_error *err)
{
    dsc_token_view prompt = in->request->prompt;
    *w = (dsc_window){.level = level, .diagonals = width + level - 2};
    size_t most = (size_t)w->diagonals;
    int rc = dsc_arena_new(in->arena, &w->first, most, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &w->diagonal, most * (size_t)(level - 1), err);
    for (int64_t i = 0; i + 1 < w->diagonals && !rc; i++) {
        double u = dsc_draft_uniform(in, 0, (uint32_t)i);
        w->first[i] = prompt.count ? prompt.id[(int64_t)(u * (double)prompt.count)] : 0;
    }
    return rc;
}

bool dsc_window_full(const dsc_window *w)
{
    return w->filled == w->level - 2;
}

static int32_t *diagonal(const dsc_window *w, int64_t i)
{
    return w->diagonal + i * (w->level - 1);
}

// The node that diagonal i hangs from: a token of level 0, or the tip.
static int32_t parent_of(const dsc_window *w, int64_t i)
{
    return i ? w->base + (int32_t)i - 1 : w->tip;
}

int dsc_window_append(dsc_window *w, int32_t tip, dsc_draft *draft, dsc_error *err)
{
    w->tip = tip;
    w->base = (int32_t)draft->count;
    int rc = dsc_draft_append_scored(draft, tip, w->first, (size_t)w->diagonals - 1, err);
    for (int64_t i = 0; i < w->diagonals && w->filled && !rc; i++)
        rc =
            dsc_draft_append_scored(draft, parent_of(w, i), diagonal(w, i), (size_t)w->filled, err);
    return rc;
}

// Reads the argmax after each diagonal, which is the new level.
static int read_level(dsc_window *w, dsc_model *model, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t i = 0; i < w->diagonals && !rc; i++) {
        int64_t last = w->base + (w->diagonals - 1) + (i + 1) * w->filled - 1;
        dsc_next next = {0};
        rc = model->type->next(model, w->filled ? (int32_t)last : parent_of(w, i), &next, err);
        diagonal(w, i)[w->filled] = next.token;
    }
    return rc;
}

// Drops diagonal 0, whose position is committed; the others move up and have one level more.
static void fill(dsc_window *w)
{
    w->diagonals--;
    w->filled++;
    memmove(w->first, w->first + 1, (size_t)(w->diagonals - 1) * sizeof *w->first);
    memmove(w->diagonal, diagonal(w, 1),
            (size_t)(w->diagonals * (w->level - 1)) * sizeof *w->diagonal);
}

static void shift(dsc_window *w)
{
    for (int64_t i = 0; i < w->diagonals; i++) {
        int32_t *d = diagonal(w, i);
        if (i)
            w->first[i - 1] = d[0];
        memmove(d, d + 1, (size_t)w->filled * sizeof *d);
    }
}

int dsc_window_step(dsc_window *w, dsc_model *model, int32_t current, dsc_phrase_pool *pool,
                    dsc_error *err)
{
    int rc = read_level(w, model, err);
    if (rc)
        return rc;
    if (!dsc_window_full(w)) {
        fill(w);
        return DSC_OK;
    }
    for (int64_t i = 0; i < w->diagonals && !rc; i++)
        rc = dsc_phrase_pool_add(pool, i ? w->first[i - 1] : current, diagonal(w, i), err);
    shift(w);
    return rc;
}

int64_t dsc_window_nodes(int64_t width, int64_t level)
{
    int64_t most = 0;
    for (int64_t filled = 0; filled <= level - 2; filled++) {
        int64_t nodes = (width + level - 2 - filled) * (filled + 1) - 1;
        most = nodes > most ? nodes : most;
    }
    return most;
}
