// SPDX-License-Identifier: Apache-2.0
// A pair whose acceptance is what it is told to be. The target writes one token with certainty, a
// pseudo-random function of the position; the draft says it with probability h and another with 1 -
// h. So sum min(draft, target) = h, whatever was written before: the independent acceptances of
// Leviathan et al. 2023 (section 3.1), under sampling and, as the target is certain, under greedy
// verification of a sampled draft. h is a constant, or a conditional acceptance rate h_d for the
// draft token with d drafted ones before it.
#ifndef DSC_SIM_MODEL_IID_H
#define DSC_SIM_MODEL_IID_H

#include "sim/model/language.h"

enum { DSC_IID_VOCAB = 256, DSC_IID_DEPTHS_MAX = 65535 };

typedef struct dsc_iid_conditional_rates {
    double *conditional_rate; // [count] each in [0, 1]; the last holds for all that is deeper
    size_t count, capacity;
} dsc_iid_conditional_rates; // zero-initialise, free conditional acceptance rate

// DSC_EUSAGE: not from 0 to 1, or more than DSC_IID_DEPTHS_MAX.
DSC_API int dsc_iid_conditional_rates_add(dsc_iid_conditional_rates *h, double conditional_rate,
                                          dsc_error *err);
// Appends those of a file: a number per line; blank lines and what follows a '#' are left out.
// DSC_EINPUT with file and line.
DSC_API int dsc_iid_conditional_rates_read(dsc_iid_conditional_rates *h, const char *path,
                                           dsc_error *err);

// The conditional acceptance rates are copied. DSC_EUSAGE: there are none. *out is owned by the
// caller (type->free).
DSC_API int dsc_iid_new(dsc_language **out, const dsc_iid_conditional_rates *h, dsc_model_side side,
                        dsc_error *err);

#endif
