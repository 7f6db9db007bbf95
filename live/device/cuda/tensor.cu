// SPDX-License-Identifier: Apache-2.0
// Products of 5 to 64 rows of activations with 16-bit weights on the tensor cores (mma.m16n8k16).
// They are still bound by reading the weights once: weights go from memory directly into the
// registers that the tensor cores read, and activations, which all warps need, through shared
// memory.
//
// Activations are the A operand (16 rows x 16 numbers), weights B (8 rows), so the registers that a
// lane loads from a row of weights are those that the tensor cores need, without a move. A dot
// product is independent of the order of k, so lane t of a group of four takes numbers 8 t .. 8 t +
// 7 of every 32, which is one load of 16 bytes of a row of weights and one of activations, and they
// serve two steps of the tensor cores: pairs (8 t, 8 t + 1) and (8 t + 2, 8 t + 3) in the first,
// the other two in the second.
//
// A block of 8 warps computes 128 columns of the output, i.e. rows of w, and all rows of it; a
// block of 16 warps computes 256 columns if there are many rows and columns, which halves the reads
// of activations. A warp has 32 of the columns (16 gates and their 16 ups for a gated product) and
// every other 64 numbers of k; the two halves of k are added through shared memory. Each lane keeps
// 8 loads of 16 bytes of weights in flight, or 16 if there are registers for them (up to 16 rows).
// Activations arrive by cp.async, three chunks of 128 numbers ahead.
//
// If there are too few columns to fill the device, k is split among blocks. Each writes its sums to
// scratch memory, and the last block to arrive adds them in the order of the splits: which block
// that is differs from run to run, the result does not.
//
// Traffic: weights once from memory; through the L2 cache weights, activations once per 128 rows of
// w, and 8 bytes per split and number of the output.
#include "live/device/cuda/weights.cuh"

enum {
    TENSOR_HALVES = 2,                          // parts of k, among the warps of a block
    TENSOR_COLUMNS = 32,                        // columns of a warp
    TENSOR_STEP = 64,                           // numbers of k per warp and chunk
    TENSOR_CHUNK = TENSOR_STEP * TENSOR_HALVES, // numbers of k in shared memory at once
    TENSOR_VECTORS = TENSOR_CHUNK / 8,          // vectors of 16 bytes in a row of a chunk
    TENSOR_PITCH = TENSOR_VECTORS + 4,          // row stride: eight lanes share no bank
    TENSOR_AHEAD = 4,                           // chunks in shared memory
    TENSOR_SPLIT_LEAST = 512,                   // minimum numbers of k per split
};

// A block of WARPS warps.
template <int WARPS> struct tensor_block {
    static constexpr int threads = WARPS * CUDA_LANES;
    static constexpr int team = WARPS / TENSOR_HALVES;      // warps along the columns
    static constexpr int tile = team * TENSOR_COLUMNS;      // columns
    static constexpr int pitch = tile + 8;                  // row stride of its sums
    static constexpr int quads = tile / 4;                  // vectors of four sums per row
    static constexpr int copied = threads / TENSOR_VECTORS; // rows of activations copied at once
};

// c += a b on the tensor cores of a warp (PTX ISA, mma.m16n8k16): lane = 4 g + t has rows g and g +
// 8 of a (a0 and a2, a1 and a3), row g of b, and of c rows g (c0, c1) and g + 8, columns 2 t and 2
// t + 1.
static __device__ __forceinline__ void tensor_multiply(float (&c)[4], uint32_t a0, uint32_t a1,
                                                       uint32_t a2, uint32_t a3, uint32_t b0,
                                                       uint32_t b1, __nv_bfloat16 t)
{
#ifdef __CUDACC__
    (void)t;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    emulated::multiply(c, a0, a1, a2, a3, b0, b1, t);
#endif
}
static __device__ __forceinline__ void tensor_multiply(float (&c)[4], uint32_t a0, uint32_t a1,
                                                       uint32_t a2, uint32_t a3, uint32_t b0,
                                                       uint32_t b1, __half t)
{
#ifdef __CUDACC__
    (void)t;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    emulated::multiply(c, a0, a1, a2, a3, b0, b1, t);
#endif
}

// Copies 16 bytes from global to shared memory without registers; writes zeros if not `there`.
static __device__ __forceinline__ void tensor_copy(uint4 *shared, const uint4 *from, bool there)
{
#ifdef __CUDACC__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(shared)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
#else
    emulated::begin_copy(shared, from, there);
#endif
}
static __device__ __forceinline__ void tensor_commit()
{
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    emulated::end_group();
#endif
}
// Waits until all copies have arrived except those of the last `LEFT` commits.
template <int LEFT> static __device__ __forceinline__ void tensor_arrived()
{
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#else
    emulated::await_copies(LEFT);
#endif
}

typedef struct tensor_job {
    weights_job j;
    int64_t splits, chunks; // chunks of k per split
    float4 *part;           // [tiles][splits][16 TILES][quads of a row]
    unsigned *arrived;      // [tiles] blocks that have written their sums
} tensor_job;

// The weights of 32 numbers of k: row g of each 8 of a warp's columns.
typedef struct tensor_weights {
    uint4 row[4];
} tensor_weights;

static __device__ __forceinline__ void tensor_read(tensor_weights &w, const uint4 *const (&row)[4],
                                                   int vector)
{
#pragma unroll
    for (int r = 0; r < 4; r++)
        w.row[r] = weights_load(row[r] + vector);
}

// sums += activations times weights over 32 numbers of k, TILES x 16 rows of activations.
template <typename T, int TILES>
static __device__ __forceinline__ void tensor_step(float (&sum)[TILES][4][4],
                                                   const tensor_weights &w, const uint4 *shared)
{
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        const uint4 a = shared[tile * 16 * TENSOR_PITCH];
        const uint4 b = shared[(tile * 16 + 8) * TENSOR_PITCH];
#pragma unroll
        for (int r = 0; r < 4; r++)
            tensor_multiply(sum[tile][r], a.x, b.x, a.y, b.y, w.row[r].x, w.row[r].y, T());
#pragma unroll
        for (int r = 0; r < 4; r++)
            tensor_multiply(sum[tile][r], a.z, b.z, a.w, b.w, w.row[r].z, w.row[r].w, T());
    }
}

// The part of each chunk of activations that a thread copies: vector threadIdx % 16 of some rows.
// Beyond the last row, that row is read again, since its sums are not used; beyond the end of k
// there are zeros, which any weights may be multiplied by.
template <int TILES, int WARPS> struct tensor_copies {
    static constexpr int step = tensor_block<WARPS>::copied;
    const uint4 *from;
    int row, last, to, vector, vectors;

    __device__ __forceinline__ tensor_copies(const tensor_job &t, int first)
    {
        from = weights_fixed((const uint4 *)t.j.in);
        row = threadIdx.x / TENSOR_VECTORS;
        last = (int)t.j.rows - 1;
        vectors = (int)(t.j.k / 8);
        vector = first * TENSOR_VECTORS + threadIdx.x % TENSOR_VECTORS;
        to = row * TENSOR_PITCH + threadIdx.x % TENSOR_VECTORS;
    }

    // Copies chunk number `chunk` of the split into its buffer.
    __device__ __forceinline__ void fetch(uint4 *shared, int chunk, bool there) const
    {
        const int v = vector + chunk * TENSOR_VECTORS;
        uint4 *const place = shared + chunk % TENSOR_AHEAD * (TILES * 16 * TENSOR_PITCH) + to;
        if (there)
#pragma unroll
            for (int i = 0; i < TILES * 16 / step; i++) {
                const int at = row + i * step < last ? row + i * step : last;
                tensor_copy(place + i * step * TENSOR_PITCH,
                            from + (v < vectors ? at * vectors + v : 0), v < vectors);
            }
        tensor_commit();
    }
};

// The rows of w that a lane reads: number g of each 8 of its warp, which begins at `column`. Beyond
// the last row, that row is read again.
static __device__ __forceinline__ void tensor_rows(const uint4 *(&row)[4], const weights_job &j,
                                                   int64_t column)
{
    const int64_t width = j.gated ? j.n / 2 : j.n, g = threadIdx.x % CUDA_LANES / 4;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        int64_t at = column + g + r % 2 * 8 + (j.gated ? 0 : r / 2 * 16);
        at = (at < width ? at : width - 1) + (j.gated && r / 2 ? width : 0);
        row[r] = weights_fixed((const uint4 *)j.w + at * (j.k / 8));
    }
}

// A warp's half of the block's k. RING pieces of 32 numbers of weights are in registers or in
// flight; each is requested again, RING pieces later in k, as soon as it has been used.
template <typename T, int TILES, int WARPS, int RING>
static __device__ __forceinline__ void tensor_sums(const tensor_job &t, float (&sum)[TILES][4][4],
                                                   int64_t column, int first, uint4 *shared)
{
    constexpr int pieces = TENSOR_STEP / 32,
                  span = RING / pieces; // pieces of a chunk; chunks in the ring
    const int lane = threadIdx.x % CUDA_LANES,
              half = threadIdx.x / (tensor_block<WARPS>::threads / TENSOR_HALVES);
    const int last = (int)(t.j.k / 8) - 1, chunks = (int)t.chunks;
    const tensor_copies<TILES, WARPS> copies(t, first);
    // A lane's offset in a chunk: vector t of the warp's half, of row g in shared memory. Beyond
    // the end of k the last vector is read again and multiplied by zeros.
    const int at = half * (TENSOR_STEP / 8) + lane % 4, own = lane / 4 * TENSOR_PITCH + at;
    int next = first * TENSOR_VECTORS + at; // vector of weights that is requested next
    const uint4 *row[4];
    tensor_weights w[RING] = {};
    tensor_rows(row, t.j, column);
#pragma unroll
    for (int i = 0; i < RING; i++, next += i % pieces ? 4 : TENSOR_VECTORS - 4 * (pieces - 1))
        if (i / pieces < chunks)
            tensor_read(w[i], row, next < last ? next : last);
    const int left = (last + 1 - first * TENSOR_VECTORS) * (int)sizeof(uint4); // bytes of a row
    const int ahead = t.j.prefetch < left ? (int)t.j.prefetch : left;
    for (int to = (half * 4 + lane % 4) * 128; to < ahead; to += 1024)
        for (int r = 0; r < 4; r++) // the lanes of a row share it
            weights_prefetch((const char *)(row[r] + first * TENSOR_VECTORS) + to);
    cuda_wait_previous();
    for (int chunk = 0; chunk + 1 < TENSOR_AHEAD; chunk++)
        copies.fetch(shared, chunk, chunk < chunks);
    for (int base = 0; base < chunks; base += span)
#pragma unroll
        for (int i = 0; i < span; i++) {
            const int chunk = base + i;
            if (chunk >= chunks)
                break;
            tensor_arrived<TENSOR_AHEAD - 2>();
            __syncthreads(); // this chunk has arrived for all threads, and the previous one has
                             // been read
            copies.fetch(shared, chunk + TENSOR_AHEAD - 1, chunk + TENSOR_AHEAD - 1 < chunks);
            const uint4 *x = shared + chunk % TENSOR_AHEAD * (TILES * 16 * TENSOR_PITCH) + own;
#pragma unroll
            for (int n = 0; n < pieces; n++) {
                const int vector = next + 4 * n;
                tensor_step<T, TILES>(sum, w[i * pieces + n], x + 4 * n);
                if (chunk + span < chunks)
                    tensor_read(w[i * pieces + n], row, vector < last ? vector : last);
            }
            next += TENSOR_VECTORS;
        }
    tensor_arrived<0>();
}

// --- the sums of a block -------------------------------------------------------------------------

// In shared memory there is a row for each of 16 TILES rows of activations, block::pitch numbers
// apart; for a gated product, gates are in the first half of the columns and ups in the second.

// Adds the two halves of k.
template <int TILES, int WARPS>
static __device__ void tensor_join(const float (&sum)[TILES][4][4], float *shared, bool gated)
{
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    using block = tensor_block<WARPS>;
    const int team = warp % block::team, g = lane / 4, t = lane % 4;
    for (int half = TENSOR_HALVES - 1; half >= 0; half--) {
        __syncthreads(); // activations have been read, or the other half has been written
        if (warp / block::team != half)
            continue;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int column = gated ? r / 2 * (block::tile / 2) + team * 16 + r % 2 * 8 + 2 * t
                                     : team * TENSOR_COLUMNS + r * 8 + 2 * t;
#pragma unroll
            for (int i = 0; i < 2 * TILES; i++) {
                float2 *s = (float2 *)(shared + (i * 8 + g) * block::pitch + column);
                float2 both = {sum[i / 2][r][i % 2 * 2], sum[i / 2][r][i % 2 * 2 + 1]};
                if (half == 0)
                    both.x += s->x, both.y += s->y;
                *s = both;
            }
        }
    }
    __syncthreads();
}

// Writes a block's sums to scratch memory; true in all threads of the last block to arrive.
template <int WARPS>
static __device__ bool tensor_leave(const tensor_job &t, const float *shared, int rows)
{
    using block = tensor_block<WARPS>;
    float4 *part = t.part + (blockIdx.x * t.splits + blockIdx.y) * rows * block::quads;
    for (int i = threadIdx.x; i < rows * block::quads; i += blockDim.x)
        part[i] = *(const float4 *)&shared[i / block::quads * block::pitch + i % block::quads * 4];
    return cuda_last_block(&t.arrived[blockIdx.x], t.splits);
}

// Adds the sums of all splits of a tile, in order, into shared memory.
template <int WARPS>
static __device__ void tensor_gather(const tensor_job &t, float *shared, int rows)
{
    using block = tensor_block<WARPS>;
    const int each = rows * block::quads;
    const float4 *part = t.part + (int64_t)blockIdx.x * t.splits * each;
    for (int i = threadIdx.x; i < each; i += blockDim.x) {
        float4 s = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
        for (int64_t split = 0; split < t.splits; split++) {
            const float4 p = __ldcg(part + split * each + i);
            s.x += p.x, s.y += p.y, s.z += p.z, s.w += p.w;
        }
        *(float4 *)&shared[i / block::quads * block::pitch + i % block::quads * 4] = s;
    }
    __syncthreads();
}

template <int WARPS>
static __device__ void tensor_put(const weights_job &j, const float *shared, int64_t first)
{
    using block = tensor_block<WARPS>;
    const int columns = j.gated ? block::tile / 2 : block::tile;
    const int64_t width = j.gated ? j.n / 2 : j.n;
    const int left = (int)(width - first < columns ? width - first : columns);
    for (int i = threadIdx.x; i < (int)j.rows * columns; i += blockDim.x) {
        const int row = i / columns, column = i % columns;
        const float *s = shared + row * block::pitch + column;
        if (column < left)
            weights_put(j, row, first + column, s[0], j.gated ? s[block::tile / 2] : 0.0f);
    }
}

// A block per (16 WARPS rows of w, split of k); TILES times 16 rows of activations.
template <typename T, int TILES, int WARPS>
static __global__ void __launch_bounds__(tensor_block<WARPS>::threads, WARPS > 8 ? 1 : 2)
    tensor_kernel(tensor_job t)
{
    using block = tensor_block<WARPS>;
    const int64_t width = t.j.gated ? block::tile / 2 : block::tile, first = blockIdx.x * width;
    const int team = threadIdx.x / CUDA_LANES % block::team;
    void *const shared = cuda_dynamic_shared();
    float *const sums = (float *)shared;
    float sum[TILES][4][4] = {};
    tensor_sums<T, TILES, WARPS, (TILES > 1 ? 2 : 4)>(t, sum, first + team * (width / block::team),
                                                      (int)(blockIdx.y * t.chunks),
                                                      (uint4 *)shared);
    tensor_join<TILES, WARPS>(sum, sums, t.j.gated);
    if (t.splits > 1) {
        if (!tensor_leave<WARPS>(t, sums, TILES * 16))
            return;
        tensor_gather<WARPS>(t, sums, TILES * 16);
    }
    tensor_put<WARPS>(t.j, sums, first);
}

// --- launching ---------------------------------------------------------------------------------

// Chooses the splits of k: 16 warps per multiprocessor, but no splits whose sums exceed a quarter
// of the weights that they stand for.
static void tensor_split(const live_cuda *c, tensor_job *t, int64_t blocks, int64_t resident)
{
    const int64_t all = cuda_blocks(t->j.k, TENSOR_CHUNK);
    const int64_t most = t->j.k / (16 * t->j.rows), least = t->j.k / TENSOR_SPLIT_LEAST;
    int64_t splits = resident * c->processors / blocks;
    splits = splits < most ? splits : most;
    splits = splits < least ? splits : least;
    t->chunks = cuda_blocks(all, splits > 1 ? splits : 1);
    t->splits = cuda_blocks(all, t->chunks);
}

// Number of blocks along the columns.
template <int WARPS> static int64_t tensor_blocks(const weights_job *j)
{
    return cuda_blocks(j->n, tensor_block<WARPS>::tile);
}

template <typename T, int TILES, int WARPS>
static int tensor_tiles(live_cuda *c, const weights_job *job, dsc_error *err)
{
    using block = tensor_block<WARPS>;
    tensor_job t = {};
    t.j = *job;
    const int64_t blocks = tensor_blocks<WARPS>(job);
    tensor_split(c, &t, blocks, WARPS > 8 ? 1 : 2);
    if (t.splits > 1) {
        const size_t sums = (size_t)(blocks * t.splits * TILES * 16 * block::quads);
        void *room = NULL;
        int failed = cuda_scratch(c, CUDA_SUMS, sums * sizeof(float4), &room, err);
        if (!failed)
            failed = cuda_counters(c, blocks, &t.arrived, err);
        if (failed)
            return failed;
        t.part = (float4 *)room;
    }
    const int64_t rows = blocks * t.splits * block::tile, row = t.j.k * 2 / t.splits;
    const int64_t fair = c->prefetch_bytes / rows;
    t.j.prefetch = fair < row ? fair : row;
    const size_t chunks = TENSOR_AHEAD * TILES * 16 * TENSOR_PITCH * sizeof(uint4);
    const size_t sums = TILES * 16 * block::pitch * sizeof(float);
    return cuda_launch_shared(c, "product", tensor_kernel<T, TILES, WARPS>,
                              cuda_grid(blocks, t.splits), block::threads,
                              chunks > sums ? chunks : sums, err, t);
}

template <typename T> static int tensor_of(live_cuda *c, const weights_job *j, dsc_error *err)
{
    if (j->rows <= 16)
        return tensor_tiles<T, 1, 8>(c, j, err);
    if (j->rows <= 32)
        return tensor_tiles<T, 2, 8>(c, j, err);
    return tensor_blocks<16>(j) * 4 >= c->processors * 3 ? tensor_tiles<T, 4, 16>(c, j, err)
                                                         : tensor_tiles<T, 4, 8>(c, j, err);
}

int cuda_tensor(live_cuda *c, const weights_job *j, dsc_dtype dtype, bool *done, dsc_error *err)
{
    *done = dtype != DSC_F32 && j->rows <= CUDA_TENSOR_ROWS && j->k % 8 == 0 &&
            j->k <= INT32_MAX / CUDA_TENSOR_ROWS && (uintptr_t)j->w % sizeof(uint4) == 0 &&
            (uintptr_t)j->in % sizeof(uint4) == 0;
    if (!*done)
        return DSC_OK;
    return dtype == DSC_F16 ? tensor_of<__half>(c, j, err) : tensor_of<__nv_bfloat16>(c, j, err);
}
