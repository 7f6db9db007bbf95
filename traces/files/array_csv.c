// SPDX-License-Identifier: Apache-2.0
// Reads rows of decimals, one per line. Opening finds the lines and counts their fields; the
// numbers of a row are parsed on request.
#include "base/memory.h"
#include "traces/files/array_internal.h"
#include "base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The rest of a line.
typedef struct line {
    const char *at, *end; // without the line end
    bool more;            // another field follows, possibly empty
} line;

typedef struct field {
    const char *bytes;
    size_t length; // without surrounding blanks
} field;

// The line that begins at `byte`; *next is the byte where the following line begins.
static line line_at(const dsc_array *a, size_t byte, size_t *next)
{
    const char *at = (const char *)a->map + byte, *file_end = (const char *)a->map + a->bytes;
    const char *end = memchr(at, '\n', a->bytes - byte);
    *next = end ? byte + (size_t)(end - at) + 1 : a->bytes;
    end = end ? end : file_end;
    if (end > at && end[-1] == '\r')
        end--;
    return (line){at, end, true};
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(const char **at, const char **end)
{
    while (*at < *end && is_blank(**at))
        ++*at;
    while (*end > *at && is_blank((*end)[-1]))
        --*end;
}

// Takes the next field; false at the end of the line.
static bool next_field(line *l, char separator, field *out)
{
    if (!l->more)
        return false;
    const char *begin = l->at, *end;
    if (separator == ' ') { // l->end is trimmed: no field is empty
        for (end = begin; end < l->end && !is_blank(*end); end++)
            ;
        for (l->at = end; l->at < l->end && is_blank(*l->at); l->at++)
            ;
        l->more = l->at < l->end;
    } else {
        end = memchr(begin, separator, (size_t)(l->end - begin));
        l->more = end != NULL;
        end = end ? end : l->end;
        l->at = l->more ? end + 1 : end;
        trim(&begin, &end);
    }
    *out = (field){begin, (size_t)(end - begin)};
    return true;
}

static char find_separator(const line *l)
{
    static const char candidates[] = {',', ';', '\t'};
    for (size_t i = 0; i < sizeof candidates; i++)
        if (memchr(l->at, candidates[i], (size_t)(l->end - l->at)))
            return candidates[i];
    return ' ';
}

// Reads a decimal, "nan" or "inf", with or without a sign; refuses hexadecimal, which strtod
// accepts.
static bool read_number(field f, double *out)
{
    enum { LONGEST = 400 }; // DBL_MAX has 309 digits when written out
    char text[LONGEST + 1], *end;
    if (f.length == 0 || f.length > LONGEST || !memchr("+-.0123456789iInN", f.bytes[0], 17))
        return false;
    memcpy(text, f.bytes, f.length);
    text[f.length] = '\0';
    if (strpbrk(text, "xX("))
        return false;
    errno = 0;
    *out = dsc_strtod(text, &end);
    return end == text + f.length && !(errno == ERANGE && isinf(*out));
}

static int64_t count_fields(line l, char separator)
{
    field f;
    int64_t n = 0;
    while (next_field(&l, separator, &f))
        n++;
    return n;
}

// Returns whether no field is a number. A line with some numbers is a row with a mistake, not a
// header.
static bool is_header(line l, char separator)
{
    field f;
    double x;
    while (next_field(&l, separator, &f))
        if (read_number(f, &x))
            return false;
    return true;
}

// 1-based number of the line that begins at `byte`.
static int64_t line_number(const dsc_array *a, int64_t byte)
{
    int64_t n = 1;
    for (int64_t i = 0; i < byte; i++)
        n += a->map[i] == '\n';
    return n;
}

static int add_row(dsc_array *a, size_t *capacity, line l, dsc_error *err)
{
    int64_t begin = l.at - (const char *)a->map, n = count_fields(l, a->separator);
    if (a->rows == 0)
        a->columns = n;
    if (n != a->columns)
        return dsc_fail(err, DSC_EINPUT,
                        "%s:%" PRId64 ": %" PRId64 " numbers, but the earlier rows have %" PRId64,
                        a->path, line_number(a, begin), n, a->columns);
    int rc = dsc_resize(&a->start, capacity, (size_t)a->rows + 1, err);
    if (!rc)
        a->start[a->rows++] = begin;
    return rc;
}

int dsc_array_read_csv(dsc_array *a, dsc_error *err)
{
    size_t capacity = 0, next = 0;
    bool first = true;
    int rc = DSC_OK;
    if (a->bytes >= 3 && memcmp(a->map, "\xef\xbb\xbf", 3) == 0) // a byte order mark
        next = 3;
    while (!rc && next < a->bytes) {
        line l = line_at(a, next, &next), bare = l;
        trim(&bare.at, &bare.end);
        if (bare.at == bare.end || *bare.at == '#')
            continue;
        if (a->rows == 0)
            a->separator = find_separator(&bare);
        if (a->separator == ' ')
            l = bare;
        if (!first || !is_header(l, a->separator))
            rc = add_row(a, &capacity, l, err);
        first = false;
    }
    if (!rc && a->rows == 0)
        rc = dsc_fail(err, DSC_EINPUT, "%s: the file has no row of numbers", a->path);
    return rc;
}

int dsc_array_csv_row(const dsc_array *a, int64_t i, double *out, dsc_error *err)
{
    size_t next;
    field f;
    line l = line_at(a, (size_t)a->start[i], &next);
    int64_t j = 0;
    if (a->separator == ' ')
        trim(&l.at, &l.end);
    for (; j < a->columns && next_field(&l, a->separator, &f); j++)
        if (!read_number(f, &out[j]))
            return dsc_fail(err, DSC_EINPUT, "%s:%" PRId64 ": column %" PRId64 ": '%.*s' is %s",
                            a->path, line_number(a, a->start[i]), j + 1,
                            f.length > 40 ? 40 : (int)f.length, f.bytes,
                            f.length ? "not a number in the range of a double" : "empty");
    return DSC_OK;
}
