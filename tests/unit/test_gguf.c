// SPDX-License-Identifier: Apache-2.0
// GGUF files: values and tensors of sound files, refusals of damaged and hostile ones, and the
// tokenizers in them, whose ids are those of llama.cpp (tests/oracle/make_gguf.py).
#include "tests/unit/gguf_fixture.h"

#include "base/json_file.h"
#include "traces/import/import_template.h"
#include "traces/tokenizer/ends.h"
#include "traces/tokenizer/gguf_config.h"
#include "traces/tokenizer/tokenizer.h"

static const uint64_t two_rows[] = {32, 2}; // of 32 numbers

static gguf_file sound(uint32_t version)
{
    gguf_file f = gguf_begin(version);
    put_string(&f, "general.architecture", "llama");
    put_u32(&f, "n", 7);
    put_tensor(&f, "a", 2, two_rows, DSC_GGML_Q8_0, 0);
    put_tensor(&f, "b", 1, two_rows, DSC_GGML_F32, 96);
    return f;
}

static void refused(gguf_file *f, const char *message)
{
    dsc_gguf *g;
    dsc_error err = {0};
    assert_int_equal(dsc_gguf_open(&g, gguf_write(f, 32, 224), &err), DSC_EINPUT);
    assert_null(g);
    if (!strstr(err.message, message) || !strstr(err.message, "a.gguf"))
        fail_msg("'%s' lacks '%s'", err.message, message);
}

// --- sound files -------------------------------------------------------------------------------

static void both_versions_are_read(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        dsc_gguf *g;
        dsc_error err = {0};
        dsc_gguf_text s;
        int64_t n = 0;
        gguf_file f = sound(version);
        const char *path = gguf_write(&f, 32, 224);
        assert_true(dsc_gguf_is(path));
        assert_ok(dsc_gguf_open(&g, path, &err), err);
        assert_int_equal(dsc_gguf_values(g), 2);
        assert_true(dsc_gguf_string(dsc_gguf_find(g, "general.architecture"), 0, &s));
        assert_int_equal(s.length, 5);
        assert_memory_equal(s.data, "llama", 5);
        assert_true(dsc_gguf_integer(dsc_gguf_find(g, "n"), 0, &n));
        assert_int_equal(n, 7);
        assert_null(dsc_gguf_find(g, "m"));
        const dsc_gguf_tensor *t = dsc_gguf_tensor_find(g, "a");
        assert_int_equal(t->rank, 2);
        assert_int_equal(t->shape[0], 2); // the file has the innermost dimension first
        assert_int_equal(t->shape[1], 32);
        assert_int_equal(t->end - t->begin, 68);
        assert_int_equal(t->data[0], 1);
        assert_int_equal(dsc_gguf_tensor_find(g, "b")->data[0], 97);
        assert_ptr_equal(dsc_gguf_tensor_at(g, 1), dsc_gguf_tensor_find(g, "b"));
        dsc_gguf_close(g);
    }
}

static void values_of_every_type(void **state)
{
    (void)state;
    static const struct {
        dsc_gguf_kind kind;
        size_t bytes;
        uint64_t bits;
        double value;
    } of[] = {
        {DSC_GGUF_U8, 1, 200, 200},          {DSC_GGUF_I8, 1, 0xff, -1},
        {DSC_GGUF_U16, 2, 65535, 65535},     {DSC_GGUF_I16, 2, 0xfffe, -2},
        {DSC_GGUF_U32, 4, 1u << 31, 0x1p31}, {DSC_GGUF_I32, 4, 1u << 31, -0x1p31},
        {DSC_GGUF_F32, 4, 0x3fc00000, 1.5},  {DSC_GGUF_U64, 8, 1ull << 40, 0x1p40},
        {DSC_GGUF_I64, 8, ~0ull, -1},        {DSC_GGUF_F64, 8, 0x3ff8000000000000, 1.5},
    };
    gguf_file f = gguf_begin(3);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char key[] = {(char)('a' + (int)i), 0};
        put_array(&f, key, of[i].kind, 2); // the second element is the number
        put_number(&f, 0, of[i].bytes);
        put_number(&f, of[i].bits, of[i].bytes);
    }
    put_key(&f, "yes", DSC_GGUF_BOOL);
    put_number(&f, 1, 1);
    put_key(&f, "large", DSC_GGUF_U64);
    put_number(&f, 1ull << 63, 8);
    put_array(&f, "words", DSC_GGUF_STRING, 2);
    put_word(&f, "one");
    put_word(&f, "");
    put_array(&f, "nested", DSC_GGUF_ARRAY, 2);
    for (int i = 0; i < 2; i++) {
        put_number(&f, DSC_GGUF_STRING, 4);
        put_number(&f, 1, 8);
        put_word(&f, "x");
    }
    put_u32(&f, "last", 1);
    dsc_gguf *g;
    dsc_error err = {0};
    assert_ok(dsc_gguf_open(&g, gguf_write(&f, 1, 0), &err), err);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        double x = 0;
        int64_t n = 0;
        const dsc_gguf_value *v = dsc_gguf_value_at(g, i);
        assert_true(dsc_gguf_real(v, 1, &x));
        assert_true(x == of[i].value);
        const bool real = v->kind == DSC_GGUF_F32 || v->kind == DSC_GGUF_F64;
        assert_int_equal(dsc_gguf_integer(v, 1, &n), !real);
        assert_true(real || (double)n == of[i].value);
        assert_false(dsc_gguf_real(v, 2, &x));
    }
    int64_t n;
    dsc_gguf_text s;
    assert_false(dsc_gguf_integer(dsc_gguf_find(g, "large"), 0, &n));
    assert_false(dsc_gguf_integer(dsc_gguf_find(g, "yes"), 0, &n));
    assert_true(dsc_gguf_string(dsc_gguf_find(g, "words"), 1, &s));
    assert_int_equal(s.length, 0);
    assert_false(dsc_gguf_string(dsc_gguf_find(g, "words"), 2, &s));
    assert_true(dsc_gguf_integer(dsc_gguf_find(g, "last"), 0, &n));
    dsc_gguf_close(g);
}

// --- refusals ----------------------------------------------------------------------------------

static void headers_are_refused(void **state)
{
    (void)state;
    gguf_file f = sound(1);
    refused(&f, "version 1 is not supported; versions 2 and 3 are");
    f = sound(0x03000000);
    refused(&f, "a big-endian GGUF file; convert it with: gguf-convert-endian");
    f = sound(3);
    f.b.data[0] = 'g';
    refused(&f, "not a GGUF file");
    f = sound(3);
    f.values = UINT64_MAX;
    refused(&f, "metadata entries do not fit");
    f = sound(3);
    f.tensors = UINT64_MAX / 2;
    refused(&f, "tensors do not fit");
    f = sound(3);
    put_bytes(&f, "", 0);
    f.values++;
    refused(&f, "goes beyond the end of the file");
}

static void metadata_is_refused(void **state)
{
    (void)state;
    gguf_file f = gguf_begin(3);
    put_u32(&f, "k", 1);
    put_u32(&f, "k", 1);
    refused(&f, "the key 'k' is there twice");
    f = gguf_begin(3);
    put_key(&f, "k", DSC_GGUF_KINDS);
    refused(&f, "metadata key 'k': unknown type 13");
    f = gguf_begin(3);
    put_array(&f, "k", DSC_GGUF_U64, 1ull << 61);
    refused(&f, "an array goes beyond the end");
    f = gguf_begin(3);
    put_array(&f, "k", DSC_GGUF_STRING, 1ull << 62);
    refused(&f, "an array of strings goes beyond the end");
    f = gguf_begin(3);
    put_key(&f, "k", DSC_GGUF_STRING);
    put_number(&f, UINT64_MAX, 8);
    refused(&f, "a string goes beyond the end");
    f = gguf_begin(3);
    put_array(&f, "k", DSC_GGUF_ARRAY, 1);
    for (int i = 0; i < 20; i++) {
        put_number(&f, DSC_GGUF_ARRAY, 4);
        put_number(&f, 1, 8);
    }
    refused(&f, "arrays within arrays; at most 8 levels");
    f = gguf_begin(3);
    put_key(&f, "k", DSC_GGUF_BOOL);
    put_number(&f, 2, 1);
    refused(&f, "a truth value is 2");
    f = gguf_begin(3);
    put_u32(&f, "", 1);
    refused(&f, "a metadata key of 0 bytes");
    f = gguf_begin(3);
    put_u32(&f, "\xff", 1);
    refused(&f, "is not a text in UTF-8");
    f = gguf_begin(3);
    put_u32(&f, "general.alignment", 24);
    refused(&f, "general.alignment must be a power of two");
    f = gguf_begin(3);
    put_key(&f, "split.count", DSC_GGUF_U16);
    put_number(&f, 3, 2);
    refused(&f, "one of 3 parts of a model; join them first: llama-gguf-split --merge");
}

static void tensors_are_refused(void **state)
{
    (void)state;
    static const uint64_t odd[] = {33, 2}, huge[] = {1ull << 62, 4, 1, 1, 1};
    gguf_file f = sound(3);
    put_tensor(&f, "a", 1, two_rows, DSC_GGML_F32, 96);
    refused(&f, "tensor 'b': begins at byte 320, within 'a', which ends at 448");
    f = gguf_begin(3);
    put_tensor(&f, "a", 1, two_rows, DSC_GGML_F32, 0);
    put_tensor(&f, "a", 1, two_rows, DSC_GGML_F16, 128);
    refused(&f, "tensor 'a': a tensor of this name is there twice");
    f = gguf_begin(3);
    put_tensor(&f, "a", 2, odd, DSC_GGML_Q4_K, 0);
    refused(&f, "a row of 33 numbers is no multiple of a block of Q4_K: 256");
    f = gguf_begin(3);
    put_tensor(&f, "a", 2, huge, DSC_GGML_F32, 0);
    refused(&f, "the product of its dimensions overflows");
    f = gguf_begin(3);
    put_tensor(&f, "a", 1, huge, DSC_GGML_F32, 0);
    refused(&f, "its size overflows");
    f = gguf_begin(3);
    put_tensor(&f, "a", 5, huge, DSC_GGML_F32, 0);
    refused(&f, "5 dimensions; 1 to 4 expected");
    f = gguf_begin(3);
    put_tensor(&f, "a", 1, two_rows, DSC_GGML_F32, 128);
    refused(&f, "go beyond the end of the file (truncated?)");
    f = gguf_begin(3);
    put_tensor(&f, "a", 1, two_rows, DSC_GGML_F32, UINT64_MAX - 31);
    refused(&f, "go beyond the end of the file (truncated?)");
    f = gguf_begin(3);
    put_tensor(&f, "a", 1, two_rows, DSC_GGML_F32, 8);
    refused(&f, "offset 8 is not aligned to 32 bytes");
}

// A file that ends anywhere is refused, never read beyond its end.
static void truncated_files_are_refused(void **state)
{
    (void)state;
    gguf_file f = sound(3);
    const char *path = gguf_write(&f, 32, 224);
    FILE *in = fopen(path, "rb");
    char bytes[1024];
    assert_non_null(in);
    const size_t size = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    for (size_t n = 0; n < size; n++) {
        dsc_gguf *g;
        dsc_error err = {0};
        put_file(path, bytes, n);
        assert_int_equal(dsc_gguf_open(&g, path, &err), DSC_EINPUT);
    }
}

// --- tokenizers --------------------------------------------------------------------------------

static const char *golden(const char *name, const char *suffix)
{
    static char path[2][1024];
    static int next;
    char inside[200];
    snprintf(inside, sizeof inside, "tests/oracle/gguf/%s%s", name, suffix);
    return source_path(inside, path[next++ % 2], sizeof path[0]);
}

static int check_line(dsc_encoder *e, const dsc_tokenizer *t, const char *line)
{
    dsc_tokens got = {0};
    dsc_buffer text = {0};
    dsc_error err = {0};
    json_t *o;
    assert_ok(dsc_json_parse(&o, line, strlen(line), 0, "golden", &err), err);
    const char *s = json_string_value(json_object_get(o, "text"));
    const json_t *ids = json_object_get(o, "ids");
    assert_ok(dsc_encode(e, s, strlen(s), true, &got, &err), err);
    bool same = got.count == json_array_size(ids);
    for (size_t i = 0; same && i < got.count; i++)
        same = got.id[i] == json_integer_value(json_array_get(ids, i));
    if (!same)
        fail_msg("'%s': %zu ids, which are not llama.cpp's %zu", s, got.count,
                 json_array_size(ids));
    assert_ok(dsc_decode(t, got.id, got.count, true, &text, &err), err);
    dsc_tokens_fini(&got);
    dsc_buffer_fini(&text);
    json_decref(o);
    return 1;
}

static void ids_are_those_of_llama_cpp(void **state)
{
    static const char *const names[] = {"bpe_smollm", "bpe_llama3", "pieces", "pieces_plain"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dsc_tokenizer *t;
        dsc_encoder *e;
        dsc_error err = {0};
        char line[4096];
        int lines = 0;
        assert_ok(dsc_tokenizer_load(&t, golden(names[i], ".gguf"), &err), err);
        assert_ok(dsc_encoder_new(&e, t, &err), err);
        FILE *f = fopen(golden(names[i], ".jsonl"), "r");
        assert_non_null(f);
        while (fgets(line, sizeof line, f))
            lines += check_line(e, t, line);
        fclose(f);
        assert_true(lines >= 14);
        dsc_encoder_free(e);
        dsc_tokenizer_free(t);
    }
}

static void the_eos_token_is_that_of_the_metadata(void **state)
{
    (void)state;
    dsc_tokenizer *t;
    dsc_error err = {0};
    assert_ok(dsc_tokenizer_load(&t, golden("bpe_smollm", ".gguf"), &err), err);
    assert_int_equal(dsc_tokenizer_eos(t), dsc_tokenizer_find(t, "<|end|>"));
    assert_int_equal(strlen(dsc_tokenizer_sha256(t)), 64);
    dsc_tokenizer_free(t);
}

static void the_chat_template_is_found(void **state)
{
    (void)state;
    dsc_chat_found found;
    dsc_ends ends;
    dsc_tokenizer *t;
    json_t *config;
    dsc_error err = {0};
    const char *path = golden("pieces", ".gguf");
    assert_ok(dsc_chat_template_beside(&found, path, &err), err);
    assert_string_equal(dsc_chat_template_name(found.format), "chatml");
    assert_ok(dsc_gguf_tokenizer_config(&config, path, &err), err);
    assert_string_equal(json_string_value(json_object_get(config, "bos_token")), "<s>");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(config, "eos_token_id"), 0)),
                     2);
    json_decref(config);
    assert_ok(dsc_tokenizer_load(&t, path, &err), err);
    assert_ok(dsc_ends_read(&ends, t, path, &err), err);
    assert_false(ends.guessed);
    assert_int_equal(ends.id[0], 2);
    dsc_tokenizer_free(t);
}

// A vocabulary of two tokens; `change` adds to it or spoils it.
static void tokenizer_refused(void (*change)(gguf_file *f), const char *message)
{
    dsc_tokenizer *t;
    dsc_error err = {0};
    gguf_file f = gguf_begin(3);
    change(&f);
    assert_int_equal(dsc_tokenizer_load(&t, gguf_write(&f, 1, 0), &err), DSC_EINPUT);
    if (!strstr(err.message, message))
        fail_msg("'%s' lacks '%s'", err.message, message);
}

static void put_tokens(gguf_file *f, const char *a, const char *b)
{
    put_array(f, "tokenizer.ggml.tokens", DSC_GGUF_STRING, 2);
    put_word(f, a);
    put_word(f, b);
}

static void no_tokenizer(gguf_file *f)
{
    put_u32(f, "a", 1);
}

static void unknown_model(gguf_file *f)
{
    put_string(f, "tokenizer.ggml.model", "t5");
}

static void unknown_pre(gguf_file *f)
{
    put_string(f, "tokenizer.ggml.model", "gpt2");
    put_string(f, "tokenizer.ggml.pre", "martian");
}

static void no_tokens(gguf_file *f)
{
    put_string(f, "tokenizer.ggml.model", "llama");
}

static void no_scores(gguf_file *f)
{
    no_tokens(f);
    put_tokens(f, "a", "b");
}

static void few_scores(gguf_file *f)
{
    no_scores(f);
    put_array(f, "tokenizer.ggml.scores", DSC_GGUF_F32, 1);
    put_number(f, 0, 4);
}

static void same_tokens(gguf_file *f)
{
    no_tokens(f);
    put_tokens(f, "a", "a");
    put_array(f, "tokenizer.ggml.scores", DSC_GGUF_F32, 2);
    put_number(f, 0, 8);
}

static void bad_token(gguf_file *f)
{
    no_tokens(f);
    put_tokens(f, "a", "\xc3");
    put_array(f, "tokenizer.ggml.scores", DSC_GGUF_F32, 2);
    put_number(f, 0, 8);
}

static void tokenizers_are_refused(void **state)
{
    (void)state;
    tokenizer_refused(no_tokenizer, "the file has no tokenizer");
    tokenizer_refused(unknown_model, "tokenizer.ggml.model 't5' is not supported");
    tokenizer_refused(unknown_pre, "tokenizer.ggml.pre 'martian' is not a pre-tokenizer");
    tokenizer_refused(no_tokens, "'tokenizer.ggml.tokens' is missing");
    tokenizer_refused(no_scores, "'tokenizer.ggml.scores' is missing");
    tokenizer_refused(few_scores, "has 1 elements for 2 tokens");
    tokenizer_refused(same_tokens, "tokens 0 and 1 are the same: 'a'");
    tokenizer_refused(bad_token, "token 1 is not a text in UTF-8");
}

SUITE(gguf)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions_are_read),
        cmocka_unit_test(values_of_every_type),
        cmocka_unit_test(headers_are_refused),
        cmocka_unit_test(metadata_is_refused),
        cmocka_unit_test(tensors_are_refused),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(ids_are_those_of_llama_cpp),
        cmocka_unit_test(the_eos_token_is_that_of_the_metadata),
        cmocka_unit_test(the_chat_template_is_found),
        cmocka_unit_test(tokenizers_are_refused),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
