// SPDX-License-Identifier: Apache-2.0
// Encodes text as tokens: finds added tokens, applies normalizers and pre-tokenizers to the text
// between them, and adds the template. The specification is the HF tokenizers library.
#include "base/utf8.h"
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

int dsc_encoder_new(dsc_encoder **out, const dsc_tokenizer *t, dsc_error *err)
{
    dsc_encoder *e;
    *out = NULL;
    int rc = dsc_new(&e, 1, err);
    if (rc)
        return rc;
    e->t = t;
    if (!t->bytes) {
        rc = dsc_tok_matcher_new(&e->matcher, err);
        if (!rc)
            rc = dsc_tok_words_init(e, err);
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
    for (size_t i = 0; i < 2 * TOK_MAX_STEPS; i++)
        dsc_buffer_fini(&e->rewritten[i]);
    dsc_buffer_fini(&e->normal[0]);
    dsc_buffer_fini(&e->normal[1]);
    dsc_tok_words_fini(e);
    free(e);
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

// Emits the added tokens in `text` and passes the text between them to `next`. Follows
// AddedVocabulary::find_matches of the HF library, even where stripped space overlaps.
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
        if (a->rstrip) { // a run of spaces is scanned once, even if each space is a token
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
    e->waits = 0;
    int rc = dsc_tok_split(e, 0, (tok_piece){.text = text, .first = first}, err);
    return rc ? rc : dsc_tok_encode_waiting(e, err);
}

static int normalize_stretch(dsc_encoder *e, tok_text text, bool first, dsc_error *err)
{
    int rc = dsc_tok_normalize(e->t, e->matcher, &text, e->normal, &e->growth, err);
    return rc ? rc : around_added(e, &e->t->normalized, text, first, split_stretch, err);
}

// Works in blocks, which compilers vectorize.
static void widen(int32_t *restrict id, const char *restrict bytes, size_t n)
{
    enum { BLOCK = 64 };
    size_t i = 0;
    for (; n - i >= BLOCK; i += BLOCK)
        for (size_t k = i; k < i + BLOCK; k++)
            id[k] = (unsigned char)bytes[k];
    for (; i < n; i++)
        id[i] = (unsigned char)bytes[i];
}

static int encode_bytes(tok_text text, bool add_special, dsc_tokens *out, dsc_error *err)
{
    const int32_t bos = 256;
    int rc = add_special ? dsc_tokens_append(out, &bos, 1, err) : DSC_OK;
    if (!rc)
        rc = dsc_resize(&out->id, &out->capacity, out->count + text.length, err);
    if (rc || !text.length)
        return rc;
    widen(out->id + out->count, text.data, text.length);
    out->count += text.length;
    return DSC_OK;
}

static int encode_text(dsc_encoder *e, tok_text text, bool add_special, dsc_error *err)
{
    const dsc_tokenizer *t = e->t;
    int64_t bad = dsc_bad_utf8(text.data, (int64_t)text.length);
    if (bad >= 0)
        return dsc_fail(err, DSC_EINPUT, "the text is not valid UTF-8 at byte %lld",
                        (long long)bad);
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
    // A token usually has four bytes; the list grows if there are more tokens.
    int rc = dsc_resize(&out->id, &out->capacity, before + input.length / 4, err);
    if (rc)
        return rc;
    e->out = out;
    e->growth = dsc_tok_growth(e->t->name, input.length);
    if (e->matcher)
        dsc_tok_matcher_begin(e->matcher, e->t->name, input.length);
    rc = e->t->bytes ? encode_bytes(input, add_special, out, err)
                     : encode_text(e, input, add_special, err);
    e->out = NULL;
    if (rc)
        out->count = before;
    return rc;
}
