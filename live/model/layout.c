// SPDX-License-Identifier: Apache-2.0
// Builds the list of weight arrays of each architecture, in the order of the forward pass, and
// allocates them on the device.
#include "live/model/layout.h"

#include "base/memory.h"
#include "live/model/numbers.h"

#include <stdlib.h>

// --- building ----------------------------------------------------------------------------------

// State of the builder. It keeps the first error, so that a model's definition reads as a plain
// list of its arrays.
typedef struct builder {
    live_layout *l;
    const live_config *c;
    int64_t i; // the layer or head
    int rc;
    dsc_error *err;
} builder;

static void add_array(builder *b, live_array p)
{
    if (!b->rc)
        b->rc = dsc_resize(&b->l->array, &b->l->array_capacity, b->l->arrays + 1, b->err);
    if (b->rc)
        return;
    p.part = b->l->parts;
    b->l->array[b->l->arrays++] = p;
}

// Appends the next rows of the last array.
static void add_part(builder *b, live_module m, int64_t j, int64_t rows, live_order order)
{
    if (!b->rc)
        b->rc = dsc_resize(&b->l->part, &b->l->part_capacity, b->l->parts + 1, b->err);
    if (b->rc)
        return;
    live_array *p = &b->l->array[b->l->arrays - 1];
    const live_part *last = p->parts ? &b->l->part[b->l->parts - 1] : NULL;
    b->l->part[b->l->parts++] = (live_part){.module = m,
                                            .bias = p->kind == LIVE_SHIFT,
                                            .i = b->i,
                                            .j = j,
                                            .row = last ? last->row + last->rows : 0,
                                            .rows = rows,
                                            .order = order};
    p->parts++;
}

// Adds a matrix or its bias, whose parts follow.
static void add_either(builder *b, bool is_bias, live_matrix *to, float **bias, live_kind kind,
                       int64_t rows, int64_t cols)
{
    add_array(b, is_bias ? (live_array){.vector = bias, .kind = LIVE_SHIFT, .rows = rows, .cols = 1}
                         : (live_array){.matrix = to, .kind = kind, .rows = rows, .cols = cols});
}

static void vector(builder *b, float **to, live_kind kind, live_module m, int64_t rows)
{
    add_array(b, (live_array){.vector = to, .kind = kind, .rows = rows, .cols = 1});
    add_part(b, m, 0, rows, LIVE_ROWS);
}

// A matrix of one tensor and its bias (NULL: none).
static void matrix(builder *b, live_matrix *to, float **bias, live_kind kind, live_module m,
                   int64_t rows, int64_t cols, live_order order)
{
    add_either(b, false, to, NULL, kind, rows, cols);
    add_part(b, m, 0, rows, order);
    if (bias)
        vector(b, bias, LIVE_SHIFT, m, rows);
}

static void norm(builder *b, float **scale, float **shift, live_module m)
{
    vector(b, scale, LIVE_SCALE, m, b->c->hidden);
    if (b->c->norm == LIVE_LAYER_NORM)
        vector(b, shift, LIVE_SHIFT, m, b->c->hidden);
}

static void split_parts(builder *b, live_order order)
{
    const live_config *c = b->c;
    add_part(b, LIVE_QUERY, 0, c->heads * c->head, order);
    add_part(b, LIVE_KEY, 0, c->kv_heads * c->head, order);
    add_part(b, LIVE_VALUE, 0, c->kv_heads * c->head, order);
}

// The QKV projection, which is stored as one tensor or as three.
static void qkv_parts(builder *b, bool is_bias)
{
    const live_config *c = b->c;
    int64_t queries = c->heads * c->head, keys = c->kv_heads * c->head;
    if (live_name_known(c->family, LIVE_QKV)) {
        add_part(b, LIVE_QKV, 0, queries + 2 * keys,
                 c->family == LIVE_NEOX   ? LIVE_INTERLEAVED
                 : is_bias                ? LIVE_ROWS
                 : c->family == LIVE_GPT2 ? LIVE_TRANSPOSED
                                          : LIVE_ROWS);
        return;
    }
    split_parts(b, c->family == LIVE_EAGLE3 && !is_bias ? LIVE_LEFT : LIVE_ROWS);
}

static void attention(builder *b, live_layer *l, live_order order)
{
    const live_config *c = b->c;
    int64_t inner = c->heads * c->head, fused = inner + 2 * c->kv_heads * c->head;
    for (int bias = 0; bias <= c->qkv_bias; bias++) {
        add_either(b, bias, &l->qkv, &l->qkv_bias, LIVE_WEIGHT, fused, c->hidden);
        qkv_parts(b, bias);
    }
    if (c->family == LIVE_EAGLE3) {
        add_either(b, false, &l->qkv_feature, NULL, LIVE_WEIGHT, fused, c->hidden);
        split_parts(b, LIVE_RIGHT);
    }
    if (c->qk_norm) {
        vector(b, &l->q_norm, LIVE_SCALE, LIVE_QUERY_NORM, c->head);
        vector(b, &l->k_norm, LIVE_SCALE, LIVE_KEY_NORM, c->head);
    }
    matrix(b, &l->out, c->out_bias ? &l->out_bias : NULL, LIVE_RESIDUAL, LIVE_ATTENTION_OUT,
           c->hidden, inner, order);
    if (c->post_norms)
        vector(b, &l->post_norm1, LIVE_SCALE, LIVE_POST_NORM1, c->hidden);
}

static void feed_forward(builder *b, live_layer *l, live_order order)
{
    const live_config *c = b->c;
    bool gated = live_is_gated(c->activation);
    int64_t rows = gated ? 2 * c->feed_forward : c->feed_forward;
    for (int bias = 0; bias <= c->feed_bias; bias++) {
        add_either(b, bias, &l->up, &l->up_bias, LIVE_WEIGHT, rows, c->hidden);
        if (gated)
            add_part(b, LIVE_GATE, 0, c->feed_forward, LIVE_ROWS);
        add_part(b, LIVE_UP, 0, c->feed_forward, bias ? LIVE_ROWS : order);
    }
    matrix(b, &l->down, c->feed_bias ? &l->down_bias : NULL, LIVE_RESIDUAL, LIVE_DOWN, c->hidden,
           c->feed_forward, order);
    if (c->post_norms)
        vector(b, &l->post_norm2, LIVE_SCALE, LIVE_POST_NORM2, c->hidden);
}

static void experts(builder *b, live_layer *l)
{
    const live_config *c = b->c;
    const int64_t width = c->expert_feed_forward;
    matrix(b, &l->router, NULL, LIVE_WEIGHT, LIVE_ROUTER, c->experts, c->hidden, LIVE_ROWS);
    add_either(b, false, &l->expert_up, NULL, LIVE_WEIGHT, 2 * c->experts * width, c->hidden);
    for (int64_t x = 0; x < c->experts; x++) {
        add_part(b, LIVE_EXPERT_GATE, x, width, LIVE_ROWS);
        add_part(b, LIVE_EXPERT_UP, x, width, LIVE_ROWS);
    }
    add_either(b, false, &l->expert_down, NULL, LIVE_RESIDUAL, c->experts * c->hidden, width);
    for (int64_t x = 0; x < c->experts; x++)
        add_part(b, LIVE_EXPERT_DOWN, x, c->hidden, LIVE_ROWS);
}

static void medusa(builder *b, live_medusa_head *h)
{
    const live_config *c = b->c;
    for (int bias = 0; bias <= 1; bias++) {
        add_either(b, bias, &h->linear, &h->linear_bias, LIVE_RESIDUAL,
                   c->medusa_layers * c->hidden, c->hidden);
        for (int64_t j = 0; j < c->medusa_layers; j++)
            add_part(b, LIVE_MEDUSA_LINEAR, j, c->hidden, LIVE_ROWS);
    }
    add_either(b, false, &h->out, NULL, LIVE_WEIGHT, c->vocab, c->hidden);
    add_part(b, LIVE_MEDUSA_OUT, c->medusa_layers, c->vocab, LIVE_ROWS);
}

static void whole_model(builder *b, live_weights *w)
{
    const live_config *c = b->c;
    live_order order = c->family == LIVE_GPT2 ? LIVE_TRANSPOSED : LIVE_ROWS;
    const bool complete = !live_config_is_head(c), eagle3 = c->family == LIVE_EAGLE3;
    if (complete || c->own_embedding)
        matrix(b, &w->embed, NULL, c->tied ? LIVE_WEIGHT : LIVE_EMBEDDING, LIVE_EMBED, c->vocab,
               c->hidden, LIVE_ROWS);
    if (c->learned_positions)
        matrix(b, &w->positions, NULL, LIVE_EMBEDDING, LIVE_POSITIONS, c->positions, c->hidden,
               LIVE_ROWS);
    if (live_config_is_eagle(c))
        matrix(b, &w->join, c->fc_bias ? &w->join_bias : NULL, LIVE_WEIGHT, LIVE_JOIN, c->hidden,
               (eagle3 ? LIVE_TAPS : 2) * c->hidden, LIVE_ROWS);
    if (eagle3)
        vector(b, &w->feature_norm, LIVE_SCALE, LIVE_FEATURE_NORM, c->hidden);
    for (b->i = 0; b->i < c->layers; b->i++) {
        live_layer *l = &w->layer[b->i];
        if (c->normed || b->i > 0)
            norm(b, &l->norm1, &l->norm1_bias, LIVE_NORM1);
        attention(b, l, order);
        norm(b, &l->norm2, &l->norm2_bias, LIVE_NORM2);
        if (live_config_is_sparse(c, b->i))
            experts(b, l);
        else
            feed_forward(b, l, order);
    }
    for (b->i = 0; b->i < c->medusa_heads; b->i++)
        medusa(b, &w->medusa[b->i]);
    b->i = 0;
    if (!complete && !eagle3)
        return;
    norm(b, &w->norm, &w->norm_bias, LIVE_FINAL_NORM);
    if (!c->tied)
        matrix(b, &w->head, NULL, LIVE_WEIGHT, LIVE_HEAD, eagle3 ? c->draft_vocab : c->vocab,
               c->hidden, LIVE_ROWS);
}

int live_layout_new(live_layout *out, live_weights *w, dsc_error *err)
{
    *out = (live_layout){0};
    int rc = dsc_new(&w->layer, (size_t)w->config.layers, err);
    if (!rc)
        rc = dsc_new(&w->medusa, (size_t)w->config.medusa_heads, err);
    if (rc)
        return rc;
    builder b = {.l = out, .c = &w->config, .err = err};
    whole_model(&b, w);
    return b.rc;
}

void live_layout_free(live_layout *l)
{
    free(l->array);
    free(l->part);
    *l = (live_layout){0};
}

void live_layout_untransposed(live_layout *l)
{
    for (size_t i = 0; i < l->parts; i++)
        if (l->part[i].order == LIVE_TRANSPOSED)
            l->part[i].order = LIVE_ROWS;
}

// --- memory of the device ----------------------------------------------------------------------

static double array_bytes(const live_array *p)
{
    dsc_dtype t = p->vector ? DSC_F32 : p->matrix->dtype;
    return (double)p->rows * (double)p->cols * (double)dsc_dtype_bytes(t);
}

static int check_memory(const live_weights *w, dsc_error *err)
{
    double available, total;
    int rc = w->backend->type->memory.available(w->backend, &available, &total, err);
    if (!rc && w->bytes > available)
        return dsc_fail(err, DSC_ENOMEM, "the weights need %.3g GB, %s has %.3g GB free of %.3g",
                        w->bytes / 1e9, w->backend->device, available / 1e9, total / 1e9);
    return rc;
}

static int upload_rope(live_weights *w, bool local, dsc_error *err)
{
    float **out = local ? &w->local_freq : &w->inv_freq;
    float *host;
    size_t count = (size_t)w->config.rotated / 2;
    if (!count)
        return DSC_OK;
    int rc = dsc_new(&host, count, err);
    if (rc)
        return rc;
    live_config_rope(&w->config, local, host);
    const size_t bytes = count * sizeof *host;
    rc = w->backend->type->memory.alloc(w->backend, out, bytes, err);
    if (!rc)
        rc = w->backend->type->memory.upload(w->backend, *out, host, bytes, err);
    free(host);
    return rc;
}

// Bytes of the angles per position.
static double rope_bytes(const live_config *c)
{
    return (c->local_theta > 0 ? 8.0 : 4.0) * (double)(c->rotated / 2);
}

int live_layout_alloc(const live_layout *l, live_weights *w, dsc_error *err)
{
    live_backend *b = w->backend;
    w->bytes = rope_bytes(&w->config);
    for (size_t i = 0; i < l->arrays; i++)
        w->bytes += array_bytes(&l->array[i]);
    int rc = check_memory(w, err);
    for (size_t i = 0; i < l->arrays && !rc; i++) {
        live_array *p = &l->array[i];
        void *out = p->vector ? (void *)p->vector : &p->matrix->data;
        rc = b->type->memory.alloc(b, out, (size_t)array_bytes(p), err);
        if (p->matrix) {
            p->matrix->rows = p->rows;
            p->matrix->cols = p->cols;
        }
    }
    if (w->config.tied)
        w->head = w->embed;
    w->embed_scale =
        w->config.embed_scale > 0 ? live_round((float)w->config.embed_scale, w->embed.dtype) : 1;
    if (!rc)
        rc = upload_rope(w, false, err);
    return rc || w->config.local_theta <= 0 ? rc : upload_rope(w, true, err);
}

double live_config_weight_bytes(const live_config *c, dsc_dtype dtype)
{
    live_weights w = {.config = *c};
    live_layout l;
    double bytes = rope_bytes(c);
    if (live_layout_new(&l, &w, NULL) == DSC_OK)
        for (size_t i = 0; i < l.arrays; i++) {
            if (l.array[i].matrix)
                l.array[i].matrix->dtype = dtype;
            bytes += array_bytes(&l.array[i]);
        }
    live_layout_free(&l);
    free(w.layer);
    free(w.medusa);
    return bytes;
}

double live_config_cache_bytes(const live_config *c, dsc_dtype dtype)
{
    return 2.0 * (double)(c->layers * c->kv_heads * c->head) * (double)dsc_dtype_bytes(dtype);
}
