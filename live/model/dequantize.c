// SPDX-License-Identifier: Apache-2.0
// Numbers of the blocks of ggml's tensor types. A number is d * q + m, in float, where q is an
// integer of 4 to 8 bits and d and m are of 16 bits for each block of 32; in a K block, of 256
// numbers, they are multiplied by an integer for each 16 or 32. The layouts are those of
// ggml-common.h. The results equal those of the Python package gguf (quants.py) to the bit.
#include "live/model/dequantize.h"

#include "live/device/cpu_kernel.h"
#include "traces/files/gguf.h"

#include <stdio.h>
#include <string.h>

enum { SMALL = 32, LARGE = 256 }; // numbers of a block

static uint16_t bits16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static float scale(const uint8_t *at)
{
    return live_from_f16(bits16(at));
}

static uint32_t bits32(const uint8_t *at)
{
    return (uint32_t)bits16(at) | (uint32_t)bits16(at + 2) << 16;
}

// --- one number, or blocks of 32 ---------------------------------------------------------------

static void from_f32(float *out, const uint8_t *at)
{
    memcpy(out, at, sizeof *out);
}

static void from_f16(float *out, const uint8_t *at)
{
    *out = scale(at);
}

static void from_bf16(float *out, const uint8_t *at)
{
    *out = live_from_bf16(bits16(at));
}

// The low halves of 16 bytes are the first 16 numbers, the high halves the others. Bit i of `high`
// is bit 4 of number i. m = -0 adds nothing, not even to a negative zero.
static void from_halves(float *out, const uint8_t *at, uint32_t high, int offset, float d, float m)
{
    for (int i = 0; i < SMALL; i++) {
        int q = i < 16 ? at[i] & 15 : at[i - 16] >> 4;
        q |= (int)(high >> i & 1) << 4;
        out[i] = d * (float)(q - offset) + m;
    }
}

static void from_q4_0(float *out, const uint8_t *at)
{
    from_halves(out, at + 2, 0, 8, scale(at), -0.f);
}

static void from_q4_1(float *out, const uint8_t *at)
{
    from_halves(out, at + 4, 0, 0, scale(at), scale(at + 2));
}

static void from_q5_0(float *out, const uint8_t *at)
{
    from_halves(out, at + 6, bits32(at + 2), 16, scale(at), -0.f);
}

static void from_q5_1(float *out, const uint8_t *at)
{
    from_halves(out, at + 8, bits32(at + 4), 0, scale(at), scale(at + 2));
}

static void from_q8_0(float *out, const uint8_t *at)
{
    const float d = scale(at);
    for (int i = 0; i < SMALL; i++)
        out[i] = (float)(int8_t)at[2 + i] * d;
}

// --- blocks of 256 -----------------------------------------------------------------------------

// Factor i < 8 of a block's scale and of its minimum, of 6 bits each, from 12 bytes. The lower six
// bits of bytes 0-3 are factors 0-3 of the scale, those of bytes 4-7 of the minimum. Bytes 8-11
// have the lower four bits of factors 4-7; their upper two are the upper two of bytes 0-7.
static void factors(const uint8_t *at, int i, int *of_scale, int *of_minimum)
{
    if (i < 4) {
        *of_scale = at[i] & 63;
        *of_minimum = at[i + 4] & 63;
    } else {
        *of_scale = (at[i + 4] & 15) | (at[i - 4] >> 6) << 4;
        *of_minimum = at[i + 4] >> 4 | (at[i] >> 6) << 4;
    }
}

// Q4_K and Q5_K. 64 numbers have the low halves of 32 bytes, then the high ones. `high` (NULL: no
// fifth bits) has 32 bytes; bit g of byte i is bit 4 of number i of group g of 32.
static void from_groups(float *out, const uint8_t *at, const uint8_t *high, const uint8_t *low)
{
    const float d = scale(at), least = scale(at + 2);
    for (int g = 0; g < LARGE / 32; g++) {
        int of_scale, of_minimum;
        factors(at + 4, g, &of_scale, &of_minimum);
        const float dg = d * (float)of_scale, mg = least * (float)of_minimum;
        for (int i = 0; i < 32; i++) {
            const int byte = low[g / 2 * 32 + i];
            int q = g % 2 ? byte >> 4 : byte & 15;
            q |= high ? (high[i] >> g & 1) << 4 : 0;
            out[g * 32 + i] = dg * (float)q - mg;
        }
    }
}

static void from_q4_k(float *out, const uint8_t *at)
{
    from_groups(out, at, NULL, at + 16);
}

static void from_q5_k(float *out, const uint8_t *at)
{
    from_groups(out, at, at + 16, at + 48);
}

// 128 numbers each: the low halves of 64 bytes and then the high ones, with two more bits each from
// 32 bytes, of which group g of 32 has bits 2 g and 2 g + 1. One factor for 16 numbers.
static void from_q6_k(float *out, const uint8_t *at)
{
    const uint8_t *low = at, *high = at + 128, *factor = at + 192;
    const float d = scale(at + 208);
    for (int i = 0; i < LARGE; i++) {
        const int half = i / 128, g = i % 128 / 32, j = i % 32;
        const int byte = low[half * 64 + g % 2 * 32 + j];
        const int q = (g < 2 ? byte & 15 : byte >> 4) | (high[half * 32 + j] >> 2 * g & 3) << 4;
        out[i] = d * (float)(int8_t)factor[i / 16] * (float)(q - 32);
    }
}

// --- all types ---------------------------------------------------------------------------------

typedef void (*convert)(float *out, const uint8_t *block);

static const convert converts[] = {
    [DSC_GGML_F32] = from_f32,   [DSC_GGML_F16] = from_f16,   [DSC_GGML_BF16] = from_bf16,
    [DSC_GGML_Q4_0] = from_q4_0, [DSC_GGML_Q4_1] = from_q4_1, [DSC_GGML_Q5_0] = from_q5_0,
    [DSC_GGML_Q5_1] = from_q5_1, [DSC_GGML_Q8_0] = from_q8_0, [DSC_GGML_Q4_K] = from_q4_k,
    [DSC_GGML_Q5_K] = from_q5_k, [DSC_GGML_Q6_K] = from_q6_k,
};
enum { TYPES = sizeof converts / sizeof *converts };

bool live_dequantizes(int type)
{
    return type >= 0 && type < TYPES && converts[type];
}

void live_dequantize(float *out, const uint8_t *blocks, size_t count, int type)
{
    int64_t numbers = 1, bytes = 1;
    dsc_ggml_type_name(type, &numbers, &bytes);
    for (size_t i = 0; i < count; i++)
        converts[type](out + i * (size_t)numbers, blocks + i * (size_t)bytes);
}

void live_dequantize_names(char *out, size_t size)
{
    int64_t numbers, bytes;
    size_t n = 0;
    *out = '\0';
    for (int t = 0; t < TYPES && n < size; t++)
        if (converts[t])
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "",
                                  dsc_ggml_type_name(t, &numbers, &bytes));
}
