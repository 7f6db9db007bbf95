// SPDX-License-Identifier: Apache-2.0
// Default configurations for the tests of every method with every rule.
#ifndef DSC_TESTS_DEFAULT_CONFIG_H
#define DSC_TESTS_DEFAULT_CONFIG_H

#include "sim/loop.h"
#include "tests/close.h"

#include <string.h>

// The defaults, not prepared. References are those of the prompt, as models write without
// documents.
static inline void default_config(dsc_config *c, const dsc_drafter_type *d)
{
    dsc_error err = {0};
    dsc_config_init(c, d);
    if (dsc_option_find(d->option, d->option_count, "references"))
        assert_ok(dsc_config_set(c, "references", "prompt", &err), err);
}

// The defaults with drafts of at most three tokens, prepared.
static inline void short_config(dsc_config *c, const dsc_drafter_type *d)
{
    dsc_error err = {0};
    default_config(c, d);
    for (size_t o = 0; o < d->option_count; o++)
        if (d->option[o].kind == DSC_OPTION_INT &&
            (!strcmp(d->option[o].name, "num-speculative-tokens") ||
             !strcmp(d->option[o].name, "num-drafts") || !strcmp(d->option[o].name, "level")))
            c->parameter[o] = 3;
    if (dsc_option_find(d->option, d->option_count, "match-threshold")) // copies in short texts
        assert_ok(dsc_config_set(c, "match-threshold", "1", &err), err);
    if (dsc_option_find(d->option, d->option_count, "candidate-steps")) { // a new one each step
        assert_ok(dsc_config_set(c, "candidate-steps", "0/1/3", &err), err);
        assert_ok(dsc_config_set(c, "controller", "ucb", &err), err);
    }
    assert_ok(dsc_config_prepare(c, &err), err);
}

// Whether they go together where every model is there and answers everything.
static inline bool fits_models(const dsc_drafter_type *d, const dsc_verifier_type *v,
                               bool marginals, dsc_draft_kind *dist)
{
    dsc_error ignored;
    const dsc_fit all = {
        .draft = true, .middle = true, .marginals = marginals, .dists = true, .off_path = true};
    return dsc_draft_kind_for(dist, d, v, &all, &ignored) == DSC_OK;
}

// The same where the draft model predicts one token after another.
static inline bool fits(const dsc_drafter_type *d, const dsc_verifier_type *v, dsc_draft_kind *dist)
{
    return fits_models(d, v, false, dist);
}

// Pearson's statistic of `texts` counts, n in all, against the exact distribution.
static inline double pearson(const int64_t *count, const double *dist, int texts, int64_t n,
                             int *degrees)
{
    double sum = 0;
    *degrees = texts - 1;
    for (int t = 0; t < texts; t++) {
        double expected = dist[t] * (double)n, d = (double)count[t] - expected;
        sum += d * d / expected;
    }
    return sum;
}

#endif
