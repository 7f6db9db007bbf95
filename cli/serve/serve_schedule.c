// SPDX-License-Identifier: Apache-2.0
// Writes the steps of a served run while it runs.
#include "cli/serve/serve.h"

int cli_serve_schedule_open(cli_serve_schedule *x, const cli_simulation *s, const cli_call *call,
                            const cli_serve_method *m, const char *name, dsc_error *err)
{
    const char *path = call->value[SERVE_SCHEDULE].text;
    int rc = dsc_serve_source_records(&m->source, m->config.drafter, err);
    rc = rc ?: dsc_outfile_open(&x->file, path, call->force, err);
    rc = rc ?: cli_comments(&x->table, s->trace, call->seed, call->value[SERVE_COST].text, err);
    rc = rc ?: dsc_table_comment(&x->table, "run", name, err);
    if (!rc)
        rc = dsc_table_add_columns(&x->table, dsc_serve_steps_columns, dsc_serve_steps_column_count,
                                   err);
    if (!rc)
        dsc_serve_steps_write_head(&x->table, x->file.stream);
    return rc;
}

int cli_serve_schedule_pass(cli_serve_schedule *x, const dsc_serve_engine *e, dsc_error *err)
{
    return dsc_serve_record_pass(&x->record, e, err);
}

void cli_serve_schedule_step(cli_serve_schedule *x, const dsc_serve_engine *e)
{
    dsc_serve_record_drafts(&x->record, e);
    dsc_serve_steps_write(&x->table, &x->record, x->file.stream);
}

int cli_serve_schedule_commit(cli_serve_schedule *x, dsc_error *err)
{
    return x->file.stream ? dsc_outfile_commit(&x->file, err) : DSC_OK;
}

void cli_serve_schedule_fini(cli_serve_schedule *x)
{
    dsc_outfile_abort(&x->file);
    dsc_table_fini(&x->table);
    dsc_serve_record_fini(&x->record);
}
