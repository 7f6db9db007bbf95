// SPDX-License-Identifier: Apache-2.0
// Opens a cost model of a given list, for programs that must not link all of them.
#ifndef DSC_SIM_COST_TYPES_H
#define DSC_SIM_COST_TYPES_H

#include "sim/cost/cost.h"

// dsc_cost_parse with the cost models of `types`, NULL-terminated; `choices` names them in the
// error for another one: "linear:... or table:...".
int dsc_cost_open(dsc_cost *out, const dsc_cost_type *const *types, const char *choices,
                  const char *text, dsc_error *err);

#endif
