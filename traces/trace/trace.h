// SPDX-License-Identifier: Apache-2.0
// Traces: what a target model really wrote, request by request, with what it had been given.
//
// A trace is a folder NAME.dst with manifest.json and immutable safetensors shards; see
// draftscope-trace(5). A reader maps one shard at a time, so traces may exceed memory.
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

// What a reference is: a document given to the model, or an earlier turn of the conversation.
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

// Whose row it is.
typedef enum dsc_model_side { DSC_SIDE_DRAFT, DSC_SIDE_TARGET, DSC_SIDES } dsc_model_side;

typedef enum dsc_rows_kind {
    DSC_ROWS_NONE,   // not recorded
    DSC_ROWS_LISTED, // the most probable tokens, and the mass of the others
    DSC_ROWS_DENSE,  // every token of the vocabulary
} dsc_rows_kind;

// One model's rows at the output positions of a request: row j is the distribution of the token at
// position j given the prompt and the output before it, in natural logarithms. The masses of a row
// add up to 1 within DSC_ROW_TOLERANCE (of BF16: within what rounding to 8 bits may do to that); a
// row that lists every token has no tail.
#define DSC_ROW_TOLERANCE 1e-4
typedef struct dsc_rows {
    dsc_rows_kind kind;
    // LISTED: row j is elements [offset[j], offset[j + 1]) of token and logp.
    const int64_t *offset; // [positions + 1], never falls
    const int32_t *token;  // distinct within a row
    const float *logp;     // finite, <= 0. DENSE: [positions][vocab_size], -inf allowed
    const float *tail;     // [positions] ln of the mass that is not listed; -inf: none
    // DENSE: one of logp and bf16, the other is NULL.
    const uint16_t *bf16; // [positions][vocab_size], bfloat16
    int64_t vocab_size;
} dsc_rows;

// Accept lengths: how many tokens of a draft would have been accepted, the bonus token excluded, if
// one had started at an output position (its first token standing for the output's token there).
enum { DSC_DRAFTERS_MAX = 16, DSC_DRAFTER_NAME_BYTES = 64 };
typedef struct dsc_drafter_record {
    char name[DSC_DRAFTER_NAME_BYTES]; // 1 to 63 of [A-Za-z0-9_.+-], unique in the trace
    int32_t cap;                       // tokens of its drafts, in [1, 65535]; no length is above
} dsc_drafter_record;

// What the steps of a recorded run are worth beside the output.
typedef enum dsc_steps_kind {
    DSC_STEPS_NONE,   // not recorded
    DSC_STEPS_LOGGED, // as logged: the output may be another tokenisation of what was written
    // The steps wrote the output's tokens, one step after the other. The first token may have come
    // before them, from the prefill; the last step may have been cut (EOS token, length limit). So
    //   sum over all steps but the last (accepted + 1) < tokens <= 1 + sum over all (accepted + 1),
    // and no output is without steps unless it has at most one token.
    DSC_STEPS_ALIGNED,
} dsc_steps_kind;

// The steps of a request: one call of the target model each.
typedef struct dsc_steps {
    int64_t count;
    const uint16_t *accepted; // [count] drafted tokens that were accepted, bonus excluded
    const uint16_t *drafted;  // [count] >= accepted; NULL: not recorded
    const float *draft_s;     // [count] seconds spent drafting, finite, >= 0; NULL: not recorded
    const float *verify_s;    // [count] seconds spent verifying, likewise
} dsc_steps;

// What the models said at the output positions, given the prompt and the recorded output before
// each (teacher-forced). NULL: not recorded. n = output.count. See also target_logp and draft_logp.
typedef struct dsc_replay {
    const int32_t *argmax[DSC_SIDES]; // [n] the most probable token (of several, one)
    const float *entropy[DSC_SIDES];  // [n] of the distribution, nats, finite, >= 0
    // [n][rank_depth]: element [j][d] is the rank (0: the most probable) of output token j + d
    // among the candidates of a draft that started at position j and drafted the output's d tokens
    // from there. DSC_RANK_NONE: that rank or a worse one, or there is no such token (j + d >= n).
    const uint16_t *draft_rank;
} dsc_replay;
enum { DSC_RANK_NONE = 65535 };

// Sufficient statistics of the two distributions at the output positions, for k = 1..K drafts, K
// being statistics_k in [1, DSC_STATISTICS_K_MAX]. NULL: not recorded. With target_logp and
// draft_logp they replace the rows for every what-if along the recorded output (y: the output's
// token).
enum { DSC_STATISTICS_K_MAX = 64 };
typedef struct dsc_sufficient {
    const float *kseq;      // [n][K][2] rho in [1, k], beta in [0, 1] of theory/kseq.h
    const float *specinfer; // [n][K + 1] c_1 = 0 .. c_{K+1} of theory/specinfer.h; never falls
    const float *otm;       // [n][K (K + 3) / 2] dsc_otm_sampler_survivors at y, [0..1], .., [0..K]
} dsc_sufficient;

// The distribution [0..k] of k drafts at position j in dsc_sufficient.otm; 1 <= k <= K.
static inline const float *dsc_sufficient_otm(const dsc_sufficient *s, int K, int64_t j, int k)
{
    return s->otm + j * (K * (K + 3) / 2) + (k - 1) * (k + 2) / 2;
}

// What the draft would write from each position, and what the target says along it; G is
// rollout_length in [1, 65535]. NULL: not recorded.
typedef struct dsc_rollouts {
    const int32_t *draft;  // [n][G] [j][i]: after the output before j and i of its own tokens
    const int32_t *target; // [n][G + 1] [j][i]: the target's token after the same text; with i = G
} dsc_rollouts;            // after all of the draft's tokens

// One request, valid while its shard is open.
typedef struct dsc_request {
    int64_t index;                   // 0-based in the whole trace
    dsc_text_view id;                // unique in the trace; the source's own id, or its number
    dsc_token_view prompt;           // tokens, BOS included when the tokenizer adds one
    dsc_token_view output;           // tokens, EOS included when the model wrote one
    int64_t references;              // number of reference texts
    const int64_t *reference_offset; // [references + 1] into reference_token
    const int32_t *reference_token;  // tokens of the shard's references
    const uint8_t *reference_kind;   // [references] dsc_reference_kind
    const float *target_logp; // [output.count] ln p_target(output token), or NULL: not recorded
    const float *draft_logp;  // [output.count] ln p_draft(output token), -inf allowed; or NULL
    dsc_text_view prompt_text, output_text;   // as given by the source, or {NULL, 0}: not recorded
    const int64_t *reference_text_offset;     // [references + 1] into reference_text, or NULL
    const char *reference_text;               // UTF-8 of the shard's references, or NULL
    dsc_text_view metadata;                   // one JSON object, or length 0
    dsc_rows rows[DSC_SIDES];                 // use dsc_request_row
    const uint16_t *accept[DSC_DRAFTERS_MAX]; // [drafters][output.count] in [0, cap]
    dsc_steps steps;
    dsc_replay replayed;
    dsc_sufficient sufficient;
    dsc_rollouts rollouts;
} dsc_request;

// Tokens of reference r of a request.
static inline dsc_token_view dsc_request_reference(const dsc_request *q, int64_t r)
{
    dsc_token_view view;
    view.id = q->reference_token + q->reference_offset[r];
    view.count = q->reference_offset[r + 1] - q->reference_offset[r];
    return view;
}

// One row.
typedef struct dsc_row {
    const int32_t *token; // [count] distinct; NULL: dense, element i is of token i
    const float *logp;    // [count], or NULL: bf16. Use dsc_row_logp
    const uint16_t *bf16; // [count], or NULL
    int64_t count;        // listed tokens; dense: the vocabulary
    float tail;           // ln of the mass that is not listed; -inf: none
} dsc_row;

// The row at an output position; false when none is recorded there. Its views live as long as q's.
DSC_API bool dsc_request_row(const dsc_request *q, dsc_model_side side, int64_t position,
                             dsc_row *out);
// ln p of element i, 0 <= i < count.
DSC_API float dsc_row_logp(const dsc_row *r, int64_t i);
// Writes the probabilities, as recorded (not divided by their sum), to dist[vocab_size], 0 for what
// is not listed, and returns the mass that is not listed.
DSC_API double dsc_row_dist(const dsc_row *r, int32_t vocab_size, double *dist);

// Rows in the list of what is recorded: "draft_rows", "target_rows_dense" and so on; NULL for
// DSC_ROWS_NONE.
DSC_API const char *dsc_rows_name(dsc_model_side side, dsc_rows_kind kind);

// The manifest, as read or to be written. Strings are owned by the record that carries it.
typedef struct dsc_trace_info {
    int64_t requests, prompt_tokens, output_tokens, reference_tokens, references;
    int64_t max_prompt_tokens, max_output_tokens;
    char *tokenizer_name;                  // never NULL
    char tokenizer_sha256[DSC_SHA256_HEX]; // or "": unknown
    int32_t vocab_size;                    // every token id is below this
    int32_t eos_token;                     // or -1: unknown
    bool has_text, has_target_logp;        // recorded for every request, or for none
    dsc_rows_kind rows[DSC_SIDES];         // likewise, and all that follows
    bool has_draft_logp, has_argmax[DSC_SIDES], has_entropy[DSC_SIDES], has_draft_rank;
    bool has_kseq, has_specinfer, has_otm, has_rollout[DSC_SIDES];
    dsc_steps_kind steps;
    bool has_step_drafted, has_step_draft_s, has_step_verify_s; // only with steps
    int32_t rank_depth;     // [1, 65535] when has_draft_rank, else 0
    int32_t statistics_k;   // K when any of kseq, specinfer, otm; else 0
    int32_t rollout_length; // G when any rollout; else 0
    int32_t drafters;       // with accept lengths, <= DSC_DRAFTERS_MAX
    dsc_drafter_record drafter[DSC_DRAFTERS_MAX];
    char *format;              // source format ("llma", "jsonl")
    char *semantics;           // "paper" or "code": how the import read its source
    char *provenance;          // JSON object: version, command, hashed sources
    char hash[DSC_SHA256_HEX]; // SHA-256 over the shard hashes: names the content
} dsc_trace_info;

// What is recorded, by the names of the manifest's list: name i = 0, 1, ... or NULL at the end.
DSC_API const char *dsc_trace_recorded(const dsc_trace_info *info, int i);
// The parameters of what is recorded, a JSON object as in the manifest (draftscope-trace(5)); {}
// when nothing has any. *out owned by the caller.
DSC_API int dsc_trace_parameters(char **out, const dsc_trace_info *info, dsc_error *err);

typedef struct dsc_trace dsc_trace;
typedef struct dsc_shard dsc_shard;

// Reads and checks the manifest of folder `path`. DSC_EINPUT names the file and what is wrong.
DSC_API int dsc_trace_open(dsc_trace **out, const char *path, dsc_error *err);
DSC_API void dsc_trace_close(dsc_trace *t);
DSC_API const dsc_trace_info *dsc_trace_get_info(const dsc_trace *t);
DSC_API const char *dsc_trace_path(const dsc_trace *t);
DSC_API int64_t dsc_trace_shards(const dsc_trace *t);
// Index of the first request of shard s; of s = shards: the number of requests.
DSC_API int64_t dsc_trace_first_request(const dsc_trace *t, int64_t s);

// Maps shard s and checks every column against the manifest and against each other (offsets
// sorted and closed, ids inside the vocabulary, log-probabilities finite and <= 0, kinds known,
// lengths, ranks, times and statistics in their ranges; not that text is UTF-8 or what a row adds
// up to: dsc_trace_verify). DSC_EINPUT names file, tensor and element. t must outlive *out.
DSC_API int dsc_shard_open(dsc_shard **out, const dsc_trace *t, int64_t s, dsc_error *err);
DSC_API void dsc_shard_close(dsc_shard *s);
DSC_API int64_t dsc_shard_requests(const dsc_shard *s);
// Request i of the shard, 0 <= i < requests; views into the mapping.
DSC_API void dsc_shard_request(const dsc_shard *s, int64_t i, dsc_request *out);
// Bytes of the shard's tensors that belong to dsc_trace_recorded(info, i).
DSC_API int64_t dsc_shard_recorded_bytes(const dsc_shard *s, int i);
// Tensors in the shard that this version does not know, or that the manifest does not list as
// recorded: they are left unread (worth a note to the user).
DSC_API int64_t dsc_shard_unknown(const dsc_shard *s);

// Re-reads everything: shard hashes, all checks of dsc_shard_open, that text is UTF-8 and metadata
// are JSON objects, that rows list no token twice and add up to 1, that aligned steps fit their
// output, that ids are unique (memory: the ids), and the maxima of the manifest. Fails at the first
// defect (DSC_EINPUT). The manifest's own hash is checked by dsc_trace_open.
DSC_API int dsc_trace_verify(const dsc_trace *t, dsc_error *err);

// --- writing -------------------------------------------------------------------------------

typedef struct dsc_trace_writer dsc_trace_writer;

// One request to be written; everything is copied.
typedef struct dsc_request_input {
    dsc_text_view id;
    dsc_token_view prompt, output;
    dsc_text_view prompt_text, output_text; // used when info.has_text
    int64_t references;
    const dsc_token_view *reference;     // [references]
    const dsc_text_view *reference_text; // [references], used when info.has_text
    const dsc_reference_kind *kind;      // [references]
    const float *target_logp;            // [output.count], used when info.has_target_logp
    dsc_text_view metadata;              // JSON object or length 0
    dsc_rows rows[DSC_SIDES];            // of the kinds in info.rows; dense ones F32 or BF16
    // Used when recorded as info says; shapes and ranges as in dsc_request.
    const float *draft_logp;
    const uint16_t *accept[DSC_DRAFTERS_MAX];
    dsc_steps steps;
    dsc_replay replayed;
    dsc_sufficient sufficient;
    dsc_rollouts rollouts;
} dsc_request_input;

// Starts NAME.dst in the folder NAME.dst.tmp beside it (what a killed run left there is removed).
// As soon as a shard is finished that folder can be opened: a trace of the requests so far.
// The strings in *info and what describes the tokenizer are copied; counts and hash are not looked
// at. format, semantics and provenance may be NULL. `path` may end in slashes.
// An existing trace is replaced, at the commit, if `force`; DSC_EUSAGE without, and always when
// what has that name holds anything but files of a trace. DSC_EIO: the folder cannot be made.
// A shard is cut when it holds `shard_tokens` tokens (prompt, output and references) or more, or
// rows of 32 bytes for each of these, and it is written in the background, by a thread of the
// writer's own, while the next one is gathered. So memory is bounded by two shards, two requests
// and the ids. 0: the default, shards of a million tokens, or 64 MB of rows, of which eight at a
// time are hashed (together they take a third of the time) and become part of the trace.
DSC_API int dsc_trace_writer_open(dsc_trace_writer **out, const char *path,
                                  const dsc_trace_info *info, bool force, int64_t shard_tokens,
                                  dsc_error *err);
// Appends to the trace `path`, which stays as it is until the commit: new shards behind its own,
// then a new manifest in one rename. *info says what the requests will have and must agree with the
// trace: tokenizer, columns, parameters, drafters in their order (DSC_EUSAGE says what does not, or
// that another run writes to the trace). The ids of the trace are read, so all of it is. Its
// provenance gets what the commit is given, in a list "appended".
DSC_API int dsc_trace_writer_append(dsc_trace_writer **out, const char *path,
                                    const dsc_trace_info *info, int64_t shard_tokens,
                                    dsc_error *err);
// DSC_EINPUT: token outside the vocabulary, bad UTF-8, log-probability, row or metadata, an id that
// is taken; DSC_EUSAGE: pointers or lengths that make no sense. Then nothing was added and the
// writer can go on. DSC_EIO: a shard, the former perhaps, could not be written; all that is left is
// to abort, which then leaves NAME.dst.tmp with the shards that were finished.
DSC_API int dsc_trace_writer_add(dsc_trace_writer *w, const dsc_request_input *q, dsc_error *err);
// Cuts the shard where it is, if it holds a request. DSC_EIO as above.
DSC_API int dsc_trace_writer_cut(dsc_trace_writer *w, dsc_error *err);
// Writes the last shard and the manifest, syncs, and gives the folder its final name. `provenance`
// (a JSON object) replaces the one given at open when not NULL. Frees w, also on failure: then the
// final name is what it was before (free, or the former trace), and what could not be written or
// renamed leaves its finished shards in NAME.dst.tmp, as the message says.
DSC_API int dsc_trace_writer_commit(dsc_trace_writer *w, const char *provenance, dsc_error *err);
// Removes what was written, unless writing itself failed (see above); NULL allowed.
DSC_API void dsc_trace_writer_abort(dsc_trace_writer *w);

#ifdef __cplusplus
}
#endif

#endif
