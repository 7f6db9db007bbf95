// SPDX-License-Identifier: Apache-2.0
// draftscope trace import of formats that give totals and no tokens: a result table.
#include "base/file.h"
#include "cli/trace/trace.h"

#include <inttypes.h>
#include <string.h>

static void on_skipped(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "draftscope: left out: %s\n", message);
}

static int add_comments(dsc_table *t, const char *format, char **path, size_t count, dsc_error *err)
{
    int rc = dsc_table_comment(t, "draftscope", PACKAGE_VERSION, err);
    if (!rc)
        rc = dsc_table_comment(t, "command", cli_command_line(), err);
    if (!rc)
        rc = dsc_table_comment(t, "format", format, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = dsc_table_comment(t, "source", path[i], err);
    return rc;
}

static void write_table(const dsc_table *t, FILE *f)
{
    dsc_table_write_tsv_head(t, f);
    for (size_t row = 0; row < t->rows; row++)
        dsc_table_write_tsv_row(t, row, f);
}

static int save_table(const dsc_table *t, const char *path, bool force, dsc_error *err)
{
    dsc_outfile out;
    if (strcmp(path, "-") == 0) {
        write_table(t, stdout);
        return DSC_OK;
    }
    int rc = dsc_outfile_open(&out, path, force, err);
    if (rc)
        return rc;
    write_table(t, out.stream);
    return dsc_outfile_commit(&out, err);
}

int cli_trace_totals(const dsc_totals_driver *driver, char **path, size_t count,
                     const cli_totals_options *o, dsc_error *err)
{
    dsc_totals_options options = {.skip_errors = o->skip_errors, .skipped = on_skipped};
    dsc_table t = {0};
    int64_t left_out = 0;
    size_t n = strlen(o->out);
    if (n > 4 && strcmp(o->out + n - 4, ".dst") == 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "%s has totals and no tokens: they become a table, -o FILE.tsv, no trace",
                        driver->name);
    int rc = add_comments(&t, driver->name, path, count, err);
    if (!rc)
        rc = dsc_totals_import(&t, driver, (const char *const *)path, count, &options, &left_out,
                               err);
    if (!rc)
        rc = save_table(&t, o->out, o->force, err);
    if (!rc && left_out)
        fprintf(stderr, "draftscope: %" PRId64 " responses left out\n", left_out);
    dsc_table_fini(&t);
    return rc;
}
