// SPDX-License-Identifier: Apache-2.0
// A run over time: requests, KV blocks and drafts in at most DSC_SERVE_BINS bins of equal length.
// The length doubles while the run goes on, so a run of any length takes the same memory.
#ifndef DSC_SIM_SERVE_OCCUPANCY_H
#define DSC_SIM_SERVE_OCCUPANCY_H

#include "sim/serve/serve.h"

enum { DSC_SERVE_BINS = 400 };

// What a bin adds up. A step counts in every bin that it overlaps, by its share of time there.
typedef enum dsc_serve_quantity {
    DSC_SERVE_BUSY_S,    // seconds of steps
    DSC_SERVE_RUNNING_S, // running requests x seconds
    DSC_SERVE_WAITING_S, // waiting requests x seconds
    DSC_SERVE_BLOCKS_S,  // blocks of the KV cache x seconds
    DSC_SERVE_STEPS,
    DSC_SERVE_DECODING, // sequences that decode, of all steps
    DSC_SERVE_DRAFTED,  // draft tokens verified
    DSC_SERVE_ACCEPTED, // draft tokens accepted
    DSC_SERVE_QUANTITIES
} dsc_serve_quantity;

typedef struct dsc_serve_occupancy {
    double begin_s, end_s; // first arrival; end of the last step
    double width_s;        // of a bin; 0 before the first step
    double bin[DSC_SERVE_BINS][DSC_SERVE_QUANTITIES];
    double before[DSC_SERVE_QUANTITIES]; // totals up to the last step
} dsc_serve_occupancy;                   // zero-initialize

// Adds the engine's last step; for the hook `step` of dsc_serve_options. The bins add up to the
// totals of the run. The time that a request waits in the step in which it arrives is counted in
// the step after that.
void dsc_serve_occupancy_add(dsc_serve_occupancy *o, const dsc_serve_engine *e);

// The number of bins up to the end; the seconds of bin i, of which the last one is shorter.
size_t dsc_serve_occupancy_bins(const dsc_serve_occupancy *o);
double dsc_serve_occupancy_seconds(const dsc_serve_occupancy *o, size_t i);

#endif
