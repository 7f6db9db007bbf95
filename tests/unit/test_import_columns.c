// SPDX-License-Identifier: Apache-2.0
// Tests columns as JSON lines: their values are in the trace, an export reads back to the same
// trace, and each wrong field is refused by name.
#include "tests/close.h"
#include "tests/unit/import_fixture.h"

#include <math.h>

// Two outputs, then none; without outputs, the parameters determine the recorded columns.
#define EVERYTHING                                                                                 \
    "{\"id\": \"a\", \"prompt\": [1], \"output\": [2, 3], \"logprobs\": [-0.5, -0.0], "            \
    "\"draft_logprobs\": [null, -1.1754942e-38], \"draft_argmax\": [2, 257], "                     \
    "\"target_argmax\": [0, 3], \"draft_entropy\": [0, 1.25], \"target_entropy\": [3.25, 0.1], "   \
    "\"draft_ranks\": {\"depth\": 2, \"ranks\": [[0, 1], [256, null]]}, "                          \
    "\"statistics\": {\"k\": 2, \"kseq\": [[[1, 0.5], [2, 1]], [[1, 0], [1.5, 0.1]]], "            \
    "\"specinfer\": [[0, 1, 1.5], [0, 0, 0]], "                                                    \
    "\"otm\": [[0, 1, 0.25, 0.5, 0.25], [1, 0, 0.1, 0.2, 0.7]]}, "                                 \
    "\"rollouts\": {\"length\": 1, \"draft\": [[5], [6]], \"target\": [[5, 7], [8, 9]]}, "         \
    "\"candidates\": {\"steps\": 1, \"topk\": 3, \"nodes\": 2, \"token\": [[5, 6], [7, 0]], "      \
    "\"parent\": [[0, 1], [0, null]], \"logp\": [[-0.5, -1], [-0.1, null]], "                      \
    "\"scored\": [[1], [2]]}, "                                                                    \
    "\"marginals\": {\"offsets\": 1, \"top\": 2, \"token\": [[[5, 6]], [[7, 8]]], "                \
    "\"logp\": [[[-0.1, -3]], [[-1, null]]], \"logp_y\": [[-2], [-9]]}, "                          \
    "\"steps\": {\"aligned\": true, \"accepted\": [0, 0], \"drafted\": [3, 0], "                   \
    "\"draft_s\": [0.25, 0], \"verify_s\": [1e-3, 2]}, "                                           \
    "\"accept\": {\"z\": {\"cap\": 4, \"accepted\": [4, 1]}, "                                     \
    "\"b.2\": {\"cap\": 1, \"accepted\": [0, 1]}}}\n"                                              \
    "{\"id\": \"b\", \"prompt\": [1], \"output\": [], \"logprobs\": [], \"draft_logprobs\": [], "  \
    "\"draft_argmax\": [], \"target_argmax\": [], \"draft_entropy\": [], \"target_entropy\": [], " \
    "\"draft_ranks\": {\"depth\": 2, \"ranks\": []}, "                                             \
    "\"statistics\": {\"k\": 2, \"kseq\": [], \"specinfer\": [], \"otm\": []}, "                   \
    "\"rollouts\": {\"length\": 1, \"draft\": [], \"target\": []}, "                               \
    "\"candidates\": {\"nodes\": 2, \"topk\": 3, \"steps\": 1, \"token\": [], \"parent\": [], "    \
    "\"logp\": [], \"scored\": []}, \"marginals\": {\"offsets\": 1, \"top\": 2, \"token\": [], "   \
    "\"logp\": [], \"logp_y\": []}, "                                                              \
    "\"steps\": {\"aligned\": true, \"accepted\": [], \"drafted\": [], \"draft_s\": [], "          \
    "\"verify_s\": []}, \"accept\": {\"b.2\": {\"accepted\": [], \"cap\": 1}, "                    \
    "\"z\": {\"cap\": 4, \"accepted\": []}}}\n"

// The lines in the order of their requests.
static const char *reversed(void)
{
    static char text[sizeof EVERYTHING];
    const char *second = strchr(EVERYTHING, '\n') + 1;
    snprintf(text, sizeof text, "%s%.*s", second, (int)(second - EVERYTHING), EVERYTHING);
    return text;
}

static void test_read(void **state)
{
    (void)state;
    for (int first_is_empty = 0; first_is_empty < 2; first_is_empty++) {
        opened o = import_good(first_is_empty ? reversed() : EVERYTHING, &plain);
        const dsc_trace_info *info = o.info;
        assert_int_equal(info->rank_depth, 2);
        assert_int_equal(info->statistics_k, 2);
        assert_int_equal(info->rollout_length, 1);
        assert_int_equal(info->steps, DSC_STEPS_ALIGNED);
        assert_int_equal(info->drafters, 2);
        assert_string_equal(info->drafter[first_is_empty].name, "z");
        assert_int_equal(info->drafter[first_is_empty].cap, 4);
        dsc_request q = request(&o, first_is_empty);
        assert_true(q.target_logp[0] == -0.5f && signbit(q.target_logp[1]));
        assert_true(q.draft_logp[0] == -INFINITY && q.draft_logp[1] == -1.1754942e-38f);
        assert_int_equal(q.replayed.argmax[DSC_SIDE_DRAFT][1], 257);
        assert_int_equal(q.replayed.argmax[DSC_SIDE_TARGET][1], 3);
        assert_true(q.replayed.entropy[DSC_SIDE_DRAFT][1] == 1.25f);
        assert_true(q.replayed.entropy[DSC_SIDE_TARGET][0] == 3.25f);
        assert_int_equal(q.replayed.draft_rank[2], 256);
        assert_int_equal(q.replayed.draft_rank[3], DSC_RANK_NONE);
        assert_true(q.sufficient.kseq[2] == 2 && q.sufficient.kseq[7] == 0.1f);
        assert_true(q.sufficient.specinfer[2] == 1.5f);
        assert_true(dsc_sufficient_otm(&q.sufficient, 2, 1, 2)[2] == 0.7f);
        assert_int_equal(q.rollouts.draft[1], 6);
        assert_int_equal(q.rollouts.target[3], 9);
        assert_int_equal(info->candidate_nodes, 2);
        assert_int_equal(info->candidate_topk, 3);
        assert_int_equal(info->candidate_steps, 1);
        assert_int_equal(q.candidates.token[2], 7);
        assert_int_equal(q.candidates.parent[1], 1);
        assert_int_equal(q.candidates.parent[3], DSC_PARENT_NONE);
        assert_true(q.candidates.logp[1] == -1 && q.candidates.logp[3] == -INFINITY);
        assert_int_equal(q.candidates.scored[1], 2);
        assert_int_equal(info->marginal_offsets, 1);
        assert_int_equal(info->marginal_top, 2);
        assert_int_equal(q.marginals.token[3], 8);
        assert_true(q.marginals.logp[1] == -3 && q.marginals.logp_y[1] == -9);
        assert_int_equal(q.steps.count, 2);
        assert_int_equal(q.steps.drafted[0], 3);
        assert_true(q.steps.draft_s[0] == 0.25f && q.steps.verify_s[0] == 1e-3f);
        assert_int_equal(q.accept[first_is_empty][0], 4);
        assert_int_equal(q.accept[!first_is_empty][0], 0);
        assert_int_equal(request(&o, !first_is_empty).steps.count, 0);
        close_trace(&o);
    }
}

static void export_to(const char *trace, const char *path)
{
    dsc_trace *t;
    dsc_error err;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_ok(dsc_trace_open(&t, trace, &err), err);
    assert_ok(dsc_trace_export(t, "jsonl", f, &err), err);
    assert_int_equal(fclose(f), 0);
    dsc_trace_close(t);
}

// The trace, exported and imported again, has the same hash, and is described by the same manifest.
static void expect_round_trip(const char *text)
{
    dsc_error err;
    const char *paths[] = {text_path};
    char *parameters[2];
    opened o = import_good(text, &plain);
    close_trace(&o);
    export_to(out_path, text_path);
    assert_ok(dsc_import(paths, 1, bytes, second_path, &plain, NULL, &err), err);
    opened a = open_trace(out_path), b = open_trace(second_path);
    assert_string_equal(a.info->hash, b.info->hash);
    for (int i = 0; dsc_trace_recorded(a.info, i) || dsc_trace_recorded(b.info, i); i++)
        assert_string_equal(dsc_trace_recorded(a.info, i), dsc_trace_recorded(b.info, i));
    assert_ok(dsc_trace_parameters(&parameters[0], a.info, &err), err);
    assert_ok(dsc_trace_parameters(&parameters[1], b.info, &err), err);
    assert_string_equal(parameters[0], parameters[1]);
    free(parameters[0]);
    free(parameters[1]);
    close_trace(&a);
    close_trace(&b);
    remove_trace(second_path);
}

#define FIELDS "\"prompt\": [1], \"output\": [2, 3], "

static void test_round_trip(void **state)
{
    (void)state;
    expect_round_trip(EVERYTHING);
    expect_round_trip(reversed());
    static const char *const alone[] = {
        "\"draft_logprobs\": [null, -14.7794695]",
        "\"draft_argmax\": [255, 0]",
        "\"target_argmax\": [255, 0]",
        "\"draft_entropy\": [-0.0, 14.7794695]",
        "\"target_entropy\": [1e-45, 3.4028234e38]",
        "\"draft_ranks\": {\"depth\": 1, \"ranks\": [[255], [null]]}",
        "\"statistics\": {\"k\": 1, \"kseq\": [[[1, 0.123456789]], [[1, 1]]]}",
        "\"statistics\": {\"k\": 1, \"specinfer\": [[0, 1], [0, 0.3]]}",
        "\"statistics\": {\"k\": 1, \"otm\": [[0.5, 0.5], [0, 1]]}",
        "\"rollouts\": {\"length\": 2, \"draft\": [[1, 2], [3, 4]]}",
        "\"rollouts\": {\"length\": 2, \"target\": [[1, 2, 5], [3, 4, 6]]}",
        ("\"candidates\": {\"steps\": 2, \"topk\": 1, \"nodes\": 2, \"token\": [[1, 2], [3, 0]], "
         "\"parent\": [[0, 0], [0, null]], \"logp\": [[-1, -1], [0, null]], "
         "\"scored\": [[1, 1], [1, 0]]}"),
        ("\"marginals\": {\"offsets\": 2, \"top\": 1, \"token\": [[[1], [2]], [[3], [4]]], "
         "\"logp\": [[[-1], [null]], [[0], [-0.0]]], \"logp_y\": [[-1, null], [-3, 0]]}"),
        "\"steps\": {\"accepted\": [65535, 7]}",
        "\"steps\": {\"aligned\": false, \"accepted\": [9], \"verify_s\": [0.1]}",
        "\"steps\": {\"aligned\": true, \"accepted\": [0], \"draft_s\": [0.1]}",
        "\"accept\": {\"x\": {\"cap\": 65535, \"accepted\": [65535, 0]}}",
    };
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        char line[400];
        snprintf(line, sizeof line, "{" FIELDS "%s}\n", alone[i]);
        expect_round_trip(line);
    }
}

static void test_export_text(void **state)
{
    (void)state;
    char got[2048] = "";
    opened o = import_good("{\"id\": \"x\", " FIELDS "\"draft_logprobs\": [null, -1], "
                           "\"draft_ranks\": {\"depth\": 2, \"ranks\": [[0, 1], [2, null]]}, "
                           "\"statistics\": {\"k\": 1, \"kseq\": [[[1, 0.5]], [[1, 1]]]}, "
                           "\"steps\": {\"accepted\": [3], \"drafted\": [4]}, "
                           "\"accept\": {\"d\": {\"cap\": 5, \"accepted\": [0, 5]}}}",
                           &plain);
    close_trace(&o);
    export_to(out_path, text_path);
    FILE *f = fopen(text_path, "r");
    assert_non_null(f);
    assert_true(fread(got, 1, sizeof got - 1, f) > 0);
    fclose(f);
    assert_string_equal(got, "{\"id\":\"x\",\"prompt\":{\"text\":\"\\u0001\",\"tokens\":[1]},"
                             "\"output\":{\"text\":\"\\u0002\\u0003\",\"tokens\":[2,3]},"
                             "\"draft_logprobs\":[null,-1],"
                             "\"draft_ranks\":{\"depth\":2,\"ranks\":[[0,1],[2,null]]},"
                             "\"statistics\":{\"k\":1,\"kseq\":[[[1,0.5]],[[1,1]]]},"
                             "\"steps\":{\"aligned\":false,\"accepted\":[3],\"drafted\":[4]},"
                             "\"accept\":{\"d\":{\"cap\":5,\"accepted\":[0,5]}}}\n");
}

// One line with FIELDS and what is given.
static const struct {
    const char *fields, *word;
} bad[] = {
    {"\"draft_logprobs\": 1", "field 'draft_logprobs' must be an array of numbers, not a number"},
    {"\"draft_logprobs\": [-1, \"x\"]",
     "field 'draft_logprobs[1]' must be a number or null, not a"},
    {"\"draft_logprobs\": [-1, 1e-9]", "field 'draft_logprobs[1]' is 1e-09; the logarithm"},
    {"\"draft_logprobs\": [-1, -1e300]", "field 'draft_logprobs[1]' is -1e+300; the logarithm"},
    {"\"draft_logprobs\": [-1]",
     "field 'draft_logprobs' has 1 numbers, but the output has 2 tokens"},
    {"\"logprobs\": [-1, null]", "field 'logprobs[1]' must be a number, not null"},
    {"\"draft_argmax\": [1, 2.0]", "field 'draft_argmax[1]' must be an integer, not a number"},
    {"\"draft_argmax\": [1, -1]", "field 'draft_argmax[1]' is -1; it must be 0 to 2147483647"},
    {"\"draft_argmax\": [1, 258]", "'draft.argmax'[1]: token id 258 is outside the vocabulary"},
    {"\"draft_argmax\": [1, null]", "field 'draft_argmax[1]' must be an integer, not null"},
    {"\"draft_entropy\": [1, -1]", "'draft.entropy'[1]: -1 is not finite and >= 0"},
    {"\"draft_entropy\": [1, 1e39]", "field 'draft_entropy[1]' is 1e+39; the limit is"},
    {"\"draft_ranks\": []", "field 'draft_ranks' must be an object, not an array"},
    {"\"draft_ranks\": {\"ranks\": []}", "field 'draft_ranks.depth' is missing"},
    {"\"draft_ranks\": {\"depth\": 0, \"ranks\": []}", "'draft_ranks.depth' is 0; it must be 1 to"},
    {"\"draft_ranks\": {\"depth\": 1e9, \"ranks\": []}", "'draft_ranks.depth' must be an integer"},
    {"\"draft_ranks\": {\"depth\": 1, \"rank\": []}", "unknown field 'draft_ranks.rank'"},
    {"\"draft_ranks\": {\"depth\": 1, \"ranks\": [1, 2]}",
     "field 'draft_ranks.ranks[0]' must be an array of numbers, not a number"},
    {"\"draft_ranks\": {\"depth\": 1, \"ranks\": [[1], [1, 2]]}",
     "field 'draft_ranks.ranks[1]' has 2 elements; it must have 1"},
    {"\"draft_ranks\": {\"depth\": 1, \"ranks\": [[1], [65535]]}",
     "field 'draft_ranks.ranks[1][0]' is 65535; it must be 0 to 65534"},
    {"\"draft_ranks\": {\"depth\": 1, \"ranks\": [[1], [300]]}",
     "'draft.rank_y'[1]: rank 300 is outside"},
    {"\"draft_ranks\": {\"depth\": 65535, \"ranks\": [[1], [1]]}",
     "field 'draft_ranks.ranks[0]' has 1 elements; it must have 65535"},
    {"\"draft_ranks\": {\"depth\": 1, \"ranks\": [[1]]}",
     "field 'draft_ranks.ranks' has 1 rows, but the output has 2 tokens"},
    {"\"statistics\": {\"k\": 65}", "field 'statistics.k' is 65; it must be 1 to 64"},
    {"\"statistics\": {\"k\": 2, \"kseq\": [[1, 0.5]]}",
     "'statistics.kseq[0][0]' must be an array"},
    {"\"statistics\": {\"k\": 1, \"kseq\": [[[1]]]}", "'statistics.kseq[0][0]' has 1 elements"},
    {"\"statistics\": {\"k\": 1, \"kseq\": [[[1, 0.5]], [[1.5, 1]]]}",
     "'stat.kseq'[2]: 1.5 is not"},
    {"\"statistics\": {\"k\": 1, \"specinfer\": [[0, 1], [1, 1]]}", "'stat.specinfer'[2]: 1;"},
    {"\"statistics\": {\"k\": 1, \"otm\": [[0, 1], [1, 1]]}", "'stat.otm'[2]: 1 is not in"},
    {"\"rollouts\": {\"length\": 1, \"target\": [[1], [1]]}",
     "[0]' has 1 elements; it must have 2"},
    {"\"candidates\": {\"steps\": 1, \"topk\": 1, \"token\": []}", "field 'candidates.nodes' is"},
    {"\"candidates\": {\"steps\": 1, \"topk\": 1, \"nodes\": 1, \"token\": [[1], [1]], "
     "\"logp\": [[0], [0]], \"scored\": [[1], [1]]}",
     "field 'candidates.parent' has 0 rows, but the output has 2 tokens"},
    {"\"candidates\": {\"steps\": 1, \"topk\": 1, \"nodes\": 1, \"token\": [[1], [1]], "
     "\"parent\": [[0], [1]], \"logp\": [[0], [0]], \"scored\": [[1], [1]]}",
     "'candidate.parent'[1]: parent 1; it must be 0"},
    {"\"marginals\": {\"offsets\": 1, \"top\": 2, \"token\": [[[1, 2]], [[3]]]}",
     "field 'marginals.token[1][0]' has 1 elements; it must have 2"},
    {"\"steps\": {\"drafted\": [1]}", "field 'steps.accepted' is missing"},
    {"\"steps\": {\"accepted\": [1], \"aligned\": 1}", "field 'steps.aligned' must be a boolean"},
    {"\"steps\": {\"accepted\": [65536]}",
     "field 'steps.accepted[0]' is 65536; it must be 0 to 65535"},
    {"\"steps\": {\"accepted\": [1], \"drafted\": [1, 2]}",
     "field 'steps.drafted' has 2 numbers, but there are 1 steps"},
    {"\"steps\": {\"accepted\": [3], \"drafted\": [2]}",
     "step 0 accepted 3 tokens but drafted only 2"},
    {"\"steps\": {\"accepted\": [3], \"draft_s\": [-1]}", "'step.draft_s'[0]: -1 is not finite"},
    {"\"steps\": {\"accepted\": [1, 0], \"aligned\": true}",
     "aligned steps must add up to the output"},
    {"\"steps\": {\"accepted\": [1], \"times\": []}", "unknown field 'steps.times'"},
    {"\"accept\": []", "field 'accept' must be an object with at least one drafter"},
    {"\"accept\": {}", "field 'accept' must be an object with at least one drafter"},
    {"\"accept\": {\"x\": [1, 2]}", "field 'accept.x' must be an object, not an array"},
    {"\"accept\": {\"x\": {\"cap\": 1}}", "field 'accept.x.accepted' is missing"},
    {"\"accept\": {\"x\": {\"accepted\": []}}", "field 'accept.x.cap' is missing"},
    {"\"accept\": {\"x\": {\"cap\": 65536, \"accepted\": []}}",
     "'accept.x.cap' is 65536; it must be 1"},
    {"\"accept\": {\"x\": {\"cap\": 1, \"accepted\": [], \"y\": 1}}",
     "'accept.x' must have the members"},
    {"\"accept\": {\"x\": {\"cap\": 1, \"accepted\": [0, 2]}}", "'accept.x'[1]: length 2 is above"},
    {"\"accept\": {\"x\": {\"cap\": 1, \"accepted\": [0]}}", "'accept.x.accepted' has 1 numbers"},
    {"\"accept\": {\"x y\": {\"cap\": 1, \"accepted\": [0, 0]}}", "a drafter's name must be"},
};

static void test_bad_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char line[400];
        dsc_error err;
        snprintf(line, sizeof line, "{" FIELDS "%s}\n", bad[i].fields);
        assert_int_equal(import(line, bytes, &plain, NULL, &err), DSC_EINPUT);
        if (!strstr(err.message, bad[i].word) || !strstr(err.message, "in.jsonl:1: "))
            fail_msg("'%s' instead of '%s'", err.message, bad[i].word);
    }
}

// All requests have a column or none, and the same parameters.
static void test_all_or_none(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *word;
    } cases[] = {
        {"\"draft_argmax\": [1, 2]", NULL, "field 'draft_argmax' is missing, but earlier requests"},
        {NULL, "\"draft_argmax\": [1, 2]",
         "field 'draft_argmax' is present, but earlier requests lack it"},
        {"\"steps\": {\"accepted\": [1]}", "\"steps\": {\"accepted\": [1], \"draft_s\": [1]}",
         "field 'steps.draft_s' is present"},
        {"\"steps\": {\"accepted\": [1]}", "\"steps\": {\"accepted\": [1], \"aligned\": true}",
         "field 'steps': the steps are aligned, but those of earlier requests are not"},
        {"\"draft_ranks\": {\"depth\": 1, \"ranks\": [[1], [1]]}",
         "\"draft_ranks\": {\"depth\": 2, \"ranks\": [[1, 2], [1, 2]]}",
         "field 'draft_ranks.depth' is 2, but 1 in earlier requests"},
        {"\"accept\": {\"x\": {\"cap\": 1, \"accepted\": [0, 0]}}",
         "\"accept\": {\"x\": {\"cap\": 2, \"accepted\": [0, 0]}}",
         "field 'accept.x.cap' is 2, but 1 in earlier requests"},
        {"\"accept\": {\"x\": {\"cap\": 1, \"accepted\": [0, 0]}}",
         "\"accept\": {\"y\": {\"cap\": 1, \"accepted\": [0, 0]}}",
         "field 'accept.y' is present, but earlier requests lack it"},
        {"\"accept\": {\"x\": {\"cap\": 1, \"accepted\": [0, 0]}}", NULL,
         "field 'accept.x' is missing, but earlier requests have it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char lines[600];
        dsc_error err;
        int64_t left_out;
        const char *first = cases[i].first, *second = cases[i].second;
        snprintf(lines, sizeof lines, "{" FIELDS "%s}\n{" FIELDS "%s}\n{" FIELDS "%s}\n",
                 first ? first : "\"metadata\": {}", second ? second : "\"metadata\": {}",
                 first ? first : "\"metadata\": {}");
        assert_int_equal(import(lines, bytes, &plain, NULL, &err), DSC_EINPUT);
        if (!strstr(err.message, cases[i].word) || !strstr(err.message, "in.jsonl:2: "))
            fail_msg("'%s' instead of '%s'", err.message, cases[i].word);
        dsc_import_options skip = plain;
        skip.skip_errors = true;
        assert_ok(import(lines, bytes, &skip, &left_out, &err), err);
        assert_int_equal(left_out, 1);
        opened o = open_trace(out_path);
        assert_int_equal(o.info->requests, 2);
        close_trace(&o);
    }
}

SUITE(import_columns)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_export_text), cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_all_or_none),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
