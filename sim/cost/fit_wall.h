// SPDX-License-Identifier: Apache-2.0
// A linear cost fitted to the wall times of whole requests.
#ifndef DSC_SIM_FIT_WALL_H
#define DSC_SIM_FIT_WALL_H

#include "sim/cost/cost.h"
#include "traces/trace/trace.h"

// Fits cost->fixed_s and per_token_s to a trace whose metadata have wall times, and describes the
// fit in the note (see sim/cost/fit_wall.c). DSC_EINPUT: no wall times, or one that is not above 0;
// too few requests; steps and draft tokens that are proportional in every request.
int dsc_fit_wall(dsc_cost *cost, const dsc_trace *trace, dsc_error *err);

#endif
