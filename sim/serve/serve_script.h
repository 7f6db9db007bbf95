// SPDX-License-Identifier: Apache-2.0
// The steps of requests whose drafts depend on the steps before them, as the simulator's loop made
// them (dsc_serve_pool.script). Internal to sim/serve/.
#ifndef DSC_SIM_SERVE_SCRIPT_H
#define DSC_SIM_SERVE_SCRIPT_H

#include "sim/serve/serve.h"

// Ends the steps that were scheduled, for all running sequences, and counts the draft model's
// passes: of the next steps, or, where they overlap the target's, of these. `scheduled` becomes the
// number of emitted tokens.
void dsc_serve_script_verify(dsc_serve_engine *engine);

#endif
