// SPDX-License-Identifier: Apache-2.0
// The subcommands of `draftscope trace` that have a file of their own.
#ifndef DSC_CLI_TRACE_H
#define DSC_CLI_TRACE_H

#include "cli/cli.h"
#include "traces/import/import.h"

extern const cli_command cli_trace_append, cli_trace_cut, cli_trace_export, cli_trace_info,
    cli_trace_merge, cli_trace_reduce, cli_trace_synth;

// The fields of trace info, and those whose values are objects or lists of text.
void cli_trace_info_fields(cli_fields_visit *visit, void *user);
extern const char *const cli_trace_info_structured[];

// clang-format off
#define CLI_OPTION_SHARD_TOKENS                                                                    \
    {.name = "shard-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,     \
     .max = 1 << 30, .help = "number of tokens after which a shard is closed; 0: 1 million"}
#define CLI_OPTION_TRACE_OUT                                                                       \
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",              \
     .help = "trace folder to write"}
// clang-format on

// How logs are read, for the commands that import: these options, in this order.
#define CLI_OPTIONS_LOGS                                                                           \
    {.name = "map",                                                                                \
     .kind = DSC_OPTION_TEXT,                                                                      \
     .metavar = "FIELD=PATH,...",                                                                  \
     .help = "names of the fields in the lines: prompt=question,output=choices.0.text; FIELD is "  \
             "prompt, output, messages, references, id, category, model, arrival_s, ..."},         \
        {.name = "chat-template",                                                                  \
         .kind = DSC_OPTION_TEXT,                                                                  \
         .metavar = "NAME",                                                                        \
         .help =                                                                                   \
             "template of the prompts of chats: chatml, llama3, mistral-v3, ... or none; found "   \
             "next to the tokenizer by default"},                                                  \
        {.name = "turns",                                                                          \
         .kind = DSC_OPTION_CHOICE,                                                                \
         .choices = "all|last",                                                                    \
         .initial = "all",                                                                         \
         .help = "of a chat, every assistant turn is a request, or only the last one"},            \
        {.name = "model",                                                                          \
         .kind = DSC_OPTION_TEXT,                                                                  \
         .metavar = "NAME",                                                                        \
         .help = "import only the requests of this model"},                                        \
    {                                                                                              \
        .name = "lossy", .kind = DSC_OPTION_FLAG,                                                  \
        .help = "leave out what a model wrote and the source or the chat template does not show "  \
                "(reasoning, tool calls), and mark the trace, instead of stopping"                 \
    }
enum {
    CLI_LOGS_MAP,
    CLI_LOGS_TEMPLATE,
    CLI_LOGS_TURNS,
    CLI_LOGS_MODEL,
    CLI_LOGS_LOSSY,
    CLI_LOGS_COUNT
};

// Sets the import options of their values (first: of CLI_LOGS_MAP) and of --tokenizer.
static inline void cli_trace_logs(dsc_import_options *o, const dsc_option_value *value,
                                  const char *tokenizer)
{
    o->map = value[CLI_LOGS_MAP].text;
    o->chat_template = value[CLI_LOGS_TEMPLATE].text;
    o->last_turn = value[CLI_LOGS_TURNS].integer == 1;
    o->model = value[CLI_LOGS_MODEL].text;
    o->lossy = value[CLI_LOGS_LOSSY].given;
    o->tokenizer_path = tokenizer;
}

// The error of a command that writes a trace and lacks -o.
#define CLI_TRACE_NEEDS_OUT "give the trace to write: -o NAME.dst"

// Print a message on stderr, as callbacks for notes and for invalid lines that are left out.
static inline void cli_trace_note(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: note: %s\n", message);
}
static inline void cli_trace_skipped(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: skipped: %s\n", message);
}

#endif
