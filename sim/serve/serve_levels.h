// SPDX-License-Identifier: Apache-2.0
// Served drafts of several tokens at a position: independent sequences and trees whose shape does
// not depend on the text. Internal to sim/serve/.
#ifndef DSC_SIM_SERVE_LEVELS_H
#define DSC_SIM_SERVE_LEVELS_H

#include "sim/expect/expect_rule.h"
#include "sim/serve/serve_draft.h"

// The tokens of the first 0, 1, ... levels of a configuration's drafts, [*levels + 1], the
// caller's. A pass of the draft model is over the nodes of the level above (sequences: over the
// last token of each). DSC_EUSAGE: more than DSC_SERVE_LONGEST levels.
int dsc_serve_levels_new(dsc_serve_level **out, int32_t *levels, const dsc_config *config,
                         dsc_error *err);

// The draft at every output position, out[output.count], of a configuration that samples K
// sequences or a tree: how many of the candidates at a position carry the output's token and are
// accepted is drawn from the distribution of the plan (dsc_rule_plan_dists), by one uniform number
// for each request and position, and those are verified at the next position. `level` is the
// configuration's table. Memory is of `arena`. DSC_EINPUT: as dsc_rule_plan_dists.
int dsc_serve_levels_draw(const dsc_rule_plan *plan, const dsc_serve_level *level, int32_t levels,
                          const dsc_request *request, uint64_t seed, dsc_position_room *room,
                          dsc_arena *arena, dsc_serve_draft *out, dsc_error *err);

#endif
