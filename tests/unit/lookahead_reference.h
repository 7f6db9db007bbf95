// SPDX-License-Identifier: Apache-2.0
// Lookahead decoding and Ouroboros a second time, written down as they are described and without
// any care for speed: whole texts instead of trees, one list of phrases in the order of their age,
// a list of tokens for each level of the window. Greedy only. Also what the tests share: a pair of
// n-gram languages and one request through the loop.
#ifndef DSC_TESTS_LOOKAHEAD_REFERENCE_H
#define DSC_TESTS_LOOKAHEAD_REFERENCE_H

#include "model_fixture.h"
#include "tests/zero_counts.h"

#include "base/rng.h"
#include "sim/loop.h"
#include "sim/model/model_markov.h"
#include "sim/model/model_synthetic.h"

enum { REF_TEXT = 4096, REF_WIDE = 64, REF_DEEP = 16, REF_PHRASES = 1 << 15, REF_LIST = 64 };

typedef struct ref_text {
    int32_t token[REF_TEXT];
    int n;
} ref_text;

static inline int32_t say(const dsc_language *l, const ref_text *t)
{
    dsc_place at = {t->token, (size_t)t->n, t->n, 0, 0};
    return l->type->best(l, &at);
}

static inline void put(ref_text *t, int32_t token)
{
    assert_true(t->n < REF_TEXT);
    t->token[t->n++] = token;
}

// --- phrases: the older, the further in front ----------------------------------------------------

typedef struct ref_pool {
    int length, most, count;
    struct {
        int32_t key, token[REF_DEEP];
    } phrase[REF_PHRASES];
} ref_pool;

static inline int ref_find(const ref_pool *p, int32_t key, int at[REF_LIST])
{
    int n = 0;
    for (int i = 0; i < p->count; i++)
        if (p->phrase[i].key == key)
            at[n++] = i;
    return n;
}

static inline void ref_add(ref_pool *p, int32_t key, const int32_t *token)
{
    size_t bytes = (size_t)p->length * sizeof *token;
    int at[REF_LIST], n = ref_find(p, key, at), leaves = n && n == p->most ? at[0] : -1;
    for (int i = n - 1; i >= 0; i--)
        if (!memcmp(p->phrase[at[i]].token, token, bytes))
            leaves = at[i];
    if (!p->most)
        return;
    if (leaves >= 0) {
        p->count--;
        memmove(&p->phrase[leaves], &p->phrase[leaves + 1],
                (size_t)(p->count - leaves) * sizeof *p->phrase);
    }
    assert_true(p->count < REF_PHRASES);
    p->phrase[p->count].key = key;
    memcpy(p->phrase[p->count++].token, token, bytes);
}

// --- the window: past[l] is level l --------------------------------------------------------------

typedef struct ref_window {
    int width, level, filled, count[REF_DEEP];
    int32_t past[REF_DEEP][REF_WIDE];
} ref_window;

static inline void ref_begin(ref_window *w, int width, int level, const dsc_drafter_input *in)
{
    *w = (ref_window){.width = width, .level = level};
    w->count[0] = width + level - 3;
    for (int i = 0; i < w->count[0]; i++)
        w->past[0][i] = in->request->prompt.id[(int)(dsc_draft_uniform(in, 0, (uint32_t)i) *
                                                     (double)in->request->prompt.count)];
}

static inline int ref_nodes(const ref_window *w)
{
    int n = 0;
    for (int l = 0; l <= w->filled; l++)
        n += w->count[l];
    return n;
}

static inline bool ref_full(const ref_window *w)
{
    return w->filled == w->level - 2;
}

static inline void ref_drop_first(ref_window *w, int l)
{
    w->count[l]--;
    memmove(w->past[l], w->past[l] + 1, (size_t)w->count[l] * sizeof **w->past);
}

// One pass over `text`, whose last token is the current one.
static inline void ref_step(ref_window *w, const dsc_language *l, const ref_text *text,
                            ref_pool *pool)
{
    int32_t argmax[REF_WIDE], current = text->n ? text->token[text->n - 1] : -1;
    int lines = w->filled ? w->count[w->filled] : w->count[0] + 1, last = w->filled + 1;
    for (int i = 0; i < lines; i++) {
        ref_text t = *text;
        for (int j = 0; j < i; j++)
            put(&t, w->past[0][j]);
        for (int k = 1; k <= w->filled; k++)
            put(&t, w->past[k][i]);
        argmax[i] = say(l, &t);
    }
    if (!ref_full(w)) {
        for (int k = 0; k <= w->filled; k++)
            ref_drop_first(w, k);
        w->filled++;
        w->count[last] = lines - 1;
        memcpy(w->past[last], argmax + 1, (size_t)(lines - 1) * sizeof *argmax);
        return;
    }
    for (int i = 0; i < w->width; i++) {
        int32_t phrase[REF_DEEP];
        for (int k = 1; k <= w->filled; k++)
            phrase[k - 1] = w->past[k][i];
        phrase[w->filled] = argmax[i];
        ref_add(pool, i ? w->past[0][i - 1] : current, phrase);
    }
    memcpy(w->past[last], argmax, (size_t)w->width * sizeof *argmax);
    for (int k = 0; k <= w->filled; k++)
        memcpy(w->past[k], w->past[k + 1], sizeof w->past[k]);
    memmove(w->past[0], w->past[0] + 1, sizeof w->past[0] - sizeof **w->past);
}

// Returns the number of tokens of a phrase, at most `most`, that are argmax tokens of l; these and
// the next one are written to argmax[].
static inline int ref_follow(const dsc_language *l, const ref_text *text, const int32_t *phrase,
                             int most, int32_t *argmax)
{
    ref_text t = *text;
    for (int n = 0;; n++) {
        argmax[n] = say(l, &t);
        if (n == most || phrase[n] != argmax[n])
            return n;
        put(&t, phrase[n]);
    }
}

// --- one request through the loop ----------------------------------------------------------------

enum { RUN_HISTOGRAM = 256, RUN_WIDTH = 2048 };

typedef struct bench {
    dsc_language *target, *draft;
    dsc_model_synthetic t, d;
    dsc_loop loop;
    dsc_arena arena;
    dsc_counts counts;
    int64_t histogram[RUN_HISTOGRAM], width[RUN_WIDTH];
} bench;

static inline void bench_clear(bench *b)
{
    b->counts = zero_counts(b->histogram, RUN_HISTOGRAM - 1);
    memset(b->width, 0, sizeof b->width);
    b->counts.width = b->width;
    b->counts.width_length = RUN_WIDTH;
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

// Sentences of few words, so that n-grams come again; a byte is a token.
static inline const char *write_corpus(uint64_t seed)
{
    static const char *const word[] = {"the ", "cat ", "sat ", "on ",  "a ",   "mat ", "and ",
                                       "ran ", "to ",  "one ", "two ", "dog ", "had ", "it. "};
    static char text[200000];
    size_t at = 0;
    uint32_t w = 0;
    for (uint32_t line = 0; line < 200; line++) {
        for (uint32_t i = 0; i < 30; i++) {
            double u = dsc_rng_uniform(seed, line, i, 77);
            w = (w * 5 + (uint32_t)(u * u * 5)) % (sizeof word / sizeof *word);
            at += (size_t)snprintf(text + at, sizeof text - at, "%s", word[w]);
        }
        text[at++] = '\n';
    }
    text[at] = 0;
    const char *path = in_scratch("corpus.txt");
    put_text(path, text);
    return path;
}

static inline bench *ngram_bench(uint64_t seed, int target_order, int draft_order)
{
    char spec[500];
    const char *path = write_corpus(seed);
    snprintf(spec, sizeof spec, "ngram:%s,order=%d", path, target_order);
    dsc_language *target = make(spec, DSC_SIDE_TARGET);
    snprintf(spec, sizeof spec, "ngram:%s,order=%d", path, draft_order);
    return bench_new(target, make(spec, DSC_SIDE_DRAFT));
}

static inline dsc_token_view bench_prompt(const bench *b, int64_t r, int64_t tokens)
{
    dsc_token_view prompt = b->target->type->text(b->target, r);
    assert_true(prompt.count > tokens);
    prompt.count = tokens;
    return prompt;
}

static inline void same_counts(const int64_t *ours, const int64_t *theirs, int n, const char *what,
                               const char *setting)
{
    for (int i = 0; i < n; i++)
        if (ours[i] != theirs[i])
            fail_msg("%s: %s[%d] is %lld, not %lld", setting, what, i, (long long)ours[i],
                     (long long)theirs[i]);
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
