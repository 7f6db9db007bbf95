// SPDX-License-Identifier: Apache-2.0
// The verdict on a simulated server (sim/serve/serve.h) at one load: which configuration to run, or
// to leave speculation off. With sim/tune/advice.h it is the only code that recommends.
//
// All rows of a load have the same requests, arrivals and random numbers. Their utility is speed
// times worth. Speed is the inverse of the mean time from arrival to last token, and throughput in
// a closed loop, which is the same up to a factor (Little's formula). Worth is the mean over
// requests of 1 for one within the SLO and a tenth for another, and 1 without an SLO.
// So utility is continuous in load, times and goodput, and one percent of goodput counts about as
// much as one percent of speed. The gain of a row is its utility divided by that of no speculation.
//
// Where a queue grows there is no mean time, and the gain is that of throughput. A row with which
// the queue grows is never recommended where it does not without speculation, and one with which it
// does not is recommended where it grows without.
//
// The interval of a gain is that of a ratio of sums on a logarithmic scale, with Student's t: the
// shares that a group of requests has of both sums differ, and the variance of these differences is
// that of the ratio (Cochran 1977, "Sampling Techniques", section 6.19). It is taken twice: over
// blocks of the trace's requests, for the choice of these, and over batches of consecutive
// requests, for that of arrivals. Where each request is served once both see the same noise and the
// larger one counts; where requests are served again and again they are different, and both count
// (two-way clustering; Cameron, Gelbach and Miller 2011, without the term that they subtract).
//
// A block also moves the others: with more requests like its own the engine has more to do, as at a
// higher load. So in an open loop a block whose share of the engine's time exceeds its share of the
// requests counts that excess times the elasticity of utility with respect to the load.
//
// The intervals of a load hold together, for all of its rows, so that they also hold for the best
// one.
#ifndef DSC_SIM_ADVICE_LOAD_H
#define DSC_SIM_ADVICE_LOAD_H

#include "sim/tune/advice.h"

// The worth of requests of which this share is within the SLO.
double dsc_load_worth(double within);

// Sums over groups of requests. Arrays are the caller's.
typedef struct dsc_load_sums {
    const double *requests;  // [count] number of requests
    const double *good;      // [count] of these within the SLO
    const double *latency_s; // [count] of the times from arrival to last token
    const double *engine_s;  // [count] the engine's time, divided among requests that run together
    size_t count;
} dsc_load_sums;

// A row's utility, throughput alone where a queue grows with one of both, divided by that of no
// speculation, with 95 % interval.
typedef struct dsc_load_gain {
    double gain;      // NaN: not comparable
    double low, high; // NaN: none, as one of both queues grows or there are fewer than 2 groups
    bool of_queues;   // of throughput, as a queue grows
} dsc_load_gain;

// A row of one load.
typedef struct dsc_load_row {
    bool none;                       // without speculation
    bool may_run;                    // it may be recommended: no upper bound, and the engine has it
    bool saturated;                  // the queue grows
    bool too_short;                  // not saturated, and too short for a steady state
    double e2e_mean_s, tokens_per_s; // of these is the speed
    double within;                   // share of requests within the SLO; 1 without one
    double elasticity;    // d log utility / d log rate of arrivals; of an open loop without a queue
                          // that grows
    dsc_load_sums blocks; // of requests of the trace
    dsc_load_sums batches;   // of consecutive requests of the run
    double requests, tokens; // that the sums are of
    double distinct;         // different requests of the trace among them
    dsc_load_gain than_none; // set by dsc_compare_load
} dsc_load_row;

typedef struct dsc_load_advice {
    dsc_advice_kind kind;
    size_t row;         // the row with the highest utility that may run; SIZE_MAX: none was judged
    bool all_saturated; // the queue grows with every row
    const char *why;    // none was judged: a static sentence without its first capital
} dsc_load_advice;

// Sets `than_none` of the rows of one load. Rows that are too short, and rows of other requests
// than those of `none`, are not comparable.
// DSC_ENOMEM.
int dsc_compare_load(dsc_load_row *row, size_t rows, bool closed, dsc_error *err);

// Judges the rows of one load, which were compared. ON: the lower end of the interval is above 1,
// or the queue grows without speculation alone. ABSTAIN: there is no row of `none`, or it or all
// others are too short, no comparable one may run, or the intervals are of fewer than 2 groups.
void dsc_advise_load(const dsc_load_row *row, size_t rows, bool closed, dsc_load_advice *out);

#endif
