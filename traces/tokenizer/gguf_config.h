// SPDX-License-Identifier: Apache-2.0
// What a GGUF file contains of the files that stand next to a tokenizer.json.
#ifndef DSC_TRACES_GGUF_CONFIG_H
#define DSC_TRACES_GGUF_CONFIG_H

#include "base/status.h"

#include <jansson.h>

// Makes an object with the keys of tokenizer_config.json and generation_config.json that the file
// at `path` has a value for: "chat_template", "bos_token", "eos_token" (texts), "bos_token_id", and
// "eos_token_id", a list of the tokens that end a text, a turn or a message. The caller releases
// *out. DSC_EINPUT: the file is not a sound GGUF file.
int dsc_gguf_tokenizer_config(json_t **out, const char *path, dsc_error *err);

#endif
