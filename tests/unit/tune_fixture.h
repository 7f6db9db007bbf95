// SPDX-License-Identifier: Apache-2.0
// What the tests of tuning share: spaces by name, options, and a pair of models to run on.
#ifndef DSC_TESTS_TUNE_FIXTURE_H
#define DSC_TESTS_TUNE_FIXTURE_H

#include "tests/unit/model_fixture.h"

#include "cli/tune/tune.h"
#include "sim/model/workload.h"
#include "sim/tune/tune.h"

// A space of "[METHOD.]OPTION=LIST" items, as the command line would have given them.
static inline int space_of(dsc_space *s, const dsc_drafter_type *d, const char *const *over,
                           size_t overs, const char *const *start, size_t starts, dsc_error *err)
{
    dsc_option_uses given = {0};
    dsc_option_use use;
    int rc = DSC_OK;
    for (size_t i = 0; i < overs && !rc; i++) {
        const char *name = over[i], *dot = strchr(name, '.'), *equals = strchr(name, '=');
        use = (dsc_option_use){.text = equals + 1, .owned = dot && dot < equals};
        if (use.owned)
            name = dot + 1;
        for (size_t o = 0; o < d->option_count && !use.option; o++)
            if (dsc_option_is(&d->option[o], name, (size_t)(equals - name)))
                use.option = &d->option[o];
        assert_non_null(use.option);
        rc = dsc_option_uses_add(&given, &use, err);
    }
    if (!rc)
        rc = dsc_space_init(s, d, &given, start, starts, err);
    free(given.use);
    return rc;
}

static const dsc_cost unit = {.type = &dsc_cost_unit, .fixed_s = 1};
static const dsc_tune_price price = {1, &unit};

static inline dsc_tune_options options(int64_t requests, double share, uint64_t seed)
{
    return (dsc_tune_options){.price = &price,
                              .prices = 1,
                              .split = share,
                              .resamples = 400,
                              .seed = seed,
                              .requests = requests};
}

typedef struct setting {
    dsc_language *target, *draft;
    dsc_workload load;
    dsc_run_options run;
} setting;

static inline setting markov(int64_t requests, int threads)
{
    setting s = {.target = make("markov:20,7", DSC_SIDE_TARGET),
                 .draft = make("markov:20,7", DSC_SIDE_DRAFT)};
    s.load = (dsc_workload){.target = s.target,
                            .draft = s.draft,
                            .temperature = 1,
                            .requests = requests,
                            .prompt_tokens = 4,
                            .max_tokens = 40};
    s.run = (dsc_run_options){.rule = &dsc_verifier_rejection, .threads = threads, .seed = 11};
    return s;
}

static inline void setting_fini(setting *s)
{
    dsc_language_free(s->target);
    dsc_language_free(s->draft);
}

// The figures of a search are those of a run of the same configuration, and the interval is the one
// that sim prints.

#endif
