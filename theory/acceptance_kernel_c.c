// SPDX-License-Identifier: Apache-2.0
// The loops over all tokens in portable C; theory/acceptance_kernel.h.
#include "theory/acceptance_kernel.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float magnitude(uint32_t bits)
{
    float x;
    bits &= 0x7fffffff;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// 0/0, a token neither distribution can draw, is a NaN and ends up at the bottom or the top, with
// mass 0.
static int32_t slot_of(float ratio, int32_t first, size_t token)
{
    int32_t sink = (int32_t)(token % DSC_SINKS);
    int32_t slot = (((int32_t)bits_of(ratio) - first) >> DSC_CELL_SHIFT) + DSC_SINKS;
    slot = slot < sink ? sink : slot;
    return slot > DSC_SLOTS - DSC_SINKS + sink ? DSC_SLOTS - DSC_SINKS + sink : slot;
}

uint32_t dsc_rows_histogram_c(const float *draft, const float *target, size_t begin, size_t n,
                              int32_t first, dsc_mass *sum, uint16_t *slot)
{
    uint32_t worst = 0;
    for (size_t i = begin; i < n; i++) {
        uint32_t d = bits_of(draft[i]), t = bits_of(target[i]);
        worst = worst > d ? worst : d;
        worst = worst > t ? worst : t;
        int32_t s = slot_of(magnitude(t) / magnitude(d), first, i);
        slot[i] = (uint16_t)s;
        sum[s].draft += magnitude(d);
        sum[s].target += magnitude(t);
    }
    return worst;
}

size_t dsc_rows_select_c(const uint16_t *slot, size_t begin, size_t n, const uint16_t *wanted,
                         size_t count, uint32_t *found)
{
    unsigned char is_wanted[DSC_SLOTS] = {0};
    size_t out = 0;
    for (size_t i = 0; i < count; i++)
        is_wanted[wanted[i]] = 1;
    for (size_t i = begin; i < n; i++) {
        found[out] = (uint32_t)i;
        out += is_wanted[slot[i]];
    }
    return out;
}

static uint32_t histogram(const float *draft, const float *target, size_t n, int32_t first,
                          dsc_mass *sum, uint16_t *slot, const void *const *ahead)
{
    (void)ahead;
    return dsc_rows_histogram_c(draft, target, 0, n, first, sum, slot);
}

static size_t select_tokens(const uint16_t *slot, size_t n, const uint16_t *wanted, size_t count,
                            uint32_t *found)
{
    return dsc_rows_select_c(slot, 0, n, wanted, count, found);
}

static int supported(void)
{
    return 1;
}

const dsc_rows_kernel dsc_rows_kernel_c = {"portable", supported, histogram, select_tokens};
