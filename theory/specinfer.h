// SPDX-License-Identifier: Apache-2.0
// SpecInfer verification with replacement (Miao et al. 2023, Alg. 2 on i.i.d. drafts). r_1 =
// target; draft i is accepted with probability min(1, r_i/draft), else r_{i+1} = (r_i - draft)+
// normalized. On the curve r_i = (target - c_i draft)+ / W(c_i), with c_1 = 0 and c_{i+1} = c_i +
// W(c_i). The acceptance after k rounds is 1 - W(c_{k+1}).
//
// Outside their domains (objects that were initialized, k in [1, 1000], probabilities in [0, 1])
// the functions return NaN and fill arrays with NaN, and dsc_specinfer_init returns DSC_EUSAGE.
// They write nothing where a pointer is NULL.
#ifndef DSC_THEORY_SPECINFER_H
#define DSC_THEORY_SPECINFER_H

#include "theory/curve.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsc_specinfer {
    int k;
    double accept; // Pr(some round accepts)
    double *c, *w; // [k + 1] c[i] = c_{i+1} and W(c_{i+1}): c[0] = 0, w[0] = 1, accept = 1 - w[k]
} dsc_specinfer;   // zero-initialize; dsc_specinfer_fini frees

// DSC_EUSAGE, DSC_ENOMEM.
DSC_API int dsc_specinfer_init(dsc_specinfer *s, const dsc_curve *c, int k, dsc_error *err);
DSC_API void dsc_specinfer_fini(dsc_specinfer *s);

// Only the acceptance, for k drafts.
DSC_API double dsc_specinfer_acceptance(const dsc_curve *c, int k);

// r_{round + 1}(x), 0 <= round <= k. The acceptance test of that round compares it with the draft's
// probability; r_{k + 1} is the residual distribution, sampled when all k are rejected. 0 when
// w[round] is 0.
DSC_API double dsc_specinfer_residual(const dsc_specinfer *s, int round, double draft_x,
                                      double target_x);

// Pr(accepted | the output is y), and the joint distribution with m survivors, defined in kseq.h.
DSC_API double dsc_specinfer_given(const dsc_specinfer *s, double draft_y, double target_y);
DSC_API void dsc_specinfer_survivors(const dsc_specinfer *s, double draft_y, double target_y,
                                     double *dist);

#ifdef __cplusplus
}
#endif

#endif
