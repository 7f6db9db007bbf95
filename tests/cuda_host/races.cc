// SPDX-License-Identifier: Apache-2.0
// Kernels with one fault each, and the same without it, for the checks of the emulated device:
// races CASE right|wrong. With -fsanitize=thread a race ends in exit code 66; NaN in the results
// ends in 1, undefined behavior in an abort. Without arguments it prints a line for each case: its
// name, the exit code that `wrong` has, and which check finds it: that of the threads of a block
// (threads), that of blocks and kernels (blocks), or both (any).
#include "cuda_runtime.h"
#include "settings.cc"

enum { THREADS = 64, BLOCKS = 4, COUNT = THREADS * BLOCKS };

// Memory that the kernels share; `out` has the results.
struct memory {
    float in[COUNT], middle[COUNT], out[COUNT];
    unsigned arrived, total;
};

static inline unsigned index_of()
{
    return blockIdx.x * THREADS + threadIdx.x;
}

static inline void wait_previous()
{
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
}

// --- between threads of a block ------------------------------------------------------------------

enum syncing { SHUFFLE, SYNC_WARP, SYNC_BLOCK };

// Exchanges numbers between threads whose numbers differ by FLIP, by way of shared memory. A
// shuffle is no barrier for memory, and a warp's barrier none for other warps.
template <syncing SYNC, unsigned FLIP> static void exchange_kernel(memory *m)
{
    __shared__ float all[THREADS];
    wait_previous();
    all[threadIdx.x] = m->in[index_of()];
    if (SYNC == SYNC_BLOCK)
        __syncthreads();
    else if (SYNC == SYNC_WARP)
        __syncwarp();
    else
        __shfl_sync(~0u, 0, 0);
    m->out[index_of()] = all[threadIdx.x ^ FLIP];
}

// A second use of shared memory, before all have read what the first one left there.
template <bool RIGHT> static void reuse_kernel(memory *m)
{
    __shared__ float all[THREADS];
    wait_previous();
    float sum = 0;
    for (int round = 0; round < 2; round++) {
        if (RIGHT)
            __syncthreads();
        all[threadIdx.x] = m->in[index_of()];
        __syncthreads();
        sum += all[(threadIdx.x + 1) % THREADS];
    }
    m->out[index_of()] = sum;
}

// --- between blocks ------------------------------------------------------------------------------

// Counts without an atomic operation.
template <bool RIGHT> static void count_kernel(memory *m)
{
    wait_previous();
    if (threadIdx.x == 0 && RIGHT)
        atomicAdd(&m->total, 1);
    else if (threadIdx.x == 0)
        m->total++;
}

enum fences { BOTH, NONE, WRITER, READER, TOO_EARLY, NO_BARRIER };

// The last block to arrive adds what all have written.
template <fences FENCES> static void last_kernel(memory *m)
{
    __shared__ bool last;
    wait_previous();
    if (FENCES == TOO_EARLY && threadIdx.x == 0)
        __threadfence();
    m->middle[index_of()] = m->in[index_of()];
    if (FENCES != NO_BARRIER)
        __syncthreads();
    if (threadIdx.x == 0) {
        if (FENCES == BOTH || FENCES == WRITER || FENCES == NO_BARRIER)
            __threadfence();
        last = atomicInc(&m->arrived, BLOCKS - 1) == BLOCKS - 1;
        if (FENCES != NONE && FENCES != WRITER)
            __threadfence();
    }
    __syncthreads();
    for (unsigned b = 0; b < BLOCKS && last; b++)
        m->out[threadIdx.x] += m->middle[b * THREADS + threadIdx.x];
}

// --- between kernels -----------------------------------------------------------------------------

template <int STEP> static void copy_kernel(memory *m)
{
    wait_previous();
    float *const to = STEP == 0 ? m->middle : m->out, *const from = STEP == 0 ? m->in : m->middle;
    to[index_of()] = from[COUNT - 1 - index_of()];
}

// Reads the result of the previous kernel before it waits.
static void early_read_kernel(memory *m)
{
    const float x = m->middle[COUNT - 1 - index_of()];
    wait_previous();
    m->out[index_of()] = x;
}

// Overwrites what the previous kernel reads.
template <bool RIGHT> static void overwrite_kernel(memory *m)
{
    if (RIGHT)
        wait_previous();
    m->in[index_of()] = 0;
    if (!RIGHT)
        wait_previous();
}

// Some blocks return at once; if all of them did, the end of this kernel would say nothing about
// the kernel before it.
template <bool RIGHT> static void idle_kernel(memory *)
{
    if (RIGHT ? blockIdx.x > 0 : true)
        return;
    wait_previous();
}

static void early_trigger_kernel(memory *)
{
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
}

// --- asynchronous copies -------------------------------------------------------------------------

enum copying { WAITS, TOO_FEW, NEVER, ALONE, OVER, CHANGED };

// Reads a block's numbers in two halves, each in a group of its own.
template <copying HOW> static void copy_async_kernel(memory *m)
{
    __shared__ __align__(16) float all[2][THREADS];
    wait_previous();
    uint4 *const to = (uint4 *)all[0] + threadIdx.x;
    uint4 *const from = (uint4 *)(m->in + blockIdx.x * THREADS) + threadIdx.x;
    float sum = 0;
    if (threadIdx.x < THREADS / 4) {
        emulated::begin_copy(to, from, true);
        emulated::end_group();
        emulated::begin_copy(to + THREADS / 4, from, true);
        emulated::end_group();
        if (HOW == CHANGED)
            from->x++;
        if (HOW != NEVER)
            emulated::await_copies(HOW == TOO_FEW ? 2 : 1);
    }
    if (HOW != ALONE)
        __syncthreads();
    else
        __shfl_sync(~0u, 0, 0);
    sum += all[0][threadIdx.x];
    if (threadIdx.x < THREADS / 4) {
        if (HOW == OVER) // others may not have read it yet
            emulated::begin_copy(to, from, true);
        emulated::end_group();
        if (HOW != NEVER)
            emulated::await_copies(0);
    }
    __syncthreads();
    m->out[index_of()] = sum + all[1][threadIdx.x];
}

// -------------------------------------------------------------------------------------------------

typedef void (*kernel)(memory *);
static const struct {
    const char *name;
    int code;
    const char *where;
    kernel right[2], wrong[2]; // two kernels in sequence; NULL: none
} cases[] = {
    {"barrier", 66, "threads", {exchange_kernel<SYNC_BLOCK, 63>}, {exchange_kernel<SHUFFLE, 63>}},
    {"warp", 66, "threads", {exchange_kernel<SYNC_WARP, 31>}, {exchange_kernel<SHUFFLE, 31>}},
    {"warps", 66, "threads", {exchange_kernel<SYNC_BLOCK, 63>}, {exchange_kernel<SYNC_WARP, 63>}},
    {"reuse", 66, "threads", {reuse_kernel<true>}, {reuse_kernel<false>}},
    {"count", 66, "blocks", {count_kernel<true>}, {count_kernel<false>}},
    {"no-fence", 66, "blocks", {last_kernel<BOTH>}, {last_kernel<NONE>}},
    {"no-fence-of-reader", 66, "blocks", {last_kernel<BOTH>}, {last_kernel<WRITER>}},
    {"no-fence-of-writer", 66, "blocks", {last_kernel<BOTH>}, {last_kernel<READER>}},
    {"fence-too-early", 66, "blocks", {last_kernel<BOTH>}, {last_kernel<TOO_EARLY>}},
    {"fence-of-one", 66, "blocks", {last_kernel<BOTH>}, {last_kernel<NO_BARRIER>}},
    {"early-read",
     66,
     "blocks",
     {copy_kernel<0>, copy_kernel<1>},
     {copy_kernel<0>, early_read_kernel}},
    {"early-write",
     66,
     "blocks",
     {copy_kernel<0>, overwrite_kernel<true>},
     {copy_kernel<0>, overwrite_kernel<false>}},
    {"idle", 134, "any", {idle_kernel<true>}, {idle_kernel<false>}},
    {"early-trigger", 134, "any", {idle_kernel<true>}, {early_trigger_kernel}},
    {"copy-count", 1, "blocks", {copy_async_kernel<WAITS>}, {copy_async_kernel<TOO_FEW>}},
    {"copy-end", 134, "any", {copy_async_kernel<WAITS>}, {copy_async_kernel<NEVER>}},
    {"copy-source", 134, "any", {copy_async_kernel<WAITS>}, {copy_async_kernel<CHANGED>}},
    {"copy-barrier", 66, "threads", {copy_async_kernel<WAITS>}, {copy_async_kernel<ALONE>}},
    {"copy-over", 66, "threads", {copy_async_kernel<WAITS>}, {copy_async_kernel<OVER>}},
};

// Runs the kernels one after the other, overlapping; true if no number of the result is NaN.
static bool run(const kernel *kernels)
{
    memory *m;
    cudaStream_t stream;
    cudaLaunchAttribute attribute = {cudaLaunchAttributeProgrammaticStreamSerialization, {1}};
    if (cudaStreamCreateWithFlags(&stream, 0) || cudaMalloc((void **)&m, sizeof *m))
        abort();
    cudaMemsetAsync(m, 0, sizeof *m, stream);
    for (int i = 0; i < 2 && kernels[i]; i++) {
        const cudaLaunchConfig_t config = {dim3(BLOCKS), dim3(THREADS), 0, stream, &attribute, i};
        if (cudaLaunchKernelEx(&config, kernels[i], m))
            abort();
    }
    cudaStreamSynchronize(stream);
    bool good = true;
    for (float x : m->out)
        good = good && x == x;
    cudaFree(m);
    cudaStreamDestroy(stream);
    return good;
}

int main(int argc, char **argv)
{
    for (const auto &c : cases) {
        if (argc < 2)
            printf("%s %d %s\n", c.name, c.code, c.where);
        else if (argc == 3 && !strcmp(argv[1], c.name))
            return run(strcmp(argv[2], "right") ? c.wrong : c.right) ? 0 : 1;
    }
    return argc < 2 ? 0 : 2;
}
