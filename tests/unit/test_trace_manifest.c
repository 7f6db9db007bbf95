// SPDX-License-Identifier: Apache-2.0
// The manifest of a trace: every field that is missing, of the wrong type, out of range or at odds
// with the others is refused by name; no change of a byte, here or in a shard, goes unnoticed.
#include "tests/unit/trace_fixture.h"

#define ZEROS63 "000000000000000000000000000000000000000000000000000000000000000"
#define ZEROS ZEROS63 "0"

// One change: the value at `path` (keys and indices between dots) becomes the JSON `value`, or is
// taken away when that is NULL.
static const struct {
    const char *path, *value, *word;
} bad_fields[] = {
    {"schema", NULL, "\"schema\": missing"},
    {"schema", "2", "\"schema\": version 2"},
    {"schema", "\"1\"", "\"schema\": must be an integer"},
    {"schema", "1.0", "\"schema\": must be an integer"},
    {"tokenizer", "[]", "\"tokenizer\": must be an object"},
    {"tokenizer.name", NULL, "\"tokenizer.name\": missing"},
    {"tokenizer.name", "1", "\"tokenizer.name\": must be a string"},
    {"tokenizer.vocab_size", "0", "\"tokenizer.vocab_size\": 0 is not in [1, 2147483647]"},
    {"tokenizer.vocab_size", "-2147483648", "\"tokenizer.vocab_size\""},
    {"tokenizer.vocab_size", "2147483648", "\"tokenizer.vocab_size\""},
    {"tokenizer.eos", "1000", "\"tokenizer.eos\": 1000 is not in [-1, 999]"},
    {"tokenizer.eos", "-2", "\"tokenizer.eos\""},
    {"tokenizer.sha256", "\"A\"", "\"tokenizer.sha256\": must be a SHA-256"},
    {"tokenizer.sha256", "\"A" ZEROS63 "\"", "\"tokenizer.sha256\": must be a SHA-256"},
    {"source", NULL, "\"source\": missing"},
    {"source.format", "null", "\"source.format\": must be a string"},
    {"source.semantics", NULL, "\"source.semantics\": missing"},
    {"recorded", "{}", "\"recorded\": must be an array"},
    {"recorded", "[\"text\"]", "\"recorded\": does not list \"tokens\""},
    {"recorded", "[\"tokens\", 1]", "\"recorded\": element 1"},
    {"totals", NULL, "\"totals\": missing"},
    {"totals.requests", "7", "\"totals.requests\": 7, but the shards sum to 6"},
    {"totals.prompt_tokens", "-1", "\"totals.prompt_tokens\": -1 is not"},
    {"totals.output_tokens", "0.5", "\"totals.output_tokens\""},
    {"totals.reference_tokens", "8", "\"totals.reference_tokens\": 8, but"},
    {"totals.references", NULL, "\"totals.references\": missing"},
    {"totals.max_prompt_tokens", "12", "\"totals.max_prompt_tokens\""},
    {"totals.max_output_tokens", "-1", "\"totals.max_output_tokens\""},
    {"shards", "{}", "\"shards\": must be an array"},
    {"shards.1", "7", "\"shards\": element 1 must be an object"},
    {"shards.0.file", "\"../shard-00000.safetensors\"", "\"shards[0].file\": '../shard"},
    {"shards.1.file", "\"shard-00000.safetensors\"", "expected 'shard-00001.safetensors'"},
    {"shards.1.requests", "9223372036854775807", "\"totals.requests\": the sum"},
    {"shards.1.bytes", "-1", "\"shards[1].bytes\""},
    {"shards.1.references", NULL, "\"shards[1].references\": missing"},
    {"shards.0.sha256", "\"\"", "\"shards[0].sha256\": must be a SHA-256"},
    {"shards.0.sha256", "\"" ZEROS "\"", "\"hash\": does not match"},
    {"hash", "\"" ZEROS "\"", "\"hash\": does not match"},
    {"hash", "7", "\"hash\": must be a string"},
    {"provenance", NULL, "\"provenance\": missing"},
    {"provenance", "\"x\"", "\"provenance\": must be an object"},
    {"provenance.x", "0.2", "\"manifest_sha256\": does not match"},
    {"tokenizer.vocab_size", "1001", "\"manifest_sha256\": does not match"},
    {"extra", "1", "\"manifest_sha256\": does not match"},
    {"manifest_sha256", NULL, "\"manifest_sha256\": missing"},
    {"schema", "99999999999999999999", "too big integer"},
};

static json_t *child(json_t *at, const char *key)
{
    return json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
}

// The text of the manifest with one change made. A number too large for Jansson to hold goes in
// as a string and loses its quotes afterwards.
static void change_field(json_t *root, const char *path, const char *value)
{
    char keys[100], *key, *next;
    snprintf(keys, sizeof keys, "%s", path);
    json_t *at = root, *new = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    for (key = keys; (next = strchr(key, '.')); key = next + 1) {
        *next = '\0';
        at = child(at, key);
        assert_non_null(at);
    }
    if (!value)
        assert_int_equal(json_object_del(at, key), 0);
    else if (json_is_array(at))
        assert_int_equal(json_array_set_new(at, (size_t)atoi(key), new), 0);
    else
        assert_int_equal(json_object_set_new(at, key, new ? new : json_string("@")), 0);
    char *text = json_dumps(root, 0), *mark = strstr(text, "\"@\"");
    dsc_buffer out = {0};
    dsc_error err = {0};
    size_t head = mark ? (size_t)(mark - text) : strlen(text);
    expect_ok(dsc_buffer_append(&out, text, head, &err), &err);
    if (mark) {
        expect_ok(dsc_buffer_puts(&out, value, &err), &err);
        expect_ok(dsc_buffer_puts(&out, mark + 3, &err), &err);
    }
    put_file(in_scratch("a.dst/manifest.json"), out.data, out.length);
    dsc_buffer_fini(&out);
    free(text);
}

static void fields_are_checked(void **state)
{
    (void)state;
    write_samples("a.dst", true, true, 14);
    json_t *sound = json_load_file(in_scratch("a.dst/manifest.json"), 0, NULL);
    assert_non_null(sound);
    for (size_t i = 0; i < sizeof bad_fields / sizeof bad_fields[0]; i++) {
        json_t *root = json_deep_copy(sound);
        dsc_error err = {0};
        dsc_trace *t;
        change_field(root, bad_fields[i].path, bad_fields[i].value);
        json_decref(root);
        int rc = dsc_trace_open(&t, in_scratch("a.dst"), &err);
        expect_failure(rc, DSC_EINPUT, &err, bad_fields[i].word);
        assert_non_null(strstr(err.message, "a.dst/manifest.json"));
        assert_null(t);
    }
    json_decref(sound);
}

static void broken_manifests(void **state)
{
    (void)state;
    dsc_error err = {0};
    size_t n;
    write_samples("a.dst", true, true, 0);
    char path[400];
    snprintf(path, sizeof path, "%s", in_scratch("a.dst/manifest.json"));
    char *text = get_file(path, &n);
    for (size_t length = 0; length + 1 < n; length++) { // all but the last newline
        put_file(path, text, length);
        expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "manifest.json");
    }
    free(text);
    put_file(path, "[1]", 3);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "not a JSON object");
    put_file(path, "{\"schema\": 1, \"schema\": 1}", 26);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "line 1, column 22: duplicate");
    assert_int_equal(truncate(path, DSC_MANIFEST_MAX + 1), 0);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "limit");
    assert_int_equal(remove(path), 0);
    expect_failure(verify("a.dst", &err), DSC_EINPUT, &err, "No such file");
    expect_failure(verify("absent.dst", &err), DSC_EINPUT, &err, "absent.dst/manifest.json");
    put_file(in_scratch("file.dst"), "x", 1);
    expect_failure(verify("file.dst", &err), DSC_EINPUT, &err,
                   "file.dst is not a trace. Import it first: draftscope trace import ");
}

// Whatever bytes change in a shard, verification sees it. In the manifest, all that it may miss
// is a change between two ways to write the same values (white space).
static void corrupted_anywhere(void **state)
{
    (void)state;
    static const char *const names[2] = {FIRST_SHARD, "a.dst/manifest.json"};
    char *sound[2], *copy;
    size_t n[2];
    uint64_t random = 11;
    write_samples("a.dst", true, true, 0);
    for (int k = 0; k < 2; k++)
        sound[k] = get_file(in_scratch(names[k]), &n[k]);
    json_t *manifest = json_loadb(sound[1], n[1], 0, NULL);
    for (int i = 0; i < 2000; i++) {
        int k = i % 2;
        copy = malloc(n[k]);
        assert_non_null(copy);
        memcpy(copy, sound[k], n[k]);
        corrupt(copy, n[k], &random);
        bool changed = memcmp(copy, sound[k], n[k]) != 0;
        put_file(in_scratch(names[k]), copy, n[k]);
        dsc_error err = {0};
        int rc = verify("a.dst", &err);
        if (!rc && changed) {
            json_t *other = json_loadb(copy, n[k], 0, NULL);
            assert_int_equal(k, 1);
            assert_true(json_equal(manifest, other));
            json_decref(other);
        } else if (changed) {
            assert_int_equal(rc, DSC_EINPUT);
        }
        free(copy);
        put_file(in_scratch(names[k]), sound[k], n[k]);
    }
    json_decref(manifest);
    free(sound[0]);
    free(sound[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(trace_manifest)
{
    const struct CMUnitTest tests[] = {
        TEST(fields_are_checked),
        TEST(broken_manifests),
        TEST(corrupted_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
