// SPDX-License-Identifier: Apache-2.0
// Three figures of acceptance by number of drafts K, from `draftscope theory accept`. accept-vs-k
// draws any distributions, one panel per pair, with bands where only a range is certain.
// spectr-bernoulli and spectr-uniform reproduce Figures 4 to 6 of SpecTr (Sun et al. 2023, arXiv
// 2310.15141, App. B); for uniform distributions U(d) to U(d/r), k-Seq attains the optimum, so one
// line per r stands for both rules.
#include "plots/draw/panel.h"
#include "plots/figure/accept_series.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { PANELS = 6 };
static const char y_label[] = "probability that a draft is accepted";
static const char x_label[] = "number of drafts K per position";

// What the figures differ in. Names of the pairs of a family begin with `family`; `options` are
// those of `theory accept` that make such a table.
typedef struct accept_spec {
    const char *word, *title, *subtitle;
    const char *family, *adjective, *options;
} accept_spec;

static const accept_spec any_pairs = {.word = "accept_vs_k",
                                      .title = "Acceptance by number of drafts"};

static const accept_spec bernoulli = {
    .word = "spectr_bernoulli",
    .title = "Acceptance by number of drafts, Bernoulli distributions",
    .subtitle = "SpecTr Figures 4 and 6: draft distribution to target distribution; where lines "
                "coincide, the later in the key is on top",
    .family = "Ber(",
    .adjective = "Bernoulli",
    .options = "--bernoulli .25,.1,.25,.5,.75,1 --num-drafts 1:16 -o b.tsv",
};

static const accept_spec uniform = {
    .word = "spectr_uniform",
    .family = "U(",
    .adjective = "uniform",
    .options = "--uniform 32,1,2,4,8,16,32 --num-drafts 1:16 -o u.tsv",
};

static void refuse_pair(dsc_plot *p, const char *pair)
{
    const accept_spec *spec = p->spec;
    dsc_refuse(p,
               "%s draws %s distributions, not %.60s; make a table with: draftscope theory "
               "accept %s",
               p->name, spec->adjective, pair, spec->options);
}

// --- a panel per pair ----------------------------------------------------------------------

// The k at which k-Seq loses most against the optimum, and its pair; SIZE_MAX: there is no number.
static size_t widest_loss(const dsc_accept_series *s, size_t *pair)
{
    double most = -1;
    size_t best = SIZE_MAX;
    for (size_t p = 0; p < s->pairs; p++)
        for (size_t i = 0; i < s->nk; i++) {
            double loss = s->value[dsc_accept_at(s, p, DSC_ACCEPT_OTM) + i] -
                          s->value[dsc_accept_at(s, p, DSC_ACCEPT_KSEQ) + i];
            if (loss > most) { // false for NaN
                most = loss;
                best = i;
                *pair = p;
            }
        }
    return best;
}

static void put_widest_range(dsc_writer *w, const dsc_accept_series *s)
{
    size_t count = s->pairs * DSC_ACCEPT_RULES * s->nk, widest = 0;
    for (size_t i = 0; i < count; i++)
        if (s->high[i] - s->low[i] > s->high[widest] - s->low[widest] || isnan(s->low[widest]))
            widest = i;
    dsc_put(w,
            " Bands enclose the acceptance of distributions whose tail was not recorded; the "
            "widest is %.2g (%s).",
            s->high[widest] - s->low[widest], dsc_accept_rule(widest / s->nk % DSC_ACCEPT_RULES));
}

static void put_finding(dsc_writer *w, const dsc_accept_series *s)
{
    size_t pair = 0, at = widest_loss(s, &pair);
    dsc_put(w,
            "Line chart%s: probability that a draft is accepted by number of drafts K (%g to %g), "
            "for %zu pair%s of distributions.",
            s->pairs > 1 ? "s" : "", s->k[0], s->k[s->nk - 1], s->pairs, s->pairs > 1 ? "s" : "");
    if (at != SIZE_MAX) {
        const double *v = s->value + dsc_accept_at(s, pair, 0) + at;
        double loss = v[DSC_ACCEPT_OTM * s->nk] - v[DSC_ACCEPT_KSEQ * s->nk];
        if (loss < 5e-7)
            dsc_put(w, " k-Seq attains the optimum everywhere.");
        else
            dsc_put(w,
                    " k-Seq is furthest from the optimum for %s at K = %g: %.4f against %.4f "
                    "(SpecInfer %.4f, single draft %.4f).",
                    s->pair[pair], s->k[at], v[DSC_ACCEPT_KSEQ * s->nk], v[DSC_ACCEPT_OTM * s->nk],
                    v[DSC_ACCEPT_SPECINFER * s->nk], v[DSC_ACCEPT_SINGLE * s->nk]);
    }
    if (s->ranges)
        put_widest_range(w, s);
}

static void draw_pairs(dsc_plot *plot)
{
    const accept_spec *spec = plot->spec;
    dsc_accept_series s;
    dsc_accept_series_init(plot, &s);
    for (size_t p = 0; spec->family && p < s.pairs; p++)
        if (strncmp(s.pair[p], spec->family, strlen(spec->family)))
            refuse_pair(plot, s.pair[p]);
    if (s.pairs > PANELS)
        dsc_refuse(plot,
                   "the table has %zu pairs and the figure shows at most %d: filter by pair "
                   "(%.60s, %.60s, ...), or make the table with theory accept --summary",
                   s.pairs, PANELS, s.pair[0], s.pair[1]);
    if (plot->rc)
        return;
    size_t columns = s.pairs > 2 ? 3 : s.pairs, rows = (s.pairs + columns - 1) / columns;
    bool several = s.pairs > 1;
    double height = dsc_is_narrow(plot) ? 140 + 240 * (double)s.pairs
                                        : (several ? 120 : 160) + 300 * (double)rows;
    dsc_panel panel[PANELS];
    dsc_key key[DSC_ACCEPT_RULES];
    for (size_t p = 0; p < s.pairs; p++)
        panel[p] = (dsc_panel){s.pair[p], y_label, s.value + dsc_accept_at(&s, p, 0), 0};
    for (int r = 0; r < DSC_ACCEPT_RULES; r++)
        key[r] = (dsc_key){dsc_accept_rule((size_t)r), r};
    dsc_panels p = {
        .title = spec->title,
        .subtitle = spec->subtitle ? spec->subtitle
                    : s.ranges     ? "bands: certain range where the tail was not recorded"
                                   : "",
        .x_label = x_label,
        .x = s.k,
        .nx = s.nk,
        .key = key,
        .lines = DSC_ACCEPT_RULES,
        .panel = panel,
        .panels = s.pairs,
        .columns = columns,
        .low = s.ranges ? s.low : NULL,
        .high = s.ranges ? s.high : NULL,
    };
    dsc_draw_panels(plot, &p, spec->word, several ? 1080 : 720, height);
    put_finding(&plot->finding, &s);
    dsc_accept_data(plot, &s);
}

// --- a line per pair -----------------------------------------------------------------------

typedef struct ratios {
    const char *label[DSC_STYLES]; // r, or "d/r" if d differs between lines
    dsc_key key[DSC_STYLES];
    size_t d; // 0: it differs
} ratios;

// Labels the pairs by their names.
static void label_pairs(dsc_plot *plot, ratios *u, const dsc_accept_series *s)
{
    size_t d[DSC_STYLES], r[DSC_STYLES], below;
    if (s->pairs > DSC_STYLES)
        dsc_refuse(plot,
                   "the table has %zu pairs and spectr-uniform shows at most %d: filter by "
                   "pair",
                   s->pairs, DSC_STYLES);
    for (size_t p = 0; !plot->rc && p < s->pairs; p++) {
        if (sscanf(s->pair[p], "U(%zu) to U(%zu/%zu)", &d[p], &below, &r[p]) != 3)
            refuse_pair(plot, s->pair[p]);
        u->d = p == 0 || u->d == d[p] ? d[p] : 0;
    }
    for (size_t p = 0; !plot->rc && p < s->pairs; p++) {
        u->label[p] = u->d ? dsc_text(plot, "%zu", r[p]) : dsc_text(plot, "%zu/%zu", d[p], r[p]);
        u->key[p] = (dsc_key){u->label[p], (int)p};
    }
}

// The largest |k-Seq - OTM| over all points.
static double largest_difference(const dsc_accept_series *s)
{
    double most = 0;
    for (size_t i = 0; i < s->pairs * s->nk; i++) {
        size_t p = i / s->nk, k = i % s->nk;
        most = fmax(most, fabs(s->value[dsc_accept_at(s, p, DSC_ACCEPT_KSEQ) + k] -
                               s->value[dsc_accept_at(s, p, DSC_ACCEPT_OTM) + k]));
    }
    return most;
}

static void put_uniform_finding(dsc_writer *w, const dsc_accept_series *s, const ratios *u,
                                double difference)
{
    size_t last = s->nk - 1;
    dsc_put(w,
            "Line chart: optimal acceptance probability by number of drafts K (%g to %g). The "
            "draft distribution is uniform over d tokens, the target's over d/r of them, and each "
            "line is one r: ",
            s->k[0], s->k[last]);
    for (size_t p = 0; p < s->pairs; p++) {
        const double *v = s->value + dsc_accept_at(s, p, DSC_ACCEPT_OTM);
        dsc_put(w, "%s%s %s %.4f to %.4f", p ? ", " : "", u->d ? "r =" : "d/r =", u->label[p], v[0],
                v[last]);
    }
    if (difference < 5e-7)
        dsc_put(w, ". k-Seq attains the optimum at every point.");
    else
        dsc_put(w, ". k-Seq differs from it by up to %.2g.", difference);
}

static void draw_uniform(dsc_plot *plot)
{
    ratios u = {.d = 0};
    dsc_accept_series s;
    dsc_accept_series_init(plot, &s);
    label_pairs(plot, &u, &s);
    double *value = dsc_plot_numbers(plot, s.pairs * s.nk);
    if (plot->rc)
        return;
    double difference = largest_difference(&s);
    for (size_t i = 0; i < s.pairs * s.nk; i++)
        value[i] = s.value[dsc_accept_at(&s, i / s.nk, DSC_ACCEPT_OTM) + i % s.nk];
    dsc_panel panel = {"", y_label, value, 0};
    dsc_panels p = {
        .title = u.d ? dsc_text(plot, "Optimal acceptance by number of drafts, U(%zu) to U(%zu/r)",
                                u.d, u.d)
                     : "Optimal acceptance by number of drafts, U(d) to U(d/r)",
        .subtitle = difference < 5e-7 ? "SpecTr Figure 5: OTM; k-Seq is equal to it"
                                      : "SpecTr Figure 5: OTM",
        .x_label = x_label,
        .key_title = u.d ? "r:" : "d/r:",
        .x = s.k,
        .nx = s.nk,
        .key = u.key,
        .lines = s.pairs,
        .panel = &panel,
        .panels = 1,
    };
    dsc_draw_panels(plot, &p, uniform.word, 720, 460);
    put_uniform_finding(&plot->finding, &s, &u, difference);
    dsc_accept_data(plot, &s);
}

// --- the figures ---------------------------------------------------------------------------

// Whether all pairs are of a family.
static bool is_family(const dsc_table *t, const accept_spec *spec)
{
    bool all = t->rows > 0;
    for (size_t i = 0; i < t->rows; i++)
        all = all && !strncmp(dsc_text_at(t, i, "pair"), spec->family, strlen(spec->family));
    return all;
}

static bool fits_family(dsc_plot *p)
{
    return is_family(p->table, p->spec);
}

static bool fits_any(dsc_plot *p)
{
    return !is_family(p->table, &bernoulli) && !is_family(p->table, &uniform);
}

const dsc_figure_type dsc_figure_accept_vs_k = {
    .name = "accept-vs-k",
    .summary = "acceptance of each rule by number of drafts K, one panel per pair of distributions",
    .needs = DSC_ACCEPT_NEEDS,
    .spec = &any_pairs,
    .fits = fits_any,
    .draw = draw_pairs,
};

const dsc_figure_type dsc_figure_spectr_bernoulli = {
    .name = "spectr-bernoulli",
    .summary = "acceptance by number of drafts, Bernoulli distributions (SpecTr Figures 4 and 6)",
    .needs = DSC_ACCEPT_NEEDS,
    .spec = &bernoulli,
    .fits = fits_family,
    .draw = draw_pairs,
};

const dsc_figure_type dsc_figure_spectr_uniform = {
    .name = "spectr-uniform",
    .summary = "optimal acceptance by number of drafts, uniform distributions (SpecTr Figure 5)",
    .needs = DSC_ACCEPT_NEEDS,
    .spec = &uniform,
    .fits = fits_family,
    .draw = draw_uniform,
};
