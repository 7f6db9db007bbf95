// SPDX-License-Identifier: Apache-2.0
// A fast JSON parser (RFC 8259). Whatever it accepts, Jansson accepts with the same value, to the
// bit. Malformed, rare or doubtful texts are left to Jansson, so that strictness and messages are
// Jansson's alone. It is fast because it examines strings eight bytes at a time and copies them in
// runs.
#include "base/json_quick.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/utf8.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 64,           // Jansson: 2048
    NAME_MAX_BYTES = 1 << 10, // longest name of an object's member
    NUMBER_MAX_BYTES = 1 << 10,
    DIGITS_MAX = 18,   // an integer with this many digits fits in 64 bits
    EXACT_DIGITS = 15, // a decimal with this many digits times or over 10^EXACT_POWER
    EXACT_POWER = 22,  // is rounded once: Clinger 1990, doi:10.1145/93542.93557
};

typedef struct text_view {
    const char *bytes;
    int64_t length;
} text_view;

typedef struct quick {
    const char *p, *end;
    size_t values; // number of values that may follow: as many as brackets and commas
    int depth;
    dsc_buffer text; // a string with escapes
} quick;

// Sets bit 7 of each of eight bytes that is '"', '\\', a control character or not ASCII.
static uint64_t special(uint64_t x)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t quote = x ^ ones * '"', slash = x ^ ones * '\\';
    // (y - ones) & ~y & high finds all zero bytes, and possibly bytes above the first one.
    uint64_t zero = ((quote - ones) & ~quote) | ((slash - ones) & ~slash);
    uint64_t control = (x - ones * 0x20) & ~x;
    return (zero | control | x) & high;
}

static const char *plain_run(const char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t x;
        memcpy(&x, p, 8);
        if (special(x))
            break;
    }
    while (p < end && (unsigned char)*p >= 0x20 && !(*p & 0x80) && *p != '"' && *p != '\\')
        p++;
    return p;
}

// Four hex digits at p, or -1.
static int32_t hex4(const char *p, const char *end)
{
    int32_t x = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], letter = c | 0x20;
        int digit = c >= '0' && c <= '9'             ? c - '0'
                    : letter >= 'a' && letter <= 'f' ? letter - 87
                                                     : -1;
        if (digit < 0)
            return -1;
        x = x << 4 | digit;
    }
    return x;
}

// Decodes \uXXXX, or two of them for a character beyond U+FFFF. False for lone surrogates.
static bool take_code(quick *q, char out[4], size_t *length)
{
    int32_t c = hex4(q->p + 2, q->end), low;
    q->p += 6;
    if (c < 0 || (c >= 0xdc00 && c <= 0xdfff))
        return false;
    if (c >= 0xd800 && c <= 0xdbff) {
        if (q->end - q->p < 6 || q->p[0] != '\\' || q->p[1] != 'u')
            return false;
        low = hex4(q->p + 2, q->end);
        if (low < 0xdc00 || low > 0xdfff)
            return false;
        q->p += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; // bytes after the first
    static const unsigned char lead[4] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | c >> 6 * more);
    for (int i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
    *length = (size_t)more + 1;
    return true;
}

static bool take_escape(quick *q)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char code[4];
    size_t n = 1;
    if (q->end - q->p < 2)
        return false;
    const char *which = memchr(from, q->p[1], sizeof from - 1);
    if (which) {
        code[0] = to[which - from];
        q->p += 2;
    } else if (q->p[1] != 'u' || !take_code(q, code, &n)) {
        return false;
    }
    return !dsc_buffer_append(&q->text, code, n, NULL);
}

// Parses the string at q->p, which is a quote: returns a view into the line or into q->text.
static bool take_string(quick *q, text_view *out)
{
    const char *start = ++q->p; // start of the bytes not yet copied
    bool wide = false;
    q->text.length = 0;
    bool copied = false;
    for (;;) {
        const char *p = plain_run(q->p, q->end);
        while (p < q->end && (*p & 0x80)) {
            p++;
            wide = true;
        }
        if (p > q->p) {
            q->p = p;
            continue;
        }
        if (p == q->end || (unsigned char)*p < 0x20)
            return false;
        if (*p == '"')
            break;
        if (dsc_buffer_append(&q->text, start, (size_t)(p - start), NULL) || !take_escape(q))
            return false;
        copied = true;
        start = q->p;
    }
    if (copied && dsc_buffer_append(&q->text, start, (size_t)(q->p - start), NULL))
        return false;
    *out = copied ? (text_view){q->text.data, (int64_t)q->text.length}
                  : (text_view){start, q->p - start};
    q->p++;
    // Escapes stand for whole characters, so the string is UTF-8 if the bytes between them are.
    return !wide || dsc_bad_utf8(out->bytes, out->length) < 0;
}

static size_t digits(const char **p, const char *end, uint64_t *value)
{
    const char *start = *p;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
        *value = *value * 10 + (uint64_t)(**p - '0'); // may wrap: then there are too many digits
    return (size_t)(*p - start);
}

// A well-formed number, as Jansson converts it; NULL when it is out of range or very long.
static json_t *long_number(const char *start, size_t length, bool real)
{
    char text[NUMBER_MAX_BYTES];
    if (length >= sizeof text)
        return NULL;
    memcpy(text, start, length);
    text[length] = '\0';
    if (real) {
        const double x = dsc_strtod(text, NULL);
        return isfinite(x) ? json_real(x) : NULL;
    }
    errno = 0;
    const long long n = strtoll(text, NULL, 10);
    return errno ? NULL : json_integer(n);
}

// Parses a number; one with few digits has a value that is certain.
static json_t *take_number(quick *q)
{
    static const double power[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *start = q->p, *p = start;
    uint64_t value = 0, exponent = 0;
    bool minus = *p == '-', minus_exponent = false;
    p += minus;
    const char *whole = p;
    size_t n = digits(&p, q->end, &value), fraction = 0, e = 0;
    if (n == 0 || (n > 1 && *whole == '0'))
        return NULL;
    bool real = p < q->end && (*p == '.' || *p == 'e' || *p == 'E');
    if (real && *p == '.') {
        p++;
        fraction = digits(&p, q->end, &value);
        if (fraction == 0)
            return NULL;
    }
    if (p < q->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < q->end && (*p == '-' || *p == '+'))
            minus_exponent = *p++ == '-';
        e = digits(&p, q->end, &exponent);
        if (e == 0)
            return NULL;
    }
    q->p = p;
    if (!real && n <= DIGITS_MAX)
        return json_integer(minus ? -(json_int_t)value : (json_int_t)value);
    if (real && n + fraction <= EXACT_DIGITS && e <= 3 && FLT_EVAL_METHOD == 0) {
        int ten = (int)(minus_exponent ? -(int64_t)exponent : (int64_t)exponent) - (int)fraction;
        if (ten >= -EXACT_POWER && ten <= EXACT_POWER) {
            double x = (double)value;
            x = ten < 0 ? x / power[-ten] : x * power[ten];
            return json_real(minus ? -x : x);
        }
    }
    return long_number(start, (size_t)(p - start), real);
}

// Skips the bracket or comma at q->p, after which another value may follow.
static bool pass(quick *q)
{
    q->p++;
    return q->values-- > 1;
}

static char next(quick *q) // the next character after white space; 0 at the end
{
    while (q->p < q->end && (*q->p == ' ' || *q->p == '\t' || *q->p == '\n' || *q->p == '\r'))
        q->p++;
    return q->p < q->end ? *q->p : '\0';
}

static json_t *take_value(quick *q);

static bool fill_array(quick *q, json_t *array)
{
    if (next(q) == ']')
        return true;
    for (;;) {
        if (json_array_append_new(array, take_value(q)))
            return false;
        char c = next(q);
        if (c == ']')
            return true;
        if (c != ',' || !pass(q))
            return false;
    }
}

static bool fill_object(quick *q, json_t *object)
{
    if (next(q) == '}')
        return true;
    for (;;) {
        char name[NAME_MAX_BYTES];
        text_view view;
        if (next(q) != '"' || !take_string(q, &view) || view.length >= NAME_MAX_BYTES ||
            memchr(view.bytes, '\0', (size_t)view.length))
            return false;
        memcpy(name, view.bytes, (size_t)view.length);
        name[view.length] = '\0';
        if (json_object_get(object, name) || next(q) != ':')
            return false;
        q->p++;
        if (json_object_set_new_nocheck(object, name, take_value(q)))
            return false;
        char c = next(q);
        if (c == '}')
            return true;
        if (c != ',' || !pass(q))
            return false;
    }
}

static json_t *take_word(quick *q, const char *word, json_t *value)
{
    size_t n = strlen(word);
    if ((size_t)(q->end - q->p) < n || memcmp(q->p, word, n) != 0)
        return NULL;
    q->p += n;
    return value;
}

// Parses the array or object that begins at q->p into a new, empty value.
static json_t *take_nested(quick *q, json_t *value)
{
    bool whole = value && q->depth < DEPTH_MAX && pass(q);
    q->depth++;
    if (whole)
        whole = json_is_object(value) ? fill_object(q, value) : fill_array(q, value);
    q->depth--;
    if (!whole) {
        json_decref(value);
        return NULL;
    }
    q->p++; // the bracket
    return value;
}

// Parses the value after white space at q->p; NULL: left to Jansson.
static json_t *take_value(quick *q)
{
    text_view text;
    switch (next(q)) {
    case '{': return take_nested(q, json_object());
    case '[': return take_nested(q, json_array());
    case '"':
        return take_string(q, &text) ? json_stringn_nocheck(text.bytes, (size_t)text.length) : NULL;
    case 't': return take_word(q, "true", json_true());
    case 'f': return take_word(q, "false", json_false());
    case 'n': return take_word(q, "null", json_null());
    default: return take_number(q);
    }
}

json_t *dsc_json_quick(const char *bytes, size_t length, size_t values_max)
{
    quick q = {.p = bytes, .end = bytes + length, .values = values_max};
    json_t *value = take_value(&q);
    next(&q);
    if (q.p < q.end) {
        json_decref(value);
        value = NULL;
    }
    dsc_buffer_fini(&q.text);
    return value;
}
