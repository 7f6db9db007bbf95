// SPDX-License-Identifier: Apache-2.0
// Internal: every operation of a device against the CPU's. Memory comes in twins, one on each
// device, that begin with the same contents; a check runs the operation on both and compares all of
// the memory that it may write, and what lies around it.
#ifndef DSC_LIVE_CHECK_OPS_H
#define DSC_LIVE_CHECK_OPS_H

#include "live/device/backend.h"

typedef struct check {
    live_backend *cpu, *device;
    bool quick; // without the larger shapes
    double
        prefetch_mb; // of weights that a product requests ahead of time; < 0: the device's choice
    int64_t passed, failed;
    uint64_t draws; // of this run, for lists
    dsc_error error;
} check;

typedef struct twin {
    void *cpu, *device;
    int64_t count;
    dsc_dtype cpu_dtype, device_dtype;
} twin;

// Ends the program when an operation fails, with its message: nothing after it would be meant.
void check_call(check *c, int status, const char *what);
// Records a result and prints a line.
void check_line(check *c, bool good, double error, double tolerance, const char *format, ...)
    DSC_PRINTF(5, 6);

// Poisoned: not a number anywhere.
twin check_twin(check *c, int64_t count, dsc_dtype cpu_dtype, dsc_dtype device_dtype);
void check_twin_free(check *c, twin *t);
// Uniform in [-limit, limit), numbers that `exact` can hold; the same on both.
void check_twin_fill(check *c, twin *t, int64_t first, int64_t count, dsc_dtype exact,
                     double limit);
void check_twin_set(check *c, twin *t, int64_t first, const float *from, int64_t count);
// The largest difference, relative to the largest number of the CPU's; infinite when one is not a
// number where the other is.
double check_twin_error(check *c, const twin *t);
void check_twin_numbers(check *c, const twin *t, bool device, float *out);

// The relative error of rounding to a dtype, at most; 0 for F32.
double check_half_unit(dsc_dtype dtype);
// To the nearest number of the dtype, ties to even.
float check_rounded(float x, dsc_dtype dtype);

uint32_t check_draw(check *c, uint32_t below);

// Lists of a pass: a chain, or a tree with `branches` (each node's parent is drawn), behind a
// prefix.
typedef struct check_pass {
    live_batch batch;
    int32_t *token, *position, *slot, *output, *feature, *parent;
    uint64_t *mask;
} check_pass;
check_pass check_pass_new(check *c, int64_t tokens, int64_t sequences, int64_t prefix,
                          int64_t window, bool branches, int64_t vocab);
void check_pass_free(check_pass *p);
void check_begin(check *c, const live_batch *batch);
void check_end(check *c);

void check_rows(check *c); // embed, gather, scatter, norm, activate, add, select
void check_products(check *c);
void check_dists(check *c);     // summarize, fetch
void check_overlap(check *c);   // compare, list, leave
void check_attention(check *c); // rotate, attend, move
void check_passes(check *c);    // passes that are replayed, memory
void check_invariance(check *c, live_backend *invariant);
// The sections of the benchmark: products of matrices; attention; the other operations of a layer;
// cutting and drawing from logits; where a draft and a target distribution overlap.
#define BENCH_SECTIONS "products, attention, rows, sampling, overlap"
// Whether every word of a list with commas is one of them.
bool check_bench_sections(const char *list);
// Runs the sections of the list, all of them when it is empty.
void check_bench(check *c, const char *sections);

#endif
