// SPDX-License-Identifier: Apache-2.0
// Top-k and top-p on rows of logits: keeps the first tokens in order of descending logit, ties by
// ascending id. The exponentials of all tokens are added to bins by depth below the largest logit;
// a scan finds the bin that contains the cut, and the tokens of that bin are sorted. A bin with too
// many tokens is divided further, by the floats between its ends. All sums are of integers, so they
// do not depend on the order of threads.
//
// Four kernels run in sequence, each of which takes less than 1 us to begin. For 1 to 8 rows of 128
// k tokens in the L2 cache, the first two read a row with 63 blocks of threads, 2 us for latency
// and 3 us with some 30 additions to bins by each thread. Then one block per row needs 2 us for the
// scan and the ends of the bin, 1 to 5 us for its tokens (blocks of tokens with smaller maxima are
// not read), and 55 steps of 20 to 30 ns to sort 1024 of them. The sums take 2 us (summarize.cu).
// Each division of a row takes 5 to 10 us more.
#include "live/device/cuda/dist.cuh"

#include <float.h>

enum {
    CUT_BINS = 1024,         // equal to the threads of a row
    CUT_DEEP = CUT_BINS - 1, // the last bin contains everything deeper than the others
    CUT_LISTED = CUT_BINS,   // maximum number of tokens that are sorted
    CUT_UNIT = 62,           // unit of weights: 2^-62 of the most probable token's
    CUT_TOGETHER = 4,        // blocks of tokens that a warp processes at once
    CUT_LOGITS = 64,         // minimum depth covered by the bins for top-k, in logits
};

// --- amounts -------------------------------------------------------------------------------------

// Number of some tokens and their weight, high 2^32 + low units.
typedef struct amount {
    unsigned long long low, high;
    uint32_t count;
} amount;

static __device__ __forceinline__ amount amount_sum(amount a, amount b)
{
    const amount sum = {a.low + b.low, a.high + b.high, a.count + b.count};
    return sum;
}

// a - b, where b is a part of a.
static __device__ __forceinline__ amount amount_residual(amount a, amount b)
{
    const amount residual = {a.low - b.low, a.high - b.high, a.count - b.count};
    return residual;
}

static __device__ __forceinline__ amount amount_times(amount a, uint32_t times)
{
    const amount product = {a.low * times, a.high * times, a.count * times};
    return product;
}

static __device__ __forceinline__ double amount_weight(amount a)
{
    return (double)a.high * 0x1p-30 + (double)a.low * 0x1p-62; // 32 - CUT_UNIT, -CUT_UNIT
}

static __device__ __forceinline__ amount amount_of(const dist_row *r, float x, bool weighted)
{
    const unsigned long long w =
        weighted ? (unsigned long long)(dist_weight(r, x) * (double)(1ull << CUT_UNIT)) : 0;
    const amount a = {w & 0xffffffffu, w >> 32, 1};
    return a;
}

// Value of the lane `step` below; lanes without one get their own.
static __device__ __forceinline__ amount amount_from(amount a, int step)
{
    a.low = __shfl_up_sync(0xffffffffu, a.low, step);
    a.high = __shfl_up_sync(0xffffffffu, a.high, step);
    a.count = __shfl_up_sync(0xffffffffu, a.count, step);
    return a;
}

// Inclusive sum over the lanes up to this one.
static __device__ __forceinline__ amount scan_warp(amount a)
{
    const int lane = threadIdx.x % CUDA_LANES;
#pragma unroll
    for (int step = 1; step < CUDA_LANES; step *= 2) {
        const amount below = amount_from(a, step);
        a = lane >= step ? amount_sum(a, below) : a;
    }
    return a;
}

// Inclusive sum over the threads up to this one.
static __device__ amount scan_block(amount a)
{
    __shared__ amount part[CUDA_LANES];
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    const int warps = blockDim.x / CUDA_LANES;
    const amount none = {};
    a = scan_warp(a);
    __syncthreads(); // `part` may still be read by the previous scan
    if (lane == CUDA_LANES - 1)
        part[warp] = a;
    __syncthreads();
    if (warp == 0)
        part[lane] = scan_warp(lane < warps ? part[lane] : none);
    __syncthreads();
    return warp > 0 ? amount_sum(part[warp - 1], a) : a;
}

// --- bins ----------------------------------------------------------------------------------------

// Bins of a row and their scale, on the device.
typedef struct row_bins {
    unsigned long long low[CUT_BINS], high[CUT_BINS];
    uint32_t count[CUT_BINS];
    float scale;
    uint32_t unused;
} row_bins;

// Bins in shared memory, whose atomics are on 32-bit numbers only: a weight has three parts.
typedef struct block_bins {
    uint32_t count[CUT_BINS], part[3][CUT_BINS];
} block_bins;

static __device__ __forceinline__ void bins_clear(block_bins *b)
{
    for (int i = threadIdx.x; i < CUT_BINS; i += blockDim.x)
        b->count[i] = b->part[0][i] = b->part[1][i] = b->part[2][i] = 0;
}

// The carry of an addition follows from the old value.
static __device__ __forceinline__ void bins_add(block_bins *b, int bin, amount a)
{
    atomicAdd(&b->count[bin], a.count);
    const uint32_t first = (uint32_t)a.low;
    unsigned long long more = a.high + (a.low >> 32);
    if (first)
        more += atomicAdd(&b->part[0][bin], first) > UINT32_MAX - first ? 1 : 0;
    const uint32_t second = (uint32_t)more;
    more >>= 32;
    if (second)
        more += atomicAdd(&b->part[1][bin], second) > UINT32_MAX - second ? 1 : 0;
    if (more)
        atomicAdd(&b->part[2][bin], (uint32_t)more);
}

static __device__ __forceinline__ amount bins_read(const block_bins *b, int bin)
{
    const amount a = {b->part[0][bin], b->part[1][bin] | (unsigned long long)b->part[2][bin] << 32,
                      b->count[bin]};
    return a;
}

// Scale of the bins: the deepest token, or the depth that matters for top-p, falls in the last bin
// but one. Everything deeper than `useful` is less than top-p leaves out. Every warp computes it.
static __device__ float bins_scale(const dist_row *r, const float *least, int64_t chunks,
                                   int64_t vocab, const cuda_dist *dist)
{
    float x = INFINITY;
    for (int64_t i = threadIdx.x % CUDA_LANES; i < chunks; i += CUDA_LANES)
        x = fminf(x, least[i]);
    x = -cuda_warp_max(-x);
    const double depth = (double)r->most - (double)x;
    double useful = log((double)vocab / fmax(1.0 - dist->top_p, 1e-15)) / r->by;
    if (dist->top_k > 0)
        useful = fmax(useful, (double)CUT_LOGITS);
    return (float)fmin((CUT_DEEP - .5) / fmin(depth, useful), (double)FLT_MAX);
}

static __device__ __forceinline__ int bin_of(float most, float scale, float x)
{
    const float depth = (most - x) * scale;
    return depth < (float)CUT_DEEP ? (int)depth : CUT_DEEP;
}

// --- places --------------------------------------------------------------------------------------

// Sort key of a float: larger numbers have smaller keys. Zeros are equal.
static __device__ __forceinline__ uint32_t sort_key(float x)
{
    const uint32_t bits = __float_as_uint(x + 0.0f);
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

static __device__ __forceinline__ float place_logit(uint32_t key)
{
    return __uint_as_float(key & 0x80000000u ? key : ~key & 0x7fffffffu);
}

// The first key of a bin or of any bin after it. A warp tests 32 keys at once.
static __device__ uint32_t bin_begin(float most, float scale, int bin)
{
    const uint32_t lane = threadIdx.x % CUDA_LANES;
    uint32_t from = sort_key(most),
             n = sort_key(-INFINITY) + 1 - from; // the result is in [from, from + n]
    while (n > 0) {
        const uint32_t each = n / CUDA_LANES + 1, at = lane * each + each - 1;
        const bool before = at < n && bin_of(most, scale, place_logit(from + at)) < bin;
        const uint32_t passed = (uint32_t)__ffs((int)~__ballot_sync(0xffffffffu, before)) - 1;
        from += passed * each;
        n = min(each - 1, n - passed * each);
    }
    return from;
}

// --- passes over all tokens ----------------------------------------------------------------------

// Largest logits as in summarize.cu and the smallest logit of each chunk; clears the bins.
static __global__ void max_logits_kernel(float *max_logit, float *least, row_bins *bins,
                                         const int32_t *token, const float *logits, int64_t vocab,
                                         int64_t blocks, const cuda_dist *dist)
{
    cuda_wait_previous();
    __shared__ float part[DIST_THREADS / CUDA_LANES];
    const int64_t row = blockIdx.y;
    const int64_t b = (int64_t)blockIdx.x * DIST_BLOCKS + threadIdx.x / DIST_LANES;
    uint32_t *const word = (uint32_t *)(bins + row);
    for (size_t i = (size_t)blockIdx.x * DIST_THREADS + threadIdx.x;
         i < sizeof *bins / sizeof *word; i += (size_t)gridDim.x * DIST_THREADS)
        word[i] = 0;
    dist_row r;
    if (!dist_of(&r, row, token, logits, vocab, dist))
        return;
    float v[DIST_EACH], low = INFINITY;
    dist_load(v, r.x, b, vocab, NAN); // neither the smallest nor the largest
#pragma unroll
    for (int i = 0; i < DIST_EACH; i++)
        low = fminf(low, v[i]);
    low = -cuda_warp_max(-low);
    const float most = dist_max(v);
    if (b < blocks && threadIdx.x % DIST_LANES == 0)
        max_logit[row * blocks + b] = most;
    if (threadIdx.x % CUDA_LANES == 0)
        part[threadIdx.x / CUDA_LANES] = low;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < DIST_THREADS / CUDA_LANES; i++)
            low = fminf(low, part[i]);
        least[row * gridDim.x + blockIdx.x] = low;
    }
}

// Adds the amounts of all tokens to the bins; weights are added for top-p only.
static __global__ void bins_kernel(row_bins *bins, const float *least, const int32_t *token,
                                   const float *logits, int64_t vocab, const cuda_dist *dist)
{
    cuda_wait_previous();
    __shared__ block_bins mine;
    const int64_t row = blockIdx.y, first = (int64_t)blockIdx.x * DIST_CHUNK + threadIdx.x;
    dist_row r;
    if (!dist_of(&r, row, token, logits, vocab, dist))
        return;
    const bool weighted = dist->top_p < 1.0;
    float v[DIST_EACH];
#pragma unroll
    for (int i = 0; i < DIST_EACH; i++)
        v[i] = first + i * DIST_THREADS < vocab ? r.x[first + i * DIST_THREADS] : NAN;
    const float scale = bins_scale(&r, least + row * gridDim.x, gridDim.x, vocab, dist);
    bins_clear(&mine);
    __syncthreads();
    amount deep = {};
#pragma unroll
    for (int i = 0; i < DIST_EACH; i++) {
        if (isnan(v[i]))
            continue;
        const amount a = amount_of(&r, v[i], weighted);
        const int bin = bin_of(r.most, scale, v[i]);
        if (bin == CUT_DEEP)
            deep = amount_sum(deep, a);
        else
            bins_add(&mine, bin, a);
    }
    // Threads that add to one bin wait for each other, and in many distributions most tokens are
    // deep.
    if (__ballot_sync(0xffffffffu, deep.count > 0)) {
        deep = scan_warp(deep);
        if (threadIdx.x % CUDA_LANES == CUDA_LANES - 1)
            bins_add(&mine, CUT_DEEP, deep);
    }
    __syncthreads();
    row_bins *const out = bins + row;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        out->scale = scale;
    for (int i = threadIdx.x; i < CUT_BINS; i += DIST_THREADS) {
        const amount a = bins_read(&mine, i);
        if (a.count == 0)
            continue;
        atomicAdd(&out->count[i], a.count);
        if (weighted) {
            atomicAdd(&out->low[i], a.low);
            atomicAdd(&out->high[i], a.high);
        }
    }
}

// --- the cut of a row ----------------------------------------------------------------------------

// Number of tokens to keep or, if that is 0, weight to keep.
typedef struct wanted {
    uint32_t count;
    double weight;
} wanted;

static __device__ __forceinline__ bool reached(amount a, const wanted *w)
{
    return w->count ? a.count >= w->count : amount_weight(a) >= w->weight;
}

// Keys [from, to] that contain the cut: the amount above them and the amount in them.
typedef struct stretch {
    uint32_t from, to;
    amount above, in;
} stretch;

// Result of a block of threads.
typedef struct found {
    uint32_t key; // of the last token that is kept
    int32_t token;
    uint32_t bin;
    amount above, in; // of the bin; for a cut, `above` is all that is kept, including ties with the
                      // last token
} found;

typedef struct row_job {
    dist_row r;
    const float *max_logit;
    int64_t vocab, blocks;
    bool weighted;
} row_job;

// Calls visit(key, token) for each token whose key is in [from, to]; a warp per block of tokens.
template <typename F>
static __device__ __forceinline__ void each_within(const row_job *j, uint32_t from, uint32_t to,
                                                   F visit)
{
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    const int warps = blockDim.x / CUDA_LANES;
    for (int64_t first = warp; first < j->blocks; first += warps * CUT_TOGETHER) {
        float v[CUT_TOGETHER][DIST_BLOCK / CUDA_LANES];
#pragma unroll
        for (int k = 0; k < CUT_TOGETHER; k++) {
            const int64_t b = first + k * warps;
            const bool any = b < j->blocks && sort_key(j->max_logit[b]) <= to;
#pragma unroll
            for (int i = 0; i < DIST_BLOCK / CUDA_LANES; i++) {
                const int64_t at = b * DIST_BLOCK + i * CUDA_LANES + lane;
                v[k][i] = any && at < j->vocab ? j->r.x[at] : NAN;
            }
        }
#pragma unroll
        for (int k = 0; k < CUT_TOGETHER; k++)
#pragma unroll
            for (int i = 0; i < DIST_BLOCK / CUDA_LANES; i++) {
                const uint32_t key = sort_key(v[k][i]);
                if (!isnan(v[k][i]) && key >= from && key <= to)
                    visit(key, (int32_t)((first + k * warps) * DIST_BLOCK + i * CUDA_LANES + lane));
            }
    }
}

// Finds the bin in which the wanted amount is reached. This thread has `mine` in its bin of
// [blockDim.x] and `upto` in all bins up to it; `above` precedes the bins.
static __device__ void find_bin(found *f, amount above, amount upto, amount mine, const wanted *w)
{
    upto = amount_sum(above, upto);
    const amount before = amount_residual(upto, mine);
    __syncthreads(); // *f may still be read
    if (reached(upto, w) && !reached(before, w)) {
        f->bin = threadIdx.x;
        f->above = before;
        f->in = mine;
    }
    __syncthreads();
}

// Divides a stretch into bins of equally many keys and selects the one that contains the cut.
static __device__ void divide(stretch *s, const row_job *j, const wanted *w, found *f,
                              block_bins *bins)
{
    const uint32_t from = s->from;
    int shift = 0;
    while ((s->to - from) >> shift >= CUT_BINS)
        shift++;
    __syncthreads(); // the bins may still be read
    bins_clear(bins);
    __syncthreads();
    each_within(j, from, s->to, [&](uint32_t key, int32_t) {
        bins_add(bins, (int)((key - from) >> shift),
                 amount_of(&j->r, place_logit(key), j->weighted));
    });
    __syncthreads();
    const amount mine = bins_read(bins, threadIdx.x);
    find_bin(f, s->above, scan_block(mine), mine, w);
    s->from = from + (f->bin << shift);
    s->to = min(s->to, s->from + ((1u << shift) - 1));
    s->above = f->above;
    s->in = f->in;
}

// Sorts list[n], n <= number of threads (Batcher 1968). Returns when the list is sorted.
static __device__ void sort_list(unsigned long long *list, int n)
{
    int size = 1;
    while (size < n)
        size *= 2;
    const int i = threadIdx.x;
    if (i >= n && i < size)
        list[i] = ~0ull;
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            const int other = i ^ step;
            if (i >= size || other < i)
                continue;
            const unsigned long long a = list[i], b = list[other];
            if ((a > b) == ((i & run) == 0)) {
                list[i] = b;
                list[other] = a;
            }
        }
    __syncthreads();
}

// Computes the cut of a stretch with few tokens into *f.
static __device__ void cut_listed(const stretch *s, const row_job *j, const wanted *w, found *f,
                                  unsigned long long *list)
{
    __shared__ uint32_t listed;
    if (threadIdx.x == 0)
        listed = 0;
    __syncthreads();
    each_within(j, s->from, s->to, [&](uint32_t key, int32_t token) {
        list[atomicAdd(&listed, 1u)] = (unsigned long long)key << 32 | (uint32_t)token;
    });
    __syncthreads();
    const uint32_t n = listed, i = threadIdx.x;
    sort_list(list, (int)n);
    const uint32_t key = i < n ? (uint32_t)(list[i] >> 32) : 0;
    const amount none = {}, mine = i < n ? amount_of(&j->r, place_logit(key), j->weighted) : none;
    const amount upto = amount_sum(s->above, scan_block(mine));
    if (i < n && reached(upto, w) && !reached(amount_residual(upto, mine), w)) {
        f->key = key;
        f->token = (int32_t)(uint32_t)list[i];
    }
    __syncthreads();
    if (i < n && key == f->key && (i + 1 == n || (uint32_t)(list[i + 1] >> 32) != key))
        f->above = upto;
    __syncthreads();
}

// Finds the m-th token of a key, m >= 1, in order of id, and writes it to f->token.
static __device__ void find_equal(const row_job *j, uint32_t key, uint32_t m, found *f)
{
    enum { EACH = 8 };
    const int lane = threadIdx.x % CUDA_LANES, warp = threadIdx.x / CUDA_LANES;
    __shared__ uint32_t part[CUDA_LANES];
    uint32_t before = 0;
    for (int64_t first = 0; before < m && first < j->vocab; first += EACH * blockDim.x) {
        bool equal[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int64_t at = first + i * blockDim.x + threadIdx.x;
            equal[i] = at < j->vocab && sort_key(j->r.x[at]) == key;
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const uint32_t count = (uint32_t)__syncthreads_count(equal[i]);
            if (before < m && before + count >= m) {
                const uint32_t in_warp = __ballot_sync(0xffffffffu, equal[i]);
                uint32_t mine = before + (uint32_t)__popc(in_warp & ((2u << lane) - 1));
                if (lane == 0)
                    part[warp] = (uint32_t)__popc(in_warp);
                __syncthreads();
                for (int other = 0; other < warp; other++)
                    mine += part[other];
                if (equal[i] && mine == m)
                    f->token = (int32_t)(first + i * blockDim.x + threadIdx.x);
            }
            before += count;
        }
    }
    __syncthreads();
}

// The cut among many equal tokens.
static __device__ void cut_equal(const stretch *s, const row_job *j, const wanted *w, found *f)
{
    const amount one = amount_of(&j->r, place_logit(s->from), j->weighted);
    uint32_t low = 1, m = s->in.count; // this many are enough
    while (low < m) {
        const uint32_t middle = low + (m - low) / 2;
        if (reached(amount_sum(s->above, amount_times(one, middle)), w))
            m = middle;
        else
            low = middle + 1;
    }
    if (threadIdx.x == 0) {
        f->key = s->from;
        f->above = amount_sum(s->above, s->in);
    }
    if (w->count) // all equal tokens are kept
        __syncthreads();
    else
        find_equal(j, s->from, m, f);
}

// The cut where the wanted amount is reached; bins as for find_bin.
static __device__ void cut(found *f, amount upto, amount mine, float scale, const row_job *j,
                           const wanted *w)
{
    __shared__ union {
        block_bins bins;
        unsigned long long list[CUT_LISTED];
    } room;
    __shared__ uint32_t begin[2]; // of the bin and of the next one
    const int warp = threadIdx.x / CUDA_LANES;
    const amount none = {};
    find_bin(f, none, upto, mine, w);
    if (warp < 2) {
        const uint32_t key = bin_begin(j->r.most, scale, (int)f->bin + warp);
        if (threadIdx.x % CUDA_LANES == 0)
            begin[warp] = key;
    }
    __syncthreads();
    stretch s = {begin[0], begin[1] - 1, f->above, f->in};
    while (s.in.count > CUT_LISTED && s.from < s.to)
        divide(&s, j, w, f, &room.bins);
    __syncthreads(); // *f and the scratch memory may still be read
    if (s.in.count <= CUT_LISTED)
        cut_listed(&s, j, w, f, room.list);
    else
        cut_equal(&s, j, w, f);
}

// A block per row.
static __global__ void __launch_bounds__(CUT_BINS)
    cut_kernel(live_kept *kept, const float *max_logit, const row_bins *bins, const int32_t *token,
               const float *logits, int64_t vocab, int64_t blocks, const cuda_dist *dist)
{
    cuda_wait_previous();
    __shared__ found f;
    __shared__ double total;
    const int64_t row = blockIdx.x;
    row_job j = {{}, max_logit + row * blocks, vocab, blocks, dist->top_p < 1.0};
    if (!dist_of(&j.r, row, token, logits, vocab, dist))
        return;
    const row_bins *const b = bins + row;
    const float scale = b->scale;
    const int i = threadIdx.x;
    const amount mine = {b->low[i], b->high[i], b->count[i]}, upto = scan_block(mine);
    live_kept keep = {-INFINITY, (int32_t)vocab};
    if (i == CUT_BINS - 1)
        total = amount_weight(upto);
    __syncthreads();
    double all = total;
    if (dist->top_k > 0 && dist->top_k < vocab) {
        const wanted w = {(uint32_t)dist->top_k, 0.0};
        cut(&f, upto, mine, scale, &j, &w);
        all = amount_weight(f.above);
        keep.least = place_logit(f.key);
    }
    if (j.weighted) { // top-p applies to the tokens that top-k keeps
        const wanted w = {0, dist->top_p * all};
        cut(&f, upto, mine, scale, &j, &w);
        keep.least = place_logit(f.key);
        keep.last = f.token;
    }
    if (i == 0)
        kept[row] = keep;
}

int cuda_cut(live_cuda *c, const live_summary *s, const float *logits, int64_t rows, int64_t vocab,
             dsc_error *err)
{
    const int64_t blocks = cuda_blocks(vocab, DIST_BLOCK), chunks = cuda_blocks(vocab, DIST_CHUNK);
    const dim3 grid((unsigned)chunks, (unsigned)rows);
    const cuda_dist *const dist = c->pass->dist;
    void *scratch;
    int failed = cuda_scratch(c, CUDA_DISTS,
                              (size_t)rows * (sizeof(row_bins) + (size_t)chunks * sizeof(float)),
                              &scratch, err);
    if (failed)
        return failed;
    row_bins *const bins = (row_bins *)scratch;
    float *const least = (float *)(bins + rows);
    failed = cuda_launch(c, "max_logits", max_logits_kernel, grid, DIST_THREADS, err, s->max_logit,
                         least, bins, s->best, logits, vocab, blocks, dist);
    if (!failed)
        failed = cuda_launch(c, "bins", bins_kernel, grid, DIST_THREADS, err, bins, least, s->best,
                             logits, vocab, dist);
    return failed ? failed
                  : cuda_launch(c, "cut", cut_kernel, dim3((unsigned)rows), CUT_BINS, err, s->kept,
                                s->max_logit, bins, s->best, logits, vocab, blocks, dist);
}
