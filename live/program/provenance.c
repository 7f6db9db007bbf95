// SPDX-License-Identifier: Apache-2.0
// Hashes of models and prompts for result lines and recordings.
#include "live/program/provenance.h"

#include "live/model/gguf.h"
#include "traces/trace/token_hash.h"

#include <stdio.h>

const char *const live_side_names[LIVE_SIDES] = {"target", "draft", "middle"};

bool live_identify(live_identity *out, const live_pair *p, live_side side)
{
    const live_weights *w = p->weights[side];
    char path[4096];
    dsc_error ignored;
    if (!w || (side != LIVE_TARGET && w == p->weights[LIVE_TARGET]))
        return false;
    const char *name = p->name[side].folder;
    *out = (live_identity){.architecture = w->config.model_type,
                           .dtype = dsc_dtype_name(w->config.dtype),
                           .device = p->backend[side]->device,
                           .folder = name,
                           .shape = p->name[side].shape,
                           .layers = p->name[side].layers,
                           .weights_sha256 = w->fingerprint};
    if (name && dsc_gguf_is(name))
        live_gguf_config_sha256(name, out->config_sha256);
    else if (name && snprintf(path, sizeof path, "%s/config.json", name) < (int)sizeof path)
        dsc_sha256_file(path, out->config_sha256, &ignored);
    return true;
}

void live_hash_prompts(const live_prompts *p, char hex[DSC_SHA256_HEX])
{
    dsc_sha256 s;
    dsc_sha256_init(&s);
    for (size_t i = 0; i < p->count; i++)
        dsc_token_hash_add(&s, p->item[i].request.prompt);
    dsc_sha256_final(&s, hex);
}
