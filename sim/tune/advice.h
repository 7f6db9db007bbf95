// SPDX-License-Identifier: Apache-2.0
// The verdict on a search: which configuration to run, or to leave speculation off. It is the only
// code that recommends a configuration.
//
// Configurations are compared for one set of requests, one cost model and one batch size. The one
// that is best on the selection set is judged on the test set against `none`, in the same bootstrap
// resamples. It is recommended when the lower end of the 95 % interval of the speedup is above 1. A
// configuration with a lossy rule is never recommended.
#ifndef DSC_SIM_ADVICE_H
#define DSC_SIM_ADVICE_H

#include "sim/tune/tune.h"

typedef enum dsc_advice_kind {
    DSC_ADVICE_ABSTAIN, // the search supports no verdict; `why`
    DSC_ADVICE_OFF,     // leave speculation off
    DSC_ADVICE_ON,      // run the configuration
} dsc_advice_kind;

typedef struct dsc_advice {
    dsc_advice_kind kind;
    size_t standing;           // the configuration that was judged, an index of the ranking
    double speedup, low, high; // of it to `none` on the test set, with 95 % interval; NaN: ABSTAIN,
                               // or `none` itself was the best on the selection set
    // The speedup on the test set with the configuration's passes at the third quartile of the
    // measured times and those of `none` at the first, and the reverse; NaN without quartiles.
    double cost_low, cost_high;
    // That the verdict is another one at one of these, a static sentence; NULL: it is not.
    const char *caveat;
    const char *why; // a static sentence without its first capital
} dsc_advice;

// Returns whether a trial may be recommended, for example because an engine has its method.
typedef bool dsc_advice_fits(const void *user, const dsc_trial *x);

// Judges the ranking of one price (dsc_tune_rank). `fits` NULL: every trial may be recommended, but
// for upper bounds (dsc_drafter_type.is_bound). The trials must include one of `none`
// (DSC_EUSAGE). ABSTAIN: the objective has no costs, the cost model is `unit`, there is no test set
// or it has fewer than 2 requests, or no trial fits.
int dsc_tune_advise(const dsc_tune *t, size_t price, const dsc_standing *standing,
                    dsc_advice_fits *fits, const void *user, int threads, dsc_advice *out,
                    dsc_error *err);

#endif
