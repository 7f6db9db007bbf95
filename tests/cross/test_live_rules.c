// SPDX-License-Identifier: Apache-2.0
// Every method with every rule that fits it, run by the engine on tiny random models: lossless
// rules emit the target's distribution, and greedy rules the target's argmax. New methods and rules
// are covered by being listed.
#include "tests/cross/device.h"
#include "tests/cross/live_bench.h"
#include "tests/zero_counts.h"

#include <gsl/gsl_cdf.h>
#include <string.h>

enum { VOCAB = 3, TOKENS = 3, TEXTS = 27, PROMPT = 4, CONTEXT = 16, REQUESTS = 700 };
enum { LONG = 40, LONG_CONTEXT = 128, LONG_VOCAB = 16, PROMPTS = 6 };
static const char *device;
static const live_sampling plain = {1, 0, 1}, greedy = {0, 0, 1};

static int number_of(const int32_t *output)
{
    int text = 0;
    for (int j = 0; j < TOKENS; j++)
        text = text * VOCAB + output[j];
    return text;
}

// The target's distribution of complete outputs, token by token.
static void dist_of_texts(bench *b, double dist[TEXTS])
{
    const dsc_draft none = {0};
    for (int text = 0; text < TEXTS; text++) {
        dsc_error err;
        bench_begin(b, TARGET, 0, &plain);
        dsc_model *m = live_session_model(b->s[TARGET]);
        dist[text] = 1;
        for (int j = 0, scale = TEXTS / VOCAB; j < TOKENS; j++, scale /= VOCAB) {
            const int32_t token = text / scale % VOCAB;
            dsc_dist d;
            assert_ok(m->type->score(m, &none, &err), err);
            assert_ok(m->type->dist(m, -1, &d, &err), err);
            dist[text] *= dsc_dist_probability(&d, token);
            assert_ok(m->type->commit(m, &token, 1, &err), err);
        }
    }
}

// The chance that some sound pair fails is below 1e-6: there are fewer than 100.
static const double alarm_rate = 1e-8;

static double chance(bench *b, const dsc_config *c, const dsc_verifier_type *rule,
                     dsc_draft_kind made, const double *dist)
{
    int64_t count[TEXTS] = {0}, histogram[NODES + 1];
    dsc_counts counts = zero_counts(histogram, NODES);
    int degrees;
    for (int64_t r = 0; r < REQUESTS; r++)
        count[number_of(bench_run(b, c, rule, made, r, 0, &plain, &counts))]++;
    const double x = pearson(count, dist, TEXTS, REQUESTS, &degrees);
    return gsl_cdf_chisq_Q(x, degrees);
}

static void lossless_rules_emit_the_targets_dist(void **state)
{
    (void)state;
    bench b;
    double dist[TEXTS];
    int pairs = 0;
    bench_init(&b, device, VOCAB, PROMPT, TOKENS, CONTEXT);
    dist_of_texts(&b, dist);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            dsc_draft_kind made;
            dsc_config c;
            if (!(*v)->lossless || (*v)->greedy || !fits(*d, *v, &made))
                continue;
            short_config(&c, *d);
            const double p = chance(&b, &c, *v, made, dist);
            if (!(p > alarm_rate))
                fail_msg("%s with %s: a chance of %.3g", (*d)->name, (*v)->name, p);
            dsc_config_fini(&c);
            pairs++;
        }
    assert_true(pairs >= 13);
    bench_fini(&b);
}

// The test must be able to fail: typical acceptance is far from the target's distribution.
static void a_lossy_rule_does_not(void **state)
{
    (void)state;
    bench b;
    double dist[TEXTS];
    dsc_config c;
    bench_init(&b, device, VOCAB, PROMPT, TOKENS, CONTEXT);
    dist_of_texts(&b, dist);
    short_config(&c, &dsc_drafter_draft_model);
    assert_true(chance(&b, &c, &dsc_verifier_typical, DSC_DRAFT_SAMPLED, dist) < alarm_rate);
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
    dsc_counts counts = zero_counts(histogram, NODES);
    bench_init(&b, device, LONG_VOCAB, 2 * PROMPT, LONG, LONG_CONTEXT);
    default_config(&none, &dsc_drafter_none);
    for (int64_t p = 0; p < PROMPTS; p++)
        memcpy(alone[p],
               bench_run(&b, &none, &dsc_verifier_greedy, DSC_DRAFT_TOPK, p, p, &greedy, &counts),
               sizeof alone[p]);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            dsc_error err;
            dsc_draft_kind made;
            dsc_config c;
            if (!(*v)->lossless || !fits(*d, *v, &made))
                continue;
            default_config(&c, *d);
            assert_ok(dsc_config_prepare(&c, &err), err);
            counts = zero_counts(histogram, NODES);
            for (int64_t p = 0; p < PROMPTS; p++) {
                const int32_t *got = bench_run(&b, &c, *v, made, p, p, &greedy, &counts);
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

SUITE(live_rules)
{
    device = chosen_device("cpu");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless_rules_emit_the_targets_dist),
        cmocka_unit_test(a_lossy_rule_does_not),
        cmocka_unit_test(greedy_output_is_that_of_plain_decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
