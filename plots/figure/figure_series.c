// SPDX-License-Identifier: Apache-2.0
// Three figures of a grid of two parameters, a line per value of the second: LLMA's speedup and its
// decoding statistics by draft length (the copy length k) and match length n (Yang et al.,
// "Inference with Reference", 2023, arXiv 2304.04487, Figures 3 and 4), and the closed-form speedup
// by draft length and acceptance rate (Leviathan, Kalman and Matias 2023, Theorem 3.8 and
// section 3.5).
#include "plots/draw/glossary.h"
#include "plots/draw/panel.h"
#include "plots/draw/series.h"
#include "plots/figure/figures.h"

enum { QUANTITIES = 3 };

typedef struct quantity {
    const char *column, *per; // per: NULL or the column to divide by
    const char *name;         // in the data
    const char *label;        // above the axis
} quantity;

typedef struct figure_spec {
    const char *word; // its name in the script
    dsc_series_of of;
    const char *title, *x_label, *line_label, *key_title;
    quantity quantity[QUANTITIES];
    size_t quantities;
    size_t across;          // most groups side by side; more are put in rows of two
    double height, tall;    // with one row of panels, with two
    double head, head_line; // height of the heading on a narrow page, and for each line
    bool ticks;             // mark the best point of each line; else a ring at the best of all
} figure_spec;

static const figure_spec llma_speedup = {
    .word = "llma_speedup",
    .of = {"llma", "num_speculative_tokens", "n", "values of n", 6},
    .title = "Speedup by draft length and match length",
    .x_label = "draft length (copy length k, tokens)",
    .line_label = "match length n",
    .key_title = "match length n:",
    .quantity = {{"speedup", NULL, "speedup", NULL}},
    .quantities = 1,
    .across = 2,
    .height = 460,
    .tall = 760,
    .head = 130,
};

static const figure_spec llma_stats = {
    .word = "llma_stats",
    .of = {"llma", "num_speculative_tokens", "n", "values of n", 6},
    .title = "Decoding statistics by draft length and match length",
    .x_label = "draft length (copy length k, tokens)",
    .line_label = "match length n",
    .key_title = "match length n:",
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
    .of = {NULL, "length", "alpha", "values of alpha", 3},
    .title = "Speedup by draft length and i.i.d. acceptance probability alpha",
    .x_label = "draft length (tokens per target call)",
    .line_label = "alpha",
    .key_title = "alpha:",
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
    dsc_series series;
    double *value[QUANTITIES]; // [groups][lines][nx] each
    dsc_bests bests;           // of the first group
    dsc_key key[DSC_STYLES];
    size_t best; // of all groups, index into value[0]
} drawn;

static void find_best(dsc_plot *p, drawn *d)
{
    const dsc_series *s = &d->series;
    bool brackets = d->spec->ticks && s->groups.groups == 1;
    d->best = dsc_best_of(d->value[0], s->groups.groups * s->lines * s->grid.nx, false);
    dsc_find_bests(&d->bests, d->value[0], s->lines, s->grid.x, s->grid.nx, false);
    for (size_t j = 0; j < s->lines; j++) {
        const char *label = s->label[j];
        if (brackets)
            label = dsc_label_best(p, label, &d->bests, j, s->grid.x, s->grid.nx);
        d->key[j] = (dsc_key){label, (int)j};
    }
}

// --- words ---------------------------------------------------------------------------------

// "3.30× at n = 1, draft length 32 (semantics = paper)"
static void put_best(dsc_writer *w, const drawn *d)
{
    const dsc_series *s = &d->series;
    const char *group = s->groups.label[d->best / s->grid.nx / s->lines];
    dsc_put(w, "%.2f× at %s = %s, %s%s%g", d->value[0][d->best], d->spec->of.line,
            s->label[d->best / s->grid.nx % s->lines], dsc_term_label(d->spec->of.x),
            dsc_term_equals(d->spec->of.x), s->grid.x[d->best % s->grid.nx]);
    if (*group)
        dsc_put(w, " (%s)", group);
}

// "The best draft length is 3 at alpha = 0.5 (1.63×), ..." for each group.
static void put_bests(dsc_writer *w, const drawn *d)
{
    const dsc_series *s = &d->series;
    for (size_t g = 0; g < s->groups.groups; g++) {
        const double *value = d->value[0] + g * s->lines * s->grid.nx;
        const char *separator = " ";
        dsc_bests b;
        dsc_find_bests(&b, value, s->lines, s->grid.x, s->grid.nx, false);
        dsc_put(w, " %s%sThe best draft length is", s->groups.label[g],
                *s->groups.label[g] ? ": " : "");
        for (size_t j = 0; j < s->lines; j++) {
            if (b.best[j] == SIZE_MAX)
                continue;
            dsc_put(w, "%s%g%s at %s = %s (%.2f×)", separator, s->grid.x[b.best[j]],
                    b.last[j] ? ", the longest," : "", d->spec->of.line, s->label[j],
                    value[j * s->grid.nx + b.best[j]]);
            separator = ", ";
        }
        dsc_put(w, ".");
    }
}

// "The ranges are: triggers (drafts) per request 12.1 to 42.8; ..."
static void put_ranges(dsc_writer *w, const drawn *d)
{
    const dsc_series *s = &d->series;
    size_t count = s->groups.groups * s->lines * s->grid.nx, least = 0;
    for (size_t q = 0; q < d->spec->quantities; q++) {
        const double *v = d->value[q];
        size_t most = dsc_best_of(v, count, false);
        least = dsc_best_of(v, count, true);
        dsc_put(w, "%s%s %.1f to %.1f", q ? "; " : " The ranges are: ", d->spec->quantity[q].label,
                v[least], v[most]);
    }
    const char *group = s->groups.label[least / s->grid.nx / s->lines];
    dsc_put(w, ", fewest steps at n = %s, draft length %g%s%s.",
            s->label[least / s->grid.nx % s->lines], s->grid.x[least % s->grid.nx],
            *group ? ", " : "", group);
}

static void put_finding(dsc_writer *w, const drawn *d)
{
    const dsc_series *s = &d->series;
    bool several = d->spec->quantities > 1;
    dsc_put(w, "Line chart%s: %s by draft length (%g to %g), one line per %s (%g to %g).",
            several ? "s" : "", several ? "decoding statistics" : "speedup", s->grid.x[0],
            s->grid.x[s->grid.nx - 1], d->spec->line_label, s->grid.y[0],
            s->grid.y[s->grid.ny - 1]);
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
    const dsc_series *s = &d->series;
    const char *separator = "";
    if (!d->spec->ticks && d->spec->quantities == 1) {
        dsc_put(w, "best ");
        put_best(w, d);
        separator = "; ";
    } else if (d->spec->ticks && s->groups.groups == 1 && s->grid.nx > 1) {
        dsc_put(w, "ticks and parentheses: best draft length%s",
                d->bests.rises ? " (+: still rising)" : "");
        separator = "; ";
    }
    dsc_put(w, "%s%s", *s->note ? separator : "", s->note);
}

// --- drawing -------------------------------------------------------------------------------

static void natural_size(const drawn *d, bool narrow, double *width, double *height)
{
    const figure_spec *spec = d->spec;
    double groups = (double)d->series.groups.groups, rows = groups > (double)spec->across ? 2 : 1;
    if (spec->quantities > 1) {
        *width = 1080;
        *height = narrow ? 110 + 230 * QUANTITIES * groups : 100 + 300 * groups;
    } else {
        *width = groups > 1 ? 1000 : 720;
        *height = narrow ? spec->head + spec->head_line * (double)d->series.lines + 250 * groups
                         : (rows > 1 ? spec->tall : spec->height);
    }
}

static void compose(dsc_plot *plot, const drawn *d)
{
    const figure_spec *spec = d->spec;
    const dsc_series *s = &d->series;
    const char *cost = spec->ticks ? NULL : dsc_table_get_comment(plot->table, "cost");
    const char *speedup = dsc_term_title("speedup");
    size_t groups = s->groups.groups, quantities = spec->quantities;
    bool narrow = dsc_is_narrow(plot), single = quantities == 1;
    double width, height;
    if (cost)
        speedup = dsc_text(plot, "%s (cost: %s)", speedup, cost);
    put_subtitle(dsc_text_begin(plot), d);
    const char *subtitle = dsc_text_end(plot);
    dsc_panel panel[DSC_PANEL_GROUPS * QUANTITIES];
    for (size_t i = 0; i < groups * quantities; i++) {
        size_t group = i / quantities, q = i % quantities;
        // Side by side, the group is named once in its row; stacked, above every panel.
        panel[i] = (dsc_panel){q && !narrow ? "" : s->groups.label[group],
                               single ? speedup : spec->quantity[q].label,
                               d->value[q] + group * s->lines * s->grid.nx, (int)q};
    }
    dsc_panels p = {
        .title = spec->title,
        .subtitle = subtitle,
        .x_label = spec->x_label,
        .key_title = spec->key_title,
        .x = s->grid.x,
        .nx = s->grid.nx,
        .key = d->key,
        .lines = s->lines,
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

static void draw(dsc_plot *p)
{
    drawn d = {.spec = p->spec};
    const figure_spec *spec = d.spec;
    const char *name[QUANTITIES];
    int unused[DSC_NEEDS];
    dsc_need_columns(p, p->needs, unused);
    dsc_series_init(p, &d.series, &spec->of);
    for (size_t q = 0; q < spec->quantities; q++) {
        const quantity *is = &spec->quantity[q];
        d.value[q] = dsc_series_values(p, &d.series, is->column, is->per);
        name[q] = is->name;
    }
    if (p->rc)
        return;
    find_best(p, &d);
    compose(p, &d);
    put_finding(&p->finding, &d);
    dsc_series_data(p, &d.series, &spec->of, name, d.value, spec->quantities);
}

const dsc_figure_type dsc_figure_llma_speedup = {
    .name = "llma-speedup",
    .summary = "speedup by draft length, one line per match length n (LLMA Figure 3)",
    .needs = "num_speculative_tokens n speedup",
    .spec = &llma_speedup,
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
