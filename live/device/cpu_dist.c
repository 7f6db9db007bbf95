// SPDX-License-Identifier: Apache-2.0
// Sums the exponentials of rows of logits by blocks, for sampling, as theory/rows/softmax.h defines
// them, and computes the largest logit of each block.
#include "live/device/cpu.h"

#include "theory/rows/softmax.h"

#include <math.h>
#include <string.h>

enum { BLOCK = DSC_SOFTMAX_BLOCK };

static void find_max_logits(float *max_logit, const float *x, int64_t vocab)
{
    for (int64_t first = 0; first < vocab; first += BLOCK) {
        const int64_t end = vocab - first < BLOCK ? vocab : first + BLOCK;
        float most = x[first];
        for (int64_t i = first + 1; i < end; i++)
            most = x[i] > most ? x[i] : most;
        max_logit[first / BLOCK] = most;
    }
}

// room[vocab] is scratch memory.
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

int live_cpu_summarize(live_backend *b, const live_summary *s, const float *logits, int64_t rows,
                       int64_t vocab, dsc_error *err)
{
    const live_sampling *dist = cpu_of(b)->batch->dist;
    const size_t blocks = dsc_softmax_blocks((size_t)vocab);
    cpu_scratch *work = &cpu_of(b)->work;
    if (!dist)
        return dsc_fail(err, DSC_EUSAGE, "summarize: the batch has no distribution");
    int rc = live_cpu_scratch(work, (size_t)vocab * sizeof(double), err);
    for (int64_t i = 0; i < rows && !rc; i++) {
        const float *x = logits + i * vocab;
        const int32_t best = s->best[i];
        double *sum = s->sum + (size_t)i * blocks;
        float *max_logit = s->max_logit + (size_t)i * blocks;
        if (best < 0 || !isfinite(x[best])) {
            s->kept[i] = (live_kept){-INFINITY, (int32_t)vocab};
            memset(sum, 0, blocks * sizeof *sum);
            memset(max_logit, 0, blocks * sizeof *max_logit);
            continue;
        }
        find_max_logits(max_logit, x, vocab);
        s->kept[i] = sum_row(sum, x, (size_t)vocab, x[best], dist, work->data);
    }
    return rc;
}
