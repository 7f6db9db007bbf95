// SPDX-License-Identifier: Apache-2.0
// A pair of languages, a target and a draft model, and one request of them through the loop.
#ifndef DSC_TESTS_PAIR_FIXTURE_H
#define DSC_TESTS_PAIR_FIXTURE_H

#include "model_fixture.h"
#include "tests/zero_counts.h"

#include "sim/loop.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_synthetic.h"

enum { RUN_HISTOGRAM = 256 };

typedef struct bench {
    dsc_language *target, *draft;
    dsc_model_synthetic t, d;
    dsc_loop loop;
    dsc_arena arena;
    dsc_counts counts;
    int64_t histogram[RUN_HISTOGRAM];
} bench;

static inline void bench_clear(bench *b)
{
    b->counts = zero_counts(b->histogram, RUN_HISTOGRAM - 1);
}

static inline bench *bench_new(dsc_language *target, dsc_language *draft)
{
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->target = target;
    b->draft = draft;
    bench_clear(b);
    return b;
}

static inline void bench_free(bench *b)
{
    dsc_model_synthetic_fini(&b->t);
    dsc_model_synthetic_fini(&b->d);
    dsc_loop_fini(&b->loop);
    dsc_arena_fini(&b->arena);
    dsc_language_free(b->target);
    dsc_language_free(b->draft);
    free(b);
}

// The defaults of a method but for the options in `set`: name, value, ..., NULL.
static inline dsc_config config_of(const dsc_drafter_type *d, const char *const *set)
{
    dsc_error err = {0};
    dsc_config c;
    dsc_config_init(&c, d);
    for (; set && *set; set += 2)
        assert_ok(dsc_config_set(&c, set[0], set[1], &err), err);
    return c;
}

// Adds to b->counts; the output is b->t.base.output.
static inline void run_one(bench *b, const dsc_config *c, const dsc_verifier_type *rule,
                           dsc_token_view prompt, int64_t r, int64_t tokens, double temperature,
                           dsc_history *history)
{
    dsc_error err = {0};
    dsc_request q = {.index = r, .prompt = prompt};
    assert_ok(dsc_model_synthetic_begin(&b->t, b->target, prompt, tokens, temperature, &err), err);
    assert_ok(dsc_model_synthetic_begin(&b->d, b->draft, prompt, tokens, temperature, &err), err);
    dsc_models models = {&b->t.base, &b->d.base, NULL};
    dsc_arena_reset(&b->arena);
    dsc_loop_input in = {.config = c,
                         .rule = rule,
                         .kind = DSC_DRAFT_TOPK,
                         .models = &models,
                         .request = &q,
                         .seed = 5,
                         .arena = &b->arena,
                         .history = history};
    assert_ok(dsc_loop_run(&b->loop, &in, &b->counts, &err), err);
}

// The greedy output of a configuration is the target's own, on pairs of 2 to 13 tokens.
static inline void check_outputs(const dsc_config *config)
{
    const dsc_config none = config_of(&dsc_drafter_none, NULL);
    dsc_error err = {0};
    for (uint64_t seed = 0; seed < 12; seed++) {
        dsc_markov_options o = {.vocab_size = 2 + (int32_t)seed, .seed = seed, .noise = 1};
        dsc_language *target, *draft;
        assert_ok(dsc_markov_new(&target, &o, DSC_SIDE_TARGET, &err), err);
        assert_ok(dsc_markov_new(&draft, &o, DSC_SIDE_DRAFT, &err), err);
        bench *b = bench_new(target, draft);
        static const int32_t words[] = {1, 0, 1, 1, 0};
        const dsc_token_view prompt = {words, seed % 3 ? 5 : 0}; // empty ones too
        int32_t alone[50];
        run_one(b, &none, &dsc_verifier_greedy, prompt, 0, 50, 0, NULL);
        memcpy(alone, b->t.base.output, sizeof alone);
        run_one(b, config, seed % 2 ? &dsc_verifier_greedy : &dsc_verifier_specinfer, prompt, 0, 50,
                0, NULL);
        assert_memory_equal(b->t.base.output, alone, sizeof alone);
        bench_free(b);
    }
}

#endif
