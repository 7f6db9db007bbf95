// SPDX-License-Identifier: Apache-2.0
// Finds the best configuration of each method at each x, per condition.
#include "plots/figure/envelope.h"

#include "plots/draw/label.h"
#include "plots/draw/lines.h"

#include <math.h>
#include <string.h>

// Whether a column separates lines: what is run, and where.
static bool separates(const char *column)
{
    static const char *const name[] = {"method",     "rule",   "speculation", "cost",
                                       "trace_hash", "source", "category"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strcmp(column, name[i]))
            return true;
    return false;
}

// The line of a row, a new one if there is none; SIZE_MAX if there are too many.
static size_t line_of(dsc_envelope *e, const dsc_table *t, const bool *separate, size_t row)
{
    size_t j = 0;
    while (j < e->lines && !dsc_rows_agree(t, separate, e->first[j], row))
        j++;
    if (j < e->lines)
        return j;
    if (e->lines == DSC_STYLES) {
        e->methods++;
        return SIZE_MAX;
    }
    e->methods++;
    e->first[e->lines] = row;
    return e->lines++;
}

static size_t index_of(const double *value, size_t n, double v)
{
    size_t i = 0;
    while (i < n && value[i] != v)
        i++;
    return i;
}

// Collects the values of the condition, at most DSC_ENVELOPE_PANELS of them.
static void find_panels(dsc_plot *p, dsc_envelope *e, const dsc_selection *s, int condition)
{
    size_t chosen[DSC_ENVELOPE_PANELS];
    e->panels = e->conditions = 1;
    e->panel[0] = NAN;
    if (condition < 0)
        return;
    const double *all = dsc_distinct(p, s, condition, &e->conditions);
    if (p->rc || !e->conditions) {
        e->conditions = 1;
        return;
    }
    e->panels = dsc_thin(e->conditions, DSC_ENVELOPE_PANELS, 0, chosen);
    for (size_t i = 0; i < e->panels; i++)
        e->panel[i] = all[chosen[i]];
}

bool dsc_envelope_is_unsteady(const dsc_table *t, size_t row)
{
    const char *saturated = dsc_text_at(t, row, "saturated");
    return !strcmp(saturated, "yes") || !strcmp(saturated, "unknown");
}

static void place(dsc_envelope *e, const dsc_selection *s, size_t row, size_t line, int x, int y,
                  int condition, bool less)
{
    size_t panel = isnan(e->panel[0])
                       ? 0
                       : index_of(e->panel, e->panels, dsc_value_at(s->table, row, condition));
    size_t ix = index_of(e->x, e->nx, dsc_value_at(s->table, row, x));
    double v = dsc_value_at(s->table, row, y);
    if (panel == e->panels || ix == e->nx || isnan(v))
        return;
    size_t at = (panel * e->lines + line) * e->nx + ix;
    e->several = e->several || e->row[at] != SIZE_MAX;
    if (e->row[at] != SIZE_MAX) {
        const bool now = dsc_envelope_is_unsteady(s->table, row),
                   before = dsc_envelope_is_unsteady(s->table, e->row[at]);
        if (now != before ? now : less ? v >= e->value[at] : v <= e->value[at])
            return;
    }
    e->value[at] = v;
    e->row[at] = row;
}

// Names the parameters of each point that its line, x and panel leave open.
static void describe(dsc_plot *p, dsc_envelope *e, const dsc_table *t, const bool *separate, int x,
                     int condition)
{
    for (size_t i = 0; i < e->panels * e->lines * e->nx && !p->rc; i++) {
        bool any = false;
        dsc_writer *w = dsc_text_begin(p);
        for (size_t c = 0; c < t->columns && e->row[i] != SIZE_MAX; c++)
            if (dsc_is_parameter(t, c) && !separate[c] && (int)c != x && (int)c != condition &&
                dsc_varies(t, c))
                any |= dsc_put_parameter(w, t, e->row[i], c, any ? ", " : "");
        e->detail[i] = dsc_text_end(p);
        e->detail[i] = *e->detail[i] ? e->detail[i] : NULL;
    }
}

void dsc_envelope_init(dsc_plot *p, dsc_envelope *e, const dsc_selection *s, int x, int y,
                       int condition, bool less_is_better)
{
    const dsc_table *t = s->table;
    *e = (dsc_envelope){.panels = 1};
    bool *separate = dsc_plot_new(p, bool, t->columns), *skip = dsc_plot_new(p, bool, t->columns);
    size_t *line = dsc_plot_new(p, size_t, s->rows);
    e->x = p->rc ? NULL : dsc_distinct(p, s, x, &e->nx);
    if (!p->rc && !e->nx)
        dsc_refuse(p, "column '%s' has no numbers", t->column[x].name);
    find_panels(p, e, s, condition);
    if (p->rc)
        return;
    for (size_t c = 0; c < t->columns; c++)
        skip[c] = !(separate[c] = separates(t->column[c].name));
    for (size_t i = 0; i < s->rows; i++) {
        bool any = !isnan(dsc_value_at(t, s->row[i], x)) && !isnan(dsc_value_at(t, s->row[i], y));
        line[i] = any ? line_of(e, t, separate, s->row[i]) : SIZE_MAX;
    }
    size_t count = e->panels * e->lines * e->nx;
    e->value = dsc_plot_numbers(p, count);
    e->row = dsc_plot_new(p, size_t, count);
    e->detail = dsc_plot_new(p, const char *, count);
    if (p->rc)
        return;
    memset(e->row, 0xff, count * sizeof *e->row);
    for (size_t i = 0; i < s->rows; i++)
        if (line[i] != SIZE_MAX)
            place(e, s, s->row[i], line[i], x, y, condition, less_is_better);
    describe(p, e, t, separate, x, condition);
    for (size_t j = 0; j < e->lines; j++)
        e->label[j] = dsc_line_label(p, t, e->first, e->lines, j, skip);
    dsc_check_any(p, e->value, count, t->column[y].name);
}
