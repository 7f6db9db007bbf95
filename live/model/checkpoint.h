// SPDX-License-Identifier: Apache-2.0
// The tensors of a Hugging Face folder: model.safetensors, or the shards that
// model.safetensors.index.json lists.
#ifndef DSC_LIVE_CHECKPOINT_H
#define DSC_LIVE_CHECKPOINT_H

#include "live/model/config.h"

typedef struct live_checkpoint live_checkpoint;

// Whether the folder has such a file.
bool live_checkpoint_present(const char *folder);

// Maps the files and reads their headers; no data. Every tensor is in exactly the shard that the
// index says, and no shard is outside of the folder. A folder of pickled weights is refused with
// the command that converts them. DSC_EINPUT. *out is owned by the caller.
int live_checkpoint_open(live_checkpoint **out, const char *folder, dsc_error *err);
void live_checkpoint_close(live_checkpoint *c); // NULL allowed

// The tensor of that name, or NULL; *shard (may be NULL) is the file that it is in.
const dsc_tensor *live_checkpoint_find(const live_checkpoint *c, const char *name, size_t *shard);

// What stands in front of the names of the tensors here, of those that the architecture has.
const char *live_checkpoint_prefix(const live_checkpoint *c, live_family family);

size_t live_checkpoint_shards(const live_checkpoint *c);
const char *live_checkpoint_path(const live_checkpoint *c, size_t shard);
const dsc_safetensors *live_checkpoint_file(const live_checkpoint *c, size_t shard);

// Sets hidden and vocab of Medusa heads, where config.json left them 0, from the first head.
int live_checkpoint_medusa(const live_checkpoint *c, live_config *config, dsc_error *err);
// Whether an EAGLE head comes with an embedding.
bool live_checkpoint_embeds(const live_checkpoint *c);

#endif
