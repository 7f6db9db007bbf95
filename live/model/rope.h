// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings as config.json defines them.
#ifndef DSC_LIVE_ROPE_H
#define DSC_LIVE_ROPE_H

#include "live/model/config.h"
#include "live/model/keys.h"

// Sets rotated, rope_theta and the scaling of *c, whose head size and positions are already set.
// `share` is the rotated share of a head if config.json does not give one.
int live_rope_read(live_config *c, const live_keys *k, double share);

// The same for Gemma 3, whose layers with a window have a rotation of their own: sets local_theta
// too.
int live_rope_read_gemma3(live_config *c, const live_keys *k);

#endif
