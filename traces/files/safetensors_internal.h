// SPDX-License-Identifier: Apache-2.0
// Constants that the safetensors reader and writer share.
#ifndef DSC_TRACES_SAFETENSORS_INTERNAL_H
#define DSC_TRACES_SAFETENSORS_INTERNAL_H

enum {
    DSC_SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000, // bytes, the limit of the reference library
    DSC_SAFETENSORS_ALIGN = 64,                     // alignment of every tensor that is written
};

// The format forbids holes, so the bytes that align the next tensor are a U8 tensor with this
// prefix and a number. Other readers list it as one more tensor; this reader does not.
#define DSC_SAFETENSORS_PAD "__pad."

#endif
