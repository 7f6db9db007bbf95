// SPDX-License-Identifier: Apache-2.0
// Configurations by option name, and what the library returns when it is misused: every mistake
// below gave a silent result or an access out of bounds before it was checked.
#include "sim/run/run.h"
#include "tests/unit/model_fixture.h"
#include "traces/import/import.h"

#include <limits.h>
#include <string.h>

static void assert_says(int rc, const dsc_error *err, const char *const *words)
{
    assert_int_equal(rc, DSC_EUSAGE);
    assert_int_equal(err->status, DSC_EUSAGE);
    for (; *words; words++)
        if (!strstr(err->message, *words))
            fail_msg("'%s' is not in: %s", *words, err->message);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

// --- configurations ------------------------------------------------------------------------------

// Every method, option by option: the default as text and the value read back are the same, and a
// value outside the range is refused by name and leaves the configuration unchanged.
static void every_option_goes_by_its_name(void **state)
{
    (void)state;
    dsc_error err;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        dsc_config c, again;
        dsc_config_init(&c, *d);
        dsc_config_init(&again, *d);
        for (size_t o = 0; o < (*d)->option_count; o++) {
            const dsc_option *x = &(*d)->option[o];
            if (x->initial)
                assert_ok(dsc_config_set(&c, x->name, x->initial, &err), err);
            if (x->kind == DSC_OPTION_INT || x->kind == DSC_OPTION_CHOICE) {
                assert_true(c.parameter[o] == again.parameter[o]);
                assert_says(dsc_config_set(&c, x->name, "-77", &err), &err, WORDS(x->name, "-77"));
                assert_true(c.parameter[o] == again.parameter[o]);
            } else if (x->kind == DSC_OPTION_REAL) {
                assert_true(c.real[o] >= x->least && c.real[o] <= x->most);
                assert_says(dsc_config_set(&c, x->name, "1,2", &err), &err, WORDS(x->name));
            } else {
                assert_true(c.text[o] == x->initial || !strcmp(c.text[o], x->initial));
            }
            if (x->synonyms && x->initial) {
                char first[64];
                snprintf(first, sizeof first, "%.*s", (int)strcspn(x->synonyms, "|"), x->synonyms);
                assert_ok(dsc_config_set(&c, first, x->initial, &err), err);
            }
        }
    }
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    dsc_error err;
    dsc_config c;
    const char *name = dsc_drafter_ngram.option[0].name;
    char near[64];
    snprintf(near, sizeof near, "%sx", name);
    dsc_config_init(&c, &dsc_drafter_ngram);
    assert_says(dsc_config_set(&c, near, "3", &err), &err,
                WORDS(near, dsc_drafter_ngram.name, name));
    assert_says(dsc_config_set(&c, name, NULL, &err), &err, WORDS(name, "needs a value"));
    dsc_config_init(&c, dsc_drafter_find("no-such-method", &err));
    assert_says(dsc_config_set(&c, name, "3", &err), &err, WORDS("no drafting method"));
    assert_says(dsc_config_prepare(&c, &err), &err, WORDS("no drafting method"));
    dsc_config_init(&c, &dsc_drafter_none);
    assert_says(dsc_config_set(&c, "k", "3", &err), &err, WORDS("none", "'k'", "has no options"));
}

// Arrays that are filled by position, zeroed or wrong, do not pass.
static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    dsc_error err;
    dsc_config c = {.drafter = &dsc_drafter_llma, .parameter = {1, -1, 5}};
    assert_says(dsc_config_prepare(&c, &err), &err,
                WORDS("llma", dsc_drafter_llma.option[1].name, "-1", "must be from"));
    c = (dsc_config){.drafter = &dsc_drafter_llma};
    assert_says(dsc_config_prepare(&c, &err), &err, WORDS("llma", " is 0; it must be from 1"));
    dsc_config_init(&c, &dsc_drafter_llma);
    c.parameter[dsc_drafter_llma.option_count - 1] = 99;
    for (size_t o = 0; o < dsc_drafter_llma.option_count; o++)
        if (dsc_drafter_llma.option[o].kind == DSC_OPTION_CHOICE)
            c.parameter[o] = 4;
    assert_says(dsc_config_prepare(&c, &err), &err, WORDS("must be from 0 to"));
    c = (dsc_config){.drafter = &dsc_drafter_spectr_tree};
    assert_says(dsc_config_prepare(&c, &err), &err, WORDS("spectr-tree", "has no value"));
    dsc_config_init(&c, &dsc_drafter_threshold);
    for (size_t o = 0; o < dsc_drafter_threshold.option_count; o++)
        c.real[o] = (double)NAN;
    assert_says(dsc_config_prepare(&c, &err), &err, WORDS("threshold", "nan"));
    const dsc_drafter_type empty = {.name = "empty"};
    dsc_config_init(&c, &empty);
    assert_says(dsc_config_prepare(&c, &err), &err, WORDS("empty", "lacks the function"));
}

// --- runs ----------------------------------------------------------------------------------------

static dsc_trace *trace;

static int open_trace(void **state)
{
    static const char lines[] = "{\"prompt\":[1,2,3,4],\"output\":[2,3,4,1,2,3,4,5]}\n"
                                "{\"prompt\":[5,6,7],\"output\":[6,7,5,6,7,5]}\n";
    dsc_error err;
    char source[PATH_MAX];
    const char *const paths[] = {source};
    const dsc_import_options o = {.vocab_size = 10, .force = true, .version = "t", .command = "t"};
    if (make_scratch(state))
        return -1;
    snprintf(source, sizeof source, "%s", in_scratch("config.jsonl"));
    FILE *f = fopen(source, "w");
    if (!f || fputs(lines, f) < 0 || fclose(f))
        return -1;
    assert_ok(dsc_import(paths, 1, NULL, in_scratch("config.dst"), &o, NULL, &err), err);
    assert_ok(dsc_trace_open(&trace, in_scratch("config.dst"), &err), err);
    return 0;
}

static int close_trace(void **state)
{
    dsc_trace_close(trace);
    return remove_scratch(state);
}

static void refused(const dsc_config *c, size_t count, const dsc_run_options *o,
                    const char *const *words)
{
    dsc_error err;
    dsc_results r;
    assert_says(dsc_run(trace, c, count, o, &r, &err), &err, words);
    assert_null(r.counts);
}

static void runs_check_their_configurations(void **state)
{
    (void)state;
    const dsc_run_options o = {.threads = 1};
    dsc_config c = {.drafter = &dsc_drafter_llma};
    refused(&c, 1, &o, WORDS("llma", "must be from")); // was a silent 1.0
    c = (dsc_config){.drafter = &dsc_drafter_llma, .parameter = {1, -1, 5}};
    refused(&c, 1, &o, WORDS("llma", "-1", "must be from")); // was out of bounds
    dsc_config_init(&c, &dsc_drafter_suffix);
    refused(&c, 0, &o, WORDS("no configuration"));
    dsc_config two[2];
    dsc_config_init(&two[0], &dsc_drafter_none);
    dsc_config_init(&two[1], &dsc_drafter_ngram);
    refused(two, 2, &o, WORDS(dsc_drafter_ngram.name, "none", "one method"));
    dsc_config_init(&c, &dsc_drafter_spectr_tree);
    refused(&c, 1, &o, WORDS("spectr-tree", "dsc_config_prepare"));
}

static void runs_check_their_options(void **state)
{
    (void)state;
    dsc_error err;
    dsc_results r;
    dsc_config c;
    dsc_config_init(&c, &dsc_drafter_ngram);
    assert_ok(dsc_config_prepare(&c, &err), err);
    refused(&c, 1, &(dsc_run_options){0}, WORDS("threads is 0", "at least 1")); // was 0 calls
    refused(&c, 1, &(dsc_run_options){.threads = 1, .engine = (dsc_engine)7}, WORDS("engine is 7"));
    refused(&c, 1, &(dsc_run_options){.threads = 1, .first_request = 2, .end_request = 1},
            WORDS("[2, 1)", "range"));
    refused(&c, 1, &(dsc_run_options){.threads = 1, .end_request = 3},
            WORDS("[0, 3)", "2 requests"));
    assert_says(dsc_run(NULL, &c, 1, &(dsc_run_options){.threads = 1}, &r, &err), &err,
                WORDS("neither a trace nor a workload"));
    assert_ok(dsc_run(trace, &c, 1, &(dsc_run_options){.threads = 1}, &r, &err), err);
    assert_int_equal(r.counts[0].requests, 2);
    assert_int_equal(r.counts[0].output_tokens, 14);
    dsc_results_fini(&r);
    dsc_config_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_goes_by_its_name),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(runs_check_their_configurations),
        cmocka_unit_test(runs_check_their_options),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
