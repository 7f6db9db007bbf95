// SPDX-License-Identifier: Apache-2.0
// Rows of logits summed up for draws: what theory/rows/softmax.h does, and the largest of each
// block.
#include "live/device/cpu.h"

#include "theory/rows/softmax.h"

#include <math.h>
#include <string.h>

enum { BLOCK = DSC_SOFTMAX_BLOCK };

static void find_peaks(float *peak, const float *x, int64_t vocab)
{
    for (int64_t first = 0; first < vocab; first += BLOCK) {
        const int64_t end = vocab - first < BLOCK ? vocab : first + BLOCK;
        float most = x[first];
        for (int64_t i = first + 1; i < end; i++)
            most = x[i] > most ? x[i] : most;
        peak[first / BLOCK] = most;
    }
}

// room[vocab]: scratch.
static live_kept sum_row(double *sum, const float *x, size_t vocab, float most,
                         const live_sampling *dist, double *room)
{
    const size_t top_k =
        dist->top_k > 0 && (size_t)dist->top_k < vocab ? (size_t)dist->top_k : vocab;
    dsc_softmax s;
    if (top_k < vocab || dist->top_p < 1)
        dsc_softmax_begin_filtered(&s, x, vocab, most, dist->temperature, top_k, dist->top_p, sum,
                                   room);
    else
        dsc_softmax_begin(&s, x, vocab, most, dist->temperature, sum);
    return (live_kept){s.least, (int32_t)s.last};
}

int live_cpu_summarize(live_backend *b, live_kept *kept, double *sum, float *peak,
                       const int32_t *token, const float *logits, int64_t rows, int64_t vocab,
                       dsc_error *err)
{
    const live_sampling *dist = cpu_of(b)->batch->dist;
    const size_t blocks = dsc_softmax_blocks((size_t)vocab);
    cpu_scratch *work = &cpu_of(b)->work;
    if (!dist)
        return dsc_fail(err, DSC_EUSAGE, "summarize: a pass without a distribution");
    int rc = live_cpu_scratch(work, (size_t)vocab * sizeof(double), err);
    for (int64_t i = 0; i < rows && !rc; i++) {
        const float *x = logits + i * vocab;
        double *row_sum = sum + (size_t)i * blocks;
        float *row_peak = peak + (size_t)i * blocks;
        if (token[i] < 0 || !isfinite(x[token[i]])) {
            kept[i] = (live_kept){-INFINITY, (int32_t)vocab};
            memset(row_sum, 0, blocks * sizeof *row_sum);
            memset(row_peak, 0, blocks * sizeof *row_peak);
            continue;
        }
        find_peaks(row_peak, x, vocab);
        kept[i] = sum_row(row_sum, x, (size_t)vocab, x[token[i]], dist, work->data);
    }
    return rc;
}
