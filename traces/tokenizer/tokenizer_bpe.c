// SPDX-License-Identifier: Apache-2.0
// Byte pair encoding of one word: repeatedly merges the pair of neighbors with the lowest rank, the
// leftmost of equals (Sennrich et al. 2016, arXiv:1508.07909). Up to 64 symbols are searched for
// that pair each time. Longer words are encoded in overlapping windows, in time linear in the word.
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 64, // symbols; bits of a mask
    LANES = 16,  // pairs that are compared at once
    NO_PAIR = INT32_MAX,
};

static int reserve(tok_word *w, size_t need, dsc_error *err)
{
    if (need <= w->capacity)
        return DSC_OK;
    if (need >= INT32_MAX)
        return dsc_fail(err, DSC_EINPUT, "a word of %zu symbols is too long to encode", need);
    return dsc_resize(&w->id, &w->capacity, need, err);
}

void dsc_tok_word_fini(tok_word *w)
{
    free(w->id);
    for (int i = 0; i < TOK_WINDOWS; i++) {
        free(w->window[i].id);
        free(w->window[i].start);
    }
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

// --- up to WINDOW symbols ----------------------------------------------------------------------

typedef int32_t quad __attribute__((vector_size(16)));

static inline quad lower(quad a, quad b)
{
    quad less = a < b;
    return (a & less) | (b & ~less);
}

static inline quad four(const int32_t *key)
{
    quad x;
    memcpy(&x, key, sizeof x);
    return x;
}

// The smallest of n keys; n is a multiple of LANES.
static inline int32_t smallest(const int32_t *key, size_t n)
{
    quad a = four(key), b = four(key + 4), c = four(key + 8), d = four(key + 12);
    for (size_t i = LANES; i < n; i += LANES) {
        a = lower(a, four(key + i));
        b = lower(b, four(key + i + 4));
        c = lower(c, four(key + i + 8));
        d = lower(d, four(key + i + 12));
    }
    a = lower(lower(a, b), lower(c, d));
    int32_t low = a[0] < a[1] ? a[0] : a[1], high = a[2] < a[3] ? a[2] : a[3];
    return low < high ? low : high;
}

typedef struct tok_pairs {  // of neighbors, by the position of the left one
    int32_t key[WINDOW];    // rank * WINDOW + position, or NO_PAIR
    int32_t merged[WINDOW]; // the token that the pair becomes
} tok_pairs;

// Sets the key of the pair at `at`; returns the smaller of that key and `best`.
static inline int32_t set_pair(tok_pairs *pairs, size_t at, uint32_t merge_rank, int32_t merged,
                               int32_t best)
{
    const int32_t rank = (int32_t)merge_rank; // -1: none
    const int32_t key = rank < 0 ? NO_PAIR : rank * WINDOW + (int32_t)at;
    pairs->key[at] = key;
    pairs->merged[at] = merged;
    return key < best ? key : best;
}

static inline int32_t find_pair(tok_pairs *pairs, const tok_merges *m, size_t at, int32_t left,
                                int32_t right, int32_t best)
{
    const tok_merge *merge = dsc_tok_merges_get(m, left, right);
    return set_pair(pairs, at, merge->rank, merge->id, best);
}

// The same for the symbols of a text: a direct table has most of their pairs.
static inline int32_t find_first_pair(tok_pairs *pairs, const tok_merges *m, size_t at,
                                      int32_t left, int32_t right, int32_t best)
{
    if ((left | right) >= TOK_NEAR)
        return find_pair(pairs, m, at, left, right, best);
    const tok_near *merge = &m->near[left * TOK_NEAR + right];
    return set_pair(pairs, at, merge->rank, merge->id, best);
}

// A window under way.
typedef struct tok_few {
    tok_pairs pairs;
    int32_t *id;
    uint64_t begins; // bit i is set when a token begins at i
    int32_t best;    // the smallest key
    size_t searched; // keys; a multiple of LANES
} tok_few;

static inline void begin_few(tok_few *x, const tok_merges *m, int32_t *id, size_t n)
{
    x->id = id;
    x->begins = UINT64_MAX >> (WINDOW - n);
    x->searched = (n + LANES - 1) / LANES * LANES;
    x->best = NO_PAIR;
    for (size_t i = 0; i + 1 < n; i++)
        x->best = find_first_pair(&x->pairs, m, i, id[i], id[i + 1], x->best);
    for (size_t i = n - 1; i < x->searched; i++)
        x->pairs.key[i] = NO_PAIR;
}

// Merges the best pair in place, without moving. The pairs that stay are searched before the new
// ones are looked up, so that a processor can do both at a time.
static inline void merge_best(tok_few *x, const tok_merges *m)
{
    const size_t at = (size_t)x->best % WINDOW;
    uint64_t after = x->begins & ~(uint64_t)1 << at;
    const uint64_t before = x->begins & (((uint64_t)1 << at) - 1);
    const size_t left = before ? (size_t)(WINDOW - 1 - __builtin_clzll(before)) : at;
    int32_t *id = x->id, *key = x->pairs.key;
    id[at] = x->pairs.merged[at];
    x->begins ^= after & -after; // the symbol that was merged into this one
    key[__builtin_ctzll(after)] = key[at] = key[left] = NO_PAIR;
    after &= after - 1;
    x->best = smallest(key, x->searched);
    if (after)
        x->best = find_pair(&x->pairs, m, at, id[at], id[__builtin_ctzll(after)], x->best);
    if (before)
        x->best = find_pair(&x->pairs, m, left, id[left], id[at], x->best);
}

// Merges id[0, n); returns where tokens begin.
static uint64_t merge_few(const tok_merges *m, int32_t *id, size_t n)
{
    tok_few x;
    begin_few(&x, m, id, n);
    while (x.best != NO_PAIR)
        merge_best(&x, m);
    return x.begins;
}

// Two windows at a time: each merge waits for the one before it in its window, but not for those of
// the other window.
static void merge_two(const tok_merges *m, int32_t *const id[2], const size_t n[2],
                      uint64_t begins[2])
{
    tok_few x, y;
    begin_few(&x, m, id[0], n[0]);
    begin_few(&y, m, id[1], n[1]);
    while (x.best != NO_PAIR && y.best != NO_PAIR) {
        merge_best(&x, m);
        merge_best(&y, m);
    }
    while (x.best != NO_PAIR)
        merge_best(&x, m);
    while (y.best != NO_PAIR)
        merge_best(&y, m);
    begins[0] = x.begins;
    begins[1] = y.begins;
}

// --- any number of symbols ---------------------------------------------------------------------

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

// Makes room for `size` symbols in each window and in the arrays of the heap.
static int reserve_window(tok_word *w, size_t size, dsc_error *err)
{
    if (size <= w->size)
        return DSC_OK;
    w->size = 0;
    int rc = DSC_OK;
    for (int i = 0; i < TOK_WINDOWS && !rc; i++) {
        free(w->window[i].id);
        free(w->window[i].start);
        w->window[i] = (tok_window){0};
        rc = dsc_new(&w->window[i].id, size, err);
        if (!rc)
            rc = dsc_new(&w->window[i].start, size + 1, err);
    }
    free(w->rank);
    free(w->heap);
    w->rank = NULL;
    w->heap = NULL;
    if (!rc)
        rc = dsc_new(&w->rank, 3 * size, err);
    if (!rc)
        rc = dsc_new(&w->heap, 2 * size, err);
    w->size = rc ? 0 : size;
    return rc;
}

// Every merge pops an entry, pushes at most two and removes a symbol, so 2 n entries are enough. An
// entry is stale when the pair at its position now has another rank (or none: UINT32_MAX). Symbols
// are merged in place; next[i] is where the symbol after that at i begins.
static const uint32_t *merge_many(const tok_merges *m, tok_word *w, int32_t *id, uint32_t end)
{
    uint32_t *rank = w->rank, *next = rank + end, *prev = next + end;
    uint64_t *heap = w->heap;
    size_t count = 0;
    for (uint32_t i = 0; i < end; i++) {
        next[i] = i + 1;
        prev[i] = i - 1; // of the first: UINT32_MAX
        rank[i] = i + 1 < end ? dsc_tok_merges_get(m, id[i], id[i + 1])->rank : UINT32_MAX;
        if (rank[i] != UINT32_MAX)
            heap[count++] = (uint64_t)rank[i] << 32 | i;
    }
    for (size_t i = count / 2; i-- > 0;)
        sift_down(heap, count, i);
    while (count) {
        uint64_t top = heap[0];
        heap[0] = heap[--count];
        if (count)
            sift_down(heap, count, 0);
        uint32_t at = (uint32_t)top;
        if (rank[at] != top >> 32)
            continue;
        uint32_t right = next[at], after = next[right], before = prev[at];
        id[at] = dsc_tok_merges_get(m, id[at], id[right])->id;
        next[at] = after;
        rank[right] = rank[at] = UINT32_MAX;
        if (after < end) {
            prev[after] = at;
            rank[at] = dsc_tok_merges_get(m, id[at], id[after])->rank;
            if (rank[at] != UINT32_MAX)
                push(heap, &count, (uint64_t)rank[at] << 32 | at);
        }
        if (before != UINT32_MAX) {
            rank[before] = dsc_tok_merges_get(m, id[before], id[at])->rank;
            if (rank[before] != UINT32_MAX)
                push(heap, &count, (uint64_t)rank[before] << 32 | before);
        }
    }
    return next;
}

// The tokens of n <= WINDOW symbols that were merged in place.
static void take_few(tok_window *o, size_t from, size_t n, uint64_t begins)
{
    for (o->count = 0; begins; begins &= begins - 1) {
        const int i = __builtin_ctzll(begins);
        o->start[o->count] = (uint32_t)from + (uint32_t)i;
        o->id[o->count++] = o->id[i];
    }
    o->start[o->count] = (uint32_t)(from + n);
}

// Encodes at most `size` symbols from `from` on, as if they were a word.
static void encode_window(const tok_merges *m, tok_word *w, tok_window *o, size_t from, size_t size)
{
    const size_t n = w->count - from < size ? w->count - from : size;
    memcpy(o->id, w->id + from, n * sizeof *o->id);
    if (size <= WINDOW) {
        take_few(o, from, n, merge_few(m, o->id, n));
        return;
    }
    const uint32_t *next = merge_many(m, w, o->id, (uint32_t)n);
    o->count = 0;
    for (uint32_t i = 0; i < n; i = next[i]) {
        o->start[o->count] = (uint32_t)from + i;
        o->id[o->count++] = o->id[i];
    }
    o->start[o->count] = (uint32_t)(from + n);
}

// Two windows of at most WINDOW symbols.
static void encode_two(const tok_merges *m, tok_word *w, tok_window *const o[2],
                       const size_t from[2])
{
    size_t n[2];
    uint64_t begins[2];
    for (int i = 0; i < 2; i++) {
        n[i] = w->count - from[i] < WINDOW ? w->count - from[i] : WINDOW;
        memcpy(o[i]->id, w->id + from[i], n[i] * sizeof *o[i]->id);
    }
    merge_two(m, (int32_t *const[]){o[0]->id, o[1]->id}, n, begins);
    for (int i = 0; i < 2; i++)
        take_few(o[i], from[i], n[i], begins[i]);
}

// Finds a token that two overlapping windows share: the *i-th of `a` and the *j-th of `b`.
static bool share_token(const tok_window *a, const tok_window *b, size_t *i, size_t *j)
{
    for (*i = a->count; *i && a->start[*i - 1] >= b->start[0]; --*i)
        ;
    for (*j = 0; *i < a->count && *j < b->count;) {
        const uint32_t at = a->start[*i], other = b->start[*j];
        if (at == other && a->start[*i + 1] == b->start[*j + 1])
            return true;
        *i += at <= other;
        *j += other <= at;
    }
    return false;
}

// Where the first token of `a` begins that is among its last `overlap` symbols, or these symbols. A
// window from there is likely to share it.
static size_t restart(const tok_window *a, size_t overlap)
{
    const uint32_t low = a->start[a->count] - (uint32_t)overlap;
    size_t i = a->count;
    while (a->start[i - 1] >= low) // the first token begins before `low`
        i--;
    return i < a->count ? a->start[i] : low;
}

// Encodes a word in windows of `size` symbols, of which each overlaps the one before. Two of them
// are joined at a token that both have. That is exact. Call a cut between two neighboring stretches
// of a word sound when encoding the two as one word merges nothing across the cut. If all cuts of a
// word are sound, none is crossed when the word is encoded: up to a first crossing, two stretches
// are merged as they would be by themselves, where nothing crosses. Within a window all tokens are
// such stretches, wherever it begins, and a token that two windows share makes one chain of their
// tokens. *joined is false, and what was appended means nothing, when two windows share none;
// larger ones, then, do.
static int encode_windows(const tok_merges *m, tok_word *w, size_t size, dsc_tokens *out,
                          bool *joined, dsc_error *err)
{
    tok_window *a = &w->window[0], *next[2] = {&w->window[1], &w->window[2]};
    const size_t overlap = size / 5;
    size_t first = 0, i, j; // `first`: the first token of `a` that was not appended
    bool ahead = false;     // next[0] follows `a`
    int rc = DSC_OK;
    *joined = true;
    encode_window(m, w, a, 0, size);
    while (!rc && a->start[a->count] < w->count) {
        const size_t from = restart(a, overlap);
        const bool two = size == WINDOW && from + size < w->count;
        if (!ahead && two)
            encode_two(m, w, next, (size_t[]){from, from + size - overlap});
        else if (!ahead)
            encode_window(m, w, next[0], from, size);
        *joined = share_token(a, next[0], &i, &j);
        const bool again = !*joined;
        if (again) {
            encode_window(m, w, next[0], restart(a, size / 2), size);
            *joined = share_token(a, next[0], &i, &j);
        }
        if (!*joined)
            return DSC_OK;
        rc = dsc_tokens_append(out, a->id + first, i - first, err);
        first = j;
        tok_window *done = a;
        a = next[0];
        next[0] = next[1];
        next[1] = done;
        ahead = !ahead && two && !again;
    }
    return rc ? rc : dsc_tokens_append(out, a->id + first, a->count - first, err);
}

static int encode_symbols(const tok_merges *m, tok_word *w, dsc_tokens *out, dsc_error *err)
{
    enum { GROWTH = 8 };
    const size_t before = out->count;
    bool joined = false;
    int rc = DSC_OK;
    for (size_t size = WINDOW; !rc && !joined; size *= GROWTH) {
        out->count = before;
        rc = reserve_window(w, size < w->count || size == WINDOW ? size : w->count, err);
        if (!rc)
            rc = encode_windows(m, w, size, out, &joined, err);
    }
    return rc;
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
    if (rc || w->count == 0)
        return rc;
    return encode_symbols(&t->merges, w, out, err);
}
