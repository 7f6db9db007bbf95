// SPDX-License-Identifier: Apache-2.0
// Escapes text for gnuplot scripts and HTML.
//
// A dsc_writer appends to a buffer and keeps the first failure, so that code that writes many short
// pieces checks once, at the end.
#ifndef DSC_PLOTS_TEXT_H
#define DSC_PLOTS_TEXT_H

#include "base/table.h"

#include <stdarg.h>
#include <stdbool.h>

typedef struct dsc_writer {
    dsc_buffer *to;
    dsc_error *err;
    int rc; // the first failure; nothing is written after it
} dsc_writer;

void dsc_put(dsc_writer *w, const char *format, ...) DSC_PRINTF(2, 3);
void dsc_vput(dsc_writer *w, const char *format, va_list args);
void dsc_put_bytes(dsc_writer *w, const char *bytes, size_t length);

// Returns the next character of *text (which is not at its end) as clean UTF-8 of `length` bytes
// and advances *text; `code` may be NULL. Control characters, line and paragraph separators and
// direction overrides become a space, bytes that are not UTF-8 become U+FFFD.
const char *dsc_next_character(const char **text, size_t *length, uint32_t *code);

// Writes `text` as a gnuplot string: clean, in single quotes, its own single quotes as U+2019.
// Between single quotes gnuplot expands neither backquotes nor backslashes nor macros.
void dsc_put_quoted(dsc_writer *w, const char *text);

// Writes `text` for HTML content and double-quoted attributes: clean, & < > " ' as entities.
void dsc_put_html(dsc_writer *w, const char *text);

// Copies the next name of a list separated by spaces and advances *names; false at its end.
enum { DSC_NAME = 128 };
bool dsc_next_name(const char **names, char name[DSC_NAME]);

// The number of characters (code points) in `text` after cleaning.
size_t dsc_text_length(const char *text);

// Copies the next line of `text`, from *cursor (bytes; 0 at first) and of at most `width`
// characters, into line[size] and advances *cursor. Lines break at a space if there is one; a word
// longer than the width is cut. Returns false at the end of the text.
bool dsc_text_wrap(const char *text, size_t *cursor, size_t width, char *line, size_t size);

// Writes a cell as in TSV: numbers in their shortest form, lists joined by ';'. Text is not
// escaped.
void dsc_put_cell(dsc_writer *w, const dsc_cell *c);
// Whether a cell is empty: a parameter of other methods.
bool dsc_is_missing(const dsc_cell *c);

#endif
