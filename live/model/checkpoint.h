// SPDX-License-Identifier: Apache-2.0
// The tensors of a Hugging Face folder: those of model.safetensors, or of the shards that
// model.safetensors.index.json lists. Or those of a GGUF file, which is a checkpoint of one shard.
#ifndef DSC_LIVE_CHECKPOINT_H
#define DSC_LIVE_CHECKPOINT_H

#include "live/model/config.h"
#include "live/model/gguf.h"

typedef struct live_checkpoint live_checkpoint;

// Whether the folder contains one of these files.
bool live_checkpoint_present(const char *folder);

// Maps the files and reads their headers, but no data. Every tensor must be in exactly the shard
// that the index names, and every shard in the folder. If the folder has pickled weights only, the
// error contains the command that converts them. DSC_EINPUT. *out is owned by the caller.
int live_checkpoint_open(live_checkpoint **out, const char *folder, dsc_error *err);
void live_checkpoint_close(live_checkpoint *c); // NULL allowed

// Returns the tensor of that name, or NULL. *shard (may be NULL) is its file. The block of an
// EAGLE-3 head, "midlayer.", is "layers.0." in the files of some.
const dsc_tensor *live_checkpoint_find(const live_checkpoint *c, const char *name, size_t *shard);

// The prefix of the tensor names in this checkpoint, one of live_name_prefixes.
const char *live_checkpoint_prefix(const live_checkpoint *c, live_family family);

size_t live_checkpoint_shards(const live_checkpoint *c);
const char *live_checkpoint_path(const live_checkpoint *c, size_t shard);
uint64_t live_checkpoint_bytes(const live_checkpoint *c, size_t shard); // size of the file
// The tensors of a file, 0 to count - 1.
size_t live_checkpoint_count(const live_checkpoint *c, size_t shard);
const dsc_tensor *live_checkpoint_at(const live_checkpoint *c, size_t shard, size_t i);

// NULL: the files are safetensors.
const live_gguf *live_checkpoint_gguf(const live_checkpoint *c);

// Sets hidden and vocab of Medusa heads from the shape of the first head, where config.json left
// them 0.
int live_checkpoint_medusa(const live_checkpoint *c, live_config *config, dsc_error *err);
// Whether the checkpoint of an EAGLE head of this family contains an embedding.
bool live_checkpoint_embeds(const live_checkpoint *c, live_family family);

#endif
