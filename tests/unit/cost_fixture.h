// SPDX-License-Identifier: Apache-2.0
// Costs by name, and the times that they give a pass.
#ifndef DSC_TESTS_COST_FIXTURE_H
#define DSC_TESTS_COST_FIXTURE_H

#include "tests/close.h"

#include "sim/cost/cost.h"

static inline dsc_cost cost_of(const char *text)
{
    dsc_cost cost;
    dsc_error err = {0};
    assert_ok(dsc_cost_parse(&cost, text, &err), err);
    return cost;
}

static inline double target_s(const dsc_cost *cost, double tokens, double context, double batch)
{
    double s;
    dsc_error err = {0};
    assert_ok(dsc_cost_target(cost, (dsc_pass){tokens, context, batch, false}, &s, &err), err);
    return s;
}

#endif
