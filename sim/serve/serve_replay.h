// SPDX-License-Identifier: Apache-2.0
// Served drafts that the simulator's loop makes. Internal to sim/serve/.
#ifndef DSC_SIM_SERVE_REPLAY_H
#define DSC_SIM_SERVE_REPLAY_H

#include "sim/serve/serve_source.h"

// Drafts that depend on the preceding tokens only, chains or the trees of s->tree: those of a step
// at every output position, into the drafts of the source's items, which have room.
int dsc_serve_replay_everywhere(dsc_serve_source *s, const dsc_trace *trace,
                                const dsc_config *config, const dsc_run_options *options,
                                dsc_error *err);

// Any other draft: the steps of every request after its prefill, into s->script. `requests`: those
// of the trace, or, where that is NULL, of the workload.
int dsc_serve_replay_requests(dsc_serve_source *s, const dsc_trace *trace, size_t requests,
                              const dsc_config *config, const dsc_run_options *options,
                              dsc_error *err);

// The requests of options->workload: their prompts, and the output that their steps emit.
int dsc_serve_replay_workload(dsc_serve_source *s, const dsc_config *config,
                              const dsc_run_options *options, dsc_error *err);

#endif
