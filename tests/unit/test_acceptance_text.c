// SPDX-License-Identifier: Apache-2.0
// Acceptance as people have it: every form of sim/acceptance.h against rates worked out by hand or
// counted from the same drafts, in every way of writing lists; tables; and what is refused.
#include "sim/acceptance.h"
#include "base/memory.h"
#include "tests/scratch.h"
#include "theory/block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static dsc_acceptance_rates rates_of(const char *text)
{
    dsc_acceptance_rates r = {0};
    dsc_error err;
    assert_ok(dsc_acceptance_rates_read(&r, text, &err), err);
    return r;
}

// Checks the rates and, at the end, that of later positions.
static void check_rates(const char *text, const double *expected, int positions, double later)
{
    dsc_acceptance_rates r = rates_of(text);
    double filled[16];
    if (r.positions != positions)
        fail_msg("%s: %d positions", text, r.positions);
    dsc_acceptance_rates_fill(&r, positions + 2, filled);
    for (int j = 0; j < positions; j++)
        assert_close(filled[j], expected[j], 1e-12);
    for (int j = positions; j < positions + 2; j++)
        assert_true(isnan(later) ? isnan(filled[j]) : fabs(filled[j] - later) < 1e-12);
    dsc_acceptance_rates_fini(&r);
}

static void lists_are_read(void **state)
{
    (void)state;
    const double given[] = {.8, .75, .5};
    const char *const conditional[] = {
        ".8,.75,.5",   "0.8, 0.75, 0.5",   "(0.8, 0.75, 0.5)", "[0.8,0.75,0.5]", ".8;.75;.5",
        "80%,75%,50%", "80 %, 75 %, 50 %", "80,75,50",         ".8 .75 .5",      "80.0; 75.0; 50.0",
        "80, 75, 50%", " .8 , .75 ,\t.5 ", "8e-1,.75,.5"};
    const char *const unconditional[] = {".8,.6,.3", "(0.8, 0.6, 0.3)", "80 %, 60 %, 30 %",
                                         "0.8;0.6;0.3", "80.0, 60.0, 30.0"};
    char text[200];
    for (size_t i = 0; i < sizeof conditional / sizeof *conditional; i++) {
        snprintf(text, sizeof text, "conditional:%s", conditional[i]);
        check_rates(text, given, 3, NAN);
        snprintf(text, sizeof text, "conditional:%s,later=.25", conditional[i]);
        check_rates(text, given, 3, .25);
    }
    for (size_t i = 0; i < sizeof unconditional / sizeof *unconditional; i++) {
        snprintf(text, sizeof text, "rates:%s", unconditional[i]);
        check_rates(text, given, 3, NAN);
    }
    check_rates("histogram:200,200,300,300", given, 3, NAN);
    check_rates("histogram:[200;200;300;300]", given, 3, NAN);
    put_text(in_scratch("list"), "# by position\n0.8 # first\n\n 75e-2\n.5\n");
    snprintf(text, sizeof text, "conditional:%s", in_scratch("list"));
    check_rates(text, given, 3, NAN);
}

// One rate for all positions: that of iid, or the one with this mean at this draft length.
static void one_rate_is_read(void **state)
{
    (void)state;
    check_rates("iid:.7", (double[]){.7}, 1, .7);
    check_rates("iid:70%", (double[]){.7}, 1, .7);
    const char *const text[] = {"al:2.533@3", "rate:.511@3", "rate:51.1%@3", "al: 2.533 @ 3"};
    for (int i = 0; i < 4; i++) {
        dsc_acceptance_rates r = rates_of(text[i]);
        assert_int_equal(r.positions, 1);
        assert_close(r.later, .7, 1e-12);
        assert_non_null(strstr(r.note, "assumed"));
        assert_true(r.one_draft);
        dsc_acceptance_rates_fini(&r);
    }
    check_rates("al:1@4", (double[]){0}, 1, 0);
    check_rates("al:5@4", (double[]){1}, 1, 1);
    check_rates("iid:0", (double[]){0}, 1, 0);
    dsc_acceptance_rates r = rates_of("iid:.7,request-sd=.8");
    assert_true(r.request_sd == .8 && !r.one_draft);
    dsc_acceptance_rates_fini(&r);
}

// What no draft reaches has no influence, whatever the list says there.
static void unreached_positions_are_zero(void **state)
{
    (void)state;
    check_rates("histogram:500,0,0,0", (double[]){0, 0, 0}, 3, 0);
    check_rates("histogram:250,250,0,0", (double[]){.5, 0, 0}, 3, 0);
    check_rates("rates:.34,0,0", (double[]){.34, 0, 0}, 3, 0);
    check_rates("conditional:.34,0,.9", (double[]){.34, 0, 0}, 3, 0);
    check_rates("rates:.85", (double[]){.85}, 1, NAN);
}

// The forms of the same drafts give the same rates: drafts are counted one by one.
static void forms_agree(void **state)
{
    (void)state;
    enum { LENGTH = 5, DRAFTS = 1000 };
    unsigned seed = 7;
    for (int round = 0; round < 50; round++) {
        int64_t bin[LENGTH + 1] = {0}, reached[LENGTH + 1] = {0}, total = 0;
        double rate[LENGTH];
        char text[3][400] = {"histogram:", "rates:", "conditional:"}, mean[100];
        for (int j = 0; j < LENGTH; j++)
            rate[j] = (double)(rand_r(&seed) % 100) / 100;
        for (int d = 0; d < DRAFTS; d++) {
            int m = 0;
            while (m < LENGTH && rand_r(&seed) % 100 < 100 * rate[m])
                m++;
            bin[m]++;
            total += m;
            for (int j = 0; j <= m; j++)
                reached[j]++;
        }
        for (int j = 0; j <= LENGTH; j++)
            snprintf(text[0] + strlen(text[0]), 100, "%s%d", j ? "," : "", (int)bin[j]);
        for (int j = 1; j <= LENGTH; j++) {
            snprintf(text[1] + strlen(text[1]), 100, "%s%.17g", j > 1 ? "," : "",
                     (double)reached[j] / DRAFTS);
            snprintf(text[2] + strlen(text[2]), 100, "%s%.17g", j > 1 ? "," : "",
                     reached[j - 1] ? (double)reached[j] / (double)reached[j - 1] : 0);
        }
        const double length = 1 + (double)total / DRAFTS;
        snprintf(mean, sizeof mean, "mean acceptance length %.4g", length);
        double expected[LENGTH];
        for (int f = 0; f < 3; f++) {
            dsc_acceptance_rates r = rates_of(text[f]);
            assert_int_equal(r.positions, LENGTH);
            for (int j = 0; j < LENGTH; j++)
                if (f)
                    assert_close(r.conditional_rate[j], expected[j], 1e-12);
                else
                    expected[j] = r.conditional_rate[j];
            if (!strstr(r.note, mean))
                fail_msg("%s: '%s' does not say '%s'", text[f], r.note, mean);
            dsc_acceptance_rates_fini(&r);
        }
        snprintf(text[0], sizeof text[0], "al:%.17g@%d", length, LENGTH);
        dsc_acceptance_rates r = rates_of(text[0]);
        assert_close(1 + dsc_iid_accepted(r.later, LENGTH), length, 1e-12);
        dsc_acceptance_rates_fini(&r);
    }
}

// Conditional rates that never rise may be unconditional ones: both lengths are told. Published
// examples: vLLM's rates at 6 draft tokens, whose log prints a mean acceptance length of 4.74.
static void notes_tell_what_was_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says, *not ;
    } cases[] = {
        {"rates:.917,.837,.648,.538,.451,.348", "length 4.739 at 6 draft tokens", "never rises"},
        {"conditional:.917,.837,.648,.538,.451,.348", "length 3.612 at 6 draft tokens",
         "length 4.74 at"},
        {"conditional:.917,.837,.648,.538,.451,.348", "rates: is the form, and the length 4.739",
         "length 4.74 at"},
        {"conditional:.917,.9128,.7742,.8302,.8383,.7716", "length 4.739 at 6", "never rises"},
        {"conditional:.7,.7,.7", "length 2.533 at 3", "never rises"},
        {"rates:.34,0", "at 2 draft tokens or more", "never rises"},
        {"histogram:20753,20574,17911,53606", "length 2.925 at 3", "never rises"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dsc_acceptance_rates r = rates_of(cases[i].text);
        if (!strstr(r.note, cases[i].says) || strstr(r.note, cases[i].not ))
            fail_msg("%s: '%s'", cases[i].text, r.note);
        dsc_acceptance_rates_fini(&r);
    }
    dsc_acceptance_rates r = rates_of("iid:.7");
    assert_string_equal(r.note, "");
    dsc_acceptance_rates_fini(&r);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        int status;
    } bad[] = {
        {"rates:.9,.95", "conditional: takes rates of the drafts", DSC_EUSAGE},
        {"rates:84.4,.599", "0.599 stands among percentages", DSC_EUSAGE},
        {"rates:84.4%,.599", "0.599 stands among percentages", DSC_EUSAGE},
        {"rates:120,80", "0 to 100%, not 120%", DSC_EUSAGE},
        {"rates:.9,-.1", "not -0.1", DSC_EUSAGE},
        {"rates:1.2,.9", "1.2 is neither a rate from 0 to 1 nor clearly a percentage", DSC_EUSAGE},
        {"iid:1.5", "write 1.5% if it is one", DSC_EUSAGE},
        {"rates:", "rates:R1,R2,...[,later=H] is expected", DSC_EUSAGE},
        {"rates:()", "neither numbers nor a file", DSC_EINPUT},
        {"rates:.9,,.8", "a number is expected where ',' stands", DSC_EUSAGE},
        {"rates:.9,.8,", "a number is expected where 'end' stands", DSC_EUSAGE},
        {"rates:[.9,.8", "the list has no ']'", DSC_EUSAGE},
        {"rates:(.9),.8", "',.8' follows the list", DSC_EUSAGE},
        {"rates:.9,x", "neither numbers nor a file", DSC_EINPUT},
        {"rates:nan", "neither numbers nor a file", DSC_EINPUT},
        {"rates:1e999", "a number is expected where '1e999' stands", DSC_EUSAGE},
        {"rates:.9,later=2", "'2' is not a number from 0 to 1", DSC_EUSAGE},
        {"rates:.9,latr=.2", "did you mean --later", DSC_EUSAGE},
        {"rates:.9,request-sd=1", "unknown option --request-sd", DSC_EUSAGE},
        {"iid:.9,.8", "iid: has one rate", DSC_EUSAGE},
        {"al:6.5@5", "from 1 to 6", DSC_EUSAGE},
        {"al:.5@5", "accepted tokens per draft are one less", DSC_EUSAGE},
        {"al:62%@5", "from 1 to 6", DSC_EUSAGE},
        {"al:3.1", "al:3.1@K", DSC_EUSAGE},
        {"al:3.1@0", "al:3.1@K", DSC_EUSAGE},
        {"al:3.1@x", "al:3.1@K", DSC_EUSAGE},
        {"al:3.1@5,later=.5", "takes no items", DSC_EUSAGE},
        {"rate:.9,.8", "rates by position are rates: or conditional:", DSC_EUSAGE},
        {"rate:.9,.8@2", "2 numbers before the @", DSC_EUSAGE},
        {"histogram:5", "at least two", DSC_EUSAGE},
        {"histogram:0,0", "no drafts", DSC_EUSAGE},
        {"histogram:1.5,2", "1.5 is not a number of drafts", DSC_EUSAGE},
        {"histogram:-1,2", "-1 is not a number of drafts", DSC_EUSAGE},
        {".9,.8", "rates:... are shares of all drafts, as vLLM prints them", DSC_EUSAGE},
        {".7", "iid:A is a rate for every position", DSC_EUSAGE},
        {"rats:.9", "did you mean rates", DSC_EUSAGE},
        {"", "acceptance", DSC_EUSAGE},
        {"table:/nowhere/at all", "/nowhere/at all", DSC_EINPUT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_acceptance_rates r = {0};
        dsc_error err = {0};
        const int status = dsc_acceptance_rates_read(&r, bad[i].text, &err);
        if (status != bad[i].status || err.status != status || !strstr(err.message, bad[i].says))
            fail_msg("%s: %d '%s' does not say '%s'", bad[i].text, status, err.message,
                     bad[i].says);
        assert_null(r.conditional_rate);
    }
    put_text(in_scratch("rates"), "0.9\n1.25\n");
    dsc_acceptance_rates r = {0};
    dsc_error err;
    char text[400];
    snprintf(text, sizeof text, "conditional:%s", in_scratch("rates"));
    assert_int_equal(dsc_acceptance_rates_read(&r, text, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "1.25 is neither"));
}

// --- tables --------------------------------------------------------------------------------------

static void check_table(const char *table, const char *item, const double *expected, int positions,
                        double later, const char *says)
{
    char text[600];
    put_text(in_scratch("totals.tsv"), table);
    for (int named = 0; named < 2; named++) {
        snprintf(text, sizeof text, "%s%s%s", named ? "table:" : "", in_scratch("totals.tsv"),
                 item);
        assert_true(dsc_acceptance_is(text));
        check_rates(text, expected, positions, later);
        dsc_acceptance_rates r = rates_of(text);
        if (!strstr(r.note, says))
            fail_msg("'%s' does not say '%s'", r.note, says);
        dsc_acceptance_rates_fini(&r);
    }
}

static void tables_are_read(void **state)
{
    (void)state;
    const double three[] = {.8, .75, .5};
    check_table("conditional_acceptance_rate\n0.8;0.75;0.5\n", "", three, 3, NAN,
                "length 2.7 at 3");
    check_table("acceptance_rate_pos\n0.8;0.6;0.3\n", "", three, 3, NAN, "length 2.7 at 3");
    check_table("accept_histogram\n200;200;300;300\n", "", three, 3, NAN, "length 2.7 at 3");
    check_table("accept_histogram\n200;200;300;300\n", ",later=.5", three, 3, .5,
                "length 2.7 at 3");
    // A list of one number is a number; the first column of these decides.
    check_table("acceptance_rate_pos\tconditional_acceptance_rate\n0.85\t0.85\n", "",
                (double[]){.85}, 1, NAN, "length 1.85 at 1");
    check_table("conditional_acceptance_rate\n0\n", "", (double[]){0}, 1, 0, "length 1 at 1");
    check_table("mean_acceptance_length\tnum_drafts\tnum_draft_tokens\n2.533\t100\t300\n", "",
                (double[]){.7}, 1, .7, "assumed");
    check_table("id\taccept_histogram\ne0\t1;1\ne1\t3;1\nall\t4;2\n", "", (double[]){1. / 3}, 1,
                NAN, "row 'all'");
    check_table("id\taccept_histogram\ne0\t1;1\ne1\t3;1\nall\t4;2\n", ",id=e1", (double[]){.25}, 1,
                NAN, "row 'e1'");
    check_table("k\taccept_histogram\n1\t1;1\n2\t3;1\n", ",later=.5,k=2", (double[]){.25}, 1, .5,
                "length");
    // The row goes on to the end of the text.
    check_table("id\taccept_histogram\na=\"0\",b=\"1\"\t1;3\nx\t1;1\n", ",id=a=\"0\",b=\"1\"",
                (double[]){.75}, 1, NAN, "length 1.75");
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *table, *item, *says;
    } bad[] = {
        {"speedup\n2\n", "", "no table with a column such as acceptance_rate_pos"},
        {"id\taccept_histogram\na\t1;1\nb\t3;1\n", "", "2 rows and none of all together"},
        {"id\taccept_histogram\na\t1;1\na\t3;1\n", ",id=a", "2 rows have id=a"},
        {"id\taccept_histogram\na\t1;1\n", ",id=b", "0 rows have id=b"},
        {"id\taccept_histogram\na\t1;1\n", ",ix=b", "no column 'ix'"},
        {"id\taccept_histogram\na\t1;1\n", ",later=.5, id=b", "0 rows have id=b"},
        {"acceptance_rate_pos\n0.5;0.6\n", "", "above 0.5"},
        {"conditional_acceptance_rate\n0.5;1.5\n", "", "not in [0, 1]"},
        {"mean_acceptance_length\tnum_drafts\tnum_draft_tokens\n2.5\t100\t310\n", "",
         "all of one length"},
        {"mean_acceptance_length\nnan\n", "", "neither acceptance rates by position nor"},
        {"acceptance_rate_pos\tx\n\t1\n", "", "neither acceptance rates by position nor"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_acceptance_rates r = {0};
        dsc_error err = {0};
        char text[600];
        put_text(in_scratch("totals.tsv"), bad[i].table);
        snprintf(text, sizeof text, "%s%s", in_scratch("totals.tsv"), bad[i].item);
        const int status = dsc_acceptance_rates_read(&r, text, &err);
        if (status != DSC_EINPUT || !strstr(err.message, bad[i].says))
            fail_msg("%s: %d '%s' does not say '%s'", bad[i].table, status, err.message,
                     bad[i].says);
    }
}

SUITE(acceptance_text)
{
#define IN_SCRATCH(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {IN_SCRATCH(lists_are_read),
                                       cmocka_unit_test(one_rate_is_read),
                                       cmocka_unit_test(unreached_positions_are_zero),
                                       cmocka_unit_test(forms_agree),
                                       cmocka_unit_test(notes_tell_what_was_understood),
                                       IN_SCRATCH(what_cannot_be_is_refused),
                                       IN_SCRATCH(tables_are_read),
                                       IN_SCRATCH(bad_tables_are_refused)};
    return cmocka_run_group_tests_name("acceptance_text", tests, NULL, NULL);
}
