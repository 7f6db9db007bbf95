// SPDX-License-Identifier: Apache-2.0
// Methods that let a draft model write: sampled drafts, the shapes of trees, and tokens per step
// against closed forms on distributions that no context changes. tests/golden has the greedy
// drafts, their lengths and costs.
#include "tests/close.h"
#include "tests/zero_counts.h"

#include "sim/draft/tree_file.h"
#include "sim/loop.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_synthetic.h"
#include "theory/specinfer_wor.h"

#include <string.h>

// --- a drafter at work -------------------------------------------------------------------------

// One distribution, whatever was written before.
typedef struct fixed {
    dsc_language base;
    const double *row;
} fixed;

static void fixed_dist(const dsc_language *l, const dsc_place *at, dsc_dist *out)
{
    (void)at;
    *out = (dsc_dist){.vocab_size = l->vocab_size, .dense = ((const fixed *)l)->row};
}

static int32_t fixed_best(const dsc_language *l, const dsc_place *at)
{
    (void)at;
    const double *row = ((const fixed *)l)->row;
    int32_t best = 0;
    for (int32_t x = 1; x < l->vocab_size; x++)
        best = row[x] > row[best] ? x : best;
    return best;
}

static const dsc_language_type fixed_type = {
    .name = "fixed", .dist = fixed_dist, .best = fixed_best};

static fixed fixed_language(const double *row, int32_t vocab)
{
    return (fixed){{.type = &fixed_type, .vocab_size = vocab, .end_token = -1}, row};
}

typedef struct rig {
    dsc_model_synthetic target, draft, middle;
    dsc_models models;
    dsc_config config;
    dsc_request request;
    dsc_drafter_input in;
    dsc_arena arena;
    dsc_draft d;
    void *state;
} rig;

// The defaults, but for "NAME=VALUE ..."; not prepared.
static void configure(dsc_config *c, const dsc_drafter_type *d, char *settings)
{
    dsc_error err = {0};
    dsc_config_init(c, d);
    for (char *name = strtok(settings, "= "); name; name = strtok(NULL, "= "))
        assert_ok(dsc_config_set(c, name, strtok(NULL, " "), &err), err);
}

// A method at the start of a request. The target is the draft model's equal in everything but
// distribution.
static void rig_begin(rig *r, const dsc_drafter_type *d, char *settings, dsc_draft_kind kind,
                      const dsc_language *target, const dsc_language *draft, int64_t limit,
                      double temperature)
{
    dsc_error err = {0};
    static const int32_t prompt[] = {1, 0, 2};
    *r = (rig){0};
    configure(&r->config, d, settings);
    assert_ok(dsc_config_prepare(&r->config, &err), err);
    r->request.prompt = (dsc_token_view){prompt, 3};
    assert_ok(
        dsc_model_synthetic_begin(&r->target, target, r->request.prompt, limit, temperature, &err),
        err);
    assert_ok(
        dsc_model_synthetic_begin(&r->draft, draft, r->request.prompt, limit, temperature, &err),
        err);
    r->models = (dsc_models){.target = &r->target.base, .draft = &r->draft.base};
    r->in = (dsc_drafter_input){.request = &r->request,
                                .config = &r->config,
                                .parameter = r->config.parameter,
                                .seed = 11,
                                .arena = &r->arena,
                                .models = &r->models,
                                .kind = kind};
    assert_ok(dsc_arena_alloc(&r->arena, &r->state, d->state_size, 1, &err), err);
    assert_ok(dsc_loop_begin(r->state, &r->in, &err), err);
}

static void rig_end(rig *r)
{
    dsc_config_fini(&r->config);
    dsc_model_synthetic_fini(&r->target);
    dsc_model_synthetic_fini(&r->draft);
    dsc_draft_fini(&r->d);
    dsc_arena_fini(&r->arena);
}

static void propose(rig *r)
{
    dsc_error err = {0};
    dsc_draft_clear(&r->d);
    const dsc_model *t = &r->target.base;
    assert_ok(r->config.drafter->propose(r->state, t->output, t->length, &r->d, &err), err);
}

static void commit(rig *r, const int32_t *token, size_t n)
{
    dsc_error err = {0};
    assert_ok(r->target.base.type->commit(&r->target.base, token, n, &err), err);
    assert_ok(r->draft.base.type->commit(&r->draft.base, token, n, &err), err);
}

static dsc_language *markov(int32_t vocab, double noise)
{
    dsc_error err = {0};
    dsc_language *l;
    const dsc_markov_options o = {.vocab_size = vocab, .seed = 8, .noise = noise};
    assert_ok(dsc_markov_new(&l, &o, DSC_SIDE_DRAFT, &err), err);
    return l;
}

// --- chains ------------------------------------------------------------------------------------

static double probability(const dsc_language *l, int32_t before, int32_t token)
{
    dsc_dist dist;
    const dsc_place at = {&before, 1, 1, 0, 0};
    l->type->dist(l, &at, &dist);
    return dsc_dist_probability(&dist, token);
}

// The draft is that of `chain`, up to and with the first token below the threshold.
static void threshold_stops_after_an_unsure_token(void **state)
{
    (void)state;
    int unsure = 0, full = 0;
    for (int greedy = 0; greedy < 2; greedy++) {
        dsc_language *l = markov(6, 3);
        dsc_draft_kind kind = greedy ? DSC_DRAFT_TOPK : DSC_DRAFT_SAMPLED;
        char settings[] = "num-speculative-tokens=4 assistant-confidence-threshold=0.5",
             plain[] = "num-speculative-tokens=4";
        rig r, chain;
        rig_begin(&r, &dsc_drafter_threshold, settings, kind, l, l, 1000, !greedy);
        rig_begin(&chain, &dsc_drafter_draft_model, plain, kind, l, l, 1000, !greedy);
        for (int32_t step = 0; step < 200; step++) {
            const int32_t next = step * 7 % 6;
            size_t count = 0;
            propose(&r);
            propose(&chain);
            int32_t before = step ? (step - 1) * 7 % 6 : 2;
            bool sure = true;
            for (; sure && count < 4; before = chain.d.token[count++])
                sure = probability(l, before, chain.d.token[count]) >= 0.5;
            assert_int_equal(r.d.count, count);
            assert_memory_equal(r.d.token, chain.d.token, count * sizeof *r.d.token);
            unsure += !sure;
            full += sure;
            commit(&r, &next, 1);
            commit(&chain, &next, 1);
        }
        rig_end(&r);
        rig_end(&chain);
        l->type->free(l);
    }
    assert_true(unsure > 50 && full > 50);
}

// --- trees -------------------------------------------------------------------------------------

// The token of rank r after `before`, by counting the better ones.
static int32_t of_rank(const dsc_language *l, int32_t before, int rank)
{
    for (int32_t x = 0; x < l->vocab_size; x++) {
        int better = 0;
        for (int32_t y = 0; y < l->vocab_size; y++) {
            double a = probability(l, before, y), b = probability(l, before, x);
            better += a > b || (a == b && y < x);
        }
        if (better == rank)
            return x;
    }
    fail();
    return -1;
}

static void equals_come_in_order(void **state)
{
    (void)state;
    static const double row[] = {0.2, 0.3, 0.2, 0.3, 0};
    const dsc_dist dist = {.vocab_size = 5, .dense = row};
    double room[5];
    int32_t token[9];
    assert_int_equal(dsc_dist_top(&dist, 1, room, token), 1);
    assert_int_equal(token[0], 1);
    assert_int_equal(dsc_dist_top(&dist, 3, room, token), 3);
    assert_memory_equal(token, ((int32_t[]){1, 3, 0}), 3 * sizeof *token);
    assert_int_equal(dsc_dist_top(&dist, 9, room, token), 4); // of a probability
    assert_memory_equal(token, ((int32_t[]){1, 3, 0, 2}), 4 * sizeof *token);
    assert_int_equal(dsc_dist_top(&dist, 0, room, token), 0);
}

// Every node of the tree, in its order, under its parent, with the token of its rank.
static void assert_shape(const rig *r, const dsc_tree *t, const dsc_language *l, int32_t last)
{
    assert_int_equal(r->d.count, t->nodes - 1);
    for (int i = 1; i < t->nodes; i++) {
        int32_t parent = t->parent[i] - 1; // the root is not in the draft
        assert_int_equal(r->d.parent[i - 1], parent);
        int32_t before = parent < 0 ? last : r->d.token[parent];
        assert_int_equal(r->d.token[i - 1], of_rank(l, before, t->rank[i]));
    }
}

static int64_t parents_of(const dsc_tree *t)
{
    int64_t n = 1; // the root
    for (int i = 2; i < t->nodes; i++)
        n += t->parent[i] != t->parent[i - 1];
    return n;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void trees_have_the_shape_that_is_asked(void **state)
{
    (void)state;
    static const char *const names[] = {"eagle", "medusa", "chain:7", "3^3", "./drafters.tree"};
    write_file(names[4], "# ranks with gaps\n0\n2\n2,1\n2,4\n2,4,0\n");
    dsc_language *l = markov(12, 1);
    for (size_t n = 0; n < 5; n++)
        for (int hot = 0; hot < 2; hot++) { // ranks do not depend on the temperature
            char settings[64];
            snprintf(settings, sizeof settings, "tree=%s", names[n]);
            rig r;
            rig_begin(&r, &dsc_drafter_tree, settings, DSC_DRAFT_TOPK, l, l, 1000, hot);
            const dsc_tree *t = r.config.prepared;
            propose(&r);
            assert_shape(&r, t, l, 2);
            assert_int_equal(r.d.draft_calls, t->depth);
            assert_int_equal(r.d.draft_call_tokens, parents_of(t));
            assert_int_equal(dsc_config_limit(&r.config), t->depth);
            assert_int_equal(dsc_config_width(&r.config), dsc_draft_width(&r.d));
            commit(&r, (int32_t[]){4, 7, 1}, 3);
            propose(&r);
            assert_shape(&r, t, l, 1);
            assert_int_equal(r.d.draft_call_tokens, parents_of(t) + 2); // three are new to it
            rig_end(&r);
        }
    l->type->free(l);
    unlink(names[4]);
}

static void nothing_hangs_below_the_end(void **state)
{
    (void)state;
    dsc_language *l = markov(12, 1);
    char settings[] = "tree=2^6";
    rig r;
    rig_begin(&r, &dsc_drafter_tree, settings, DSC_DRAFT_TOPK, l, l, 3, 1);
    propose(&r);
    assert_int_equal(r.d.count, 2 + 4 + 8); // the third token is the last
    assert_int_equal(r.d.draft_calls, 3);
    commit(&r, (int32_t[]){4, 4}, 2);
    propose(&r);
    assert_int_equal(r.d.count, 2);
    rig_end(&r);
    dsc_language ends = *l; // the most probable first token ends an output
    ends.end_token = of_rank(l, 2, 0);
    l->end_token = ends.end_token;
    char again[] = "tree=2^2";
    rig_begin(&r, &dsc_drafter_tree, again, DSC_DRAFT_TOPK, l, l, 100, 1);
    propose(&r);
    assert_int_equal(r.d.count, 2 + 2);
    assert_int_equal(r.d.parent[2], 1);
    rig_end(&r);
    l->type->free(l);
}

// All orders in which three of four tokens can be drawn without replacement.
static void assert_wor(const double row[4])
{
    enum { DRAWS = 40000, ORDERS = 64 };
    int count[ORDERS] = {0}, degrees = -1;
    double sum = 0;
    const fixed l = fixed_language(row, 4);
    char settings[] = "tree=3^1";
    rig r;
    rig_begin(&r, &dsc_drafter_tree, settings, DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT, &l.base,
              &l.base, 100, 1);
    for (int i = 0; i < DRAWS; i++) {
        r.request.index = i;
        propose(&r);
        assert_int_equal(r.d.count, 3);
        count[(r.d.token[0] * 4 + r.d.token[1]) * 4 + r.d.token[2]]++;
    }
    rig_end(&r);
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int c = 0; c < 4; c++) {
                int seen = count[(a * 4 + b) * 4 + c];
                if (a == b || b == c || a == c) {
                    assert_int_equal(seen, 0);
                    continue;
                }
                double e = DRAWS * row[a] * row[b] / (1 - row[a]) * row[c] / (1 - row[a] - row[b]);
                sum += (seen - e) * (seen - e) / e;
                degrees++;
            }
    if (!(sum <= degrees + 5 * sqrt(2 * degrees)))
        fail_msg("chi-square %.1f of %d degrees of freedom", sum, degrees);
}

static void draws_without_replacement_have_their_dist(void **state)
{
    (void)state;
    assert_wor((double[]){0.1, 0.2, 0.3, 0.4});
    assert_wor((double[]){0.95, 0.02, 0.02, 0.01}); // by writing out what is left
    static const double two[] = {0, 0.5, 0, 0.5};
    const fixed l = fixed_language(two, 4);
    char drawn[] = "tree=3^2", chosen[] = "tree=3^2";
    rig r; // two tokens have a probability, and two children each
    rig_begin(&r, &dsc_drafter_tree, drawn, DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT, &l.base, &l.base,
              100, 1);
    propose(&r);
    assert_int_equal(r.d.count, 2 + 4);
    rig_end(&r);
    rig_begin(&r, &dsc_drafter_tree, chosen, DSC_DRAFT_TOPK, &l.base, &l.base, 100, 1);
    propose(&r);
    assert_int_equal(r.d.count, 2 + 4);
    rig_end(&r);
}

// --- tokens per step ---------------------------------------------------------------------------

static const double target_row[6] = {0.30, 0.25, 0.20, 0.15, 0.07, 0.03};
static const double draft_row[6] = {0.15, 0.35, 0.10, 0.10, 0.25, 0.05};
static const double middle_row[6] = {0.20, 0.28, 0.22, 0.10, 0.10, 0.10};

// Runs one long output and holds its tokens per step against `expected`, within 4 standard errors.
static void assert_tokens(const dsc_drafter_type *d, char *settings, const dsc_verifier_type *rule,
                          double expected, dsc_counts *counts)
{
    enum { TOKENS = 60000, ROOM = 64 };
    const fixed target = fixed_language(target_row, 6), draft = fixed_language(draft_row, 6),
                middle = fixed_language(middle_row, 6);
    const dsc_fit fit = {.draft = true, .middle = true, .dists = true, .off_path = true};
    int64_t histogram[ROOM];
    dsc_error err = {0};
    dsc_draft_kind kind;
    dsc_loop loop = {0};
    rig r;
    assert_ok(dsc_draft_kind_for(&kind, d, rule, &fit, &err), err);
    rig_begin(&r, d, settings, kind, &target.base, &draft.base, TOKENS, 1);
    assert_ok(dsc_model_synthetic_begin(&r.middle, &middle.base, r.request.prompt, TOKENS, 1, &err),
              err);
    r.models.middle = &r.middle.base;
    *counts = zero_counts(histogram, ROOM - 1);
    const dsc_loop_input in = {.config = &r.config,
                               .rule = rule,
                               .kind = kind,
                               .models = &r.models,
                               .request = &r.request,
                               .seed = 5,
                               .arena = &r.arena};
    assert_ok(dsc_loop_run(&loop, &in, counts, &err), err);
    double n = (double)counts->target_calls, mean = dsc_block_efficiency(counts), square = 0;
    for (int m = 0; m < ROOM; m++)
        square += (double)histogram[m] * (m + 1 - mean) * (m + 1 - mean);
    double error = sqrt(square) / n;
    if (!(fabs(mean - expected) <= 4 * error))
        fail_msg("%s with %s: %.4f tokens a step, +- %.4f, expected %.4f", d->name, rule->name,
                 mean, error, expected);
    counts->histogram = NULL;
    dsc_loop_fini(&loop);
    dsc_model_synthetic_fini(&r.middle);
    rig_end(&r);
}

static double expected_tokens(const char *name, const double *rate, int ranks)
{
    dsc_error err = {0};
    dsc_tree t;
    double expected;
    const dsc_tree_acceptance dist = {rate, 1, ranks};
    assert_ok(dsc_tree_named(&t, name, &err), err);
    assert_ok(dsc_tree_expect(&t, &dist, NULL, &expected, &err), err);
    dsc_tree_fini(&t);
    return expected;
}

// Pr(the child of rank r is accepted) follows from SpecInfer for sampled children, and is the
// target's probability for top-k children.
static void trees_yield_what_is_expected(void **state)
{
    (void)state;
    enum { RANKS = 10 };
    double low[RANKS], high[RANKS], rate[RANKS] = {0};
    char eagle[] = "tree=eagle", full[] = "tree=3^3", medusa[] = "tree=medusa";
    dsc_error err = {0};
    dsc_curve curve = {0};
    dsc_counts counts;
    assert_ok(dsc_curve_init(&curve, draft_row, target_row, 6, &err), err);
    assert_ok(dsc_specinfer_wor(&curve, draft_row, target_row, 6, 6, 1000000, low, high, &err),
              err);
    dsc_curve_fini(&curve);
    for (int k = 0; k < 6; k++)
        rate[k] = low[k] - (k ? low[k - 1] : 0);
    assert_tokens(&dsc_drafter_tree, eagle, &dsc_verifier_specinfer_wor,
                  expected_tokens("eagle", rate, RANKS), &counts);
    assert_tokens(&dsc_drafter_tree, full, &dsc_verifier_specinfer_wor,
                  expected_tokens("3^3", rate, RANKS), &counts);
    static const int by_draft[] = {1, 4, 0, 2, 3, 5};
    for (int k = 0; k < 6; k++)
        rate[k] = target_row[by_draft[k]];
    assert_tokens(&dsc_drafter_tree, medusa, &dsc_verifier_specinfer,
                  expected_tokens("medusa", rate, RANKS), &counts);
}

// A cascade's draft follows the middle model's distribution, and costs what its rounds do.
static void a_cascade_drafts_as_its_middle_model(void **state)
{
    (void)state;
    double beta = 0, inner = 0;
    char settings[] = "num-speculative-tokens=6 inner-length=2",
         alone[] = "num-speculative-tokens=6 inner-length=0";
    for (int x = 0; x < 6; x++) {
        beta += fmin(middle_row[x], target_row[x]);
        inner += fmin(middle_row[x], draft_row[x]);
    }
    double expected = (1 - pow(beta, 7)) / (1 - beta);
    dsc_counts counts;
    assert_tokens(&dsc_drafter_cascade, settings, &dsc_verifier_rejection, expected, &counts);
    assert_true(counts.num_draft_tokens > 6 * counts.target_calls - 12); // all but at the end
    // Passes for n more tokens: rounds of g = min(2, n - 1) drafts and one of the middle model.
    double passes[7] = {0};
    for (int n = 1; n <= 6; n++) {
        int g = n > 2 ? 2 : n - 1;
        passes[n] = g + 1;
        for (int m = 0; m <= g; m++)
            passes[n] += pow(inner, m) * (m < g ? 1 - inner : 1) * passes[n - m - 1];
    }
    double per_step = (double)counts.draft_calls / (double)counts.target_calls;
    assert_close(per_step, passes[6], 4 * 1.5 / sqrt((double)counts.target_calls));
    assert_tokens(&dsc_drafter_cascade, alone, &dsc_verifier_rejection, expected, &counts);
    assert_true(counts.draft_calls > 6 * counts.target_calls - 12 &&
                counts.draft_calls <= 6 * counts.target_calls);
}

// --- options -----------------------------------------------------------------------------------

static void sequoia_drafts_the_best_tree(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_config c;
    dsc_tree_acceptance dist;
    dsc_tree_plan *plan;
    double *rate, expected;
    char settings[] = "budget=40 depth=6 acceptance-by-rank=.6,.2,.1", costly[] = "draft-cost=0.5";
    configure(&c, &dsc_drafter_sequoia, settings);
    assert_ok(dsc_config_prepare(&c, &err), err);
    const dsc_tree *t = c.prepared;
    assert_ok(dsc_tree_acceptance_load(&dist, &rate, ".6,.2,.1", &err), err);
    assert_ok(dsc_tree_plan_new(&plan, &dist, 40, 6, &err), err);
    assert_ok(dsc_tree_expect(t, &dist, NULL, &expected, &err), err);
    assert_close(expected, dsc_tree_plan_expected(plan, 40, 6), 1e-12);
    assert_int_equal(t->nodes, 40);
    dsc_tree_plan_free(plan);
    free(rate);
    dsc_config_fini(&c);
    configure(&c, &dsc_drafter_sequoia, costly);
    assert_ok(dsc_config_prepare(&c, &err), err);
    assert_in_range(((const dsc_tree *)c.prepared)->depth, 1, 3); // of 8 that it might have
    dsc_config_fini(&c);
}

static void acceptances_are_read(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_tree_acceptance dist;
    double *rate;
    assert_ok(dsc_tree_acceptance_load(&dist, &rate, ".5, .25/1", &err), err);
    assert_int_equal(dist.depths, 2);
    assert_int_equal(dist.ranks, 2);
    assert_memory_equal(rate, ((double[]){0.5, 0.25, 1, 0}), 4 * sizeof *rate);
    free(rate);
    write_file("./drafters.rates", "# by depth\n1\n\n .5 , .25 # two\r\n");
    assert_ok(dsc_tree_acceptance_load(&dist, &rate, "./drafters.rates", &err), err);
    assert_int_equal(dist.depths, 2);
    assert_memory_equal(rate, ((double[]){1, 0, 0.5, 0.25}), 4 * sizeof *rate);
    free(rate);
    write_file("./drafters.rates", ".5\n.5,x\n");
    assert_int_equal(dsc_tree_acceptance_load(&dist, &rate, "./drafters.rates", &err), DSC_EINPUT);
    assert_string_equal(err.message,
                        "./drafters.rates: depth 2, rank 1: a number from 0 to 1 is expected");
    unlink("./drafters.rates");
    static const char *const bad[] = {"", ".5,", "2", "-.5", ".9,.9", "/", ".5 .5", "1e"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dsc_tree_acceptance_load(&dist, &rate, bad[i], &err), DSC_EUSAGE);
}

static void assert_refused(const dsc_drafter_type *d, const char *settings, int status,
                           const char *message)
{
    dsc_error err = {0};
    dsc_config c;
    char own[128];
    snprintf(own, sizeof own, "%s", settings);
    configure(&c, d, own);
    assert_int_equal(dsc_config_prepare(&c, &err), status);
    if (!strstr(err.message, message))
        fail_msg("'%s' is not in: %s", message, err.message);
    dsc_config_fini(&c);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const dsc_drafter_type *tree = &dsc_drafter_tree, *branches = &dsc_drafter_spectr_tree;
    assert_refused(tree, "tree=eagel", DSC_EUSAGE, "no tree is called 'eagel'");
    assert_refused(tree, "tree=2^10", DSC_EUSAGE, "more than 1024 nodes");
    assert_refused(tree, "tree=./nothing", DSC_EINPUT, "./nothing");
    write_file("./drafters.tree", "0\n1\n2,0\n");
    assert_refused(tree, "tree=./drafters.tree", DSC_EINPUT, "./drafters.tree:3: the parent");
    write_file("./drafters.tree", "0\n1\n0\n");
    assert_refused(tree, "tree=./drafters.tree", DSC_EINPUT, "./drafters.tree:3: this path is");
    unlink("./drafters.tree");
    assert_refused(branches, "branches=2,0", DSC_EUSAGE, "--branches '2,0'");
    assert_refused(branches, "branches=2,", DSC_EUSAGE, "--branches '2,'");
    assert_refused(branches, "branches=32,32", DSC_EUSAGE, "more than 1024 nodes");
    assert_refused(&dsc_drafter_hf_dynamic, "max=4", DSC_EUSAGE,
                   "--num-assistant-tokens 5 is not from --min");
    assert_refused(&dsc_drafter_adaptive, "candidate-steps=1/x", DSC_EUSAGE, "1/x: it must be 1");
    assert_refused(&dsc_drafter_adaptive, "candidate-steps=0", DSC_EUSAGE, "above 0");
    assert_refused(&dsc_drafter_adaptive_suffix, "base-options=branches=2", DSC_EUSAGE,
                   "are not chains");
    assert_refused(&dsc_drafter_adaptive_recorded, "base-options=policy=oracle", DSC_EUSAGE,
                   "leave out branches and policy");
    assert_refused(&dsc_drafter_adaptive_ngram, "base-options=k=2", DSC_EUSAGE,
                   "--candidate-steps lists");
    assert_refused(&dsc_drafter_adaptive_ngram, "base-options=n=2", DSC_EUSAGE,
                   "method ngram has no option 'n'");
    assert_refused(&dsc_drafter_sequoia, "acceptance-by-rank=.7,.7", DSC_EUSAGE, "sum to 1.4");
}

// A copy is no sample, so that a rule has to verify both kinds of drafts.
static void rules_of_samples_alone_do_not_fit_copies(void **state)
{
    (void)state;
    const dsc_fit all = {.draft = true, .dists = true, .off_path = true};
    const dsc_verifier_type *const fits[] = {&dsc_verifier_rejection, &dsc_verifier_block},
                                   *const not [] = {&dsc_verifier_kseq, &dsc_verifier_otm};
    for (int i = 0; i < 2; i++) {
        dsc_error err = {0};
        dsc_draft_kind kind;
        const dsc_drafter_type *d = &dsc_drafter_sa_draft_model;
        assert_ok(dsc_draft_kind_for(&kind, d, fits[i], &all, &err), err);
        assert_int_equal(kind, DSC_DRAFT_SAMPLED);
        assert_int_equal(dsc_draft_kind_for(&kind, d, not [i], &all, &err), DSC_EUSAGE);
        assert_non_null(strstr(err.message, "also copies text"));
    }
}

// The prefix tree has its nodes, level by level, and none of them twice unless drawn so.
static void a_prefix_tree_branches(void **state)
{
    (void)state;
    const fixed l = fixed_language(draft_row, 6);
    char settings[] = "branches=3,1,2";
    rig r;
    rig_begin(&r, &dsc_drafter_spectr_tree, settings, DSC_DRAFT_SAMPLED, &l.base, &l.base, 100, 1);
    propose(&r);
    static const int32_t parent[] = {-1, -1, -1, 0, 1, 2, 3, 3, 4, 4, 5, 5};
    assert_int_equal(r.d.count, 12);
    assert_memory_equal(r.d.parent, parent, sizeof parent);
    assert_int_equal(r.d.draft_calls, 3);
    assert_int_equal(r.d.draft_call_tokens, 1 + 3 + 3);
    rig_end(&r);
}

SUITE(drafters)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threshold_stops_after_an_unsure_token),
        cmocka_unit_test(equals_come_in_order),
        cmocka_unit_test(trees_have_the_shape_that_is_asked),
        cmocka_unit_test(nothing_hangs_below_the_end),
        cmocka_unit_test(draws_without_replacement_have_their_dist),
        cmocka_unit_test(a_prefix_tree_branches),
        cmocka_unit_test(trees_yield_what_is_expected),
        cmocka_unit_test(a_cascade_drafts_as_its_middle_model),
        cmocka_unit_test(sequoia_drafts_the_best_tree),
        cmocka_unit_test(acceptances_are_read),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(rules_of_samples_alone_do_not_fit_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
