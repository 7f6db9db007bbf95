// SPDX-License-Identifier: Apache-2.0
// Norms and rotates queries and keys and writes the KV cache, in one kernel between the QKV product
// and the attention.
#include "live/device/cuda/cuda.cuh"

enum { ROTATE_WARPS = 4 }; // warps of a block

typedef struct rotate_job {
    float *qkv;  // [rows][(heads + 2 kv_heads) * head]
    void *k, *v; // of the layer
    int64_t heads, kv_heads, head, rotated, slots;
    const float *inv_freq, *q_norm, *k_norm;
    float epsilon;
} rotate_job;

// A warp per (row, head of q, k or v): grid (rows, heads / ROTATE_WARPS). A lane owns the pairs (i,
// i + rotated / 2), i = lane, lane + 32, ..., and the numbers after `rotated` at the same stride,
// so the work is in place. Reads and writes each number of qkv once, which is negligible compared
// with the weights. Angles are computed as in Hugging Face transformers: the product of two floats,
// then its cosine and sine.
template <typename T> static __global__ void rotate_kernel(rotate_job j, cuda_pass pass)
{
    cuda_wait_previous();
    const int lane = threadIdx.x % CUDA_LANES;
    const int64_t which = (int64_t)blockIdx.y * ROTATE_WARPS + threadIdx.x / CUDA_LANES;
    const int64_t all = j.heads + 2 * j.kv_heads, row = blockIdx.x;
    if (which >= all) // a whole warp
        return;
    const int64_t token = row % pass.tokens, sequence = row / pass.tokens;
    const int shift = cuda_shift(pass, sequence);
    const bool query = which < j.heads, value = which >= j.heads + j.kv_heads;
    float *x = j.qkv + (row * all + which) * j.head;
    T *kept = NULL; // in the cache
    if (!query) {
        const int64_t kv_head = value ? which - j.heads - j.kv_heads : which - j.heads;
        const int64_t place = sequence * j.slots + pass.slot[token] + shift;
        kept = (T *)(value ? j.v : j.k) + (place * j.kv_heads + kv_head) * j.head;
    }
    const float *norm = value ? NULL : query ? j.q_norm : j.k_norm;
    float scale = 1.0f;
    if (norm) {
        float square = 0.0f;
        for (int64_t i = lane; i < j.head; i += CUDA_LANES)
            square = fmaf(x[i], x[i], square);
        scale = 1.0f / sqrtf(cuda_warp_sum(square) / (float)j.head + j.epsilon);
        __syncwarp(); // a lane writes what another has read for this sum
    }
    const int64_t rotated = value ? 0 : j.rotated, half = rotated / 2;
    const float position = (float)(pass.position[token] + shift);
    for (int64_t i = lane; i < half; i += CUDA_LANES) {
        float a = x[i], b = x[i + half], sine, cosine;
        if (norm) {
            a *= scale * norm[i];
            b *= scale * norm[i + half];
        }
        sincosf(position * j.inv_freq[i], &sine, &cosine);
        const float low = a * cosine - b * sine, high = b * cosine + a * sine;
        if (query) {
            x[i] = low;
            x[i + half] = high;
        } else {
            kept[i] = cuda_round<T>(low);
            kept[i + half] = cuda_round<T>(high);
        }
    }
    for (int64_t i = rotated + lane; i < j.head; i += CUDA_LANES) {
        const float y = norm ? x[i] * (scale * norm[i]) : x[i];
        if (query)
            x[i] = y;
        else
            kept[i] = cuda_round<T>(y);
    }
}

int cuda_rotate(live_backend *b, float *qkv, const live_rotation *r, const live_attention *a,
                const live_cache *cache, int64_t layer, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int failed = cuda_use(c, err);
    if (failed)
        return failed;
    rotate_job j = {};
    j.qkv = qkv;
    j.k = cache->k[layer];
    j.v = cache->v[layer];
    j.heads = a->heads;
    j.kv_heads = a->kv_heads;
    j.head = a->head;
    j.rotated = r->rotated;
    j.slots = cache->slots;
    j.inv_freq = r->inv_freq;
    j.q_norm = r->q_norm;
    j.k_norm = r->k_norm;
    j.epsilon = (float)r->epsilon;
    const int64_t all = a->heads + 2 * a->kv_heads;
    void (*kernel)(rotate_job, cuda_pass) = cache->dtype == DSC_F32 ? rotate_kernel<float>
                                            : cache->dtype == DSC_F16
                                                ? rotate_kernel<__half>
                                                : rotate_kernel<__nv_bfloat16>;
    for (int i = 0; i < c->parts && !failed; i++) {
        const cuda_pass *pass = &c->pass[i];
        const int64_t rows = pass->tokens * pass->sequences;
        const dim3 grid((unsigned)rows, (unsigned)cuda_blocks(all, ROTATE_WARPS));
        failed = cuda_launch(c, "rotate", kernel, grid, ROTATE_WARPS * CUDA_LANES, err, j, *pass);
        j.qkv += rows * all * a->head;
        j.k = cuda_next_sequences(j.k, cache, pass);
        j.v = cuda_next_sequences(j.v, cache, pass);
    }
    return failed;
}
