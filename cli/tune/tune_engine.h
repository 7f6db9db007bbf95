// SPDX-License-Identifier: Apache-2.0
// A configuration as settings of an inference engine.
#ifndef DSC_CLI_TUNE_ENGINE_H
#define DSC_CLI_TUNE_ENGINE_H

#include "base/memory.h"
#include "sim/drafter.h"
#include "sim/verifier.h"

#define CLI_ENGINES "vllm|sglang|hf|llamacpp"
typedef enum cli_engine { CLI_VLLM, CLI_SGLANG, CLI_HF, CLI_LLAMACPP } cli_engine;

// The configuration to run up to a batch size.
typedef struct cli_engine_choice {
    const dsc_config *config;
    const dsc_verifier_type *rule;
    int64_t batch;
} cli_engine_choice;

// Returns NULL when the engine has settings for this configuration, else the reason, a static text.
const char *cli_engine_lacks(cli_engine engine, const dsc_config *config);
// Returns whether the engine has the method, whatever its parameters.
bool cli_engine_has(cli_engine engine, const dsc_drafter_type *drafter);
// "draft-model, ngram, ...": appends the methods that the engine has.
int cli_engine_methods(dsc_buffer *out, cli_engine engine, dsc_error *err);

// Configuration lines for the choices, none of which the engine lacks, by ascending batch size;
// comments begin with '#'.
int cli_engine_lines(dsc_buffer *out, cli_engine engine, const cli_engine_choice *choice,
                     size_t choices, dsc_error *err);

#endif
