// SPDX-License-Identifier: Apache-2.0
// The HTML page type: one self-contained page with inline SVG.
#include "base/sha256.h"
#include "plots/report/report_page.h"

#include <stdio.h>
#include <string.h>

enum { WIDE = 9 }; // columns from which on headings stand upright on paper

static bool is_text(const dsc_table *t, size_t c)
{
    return t->column[c].type == DSC_CELL_TEXT || t->column[c].type == DSC_CELL_LIST;
}

// Writes a table in a box that scrolls sideways; so that it can be reached by keyboard, it has a
// tab index and a label.
static void put_table(dsc_page *p, const dsc_page_table *x)
{
    dsc_writer *w = &p->w;
    const dsc_table *t = x->table;
    if (x->folded) {
        dsc_put(w, "<details><summary>");
        dsc_put_html(w, x->folded);
        dsc_put(w, "</summary>\n");
    }
    dsc_put(w, "<div class=\"scroll%s\" tabindex=\"0\" role=\"region\" aria-label=\"",
            x->columns > WIDE ? " wide" : "");
    dsc_put_html(w, x->caption);
    dsc_put(w, "\">\n<table>\n<caption>");
    dsc_put_html(w, x->caption);
    dsc_put(w, "</caption>\n<thead><tr>");
    for (size_t c = 0; c < x->columns; c++) {
        dsc_put(w, "<th scope=\"col\"%s>", is_text(t, x->column[c]) ? " class=\"text\"" : "");
        dsc_put_html(w, t->column[x->column[c]].name);
        dsc_put(w, "</th>");
    }
    dsc_put(w, "</tr></thead>\n<tbody>\n");
    for (size_t r = 0; r < x->rows; r++) {
        dsc_put(w, "<tr>");
        for (size_t c = 0; c < x->columns; c++) {
            dsc_put(w, "<td%s>", is_text(t, x->column[c]) ? " class=\"text\"" : "");
            dsc_say_cell(p, dsc_table_at(t, x->row[r], x->column[c]));
            dsc_put(w, "</td>");
        }
        dsc_put(w, "</tr>\n");
    }
    dsc_put(w, "</tbody>\n</table>\n</div>\n%s", x->folded ? "</details>\n" : "");
}

// --- figures -------------------------------------------------------------------------------

// Writes the marks of a figure for the script, as an attribute: "=" and a label begin the marks of
// a line; each is "x y value". Labels and values contain no line break.
static void put_marks(dsc_writer *w, const dsc_table *t)
{
    if (!t->rows)
        return;
    dsc_put(w, " data-marks=\"");
    for (size_t i = 0; i < t->rows; i++) {
        const char *line = dsc_table_at(t, i, 2)->text;
        if (!i || strcmp(line, dsc_table_at(t, i - 1, 2)->text)) {
            dsc_put(w, "=");
            dsc_put_html(w, line);
            dsc_put(w, "\n");
        }
        dsc_put(w, "%.0f %.0f ", dsc_table_real(t, i, 0), dsc_table_real(t, i, 1));
        dsc_put_html(w, dsc_table_at(t, i, 3)->text);
        dsc_put(w, "\n");
    }
    dsc_put(w, "\"");
}

static void put_figure(dsc_page *p, dsc_drawing *d)
{
    dsc_put(&p->w, "<figure id=\"figure-%zu\"", p->figures);
    put_marks(&p->w, &d->marks);
    dsc_put(&p->w, ">\n");
    dsc_put_svg(&p->w, &d->picture, d->finding.data, p->figures == 1);
    dsc_put(&p->w, "<figcaption>Figure %zu. ", p->figures);
    dsc_put_html(&p->w, d->finding.data);
    dsc_put(&p->w, "</figcaption>\n</figure>\n");
}

// --- the page ----------------------------------------------------------------------------------

// Writes 'sha256-...' in base64 (RFC 4648) for the Content-Security-Policy.
static void put_hash(dsc_writer *w, const char *text)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    dsc_sha256 s;
    char hex[DSC_SHA256_HEX];
    unsigned byte[33] = {0};
    dsc_sha256_init(&s);
    dsc_sha256_update(&s, text, strlen(text));
    dsc_sha256_final(&s, hex);
    for (int i = 0; i < 32; i++)
        sscanf(hex + 2 * i, "%2x", &byte[i]);
    dsc_put(w, "'sha256-");
    for (int i = 0; i < 33; i += 3) {
        unsigned v = byte[i] << 16 | byte[i + 1] << 8 | byte[i + 2];
        dsc_put(w, "%c%c%c%c", digit[v >> 18], digit[v >> 12 & 63], digit[v >> 6 & 63],
                i == 30 ? '=' : digit[v & 63]);
    }
    dsc_put(w, "'");
}

static void put_begin(dsc_writer *w, const char *title)
{
    dsc_put(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
               "base-uri 'none'; form-action 'none'; style-src ");
    put_hash(w, dsc_report_css);
    dsc_put(w, "; script-src ");
    put_hash(w, dsc_report_script);
    dsc_put(w, "\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
               "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    dsc_put_html(w, title);
    dsc_put(w, "</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n<h1>", dsc_report_css);
    dsc_put_html(w, title);
    dsc_put(w, "</h1>\n");
}

static void put_end(dsc_writer *w)
{
    dsc_put(w, "</main>\n<script>%s</script>\n</body>\n</html>\n", dsc_report_script);
}

static void put_contents(dsc_writer *w, const dsc_page_entry *entry, size_t entries)
{
    dsc_put(w, "<nav aria-label=\"Contents\">");
    for (size_t i = 0; i < entries; i++)
        dsc_put(w, "<a href=\"#%s\">%s</a>", entry[i].id, entry[i].title);
    dsc_put(w, "</nav>\n");
}

static void put_merit(dsc_writer *w, const char *label, const char *value)
{
    dsc_put(w, "<div><dt>");
    dsc_put_html(w, label);
    dsc_put(w, "</dt><dd>");
    dsc_put_html(w, value);
    dsc_put(w, "</dd></div>");
}

const dsc_page_type dsc_page_html = {
    .open =
        {
            [DSC_CHAPTER] = "<h2>",
            [DSC_HEADING] = "<h3>",
            [DSC_SUBHEADING] = "<h4>",
            [DSC_PARAGRAPH] = "<p>",
            [DSC_SOFT] = "<p class=\"soft\">",
            [DSC_STRONG] = "<strong>",
            [DSC_BOX] = "<div class=\"best\">\n",
            [DSC_LIST] = "<ul>\n",
            [DSC_ITEM] = "<li>",
            [DSC_PAIRS] = "<dl class=\"pairs\">\n",
            [DSC_KEY] = "<dt>",
            [DSC_VALUE] = "<dd>",
            [DSC_CODE] = "<dd><code>",
            [DSC_MERITS] = "<dl class=\"figure-of-merit\">",
            [DSC_FIRST] = "<div class=\"first\">\n",
            [DSC_PART] = "<div>\n",
            [DSC_LINES] = "<pre>",
            [DSC_FIGURES] = "<div class=\"figures\">\n",
        },
    .close =
        {
            [DSC_CHAPTER] = "</h2>\n",
            [DSC_HEADING] = "</h3>\n",
            [DSC_SUBHEADING] = "</h4>\n",
            [DSC_PARAGRAPH] = "</p>\n",
            [DSC_SOFT] = "</p>\n",
            [DSC_STRONG] = "</strong>",
            [DSC_BOX] = "</div>\n",
            [DSC_LIST] = "</ul>\n",
            [DSC_ITEM] = "</li>\n",
            [DSC_PAIRS] = "</dl>\n",
            [DSC_KEY] = "</dt>",
            [DSC_VALUE] = "</dd>\n",
            [DSC_CODE] = "</code></dd>\n",
            [DSC_MERITS] = "</dl>\n",
            [DSC_FIRST] = "</div>\n",
            [DSC_PART] = "</div>\n",
            [DSC_LINES] = "</pre>\n",
            [DSC_FIGURES] = "</div>\n",
        },
    .section = {"<section id=\"", "\">\n", "</section>\n"},
    .link = {"<a href=\"#", "\">", "</a>"},
    .line_end = "\n",
    .terminal = "svg",
    .width = 460, // legible when a phone shows it at 360, and two of them side by side elsewhere
    .begin = put_begin,
    .end = put_end,
    .text = dsc_put_html,
    .merit = put_merit,
    .table = put_table,
    .figure = put_figure,
    .contents = put_contents,
};
