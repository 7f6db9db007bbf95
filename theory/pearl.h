// SPDX-License-Identifier: Apache-2.0
// PEARL (Liu et al. 2024, arXiv 2408.11850): draft and target model run at the same time. In one
// iteration the draft model writes `window` tokens while the target makes one call, and the
// iteration takes as long as the slower of the two. These are closed forms of the published state
// machine under i.i.d. acceptance.
//
// A segment begins after a correction and ends with the next one, inclusive. `rate` in [0, 1] is
// the acceptance rate; `ratio` > 0 is target time/draft time (PEARL's c, the inverse of
// Leviathan's); `window` >= 1 is PEARL's gamma. A real machine needs an integer window, but the
// formulas hold for any.
#ifndef DSC_THEORY_PEARL_H
#define DSC_THEORY_PEARL_H

#include "base/status.h"

typedef enum dsc_pearl_form {
    DSC_PEARL_FULL,
    DSC_PEARL_NO_PRE_VERIFY,  // the first window after a correction is not verified while it is
                              // drafted
    DSC_PEARL_NO_POST_VERIFY, // tokens drafted during a verification are discarded
    DSC_PEARL_FORMS
} dsc_pearl_form;

// Tokens that the target accepts or adds per iteration; in [1, window] for DSC_PEARL_FULL.
double dsc_pearl_tokens(dsc_pearl_form form, double rate, double window);

// Speedup over one token per target call: tokens per iteration/max(window/ratio, 1).
double dsc_pearl_speedup(dsc_pearl_form form, double rate, double window, double ratio);

// The integer window with the greatest speedup: floor(ratio) or ceil(ratio), at least 1 (Theorem 1
// gives window = ratio; pearl.c has the proof for all forms). If both are equally good, it is the
// smaller one. At rate 0 every window up to `ratio` is equally good.
int dsc_pearl_best_window(dsc_pearl_form form, double rate, double ratio);

// Theorem 2, accepted drafts per segment. The exact value is a/(1 - a), the sum over k of k (1 - a)
// a^k, and 1/(1 - a) tokens with the correction. The printed value is 1/(1 - a) + 1, which is one
// too many even for tokens. Infinite at rate 1.
double dsc_pearl_accepted_exact(double rate);
double dsc_pearl_accepted_as_printed(double rate);

#endif
