// SPDX-License-Identifier: Apache-2.0
// Internal to the optimal-transport sampler: from rows to the levels of a race.
#ifndef DSC_THEORY_OTM_INTERNAL_H
#define DSC_THEORY_OTM_INTERNAL_H

#include "theory/otm_race.h"
#include "theory/otm_sampler.h"
#include "theory/rows_curve.h"

typedef struct dsc_otm_rows {
    const double *draft, *target; // [vocab], or NULL and
    const float *draft_f32, *target_f32;
    size_t vocab;
    // Or one of these; then the others are not looked at.
    dsc_rows_curve *curve;
    dsc_overlap *overlap; // of distributions
} dsc_otm_rows;

typedef struct dsc_otm_fit {
    dsc_race race;                // k, levels, inside, ratio and mass are filled in
    double draft_sum, target_sum; // of the rows
    double alpha_high;            // alpha_k is at most this
} dsc_otm_fit;

// DSC_EUSAGE: k outside [1, 64]; DSC_EINPUT: a row is no distribution.
int dsc_otm_levels(dsc_otm_fit *f, const dsc_otm_rows *rows, int k, dsc_error *err);

// As dsc_otm_sampler_build, with at most `iterations` steps of the fit: poor weights cost
// acceptance and nothing else, which the tests show.
int dsc_otm_sampler_build_rough(dsc_otm_sampler *s, const dsc_otm_rows *rows, int k, int iterations,
                                dsc_error *err);

// As dsc_otm_sampler_build, for results that become floats. `next`: the last build was for the same
// rows and k - 1, and this one starts from its weights.
int dsc_otm_sampler_build_float(dsc_otm_sampler *s, const dsc_otm_rows *rows, int k, bool next,
                                dsc_error *err);

#endif
