// SPDX-License-Identifier: Apache-2.0
// Attention over the cache, split over the context (Dao et al. 2023, "Flash-Decoding"), with a tree
// mask, in one launch: each block processes one split of the KV cache, and the last block of
// a group to arrive merges the partial results. attend.cuh defines splits and explains why results
// do not depend on the other tokens of a pass.
//
// Reading. Decoding is bound by the bytes of the KV cache, so the number of loads in flight
// matters: a lane has 8 to 12 loads of 16 bytes of keys in flight, then 8 to 16 loads of values,
// and more while it uses the previous ones. Head sizes 64, 96, 128 and 256 are template constants;
// one more kernel handles all others up to 256.
//
// The merge. A group is the blocks with the same queries. Every block knows how many of them have
// work. Each writes its partial result, orders it before an atomic increment of the group's
// counter, and the block that finds all others counted merges. The increment wraps to 0, so the
// counters are ready for the next launch. Partial results are read past the L1 cache.
#include "live/device/cuda/attend.cuh"

enum {
    ATTEND_LONG_PASS = 128, // from here on tokens alone fill the device: no splits
    ATTEND_INVARIANT = 128, // tokens of a launch of an invariant backend
    ATTEND_PARTS =
        1 << 28, // maximum bytes of partial results per launch, unless one token needs more
    ATTEND_PREFETCH = 64 << 10, // bytes that a block prefetches into L2 before it waits; 0: none
    ATTEND_DEPTH = 65535, // maximum number of blocks along y and z (CUDA C++ Programming Guide)
};

// --- reading -------------------------------------------------------------------------------------

// N adjacent numbers, read in as few loads as their bytes allow.
template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) numbers {
    T x[N];
};

// N numbers of dtype T as stored, kept in registers until they are used.
template <typename T, int N> struct raw_numbers {
    numbers<uint32_t, N * sizeof(T) / 4> word;
};

// Number e (a compile-time constant) as F32.
template <int N>
static __device__ __forceinline__ float number_of(const raw_numbers<float, N> &raw, int e)
{
    return __uint_as_float(raw.word.x[e]);
}
template <int N>
static __device__ __forceinline__ float number_of(const raw_numbers<__nv_bfloat16, N> &raw, int e)
{
    const uint32_t two = raw.word.x[e / 2];
    return __uint_as_float(e % 2 ? two & 0xffff0000u : two << 16);
}
template <int N>
static __device__ __forceinline__ float number_of(const raw_numbers<__half, N> &raw, int e)
{
    const uint32_t two = raw.word.x[e / 2];
    return __half2float(__ushort_as_half((unsigned short)(e % 2 ? two >> 16 : two & 0xffffu)));
}

// Constants of a kernel by head size and dtype; HEAD 0: the size is known at run time, up to 256.
template <typename T, int HEAD> struct attend_shape {
    static const int width = HEAD ? HEAD : 256;
    // A lane's numbers of an output and of a value; all 32 lanes have a share, or 24 of them for
    // 96.
    static const int share = width <= 64 ? 2 : width <= 128 ? 4 : 8;
    // Units of 8 numbers of each of four keys that a lane reads before it uses them: 8 loads of 16
    // bytes, 12 for 96.
    static const int units = !HEAD || sizeof(T) == 4 ? 1 : HEAD == 96 ? 3 : 2;
    // Values that a lane reads before it uses them: 128 bytes, 8 to 16 loads.
    static const int values = share * sizeof(T) <= 8 ? 16 : 128 / (share * (int)sizeof(T));
};

// Loads numbers [i, i + N) of COUNT rows of `head` numbers, with zeros after a row. All loads are
// issued before one is used: the barrier keeps the compiler from moving a load down to its use.
// HEAD is a multiple of N; a size that is a multiple of 8 keeps all rows aligned.
template <int HEAD, int N, int COUNT, typename T>
static __device__ __forceinline__ void read_rows(raw_numbers<T, N> (&raw)[COUNT],
                                                 const T *const (&row)[COUNT], int i, int head)
{
    enum { WORDS = N * sizeof(T) / 4 };
    if (HEAD || head % 8 == 0) {
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            raw[n].word = {};
            if (HEAD || i < head)
                raw[n].word = *(const numbers<uint32_t, WORDS> *)(row[n] + i);
        }
    } else {
#pragma unroll
        for (int n = 0; n < COUNT; n++) {
            numbers<T, N> some;
#pragma unroll
            for (int e = 0; e < N; e++)
                some.x[e] = i + e < head ? row[n][i + e] : cuda_round<T>(0.0f);
            memcpy(&raw[n], &some, sizeof some);
        }
    }
    __syncwarp();
}

// Prefetches a row of `bytes` into L2. It reads nothing, so it is safe before cuda_wait_previous,
// even for slots that the previous kernel writes.
static __device__ __forceinline__ void prefetch_row(const void *row, int bytes)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(row), "r"(bytes));
#else
    (void)row, (void)bytes;
#endif
}

// Prefetches the leading entries of the block's split that are in the prefix, one entry per thread.
// Blocks with other queries read the same keys; one of them prefetches.
static __device__ void prefetch_split(const attend_job &j, const attend_block &b, const char *k,
                                      const char *v, int row_bytes)
{
    if (blockIdx.x != 0)
        return;
    const int begin = max(b.begin, b.low + 1), end = min(b.end, b.prefix);
    const int count = min(end - begin, j.prefetch / (2 * row_bytes));
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
        const int64_t at = (int64_t)(begin + i) * j.kv_heads * row_bytes;
        prefetch_row(k + at, row_bytes);
        prefetch_row(v + at, row_bytes);
    }
}

// --- a warp's work -------------------------------------------------------------------------------

// A warp's state of the online softmax for ATTEND_ROWS queries: a lane holds its share of each
// output, and the largest score and sum of exponentials of row = lane.
template <typename T, int HEAD> struct attend_warp {
    typedef attend_shape<T, HEAD> shape;
    const T *k, *v; // slot 0 of the block's key head
    int64_t stride; // from slot to slot
    int head;
    const float (*query)[shape::width]; // [ATTEND_ROWS]
    float (*weight)[CUDA_LANES];        // [ATTEND_ROWS]
    int *slot;                          // [CUDA_LANES], slots of the chunk
    float out[ATTEND_ROWS][shape::share];
    float most, sum;
};

// The lane's part of the products of a chunk's keys with rows [first, last): lanes 4 q .. 4 q + 3
// share keys 4 q .. 4 q + 3, and each lane multiplies every fourth unit of 8 numbers of all four.
// So four lanes read 64 adjacent bytes (BF16), and a query that is read once serves four keys.
template <typename T, int HEAD>
static __device__ __forceinline__ void multiply_keys(float (&part)[ATTEND_ROWS][4],
                                                     const attend_warp<T, HEAD> &w, int first,
                                                     int last)
{
    enum { UNITS = attend_shape<T, HEAD>::units };
    const int head = HEAD ? HEAD : w.head;
    const int lane = threadIdx.x % CUDA_LANES, mine = lane % 4 * 8;
    const numbers<int, 4> slot = *(const numbers<int, 4> *)(w.slot + lane / 4 * 4);
    const T *key[UNITS * 4];
#pragma unroll
    for (int n = 0; n < UNITS * 4; n++)
        key[n] = w.k + slot.x[n % 4] * w.stride + n / 4 * 32;
#pragma unroll(HEAD * sizeof(T) <= 256 ? 4 : 1) // longer keys: a smaller kernel
    for (int from = 0; from < head; from += UNITS * 32) {
        raw_numbers<T, 8> raw[UNITS * 4];
        read_rows<HEAD>(raw, key, from + mine, head);
#pragma unroll
        for (int u = 0; u < UNITS; u++)
#pragma unroll
            for (int r = 0; r < ATTEND_ROWS; r++) {
                if (r < first || r >= last)
                    continue;
                const float *query = &w.query[r][from + u * 32 + mine];
                const numbers<float, 8> q = *(const numbers<float, 8> *)query;
#pragma unroll
                for (int e = 0; e < 8; e++)
#pragma unroll
                    for (int n = 0; n < 4; n++)
                        part[r][n] = fmaf(q.x[e], number_of(raw[u * 4 + n], e), part[r][n]);
            }
    }
}

// The score of the lane's own key. Four lanes hold parts of four keys; each lane adds those of one,
// (own + that of lane ^ 2) + (this sum of lane ^ 1).
static __device__ __forceinline__ float add_parts(const float (&part)[4])
{
    const unsigned everyone = 0xffffffffu;
    const int lane = threadIdx.x % CUDA_LANES;
    const bool upper = lane & 2, odd = lane & 1;
    float a = upper ? part[2] : part[0], b = upper ? part[3] : part[1];
    a += __shfl_xor_sync(everyone, upper ? part[0] : part[2], 2);
    b += __shfl_xor_sync(everyone, upper ? part[1] : part[3], 2);
    return (odd ? b : a) + __shfl_xor_sync(everyone, odd ? a : b, 1);
}

// One step of the online softmax for a row. `visible` is false in all lanes for a row that does not
// take part, which leaves its state unchanged.
template <typename T, int HEAD>
static __device__ __forceinline__ void soften(attend_warp<T, HEAD> &w, int r, float x, bool visible)
{
    const int lane = threadIdx.x % CUDA_LANES;
    x = visible ? x : -INFINITY;
    const float before = __shfl_sync(0xffffffffu, w.most, r);
    const float most = fmaxf(before, cuda_warp_max(x));
    const float e = visible ? expf(x - most) : 0.0f;
    const float shrink = before == most ? 1.0f : expf(before - most);
    const float total = cuda_warp_sum(e);
    if (lane == r) {
        w.sum = fmaf(w.sum, shrink, total);
        w.most = most;
    }
#pragma unroll
    for (int i = 0; i < attend_shape<T, HEAD>::share; i++)
        w.out[r][i] *= shrink;
    w.weight[r][lane] = e;
}

// Loads the lane's share of `values` of the chunk's values, beginning with number `from`.
template <typename T, int HEAD, int N, int VALUES>
static __device__ __forceinline__ void read_values(raw_numbers<T, N> (&raw)[VALUES],
                                                   const attend_warp<T, HEAD> &w, int from)
{
    const int lane = threadIdx.x % CUDA_LANES;
    // Lanes after the head read what lane 0 reads; their sums are not used.
    const int at = !HEAD || lane * N < HEAD ? lane * N : 0;
    const T *value[VALUES];
#pragma unroll
    for (int n = 0; n < VALUES; n += 4) {
        const numbers<int, 4> slot = *(const numbers<int, 4> *)(w.slot + from + n);
#pragma unroll
        for (int m = 0; m < 4; m++)
            value[n + m] = w.v + slot.x[m] * w.stride;
    }
    read_rows<HEAD>(raw, value, at, w.head);
}

// Adds these values, times their weights, to the outputs of rows [first, last).
template <typename T, int HEAD, int N, int VALUES>
static __device__ __forceinline__ void mix_values(attend_warp<T, HEAD> &w,
                                                  const raw_numbers<T, N> (&raw)[VALUES], int from,
                                                  int first, int last)
{
#pragma unroll
    for (int r = 0; r < ATTEND_ROWS; r++) {
        if (r < first || r >= last)
            continue;
#pragma unroll
        for (int n = 0; n < VALUES; n += 4) {
            const float4 by = *(const float4 *)&w.weight[r][from + n];
#pragma unroll
            for (int i = 0; i < N; i++) {
                float t = w.out[r][i];
                t = fmaf(by.x, number_of(raw[n], i), t);
                t = fmaf(by.y, number_of(raw[n + 1], i), t);
                t = fmaf(by.z, number_of(raw[n + 2], i), t);
                t = fmaf(by.w, number_of(raw[n + 3], i), t);
                w.out[r][i] = t;
            }
        }
    }
}

// The key of a lane in a chunk, and the rows that take part.
typedef struct attend_key {
    int index, slot;
    bool seen,
        masked;      // row r attends to it if `seen`, and if it is in the mask or above r's window
    int low;         // the smallest window start of the rows
    int first, last; // rows
} attend_key;

// Processes one chunk. Values are loaded while scores become weights, and each group of values
// while the previous one is used.
template <typename T, int HEAD>
static __device__ __forceinline__ void attend_chunk(attend_warp<T, HEAD> &w, const attend_key &key,
                                                    const int (&low)[ATTEND_ROWS], float scale)
{
    enum { N = attend_shape<T, HEAD>::share, VALUES = attend_shape<T, HEAD>::values };
    const unsigned everyone = 0xffffffffu;
    const int lane = threadIdx.x % CUDA_LANES;
    const bool any = key.seen && (key.masked || key.index > key.low);
    const unsigned who = __ballot_sync(everyone, any);
    if (!who)
        return;
    // Lanes without a key read a valid one, because other memory may contain NaN.
    const int other = __shfl_sync(everyone, key.slot, __ffs((int)who) - 1);
    w.slot[lane] = any ? key.slot : other;
    __syncwarp();
    float part[ATTEND_ROWS][4] = {};
    multiply_keys(part, w, key.first, key.last);
    raw_numbers<T, N> raw[VALUES];
    read_values(raw, w, 0);
#pragma unroll
    for (int half = 0; half < ATTEND_ROWS; half += 4) { // the reductions of four rows at once
        if (half >= key.last || half + 4 <= key.first)
            continue;
#pragma unroll
        for (int r = half; r < half + 4; r++)
            soften(w, r, __fmul_rn(add_parts(part[r]), scale),
                   key.seen && (key.masked || key.index > low[r]) && r >= key.first &&
                       r < key.last);
    }
    __syncwarp();
#pragma unroll 2
    for (int from = 0; from < CUDA_LANES; from += VALUES) {
        raw_numbers<T, N> next[VALUES];
        if (from + VALUES < CUDA_LANES)
            read_values(next, w, from + VALUES);
        mix_values(w, raw, from, key.first, key.last);
        if (from + VALUES < CUDA_LANES)
#pragma unroll
            for (int n = 0; n < VALUES; n++)
                raw[n] = next[n];
    }
    __syncwarp(); // slots and weights are read before the next chunk overwrites them
}

// Processes the chunks of a warp. While all queries of the block attend to the same slots (the
// prefix and the common beginning of their masks) they share a chunk; after that each token has its
// own.
template <typename T, int HEAD>
static __device__ __forceinline__ void attend_places(attend_warp<T, HEAD> &w, const attend_job &j,
                                                     const attend_block &b,
                                                     const sight (&sights)[ATTEND_ROWS],
                                                     const int (&low)[ATTEND_ROWS], int words)
{
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    for (int base = b.begin + warp * CUDA_LANES; base < b.end; base += ATTEND_WARPS * CUDA_LANES) {
        const bool together = base + CUDA_LANES <= b.shared;
        for (int t = 0; t < (together ? 1 : b.tokens); t++) {
            const sight &own = sights[t];
            if (base >= own.length)
                continue;
            attend_key key;
            key.index = base + lane;
            key.masked = key.index >= own.tail && key.index < own.length;
            key.seen = key.masked || key.index < b.prefix;
            key.slot =
                key.masked && !together ? slot_of(own, key.index, b.prefix, words) : key.index;
            key.low = together ? b.low : own.low;
            const int r0 = (b.token0 + t) * j.group - b.from, r1 = r0 + j.group;
            key.first = together ? 0 : max(r0, 0);
            key.last = together ? b.rows : min(r1, b.rows);
            attend_chunk(w, key, low, j.scale);
        }
    }
}

// --- merging -------------------------------------------------------------------------------------

// Shared memory of a block.
template <int WIDTH> struct alignas(16) attend_room {
    float query[ATTEND_ROWS][WIDTH], out[ATTEND_WARPS][ATTEND_ROWS][WIDTH];
    float weight[ATTEND_WARPS][ATTEND_ROWS][CUDA_LANES];
    float most[ATTEND_WARPS][ATTEND_ROWS], sum[ATTEND_WARPS][ATTEND_ROWS];
    float2 sums[ATTEND_ROWS]; // over all warps: largest score, sum of exponentials
    int slot[ATTEND_WARPS][CUDA_LANES];
    int low[ATTEND_ROWS];
    sight sights[ATTEND_ROWS]; // of the tokens in the block, in order
};

// The only function that writes outputs. i is an index into out[rows][heads * head].
static __device__ __forceinline__ void write_output(const attend_job &j, int64_t i, float x)
{
    cuda_store(j.out, j.dtype, i, x);
}

// Row of query r of the block in out[rows][heads][head].
static __device__ __forceinline__ int64_t output_row(const attend_job &j, const attend_block &b,
                                                     int tokens, int r)
{
    const int f = b.from + r, head = b.kv_head * j.group + f % j.group;
    const int64_t row = (int64_t)b.sequence * tokens + j.first_token + f / j.group;
    return row * j.heads + head;
}

// Row of query r among the partial results of the launch.
static __device__ __forceinline__ int64_t part_row(const attend_job &j, const attend_block &b,
                                                   int r)
{
    const int f = b.from + r, head = b.kv_head * j.group + f % j.group;
    return ((int64_t)b.sequence * j.tokens + f / j.group) * j.heads + head;
}

// Merges the warps' outputs, relative to the largest score: the result if the text has no other
// splits, else a partial result. A row that attends to nothing here has sums of 0.
template <int WIDTH>
static __device__ void merge_warps(attend_room<WIDTH> &room, const attend_job &j,
                                   const attend_block &b, int tokens)
{
    __syncthreads();
    if ((int)threadIdx.x < ATTEND_ROWS) {
        const int r = (int)threadIdx.x;
        float most = -INFINITY, sum = 0.0f;
        for (int w = 0; w < ATTEND_WARPS; w++)
            most = fmaxf(most, room.most[w][r]);
        for (int w = 0; w < ATTEND_WARPS; w++) {
            const float by = room.most[w][r] == most ? 1.0f : expf(room.most[w][r] - most);
            room.most[w][r] = by;
            sum = fmaf(room.sum[w][r], by, sum);
        }
        room.sums[r] = make_float2(most, sum);
    }
    __syncthreads();
    const bool alone = b.splits - b.first_split == 1;
    for (int r = 0; r < b.rows; r++) {
        const int64_t p = part_row(j, b, r) * j.splits + blockIdx.y;
        for (int d = (int)threadIdx.x; d < j.head; d += (int)blockDim.x) {
            float x = 0.0f;
#pragma unroll
            for (int w = 0; w < ATTEND_WARPS; w++)
                x = fmaf(room.out[w][r][d], room.most[w][r], x);
            if (alone)
                write_output(j, output_row(j, b, tokens, r) * j.head + d, x / room.sums[r].y);
            else
                j.part[p * j.head + d] = x;
        }
        if (!alone && threadIdx.x == 0)
            j.sums[p] = room.sums[r];
    }
}

// Loads numbers [i, i + N) of a partial result, past the L1 cache.
template <int HEAD, int N>
static __device__ __forceinline__ void read_part(float (&x)[N], const float *part, int i, int head)
{
    if (HEAD && N == 2) {
        const float2 two = __ldcg((const float2 *)(part + i));
        x[0] = two.x, x[1] = two.y;
    } else if (HEAD) {
#pragma unroll
        for (int e = 0; e < N; e += 4) {
            const float4 four = __ldcg((const float4 *)(part + i + e));
            x[e] = four.x, x[e + 1] = four.y, x[(e + 2) % N] = four.z, x[(e + 3) % N] = four.w;
        }
    } else {
#pragma unroll
        for (int e = 0; e < N; e++)
            x[e] = i + e < head ? __ldcg(part + i + e) : 0.0f;
    }
}

// A warp per query: out = sum of the splits' outputs over the sum of their sums, each relative to
// its largest score, 32 splits at a time. A lane has its share of the output and the factor of one
// split. Reads each partial result once, and only of splits in which the query's token attends to
// an entry, so the sums do not depend on the block.
template <typename T, int HEAD>
static __device__ void merge_splits(const attend_job &j, const attend_block &b,
                                    const sight (&sights)[ATTEND_ROWS], int tokens)
{
    enum { N = attend_shape<T, HEAD>::share };
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    const int head = HEAD ? HEAD : j.head;
    const int at = !HEAD || lane * N < HEAD ? lane * N : 0;
    for (int r = warp; r < b.rows; r += ATTEND_WARPS) {
        const sight &own = sights[(b.from + r) / j.group - b.token0];
        const int end = (int)split_of(own.length - 1) + 1;
        const float2 *sums = j.sums + part_row(j, b, r) * j.splits;
        const float *part = j.part + part_row(j, b, r) * j.splits * head;
        float most = -INFINITY, total = 0.0f, out[N] = {};
        for (int s = b.first_split + lane; s < end; s += CUDA_LANES)
            most = fmaxf(most, __ldcg(&sums[s]).x);
        most = cuda_warp_max(most);
        for (int from = b.first_split / CUDA_LANES * CUDA_LANES; from < end; from += CUDA_LANES) {
            const bool mine = from + lane >= b.first_split && from + lane < end;
            const float2 sum = mine ? __ldcg(&sums[from + lane]) : make_float2(-INFINITY, 0.0f);
            const float factor = sum.x == most ? 1.0f : expf(sum.x - most);
            total = fmaf(sum.y, factor, total);
            for (int s = 0; s < CUDA_LANES && from + s < end; s += 8) {
                float x[8][N]; // absent splits repeat another one with factor 0
#pragma unroll
                for (int n = 0; n < 8; n++) {
                    const int64_t which = min(max(from + s + n, b.first_split), end - 1);
                    read_part<HEAD>(x[n], part + which * head, at, head);
                }
#pragma unroll
                for (int n = 0; n < 8; n++) {
                    const float by = __shfl_sync(0xffffffffu, factor, s + n);
#pragma unroll
                    for (int i = 0; i < N; i++)
                        out[i] = fmaf(x[n][i], by, out[i]);
                }
            }
        }
        total = cuda_warp_sum(total);
        const int64_t to = output_row(j, b, tokens, r) * head + lane * N;
#pragma unroll
        for (int i = 0; i < N; i++)
            if (lane * N + i < head)
                write_output(j, to + i, out[i] / total);
    }
}

// --- the kernel ----------------------------------------------------------------------------------

// Loads the block's queries, with zeros after a head and in absent rows, and each row's window.
template <int WIDTH>
static __device__ void read_queries(attend_room<WIDTH> &room, const attend_job &j,
                                    const attend_block &b, int tokens)
{
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    for (int r = warp; r < ATTEND_ROWS; r += ATTEND_WARPS) {
        const int f = b.from + r;
        const int64_t row = (int64_t)b.sequence * tokens + j.first_token + f / j.group;
        const int head = b.kv_head * j.group + f % j.group;
        const float *q = j.qkv + (row * (j.heads + 2 * j.kv_heads) + head) * j.head;
#pragma unroll
        for (int i = lane; i < WIDTH; i += CUDA_LANES)
            room.query[r][i] = r < b.rows && i < j.head ? q[i] : 0.0f;
        if (lane == 0)
            room.low[r] = r < b.rows ? room.sights[f / j.group - b.token0].low : INT32_MAX;
    }
    __syncthreads();
}

// A block per (ATTEND_ROWS queries that share a key head, split, key head and sequence).
//
// Reads the KV cache once per ATTEND_ROWS queries; for one token that is 2 * length * kv_heads *
// head numbers, the bound. Performs 4 * head operations per pair of query and entry on the ordinary
// cores; from some 16 tokens on that takes longer than the reading.
template <typename T, int HEAD>
static __global__ void __launch_bounds__(ATTEND_WARPS *CUDA_LANES, HEAD &&HEAD <= 128 ? 3 : 2)
    attend_kernel(attend_job j, cuda_pass pass)
{
    typedef attend_shape<T, HEAD> shape;
    __shared__ attend_room<shape::width> room;
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    const int tokens = (int)pass.tokens;
    attend_block b;
    if (!find_block(b, j, pass, room.sights)) // the whole block
        return;
    attend_warp<T, HEAD> w = {};
    const int64_t start = ((int64_t)b.sequence * j.slots * j.kv_heads + b.kv_head) * j.head;
    w.k = (const T *)j.k + start;
    w.v = (const T *)j.v + start;
    w.stride = (int64_t)j.kv_heads * j.head;
    w.head = j.head;
    w.query = room.query;
    w.weight = room.weight[warp];
    w.slot = room.slot[warp];
    w.most = -INFINITY;
    if (j.prefetch)
        prefetch_split(j, b, (const char *)w.k, (const char *)w.v, j.head * (int)sizeof(T));
    cuda_wait_previous();
    read_queries(room, j, b, tokens);
    attend_places(w, j, b, room.sights, room.low, (int)pass.words);
#pragma unroll
    for (int r = 0; r < ATTEND_ROWS; r++)
#pragma unroll
        for (int i = 0; i < shape::share; i++)
            if (lane * shape::share + i < shape::width)
                room.out[warp][r][lane * shape::share + i] = w.out[r][i];
    if (lane < ATTEND_ROWS) {
        room.most[warp][lane] = w.most;
        room.sum[warp][lane] = w.sum;
    }
    merge_warps(room, j, b, tokens);
    const int splits = b.splits - b.first_split;
    unsigned *const arrived = &j.arrived[blockIdx.z * gridDim.x + blockIdx.x];
    if (splits > 1 && cuda_last_block(arrived, splits))
        merge_splits<T, HEAD>(j, b, room.sights, tokens);
}

// --- launching -----------------------------------------------------------------------------------

typedef void (*attend_function)(attend_job, cuda_pass);

template <typename T> static attend_function kernel_for(int64_t head)
{
    return head == 64    ? attend_kernel<T, 64>
           : head == 96  ? attend_kernel<T, 96>
           : head == 128 ? attend_kernel<T, 128>
           : head == 256 ? attend_kernel<T, 256>
                         : attend_kernel<T, 0>;
}

// Numbers of partial results per token, over all sequences: they cover the cache's splits, because
// longer texts replay the pass.
static int64_t parts_of(const cuda_pass *pass, const attend_job *j)
{
    return pass->sequences * j->heads * j->splits;
}

static size_t part_bytes(const attend_job *j)
{
    return sizeof *j->sums + (size_t)j->head * sizeof *j->part;
}

// Reserves scratch memory for a launch of `groups` groups.
static int reserve(live_cuda *c, const cuda_pass *pass, attend_job *j, int64_t groups,
                   dsc_error *err)
{
    void *room = NULL;
    const size_t parts = (size_t)(j->tokens * parts_of(pass, j));
    const size_t aligned = (parts + 1) / 2 * 2; // so that outputs are read 16 bytes at a time
    int failed = cuda_scratch(c, CUDA_PARTIALS,
                              aligned * sizeof *j->sums + parts * (size_t)j->head * sizeof *j->part,
                              &room, err);
    if (!failed)
        failed = cuda_counters(c, groups, &j->arrived, err);
    j->sums = (float2 *)room;
    j->part = (float *)(j->sums + aligned);
    return failed;
}

static int attend_tokens(live_cuda *c, const cuda_pass *pass, attend_job *j, int64_t first,
                         int64_t count, dsc_dtype dtype, dsc_error *err)
{
    const attend_function kernel = dtype == DSC_F32   ? kernel_for<float>(j->head)
                                   : dtype == DSC_F16 ? kernel_for<__half>(j->head)
                                                      : kernel_for<__nv_bfloat16>(j->head);
    const dim3 grid((unsigned)cuda_blocks(count * j->group, ATTEND_ROWS), (unsigned)j->splits,
                    (unsigned)(pass->sequences * j->kv_heads));
    j->first_token = (int)first;
    j->tokens = (int)count;
    if (j->splits > 1) {
        const int failed = reserve(c, pass, j, (int64_t)grid.x * grid.z, err);
        if (failed)
            return failed;
    }
    return cuda_launch(c, "attend", kernel, grid, ATTEND_WARPS * CUDA_LANES, err, *j, *pass);
}

// Refuses shapes that exceed the grid limits.
static int check_shape(const live_cuda *c, const cuda_pass *pass, const live_attention *a,
                       int64_t splits, dsc_error *err)
{
    if (a->head > 256)
        return dsc_fail(err, DSC_EABSENT, "%s: attention heads of %lld numbers; at most 256",
                        c->base.device, (long long)a->head);
    if (pass->sequences * a->kv_heads > ATTEND_DEPTH)
        return dsc_fail(err, DSC_EABSENT,
                        "%s: attention of %lld sequences with %lld key heads each; the device "
                        "takes at most %d key heads in a pass, %lld sequences",
                        c->base.device, (long long)pass->sequences, (long long)a->kv_heads,
                        ATTEND_DEPTH, (long long)(ATTEND_DEPTH / a->kv_heads));
    if (splits > ATTEND_DEPTH)
        return dsc_fail(err, DSC_EABSENT,
                        "%s: attention over a cache of %lld splits; the device takes at most %d, "
                        "%lld slots",
                        c->base.device, (long long)splits, ATTEND_DEPTH,
                        (long long)split_begin(ATTEND_DEPTH));
    return DSC_OK;
}

// The tokens of one batch, from and to the addresses in *j.
static int attend_batch(live_cuda *c, const cuda_pass *pass, attend_job *j, const live_cache *cache,
                        dsc_error *err)
{
    const live_backend *b = &c->base;
    const int64_t tokens = pass->tokens, splits = split_of(cache->slots - 1) + 1;
    j->splits = tokens > ATTEND_LONG_PASS && !b->invariant ? 1 : (int)splits;
    // Bulk prefetches take multiples of 16 bytes; long passes have no waiting time to use.
    j->prefetch = 0;
    if (j->splits > 1 && j->head % 8 == 0 && c->prefetch_bytes > 0)
        j->prefetch = ATTEND_PREFETCH;
    int64_t each = b->invariant ? (int64_t)ATTEND_INVARIANT : tokens;
    const int64_t fit = ATTEND_PARTS / (parts_of(pass, j) * (int64_t)part_bytes(j));
    if (j->splits > 1 && each > fit)
        each = fit > 1 ? fit : 1;
    int failed = DSC_OK;
    for (int64_t first = 0; first < tokens && !failed; first += each)
        failed = attend_tokens(c, pass, j, first, tokens - first < each ? tokens - first : each,
                               cache->dtype, err);
    return failed;
}

int cuda_attend(live_backend *b, void *out, const float *qkv, const live_attention *a,
                const live_cache *cache, int64_t layer, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int64_t splits = split_of(cache->slots - 1) + 1, all = a->heads + 2 * a->kv_heads;
    int failed = cuda_use(c, err);
    for (int i = 0; i < c->parts && !failed; i++)
        failed = check_shape(c, &c->pass[i], a, splits, err);
    attend_job j = {};
    j.out = out;
    j.dtype = a->stored ? cache->dtype : DSC_F32;
    j.qkv = qkv;
    j.k = cache->k[layer];
    j.v = cache->v[layer];
    j.heads = (int)a->heads;
    j.kv_heads = (int)a->kv_heads;
    j.group = (int)(a->heads / a->kv_heads);
    j.head = (int)a->head;
    j.slots = cache->slots;
    j.window = a->window;
    j.scale = (float)a->scale;
    for (int i = 0; i < c->parts && !failed; i++) {
        const cuda_pass *pass = &c->pass[i];
        const int64_t rows = pass->tokens * pass->sequences;
        cuda_pass seen = *pass;
        if (a->window && pass->window_mask)
            seen.mask = pass->window_mask;
        failed = attend_batch(c, &seen, &j, cache, err);
        j.qkv += rows * all * a->head;
        j.out = (char *)j.out + (size_t)(rows * a->heads * a->head) * dsc_dtype_bytes(j.dtype);
        j.k = cuda_next_sequences(j.k, cache, pass);
        j.v = cuda_next_sequences(j.v, cache, pass);
    }
    return failed;
}
