// SPDX-License-Identifier: Apache-2.0
// Tests safetensors: a written file is read back, the fields of a hostile or damaged file are
// refused by name, and no file makes the reader crash (run under ASan and UBSan as well).
#include "tests/unit/trace_fixture.h"

#include "traces/files/safetensors.h"

#include <signal.h>
#include <sys/resource.h>

static void put_le64(char *bytes, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(n >> 8 * i);
}

// A file of the given header text and `data` bytes of data.
static const char *make_file(const char *header, size_t data)
{
    const char *path = in_scratch("hand.safetensors");
    size_t n = strlen(header);
    char *bytes = calloc(8 + n + data, 1);
    assert_non_null(bytes);
    put_le64(bytes, n);
    memcpy(bytes + 8, header, n);
    put_file(path, bytes, 8 + n + data);
    free(bytes);
    return path;
}

static int open_and_close(const char *path, dsc_error *err)
{
    dsc_safetensors *s;
    *err = (dsc_error){0};
    int rc = dsc_safetensors_open(&s, path, err);
    if (rc)
        assert_null(s);
    else
        assert_int_equal(err->status, DSC_OK);
    dsc_safetensors_close(s);
    return rc;
}

// --- round trips -------------------------------------------------------------------------------

static void every_type_round_trips(void **state)
{
    (void)state;
    enum { TYPES = DSC_F64 + 1 };
    unsigned char data[TYPES][3 * 8];
    dsc_tensor in[TYPES] = {0};
    uint64_t random = 1;
    for (int t = 0; t < TYPES; t++) {
        for (size_t i = 0; i < sizeof data[t]; i++)
            data[t][i] = (unsigned char)draw(&random);
        in[t] = (dsc_tensor){.name = dsc_dtype_name((dsc_dtype)t),
                             .dtype = (dsc_dtype)t,
                             .rank = 2,
                             .shape = {3, 1},
                             .data = data[t]};
    }
    const char *path = in_scratch("types.safetensors");
    dsc_error err = {0};
    dsc_safetensors *s;
    expect_ok(dsc_safetensors_write(path, in, TYPES, &err), &err);
    expect_ok(dsc_safetensors_open(&s, path, &err), &err);
    assert_int_equal(dsc_safetensors_count(s), TYPES); // the padding does not show
    for (size_t i = 0; i < TYPES; i++) {
        const dsc_tensor *t = dsc_safetensors_at(s, i);
        assert_string_equal(t->name, in[i].name);
        assert_ptr_equal(dsc_safetensors_find(s, in[i].name), t);
        assert_int_equal(t->dtype, in[i].dtype);
        assert_int_equal(t->rank, 2);
        assert_int_equal(t->shape[0], 3);
        assert_int_equal(t->shape[1], 1);
        assert_int_equal(t->count, 3);
        assert_int_equal(t->end - t->begin, 3 * dsc_dtype_bytes(t->dtype));
        assert_int_equal(t->begin % DSC_SAFETENSORS_ALIGN, 0);
        assert_int_equal((uintptr_t)t->data % DSC_SAFETENSORS_ALIGN, 0);
        assert_memory_equal(t->data, data[i], t->end - t->begin);
    }
    assert_null(dsc_safetensors_find(s, "absent"));
    assert_null(dsc_safetensors_at(s, TYPES));
    dsc_safetensors_close(s);
}

static void shapes_round_trip(void **state)
{
    (void)state;
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const dsc_tensor in[] = {
        {.name = "scalar", .dtype = DSC_F32, .rank = 0, .data = x},
        {.name = "empty", .dtype = DSC_I64, .rank = 1, .shape = {0}},
        {.name = "deep", .dtype = DSC_F32, .rank = 8, .shape = {1, 2, 1, 3, 1, 1, 1, 1}, .data = x},
        {.name = "flat", .dtype = DSC_F64, .rank = 3, .shape = {7, 0, 9}},
        {.name = "name \"\\\n é", .dtype = DSC_F32, .rank = 1, .shape = {6}, .data = x},
    };
    const char *path = in_scratch("shapes.safetensors");
    dsc_error err = {0};
    dsc_safetensors *s;
    expect_ok(dsc_safetensors_write(path, in, 5, &err), &err);
    expect_ok(dsc_safetensors_open(&s, path, &err), &err);
    assert_int_equal(dsc_safetensors_count(s), 5);
    for (int i = 0; i < 5; i++) {
        const dsc_tensor *t = dsc_safetensors_find(s, in[i].name);
        assert_non_null(t);
        assert_int_equal(t->rank, in[i].rank);
        assert_memory_equal(t->shape, in[i].shape, sizeof t->shape);
        assert_non_null(t->data);
        assert_int_equal((uintptr_t)t->data % 8, 0);
    }
    assert_int_equal(dsc_safetensors_find(s, "scalar")->count, 1);
    assert_int_equal(dsc_safetensors_find(s, "flat")->count, 0);
    assert_memory_equal(dsc_safetensors_find(s, "deep")->data, x, sizeof x);
    dsc_safetensors_close(s);
}

// The format itself, byte for byte: header padded with spaces to 64, then the data.
static void golden_bytes(void **state)
{
    (void)state;
    static const char header[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
        "\"__pad.0\":{\"dtype\":\"U8\",\"shape\":[62],\"data_offsets\":[2,64]},"
        "\"b\":{\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[64,66]}}";
    char want[192 + 66];
    memset(want, ' ', 192);
    memset(want + 192, 0, 66);
    put_le64(want, 184);
    memcpy(want + 8, header, strlen(header));
    memcpy(want + 192, "\x11\x22", 2);
    memcpy(want + 256, "\x33\x44", 2);
    const uint8_t a[2] = {0x11, 0x22};
    const uint16_t b = 0x4433;
    const dsc_tensor in[] = {{.name = "a", .dtype = DSC_U8, .rank = 1, .shape = {2}, .data = a},
                             {.name = "b", .dtype = DSC_U16, .rank = 1, .shape = {1}, .data = &b}};
    dsc_error err = {0};
    size_t n;
    const char *path = in_scratch("golden.safetensors");
    expect_ok(dsc_safetensors_write(path, in, 2, &err), &err);
    char *have = get_file(path, &n);
    assert_int_equal(n, sizeof want);
    assert_memory_equal(have, want, n);
    free(have);
}

static void no_tensors(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_safetensors *s;
    const char *path = in_scratch("none.safetensors");
    expect_ok(dsc_safetensors_write(path, NULL, 0, &err), &err);
    expect_ok(dsc_safetensors_open(&s, path, &err), &err);
    assert_int_equal(dsc_safetensors_count(s), 0);
    assert_null(dsc_safetensors_find(s, "x"));
    assert_int_equal(dsc_safetensors_bytes(s), 64);
    dsc_safetensors_close(s);
}

// Files of other writers: any order in the JSON, metadata, spaces, empty tensors anywhere, fields
// that we do not know.
static void foreign_files(void **state)
{
    (void)state;
    dsc_error err = {0};
    dsc_safetensors *s;
    const char *path =
        make_file("{ \"b\":{\"data_offsets\":[4,6],\"dtype\":\"I8\",\"shape\":[2],\"more\":1},"
                  "\"__metadata__\":{\"format\":\"pt\"},"
                  "\"z\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[4,4]},"
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]}}  ",
                  6);
    expect_ok(dsc_safetensors_open(&s, path, &err), &err);
    assert_int_equal(dsc_safetensors_count(s), 3);
    assert_string_equal(dsc_safetensors_at(s, 0)->name, "a");
    assert_string_equal(dsc_safetensors_at(s, 1)->name, "z");
    assert_string_equal(dsc_safetensors_at(s, 2)->name, "b");
    dsc_safetensors_close(s);
}

// --- refusals ----------------------------------------------------------------------------------

#define ENTRY(dtype, shape, offsets)                                                               \
    "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct {
    const char *header;
    size_t data; // bytes behind the header
    const char *word;
} hostile[] = {
    {"", 0, "not a JSON object"},
    {"[]", 0, "not a JSON object"},
    {" {}", 0, "not a JSON object"},
    {"{", 0, "JSON"},
    {"{} x", 0, "JSON"},
    {"{}", 1, "but the file has"},
    {"{\"t\":1}", 0, "must be an object"},
    {"{\"t\":{},\"t\":{}}", 0, "duplicate"},
    {"{\"t\\u0000\":{}}", 0, "JSON"},
    {"{\"\xff\":{}}", 0, "JSON"},
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "must be a string"},
    {"{\"t\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype is missing"},
    {"{\"t\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "shape is missing"},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets"},
    {"{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "duplicate"},
    {ENTRY("\"F8_E4M3\"", "[1]", "[0,1]"), 1, "unknown dtype 'F8_E4M3'"},
    {ENTRY("3", "[1]", "[0,1]"), 1, "dtype"},
    {ENTRY("\"U8\"", "1", "[0,1]"), 1, "shape"},
    {ENTRY("\"U8\"", "[-1]", "[0,1]"), 1, "shape[0]"},
    {ENTRY("\"U8\"", "[1.0]", "[0,1]"), 1, "shape[0]"},
    {ENTRY("\"U8\"", "[1e0]", "[0,1]"), 1, "shape[0]"},
    {ENTRY("\"U8\"", "[1,\"1\"]", "[0,1]"), 1, "shape[1]"},
    {ENTRY("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "rank 9"},
    {ENTRY("\"U8\"", "[99999999999999999999]", "[0,1]"), 1, "JSON"},
    {ENTRY("\"U8\"", "[4294967296,4294967296]", "[0,1]"), 1, "overflows"},
    {ENTRY("\"U8\"", "[9223372036854775807,2,0]", "[0,0]"), 0, "overflows"},
    {ENTRY("\"F64\"", "[2305843009213693952]", "[0,8]"), 8, "overflows"},
    {ENTRY("\"U8\"", "[1]", "[0]"), 1, "data_offsets"},
    {ENTRY("\"U8\"", "[1]", "[0,1,2]"), 1, "data_offsets"},
    {ENTRY("\"U8\"", "[1]", "[-1,0]"), 1, "data_offsets"},
    {ENTRY("\"U8\"", "[1]", "[0,1.5]"), 1, "data_offsets"},
    {ENTRY("\"U8\"", "[1]", "[1,0]"), 1, "backwards"},
    {ENTRY("\"U8\"", "[2]", "[0,2]"), 1, "truncated"},
    {ENTRY("\"U8\"", "[1]", "[0,9223372036854775807]"), 1, "truncated"},
    {ENTRY("\"U8\"", "[2]", "[0,1]"), 1, "shape requires 2"},
    {ENTRY("\"U8\"", "[1]", "[0,2]"), 2, "shape requires 1"},
    {ENTRY("\"U16\"", "[1]", "[0,1]"), 1, "shape requires 2"},
    {ENTRY("\"U8\"", "[1]", "[1,2]"), 2, "hole"},
    {ENTRY("\"U8\"", "[1]", "[0,1]"), 2, "but the file has"},
    {ENTRY("\"F64\"", "[1]", "[0,8]"), 8, "aligned"}, // the header is not a multiple of 8
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, "overlap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
     2, "overlap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]}}",
     2, "overlap"},
    {"{\"__pad.0\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3, "hole"},
};

static void hostile_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        dsc_error err;
        int rc = open_and_close(make_file(hostile[i].header, hostile[i].data), &err);
        expect_failure(rc, DSC_EINPUT, &err, hostile[i].word);
        assert_non_null(strstr(err.message, "hand.safetensors"));
    }
}

static void hostile_lengths(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        const char *word;
    } cases[] = {{0, "not a JSON object"},    {1, "not a JSON object"}, {3, "truncated"},
                 {100000001, "limit"},        {UINT64_MAX, "limit"},    {UINT64_MAX - 7, "limit"},
                 {(uint64_t)1 << 63, "limit"}};
    char bytes[10] = "........{}";
    const char *path = in_scratch("length.safetensors");
    dsc_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_le64(bytes, cases[i].length);
        put_file(path, bytes, sizeof bytes);
        int rc = open_and_close(path, &err);
        expect_failure(rc, DSC_EINPUT, &err, cases[i].word);
    }
}

static void deep_nesting(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *header = malloc(DEPTH + 6);
    assert_non_null(header);
    strcpy(header, "{\"t\":");
    memset(header + 5, '[', DEPTH);
    header[DEPTH + 5] = '\0';
    dsc_error err;
    int rc = open_and_close(make_file(header, 0), &err);
    free(header);
    expect_failure(rc, DSC_EINPUT, &err, "depth");
}

static void not_files(void **state)
{
    (void)state;
    dsc_error err;
    int rc = open_and_close(in_scratch("absent"), &err);
    expect_failure(rc, DSC_EINPUT, &err, "No such file");
    rc = open_and_close(scratch, &err);
    expect_failure(rc, DSC_EINPUT, &err, "regular");
    assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
    rc = open_and_close(in_scratch("fifo"), &err); // must not wait for a writer
    expect_failure(rc, DSC_EINPUT, &err, "regular");
}

static const char *write_small(void)
{
    static const int32_t x[5] = {1, 2, 3, 4, 5};
    const dsc_tensor in[] = {
        {.name = "odd", .dtype = DSC_U8, .rank = 1, .shape = {5}, .data = x},
        {.name = "empty", .dtype = DSC_I64, .rank = 2, .shape = {0, 3}},
        {.name = "x", .dtype = DSC_I32, .rank = 1, .shape = {5}, .data = x},
    };
    dsc_error err = {0};
    const char *path = in_scratch("small.safetensors");
    expect_ok(dsc_safetensors_write(path, in, 3, &err), &err);
    return path;
}

static void truncated_anywhere(void **state)
{
    (void)state;
    size_t n;
    const char *path = write_small();
    char *bytes = get_file(path, &n);
    dsc_error err;
    for (size_t length = 0; length < n; length++) {
        put_file(path, bytes, length);
        int rc = open_and_close(path, &err);
        expect_failure(rc, DSC_EINPUT, &err, "truncated");
    }
    bytes[n] = 'x'; // and one byte too many (over dsc_read_file's NUL)
    put_file(path, bytes, n + 1);
    int rc = open_and_close(path, &err);
    expect_failure(rc, DSC_EINPUT, &err, "but the file has");
    free(bytes);
}

// A changed file is refused, or it is a consistent file with other content.
static void corrupted_anywhere(void **state)
{
    (void)state;
    size_t n;
    const char *path = write_small();
    char *bytes = get_file(path, &n), *copy = malloc(n);
    assert_non_null(copy);
    uint64_t random = 7;
    int refused = 0;
    for (int i = 0; i < 2000; i++) {
        memcpy(copy, bytes, n);
        corrupt(copy, n - (i % 2 ? 84 : 0), &random); // every second time in the header
        put_file(path, copy, n);
        dsc_error err = {0};
        dsc_safetensors *s;
        int rc = dsc_safetensors_open(&s, path, &err);
        if (rc) {
            assert_int_equal(rc, DSC_EINPUT);
            refused++;
            continue;
        }
        for (size_t k = 0; k < dsc_safetensors_count(s); k++) {
            const dsc_tensor *t = dsc_safetensors_at(s, k);
            assert_true(t->begin <= t->end && t->end <= n);
            assert_int_equal(t->end - t->begin, (size_t)t->count * dsc_dtype_bytes(t->dtype));
        }
        dsc_safetensors_close(s);
    }
    assert_true(refused > 800);
    free(copy);
    free(bytes);
}

// --- the writer's own refusals -------------------------------------------------------------------

static void writer_refuses(void **state)
{
    (void)state;
    const float x[1] = {1};
    static const struct {
        dsc_tensor tensor;
        const char *word;
    } cases[] = {
        {{.name = NULL, .dtype = DSC_F32}, "null"},
        {{.name = "__pad.1", .dtype = DSC_U8, .rank = 1, .shape = {0}}, "__pad.1"},
        {{.name = "__metadata__", .dtype = DSC_U8, .rank = 1, .shape = {0}}, "__metadata__"},
        {{.name = "type", .dtype = (dsc_dtype)99, .rank = 1, .shape = {0}}, "type"},
        {{.name = "rank", .dtype = DSC_U8, .rank = 9}, "rank"},
        {{.name = "minus", .dtype = DSC_U8, .rank = 1, .shape = {-1}}, "minus"},
        {{.name = "big", .dtype = DSC_U8, .rank = 2, .shape = {INT64_MAX, 4}}, "big"},
        {{.name = "huge", .dtype = DSC_U8, .rank = 1, .shape = {INT64_MAX}}, "huge"},
        {{.name = "nodata", .dtype = DSC_U8, .rank = 1, .shape = {1}}, "nodata"},
        {{.name = "\xff", .dtype = DSC_U8, .rank = 1, .shape = {0}}, "UTF-8"},
        {{.name = "one", .dtype = DSC_U8, .rank = 1, .shape = {0}}, "two tensors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dsc_tensor in[2] = {{.name = "one", .dtype = DSC_F32, .data = x}, cases[i].tensor};
        dsc_error err = {0};
        int rc = dsc_safetensors_write(in_scratch("no"), in, 2, &err);
        expect_failure(rc, DSC_EUSAGE, &err, cases[i].word);
        assert_false(exists("no") || exists("no.tmp"));
    }
}

static void writer_cannot_write(void **state)
{
    (void)state;
    const float x[1] = {1};
    const dsc_tensor in = {.name = "x", .dtype = DSC_F32, .rank = 1, .shape = {1}, .data = x};
    dsc_error err = {0};
    put_file(in_scratch("there"), "x", 1);
    int rc = dsc_safetensors_write(in_scratch("there"), &in, 1, &err);
    expect_failure(rc, DSC_EUSAGE, &err, "exists already");
    rc = dsc_safetensors_write(in_scratch("absent/x"), &in, 1, &err);
    expect_failure(rc, DSC_EIO, &err, "absent/x");
    rc = dsc_safetensors_write(in_scratch("there/x"), &in, 1, &err);
    expect_failure(rc, DSC_EIO, &err, "there/x");
    const struct rlimit small = {16, RLIM_INFINITY};
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    rc = dsc_safetensors_write(in_scratch("full"), &in, 1, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    expect_failure(rc, DSC_EIO, &err, "File too large");
    assert_false(exists("full"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(safetensors)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_round_trips),
        TEST(shapes_round_trip),
        TEST(golden_bytes),
        TEST(no_tensors),
        TEST(foreign_files),
        TEST(hostile_headers),
        TEST(hostile_lengths),
        TEST(deep_nesting),
        TEST(not_files),
        TEST(truncated_anywhere),
        TEST(corrupted_anywhere),
        TEST(writer_refuses),
        TEST(writer_cannot_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
