// SPDX-License-Identifier: Apache-2.0
// Internal: where two distributions meet, tokens are told apart by slots of their ratio
// target/draft: slot 0 of those that the target never writes, slot 1 up to 2^-20, then sixteen
// slots an octave, the last one from there on and of those that are never drafted. A slot is read
// off the first bits of the quotient, which rounds monotonically: slots partition tokens by their
// ratio. The same on host and device.
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
    DSC_RATIO_SHIFT = 48,                     // 2^4 slots an octave
    DSC_RATIO_FIRST = ((1023 - 20) << 4) - 2, // slot 2 begins at 2^-20
    DSC_MASS_BITS = 62,                       // masses are added up in 2^-62
};

// Of a ratio, or a quotient, > 0.
DSC_BOTH int dsc_ratio_slot(double ratio)
{
    int64_t bits;
    memcpy(&bits, &ratio, sizeof bits);
    const int64_t slot = (bits >> DSC_RATIO_SHIFT) - DSC_RATIO_FIRST;
    return slot < 1 ? 1 : slot < DSC_RATIO_SLOTS - 1 ? (int)slot : DSC_RATIO_SLOTS - 1;
}

// Of a token with these masses, of which one is more than 0.
DSC_BOTH int dsc_ratio_slot_of(double draft, double target)
{
    return !(target > 0) ? 0 : !(draft > 0) ? DSC_RATIO_SLOTS - 1 : dsc_ratio_slot(target / draft);
}

// Where slot 2 <= s < DSC_RATIO_SLOTS begins.
static inline double dsc_ratio_slot_begin(int s)
{
    const int64_t bits = ((int64_t)DSC_RATIO_FIRST + s) << DSC_RATIO_SHIFT;
    double ratio;
    memcpy(&ratio, &bits, sizeof ratio);
    return ratio;
}

// A mass in whole units; sums of these do not depend on their order.
DSC_BOTH uint64_t dsc_mass_units(double mass)
{
    return (uint64_t)(mass * (double)((uint64_t)1 << DSC_MASS_BITS) + 0.5);
}

static inline double dsc_mass_of(uint64_t units)
{
    return (double)units / (double)((uint64_t)1 << DSC_MASS_BITS);
}

#endif
