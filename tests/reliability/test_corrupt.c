// SPDX-License-Identifier: Apache-2.0
// Changes one to four bytes in every kind of file, 500 times each (with DSC_TEST_ALL set, 2000
// times). The reader reports the error and the file, or returns valid data; it never crashes, hangs
// or takes more than twice the memory. A file with a hash or a checksum is never read with other
// content.
#include "base/table.h"
#include "tests/close.h"
#include "tests/reliability/memory.h"
#include "tests/unit/trace_fixture.h"
#include "traces/files/array.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

#include <math.h>
#include <zlib.h>
#include <zstd.h>

enum { HANG_SECONDS = 600 };
enum { SLACK_KB = 16 << 10 }; // what libraries set up once

static dsc_tokenizer *bytes;
static FILE *nowhere;
static int corruptions = 2000;

// --- samples -----------------------------------------------------------------------------------

// Every group of columns in two requests, one of them empty.
static const char lines[] =
    "{\"id\": \"a\", \"prompt\": {\"text\": \"p\", \"tokens\": [256, 112]}, "
    "\"output\": {\"text\": \"xyz\", \"tokens\": [120, 121, 122]}, "
    "\"references\": [{\"text\": \"doc \\u20ac\", \"kind\": \"document\"}, "
    "{\"text\": \"t\", \"tokens\": [116], \"kind\": \"turn\"}], "
    "\"metadata\": {\"task\": \"qa\", \"x\": [1, 2.5, null]}, "
    "\"logprobs\": [-0.5, -0.25, 0], \"draft_logprobs\": [-1, null, -2], "
    "\"draft_argmax\": [1, 257, 0], \"target_argmax\": [2, 3, 4], "
    "\"draft_entropy\": [0, 1.25, 5], \"target_entropy\": [3.25, 2, 1], "
    "\"draft_ranks\": {\"depth\": 2, \"ranks\": [[0, 1], [256, null], [3, null]]}, "
    "\"statistics\": {\"k\": 2, "
    "\"kseq\": [[[1, 0.5], [2, 0.25]], [[1, 0], [1.5, 0.1]], [[1, 1], [1, 1]]], "
    "\"specinfer\": [[0, 0.5, 1.5], [0, 0, 0], [0, 1, 2]], "
    "\"otm\": [[0.5, 0.5, 0.25, 0.25, 0.5], [1, 0, 0.1, 0.2, 0.7], [0, 1, 0, 0, 1]]}, "
    "\"rollouts\": {\"length\": 1, \"draft\": [[5], [6], [7]], "
    "\"target\": [[5, 8], [7, 9], [1, 2]]}, "
    "\"candidates\": {\"steps\": 1, \"topk\": 2, \"nodes\": 2, "
    "\"token\": [[5, 6], [7, 8], [9, 0]], \"parent\": [[0, 0], [0, 1], [0, null]], "
    "\"logp\": [[-1, -2], [-0.5, -0.5], [0, null]], \"scored\": [[1], [2], [0]]}, "
    "\"marginals\": {\"offsets\": 1, \"top\": 2, \"token\": [[[5, 6]], [[7, 8]], [[9, 1]]], "
    "\"logp\": [[[-1, -2]], [[0, null]], [[-1, -1]]], \"logp_y\": [[-1], [null], [0]]}, "
    "\"steps\": {\"aligned\": true, \"accepted\": [1, 0], \"drafted\": [3, 2], "
    "\"draft_s\": [0.25, 0], \"verify_s\": [1e-3, 2]}, "
    "\"accept\": {\"z\": {\"cap\": 4, \"accepted\": [4, 1, 0]}}, "
    "\"draft_rows\": [[[7, -0.105], [9, -2.813]], [[2, 0]], [[3, -0.6931472], -0.6931472]], "
    "\"target_rows\": [[[7, -0.105], -2.3053], [[2, 0], null], [[120, 0]]]}\n"
    "{\"id\": \"b\", \"prompt\": \"\", \"output\": {\"text\": \"\", \"tokens\": []}, "
    "\"logprobs\": [], \"draft_logprobs\": [], \"draft_argmax\": [], \"target_argmax\": [], "
    "\"draft_entropy\": [], \"target_entropy\": [], "
    "\"draft_ranks\": {\"depth\": 2, \"ranks\": []}, "
    "\"statistics\": {\"k\": 2, \"kseq\": [], \"specinfer\": [], \"otm\": []}, "
    "\"rollouts\": {\"length\": 1, \"draft\": [], \"target\": []}, "
    "\"candidates\": {\"steps\": 1, \"topk\": 2, \"nodes\": 2, \"token\": [], \"parent\": [], "
    "\"logp\": [], \"scored\": []}, "
    "\"marginals\": {\"offsets\": 1, \"top\": 2, \"token\": [], \"logp\": [], \"logp_y\": []}, "
    "\"steps\": {\"aligned\": true, \"accepted\": [], \"drafted\": [], \"draft_s\": [], "
    "\"verify_s\": []}, \"accept\": {\"z\": {\"cap\": 4, \"accepted\": []}}, "
    "\"draft_rows\": [], \"target_rows\": []}\n";

static const char table_tsv[] = "# version: 1\n# column n: how many\nname\tn\tx\taccept_histogram\n"
                                "first\t1\t0.5\t3;2;1\nsecond\t-7\tnan\t4\nthird\t12\t1e-3\t0;9\n";
static const char table_jsonl[] =
    "{\"#\": {\"version\": \"1\"}}\n"
    "{\"name\": \"first\", \"n\": 1, \"x\": 0.5, \"accept_histogram\": [3, 2, 1]}\n"
    "{\"name\": \"second\", \"n\": -7, \"x\": null, \"accept_histogram\": []}\n";
static const char rows_csv[] = "p0,p1,p2\n# two rows\n0.5,.25,2.5e-1\n1,0,nan\n0.1,0.2,0.7\n";

// --- readers, by path --------------------------------------------------------------------------

// Imports; the trace that comes of it is sound. *hash (may be NULL) names it.
static int import_lines(const char *path, char hash[DSC_SHA256_HEX], dsc_error *err)
{
    const dsc_import_options options = {.format = "jsonl", .force = true};
    int rc = dsc_import(&path, 1, bytes, in_scratch("out.dst"), &options, NULL, err);
    assert_false(exists("out.dst.tmp"));
    if (rc)
        return rc;
    dsc_trace *t;
    dsc_error bad = {0};
    expect_ok(dsc_trace_open(&t, in_scratch("out.dst"), &bad), &bad);
    expect_ok(dsc_trace_verify(t, &bad), &bad);
    if (hash)
        memcpy(hash, dsc_trace_get_info(t)->hash, DSC_SHA256_HEX);
    dsc_trace_close(t);
    return DSC_OK;
}

static int use_lines(const char *path, dsc_error *err)
{
    return import_lines(path, NULL, err);
}

static char sound_hash[DSC_SHA256_HEX]; // of the trace that `lines` give

// An archive is checked by sums of its own: what comes out is what went in.
static int use_archive(const char *path, dsc_error *err)
{
    char hash[DSC_SHA256_HEX];
    int rc = import_lines(path, hash, err);
    if (!rc)
        assert_string_equal(hash, sound_hash);
    return rc;
}

static json_t *sound_manifest;
static char *sound_shard;
static size_t sound_bytes;

// Read without verification, whatever can be: no crash. Then verified: nothing has changed.
static int use_trace(const char *path, dsc_error *err)
{
    (void)path;
    dsc_trace *t;
    dsc_error unused = {0};
    int rc = dsc_trace_open(&t, in_scratch("a.dst"), err);
    if (rc)
        return rc;
    dsc_trace_export(t, "jsonl", nowhere, &unused);
    rc = dsc_trace_verify(t, err);
    dsc_trace_close(t);
    if (rc)
        return rc;
    size_t n;
    char *shard = get_file(in_scratch(FIRST_SHARD), &n);
    json_t *manifest = json_load_file(in_scratch("a.dst/manifest.json"), 0, NULL);
    assert_true(json_equal(manifest, sound_manifest));
    assert_true(n == sound_bytes && memcmp(shard, sound_shard, n) == 0);
    json_decref(manifest);
    free(shard);
    return DSC_OK;
}

static int use_array(const char *path, dsc_error *err)
{
    enum { MOST = 64 }; // the sample has 12 numbers in 128 bytes: no reading makes it more
    double row[MOST];
    dsc_array *a;
    int rc = dsc_array_open(&a, path, err);
    if (rc)
        return rc;
    int64_t rows = dsc_array_rows(a), columns = dsc_array_columns(a);
    assert_true(rows >= 1 && columns >= 1 && rows * columns <= MOST);
    for (int64_t i = 0; i < rows && !rc; i++)
        rc = dsc_array_row(a, i, row, err);
    dsc_array_close(a);
    return rc;
}

static int use_tokenizer(const char *path, dsc_error *err)
{
    static const char text[] =
        "the cat\n sat <s>\xc3\xa9 12  \xe2\x82\xac\xf0\x9f\x98\x80</s> it's";
    dsc_tokenizer *t;
    int rc = dsc_tokenizer_load(&t, path, err);
    if (rc)
        return rc;
    dsc_encoder *e;
    dsc_tokens tokens = {0};
    dsc_buffer out = {0};
    dsc_error bad = {0};
    expect_ok(dsc_encoder_new(&e, t, &bad), &bad);
    expect_ok(dsc_encode(e, text, sizeof text - 1, true, &tokens, &bad), &bad);
    for (size_t i = 0; i < tokens.count; i++)
        assert_in_range(tokens.id[i], 0, dsc_tokenizer_vocab_size(t) - 1);
    expect_ok(dsc_decode(t, tokens.id, tokens.count, false, &out, &bad), &bad);
    dsc_buffer_fini(&out);
    dsc_tokens_fini(&tokens);
    dsc_encoder_free(e);
    dsc_tokenizer_free(t);
    return DSC_OK;
}

static void write_table(const dsc_table *t)
{
    dsc_table_write_tsv_head(t, nowhere);
    dsc_table_write_jsonl_head(t, nowhere);
    for (size_t i = 0; i < t->rows; i++) {
        dsc_table_write_tsv_row(t, i, nowhere);
        dsc_table_write_jsonl_row(t, i, nowhere);
    }
}

static int use_table(const char *path, dsc_error *err)
{
    dsc_table t;
    int rc = dsc_table_read(&t, path, err);
    if (rc)
        return rc;
    assert_in_range(t.rows, 0, 8);
    write_table(&t);
    dsc_table_fini(&t);
    return DSC_OK;
}

static int use_metrics(const char *path, dsc_error *err)
{
    const char *paths[] = {in_scratch("before.txt"), path};
    const dsc_totals_options options = {0};
    dsc_table t = {0};
    int rc = dsc_totals_import(&t, dsc_totals_find("prometheus"), paths, 2, &options, NULL, err);
    if (!rc)
        write_table(&t);
    dsc_table_fini(&t);
    return rc;
}

// --- the damage --------------------------------------------------------------------------------

// One to four bytes become bytes from elsewhere in the file, so that a text stays one more often.
static void shuffle(char *copy, size_t length, uint64_t *seed)
{
    for (uint64_t n = 1 + draw(seed) % 4; n > 0; n--) {
        size_t to = draw(seed) % length, from = draw(seed) % length;
        copy[to] = copy[from];
    }
}

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

// The file in the scratch folder is sound and is read so; then many times with damage.
static void damage(const char *name, int (*use)(const char *, dsc_error *), uint64_t seed)
{
    size_t n;
    dsc_error err = {0};
    const char *path = strdup(in_scratch(name));
    char *sound = get_file(path, &n), *copy = malloc(n);
    assert_true(copy && path);
    alarm(HANG_SECONDS);
    expect_ok(use(path, &err), &err);
    long peak = peak_kb();
    int refused = 0;
    for (int i = 0; i < corruptions; i++) {
        memcpy(copy, sound, n);
        (i % 2 ? corrupt : shuffle)(copy, n, &seed);
        put_file(path, copy, n);
        err = (dsc_error){0};
        int rc = use(path, &err);
        refused += rc != DSC_OK;
        if (rc && (rc != DSC_EINPUT || err.status != rc || !strstr(err.message, base_name(path))))
            fail_msg("%s, corruption %d: %d '%s'", name, i, rc, err.message);
    }
    alarm(0);
    print_message("%-30s %5zu bytes: %d of %d refused, %ld MB before and %ld MB after\n", name, n,
                  refused, corruptions, peak / 1000, peak_kb() / 1000);
    assert_true(refused > 0);
    if (MEASURED)
        assert_true(peak_kb() <= 2 * peak + SLACK_KB);
    put_file(path, sound, n);
    free(copy);
    free(sound);
    free((char *)(uintptr_t)path);
}

static void damage_text(const char *name, const char *text, int (*use)(const char *, dsc_error *),
                        uint64_t seed)
{
    put_file(in_scratch(name), text, strlen(text));
    damage(name, use, seed);
}

// --- tests -------------------------------------------------------------------------------------

static void native(void **state)
{
    (void)state;
    dsc_error err = {0};
    put_file(in_scratch("in.jsonl"), lines, strlen(lines));
    expect_ok(import_lines(in_scratch("in.jsonl"), NULL, &err), &err);
    assert_int_equal(rename(in_scratch("out.dst"), in_scratch("a.dst")), 0);
    sound_shard = get_file(in_scratch(FIRST_SHARD), &sound_bytes);
    sound_manifest = json_load_file(in_scratch("a.dst/manifest.json"), 0, NULL);
    assert_non_null(sound_manifest);
    damage(FIRST_SHARD, use_trace, 1);
    damage("a.dst/manifest.json", use_trace, 2);
    json_decref(sound_manifest);
    free(sound_shard);
}

static void jsonl(void **state)
{
    (void)state;
    damage_text("in.jsonl", lines, use_lines, 3);
}

static void archives(void **state)
{
    (void)state;
    static char packed[1 << 14];
    dsc_error err = {0};
    put_file(in_scratch("in.jsonl"), lines, strlen(lines));
    expect_ok(import_lines(in_scratch("in.jsonl"), sound_hash, &err), &err);

    gzFile f = gzopen(in_scratch("in.jsonl.gz"), "wb9");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, lines, sizeof lines - 1), sizeof lines - 1);
    assert_int_equal(gzclose(f), Z_OK);
    damage("in.jsonl.gz", use_archive, 4);

    ZSTD_CCtx *z = ZSTD_createCCtx();
    assert_non_null(z);
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(z, packed, sizeof packed, lines, sizeof lines - 1);
    assert_false(ZSTD_isError(n));
    ZSTD_freeCCtx(z);
    put_file(in_scratch("in.jsonl.zst"), packed, n);
    damage("in.jsonl.zst", use_archive, 5);
}

static void arrays(void **state)
{
    (void)state;
    char file[128 + 6 * 8] = "\x93NUMPY\x01\0\x76";
    memset(file + 10, ' ', 118);
    const char *header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    memcpy(file + 10, header, strlen(header));
    file[127] = '\n';
    for (int i = 0; i < 6; i++)
        memcpy(file + 128 + 8 * i, &(double){0.125 * i}, 8);
    put_file(in_scratch("a.npy"), file, sizeof file);
    damage("a.npy", use_array, 6);
    damage_text("a.csv", rows_csv, use_array, 7);
}

// A file of the source tree under another name.
static void fetch(const char *source, const char *name)
{
    char path[400];
    size_t n;
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/%s", top ? top : ".", source);
    char *text = get_file(path, &n);
    put_file(in_scratch(name), text, n);
    free(text);
}

static void byte_level(void **state)
{
    (void)state;
    fetch("tests/data/tokenizers/llama3-style.json", "tokenizer.json");
    damage("tokenizer.json", use_tokenizer, 8);
}

static void sentencepiece(void **state)
{
    (void)state;
    fetch("tests/data/tokenizers/mistral-style.json", "tokenizer.json");
    damage("tokenizer.json", use_tokenizer, 9);
}

static void tables(void **state)
{
    (void)state;
    damage_text("a.tsv", table_tsv, use_table, 10);
    damage_text("a.jsonl", table_jsonl, use_table, 11);
}

static void prometheus(void **state)
{
    (void)state;
    fetch("tests/data/import/prometheus_before.txt", "before.txt");
    fetch("tests/data/import/prometheus_after.txt", "after.txt");
    damage("after.txt", use_metrics, 12);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(corrupt)
{
    const struct CMUnitTest tests[] = {
        TEST(native),     TEST(jsonl),         TEST(archives), TEST(arrays),
        TEST(byte_level), TEST(sentencepiece), TEST(tables),   TEST(prometheus),
    };
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); // thousands of small files, synced
    corruptions = few_or_many(500, corruptions);
    nowhere = fopen("/dev/null", "w");
    if (!nowhere || dsc_tokenizer_load(&bytes, "bytes", NULL))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dsc_tokenizer_free(bytes);
    fclose(nowhere);
    return rc;
}
