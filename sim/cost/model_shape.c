// SPDX-License-Identifier: Apache-2.0
// Shapes of transformers by name, and the numbers of weights, cache entries and attention
// operations that the roofline needs. sim/cost/presets.c has the shapes, model_config.c reads
// files.
#include "sim/cost/model_shape.h"

#include <string.h>
#include <strings.h>

// EAGLE-3 heads predict the 32000 most frequent tokens (draft_vocab_size of the authors' heads,
// huggingface.co/yuhuili); a head with another vocabulary is read from its config.json.
enum { EAGLE3_VOCABULARY = 32000, EAGLE3_STATES = 3 };

// --- names -------------------------------------------------------------------------------------

int dsc_model_shape_find(dsc_model_shape *out, const char *text, dsc_error *err)
{
    size_t n = strlen(text), count, at;
    const dsc_model_shape *preset = dsc_model_shape_presets(&count);
    *out = (dsc_model_shape){0};
    if (strchr(text, '/') || (n > 5 && strcmp(text + n - 5, ".json") == 0))
        return dsc_model_config_read(out, text, err);
    int rc = dsc_preset_find(&at, "model shape", (dsc_preset_table){preset, sizeof *preset, count},
                             text, err);
    if (!rc)
        *out = preset[at];
    return rc;
}

int dsc_model_shape_draft(dsc_model_shape *out, const char *text, const dsc_model_shape *target,
                          dsc_error *err)
{
    static const struct {
        const char *name;
        dsc_draft_head head;
    } heads[] = {{"eagle", DSC_HEAD_EAGLE}, {"eagle3", DSC_HEAD_EAGLE3}, {"mtp", DSC_HEAD_MTP}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (strcasecmp(text, heads[i].name) != 0)
            continue;
        if (target->kind == DSC_MODEL_T5 ||
            (heads[i].head != DSC_HEAD_MTP && !dsc_model_shape_is_dense(target)))
            return dsc_fail(err, DSC_EUSAGE,
                            "--cost: the width of an %s head does not follow from this target, "
                            "which is not a dense decoder: give the config.json of the head",
                            heads[i].name);
        *out = *target;
        out->name = heads[i].name;
        out->layers = 1;
        out->dense_layers = 0;
        out->draft_head = heads[i].head;
        if (out->draft_head == DSC_HEAD_EAGLE3)
            out->vocab = EAGLE3_VOCABULARY;
        return DSC_OK;
    }
    return dsc_model_shape_find(out, text, err);
}

bool dsc_model_shape_is_dense(const dsc_model_shape *s)
{
    return (s->kind <= DSC_MODEL_QWEN3 || s->kind == DSC_MODEL_GEMMA3) && !s->experts &&
           !s->draft_head;
}

// --- counting ----------------------------------------------------------------------------------

// Widths of all query heads, and of all key heads.
static double queries(const dsc_model_shape *s)
{
    return (double)s->heads * (double)s->head;
}

static double keys(const dsc_model_shape *s)
{
    return (double)s->kv_heads * (double)s->head;
}

// Matrices of the attention of one layer.
static double attention(const dsc_model_shape *s)
{
    const double hidden = (double)s->hidden, heads = (double)s->heads, head = (double)s->head;
    if (s->kind == DSC_MODEL_T5) // and queries and output of the attention to the encoder's keys
        return 2 * hidden * (queries(s) + keys(s)) + 2 * hidden * queries(s);
    if (s->kind == DSC_MODEL_DEEPSEEK) {
        const double rank = (double)s->cache_rank, rope = (double)s->rope;
        const double value = (double)s->value_head, query = (double)s->query_rank;
        return hidden * query + query * heads * (head + rope) + hidden * (rank + rope) +
               rank * heads * (head + value) + heads * value * hidden;
    }
    const double input = s->draft_head == DSC_HEAD_EAGLE3 ? 2 * hidden : hidden;
    return input * (queries(s) + 2 * keys(s)) + hidden * queries(s);
}

static double feed_forward(const dsc_model_shape *s, int64_t width)
{
    return (s->plain ? 2.0 : 3.0) * (double)s->hidden * (double)width;
}

static double expert_layers(const dsc_model_shape *s)
{
    return s->experts ? (double)(s->layers - s->dense_layers) : 0;
}

dsc_model_work dsc_model_shape_work(const dsc_model_shape *s)
{
    const double hidden = (double)s->hidden, sparse = expert_layers(s);
    const double shared = (double)s->shared_experts;
    dsc_model_work w = {.attention = (double)s->layers * attention(s),
                        .feed_forward =
                            ((double)s->layers - sparse) * feed_forward(s, s->feed_forward),
                        .expert_layers = sparse,
                        .output = (double)s->vocab * hidden};
    if (sparse > 0) {
        w.expert = feed_forward(s, s->expert_feed_forward);
        w.feed_forward += sparse * (shared * w.expert + hidden * (double)s->experts);
    }
    if (s->draft_head == DSC_HEAD_EAGLE3)
        w.first = EAGLE3_STATES * hidden * hidden;
    else if (s->draft_head)
        w.feed_forward += 2 * hidden * hidden;
    return w;
}

double dsc_model_shape_weights(const dsc_model_shape *s)
{
    const dsc_model_work w = dsc_model_shape_work(s);
    return w.attention + w.feed_forward + (double)s->experts * w.expert * w.expert_layers +
           w.output + w.first;
}

double dsc_model_shape_active(const dsc_model_shape *s)
{
    const dsc_model_work w = dsc_model_shape_work(s);
    return w.attention + w.feed_forward +
           (double)s->experts_per_token * w.expert * w.expert_layers + w.output;
}

// Norms and biases of one layer.
static double small_parameters(const dsc_model_shape *s)
{
    const double hidden = (double)s->hidden, experts = (double)s->experts;
    switch (s->kind) {
    case DSC_MODEL_QWEN2: return 2 * hidden + queries(s) + 2 * keys(s);
    case DSC_MODEL_QWEN3: return 2 * hidden + 2 * (double)s->head;
    case DSC_MODEL_GEMMA3: return 4 * hidden + 2 * (double)s->head;
    case DSC_MODEL_DEEPSEEK: return 2 * hidden + (double)(s->query_rank + s->cache_rank);
    case DSC_MODEL_GPT_OSS: // also sinks, and biases of the router and the experts
        return 3 * hidden + queries(s) + 2 * keys(s) + (double)s->heads +
               experts * (1 + 2 * (double)s->expert_feed_forward + hidden);
    default: return 2 * hidden;
    }
}

static double t5_parameters(const dsc_model_shape *s)
{
    const double hidden = (double)s->hidden, buckets = 32 * (double)s->heads;
    const double attends = 4 * hidden * queries(s), forward = feed_forward(s, s->feed_forward);
    return (double)s->encoder_layers * (attends + forward + 2 * hidden) +
           (double)s->layers * (2 * attends + forward + 3 * hidden) + 2 * (hidden + buckets);
}

double dsc_model_shape_parameters(const dsc_model_shape *s)
{
    const double embedding = (double)s->vocab * (double)s->hidden;
    const double embeddings = s->tied ? embedding : 2 * embedding;
    if (s->kind == DSC_MODEL_T5)
        return t5_parameters(s) + embeddings;
    const double layers =
        dsc_model_shape_weights(s) - embedding + (double)s->layers * small_parameters(s);
    if (s->draft_head)
        return layers + (s->draft_head == DSC_HEAD_EAGLE3 ? embedding : 0);
    // The router of DeepSeek-V3 has a correction for each expert.
    const double router = s->kind == DSC_MODEL_DEEPSEEK ? expert_layers(s) * (double)s->experts : 0;
    return layers + router + (double)s->hidden + embeddings;
}

// T5 has a KV cache for the prompt (the encoder's) and one for the output, of the same size per
// token. A latent vector with its RoPE part serves all heads, as key and as value.
double dsc_model_shape_cache(const dsc_model_shape *s)
{
    if (s->kind == DSC_MODEL_DEEPSEEK)
        return (double)s->layers * (double)(s->cache_rank + s->rope);
    return 2 * (double)s->layers * keys(s);
}

double dsc_model_shape_attention(const dsc_model_shape *s)
{
    if (s->kind == DSC_MODEL_DEEPSEEK) // all heads compare with the latent vector and sum it up
        return 2 * (double)s->layers * (double)s->heads * (double)(2 * s->cache_rank + s->rope);
    return 4 * (double)s->layers * queries(s);
}
