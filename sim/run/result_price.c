// SPDX-License-Identifier: Apache-2.0
// Rows that a cost model prices. They are in a file of their own, because rows of live runs are
// timed and must not link the cost models and their statistics (GSL).
#include "sim/run/result.h"

int dsc_result_row(dsc_table *t, const dsc_result *result, int parts, dsc_error *err)
{
    dsc_price price;
    int rc =
        dsc_price_run(&price, result->cost, result->counts, result->batch ? result->batch : 1, err);
    return rc ? rc : dsc_result_row_timed(t, result, price.speedup, price.tokens_per_s, parts, err);
}
