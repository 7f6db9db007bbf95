// SPDX-License-Identifier: Apache-2.0
// Internal: compares every operation of a device with the CPU's. Memory comes in twins, one on each
// device, with equal initial contents; a check runs the operation on both and compares all memory
// that it may write and the memory around it.
#ifndef DSC_LIVE_CHECK_OPS_H
#define DSC_LIVE_CHECK_OPS_H

#include "live/device/backend.h"

typedef struct check {
    live_backend *cpu, *device;
    live_backend *invariant; // the device again, batch-invariant
    bool quick;              // skip the larger shapes
    int64_t passed, failed;
    uint64_t draws; // random numbers drawn so far
    dsc_error error;
} check;

typedef struct twin {
    void *cpu, *device;
    int64_t count;
    dsc_dtype cpu_dtype, device_dtype;
} twin;

// Ends the program with the message if an operation failed, because later results would be
// meaningless.
void check_call(check *c, int status, const char *what);
// Records a result and prints a line.
void check_line(check *c, bool good, double error, double tolerance, const char *format, ...)
    DSC_PRINTF(5, 6);

// Allocates a twin filled with NaN.
twin check_twin(check *c, int64_t count, dsc_dtype cpu_dtype, dsc_dtype device_dtype);
void check_twin_free(check *c, twin *t);
// Fills both with numbers uniform in [-limit, limit) that `exact` represents exactly.
void check_twin_fill(check *c, twin *t, int64_t first, int64_t count, dsc_dtype exact,
                     double limit);
void check_twin_set(check *c, twin *t, int64_t first, const float *from, int64_t count);
// The largest difference relative to the CPU's largest number; infinite if only one of two numbers
// is NaN.
double check_twin_error(check *c, const twin *t);
void check_twin_numbers(check *c, const twin *t, bool device, float *out);

// Maximum relative error of rounding to a dtype; 0 for F32.
double check_half_unit(dsc_dtype dtype);
// Rounds to the nearest number of the dtype, ties to even.
float check_rounded(float x, dsc_dtype dtype);

uint32_t check_draw(check *c, uint32_t below);

// Lists of a pass: a chain, or with `branches` a tree (each node's parent is random), after a
// prefix.
typedef struct check_pass {
    live_batch batch;
    int32_t *token, *position, *slot, *output, *feature, *parent;
    uint64_t *mask, *whole; // with the window, and without it
} check_pass;
check_pass check_pass_new(check *c, int64_t tokens, int64_t sequences, int64_t prefix,
                          int64_t window, bool branches, int64_t vocab);
void check_pass_free(check_pass *p);
void check_begin(check *c, const live_batch *batch);
void check_end(check *c);

void check_rows(check *c); // embed, gather, scatter, norm, activate, add, select
void check_products(check *c);
void check_dists(check *c);     // summarize, fetch
void check_overlap(check *c);   // compare, list, sample_residual
void check_attention(check *c); // rotate, attend, move
void check_passes(check *c);    // replayed passes, memory
void check_invariance(check *c);

// A list of sections has commas between; an empty one lists all. check_listed: whether it lists
// `name`. check_words: the number of its words, 0 for an empty one.
bool check_listed(const char *list, const char *name);
int check_words(const char *list);

// The sections of the benchmark: matrix products; attention; the other operations of a layer;
// top-k, top-p and sums over logits; draft/target overlap.
#define BENCH_SECTIONS "products, attention, rows, sampling, overlap"
// The number of sections in a list.
int check_bench_sections(const char *list);
// Runs the listed sections.
void check_bench(check *c, const char *list);

#endif
