// SPDX-License-Identifier: Apache-2.0
// Sums of the exponentials of rows of logits, by blocks of tokens.
#include "live/device/cuda/dist.cuh"

// Sixteen threads per block of tokens, which add as theory/rows/softmax.c does: thread j the tokens
// j, j
// + 16, ..., then halves. A row is read once, by 63 blocks of threads for 128 k tokens; each thread
// has 8 loads under way and then 8 independent exponentials of some 25 operations on doubles. So 1
// to 8 rows take the latency of three loads that follow one another (distribution, token, logit)
// and of the exponentials, 2 to 3 us; reading 4 MB of logits out of the L2 cache takes less than
// that. FILTERED: what is kept and the peaks are known, and blocks without a kept token are not
// read.
template <bool FILTERED>
static __global__ void sums_kernel(live_kept *kept, double *sum, float *peak, const int32_t *token,
                                   const float *logits, int64_t vocab, int64_t blocks,
                                   const cuda_dist *dist)
{
    cuda_wait_previous();
    const int64_t row = blockIdx.y, lane = threadIdx.x % DIST_LANES;
    const int64_t b = (int64_t)blockIdx.x * DIST_BLOCKS + threadIdx.x / DIST_LANES;
    double *const row_sum = sum + row * blocks;
    float *const row_peak = peak + row * blocks;
    dist_row r;
    const bool left_out = !dist_of(&r, row, token, logits, vocab, dist);
    const live_kept all = {-INFINITY, (int32_t)vocab};
    if ((left_out || !FILTERED) && blockIdx.x == 0 && threadIdx.x == 0)
        kept[row] = all;
    if (left_out) {
        if (lane == 0 && b < blocks) {
            row_sum[b] = 0.0;
            row_peak[b] = 0.0f;
        }
        return;
    }
    const live_kept keep = FILTERED ? kept[row] : all;
    float v[DIST_EACH];
    const bool any = b < blocks && (!FILTERED || row_peak[b] >= keep.least);
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
    const float most = FILTERED ? 0.0f : dist_peak(v);
    if (lane > 0 || b >= blocks)
        return;
    row_sum[b] = e;
    if (!FILTERED)
        row_peak[b] = most;
}

int cuda_summarize(live_backend *b, live_kept *kept, double *sum, float *peak, const int32_t *token,
                   const float *logits, int64_t rows, int64_t vocab, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int failed = cuda_use(c, err);
    if (failed || rows == 0)
        return failed;
    const cuda_dists dists = cuda_dists_of(c->batch->dist);
    if (dists == CUDA_NO_DIST)
        return dsc_fail(err, DSC_EUSAGE, "summarize: a pass without a distribution");
    if (dists == CUDA_FILTERED)
        failed = cuda_cut(c, kept, peak, token, logits, rows, vocab, err);
    const int64_t blocks = cuda_blocks(vocab, DIST_BLOCK);
    const dim3 grid((unsigned)cuda_blocks(vocab, DIST_CHUNK), (unsigned)rows);
    return failed ? failed
                  : cuda_launch(c, "summarize",
                                dists == CUDA_FILTERED ? sums_kernel<true> : sums_kernel<false>,
                                grid, DIST_THREADS, err, kept, sum, peak, token, logits, vocab,
                                blocks, c->pass.dist);
}
