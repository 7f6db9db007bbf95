// SPDX-License-Identifier: Apache-2.0
#include "plots/report_html.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void dsc_put_html_cell(dsc_writer *w, const dsc_cell *c)
{
    switch (c->type) {
    case DSC_CELL_INT: dsc_put(w, "%" PRId64, c->i); break;
    case DSC_CELL_REAL:
        if (!isfinite(c->r))
            dsc_put(w, "%s", isnan(c->r) ? "nan" : c->r > 0 ? "inf" : "-inf");
        else if (fabs(c->r) >= 1e7 || (c->r != 0 && fabs(c->r) < 1e-3))
            dsc_put(w, "%.4g", c->r);
        else
            dsc_put(w, "%.4f", c->r);
        break;
    case DSC_CELL_TEXT: dsc_put_html(w, c->text); break;
    case DSC_CELL_LIST:
        for (int64_t i = 0; i < c->i && c->reals; i++)
            dsc_put(w, "%s%.4f", i ? " " : "", c->reals[i]);
        for (int64_t i = 0; i < c->i && c->list; i++)
            dsc_put(w, "%s%" PRId64, i ? " " : "", c->list[i]);
        break;
    }
}

static bool is_text(const dsc_table *t, size_t c)
{
    return t->column[c].type == DSC_CELL_TEXT || t->column[c].type == DSC_CELL_LIST;
}

void dsc_put_html_table(dsc_writer *w, const dsc_table *t, const size_t *row, size_t rows,
                        const size_t *column, size_t columns, const char *caption)
{
    // A box that scrolls must be reachable by keyboard, and needs a name then.
    dsc_put(w, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    dsc_put_html(w, caption);
    dsc_put(w, "\">\n<table>\n<caption>");
    dsc_put_html(w, caption);
    dsc_put(w, "</caption>\n<thead><tr>");
    for (size_t c = 0; c < columns; c++) {
        dsc_put(w, "<th scope=\"col\"%s>", is_text(t, column[c]) ? " class=\"text\"" : "");
        dsc_put_html(w, t->column[column[c]].name);
        dsc_put(w, "</th>");
    }
    dsc_put(w, "</tr></thead>\n<tbody>\n");
    for (size_t r = 0; r < rows; r++) {
        dsc_put(w, "<tr>");
        for (size_t c = 0; c < columns; c++) {
            dsc_put(w, "<td%s>", is_text(t, column[c]) ? " class=\"text\"" : "");
            dsc_put_html_cell(w, dsc_table_at(t, row[r], column[c]));
            dsc_put(w, "</td>");
        }
        dsc_put(w, "</tr>\n");
    }
    dsc_put(w, "</tbody>\n</table>\n</div>\n");
}

// --- svg -----------------------------------------------------------------------------------

static bool starts(const char *s, const char *end, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(end - s) >= n && !memcmp(s, with, n);
}

// Copies one tag (s at '<', end behind '>'), ids and references prefixed. Attribute values of
// gnuplot hold neither '<' nor '>', and texts never stand inside a tag.
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

// The value of an attribute inside [s, end) as a number, 0 when it is not there.
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

static const char *behind(const char *s, const char *end, const char *what)
{
    const char *at = memmem(s, (size_t)(end - s), what, strlen(what));
    return at ? at + strlen(what) : end;
}

int dsc_put_inline_svg(dsc_writer *w, const dsc_buffer *svg, const char *prefix, const char *class,
                       const char *label)
{
    const char *end = svg->data + svg->length;
    const char *s = memmem(svg->data, svg->length, "<svg", 4);
    const char *body = s ? behind(s, end, ">") : end;
    double width = s ? attribute(s, body, "width") : 0,
           height = s ? attribute(s, body, "height") : 0;
    if (!(width > 0 && height > 0)) {
        w->rc =
            w->rc ? w->rc : dsc_fail(w->err, DSC_EIO, "gnuplot's picture is no svg of known size");
        return w->rc;
    }
    dsc_put(w,
            "<svg class=\"%s\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\" "
            "aria-label=\"",
            class, width, height, width, height);
    dsc_put_html(w, label);
    dsc_put(w, "\">");
    for (s = body; s < end && !w->rc;) {
        if (starts(s, end, "<title>")) {
            s = behind(s, end, "</title>");
        } else if (starts(s, end, "<desc>")) {
            s = behind(s, end, "</desc>");
        } else if (*s == '<') {
            const char *close = behind(s, end, ">");
            put_tag(w, s, close, prefix);
            s = close;
        } else {
            const char *next = memchr(s, '<', (size_t)(end - s));
            next = next ? next : end;
            if (strspn(s, " \t\r\n") < (size_t)(next - s)) // not between tags only
                dsc_put_bytes(w, s, (size_t)(next - s));
            s = next;
        }
    }
    dsc_put(w, "\n");
    return w->rc;
}
