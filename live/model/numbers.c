// SPDX-License-Identifier: Apache-2.0
// Checks weights for NaN and infinity, eight bytes at a time, rounds numbers to another dtype, and
// transposes matrices tile by tile.
#include "live/model/numbers.h"
#include "live/device/cpu_kernel.h"

#include <math.h>
#include <string.h>

// The exponent bits of every number in a 64-bit word. A number is not finite if all of them are
// set; adding the lowest exponent bit then carries into the sign bit.
static uint64_t exponent_of(dsc_dtype t)
{
    return t == DSC_F32    ? 0x7f8000007f800000u
           : t == DSC_BF16 ? 0x7f807f807f807f80u
                           : 0x7c007c007c007c00u;
}

static uint64_t sign_of(dsc_dtype t)
{
    return t == DSC_F32 ? 0x8000000080000000u : 0x8000800080008000u;
}

static float number_at(const void *data, dsc_dtype t, size_t i)
{
    float x;
    live_cpu_kernel_c.widen(&x, (const char *)data + i * dsc_dtype_bytes(t), t, 1);
    return x;
}

bool live_is_nan(const void *data, dsc_dtype t, size_t i)
{
    return isnan(number_at(data, t, i));
}

#ifdef HAVE_TARGET_CLONES
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

// Returns the number of leading words, in whole blocks, that contain finite numbers only.
static size_t WIDE finite_words(const char *data, size_t words, uint64_t exponent, uint64_t sign)
{
    enum { BLOCK = 64 }; // a fixed trip count, so that the loop is vectorized
    const uint64_t lowest = exponent & ~(exponent << 1);
    size_t i = 0;
    for (; i + BLOCK <= words; i += BLOCK) {
        uint64_t carry = 0, word;
        for (size_t k = 0; k < BLOCK; k++) {
            memcpy(&word, data + 8 * (i + k), sizeof word);
            carry |= (word & exponent) + lowest;
        }
        if (carry & sign)
            break;
    }
    return i;
}

bool live_all_finite(const void *data, dsc_dtype t, size_t count, size_t *bad)
{
    const size_t per_word = t == DSC_F32 ? 2 : 4;
    size_t i = finite_words(data, count / per_word, exponent_of(t), sign_of(t)) * per_word;
    for (; i < count; i++)
        if (!isfinite(number_at(data, t, i))) {
            *bad = i;
            return false;
        }
    return true;
}

void live_narrow(void *out, const float *x, dsc_dtype t, size_t count)
{
    uint16_t *half = out;
    if (t == DSC_F32)
        memcpy(out, x, count * sizeof *x);
    else
        for (size_t i = 0; i < count; i++)
            half[i] = t == DSC_BF16 ? live_to_bf16(x[i]) : live_to_f16(x[i]);
}

float live_round(float x, dsc_dtype t)
{
    uint32_t bits;
    live_narrow(&bits, &x, t, 1);
    return number_at(&bits, t, 0);
}

void live_transpose(void *out, const void *in, size_t rows, size_t cols, size_t bytes)
{
    enum { TILE = 32 }; // two tiles fit the L1 cache
    char *to = out;
    const char *from = in;
    for (size_t r = 0; r < rows; r += TILE)
        for (size_t c = 0; c < cols; c += TILE)
            for (size_t i = r; i < rows && i < r + TILE; i++)
                for (size_t j = c; j < cols && j < c + TILE; j++)
                    memcpy(to + (j * rows + i) * bytes, from + (i * cols + j) * bytes, bytes);
}
