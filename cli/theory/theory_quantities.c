// SPDX-License-Identifier: Apache-2.0
// Acceptance probabilities of the verification rules and their upper bounds for one pair of
// distributions: numbers where the distributions are complete, intervals where a tail is unlisted.
// cli_formula lists the equations and their sources.
#include "cli/theory/theory_quantities.h"

#include "theory/lemma3.h"
#include "theory/specinfer_wor.h"
#include "theory/otm.h"
#include "theory/otm_sampler.h"

#include <stdlib.h>

// Steps of dsc_specinfer_wor for each k before it returns an interval: some hundredths of a second.
enum { WOR_BUDGET = 100000 };

// clang-format off
const dsc_column cli_quantity[CLI_QUANTITIES] = {
    [CLI_SINGLE] = {"rejection", DSC_CELL_REAL,
                    "acceptance probability of one draft, whatever k is"},
    [CLI_SPECINFER] = {"specinfer", DSC_CELL_REAL,
                        "probability that SpecInfer accepts one of k i.i.d. drafts"},
    [CLI_SPECINFER_WOR] = {"specinfer_wor", DSC_CELL_REAL,
                            "probability that SpecInfer accepts one of k drafts without "
                            "replacement (EAGLE-1, RSD)"},
    [CLI_KSEQ] = {"kseq", DSC_CELL_REAL, "probability that k-Seq (SpecTr) accepts one of k i.i.d. "
                                         "drafts"},
    [CLI_KSEQ_RHO] = {"kseq_rho", DSC_CELL_REAL, "optimal parameter rho* of k-Seq, in [1, k]"},
    [CLI_OTM] = {"otm", DSC_CELL_REAL,
                 "alpha_k: largest acceptance probability of any rule with k i.i.d. drafts"},
    [CLI_OTM_WOR] = {"otm_wor", DSC_CELL_REAL,
                     "largest acceptance probability of any rule with k drafts without "
                     "replacement"},
    [CLI_LEMMA3_UPPER] = {"lemma3_upper", DSC_CELL_REAL, "SpecTr's upper bound on alpha_k"},
    [CLI_GAP] = {"gap", DSC_CELL_REAL, "alpha_k minus the acceptance probability of the otm "
                                       "rule's sampler"},
    [CLI_OTM_GREEDY] = {"otm_greedy", DSC_CELL_REAL,
                        "largest acceptance probability of any rule with the k - 1 most probable "
                        "tokens and one sampled token as drafts"},
};

// Each name is a quantity or a function that formulas use.
const dsc_column cli_formula[CLI_FORMULAS] = {
    {"rejection", DSC_CELL_REAL,
     "sum min(draft, target) = 1 - W(1). Leviathan et al. 2023, Alg. 1; "
     "SpecTr (Sun et al. 2023), Eq. (1)"},
    {"specinfer", DSC_CELL_REAL, "r_1 = target, r_(i+1) = (r_i - draft)+ normalized; 1 - product "
     "over i of (1 - sum min(draft, r_i)) = 1 - W(c_k), c_1 = 1, c_(i+1) = c_i + W(c_i). SpecInfer "
     "(Miao et al. 2023), Alg. 2; in terms of W: theory/specinfer.h"},
    {"specinfer_wor", DSC_CELL_REAL, "formula of specinfer with draft_(i+1) = draft_i without the "
     "rejected token, normalized. EAGLE (Li et al. 2024); RSD (Jeon et al. 2024)"},
    {"kseq", DSC_CELL_REAL, "1 - (1 - beta)^k with beta = sum min(draft, target/rho*). SpecTr, "
     "Alg. 2"},
    {"kseq_rho", DSC_CELL_REAL, "rho* solves 1 - (1 - beta(rho))^k = rho beta(rho). SpecTr, "
     "Eq. (6)"},
    {"otm", DSC_CELL_REAL, "1 - max over token sets A of draft(A)^k - target(A); the best A is a "
     "prefix of the tokens by target/draft. The value of the transport problem, SpecTr Eq. (4), by "
     "Hall's theorem"},
    {"otm_wor", DSC_CELL_REAL, "1 - max over A of Pr(all k drafts in A) - target(A). Hu et al. "
     "2025, arXiv 2502.18779"},
    {"lemma3_upper", DSC_CELL_REAL, "min over token sets B of [sum in B of min(target, 1 - (1 - "
     "draft)^k) + sum over draft tuples of min(its probability, target of its tokens not in B)]. "
     "SpecTr, Lemma 3; times 1 - (1 - 1/k)^k it is a lower bound. It equals alpha_k: "
     "theory/lemma3.c"},
    {"gap", DSC_CELL_REAL, "alpha_k - sum over tokens of the sampler's accepted flow; "
     "theory/otm_sampler.h"},
    {"otm_greedy", DSC_CELL_REAL, "T = the k - 1 most probable draft tokens; target(T) + sum "
     "outside T of min(draft/(1 - draft(T)), target). Hu et al. 2025"},
    {"W(c)", DSC_CELL_REAL, "sum over tokens of (target - c draft)+"},
};
// clang-format on

static dsc_interval point(double v)
{
    return (dsc_interval){v, v};
}

static void put_acceptance(const dsc_rule_acceptance *a, dsc_interval *x)
{
    x[CLI_SINGLE] = point(a->single);
    x[CLI_SPECINFER] = point(a->specinfer);
    x[CLI_KSEQ] = point(a->kseq);
    x[CLI_KSEQ_RHO] = point(a->kseq_rho);
    x[CLI_OTM] = point(a->otm);
}

static int largest(const int *k, size_t count)
{
    int most = 1;
    for (size_t i = 0; i < count; i++)
        most = k[i] > most ? k[i] : most;
    return most;
}

// --- complete distributions ---------------------------------------------------------------------

static int put_without_replacement(const cli_pair *p, const dsc_curve *curve, const int *k,
                                   size_t count, dsc_interval *x, dsc_error *err)
{
    double low[DSC_MAX_DRAFTS], high[DSC_MAX_DRAFTS], wor[DSC_MAX_DRAFTS], greedy[DSC_MAX_DRAFTS];
    size_t vocab = (size_t)p->vocab;
    int kmax = largest(k, count);
    int rc = dsc_otm_wor(p->draft, p->target, vocab, kmax, wor, err);
    if (!rc)
        rc = dsc_otm_greedy(p->draft, p->target, vocab, kmax, greedy, err);
    if (!rc)
        rc = dsc_specinfer_wor(curve, p->draft, p->target, vocab, kmax, WOR_BUDGET, low, high, err);
    for (size_t i = 0; i < count && !rc; i++) {
        dsc_interval *to = x + i * CLI_QUANTITIES;
        to[CLI_OTM_WOR] = point(wor[k[i] - 1]);
        to[CLI_OTM_GREEDY] = point(greedy[k[i] - 1]);
        to[CLI_SPECINFER_WOR] = (dsc_interval){low[k[i] - 1], high[k[i] - 1]};
    }
    return rc;
}

static int put_gaps(const cli_pair *p, const int *k, size_t count, dsc_interval *x, dsc_error *err)
{
    dsc_otm_sampler *s;
    int rc = dsc_otm_sampler_new(&s, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count && !rc; i++) {
        rc = dsc_otm_sampler_build(s, p->draft, p->target, (size_t)p->vocab, k[i], err);
        if (!rc)
            x[i * CLI_QUANTITIES + CLI_GAP] = point(dsc_otm_sampler_gap(s));
    }
    dsc_otm_sampler_free(s);
    return rc;
}

static int of_dists(const cli_pair *p, const int *k, size_t count, dsc_interval *x, dsc_error *err)
{
    dsc_curve curve = {0};
    dsc_rule_acceptance *a = NULL;
    int rc = dsc_curve_init(&curve, p->draft, p->target, (size_t)p->vocab, err);
    if (!rc)
        rc = dsc_new(&a, count, err);
    if (!rc)
        dsc_acceptance_of_curve(&curve, k, count, a);
    for (size_t i = 0; i < count && !rc; i++) {
        put_acceptance(&a[i], x + i * CLI_QUANTITIES);
        x[i * CLI_QUANTITIES + CLI_LEMMA3_UPPER] = point(dsc_lemma3_bounds(&curve, k[i]).upper);
    }
    if (!rc)
        rc = put_without_replacement(p, &curve, k, count, x, err);
    if (!rc)
        rc = put_gaps(p, k, count, x, err);
    free(a);
    dsc_curve_fini(&curve);
    return rc;
}

// --- lists with an unlisted tail ---------------------------------------------------------------

// Quantities without an interval of their own are bounded by others. Drafts without replacement are
// at least as good as drafts with replacement for the optimum (drop the repeats) and for SpecInfer
// (theory/specinfer_wor.c). The most probable tokens as drafts are accepted at least as often as
// one sampled draft. The sampler needs complete distributions.
static int of_listed(const cli_pair *p, const int *k, size_t count, dsc_interval *x, dsc_error *err)
{
    dsc_partial *known;
    int rc = dsc_new(&known, count, err);
    if (!rc)
        rc = dsc_partial_acceptance(&p->draft_listed, &p->target_listed, (size_t)p->vocab, k, count,
                                    known, err);
    for (size_t i = 0; i < count && !rc; i++) {
        dsc_interval *to = x + i * CLI_QUANTITIES;
        to[CLI_SINGLE] = known[i].single;
        to[CLI_SPECINFER] = known[i].specinfer;
        to[CLI_KSEQ] = known[i].kseq;
        to[CLI_KSEQ_RHO] = known[i].kseq_rho;
        to[CLI_OTM] = to[CLI_LEMMA3_UPPER] = known[i].otm; // Lemma 3 gives alpha_k itself
        to[CLI_SPECINFER_WOR] = (dsc_interval){known[i].specinfer.low, 1};
        to[CLI_OTM_WOR] = (dsc_interval){known[i].otm.low, 1};
        to[CLI_OTM_GREEDY] = (dsc_interval){known[i].single.low, 1};
    }
    free(known);
    return rc;
}

int cli_quantities(const cli_pair *p, const int *k, size_t count, dsc_interval *x, dsc_error *err)
{
    return p->whole ? of_dists(p, k, count, x, err) : of_listed(p, k, count, x, err);
}

int cli_quick_quantities(const cli_pair *p, const int *k, size_t count, dsc_interval *x,
                         dsc_acceptance_work *work, dsc_error *err)
{
    dsc_rule_acceptance a[DSC_MAX_DRAFTS];
    float *row = NULL;
    size_t vocab = (size_t)p->vocab;
    if (!p->whole)
        return cli_quantities(p, k, count, x, err);
    int rc = dsc_new(&row, 2 * vocab, err);
    for (size_t i = 0; i < vocab && !rc; i++) {
        row[i] = (float)p->draft[i];
        row[vocab + i] = (float)p->target[i];
    }
    if (!rc)
        rc = dsc_acceptance_of_rows(row, row + vocab, vocab, largest(k, count), a, work, err);
    for (size_t i = 0; i < count && !rc; i++)
        put_acceptance(&a[k[i] - 1], x + i * CLI_QUANTITIES);
    free(row);
    return rc;
}
