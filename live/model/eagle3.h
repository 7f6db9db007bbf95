// SPDX-License-Identifier: Apache-2.0
// What only an EAGLE-3 head has (Li et al. 2025, arXiv:2503.01840): the layers of the target that
// it reads, and a vocabulary of its own.
#ifndef DSC_LIVE_EAGLE3_H
#define DSC_LIVE_EAGLE3_H

#include "live/model/checkpoint.h"
#include "live/model/keys.h"
#include "live/model/weights.h"

// Makes a Llama block's configuration that of an EAGLE-3 head. Records errors in k->err.
int live_eagle3_read(live_config *c, const live_keys *k);

// In the config.json of a folder of the speculators library, the keys of the block are an object,
// which replaces *k's; those of the head are copied into it. Others are left as they are.
int live_eagle3_enter(live_keys *k);

// Whether this is a tensor of an EAGLE-3 head that describes its vocabulary, d2t or t2d.
bool live_eagle3_names(const live_config *c, const char *tensor);

// Sets w->column and w->drafted from the tensors d2t and, if present, t2d; without d2t a head of
// the whole vocabulary drafts its own tokens. files NULL: random weights, whose draft tokens are
// the first ones. DSC_EINPUT names the tensor and the draft token.
int live_eagle3_columns(live_weights *w, const live_checkpoint *files, dsc_error *err);

#endif
