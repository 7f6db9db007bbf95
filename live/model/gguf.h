// SPDX-License-Identifier: Apache-2.0
// A GGUF file as a checkpoint: its metadata as a config.json, and its tensors under the names, in
// the shapes and in the order of rows that a Hugging Face folder has.
#ifndef DSC_LIVE_GGUF_H
#define DSC_LIVE_GGUF_H

#include "live/model/config.h"
#include "live/model/keys.h"
#include "traces/files/gguf.h"

typedef struct live_gguf live_gguf;

// DSC_EINPUT: the file is malformed, its architecture is not supported (the message lists those
// that are), or a tensor has a type that cannot be converted; the message names tensor and type.
// *out is owned by the caller.
int live_gguf_open(live_gguf **out, const char *path, dsc_error *err);
void live_gguf_close(live_gguf *g); // NULL allowed

const dsc_gguf *live_gguf_file(const live_gguf *g);

// The tensors in file order. dtype is that of the numbers that live_gguf_make writes: F16 or BF16
// where all matrices of the file are stored so, else F32. end - begin is their size in bytes; begin
// is where the file stores them; data is NULL.
size_t live_gguf_count(const live_gguf *g);
const dsc_tensor *live_gguf_at(const live_gguf *g, size_t i);
const dsc_tensor *live_gguf_find(const live_gguf *g, const char *name); // or NULL

// What live_gguf_make needs of a tensor that live_gguf_at or live_gguf_find returned.
const void *live_gguf_source(const live_gguf *g, const dsc_tensor *t);
// Writes bytes [offset, offset + count) of the tensor. The offset is a multiple of 1024; so is the
// count, unless it reaches the end. `to` is aligned for float.
void live_gguf_make(const void *source, uint64_t offset, size_t count, unsigned char *to);

// The hash that stands for that of a config.json: of all metadata but the tokenizer's. "" if the
// file cannot be read.
void live_gguf_config_sha256(const char *path, char hex[DSC_SHA256_HEX]);

// Whether the file contains a tokenizer; a model without one takes token ids.
bool live_gguf_has_tokenizer(const char *path);

// Makes the config.json that means the same as the metadata; the caller releases *out. DSC_EINPUT
// with the key that is missing or of the wrong type.
int live_gguf_config(json_t **out, const live_gguf *g, dsc_error *err);
// Sets what no key of config.json can express: the angles of rope_freqs.weight.
int live_gguf_complete(live_config *c, const live_gguf *g, dsc_error *err);

#endif
