// SPDX-License-Identifier: Apache-2.0
// draftscope trace: dispatches to its subcommands; import and verify are here.
#include "cli/result.h"
#include "cli/trace/trace.h"
#include "traces/import/import.h"
#include "traces/import/totals.h"

#include <inttypes.h>

// --- import ----------------------------------------------------------------------------------

enum {
    FORMAT,
    TOKENIZER,
    OUT,
    SEMANTICS,
    EOS,
    VOCAB,
    QUESTIONS,
    ON_ERROR,
    LOGS,
    THREADS = LOGS + CLI_LOGS_COUNT,
    SHARD
};
// clang-format off
static const dsc_option import_options[] = {
    {.name = "format", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "input format: chat, completion, vllm, jsonl, ... (see draftscope list formats); "
             "detected from the first line by default"},
    {.name = "tokenizer", .kind = DSC_OPTION_TEXT, .metavar = "FILE|bytes",
     .help = "a Hugging Face tokenizer.json or its folder, a GGUF file, or bytes; not needed when "
             "every text is "
             "token ids"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "trace folder to write; for sglang and prometheus a table, FILE.tsv or - (standard "
             "output)"},
    {.name = "semantics", .kind = DSC_OPTION_CHOICE, .choices = "paper|code", .initial = "paper",
     .help = "code: read the input as its authors' program does (llma: documents cut to 768 "
             "tokens; acclen: accept lengths one token later)"},
    {.name = "eos", .kind = DSC_OPTION_TEXT, .metavar = "ID|TOKEN,...",
     .help = "EOS tokens; the first is appended to texts (default: read from "
             "generation_config.json, tokenizer_config.json or config.json next to the tokenizer)"},
    {.name = "vocab-size", .kind = DSC_OPTION_INT, .metavar = "V", .initial = "0", .min = 0,
     .max = 1 << 24, .help = "vocabulary size, for token ids without a tokenizer"},
    {.name = "questions", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file with the questions for specbench, mtbench and eagle; without it, prompts are "
             "empty"},
    {.name = "on-error", .kind = DSC_OPTION_CHOICE, .choices = "stop|skip", .initial = "stop",
     .help = "skip: report and count invalid lines and continue"},
    CLI_OPTIONS_LOGS,
    CLI_OPTION_THREADS,
    CLI_OPTION_SHARD_TOKENS,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on

static int import_files(const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    cli_progress progress;
    dsc_tokenizer *tokenizer = NULL;
    dsc_import_options o = {
        .format = value[FORMAT].text,
        .semantics = value[SEMANTICS].integer ? "code" : "paper",
        .eos = value[EOS].text,
        .vocab_size = (int32_t)value[VOCAB].integer,
        .questions = value[QUESTIONS].text,
        .skip_errors = value[ON_ERROR].integer == 1,
        .force = call->force,
        .threads = call->threads,
        .shard_tokens = value[SHARD].integer,
        .version = PACKAGE_VERSION,
        .command = cli_command_line(),
        .progress = cli_progress_step,
        .skipped = cli_trace_skipped,
        .note = cli_trace_note,
        .user = &progress,
    };
    int64_t left_out = 0;
    int rc = DSC_OK;
    cli_trace_logs(&o, value + LOGS, value[TOKENIZER].text);
    if (value[TOKENIZER].text)
        rc = dsc_tokenizer_load(&tokenizer, value[TOKENIZER].text, err);
    cli_progress_init(&progress, call->progress, "bytes");
    if (!rc)
        rc = dsc_import((const char *const *)call->word, call->words, tokenizer, call->out, &o,
                        &left_out, err);
    cli_progress_end(&progress);
    if (!rc && left_out)
        fprintf(stderr, "draftscope: %" PRId64 " lines were skipped\n", left_out);
    dsc_tokenizer_free(tokenizer);
    return rc;
}

// Formats that contain totals and no tokens (SGLang, Prometheus) become a result table.
static int add_comments(dsc_table *t, const char *format, const cli_call *call, dsc_error *err)
{
    int rc = cli_result_comments(t, err);
    if (!rc)
        rc = dsc_table_comment(t, "format", format, err);
    for (size_t i = 0; i < call->words && !rc; i++)
        rc = dsc_table_comment(t, "source", call->word[i], err);
    return rc;
}

static int import_totals(const dsc_totals_driver *driver, const cli_call *call, dsc_error *err)
{
    const dsc_totals_options options = {.skip_errors = call->value[ON_ERROR].integer == 1,
                                        .skipped = cli_trace_skipped};
    dsc_table t = {0};
    int64_t left_out = 0;
    if (cli_ends_with(call->out, ".dst"))
        return dsc_fail(
            err, DSC_EUSAGE,
            "%s contains totals and no tokens, which become a table, not a trace: use -o FILE.tsv",
            driver->name);
    int rc = add_comments(&t, driver->name, call, err);
    if (!rc)
        rc = dsc_totals_import(&t, driver, (const char *const *)call->word, call->words, &options,
                               &left_out, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    if (!rc && left_out)
        fprintf(stderr, "draftscope: %" PRId64 " responses were skipped\n", left_out);
    dsc_table_fini(&t);
    return rc;
}

static int import(const cli_call *call, dsc_error *err)
{
    const char *format = call->value[FORMAT].text;
    const dsc_totals_driver *totals = format ? dsc_totals_find(format) : NULL;
    int rc = format ? DSC_OK : dsc_totals_probe(&totals, call->word[0], err);
    if (rc)
        return rc;
    return totals ? import_totals(totals, call, err) : import_files(call, err);
}

static const cli_command trace_import = {
    .name = "import",
    .summary = "import logs of many formats into a trace",
    CLI_OPTIONS(import_options),
    .usage = "trace import [--format NAME] --tokenizer FILE|bytes IN... -o NAME.dst",
    .about =
        "Converts files of JSON lines or JSON documents (also .gz and .zst; - is standard input) "
        "to a trace, or to a table when they contain totals and no tokens. Invalid input stops "
        "the import with file and line number, and the incomplete trace is removed.",
    .least = 1,
    .most = -1,
    .what = "at least one input file",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .execute = import,
};

// --- verify ----------------------------------------------------------------------------------

static int verify(const cli_call *call, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < call->words && !rc; i++) {
        dsc_trace *t;
        rc = dsc_trace_open(&t, call->word[i], err);
        if (rc)
            return rc;
        rc = dsc_trace_verify(t, err);
        if (!rc)
            printf("%s: ok, %" PRId64 " requests, hash %s\n", call->word[i],
                   dsc_trace_get_info(t)->requests, dsc_trace_get_info(t)->hash);
        dsc_trace_close(t);
    }
    return rc;
}

static const cli_command trace_verify = {
    .name = "verify",
    .summary = "check every byte of a trace",
    .usage = "trace verify TRACE...",
    .about = "Reads a trace and checks the hashes of the shards, every offset, id and text, the "
             "uniqueness of ids, and the totals. Prints ok, or the first error and where it is.",
    .least = 1,
    .most = -1,
    .what = "a trace",
    .execute = verify,
};

// --- the table -------------------------------------------------------------------------------

static const cli_command *const commands[] = {
    &trace_import,  &cli_trace_synth,  &cli_trace_info, &cli_trace_merge,  &cli_trace_append,
    &cli_trace_cut, &cli_trace_reduce, &trace_verify,   &cli_trace_export, NULL};

const cli_command cli_trace = {
    .name = "trace",
    .summary = "import, synthesize, inspect, edit, verify and export traces",
    .sub = commands,
    .usage = "trace COMMAND [ARGUMENTS]",
    .about = "Traces are recorded outputs of a target model.",
    .see = "options of a command",
};
