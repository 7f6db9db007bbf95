// SPDX-License-Identifier: Apache-2.0
// draftscope trace import for formats that contain totals and no tokens (SGLang, Prometheus):
// writes a result table instead of a trace.
#include "cli/result.h"
#include "cli/trace/trace.h"

#include <inttypes.h>

static int add_comments(dsc_table *t, const char *format, const cli_call *call, dsc_error *err)
{
    int rc = cli_result_comments(t, err);
    if (!rc)
        rc = dsc_table_comment(t, "format", format, err);
    for (size_t i = 0; i < call->words && !rc; i++)
        rc = dsc_table_comment(t, "source", call->word[i], err);
    return rc;
}

int cli_trace_totals(const dsc_totals_driver *driver, const cli_call *call, bool skip_errors,
                     dsc_error *err)
{
    const dsc_totals_options options = {.skip_errors = skip_errors, .skipped = cli_trace_skipped};
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
