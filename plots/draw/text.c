// SPDX-License-Identifier: Apache-2.0
// Decodes UTF-8 (RFC 3629), replaces characters that are invalid or invisible, and escapes the
// rest for gnuplot and HTML.
#include "plots/draw/text.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void dsc_put_bytes(dsc_writer *w, const char *bytes, size_t length)
{
    if (!w->rc)
        w->rc = dsc_buffer_append(w->to, bytes, length, w->err);
}

void dsc_vput(dsc_writer *w, const char *format, va_list args)
{
    char *text = NULL;
    if (w->rc)
        return;
    int n = vasprintf(&text, format, args);
    if (n < 0) {
        w->rc = dsc_fail(w->err, DSC_ENOMEM, "out of memory");
        return;
    }
    dsc_put_bytes(w, text, (size_t)n);
    free(text);
}

void dsc_put(dsc_writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dsc_vput(w, format, args);
    va_end(args);
}

bool dsc_next_name(const char **names, char name[DSC_NAME])
{
    size_t n = strcspn(*names, " ");
    snprintf(name, DSC_NAME, "%.*s", (int)n, *names);
    *names += n + strspn(*names + n, " ");
    return n > 0;
}

// The length of the well-formed UTF-8 sequence at s (shortest form, no surrogates), its code point
// in *code; 0 if there is none.
static size_t utf8_sequence(const unsigned char *s, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    size_t n = s[0] >= 0xf8 ? 0 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
    if (!n)
        return 0;
    uint32_t c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) // also stops at the NUL
            return 0;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *code = c;
    return n;
}

// Whether a character moves the cursor or reorders text instead of being visible; U+FFFE and U+FFFF
// are not allowed in XML.
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
           (c & 0xfffe) == 0xfffe;
}

const char *dsc_next_character(const char **text, size_t *length, uint32_t *code)
{
    const char *at = *text;
    uint32_t read = 0;
    size_t n = utf8_sequence((const unsigned char *)at, &read);
    bool control = n && is_control(read);
    *text += n ? n : 1;
    *length = !n ? 3 : control ? 1 : n;
    if (code)
        *code = !n ? 0xfffd : control ? ' ' : read;
    return !n ? "\xef\xbf\xbd" : control ? " " : at;
}

typedef const char *(*escape_fn)(char);

static void put_escaped(dsc_writer *w, const char *text, escape_fn escape)
{
    while (*text) {
        size_t n;
        const char *c = dsc_next_character(&text, &n, NULL), *e = escape(*c);
        dsc_put_bytes(w, e ? e : c, e ? strlen(e) : n);
    }
}

// A quote is not doubled: gnuplot 5.4 takes '' for the end of a string that begins with it ('''x')
// and in runs ('x''''y'). U+2019 looks the same and ends nothing.
static const char *gnuplot_escape(char c)
{
    return c == '\'' ? "\xe2\x80\x99" : NULL;
}

static const char *html_escape(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void dsc_put_quoted(dsc_writer *w, const char *text)
{
    dsc_put_bytes(w, "'", 1);
    put_escaped(w, text, gnuplot_escape);
    dsc_put_bytes(w, "'", 1);
}

void dsc_put_html(dsc_writer *w, const char *text)
{
    put_escaped(w, text, html_escape);
}

size_t dsc_text_length(const char *text)
{
    size_t count = 0, n;
    while (*text) {
        dsc_next_character(&text, &n, NULL);
        count++;
    }
    return count;
}

bool dsc_text_wrap(const char *text, size_t *cursor, size_t width, char *line, size_t size)
{
    const char *start = text + *cursor;
    while (*start == ' ')
        start++;
    const char *at = start, *space = NULL;
    size_t count = 0, n;
    while (*at && count < width && (size_t)(at - start) + 8 < size) {
        if (*at == ' ')
            space = at;
        dsc_next_character(&at, &n, NULL);
        count++;
    }
    if (*at && *at != ' ' && space)
        at = space;
    size_t length = (size_t)(at - start);
    memcpy(line, start, length);
    line[length] = '\0';
    *cursor = (size_t)(at - text);
    return length > 0;
}

bool dsc_is_missing(const dsc_cell *c)
{
    return c->type == DSC_CELL_TEXT ? !*c->text : c->type == DSC_CELL_REAL && isnan(c->r);
}

void dsc_put_cell(dsc_writer *w, const dsc_cell *c)
{
    char number[DSC_NUMBER_TEXT];
    if (c->absent)
        return;
    switch (c->type) {
    case DSC_CELL_INT: dsc_put(w, "%" PRId64, c->i); break;
    case DSC_CELL_REAL:
        dsc_number_text(c->r, number);
        dsc_put(w, "%s", number);
        break;
    case DSC_CELL_TEXT: dsc_put(w, "%s", c->text); break;
    case DSC_CELL_LIST:
        for (int64_t i = 0; i < c->i; i++) {
            dsc_number_text(dsc_cell_element(c, i), number);
            dsc_put(w, "%s%s", i ? ";" : "", number);
        }
        break;
    }
}
