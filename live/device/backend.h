// SPDX-License-Identifier: Apache-2.0
// A device: its memory, the operations of a forward pass, and operations on distributions. There
// are two implementations: live/device/backend_cpu.c, which is the specification, and
// live/device/cuda/. A backend is one stream of work: calls take effect in order, and have taken
// effect after live_pass_type.wait. One thread uses it at a time; different backends are
// independent (PEARL runs two at once).
//
// Addresses of device memory are plain pointers that the host never dereferences. Activations are
// row-major, one row per token of the pass, and F32 except where live_product and live_attention
// allow the dtype of the KV cache.
#ifndef DSC_LIVE_BACKEND_H
#define DSC_LIVE_BACKEND_H

#include "theory/rows/overlap.h"
#include "traces/files/safetensors.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct live_backend live_backend;

typedef enum live_norm { LIVE_RMS_NORM, LIVE_LAYER_NORM } live_norm;

typedef enum live_activation {
    LIVE_SILU_GATE, // silu(gate) * up
    LIVE_GELU,      // x/2 (1 + erf(x / sqrt 2))
    LIVE_GELU_TANH, // its tanh approximation (gelu_new)
    LIVE_SILU,
    LIVE_GELU_TANH_GATE, // the tanh approximation of gelu(gate), times up
} live_activation;

// Whether the activation multiplies the up projection by a gate.
static inline bool live_is_gated(live_activation a)
{
    return a == LIVE_SILU_GATE || a == LIVE_GELU_TANH_GATE;
}

// Weights [rows][cols], row-major: F32, F16 or BF16.
typedef struct live_matrix {
    void *data;
    dsc_dtype dtype;
    int64_t rows, cols;
} live_matrix;

// KV cache: a pair of arrays [sequences][slots][kv_heads * head] per layer, F32 on a CPU, in the
// weights' dtype on a GPU. A slot stores one token: committed tokens are in slots 0, 1, ... by
// position, and the nodes of a draft follow.
typedef struct live_cache {
    void **k, **v; // [layers], in host memory
    dsc_dtype dtype;
    int64_t layers, sequences, slots, width; // width: kv_heads * head
} live_cache;

// How tokens are sampled from rows of logits (theory/rows/softmax.h).
typedef struct live_sampling {
    double temperature; // 0: argmax
    int64_t top_k;      // 0: all tokens
    double top_p;       // 1: all tokens
} live_sampling;

// The tokens of a row that top-k and top-p keep, as in dsc_softmax: those with a logit above
// `least`, and those equal to it with an id up to `last`.
typedef struct live_kept {
    float least; // -inf: all tokens
    int32_t last;
} live_kept;

// Results of a pass for its rows of logits; `blocks` of DSC_SOFTMAX_BLOCK tokens.
typedef struct live_summary {
    double *sum;      // [rows][blocks] of e^((logit - largest) / temperature) over kept tokens
    live_kept *kept;  // [rows]
    float *max_logit; // [rows][blocks] over all tokens
    int32_t *best;    // [rows] the most probable token; -1: the row contains NaN
    float *margin;    // [rows] lead of its logit over the second largest
    size_t bytes;     // of all arrays, which are adjacent
} live_summary;

// A row of logits on the device and the distribution that it defines: a kept token x has the mass
// scale e^((logit - most) by), or 0 if that is below e^-DSC_SOFTMAX_LEAST.
typedef struct live_dist_row {
    const float *logits; // NULL: every token has mass 0
    double most, by, scale;
    live_kept kept;
} live_dist_row;

// Draft and target distribution of one next token.
typedef struct live_dists {
    live_dist_row draft, target;
} live_dists;

// Masses and numbers of the tokens of positive mass, by ratio slot (theory/rows/ratio_slot.h).
typedef struct live_masses {
    uint64_t draft[DSC_RATIO_SLOTS], target[DSC_RATIO_SLOTS]; // units
    uint32_t count[DSC_RATIO_SLOTS];
} live_masses;

// A query for the masses of a token in pair number `dists`.
typedef struct live_mass_query {
    int32_t token, dists;
} live_mass_query;

// A comparison of pairs of distributions. Results are in memory of alloc_host.
typedef struct live_comparison {
    const live_dists *dists; // [pairs]
    int64_t pairs;
    live_masses *masses;          // [pairs] result, or NULL: not needed
    const live_mass_query *query; // [queries]
    dsc_mass *mass;               // [queries] result
    int64_t queries;
} live_comparison;

// The residual that a rule leaves of a target distribution, and a token sampled from it.
typedef struct live_residual_sample {
    double sum;
    int32_t token; // -1: the residual is empty
} live_residual_sample;

enum { LIVE_OWN = 64 }; // tokens whose residual is given explicitly, at most

// One forward pass, in host memory; valid until the pass has ended. There are `tokens` tokens in
// each of `sequences` sequences, which differ in their tokens and lengths only (more than one:
// `live profile` only); rows of activations are in order of sequence, then token. Sequences with
// other numbers of tokens are further batches of the same pass, in a list: their sequences follow
// in the KV cache and their rows in the activations. `output` and `dist` are those of the first
// batch, for the rows of all; a list has no `feature`, because heads have one sequence.
typedef struct live_batch live_batch;
struct live_batch {
    int64_t tokens, sequences;
    const int32_t *token; // [sequences * tokens]
    // [sequences] that the positions, slots, prefix and `used` below are to be increased by; NULL:
    // by 0.
    const int32_t *shift;
    const int32_t *position; // [tokens] in the text
    const int32_t *slot;     // [tokens] slots of the KV cache that are written
    int64_t prefix;          // every token attends to slots [0, prefix)
    // Bit j of row i of mask[tokens][words]: token i attends to slot prefix + j. The bit of its own
    // slot is set; no bit at or beyond slot `used` is.
    const uint64_t *mask;
    // The same for attention with a window, in a model of which some layers have none; NULL:
    // `mask`.
    const uint64_t *window_mask;
    int64_t words, used;   // used: slots of the cache in use, including this pass
    const int32_t *output; // [outputs] rows of activations that logits are computed for
    int64_t outputs;
    const int32_t *feature; // [tokens] rows of the features that an EAGLE head reads, or NULL
    // The sampling (temperature > 0) that rows of logits are summarized for; NULL: not summarized.
    const live_sampling *dist;
    const live_batch *next; // NULL: the last batch of the pass
};

static inline int64_t live_batch_shift(const live_batch *batch, int64_t sequence)
{
    return batch->shift ? batch->shift[sequence] : 0;
}

// Rows of activations of the pass that begins with `batch`.
static inline int64_t live_batch_rows(const live_batch *batch)
{
    int64_t rows = 0;
    for (; batch; batch = batch->next)
        rows += batch->tokens * batch->sequences;
    return rows;
}

// Lists of a batch that rows are gathered and scattered by.
typedef enum live_index { LIVE_OUTPUTS, LIVE_SLOTS, LIVE_FEATURES } live_index;

typedef struct live_attention {
    int64_t heads, kv_heads, head;
    double scale;   // of the scores
    int64_t window; // 0: all slots
    bool stored;    // the result has the cache's dtype, which products read, instead of F32
} live_attention;

typedef struct live_rotation {
    const float *inv_freq;        // [rotated / 2] on the device
    int64_t rotated;              // 0: none
    const float *q_norm, *k_norm; // [head] RMS weights on the device, or NULL
    double epsilon;
} live_rotation;

// A norm of rows, with weights on the device.
typedef struct live_norming {
    const float *weight, *bias; // [width]; weight NULL: no norm (live_product); bias may be NULL
    live_norm kind;
    double epsilon;
} live_norming;

// A product with a weight matrix, with the norm before it and the activation after it:
//     out = act(norm(in) w^T + bias)    or    out += norm(in) w^T + bias
// in[rows][w->cols], out[rows][w->rows]. With a gate the first half of w's rows are the gates,
// the second half the up projection, and out is [rows][w->rows / 2]. in and out do not
// overlap. Sums are accumulated in F32 or better. DSC_EUSAGE: `activate` and `add` together, or an
// out_dtype other than F32 without `activate`.
typedef struct live_product {
    const live_matrix *w;
    const float *bias; // [w->rows] or NULL
    live_norming norm;
    bool activate; // by `activation`
    live_activation activation;
    bool add;
    dsc_dtype in_dtype, out_dtype; // F32 or a dtype that live_memory_type.cache_dtype returns
    // Memory of the caller, which a device may leave unused.
    void *normed; // [rows][w->cols] F32, required with a norm
    float *wide;  // [rows][w->rows], required with an activation
} live_product;

// A feed-forward of several experts, of which each token uses some. Expert x has the rows from x *
// (rows / experts) on of `up` and `down`.
typedef struct live_experts {
    const live_matrix *router; // [experts][hidden]
    const live_matrix *up,
        *down;             // [experts * 2 width][hidden] gates then up; [experts * hidden][width]
    int64_t experts, used; // 1 <= used <= experts
    bool normalized;       // the weights of the used experts sum to 1
    live_activation activation; // with a gate
    live_norming norm;          // of the input
} live_experts;

// Measured rates of a device.
typedef struct live_probe {
    double read_bytes_s; // reading a large array once
    double flops_s;      // multiplying large matrices of the dtype, 2 m n k per product
} live_probe;

// A fixed sequence of operations on fixed addresses: those of a room (live/model/model.h), in the
// variant that the model numbers.
typedef struct live_pass_key {
    const void *room;
    int variant;
} live_pass_key;

// `out` is the address of a pointer to objects of any type; memory is zeroed. NULL may be freed.
typedef struct live_memory_type {
    int (*alloc)(live_backend *b, void *out, size_t bytes, dsc_error *err); // DSC_ENOMEM
    void (*free)(live_backend *b, void *p);
    // Pinned host memory, from and to which the device copies directly. DSC_ENOMEM.
    int (*alloc_host)(live_backend *b, void *out, size_t bytes, dsc_error *err);
    void (*free_host)(live_backend *b, void *p);
    // From and to host memory; complete when they return.
    int (*upload)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
    int (*download)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
    // Within the device, in order with the passes.
    int (*copy)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
    // To memory of alloc_host, in order with the operations of a pass or between passes; complete
    // after `wait`.
    int (*fetch)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
    // `count` numbers of `dtype`, uniform in [-limit, limit): a function of (seed, stream, index).
    int (*fill)(live_backend *b, void *p, dsc_dtype dtype, int64_t count, uint64_t seed,
                uint64_t stream, double limit, dsc_error *err);
    dsc_dtype (*cache_dtype)(dsc_dtype weights); // of the KV cache
    int (*available)(live_backend *b, double *free_bytes, double *total_bytes, dsc_error *err);
} live_memory_type;

// Operations are called between begin and end; rows = live_batch_rows unless a comment differs.
typedef struct live_pass_type {
    // Starts a pass. *replayed: the device has recorded a pass of (key, shape of the batch) and
    // runs it with the new lists (CUDA graphs); then only `end` follows. If an operation fails, do
    // not call `end`: the device discards the pass.
    int (*begin)(live_backend *b, live_pass_key key, const live_batch *batch, bool *replayed,
                 dsc_error *err);
    int (*end)(live_backend *b, dsc_error *err);
    int (*wait)(live_backend *b, dsc_error *err); // until all previous calls have taken effect

    // out[row * stride ..+cols] = scale * table[token of the row] (+ positions[its position], or
    // NULL).
    int (*embed)(live_backend *b, float *out, int64_t stride, const live_matrix *table,
                 const live_matrix *positions, float scale, dsc_error *err);
    // out row i = in row list[i], each of `width` numbers; strides are in numbers. LIVE_OUTPUTS,
    // LIVE_FEATURES.
    int (*gather)(live_backend *b, float *out, int64_t out_stride, const float *in,
                  int64_t in_stride, int64_t width, live_index list, dsc_error *err);
    // out row list[i] = in row i. LIVE_SLOTS.
    int (*scatter)(live_backend *b, float *out, const float *in, int64_t width, live_index list,
                   dsc_error *err);
    // out[rows][width] = norm of in[rows][width]; out may be in.
    int (*norm)(live_backend *b, float *out, const float *in, const live_norming *n, int64_t rows,
                int64_t width, dsc_error *err);
    // in[rows], out[rows]: see live_product.
    int (*product)(live_backend *b, void *out, const void *in, int64_t rows, const live_product *p,
                   dsc_error *err);
    // out[rows][hidden] += the weighted outputs of the experts that have the largest probabilities
    // for norm(in)[rows][hidden]. A weight is the probability, a softmax over the router's logits,
    // or that over the sum of the used ones. NULL: the device does not run experts.
    int (*experts)(live_backend *b, float *out, const float *in, int64_t rows,
                   const live_experts *e, dsc_error *err);
    // qkv[rows][(heads + 2 kv_heads) * head]: norms and rotates queries and keys (pairs (i, i +
    // rotated / 2)), leaves the queries in place and writes the slots of `layer` in the KV
    // cache.
    int (*rotate)(live_backend *b, float *qkv, const live_rotation *r, const live_attention *a,
                  const live_cache *cache, int64_t layer, dsc_error *err);
    // out[rows][heads * head], F32 unless a->stored, from the queries in qkv and the cache: softmax
    // over the slots that the batch lets each token attend to. With a window, a token at position p
    // attends only to slots > p - window of the prefix (whose slots are positions); window_mask, or
    // else the mask, already excludes the others.
    int (*attend)(live_backend *b, void *out, const float *qkv, const live_attention *a,
                  const live_cache *cache, int64_t layer, dsc_error *err);
    int (*add)(live_backend *b, float *out, const float *in, int64_t count, dsc_error *err);
    // out[rows][width] = in[rows][in_width] at the columns that column[width] on the device gives;
    // -inf where it gives -1.
    int (*spread)(live_backend *b, float *out, const float *in, const int32_t *column, int64_t rows,
                  int64_t in_width, int64_t width, dsc_error *err);
    // For each row of logits[rows][vocab]: the first largest logit's token into token[rows] and its
    // lead over the second largest (0 if vocab is 1) into margin[rows], both on the device. A row
    // with NaN gets token -1.
    int (*select)(live_backend *b, int32_t *token, float *margin, const float *logits, int64_t rows,
                  int64_t vocab, dsc_error *err);
    // Computes s->kept, sum and max_logit on the device for logits[rows][vocab] and the batch's
    // distribution, from s->best. A row whose best is -1 or whose largest logit is infinite is left
    // out: it keeps all tokens, with sums and largest logits of 0. DSC_EUSAGE: the batch has no
    // distribution.
    int (*summarize)(live_backend *b, const live_summary *s, const float *logits, int64_t rows,
                     int64_t vocab, dsc_error *err);
    // Between passes, in sequence 0 and all layers: moves the tokens in slots from[0, count)
    // (ascending, from[i] >= to + i) to slots to, to + 1, ...
    int (*move)(live_backend *b, const live_cache *cache, const int32_t *from, int64_t count,
                int64_t to, dsc_error *err);
} live_pass_type;

// Overlap of two distributions, between passes. Results go to memory of alloc_host and are complete
// after `wait`.
typedef struct live_dist_type {
    int (*compare)(live_backend *b, const live_comparison *c, int64_t vocab, dsc_error *err);
    // The masses of all tokens in the slots whose bit is set in wanted[DSC_RATIO_SLOTS / 64], into
    // out[count] in any order; `count` is their number (live_masses.count).
    int (*list)(live_backend *b, dsc_mass *out, const live_dists *dists, const uint64_t *wanted,
                int64_t count, int64_t vocab, dsc_error *err);
    // The sum of a residual with at most LIVE_OWN explicit tokens, and its token at u in [0, 1).
    int (*sample_residual)(live_backend *b, live_residual_sample *out, const live_dists *dists,
                           const dsc_residual *residual, double u, int64_t vocab, dsc_error *err);
} live_dist_type;

typedef struct live_backend_type {
    const char *name; // "cpu", "cuda"
    live_memory_type memory;
    live_pass_type pass;
    live_dist_type dist;
    int (*probe)(live_backend *b, dsc_dtype dtype, live_probe *out, dsc_error *err);
    void (*close)(live_backend *b);
} live_backend_type;

// Instances embed it as their first member.
struct live_backend {
    const live_backend_type *type;
    char device[128]; // "cpu", "cuda:0 NVIDIA H200", "cuda:0 NVIDIA H200 graphs=0"
    int threads;      // of a CPU; may be changed between passes
    bool invariant;   // the result of a row does not depend on the other rows of a pass
    bool on_host;     // the host can read memory of `alloc` after `wait`
    bool replays;     // records passes and replays them
    // Called before a pass, and between its layers where the host computes them: nonzero ends the
    // pass with DSC_EINTERRUPT. NULL: passes end by themselves.
    int (*stop)(void);
};

// DSC_EUSAGE unless `device` is a name that live_backend_open takes, of a device here or elsewhere.
int live_backend_check(const char *device, dsc_error *err);

// `device`: "auto" (the first GPU, else the CPU), "cpu", or "cuda". After "cuda:" come, separated
// by commas, a number (the device; 0) and switches, which change how a GPU works, but no result:
//     overlap=0      launches kernels one after the other (programmatic dependent launch is off)
//     graphs=0       launches every pass anew instead of replaying a recorded graph
//     prefetch=MB    of weights that a product requests while the operation before it runs (16);
//                    with 0, attention requests nothing of the KV cache either
//     carveout=P     percent of the L1 cache that kernels prefer as shared memory (CUDA's choice)
// threads >= 1, for the CPU. DSC_EABSENT: this build has no CUDA, there is no driver, or no such
// device, or it cannot be used, as the message explains. DSC_EUSAGE: another word or value. What
// fails after that is DSC_ENOMEM or DSC_EDEVICE. *out is owned by the caller: (*out)->type->close.
int live_backend_open(live_backend **out, const char *device, int threads, bool invariant,
                      dsc_error *err);
int live_backend_cpu(live_backend **out, int threads, bool invariant, dsc_error *err);

enum { LIVE_CUDA_PREFETCH = 16 }; // MB; more would evict each other from the L2 cache
typedef struct live_cuda_settings {
    int device;
    int overlap, graphs; // 0 or 1
    int prefetch;        // MB
    int carveout;        // percent; -1: CUDA decides
} live_cuda_settings;
DSC_API int live_backend_cuda(live_backend **out, const live_cuda_settings *settings,
                              bool invariant, dsc_error *err);
DSC_API int live_cuda_devices(void); // 0: none, or a build without CUDA
// Writes name and memory of a device for `live list`. false: there is none.
DSC_API bool live_cuda_describe(int device, char *line, size_t bytes);

// out[rows][w->rows] = in[rows][w->cols] times w transposed, + bias[w->rows] or NULL, + out when
// `add`, all in F32.
static inline int live_matmul(live_backend *b, float *out, const live_matrix *w, const float *bias,
                              const float *in, int64_t rows, bool add, dsc_error *err)
{
    live_product p = {};
    p.w = w;
    p.bias = bias;
    p.add = add;
    p.in_dtype = p.out_dtype = DSC_F32;
    return b->type->pass.product(b, out, in, rows, &p, err);
}

#ifdef __cplusplus
}
#endif

#endif
