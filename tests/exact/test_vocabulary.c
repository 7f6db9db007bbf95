// SPDX-License-Identifier: Apache-2.0
// Drafts from a subset of the vocabulary, for every subset of small vocabularies: no number of
// drafts is accepted more often than the target's mass inside, the target restricted to the subset
// reaches it with one draft, and the optimum equals the bound over all sets of tokens.
#include "tests/close.h"
#include "tests/exact/draws.h"
#include "theory/vocabulary.h"

// 1 - max over all sets A of draft(A)^k - target(A), by enumeration.
static double optimum(const double *draft, const pair *p, int k)
{
    double most = 0;
    for (unsigned set = 0; set < 1u << p->vocab; set++)
        most = fmax(most, pow(fmin(mass_of(draft, p->vocab, set), 1), k) -
                              mass_of(p->target, p->vocab, set));
    return 1 - most;
}

static void check_subset(const pair *p, unsigned subset)
{
    static const int k[] = {1, 2, 5, 64};
    enum { COUNT = sizeof k / sizeof *k };
    double room[MAX_VOCAB], accept[COUNT], restricted[MAX_VOCAB];
    bool in[MAX_VOCAB];
    dsc_error err = {0};
    for (size_t x = 0; x < p->vocab; x++)
        in[x] = subset >> x & 1;
    const double inside = mass_of(p->draft, p->vocab, subset),
                 limit = dsc_vocabulary_limit(p->target, p->vocab, in);
    assert_close(limit, fmin(mass_of(p->target, p->vocab, subset), 1), 1e-14);
    assert_ok(dsc_vocabulary_otm(p->draft, p->target, p->vocab, in, k, COUNT, room, accept, &err),
              err);
    for (size_t x = 0; x < p->vocab; x++)
        restricted[x] = in[x] && inside > 0 ? p->draft[x] / inside : 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(accept[i] <= limit + 1e-12);
        assert_true(i == 0 || accept[i] >= accept[i - 1] - 1e-12);
        assert_close(accept[i], inside > 0 ? optimum(restricted, p, k[i]) : 0, 1e-12);
    }
    assert_ok(dsc_vocabulary_otm(p->target, p->target, p->vocab, in, k, 1, room, accept, &err),
              err);
    assert_close(accept[0], limit, 1e-12);
}

static void every_subset_is_within_its_bound(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 4 * PAIR_SHAPES; n++) {
        const pair p = small_pair(n, 1 + n % 6);
        if (n % PAIR_SHAPES == PAIR_DENORMAL)
            continue; // a subset's mass may be too small to divide by
        for (unsigned subset = 0; subset < 1u << p.vocab; subset++)
            check_subset(&p, subset);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    const double row[1] = {1};
    const bool in[1] = {true};
    const int k[1] = {1};
    double room[1], accept[1];
    dsc_error err = {0};
    assert_true(isnan(dsc_vocabulary_limit(NULL, 1, in)));
    assert_int_equal(dsc_vocabulary_otm(row, row, 1, NULL, k, 1, room, accept, &err), DSC_EUSAGE);
}

SUITE(vocabulary)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_subset_is_within_its_bound),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
