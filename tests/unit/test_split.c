// SPDX-License-Identifier: Apache-2.0
// Divisions of a sweep, grids in words, and the tables of shards.
#include "tests/scratch.h"

#include "sim/sweep/shard_table.h"
#include "sim/sweep/sweep.h"

#include <inttypes.h>
#include <string.h>

// Every pair of configuration and request is in one cell, and shares differ by one cell at most.
static void check_deal(dsc_split s)
{
    dsc_error e = {0};
    assert_ok(dsc_split_blocks(&s, 1000, &e), e);
    int64_t cells = dsc_split_cells(&s);
    int32_t *owner;
    assert_ok(dsc_split_deal(&s, &owner, &e), e);
    uint8_t *seen = calloc((size_t)(s.configurations * s.requests + 1), 1);
    int64_t *share = calloc((size_t)s.shards + 1, sizeof *share), least = INT64_MAX, most = 0;
    for (int64_t i = 0; i < cells; i++) {
        dsc_cell_range r = dsc_split_cell(&s, i);
        assert_in_range(owner[i], 1, s.shards);
        share[owner[i]]++;
        assert_true(r.configuration < r.configuration_end && r.request < r.request_end);
        assert_true(r.configuration_end <= s.configurations && r.request_end <= s.requests);
        for (int64_t c = r.configuration; c < r.configuration_end; c++)
            for (int64_t q = r.request; q < r.request_end; q++)
                seen[c * s.requests + q]++;
    }
    for (int64_t i = 0; i < s.configurations * s.requests; i++)
        assert_int_equal(seen[i], 1);
    for (int64_t i = 1; i <= s.shards; i++) {
        least = share[i] < least ? share[i] : least;
        most = share[i] > most ? share[i] : most;
    }
    assert_true(most - least <= 1);
    free(share);
    free(seen);
    free(owner);
}

static void deals(void **state)
{
    (void)state;
    for (int64_t shards = 1; shards <= 9; shards += 4)
        for (int64_t configurations = 1; configurations <= 100; configurations += 33)
            for (int64_t requests = 0; requests <= 300; requests += 60)
                for (int64_t block = 0; block <= 128; block += 32)
                    check_deal((dsc_split){.shard = 1,
                                           .shards = shards,
                                           .configurations = configurations,
                                           .requests = requests,
                                           .configuration_block = block / 4,
                                           .request_block = block});
}

// A share that changes between versions would make unfinished shards useless without a word.
static void deal_is_fixed(void **state)
{
    (void)state;
    dsc_error e = {0};
    int32_t *owner;
    dsc_split s = {.shard = 1, .shards = 3, .configurations = 4, .requests = 130};
    assert_ok(dsc_split_blocks(&s, 5000, &e), e);
    assert_ok(dsc_split_deal(&s, &owner, &e), e);
    char text[32] = "";
    for (int64_t i = 0; i < dsc_split_cells(&s); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d", owner[i]);
    assert_string_equal(text, "221132321133");
    free(owner);
}

static void split_texts(void **state)
{
    (void)state;
    dsc_error e;
    dsc_split s = {0}, t;
    char text[DSC_SPLIT_TEXT];
    assert_ok(dsc_split_shard(&s, "3/8", &e), e);
    assert_true(s.shard == 3 && s.shards == 8);
    static const char *const bad[] = {
        "",          "3",    "0/8",   "9/8",   "3/8 ",
        " 3/8",      "+3/8", "3//8",  "3/8/",  "-1/8",
        "1/1000001", "a/b",  "3/8 x", "1.0/2", "18446744073709551617/18446744073709551618"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dsc_split_shard(&s, bad[i], &e), DSC_EUSAGE);
        assert_non_null(strstr(e.message, "I/N"));
    }
    s = (dsc_split){3, 8, 256, 117, 2, 64};
    dsc_split_text(&s, text);
    assert_ok(dsc_split_parse(&t, text, &e), e);
    assert_memory_equal(&s, &t, sizeof s);
    static const char *const torn[] = {
        "",
        "shard=3/8",
        "shard=9/8 configurations=1 requests=1 configuration_block=1 request_block=1",
        "shard=1/8 configurations=0 requests=1 configuration_block=1 request_block=1",
        "shard=1/8 configurations=1 requests=-1 configuration_block=1 request_block=1",
        "shard=1/8 configurations=1 requests=1 configuration_block=0 request_block=1",
        "shard=1/8 configurations=1 requests=1 configuration_block=1 request_block=1 ",
        "shard=1/8 configurations=99999 requests=99999 configuration_block=1 request_block=1"};
    for (size_t i = 0; i < sizeof torn / sizeof *torn; i++)
        assert_int_equal(dsc_split_parse(&t, torn[i], &e), DSC_EINPUT);
    s = (dsc_split){1, 1, 1 << 20, 1 << 20, 1, 1};
    assert_int_equal(dsc_split_blocks(&s, 1, &e), DSC_EUSAGE);
}

static void grid_words(void **state)
{
    (void)state;
    dsc_error e;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        dsc_option_value text[DSC_MAX_PARAMETERS] = {{0}};
        dsc_buffer words = {0};
        dsc_grid a, b;
        for (size_t o = 0; o < (*d)->option_count; o++)
            text[o].text = (*d)->option[o].initial;
        assert_ok(dsc_grid_words(&words, *d, &dsc_verifier_greedy, text, &e), e);
        if (dsc_grid_init(&a, *d, &dsc_verifier_greedy, text, &e) == DSC_OK) {
            assert_ok(dsc_grid_parse(&b, words.data, &e), e);
            assert_ptr_equal(a.drafter, b.drafter);
            assert_int_equal(a.total, b.total);
            dsc_grid_fini(&a);
            dsc_grid_fini(&b);
        }
        dsc_buffer_fini(&words);
    }
    dsc_option_value list[DSC_MAX_PARAMETERS] = {{0}};
    const dsc_drafter_type *llma = &dsc_drafter_llma;
    for (size_t o = 0; o < llma->option_count; o++)
        list[o].text = strcmp(llma->option[o].name, "num-speculative-tokens")
                           ? llma->option[o].initial
                           : "2 %4";
    dsc_buffer words = {0};
    dsc_grid g;
    assert_ok(dsc_grid_words(&words, llma, &dsc_verifier_greedy, list, &e), e);
    assert_non_null(strstr(words.data, " num-speculative-tokens=2%20%254 "));
    assert_int_equal(dsc_grid_parse(&g, words.data, &e), DSC_EUSAGE);
    assert_non_null(strstr(e.message, "'2 %4'"));
    dsc_buffer_fini(&words);
    static const char *const bad[] = {
        "",
        "method=llma",
        "method=nothing num-speculative-tokens=1",
        "method=none num-speculative-tokens=1",
        "num-speculative-tokens=1 method=llma",
        "method=draft-model num-speculative-tokens=4 num-speculative-tokens=5",
        "method=draft-model num-speculative-tokens=4%",
        "method=draft-model num-speculative-tokens=%zz",
        "method=draft-model num-speculative-tokens=%00",
        "method=chain length",
        "method=draft-model num-speculative-tokens=-1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(dsc_grid_parse(&g, bad[i], &e) < 0);
}

// --- tables ------------------------------------------------------------------------------------

typedef struct table_fixture {
    char path[64];
    dsc_split split;
    dsc_cell_range cell;
} table_fixture;

// A table of 3 configurations on 5 requests, in one cell.
static void write_table(table_fixture *x)
{
    dsc_error e;
    dsc_table t = {0};
    char text[DSC_SPLIT_TEXT];
    int64_t histogram[] = {7, 0, 2, 0}, width[] = {0, 9, 0}, parallel_steps[] = {1, 0, 0, 5};
    x->split = (dsc_split){1, 1, 3, 5, 3, 5};
    x->cell = (dsc_cell_range){0, 3, 0, 5};
    snprintf(x->path, sizeof x->path, "/tmp/test_split.%ld", (long)getpid());
    dsc_split_text(&x->split, text);
    assert_ok(dsc_table_comment(&t, "seed", "5", &e), e);
    assert_ok(dsc_table_comment(&t, "rule", "rejection", &e), e);
    assert_ok(dsc_table_comment(&t, "split", text, &e), e);
    assert_ok(dsc_shard_columns(&t, &e), e);
    for (int64_t c = 0; c < 3; c++) {
        dsc_counts n = {.requests = 5,
                        .target_calls = 9 + c,
                        .draft_call_tokens = 4,
                        .histogram = histogram,
                        .histogram_length = c == 2 ? 4 : 1,
                        .width = c ? width : NULL,
                        .width_length = c ? 3 : 0,
                        .parallel_steps = c == 1 ? parallel_steps : NULL,
                        .parallel_length = c == 1 ? 2 : 0};
        assert_ok(dsc_shard_row(&t, c, 0, 0, &n, &e), e);
    }
    FILE *f = fopen(x->path, "wb");
    assert_non_null(f);
    dsc_table_write_tsv_head(&t, f);
    for (size_t r = 0; r < 3; r++)
        dsc_table_write_tsv_row(&t, r, f);
    assert_int_equal(fclose(f), 0);
    dsc_table_fini(&t);
}

// Doubles come back as they were; a second block of one configuration cannot be added.
static void expectations(void **state)
{
    (void)state;
    dsc_error e;
    dsc_table t = {0};
    dsc_shard_reader r;
    dsc_sums sums;
    bool whole;
    char path[64], text[DSC_SPLIT_TEXT];
    int64_t zeros[3] = {0};
    double histogram[] = {1. / 3, 0, 1e-300};
    dsc_expected x = {.target_calls = 0.1, .target_call_tokens = 7. / 9, .histogram = histogram};
    dsc_counts n = {.requests = 5, .histogram = zeros, .histogram_length = 3, .expected = &x};
    const dsc_split split = {1, 1, 1, 5, 1, 5};
    const dsc_cell_range cell = {0, 1, 0, 5};
    dsc_split_text(&split, text);
    assert_ok(dsc_table_comment(&t, "split", text, &e), e);
    assert_ok(dsc_shard_columns(&t, &e), e);
    assert_ok(dsc_shard_row(&t, 0, 0, 0, &n, &e), e);
    snprintf(path, sizeof path, "/tmp/test_split.expected.%ld", (long)getpid());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    dsc_table_write_tsv_head(&t, f);
    dsc_table_write_tsv_row(&t, 0, f);
    assert_int_equal(fclose(f), 0);
    dsc_table_fini(&t);
    assert_ok(dsc_sums_init(&sums, 1, 0, &e), e);
    assert_ok(dsc_shard_reader_open(&r, path, &e), e);
    assert_ok(dsc_shard_reader_cell(&r, &cell, 0, &sums, &whole, &e), e);
    assert_true(whole && dsc_shard_reader_ended(&r));
    dsc_shard_reader_close(&r);
    const dsc_expected *sum = sums.counts[0].expected;
    assert_int_equal(sums.counts[0].requests, 5);
    assert_true(sum->target_calls == 0.1 && sum->target_call_tokens == 7. / 9);
    assert_true(sums.counts[0].histogram_length >= 3);
    assert_memory_equal(sum->histogram, histogram, sizeof histogram);
    assert_ok(dsc_shard_reader_open(&r, path, &e), e);
    assert_int_equal(dsc_shard_reader_cell(&r, &cell, 0, &sums, &whole, &e), DSC_EINPUT);
    assert_non_null(strstr(e.message, "two blocks"));
    dsc_shard_reader_close(&r);
    dsc_sums_fini(&sums);
    unlink(path);
}

static void tables(void **state)
{
    (void)state;
    table_fixture x;
    dsc_error e;
    dsc_shard_reader r;
    dsc_sums sums;
    bool whole;
    write_table(&x);
    assert_ok(dsc_sums_init(&sums, 3, 0, &e), e);
    for (int twice = 0; twice < 2; twice++) {
        assert_ok(dsc_shard_reader_open(&r, x.path, &e), e);
        assert_string_equal(dsc_table_get_comment(&r.head, "rule"), "rejection");
        assert_memory_equal(&r.split, &x.split, sizeof x.split);
        assert_int_equal(r.head.comments, 2);
        assert_ok(dsc_shard_reader_cell(&r, &x.cell, 0, &sums, &whole, &e), e);
        assert_true(whole && dsc_shard_reader_ended(&r));
        dsc_shard_reader_close(&r);
    }
    for (int c = 0; c < 3; c++) {
        const dsc_counts *n = &sums.counts[c];
        assert_int_equal(n->requests, 10);
        assert_int_equal(n->target_calls, 2 * (9 + c));
        assert_int_equal(n->draft_call_tokens, 8);
        assert_int_equal(n->histogram[0], 14);
        assert_true(c < 2 || n->histogram[2] == 4);
        assert_true(c ? n->width[1] == 18 : !n->width);
        assert_true(c == 1 ? n->parallel_length == 2 && n->parallel_steps[3] == 10
                           : !n->parallel_steps);
    }
    dsc_sums_fini(&sums);
    unlink(x.path);
}

// Cut anywhere, a table is refused or unfinished; only whole it is whole.
static void tables_cut(void **state)
{
    (void)state;
    table_fixture x;
    dsc_error e;
    char text[4096];
    write_table(&x);
    FILE *f = fopen(x.path, "rb");
    size_t length = fread(text, 1, sizeof text, f);
    fclose(f);
    for (size_t n = 0; n <= length; n++) {
        dsc_shard_reader r;
        bool whole = false;
        put_file(x.path, text, n);
        int rc = dsc_shard_reader_open(&r, x.path, &e);
        if (!rc)
            rc = dsc_shard_reader_cell(&r, &x.cell, 0, NULL, &whole, &e);
        assert_true(rc == DSC_OK || (rc == DSC_EINPUT && !whole));
        assert_int_equal(whole, n == length);
        dsc_shard_reader_close(&r);
    }
    unlink(x.path);
}

static void tables_refused(void **state)
{
    (void)state;
    table_fixture x;
    dsc_error e;
    char text[4096], changed[4096];
    write_table(&x);
    FILE *f = fopen(x.path, "rb");
    size_t length = fread(text, 1, sizeof text - 1, f);
    text[length] = '\0';
    fclose(f);
    const char *rows = strstr(text, "\texpected\n") + strlen("\texpected\n");
    size_t head = (size_t)(rows - text);
    char zeros[2 * DSC_COUNTS_TOTALS + 1] = "";
    for (size_t i = 1; i < DSC_COUNTS_TOTALS; i++)
        strcat(zeros, ";0");
    // Before and behind the totals; an empty end: the whole line.
    static const char *const bad[][2] = {
        {"1\t0\t5", "\t7\t\t\t"},   // another configuration
        {"0\t5\t5", "\t7\t\t\t"},   // another block
        {"0\t0\t4", "\t7\t\t\t"},   // counts of fewer requests
        {"0\t0\t5;0", "\t7\t\t\t"}, // a total too many
        {"0\t0\t5\t7\t\t\t", ""},   // too few
        {"0\t0\t5", "\t-7\t\t\t"},
        {"0\t0\t5", "\t99999999999999999999\t\t\t"},
        {"0\t0\t5", "\t7;\t\t\t"},
        {"0\t0\t5", "\t7\t\t"},
        {"0\t0\t5", "\t7\t\t1;2;3\t"}, // not a square
        {"0\t0\t5", "\t7\t\t\t1;2"},   // too few for expectations of one length
        {"0\t0\t5", "\t7\t\t\t0;0;0;0;0;0;0;nan"},
        {"0\t0\t5", "\t7\t\t\t0;0;0;0;0;0;0;-1"},
        {"0\t0\t5", "\t7\t\t\t\t"},
        {"0\t0\t5", " \t7\t\t"},
        {"\t0\t5", "\t7\t\t\t"},
        {"# seed: 5", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dsc_shard_reader r;
        bool whole;
        snprintf(changed, sizeof changed, "%.*s%s%s%s\n", (int)head, text, bad[i][0],
                 *bad[i][1] ? zeros : "", bad[i][1]);
        put_file(x.path, changed, strlen(changed));
        assert_ok(dsc_shard_reader_open(&r, x.path, &e), e);
        if (dsc_shard_reader_cell(&r, &x.cell, 0, NULL, &whole, &e) != DSC_EINPUT)
            fail_msg("accepted: %s%s", bad[i][0], bad[i][1]);
        assert_non_null(strstr(e.message, x.path));
        dsc_shard_reader_close(&r);
    }
    unlink(x.path);
}

SUITE(split)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deals),       cmocka_unit_test(deal_is_fixed),
        cmocka_unit_test(split_texts), cmocka_unit_test(grid_words),
        cmocka_unit_test(tables),      cmocka_unit_test(expectations),
        cmocka_unit_test(tables_cut),  cmocka_unit_test(tables_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
