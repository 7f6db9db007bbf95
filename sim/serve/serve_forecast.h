// SPDX-License-Identifier: Apache-2.0
// What the next step of the engine will compute in addition to the drafts that a policy chooses.
#ifndef DSC_SIM_SERVE_FORECAST_H
#define DSC_SIM_SERVE_FORECAST_H

#include "sim/serve/serve.h"

// Fills the first part of *out, up to `draft_context`, for the next step without new drafts: one
// token of each sequence that has emitted in this step and continues, the tokens of those that this
// step left out, prefill chunks of running requests, and those of waiting requests for which there
// are budget, sequences and KV blocks. Requests that arrive later and preemptions are not known.
// Returns the number of requests from which that step samples. To be called within
// dsc_serve_policy_type.choose.
int64_t dsc_serve_forecast(const dsc_serve_engine *engine, dsc_serve_step *out);

#endif
