// SPDX-License-Identifier: Apache-2.0
// Optimal acceptance by number of drafts for uniform distributions U(d) to U(d/r), a line per r:
// Figure 5 of SpecTr (Sun et al., 2023, arXiv 2310.15141, App. B.2). k-Seq reaches the optimum
// there, so that one line stands for both.
#include "plots/draw/panel.h"
#include "plots/figure/accept_series.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <stdlib.h>

#define MAKE "draftscope theory accept --uniform 32,1,2,4,8,16,32 --num-drafts 1:16 -o u.tsv"

typedef struct lines {
    char label[DSC_STYLES][32]; // "r = 4", or with d when that differs between lines
    dsc_key key[DSC_STYLES];
    size_t count, d; // d: 0 when it differs
} lines;

// Labels of the pairs, from their names.
static int read_pairs(lines *l, const dsc_accept_series *s, dsc_error *err)
{
    size_t d[DSC_STYLES], r[DSC_STYLES], below;
    if (s->pairs > DSC_STYLES)
        return dsc_fail(err, DSC_EUSAGE,
                        "the table holds %zu pairs, spectr-uniform draws at most %d: filter by "
                        "pair",
                        s->pairs, DSC_STYLES);
    *l = (lines){.count = s->pairs};
    for (size_t p = 0; p < s->pairs; p++) {
        if (sscanf(s->pair[p], "U(%zu) to U(%zu/%zu)", &d[p], &below, &r[p]) != 3)
            return dsc_fail(
                err, DSC_EUSAGE,
                "spectr-uniform draws uniform distributions, not %.60s; to make a table: " MAKE,
                s->pair[p]);
        l->d = p == 0 || l->d == d[p] ? d[p] : 0;
    }
    for (size_t p = 0; p < s->pairs; p++) {
        if (l->d)
            snprintf(l->label[p], sizeof l->label[p], "%zu", r[p]);
        else
            snprintf(l->label[p], sizeof l->label[p], "%zu/%zu", d[p], r[p]);
        l->key[p] = (dsc_key){l->label[p], (int)p};
    }
    return DSC_OK;
}

// The largest |k-Seq - OTM| over everything.
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

static int put_finding(const dsc_accept_series *s, const lines *l, double difference,
                       dsc_buffer *to, dsc_error *err)
{
    dsc_writer w = {.to = to, .err = err};
    size_t last = s->nk - 1;
    dsc_put(&w,
            "Line chart: optimal acceptance probability by number of drafts k (%g to %g), drafts "
            "uniform over d tokens, target uniform over d/r of them, a line per r: ",
            s->k[0], s->k[last]);
    for (size_t p = 0; p < l->count; p++) {
        const double *v = s->value + dsc_accept_at(s, p, DSC_ACCEPT_OTM);
        dsc_put(&w, "%s%s %s %.4f to %.4f", p ? ", " : "", l->d ? "r =" : "d/r =", l->label[p],
                v[0], v[last]);
    }
    if (difference < 5e-7)
        dsc_put(&w, ". k-Seq reaches the optimum at every point.");
    else
        dsc_put(&w, ". k-Seq is up to %.2g away from it.", difference);
    return w.rc;
}

static int compose(const dsc_accept_series *s, const lines *l, const dsc_figure_options *o,
                   const char *terminal, dsc_drawing *out, dsc_error *err)
{
    dsc_canvas canvas;
    double *value, difference = largest_difference(s);
    int rc = dsc_canvas_init(&canvas, terminal, o, 720, 460, err);
    if (!rc)
        rc = dsc_new(&value, s->pairs * s->nk, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < s->pairs * s->nk; i++)
        value[i] = s->value[dsc_accept_at(s, i / s->nk, DSC_ACCEPT_OTM) + i % s->nk];
    char title[96];
    if (l->d)
        snprintf(title, sizeof title, "Optimal acceptance by number of drafts, U(%zu) to U(%zu/r)",
                 l->d, l->d);
    else
        snprintf(title, sizeof title, "Optimal acceptance by number of drafts, U(d) to U(d/r)");
    dsc_panel panel = {"", "probability that a draft is accepted", value, 0};
    dsc_panels p = {
        .title = o->title ? o->title : title,
        .subtitle = difference < 5e-7 ? "SpecTr Figure 5: OTM; k-Seq is equal to it"
                                      : "SpecTr Figure 5: OTM",
        .x_label = "drafts per position, k",
        .key_title = l->d ? "r:" : "d/r:",
        .x = s->k,
        .nx = s->nk,
        .key = l->key,
        .lines = l->count,
        .panel = &panel,
        .panels = 1,
        .columns = 1,
        .best_panel = SIZE_MAX,
    };
    dsc_writer w = {.to = &out->script, .err = err};
    dsc_put_panels(&w, &canvas, "spectr_uniform", &p);
    free(value);
    return w.rc ? w.rc : put_finding(s, l, difference, &out->finding, err);
}

static int script(const dsc_table *t, const dsc_figure_options *o, const char *terminal,
                  dsc_drawing *out, dsc_error *err)
{
    dsc_accept_series s;
    lines l;
    int rc = dsc_accept_series_init(&s, t, o, "spectr-uniform", err);
    if (rc)
        return rc;
    rc = read_pairs(&l, &s, err);
    if (!rc)
        rc = compose(&s, &l, o, terminal, out, err);
    if (!rc)
        rc = dsc_accept_data(&s, &out->data, err);
    dsc_accept_series_fini(&s);
    return rc;
}

const dsc_figure_type dsc_figure_spectr_uniform = {
    .name = "spectr-uniform",
    .summary =
        "optimal acceptance against the number of drafts, uniform distributions (SpecTr Figure 5)",
    .needs = DSC_ACCEPT_NEEDS,
    .script = script,
};
