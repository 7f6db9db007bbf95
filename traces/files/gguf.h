// SPDX-License-Identifier: Apache-2.0
// Reads GGUF files, versions 2 and 3: the models of llama.cpp. Magic, version, counts, then the
// metadata (key, type, value), the description of each tensor, and the aligned data. All numbers
// are little-endian. The file is memory-mapped, never copied.
#ifndef DSC_TRACES_GGUF_H
#define DSC_TRACES_GGUF_H

#include "base/sha256.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The types of values, with the numbers that they have in a file.
typedef enum dsc_gguf_kind {
    DSC_GGUF_U8,
    DSC_GGUF_I8,
    DSC_GGUF_U16,
    DSC_GGUF_I16,
    DSC_GGUF_U32,
    DSC_GGUF_I32,
    DSC_GGUF_F32,
    DSC_GGUF_BOOL,
    DSC_GGUF_STRING,
    DSC_GGUF_ARRAY,
    DSC_GGUF_U64,
    DSC_GGUF_I64,
    DSC_GGUF_F64,
    DSC_GGUF_KINDS
} dsc_gguf_kind;

// The types of tensors that draftscope converts, with the numbers that they have in a file.
typedef enum dsc_ggml_type {
    DSC_GGML_F32 = 0,
    DSC_GGML_F16 = 1,
    DSC_GGML_Q4_0 = 2,
    DSC_GGML_Q4_1 = 3,
    DSC_GGML_Q5_0 = 6,
    DSC_GGML_Q5_1 = 7,
    DSC_GGML_Q8_0 = 8,
    DSC_GGML_Q4_K = 12,
    DSC_GGML_Q5_K = 13,
    DSC_GGML_Q6_K = 14,
    DSC_GGML_BF16 = 30,
} dsc_ggml_type;

enum { DSC_GGUF_RANK = 4, DSC_GGUF_NESTING = 8 }; // most dimensions; most arrays within arrays

typedef struct dsc_gguf dsc_gguf;

// One entry of the metadata. Everything that it points to is owned by the file record.
typedef struct dsc_gguf_value {
    const char *key;
    dsc_gguf_kind kind;     // of the value, or of each element of an array
    bool array;             // kind DSC_GGUF_ARRAY: an array of arrays, whose contents are skipped
    uint64_t count;         // number of elements; 1 without an array
    const uint8_t *data;    // the elements as in the file, not aligned
    const uint8_t *end;     // of the elements
    const uint64_t *string; // [count] of strings: offsets from `data` to the length of each
} dsc_gguf_value;

typedef struct dsc_gguf_text {
    const char *data; // not ended by a NUL
    size_t length;
} dsc_gguf_text;

typedef struct dsc_gguf_tensor {
    const char *name;
    int type;                     // dsc_ggml_type or another number
    int rank;                     // 1 to DSC_GGUF_RANK
    int64_t shape[DSC_GGUF_RANK]; // the outermost dimension first, unlike the file
    int64_t count;                // product of the shape
    const uint8_t *data;          // blocks of the type; owned by the mapping
    uint64_t begin, end; // bytes from the start of the file; of an unknown type, end = begin
} dsc_gguf_tensor;

// The name, the numbers of a block and the bytes of a block. NULL: the type is unknown.
const char *dsc_ggml_type_name(int type, int64_t *numbers, int64_t *bytes);

// Whether `path` is a regular file that begins with "GGUF".
bool dsc_gguf_is(const char *path);

// Maps and checks a file; *out is owned by the caller. DSC_EINPUT with file and key or tensor: it
// is truncated or malformed, a key or tensor is there twice, an extent leaves the file or overlaps
// another, it is big-endian, of another version, or one part of a split model.
int dsc_gguf_open(dsc_gguf **out, const char *path, dsc_error *err);
void dsc_gguf_close(dsc_gguf *g); // NULL allowed

const char *dsc_gguf_path(const dsc_gguf *g);
uint64_t dsc_gguf_bytes(const dsc_gguf *g); // size of the file
size_t dsc_gguf_values(const dsc_gguf *g);
const dsc_gguf_value *dsc_gguf_value_at(const dsc_gguf *g, size_t i);    // in file order
const dsc_gguf_value *dsc_gguf_find(const dsc_gguf *g, const char *key); // or NULL
size_t dsc_gguf_tensors(const dsc_gguf *g);
const dsc_gguf_tensor *dsc_gguf_tensor_at(const dsc_gguf *g, size_t i);           // by its place
const dsc_gguf_tensor *dsc_gguf_tensor_by_name(const dsc_gguf *g, size_t i);      // sorted
const dsc_gguf_tensor *dsc_gguf_tensor_find(const dsc_gguf *g, const char *name); // or NULL

// SHA-256 of the metadata whose keys begin with `prefix`, or (`others`) of the rest.
void dsc_gguf_hash(const dsc_gguf *g, const char *prefix, bool others, char hex[DSC_SHA256_HEX]);

// Element i < count. False: it is not an integer (of at most 63 bits), not a number, or no string.
bool dsc_gguf_integer(const dsc_gguf_value *v, uint64_t i, int64_t *out);
bool dsc_gguf_real(const dsc_gguf_value *v, uint64_t i, double *out);
bool dsc_gguf_string(const dsc_gguf_value *v, uint64_t i, dsc_gguf_text *out);

#endif
