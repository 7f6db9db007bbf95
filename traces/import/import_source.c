// SPDX-License-Identifier: Apache-2.0
// Cuts a JSON document into its values by brackets and strings alone. Each value is then parsed in
// full, so invalid JSON between two cuts is found.
#include "traces/import/import_source.h"

#include <string.h>

void dsc_import_source_fini(dsc_import_source *s)
{
    dsc_buffer_fini(&s->value);
}

bool dsc_import_source_broken(const dsc_import_source *s)
{
    return s->mode == DSC_SOURCE_BROKEN || dsc_input_broken(s->in);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// The byte at s->at, or '\0' at the end of the line (a line contains no NUL).
static char peek(const dsc_import_source *s)
{
    return s->at < s->line.length ? s->line.bytes[s->at] : '\0';
}

static void take(dsc_import_source *s)
{
    s->column += (s->line.bytes[s->at++] & 0xc0) != 0x80; // the first byte of a UTF-8 character
}

static int next_line(dsc_import_source *s, dsc_error *err)
{
    s->at = 0;
    s->column = 0;
    int rc = dsc_input_line(s->in, &s->line, err);
    if (rc && s->mode > DSC_SOURCE_LINES)
        s->mode = DSC_SOURCE_BROKEN; // no later line can be read from inside a value
    return rc;
}

// Fails at the place after `column` characters of the line.
static int broken(dsc_import_source *s, int64_t line, int64_t column, const char *what,
                  dsc_error *err)
{
    s->mode = DSC_SOURCE_BROKEN;
    return dsc_fail(err, DSC_EINPUT, "%s:%lld:%lld: %s", dsc_input_name(s->in), (long long)line,
                    (long long)column + 1, what);
}

// Determines the kind of file by its first line.
static void settle(dsc_import_source *s, bool documents)
{
    s->mode = DSC_SOURCE_LINES;
    while (is_space(peek(s)))
        take(s);
    char c = peek(s);
    if (!documents || (c != '[' && c != '{'))
        return;
    if (c == '[') {
        s->mode = DSC_SOURCE_LIST;
        s->opened = s->line.number;
        s->opened_column = s->column;
        take(s);
        return;
    }
    size_t rest = s->at + 1;
    while (rest < s->line.length && is_space(s->line.bytes[rest]))
        rest++;
    if (rest == s->line.length)
        s->mode = DSC_SOURCE_VALUES;
}

// Skips to the first character of a value or to a separator of the list. At the end of the input
// s->line.bytes is NULL.
static int skip_space(dsc_import_source *s, dsc_error *err)
{
    int rc = DSC_OK;
    while (!rc && s->line.bytes && !peek(s))
        rc = next_line(s, err);
    while (!rc && s->line.bytes && is_space(peek(s))) {
        take(s);
        while (!rc && s->line.bytes && !peek(s))
            rc = next_line(s, err);
    }
    return rc;
}

// The state of the scan of a value.
typedef struct scan {
    int64_t depth;
    bool in_string, escaped;
} scan;

// Returns whether the value ends before c (in a list) or with c (otherwise).
static bool ends(const dsc_import_source *s, scan *at, char c)
{
    if (at->in_string) {
        if (!at->escaped && c == '"')
            at->in_string = false;
        at->escaped = !at->escaped && c == '\\';
        return false;
    }
    bool list = s->mode == DSC_SOURCE_LIST;
    if (list && at->depth == 0 && (c == ',' || c == ']'))
        return true;
    at->in_string = c == '"';
    at->depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    return !list && at->depth <= 0 && (c == ']' || c == '}');
}

// Copies the value that starts here. If the input ends inside it, the parser reports the error.
static int copy_value(dsc_import_source *s, dsc_error *err)
{
    scan at = {0};
    int rc = DSC_OK;
    s->value.length = 0;
    while (!rc && s->line.bytes) {
        size_t first = s->at;
        bool end = false;
        while (!end && peek(s)) {
            end = ends(s, &at, peek(s));
            if (!end || s->mode != DSC_SOURCE_LIST)
                take(s);
        }
        rc = dsc_buffer_append(&s->value, s->line.bytes + first, s->at - first, err);
        if (end || rc)
            return rc;
        if (s->value.length > DSC_INPUT_LINE_MAX)
            return broken(s, s->line.number, s->column, "the value is longer than 128 MiB", err);
        int64_t number = s->line.number;
        rc = next_line(s, err);
        for (; !rc && s->line.bytes && number < s->line.number; number++)
            rc = dsc_buffer_puts(&s->value, "\n", err); // blank lines keep line numbers correct
    }
    return rc;
}

// Between the elements of a list: checks the next element's first character, or ends the list.
static int skip_separator(dsc_import_source *s, dsc_error *err)
{
    if (!s->line.bytes)
        return broken(s, s->opened, s->opened_column, "the list that begins here is not closed",
                      err);
    if (s->seen == 0 && peek(s) == ']') {
        s->mode = DSC_SOURCE_CLOSED;
        take(s);
        return DSC_OK;
    }
    if (peek(s) == ',' || peek(s) == ']')
        return broken(s, s->line.number, s->column, "an element of the list is missing", err);
    return DSC_OK;
}

// After an element: consumes its comma, or the end of the list.
static void close_element(dsc_import_source *s)
{
    s->seen++;
    if (!s->line.bytes)
        return; // the next call finds the end
    s->mode = peek(s) == ']' ? DSC_SOURCE_CLOSED : DSC_SOURCE_LIST;
    take(s);
}

static int next_value(dsc_import_source *s, dsc_line *out, dsc_error *err)
{
    int rc = skip_space(s, err);
    if (!rc && s->mode == DSC_SOURCE_LIST)
        rc = skip_separator(s, err);
    if (!rc && s->mode == DSC_SOURCE_CLOSED)
        rc = skip_space(s, err);
    if (rc || !s->line.bytes)
        return rc;
    if (s->mode == DSC_SOURCE_CLOSED)
        return broken(s, s->line.number, s->column, "unexpected text after the end of the list",
                      err);
    out->number = s->line.number;
    out->column = s->column;
    rc = copy_value(s, err);
    if (!rc && s->mode == DSC_SOURCE_LIST)
        close_element(s);
    out->bytes = s->value.data;
    out->length = s->value.length;
    return rc;
}

int dsc_import_source_next(dsc_import_source *s, bool documents, dsc_line *out, dsc_error *err)
{
    int rc = DSC_OK;
    *out = (dsc_line){0};
    if (s->mode == DSC_SOURCE_NEW || s->mode == DSC_SOURCE_LINES) {
        rc = next_line(s, err);
        if (rc || !s->line.bytes)
            return rc;
        if (s->mode == DSC_SOURCE_NEW)
            settle(s, documents);
        if (s->mode == DSC_SOURCE_LINES)
            *out = s->line;
    }
    return s->mode == DSC_SOURCE_LINES ? rc : next_value(s, out, err);
}
