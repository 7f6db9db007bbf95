// SPDX-License-Identifier: Apache-2.0
// Sampling on a device, where rows of logits are summed on the device and fetched block by block,
// gives the same tokens as on a CPU, for every method and rule, with and without top-k and top-p.
// Logits differ by rounding, so a sample would differ if a uniform fell that close to a bound,
// which does not happen in these cases.
#include "tests/cross/device.h"
#include "tests/cross/live_bench.h"
#include "tests/zero_counts.h"

#include <stdio.h>
#include <stdlib.h>

enum { VOCAB = 300, PROMPT = 8, TOKENS = 5, CONTEXT = 64, TEXTS = 2 };

static const char *device;

static const live_sampling sampling[] = {
    {1, 0, 1}, {0.7, 20, 1}, {1.3, 0, 0.9}, {2, 100, 0.5}, {0, 0, 1}};
enum { SAMPLINGS = sizeof sampling / sizeof *sampling, RUNS = 4000 };

// Tokens of every method with every rule, sampled with each of these distributions. Quick mode uses
// one distribution per pair, varying from pair to pair, and one text.
static int run_all(const char *where, bool quick, int32_t (*text)[TOKENS], char (*name)[80])
{
    bench b;
    int64_t histogram[NODES + 1];
    int runs = 0, pairs = 0;
    bench_init(&b, where, VOCAB, PROMPT, TOKENS, CONTEXT);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
            dsc_draft_kind made;
            dsc_config c;
            if (!fits(*d, *v, &made))
                continue;
            short_config(&c, *d);
            for (int i = 0; i < (quick ? 1 : SAMPLINGS * TEXTS); i++) {
                const int how = (*v)->greedy ? SAMPLINGS - 1
                                : quick      ? pairs % (SAMPLINGS - 1)
                                             : i % SAMPLINGS;
                dsc_counts counts = zero_counts(histogram, NODES);
                assert_true(runs < RUNS);
                snprintf(name[runs], sizeof *name, "%s, %s, temperature %g", (*d)->name, (*v)->name,
                         sampling[how].temperature);
                memcpy(text[runs++],
                       bench_run(&b, &c, *v, made, i, i / SAMPLINGS, &sampling[how], &counts),
                       sizeof *text);
            }
            pairs++;
            dsc_config_fini(&c);
        }
    bench_fini(&b);
    return runs;
}

static void draws_are_those_of_the_cpu(void **state)
{
    static int32_t here[RUNS][TOKENS], there[RUNS][TOKENS];
    static char name[RUNS][80];
    const bool quick = few_or_many(1, 0);
    (void)state;
    const int runs = run_all("cpu", quick, here, name);
    assert_true(runs >= 20);
    assert_int_equal(run_all(device, quick, there, name), runs);
    for (int i = 0; i < runs; i++)
        for (int t = 0; t < TOKENS; t++)
            if (here[i][t] != there[i][t])
                fail_msg("%s, token %d: %d here, %d there", name[i], t, here[i][t], there[i][t]);
}

// Requests with other distributions in sessions that have replayed passes of the previous ones.
static void a_session_follows_its_sampling(void **state)
{
    static const live_sampling how[] = {{1, 0, 1},    {0.3, 0, 1},  {0, 0, 1}, {1, 5, 1},
                                        {1, 50, 0.8}, {3, 0, 0.99}, {1, 0, 1}};
    enum { DISTS = sizeof how / sizeof *how };
    static int32_t text[2][DISTS][TOKENS];
    (void)state;
    for (int side = 0; side < 2; side++) {
        bench b;
        dsc_config c;
        int64_t histogram[NODES + 1];
        dsc_counts counts = zero_counts(histogram, NODES);
        bench_init(&b, side ? device : "cpu", VOCAB, PROMPT, TOKENS, CONTEXT);
        short_config(&c, &dsc_drafter_draft_model);
        for (int i = 0; i < DISTS; i++) {
            const bool greedy = how[i].temperature == 0;
            memcpy(text[side][i],
                   bench_run(&b, &c, greedy ? &dsc_verifier_greedy : &dsc_verifier_rejection,
                             greedy ? DSC_DRAFT_TOPK : DSC_DRAFT_SAMPLED, 3, 1, &how[i], &counts),
                   sizeof text[side][i]);
        }
        dsc_config_fini(&c);
        bench_fini(&b);
    }
    for (int i = 0; i < DISTS; i++)
        assert_memory_equal(text[0][i], text[1][i], sizeof text[0][i]);
    assert_memory_equal(text[0][0], text[0][DISTS - 1], sizeof text[0][0]);
    assert_memory_not_equal(text[0][0], text[0][1], sizeof text[0][0]);
}

SUITE(live_device)
{
    device = chosen_device("cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_those_of_the_cpu),
        cmocka_unit_test(a_session_follows_its_sampling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
