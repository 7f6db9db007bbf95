// SPDX-License-Identifier: Apache-2.0
// Logs of serving programs, fields that the user names, and what an import tells about its source.
// The inputs are in tests/data/import; with the bytes tokenizer their characters are their tokens.
#include "tests/unit/import_fixture.h"

#include "tests/close.h"
#include "traces/import/import_map.h"

static opened import_log(const char *name, const char *format)
{
    char inside[128], path[512];
    dsc_import_options options = plain;
    dsc_error err;
    snprintf(inside, sizeof inside, "tests/data/import/%s", name);
    const char *paths[] = {source_path(inside, path, sizeof path)};
    options.note = keep_note;
    notes[0] = '\0';
    if (dsc_import(paths, 1, bytes, out_path, &options, NULL, &err))
        fail_msg("%s", err.message);
    opened o = open_trace(out_path);
    assert_string_equal(o.info->format, format);
    return o;
}

static void expect_steps(const dsc_steps *s, int64_t count, const int *accepted, const int *drafted)
{
    assert_int_equal(s->count, count);
    assert_int_equal(s->drafted != NULL, drafted != NULL);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(s->accepted[i], accepted[i]);
        if (drafted)
            assert_int_equal(s->drafted[i], drafted[i]);
    }
}

static double number(const dsc_request *q, const char *name)
{
    json_t *m = json_loadb(q->metadata.bytes, (size_t)q->metadata.length, 0, NULL);
    const json_t *v = json_object_get(m, name);
    const double x = json_is_number(v) ? json_number_value(v) : -1;
    json_decref(m);
    return x;
}

// --- responses -----------------------------------------------------------------------------------

// Responses next to their requests: of a proxy with two choices, of a batch file, of llama.cpp.
static void test_responses(void **state)
{
    (void)state;
    opened o = import_log("responses.jsonl", "vllm");
    assert_int_equal(o.info->requests, 4);
    dsc_request q = request(&o, 1);
    expect_text(q.id, "r1/2");
    expect_text(q.prompt_text, "user: Count\nassistant:");
    expect_text(q.output_text, "two");
    q = request(&o, 2);
    expect_text(q.id, "r2");
    expect_tokens(q.output, "three$"); // six tokens by the source
    assert_close(number(&q, "wall_time"), 1.2005, 1e-12);
    assert_close(number(&q, "new_tokens"), 6, 0);
    q = request(&o, 3);
    expect_text(q.prompt_text, "direct");
    assert_close(number(&q, "num_accepted_draft_tokens"), 2, 0);
    expect_note("warning: 1 of 4 requests have no prompt");
    expect_note("6 output tokens in 1.2 s (5.0 tokens/s)");
    assert_null(strstr(notes, "models"));
    close_trace(&o);
}

// Ten tokens: the prefill's, three, one, and five of steps without a draft. Four tokens of which
// steps wrote five after the prefill's: two were cut off, or all three and a step had no draft.
static void test_missing_steps(void **state)
{
    (void)state;
    opened o = import_log("vllm_steps.jsonl", "vllm");
    dsc_request q = request(&o, 0);
    expect_steps(&q.steps, 7, (int[]){2, 0, 0, 0, 0, 0, 0}, (int[]){3, 2, 0, 0, 0, 0, 0});
    q = request(&o, 1);
    expect_steps(&q.steps, 2, (int[]){0, 3}, (int[]){3, 3});
    expect_note("5 were added to 1 requests");
    expect_note("up to 1 steps without a draft may be missing in 1 requests");
    close_trace(&o);
}

static void test_streams(void **state)
{
    (void)state;
    opened o = import_log("stream.jsonl", "stream");
    assert_int_equal(o.info->requests, 1);
    dsc_request q = request(&o, 0);
    expect_text(q.id, "a");
    expect_tokens(q.prompt, "hi");
    expect_tokens(q.output, "Hey$");
    expect_text(q.output_text, "Hey");
    expect_note("1 streams have no chunk with a finish_reason and were left out");
    close_trace(&o);
}

// --- serving -------------------------------------------------------------------------------------

static void test_vcr(void **state)
{
    (void)state;
    opened o = import_log("vcr.jsonl", "vcr");
    assert_int_equal(o.info->steps, DSC_STEPS_ALIGNED);
    assert_int_equal(o.info->requests, 3);
    dsc_request q = request(&o, 0);
    expect_tokens(q.output, "abcdef");
    expect_steps(&q.steps, 2, (int[]){1, 2}, NULL);
    assert_close(number(&q, "arrival_s"), 1.5, 1e-12);
    assert_close(number(&q, "wall_time"), 0.15, 1e-12);
    q = request(&o, 1); // without itl_tokens: a token per gap
    expect_steps(&q.steps, 2, (int[]){0, 0}, NULL);
    q = request(&o, 2); // the first chunk had two tokens
    expect_steps(&q.steps, 2, (int[]){1, 2}, NULL);
    expect_note("3 of 3 requests have no prompt");
    close_trace(&o);
}

static void test_benchmark(void **state)
{
    (void)state;
    opened o = import_log("bench.json", "bench");
    assert_int_equal(o.info->requests, 2);
    dsc_request q = request(&o, 1);
    expect_tokens(q.output, "hello");
    assert_close(number(&q, "arrival_s"), 0.75, 1e-12);
    assert_close(number(&q, "ttft_s"), 0.2, 1e-12);
    assert_close(number(&q, "wall_time"), 0.23, 1e-12);
    expect_note("1 requests that had failed were left out");
    close_trace(&o);
}

static void test_llamacpp(void **state)
{
    (void)state;
    opened o = import_log("llamacpp.jsonl", "llamacpp");
    dsc_request q = request(&o, 0);
    expect_text(q.prompt_text, "Say hi");
    expect_tokens(q.output, "hi$");
    assert_close(number(&q, "wall_time"), 0.06, 1e-12);
    assert_close(number(&q, "num_draft_tokens"), 4, 0);
    close_trace(&o);
}

// --- fields --------------------------------------------------------------------------------------

static void test_pairs(void **state)
{
    (void)state;
    opened o =
        import_good("[{\"prompt\": \"p\", \"completion\": \"c\", \"category\": \"qa\"},\n"
                    " {\"input\": [112], \"response\": \"d\", \"finish_reason\": \"length\"}]\n",
                    &plain);
    assert_string_equal(o.info->format, "completion");
    dsc_request q = request(&o, 0);
    expect_tokens(q.output, "c$");
    expect_text(q.metadata, "{\"category\":\"qa\"}");
    q = request(&o, 1);
    expect_tokens(q.prompt, "p");
    expect_tokens(q.output, "d");
    close_trace(&o);
}

static void test_map(void **state)
{
    (void)state;
    dsc_import_options options = plain;
    options.map = "prompt=in.question,output=choices.1.text,references=doc,category=kind.name,"
                  "steps.accepted=s,accept.ngram.accepted=n,accept.ngram.cap=k,metadata.x=in.x,"
                  "wall_time=t";
    opened o =
        import_good("{\"in\": {\"question\": \"q\", \"x\": [1]}, \"choices\": [0, {\"text\": "
                    "\"ab\"}], \"doc\": \"d\", \"kind.name\": \"qa\", \"s\": [1], \"n\": [1, "
                    "0, 0], \"k\": 4, \"t\": 2.5, \"other\": null}\n",
                    &options);
    assert_string_equal(o.info->format, "mapped");
    dsc_request q = request(&o, 0);
    expect_text(q.prompt_text, "q");
    expect_tokens(q.output, "ab$");
    expect_text(reference_text(&q, 0), "d");
    expect_steps(&q.steps, 1, (int[]){1}, NULL);
    assert_string_equal(o.info->drafter[0].name, "ngram");
    expect_text(q.metadata, "{\"category\":\"qa\",\"x\":[1],\"wall_time\":2.5}");
    close_trace(&o);
    options.map = "messages=chat,id=n,model=m";
    o = import_good("{\"n\": 7, \"m\": \"x\", \"chat\": [{\"role\": \"user\", \"content\": \"U\"}, "
                    "{\"role\": \"assistant\", \"content\": \"A\"}]}\n",
                    &options);
    q = request(&o, 0);
    expect_text(q.id, "7");
    expect_text(q.prompt_text, "user: U\nassistant:");
    expect_text(q.metadata, "{\"model\":\"x\"}");
    close_trace(&o);
}

static void test_bad_maps(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"prompt", "'prompt' in the map must be FIELD=PATH"},
        {"prompt=", "must be FIELD=PATH"},
        {"=x", "must be FIELD=PATH"},
        {"", "must be FIELD=PATH"},
        {"promt=x,output=y", "unknown field in the map 'promt' (did you mean prompt?)"},
        {"output=x,output=y", "the map names field 'output' twice"},
        {"prompt=x", "the map must name the field of the output: output=FIELD"},
        {"metadata.=x,output=y", "unknown field in the map 'metadata.'"},
    };
    dsc_import_options options = plain;
    dsc_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.map = bad[i][0];
        assert_int_equal(import("{}\n", bytes, &options, NULL, &err), DSC_EUSAGE);
        if (!strstr(err.message, bad[i][1]))
            fail_msg("wanted '%s', got '%s'", bad[i][1], err.message);
    }
    options.map = "output=x";
    options.format = "llma";
    assert_int_equal(import("{}\n", bytes, &options, NULL, &err), DSC_EUSAGE);
    options.format = "mapped";
    assert_int_equal(import("{\"y\": 1}\n", bytes, &options, NULL, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, ":1: field 'x' is missing"));
    options.map = NULL;
    assert_int_equal(import("{\"y\": 1}\n", bytes, &options, NULL, &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "add --map prompt=FIELD,output=FIELD"));
}

// --- bad lines -----------------------------------------------------------------------------------

#define VCR(rest) "{\"prompt_tokens\": 1, \"output_tokens\": 2, \"ttft_ms\": 1" rest "}"
#define LENGTHS(counts)                                                                            \
    "{\"choices\": [{\"token_ids\": [1, 2, 3]}], \"metrics\": {\"speculative_decoding\": {"        \
    "\"per_step_accepted\": [1], \"per_step_drafted\": [2], "                                      \
    "\"acceptance_histogram_by_draft_length\": " counts "}}}"

static void test_bad_lines(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {VCR(""), " field 'output_token_ids' is missing, so there are no tokens to replay"},
        {VCR(", \"output_token_ids\": [1, 2], \"itl_tokens\": [2]"),
         " field 'itl_tokens' adds up to 2, but the output has only 2 tokens"},
        {VCR(", \"output_token_ids\": [1, 2], \"itl_tokens\": [0]"), " field 'itl_tokens[0]' is 0"},
        {VCR(", \"output_token_ids\": [1, 2], \"itl_tokens\": [2, 9223372036854775807]"),
         " field 'itl_tokens[1]' is 9223372036854775807"},
        {VCR(", \"output_token_ids\": [1, 2], \"itl_tokens\": 1"),
         " field 'itl_tokens' must be an"},
        {VCR(", \"output_token_ids\": [1, 2], \"itl_ms\": [-3]"),
         " field 'itl_ms' must be a list of numbers of at least 0"},
        {VCR(", \"output_token_ids\": [1, 2], \"arrival_ms\": -1"),
         " field 'arrival_ms' is -1; it must be at least 0"},
        {"{\"generated_texts\": [3], \"output_lens\": [1]}", " field 'output' must be a string"},
        {"{\"prompt\": \"p\", \"completion\": \"c\", \"wall_time\": -2}",
         " field 'wall_time' is -2; it must be at least 0"},
        {"{\"id\": \"a\", \"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": "
         "\"stop\"}, "
         "{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}",
         " stream 'a' has two chunks with a finish_reason"},
        {LENGTHS("{\"2\": [0, 0, 1]}"), "lacks step 0, which accepted 1 of 2 tokens"},
        {LENGTHS("{\"2\": [1, 1, 0]}"), "counts other steps than per_step_accepted"},
        {LENGTHS("[]"), "acceptance_histogram_by_draft_length' must be an object"},
    };
    dsc_error err;
    char place[400];
    snprintf(place, sizeof place, "%s:1:", in_path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_message(&err, import(bad[i][0], bytes, &plain, NULL, &err), place, bad[i][1]);
}

// What a file is that holds no JSON, and the last line of a file that was cut.
static void test_no_json(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"prompt,output\na,b\n", "the input must be JSON lines or a JSON document"},
        {"data: {\"id\": 1}\n", "remove the prefix 'data: '"},
        {"PAR1xyz\n", "this is Parquet"},
        {"{" OK_FIELDS "}\n{\"prompt\": \"p", "it is the last line and may be truncated"},
    };
    dsc_import_options options = plain;
    dsc_error err;
    int64_t left_out;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_message(&err, import(bad[i][0], bytes, &options, NULL, &err), in_path, bad[i][1]);
    options.skip_errors = true;
    assert_int_equal(import(bad[3][0], bytes, &options, &left_out, &err), DSC_OK);
    assert_int_equal(left_out, 1);
    options.model = "none of these";
    int rc =
        import("{" OK_FIELDS ", \"metadata\": {\"model\": \"a\"}}\n", bytes, &options, NULL, &err);
    expect_message(&err, rc, "no requests of model 'none of these'", "the models are a (1)");
}

SUITE(import_logs)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_responses), cmocka_unit_test(test_missing_steps),
        cmocka_unit_test(test_streams),   cmocka_unit_test(test_vcr),
        cmocka_unit_test(test_benchmark), cmocka_unit_test(test_llamacpp),
        cmocka_unit_test(test_pairs),     cmocka_unit_test(test_map),
        cmocka_unit_test(test_bad_maps),  cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_no_json),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
