// SPDX-License-Identifier: Apache-2.0
// The list of cost models. It is in a file of its own, because live mode, which must not link GSL,
// uses two of them.
#include "sim/cost/cost_types.h"

static const dsc_cost_type *const types[] = {
    &dsc_cost_unit,     &dsc_cost_linear, &dsc_cost_table,
    &dsc_cost_roofline, &dsc_cost_fit,    &dsc_cost_prometheus,
    &dsc_cost_bench,    &dsc_cost_sps,    NULL};

const dsc_cost_type *const *dsc_cost_types(void)
{
    return types;
}

int dsc_cost_parse(dsc_cost *out, const char *text, dsc_error *err)
{
    if (!out || !text)
        return dsc_fail(err, DSC_EUSAGE, "out and text must not be NULL");
    return dsc_cost_open(out, types,
                         "unit, linear:..., table:..., roofline:..., fit:..., prometheus:..., "
                         "bench:... or sps:...",
                         text, err);
}
