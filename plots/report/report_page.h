// SPDX-License-Identifier: Apache-2.0
// The output formats of a report: HTML and LaTeX. The report is written once, as blocks and text; a
// page type defines the markup around a block, how text is escaped, and the format of pictures.
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
    DSC_PAIRS, // pairs of a key and a value
    DSC_KEY,
    DSC_VALUE,
    DSC_CODE,   // a verbatim value
    DSC_MERITS, // a list of merits
    DSC_FIRST,  // what the first screen shows: a part of text, and a part with a figure
    DSC_PART,
    DSC_FIGURES, // figures that may stand side by side
    DSC_LINES,   // verbatim lines, each followed by line_end
    DSC_BLOCKS
} dsc_block;

typedef struct dsc_page dsc_page;

typedef struct dsc_page_table {
    const dsc_table *table;
    const size_t *row, *column;
    size_t rows, columns;
    const char *caption;
    const char *folded; // the label that unfolds it; NULL: it is open
} dsc_page_table;

// Markup with an id: what precedes the id, what follows it, and what ends it.
typedef struct dsc_page_part {
    const char *before, *after, *end; // NULL: the page has no such parts
} dsc_page_part;

// An entry of the table of contents.
typedef struct dsc_page_entry {
    const char *id, *title;
} dsc_page_entry;

typedef struct dsc_page_type {
    const char *open[DSC_BLOCKS], *close[DSC_BLOCKS];
    dsc_page_part section, link;
    const char *line_end; // in DSC_LINES
    const char *terminal; // gnuplot terminal of pictures
    double width;         // width of pictures, 0: the figure's own
    void (*begin)(dsc_writer *w, const char *title);
    void (*end)(dsc_writer *w);
    void (*text)(dsc_writer *w, const char *text); // escapes it
    void (*merit)(dsc_writer *w, const char *label, const char *value);
    void (*table)(dsc_page *p, const dsc_page_table *t);
    // Writes the figure p->figures; takes over the parts of the drawing it keeps.
    void (*figure)(dsc_page *p, dsc_drawing *d);
    // Writes the table of contents; NULL: the page has none.
    void (*contents)(dsc_writer *w, const dsc_page_entry *entry, size_t entries);
} dsc_page_type;

extern const dsc_page_type dsc_page_html, dsc_page_latex;
extern const char dsc_report_css[];    // the style sheet of the HTML page
extern const char dsc_report_script[]; // its script, without which the page is complete

struct dsc_page {
    dsc_writer w; // its rc is the first error of the page
    const dsc_page_type *type;
    dsc_writer plain; // the text between dsc_say_begin and dsc_say_end
    dsc_buffer unescaped;
    size_t figures;                      // number of figures so far
    const dsc_figure_type *first_figure; // the figure on the first screen, or NULL
    const dsc_table *first_of;           // the table that it shows
    size_t first_joined; // of results that are drawn together: the first of them, plus 1; or 0
    const char *stem;    // LaTeX: prefix of the pictures' names, [A-Za-z0-9-]
    dsc_buffer *picture; // LaTeX: [figures] the pictures, written as files of their own
    size_t pictures;     // capacity of `picture`
};

void dsc_page_fini(dsc_page *p);

// Writes gnuplot's SVG as an element with an accessible name. `shapes`: this is the first of the
// page and defines the shapes of the points of all others.
void dsc_put_svg(dsc_writer *w, const dsc_buffer *svg, const char *label, bool shapes);

void dsc_open(dsc_page *p, dsc_block block);
void dsc_close(dsc_page *p, dsc_block block);
// Opens the block unless *is_open, and sets that.
void dsc_open_once(dsc_page *p, dsc_block block, bool *is_open);
// Begins a section or a link, whose id is formatted, or ends it.
void dsc_begin_part(dsc_page *p, const dsc_page_part *part, const char *id, ...) DSC_PRINTF(3, 4);
void dsc_end_part(dsc_page *p, const dsc_page_part *part);

// Writes escaped text.
void dsc_say(dsc_page *p, const char *format, ...) DSC_PRINTF(2, 3);
void dsc_say_block(dsc_page *p, dsc_block block, const char *format, ...) DSC_PRINTF(3, 4);
void dsc_say_pair(dsc_page *p, const char *key, dsc_block value_block, const char *value);
// The same in pieces: what is written between the two calls. The calls are not nested.
dsc_writer *dsc_say_begin(dsc_page *p);
void dsc_say_end(dsc_page *p);
// Writes a cell for reading: integers in full, reals with at most four decimals, text, and lists
// joined by spaces.
void dsc_put_reading(dsc_writer *w, const dsc_cell *c);
void dsc_say_cell(dsc_page *p, const dsc_cell *c);

// Writes the page's stem and "figure-3.pdf".
void dsc_put_picture_name(dsc_writer *w, const dsc_page *p, size_t number);

#endif
