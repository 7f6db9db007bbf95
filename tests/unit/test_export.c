// SPDX-License-Identifier: Apache-2.0
// Export: the text itself, and that an exported trace comes back the same.
#include "tests/close.h"
#include "tests/unit/import_fixture.h"

#include <math.h>

static void export_to(const char *trace, const char *format, dsc_buffer *out)
{
    dsc_trace *t;
    dsc_error err;
    char *text = NULL;
    size_t length = 0;
    FILE *f = open_memstream(&text, &length);
    if (dsc_trace_open(&t, trace, &err) || dsc_trace_export(t, format, f, &err))
        fail_msg("%s", err.message);
    fclose(f);
    out->length = 0;
    dsc_buffer_append(out, text, length, NULL);
    free(text);
    dsc_trace_close(t);
}

// out_path is exported and imported again as second_path: same columns, hence the same hash; and
// exported once more, the same text.
static void expect_round_trip(const dsc_tokenizer *t, int32_t vocab_size)
{
    dsc_buffer first = {0}, second = {0};
    dsc_error err;
    dsc_import_options o = plain;
    const char *paths[] = {text_path};
    o.vocab_size = vocab_size;
    export_to(out_path, "jsonl", &first);
    put_file(text_path, first.data, first.length);
    if (dsc_import(paths, 1, t, second_path, &o, NULL, &err))
        fail_msg("%s", err.message);
    export_to(second_path, "jsonl", &second);
    assert_string_equal(first.data, second.data);
    opened a = open_trace(out_path), b = open_trace(second_path);
    assert_string_equal(a.info->hash, b.info->hash);
    assert_int_equal(a.info->has_text, b.info->has_text);
    close_trace(&a);
    close_trace(&b);
    dsc_buffer_fini(&first);
    dsc_buffer_fini(&second);
}

static void test_round_trip(void **state)
{
    (void)state;
    dsc_error err;
    opened o = import_good(
        "{\"id\": \"a,\\\"b\\\"\", \"prompt\": \"caf\\u00e9 \\ud83d\\ude00 \\\\ \\u0000 \\u001f / "
        "<\", "
        "\"output\": \"ab\", \"logprobs\": [-14.7794695, -0.0, -1.1754942e-38], "
        "\"metadata\": {\"b\": 0.1, \"a\": [1, -0.0, 1e300, \"\\u00e9\\n\"], \"\": {}}}\n"
        "{\"prompt\": [255, 256], \"output\": {\"tokens\": [1], \"text\": \"other\"}, "
        "\"logprobs\": "
        "[-3.4028234e38], \"references\": [\"r\", {\"tokens\": [200], \"kind\": \"turn\"}, []]}\n"
        "{\"prompt\": \"\", \"output\": \"\", \"finish_reason\": \"length\", \"logprobs\": []}\n",
        &plain);
    close_trace(&o);
    expect_round_trip(bytes, 0);
    opened b =
        open_trace(second_path); // the zero's sign, and a float that eight digits do not tell
    dsc_request q = request(&b, 0);
    assert_true(q.target_logp[1] == 0 && signbit(q.target_logp[1]));
    assert_true(q.target_logp[0] == -14.7794695f && q.target_logp[2] == -1.1754942e-38f);
    assert_true(request(&b, 1).target_logp[0] == -3.4028234e38f);
    close_trace(&b);
    remove_trace(second_path);

    dsc_import_options ids = plain; // no text
    ids.vocab_size = 50;
    assert_int_equal(import("{\"prompt\": [1], \"output\": [49], \"references\": [[], [3, 4]]}",
                            NULL, &ids, NULL, &err),
                     0);
    expect_round_trip(NULL, 50);
    remove_trace(second_path);
}

// Lists come back to the bit, the tail too: as given, or as the import works it out.
static void test_rows_round_trip(void **state)
{
    (void)state;
    opened o = import_good(
        "{\"prompt\": [1], \"output\": [2, 3, 4], "
        "\"draft_rows\": [[[257, -1.4999999], [3, -0.5]], [], [[257, -0.0]]], "
        "\"target_rows\": [[[9, -0.6931472], -0.69313], [-0.0], [[257, 0], [0, -1e38], null]]}\n"
        "{\"prompt\": [1], \"output\": [], \"draft_rows\": [], \"target_rows\": []}\n",
        &plain);
    close_trace(&o);
    expect_round_trip(bytes, 0);
    remove_trace(second_path);
}

// Dense rows are written as lists of what has a probability.
static void test_export_dense(void **state)
{
    (void)state;
    const float logp[] = {-INFINITY, -0.5f, -0.932752132f, -INFINITY, 0, -INFINITY};
    dsc_trace_info info = {.tokenizer_name = "none",
                           .vocab_size = 3,
                           .eos_token = -1,
                           .rows = {[DSC_SIDE_TARGET] = DSC_ROWS_DENSE}};
    dsc_request_input q = {
        .id = {"x", 1},
        .output = {(const int32_t[]){1, 2}, 2},
        .rows = {[DSC_SIDE_TARGET] = {.kind = DSC_ROWS_DENSE, .logp = logp, .vocab_size = 3}}};
    dsc_trace_writer *w;
    dsc_error err;
    dsc_buffer out = {0};
    assert_ok(dsc_trace_writer_open(&w, out_path, &info, true, 0, &err), err);
    assert_ok(dsc_trace_writer_add(w, &q, &err), err);
    assert_ok(dsc_trace_writer_commit(w, NULL, &err), err);
    export_to(out_path, "jsonl", &out);
    assert_string_equal(out.data,
                        "{\"id\":\"x\",\"prompt\":{\"tokens\":[]},\"output\":{\"tokens\":[1,2]},"
                        "\"target_rows\":[[[1,-0.5],[2,-0.932752132],null],[[1,0],null]]}\n");
    dsc_buffer_fini(&out);
}

static void test_export_text(void **state)
{
    (void)state;
    dsc_buffer out = {0};
    opened o =
        import_good("{\"id\": \"a\", \"prompt\": \"p\\n\", \"output\": \"x\", \"references\": "
                    "[{\"text\": \"r\", \"kind\": \"turn\"}], \"logprobs\": [-0.5, 0], "
                    "\"metadata\": {\"k\": 1}}\n"
                    "{\"id\": \"b,\\\"c\", \"prompt\": [], \"output\": [65], \"logprobs\": [-1]}",
                    &plain);
    close_trace(&o);
    export_to(out_path, "jsonl", &out);
    assert_string_equal(
        out.data,
        "{\"id\":\"a\",\"prompt\":{\"text\":\"p\\n\",\"tokens\":[256,112,10]},\"output\":{"
        "\"text\":\"x\",\"tokens\":[120,257]},\"references\":[{\"text\":\"r\",\"tokens\":"
        "[114],\"kind\":\"turn\"}],\"logprobs\":[-0.5,0],\"metadata\":{\"k\":1}}\n"
        "{\"id\":\"b,\\\"c\",\"prompt\":{\"text\":\"\",\"tokens\":[]},\"output\":{\"text\":"
        "\"A\",\"tokens\":[65]},\"logprobs\":[-1]}\n");
    export_to(out_path, "csv", &out);
    assert_string_equal(out.data,
                        "request,id,prompt_tokens,output_tokens,references,reference_tokens\r\n"
                        "0,a,3,2,1,1\r\n"
                        "1,\"b,\"\"c\",0,1,0,0\r\n");
    dsc_buffer_fini(&out);
}

// One request per shard; more token ids than one block of the formatter holds.
static void test_export_shards(void **state)
{
    (void)state;
    dsc_trace_writer *w;
    dsc_error err;
    dsc_trace_info info = {.tokenizer_name = "none", .vocab_size = INT32_MAX, .eos_token = -1};
    int32_t id[2000];
    dsc_buffer wanted = {0}, out = {0};
    if (dsc_trace_writer_open(&w, out_path, &info, true, 1, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < 3; i++) {
        dsc_buffer_printf(&wanted, NULL, "{\"id\":\"%d\",\"prompt\":{\"tokens\":[", i);
        for (int j = 0; j < 2000; j++) {
            id[j] = j ? (int32_t)((uint32_t)i * 1234567 + (uint32_t)j * j * 500) : INT32_MAX - 1;
            dsc_buffer_printf(&wanted, NULL, "%s%d", j ? "," : "", id[j]);
        }
        dsc_buffer_puts(&wanted, "]},\"output\":{\"tokens\":[0]}}\n", NULL);
        char name[2] = {(char)('0' + i), '\0'};
        dsc_request_input q = {.id = {name, 1}, .prompt = {id, 2000}, .output = {&(int32_t){0}, 1}};
        if (dsc_trace_writer_add(w, &q, &err))
            fail_msg("%s", err.message);
    }
    if (dsc_trace_writer_commit(w, NULL, &err))
        fail_msg("%s", err.message);
    export_to(out_path, "jsonl", &out);
    assert_string_equal(out.data, wanted.data);
    export_to(out_path, "csv", &out);
    assert_non_null(strstr(out.data, "\r\n0,0,2000,1,0,0\r\n1,1,2000,1,0,0\r\n2,2,2000,1,0,0\r\n"));
    dsc_buffer_fini(&wanted);
    dsc_buffer_fini(&out);
}

static void test_export_errors(void **state)
{
    (void)state;
    dsc_error err;
    opened o = import_good("{" OK_FIELDS "}", &plain);
    assert_int_equal(dsc_trace_export(o.trace, "xml", stdout, &err), DSC_EUSAGE);
    assert_string_equal(err.message, "no export format is called 'xml' (jsonl, csv)");
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(dsc_trace_export(o.trace, "jsonl", full, &err), DSC_EIO);
        assert_int_equal(dsc_exit_code(DSC_EIO), 1);
        fclose(full);
    }
    close_trace(&o);
}

// --- real data -------------------------------------------------------------------------------

// LLMA's Table 1, dev column: 903.6 prompt and 110.2 (+ 1) output tokens per request.
static void test_rag(void **state)
{
    (void)state;
    char rag[4096], llama[4096];
    const char *paths[] = {data_path("llma/rag.jsonl", rag, sizeof rag)};
    data_path("tokenizers/llama2.json", llama, sizeof llama);
    dsc_tokenizer *t;
    dsc_error err;
    if (dsc_tokenizer_load(&t, llama, &err))
        fail_msg("%s", err.message);
    char hash[2][DSC_SHA256_HEX];
    for (int code = 0; code < 2; code++) {
        dsc_import_options o = plain;
        o.semantics = code ? "code" : "paper";
        if (dsc_import(paths, 1, t, out_path, &o, NULL, &err))
            fail_msg("%s", err.message);
        opened trace = open_trace(out_path);
        const dsc_trace_info *info = trace.info;
        assert_string_equal(info->format, "llma");
        assert_int_equal(info->requests, 100);
        assert_int_equal(info->references, 1000);
        assert_int_equal(info->prompt_tokens, 90363);
        assert_int_equal(info->output_tokens, 11123);
        assert_int_equal(info->reference_tokens, 87391); // none is longer than 768
        memcpy(hash[code], info->hash, DSC_SHA256_HEX);
        close_trace(&trace);
    }
    assert_string_equal(hash[0], hash[1]);
    expect_round_trip(t, 0);
    dsc_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_rows_round_trip),
        cmocka_unit_test(test_export_dense),  cmocka_unit_test(test_export_text),
        cmocka_unit_test(test_export_shards), cmocka_unit_test(test_export_errors),
        cmocka_unit_test(test_rag),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
