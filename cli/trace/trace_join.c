// SPDX-License-Identifier: Apache-2.0
// draftscope trace merge, append and cut: joins the requests of several traces, in a new trace or
// as new shards of the first one, or writes a part of a trace: by request numbers, by metadata, by
// a random sample of requests, or by the first tokens of the outputs.
#include "traces/trace/trace_join.h"
#include "cli/trace/trace.h"
#include "traces/trace/trace_cut.h"

#include <stdlib.h>

// Begins the progress, too.
static dsc_join_options begin(const cli_call *call, cli_progress *progress)
{
    cli_progress_init(progress, call->progress, "requests");
    return (dsc_join_options){
        .force = call->force,
        .shard_tokens = cli_call_value(call, "shard-tokens")->integer,
        .version = PACKAGE_VERSION,
        .command = cli_command_line(),
        .progress = cli_progress_step,
        .note = cli_trace_note,
        .user = progress,
    };
}

// --- merge and append ----------------------------------------------------------------------------

// Only merge has the options after the first four.
enum { COMMON, RENAME, BOTH = 4 };
// clang-format off
static const dsc_option join_options[] = {
    {.name = "common", .kind = DSC_OPTION_FLAG,
     .help = "drop the columns that some trace lacks instead of failing"},
    {.name = "rename", .kind = DSC_OPTION_FLAG,
     .help = "prefix each request id with the number of its trace and a slash, as in 2/q7"},
    CLI_OPTION_SHARD_TOKENS,
    CLI_OPTION_PROGRESS,
    CLI_OPTION_TRACE_OUT,
    CLI_OPTION_FORCE,
};
// clang-format on

// Appends to the first trace where the command has no -o.
static int join(const cli_call *call, dsc_error *err)
{
    const char *const *path = (const char *const *)call->word;
    cli_progress progress;
    dsc_join_options o = begin(call, &progress);
    o.common = call->value[COMMON].given;
    o.rename = call->value[RENAME].given;
    int rc = call->out ? dsc_trace_merge(path, call->words, call->out, &o, err)
                       : dsc_trace_append(path[0], path + 1, call->words - 1, &o, err);
    cli_progress_end(&progress);
    return rc;
}

const cli_command cli_trace_merge = {
    .name = "merge",
    .summary = "join traces into a new one",
    CLI_OPTIONS(join_options),
    .usage = "trace merge TRACE... -o NAME.dst",
    .about =
        "Writes the requests of all traces, in order, as a new trace. The traces must have the "
        "same tokenizer and the same columns. A folder NAME.dst.tmp that an interrupted run left "
        "is a trace of the finished requests and can be merged like any other.",
    .least = 1,
    .most = -1,
    .what = "at least one trace",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .execute = join,
};

const cli_command cli_trace_append = {
    .name = "append",
    .summary = "append the requests of other traces to a trace",
    .option = join_options,
    .options = BOTH,
    .usage = "trace append TRACE TRACE...",
    .about = "Appends the requests of the other traces, in order, to the first one, as new shards. "
             "Readers see the old trace until the command has finished, and keep it when the "
             "command is interrupted.",
    .least = 2,
    .most = -1,
    .what = "a trace and the traces to append",
    .execute = join,
};

// --- cut -----------------------------------------------------------------------------------------

enum { REQUESTS = 1, WHERE, SAMPLE, SEED, TOKENS };
// clang-format off
static const dsc_option cut_options[] = {
    CLI_OPTION_TRACE_OUT,
    {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "RANGE", .min = 0, .max = INT64_MAX,
     .list = true, .help = "numbers of the requests to keep, from 0: 0:99 or 3,5,8 or 0:999:10"},
    {.name = "where", .kind = DSC_OPTION_TEXT, .metavar = "FIELD=VALUE[,VALUE...]",
     .help = "keep the requests whose metadata field has one of the values, as in category=qa,rag; "
             "given several times, all conditions must hold"},
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

// Collects every use of --where; *out is owned by the caller.
static int read_conditions(const cli_call *call, const char ***out, size_t *count, dsc_error *err)
{
    *count = 0;
    int rc = dsc_new(out, call->uses.count, err);
    for (size_t u = 0; u < call->uses.count && !rc; u++)
        if (call->uses.use[u].option == &cut_options[WHERE])
            (*out)[(*count)++] = call->uses.use[u].text;
    return rc;
}

static int cut_trace(const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    cli_progress progress;
    int64_t *request = NULL;
    const char **where = NULL;
    dsc_cut cut = {
        .range = value[REQUESTS].text,
        .sample = value[SAMPLE].given ? value[SAMPLE].integer : 0,
        .seed = call->seed,
        .tokens = value[TOKENS].given ? value[TOKENS].integer : 0,
    };
    if (!value[REQUESTS].given && !value[WHERE].given && !value[SAMPLE].given &&
        !value[TOKENS].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "nothing selects a part: add --requests, --where, --sample or --tokens");
    int rc = read_conditions(call, &where, &cut.wheres, err);
    if (!rc && value[REQUESTS].given)
        rc = dsc_option_list(&cut_options[REQUESTS], value[REQUESTS].text, &request, &cut.requests,
                             err);
    cut.request = request;
    cut.where = where;
    const dsc_join_options o = begin(call, &progress);
    if (!rc)
        rc = dsc_trace_cut(call->word[0], call->out, &cut, &o, err);
    cli_progress_end(&progress);
    free(request);
    free(where);
    return rc;
}

const cli_command cli_trace_cut = {
    .name = "cut",
    .summary = "keep some requests, or the beginnings of the outputs",
    CLI_OPTIONS(cut_options),
    .usage = "trace cut TRACE -o NAME.dst",
    .about =
        "Writes a part of a trace as a new trace. --requests applies first, then --where, then "
        "--sample, then --tokens. The requests keep their order.",
    .least = 1,
    .most = 1,
    .what = "one trace",
    .needs_out = CLI_TRACE_NEEDS_OUT,
    .execute = cut_trace,
};
