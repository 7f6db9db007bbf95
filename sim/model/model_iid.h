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

#include "sim/model/language.h"

enum { DSC_IID_VOCAB = 256, DSC_IID_DEPTHS_MAX = 65535, DSC_IID_LEVELS = 64 };

typedef struct dsc_iid_conditional_rates {
    double *conditional_rate; // [count] each in [0, 1]; the last one applies to all later positions
    size_t count, capacity;
    double request_sd;       // of the effect of a request, >= 0; the rates are those at effect 0
} dsc_iid_conditional_rates; // zero-initialize; free conditional_rate

// Which of the DSC_IID_LEVELS effects a request has.
size_t dsc_iid_level(int64_t request);
// Rates of requests with effects of standard deviation sd, rate[DSC_IID_LEVELS][count], for which
// drafts of `count` tokens, in requests that write equally long outputs, are accepted at the rates
// pooled[count] in [0, 1] when all requests are counted together. A pooled rate is what counters
// and draftscope sim measure; it is above that of the median request after the first positions,
// which easy requests reach more often.
void dsc_iid_split_rates(double *rate, const double *pooled, size_t count, double sd);

// Appends a rate. DSC_EUSAGE: not in [0, 1], or more than DSC_IID_DEPTHS_MAX.
int dsc_iid_conditional_rates_add(dsc_iid_conditional_rates *h, double conditional_rate,
                                  dsc_error *err);
// Appends the rates of a file, a number per line; blank lines and comments after '#' are skipped.
// DSC_EINPUT: the message has file and line.
int dsc_iid_conditional_rates_read(dsc_iid_conditional_rates *h, const char *path, dsc_error *err);

// The rates are copied. DSC_EUSAGE: there are none. *out is owned by the caller (type->free).
int dsc_iid_new(dsc_language **out, const dsc_iid_conditional_rates *h, dsc_model_side side,
                dsc_error *err);

#endif
