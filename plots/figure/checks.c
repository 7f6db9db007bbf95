// SPDX-License-Identifier: Apache-2.0
// Reads predictions and measurements, parses their tolerances ("10 %", "|z| <= 3"), groups them by
// method and rule, and summarizes their errors.
#include "plots/figure/checks.h"

#include "plots/draw/glossary.h"

#include <math.h>
#include <string.h>

// The 3 in "|z| <= 3"; NaN: none.
static double z_limit(const char *tolerance)
{
    const char *at = strstr(tolerance, "|z| <= ");
    double v = NAN;
    return at && sscanf(at + 7, "%lf", &v) == 1 ? v : NAN;
}

// The 10 in "10 %"; NaN: none.
static double percent_limit(const char *tolerance)
{
    const char *at = strchr(tolerance, '%');
    double v = NAN;
    while (at && at > tolerance && at[-1] == ' ')
        at--;
    while (at && at > tolerance && strchr("0123456789.", at[-1]))
        at--;
    return at && sscanf(at, "%lf", &v) == 1 ? v : NAN;
}

static dsc_check read_check(const dsc_table *t, size_t row)
{
    const char *tolerance = dsc_text_at(t, row, "tolerance");
    const char *verdict = dsc_text_at(t, row, "verdict");
    dsc_check k = {
        .row = row,
        .predicted = dsc_number_at(t, row, "predicted"),
        .measured = dsc_number_at(t, row, "measured"),
        .z_limit = z_limit(tolerance),
        .se = dsc_number_at(t, row, "se"),
        .percent = percent_limit(tolerance),
        .fails = !strcmp(verdict, "fail"),
    };
    k.judged = k.fails || !strcmp(verdict, "pass");
    k.error = k.measured != 0 ? 100 * (k.predicted - k.measured) / fabs(k.measured) : NAN;
    return k;
}

// --- groups ----------------------------------------------------------------------------------

// Whether the method of a row appears with several rules.
static bool has_rules(const dsc_checks *c, size_t row)
{
    const dsc_table *t = c->selection.table;
    for (size_t i = 0; i < c->selection.rows; i++) {
        size_t other = c->selection.row[i];
        if (!strcmp(dsc_text_at(t, row, "method"), dsc_text_at(t, other, "method")) &&
            strcmp(dsc_text_at(t, row, "rule"), dsc_text_at(t, other, "rule")))
            return true;
    }
    return false;
}

// Assigns the checks to groups by method, or by method and rule. If there are more than `most`
// groups, the further ones share the last (`others`), or false is returned.
static bool name_groups(dsc_plot *p, dsc_checks *c, size_t most, bool rules, bool others)
{
    c->groups = 0;
    for (size_t i = 0; i < c->all; i++) {
        dsc_check *k = &c->check[i];
        bool rule = rules && has_rules(c, k->row);
        const char *name =
            dsc_text(p, "%.40s%s%.40s", dsc_text_at(p->table, k->row, "method"), rule ? ", " : "",
                     rule ? dsc_text_at(p->table, k->row, "rule") : "");
        size_t g = 0;
        while (g < c->groups && strcmp(c->name[g], name))
            g++;
        if (g == most && !others)
            return false;
        if (g == most)
            c->name[--g] = "other methods";
        else if (g == c->groups)
            c->name[c->groups++] = name;
        k->group = g;
    }
    return true;
}

// --- reading ---------------------------------------------------------------------------------

// The index of a row's quantity among those wanted, or SIZE_MAX.
static size_t wanted_quantity(const char *name, const char *const *wanted)
{
    for (size_t i = 0; wanted[i]; i++)
        if (!strcmp(wanted[i], name))
            return i;
    return SIZE_MAX;
}

// Reads the pooled rows, or all others.
static void read_rows(dsc_checks *c, const char *const *wanted, bool pooled)
{
    const dsc_table *t = c->selection.table;
    double first = NAN;
    for (size_t i = 0; i < c->selection.rows; i++) {
        size_t row = c->selection.row[i];
        size_t q = wanted_quantity(dsc_text_at(t, row, "quantity"), wanted);
        if (q == SIZE_MAX)
            continue;
        dsc_check k = read_check(t, row);
        k.quantity = q;
        c->unpredicted += !pooled && isnan(k.predicted) && !isnan(k.measured);
        if (isnan(k.predicted) || isnan(k.measured))
            continue;
        double v = dsc_number_at(t, row, "temperature");
        c->temperatures = c->temperatures || (!isnan(first) && v != first);
        first = isnan(first) ? v : first;
        if (pooled == !strcmp(dsc_text_at(t, row, "parameters"), "all"))
            c->check[c->all++] = k;
    }
}

// Drops the quantities without any configuration, and their pooled rows.
static void keep_quantities(dsc_plot *p, dsc_checks *c, const char *const *wanted)
{
    size_t of[DSC_CHECK_QUANTITIES], kept = c->checks;
    for (size_t q = 0; wanted[q]; q++) {
        bool any = dsc_next_check(c, q, NULL);
        of[q] = any ? c->quantities : SIZE_MAX;
        if (!any)
            continue;
        c->heading[c->quantities] = dsc_term_heading(p, wanted[q]);
        c->quantity[c->quantities++] = wanted[q];
    }
    for (size_t i = 0; i < c->all; i++) {
        c->check[i].quantity = of[c->check[i].quantity];
        if (i >= c->checks && c->check[i].quantity != SIZE_MAX)
            c->check[kept++] = c->check[i];
    }
    c->all = kept;
}

static void refuse(dsc_plot *p, const dsc_checks *c, const char *const *wanted)
{
    dsc_writer *w = dsc_text_begin(p);
    for (size_t i = 0; wanted[i]; i++)
        dsc_put(w, "%s%.60s", i ? ", " : "", wanted[i]);
    dsc_put(w, " (the table contains ");
    dsc_put_values(w, p->table, c->selection.row, c->selection.rows,
                   (size_t)dsc_table_find(p->table, "quantity"));
    const char *text = dsc_text_end(p);
    dsc_refuse(p, "%s: no configuration has a prediction and a measurement of %.600s)", p->name,
               text);
}

void dsc_checks_init(dsc_plot *p, dsc_checks *c, const char *const *wanted, size_t most)
{
    int unused[DSC_NEEDS];
    *c = (dsc_checks){.groups = 0};
    dsc_need_columns(p, DSC_CHECK_NEEDS, unused);
    c->selection = dsc_select(p, p->table, p->options, NULL);
    c->check = dsc_plot_new(p, dsc_check, c->selection.rows);
    if (p->rc)
        return;
    read_rows(c, wanted, false);
    c->checks = c->all;
    read_rows(c, wanted, true);
    keep_quantities(p, c, wanted);
    if (!c->checks)
        refuse(p, c, wanted);
    else if (!name_groups(p, c, most, true, false))
        name_groups(p, c, most, false, true);
}

void dsc_checks_of_figure(dsc_plot *p, dsc_checks *c, size_t most)
{
    const char *const own[] = {p->options->column, NULL};
    dsc_checks_init(p, c, p->options->column ? own : p->spec, most);
}

bool dsc_checks_fit(dsc_plot *p)
{
    dsc_checks c;
    dsc_checks_of_figure(p, &c, DSC_CHECK_GROUPS);
    return !p->rc;
}

const dsc_check *dsc_next_check(const dsc_checks *c, size_t quantity, const dsc_check *k)
{
    for (size_t i = k ? (size_t)(k - c->check) + 1 : 0; i < c->checks; i++)
        if (c->check[i].quantity == quantity)
            return &c->check[i];
    return NULL;
}

double dsc_checks_percent(const dsc_checks *c, size_t quantity, bool *pooled)
{
    for (size_t i = 0; i < c->all; i++) {
        if (pooled)
            *pooled = i >= c->checks;
        if (c->check[i].quantity == quantity && c->check[i].percent < 100)
            return c->check[i].percent;
    }
    return NAN;
}

// --- words -----------------------------------------------------------------------------------

void dsc_put_check(dsc_writer *w, const dsc_checks *c, const dsc_check *check)
{
    const dsc_table *t = c->selection.table;
    const char *parameters = dsc_text_at(t, check->row, "parameters");
    dsc_put(w, "%s", dsc_text_at(t, check->row, "method"));
    if (has_rules(c, check->row))
        dsc_put(w, ", %s", dsc_text_at(t, check->row, "rule"));
    if (*parameters)
        dsc_put(w, ", %s", parameters);
    if (c->temperatures)
        dsc_put(w, ", temperature %g", dsc_number_at(t, check->row, "temperature"));
}

const char *dsc_check_text(dsc_plot *p, const dsc_checks *c, const dsc_check *check)
{
    dsc_put_check(dsc_text_begin(p), c, check);
    return dsc_text_end(p);
}

void dsc_put_percent(dsc_writer *w, double percent)
{
    dsc_put(w, fabs(percent) < 99.5 ? "%+.2g %%" : "%+.0f %%", percent);
}

void dsc_put_check_errors(dsc_writer *w, const dsc_checks *c, size_t quantity)
{
    const dsc_check *worst = NULL;
    size_t n = 0, judged = 0, fail = 0;
    double sum = 0;
    for (const dsc_check *k = NULL; (k = dsc_next_check(c, quantity, k));) {
        judged += k->judged;
        fail += k->fails;
        if (isnan(k->error))
            continue;
        n++;
        sum += fabs(k->error);
        worst = !worst || fabs(k->error) > fabs(worst->error) ? k : worst;
    }
    if (n && worst->error == 0)
        dsc_put(w, "no error");
    else if (n) {
        double mean = sum / (double)n;
        dsc_put(w,
                mean < 99.5 ? "mean |error| %.2g %%, largest " : "mean |error| %.0f %%, largest ",
                mean);
        dsc_put_percent(w, worst->error);
        dsc_put(w, " (");
        dsc_put_check(w, c, worst);
        dsc_put(w, ")");
    }
    if (judged)
        dsc_put(w, "%s%zu of %zu outside the tolerance", n ? "; " : "", fail, judged);
    else
        dsc_put(w, "%sno tolerance was given", n ? "; " : "");
}

void dsc_checks_data(dsc_plot *p, const dsc_checks *c)
{
    dsc_data_text(p, "group", "method, and rule if the method has several");
    dsc_data_text(p, "configuration", NULL);
    dsc_data_text(p, "quantity", NULL);
    dsc_data_numbers(p, "predicted measured");
    dsc_data_number(p, "error_percent", "100 (predicted - measured) / |measured|");
    dsc_data_text(p, "verdict", NULL);
    for (size_t i = 0; i < c->all; i++) {
        const dsc_check *k = &c->check[i];
        dsc_data_row(p,
                     (const char *[]){c->name[k->group], dsc_check_text(p, c, k),
                                      c->quantity[k->quantity],
                                      dsc_text_at(p->table, k->row, "verdict")},
                     (double[]){k->predicted, k->measured, k->error});
    }
}

// --- drawing -------------------------------------------------------------------------------

void dsc_draw_checks(dsc_plot *p, const dsc_checks *c, const dsc_check_chart *chart, const void *of)
{
    dsc_canvas canvas = dsc_canvas_of(p, chart->width, chart->height, 0);
    dsc_key key[DSC_STYLES + 1];
    dsc_writer *w = &p->script;
    size_t columns = canvas.narrow ? 1 : c->quantities;
    if (p->rc)
        return;
    for (size_t g = 0; g < c->groups; g++)
        key[g] = (dsc_key){c->name[g], (int)g | DSC_KEY_POINT};
    key[c->groups] = (dsc_key){chart->reference, DSC_KEY_REFERENCE};
    dsc_put_terminal(w, &canvas, chart->word);
    chart->put_data(w, of);
    dsc_put(w, "set multiplot\n");
    double top =
        dsc_put_heading(w, &canvas, chart->title, chart->subtitle, NULL, key, c->groups + 1);
    for (size_t q = 0; q < c->quantities; q++)
        chart->put_panel(
            p, &canvas, of, q,
            dsc_panel_place(&canvas, top + (canvas.dumb ? 0 : 6), c->quantities, columns, q));
    dsc_put(w, "unset multiplot\n");
}

dsc_place dsc_put_check_axes(dsc_writer *w, const dsc_canvas *c, dsc_place p, double right,
                             const char *heading, const char *text, const dsc_axis *y,
                             const char *x_label)
{
    bool dumb = c->dumb;
    dsc_place box = {p.left + dsc_axis_label_width(c, y) + (dumb ? 2 : 12), p.top, p.right - right,
                     p.bottom - (dumb ? 3 : 2.2 * c->line_height + 6)};
    double width = p.right - p.left;
    box.top += dsc_put_paragraph(w, c, p.left, p.top, width, DSC_FONT_BODY, DSC_INK, 1, heading);
    box.top +=
        dsc_put_paragraph(w, c, p.left, box.top, width, DSC_FONT_SMALL, DSC_INK_SOFT, 2, text);
    box.top += dumb ? 0 : 8;
    dsc_put_margins(w, c, box.left, box.top, box.right, box.bottom);
    dsc_check_room(w, c, box.right - box.left, box.bottom - box.top);
    dsc_put_y_axis(w, y);
    dsc_put_x_label(w, c, box, 0, p.right, x_label);
    return box;
}

void dsc_put_check_points(dsc_writer *w, const dsc_canvas *c, const dsc_checks *checks,
                          size_t quantity, double (*value)(const dsc_check *))
{
    for (size_t g = 0; g < checks->groups; g++) {
        bool any = false;
        for (const dsc_check *k = NULL; (k = dsc_next_check(checks, quantity, k));)
            any = any || (k->group == g && !isnan(value(k)));
        if (!any)
            continue;
        dsc_put(w, ", \\\n     $points%zu using ($3 == %zu ? $1 : NaN):2 with points ",
                quantity + 1, g);
        dsc_put_line_style(w, c, (int)g, 1);
        dsc_put(w, " notitle");
    }
    dsc_put(w, "\n");
}
