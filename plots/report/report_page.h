// SPDX-License-Identifier: Apache-2.0
// What a report is written on: HTML or LaTeX. The story is told once, in blocks and texts; a kind
// of page knows what stands around a block, how a text is escaped, and what pictures it takes.
#ifndef DSC_PLOTS_REPORT_PAGE_H
#define DSC_PLOTS_REPORT_PAGE_H

#include "plots/draw/text.h"
#include "plots/figure/figure.h"

typedef enum dsc_block {
    DSC_CHAPTER, // headings
    DSC_HEADING,
    DSC_SUBHEADING,
    DSC_PARAGRAPH,
    DSC_SOFT, // a paragraph of less weight
    DSC_STRONG,
    DSC_BOX, // the best configuration
    DSC_LIST,
    DSC_ITEM,
    DSC_PAIRS, // keys and values
    DSC_KEY,
    DSC_VALUE,
    DSC_CODE, // a value as it was typed
    DSC_BLOCKS
} dsc_block;

typedef struct dsc_page dsc_page;

typedef struct dsc_page_table {
    const dsc_table *table;
    const size_t *row, *column;
    size_t rows, columns;
    const char *caption;
    const char *folded; // the words that unfold it; NULL: it is open
} dsc_page_table;

typedef struct dsc_page_type {
    const char *open[DSC_BLOCKS], *close[DSC_BLOCKS];
    const char *terminal; // of pictures
    double width;         // of pictures, 0: the figure's own; narrow: a second one, 0: none
    double narrow;
    bool varying; // long tables without the columns that are the same in all rows
    void (*begin)(dsc_writer *w, const char *title);
    void (*end)(dsc_writer *w);
    void (*text)(dsc_writer *w, const char *text);  // escaped
    void (*section)(dsc_writer *w, const char *id); // NULL: its end
    void (*link)(dsc_writer *w, const char *id, const char *text);
    void (*merit)(dsc_writer *w, const char *label, const char *value);
    void (*merits)(dsc_writer *w, bool open); // around those
    void (*table)(dsc_writer *w, const dsc_page_table *t);
    // Figure `number` from its picture(s); takes what it keeps of `wide`. `narrow` may be NULL.
    int (*figure)(dsc_page *p, dsc_drawing *wide, const dsc_drawing *narrow);
} dsc_page_type;

extern const dsc_page_type dsc_page_html, dsc_page_latex;

struct dsc_page {
    dsc_writer w;
    const dsc_page_type *type;
    size_t figures;      // so far
    const char *stem;    // LaTeX: of the pictures' names, [A-Za-z0-9-]
    dsc_buffer *picture; // LaTeX: [figures] the pictures, to be written beside the page
};

void dsc_page_fini(dsc_page *p);

void dsc_open(dsc_page *p, dsc_block block);
void dsc_close(dsc_page *p, dsc_block block);
// Escaped text.
void dsc_say(dsc_page *p, const char *format, ...) DSC_PRINTF(2, 3);
void dsc_say_block(dsc_page *p, dsc_block block, const char *format, ...) DSC_PRINTF(3, 4);
void dsc_say_pair(dsc_page *p, const char *key, dsc_block value_block, const char *value);
// A number for reading: integers as they are, reals with at most four decimals, texts, and lists
// joined by spaces.
void dsc_say_cell(dsc_page *p, const dsc_cell *c);
void dsc_put_reading(dsc_writer *w, const dsc_cell *c); // the same, not escaped

// "figure-3.pdf" behind the page's stem.
void dsc_put_picture_name(dsc_writer *w, const dsc_page *p, size_t number);

#endif
