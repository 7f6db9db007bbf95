// SPDX-License-Identifier: Apache-2.0
// Normalizers: rewrite a text before it is split (Prepend, Replace, Unicode forms, Strip).
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static int prepend(const tok_step *s, tok_text in, dsc_buffer *out, dsc_error *err)
{
    int rc = dsc_buffer_append(out, s->content.data, s->content.length, err);
    return rc ? rc : dsc_buffer_append(out, in.data, in.length, err);
}

#ifdef __SSE2__
enum { WIDE = sizeof(__m128i) };

// Bytes before the first `byte` among the WIDE at p, or WIDE.
static inline size_t find_in_wide(const char *p, unsigned char byte)
{
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    unsigned found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8((char)byte)));
    return (size_t)__builtin_ctz(found | 1u << WIDE);
}
#else
enum { WIDE = 8 };

static inline size_t find_in_wide(const char *p, unsigned char byte)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, p, 8);
    x ^= ones * byte;
    x = (x - ones) & ~x & high; // bit 7 of the zero bytes; bits after the first may be wrong
    return x ? (size_t)__builtin_ctzll(x) / 8 : 8;
}
#endif

static size_t count_byte(tok_text in, unsigned char byte)
{
    const uint64_t ones = 0x0101010101010101u, low = 0x7f7f7f7f7f7f7f7fu;
    size_t n = 0, i = 0;
    for (; i + 8 <= in.length; i += 8) {
        uint64_t x;
        memcpy(&x, in.data + i, 8);
        x ^= ones * byte;
        x = ~(((x & low) + low) | x | low); // bit 7 of the zero bytes
        n += (x >> 7) * ones >> 56;
    }
    for (; i < in.length; i++)
        n += (unsigned char)in.data[i] == byte;
    return n;
}

static bool replaces_byte(const tok_step *s)
{
    return s->kind == TOK_REPLACE && !s->regex && s->pattern.length == 1;
}

// Replaces one byte by `content`. Copies WIDE bytes at a time; those after a match are copied
// again.
static int replace_byte(const tok_step *s, tok_text in, dsc_buffer *out, tok_growth *growth,
                        dsc_error *err)
{
    enum { SHORT = 8 }; // a short content is copied with this fixed size, which is faster
    const char what = s->pattern.data[0], *p = in.data, *end = p + in.length;
    const size_t n = s->content.length;
    const bool is_short = n <= SHORT;
    char content[SHORT] = "";
    size_t matches = count_byte(in, (unsigned char)what), room;
    if (__builtin_mul_overflow(matches, n, &room) ||
        __builtin_add_overflow(room, out->length + in.length + SHORT + 1, &room))
        return dsc_fail(err, DSC_ENOMEM, "the text is too long to normalize");
    int rc = dsc_tok_grow(growth, s, matches, matches * n, err);
    if (!rc)
        rc = dsc_resize(&out->data, &out->capacity, room, err);
    if (rc)
        return rc;
    memcpy(content, s->content.data, is_short ? n : 0);
    char *o = out->data + out->length;
    while (p < end) {
        size_t plain = *p != what;
        if (end - p >= WIDE) {
            plain = find_in_wide(p, (unsigned char)what);
            memcpy(o, p, WIDE);
        } else {
            *o = *p;
        }
        p += plain;
        o += plain;
        if (p == end || *p != what)
            continue;
        memcpy(o, is_short ? content : s->content.data, is_short ? SHORT : n);
        o += n;
        p++;
    }
    *o = '\0';
    out->length = (size_t)(o - out->data);
    return DSC_OK;
}

int dsc_tok_replace(const tok_step *s, tok_matcher *m, tok_text in, dsc_buffer *out,
                    tok_growth *growth, dsc_error *err)
{
    if (!s->regex && s->pattern.length == 1)
        return replace_byte(s, in, out, growth, err);
    tok_scan scan = {.step = s, .matcher = m, .text = in};
    int rc = DSC_OK, more;
    while (!rc && (more = dsc_tok_scan(&scan, err)) != 0) {
        if (more < 0)
            return more;
        if (scan.is_match) {
            rc = dsc_tok_grow(growth, s, scan.end - scan.start, s->content.length, err);
            if (!rc)
                rc = dsc_buffer_append(out, s->content.data, s->content.length, err);
        } else
            rc = dsc_buffer_append(out, in.data + scan.start, scan.end - scan.start, err);
    }
    return rc;
}

// `prepend` followed by `replace` in one pass.
static int prepend_replaced(const tok_step *s, const tok_step *replace, tok_text in,
                            dsc_buffer *out, tok_growth *growth, dsc_error *err)
{
    int rc = replace_byte(replace, s->content, out, growth, err);
    return rc ? rc : replace_byte(replace, in, out, growth, err);
}

static int combining_class(int32_t c)
{
    return utf8proc_get_property(c)->combining_class;
}

// Sorts a run of combining marks by class, those of one class in their order (Unicode 15, section
// 3.11), by counting: a text can be one run, for which utf8proc_decompose takes quadratic time.
static int order_marks(int32_t *mark, size_t count, dsc_error *err)
{
    enum { CLASSES = 256 };
    size_t start[CLASSES + 1] = {0};
    int32_t *sorted;
    int rc = dsc_new(&sorted, count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        start[combining_class(mark[i]) + 1]++;
    for (size_t k = 0; k < CLASSES; k++)
        start[k + 1] += start[k];
    for (size_t i = 0; i < count; i++)
        sorted[start[combining_class(mark[i])]++] = mark[i];
    memcpy(mark, sorted, count * sizeof *mark);
    free(sorted);
    return DSC_OK;
}

static int order_all_marks(int32_t *code, size_t count, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0, end; !rc && i < count; i = end) {
        int last = combining_class(code[i]), class = last;
        bool ordered = true;
        for (end = i + 1; last && end < count && (class = combining_class(code[end])); end++) {
            ordered = ordered && class >= last;
            last = class;
        }
        if (!ordered)
            rc = order_marks(code + i, end - i, err);
    }
    return rc;
}

// Decomposes the text and puts its marks in order. *out is owned by the caller, and has room for
// one more code point.
static int decompose(const tok_step *s, tok_text in, int32_t **out, size_t *count, dsc_error *err)
{
    enum { MOST = 32 }; // code points of one character; U+FDFA has 18
    size_t capacity = 0;
    const char *p = in.data, *end = p + in.length;
    int rc = DSC_OK, unused = 0;
    *out = NULL;
    for (*count = 0; !rc && p < end;) {
        rc = dsc_resize(out, &capacity, *count + MOST + 1, err);
        if (!rc)
            *count += (size_t)utf8proc_decompose_char((int32_t)dsc_tok_next(&p), *out + *count,
                                                      MOST, (utf8proc_option_t)s->form, &unused);
    }
    return rc ? rc : order_all_marks(*out, *count, err);
}

static int unicode_form(const tok_step *s, tok_text in, dsc_buffer *out, tok_growth *growth,
                        dsc_error *err)
{
    int32_t *code;
    size_t count;
    int rc = decompose(s, in, &code, &count, err);
    if (!rc && count) {
        size_t n = (size_t)utf8proc_reencode(code, (utf8proc_ssize_t)count,
                                             (utf8proc_option_t)(s->form | UTF8PROC_STABLE));
        rc = dsc_tok_grow(growth, s, in.length, n, err);
        if (!rc)
            rc = dsc_buffer_append(out, code, n, err);
    }
    free(code);
    return rc;
}

static int strip(const tok_step *s, tok_text in, dsc_buffer *out, dsc_error *err)
{
    const char *p = in.data, *end = p + in.length;
    while (s->left && p < end) {
        const char *q = p;
        if (!dsc_tok_is_space(dsc_tok_next(&q)))
            break;
        p = q;
    }
    while (s->right && p < end && dsc_tok_is_space(dsc_tok_last(p, (size_t)(end - p))))
        while ((*--end & 0xC0) == 0x80)
            ;
    return dsc_buffer_append(out, p, (size_t)(end - p), err);
}

static bool is_ascii(tok_text t)
{
    for (size_t i = 0; i < t.length; i++)
        if ((unsigned char)t.data[i] >= 0x80)
            return false;
    return true;
}

int dsc_tok_normalize(const dsc_tokenizer *t, tok_matcher *m, tok_text *io, dsc_buffer buffer[2],
                      tok_growth *growth, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; !rc && i < t->normalizers.count; i++) {
        const tok_step *s = &t->normalizers.at[i];
        const tok_step *following = i + 1 < t->normalizers.count ? s + 1 : NULL;
        dsc_buffer *out = &buffer[io->data == buffer[0].data];
        if (s->kind == TOK_UNICODE_FORM && is_ascii(*io))
            continue; // no form changes ASCII
        out->length = 0;
        rc = dsc_buffer_append(out, "", 0, err);
        if (rc)
            break;
        switch (s->kind) {
        case TOK_PREPEND:
            if (io->length == 0)
                break;
            rc = dsc_tok_grow(growth, s, 0, s->content.length, err);
            if (rc)
                break;
            if (following && replaces_byte(following)) {
                rc = prepend_replaced(s, following, *io, out, growth, err);
                i++;
            } else {
                rc = prepend(s, *io, out, err);
            }
            break;
        case TOK_REPLACE: rc = dsc_tok_replace(s, m, *io, out, growth, err); break;
        case TOK_UNICODE_FORM: rc = unicode_form(s, *io, out, growth, err); break;
        default: rc = strip(s, *io, out, err); break;
        }
        *io = (tok_text){out->data, out->length};
    }
    return rc;
}
