// SPDX-License-Identifier: Apache-2.0
// dsc_acceptance_of_rows against the sorted curve, with every kernel this processor has; the
// kernels against the portable one, bit by bit; and rows that must be refused.
#include "tests/close.h"

#include "base/rng.h"
#include "theory/acceptance_bounds.h"
#include "theory/probs.h"

#include <string.h>

enum { USE_TEST = 0x7e57, KINDS = 12 };

// Uniform number `i` of pair `pair`.
static double uniform(uint64_t pair, uint32_t i)
{
    return dsc_rng_uniform(11, pair, i, USE_TEST);
}

static double normal(uint64_t pair, uint32_t i)
{
    return sqrt(-2 * log(1 - uniform(pair, 2 * i))) * cos(2 * M_PI * uniform(pair, 2 * i + 1));
}

typedef struct rows {
    size_t vocab;
    float *draft, *target;
} rows;

static float *new_row(size_t vocab)
{
    float *row = calloc(vocab, sizeof *row);
    assert_non_null(row);
    return row;
}

static rows rows_new(size_t vocab)
{
    return (rows){vocab, new_row(vocab), new_row(vocab)};
}

static void rows_free(rows *r)
{
    free(r->draft);
    free(r->target);
}

static void scale(float *row, size_t vocab, double by)
{
    for (size_t x = 0; x < vocab; x++)
        row[x] = (float)(row[x] * by);
}

// Logits that fall with the logarithm of the rank, with noise on the target's, then changed by
// kind.
static void fill(rows *r, uint64_t pair)
{
    static const double temperature[] = {1, .8, .6, .3, .1, 2}, noise[] = {1, .3, 2, .03, 1e-3, 4};
    double t = temperature[pair / KINDS % 6], n = noise[pair / 7 % 6];
    for (size_t x = 0; x < r->vocab; x++) {
        double logit = -log((double)(x * 48271 % r->vocab) + 1);
        r->draft[x] = (float)exp(logit / t);
        r->target[x] = (float)exp((logit + n * normal(pair, (uint32_t)x)) / t);
    }
    for (size_t x = 0; x < r->vocab; x++) {
        double u = uniform(pair, (uint32_t)(2 * r->vocab + x)), v = uniform(pair, (uint32_t)x);
        float *d = &r->draft[x], *q = &r->target[x];
        switch (pair % KINDS) {
        case 1: // few ratios, many ties
            *q = *d * ldexpf(1, (int)(5 * u) - 2);
            break;
        case 2: // near equal
            *q = *d * (float)(1 + 1e-6 * u);
            break;
        case 3: // top-k like: zeros in both
            *d = u < .7 ? 0 : *d;
            *q = v < .7 ? 0 : *q;
            break;
        case 4: // gamma-like masses, no relation
            *d = (float)pow(u, 8);
            *q = (float)pow(v, 8);
            break;
        case 5: // the same token has nearly all mass in both
            *d = x == 0 ? 1 : *d * 1e-9f;
            *q = x == 0 ? 1 : *q * 1e-9f;
            break;
        case 6: // different tokens have nearly all mass
            *d = x == 0 ? 1 : *d * 1e-5f;
            *q = x + 1 == r->vocab ? 1 : *q * 1e-5f;
            break;
        case 7: // nearly disjoint
            *d = x % 2 ? *d : *d * 1e-4f;
            *q = x % 2 ? *q * 1e-4f : *q;
            break;
        case 8: // fp16
            *d = roundf(*d * 1024) / 1024;
            *q = roundf(*q * 1024) / 1024;
            break;
        case 9: // a draft that misses half of the tokens
            *d = x % 2 && r->vocab > 1 ? 0 : *d;
            break;
        case 10: // denormals
            *d = u < .5 ? *d * 1e-41f : *d;
            *q = v < .5 ? *q * 1e-41f : *q;
            break;
        default: break;
        }
    }
    r->draft[0] += r->draft[0] > 0 ? 0 : .1f;
    r->target[r->vocab - 1] += r->target[r->vocab - 1] > 0 ? 0 : .1f;
}

static void reference(const rows *r, int kmax, dsc_rule_acceptance *out)
{
    dsc_error e;
    dsc_curve c = {0};
    double *row[2] = {calloc(r->vocab, sizeof(double)), calloc(r->vocab, sizeof(double))};
    int k[DSC_MAX_DRAFTS];
    for (size_t x = 0; x < r->vocab; x++) {
        row[0][x] = r->draft[x];
        row[1][x] = r->target[x];
    }
    for (int i = 0; i < kmax; i++)
        k[i] = i + 1;
    assert_ok(dsc_probs_check("draft", row[0], r->vocab, true, &e), e);
    assert_ok(dsc_probs_check("target", row[1], r->vocab, true, &e), e);
    assert_ok(dsc_curve_init(&c, row[0], row[1], r->vocab, &e), e);
    dsc_acceptance_of_curve(&c, k, (size_t)kmax, out);
    dsc_curve_fini(&c);
    free(row[0]);
    free(row[1]);
}

static void assert_near(const dsc_rule_acceptance *a, const dsc_rule_acceptance *b, int kmax)
{
    for (int k = 0; k < kmax; k++) {
        assert_int_equal(a[k].k, k + 1);
        assert_close(a[k].single, b[k].single, DSC_ACCEPTANCE_CERTIFIED);
        assert_close(a[k].specinfer, b[k].specinfer, DSC_ACCEPTANCE_CERTIFIED);
        assert_close(a[k].kseq, b[k].kseq, DSC_ACCEPTANCE_CERTIFIED);
        assert_close(a[k].otm, b[k].otm, DSC_ACCEPTANCE_CERTIFIED);
        assert_close(a[k].kseq_rho, b[k].kseq_rho, 1e-5 * b[k].kseq_rho);
        assert_true(a[k].single <= a[k].specinfer && a[k].specinfer <= a[k].kseq &&
                    a[k].kseq <= a[k].otm && a[k].otm <= 1);
        if (k)
            assert_true(a[k].specinfer >= a[k - 1].specinfer && a[k].kseq >= a[k - 1].kseq &&
                        a[k].otm >= a[k - 1].otm);
    }
}

static dsc_acceptance_work *new_work(void)
{
    dsc_error e;
    dsc_acceptance_work *w;
    assert_ok(dsc_acceptance_work_new(&w, &e), e);
    return w;
}

// All kernels against the reference, and bit by bit against each other.
static void check(const rows *r, int kmax, dsc_acceptance_work *w)
{
    dsc_error e;
    dsc_rule_acceptance out[DSC_MAX_DRAFTS], first[DSC_MAX_DRAFTS], exact[DSC_MAX_DRAFTS];
    memset(out, 0, sizeof out);
    memset(first, 0, sizeof first);
    reference(r, kmax, exact);
    for (int i = 0, seen = 0; dsc_rows_kernels[i]; i++) {
        if (!dsc_rows_kernels[i]->supported())
            continue;
        w->kernel = dsc_rows_kernels[i];
        assert_ok(dsc_acceptance_of_rows(r->draft, r->target, r->vocab, kmax, out, w, &e), e);
        assert_near(out, exact, kmax);
        if (!seen++)
            memcpy(first, out, sizeof out);
        for (int k = 0; k < kmax; k++)
            assert_memory_equal(&first[k].single, &out[k].single, 5 * sizeof(double));
    }
}

static void golden(void **state)
{
    (void)state;
    dsc_error e;
    dsc_rule_acceptance out[8];
    dsc_acceptance_work *w = new_work();
    const float draft[] = {.6f, .25f, .1f, .05f}, target[] = {.1f, .2f, .3f, .4f};
    assert_ok(dsc_acceptance_of_rows(draft, target, 4, 8, out, w, &e), e);
    assert_close(out[1].otm, .5775, 1e-6);
    assert_close(out[1].kseq, .550560386369, 1e-6);
    assert_close(out[1].kseq_rho, 1.670402575794, 1e-5);
    assert_close(out[1].specinfer, .5325, 1e-6);
    assert_close(out[7].otm, .936579568711, 1e-6);
    assert_close(out[7].kseq, .814473511234, 1e-6);
    assert_close(out[7].kseq_rho, 4.289470224680, 5e-5);
    assert_close(out[7].specinfer, .776168591836, 1e-6);
    dsc_acceptance_work_free(w);
    dsc_acceptance_work_free(NULL);
}

// Thousands of pairs; each way through the code is taken.
static void random_pairs(void **state)
{
    (void)state;
    static const size_t vocab[] = {1, 2, 3, 7, 40, 129, 300, 1000};
    dsc_acceptance_work *w = new_work();
    int split[3] = {0}, sorted = 0;
    for (uint64_t pair = 0; pair < 3000; pair++) {
        rows r = rows_new(vocab[pair % 8]);
        fill(&r, pair / 8);
        check(&r, pair % 16 ? 16 : DSC_MAX_DRAFTS, w);
        split[w->splits < 2 ? w->splits : 2]++;
        sorted += w->sorted;
        rows_free(&r);
    }
    assert_true(split[0] > 100 && split[1] > 100 && split[2] > 100 && sorted > 10);
    dsc_acceptance_work_free(w);
}

// What the cells claim before any is split, wide as it is, holds.
static void bounds_hold(void **state)
{
    (void)state;
    static const size_t vocab[] = {2, 3, 7, 40, 300};
    dsc_acceptance_work *w = new_work();
    int wide = 0;
    for (uint64_t pair = 0; pair < 2000; pair++) {
        dsc_error e;
        dsc_doubts doubts;
        dsc_rule_acceptance out[16], error[16], exact[16];
        rows r = rows_new(vocab[pair % 5]);
        fill(&r, pair / 5);
        dsc_cells *c = &w->cells;
        assert_ok(dsc_cells_reserve(c, r.vocab, &e), e);
        int octave = 0;
        for (int pass = 0; pass < 2 && abs(octave) <= 100; pass++) {
            dsc_cells_reset(c, octave);
            dsc_rows_kernel_c.histogram(r.draft, r.target, r.vocab,
                                        (127 + DSC_LOWEST_OCTAVE + octave) << 23, c->above, c->slot,
                                        (const void *[]){r.draft, r.target});
            dsc_cells_close(c);
            octave = (int)nearbyint(log2(c->target_sum / c->draft_sum));
        }
        reference(&r, 16, exact);
        dsc_bounds_evaluate(c, 16, out, error, &doubts);
        for (int k = 0; k < 16 && exact[0].single > 1e-7 && abs(octave) <= 100; k++) {
            assert_close(out[k].specinfer, exact[k].specinfer, error[k].specinfer + 1e-12);
            assert_close(out[k].kseq, exact[k].kseq, error[k].kseq + 1e-12);
            assert_close(out[k].otm, exact[k].otm, error[k].otm + 1e-12);
            assert_true(out[k].kseq_rho >= exact[k].kseq_rho * (1 - 1e-6));
            assert_close(out[k].kseq_rho, exact[k].kseq_rho, error[k].kseq_rho + 1e-6 * (k + 1));
            wide += error[k].otm > DSC_ACCEPTANCE_CERTIFIED;
            wide += error[k].specinfer > DSC_ACCEPTANCE_CERTIFIED;
        }
        rows_free(&r);
    }
    assert_true(wide > 1000);
    dsc_acceptance_work_free(w);
}

static void large_vocabularies(void **state)
{
    (void)state;
    static const size_t vocab[] = {200000, 50257, 32000};
    dsc_acceptance_work *w = new_work();
    for (uint64_t pair = 0; pair < 24; pair++) {
        rows r = rows_new(vocab[pair % 8 ? 2 : pair / 8 % 2]);
        fill(&r, pair);
        check(&r, 4, w);
        rows_free(&r);
    }
    dsc_acceptance_work_free(w);
}

// Another sum of a row changes nothing; sums 2^100 apart take the long way.
static void sums(void **state)
{
    (void)state;
    static const double by[][2] = {{1, 3},       {1e4, 1},       {1, 1e-6},    {1e9, 1e-9},
                                   {1e-20, 1e3}, {1e-30, 1e-30}, {1e30, 1e30}, {1e-18, 1e18}};
    dsc_acceptance_work *w = new_work();
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        rows r = rows_new(500);
        fill(&r, 0);
        scale(r.draft, r.vocab, by[i][0]);
        scale(r.target, r.vocab, by[i][1]);
        check(&r, 16, w);
        assert_int_equal(w->sorted, i == 7);
        rows_free(&r);
    }
    dsc_acceptance_work_free(w);
}

static void special_rows(void **state)
{
    (void)state;
    dsc_acceptance_work *w = new_work();
    rows r = rows_new(1000);
    r.draft[3] = r.target[3] = 1; // the same token has all mass
    check(&r, DSC_MAX_DRAFTS, w);
    r.target[3] = 0; // different tokens have all mass
    r.target[4] = 1;
    check(&r, DSC_MAX_DRAFTS, w);
    r.draft[7] = r.target[9] = -0.f;
    check(&r, 4, w);
    r.target[3] = 1e-30f; // almost no common mass
    check(&r, 4, w);
    fill(&r, 0);
    r.draft[7] = r.target[9] = -0.f;
    check(&r, 16, w);
    memcpy(r.target, r.draft, r.vocab * sizeof *r.draft); // equal
    check(&r, DSC_MAX_DRAFTS, w);
    for (size_t x = 0; x < r.vocab; x++) // uniform to a tenth of the tokens
        r.draft[x] = 1e-3f, r.target[x] = x < 100 ? 1e-2f : 0;
    check(&r, DSC_MAX_DRAFTS, w);
    rows_free(&r);
    dsc_acceptance_work_free(w);
}

static void refused(dsc_acceptance_work *w, const rows *r, int status, const char *message)
{
    dsc_error e = {0};
    dsc_rule_acceptance out[1];
    for (int i = 0; dsc_rows_kernels[i]; i++) {
        if (!dsc_rows_kernels[i]->supported())
            continue;
        w->kernel = dsc_rows_kernels[i];
        assert_int_equal(dsc_acceptance_of_rows(r->draft, r->target, r->vocab, 1, out, w, &e),
                         status);
        assert_string_equal(e.message, message);
    }
}

static void hostile_rows(void **state)
{
    (void)state;
    dsc_acceptance_work *w = new_work();
    dsc_rule_acceptance out[1];
    dsc_error e;
    rows r = rows_new(777);
    fill(&r, 0);
    r.draft[700] = -.25f;
    r.target[3] = NAN;
    refused(w, &r, DSC_EINPUT, "draft: element 700 is negative (-0.25)");
    r.draft[700] = 0;
    refused(w, &r, DSC_EINPUT, "target: element 3 is not finite (nan)");
    r.target[3] = 0;
    r.target[776] = INFINITY; // beyond the last whole block
    refused(w, &r, DSC_EINPUT, "target: element 776 is not finite (inf)");
    memset(r.target, 0, r.vocab * sizeof *r.target);
    refused(w, &r, DSC_EINPUT, "target: sums to 0, which no factor makes 1");
    r.vocab = 0;
    refused(w, &r, DSC_EINPUT, "draft: sums to 0, which no factor makes 1");
    r.vocab = 777;
    r.target[0] = 1;
    assert_int_equal(dsc_acceptance_of_rows(r.draft, r.target, 777, 0, out, w, &e), DSC_EUSAGE);
    assert_int_equal(dsc_acceptance_of_rows(r.draft, r.target, 777, 65, out, w, &e), DSC_EUSAGE);
    assert_ok(dsc_acceptance_of_rows(r.draft, r.target, 777, 1, out, w, &e), e);
    rows_free(&r);
    dsc_acceptance_work_free(w);
}

// Rows of any bits, valid or not: nothing is written out of bounds, and sums, slots and selections
// are those of the portable kernel.
static void kernels_agree(void **state)
{
    (void)state;
    enum { MOST = 700, WANTED = 40 };
    static dsc_mass expected[DSC_SLOTS], sum[DSC_SLOTS];
    float draft[MOST], target[MOST];
    uint16_t slot[2][MOST], wanted[WANTED];
    uint32_t found[2][MOST];
    for (uint64_t round = 0; round < 200; round++) {
        size_t n = (size_t)(uniform(round, 0) * MOST), valid = round % 2;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t w[4];
            dsc_rng_words(12, round, i, USE_TEST, w);
            w[0] &= valid ? 0x7f7fffff : UINT32_MAX;
            w[1] &= valid ? 0x7f7fffff : UINT32_MAX;
            if (w[2] % 4 == 0) // near each other, so that slots are inner ones
                w[1] = w[0] ^ (w[3] & 0xffffff);
            memcpy(&draft[i], &w[0], sizeof w[0]);
            memcpy(&target[i], &w[1], sizeof w[1]);
        }
        int32_t first = (127 + DSC_LOWEST_OCTAVE + (int)(round % 5)) << 23;
        memset(expected, 0, sizeof expected);
        const void *ahead[2] = {draft, target};
        uint32_t worst =
            dsc_rows_kernel_c.histogram(draft, target, n, first, expected, slot[0], ahead);
        for (int c = 0; c < WANTED; c++)
            wanted[c] = n ? slot[0][(size_t)c % n] : 0;
        for (int i = 0; dsc_rows_kernels[i]; i++) {
            const dsc_rows_kernel *k = dsc_rows_kernels[i];
            if (!k->supported())
                continue;
            memset(sum, 0, sizeof sum);
            assert_int_equal(k->histogram(draft, target, n, first, sum, slot[1], ahead), worst);
            if (valid)
                assert_memory_equal(sum, expected, sizeof sum);
            assert_memory_equal(slot[0], slot[1], n * sizeof **slot);
            for (size_t count = 0; count <= WANTED; count += 5) {
                size_t a = dsc_rows_kernel_c.select(slot[0], n, wanted, count, found[0]);
                assert_int_equal(k->select(slot[0], n, wanted, count, found[1]), a);
                assert_memory_equal(found[0], found[1], a * sizeof **found);
            }
        }
    }
}

// A work is reused after larger, smaller and refused rows.
static void one_work_for_all(void **state)
{
    (void)state;
    static const size_t vocab[] = {1000, 10, 4000, 1};
    dsc_acceptance_work *w = new_work();
    for (uint64_t i = 0; i < 40; i++) {
        dsc_error e;
        dsc_rule_acceptance again[16], fresh[16];
        dsc_acceptance_work *other = new_work();
        rows r = rows_new(vocab[i % 4]);
        fill(&r, i);
        assert_ok(dsc_acceptance_of_rows(r.draft, r.target, r.vocab, 16, again, w, &e), e);
        assert_ok(dsc_acceptance_of_rows(r.draft, r.target, r.vocab, 16, fresh, other, &e), e);
        for (int k = 0; k < 16; k++)
            assert_memory_equal(&again[k].single, &fresh[k].single, 5 * sizeof(double));
        r.draft[0] = -1;
        assert_int_equal(dsc_acceptance_of_rows(r.draft, r.target, r.vocab, 16, again, w, &e),
                         DSC_EINPUT);
        rows_free(&r);
        dsc_acceptance_work_free(other);
    }
    dsc_acceptance_work_free(w);
}

SUITE(acceptance_rows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(kernels_agree),
        cmocka_unit_test(special_rows),
        cmocka_unit_test(sums),
        cmocka_unit_test(hostile_rows),
        cmocka_unit_test(one_work_for_all),
        cmocka_unit_test(random_pairs),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(large_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
