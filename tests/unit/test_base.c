// SPDX-License-Identifier: Apache-2.0
// Tests of base/: errors, memory, SHA-256 and Philox against published test vectors, bootstrap
// intervals, option tables, result tables and output files.
#include "tests/scratch.h"
#include "tests/unit/table_fixture.h"

#include "base/file.h"
#include "base/json_file.h"
#include "base/outfile.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "base/statistics.h"
#include "base/table.h"
#include "base/threads.h"

#include <errno.h>
#include <string.h>

static void status_messages(void **state)
{
    (void)state;
    dsc_error e = {0};
    assert_int_equal(dsc_fail(&e, DSC_EINPUT, "bad\nline %d", 7), DSC_EINPUT);
    assert_string_equal(e.message, "bad?line 7");
    assert_int_equal(dsc_error_prefix(&e, DSC_EINPUT, "f.jsonl:%d", 3), DSC_EINPUT);
    assert_string_equal(e.message, "f.jsonl:3: bad?line 7");
    char longest[3000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    dsc_fail(&e, DSC_EIO, "%s", longest);
    dsc_error_prefix(&e, DSC_EIO, "%s", longest);
    assert_true(strlen(e.message) < sizeof e.message);
    assert_int_equal(dsc_fail(NULL, DSC_EIO, "nobody listens"), DSC_EIO);
    const int codes[][2] = {{DSC_OK, 0},     {DSC_EUSAGE, 2},       {DSC_EABSENT, 3},
                            {DSC_EINPUT, 4}, {DSC_EIO, 1},          {DSC_ENOMEM, 1},
                            {DSC_ECHECK, 1}, {DSC_EINTERRUPT, 130}, {DSC_EDEVICE, 1}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        assert_int_equal(dsc_exit_code(codes[i][0]), codes[i][1]);
}

static void memory_refuses_overflow(void **state)
{
    (void)state;
    dsc_error e;
    void *p;
    assert_int_equal(dsc_alloc(&p, SIZE_MAX / 2, 4, &e), DSC_ENOMEM);
    assert_null(p);
    size_t capacity = 0;
    assert_int_equal(dsc_grow(&p, &capacity, SIZE_MAX / 4, 8, &e), DSC_ENOMEM);
    assert_int_equal(capacity, 0);
    dsc_arena a = {0};
    assert_int_equal(dsc_arena_alloc(&a, &p, SIZE_MAX - 100, 1, &e), DSC_ENOMEM);
    dsc_arena_fini(&a);
}

static void arena_blocks_do_not_overlap(void **state)
{
    (void)state;
    dsc_error e;
    dsc_arena a = {0};
    for (int round = 0; round < 3; round++) {
        unsigned char *block[200];
        size_t size[200];
        for (size_t i = 0; i < 200; i++) {
            void *p;
            size[i] = (i * 7919) % 9000;
            assert_ok(dsc_arena_alloc(&a, &p, size[i], 1, &e), e);
            assert_int_equal((uintptr_t)p % 64, 0);
            block[i] = p;
            memset(block[i], (int)i, size[i]);
        }
        for (size_t i = 0; i < 200; i++)
            for (size_t j = 0; j < size[i]; j++)
                assert_int_equal(block[i][j], i & 255);
        dsc_arena_reset(&a);
    }
    dsc_arena_fini(&a);
}

static void buffers_grow(void **state)
{
    (void)state;
    dsc_error e;
    dsc_buffer b = {0};
    for (int i = 0; i < 1000; i++)
        assert_ok(dsc_buffer_printf(&b, &e, "%d,", i), e);
    assert_int_equal(b.length, 10 * 2 + 90 * 3 + 900 * 4);
    assert_int_equal(strlen(b.data), b.length);
    assert_ok(dsc_buffer_puts(&b, "end", &e), e);
    assert_string_equal(b.data + b.length - 7, "999,end");
    dsc_buffer_fini(&b);
    assert_null(b.data);
}

static void sha256_known_values(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        // FIPS 180-4 examples
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < 3; i++)
        for (size_t cut = 0; cut <= strlen(pairs[i][0]); cut += 5) { // in two pieces, too
            dsc_sha256 s;
            char hex[DSC_SHA256_HEX];
            dsc_sha256_init(&s);
            dsc_sha256_update(&s, pairs[i][0], cut);
            dsc_sha256_update(&s, pairs[i][0] + cut, strlen(pairs[i][0]) - cut);
            dsc_sha256_final(&s, hex);
            assert_string_equal(hex, pairs[i][1]);
        }
    dsc_sha256 s;
    char hex[DSC_SHA256_HEX], many[1000];
    memset(many, 'a', sizeof many);
    dsc_sha256_init(&s);
    for (int i = 0; i < 1000; i++)
        dsc_sha256_update(&s, many, sizeof many);
    dsc_sha256_final(&s, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void philox_known_answers(void **state)
{
    (void)state;
    // Random123's kat_vectors, philox4x32 with 10 rounds.
    uint32_t r[4];
    dsc_rng_words(0, 0, 0, 0, r);
    assert_int_equal(r[0], 0x6627e8d5);
    assert_int_equal(r[3], 0x9b00dbd8);
    dsc_rng_words(UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, r);
    assert_int_equal(r[0], 0x408f276d);
    assert_int_equal(r[2], 0xa20bc7c6);
    assert_int_equal(r[3], 0x6d5451fd);
    double sum = 0;
    int seen[7] = {0};
    for (uint32_t i = 0; i < 70000; i++) {
        double u = dsc_rng_uniform(1, 2, i, DSC_RNG_TIE);
        assert_true(u >= 0 && u < 1);
        sum += u;
        seen[dsc_rng_below(1, 2, i, DSC_RNG_BOOTSTRAP, 7)]++;
    }
    assert_close(sum / 70000, 0.5, 4 * 0.2887 / sqrt(70000));
    for (int i = 0; i < 7; i++)
        assert_close(seen[i], 10000, 4 * sqrt(10000 * 6.0 / 7));
}

static void bootstrap_matches_the_normal_interval(void **state)
{
    (void)state;
    dsc_error e;
    dsc_bootstrap a, b;
    assert_ok(dsc_bootstrap_init(&a, 4000, 5, &e), e);
    assert_ok(dsc_bootstrap_init(&b, 4000, 5, &e), e);
    // tops 3 or 5 in equal parts over bottom 2: ratio 2, sd of the mean of top/2 is 0.5 / sqrt(n)
    int64_t n = 2500;
    for (int64_t i = 0; i < n; i++)
        dsc_bootstrap_add(&a, i, i % 2 ? 3 : 5, 2);
    for (int64_t i = n - 1; i >= 0; i--) // order does not matter
        dsc_bootstrap_add(&b, i, i % 2 ? 3 : 5, 2);
    double lo, hi, lo2, hi2, half = 1.96 * 0.5 / sqrt((double)n);
    assert_ok(dsc_bootstrap_interval(&a, &lo, &hi, &e), e);
    assert_ok(dsc_bootstrap_interval(&b, &lo2, &hi2, &e), e);
    assert_true(lo == lo2 && hi == hi2);
    assert_close(lo, 2 - half, 0.15 * half);
    assert_close(hi, 2 + half, 0.15 * half);
    dsc_bootstrap_fini(&a);
    dsc_bootstrap_fini(&b);
    assert_ok(dsc_bootstrap_init(&a, 100, 5, &e), e);
    dsc_bootstrap_add(&a, 0, 1, 1);
    assert_ok(dsc_bootstrap_interval(&a, &lo, &hi, &e), e);
    assert_true(isnan(lo) && isnan(hi)); // one request gives no interval
    dsc_bootstrap_fini(&a);
    double x[] = {4, 1, 3, 2};
    dsc_summary s = dsc_summarize(x, 4);
    assert_close(s.mean, 2.5, 1e-15);
    assert_close(s.median, 2.5, 1e-15);
    assert_close(s.p90, 3.7, 1e-15);
    assert_true(s.min == 1 && s.max == 4);
    assert_true(isnan(dsc_summarize(NULL, 0).mean));
}

// Student's t with 10 degrees of freedom has .025 above 2.228139, a normal variable .05 above
// 1.644854 and .025 above 1.959964.
static void error_limits_of_few_requests(void **state)
{
    (void)state;
    assert_close(dsc_error_limit(1.959964, 11, 1), 2.228139, 1e-6);
    assert_close(dsc_error_limit(1.644854, 11, 2), 2.228139, 1e-6);
    assert_close(dsc_error_limit(3, 100000000, 1), 3, 1e-6);
    assert_true(dsc_error_limit(3, 12, 1) > dsc_error_limit(3, 13, 1));
    assert_true(isinf(dsc_error_limit(3, 1, 1)));
}

// clang-format off
static const dsc_option options[] = {
    {.name = "n", .kind = DSC_OPTION_INT, .initial = "1", .min = 1, .max = 100, .help = "n"},
    {.name = "semantics", .kind = DSC_OPTION_CHOICE, .choices = "paper|code", .initial = "paper",
     .help = "s"},
    {.name = "out", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "FILE", .help = "o"},
    {.name = "force", .kind = DSC_OPTION_FLAG, .help = "f"},
    {.name = "alpha", .kind = DSC_OPTION_REAL, .initial = ".5", .least = 0, .most = 1, .help = "a"},
    {.name = "k", .kind = DSC_OPTION_INT, .list = true, .initial = "1:3", .min = 1, .max = 9,
     .help = "k", .synonyms = "length|gamma"},
};
// clang-format on
enum { OPTIONS = sizeof options / sizeof *options };

static int parse(const char *line, bool lists, dsc_option_value value[OPTIONS], size_t *words,
                 dsc_error *e)
{
    static char copy[512];
    static char *argv[32];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value, .lists = lists};
    return dsc_options_parse(&set, 1, argc, argv, words, e);
}

// A name that several sets have applies to all of them; after an owner's name it applies to that
// set.
static void options_shared(void **state)
{
    (void)state;
    static const dsc_option shared[] = {
        {.name = "k", .kind = DSC_OPTION_INT, .initial = "1", .min = 1, .max = 9}};
    dsc_error e;
    dsc_option_value first[1], second[1];
    dsc_option_set sets[] = {{.table = shared, .count = 1, .value = first, .owner = "one"},
                             {.table = shared, .count = 1, .value = second, .owner = "two"}};
    char *both[] = {"--k", "4"}, *one[] = {"--k=4", "--two.k", "5"}, *bad[] = {"--three.k", "5"},
         *over[] = {"--one.k", "10"};
    size_t words;
    assert_ok(dsc_options_parse(sets, 2, 2, both, &words, &e), e);
    assert_true(first->integer == 4 && second->integer == 4 && first->given && second->given);
    assert_ok(dsc_options_parse(sets, 2, 3, one, &words, &e), e);
    assert_true(first->integer == 4 && second->integer == 5);
    assert_int_equal(dsc_options_parse(sets, 2, 2, bad, &words, &e), DSC_EUSAGE);
    assert_int_equal(dsc_options_parse(sets, 2, 2, over, &words, &e), DSC_EUSAGE);
}

// A range of integers in its three forms.
static void option_ranges(void **state)
{
    (void)state;
    static const char *const same[] = {"2:8:3", "2..8:3", "2-8:3"}, *const bad[] = {"2.8", "2-",
                                                                                    "-",   "..3",
                                                                                    "8-2", "2...8"};
    const dsc_option o = {.name = "k", .kind = DSC_OPTION_INT, .min = -5, .max = 9};
    dsc_error e;
    int64_t *list;
    size_t n;
    for (size_t i = 0; i < 3; i++) {
        assert_ok(dsc_option_list(&o, same[i], &list, &n, &e), e);
        assert_int_equal(n, 3);
        assert_true(list[0] == 2 && list[1] == 5 && list[2] == 8);
        free(list);
    }
    assert_ok(dsc_option_list(&o, "-5--3,-1-1", &list, &n, &e), e);
    assert_int_equal(n, 6);
    assert_true(list[0] == -5 && list[2] == -3 && list[3] == -1 && list[5] == 1);
    free(list);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(dsc_option_list(&o, bad[i], &list, &n, &e), DSC_EUSAGE);
}

// Synonyms, letters, every use of an option, and who takes an option that is unknown here.
static void options_by_other_names(void **state)
{
    (void)state;
    static const dsc_option taken[] = {{.name = "tokens",
                                        .letter = 'k',
                                        .synonyms = "length|gamma",
                                        .kind = DSC_OPTION_INT,
                                        .max = 99}},
                            other[] = {{.name = "guesses", .kind = DSC_OPTION_FLAG}};
    dsc_error e;
    dsc_option_value value[1];
    dsc_option_uses uses = {0};
    dsc_option_set sets[] = {{.table = taken,
                              .count = 1,
                              .value = value,
                              .lists = true,
                              .owner = "ngram",
                              .synonyms = "pld|lookup",
                              .uses = &uses},
                             {.table = other, .count = 1, .elsewhere = "method lookahead"}};
    char *good[] = {"--gamma", "1", "-k2", "--pld.length=3", "--ngram.tokens", "4"};
    size_t words;
    assert_ok(dsc_options_parse(sets, 2, 6, good, &words, &e), e);
    assert_int_equal(words, 0);
    assert_string_equal(value->text, "4");
    assert_int_equal(uses.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_true(uses.use[i].option == taken && uses.use[i].owned == (i > 1));
        assert_int_equal(uses.use[i].text[0], '1' + (int)i);
    }
    free(uses.use);
    static char *bad[][3] = {
        // an unknown option is reported before a value that is missing or wrong
        {"--tokens=x", "--guesses",
         "unknown option --guesses (it is an option of method lookahead)"},
        {"--gueses", "--tokens", "did you mean --guesses, of method lookahead?"},
        {"--lenth", "--tokens", "did you mean --length?"},
        {"--lookup.guesses", "--k", "unknown option --lookup.guesses"},
        {"-K", "--tokens", "unknown option -K"},
    };
    sets[0].uses = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dsc_options_parse(sets, 2, 2, bad[i], &words, &e), DSC_EUSAGE);
        if (!strstr(e.message, bad[i][2]))
            fail_msg("%s", e.message);
    }
}

static void options_parse(void **state)
{
    (void)state;
    dsc_error e;
    dsc_option_value v[OPTIONS];
    size_t words;
    assert_ok(parse("a --n 7 b --semantics=code -oout.tsv --force -- --n", false, v, &words, &e),
              e);
    assert_int_equal(words, 3);
    assert_int_equal(v[0].integer, 7);
    assert_int_equal(v[1].integer, 1);
    assert_string_equal(v[2].text, "out.tsv");
    assert_true(v[3].given);
    assert_ok(parse("", false, v, &words, &e), e);
    assert_int_equal(v[0].integer, 1);
    assert_false(v[0].given);
    assert_true(v[4].real == .5);
    assert_ok(parse("--alpha .25 --k 4,6:8", false, v, &words, &e), e);
    assert_true(v[4].real == .25);
    assert_string_equal(v[5].text, "4,6:8");
    static const char *const bad[][2] = {
        {"--n 0", "from 1 to 100"},
        {"--n 101", "from 1 to 100"},
        {"--n x", "'x'"},
        {"--n 1e1", "integer"},
        {"--n", "needs a value"},
        {"--force=1", "takes no value"},
        {"--semantic code", "did you mean --semantics"},
        {"--semantics cod", "paper|code"},
        {"-x", "unknown option -x"},
        {"--n 99999999999999999999", "integer"},
        {"--zzzzzzz 1", "unknown option"},
        {"--n 1:2", "integer"},
        {"--alpha 1.5", "'1.5' is not a number from 0 to 1"},
        {"--alpha .1,.2", "one number is expected"},
        {"--k 4:10", "from 1 to 9"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i][0], false, v, &words, &e), DSC_EUSAGE);
        if (!strstr(e.message, bad[i][1]))
            fail_msg("'%s': '%s', expected '%s'", bad[i][0], e.message, bad[i][1]);
    }
}

static void option_lists(void **state)
{
    (void)state;
    dsc_error e;
    int64_t *list;
    size_t n;
    assert_ok(dsc_option_list(&options[0], "1:8", &list, &n, &e), e);
    assert_int_equal(n, 8);
    assert_int_equal(list[7], 8);
    free(list);
    assert_ok(dsc_option_list(&options[0], "4,10:20:5,2", &list, &n, &e), e);
    const int64_t want[] = {4, 10, 15, 20, 2};
    assert_int_equal(n, 5);
    assert_memory_equal(list, want, sizeof want);
    free(list);
    assert_ok(dsc_option_list(&options[0], "10:14:3", &list, &n, &e), e);
    assert_int_equal(n, 2); // 10, 13
    free(list);
    assert_ok(dsc_option_list(&options[1], "code,paper", &list, &n, &e), e);
    assert_int_equal(n, 2);
    assert_int_equal(list[0], 1);
    free(list);
    dsc_option wide = {.name = "w", .kind = DSC_OPTION_INT, .min = INT64_MIN, .max = INT64_MAX};
    assert_ok(dsc_option_list(&wide, "9223372036854775800:9223372036854775807:5", &list, &n, &e),
              e);
    assert_int_equal(n, 2);
    free(list);
    static const char *const bad[][2] = {
        {"8:1", "empty"},       {"0:3", "from 1"},
        {"1:101", "to 100"},    {"1:5:0", "integer from 1"},
        {"1,", "integer"},      {"", "integer"},
        {"1,2,1", "twice"},     {"1:5:-1", "integer from 1"},
        {"1:2:3:4", "integer"}, {":", "integer"},
        {"1 2", "integer"},     {"+1", "integer"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dsc_option_list(&options[0], bad[i][0], &list, &n, &e), DSC_EUSAGE);
        assert_null(list);
        if (!strstr(e.message, bad[i][1]))
            fail_msg("'%s': '%s', expected '%s'", bad[i][0], e.message, bad[i][1]);
    }
    assert_int_equal(dsc_option_list(&wide, "0:9223372036854775807", &list, &n, &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "more than 1000000"));
    const char *names[] = {"llma", "none|plain", "oracle"};
    assert_int_equal(dsc_unknown_name("method", "lmma", names, 3, "see: list", &e), DSC_EUSAGE);
    assert_string_equal(e.message, "unknown method 'lmma' (did you mean llma?)");
    dsc_unknown_name("method", "plian", names, 3, "see: list", &e);
    assert_string_equal(e.message, "unknown method 'plian' (did you mean plain?)");
    dsc_unknown_name("method", "ouroboros", names, 3, "see: list", &e);
    assert_string_equal(e.message, "unknown method 'ouroboros' (see: list)");
}

static void option_reals(void **state)
{
    (void)state;
    dsc_error e;
    double *list;
    size_t n;
    assert_ok(dsc_option_reals(&options[4], ".5:.95:.05,1e-3", &list, &n, &e), e);
    assert_int_equal(n, 11);
    assert_true(list[1] == .55 && list[2] == .6 && list[9] == .95 && list[10] == .001);
    free(list);
    dsc_option open = {.name = "c", .kind = DSC_OPTION_REAL, .least = 0, .most = INFINITY};
    assert_ok(dsc_option_reals(&open, "1e9", &list, &n, &e), e);
    assert_true(list[0] == 1e9);
    free(list);
    static const char *const bad[][2] = {
        {"", "not a number"},        {"x", "'x' is not a number from 0 to 1"},
        {"nan", "not a number"},     {"inf", "not a number"},
        {"0x1p-1", "not a number"},  {"+.5", "not a number"},
        {"-.1", "from 0 to 1"},      {".1:.5", "no step"},
        {".5:.1:.1", "empty"},       {".1:.5:0", "empty"},
        {".1,.2,.1", "given twice"}, {"1e999", "not a number"},
        {".1:.2:1e-9", "more than"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dsc_option_reals(&options[4], bad[i][0], &list, &n, &e), DSC_EUSAGE);
        assert_null(list);
        if (!strstr(e.message, bad[i][1]))
            fail_msg("'%s': '%s', expected '%s'", bad[i][0], e.message, bad[i][1]);
    }
    assert_int_equal(dsc_option_reals(&open, "-1", &list, &n, &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "a number of at least 0"));
}

static void number_texts(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } number[] = {{10, "10"},          {0, "0"},
                  {-3, "-3"},          {.1, "0.1"},
                  {1e6, "1000000"},    {1e20, "1e+20"},
                  {NAN, "nan"},        {1. / 3, "0.3333333333333333"},
                  {2.5e-9, "2.5e-09"}, {999999999999999, "999999999999999"}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        char text[DSC_NUMBER_TEXT];
        dsc_number_text(number[i].x, text);
        assert_string_equal(text, number[i].text);
    }
}

static void tables_round_trip(void **state)
{
    (void)state;
    dsc_error e;
    dsc_table t = {0};
    assert_ok(dsc_table_comment(&t, "command", "draftscope sim 'a b'", &e), e);
    assert_ok(dsc_table_add_column(&t, "method", DSC_CELL_TEXT, "how it drafts", &e), e);
    assert_ok(dsc_table_add_column(&t, "k", DSC_CELL_INT, NULL, &e), e);
    assert_ok(dsc_table_add_column(&t, "speedup", DSC_CELL_REAL, NULL, &e), e);
    assert_ok(dsc_table_add_column(&t, "accept_histogram", DSC_CELL_LIST, NULL, &e), e);
    const double reals[] = {1.0 / 3, 1e-300, NAN, 2, -0.5, 1e22, 0.1};
    for (int64_t i = 0; i < 7; i++) {
        int64_t list[] = {i, 2 * i, INT64_MAX};
        dsc_cell row[] = {{.type = DSC_CELL_TEXT, .text = i % 2 ? "llma" : "no\"ne\\ \xc3\xa9"},
                          {.type = DSC_CELL_INT, .i = i * 1000000007},
                          {.type = DSC_CELL_REAL, .r = reals[i]},
                          {.type = DSC_CELL_LIST, .list = list, .i = 1 + i % 3}};
        assert_ok(dsc_table_add_row(&t, row, &e), e);
    }
    for (int jsonl = 0; jsonl < 2; jsonl++) {
        const char *path = in_scratch(jsonl ? "t.jsonl" : "t.tsv");
        write_table(&t, path, jsonl);
        dsc_table u;
        assert_ok(dsc_table_read(&u, path, &e), e);
        assert_int_equal(u.rows, 7);
        assert_int_equal(u.columns, 4);
        assert_string_equal(dsc_table_get_comment(&u, "command"), "draftscope sim 'a b'");
        assert_null(dsc_table_get_comment(&u, "seed"));
        assert_int_equal(u.comments, 1);
        assert_string_equal(u.column[0].help, "how it drafts");
        assert_null(u.column[1].help);
        assert_int_equal(dsc_table_find(&u, "speedup"), 2);
        assert_int_equal(dsc_table_find(&u, "nothing"), -1);
        for (size_t r = 0; r < 7; r++) {
            assert_string_equal(dsc_table_at(&u, r, 0)->text, dsc_table_at(&t, r, 0)->text);
            assert_int_equal(dsc_table_at(&u, r, 1)->i, dsc_table_at(&t, r, 1)->i);
            double x = dsc_table_real(&u, r, 2);
            assert_true(x == reals[r] || (isnan(x) && isnan(reals[r])));
            const dsc_cell *l = dsc_table_at(&u, r, 3);
            assert_int_equal(l->type, DSC_CELL_LIST);
            assert_int_equal(l->i, 1 + (int64_t)r % 3);
            assert_memory_equal(l->list, dsc_table_at(&t, r, 3)->list, (size_t)l->i * 8);
        }
        dsc_table_fini(&u);
    }
    dsc_table_fini(&t);
}

// A histogram of expectations in both formats; a date is not a list.
static void lists_of_reals_come_back(void **state)
{
    (void)state;
    dsc_error e;
    static const char *const text[] = {"histogram\tday\n0.1;3;1e-20\t2026-11-21\n",
                                       "{\"histogram\": [0.1,3,1e-20], \"day\": \"2026-11-21\"}\n"};
    for (int json = 0; json < 2; json++) {
        const char *path = in_scratch("bad");
        dsc_table t;
        put_file(path, text[json], strlen(text[json]));
        assert_ok(dsc_table_read(&t, path, &e), e);
        const dsc_cell *x = dsc_table_at(&t, 0, 0);
        assert_int_equal(x->type, DSC_CELL_LIST);
        assert_int_equal(x->i, 3);
        assert_true(!x->list && dsc_cell_element(x, 0) == 0.1 && dsc_cell_element(x, 2) == 1e-20);
        assert_int_equal(dsc_table_at(&t, 0, 1)->type, DSC_CELL_TEXT);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        if (json)
            dsc_table_write_jsonl_row(&t, 0, f);
        else
            dsc_table_write_tsv_row(&t, 0, f);
        assert_int_equal(fclose(f), 0);
        char *back;
        size_t n;
        assert_ok(dsc_read_file(&back, &n, path, 1000, &e), e);
        assert_non_null(strstr(text[json], back));
        free(back);
        dsc_table_fini(&t);
    }
}

// Digits that no list of counts can hold are text, and come back as they were.
static void digits_beyond_64_bits_are_text(void **state)
{
    (void)state;
    dsc_error e;
    static const char *const digits[] = {"9223372036854775808", "123456789012345678901234",
                                         "1;99999999999999999999", "1;9223372036854775808;2"};
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        const char *path = in_scratch("bad");
        char text[128];
        dsc_table t;
        snprintf(text, sizeof text, "day\taccept_histogram\n1\t%s\nx\t%s\n", digits[i],
                 i == 1 ? "y" : digits[i]);
        put_file(path, text, strlen(text));
        assert_ok(dsc_table_read(&t, path, &e), e);
        const dsc_cell *x = dsc_table_at(&t, 1, 1);
        assert_true(x->type == DSC_CELL_TEXT || (x->type == DSC_CELL_REAL && i == 0));
        if (x->type == DSC_CELL_TEXT)
            assert_string_equal(x->text, i == 1 ? "y" : digits[i]);
        dsc_table_fini(&t);
    }
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    dsc_error e;
    static const char *const bad[][2] = {
        {"", "no header"},
        {"# a: b\n", "no header"},
        {"a\tb\n1\n", ":2: 1 fields, the header has 2"},
        {"a\tb\n1\t2\t3\n", ":2: 3 fields"},
        {"{\"a\": 1}\n[1]\n", ":2: not a JSON object"},
        {"{\"a\": 1}\n{\"a\": \"x\"}\n", ":2: 'a': the value has another type"},
        {"{\"a\": 1}\n{\"b\": 1}\n", ":2: 'a': field is missing"},
        {"{\"a\": 1}\n{\"a\": 1, \"b\": 2}\n", ":2: 2 fields"},
        {"{\"a\": [\"x\"]}\n", "another type"},
        {"{\"a\": 1", ":1:"},
        {"{\"a\\tb\": 1}\n", "cannot be the name"},
        {"{\"#a\": 1}\n", "cannot be the name"},
        {"{\"#\": 1}\n", ":1: the comments"},
        {"{\"#\": {}, \"a\": 1}\n", ":1: the comments"},
        {"# a: b\n{x\ty\n", "cannot be the name"},
        {"a\tb\t\n", "cannot be the name"},
        {"a\tb\ta\n", "two columns 'a'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = in_scratch("bad");
        dsc_table t;
        put_file(path, bad[i][0], strlen(bad[i][0]));
        assert_int_equal(dsc_table_read(&t, path, &e), DSC_EINPUT);
        if (!strstr(e.message, bad[i][1]))
            fail_msg("'%s': '%s', expected '%s'", bad[i][0], e.message, bad[i][1]);
    }
    dsc_table t;
    put_file(in_scratch("bad"), "a\n\0\n", 4);
    assert_int_equal(dsc_table_read(&t, in_scratch("bad"), &e), DSC_EINPUT);
    assert_non_null(strstr(e.message, "NUL"));
    assert_int_equal(dsc_table_read(&t, in_scratch("absent"), &e), DSC_EINPUT);
}

// Text that begins like a comment is text; comments with one key are one comment in JSON.
static void tables_keep_what_looks_like_comments(void **state)
{
    (void)state;
    dsc_error e;
    dsc_table t, u;
    const char *path = in_scratch("t");
    const char text[] = "# source: a\n# source: b\n# two\nid\tn\n#1\t2\n# x: y\t3\n";
    put_file(path, text, sizeof text - 1);
    assert_ok(dsc_table_read(&t, path, &e), e);
    for (int jsonl = 0; jsonl < 2; jsonl++) {
        write_table(&t, path, jsonl);
        assert_ok(dsc_table_read(&u, path, &e), e);
        assert_string_equal(dsc_table_get_comment(&u, "source"), jsonl ? "a; b" : "a");
        assert_int_equal(u.rows, 2);
        assert_string_equal(dsc_table_at(&u, 0, 0)->text, "#1");
        assert_string_equal(dsc_table_at(&u, 1, 0)->text, "# x: y");
        dsc_table_fini(&u);
    }
    dsc_table_fini(&t);
}

// What a hostile name cannot bring to a terminal: controls (C0, DEL, C1) and invalid UTF-8.
static void messages_are_printable(void **state)
{
    (void)state;
    dsc_error e;
    dsc_fail(&e, DSC_EUSAGE, "%s", "a\x1b[31m\n\x7f\xc2\x9b\xff\xc3 \xc3\xa9 \xe2\x82");
    assert_string_equal(e.message, "a?[31m?????? \xc3\xa9 ??");
    dsc_fail_errno(&e, DSC_EINPUT, EINTR, "stdin");
    assert_int_equal(e.status, DSC_EINTERRUPT);
    assert_string_equal(e.message, "stdin: interrupted");
}

static void outputs_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    dsc_error e;
    dsc_outfile f;
    const char *path = in_scratch("result");
    assert_ok(dsc_outfile_open(&f, path, false, &e), e);
    fputs("half", f.stream);
    assert_int_not_equal(access(path, F_OK), 0);
    dsc_outfile_abort(&f);
    assert_ok(dsc_outfile_open(&f, path, false, &e), e);
    fputs("whole", f.stream);
    assert_ok(dsc_outfile_commit(&f, &e), e);
    char *text;
    size_t n;
    assert_ok(dsc_read_file(&text, &n, path, 100, &e), e);
    assert_string_equal(text, "whole");
    free(text);
    assert_int_equal(dsc_read_file(&text, &n, path, 4, &e), DSC_EINPUT);
    assert_ok(dsc_check_regular(path, &e), e);
    assert_int_equal(dsc_check_regular(scratch, &e), DSC_EINPUT);
    assert_int_equal(dsc_check_regular(in_scratch("absent"), &e), DSC_EINPUT);
    assert_non_null(strstr(e.message, "No such file"));
    assert_int_equal(dsc_outfile_open(&f, path, false, &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "--force"));
    assert_int_equal(dsc_outfile_open(&f, scratch, true, &e), DSC_EUSAGE);
    assert_int_equal(dsc_outfile_open(&f, "/dev/full", true, &e), DSC_EUSAGE);
    assert_int_equal(dsc_outfile_open(&f, "/nonexistent/x", false, &e), DSC_EIO);
    assert_ok(dsc_outfile_open(&f, path, true, &e), e);
    dsc_outfile_abort(&f);
    assert_int_equal(access(path, F_OK), 0); // the old file is still there
}

static int allocations; // that succeed before all others fail

static void *scarce_malloc(size_t n)
{
    return allocations-- <= 0 ? (errno = ENOMEM, NULL) : malloc(n);
}

// A defect is reported by file, line and column. Memory that ends at any allocation is not reported
// as one.
static void json_errors(void **state)
{
    (void)state;
    static const char sound[] = "{\"a\": [1, 2.5, \"a text longer than any buffer\"], \"b\": {}}";
    dsc_error e;
    json_t *out;
    FILE *f = fopen(in_scratch("bad"), "wb");
    assert_non_null(f);
    fputs("{\"a\": 1,\n  \"a\": 2}", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(dsc_json_file(&out, in_scratch("bad"), 100, &e), DSC_EINPUT);
    assert_null(out);
    assert_non_null(strstr(e.message, "/bad: line 2, column 5: duplicate object key"));
    assert_int_equal(dsc_json_file(&out, in_scratch("bad"), 10, &e), DSC_EINPUT);
    assert_non_null(strstr(e.message, "/bad: longer than the limit of 10 bytes"));
    int rc = DSC_ENOMEM, n = 0;
    json_set_alloc_funcs(scarce_malloc, free);
    for (; rc == DSC_ENOMEM; n++) {
        allocations = n;
        rc = dsc_json_parse(&out, sound, strlen(sound), 0, "sound", &e);
    }
    json_decref(out);
    json_set_alloc_funcs(malloc, free);
    assert_ok(rc, e);
    assert_true(n > 8);
}

static void threads_follow_the_load(void **state)
{
    (void)state;
    assert_int_equal(dsc_threads_choose(8, 0, 8, 0), 8);
    assert_int_equal(dsc_threads_choose(8, 0, 8, 2.6), 5);
    assert_int_equal(dsc_threads_choose(2, 0, 2, 5), 1);
    assert_int_equal(dsc_threads_choose(2, 0, 64, 40), 2); // 24 processors are free
    assert_int_equal(dsc_threads_choose(2, 0, 64, 63.2), 1);
    assert_int_equal(dsc_threads_choose(16, 2.5, 16, 0), 2);
    assert_int_equal(dsc_threads_choose(16, .5, 16, 0), 1);
    assert_int_equal(dsc_threads_choose(4096, 0, 4096, 0), DSC_THREADS_MOST);
    assert_in_range(dsc_threads_default(), 1, DSC_THREADS_MOST);
}

SUITE(base)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_messages),
        cmocka_unit_test(memory_refuses_overflow),
        cmocka_unit_test(arena_blocks_do_not_overlap),
        cmocka_unit_test(buffers_grow),
        cmocka_unit_test(sha256_known_values),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(bootstrap_matches_the_normal_interval),
        cmocka_unit_test(error_limits_of_few_requests),
        cmocka_unit_test(options_parse),
        cmocka_unit_test(option_ranges),
        cmocka_unit_test(options_by_other_names),
        cmocka_unit_test(options_shared),
        cmocka_unit_test(option_lists),
        cmocka_unit_test(option_reals),
        cmocka_unit_test(number_texts),
        cmocka_unit_test(tables_round_trip),
        cmocka_unit_test(lists_of_reals_come_back),
        cmocka_unit_test(digits_beyond_64_bits_are_text),
        cmocka_unit_test(bad_tables_are_refused),
        cmocka_unit_test(tables_keep_what_looks_like_comments),
        cmocka_unit_test(messages_are_printable),
        cmocka_unit_test(json_errors),
        cmocka_unit_test(outputs_appear_whole_or_not_at_all),
        cmocka_unit_test(threads_follow_the_load),
    };
    return cmocka_run_group_tests_name("base", tests, make_scratch, remove_scratch);
}
