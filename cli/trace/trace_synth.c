// SPDX-License-Identifier: Apache-2.0
// draftscope trace synth: samples outputs from a synthetic target model (n-gram, Markov chain,
// i.i.d.) and records them, with the distributions of draft and target, as a trace.
#include "base/json_text.h"
#include "cli/trace/trace.h"
#include "sim/model/model_spec.h"
#include "sim/model/synth.h"

#include <stdlib.h>

enum { OUT, TARGET, DRAFT, TOKENIZER, REQUESTS, PROMPT, MAX, TEMPERATURE, LOGPROBS };
// clang-format off
static const dsc_option options[] = {
    CLI_OPTION_TRACE_OUT,
    {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "target model, one of the Models below"},
    {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "draft model (default: the draft of the same markov pair or acceptance rates; "
             "none for ngram)"},
    {.name = "tokenizer", .kind = DSC_OPTION_TEXT, .metavar = "FILE|bytes", .initial = "bytes",
     .help = "tokenizer of the text that an n-gram model is trained on: a Hugging Face "
             "tokenizer.json, or bytes"},
    {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "100", .min = 1,
     .max = 1000000000, .help = "number of requests"},
    {.name = "prompt-tokens", .kind = DSC_OPTION_INT, .metavar = "P", .initial = "32", .min = 1,
     .max = 1 << 30, .help = "maximum prompt length: the first tokens of a sequence held out from "
                             "training"},
    {.name = "max-tokens", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "256", .min = 1,
     .max = 1 << 30, .help = "maximum new tokens per request; generation stops earlier at EOS"},
    {.name = "temperature", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "1", .least = 0,
     .most = 1000, .help = "sampling temperature of both models; 0: argmax"},
    {.name = "logprobs", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "0", .min = 0,
     .max = 1 << 30,
     .help = "record both distributions at every output token: the M most probable tokens, or all "
             "tokens if the vocabulary has at most M"},
    CLI_OPTION_SEED,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on

static void print_models(void)
{
    puts("\nModels");
    const dsc_spec_form *form;
    for (size_t f = 0; (form = dsc_language_form(f)); f++) {
        printf("  %s\n%30s%s\n", form->usage, "", form->summary);
        for (size_t i = 0; i < form->items; i++) {
            const dsc_option *o = &form->item[i];
            printf("    %-26s%s", o->metavar, o->help);
            printf(o->initial ? " (default %s)\n" : "\n", o->initial);
        }
    }
}

static char *make_provenance(const cli_call *call, const char *draft)
{
    const dsc_option_value *value = call->value;
    json_t *j = json_pack("{s:s, s:o, s:o, s:o*, s:f, s:I}", "version", PACKAGE_VERSION, "command",
                          dsc_json_text(cli_command_line()), "target_model",
                          dsc_json_text(value[TARGET].text), "draft_model",
                          draft ? dsc_json_text(draft) : NULL, "temperature",
                          value[TEMPERATURE].real, "seed", (json_int_t)call->seed);
    char *text = j ? dsc_json_dump(j, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(j);
    return text;
}

static int synthesize(const dsc_language *target, const dsc_language *draft, const char *draft_spec,
                      const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    cli_progress progress;
    char *provenance = make_provenance(call, draft_spec);
    dsc_synth o = {
        .load.target = target,
        .load.draft = draft,
        .load.requests = value[REQUESTS].integer,
        .load.prompt_tokens = value[PROMPT].integer,
        .load.max_tokens = value[MAX].integer,
        .load.temperature = value[TEMPERATURE].real,
        .rows = (int32_t)value[LOGPROBS].integer,
        .seed = call->seed,
        .force = call->force,
        .provenance = provenance,
        .progress = cli_progress_step,
        .user = &progress,
    };
    if (!provenance)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    cli_progress_init(&progress, call->progress, "requests");
    int rc = dsc_synthesize(&o, call->out, err);
    cli_progress_end(&progress);
    free(provenance);
    return rc;
}

static int synth(const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    bool pair = false;
    dsc_tokenizer *tokenizer = NULL;
    dsc_language *target = NULL, *draft = NULL;
    const char *spec = value[DRAFT].text;
    if (!value[TARGET].text)
        return dsc_fail(err, DSC_EUSAGE, "give the target model: --target SPEC");
    int rc = dsc_language_is_pair(&pair, value[TARGET].text, err);
    if (!rc && !spec && pair)
        spec = value[TARGET].text;
    if (!rc)
        rc = dsc_tokenizer_load(&tokenizer, value[TOKENIZER].text, err);
    if (!rc)
        rc = dsc_language_make(&target, value[TARGET].text, DSC_SIDE_TARGET, tokenizer, err);
    if (!rc && spec)
        rc = dsc_language_make(&draft, spec, DSC_SIDE_DRAFT, tokenizer, err);
    if (!rc)
        rc = synthesize(target, draft, spec, call, err);
    dsc_language_free(target);
    dsc_language_free(draft);
    dsc_tokenizer_free(tokenizer);
    return rc;
}

const cli_command cli_trace_synth = {
    .name = "synth",
    .summary = "sample outputs from a synthetic pair of models into a trace",
    CLI_OPTIONS(options),
    .usage = "trace synth --target SPEC [--draft SPEC] -o NAME.dst",
    .about = "Samples outputs from a synthetic pair of models and records them with the "
             "log-probability of every token, the argmax token and the entropy under both models. "
             "The same options give the same trace.",
    .what = "no argument",
    .more_help = print_models,
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .execute = synth,
};
