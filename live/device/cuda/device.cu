// SPDX-License-Identifier: Apache-2.0
// Functions that every operation uses: error reports, kernel launches, scratch memory.
#include "live/device/cuda/cuda.cuh"

#include <stdio.h>
#include <string.h>

// --- failures ----------------------------------------------------------------------------------

int cuda_check(const live_cuda *c, cudaError_t e, const char *call, dsc_error *err)
{
    size_t available = 0, total = 0;
    if (e == cudaSuccess)
        return DSC_OK;
    cudaGetLastError(); // clears the error, unless the device is unusable
    if (e != cudaErrorMemoryAllocation)
        return dsc_fail(err, DSC_EDEVICE, "%s: %s: %s", c->base.device, call,
                        cudaGetErrorString(e));
    cudaMemGetInfo(&available, &total);
    return dsc_fail(err, DSC_ENOMEM, "%s: %s: out of memory: %zu of %zu bytes are free",
                    c->base.device, call, available, total);
}

int cuda_check_tokens(const live_batch *batch, int64_t vocab, int64_t learned, dsc_error *err)
{
    for (; batch; batch = batch->next)
        for (int64_t i = 0; i < batch->tokens * batch->sequences; i++) {
            const int64_t position =
                batch->position[i % batch->tokens] + live_batch_shift(batch, i / batch->tokens);
            if (batch->token[i] < 0 || batch->token[i] >= vocab)
                return dsc_fail(err, DSC_EUSAGE, "token %d is not in the embedding of %lld",
                                (int)batch->token[i], (long long)vocab);
            if (learned && (position < 0 || position >= learned))
                return dsc_fail(err, DSC_EUSAGE,
                                "position %lld is not among the %lld learned positions of the "
                                "model",
                                (long long)position, (long long)learned);
        }
    return DSC_OK;
}

// --- launching ---------------------------------------------------------------------------------

// Sets an attribute of a kernel, unless it is in the list of those that have it. Kernels beyond the
// list get it at each launch.
static int set_attribute(live_cuda *c, const char *name, const void *kernel,
                         cudaFuncAttribute attribute, int value, const void **list, int *length,
                         dsc_error *err)
{
    for (int i = 0; i < *length; i++)
        if (list[i] == kernel)
            return DSC_OK;
    const int failed = cuda_check(c, cudaFuncSetAttribute(kernel, attribute, value), name, err);
    if (!failed && *length < CUDA_KERNELS)
        list[(*length)++] = kernel;
    return failed;
}

// CUDA keeps one limit per kernel for all backends of a device, so every backend sets the same
// limit: a smaller one would break the launches of another backend.
static int allow_shared(live_cuda *c, const char *name, const void *kernel, size_t bytes,
                        dsc_error *err)
{
    if (bytes > c->shared_bytes)
        return dsc_fail(err, DSC_EABSENT,
                        "%s: %s: %zu bytes of shared memory are needed; a block has %zu at most",
                        c->base.device, name, bytes, c->shared_bytes);
    return set_attribute(c, name, kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         (int)c->shared_bytes, c->opted_in, &c->opted_ins, err);
}

int cuda_check_launch(live_cuda *c, const char *name, const void *kernel, cuda_grid grid,
                      size_t shared_bytes, dsc_error *err)
{
    if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > INT32_MAX || grid.y > UINT16_MAX ||
        grid.z > UINT16_MAX)
        return dsc_fail(err, DSC_EUSAGE,
                        "%s: %s: a grid of %lld x %lld x %lld blocks; CUDA launches at most "
                        "2147483647 x 65535 x 65535",
                        c->base.device, name, (long long)grid.x, (long long)grid.y,
                        (long long)grid.z);
    int failed = DSC_OK;
    if (shared_bytes > CUDA_SHARED)
        failed = allow_shared(c, name, kernel, shared_bytes, err);
    if (!failed && c->set.carveout >= 0)
        failed = set_attribute(c, name, kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                               c->set.carveout, c->carved, &c->carveds, err);
    return failed;
}

// --- the device --------------------------------------------------------------------------------

int cuda_use(const live_cuda *c, dsc_error *err)
{
    return cuda_check(c, cudaSetDevice(c->set.device), "cudaSetDevice", err);
}

int cuda_use_idle(live_cuda *c, dsc_error *err)
{
    const int failed = cuda_use(c, err);
    if (!failed && c->capturing) {
        cudaGraph_t graph = NULL;
        cudaStreamEndCapture(c->stream, &graph); // an error of the capture itself does not matter
        if (graph)
            cudaGraphDestroy(graph);
        cudaGetLastError();
        c->current->ran = false; // its requirements must be determined again
        c->current = NULL;
        c->capturing = c->follows = false;
        c->lost = true;
    }
    return failed;
}

void cuda_forget_graph(live_cuda *c, cuda_graph *g)
{
    if (g->exec) {
        cudaStreamSynchronize(c->stream); // it may be running
        cudaGraphExecDestroy(g->exec);
    }
    if (c->current == g)
        c->current = NULL;
    memset(g, 0, sizeof *g);
}

int cuda_device_alloc(live_cuda *c, void **out, size_t bytes, dsc_error *err)
{
    char call[64];
    snprintf(call, sizeof call, "cudaMalloc of %zu bytes", bytes);
    const int failed = cuda_check(c, cudaMalloc(out, bytes ? bytes : 1), call, err);
    if (failed)
        *out = NULL;
    return failed;
}

int cuda_clear(live_cuda *c, void *p, size_t bytes, dsc_error *err)
{
    c->follows = false;
    return bytes ? cuda_check(c, cudaMemsetAsync(p, 0, bytes, c->stream), "cudaMemsetAsync", err)
                 : DSC_OK;
}

// Initial bytes of scratch memory. 128 rows of activations have up to 65536 16-bit numbers each,
// and as many products a vocabulary of up to 196608 tokens; the rest is several times the need of
// 128 tokens of an 8B model.
static const size_t first_scratch[CUDA_SCRATCHES] = {
    (size_t)16 << 20, // CUDA_ACTIVATIONS
    (size_t)96 << 20, // CUDA_PRODUCTS
    (size_t)64 << 20, // CUDA_PARTIALS
    (size_t)8 << 20,  // CUDA_SUMS
    (size_t)64 << 10, // CUDA_ARRIVALS
    (size_t)8 << 20,  // CUDA_DISTS
    (size_t)8 << 20,  // CUDA_OVERLAP
};

static int grow_scratch(live_cuda *c, cuda_scratch_use use, size_t bytes, dsc_error *err)
{
    size_t more = 2 * c->scratch_bytes[use];
    more = more > first_scratch[use] ? more : first_scratch[use];
    more = more > bytes ? more : bytes;
    for (int i = 0; i < CUDA_GRAPHS; i++)
        if (c->graph[i].scratch >> use & 1)
            cuda_forget_graph(c, &c->graph[i]);
    cudaStreamSynchronize(c->stream);
    cudaFree(c->scratch[use]);
    c->scratch[use] = NULL;
    c->scratch_bytes[use] = 0;
    int failed = cuda_device_alloc(c, &c->scratch[use], more, err);
    if (failed && more > bytes) { // memory is short: allocate only what is needed
        more = bytes;
        failed = cuda_device_alloc(c, &c->scratch[use], more, err);
    }
    if (!failed)
        c->scratch_bytes[use] = more;
    return failed;
}

int cuda_scratch(live_cuda *c, cuda_scratch_use use, size_t bytes, void **out, dsc_error *err)
{
    int failed = DSC_OK;
    if (c->capturing)
        c->current->scratch |= 1u << use;
    if (bytes > c->scratch_bytes[use]) {
        if (c->capturing) // a direct run of this pass has grown it far enough
            return dsc_fail(err, DSC_ENOMEM, "%s: %zu bytes more wanted in a captured pass",
                            c->base.device, bytes);
        failed = grow_scratch(c, use, bytes, err);
    }
    *out = c->scratch[use];
    return failed;
}

int cuda_counters(live_cuda *c, int64_t count, unsigned **out, dsc_error *err)
{
    const size_t before = c->scratch_bytes[CUDA_ARRIVALS];
    void *room = NULL;
    int failed = cuda_scratch(c, CUDA_ARRIVALS, (size_t)count * sizeof **out, &room, err);
    if (!failed && c->scratch_bytes[CUDA_ARRIVALS] != before)
        failed = cuda_clear(c, room, c->scratch_bytes[CUDA_ARRIVALS], err);
    *out = (unsigned *)room;
    return failed;
}
