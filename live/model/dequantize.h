// SPDX-License-Identifier: Apache-2.0
// The numbers of quantized tensors (GGUF).
#ifndef DSC_LIVE_DEQUANTIZE_H
#define DSC_LIVE_DEQUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether numbers of this type (dsc_ggml_type) can be converted.
bool live_dequantizes(int type);

// Writes the numbers of blocks[0, count) to out, in F32. The type must be one that
// live_dequantizes; `blocks` need not be aligned.
void live_dequantize(float *out, const uint8_t *blocks, size_t count, int type);

// The names of the types, separated by commas.
void live_dequantize_names(char *out, size_t size);

#endif
