// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011, "Parallel random numbers: as
// easy as 1, 2, 3") from Random123. A draw is a pure function of (seed, request, position, use), so
// threads, shards and the order of work cannot change a result, and methods compared on one trace
// share their uniforms.
#ifndef DSC_BASE_RNG_H
#define DSC_BASE_RNG_H

#include "base/status.h"

#include <stdint.h>

// The purpose of a draw. It is part of the counter, so that two purposes never share random bits.
typedef enum dsc_rng_use {
    DSC_RNG_TIE = 1,
    DSC_RNG_BOOTSTRAP = 2,
    DSC_RNG_OUTPUT = 3,       // tokens of a synthetic output
    DSC_RNG_MARKOV = 4,       // transition probabilities of a Markov chain
    DSC_RNG_IID = 5,          // tokens of an i.i.d. target
    DSC_RNG_DRAFT = 6,        // draft tokens sampled from a draft model
    DSC_RNG_VERIFY = 7,       // uniforms of a verification rule
    DSC_RNG_SAMPLE = 8,       // which requests of a trace are kept
    DSC_RNG_WEIGHTS = 0x7765, // random weights of a model
    DSC_RNG_ORDER = 0x6f72,   // the order of requests
    DSC_RNG_FAMILY = 0x7a69,  // noise of a family of distributions
    DSC_RNG_SPLIT = 0x7370,   // which part of a sweep a shard runs
    DSC_RNG_STEPS = 0x7374,   // accepted tokens of simulated rounds
    DSC_RNG_STEPS_REST = 0x7375,
    DSC_RNG_CHOOSE = 0x7475,   // which requests are in the selection set
    DSC_RNG_ARRIVALS = 0x6171, // gaps between arrivals
    DSC_RNG_REQUEST = 0x7172,  // which request of a trace is served
    DSC_RNG_ACCEPT = 0x6163,   // accepted tokens of a served request
    DSC_RNG_LENGTH = 0x6c65,   // tokens of a served request
} dsc_rng_use;

void dsc_rng_words(uint64_t seed, uint64_t request, uint32_t position, uint32_t use,
                   uint32_t out[4]);

// Uniform in [0, 1), 53 bits.
double dsc_rng_uniform(uint64_t seed, uint64_t request, uint32_t position, uint32_t use);

// Uniform in [0, n), n >= 1; bias below 2^-32 (multiply-shift on 64 bits).
uint32_t dsc_rng_below(uint64_t seed, uint64_t request, uint32_t position, uint32_t use,
                       uint32_t n);

#endif
