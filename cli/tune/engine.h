// SPDX-License-Identifier: Apache-2.0
// A configuration as settings of an inference engine (tune_engine.c, engine_names.c).
#ifndef DSC_CLI_ENGINE_H
#define DSC_CLI_ENGINE_H

#include "base/memory.h"
#include "cli/cli.h"
#include "sim/drafter.h"
#include "sim/verifier.h"

#define CLI_ENGINES "vllm|sglang|tensorrt-llm|llama.cpp|transformers"
typedef enum cli_engine { CLI_VLLM, CLI_SGLANG, CLI_TRTLLM, CLI_LLAMACPP, CLI_HF } cli_engine;
enum { CLI_ENGINE_COUNT = CLI_HF + 1 };
extern const char *const cli_engine_word[CLI_ENGINE_COUNT]; // in the order of CLI_ENGINES

// What the draft model of a recording was, which decides how engines name it.
#define CLI_DRAFT_KINDS "draft_model|eagle|eagle3|mtp|medusa"
typedef enum cli_draft_kind {
    CLI_DRAFT_MODEL,
    CLI_DRAFT_EAGLE,
    CLI_DRAFT_EAGLE3,
    CLI_DRAFT_MTP,
    CLI_DRAFT_MEDUSA,
} cli_draft_kind;
enum { CLI_DRAFT_KIND_COUNT = CLI_DRAFT_MEDUSA + 1 };
// clang-format off
#define CLI_OPTION_DRAFT_KIND                                                                      \
    {.name = "draft-kind", .kind = DSC_OPTION_CHOICE, .choices = CLI_DRAFT_KINDS,                  \
     .help = "what the recorded draft model is, in the words of vLLM, for settings of an engine "  \
             "(default: eagle for a trace that was recorded with a head of the target, else "      \
             "draft_model)"}
#define CLI_OPTION_ACCEPTANCE                                                                      \
    {.name = "export-acceptance", .kind = DSC_OPTION_CHOICE, .choices = CLI_ACCEPTANCES,           \
     .help = "also print the acceptance of the chosen configuration as settings with which this "  \
             "engine simulates it in load tests"}
// clang-format on

typedef struct cli_engine_use {
    cli_engine engine;
    cli_draft_kind kind;
} cli_engine_use;

// A name of an engine's options, keys or environment variables.
typedef struct cli_engine_name {
    cli_engine engine;
    const char *name, *meaning, *read_in; // meaning: ours, or the reason why it is not printed
    bool printed;
} cli_engine_name;
extern const cli_engine_name cli_engine_names[];
extern const size_t cli_engine_names_count;

// The configuration to run up to a batch size.
typedef struct cli_engine_choice {
    const dsc_config *config; // NULL: speculation is off
    const dsc_verifier_type *rule;
    int64_t batch;
} cli_engine_choice;

// Returns NULL when the engine has settings for this configuration and rule, else the reason, a
// static text.
const char *cli_engine_lacks(const cli_engine_use *use, const dsc_config *config,
                             const dsc_verifier_type *rule);
// Returns whether the engine has the method, whatever its parameters.
bool cli_engine_has(const cli_engine_use *use, const dsc_drafter_type *drafter);
// DSC_EUSAGE: the engine has none of the methods. The message lists those that it has.
int cli_engine_check(const cli_engine_use *use, const dsc_drafter_type *const *method,
                     size_t methods, dsc_error *err);
// The value of --semantics with which the engine looks n-grams up; NULL: it does not as we do.
const char *cli_engine_semantics(const cli_engine_use *use);
// "draft-model, ngram, ...": appends the methods that the engine has.
int cli_engine_methods(dsc_buffer *out, const cli_engine_use *use, dsc_error *err);

// Configuration lines for the choices, none of which the engine lacks, by ascending batch size;
// comments begin with '#'.
int cli_engine_lines(dsc_buffer *out, const cli_engine_use *use, const cli_engine_choice *choice,
                     size_t choices, dsc_error *err);

// The draft kind of the option or, where it is not given, of a trace; `head`: it was recorded with
// a head of the target.
cli_draft_kind cli_tune_draft_kind(const dsc_option_value *given, bool head);

#endif
