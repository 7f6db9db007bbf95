// SPDX-License-Identifier: Apache-2.0
// Traces, read: what was written comes back; every way in which a shard can be wrong is refused by
// name, file, tensor and element.
#include "base/utf8.h"
#include "tests/unit/trace_fixture.h"

// --- round trips -------------------------------------------------------------------------------

static void same_text(dsc_text_view a, dsc_text_view b)
{
    assert_int_equal(a.length, b.length);
    assert_true(!a.length || !memcmp(a.bytes, b.bytes, (size_t)a.length));
}

static void same_tokens(dsc_token_view a, dsc_token_view b)
{
    assert_int_equal(a.count, b.count);
    assert_true(!a.count || !memcmp(a.id, b.id, (size_t)a.count * sizeof *a.id));
}

static void same_request(const dsc_request *q, const dsc_request_input *in, bool text, bool logp)
{
    same_text(q->id, in->id);
    same_tokens(q->prompt, in->prompt);
    same_tokens(q->output, in->output);
    same_text(q->metadata, in->metadata);
    assert_int_equal(q->references, in->references);
    for (int64_t r = 0; r < q->references; r++) {
        same_tokens(dsc_request_reference(q, r), in->reference[r]);
        assert_int_equal(q->reference_kind[r], in->kind[r]);
        if (!text)
            continue;
        const int64_t *o = q->reference_text_offset + r;
        same_text((dsc_text_view){q->reference_text + o[0], o[1] - o[0]}, in->reference_text[r]);
    }
    assert_int_equal(q->target_logp != NULL, logp);
    if (logp && q->output.count)
        assert_memory_equal(q->target_logp, in->target_logp, (size_t)q->output.count * 4);
    assert_int_equal(q->prompt_text.bytes != NULL, text);
    assert_int_equal(q->reference_text != NULL, text);
    assert_int_equal(q->reference_text_offset != NULL, text);
    if (text) {
        same_text(q->prompt_text, in->prompt_text);
        same_text(q->output_text, in->output_text);
    }
}

static void check_samples(const char *name, bool text, bool logp, int64_t shards)
{
    dsc_error err = {0};
    dsc_trace *t;
    int64_t seen = 0;
    expect_ok(dsc_trace_open(&t, in_scratch(name), &err), &err);
    assert_int_equal(dsc_trace_shards(t), shards);
    for (int64_t k = 0; k < shards; k++) {
        dsc_shard *s;
        expect_ok(dsc_shard_open(&s, t, k, &err), &err);
        assert_int_equal(dsc_shard_unknown(s), 0);
        for (int64_t i = 0; i < dsc_shard_requests(s); i++, seen++) {
            dsc_request q;
            dsc_shard_request(s, i, &q);
            assert_int_equal(q.index, seen);
            same_request(&q, &samples[seen], text, logp);
        }
        dsc_shard_close(s);
    }
    assert_int_equal(seen, SAMPLES);
    expect_ok(dsc_trace_verify(t, &err), &err);
    dsc_trace_close(t);
}

static void samples_round_trip(void **state)
{
    (void)state;
    static const struct {
        int64_t shard_tokens, shards;
    } cuts[] = {{0, 1}, {1, 5}, {11, 3}, {13, 2}, {1000, 1}}; // the samples have 13, 1, 3, 7, 0, 10
    for (int flags = 0; flags < 4; flags++)
        for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
            write_samples("a.dst", flags & 1, flags & 2, cuts[i].shard_tokens);
            check_samples("a.dst", flags & 1, flags & 2, cuts[i].shards);
            assert_false(exists("a.dst.tmp") || exists("a.dst.old"));
        }
}

static void info_round_trips(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace *t;
    const dsc_trace_info in = sample_info(true, false);
    write_samples("a.dst", true, false, 5);
    char slashes[500];
    snprintf(slashes, sizeof slashes, "%s//", in_scratch("a.dst"));
    expect_ok(dsc_trace_open(&t, slashes, &err), &err);
    assert_string_equal(dsc_trace_path(t), in_scratch("a.dst"));
    const dsc_trace_info *info = dsc_trace_get_info(t);
    assert_int_equal(info->requests, 6);
    assert_int_equal(info->prompt_tokens, 3 + 1 + 2 + 0 + 0 + 5);
    assert_int_equal(info->output_tokens, 4 + 0 + 1 + 7 + 0 + 2);
    assert_int_equal(info->reference_tokens, 6 + 3);
    assert_int_equal(info->references, 2 + 1 + 3);
    assert_int_equal(info->max_prompt_tokens, 5);
    assert_int_equal(info->max_output_tokens, 7);
    assert_string_equal(info->tokenizer_name, in.tokenizer_name);
    assert_string_equal(info->tokenizer_sha256, in.tokenizer_sha256);
    assert_int_equal(info->vocab_size, VOCAB);
    assert_int_equal(info->eos_token, 2);
    assert_true(info->has_text);
    assert_false(info->has_target_logp);
    assert_string_equal(info->format, "jsonl");
    assert_string_equal(info->semantics, "paper");
    assert_string_equal(info->provenance, "{\"version\":\"0.1\",\"x\":0.10000000000000001}");
    dsc_trace_close(t);
}

// The hash depends on the requests only, and not on other fields of the manifest.
static void hash_names_the_content(void **state)
{
    (void)state;
    char hash[3][DSC_SHA256_HEX];
    for (int i = 0; i < 3; i++) {
        dsc_error err = {0};
        dsc_trace *t;
        write_samples("a.dst", true, i == 2, 20);
        expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
        strcpy(hash[i], dsc_trace_get_info(t)->hash);
        dsc_trace_close(t);
    }
    assert_string_equal(hash[0], hash[1]);
    assert_string_not_equal(hash[0], hash[2]);
}

static void empty_trace(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_trace_writer *w;
    dsc_trace *t;
    dsc_shard *s;
    const dsc_trace_info info = sample_info(true, true);
    expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, false, 0, &err), &err);
    expect_ok(dsc_trace_writer_commit(w, "{\"b\":2}", &err), &err);
    expect_ok(verify("a.dst", &err), &err);
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    assert_int_equal(dsc_trace_shards(t), 0);
    assert_int_equal(dsc_trace_get_info(t)->requests, 0);
    assert_string_equal(dsc_trace_get_info(t)->provenance, "{\"b\":2}");
    expect_failure(dsc_shard_open(&s, t, 0, &err), DSC_EUSAGE, &err, "shard 0 does not exist");
    expect_failure(dsc_shard_open(&s, t, -1, &err), DSC_EUSAGE, &err, "shard -1 does not exist");
    dsc_trace_close(t);
}

// --- damaged shards ----------------------------------------------------------------------------

static const struct {
    const char *tensor;
    int64_t index;
    union {
        int64_t i64;
        uint32_t u32;
        float f32;
        uint8_t u8;
    } value;
    const char *word;
} bad_values[] = {
    {"prompt.tok", 0, {.u32 = VOCAB}, "'prompt.tok'[0]: token id 1000 is outside"},
    {"output.tok", -1, {.u32 = UINT32_MAX}, "'output.tok'[13]: token id 4294967295 is outside"},
    {"reference.tok", 3, {.u32 = 1u << 31}, "'reference.tok'[3]: token id 2147483648"},
    {"prompt.offset", 0, {.i64 = 1}, "'prompt.offset'[0]"},
    {"prompt.offset", 2, {.i64 = 100}, "'prompt.offset'[3]: offset 6"},
    {"output.offset", 1, {.i64 = -1}, "'output.offset'[1]: offset -1"},
    {"output.offset", -1, {.i64 = 15}, "'output.tok' has 14 elements"},
    {"output.offset", -1, {.i64 = INT64_MIN}, "'output.offset'[6]"},
    {"request.id.offset", -1, {.i64 = INT64_MAX}, "'request.id' has"},
    {"request.reference", -1, {.i64 = 7}, "'reference.offset' has 7 elements"},
    {"request.reference", -1, {.i64 = INT64_MAX}, "'reference.offset' has 7 elements"},
    {"reference.offset", -1, {.i64 = 10}, "'reference.tok' has 9 elements"},
    {"prompt.text.offset", -1, {.i64 = 1000}, "'prompt.text' has"},
    {"output.text.offset", 2, {.i64 = 0}, "'output.text.offset'[2]"},
    {"reference.text.offset", -1, {.i64 = 1000}, "'reference.text' has"},
    {"metadata.offset", 1, {.i64 = -5}, "'metadata.offset'[1]"},
    {"reference.kind", 1, {.u8 = 2}, "'reference.kind'[1]: unknown kind 2"},
    {"target.logp_y", 0, {.f32 = 0.5f}, "'target.logp_y'[0]: 0.5 is not a log-probability"},
    {"target.logp_y", 5, {.f32 = __builtin_nanf("")}, "'target.logp_y'[5]: nan"},
    {"target.logp_y", -1, {.f32 = __builtin_inff()}, "'target.logp_y'[13]: inf"},
    {"target.logp_y", 1, {.f32 = -__builtin_inff()}, "'target.logp_y'[1]: -inf"},
    {"target.logp_y", 2, {.f32 = 1e-45f}, "'target.logp_y'[2]"},
};

static void values_are_checked(void **state)
{
    (void)state;
    size_t n;
    dsc_error err;
    write_samples("a.dst", true, true, 0);
    char *sound = get_file(in_scratch(FIRST_SHARD), &n);
    for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++) {
        put_file(in_scratch(FIRST_SHARD), sound, n);
        patch(bad_values[i].tensor, bad_values[i].index, &bad_values[i].value);
        int rc = open_shard(&err);
        expect_failure(rc, DSC_EINPUT, &err, bad_values[i].word);
        assert_non_null(strstr(err.message, FIRST_SHARD));
        err = (dsc_error){0};
        assert_int_equal(verify("a.dst", &err), DSC_EINPUT);
    }
    free(sound);
}

static void columns_are_checked(void **state)
{
    (void)state;
    static const uint32_t zeros[64];
    static const struct {
        dsc_tensor tensor;
        const char *word;
    } cases[] = {
        {{"prompt.tok", DSC_I32, 1, {11}, 0, zeros, 0, 0}, "'prompt.tok' is I32 of rank 1"},
        {{"prompt.tok", DSC_U32, 2, {11, 1}, 0, zeros, 0, 0}, "'prompt.tok' is U32 of rank 2"},
        {{"prompt.tok", DSC_U32, 0, {0}, 0, zeros, 0, 0}, "'prompt.tok' is U32 of rank 0"},
        {{"prompt.tok", DSC_U32, 1, {10}, 0, zeros, 0, 0}, "'prompt.tok' has 10 elements"},
        {{"output.offset", DSC_I64, 1, {0}, 0, zeros, 0, 0}, "'output.offset' has 0 elements"},
        {{"output.offset", DSC_I64, 1, {8}, 0, zeros, 0, 0}, "'output.offset' has 8 elements"},
        {{"request.reference", DSC_I64, 1, {7}, 0, zeros, 0, 0}, "'reference.offset' has 7"},
        {{"reference.kind", DSC_U8, 1, {5}, 0, zeros, 0, 0}, "'reference.kind' has 5 elements"},
        {{"target.logp_y", DSC_F32, 1, {13}, 0, zeros, 0, 0}, "'target.logp_y' has 13 elements"},
        {{"reference.text.offset", DSC_I64, 1, {6}, 0, zeros, 0, 0}, "'reference.text.offset'"},
        {{"metadata", DSC_U8, 1, {0}, 0, NULL, 0, 0}, "'metadata' is missing"},
        {{"output.text", DSC_U8, 1, {0}, 0, NULL, 0, 0}, "'output.text' is missing"},
        {{"target.logp_y", DSC_F32, 1, {0}, 0, NULL, 0, 0}, "'target.logp_y' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dsc_error err;
        write_samples("a.dst", true, true, 0);
        replace(cases[i].tensor);
        int rc = open_shard(&err);
        expect_failure(rc, DSC_EINPUT, &err, cases[i].word);
    }
}

static void unknown_tensors_are_counted(void **state)
{
    (void)state;
    static const float x[2];
    dsc_error err = {0};
    dsc_trace *t;
    dsc_shard *s;
    write_samples("a.dst", false, false, 0);
    replace((dsc_tensor){"accept.new", DSC_F32, 2, {2, 1}, 0, x, 0, 0});
    replace((dsc_tensor){"target.logp_y", DSC_F32, 1, {2}, 0, x, 0, 0}); // not listed as recorded
    expect_ok(verify("a.dst", &err), &err);
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), &err), &err);
    expect_ok(dsc_shard_open(&s, t, 0, &err), &err);
    assert_int_equal(dsc_shard_unknown(s), 2);
    dsc_shard_close(s);
    dsc_trace_close(t);
}

// Errors that only verification finds, in a trace with correct hashes.
static void verify_reads_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *tensor;
        int64_t index;
        char value;
        const char *word;
    } cases[] = {
        {"prompt.text", 0, '\xff', "the prompt's text is not valid UTF-8 at byte 0"},
        {"output.text", -1, '\xc3', "request 5: the output's text is not valid UTF-8 at byte 2"},
        {"reference.text", 4, '\x80', "request 0: a reference's text is not valid UTF-8 at byte"},
        {"request.id", 0, '\x80', "request 0: the id is not valid UTF-8"},
        {"metadata", 0, '[', "request 0: the metadata is not valid JSON"},
        {"metadata", 1, '\xf8', "request 0: the metadata is not valid UTF-8 at byte 1"},
    };
    dsc_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_samples("a.dst", true, true, 0);
        patch(cases[i].tensor, cases[i].index, &cases[i].value);
        err = (dsc_error){0};
        expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "SHA-256");
        reseal(NULL, 0);
        assert_int_equal(open_shard(&err), DSC_OK);
        expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, cases[i].word);
        assert_non_null(strstr(err.message, FIRST_SHARD));
    }
    write_samples("a.dst", true, true, 0);
    patch("metadata", -2, "[");
    patch("metadata", -1, "]"); // of the last request: {} before
    reseal(NULL, 0);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err,
                   "request 5: the metadata must be a JSON object");
}

static void verify_counts(void **state)
{
    (void)state;
    dsc_error err = {0};
    write_samples("a.dst", true, true, 0);
    reseal("max_prompt_tokens", 4);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "max_prompt_tokens\": 4, but");
    reseal("max_prompt_tokens", 5);
    reseal("max_output_tokens", 8);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "max_output_tokens\": 8, but");
    reseal("max_output_tokens", 7);
    err = (dsc_error){0};
    expect_ok(verify("a.dst", &err), &err);
}

// A manifest that agrees with itself but not with its shard.
static void totals_of_a_shard(void **state)
{
    (void)state;
    static const struct {
        const char *field, *word;
        int64_t value, sound;
    } cases[] = {
        {"prompt_tokens", "11 prompt tokens, but the manifest has 12", 12, 11},
        {"output_tokens", "14 output tokens, but the manifest has 13", 13, 14},
        {"reference_tokens", "9 reference tokens, but the manifest has 0", 0, 9},
        {"references", "6 references, but the manifest has 7", 7, 6},
        {"requests", "must have one more than the 5 requests", 5, 6},
    };
    write_samples("a.dst", true, true, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dsc_error err;
        reseal(cases[i].field, cases[i].value);
        int rc = open_shard(&err);
        expect_failure(rc, DSC_EINPUT, &err, cases[i].word);
        reseal(cases[i].field, cases[i].sound);
    }
}

static void equal_ids_are_found(void **state)
{
    (void)state;
    const dsc_request_input q[2] = {{.id = TEXT("a"), .prompt = TOKENS(1)},
                                    {.id = TEXT("b"), .prompt = TOKENS(1)}};
    const dsc_trace_info info = sample_info(false, false);
    for (int64_t shard_tokens = 1; shard_tokens <= 3; shard_tokens += 2) { // two shards, then one
        dsc_error err = {0};
        dsc_trace_writer *w;
        expect_ok(dsc_trace_writer_open(&w, in_scratch("a.dst"), &info, true, shard_tokens, &err),
                  &err);
        expect_ok(dsc_trace_writer_add(w, &q[0], &err), &err);
        expect_ok(dsc_trace_writer_add(w, &q[1], &err), &err);
        expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
        expect_ok(verify("a.dst", &err), &err);
        patch("request.id", 0, "b");
        reseal(NULL, 0);
        expect_failure(verify("a.dst", &err), DSC_EINPUT, &err,
                       "requests 0 and 1 have the same id 'b'");
    }
}

static void truncated_shard(void **state)
{
    (void)state;
    size_t n;
    dsc_error err;
    write_samples("a.dst", false, false, 0);
    char *bytes = get_file(in_scratch(FIRST_SHARD), &n);
    for (size_t length = 0; length < n; length++) {
        put_file(in_scratch(FIRST_SHARD), bytes, length);
        int rc = open_shard(&err);
        expect_failure(rc, DSC_EINPUT, &err, "truncated");
    }
    char both[80];
    snprintf(both, sizeof both, "%zu bytes, but the manifest has %zu", n - 1, n);
    assert_non_null(strstr(err.message, both));
    put_file(in_scratch(FIRST_SHARD), bytes, n + 1);
    int rc = open_shard(&err);
    expect_failure(rc, DSC_EINPUT, &err, "too long");
    assert_int_equal(remove(in_scratch(FIRST_SHARD)), 0);
    rc = open_shard(&err);
    expect_failure(rc, DSC_EINPUT, &err, "No such file");
    free(bytes);
}

// --- the checks of values ------------------------------------------------------------------------

enum { LONG = 2500 }; // two whole blocks of the check loops and a rest

static void bad_elements_are_found_anywhere(void **state)
{
    (void)state;
    static int32_t id[LONG];
    static float logp[LONG];
    static uint8_t kind[LONG];
    static int64_t offset[LONG];
    for (int i = 0; i < LONG; i++) {
        id[i] = i % VOCAB;
        logp[i] = (float)-i;
        offset[i] = i / 2;
    }
    assert_int_equal(dsc_bad_token(id, LONG, VOCAB), -1);
    assert_int_equal(dsc_bad_logp(logp, LONG), -1);
    assert_int_equal(dsc_bad_kind(kind, LONG), -1);
    assert_int_equal(dsc_bad_offset(offset, LONG), -1);
    for (int i = 0; i < LONG; i++) {
        static const int32_t bad_ids[] = {VOCAB, -1, INT32_MIN, INT32_MAX};
        id[i] = bad_ids[i % 4];
        assert_int_equal(dsc_bad_token(id, LONG, VOCAB), i);
        id[i] = 0;
        logp[i] = i % 2 ? __builtin_nanf("") : -__builtin_inff();
        assert_int_equal(dsc_bad_logp(logp, LONG), i);
        logp[i] = 0;
        kind[i] = 255;
        assert_int_equal(dsc_bad_kind(kind, LONG), i);
        kind[i] = 1;
        int64_t sound = offset[i];
        offset[i] = i % 2 ? -1 : INT64_MIN;
        assert_int_equal(dsc_bad_offset(offset, LONG), i);
        offset[i] = INT64_MAX; // the next one falls
        assert_int_equal(dsc_bad_offset(offset, LONG), i == 0 ? 0 : i + 1 < LONG ? i + 1 : -1);
        offset[i] = sound;
    }
    assert_int_equal(dsc_bad_token((const int32_t[]){INT32_MAX - 1, INT32_MAX}, 2, INT32_MAX), 1);
}

static void utf8_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bad; // byte, or -1
    } cases[] = {
        {"", -1},
        {"abc", -1},
        {"\x7f", -1},
        {"\xc2\x80", -1},
        {"é漢😀", -1},
        {"\xed\x9f\xbf", -1},
        {"\xee\x80\x80", -1},
        {"\xf4\x8f\xbf\xbf", -1},
        {"\x80", 0},
        {"a\xc3", 1},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xe2\x82", 0},
        {"\xe2\x28\xa1", 0},
        {"\xf0\x9f\x98\x28", 0},
        {"\xff", 0},
        {"é\xfe", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int64_t before = 0; before < 20; before++) { // around the steps of eight
            char text[64];
            int64_t n = (int64_t)strlen(cases[i].text);
            memset(text, 'x', sizeof text);
            memcpy(text + before, cases[i].text, (size_t)n);
            assert_int_equal(dsc_bad_utf8(text, before + n),
                             cases[i].bad < 0 ? -1 : before + cases[i].bad);
        }
    for (int64_t cut = 1; cut < 4; cut++) // what lies behind the end must not be used
        assert_int_equal(dsc_bad_utf8("😀", cut), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(trace)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_round_trip),
        TEST(info_round_trips),
        TEST(hash_names_the_content),
        TEST(empty_trace),
        TEST(values_are_checked),
        TEST(columns_are_checked),
        TEST(unknown_tensors_are_counted),
        TEST(verify_reads_the_text),
        TEST(verify_counts),
        TEST(totals_of_a_shard),
        TEST(equal_ids_are_found),
        TEST(truncated_shard),
        cmocka_unit_test(bad_elements_are_found_anywhere),
        cmocka_unit_test(utf8_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
