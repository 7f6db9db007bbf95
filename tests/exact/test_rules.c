// SPDX-License-Identifier: Apache-2.0
// Every method with every rule that fits it, on a pair of models small enough to enumerate.
// Lossless rules emit the target's distribution, whatever is drafted, and greedy ones the target's
// output. New methods and rules are covered through their lists.
#include "tests/default_config.h"
#include "tests/exact/texts.h"
#include "tests/zero_counts.h"

#include "sim/loop.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_spec.h"
#include "sim/model/model_synthetic.h"
#include "sim/model/workload.h"

#include <string.h>

enum { ROOM = 4096 };

static int requests = 20000;

typedef struct bench {
    dsc_language *target, *draft, *middle;
    dsc_model_synthetic t, d, m;
    dsc_loop loop;
    dsc_arena arena;
} bench;

static void bench_init(bench *b)
{
    dsc_error err = {0};
    *b = (bench){0};
    dsc_markov_options o = {.vocab_size = TEXT_VOCAB, .seed = 3, .noise = 1.5};
    assert_ok(dsc_markov_new(&b->target, &o, DSC_SIDE_TARGET, &err), err);
    assert_ok(dsc_markov_new(&b->draft, &o, DSC_SIDE_DRAFT, &err), err);
    o.noise = 0.6;
    assert_ok(dsc_markov_new(&b->middle, &o, DSC_SIDE_DRAFT, &err), err);
}

static void bench_fini(bench *b)
{
    dsc_model_synthetic_fini(&b->t);
    dsc_model_synthetic_fini(&b->d);
    dsc_model_synthetic_fini(&b->m);
    dsc_loop_fini(&b->loop);
    dsc_arena_fini(&b->arena);
    dsc_language_free(b->target);
    dsc_language_free(b->draft);
    dsc_language_free(b->middle);
}

// Runs request r and returns the number of its output.
static int run_request(bench *b, const dsc_config *c, const dsc_verifier_type *rule,
                       dsc_draft_kind kind, int64_t r, double temperature, dsc_counts *counts)
{
    dsc_error err = {0};
    dsc_token_view prompt = {text_prompt, TEXT_PROMPT};
    const dsc_language *draft = c->drafter->sees_output ? b->target : b->draft;
    dsc_request q = {.index = r, .prompt = prompt};
    assert_ok(dsc_model_synthetic_begin(&b->t, b->target, prompt, TEXT_TOKENS, temperature, &err),
              err);
    assert_ok(dsc_model_synthetic_begin(&b->d, draft, prompt, TEXT_TOKENS, temperature, &err), err);
    if (c->drafter->needs_marginals)
        assert_ok(dsc_model_synthetic_parallel(&b->d, &err), err);
    assert_ok(dsc_model_synthetic_begin(&b->m, b->middle, prompt, TEXT_TOKENS, temperature, &err),
              err);
    dsc_models models = {&b->t.base, &b->d.base, &b->m.base};
    dsc_arena_reset(&b->arena);
    dsc_loop_input in = {.config = c,
                         .rule = rule,
                         .kind = kind,
                         .models = &models,
                         .request = &q,
                         .seed = 5,
                         .arena = &b->arena};
    assert_ok(dsc_loop_run(&b->loop, &in, counts, &err), err);
    assert_int_equal(b->t.base.length, TEXT_TOKENS);
    return text_of(&b->t.base);
}

static void lossless_rules_emit_the_target_distribution(void **state)
{
    (void)state;
    bench b;
    double dist[TEXTS];
    int pairs = 0;
    bench_init(&b);
    dist_of_texts(&b.t, b.target, dist);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            dsc_draft_kind made;
            dsc_config c;
            if (!(*v)->lossless || (*v)->greedy || !fits_models(*d, *v, true, &made))
                continue;
            int64_t count[TEXTS] = {0}, histogram[ROOM];
            dsc_counts counts = zero_counts(histogram, ROOM - 1);
            short_config(&c, *d);
            for (int64_t r = 0; r < requests; r++)
                count[run_request(&b, &c, *v, made, r, 1, &counts)]++;
            int degrees;
            double x = pearson(count, dist, TEXTS, requests, &degrees);
            if (!(x <= degrees + 5 * sqrt(2 * degrees)))
                fail_msg("%s with %s: chi-square %.1f of %d degrees of freedom", (*d)->name,
                         (*v)->name, x, degrees);
            assert_int_equal(counts.output_tokens, (int64_t)requests * TEXT_TOKENS);
            dsc_config_fini(&c);
            pairs++;
        }
    assert_true(pairs >= 13);
    bench_fini(&b);
}

// The test must be able to detect a wrong distribution: typical acceptance is far off.
static void a_lossy_rule_does_not(void **state)
{
    (void)state;
    bench b;
    double dist[TEXTS];
    int64_t count[TEXTS] = {0}, histogram[ROOM];
    dsc_counts counts = zero_counts(histogram, ROOM - 1);
    dsc_config c;
    int degrees;
    bench_init(&b);
    dist_of_texts(&b.t, b.target, dist);
    short_config(&c, &dsc_drafter_draft_model);
    for (int64_t r = 0; r < requests; r++)
        count[run_request(&b, &c, &dsc_verifier_typical, DSC_DRAFT_SAMPLED, r, 1, &counts)]++;
    assert_true(pearson(count, dist, TEXTS, requests, &degrees) > requests / 20);
    dsc_config_fini(&c);
    bench_fini(&b);
}

static void greedy_targets_emit_the_target_output(void **state)
{
    (void)state;
    bench b;
    int64_t histogram[ROOM];
    dsc_config none;
    bench_init(&b);
    short_config(&none, &dsc_drafter_none);
    dsc_counts counts = zero_counts(histogram, ROOM - 1);
    int alone = run_request(&b, &none, &dsc_verifier_greedy, DSC_DRAFT_TOPK, 0, 0, &counts);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            dsc_draft_kind made;
            dsc_config c;
            if (!(*v)->lossless || !fits_models(*d, *v, true, &made))
                continue;
            short_config(&c, *d);
            for (int64_t r = 0; r < 20; r++) // at temperature 0 every distribution is of one token
                assert_int_equal(run_request(&b, &c, *v, made, r, 0, &counts), alone);
            dsc_config_fini(&c);
        }
    bench_fini(&b);
}

// Rules in the order of the theory, on the same uniforms as far as they can share them.
static void better_rules_accept_more(void **state)
{
    (void)state;
    static const dsc_verifier_type *const order[] = {&dsc_verifier_specinfer, &dsc_verifier_kseq,
                                                     &dsc_verifier_otm};
    bench b;
    double before = 0;
    bench_init(&b);
    for (int i = 0; i < 3; i++) {
        dsc_config c;
        int64_t histogram[ROOM];
        dsc_counts counts = zero_counts(histogram, ROOM - 1);
        short_config(&c, &dsc_drafter_spectr);
        for (int64_t r = 0; r < requests; r++)
            run_request(&b, &c, order[i], DSC_DRAFT_SAMPLED, r, 1, &counts);
        double rate = dsc_block_efficiency(&counts);
        if (!(rate > before))
            fail_msg("%s: %.4f tokens a call, the rule before it %.4f", order[i]->name, rate,
                     before);
        before = rate;
        dsc_config_fini(&c);
    }
    bench_fini(&b);
}

SUITE(rules)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless_rules_emit_the_target_distribution),
        cmocka_unit_test(a_lossy_rule_does_not),
        cmocka_unit_test(greedy_targets_emit_the_target_output),
        cmocka_unit_test(better_rules_accept_more),
    };
    requests =
        few_or_many(10000, requests); // with fewer, chi-square would depend on the rarest texts
    return cmocka_run_group_tests(tests, NULL, NULL);
}
