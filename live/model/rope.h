// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings as config.json defines them.
#ifndef DSC_LIVE_ROPE_H
#define DSC_LIVE_ROPE_H

#include "live/model/config.h"
#include "live/model/keys.h"

// Sets rotated, rope_theta and the scaling of *c, whose head size and positions are already set.
// `share` is the rotated share of a head if config.json does not give one.
int live_rope_read(live_config *c, const live_keys *k, double share);

#endif
