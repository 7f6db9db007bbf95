// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors files: 8-byte little-endian header length, a JSON object
// {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {...}}, then the data.
// Traces and model weights share this reader. The file is memory-mapped, never copied.
#ifndef DSC_TRACES_SAFETENSORS_H
#define DSC_TRACES_SAFETENSORS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum dsc_dtype {
    DSC_BOOL,
    DSC_U8,
    DSC_I8,
    DSC_U16,
    DSC_I16,
    DSC_F16,
    DSC_BF16,
    DSC_U32,
    DSC_I32,
    DSC_F32,
    DSC_U64,
    DSC_I64,
    DSC_F64,
} dsc_dtype;

enum { DSC_MAX_RANK = 8 };
enum {
    DSC_SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000, // bytes, the limit of the reference library
    DSC_SAFETENSORS_ALIGN = 64,                     // alignment of every tensor that is written
};

// The format forbids holes, so the bytes that align the next tensor are a U8 tensor with this
// prefix and a number. Other readers list it as one more tensor; this reader does not.
#define DSC_SAFETENSORS_PAD "__pad."

typedef struct dsc_tensor {
    const char *name; // owned by the file record
    dsc_dtype dtype;
    int rank;
    int64_t shape[DSC_MAX_RANK];
    int64_t count;       // product of the shape
    const void *data;    // little-endian, aligned to the element size; owned by the mapping
    uint64_t begin, end; // bytes from the start of the file
} dsc_tensor;

typedef struct dsc_safetensors dsc_safetensors;

// Maps `path` and checks: header length <= 100 MB and inside the file; a JSON object without
// duplicate keys; known dtypes; rank <= 8; shape x dtype = extent, without overflow; extents in
// order without hole or overlap up to the end of the file; alignment to the element size.
// Tensors named "__pad.*" (the writer's padding) are checked, but not listed.
// DSC_EINPUT names file, tensor and byte. *out is owned by the caller.
int dsc_safetensors_open(dsc_safetensors **out, const char *path, dsc_error *err);
void dsc_safetensors_close(dsc_safetensors *s);

size_t dsc_safetensors_count(const dsc_safetensors *s);
const dsc_tensor *dsc_safetensors_at(const dsc_safetensors *s, size_t i); // in file order
// The tensor of that name, or NULL.
const dsc_tensor *dsc_safetensors_find(const dsc_safetensors *s, const char *name);
uint64_t dsc_safetensors_bytes(const dsc_safetensors *s); // size of the file

// Writes `count` tensors (name, dtype, rank, shape and data are used; names must not begin with
// "__") to `path` through a temporary file, synced and renamed. Each tensor starts on a 64-byte
// boundary of the file, in the given order, by means of padding tensors. Refuses an existing file
// (DSC_EUSAGE).
int dsc_safetensors_write(const char *path, const dsc_tensor *tensors, size_t count,
                          dsc_error *err);

size_t dsc_dtype_bytes(dsc_dtype t);     // 0 beyond the last type
const char *dsc_dtype_name(dsc_dtype t); // "F32", ...

#endif
