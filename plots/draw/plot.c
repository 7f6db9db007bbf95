// SPDX-License-Identifier: Apache-2.0
// The memory, the texts and the table of plotted numbers of a figure while it is drawn.
#include "plots/draw/plot.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

dsc_plot dsc_plot_of(const dsc_table *t, const char *name, dsc_error *err)
{
    static const dsc_figure_options all = {0};
    return (dsc_plot){.name = name ? name : "", .table = t, .options = &all, .err = err};
}

void dsc_plot_fini(dsc_plot *p)
{
    dsc_arena_fini(&p->arena);
    dsc_buffer_fini(&p->unfinished);
    dsc_table_fini(&p->made);
}

void dsc_refuse(dsc_plot *p, const char *format, ...)
{
    va_list args;
    if (p->rc)
        return;
    va_start(args, format);
    p->rc = dsc_vfail(p->err, DSC_EUSAGE, format, args);
    va_end(args);
}

void *dsc_plot_alloc(dsc_plot *p, size_t n, size_t size)
{
    void *out = NULL;
    if (!p->rc)
        p->rc = dsc_arena_alloc(&p->arena, &out, n, size, p->err);
    return p->rc ? NULL : memset(out, 0, n * size);
}

double *dsc_plot_numbers(dsc_plot *p, size_t n)
{
    double *v = dsc_plot_new(p, double, n);
    for (size_t i = 0; v && i < n; i++)
        v[i] = NAN;
    return v;
}

dsc_writer *dsc_text_begin(dsc_plot *p)
{
    p->unfinished.length = 0;
    p->text = (dsc_writer){.to = &p->unfinished, .err = p->err, .rc = p->rc};
    return &p->text;
}

const char *dsc_text_end(dsc_plot *p)
{
    p->rc = p->rc ? p->rc : p->text.rc;
    char *out = dsc_plot_new(p, char, p->unfinished.length + 1);
    return !out                    ? ""
           : !p->unfinished.length ? out
                                   : memcpy(out, p->unfinished.data, p->unfinished.length);
}

const char *dsc_text(dsc_plot *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dsc_vput(dsc_text_begin(p), format, args);
    va_end(args);
    return dsc_text_end(p);
}

// --- the plotted numbers -----------------------------------------------------------------------

static void add_column(dsc_plot *p, const char *name, dsc_cell_type type, const char *help)
{
    if (!p->rc)
        p->rc = dsc_table_add_column(p->data, name, type, help, p->err);
}

void dsc_data_text(dsc_plot *p, const char *name, const char *help)
{
    add_column(p, name, DSC_CELL_TEXT, help);
}

void dsc_data_number(dsc_plot *p, const char *name, const char *help)
{
    add_column(p, name, DSC_CELL_REAL, help);
}

void dsc_data_numbers(dsc_plot *p, const char *names)
{
    char name[DSC_NAME];
    while (dsc_next_name(&names, name))
        add_column(p, name, DSC_CELL_REAL, NULL);
}

void dsc_data_row(dsc_plot *p, const char *const *text, const double *number)
{
    dsc_cell cell[DSC_DATA_COLUMNS];
    if (p->rc)
        return;
    for (size_t c = 0; c < p->data->columns; c++) {
        cell[c] = (dsc_cell){.type = p->data->column[c].type};
        if (cell[c].type == DSC_CELL_TEXT)
            cell[c].text = *text++;
        else
            cell[c].r = *number++;
    }
    p->rc = dsc_table_add_row(p->data, cell, p->err);
}

// --- values to point at ------------------------------------------------------------------------

void dsc_mark(dsc_plot *p, double x, double y, const char *line, const char *value, ...)
{
    char text[200];
    va_list args;
    if (p->rc || !p->marks || isnan(x) || isnan(y))
        return;
    if (!p->marks->columns) {
        static const char *const name[] = {"x", "y", "line", "value"};
        for (int i = 0; i < 4 && !p->rc; i++)
            p->rc = dsc_table_add_column(p->marks, name[i], i < 2 ? DSC_CELL_REAL : DSC_CELL_TEXT,
                                         NULL, p->err);
    }
    va_start(args, value);
    vsnprintf(text, sizeof text, value, args);
    va_end(args);
    const dsc_cell cell[] = {{.type = DSC_CELL_REAL, .r = x},
                             {.type = DSC_CELL_REAL, .r = y},
                             {.type = DSC_CELL_TEXT, .text = line},
                             {.type = DSC_CELL_TEXT, .text = text}};
    if (!p->rc)
        p->rc = dsc_table_add_row(p->marks, cell, p->err);
}
