// SPDX-License-Identifier: Apache-2.0
// The loops of live/device/cpu_kernel.h. The including file defines
//     TARGET, OP    attributes of every function, and of one that is inlined
//     vec           a vector of LANES floats; C's operators work on it number by number
//     TILE_ROWS, TILE_TOKENS   tile size whose sums and operands fit the registers
//     load_bf16, load_bf16_odd (of 2 LANES), load_f16, fma3 (x * y + z), add_product (the same, in
//     place of z), hold (in a register), totals_of (four vectors, each summed in the same order),
//     largest_of,
// and largest, which returns its second argument if either is NaN, so that a NaN passes through a
// bound. Loops over registers are unrolled by pragma, so that only constants index their arrays.
typedef int32_t ints __attribute__((vector_size(4 * LANES)));

OP vec zero(void)
{
    return (vec){0};
}

OP vec all(float x)
{
    return x - zero(); // keeps the sign of 0
}

OP vec load(const float *x)
{
    vec v;
    memcpy(&v, x, sizeof v);
    return v;
}

OP void store(float *out, vec x)
{
    memcpy(out, &x, sizeof x);
}

OP vec load_bf16_even(const uint16_t *x)
{
    ints both;
    memcpy(&both, x, sizeof both);
    return (vec)(both << 16);
}

OP float total_of(vec x)
{
    float total[4];
    totals_of(total, x, x, x, x);
    return total[0];
}

// Loads numbers [i, i + LANES) of a stored row.
OP vec load_as(const void *row, int64_t i, dsc_dtype dtype)
{
    return dtype == DSC_F32    ? load((const float *)row + i)
           : dtype == DSC_BF16 ? load_bf16((const uint16_t *)row + i)
                               : load_f16((const uint16_t *)row + i);
}

// Loads the first n <= LANES numbers of a stored row, followed by zeros.
OP vec load_first(const void *row, int64_t n, dsc_dtype dtype)
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

OP void store_first(float *out, vec x, int64_t n)
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

// Loads n consecutive vectors.
OP void load_some(vec *v, const float *x, const int n)
{
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
        v[i] = load(x + i * LANES);
}

OP void store_some(float *out, const vec *v, const int n)
{
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
        store(out + i * LANES, v[i]);
}

OP void add_products(vec *sum, vec a, const vec *x, const int n)
{
#pragma GCC unroll 6
    for (int i = 0; i < n; i++)
        add_product(&sum[i], a, x[i]);
}

// The weights of a step; `part` is the even or the odd columns of BF16, or the first or the second
// LANES of F16. n columns if these are the last.
OP vec weights_at(const char *w, int64_t n, dsc_dtype dtype, const int part)
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
OP void step(vec sum[][MOST_VECS], const char *const *w, const float *x, int64_t n, dsc_dtype dtype,
             const int part, const int rows, const int tokens)
{
    vec in[MOST_VECS];
    load_some(in, x + part * tokens * LANES, tokens);
#pragma GCC unroll 6
    for (int i = 0; i < tokens; i++)
        hold(&in[i]); // otherwise the compiler reloads it for every row
#pragma GCC unroll 4
    for (int row = 0; row < rows; row++)
        add_products(sum[row], weights_at(w[row], n, dtype, part), in, tokens);
}

// BLOCK is the number of columns, times tokens, that a group of rows processes before any row
// continues, so that the tokens' part of a step comes from the L1 cache: loading it from L2 would
// take the same few buffers that load weights. KEPT is the number of vectors of sums that such a
// group saves meanwhile, and GROUP_BYTES the bytes of its weights, which wait in the L2 cache.
enum { BLOCK = 3072, KEPT = 16 * TILE_TOKENS, GROUP_BYTES = 1 << 17 };

// Weights are fetched at least this number of bytes before their use.
enum { AHEAD = 1 << 13 };
enum { TO_L2 = 2 }; // locality of a prefetch into the L2 cache; the default is the L1 cache

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

// Stores the sums of one token.
OP void put_totals(float *out, vec sum[][MOST_VECS], const int token, const int rows)
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
OP void fetch_lines(part *p, const int lines)
{
    const char *next = p->next;
#pragma GCC unroll 4
    for (int line = 0; line < lines; line++)
        if (p->near)
            __builtin_prefetch(next + 64 * line);
        else
            __builtin_prefetch(next + 64 * line, 0, TO_L2);
    next += 64 * lines;
    if (p->gap && next >= p->end) {
        next += p->gap;
        p->end += p->apart;
    }
    p->next = next;
}

// Each (row, token) has LANES partial sums along the columns, which are added at the end: a product
// is computed in the same order for any tiling.
OP void tile(float *out, int64_t out_stride, part *p, const float *x, dsc_dtype dtype,
             const int rows, const int tokens)
{
    const int64_t size = dtype == DSC_F32 ? 4 : 2, parts = dtype == DSC_F32 ? 1 : 2;
    const int64_t wide = parts * LANES; // columns of a step
    const int64_t steps = 64 / (wide * size);
    const size_t row_bytes = p->row_bytes;
    const char *w[MOST_ROWS] = {p->w, p->w + row_bytes, p->w + 2 * row_bytes, p->w + 3 * row_bytes};
    int64_t wait = steps, n = p->cols;
    vec sum[MOST_ROWS][MOST_VECS];
#pragma GCC unroll 4
    for (int row = 0; row < rows; row++)
#pragma GCC unroll 6
        for (int i = 0; i < tokens; i++)
            sum[row][i] = zero();
    if (!p->first)
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++)
            load_some(sum[row], p->kept + row * tokens * LANES, tokens);
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
#pragma GCC unroll 4
        for (int row = 0; row < rows; row++)
            store_some(p->kept + row * tokens * LANES, sum[row], tokens);
        return;
    }
#pragma GCC unroll 6
    for (int i = 0; i < tokens; i++)
        put_totals(out + i * out_stride, sum, i, rows);
}

// Processes all tokens on `rows` rows.
OP void strip(const live_products *p, part *now, int64_t row, int64_t col, dsc_dtype dtype,
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
OP void strips(const live_products *p, part *now, int64_t from, int64_t to, int64_t col,
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
OP int64_t block_of(const live_products *p, dsc_dtype dtype)
{
    const int64_t together = p->tokens < TILE_TOKENS ? p->tokens : TILE_TOKENS;
    if (dtype != DSC_F32 || p->tokens == 1 || p->tokens > KEPT / TILE_ROWS ||
        p->cols <= BLOCK / TILE_TOKENS / 64 * 64)
        return p->cols;
    return BLOCK / together / 64 * 64;
}

// Number of rows that are cut into blocks of columns together.
OP int64_t group_of(const live_products *p, int64_t row_bytes)
{
    int64_t group = KEPT / p->tokens / TILE_ROWS * TILE_ROWS;
    while (group > TILE_ROWS && group * row_bytes > GROUP_BYTES)
        group -= TILE_ROWS;
    return group;
}

// Sets where weights are fetched while the first `together` rows are used. With few tokens the L1
// cache has room for them, and a line from L2 would arrive late.
OP void set_ahead(part *now, const live_products *p, int64_t together, dsc_dtype dtype)
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

OP void products_of(const live_products *p, dsc_dtype dtype)
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
OP void mix_tile(const live_mixture *m, int64_t query, int64_t d, const int queries, const int vecs)
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
#pragma GCC unroll 4
    for (int q = 0; q < queries; q++)
        load_some(sum[q], out + q * m->sum_stride, vecs);
    for (int64_t i = 0; i < m->count; i++, value += m->value_stride) {
        if (next) {
#pragma GCC unroll 4
            for (int line = 0; line * 16 < vecs * LANES; line++)
                __builtin_prefetch(next + 64 * line, 0, TO_L2);
            next += vecs * LANES * sizeof *out;
            if (next >= end) {
                next += apart - row;
                end += apart;
            }
        }
        load_some(x, value, vecs);
#pragma GCC unroll 4
        for (int q = 0; q < queries; q++)
            add_products(sum[q], all(weight[q * stride + i]), x, vecs);
    }
#pragma GCC unroll 4
    for (int q = 0; q < queries; q++)
        store_some(out + q * m->sum_stride, sum[q], vecs);
}

// The last n < LANES numbers of the width.
OP void mix_last(const live_mixture *m, int64_t query, int64_t d, int64_t n)
{
    float *out = m->sum + query * m->sum_stride + d;
    vec sum = load_first(out, n, DSC_F32);
    for (int64_t i = 0; i < m->count; i++)
        sum = fma3(all(m->weight[query * m->weight_stride + i]),
                   load_first(m->value + i * m->value_stride + d, n, DSC_F32), sum);
    store_first(out, sum, n);
}

OP void mix_queries(const live_mixture *m, int64_t query, const int queries)
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

// c[0] x^(n - 1) + ... + c[n - 1].
OP vec polynomial(vec x, const float *c, const int n)
{
    vec p = all(c[0]);
#pragma GCC unroll 10
    for (int i = 1; i < n; i++)
        p = fma3(p, x, all(c[i]));
    return p;
}

// As dsc_fast_expf (theory/rows/fast_exp.h), for x in [-87, 88]: x = n ln 2 + r, e^r by a
// polynomial of degree 7; the last bits of x / ln 2 + 3 2^22 become the exponent of 2^n.
OP vec exponential(vec x)
{
    static const float c[] = {1.f / 5040, 1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 1.f / 2};
    const vec shift = all(0x1.8p23f);
    const vec shifted = fma3(x, all(0x1.715476p0f), shift), n = shifted - shift;
    vec r = fma3(n, all(-0x1.62e4p-1f), x);
    r = fma3(n, all(-0x1.7f7d1cp-20f), r);
    const vec square = r * r, p = 1.f + fma3(square, polynomial(r, c, 6), r);
    return p * (vec)(((ints)shifted + 127) << 23);
}

TARGET static float exponentials(float *x, int64_t n, float scale)
{
    vec most = all(-INFINITY), sum = zero(), least = all(-87);
    int64_t i = 0, residual = n % LANES;
    for (; i + LANES <= n; i += LANES) {
        vec s = load(x + i) * scale;
        most = largest(most, s);
        store(x + i, s);
    }
    float top = largest_of(most);
    for (; i < n; i++) {
        x[i] *= scale;
        top = x[i] > top ? x[i] : top;
    }
    for (i = 0; i + LANES <= n; i += LANES) {
        vec e = exponential(largest(least, load(x + i) - top));
        store(x + i, e);
        sum += e;
    }
    if (residual) {
        vec e = exponential(largest(least, load_first(x + i, residual, DSC_F32) - top));
        store_first(x + i, e, residual);
        sum += load_first(x + i, residual, DSC_F32);
    }
    return total_of(sum);
}

TARGET static void multiply(float *x, int64_t n, float by)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(x + i, load(x + i) * by);
    for (; i < n; i++)
        x[i] *= by;
}

// Below -87 the exponential of 87 replaces one that would overflow; the result is x times 1e-38.
OP vec silu_of(vec x)
{
    vec up = largest(all(-87), x), down = largest(all(-87), 0.f - up);
    return x / (1.f + exponential(down));
}

TARGET static void silu(float *out, const float *x, const float *factor, int64_t n)
{
    int64_t i = 0, residual = n % LANES;
    for (; i + LANES <= n; i += LANES) {
        vec y = silu_of(load(x + i));
        if (factor)
            y *= load(factor + i);
        store(out + i, y);
    }
    if (residual) {
        vec y = silu_of(load_first(x + i, residual, DSC_F32));
        if (factor)
            y *= load_first(factor + i, residual, DSC_F32);
        store_first(out + i, y, residual);
    }
}

// erfc(z) for z in [0, 11.4] as t exp(P(t) - z^2) with t = 1 / (1 + z/2). P is the minimax
// polynomial of degree 9 for log(erfc(z) / t) + z^2 (Remez exchange): within 5.2e-8, before
// rounding.
OP vec complement(vec z)
{
    static const float c[] = {.150669244f,   -.712357021f, 1.23166243f, -.797069798f, .00410509928f,
                              -.0441439768f, .0502568561f, .383320384f, .999024317f,  -1.26546749f};
    const vec t = 1.f / fma3(all(.5f), z, all(1)), square = z * z;
    return t * exponential(largest(all(-87), polynomial(t, c, 10) - square));
}

// x (1 + erf(x / root 2)) / 2 as max(x, 0) - |x| erfc(|x| / root 2) / 2, which does not cancel;
// beyond 16 the subtracted term is 0.
OP vec gelu_of(vec x)
{
    vec size = largest(x, 0.f - x);
    size = 0.f - largest(all(-16), 0.f - size);
    vec half = .5f * complement(size * (float)M_SQRT1_2), below = size * half;
    return largest(zero(), x) - below;
}

// x (1 + tanh u) / 2 = x / (1 + e^-2u).
OP vec gelu_tanh_of(vec x)
{
    vec cubic = fma3(.044715f * (x * x), x, x);
    vec down = (float)(-2 * M_2_SQRTPI * M_SQRT1_2) * cubic;
    down = largest(all(-87), 0.f - largest(all(-87), 0.f - down));
    return x / (1.f + exponential(down));
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

OP void widen_as(float *out, const void *in, dsc_dtype dtype, int64_t n)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(out + i, load_as(in, i, dtype));
    if (i < n)
        store_first(out + i, load_first((const uint16_t *)in + i, n - i, dtype), n - i);
}

TARGET static void widen(float *out, const void *in, dsc_dtype dtype, int64_t n)
{
    if (dtype == DSC_F32)
        memcpy(out, in, (size_t)n * sizeof *out);
    else if (dtype == DSC_BF16)
        widen_as(out, in, DSC_BF16, n);
    else
        widen_as(out, in, DSC_F16, n);
}

// In memory order and without explicit prefetches, which processors read fastest.
TARGET static float total(const float *x, int64_t n)
{
    vec a = zero(), b = zero();
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a += load(x + i);
        b += load(x + i + LANES);
    }
    float residual = 0;
    for (; i < n; i++)
        residual += x[i];
    return total_of(a + b) + residual;
}
