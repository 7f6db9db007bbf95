// SPDX-License-Identifier: Apache-2.0
// What an architecture's GGUF files are in transformers' terms: names of tensors, order of rows,
// keys of config.json.
#ifndef DSC_LIVE_GGUF_ARCH_H
#define DSC_LIVE_GGUF_ARCH_H

#include "live/model/names.h"
#include "traces/files/gguf.h"

#include <jansson.h>

typedef struct live_gguf_arch live_gguf_arch;

// The architecture of general.architecture. DSC_EINPUT: it is missing or not supported.
int live_gguf_arch_find(const live_gguf_arch **out, const dsc_gguf *file, dsc_error *err);

// Writes transformers' name of a tensor ("blk.3.attn_q.weight"); its own name where it has none.
void live_gguf_name(char out[LIVE_TENSOR_NAME], const live_gguf_arch *a, const char *name);

// The rows of a head if the tensor's rows are stored in pairs, or 0.
int64_t live_gguf_pairs(const live_gguf_arch *a, const dsc_gguf *file, const dsc_gguf_tensor *t);

// live/model/gguf.h. `dtype`: of the matrices, as in config.json.
int live_gguf_arch_config(json_t **out, const live_gguf_arch *a, const dsc_gguf *file,
                          const char *dtype, dsc_error *err);
int live_gguf_arch_complete(live_config *c, const live_gguf_arch *a, const dsc_gguf *file,
                            dsc_error *err);

#endif
