// SPDX-License-Identifier: Apache-2.0
// Internal: slots of the ratio target/draft, by which the overlap of two distributions groups
// tokens. Slot 0 holds the tokens with target probability 0; slot 1 holds ratios up to 2^-20; then
// each octave has sixteen slots; the last slot holds all larger ratios and the tokens with draft
// probability 0. A slot is the leading bits of the quotient, which rounds monotonically, so slots
// partition tokens by their ratio. Host and device use the same code.
#ifndef DSC_THEORY_RATIO_SLOT_H
#define DSC_THEORY_RATIO_SLOT_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define DSC_BOTH static inline __host__ __device__
#else
#define DSC_BOTH static inline
#endif

enum {
    DSC_RATIO_SLOTS = 512,
    DSC_RATIO_SHIFT = 48,                     // 2^4 slots per octave
    DSC_RATIO_FIRST = ((1023 - 20) << 4) - 2, // slot 2 begins at 2^-20
    DSC_MASS_BITS = 62,                       // masses are summed in units of 2^-62
};

// The slot of a ratio > 0.
DSC_BOTH int dsc_ratio_slot(double ratio)
{
    int64_t bits;
    memcpy(&bits, &ratio, sizeof bits);
    const int64_t slot = (bits >> DSC_RATIO_SHIFT) - DSC_RATIO_FIRST;
    return slot < 1 ? 1 : slot < DSC_RATIO_SLOTS - 1 ? (int)slot : DSC_RATIO_SLOTS - 1;
}

// The slot of a token with these masses, at least one of which is > 0.
DSC_BOTH int dsc_ratio_slot_of(double draft, double target)
{
    return !(target > 0) ? 0 : !(draft > 0) ? DSC_RATIO_SLOTS - 1 : dsc_ratio_slot(target / draft);
}

// The smallest ratio of slot s, 2 <= s < DSC_RATIO_SLOTS.
static inline double dsc_ratio_slot_begin(int s)
{
    const int64_t bits = ((int64_t)DSC_RATIO_FIRST + s) << DSC_RATIO_SHIFT;
    double ratio;
    memcpy(&ratio, &bits, sizeof ratio);
    return ratio;
}

// A mass in integer units; sums of units do not depend on their order.
DSC_BOTH uint64_t dsc_mass_units(double mass)
{
    return (uint64_t)(mass * (double)((uint64_t)1 << DSC_MASS_BITS) + 0.5);
}

static inline double dsc_mass_of(uint64_t units)
{
    return (double)units / (double)((uint64_t)1 << DSC_MASS_BITS);
}

#endif
