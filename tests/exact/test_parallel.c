// SPDX-License-Identifier: Apache-2.0
// Parallel drafters: the marginals of a synthetic language against the sum over all texts, and the
// tree of the best-first search against all trees of its size.
#include "tests/close.h"
#include "tests/exact/texts.h"

#include "sim/draft/best_first.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_spec.h"

#include <math.h>
#include <string.h>

// --- marginals -----------------------------------------------------------------------------------

// The marginals of all offsets, summed over every text of the language at the temperature.
static void sum_texts(dsc_model_synthetic *m, const dsc_language *l, double temperature,
                      double sum[TEXT_TOKENS][TEXT_VOCAB])
{
    dsc_error err = {0};
    const dsc_token_view prompt = {text_prompt, TEXT_PROMPT};
    memset(sum, 0, TEXT_TOKENS * sizeof *sum);
    for (int text = 0; text < TEXTS; text++) {
        double probability = 1;
        assert_ok(dsc_model_synthetic_begin(m, l, prompt, TEXT_TOKENS, temperature, &err), err);
        for (int j = 0, scale = TEXTS / TEXT_VOCAB; j < TEXT_TOKENS; j++, scale /= TEXT_VOCAB) {
            const int32_t token = text / scale % TEXT_VOCAB;
            dsc_dist d;
            assert_ok(m->base.type->dist(&m->base, -1, &d, &err), err);
            probability *= dsc_dist_probability(&d, token);
            assert_ok(m->base.type->commit(&m->base, &token, 1, &err), err);
        }
        for (int j = 0, rest = text; j < TEXT_TOKENS; j++, rest /= TEXT_VOCAB)
            sum[TEXT_TOKENS - 1 - j][rest % TEXT_VOCAB] += probability;
    }
}

static void marginals_are_sums_over_all_texts(void **state)
{
    (void)state;
    static const double temperatures[] = {0, 0.5, 1, 2};
    const dsc_markov_options o = {.vocab_size = TEXT_VOCAB, .seed = 3, .noise = 1.5};
    dsc_error err = {0};
    dsc_language *l;
    dsc_model_synthetic m = {0};
    double sum[TEXT_TOKENS][TEXT_VOCAB];
    assert_ok(dsc_markov_new(&l, &o, DSC_SIDE_DRAFT, &err), err);
    for (size_t t = 0; t < sizeof temperatures / sizeof *temperatures; t++) {
        const dsc_token_view prompt = {text_prompt, TEXT_PROMPT};
        sum_texts(&m, l, temperatures[t], sum);
        assert_ok(dsc_model_synthetic_begin(&m, l, prompt, TEXT_TOKENS, temperatures[t], &err),
                  err);
        assert_ok(dsc_model_synthetic_parallel(&m, &err), err);
        for (int j = TEXT_TOKENS - 1; j >= 0; j--)
            for (int32_t x = 0; x < TEXT_VOCAB; x++) {
                dsc_dist d;
                assert_ok(m.base.type->marginal(&m.base, j, false, &d, &err), err);
                assert_close(dsc_dist_probability(&d, x), sum[j][x], 1e-14);
            }
    }
    dsc_model_synthetic_fini(&m);
    dsc_language_free(l);
}

// Committed tokens are known: the marginals then start after them.
static void marginals_follow_the_committed_output(void **state)
{
    (void)state;
    const dsc_markov_options o = {.vocab_size = TEXT_VOCAB, .seed = 3, .noise = 1.5};
    const dsc_token_view prompt = {text_prompt, TEXT_PROMPT}, longer = {text_prompt, 2};
    const int32_t token = 1;
    dsc_error err = {0};
    dsc_language *l;
    dsc_model_synthetic a = {0}, b = {0};
    dsc_dist x, y;
    assert_int_equal(text_prompt[1], token);
    assert_ok(dsc_markov_new(&l, &o, DSC_SIDE_DRAFT, &err), err);
    assert_ok(dsc_model_synthetic_begin(&a, l, prompt, TEXT_TOKENS, 1, &err), err);
    assert_ok(dsc_model_synthetic_begin(&b, l, longer, TEXT_TOKENS, 1, &err), err);
    assert_ok(dsc_model_synthetic_parallel(&a, &err), err);
    assert_ok(dsc_model_synthetic_parallel(&b, &err), err);
    assert_ok(a.base.type->marginal(&a.base, 2, true, &x, &err), err);
    assert_ok(a.base.type->commit(&a.base, &token, 1, &err), err);
    assert_ok(a.base.type->marginal(&a.base, 1, true, &x, &err), err);
    assert_ok(b.base.type->marginal(&b.base, 1, true, &y, &err), err);
    for (int32_t t = 0; t < TEXT_VOCAB; t++)
        assert_close(dsc_dist_probability(&x, t), dsc_dist_probability(&y, t), 1e-15);
    dsc_model_synthetic_fini(&a);
    dsc_model_synthetic_fini(&b);
    dsc_language_free(l);
}

// --- the best tree -------------------------------------------------------------------------------

enum { LEVELS = 3, RANKS = 2, PATHS = 2 + 4 + 8 };

// A small set of candidates and the probability of every path; path i of a level has its ranks as
// binary digits, and the paths of level j begin at 2^(j + 1) - 2.
typedef struct candidates {
    double probability[LEVELS * RANKS];
    bool ends[LEVELS * RANKS];
} candidates;

static int parent_of(int path)
{
    return path < 2 ? -1 : (path - 2) / 2;
}

static double path_probability(const candidates *c, int path)
{
    int level = path < 2 ? 0 : path < 6 ? 1 : 2, rank = path % 2, parent = parent_of(path);
    double p = c->probability[level * RANKS + rank];
    if (parent >= 0 && c->ends[(level - 1) * RANKS + parent % 2])
        return -1; // nothing follows
    return parent < 0 ? p : path_probability(c, parent) < 0 ? -1 : p * path_probability(c, parent);
}

// The largest sum of path probabilities of any tree of at most `budget` nodes.
static double best_of_all(const candidates *c, int budget)
{
    double best = 0;
    for (unsigned set = 0; set < 1u << PATHS; set++) {
        double sum = 0;
        int nodes = 0;
        bool tree = true;
        for (int i = 0; i < PATHS && tree; i++) {
            if (!(set >> i & 1))
                continue;
            const int parent = parent_of(i);
            const double p = path_probability(c, i);
            tree = p >= 0 && (parent < 0 || set >> parent & 1);
            sum += p;
            nodes++;
        }
        if (tree && nodes <= budget && sum > best)
            best = sum;
    }
    return best;
}

// The expected number of accepted tokens when the target's tokens are independent and have the
// marginals: over all texts, the length of the longest path of the tree that is a prefix.
static double expected_accepted(const candidates *c, const dsc_best_first_node *node, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) { // a path is accepted iff every token on it is drawn
        double p = 1;
        for (int32_t n = (int32_t)i; n >= 0; n = node[n].parent)
            p *= c->probability[node[n].level * RANKS + node[n].rank];
        assert_close(p, node[i].probability, 1e-15);
        sum += p;
    }
    return sum;
}

static void no_tree_has_a_larger_expectation(void **state)
{
    (void)state;
    static const candidates cases[] = {
        {{0.6, 0.3, 0.5, 0.4, 0.9, 0.05}, {0}},
        {{0.35, 0.34, 0.97, 0.02, 0.5, 0.5}, {0}},
        {{0.9, 0.1, 0.9, 0.1, 0.9, 0.1}, {0}},
        {{0.6, 0.3, 0.5, 0.4, 0.9, 0.05}, {true, false, false, true, false, false}},
        {{1, 0, 0.5, 0.5, 1, 0}, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t budget = 1; budget <= PATHS; budget++) {
            const dsc_best_first_input in = {cases[i].probability, cases[i].ends, LEVELS, RANKS};
            dsc_best_first_node node[PATHS], heap[PATHS + 1];
            const size_t count = dsc_best_first(&in, budget, node, heap);
            assert_true(count <= budget);
            for (size_t n = 0; n < count; n++)
                assert_true(node[n].parent < (int32_t)n);
            assert_close(expected_accepted(&cases[i], node, count),
                         best_of_all(&cases[i], (int)budget), 1e-14);
        }
}

static void languages_without_exact_marginals_are_refused(void **state)
{
    (void)state;
    const dsc_token_view prompt = {text_prompt, TEXT_PROMPT};
    dsc_error err = {0};
    dsc_language *l;
    dsc_model_synthetic m = {0};
    const dsc_markov_options o = {.vocab_size = TEXT_VOCAB, .seed = 3};
    assert_ok(dsc_markov_new(&l, &o, DSC_SIDE_DRAFT, &err), err);
    l->reach = 2;
    assert_ok(dsc_model_synthetic_begin(&m, l, prompt, TEXT_TOKENS, 1, &err), err);
    assert_int_equal(dsc_model_synthetic_parallel(&m, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "depends on the last 2"));
    dsc_model_synthetic_fini(&m);
    dsc_language_free(l);
}

SUITE(parallel)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marginals_are_sums_over_all_texts),
        cmocka_unit_test(marginals_follow_the_committed_output),
        cmocka_unit_test(no_tree_has_a_larger_expectation),
        cmocka_unit_test(languages_without_exact_marginals_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
