// SPDX-License-Identifier: Apache-2.0
// Tokenizers: Hugging Face `tokenizer.json` files of the two BPE families in use (byte-level BPE:
// GPT-2, Llama-3, Qwen; SentencePiece-style BPE: Llama-2, Vicuna, Mistral) and plain bytes.
//
// The specification is the behavior of the HF `tokenizers` library, token for token. Loading a file
// fails with the name of any feature that is not supported.
//
// Whatever the file contains, time and memory are proportional to the text, but for regexes, whose
// backtracking is limited. The normalizers and pre-tokenizers of a file together may add at most 64
// bytes for each byte of a text, and 65536, in one call of dsc_encode; so may the decoders in one
// call of dsc_decode. An added token has at most 1024 bytes, a template at most 1024 tokens on a
// side. Exceeding a limit is DSC_EINPUT, with the file, the step and the limit.
#ifndef DSC_TRACES_TOKENIZER_H
#define DSC_TRACES_TOKENIZER_H

#include "base/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dsc_tokenizer dsc_tokenizer; // immutable once loaded; may be shared by threads
typedef struct dsc_encoder dsc_encoder;     // scratch and word cache (4 MiB) of one thread

// A growable list of token ids. Zero-initialize; free with dsc_tokens_fini.
typedef struct dsc_tokens {
    int32_t *id;
    size_t count, capacity;
} dsc_tokens;

int dsc_tokens_append(dsc_tokens *t, const int32_t *id, size_t count, dsc_error *err);
void dsc_tokens_fini(dsc_tokens *t);

// Loads `spec`: the word "bytes" (256 byte tokens, then 256 = "<s>", 257 = "</s>") or the path of a
// tokenizer.json or of a GGUF file. DSC_EINPUT with file and place when it is malformed or uses a
// feature that is not implemented. *out is owned by the caller (dsc_tokenizer_free; NULL is
// allowed).
int dsc_tokenizer_load(dsc_tokenizer **out, const char *spec, dsc_error *err);
void dsc_tokenizer_free(dsc_tokenizer *t);

const char *dsc_tokenizer_name(const dsc_tokenizer *t); // "bytes" or the file's base name
// 64 hex digits, of the file's bytes (of a GGUF file, of its tokenizer's metadata; of the word
// "bytes" for the built-in tokenizer).
const char *dsc_tokenizer_sha256(const dsc_tokenizer *t);
int32_t dsc_tokenizer_vocab_size(const dsc_tokenizer *t); // every id is in [0, this)

// The id of the token whose content is exactly `content` (added tokens included), or -1.
int32_t dsc_tokenizer_find(const dsc_tokenizer *t, const char *content);

// The text of a token as in tokenizer.json, of *length bytes, owned by the tokenizer. NULL: the id
// has no token, or the tokenizer is the built-in one.
const char *dsc_tokenizer_text(const dsc_tokenizer *t, int32_t id, size_t *length);

// The EOS token, or -1. tokenizer.json does not define it, so it is the first special token present
// among "</s>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<eos>".
int32_t dsc_tokenizer_eos(const dsc_tokenizer *t);

// The tokenizer must outlive its encoders.
int dsc_encoder_new(dsc_encoder **out, const dsc_tokenizer *t, dsc_error *err);
void dsc_encoder_free(dsc_encoder *e);

// Appends the tokens of text[0, length) to *out. `add_special` applies the post-processor's
// template (BOS, for example; the bytes tokenizer puts "<s>" first). DSC_EINPUT when the text is
// not valid UTF-8, with the first bad byte (the bytes tokenizer accepts any bytes), or when a regex
// or the steps of the file exceed their limits. On failure *out keeps its old count.
int dsc_encode(dsc_encoder *e, const char *text, size_t length, bool add_special, dsc_tokens *out,
               dsc_error *err);

// Appends the text of id[0, count) to *out, without special tokens when `skip_special`.
// decode(encode(s)) == s for every valid UTF-8 s encoded without add_special, unless the tokenizer
// itself loses information: by a normalizer (such as NFC), stripped space around added tokens, or
// characters without a token. DSC_EINPUT for an id without a token, and when the decoders exceed
// their limit.
int dsc_decode(const dsc_tokenizer *t, const int32_t *id, size_t count, bool skip_special,
               dsc_buffer *out, dsc_error *err);

#endif
