// SPDX-License-Identifier: Apache-2.0
// check_ops --bench: times the operations of a model of 8 G parameters on the device and prints
// CSV, for all sections or those of --only. Each operation is called many times in one pass that
// the device replays (a graph), so that times exclude the calls: the first pass runs directly, the
// second is captured, the third is replayed, and only later ones are timed. Matrices rotate among
// more memory than any cache holds, and products have the norm, activation and sum that they have
// in a model. `share` is relative to the read bandwidth measured first. Products of 4 and 5, and of
// 64 and 128 rows use different kernels. Overlap queries include a wait each, as in rules.
#include "live/device/clock.h"
#include "tests/ops/check_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 3, ROUNDS = 7 };

typedef struct bench {
    check *c;
    double read_bytes_s;
    int lines;
} bench;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Prints the median time of one of `repeats` calls of `call(user, i)` in a pass.
static void line(bench *x, const char *op, const char *shape, const live_batch *batch, int repeats,
                 void (*call)(bench *x, void *user, int i), void *user, double bytes, double flops)
{
    const live_pass_key key = {x, x->lines++};
    live_backend *b = x->c->device;
    double seconds[ROUNDS];
    for (int n = 0; n < WARM + ROUNDS; n++) {
        bool replayed;
        check_call(x->c, b->type->pass.wait(b, &x->c->error), "wait");
        const double start = live_now_s();
        check_call(x->c, b->type->pass.begin(b, key, batch, &replayed, &x->c->error), "begin");
        for (int i = 0; i < repeats && !replayed; i++)
            call(x, user, i);
        check_call(x->c, b->type->pass.end(b, &x->c->error), "end");
        check_call(x->c, b->type->pass.wait(b, &x->c->error), "wait");
        if (n >= WARM)
            seconds[n - WARM] = (live_now_s() - start) / repeats;
    }
    qsort(seconds, ROUNDS, sizeof *seconds, by_size);
    const double s = seconds[ROUNDS / 2];
    printf("%s,%s,%.3f,%.1f,%.3f,%.2f\n", op, shape, s * 1e6, bytes / s * 1e-9,
           bytes / s / x->read_bytes_s, flops / s * 1e-12);
    fflush(stdout);
}

static void *device_memory(bench *x, dsc_dtype dtype, int64_t count)
{
    live_backend *b = x->c->device;
    void *p;
    check_call(x->c,
               b->type->memory.alloc(b, &p, (size_t)count * dsc_dtype_bytes(dtype), &x->c->error),
               "alloc");
    check_call(x->c, b->type->memory.fill(b, p, dtype, count, 1, 0, .1, &x->c->error), "fill");
    return p;
}

// --- products ------------------------------------------------------------------------------------

typedef struct products {
    live_product form; // without the matrix
    live_matrix *matrix;
    int count;
    void *out, *in;
    int64_t rows;
} products;

static void one_product(bench *x, void *user, int i)
{
    products *p = user;
    live_backend *b = x->c->device;
    live_product one = p->form;
    one.w = &p->matrix[i % p->count];
    check_call(x->c, b->type->pass.product(b, p->out, p->in, p->rows, &one, &x->c->error),
               "product");
}

// The products of a layer of Llama 3 8B, and the product with its output matrix.
static const struct {
    const char *name;
    int64_t n, k;
    bool normed, gated, add;
} bench_shapes[] = {
    {"norm+QKV", 6144, 4096, true, false, false},
    {"output+sum", 4096, 4096, false, false, true},
    {"norm+gate+up+SiLU", 28672, 4096, true, true, false},
    {"down+sum", 4096, 14336, false, false, true},
    {"logits", 128256, 4096, false, false, false},
};
enum { BENCH_SHAPES = 5, BENCH_ROWS = 128 };

static products products_new(bench *x, int shape, dsc_dtype dtype, live_matrix *matrix, int count)
{
    const int64_t n = bench_shapes[shape].n, k = bench_shapes[shape].k;
    const bool normed = bench_shapes[shape].normed, gated = bench_shapes[shape].gated;
    const dsc_dtype stored = x->c->device->type->memory.cache_dtype(dtype);
    products p = {.matrix = matrix, .count = count};
    for (int i = 0; i < count; i++)
        matrix[i] = (live_matrix){device_memory(x, dtype, n * k), dtype, n, k};
    p.form = (live_product){
        .norm = {normed ? device_memory(x, DSC_F32, k) : NULL, NULL, LIVE_RMS_NORM, 1e-5},
        .activate = gated,
        .activation = LIVE_SILU_GATE,
        .add = bench_shapes[shape].add,
        .in_dtype = bench_shapes[shape].add ? stored : DSC_F32,
        .out_dtype = gated ? stored : DSC_F32,
        .normed = device_memory(x, DSC_F32, BENCH_ROWS * k),
        .wide = device_memory(x, DSC_F32, BENCH_ROWS * n)};
    p.in = device_memory(x, p.form.in_dtype, BENCH_ROWS * k);
    p.out = device_memory(x, DSC_F32, BENCH_ROWS * n);
    return p;
}

static void products_free(bench *x, products *p)
{
    live_backend *b = x->c->device;
    for (int i = 0; i < p->count; i++)
        b->type->memory.free(b, p->matrix[i].data);
    b->type->memory.free(b, (void *)p->form.norm.weight);
    b->type->memory.free(b, p->form.normed);
    b->type->memory.free(b, p->form.wide);
    b->type->memory.free(b, p->in);
    b->type->memory.free(b, p->out);
}

static void bench_products(bench *x)
{
    const dsc_dtype dtype = DSC_BF16;
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 8, 16, 32, 64, BENCH_ROWS};
    enum { MOST = 24 };
    for (int s = 0; s < BENCH_SHAPES; s++) {
        const int64_t n = bench_shapes[s].n, k = bench_shapes[s].k;
        const double bytes = (double)(n * k) * (double)dsc_dtype_bytes(dtype);
        live_matrix matrix[MOST];
        products p = products_new(x, s, dtype, matrix, (int)fmin(MOST, 1 + 6e8 / bytes));
        for (int r = 0; r < (int)(sizeof rows / sizeof *rows); r++) {
            char shape[128];
            check_pass pass = check_pass_new(x->c, rows[r], 1, 0, 0, false, 9);
            p.rows = rows[r];
            snprintf(shape, sizeof shape, "%s %" PRId64 " x %" PRId64 " x %" PRId64 " %s",
                     dsc_dtype_name(dtype), rows[r], n, k, bench_shapes[s].name);
            line(x, "product", shape, &pass.batch, 2 * p.count, one_product, &p, bytes,
                 2. * (double)(rows[r] * n * k));
            check_pass_free(&pass);
        }
        products_free(x, &p);
    }
}

// --- the operations of one layer between them ----------------------------------------------------

enum { HEADS = 32, KV_HEADS = 8, HEAD = 128, HIDDEN = 4096, FEED = 14336, VOCAB = 128256 };
enum { LAYERS = 16, SLOTS = 8448, MOST_TOKENS = 128, REPEATS = 64 };
static const int64_t layer_tokens[] = {1, 4, 16, 64, MOST_TOKENS};
enum { LAYER_TOKENS = sizeof layer_tokens / sizeof *layer_tokens };

typedef struct layer {
    float *qkv, *out, *weight, *freq;
    int32_t *token;
    void *k[LAYERS], *v[LAYERS];
    live_cache cache;
    live_attention attention;
    live_rotation rotation;
    int64_t tokens;
} layer;

static void one_attend(bench *x, void *user, int i)
{
    layer *l = user;
    live_backend *b = x->c->device;
    check_call(x->c,
               b->type->pass.attend(b, l->out, l->qkv, &l->attention, &l->cache,
                                    i % l->cache.layers, &x->c->error),
               "attend");
}

static void one_rotate(bench *x, void *user, int i)
{
    layer *l = user;
    live_backend *b = x->c->device;
    check_call(x->c,
               b->type->pass.rotate(b, l->qkv, &l->rotation, &l->attention, &l->cache,
                                    i % l->cache.layers, &x->c->error),
               "rotate");
}

static void one_norm(bench *x, void *user, int i)
{
    layer *l = user;
    const live_norming norm = {l->weight, NULL, LIVE_RMS_NORM, 1e-5};
    live_backend *b = x->c->device;
    (void)i;
    check_call(x->c, b->type->pass.norm(b, l->out, l->qkv, &norm, l->tokens, HIDDEN, &x->c->error),
               "norm");
}

static void one_select(bench *x, void *user, int i)
{
    layer *l = user;
    live_backend *b = x->c->device;
    (void)i;
    check_call(x->c,
               b->type->pass.select(b, l->token, l->out, l->qkv, l->tokens, VOCAB, &x->c->error),
               "select");
}

typedef struct rows_of_logits {
    const float *logits;
    live_summary summary;
    int64_t rows;
} rows_of_logits;

static void one_summarize(bench *x, void *user, int i)
{
    rows_of_logits *l = user;
    live_backend *b = x->c->device;
    (void)i;
    check_call(x->c,
               b->type->pass.summarize(b, &l->summary, l->logits, l->rows, VOCAB, &x->c->error),
               "summarize");
}

// Nearly flat rows, of which top-p keeps most tokens: the largest amount to read.
static void bench_dists(bench *x)
{
    enum { MOST = 16, BLOCKS = (VOCAB + 127) / 128 };
    static const struct {
        const char *name;
        live_sampling dist;
    } dists[] = {{"all", {1, 0, 1}}, {"top-k 50", {1, 50, 1}}, {"top-p .9", {1, 0, .9}}};
    static const int64_t rows[] = {1, 4, 8, MOST};
    live_backend *b = x->c->device;
    rows_of_logits l = {.logits = device_memory(x, DSC_F32, (int64_t)MOST * VOCAB),
                        .summary = {.best = device_memory(x, DSC_F32, MOST),
                                    .kept = device_memory(x, DSC_F32, 2 * MOST),
                                    .sum = device_memory(x, DSC_F32, 2 * MOST * BLOCKS),
                                    .max_logit = device_memory(x, DSC_F32, MOST * BLOCKS)}};
    const live_summary *s = &l.summary;
    check_pass first = check_pass_new(x->c, MOST, 1, 0, 0, false, 9);
    bool replayed;
    check_call(
        x->c, b->type->pass.begin(b, (live_pass_key){&l, 0}, &first.batch, &replayed, &x->c->error),
        "begin");
    check_call(x->c,
               b->type->pass.select(b, s->best, s->max_logit, l.logits, MOST, VOCAB, &x->c->error),
               "select");
    check_call(x->c, b->type->pass.end(b, &x->c->error), "end");
    check_pass_free(&first);
    for (int i = 0; i < 12; i++) {
        char shape[64];
        check_pass p = check_pass_new(x->c, rows[i % 4], 1, 0, 0, false, 9);
        l.rows = rows[i % 4];
        p.batch.dist = &dists[i / 4].dist;
        snprintf(shape, sizeof shape, "F32 %" PRId64 " of %s", l.rows, dists[i / 4].name);
        line(x, "summarize", shape, &p.batch, REPEATS, one_summarize, &l,
             4. * (double)(l.rows * VOCAB), 0);
        check_pass_free(&p);
    }
    b->type->memory.free(b, s->best);
    b->type->memory.free(b, (void *)(uintptr_t)l.logits);
    b->type->memory.free(b, s->kept);
    b->type->memory.free(b, s->sum);
    b->type->memory.free(b, s->max_logit);
}

// --- overlap of distributions ------------------------------------------------------------------

typedef struct overlap {
    live_dists dists[16];
    live_mass_query query[16];
    live_masses *masses;
    dsc_mass *mass;
    live_residual_sample *sample;
    uint64_t wanted[DSC_RATIO_SLOTS / 64];
    dsc_residual residual;
    int64_t count; // of distributions or of tokens
} overlap;

static int one_compare(bench *x, overlap *m)
{
    live_backend *b = x->c->device;
    const live_comparison comparison = {m->dists, m->count, m->masses, m->query, m->mass, m->count};
    return b->type->dist.compare(b, &comparison, VOCAB, &x->c->error);
}

static int one_list(bench *x, overlap *m)
{
    live_backend *b = x->c->device;
    return b->type->dist.list(b, m->mass, m->dists, m->wanted, m->count, VOCAB, &x->c->error);
}

static int one_residual(bench *x, overlap *m)
{
    live_backend *b = x->c->device;
    return b->type->dist.sample_residual(b, m->sample, m->dists, &m->residual, .5, VOCAB,
                                         &x->c->error);
}

// Times a call with its wait, as in rules; it reads `rows` rows of F32.
static void overlap_line(bench *x, const char *op, const char *shape, double rows,
                         int (*call)(bench *x, overlap *m), overlap *m)
{
    live_backend *b = x->c->device;
    double seconds[ROUNDS];
    for (int n = 0; n < WARM + ROUNDS; n++) {
        const double start = live_now_s();
        check_call(x->c, call(x, m), op);
        check_call(x->c, b->type->pass.wait(b, &x->c->error), "wait");
        if (n >= WARM)
            seconds[n - WARM] = live_now_s() - start;
    }
    qsort(seconds, ROUNDS, sizeof *seconds, by_size);
    const double s = seconds[ROUNDS / 2], bytes = 4 * rows * VOCAB;
    printf("%s,%s,%.3f,%.1f,%.3f,%.2f\n", op, shape, s * 1e6, bytes / s * 1e-9,
           bytes / s / x->read_bytes_s, 0.);
    fflush(stdout);
}

// Distributions that agree within a few per cent, so that all tokens are in a few slots, and
// distributions that do not.
static void bench_overlap(bench *x)
{
    enum { MOST = 16 };
    static const struct {
        const char *name;
        double spread;
    } kind[] = {{"near", .1}, {"apart", 4}};
    live_backend *b = x->c->device;
    overlap m = {.count = 0};
    void *host[3] = {NULL, NULL, NULL};
    const size_t bytes[3] = {MOST * sizeof *m.masses, VOCAB * sizeof *m.mass, sizeof *m.sample};
    for (int i = 0; i < 3; i++)
        check_call(x->c, b->type->memory.alloc_host(b, &host[i], bytes[i], &x->c->error),
                   "alloc_host");
    m.masses = host[0];
    m.mass = host[1];
    m.sample = host[2];
    float *draft = device_memory(x, DSC_F32, (int64_t)MOST * VOCAB);
    float *target = device_memory(x, DSC_F32, (int64_t)MOST * VOCAB);
    for (int k = 0; k < 2; k++) {
        const double spread = kind[k].spread;
        check_call(x->c,
                   b->type->memory.fill(b, target, DSC_F32, (int64_t)MOST * VOCAB, 2, 0, spread,
                                        &x->c->error),
                   "fill");
        for (int i = 0; i < MOST; i++) {
            const live_kept all = {-INFINITY, VOCAB};
            m.dists[i] = (live_dists){{draft + (int64_t)i * VOCAB, .1, 1, 1. / VOCAB, all},
                                      {target + (int64_t)i * VOCAB, spread, 1, 1. / VOCAB, all}};
            m.query[i] = (live_mass_query){i, i};
        }
        for (m.count = 1; m.count <= MOST; m.count *= 4) {
            char shape[64];
            snprintf(shape, sizeof shape, "%" PRId64 " pairs %s", m.count, kind[k].name);
            overlap_line(x, "compare", shape, 2. * (double)m.count, one_compare, &m);
        }
        // One slot in the middle of the ratios.
        const int slot = dsc_ratio_slot(exp(.1 - spread));
        m.wanted[slot / 64] = (uint64_t)1 << slot % 64;
        m.count = m.masses[0].count[slot];
        overlap_line(x, "list", kind[k].name, 2, one_list, &m);
        m.wanted[slot / 64] = 0;
        dsc_residual_above(&m.residual, exp(.1 - spread));
        overlap_line(x, "residual", kind[k].name, 2, one_residual, &m);
    }
    b->type->memory.free(b, draft);
    b->type->memory.free(b, target);
    for (int i = 0; i < 3; i++)
        b->type->memory.free_host(b, host[i]);
}

// `caches` is the number of layers with keys and values.
static void layer_new(bench *x, layer *l, dsc_dtype kept, int caches)
{
    *l = (layer){.qkv = device_memory(x, DSC_F32, (int64_t)MOST_TOKENS * VOCAB),
                 .out = device_memory(x, DSC_F32, (int64_t)MOST_TOKENS * FEED),
                 .weight = device_memory(x, DSC_F32, HIDDEN),
                 .freq = device_memory(x, DSC_F32, HEAD / 2),
                 .token = device_memory(x, DSC_F32, MOST_TOKENS),
                 .cache = {l->k, l->v, kept, caches, 1, SLOTS, KV_HEADS * HEAD},
                 .attention = {HEADS, KV_HEADS, HEAD, .0884, 0, true}};
    l->rotation = (live_rotation){l->freq, HEAD, NULL, NULL, 0};
    for (int i = 0; i < caches; i++) {
        l->k[i] = device_memory(x, kept, (int64_t)SLOTS * KV_HEADS * HEAD);
        l->v[i] = device_memory(x, kept, (int64_t)SLOTS * KV_HEADS * HEAD);
    }
}

static void layer_free(bench *x, layer *l)
{
    live_backend *b = x->c->device;
    for (int i = 0; i < l->cache.layers; i++) {
        b->type->memory.free(b, l->k[i]);
        b->type->memory.free(b, l->v[i]);
    }
    b->type->memory.free(b, l->qkv);
    b->type->memory.free(b, l->out);
    b->type->memory.free(b, l->weight);
    b->type->memory.free(b, l->freq);
    b->type->memory.free(b, l->token);
}

static void bench_attention(bench *x)
{
    static const int64_t contexts[] = {128, 192, 512, 2048, 8192};
    enum { CONTEXTS = sizeof contexts / sizeof *contexts };
    const dsc_dtype kept = x->c->device->type->memory.cache_dtype(DSC_BF16);
    layer l;
    layer_new(x, &l, kept, LAYERS);
    for (int i = 0; i < LAYER_TOKENS * CONTEXTS; i++) {
        const int64_t tokens = l.tokens = layer_tokens[i / CONTEXTS];
        const int64_t context = contexts[i % CONTEXTS];
        char shape[64];
        check_pass p = check_pass_new(x->c, tokens, 1, context, 0, false, 9);
        snprintf(shape, sizeof shape, "%s %" PRId64 " after %" PRId64, dsc_dtype_name(kept), tokens,
                 context);
        line(x, "attend", shape, &p.batch, REPEATS, one_attend, &l,
             2. * (double)context * KV_HEADS * HEAD * (double)dsc_dtype_bytes(kept),
             4. * (double)(tokens * context) * HEADS * HEAD);
        check_pass_free(&p);
    }
    layer_free(x, &l);
}

static void bench_rows(bench *x)
{
    layer l;
    layer_new(x, &l, x->c->device->type->memory.cache_dtype(DSC_BF16), LAYERS);
    for (int t = 0; t < LAYER_TOKENS; t++) {
        const double n = (double)(l.tokens = layer_tokens[t]);
        char shape[64];
        check_pass p = check_pass_new(x->c, l.tokens, 1, 512, 0, false, 9);
        snprintf(shape, sizeof shape, "F32 %" PRId64, l.tokens);
        line(x, "rotate", shape, &p.batch, REPEATS, one_rotate, &l,
             8. * n * (HEADS + 2 * KV_HEADS) * HEAD, 0);
        line(x, "norm", shape, &p.batch, REPEATS, one_norm, &l, 8. * n * HIDDEN, 0);
        line(x, "select", shape, &p.batch, REPEATS, one_select, &l, 4. * n * VOCAB, 0);
        check_pass_free(&p);
    }
    layer_free(x, &l);
}

// --- the sections --------------------------------------------------------------------------------

static const struct {
    const char *name;
    void (*run)(bench *x);
} sections[] = {{"products", bench_products},
                {"attention", bench_attention},
                {"rows", bench_rows},
                {"sampling", bench_dists},
                {"overlap", bench_overlap}};
enum { SECTIONS = sizeof sections / sizeof *sections };

int check_bench_sections(const char *list)
{
    int found = 0;
    for (int i = 0; i < SECTIONS; i++)
        found += check_listed(list, sections[i].name);
    return found;
}

void check_bench(check *c, const char *list)
{
    bench x = {.c = c};
    live_probe probe;
    check_call(c, c->device->type->probe(c->device, DSC_BF16, &probe, &c->error), "probe");
    x.read_bytes_s = probe.read_bytes_s;
    printf("# reads %.1f GB/s, multiplies %.1f TFLOP/s of BF16\n", probe.read_bytes_s * 1e-9,
           probe.flops_s * 1e-12);
    printf("op,shape,us,GB/s,share,TFLOP/s\n");
    for (int i = 0; i < SECTIONS; i++)
        if (check_listed(list, sections[i].name))
            sections[i].run(&x);
}
