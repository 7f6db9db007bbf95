// SPDX-License-Identifier: Apache-2.0
// Names and sizes of the types of a tensor's elements (traces/files/safetensors.h).
#include "traces/files/safetensors.h"

static const struct {
    char name[5];
    uint8_t bytes;
} dtypes[] = {
    [DSC_BOOL] = {"BOOL", 1}, [DSC_U8] = {"U8", 1},   [DSC_I8] = {"I8", 1},
    [DSC_U16] = {"U16", 2},   [DSC_I16] = {"I16", 2}, [DSC_F16] = {"F16", 2},
    [DSC_BF16] = {"BF16", 2}, [DSC_U32] = {"U32", 4}, [DSC_I32] = {"I32", 4},
    [DSC_F32] = {"F32", 4},   [DSC_U64] = {"U64", 8}, [DSC_I64] = {"I64", 8},
    [DSC_F64] = {"F64", 8},
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

size_t dsc_dtype_bytes(dsc_dtype t)
{
    return (size_t)t < DTYPES ? dtypes[t].bytes : 0;
}

const char *dsc_dtype_name(dsc_dtype t)
{
    return (size_t)t < DTYPES ? dtypes[t].name : "unknown";
}
