// SPDX-License-Identifier: Apache-2.0
// A device: its memory and the operations of a forward pass, about a dozen. Two implement it,
// live/device/backend_cpu.c, the specification, and live/device/cuda/. A backend is one stream of
// work: what is called on it happens in order, and after live_backend_type.wait it has happened. It
// is used by one thread at a time; different backends are independent (PEARL runs two at once).
//
// Addresses of device memory are plain pointers that the host never follows. Activations are
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
} live_activation;

// Weights [rows][cols], row-major: F32, F16 or BF16.
typedef struct live_matrix {
    void *data;
    dsc_dtype dtype;
    int64_t rows, cols;
} live_matrix;

// Keys and values: [sequences][slots][kv_heads * head] each, a pair per layer. F32 on a CPU, as the
// weights on a GPU. A slot holds one token; the committed text is in slots 0, 1, ... by position,
// the nodes of a draft behind it.
typedef struct live_cache {
    void **k, **v; // [layers], in host memory
    dsc_dtype dtype;
    int64_t layers, sequences, slots, width; // width: kv_heads * head
} live_cache;

// What is drawn from rows of logits (theory/rows/softmax.h).
typedef struct live_sampling {
    double temperature; // 0: the most probable
    int64_t top_k;      // 0: all
    double top_p;       // 1: all
} live_sampling;

// What top-k and top-p keep of a row of logits, as in dsc_softmax: the tokens above `least`, and of
// those at it the first up to `last`.
typedef struct live_kept {
    float least; // -inf: all
    int32_t last;
} live_kept;

// A row of logits on the device and the distribution that it stands for: token x has the mass scale
// e^((logit - most) by) when it is kept, which is 0 below e^-DSC_SOFTMAX_LEAST.
typedef struct live_dist_row {
    const float *logits; // NULL: no token has any
    double most, by, scale;
    live_kept kept;
} live_dist_row;

// The distributions of one next token.
typedef struct live_dists {
    live_dist_row draft, target;
} live_dists;

// Their masses and tokens by slots (theory/rows/ratio_slot.h), of tokens that have any.
typedef struct live_masses {
    uint64_t draft[DSC_RATIO_SLOTS], target[DSC_RATIO_SLOTS]; // units
    uint32_t count[DSC_RATIO_SLOTS];
} live_masses;

// A token whose masses are wanted, in distributions number `distributions`.
typedef struct live_ask {
    int32_t token, dists;
} live_ask;

// What a rule leaves of a target's distribution, and a token of it.
typedef struct live_left {
    double sum;
    int32_t token; // -1: nothing is left
} live_left;

enum { LIVE_OWN = 64 }; // tokens with a rest of their own, at most

// One forward pass, in host memory; valid until the pass has ended. `tokens` of them in each of
// `sequences` sequences, which are alike but for their tokens (more than one: `live profile` only):
// rows of activations are sequence by sequence.
typedef struct live_batch {
    int64_t tokens, sequences;
    const int32_t *token;    // [sequences * tokens]
    const int32_t *position; // [tokens] in the text
    const int32_t *slot;     // [tokens] of the cache, where keys and values go
    int64_t prefix;          // slots [0, prefix) are seen by every token
    // Beyond, bit j of row i of mask[tokens][words] says whether token i sees slot prefix + j; its
    // own slot's is set. No bit beyond slot `used` - 1 is.
    const uint64_t *mask;
    int64_t words, used;   // used: slots of the cache in use with this pass
    const int32_t *output; // [outputs] rows of the activations whose logits are wanted
    int64_t outputs;
    const int32_t *feature; // [tokens] rows of the features that an EAGLE head is fed, or NULL
    // temperature > 0: rows of logits are summed up for draws from it (summarize); NULL: they are
    // not.
    const live_sampling *dist;
} live_batch;

// Lists of a batch that rows are gathered and scattered by.
typedef enum live_index { LIVE_OUTPUTS, LIVE_SLOTS, LIVE_FEATURES } live_index;

typedef struct live_attention {
    int64_t heads, kv_heads, head;
    double scale;   // of the products
    int64_t window; // 0: all
    bool stored;    // the result has the dtype of the cache, as products read it, instead of F32
} live_attention;

typedef struct live_rotation {
    const float *inv_freq;        // [rotated / 2] on the device
    int64_t rotated;              // 0: none
    const float *q_norm, *k_norm; // [head] RMS weights on the device, or NULL
    double epsilon;
} live_rotation;

// A product with a weight matrix together with the norm before it and the activation after it:
//     out = act(norm(in) w^T + bias)    or    out += norm(in) w^T + bias
// in[rows][w->cols], out[rows][w->rows]. With LIVE_SILU_GATE the first half of w's rows are the
// gates, the second half the up projection, and out is [rows][w->rows / 2]. in and out do not
// overlap. Sums are in F32 or better. DSC_EUSAGE: `activate` and `add` together, or an out_dtype
// other than F32 without `activate`.
typedef struct live_product {
    const live_matrix *w;
    const float *bias;             // [w->rows] or NULL
    const float *norm, *norm_bias; // [w->cols]; norm NULL: no norm; norm_bias may be NULL
    live_norm norm_kind;
    double norm_epsilon;
    bool activate; // by `activation`
    live_activation activation;
    bool add;
    dsc_dtype in_dtype, out_dtype; // F32 or a dtype that live_backend_type.cache_dtype returns
    // Memory of the caller, which a device may leave unused.
    void *normed; // [rows][w->cols] F32, required with a norm
    float *wide;  // [rows][w->rows], required with an activation
} live_product;

// What a device can do, measured (live_backend_type.probe).
typedef struct live_probe {
    double read_bytes_s; // reading a large array once
    double flops_s;      // multiplying large matrices of the dtype, 2 m n k a product
} live_probe;

typedef struct live_backend_type {
    const char *name; // "cpu", "cuda"

    // --- memory -------------------------------------------------------------------------------
    int (*alloc)(live_backend *b, void **out, size_t bytes, dsc_error *err); // DSC_ENOMEM; zeroed
    void (*free)(live_backend *b, void *p);                                  // NULL allowed
    // From and to host memory; done when they return.
    int (*upload)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
    int (*download)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
    // Within the device, in order with the passes.
    int (*copy)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);
    // Memory of the host that the device copies to without a detour (pinned); zeroed. DSC_ENOMEM.
    int (*alloc_host)(live_backend *b, void **out, size_t bytes, dsc_error *err);
    void (*free_host)(live_backend *b, void *p); // NULL allowed
    // count numbers of `dtype`, uniform in [-limit, limit): a function of (seed, stream, index).
    int (*fill)(live_backend *b, void *p, dsc_dtype dtype, int64_t count, uint64_t seed,
                uint64_t stream, double limit, dsc_error *err);
    dsc_dtype (*cache_dtype)(dsc_dtype weights); // of keys and values
    int (*memory)(live_backend *b, double *free_bytes, double *total_bytes, dsc_error *err);

    // --- a pass -------------------------------------------------------------------------------
    // Starts a pass. *replayed: the device already knows the pass of (owner, shape of the batch)
    // and runs it with the new lists (CUDA graphs); no operation follows then, only `end`. `owner`
    // stands for a fixed sequence of operations on fixed addresses. A pass in which an operation
    // failed is not ended: the device forgets it.
    int (*begin)(live_backend *b, const void *owner, const live_batch *batch, bool *replayed,
                 dsc_error *err);
    int (*end)(live_backend *b, dsc_error *err);
    int (*wait)(live_backend *b, dsc_error *err); // until everything asked for has happened

    // --- operations, between begin and end; rows = tokens * sequences unless a comment differs

    // out[row * stride ..+cols] = table[token of the row] (+ positions[position of it], or NULL).
    int (*embed)(live_backend *b, float *out, int64_t stride, const live_matrix *table,
                 const live_matrix *positions, dsc_error *err);
    // out row i = in row (list[i]), width numbers each, strides in numbers. LIVE_OUTPUTS,
    // LIVE_FEATURES.
    int (*gather)(live_backend *b, float *out, int64_t out_stride, const float *in,
                  int64_t in_stride, int64_t width, live_index list, dsc_error *err);
    // out row (list[i]) = in row i. LIVE_SLOTS.
    int (*scatter)(live_backend *b, float *out, const float *in, int64_t width, live_index list,
                   dsc_error *err);
    // rows x width: RMS or layer norm; bias may be NULL; out may be in.
    int (*norm)(live_backend *b, float *out, const float *in, const float *weight,
                const float *bias, live_norm kind, double epsilon, int64_t rows, int64_t width,
                dsc_error *err);
    // in[rows], out[rows]: see live_product.
    int (*product)(live_backend *b, void *out, const void *in, int64_t rows, const live_product *p,
                   dsc_error *err);
    // qkv[rows][(heads + 2 kv_heads) * head]: norms and rotates queries and keys (pairs (i, i +
    // rotated / 2)), leaves the queries in place and writes keys and values to the slots of
    // `layer`.
    int (*rotate)(live_backend *b, float *qkv, const live_rotation *r, const live_attention *a,
                  const live_cache *cache, int64_t layer, dsc_error *err);
    // out[rows][heads * head], F32 unless a->stored, from the queries in qkv and the cache: softmax
    // over the slots that the batch lets each token attend to. With a window, a token at position p
    // attends only to slots > p - window of the prefix (whose slots are positions); the mask
    // already excludes the others.
    int (*attend)(live_backend *b, void *out, const float *qkv, const live_attention *a,
                  const live_cache *cache, int64_t layer, dsc_error *err);
    int (*add)(live_backend *b, float *out, const float *in, int64_t count, dsc_error *err);
    // Of each of `rows` rows of logits, into token[rows] and margin[rows] on the device: the first
    // largest, and by how much it leads the second (0 when vocab is 1); NaN in the row: token -1.
    int (*select)(live_backend *b, int32_t *token, float *margin, const float *logits, int64_t rows,
                  int64_t vocab, dsc_error *err);
    // Of each of `rows` rows of logits, whose most probable tokens are token[rows] on the device
    // (-1: the row is left out, as is one whose largest logit is infinite), for the distribution of
    // the batch: what it keeps, and by blocks of DSC_SOFTMAX_BLOCK tokens, into sum[rows][blocks]
    // the exponentials e^((logit - most) / temperature) of what is kept and into peak[rows][blocks]
    // the largest logit, kept or not. All on the device. A row that is left out keeps all, with
    // sums and peaks of 0. DSC_EUSAGE: the batch has no distribution.
    int (*summarize)(live_backend *b, live_kept *kept, double *sum, float *peak,
                     const int32_t *token, const float *logits, int64_t rows, int64_t vocab,
                     dsc_error *err);
    // To host memory from alloc_host, in order with the pass; it is there after `wait`. Also
    // outside of a pass.
    int (*fetch)(live_backend *b, void *to, const void *from, size_t bytes, dsc_error *err);

    // --- where two distributions meet, between passes; to host memory from alloc_host, there after
    // `wait` The masses of `pairs` pairs of distributions into masses[pairs] (NULL: not wanted),
    // those of some tokens into asked[asks].
    int (*compare)(live_backend *b, live_masses *masses, dsc_mass *asked, const live_dists *dists,
                   int64_t pairs, const live_ask *ask, int64_t asks, int64_t vocab, dsc_error *err);
    // The masses of all tokens in some slots, bit s of wanted[DSC_RATIO_SLOTS / 64], into
    // out[count] in any order; there are so many (live_masses.count).
    int (*list)(live_backend *b, dsc_mass *out, const live_dists *dists, const uint64_t *wanted,
                int64_t count, int64_t vocab, dsc_error *err);
    // A rest with at most LIVE_OWN own tokens: its sum, and the token at u in [0, 1).
    int (*leave)(live_backend *b, live_left *out, const live_dists *dists,
                 const dsc_residual *residual, double u, int64_t vocab, dsc_error *err);

    // --- between passes -----------------------------------------------------------------------
    // Tokens in slots from[0, count) (ascending, from[i] >= to + i) move to slots to, to + 1, ...,
    // in all layers; of sequence 0.
    int (*move)(live_backend *b, const live_cache *cache, const int32_t *from, int64_t count,
                int64_t to, dsc_error *err);
    int (*probe)(live_backend *b, dsc_dtype dtype, live_probe *out, dsc_error *err);
    void (*close)(live_backend *b);
} live_backend_type;

// Instances embed it as their first member.
struct live_backend {
    const live_backend_type *type;
    char device[64]; // "cpu", "cuda:0 NVIDIA H200"
    int threads;     // of a CPU; may be changed between passes
    // Bytes of weights that a product may prefetch while the operation before it still runs. 0
    // disables prefetching, that of keys and values by attention included.
    int64_t prefetch_bytes;
    bool invariant; // a row's result does not depend on the other rows of a pass
    bool on_host;   // what `alloc` gives can be read as it is, after `wait`
};

// `device`: "auto" (cuda when there is one), "cpu", "cuda", "cuda:N". threads >= 1: of the CPU's
// operations. DSC_EABSENT: CUDA asked for and not built in, no driver, no such device; the message
// says which. DSC_EUSAGE: another word. *out owned by the caller: (*out)->type->close.
int live_backend_open(live_backend **out, const char *device, int threads, bool invariant,
                      dsc_error *err);
int live_backend_cpu(live_backend **out, int threads, bool invariant, dsc_error *err);
int live_backend_cuda(live_backend **out, int device, bool invariant, dsc_error *err);
int live_cuda_devices(void); // 0: none, or built without
// Line i of `live list`: name, memory. false: there is none.
bool live_cuda_describe(int device, char *line, size_t bytes);

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
    return b->type->product(b, out, in, rows, &p, err);
}

#ifdef __cplusplus
}
#endif

#endif
