// SPDX-License-Identifier: Apache-2.0
// Internal to the optimal-transport sampler: from an overlap to the levels of a race.
#ifndef DSC_THEORY_OTM_INTERNAL_H
#define DSC_THEORY_OTM_INTERNAL_H

#include "theory/otm_race.h"
#include "theory/otm_sampler.h"

typedef struct dsc_otm_fit {
    dsc_race race;     // k, levels, inside, ratio and mass are filled in
    dsc_mass sum;      // of the rows
    double alpha_high; // alpha_k is at most this
} dsc_otm_fit;

// The levels of two rows, which are distributions up to the factors `sum`. DSC_EUSAGE: k is outside
// [1, 64], or there is no token.
int dsc_otm_levels(dsc_otm_fit *f, dsc_overlap *rows, dsc_mass sum, int k, dsc_error *err);

// As dsc_otm_sampler_build, with at most `iterations` steps of the fit: poor weights cost
// acceptance and nothing else, which the tests show.
int dsc_otm_sampler_build_rough(dsc_otm_sampler *s, const double *draft, const double *target,
                                size_t vocab, int k, int iterations, dsc_error *err);

// As dsc_otm_sampler_build, for results that become floats. `next`: the last build was for the same
// rows and k - 1, and this one starts from its weights.
int dsc_otm_sampler_build_float(dsc_otm_sampler *s, dsc_overlap *rows, dsc_mass sum, int k,
                                bool next, dsc_error *err);

#endif
