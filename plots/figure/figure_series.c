// SPDX-License-Identifier: Apache-2.0
// Three figures of a grid of two parameters, a line per value of the second: LLMA's speedup and its
// decoding statistics by draft length (the copy length k) and match length n (Yang et al.,
// "Inference with Reference", 2023, arXiv 2304.04487, Figures 3 and 4), and the closed-form speedup
// by draft length and acceptance rate (Leviathan, Kalman and Matias 2023, Theorem 3.8 and
// section 3.5).
#include "plots/draw/glossary.h"
#include "plots/draw/lines.h"
#include "plots/draw/panel.h"
#include "plots/figure/draft_length.h"
#include "plots/figure/figures.h"

#include <math.h>

enum { QUANTITIES = 3, GROUPS = 4 }; // most quantities and groups of a figure

typedef struct quantity {
    const char *column, *per; // per: NULL or the column to divide by
    const char *name;         // in the data
    const char *label;        // above the axis
} quantity;

typedef struct figure_spec {
    const char *word;     // its name in the script
    const char *method;   // the method to keep if there are several; NULL: all
    const char *x, *line; // columns
    int digits;           // significant digits of a line's label
    const char *title, *x_label, *line_label;
    quantity quantity[QUANTITIES];
    size_t quantities;
    size_t across;          // most groups side by side; more are put in rows of two
    double height, tall;    // with one row of panels, with two
    double head, head_line; // height of the heading on a narrow page, and for each line
    bool ticks;             // mark the best point of each line; else a ring at the best of all
} figure_spec;

static const figure_spec llma_speedup = {
    .word = "llma_speedup",
    .method = "llma",
    .x = "num_speculative_tokens",
    .line = "n",
    .digits = 6,
    .title = "Speedup by draft length and match length",
    .x_label = "draft length (copy length k, tokens)",
    .line_label = "match length n",
    .quantity = {{"speedup", NULL, "speedup", NULL}},
    .quantities = 1,
    .across = 2,
    .height = 460,
    .tall = 760,
    .head = 130,
};

static const figure_spec llma_stats = {
    .word = "llma_stats",
    .method = "llma",
    .x = "num_speculative_tokens",
    .line = "n",
    .digits = 6,
    .title = "Decoding statistics by draft length and match length",
    .x_label = "draft length (copy length k, tokens)",
    .line_label = "match length n",
    .quantity = {{"num_drafts_started", "requests", "triggers_per_request",
                  "triggers (drafts) per request"},
                 {"num_accepted_tokens", "requests", "accepted_per_request",
                  "accepted tokens per request (bonus excluded)"},
                 {"target_calls", "requests", "steps_per_request",
                  "decoding steps (target calls) per request"}},
    .quantities = QUANTITIES,
};

static const figure_spec speedup_surface = {
    .word = "speedup_surface",
    .x = "length",
    .line = "alpha",
    .digits = 3,
    .title = "Speedup by draft length and i.i.d. acceptance probability alpha",
    .x_label = "draft length (tokens per target call)",
    .line_label = "alpha",
    .quantity = {{"speedup", NULL, "speedup", NULL}},
    .quantities = 1,
    .across = 3,
    .height = 480,
    .tall = 780,
    .head = 120,
    .head_line = 14,
    .ticks = true,
};

typedef struct drawn {
    const figure_spec *spec;
    dsc_selection selection;
    dsc_groups groups;       // a panel each
    dsc_plot_grid grid;      // y is the parameter of the lines
    size_t line[DSC_STYLES]; // index into grid.y of each line
    size_t lines;
    const char *label[DSC_STYLES]; // "3"
    const char *note;              // the lines and rows that are left out, "" if none are
    double *value[QUANTITIES];     // [groups][lines][nx] each
    dsc_bests bests;               // of the first group
    dsc_key key[DSC_STYLES];
    const char *hover[DSC_STYLES]; // "n = 3"
    size_t best;                   // of all groups, index into value[0]
} drawn;

// --- reading -------------------------------------------------------------------------------

// The rank of the line with the greatest speedup; the last in a table without one.
static size_t best_rank(const drawn *d)
{
    size_t best = d->grid.ny - 1, cells = d->groups.groups * d->grid.nx * d->grid.ny;
    double most = -INFINITY;
    for (size_t i = 0; i < cells; i++) {
        size_t row = d->grid.at[i];
        double v = row == SIZE_MAX ? NAN : dsc_number_at(d->selection.table, row, "speedup");
        if (v > most) { // false for NaN
            most = v;
            best = i / d->grid.nx % d->grid.ny;
        }
    }
    return best;
}

// Selects, groups and indexes. If there are too many lines, they are thinned evenly; the one with
// the greatest speedup is kept.
static void read_lines(dsc_plot *p, drawn *d)
{
    const figure_spec *spec = d->spec;
    int x = dsc_table_find(p->table, spec->x), line = dsc_table_find(p->table, spec->line);
    d->selection = dsc_select(p, p->table, p->options, spec->method);
    d->groups = dsc_group(p, &d->selection, x, line);
    dsc_check_groups(p, &d->groups, GROUPS);
    d->grid = dsc_grid(p, &d->selection, &d->groups, x, line);
    if (p->rc)
        return;
    d->lines = dsc_thin(d->grid.ny, DSC_STYLES, best_rank(d), d->line);
    for (size_t i = 0; i < d->lines; i++)
        d->label[i] = dsc_text(p, "%.*g", spec->digits, d->grid.y[d->line[i]]);
    d->note = dsc_left_out(p, d->lines, d->grid.ny, dsc_text(p, "values of %s", spec->line),
                           d->selection.dropped);
}

// The table row of a point of [groups][lines][nx], SIZE_MAX: none.
static size_t row_of(const drawn *d, size_t i)
{
    size_t nx = d->grid.nx;
    return dsc_plot_grid_row(&d->grid, i / nx / d->lines, i % nx, d->line[i / nx % d->lines]);
}

// value[groups][lines][nx] of a quantity; NaN where there is no row or no finite number.
static double *read_values(dsc_plot *p, const drawn *d, const char *column, const char *per)
{
    const dsc_table *t = p->table;
    size_t count = d->groups.groups * d->lines * d->grid.nx;
    bool any = false;
    double *out = dsc_plot_numbers(p, count);
    for (size_t i = 0; out && i < count; i++) {
        size_t row = row_of(d, i);
        double v = row == SIZE_MAX ? NAN : dsc_number_at(t, row, column);
        if (per && row != SIZE_MAX)
            v /= dsc_number_at(t, row, per);
        out[i] = dsc_drawable(v) ? v : NAN;
        any = any || dsc_drawable(v);
    }
    if (!any)
        dsc_refuse(p, "column '%s'%s%s has no finite number to draw", column, per ? " per " : "",
                   per ? per : "");
    return out;
}

static void find_best(dsc_plot *p, drawn *d)
{
    bool brackets = d->spec->ticks && d->groups.groups == 1;
    d->best = dsc_best_of(d->value[0], d->groups.groups * d->lines * d->grid.nx, false);
    dsc_find_bests(&d->bests, d->value[0], d->lines, d->grid.x, d->grid.nx, false);
    for (size_t j = 0; j < d->lines; j++) {
        const char *label = d->label[j];
        if (brackets)
            label = dsc_label_best(p, label, &d->bests, j, d->grid.x, d->grid.nx);
        d->key[j] = (dsc_key){label, dsc_ramp_style(j, d->lines)};
        d->hover[j] = dsc_text(p, "%s = %s", d->spec->line, d->label[j]);
    }
}

// --- words ---------------------------------------------------------------------------------

// "3.30× at n = 1, draft length 32 (semantics = paper)"
static void put_best(dsc_writer *w, const drawn *d)
{
    const char *group = d->groups.label[d->best / d->grid.nx / d->lines];
    dsc_put(w, "%.2f× at %s = %s, %s%s%g", d->value[0][d->best], d->spec->line,
            d->label[d->best / d->grid.nx % d->lines], dsc_term_label(d->spec->x),
            dsc_term_equals(d->spec->x), d->grid.x[d->best % d->grid.nx]);
    if (*group)
        dsc_put(w, " (%s)", group);
}

// "The best draft length is 3 at alpha = 0.5 (1.63×), ..." for each group.
static void put_bests(dsc_writer *w, const drawn *d)
{
    for (size_t g = 0; g < d->groups.groups; g++) {
        const double *value = d->value[0] + g * d->lines * d->grid.nx;
        const char *separator = " ";
        dsc_bests b;
        dsc_find_bests(&b, value, d->lines, d->grid.x, d->grid.nx, false);
        dsc_put(w, " %s%sThe best draft length is", d->groups.label[g],
                *d->groups.label[g] ? ": " : "");
        for (size_t j = 0; j < d->lines; j++) {
            if (b.best[j] == SIZE_MAX)
                continue;
            dsc_put(w, "%s%g%s at %s = %s (%.2f×)", separator, d->grid.x[b.best[j]],
                    b.last[j] ? ", the longest," : "", d->spec->line, d->label[j],
                    value[j * d->grid.nx + b.best[j]]);
            separator = ", ";
        }
        dsc_put(w, ".");
    }
}

// "The ranges are: triggers (drafts) per request 12.1 to 42.8; ..."
static void put_ranges(dsc_writer *w, const drawn *d)
{
    size_t count = d->groups.groups * d->lines * d->grid.nx, least = 0;
    for (size_t q = 0; q < d->spec->quantities; q++) {
        const double *v = d->value[q];
        size_t most = dsc_best_of(v, count, false);
        least = dsc_best_of(v, count, true);
        dsc_put(w, "%s%s %.1f to %.1f", q ? "; " : " The ranges are: ", d->spec->quantity[q].label,
                v[least], v[most]);
    }
    const char *group = d->groups.label[least / d->grid.nx / d->lines];
    dsc_put(w, ", fewest steps at n = %s, draft length %g%s%s.",
            d->label[least / d->grid.nx % d->lines], d->grid.x[least % d->grid.nx],
            *group ? ", " : "", group);
}

static void put_finding(dsc_writer *w, const drawn *d)
{
    bool several = d->spec->quantities > 1;
    dsc_put(w, "Line chart%s: %s by draft length (%g to %g), one line per %s (%g to %g).",
            several ? "s" : "", several ? "decoding statistics" : "speedup", d->grid.x[0],
            d->grid.x[d->grid.nx - 1], d->spec->line_label, d->grid.y[0],
            d->grid.y[d->grid.ny - 1]);
    if (several) {
        put_ranges(w, d);
    } else if (d->spec->ticks) {
        put_bests(w, d);
    } else {
        dsc_put(w, " The best speedup is ");
        put_best(w, d);
        dsc_put(w, ".");
    }
    if (!several)
        dsc_put(w, " Without speculation the speedup is 1.");
}

static void put_subtitle(dsc_writer *w, const drawn *d)
{
    const char *separator = "";
    if (!d->spec->ticks && d->spec->quantities == 1) {
        dsc_put(w, "best ");
        put_best(w, d);
        separator = "; ";
    } else if (d->spec->ticks && d->groups.groups == 1 && d->grid.nx > 1) {
        dsc_put(w, "ticks and parentheses: best draft length%s",
                d->bests.rises ? " (+: still rising)" : "");
        separator = "; ";
    }
    dsc_put(w, "%s%s", *d->note ? separator : "", d->note);
}

// --- drawing -------------------------------------------------------------------------------

static void natural_size(const drawn *d, bool narrow, double *width, double *height)
{
    const figure_spec *spec = d->spec;
    double groups = (double)d->groups.groups, rows = groups > (double)spec->across ? 2 : 1;
    if (spec->quantities > 1) {
        *width = 1080;
        *height = narrow ? 110 + 230 * QUANTITIES * groups : 100 + 300 * groups;
    } else {
        *width = groups > 1 ? 1000 : 720;
        *height = narrow ? spec->head + spec->head_line * (double)d->lines + 250 * groups
                         : (rows > 1 ? spec->tall : spec->height);
    }
}

static void compose(dsc_plot *plot, const drawn *d)
{
    const figure_spec *spec = d->spec;
    const char *cost = spec->ticks ? NULL : dsc_table_get_comment(plot->table, "cost");
    const char *speedup = dsc_term_title("speedup");
    size_t groups = d->groups.groups, quantities = spec->quantities;
    bool narrow = dsc_is_narrow(plot), single = quantities == 1;
    double width, height;
    if (cost)
        speedup = dsc_text(plot, "%s (cost: %s)", speedup, cost);
    put_subtitle(dsc_text_begin(plot), d);
    const char *subtitle = dsc_text_end(plot);
    dsc_panel panel[GROUPS * QUANTITIES];
    for (size_t i = 0; i < groups * quantities; i++) {
        size_t group = i / quantities, q = i % quantities;
        // Side by side, the group is named once in its row; stacked, above every panel.
        panel[i] = (dsc_panel){q && !narrow ? "" : d->groups.label[group],
                               single ? speedup : spec->quantity[q].label,
                               d->value[q] + group * d->lines * d->grid.nx, (int)q};
    }
    dsc_panels p = {
        .title = spec->title,
        .subtitle = subtitle,
        .x_label = spec->x_label,
        .key_title = dsc_text(plot, "%s:", spec->line_label),
        .x = d->grid.x,
        .nx = d->grid.nx,
        .key = d->key,
        .hover = d->hover,
        .end_title = spec->line,
        .lines = d->lines,
        .panel = panel,
        .panels = groups * quantities,
        .columns = !single                  ? quantities
                   : groups <= spec->across ? groups
                                            : 2,
        .reference_label = single ? "no speculation" : NULL,
        .mark = spec->ticks && groups == 1 ? d->bests.mark : NULL,
        .ring = single && !spec->ticks,
        .best = d->best,
    };
    natural_size(d, narrow, &width, &height);
    dsc_draw_panels(plot, &p, spec->word, width, height);
}

// One row per point.
static void put_data(dsc_plot *p, const drawn *d)
{
    const figure_spec *spec = d->spec;
    dsc_data_text(p, "group", "rows of one panel");
    dsc_data_number(p, spec->line, dsc_term_title(spec->line));
    dsc_data_number(p, spec->x, dsc_term_title(spec->x));
    for (size_t q = 0; q < spec->quantities; q++)
        dsc_data_number(p, spec->quantity[q].name, NULL);
    for (size_t i = 0; i < d->groups.groups * d->lines * d->grid.nx; i++) {
        const char *group = d->groups.label[i / d->grid.nx / d->lines];
        double number[2 + QUANTITIES] = {d->grid.y[d->line[i / d->grid.nx % d->lines]],
                                         d->grid.x[i % d->grid.nx]};
        for (size_t q = 0; q < spec->quantities; q++)
            number[2 + q] = d->value[q][i];
        if (row_of(d, i) != SIZE_MAX)
            dsc_data_row(p, &(const char *){*group ? group : "all"}, number);
    }
}

static void draw(dsc_plot *p)
{
    drawn d = {.spec = p->spec};
    const quantity *is = d.spec->quantity;
    int unused[DSC_NEEDS];
    dsc_need_columns(p, p->needs, unused);
    read_lines(p, &d);
    for (size_t q = 0; q < d.spec->quantities; q++)
        d.value[q] = read_values(p, &d, is[q].column, is[q].per);
    if (p->rc)
        return;
    find_best(p, &d);
    compose(p, &d);
    put_finding(&p->finding, &d);
    put_data(p, &d);
}

static bool is_priced(dsc_plot *p)
{
    return dsc_is_priced(p->table);
}

const dsc_figure_type dsc_figure_llma_speedup = {
    .name = "llma-speedup",
    .summary = "speedup by draft length, one line per match length n (LLMA Figure 3)",
    .needs = "num_speculative_tokens n speedup",
    .spec = &llma_speedup,
    .fits = is_priced,
    .draw = draw,
};

const dsc_figure_type dsc_figure_llma_stats = {
    .name = "llma-stats",
    .summary = "drafts, accepted tokens and target calls per request by draft length and n (LLMA "
               "Figure 4)",
    .needs =
        "num_speculative_tokens n requests num_drafts_started num_accepted_tokens target_calls",
    .spec = &llma_stats,
    .draw = draw,
};

const dsc_figure_type dsc_figure_speedup_surface = {
    .name = "speedup-surface",
    .summary = "speedup by draft length, one line per i.i.d. acceptance probability, the best "
               "lengths marked",
    .needs = "alpha length speedup",
    .spec = &speedup_surface,
    .draw = draw,
};
