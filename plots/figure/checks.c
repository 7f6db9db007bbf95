// SPDX-License-Identifier: Apache-2.0
#include "plots/figure/checks.h"

#include "plots/draw/glossary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METHOD, RULE, PARAMETERS, QUANTITY, PREDICTED, MEASURED, SE, TOLERANCE, VERDICT, COLUMNS };

static const char *text_at(const dsc_table *t, size_t row, int column)
{
    const dsc_cell *cell = dsc_table_at(t, row, (size_t)column);
    return cell->type == DSC_CELL_TEXT ? cell->text : "";
}

static double number_at(const dsc_table *t, size_t row, int column)
{
    double v = dsc_table_real(t, row, (size_t)column);
    return dsc_drawable(v) ? v : NAN;
}

// 3 of "|z| <= 3"
static double z_limit(const char *tolerance)
{
    const char *at = strstr(tolerance, "|z| <= ");
    double v = NAN;
    return at && sscanf(at + 7, "%lf", &v) == 1 ? v : NAN;
}

// 10 of "10 %"
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

static dsc_check read_check(const dsc_table *t, size_t row, const int *column)
{
    const char *tolerance = text_at(t, row, column[TOLERANCE]);
    const char *verdict = text_at(t, row, column[VERDICT]);
    dsc_check k = {
        .row = row,
        .predicted = number_at(t, row, column[PREDICTED]),
        .measured = number_at(t, row, column[MEASURED]),
        .z_limit = z_limit(tolerance),
        .se = number_at(t, row, column[SE]),
        .percent = percent_limit(tolerance),
        .fails = !strcmp(verdict, "fail"),
    };
    k.judged = k.fails || !strcmp(verdict, "pass");
    k.error = k.measured != 0 ? 100 * (k.predicted - k.measured) / fabs(k.measured) : NAN;
    return k;
}

// --- groups ----------------------------------------------------------------------------------

// Whether rows of the method have several rules.
static bool has_rules(const dsc_checks *c, const int *column, size_t row)
{
    const dsc_table *t = c->selection.table;
    for (size_t i = 0; i < c->selection.rows; i++) {
        size_t other = c->selection.row[i];
        if (!strcmp(text_at(t, row, column[METHOD]), text_at(t, other, column[METHOD])) &&
            strcmp(text_at(t, row, column[RULE]), text_at(t, other, column[RULE])))
            return true;
    }
    return false;
}

// Names `count` checks; false when there are more than `most` names, unless `others`.
static bool name_groups(dsc_checks *c, const int *column, size_t most, bool rules, bool others)
{
    const dsc_table *t = c->selection.table;
    char name[DSC_CHECK_NAME];
    c->groups = 0;
    for (size_t i = 0; i < c->checks + c->pools; i++) {
        dsc_check *k = i < c->checks ? &c->check[i] : &c->pooled[i - c->checks];
        bool rule = rules && has_rules(c, column, k->row);
        snprintf(name, sizeof name, "%.40s%s%.40s", text_at(t, k->row, column[METHOD]),
                 rule ? ", " : "", rule ? text_at(t, k->row, column[RULE]) : "");
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

static void read_rows(dsc_checks *c, const int *column, const char *const *wanted)
{
    const dsc_table *t = c->selection.table;
    int temperature = dsc_table_find(t, "temperature");
    double first = NAN;
    for (size_t i = 0; i < c->selection.rows; i++) {
        size_t row = c->selection.row[i];
        size_t q = wanted_quantity(text_at(t, row, column[QUANTITY]), wanted);
        if (q == SIZE_MAX)
            continue;
        dsc_check k = read_check(t, row, column);
        k.quantity = q;
        c->unpredicted += isnan(k.predicted) && !isnan(k.measured);
        if (isnan(k.predicted) || isnan(k.measured))
            continue;
        double v = temperature < 0 ? NAN : number_at(t, row, temperature);
        c->temperatures = c->temperatures || (!isnan(first) && v != first);
        first = isnan(first) ? v : first;
        if (strcmp(text_at(t, row, column[PARAMETERS]), "all"))
            c->check[c->checks++] = k;
        else
            c->pooled[c->pools++] = k;
    }
}

// Quantities without any configuration have no panel; what is pooled of them goes too.
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

static int refuse(const dsc_checks *c, const char *who, const int *column,
                  const char *const *wanted, dsc_error *err)
{
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = err};
    for (size_t i = 0; wanted[i]; i++)
        dsc_put(&w, "%s%.60s", i ? ", " : "", wanted[i]);
    dsc_put(&w, " (the table's quantities: ");
    dsc_put_values(&w, c->selection.table, c->selection.row, c->selection.rows,
                   (size_t)column[QUANTITY]);
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
    int column[COLUMNS];
    *c = (dsc_checks){0};
    int rc = dsc_need_columns(t, who, DSC_CHECK_NEEDS, column, err);
    if (!rc)
        rc = dsc_select(&c->selection, t, o, NULL, err);
    if (!rc)
        rc = dsc_new(&c->check, c->selection.rows, err);
    if (!rc)
        rc = dsc_new(&c->pooled, c->selection.rows, err);
    if (!rc) {
        read_rows(c, column, wanted);
        keep_quantities(c, wanted);
        if (!c->checks)
            rc = refuse(c, who, column, wanted, err);
        else if (!name_groups(c, column, most, true, false))
            name_groups(c, column, most, false, true);
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
    int method = dsc_table_find(t, "method"), rule = dsc_table_find(t, "rule");
    const char *parameters = text_at(t, check->row, dsc_table_find(t, "parameters"));
    const int column[COLUMNS] = {[METHOD] = method, [RULE] = rule};
    dsc_put(w, "%s", text_at(t, check->row, method));
    if (has_rules(c, column, check->row))
        dsc_put(w, ", %s", text_at(t, check->row, rule));
    if (*parameters)
        dsc_put(w, ", %s", parameters);
    if (c->temperatures)
        dsc_put(w, ", temperature %g", number_at(t, check->row, dsc_table_find(t, "temperature")));
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
        dsc_put(w, "%s as measured", n == 1 ? "exactly" : "all exactly");
    else if (n) {
        dsc_put(w, "off by %.2g %% on average, at most by %+.2g %% (", sum / (double)n,
                worst->error);
        dsc_put_check(w, c, worst);
        dsc_put(w, ")");
    }
    if (judged)
        dsc_put(w, "%s%zu of %zu outside the tolerance", n ? "; " : "", fail, judged);
    else
        dsc_put(w, "%snone of them judged", n ? "; " : "");
}

int dsc_checks_data(const dsc_checks *c, dsc_table *data, dsc_error *err)
{
    static const dsc_column column[] = {
        {"group", DSC_CELL_TEXT, "method, and rule where it has several"},
        {"configuration", DSC_CELL_TEXT, NULL},
        {"quantity", DSC_CELL_TEXT, NULL},
        {"predicted", DSC_CELL_REAL, NULL},
        {"measured", DSC_CELL_REAL, NULL},
        {"error_percent", DSC_CELL_REAL, "100 (predicted - measured) / |measured|"},
        {"verdict", DSC_CELL_TEXT, NULL},
    };
    enum { DATA = sizeof column / sizeof *column };
    const dsc_table *t = c->selection.table;
    int verdict = dsc_table_find(t, "verdict"), rc = DSC_OK;
    for (size_t i = 0; i < DATA && !rc; i++)
        rc = dsc_table_add_column(data, column[i].name, column[i].type, column[i].help, err);
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
            {.type = DSC_CELL_TEXT, .text = text_at(t, k->row, verdict)},
        };
        rc = w.rc ? w.rc : dsc_table_add_row(data, cell, err);
    }
    dsc_buffer_fini(&label);
    return rc;
}

dsc_place dsc_panel_place(const dsc_canvas *c, double top, size_t panels, size_t i)
{
    bool dumb = c->terminal == DSC_TERM_DUMB;
    double margin = dumb ? 1 : 12, gap = dumb ? 2 : 26;
    size_t columns = c->narrow ? 1 : panels, rows = panels / columns;
    double width = (c->width - 2 * margin - gap * ((double)columns - 1)) / (double)columns;
    double height = (c->height - top - (dumb ? 0 : margin / 2)) / (double)rows;
    if (dumb)
        width = floor(width), height = floor(height);
    dsc_place p = {.left = margin + (double)(i % columns) * (width + gap),
                   .top = top + (double)(i / columns) * height};
    p.right = p.left + width;
    p.bottom = p.top + height - (dumb || i / columns + 1 == rows ? 0 : 8);
    return p;
}
