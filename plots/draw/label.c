// SPDX-License-Identifier: Apache-2.0
// Chooses the parameters that distinguish groups of rows: method and rule first, then from the left
// each column that separates two groups the previous ones do not.
#include "plots/draw/label.h"

#include "plots/draw/glossary.h"

#include <stdlib.h>
#include <string.h>

// Columns whose values need no name before them.
static const char *const unnamed[] = {"method", "rule", "parameters", NULL};

static bool is_named(const char *const *list, const char *name)
{
    for (size_t i = 0; list && list[i]; i++)
        if (!strcmp(list[i], name))
            return true;
    return false;
}

bool dsc_put_parameter(dsc_writer *w, const dsc_table *t, size_t row, size_t c,
                       const char *separator)
{
    const dsc_cell *cell = dsc_table_at(t, row, c);
    const char *name = t->column[c].name;
    if (dsc_is_missing(cell))
        return false;
    dsc_put(w, "%s", separator);
    if (!is_named(unnamed, name))
        dsc_put(w, "%s ", dsc_term_label(name));
    dsc_put_cell(w, cell);
    return true;
}

void dsc_put_method(dsc_writer *w, const dsc_table *t, size_t row)
{
    static const char *const name[] = {"method", "rule"};
    bool any = false;
    for (int i = 0; i < 2; i++) {
        int c = dsc_table_find(t, name[i]);
        if (c >= 0 && t->column[c].type == DSC_CELL_TEXT)
            any |= dsc_put_parameter(w, t, row, (size_t)c, any ? ", " : "");
    }
}

// Whether rows a and b agree in all marked columns.
static bool agree(const dsc_table *t, const bool *marked, size_t a, size_t b)
{
    for (size_t c = 0; c < t->columns; c++)
        if (marked[c] && !dsc_same_cell(dsc_table_at(t, a, c), dsc_table_at(t, b, c)))
            return false;
    return true;
}

// Whether column c separates two groups that agree in the marked columns.
static bool separates(const dsc_table *t, const size_t *first, size_t groups, const bool *marked,
                      size_t c)
{
    for (size_t i = 0; i < groups; i++)
        for (size_t j = 0; j < i; j++)
            if (!dsc_same_cell(dsc_table_at(t, first[i], c), dsc_table_at(t, first[j], c)) &&
                agree(t, marked, first[i], first[j]))
                return true;
    return false;
}

static void find_distinct(const dsc_table *t, const size_t *first, size_t groups,
                          const char *const *skip, bool *marked)
{
    static const char *const always[] = {"method", "rule", NULL};
    bool *none = marked + t->columns;
    for (size_t c = 0; c < t->columns; c++)
        marked[c] = is_named(always, t->column[c].name) && dsc_is_parameter(t, c) &&
                    separates(t, first, groups, none, c);
    for (size_t c = 0; c < t->columns; c++)
        if (!marked[c] && dsc_is_parameter(t, c) && !is_named(skip, t->column[c].name))
            marked[c] = separates(t, first, groups, marked, c);
}

void dsc_put_distinct(dsc_writer *w, const dsc_table *t, const size_t *first, size_t groups,
                      size_t which, const char *const *skip)
{
    bool *marked = NULL, any = false;
    if (!w->rc)
        w->rc = dsc_new(&marked, 2 * t->columns, w->err);
    if (w->rc)
        return;
    find_distinct(t, first, groups, skip, marked);
    for (size_t c = 0; c < t->columns; c++)
        if (marked[c] && !is_named(skip, t->column[c].name))
            any |= dsc_put_parameter(w, t, first[which], c, any ? ", " : "");
    free(marked);
}
