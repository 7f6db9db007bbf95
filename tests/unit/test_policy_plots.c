// SPDX-License-Identifier: Apache-2.0
// The figure of policies: its bars are the regrets of the table in percent, each load has its name,
// policies beyond the styles are left out by name, and rows that cannot be told apart are refused.
#include "tests/unit/plot_check.h"
#include "tests/unit/plot_fixture.h"

#include <math.h>

#define FIELDS                                                                                     \
    "method$ num_speculative_tokens# speculation$ arrivals$ qps clients# requests# e2e_mean_s "    \
    "best_fixed_k regret_fixed regret_oracle"

static void add_policy(dsc_table *t, const char *method, const char *policy, double k, double qps,
                       double clients, const double *regret)
{
    char arrivals[32];
    snprintf(arrivals, sizeof arrivals, "load:%g", isnan(qps) ? clients : qps);
    add_row(t, (double[]){k, qps, clients, 10, 1, 3, regret[0], regret[1]},
            (const char *[]){method, policy, arrivals});
}

static void fill(dsc_table *t, const char *method, bool clients)
{
    static const char *const policy[] = {"fixed", "adaptive:calibrated", "o'hara"};
    if (!t->columns)
        add_named(t, FIELDS);
    add_policy(t, "none", "", 0, clients ? NAN : 1, clients ? 1 : 0, (double[]){NAN, NAN});
    for (int p = 0; p < 3; p++)
        for (int load = 1; load <= 64; load *= 8)
            add_policy(t, method, policy[p], 4, clients ? NAN : load, clients ? load : 0,
                       (double[]){.01 * p - .005 * load, .25 * load});
}

static void bars(void **state)
{
    (void)state;
    for (int clients = 0; clients < 2; clients++) {
        dsc_table t = {0};
        dsc_drawing d;
        fill(&t, "draft-model", clients);
        draw("policies", &t, NULL, "svg", &d);
        check_script(&d.script);
        assert_int_equal(d.data.rows, 9);
        for (size_t i = 0; i < 9; i++) {
            const double load = pow(8, (double)(i % 3));
            assert_true(drawn(&d, i, "load") == load);
            assert_close(drawn(&d, i, "regret_fixed_percent"), (double)(i / 3) - .5 * load, 1e-9);
            assert_close(drawn(&d, i, "regret_oracle_percent"), 25 * load, 1e-9);
            assert_true(drawn(&d, i, "best_fixed_k") == 3);
        }
        assert_contains(&d.script, "set xtics ('1' 0, '8' 1, '64' 2)");
        assert_contains(&d.script, "with boxes");
        assert_contains(&d.script, clients ? "clients of a closed loop" : "requests per second");
        assert_contains(&d.finding, "adaptive:calibrated: 0.5 % at 1, -31 % at 64");
        dsc_drawing_fini(&d);
        draw("policies", &t, NULL, "dumb", &d);
        dsc_drawing_fini(&d);
        dsc_table_fini(&t);
    }
}

static void many(void **state)
{
    (void)state;
    dsc_table t = {0};
    dsc_drawing d;
    fill(&t, "draft-model", true);
    for (int p = 0; p < 9; p++) {
        char name[32];
        snprintf(name, sizeof name, "adaptive:constant:.%d", p);
        add_policy(&t, "draft-model", name, 4, NAN, 8, (double[]){.1, .2});
    }
    draw("policies", &t, NULL, "svg", &d);
    assert_contains(&d.script, "8 of 12 policies");
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
    fill(&t, "draft-model", true);
    fill(&t, "eagle", true);
    draw("policies", &t, NULL, "svg", &d);
    assert_contains(&d.script, "eagle, fixed");
    assert_int_equal(d.data.rows, 18);
    dsc_drawing_fini(&d);
    dsc_table_fini(&t);
}

static void refused(void **state)
{
    (void)state;
    dsc_table t = {0};
    fill(&t, "draft-model", true);
    add_policy(&t, "draft-model", "fixed", 5, NAN, 8, (double[]){.1, .2});
    refuse("policies", &t, NULL, "two rows have policy fixed at 8");
    dsc_table_fini(&t);
    add_named(&t, FIELDS);
    add_policy(&t, "draft-model", "fixed", 5, NAN, 8, (double[]){NAN, NAN});
    refuse("policies", &t, NULL, "regret_fixed");
    dsc_table_fini(&t);
    add_named(&t, "method$ speculation$ qps clients# requests# e2e_mean_s");
    add_row(&t, (double[]){1, 0, 10, 1}, (const char *[]){"ngram", "fixed"});
    refuse("policies", &t, NULL, "best_fixed_k");
    dsc_table_fini(&t);
}

SUITE(policy_plots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars),
        cmocka_unit_test(many),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, enter_scratch, leave_scratch);
}
