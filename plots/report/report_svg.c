// SPDX-License-Identifier: Apache-2.0
// Writes gnuplot's SVG as an element of the page. The colors of the figures become variables of the
// style sheet, so that dark mode recolors them; coordinates are rounded to a tenth of a pixel;
// attributes that have their default value or that the style sheet sets, and what is then empty,
// are left out. That is about a third of gnuplot's text.
#include "plots/draw/style.h"
#include "plots/report/report_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct span {
    const char *at, *end;
} span;

static size_t length_of(span s)
{
    return (size_t)(s.end - s.at);
}

static bool is(span s, const char *text)
{
    return length_of(s) == strlen(text) && !memcmp(s.at, text, length_of(s));
}

static bool begins(span s, const char *text)
{
    size_t n = strlen(text);
    return length_of(s) >= n && !memcmp(s.at, text, n);
}

static const char *after(span s, const char *what)
{
    const char *at = memmem(s.at, length_of(s), what, strlen(what));
    return at ? at + strlen(what) : s.end;
}

// --- attributes --------------------------------------------------------------------------------

enum { ATTRIBUTES = 16 };

typedef struct tag {
    span name;
    span key[ATTRIBUTES], value[ATTRIBUTES];
    size_t attributes;
    bool closes, closed; // </name>, <name/>
} tag;

static span next_word(span *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at))
        s->at++;
    span word = {s->at, s->at};
    while (word.end < s->end && !strchr(" \t\r\n=/>", *word.end))
        word.end++;
    s->at = word.end;
    return word;
}

// Reads the tag that begins with '<' at s->at and advances s. gnuplot's attribute values contain
// neither '<' nor '>', and other text than its own is never in one.
static tag read_tag(span *s)
{
    tag t = {.closes = s->end - s->at > 1 && s->at[1] == '/'};
    span in = {s->at + 1 + t.closes, after(*s, ">")};
    s->at = in.end;
    t.closed = in.end - in.at > 1 && in.end[-2] == '/';
    t.name = next_word(&in);
    while (t.attributes < ATTRIBUTES) {
        span key = next_word(&in);
        while (in.at < in.end && strchr(" =", *in.at))
            in.at++;
        if (key.at == key.end || in.at == in.end || !strchr("'\"", *in.at))
            break;
        const char *end = memchr(in.at + 1, *in.at, (size_t)(in.end - in.at - 1));
        end = end ? end : in.end;
        t.key[t.attributes] = key;
        t.value[t.attributes++] = (span){in.at + 1, end};
        in.at = end < in.end ? end + 1 : end;
    }
    return t;
}

static span attribute(const tag *t, const char *key)
{
    for (size_t i = 0; i < t->attributes; i++)
        if (is(t->key[i], key))
            return t->value[i];
    return (span){t->name.end, t->name.end};
}

// --- values ------------------------------------------------------------------------------------

// The color 0xrrggbb of "rgb(r, g, b)", "#rrggbb", "black" or "white"; -1: it is something else.
static int color_of(span s)
{
    char text[32];
    unsigned r, g, b;
    snprintf(text, sizeof text, "%.*s", (int)length_of(s), s.at);
    if (sscanf(text, "rgb( %u , %u , %u", &r, &g, &b) == 3 ||
        sscanf(text, "#%2x%2x%2x", &r, &g, &b) == 3)
        return (int)(r << 16 | g << 8 | b);
    return is(s, "black") ? 0 : is(s, "white") ? 0xffffff : -1;
}

// Writes a color: as a variable if the style sheet gives it one. Text on a filled cell is black or
// white in both modes, because the cell keeps its color.
static void put_color(dsc_writer *w, span value, bool is_text)
{
    static const struct {
        int color;
        const char *variable;
    } role[] = {{0x1a1a1a, "ink"},  {0x555555, "soft"}, {0xe3e3e3, "grid"},
                {0x8a8a8a, "axis"}, {0xffffff, "card"}, {0xb4b4b4, "bound"},
                {0xe6e6e6, "band"}, {0xececec, "band"}, {0xa0a0a0, "axis"}};
    int color = color_of(value);
    for (size_t i = 0; i < sizeof role / sizeof *role && !(is_text && color == 0xffffff); i++)
        if (color == role[i].color) {
            dsc_put(w, "var(--%s)", role[i].variable);
            return;
        }
    for (int i = 0; i < DSC_STYLES && !(is_text && !color); i++)
        if (color >= 0 && color == (int)strtol(dsc_style_color(i) + 1, NULL, 16)) {
            dsc_put(w, "var(--c%d)", i);
            return;
        }
    for (int i = 0; i < DSC_STYLES; i++)
        if (color >= 0 && color == (int)strtol(dsc_style_color(DSC_STYLE_RAMP + i) + 1, NULL, 16)) {
            dsc_put(w, "var(--r%d)", i);
            return;
        }
    if (color < 0)
        dsc_put_bytes(w, value.at, length_of(value));
    else
        dsc_put(w, "#%06x", (unsigned)color);
}

// Writes a value with its numbers rounded to a tenth, those of scale() to a hundredth.
static void put_rounded(dsc_writer *w, span s)
{
    int decimals = 1;
    while (s.end > s.at && s.end[-1] == ' ')
        s.end--;
    while (s.at < s.end) {
        char text[32], *stop;
        bool number = strchr("0123456789.-", *s.at);
        if (begins(s, "scale"))
            decimals = 2;
        snprintf(text, sizeof text, "%.*s", (int)length_of(s), s.at);
        double v = number ? strtod(text, &stop) : 0;
        if (!number || stop == text) {
            dsc_put_bytes(w, s.at++, 1);
            continue;
        }
        s.at += stop - text;
        int n = snprintf(text, sizeof text, "%.*f", decimals, v);
        while (n > 1 && text[n - 1] == '0')
            n--;
        n -= text[n - 1] == '.';
        dsc_put_bytes(w, text, (size_t)n);
    }
}

// Whether the style sheet or a default gives the attribute this value.
static bool is_default(span key, span value)
{
    static const char *const all[] = {"id", "class", "font-family", "shape-rendering", "xml:space"};
    static const struct {
        const char *key, *value;
    } usual[] = {{"fill", "none"},         {"stroke", "currentColor"},
                 {"stroke-width", "1.00"}, {"stroke-linecap", "butt"},
                 {"text-anchor", "start"}, {"stroke-linejoin", "miter"},
                 {"color", "black"},       {"fill-opacity", "1.00"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (is(key, all[i]))
            return true;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (is(key, usual[i].key) && is(value, usual[i].value))
            return true;
    return false;
}

static void put_attributes(dsc_writer *w, const tag *t)
{
    bool is_text = length_of(attribute(t, "font-family")) > 0;
    bool is_filled = is_text || length_of(attribute(t, "shape-rendering")) > 0;
    for (size_t i = 0; i < t->attributes; i++) {
        span key = t->key[i], value = t->value[i];
        if (is_default(key, value) || (is_filled && is(key, "stroke") && is(value, "none")))
            continue;
        if (begins(value, "#gp")) { // a point: the first figure defines their shapes
            dsc_put(w, " href=\"");
            dsc_put_bytes(w, value.at, length_of(value));
        } else {
            dsc_put(w, " ");
            dsc_put_bytes(w, key.at, length_of(key));
            dsc_put(w, "=\"");
            if (is(key, "fill") || is(key, "stroke") || is(key, "color"))
                put_color(w, value, is_text);
            else
                put_rounded(w, value);
        }
        dsc_put(w, "\"");
    }
}

// --- elements ----------------------------------------------------------------------------------

enum { DEPTH = 64 };

// The open groups: where the tag of each begins and ends in the output, and whether it is written.
typedef struct groups {
    size_t before[DEPTH], after[DEPTH];
    bool written[DEPTH];
    size_t depth;
} groups;

static void open_group(dsc_writer *w, groups *g, const tag *t)
{
    if (g->depth == DEPTH) {
        w->rc = w->rc ? w->rc : dsc_fail(w->err, DSC_EIO, "gnuplot's SVG is nested too deeply");
        return;
    }
    g->before[g->depth] = w->to->length;
    dsc_put(w, "<g");
    size_t bare = w->to->length;
    put_attributes(w, t);
    g->written[g->depth] = w->to->length > bare;
    if (g->written[g->depth])
        dsc_put(w, ">");
    else
        w->to->length = g->before[g->depth];
    g->after[g->depth++] = w->to->length;
}

static void close_group(dsc_writer *w, groups *g)
{
    if (!g->depth)
        return;
    g->depth--;
    if (w->to->length == g->after[g->depth])
        w->to->length = g->before[g->depth];
    else if (g->written[g->depth])
        dsc_put(w, "</g>");
}

// Copies gnuplot's definitions of points, which have the same names in each figure.
static void put_shapes(dsc_writer *w, span defs)
{
    static const char old[] = "xlink:href";
    dsc_put(w, "<defs>");
    for (defs.end = after(defs, "<filter") - strlen("<filter"); defs.at < defs.end; defs.at++)
        if (begins(defs, old))
            defs.at += strlen("xlink:") - 1;
        else if (!strchr("\t\r\n", *defs.at))
            dsc_put_bytes(w, defs.at, 1);
    dsc_put(w, "</defs>");
}

// A path that only moves draws nothing.
static bool is_drawn(const tag *t)
{
    span d = attribute(t, "d");
    return !is(t->name, "path") || memchr(d.at, 'L', length_of(d)) ||
           memchr(d.at, 'C', length_of(d));
}

static void put_element(dsc_writer *w, groups *g, span *s)
{
    tag t = read_tag(s);
    if (is(t.name, "title") || is(t.name, "desc") || is(t.name, "defs")) {
        if (!t.closes && !t.closed)
            s->at = after(*s, is(t.name, "title")  ? "</title>"
                              : is(t.name, "desc") ? "</desc>"
                                                   : "</defs>");
    } else if (is(t.name, "g")) {
        if (t.closes)
            close_group(w, g);
        else
            open_group(w, g, &t);
    } else if (is(t.name, "rect")) {
        // the background: the page has its own
    } else if (t.closes) {
        dsc_put(w, "</%.*s>", (int)length_of(t.name), t.name.at);
    } else if (is_drawn(&t)) {
        dsc_put(w, "<%.*s", (int)length_of(t.name), t.name.at);
        put_attributes(w, &t);
        dsc_put(w, t.closed ? "/>" : ">");
    }
}

static double number(span s)
{
    double v = 0;
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)length_of(s), s.at);
    return sscanf(text, "%lf", &v) == 1 ? v : 0;
}

void dsc_put_svg(dsc_writer *w, const dsc_buffer *svg, const char *label, bool shapes)
{
    span s = {svg->data, svg->data + svg->length};
    groups g = {.depth = 0};
    const char *begin = memmem(s.at, length_of(s), "<svg", 4);
    s.at = begin ? begin : s.end;
    tag t = begin ? read_tag(&s) : (tag){.attributes = 0};
    double width = number(attribute(&t, "width")), height = number(attribute(&t, "height"));
    if (!(width > 0 && height > 0)) {
        w->rc = w->rc ? w->rc
                      : dsc_fail(w->err, DSC_EIO,
                                 "gnuplot's output is not an SVG with a width and a height");
        return;
    }
    dsc_put(w, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-label=\"",
            width, height, width, height);
    dsc_put_html(w, label);
    dsc_put(w, "\">");
    if (shapes)
        put_shapes(w, (span){after(s, "<defs>"), after(s, "</defs>")});
    while (s.at < s.end && !w->rc) {
        if (*s.at == '<') {
            put_element(w, &g, &s);
            continue;
        }
        const char *next = memchr(s.at, '<', length_of(s));
        next = next ? next : s.end;
        if (strspn(s.at, " \t\r\n") < (size_t)(next - s.at)) // more than space between tags
            dsc_put_bytes(w, s.at, (size_t)(next - s.at));
        s.at = next;
    }
    dsc_put(w, "\n");
}
