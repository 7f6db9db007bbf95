// SPDX-License-Identifier: Apache-2.0
// Draws how many tokens a target call accepts in the course of a run (sim --per-request): a method
// that learns from earlier requests, as SuffixDecoding does, accepts more in later ones. The calls
// of 1, 2, 4, ... requests are pooled, so that the begin of the run can be seen and chance in the
// long part is small.
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>

static const char *const count[] = {"target_calls", "num_accepted_tokens"};
enum { CALLS, ACCEPTED, COUNTS, BLOCKS = 40 };

// The requests of a configuration from the first of a block to that of the next.
typedef struct block {
    double requests, sum[COUNTS];
} block;

typedef struct orders {
    dsc_selection selection;
    dsc_groups groups;
    block (*block)[BLOCKS]; // [groups]
    dsc_lines lines;
} orders;

// Adds each row to its block: the n-th request of a configuration is in block floor(log2 n).
static void add_blocks(dsc_plot *p, orders *o)
{
    int column[COUNTS];
    for (int i = 0; i < COUNTS; i++)
        column[i] = dsc_need(p, count[i], DSC_NUMBERS);
    size_t *seen = dsc_plot_new(p, size_t, o->groups.groups);
    o->block = dsc_plot_alloc(p, o->groups.groups, sizeof *o->block);
    for (size_t i = 0; i < o->selection.rows && !p->rc; i++) {
        const size_t g = o->groups.of[i], n = ++seen[g];
        block *b = &o->block[g][ilogb((double)n)];
        b->requests++;
        for (int k = 0; k < COUNTS; k++)
            b->sum[k] += dsc_value_at(p->table, o->selection.row[i], column[k]);
    }
}

static void add_columns(dsc_plot *p)
{
    const dsc_table *t = p->table;
    const dsc_column first[] = {{"first_request", DSC_CELL_REAL, NULL}},
                     last[] = {{"requests", DSC_CELL_REAL, NULL},
                               {count[CALLS], DSC_CELL_REAL, NULL},
                               {count[ACCEPTED], DSC_CELL_REAL, NULL},
                               {"accepted_per_call", DSC_CELL_REAL, NULL}};
    p->rc = dsc_table_add_columns(&p->made, first, 1, p->err);
    for (size_t c = 0; c < t->columns && !p->rc; c++)
        if (dsc_is_parameter(t, c))
            p->rc =
                dsc_table_add_column(&p->made, t->column[c].name, t->column[c].type, NULL, p->err);
    if (!p->rc)
        p->rc = dsc_table_add_columns(&p->made, last, sizeof last / sizeof *last, p->err);
}

// A row for each block of each configuration.
static void add_rows(dsc_plot *p, const orders *o)
{
    const dsc_table *t = p->table;
    dsc_cell *cell = dsc_plot_new(p, dsc_cell, t->columns + 5);
    for (size_t g = 0; g < o->groups.groups && !p->rc; g++)
        for (int b = 0; b < BLOCKS && o->block[g][b].requests > 0 && !p->rc; b++) {
            const block *x = &o->block[g][b];
            size_t n = 0;
            cell[n++] = dsc_cell_real(exp2(b));
            for (size_t c = 0; c < t->columns; c++)
                if (dsc_is_parameter(t, c))
                    cell[n++] = *dsc_table_at(t, o->groups.first[g], c);
            cell[n++] = dsc_cell_real(x->requests);
            cell[n++] = dsc_cell_real(x->sum[CALLS]);
            cell[n++] = dsc_cell_real(x->sum[ACCEPTED]);
            cell[n++] = dsc_cell_real(x->sum[CALLS] > 0 ? x->sum[ACCEPTED] / x->sum[CALLS] : NAN);
            p->rc = dsc_table_add_row(&p->made, cell, p->err);
        }
}

static void read_orders(dsc_plot *p, orders *o)
{
    static const dsc_figure_options all = {0};
    o->selection = dsc_select_requests(p, p->table, p->options);
    if (!p->rc)
        o->groups = dsc_group(p, &o->selection, -1, -1);
    if (!p->rc)
        add_blocks(p, o);
    if (!p->rc)
        add_columns(p);
    if (!p->rc)
        add_rows(p, o);
    if (p->rc)
        return;
    const dsc_table *t = &p->made;
    dsc_lines_init(p, &o->lines,
                   (dsc_lines_of){.table = t,
                                  .options = &all,
                                  .x = 0,
                                  .y = dsc_table_find(t, "accepted_per_call"),
                                  .noun = "configurations"});
}

static void put_finding(dsc_writer *w, const orders *o)
{
    const dsc_lines *l = &o->lines;
    dsc_put(w, "Line chart: accepted tokens per target call by request order.");
    for (size_t j = 0; j < l->lines; j++) {
        const double *v = l->value + j * l->nx;
        size_t last = 0;
        for (size_t i = 0; i < l->nx; i++)
            last = isnan(v[i]) ? last : i;
        dsc_put(w, " %s%s%.3g for request 1, %.3g from request %g on.", l->label[j],
                *l->label[j] ? ": " : "", v[0], v[last], l->x[last]);
    }
}

static void draw(dsc_plot *plot)
{
    orders o = {.block = NULL};
    read_orders(plot, &o);
    if (plot->rc)
        return;
    const dsc_lines *l = &o.lines;
    const dsc_panel panel = {"", "accepted tokens per target call", l->value, 0};
    const dsc_panels p = {
        .title = "Accepted tokens by request order",
        .subtitle = dsc_text(plot, "each point pools the target calls of requests N to 2N - 1%s%s",
                             *l->note ? "; " : "", l->note),
        .x_label = "request N",
        .x = l->x,
        .nx = l->nx,
        .key = l->key,
        .lines = l->lines,
        .panel = &panel,
        .panels = 1,
        .from_zero = true,
        .log_x = true,
    };
    dsc_draw_panels(plot, &p, "request_order", 720, 420 + 10 * (double)l->lines);
    put_finding(&plot->finding, &o);
    const dsc_table *t = &plot->made;
    double *of[] = {dsc_lines_values(plot, l, dsc_table_find(t, "requests")),
                    dsc_lines_values(plot, l, dsc_table_find(t, count[CALLS])),
                    dsc_lines_values(plot, l, dsc_table_find(t, count[ACCEPTED])), l->value};
    dsc_lines_data(plot, l, "first_request",
                   (const char *[]){"requests", count[CALLS], count[ACCEPTED], "accepted_per_call"},
                   of, 4);
}

const dsc_figure_type dsc_figure_request_order = {
    .name = "request-order",
    .summary = "accepted tokens per target call by request order (sim --per-request)",
    .needs = "request target_calls num_accepted_tokens",
    .compares = true,
    .draw = draw,
};
