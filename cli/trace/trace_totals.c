// SPDX-License-Identifier: Apache-2.0
// draftscope trace import for formats that contain totals and no tokens (SGLang, Prometheus):
// writes a result table instead of a trace.
#include "cli/result.h"
#include "cli/trace/trace.h"

#include <inttypes.h>
#include <string.h>

static void on_skipped(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: skipped: %s\n", message);
}

static int add_comments(dsc_table *t, const char *format, char **path, size_t count, dsc_error *err)
{
    int rc = cli_result_comments(t, err);
    if (!rc)
        rc = dsc_table_comment(t, "format", format, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = dsc_table_comment(t, "source", path[i], err);
    return rc;
}

int cli_trace_totals(const dsc_totals_driver *driver, char **path, size_t count,
                     const cli_totals_options *o, dsc_error *err)
{
    dsc_totals_options options = {.skip_errors = o->skip_errors, .skipped = on_skipped};
    dsc_table t = {0};
    int64_t left_out = 0;
    size_t n = strlen(o->out);
    if (n > 4 && strcmp(o->out + n - 4, ".dst") == 0)
        return dsc_fail(
            err, DSC_EUSAGE,
            "%s contains totals and no tokens, which become a table, not a trace: use -o FILE.tsv",
            driver->name);
    int rc = add_comments(&t, driver->name, path, count, err);
    if (!rc)
        rc = dsc_totals_import(&t, driver, (const char *const *)path, count, &options, &left_out,
                               err);
    if (!rc)
        rc = cli_result_write(&t, false, o->out, o->force, err);
    if (!rc && left_out)
        fprintf(stderr, "draftscope: %" PRId64 " responses were skipped\n", left_out);
    dsc_table_fini(&t);
    return rc;
}
