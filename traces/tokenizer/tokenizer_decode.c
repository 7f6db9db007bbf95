// SPDX-License-Identifier: Apache-2.0
// Decodes tokens to text. As in the HF library, each decoder maps a list of strings to another
// list; the first list has one string per token, and the last one is joined.
#include "base/utf8.h"
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct tok_list {
    dsc_buffer bytes;
    size_t *end; // [count] where each string ends
    size_t count, capacity;
} tok_list;

static int close_string(tok_list *l, dsc_error *err)
{
    int rc = dsc_resize(&l->end, &l->capacity, l->count + 1, err);
    if (!rc)
        l->end[l->count++] = l->bytes.length;
    return rc;
}

static int add_string(tok_list *l, const char *s, size_t length, dsc_error *err)
{
    int rc = dsc_buffer_append(&l->bytes, s, length, err);
    return rc ? rc : close_string(l, err);
}

static tok_text get_string(const tok_list *l, size_t i)
{
    size_t start = i ? l->end[i - 1] : 0;
    return (tok_text){l->bytes.data + start, l->end[i] - start};
}

static void list_fini(tok_list *l)
{
    dsc_buffer_fini(&l->bytes);
    free(l->end);
}

static const char replacement[] = "\xEF\xBF\xBD"; // U+FFFD

static int append_lossy(dsc_buffer *out, const char *s, size_t length, dsc_error *err)
{
    int rc = DSC_OK;
    int64_t bad;
    while (!rc && (bad = dsc_bad_utf8(s, (int64_t)length)) >= 0) {
        size_t n = (size_t)bad + dsc_tok_utf8_bad(s + bad, length - (size_t)bad);
        rc = dsc_buffer_append(out, s, (size_t)bad, err);
        if (!rc)
            rc = dsc_buffer_append(out, replacement, 3, err);
        s += n;
        length -= n;
    }
    return rc ? rc : dsc_buffer_append(out, s, length, err);
}

// A string in the byte-level alphabet becomes its bytes; any other string stays.
static int byte_level(const tok_list *in, tok_list *out, dsc_error *err)
{
    char *raw; // a string is at most as long as its spelling
    int rc = dsc_new(&raw, in->bytes.length, err);
    if (rc)
        return rc;
    char *to = raw;
    for (size_t i = 0; i < in->count; i++) {
        tok_text s = get_string(in, i);
        const char *p = s.data, *end = p + s.length;
        char *before = to;
        int byte = 0;
        while (p < end && (byte = dsc_tok_char_byte(dsc_tok_next(&p))) >= 0)
            *to++ = (char)byte;
        if (byte < 0) {
            memcpy(before, s.data, s.length);
            to = before + s.length;
        }
    }
    rc = append_lossy(&out->bytes, raw, (size_t)(to - raw), err);
    free(raw);
    return rc ? rc : close_string(out, err);
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *p = strchr(digits, c >= 'A' && c <= 'F' ? c | 32 : c);
    return c && p ? (int)(p - digits) : -1;
}

// The byte of a string like <0x0A>, or -1. (Rust's from_str_radix also accepts "+A".)
static int byte_of(tok_text s)
{
    if (s.length != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>')
        return -1;
    int high = s.data[3] == '+' ? 0 : hex_digit(s.data[3]), low = hex_digit(s.data[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

// A run of bytes becomes one string if it is valid UTF-8 as a whole; otherwise every byte is
// U+FFFD.
static int flush_bytes(tok_list *out, dsc_buffer *run, dsc_error *err)
{
    int rc = DSC_OK;
    if (run->length == 0)
        return DSC_OK;
    if (dsc_bad_utf8(run->data, (int64_t)run->length) < 0)
        rc = add_string(out, run->data, run->length, err);
    else
        for (size_t i = 0; !rc && i < run->length; i++)
            rc = add_string(out, replacement, 3, err);
    run->length = 0;
    return rc;
}

static int byte_fallback(const tok_list *in, tok_list *out, dsc_error *err)
{
    dsc_buffer run = {0};
    int rc = DSC_OK;
    for (size_t i = 0; !rc && i < in->count; i++) {
        tok_text s = get_string(in, i);
        int byte = byte_of(s);
        char c = (char)byte;
        if (byte >= 0) {
            rc = dsc_buffer_append(&run, &c, 1, err);
            continue;
        }
        rc = flush_bytes(out, &run, err);
        if (!rc)
            rc = add_string(out, s.data, s.length, err);
    }
    if (!rc)
        rc = flush_bytes(out, &run, err);
    dsc_buffer_fini(&run);
    return rc;
}

static int strip(const tok_step *step, tok_text s, dsc_buffer *out, dsc_error *err)
{
    size_t n = step->content.length;
    for (size_t k = 0; k < step->start && s.length >= n; k++) {
        if (memcmp(s.data, step->content.data, n) != 0)
            break;
        s = (tok_text){s.data + n, s.length - n};
    }
    for (size_t k = 0; k < step->stop && s.length >= n; k++) {
        if (memcmp(s.data + s.length - n, step->content.data, n) != 0)
            break;
        s.length -= n;
    }
    return dsc_buffer_append(out, s.data, s.length, err);
}

// All marks of the first string are removed, as in the HF library; other marks become spaces.
static int metaspace(const tok_step *step, tok_text s, bool first, dsc_buffer *out,
                     tok_growth *growth, dsc_error *err)
{
    tok_step as_replace = *step;
    as_replace.content = (tok_text){" ", !first || step->scheme == TOK_NEVER};
    return dsc_tok_replace(&as_replace, NULL, s, out, growth, err);
}

// The steps that map each string by itself.
static int map_strings(const tok_step *step, const tok_list *in, tok_list *out, tok_growth *growth,
                       dsc_error *err)
{
    tok_matcher *m = NULL;
    int rc = step->regex ? dsc_tok_matcher_new(&m, err) : DSC_OK;
    if (m)
        dsc_tok_matcher_begin(m, growth->file, in->bytes.length);
    for (size_t i = 0; !rc && i < in->count; i++) {
        tok_text s = get_string(in, i);
        switch (step->kind) {
        case TOK_REPLACE: rc = dsc_tok_replace(step, m, s, &out->bytes, growth, err); break;
        case TOK_STRIP: rc = strip(step, s, &out->bytes, err); break;
        default: rc = metaspace(step, s, i == 0, &out->bytes, growth, err);
        }
        if (!rc)
            rc = close_string(out, err);
    }
    dsc_tok_matcher_free(m);
    return rc;
}

static int run_step(const tok_step *step, const tok_list *in, tok_list *out, tok_growth *growth,
                    dsc_error *err)
{
    int rc = dsc_buffer_append(&out->bytes, "", 0, err);
    if (rc)
        return rc;
    switch (step->kind) {
    case TOK_BYTE_LEVEL: return byte_level(in, out, err);
    case TOK_BYTE_FALLBACK: return byte_fallback(in, out, err);
    case TOK_FUSE: return add_string(out, in->bytes.data, in->bytes.length, err);
    default: return map_strings(step, in, out, growth, err);
    }
}

static int collect(const dsc_tokenizer *t, const int32_t *id, size_t count, bool skip_special,
                   tok_list *out, dsc_error *err)
{
    int rc = dsc_buffer_append(&out->bytes, "", 0, err);
    for (size_t i = 0; !rc && i < count; i++) {
        if (id[i] < 0 || id[i] >= t->vocab_size || (!t->bytes && !t->token[id[i]].data))
            return dsc_fail(err, DSC_EINPUT, "token %zu: tokenizer %s has no token with id %d", i,
                            t->name, id[i]);
        if (t->bytes) {
            char c = (char)id[i];
            if (id[i] < 256)
                rc = dsc_buffer_append(&out->bytes, &c, 1, err);
            else if (!skip_special)
                rc = dsc_buffer_puts(&out->bytes, id[i] == 256 ? "<s>" : "</s>", err);
        } else if (!(skip_special && t->special[id[i]])) {
            bool space = !t->has_decoder && out->count;
            rc = space ? dsc_buffer_append(&out->bytes, " ", 1, err) : DSC_OK;
            if (!rc)
                rc = add_string(out, t->token[id[i]].data, t->token[id[i]].length, err);
        }
    }
    return rc;
}

int dsc_decode(const dsc_tokenizer *t, const int32_t *id, size_t count, bool skip_special,
               dsc_buffer *out, dsc_error *err)
{
    tok_list list[2] = {0};
    int rc = collect(t, id, count, skip_special, &list[0], err);
    tok_growth growth = dsc_tok_growth(t->name, list[0].bytes.length);
    for (size_t i = 0; !rc && i < t->decoders.count; i++) {
        tok_list *next = &list[(i + 1) % 2];
        next->count = next->bytes.length = 0;
        rc = run_step(&t->decoders.at[i], &list[i % 2], next, &growth, err);
    }
    if (!rc) {
        const dsc_buffer *b = &list[t->decoders.count % 2].bytes;
        rc = dsc_buffer_append(out, b->data, b->length, err);
    }
    list_fini(&list[0]);
    list_fini(&list[1]);
    return rc;
}
