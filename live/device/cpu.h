// SPDX-License-Identifier: Apache-2.0
// Internal: the CPU backend, divided into files by operation.
#ifndef DSC_LIVE_CPU_H
#define DSC_LIVE_CPU_H

#include "live/device/backend.h"
#include "live/device/cpu_kernel.h"
#include "live/device/openblas.h"

// Memory that grows and is reused.
typedef struct cpu_scratch {
    void *data;
    size_t bytes;
} cpu_scratch;

typedef struct cpu_backend {
    live_backend base;
    const live_cpu_kernel *kernel;
    live_openblas blas;      // opened by the first product of many rows
    const live_batch *batch; // of the pass, or NULL
    // Cosines and sines of the pass's rotations, [rows][rotated / 2] each, for the frequencies
    // `angles_of`.
    cpu_scratch angles;
    const float *angles_of; // NULL: none yet
    int64_t angles_pairs;
    cpu_scratch work;    // of one operation
    cpu_scratch experts; // of that operation, which calls others
    struct cpu_page
        *page; // where the next block of some 100 KB is allocated, or NULL (cpu_memory.c)
} cpu_backend;

// From this number of rows on, OpenBLAS computes a product, unless the backend is invariant: it
// then amortizes the copying of the weights (tests/bench/README.md). Below, the result of a row
// does not depend on the other rows.
enum { LIVE_BLAS_ROWS = 128 };

// Work that is too small to be shared among threads, in units of about one addition: about 50 us of
// one thread. If another process occupies a core, threads wait for each other longer than that.
enum { LIVE_CPU_SMALL = 1 << 19 };

static inline cpu_backend *cpu_of(live_backend *b)
{
    return (cpu_backend *)b;
}

static inline int cpu_threads(const live_backend *b, int64_t work)
{
    return work < LIVE_CPU_SMALL ? 1 : b->threads;
}

// Makes room for at least `bytes`, 64-byte aligned, contents undefined.
int live_cpu_scratch(cpu_scratch *s, size_t bytes, dsc_error *err);

// cpu_memory.c
int live_cpu_alloc(live_backend *b, void *out, size_t bytes, dsc_error *err);
void live_cpu_free(live_backend *b, void *p);
void live_cpu_leave_page(cpu_backend *c); // when the backend is closed; blocks remain
int live_cpu_copy(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
int live_cpu_fill(live_backend *b, void *p, dsc_dtype dtype, int64_t count, uint64_t seed,
                  uint64_t stream, double limit, dsc_error *err);
int live_cpu_available(live_backend *b, double *free_bytes, double *total_bytes, dsc_error *err);

// cpu_probe.c
int live_cpu_probe(live_backend *b, dsc_dtype dtype, live_probe *out, dsc_error *err);

// cpu_matmul.c
int live_cpu_matmul(live_backend *b, float *out, const live_matrix *w, const float *bias,
                    const float *in, int64_t rows, bool add, dsc_error *err);

// cpu_rows.c: norm, product and activation in sequence.
int live_cpu_product(live_backend *b, void *out, const void *in, int64_t rows,
                     const live_product *p, dsc_error *err);

// cpu_experts.c
int live_cpu_experts(live_backend *b, float *out, const float *in, int64_t rows,
                     const live_experts *e, dsc_error *err);

// cpu_attend.c
int live_cpu_rotate(live_backend *b, float *qkv, const live_rotation *r, const live_attention *a,
                    const live_cache *cache, int64_t layer, dsc_error *err);
int live_cpu_attend(live_backend *b, void *out, const float *qkv, const live_attention *a,
                    const live_cache *cache, int64_t layer, dsc_error *err);
int live_cpu_move(live_backend *b, const live_cache *cache, const int32_t *from, int64_t count,
                  int64_t to, dsc_error *err);

// cpu_rows.c
int live_cpu_embed(live_backend *b, float *out, int64_t stride, const live_matrix *table,
                   const live_matrix *positions, float scale, dsc_error *err);
int live_cpu_spread(live_backend *b, float *out, const float *in, const int32_t *column,
                    int64_t rows, int64_t in_width, int64_t width, dsc_error *err);
int live_cpu_gather(live_backend *b, float *out, int64_t out_stride, const float *in,
                    int64_t in_stride, int64_t width, live_index list, dsc_error *err);
int live_cpu_scatter(live_backend *b, float *out, const float *in, int64_t width, live_index list,
                     dsc_error *err);
int live_cpu_norm(live_backend *b, float *out, const float *in, const live_norming *n, int64_t rows,
                  int64_t width, dsc_error *err);
// With a gate: in[rows][2 width], gate then up, and out may not be in; else in[rows][width].
int live_cpu_activate(live_backend *b, float *out, const float *in, live_activation kind,
                      int64_t rows, int64_t width, dsc_error *err);
int live_cpu_add(live_backend *b, float *out, const float *in, int64_t count, dsc_error *err);
int live_cpu_select(live_backend *b, int32_t *token, float *margin, const float *logits,
                    int64_t rows, int64_t vocab, dsc_error *err);

// cpu_dist.c
int live_cpu_summarize(live_backend *b, const live_summary *s, const float *logits, int64_t rows,
                       int64_t vocab, dsc_error *err);

// cpu_overlap.c
int live_cpu_compare(live_backend *b, const live_comparison *c, int64_t vocab, dsc_error *err);
int live_cpu_list(live_backend *b, dsc_mass *out, const live_dists *dists, const uint64_t *wanted,
                  int64_t count, int64_t vocab, dsc_error *err);
int live_cpu_sample_residual(live_backend *b, live_residual_sample *out, const live_dists *dists,
                             const dsc_residual *residual, double u, int64_t vocab, dsc_error *err);

#endif
