// SPDX-License-Identifier: Apache-2.0
// The part of CUDA that live/device/cuda/ uses, on the host, so that its kernels and launches are
// tested on machines without a device: threads.h runs the threads of a grid, order.h says what
// orders their accesses. Device memory is host memory, so that a sanitizer sees every access.
//
// Not emulated: what concurrent accesses would read, caches, and speed. Products are plain loops in
// place of cuBLAS.
#ifndef DSC_TESTS_CUDA_RUNTIME_H
#define DSC_TESTS_CUDA_RUNTIME_H

#include "settings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#define __global__
#define __host__
#define __device__
#define __host__
// GCC's ThreadSanitizer does not see a structure being read to be passed by value.
#define __forceinline__ inline __attribute__((always_inline))
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

#include "threads.h"

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
    order::point *last; // the end of its last kernel
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
    emulated::settle();
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

// Performs the work, or adds it to the graph that is being captured.
static inline cudaError_t emulated_add(cudaStream_t s, std::function<void()> what)
{
    if (s->capture)
        s->capture->push_back(what);
    else
        what();
    return cudaSuccess;
}
// The same with work that is not a kernel: it begins after all kernels have ended.
static inline cudaError_t emulated_do(cudaStream_t s, std::function<void()> what)
{
    return emulated_add(s, [=]() {
        emulated::settle();
        what();
    });
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
static inline cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute what,
                                               int bytes)
{
    if (what == cudaFuncAttributePreferredSharedMemoryCarveout) {
        emulated_carved++;
        return bytes < -1 || bytes > 100 ? cudaErrorInvalidValue : cudaSuccess;
    }
    if (bytes < 0 || (size_t)bytes + emulated_shared_static > emulated_shared_most)
        return cudaErrorInvalidValue;
    const std::lock_guard<std::recursive_mutex> turn(emulated::busy);
    emulated_shared_of[kernel] = (size_t)bytes;
    return cudaSuccess;
}
static inline bool emulated_shared_fits(const void *kernel, size_t bytes)
{
    const std::lock_guard<std::recursive_mutex> turn(emulated::busy);
    const auto found = emulated_shared_of.find(kernel);
    return bytes <= (found == emulated_shared_of.end() ? emulated_shared_first : found->second);
}

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
    const auto body = std::make_shared<const std::function<void()>>([=]() { kernel(args...); });
    const cudaStream_t stream = c->stream;
    return emulated_add(stream, [=]() {
        const std::lock_guard<std::recursive_mutex> turn(emulated::busy);
        emulated_overlaps += overlaps;
        if (emulated_launches == 0) // nothing more runs on this device
            return;
        emulated_launches -= emulated_launches > 0;
        emulated::launch({(const void *)kernel, grid, (int)block.x, shared, body}, overlaps > 0,
                         stream->last);
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
    emulated::settle();
    delete e;
    return cudaSuccess;
}
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
    emulated::settle();
    return s->capture               ? cudaErrorInvalidValue
           : emulated_launches == 0 ? cudaErrorIllegalAddress
                                    : cudaSuccess;
}
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, int)
{
    if (emulated_busy)
        return cudaErrorDevicesUnavailable;
    *s = new emulated_stream{nullptr, nullptr};
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
