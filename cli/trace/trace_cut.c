// SPDX-License-Identifier: Apache-2.0
// draftscope trace cut: writes a part of a trace, by request numbers, by a random sample of
// requests, or by the first tokens of the outputs.
#include "traces/trace/trace_cut.h"

#include "cli/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>

enum { OUT, REQUESTS, SAMPLE, SEED, TOKENS, SHARD_TOKENS };
// clang-format off
static const dsc_option options[] = {
    CLI_OPTION_TRACE_OUT,
    {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "RANGE", .min = 0, .max = INT64_MAX,
     .list = true, .help = "numbers of the requests to keep, from 0: 0:99 or 3,5,8 or 0:999:10"},
    {.name = "sample", .kind = DSC_OPTION_INT, .metavar = "N", .min = 1, .max = INT64_MAX,
     .help = "keep N of the selected requests, sampled at random without replacement"},
    CLI_OPTION_SEED,
    {.name = "tokens", .kind = DSC_OPTION_INT, .metavar = "N", .min = 1, .max = INT64_MAX,
     .help = "keep at most the first N tokens of each output"},
    CLI_OPTION_SHARD_TOKENS,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on

static int cut_trace(const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    cli_progress progress;
    int64_t *request = NULL;
    const dsc_join_options o = {
        .force = call->force,
        .shard_tokens = value[SHARD_TOKENS].integer,
        .version = PACKAGE_VERSION,
        .command = cli_command_line(),
        .progress = cli_progress_step,
        .note = cli_trace_note,
        .user = &progress,
    };
    dsc_cut cut = {
        .range = value[REQUESTS].text,
        .sample = value[SAMPLE].given ? value[SAMPLE].integer : 0,
        .seed = call->seed,
        .tokens = value[TOKENS].given ? value[TOKENS].integer : 0,
    };
    int rc = DSC_OK;
    if (!value[REQUESTS].given && !value[SAMPLE].given && !value[TOKENS].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "nothing selects a part: add --requests, --sample or --tokens");
    if (value[REQUESTS].given)
        rc =
            dsc_option_list(&options[REQUESTS], value[REQUESTS].text, &request, &cut.requests, err);
    cut.request = request;
    cli_progress_init(&progress, call->progress, "requests");
    if (!rc)
        rc = dsc_trace_cut(call->word[0], call->out, &cut, &o, err);
    cli_progress_end(&progress);
    free(request);
    return rc;
}

const cli_command cli_trace_cut = {
    .name = "cut",
    .summary = "keep some requests, or the beginnings of the outputs",
    CLI_OPTIONS(options),
    .usage = "trace cut TRACE -o NAME.dst",
    .about =
        "Writes a part of a trace as a new trace. --requests applies first, then --sample, then "
        "--tokens. The requests keep their order.",
    .least = 1,
    .most = 1,
    .what = "one trace",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .execute = cut_trace,
};
