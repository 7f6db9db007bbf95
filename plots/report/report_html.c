// SPDX-License-Identifier: Apache-2.0
// The HTML page type: one self-contained page with inline SVG.
#include "plots/report/report_page.h"

#include <stdio.h>
#include <string.h>

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
    dsc_put(w, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
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

// --- svg -----------------------------------------------------------------------------------

static bool starts(const char *s, const char *end, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(end - s) >= n && !memcmp(s, with, n);
}

// Copies one tag (from '<' at s to after '>' at end) and prefixes ids and references. gnuplot's
// attribute values contain neither '<' nor '>'.
static void put_tag(dsc_writer *w, const char *s, const char *end, const char *prefix)
{
    static const struct {
        const char *from, *to;
    } rule[] = {
        {" id='", " id='"},           {" id=\"", " id=\""},
        {"xlink:href='#", "href='#"}, {"xlink:href=\"#", "href=\"#"},
        {"url(#", "url(#"},
    };
    while (s < end) {
        size_t i = 0, rules = sizeof rule / sizeof *rule;
        while (i < rules && !starts(s, end, rule[i].from))
            i++;
        if (i < rules) {
            dsc_put(w, "%s%s-", rule[i].to, prefix);
            s += strlen(rule[i].from);
        } else {
            dsc_put_bytes(w, s++, 1);
        }
    }
}

// The value of an attribute inside [s, end) as a number; 0: it is missing.
static double attribute(const char *s, const char *end, const char *name)
{
    size_t n = strlen(name);
    for (; s + n < end; s++)
        if (s[0] == ' ' && !memcmp(s + 1, name, n) && s[n + 1] == '=' && s[n + 2] == '"') {
            double v = 0;
            return sscanf(s + n + 3, "%lf", &v) == 1 ? v : 0;
        }
    return 0;
}

static const char *after(const char *s, const char *end, const char *what)
{
    const char *at = memmem(s, (size_t)(end - s), what, strlen(what));
    return at ? at + strlen(what) : end;
}

// Writes gnuplot's SVG as an element of the page: without prolog, namespaces, title and
// description, with `prefix` ([a-z0-9-]) before every id and reference, and with `label` as its
// accessible name.
static void put_inline_svg(dsc_writer *w, const dsc_buffer *svg, const char *prefix,
                           const char *class, const char *label)
{
    const char *end = svg->data + svg->length;
    const char *s = memmem(svg->data, svg->length, "<svg", 4);
    const char *body = s ? after(s, end, ">") : end;
    double width = s ? attribute(s, body, "width") : 0,
           height = s ? attribute(s, body, "height") : 0;
    if (!(width > 0 && height > 0)) {
        w->rc = w->rc ? w->rc
                      : dsc_fail(w->err, DSC_EIO,
                                 "gnuplot's output is not an SVG with a width and a height");
        return;
    }
    dsc_put(w,
            "<svg class=\"%s\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
            "aria-label=\"",
            class, width, height, width, height);
    dsc_put_html(w, label);
    dsc_put(w, "\">");
    for (s = body; s < end && !w->rc;) {
        if (starts(s, end, "<title>")) {
            s = after(s, end, "</title>");
        } else if (starts(s, end, "<desc>")) {
            s = after(s, end, "</desc>");
        } else if (*s == '<') {
            const char *close = after(s, end, ">");
            put_tag(w, s, close, prefix);
            s = close;
        } else {
            const char *next = memchr(s, '<', (size_t)(end - s));
            next = next ? next : end;
            if (strspn(s, " \t\r\n") < (size_t)(next - s)) // more than space between tags
                dsc_put_bytes(w, s, (size_t)(next - s));
            s = next;
        }
    }
    dsc_put(w, "\n");
}

static void put_figure(dsc_page *p, dsc_drawing *wide, const dsc_drawing *narrow)
{
    char prefix[64];
    dsc_put(&p->w, "<figure>\n");
    snprintf(prefix, sizeof prefix, "f%zuw", p->figures);
    put_inline_svg(&p->w, &wide->picture, prefix, "wide", wide->finding.data);
    snprintf(prefix, sizeof prefix, "f%zun", p->figures);
    if (narrow)
        put_inline_svg(&p->w, &narrow->picture, prefix, "narrow", narrow->finding.data);
    dsc_put(&p->w, "<figcaption>Figure %zu. ", p->figures);
    dsc_put_html(&p->w, wide->finding.data);
    dsc_put(&p->w, "</figcaption>\n</figure>\n");
}

// --- the page ----------------------------------------------------------------------------------

static void put_begin(dsc_writer *w, const char *title)
{
    dsc_put(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    dsc_put_html(w, title);
    dsc_put(w, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", dsc_report_css);
    dsc_put_html(w, title);
    dsc_put(w, "</h1>\n");
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
        },
    .section = {"<section id=\"", "\">\n", "</section>\n"},
    .link = {"<a href=\"#", "\">", "</a>"},
    .end = "</main>\n</body>\n</html>\n",
    .terminal = "svg",
    .narrow = 360, // pixels: the width of the smallest phones, less the margins
    .begin = put_begin,
    .text = dsc_put_html,
    .merit = put_merit,
    .table = put_table,
    .figure = put_figure,
};
