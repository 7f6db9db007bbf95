// SPDX-License-Identifier: Apache-2.0
// The tokenizer against the answers of the HF library (tests/data/tokenizers/golden.jsonl), the
// vectors of llama.cpp, and files that must be refused.
#include "tests/close.h"

#include "base/file.h"
#include "traces/tokenizer/tokenizer.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

typedef struct pair { // a tokenizer and an encoder of it
    dsc_tokenizer *t;
    dsc_encoder *e;
} pair;

typedef struct tok_part { // of a text, which may hold zeros
    const char *bytes;
    size_t length;
} tok_part;
#define PART(s)                                                                                    \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

// A file beside the golden answers.
static const char *golden_path(const char *name)
{
    static char path[1024];
    char inside[128];
    snprintf(inside, sizeof inside, "tests/data/tokenizers/%s", name);
    return source_path(inside, path, sizeof path);
}

// A file of the development data: NAME and its extension; skips the test when it is not there.
static const char *vector_path(const char *name, const char *extension)
{
    static char path[1024];
    char inside[128];
    snprintf(inside, sizeof inside, "tokenizers/%s.%s", name, extension);
    return data_path(inside, path, sizeof path);
}

static pair open_pair(const char *spec)
{
    pair p = {0};
    dsc_error err = {0};
    if (dsc_tokenizer_load(&p.t, spec, &err) || dsc_encoder_new(&p.e, p.t, &err))
        fail_msg("%s", err.message);
    return p;
}

static void close_pair(pair *p)
{
    dsc_encoder_free(p->e);
    dsc_tokenizer_free(p->t);
}

// Loads a tokenizer.json given as text; the status of the load.
static int load_text(dsc_tokenizer **t, const char *json, dsc_error *err)
{
    char path[] = "/tmp/test_tokenizer_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "wb");
    assert_non_null(f);
    fputs(json, f);
    assert_int_equal(fclose(f), 0);
    int rc = dsc_tokenizer_load(t, path, err);
    assert_true(rc == DSC_OK || strstr(err->message, path + 5) != NULL); // names the file
    unlink(path);
    return rc;
}

static pair open_text(const char *json)
{
    pair p = {0};
    dsc_error err = {0};
    if (load_text(&p.t, json, &err) || dsc_encoder_new(&p.e, p.t, &err))
        fail_msg("%s", err.message);
    return p;
}

static dsc_tokens encode(const pair *p, const char *text, size_t length, bool special)
{
    dsc_tokens out = {0};
    dsc_error err = {0};
    if (dsc_encode(p->e, text, length, special, &out, &err))
        fail_msg("%s", err.message);
    return out;
}

// The texts of the tokens of `text`, joined by '|'.
static const char *pieces(const pair *p, const char *text)
{
    static dsc_buffer b;
    dsc_tokens ids = encode(p, text, strlen(text), false);
    b.length = 0;
    assert_int_equal(dsc_buffer_puts(&b, "", NULL), DSC_OK);
    for (size_t i = 0; i < ids.count; i++) {
        assert_int_equal(dsc_buffer_puts(&b, i ? "|" : "", NULL), DSC_OK);
        assert_int_equal(dsc_decode(p->t, &ids.id[i], 1, false, &b, NULL), DSC_OK);
    }
    dsc_tokens_fini(&ids);
    static char out[512];
    snprintf(out, sizeof out, "%s", b.data);
    dsc_buffer_fini(&b);
    return out;
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

static void check_decode(const pair *p, const dsc_tokens *ids, bool skip, const json_t *row,
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

static void check_row(const pair *p, const json_t *row)
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
    pair p = {0};
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
    pair p = open_pair(vector_path(name, "json"));
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
    pair p = open_pair(golden_path("llama3-style.json"));
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
    pair p = open_pair("bytes");
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
    pair p = open_pair(golden_path("mistral-style.json"));
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
    pair p = open_pair(golden_path("llama3-style.json"));
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

#define BPE(options, vocab, merges)                                                                \
    "\"model\":{\"type\":\"BPE\"" options ",\"vocab\":{" vocab "},\"merges\":[" merges "]}"
#define WORDS                                                                                      \
    "\"<u>\":0,\"the\":1,\"-\":2,\"final\":3,\"countdown\":4,\"the-\":5,\"final-\":6,"             \
    "\"-final\":7,\"-countdown\":8,\"--\":9"

// The examples of the HF documentation of SplitDelimiterBehavior.
static void test_behaviors(void **state)
{
    (void)state;
    static const char *const expected[][2] = {
        {"Removed", "the|final|countdown"},
        {"Isolated", "the|-|final|-|-|countdown"},
        {"MergedWithPrevious", "the-|final-|-|countdown"},
        {"MergedWithNext", "the|-final|-|-countdown"},
        {"Contiguous", "the|-|final|--|countdown"},
    };
    for (int invert = 0; invert < 2; invert++)
        for (size_t i = 0; i < 5; i++) {
            char json[1024];
            snprintf(json, sizeof json,
                     "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{%s},"
                     "\"behavior\":\"%s\",\"invert\":%s}," BPE(
                         ",\"ignore_merges\":true,\"unk_token\":\"<u>\"", WORDS, "") "}",
                     invert ? "\"Regex\":\"[a-z]+\"" : "\"String\":\"-\"", expected[i][0],
                     invert ? "true" : "false");
            pair p = open_text(json);
            // Inverted, neighbouring delimiters are one stretch between two words.
            const char *want = !invert            ? expected[i][1]
                               : i == 1           ? expected[4][1]
                               : i == 0 || i == 4 ? expected[i][1]
                                                  : NULL;
            if (want)
                assert_string_equal(pieces(&p, "the-final--countdown"), want);
            close_pair(&p);
        }
}

static void test_unknown_characters(void **state)
{
    (void)state;
    static const struct {
        const char *options, *text, *expected;
    } cases[] = {
        {"", "a?b", "ab"}, // dropped, so that the neighbours merge
        {",\"unk_token\":\"<u>\"", "a??b", "a|<u>|<u>|b"},
        {",\"unk_token\":\"<u>\",\"fuse_unk\":true", "a??b?", "a|<u>|b|<u>"},
        {",\"unk_token\":\"<u>\",\"byte_fallback\":true", "a\xC3\xA9?", "a|<0xC3>|<0xA9>|<u>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[1024];
        snprintf(json, sizeof json,
                 "{\"model\":{%s\"type\":\"BPE\"%s,\"vocab\":{\"<u>\":0,\"a\":1,\"b\":2,\"ab\":3,"
                 "\"<0xC3>\":4,\"<0xA9>\":5},\"merges\":[[\"a\",\"b\"]]}}",
                 "", cases[i].options);
        pair p = open_text(json);
        assert_string_equal(pieces(&p, cases[i].text), cases[i].expected);
        close_pair(&p);
    }
}

#define GOOD BPE("", "\"a\":0,\"b\":1,\"ab\":2", "\"a b\"")
#define ADDED(id, content, rest)                                                                   \
    "\"added_tokens\":[{\"id\":" id ",\"content\":" content ",\"single_word\":false,"              \
    "\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}" rest "],"
#define SPLIT(regex)                                                                               \
    "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex                       \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}," GOOD "}"

static const char *const bad_files[][2] = {
    // text, a word of the message
    {"", "line 1"},
    {"[]", "object"},
    {"{\"model\":", "line 1"},
    {"{\"a\":1,\"a\":2}", "duplicate"},
    {"{}", "model"},
    {"{\"model\":{\"type\":\"Unigram\"}}", "Unigram"},
    {"{\"model\":{\"type\":7}}", "model type"},
    {"{\"model\":{\"type\":\"BPE\",\"merges\":[]}}", "vocab"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":[],\"merges\":[]}}", "vocab"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{}}}", "merges"},
    {"{" BPE("", "\"a\":-1", "") "}", "-1"},
    {"{" BPE("", "\"a\":16777216", "") "}", "16777216"},
    {"{" BPE("", "\"a\":9223372036854775807", "") "}", "outside"},
    {"{" BPE("", "\"a\":99999999999999999999", "") "}", "integer"},
    {"{" BPE("", "\"a\":1.5", "") "}", "integer"},
    {"{" BPE("", "\"a\":\"0\"", "") "}", "integer"},
    {"{" BPE("", "\"a\":0,\"b\":0", "") "}", "same id"},
    {"{" BPE("", "\"a\":0", "\"a b\"") "}", "'b'"},
    {"{" BPE("", "\"a\":0,\"b\":1", "\"a b\"") "}", "'ab'"},
    {"{" BPE("", "\"a\":0", "\"a  a\"") "}", "merges[0]"},
    {"{" BPE("", "\"a\":0", "\"a\"") "}", "merges[0]"},
    {"{" BPE("", "\"a\":0", "[\"a\"]") "}", "merges[0]"},
    {"{" BPE("", "\"a\":0", "[\"a\",1]") "}", "merges[0]"},
    {"{" BPE("", "\"a\":0", "7") "}", "merges[0]"},
    {"{" BPE(",\"dropout\":0.1", "\"a\":0", "") "}", "dropout"},
    {"{" BPE(",\"end_of_word_suffix\":\"</w>\"", "\"a\":0", "") "}", "end_of_word_suffix"},
    {"{" BPE(",\"continuing_subword_prefix\":\"##\"", "\"a\":0", "") "}", "subword_prefix"},
    {"{" BPE(",\"byte_fallback\":1", "\"a\":0", "") "}", "byte_fallback"},
    {"{" BPE(",\"unk_token\":1", "\"a\":0", "") "}", "unk_token"},
    {"{\"truncation\":{}," GOOD "}", "truncation"},
    {"{\"padding\":{}," GOOD "}", "padding"},
    {"{\"normalizer\":{\"type\":\"BertNormalizer\"}," GOOD "}", "BertNormalizer"},
    {"{\"normalizer\":{}," GOOD "}", "no type"},
    {"{\"normalizer\":[]," GOOD "}", "no type"},
    {"{\"normalizer\":{\"type\":\"Sequence\"}," GOOD "}", "normalizers"},
    {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[1]}," GOOD "}", "[0]"},
    {"{\"normalizer\":{\"type\":\"Prepend\"}," GOOD "}", "prepend"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"content\":\"\"}," GOOD "}", "pattern"},
    {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}," GOOD
     "}",
     "empty pattern"},
    {"{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}," GOOD "}", "BertPreTokenizer"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"__\"}," GOOD "}", "character"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"add_prefix_space\":false,"
     "\"prepend_scheme\":\"always\"}," GOOD "}",
     "contradicts"},
    {"{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\","
     "\"prepend_scheme\":\"x\"}," GOOD "}",
     "prepend_scheme"},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},"
     "\"behavior\":\"Shredded\",\"invert\":false}," GOOD "}",
     "Shredded"},
    {SPLIT("(a"), "bad regex"},
    {SPLIT("\\\\h"), "\\h"},
    {SPLIT("(?m)a"), "(?"},
    {SPLIT("(*ACCEPT)"), "(*"},
    {SPLIT("a{2}+"), "{n,m}"},
    {SPLIT("[a&&b]"), "&&"},
    {SPLIT("[[:alpha:]]"), "[ inside"},
    {SPLIT("[a-\\\\s]"), "next to a set"},
    {SPLIT("\\\\1"), "\\1"},
    {SPLIT("\\\\p{Nonsense}"), "bad regex"},
    {SPLIT("\\\\pL"), "\\p"},
    {SPLIT("(?i:ss)"), "fold"},
    {SPLIT("a\\\\"), "end"},
    {SPLIT(""), "not 0"},
    {"{\"decoder\":{\"type\":\"WordPiece\"}," GOOD "}", "WordPiece"},
    {"{\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":-1,\"stop\":0}," GOOD "}",
     "start"},
    {"{\"post_processor\":{\"type\":\"RobertaProcessing\"}," GOOD "}", "RobertaProcessing"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," GOOD "}", "without A"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
     "{\"id\":\"x\"}}]}," GOOD "}",
     "'x'"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
     "{\"id\":\"x\"}}],\"special_tokens\":{\"x\":{\"ids\":[99]}}}," GOOD "}",
     "without a token"},
    {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":"
     "{\"id\":\"B\"}}]}," GOOD "}",
     "around one A"},
    {"{\"added_tokens\":{}," GOOD "}", "added_tokens"},
    {"{\"added_tokens\":[1]," GOOD "}", "added_tokens[0]"},
    {"{\"added_tokens\":[{\"id\":3,\"content\":\"x\"}]," GOOD "}", "single_word"},
    {"{" ADDED("3", "\"\"", "") GOOD "}", "no content"},
    {"{" ADDED("3", "7", "") GOOD "}", "content"},
    {"{" ADDED("7", "\"x\"", "") GOOD "}", "id 7"},
    {"{" ADDED("1", "\"a\"", "") GOOD "}", "id 1"},
    {"{" ADDED("99999999", "\"x\"", "") GOOD "}", "outside"},
    {"{" ADDED("\"3\"", "\"x\"", "") GOOD "}", "integer"},
};

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        dsc_tokenizer *t = NULL;
        dsc_error err = {0};
        int rc = load_text(&t, bad_files[i][0], &err);
        if (rc != DSC_EINPUT || !strstr(err.message, bad_files[i][1]))
            fail_msg("%s: status %d, \"%s\" does not say \"%s\"", bad_files[i][0], rc, err.message,
                     bad_files[i][1]);
        assert_null(t);
    }
    dsc_tokenizer *t = NULL;
    dsc_error err = {0};
    assert_int_equal(dsc_tokenizer_load(&t, "/nowhere/tokenizer.json", &err), DSC_EINPUT);
}

static void test_good_file(void **state)
{
    (void)state;
    pair p = open_text("{" ADDED("3", "\"x\"", "") GOOD "}"); // what the bad ones deviate from
    assert_string_equal(pieces(&p, "abxab"), "ab|x|ab");
    close_pair(&p);
    p = open_text(SPLIT("(?i:B)|\\\\s*"));
    assert_string_equal(pieces(&p, "ab"), "a|b");
    close_pair(&p);
    // Characters without a token vanish, so a and b merge unless something was split off between.
    p = open_text(SPLIT("\\\\s"));
    assert_string_equal(pieces(&p, "a\xE2\x80\x83"
                                   "b"),
                        "a|b"); // U+2003
    assert_string_equal(pieces(&p, "a\xE1\xA0\x8E"
                                   "b"),
                        "ab"); // U+180E: no White_Space
    close_pair(&p);
    p = open_text("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Strip\","
                  "\"strip_left\":true,\"strip_right\":true},{\"type\":\"Prepend\","
                  "\"prepend\":\"a\"}]}," GOOD "}");
    assert_string_equal(pieces(&p, "  b "), "ab");
    assert_string_equal(pieces(&p, "  "), ""); // nothing is put before nothing
    close_pair(&p);
    p = open_text("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
                  "\"prepend\":\"x\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},"
                  "\"content\":\"a\"}]}," GOOD "}");
    assert_string_equal(pieces(&p, "bxb"), "ab|ab"); // what was put before is replaced, too
    assert_string_equal(pieces(&p, ""), "");
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
    pair p = open_text(json.data);
    assert_string_equal(pieces(&p, "\xC3\xA9"
                                   "aa"),
                        "<0xC3>|<0xA9>a|a");
    close_pair(&p);
    dsc_buffer_fini(&json);
}

// A regex that explodes must end in an error, soon.
static void test_regex_limits(void **state)
{
    (void)state;
    static const char *const patterns[] = {SPLIT("(a+)+[c-d]"), SPLIT("(a|b|ab)*[c-d]"),
                                           SPLIT("((a*)*)*[c-d]")};
    char text[4001];
    memset(text, 'a', 4000);
    for (int i = 0; i < 4000; i += 2)
        text[i + 1] = i < 40 ? 'a' : 'b';
    for (size_t i = 0; i < 3; i++) {
        pair p = open_text(patterns[i]);
        dsc_tokens out = {0};
        dsc_error err = {0};
        assert_int_equal(dsc_encode(p.e, text, 4000, false, &out, &err), DSC_EINPUT);
        assert_non_null(strstr(err.message, "exceeds its limits"));
        dsc_tokens_fini(&out);
        close_pair(&p);
    }
}

// A million equal letters in one word: the heap's worst case, and a quadratic merge's.
static void test_long_word(void **state)
{
    (void)state;
    pair p = open_text(
        "{" BPE("", "\"a\":0,\"aa\":1,\"aaaa\":2,\"b\":3", "[\"a\",\"a\"],[\"aa\",\"aa\"]") "}");
    assert_string_equal(pieces(&p, "aaa"), "aa|a"); // of equal ranks the leftmost
    assert_string_equal(pieces(&p, "baaab"), "b|aa|a|b");
    enum { LETTERS = 1000 * 1000 + 3 };
    char *text = malloc(LETTERS);
    assert_non_null(text);
    memset(text, 'a', LETTERS);
    clock_t start = clock();
    dsc_tokens ids = encode(&p, text, LETTERS, false);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10); // also under sanitizers
    assert_int_equal(ids.count, LETTERS / 4 + 2);
    assert_int_equal(ids.id[0], 2);
    assert_int_equal(ids.id[ids.count - 2], 1);
    assert_int_equal(ids.id[ids.count - 1], 0);
    dsc_tokens_fini(&ids);
    free(text);
    close_pair(&p);
}

// Merges the pair of lowest rank, the leftmost of equals, until there is none.
static size_t merge_by_definition(int32_t (*merge)[3], int merges, int32_t *id, size_t n)
{
    for (;;) {
        int best = merges;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (int k = 0; k < best; k++)
                if (merge[k][0] == id[i] && merge[k][1] == id[i + 1])
                    best = k, at = i;
        if (best == merges)
            return n;
        id[at] = merge[best][2];
        memmove(id + at + 1, id + at + 2, (--n - at - 1) * sizeof *id);
    }
}

// Words longer than the windows in which they are merged, with random merges: tokens of any length
// up to that of the word, and, in some files, merges that come before those that make their parts.
static void test_windows(void **state)
{
    (void)state;
    enum { FILES = 150, MERGES = 40, LETTERS = 3, LONGEST = 1200 };
    static char name[LETTERS + MERGES][LONGEST + 1] = {"a", "b", "c"};
    uint32_t random = 7;
    for (int file = 0; file < FILES; file++) {
        int32_t merge[MERGES][3], id[LONGEST];
        int tokens = LETTERS, merges = 0, most = file % 3 == 0 ? LONGEST : 24;
        char json[1 << 16], word[LONGEST], joined[2 * LONGEST + 1];
        int n = snprintf(json, sizeof json, "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"c\":2");
        for (int k = 0, known = 0; k < MERGES; k++, known = 0) {
            random = random * 1664525 + 1013904223; // Numerical Recipes
            int left = (int)(random >> 8) % tokens;
            int right = file % 2 ? left : (int)(random >> 20) % tokens;
            snprintf(joined, sizeof joined, "%s%s", name[left], name[right]);
            while (known < tokens && strcmp(name[known], joined) != 0)
                known++;
            if (known < tokens || strlen(joined) > (size_t)most)
                continue;
            strcpy(name[tokens], joined);
            n += snprintf(json + n, sizeof json - (size_t)n, ",\"%s\":%d", joined, tokens);
            memcpy(merge[merges++], (int32_t[]){left, right, tokens++}, sizeof *merge);
        }
        for (int k = 0; file % 5 == 0 && k < merges / 2; k++)
            for (int i = 0; i < 3; i++) {
                int32_t last = merge[merges - 1 - k][i];
                merge[merges - 1 - k][i] = merge[k][i];
                merge[k][i] = last;
            }
        for (int k = 0; k < merges; k++)
            n += snprintf(json + n, sizeof json - (size_t)n, "%s\"%s %s\"",
                          k ? "," : "},\"merges\":[", name[merge[k][0]], name[merge[k][1]]);
        snprintf(json + n, sizeof json - (size_t)n, "]}}");
        pair p = open_text(json);
        for (int i = 0; i < LONGEST; i++) {
            random = random * 1664525 + 1013904223;
            id[i] = (int32_t)((random >> 16) % (1 + (uint32_t)file % LETTERS));
            word[i] = *name[id[i]];
        }
        dsc_tokens ids = encode(&p, word, LONGEST, false);
        assert_int_equal(ids.count, merge_by_definition(merge, merges, id, LONGEST));
        assert_memory_equal(ids.id, id, ids.count * sizeof *id);
        dsc_tokens_fini(&ids);
        close_pair(&p);
    }
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
        pair p = open_pair(file == 0   ? sample
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
                pair fresh = {.t = p.t};
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
    pair p = open_text("{" BPE("",
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
    pair p = open_text(file);
    dsc_tokens ids = encode(&p, "a b a b b b", 11, false);
    assert_int_equal(ids.count, sizeof want / sizeof *want);
    assert_memory_equal(ids.id, want, sizeof want);
    dsc_tokens_fini(&ids);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_vectors_gpt2),
        cmocka_unit_test(test_vectors_llama2),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_behaviors),
        cmocka_unit_test(test_unknown_characters),
        cmocka_unit_test(test_good_file),
        cmocka_unit_test(test_byte_merges),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_regex_limits),
        cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_remembered_words),
        cmocka_unit_test(test_large_ids),
        cmocka_unit_test(test_joined_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
