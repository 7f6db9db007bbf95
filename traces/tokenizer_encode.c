// SPDX-License-Identifier: Apache-2.0
// Text to tokens: added tokens, normalizers, pre-tokenizers, words, template.
#include "traces/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

// On the boundaries of cache lines, each of which holds an entry.
static int cache_new(tok_cache_entry **out, dsc_error *err)
{
    const size_t bytes = TOK_CACHE_WAYS * sizeof **out << TOK_CACHE_BITS;
    *out = aligned_alloc(sizeof **out, bytes);
    if (!*out)
        return dsc_fail(err, DSC_ENOMEM, "out of memory (%zu bytes)", bytes);
    memset(*out, 0, bytes);
    return DSC_OK;
}

int dsc_encoder_new(dsc_encoder **out, const dsc_tokenizer *t, dsc_error *err)
{
    void *p;
    *out = NULL;
    int rc = dsc_alloc(&p, 1, sizeof(dsc_encoder), err);
    if (rc)
        return rc;
    dsc_encoder *e = p;
    e->t = t;
    if (!t->bytes) {
        rc = dsc_tok_matcher_new(&e->matcher, err);
        if (!rc)
            rc = cache_new(&e->cache, err);
    }
    if (rc)
        dsc_encoder_free(e);
    else
        *out = e;
    return rc;
}

void dsc_encoder_free(dsc_encoder *e)
{
    if (!e)
        return;
    dsc_tok_matcher_free(e->matcher);
    dsc_tok_word_fini(&e->word);
    dsc_arena_fini(&e->arena);
    dsc_buffer_fini(&e->normal[0]);
    dsc_buffer_fini(&e->normal[1]);
    free(e->cache);
    free(e);
}

static uint64_t load(const char *p, size_t n) // n = 4 or 8 bytes
{
    uint64_t x = 0;
    memcpy(&x, p, n);
    return x;
}

// Of 1..TOK_CACHE_TEXT bytes. Overlapping loads cover what is not a multiple of eight.
static size_t cache_set(const char *key, size_t n)
{
    uint64_t h;
    if (n >= 8) {
        h = n;
        for (size_t i = 0; i + 8 < n; i += 8)
            h = dsc_tok_mix(h ^ load(key + i, 8));
        h ^= load(key + n - 8, 8);
    } else if (n >= 4) {
        h = load(key, 4) << 32 | load(key + n - 4, 4);
    } else {
        h = (uint64_t)(unsigned char)key[0] << 16 | (uint64_t)(unsigned char)key[n / 2] << 8 |
            (unsigned char)key[n - 1];
    }
    h = dsc_tok_mix(h + n);
    return (h ^ h >> 16) & (((size_t)1 << TOK_CACHE_BITS) - 1);
}

// Whether two such texts are equal: memcmp without its call.
static bool equal(const char *a, const char *b, size_t n)
{
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8)
            if (load(a + i, 8) != load(b + i, 8))
                return false;
        return load(a + n - 8, 8) == load(b + n - 8, 8);
    }
    if (n >= 4)
        return load(a, 4) == load(b, 4) && load(a + n - 4, 4) == load(b + n - 4, 4);
    return a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1];
}

// Copies all ids an entry has room for, of which `count` count: a copy of fixed size is quicker.
static int append_entry(dsc_tokens *out, const tok_cache_entry *c, dsc_error *err)
{
    if (sizeof c->id / sizeof c->id[0] > out->capacity - out->count)
        return dsc_tokens_append(out, c->id, c->count, err);
    memcpy(out->id + out->count, c->id, sizeof c->id);
    out->count += c->count;
    return DSC_OK;
}

// The entry of a text; NULL: it has none.
static tok_cache_entry *find_entry(dsc_encoder *e, size_t set, tok_text text)
{
    tok_cache_entry *c = e->cache + set * TOK_CACHE_WAYS;
    for (int way = 0; way < TOK_CACHE_WAYS; way++, c++)
        if (c->length == text.length && equal(c->key, text.data, text.length))
            return c;
    return NULL;
}

// What was appended behind `before` is what `text` comes to. The older of the set's entries goes.
static void add_entry(dsc_encoder *e, size_t set, tok_text text, size_t before)
{
    tok_cache_entry *c = e->cache + set * TOK_CACHE_WAYS;
    size_t count = e->out->count - before;
    if (count > sizeof c->id / sizeof c->id[0])
        return;
    c[1] = c[0];
    c->length = (uint8_t)text.length;
    c->count = (uint8_t)count;
    memcpy(c->key, text.data, text.length);
    if (count)
        memcpy(c->id, e->out->id + before, count * sizeof c->id[0]);
}

static size_t set_of(tok_text text)
{
    return text.length <= TOK_CACHE_TEXT ? cache_set(text.data, text.length) : TOK_NO_SET;
}

static int encode_parts(dsc_encoder *e, tok_text text, dsc_error *err);

// From the cache, or else `in_parts` or as one word.
static int encode_cached(dsc_encoder *e, tok_text text, size_t set, bool in_parts, dsc_error *err)
{
    size_t before = e->out->count;
    const tok_cache_entry *c = set == TOK_NO_SET ? NULL : find_entry(e, set, text);
    if (c)
        return append_entry(e->out, c, err);
    int rc = in_parts ? encode_parts(e, text, err)
                      : dsc_tok_word_encode(e->t, &e->word, text, e->out, err);
    bool is_there = in_parts && set != TOK_NO_SET && find_entry(e, set, text); // a single part
    if (!rc && set != TOK_NO_SET && !is_there)
        add_entry(e, set, text, before);
    return rc;
}

static bool may_join(const dsc_tokenizer *t, uint32_t left, uint32_t right)
{
    size_t bit = dsc_tok_join_bit(left, right);
    return t->may_join[bit / 64] >> bit % 64 & 1;
}

static int encode_part(dsc_encoder *e, const char *start, const char *end, dsc_error *err)
{
    const tok_text part = {start, (size_t)(end - start)};
    return encode_cached(e, part, set_of(part), false, err);
}

// Cut wherever no merge may join, each part by itself.
static int encode_parts(dsc_encoder *e, tok_text text, dsc_error *err)
{
    const char *p = text.data, *end = p + text.length, *start = p;
    uint32_t left = dsc_tok_next(&p);
    int rc = DSC_OK;
    while (!rc && p < end) {
        const char *here = p;
        uint32_t right = dsc_tok_next(&p);
        bool joins = may_join(e->t, left, right);
        left = right;
        if (joins)
            continue;
        rc = encode_part(e, start, here, err);
        start = here;
    }
    return rc ? rc : encode_part(e, start, end, err);
}

// Encodes the word that has waited longest.
static int encode_next(dsc_encoder *e, dsc_error *err)
{
    const tok_waiting *w = &e->waiting[e->encoded++ % TOK_WAITING];
    return encode_cached(e, w->text, w->set, e->t->may_join, err);
}

static int encode_waiting(dsc_encoder *e, dsc_error *err)
{
    int rc = DSC_OK;
    while (!rc && e->encoded < e->found)
        rc = encode_next(e, err);
    return rc;
}

// The word is encoded when a few more were found; meanwhile its entry comes from memory.
static int find_word(dsc_encoder *e, tok_text text, dsc_error *err)
{
    int rc = e->found - e->encoded == TOK_WAITING ? encode_next(e, err) : DSC_OK;
    tok_waiting *w = &e->waiting[e->found++ % TOK_WAITING];
    *w = (tok_waiting){text, set_of(text)};
    for (int way = 0; way < TOK_CACHE_WAYS && w->set != TOK_NO_SET; way++)
        __builtin_prefetch(&e->cache[w->set * TOK_CACHE_WAYS + (size_t)way]);
    return rc;
}

static const char *skip_ascii(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t beyond = load(p, 8) & 0x8080808080808080u;
        if (beyond)
            return p + __builtin_ctzll(beyond) / 8;
    }
    while (p < end && !(*p & 0x80))
        p++;
    return p;
}

int dsc_tok_encode_word(dsc_encoder *e, tok_text word, dsc_error *err)
{
    if (!e->t->may_join)
        return find_word(e, word, err);
    // Cut before characters beyond ASCII that nothing joins: in most texts the mark that stands for
    // a space, so that most of what is looked up as a whole is a word.
    const char *start = word.data, *p = start, *end = p + word.length, *after;
    int rc = DSC_OK;
    for (; !rc && start < end; start = p) {
        do {
            dsc_tok_next(&p);
            after = p = skip_ascii(p, end);
        } while (p < end &&
                 may_join(e->t, dsc_tok_last(start, (size_t)(p - start)), dsc_tok_next(&after)));
        rc = find_word(e, (tok_text){start, (size_t)(p - start)}, err);
    }
    return rc;
}

typedef int stretch_function(dsc_encoder *e, tok_text text, bool first, dsc_error *err);

static bool whole_word(tok_text text, size_t start, size_t stop)
{
    const char *after = text.data + stop;
    return !(start > 0 && dsc_tok_is_word(dsc_tok_last(text.data, start))) &&
           !(stop < text.length && dsc_tok_is_word(dsc_tok_next(&after)));
}

static size_t spaces_before(tok_text text, size_t at, size_t floor)
{
    while (at > floor && dsc_tok_is_space(dsc_tok_last(text.data, at)))
        while ((text.data[--at] & 0xC0) == 0x80)
            ;
    return at;
}

static size_t spaces_after(tok_text text, size_t at)
{
    const char *p = text.data + at, *end = text.data + text.length, *q = p;
    while (p < end && dsc_tok_is_space(dsc_tok_next(&q)))
        p = q;
    return (size_t)(p - text.data);
}

// Emits the added tokens in `text` and hands what lies between them to `next`. Follows
// AddedVocabulary::find_matches of the HF library, also where stripped space overlaps.
static int around_added(dsc_encoder *e, const tok_finder *f, tok_text text, bool first,
                        stretch_function *next, dsc_error *err)
{
    size_t done = 0, from = 0, start, space_end = 0;
    const tok_added *a;
    int rc = DSC_OK;
    while (!rc && (a = dsc_tok_find(f, text, from, &start))) {
        size_t stop = from = start + a->pattern.length;
        if (a->single_word && !whole_word(text, start, stop))
            continue;
        if (a->lstrip) {
            start = spaces_before(text, start, done);
            start = start < done ? done : start;
        }
        if (a->rstrip) { // tokens that are space themselves must not scan the run each time
            if (stop > space_end)
                space_end = spaces_after(text, stop);
            stop = space_end;
        }
        if (done < start)
            rc = next(e, (tok_text){text.data + done, start - done}, first && done == 0, err);
        if (!rc)
            rc = dsc_tokens_append(e->out, &a->id, 1, err);
        done = stop;
    }
    if (!rc && done < text.length)
        rc = next(e, (tok_text){text.data + done, text.length - done}, first && done == 0, err);
    return rc;
}

static int split_stretch(dsc_encoder *e, tok_text text, bool first, dsc_error *err)
{
    dsc_arena_reset(&e->arena);
    e->found = e->encoded = 0;
    int rc = dsc_tok_split(e, 0, (tok_piece){.text = text, .first = first}, err);
    return rc ? rc : encode_waiting(e, err);
}

static int normalize_stretch(dsc_encoder *e, tok_text text, bool first, dsc_error *err)
{
    int rc = dsc_tok_normalize(e->t, e->matcher, &text, e->normal, err);
    return rc ? rc : around_added(e, &e->t->normalized, text, first, split_stretch, err);
}

static int encode_bytes(tok_text text, bool add_special, dsc_tokens *out, dsc_error *err)
{
    const int32_t bos = 256;
    int32_t id[512];
    int rc = add_special ? dsc_tokens_append(out, &bos, 1, err) : DSC_OK;
    for (size_t i = 0, n; !rc && i < text.length; i += n) {
        for (n = 0; n < 512 && i + n < text.length; n++)
            id[n] = (unsigned char)text.data[i + n];
        rc = dsc_tokens_append(out, id, n, err);
    }
    return rc;
}

static int encode_text(dsc_encoder *e, tok_text text, bool add_special, dsc_error *err)
{
    const dsc_tokenizer *t = e->t;
    size_t valid = dsc_tok_utf8_valid(text.data, text.length);
    if (valid != text.length)
        return dsc_fail(err, DSC_EINPUT, "the text is not valid UTF-8 at byte %zu", valid);
    int rc = DSC_OK;
    if (add_special)
        rc = dsc_tokens_append(e->out, t->prefix.id, t->prefix.count, err);
    if (!rc)
        rc = around_added(e, &t->plain, text, true, normalize_stretch, err);
    if (!rc && add_special)
        rc = dsc_tokens_append(e->out, t->suffix.id, t->suffix.count, err);
    return rc;
}

int dsc_encode(dsc_encoder *e, const char *text, size_t length, bool add_special, dsc_tokens *out,
               dsc_error *err)
{
    tok_text input = {text ? text : "", text ? length : 0};
    size_t before = out->count;
    void *p = out->id;
    // At a usual four bytes to a token; more when there are more.
    int rc = dsc_grow(&p, &out->capacity, before + input.length / 4, sizeof *out->id, err);
    out->id = p;
    if (rc)
        return rc;
    e->out = out;
    rc = e->t->bytes ? encode_bytes(input, add_special, out, err)
                     : encode_text(e, input, add_special, err);
    e->out = NULL;
    if (rc)
        out->count = before;
    return rc;
}
