// SPDX-License-Identifier: Apache-2.0
// Draws verification rules by number of drafts K, one line per rule and one panel per draft length
// L (SpecTr, Sun et al. 2023, arXiv 2310.15141). otm is drawn as a bound: at one position, no rule
// for K independently sampled drafts accepts more often. It bounds each position, not a block of
// several, and it does not bound rules whose drafts are sampled without replacement.
#include "plots/draw/data.h"
#include "plots/draw/glossary.h"
#include "plots/draw/label.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PANELS = 8, LINES = DSC_STYLES + 1 };

typedef struct rules {
    dsc_selection selection;
    dsc_groups groups;
    double *k, *length; // [nk], [lengths] ascending
    size_t nk, lengths;
    size_t panel[PANELS], panels; // indices into length
    size_t line[LINES], lines;    // groups, the bound first
    bool bound;                   // line 0 is the bound
    bool flat;                    // some rule takes one draft; its line is constant
    const char *column;
    const char *x, *y; // columns of K and L
    double *value;     // [panels][lines][nk]
    char label[LINES][DSC_LINE_LABEL];
    dsc_key key[LINES];
} rules;

static void rules_fini(rules *r)
{
    free(r->k);
    free(r->length);
    free(r->value);
    dsc_groups_fini(&r->groups);
    dsc_selection_fini(&r->selection);
}

static const char *rule_of(const rules *r, size_t group, int column)
{
    return dsc_table_at(r->selection.table, r->groups.first[group], (size_t)column)->text;
}

// The style of a rule, which is the same in every figure.
static int style_of(const char *rule)
{
    static const char *const name[DSC_STYLES] = {"kseq",  "specinfer", "specinfer-wor", "rejection",
                                                 "block", "greedy",    "typical",       ""};
    int i = 0;
    while (i < DSC_STYLES - 1 && strcmp(rule, name[i]))
        i++;
    return i;
}

// Chooses the lines, the bound first, so that the others are drawn over it. If the style of a rule
// is taken, the next free one replaces it.
static int choose_lines(rules *r, int rule, dsc_error *err)
{
    bool taken[DSC_STYLES] = {false};
    size_t n = r->groups.groups;
    for (size_t g = 0; g < n && !r->bound; g++)
        if (!strcmp(rule_of(r, g, rule), "otm")) {
            r->bound = true;
            r->key[0].style = DSC_STYLE_BOUND;
            r->line[r->lines++] = g;
        }
    for (size_t g = 0; g < n; g++) {
        int style = style_of(rule_of(r, g, rule));
        if (r->bound && r->line[0] == g)
            continue;
        if (r->lines == DSC_STYLES + (size_t)r->bound)
            return dsc_fail(err, DSC_EUSAGE,
                            "the table has %zu lines and the figure shows at most %d: filter by "
                            "%.500s",
                            n, DSC_STYLES, r->groups.varying);
        while (taken[style])
            style = (style + 1) % DSC_STYLES;
        taken[style] = true;
        r->key[r->lines].style = style;
        r->line[r->lines++] = g;
    }
    return DSC_OK;
}

static int label_lines(rules *r, dsc_error *err)
{
    dsc_buffer b = {0};
    dsc_writer w = {.to = &b, .err = err};
    int rule = dsc_table_find(r->selection.table, "rule");
    for (size_t j = 0; j < r->lines && !w.rc; j++) {
        b.length = 0;
        dsc_put(&w, "%s%s", rule_of(r, r->line[j], rule), j || !r->bound ? "" : " (bound)");
        size_t before = b.length;
        dsc_put(&w, ", ");
        dsc_put_distinct(&w, r->selection.table, r->groups.first, r->groups.groups, r->line[j],
                         (const char *[]){"rule", "method", r->x, r->y, NULL});
        if (!w.rc && b.length == before + 2)
            b.data[before] = '\0';
        if (!w.rc)
            snprintf(r->label[j], DSC_LINE_LABEL, "%s", b.data);
        r->key[j].label = r->label[j];
    }
    dsc_buffer_fini(&b);
    return w.rc;
}

// Whether some row with the rule of `row` has a number of drafts.
static bool has_drafts(const rules *r, size_t row, const int column[4])
{
    const dsc_table *t = r->selection.table;
    size_t rule = (size_t)dsc_table_find(t, "rule");
    for (size_t i = 0; i < t->rows; i++)
        if (dsc_drawable(dsc_table_real(t, i, (size_t)column[1])) &&
            !strcmp(dsc_table_at(t, i, rule)->text, dsc_table_at(t, row, rule)->text))
            return true;
    return false;
}

// Keeps the rows with a draft length and a number of drafts. Rows of draft-model, which drafts one
// sequence, have no number of drafts; they are kept if their rule has no other rows.
static int keep_drafts(rules *r, const int column[4], dsc_error *err)
{
    const dsc_table *t = r->selection.table;
    int method = dsc_table_find(t, "method");
    size_t kept = 0;
    for (size_t i = 0; i < r->selection.rows; i++) {
        size_t row = r->selection.row[i];
        bool linear = method < 0 || t->column[method].type != DSC_CELL_TEXT ||
                      !strcmp(dsc_table_at(t, row, (size_t)method)->text, "draft-model");
        if (dsc_drawable(dsc_table_real(t, row, (size_t)column[2])) &&
            (dsc_drawable(dsc_table_real(t, row, (size_t)column[1])) ||
             (linear && !has_drafts(r, row, column))))
            r->selection.row[kept++] = row;
    }
    r->selection.rows = kept;
    return kept ? DSC_OK
                : dsc_fail(err, DSC_EUSAGE, "no row has both '%s' and '%s'",
                           t->column[column[1]].name, t->column[column[2]].name);
}

// Finds the draft lengths of the rows with a number of drafts; one sequence alone has no
// comparison.
static int distinct_lengths(rules *r, const int column[4], dsc_error *err)
{
    const dsc_table *t = r->selection.table;
    dsc_selection s = {.table = t};
    int rc = dsc_new(&s.row, r->selection.rows, err);
    for (size_t i = 0; !rc && i < r->selection.rows; i++)
        if (dsc_drawable(dsc_table_real(t, r->selection.row[i], (size_t)column[1])))
            s.row[s.rows++] = r->selection.row[i];
    if (!rc)
        rc = dsc_distinct(&s, column[2], &r->length, &r->lengths, err);
    dsc_selection_fini(&s);
    return rc;
}

// Stores the value of a row at its K, or at every K if the row has no number of drafts.
static int place(rules *r, size_t row, size_t line, const int column[4], dsc_error *err)
{
    const dsc_table *t = r->selection.table;
    double v = dsc_table_real(t, row, (size_t)column[3]);
    double k = dsc_table_real(t, row, (size_t)column[1]);
    double length = dsc_table_real(t, row, (size_t)column[2]);
    r->flat = r->flat || !dsc_drawable(k);
    for (size_t p = 0; p < r->panels; p++)
        for (size_t i = 0; r->length[r->panel[p]] == length && i < r->nk; i++) {
            double *to = &r->value[(p * r->lines + line) * r->nk + i];
            if (dsc_drawable(k) && r->k[i] != k)
                continue;
            if (!isnan(*to))
                return dsc_fail(err, DSC_EUSAGE,
                                "two rows have the same configuration (%s, %s = %g, %s = %g)",
                                r->label[line], t->column[column[1]].name, r->k[i],
                                t->column[column[2]].name, length);
            *to = dsc_drawable(v) ? v : NAN;
        }
    return DSC_OK;
}

static int fill(rules *r, const int column[4], dsc_error *err)
{
    size_t count = r->panels * r->lines * r->nk;
    int rc = dsc_new(&r->value, count, err);
    for (size_t i = 0; !rc && i < count; i++)
        r->value[i] = NAN;
    for (size_t i = 0; !rc && i < r->selection.rows; i++)
        for (size_t j = 0; !rc && j < r->lines; j++)
            if (r->line[j] == r->groups.of[i])
                rc = place(r, r->selection.row[i], j, column, err);
    return rc ? rc : dsc_check_any(r->value, count, r->column, err);
}

static int rules_init(rules *r, const dsc_table *t, const dsc_figure_options *o, dsc_error *err)
{
    r->x = o->x ? o->x : "drafts";
    r->y = o->y ? o->y : "num_speculative_tokens";
    r->column = o->column ? o->column : "block_efficiency";
    const char *name[4] = {"rule", r->x, r->y, r->column};
    int column[4], rc = DSC_OK;
    for (int i = 0; i < 4 && !rc; i++)
        rc = dsc_need_column(t, "rules", name[i], &column[i], err);
    if (!rc)
        rc = dsc_need_text(t, "rules", "rule", &column[0], err);
    if (!rc)
        rc = dsc_select(&r->selection, t, o, NULL, err);
    if (!rc)
        rc = keep_drafts(r, column, err);
    if (!rc)
        rc = dsc_group(&r->groups, &r->selection, &column[1], err);
    if (!rc)
        rc = dsc_distinct(&r->selection, column[1], &r->k, &r->nk, err);
    if (!rc)
        rc = distinct_lengths(r, column, err);
    if (!rc && (!r->nk || !r->lengths))
        rc = dsc_fail(err, DSC_EUSAGE, "column '%s' has no numbers", name[r->nk ? 2 : 1]);
    if (!rc)
        rc = choose_lines(r, column[0], err);
    if (!rc)
        rc = label_lines(r, err);
    if (rc)
        return rc;
    r->panels = dsc_thin(r->lengths, PANELS, 0, r->panel);
    return fill(r, column, err);
}

// Describes the values of the rules at the most and longest drafts.
static int put_finding(const rules *r, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    size_t p = r->panels - 1, i = r->nk - 1;
    dsc_put(
        &w, "Line charts: %s by %s (%g to %g), one line per verification rule, one panel per %s ",
        dsc_term_title(r->column), dsc_term_title(r->x), r->k[0], r->k[i], dsc_term_title(r->y));
    dsc_put(&w, "(%g to %g). At the largest of both: ", r->length[r->panel[0]],
            r->length[r->panel[p]]);
    const char *comma = "";
    for (size_t j = 0; j < r->lines; j++) {
        double v = r->value[(p * r->lines + j) * r->nk + i];
        if (isnan(v))
            continue;
        dsc_put(&w, "%s%s %.4g", comma, r->label[j], v);
        comma = ", ";
    }
    dsc_put(&w, ".");
    if (r->bound)
        dsc_put(
            &w,
            " At one position, no rule for independently sampled drafts accepts more often than "
            "otm. The bound does not apply to drafts sampled without replacement or to rules "
            "that verify whole blocks.");
    if (r->flat)
        dsc_put(&w, " A constant line is a rule that takes one draft.");
    return w.rc;
}

static int put_data(const rules *r, dsc_table *data, dsc_error *err)
{
    int rc = dsc_table_add_column(data, "line", DSC_CELL_TEXT, "rule", err);
    if (!rc)
        rc = dsc_data_numbers(data, r->y, err);
    if (!rc)
        rc = dsc_data_numbers(data, r->x, err);
    if (!rc)
        rc = dsc_data_numbers(data, r->column, err);
    for (size_t i = 0; !rc && i < r->panels * r->lines * r->nk; i++)
        if (!isnan(r->value[i]))
            rc = dsc_data_row(
                data, r->label[i / r->nk % r->lines],
                (double[]){r->length[r->panel[i / r->nk / r->lines]], r->k[i % r->nk], r->value[i]},
                3, err);
    return rc;
}

static int compose(const rules *r, const dsc_figure_options *o, const char *terminal,
                   dsc_drawing *out, dsc_error *err)
{
    char group[PANELS][64], subtitle[200] = "", heading[100], title[180];
    int used = 0;
    size_t columns = r->panels > 4 ? 4 : r->panels, rows = (r->panels + columns - 1) / columns;
    dsc_panel panel[PANELS];
    double height = dsc_is_narrow(o, terminal) ? 170 + 210 * (double)r->panels
                                               : (r->panels > 1 ? 140 : 200) + 270 * (double)rows;
    for (size_t p = 0; p < r->panels; p++) {
        snprintf(group[p], sizeof group[p], "%.40s = %g",
                 strcmp(r->y, "num_speculative_tokens") ? r->y : "L", r->length[r->panel[p]]);
        panel[p] = (dsc_panel){group[p], "", r->value + p * r->lines * r->nk, 0};
    }
    if (r->bound)
        used = snprintf(subtitle, sizeof subtitle,
                        "gray: upper bound at one position for K independently sampled drafts");
    if (r->panels < r->lengths)
        snprintf(subtitle + used, sizeof subtitle - (size_t)used, "%s%zu of %zu lengths drawn",
                 used ? "; " : "", r->panels, r->lengths);
    dsc_term_heading(r->column, heading, sizeof heading);
    snprintf(title, sizeof title, "%s by rule, number of drafts K and draft length L", heading);
    dsc_panels q = {
        .title = title,
        .subtitle = subtitle,
        .x_label = dsc_term_title(r->x),
        .x = r->k,
        .nx = r->nk,
        .key = r->key,
        .lines = r->lines,
        .panel = panel,
        .panels = r->panels,
        .columns = columns,
    };
    int rc = dsc_draw_panels(&q, "rules", o, terminal, r->panels > 1 ? 1080 : 720, height,
                             &out->script, err);
    if (!rc)
        rc = put_finding(r, &out->finding, err);
    return rc ? rc : put_data(r, &out->data, err);
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    rules r = {.column = NULL};
    int rc = rules_init(&r, t, o, err);
    if (!rc)
        rc = compose(&r, o, terminal, out, err);
    rules_fini(&r);
    return rc;
}

// Whether there are several rules and several numbers of drafts.
static bool fits(const dsc_table *t)
{
    int rule = dsc_table_find(t, "rule"), k = dsc_table_find(t, "drafts");
    bool several = false, differs = false;
    for (size_t i = 1; rule >= 0 && k >= 0 && i < t->rows; i++) {
        double a = dsc_table_real(t, 0, (size_t)k), b = dsc_table_real(t, i, (size_t)k);
        several = several || (dsc_drawable(b) && a != b);
        differs = differs || !dsc_same_cell(dsc_table_at(t, 0, (size_t)rule),
                                            dsc_table_at(t, i, (size_t)rule));
    }
    return several && differs;
}

const dsc_figure_type dsc_figure_rules = {
    .name = "rules",
    .summary = "block efficiency of verification rules by number of drafts, with the upper bound",
    .needs = "rule drafts num_speculative_tokens block_efficiency",
    .fits = fits,
    .compares = true,
    .script = script,
};
