// SPDX-License-Identifier: Apache-2.0
// Every method with every rule that fits it, run by the engine on tiny random models: lossless
// rules emit the target's law, and greedy ones what the target alone would say. New methods and
// rules are covered by being in their lists. test_live_rules [--device cpu|cuda[:i]]
#include "tests/default_config.h"

#include "live/session.h"

#include <gsl/gsl_cdf.h>
#include <string.h>

enum { VOCAB = 3, TOKENS = 3, TEXTS = 27, PROMPT = 4, CONTEXT = 16, NODES = 1024, REQUESTS = 700 };
enum { LONG = 40, LONG_CONTEXT = 128, LONG_VOCAB = 16, PROMPTS = 6 };
enum { TARGET, DRAFT, MIDDLE, COPY, MODELS }; // COPY: the target again, for methods that know it

static const char *device = "cpu";

typedef struct bench {
    live_backend *b[MODELS];
    live_weights *w[MODELS];
    live_session *s[MODELS];
    dsc_loop loop;
    dsc_arena arena;
    int64_t prompt, limit;
} bench;

static live_config tiny(int64_t vocab, int64_t layers)
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

static void bench_init(bench *b, int64_t vocab, int64_t prompt, int64_t limit, int64_t context)
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

static void bench_fini(bench *b)
{
    for (int m = 0; m < MODELS; m++) {
        live_session_free(b->s[m]);
        live_weights_free(b->w[m]);
        b->b[m]->type->close(b->b[m]);
    }
    dsc_loop_fini(&b->loop);
    dsc_arena_fini(&b->arena);
}

static void begin(bench *b, int m, int64_t which, double temperature)
{
    int32_t words[LONG];
    dsc_error err;
    const live_sampling how = {temperature, 0, 1};
    for (int64_t i = 0; i < b->prompt; i++)
        words[i] = (int32_t)((i * i + which * (i + 1) + i / 3) % b->w[m]->config.vocab);
    const dsc_token_view prompt = {words, b->prompt};
    assert_ok(live_session_begin(b->s[m], prompt, b->limit, &how, &err), err);
}

// Runs request r behind prompt `which`; the output is the target's until it begins again.
static const int32_t *run_request(bench *b, const dsc_config *c, const dsc_verifier_type *rule,
                                  dsc_draft_law law, int64_t r, int64_t which, double temperature,
                                  dsc_counts *counts)
{
    dsc_error err;
    const int draft = c->drafter->sees_output ? COPY : DRAFT;
    int32_t words[LONG];
    for (int64_t i = 0; i < b->prompt; i++)
        words[i] = (int32_t)((i * i + which * (i + 1) + i / 3) % b->w[TARGET]->config.vocab);
    const dsc_request q = {.index = r, .prompt = {words, b->prompt}};
    begin(b, TARGET, which, temperature);
    begin(b, draft, which, temperature);
    begin(b, MIDDLE, which, temperature);
    const dsc_models models = {live_session_model(b->s[TARGET]), live_session_model(b->s[draft]),
                               live_session_model(b->s[MIDDLE])};
    dsc_arena_reset(&b->arena);
    dsc_loop_input in = {c, rule, law, &models, &q, 5, &b->arena, NULL, NULL, NULL};
    assert_ok(dsc_loop_run(&b->loop, &in, counts, &err), err);
    assert_int_equal(models.target->length, b->limit);
    return models.target->output;
}

static int number_of(const int32_t *output)
{
    int text = 0;
    for (int j = 0; j < TOKENS; j++)
        text = text * VOCAB + output[j];
    return text;
}

// The target's law of whole outputs, one token after the other.
static void law_of_texts(bench *b, double law[TEXTS])
{
    const dsc_draft none = {0};
    for (int text = 0; text < TEXTS; text++) {
        dsc_error err;
        begin(b, TARGET, 0, 1);
        dsc_model *m = live_session_model(b->s[TARGET]);
        law[text] = 1;
        for (int j = 0, scale = TEXTS / VOCAB; j < TOKENS; j++, scale /= VOCAB) {
            const int32_t token = text / scale % VOCAB;
            dsc_dist d;
            assert_ok(m->type->score(m, &none, &err), err);
            assert_ok(m->type->law(m, -1, &d, &err), err);
            law[text] *= dsc_dist_probability(&d, token);
            assert_ok(m->type->commit(m, &token, 1, &err), err);
        }
    }
}

// The chance that some sound pair fails is below 1e-6: there are fewer than 100.
static const double alarm_rate = 1e-8;

static double chance(bench *b, const dsc_config *c, const dsc_verifier_type *rule,
                     dsc_draft_law made, const double *law)
{
    int64_t count[TEXTS] = {0}, histogram[NODES + 1];
    dsc_counts counts = dsc_counts_zero(histogram, NODES);
    int degrees;
    for (int64_t r = 0; r < REQUESTS; r++)
        count[number_of(run_request(b, c, rule, made, r, 0, 1, &counts))]++;
    const double x = pearson(count, law, TEXTS, REQUESTS, &degrees);
    return gsl_cdf_chisq_Q(x, degrees);
}

static void lossless_rules_emit_the_targets_law(void **state)
{
    (void)state;
    bench b;
    double law[TEXTS];
    int pairs = 0;
    bench_init(&b, VOCAB, PROMPT, TOKENS, CONTEXT);
    law_of_texts(&b, law);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            dsc_draft_law made;
            dsc_config c;
            if (!(*v)->lossless || (*v)->greedy || !fits(*d, *v, &made))
                continue;
            short_config(&c, *d);
            const double p = chance(&b, &c, *v, made, law);
            if (!(p > alarm_rate))
                fail_msg("%s with %s: a chance of %.3g", (*d)->name, (*v)->name, p);
            dsc_config_fini(&c);
            pairs++;
        }
    assert_true(pairs >= 13);
    bench_fini(&b);
}

// A test that could not see a wrong law would be none: typical acceptance is far off.
static void a_lossy_rule_does_not(void **state)
{
    (void)state;
    bench b;
    double law[TEXTS];
    dsc_config c;
    bench_init(&b, VOCAB, PROMPT, TOKENS, CONTEXT);
    law_of_texts(&b, law);
    short_config(&c, &dsc_drafter_chain);
    assert_true(chance(&b, &c, &dsc_verifier_typical, DSC_DRAFT_IID, law) < alarm_rate);
    dsc_config_fini(&c);
    bench_fini(&b);
}

static void greedy_output_is_that_of_plain_decoding(void **state)
{
    (void)state;
    bench b;
    dsc_config none;
    int64_t histogram[NODES + 1], accepted = 0;
    int32_t alone[PROMPTS][LONG];
    dsc_counts counts = dsc_counts_zero(histogram, NODES);
    bench_init(&b, LONG_VOCAB, 2 * PROMPT, LONG, LONG_CONTEXT);
    default_config(&none, &dsc_drafter_none);
    for (int64_t p = 0; p < PROMPTS; p++)
        memcpy(alone[p],
               run_request(&b, &none, &dsc_verifier_greedy, DSC_DRAFT_CHOSEN, p, p, 0, &counts),
               sizeof alone[p]);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            dsc_error err;
            dsc_draft_law made;
            dsc_config c;
            if (!(*v)->lossless || !fits(*d, *v, &made))
                continue;
            default_config(&c, *d);
            assert_ok(dsc_config_prepare(&c, &err), err);
            counts = dsc_counts_zero(histogram, NODES);
            for (int64_t p = 0; p < PROMPTS; p++) {
                const int32_t *got = run_request(&b, &c, *v, made, p, p, 0, &counts);
                for (int64_t i = 0; i < LONG; i++)
                    if (got[i] != alone[p][i])
                        fail_msg("%s with %s: token %ld of text %ld is %d and not %d", (*d)->name,
                                 (*v)->name, (long)i, (long)p, got[i], alone[p][i]);
            }
            accepted += counts.num_accepted_tokens;
            dsc_config_fini(&c);
        }
    assert_true(accepted > 0);
    bench_fini(&b);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--device"))
        device = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless_rules_emit_the_targets_law),
        cmocka_unit_test(a_lossy_rule_does_not),
        cmocka_unit_test(greedy_output_is_that_of_plain_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
