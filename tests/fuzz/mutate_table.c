// SPDX-License-Identifier: Apache-2.0
// Changes of text in lines: result tables, tables of shards, lists of trees and rates. A change
// moves or repeats a whole line or column, or puts another word or number in the place of a word.
#include "tests/fuzz/mutate.h"

#include <string.h>

enum { LINES = 256 };

typedef struct lines {
    fuzz_bytes line[LINES]; // without the newline; the last one has what is left
    size_t count;
} lines;

static lines cut_lines(fuzz_bytes text)
{
    lines l = {.count = 0};
    while (text.size && l.count + 1 < LINES)
        l.line[l.count++] = fuzz_before(&text, '\n');
    if (text.size)
        l.line[l.count++] = text;
    return l;
}

static void put_lines(const lines *l, dsc_buffer *out)
{
    for (size_t i = 0; i < l->count; i++) {
        fuzz_put(out, l->line[i].data, l->line[i].size);
        fuzz_put(out, "\n", 1);
    }
}

// Removes, repeats or exchanges lines.
static void change_order(fuzz_random *r, lines *l)
{
    const size_t a = fuzz_below(r, l->count), b = fuzz_below(r, l->count);
    const fuzz_bytes line = l->line[a];
    switch (fuzz_below(r, 3)) {
    case 0:
        memmove(l->line + a, l->line + a + 1, (l->count - a - 1) * sizeof *l->line);
        l->count--;
        break;
    case 1:
        if (l->count == LINES)
            return;
        memmove(l->line + b + 1, l->line + b, (l->count - b) * sizeof *l->line);
        l->line[b] = line;
        l->count++;
        break;
    default:
        l->line[a] = l->line[b];
        l->line[b] = line;
        break;
    }
}

// Appends the lines with a column removed or repeated. Comments stay.
static void put_columns(fuzz_random *r, const lines *l, dsc_buffer *out)
{
    const size_t column = fuzz_below(r, 12), times = fuzz_below(r, 2) ? 2 : 0;
    for (size_t i = 0; i < l->count; i++) {
        fuzz_bytes left = l->line[i];
        const bool comment = left.size && *left.data == '#';
        const uint8_t mark = left.size && memchr(left.data, '\t', left.size) ? '\t' : ',';
        bool first = true;
        for (size_t k = 0; left.size; k++) {
            const fuzz_bytes cell = comment ? left : fuzz_before(&left, mark);
            for (size_t n = k == column && !comment ? times : 1; n > 0; n--) {
                fuzz_put(out, &mark, first ? 0 : 1);
                fuzz_put(out, cell.data, cell.size);
                first = false;
            }
            if (comment)
                break;
        }
        fuzz_put(out, "\n", 1);
    }
}

static bool in_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("._-+", c));
}

// The word around or after a random place; empty where there is none.
static fuzz_bytes some_word(fuzz_random *r, fuzz_bytes text)
{
    size_t from = fuzz_below(r, text.size + 1), to;
    while (from < text.size && !in_word(text.data[from]))
        from++;
    while (from > 0 && from < text.size && in_word(text.data[from - 1]))
        from--;
    for (to = from; to < text.size && in_word(text.data[to]);)
        to++;
    return (fuzz_bytes){text.data + from, to - from};
}

// Appends the text with a word replaced by a number or by another word of the text.
static void put_word(fuzz_random *r, fuzz_bytes text, dsc_buffer *out)
{
    const fuzz_bytes word = some_word(r, text), other = some_word(r, text);
    const char *number = fuzz_number(r);
    fuzz_put(out, text.data, (size_t)(word.data - text.data));
    if (fuzz_below(r, 3))
        fuzz_put(out, number, strlen(number));
    else
        fuzz_put(out, other.data, other.size);
    const uint8_t *after = word.data + word.size;
    fuzz_put(out, after, (size_t)(text.data + text.size - after));
}

void fuzz_change_table(fuzz_random *r, fuzz_bytes part, dsc_buffer *out)
{
    lines l = cut_lines(part);
    const uint32_t kind = fuzz_below(r, 8);
    if (!l.count || kind == 0) {
        fuzz_change_bytes(r, part, out);
    } else if (kind < 3) {
        change_order(r, &l);
        put_lines(&l, out);
    } else if (kind < 4) {
        put_columns(r, &l, out);
    } else {
        put_word(r, part, out);
    }
}

void fuzz_change_lines(fuzz_random *r, fuzz_bytes part, dsc_buffer *out)
{
    lines l = cut_lines(part);
    const size_t chosen = l.count ? fuzz_below(r, l.count) : 0;
    const bool json = l.count && l.line[chosen].size && strchr("{[", *l.line[chosen].data);
    if (!json || !fuzz_below(r, 4)) {
        fuzz_change_table(r, part, out);
        return;
    }
    const fuzz_bytes before = {part.data, (size_t)(l.line[chosen].data - part.data)};
    const uint8_t *after = l.line[chosen].data + l.line[chosen].size;
    fuzz_put(out, before.data, before.size);
    fuzz_change_json(r, l.line[chosen], out);
    fuzz_put(out, after, (size_t)(part.data + part.size - after));
}
