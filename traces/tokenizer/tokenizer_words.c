// SPDX-License-Identifier: Apache-2.0
// Encodes words, with a cache, because most words of a text occurred before. Short words of few
// tokens are in one cache, where texts are compared as two numbers; longer words are in another. A
// few words are queued before they are encoded, so that their cache entries can be prefetched.
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    WAYS = 2,        // entries of a set
    SHORT_BITS = 16, // log2 of the sets: 4 MiB
    SHORT_IDS = 5,
    LONG_BITS = 13, // 1 MiB
    LONG_TEXT = 26, // bytes
    LONG_IDS = 9,
};

// Two entries are a set and a cache line. An id has 24 bits (TOK_MAX_ID); the numbers of bytes and
// of ids are in the bits above them.
typedef struct tok_short_entry {
    uint64_t key[2], packed[2];
} tok_short_entry;

// An entry is a cache line. Words and encodings that do not fit are not cached.
typedef struct tok_long_entry {
    uint8_t length, count;
    char text[LONG_TEXT];
    int32_t id[LONG_IDS];
} tok_long_entry;

// Aligned to its size for huge pages: the entries are read in random order, and with small pages
// each access would also miss the TLB.
static void *cache_new(int bits, size_t entry, dsc_error *err)
{
    const size_t bytes = WAYS * entry << bits;
    void *cache = aligned_alloc(bytes, bytes);
    if (!cache) {
        dsc_fail(err, DSC_ENOMEM, "out of memory (%zu bytes)", bytes);
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    madvise(cache, bytes, MADV_HUGEPAGE); // advice only: a failure is harmless
#endif
    return memset(cache, 0, bytes);
}

int dsc_tok_words_init(dsc_encoder *e, dsc_error *err)
{
    e->short_cache = cache_new(SHORT_BITS, sizeof *e->short_cache, err);
    if (e->short_cache)
        e->long_cache = cache_new(LONG_BITS, sizeof *e->long_cache, err);
    return e->long_cache ? DSC_OK : DSC_ENOMEM;
}

void dsc_tok_words_fini(dsc_encoder *e)
{
    free(e->short_cache);
    free(e->long_cache);
}

static uint64_t load(const char *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

// --- the cache of short words ------------------------------------------------------------------

// The n bytes at p, padded with zeros; `room` bytes at p may be read.
static inline void make_key(uint64_t key[2], const char *p, size_t n, size_t room)
{
    static const unsigned char mask[2 * TOK_SHORT_TEXT] = {// from 16 - n on, n times 0xff
                                                           0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                           0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                           0xff, 0xff, 0xff, 0xff};
    key[0] = key[1] = 0;
    if (room < TOK_SHORT_TEXT) {
        memcpy(key, p, n);
        return;
    }
    const char *keep = (const char *)mask + TOK_SHORT_TEXT - n;
    key[0] = load(p) & load(keep);
    key[1] = load(p + 8) & load(keep + 8);
}

// Multiplication propagates differences to the upper bits. The factors are 2^64 over the golden
// ratio and xxHash64's second prime.
static inline size_t short_set(const uint64_t key[2])
{
    return (key[0] * 0x9E3779B97F4A7C15u + key[1] * 0xC2B2AE3D27D4EB4Fu) >> (64 - SHORT_BITS);
}

static uint64_t packed_length(const tok_short_entry *c) // in bytes; 0: an empty entry
{
    return c->packed[1] >> 56 & 0x1f;
}

static size_t packed_count(const tok_short_entry *c)
{
    return c->packed[1] >> 61;
}

static void pack(tok_short_entry *c, const tok_waiting *w, const int32_t *id, size_t count)
{
    uint64_t x[SHORT_IDS] = {0};
    for (size_t i = 0; i < count; i++)
        x[i] = (uint64_t)id[i];
    c->key[0] = w->key[0];
    c->key[1] = w->key[1];
    c->packed[0] = x[0] | x[1] << 24 | x[2] << 48;
    c->packed[1] = x[2] >> 16 | x[3] << 8 | x[4] << 32 | (uint64_t)w->text.length << 56 |
                   (uint64_t)count << 61;
}

static inline void unpack(const tok_short_entry *c, int32_t id[SHORT_IDS])
{
    const uint64_t x = c->packed[0], y = c->packed[1], one = 0xffffff;
    id[0] = (int32_t)(x & one);
    id[1] = (int32_t)(x >> 24 & one);
    id[2] = (int32_t)((x >> 48 | y << 16) & one);
    id[3] = (int32_t)(y >> 8 & one);
    id[4] = (int32_t)(y >> 32 & one);
}

// The entry of a short word, or NULL. The way is selected without a branch, because it is
// unpredictable.
static inline const tok_short_entry *find_short(const dsc_encoder *e, const tok_waiting *w)
{
    const tok_short_entry *c = e->short_cache + w->set * WAYS;
    uint64_t n = w->text.length, differs[WAYS];
    for (int i = 0; i < WAYS; i++)
        differs[i] =
            (c[i].key[0] ^ w->key[0]) | (c[i].key[1] ^ w->key[1]) | (packed_length(&c[i]) ^ n);
    return differs[0] && differs[1] ? NULL : c + (differs[0] != 0);
}

// Writes all SHORT_IDS ids of the entry and counts the valid ones, which is faster than a loop.
static inline int append_short(dsc_tokens *out, const tok_short_entry *c, dsc_error *err)
{
    int32_t id[SHORT_IDS];
    if (SHORT_IDS > out->capacity - out->count) {
        unpack(c, id);
        return dsc_tokens_append(out, id, packed_count(c), err);
    }
    unpack(c, out->id + out->count);
    out->count += packed_count(c);
    return DSC_OK;
}

// --- the cache of other words ------------------------------------------------------------------

// An overlapping load covers the last bytes of a length that is not a multiple of eight.
static size_t long_set(tok_text text)
{
    uint64_t h = text.length, last = 0;
    size_t n = text.length;
    for (size_t i = 0; i + 8 < n; i += 8)
        h = dsc_tok_mix(h ^ load(text.data + i));
    if (n >= 8)
        last = load(text.data + n - 8);
    else
        memcpy(&last, text.data, n);
    h = dsc_tok_mix(h ^ last);
    return (h ^ h >> 16) & (((size_t)1 << LONG_BITS) - 1);
}

static const tok_long_entry *find_long(const dsc_encoder *e, tok_text text, size_t set)
{
    const tok_long_entry *c = e->long_cache + set * WAYS;
    for (int i = 0; i < WAYS; i++, c++)
        if (c->length == text.length && memcmp(c->text, text.data, text.length) == 0)
            return c;
    return NULL;
}

static size_t long_set_of(const tok_waiting *w)
{
    return w->text.length > TOK_SHORT_TEXT ? w->set : long_set(w->text);
}

// --- words -------------------------------------------------------------------------------------

static inline void make_waiting(tok_waiting *w, tok_text text, size_t after)
{
    w->text = text;
    if (text.length <= TOK_SHORT_TEXT) {
        make_key(w->key, text.data, text.length, text.length + after);
        w->set = short_set(w->key);
    } else if (text.length <= LONG_TEXT) {
        w->set = long_set(text);
    }
}

// The address of the word's set, for prefetching.
static inline const void *entry_of(const dsc_encoder *e, const tok_waiting *w)
{
    if (w->text.length <= TOK_SHORT_TEXT)
        return &e->short_cache[w->set * WAYS];
    return w->text.length <= LONG_TEXT ? &e->long_cache[w->set * WAYS] : NULL;
}

// Caches the tokens appended after `before` as those of the word, in place of the set's older
// entry.
static void remember(dsc_encoder *e, const tok_waiting *w, size_t before)
{
    if (!e->out->id) // no word has had a token yet
        return;
    const int32_t *id = e->out->id + before;
    size_t count = e->out->count - before, n = w->text.length;
    if (n <= TOK_SHORT_TEXT && count <= SHORT_IDS) {
        tok_short_entry *c = e->short_cache + w->set * WAYS;
        c[1] = c[0];
        pack(c, w, id, count);
    } else if (n <= LONG_TEXT && count <= LONG_IDS) {
        tok_long_entry *c = e->long_cache + long_set_of(w) * WAYS;
        c[1] = c[0];
        c->length = (uint8_t)n;
        c->count = (uint8_t)count;
        memcpy(c->text, w->text.data, n);
        memcpy(c->id, id, count * sizeof *id);
    }
}

static int encode_parts(dsc_encoder *e, tok_text text, size_t *parts, dsc_error *err);

// Encodes a word that is not in the cache of short words.
static int encode_other(dsc_encoder *e, const tok_waiting *w, bool in_parts, dsc_error *err)
{
    size_t before = e->out->count, parts = 0;
    const tok_long_entry *c = NULL;
    if (w->text.length <= LONG_TEXT)
        c = find_long(e, w->text, long_set_of(w));
    if (c)
        return dsc_tokens_append(e->out, c->id, c->count, err);
    int rc = in_parts ? encode_parts(e, w->text, &parts, err)
                      : dsc_tok_word_encode(e->t, &e->word, w->text, e->out, err);
    if (!rc && parts != 1) // a single part has been cached already
        remember(e, w, before);
    return rc;
}

static inline int encode_found(dsc_encoder *e, const tok_waiting *w, bool in_parts, dsc_error *err)
{
    const tok_short_entry *c = w->text.length <= TOK_SHORT_TEXT ? find_short(e, w) : NULL;
    return c ? append_short(e->out, c, err) : encode_other(e, w, in_parts, err);
}

static bool may_join(const dsc_tokenizer *t, uint32_t left, uint32_t right)
{
    size_t bit = dsc_tok_join_bit(left, right);
    return t->may_join[bit / 64] >> bit % 64 & 1;
}

// Returns whether some merge may join the text [start, p) to the text [p, end).
static inline bool joins(const dsc_tokenizer *t, const char *start, const char *p, const char *end)
{
    const unsigned char left = (unsigned char)p[-1];
    if (left < 0x80 && end - p >= 3 && memcmp(p, "\xe2\x96\x81", 3) == 0) // TOK_MARK
        return t->mark_joins[left / 64] >> left % 64 & 1;
    const uint32_t last = dsc_tok_last(start, (size_t)(p - start));
    return may_join(t, last, dsc_tok_next(&p));
}

static int encode_part(dsc_encoder *e, const char *start, const char *end, size_t after,
                       dsc_error *err)
{
    tok_waiting w;
    make_waiting(&w, (tok_text){start, (size_t)(end - start)}, after);
    return encode_found(e, &w, false, err);
}

// Cuts the text wherever no merge may join, and encodes the parts separately.
static int encode_parts(dsc_encoder *e, tok_text text, size_t *parts, dsc_error *err)
{
    const char *p = text.data, *end = p + text.length, *start = p;
    uint32_t left = dsc_tok_next(&p);
    int rc = DSC_OK;
    while (!rc && p < end) {
        const char *here = p;
        uint32_t right = dsc_tok_next(&p);
        bool together = may_join(e->t, left, right);
        left = right;
        if (together)
            continue;
        rc = encode_part(e, start, here, (size_t)(end - here), err);
        start = here;
        ++*parts;
    }
    ++*parts;
    return rc ? rc : encode_part(e, start, end, 0, err);
}

int dsc_tok_encode_waiting(dsc_encoder *e, dsc_error *err)
{
    int rc = DSC_OK;
    bool in_parts = e->t->may_join;
    for (size_t i = 0; i < e->waits && !rc; i++)
        rc = encode_found(e, &e->waiting[i], in_parts, err);
    e->waits = 0;
    return rc;
}

static inline int add_word(dsc_encoder *e, tok_text text, size_t after, dsc_error *err)
{
    int rc = e->waits == TOK_WAITING ? dsc_tok_encode_waiting(e, err) : DSC_OK;
    tok_waiting *w = &e->waiting[e->waits++];
    make_waiting(w, text, after);
    __builtin_prefetch(entry_of(e, w));
    return rc;
}

static const char *skip_ascii(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t beyond = load(p) & 0x8080808080808080u;
        if (beyond)
            return p + __builtin_ctzll(beyond) / 8;
    }
    while (p < end && !(*p & 0x80))
        p++;
    return p;
}

#ifdef __SSE2__

enum { BLOCK = 64 };

static inline uint64_t bits_equal(__m128i x, unsigned char byte)
{
    return (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8((char)byte)));
}

// Bit i: a mark begins at byte i > 0 of the block, after an ASCII character. There is no bit after
// any other character beyond ASCII, or after a mark that follows one.
static uint64_t find_marks(const char *block)
{
    uint64_t first = 0, second = 0, third = 0, beyond = 0;
    for (int at = 0; at < BLOCK; at += (int)sizeof(__m128i)) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(block + at));
        first |= bits_equal(x, 0xe2) << at;
        second |= bits_equal(x, 0x96) << at;
        third |= bits_equal(x, 0x81) << at;
        beyond |= (uint64_t)(unsigned)_mm_movemask_epi8(x) << at;
    }
    uint64_t mark = first & second >> 1 & third >> 2;
    uint64_t doubtful = (beyond & ~(mark | mark << 1 | mark << 2)) | (mark & beyond << 1);
    uint64_t before = doubtful ? (doubtful & -doubtful) - 1 : UINT64_MAX;
    return mark & before & ~(uint64_t)1;
}

// Adds the words that end before a mark within the next BLOCK bytes; there may be none. *at moves
// past them.
static int add_marked(dsc_encoder *e, const char **at, const char *end, size_t after,
                      dsc_error *err)
{
    const char *start = *at, *block = start;
    char copy[BLOCK];
    if (end - start < BLOCK) {
        memset(copy, ' ', sizeof copy);
        memcpy(copy, start, (size_t)(end - start));
        block = copy;
    }
    int rc = DSC_OK;
    for (uint64_t marks = find_marks(block); marks && !rc; marks &= marks - 1) {
        const int i = __builtin_ctzll(marks), left = block[i - 1];
        const char *mark = *at + i;
        if (e->t->mark_joins[left / 64] >> left % 64 & 1)
            continue;
        rc = add_word(e, (tok_text){start, (size_t)(mark - start)}, after + (size_t)(end - mark),
                      err);
        start = mark;
    }
    *at = start;
    return rc;
}

#else

static int add_marked(dsc_encoder *e, const char **at, const char *end, size_t after,
                      dsc_error *err)
{
    (void)e, (void)at, (void)end, (void)after, (void)err;
    return DSC_OK;
}

#endif

int dsc_tok_encode_word(dsc_encoder *e, tok_piece word, dsc_error *err)
{
    if (!e->t->may_join)
        return add_word(e, word.text, word.after, err);
    // Cuts before characters beyond ASCII that no merge joins. In most texts that is the mark for a
    // space, so most of the looked-up texts are single words.
    const char *start = word.text.data, *end = start + word.text.length;
    int rc = DSC_OK;
    while (!rc && start < end) {
        const char *p = start;
        rc = add_marked(e, &p, end, word.after, err);
        if (rc || p > start) {
            start = p;
            continue;
        }
        do {
            dsc_tok_next(&p);
            p = skip_ascii(p, end);
        } while (p < end && joins(e->t, start, p, end));
        rc = add_word(e, (tok_text){start, (size_t)(p - start)}, word.after + (size_t)(end - p),
                      err);
        start = p;
    }
    return rc;
}

int dsc_tok_encode_words(dsc_encoder *e, tok_piece piece, size_t from, const size_t *end,
                         size_t count, dsc_error *err)
{
    const size_t readable = piece.text.length + piece.after;
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; from = end[i++]) {
        tok_piece word = {.text = {piece.text.data + from, end[i] - from},
                          .after = readable - end[i]};
        rc = e->t->may_join ? dsc_tok_encode_word(e, word, err)
                            : add_word(e, word.text, word.after, err);
    }
    return rc;
}
