// SPDX-License-Identifier: Apache-2.0
// The loop allocates no memory from the system: it uses the request's arena and the thread's
// scratch, which a first pass over the same requests has grown. A replacement of malloc counts the
// calls.
#include "tests/default_config.h"
#include "tests/zero_counts.h"

#include "sim/loop.h"
#include "sim/model/model_spec.h"
#include "sim/model/model_synthetic.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define COUNTED 0
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTED 0
#endif
#endif
#if !defined COUNTED && defined __GLIBC__
#define COUNTED 1
#elif !defined COUNTED
#define COUNTED 0
#endif

static _Atomic long taken;

#if COUNTED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size)
{
    atomic_fetch_add(&taken, 1);
    return __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    atomic_fetch_add(&taken, 1);
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t size)
{
    atomic_fetch_add(&taken, 1);
    return __libc_realloc(p, size);
}
#endif

enum { TOKENS = 48, REQUESTS = 3, ROOM = 1 << 16 };

typedef struct bench {
    dsc_language *target, *draft, *middle;
    dsc_model_synthetic t, d, m;
    dsc_loop loop;
    dsc_arena arena;
} bench;

static void run(bench *b, const dsc_config *c, const dsc_verifier_type *rule, dsc_draft_kind kind)
{
    static int64_t histogram[ROOM], width[ROOM], parallel_steps[ROOM];
    static const int32_t words[] = {1, 2, 3, 1, 2, 4, 1, 2, 3, 5, 6, 1, 2};
    const dsc_token_view prompt = {words, 13};
    const dsc_language *draft = c->drafter->sees_output ? b->target : b->draft;
    dsc_error err = {0};
    for (int64_t r = 0; r < REQUESTS; r++) {
        dsc_request q = {.index = r, .prompt = prompt};
        dsc_counts counts = zero_counts(histogram, TOKENS);
        counts.width = width;
        counts.width_length = ROOM;
        counts.parallel_steps = c->drafter->parallel ? parallel_steps : NULL;
        counts.parallel_length = c->drafter->parallel ? dsc_config_width(c) : 0;
        assert_ok(dsc_model_synthetic_begin(&b->t, b->target, prompt, TOKENS, 1, &err), err);
        assert_ok(dsc_model_synthetic_begin(&b->d, draft, prompt, TOKENS, 1, &err), err);
        if (c->drafter->needs_marginals)
            assert_ok(dsc_model_synthetic_parallel(&b->d, &err), err);
        assert_ok(dsc_model_synthetic_begin(&b->m, b->middle, prompt, TOKENS, 1, &err), err);
        const dsc_models models = {&b->t.base, &b->d.base, &b->m.base};
        dsc_arena_reset(&b->arena);
        const dsc_loop_input in = {.config = c,
                                   .rule = rule,
                                   .kind = kind,
                                   .models = &models,
                                   .request = &q,
                                   .seed = 5,
                                   .arena = &b->arena};
        assert_ok(dsc_loop_run(&b->loop, &in, &counts, &err), err);
        assert_int_equal(b->t.base.length, TOKENS);
    }
}

static void none_in_the_loop(void **state)
{
    (void)state;
    if (!COUNTED)
        skip();
    dsc_error err = {0};
    int pairs = 0;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            const dsc_fit all = {
                .draft = true, .middle = true, .marginals = true, .dists = true, .off_path = true};
            dsc_draft_kind kind;
            dsc_config c;
            bench b = {0};
            if (dsc_draft_kind_for(&kind, *d, *v, &all, &err))
                continue;
            assert_ok(dsc_language_make(&b.target, "markov:12,seed=4", DSC_SIDE_TARGET, NULL, &err),
                      err);
            assert_ok(dsc_language_make(&b.draft, "markov:12,seed=4", DSC_SIDE_DRAFT, NULL, &err),
                      err);
            assert_ok(dsc_language_make(&b.middle, "markov:12,seed=4,noise=0.2", DSC_SIDE_DRAFT,
                                        NULL, &err),
                      err);
            default_config(&c, *d);
            assert_ok(dsc_config_prepare(&c, &err), err);
            run(&b, &c, *v, kind);
            long before = atomic_load(&taken);
            assert_true(before > 0); // the counter works
            run(&b, &c, *v, kind);
            if (atomic_load(&taken) != before)
                fail_msg("%s with %s: %ld allocations in %d requests", (*d)->name, (*v)->name,
                         atomic_load(&taken) - before, REQUESTS);
            pairs++;
            dsc_config_fini(&c);
            dsc_model_synthetic_fini(&b.t);
            dsc_model_synthetic_fini(&b.d);
            dsc_model_synthetic_fini(&b.m);
            dsc_loop_fini(&b.loop);
            dsc_arena_fini(&b.arena);
            dsc_language_free(b.target);
            dsc_language_free(b.draft);
            dsc_language_free(b.middle);
        }
    assert_true(pairs > 30);
}

SUITE(allocations)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(none_in_the_loop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
