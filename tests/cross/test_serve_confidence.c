// SPDX-License-Identifier: Apache-2.0
// Calibrated confidences of a trace: the recorded probabilities of drafted tokens against a direct
// calculation, exactly under the greedy rule and in the mean over seeds under one that samples; a
// request's confidences do not depend on its own outcome; given rates become survivals; and what is
// refused.
#include "tests/unit/trace_fixture.h"

#include "sim/serve/serve_confidence.h"
#include "tests/close.h"

enum { COUNT = 24, LONGEST = 40, TOKENS_KNOWN = 5 };

static uint32_t seed = 11;
static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static int32_t output[COUNT][LONGEST];
static int64_t length[COUNT];
static float logp[DSC_SIDES][COUNT][LONGEST][TOKENS_KNOWN];

static void fill_dist(float *row)
{
    double p[TOKENS_KNOWN], sum = 0;
    for (int x = 0; x < TOKENS_KNOWN; x++)
        sum += p[x] = pick(1000) / 1000. * pick(1000) / 1000 + 1e-3;
    for (int x = 0; x < TOKENS_KNOWN; x++)
        row[x] = (float)log(p[x] / sum);
}

static int32_t most_probable(const float *row)
{
    int32_t best = 0;
    for (int32_t x = 1; x < TOKENS_KNOWN; x++)
        best = row[x] > row[best] ? x : best;
    return best;
}

// The output is the draft's argmax more often where that is probable.
static void fill(void)
{
    for (int r = 0; r < COUNT; r++) {
        length[r] = r == 3 ? 0 : 1 + pick(LONGEST);
        for (int64_t t = 0; t < length[r]; t++) {
            const float *row = logp[DSC_SIDE_DRAFT][r][t];
            fill_dist(logp[DSC_SIDE_DRAFT][r][t]);
            fill_dist(logp[DSC_SIDE_TARGET][r][t]);
            const int32_t best = most_probable(row);
            const bool agrees = pick(1000) < 1000 * exp(row[best]);
            output[r][t] = agrees ? best : (int32_t)pick(TOKENS_KNOWN);
        }
    }
}

static dsc_trace *make_trace(bool rows, int requests)
{
    dsc_error e;
    dsc_trace_writer *w;
    dsc_trace *t;
    const dsc_rows_kind kind = rows ? DSC_ROWS_DENSE : DSC_ROWS_NONE;
    const char *path = in_scratch(rows ? requests > 1 ? "a.dst" : "one.dst" : "b.dst");
    const dsc_trace_info info = {.vocab_size = TOKENS_KNOWN,
                                 .eos_token = -1,
                                 .tokenizer_name = "none",
                                 .rows = {kind, kind},
                                 .has_draft_logp = true,
                                 .has_argmax = {[DSC_SIDE_DRAFT] = true}};
    assert_ok(dsc_trace_writer_open(&w, path, &info, true, 100, &e), e);
    for (int r = 0; r < requests; r++) {
        int32_t argmax[LONGEST];
        float drafted[LONGEST];
        char id[16];
        for (int64_t i = 0; i < length[r]; i++) {
            argmax[i] = most_probable(logp[DSC_SIDE_DRAFT][r][i]);
            drafted[i] = logp[DSC_SIDE_DRAFT][r][i][output[r][i]];
        }
        snprintf(id, sizeof id, "%d", r);
        dsc_request_input q = {.id = {id, (int64_t)strlen(id)},
                               .output = {output[r], length[r]},
                               .draft_logp = drafted,
                               .replayed = {.argmax = {[DSC_SIDE_DRAFT] = argmax}}};
        for (int side = 0; side < DSC_SIDES; side++)
            q.rows[side] =
                (dsc_rows){.kind = kind, .logp = logp[side][r][0], .vocab_size = TOKENS_KNOWN};
        assert_ok(dsc_trace_writer_add(w, &q, &e), e);
    }
    assert_ok(dsc_trace_writer_commit(w, NULL, &e), e);
    assert_ok(dsc_trace_open(&t, path, &e), e);
    return t;
}

static dsc_config config_of(const dsc_drafter_type *drafter)
{
    dsc_error e;
    dsc_config c;
    dsc_config_init(&c, drafter);
    assert_ok(dsc_config_set(&c, "num-speculative-tokens", "4", &e), e);
    assert_ok(dsc_config_prepare(&c, &e), e);
    return c;
}

static void read_source(dsc_serve_source *s, dsc_serve_confidence *c, const dsc_trace *t,
                        const dsc_verifier_type *rule, uint64_t with_seed)
{
    dsc_error e;
    dsc_config config = config_of(&dsc_drafter_draft_model);
    assert_ok(dsc_serve_source_trace(s, t, &config, rule, with_seed, 1, &e), e);
    assert_ok(dsc_serve_confidence_read(c, s, t, &config, rule, with_seed, &e), e);
    dsc_config_fini(&config);
}

static void greedy(void **state)
{
    (void)state;
    dsc_serve_source s;
    dsc_serve_confidence c;
    dsc_trace *t = make_trace(true, COUNT);
    double recorded = 0, brier = 0;
    int64_t n = 0;
    read_source(&s, &c, t, &dsc_verifier_greedy, 5);
    assert_int_equal(s.count, COUNT - 1);
    for (size_t i = 0; i < s.count; i++)
        for (int32_t p = 1; p < s.item[i].output - 1; p++, n++) {
            const int64_t r = s.request[i];
            const float *row = logp[DSC_SIDE_DRAFT][r][p];
            const double accepted = output[r][p] == most_probable(row);
            recorded += pow(exp((double)row[most_probable(row)]) - accepted, 2);
            brier += pow((double)s.item[i].confidence[p] - accepted, 2);
        }
    assert_true(n > 200);
    assert_int_equal(c.tokens, n);
    assert_close(c.recorded_brier, recorded / (double)n, 1e-6);
    assert_close(c.brier, brier / (double)n, 1e-9);
    assert_true(c.calibration_error > 0 && c.calibration_error < .15);
    dsc_serve_confidence_fini(&c);
    dsc_serve_source_fini(&s);
    dsc_trace_close(t);
}

// The probability of the drafted token given the output's: that of the output's token where it is
// accepted; of a token of (draft - target)+ where it is not.
static double expected_brier(const dsc_serve_source *s)
{
    double sum = 0;
    int64_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        for (int32_t t = 1; t < s->item[i].output - 1; t++, n++) {
            const int64_t r = s->request[i];
            const float *q = logp[DSC_SIDE_DRAFT][r][t], *p = logp[DSC_SIDE_TARGET][r][t];
            const int32_t y = output[r][t];
            const double accepted = fmin(1, exp((double)(q[y] - p[y])));
            double mass = 0, square = 0;
            for (int x = 0; x < TOKENS_KNOWN; x++) {
                const double drafted = exp((double)q[x]);
                const double excess = fmax(drafted - exp((double)p[x]), 0);
                mass += excess;
                square += excess * drafted * drafted;
            }
            sum += accepted * pow(1 - exp((double)q[y]), 2) + (1 - accepted) * square / mass;
        }
    return sum / (double)n;
}

static void sampled(void **state)
{
    (void)state;
    const int seeds = few_or_many(150, 600);
    dsc_trace *t = make_trace(true, COUNT);
    double sum = 0, square = 0, expected = 0;
    for (int k = 0; k < seeds; k++) {
        dsc_serve_source s;
        dsc_serve_confidence c;
        read_source(&s, &c, t, &dsc_verifier_rejection, (uint64_t)k);
        sum += c.recorded_brier;
        square += c.recorded_brier * c.recorded_brier;
        expected = expected_brier(&s);
        dsc_serve_confidence_fini(&c);
        dsc_serve_source_fini(&s);
    }
    const double mean = sum / seeds, error = sqrt((square / seeds - mean * mean) / seeds);
    assert_true(error < 0.01 * expected);
    assert_close(mean, expected, 4 * error);
    dsc_trace_close(t);
}

// With the outcomes of one request turned round, its own confidences and those of its half stay,
// and others change.
static void own_outcome(void **state)
{
    (void)state;
    dsc_error e;
    dsc_trace *t = make_trace(true, COUNT);
    dsc_config config = config_of(&dsc_drafter_draft_model);
    for (size_t turned = 0; turned < 6; turned++) {
        dsc_serve_source s, other;
        dsc_serve_confidence c, d;
        int64_t stayed = 0, changed = 0;
        read_source(&s, &c, t, &dsc_verifier_greedy, 5);
        assert_ok(dsc_serve_source_trace(&other, t, &config, &dsc_verifier_greedy, 5, 1, &e), e);
        dsc_serve_draft *draft = (dsc_serve_draft *)other.item[turned].draft;
        for (int32_t p = 0; p < other.item[turned].output; p++)
            draft[p].run = !draft[p].run;
        assert_ok(dsc_serve_confidence_read(&d, &other, t, &config, &dsc_verifier_greedy, 5, &e),
                  e);
        for (size_t i = 0; i < s.count; i++) {
            const bool same = !memcmp(s.item[i].confidence, other.item[i].confidence,
                                      (size_t)s.item[i].output * sizeof(float));
            stayed += same;
            changed += !same;
            assert_true(same || i != turned);
        }
        if (s.item[turned].output > 9)
            assert_true(stayed >= COUNT / 2 - 1 && changed > COUNT / 4);
        dsc_serve_confidence_fini(&c);
        dsc_serve_confidence_fini(&d);
        dsc_serve_source_fini(&s);
        dsc_serve_source_fini(&other);
    }
    dsc_config_fini(&config);
    dsc_trace_close(t);
}

static void expect_refusal(const dsc_trace *t, const dsc_drafter_type *drafter, const char *why)
{
    dsc_error e;
    dsc_serve_source s;
    dsc_serve_confidence c;
    dsc_config config = config_of(drafter);
    assert_ok(dsc_serve_source_trace(&s, t, &config, &dsc_verifier_greedy, 0, 1, &e), e);
    assert_int_equal(dsc_serve_confidence_read(&c, &s, t, &config, &dsc_verifier_greedy, 0, &e),
                     DSC_EUSAGE);
    assert_non_null(strstr(e.message, why));
    dsc_serve_confidence_fini(&c);
    dsc_serve_source_fini(&s);
    dsc_config_fini(&config);
}

static void refused(void **state)
{
    (void)state;
    dsc_trace *none = make_trace(false, COUNT), *one = make_trace(true, 1),
              *all = make_trace(true, COUNT);
    expect_refusal(none, &dsc_drafter_draft_model, "lacks column draft_rows");
    expect_refusal(one, &dsc_drafter_draft_model, "one request");
    expect_refusal(all, &dsc_drafter_ngram, "no draft model");
    dsc_trace_close(none);
    dsc_trace_close(one);
    dsc_trace_close(all);
}

static void rate_of_request(void *user, int64_t request, int32_t drafted, double *rate)
{
    (void)user;
    for (int32_t d = 0; d < drafted; d++)
        rate[d] = (double)(request + 1) / (double)(d + 4);
}

static void lengths_of_request(void *user, int64_t request, int32_t *prompt, int32_t *tokens)
{
    (void)user, (void)request;
    *prompt = 1;
    *tokens = 9;
}

// Given rates become the survivals of each request.
static void given_rates(void **state)
{
    (void)state;
    dsc_error e;
    dsc_serve_source s;
    const dsc_serve_rates rates = {
        .requests = 3, .length = 4, .lengths = lengths_of_request, .rates = rate_of_request};
    assert_ok(dsc_serve_source_rates(&s, &rates, DSC_SERVE_DRAFT_EACH, &e), e);
    for (int r = 0; r < 3; r++) {
        double product = 1;
        for (int d = 0; d < 4; d++)
            assert_true(s.item[r].survival[d] == (product *= (r + 1.) / (d + 4.)));
    }
    dsc_serve_source_fini(&s);
}

SUITE(serve_confidence)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(greedy, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(sampled, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(own_outcome, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(refused, make_scratch, remove_scratch),
        cmocka_unit_test(given_rates),
    };
    fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
