// SPDX-License-Identifier: Apache-2.0
// Internal: where two laws meet on a device (live_backend_type.compare), tokens are told apart by
// slots of their ratio target/draft: slot 0 of those that the target never writes, slot 1 up to
// 2^-20, then sixteen slots an octave, the last one from there on and of those that are never
// drafted. A slot is read off the first bits of the quotient, which rounds monotonically: slots
// partition tokens by their ratio. The same on host and device.
#ifndef DSC_LIVE_SLOTS_H
#define DSC_LIVE_SLOTS_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define LIVE_BOTH static inline __host__ __device__
#else
#define LIVE_BOTH static inline
#endif

enum {
    LIVE_MASS_SLOTS = 512,
    LIVE_SLOT_SHIFT = 48,                     // 2^4 slots an octave
    LIVE_SLOT_FIRST = ((1023 - 20) << 4) - 2, // slot 2 begins at 2^-20
    LIVE_MASS_BITS = 62,                      // masses are added up in 2^-62
};

// Of a ratio, or a quotient, > 0.
LIVE_BOTH int live_slot_of_ratio(double ratio)
{
    int64_t bits;
    memcpy(&bits, &ratio, sizeof bits);
    const int64_t slot = (bits >> LIVE_SLOT_SHIFT) - LIVE_SLOT_FIRST;
    return slot < 1 ? 1 : slot < LIVE_MASS_SLOTS - 1 ? (int)slot : LIVE_MASS_SLOTS - 1;
}

// Of a token with these masses, of which one is more than 0.
LIVE_BOTH int live_slot_of(double draft, double target)
{
    return !(target > 0)  ? 0
           : !(draft > 0) ? LIVE_MASS_SLOTS - 1
                          : live_slot_of_ratio(target / draft);
}

// Where slot 2 <= s < LIVE_MASS_SLOTS begins.
static inline double live_slot_begin(int s)
{
    const int64_t bits = ((int64_t)LIVE_SLOT_FIRST + s) << LIVE_SLOT_SHIFT;
    double ratio;
    memcpy(&ratio, &bits, sizeof ratio);
    return ratio;
}

// A mass in whole units; sums of these do not depend on their order.
LIVE_BOTH uint64_t live_mass_units(double mass)
{
    return (uint64_t)(mass * (double)((uint64_t)1 << LIVE_MASS_BITS) + 0.5);
}

static inline double live_mass_of(uint64_t units)
{
    return (double)units / (double)((uint64_t)1 << LIVE_MASS_BITS);
}

#endif
