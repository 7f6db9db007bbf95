// SPDX-License-Identifier: Apache-2.0
// draftscope trace reduce: replaces recorded distributions by sufficient statistics for replay with
// one to K drafts per position.
#include "cli/trace/trace.h"
#include "sim/reduce/reduce.h"
#include "traces/trace/trace_join.h"

#include <stdlib.h>

enum { OUT, DRAFTS, RANK_DEPTH, KEEP_LOGPROBS, THREADS, PROGRESS, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    CLI_OPTION_TRACE_OUT,
    {.name = "num-drafts", .letter = 'K', .kind = DSC_OPTION_INT, .metavar = "K", .initial = "8",
     .min = 1, .max = DSC_STATISTICS_K_MAX,
     .help = "largest number of drafts per position to compute statistics for"},
    {.name = "rank-depth", .kind = DSC_OPTION_INT, .metavar = "D", .initial = "0", .min = 0,
     .max = 65535,
     .help = "record at each position the ranks of the next D output tokens; 0: as recorded, or 1"},
    {.name = "keep-logprobs", .kind = DSC_OPTION_FLAG,
     .help = "keep the recorded distributions as well"},
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_FORCE,
};
// clang-format on

static int reduce(dsc_trace *in, const dsc_option_value *value, dsc_error *err)
{
    cli_progress progress;
    char *provenance = NULL;
    const dsc_join_options from = {.version = PACKAGE_VERSION, .command = cli_command_line()};
    int rc = dsc_join_check_names(in, value[OUT].text, err);
    if (!rc)
        rc = dsc_join_provenance(&provenance, &in, 1, &from, err);
    if (rc)
        return rc;
    const dsc_reduce o = {
        .K = (int)value[DRAFTS].integer,
        .rank_depth = (int32_t)value[RANK_DEPTH].integer,
        .keep_rows = value[KEEP_LOGPROBS].given,
        .force = value[FORCE].given,
        .threads = cli_threads(value[THREADS].integer),
        .provenance = provenance,
        .note = cli_trace_note,
        .progress = cli_progress_step,
        .user = &progress,
    };
    cli_progress_init(&progress, value[PROGRESS].integer, "tokens");
    rc = dsc_reduce_trace(in, value[OUT].text, &o, err);
    cli_progress_end(&progress);
    free(provenance);
    return rc;
}

static int reduce_trace(const cli_call *call, dsc_error *err)
{
    dsc_trace *in;
    int rc = dsc_trace_open(&in, call->word[0], err);
    if (rc)
        return rc;
    rc = reduce(in, call->value, err);
    dsc_trace_close(in);
    return rc;
}

const cli_command cli_trace_reduce = {
    .name = "reduce",
    .summary = "replace distributions by sufficient statistics for replay",
    .option = options,
    .options = OPTIONS,
    .usage = "trace reduce TRACE -o NAME.dst",
    .about =
        "Replaces the recorded draft and target distributions by the statistics that replay "
        "needs: a few hundred bytes per output token for a vocabulary of any size. The rest of "
        "the trace is kept.",
    .least = 1,
    .most = 1,
    .what = "one trace",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .execute = reduce_trace,
};
