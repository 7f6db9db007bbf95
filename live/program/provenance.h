// SPDX-License-Identifier: Apache-2.0
// Provenance of a live result: the hashes of its models and prompts. A run prints it in its result
// line, a recording stores it; draftscope validate compares the two.
#ifndef DSC_LIVE_PROVENANCE_H
#define DSC_LIVE_PROVENANCE_H

#include "live/program/pair.h"
#include "live/program/prompts.h"

typedef struct live_identity {
    const char *architecture, *dtype, *device;
    const char *folder, *shape, *layers; // one of them; the others are NULL
    char config_sha256[DSC_SHA256_HEX];  // of the folder's config.json, or ""
    const char *weights_sha256;          // live/model/fingerprint.h
} live_identity;

extern const char *const live_side_names[LIVE_SIDES]; // "target", "draft", "middle"

// Identifies the model of a side; false if the side has no model of its own (a copy of the target
// has none). The pair outlives *out.
bool live_identify(live_identity *out, const live_pair *p, live_side side);

// traces/trace/token_hash.h over all prompts in order.
void live_hash_prompts(const live_prompts *p, char hex[DSC_SHA256_HEX]);

#endif
