// SPDX-License-Identifier: Apache-2.0
// Rows that a cost model prices. They are in a file of their own, because rows of live runs are
// timed and must not link the cost models and their statistics (GSL).
#include "sim/run/result.h"

static int speedup_at(const dsc_result *x, int quartile, double *speedup, dsc_error *err)
{
    dsc_price price;
    dsc_cost cost = *x->cost;
    cost.quartile = quartile;
    int rc = dsc_price_run(&price, &cost, x->counts, x->batch ? x->batch : 1, err);
    *speedup = price.speedup;
    return rc;
}

int dsc_result_row(dsc_table *t, const dsc_result *result, int parts, dsc_error *err)
{
    dsc_price price;
    dsc_result x = *result;
    int rc = dsc_price_run(&price, x.cost, x.counts, x.batch ? x.batch : 1, err);
    if (!rc && parts & DSC_RESULT_SPREAD)
        rc = speedup_at(&x, 1, &x.cost_low, err);
    if (!rc && parts & DSC_RESULT_SPREAD)
        rc = speedup_at(&x, -1, &x.cost_high, err);
    return rc ? rc : dsc_result_row_timed(t, &x, price.speedup, price.tokens_per_s, parts, err);
}
