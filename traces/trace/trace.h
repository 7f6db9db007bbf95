// SPDX-License-Identifier: Apache-2.0
// Traces: recorded prompts, outputs and references of a target model, request by request.
//
// A trace is a folder NAME.dst with manifest.json and immutable safetensors shards; see
// draftscope-trace(5). A reader maps one shard at a time, so a trace may be larger than memory.
//
// No argument may be NULL unless its function permits it; a dsc_error always may. Where one is,
// functions with a status return DSC_EUSAGE, counts are 0, pointers NULL, numbers NaN, and other
// functions do nothing. Functions that open something set *out to NULL when they fail.
#ifndef DSC_TRACES_TRACE_H
#define DSC_TRACES_TRACE_H

#include "base/memory.h"
#include "base/sha256.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_TRACE_SCHEMA = 1 };

// The kind of a reference: a document given to the model, or an earlier turn of the conversation.
typedef enum dsc_reference_kind {
    DSC_REFERENCE_DOCUMENT = 0,
    DSC_REFERENCE_TURN = 1,
} dsc_reference_kind;

// Views never own. Token ids are in [0, vocab_size).
typedef struct dsc_token_view {
    const int32_t *id;
    int64_t count;
} dsc_token_view;

typedef struct dsc_text_view {
    const char *bytes; // UTF-8, not NUL-terminated
    int64_t length;
} dsc_text_view;

// The model that a distribution belongs to.
typedef enum dsc_model_side { DSC_SIDE_DRAFT, DSC_SIDE_TARGET, DSC_SIDES } dsc_model_side;

typedef enum dsc_rows_kind {
    DSC_ROWS_NONE,   // not recorded
    DSC_ROWS_LISTED, // the most probable tokens and the total probability of the others
    DSC_ROWS_DENSE,  // all tokens of the vocabulary
} dsc_rows_kind;

// One model's next-token distributions at the output positions of a request. Row j is the
// distribution of the token at position j given the prompt and the output before it, in natural
// logarithms. The probabilities of a row sum to 1 within DSC_ROW_TOLERANCE (BF16: within the
// rounding error of its 8 significant bits); a row that lists every token has no tail.
#define DSC_ROW_TOLERANCE 1e-4
typedef struct dsc_rows {
    dsc_rows_kind kind;
    // LISTED: row j is elements [offset[j], offset[j + 1]) of token and logp.
    const int64_t *offset; // [positions + 1], never decreasing
    const int32_t *token;  // distinct within a row
    const float *logp;     // finite, <= 0. DENSE: [positions][vocab_size], -inf allowed
    const float *tail;     // [positions] ln of the total probability not listed; -inf: none
    // DENSE: one of logp and bf16 is set, the other is NULL.
    const uint16_t *bf16; // [positions][vocab_size], bfloat16
    int64_t vocab_size;
} dsc_rows;

// Accept lengths: the number of draft tokens that would have been accepted, bonus token excluded,
// if a draft had started at an output position (its first token predicts the output token there).
enum { DSC_DRAFTERS_MAX = 16, DSC_DRAFTER_NAME_BYTES = 64 };
typedef struct dsc_drafter_record {
    char name[DSC_DRAFTER_NAME_BYTES]; // 1 to 63 of [A-Za-z0-9_.+-], unique in the trace
    int32_t cap;                       // longest draft, in [1, 65535]; the largest accept length
} dsc_drafter_record;

// The relation between the steps of a recorded run and the output.
typedef enum dsc_steps_kind {
    DSC_STEPS_NONE,   // not recorded
    DSC_STEPS_LOGGED, // as logged: the output may be a different tokenization of the same text
    // The steps wrote the output's tokens in order. The first token may come from the prefill, and
    // the last step may have been cut (EOS token, length limit). So
    //   sum over all steps but the last (accepted + 1) < tokens <= 1 + sum over all (accepted + 1),
    // and only an output of at most one token may have no steps.
    DSC_STEPS_ALIGNED,
} dsc_steps_kind;

// The steps of a request. Each step is one call of the target model.
typedef struct dsc_steps {
    int64_t count;
    const uint16_t *accepted; // [count] draft tokens accepted, bonus excluded
    const uint16_t *drafted;  // [count] >= accepted; NULL: not recorded
    const float *draft_s;     // [count] seconds spent drafting, finite, >= 0; NULL: not recorded
    const float *verify_s;    // [count] seconds spent verifying, finite, >= 0; NULL: not recorded
} dsc_steps;

// Predictions of the models at the output positions, given the prompt and the recorded output
// before each (teacher-forced). NULL: not recorded. n = output.count. See also target_logp and
// draft_logp.
typedef struct dsc_replay {
    const int32_t *argmax[DSC_SIDES]; // [n] the most probable token (any one of several)
    const float *entropy[DSC_SIDES];  // [n] entropy of the distribution, nats, finite, >= 0
    // [n][rank_depth]: element [j][d] is the rank (0: the most probable) of output token j + d
    // among the candidates of a draft that started at position j and has drafted the output's next
    // d tokens. DSC_RANK_NONE: a rank of 65535 or worse, or no such token (j + d >= n).
    const uint16_t *draft_rank;
} dsc_replay;
enum { DSC_RANK_NONE = 65535 };

// Sufficient statistics of the two distributions at the output positions, for k = 1..K drafts,
// where K is statistics_k in [1, DSC_STATISTICS_K_MAX]. NULL: not recorded. Together with
// target_logp and draft_logp they replace the distributions in every replay along the recorded
// output (y: the output's token).
enum { DSC_STATISTICS_K_MAX = 64 };
typedef struct dsc_sufficient {
    const float *kseq;      // [n][K][2] rho in [1, k], beta in [0, 1] of theory/kseq.h
    const float *specinfer; // [n][K + 1] c_1 = 0 .. c_{K+1} of theory/specinfer.h, never decreasing
    const float *otm;       // [n][K (K + 3) / 2] dsc_otm_sampler_survivors at y, [0..1], .., [0..K]
} dsc_sufficient;

// The distribution [0..k] of k drafts at position j in dsc_sufficient.otm; 1 <= k <= K.
static inline const float *dsc_sufficient_otm(const dsc_sufficient *s, int K, int64_t j, int k)
{
    return s->otm + j * (K * (K + 3) / 2) + (k - 1) * (k + 2) / 2;
}

// The draft model's continuation from each position and the target's predictions along it, where G
// is rollout_length in [1, 65535]. NULL: not recorded. Both tokens [j][i] follow the output before
// j and the first i tokens of the continuation.
typedef struct dsc_rollouts {
    const int32_t *draft;  // [n][G] the draft model's token
    const int32_t *target; // [n][G + 1] the target's token
} dsc_rollouts;

// The candidates of a dynamic draft tree (sim/draft/dynamic_tree.c) that starts at each position,
// with S = candidate_steps passes, candidate_topk candidates expanded and C = candidate_nodes
// recorded: the best ones of all levels in the order of their path's probability, so that parents
// come first. NULL: not recorded. They are real tokens of the draft model, which need not agree
// with the output.
typedef struct dsc_tree_candidates {
    const int32_t *token; // [n][C]; 0 where there is no candidate
    // [n][C] 0: follows the output before the position; i: follows the i-th candidate, which is
    // earlier; DSC_PARENT_NONE: there is no such candidate, nor are there further ones.
    const uint16_t *parent;
    const float *logp;      // [n][C] ln of the draft probability of the path; -inf: no candidate
    const uint16_t *scored; // [n][S] tokens in each pass of the draft model; 0: no such pass
} dsc_tree_candidates;
enum { DSC_PARENT_NONE = 65535 };

// The marginals of a parallel drafter at each position: the distributions of the token at the
// position and at the following D - 1 ones, given the output before the position and none of the
// tokens between; D = marginal_offsets, M = marginal_top. NULL: not recorded.
typedef struct dsc_marginals {
    const int32_t *token; // [n][D][M] the most probable tokens, in that order; distinct
    const float *logp;    // [n][D][M] ln p of each, never increasing; -inf allowed
    const float *logp_y;  // [n][D] ln p of the output's token there; any value after the end
} dsc_marginals;

// One request, valid while its shard is open.
typedef struct dsc_request {
    int64_t index;                   // 0-based in the whole trace
    dsc_text_view id;                // unique in the trace: the id in the source, or a number
    dsc_token_view prompt;           // tokens, BOS included when the tokenizer adds one
    dsc_token_view output;           // tokens, EOS included when the model generated it
    int64_t references;              // number of reference texts
    const int64_t *reference_offset; // [references + 1] into reference_token
    const int32_t *reference_token;  // tokens of the shard's references
    const uint8_t *reference_kind;   // [references] dsc_reference_kind
    const float *target_logp; // [output.count] ln p_target(output token), or NULL: not recorded
    const float *draft_logp;  // [output.count] ln p_draft(output token), -inf allowed; or NULL
    dsc_text_view prompt_text, output_text;   // as in the source, or {NULL, 0}: not recorded
    const int64_t *reference_text_offset;     // [references + 1] into reference_text, or NULL
    const char *reference_text;               // UTF-8 of the shard's references, or NULL
    dsc_text_view metadata;                   // one JSON object, or length 0
    dsc_rows rows[DSC_SIDES];                 // use dsc_request_row
    const uint16_t *accept[DSC_DRAFTERS_MAX]; // [drafters][output.count] in [0, cap]
    dsc_steps steps;
    dsc_replay replayed;
    dsc_sufficient sufficient;
    dsc_rollouts rollouts;
    dsc_tree_candidates candidates;
    dsc_marginals marginals;
} dsc_request;

// Tokens of reference r of a request.
static inline dsc_token_view dsc_request_reference(const dsc_request *q, int64_t r)
{
    dsc_token_view view;
    view.id = q->reference_token + q->reference_offset[r];
    view.count = q->reference_offset[r + 1] - q->reference_offset[r];
    return view;
}

// One distribution.
typedef struct dsc_row {
    const int32_t *token; // [count] distinct; NULL: dense, element i is of token i
    const float *logp;    // [count], or NULL: bf16. Use dsc_row_logp
    const uint16_t *bf16; // [count], or NULL
    int64_t count;        // listed tokens; dense: the vocabulary
    float tail;           // ln of the total probability not listed; -inf: none
} dsc_row;

// The distribution at an output position; false when none is recorded, or there is no such position
// or side. Its views live as long as those of q.
DSC_API bool dsc_request_row(const dsc_request *q, dsc_model_side side, int64_t position,
                             dsc_row *out);
// ln p of element i, 0 <= i < count; NaN for any other.
DSC_API float dsc_row_logp(const dsc_row *r, int64_t i);
// Writes the probabilities as recorded (not divided by their sum) to dist[vocab_size], with 0 for
// tokens that are not listed, and returns the total probability of these. NaN: the row has a token
// outside the vocabulary, and dist is incomplete.
DSC_API double dsc_row_dist(const dsc_row *r, int32_t vocab_size, double *dist);

// The name of recorded distributions in the manifest's list: "draft_rows", "target_rows_dense" and
// so on; NULL for DSC_ROWS_NONE.
DSC_API const char *dsc_rows_name(dsc_model_side side, dsc_rows_kind kind);

// The description of a trace. A reader fills in all of it, and its strings are owned by the trace.
// A writer reads everything but the counts and the hash, which it determines itself.
typedef struct dsc_trace_info {
    int64_t requests, prompt_tokens, output_tokens, reference_tokens, references;
    int64_t max_prompt_tokens, max_output_tokens;
    const char *tokenizer_name;            // never NULL
    char tokenizer_sha256[DSC_SHA256_HEX]; // or "": unknown
    int32_t vocab_size;                    // every token id is below this
    int32_t eos_token;                     // or -1: unknown
    // Every field from here on is recorded for all requests or for none.
    bool has_text, has_target_logp;
    dsc_rows_kind rows[DSC_SIDES];
    bool has_draft_logp, has_argmax[DSC_SIDES], has_entropy[DSC_SIDES], has_draft_rank;
    bool has_kseq, has_specinfer, has_otm, has_rollout[DSC_SIDES];
    bool has_candidates, has_marginals;
    dsc_steps_kind steps;
    bool has_step_drafted, has_step_draft_s, has_step_verify_s; // require steps
    int32_t rank_depth;     // [1, 65535] when has_draft_rank, else 0
    int32_t statistics_k;   // K when any of kseq, specinfer, otm; else 0
    int32_t rollout_length; // G when any rollout; else 0
    // S, children of a candidate, and C of dsc_tree_candidates; D and M of dsc_marginals; else 0
    int32_t candidate_steps, candidate_topk, candidate_nodes;
    int32_t marginal_offsets, marginal_top;
    int32_t drafters; // number of drafters with accept lengths, <= DSC_DRAFTERS_MAX
    dsc_drafter_record drafter[DSC_DRAFTERS_MAX];
    const char *format;        // source format ("llma", "jsonl")
    const char *semantics;     // "paper" or "code": how the import read its source
    const char *provenance;    // JSON object: version, command, hashed sources
    char hash[DSC_SHA256_HEX]; // SHA-256 over the shard hashes; it identifies the content
} dsc_trace_info;

// Name i = 0, 1, ... in the manifest's list of recorded fields, or NULL at the end.
DSC_API const char *dsc_trace_recorded(const dsc_trace_info *info, int i);
// The parameters of the recorded fields as a JSON object, as in the manifest (draftscope-trace(5));
// {} when no field has any. *out is owned by the caller.
DSC_API int dsc_trace_parameters(char **out, const dsc_trace_info *info, dsc_error *err);

typedef struct dsc_trace dsc_trace;
typedef struct dsc_shard dsc_shard;

// Reads and checks the manifest of folder `path`. DSC_EINPUT names the file and the field.
DSC_API int dsc_trace_open(dsc_trace **out, const char *path, dsc_error *err);
DSC_API void dsc_trace_close(dsc_trace *t); // NULL is allowed
DSC_API const dsc_trace_info *dsc_trace_get_info(const dsc_trace *t);
DSC_API const char *dsc_trace_path(const dsc_trace *t);
DSC_API int64_t dsc_trace_shards(const dsc_trace *t);
// Index of the first request of shard s: 0 for s < 0, the number of requests for s >= shards.
DSC_API int64_t dsc_trace_first_request(const dsc_trace *t, int64_t s);

// Maps shard s and checks every column against the manifest and against the other columns: offsets
// sorted and complete, ids inside the vocabulary, log-probabilities finite and <= 0, kinds known,
// lengths, ranks, times and statistics in their ranges. UTF-8 and the sums of distributions are
// checked by dsc_trace_verify. DSC_EINPUT names file, tensor and element. t must outlive *out.
DSC_API int dsc_shard_open(dsc_shard **out, const dsc_trace *t, int64_t s, dsc_error *err);
DSC_API void dsc_shard_close(dsc_shard *s); // NULL is allowed
// DSC_EINPUT when the shard's file has changed since it was opened: by its size, its time of
// modification, or another file under its name. Call it where the work on the shard ends.
DSC_API int dsc_shard_check(const dsc_shard *s, dsc_error *err);
DSC_API int64_t dsc_shard_requests(const dsc_shard *s);
// Request i of the shard, 0 <= i < requests; all zero for any other. Its views point into the
// mapping.
DSC_API void dsc_shard_request(const dsc_shard *s, int64_t i, dsc_request *out);
// Calls `visit` for every request of the trace in order, and dsc_shard_check for every shard; q is
// valid during the call. A nonzero result ends the walk and is returned.
typedef int (*dsc_request_visitor)(void *context, const dsc_request *q, dsc_error *err);
DSC_API int dsc_trace_each(const dsc_trace *t, dsc_request_visitor visit, void *context,
                           dsc_error *err);
// Bytes of the shard's tensors that belong to field dsc_trace_recorded(info, i).
DSC_API int64_t dsc_shard_recorded_bytes(const dsc_shard *s, int i);
// The number of tensors in the shard that this version does not support or that the manifest does
// not list as recorded. They are ignored.
DSC_API int64_t dsc_shard_unknown(const dsc_shard *s);

// Reads everything and checks the shard hashes, all that dsc_shard_open checks, that text is UTF-8
// and metadata are JSON objects, that distributions list no token twice and sum to 1, that aligned
// steps fit their output, that ids are unique (memory: all ids), and the maxima of the manifest.
// Fails at the first defect (DSC_EINPUT). dsc_trace_open checks the manifest's own hash.
DSC_API int dsc_trace_verify(const dsc_trace *t, dsc_error *err);

// --- writing -------------------------------------------------------------------------------

typedef struct dsc_trace_writer dsc_trace_writer;

// One request to be written. The writer copies everything. A member is used when the writer's
// dsc_trace_info has its field; shapes and ranges are those of dsc_request.
typedef struct dsc_request_input {
    dsc_text_view id;
    dsc_token_view prompt, output;
    dsc_text_view prompt_text, output_text;
    int64_t references;
    const dsc_token_view *reference;     // [references]
    const dsc_text_view *reference_text; // [references], with has_text
    const dsc_reference_kind *kind;      // [references]
    const float *target_logp;
    dsc_text_view metadata;   // JSON object or length 0
    dsc_rows rows[DSC_SIDES]; // dense rows may be F32 or BF16
    const float *draft_logp;
    const uint16_t *accept[DSC_DRAFTERS_MAX];
    dsc_steps steps;
    dsc_replay replayed;
    dsc_sufficient sufficient;
    dsc_rollouts rollouts;
    dsc_tree_candidates candidates;
    dsc_marginals marginals;
} dsc_request_input;

// Starts the trace `path`, NAME.dst, in the folder NAME.dst.tmp next to it; files that a killed run
// left there are removed. Once a shard is finished, that folder can be opened as a trace of the
// requests so far. *info is copied with its strings; its counts and hash are ignored. format,
// semantics and provenance may be NULL. `path` may end in slashes.
// With `force`, the commit replaces an existing trace. DSC_EUSAGE: the name exists and `force` is
// false, or it is not a folder with the files of a trace only. DSC_EIO: the folder cannot be made.
// A shard is complete when it has `shard_tokens` tokens (prompt, output and references), or 32
// bytes of columns per such token. A background thread writes it while the next one is filled, so
// memory is bounded by two shards, two requests and the ids. shard_tokens = 0 selects the default:
// shards of a million tokens or 64 MB of columns, which are hashed and added to the trace eight at
// a time (hashing eight together takes a third of the time).
DSC_API int dsc_trace_writer_open(dsc_trace_writer **out, const char *path,
                                  const dsc_trace_info *info, bool force, int64_t shard_tokens,
                                  dsc_error *err);
// Appends to the trace `path`, which does not change until the commit: new shards are added, then
// one rename replaces the manifest. *info must agree with the trace in tokenizer, columns,
// parameters and the order of drafters. DSC_EUSAGE names the difference, or reports that another
// run is writing to the trace. All shards are read, for the ids. The provenance given at the commit
// is added to the list "appended" of the trace's own.
DSC_API int dsc_trace_writer_append(dsc_trace_writer **out, const char *path,
                                    const dsc_trace_info *info, int64_t shard_tokens,
                                    dsc_error *err);
// Adds a request. DSC_EINPUT: token outside the vocabulary; invalid UTF-8, log-probability,
// distribution or metadata; duplicate id. DSC_EUSAGE: missing pointers or negative lengths. In both
// cases nothing was added and the writer can be used further. DSC_EIO: this shard or the previous
// one could not be written; the writer can only be aborted, which then keeps NAME.dst.tmp with the
// finished shards.
DSC_API int dsc_trace_writer_add(dsc_trace_writer *w, const dsc_request_input *q, dsc_error *err);
// Ends the current shard if it has a request. DSC_EIO as above.
DSC_API int dsc_trace_writer_cut(dsc_trace_writer *w, dsc_error *err);
// Writes the last shard and the manifest, syncs, and gives the folder its final name. `provenance`
// (a JSON object), unless NULL, replaces the one given at open. Frees w, also on failure. After a
// failure the final name is unchanged (free, or the former trace), and the finished shards are kept
// in NAME.dst.tmp, which the message names.
DSC_API int dsc_trace_writer_commit(dsc_trace_writer *w, const char *provenance, dsc_error *err);
// Removes what was written, unless writing itself failed (see above). NULL is allowed.
DSC_API void dsc_trace_writer_abort(dsc_trace_writer *w);

#ifdef __cplusplus
}
#endif

#endif
