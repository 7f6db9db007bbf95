// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of traces and safetensors: a scratch folder, files as bytes, a small
// random generator, and one sample trace.
#ifndef DSC_TESTS_TRACE_FIXTURE_H
#define DSC_TESTS_TRACE_FIXTURE_H

#include "tests/scratch.h"

#include "base/file.h"
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_folder.h"
#include "traces/trace/trace_ids.h"
#include "traces/trace/trace_manifest.h"
#include "traces/trace/trace_values.h"

#include <sys/stat.h>

static inline bool exists(const char *name)
{
    struct stat st;
    return lstat(in_scratch(name), &st) == 0;
}

static inline char *get_file(const char *path, size_t *length)
{
    char *bytes;
    dsc_error err = {0};
    assert_int_equal(dsc_read_file(&bytes, length, path, (size_t)1 << 30, &err), DSC_OK);
    return bytes;
}

// The call failed with `status` and its message holds `word`.
static inline void expect_failure(int rc, int status, const dsc_error *err, const char *word)
{
    if (rc != status || err->status != status || !strstr(err->message, word))
        fail_msg("got %d '%s', expected %d and '%s'", rc, err->message, status, word);
}

static inline void expect_ok(int rc, const dsc_error *err)
{
    if (rc)
        fail_msg("got %d '%s'", rc, err->message);
}

// splitmix64 (Steele, Lea, Flood 2014)
static inline uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// Changes one to four bytes, each to another value.
static inline void corrupt(char *bytes, size_t length, uint64_t *state)
{
    for (uint64_t n = 1 + draw(state) % 4; n > 0; n--) {
        size_t at = draw(state) % length;
        bytes[at] = (char)(bytes[at] ^ (1 + draw(state) % 255));
    }
}

// --- the sample trace --------------------------------------------------------------------------

enum { VOCAB = 1000, SAMPLES = 6 };
#define FIRST_SHARD "a.dst/shard-00000.safetensors"
#define TEXT(s)                                                                                    \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }
#define TOKENS(...)                                                                                \
    {                                                                                              \
        (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / 4                       \
    }

// Every emptiness a trace may hold: no output, no references, an empty reference, no prompt, no
// metadata, no text; and text beyond ASCII.
static const dsc_request_input samples[SAMPLES] = {
    {.id = TEXT("plain"),
     .prompt = TOKENS(1, 2, 3),
     .output = TOKENS(4, 5, 999, 0),
     .prompt_text = TEXT("a b c"),
     .output_text = TEXT("d e f"),
     .references = 2,
     .reference = (const dsc_token_view[]){TOKENS(4, 5, 6, 7, 8), TOKENS(9)},
     .reference_text = (const dsc_text_view[]){TEXT("doc one"), TEXT("turn")},
     .kind = (const dsc_reference_kind[]){DSC_REFERENCE_DOCUMENT, DSC_REFERENCE_TURN},
     .target_logp = (const float[]){-0.5f, 0.0f, -1e30f, -0.0f},
     .metadata = TEXT("{\"task\": \"qa\"}")},
    {.id = TEXT("no output"), .prompt = TOKENS(7), .prompt_text = TEXT("p")},
    {.id = TEXT("αβγ €😀"),
     .prompt = TOKENS(10, 11),
     .output = TOKENS(12),
     .prompt_text = TEXT("naïve 漢字 😀"),
     .output_text = TEXT("ответ"),
     .references = 1,
     .reference = (const dsc_token_view[]){{NULL, 0}},
     .reference_text = (const dsc_text_view[]){{NULL, 0}},
     .kind = (const dsc_reference_kind[]){DSC_REFERENCE_DOCUMENT},
     .target_logp = (const float[]){-2.25f},
     .metadata = TEXT("{\"ключ\": [1, 2.5, null]}")},
    {.id = TEXT("no prompt"),
     .output = TOKENS(1, 1, 1, 1, 1, 1, 1),
     .target_logp = (const float[]){-1, -2, -3, -4, -5, -6, -7}},
    {.id = TEXT("5")},
    {.id = TEXT("last"),
     .prompt = TOKENS(998, 999, 0, 1, 2),
     .output = TOKENS(3, 4),
     .prompt_text = TEXT("\n\t\"quoted\" \\"),
     .output_text = TEXT("end"),
     .references = 3,
     .reference = (const dsc_token_view[]){TOKENS(5), {NULL, 0}, TOKENS(6, 7)},
     .reference_text = (const dsc_text_view[]){TEXT("x"), TEXT(""), TEXT("ÿ")},
     .kind = (const dsc_reference_kind[]){DSC_REFERENCE_TURN, DSC_REFERENCE_TURN,
                                          DSC_REFERENCE_DOCUMENT},
     .target_logp = (const float[]){-0.25f, -3.5f},
     .metadata = TEXT("{}")},
};

static inline dsc_trace_info sample_info(bool text, bool logp)
{
    dsc_trace_info info = {.tokenizer_name = "tok \"x\" ü",
                           .vocab_size = VOCAB,
                           .eos_token = 2,
                           .has_text = text,
                           .has_target_logp = logp,
                           .format = "jsonl",
                           .semantics = "paper",
                           .provenance = "{\"version\":\"0.1\",\"x\":0.1}"};
    memset(info.tokenizer_sha256, 'a', DSC_SHA256_HEX - 1);
    return info;
}

// Writes all samples as NAME in the scratch folder, replacing what is there.
static inline void write_samples(const char *name, bool text, bool logp, int64_t shard_tokens)
{
    dsc_error err = {0};
    dsc_trace_writer *w;
    const dsc_trace_info info = sample_info(text, logp);
    expect_ok(dsc_trace_writer_open(&w, in_scratch(name), &info, true, shard_tokens, &err), &err);
    for (int i = 0; i < SAMPLES; i++)
        expect_ok(dsc_trace_writer_add(w, &samples[i], &err), &err);
    expect_ok(dsc_trace_writer_commit(w, NULL, &err), &err);
}

static inline int verify(const char *name, dsc_error *err)
{
    dsc_trace *t;
    int rc = dsc_trace_open(&t, in_scratch(name), err);
    if (!rc)
        rc = dsc_trace_verify(t, err);
    dsc_trace_close(t);
    return rc;
}

// --- damage to a.dst ---------------------------------------------------------------------------

static inline int open_shard(dsc_error *err)
{
    dsc_trace *t;
    dsc_shard *s = NULL;
    *err = (dsc_error){0};
    expect_ok(dsc_trace_open(&t, in_scratch("a.dst"), err), err);
    int rc = dsc_shard_open(&s, t, 0, err);
    if (rc)
        assert_null(s);
    dsc_shard_close(s);
    dsc_trace_close(t);
    return rc;
}

// Overwrites element `index` (from the end when negative) of a column where it lies in the file.
static inline void patch(const char *tensor, int64_t index, const void *value)
{
    dsc_error err = {0};
    dsc_safetensors *s;
    size_t n;
    expect_ok(dsc_safetensors_open(&s, in_scratch(FIRST_SHARD), &err), &err);
    const dsc_tensor *t = dsc_safetensors_find(s, tensor);
    assert_non_null(t);
    size_t size = dsc_dtype_bytes(t->dtype);
    size_t at = (size_t)t->begin + size * (size_t)(index < 0 ? t->count + index : index);
    dsc_safetensors_close(s);
    char *bytes = get_file(in_scratch(FIRST_SHARD), &n);
    memcpy(bytes + at, value, size);
    put_file(in_scratch(FIRST_SHARD), bytes, n);
    free(bytes);
}

// Makes the manifest fit the shards on disk again (size, hashes), so that only errors in the
// shards remain. `field`, a member of "totals" and perhaps of the first shard, becomes
// `value` there unless it is NULL.
static inline void reseal(const char *field, int64_t value)
{
    dsc_error err = {0};
    dsc_shard_entry e[8] = {0};
    char hex[DSC_SHA256_HEX], *path;
    struct stat st;
    json_t *root = json_load_file(in_scratch("a.dst/manifest.json"), 0, NULL), *shard;
    assert_non_null(root);
    json_t *list = json_object_get(root, "shards");
    size_t i;
    json_array_foreach(list, i, shard)
    {
        expect_ok(dsc_trace_shard_path(&path, in_scratch("a.dst"), i, &err), &err);
        expect_ok(dsc_sha256_file(path, e[i].sha256, &err), &err);
        assert_int_equal(stat(path, &st), 0);
        json_object_set_new(shard, "bytes", json_integer(st.st_size));
        json_object_set_new(shard, "sha256", json_string(e[i].sha256));
        free(path);
    }
    dsc_trace_hash(e, json_array_size(list), hex);
    json_object_set_new(root, "hash", json_string(hex));
    if (field)
        json_object_set_new(json_object_get(root, "totals"), field, json_integer(value));
    shard = json_array_get(list, 0);
    if (field && json_object_get(shard, field))
        json_object_set_new(shard, field, json_integer(value));
    expect_ok(dsc_manifest_seal(root, hex, &err), &err);
    json_object_set_new(root, "manifest_sha256", json_string(hex));
    assert_int_equal(json_dump_file(root, in_scratch("a.dst/manifest.json"), 0), 0);
    json_decref(root);
}

// Writes the shard anew with `change` in place of the tensor of that name (left out when it has
// no data), or added when there is none.
static inline void replace(dsc_tensor change)
{
    dsc_error err = {0};
    dsc_safetensors *s;
    dsc_tensor list[DSC_COLUMNS + 1];
    size_t count = 0;
    bool done = false;
    expect_ok(dsc_safetensors_open(&s, in_scratch(FIRST_SHARD), &err), &err);
    for (size_t i = 0; i < dsc_safetensors_count(s); i++) {
        const dsc_tensor *t = dsc_safetensors_at(s, i);
        bool same = !strcmp(t->name, change.name);
        done |= same;
        if (!same || change.data)
            list[count++] = same ? change : *t;
    }
    if (!done)
        list[count++] = change;
    assert_int_equal(rename(in_scratch(FIRST_SHARD), in_scratch("former")), 0);
    expect_ok(dsc_safetensors_write(in_scratch(FIRST_SHARD), list, count, &err), &err);
    dsc_safetensors_close(s);
    reseal(NULL, 0);
}

// Whatever bytes of the first shard change, the reader neither crashes nor passes it in
// verification.
static inline void check_corrupted(uint64_t random)
{
    size_t n;
    char *sound = get_file(in_scratch(FIRST_SHARD), &n), *copy = malloc(n);
    assert_non_null(copy);
    for (int i = 0; i < 1500; i++) {
        dsc_error err = {0};
        memcpy(copy, sound, n);
        corrupt(copy, n, &random);
        put_file(in_scratch(FIRST_SHARD), copy, n);
        if (memcmp(copy, sound, n))
            assert_int_equal(verify("a.dst", &err), DSC_EINPUT);
        reseal(NULL, 0); // now the hashes do not help
        int rc = verify("a.dst", &err);
        assert_true(rc == DSC_OK || rc == DSC_EINPUT);
    }
    free(copy);
    free(sound);
}

#endif
