// SPDX-License-Identifier: Apache-2.0
// Rotary positions as a config.json gives them.
#ifndef DSC_LIVE_ROPE_H
#define DSC_LIVE_ROPE_H

#include "live/model/config.h"
#include "live/model/keys.h"

// Sets rotated, rope_theta and the scaling of *c, whose head and positions are known. `share`: of a
// head's numbers that are rotated when nothing is said.
int live_rope_read(live_config *c, const live_keys *k, double share, dsc_error *err);

#endif
