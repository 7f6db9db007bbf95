// SPDX-License-Identifier: Apache-2.0
// The part of CUDA that live/device/cuda/ uses, on the host, so that its kernels and launches are
// tested on machines without a device. A block's threads are contexts that run in sequence until
// each reaches a barrier, a vote or a shuffle; blocks run in sequence. Device memory is host
// memory, so that a sanitizer sees every access. Behavior that CUDA leaves undefined ends the
// program with a message: a thread that has returned while its warp or block waits, or threads that
// wait for different things.
//
// Not emulated: true concurrency of blocks or warps, weak memory ordering, and speed. Products are
// plain loops in place of cuBLAS.
#ifndef DSC_TESTS_CUDA_RUNTIME_H
#define DSC_TESTS_CUDA_RUNTIME_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include <setjmp.h>
#include <ucontext.h>

#define __global__
#define __host__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
    {
    }
};

static inline float2 make_float2(float x, float y)
{
    return {x, y};
}

static dim3 threadIdx, blockIdx, blockDim, gridDim;

// --- threads of a block ----------------------------------------------------------------------

namespace emulated
{
enum wait_for { NOTHING, WARP, BLOCK, THE_END };

struct thread {
    jmp_buf at;
    bool begun;
    wait_for waits;
    int turn; // of its warp's exchanges
    int poll; // of its block's votes
};

static const size_t stack_bytes = 64 << 10;
static std::vector<thread> threads;
static std::vector<std::vector<char>> stacks;
static std::vector<uint64_t>
    exchange;        // [2][threads]: values that lanes offer, by the parity of the turn
static int votes[3]; // of a vote, the previous one and the next one
static jmp_buf scheduler;
static int current;
static std::function<void()> body;
static std::mutex busy;      // streams of different threads take turns
static void *dynamic_shared; // of the launch, on the heap, so that a sanitizer sees its end

[[noreturn]] static inline void stop(const char *what)
{
    fprintf(stderr, "emulated CUDA: %s (block %u %u %u, thread %d)\n", what, blockIdx.x, blockIdx.y,
            blockIdx.z, current);
    abort();
}

// Returns to the scheduler until it resumes the thread.
static inline void pause(wait_for what)
{
    threads[(size_t)current].waits = what;
    if (!_setjmp(threads[(size_t)current].at))
        _longjmp(scheduler, 1);
}

// Runs the blocks in sequence.
static void run_thread()
{
    for (;;) {
        body();
        pause(THE_END);
    }
}

// Contexts are used only to start threads: each switch by them would need a system call.
static void resume(int t)
{
    thread &h = threads[(size_t)t];
    current = t;
    threadIdx.x = (unsigned)t;
    if (_setjmp(scheduler))
        return;
    if (h.begun)
        _longjmp(h.at, 1);
    h.begun = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks[(size_t)t].data();
    context.uc_stack.ss_size = stack_bytes;
    context.uc_link = nullptr;
    makecontext(&context, run_thread, 0);
    setcontext(&context);
}

// Resumes threads [from, to) when all of them wait for `what`.
static inline void release(int from, int to, wait_for what)
{
    for (int t = from; t < to; t++)
        if (threads[(size_t)t].waits != what)
            return;
    for (int t = from; t < to; t++)
        threads[(size_t)t].waits = NOTHING;
}

static void run_block(int count)
{
    while ((int)stacks.size() < count)
        stacks.emplace_back(stack_bytes);
    if ((int)threads.size() < count)
        threads.resize((size_t)count);
    memset(votes, 0, sizeof votes);
    exchange.assign(2 * threads.size(), 0);
    for (int t = 0; t < count; t++) {
        thread &h = threads[(size_t)t];
        h.waits = NOTHING;
        h.turn = h.poll = 0;
    }
    // Every other block runs its threads in reverse, so that reading data before it is written
    // fails in one of the two orders.
    static bool backwards;
    backwards = !backwards;
    for (int ended = 0; ended < count;) {
        bool moved = false;
        for (int i = 0; i < count; i++) {
            const int t = backwards ? count - 1 - i : i;
            if (threads[(size_t)t].waits != NOTHING)
                continue;
            moved = true;
            resume(t);
            ended += threads[(size_t)t].waits == THE_END;
        }
        if (!moved)
            stop("threads wait for what never happens: some have returned, or wait elsewhere");
        for (int w = 0; w < count; w += 32)
            release(w, std::min(w + 32, count), WARP);
        release(0, count, BLOCK);
    }
}

// Every other grid runs its blocks in reverse, because a device does not define which block ends
// last either. Dynamic shared memory begins as NaN in each block.
static void run_grid(dim3 grid, int count, size_t shared)
{
    static bool backwards;
    backwards = !backwards;
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks; i++) {
        const uint64_t b = backwards ? blocks - 1 - i : i;
        blockIdx = dim3((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y),
                        (unsigned)(b / grid.x / grid.y));
        if (shared)
            memset(dynamic_shared, 0xff, shared);
        run_block(count);
    }
}

// The value that `lane` of the thread's warp offers.
template <typename T> static inline T shuffle(unsigned mask, T mine, int lane)
{
    const int first = current / 32 * 32, turn = threads[(size_t)current].turn++ % 2;
    const size_t half = threads.size();
    if (mask != 0xffffffffu)
        stop("a part of a warp");
    static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
    memcpy(&exchange[(size_t)turn * half + (size_t)current], &mine, sizeof mine);
    pause(WARP);
    T theirs;
    memcpy(&theirs, &exchange[(size_t)turn * half + (size_t)(first + lane % 32)], sizeof theirs);
    return theirs;
}

// The values that all lanes of the thread's warp offer.
static inline void offers(uint64_t (&all)[32], uint64_t mine)
{
    const size_t half = threads.size();
    const int turn = threads[(size_t)current].turn % 2;
    shuffle(0xffffffffu, mine, 0);
    memcpy(all, &exchange[(size_t)turn * half + (size_t)(current / 32 * 32)], sizeof all);
}
} // namespace emulated

static inline void __syncthreads()
{
    emulated::pause(emulated::BLOCK);
}
static inline void __syncwarp()
{
    emulated::pause(emulated::WARP);
}
template <typename T> static inline T __shfl_sync(unsigned mask, T x, int lane)
{
    return emulated::shuffle(mask, x, lane);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T x, int step)
{
    return emulated::shuffle(mask, x, (emulated::current % 32) ^ step);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T x, int step)
{
    const int lane = emulated::current % 32;
    return emulated::shuffle(mask, x, lane < step ? lane : lane - step);
}
static inline int __syncthreads_count(bool vote)
{
    const int poll = emulated::threads[(size_t)emulated::current].poll++;
    emulated::votes[(poll + 1) % 3] = 0; // that of two polls before, which all have read
    emulated::votes[poll % 3] += vote;
    emulated::pause(emulated::BLOCK);
    return emulated::votes[poll % 3];
}
static inline unsigned __ballot_sync(unsigned mask, bool vote)
{
    unsigned all = 0;
    uint64_t votes[32];
    if (mask != 0xffffffffu)
        emulated::stop("a part of a warp");
    emulated::offers(votes, vote);
    for (int lane = 0; lane < 32; lane++)
        all |= (unsigned)votes[lane] << lane;
    return all;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __ffsll(long long x)
{
    return __builtin_ffsll(x);
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline float __uint_as_float(unsigned x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}

static inline unsigned __float_as_uint(float f)
{
    unsigned x;
    memcpy(&x, &f, sizeof x);
    return x;
}

// Threads run one after the other.
template <typename T> static inline T emulated_add(T *p, T x)
{
    const T before = *p;
    *p += x;
    return before;
}
static inline unsigned atomicAdd(unsigned *p, unsigned x)
{
    return emulated_add(p, x);
}
static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long x)
{
    return emulated_add(p, x);
}

static inline unsigned atomicInc(unsigned *p, unsigned most)
{
    const unsigned before = *p;
    *p = before >= most ? 0 : before + 1;
    return before;
}
static inline void __threadfence()
{
}
template <typename T> static inline T __ldcg(const T *p)
{
    return *p;
}
using std::max;

// --- the runtime -----------------------------------------------------------------------------

typedef int cudaError_t;
enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorIllegalAddress = 700,
    cudaErrorStreamCaptureInvalidated = 901,
};
#define __CUDA_ARCH_LIST__ 800, 900
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaStreamCaptureModeThreadLocal };
enum { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };

typedef std::vector<std::function<void()>> cudaGraphList;
typedef cudaGraphList *cudaGraph_t, *cudaGraphExec_t;
struct emulated_stream {
    cudaGraphList *capture;
};
typedef emulated_stream *cudaStream_t;
typedef int *cudaEvent_t;
struct cudaLaunchAttribute {
    int id;
    struct {
        int programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    int numAttrs;
};
struct cudaDeviceProp {
    char name[32];
    int major, minor, multiProcessorCount;
    size_t totalGlobalMem, sharedMemPerBlockOptin;
};

// Settings of a test.
extern size_t emulated_memory; // allocations up to this number of bytes succeed
extern size_t emulated_used;
extern long emulated_allocations;   // allocations that still succeed; negative: any number
extern int emulated_devices;        // visible devices
extern int emulated_driver;         // the driver's CUDA, 12040 for 12.4; 0: there is no driver
extern int emulated_capability;     // compute capability, 90 for 9.0
extern bool emulated_no_kernels;    // the program has none for the device
extern int emulated_capture_errors; // failing captures from now on
extern long emulated_launches; // kernels until one uses an illegal address; negative: none does
enum { EMULATED_RUNTIME = 13000 };

static inline bool emulated_allocates(size_t bytes)
{
    if (bytes > emulated_memory - emulated_used || emulated_allocations == 0)
        return false;
    emulated_allocations -= emulated_allocations > 0;
    return true;
}
static inline cudaError_t cudaMalloc(void **p, size_t bytes)
{
    if (!emulated_allocates(bytes))
        return cudaErrorMemoryAllocation;
    size_t *block = (size_t *)aligned_alloc(256, (bytes + 256 + 255) / 256 * 256);
    if (!block)
        return cudaErrorMemoryAllocation;
    memset((void *)block, 0xff, bytes + 256); // NaN until it is written
    *block = bytes;
    emulated_used += bytes;
    *p = (char *)block + 256;
    return cudaSuccess;
}
static inline cudaError_t cudaFree(void *p)
{
    if (!p)
        return cudaSuccess;
    size_t *block = (size_t *)((char *)p - 256);
    emulated_used -= *block;
    free(block);
    return cudaSuccess;
}
static inline cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    *p = emulated_allocates(0) ? malloc(bytes) : nullptr;
    if (*p)
        memset(*p, 0xff, bytes);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

// Runs the work, or adds it to the graph that is being captured.
static inline cudaError_t emulated_do(cudaStream_t s, std::function<void()> what)
{
    if (s->capture)
        s->capture->push_back(what);
    else
        what();
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    return emulated_do(s, [=]() { memset(p, value, bytes); });
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                                          cudaStream_t s)
{
    return emulated_do(s, [=]() { memcpy(to, from, bytes); });
}

// Shared memory that a block may have, and that each kernel may have: 48 KB at first. Both limits
// include static shared memory, which is not known here and taken to be 1 KB.
static const size_t emulated_shared_most = 227 << 10, emulated_shared_first = 47 << 10;
static const size_t emulated_shared_static = 1 << 10;
static std::map<const void *, size_t> emulated_shared_of;
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
extern int emulated_carved; // kernels whose carveout was set
static inline cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute what,
                                               int bytes)
{
    if (what == cudaFuncAttributePreferredSharedMemoryCarveout) {
        emulated_carved++;
        return bytes < -1 || bytes > 100 ? cudaErrorInvalidValue : cudaSuccess;
    }
    if (bytes < 0 || (size_t)bytes + emulated_shared_static > emulated_shared_most)
        return cudaErrorInvalidValue;
    const std::lock_guard<std::mutex> turn(emulated::busy);
    emulated_shared_of[kernel] = (size_t)bytes;
    return cudaSuccess;
}
static inline bool emulated_shared_fits(const void *kernel, size_t bytes)
{
    const std::lock_guard<std::mutex> turn(emulated::busy);
    const auto found = emulated_shared_of.find(kernel);
    return bytes <= (found == emulated_shared_of.end() ? emulated_shared_first : found->second);
}

extern int emulated_overlaps; // kernels that were launched before the one before them had ended
template <typename... P, typename... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*kernel)(P...),
                                             A... args)
{
    const dim3 grid = c->gridDim, block = c->blockDim;
    const size_t shared = c->dynamicSmemBytes;
    const int overlaps = c->numAttrs;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > 65535 ||
        grid.z > 65535 || block.x == 0 || block.x > 1024 ||
        !emulated_shared_fits((const void *)kernel, shared))
        return cudaErrorInvalidValue;
    return emulated_do(c->stream, [=]() {
        const std::lock_guard<std::mutex> turn(emulated::busy);
        emulated_overlaps += overlaps;
        if (emulated_launches == 0) // nothing more runs on this device
            return;
        emulated_launches -= emulated_launches > 0;
        gridDim = grid;
        blockDim = block;
        emulated::body = [=]() { kernel(args...); };
        if (shared && posix_memalign(&emulated::dynamic_shared, 128, shared))
            emulated::stop("no memory");
        emulated::run_grid(grid, (int)block.x, shared);
        free(emulated::dynamic_shared);
        emulated::dynamic_shared = nullptr;
    });
}

static inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, int)
{
    s->capture = new cudaGraphList;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    *g = s->capture;
    s->capture = nullptr;
    if (emulated_capture_errors == 0)
        return cudaSuccess;
    emulated_capture_errors--;
    delete *g;
    *g = nullptr;
    return cudaErrorStreamCaptureInvalidated;
}
static inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *e, cudaGraph_t g, int)
{
    *e = new cudaGraphList(*g);
    return cudaSuccess;
}
static inline cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    delete g;
    return cudaSuccess;
}
static inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e)
{
    delete e;
    return cudaSuccess;
}
extern int emulated_replays; // graphs launched so far
static inline cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t)
{
    emulated_replays++;
    for (const std::function<void()> &what : *e)
        what();
    return cudaSuccess;
}

// Waiting or querying during a capture is a caller's error, as in CUDA.
static inline cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    return s->capture               ? cudaErrorInvalidValue
           : emulated_launches == 0 ? cudaErrorIllegalAddress
                                    : cudaSuccess;
}
extern bool emulated_busy; // another process has the device for itself
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, int)
{
    if (emulated_busy)
        return cudaErrorDevicesUnavailable;
    *s = new emulated_stream{nullptr};
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    delete s;
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, int)
{
    *e = new int(0);
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *e)
{
    return cudaEventCreateWithFlags(e, 0);
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 1.0f; // not a time
    return cudaSuccess;
}
static inline cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emulated_driver;
    return cudaSuccess;
}
static inline cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = EMULATED_RUNTIME;
    return cudaSuccess;
}
struct cudaFuncAttributes {
    int ptxVersion;
};
template <typename F> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, F)
{
    a->ptxVersion = 90;
    return emulated_no_kernels ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 0;
    if (emulated_driver <
        EMULATED_RUNTIME / 1000 * 1000) // a driver runs older versions, and any minor version
        return cudaErrorInsufficientDriver;
    *n = emulated_devices;
    return *n ? cudaSuccess : cudaErrorNoDevice;
}
static inline cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}
static inline cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
static inline const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation           ? "out of memory"
           : e == cudaErrorNoDevice                 ? "no CUDA-capable device is detected"
           : e == cudaErrorStreamCaptureInvalidated ? "capture was invalidated"
           : e == cudaErrorDevicesUnavailable ? "CUDA-capable device(s) is/are busy or unavailable"
           : e == cudaErrorIllegalAddress     ? "an illegal memory access was encountered"
                                              : "invalid argument";
}
static inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = {"emulated", emulated_capability / 10, emulated_capability % 10,
          2,          emulated_memory,          emulated_shared_most};
    return cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = emulated_memory - emulated_used;
    *total = emulated_memory;
    return cudaSuccess;
}

#endif
