// SPDX-License-Identifier: Apache-2.0
// Chooses the parameters that distinguish groups of rows: method and rule first, then from the left
// each column that separates two groups the previous ones do not.
#include "plots/draw/label.h"

#include "plots/draw/glossary.h"

#include <string.h>

// Columns whose values need no name before them.
static bool is_unnamed(const char *name)
{
    return !strcmp(name, "method") || !strcmp(name, "rule") || !strcmp(name, "speculation") ||
           !strcmp(name, "parameters");
}

bool dsc_put_parameter(dsc_writer *w, const dsc_table *t, size_t row, size_t c,
                       const char *separator)
{
    const dsc_cell *cell = dsc_table_at(t, row, c);
    const char *name = t->column[c].name;
    if (dsc_is_missing(cell))
        return false;
    dsc_put(w, "%s", separator);
    if (!is_unnamed(name))
        dsc_put(w, "%s ", dsc_term_label(name));
    dsc_put_cell(w, cell);
    return true;
}

void dsc_put_method(dsc_writer *w, const dsc_table *t, size_t row)
{
    const char *method = dsc_text_at(t, row, "method"), *rule = dsc_text_at(t, row, "rule");
    dsc_put(w, "%s%s%s", method, *method && *rule ? ", " : "", rule);
}

// Whether column c separates two groups that agree in the marked columns.
static bool separates(const dsc_table *t, const size_t *first, size_t groups, const bool *marked,
                      size_t c)
{
    for (size_t i = 0; i < groups; i++)
        for (size_t j = 0; j < i; j++)
            if (!dsc_same_cell(dsc_table_at(t, first[i], c), dsc_table_at(t, first[j], c)) &&
                dsc_rows_agree(t, marked, first[i], first[j]))
                return true;
    return false;
}

const char *dsc_distinct_label(dsc_plot *p, const dsc_table *t, const size_t *first, size_t groups,
                               size_t which, const bool *skip)
{
    bool *none = dsc_plot_new(p, bool, t->columns), *marked = dsc_plot_new(p, bool, t->columns);
    bool any = false;
    for (size_t c = 0; !p->rc && c < t->columns; c++) {
        const char *name = t->column[c].name;
        marked[c] = (!strcmp(name, "method") || !strcmp(name, "rule")) && dsc_is_parameter(t, c) &&
                    separates(t, first, groups, none, c);
    }
    for (size_t c = 0; !p->rc && c < t->columns; c++)
        if (!marked[c] && dsc_is_parameter(t, c) && !skip[c])
            marked[c] = separates(t, first, groups, marked, c);
    dsc_writer *w = dsc_text_begin(p);
    for (size_t c = 0; !p->rc && c < t->columns; c++)
        if (marked[c] && !skip[c])
            any |= dsc_put_parameter(w, t, first[which], c, any ? ", " : "");
    return dsc_text_end(p);
}

const char *dsc_line_label(dsc_plot *p, const dsc_table *t, const size_t *first, size_t groups,
                           size_t which, const bool *skip)
{
    enum { LONGEST = 119 };
    const char *label = dsc_distinct_label(p, t, first, groups, which, skip);
    if (!*label && !p->rc) {
        dsc_put_method(dsc_text_begin(p), t, first[which]);
        label = dsc_text_end(p);
    }
    return dsc_text(p, "%.*s", LONGEST, label);
}
