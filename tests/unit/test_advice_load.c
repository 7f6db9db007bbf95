// SPDX-License-Identifier: Apache-2.0
// Tests the verdict at one load on rows whose true gain is known: the gain is the ratio of the
// rows' own numbers, its interval that of a formula; no recommendation at or below a gain of 1 but
// by chance, always one well above it; a utility that is continuous in goodput; what saturation and
// rows that cannot be run change.
#include "sim/tune/advice_load.h"

#include "tests/close.h"

#include <string.h>

enum { BLOCKS = 40, BATCHES = 20, ROWS = 4 };

// Sums of one row, of which those of `none` are the base.
typedef struct sums {
    double requests[BLOCKS], good[BLOCKS], latency_s[BLOCKS], engine_s[BLOCKS];
} sums;

typedef struct load {
    sums block[ROWS], batch[ROWS];
    dsc_load_row row[ROWS];
    size_t rows;
} load;

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

// Nearly normal, with variance 1.
static double noise(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum;
}

static double sum(const double *x, size_t n)
{
    double all = 0;
    for (size_t i = 0; i < n; i++)
        all += x[i];
    return all;
}

// Of 10 requests in each group, faster than in `base` by `gain` on average.
static void fill(sums *s, const sums *base, int groups, double gain, double scatter,
                 uint64_t *state)
{
    for (int i = 0; i < groups; i++) {
        s->requests[i] = s->good[i] = 10;
        s->latency_s[i] = base ? base->latency_s[i] / gain * exp(scatter * noise(state))
                               : 20 * exp(scatter * noise(state));
        s->engine_s[i] = s->latency_s[i] / 4;
    }
}

// A row of 400 requests, the first of no speculation: its groups differ by `scatter`, and what the
// others gain differs by it.
static void add_row(load *l, double gain, double scatter, uint64_t *state)
{
    const size_t r = l->rows++;
    fill(&l->block[r], r ? &l->block[0] : NULL, BLOCKS, gain, scatter, state);
    fill(&l->batch[r], r ? &l->batch[0] : NULL, BATCHES, gain, scatter, state);
    l->row[r] = (dsc_load_row){.none = r == 0,
                               .may_run = true,
                               .within = 1,
                               .requests = 400,
                               .tokens = 1000,
                               .distinct = BLOCKS,
                               .blocks.count = BLOCKS,
                               .batches.count = BATCHES};
}

// Two rows: `none` and one with this gain, without noise.
static load plain(double gain)
{
    load l = {.rows = 0};
    uint64_t state = 1;
    add_row(&l, 1, 0, &state);
    add_row(&l, gain, 0, &state);
    return l;
}

static void set_good(load *l, size_t row, double each)
{
    for (int i = 0; i < BLOCKS; i++)
        l->block[row].good[i] = l->batch[row].good[i] = each;
}

// The numbers of a row are those of its blocks, as in a table.
static dsc_load_advice advise(load *l, bool closed)
{
    dsc_load_advice a;
    dsc_error err;
    for (size_t i = 0; i < l->rows; i++) { // a load may have been copied
        dsc_load_row *x = &l->row[i];
        const sums *b = &l->block[i], *c = &l->batch[i];
        x->blocks =
            (dsc_load_sums){b->requests, b->good, b->latency_s, b->engine_s, x->blocks.count};
        x->batches =
            (dsc_load_sums){c->requests, c->good, c->latency_s, c->engine_s, x->batches.count};
        x->e2e_mean_s = sum(b->latency_s, x->blocks.count) / 400;
        x->tokens_per_s = x->tokens / sum(b->engine_s, x->blocks.count);
        x->within = sum(b->good, x->blocks.count) / 400;
    }
    assert_ok(dsc_compare_load(l->row, l->rows, closed, &err), err);
    dsc_advise_load(l->row, l->rows, closed, &a);
    return a;
}

static const dsc_load_gain *gain_of(const load *l, const dsc_load_advice *a)
{
    return &l->row[a->row].than_none;
}

// The share of 400 loads with three configurations of this gain at which one is recommended.
static double recommended(double gain, bool closed, bool saturated)
{
    enum { LOADS = 400 };
    uint64_t state = (uint64_t)(gain * 1000) + 7;
    int on = 0;
    for (int i = 0; i < LOADS; i++) {
        load l = {.rows = 0};
        add_row(&l, 1, .5, &state);
        for (int r = 1; r < ROWS; r++)
            add_row(&l, gain, .1, &state);
        for (size_t r = 0; r < l.rows; r++)
            l.row[r].saturated = saturated;
        const dsc_load_advice a = advise(&l, closed);
        assert_true(a.row > 0 && a.row < ROWS);
        const dsc_load_gain *g = gain_of(&l, &a);
        assert_true(g->low <= g->gain && g->gain <= g->high && g->of_queues == saturated);
        assert_int_equal(a.kind, g->low > 1 ? DSC_ADVICE_ON : DSC_ADVICE_OFF);
        const dsc_load_row *x = &l.row[a.row];
        assert_close(g->gain,
                     closed || saturated ? x->tokens_per_s / l.row[0].tokens_per_s
                                         : l.row[0].e2e_mean_s / x->e2e_mean_s,
                     1e-12);
        on += a.kind == DSC_ADVICE_ON;
    }
    return (double)on / LOADS;
}

// The best of three is chosen by the numbers that it is judged by: without the interval for all of
// them more than 2.5 % would be recommended at a gain of 1.
static void recommends_what_pays(void **state)
{
    (void)state;
    for (int closed = 0; closed < 2; closed++)
        for (int saturated = 0; saturated < 2; saturated++) {
            assert_true(recommended(.5, closed, saturated) == 0);
            assert_true(recommended(.95, closed, saturated) == 0);
            assert_true(recommended(1, closed, saturated) < .025);
            assert_true(recommended(1.2, closed, saturated) > .99);
            assert_true(recommended(2, closed, saturated) == 1);
        }
}

// The rule of the header: over 4 blocks, of which two have all of the noise.
static void the_interval_is_that_of_the_formula(void **state)
{
    (void)state;
    const double student_3 = 3.182446305284263, each = .1; // 0.975 quantile, 3 degrees of freedom
    load l = plain(1);
    for (size_t r = 0; r < 2; r++)
        l.row[r].blocks.count = 4;
    l.row[0].distinct = l.row[1].distinct = 1e6; // each request once: the larger of both counts
    l.block[1].latency_s[1] *= 1 + each;
    l.block[1].latency_s[2] *= 1 - each;
    advise(&l, false);
    const double half = student_3 * sqrt(2 * each * each / 16 * 4 / 3);
    assert_close(log(l.row[1].than_none.high), half, 1e-9);
    assert_close(log(l.row[1].than_none.low), -half, 1e-9);
    for (int i = 0; i < BATCHES; i++) // all arrivals the same
        assert_close(l.batch[1].latency_s[i], l.batch[0].latency_s[i], 1e-12);
    // The two blocks have the engine for longer and shorter, and utility falls twice as fast as the
    // load rises. In a closed loop it does not matter.
    l.row[1].elasticity = -2;
    l.block[1].engine_s[1] *= 1 + each;
    l.block[1].engine_s[2] *= 1 - each;
    advise(&l, false);
    assert_close(log(l.row[1].than_none.high), 3 * half, 1e-9);
    advise(&l, true);
    assert_close(log(l.row[1].than_none.high), half, 1e-9);
    l.row[0].elasticity = -2; // without speculation the load matters as much, and not these blocks
    advise(&l, false);
    assert_close(log(l.row[1].than_none.high), 3 * half, 1e-9);
    l.row[0].distinct = l.row[1].distinct = BLOCKS; // requests again and again: arrivals, too
    l.row[0].elasticity = l.row[1].elasticity = 0;
    for (int i = 0; i < BATCHES; i++)
        l.batch[1].latency_s[i] *= i < BATCHES / 2 ? 1 + each : 1 - each;
    advise(&l, false);
    assert_true(log(l.row[1].than_none.high) > 1.2 * half);
}

// Half of the interval of a row in standard errors of its 40 blocks, without other noise.
static double limit_of(load *l, size_t row)
{
    double square = 0;
    const sums *x = &l->block[row], *none = &l->block[0];
    for (size_t r = 0; r < l->rows; r++) {
        l->row[r].distinct = 1e6;
        memcpy(l->batch[r].latency_s, l->batch[0].latency_s, sizeof l->batch[r].latency_s);
    }
    advise(l, false);
    for (int i = 0; i < BLOCKS; i++) {
        const double d = x->latency_s[i] / sum(x->latency_s, BLOCKS) -
                         none->latency_s[i] / sum(none->latency_s, BLOCKS);
        square += d * d;
    }
    const dsc_load_gain *g = &l->row[row].than_none;
    return log(g->high / g->gain) / sqrt(square * BLOCKS / (BLOCKS - 1));
}

// One configuration has Student's limit, also beside others that are nearly the same; of several
// that vary on their own, more than 1.96 normal errors in one is more likely.
static void limits_hold_together(void **state)
{
    (void)state;
    const double student_39 = 2.0226909117347285;
    uint64_t random = 5;
    load l = plain(1);
    add_row(&l, 1, .1, &random);
    assert_close(limit_of(&l, 2), student_39, 1e-6); // the other one is that of `none`
    l.block[1] = l.block[2];
    assert_close(limit_of(&l, 1), student_39, .02);
    add_row(&l, 1, .1, &random);
    const double two = limit_of(&l, 3);
    fill(&l.block[1], &l.block[0], BLOCKS, 1, .1, &random);
    const double three = limit_of(&l, 3);
    // The limits of two and three independent normal variables are 2.236 and 2.388.
    assert_close(two, student_39 / 1.96 * 2.236, .08);
    assert_close(three, student_39 / 1.96 * 2.388, .08);
}

static void saturated_rows(void **state)
{
    (void)state;
    load l = plain(1.5);
    uint64_t random = 3;
    add_row(&l, 3, 0, &random);
    for (int b = 0; b < BLOCKS; b++) // of its gain, a part is less waiting
        l.block[2].engine_s[b] *= 1.5;
    l.row[2].saturated = true; // whatever it gains
    dsc_load_advice a = advise(&l, false);
    assert_int_equal(a.row, 1);
    assert_true(!gain_of(&l, &a)->of_queues && l.row[2].than_none.of_queues);
    assert_true(isnan(l.row[2].than_none.low));
    l.row[1].saturated = true;
    a = advise(&l, false);
    assert_int_equal(a.kind, DSC_ADVICE_OFF);
    assert_int_equal(a.row, SIZE_MAX);
    assert_non_null(strstr(a.why, "without it does not"));
    l.row[0].saturated = true;
    set_good(&l, 2, 0); // throughput alone, whatever is within the SLO
    a = advise(&l, false);
    assert_int_equal(a.kind, DSC_ADVICE_ON);
    assert_int_equal(a.row, 2);
    assert_true(a.all_saturated);
    assert_close(gain_of(&l, &a)->gain, 2, 1e-9);
    l.row[1].saturated = false; // one that keeps up comes before one with more throughput
    a = advise(&l, false);
    assert_int_equal(a.row, 1);
    assert_true(!a.all_saturated);
}

// Where speculation alone keeps the queue stable it is recommended, whatever else it does.
static void what_alone_keeps_up_is_on(void **state)
{
    (void)state;
    for (double gain = .5; gain < 2; gain += .25) {
        load l = plain(gain);
        l.row[0].saturated = true;
        set_good(&l, 1, 0);
        const dsc_load_advice a = advise(&l, false);
        assert_int_equal(a.kind, DSC_ADVICE_ON);
        assert_int_equal(a.row, 1);
        assert_true(gain_of(&l, &a)->of_queues && isnan(gain_of(&l, &a)->low));
        assert_close(gain_of(&l, &a)->gain, gain, 1e-9);
    }
}

// Without speculation a run that is too short leaves no verdict, unless a queue grows with every
// configuration that drafts. One that drafts and is too short is not judged; others are.
static void runs_that_are_too_short(void **state)
{
    (void)state;
    load l = plain(1.5);
    uint64_t random = 3;
    add_row(&l, 3, 0, &random);
    l.row[2].too_short = true;
    assert_int_equal(advise(&l, false).row, 1);
    assert_true(isnan(l.row[2].than_none.gain));
    l.row[1].saturated = true; // with the other one it may not grow
    dsc_load_advice a = advise(&l, false);
    assert_int_equal(a.kind, DSC_ADVICE_ABSTAIN);
    assert_non_null(strstr(a.why, "too short"));
    l.row[2].too_short = false;
    l.row[2].saturated = l.row[0].too_short = true;
    assert_int_equal(advise(&l, false).kind, DSC_ADVICE_OFF);
    l.row[2].saturated = false;
    assert_int_equal(advise(&l, false).kind, DSC_ADVICE_ABSTAIN);
    l.row[0].too_short = l.row[1].saturated = false;
    l.row[1].too_short = l.row[2].too_short = true;
    a = advise(&l, false);
    assert_int_equal(a.kind, DSC_ADVICE_ABSTAIN);
    assert_non_null(strstr(a.why, "too short"));
}

// Of 10 requests each, `a` are within the SLO without speculation and `b` with it, which is faster
// by `speed`.
static double gain_at(double speed, double a, double b, bool closed, dsc_advice_kind *kind)
{
    load l = plain(speed);
    set_good(&l, 0, a);
    set_good(&l, 1, b);
    const dsc_load_advice out = advise(&l, closed);
    *kind = out.kind;
    return gain_of(&l, &out)->gain;
}

static double worth(double of_10)
{
    return (of_10 + .1 * (10 - of_10)) / 10;
}

// Over speeds and all pairs of goodputs: the gain is speed times worth; better at both is on, worse
// at both is off; and a step of goodput never moves it by more than its share.
static void utility_is_continuous(void **state)
{
    (void)state;
    for (int closed = 0; closed < 2; closed++)
        for (double speed = .5; speed < 2.1; speed += .25)
            for (double a = 0; a <= 10; a += .25)
                for (double b = 0; b <= 10; b += .25) {
                    dsc_advice_kind kind, next;
                    const double gain = gain_at(speed, a, b, closed, &kind);
                    assert_close(gain, speed * worth(b) / worth(a), 1e-9);
                    if (speed >= 1 && b >= a && speed + b > 1 + a)
                        assert_int_equal(kind, DSC_ADVICE_ON);
                    if (speed <= 1 && b <= a)
                        assert_int_equal(kind, DSC_ADVICE_OFF);
                    if (b < 10)
                        assert_true(gain_at(speed, a, b + .25, closed, &next) / gain <
                                    1 + .25 * .9 / (10 * worth(b)) + 1e-9);
                }
}

static void chooses_by_utility(void **state)
{
    (void)state;
    uint64_t random = 3;
    load l = plain(1.2);
    add_row(&l, 1.5, 0, &random);
    add_row(&l, 9, 0, &random);
    assert_int_equal(advise(&l, false).row, 3);
    set_good(&l, 3, 0); // nine times as fast and never in time: .9 in all
    assert_int_equal(advise(&l, false).row, 2);
    set_good(&l, 3, 1); // 1.71
    assert_int_equal(advise(&l, false).row, 3);
    l.row[3].may_run = false; // it has a gain all the same
    assert_int_equal(advise(&l, false).row, 2);
    assert_close(l.row[3].than_none.gain, 9 * .19, 1e-9);
}

static void abstains(void **state)
{
    (void)state;
    load l = plain(2);
    l.row[1].may_run = false;
    assert_int_equal(advise(&l, false).kind, DSC_ADVICE_ABSTAIN);
    l = plain(2);
    l.row[0].none = false;
    assert_int_equal(advise(&l, false).kind, DSC_ADVICE_ABSTAIN);
    assert_true(isnan(l.row[1].than_none.gain));
    l = plain(2);
    l.row[1].tokens++; // of other requests
    assert_int_equal(advise(&l, false).kind, DSC_ADVICE_ABSTAIN);
    assert_true(isnan(l.row[1].than_none.gain));
    l = plain(2);
    for (size_t i = 0; i < l.rows; i++)
        l.row[i].blocks.count = 1;
    assert_int_equal(advise(&l, false).kind, DSC_ADVICE_ABSTAIN);
    assert_true(isnan(l.row[1].than_none.low) && l.row[1].than_none.gain > 1);
    for (size_t i = 0; i < l.rows; i++)
        l.row[i].blocks.count = 2;
    assert_int_equal(advise(&l, false).kind, DSC_ADVICE_ON);
}

SUITE(advice_load)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recommends_what_pays),
                                       cmocka_unit_test(the_interval_is_that_of_the_formula),
                                       cmocka_unit_test(limits_hold_together),
                                       cmocka_unit_test(saturated_rows),
                                       cmocka_unit_test(what_alone_keeps_up_is_on),
                                       cmocka_unit_test(runs_that_are_too_short),
                                       cmocka_unit_test(utility_is_continuous),
                                       cmocka_unit_test(chooses_by_utility),
                                       cmocka_unit_test(abstains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
