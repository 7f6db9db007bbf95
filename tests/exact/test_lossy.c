// SPDX-License-Identifier: Apache-2.0
// Lossy rules: their prices against the output distribution written out token by token from the
// definition, and the rules of sim/verify against that distribution by sampling.
#include "base/rng.h"
#include "base/statistics.h"
#include "sim/verify_room.h"
#include "tests/close.h"
#include "tests/exact/draws.h"
#include "theory/lossy.h"

#include <stdio.h>
#include <string.h>

// A rule as users write it. With these parameters small distributions have tokens on both sides of
// every threshold.
static const struct {
    const char *text;
    double a, b; // the parameters
} rules[] = {
    {"ensemble:0.9", .9, 0},    {"ensemble:0.25", .25, 0},     {"ensemble:0", 0, 0},
    {"ensemble:1", 1, 0},       {"typical:0.09,0.3", .09, .3}, {"typical:0.3,2", .3, 2},
    {"relaxed:10,0.6", 10, .6}, {"relaxed:2,0.6", 2, .6},      {"relaxed:3,0.05", 3, .05},
    {"relaxed:1,0", 1, 0},      {"relaxed:2,0", 2, 0},         {"typical:1,1000", 1, 1000}};
enum { RULES = sizeof rules / sizeof *rules };

// --- by definition -------------------------------------------------------------------------------

static size_t argmax_of(const double *row, size_t vocab)
{
    size_t best = 0;
    for (size_t x = 1; x < vocab; x++)
        best = row[x] > row[best] ? x : best;
    return best;
}

// The number of tokens before x in descending order of probability, ties by ascending id.
static int rank_of(const double *row, size_t vocab, size_t x)
{
    int rank = 0;
    for (size_t y = 0; y < vocab; y++)
        rank += row[y] > row[x] || (row[y] == row[x] && y < x);
    return rank;
}

static bool passes(int rule, const pair *p, size_t x)
{
    const double *q = p->target, best = q[argmax_of(q, p->vocab)];
    double entropy = 0;
    if (*rules[rule].text == 'r')
        return rank_of(q, p->vocab, x) < rules[rule].a && q[x] >= best - rules[rule].b;
    for (size_t y = 0; y < p->vocab; y++)
        entropy -= q[y] * log(q[y] + 1e-5);
    return q[x] > fmin(rules[rule].a, rules[rule].b * exp(-entropy));
}

// The acceptance of one draft from p->draft and the distribution of the emitted token.
static double emit(int rule, const pair *p, double *output)
{
    const double w = rules[rule].a;
    double accept = 0, residual[MAX_VOCAB], sum = 0;
    memset(output, 0, MAX_VOCAB * sizeof *output);
    for (size_t x = 0; x < p->vocab; x++) {
        const double mixed = w * p->target[x] + (1 - w) * p->draft[x];
        const double here = *rules[rule].text == 'e' ? fmin(mixed, p->draft[x])
                            : passes(rule, p, x)     ? p->draft[x]
                                                     : 0;
        output[x] = here;
        accept += here;
        sum += residual[x] = fmax(mixed - p->draft[x], 0);
    }
    if (*rules[rule].text != 'e')
        output[argmax_of(p->target, p->vocab)] += 1 - accept;
    for (size_t x = 0; x < p->vocab && *rules[rule].text == 'e' && sum > 0; x++)
        output[x] += (1 - accept) * residual[x] / sum;
    return accept;
}

static dsc_lossy_price price_of(int rule, const pair *p)
{
    const double a = rules[rule].a, b = rules[rule].b;
    if (*rules[rule].text == 'e')
        return dsc_ensemble_price(a, p->draft, p->target, p->vocab);
    return dsc_accepted_set_price(*rules[rule].text == 'r'
                                      ? dsc_relaxed_set(p->target, p->vocab, (int)a, b)
                                      : dsc_typical_set(p->target, p->vocab, a, b),
                                  p->draft, p->target, p->vocab);
}

// A draft that is always its most probable token.
static pair top_one(const pair *p)
{
    pair one = *p;
    memset(one.draft, 0, sizeof one.draft);
    one.draft[argmax_of(p->draft, p->vocab)] = 1;
    return one;
}

static void check_price(int rule, const pair *p)
{
    double output[MAX_VOCAB], tv = 0, kl = 0, lossless = 0;
    const double accept = emit(rule, p, output);
    const dsc_lossy_price price = price_of(rule, p);
    for (size_t x = 0; x < p->vocab; x++) {
        tv += fabs(output[x] - p->target[x]) / 2;
        lossless += fmin(p->draft[x], p->target[x]);
        if (output[x] > 0)
            kl += p->target[x] > 0 ? output[x] * (log(output[x]) - log(p->target[x])) : INFINITY;
    }
    assert_close(price.accept, accept, 1e-12);
    assert_close(price.tv, tv, 1e-12);
    assert_close(price.off_argmax, 1 - output[argmax_of(p->target, p->vocab)], 1e-12);
    if (isinf(kl))
        assert_true(isinf(price.kl));
    else
        assert_close(price.kl, kl, 1e-11);
    // No rule gains more than it changes, and the ensemble gains as much.
    assert_true(price.accept - lossless <= price.tv + 1e-12);
    if (*rules[rule].text == 'e')
        assert_close(price.accept - lossless, price.tv, 1e-12);
}

static void prices_are_those_of_the_definition(void **state)
{
    (void)state;
    for (int rule = 0; rule < RULES; rule++)
        for (uint64_t n = 0; n < 400; n++) {
            const pair p = small_pair(n, 1 + n % MAX_VOCAB), one = top_one(&p);
            check_price(rule, &p);
            check_price(rule, &one);
        }
}

static void prices_are_nan_outside_their_domain(void **state)
{
    (void)state;
    const double row[2] = {.5, .5};
    assert_true(isnan(dsc_ensemble_price(1.5, row, row, 2).tv));
    assert_true(isnan(dsc_ensemble_price(NAN, row, row, 2).tv));
    assert_true(isnan(dsc_ensemble_price(.5, NULL, row, 2).tv));
    assert_true(isnan(dsc_accepted_set_price((dsc_accepted_set){.5, 0}, row, row, 0).tv));
}

// --- the rules -----------------------------------------------------------------------------------

typedef struct dense_model {
    dsc_model base;
    const double *row;
    size_t vocab;
} dense_model;

static int dense_dist(dsc_model *base, int32_t node, dsc_dist *out, dsc_error *err)
{
    const dense_model *m = (const dense_model *)base;
    (void)node, (void)err;
    *out = (dsc_dist){.vocab_size = (int32_t)m->vocab, .dense = m->row};
    return DSC_OK;
}

static int dense_next(dsc_model *base, int32_t node, dsc_next *out, dsc_error *err)
{
    const dense_model *m = (const dense_model *)base;
    (void)node, (void)err;
    *out = (dsc_next){.token = (int32_t)argmax_of(m->row, m->vocab)};
    return DSC_OK;
}

static const dsc_model_type dense = {.name = "dense", .dist = dense_dist, .next = dense_next};

static int32_t sample(const double *row, size_t vocab, double u)
{
    size_t x = 0;
    while (x + 1 < vocab && (u -= row[x]) >= 0)
        x++;
    return (int32_t)x;
}

typedef struct tally {
    int64_t accepted, emitted[MAX_VOCAB];
} tally;

// Runs the rule on drafts of one token.
static tally run(const dsc_verifier_type *rule, const pair *p, dsc_draft_kind kind, int draws)
{
    dsc_arena arena = {0};
    dsc_draft d = {0};
    dsc_verdict v = {0};
    dsc_verify_room room = {.arena = &arena};
    dsc_error err = {0};
    tally t = {0};
    dense_model target = {{.type = &dense, .limit = 100, .end_token = -1}, p->target, p->vocab},
                draft = {{.type = &dense, .limit = 100, .end_token = -1}, p->draft, p->vocab};
    const dsc_models both = {&target.base, &draft.base, NULL};
    for (int n = 0; n < draws; n++) {
        const int32_t x = sample(p->draft, p->vocab, dsc_rng_uniform(3, (uint64_t)n, 0, 9));
        dsc_draft_clear(&d);
        d.kind = kind;
        assert_ok(dsc_draft_append_chain(&d, -1, &x, 1, &err), err);
        const dsc_verify_input in = {&both, &d, 11, n, &room, rule};
        assert_ok(rule->verify(&in, &v, &err), err);
        assert_int_equal(v.count, v.accepted + 1);
        t.accepted += (int64_t)v.accepted;
        t.emitted[v.token[0]]++;
    }
    dsc_verify_room_fini(&room);
    dsc_verdict_fini(&v);
    dsc_draft_fini(&d);
    dsc_arena_fini(&arena);
    return t;
}

// Within 5 standard errors of a share of `draws`.
static void assert_share(int64_t count, double share, int draws)
{
    const double error = sqrt(fmax(share * (1 - share), 0) / draws);
    assert_close((double)count / draws, share, 5 * error + 1e-12);
}

// About 400 shares: one of them is beyond 5 standard errors once in 4000 sets of uniform numbers.
static void rules_emit_what_is_priced(void **state)
{
    (void)state;
    const int draws = few_or_many(8000, 40000);
    for (int i = 0; i < RULES; i++) {
        dsc_error err = {0};
        const dsc_verifier_type *rule = dsc_verifier_find(rules[i].text, &err);
        assert_non_null(rule);
        assert_string_equal(rule->name, rules[i].text);
        assert_ptr_equal(dsc_verifier_find(rules[i].text, &err), rule);
        assert_false(rule->lossless);
        for (uint64_t n = 0; n < 2 * PAIR_SHAPES; n++) {
            const pair p = small_pair(n, 3 + n % 3), one = top_one(&p);
            const pair *of[2] = {&p, &one};
            static const dsc_draft_kind kind[2] = {DSC_DRAFT_SAMPLED, DSC_DRAFT_TOPK};
            for (int k = 0; k < 2; k++) {
                double output[MAX_VOCAB];
                const double accept = emit(i, of[k], output);
                const tally t = run(rule, of[k], kind[k], draws);
                assert_share(t.accepted, fmin(accept, 1), draws);
                for (size_t x = 0; x < p.vocab; x++)
                    assert_share(t.emitted[x], fmin(output[x], 1), draws);
            }
        }
    }
}

static void defaults_are_what_help_says(void **state)
{
    (void)state;
    for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
        dsc_error err = {0};
        char text[64];
        assert_true((*v)->options <= DSC_RULE_PARAMETERS);
        int n = snprintf(text, sizeof text, "%s", (*v)->name);
        for (size_t i = 0; i < (*v)->options; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%c%s", i ? ',' : ':',
                          (*v)->option[i].initial);
        const dsc_verifier_type *same = dsc_verifier_find(text, &err);
        assert_non_null(same);
        assert_memory_equal(same->parameter, (*v)->parameter, sizeof same->parameter);
    }
}

static void wrong_parameters_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"ensemble:1.5", "weight"},     {"ensemble:", "parameter"},
        {"ensemble:.5,1", "parameter"}, {"ensemble:x", "weight"},
        {"relaxed:10", "parameter"},    {"relaxed:0,.5", "top-k"},
        {"relaxed:2,.5,", "parameter"}, {"relaxed:2,2", "delta"},
        {"relaxed:1.5,.1", "top-k"},    {"rejection:1", "no parameters"},
        {"ensembl:.5", "ensemble"},     {":", "rule"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        dsc_error err = {0};
        assert_null(dsc_verifier_find(wrong[i][0], &err));
        if (!strstr(err.message, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], err.message);
    }
}

SUITE(lossy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prices_are_those_of_the_definition),
        cmocka_unit_test(prices_are_nan_outside_their_domain),
        cmocka_unit_test(rules_emit_what_is_priced),
        cmocka_unit_test(defaults_are_what_help_says),
        cmocka_unit_test(wrong_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
