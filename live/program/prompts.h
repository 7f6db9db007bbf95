// SPDX-License-Identifier: Apache-2.0
// Prompts to run: JSON lines {"prompt": TEXT, "references": [TEXT, ...], "id": ...}, TEXT as in our
// traces' JSON lines (a string or token ids), or texts from the command line. Other fields of those
// lines are allowed and not read, so that an exported trace is a file of prompts.
#ifndef DSC_LIVE_PROMPTS_H
#define DSC_LIVE_PROMPTS_H

#include "traces/tokenizer/tokenizer.h"
#include "traces/trace/trace.h"

typedef struct live_prompt {
    char *id;                   // unique, or of the line's number
    char *text;                 // UTF-8, or NULL: token ids without a tokenizer
    int32_t *token;             // [prompt + all references + output] owned
    int64_t prompt, references; // tokens of the prompt; references
    int64_t output;             // tokens of a recorded output, else 0
    int64_t *offset;            // [references + 1] into token + prompt
    uint8_t *kind;              // [references] dsc_reference_kind
    char **reference_text;      // [references], entries may be NULL
    int64_t line;               // of the file, or 0
    dsc_request recorded;       // of a trace that is kept open: the columns; else empty
} live_prompt;

typedef struct live_prompts {
    live_prompt *item; // [count]
    size_t count, capacity;
    int64_t skipped;    // requests of the source in front of them: their numbers go on from there
    const char *source; // the file's name, or NULL; the caller's
    int64_t longest;    // tokens
    dsc_shard **shard;  // [shards] kept open
    size_t shards, shard_capacity;
} live_prompts; // zero-initialise

// `most` prompts of a file (plain, .gz, .zst; "-": standard input) behind the first `skip`; 0: all.
// `tokenizer` NULL: token ids only. Ids are in [0, vocab). DSC_EINPUT: "FILE:LINE: ...".
int live_prompts_read(live_prompts *p, const char *path, int64_t skip, size_t most,
                      const dsc_tokenizer *tokenizer, int64_t vocab, dsc_error *err);
// Another one, a text.
int live_prompts_add(live_prompts *p, const char *text, const dsc_tokenizer *tokenizer,
                     int64_t vocab, dsc_error *err);
// Requests of a trace likewise, with their outputs, to be run again (live/session/replay.h); those
// without an output are passed over. `columns`: with all else that was recorded of them; then the
// trace must outlive `p`. DSC_EINPUT: a token that is not in [0, vocab).
int live_prompts_replay(live_prompts *p, const dsc_trace *trace, int64_t skip, size_t most,
                        int64_t vocab, bool columns, dsc_error *err);
void live_prompts_free(live_prompts *p);

// Prompt i as a request, without output unless one is recorded; valid as long as `p`.
dsc_request live_prompts_request(const live_prompts *p, size_t i);
// "prompts.jsonl:4", "prompt 2": for messages, `size` bytes.
void live_prompts_place(const live_prompts *p, size_t i, char *place, size_t size);

#endif
