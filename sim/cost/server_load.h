// SPDX-License-Identifier: Apache-2.0
// What a server did between two snapshots of its metrics page.
#ifndef DSC_SIM_SERVER_LOAD_H
#define DSC_SIM_SERVER_LOAD_H

#include "base/status.h"

typedef struct dsc_server_load {
    char model[128];      // label model_name, or ""
    int engines;          // that share the load
    double steps;         // decoding steps, counted for each sequence
    double step_s;        // their mean time
    double batch;         // sequences of an engine in a step: see dsc_server_load_read
    double running[2];    // requests of all engines at the two snapshots
    double output_tokens; // generated
    double prompt_tokens; // read by prefills, which ran in the same steps
    double num_drafts, num_draft_tokens, num_accepted_tokens; // 0: no speculation
} dsc_server_load;

// Reads two pages of vLLM. DSC_EINPUT: a page lacks a metric or has one twice, several models share
// it, a counter decreased (the server was restarted in between, or the pages are swapped), nothing
// was generated, or the counts disagree. DSC_EUSAGE: an argument is NULL.
//
// The batch is the mean over the steps, from the number of iterations; without that metric it is
// the mean of the requests running at both snapshots.
int dsc_server_load_read(dsc_server_load *out, const char *before, const char *after,
                         dsc_error *err);

#endif
