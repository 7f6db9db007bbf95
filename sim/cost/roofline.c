// SPDX-License-Identifier: Apache-2.0
// The time of a pass (Williams, Waterman and Patterson 2009, with an engine's shares and
// overheads). With the bytes and operations of weights and of attention,
//
//   part = longer + (1 - overlap) shorter of  bytes / (bandwidth share)  and  operations / (peak
//   share) time = part(weights) + part(attention) + pass_s + layers x layer_s
//
// Weights and KV cache are read once per pass. Of experts only those are read that the pass touches
// (sim/cost/experts.h), and a token is multiplied by its own. The output matrix is multiplied by
// the tokens that logits are needed of. Matrix products and attention alternate layer by layer, so
// each part has its own maximum. Tensor parallelism divides the work of the target and of its
// heads; their communication is not modeled. A draft model of its own runs on one machine.
//
// Attention multiplies tiles of query rows with the KV cache, and a tile takes its time however
// few of its rows are queries. FlashAttention 2 has tiles of 64 rows where a KV cache is paged
// (csrc/flash_attn/src/flash_fwd_launch_template.h, run_mha_fwd_splitkv_dispatch: kBlockM). A pass
// with one token of each sequence has the query heads of a KV head in one tile, one with more
// tokens has a tile for each head (csrc/flash_attn/flash_api.cpp, seqlenq_ngroups_swapped). So six
// tokens of Llama-3.1-8B are multiplied as 32 x 64 rows, one as 8 x 64. FlashAttention 3, for
// Hopper, always packs (hopper/heuristics.h, should_pack_gqa). The kernels load the KV cache
// while they multiply, so the longer hides the shorter. With shares and overlap of 1, tiles of one
// row and no overhead this is the bound.
#include "sim/cost/roofline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void dsc_roofline_init(dsc_roofline *r)
{
    size_t count;
    *r = (dsc_roofline){.machines = 1,
                        .engine = dsc_engines(&count)[0],
                        .overhead_s = NAN,
                        .draft_overhead_s = NAN,
                        .cache = &dsc_cache_formats(&count)[0],
                        .plain = &dsc_weight_formats(&count)[0],
                        .experts = {.rule = DSC_EXPERTS_POWER, .exponent = 0.75},
                        .utilization = 0.9};
}

bool dsc_roofline_is_bound(const dsc_roofline *r)
{
    return r->engine.bandwidth >= 1 && r->engine.compute >= 1 && r->engine.attention >= 1 &&
           r->engine.tile <= 1 && r->engine.overlap >= 1 && r->overhead_s <= 0 &&
           r->draft_overhead_s <= 0;
}

// --- formats -----------------------------------------------------------------------------------

// The format that is given, or that the shape is published in.
static const dsc_number_format *format_of(const dsc_roofline *r, const dsc_model_shape *s)
{
    size_t count;
    const dsc_number_format *f = dsc_weight_formats(&count);
    if (r->weights)
        return r->weights;
    for (size_t i = 0; s->weights && i < count; i++)
        if (strcmp(f[i].name, s->weights) == 0)
            return &f[i];
    return r->plain;
}

// Of the layers' matrices that are not experts. Quantized checkpoints keep the output matrix and
// the embedding in 16 bits.
static const dsc_number_format *format_of_layers(const dsc_roofline *r, const dsc_model_shape *s)
{
    return s->only_experts && !r->weights ? r->plain : format_of(r, s);
}

static double weight_bytes(const dsc_roofline *r, const dsc_model_shape *s)
{
    const dsc_model_work w = dsc_model_shape_work(s);
    const double layers = w.attention + w.feed_forward + w.first;
    const double experts = (double)s->experts * w.expert * w.expert_layers;
    const double rest = dsc_model_shape_parameters(s) - layers - experts;
    return layers * format_of_layers(r, s)->bytes + experts * format_of(r, s)->bytes +
           fmax(rest, 0) * r->plain->bytes;
}

// --- time --------------------------------------------------------------------------------------

// Bytes to read and seconds to multiply.
typedef struct load {
    double bytes, seconds;
} load;

static void add(load *sum, const dsc_hardware *h, const dsc_number_format *f, double parameters,
                double operations)
{
    sum->bytes += parameters * f->bytes;
    sum->seconds += operations / dsc_hardware_peak(h, f);
}

static double part(const dsc_roofline *r, load x)
{
    const double reads = x.bytes / (r->machine.bandwidth * r->engine.bandwidth);
    const double multiplies = x.seconds / r->engine.compute;
    return fmax(reads, multiplies) + (1 - r->engine.overlap) * fmin(reads, multiplies);
}

// What products with weights have to do in a pass.
typedef struct rows_of_pass {
    double all, logits;        // tokens through the layers, and through the output matrix
    double sequences, of_each; // `all`, as tokens of some sequences: for experts
    bool first;                // the pass of a head that reads the target's states
} rows_of_pass;

static int weights_time(const dsc_roofline *r, const dsc_model_shape *s, rows_of_pass n,
                        double *seconds, dsc_error *err)
{
    const dsc_model_work w = dsc_model_shape_work(s);
    const double layers = w.attention + w.feed_forward + (n.first ? w.first : 0);
    const dsc_hardware *h = &r->machine;
    load x = {0, 0};
    double distinct = 0;
    int rc = DSC_OK;
    if (s->experts)
        rc = dsc_experts_distinct(&r->experts, (double)s->experts, (double)s->experts_per_token,
                                  n.of_each, n.sequences, &distinct, err);
    if (rc)
        return rc;
    add(&x, h, format_of_layers(r, s), layers, 2 * layers * n.all);
    add(&x, h, format_of(r, s), distinct * w.expert * w.expert_layers,
        2 * (double)s->experts_per_token * w.expert * w.expert_layers * n.all);
    add(&x, h, r->plain, w.output, 2 * w.output * n.logits);
    *seconds = part(r, x);
    return DSC_OK;
}

// Query heads in a tile of attention. All heads of latent attention have the same keys.
static double heads_of_tile(const dsc_roofline *r, const dsc_model_shape *s, bool several)
{
    if (s->kind == DSC_MODEL_DEEPSEEK)
        return (double)s->heads;
    return several && !r->machine.packs && !r->engine.packs
               ? 1
               : (double)s->heads / (double)s->kv_heads;
}

// The number of rows of a query head that attention multiplies for `tokens` tokens of a sequence.
static double query_rows(const dsc_roofline *r, const dsc_model_shape *s, double tokens)
{
    const double heads = heads_of_tile(r, s, tokens > 1), tile = r->engine.tile;
    return tile > 1 ? ceil(tokens * heads / tile) * tile / heads : tokens;
}

// Seconds of `batch` sequences of `tokens` tokens after `context`; of a prompt every token sees the
// ones before it, of a draft all.
static double attention_time(const dsc_roofline *r, const dsc_model_shape *s, dsc_pass pass,
                             bool prompt)
{
    const double reach = fmax(pass.context + pass.tokens - 1, 0);
    const double seen = prompt ? pass.context + (pass.tokens + 1) / 2 : reach;
    const double reads = dsc_model_shape_cache(s) * r->cache->bytes * pass.batch * reach /
                         (r->machine.bandwidth * r->engine.bandwidth);
    const double multiplies = dsc_model_shape_attention(s) * pass.batch *
                              query_rows(r, s, pass.tokens) * seen /
                              dsc_hardware_peak(&r->machine, r->plain) / r->engine.attention;
    return fmax(reads, multiplies);
}

static double overhead(const dsc_roofline *r, const dsc_model_shape *s)
{
    return r->engine.pass_s + (double)s->layers * r->engine.layer_s;
}

int dsc_roofline_target(const dsc_roofline *r, dsc_pass pass, double *seconds, dsc_error *err)
{
    const double n = pass.batch * pass.tokens;
    double weights = 0;
    int rc = dsc_roofline_fits(r, pass.batch, pass.context + pass.tokens, err);
    if (!rc)
        rc = weights_time(r, &r->target, (rows_of_pass){n, n, pass.batch, pass.tokens, !pass.again},
                          &weights, err);
    if (!rc)
        *seconds = (weights + attention_time(r, &r->target, pass, false)) / r->machines +
                   (isnan(r->overhead_s) ? overhead(r, &r->target) : r->overhead_s);
    return rc;
}

// A mixed pass through the layers, with logits of `logits` tokens, on one machine.
static int mixed_time(const dsc_roofline *r, const dsc_model_shape *s, const dsc_mixed_pass *p,
                      double logits, double *seconds, dsc_error *err)
{
    const double all = p->decode_tokens + p->prefill_tokens, batch = p->decoding + p->prefilling;
    double weights = 0;
    const int rc = weights_time(r, s, (rows_of_pass){all, logits, batch, all / batch, !p->again},
                                &weights, err);
    *seconds = weights;
    if (p->decoding > 0)
        *seconds += attention_time(r, s,
                                   (dsc_pass){p->decode_tokens / p->decoding,
                                              p->decode_context / p->decoding, p->decoding, false},
                                   false);
    if (p->prefilling > 0)
        *seconds +=
            attention_time(r, s,
                           (dsc_pass){p->prefill_tokens / p->prefilling,
                                      p->prefill_context / p->prefilling, p->prefilling, false},
                           true);
    return rc;
}

// Logits are needed of every decoded token and of the last token of a prompt.
int dsc_roofline_mixed(const dsc_roofline *r, const dsc_mixed_pass *pass, double *seconds,
                       dsc_error *err)
{
    const double batch = pass->decoding + pass->prefilling;
    const double tokens =
        pass->decode_tokens + pass->prefill_tokens + pass->decode_context + pass->prefill_context;
    double time = 0;
    int rc = dsc_roofline_fits(r, batch, tokens / batch, err);
    if (!rc)
        rc = mixed_time(r, &r->target, pass, pass->decode_tokens + pass->prefilling, &time, err);
    if (!rc)
        *seconds =
            time / r->machines + (isnan(r->overhead_s) ? overhead(r, &r->target) : r->overhead_s);
    return rc;
}

// The time of passes as a function of their tokens, for one context and batch.
typedef struct by_tokens {
    double context, batch, compute, once, machines, overhead;
    double weight_reads, layers, layer_peak, output, output_peak;        // the matrices
    double cache, bandwidth, attention, attention_peak, attention_share; // of a token and its reach
    double tile, heads, heads_of_one; // query heads in a tile; in a pass of one token
} by_tokens;

static by_tokens by_tokens_of(const dsc_roofline *r, dsc_pass pass)
{
    const dsc_model_shape *s = &r->target;
    const dsc_model_work w = dsc_model_shape_work(s);
    const dsc_number_format *f = format_of_layers(r, s);
    const double layers = w.attention + w.feed_forward + (pass.again ? 0 : 1) * w.first;
    const double bandwidth = r->machine.bandwidth * r->engine.bandwidth;
    return (by_tokens){
        .context = pass.context,
        .batch = pass.batch,
        .compute = r->engine.compute,
        .once = 1 - r->engine.overlap,
        .machines = r->machines,
        .overhead = isnan(r->overhead_s) ? overhead(r, s) : r->overhead_s,
        .weight_reads = (layers * f->bytes + w.output * r->plain->bytes) / bandwidth,
        .layers = 2 * layers,
        .layer_peak = dsc_hardware_peak(&r->machine, f),
        .output = 2 * w.output,
        .output_peak = dsc_hardware_peak(&r->machine, r->plain),
        .cache = dsc_model_shape_cache(s) * r->cache->bytes * pass.batch,
        .bandwidth = bandwidth,
        .attention = dsc_model_shape_attention(s) * pass.batch,
        .attention_peak = dsc_hardware_peak(&r->machine, r->plain),
        .attention_share = r->engine.attention,
        .tile = r->engine.tile,
        .heads = heads_of_tile(r, s, true),
        .heads_of_one = heads_of_tile(r, s, false),
    };
}

static inline double longer_of(double x, double y)
{
    return x > y ? x : y;
}

static inline double both(const by_tokens *b, double reads, double multiplies)
{
    return longer_of(reads, multiplies) + b->once * (reads > multiplies ? multiplies : reads);
}

// query_rows. The tiles of a sequence fit into an int.
static inline double rows_by_tokens(const by_tokens *b, double tokens)
{
    const double heads = tokens > 1 ? b->heads : b->heads_of_one;
    const double tiles = tokens * heads / b->tile, whole = (double)(int)tiles;
    return b->tile > 1 ? (whole + (tiles > whole)) * b->tile / heads : tokens;
}

// As dsc_roofline_target without experts, with the same operations in the same order.
static inline double time_by_tokens(const by_tokens *b, double tokens)
{
    const double n = b->batch * tokens, reach = b->context + tokens - 1;
    const double after = reach > 0 ? reach : 0;
    const double weights =
        both(b, b->weight_reads,
             (b->layers * n / b->layer_peak + b->output * n / b->output_peak) / b->compute);
    const double attention = longer_of(b->cache * after / b->bandwidth,
                                       b->attention * rows_by_tokens(b, tokens) * after /
                                           b->attention_peak / b->attention_share);
    return (weights + attention) / b->machines + b->overhead;
}

enum { LANES = 8 };

#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
times_by_tokens(const by_tokens *by, double least, double step, size_t count, double *seconds)
{
    const by_tokens b = *by;
    for (size_t i = 0; i < count; i += LANES) {
        double x[LANES];
        for (size_t l = 0; l < LANES; l++)
            x[l] = (double)(int)l;
        for (size_t l = 0; l < LANES; l++)
            x[l] = time_by_tokens(&b, (least + ((double)i + x[l]) * step) / b.batch);
        memcpy(seconds + i, x, (count - i < LANES ? count - i : LANES) * sizeof *x);
    }
}

bool dsc_roofline_targets(const dsc_roofline *r, dsc_pass pass, int64_t least, int64_t step,
                          size_t count, double *seconds)
{
    if (r->target.experts)
        return false;
    const by_tokens b = by_tokens_of(r, pass);
    times_by_tokens(&b, (double)least, (double)step, count, seconds);
    return true;
}

static int check_draft(const dsc_roofline *r, dsc_error *err)
{
    return r->has_draft
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "--cost: the roofline has no draft model, but the method calls one: give "
                          "roofline:TARGET,DRAFT,HARDWARE");
}

static double draft_machines(const dsc_roofline *r)
{
    return r->draft.draft_head ? r->machines : 1;
}

static double draft_overhead(const dsc_roofline *r)
{
    return isnan(r->draft_overhead_s) ? overhead(r, &r->draft) : r->draft_overhead_s;
}

// A draft begins with one token of each sequence, whose logits are needed; the further passes of a
// tree need those of every token.
int dsc_roofline_draft(const dsc_roofline *r, dsc_pass pass, double *seconds, dsc_error *err)
{
    const double n = pass.batch * pass.tokens;
    const rows_of_pass rows = {n, pass.again ? n : pass.batch, pass.batch, pass.tokens,
                               !pass.again};
    double weights = 0;
    int rc = check_draft(r, err);
    if (!rc)
        rc = weights_time(r, &r->draft, rows, &weights, err);
    if (!rc)
        *seconds = (weights + attention_time(r, &r->draft, pass, false)) / draft_machines(r) +
                   draft_overhead(r);
    return rc;
}

int dsc_roofline_first_draft(const dsc_roofline *r, dsc_pass pass, const dsc_mixed_pass *after,
                             double *seconds, dsc_error *err)
{
    dsc_mixed_pass p = *after;
    double time = 0;
    int rc = check_draft(r, err);
    p.again = false;
    if (!r->draft.draft_head || !(p.decode_tokens + p.prefill_tokens > 0)) {
        p.decoding = pass.batch;
        p.decode_tokens = pass.batch * pass.tokens;
        p.decode_context = pass.batch * pass.context;
    }
    if (!rc)
        rc = mixed_time(r, &r->draft, &p, pass.batch, &time, err);
    if (!rc)
        *seconds = time / draft_machines(r) + draft_overhead(r);
    return rc;
}

// --- memory ------------------------------------------------------------------------------------

static const char *name_of(const dsc_model_shape *s)
{
    return s->name ? s->name : "the model";
}

int dsc_roofline_fits(const dsc_roofline *r, double batch, double tokens, dsc_error *err)
{
    const double usable = r->utilization * r->machine.memory;
    double weights = weight_bytes(r, &r->target);
    double cache = dsc_model_shape_cache(&r->target);
    if (r->has_draft) {
        weights += weight_bytes(r, &r->draft);
        cache += dsc_model_shape_cache(&r->draft);
    }
    cache *= r->cache->bytes * batch * tokens;
    if (weights + cache <= usable * r->machines)
        return DSC_OK;
    char cached[80] = "";
    if (cache > 0)
        snprintf(cached, sizeof cached,
                 " and %.1f GB of KV cache (batch size %.6g, %.6g tokens each)", cache / 1e9, batch,
                 tokens);
    return dsc_fail(err, DSC_EUSAGE,
                    "--cost: %.40s needs %.1f GB of weights%s, but %.0f x %s have %.1f GB at "
                    "gpu-memory-utilization=%g: tp=%.0f would hold them, or smaller weights=, kv= "
                    "or batch size",
                    name_of(&r->target), weights / 1e9, cached, r->machines, r->machine.name,
                    usable * r->machines / 1e9, r->utilization, ceil((weights + cache) / usable));
}
