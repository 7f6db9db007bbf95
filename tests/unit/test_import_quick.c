// SPDX-License-Identifier: Apache-2.0
// The fast roads of an import against the plain ones: JSON by hand and by Jansson, GPT-2's splits
// and replaced bytes by hand and by PCRE2, SHA-256 of each instruction set and in C, many threads
// and one.
#include "base/json_quick.h"
#include "base/rng.h"
#include "base/sha256_kernel.h"
#include "tests/close.h"
#include "tests/unit/import_fixture.h"
#include "traces/tokenizer/tokenizer_internal.h"

enum { RESULT = 1200 };
enum { STRICT = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, NO_LIMIT = 1 << 24 };

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    uint32_t r[4];
    dsc_rng_words(2026, (*state)++, 0, 0, r);
    return r[0] % n;
}

// --- JSON ----------------------------------------------------------------------------------------

// Equal to the bit: json_equal takes 0.0 for -0.0.
static bool same(const json_t *a, const json_t *b)
{
    char *x = json_dumps(a, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    char *y = json_dumps(b, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    bool equal = x && y && strcmp(x, y) == 0;
    free(x);
    free(y);
    return equal;
}

// Whatever the quick parser accepts, Jansson accepts with the same value. Returns whether it did.
static bool agrees(const char *text, size_t length)
{
    json_error_t e;
    json_t *quick = dsc_json_quick(text, length, NO_LIMIT);
    json_t *slow = json_loadb(text, length, STRICT, &e);
    bool taken = quick != NULL;
    if (quick && (!slow || !same(quick, slow)))
        fail_msg("by hand, but not by Jansson: '%.*s'", (int)length, text);
    json_decref(quick);
    json_decref(slow);
    return taken;
}

static bool takes(const char *text)
{
    return agrees(text, strlen(text));
}

static void test_json_taken(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{}",
        " [ ] ",
        "{\"a\":1,\"b\":[true,false,null,\"\"],\"\":{\"a\":{}}}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\\u0000\"",
        "\"12345678\\n\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 and so on\x7f\"",
        "[0,-0,1,-1,123456789012345678,-999999999999999999,1234567890123456789]",
        "[0.0,-0.0,0.1,-1.5e-7,1E+22,1e22,123456789012345e-22,9007199254740993.0,1e-400,2.5e-324]",
        "[0.30000000000000004,1.7976931348623157e308,3.14159265358979312]",
        "\t{ \"a\"\r:\n1 ,\"b\" : 2 }\t",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!takes(good[i]))
            fail_msg("not taken by hand: %s", good[i]);
}

static void test_json_left(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "[1 2]",
        "[01]",
        "[-]",
        "[1.]",
        "[.5]",
        "[1e]",
        "[+1]",
        "[NaN]",
        "[Infinity]",
        "[1e999]",
        "[99999999999999999999]",
        "nul",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"a\nb\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xc3",
        "\"\xe2\x82\\n\xac\"",
        "{\"a\":1,\"a\":2}",
        "{\"\\u0061\":1,\"a\":2}",
        "{\"\\u0000\":1}",
        "{1:2}",
        "[1]x",
        "[1] 2",
        "\"abc",
        "{\"a\"}",
        "{\"a\",1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (takes(bad[i]))
            fail_msg("taken by hand: %s", bad[i]);
    assert_false(agrees("[\"\0\"]", 5));
    json_t *value = dsc_json_quick("[1,[2,3]]", 9, 5);
    assert_non_null(value);
    json_decref(value);
    assert_null(dsc_json_quick("[1,[2,3]]", 9, 4));
    char deep[400];
    memset(deep, '[', 200);
    memset(deep + 200, ']', 200);
    assert_false(agrees(deep, 400)); // left to Jansson
}

// Pieces of JSON in random order, and good JSON with bytes changed.
static void test_json_random(void **state)
{
    (void)state;
    static const char *const piece[] = {
        "{",  "}",    "[",   "]",    ",",    ":", "\"a\"",       "\"b\"",
        "1",  "-2.5", "1e3", "true", "null", " ", "\"\\u00e9\"", "\"\xc3\xa9\"",
        "\"", "\\",   "0",   ".",    "e",    "-", "\n",          "\"\\ud83d\\ude00\""};
    static const char sample[] =
        "{\"id\":\"x\\n\xc3\xa9\",\"prompt\":[1,20,-3.25e-2,0.1234567890123],"
        "\"output\":{\"text\":\"\\u20ac\\\\\",\"tokens\":[]},\"m\":null}";
    uint64_t at = 0;
    long taken = 0;
    for (int i = 0; i < 20000; i++) {
        char text[256] = "";
        for (uint32_t n = random_below(&at, 10); n; n--)
            strcat(text, piece[random_below(&at, sizeof piece / sizeof *piece)]);
        taken += takes(text);
        memcpy(text, sample, sizeof sample);
        for (uint32_t n = 1 + random_below(&at, 3); n; n--)
            text[random_below(&at, sizeof sample - 1)] = (char)random_below(&at, 256);
        taken += agrees(text, sizeof sample - 1);
    }
    assert_true(taken > 1000);
}

// --- GPT-2's splits ------------------------------------------------------------------------------

static const char *const gpt2_piece[] = {
    "'",        "s",       "t",    "re", "ve",   "m",        "ll",       "d",
    "r",        " ",       " ",    "\n", "\t",   "0",        "a",        "Z",
    "!",        "_",       "@",    "[",  "`",    "{",        "/",        ":",
    "\v",       "\r",      "\x1c", "9",  "\x7f", "\xc3\xa9", "\xc2\xa0", "\xe3\x80\x80",
    "\xc2\x85", "\xd9\xa3"};

enum { GPT2_PIECES = sizeof gpt2_piece / sizeof *gpt2_piece, GPT2_ASCII = 29 };

static void test_gpt2(void **state)
{
    (void)state;
    char pattern[160]; // a tail that never matches, so that it is not recognised
    snprintf(pattern, sizeof pattern, "%s|a(?!.)(?=x)", dsc_tok_gpt2_pattern);
    tok_regex *regex;
    tok_matcher *m;
    assert_int_equal(dsc_tok_regex_new(&regex, pattern, strlen(pattern), NULL), 0);
    assert_int_equal(dsc_tok_matcher_new(&m, NULL), 0);
    assert_false(dsc_tok_regex_tiles(regex));
    uint64_t at = 1 << 30;
    long decided = 0, all = 0;
    for (int i = 0; i < 40000; i++) {
        char text[64] = "";
        for (uint32_t n = random_below(&at, 9); n; n--)
            strcat(text, gpt2_piece[random_below(&at, i % 2 ? GPT2_PIECES : GPT2_ASCII)]);
        size_t length = strlen(text), start, end, by_hand;
        for (size_t from = 0; from < length; from = end, all++) {
            assert_int_equal(dsc_tok_regex_find(regex, m, text, length, from, &start, &end, NULL),
                             1);
            assert_int_equal(start, from);
            if (!dsc_tok_gpt2_match(text, length, from, &by_hand))
                continue;
            decided++;
            if (by_hand != end)
                fail_msg("'%s' at %zu: %zu by hand, %zu by PCRE2", text, from, by_hand, end);
        }
    }
    assert_true(decided > all / 2);
    dsc_tok_matcher_free(m);
    dsc_tok_regex_free(regex);
}

// Many matches at once are the matches one by one, up to the first that is not decided by hand.
static void test_gpt2_matches(void **state)
{
    (void)state;
    enum { TEXT = 400, MOST = 16 };
    uint64_t at = 7u << 28;
    long all = 0, longest = 0;
    for (int i = 0; i < 20000; i++) {
        char text[TEXT] = "";
        // Letters and spaces mostly, as in texts, and long runs of one piece.
        size_t length = 0, wanted = random_below(&at, TEXT - 64), kinds = 1 + random_below(&at, 3);
        while (length < wanted) {
            const char *next = gpt2_piece[random_below(&at, i % 4 ? GPT2_ASCII : GPT2_PIECES)];
            uint32_t times = random_below(&at, 4) < kinds ? 1 : random_below(&at, 20);
            for (uint32_t k = 0; k <= times && length < wanted; k++, length += strlen(next))
                strcpy(text + length, next);
        }
        char *exact = malloc(length + 1); // so that reading behind it is seen
        memcpy(exact, text, length);
        for (size_t from = 0; from < length;) {
            size_t end[MOST], n = dsc_tok_gpt2_matches(exact, length, from, end, MOST), one;
            for (size_t k = 0; k < n; from = end[k++], all++) {
                if (!dsc_tok_gpt2_match(exact, length, from, &one) || one != end[k])
                    fail_msg("'%s' at %zu: %zu among many", text, from, end[k]);
                longest = end[k] - from > (size_t)longest ? (long)(end[k] - from) : longest;
            }
            assert_true(n <= MOST);
            if (n == MOST || from == length)
                continue;
            assert_false(dsc_tok_gpt2_match(exact, length, from, &one));
            do // where the regex would go on, or near it
                from++;
            while (from < length && (exact[from] & 0xc0) == 0x80);
        }
        free(exact);
    }
    assert_true(all > 100000 && longest > 64);
}

// --- words between marks -------------------------------------------------------------------------

// Cut before the marks that nothing joins, a text comes to the same tokens as in one piece.
static void test_marks(void **state)
{
    (void)state;
    static const char *const part[] = {
        " ",           " ", " ",  "a",  "the",          "ing", "tion", "re",       "1",
        ",",           ".", "\n", "'s", "\xe2\x96\x81", "e",   "st",   "\xc3\xa9", "\xe2\x96\x82",
        "\xe2\x82\xac"};
    enum { PARTS = sizeof part / sizeof *part, ASCII = 13, TEXT = 400 };
    char file[1024];
    dsc_tokenizer *t;
    dsc_encoder *e;
    source_path("tests/data/tokenizers/mistral-style.json", file, sizeof file);
    assert_int_equal(dsc_tokenizer_load(&t, file, NULL), 0);
    assert_int_equal(dsc_encoder_new(&e, t, NULL), 0);
    assert_non_null(t->may_join);
    tok_word word = {0};
    dsc_tokens cut = {0}, whole = {0};
    uint64_t at = 9u << 28;
    for (int i = 0; i < 6000; i++) {
        char text[TEXT], marked[3 * TEXT + 4];
        size_t n = 0, m = 0;
        for (size_t wanted = random_below(&at, TEXT - 8); n < wanted;) {
            const char *next = part[random_below(&at, i % 3 ? ASCII : PARTS)];
            memcpy(text + n, next, strlen(next));
            n += strlen(next);
        }
        bool begun = n == 0 || text[0] == ' ' || (n >= 3 && !memcmp(text, "\xe2\x96\x81", 3));
        if (!begun)
            memcpy(marked, "\xe2\x96\x81", m = 3);
        for (size_t k = 0; k < n; k++) {
            memcpy(marked + m, text[k] == ' ' ? "\xe2\x96\x81" : text + k, text[k] == ' ' ? 3 : 1);
            m += text[k] == ' ' ? 3 : 1;
        }
        cut.count = whole.count = 0;
        assert_int_equal(dsc_encode(e, text, n, false, &cut, NULL), 0);
        if (n)
            assert_int_equal(dsc_tok_word_encode(t, &word, (tok_text){marked, m}, &whole, NULL), 0);
        assert_int_equal(cut.count, whole.count);
        if (n)
            assert_memory_equal(cut.id, whole.id, cut.count * sizeof *cut.id);
    }
    dsc_tok_word_fini(&word);
    dsc_tokens_fini(&cut);
    dsc_tokens_fini(&whole);
    dsc_encoder_free(e);
    dsc_tokenizer_free(t);
}

// --- one byte replaced ---------------------------------------------------------------------------

static void test_replace(void **state)
{
    (void)state;
    static char x[] = "x";
    static const char *const contents[] = {"", "y", "\xe2\x96\x81", "0123456789"};
    tok_regex *regex;
    tok_matcher *m;
    assert_int_equal(dsc_tok_regex_new(&regex, x, 1, NULL), 0);
    assert_int_equal(dsc_tok_matcher_new(&m, NULL), 0);
    dsc_buffer by_hand = {0}, by_regex = {0};
    uint64_t at = 4u << 30;
    for (int i = 0; i < 4000; i++) {
        // y behind an x is what eight bytes at a time could take for another x.
        static const char alphabet[] = "xxab y\n";
        char text[64];
        size_t length = random_below(&at, sizeof text);
        for (size_t k = 0; k < length; k++)
            text[k] = alphabet[random_below(&at, 7)];
        const char *content = contents[i % 4];
        tok_step step = {
            .kind = TOK_REPLACE, .pattern = {x, 1}, .content = {content, strlen(content)}};
        tok_growth growth = dsc_tok_growth("test", length);
        by_hand.length = by_regex.length = 0;
        assert_int_equal(dsc_buffer_append(&by_hand, "<", (size_t)i % 3 == 0, NULL), 0);
        assert_int_equal(dsc_buffer_append(&by_regex, "<", (size_t)i % 3 == 0, NULL), 0);
        assert_int_equal(
            dsc_tok_replace(&step, m, (tok_text){text, length}, &by_hand, &growth, NULL), 0);
        step.regex = regex;
        assert_int_equal(
            dsc_tok_replace(&step, m, (tok_text){text, length}, &by_regex, &growth, NULL), 0);
        assert_int_equal(by_hand.length, by_regex.length);
        assert_memory_equal(by_hand.data, by_regex.data, by_hand.length + 1);
    }
    dsc_buffer_fini(&by_hand);
    dsc_buffer_fini(&by_regex);
    dsc_tok_matcher_free(m);
    dsc_tok_regex_free(regex);
}

// --- SHA-256 -------------------------------------------------------------------------------------

static void test_sha256_kernels(void **state)
{
    (void)state;
    uint8_t block[64 * 20 + 3];
    uint64_t at = 2u << 30;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)random_below(&at, 256);
    for (size_t blocks = 1; blocks <= 20; blocks++)
        for (const dsc_sha256_kernel *const *k = dsc_sha256_kernels; *k; k++) {
            uint32_t is[8], wanted[8];
            for (int i = 0; i < 8; i++)
                is[i] = wanted[i] = random_below(&at, UINT32_MAX);
            dsc_sha256_kernel_c.compress(wanted, block + blocks % 4, blocks);
            if (!(*k)->supported())
                continue;
            (*k)->compress(is, block + blocks % 4, blocks);
            if (memcmp(is, wanted, sizeof is) != 0)
                fail_msg("%s: %zu blocks", (*k)->name, blocks);
        }
}

// Lanes of their own data, at every alignment; all supported kernels.
static void test_sha256_lanes(void **state)
{
    (void)state;
    enum { LANES = DSC_SHA256_LANES, BLOCKS = 9 };
    static uint8_t data[LANES * 64 * BLOCKS + LANES];
    uint64_t at = 4u << 30;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)random_below(&at, 256);
    for (const dsc_sha256_lanes *const *k = dsc_sha256_lane_kernels; *k; k++)
        for (size_t blocks = 0; blocks <= BLOCKS && (*k)->supported(); blocks++) {
            uint32_t is[LANES][8], wanted[LANES][8];
            const uint8_t *lane[LANES];
            for (int l = 0; l < LANES; l++) {
                lane[l] = data + l * (64 * BLOCKS + 1);
                for (int i = 0; i < 8; i++)
                    is[l][i] = wanted[l][i] = random_below(&at, UINT32_MAX);
                dsc_sha256_kernel_c.compress(wanted[l], lane[l], blocks);
            }
            (*k)->compress(is, lane, blocks);
            if (memcmp(is, wanted, sizeof is) != 0)
                fail_msg("%s: %zu blocks", (*k)->name, blocks);
        }
}

// More files than lanes, of lengths around blocks and chunks, against one stream each.
static void test_sha256_files(void **state)
{
    (void)state;
    static const size_t length[] = {0,      1,     63,    64,    65,     119,    120,
                                    65535,  65536, 65537, 65600, 131072, 200000, 70000,
                                    200001, 64,    64,    1000,  55};
    enum { FILES = sizeof length / sizeof length[0], LONGEST = 200001 };
    static char data[LONGEST];
    char name[FILES][400], wanted[FILES][DSC_SHA256_HEX], is[FILES][DSC_SHA256_HEX];
    const char *path[FILES];
    dsc_error err = {0};
    uint64_t at = 5u << 30;
    for (int f = 0; f < FILES; f++) {
        dsc_sha256 one;
        for (size_t i = 0; i < length[f]; i++)
            data[i] = (char)random_below(&at, 256);
        snprintf(name[f], sizeof name[f], "%s.%d", in_path, f);
        path[f] = name[f];
        put_file(path[f], data, length[f]);
        dsc_sha256_init(&one);
        dsc_sha256_update(&one, data, length[f]);
        dsc_sha256_final(&one, wanted[f]);
    }
    for (size_t count = 0; count <= FILES; count++) {
        memset(is, 0, sizeof is);
        assert_int_equal(dsc_sha256_files(path, count, is, &err), DSC_OK);
        for (size_t f = 0; f < count; f++)
            assert_string_equal(is[f], wanted[f]);
    }
    remove(path[9]);
    assert_int_equal(dsc_sha256_files(path, FILES, is, &err), DSC_EINPUT);
    assert_non_null(strstr(err.message, path[9]));
    for (int f = 0; f < FILES; f++)
        remove(path[f]);
}

// --- threads -------------------------------------------------------------------------------------

typedef struct log_of {
    dsc_buffer text;
} log_of;

static void note_skipped(void *user, const char *message)
{
    log_of *l = user;
    dsc_buffer_puts(&l->text, message, NULL);
    dsc_buffer_puts(&l->text, "\n", NULL);
}

static int note_progress(void *user, int64_t done, int64_t total)
{
    log_of *l = user;
    return dsc_buffer_printf(&l->text, NULL, "%lld of %lld\n", (long long)done, (long long)total);
}

// Imports in_path with this number of threads. Returns the trace's hash or the message, and the
// log.
static void import_with(int threads, bool skip, char result[RESULT], log_of *l)
{
    const char *paths[] = {in_path};
    dsc_import_options o = plain;
    dsc_error err = {0};
    o.threads = threads;
    o.shard_tokens = 8 * 1000 * 1000; // the giant and all others: one shard
    o.skip_errors = skip;
    o.skipped = note_skipped;
    o.progress = note_progress;
    o.user = l;
    int64_t left_out = 0;
    if (dsc_import(paths, 1, bytes, out_path, &o, &left_out, &err)) {
        snprintf(result, RESULT, "%s, %lld left out", err.message, (long long)left_out);
        return;
    }
    opened t = open_trace(out_path);
    snprintf(result, RESULT, "%s, %lld left out", t.info->hash, (long long)left_out);
    close_trace(&t);
}

// More lines, of many lengths, than are under way at once; some of them bad in one way or another;
// the last may be very long.
static void put_lines(int lines, uint32_t bad_of, bool giant)
{
    static const char *const bad[] = {"{\"prompt\": 1, " OK_FIELDS "}",
                                      "{\"prompt\": \"p\"}",
                                      "[\"\xff\"]",
                                      "{" OK_FIELDS ", \"id\": \"twice\"}",
                                      "{" OK_FIELDS ", \"logprobs\": [-1]}",
                                      "{\"output\": 7"};
    dsc_buffer b = {0};
    uint64_t at = 3u << 30;
    for (int i = 0; i < lines; i++) {
        if (random_below(&at, bad_of) == 0 && i)
            dsc_buffer_puts(&b, bad[random_below(&at, 6)], NULL);
        else
            dsc_buffer_printf(&b, NULL, "{\"prompt\": \"%0*d\", \"output\": \"o\"}",
                              (int)random_below(&at, i % 9 ? 50 : 900), i);
        dsc_buffer_puts(&b, "\n", NULL);
    }
    if (giant)
        dsc_buffer_printf(&b, NULL, "{\"prompt\": \"%03000000d\", \"output\": \"o\"}\n{}\n", 1);
    put_file(in_path, b.data, b.length);
    dsc_buffer_fini(&b);
}

static void test_threads(void **state)
{
    (void)state;
    for (int skip = 0; skip < 2; skip++)
        for (uint32_t bad_of = 5; bad_of < 10000; bad_of *= 1000) {
            char one[RESULT], many[RESULT];
            put_lines(20000, bad_of, skip);
            log_of wanted = {{0}};
            import_with(1, skip, one, &wanted);
            for (int threads = 2; threads <= 5; threads += 3) {
                log_of is = {{0}};
                import_with(threads, skip, many, &is);
                assert_string_equal(many, one);
                assert_int_equal(is.text.length, wanted.text.length);
                if (wanted.text.length)
                    assert_string_equal(is.text.data, wanted.text.data);
                dsc_buffer_fini(&is.text);
            }
            dsc_buffer_fini(&wanted.text);
        }
    remove_trace(out_path);
}

SUITE(import_quick)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_taken),
        cmocka_unit_test(test_json_left),
        cmocka_unit_test(test_json_random),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_gpt2_matches),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_sha256_kernels),
        cmocka_unit_test(test_sha256_lanes),
        cmocka_unit_test(test_sha256_files),
        cmocka_unit_test_setup(test_threads, no_trace),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
