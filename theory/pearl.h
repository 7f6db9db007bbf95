// SPDX-License-Identifier: Apache-2.0
// PEARL (Liu et al. 2024, arXiv 2408.11850): draft and target model work at the same time. In one
// iteration the draft model writes `window` tokens while the target makes one call; the longer of
// the two is waited for. Closed forms of the published state machine under i.i.d. acceptance.
//
// A segment is what lies between two corrections, the second included. `rate` in [0, 1] is the
// acceptance rate; `ratio` > 0 is target time/draft time (PEARL's c, the inverse of Leviathan's);
// `window` >= 1 is PEARL's gamma: a whole number in a real machine, but the formulas hold for any.
#ifndef DSC_THEORY_PEARL_H
#define DSC_THEORY_PEARL_H

#include "base/status.h"

typedef enum dsc_pearl_form {
    DSC_PEARL_FULL,
    DSC_PEARL_NO_PRE_VERIFY,  // the first window after a correction is not tested while drafted
    DSC_PEARL_NO_POST_VERIFY, // what is drafted during a verification is thrown away
    DSC_PEARL_FORMS
} dsc_pearl_form;

// Tokens that the target confirms or adds, per iteration; in [1, window] for DSC_PEARL_FULL.
DSC_API double dsc_pearl_tokens(dsc_pearl_form form, double rate, double window);

// Against one token per target call: tokens per iteration/max(window/ratio, 1).
DSC_API double dsc_pearl_speedup(dsc_pearl_form form, double rate, double window, double ratio);

// The whole window with the greatest speed-up: floor(ratio) or ceil(ratio), 1 at least (Theorem 1
// gives window = ratio; the proof, for all forms, is in pearl.c). The smaller one when both are
// equally good. At rate 0 every window up to `ratio` is as good as any other.
DSC_API int dsc_pearl_best_window(dsc_pearl_form form, double rate, double ratio);

// Theorem 2, accepted drafts per segment. Exact: a/(1 - a), and 1/(1 - a) tokens with the
// correction. As printed: 1/(1 - a) + 1, which is one too many even for tokens: the sum over k of
// k (1 - a) a^k is a/(1 - a). Infinite at rate 1.
DSC_API double dsc_pearl_accepted_exact(double rate);
DSC_API double dsc_pearl_accepted_as_printed(double rate);

#endif
