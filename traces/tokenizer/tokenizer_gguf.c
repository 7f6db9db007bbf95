// SPDX-License-Identifier: Apache-2.0
// Reads the tokenizer of a GGUF file: writes the tokenizer.json that means the same, without the
// merges of a SentencePiece vocabulary, which follow from its scores. Keys: gguf-py's constants.py;
// defaults: llama.cpp's src/llama-vocab.cpp.
#include "traces/tokenizer/tokenizer_internal.h"

#include "base/utf8.h"
#include "traces/files/gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED }; // tokenizer.ggml.token_type
enum { LONGEST_TOKEN = 4096 };                       // bytes

static const char mark[] = "\xe2\x96\x81"; // U+2581, a space of SentencePiece

typedef struct maker {
    tok_reader *r;
    const dsc_gguf *file;
    const dsc_gguf_value *tokens, *types, *scores, *merges;
    const tok_pre *pre; // of a byte-level BPE; NULL: SentencePiece
    int64_t bos, eos, unk;
    json_t *root;
    dsc_buffer text; // the current token
} maker;

static int wrong(const maker *m, const char *key, const char *expected)
{
    return dsc_tok_bad(m->r, "metadata key 'tokenizer.%s' must be %s", key, expected);
}

static const dsc_gguf_value *find(const dsc_gguf *file, const char *key)
{
    char name[80];
    snprintf(name, sizeof name, "tokenizer.%s", key);
    return dsc_gguf_find(file, name);
}

static int get_flag(const maker *m, const char *key, bool absent, bool *out)
{
    const dsc_gguf_value *v = find(m->file, key);
    *out = absent;
    if (!v)
        return DSC_OK;
    if (v->array || v->kind != DSC_GGUF_BOOL)
        return wrong(m, key, "true or false");
    *out = v->data[0];
    return DSC_OK;
}

// A token id, or `absent`.
static int get_id(const maker *m, const char *key, int64_t absent, int64_t *out)
{
    const dsc_gguf_value *v = find(m->file, key);
    *out = absent;
    if (v && (v->array || !dsc_gguf_integer(v, 0, out)))
        return wrong(m, key, "a token id");
    if (*out < 0 || (uint64_t)*out >= m->tokens->count)
        *out = TOK_NONE; // some files have 2^32 - 1 for none
    return DSC_OK;
}

static int get_text(const maker *m, const char *key, dsc_gguf_text *out)
{
    const dsc_gguf_value *v = find(m->file, key);
    *out = (dsc_gguf_text){"", 0};
    return !v || (!v->array && dsc_gguf_string(v, 0, out)) ? DSC_OK : wrong(m, key, "a string");
}

// An array, with an element for each token once those are known.
static int get_array(maker *m, const char *key, bool required, bool (*fits)(dsc_gguf_kind),
                     const char *expected, const dsc_gguf_value **out)
{
    const dsc_gguf_value *v = find(m->file, key);
    *out = v;
    if (!v)
        return required ? dsc_tok_bad(m->r, "metadata key 'tokenizer.%s' is missing", key) : DSC_OK;
    if (!v->array || !fits(v->kind))
        return wrong(m, key, expected);
    if (out != &m->merges && m->tokens && v->count != m->tokens->count)
        return dsc_tok_bad(
            m->r, "metadata key 'tokenizer.%s' has %" PRIu64 " elements for %" PRIu64 " tokens",
            key, v->count, m->tokens->count);
    return DSC_OK;
}

static bool is_string(dsc_gguf_kind k)
{
    return k == DSC_GGUF_STRING;
}

static bool is_integer(dsc_gguf_kind k)
{
    return k == DSC_GGUF_I32 || k == DSC_GGUF_U32;
}

static bool is_real(dsc_gguf_kind k)
{
    return k == DSC_GGUF_F32;
}

static int out_of_memory(const maker *m)
{
    return dsc_fail(m->r->err, DSC_ENOMEM, "%s: out of memory", m->r->path);
}

// Sets a member of the file; NULL: memory was short when it was made.
static int put(const maker *m, const char *key, json_t *value)
{
    return json_object_set_new(m->root, key, value) ? out_of_memory(m) : DSC_OK;
}

// --- tokens ------------------------------------------------------------------------------------

static int64_t type_of(const maker *m, uint64_t id)
{
    int64_t type = NORMAL;
    if (m->types)
        dsc_gguf_integer(m->types, id, &type);
    return type;
}

static bool is_blank(dsc_gguf_text s)
{
    for (size_t i = 0; i < s.length; i++)
        if (s.data[i] != ' ')
            return false;
    return s.length > 0;
}

// Puts a token into m->text as tokenizer.json has it. A run of spaces, which SentencePiece has as
// user-defined tokens, is one of marks.
static int spell(maker *m, uint64_t id)
{
    dsc_gguf_text s = {"", 0};
    int rc = DSC_OK;
    dsc_gguf_string(m->tokens, id, &s);
    m->text.length = 0;
    if (s.length > LONGEST_TOKEN)
        return dsc_tok_bad(m->r, "token %" PRIu64 " has %zu bytes; at most %d are supported", id,
                           s.length, LONGEST_TOKEN);
    if (memchr(s.data, 0, s.length) || dsc_bad_utf8(s.data, (int64_t)s.length) >= 0)
        return dsc_tok_bad(m->r, "token %" PRIu64 " is not a text in UTF-8", id);
    if (m->pre || !is_blank(s)) {
        rc = dsc_buffer_append(&m->text, s.data, s.length, m->r->err);
        return rc ? rc : dsc_buffer_append(&m->text, "", 0, m->r->err);
    }
    for (size_t i = 0; i < s.length && !rc; i++)
        rc = dsc_buffer_puts(&m->text, mark, m->r->err);
    return rc;
}

static json_t *added_token(const char *content, int64_t id, bool special)
{
    return json_pack("{s:I,s:s,s:b,s:b,s:b,s:b,s:b}", "id", (json_int_t)id, "content", content,
                     "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special",
                     special);
}

static bool is_special(const maker *m, int64_t id, int64_t type)
{
    return type == UNKNOWN || type == CONTROL || id == m->bos || id == m->eos || id == m->unk;
}

static int add_tokens(maker *m, json_t *vocab, json_t *added)
{
    int rc = DSC_OK;
    for (uint64_t id = 0; id < m->tokens->count && !rc; id++) {
        const int64_t type = type_of(m, id);
        dsc_gguf_text s = {"", 0};
        rc = spell(m, id);
        if (rc)
            return rc;
        const json_t *other = json_object_get(vocab, m->text.data);
        if (other)
            return dsc_tok_bad(m->r, "tokens %lld and %" PRIu64 " are the same: '%.100s'",
                               (long long)json_integer_value(other), id, m->text.data);
        if (json_object_set_new_nocheck(vocab, m->text.data, json_integer((json_int_t)id)))
            return out_of_memory(m);
        dsc_gguf_string(m->tokens, id, &s);
        const bool special = is_special(m, (int64_t)id, type);
        const bool user_defined = type == USER_DEFINED && (m->pre || !is_blank(s));
        if ((special || user_defined) && s.length &&
            json_array_append_new(added, added_token(m->text.data, (int64_t)id, special)))
            return out_of_memory(m);
    }
    return rc;
}

// --- merges of a SentencePiece vocabulary ------------------------------------------------------

typedef struct derived {
    tok_derived merge;
    double score;      // of the result; user-defined tokens come first
    int32_t at[2];     // characters of the two sides
    int32_t user_rank; // the id of a user-defined token, else 0
} derived;

// As the converter of transformers orders them: by the score of the result and by the lengths of
// the sides, both downwards; then by the ids of result, left and right.
static int by_score(const void *pa, const void *pb)
{
    const derived *a = pa, *b = pb;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->user_rank != b->user_rank)
        return a->user_rank < b->user_rank ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (a->at[i] != b->at[i])
            return a->at[i] > b->at[i] ? -1 : 1;
    const int32_t ia[3] = {a->merge.id, a->merge.left, a->merge.right};
    const int32_t ib[3] = {b->merge.id, b->merge.left, b->merge.right};
    for (int i = 0; i < 3; i++)
        if (ia[i] != ib[i])
            return ia[i] < ib[i] ? -1 : 1;
    return 0;
}

static int32_t characters(const char *s, size_t length)
{
    int32_t n = 0;
    for (size_t i = 0; i < length; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

typedef struct derived_list {
    derived *at;
    size_t count, capacity;
} derived_list;

// Appends every way to split the token into two tokens.
static int split_token(const maker *m, int32_t id, derived_list *list)
{
    const dsc_tokenizer *t = m->r->t;
    const tok_text s = t->token[id];
    double score = 0;
    dsc_gguf_real(m->scores, (uint64_t)id, &score);
    const bool user = type_of(m, (uint64_t)id) == USER_DEFINED;
    for (size_t cut = 1; cut < s.length; cut++) {
        if (((unsigned char)s.data[cut] & 0xc0) == 0x80)
            continue;
        const int32_t left = dsc_tok_map_get(&t->vocab, s.data, cut);
        const int32_t right =
            left == TOK_NONE ? TOK_NONE : dsc_tok_map_get(&t->vocab, s.data + cut, s.length - cut);
        if (right == TOK_NONE)
            continue;
        int rc = dsc_resize(&list->at, &list->capacity, list->count + 1, m->r->err);
        if (rc)
            return rc;
        list->at[list->count++] = (derived){
            .merge = {left, right, id},
            .score = user ? (double)INFINITY : score,
            .at = {characters(s.data, cut), characters(s.data + cut, s.length - cut)},
            .user_rank = user ? id : 0,
        };
    }
    return DSC_OK;
}

// Runs when the vocabulary has been read.
static int derive(void *user, tok_derived **out, size_t *count)
{
    maker *m = user;
    derived_list list = {0};
    int rc = DSC_OK;
    for (int32_t id = 0; id < m->r->t->vocab_size && !rc; id++)
        rc = split_token(m, id, &list);
    if (!rc && list.count)
        qsort(list.at, list.count, sizeof *list.at, by_score);
    if (!rc)
        rc = dsc_new(out, list.count, m->r->err);
    for (size_t i = 0; i < list.count && !rc; i++)
        (*out)[i] = list.at[i].merge;
    *count = list.count;
    free(list.at);
    return rc;
}

// --- the file ----------------------------------------------------------------------------------

static json_t *space_steps(bool prefix)
{
    json_t *replace = json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern", "String", " ",
                                "content", mark);
    if (!prefix)
        return replace;
    return json_pack("{s:s,s:[{s:s,s:s},o]}", "type", "Sequence", "normalizers", "type", "Prepend",
                     "prepend", mark, replace);
}

static json_t *space_decoder(bool prefix)
{
    json_t *list =
        json_pack("[{s:s,s:{s:s},s:s},{s:s},{s:s}]", "type", "Replace", "pattern", "String", mark,
                  "content", " ", "type", "ByteFallback", "type", "Fuse");
    if (prefix)
        json_array_append_new(list, json_pack("{s:s,s:s,s:i,s:i}", "type", "Strip", "content", " ",
                                              "start", 1, "stop", 0));
    return json_pack("{s:s,s:o}", "type", "Sequence", "decoders", list);
}

// The tokens around a text.
static int add_template(maker *m)
{
    bool begin, end;
    int rc = get_flag(m, "ggml.add_bos_token", m->pre ? m->pre->begins : true, &begin);
    if (!rc)
        rc = get_flag(m, "ggml.add_eos_token", false, &end);
    if (rc)
        return rc;
    if ((begin && m->bos == TOK_NONE) || (end && m->eos == TOK_NONE))
        return dsc_tok_bad(m->r, "metadata key 'tokenizer.ggml.%s_token_id' is missing",
                           begin && m->bos == TOK_NONE ? "bos" : "eos");
    json_t *single = json_array();
    if (begin)
        json_array_append_new(single, json_pack("{s:{s:s}}", "SpecialToken", "id", "bos"));
    json_array_append_new(single, json_pack("{s:{s:s}}", "Sequence", "id", "A"));
    if (end)
        json_array_append_new(single, json_pack("{s:{s:s}}", "SpecialToken", "id", "eos"));
    json_t *post = json_pack("{s:s,s:o,s:{s:{s:[I]},s:{s:[I]}}}", "type", "TemplateProcessing",
                             "single", single, "special_tokens", "bos", "ids", (json_int_t)m->bos,
                             "eos", "ids", (json_int_t)m->eos);
    return put(m, "post_processor", post);
}

// Merges are texts of two tokens with one space between.
static int add_merges(maker *m, json_t *list)
{
    int rc = get_array(m, "ggml.merges", true, is_string, "an array of strings", &m->merges);
    const dsc_gguf_value *v = m->merges;
    for (uint64_t i = 0; !rc && i < v->count; i++) {
        dsc_gguf_text s;
        dsc_gguf_string(v, i, &s);
        if (memchr(s.data, 0, s.length) || dsc_bad_utf8(s.data, (int64_t)s.length) >= 0)
            return dsc_tok_bad(m->r, "merge %" PRIu64 " is not a text in UTF-8", i);
        if (json_array_append_new(list, json_stringn_nocheck(s.data, s.length)))
            return out_of_memory(m);
    }
    return rc;
}

static int add_steps(maker *m)
{
    bool prefix;
    int rc = get_flag(m, "ggml.add_space_prefix", true, &prefix);
    if (rc)
        return rc;
    rc = m->pre ? put(m, "pre_tokenizer", dsc_tok_pre_steps(m->pre))
                : put(m, "normalizer", space_steps(prefix));
    if (!rc)
        rc = put(m, "decoder",
                 m->pre ? json_pack("{s:s}", "type", "ByteLevel") : space_decoder(prefix));
    return rc ? rc : add_template(m);
}

static int add_model(maker *m)
{
    json_t *vocab = json_object(), *merges = json_array(), *added = json_array();
    json_t *model = json_pack("{s:s,s:o,s:o,s:b,s:b,s:b}", "type", "BPE", "vocab", vocab, "merges",
                              merges, "byte_fallback", !m->pre, "fuse_unk", !m->pre,
                              "ignore_merges", m->pre && m->pre->whole_words);
    int rc = put(m, "model", model);
    if (!rc)
        rc = put(m, "added_tokens", added);
    else
        json_decref(added);
    if (!rc)
        rc = add_tokens(m, vocab, added);
    if (!rc && m->pre)
        rc = add_merges(m, merges);
    if (!rc && !m->pre && m->unk != TOK_NONE && !(rc = spell(m, (uint64_t)m->unk)) &&
        json_object_set_new(model, "unk_token", json_string(m->text.data)))
        rc = out_of_memory(m);
    return rc;
}

static bool equals(dsc_gguf_text s, const char *word)
{
    return s.length == strlen(word) && memcmp(s.data, word, s.length) == 0;
}

static int find_model(maker *m, bool *pieces)
{
    dsc_gguf_text model, pre;
    int rc = get_text(m, "ggml.model", &model);
    if (!rc)
        rc = get_text(m, "ggml.pre", &pre);
    if (rc)
        return rc;
    *pieces = equals(model, "llama");
    if (!model.length)
        return dsc_tok_bad(m->r, "the file has no tokenizer (tokenizer.ggml.model)");
    if (*pieces)
        return DSC_OK;
    if (!equals(model, "gpt2"))
        return dsc_tok_bad(m->r,
                           "tokenizer.ggml.model '%.*s' is not supported; gpt2 (byte-level BPE) "
                           "and llama (SentencePiece BPE) are",
                           model.length < 40 ? (int)model.length : 40, model.data);
    m->pre = dsc_tok_pre_find(pre.data, pre.length);
    return m->pre ? DSC_OK
                  : dsc_tok_bad(m->r,
                                "tokenizer.ggml.pre '%.*s' is not a pre-tokenizer that draftscope "
                                "knows; use the model's tokenizer.json",
                                pre.length < 60 ? (int)pre.length : 60, pre.data);
}

static int make_root(maker *m)
{
    bool pieces = false, separator = false;
    int rc = find_model(m, &pieces);
    if (!rc)
        rc = get_array(m, "ggml.tokens", true, is_string, "an array of strings", &m->tokens);
    if (!rc && m->tokens->count > (uint64_t)TOK_MAX_ID + 1)
        rc = dsc_tok_bad(m->r, "%" PRIu64 " tokens; at most %d are supported", m->tokens->count,
                         TOK_MAX_ID + 1);
    if (!rc)
        rc = get_array(m, "ggml.token_type", false, is_integer, "an array of integers", &m->types);
    if (!rc && pieces)
        rc = get_array(m, "ggml.scores", true, is_real, "an array of numbers", &m->scores);
    if (!rc)
        rc = get_id(m, "ggml.bos_token_id", pieces ? 1 : TOK_NONE, &m->bos);
    if (!rc)
        rc = get_id(m, "ggml.eos_token_id", pieces ? 2 : TOK_NONE, &m->eos);
    if (!rc)
        rc = get_id(m, "ggml.unknown_token_id", pieces ? 0 : TOK_NONE, &m->unk);
    if (!rc)
        rc = get_flag(m, "ggml.add_sep_token", false, &separator);
    if (!rc && separator)
        rc = dsc_tok_bad(m->r, "tokenizer.ggml.add_sep_token is not supported");
    if (!rc)
        rc = add_steps(m);
    return rc ? rc : add_model(m);
}

int dsc_tok_load_gguf(dsc_tokenizer *t, const char *path, dsc_error *err)
{
    dsc_gguf *file;
    tok_reader r = {.path = path, .err = err, .t = t};
    int rc = dsc_gguf_open(&file, path, err);
    if (rc)
        return rc;
    maker m = {.r = &r, .file = file, .root = json_object()};
    rc = m.root ? make_root(&m) : out_of_memory(&m);
    if (!m.pre) {
        r.derive = derive;
        r.derive_user = &m;
    }
    if (!rc)
        rc = dsc_tok_read_json(&r, m.root);
    if (!rc) {
        dsc_gguf_hash(file, "tokenizer.ggml.", false, t->sha256); // not that of the weights
        t->eos = (int32_t)m.eos;
    }
    json_decref(m.root);
    dsc_buffer_fini(&m.text);
    dsc_gguf_close(file);
    return rc;
}
