// SPDX-License-Identifier: Apache-2.0
// What a tokenizer.json may say: behaviors of splits, unknown characters, files that must be
// refused.
#include "tests/unit/tokenizer_fixture.h"

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
            tok_pair p = open_text(json);
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
        tok_pair p = open_text(json);
        assert_string_equal(pieces(&p, cases[i].text), cases[i].expected);
        close_pair(&p);
    }
}

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
    tok_pair p = open_text("{" ADDED("3", "\"x\"", "") GOOD "}"); // what the bad ones deviate from
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
    for (int right = 0; right < 2; right++) { // of one side only; the space that is left becomes b
        char text[600];
        snprintf(text, sizeof text,
                 "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Strip\","
                 "\"strip_left\":%s,\"strip_right\":%s},{\"type\":\"Replace\","
                 "\"pattern\":{\"String\":\" \"},\"content\":\"b\"}]}," GOOD "}",
                 right ? "false" : "true", right ? "true" : "false");
        p = open_text(text);
        assert_string_equal(pieces(&p, " a "), right ? "b|a" : "ab");
        close_pair(&p);
    }
    p = open_text("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\","
                  "\"prepend\":\"x\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},"
                  "\"content\":\"a\"}]}," GOOD "}");
    assert_string_equal(pieces(&p, "bxb"), "ab|ab"); // what was put before is replaced, too
    assert_string_equal(pieces(&p, ""), "");
    close_pair(&p);
}

SUITE(tokenizer_files)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behaviors),
        cmocka_unit_test(test_unknown_characters),
        cmocka_unit_test(test_good_file),
        cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
