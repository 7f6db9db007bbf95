// SPDX-License-Identifier: Apache-2.0
// Tiny random models on a device, for running methods and rules.
#ifndef DSC_TESTS_LIVE_BENCH_H
#define DSC_TESTS_LIVE_BENCH_H

#include "tests/default_config.h"

#include "live/session/session.h"

enum { NODES = 1024, BENCH_PROMPT = 64 }; // tokens of a prompt, at most
enum {
    TARGET,
    DRAFT,
    MIDDLE,
    COPY,
    MODELS
}; // COPY: the target in a second session, for methods that draft with it

typedef struct bench {
    live_backend *b[MODELS];
    live_weights *w[MODELS];
    live_session *s[MODELS];
    dsc_loop loop;
    dsc_arena arena;
    int64_t prompt, limit;
} bench;

static inline live_config tiny(int64_t vocab, int64_t layers)
{
    return (live_config){.family = LIVE_LLAMA,
                         .model_type = "llama",
                         .layers = layers,
                         .hidden = 16,
                         .feed_forward = 24,
                         .heads = 2,
                         .kv_heads = 1,
                         .head = 8,
                         .vocab = vocab,
                         .positions = 256,
                         .dtype = DSC_F32,
                         .norm = LIVE_RMS_NORM,
                         .norm_epsilon = 1e-5,
                         .activation = LIVE_SILU_GATE,
                         .rotated = 8,
                         .rope_theta = 10000,
                         .begin = -1,
                         .normed = true};
}

static inline void bench_init(bench *b, const char *device, int64_t vocab, int64_t prompt,
                              int64_t limit, int64_t context)
{
    static const uint64_t seed[MODELS] = {1, 2, 3, 1};
    dsc_error err;
    *b = (bench){.prompt = prompt, .limit = limit};
    for (int m = 0; m < MODELS; m++) {
        const live_config c = tiny(vocab, m == DRAFT ? 1 : 2);
        assert_ok(live_backend_open(&b->b[m], device, 1, false, &err), err);
        assert_ok(live_weights_random(&b->w[m], &c, DSC_F32, seed[m], b->b[m], &err), err);
        assert_ok(live_session_new(&b->s[m], b->w[m], NULL, context, NODES, &err), err);
    }
}

static inline void bench_fini(bench *b)
{
    for (int m = 0; m < MODELS; m++) {
        live_session_free(b->s[m]);
        live_weights_free(b->w[m]);
        b->b[m]->type->close(b->b[m]);
    }
    dsc_loop_fini(&b->loop);
    dsc_arena_fini(&b->arena);
}

static inline void bench_begin(bench *b, int m, int64_t which, const live_sampling *how)
{
    int32_t words[BENCH_PROMPT];
    dsc_error err;
    for (int64_t i = 0; i < b->prompt; i++)
        words[i] = (int32_t)((i * i + which * (i + 1) + i / 3) % b->w[m]->config.vocab);
    const dsc_token_view prompt = {words, b->prompt};
    assert_ok(live_session_begin(b->s[m], prompt, b->limit, how, &err), err);
}

// Runs request r after prompt `which`; the output is valid in the target until it begins again.
static inline const int32_t *bench_run(bench *b, const dsc_config *c, const dsc_verifier_type *rule,
                                       dsc_draft_kind kind, int64_t r, int64_t which,
                                       const live_sampling *how, dsc_counts *counts)
{
    dsc_error err;
    const int draft = c->drafter->sees_output ? COPY : DRAFT;
    int32_t words[BENCH_PROMPT];
    for (int64_t i = 0; i < b->prompt; i++)
        words[i] = (int32_t)((i * i + which * (i + 1) + i / 3) % b->w[TARGET]->config.vocab);
    const dsc_request q = {.index = r, .prompt = {words, b->prompt}};
    bench_begin(b, TARGET, which, how);
    bench_begin(b, draft, which, how);
    bench_begin(b, MIDDLE, which, how);
    const dsc_models models = {live_session_model(b->s[TARGET]), live_session_model(b->s[draft]),
                               live_session_model(b->s[MIDDLE])};
    dsc_arena_reset(&b->arena);
    dsc_loop_input in = {.config = c,
                         .rule = rule,
                         .kind = kind,
                         .models = &models,
                         .request = &q,
                         .seed = 5,
                         .arena = &b->arena};
    assert_ok(dsc_loop_run(&b->loop, &in, counts, &err), err);
    assert_int_equal(models.target->length, b->limit);
    return models.target->output;
}

#endif
