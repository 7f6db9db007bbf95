// SPDX-License-Identifier: Apache-2.0
// The tokenizer against the answers of the HF library (tests/data/tokenizers/golden.jsonl) and the
// vectors of llama.cpp.
#include "tests/unit/tokenizer_fixture.h"

#include "base/file.h"

#include <jansson.h>

typedef struct tok_part { // of a text, which may hold zeros
    const char *bytes;
    size_t length;
} tok_part;
#define PART(s)                                                                                    \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

// A file of the development data: NAME and its extension; skips the test when it is not there.
static const char *vector_path(const char *name, const char *extension)
{
    static char path[1024];
    char inside[128];
    snprintf(inside, sizeof inside, "tokenizers/%s.%s", name, extension);
    return data_path(inside, path, sizeof path);
}

static void check_ids(const json_t *expected, const int32_t *id, size_t count, const char *text)
{
    bool same = json_array_size(expected) == count;
    for (size_t i = 0; same && i < count; i++)
        same = json_integer_value(json_array_get(expected, i)) == id[i];
    if (!same)
        fail_msg("wrong tokens for \"%s\" (%zu, expected %zu)", text, count,
                 json_array_size(expected));
}

static void check_decode(const tok_pair *p, const dsc_tokens *ids, bool skip, const json_t *row,
                         const char *key)
{
    const json_t *text = json_object_get(row, "text"), *other = json_object_get(row, key);
    text = other ? other : text;
    dsc_buffer out = {0};
    assert_int_equal(dsc_decode(p->t, ids->id, ids->count, skip, &out, NULL), DSC_OK);
    assert_int_equal(out.length, json_string_length(text));
    assert_memory_equal(out.data, json_string_value(text), out.length);
    dsc_buffer_fini(&out);
}

static void check_row(const tok_pair *p, const json_t *row)
{
    const json_t *text = json_object_get(row, "text"), *special = json_object_get(row, "special");
    const char *s = json_string_value(text);
    size_t length = json_string_length(text);
    for (int again = 0; again < 2; again++) { // the second time from the word cache
        dsc_tokens ids = encode(p, s, length, false);
        check_ids(json_object_get(row, "ids"), ids.id, ids.count, s);
        check_decode(p, &ids, false, row, "decoded");
        check_decode(p, &ids, true, row, "skipped");
        dsc_tokens_fini(&ids);
    }
    dsc_tokens ids = encode(p, s, length, true); // golden: the first three, then the last two
    int32_t ends[5];
    size_t n = 0;
    for (size_t i = 0; i < ids.count && i < 3; i++)
        ends[n++] = ids.id[i];
    for (size_t i = ids.count < 2 ? 0 : ids.count - 2; i < ids.count; i++)
        ends[n++] = ids.id[i];
    check_ids(special, ends, n, s);
    dsc_tokens_fini(&ids);
}

static void test_golden(void **state)
{
    (void)state;
    char *text, open_name[64] = "";
    size_t length, rows = 0;
    tok_pair p = {0};
    assert_int_equal(dsc_read_file(&text, &length, golden_path("golden.jsonl"), 1 << 20, NULL), 0);
    for (char *line = text, *next; *line; line = next, rows++) {
        next = strchr(line, '\n') + 1;
        json_t *row = json_loadb(line, (size_t)(next - line), JSON_ALLOW_NUL, NULL);
        assert_non_null(row);
        const char *name = json_string_value(json_object_get(row, "tokenizer"));
        if (strcmp(name, open_name) != 0) {
            char file[80];
            close_pair(&p);
            snprintf(open_name, sizeof open_name, "%s", name);
            snprintf(file, sizeof file, "%s.json", name);
            p = open_pair(golden_path(file));
        }
        check_row(&p, row);
        json_decref(row);
    }
    close_pair(&p);
    free(text);
    assert_true(rows >= 4 * 40);
}

// Cases and answers in the form of llama.cpp's tests/test-tokenizer-0.
static void check_vectors(const char *name)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";
    char *cases, *answers;
    size_t length;
    assert_int_equal(dsc_read_file(&cases, &length, vector_path(name, "inp"), 1 << 20, NULL), 0);
    assert_int_equal(dsc_read_file(&answers, &length, vector_path(name, "out"), 1 << 20, NULL), 0);
    tok_pair p = open_pair(vector_path(name, "json"));
    int count = 0;
    char *answer = answers, *end = NULL;
    for (char *text = cases; text; text = end ? end + strlen(mark) : NULL, count++) {
        end = strstr(text, mark); // the last case, an empty text, ends with the file
        size_t n = end ? (size_t)(end - text) : strlen(text);
        dsc_tokens ids = encode(&p, text, n, false);
        for (size_t i = 0; i < ids.count; i++)
            assert_int_equal(strtol(answer, &answer, 10), ids.id[i]);
        assert_int_equal(strspn(answer, " "), strcspn(answer, "\n")); // no id is left over
        answer += strcspn(answer, "\n");
        answer += *answer == '\n';
        dsc_buffer back = {0};
        assert_int_equal(dsc_decode(p.t, ids.id, ids.count, false, &back, NULL), DSC_OK);
        assert_int_equal(back.length, n);
        if (n)
            assert_memory_equal(back.data, text, n);
        dsc_buffer_fini(&back);
        dsc_tokens_fini(&ids);
    }
    assert_int_equal(count, 47);
    close_pair(&p);
    free(cases);
    free(answers);
}

static void test_vectors_gpt2(void **state)
{
    (void)state;
    check_vectors("gpt2");
}

static void test_vectors_llama2(void **state)
{
    (void)state;
    check_vectors("llama2");
}

static void test_names(void **state)
{
    (void)state;
    tok_pair p = open_pair(golden_path("llama3-style.json"));
    assert_string_equal(dsc_tokenizer_name(p.t), "llama3-style.json");
    assert_int_equal(strlen(dsc_tokenizer_sha256(p.t)), 64);
    assert_int_equal(dsc_tokenizer_vocab_size(p.t), 603);
    assert_int_equal(dsc_tokenizer_find(p.t, "<|begin_of_text|>"), 600);
    dsc_tokens the = encode(&p, " the", 4, false);
    assert_int_equal(the.count, 1);
    assert_int_equal(dsc_tokenizer_find(p.t, "\xC4\xA0the"), the.id[0]);
    dsc_tokens_fini(&the);
    assert_int_equal(dsc_tokenizer_find(p.t, "no such token"), -1);
    assert_int_equal(dsc_tokenizer_eos(p.t), 601); // <|end_of_text|> before <|eot_id|>
    int32_t outside = 603;
    dsc_buffer out = {0};
    dsc_error err = {0};
    assert_int_equal(dsc_decode(p.t, &outside, 1, false, &out, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "603"));
    outside = -1;
    assert_int_equal(dsc_decode(p.t, &outside, 1, false, &out, &err), DSC_EINPUT);
    dsc_buffer_fini(&out);
    close_pair(&p);
}

static void test_bytes(void **state)
{
    (void)state;
    tok_pair p = open_pair("bytes");
    const char text[] = "a\0\xFF";
    dsc_tokens ids = encode(&p, text, 3, true);
    const int32_t expected[] = {256, 'a', 0, 255};
    assert_int_equal(ids.count, 4);
    assert_memory_equal(ids.id, expected, sizeof expected);
    dsc_buffer out = {0};
    assert_int_equal(dsc_decode(p.t, ids.id, 4, true, &out, NULL), DSC_OK);
    assert_int_equal(out.length, 3);
    assert_memory_equal(out.data, text, 3);
    assert_int_equal(dsc_decode(p.t, ids.id, 2, false, &out, NULL), DSC_OK); // appends
    assert_memory_equal(out.data + 3, "<s>a", 5);
    assert_int_equal(dsc_tokenizer_vocab_size(p.t), 258);
    assert_int_equal(dsc_tokenizer_eos(p.t), 257);
    assert_int_equal(dsc_tokenizer_find(p.t, "</s>"), 257);
    assert_int_equal(dsc_tokenizer_find(p.t, "a"), 'a');
    assert_int_equal(dsc_tokenizer_find(p.t, "ab"), -1);
    dsc_buffer_fini(&out);
    dsc_tokens_fini(&ids);
    close_pair(&p);
}

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int valid; // bytes before the error
    } bad[] = {
        {"abcdefgh\x80", 8},     {"a\xC3", 1},
        {"\xC0\x80", 0},         {"ab\xED\xA0\x80", 2},
        {"\xE0\x9F\xBF", 0},     {"x\xF0\x8F\xBF\xBF", 1},
        {"\xF4\x90\x80\x80", 0}, {"\xF5\x80\x80\x80", 0},
        {"\xC3\xA9\xE2\x82", 2}, {"\xF0\x9F\x98\x80\xFF", 4},
        {"\xC1\xBF", 0},
    };
    tok_pair p = open_pair(golden_path("mistral-style.json"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dsc_tokens out = {0};
        dsc_error err = {0};
        char where[32];
        snprintf(where, sizeof where, "byte %d", bad[i].valid);
        assert_int_equal(dsc_encode(p.e, bad[i].text, strlen(bad[i].text), true, &out, &err),
                         DSC_EINPUT);
        assert_int_equal(out.count, 0);
        const char *said = strstr(err.message, where);
        assert_non_null(said);
        assert_int_equal(said[strlen(where)], '\0');
        dsc_tokens_fini(&out);
    }
    close_pair(&p);
}

// Every character there is comes back, by itself and among others.
static void test_round_trip(void **state)
{
    (void)state;
    tok_pair p = open_pair(golden_path("llama3-style.json"));
    dsc_buffer text = {0}, back = {0};
    for (uint32_t c = 0; c < 0x110000; c++) {
        char s[4];
        size_t n = 0;
        if (c >= 0xD800 && c < 0xE000)
            continue;
        if (c < 0x80) {
            s[n++] = (char)c;
        } else {
            int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
            s[n++] = (char)((0xF00 >> (more + 1)) | c >> 6 * more);
            while (more--)
                s[n++] = (char)(0x80 | (c >> 6 * more & 0x3F));
        }
        assert_int_equal(dsc_buffer_append(&text, s, n, NULL), DSC_OK);
        if (c % 4099 == 0)
            assert_int_equal(dsc_buffer_puts(&text, " the <|eot_id|>  \n", NULL), DSC_OK);
    }
    dsc_tokens ids = encode(&p, text.data, text.length, false);
    assert_int_equal(dsc_decode(p.t, ids.id, ids.count, false, &back, NULL), DSC_OK);
    assert_int_equal(back.length, text.length);
    assert_memory_equal(back.data, text.data, text.length);
    dsc_tokens_fini(&ids);
    dsc_buffer_fini(&text);
    dsc_buffer_fini(&back);
    close_pair(&p);
}

// Byte tokens that merge with a neighbor; the boundaries of characters do not matter then.
static void test_byte_merges(void **state)
{
    (void)state;
    dsc_buffer json = {0};
    assert_int_equal(dsc_buffer_puts(&json,
                                     "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
                                     "\"vocab\":{\"a\":256,\"<0xA9>a\":257",
                                     NULL),
                     0);
    for (int b = 0; b < 256; b++)
        assert_int_equal(dsc_buffer_printf(&json, NULL, ",\"<0x%02X>\":%d", b, b), 0);
    assert_int_equal(dsc_buffer_puts(&json, "},\"merges\":[\"<0xA9> a\"]}}", NULL), 0);
    tok_pair p = open_text(json.data);
    assert_string_equal(pieces(&p, "\xC3\xA9"
                                   "aa"),
                        "<0xC3>|<0xA9>a|a");
    close_pair(&p);
    dsc_buffer_fini(&json);
}

// An encoder with many cached words gives the same result as a new one, also for words that differ
// in zeros only and at the end of a text, after which nothing may be read.
static void test_remembered_words(void **state)
{
    (void)state;
    static const tok_part part[] = {
        PART("!"),    PART("\0"), PART("a"),  PART("the"),  PART(" "),        PART("ing"),
        PART("1234"), PART(","),  PART("\n"), PART("tion"), PART("\xc3\xa9"), PART("\xe2\x96\x81")};
    enum { PARTS = sizeof part / sizeof *part, TEXTS = 600, MOST = 24 };
    char sample[1024];
    source_path("traces/sample/tokenizer.json", sample, sizeof sample);
    for (int file = 0; file < 3; file++) {
        tok_pair p = open_pair(file == 0   ? sample
                               : file == 1 ? golden_path("mistral-style.json")
                                           : golden_path("qwen2-style.json"));
        uint32_t random = 1;
        for (int i = 0; i < TEXTS; i++) {
            char text[4 * MOST];
            size_t length = 0;
            for (uint32_t n = 1 + (random >> 16) % MOST; n; n--) {
                random = random * 1664525 + 1013904223; // Numerical Recipes
                const tok_part *x = &part[(random >> 16) % PARTS];
                memcpy(text + length, x->bytes, x->length);
                length += x->length;
            }
            char *whole = malloc(length);
            assert_non_null(whole);
            memcpy(whole, text, length);
            dsc_tokens ids = encode(&p, whole, length, false);
            if (i % 8 == 0) {
                tok_pair fresh = {.t = p.t};
                assert_int_equal(dsc_encoder_new(&fresh.e, p.t, NULL), DSC_OK);
                dsc_tokens other = encode(&fresh, text, length, false);
                assert_int_equal(ids.count, other.count);
                assert_memory_equal(ids.id, other.id, other.count * sizeof *other.id);
                dsc_tokens_fini(&other);
                dsc_encoder_free(fresh.e);
            }
            dsc_tokens_fini(&ids);
            free(whole);
        }
        close_pair(&p);
    }
}

// The ids of a short word share two numbers of 64 bits: none may lose its upper bits.
static void test_large_ids(void **state)
{
    (void)state;
    static const int32_t want[] = {0x123456, 0x1abcde, 0x10ff01, 0x1f00f0, 0x155aaa};
    tok_pair p = open_text("{" BPE("",
                                   "\"a\":1193046,\"b\":1752286,\"c\":1113857,\"d\":2031856,"
                                   "\"e\":1399466",
                                   "") "}");
    for (size_t n = 1; n <= 5; n++)
        for (int again = 0; again < 2; again++) {
            dsc_tokens ids = encode(&p, "abcde", n, false);
            assert_int_equal(ids.count, n);
            assert_memory_equal(ids.id, want, n * sizeof *want);
            dsc_tokens_fini(&ids);
        }
    close_pair(&p);
}

// A word is not cut off before a mark that some merge joins to it.
static void test_joined_marks(void **state)
{
    (void)state;
    static const int32_t want[] = {2, 3, 1, 2, 3, 1, 2, 1, 2, 1};
    char file[8192]; // with all tokens of bytes: without them texts are not cut at all
    int n = snprintf(file, sizeof file,
                     "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
                     "\"prepend_scheme\":\"first\",\"split\":false},\"model\":{\"type\":\"BPE\","
                     "\"byte_fallback\":true,\"merges\":[\"a \xe2\x96\x81\"],\"vocab\":{"
                     "\"a\":0,\"b\":1,\"\xe2\x96\x81\":2,\"a\xe2\x96\x81\":3");
    for (int i = 0; i < 256; i++)
        n += snprintf(file + n, sizeof file - (size_t)n, ",\"<0x%02X>\":%d", i, 4 + i);
    snprintf(file + n, sizeof file - (size_t)n, "}}}");
    tok_pair p = open_text(file);
    dsc_tokens ids = encode(&p, "a b a b b b", 11, false);
    assert_int_equal(ids.count, sizeof want / sizeof *want);
    assert_memory_equal(ids.id, want, sizeof want);
    dsc_tokens_fini(&ids);
    close_pair(&p);
}

SUITE(tokenizer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_vectors_gpt2),
        cmocka_unit_test(test_vectors_llama2),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_byte_merges),
        cmocka_unit_test(test_remembered_words),
        cmocka_unit_test(test_large_ids),
        cmocka_unit_test(test_joined_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
