// SPDX-License-Identifier: Apache-2.0
// Concatenated references with hash chains over their tokens.
#include "sim/draft/match_index.h"

#include <string.h>

static uint32_t bucket(const dsc_match_index *x, int32_t token)
{
    return ((uint32_t)token * 2654435769u) >> 7 & x->mask;
}

static bool wanted(int which, uint8_t kind)
{
    return which & (kind == DSC_REFERENCE_TURN ? DSC_INDEX_TURNS : DSC_INDEX_DOCUMENTS);
}

static void append(dsc_match_index *x, dsc_token_view tokens)
{
    int64_t first = x->count, sentinel = first + tokens.count;
    if (tokens.count)
        memcpy(x->text + first, tokens.id, (size_t)tokens.count * sizeof *x->text);
    for (int64_t p = first; p <= sentinel; p++)
        x->end[p] = (int32_t)sentinel;
    x->text[sentinel] = -1;
    x->count = sentinel + 1;
}

static int allocate(dsc_match_index *x, size_t positions, dsc_arena *arena, dsc_error *err)
{
    size_t buckets = 64;
    while (buckets < 2 * positions)
        buckets *= 2;
    x->mask = (uint32_t)(buckets - 1);
    struct {
        int32_t **array;
        size_t count;
    } want[] = {
        {&x->text, positions}, {&x->end, positions}, {&x->next, positions}, {&x->head, buckets}};
    int rc = DSC_OK;
    for (size_t i = 0; i < sizeof want / sizeof *want && !rc; i++)
        rc = dsc_arena_new(arena, want[i].array, want[i].count, err);
    if (!rc)
        memset(x->head, 0xff, buckets * sizeof *x->head);
    return rc;
}

int dsc_match_index_build(dsc_match_index *x, const dsc_request *q, int which, dsc_arena *arena,
                          dsc_error *err)
{
    int64_t total = 1;
    for (int64_t r = 0; r < q->references; r++)
        if (wanted(which, q->reference_kind[r]))
            total += dsc_request_reference(q, r).count + 1;
    if (which & DSC_INDEX_PROMPT)
        total += q->prompt.count + 1;
    if (total > INT32_MAX / 4)
        return dsc_fail(err, DSC_EINPUT, "references of one request have more than %d tokens",
                        INT32_MAX / 4);
    int rc = allocate(x, (size_t)total, arena, err);
    if (rc)
        return rc;
    x->text[0] = -1;
    x->end[0] = 0;
    x->count = 1;
    for (int64_t r = 0; r < q->references; r++)
        if (wanted(which, q->reference_kind[r]))
            append(x, dsc_request_reference(q, r));
    if (which & DSC_INDEX_PROMPT)
        append(x, q->prompt);
    // Backwards, so that chains are in ascending order.
    for (int64_t p = x->count - 1; p >= 0; p--)
        if (x->text[p] >= 0) {
            int32_t *head = &x->head[bucket(x, x->text[p])];
            x->next[p] = *head;
            *head = (int32_t)p;
        }
    return DSC_OK;
}

// Number of tokens, up to `most`, that agree before and at text position p with the end of the
// output.
static int32_t agreement(const int32_t *text, int32_t p, const int32_t *output, int64_t length,
                         int32_t most)
{
    int32_t n = 0;
    while (n < most && text[p - n] == output[length - 1 - n])
        n++;
    return n;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// Selects one of several longest matches: counts them, then finds the selected one.
static void pick_tie(const dsc_match_index *x, const int32_t *output, int64_t length, double tie,
                     dsc_match *m)
{
    int32_t first = x->head[bucket(x, output[length - 1])];
    int64_t ties = 0;
    for (int32_t p = first; p >= 0; p = x->next[p])
        ties += agreement(x->text, p, output, length, m->length) == m->length;
    int64_t chosen = (int64_t)(tie * (double)ties);
    for (int32_t p = first; p >= 0; p = x->next[p])
        if (agreement(x->text, p, output, length, m->length) == m->length && chosen-- == 0) {
            m->at = p + 1;
            return;
        }
}

void dsc_match_find(const dsc_match_index *x, const int32_t *output, int64_t length,
                    const int32_t *cap, size_t caps, const double *tie, dsc_match *out)
{
    for (size_t c = 0; c < caps; c++)
        out[c] = (dsc_match){0, 0};
    if (length == 0)
        return;
    int32_t most = length < cap[caps - 1] ? (int32_t)length : cap[caps - 1], best = 0;
    size_t open = 0; // the caps before this one have their full length
    for (int32_t p = x->head[bucket(x, output[length - 1])]; p >= 0; p = x->next[p]) {
        // Only an occurrence that agrees further than the best one matters: compare the token that
        // it must add first.
        if (p < best || x->text[p - best] != output[length - 1 - best])
            continue;
        int32_t n = agreement(x->text, p, output, length, most);
        if (n <= best)
            continue;
        best = n;
        for (size_t c = open; c < caps; c++)
            out[c] = (dsc_match){least(best, cap[c]), p + 1};
        while (open < caps && cap[open] <= best)
            open++;
        if (best == most)
            break;
    }
    for (size_t c = 0; c < caps && tie; c++)
        if (out[c].length)
            pick_tie(x, output, length, *tie, &out[c]);
}
