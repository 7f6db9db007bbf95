// SPDX-License-Identifier: Apache-2.0
// Sums the exponentials of rows of logits by blocks of tokens, for the next-token distribution.
#include "live/device/cuda/dist.cuh"

// Sixteen threads per block of tokens, in theory/rows/softmax.c's order: thread j sums tokens j, j
// + 16, ..., then halves are added. 63 blocks of threads read a row of 128 k tokens once; each
// thread has 8 loads in flight and then 8 independent exponentials of some 25 double operations. So
// 1 to 8 rows take the latency of three dependent loads (distribution, token, logit) and of the
// exponentials, 2 to 3 us; reading 4 MB of logits from the L2 cache takes less. FILTERED: kept
// tokens and maxima are already known, and blocks without a kept token are not read.
template <bool FILTERED>
static __global__ void sums_kernel(live_kept *kept, double *sum, float *max_logit,
                                   const int32_t *token, const float *logits, int64_t vocab,
                                   int64_t blocks, const cuda_dist *dist)
{
    cuda_wait_previous();
    const int64_t row = blockIdx.y, lane = threadIdx.x % DIST_LANES;
    const int64_t b = (int64_t)blockIdx.x * DIST_BLOCKS + threadIdx.x / DIST_LANES;
    double *const row_sum = sum + row * blocks;
    float *const row_max = max_logit + row * blocks;
    dist_row r;
    const bool left_out = !dist_of(&r, row, token, logits, vocab, dist);
    const live_kept all = {-INFINITY, (int32_t)vocab};
    if ((left_out || !FILTERED) && blockIdx.x == 0 && threadIdx.x == 0)
        kept[row] = all;
    if (left_out) {
        if (lane == 0 && b < blocks) {
            row_sum[b] = 0.0;
            row_max[b] = 0.0f;
        }
        return;
    }
    const live_kept keep = FILTERED ? kept[row] : all;
    float v[DIST_EACH];
    const bool any = b < blocks && (!FILTERED || row_max[b] >= keep.least);
    dist_load(v, r.x, b, any ? vocab : 0, -INFINITY);
    double e = 0.0;
#pragma unroll
    for (int i = 0; i < DIST_EACH; i++) {
        const int64_t at = b * DIST_BLOCK + i * DIST_LANES + lane;
        if (!FILTERED || v[i] > keep.least || (v[i] == keep.least && at <= keep.last))
            e += dist_weight(&r, v[i]);
    }
#pragma unroll
    for (int step = DIST_LANES / 2; step > 0; step /= 2)
        e += __shfl_xor_sync(0xffffffffu, e, step);
    const float most = FILTERED ? 0.0f : dist_max(v);
    if (lane > 0 || b >= blocks)
        return;
    row_sum[b] = e;
    if (!FILTERED)
        row_max[b] = most;
}

int cuda_summarize(live_backend *b, const live_summary *s, const float *logits, int64_t rows,
                   int64_t vocab, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int failed = cuda_use(c, err);
    if (failed || rows == 0)
        return failed;
    const cuda_dists dists = cuda_dists_of(c->batch->dist);
    if (dists == CUDA_NO_DIST)
        return dsc_fail(err, DSC_EUSAGE, "summarize: a pass without a distribution");
    if (dists == CUDA_FILTERED)
        failed = cuda_cut(c, s, logits, rows, vocab, err);
    const int64_t blocks = cuda_blocks(vocab, DIST_BLOCK);
    const dim3 grid((unsigned)cuda_blocks(vocab, DIST_CHUNK), (unsigned)rows);
    return failed ? failed
                  : cuda_launch(c, "summarize",
                                dists == CUDA_FILTERED ? sums_kernel<true> : sums_kernel<false>,
                                grid, DIST_THREADS, err, s->kept, s->sum, s->max_logit, s->best,
                                logits, vocab, blocks, c->pass->dist);
}
