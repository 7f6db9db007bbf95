// SPDX-License-Identifier: Apache-2.0
// The loops of live/cpu_kernel.h. Whoever includes this has defined
//   TARGET        attributes of every function
//   vec           a vector of LANES floats
//   TILE_ROWS, TILE_TOKENS   sums that fit the registers beside what they are made of
//   zero, all, load, store, load_bf16, load_f16, fma3 (x * y + z), plus, minus, times, over,
//   total_of, largest_of, power (below), fetch, and
//   largest       the second where either is NaN, which is how a NaN gets through a bound
#define INLINE TARGET __attribute__((always_inline)) static inline
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

// Numbers [i, i + LANES) of a row as stored.
INLINE vec load_as(const void *row, int64_t i, dsc_dtype dtype)
{
    return dtype == DSC_F32    ? load((const float *)row + i)
           : dtype == DSC_BF16 ? load_bf16((const uint16_t *)row + i)
                               : load_f16((const uint16_t *)row + i);
}

// The last n < LANES, zeros behind them.
INLINE vec load_last(const void *row, int64_t i, int64_t n, dsc_dtype dtype)
{
    float f[LANES] = {0};
    uint16_t h[LANES] = {0};
    if (dtype == DSC_F32) {
        memcpy(f, (const float *)row + i, (size_t)n * sizeof *f);
        return load(f);
    }
    memcpy(h, (const uint16_t *)row + i, (size_t)n * sizeof *h);
    return load_as(h, 0, dtype);
}

INLINE void store_last(float *out, vec x, int64_t n)
{
    float f[LANES];
    store(f, x);
    memcpy(out, f, (size_t)n * sizeof *f);
}

// --- products ------------------------------------------------------------------------------------

// One sum of LANES partial sums per (row, token): however a pass is cut into tiles, a product is
// added up in the same order. Each step fetches a line of the rows behind this tile's, which the
// next tile begins with: the processor's own prefetching starts anew at every page.
INLINE void tile(const live_products *p, dsc_dtype dtype, int64_t row, int64_t token,
                 const int rows, const int tokens)
{
    const size_t size = dtype == DSC_F32 ? 4 : 2;
    const char *w[TILE_ROWS];
    const float *x[TILE_TOKENS];
    vec sum[TILE_ROWS][TILE_TOKENS];
    UNROLL for (int r = 0; r < rows; r++)
    {
        w[r] = (const char *)p->weights + (size_t)((row + r) * p->weight_stride) * size;
        UNROLL for (int t = 0; t < tokens; t++) sum[r][t] = zero();
    }
    UNROLL for (int t = 0; t < tokens; t++) x[t] = p->in + (token + t) * p->in_stride;
    const size_t ahead = (size_t)(rows * p->weight_stride) * size;
    int64_t c = 0;
    for (; c + LANES <= p->cols; c += LANES) {
        vec in[TILE_TOKENS];
        UNROLL for (int t = 0; t < tokens; t++) in[t] = load(x[t] + c);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vec a = load_as(w[r], c, dtype);
            if (!token)
                fetch(w[r] + ahead + (size_t)c * size);
            UNROLL for (int t = 0; t < tokens; t++) sum[r][t] = fma3(a, in[t], sum[r][t]);
        }
    }
    if (c < p->cols)
        UNROLL for (int r = 0; r < rows; r++)
        {
            vec a = load_last(w[r], c, p->cols - c, dtype);
            UNROLL for (int t = 0; t < tokens; t++)
            {
                vec in = load_last(x[t], c, p->cols - c, DSC_F32);
                sum[r][t] = fma3(a, in, sum[r][t]);
            }
        }
    UNROLL for (int r = 0; r < rows; r++)
    {
        UNROLL for (int t = 0; t < tokens; t++) p->out[(token + t) * p->out_stride + row + r] =
            total_of(sum[r][t]);
    }
}

// All tokens on `rows` rows.
INLINE void strip(const live_products *p, dsc_dtype dtype, int64_t row, const int rows)
{
    int64_t token = 0;
    for (; token + TILE_TOKENS <= p->tokens; token += TILE_TOKENS)
        tile(p, dtype, row, token, rows, TILE_TOKENS);
    switch (p->tokens - token) {
    case 1: tile(p, dtype, row, token, rows, 1); break;
    case 2: tile(p, dtype, row, token, rows, 2); break;
#if TILE_TOKENS > 3
    case 3: tile(p, dtype, row, token, rows, 3); break;
    case 4: tile(p, dtype, row, token, rows, 4); break;
    case 5: tile(p, dtype, row, token, rows, 5); break;
#endif
    default: break;
    }
}

INLINE void strips(const live_products *p, dsc_dtype dtype)
{
    int64_t row = 0;
    for (; row + TILE_ROWS <= p->rows; row += TILE_ROWS)
        strip(p, dtype, row, TILE_ROWS);
    for (; row < p->rows; row++)
        strip(p, dtype, row, 1);
}

TARGET static void products(const live_products *p, dsc_dtype dtype)
{
    if (dtype == DSC_F32)
        strips(p, DSC_F32);
    else if (dtype == DSC_BF16)
        strips(p, DSC_BF16);
    else
        strips(p, DSC_F16);
}

// --- values of an attention ----------------------------------------------------------------------

enum { MIX_QUERIES = 4, MIX_VECS = 4 };

INLINE void mix_tile(const live_mixture *m, int64_t query, int64_t d, const int queries,
                     const int vecs)
{
    vec sum[MIX_QUERIES][MIX_VECS];
    float *out = m->sum + query * m->sum_stride + d;
    const float *weight = m->weight + query * m->weight_stride;
    UNROLL for (int q = 0; q < queries; q++)
    {
        UNROLL for (int v = 0; v < vecs; v++) sum[q][v] = load(out + q * m->sum_stride + v * LANES);
    }
    for (int64_t i = 0; i < m->count; i++) {
        const float *value = m->value + i * m->value_stride + d;
        vec x[MIX_VECS];
        UNROLL for (int v = 0; v < vecs; v++) x[v] = load(value + v * LANES);
        UNROLL for (int q = 0; q < queries; q++)
        {
            vec a = all(weight[q * m->weight_stride + i]);
            UNROLL for (int v = 0; v < vecs; v++) sum[q][v] = fma3(a, x[v], sum[q][v]);
        }
    }
    UNROLL for (int q = 0; q < queries; q++)
    {
        UNROLL for (int v = 0; v < vecs; v++) store(out + q * m->sum_stride + v * LANES, sum[q][v]);
    }
}

// The last n < LANES numbers of the width.
INLINE void mix_last(const live_mixture *m, int64_t query, int64_t d, int64_t n)
{
    float *out = m->sum + query * m->sum_stride + d;
    vec sum = load_last(out, 0, n, DSC_F32);
    for (int64_t i = 0; i < m->count; i++)
        sum = fma3(all(m->weight[query * m->weight_stride + i]),
                   load_last(m->value + i * m->value_stride + d, 0, n, DSC_F32), sum);
    store_last(out, sum, n);
}

INLINE void mix_queries(const live_mixture *m, int64_t query, const int queries)
{
    int64_t d = 0;
    for (; d + MIX_VECS * LANES <= m->width; d += MIX_VECS * LANES)
        mix_tile(m, query, d, queries, MIX_VECS);
    for (; d + LANES <= m->width; d += LANES)
        mix_tile(m, query, d, queries, 1);
    for (int q = 0; q < queries && d < m->width; q++)
        mix_last(m, query + q, d, m->width - d);
}

TARGET static void mix(const live_mixture *m)
{
    int64_t query = 0;
    for (; query + MIX_QUERIES <= m->queries; query += MIX_QUERIES)
        mix_queries(m, query, MIX_QUERIES);
    for (; query < m->queries; query++)
        mix_queries(m, query, 1);
}

// --- exponentials --------------------------------------------------------------------------------

// As dsc_fast_expf (theory/fast_exp.h), for x in [-87, 88]: x = n ln 2 + r, e^r by a polynomial of
// degree 7; `power` reads 2^n off the last bits of x / ln 2 + 3 2^22.
INLINE vec exponential(vec x)
{
    const vec shift = all(0x1.8p23f);
    vec shifted = fma3(x, all(0x1.715476p0f), shift), n = minus(shifted, shift);
    vec r = fma3(n, all(-0x1.62e4p-1f), x), p = all(1.f / 5040);
    r = fma3(n, all(-0x1.7f7d1cp-20f), r);
    p = fma3(p, r, all(1.f / 720));
    p = fma3(p, r, all(1.f / 120));
    p = fma3(p, r, all(1.f / 24));
    p = fma3(p, r, all(1.f / 6));
    p = fma3(p, r, all(1.f / 2));
    p = plus(all(1), fma3(times(r, r), p, r));
    return times(p, power(shifted));
}

TARGET static float exponentials(float *x, int64_t n, float scale)
{
    vec most = all(-INFINITY), sum = zero(), least = all(-87);
    int64_t i = 0, rest = n % LANES;
    for (; i + LANES <= n; i += LANES) {
        vec s = times(load(x + i), all(scale));
        most = largest(most, s);
        store(x + i, s);
    }
    float top = largest_of(most);
    for (; i < n; i++) {
        x[i] *= scale;
        top = x[i] > top ? x[i] : top;
    }
    for (i = 0; i + LANES <= n; i += LANES) {
        vec e = exponential(largest(least, minus(load(x + i), all(top))));
        store(x + i, e);
        sum = plus(sum, e);
    }
    if (rest) {
        vec e = exponential(largest(least, minus(load_last(x, i, rest, DSC_F32), all(top))));
        store_last(x + i, e, rest);
        sum = plus(sum, load_last(x, i, rest, DSC_F32));
    }
    return total_of(sum);
}

// Below -87 the exponential of 87 stands for what would overflow: x times 1e-38.
INLINE vec silu_of(vec x)
{
    vec up = largest(all(-87), x), down = largest(all(-87), minus(zero(), up));
    return over(x, plus(all(1), exponential(down)));
}

TARGET static void silu(float *out, const float *x, const float *factor, int64_t n)
{
    int64_t i = 0, rest = n % LANES;
    for (; i + LANES <= n; i += LANES) {
        vec y = silu_of(load(x + i));
        store(out + i, factor ? times(y, load(factor + i)) : y);
    }
    if (rest) {
        vec y = silu_of(load_last(x, i, rest, DSC_F32));
        store_last(out + i, factor ? times(y, load_last(factor, i, rest, DSC_F32)) : y, rest);
    }
}

TARGET static void widen(float *out, const void *in, dsc_dtype dtype, int64_t n)
{
    int64_t i = 0;
    if (dtype == DSC_BF16)
        for (; i + LANES <= n; i += LANES)
            store(out + i, load_as(in, i, DSC_BF16));
    else if (dtype == DSC_F16)
        for (; i + LANES <= n; i += LANES)
            store(out + i, load_as(in, i, DSC_F16));
    else {
        memcpy(out, in, (size_t)n * sizeof *out);
        return;
    }
    if (i < n)
        store_last(out + i, load_last(in, i, n - i, dtype), n - i);
}

TARGET static float total(const float *x, int64_t n)
{
    enum { SUMS = 4, AHEAD = 1024 }; // numbers
    vec sum[SUMS] = {zero(), zero(), zero(), zero()};
    int64_t i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
        UNROLL for (int s = 0; s < SUMS; s++)
        {
            fetch((const char *)(x + i + s * LANES + AHEAD));
            sum[s] = plus(sum[s], load(x + i + s * LANES));
        }
    float rest = 0;
    for (; i < n; i++)
        rest += x[i];
    return total_of(plus(plus(sum[0], sum[1]), plus(sum[2], sum[3]))) + rest;
}
