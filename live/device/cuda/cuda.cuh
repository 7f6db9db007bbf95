// SPDX-License-Identifier: Apache-2.0
// What the files of the CUDA backend share: its state, checked kernel launches, and the few device
// functions that every kernel needs.
//
// Passes. The lists of a pass (tokens, slots, mask, ...) lie at fixed addresses on the device,
// packed in one block that `begin` uploads in one copy; kernels read them there, together with the
// length of the text. Launch parameters depend on the shape of a pass only, so a pass that was
// captured in a graph once is replayed for longer texts and other tokens.
//
// Overlap. From compute capability 9.0 on, a kernel that follows another of our kernels is launched
// before that one has ended (programmatic dependent launch), which hides the launch latency. Each
// kernel begins with cuda_wait_previous() and reads nothing before it except weights and the lists
// of the pass, which are complete before the first kernel; so when a kernel has ended, everything
// before it has ended (blocks without work may return early if others of the grid wait). Work that
// is not ours (cuBLAS, copies), and the kernel after it, is launched in the ordinary way.
// Pointers are not __restrict__, because the compiler would assume that nothing writes their data
// while the kernel runs, and read it through the non-coherent path. tests/gpu/sass.sh checks all of
// this in the machine code of every kernel, and tests/gpu/test_races.sh on the emulated device that
// one block of each grid waits, and that nothing reads what a kernel in flight writes.
#ifndef DSC_LIVE_CUDA_CUH
#define DSC_LIVE_CUDA_CUH

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "base/memory.h"
#include "live/device/backend.h"
}

enum {
    CUDA_LANES = 32,           // threads of a warp
    CUDA_CAPTURED_ROWS = 128,  // passes of more rows are not captured
    CUDA_GRAPHS = 256,         // maximum; a new graph replaces the least recently used one
    CUDA_LISTS = 64 << 10,     // initial capacity of a pass's lists, bytes
    CUDA_STAGES = 4,           // concurrent uploads of lists
    CUDA_INVARIANT_ROWS = 128, // rows of every product of an invariant backend
    CUDA_WORKSPACE = 32 << 20, // bytes for cuBLAS, as recommended for compute capability 9.0
    CUDA_SHARED_STATIC =
        1 << 10, // maximum bytes of static shared memory in kernels that also use dynamic
    CUDA_SHARED = (48 << 10) - CUDA_SHARED_STATIC, // bytes that need no opt-in
    CUDA_KERNELS = 256,                            // remembered kernels with attributes of ours
    CUDA_PARTS = 256,                              // batches of a pass
};

// The distribution of a pass (live_sampling).
typedef struct cuda_dist {
    double by; // 1 / temperature
    double top_p;
    int64_t top_k;
} cuda_dist;

// The lists of a batch of the current pass on the device.
typedef struct cuda_pass {
    const uint64_t *mask;        // [tokens][words]
    const uint64_t *window_mask; // the same for attention with a window; NULL: `mask`
    const cuda_dist *dist;       // [1] or NULL
    const int32_t *prefix;       // [1]
    const int32_t *shift;        // [sequences] or NULL
    const int32_t *token, *position, *slot, *output, *feature;
    int64_t tokens, sequences, outputs, words;
} cuda_pass;

// What the positions, slots and prefix of a sequence are increased by.
static __device__ __forceinline__ int cuda_shift(const cuda_pass &pass, int64_t sequence)
{
    return pass.shift ? pass.shift[sequence] : 0;
}

// Scratch memory of operations. Its initial size suffices for captured passes of most models; it at
// least doubles when it grows, and never shrinks. Growing drops the graphs that use it.
typedef enum cuda_scratch_use {
    CUDA_ACTIVATIONS, // activations in the weights' dtype, for cuBLAS
    CUDA_PRODUCTS,    // products of fixed shape of an invariant backend
    CUDA_PARTIALS,    // partial results of the attention
    CUDA_SUMS,        // partial sums of products whose k is split among blocks
    CUDA_ARRIVALS,    // arrival counters of groups of blocks, 0 between launches
    CUDA_DISTS,       // work of top-k and top-p
    CUDA_OVERLAP,     // results of draft/target overlap
    CUDA_SCRATCHES,
} cuda_scratch_use;

// The kernels for a distribution depend on whether it excludes tokens.
typedef enum cuda_dists { CUDA_NO_DIST, CUDA_ALL_TOKENS, CUDA_FILTERED } cuda_dists;

static inline cuda_dists cuda_dists_of(const live_sampling *dist)
{
    return !dist                                  ? CUDA_NO_DIST
           : dist->top_k > 0 || dist->top_p < 1.0 ? CUDA_FILTERED
                                                  : CUDA_ALL_TOKENS;
}

// A recorded pass. The first run is direct (kernels and cuBLAS are loaded, scratch memory grows),
// the second is captured, later ones are replayed. A failure restarts this sequence.
typedef struct cuda_graph {
    uint64_t used; // number of its last pass; 0: the entry is free
    live_pass_key key;
    int64_t tokens, sequences, outputs, words;
    uint64_t parts; // hash of the shapes of further batches; 0: none
    bool features, shifts, windows;
    cuda_dists dists;
    int64_t vocab, learned; // rows of the embeddings of tokens and positions; 0: none
    bool ran;               // a direct run has completed
    unsigned scratch;       // bit u: the captured pass uses cuda_scratch_use u
    cudaGraphExec_t exec;   // NULL: not captured yet
} cuda_graph;

typedef struct cuda_stage {
    void *host; // pinned
    size_t bytes;
    cudaEvent_t copied;
} cuda_stage;

typedef struct live_cuda {
    live_backend base;
    live_cuda_settings set;
    int processors;         // streaming multiprocessors
    size_t shared_bytes;    // maximum dynamic shared memory of a block
    bool overlap;           // programmatic dependent launch
    int64_t prefetch_bytes; // of weights that a product may request ahead of time
    bool follows;           // the last work in the stream is one of our kernels
    cudaStream_t stream;
    struct cuda_blas *blas; // NULL until a product needs it (blas.cu)

    cuda_pass pass[CUDA_PARTS]; // [parts] the batches of the pass
    int parts;
    const live_batch *batch; // of the pass, or NULL
    cuda_graph *current;     // of the pass; NULL: the pass is not captured
    bool capturing;
    bool lost; // other work interrupted the capture of the pass

    void *lists;
    size_t lists_bytes;
    cuda_stage stage[CUDA_STAGES];
    int next_stage;
    void *scratch[CUDA_SCRATCHES];
    size_t scratch_bytes[CUDA_SCRATCHES];
    cuda_graph graph[CUDA_GRAPHS];
    uint64_t passes;                    // number of passes begun
    const void *opted_in[CUDA_KERNELS]; // kernels that may have shared_bytes
    const void *carved[CUDA_KERNELS];   // kernels with set.carveout
    int opted_ins, carveds;
} live_cuda;

static inline live_cuda *cuda_of(live_backend *b)
{
    return (live_cuda *)b;
}

// Returns 0, or records the failure as "cuda:0: CALL: CUDA's message".
int cuda_check(const live_cuda *c, cudaError_t e, const char *call, dsc_error *err);
// Selects the backend's device for this thread.
int cuda_use(const live_cuda *c, dsc_error *err);
// Selects it outside a pass: an unfinished capture (an operation failed) is discarded.
int cuda_use_idle(live_cuda *c, dsc_error *err);
// Waits, as the graph may be running, and empties its entry.
void cuda_forget_graph(live_cuda *c, cuda_graph *g);
// Checks that every token is in an embedding of `vocab` rows and every position in one of `learned`
// (0: any).
int cuda_check_tokens(const live_batch *batch, int64_t vocab, int64_t learned, dsc_error *err);
// Allocates device memory without clearing it; the error contains the free size.
int cuda_device_alloc(live_cuda *c, void **out, size_t bytes, dsc_error *err);
// Returns at least `bytes` of scratch memory. Growing waits for the stream.
int cuda_scratch(live_cuda *c, cuda_scratch_use use, size_t bytes, void **out, dsc_error *err);

// Returns `count` zero counters for groups of blocks; a kernel that uses them resets them to 0
// (atomicInc with the number of blocks as limit).
int cuda_counters(live_cuda *c, int64_t count, unsigned **out, dsc_error *err);

// Sets device memory to 0, in stream order.
int cuda_clear(live_cuda *c, void *p, size_t bytes, dsc_error *err);

// Operations, by file.
int cuda_embed(live_backend *b, float *out, int64_t stride, const live_matrix *table,
               const live_matrix *positions, float scale, dsc_error *err); // rows.cu
int cuda_spread(live_backend *b, float *out, const float *in, const int32_t *column, int64_t rows,
                int64_t in_width, int64_t width, dsc_error *err);
int cuda_gather(live_backend *b, float *out, int64_t out_stride, const float *in, int64_t in_stride,
                int64_t width, live_index list, dsc_error *err);
int cuda_scatter(live_backend *b, float *out, const float *in, int64_t width, live_index list,
                 dsc_error *err);
int cuda_norm(live_backend *b, float *out, const float *in, const live_norming *n, int64_t rows,
              int64_t width, dsc_error *err);
int cuda_add(live_backend *b, float *out, const float *in, int64_t count, dsc_error *err);
int cuda_product(live_backend *b, void *out, const void *in, int64_t rows, const live_product *p,
                 dsc_error *err); // product.cu
// cuda_norm with a result in `dtype`.
int cuda_norm_to(live_cuda *c, void *out, dsc_dtype dtype, const float *in, const live_norming *n,
                 int64_t rows, int64_t width, dsc_error *err); // rows.cu
// out[rows][w->rows] = in times w transposed + beta out, by cuBLAS; `in` has w's dtype.
int cuda_gemm(live_cuda *c, float *out, const live_matrix *w, const void *in, int64_t rows,
              float beta, dsc_error *err); // blas.cu
void cuda_close_blas(live_cuda *c);
int cuda_rotate(live_backend *b, float *qkv, const live_rotation *r, const live_attention *a,
                const live_cache *cache, int64_t layer, dsc_error *err); // rotate.cu
int cuda_attend(live_backend *b, void *out, const float *qkv, const live_attention *a,
                const live_cache *cache, int64_t layer, dsc_error *err); // attend.cu
int cuda_select(live_backend *b, int32_t *token, float *margin, const float *logits, int64_t rows,
                int64_t vocab, dsc_error *err); // select.cu
int cuda_summarize(live_backend *b, const live_summary *s, const float *logits, int64_t rows,
                   int64_t vocab, dsc_error *err); // summarize.cu
// Computes s->max_logit as cuda_summarize does, and s->kept of the rows that are not left out.
int cuda_cut(live_cuda *c, const live_summary *s, const float *logits, int64_t rows, int64_t vocab,
             dsc_error *err); // cut.cu
int cuda_compare(live_backend *b, const live_comparison *c, int64_t vocab,
                 dsc_error *err); // overlap.cu
int cuda_list(live_backend *b, dsc_mass *out, const live_dists *dists, const uint64_t *wanted,
              int64_t count, int64_t vocab, dsc_error *err);
int cuda_sample_residual(live_backend *b, live_residual_sample *out, const live_dists *dists,
                         const dsc_residual *residual, double u, int64_t vocab, dsc_error *err);
int cuda_fill(live_backend *b, void *p, dsc_dtype dtype, int64_t count, uint64_t seed,
              uint64_t stream, double limit, dsc_error *err); // memory.cu
int cuda_move(live_backend *b, const live_cache *cache, const int32_t *from, int64_t count,
              int64_t to, dsc_error *err);
int cuda_probe(live_backend *b, dsc_dtype dtype, live_probe *out, dsc_error *err); // probe.cu

// The address of the sequences of the next batch, from that of a batch's in a layer of the cache.
static inline void *cuda_next_sequences(const void *layer, const live_cache *cache,
                                        const cuda_pass *pass)
{
    const int64_t numbers = pass->sequences * cache->slots * cache->width;
    return (char *)layer + (size_t)numbers * dsc_dtype_bytes(cache->dtype);
}

static inline int64_t cuda_blocks(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

// Number of threads of a block that processes `width` numbers, `each` per thread: whole warps, at
// most 1024.
static inline int cuda_threads(int64_t width, int64_t each)
{
    int64_t n = cuda_blocks(cuda_blocks(width, each), CUDA_LANES) * CUDA_LANES;
    return (int)(n < 1024 ? n : 1024);
}

// Number of blocks of a launch. Unlike dim3 it holds any count, so that cuda_launch can refuse one
// that is too large instead of truncating it to 32 bits.
struct cuda_grid {
    int64_t x, y, z;
    cuda_grid(int64_t nx, int64_t ny = 1, int64_t nz = 1) : x(nx), y(ny), z(nz)
    {
    }
    cuda_grid(dim3 g) : x(g.x), y(g.y), z(g.z)
    {
    }
};

// Fails unless CUDA can launch `kernel` with this grid and dynamic shared memory per block, and
// sets the attributes of the kernel that this takes, once.
int cuda_check_launch(live_cuda *c, const char *name, const void *kernel, cuda_grid grid,
                      size_t shared_bytes, dsc_error *err);

// Launches kernel<<<grid, threads, shared_bytes>>>(args...) on the backend's stream; the kernel
// gets its dynamic shared memory by cuda_dynamic_shared().
template <typename... P, typename... A>
int cuda_launch_shared(live_cuda *c, const char *name, void (*kernel)(P...), cuda_grid grid,
                       int threads, size_t shared_bytes, dsc_error *err, A... args)
{
    const int failed = cuda_check_launch(c, name, (const void *)kernel, grid, shared_bytes, err);
    if (failed)
        return failed;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)grid.x, (unsigned)grid.y, (unsigned)grid.z);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = c->stream;
    config.attrs = &attribute;
    config.numAttrs = c->overlap && c->follows ? 1 : 0;
    c->follows = true;
    return cuda_check(c, cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...), name, err);
}

// A launch without dynamic shared memory.
template <typename... P, typename... A>
int cuda_launch(live_cuda *c, const char *name, void (*kernel)(P...), cuda_grid grid, int threads,
                dsc_error *err, A... args)
{
    return cuda_launch_shared(c, name, kernel, grid, threads, 0, err, args...);
}

// --- on the device --------------------------------------------------------------------------

__device__ __forceinline__ void cuda_wait_previous()
{
#if !defined(__CUDACC__) || __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// The dynamic shared memory of the block, 128-byte aligned; cuda_launch_shared sets its size.
__device__ __forceinline__ void *cuda_dynamic_shared()
{
#ifdef __CUDACC__
    extern __shared__ __align__(128) unsigned char cuda_shared_memory[];
    return cuda_shared_memory;
#else
    return emulated::dynamic_shared;
#endif
}

__device__ __forceinline__ float cuda_float(float x)
{
    return x;
}
__device__ __forceinline__ float cuda_float(__half x)
{
    return __half2float(x);
}
__device__ __forceinline__ float cuda_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

// Rounds to nearest, ties to even.
template <typename T> __device__ __forceinline__ T cuda_round(float x);
template <> __device__ __forceinline__ float cuda_round<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ __half cuda_round<__half>(float x)
{
    return __float2half_rn(x);
}
template <> __device__ __forceinline__ __nv_bfloat16 cuda_round<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

// Element i of an array whose dtype is known at run time.
__device__ __forceinline__ float cuda_element(const void *p, dsc_dtype dtype, int64_t i)
{
    if (dtype == DSC_F32)
        return ((const float *)p)[i];
    if (dtype == DSC_F16)
        return __half2float(((const __half *)p)[i]);
    return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

// Stores element i of such an array, rounded.
__device__ __forceinline__ void cuda_store(void *out, dsc_dtype dtype, int64_t i, float x)
{
    if (dtype == DSC_F32)
        ((float *)out)[i] = x;
    else if (dtype == DSC_F16)
        ((__half *)out)[i] = cuda_round<__half>(x);
    else
        ((__nv_bfloat16 *)out)[i] = cuda_round<__nv_bfloat16>(x);
}

// Unpacks 16 bytes of a dtype: eight numbers, or four of F32.
__device__ __forceinline__ void cuda_unpack(float (&v)[4], uint4 w, float)
{
    v[0] = __uint_as_float(w.x), v[1] = __uint_as_float(w.y);
    v[2] = __uint_as_float(w.z), v[3] = __uint_as_float(w.w);
}
__device__ __forceinline__ void cuda_unpack(float (&v)[8], uint4 w, __nv_bfloat16)
{
    const uint32_t u[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2 * i] = __uint_as_float(u[i] << 16);
        v[2 * i + 1] = __uint_as_float(u[i] & 0xffff0000u);
    }
}
__device__ __forceinline__ void cuda_unpack(float (&v)[8], uint4 w, __half)
{
    const uint32_t u[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2 * i] = __half2float(__ushort_as_half((unsigned short)(u[i] & 0xffffu)));
        v[2 * i + 1] = __half2float(__ushort_as_half((unsigned short)(u[i] >> 16)));
    }
}
// Sum over a warp; every lane gets the result, with one order of operations.
__device__ __forceinline__ float cuda_warp_sum(float x)
{
#pragma unroll
    for (int step = CUDA_LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
__device__ __forceinline__ float cuda_warp_max(float x)
{
#pragma unroll
    for (int step = CUDA_LANES / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

// Sum over a block of at most 1024 threads (whole warps); every thread gets the result.
__device__ __forceinline__ float cuda_block_sum(float x)
{
    __shared__ float part[CUDA_LANES];
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    const int warps = blockDim.x / CUDA_LANES;
    x = cuda_warp_sum(x);
    __syncthreads(); // `part` may still be read by the previous sum
    if (lane == 0)
        part[warp] = x;
    __syncthreads();
    return cuda_warp_sum(lane < warps ? part[lane] : 0.0f);
}

// Returns true, in all threads, for the last of `blocks` blocks that arrive here: the other blocks'
// partial results may then be read, past the L1 cache (__ldcg). The first barrier orders the
// block's writes before thread 0, whose fence orders them before the count; the second fence and
// barrier do the converse for the reader. The count returns to 0.
__device__ __forceinline__ bool cuda_last_block(unsigned *arrived, int64_t blocks)
{
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned others = (unsigned)blocks - 1;
        __threadfence();
        last = atomicInc(arrived, others) == others;
        __threadfence();
    }
    __syncthreads();
    return last;
}

#endif
