// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded when they are needed: what is reported when one is missing, and that it
// is OpenBLAS that multiplies many rows, from the first such product on and not before.
#include "tests/close.h"

#include "live/device/backend.h"
#include "live/device/library.h"
#include "live/device/openblas.h"

#include <dlfcn.h>
#include <string.h>

static void test_a_missing_library_is_named(void **state)
{
    static const live_library none = {"Nothing", "libnothing.so.7", "/no/such/folder",
                                      "install libnothing7"};
    void (*function)(void) = NULL;
    const live_symbol symbol = {"nothing", &function};
    dsc_error err;
    (void)state;
    assert_int_equal(live_library_open(&none, &symbol, 1, &err), DSC_EABSENT);
    assert_null(function);
    static const char *const words[] = {
        "Nothing cannot be loaded: libnothing.so.7: ", "LD_LIBRARY_PATH",
        "/no/such/folder: ", "install libnothing7"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(err.message, words[i]))
            fail_msg("\"%s\" is not in: %s", words[i], err.message);
}

static void test_a_missing_function_is_named(void **state)
{
    static const live_library math = {"The C library", "libm.so.6", "", "install libc6"};
    double (*cosine)(double) = NULL;
    void (*function)(void) = NULL;
    const live_symbol symbol[] = {{"cos", &cosine}, {"no_such_function", &function}};
    dsc_error err;
    (void)state;
    assert_ok(live_library_open(&math, symbol, 1, &err), err);
    assert_close(cosine(0), 1, 0);
    assert_int_equal(live_library_open(&math, symbol, 2, &err), DSC_EABSENT);
    assert_non_null(strstr(err.message, "libm.so.6 has no function no_such_function: install"));
}

static bool is_loaded(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle;
}

// rows of ones times a matrix of ones: every number of the product is its width.
static void product(live_backend *b, int64_t rows)
{
    enum { OUTS = 5, COLS = 7, MOST = 200 };
    static float ones[MOST * COLS], out[MOST * OUTS];
    const live_matrix w = {ones, DSC_F32, OUTS, COLS};
    dsc_error err;
    for (int i = 0; i < MOST * COLS; i++)
        ones[i] = 1;
    assert_ok(live_matmul(b, out, &w, NULL, ones, rows, false, &err), err);
    for (int64_t i = 0; i < rows * OUTS; i++)
        assert_true(out[i] == COLS);
}

static void test_openblas_multiplies_many_rows(void **state)
{
    live_backend *b;
    live_openblas blas = {0};
    dsc_error err;
    Dl_info where;
    (void)state;
    if (!strcmp(live_openblas_name(), "linked in"))
        skip();
    assert_ok(live_backend_cpu(&b, 1, false, &err), err);
    product(b, 16);
    assert_false(is_loaded(live_openblas_name()));
    product(b, 200);
    assert_true(is_loaded(live_openblas_name()));
    b->type->close(b);
    // Not by another library's function of that name, such as that of GSL's CBLAS.
    assert_ok(live_openblas_open(&blas, &err), err);
    void *sgemm, *handle = dlopen(live_openblas_name(), RTLD_NOW);
    memcpy(&sgemm, &blas.sgemm, sizeof sgemm);
    assert_non_null(handle);
    assert_ptr_equal(sgemm, dlsym(handle, "cblas_sgemm"));
    assert_non_null(dlsym(handle, "openblas_get_config"));
    assert_true(dladdr(sgemm, &where));
    assert_non_null(strstr(where.dli_fname, "openblas"));
    dlclose(handle);
}

SUITE(live_library)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_missing_library_is_named),
        cmocka_unit_test(test_a_missing_function_is_named),
        cmocka_unit_test(test_openblas_multiplies_many_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
