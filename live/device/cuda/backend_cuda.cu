// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: memory, passes that are captured in graphs and replayed, and the table of
// operations. The operations are in the other files of this folder; cuda.cuh explains how they work
// together.
#include "live/device/cuda/cuda.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Drops all graphs, because memory that any of them may use moves or is freed.
static void forget_graphs(live_cuda *c)
{
    for (int i = 0; i < CUDA_GRAPHS; i++)
        cuda_forget_graph(c, &c->graph[i]);
}

// --- memory ------------------------------------------------------------------------------------

static int cuda_alloc(live_backend *b, void *out, size_t bytes, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    void *p = NULL;
    int failed = cuda_use_idle(c, err);
    if (!failed)
        failed = cuda_device_alloc(c, &p, bytes, err);
    memcpy(out, &p, sizeof p); // a pointer of any type
    return failed ? failed : cuda_clear(c, p, bytes, err);
}

static void cuda_free(live_backend *b, void *p)
{
    live_cuda *c = cuda_of(b);
    if (!p || cuda_use_idle(c, NULL))
        return;
    forget_graphs(c); // one of them may use it
    cudaStreamSynchronize(c->stream);
    cudaFree(p);
}

static int cuda_wait(live_backend *b, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int failed = cuda_use_idle(c, err);
    return failed ? failed
                  : cuda_check(c, cudaStreamSynchronize(c->stream), "cudaStreamSynchronize", err);
}

static int copy_async(live_cuda *c, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                      dsc_error *err)
{
    c->follows = false;
    if (bytes == 0)
        return DSC_OK;
    return cuda_check(c, cudaMemcpyAsync(to, from, bytes, kind, c->stream), "cudaMemcpyAsync", err);
}

static int transfer(live_backend *b, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                    dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    int failed = cuda_use_idle(c, err);
    if (!failed)
        failed = copy_async(c, to, from, bytes, kind, err);
    return failed || bytes == 0 ? failed : cuda_wait(b, err);
}

static int cuda_upload(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err)
{
    return transfer(b, to, from, bytes, cudaMemcpyHostToDevice, err);
}

static int cuda_download(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err)
{
    return transfer(b, to, from, bytes, cudaMemcpyDeviceToHost, err);
}

static int cuda_copy(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int failed = cuda_use(c, err);
    return failed ? failed : copy_async(c, to, from, bytes, cudaMemcpyDeviceToDevice, err);
}

static int cuda_fetch(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int failed = cuda_use(c, err);
    return failed ? failed : copy_async(c, to, from, bytes, cudaMemcpyDeviceToHost, err);
}

static int cuda_alloc_host(live_backend *b, void *out, size_t bytes, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    void *p = NULL;
    const size_t some = bytes ? bytes : 1;
    int failed = cuda_use_idle(c, err);
    if (!failed)
        failed = cuda_check(c, cudaMallocHost(&p, some), "cudaMallocHost", err);
    if (failed)
        p = NULL;
    else
        memset(p, 0, some);
    memcpy(out, &p, sizeof p);
    return failed;
}

static void cuda_free_host(live_backend *b, void *p)
{
    live_cuda *c = cuda_of(b);
    if (!p || cuda_use_idle(c, NULL))
        return;
    forget_graphs(c); // one of them may write to it
    cudaStreamSynchronize(c->stream);
    cudaFreeHost(p);
}

static dsc_dtype cuda_cache_dtype(dsc_dtype weights)
{
    return weights;
}

static int cuda_available(live_backend *b, double *free_bytes, double *total_bytes, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    size_t spare = 0, total = 0;
    int failed = cuda_use(c, err);
    if (!failed)
        failed = cuda_check(c, cudaMemGetInfo(&spare, &total), "cudaMemGetInfo", err);
    *free_bytes = (double)spare;
    *total_bytes = (double)total;
    return failed;
}

// --- passes ------------------------------------------------------------------------------------

// Writes `count` numbers of a list at *at, advances *at, and returns the list's future address on
// the device, or NULL for an empty list.
template <typename T>
static const T *pack(char *host, const char *device, size_t *at, const T *list, int64_t count)
{
    const size_t begin = *at;
    if (!list)
        return NULL;
    if (host)
        memcpy(host + begin, list, (size_t)count * sizeof *list);
    *at += (size_t)count * sizeof *list;
    return (const T *)(device + begin);
}

// Packs the lists of a batch at *at into `host` (NULL: only counts) and advances *at.
static void pack_batch(cuda_pass *pass, const live_batch *batch, char *host, const char *device,
                       size_t *start)
{
    size_t at = (*start + 7) / 8 * 8; // the widest list comes first
    const int32_t prefix = (int32_t)batch->prefix;
    cuda_dist dist = {};
    if (batch->dist) // for a temperature without a reciprocal see theory/rows/softmax.c
        dist = {fmin(1 / batch->dist->temperature, 1e300), batch->dist->top_p, batch->dist->top_k};
    pass->tokens = batch->tokens;
    pass->sequences = batch->sequences;
    pass->outputs = batch->outputs;
    pass->words = batch->mask ? batch->words : 0;
    pass->mask = pack(host, device, &at, batch->mask, batch->tokens * batch->words);
    pass->window_mask = pack(host, device, &at, batch->window_mask, batch->tokens * batch->words);
    pass->dist = pack(host, device, &at, batch->dist ? &dist : NULL, 1);
    pass->prefix = pack(host, device, &at, &prefix, 1);
    pass->shift = pack(host, device, &at, batch->shift, batch->sequences);
    pass->token = pack(host, device, &at, batch->token, batch->tokens * batch->sequences);
    pass->position = pack(host, device, &at, batch->position, batch->tokens);
    pass->slot = pack(host, device, &at, batch->slot, batch->tokens);
    pass->output = pack(host, device, &at, batch->output, batch->outputs);
    pass->feature = pack(host, device, &at, batch->feature, batch->tokens);
    *start = at;
}

// Packs the lists of all batches of a pass and returns the number of bytes.
static size_t pack_lists(live_cuda *c, const live_batch *batch, char *host, const char *device)
{
    size_t at = 0;
    for (c->parts = 0; batch; batch = batch->next)
        pack_batch(&c->pass[c->parts++], batch, host, device, &at);
    return at;
}

// A list of at most CUDA_PARTS batches.
static int check_parts(const live_cuda *c, const live_batch *batch, dsc_error *err)
{
    int parts = 0;
    for (; batch && parts <= CUDA_PARTS; batch = batch->next)
        parts++;
    return parts <= CUDA_PARTS
               ? DSC_OK
               : dsc_fail(err, DSC_EABSENT,
                          "%s: the sequences of a pass have more than %d numbers of tokens",
                          c->base.device, CUDA_PARTS);
}

// Capacity for lists of this many bytes.
static size_t lists_room(size_t bytes)
{
    return bytes < CUDA_LISTS / 2 ? (size_t)CUDA_LISTS : 2 * bytes;
}

static int reserve_stage(live_cuda *c, cuda_stage *s, size_t bytes, dsc_error *err)
{
    int failed = DSC_OK;
    if (!s->copied)
        failed = cuda_check(c, cudaEventCreateWithFlags(&s->copied, cudaEventDisableTiming),
                            "cudaEventCreateWithFlags", err);
    if (!failed) // the upload of four passes ago
        failed = cuda_check(c, cudaEventSynchronize(s->copied), "cudaEventSynchronize", err);
    if (failed || bytes <= s->bytes)
        return failed;
    if (s->host)
        cudaFreeHost(s->host);
    s->host = NULL;
    s->bytes = 0;
    failed = cuda_check(c, cudaMallocHost(&s->host, lists_room(bytes)), "cudaMallocHost", err);
    if (!failed)
        s->bytes = lists_room(bytes);
    return failed;
}

static int upload_lists(live_cuda *c, const live_batch *batch, dsc_error *err)
{
    int failed = check_parts(c, batch, err);
    const size_t bytes = failed ? 0 : pack_lists(c, batch, NULL, NULL);
    if (bytes > c->lists_bytes) {
        forget_graphs(c);
        cudaStreamSynchronize(c->stream);
        cudaFree(c->lists);
        c->lists = NULL;
        c->lists_bytes = 0;
        failed = cuda_device_alloc(c, &c->lists, lists_room(bytes), err);
        if (!failed)
            c->lists_bytes = lists_room(bytes);
    }
    cuda_stage *s = &c->stage[c->next_stage];
    c->next_stage = (c->next_stage + 1) % CUDA_STAGES;
    if (!failed)
        failed = reserve_stage(c, s, bytes, err);
    if (failed)
        return failed;
    pack_lists(c, batch, (char *)s->host, (const char *)c->lists);
    failed =
        cuda_check(c, cudaMemcpyAsync(c->lists, s->host, bytes, cudaMemcpyHostToDevice, c->stream),
                   "cudaMemcpyAsync", err);
    return failed ? failed
                  : cuda_check(c, cudaEventRecord(s->copied, c->stream), "cudaEventRecord", err);
}

// A hash of the shapes of the batches after the first (FNV-1a by numbers); 0: there are none.
static uint64_t hash_parts(const live_batch *batch)
{
    uint64_t hash = 0;
    for (batch = batch->next; batch; batch = batch->next) {
        const int64_t shape[] = {batch->tokens, batch->sequences, batch->words,
                                 batch->shift != NULL};
        for (int i = 0; i < 4; i++)
            hash = ((hash ? hash : UINT64_C(0xcbf29ce484222325)) ^ (uint64_t)shape[i]) *
                   UINT64_C(0x100000001b3);
    }
    return hash;
}

static cuda_graph *find_graph(live_cuda *c, live_pass_key key, const live_batch *batch)
{
    const uint64_t parts = hash_parts(batch);
    for (int i = 0; i < CUDA_GRAPHS; i++) {
        cuda_graph *g = &c->graph[i];
        if (g->used && g->key.room == key.room && g->key.variant == key.variant &&
            g->tokens == batch->tokens && g->sequences == batch->sequences &&
            g->outputs == batch->outputs && g->words == batch->words && g->parts == parts &&
            g->shifts == (batch->shift != NULL) && g->windows == (batch->window_mask != NULL) &&
            g->features == (batch->feature != NULL) && g->dists == cuda_dists_of(batch->dist))
            return g;
    }
    return NULL;
}

static cuda_graph *new_graph(live_cuda *c, live_pass_key key, const live_batch *batch)
{
    cuda_graph *g = c->graph;
    for (int i = 1; i < CUDA_GRAPHS; i++) // a free entry, or the least recently used one
        g = c->graph[i].used < g->used ? &c->graph[i] : g;
    cuda_forget_graph(c, g);
    g->used = c->passes;
    g->key = key;
    g->tokens = batch->tokens;
    g->sequences = batch->sequences;
    g->outputs = batch->outputs;
    g->words = batch->words;
    g->parts = hash_parts(batch);
    g->shifts = batch->shift != NULL;
    g->windows = batch->window_mask != NULL;
    g->features = batch->feature != NULL;
    g->dists = cuda_dists_of(batch->dist);
    return g;
}

static int cuda_begin(live_backend *b, live_pass_key key, const live_batch *batch, bool *replayed,
                      dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    *replayed = false;
    int failed = cuda_use_idle(c, err);
    c->lost = c->follows = false;
    c->passes++;
    c->batch = batch;
    c->current = NULL;
    if (failed)
        return failed;
    const bool recorded = b->replays && live_batch_rows(batch) <= CUDA_CAPTURED_ROWS;
    cuda_graph *g = recorded ? find_graph(c, key, batch) : NULL;
    if (g && g->vocab)
        failed = cuda_check_tokens(batch, g->vocab, g->learned, err);
    if (!failed)
        failed = upload_lists(c, batch, err);
    if (failed || !recorded)
        return failed;
    g = find_graph(c, key, batch); // the upload may have dropped all graphs
    if (!g)
        g = new_graph(c, key, batch);
    g->used = c->passes;
    if (g->exec) {
        *replayed = true;
        return cuda_check(c, cudaGraphLaunch(g->exec, c->stream), "cudaGraphLaunch", err);
    }
    g->scratch = 0;
    if (!g->ran) { // a direct run
        c->current = g;
        return DSC_OK;
    }
    // Other threads may use their devices in any way meanwhile.
    failed = cuda_check(c, cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal),
                        "cudaStreamBeginCapture", err);
    c->capturing = !failed;
    c->current = failed ? NULL : g;
    return failed;
}

static int cuda_end(live_backend *b, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    c->batch = NULL;
    c->follows = c->follows && !c->capturing;
    if (c->lost)
        return dsc_fail(err, DSC_EUSAGE, "%s: a pass was interrupted by work outside of it",
                        b->device);
    cuda_graph *const g = c->current;
    if (g)
        g->ran = !c->capturing;
    if (!c->capturing)
        return DSC_OK;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    int failed = cuda_use(c, err);
    c->capturing = false;
    if (!failed)
        failed =
            cuda_check(c, cudaStreamEndCapture(c->stream, &graph), "cudaStreamEndCapture", err);
    if (!failed)
        failed = cuda_check(c, cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate", err);
    if (graph)
        cudaGraphDestroy(graph);
    if (failed) // the next pass of this shape runs directly
        return failed;
    g->ran = true;
    g->exec = exec;
    return cuda_check(c, cudaGraphLaunch(exec, c->stream), "cudaGraphLaunch", err);
}

// --- opening and closing -----------------------------------------------------------------------

static void cuda_close(live_backend *b)
{
    if (!b)
        return;
    live_cuda *c = cuda_of(b);
    if (!cuda_use_idle(c, NULL)) {
        if (c->stream)
            cudaStreamSynchronize(c->stream);
        forget_graphs(c);
        cuda_close_blas(c);
        cudaFree(c->lists);
        for (int i = 0; i < CUDA_SCRATCHES; i++)
            cudaFree(c->scratch[i]);
        for (int i = 0; i < CUDA_STAGES; i++) {
            if (c->stage[i].copied)
                cudaEventDestroy(c->stage[i].copied);
            if (c->stage[i].host)
                cudaFreeHost(c->stage[i].host);
        }
        if (c->stream)
            cudaStreamDestroy(c->stream);
    }
    free(c);
}

static const live_backend_type cuda_type = {
    "cuda",
    {cuda_alloc, cuda_free, cuda_alloc_host, cuda_free_host, cuda_upload, cuda_download, cuda_copy,
     cuda_fetch, cuda_fill, cuda_cache_dtype, cuda_available},
    {cuda_begin, cuda_end, cuda_wait, cuda_embed, cuda_gather, cuda_scatter, cuda_norm,
     cuda_product, NULL, cuda_rotate, cuda_attend, cuda_add, cuda_spread, cuda_select,
     cuda_summarize, cuda_move},
    {cuda_compare, cuda_list, cuda_sample_residual},
    cuda_probe,
    cuda_close,
};

// Represents all kernels, which are compiled for the same devices.
static __global__ void no_kernel()
{
}

// Checks that the kernels can run on the device; *compiled describes their build.
static int check_kernels(live_cuda *c, const cudaDeviceProp *device, cudaFuncAttributes *compiled,
                         dsc_error *err)
{
    static const int built[] = {__CUDA_ARCH_LIST__};
    const cudaError_t e = cudaFuncGetAttributes(compiled, no_kernel);
    if (e != cudaErrorNoKernelImageForDevice && e != cudaErrorInvalidDeviceFunction)
        return cuda_check(c, e, "cudaFuncGetAttributes", err);
    char list[128] = "";
    size_t at = 0;
    cudaGetLastError();
    for (size_t i = 0; i < sizeof built / sizeof *built && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%d.%d", i ? ", " : "",
                               built[i] / 100, built[i] / 10 % 10);
    return dsc_fail(err, DSC_EABSENT,
                    "%s: compute capability %d.%d, but the kernels were built for %s: configure "
                    "with CUDA_ARCH=\"-gencode arch=compute_%d%d,code=sm_%d%d\"",
                    c->base.device, device->major, device->minor, list, device->major,
                    device->minor, device->major, device->minor);
}

// "cuda:0 NVIDIA H200", and the switches that are not at their defaults.
static void name(live_cuda *c, const char *model)
{
    const live_cuda_settings *s = &c->set;
    char switched[64] = "";
    size_t at = 0;
    if (!s->overlap)
        at += (size_t)snprintf(switched, sizeof switched, " overlap=0");
    if (!s->graphs)
        at += (size_t)snprintf(switched + at, sizeof switched - at, " graphs=0");
    if (s->prefetch != LIVE_CUDA_PREFETCH)
        at += (size_t)snprintf(switched + at, sizeof switched - at, " prefetch=%d", s->prefetch);
    if (s->carveout >= 0)
        snprintf(switched + at, sizeof switched - at, " carveout=%d", s->carveout);
    snprintf(c->base.device, sizeof c->base.device, "cuda:%d %.48s%s", s->device, model, switched);
}

static int prepare(live_cuda *c, dsc_error *err)
{
    cudaDeviceProp properties;
    cudaFuncAttributes compiled;
    int failed = cuda_use(c, err);
    if (!failed)
        failed = cuda_check(c, cudaGetDeviceProperties(&properties, c->set.device),
                            "cudaGetDeviceProperties", err);
    if (failed)
        return failed;
    name(c, properties.name);
    c->processors = properties.multiProcessorCount;
    c->shared_bytes = properties.sharedMemPerBlockOptin - CUDA_SHARED_STATIC;
    if (properties.major < 8)
        return dsc_fail(err, DSC_EABSENT, "%s: compute capability %d.%d; at least 8.0 is needed",
                        c->base.device, properties.major, properties.minor);
    failed = check_kernels(c, &properties, &compiled, err);
    if (failed)
        return failed;
    // Kernels compiled for older devices do not wait for their predecessors (cuda_wait_previous).
    c->overlap = c->set.overlap && properties.major >= 9 && compiled.ptxVersion >= 90;
    return cuda_check(c, cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking),
                      "cudaStreamCreateWithFlags", err);
}

extern "C" int live_cuda_devices(void)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) == cudaSuccess)
        return n;
    cudaGetLastError();
    return 0;
}

extern "C" bool live_cuda_describe(int device, char *line, size_t bytes)
{
    cudaDeviceProp p;
    if (device < 0 || device >= live_cuda_devices())
        return false;
    if (cudaGetDeviceProperties(&p, device) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    snprintf(line, bytes, "cuda:%d %s, %.1f GB, compute capability %d.%d, %d multiprocessors",
             device, p.name, (double)p.totalGlobalMem * 1e-9, p.major, p.minor,
             p.multiProcessorCount);
    return true;
}

// Explains why CUDA finds no device.
static int no_device(cudaError_t e, dsc_error *err)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver); // 0 without a driver
    cudaRuntimeGetVersion(&runtime);
    cudaGetLastError();
    if (driver && e == cudaErrorInsufficientDriver)
        return dsc_fail(err, DSC_EABSENT,
                        "cuda: no device: the driver supports CUDA %d.%d < %d.%d, which this "
                        "program was built with: update the NVIDIA driver",
                        driver / 1000, driver / 10 % 100, runtime / 1000, runtime / 10 % 100);
    return dsc_fail(err, DSC_EABSENT, "cuda: no device: %s",
                    !driver            ? "there is no driver"
                    : e != cudaSuccess ? cudaGetErrorString(e)
                                       : "none is visible");
}

extern "C" int live_backend_cuda(live_backend **out, const live_cuda_settings *settings,
                                 bool invariant, dsc_error *err)
{
    int n = 0;
    *out = NULL;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0)
        return no_device(e, err);
    if (settings->device < 0 || settings->device >= n)
        return dsc_fail(err, DSC_EABSENT, "cuda:%d: no such device; there %s %d, from cuda:0",
                        settings->device, n == 1 ? "is" : "are", n);
    live_cuda *c = NULL;
    int failed = dsc_new(&c, 1, err);
    if (failed)
        return failed;
    c->base.type = &cuda_type;
    c->base.threads = 1;
    c->base.invariant = invariant;
    c->base.replays = settings->graphs;
    c->set = *settings;
    c->prefetch_bytes = (int64_t)settings->prefetch << 20;
    snprintf(c->base.device, sizeof c->base.device, "cuda:%d", settings->device);
    failed = prepare(c, err);
    if (failed == DSC_EDEVICE) // in use by another process, or broken: it cannot be opened
        failed = DSC_EABSENT;
    if (failed && err)
        err->status = failed;
    if (failed)
        cuda_close(&c->base);
    else
        *out = &c->base;
    return failed;
}
