// SPDX-License-Identifier: Apache-2.0
// The loops of live/device/cpu_kernel.h. The including file defines
//     TARGET        attributes of every function
//     vec           a vector of LANES floats
//     TILE_ROWS, TILE_TOKENS   tile size whose sums and operands fit the registers
//     zero, all, load, store, load_bf16, load_bf16_even and _odd (of 2 LANES), load_f16, fma3 (x *
//     y + z), add_product (the same, in place of z), hold (in a register), plus, minus, times,
//     over, total_of, totals_of (four vectors, each summed as by total_of), largest_of, power
//     (below), fetch and fetch_far (into the L2 cache),
// and largest, which returns its second argument if either is NaN, so that a NaN passes through a
// bound.
#define INLINE TARGET __attribute__((always_inline)) static inline
// Loads numbers [i, i + LANES) of a stored row.
INLINE vec load_as(const void *row, int64_t i, dsc_dtype dtype)
{
    return dtype == DSC_F32    ? load((const float *)row + i)
           : dtype == DSC_BF16 ? load_bf16((const uint16_t *)row + i)
                               : load_f16((const uint16_t *)row + i);
}

// Loads the first n <= LANES numbers of a stored row, followed by zeros.
INLINE vec load_first(const void *row, int64_t n, dsc_dtype dtype)
{
    float f[LANES] = {0};
    uint16_t h[LANES] = {0};
    if (n >= LANES)
        return load_as(row, 0, dtype);
    if (dtype == DSC_F32) {
        memcpy(f, row, (size_t)n * sizeof *f);
        return load(f);
    }
    memcpy(h, row, (size_t)n * sizeof *h);
    return load_as(h, 0, dtype);
}

INLINE void store_first(float *out, vec x, int64_t n)
{
    float f[LANES];
    store(f, x);
    memcpy(out, f, (size_t)n * sizeof *f);
}

// --- products ------------------------------------------------------------------------------------

// Packs TILE_TOKENS tokens together, fewer at the end: [cols / LANES][tokens][LANES], with zeros
// after the last column, so that one address runs through all of them. For BF16 weights, of every 2
// LANES columns the even ones come first: two weights are extracted from 32 bits in place, which is
// cheaper than spreading them.
TARGET static void pack(float *to, const float *in, int64_t in_stride, int64_t tokens, int64_t cols,
                        dsc_dtype dtype)
{
    const int64_t parts = dtype == DSC_BF16 ? 2 : 1;
    for (int64_t token = 0; token < tokens; token += TILE_TOKENS) {
        int64_t n = tokens - token < TILE_TOKENS ? tokens - token : TILE_TOKENS;
        for (int64_t c = 0; c < cols; c += parts * LANES)
            for (int64_t part = 0; part < parts; part++)
                for (int64_t t = 0; t < n; t++, to += LANES) {
                    const float *x = in + (token + t) * in_stride + c;
                    if (parts == 1)
                        store(to, load_first(x, cols - c, DSC_F32));
                    else
                        for (int64_t i = 0, j = part; i < LANES; i++, j += 2)
                            to[i] = c + j < cols ? x[j] : 0;
                }
    }
}

// Sums of a tile. Only constants index these arrays, and `n` and `rows` are known when a function
// is compiled, so all of them stay in registers.
enum { MOST_ROWS = 4, MOST_VECS = 6 };

INLINE void set_zero(vec *v)
{
    v[0] = v[1] = v[2] = v[3] = v[4] = v[5] = zero();
}

// Loads n consecutive vectors.
INLINE void load_some(vec *v, const float *x, const int n)
{
    v[0] = load(x);
    if (n > 1)
        v[1] = load(x + LANES);
    if (n > 2)
        v[2] = load(x + 2 * LANES);
    if (n > 3)
        v[3] = load(x + 3 * LANES);
    if (n > 4)
        v[4] = load(x + 4 * LANES);
    if (n > 5)
        v[5] = load(x + 5 * LANES);
}

INLINE void store_some(float *out, const vec *v, const int n)
{
    store(out, v[0]);
    if (n > 1)
        store(out + LANES, v[1]);
    if (n > 2)
        store(out + 2 * LANES, v[2]);
    if (n > 3)
        store(out + 3 * LANES, v[3]);
    if (n > 4)
        store(out + 4 * LANES, v[4]);
    if (n > 5)
        store(out + 5 * LANES, v[5]);
}

// Otherwise the compiler reloads these for every row.
INLINE void hold_some(vec *v, const int n)
{
    hold(&v[0]);
    if (n > 1)
        hold(&v[1]);
    if (n > 2)
        hold(&v[2]);
    if (n > 3)
        hold(&v[3]);
    if (n > 4)
        hold(&v[4]);
    if (n > 5)
        hold(&v[5]);
}

INLINE void add_products(vec *sum, vec a, const vec *x, const int n)
{
    add_product(&sum[0], a, x[0]);
    if (n > 1)
        add_product(&sum[1], a, x[1]);
    if (n > 2)
        add_product(&sum[2], a, x[2]);
    if (n > 3)
        add_product(&sum[3], a, x[3]);
    if (n > 4)
        add_product(&sum[4], a, x[4]);
    if (n > 5)
        add_product(&sum[5], a, x[5]);
}

// The weights of a step; `part` is the even or the odd columns of BF16, or the first or the second
// LANES of F16. n columns if these are the last.
INLINE vec weights_at(const char *w, int64_t n, dsc_dtype dtype, const int part)
{
    uint16_t last[2 * LANES] = {0};
    if (dtype == DSC_F16)
        return load_first(w + part * LANES * 2, n - part * LANES, dtype);
    if (dtype == DSC_F32)
        return load_first(w, n, dtype);
    if (n < 2 * LANES)
        w = memcpy(last, w, (size_t)n * sizeof *last);
    return part ? load_bf16_odd((const uint16_t *)w) : load_bf16_even((const uint16_t *)w);
}

// A step of `rows` rows; w is the current position in each of them.
INLINE void step(vec sum[][MOST_VECS], const char *const *w, const float *x, int64_t n,
                 dsc_dtype dtype, const int part, const int rows, const int tokens)
{
    vec in[MOST_VECS];
    load_some(in, x + part * tokens * LANES, tokens);
    hold_some(in, tokens);
    add_products(sum[0], weights_at(w[0], n, dtype, part), in, tokens);
    if (rows > 1)
        add_products(sum[1], weights_at(w[1], n, dtype, part), in, tokens);
    if (rows > 2)
        add_products(sum[2], weights_at(w[2], n, dtype, part), in, tokens);
    if (rows > 3)
        add_products(sum[3], weights_at(w[3], n, dtype, part), in, tokens);
}

// BLOCK is the number of columns, times tokens, that a group of rows processes before any row
// continues, so that the tokens' part of a step comes from the L1 cache: loading it from L2 would
// take the same few buffers that load weights. KEPT is the number of vectors of sums that such a
// group saves meanwhile, and GROUP_BYTES the bytes of its weights, which wait in the L2 cache.
enum { BLOCK = 3072, KEPT = 16 * TILE_TOKENS, GROUP_BYTES = 1 << 17 };

// Weights are fetched at least this number of bytes before their use.
enum { AHEAD = 1 << 13 };

// A part of a product: columns of a few rows, and how far weights have been fetched.
typedef struct part {
    const char *w;
    size_t row_bytes;
    const char *next; // the next cache line to fetch, in memory order
    const char *end;  // of the row that `next` is in
    int64_t gap;      // bytes from `end` to the following row
    int64_t apart;    // bytes between the rows
    int64_t every;    // fetch one line per this number of lines used
    int64_t cols;
    float *kept; // sums so far, [rows][tokens][LANES]
    bool near;   // fetch into the L1 cache, else into L2
    bool first, last;
} part;

INLINE void load_kept(vec *v, const part *p, const int row, const int rows, const int tokens)
{
    if (row < rows)
        load_some(v, p->kept + row * tokens * LANES, tokens);
}

INLINE void store_kept(const part *p, const vec *v, const int row, const int rows, const int tokens)
{
    if (row < rows)
        store_some(p->kept + row * tokens * LANES, v, tokens);
}

// Stores the sums of one token.
INLINE void put_totals(float *out, vec sum[][MOST_VECS], const int token, const int rows)
{
    if (rows == 4) {
        totals_of(out, sum[0][token], sum[1][token], sum[2][token], sum[3][token]);
        return;
    }
    out[0] = total_of(sum[0][token]);
    if (rows > 1)
        out[1] = total_of(sum[1][token]);
}

// Weights are fetched in memory order, in whatever order tiles use them: the hardware prefetcher
// follows one sequence of lines, but not four rows that are read in parallel within a page (12
// instead of 28 GB/s with 576 columns).
INLINE void fetch_lines(part *p, const int lines)
{
    const char *next = p->next;
    if (p->near) {
        fetch(next);
        if (lines > 1)
            fetch(next + 64);
        if (lines > 2)
            fetch(next + 128);
        if (lines > 3)
            fetch(next + 192);
    } else {
        fetch_far(next);
        if (lines > 1)
            fetch_far(next + 64);
        if (lines > 2)
            fetch_far(next + 128);
        if (lines > 3)
            fetch_far(next + 192);
    }
    next += 64 * lines;
    if (p->gap && next >= p->end) {
        next += p->gap;
        p->end += p->apart;
    }
    p->next = next;
}

// Each (row, token) has LANES partial sums along the columns, which are added at the end: a product
// is computed in the same order for any tiling.
INLINE void tile(float *out, int64_t out_stride, part *p, const float *x, dsc_dtype dtype,
                 const int rows, const int tokens)
{
    const int64_t size = dtype == DSC_F32 ? 4 : 2, parts = dtype == DSC_F32 ? 1 : 2;
    const int64_t wide = parts * LANES; // columns of a step
    const int64_t steps = 64 / (wide * size);
    const size_t row_bytes = p->row_bytes;
    const char *w[MOST_ROWS] = {p->w, p->w + row_bytes, p->w + 2 * row_bytes, p->w + 3 * row_bytes};
    int64_t wait = steps, n = p->cols;
    vec sum[MOST_ROWS][MOST_VECS];
    set_zero(sum[0]), set_zero(sum[1]), set_zero(sum[2]), set_zero(sum[3]);
    if (!p->first) {
        load_kept(sum[0], p, 0, rows, tokens), load_kept(sum[1], p, 1, rows, tokens);
        load_kept(sum[2], p, 2, rows, tokens), load_kept(sum[3], p, 3, rows, tokens);
    }
    for (; n >= wide; n -= wide, x += wide * tokens) {
        step(sum, w, x, wide, dtype, 0, rows, tokens);
        if (parts == 2)
            step(sum, w, x, wide, dtype, 1, rows, tokens);
        w[0] += wide * size, w[1] += wide * size, w[2] += wide * size, w[3] += wide * size;
        // Each row has its own address: with an index, a processor splits the operation from the
        // load.
        __asm__("" : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3]));
        if (!--wait) {
            fetch_lines(p, rows);
            wait = p->every * steps;
        }
    }
    if (n) {
        step(sum, w, x, n, dtype, 0, rows, tokens);
        if (dtype == DSC_BF16 || (dtype == DSC_F16 && n > LANES))
            step(sum, w, x, n, dtype, 1, rows, tokens);
    }
    if (!p->last) {
        store_kept(p, sum[0], 0, rows, tokens), store_kept(p, sum[1], 1, rows, tokens);
        store_kept(p, sum[2], 2, rows, tokens), store_kept(p, sum[3], 3, rows, tokens);
        return;
    }
    put_totals(out, sum, 0, rows);
    if (tokens > 1)
        put_totals(out + out_stride, sum, 1, rows);
    if (tokens > 2)
        put_totals(out + 2 * out_stride, sum, 2, rows);
    if (tokens > 3)
        put_totals(out + 3 * out_stride, sum, 3, rows);
    if (tokens > 4)
        put_totals(out + 4 * out_stride, sum, 4, rows);
    if (tokens > 5)
        put_totals(out + 5 * out_stride, sum, 5, rows);
}

// Processes all tokens on `rows` rows.
INLINE void strip(const live_products *p, part *now, int64_t row, int64_t col, dsc_dtype dtype,
                  const int rows)
{
    const int64_t wide = dtype == DSC_BF16 ? 2 * LANES : LANES, stride = p->out_stride;
    const int64_t padded = (p->cols + wide - 1) / wide * wide;
    float *out = p->out + row;
    const float *x = p->packed;
    int64_t left = p->tokens;
    for (; left >= TILE_TOKENS; left -= TILE_TOKENS) {
        tile(out, stride, now, x + col * TILE_TOKENS, dtype, rows, TILE_TOKENS);
        out += TILE_TOKENS * stride;
        x += TILE_TOKENS * padded;
        now->kept += rows * TILE_TOKENS * LANES;
    }
    x += col * left;
    if (left == 1)
        tile(out, stride, now, x, dtype, rows, 1);
    else if (left == 2)
        tile(out, stride, now, x, dtype, rows, 2);
#if TILE_TOKENS > 3
    else if (left == 3)
        tile(out, stride, now, x, dtype, rows, 3);
    else if (left == 4)
        tile(out, stride, now, x, dtype, rows, 4);
    else if (left == 5)
        tile(out, stride, now, x, dtype, rows, 5);
#endif
}

// Processes columns [col, col + now.cols) of rows [from, to).
INLINE void strips(const live_products *p, part *now, int64_t from, int64_t to, int64_t col,
                   dsc_dtype dtype)
{
    const int64_t size = dtype == DSC_F32 ? 4 : 2;
    const char *w = (const char *)p->weights + col * size;
    float *kept = now->kept;
    for (int64_t row = from, then; row < to; row = then) {
        then = row + (row + TILE_ROWS <= to ? TILE_ROWS : 1);
        now->w = w + row * now->row_bytes;
        now->kept = kept + (row - from) * p->tokens * LANES;
        if (then - row == TILE_ROWS)
            strip(p, now, row, col, dtype, TILE_ROWS);
        else
            strip(p, now, row, col, dtype, 1);
    }
    now->kept = kept;
}

// Number of columns to process together: a block is cut only if the tokens' share of it would not
// stay in the cache. Divisions are slow relative to short rows, which are never cut. A line of BF16
// or F16 is used twice as long as one of F32 and needs no blocks.
INLINE int64_t block_of(const live_products *p, dsc_dtype dtype)
{
    const int64_t together = p->tokens < TILE_TOKENS ? p->tokens : TILE_TOKENS;
    if (dtype != DSC_F32 || p->tokens == 1 || p->tokens > KEPT / TILE_ROWS ||
        p->cols <= BLOCK / TILE_TOKENS / 64 * 64)
        return p->cols;
    return BLOCK / together / 64 * 64;
}

// Number of rows that are cut into blocks of columns together.
INLINE int64_t group_of(const live_products *p, int64_t row_bytes)
{
    int64_t group = KEPT / p->tokens / TILE_ROWS * TILE_ROWS;
    while (group > TILE_ROWS && group * row_bytes > GROUP_BYTES)
        group -= TILE_ROWS;
    return group;
}

// Sets where weights are fetched while the first `together` rows are used. With few tokens the L1
// cache has room for them, and a line from L2 would arrive late.
INLINE void set_ahead(part *now, const live_products *p, int64_t together, dsc_dtype dtype)
{
    const int64_t size = dtype == DSC_F32 ? 4 : 2, few = dtype == DSC_F32 ? 3 : 1;
    const int64_t bytes = together * (int64_t)now->row_bytes;
    int64_t ahead = 0, width = p->cols * size;
    now->next = (const char *)p->ahead.next;
    now->apart = (int64_t)now->row_bytes;
    if (now->next) {
        now->near = false;
        now->apart = p->ahead.stride * (int64_t)sizeof(float);
        width = p->ahead.width * (int64_t)sizeof(float);
    } else {
        while (ahead < AHEAD && bytes)
            ahead += bytes;
        now->near = p->tokens <= few && ahead <= 2 * AHEAD;
        now->next = (const char *)p->weights + ahead;
    }
    now->end = now->next + width;
    now->gap = now->apart - width;
}

INLINE void products_of(const live_products *p, dsc_dtype dtype)
{
    _Alignas(64) float kept[KEPT * LANES];
    const int64_t block = block_of(p, dtype);
    part now = {.row_bytes = (size_t)(p->weight_stride * (dtype == DSC_F32 ? 4 : 2)),
                .cols = p->cols,
                .kept = kept,
                .every = p->tokens > TILE_TOKENS ? (p->tokens + TILE_TOKENS - 1) / TILE_TOKENS : 1,
                .first = true,
                .last = true};
    if (p->cols <= block) {
        set_ahead(&now, p, TILE_ROWS, dtype);
        strips(p, &now, 0, p->rows, 0, dtype);
        return;
    }
    const int64_t group = group_of(p, (int64_t)now.row_bytes);
    set_ahead(&now, p, group, dtype);
    for (int64_t from = 0; from < p->rows; from += group)
        for (int64_t col = 0; col < p->cols; col += block) {
            now.first = !col;
            now.last = p->cols - col <= block;
            now.cols = now.last ? p->cols - col : block;
            strips(p, &now, from, p->rows - from < group ? p->rows : from + group, col, dtype);
        }
}

TARGET static void products(const live_products *p, dsc_dtype dtype)
{
    if (dtype == DSC_F32)
        products_of(p, DSC_F32);
    else if (dtype == DSC_BF16)
        products_of(p, DSC_BF16);
    else
        products_of(p, DSC_F16);
}

// --- values of an attention ----------------------------------------------------------------------

enum { MIX_QUERIES = 4, MIX_VECS = LANES > 8 ? 4 : 2 };

// Processes up to MIX_QUERIES queries. A row of the cache contains all heads, of which this reads
// one, so the hardware prefetcher does not find the next part, and the first queries fetch it.
INLINE void mix_tile(const live_mixture *m, int64_t query, int64_t d, const int queries,
                     const int vecs)
{
    vec sum[MOST_ROWS][MOST_VECS], x[MOST_VECS];
    float *out = m->sum + query * m->sum_stride + d;
    const int64_t stride = m->weight_stride;
    const float *weight = m->weight + query * stride, *value = m->value + d;
    // Each part of the width of the first queries fetches its share.
    const char *next = query ? NULL : (const char *)m->ahead.next;
    const int64_t row = m->ahead.width * (int64_t)sizeof *out;
    const int64_t apart = m->ahead.stride * (int64_t)sizeof *out;
    const char *end = next ? next + row : NULL;
    if (next && d) {
        const int64_t done = d * m->count * (int64_t)sizeof *out;
        next += done / row * apart + done % row;
        end += done / row * apart;
    }
    load_some(sum[0], out, vecs);
    if (queries > 1)
        load_some(sum[1], out + m->sum_stride, vecs);
    if (queries > 2)
        load_some(sum[2], out + 2 * m->sum_stride, vecs);
    if (queries > 3)
        load_some(sum[3], out + 3 * m->sum_stride, vecs);
    for (int64_t i = 0; i < m->count; i++, value += m->value_stride) {
        if (next) {
            fetch_far(next);
            if (vecs * LANES > 16)
                fetch_far(next + 64);
            if (vecs * LANES > 32)
                fetch_far(next + 128), fetch_far(next + 192);
            next += vecs * LANES * sizeof *out;
            if (next >= end) {
                next += apart - row;
                end += apart;
            }
        }
        load_some(x, value, vecs);
        add_products(sum[0], all(weight[i]), x, vecs);
        if (queries > 1)
            add_products(sum[1], all(weight[stride + i]), x, vecs);
        if (queries > 2)
            add_products(sum[2], all(weight[2 * stride + i]), x, vecs);
        if (queries > 3)
            add_products(sum[3], all(weight[3 * stride + i]), x, vecs);
    }
    store_some(out, sum[0], vecs);
    if (queries > 1)
        store_some(out + m->sum_stride, sum[1], vecs);
    if (queries > 2)
        store_some(out + 2 * m->sum_stride, sum[2], vecs);
    if (queries > 3)
        store_some(out + 3 * m->sum_stride, sum[3], vecs);
}

// The last n < LANES numbers of the width.
INLINE void mix_last(const live_mixture *m, int64_t query, int64_t d, int64_t n)
{
    float *out = m->sum + query * m->sum_stride + d;
    vec sum = load_first(out, n, DSC_F32);
    for (int64_t i = 0; i < m->count; i++)
        sum = fma3(all(m->weight[query * m->weight_stride + i]),
                   load_first(m->value + i * m->value_stride + d, n, DSC_F32), sum);
    store_first(out, sum, n);
}

INLINE void mix_queries(const live_mixture *m, int64_t query, const int queries)
{
    int64_t d = 0;
    for (; d + MIX_VECS * LANES <= m->width; d += MIX_VECS * LANES)
        mix_tile(m, query, d, queries, MIX_VECS);
    if (MIX_VECS > 2)
        for (; d + 2 * LANES <= m->width; d += 2 * LANES)
            mix_tile(m, query, d, queries, 2);
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
    if (m->queries - query == 3)
        mix_queries(m, query, 3);
    else if (m->queries - query == 2)
        mix_queries(m, query, 2);
    else if (m->queries - query == 1)
        mix_queries(m, query, 1);
}

// --- exponentials --------------------------------------------------------------------------------

// As dsc_fast_expf (theory/rows/fast_exp.h), for x in [-87, 88]: x = n ln 2 + r, e^r by a
// polynomial of degree 7; `power` takes 2^n from the last bits of x / ln 2 + 3 2^22.
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
    int64_t i = 0, residual = n % LANES;
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
    if (residual) {
        vec e = exponential(largest(least, minus(load_first(x + i, residual, DSC_F32), all(top))));
        store_first(x + i, e, residual);
        sum = plus(sum, load_first(x + i, residual, DSC_F32));
    }
    return total_of(sum);
}

TARGET static void multiply(float *x, int64_t n, float by)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(x + i, times(load(x + i), all(by)));
    for (; i < n; i++)
        x[i] *= by;
}

// Below -87 the exponential of 87 replaces one that would overflow; the result is x times 1e-38.
INLINE vec silu_of(vec x)
{
    vec up = largest(all(-87), x), down = largest(all(-87), minus(zero(), up));
    return over(x, plus(all(1), exponential(down)));
}

TARGET static void silu(float *out, const float *x, const float *factor, int64_t n)
{
    int64_t i = 0, residual = n % LANES;
    for (; i + LANES <= n; i += LANES) {
        vec y = silu_of(load(x + i));
        store(out + i, factor ? times(y, load(factor + i)) : y);
    }
    if (residual) {
        vec y = silu_of(load_first(x + i, residual, DSC_F32));
        store_first(out + i, factor ? times(y, load_first(factor + i, residual, DSC_F32)) : y,
                    residual);
    }
}

// erfc(z) for z in [0, 11.4] as t exp(P(t) - z^2) with t = 1 / (1 + z/2). P is the minimax
// polynomial of degree 9 for log(erfc(z) / t) + z^2 (Remez exchange): within 5.2e-8, before
// rounding.
INLINE vec complement(vec z)
{
    vec t = over(all(1), fma3(all(.5f), z, all(1))), p = all(.150669244f);
    p = fma3(p, t, all(-.712357021f));
    p = fma3(p, t, all(1.23166243f));
    p = fma3(p, t, all(-.797069798f));
    p = fma3(p, t, all(.00410509928f));
    p = fma3(p, t, all(-.0441439768f));
    p = fma3(p, t, all(.0502568561f));
    p = fma3(p, t, all(.383320384f));
    p = fma3(p, t, all(.999024317f));
    p = fma3(p, t, all(-1.26546749f));
    p = minus(p, times(z, z));
    return times(t, exponential(largest(all(-87), p)));
}

// x (1 + erf(x / root 2)) / 2 as max(x, 0) - |x| erfc(|x| / root 2) / 2, which does not cancel;
// beyond 16 the subtracted term is 0.
INLINE vec gelu_of(vec x)
{
    vec size = largest(x, minus(zero(), x));
    size = minus(zero(), largest(all(-16), minus(zero(), size)));
    vec half = times(all(.5f), complement(times(size, all((float)M_SQRT1_2))));
    return minus(largest(zero(), x), times(size, half));
}

// x (1 + tanh u) / 2 = x / (1 + e^-2u).
INLINE vec gelu_tanh_of(vec x)
{
    vec cubic = fma3(times(all(.044715f), times(x, x)), x, x);
    vec down = times(all((float)(-2 * M_2_SQRTPI * M_SQRT1_2)), cubic);
    down = largest(all(-87), minus(zero(), largest(all(-87), minus(zero(), down))));
    return over(x, plus(all(1), exponential(down)));
}

TARGET static void gelu(float *out, const float *x, bool by_tanh, int64_t n)
{
    int64_t i = 0, residual = n % LANES;
    for (; i + LANES <= n; i += LANES)
        store(out + i, by_tanh ? gelu_tanh_of(load(x + i)) : gelu_of(load(x + i)));
    if (residual) {
        vec last = load_first(x + i, residual, DSC_F32);
        store_first(out + i, by_tanh ? gelu_tanh_of(last) : gelu_of(last), residual);
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
        store_first(out + i, load_first((const uint16_t *)in + i, n - i, dtype), n - i);
}

// In memory order and without explicit prefetches, which processors read fastest.
TARGET static float total(const float *x, int64_t n)
{
    vec a = zero(), b = zero();
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a = plus(a, load(x + i));
        b = plus(b, load(x + i + LANES));
    }
    float residual = 0;
    for (; i < n; i++)
        residual += x[i];
    return total_of(plus(a, b)) + residual;
}
