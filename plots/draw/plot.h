// SPDX-License-Identifier: Apache-2.0
// A figure while it is drawn: what it is drawn of and into, its memory, and its first error.
//
// After the first error in `rc`, the functions that take a dsc_plot do nothing, so that a figure
// calls them one after the other and checks once, before it reads what they made.
#ifndef DSC_PLOTS_PLOT_H
#define DSC_PLOTS_PLOT_H

#include "plots/draw/drawing.h"
#include "plots/draw/text.h"

typedef struct dsc_plot {
    const char *name;  // the figure's name, for messages
    const char *needs; // the columns it reads, separated by spaces
    const void *spec;  // the figure's own constants
    const dsc_table *table;
    const dsc_figure_options *options;
    const char *terminal;
    dsc_writer script, finding;
    dsc_table *data;       // the plotted numbers
    dsc_table *marks;      // where values can be pointed at, or NULL
    dsc_table made;        // a table that the figure made of `table`, or none
    dsc_arena arena;       // memory and text that live until dsc_plot_fini
    dsc_buffer unfinished; // the text between dsc_text_begin and dsc_text_end
    dsc_writer text;
    dsc_error *err;
    int rc; // the first error
} dsc_plot;

// Starts a plot of `t` without a drawing: rows can be selected, grouped and read. Free it with
// dsc_plot_fini. `name` and `err` may be NULL.
dsc_plot dsc_plot_of(const dsc_table *t, const char *name, dsc_error *err);
void dsc_plot_fini(dsc_plot *p);

// Fails with DSC_EUSAGE: the table or the options do not allow the figure.
void dsc_refuse(dsc_plot *p, const char *format, ...) DSC_PRINTF(2, 3);

// Allocates n zeroed elements that the plot owns; NULL after an error.
void *dsc_plot_alloc(dsc_plot *p, size_t n, size_t size);
#define dsc_plot_new(p, type, n) ((type *)dsc_plot_alloc((p), (n), sizeof(type)))
// Allocates n numbers that are NaN.
double *dsc_plot_numbers(dsc_plot *p, size_t n);

// Formats a text that the plot owns; "" after an error.
const char *dsc_text(dsc_plot *p, const char *format, ...) DSC_PRINTF(2, 3);
// The same in pieces: what is written between the two calls. The calls are not nested.
dsc_writer *dsc_text_begin(dsc_plot *p);
const char *dsc_text_end(dsc_plot *p);

// --- the plotted numbers -----------------------------------------------------------------------

enum { DSC_DATA_COLUMNS = 16 }; // most columns

// Adds a column of texts or numbers; `help` may be NULL.
void dsc_data_text(dsc_plot *p, const char *name, const char *help);
void dsc_data_number(dsc_plot *p, const char *name, const char *help);
// Adds columns of numbers, whose names are separated by spaces.
void dsc_data_numbers(dsc_plot *p, const char *names);
// Adds a row: the texts in the order of the text columns, the numbers in that of the others. `text`
// may be NULL if there are no text columns.
void dsc_data_row(dsc_plot *p, const char *const *text, const double *number);

// --- values to point at ------------------------------------------------------------------------

// Adds a place on the canvas, what is drawn there ("llma, n = 2"; may be ""), and its value ("draft
// length 4: 1.73"). Nothing happens if x or y is NaN.
void dsc_mark(dsc_plot *p, double x, double y, const char *line, const char *value, ...)
    DSC_PRINTF(5, 6);

#endif
