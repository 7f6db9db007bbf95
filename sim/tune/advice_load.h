// SPDX-License-Identifier: Apache-2.0
// The verdict on a simulated server (sim/serve/serve.h) at one load: which configuration to run, or
// to leave speculation off. With sim/tune/advice.h it is the only code that recommends.
//
// All rows of a load have the same requests, arrivals and random numbers. The requests of the trace
// are divided into blocks, and a row has the sums of each. A configuration is chosen on the blocks
// with even indices and judged against no speculation on the odd ones, which are other requests.
//
// The interval is that of a ratio of sums on a logarithmic scale, with Student's t: the shares that
// a block has of both sums differ, and the variance of these differences is that of the ratio
// (Cochran 1977, "Sampling Techniques", section 6.19). It is taken twice: over blocks, for the
// choice of requests, and over batches of consecutive requests, for that of arrivals. Where each
// request is served once both see the same noise and the larger one counts; where requests are
// served again and again they are different, and both count (two-way clustering; Cameron, Gelbach
// and Miller 2011, without the term that they subtract).
#ifndef DSC_SIM_ADVICE_LOAD_H
#define DSC_SIM_ADVICE_LOAD_H

#include "sim/tune/advice.h"

// What the rows of a load are compared by.
typedef enum dsc_load_criterion {
    DSC_LOAD_LATENCY,    // mean time from the arrival to the last token
    DSC_LOAD_THROUGHPUT, // of a closed loop: by Little's formula its clients divided by that time
    DSC_LOAD_GOODPUT,    // requests per second within the SLO
    DSC_LOAD_OVERLOAD,   // throughput where a queue grows and latencies describe no steady state
} dsc_load_criterion;

// Sums over groups of requests. Arrays are the caller's.
typedef struct dsc_load_sums {
    const double *latency_s; // [count] of the times from arrival to last token
    const double *engine_s;  // [count] the engine's time, divided among requests that run together
    const double *good;      // [count] number of requests within the SLO
    size_t count;
} dsc_load_sums;

// A row of one load.
typedef struct dsc_load_row {
    bool none;               // without speculation
    bool may_run;            // it may be recommended: no upper bound, and the engine has it
    bool saturated;          // the queue grows
    bool too_short;          // not saturated, and too short for a steady state
    dsc_load_sums blocks;    // of requests of the trace
    dsc_load_sums batches;   // of consecutive requests of the run, those in odd blocks only
    double requests, tokens; // that the sums are of
    double distinct;         // different requests of the trace among them
} dsc_load_row;

typedef struct dsc_load_advice {
    dsc_advice_kind kind;
    size_t row; // the row that was judged; SIZE_MAX: none was
    dsc_load_criterion criterion;
    // The criterion of the row divided by that of no speculation (for latency the reverse), above 1
    // where the row is better, with 95 % interval. NaN: no row was judged. Infinity: only the row
    // has any goodput.
    double gain, low, high;
    bool none_saturated, all_saturated; // the queue grows without speculation; with every row
    const char *why;                    // a static sentence without its first capital
} dsc_load_advice;

// Judges the rows of one load. With `slo`, and where some row that may run has at least a tenth of
// its requests within it, goodput comes first: a row whose goodput is not lower by
// more than 1 % is judged by the criterion that holds without an SLO, which is throughput where
// `closed` and latency otherwise. Saturated rows are judged by throughput alone, and none of them
// is recommended where a row that may run is not saturated. Rows that are too
// short are not judged. ABSTAIN: there is no row of `none`, or it or all others are too short, no
// other one may run, or fewer than 2 blocks remain to judge on; rows of other requests than those
// of `none` do not count.
void dsc_advise_load(const dsc_load_row *row, size_t rows, bool closed, bool slo,
                     dsc_load_advice *out);

#endif
