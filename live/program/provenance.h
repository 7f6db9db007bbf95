// SPDX-License-Identifier: Apache-2.0
// What a result of live models is of: which models, by their hashes, and which prompts. A run says
// it in its line, a recording in its provenance; draftscope validate compares the two.
#ifndef DSC_LIVE_PROVENANCE_H
#define DSC_LIVE_PROVENANCE_H

#include "live/program/pair.h"
#include "live/program/prompts.h"

typedef struct live_identity {
    const char *architecture, *dtype, *device;
    const char *folder, *shape;         // one of them, the other is NULL
    char config_sha256[DSC_SHA256_HEX]; // of the folder's config.json, or ""
    const char *weights_sha256;         // live/model/fingerprint.h
} live_identity;

extern const char *const live_side_names[LIVE_SIDES]; // "target", "draft", "middle"

// The model of a side, where it has one of its own (a copy of the target is none). `models`: the
// options that the pair was opened with; they and the pair outlive *out.
bool live_identify(live_identity *out, const live_pair *p, const dsc_option_value *models,
                   live_side side);

// traces/trace/token_hash.h of all prompts, in their order.
void live_hash_prompts(const live_prompts *p, char hex[DSC_SHA256_HEX]);

#endif
