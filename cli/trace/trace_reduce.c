// SPDX-License-Identifier: Apache-2.0
// draftscope trace reduce: replaces recorded distributions by sufficient statistics for replay with
// one to K drafts per position.
#include "cli/trace/trace.h"
#include "sim/reduce/reduce.h"
#include "traces/trace/trace_join.h"

#include <stdlib.h>

enum { OUT, DRAFTS, RANK_DEPTH, KEEP_LOGPROBS };
// clang-format off
static const dsc_option options[] = {
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

static int reduce(const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    dsc_trace *in = call->trace;
    cli_progress progress;
    char *provenance = NULL;
    const dsc_join_options from = {.version = PACKAGE_VERSION, .command = cli_command_line()};
    int rc = dsc_join_check_names(in, call->out, err);
    if (!rc)
        rc = dsc_join_provenance(&provenance, &in, 1, &from, err);
    if (rc)
        return rc;
    const dsc_reduce o = {
        .K = (int)value[DRAFTS].integer,
        .rank_depth = (int32_t)value[RANK_DEPTH].integer,
        .keep_rows = value[KEEP_LOGPROBS].given,
        .force = call->force,
        .threads = call->threads,
        .provenance = provenance,
        .note = cli_trace_note,
        .progress = cli_progress_step,
        .user = &progress,
    };
    cli_progress_init(&progress, call->progress, "tokens");
    rc = dsc_reduce_trace(in, call->out, &o, err);
    cli_progress_end(&progress);
    free(provenance);
    return rc;
}

const cli_command cli_trace_reduce = {
    .name = "reduce",
    .summary = "replace distributions by sufficient statistics for replay",
    CLI_OPTIONS(options),
    .usage = "trace reduce TRACE -o NAME.dst",
    .about =
        "Replaces the recorded draft and target distributions by the statistics that replay "
        "needs: a few hundred bytes per output token for a vocabulary of any size. The rest of "
        "the trace is kept.",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .opens_trace = true,
    .execute = reduce,
};
