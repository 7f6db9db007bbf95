// SPDX-License-Identifier: Apache-2.0
// Hostile files and texts: regexes that take superlinear time, entries that collide, long words.
#include "tests/unit/tokenizer_fixture.h"

#include "traces/tokenizer/tokenizer_internal.h"

#include <time.h>

// Encodes n letters a; returns the number of tokens, or 0 with the error in *err.
static size_t encode_letters(const tok_pair *p, size_t n, dsc_error *err)
{
    dsc_tokens out = {0};
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);
    int rc = dsc_encode(p->e, text, n, false, &out, err);
    const size_t count = out.count;
    assert_true(rc == DSC_OK || count == 0);
    dsc_tokens_fini(&out);
    free(text);
    return count;
}

// Patterns that backtrack exponentially, that read the rest of the text at each character, and that
// do so at each backtrack. Without limits the first text takes hours; all of them end in an error
// of one line, which names the file.
static void test_regex_limits(void **state)
{
    (void)state;
    static const char *const patterns[] = {
        SPLIT("(a+)+[c-d]"),
        SPLIT("(a|b|ab)*[c-d]"),
        SPLIT("((a*)*)*[c-d]"),
        SPLIT("(?=.*x)a|."),
        SPLIT("a+b|a"),
        SPLIT("(?=a*+)(?=a*+)a"),
        SPLIT("(?:a*+b|a)*c|."),
        SPLIT("(?<=a)a*b|a"),
        SPLIT("a{0,2000}a{0,2000}b"),
        SPLIT("(a?){200}a{200}b"),
        SPLIT("(?:(?=[^b]*+)a)+b|a"),
        SPLIT("a*a*a*[c-d]"),
    };
    enum { LETTERS = 1000 * 1000 };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        tok_pair p = open_text(patterns[i]);
        dsc_error err = {0};
        const clock_t start = clock();
        assert_int_equal(encode_letters(&p, LETTERS, &err), 0);
        if (err.status != DSC_EINPUT || !strstr(err.message, "a regex exceeds its limits") ||
            strncmp(err.message, dsc_tokenizer_name(p.t), strlen(dsc_tokenizer_name(p.t))))
            fail_msg("%s: %s", patterns[i], err.message);
        assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 60); // also under sanitizers
        assert_int_equal(encode_letters(&p, 12, &err), 12);           // the next text has its own
        close_pair(&p);
    }
}

// Long matches and long gaps between matches are no attack: windows of a long text change nothing.
static void test_regex_windows(void **state)
{
    (void)state;
    static const struct {
        const char *json, *part;
        size_t parts, tokens; // per part
    } cases[] = {
        {SPLIT("x"), "a", 300000, 1},           // no match at all
        {SPLIT("[a-z]+"), "ab", 300000, 1},     // one match
        {SPLIT("ba"), "aaaaaaaaba", 30000, 10}, // many of two letters
        {SPLIT("\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+"), "a      b", 30000, 2},
        {SPLIT("(?<=a)b|(?=ab)a"), "ab", 300000, 2}, // matches that look around them
        {SPLIT("a$"), "abab\n", 60000, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tok_pair p = open_text(cases[i].json);
        const size_t length = strlen(cases[i].part);
        char *text = malloc(cases[i].parts * length);
        assert_non_null(text);
        for (size_t k = 0; k < cases[i].parts; k++)
            memcpy(text + k * length, cases[i].part, length);
        dsc_tokens ids = encode(&p, text, cases[i].parts * length, false);
        if (ids.count != cases[i].parts * cases[i].tokens)
            fail_msg("case %zu: %zu tokens", i, ids.count);
        dsc_tokens_fini(&ids);
        free(text);
        close_pair(&p);
    }
    tok_pair p =
        open_text(SPLIT("\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+")); // backtracks over all of a run
    char *run = malloc(90000);
    assert_non_null(run);
    memset(run, ' ', 90000);
    run[89999] = 'a';
    dsc_tokens ids = encode(&p, run, 90000, false);
    assert_int_equal(ids.count, 1);
    dsc_tokens_fini(&ids);
    free(run);
    close_pair(&p);
}

static const uint64_t golden = 0x9E3779B97F4A7C15u; // of dsc_tok_mix

static uint64_t inverse(void) // of `golden` modulo 2^64, by Newton's iteration
{
    uint64_t x = golden;
    for (int i = 0; i < 5; i++)
        x *= 2 - golden * x;
    return x;
}

static uint64_t unmix(uint64_t y) // dsc_tok_mix(unmix(y)) = y
{
    return (y ^ y >> 32) * inverse();
}

// The id whose pair with `right` has the hash 0 in a table of mask + 1 slots.
static int32_t colliding_left(uint64_t right, uint64_t mask)
{
    const uint64_t product = right * golden;
    return (int32_t)((product - (product >> 32)) * inverse() & mask);
}

static size_t longest_run(const void *slot, size_t size, size_t slots, const void *empty, size_t n)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < slots; i++) {
        run = memcmp((const char *)slot + i * size, empty, n) ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

// Entries that all have one place under a fixed multiplier, as a crafted file could contain them:
// inserting n of them would take n^2 / 2 steps. With random keys they are spread.
static void test_collisions(void **state)
{
    (void)state;
    enum { KEYS = 20000, LONGEST = 1000 };
    static char text[KEYS][8];
    const uint64_t none = UINT64_MAX;
    tok_map map;
    tok_merges merges;
    assert_int_equal(dsc_tok_map_init(&map, KEYS, NULL), DSC_OK);
    assert_int_equal(dsc_tok_merges_init(&merges, KEYS, NULL), DSC_OK);
    size_t fixed = 0;
    for (uint64_t k = 0; k < KEYS; k++) {
        // One word of eight bytes and an empty rest; the low bits of the hash are 0.
        uint64_t word = unmix(unmix(k << 32)) ^ sizeof word;
        fixed += (dsc_tok_mix(dsc_tok_mix(sizeof word ^ word)) & map.mask) == 0;
        memcpy(text[k], &word, sizeof word);
        assert_true(dsc_tok_map_put(&map, (tok_text){text[k], sizeof word}, (int32_t)k));
        const int32_t left = colliding_left(k, merges.mask);
        assert_int_equal(dsc_tok_mix((uint64_t)left << 32 | k) & merges.mask, 0);
        dsc_tok_merges_put(&merges, left, (int32_t)k, (uint32_t)k, 0);
    }
    assert_int_equal(fixed, KEYS);
    assert_true(longest_run(map.slot, sizeof *map.slot, map.mask + 1, &(struct tok_map_slot){0}.key,
                            sizeof map.slot->key) < LONGEST);
    assert_true(longest_run(merges.slot, sizeof *merges.slot, merges.mask + 1, &none, sizeof none) <
                LONGEST);
    for (size_t k = 0; k < KEYS; k++)
        assert_int_equal(dsc_tok_map_get(&map, text[k], sizeof text[k]), k);
    dsc_tok_map_fini(&map);
    dsc_tok_merges_fini(&merges);
}

// A million equal letters in one word: the heap's worst case, and a quadratic merge's.
static void test_long_word(void **state)
{
    (void)state;
    tok_pair p = open_text(
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

SUITE(tokenizer_limits)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regex_limits),
        cmocka_unit_test(test_regex_windows),
        cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_long_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
