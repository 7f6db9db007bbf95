// SPDX-License-Identifier: Apache-2.0
// Finds added tokens: searches several patterns at once, leftmost first, then longest.
#include "traces/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const tok_added *x = *(const tok_added *const *)a, *y = *(const tok_added *const *)b;
    size_t n = x->pattern.length, m = y->pattern.length;
    int c = memcmp(x->pattern.data, y->pattern.data, n < m ? n : m);
    return c ? c : (n > m) - (n < m);
}

static int finder_init(tok_reader *r, tok_finder *f, bool normalized)
{
    const dsc_tokenizer *t = r->t;
    int rc = dsc_new(&f->token, t->added_count, r->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < t->added_count; i++)
        if (t->added[i].normalized == normalized)
            f->token[f->count++] = &t->added[i];
    qsort(f->token, f->count, sizeof *f->token, compare);
    f->only_byte = -1;
    for (size_t i = 0; i < f->count; i++) {
        const tok_added *a = f->token[i];
        if (a->pattern.length == 0)
            return dsc_tok_bad(r, "added token '%s' is empty after normalization", a->content.data);
        if (a->pattern.length > TOK_MAX_ADDED) // every byte of a text may begin one
            return dsc_tok_bad(r, "added token %d has %zu bytes; at most %d are supported", a->id,
                               a->pattern.length, TOK_MAX_ADDED);
        if (i && compare(&f->token[i - 1], &f->token[i]) == 0)
            return dsc_tok_bad(r, "added tokens '%s' and '%s' are equal after normalization",
                               f->token[i - 1]->content.data, a->content.data);
        f->first[(unsigned char)a->pattern.data[0] + 1]++;
    }
    for (int b = 0; b < 256; b++) {
        if (f->count && f->first[b + 1] == f->count)
            f->only_byte = b;
        f->first[b + 1] += f->first[b];
    }
    return DSC_OK;
}

// The patterns of tokens marked `normalized` are normalized, like the texts in which they are
// searched.
static int normalize_patterns(tok_reader *r)
{
    dsc_tokenizer *t = r->t;
    dsc_buffer buffer[2] = {{0}, {0}};
    tok_matcher *m = NULL;
    size_t length = 0;
    for (size_t i = 0; i < t->added_count; i++)
        length += t->added[i].content.length;
    tok_growth growth = dsc_tok_growth(r->path, length);
    int rc = dsc_tok_matcher_new(&m, r->err);
    if (!rc)
        dsc_tok_matcher_begin(m, r->path, length);
    for (size_t i = 0; !rc && i < t->added_count; i++) {
        tok_added *a = &t->added[i];
        tok_text text = a->content;
        if (a->normalized)
            rc = dsc_tok_normalize(t, m, &text, buffer, &growth, r->err);
        char *copy = NULL;
        if (!rc)
            rc = dsc_strndup(&copy, text.data, text.length, r->err);
        a->pattern = (tok_text){copy, text.length};
        if (rc || !a->normalized)
            continue;
        // As in the HF library, such a token decodes to its pattern, and it is no longer special
        // when the pattern differs from its content.
        t->special[a->id] = a->special && text.length == a->content.length &&
                            memcmp(copy, a->content.data, text.length) == 0;
        t->token[a->id] = a->pattern;
    }
    dsc_tok_matcher_free(m);
    dsc_buffer_fini(&buffer[0]);
    dsc_buffer_fini(&buffer[1]);
    return rc;
}

int dsc_tok_finders_init(tok_reader *r)
{
    int rc = normalize_patterns(r);
    if (!rc)
        rc = finder_init(r, &r->t->plain, false);
    if (!rc)
        rc = finder_init(r, &r->t->normalized, true);
    return rc;
}

// The longest pattern at the beginning of text[at, ...). The candidates are a range of the sorted
// list, narrowed byte by byte; a pattern that is complete is the first of its range.
static const tok_added *longest(const tok_finder *f, tok_text text, size_t at)
{
    unsigned char b = (unsigned char)text.data[at];
    size_t low = f->first[b], high = f->first[b + 1];
    const tok_added *best = NULL;
    for (size_t n = 1; low < high; n++) {
        if (f->token[low]->pattern.length == n)
            best = f->token[low++];
        if (at + n == text.length)
            break;
        b = (unsigned char)text.data[at + n];
        size_t bound[2];
        for (int k = 0; k < 2; k++) { // first candidate whose byte n is >= b, then > b
            size_t lo = low, hi = high;
            while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if ((unsigned char)f->token[mid]->pattern.data[n] < b + k)
                    lo = mid + 1;
                else
                    hi = mid;
            }
            bound[k] = lo;
        }
        low = bound[0];
        high = bound[1];
    }
    return best;
}

const tok_added *dsc_tok_find(const tok_finder *f, tok_text text, size_t from, size_t *start)
{
    if (f->count == 0)
        return NULL;
    for (size_t i = from; i < text.length; i++) {
        if (f->only_byte >= 0) {
            const char *p = memchr(text.data + i, f->only_byte, text.length - i);
            if (!p)
                return NULL;
            i = (size_t)(p - text.data);
        }
        unsigned char b = (unsigned char)text.data[i];
        if (f->first[b] == f->first[b + 1])
            continue;
        const tok_added *a = longest(f, text, i);
        if (a) {
            *start = i;
            return a;
        }
    }
    return NULL;
}
