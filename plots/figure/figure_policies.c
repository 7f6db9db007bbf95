// SPDX-License-Identifier: Apache-2.0
// Draws what policies of speculation lose at each load (draftscope serve --regret): bars of the
// mean end-to-end time above that of the best fixed draft length, and above that of a policy that
// drafts exactly what will be accepted.
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { PANELS = 2 };

typedef struct policies {
    dsc_selection selection;
    const char *name[DSC_STYLES];
    size_t count, all; // drawn, and in the table
    bool clients;      // the load is a number of clients, not a rate
    const double *load;
    size_t loads;
    const char **load_name; // [loads]
    double *x;              // [loads] 0, 1, ...
    double *value[PANELS];  // [count][loads] percent, NaN where there is none
    double *best_k;         // [count][loads]
    dsc_key key[DSC_STYLES], box[DSC_STYLES];
} policies;

static const char *const column[PANELS] = {"regret_fixed", "regret_oracle"};

static bool several_methods(const policies *v)
{
    const dsc_selection *s = &v->selection;
    for (size_t i = 1; i < s->rows; i++)
        if (strcmp(dsc_text_at(s->table, s->row[i], "method"),
                   dsc_text_at(s->table, s->row[0], "method")) != 0)
            return true;
    return false;
}

static const char *name_of(dsc_plot *p, const policies *v, size_t row)
{
    const char *policy = dsc_text_at(p->table, row, "speculation");
    return several_methods(v) ? dsc_text(p, "%s, %s", dsc_text_at(p->table, row, "method"), policy)
                              : policy;
}

// The index of the row's policy, `count` where there is no style left for it.
static size_t find_policy(dsc_plot *p, policies *v, size_t row)
{
    const char *name = name_of(p, v, row);
    size_t i = 0;
    while (i < v->count && strcmp(v->name[i], name) != 0)
        i++;
    if (i < v->count || v->count == DSC_STYLES)
        return i;
    v->key[i] = (dsc_key){name, (int)i};
    v->box[i] = (dsc_key){name, (int)i + DSC_KEY_BOX};
    v->name[v->count++] = name;
    return i;
}

static void find_loads(dsc_plot *p, policies *v)
{
    const int qps = dsc_need(p, "qps", DSC_NUMBERS), clients = dsc_need(p, "clients", DSC_NUMBERS);
    v->clients = true;
    for (size_t i = 0; i < v->selection.rows && !p->rc; i++)
        v->clients = v->clients && isnan(dsc_value_at(p->table, v->selection.row[i], qps));
    if (!p->rc)
        v->load = dsc_distinct(p, &v->selection, v->clients ? clients : qps, &v->loads);
    v->x = dsc_plot_numbers(p, v->loads);
    v->load_name = dsc_plot_new(p, const char *, v->loads);
    for (size_t i = 0; i < v->loads && !p->rc; i++) {
        v->x[i] = (double)i;
        v->load_name[i] = dsc_text(p, "%g", v->load[i]);
    }
}

static void read_row(dsc_plot *p, policies *v, size_t row)
{
    const double load = dsc_number_at(p->table, row, v->clients ? "clients" : "qps");
    const size_t policy = find_policy(p, v, row);
    if (policy == v->count)
        return;
    for (size_t i = 0; i < v->loads; i++) {
        const size_t at = policy * v->loads + i;
        if (v->load[i] != load)
            continue;
        if (!isnan(v->value[0][at]))
            dsc_refuse(p,
                       "policies: two rows have policy %s at %g; select one configuration, as with "
                       "--where num_speculative_tokens=4",
                       v->name[policy], load);
        for (int panel = 0; panel < PANELS; panel++)
            v->value[panel][at] = 100 * dsc_number_at(p->table, row, column[panel]);
        v->best_k[at] = dsc_number_at(p->table, row, "best_fixed_k");
    }
}

static size_t count_policies(dsc_plot *p, const policies *v)
{
    const dsc_selection *s = &v->selection;
    size_t n = 0;
    for (size_t i = 0; i < s->rows; i++) {
        bool known = false;
        for (size_t q = 0; q < i && !known; q++)
            known = !strcmp(name_of(p, v, s->row[q]), name_of(p, v, s->row[i]));
        n += !known;
    }
    return n;
}

static void read_policies(dsc_plot *p, policies *v)
{
    static const char *const number[] = {"best_fixed_k", "regret_fixed", "regret_oracle"};
    if (dsc_table_find(p->table, number[0]) < 0)
        dsc_refuse(p, "policies: the table has no column best_fixed_k; draftscope serve --regret "
                      "writes it");
    dsc_need(p, "speculation", DSC_NAMES);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        dsc_need(p, number[i], DSC_NUMBERS);
    v->selection = dsc_select(p, p->table, p->options, NULL);
    if (p->rc)
        return;
    find_loads(p, v);
    v->all = p->rc ? 0 : count_policies(p, v);
    for (int panel = 0; panel < PANELS; panel++)
        v->value[panel] = dsc_plot_numbers(p, DSC_STYLES * v->loads);
    v->best_k = dsc_plot_numbers(p, DSC_STYLES * v->loads);
    for (size_t i = 0; i < v->selection.rows && !p->rc; i++)
        read_row(p, v, v->selection.row[i]);
    if (!p->rc)
        dsc_check_any(p, v->value[0], v->count * v->loads, column[0]);
}

static const char *load_of(const policies *v)
{
    return v->clients ? "clients of a closed loop" : "requests per second";
}

static void put_finding(dsc_writer *w, const policies *v)
{
    dsc_put(w,
            "Bar chart: mean end-to-end time of each policy above that of the best fixed draft "
            "length, by load (%g to %g %s). ",
            v->load[0], v->load[v->loads - 1], load_of(v));
    for (size_t j = 0; j < v->count; j++) {
        const double *percent = v->value[0] + j * v->loads;
        dsc_put(w, "%s%s: %.3g %% at %g, %.3g %% at %g", j ? "; " : "", v->name[j], percent[0],
                v->load[0], percent[v->loads - 1], v->load[v->loads - 1]);
    }
    dsc_put(w, ".");
}

static void put_data(dsc_plot *p, const policies *v)
{
    dsc_data_text(p, "policy", "policy of speculation");
    dsc_data_number(p, "load", load_of(v));
    dsc_data_numbers(p, "regret_fixed_percent regret_oracle_percent best_fixed_k");
    for (size_t i = 0; i < v->count * v->loads; i++)
        if (!isnan(v->value[0][i]))
            dsc_data_row(
                p, &v->name[i / v->loads],
                (double[]){v->load[i % v->loads], v->value[0][i], v->value[1][i], v->best_k[i]});
}

static void draw(dsc_plot *plot)
{
    policies v = {.count = 0};
    read_policies(plot, &v);
    if (plot->rc)
        return;
    const dsc_panel panel[PANELS] = {{"", "above the best fixed draft length (%)", v.value[0], 0},
                                     {"", "above policy oracle (%)", v.value[1], 1}};
    const dsc_panels p = {
        .title = "Mean end-to-end time of policies by load",
        .subtitle = dsc_left_out(plot, v.count, v.all, "policies", 0),
        .x_label = load_of(&v),
        .x = v.x,
        .x_name = v.load_name,
        .nx = v.loads,
        .key = v.key,
        .lines = v.count,
        .legend = v.box,
        .legends = v.count,
        .panel = panel,
        .panels = PANELS,
        .columns = 2,
        .bars = true,
    };
    dsc_draw_panels(plot, &p, "policies", 800, 420 + 10 * (double)v.count);
    put_finding(&plot->finding, &v);
    put_data(plot, &v);
}

const dsc_figure_type dsc_figure_policies = {
    .name = "policies",
    .summary = "regret of policies of speculation by load, as bars",
    .needs = "speculation qps clients best_fixed_k regret_fixed regret_oracle",
    .draw = draw,
};
