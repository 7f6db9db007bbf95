// SPDX-License-Identifier: Apache-2.0
// Prompts to run: the lines of a file in one of the forms of traces/import/import_prompt.h, or
// texts from the command line. An exported trace is a file of prompts.
#ifndef DSC_LIVE_PROMPTS_H
#define DSC_LIVE_PROMPTS_H

#include "sim/drafter.h"
#include "traces/import/import_prompt.h"

typedef struct live_prompt {
    dsc_request request; // its index and tokens; views of the list's memory or of an open shard
    const dsc_text_view *reference_text; // [references], or NULL; bytes NULL: token ids only
    int64_t line;                        // of the file, or 0
} live_prompt;

typedef struct live_prompts {
    // Which prompts to read, set first: up to `most` (0: all) after the first `skip`, with token
    // ids of [0, vocab). `tokenizer` NULL: token ids only. `map`, `chat_template` and
    // `tokenizer_spec` as in dsc_prompt_options.
    const dsc_tokenizer *tokenizer;
    const char *map, *chat_template, *tokenizer_spec;
    int64_t vocab, skip;
    size_t most;
    live_prompt *item; // [count]
    size_t count, capacity;
    dsc_prompt_reader *reader; // NULL: nothing was read yet
    int64_t skipped;    // requests of the source before these; their numbers continue from there
    const char *source; // name of the file, or NULL; the caller keeps it
    int64_t longest;    // tokens
    dsc_arena arena;    // tokens and texts
    dsc_shard **shard;  // [shards] kept open
    size_t shards, shard_capacity;
} live_prompts; // zero-initialize the rest

// Reads prompts of a file (plain, .gz, .zst; "-": standard input). DSC_EINPUT: "FILE:LINE: ...".
int live_prompts_read(live_prompts *p, const char *path, dsc_error *err);
// Adds a text as another prompt.
int live_prompts_add(live_prompts *p, const char *text, dsc_error *err);
// Reads requests of a trace, which must outlive `p`, with their outputs, to be replayed
// (live/session/replay.h); requests without an output are left out. `drafted`: the method whose
// drafts are replayed too, so that all recorded columns are needed, as its `view` has them; NULL:
// none. DSC_EINPUT: a token that is not in the vocabulary.
int live_prompts_replay(live_prompts *p, const dsc_trace *trace, const dsc_config *drafted,
                        dsc_error *err);
// DSC_EINPUT when a shard that the prompts came from changed meanwhile.
int live_prompts_check(const live_prompts *p, dsc_error *err);
void live_prompts_free(live_prompts *p);

// Writes "prompts.jsonl:4" or "prompt 2" for messages; `size` is in bytes.
void live_prompts_location(const live_prompts *p, size_t i, char *location, size_t size);

#endif
