// SPDX-License-Identifier: Apache-2.0
// Pieces of the report's page.
#ifndef DSC_PLOTS_REPORT_HTML_H
#define DSC_PLOTS_REPORT_HTML_H

#include "plots/text.h"

extern const char dsc_report_css[];

// A number for reading: integers as they are, reals with at most four decimals, texts, and lists
// joined by spaces. Escaped.
void dsc_put_html_cell(dsc_writer *w, const dsc_cell *c);

// A table of the given rows and columns of t, in a box that scrolls sideways; `caption` is plain
// text. Columns that hold numbers are aligned right.
void dsc_put_html_table(dsc_writer *w, const dsc_table *t, const size_t *row, size_t rows,
                        const size_t *column, size_t columns, const char *caption);

// gnuplot's svg as an element of the page: no prolog, namespaces, title or description; every id
// and every reference to one behind `prefix` ([a-z0-9-]); role img, `label` as its name.
// DSC_EIO when the picture is no svg.
int dsc_put_inline_svg(dsc_writer *w, const dsc_buffer *svg, const char *prefix, const char *class,
                       const char *label);

#endif
