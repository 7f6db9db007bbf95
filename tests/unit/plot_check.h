// SPDX-License-Identifier: Apache-2.0
// Checks of drawings, shared by the tests of figures.
#ifndef DSC_TESTS_PLOT_CHECK_H
#define DSC_TESTS_PLOT_CHECK_H

#include "plots/draw/text.h"
#include "plots/figure/figure.h"
#include "tests/close.h"

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

#endif
