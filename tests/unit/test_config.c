// SPDX-License-Identifier: Apache-2.0
// Configurations by option name, and what the library returns when it is misused: every mistake
// below gave a silent result or an access out of bounds before it was checked.
#include "sim/cost/price.h"
#include "sim/rule_text.h"
#include "sim/run/result.h"
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

static int ignore_step(void *user, const dsc_step_record *record, dsc_error *err)
{
    (void)user, (void)record, (void)err;
    return DSC_OK;
}

static void runs_check_their_options(void **state)
{
    (void)state;
    dsc_error err;
    dsc_results r;
    dsc_config c;
    dsc_config_init(&c, &dsc_drafter_ngram);
    assert_ok(dsc_config_prepare(&c, &err), err);
    refused(&c, 1, &(dsc_run_options){0}, WORDS("threads is 0", "from 1 to")); // was 0 calls
    refused(&c, 1, &(dsc_run_options){.threads = 1025}, WORDS("threads is 1025", "to 1024"));
    refused(&c, 1, &(dsc_run_options){.threads = 1, .rule = &(dsc_verifier_type){0}},
            WORDS("rule", "verify"));
    const dsc_config two[2] = {c, c};
    refused(two, 2, &(dsc_run_options){.threads = 1, .step = ignore_step}, WORDS("2 config"));
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

// A method that drafts three tokens where its limit is one.
static int propose_three(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                         dsc_error *err)
{
    const dsc_drafter_input *in = state;
    const int64_t left = in->request->output.count - length - 1;
    (void)output;
    return dsc_draft_append_chain(draft, -1, in->request->output.id + length,
                                  (size_t)(left < 3 ? left : 3), err);
}

static int64_t limit_one(const dsc_config *config)
{
    (void)config;
    return 1;
}

static int64_t limit_below_zero(const dsc_config *config)
{
    (void)config;
    return -1;
}

static void drafts_beyond_the_limit_are_refused(void **state)
{
    (void)state;
    static dsc_drafter_type three = {.name = "three",
                                     .sees_output = true,
                                     .state_size = sizeof(dsc_drafter_input),
                                     .propose = propose_three,
                                     .limit = limit_one};
    dsc_config c;
    dsc_config_init(&c, &three);
    refused(&c, 1, &(dsc_run_options){.threads = 1}, WORDS("three", "accepted 3 tokens", "limit"));
    three.limit = limit_below_zero;
    refused(&c, 1, &(dsc_run_options){.threads = 1}, WORDS("three", "limit -1", "at least 0"));
}

// --- values --------------------------------------------------------------------------------------

static void limits_of_unprepared_configurations_are_zero(void **state)
{
    (void)state;
    dsc_error err;
    dsc_config c;
    dsc_config_init(&c, &dsc_drafter_sequoia);
    assert_int_equal(dsc_config_limit(&c) + dsc_config_width(&c) + dsc_config_drafts(&c), 0);
    assert_ok(dsc_config_prepare(&c, &err), err);
    assert_true(dsc_config_limit(&c) > 1);
    assert_true(dsc_config_width(&c) == 64 && dsc_config_draft_width(&c) == 64);
    dsc_config_fini(&c);
    dsc_config_init(&c, &dsc_drafter_draft_model);
    c.parameter[0] = -3;
    assert_int_equal(dsc_config_limit(&c) + dsc_config_draft_width(&c), 0);
}

static void nodes_follow_their_parents(void **state)
{
    (void)state;
    dsc_error err;
    dsc_draft d = {0};
    const int32_t token[2] = {1, 2};
    assert_ok(dsc_draft_append_chain(&d, -1, token, 2, &err), err);
    assert_says(dsc_draft_append_chain(&d, 2, token, 1, &err), &err, WORDS("parent is 2"));
    assert_says(dsc_draft_append_chain(&d, -2, token, 1, &err), &err, WORDS("parent is -2"));
    assert_ok(dsc_draft_append_scored(&d, 1, token, 1, &err), err);
    assert_says(dsc_draft_append_chain(&d, 0, token, 1, &err), &err, WORDS("only scored"));
    assert_true(d.count == 3 && d.proposed == 2 && dsc_draft_length(&d) == 2);
    dsc_draft_fini(&d);
}

static void passes_and_batches_have_ranges(void **state)
{
    (void)state;
    dsc_error err;
    dsc_cost cost;
    dsc_price price;
    const dsc_counts counts = {.output_tokens = 2, .target_calls = 1};
    const dsc_pass bad[] = {{-1, 0, 1, 0}, {1, NAN, 1, 0}, {1, 0, 0, 0}, {1, 0, INFINITY, 0}};
    double s;
    assert_ok(dsc_cost_parse(&cost, "linear:1,1,1", &err), err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_says(dsc_cost_target(&cost, bad[i], &s, &err), &err, WORDS("pass of"));
        assert_says(dsc_cost_draft(&cost, bad[i], &s, &err), &err, WORDS("pass of"));
    }
    const dsc_pass one = {1, 0, 1, false};
    assert_says(dsc_cost_drafts(&cost, one, 1, 1, 2, &s, &err), &err,
                WORDS("2 drafts in 1 passes"));
    assert_says(dsc_price_run(&price, &cost, &counts, 0, &err), &err, WORDS("batch is 0", "65536"));
    assert_says(dsc_price_run(&price, &cost, &counts, 65537, &err), &err, WORDS("batch is 65537"));
    assert_ok(dsc_price_run(&price, &cost, &counts, 65536, &err), err);
}

static void values_outside_their_range_have_no_result(void **state)
{
    (void)state;
    const double row[2] = {.5, .5};
    const dsc_dist dist = {.vocab_size = 2, .dense = row};
    const dsc_counts_room room = {.most = 2, .width = -1};
    int64_t one[1] = {0}, three[3] = {1, 1, 1};
    dsc_counts sum = {.histogram = one, .histogram_length = 1};
    const dsc_counts x = {.requests = 1, .histogram = three, .histogram_length = 3};
    assert_true(isnan(dsc_dist_probability(&dist, 2)) && isnan(dsc_dist_probability(&dist, -1)));
    assert_true(dsc_dist_sample(&dist, 1) == -1 && dsc_dist_sample(&dist, (double)NAN) == -1);
    assert_int_equal(dsc_counts_elements(&room), 0);
    assert_null(dsc_counts_in(one, &room).histogram);
    assert_true(isnan(dsc_iid_block_efficiency(&x, -1)));
    dsc_counts_add(&sum, &x);
    assert_int_equal(sum.requests + one[0], 0);
}

// A table is exchanged by the names of its columns, so a parameter may share its column with one of
// another method, but with no result.
static void parameters_and_results_have_different_columns(void **state)
{
    (void)state;
    dsc_error err;
    size_t count = 0, parameters = 0;
    while (dsc_drafters()[count])
        count++;
    dsc_table t = {0};
    assert_ok(dsc_result_columns(&t, dsc_drafters(), count,
                                 DSC_RESULT_REQUEST | DSC_RESULT_INTERVAL | DSC_RESULT_BATCH |
                                     DSC_RESULT_SPREAD,
                                 &err),
              err);
    for (size_t c = 0; c < t.columns; c++)
        if (dsc_table_find(&t, t.column[c].name) != (int)c)
            fail_msg("two columns '%s'", t.column[c].name);
    for (size_t d = 0; d < count; d++)
        for (size_t o = 0; o < dsc_drafters()[d]->option_count; o++, parameters++) {
            char name[DSC_PARAMETER_NAME];
            dsc_parameter_name(&dsc_drafters()[d]->option[o], name);
            const int at = dsc_table_find(&t, name);
            assert_true(at > dsc_table_find(&t, "rule"));
            if (at >= dsc_table_find(&t, "requests"))
                fail_msg("%s: column '%s' is a result", dsc_drafters()[d]->name, name);
        }
    assert_true(parameters > 40);
    dsc_table_fini(&t);
}

// `list -v` prints these.
static void every_method_and_rule_has_a_source(void **state)
{
    (void)state;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        if (!(*d)->source || !(*d)->engines || !(*d)->recording)
            fail_msg("%s lacks a source, engines or a recording", (*d)->name);
        if (!strstr((*d)->source, "arXiv ") && !strstr((*d)->source, "no paper"))
            fail_msg("%s: '%s' is neither a paper nor none", (*d)->name, (*d)->source);
        const bool models_only = !strcmp((*d)->recording, "none");
        if (((*d)->needs_off_path || (*d)->needs_middle) != models_only && !(*d)->needs_draft)
            fail_msg("%s: '%s' does not fit what it needs", (*d)->name, (*d)->recording);
    }
    for (const dsc_verifier_type *const *v = dsc_verifiers(); *v; v++) {
        if (!(*v)->source || !(*v)->engines)
            fail_msg("%s lacks a source or engines", (*v)->name);
        if (!strstr((*v)->source, "arXiv ") && !strstr((*v)->source, "no paper"))
            fail_msg("%s: '%s' is neither a paper nor none", (*v)->name, (*v)->source);
    }
}

static void a_method_of_a_program_must_not_name_a_result(void **state)
{
    (void)state;
    dsc_error err;
    const dsc_option option = {.name = "target-calls", .kind = DSC_OPTION_INT, .max = 1};
    const dsc_drafter_type own = {.name = "own", .option = &option, .option_count = 1};
    dsc_table t = {0};
    assert_says(dsc_result_columns(&t, (const dsc_drafter_type *const[]){&own}, 1, 0, &err), &err,
                WORDS("target_calls", "two columns", "dsc_option.column"));
    dsc_table_fini(&t);
}

// Commas separate rules and the values of one.
static void lists_of_rules_are_split_at_names(void **state)
{
    (void)state;
    static const char *const list[][2] = {
        {"greedy", ""},
        {"greedy,kseq", "kseq"},
        {"typical:0.3,0.09,greedy", "greedy"},
        {"typical:.3,.09,greedy", "greedy"},
        {"relaxed:4,-.5,+2,typical:.3,.09", "typical:.3,.09"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const size_t n = dsc_rule_text_length(list[i][0]);
        assert_string_equal(list[i][0] + n + (list[i][0][n] == ','), list[i][1]);
    }
}

SUITE(config)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_goes_by_its_name),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(runs_check_their_configurations),
        cmocka_unit_test(runs_check_their_options),
        cmocka_unit_test(drafts_beyond_the_limit_are_refused),
        cmocka_unit_test(limits_of_unprepared_configurations_are_zero),
        cmocka_unit_test(nodes_follow_their_parents),
        cmocka_unit_test(passes_and_batches_have_ranges),
        cmocka_unit_test(values_outside_their_range_have_no_result),
        cmocka_unit_test(parameters_and_results_have_different_columns),
        cmocka_unit_test(every_method_and_rule_has_a_source),
        cmocka_unit_test(a_method_of_a_program_must_not_name_a_result),
        cmocka_unit_test(lists_of_rules_are_split_at_names),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
