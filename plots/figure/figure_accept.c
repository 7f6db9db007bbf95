// SPDX-License-Identifier: Apache-2.0
// Three figures of acceptance by number of drafts K, from `draftscope theory accept`. accept-vs-k
// draws any distributions, one panel per pair, with bands where only a range is certain.
// spectr-bernoulli and spectr-uniform reproduce Figures 4 to 6 of SpecTr (Sun et al. 2023, arXiv
// 2310.15141, App. B); for uniform distributions U(d) to U(d/r), k-Seq attains the optimum, so one
// line per r stands for both rules.
#include "plots/draw/panel.h"
#include "plots/draw/select.h"
#include "plots/figure/figures.h"

#include <math.h>
#include <string.h>

enum { PANELS = 6, MOST_PAIRS = 500 };
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

// --- reading -------------------------------------------------------------------------------

// The rules, best first: their lines have the same order and look in every figure.
enum { OTM, KSEQ, SPECINFER, SINGLE, RULES };
#define NEEDS "pair k rejection specinfer kseq otm"

typedef struct accept_series {
    dsc_selection selection;
    const char **pair; // [pairs] in the table's order, owned by the table
    size_t pairs;
    double *k; // [nk] ascending
    size_t nk;
    // [pairs][RULES][nk]: a number, or NaN and the ends of a range if the table contains
    // a range instead; NaN where there is no row.
    double *value, *low, *high;
    bool ranges; // there is at least one
} accept_series;

// The index of value, low and high at which rule `rule` of pair `pair` begins: [nk].
static size_t at_rule(const accept_series *s, size_t pair, size_t rule)
{
    return (pair * RULES + rule) * s->nk;
}

static const struct {
    const char *column, *low, *high, *label;
} rule[RULES] = {
    [OTM] = {"otm", "otm_low", "otm_high", "OTM (optimal)"},
    [KSEQ] = {"kseq", "kseq_low", "kseq_high", "k-Seq"},
    [SPECINFER] = {"specinfer", "specinfer_low", "specinfer_high", "SpecInfer"},
    [SINGLE] = {"rejection", "rejection_low", "rejection_high", "single draft"},
};

// The index of a pair, which is added if it is new. Rows of one pair are adjacent.
static size_t pair_index(dsc_plot *p, accept_series *s, const char *pair)
{
    size_t j = s->pairs;
    while (j && strcmp(s->pair[j - 1], pair))
        j--;
    if (j)
        return j - 1;
    if (s->pairs == MOST_PAIRS) {
        dsc_refuse(p,
                   "the table has more than %d pairs: filter by pair, or make it with theory "
                   "accept --summary",
                   MOST_PAIRS);
        return 0;
    }
    s->pair[s->pairs] = pair;
    return s->pairs++;
}

static bool has_value(const accept_series *s, size_t at)
{
    return isfinite(s->value[at]) || isfinite(s->low[at]);
}

// Stores the values of a row; a range is stored only where there is no number.
static void fill_row(dsc_plot *p, accept_series *s, size_t row, size_t pair, size_t k)
{
    const dsc_table *t = s->selection.table;
    for (size_t r = 0; r < RULES; r++) {
        size_t at = at_rule(s, pair, r) + k;
        if (has_value(s, at))
            dsc_refuse(p, "two rows have the same pair and k (%s, k = %g)", s->pair[pair], s->k[k]);
        s->value[at] = dsc_number_at(t, row, rule[r].column);
        if (isnan(s->value[at])) {
            s->low[at] = dsc_number_at(t, row, rule[r].low);
            s->high[at] = dsc_number_at(t, row, rule[r].high);
            s->ranges = s->ranges || isfinite(s->low[at]);
        }
    }
}

// Cells without a row stay NaN.
static void fill(dsc_plot *p, accept_series *s, const size_t *pair, int k_column)
{
    size_t count = s->pairs * RULES * s->nk;
    bool any = false;
    s->value = dsc_plot_numbers(p, 3 * count);
    if (p->rc)
        return;
    s->low = s->value + count;
    s->high = s->low + count;
    for (size_t i = 0; i < s->selection.rows; i++) {
        double k = dsc_value_at(s->selection.table, s->selection.row[i], k_column);
        size_t at = 0;
        while (at < s->nk && s->k[at] != k)
            at++;
        if (at < s->nk)
            fill_row(p, s, s->selection.row[i], pair[i], at);
    }
    for (size_t i = 0; i < count; i++)
        any = any || has_value(s, i);
    if (!any)
        dsc_refuse(p, "the table has no finite acceptance probability to draw");
}

// Reads the rows that pass the filters.
static void read_series(dsc_plot *p, accept_series *s)
{
    int column[6]; // pair k rejection specinfer kseq otm
    dsc_need_columns(p, NEEDS, column);
    dsc_need(p, "pair", DSC_NAMES);
    *s = (accept_series){.selection = dsc_select(p, p->table, p->options, NULL)};
    s->pair = dsc_plot_new(p, const char *, MOST_PAIRS);
    size_t *pair = dsc_plot_new(p, size_t, s->selection.rows);
    for (size_t i = 0; !p->rc && i < s->selection.rows; i++)
        pair[i] = pair_index(p, s, dsc_text_at(p->table, s->selection.row[i], "pair"));
    s->k = dsc_distinct(p, &s->selection, column[1], &s->nk);
    if (!s->nk)
        dsc_refuse(p, "column 'k' has no numbers");
    fill(p, s, pair, column[1]);
}

// One row per pair and k, with the ends of ranges if there are any.
static void put_data(dsc_plot *p, const accept_series *s)
{
    dsc_data_text(p, "pair", "draft distribution to target distribution");
    dsc_data_number(p, "k", "drafts per position");
    for (size_t r = 0; r < RULES; r++)
        dsc_data_number(p, rule[r].column, NULL);
    for (size_t r = 0; s->ranges && r < RULES; r++) {
        dsc_data_number(p, rule[r].low, NULL);
        dsc_data_number(p, rule[r].high, NULL);
    }
    for (size_t i = 0; i < s->pairs * s->nk; i++) {
        double number[DSC_DATA_COLUMNS] = {s->k[i % s->nk]};
        bool any = false;
        for (size_t r = 0; r < RULES; r++) {
            size_t at = at_rule(s, i / s->nk, r) + i % s->nk;
            double *range = &number[1 + RULES + 2 * r];
            number[1 + r] = s->value[at];
            range[0] = s->low[at];
            range[1] = s->high[at];
            any = any || has_value(s, at);
        }
        if (any)
            dsc_data_row(p, &s->pair[i / s->nk], number);
    }
}

// --- a panel per pair ----------------------------------------------------------------------

// The k at which k-Seq loses most against the optimum, and its pair; SIZE_MAX: there is no number.
static size_t widest_loss(const accept_series *s, size_t *pair)
{
    double most = -1;
    size_t best = SIZE_MAX;
    for (size_t p = 0; p < s->pairs; p++)
        for (size_t i = 0; i < s->nk; i++) {
            double loss = s->value[at_rule(s, p, OTM) + i] - s->value[at_rule(s, p, KSEQ) + i];
            if (loss > most) { // false for NaN
                most = loss;
                best = i;
                *pair = p;
            }
        }
    return best;
}

static void put_widest_range(dsc_writer *w, const accept_series *s)
{
    size_t count = s->pairs * RULES * s->nk, widest = 0;
    for (size_t i = 0; i < count; i++)
        if (s->high[i] - s->low[i] > s->high[widest] - s->low[widest] || isnan(s->low[widest]))
            widest = i;
    dsc_put(w,
            " Bands enclose the acceptance of distributions whose tail was not recorded; the "
            "widest is %.2g (%s).",
            s->high[widest] - s->low[widest], rule[widest / s->nk % RULES].label);
}

static void put_finding(dsc_writer *w, const accept_series *s)
{
    size_t pair = 0, at = widest_loss(s, &pair);
    dsc_put(w,
            "Line chart%s: probability that a draft is accepted by number of drafts K (%g to %g), "
            "for %zu pair%s of distributions.",
            s->pairs > 1 ? "s" : "", s->k[0], s->k[s->nk - 1], s->pairs, s->pairs > 1 ? "s" : "");
    if (at != SIZE_MAX) {
        const double *v = s->value + at_rule(s, pair, 0) + at;
        double loss = v[OTM * s->nk] - v[KSEQ * s->nk];
        if (loss < 5e-7)
            dsc_put(w, " k-Seq attains the optimum everywhere.");
        else
            dsc_put(w,
                    " k-Seq is furthest from the optimum for %s at K = %g: %.4f against %.4f "
                    "(SpecInfer %.4f, single draft %.4f).",
                    s->pair[pair], s->k[at], v[KSEQ * s->nk], v[OTM * s->nk], v[SPECINFER * s->nk],
                    v[SINGLE * s->nk]);
    }
    if (s->ranges)
        put_widest_range(w, s);
}

static void draw_pairs(dsc_plot *plot)
{
    const accept_spec *spec = plot->spec;
    accept_series s;
    read_series(plot, &s);
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
    dsc_key key[RULES];
    for (size_t p = 0; p < s.pairs; p++)
        panel[p] = (dsc_panel){s.pair[p], y_label, s.value + at_rule(&s, p, 0), 0};
    for (int r = 0; r < RULES; r++)
        key[r] = (dsc_key){rule[r].label, r};
    dsc_panels p = {
        .title = spec->title,
        .subtitle = spec->subtitle ? spec->subtitle
                    : s.ranges     ? "bands: certain range where the tail was not recorded"
                                   : "",
        .x_label = x_label,
        .x = s.k,
        .nx = s.nk,
        .key = key,
        .lines = RULES,
        .panel = panel,
        .panels = s.pairs,
        .columns = columns,
        .low = s.ranges ? s.low : NULL,
        .high = s.ranges ? s.high : NULL,
    };
    dsc_draw_panels(plot, &p, spec->word, several ? 1080 : 720, height);
    put_finding(&plot->finding, &s);
    put_data(plot, &s);
}

// --- a line per pair -----------------------------------------------------------------------

typedef struct ratios {
    const char *label[DSC_STYLES]; // r, or "d/r" if d differs between lines
    dsc_key key[DSC_STYLES];
    size_t d; // 0: it differs
} ratios;

// Labels the pairs by their names.
static void label_pairs(dsc_plot *plot, ratios *u, const accept_series *s)
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
        size_t rank = 0; // among the r, whose order the colors show
        for (size_t q = 0; q < s->pairs; q++)
            rank += r[q] < r[p];
        u->key[p] = (dsc_key){u->label[p], dsc_ramp_style(rank, s->pairs)};
    }
}

// The largest |k-Seq - OTM| over all points.
static double largest_difference(const accept_series *s)
{
    double most = 0;
    for (size_t i = 0; i < s->pairs * s->nk; i++) {
        size_t p = i / s->nk, k = i % s->nk;
        most =
            fmax(most, fabs(s->value[at_rule(s, p, KSEQ) + k] - s->value[at_rule(s, p, OTM) + k]));
    }
    return most;
}

static void put_uniform_finding(dsc_writer *w, const accept_series *s, const ratios *u,
                                double difference)
{
    size_t last = s->nk - 1;
    dsc_put(w,
            "Line chart: optimal acceptance probability by number of drafts K (%g to %g). The "
            "draft distribution is uniform over d tokens, the target's over d/r of them, and each "
            "line is one r: ",
            s->k[0], s->k[last]);
    for (size_t p = 0; p < s->pairs; p++) {
        const double *v = s->value + at_rule(s, p, OTM);
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
    accept_series s;
    read_series(plot, &s);
    label_pairs(plot, &u, &s);
    double *value = dsc_plot_numbers(plot, s.pairs * s.nk);
    if (plot->rc)
        return;
    double difference = largest_difference(&s);
    for (size_t i = 0; i < s.pairs * s.nk; i++)
        value[i] = s.value[at_rule(&s, i / s.nk, OTM) + i % s.nk];
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
    put_data(plot, &s);
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
    .needs = NEEDS,
    .spec = &any_pairs,
    .fits = fits_any,
    .draw = draw_pairs,
};

const dsc_figure_type dsc_figure_spectr_bernoulli = {
    .name = "spectr-bernoulli",
    .summary = "acceptance by number of drafts, Bernoulli distributions (SpecTr Figures 4 and 6)",
    .needs = NEEDS,
    .spec = &bernoulli,
    .fits = fits_family,
    .draw = draw_pairs,
};

const dsc_figure_type dsc_figure_spectr_uniform = {
    .name = "spectr-uniform",
    .summary = "optimal acceptance by number of drafts, uniform distributions (SpecTr Figure 5)",
    .needs = NEEDS,
    .spec = &uniform,
    .fits = fits_family,
    .draw = draw_uniform,
};
