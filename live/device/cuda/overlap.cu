// SPDX-License-Identifier: Apache-2.0
// Overlap of a draft and a target distribution, computed on the device from their logits: masses by
// ratio slot, the tokens of some slots, and a sample from the residual of a rule.
//
// The queries for all positions of a draft take one launch and two copies. Each position at which
// the first test does not decide takes a launch that lists a few thousand tokens, and a rejection
// two launches and a copy of 16 bytes. Kernels read each row once, from the L2 cache if the pass
// has just written it. Slots are summed in integers, so results do not depend on the order of
// threads. Distributions are kernel parameters, which are limited to 4 KB.
#include "live/device/cuda/dist.cuh"

enum {
    OVERLAP_PAIRS = 24, // pairs of distributions per launch
    OVERLAP_QUERIES = 128,
    OVERLAP_THREADS = 256,
    OVERLAP_EACH = 8,
    OVERLAP_CHUNK = OVERLAP_THREADS * OVERLAP_EACH, // tokens of a block of threads
    OVERLAP_WORDS = DSC_RATIO_SLOTS / 64,
};

typedef struct overlap_dists {
    live_dists dists[OVERLAP_PAIRS];
} overlap_dists;

typedef struct overlap_queries {
    live_mass_query query[OVERLAP_QUERIES];
    int32_t to[OVERLAP_QUERIES], count;
} overlap_queries;

typedef struct overlap_wanted {
    uint64_t word[OVERLAP_WORDS];
} overlap_wanted;

static_assert(sizeof(overlap_dists) + sizeof(overlap_queries) < 4000, "parameters of a kernel");

// A dsc_residual without host addresses.
typedef struct overlap_residual {
    int32_t lines, own, token[LIVE_OWN];
    double residual[LIVE_OWN], from[DSC_RESIDUAL_LINES], keep[DSC_RESIDUAL_LINES],
        take[DSC_RESIDUAL_LINES];
} overlap_residual;

static __device__ __forceinline__ double overlap_mass(const live_dist_row *r, int64_t x)
{
    if (!r->logits)
        return 0.0;
    const float v = r->logits[x];
    const double depth = ((double)v - r->most) * r->by;
    const bool kept = v > r->kept.least || (v == r->kept.least && x <= r->kept.last);
    return kept && depth > -DSC_SOFTMAX_LEAST ? r->scale * exp(depth) : 0.0;
}

static __device__ __forceinline__ unsigned long long overlap_warp_sum(unsigned long long x)
{
#pragma unroll
    for (int step = CUDA_LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

// --- masses --------------------------------------------------------------------------------------

// Shared memory has atomics on 32-bit numbers only.
typedef struct overlap_sum {
    uint32_t low[DSC_RATIO_SLOTS], high[DSC_RATIO_SLOTS];
} overlap_sum;

// The carry of an addition follows from the old value.
static __device__ __forceinline__ void overlap_add(overlap_sum *sum, int slot,
                                                   unsigned long long units)
{
    const uint32_t low = (uint32_t)units;
    uint32_t high = (uint32_t)(units >> 32);
    if (low)
        high += atomicAdd(&sum->low[slot], low) > UINT32_MAX - low ? 1 : 0;
    if (high)
        atomicAdd(&sum->high[slot], high);
}

static __device__ __forceinline__ unsigned long long overlap_read(const overlap_sum *sum, int slot)
{
    return (unsigned long long)sum->high[slot] << 32 | sum->low[slot];
}

// out[pairs] is zero on entry.
static __global__ void compare_kernel(live_masses *out, overlap_dists all, int64_t vocab)
{
    cuda_wait_previous();
    __shared__ overlap_sum draft, target;
    __shared__ uint32_t count[DSC_RATIO_SLOTS];
    const live_dists *const l = &all.dists[blockIdx.y];
    const int64_t first = (int64_t)blockIdx.x * OVERLAP_CHUNK + threadIdx.x;
    double d[OVERLAP_EACH], t[OVERLAP_EACH];
#pragma unroll
    for (int i = 0; i < OVERLAP_EACH; i++) {
        const int64_t x = first + i * OVERLAP_THREADS;
        d[i] = x < vocab ? overlap_mass(&l->draft, x) : 0.0;
        t[i] = x < vocab ? overlap_mass(&l->target, x) : 0.0;
    }
    for (int i = threadIdx.x; i < DSC_RATIO_SLOTS; i += OVERLAP_THREADS)
        draft.low[i] = draft.high[i] = target.low[i] = target.high[i] = count[i] = 0;
    __syncthreads();
    // Threads that add to one slot wait for each other, and top-p leaves many tokens with mass in
    // one distribution only.
    unsigned long long alone[2] = {0, 0}, alones = 0;
#pragma unroll
    for (int i = 0; i < OVERLAP_EACH; i++) {
        const unsigned long long units[2] = {dsc_mass_units(d[i]), dsc_mass_units(t[i])};
        if (d[i] > 0.0 && t[i] > 0.0) {
            const int slot = dsc_ratio_slot_of(d[i], t[i]);
            overlap_add(&draft, slot, units[0]);
            overlap_add(&target, slot, units[1]);
            atomicAdd(&count[slot], 1u);
        } else if (d[i] > 0.0 || t[i] > 0.0) {
            alone[0] += units[0];
            alone[1] += units[1];
            alones += d[i] > 0.0 ? 1ull << 32 : 1ull;
        }
    }
    alone[0] = overlap_warp_sum(alone[0]);
    alone[1] = overlap_warp_sum(alone[1]);
    alones = overlap_warp_sum(alones);
    if (threadIdx.x % CUDA_LANES == 0 && alones) {
        overlap_add(&draft, 0, alone[0]);
        overlap_add(&target, DSC_RATIO_SLOTS - 1, alone[1]);
        atomicAdd(&count[0], (uint32_t)(alones >> 32));
        atomicAdd(&count[DSC_RATIO_SLOTS - 1], (uint32_t)alones);
    }
    __syncthreads();
    live_masses *const to = out + blockIdx.y;
    for (int i = threadIdx.x; i < DSC_RATIO_SLOTS; i += OVERLAP_THREADS) {
        if (count[i] == 0)
            continue;
        atomicAdd((unsigned long long *)&to->draft[i], overlap_read(&draft, i));
        atomicAdd((unsigned long long *)&to->target[i], overlap_read(&target, i));
        atomicAdd(&to->count[i], count[i]);
    }
}

static __global__ void query_kernel(dsc_mass *out, overlap_dists all, overlap_queries queries)
{
    cuda_wait_previous();
    const int i = threadIdx.x;
    if (i >= queries.count)
        return;
    const live_dists *const l = &all.dists[queries.query[i].dists];
    out[queries.to[i]].draft = overlap_mass(&l->draft, queries.query[i].token);
    out[queries.to[i]].target = overlap_mass(&l->target, queries.query[i].token);
}

// Collects, from *next on, the queries whose distributions are in [first, first + count).
static overlap_queries queries_of(const live_comparison *m, int64_t first, int64_t count,
                                  int64_t *next)
{
    overlap_queries some = {};
    for (; *next < m->queries && some.count < OVERLAP_QUERIES; ++*next) {
        const live_mass_query q = m->query[*next];
        if (q.dists >= first && q.dists < first + count) {
            some.query[some.count] = {q.token, (int32_t)(q.dists - first)};
            some.to[some.count++] = (int32_t)*next;
        }
    }
    return some;
}

int cuda_compare(live_backend *b, const live_comparison *m, int64_t vocab, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const size_t mass_bytes = m->masses ? (size_t)m->pairs * sizeof *m->masses : 0;
    const size_t query_bytes = (size_t)m->queries * sizeof *m->mass;
    void *scratch;
    int failed = cuda_use_idle(c, err);
    if (!failed)
        failed = cuda_scratch(c, CUDA_OVERLAP, mass_bytes + query_bytes, &scratch, err);
    if (failed)
        return failed;
    live_masses *const sums = (live_masses *)scratch;
    dsc_mass *const some = (dsc_mass *)((char *)scratch + mass_bytes);
    failed = cuda_clear(c, sums, mass_bytes, err);
    for (int64_t first = 0; first < m->pairs && !failed; first += OVERLAP_PAIRS) {
        const int64_t left = m->pairs - first,
                      count = left < OVERLAP_PAIRS ? left : (int64_t)OVERLAP_PAIRS;
        overlap_dists all = {};
        memcpy(all.dists, m->dists + first, (size_t)count * sizeof *m->dists);
        const dim3 grid((unsigned)cuda_blocks(vocab, OVERLAP_CHUNK), (unsigned)count);
        if (m->masses)
            failed = cuda_launch(c, "compare", compare_kernel, grid, OVERLAP_THREADS, err,
                                 sums + first, all, vocab);
        for (int64_t next = 0; next < m->queries && !failed;) {
            const overlap_queries part = queries_of(m, first, count, &next);
            if (part.count)
                failed = cuda_launch(c, "query", query_kernel, dim3(1), OVERLAP_QUERIES, err, some,
                                     all, part);
        }
    }
    if (!failed)
        failed = b->type->memory.fetch(b, m->masses, sums, mass_bytes, err);
    return failed ? failed : b->type->memory.fetch(b, m->mass, some, query_bytes, err);
}

// --- the tokens of some slots --------------------------------------------------------------------

// *listed is 0 on entry.
static __global__ void list_kernel(dsc_mass *out, uint32_t *listed, live_dists l,
                                   overlap_wanted wanted, uint32_t most, int64_t vocab)
{
    cuda_wait_previous();
    __shared__ uint32_t found, begin;
    const int64_t first = (int64_t)blockIdx.x * OVERLAP_CHUNK + threadIdx.x;
    double d[OVERLAP_EACH], t[OVERLAP_EACH];
    uint32_t mine = 0, at = 0;
#pragma unroll
    for (int i = 0; i < OVERLAP_EACH; i++) {
        const int64_t x = first + i * OVERLAP_THREADS;
        d[i] = x < vocab ? overlap_mass(&l.draft, x) : 0.0;
        t[i] = x < vocab ? overlap_mass(&l.target, x) : 0.0;
        const int slot = dsc_ratio_slot_of(d[i], t[i]);
        if (!(d[i] > 0.0 || t[i] > 0.0) || !(wanted.word[slot / 64] >> slot % 64 & 1))
            d[i] = -1.0;
        else
            mine++;
    }
    if (threadIdx.x == 0)
        found = 0;
    __syncthreads();
    if (mine)
        at = atomicAdd(&found, mine);
    __syncthreads();
    if (threadIdx.x == 0 && found)
        begin = atomicAdd(listed, found);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < OVERLAP_EACH; i++) {
        if (d[i] < 0.0)
            continue;
        const uint32_t to = begin + at++;
        if (to < most) {
            out[to].draft = d[i];
            out[to].target = t[i];
        }
    }
}

int cuda_list(live_backend *b, dsc_mass *out, const live_dists *dists, const uint64_t *wanted,
              int64_t count, int64_t vocab, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const size_t bytes = (size_t)count * sizeof *out;
    overlap_wanted some;
    void *scratch;
    int failed = cuda_use_idle(c, err);
    if (!failed)
        failed = cuda_scratch(c, CUDA_OVERLAP, bytes + sizeof(uint32_t), &scratch, err);
    if (failed)
        return failed;
    memcpy(some.word, wanted, sizeof some.word);
    dsc_mass *const found = (dsc_mass *)scratch;
    uint32_t *const listed = (uint32_t *)(found + count);
    failed = cuda_clear(c, listed, sizeof *listed, err);
    if (!failed)
        failed =
            cuda_launch(c, "list", list_kernel, dim3((unsigned)cuda_blocks(vocab, OVERLAP_CHUNK)),
                        OVERLAP_THREADS, err, found, listed, *dists, some, (uint32_t)count, vocab);
    return failed ? failed : b->type->memory.fetch(b, out, found, bytes, err);
}

// --- draws ---------------------------------------------------------------------------------------

static __device__ __forceinline__ double overlap_left(const live_dists *l,
                                                      const overlap_residual *r, int64_t x)
{
    for (int i = 0; i < r->own; i++)
        if (r->token[i] == x)
            return r->residual[i];
    const double d = overlap_mass(&l->draft, x), t = overlap_mass(&l->target, x);
    int j = 0;
    while (j + 1 < r->lines && r->from[j + 1] * d <= t)
        j++;
    // Each product is rounded. A fused multiply-add would keep the other product's rounding error
    // where both are equal and the residual is exactly 0.
    return fmax(__dmul_rn(r->keep[j], t) - __dmul_rn(r->take[j], d), 0.0);
}

// Sums the residual by blocks of tokens, as in summarize.cu.
static __global__ void left_kernel(double *sum, live_dists l, overlap_residual r, int64_t vocab,
                                   int64_t blocks)
{
    cuda_wait_previous();
    const int64_t lane = threadIdx.x % DIST_LANES;
    const int64_t b = (int64_t)blockIdx.x * DIST_BLOCKS + threadIdx.x / DIST_LANES;
    double left = 0.0;
#pragma unroll
    for (int i = 0; i < DIST_EACH; i++) {
        const int64_t x = b * DIST_BLOCK + i * DIST_LANES + lane;
        if (x < vocab)
            left += overlap_left(&l, &r, x);
    }
#pragma unroll
    for (int step = DIST_LANES / 2; step > 0; step /= 2)
        left += __shfl_xor_sync(0xffffffffu, left, step);
    if (lane == 0 && b < blocks)
        sum[b] = left;
}

// The lane whose part of a warp's weights contains `at`; if rounding puts `at` beyond all of them,
// the last lane with a weight. `before` is the sum over the lanes before it.
static __device__ __forceinline__ int overlap_find_lane(double mine, double at, double *before)
{
    const int lane = threadIdx.x % CUDA_LANES;
    double upto = mine;
#pragma unroll
    for (int step = 1; step < CUDA_LANES; step *= 2) {
        const double below = __shfl_up_sync(0xffffffffu, upto, step);
        upto += lane >= step ? below : 0.0;
    }
    const unsigned any = __ballot_sync(0xffffffffu, mine > 0.0);
    const unsigned hit = __ballot_sync(0xffffffffu, mine > 0.0 && at < upto);
    const int found = hit ? __ffs((int)hit) - 1 : any ? 31 - __clz((int)any) : 0;
    const double ahead = __shfl_up_sync(0xffffffffu, upto, 1);
    *before = __shfl_sync(0xffffffffu, lane > 0 ? ahead : 0.0, found);
    return found;
}

// Runs in one warp.
static __global__ void find_kernel(live_residual_sample *out, const double *sum, live_dists l,
                                   overlap_residual r, double u, int64_t vocab, int64_t blocks)
{
    cuda_wait_previous();
    const int lane = threadIdx.x;
    const int64_t each = (blocks + CUDA_LANES - 1) / CUDA_LANES, first = lane * each;
    double mine = 0.0, before;
    for (int64_t b = first; b < first + each && b < blocks; b++)
        mine += sum[b];
    double total = mine;
#pragma unroll
    for (int step = CUDA_LANES / 2; step > 0; step /= 2)
        total += __shfl_xor_sync(0xffffffffu, total, step);
    if (!(total > 0.0)) {
        if (lane == 0) {
            out->sum = 0.0;
            out->token = -1;
        }
        return;
    }
    const double at = u * total;
    const int64_t from = overlap_find_lane(mine, at, &before) * each;
    int64_t block = from;
    double upto = before;
    for (int64_t b = from; b < from + each && b < blocks; b++) {
        if (!(sum[b] > 0.0))
            continue;
        block = b;
        before = upto;
        upto += sum[b];
        if (at < upto)
            break;
    }
    // Four consecutive tokens per lane.
    enum { EACH = DIST_BLOCK / CUDA_LANES };
    double left[EACH], ahead;
    mine = 0.0;
    for (int i = 0; i < EACH; i++) {
        const int64_t x = block * DIST_BLOCK + lane * EACH + i;
        left[i] = x < vocab ? overlap_left(&l, &r, x) : 0.0;
        mine += left[i];
    }
    if (overlap_find_lane(mine, at - before, &ahead) != lane)
        return;
    int last = 0;
    for (int i = 0; i < EACH; i++) {
        if (!(left[i] > 0.0))
            continue;
        last = i;
        ahead += left[i];
        if (at - before < ahead)
            break;
    }
    out->sum = total;
    out->token = (int32_t)(block * DIST_BLOCK + lane * EACH + last);
}

int cuda_sample_residual(live_backend *b, live_residual_sample *out, const live_dists *dists,
                         const dsc_residual *residual, double u, int64_t vocab, dsc_error *err)
{
    live_cuda *c = cuda_of(b);
    const int64_t blocks = cuda_blocks(vocab, DIST_BLOCK);
    overlap_residual r = {};
    void *scratch;
    int failed = cuda_use_idle(c, err);
    if (!failed)
        failed = cuda_scratch(c, CUDA_OVERLAP, (size_t)blocks * sizeof(double) + sizeof *out,
                              &scratch, err);
    if (failed)
        return failed;
    r.lines = (int32_t)residual->lines;
    r.own = (int32_t)residual->own;
    memcpy(r.from, residual->from, sizeof r.from);
    memcpy(r.keep, residual->keep, sizeof r.keep);
    memcpy(r.take, residual->take, sizeof r.take);
    for (int i = 0; i < r.own; i++) {
        r.token[i] = residual->token[i];
        r.residual[i] = residual->residual ? residual->residual[i] : 0.0;
    }
    double *const sum = (double *)scratch;
    live_residual_sample *const left = (live_residual_sample *)(sum + blocks);
    failed = cuda_launch(c, "left", left_kernel, dim3((unsigned)cuda_blocks(vocab, DIST_CHUNK)),
                         DIST_THREADS, err, sum, *dists, r, vocab, blocks);
    if (!failed)
        failed = cuda_launch(c, "find", find_kernel, dim3(1), CUDA_LANES, err, left, sum, *dists, r,
                             u, vocab, blocks);
    return failed ? failed : b->type->memory.fetch(b, out, left, sizeof *out, err);
}
