// SPDX-License-Identifier: Apache-2.0
// Reads predictions and measurements, parses their tolerances ("10 %", "|z| <= 3"), groups them by
// method and rule, and summarizes their errors.
#include "plots/figure/checks.h"

#include "plots/draw/data.h"
#include "plots/draw/glossary.h"

#include <math.h>
#include <stdlib.h>
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
static bool name_groups(dsc_checks *c, size_t most, bool rules, bool others)
{
    const dsc_table *t = c->selection.table;
    char name[DSC_CHECK_NAME];
    c->groups = 0;
    for (size_t i = 0; i < c->checks + c->pools; i++) {
        dsc_check *k = i < c->checks ? &c->check[i] : &c->pooled[i - c->checks];
        bool rule = rules && has_rules(c, k->row);
        snprintf(name, sizeof name, "%.40s%s%.40s", dsc_text_at(t, k->row, "method"),
                 rule ? ", " : "", rule ? dsc_text_at(t, k->row, "rule") : "");
        size_t g = 0;
        while (g < c->groups && strcmp(c->name[g], name))
            g++;
        if (g == most && !others)
            return false;
        if (g == most)
            snprintf(c->name[--g], DSC_CHECK_NAME, "other methods");
        else if (g == c->groups)
            snprintf(c->name[c->groups++], DSC_CHECK_NAME, "%s", name);
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

static void read_rows(dsc_checks *c, const char *const *wanted)
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
        c->unpredicted += isnan(k.predicted) && !isnan(k.measured);
        if (isnan(k.predicted) || isnan(k.measured))
            continue;
        double v = dsc_number_at(t, row, "temperature");
        c->temperatures = c->temperatures || (!isnan(first) && v != first);
        first = isnan(first) ? v : first;
        if (strcmp(dsc_text_at(t, row, "parameters"), "all"))
            c->check[c->checks++] = k;
        else
            c->pooled[c->pools++] = k;
    }
}

// Drops the quantities without any configuration, and their pooled rows.
static void keep_quantities(dsc_checks *c, const char *const *wanted)
{
    size_t of[DSC_CHECK_QUANTITIES], pools = 0;
    for (size_t q = 0; wanted[q]; q++) {
        bool any = false;
        for (size_t i = 0; i < c->checks; i++)
            any = any || c->check[i].quantity == q;
        of[q] = any ? c->quantities : SIZE_MAX;
        if (any)
            c->quantity[c->quantities++] = wanted[q];
    }
    for (size_t i = 0; i < c->checks; i++)
        c->check[i].quantity = of[c->check[i].quantity];
    for (size_t i = 0; i < c->pools; i++) {
        c->pooled[i].quantity = of[c->pooled[i].quantity];
        if (c->pooled[i].quantity != SIZE_MAX)
            c->pooled[pools++] = c->pooled[i];
    }
    c->pools = pools;
}

static int refuse(const dsc_checks *c, const char *who, const char *const *wanted, dsc_error *err)
{
    const dsc_table *t = c->selection.table;
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = err};
    for (size_t i = 0; wanted[i]; i++)
        dsc_put(&w, "%s%.60s", i ? ", " : "", wanted[i]);
    dsc_put(&w, " (the table contains ");
    dsc_put_values(&w, t, c->selection.row, c->selection.rows,
                   (size_t)dsc_table_find(t, "quantity"));
    int rc = w.rc ? w.rc
                  : dsc_fail(err, DSC_EUSAGE,
                             "%s: no configuration has a prediction and a measurement of %.600s)",
                             who, b.data);
    dsc_buffer_fini(&b);
    return rc;
}

int dsc_checks_init(dsc_checks *c, const dsc_table *t, const char *who, const dsc_figure_options *o,
                    const char *const *wanted, size_t most, dsc_error *err)
{
    int unused[9];
    *c = (dsc_checks){0};
    int rc = dsc_need_columns(t, who, DSC_CHECK_NEEDS, unused, err);
    if (!rc)
        rc = dsc_select(&c->selection, t, o, NULL, err);
    if (!rc)
        rc = dsc_new(&c->check, c->selection.rows, err);
    if (!rc)
        rc = dsc_new(&c->pooled, c->selection.rows, err);
    if (!rc) {
        read_rows(c, wanted);
        keep_quantities(c, wanted);
        if (!c->checks)
            rc = refuse(c, who, wanted, err);
        else if (!name_groups(c, most, true, false))
            name_groups(c, most, false, true);
    }
    if (rc)
        dsc_checks_fini(c);
    return rc;
}

void dsc_checks_fini(dsc_checks *c)
{
    free(c->check);
    free(c->pooled);
    dsc_selection_fini(&c->selection);
    *c = (dsc_checks){0};
}

bool dsc_checks_fit(const dsc_table *t, const char *const *wanted)
{
    static const dsc_figure_options all = {0};
    dsc_checks c;
    bool fit = !dsc_checks_init(&c, t, "", &all, wanted, DSC_CHECK_GROUPS, NULL);
    dsc_checks_fini(&c);
    return fit;
}

double dsc_checks_percent(const dsc_checks *c, size_t quantity, bool *pooled)
{
    for (size_t i = 0; i < c->checks + c->pools; i++) {
        const dsc_check *k = i < c->checks ? &c->check[i] : &c->pooled[i - c->checks];
        if (pooled)
            *pooled = i >= c->checks;
        if (k->quantity == quantity && k->percent < 100)
            return k->percent;
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

void dsc_put_percent(dsc_writer *w, double percent)
{
    dsc_put(w, fabs(percent) < 99.5 ? "%+.2g %%" : "%+.0f %%", percent);
}

void dsc_put_check_errors(dsc_writer *w, const dsc_checks *c, size_t quantity)
{
    const dsc_check *worst = NULL;
    size_t n = 0, judged = 0, fail = 0;
    double sum = 0;
    for (size_t i = 0; i < c->checks; i++) {
        const dsc_check *k = &c->check[i];
        if (k->quantity != quantity)
            continue;
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

int dsc_checks_data(const dsc_checks *c, dsc_table *data, dsc_error *err)
{
    static const dsc_column column[] = {
        {"group", DSC_CELL_TEXT, "method, and rule if the method has several"},
        {"configuration", DSC_CELL_TEXT, NULL},
        {"quantity", DSC_CELL_TEXT, NULL},
        {"predicted", DSC_CELL_REAL, NULL},
        {"measured", DSC_CELL_REAL, NULL},
        {"error_percent", DSC_CELL_REAL, "100 (predicted - measured) / |measured|"},
        {"verdict", DSC_CELL_TEXT, NULL},
    };
    enum { DATA = sizeof column / sizeof *column };
    const dsc_table *t = c->selection.table;
    int rc = dsc_data_columns(data, column, DATA, err);
    dsc_buffer label = {0};
    for (size_t i = 0; i < c->checks + c->pools && !rc; i++) {
        const dsc_check *k = i < c->checks ? &c->check[i] : &c->pooled[i - c->checks];
        dsc_writer w = {.to = &label, .err = err};
        label.length = 0;
        dsc_put_check(&w, c, k);
        const dsc_cell cell[DATA] = {
            {.type = DSC_CELL_TEXT, .text = c->name[k->group]},
            {.type = DSC_CELL_TEXT, .text = w.rc ? "" : label.data},
            {.type = DSC_CELL_TEXT, .text = c->quantity[k->quantity]},
            {.type = DSC_CELL_REAL, .r = k->predicted},
            {.type = DSC_CELL_REAL, .r = k->measured},
            {.type = DSC_CELL_REAL, .r = k->error},
            {.type = DSC_CELL_TEXT, .text = dsc_text_at(t, k->row, "verdict")},
        };
        rc = w.rc ? w.rc : dsc_table_add_row(data, cell, err);
    }
    dsc_buffer_fini(&label);
    return rc;
}

// --- drawing -------------------------------------------------------------------------------

size_t dsc_check_key(const dsc_checks *c, const char *reference, dsc_key *key)
{
    for (size_t g = 0; g < c->groups; g++)
        key[g] = (dsc_key){c->name[g], (int)g | DSC_KEY_POINT};
    key[c->groups] = (dsc_key){reference, DSC_KEY_REFERENCE};
    return c->groups + 1;
}

dsc_place dsc_put_check_axes(dsc_writer *w, const dsc_canvas *c, dsc_place p, double right,
                             const char *quantity, const char *text, const dsc_axis *y,
                             const char *x_label)
{
    bool dumb = c->terminal == DSC_TERM_DUMB;
    char heading[100];
    dsc_place box = {p.left + dsc_axis_label_width(c, y) + (dumb ? 2 : 12), p.top, p.right - right,
                     p.bottom - (dumb ? 3 : 2.2 * c->line_height + 6)};
    double width = p.right - p.left;
    dsc_term_heading(quantity, heading, sizeof heading);
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
        for (size_t i = 0; i < checks->checks; i++) {
            const dsc_check *k = &checks->check[i];
            any = any || (k->quantity == quantity && k->group == g && !isnan(value(k)));
        }
        if (!any)
            continue;
        dsc_put(w, ", \\\n     $points%zu using ($3 == %zu ? $1 : NaN):2 with points ",
                quantity + 1, g);
        dsc_put_line_style(w, c, (int)g, 1);
        dsc_put(w, " notitle");
    }
    dsc_put(w, "\n");
}
