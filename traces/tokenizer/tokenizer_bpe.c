// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding of one word: repeatedly merges the pair of neighbors with the lowest rank, the
// leftmost of equals (Sennrich et al. 2016, arXiv:1508.07909). Short words search for that pair
// each time; long words use a heap, O(n log n).
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 24 }; // symbols

static int reserve(tok_word *w, size_t need, dsc_error *err)
{
    if (need <= w->capacity)
        return DSC_OK;
    if (need >= INT32_MAX)
        return dsc_fail(err, DSC_EINPUT, "a word of %zu symbols is too long to encode", need);
    size_t n = need + need / 4 + 64;
    dsc_tok_word_fini(w);
    int rc = dsc_new(&w->id, n, err);
    if (!rc)
        rc = dsc_new(&w->rank, 3 * n, err);
    if (rc)
        return rc;
    w->next = w->rank + n;
    w->prev = w->next + n;
    rc = dsc_new(&w->heap, 2 * n, err);
    w->capacity = rc ? 0 : n;
    return rc;
}

void dsc_tok_word_fini(tok_word *w)
{
    free(w->id);
    free(w->rank);
    free(w->heap);
    *w = (tok_word){0};
}

static int32_t lookup(const dsc_tokenizer *t, const char *c, size_t length)
{
    const char *p = c;
    uint32_t code = dsc_tok_next(&p);
    return code < TOK_BMP ? t->char_token[code] : dsc_tok_map_get(&t->vocab, c, length);
}

// All bytes of an unknown character as byte tokens; false when one of them has none.
static bool fall_back(const dsc_tokenizer *t, tok_word *w, const char *c, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (t->byte_token[(unsigned char)c[i]] == TOK_NONE)
            return false;
    for (size_t i = 0; i < length; i++)
        w->id[w->count++] = t->byte_token[(unsigned char)c[i]];
    return true;
}

// Appends the symbols of one character. `*pending`: an unknown token that is not written yet,
// because the next unknown character may belong to it. As in the HF library, it is written before
// the next known character, after any byte tokens in between.
static int add_char(const dsc_tokenizer *t, tok_word *w, const char *c, size_t length,
                    bool *pending, dsc_error *err)
{
    int32_t id = lookup(t, c, length);
    if (id != TOK_NONE) {
        if (*pending)
            w->id[w->count++] = t->unk;
        *pending = false;
        w->id[w->count++] = id;
        return DSC_OK;
    }
    if (t->byte_fallback && fall_back(t, w, c, length))
        return DSC_OK;
    if (!t->has_unk)
        return DSC_OK; // the HF library drops such a character
    if (t->unk == TOK_NONE)
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: the text has an unknown character, and unk_token is not in the vocabulary",
            t->name);
    if (*pending && !t->fuse_unk)
        w->id[w->count++] = t->unk;
    *pending = true;
    return DSC_OK;
}

static int symbols(const dsc_tokenizer *t, tok_word *w, tok_text word, dsc_error *err)
{
    bool pending = false;
    int rc = DSC_OK;
    w->count = 0;
    for (size_t i = 0, n; !rc && i < word.length; i += n) {
        char spelled[4];
        const char *c = word.data + i, *p = c;
        if (t->raw_bytes) {
            int32_t id = t->raw_token[(unsigned char)*c];
            n = 1;
            if (id != TOK_NONE && !pending) {
                w->id[w->count++] = id;
                continue;
            }
            size_t length = dsc_tok_utf8_put(spelled, dsc_tok_byte_char((uint8_t)*c));
            rc = add_char(t, w, spelled, length, &pending, err);
        } else {
            dsc_tok_next(&p);
            n = (size_t)(p - c);
            rc = add_char(t, w, c, n, &pending, err);
        }
    }
    if (pending)
        w->id[w->count++] = t->unk;
    return rc;
}

static void merge_short(const tok_merges *m, tok_word *w)
{
    size_t n = w->count;
    if (n < 2)
        return;
    for (size_t i = 0; i + 1 < n; i++)
        w->rank[i] = dsc_tok_merges_get(m, w->id[i], w->id[i + 1])->rank;
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (w->rank[i] < w->rank[best])
                best = i;
        if (n < 2 || w->rank[best] == UINT32_MAX)
            break;
        w->id[best] = dsc_tok_merges_get(m, w->id[best], w->id[best + 1])->id;
        n--;
        memmove(w->id + best + 1, w->id + best + 2, (n - best - 1) * sizeof *w->id);
        if (best + 1 < n) {
            memmove(w->rank + best + 1, w->rank + best + 2, (n - best - 2) * sizeof *w->rank);
            w->rank[best] = dsc_tok_merges_get(m, w->id[best], w->id[best + 1])->rank;
        }
        if (best > 0)
            w->rank[best - 1] = dsc_tok_merges_get(m, w->id[best - 1], w->id[best])->rank;
    }
    w->count = n;
}

static void sift_down(uint64_t *heap, size_t count, size_t i)
{
    uint64_t x = heap[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= x)
            break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

static void push(uint64_t *heap, size_t *count, uint64_t x)
{
    size_t i = (*count)++;
    for (; i && heap[(i - 1) / 2] > x; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

// Every merge pops an entry, pushes at most two and removes a symbol, so 2 n entries are enough. An
// entry is stale when the pair at its position now has another rank (or none: UINT32_MAX).
static void merge_long(const tok_merges *m, tok_word *w)
{
    const uint32_t end = (uint32_t)w->count;
    size_t count = 0;
    for (uint32_t i = 0; i < end; i++) {
        w->next[i] = i + 1;
        w->prev[i] = i - 1; // of the first: UINT32_MAX
        w->rank[i] = i + 1 < end ? dsc_tok_merges_get(m, w->id[i], w->id[i + 1])->rank : UINT32_MAX;
        if (w->rank[i] != UINT32_MAX)
            w->heap[count++] = (uint64_t)w->rank[i] << 32 | i;
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(w->heap, count, i);
    while (count) {
        uint64_t top = w->heap[0];
        w->heap[0] = w->heap[--count];
        if (count)
            sift_down(w->heap, count, 0);
        uint32_t at = (uint32_t)top;
        if (w->rank[at] != top >> 32)
            continue;
        uint32_t right = w->next[at], after = w->next[right], before = w->prev[at];
        w->id[at] = dsc_tok_merges_get(m, w->id[at], w->id[right])->id;
        w->next[at] = after;
        w->rank[right] = w->rank[at] = UINT32_MAX;
        if (after < end) {
            w->prev[after] = at;
            w->rank[at] = dsc_tok_merges_get(m, w->id[at], w->id[after])->rank;
            if (w->rank[at] != UINT32_MAX)
                push(w->heap, &count, (uint64_t)w->rank[at] << 32 | at);
        }
        if (before != UINT32_MAX) {
            w->rank[before] = dsc_tok_merges_get(m, w->id[before], w->id[at])->rank;
            if (w->rank[before] != UINT32_MAX)
                push(w->heap, &count, (uint64_t)w->rank[before] << 32 | before);
        }
    }
    size_t n = 0;
    for (uint32_t i = 0; i < end; i = w->next[i])
        w->id[n++] = w->id[i];
    w->count = n;
}

int dsc_tok_word_encode(const dsc_tokenizer *t, tok_word *w, tok_text word, dsc_tokens *out,
                        dsc_error *err)
{
    if (t->ignore_merges) {
        int32_t id =
            dsc_tok_map_get(t->raw_bytes ? &t->raw_vocab : &t->vocab, word.data, word.length);
        if (id != TOK_NONE)
            return dsc_tokens_append(out, &id, 1, err);
    }
    // A byte becomes at most one symbol, or two when its spelling has two bytes that fall back.
    int rc = reserve(w, t->raw_bytes && t->byte_fallback ? 2 * word.length : word.length, err);
    if (!rc)
        rc = symbols(t, w, word, err);
    if (rc)
        return rc;
    if (w->count <= SHORT)
        merge_short(&t->merges, w);
    else
        merge_long(&t->merges, w);
    return dsc_tokens_append(out, w->id, w->count, err);
}
