// SPDX-License-Identifier: Apache-2.0
// What the safetensors reader and writer agree on.
#ifndef DSC_TRACES_SAFETENSORS_INTERNAL_H
#define DSC_TRACES_SAFETENSORS_INTERNAL_H

enum {
    DSC_SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000, // bytes, the original's own limit
    DSC_SAFETENSORS_ALIGN = 64,                     // of every tensor we write
};

// The format forbids holes, so the bytes that align the next tensor are a U8 tensor of this
// name and a number. Other readers see it as one more tensor; ours leaves it out.
#define DSC_SAFETENSORS_PAD "__pad."

#endif
