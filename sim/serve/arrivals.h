// SPDX-License-Identifier: Apache-2.0
// When requests arrive: a closed loop of clients, a constant rate, or a random process. The gap
// before a request is a function of the seed and the request's number, so loads that differ only in
// their rate have the same random numbers, and no arrival has to be stored.
#ifndef DSC_SIM_ARRIVALS_H
#define DSC_SIM_ARRIVALS_H

#include "base/memory.h"

typedef enum dsc_arrival_kind {
    DSC_ARRIVALS_CLOSED,   // `clients` clients; each sends a request when its last one is complete
    DSC_ARRIVALS_CONSTANT, // every 1 / rate seconds
    DSC_ARRIVALS_POISSON,  // independent exponential gaps
    DSC_ARRIVALS_GAMMA,    // independent gamma gaps with coefficient of variation cv
    DSC_ARRIVALS_LISTED    // at time[0], time[1], ..., ascending, divided by `rate`
} dsc_arrival_kind;

typedef struct dsc_arrivals {
    dsc_arrival_kind kind;
    double rate;     // requests per second, 1e-9 to 1e9; LISTED: the speed at which the list passes
    double cv;       // GAMMA: 0.001 to 1000
    int64_t clients; // CLOSED: >= 1
    const double *time; // LISTED: [times] seconds, the caller's
    int64_t times;      // >= 1; the list begins again after its last time
    uint64_t seed;
} dsc_arrivals;

// "closed:C", "constant:QPS", "poisson:QPS", "gamma:QPS,CV"; "recorded" and "recorded:xSPEED" are
// LISTED with a time that the caller sets. DSC_EUSAGE: another text, or a number out of range.
int dsc_arrivals_parse(dsc_arrivals *out, const char *text, dsc_error *err);

// Requests per second in the long run; infinity where all of a list are at one time. NaN: CLOSED.
double dsc_arrivals_rate(const dsc_arrivals *a);

// Sets `rate` so that the gaps before the `count` >= 1 requests after request `first` have the mean
// that they have in the long run: what a finite run sees of a load then is not chance. Of POISSON
// and GAMMA; others stay as they are.
void dsc_arrivals_settle(dsc_arrivals *a, int64_t first, int64_t count);

// The arrival of request i >= 0, given that of request i - 1 (0 for i = 0). Open loops only.
double dsc_arrivals_next(const dsc_arrivals *a, int64_t i, double last_s);

#endif
