// SPDX-License-Identifier: Apache-2.0
// Checks of drawings, shared by the tests of figures.
#ifndef DSC_TESTS_PLOT_CHECK_H
#define DSC_TESTS_PLOT_CHECK_H

#include "plots/draw/text.h"
#include "plots/figure/figure.h"
#include "tests/close.h"
#include "tests/unit/plot_fixture.h"

#include <math.h>
#include <string.h>

static inline void draw(const char *figure, const dsc_table *t, const dsc_figure_options *o,
                        const char *terminal, dsc_drawing *d)
{
    dsc_error err = {0};
    *d = (dsc_drawing){0};
    assert_ok(dsc_figure_draw(dsc_figure_find(figure), t, o, terminal, d, &err), err);
}

static inline void refuse(const char *figure, const dsc_table *t, const dsc_figure_options *o,
                          const char *says)
{
    dsc_error err = {0};
    dsc_drawing d = {0};
    int rc = dsc_figure_draw(dsc_figure_find(figure), t, o, "svg", &d, &err);
    if (rc != DSC_EUSAGE || !strstr(err.message, says))
        fail_msg("%s: %d '%s', not '%s'", figure, rc, err.message, says);
    assert_null(d.script.data);
    assert_null(d.picture.data);
}

static inline void assert_contains(const dsc_buffer *b, const char *what)
{
    if (!strstr(b->data, what))
        fail_msg("'%s' not in: %.3000s", what, b->data);
}

// Checks that a script contains nothing outside quotes that would make gnuplot run or read
// something, and that no quoted text spans lines.
static inline void check_script(const dsc_buffer *script)
{
    bool quoted = false, comment = false;
    for (const char *s = script->data; *s; s++) {
        bool line_start = s == script->data || s[-1] == '\n';
        if (*s == '\n') {
            assert_false(quoted);
            comment = false;
        } else if (quoted || comment) {
            quoted = quoted && *s != '\'';
        } else if (*s == '\'') {
            quoted = true;
        } else if (*s == '#') {
            comment = line_start;
        } else if (strchr("`\"@", *s) || (line_start && *s == '!')) {
            fail_msg("'%c' outside quotes: %.200s", *s, s);
        }
    }
}

// Checks that a picture in characters is at most 79 wide and 24 high.
static inline void check_dumb(const dsc_buffer *b)
{
    size_t rows = 0;
    for (const char *s = b->data; *s; rows++) {
        char line[1024];
        size_t n = strcspn(s, "\n");
        assert_true(n < sizeof line);
        snprintf(line, sizeof line, "%.*s", (int)n, s);
        if (dsc_text_length(line) > 79)
            fail_msg("wider than 79: %s", line);
        s += n + (s[n] == '\n');
    }
    assert_true(rows <= 25); // gnuplot begins with a form feed or an empty line
}

// --- the data of a drawing -----------------------------------------------------------------

static inline size_t drawn_column(const dsc_drawing *d, size_t row, const char *column)
{
    int c = dsc_table_find(&d->data, column);
    assert_true(c >= 0 && row < d->data.rows);
    return (size_t)c;
}

static inline double drawn(const dsc_drawing *d, size_t row, const char *column)
{
    return dsc_table_real(&d->data, row, drawn_column(d, row, column));
}

static inline const char *drawn_text(const dsc_drawing *d, size_t row, const char *column)
{
    return dsc_table_at(&d->data, row, drawn_column(d, row, column))->text;
}

// --- what every figure must do -------------------------------------------------------------

// A figure and a table for it.
typedef struct sample {
    const char *figure;
    void (*fill)(dsc_table *t);
} sample;

// Checks that a report would draw the figures.
static inline void check_samples(const sample *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const dsc_figure_type *can[MOST_FIGURES];
        dsc_table t = {0};
        bool found = false;
        s[i].fill(&t);
        for (size_t n = drawable(&t, can); n-- > 0;)
            found = found || !strcmp(can[n]->name, s[i].figure);
        if (!found)
            fail_msg("a report would not draw %s of sample %zu", s[i].figure, i);
        dsc_table_fini(&t);
    }
}

// Draws on every terminal, and once more for a phone: a picture of its format, twice the same.
static inline void check_terminals(const char *figure, const dsc_table *t)
{
    enum { PDF = 2, DUMB };
    static const struct {
        const char *name, *magic;
    } terminal[] = {{"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF-"}, {"dumb", ""}};
    for (int i = 0; i < few_or_many(4, 7); i++) {
        const int k = i % 4;
        dsc_figure_options o = {.width = i < 4 ? 0 : 360};
        dsc_drawing a, b;
        draw(figure, t, &o, terminal[k].name, &a);
        draw(figure, t, &o, terminal[k].name, &b);
        check_script(&a.script);
        assert_true(a.picture.length > 500 && a.finding.length > 40 && a.data.rows > 0);
        assert_string_equal(dsc_table_get_comment(&a.data, "figure"), figure);
        assert_memory_equal(a.picture.data, terminal[k].magic, strlen(terminal[k].magic));
        assert_int_equal(a.picture.length, b.picture.length);
        assert_memory_equal(a.picture.data, b.picture.data, a.picture.length);
        if (k == PDF) // two draws within a second would hide a date
            assert_non_null(memmem(a.picture.data, a.picture.length, "(D:19700101000000", 17));
        if (k == DUMB)
            check_dumb(&a.picture);
        dsc_drawing_fini(&a);
        dsc_drawing_fini(&b);
    }
}

static inline void check_sample_terminals(const sample *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dsc_table t = {0};
        s[i].fill(&t);
        check_terminals(s[i].figure, &t);
        dsc_table_fini(&t);
    }
}

// Draws a table of hostile text; nothing of it is run, and the picture has no markup of it.
static inline void check_hostile(const char *figure, const dsc_table *t,
                                 const dsc_figure_options *o)
{
    static const char *const terminal[] = {"svg", "dumb", "pdf"};
    for (int i = 0; i < few_or_many(1, 3); i++) {
        dsc_drawing d;
        draw(figure, t, o, terminal[i], &d);
        check_script(&d.script);
        if (i == 0)
            assert_null(strstr(d.picture.data, "<script"));
        dsc_drawing_fini(&d);
    }
    assert_int_equal(count_files("OWNED"), 0);
}

// Draws, or is refused with these words; returns whether it was drawn.
static inline bool draws_on(const char *terminal, const char *figure, const dsc_table *t,
                            const dsc_figure_options *o, const char *says)
{
    dsc_drawing d = {0};
    dsc_error err = {0};
    int rc = dsc_figure_draw(dsc_figure_find(figure), t, o, terminal, &d, &err);
    if (rc && !(rc == DSC_EUSAGE && strstr(err.message, says)))
        fail_msg("%s: %s", figure, err.message);
    dsc_drawing_fini(&d);
    return rc == DSC_OK;
}

static inline bool draws_or_says(const char *figure, const dsc_table *t, const char *says)
{
    return draws_on("svg", figure, t, NULL, says);
}

// Numbers at the limits of what a plot can show; those below 1e300 in magnitude have a picture.
static const double extreme[] = {1e308, -1e299, 0, 1e-300, INFINITY, NAN, -3, 1e299};
enum { EXTREMES = sizeof extreme / sizeof *extreme };

// Draws small, long and large pictures, and those of a phone; only what is too small is refused.
static inline void check_sizes(const char *figure, const dsc_table *t)
{
    static const struct {
        const char *terminal;
        double width, height;
        bool large;
    } size[] = {{"svg", 4000, 4000, true}, {"dumb", 400, 200, true},  {"svg", 200, 200, false},
                {"svg", 200, 4000, false}, {"svg", 4000, 200, false}, {"svg", 519, 300, false},
                {"svg", 360, 250, false},  {"dumb", 40, 12, false},   {"dumb", 400, 12, false},
                {"dumb", 40, 200, false}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        dsc_figure_options o = {.width = size[i].width, .height = size[i].height};
        assert_true(draws_on(size[i].terminal, figure, t, &o, "too small") || !size[i].large);
    }
}

static inline void check_sample_sizes(const sample *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        dsc_table t = {0};
        s[i].fill(&t);
        check_sizes(s[i].figure, &t);
        dsc_table_fini(&t);
    }
}

#endif
