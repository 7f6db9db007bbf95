// SPDX-License-Identifier: Apache-2.0
// A pair of models with given acceptance rates. The target has one token of probability 1, a
// pseudo-random function of the position; the draft gives it probability h, and another token 1 -
// h. So sum min(draft, target) = h after any text: the independent acceptances of Leviathan et al.
// 2023 (section 3.1), under sampling and, because the target is deterministic, under greedy
// verification of a sampled draft. h is a constant, or a conditional acceptance rate h_d for the
// draft token after d other draft tokens. Requests may differ: a normal effect of the request is
// added to the logit of its rates (theory/request_effect.h), in DSC_IID_LEVELS equally probable
// steps.
#ifndef DSC_SIM_MODEL_IID_H
#define DSC_SIM_MODEL_IID_H

#include "sim/acceptance.h"
#include "sim/model/language.h"

enum { DSC_IID_VOCAB = 256, DSC_IID_LEVELS = 64 };

// Which of the DSC_IID_LEVELS effects a request has.
size_t dsc_iid_level(int64_t request);
// Rates of requests with effects of standard deviation sd, rate[DSC_IID_LEVELS][count], for which
// drafts of `count` tokens, in requests that write equally long outputs, are accepted at the rates
// pooled[count] in [0, 1] when all requests are counted together. A pooled rate is what counters
// and draftscope sim measure; it is above that of the median request after the first positions,
// which easy requests reach more often.
void dsc_iid_split_rates(double *rate, const double *pooled, size_t count, double sd);

// The rates around which requests differ by effects of standard deviation sd: rate[DSC_IID_LEVELS]
// [count], the logit of each of median[count] moved by the effect.
void dsc_iid_spread_rates(double *rate, const double *median, size_t count, double sd);

// The rates are copied. *out is owned by the caller (type->free). DSC_ENOMEM.
int dsc_iid_new(dsc_language **out, const dsc_acceptance_rates *r, dsc_model_side side,
                dsc_error *err);

#endif
