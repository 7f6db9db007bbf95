// SPDX-License-Identifier: Apache-2.0
// The throughput of a closed loop in a closed form: what a long run of the engine tends to, where
// all requests are equal.
#ifndef DSC_SIM_SERVE_MEAN_FIELD_H
#define DSC_SIM_SERVE_MEAN_FIELD_H

// Requests per second of `clients` > 0 clients, each of which sends a request when its last one is
// complete. The prefill of a request takes prefill_s >= 0 seconds of the engine, the part of a step
// that its last chunk is in not counted. Then the request takes part in `steps` >= 0 further steps,
// (output - 1) / mean acceptance length of them, of step_s > 0 seconds each. NaN outside this
// domain.
//
// Let the engine make f steps and complete X requests per second. All of its time is step time or
// prefill time: f step_s + X prefill_s = 1. Each client has a part in each step, and a request has
// its part in the last step of its prefill and in the further ones: f clients = X (1 + steps). So
//
//   X = 1 / (prefill_s + (1 + steps) step_s / clients).
//
// This assumes that a prefill is complete in one step and that no request waits for a place.
double dsc_serve_closed_rate(double clients, double prefill_s, double steps, double step_s);

#endif
