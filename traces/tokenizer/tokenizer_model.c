// SPDX-License-Identifier: Apache-2.0
// Reads the BPE model of a tokenizer.json (vocabulary, merges) and its added tokens, and builds the
// tables that encoding uses.
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_id(const tok_reader *r, const json_t *value, const char *content, int32_t *id)
{
    if (!json_is_integer(value))
        return dsc_tok_bad(r, "the id of token '%s' is not an integer", content);
    json_int_t n = json_integer_value(value);
    if (n < 0 || n > TOK_MAX_ID)
        return dsc_tok_bad(r, "the id %lld of token '%s' is outside 0..%d", (long long)n, content,
                           TOK_MAX_ID);
    *id = (int32_t)n;
    return DSC_OK;
}

static int read_options(tok_reader *r, const json_t *model, tok_text *unk)
{
    dsc_tokenizer *t = r->t;
    const json_t *dropout = dsc_tok_member(model, "dropout");
    if (dropout && !(json_is_number(dropout) && json_number_value(dropout) == 0))
        return dsc_tok_bad(r, "model.dropout other than null is not supported");
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 2; i++) {
        const json_t *affix = dsc_tok_member(model, affixes[i]);
        if (affix && !(json_is_string(affix) && json_string_length(affix) == 0))
            return dsc_tok_bad(r, "model.%s other than empty is not supported", affixes[i]);
    }
    int rc = dsc_tok_get_bool(r, model, "model", "fuse_unk", 0, &t->fuse_unk);
    if (!rc)
        rc = dsc_tok_get_bool(r, model, "model", "byte_fallback", 0, &t->byte_fallback);
    if (!rc)
        rc = dsc_tok_get_bool(r, model, "model", "ignore_merges", 0, &t->ignore_merges);
    t->has_unk = dsc_tok_member(model, "unk_token") != NULL;
    return !rc && t->has_unk ? dsc_tok_get_text(r, model, "model", "unk_token", unk) : rc;
}

// Puts a token's text into the pool and the table; `*used` counts the pool's bytes.
static tok_text keep(dsc_tokenizer *t, size_t *used, const char *content, size_t length, int32_t id)
{
    char *copy = t->pool + *used;
    memcpy(copy, content, length);
    copy[length] = '\0';
    *used += length + 1;
    return t->token[id] = (tok_text){copy, length};
}

// Determines the sizes first, so that all texts are stored once, in one block.
static int allocate(tok_reader *r, json_t *vocab, const json_t *added)
{
    dsc_tokenizer *t = r->t;
    size_t bytes = 0, index;
    int32_t id, largest = -1;
    const char *key;
    json_t *value;
    int rc = DSC_OK;
    json_object_foreach(vocab, key, value)
    {
        if ((rc = read_id(r, value, key, &id)))
            return rc;
        bytes += strlen(key) + 1;
        largest = id > largest ? id : largest;
    }
    json_array_foreach(added, index, value)
    {
        tok_text content;
        char where[40];
        snprintf(where, sizeof where, "added_tokens[%zu]", index);
        if (!json_is_object(value))
            return dsc_tok_bad(r, "%s must be an object", where);
        if ((rc = dsc_tok_get_text(r, value, where, "content", &content)))
            return rc;
        if ((rc = read_id(r, json_object_get(value, "id"), content.data, &id)))
            return rc;
        bytes += content.length + 1;
        largest = id > largest ? id : largest;
    }
    t->vocab_size = largest + 1;
    rc = dsc_new(&t->pool, bytes, r->err);
    if (!rc)
        rc = dsc_new(&t->token, (size_t)t->vocab_size, r->err);
    if (!rc)
        rc = dsc_new(&t->special, (size_t)t->vocab_size, r->err);
    return rc ? rc : dsc_tok_map_init(&t->vocab, json_object_size(vocab), r->err);
}

static int read_vocab(tok_reader *r, json_t *vocab, size_t *used)
{
    dsc_tokenizer *t = r->t;
    const char *key;
    json_t *value;
    json_object_foreach(vocab, key, value)
    {
        int32_t id = (int32_t)json_integer_value(value);
        if (t->token[id].data)
            return dsc_tok_bad(r, "tokens '%s' and '%s' have the same id %d", t->token[id].data,
                               key, id);
        dsc_tok_map_put(&t->vocab, keep(t, used, key, strlen(key), id), id);
    }
    for (int b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        t->byte_token[b] = dsc_tok_map_get(&t->vocab, name, 6);
    }
    int rc = dsc_new(&t->char_token, TOK_BMP, r->err);
    if (rc)
        return rc;
    for (uint32_t c = 0; c < TOK_BMP; c++)
        t->char_token[c] = TOK_NONE;
    for (int32_t id = 0; id < t->vocab_size; id++) {
        const char *s = t->token[id].data, *next = s;
        if (!s || t->token[id].length == 0)
            continue;
        uint32_t c = dsc_tok_next(&next);
        if (c < TOK_BMP && (size_t)(next - s) == t->token[id].length)
            t->char_token[c] = id;
    }
    return DSC_OK;
}

// 'a b' or ['a', 'b']. A line that begins with #version is a comment of merges.txt.
static int read_merge(tok_reader *r, const json_t *value, size_t index, tok_text part[2],
                      bool *comment)
{
    *comment = false;
    if (json_is_array(value) && json_array_size(value) == 2) {
        for (int i = 0; i < 2; i++) {
            const json_t *s = json_array_get(value, (size_t)i);
            if (!json_is_string(s))
                return dsc_tok_bad(r, "model.merges[%zu] must be a pair of strings", index);
            part[i] = (tok_text){json_string_value(s), json_string_length(s)};
        }
        return DSC_OK;
    }
    if (!json_is_string(value))
        return dsc_tok_bad(r, "model.merges[%zu] must be a string or a pair", index);
    const char *s = json_string_value(value), *end = s + json_string_length(value);
    const char *space = memchr(s, ' ', (size_t)(end - s));
    if (strncmp(s, "#version", 8) == 0) {
        *comment = true;
        return DSC_OK;
    }
    if (!space || memchr(space + 1, ' ', (size_t)(end - space - 1)))
        return dsc_tok_bad(r, "model.merges[%zu] must be two tokens with one space between", index);
    part[0] = (tok_text){s, (size_t)(space - s)};
    part[1] = (tok_text){space + 1, (size_t)(end - space - 1)};
    return DSC_OK;
}

static int derive_merges(tok_reader *r)
{
    tok_derived *list = NULL;
    size_t count = 0;
    int rc = r->derive(r->derive_user, &list, &count);
    if (!rc && count > TOK_MAX_MERGES)
        rc = dsc_tok_bad(r, "%zu merges follow from the vocabulary; at most %d are supported",
                         count, TOK_MAX_MERGES);
    if (!rc)
        rc = dsc_tok_merges_init(&r->t->merges, count, r->err);
    for (size_t i = 0; i < count && !rc; i++)
        dsc_tok_merges_put(&r->t->merges, list[i].left, list[i].right, (uint32_t)i, list[i].id);
    free(list);
    return rc;
}

static int read_merges(tok_reader *r, const json_t *merges)
{
    dsc_tokenizer *t = r->t;
    dsc_buffer joined = {0};
    if (json_array_size(merges) > TOK_MAX_MERGES)
        return dsc_tok_bad(r, "model.merges has %zu elements; at most %d are supported",
                           json_array_size(merges), TOK_MAX_MERGES);
    int rc = dsc_tok_merges_init(&t->merges, json_array_size(merges), r->err);
    uint32_t rank = 0;
    size_t index;
    json_t *value;
    json_array_foreach(merges, index, value)
    {
        tok_text part[3];
        int32_t id[3];
        bool comment = false;
        if (!rc)
            rc = read_merge(r, value, index, part, &comment);
        if (comment)
            continue;
        joined.length = 0;
        for (int i = 0; !rc && i < 2; i++)
            rc = dsc_buffer_append(&joined, part[i].data, part[i].length, r->err);
        part[2] = (tok_text){joined.data, joined.length};
        for (int i = 0; !rc && i < 3; i++) {
            id[i] = dsc_tok_map_get(&t->vocab, part[i].data, part[i].length);
            if (id[i] == TOK_NONE)
                rc = dsc_tok_bad(r, "model.merges[%zu]: '%.*s' is not in the vocabulary", index,
                                 (int)part[i].length, part[i].data);
        }
        if (rc)
            break;
        dsc_tok_merges_put(&t->merges, id[0], id[1], rank++, id[2]);
    }
    dsc_buffer_fini(&joined);
    return rc;
}

// A SentencePiece-style tokenizer has no pre-tokenizer that cuts words. But between characters x
// and y that no merge (..x, y..) spans, nothing is ever joined, so the two sides can be encoded
// separately. That requires that every symbol is the text it stands for: not when byte tokens
// merge, characters are dropped, unknown tokens fuse, or whole words are looked up.
static int init_joins(tok_reader *r)
{
    dsc_tokenizer *t = r->t;
    if (t->raw_bytes || t->ignore_merges || !t->byte_fallback)
        return DSC_OK;
    bool *is_byte, possible = true;
    int rc = dsc_new(&is_byte, t->vocab_size > 0 ? (size_t)t->vocab_size : 1, r->err);
    if (rc)
        return rc;
    for (int b = 0; b < 256; b++) {
        possible = possible && t->byte_token[b] != TOK_NONE;
        if (t->byte_token[b] != TOK_NONE)
            is_byte[t->byte_token[b]] = true;
    }
    uint64_t *bits = NULL;
    if (possible)
        rc = dsc_new(&bits, (size_t)1 << (TOK_JOIN_BITS - 6), r->err);
    for (size_t i = 0; bits && possible && i <= t->merges.mask; i++) {
        const tok_merge *m = &t->merges.slot[i];
        if (m->pair == UINT64_MAX)
            continue;
        tok_text left = t->token[m->pair >> 32], right = t->token[(uint32_t)m->pair];
        possible =
            !is_byte[m->pair >> 32] && !is_byte[(uint32_t)m->pair] && left.length && right.length;
        if (!possible)
            break;
        const char *s = right.data;
        size_t bit = dsc_tok_join_bit(dsc_tok_last(left.data, left.length), dsc_tok_next(&s));
        bits[bit / 64] |= (uint64_t)1 << bit % 64;
    }
    free(is_byte);
    if (!possible) {
        free(bits);
        bits = NULL;
    }
    t->may_join = bits;
    for (unsigned x = 0; bits && x < 0x80; x++) {
        size_t bit = dsc_tok_join_bit(x, TOK_MARK);
        t->mark_joins[x / 64] |= (bits[bit / 64] >> bit % 64 & 1) << x % 64;
    }
    return rc;
}

// The raw bytes of a token in the byte-level alphabet; false when a character is outside it.
static bool spelled_bytes(tok_text token, char *out, size_t *length)
{
    const char *p = token.data, *end = p + token.length;
    for (*length = 0; p < end; ++*length) {
        int byte = dsc_tok_char_byte(dsc_tok_next(&p));
        if (byte < 0)
            return false;
        out[*length] = (char)byte;
    }
    return true;
}

static int init_raw(tok_reader *r, size_t pool_bytes)
{
    dsc_tokenizer *t = r->t;
    if (!t->raw_bytes)
        return DSC_OK;
    for (int b = 0; b < 256; b++)
        t->raw_token[b] = t->char_token[dsc_tok_byte_char((uint8_t)b)];
    if (!t->ignore_merges)
        return DSC_OK;
    int rc = dsc_new(&t->raw_pool, pool_bytes, r->err);
    if (!rc)
        rc = dsc_tok_map_init(&t->raw_vocab, (size_t)t->vocab_size, r->err);
    char *out = t->raw_pool;
    size_t n;
    for (int32_t id = 0; !rc && id < t->vocab_size; id++)
        if (t->token[id].data && spelled_bytes(t->token[id], out, &n)) {
            dsc_tok_map_put(&t->raw_vocab, (tok_text){out, n}, id);
            out += n;
        }
    return rc;
}

// `next` is the id that the HF library assigns to an added token that the vocabulary lacks,
// whatever id the file has. A file whose id differs is refused.
static int read_added_token(tok_reader *r, const json_t *value, size_t index, int32_t next,
                            size_t *used)
{
    dsc_tokenizer *t = r->t;
    tok_added a = {.id = (int32_t)json_integer_value(json_object_get(value, "id"))};
    char where[40];
    snprintf(where, sizeof where, "added_tokens[%zu]", index);
    const struct {
        const char *key;
        bool *out;
    } flags[] = {{"single_word", &a.single_word},
                 {"lstrip", &a.lstrip},
                 {"rstrip", &a.rstrip},
                 {"normalized", &a.normalized},
                 {"special", &a.special}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        int rc = dsc_tok_get_bool(r, value, where, flags[i].key, -1, flags[i].out);
        if (rc)
            return rc;
    }
    const json_t *content = json_object_get(value, "content");
    const char *s = json_string_value(content);
    size_t length = json_string_length(content);
    int32_t known = dsc_tok_map_get(&t->vocab, s, length);
    int32_t expected = known != TOK_NONE ? known : next;
    if (length == 0)
        return dsc_tok_bad(r, "%s has no content", where);
    if (a.id != expected)
        return dsc_tok_bad(r, "%s: '%s' has id %d, but loading assigns id %d", where, s, a.id,
                           expected);
    if (known == TOK_NONE && t->token[a.id].data)
        return dsc_tok_bad(r, "tokens '%s' and '%s' have the same id %d", t->token[a.id].data, s,
                           a.id);
    a.content = known != TOK_NONE ? t->token[a.id] : keep(t, used, s, length, a.id);
    if (!dsc_tok_map_put(&t->added_vocab, a.content, a.id))
        return dsc_tok_bad(r, "%s: '%s' was added before", where, s);
    t->special[a.id] = a.special;
    t->added[t->added_count++] = a;
    return DSC_OK;
}

static int read_added(tok_reader *r, const json_t *added, size_t model_count, size_t *used)
{
    dsc_tokenizer *t = r->t;
    size_t index, n = json_array_size(added);
    json_t *value;
    int rc = dsc_new(&t->added, n, r->err);
    if (!rc)
        rc = dsc_tok_map_init(&t->added_vocab, n, r->err);
    int32_t next = (int32_t)model_count;
    json_array_foreach(added, index, value)
    {
        if (!rc)
            rc = read_added_token(r, value, index, next, used);
        if (!rc && t->added[t->added_count - 1].id >= next)
            next = t->added[t->added_count - 1].id + 1;
    }
    return rc;
}

int dsc_tok_read_model(tok_reader *r, const json_t *root)
{
    dsc_tokenizer *t = r->t;
    const json_t *model = dsc_tok_member(root, "model");
    if (!json_is_object(model))
        return dsc_tok_bad(r, "model is missing or not an object");
    const json_t *type = dsc_tok_member(model, "type");
    const char *name = json_string_value(type);
    if (type && (!name || strcmp(name, "BPE") != 0))
        return dsc_tok_bad(r, "model type '%s' is not supported; only BPE is", name ? name : "");
    json_t *vocab = dsc_tok_member(model, "vocab"), *merges = dsc_tok_member(model, "merges");
    json_t *added = dsc_tok_member(root, "added_tokens");
    if (!json_is_object(vocab))
        return dsc_tok_bad(r, "model.vocab is missing or not an object");
    if (!json_is_array(merges))
        return dsc_tok_bad(r, "model.merges is missing or not an array");
    if (added && !json_is_array(added))
        return dsc_tok_bad(r, "added_tokens is not an array");
    tok_text unk = {0};
    size_t used = 0;
    int rc = read_options(r, model, &unk);
    if (!rc)
        rc = allocate(r, vocab, added);
    if (!rc)
        rc = read_vocab(r, vocab, &used);
    if (rc)
        return rc;
    t->unk = t->has_unk ? dsc_tok_map_get(&t->vocab, unk.data, unk.length) : TOK_NONE;
    rc = r->derive ? derive_merges(r) : read_merges(r, merges);
    if (!rc)
        rc = init_joins(r);
    if (!rc)
        rc = init_raw(r, used);
    return rc ? rc : read_added(r, added, json_object_size(vocab), &used);
}
