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
#include <stdlib.h>
#include <string.h>

enum { PANELS = 6 };
static const char y_label[] = "probability that a draft is accepted";
static const char x_label[] = "number of drafts K per position";

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

static int put_finding(const dsc_accept_series *s, dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    size_t pair = 0, at = widest_loss(s, &pair);
    dsc_put(&w,
            "Line chart%s: probability that a draft is accepted by number of drafts K (%g to %g), "
            "for %zu pair%s of distributions.",
            s->pairs > 1 ? "s" : "", s->k[0], s->k[s->nk - 1], s->pairs, s->pairs > 1 ? "s" : "");
    if (at != SIZE_MAX) {
        const double *v = s->value + dsc_accept_at(s, pair, 0) + at;
        double loss = v[DSC_ACCEPT_OTM * s->nk] - v[DSC_ACCEPT_KSEQ * s->nk];
        if (loss < 5e-7)
            dsc_put(&w, " k-Seq attains the optimum everywhere.");
        else
            dsc_put(&w,
                    " k-Seq is furthest from the optimum for %s at K = %g: %.4f against %.4f "
                    "(SpecInfer %.4f, single draft %.4f).",
                    s->pair[pair], s->k[at], v[DSC_ACCEPT_KSEQ * s->nk], v[DSC_ACCEPT_OTM * s->nk],
                    v[DSC_ACCEPT_SPECINFER * s->nk], v[DSC_ACCEPT_SINGLE * s->nk]);
    }
    if (s->ranges)
        put_widest_range(&w, s);
    return w.rc;
}

static int draw_pairs(const dsc_accept_series *s, const dsc_figure_options *o, const char *terminal,
                      const char *word, const char *title, const char *subtitle, dsc_drawing *out,
                      dsc_error *err)
{
    if (s->pairs > PANELS)
        return dsc_fail(err, DSC_EUSAGE,
                        "the table has %zu pairs and the figure shows at most %d: filter by pair "
                        "(%.60s, %.60s, ...), or make the table with theory accept --summary",
                        s->pairs, PANELS, s->pair[0], s->pair[1]);
    size_t columns = s->pairs > 2 ? 3 : s->pairs, rows = (s->pairs + columns - 1) / columns;
    bool several = s->pairs > 1;
    double height = dsc_is_narrow(o, terminal) ? 140 + 240 * (double)s->pairs
                                               : (several ? 120 : 160) + 300 * (double)rows;
    dsc_panel panel[PANELS];
    dsc_key key[DSC_ACCEPT_RULES];
    for (size_t p = 0; p < s->pairs; p++)
        panel[p] = (dsc_panel){s->pair[p], y_label, s->value + dsc_accept_at(s, p, 0), 0};
    for (int r = 0; r < DSC_ACCEPT_RULES; r++)
        key[r] = (dsc_key){dsc_accept_rule((size_t)r), r};
    dsc_panels p = {
        .title = title,
        .subtitle = subtitle,
        .x_label = x_label,
        .x = s->k,
        .nx = s->nk,
        .key = key,
        .lines = DSC_ACCEPT_RULES,
        .panel = panel,
        .panels = s->pairs,
        .columns = columns,
        .low = s->ranges ? s->low : NULL,
        .high = s->ranges ? s->high : NULL,
    };
    int rc =
        dsc_draw_panels(&p, word, o, terminal, several ? 1080 : 720, height, &out->script, err);
    return rc ? rc : put_finding(s, &out->finding, err);
}

static int draw_any(const dsc_accept_series *s, const dsc_figure_options *o, const char *terminal,
                    dsc_drawing *out, dsc_error *err)
{
    return draw_pairs(s, o, terminal, "accept_vs_k", "Acceptance by number of drafts",
                      s->ranges ? "bands: certain range where the tail was not recorded" : "", out,
                      err);
}

static int draw_bernoulli(const dsc_accept_series *s, const dsc_figure_options *o,
                          const char *terminal, dsc_drawing *out, dsc_error *err)
{
    for (size_t p = 0; p < s->pairs; p++)
        if (strncmp(s->pair[p], "Ber(", 4))
            return dsc_fail(err, DSC_EUSAGE,
                            "spectr-bernoulli draws Bernoulli distributions, not %.60s; make a "
                            "table with: draftscope theory accept --bernoulli "
                            ".25,.1,.25,.5,.75,1 --num-drafts 1:16 -o b.tsv",
                            s->pair[p]);
    return draw_pairs(s, o, terminal, "spectr_bernoulli",
                      "Acceptance by number of drafts, Bernoulli distributions",
                      "SpecTr Figures 4 and 6: draft distribution to target distribution; where "
                      "lines coincide, the later in the key is on top",
                      out, err);
}

// --- a line per pair -----------------------------------------------------------------------

typedef struct uniform {
    char label[DSC_STYLES][32]; // r, or "d/r" if d differs between lines
    dsc_key key[DSC_STYLES];
    size_t d; // 0: it differs
} uniform;

// Labels the pairs by their names.
static int label_pairs(uniform *u, const dsc_accept_series *s, dsc_error *err)
{
    size_t d[DSC_STYLES], r[DSC_STYLES], below;
    if (s->pairs > DSC_STYLES)
        return dsc_fail(err, DSC_EUSAGE,
                        "the table has %zu pairs and spectr-uniform shows at most %d: filter by "
                        "pair",
                        s->pairs, DSC_STYLES);
    for (size_t p = 0; p < s->pairs; p++) {
        if (sscanf(s->pair[p], "U(%zu) to U(%zu/%zu)", &d[p], &below, &r[p]) != 3)
            return dsc_fail(
                err, DSC_EUSAGE,
                "spectr-uniform draws uniform distributions, not %.60s; make a table "
                "with: draftscope theory accept --uniform 32,1,2,4,8,16,32 --num-drafts 1:16 "
                "-o u.tsv",
                s->pair[p]);
        u->d = p == 0 || u->d == d[p] ? d[p] : 0;
    }
    for (size_t p = 0; p < s->pairs; p++) {
        if (u->d)
            snprintf(u->label[p], sizeof u->label[p], "%zu", r[p]);
        else
            snprintf(u->label[p], sizeof u->label[p], "%zu/%zu", d[p], r[p]);
        u->key[p] = (dsc_key){u->label[p], (int)p};
    }
    return DSC_OK;
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

static int put_uniform_finding(const dsc_accept_series *s, const uniform *u, double difference,
                               dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    size_t last = s->nk - 1;
    dsc_put(&w,
            "Line chart: optimal acceptance probability by number of drafts K (%g to %g). The "
            "draft distribution is uniform over d tokens, the target's over d/r of them, and each "
            "line is one r: ",
            s->k[0], s->k[last]);
    for (size_t p = 0; p < s->pairs; p++) {
        const double *v = s->value + dsc_accept_at(s, p, DSC_ACCEPT_OTM);
        dsc_put(&w, "%s%s %s %.4f to %.4f", p ? ", " : "", u->d ? "r =" : "d/r =", u->label[p],
                v[0], v[last]);
    }
    if (difference < 5e-7)
        dsc_put(&w, ". k-Seq attains the optimum at every point.");
    else
        dsc_put(&w, ". k-Seq differs from it by up to %.2g.", difference);
    return w.rc;
}

static int draw_uniform(const dsc_accept_series *s, const dsc_figure_options *o,
                        const char *terminal, dsc_drawing *out, dsc_error *err)
{
    uniform u = {.d = 0};
    double *value, difference = largest_difference(s);
    int rc = label_pairs(&u, s, err);
    if (!rc)
        rc = dsc_new(&value, s->pairs * s->nk, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->pairs * s->nk; i++)
        value[i] = s->value[dsc_accept_at(s, i / s->nk, DSC_ACCEPT_OTM) + i % s->nk];
    char title[96] = "Optimal acceptance by number of drafts, U(d) to U(d/r)";
    if (u.d)
        snprintf(title, sizeof title, "Optimal acceptance by number of drafts, U(%zu) to U(%zu/r)",
                 u.d, u.d);
    dsc_panel panel = {"", y_label, value, 0};
    dsc_panels p = {
        .title = title,
        .subtitle = difference < 5e-7 ? "SpecTr Figure 5: OTM; k-Seq is equal to it"
                                      : "SpecTr Figure 5: OTM",
        .x_label = x_label,
        .key_title = u.d ? "r:" : "d/r:",
        .x = s->k,
        .nx = s->nk,
        .key = u.key,
        .lines = s->pairs,
        .panel = &panel,
        .panels = 1,
    };
    rc = dsc_draw_panels(&p, "spectr_uniform", o, terminal, 720, 460, &out->script, err);
    free(value);
    return rc ? rc : put_uniform_finding(s, &u, difference, &out->finding, err);
}

// --- the figures ---------------------------------------------------------------------------

// Whether all pairs are of a family, whose names begin with `prefix`.
static bool is_family(const dsc_table *t, const char *prefix)
{
    bool all = t->rows > 0;
    for (size_t i = 0; i < t->rows; i++)
        all = all && !strncmp(dsc_text_at(t, i, "pair"), prefix, strlen(prefix));
    return all;
}

static bool fits_bernoulli(const dsc_table *t)
{
    return is_family(t, "Ber(");
}

static bool fits_uniform(const dsc_table *t)
{
    return is_family(t, "U(");
}

static bool fits_any(const dsc_table *t)
{
    return !fits_bernoulli(t) && !fits_uniform(t);
}

typedef int draw_fn(const dsc_accept_series *s, const dsc_figure_options *o, const char *terminal,
                    dsc_drawing *out, dsc_error *err);

static int draw(const char *figure, draw_fn *draw_series, const dsc_table *t,
                const dsc_figure_options *o, const char *terminal, dsc_drawing *out, dsc_error *err)
{
    dsc_accept_series s;
    int rc = dsc_accept_series_init(&s, t, o, figure, err);
    if (!rc)
        rc = draw_series(&s, o, terminal, out, err);
    if (!rc)
        rc = dsc_accept_data(&s, &out->data, err);
    dsc_accept_series_fini(&s);
    return rc;
}

static int script_any(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                      dsc_drawing *out, dsc_error *err)
{
    return draw("accept-vs-k", draw_any, t, o, terminal, out, err);
}

static int script_bernoulli(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                            dsc_drawing *out, dsc_error *err)
{
    return draw("spectr-bernoulli", draw_bernoulli, t, o, terminal, out, err);
}

static int script_uniform(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                          dsc_drawing *out, dsc_error *err)
{
    return draw("spectr-uniform", draw_uniform, t, o, terminal, out, err);
}

const dsc_figure_type dsc_figure_accept_vs_k = {
    .name = "accept-vs-k",
    .summary = "acceptance of each rule by number of drafts K, one panel per pair of distributions",
    .needs = DSC_ACCEPT_NEEDS,
    .fits = fits_any,
    .script = script_any,
};

const dsc_figure_type dsc_figure_spectr_bernoulli = {
    .name = "spectr-bernoulli",
    .summary = "acceptance by number of drafts, Bernoulli distributions (SpecTr Figures 4 and 6)",
    .needs = DSC_ACCEPT_NEEDS,
    .fits = fits_bernoulli,
    .script = script_bernoulli,
};

const dsc_figure_type dsc_figure_spectr_uniform = {
    .name = "spectr-uniform",
    .summary = "optimal acceptance by number of drafts, uniform distributions (SpecTr Figure 5)",
    .needs = DSC_ACCEPT_NEEDS,
    .fits = fits_uniform,
    .script = script_uniform,
};
