// SPDX-License-Identifier: Apache-2.0
// The fields that draftscope trace info prints, with their types: for its help and its JSON Schema.
#include "base/columns.h"
#include "base/metrics.h"
#include "cli/trace/trace.h"

#define LENGTHS(what, of)                                                                          \
    {"mean_" what "_tokens", DSC_CELL_REAL, "mean " of " over requests"},                          \
        {"median_" what "_tokens", DSC_CELL_REAL, "median " of " over requests"},                  \
        {"p90_" what "_tokens", DSC_CELL_REAL, "90th percentile of the " of " over requests"},     \
    {                                                                                              \
        "max_" what "_tokens", DSC_CELL_REAL, "maximum " of " over requests"                       \
    }

static const dsc_column fields[] = {
    {"trace", DSC_CELL_TEXT, "path of the trace"},
    {"schema", DSC_CELL_INT, "version of the trace format"},
    {"format", DSC_CELL_TEXT, "format that the trace was imported from"},
    {"semantics", DSC_CELL_TEXT, "the value of --semantics that the import used, paper or code"},
    {"tokenizer", DSC_CELL_TEXT, "name of the tokenizer; none: token ids were given"},
    {"tokenizer_sha256", DSC_CELL_TEXT, "SHA-256 of the tokenizer"},
    {"vocab_size", DSC_CELL_INT, "vocabulary size; every token id is below it"},
    {"eos_token", DSC_CELL_INT, "id of the EOS token"},
    {"recorded", DSC_CELL_LIST, "recorded columns, by the names of draftscope-trace(5)"},
    {"recorded_bytes", DSC_CELL_LIST, "bytes of each recorded column in all shards"},
    {"parameters", DSC_CELL_LIST,
     "depth of the ranks, K of the statistics, length of the rollouts and caps of the drafters, "
     "where recorded"},
    {"unknown_tensors", DSC_CELL_INT,
     "number of tensors in the shards with a name that this version ignores"},
    {"shards", DSC_CELL_INT, "number of shard files"},
    {DSC_COL_REQUESTS, DSC_CELL_INT, "number of requests"},
    {"requests_without_prompt", DSC_CELL_INT, "number of requests whose prompt is empty"},
    {"prompt_tokens", DSC_CELL_INT, "tokens of all prompts"},
    {DSC_COL_OUTPUT_TOKENS, DSC_CELL_INT, "tokens of all outputs"},
    {"reference_tokens", DSC_CELL_INT, "tokens of all references"},
    {"steps", DSC_CELL_INT, "verification steps of the recorded runs"},
    {"documents", DSC_CELL_INT, "references of all requests that are documents"},
    {"turns", DSC_CELL_INT, "references of all requests that are earlier turns of a conversation"},
    LENGTHS("prompt", "prompt length"),
    LENGTHS("output", "output length"),
    LENGTHS("reference", "total length of the references of a request"),
    {"hash", DSC_CELL_TEXT, "SHA-256 that identifies the content; result tables contain it"},
    {"provenance", DSC_CELL_LIST,
     "version and command that made the trace, its input files with their SHA-256, the number of "
     "skipped lines, and notes"},
};

// Where steps, drafters, entropies or times are recorded, and with --by.
static const dsc_column recorded[] = {
    DSC_METRIC_COLUMNS,
    {DSC_COL_CONDITIONAL_REACHED, DSC_CELL_LIST,
     "number of drafts that each conditional acceptance rate is a share of"},
    {DSC_COL_NUM_DRAFTS, DSC_CELL_INT, "number of drafts: steps with at least one draft token"},
    {DSC_COL_NUM_DRAFT_TOKENS, DSC_CELL_INT, "number of draft tokens"},
    {DSC_COL_NUM_ACCEPTED_TOKENS, DSC_CELL_INT, "number of accepted draft tokens (bonus excluded)"},
    {"autocorrelation", DSC_CELL_REAL,
     "correlation of the accepted count of a step with that of the previous step of the same "
     "request"},
    {"drafters", DSC_CELL_LIST,
     "for each drafter with accept lengths: its cap and the fields from block_efficiency to "
     "autocorrelation"},
    {"mean_draft_entropy_nats", DSC_CELL_REAL,
     "mean entropy of the draft distributions over the output tokens, in nats"},
    {"mean_target_entropy_nats", DSC_CELL_REAL,
     "mean entropy of the target distributions over the output tokens, in nats"},
    {"source_output_tokens", DSC_CELL_INT,
     "output tokens that the source reports with their seconds"},
    {"source_s", DSC_CELL_REAL, "seconds that the source reports"},
    {"source_tokens_per_s", DSC_CELL_REAL, "source_output_tokens / source_s"},
    {"groups", DSC_CELL_LIST,
     "with --by: requests, output_tokens, steps and the statistics above for each value of the "
     "metadata field"},
};

const char *const cli_trace_info_structured[] = {
    "recorded", "recorded_bytes", "parameters", "provenance", "drafters", "groups", NULL};

void cli_trace_info_fields(cli_fields_visit *visit, void *user)
{
    visit(user, "Fields", fields, sizeof fields / sizeof *fields);
    visit(user, "Fields where their data are recorded", recorded,
          sizeof recorded / sizeof *recorded);
}
