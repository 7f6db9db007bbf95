// SPDX-License-Identifier: Apache-2.0
// Rows from .npy, safetensors and CSV: every type in either byte order, what NumPy itself writes,
// and every way in which a file can be wrong, refused by name; no file makes the reader crash.
#include "tests/unit/trace_fixture.h"

#include "traces/files/array.h"

#include <math.h>
#include <sys/resource.h>

// Reads all of `spec`, at most `size` numbers, into out (NULL: reads and forgets).
static int read_all(const char *spec, int64_t *rows, int64_t *columns, double *out, int64_t size,
                    dsc_error *err)
{
    dsc_array *a;
    *err = (dsc_error){0};
    int rc = dsc_array_open(&a, spec, err);
    if (rc) {
        assert_null(a);
        return rc;
    }
    *rows = dsc_array_rows(a);
    *columns = dsc_array_columns(a);
    assert_true(*rows >= 1 && *columns >= 1);
    double *row = malloc((size_t)*columns * sizeof *row);
    assert_non_null(row);
    for (int64_t i = 0; i < *rows && !rc; i++) {
        rc = dsc_array_row(a, i, row, err);
        for (int64_t j = 0; out && !rc && j < *columns && i * *columns + j < size; j++)
            out[i * *columns + j] = row[j];
    }
    free(row);
    dsc_array_close(a);
    return rc;
}

static void expect_array(const char *spec, int64_t rows, int64_t columns, const double *wanted)
{
    enum { MOST = 64 };
    double is[MOST];
    int64_t r, c;
    dsc_error err;
    expect_ok(read_all(spec, &r, &c, is, MOST, &err), &err);
    assert_int_equal(r, rows);
    assert_int_equal(c, columns);
    for (int64_t i = 0; i < rows * columns; i++)
        if (!(is[i] == wanted[i] || (isnan(is[i]) && isnan(wanted[i]))) ||
            !signbit(is[i]) != !signbit(wanted[i]))
            fail_msg("%s: element %d is %.17g, not %.17g", spec, (int)i, is[i], wanted[i]);
}

static void expect_refused(const char *spec, const char *word)
{
    int64_t r, c;
    dsc_error err;
    int rc = read_all(spec, &r, &c, NULL, 0, &err);
    expect_failure(rc, DSC_EINPUT, &err, word);
}

// --- npy -----------------------------------------------------------------------------------------

// A file of the given version, header text and data.
static const char *make_npy(int version, const char *header, const void *data, size_t length)
{
    const char *path = in_scratch("a.npy");
    unsigned char bytes[4096] = "\x93NUMPY";
    size_t n = strlen(header), at = version == 1 ? 10 : 12;
    assert_true(at + n + length <= sizeof bytes);
    bytes[6] = (unsigned char)version;
    bytes[8] = (unsigned char)n;
    bytes[9] = (unsigned char)(n >> 8);
    memcpy(bytes + at, header, n);
    if (length)
        memcpy(bytes + at + n, data, length);
    put_file(path, bytes, at + n + length);
    return path;
}

#define BLANKS "                                                          "
// numpy.save of array([[1, 2, 3], [-.5, 1e-3, inf]], dtype='<f4'), NumPy 2.4.6.
static const char by_numpy[] =
    "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" BLANKS "\n"
    "\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x00\xbfo\x12\x83:\x00\x00\x80\x7f";

static void as_numpy_writes_it(void **state)
{
    (void)state;
    const double wanted[] = {1, 2, 3, -0.5, 1e-3f, INFINITY};
    assert_int_equal(sizeof by_numpy - 1, 128 + 24);
    put_file(in_scratch("n.npy"), by_numpy, sizeof by_numpy - 1);
    expect_array(in_scratch("n.npy"), 2, 3, wanted);
}

static void every_type_and_order(void **state)
{
    (void)state;
    const double wanted[] = {1.5, -0.0, -2, INFINITY};
    static const char header[] = "{'descr': '%cf%d', 'fortran_order': False, 'shape': (2, 2), }\n";
    static const uint16_t half[] = {0x3e00, 0x8000, 0xc000, 0x7c00};
    const float single[] = {1.5f, -0.0f, -2, INFINITY};
    for (int version = 1; version <= 3; version++)
        for (int size = 2; size <= 8; size *= 2)
            for (int big = 0; big < 2; big++) {
                unsigned char data[4 * 8];
                char text[100];
                const void *native = size == 2   ? (const void *)half
                                     : size == 4 ? (const void *)single
                                                 : (const void *)wanted;
                for (int i = 0; i < 4 * size; i++) // the machine of the tests is little-endian
                    data[i] = ((const unsigned char *)native)[big ? i ^ (size - 1) : i];
                snprintf(text, sizeof text, header, big ? '>' : '<', size);
                expect_array(make_npy(version, text, data, (size_t)(4 * size)), 2, 2, wanted);
            }
}

static void half_precision(void **state)
{
    (void)state;
    static const struct {
        uint16_t bits;
        double x;
    } known[] = {
        {0x0000, 0.0},     {0x8000, -0.0},      {0x0001, 0x1p-24},   {0x03ff, 0x3ffp-24},
        {0x0400, 0x1p-14}, {0x3555, 0x555p-12}, {0x3c00, 1},         {0x7bff, 65504},
        {0xfbff, -65504},  {0x7c00, INFINITY},  {0xfc00, -INFINITY}, {0x7e00, NAN},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        expect_array(
            make_npy(1, "{'descr':'<f2','fortran_order':False,'shape':(1,)}", &known[i].bits, 2), 1,
            1, &known[i].x);
#ifdef __FLT16_MAX__ // the compiler's own, for all 65536
    enum { ALL = 65536, HEADER = 10 + 54 };
    static unsigned char file[HEADER + 2 * ALL + 1] =
        "\x93NUMPY\x01\x00\x36\x00{'descr':'<f2','fortran_order':False,'shape':(65536,)}";
    static double is[ALL];
    int64_t rows, columns;
    dsc_error err;
    assert_int_equal(file[HEADER - 1], '}');
    for (int i = 0; i < ALL; i++) {
        file[HEADER + 2 * i] = (unsigned char)i;
        file[HEADER + 2 * i + 1] = (unsigned char)(i >> 8);
    }
    put_file(in_scratch("all.npy"), file, sizeof file - 1);
    expect_ok(read_all(in_scratch("all.npy"), &rows, &columns, is, ALL, &err), &err);
    for (int i = 0; i < ALL; i++) {
        uint16_t bits = (uint16_t)i;
        _Float16 wanted;
        memcpy(&wanted, &bits, sizeof wanted);
        assert_true(is[i] == (double)wanted || (isnan(is[i]) && isnan((double)wanted)));
    }
#endif
}

static void shapes_are_flattened(void **state)
{
    (void)state;
    const double x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const struct {
        const char *shape;
        int64_t rows, columns;
    } cases[] = {
        {"(8,)", 1, 8},         {"(2, 4)", 2, 4}, {"(2,4,)", 2, 4},      {"(2, 2, 2)", 4, 2},
        {"(1, 2, 1, 4)", 2, 4}, {"(8,1)", 8, 1},  {"( 2 ,\t4 ) ", 2, 4}, {"(1, 8)", 1, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"shape\" : %s, 'fortran_order':False ,'descr':'<f8'}",
                 cases[i].shape);
        expect_array(make_npy(1, header, x, sizeof x), cases[i].rows, cases[i].columns, x);
    }
}

#define DESCR "'descr': '<f4', "
#define ORDER "'fortran_order': False, "
#define SHAPE "'shape': (2,)"
static const struct {
    const char *header, *word;
} bad_headers[] = {
    {"", "byte 10: '{' is missing"},
    {"[" DESCR ORDER SHAPE "]", "byte 10: '{' is missing"},
    {"{" DESCR ORDER SHAPE, "'}'"},
    {"{" DESCR ORDER SHAPE "} x", "after the '}'"},
    {"{" DESCR ORDER SHAPE "}}", "after the '}'"},
    {"{" DESCR ORDER "}", "shape is missing"},
    {"{" DESCR SHAPE "}", "fortran_order is missing"},
    {"{" ORDER SHAPE "}", "descr is missing"},
    {"{" DESCR DESCR ORDER SHAPE "}", "'descr' occurs twice"},
    {"{" DESCR ORDER SHAPE ", 'x': 1}", "unknown key 'x'"},
    {"{" DESCR ORDER SHAPE " 'x': 1}", "',' is missing"},
    {"{" DESCR ORDER "'shape' (2,)}", "':' is missing"},
    {"{" DESCR ORDER "shape: (2,)}", "a string is missing"},
    {"{" DESCR ORDER "'shape", "has no end"},
    {"{" DESCR ORDER "'sh\\ape': (2,)}", "that NumPy does not write"},
    {"{" DESCR ORDER "'shapeshapeshapeshapeshape': (2,)}", "that NumPy does not write"},
    {"{" DESCR "'fortran_order': True, " SHAPE "}", "Fortran order"},
    {"{" DESCR "'fortran_order': 0, " SHAPE "}", "neither True nor False"},
    {"{" DESCR "'fortran_order': Falsehood, " SHAPE "}", "',' is missing"},
    {"{" ORDER SHAPE ", 'descr': '<i4'}", "dtype '<i4'"},
    {"{" ORDER SHAPE ", 'descr': '|u1'}", "dtype '|u1'"},
    {"{" ORDER SHAPE ", 'descr': '<f16'}", "dtype '<f16'"},
    {"{" ORDER SHAPE ", 'descr': '=f4'}", "dtype '=f4'"},
    {"{" ORDER SHAPE ", 'descr': 'f4'}", "dtype 'f4'"},
    {"{" ORDER SHAPE ", 'descr': '<c8'}", "dtype '<c8'"},
    {"{" ORDER SHAPE ", 'descr': ''}", "dtype ''"},
    {"{" ORDER SHAPE ", 'descr': '|O'}", "pickled Python objects are not supported"},
    {"{" ORDER SHAPE ", 'descr': [('x', '<f4')]}", "records of several fields"},
    {"{" ORDER SHAPE ", 'descr': None}", "a string is missing"},
    {"{" DESCR ORDER "'shape': ()}", "a single number"},
    {"{" DESCR ORDER "'shape': (2)}", "not a tuple"},
    {"{" DESCR ORDER "'shape': 2}", "'(' is missing"},
    {"{" DESCR ORDER "'shape': [2]}", "'(' is missing"},
    {"{" DESCR ORDER "'shape': (2 1)}", "not a tuple"},
    {"{" DESCR ORDER "'shape': (1, 2 1)}", "',' is missing in the shape"},
    {"{" DESCR ORDER "'shape': (,)}", "non-negative integers"},
    {"{" DESCR ORDER "'shape': (-2,)}", "non-negative integers"},
    {"{" DESCR ORDER "'shape': (2.0,)}", "not a tuple"},
    {"{" DESCR ORDER "'shape': (02,)}", "non-negative integers"},
    {"{" DESCR ORDER "'shape': (0x2,)}", "not a tuple"},
    {"{" DESCR ORDER "'shape': (0,)}", "no elements"},
    {"{" DESCR ORDER "'shape': (3, 0)}", "no elements"},
    {"{" DESCR ORDER "'shape': (9223372036854775808,)}", "a dimension overflows"},
    {"{" DESCR ORDER "'shape': (4294967296, 4294967296, 2)}", "the shape overflows"},
    {"{" DESCR ORDER "'shape': (1, 9223372036854775807)}", "the shape overflows"},
    {"{" DESCR ORDER "'shape': (1000000000, 1000000000)}", "truncated: 8 bytes"},
    {"{" DESCR ORDER "'shape': (3,)}", "truncated: 8 bytes of data"},
    {"{" DESCR ORDER "'shape': (1,)}", "too long: 8 bytes of data"},
};

static void headers_are_checked(void **state)
{
    (void)state;
    const float data[2] = {1, 2};
    expect_array(make_npy(1, "{" DESCR ORDER SHAPE "}", data, sizeof data), 1, 2,
                 (const double[]){1, 2});
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++)
        expect_refused(make_npy(1, bad_headers[i].header, data, sizeof data), bad_headers[i].word);
    char deep[600] = "{" DESCR ORDER "'shape': (";
    for (int i = 0; i < 65; i++)
        strcat(deep, "1,");
    strcat(deep, ")}");
    expect_refused(make_npy(1, deep, data, sizeof data), "more than 64 dimensions");
}

static void files_are_checked(void **state)
{
    (void)state;
    char bytes[sizeof by_numpy];
    const char *path = in_scratch("a.npy");
    for (size_t n = 1; n < sizeof by_numpy - 1; n++) {
        put_file(path, by_numpy, n);
        expect_refused(path, n < 10 ? "not a .npy file" : "truncated");
    }
    put_file(path, by_numpy, sizeof by_numpy); // one byte more
    expect_refused(path, "too long: 25 bytes of data from byte 128 on; the shape requires 24");
    put_file(path, "", 0);
    expect_refused(path, "empty file");
    memcpy(bytes, by_numpy, sizeof bytes);
    bytes[6] = 4;
    put_file(path, bytes, sizeof bytes - 1);
    expect_refused(path, "version 4.0");
    bytes[6] = 2; // the length is now 0x277b0076
    put_file(path, bytes, sizeof bytes - 1);
    expect_refused(path, "the limit is 65536");
    bytes[0] = 'P';
    put_file(path, bytes, sizeof bytes - 1);
    expect_refused(path, "not a .npy file");
    expect_refused(in_scratch("absent.npy"), "No such file");
    assert_int_equal(mkdir(in_scratch("folder.npy"), 0777), 0);
    expect_refused(in_scratch("folder.npy"), "not a regular file");
    assert_int_equal(mkfifo(in_scratch("fifo.npy"), 0666), 0);
    expect_refused(in_scratch("fifo.npy"), "not a regular file");
    expect_refused(in_scratch("a.npz"), "unrecognized format");
}

// 10 GB with a hole in them: a row is read without the others.
static void larger_than_memory(void **state)
{
    (void)state;
    enum { COLUMNS = 250000, ROWS = 10000 };
    const char *path = make_npy(1, "{" DESCR ORDER "'shape': (10000, 250000)}   \n", NULL, 0);
    struct stat st;
    dsc_error err = {0};
    assert_int_equal(stat(path, &st), 0);
    if (truncate(path, st.st_size + (off_t)ROWS * COLUMNS * 4))
        skip(); // a file system with a limit
    dsc_array *a;
    struct rusage before, after;
    double *row = malloc(COLUMNS * sizeof *row);
    assert_non_null(row);
    getrusage(RUSAGE_SELF, &before);
    expect_ok(dsc_array_open(&a, path, &err), &err);
    for (int64_t i = 0; i < ROWS; i += ROWS - 1) {
        row[0] = row[COLUMNS - 1] = 1;
        expect_ok(dsc_array_row(a, i, row, &err), &err);
        assert_true(row[0] == 0 && row[COLUMNS - 1] == 0);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); // KiB
    expect_failure(dsc_array_row(a, ROWS, row, &err), DSC_EUSAGE, &err, "row 10000 does not exist");
    expect_failure(dsc_array_row(a, -1, row, &err), DSC_EUSAGE, &err, "row -1 does not exist");
    dsc_array_close(a);
    dsc_array_close(NULL);
    free(row);
}

// --- safetensors
// -----------------------------------------------------------------------------------

static const uint16_t bf16_data[] = {0x3fc0, 0x8000, 0xc000, 0xff80};
static const uint16_t f16_data[] = {0x3e00, 0x8000, 0xc000, 0xfc00};
static const float f32_data[] = {1.5f, -0.0f, -2, -INFINITY};
static const double f64_data[] = {1.5, -0.0, -2, -INFINITY};
static const int64_t i64_data[] = {1, 2, 3, 4};

static const char *make_safetensors(const dsc_tensor *list, size_t count)
{
    dsc_error err = {0};
    const char *path = in_scratch("a.safetensors");
    unlink(path);
    expect_ok(dsc_safetensors_write(path, list, count, &err), &err);
    return path;
}

static void tensors_by_name(void **state)
{
    (void)state;
    const dsc_tensor list[] = {
        {"half", DSC_F16, 2, {2, 2}, 0, f16_data, 0, 0},
        {"brain", DSC_BF16, 1, {4}, 0, bf16_data, 0, 0},
        {"single", DSC_F32, 3, {2, 2, 1}, 0, f32_data, 0, 0},
        {"double:x", DSC_F64, 2, {1, 4}, 0, f64_data, 0, 0},
        {"count", DSC_I64, 1, {4}, 0, i64_data, 0, 0},
        {"point", DSC_F32, 0, {0}, 0, f32_data, 0, 0},
        {"void", DSC_F32, 2, {3, 0}, 0, f32_data, 0, 0},
    };
    static const struct {
        const char *name;
        int64_t rows, columns;
    } good[] = {{"half", 2, 2}, {"brain", 1, 4}, {"single", 4, 1}, {"double:x", 1, 4}};
    char spec[500];
    make_safetensors(list, sizeof list / sizeof list[0]);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(spec, sizeof spec, "%s:%s", in_scratch("a.safetensors"), good[i].name);
        expect_array(spec, good[i].rows, good[i].columns, f64_data);
    }
    static const char *const bad[][2] = {
        {"count", "tensor 'count' is I64"},
        {"point", "tensor 'point': a single number"},
        {"void", "tensor 'void': the array has no elements"},
        {"", "no tensor ''"},
        {"other", "no tensor 'other' (floating-point tensors: "},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(spec, sizeof spec, "%s:%s", in_scratch("a.safetensors"), bad[i][0]);
        expect_refused(spec, bad[i][1]);
    }
    expect_refused(in_scratch("a.safetensors"), "6 floating-point tensors; select one");
    expect_refused(in_scratch("a.safetensors"), "half, ");
    expect_refused(in_scratch("absent.safetensors:x"), "absent.safetensors: No such file");
}

static void the_only_tensor(void **state)
{
    (void)state;
    const dsc_tensor list[] = {
        {"count", DSC_I64, 1, {4}, 0, i64_data, 0, 0},
        {"rows", DSC_F32, 2, {2, 2}, 0, f32_data, 0, 0},
    };
    expect_array(make_safetensors(list, 2), 2, 2, f64_data);
    expect_refused(make_safetensors(list, 1), "0 floating-point tensors; select one by "
                                              "FILE.safetensors:NAME (none)");
    char names[60][16];
    dsc_tensor many[60];
    for (int i = 0; i < 60; i++) {
        snprintf(names[i], sizeof names[i], "name%d", i);
        many[i] = (dsc_tensor){names[i], DSC_F32, 1, {4}, 0, f32_data, 0, 0};
    }
    expect_refused(make_safetensors(many, 60), ", ...)");
}

// --- csv
// -------------------------------------------------------------------------------------------

static const char *make_csv(const char *text)
{
    put_file(in_scratch("a.csv"), text, strlen(text));
    return in_scratch("a.csv");
}

static void forms_of_csv(void **state)
{
    (void)state;
    static const double wanted[] = {0.5, -2, 1e-3, 4};
    static const char *const forms[] = {
        "0.5,-2\n1e-3,4\n",
        "0.5,-2\n1e-3,4",
        "0.5,-2\r\n1e-3,4\r\n",
        "\357\273\2770.5,-2\n1e-3,4\n",
        "a,b\n0.5,-2\n1e-3,4\n",
        "\"token\",\"name of it\"\n0.5,-2\n1e-3,4\n",
        "# made by hand\n\n0.5 , -2\n  \n\t1E-3,\t4.000 \n# end\n",
        "0.5;-2\n1e-3;4\n",
        "0.5\t-2\n1e-3\t4\n",
        "0.5 -2\n 1e-3   4 \n",
        "  5.0e-1  -2\n.001 4.\n",
        "x y\n0.5 -2\n1e-3 +4\n",
        "a;b\n0.5,-2\n1e-3,4\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        expect_array(make_csv(forms[i]), 2, 2, wanted);
    expect_refused(make_csv("1 \t -2\n3 4\n"),
                   "a.csv:2: 1 numbers, but the earlier rows"); // a tab wins
    expect_array(make_csv("3"), 1, 1, (const double[]){3});
    expect_array(make_csv("1\n2\n3\n"), 3, 1, (const double[]){1, 2, 3});
    expect_array(make_csv("nan,inf,-inf,-0,Infinity,NaN\n"), 1, 6,
                 (const double[]){NAN, INFINITY, -INFINITY, -0.0, INFINITY, NAN});
    expect_array(make_csv("4.9406564584124654e-324,1.7976931348623157e308,1e-999\n"), 1, 3,
                 (const double[]){4.9406564584124654e-324, 1.7976931348623157e308, 0});
    put_file(in_scratch("a.tsv"), "1\t2\n", 4);
    expect_array(in_scratch("a.tsv"), 1, 2, (const double[]){1, 2});
    put_file(in_scratch("a.txt"), "1 2\n", 4);
    expect_array(in_scratch("a.txt"), 1, 2, (const double[]){1, 2});
}

static void csv_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"", "empty file"},
        {"\n \n# nothing\n", "no row of numbers"},
        {"a,b\n", "no row of numbers"},
        {"a,b\nc,d\n", "a.csv:2: column 1: 'c' is not a number"},
        {"a,1\n", "a.csv:1: column 1: 'a' is not a number"},
        {"1,2\n3\n", "a.csv:2: 1 numbers, but the earlier rows have 2"},
        {"1,2\n\n3,4,5\n", "a.csv:3: 3 numbers, but the earlier rows have 2"},
        {"1,2\n3,\n", "a.csv:2: column 2: '' is empty"},
        {"1,2,\n", "a.csv:1: column 3: '' is empty"},
        {"1,,2\n", "a.csv:1: column 2: '' is empty"},
        {"\t1\t2\n", "a.csv:1: column 1: '' is empty"},
        {"1\t2\t\n", "a.csv:1: column 3: '' is empty"},
        {"1,2\n3,x\n", "a.csv:2: column 2: 'x' is not a number"},
        {"# c\n1,2\n3,4x\n", "a.csv:3: column 2: '4x' is not a number"},
        {"1 2,3\n", "a.csv:1: column 1: '1 2' is not a number"},
        {"1,0x10\n", "column 2: '0x10'"},
        {"1,1e999\n", "column 2: '1e999' is not a number in the range"},
        {"1,nan(1)\n", "column 2: 'nan(1)'"},
        {"1,infinite\n", "column 2: 'infinite'"},
        {"0,5;0,5\n", "column 2: '5;0'"},
        {"1,-\n", "column 2: '-'"},
        {"1,\v2\n", "column 2"},
        {"1,\"2\"\n", "column 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(make_csv(cases[i].text), cases[i].word);
    put_file(in_scratch("a.csv"), "1,2\0\n", 5);
    expect_refused(in_scratch("a.csv"), "a.csv:1: column 2");
    char *longest = malloc(1000);
    assert_non_null(longest);
    memset(longest, '1', 1000);
    put_file(in_scratch("a.csv"), longest, 1000);
    expect_refused(in_scratch("a.csv"), "no row of numbers"); // not a number, hence a header
    longest[1] = ' ';
    put_file(in_scratch("a.csv"), longest, 1000);
    expect_refused(in_scratch("a.csv"), "a.csv:1: column 2");
    free(longest);
}

// --- hostile files -------------------------------------------------------------------------------

static void changed_bytes_never_crash(void **state)
{
    (void)state;
    static const char csv[] = "a,b,c\n0.5,-2,nan\n# c\n1e-3,4,5\n\n7,8,-1e-7\n";
    const struct {
        const char *name, *bytes;
        size_t length;
    } seeds[] = {{"f.npy", by_numpy, sizeof by_numpy - 1}, {"f.csv", csv, sizeof csv - 1}};
    uint64_t random = 5;
    for (int i = 0; i < 6000; i++) {
        char bytes[200];
        int64_t r, c;
        dsc_error err;
        size_t n = seeds[i % 2].length;
        memcpy(bytes, seeds[i % 2].bytes, n);
        corrupt(bytes, i % 3 && i % 2 == 0 ? 80 : n, &random); // of .npy, mostly the header
        n = i % 5 ? n : 1 + draw(&random) % n;
        put_file(in_scratch(seeds[i % 2].name), bytes, n);
        int rc = read_all(in_scratch(seeds[i % 2].name), &r, &c, NULL, 0, &err);
        if (rc && (rc != DSC_EINPUT || !strstr(err.message, seeds[i % 2].name)))
            fail_msg("%d '%s'", rc, err.message);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)

SUITE(array)
{
    const struct CMUnitTest tests[] = {
        TEST(as_numpy_writes_it),   TEST(every_type_and_order), TEST(half_precision),
        TEST(shapes_are_flattened), TEST(headers_are_checked),  TEST(files_are_checked),
        TEST(larger_than_memory),   TEST(tensors_by_name),      TEST(the_only_tensor),
        TEST(forms_of_csv),         TEST(csv_is_checked),       TEST(changed_bytes_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
