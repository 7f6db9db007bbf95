// SPDX-License-Identifier: Apache-2.0
// Attention over the cache, split over the context (Dao et al. 2023, "Flash-Decoding"), with the
// mask of a tree: one kernel goes over the keys and leaves a partial result per split, a second one
// merges them.
//
// What a token sees is a list: the slots of the prefix, then the slots of its mask in ascending
// order. Place i of the list is position i of the token's text, so the list is the same whether the
// token is decoded alone or in a tree, whatever slots lie between. The list is cut into chunks of
// 32 places and the chunks into splits; a chunk is one step of an online softmax, and the order of
// all sums follows from the places alone. So a token's result does not depend on the other tokens
// of its pass: splits, chunks and places in which it sees nothing change no bit of it.
#include "live/cuda/cuda.cuh"

enum {
    ATTEND_WARPS = 4,
    ATTEND_SPLIT = 256,     // places of a split: 8 chunks, two for each warp
    ATTEND_LONG_PASS = 128, // from here on tokens alone fill the device: no splits
    ATTEND_INVARIANT = 128, // tokens of a launch of an invariant backend
    ATTEND_PARTS = 1 << 28, // bytes of partial results of a launch, but for those of one token
};

typedef struct attend_job {
    void *out;        // [rows][heads * head] in `dtype`
    const float *qkv; // [rows][(heads + 2 kv_heads) * head]
    const void *k, *v;
    dsc_dtype dtype; // of out
    int64_t heads, kv_heads, group, head, slots, window;
    int64_t first_token, tokens; // of each sequence: those that this launch serves
    float scale;
    int64_t splits; // 1: no partial results
    float *part;    // [tokens of all sequences][heads][splits][head]
    float2 *sums;   // [...][splits]: largest score, sum of exponentials
} attend_job;

// What a token sees.
typedef struct sight {
    const uint64_t *mask;
    int64_t tail;   // the place where its mask begins
    int64_t length; // places
    int64_t low;    // places up to here are behind the window
    int64_t shared; // leading places whose slot has the same number
} sight;

static __device__ sight look(const attend_job &j, const cuda_pass &pass, int64_t token)
{
    sight s;
    s.mask = pass.mask + token * pass.words;
    const int64_t prefix = *pass.prefix, position = pass.position[token];
    int64_t seen = 0, run = 0;
    for (int64_t w = 0; w < pass.words; w++) {
        const uint64_t bits = s.mask[w];
        if (run == w * 64)
            run += ~bits ? __ffsll((long long)~bits) - 1 : 64;
        seen += __popcll(bits);
    }
    // A window may have taken slots out of the mask; the last place is the token's position then
    // too, so far as the cache reaches.
    s.tail = prefix;
    if (position + 1 - seen > prefix && position < j.slots)
        s.tail = position + 1 - seen;
    s.length = s.tail + seen;
    s.low = j.window > 0 ? position - j.window : -1;
    s.shared = s.tail == prefix ? prefix + run : prefix;
    return s;
}

// The slot of a place of the list, place >= prefix.
static __device__ int64_t slot_of(const sight &s, int64_t place, int64_t prefix, int64_t words)
{
    int left = (int)(place - s.tail); // set bits before the one that is looked for
    for (int64_t w = 0; w < words; w++) {
        uint64_t bits = s.mask[w];
        const int count = __popcll(bits);
        if (left < count) {
            for (; left > 0; left--)
                bits &= bits - 1;
            return prefix + w * 64 + __ffsll((long long)bits) - 1;
        }
        left -= count;
    }
    return 0; // not reached: place < s.length
}

// Numbers [i, i + 8) of a row of `head`; zeros behind it.
template <typename T>
static __device__ __forceinline__ void load_some(float (&v)[8], const T *row, int64_t i,
                                                 int64_t head)
{
    if (head % 8 == 0) {
        cuda_load8(v, row + i);
    } else {
#pragma unroll
        for (int e = 0; e < 8; e++)
            v[e] = i + e < head ? cuda_float(row[i + e]) : 0.0f;
    }
}

// Numbers [i, i + N) of a row of `head`: a lane's share of a value.
template <typename T, int N>
static __device__ __forceinline__ void load_share(float (&v)[N], const T *row, int64_t i,
                                                  int64_t head)
{
    if (sizeof(T) == 2 && N == 8 && head == CUDA_LANES * N) {
        float all[8];
        cuda_load8(all, row + i);
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = all[e];
    } else if (sizeof(T) == 2 && N == 4 && head == CUDA_LANES * N) {
        const uint2 raw = *(const uint2 *)(row + i);
        const T *t = (const T *)&raw;
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = cuda_float(t[e]);
    } else {
#pragma unroll
        for (int e = 0; e < N; e++)
            v[e] = i + e < head ? cuda_float(row[i + e]) : 0.0f;
    }
}

// A warp's state of the online softmax: ROWS queries; a lane holds N numbers of each output, and of
// row = lane the largest score and the sum of exponentials so far.
template <int ROWS, int N> struct softmax {
    float out[ROWS][N];
    float most, sum;
};

// One chunk: lane i of a warp stands for a key, `slot`, visible to row r when `seen` and either in
// the mask (`masked`) or above row r's window. Rows [first, last) take part. Scores: a lane makes
// the products of its key with all rows, so that a key is read once. Outputs: a lane makes its N
// numbers of all rows, and the 32 values are read in turn, each by the whole warp.
template <typename T, int ROWS, int N>
static __device__ __forceinline__ void attend_chunk(softmax<ROWS, N> &s, const attend_job &j,
                                                    const float (*query)[CUDA_LANES * N],
                                                    float (*weight)[CUDA_LANES], const T *k,
                                                    const T *v, int64_t slot, int64_t place,
                                                    bool seen, bool masked, const int64_t *low,
                                                    int64_t least_low, int first, int last)
{
    const unsigned everyone = 0xffffffffu;
    const int lane = threadIdx.x % CUDA_LANES;
    const int64_t stride = j.kv_heads * j.head;
    const bool any = seen && (masked || place > least_low);
    const unsigned who = __ballot_sync(everyone, any);
    if (!who)
        return;
    // Lanes without a key read one that is seen: what memory holds elsewhere may not be a number.
    const int64_t other = __shfl_sync(everyone, (long long)slot, __ffs((int)who) - 1);
    slot = any ? slot : other;

    float score[ROWS] = {};
    const T *key = k + slot * stride;
#pragma unroll 2
    for (int64_t i = 0; i < j.head; i += 8) {
        float x[8];
        load_some(x, key, i, j.head);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r < first || r >= last)
                continue;
            const float4 a = *(const float4 *)&query[r][i], b = *(const float4 *)&query[r][i + 4];
            float t = score[r];
            t = fmaf(a.x, x[0], t), t = fmaf(a.y, x[1], t);
            t = fmaf(a.z, x[2], t), t = fmaf(a.w, x[3], t);
            t = fmaf(b.x, x[4], t), t = fmaf(b.y, x[5], t);
            t = fmaf(b.z, x[6], t), t = fmaf(b.w, x[7], t);
            score[r] = t;
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (r < first || r >= last)
            continue;
        const bool visible = seen && (masked || place > low[r]);
        const float x = visible ? __fmul_rn(score[r], j.scale) : -INFINITY;
        const float before = __shfl_sync(everyone, s.most, r);
        const float most = fmaxf(before, cuda_warp_max(x));
        const float e = visible ? expf(x - (most == -INFINITY ? 0.0f : most)) : 0.0f;
        const float shrink = before == most ? 1.0f : expf(before - most);
        const float total = cuda_warp_sum(e);
        if (lane == r) {
            s.sum = fmaf(s.sum, shrink, total);
            s.most = most;
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            s.out[r][i] *= shrink;
        weight[r][lane] = e;
    }
    __syncwarp();
#pragma unroll 1
    for (int from = 0; from < CUDA_LANES; from += 4) {
        float x[4][N];
#pragma unroll
        for (int n = 0; n < 4; n++)
            load_share(x[n], v + __shfl_sync(everyone, (long long)slot, from + n) * stride,
                       (int64_t)lane * N, j.head);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (r < first || r >= last)
                continue;
            const float4 w = *(const float4 *)&weight[r][from];
#pragma unroll
            for (int i = 0; i < N; i++) {
                float t = s.out[r][i];
                t = fmaf(w.x, x[0][i], t), t = fmaf(w.y, x[1][i], t);
                t = fmaf(w.z, x[2][i], t), t = fmaf(w.w, x[3][i], t);
                s.out[r][i] = t;
            }
        }
    }
    __syncwarp(); // weights are read before the next chunk writes them
}

// A block per (ROWS queries that share a key head, split, key head and sequence). The queries of a
// key head are numbered token by token: query f is head f % group of token f / group. Chunks go to
// the warps in turn. While all queries of the block see the same slots (the prefix, and what their
// masks begin with alike) they share a chunk; then each token has its own.
//
// Reads the keys and values of what is seen once per ROWS queries: for one token, once, 2 * length
// * kv_heads * head numbers, the bound. Does 4 * head operations per pair of query and place on the
// ordinary cores; from some 16 tokens on that is more than the reading.
template <typename T, int ROWS, int N>
static __global__ void __launch_bounds__(ATTEND_WARPS *CUDA_LANES)
    attend_kernel(attend_job j, cuda_pass pass)
{
    cuda_wait_previous();
    __shared__ __align__(16) float query[ROWS][CUDA_LANES * N], merged[ROWS][CUDA_LANES * N];
    __shared__ __align__(16) float weight[ATTEND_WARPS][ROWS][CUDA_LANES];
    __shared__ float most[ROWS], sum[ROWS];
    __shared__ int64_t low[ROWS];
    __shared__ sight sights[ROWS]; // of the tokens in the block, in order
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    const int64_t kv_head = blockIdx.z % j.kv_heads, sequence = blockIdx.z / j.kv_heads;
    const int64_t from = (int64_t)blockIdx.x * ROWS, queries = j.tokens * j.group;
    const int rows = (int)(queries - from < ROWS ? queries - from : ROWS);
    const int64_t token0 = from / j.group; // of the launch
    const int here = (int)((from + rows - 1) / j.group - token0) + 1;
    const int64_t prefix = *pass.prefix;
    const int64_t all_heads = j.heads + 2 * j.kv_heads;

    if ((int)threadIdx.x < here)
        sights[threadIdx.x] = look(j, pass, j.first_token + token0 + threadIdx.x);
    __syncthreads();
    int64_t length = 0, shared = INT64_MAX, least_low = INT64_MAX;
    for (int t = 0; t < here; t++) {
        const sight &s = sights[t];
        length = s.length > length ? s.length : length;
        shared = s.shared < shared ? s.shared : shared;
        least_low = s.low < least_low ? s.low : least_low;
    }
    const int64_t begin = j.splits > 1 ? (int64_t)blockIdx.y * ATTEND_SPLIT : 0;
    if (begin >= length) // the whole block
        return;
    const int64_t end =
        j.splits > 1 && begin + ATTEND_SPLIT < length ? begin + ATTEND_SPLIT : length;
    for (int r = warp; r < ROWS; r += ATTEND_WARPS) {
        const int64_t f = from + r, row = sequence * pass.tokens + j.first_token + f / j.group;
        const float *q = j.qkv + (row * all_heads + kv_head * j.group + f % j.group) * j.head;
        for (int i = lane; i < CUDA_LANES * N; i += CUDA_LANES)
            query[r][i] = r < rows && i < j.head ? q[i] : 0.0f;
        if (lane == 0)
            low[r] = r < rows ? sights[f / j.group - token0].low : INT64_MAX;
    }
    __syncthreads();

    const int64_t start = (sequence * j.slots * j.kv_heads + kv_head) * j.head;
    const T *k = (const T *)j.k + start, *v = (const T *)j.v + start;
    softmax<ROWS, N> s = {};
    s.most = -INFINITY;
    for (int64_t base = begin + warp * CUDA_LANES; base < end; base += ATTEND_WARPS * CUDA_LANES) {
        const int64_t place = base + lane;
        const bool together = base + CUDA_LANES <= shared;
        for (int t = 0; t < (together ? 1 : here); t++) {
            const sight &own = sights[t];
            if (base >= own.length)
                continue;
            const bool masked = place >= own.tail && place < own.length;
            const bool seen = masked || place < prefix;
            const int64_t slot =
                masked && !together ? slot_of(own, place, prefix, pass.words) : place;
            const int64_t r0 = (token0 + t) * j.group - from, r1 = r0 + j.group;
            attend_chunk<T, ROWS, N>(s, j, query, weight[warp], k, v, slot, place, seen, masked,
                                     low, together ? least_low : own.low,
                                     together || r0 < 0 ? 0 : (int)r0,
                                     together || r1 > rows ? rows : (int)r1);
        }
    }

    for (int w = 0; w < ATTEND_WARPS; w++) { // in order, so that the sums are always the same
        if (warp == w) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const float mine = __shfl_sync(0xffffffffu, s.most, r);
                const float my_sum = __shfl_sync(0xffffffffu, s.sum, r);
                const float other = w ? most[r] : -INFINITY, other_sum = w ? sum[r] : 0.0f;
                const float top = fmaxf(mine, other);
                const float a = other == top ? 1.0f : expf(other - top);
                const float b = mine == top ? 1.0f : expf(mine - top);
#pragma unroll
                for (int i = 0; i < N; i++) {
                    float *m = &merged[r][lane * N + i];
                    *m = fmaf(s.out[r][i], b, w ? *m * a : 0.0f);
                }
                __syncwarp(); // all have read most[r] and sum[r]
                if (lane == 0) {
                    sum[r] = fmaf(my_sum, b, other_sum * a);
                    most[r] = top;
                }
            }
        }
        __syncthreads();
    }
    for (int64_t i = threadIdx.x; i < rows * j.head; i += blockDim.x) {
        const int64_t r = i / j.head, d = i % j.head, f = from + r;
        const int64_t head = kv_head * j.group + f % j.group, token = f / j.group;
        if (j.splits == 1) {
            const int64_t row = sequence * pass.tokens + j.first_token + token;
            cuda_store(j.out, j.dtype, (row * j.heads + head) * j.head + d, merged[r][d] / sum[r]);
        } else {
            const int64_t row = sequence * j.tokens + token;
            const int64_t p = (row * j.heads + head) * j.splits + blockIdx.y;
            j.part[p * j.head + d] = merged[r][d];
            if (d == 0)
                j.sums[p] = make_float2(most[r], sum[r]);
        }
    }
}

// A block per (row, head), a thread per number: out = sum of the splits' outputs over the sum of
// their sums, each relative to its largest score. Reads what attend_kernel wrote, once; only the
// splits that the token's text reaches.
static __global__ void merge_kernel(attend_job j, cuda_pass pass)
{
    cuda_wait_previous();
    const int64_t row = blockIdx.x / j.heads, head = blockIdx.x % j.heads;
    const int64_t sequence = row / j.tokens, token = j.first_token + row % j.tokens;
    const int64_t splits = (look(j, pass, token).length + ATTEND_SPLIT - 1) / ATTEND_SPLIT;
    const float2 *sums = j.sums + (int64_t)blockIdx.x * j.splits;
    const float *part = j.part + (int64_t)blockIdx.x * j.splits * j.head;
    float top = -INFINITY;
    for (int64_t s = 0; s < splits; s++)
        top = fmaxf(top, sums[s].x);
    for (int64_t d = threadIdx.x; d < j.head; d += blockDim.x) {
        float total = 0.0f, out = 0.0f;
#pragma unroll 4
        for (int64_t s = 0; s < splits; s++) {
            const float by = sums[s].x == top ? 1.0f : expf(sums[s].x - top);
            total = fmaf(sums[s].y, by, total);
            out = fmaf(part[s * j.head + d], by, out);
        }
        cuda_store(j.out, j.dtype, ((sequence * pass.tokens + token) * j.heads + head) * j.head + d,
                   out / total);
    }
}

template <typename T>
static void (*kernel_for(int64_t head, int64_t queries, int *rows))(attend_job, cuda_pass)
{
    *rows = queries <= 4 ? 4 : head > 128 ? 8 : 16;
    if (head > 128)
        return *rows == 4 ? attend_kernel<T, 4, 8> : attend_kernel<T, 8, 8>;
    if (head > 64)
        return *rows == 4 ? attend_kernel<T, 4, 4> : attend_kernel<T, 16, 4>;
    return *rows == 4 ? attend_kernel<T, 4, 2> : attend_kernel<T, 16, 2>;
}

// Partial results of a token, in all sequences: its cache's splits, as longer texts replay the
// pass.
static int64_t parts_of(const live_cuda *c, const attend_job *j)
{
    return c->pass.sequences * j->heads * j->splits;
}

static size_t part_bytes(const attend_job *j)
{
    return sizeof *j->sums + (size_t)j->head * sizeof *j->part;
}

static int attend_tokens(live_cuda *c, attend_job *j, int64_t first, int64_t count, dsc_dtype dtype,
                         dsc_error *err)
{
    int rows = 0;
    const int64_t queries = count * j->group, sequences = c->pass.sequences;
    void (*kernel)(attend_job, cuda_pass) =
        dtype == DSC_F32   ? kernel_for<float>(j->head, queries, &rows)
        : dtype == DSC_F16 ? kernel_for<__half>(j->head, queries, &rows)
                           : kernel_for<__nv_bfloat16>(j->head, queries, &rows);
    j->first_token = first;
    j->tokens = count;
    if (j->splits > 1) {
        void *room = NULL;
        const size_t parts = (size_t)(count * parts_of(c, j));
        const int failed = cuda_scratch(c, CUDA_PARTIALS, parts * part_bytes(j), &room, err);
        if (failed)
            return failed;
        j->sums = (float2 *)room;
        j->part = (float *)(j->sums + parts);
    }
    const dim3 grid((unsigned)cuda_blocks(queries, rows), (unsigned)j->splits,
                    (unsigned)(sequences * (j->heads / j->group)));
    const int failed =
        cuda_launch(c, "attend", kernel, grid, ATTEND_WARPS * CUDA_LANES, err, *j, c->pass);
    if (failed || j->splits == 1)
        return failed;
    return cuda_launch(c, "attend: merge", merge_kernel,
                       dim3((unsigned)(count * sequences * j->heads)), cuda_threads(j->head, 1),
                       err, *j, c->pass);
}

int cuda_attend(live_backend *b, void *out, const float *qkv, const live_attention *a,
                const live_cache *cache, int64_t layer, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int failed = cuda_use(c, err);
    if (failed)
        return failed;
    if (a->head > 256)
        return dsc_fail(err, DSC_EABSENT, "%s: attention heads of %lld numbers; at most 256",
                        b->device, (long long)a->head);
    attend_job j = {};
    j.out = out;
    j.dtype = a->stored ? cache->dtype : DSC_F32;
    j.qkv = qkv;
    j.k = cache->k[layer];
    j.v = cache->v[layer];
    j.heads = a->heads;
    j.kv_heads = a->kv_heads;
    j.group = a->heads / a->kv_heads;
    j.head = a->head;
    j.slots = cache->slots;
    j.window = a->window;
    j.scale = (float)a->scale;
    const int64_t tokens = c->pass.tokens;
    const bool unsplit = tokens > ATTEND_LONG_PASS && !b->invariant;
    j.splits = unsplit ? 1 : cuda_blocks(cache->slots, ATTEND_SPLIT);
    int64_t each = b->invariant ? (int64_t)ATTEND_INVARIANT : tokens;
    const int64_t fit = ATTEND_PARTS / (parts_of(c, &j) * (int64_t)part_bytes(&j));
    if (j.splits > 1 && each > fit)
        each = fit > 1 ? fit : 1;
    for (int64_t first = 0; first < tokens && !failed; first += each)
        failed = attend_tokens(c, &j, first, tokens - first < each ? tokens - first : each,
                               cache->dtype, err);
    return failed;
}
