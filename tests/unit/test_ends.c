// SPDX-License-Identifier: Apache-2.0
// EOS tokens: the files next to a tokenizer in their order, their defects, and the text of --eos;
// the path that a folder of a tokenizer stands for.
#include "tests/close.h"
#include "tests/scratch.h"

#include "traces/tokenizer/ends.h"

#include <string.h>
#include <sys/stat.h>

// The usual names are all there, so that the guess is </s>, and ids are 0 to 5.
#define ADDED(id, content)                                                                         \
    "{\"id\": " #id ", \"content\": \"" content "\", \"single_word\": false, \"lstrip\": false, "  \
    "\"rstrip\": false, \"normalized\": false, \"special\": true}"
static const char tokenizer_json[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []},"
    "\"added_tokens\": [" ADDED(2, "</s>") "," ADDED(3, "<|im_end|>") "," ADDED(
        4, "<|endoftext|>") "," ADDED(5, "<x>") "]}";

enum { GENERATION, TOKENIZER, MODEL, FILES };
static char path[FILES][400], tokenizer_path[400];
static dsc_tokenizer *t;

static int set_up(void **state)
{
    static const char *const names[FILES] = {"generation_config", "tokenizer_config", "config"};
    if (make_scratch(state))
        return -1;
    for (int f = 0; f < FILES; f++)
        snprintf(path[f], sizeof path[f], "%s/%s.json", scratch, names[f]);
    snprintf(tokenizer_path, sizeof tokenizer_path, "%s/tokenizer.json", scratch);
    put_text(tokenizer_path, tokenizer_json);
    return dsc_tokenizer_load(&t, scratch, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    dsc_tokenizer_free(t);
    unlink(tokenizer_path);
    return rmdir(scratch); // fails when something was left behind
}

// Reads with these contents of the files; NULL: there is no such file.
static int read_with(dsc_ends *e, const char *const text[FILES], const char *spec, dsc_error *err)
{
    for (int f = 0; f < FILES; f++)
        if (text[f])
            put_text(path[f], text[f]);
    int rc = dsc_ends_read(e, t, spec, err);
    for (int f = 0; f < FILES; f++)
        unlink(path[f]);
    return rc;
}

static void test_order(void **state)
{
    (void)state;
    static const struct {
        const char *text[FILES];
        int count, id[3], eos;
        bool guessed;
    } cases[] = {
        {{NULL, NULL, NULL}, 1, {2}, 2, true},
        {{"{}", "{}", "{}"}, 1, {2}, 2, true},
        {{"{\"eos_token_id\": null}", "{\"eos_token\": null}", NULL}, 1, {2}, 2, true},
        {{"{\"eos_token_id\": 3}", NULL, "{\"eos_token_id\": 4}"}, 1, {3}, 3, false},
        {{"{\"eos_token_id\": [4, 3, 4]}", NULL, NULL}, 2, {4, 3}, 4, false},
        // Of several, the tokenizer's own is appended.
        {{"{\"eos_token_id\": [4, 3]}", "{\"eos_token\": \"<|im_end|>\"}", NULL},
         2,
         {4, 3},
         3,
         false},
        {{"{\"eos_token_id\": [4, 3]}", "{\"eos_token\": \"<x>\"}", NULL}, 2, {4, 3}, 4, false},
        {{"{\"eos_token_id\": 4}", "{\"eos_token\": \"none\"}", NULL}, 1, {4}, 4, false},
        {{NULL, "{\"eos_token\": {\"content\": \"<|im_end|>\"}}", "{\"eos_token_id\": 4}"},
         1,
         {3},
         3,
         false},
        {{NULL, "{\"model_max_length\": 1000000000000000019884624838656}", "{\"eos_token_id\": 4}"},
         1,
         {4},
         4,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dsc_ends e;
        dsc_error err = {0};
        if (read_with(&e, cases[i].text, i % 2 ? scratch : tokenizer_path, &err))
            fail_msg("case %zu: %s", i, err.message);
        assert_int_equal(e.count, cases[i].count);
        for (int k = 0; k < e.count; k++)
            assert_int_equal(e.id[k], cases[i].id[k]);
        assert_int_equal(e.eos, cases[i].eos);
        assert_int_equal(e.guessed, cases[i].guessed);
    }
}

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        int file;
        const char *text, *words;
    } cases[] = {
        {GENERATION, "{", "line 1"},
        {GENERATION, "{\"eos_token_id\": \"x\"}", "must be a token id or a list of them"},
        {GENERATION, "{\"eos_token_id\": 1.5}", "must be a token id or a list of them"},
        {GENERATION, "{\"eos_token_id\": [2, 6]}", "'eos_token_id' is 6; token ids of this"},
        {GENERATION, "{\"eos_token_id\": -1}", "'eos_token_id' is -1"},
        {TOKENIZER, "{\"eos_token\": 2}", "'eos_token' must be the text of a token"},
        {TOKENIZER, "{\"eos_token\": \"none\"}", "'none', which is not a token"},
        {MODEL, "{\"eos_token_id\": {}}", "must be a token id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text[FILES] = {NULL, NULL, NULL};
        dsc_ends e;
        dsc_error err = {0};
        text[cases[i].file] = cases[i].text;
        assert_int_equal(read_with(&e, text, scratch, &err), DSC_EINPUT);
        if (strncmp(err.message, path[cases[i].file], strlen(path[cases[i].file])) != 0 ||
            !strstr(err.message, cases[i].words))
            fail_msg("case %zu: %s", i, err.message);
    }
    dsc_ends e;
    dsc_error err;
    assert_int_equal(mkfifo(path[GENERATION], 0600), 0);
    assert_int_equal(dsc_ends_read(&e, t, scratch, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, "not a regular file"));
    unlink(path[GENERATION]);
}

static void test_option(void **state)
{
    (void)state;
    dsc_ends e;
    dsc_error err;
    assert_int_equal(dsc_ends_parse(&e, t, 6, "<|im_end|>,0,3", &err), DSC_OK);
    assert_int_equal(e.count, 2);
    assert_int_equal(e.id[0], 3);
    assert_int_equal(e.id[1], 0);
    assert_int_equal(e.eos, 3);
    assert_true(dsc_ends_have(&e, 0));
    assert_false(dsc_ends_have(&e, 1));
    assert_int_equal(dsc_ends_parse(&e, NULL, 6, "5", &err), DSC_OK);
    static const char *const bad[][2] = {{"6", "token ids of this vocabulary are 0 to 5"},
                                         {"", "has no token ''"},
                                         {"2,", "has no token ''"},
                                         {"none", "has no token 'none'"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dsc_ends_parse(&e, t, 6, bad[i][0], &err), DSC_EUSAGE);
        if (!strstr(err.message, bad[i][1]))
            fail_msg("%s", err.message);
    }
    assert_int_equal(dsc_ends_parse(&e, NULL, 6, "</s>", &err), DSC_EUSAGE);
    assert_non_null(strstr(err.message, "cannot be found without a tokenizer"));
}

static void test_preference(void **state)
{
    (void)state;
    dsc_ends e = {.id = {4, 3}, .count = 2, .eos = 4};
    dsc_ends_prefer(&e, 2); // none of them
    assert_int_equal(e.eos, 4);
    dsc_ends_prefer(&e, -1);
    assert_int_equal(e.eos, 4);
    dsc_ends_prefer(&e, 3);
    assert_int_equal(e.eos, 3);
    assert_int_equal(e.count, 2);
    e = (dsc_ends){.id = {2}, .count = 1, .eos = 2, .guessed = true};
    dsc_ends_prefer(&e, 3); // instead of the guess
    assert_int_equal(e.eos, 3);
    assert_int_equal(e.count, 1);
    assert_int_equal(e.id[0], 3);
    assert_false(e.guessed);
}

static void test_path(void **state)
{
    (void)state;
    char folder[420];
    static const char *const same[] = {"bytes", "a/tokenizer.json", "/nowhere"};
    dsc_buffer b = {0};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        b.length = 0;
        assert_int_equal(dsc_tokenizer_path(&b, same[i], NULL), DSC_OK);
        assert_string_equal(b.data, same[i]);
    }
    for (int slash = 0; slash < 2; slash++) {
        b.length = 0;
        snprintf(folder, sizeof folder, "%s%s", scratch, slash ? "/" : "");
        assert_int_equal(dsc_tokenizer_path(&b, folder, NULL), DSC_OK);
        assert_string_equal(b.data, tokenizer_path);
    }
    dsc_buffer_fini(&b);
    assert_string_equal(dsc_tokenizer_name(t), "tokenizer.json");
}

SUITE(ends)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),  cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_option), cmocka_unit_test(test_preference),
        cmocka_unit_test(test_path),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
