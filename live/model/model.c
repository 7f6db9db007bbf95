// SPDX-License-Identifier: Apache-2.0
// The forward pass of a decoder (Llama, GPT-2, GPT-NeoX), of EAGLE heads and of Medusa-1 heads,
// written once over the operations of live/device/backend.h. A block computes x +=
// attention(norm(x)); x += feed_forward(norm(x)), or both from one input (GPT-NeoX).
#include "live/model/model.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- room ----------------------------------------------------------------------------------------

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t gates(const live_config *c)
{
    return live_is_gated(c->activation) ? 2 : 1;
}

// Sizes of the buffers of a room in 32-bit words, in the order of its pointers.
enum { STATE, NORMED, QKV, MIXED, UP, ACTED, FEATURE, PICKED, LOGITS, NARROW, SUMMARY, BUFFERS };

static void room_sizes(const live_config *c, int64_t vocab, int64_t rows, int64_t outputs,
                       int64_t size[BUFFERS])
{
    const bool blocks = c->layers > 0;
    size[STATE] = rows * c->hidden;
    const int64_t joined = c->family == LIVE_EAGLE3 ? LIVE_TAPS : c->family == LIVE_EAGLE ? 2 : 1;
    size[NORMED] = rows * c->hidden * joined;
    size[QKV] = blocks ? rows * (c->heads + 2 * c->kv_heads) * c->head : 0;
    size[MIXED] = blocks ? rows * c->heads * c->head : 0;
    size[UP] = rows * (blocks ? gates(c) * c->feed_forward : c->hidden);
    size[ACTED] = blocks ? rows * c->feed_forward : 0;
    size[FEATURE] = rows * c->hidden;
    size[PICKED] = outputs * c->hidden;
    size[LOGITS] = outputs * vocab;
    size[NARROW] = outputs * c->draft_vocab;
    size[SUMMARY] =
        (int64_t)(live_summary_at(NULL, outputs, vocab, true).bytes / sizeof(float)) + 1;
}

// Returns the address of an array of `count` elements of `size` bytes at *bytes after base, and
// advances *bytes.
static void *part(void *base, size_t *bytes, int64_t count, size_t size)
{
    const size_t at = *bytes;
    *bytes += (size_t)count * size;
    return base ? (char *)base + at : NULL;
}

live_summary live_summary_at(void *base, int64_t outputs, int64_t vocab, bool dist)
{
    const int64_t blocks = (int64_t)dsc_softmax_blocks((size_t)vocab);
    live_summary s = {0};
    if (dist) { // the widest type first, so that every array is aligned
        s.sum = part(base, &s.bytes, outputs * blocks, sizeof *s.sum);
        s.kept = part(base, &s.bytes, outputs, sizeof *s.kept);
        s.max_logit = part(base, &s.bytes, outputs * blocks, sizeof *s.max_logit);
    }
    s.best = part(base, &s.bytes, outputs, sizeof *s.best);
    s.margin = part(base, &s.bytes, outputs, sizeof *s.margin);
    return s;
}

double live_room_bytes(const live_config *c, int64_t rows, int64_t outputs)
{
    int64_t size[BUFFERS];
    double sum = 0;
    room_sizes(c, c->vocab, rows, outputs, size);
    for (int i = 0; i < BUFFERS; i++)
        sum += (double)size[i] * sizeof(float);
    return sum;
}

int live_room_new(live_room *out, const live_weights *w, int64_t rows, int64_t outputs,
                  dsc_error *err)
{
    int64_t size[BUFFERS];
    live_backend *b = w->backend;
    live_room *r = out;
    *r = (live_room){.backend = b, .rows = rows, .outputs = outputs};
    void *const buffer[BUFFERS] = {&r->state,  &r->normed, &r->qkv,           &r->mixed,
                                   &r->up,     &r->acted,  &r->feature,       &r->picked,
                                   &r->logits, &r->narrow, &r->device_summary};
    int rc = DSC_OK;
    room_sizes(&w->config, w->config.vocab, rows, outputs, size);
    for (int i = 0; i < BUFFERS && !rc; i++)
        rc = b->type->memory.alloc(b, buffer[i], (size_t)larger(size[i], 1) * sizeof(float), err);
    if (!rc)
        rc = b->type->memory.alloc_host(b, &r->host_summary, (size_t)size[SUMMARY] * sizeof(float),
                                        err);
    if (rc)
        live_room_free(r);
    return rc;
}

void live_room_free(live_room *r)
{
    if (!r->backend)
        return;
    void *const p[] = {r->state,  r->normed, r->qkv,           r->mixed,
                       r->up,     r->acted,  r->feature,       r->picked,
                       r->logits, r->narrow, r->device_summary};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        r->backend->type->memory.free(r->backend, p[i]);
    r->backend->type->memory.free_host(r->backend, r->host_summary);
    *r = (live_room){0};
}

int live_cache_new(live_cache *out, const live_weights *w, int64_t sequences, int64_t slots,
                   dsc_error *err)
{
    const live_config *c = &w->config;
    live_backend *b = w->backend;
    const dsc_dtype stored = w->layer ? w->layer[0].qkv.dtype : c->dtype;
    *out = (live_cache){.dtype = b->type->memory.cache_dtype(stored),
                        .layers = c->layers,
                        .sequences = sequences,
                        .slots = slots,
                        .width = c->kv_heads * c->head};
    const size_t bytes = (size_t)(sequences * slots * out->width) * dsc_dtype_bytes(out->dtype);
    int rc = dsc_new(&out->k, (size_t)c->layers, err);
    if (!rc)
        rc = dsc_new(&out->v, (size_t)c->layers, err);
    for (int64_t i = 0; i < c->layers && !rc; i++) {
        rc = b->type->memory.alloc(b, &out->k[i], bytes, err);
        if (!rc)
            rc = b->type->memory.alloc(b, &out->v[i], bytes, err);
    }
    if (rc)
        live_cache_free(out, b);
    return rc;
}

void live_cache_free(live_cache *c, live_backend *b)
{
    for (int64_t i = 0; i < c->layers && c->k && c->v; i++) {
        b->type->memory.free(b, c->k[i]);
        b->type->memory.free(b, c->v[i]);
    }
    free(c->k);
    free(c->v);
    *c = (live_cache){0};
}

// --- a pass --------------------------------------------------------------------------------------

typedef struct pass {
    const live_weights *w;
    const live_config *c;
    live_backend *b;
    const live_pass_type *op;
    live_cache *cache;
    live_room *room;
    const live_batch *batch;
    int64_t rows;
    const live_weights *target;    // of an EAGLE head: embedding and output matrix
    const live_features *source;   // features that a head reads
    const live_features *features; // features that are kept, or NULL
} pass;

// dtype of an operation's result that only a product with `w` reads: that of the cache.
static dsc_dtype stored(const pass *p, const live_matrix *w)
{
    return p->b->type->memory.cache_dtype(w->dtype);
}

static live_norming norming(const pass *p, const float *weight, const float *bias)
{
    return (live_norming){weight, bias, p->c->norm, p->c->norm_epsilon};
}

// A product of `w` with the F32 rows of its input, after the given norm.
static live_product normed_product(const pass *p, const live_matrix *w, const float *bias,
                                   live_norming norm)
{
    return (live_product){.w = w,
                          .bias = bias,
                          .norm = norm,
                          .in_dtype = DSC_F32,
                          .out_dtype = DSC_F32,
                          .normed = p->room->normed,
                          .wide = p->room->up};
}

// state += in w^T + bias, or (Gemma 3) a norm of that.
static int project(const pass *p, const live_matrix *w, const float *bias, const float *post_norm,
                   const void *in, dsc_dtype in_dtype, dsc_error *err)
{
    const live_room *r = p->room;
    const live_norming norm = norming(p, post_norm, NULL);
    const live_product product = {
        .w = w, .bias = bias, .add = !post_norm, .in_dtype = in_dtype, .out_dtype = DSC_F32};
    int rc = p->op->product(p->b, post_norm ? r->normed : r->state, in, p->rows, &product, err);
    if (rc || !post_norm)
        return rc;
    rc = p->op->norm(p->b, r->normed, r->normed, &norm, p->rows, p->c->hidden, err);
    return rc ? rc : p->op->add(p->b, r->state, r->normed, p->rows * p->c->hidden, err);
}

// The rotation of layer i.
static live_rotation rotation(const pass *p, int64_t i)
{
    const live_config *c = p->c;
    const live_layer *l = &p->w->layer[i];
    const bool local = c->local_theta > 0 && live_config_window(c, i);
    const int64_t rotated = c->layer[i] & LIVE_LAYER_UNROTATED ? 0 : c->rotated;
    return (live_rotation){local ? p->w->local_freq : p->w->inv_freq, rotated, l->q_norm, l->k_norm,
                           c->norm_epsilon};
}

// What scores are multiplied by. YaRN multiplies rotated queries and keys by the same factor.
static double score_scale(const pass *p, const live_rotation *turn)
{
    const live_config *c = p->c;
    const double scale = c->attention_scale > 0 ? c->attention_scale : 1 / sqrt((double)c->head);
    const bool scaled = c->rope_attention > 0 && turn->rotated && turn->inv_freq == p->w->inv_freq;
    return scaled ? scale * c->rope_attention * c->rope_attention : scale;
}

// Attention over the cache with the queries in qkv; its output is added to the residual stream.
static int attention(const pass *p, int64_t i, dsc_error *err)
{
    const live_layer *l = &p->w->layer[i];
    const live_config *c = p->c;
    const live_room *r = p->room;
    const live_rotation turn = rotation(p, i);
    const live_attention a = {
        c->heads, c->kv_heads, c->head, score_scale(p, &turn), live_config_window(c, i), true};
    int rc = p->op->rotate(p->b, r->qkv, &turn, &a, p->cache, i, err);
    if (!rc)
        rc = p->op->attend(p->b, r->mixed, r->qkv, &a, p->cache, i, err);
    return rc ? rc
              : project(p, &l->out, l->out_bias, l->post_norm1, r->mixed, p->cache->dtype, err);
}

static int widen(const pass *p, const live_layer *l, dsc_error *err)
{
    live_product up = normed_product(p, &l->up, l->up_bias, norming(p, l->norm2, l->norm2_bias));
    up.activate = true;
    up.activation = p->c->activation;
    up.out_dtype = stored(p, &l->down);
    return p->op->product(p->b, p->room->acted, p->room->state, p->rows, &up, err);
}

// The QKV projection of a layer. EAGLE-3: of the normed embedding, in room->feature, and
// of the normed feature. The columns of each are a matrix, so the two are not concatenated. With
// norm_before_residual the normed feature replaces the feature in the residual stream.
static int project_qkv(const pass *p, const live_layer *l, dsc_error *err)
{
    const live_room *r = p->room;
    const bool eagle3 = p->c->family == LIVE_EAGLE3;
    const live_product qkv =
        normed_product(p, &l->qkv, l->qkv_bias, norming(p, l->norm1, l->norm1_bias));
    const bool before = p->c->norm_before_residual;
    const live_norming norm = norming(p, p->w->feature_norm, NULL);
    live_product more = normed_product(p, &l->qkv_feature, NULL, before ? (live_norming){0} : norm);
    more.add = true;
    int rc = p->op->product(p->b, r->qkv, eagle3 ? r->feature : r->state, p->rows, &qkv, err);
    if (!rc && before)
        rc = p->op->norm(p->b, r->state, r->state, &norm, p->rows, p->c->hidden, err);
    if (!rc && eagle3)
        rc = p->op->product(p->b, r->qkv, r->state, p->rows, &more, err);
    return rc;
}

static int run_experts(const pass *p, const live_layer *l, dsc_error *err)
{
    const live_config *c = p->c;
    const live_experts e = {.router = &l->router,
                            .up = &l->expert_up,
                            .down = &l->expert_down,
                            .experts = c->experts,
                            .used = c->experts_per_token,
                            .normalized = c->experts_normalized,
                            .activation = c->activation,
                            .norm = norming(p, l->norm2, l->norm2_bias)};
    return p->op->experts(p->b, p->room->state, p->room->state, p->rows, &e, err);
}

static int block(const pass *p, int64_t i, dsc_error *err)
{
    const live_layer *l = &p->w->layer[i];
    const live_room *r = p->room;
    int rc = project_qkv(p, l, err);
    if (!rc && p->c->parallel) // reads the same input as the attention
        rc = widen(p, l, err);
    if (!rc)
        rc = attention(p, i, err);
    if (live_config_is_sparse(p->c, i))
        return rc ? rc : run_experts(p, l, err);
    if (!rc && !p->c->parallel)
        rc = widen(p, l, err);
    return rc ? rc
              : project(p, &l->down, l->down_bias, l->post_norm2, r->acted, stored(p, &l->down),
                        err);
}

static int check_stop(const live_backend *b, dsc_error *err)
{
    return b->stop && b->stop() ? dsc_fail(err, DSC_EINTERRUPT, "stopped") : DSC_OK;
}

// Keeps the residual stream if it is the input of layer `i` that a head reads.
static int keep_tap(const pass *p, int64_t i, dsc_error *err)
{
    const live_features *f = p->features;
    const int64_t width = p->c->hidden;
    int rc = DSC_OK;
    for (int t = 0; f && f->rows && t < f->taps && !rc; t++)
        if (f->tap[t] == i)
            rc = p->op->scatter(p->b, live_features_plane(f, t, width), p->room->state, width,
                                LIVE_SLOTS, err);
    return rc;
}

// A layer of many tokens takes a CPU up to a second; a GPU is only told what to do.
static int blocks(const pass *p, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t i = 0; i < p->c->layers && !rc; i++) {
        rc = p->b->on_host ? check_stop(p->b, err) : DSC_OK;
        if (!rc)
            rc = keep_tap(p, i, err);
        if (!rc)
            rc = block(p, i, err);
    }
    return rc ? rc : keep_tap(p, p->c->layers, err);
}

static float *logits_of(const live_room *r)
{
    return r->into ? r->into : r->logits;
}

// Computes the per-row results of the logits and copies them to the host.
static int summarize(const pass *p, int64_t rows, int64_t vocab, dsc_error *err)
{
    const live_room *r = p->room;
    const float *logits = logits_of(r);
    const live_summary s = live_summary_at(r->device_summary, rows, vocab, p->batch->dist);
    int rc = p->op->select(p->b, s.best, s.margin, logits, rows, vocab, err);
    if (!rc && p->batch->dist)
        rc = p->op->summarize(p->b, &s, logits, rows, vocab, err);
    return rc ? rc
              : p->b->type->memory.fetch(p->b, r->host_summary, r->device_summary, s.bytes, err);
}

// Multiplies the picked rows by the output matrix. An EAGLE-3 head cannot draft the other tokens of
// the vocabulary: their logits are -inf.
static int multiply_head(const pass *p, const live_matrix *head, dsc_error *err)
{
    const live_room *r = p->room;
    const int64_t outputs = p->batch->outputs;
    const bool narrow = p->c->family == LIVE_EAGLE3;
    float *logits = logits_of(r);
    int rc =
        live_matmul(p->b, narrow ? r->narrow : logits, head, NULL, r->picked, outputs, false, err);
    if (!rc && narrow)
        rc = p->op->spread(p->b, logits, r->narrow, p->w->column, outputs, head->rows, p->c->vocab,
                           err);
    return rc;
}

static int keep_last(const pass *p, const float *last, dsc_error *err)
{
    const live_features *f = p->features;
    if (!f || !f->rows || f->taps)
        return DSC_OK;
    return p->op->scatter(p->b, f->rows, last, p->c->hidden, LIVE_SLOTS, err);
}

// Computes the requested logits of the last hidden states.
static int finish(const pass *p, const live_matrix *head, const float *last, dsc_error *err)
{
    const live_room *r = p->room;
    const live_batch *batch = p->batch;
    const int64_t width = p->c->hidden;
    if (!batch->outputs)
        return DSC_OK;
    int rc = p->op->gather(p->b, r->picked, width, last, width, width, LIVE_OUTPUTS, err);
    if (!rc)
        rc = multiply_head(p, head, err);
    const bool narrow = p->c->family == LIVE_EAGLE3;
    return rc ? rc : summarize(p, batch->outputs, narrow ? p->c->vocab : head->rows, err);
}

static int model_operations(const pass *p, dsc_error *err)
{
    const live_weights *w = p->w;
    const live_room *r = p->room;
    const live_norming norm = norming(p, w->norm, w->norm_bias);
    int rc = p->op->embed(p->b, r->state, p->c->hidden, &w->embed,
                          p->c->learned_positions ? &w->positions : NULL, w->embed_scale, err);
    if (!rc)
        rc = blocks(p, err);
    if (!rc)
        rc = p->op->norm(p->b, r->feature, r->state, &norm, p->rows, p->c->hidden, err);
    if (!rc)
        rc = keep_last(p, r->feature, err);
    return rc ? rc : finish(p, &w->head, r->feature, err);
}

static int eagle_operations(const pass *p, dsc_error *err)
{
    const live_room *r = p->room;
    const int64_t width = p->c->hidden;
    const live_matrix *embed = p->c->own_embedding ? &p->w->embed : &p->target->embed;
    int rc = p->op->embed(p->b, r->normed, 2 * width, embed, NULL, 1, err);
    if (!rc)
        rc = p->op->gather(p->b, r->normed + width, 2 * width, p->source->rows, width, width,
                           LIVE_FEATURES, err);
    if (!rc)
        rc = live_matmul(p->b, r->state, &p->w->join, p->w->join_bias, r->normed, p->rows, false,
                         err);
    if (!rc)
        rc = blocks(p, err);
    if (!rc)
        rc = keep_last(p, r->state, err);
    return rc ? rc : finish(p, &p->target->head, r->state, err);
}

// Puts the feature of each token into the residual stream: the target's, fused by `fc`, or the
// head's own, which is its residual stream before the final norm (vLLM's hidden_prenorm).
static int read_features(const pass *p, dsc_error *err)
{
    const live_room *r = p->room;
    const int64_t width = p->c->hidden;
    const int taps = p->source->taps;
    int rc = DSC_OK;
    if (!taps)
        return p->op->gather(p->b, r->state, width, p->source->rows, width, width, LIVE_FEATURES,
                             err);
    for (int t = 0; t < taps && !rc; t++)
        rc = p->op->gather(p->b, r->normed + t * width, taps * width,
                           live_features_plane(p->source, t, width), width, width, LIVE_FEATURES,
                           err);
    return rc ? rc
              : live_matmul(p->b, r->state, &p->w->join, p->w->join_bias, r->normed, p->rows, false,
                            err);
}

static int eagle3_operations(const pass *p, dsc_error *err)
{
    const live_room *r = p->room;
    const int64_t width = p->c->hidden;
    const live_matrix *embed = p->c->own_embedding ? &p->w->embed : &p->target->embed;
    const live_norming norm = norming(p, p->w->norm, NULL);
    int rc = read_features(p, err);
    if (!rc)
        rc = p->op->embed(p->b, r->feature, width, embed, NULL, 1, err);
    if (!rc)
        rc = blocks(p, err);
    if (!rc)
        rc = keep_last(p, r->state, err);
    if (!rc)
        rc = p->op->norm(p->b, r->feature, r->state, &norm, p->rows, width, err);
    return rc ? rc : finish(p, &p->w->head, r->feature, err);
}

// Each head is a stack of residual blocks x + silu(linear(x)), followed by its own output matrix.
static int medusa_operations(const pass *p, dsc_error *err)
{
    const live_config *c = p->c;
    const live_room *r = p->room;
    const int64_t width = c->hidden;
    int rc = DSC_OK;
    for (int64_t h = 0; h < c->medusa_heads && !rc; h++) {
        const live_medusa_head *head = &p->w->medusa[h];
        const size_t bytes = (size_t)(width * width) * dsc_dtype_bytes(head->linear.dtype);
        rc = p->op->gather(p->b, r->feature, width, p->source->rows, width, width, LIVE_FEATURES,
                           err);
        for (int64_t i = 0; i < c->medusa_layers && !rc; i++) {
            live_matrix linear = head->linear;
            linear.data = (char *)linear.data + (size_t)i * bytes;
            linear.rows = width;
            live_product turn =
                normed_product(p, &linear, head->linear_bias + i * width, (live_norming){0});
            turn.activate = true;
            turn.activation = LIVE_SILU;
            rc = p->op->product(p->b, r->normed, r->feature, 1, &turn, err);
            if (!rc)
                rc = p->op->add(p->b, r->feature, r->normed, width, err);
        }
        if (!rc)
            rc = live_matmul(p->b, logits_of(r) + h * c->vocab, &head->out, NULL, r->feature,
                             p->rows, false, err);
    }
    return rc ? rc : summarize(p, c->medusa_heads, c->vocab, err);
}

int live_pass(const live_weights *w, const live_weights *target, live_cache *cache, live_room *room,
              const live_features *source, const live_features *features, const live_batch *batch,
              dsc_error *err)
{
    const pass p = {.w = w,
                    .c = &w->config,
                    .b = w->backend,
                    .op = &w->backend->type->pass,
                    .cache = cache,
                    .room = room,
                    .batch = batch,
                    .rows = live_batch_rows(batch),
                    .target = target,
                    .source = source,
                    .features = features};
    // Passes of one room that run other operations or use other addresses are different variants.
    const int variant =
        live_config_is_eagle(&w->config) ? source == features : features && features->rows;
    bool replayed; // the device repeats a pass that it has recorded
    int rc = check_stop(p.b, err);
    if (!rc)
        rc = p.op->begin(p.b, (live_pass_key){room, variant}, batch, &replayed, err);
    if (!rc && !replayed)
        rc = w->config.family == LIVE_EAGLE    ? eagle_operations(&p, err)
             : w->config.family == LIVE_EAGLE3 ? eagle3_operations(&p, err)
             : w->config.family == LIVE_MEDUSA ? medusa_operations(&p, err)
                                               : model_operations(&p, err);
    return rc ? rc : p.op->end(p.b, err);
}
