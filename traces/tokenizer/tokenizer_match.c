// SPDX-License-Identifier: Apache-2.0
// Runs the regexes of a tokenizer in bounded time. PCRE2 limits the backtracks from one starting
// point, but neither the characters that it reads between two of them nor the number of starting
// points; `(?=.*x)a|.` reads the rest of the text at each character.
//
// So a search sees a window of the text and may backtrack BACKTRACKS times. Where PCRE2 reaches the
// end of the window (PCRE2_PARTIAL_HARD) or the limit, each starting point is tried by itself, with
// windows and limits that grow. A trial takes at most limit * window steps; all trials of a text
// share a number of steps that is proportional to its length. Ordinary matches fit the first
// window.
#include "traces/tokenizer/tokenizer_regex.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BACKTRACKS = 64, // of the first trial
    WINDOW = 256,    // bytes of the first trial
    WHOLE = 4096,    // a text of this many bytes is one window; it is 8 % faster
    GROWTH = 2,      // of windows and of limits
    STEPS_PER_BYTE = 1 << 14,
    DEPTH_LIMIT = 100 * 1000,
    HEAP_LIMIT_KIB = 64 * 1024,
    JIT_STACK_BYTES = 16 * 1024 * 1024,
};
// For any text: 92 000 white-space characters in a row still fit `\s*[\r\n]+`, which backtracks
// over all of them.
static const uint64_t STEPS_FREE = (uint64_t)1 << 34;

struct tok_matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    uint32_t limit; // of backtracks, in the context
    const char *file;
    size_t text_length;
    uint64_t steps, left; // of all trials of a text
};

int dsc_tok_matcher_new(tok_matcher **out, dsc_error *err)
{
    tok_matcher *m;
    *out = NULL;
    int rc = dsc_new(&m, 1, err);
    if (rc)
        return rc;
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    if (!m->data || !m->context) {
        dsc_tok_matcher_free(m);
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    pcre2_set_depth_limit(m->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    m->stack = pcre2_jit_stack_create(32 * 1024, JIT_STACK_BYTES, NULL); // NULL without JIT
    if (m->stack)
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
    *out = m;
    return DSC_OK;
}

void dsc_tok_matcher_free(tok_matcher *m)
{
    if (!m)
        return;
    pcre2_jit_stack_free(m->stack);
    pcre2_match_context_free(m->context);
    pcre2_match_data_free(m->data);
    free(m);
}

void dsc_tok_matcher_begin(tok_matcher *m, const char *file, size_t text_length)
{
    m->file = file;
    m->text_length = text_length;
    m->steps = STEPS_FREE;
    if (text_length < SIZE_MAX / STEPS_PER_BYTE)
        m->steps += (uint64_t)text_length * STEPS_PER_BYTE;
    m->left = m->steps;
}

static int fail(const tok_matcher *m, int code, size_t at, dsc_error *err)
{
    PCRE2_UCHAR what[160] = "";
    pcre2_get_error_message(code, what, sizeof what);
    return dsc_fail(err, DSC_EINPUT,
                    "%s: a regex exceeds its limits at byte %zu of a text of %zu bytes: %s",
                    m->file, at, m->text_length, (const char *)what);
}

// Runs the code in text[0, end); `options` is PCRE2_PARTIAL_HARD where the text goes on.
static inline int run(const tok_code *c, tok_matcher *m, const char *text, size_t end, size_t from,
                      uint32_t options, uint32_t limit)
{
    if (m->limit != limit) {
        pcre2_set_match_limit(m->context, limit);
        m->limit = limit;
    }
    // dsc_encode validated the text; the JIT entry does not check it.
    return c->jit
               ? pcre2_jit_match(c->code, (PCRE2_SPTR)text, end, from, options, m->data, m->context)
               : pcre2_match(c->code, (PCRE2_SPTR)text, end, from, options | PCRE2_NO_UTF_CHECK,
                             m->data, m->context);
}

// The end of a window of at least `size` bytes, which cuts no character.
static inline size_t window_end(const char *text, size_t length, size_t from, size_t size)
{
    if (length - from <= size)
        return length;
    size_t end = from + size;
    while (end < length && (text[end] & 0xC0) == 0x80)
        end++;
    return end;
}

// Most patterns backtrack over each character of a window at most twice.
static uint32_t next_limit(uint32_t limit, size_t window)
{
    const size_t twice = 2 * window;
    return twice > limit && twice <= UINT32_MAX ? (uint32_t)twice : limit * GROWTH;
}

// Tries a match at `at` alone. Returns what PCRE2 does, or DSC_EINPUT in *rc.
static int match_here(const tok_regex *r, tok_matcher *m, const char *text, size_t length,
                      size_t at, int *rc, dsc_error *err)
{
    uint32_t limit = BACKTRACKS;
    for (size_t size = WINDOW;;) {
        const size_t end = window_end(text, length, at, size);
        const uint64_t steps = (uint64_t)limit * (end - at + 1);
        if (steps > m->left) {
            *rc = dsc_fail(err, DSC_EINPUT,
                           "%s: a regex exceeds its limits at byte %zu of a text of %zu bytes: all "
                           "regexes together may take %llu steps",
                           m->file, at, m->text_length, (unsigned long long)m->steps);
            return 0;
        }
        m->left -= steps;
        const int n = run(&r->here, m, text, end, at, end < length ? PCRE2_PARTIAL_HARD : 0, limit);
        if (n == PCRE2_ERROR_PARTIAL)
            size *= GROWTH;
        else if (n == PCRE2_ERROR_MATCHLIMIT && limit <= UINT32_MAX / GROWTH)
            limit = next_limit(limit, end - at);
        else
            return n;
    }
}

// Returns 1, 0 or a negative status.
static int find(const tok_regex *r, tok_matcher *m, const char *text, size_t length, size_t from,
                dsc_error *err)
{
    for (int rc = DSC_OK; from <= length;) {
        const size_t end = length - from <= WHOLE ? length : window_end(text, length, from, WINDOW);
        int n =
            run(&r->search, m, text, end, from, end < length ? PCRE2_PARTIAL_HARD : 0, BACKTRACKS);
        if (n == PCRE2_ERROR_NOMATCH && end < length) {
            from = end;
            continue;
        }
        if (n == PCRE2_ERROR_PARTIAL || n == PCRE2_ERROR_MATCHLIMIT) {
            if (n == PCRE2_ERROR_PARTIAL) // where a match may begin; it begins nowhere before
                from = pcre2_get_ovector_pointer(m->data)[0];
            n = match_here(r, m, text, length, from, &rc, err);
            if (n == PCRE2_ERROR_NOMATCH && from < length) {
                from = window_end(text, length, from, 1);
                continue;
            }
        }
        if (n == PCRE2_ERROR_NOMATCH)
            return 0;
        return rc ? rc : n < 0 ? fail(m, n, from, err) : 1;
    }
    return 0;
}

int dsc_tok_regex_find(const tok_regex *r, tok_matcher *m, const char *text, size_t length,
                       size_t from, size_t *start, size_t *end, dsc_error *err)
{
    if (r->is_gpt2 && dsc_tok_gpt2_match(text, length, from, end)) {
        *start = from;
        return 1;
    }
    const int found = find(r, m, text, length, from, err);
    if (found > 0) {
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(m->data);
        *start = bounds[0];
        *end = bounds[1];
    }
    return found;
}

int dsc_tok_regex_tile(const tok_regex *r, tok_matcher *m, const char *text, size_t length,
                       size_t from, size_t end[], int most, dsc_error *err)
{
    size_t start;
    int n = r->is_gpt2 ? (int)dsc_tok_gpt2_matches(text, length, from, end, (size_t)most) : 0;
    if (n || from == length)
        return n;
    return dsc_tok_regex_find(r, m, text, length, from, &start, end, err);
}
