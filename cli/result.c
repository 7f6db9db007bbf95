// SPDX-License-Identifier: Apache-2.0
// Writes a result table to standard output or, by way of a temporary name, to a file.
#include "cli/result.h"

#include "base/outfile.h"

#include <string.h>
#include <unistd.h>

bool cli_result_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

int cli_result_columns(dsc_table *t, const dsc_column *column, size_t count, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < count && !rc; c++)
        rc = dsc_table_add_column(t, column[c].name, column[c].type, column[c].help, err);
    return rc;
}

void cli_result_print(const dsc_table *t, bool json, bool head, FILE *f)
{
    if (json && head)
        dsc_table_write_jsonl_head(t, f);
    if (!json)
        dsc_table_write_tsv_head(t, f);
    for (size_t r = 0; r < t->rows; r++)
        if (json)
            dsc_table_write_jsonl_row(t, r, f);
        else
            dsc_table_write_tsv_row(t, r, f);
}

int cli_result_write(const dsc_table *t, const cli_call *call, dsc_error *err)
{
    if (strcmp(call->out, "-") == 0) {
        cli_result_print(t, call->json, false, stdout);
        return DSC_OK;
    }
    dsc_outfile f = {0};
    int rc = dsc_outfile_open(&f, call->out, call->force, err);
    if (rc)
        return rc;
    cli_result_print(t, call->json, true, f.stream);
    return dsc_outfile_commit(&f, err);
}
