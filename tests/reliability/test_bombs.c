// SPDX-License-Identifier: Apache-2.0
// Files made to eat memory or time are refused before they do: archives that expand without end,
// brackets without end, lines without end, headers that declare more than there is, tokenizers that
// lengthen a text at every step. Each is read
// in a child of its own, whose memory is measured.
#include "base/table.h"
#include "sim/model/corpus.h"
#include "tests/reliability/memory.h"
#include "tests/unit/trace_fixture.h"
#include "traces/files/array.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

#include <sys/wait.h>
#include <time.h>
#include <zlib.h>

enum { MOST_KB = 200 * 1000, HANG_SECONDS = 600, BRACKETS = 5000000 };
#define GIGABYTE 1000000000LL

// --- readers, by path --------------------------------------------------------------------------

static dsc_tokenizer *bytes;

static int import_as(const char *format, const char *path, dsc_error *err)
{
    const dsc_import_options options = {.format = format, .force = true};
    return dsc_import(&path, 1, bytes, in_scratch("out.dst"), &options, NULL, err);
}

static int read_jsonl(const char *path, dsc_error *err)
{
    return import_as("jsonl", path, err);
}

static int read_any(const char *path, dsc_error *err)
{
    return import_as(NULL, path, err);
}

static int read_answers(const char *path, dsc_error *err)
{
    return import_as("specbench", path, err);
}

static int read_list(const char *path, dsc_error *err)
{
    return import_as("alpaca", path, err);
}

static int read_totals(const char *path, dsc_error *err)
{
    const dsc_totals_options options = {0};
    const dsc_totals_driver *driver =
        dsc_totals_find(strstr(path, "prom") ? "prometheus" : "sglang");
    dsc_table t = {0};
    int rc = dsc_totals_import(&t, driver, &path, 1, &options, NULL, err);
    dsc_table_fini(&t);
    return rc;
}

static int probe_totals(const char *path, dsc_error *err)
{
    const dsc_totals_driver *driver = NULL;
    int rc = dsc_totals_probe(&driver, path, err);
    if (!rc && !driver)
        rc = dsc_fail(err, DSC_EINPUT, "%s: none of these formats", path);
    return rc;
}

static int read_corpus(const char *path, dsc_error *err)
{
    dsc_corpus c = {0};
    int rc = dsc_corpus_read(&c, path, bytes, err);
    dsc_corpus_fini(&c);
    return rc;
}

static int read_tokenizer(const char *path, dsc_error *err)
{
    dsc_tokenizer *t;
    int rc = dsc_tokenizer_load(&t, path, err);
    dsc_tokenizer_free(t);
    return rc;
}

enum { TEXT_LENGTH = 1000 * 1000 };
static char text[TEXT_LENGTH];
static size_t text_length;

// Encodes the text with the tokenizer, and decodes its tokens.
static int encode_text(const char *path, dsc_error *err)
{
    dsc_tokenizer *t = NULL;
    dsc_encoder *e = NULL;
    dsc_tokens tokens = {0};
    dsc_buffer back = {0};
    int rc = dsc_tokenizer_load(&t, path, err);
    if (!rc)
        rc = dsc_encoder_new(&e, t, err);
    if (!rc)
        rc = dsc_encode(e, text, text_length, false, &tokens, err);
    if (!rc)
        rc = dsc_decode(t, tokens.id, tokens.count, false, &back, err);
    dsc_buffer_fini(&back);
    dsc_tokens_fini(&tokens);
    dsc_encoder_free(e);
    dsc_tokenizer_free(t);
    return rc;
}

static int read_safetensors(const char *path, dsc_error *err)
{
    dsc_safetensors *s;
    int rc = dsc_safetensors_open(&s, path, err);
    dsc_safetensors_close(s);
    return rc;
}

static int read_array(const char *path, dsc_error *err)
{
    dsc_array *a;
    int rc = dsc_array_open(&a, path, err);
    dsc_array_close(a);
    return rc;
}

static int read_table(const char *path, dsc_error *err)
{
    dsc_table t = {0};
    int rc = dsc_table_read(&t, path, err);
    dsc_table_fini(&t);
    return rc;
}

static int read_manifest(const char *path, dsc_error *err)
{
    dsc_trace *t;
    (void)path;
    int rc = dsc_trace_open(&t, in_scratch("b.dst"), err);
    dsc_trace_close(t);
    return rc;
}

// --- measuring ---------------------------------------------------------------------------------

typedef struct outcome {
    int rc;
    long peak_kb;
    double seconds;
    char message[sizeof((dsc_error *)NULL)->message];
} outcome;

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static outcome run_child(int (*use)(const char *, dsc_error *), const char *path)
{
    outcome o = {0};
    int fd[2], status;
    assert_int_equal(pipe(fd), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dsc_error err = {0};
        alarm(HANG_SECONDS);
        double start = cpu_seconds();
        o.rc = use(path, &err);
        o.seconds = cpu_seconds() - start;
        o.peak_kb = peak_kb();
        memcpy(o.message, err.message, sizeof o.message);
        _exit(write(fd[1], &o, sizeof o) != (ssize_t)sizeof o);
    }
    close(fd[1]);
    ssize_t n = read(fd[0], &o, sizeof o);
    close(fd[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status || n != (ssize_t)sizeof o)
        fail_msg("%s: the reader ended with status %d", path, status);
    return o;
}

// The file is refused with `word` in the message, and in little memory.
static void refuse(int (*use)(const char *, dsc_error *), const char *name, const char *word)
{
    const char *path = in_scratch(name);
    outcome o = run_child(use, path);
    print_message("%-22s %6.2f s %5ld MB  %.90s\n", name, o.seconds, o.peak_kb / 1000,
                  strstr(o.message, name) ? strstr(o.message, name) : o.message);
    if (o.rc != DSC_EINPUT || !strstr(o.message, word) || !strstr(o.message, name))
        fail_msg("got %d '%s', expected %d, '%s' and '%s'", o.rc, o.message, DSC_EINPUT, name,
                 word);
    if (MEASURED && o.peak_kb >= MOST_KB)
        fail_msg("%s took %ld MB", name, o.peak_kb / 1000);
    assert_false(exists("out.dst") || exists("out.dst.tmp"));
}

// --- archives ----------------------------------------------------------------------------------

enum { ZSTD_BLOCK = 1 << 17 };

// A block header (RFC 8878, 3.1.1.2): type 0 raw, 1 one byte repeated.
static void put_block(FILE *f, bool last, unsigned type, unsigned size)
{
    unsigned h = size << 3 | type << 1 | last;
    putc((int)(h & 255), f);
    putc((int)(h >> 8 & 255), f);
    putc((int)(h >> 16), f);
}

// One frame: `head`, then `total` bytes `c` in repeated blocks, before each of them `raw` bytes as
// they are (which keeps the ratio down), then the end.
static void put_zstd(const char *name, const char *head, int c, int64_t total, unsigned raw)
{
    FILE *f = fopen(in_scratch(name), "wb");
    assert_non_null(f);
    fwrite("\x28\xb5\x2f\xfd\0\x38", 1, 6, f); // no size, no checksum, a window of 128 KiB
    put_block(f, false, 0, (unsigned)strlen(head));
    fputs(head, f);
    for (int64_t done = 0; done < total; done += ZSTD_BLOCK + raw) {
        if (raw)
            put_block(f, false, 0, raw);
        for (unsigned i = 0; i < raw; i++)
            putc('a' + (int)(i % 26), f);
        put_block(f, false, 1, ZSTD_BLOCK);
        putc(c, f);
    }
    put_block(f, true, 0, 0);
    assert_int_equal(fclose(f), 0);
}

// `total` bytes `c` behind `head`: one piece that ends on a byte, again and again.
static void put_gzip(const char *name, const char *head, int c, int64_t total)
{
    enum { PIECE = 1 << 20 };
    static uint8_t plain[PIECE], packed[1 << 16];
    z_stream z = {0};
    FILE *f = fopen(in_scratch(name), "wb");
    assert_non_null(f);
    memset(plain, c, sizeof plain);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = packed;
    z.avail_out = sizeof packed;
    z.next_in = (Bytef *)(uintptr_t)head;
    z.avail_in = (uInt)strlen(head);
    assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
    fwrite(packed, 1, sizeof packed - z.avail_out, f);
    z.next_in = plain;
    z.avail_in = PIECE;
    z.next_out = packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
    for (int64_t done = 0; done < total; done += PIECE)
        fwrite(packed, 1, sizeof packed - z.avail_out, f);
    deflateEnd(&z);
    assert_int_equal(fclose(f), 0);
}

static void zeros_in_archives(void **state)
{
    (void)state;
    put_zstd("zeros.zst", "", 0, 10 * GIGABYTE, 0);
    put_gzip("zeros.gz", "", 0, 10 * GIGABYTE);
    put_gzip("prom.gz", "", '\n', 10 * GIGABYTE);
    put_zstd("blanks.zst", "", '\n', 10 * GIGABYTE, 0);
    refuse(read_jsonl, "zeros.zst", "decompression bomb");
    refuse(read_any, "zeros.zst", "decompression bomb");
    refuse(read_list, "zeros.zst", "decompression bomb");
    refuse(read_corpus, "zeros.zst", "decompression bomb");
    refuse(read_answers, "zeros.gz", "decompression bomb");
    refuse(probe_totals, "zeros.gz", "none of these formats");
    refuse(read_totals, "prom.gz", "decompression bomb");
    refuse(read_jsonl, "blanks.zst", "decompression bomb");
}

// Such a line is longer than what is read, whether the archive expands too far or not.
static void line_of_4_gb(void **state)
{
    (void)state;
    put_zstd("string.zst", "{\"prompt\": \"", 'x', 4 * GIGABYTE, 0);
    put_gzip("string.gz", "{\"prompt\": \"", 'x', 4 * GIGABYTE);
    put_zstd("slow.zst", "{\"prompt\": \"", 'x', 4 * GIGABYTE, 200); // 630 to 1
    put_zstd("slow-list.zst", "[{\"output\": \"", 'x', 4 * GIGABYTE, 200);
    put_zstd("slow-prom.zst", "a_total{b=\"", 'x', 4 * GIGABYTE, 200);
    refuse(read_jsonl, "string.zst", "decompression bomb");
    refuse(read_jsonl, "string.gz", "decompression bomb");
    refuse(read_jsonl, "slow.zst", "longer than the limit");
    refuse(read_answers, "slow.zst", "longer than the limit");
    refuse(read_list, "slow-list.zst", "longer than the limit");
    refuse(read_corpus, "slow.zst", "longer than the limit");
    refuse(read_totals, "slow-prom.zst", "longer than the limit");
}

// --- brackets ----------------------------------------------------------------------------------

static void put_nested(const char *name, const char *head, const char *open, const char *tail)
{
    FILE *f = fopen(in_scratch(name), "wb");
    assert_non_null(f);
    fputs(head, f);
    for (int i = 0; i < BRACKETS; i++)
        fputs(open, f);
    fputs(tail, f);
    assert_int_equal(fclose(f), 0);
}

static void nested_brackets(void **state)
{
    (void)state;
    put_nested("n.jsonl", "", "[", "\n");
    put_nested("o.jsonl", "", "{\"a\":", "\n");
    put_nested("m.jsonl", "{\"prompt\": \"p\", \"output\": \"o\", \"metadata\": {\"a\": ", "[",
               "}}\n");
    put_nested("lines.json", "[\n", "[\n", "\n");
    put_nested("tokenizer.json", "{\"model\": ", "[", "}");
    put_nested("table", "{\"a\": ", "[", "}");
    refuse(read_jsonl, "n.jsonl", "n.jsonl:1:");
    refuse(read_any, "n.jsonl", "n.jsonl:1:");
    refuse(read_list, "n.jsonl", "n.jsonl:1:");
    refuse(read_totals, "n.jsonl", "n.jsonl:1:");
    refuse(read_jsonl, "o.jsonl", "o.jsonl:1:");
    refuse(read_corpus, "o.jsonl", "o.jsonl:1:");
    refuse(read_jsonl, "m.jsonl", "m.jsonl:1:");
    refuse(read_list, "lines.json", "lines.json:");
    refuse(read_tokenizer, "tokenizer.json", "depth");
    refuse(read_table, "table", "table:1");

    assert_int_equal(mkdir(in_scratch("b.dst"), 0700), 0);
    put_nested("b.dst/manifest.json", "{\"schema\": ", "[", "}");
    refuse(read_manifest, "b.dst/manifest.json", "depth");

    static const char head[] = "{\"a\":";
    uint64_t length = sizeof head - 1 + BRACKETS;
    char start[8 + sizeof head];
    memcpy(start, &length, 8);
    memcpy(start + 8, head, sizeof head);
    put_nested("n.safetensors", "", "[", "");
    FILE *f = fopen(in_scratch("n.safetensors"), "r+b");
    assert_non_null(f);
    assert_int_equal(fwrite(start, 1, sizeof start - 1, f), sizeof start - 1);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    fputs("[[[[[[[[[[[[[", f);
    assert_int_equal(fclose(f), 0);
    refuse(read_safetensors, "n.safetensors", "depth");
}

// --- declarations ------------------------------------------------------------------------------

static void put_safetensors(const char *header)
{
    char file[512];
    uint64_t length = strlen(header);
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    put_file(in_scratch("huge.safetensors"), file, 8 + length);
}

static void declared_2_to_60(void **state)
{
    (void)state;
#define HUGE "1152921504606846976"
    put_safetensors("{\"a\":{\"dtype\":\"U8\",\"shape\":[" HUGE "],\"data_offsets\":[0," HUGE
                    "]}}");
    refuse(read_safetensors, "huge.safetensors", "tensor 'a'");
    put_safetensors("{\"a\":{\"dtype\":\"F64\",\"shape\":[" HUGE "],\"data_offsets\":[0,0]}}");
    refuse(read_safetensors, "huge.safetensors", "tensor 'a'");
    put_safetensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[" HUGE "," HUGE
                    ",0],\"data_offsets\":[0,0]}}");
    refuse(read_safetensors, "huge.safetensors", "tensor 'a'");
    put_file(in_scratch("huge.safetensors"), "\0\0\0\0\0\0\0\x10{}", 10);
    refuse(read_safetensors, "huge.safetensors", "header of " HUGE " bytes");

    static const char *const shapes[] = {HUGE ",", "1, " HUGE, HUGE ", " HUGE,
                                         "9223372036854775807,"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char file[300] = "\x93NUMPY\x01\0";
        int n = snprintf(file + 10, sizeof file - 10,
                         "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }\n", shapes[i]);
        file[8] = (char)n;
        put_file(in_scratch("huge.npy"), file, 10 + (size_t)n);
        refuse(read_array, "huge.npy", "huge.npy");
    }
    put_file(in_scratch("huge.npy"), "\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14);
    refuse(read_array, "huge.npy", "header of 4294967295 bytes");
}

// A file with holes takes no room on disk.
static void files_of_4_gb(void **state)
{
    (void)state;
    static const struct {
        const char *name, *word;
        int (*use)(const char *, dsc_error *);
    } cases[] = {
        {"sparse.jsonl", "longer than the limit", read_jsonl},
        {"sparse.json", "longer than the limit", read_tokenizer},
        {"sparse.tsv", "longer than the limit", read_table},
        {"b.dst/manifest.json", "longer than the limit", read_manifest},
        {"sparse.safetensors", "header", read_safetensors},
        {"sparse.npy", "not a .npy file", read_array},
    };
    assert_int_equal(mkdir(in_scratch("b.dst"), 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(in_scratch(cases[i].name), "", 0);
        assert_int_equal(truncate(in_scratch(cases[i].name), 4 * GIGABYTE), 0);
        refuse(cases[i].use, cases[i].name, cases[i].word);
    }
}

// --- tokenizers --------------------------------------------------------------------------------

static void add_times(dsc_buffer *b, const char *part, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(dsc_buffer_puts(b, part, NULL), DSC_OK);
}

// Writes tokenizer.json: `before`, then `part` as often as `times`, then `after` and a model whose
// tokens are a, b and the two bytes of e with acute accent in the alphabet of ByteLevel.
static void put_tokenizer(const char *before, const char *part, int times, const char *after)
{
    dsc_buffer b = {0};
    add_times(&b, before, 1);
    add_times(&b, part, times);
    add_times(&b, after, 1);
    add_times(&b,
              "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\u00c3\":2,"
              "\"\u00a9\":3},\"merges\":[]}}",
              1);
    put_file(in_scratch("tokenizer.json"), b.data, b.length);
    dsc_buffer_fini(&b);
}

#define DOUBLE "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"},"
#define NOTHING "{\"type\":\"Replace\",\"pattern\":{\"String\":\"?\"},\"content\":\"?\"}]},"
#define EACH                                                                                       \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\".\"},\"behavior\":\"Isolated\","                 \
    "\"invert\":false}"
#define MARK(c) "{\"type\":\"Metaspace\",\"replacement\":\"" c "\",\"prepend_scheme\":\"always\"}"
#define SPELL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define ADDED(content) "\"added_tokens\":[{\"id\":4,\"content\":\"" content
#define FLAGS                                                                                      \
    "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"             \
    "\"special\":true}],"

// Steps that each may be reasonable, and together or with that text are not. Each would end at a
// multiple of the memory or after hours, not after a second.
static void steps_that_grow(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part, *after, *word;
        int times;
    } cases[] = {
        {"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[", DOUBLE, NOTHING,
         "normalizer[6] (Replace)", 40},
        {"{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[", DOUBLE, NOTHING,
         "decoder[6] (Replace)", 40},
        {"{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x*\"},\"content\":\"",
         "ab", "\"},", "normalizer (Replace)", 50 * 1000},
        {"{" ADDED("|" FLAGS) "\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"", "????", "\"},",
         "normalizer (Prepend)", 100 * 1000},
        {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[", SPELL ",", SPELL "]},",
         "(ByteLevel)", 40},
        {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[",
         EACH "," MARK("_") "," EACH "," MARK("-") ",", EACH "]},", "(Metaspace)", 12},
        {"{" ADDED(""), "aaaa", "?" FLAGS, "added token 4 has 400001 bytes; at most 1024",
         100 * 1000},
        {"{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":"
         "\"A\"}},"
         "{\"SpecialToken\":{\"id\":\"x\"}}],\"special_tokens\":{\"x\":{\"ids\":[0",
         ",1", "]}}},", "more than 1024 tokens", 100 * 1000},
    };
    text_length = sizeof text / 10;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(text, 'a', sizeof text);
        for (size_t k = 0; strstr(cases[i].before, "\"|\"") && k < sizeof text; k += 2)
            text[k] = '|';
        for (size_t k = 0; strcmp(cases[i].word, "(ByteLevel)") == 0 && k < sizeof text; k += 2)
            memcpy(text + k, "\u00e9", 2);
        put_tokenizer(cases[i].before, cases[i].part, cases[i].times, cases[i].after);
        refuse(encode_text, "tokenizer.json", cases[i].word);
    }
}

// A text of combining marks in the wrong order, which takes minutes to sort by exchanging
// neighbors, and a word of a million letters.
static void texts_of_one_word(void **state)
{
    (void)state;
    text_length = sizeof text;
    for (size_t k = 0; k < sizeof text; k += 2) // marks of class 230, then of class 220
        memcpy(text + k, k < sizeof text / 2 ? "\u0301" : "\u0323", 2);
    for (int i = 0; i < 2; i++) {
        put_tokenizer("{\"normalizer\":{\"type\":\"NFC\"},", "", 0, "");
        outcome o = run_child(encode_text, in_scratch("tokenizer.json"));
        print_message("%.2f s\n", o.seconds);
        assert_int_equal(o.rc, DSC_OK);
        assert_true(o.seconds < 60); // takes a second, also under sanitizers
        memset(text, 'a', sizeof text);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(bombs)
{
    const struct CMUnitTest tests[] = {
        TEST(zeros_in_archives), TEST(line_of_4_gb),  TEST(nested_brackets),
        TEST(declared_2_to_60),  TEST(files_of_4_gb), TEST(steps_that_grow),
        TEST(texts_of_one_word),
    };
    if (dsc_tokenizer_load(&bytes, "bytes", NULL))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    dsc_tokenizer_free(bytes);
    return rc;
}
