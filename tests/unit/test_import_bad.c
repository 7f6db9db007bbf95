// SPDX-License-Identifier: Apache-2.0
// Tests the message of every bad line, and that nothing is written then.
#include "tests/unit/import_fixture.h"

#define ID_FIELDS "\"prompt\": [1], \"output\": [2, 3]"
#define LLMA_RESULT "\"result\": {\"text\": \"t\"}"

static const struct {
    const char *line, *message; // after "FILE:1:"
} bad_lines[] = {
    // syntax
    {"{\"prompt\": \"p\", \"output\": }", "27: unexpected token near '}'"},
    {"{\"prompt\": \"p\", \"output\": \"o\"", "29: '}' expected near end of line"},
    {"{" OK_FIELDS "} x", "32: end of line expected near 'x'"},
    {"{" OK_FIELDS "}{" OK_FIELDS "}", "31: end of line expected near '{'"},
    {"{\"prompt\": \"p\", \"prompt\": \"q\"}", "24: duplicate object key near '\"prompt\"'"},
    {"{" OK_FIELDS ", \"metadata\": {\"a\": 1, \"a\": 2}}", "duplicate object key"},
    {"{\"prompt\": \"\xff\"}", "unable to decode byte 0xff"},
    {"{\"prompt\": \"\xed\xa0\x80\"}", "unable to decode byte 0xed"},
    {"{\"prompt\": \"\xc0\x80\"}", "unable to decode byte 0xc0"},
    {"{\"prompt\": \"\\ud800\"}", "invalid Unicode"},
    {"{\"prompt\": \"a\tb\"}", "control character 0x9"},
    {"{" OK_FIELDS ", \"metadata\": {\"a\": NaN}}", "invalid token near 'NaN'"},
    {"{" OK_FIELDS ", \"metadata\": {\"a\": 1e999}}", "real number overflow"},
    {"{\"prompt\": [123456789012345678901], \"output\": \"o\"}", "too big integer"},
    {"{'prompt': 1}", "string or '}' expected"},
    {"nothing", "invalid token near 'nothing'"},
    // the line, and the formats
    {"null", " unrecognized format; every line must be a JSON object"},
    {"[1, 2]", " unrecognized format; every line must be a JSON object"},
    {"{\"text\": \"x\", \"y\": 1}",
     " unrecognized format; name the fields of prompt and output: --map "
     "prompt=FIELD,output=FIELD. The line has 'text', 'y'"},
    {"{\"question\": \"x\", \"answer\": \"y\"}",
     " unrecognized format; the nearest is mapped: add --map prompt=question,output=answer"},
    {"{\"prompt\": \"x\", \"canonical_solution\": \"y\"}",
     " unrecognized format; the nearest is mapped: add --map "
     "prompt=prompt,output=canonical_solution"},
    {"{\"timings\": {}, \"y\": 1}",
     " unrecognized format; the nearest is llamacpp, but the line lacks 'content'"},
    // jsonl: fields
    {"{\"prompt\": \"p\"}", " field 'output' is missing"},
    {"{\"output\": \"o\"}", " field 'prompt' is missing"},
    {"{\"prompt\": \"p\", \"ouput\": \"o\"}", " unknown field 'ouput'"},
    {"{" OK_FIELDS ", \"refs\": []}", " unknown field 'refs'"},
    {"{\"prompt\": 5, \"output\": \"o\"}",
     " field 'prompt' must be a string, an array of token ids or an object, not a number"},
    {"{\"prompt\": \"p\", \"output\": null}",
     " field 'output' must be a string, an array of token ids or an object, not null"},
    {"{\"prompt\": {}, \"output\": \"o\"}", " field 'prompt' must have 'text' or 'tokens'"},
    {"{\"prompt\": {\"text\": 1}, \"output\": \"o\"}",
     " field 'prompt.text' must be a string, not a number"},
    {"{\"prompt\": {\"text\": \"p\", \"kind\": \"turn\"}, \"output\": \"o\"}",
     " unknown field 'prompt.kind'"},
    {"{\"prompt\": {\"txt\": \"p\"}, \"output\": \"o\"}", " unknown field 'prompt.txt'"},
    {"{\"prompt\": {\"tokens\": \"p\"}, \"output\": \"o\"}",
     " field 'prompt.tokens' must be an array of token ids, not a string"},
    {"{\"prompt\": [1, 258], \"output\": \"o\"}",
     " field 'prompt[1]' is 258; token ids of this vocabulary are 0 to 257"},
    {"{\"prompt\": [-1], \"output\": \"o\"}",
     " field 'prompt[0]' is -1; token ids of this vocabulary are 0 to 257"},
    {"{\"prompt\": [4294967297], \"output\": \"o\"}",
     " field 'prompt[0]' is 4294967297; token ids"},
    {"{\"prompt\": \"p\", \"output\": [1.0]}",
     " field 'output[0]' must be a token id (an integer), not a number"},
    {"{\"prompt\": \"p\", \"output\": [\"o\"]}",
     " field 'output[0]' must be a token id (an integer), not a string"},
    {"{\"prompt\": \"p\", \"output\": {\"tokens\": [true]}}",
     " field 'output.tokens[0]' must be a token id (an integer), not a boolean"},
    // jsonl: references
    {"{" OK_FIELDS ", \"references\": \"r\"}",
     " field 'references' must be an array, not a string"},
    {"{" OK_FIELDS ", \"references\": null}", " field 'references' must be an array, not null"},
    {"{" OK_FIELDS ", \"references\": [\"r\", 3]}",
     " field 'references[1]' must be a string, an array of token ids or an object, not a number"},
    {"{" OK_FIELDS ", \"references\": [{\"text\": \"r\", \"kind\": \"poem\"}]}",
     " field 'references[0].kind' must be \"document\" or \"turn\", not \"poem\""},
    {"{" OK_FIELDS ", \"references\": [{\"text\": \"r\", \"kind\": 1}]}",
     " field 'references[0].kind' must be a string, not a number"},
    {"{" OK_FIELDS ", \"references\": [{\"kind\": \"turn\"}]}",
     " field 'references[0]' must have 'text' or 'tokens'"},
    {"{" OK_FIELDS ", \"references\": [{\"tokens\": [999]}]}",
     " field 'references[0].tokens[0]' is 999; token ids of this vocabulary are 0 to 257"},
    // jsonl: the others
    {"{" OK_FIELDS ", \"id\": 1.5}", " field 'id' must be a string or an integer, not a number"},
    {"{" OK_FIELDS ", \"id\": null}", " field 'id' must be a string or an integer, not null"},
    {"{" OK_FIELDS ", \"id\": \"\"}", " field 'id' is empty"},
    {"{" OK_FIELDS ", \"id\": \"a\\nb\"}", " field 'id' must not have a control character (0x0a)"},
    {"{" OK_FIELDS ", \"id\": \"a\\u0000\"}",
     " field 'id' must not have a control character (0x00)"},
    {"{" OK_FIELDS ", \"logprobs\": 1}",
     " field 'logprobs' must be an array of numbers, not a number"},
    {"{" OK_FIELDS ", \"logprobs\": [-1, \"x\"]}",
     " field 'logprobs[1]' must be a number, not a string"},
    {"{" OK_FIELDS ", \"logprobs\": [-1, 0.1]}", " field 'logprobs[1]' is 0.1; the logarithm"},
    {"{" OK_FIELDS ", \"logprobs\": [-1e39, -1]}", " field 'logprobs[0]' is -1e+39; the logarithm"},
    {"{" OK_FIELDS ", \"logprobs\": [-1]}",
     " field 'logprobs' has 1 numbers, but the output has 2 tokens"},
    {"{" OK_FIELDS ", \"finish_reason\": \"eos\"}",
     " field 'finish_reason' must be \"stop\" or \"length\", not \"eos\""},
    {"{" OK_FIELDS ", \"finish_reason\": 1}",
     " field 'finish_reason' must be a string, not a number"},
    {"{" OK_FIELDS ", \"metadata\": \"m\"}", " field 'metadata' must be an object, not a string"},
    // jsonl: rows
    {"{" OK_FIELDS ", \"draft_rows\": []}", " field 'draft_rows' requires the output as token ids"},
    {"{" ID_FIELDS ", \"draft_rows\": null}",
     " field 'draft_rows' must be an array of arrays of pairs, not null"},
    {"{" ID_FIELDS ", \"target_rows\": [[]]}",
     " field 'target_rows' has 1 rows, but the output has 2 tokens"},
    {"{" ID_FIELDS ", \"draft_rows\": [[], {}]}",
     " field 'draft_rows[1]' must be an array of pairs, not an object"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[1]], []]}",
     " field 'draft_rows[0][0]' must be a pair [token id, log-probability]"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[1, -1, 2]], []]}",
     " field 'draft_rows[0][0]' must be a pair"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[1, \"x\"]], []]}",
     " field 'draft_rows[0][0]' must be a pair"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[1.0, -1]], []]}",
     " field 'draft_rows[0][0]' must be a pair"},
    {"{" ID_FIELDS ", \"draft_rows\": [[], [[1, -1], -1, [2, -1]]]}",
     " field 'draft_rows[1][1]' must be a pair"},
    {"{" ID_FIELDS ", \"draft_rows\": [[], [null, [1, -1]]]}",
     " field 'draft_rows[1][0]' must be a pair"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[258, -1]], []]}",
     " field 'draft_rows[0][0]': token id 258; ids of this vocabulary are 0 to 257"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[-1, -1]], []]}",
     " field 'draft_rows[0][0]': token id -1; ids"},
    {"{" ID_FIELDS ", \"target_rows\": [[[1, 0.5]], []]}",
     " field 'target_rows[0][0]' is 0.5; the logarithm of a probability"},
    {"{" ID_FIELDS ", \"target_rows\": [[[1, -1], [2, -1e39]], []]}",
     " field 'target_rows[0][1]' is -1e+39; the logarithm"},
    {"{" ID_FIELDS ", \"target_rows\": [[], [[1, -1], 0.5]]}",
     " field 'target_rows[1][1]' is 0.5; the logarithm"},
    {"{" ID_FIELDS ", \"target_rows\": [[], [[1, -0.5], [2, -0.5]]]}",
     " request 0: target distribution 1 sums to 1.21306"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[1, -1], -1], []]}",
     " request 0: draft distribution 0 sums to 0.73575"},
    {"{" ID_FIELDS ", \"draft_rows\": [[null], []]}",
     " request 0: draft distribution 0 sums to 0, but must sum"},
    {"{" ID_FIELDS ", \"draft_rows\": [[[7, -3], [7, -3]], []]}",
     " request 0: draft distribution 0 lists token id 7 twice"},
    // llma
    {"{\"docs\": [], " LLMA_RESULT "}", " field 'query' is missing"},
    {"{\"query\": [], \"docs\": [], " LLMA_RESULT "}",
     " field 'query' must be a string, not an array"},
    {"{\"query\": \"q\", " LLMA_RESULT "}", " field 'docs' is missing"},
    {"{\"query\": \"q\", \"docs\": \"d\", " LLMA_RESULT "}",
     " field 'docs' must be an array of strings, not a string"},
    {"{\"query\": \"q\", \"docs\": [\"a\", \"b\", \"c\", 4], " LLMA_RESULT "}",
     " field 'docs[3]' must be a string, not a number"},
    {"{\"query\": \"q\", \"docs\": []}", " field 'result' is missing"},
    {"{\"query\": \"q\", \"docs\": [], \"result\": \"t\"}",
     " field 'result' must be an object, not a string"},
    {"{\"query\": \"q\", \"docs\": [], \"result\": {}}", " field 'result.text' is missing"},
    {"{\"query\": \"q\", \"docs\": [], \"result\": {\"text\": {}}}",
     " field 'result.text' must be a string, not an object"},
    {"{\"query\": \"q\", \"docs\": [], " LLMA_RESULT ", \"id\": \"\"}", " field 'id' is empty"},
};

static void test_bad_lines(void **state)
{
    (void)state;
    char first[400], second[400];
    snprintf(first, sizeof first, "%s:1:", in_path);
    snprintf(second, sizeof second, "%s:3:", in_path);
    for (size_t i = 0; i < sizeof bad_lines / sizeof bad_lines[0]; i++) {
        dsc_error err;
        int rc = import(bad_lines[i].line, bytes, &plain, NULL, &err);
        expect_message(&err, rc, first, bad_lines[i].message);
        assert_int_equal(access(out_path, F_OK), -1);
        // Behind a good line of another kind the place is another, and nothing is written either.
        dsc_buffer b = {0};
        dsc_buffer_printf(&b, NULL, "{" OK_FIELDS "}\n\n%s\n", bad_lines[i].line);
        rc = import(b.data, bytes, &plain, NULL, &err);
        expect_message(&err, rc, second, "");
        assert_int_equal(access(out_path, F_OK), -1);
        dsc_buffer_fini(&b);
    }
}

// Formats asked for by name take lines that probing would not give them.
static void test_not_an_object(void **state)
{
    (void)state;
    char place[400];
    snprintf(place, sizeof place, "%s:1:", in_path);
    for (const dsc_import_driver *const *d = dsc_import_drivers(); *d; d++) {
        dsc_import_options options = plain;
        dsc_error err;
        options.format = (*d)->name;
        int rc = import("\"text\"", bytes, &options, NULL, &err);
        expect_message(&err, rc, place, " the line must be an object, not a string");
        assert_true(strlen((*d)->summary) > 10);
    }
}

static void test_large_bad_lines(void **state)
{
    (void)state;
    char place[400];
    dsc_buffer b = {0};
    dsc_error err;
    dsc_import_options lines = plain; // not probed: "[" would begin a document
    lines.format = "jsonl";
    snprintf(place, sizeof place, "%s:1:", in_path);
    for (int i = 0; i < 5000; i++)
        dsc_buffer_puts(&b, "[", NULL);
    int rc = import(b.data, bytes, &lines, NULL, &err);
    expect_message(&err, rc, place, "2049: maximum parsing depth reached");
    b.length = 0;
    char commas[1025];
    memset(commas, ',', 1024);
    commas[1024] = '\0';
    dsc_buffer_puts(&b, "[\"", NULL);
    for (int i = 0; i < 16 << 10; i++)
        dsc_buffer_append(&b, commas, 1024, NULL);
    dsc_buffer_puts(&b, "\\\"[\", ", NULL);
    rc = import(b.data, bytes, &lines, NULL, &err); // 16 Mi commas, but inside a string
    expect_message(&err, rc, place, "expected near end of line");
    for (int i = 0; i < 16 << 10; i++)
        dsc_buffer_append(&b, commas, 1024, NULL);
    rc = import(b.data, bytes, &lines, NULL, &err);
    expect_message(&err, rc, place, " the line has more than the limit of 4194304 values");
    b.length = 0;
    dsc_buffer_printf(&b, NULL, "{" OK_FIELDS ", \"id\": \"%.1000s%.25s\"}", commas, commas);
    rc = import(b.data, bytes, &lines, NULL, &err);
    expect_message(&err, rc, place, " field 'id' has 1025 bytes; the limit is 1024");
    dsc_buffer_fini(&b);
}

// Lines that are wrong only in combination with earlier lines.
static void test_bad_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second, *message;
    } pairs[] = {
        {"\"id\": \"x\"", "\"id\": \"x\"", "requests 0 and 1 have the same id 'x'"},
        {"\"id\": 1", "\"metadata\": {}", "requests 0 and 1 have the same id '1'"},
        {"\"id\": 5", "\"id\": \"5\"", "requests 0 and 1 have the same id '5'"},
        {"\"logprobs\": [-1, -2]", "\"metadata\": {}",
         "field 'logprobs' is missing, but earlier requests have it"},
        {"\"metadata\": {}", "\"logprobs\": [-1, -2]",
         "field 'logprobs' is present, but earlier requests lack it"},
    };
    char place[400];
    snprintf(place, sizeof place, "%s:2: ", in_path);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        dsc_buffer b = {0};
        dsc_error err;
        dsc_buffer_printf(&b, NULL, "{" OK_FIELDS ", %s}\n{" OK_FIELDS ", %s}\n", pairs[i].first,
                          pairs[i].second);
        int rc = import(b.data, bytes, &plain, NULL, &err);
        expect_message(&err, rc, place, pairs[i].message);
        assert_int_equal(access(out_path, F_OK), -1);
        dsc_buffer_fini(&b);
    }
}

SUITE(import_bad)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_not_an_object),
        cmocka_unit_test(test_large_bad_lines),
        cmocka_unit_test(test_bad_pairs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
