// SPDX-License-Identifier: Apache-2.0
// Text on its way into another language: gnuplot scripts and HTML.
//
// A dsc_writer appends to a buffer and remembers the first failure, so that code which writes many
// short pieces checks once, at the end.
#ifndef DSC_PLOTS_TEXT_H
#define DSC_PLOTS_TEXT_H

#include "base/table.h"

#include <stdbool.h>

typedef struct dsc_writer {
    dsc_buffer *to;
    dsc_error *err;
    int rc; // the first failure; nothing is written after it
} dsc_writer;

void dsc_put(dsc_writer *w, const char *format, ...) DSC_PRINTF(2, 3);
void dsc_put_bytes(dsc_writer *w, const char *bytes, size_t length);

// `text` (any bytes) as clean UTF-8: control characters, line and paragraph separators and
// direction overrides become a space, bytes that are not UTF-8 become U+FFFD.
void dsc_put_clean(dsc_writer *w, const char *text);

// `text` as a gnuplot string: clean, in single quotes, its own single quotes as U+2019. Between
// single quotes gnuplot expands neither backquotes nor backslashes nor macros.
void dsc_put_quoted(dsc_writer *w, const char *text);

// `text` for HTML content and double-quoted attributes: clean, & < > " ' as entities.
void dsc_put_html(dsc_writer *w, const char *text);

// Characters (code points) in `text` after cleaning.
size_t dsc_text_length(const char *text);

// Copies the line of `text` that starts at *cursor (bytes; 0 first) and holds at most `width`
// characters, broken at a space where there is one, into line[size]; advances *cursor. False when
// nothing is left. A word longer than the width is cut.
bool dsc_text_wrap(const char *text, size_t *cursor, size_t width, char *line, size_t size);

// A cell as text: numbers as in TSV, lists joined by ';'. Appended to w, uncleaned.
void dsc_put_cell(dsc_writer *w, const dsc_cell *c);
// Whether a row has nothing there: a parameter of other methods.
bool dsc_is_missing(const dsc_cell *c);

#endif
