// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al., SC 2011) and uniforms from its words; base/rng.h.
#include "base/rng.h"

#include <Random123/philox.h>

void dsc_rng_words(uint64_t seed, uint64_t request, uint32_t position, uint32_t use,
                   uint32_t out[4])
{
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    philox4x32_ctr_t counter = {{(uint32_t)request, (uint32_t)(request >> 32), position, use}};
    philox4x32_ctr_t r = philox4x32(counter, key);
    for (int i = 0; i < 4; i++)
        out[i] = r.v[i];
}

static uint64_t word64(uint64_t seed, uint64_t request, uint32_t position, uint32_t use)
{
    uint32_t w[4];
    dsc_rng_words(seed, request, position, use, w);
    return (uint64_t)w[0] << 32 | w[1];
}

double dsc_rng_uniform(uint64_t seed, uint64_t request, uint32_t position, uint32_t use)
{
    return (double)(word64(seed, request, position, use) >> 11) * 0x1p-53;
}

uint32_t dsc_rng_below(uint64_t seed, uint64_t request, uint32_t position, uint32_t use, uint32_t n)
{
    return (uint32_t)(((unsigned __int128)word64(seed, request, position, use) * n) >> 64);
}
