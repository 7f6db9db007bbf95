// SPDX-License-Identifier: Apache-2.0
// A model with room for the largest pass of a measurement, and passes over sequences of different
// lengths. What the tokens are does not matter to a pass, so they and the KV cache are arbitrary;
// the numbers in the cache are random, because some machines are faster with zeros.
#ifndef DSC_LIVE_BENCH_H
#define DSC_LIVE_BENCH_H

#include "base/memory.h"
#include "live/model/model.h"

typedef struct live_bench {
    const live_weights *w, *target; // target: of a head
    live_backend *b;
    live_cache cache;
    live_room room;
    live_features features; // of a head
} live_bench;

// Maxima over the passes of a measurement.
typedef struct live_bench_size {
    int64_t rows, outputs;    // of a pass
    int64_t sequences, slots; // slots of each sequence
} live_bench_size;

// dtype of the matrices as stored on the device.
dsc_dtype live_stored_dtype(const live_weights *w);

// Checks the free memory, then takes it. `target` is that of a head. DSC_ENOMEM states the needed
// and the free size; live_bench_close frees after an error as well.
int live_bench_open(live_bench *n, const live_weights *w, const live_weights *target,
                    live_bench_size size, uint64_t seed, dsc_error *err);
void live_bench_close(live_bench *n); // zeroed: does nothing
// Runs a pass and waits for its end.
int live_bench_pass(live_bench *n, const live_batch *batch, double *seconds, dsc_error *err);

// Times are measured in rounds over all passes, a few in a row.
enum { LIVE_IN_A_ROW = 3 };
// The mean over rounds of the median of each; sorts the times within rounds. A round yields the
// median, which an interruption does not affect; the rounds yield their mean, because the tokens
// per second of a run are also a mean over fast and slow periods.
double live_typical(double *time, int repeats);
// A quantile of sorted x[n], linearly interpolated.
double live_quantile(const double *x, int n, double share);

// The tokens of one sequence in a pass.
typedef struct live_span {
    int32_t tokens, context; // >= 1; before them
    bool last;               // logits of its last token only, as for a part of a prompt
} live_span;

// Makes the batches of a pass over span[count], count >= 1, which are sorted by their numbers of
// tokens: *out and its lists live in `memory`. Token ids are below `vocab`.
int live_spans_batch(const live_batch **out, dsc_arena *memory, live_span *span, size_t count,
                     int64_t vocab, dsc_error *err);

#endif
