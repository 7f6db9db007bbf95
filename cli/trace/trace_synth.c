// SPDX-License-Identifier: Apache-2.0
// draftscope trace synth: outputs drawn from a synthetic pair of models, as a trace.
#include "base/json_text.h"
#include "cli/trace/trace.h"
#include "sim/model/model_spec.h"
#include "sim/model/synth.h"

#include <stdlib.h>
#include <string.h>

enum {
    TARGET,
    DRAFT,
    TOKENIZER,
    OUT,
    REQUESTS,
    PROMPT_TOKENS,
    MAX_TOKENS,
    TEMPERATURE,
    LOGPROBS,
    SEED,
    PROGRESS,
    FORCE,
    OPTIONS
};
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "target model (see Models)"},
    {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "the draft (default: the other half of a markov or iid pair; of ngram none)"},
    {.name = "tokenizer", .kind = DSC_OPTION_TEXT, .metavar = "FILE|bytes", .initial = "bytes",
     .help = "for a text to learn from: a Hugging Face tokenizer.json, or 256 bytes"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "the trace, a folder"},
    {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "100", .min = 1,
     .max = 1000000000, .help = "how many"},
    {.name = "prompt-tokens", .kind = DSC_OPTION_INT, .metavar = "P", .initial = "32", .min = 1,
     .max = 1 << 30, .help = "first tokens of a sequence that was not learnt, at most"},
    {.name = "max-tokens", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "256", .min = 1,
     .max = 1 << 30, .help = "of an output; an EOS token ends it before"},
    {.name = "temperature", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "1", .least = 0,
     .most = 1000, .help = "of both models; 0: the most probable token"},
    {.name = "logprobs", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "0", .min = 0,
     .max = 1 << 30,
     .help = "record both distributions at every token: the M most probable tokens, or all tokens "
             "of a "
             "vocabulary of at most M"},
    CLI_OPTION_SEED,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on

static void print_models(void)
{
    puts("\nModels");
    for (const dsc_language_kind *const *k = dsc_language_kinds(); *k; k++) {
        printf("  %s\n%30s%s\n", (*k)->usage, "", (*k)->summary);
        for (size_t i = 0; i < (*k)->option_count; i++) {
            const dsc_option *o = &(*k)->option[i];
            printf("    %-26s%s", o->metavar, o->help);
            printf(o->initial ? " (default %s)\n" : "\n", o->initial);
        }
    }
}

static char *make_provenance(const dsc_option_value *value, const char *draft)
{
    json_t *j = json_pack("{s:s, s:o, s:o, s:o*, s:f, s:I}", "version", PACKAGE_VERSION, "command",
                          dsc_json_text(cli_command_line()), "target_model",
                          dsc_json_text(value[TARGET].text), "draft_model",
                          draft ? dsc_json_text(draft) : NULL, "temperature",
                          value[TEMPERATURE].real, "seed", (json_int_t)value[SEED].integer);
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(j);
    return text;
}

static int on_progress(void *user, int64_t done, int64_t total)
{
    return cli_progress_step(user, done, total);
}

static int synthesize(const dsc_language *target, const dsc_language *draft, const char *draft_spec,
                      const dsc_option_value *value, dsc_error *err)
{
    cli_progress progress;
    char *provenance = make_provenance(value, draft_spec);
    dsc_synth o = {
        .target = target,
        .draft = draft,
        .requests = value[REQUESTS].integer,
        .prompt_tokens = value[PROMPT_TOKENS].integer,
        .max_tokens = value[MAX_TOKENS].integer,
        .temperature = value[TEMPERATURE].real,
        .rows = (int32_t)value[LOGPROBS].integer,
        .seed = (uint64_t)value[SEED].integer,
        .force = value[FORCE].given,
        .provenance = provenance,
        .progress = on_progress,
        .user = &progress,
    };
    if (!provenance)
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    cli_progress_init(&progress, value[PROGRESS].integer, "requests");
    cli_catch_signals();
    int rc = dsc_synthesize(&o, value[OUT].text, err);
    cli_progress_end(&progress);
    free(provenance);
    return rc;
}

static int make_models(const dsc_option_value *value, dsc_error *err)
{
    const dsc_language_kind *kind;
    dsc_tokenizer *tokenizer = NULL;
    dsc_language *target = NULL, *draft = NULL;
    const char *spec = value[DRAFT].text;
    int rc = dsc_language_find(&kind, value[TARGET].text, err);
    if (!rc && !spec && kind->pair)
        spec = value[TARGET].text;
    if (!rc)
        rc = dsc_tokenizer_load(&tokenizer, value[TOKENIZER].text, err);
    if (!rc)
        rc = dsc_language_make(&target, value[TARGET].text, DSC_SIDE_TARGET, tokenizer, err);
    if (!rc && spec)
        rc = dsc_language_make(&draft, spec, DSC_SIDE_DRAFT, tokenizer, err);
    if (!rc)
        rc = synthesize(target, draft, spec, value, err);
    dsc_language_free(target);
    dsc_language_free(draft);
    dsc_tokenizer_free(tokenizer);
    return rc;
}

static int run(int argc, char **argv, dsc_error *err)
{
    const cli_help_section help[] = {{"Options", options, OPTIONS}};
    if (cli_asks_help(argc, argv)) {
        cli_print_help("trace synth --target SPEC [--draft SPEC] -o NAME.dst",
                       "Makes a trace of outputs drawn from a synthetic pair of models, with what "
                       "both models said about every token: its log-probability, the most probable "
                       "token, the entropy. The same options give the same trace.",
                       help, 1);
        print_models();
        return DSC_OK;
    }
    dsc_option_value value[OPTIONS];
    dsc_option_set set = {.table = options, .count = OPTIONS, .value = value};
    size_t words;
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    if (!rc)
        rc = cli_check_positionals(words, 0, 0, "no argument", err);
    if (!rc && !value[TARGET].text)
        rc = dsc_fail(err, DSC_EUSAGE, "--target SPEC expected");
    if (!rc && (!value[OUT].text || !*value[OUT].text))
        rc = dsc_fail(err, DSC_EUSAGE, "-o NAME.dst expected");
    return rc ? rc : make_models(value, err);
}

const cli_command cli_trace_synth = {
    .name = "synth",
    .summary = "sample outputs from a synthetic pair of models into a trace",
    .run = run,
    .option = options,
    .options = OPTIONS,
};
