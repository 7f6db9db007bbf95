// SPDX-License-Identifier: Apache-2.0
// Checks of the operations on the cache (rotate, attend, move), of captured and replayed passes, of
// memory, and that a token's result does not depend on the other tokens of its pass.
#include "tests/ops/check_ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2 }; // of which the second is used

// A cache on both devices; every slot is poisoned.
typedef struct caches {
    twin k[LAYERS], v[LAYERS];
    void *k_cpu[LAYERS], *v_cpu[LAYERS], *k_device[LAYERS], *v_device[LAYERS];
    live_cache cpu, device;
} caches;

static void caches_new(check *c, caches *x, dsc_dtype weights, int64_t sequences, int64_t slots,
                       int64_t width)
{
    const dsc_dtype d = c->device->type->memory.cache_dtype(weights);
    for (int l = 0; l < LAYERS; l++) {
        x->k[l] =
            check_twin(c, sequences * slots * width, c->cpu->type->memory.cache_dtype(weights), d);
        x->v[l] =
            check_twin(c, sequences * slots * width, c->cpu->type->memory.cache_dtype(weights), d);
        x->k_cpu[l] = x->k[l].cpu;
        x->v_cpu[l] = x->v[l].cpu;
        x->k_device[l] = x->k[l].device;
        x->v_device[l] = x->v[l].device;
    }
    x->cpu = (live_cache){x->k_cpu, x->v_cpu, x->k[0].cpu_dtype, LAYERS, sequences, slots, width};
    x->device = (live_cache){x->k_device, x->v_device, d, LAYERS, sequences, slots, width};
}

static void caches_free(check *c, caches *x)
{
    for (int l = 0; l < LAYERS; l++) {
        check_twin_free(c, &x->k[l]);
        check_twin_free(c, &x->v[l]);
    }
}

typedef struct head_shape {
    int64_t heads, kv_heads, head;
} head_shape;

// --- rotate --------------------------------------------------------------------------------------

static void rotate(check *c, dsc_dtype dtype, head_shape h, int64_t rotated, bool normed,
                   int64_t sequences)
{
    const int64_t tokens = 5, all = h.heads + 2 * h.kv_heads, slots = 4000;
    check_pass p = check_pass_new(c, tokens, sequences, 3970, 0, true, 9);
    caches x;
    caches_new(c, &x, dtype, sequences, slots, h.kv_heads * h.head);
    twin qkv = check_twin(c, tokens * sequences * all * h.head, DSC_F32, DSC_F32);
    twin freq = check_twin(c, h.head, DSC_F32, DSC_F32);
    twin norm = check_twin(c, 2 * h.head, DSC_F32, DSC_F32);
    float angles[256];
    for (int64_t i = 0; i < rotated / 2; i++)
        angles[i] = powf(10000, -2 * (float)i / (float)rotated);
    check_twin_set(c, &freq, 0, angles, rotated / 2);
    check_twin_fill(c, &qkv, 0, qkv.count, DSC_F32, 1);
    check_twin_fill(c, &norm, 0, norm.count, DSC_F32, 2);
    check_begin(c, &p.batch);
    for (int side = 0; side < 2; side++) {
        live_backend *b = side ? c->device : c->cpu;
        const float *weight = side ? norm.device : norm.cpu;
        const live_rotation r = {side ? freq.device : freq.cpu, rotated, normed ? weight : NULL,
                                 normed ? weight + h.head : NULL, 1e-6};
        const live_attention a = {h.heads, h.kv_heads, h.head, 1, 0, false};
        check_call(c,
                   b->type->pass.rotate(b, side ? qkv.device : qkv.cpu, &r, &a,
                                        side ? &x.device : &x.cpu, 1, &c->error),
                   "rotate");
    }
    check_end(c);
    // Only the queries of qkv are specified.
    float *a = malloc((size_t)qkv.count * sizeof *a), *b = malloc((size_t)qkv.count * sizeof *b);
    if (!a || !b)
        check_call(c, dsc_fail(&c->error, DSC_ENOMEM, "out of memory"), "rotate");
    check_twin_numbers(c, &qkv, false, a);
    check_twin_numbers(c, &qkv, true, b);
    double e = 0;
    for (int64_t i = 0; i < qkv.count; i++)
        if (i / h.head % all < h.heads && !(fabs((double)a[i] - b[i]) <= e))
            e = isnan(b[i]) ? INFINITY : fabs((double)a[i] - b[i]);
    free(a);
    free(b);
    // Half a unit in the last place of what the cache holds, of the numbers of order 1 that it
    // holds.
    const double kept = fmax(check_twin_error(c, &x.k[1]), check_twin_error(c, &x.v[1]));
    const double half_unit = check_half_unit(dtype);
    const double other = fmax(check_twin_error(c, &x.k[0]), check_twin_error(c, &x.v[0]));
    check_line(c, e <= 1e-5 && kept <= half_unit + 1e-5 && other == 0, fmax(e, kept),
               half_unit + 1e-5,
               "rotate %s, %" PRId64 "+%" PRId64 " heads of %" PRId64 ", %" PRId64
               " turned%s, %" PRId64 " sequences",
               dsc_dtype_name(dtype), h.heads, h.kv_heads, h.head, rotated,
               normed ? ", normed" : "", sequences);
    caches_free(c, &x);
    check_twin_free(c, &qkv);
    check_twin_free(c, &freq);
    check_twin_free(c, &norm);
    check_pass_free(&p);
}

static void rotations(check *c)
{
    const head_shape shapes[] = {{1, 1, 8},  {4, 2, 12},  {7, 1, 64},
                                 {3, 3, 80}, {8, 2, 128}, {2, 1, 256}};
    const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    for (int s = 0; s < 6; s++)
        for (int d = 0; d < 3; d++) {
            rotate(c, dtypes[d], shapes[s], shapes[s].head, (s + d) % 2, 1 + s % 2);
            rotate(c, dtypes[d], shapes[s], shapes[s].head / 8 * 2, false, 1);
        }
    rotate(c, DSC_BF16, shapes[1], 0, false, 2); // learned positions
    rotate(c, DSC_F32, shapes[2], 0, true, 1);
}

// --- attend --------------------------------------------------------------------------------------

typedef struct scene {
    head_shape h;
    int64_t tokens, sequences, prefix, window, slots;
    bool branches;
} scene;

// Fills the slots that any token attends to with keys and values that the dtype represents exactly,
// and poisons all others, which must not be read.
static void fill_seen(check *c, caches *x, const check_pass *p, dsc_dtype dtype)
{
    const int64_t w = x->cpu.width;
    for (int64_t s = 0; s < x->cpu.sequences; s++)
        for (int kind = 0; kind < 2; kind++) {
            twin *t = kind ? &x->v[1] : &x->k[1];
            check_twin_fill(c, t, s * x->cpu.slots * w, p->batch.prefix * w, dtype, 1);
            for (int64_t i = 0; i < p->batch.tokens; i++)
                check_twin_fill(c, t, (s * x->cpu.slots + p->slot[i]) * w, w, dtype, 1);
        }
}

// Attention of one query of one head in double, because F32 sums over 128 k entries differ by their
// order.
static void exact_query(const scene *s, const check_pass *p, int64_t token, const float *query,
                        const float *k, const float *v, float *out)
{
    const int64_t stride = s->h.kv_heads * s->h.head, head = s->h.head;
    double sum[256] = {0}, total = 0;
    for (int64_t slot = 0; slot < p->batch.used; slot++) {
        const int64_t bit = slot - s->prefix;
        const uint64_t *mask = p->mask + token * p->batch.words;
        if (bit < 0 ? s->window > 0 && slot <= p->position[token] - s->window
                    : !(mask[bit / 64] >> bit % 64 & 1))
            continue;
        double score = 0;
        for (int64_t d = 0; d < head; d++)
            score += (double)query[d] * k[slot * stride + d];
        const double e = exp(score / sqrt((double)head)); // at most e^(16 sqrt head)
        total += e;
        for (int64_t d = 0; d < head; d++)
            sum[d] += e * v[slot * stride + d];
    }
    for (int64_t d = 0; d < head; d++)
        out[d] = (float)(sum[d] / total);
}

static void exact_attention(const scene *s, const check_pass *p, const caches *x, const float *qkv,
                            float *out)
{
    const int64_t all = s->h.heads + 2 * s->h.kv_heads, group = s->h.heads / s->h.kv_heads;
    const float *k = x->k[1].cpu, *v = x->v[1].cpu;
    for (int64_t i = 0; i < s->tokens; i++)
        for (int64_t h = 0; h < s->h.heads; h++)
            exact_query(s, p, i, qkv + (i * all + h) * s->h.head, k + h / group * s->h.head,
                        v + h / group * s->h.head, out + (i * s->h.heads + h) * s->h.head);
}

// `stored`: the result has the cache's dtype. `exact`: compares with sums in double, for one
// sequence, instead of the CPU's result.
static void attend_as(check *c, dsc_dtype dtype, scene s, bool stored, bool exact)
{
    const int64_t all = s.h.heads + 2 * s.h.kv_heads, rows = s.tokens * s.sequences;
    check_pass p = check_pass_new(c, s.tokens, s.sequences, s.prefix, s.window, s.branches, 9);
    caches x;
    caches_new(c, &x, dtype, s.sequences, s.slots, s.h.kv_heads * s.h.head);
    twin qkv = check_twin(c, rows * all * s.h.head, DSC_F32, DSC_F32);
    twin out =
        check_twin(c, rows * s.h.heads * s.h.head + 3, DSC_F32, stored ? x.device.dtype : DSC_F32);
    fill_seen(c, &x, &p, dtype);
    check_twin_fill(c, &qkv, 0, qkv.count, DSC_F32, 4);
    check_begin(c, &p.batch);
    live_attention a = {s.h.heads, s.h.kv_heads, s.h.head, 1 / sqrt((double)s.h.head),
                        s.window,  stored};
    check_call(c,
               c->device->type->pass.attend(c->device, out.device, qkv.device, &a, &x.device, 1,
                                            &c->error),
               "attend");
    if (exact)
        exact_attention(&s, &p, &x, qkv.cpu, out.cpu);
    else
        check_call(c, c->cpu->type->pass.attend(c->cpu, out.cpu, qkv.cpu, &a, &x.cpu, 1, &c->error),
                   "attend");
    check_end(c);
    const double half_unit = check_half_unit(out.device_dtype);
    // Sums of n terms of one sign in F32, one after another as a CPU makes them: about half a unit
    // in the last place times the root of n.
    const double order = exact ? 0x1p-24 * sqrt((double)p.batch.used) : 1e-5;
    const double e = check_twin_error(c, &out), tolerance = order + half_unit;
    check_line(c, e <= tolerance, e, tolerance,
               "attend %s, %" PRId64 "/%" PRId64 " heads of %" PRId64 ", %" PRId64 " x %" PRId64
               " tokens%s after %" PRId64 ", window %" PRId64 "%s",
               dsc_dtype_name(dtype), s.h.heads, s.h.kv_heads, s.h.head, s.sequences, s.tokens,
               s.branches ? " of a tree" : "", s.prefix, s.window,
               stored  ? ", stored in the cache's dtype"
               : exact ? ", against sums in double"
                       : "");
    caches_free(c, &x);
    check_twin_free(c, &qkv);
    check_twin_free(c, &out);
    check_pass_free(&p);
}

static void attend(check *c, dsc_dtype dtype, scene s)
{
    attend_as(c, dtype, s, false, false);
}

static void attentions(check *c)
{
    const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    const scene scenes[] = {
        {{1, 1, 8}, 1, 1, 0, 0, 16, false},         {{4, 2, 12}, 3, 1, 5, 0, 40, true},
        {{4, 4, 16}, 9, 1, 31, 0, 100, false},      {{4, 1, 64}, 1, 1, 32, 0, 100, false},
        {{7, 1, 64}, 5, 2, 33, 0, 300, true},       {{6, 2, 80}, 4, 1, 250, 0, 300, true},
        {{4, 1, 128}, 1, 1, 255, 0, 257, false},    {{8, 2, 128}, 6, 1, 520, 0, 600, true},
        {{20, 1, 32}, 3, 1, 40, 0, 300, true},      {{2, 1, 256}, 7, 1, 70, 0, 300, true},
        {{2, 1, 200}, 2, 1, 9, 0, 64, false},       {{4, 2, 16}, 12, 1, 40, 8, 300, true},
        {{4, 2, 16}, 30, 1, 0, 8, 300, false},      {{4, 2, 16}, 6, 1, 300, 100, 400, true},
        {{2, 1, 16}, 70, 1, 3, 0, 300, true},       {{2, 1, 16}, 140, 1, 130, 0, 300, false},
        {{32, 8, 128}, 1, 1, 4000, 0, 4100, false}, {{32, 8, 128}, 24, 1, 1000, 0, 1100, true},
        {{32, 8, 128}, 128, 1, 700, 0, 1100, true}, {{32, 8, 128}, 512, 1, 0, 0, 1100, false},
        {{16, 16, 64}, 64, 4, 300, 0, 512, true},
    };
    for (int s = 0; s < (c->quick ? 16 : 21); s++)
        for (int d = 0; d < 3; d++)
            if (!c->quick || d == s % 3 || scenes[s].tokens * scenes[s].prefix < 200)
                attend(c, dtypes[d], scenes[s]);
    for (int d = 0; d < 3; d++) { // with one split and with more
        attend_as(c, dtypes[d], scenes[4], true, false);
        attend_as(c, dtypes[d], scenes[7], true, false);
    }
}

// Head sizes with a kernel of their own, multiples of 8 and others, times groups; and a tree across
// the index at which a device may split the context.
static void shaped_attentions(check *c)
{
    const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    const int64_t heads[] = {1, 8, 12, 64, 80, 96, 128, 200, 256}, groups[] = {1, 3, 7, 8};
    for (int h = 0; h < 9; h++)
        for (int g = 0; g < 4; g++)
            for (int d = 0; d < 3; d++) {
                const int64_t kv_heads = 1 + (h + g) % 3, prefix = c->quick ? 20 : 124;
                const head_shape shape = {kv_heads * groups[g], kv_heads, heads[h]};
                if (!c->quick || (d == (h + g) % 3 && (g == h % 4 || heads[h] == 96)))
                    attend(c, dtypes[d], (scene){shape, 3, 1 + g % 2, prefix, 0, 160, true});
            }
}

// Texts that end before, at and after the indices at which the CUDA backend cuts the context
// (live/device/cuda/attend.cuh), numbers of tokens, and windows that exclude complete splits.
static void long_attentions(check *c)
{
    const int64_t cuts[] = {128, 256, 4096, 4352, 8192, 8704};
    for (int i = 0; i < 6; i++)
        for (int64_t length = cuts[i] - 1; length <= cuts[i] + 1; length++)
            if (!c->quick || length > cuts[i] || i == 0)
                attend(c, DSC_BF16, (scene){{2, 1, 8}, 1, 1, length - 1, 0, cuts[i] + 600, false});
    for (int64_t tokens = 1; tokens <= 130; tokens += c->quick ? 43 : 1)
        attend(c, DSC_F16, (scene){{3, 1, 8}, tokens, 1, 250 - tokens, 0, 512, tokens % 2});
    attend(c, DSC_F32, (scene){{4, 2, 16}, 5, 1, 700, 100, 900, true});
    attend(c, DSC_BF16, (scene){{3, 1, 64}, 2, 1, 300, 40, 9000, false});
    if (c->quick)
        return;
    attend(c, DSC_F32, (scene){{2, 1, 16}, 9, 1, 8300, 4200, 8400, true});
    attend(c, DSC_BF16, (scene){{2, 2, 8}, 1, 1, 300, 0, 131072, false});
    attend(c, DSC_F16, (scene){{4, 1, 64}, 1, 1, 131071, 4000, 131072, false});
    attend_as(c, DSC_BF16, (scene){{2, 1, 8}, 3, 1, 131000, 0, 131072, true}, false, true);
    attend_as(c, DSC_F16, (scene){{4, 1, 64}, 1, 1, 131071, 0, 131072, false}, false, true);
}

// --- sequences of different lengths --------------------------------------------------------------

// Three sequences of two tokens and two of nine, each with its own context, in one pass: attention
// over a cache that is filled, then the rotation, which writes to it.
static void mixed(check *c, dsc_dtype dtype, int64_t window)
{
    const head_shape h = {4, 2, 16};
    const int64_t all = h.heads + 2 * h.kv_heads, rows = 3 * 2 + 2 * 9, rotated = 8;
    const int32_t shifts[2][3] = {{0, 70, 300}, {13, 140}};
    check_pass p[2] = {check_pass_new(c, 2, 3, 40, window, false, 9),
                       check_pass_new(c, 9, 2, 0, window, false, 9)};
    p[0].batch.shift = shifts[0];
    p[1].batch.shift = shifts[1];
    p[0].batch.next = &p[1].batch;
    caches x;
    caches_new(c, &x, dtype, 5, 400, h.kv_heads * h.head);
    twin qkv = check_twin(c, rows * all * h.head, DSC_F32, DSC_F32);
    twin freq = check_twin(c, h.head, DSC_F32, DSC_F32);
    twin out = check_twin(c, rows * h.heads * h.head, DSC_F32, DSC_F32);
    float angles[16];
    for (int64_t i = 0; i < rotated / 2; i++)
        angles[i] = powf(10000, -2 * (float)i / (float)rotated);
    check_twin_set(c, &freq, 0, angles, rotated / 2);
    check_twin_fill(c, &qkv, 0, qkv.count, DSC_F32, 1);
    for (int l = 0; l < LAYERS; l++) {
        check_twin_fill(c, &x.k[l], 0, x.k[l].count, dtype, 1);
        check_twin_fill(c, &x.v[l], 0, x.v[l].count, dtype, 1);
    }
    check_begin(c, &p[0].batch);
    const live_attention a = {h.heads, h.kv_heads, h.head, 1 / sqrt((double)h.head), window, false};
    for (int side = 0; side < 2; side++) {
        live_backend *b = side ? c->device : c->cpu;
        const live_rotation r = {side ? freq.device : freq.cpu, rotated, NULL, NULL, 1e-6};
        const live_cache *cache = side ? &x.device : &x.cpu;
        float *in = side ? qkv.device : qkv.cpu;
        check_call(
            c, b->type->pass.attend(b, side ? out.device : out.cpu, in, &a, cache, 1, &c->error),
            "attend");
        check_call(c, b->type->pass.rotate(b, in, &r, &a, cache, 1, &c->error), "rotate");
    }
    check_end(c);
    const double kept = fmax(check_twin_error(c, &x.k[1]), check_twin_error(c, &x.v[1]));
    const double e = check_twin_error(c, &out), half_unit = check_half_unit(dtype);
    check_line(c, e <= 1e-5 && kept <= half_unit + 1e-5, fmax(e, kept), half_unit + 1e-5,
               "attend and rotate %s, sequences of different lengths, window %" PRId64,
               dsc_dtype_name(dtype), window);
    caches_free(c, &x);
    check_twin_free(c, &qkv);
    check_twin_free(c, &freq);
    check_twin_free(c, &out);
    check_pass_free(&p[0]);
    check_pass_free(&p[1]);
}

static void mixed_passes(check *c)
{
    const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    for (int d = 0; d < 3; d++)
        for (int64_t window = 0; window <= 50; window += 50)
            mixed(c, dtypes[d], window);
}

// --- move ----------------------------------------------------------------------------------------

static void moves(check *c)
{
    const int32_t lists[][5] = {{6, 7, 9, 12, 13}, {5, 6, 8, 9, 30}, {5, 6, 7, 8, 9}};
    const int64_t widths[] = {1, 7, 24, 1024};
    const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    for (int l = 0; l < 3; l++)
        for (int w = 0; w < 4; w++)
            for (int d = 0; d < 3; d++) {
                caches x;
                caches_new(c, &x, dtypes[d], 2, 40, widths[w]);
                for (int i = 0; i < LAYERS; i++) {
                    check_twin_fill(c, &x.k[i], 0, x.k[i].count, dtypes[d], 1);
                    check_twin_fill(c, &x.v[i], 0, x.v[i].count, dtypes[d], 1);
                }
                check_call(c, c->cpu->type->pass.move(c->cpu, &x.cpu, lists[l], 5, 5, &c->error),
                           "move");
                check_call(
                    c, c->device->type->pass.move(c->device, &x.device, lists[l], 5, 5, &c->error),
                    "move");
                double e = 0;
                for (int i = 0; i < LAYERS; i++)
                    e = fmax(e, fmax(check_twin_error(c, &x.k[i]), check_twin_error(c, &x.v[i])));
                check_line(c, e == 0, e, 0, "move %s, %" PRId64 " wide, list %d",
                           dsc_dtype_name(dtypes[d]), widths[w], l);
                caches_free(c, &x);
            }
}

void check_attention(check *c)
{
    rotations(c);
    attentions(c);
    shaped_attentions(c);
    long_attentions(c);
    mixed_passes(c);
    moves(c);
}

// --- passes that are replayed --------------------------------------------------------------------

// A growing text: passes of one shape with other tokens, slots and prefixes each time. The first
// `start` slots are written before; the last pass has a shorter text.
static void replays(check *c, int64_t tokens, int64_t start, bool expected)
{
    enum { PASSES = 6 };
    const head_shape h = {4, 2, 16};
    const int64_t all = h.heads + 2 * h.kv_heads, width = all * h.head, vocab = 50;
    int replayed_passes = 0;
    double worst = 0;
    caches x;
    caches_new(c, &x, DSC_F32, 1, 1200, h.kv_heads * h.head);
    twin table = check_twin(c, vocab * width, DSC_F32, DSC_F32);
    twin qkv = check_twin(c, tokens * width, DSC_F32, DSC_F32);
    twin out = check_twin(c, tokens * h.heads * h.head, DSC_F32, DSC_F32);
    twin freq = check_twin(c, 8, DSC_F32, DSC_F32);
    check_twin_fill(c, &table, 0, table.count, DSC_F32, 1);
    check_twin_fill(c, &freq, 0, 8, DSC_F32, 1);
    check_twin_fill(c, &x.k[1], 0, start * x.cpu.width, DSC_F32, 1);
    check_twin_fill(c, &x.v[1], 0, start * x.cpu.width, DSC_F32, 1);
    for (int n = 0; n < PASSES; n++) {
        const int64_t prefix = n < PASSES - 1 ? start + n * tokens : start / 2;
        check_pass p = check_pass_new(c, tokens, 1, prefix, 0, false, vocab);
        p.batch.outputs = 1; // else their number would be drawn, and the shape with it
        for (int side = 0; side < 2; side++) {
            live_backend *b = side ? c->device : c->cpu;
            const live_matrix m = {side ? table.device : table.cpu, DSC_F32, vocab, width};
            const live_rotation r = {side ? freq.device : freq.cpu, h.head, NULL, NULL, 0};
            const live_attention a = {h.heads, h.kv_heads, h.head, .25, 0, false};
            const live_cache *cache = side ? &x.device : &x.cpu;
            float *into = side ? qkv.device : qkv.cpu;
            bool replayed = false;
            check_call(
                c, b->type->pass.begin(b, (live_pass_key){&x, 0}, &p.batch, &replayed, &c->error),
                "begin");
            if (!replayed) {
                check_call(c, b->type->pass.embed(b, into, width, &m, NULL, 1, &c->error), "embed");
                check_call(c, b->type->pass.rotate(b, into, &r, &a, cache, 1, &c->error), "rotate");
                check_call(c,
                           b->type->pass.attend(b, side ? out.device : out.cpu, into, &a, cache, 1,
                                                &c->error),
                           "attend");
            }
            check_call(c, b->type->pass.end(b, &c->error), "end");
            replayed_passes += replayed;
        }
        worst = fmax(worst, check_twin_error(c, &out));
        check_pass_free(&p);
    }
    check_line(c, worst <= 1e-5 && (replayed_passes > 0) == expected, worst, 1e-5,
               "%d passes of %" PRId64 " tokens after %" PRId64 " and more, %d replayed", PASSES,
               tokens, start, replayed_passes);
    caches_free(c, &x);
    check_twin_free(c, &table);
    check_twin_free(c, &qkv);
    check_twin_free(c, &out);
    check_twin_free(c, &freq);
}

static void memory(check *c)
{
    live_backend *b = c->device;
    double available = 0, total = 0;
    dsc_error error = {0};
    unsigned char bytes[300], zero[300] = {0};
    void *p = NULL, *q = NULL;
    check_call(c, b->type->memory.available(b, &available, &total, &c->error), "memory");
    check_line(c, available > 0 && available <= total, 0, 0, "memory: %.3g of %.3g GB free",
               available * 1e-9, total * 1e-9);
    int status = b->type->memory.alloc(b, &p, (size_t)1 << 60, &error);
    check_line(c, status == DSC_ENOMEM && !p && error.message[0], 0, 0, "too much memory: \"%s\"",
               error.message);
    check_call(c, b->type->memory.alloc(b, &p, sizeof bytes, &c->error), "alloc");
    check_call(c, b->type->memory.alloc(b, &q, sizeof bytes, &c->error), "alloc");
    check_call(c, b->type->memory.download(b, bytes, p, sizeof bytes, &c->error), "download");
    check_line(c, !memcmp(bytes, zero, sizeof zero), 0, 0, "memory is zeroed");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    check_call(c, b->type->memory.upload(b, p, bytes, sizeof bytes, &c->error), "upload");
    check_call(c, b->type->memory.copy(b, (char *)q + 1, p, sizeof bytes - 1, &c->error), "copy");
    check_call(c, b->type->memory.download(b, zero, q, sizeof zero, &c->error), "download");
    check_line(c, zero[0] == 0 && !memcmp(zero + 1, bytes, sizeof zero - 1), 0, 0,
               "uploaded and copied data is downloaded unchanged");
    b->type->memory.free(b, p);
    b->type->memory.free(b, q);
    b->type->memory.free(b, NULL);
}

// A token or position outside the embeddings is refused in new and in replayed passes.
static void refusals(check *c)
{
    live_backend *b = c->device;
    check_pass p = check_pass_new(c, 2, 1, 0, 0, false, 9);
    twin table = check_twin(c, 9 * 4, DSC_F32, DSC_F32);
    twin out = check_twin(c, 2 * 4, DSC_F32, DSC_F32);
    const live_matrix m = {table.device, DSC_F32, 9, 4};
    int refused = 0;
    for (int n = 0; n < 6; n++) {
        dsc_error error = {0};
        bool replayed = false;
        p.token[1] = n % 2 ? 9 : 8; // none, then one, and so on
        int status = b->type->pass.begin(b, (live_pass_key){&p, 0}, &p.batch, &replayed, &error);
        if (!status && !replayed)
            status = b->type->pass.embed(b, out.device, 4, &m, NULL, 1, &error);
        if (!status)
            status = b->type->pass.end(b, &error);
        refused += status == DSC_EUSAGE && strstr(error.message, "token 9") && n % 2;
        check_call(c, status && !(n % 2) ? dsc_fail(&c->error, status, "%s", error.message) : 0,
                   "a pass after a refused pass");
    }
    check_line(c, refused == 3, 3 - refused, 0, "tokens outside the embedding are refused");
    check_twin_free(c, &table);
    check_twin_free(c, &out);
    check_pass_free(&p);
}

// More key heads than CUDA allows blocks in a grid: refused, and nothing is launched.
static void crowd(check *c)
{
    live_backend *b = c->device;
    const int64_t sequences = 32768;
    check_pass p = check_pass_new(c, 1, sequences, 0, 0, false, 9);
    void *none[1] = {NULL};
    const live_cache cache = {none, none, DSC_F32, 1, sequences, 16, 16};
    const live_attention a = {2, 2, 8, 1, 0, false};
    dsc_error error = {0};
    bool replayed = false;
    check_call(c, b->type->pass.begin(b, (live_pass_key){&p, 0}, &p.batch, &replayed, &c->error),
               "begin");
    const int status = b->type->pass.attend(b, NULL, NULL, &a, &cache, 0, &error);
    check_call(c, b->type->pass.end(b, &c->error), "end");
    check_line(c, status == DSC_EABSENT && strstr(error.message, "65535"), 0, 0,
               "a batch of 65536 key heads: \"%s\"", error.message);
    check_pass_free(&p);
}

void check_passes(check *c)
{
    const bool expected = c->device->replays;
    replays(c, 1, 0, expected);
    replays(c, 5, 0, expected);
    replays(c, 1, 126, expected); // texts of 127 to 131, and of 64
    replays(c, 12, 232, expected);
    replays(c, 140, 0, false);
    memory(c);
    refusals(c);
    if (expected)
        crowd(c);
}

// --- results that do not depend on other tokens --------------------------------------------------

// A tree in one pass, and each of its tokens alone after its path, have the same bits.
static void invariant_attention(check *c, dsc_dtype dtype, head_shape h, int64_t prefix,
                                int64_t window)
{
    const int64_t tokens = 12, all = h.heads + 2 * h.kv_heads, slots = prefix + 180;
    const int64_t width = h.kv_heads * h.head, row = all * h.head, mixed = h.heads * h.head;
    const size_t size = dsc_dtype_bytes(c->device->type->memory.cache_dtype(dtype));
    live_backend *b = c->device;
    check_pass p = check_pass_new(c, tokens, 1, prefix, window, true, 9);
    caches x;
    caches_new(c, &x, dtype, 2, slots, width);
    fill_seen(c, &x, &p, dtype);
    twin qkv = check_twin(c, tokens * row, DSC_F32, DSC_F32);
    twin tree = check_twin(c, tokens * mixed, DSC_F32, DSC_F32);
    twin alone = check_twin(c, mixed, DSC_F32, DSC_F32);
    check_twin_fill(c, &qkv, 0, qkv.count, DSC_F32, 4);
    const live_attention a = {h.heads, h.kv_heads, h.head, 1 / sqrt((double)h.head), window, false};
    check_begin(c, &p.batch);
    check_call(c, b->type->pass.attend(b, tree.device, qkv.device, &a, &x.device, 1, &c->error),
               "attend");
    check_end(c);
    float *of_tree = malloc((size_t)tree.count * sizeof *of_tree);
    float *of_one = malloc((size_t)mixed * sizeof *of_one);
    if (!of_tree || !of_one)
        check_call(c, dsc_fail(&c->error, DSC_ENOMEM, "out of memory"), "invariance");
    check_twin_numbers(c, &tree, true, of_tree);
    int wrong = 0;
    for (int64_t i = 0; i < tokens; i++) {
        // Sequence 1 gets the prefix and the path of token i without gaps; it is used as a cache of
        // one sequence.
        check_pass one = check_pass_new(c, 1, 1, p.position[i], window, false, 9);
        caches path = x;
        for (int kind = 0; kind < 2; kind++) {
            char *from = kind ? x.v[1].device : x.k[1].device;
            char *to = from + (size_t)(slots * width) * size;
            check_call(
                c, b->type->memory.copy(b, to, from, (size_t)(prefix * width) * size, &c->error),
                "copy");
            for (int64_t n = i; n >= 0; n = p.parent[n])
                check_call(c,
                           b->type->memory.copy(b, to + (size_t)(p.position[n] * width) * size,
                                                from + (size_t)(p.slot[n] * width) * size,
                                                (size_t)width * size, &c->error),
                           "copy");
            (kind ? path.v_device : path.k_device)[1] = to;
        }
        path.device.k = path.k_device;
        path.device.v = path.v_device;
        path.device.sequences = 1;
        check_begin(c, &one.batch);
        check_call(c,
                   b->type->pass.attend(b, alone.device, (const float *)qkv.device + i * row, &a,
                                        &path.device, 1, &c->error),
                   "attend");
        check_end(c);
        check_twin_numbers(c, &alone, true, of_one);
        wrong += memcmp(of_one, of_tree + i * mixed, (size_t)mixed * sizeof *of_one) != 0;
        check_pass_free(&one);
    }
    check_line(c, wrong == 0, wrong, 0,
               "attend %s, %" PRId64 "/%" PRId64 " heads of %" PRId64 " after %" PRId64
               ", window %" PRId64 ": a tree and its tokens alone, bit for bit",
               dsc_dtype_name(dtype), h.heads, h.kv_heads, h.head, prefix, window);
    free(of_tree);
    free(of_one);
    caches_free(c, &x);
    check_twin_free(c, &qkv);
    check_twin_free(c, &tree);
    check_twin_free(c, &alone);
    check_pass_free(&p);
}

typedef struct product {
    dsc_dtype dtype;
    int64_t n, k, rows; // out [rows][n] = in [rows][k] times weights [n][k]
    void *weights;
    float *in, *out, *one; // on the device; one: [n]
    float *all, *alone;    // host copies of out and one
} product;

static void *filled(check *c, dsc_dtype dtype, int64_t count)
{
    live_backend *b = c->device;
    void *p;
    check_call(c, b->type->memory.alloc(b, &p, (size_t)count * dsc_dtype_bytes(dtype), &c->error),
               "alloc");
    check_call(c,
               b->type->memory.fill(b, p, dtype, count, check_draw(c, UINT32_MAX), 0, 1, &c->error),
               "fill");
    return p;
}

static product product_new(check *c, dsc_dtype dtype, int64_t n, int64_t k, int64_t rows)
{
    product x = {.dtype = dtype, .n = n, .k = k, .rows = rows};
    x.weights = filled(c, dtype, n * k);
    x.in = filled(c, DSC_F32, rows * k);
    x.out = filled(c, DSC_F32, rows * n);
    x.one = filled(c, DSC_F32, n);
    x.all = malloc((size_t)(rows * n) * sizeof *x.all);
    x.alone = malloc((size_t)n * sizeof *x.alone);
    if (!x.all || !x.alone)
        check_call(c, dsc_fail(&c->error, DSC_ENOMEM, "out of memory"), "invariance");
    return x;
}

static void product_free(check *c, product *x)
{
    live_backend *b = c->device;
    b->type->memory.free(b, x->weights);
    b->type->memory.free(b, x->in);
    b->type->memory.free(b, x->out);
    b->type->memory.free(b, x->one);
    free(x->all);
    free(x->alone);
}

// out = the product of so many rows, which are then copied to the host.
static void multiply(check *c, const product *x, const live_batch *batch, float *out,
                     const float *in, int64_t rows, float *host)
{
    live_backend *b = c->device;
    const live_matrix m = {x->weights, x->dtype, x->n, x->k};
    check_begin(c, batch);
    check_call(c, live_matmul(b, out, &m, NULL, in, rows, false, &c->error), "matmul");
    check_end(c);
    check_call(
        c, b->type->memory.download(b, host, out, (size_t)(rows * x->n) * sizeof *host, &c->error),
        "download");
}

// Selects the first and last row of each half of 128 rows. They are at the borders if a product is
// cut into tiles of 64 or 128 rows, or if its last tiles are shared among processors (stream-K).
static bool compared(int64_t row, int64_t rows)
{
    return rows == 128 ? row % 64 == 0 || row % 64 == 63 : row % (1 + rows / 7) == 0;
}

// Some rows of a product, and the product of each of these rows alone.
static void invariant_product(check *c, dsc_dtype dtype, int64_t n, int64_t k, int64_t rows)
{
    check_pass p = check_pass_new(c, rows, 1, 0, 0, false, 9);
    check_pass single = check_pass_new(c, 1, 1, 0, 0, false, 9);
    product x = product_new(c, dtype, n, k, rows);
    int wrong = 0, many = 0;
    multiply(c, &x, &p.batch, x.out, x.in, rows, x.all);
    for (int64_t i = 0; i < rows; i++) {
        if (!compared(i, rows))
            continue;
        multiply(c, &x, &single.batch, x.one, x.in + i * k, 1, x.alone);
        wrong += memcmp(x.alone, x.all + i * n, (size_t)n * sizeof *x.all) != 0;
        many++;
    }
    check_line(c, wrong == 0, wrong, 0,
               "matmul %s, invariant: %" PRId64 " x %" PRId64 " x %" PRId64
               ", %d of the rows and each of them alone, bit for bit",
               dsc_dtype_name(dtype), rows, n, k, many);
    product_free(c, &x);
    check_pass_free(&p);
    check_pass_free(&single);
}

// Small products cannot show effects of the shape, by which a library chooses its kernel.
static void invariant_products(check *c)
{
    const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    for (int d = 0; d < 3; d++) {
        for (int64_t rows = 3; rows < 400; rows *= 5)
            invariant_product(c, dtypes[d], 67, 96, rows);
        if (c->quick)
            continue;
        invariant_product(c, dtypes[d], 4096, 4096, 128);
        invariant_product(c, dtypes[d], 4096, 14336, 128);
    }
}

void check_invariance(check *c)
{
    const head_shape shapes[] = {{4, 2, 16}, {4, 1, 128}, {14, 2, 64},
                                 {3, 1, 96}, {6, 2, 80},  {2, 2, 256}};
    const dsc_dtype dtypes[] = {DSC_F32, DSC_F16, DSC_BF16};
    live_backend *usual = c->device;
    c->device = c->invariant;
    invariant_products(c);
    for (int round = 0; round < 2; round++) {
        c->device = round ? c->invariant : usual;
        for (int s = 0; s < (c->quick ? 4 : 6); s++) {
            if (s < 3)
                invariant_attention(c, dtypes[s], shapes[s], 29, 0);
            invariant_attention(c, dtypes[s % 3], shapes[s], s < 3 ? 520 : 124, 0);
            if (c->quick)
                continue;
            invariant_attention(c, dtypes[s % 3], shapes[s], 0, 0);
            invariant_attention(c, dtypes[s % 3], shapes[s], 250, s % 2 ? 130 : 0);
        }
        // Windows that begin in different splits.
        invariant_attention(c, DSC_F32, (head_shape){8, 8, 8}, 1020, 766);
        if (!c->quick)
            invariant_attention(c, DSC_BF16, shapes[0], 4090, 0);
    }
    c->device = usual;
}
