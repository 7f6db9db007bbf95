// SPDX-License-Identifier: Apache-2.0
// Draws verification rules by number of drafts K, one line per rule and one panel per draft length
// L (SpecTr, Sun et al. 2023, arXiv 2310.15141). otm is drawn as a bound: at one position, no rule
// for K independently sampled drafts accepts more often. It bounds each position, not a block of
// several, and it does not bound rules whose drafts are sampled without replacement.
#include "plots/draw/glossary.h"
#include "plots/draw/label.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { PANELS = 8, LINES = DSC_STYLES + 1, LONGEST = 119 }; // bytes of a label

typedef struct rules {
    dsc_selection selection;
    dsc_groups groups;
    double *k, *length; // [nk], [lengths] ascending
    size_t nk, lengths;
    size_t panel[PANELS], panels; // indices into length
    size_t line[LINES], lines;    // groups, the bound first
    bool bound;                   // line 0 is the bound
    bool whole;                   // it bounds whole drafts (theory certify), not positions (otm)
    bool flat;                    // some rule takes one draft; its line is constant
    const char *column;
    const char *x, *y;   // columns of K and L
    double *value;       // [panels][lines][nk]
    double *percent;     // [panels][lines - 1][nk] of the bound, which is line 0; NULL: no bound
    const char **detail; // [panels][lines - 1][nk] the values
    dsc_key key[LINES];
} rules;

static const char *rule_of(const rules *r, size_t group)
{
    return dsc_text_at(r->selection.table, r->groups.first[group], "rule");
}

// The style of a rule, which is the same in every figure.
static int style_of(const char *rule)
{
    static const char *const name[DSC_STYLES] = {"kseq",  "specinfer", "specinfer-wor", "rejection",
                                                 "block", "gbv",       "traversal",     ""};
    int i = 0;
    while (i < DSC_STYLES - 1 && strcmp(rule, name[i]))
        i++;
    return i;
}

// Chooses the lines, the bound first, so that the others are drawn over it. If the style of a rule
// is taken, the next free one replaces it.
static void choose_lines(dsc_plot *p, rules *r)
{
    bool taken[DSC_STYLES] = {false};
    size_t n = r->groups.groups;
    for (size_t g = 0; g < n && !r->bound; g++)
        if (!strcmp(rule_of(r, g), "otm") || !strcmp(rule_of(r, g), "bound")) {
            r->bound = true;
            r->whole = !strcmp(rule_of(r, g), "bound");
            r->key[0].style = DSC_STYLE_BOUND;
            r->line[r->lines++] = g;
        }
    for (size_t g = 0; g < n; g++) {
        int style = style_of(rule_of(r, g));
        if (r->bound && r->line[0] == g)
            continue;
        if (r->lines == DSC_STYLES + (size_t)r->bound) {
            dsc_refuse(p,
                       "the table has %zu lines and the figure shows at most %d: filter by "
                       "%.500s",
                       n, DSC_STYLES, r->groups.varying);
            return;
        }
        while (taken[style])
            style = (style + 1) % DSC_STYLES;
        taken[style] = true;
        r->key[r->lines].style = style;
        r->line[r->lines++] = g;
    }
}

static void label_lines(dsc_plot *p, rules *r)
{
    const dsc_table *t = p->table;
    const char *const named[] = {"rule", "method", r->x, r->y};
    bool *skip = dsc_plot_new(p, bool, t->columns);
    for (size_t c = 0; skip && c < t->columns; c++)
        for (size_t i = 0; i < sizeof named / sizeof *named; i++)
            skip[c] = skip[c] || !strcmp(t->column[c].name, named[i]);
    for (size_t j = 0; j < r->lines && !p->rc; j++) {
        const char *more =
            dsc_distinct_label(p, t, r->groups.first, r->groups.groups, r->line[j], skip);
        more = dsc_text(p, "%s%s%s%s", rule_of(r, r->line[j]),
                        j || !r->bound || r->whole ? "" : " (bound)", *more ? ", " : "", more);
        r->key[j].label = dsc_text(p, "%.*s", LONGEST, more);
    }
}

// Whether some row with the rule of `row` has a number of drafts.
static bool has_drafts(const rules *r, size_t row, const int column[4])
{
    const dsc_table *t = r->selection.table;
    for (size_t i = 0; i < t->rows; i++)
        if (!isnan(dsc_value_at(t, i, column[1])) &&
            !strcmp(dsc_text_at(t, i, "rule"), dsc_text_at(t, row, "rule")))
            return true;
    return false;
}

// Keeps the rows with a draft length and a number of drafts. Rows of draft-model, which drafts one
// sequence, have no number of drafts; they are kept if their rule has no other rows.
static void keep_drafts(dsc_plot *p, rules *r, const int column[4])
{
    const dsc_table *t = p->table;
    int method = dsc_table_find(t, "method");
    bool named = method >= 0 && t->column[method].type == DSC_CELL_TEXT;
    size_t kept = 0;
    for (size_t i = 0; i < r->selection.rows; i++) {
        size_t row = r->selection.row[i];
        bool linear = !named || !strcmp(dsc_text_at(t, row, "method"), "draft-model");
        if (!isnan(dsc_value_at(t, row, column[2])) &&
            (!isnan(dsc_value_at(t, row, column[1])) || (linear && !has_drafts(r, row, column))))
            r->selection.row[kept++] = row;
    }
    r->selection.rows = kept;
    if (!p->rc && !kept)
        dsc_refuse(p, "no row has both '%s' and '%s'", r->x, r->y);
}

// Finds the draft lengths of the rows with a number of drafts; one sequence alone has no
// comparison.
static void distinct_lengths(dsc_plot *p, rules *r, const int column[4])
{
    dsc_selection s = {.table = p->table, .row = dsc_plot_new(p, size_t, r->selection.rows)};
    for (size_t i = 0; s.row && i < r->selection.rows; i++)
        if (!isnan(dsc_value_at(s.table, r->selection.row[i], column[1])))
            s.row[s.rows++] = r->selection.row[i];
    r->length = dsc_distinct(p, &s, column[2], &r->lengths);
}

// Stores the value of a row at its K, or at every K if the row has no number of drafts.
static void place(dsc_plot *p, rules *r, size_t row, size_t line, const int column[4])
{
    double k = dsc_value_at(p->table, row, column[1]);
    double length = dsc_value_at(p->table, row, column[2]);
    r->flat = r->flat || isnan(k);
    for (size_t i = 0; i < r->panels; i++)
        for (size_t j = 0; r->length[r->panel[i]] == length && j < r->nk; j++) {
            double *to = &r->value[(i * r->lines + line) * r->nk + j];
            if (!isnan(k) && r->k[j] != k)
                continue;
            if (!isnan(*to))
                dsc_refuse(p, "two rows have the same configuration (%s, %s = %g, %s = %g)",
                           r->key[line].label, r->x, r->k[j], r->y, length);
            *to = dsc_value_at(p->table, row, column[3]);
        }
}

static void fill(dsc_plot *p, rules *r, const int column[4])
{
    size_t count = r->panels * r->lines * r->nk;
    r->value = dsc_plot_numbers(p, count);
    for (size_t i = 0; !p->rc && i < r->selection.rows; i++)
        for (size_t j = 0; j < r->lines; j++)
            if (r->line[j] == r->groups.of[i])
                place(p, r, r->selection.row[i], j, column);
    dsc_check_any(p, r->value, count, r->column);
}

// Divides the other lines by the bound, where there is one. Lossless rules are so close to it that
// their values lie on top of each other.
static void divide(dsc_plot *p, rules *r)
{
    size_t others = r->lines - 1, count = r->panels * others * r->nk;
    bool any = false;
    if (!r->bound || !others || strcmp(r->column, "block_efficiency"))
        return;
    double *percent = dsc_plot_numbers(p, count);
    r->detail = dsc_plot_new(p, const char *, count);
    for (size_t i = 0; i < count && !p->rc; i++) {
        size_t panel = i / others / r->nk, k = i % r->nk, line = i / r->nk % others;
        double v = r->value[(panel * r->lines + 1 + line) * r->nk + k];
        percent[i] = 100 * v / r->value[panel * r->lines * r->nk + k];
        any = any || !isnan(percent[i]);
        r->detail[i] = dsc_text(p, "%.4g tokens per call", v);
    }
    r->percent = any ? percent : NULL;
}

static void read_rules(dsc_plot *p, rules *r)
{
    const dsc_figure_options *o = p->options;
    r->x = o->x ? o->x : "drafts";
    r->y = o->y ? o->y : "num_speculative_tokens";
    r->column = o->column ? o->column : "block_efficiency";
    const char *name[4] = {"rule", r->x, r->y, r->column};
    int column[4];
    for (int i = 0; i < 4; i++)
        column[i] = dsc_need(p, name[i], DSC_ANYTHING);
    dsc_need(p, "rule", DSC_NAMES);
    r->selection = dsc_select(p, p->table, o, NULL);
    keep_drafts(p, r, column);
    r->groups = dsc_group(p, &r->selection, column[1], column[2]);
    r->k = dsc_distinct(p, &r->selection, column[1], &r->nk);
    distinct_lengths(p, r, column);
    if (!r->nk || !r->lengths)
        dsc_refuse(p, "column '%s' has no numbers", name[r->nk ? 2 : 1]);
    if (p->rc)
        return;
    choose_lines(p, r);
    label_lines(p, r);
    r->panels = dsc_thin(r->lengths, PANELS, 0, r->panel);
    fill(p, r, column);
    if (!p->rc)
        divide(p, r);
}

// Describes the values of the rules at the most and longest drafts.
static void put_finding(dsc_writer *w, const rules *r)
{
    size_t p = r->panels - 1, i = r->nk - 1;
    dsc_put(
        w, "Line charts: %s by %s (%g to %g), one line per verification rule, one panel per %s ",
        dsc_term_title(r->column), dsc_term_title(r->x), r->k[0], r->k[i], dsc_term_title(r->y));
    dsc_put(w, "(%g to %g). At the largest of both: ", r->length[r->panel[0]],
            r->length[r->panel[p]]);
    const char *comma = "";
    for (size_t j = 0; j < r->lines; j++) {
        double v = r->value[(p * r->lines + j) * r->nk + i];
        if (isnan(v))
            continue;
        dsc_put(w, "%s%s %.4g", comma, r->key[j].label, v);
        comma = ", ";
    }
    dsc_put(w, ".");
    if (r->whole)
        dsc_put(w,
                " No lossless rule for independently sampled drafts accepts more than the bound.");
    else if (r->bound)
        dsc_put(
            w, " At one position, no rule for independently sampled drafts accepts more often than "
               "otm. The bound does not apply to drafts sampled without replacement or to rules "
               "that verify whole blocks.");
    if (r->flat)
        dsc_put(w, " A constant line is a rule that takes one draft.");
}

static void put_data(dsc_plot *p, const rules *r)
{
    dsc_data_text(p, "line", "rule");
    dsc_data_number(p, r->y, NULL);
    dsc_data_number(p, r->x, NULL);
    dsc_data_number(p, r->column, NULL);
    for (size_t i = 0; i < r->panels * r->lines * r->nk; i++)
        if (!isnan(r->value[i]))
            dsc_data_row(p, &r->key[i / r->nk % r->lines].label,
                         (double[]){r->length[r->panel[i / r->nk / r->lines]], r->k[i % r->nk],
                                    r->value[i]});
}

static void draw(dsc_plot *plot)
{
    rules r = {.column = NULL};
    read_rules(plot, &r);
    if (plot->rc)
        return;
    size_t columns = r.panels > 4 ? 4 : r.panels, rows = (r.panels + columns - 1) / columns;
    dsc_panel panel[PANELS];
    double height = dsc_is_narrow(plot) ? 170 + 210 * (double)r.panels
                                        : (r.panels > 1 ? 140 : 200) + 270 * (double)rows;
    for (size_t i = 0; i < r.panels; i++)
        panel[i] = (dsc_panel){
            dsc_text(plot, "%.40s = %g", strcmp(r.y, "num_speculative_tokens") ? r.y : "L",
                     r.length[r.panel[i]]),
            !r.percent ? ""
            : r.whole  ? "% of the bound"
                       : "% of otm",
            r.percent ? r.percent + i * (r.lines - 1) * r.nk : r.value + i * r.lines * r.nk, 0};
    const char *less = dsc_left_out(plot, r.panels, r.lengths, "lengths", 0);
    dsc_panels p = {
        .title = dsc_text(plot, "%s by rule, number of drafts K and draft length L",
                          r.percent ? "Share of the optimal block efficiency"
                                    : dsc_term_heading(plot, r.column)),
        .subtitle = dsc_text(
            plot, "%s%s%s",
            r.whole     ? "bound: no lossless rule for K independently sampled drafts accepts more"
            : r.percent ? "otm: optimal at one position for K independently sampled drafts"
            : r.bound   ? "gray: upper bound at one position for K independently sampled drafts"
                        : "",
            r.bound && *less ? "; " : "", less),
        .x_label = dsc_term_title(r.x),
        .x = r.k,
        .nx = r.nk,
        .key = r.key + (r.percent != NULL),
        .lines = r.lines - (r.percent != NULL),
        .detail = r.percent ? r.detail : NULL,
        .reference_label = !r.percent ? NULL
                           : r.whole  ? "bound"
                                      : "otm (bound)",
        .reference = 100,
        .panel = panel,
        .panels = r.panels,
        .columns = columns,
    };
    dsc_draw_panels(plot, &p, "rules", r.panels > 1 ? 1080 : 720, height);
    put_finding(&plot->finding, &r);
    put_data(plot, &r);
}

// Whether there are several rules and several numbers of drafts.
static bool fits(dsc_plot *p)
{
    const dsc_table *t = p->table;
    bool several = false;
    for (size_t i = 1; i < t->rows; i++) {
        double k = dsc_number_at(t, i, "drafts");
        several = several || (!isnan(k) && k != dsc_number_at(t, 0, "drafts"));
    }
    return several && dsc_varies(t, (size_t)dsc_table_find(t, "rule"));
}

const dsc_figure_type dsc_figure_rules = {
    .name = "rules",
    .summary = "block efficiency of verification rules by number of drafts, with the upper bound",
    .needs = "rule drafts num_speculative_tokens block_efficiency",
    .fits = fits,
    .compares = true,
    .draw = draw,
};
