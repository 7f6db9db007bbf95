// SPDX-License-Identifier: Apache-2.0
// Loads OpenBLAS and calls it. Loading starts its threads and takes longer than most commands.
// configure links a program with OpenBLAS, reads the soname there and sets OPENBLAS_SONAME and
// OPENBLAS_FOLDER; without a soname the library is static and is linked in.
#include "live/device/openblas.h"

#include <cblas.h>

typedef __typeof__(cblas_sgemm) sgemm_function;
typedef __typeof__(openblas_set_num_threads) set_threads_function;

#ifdef OPENBLAS_SONAME
#include "live/device/library.h"

static int find(live_openblas *out, set_threads_function **set_threads, dsc_error *err)
{
    static const live_library openblas = {"OpenBLAS", OPENBLAS_SONAME, OPENBLAS_FOLDER,
                                          "install OpenBLAS (Debian: libopenblas0)"};
    const live_symbol symbol[] = {{"cblas_sgemm", &out->sgemm},
                                  {"openblas_set_num_threads", set_threads}};
    return live_library_open(&openblas, symbol, sizeof symbol / sizeof *symbol, err);
}

const char *live_openblas_name(void)
{
    return OPENBLAS_SONAME;
}
#else
static int find(live_openblas *out, set_threads_function **set_threads, dsc_error *err)
{
    (void)err;
    out->sgemm = (void (*)(void))cblas_sgemm;
    *set_threads = openblas_set_num_threads;
    return DSC_OK;
}

const char *live_openblas_name(void)
{
    return "linked in";
}
#endif

int live_openblas_open(live_openblas *out, dsc_error *err)
{
    live_openblas found;
    set_threads_function *set_threads;
    const int rc = find(&found, &set_threads, err);
    if (rc)
        return rc;
    set_threads(1); // the caller distributes the blocks of a product among its own threads
    *out = found;
    return DSC_OK;
}

void live_openblas_multiply(const live_openblas *b, float *out, const float *in, int64_t in_stride,
                            const float *w, int64_t w_stride, int64_t rows, int64_t n, int64_t k,
                            bool add)
{
    sgemm_function *const sgemm = (sgemm_function *)b->sgemm;
    sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)n, (blasint)k, 1, in,
          (blasint)in_stride, w, (blasint)w_stride, add ? 1 : 0, out, (blasint)n);
}
