// SPDX-License-Identifier: Apache-2.0
// Compiles the regexes of tokenizer.json for PCRE2; tokenizer_match.c runs them.
//
// The files are written for Oniguruma in Ruby syntax. Constructs that both engines interpret alike
// are passed on, those that PCRE2 can express are rewritten (\s, \S, \w, \b: their Unicode sets
// differ), and all others are refused, because a silent difference would give wrong tokens.
#include "traces/tokenizer/tokenizer_regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// White_Space; PCRE2's \s also has U+180E.
#define SPACE                                                                                      \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"    \
    "\\x{205f}\\x{3000}"
#define NOT_SPACE                                                                                  \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"                   \
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"                 \
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}"
// Oniguruma's \w: Alphabetic, M, Nd, Pc, and six fractions and superscripts of Latin-1. PCRE2's \w
// is L, N and the underscore.
#define WORD                                                                                       \
    "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"                                                         \
    "\\p{L}\\p{M}\\p{Nl}\\p{Nd}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"                    \
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

enum { PATTERN_MAX = 64 * 1024 };

typedef struct translation {
    const char *p, *end, *start;
    dsc_buffer out;
    dsc_error *err;
    int rc;
} translation;

static void put(translation *t, const char *text)
{
    if (!t->rc)
        t->rc = dsc_buffer_puts(&t->out, text, t->err);
}

static void put_bytes(translation *t, const char *text, size_t length)
{
    if (!t->rc)
        t->rc = dsc_buffer_append(&t->out, text, length, t->err);
}

static void refuse(translation *t, const char *what)
{
    if (!t->rc)
        t->rc = dsc_fail(t->err, DSC_EINPUT, "regex construct %s at byte %td is not supported",
                         what, t->p - t->start);
}

static bool ahead(const translation *t, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(t->end - t->p) >= n && memcmp(t->p, text, n) == 0;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

// At the letter of \xHH, \x{H...} or \uHHHH. Oniguruma reads \xHH as a byte, so only ASCII is the
// same character in both.
static void code_point(translation *t)
{
    char digits[9];
    size_t n = 0, want = *t->p == 'u' ? 4 : 2;
    bool braces = *t->p == 'x' && t->p + 1 < t->end && t->p[1] == '{';
    const char *q = t->p + 1 + braces;
    while (q < t->end && n < 8 && strchr("0123456789abcdefABCDEF", *q) && *q)
        if (digits[n++] = *q++, !braces && n == want)
            break;
    digits[n] = '\0';
    unsigned long c = strtoul(digits, NULL, 16);
    bool closed = !braces || (q < t->end && *q == '}');
    if (n == 0 || (!braces && n != want) || !closed || c > 0x10FFFF ||
        (!braces && want == 2 && c > 0x7F)) {
        refuse(t, "\\x or \\u");
        return;
    }
    char text[24];
    snprintf(text, sizeof text, "\\x{%lx}", c);
    put(t, text);
    t->p = q + braces;
}

// At the letter of \p{Name} or \P{Name}: general categories and scripts.
static void property(translation *t)
{
    bool negated = *t->p == 'P';
    const char *q = t->p + 1;
    if (q >= t->end || *q != '{') {
        refuse(t, "\\p without braces");
        return;
    }
    if (++q < t->end && *q == '^') {
        negated = !negated;
        q++;
    }
    const char *name = q;
    while (q < t->end && (is_alnum(*q) || *q == '_'))
        q++;
    if (q == name || q >= t->end || *q != '}') {
        refuse(t, "\\p{...}");
        return;
    }
    put(t, negated ? "\\P{" : "\\p{");
    // From 10.40 a bare script name means Script_Extensions to PCRE2; Oniguruma means Script.
    if (q - name > 2 && PCRE2_MAJOR * 100 + PCRE2_MINOR >= 1040)
        put(t, "sc:");
    put_bytes(t, name, (size_t)(q - name));
    put(t, "}");
    t->p = q + 1;
}

// At the backslash. True when what was written is a set of characters, not one.
static bool escape(translation *t, bool in_class)
{
    if (++t->p >= t->end) {
        refuse(t, "\\ at the end");
        return false;
    }
    static const struct {
        char letter;
        const char *outside, *inside; // inside a class; NULL = refused
        bool set;
    } known[] = {
        {'s', "[" SPACE "]", SPACE, true},
        {'S', "[^" SPACE "]", NOT_SPACE, true},
        {'d', "\\p{Nd}", "\\p{Nd}", true},
        {'D', "\\P{Nd}", "\\P{Nd}", true},
        {'w', "[" WORD "]", WORD, true},
        {'W', "[^" WORD "]", NULL, true},
        {'b', "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))", "\\x{8}", false},
        {'B', "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))", NULL, false},
        {'r', "\\r", "\\r", false},
        {'n', "\\n", "\\n", false},
        {'t', "\\t", "\\t", false},
        {'f', "\\f", "\\f", false},
        {'v', "\\x{b}", "\\x{b}", false},
        {'a', "\\a", "\\a", false},
        {'e', "\\e", "\\e", false},
        {'A', "\\A", NULL, false},
        {'z', "\\z", NULL, false},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (*t->p == known[i].letter && (known[i].inside || !in_class)) {
            put(t, in_class ? known[i].inside : known[i].outside);
            t->p++;
            return known[i].set;
        }
    char name[3] = {'\\', *t->p, '\0'};
    if (*t->p == 'p' || *t->p == 'P') {
        property(t);
        return true;
    }
    if (*t->p == 'x' || *t->p == 'u') {
        code_point(t);
    } else if (*t->p > ' ' && *t->p < 0x7F && !is_alnum(*t->p)) {
        put(t, name);
        t->p++;
    } else {
        refuse(t, name);
    }
    return false;
}

// At '['. Nested classes, POSIX names and intersections exist only in Oniguruma; a '-' next to a
// set would become a range when the set is expanded.
static void bracket(translation *t)
{
    put(t, "[");
    if (++t->p < t->end && *t->p == '^') {
        put(t, "^");
        t->p++;
    }
    if (t->p < t->end && *t->p == ']')
        refuse(t, "[]");
    bool first = true, dash = false;
    while (!t->rc && t->p < t->end && *t->p != ']') {
        const char *before = t->p;
        bool set = false;
        if (*t->p == '\\')
            set = escape(t, true);
        else if (*t->p == '[')
            refuse(t, "[ inside a class");
        else if (ahead(t, "&&"))
            refuse(t, "&&");
        else
            put_bytes(t, t->p++, 1);
        if (set && (dash || (t->p + 1 < t->end && t->p[0] == '-' && t->p[1] != ']')))
            refuse(t, "- next to a set in a class");
        dash = *before == '-' && !first;
        first = false;
    }
    if (!t->rc && t->p >= t->end)
        refuse(t, "[ without ]");
    put(t, "]");
    t->p++;
}

// At '('.
static void group(translation *t)
{
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"};
    if (ahead(t, "(?i)") && t->p == t->start) { // elsewhere Ruby scopes it differently
        put(t, "(?i)");
        t->p += 4;
        return;
    }
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (ahead(t, same[i])) {
            put(t, same[i]);
            t->p += strlen(same[i]);
            return;
        }
    if (ahead(t, "(?") || ahead(t, "(*")) {
        refuse(t, "(? or (*");
        return;
    }
    put(t, "(?:"); // captures are not used
    t->p++;
}

// At '{': {n}, {n,}, {n,m}; Ruby also has {,m}, and reads anything else as text.
static void braces(translation *t)
{
    const char *q = t->p + 1, *low = q;
    while (q < t->end && *q >= '0' && *q <= '9')
        q++;
    size_t digits = (size_t)(q - low);
    bool comma = q < t->end && *q == ',';
    const char *high = q += comma;
    while (q < t->end && *q >= '0' && *q <= '9')
        q++;
    if (q >= t->end || *q != '}' || (!digits && q == high)) {
        put(t, "\\{");
        t->p++;
        return;
    }
    if (q + 1 < t->end && q[1] == '+') { // possessive in PCRE2, a second repeat in Ruby
        t->p = q + 1;
        refuse(t, "+ after {n,m}");
        return;
    }
    put(t, digits ? "{" : "{0");
    put_bytes(t, low, (size_t)(q + 1 - low));
    t->p = q + 1;
}

// Caseless, Oniguruma also matches what folds to several letters (ss and sharp s, ff and the
// ligature, anything beyond ASCII to be safe); PCRE2 folds one to one.
static void check_caseless(translation *t)
{
    static const char folds[][3] = {"ss", "ff", "fi", "fl", "st"};
    bool caseless = false, trouble = false;
    for (const char *p = t->start; p < t->end; p++) {
        caseless = caseless || (t->end - p > 2 && memcmp(p, "(?i", 3) == 0);
        trouble = trouble || (*p & 0x80);
        for (int i = 0; i < 5 && p + 1 < t->end; i++)
            trouble = trouble || ((p[0] | 0x20) == folds[i][0] && (p[1] | 0x20) == folds[i][1]);
    }
    if (caseless && trouble)
        refuse(t, "(?i with letters that fold to several");
}

static int translate(translation *t)
{
    put(t, "");
    check_caseless(t);
    while (!t->rc && t->p < t->end) {
        switch (*t->p) {
        case '\\': escape(t, false); break;
        case '[': bracket(t); break;
        case '(': group(t); break;
        case '{': braces(t); break;
        case '\0': refuse(t, "NUL"); break;
        default: put_bytes(t, t->p++, 1);
        }
    }
    return t->rc;
}

// `options` are added to those of all patterns.
static int compile(tok_code *c, const dsc_buffer *pattern, uint32_t options, dsc_error *err)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 100);
    int number;
    PCRE2_SIZE offset;
    c->code =
        pcre2_compile((PCRE2_SPTR)pattern->data, pattern->length,
                      options | PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                      &number, &offset, context);
    pcre2_compile_context_free(context);
    if (!c->code) {
        PCRE2_UCHAR text[160] = "";
        pcre2_get_error_message(number, text, sizeof text);
        return dsc_fail(err, DSC_EINPUT, "bad regex: %s", (const char *)text);
    }
    c->jit = pcre2_jit_compile(c->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD) == 0;
    return DSC_OK;
}

int dsc_tok_regex_new(tok_regex **out, const char *pattern, size_t length, dsc_error *err)
{
    *out = NULL;
    if (length == 0 || length > PATTERN_MAX)
        return dsc_fail(err, DSC_EINPUT, "a regex must have 1 to %d bytes, not %zu", PATTERN_MAX,
                        length);
    translation t = {.p = pattern, .start = pattern, .end = pattern + length, .err = err};
    tok_regex *r = NULL;
    int rc = translate(&t);
    if (!rc)
        rc = dsc_new(&r, 1, err);
    if (!rc)
        rc = compile(&r->search, &t.out, 0, err);
    if (!rc)
        rc = compile(&r->here, &t.out, PCRE2_ANCHORED, err);
    dsc_buffer_fini(&t.out);
    if (rc) {
        dsc_tok_regex_free(r);
        return rc;
    }
    r->is_gpt2 = length == strlen(dsc_tok_gpt2_pattern) &&
                 memcmp(pattern, dsc_tok_gpt2_pattern, length) == 0;
    *out = r;
    return DSC_OK;
}

bool dsc_tok_regex_tiles(const tok_regex *r)
{
    return r->is_gpt2; // every letter, digit, space and other character begins a match
}

void dsc_tok_regex_free(tok_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->search.code);
    pcre2_code_free(r->here.code);
    free(r);
}
