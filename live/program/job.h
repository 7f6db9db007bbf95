// SPDX-License-Identifier: Apache-2.0
// A method on prompts: what `live run` and `live record` have in common before the first request.
#ifndef DSC_LIVE_JOB_H
#define DSC_LIVE_JOB_H

#include "cli/method.h"
#include "live/program/prompts.h"
#include "live/program/run.h"
#include "traces/tokenizer/ends.h"

#define LIVE_PROMPTS_HELP                                                                          \
    "prompts as JSON lines, plain, .gz or .zst: {\"prompt\": TEXT or ids, \"references\": "        \
    "[...]}, "                                                                                     \
    "chats, questions, and the task files of HumanEval, GSM8K, MT-bench, Spec-Bench, Alpaca and "  \
    "LLMA; - is standard input"

// Options of the commands that generate text from prompts.
#define LIVE_OPTIONS_TEXT                                                                          \
    {.name = "map",                                                                                \
     .kind = DSC_OPTION_TEXT,                                                                      \
     .metavar = "FIELD=PATH,...",                                                                  \
     .help = "names of the fields in the lines of --prompts: prompt=problem,references=docs; "     \
             "FIELD is prompt, messages, references or id"},                                       \
        {.name = "chat-template",                                                                  \
         .kind = DSC_OPTION_TEXT,                                                                  \
         .metavar = "auto|model|none|NAME",                                                        \
         .initial = "auto",                                                                        \
         .help =                                                                                   \
             "template of chats and questions. auto: the model's own, if it has one; model or "    \
             "NAME (chatml, llama3, ...): also for the texts of prompts; none: no template"},      \
        {.name = "eos",                                                                            \
         .kind = DSC_OPTION_TEXT,                                                                  \
         .metavar = "ID|TOKEN,...",                                                                \
         .help = "EOS tokens, instead of those in generation_config.json or config.json"},         \
    {                                                                                              \
        .name = "stop", .kind = DSC_OPTION_TEXT, .metavar = "TEXT",                                \
        .help = "also stop after the token that completes this text, which is kept; may be "       \
                "repeated"                                                                         \
    }

// cli_command.repeated of these commands.
extern const char *const live_repeated[];

typedef struct live_job {
    const dsc_option_value *model; // [LIVE_PAIR_OPTIONS]
    live_pair pair;
    live_prompts prompts;
    dsc_config config;
    const dsc_verifier_type *rule;
    bool greedy; // temperature 0, or a replay, whose record contains all answers of the target
    live_run run;
    const char **stop_text; // of --stop
    size_t stop_texts;
    live_stop stop;
    const char *eos; // --eos, or NULL
    dsc_ends ends;   // the target's EOS tokens
} live_job;          // zero-initialize; live_job_fini

// Prepares the method and chooses its rule, that of --rule or the usual one, and the prompts. The
// call, which has live_pair_options as its second table, outlives the job.
int live_job_begin(live_job *job, const cli_call *call, dsc_error *err);
// Reads the models' configurations, so that prompts can be read: live_pair_read; also the EOS
// tokens and stop strings.
int live_job_read(live_job *job, const live_want *want, dsc_error *err);
// Prints the notes about the prompts and checks that each prompt and its output fit the context,
// less `reserve` tokens; then loads the weights and creates the sessions.
int live_job_open(live_job *job, int64_t reserve, dsc_error *err);
// The EOS tokens as a list of ids, and the stop strings as a list; NULL: memory is short.
json_t *live_ends_json(const live_job *job);
json_t *live_stops_json(const live_job *job);
// Adds the location of prompt i to an error. During a run, DSC_ENOMEM is a lack of device memory:
// finished requests are kept, as when a device is absent.
int live_job_failed(const live_job *job, size_t i, int rc, dsc_error *err);
void live_job_fini(live_job *job);

#endif
