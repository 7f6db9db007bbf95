// SPDX-License-Identifier: Apache-2.0
// The result of draftscope serve: its table with the answer, and the answer for a person.
#include "cli/result.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_answer.h"
#include "sim/sweep/row_table.h"

#include <string.h>

// The engine of --engine, which the drafts of a trace decide in part.
static int read_engine(cli_engine_use *use, const dsc_trace *trace, const cli_call *call,
                       dsc_error *err)
{
    const dsc_option_value *v = call->value;
    bool head = false;
    const int rc = cli_recorded_head(&head, trace, err);
    *use = (cli_engine_use){(cli_engine)v[SERVE_ENGINE].integer,
                            cli_tune_draft_kind(&v[SERVE_DRAFT_KIND], head)};
    return rc;
}

int cli_serve_check_engine(const dsc_trace *trace, const cli_call *call, dsc_error *err)
{
    cli_engine_use use;
    if (!call->value[SERVE_ENGINE].given)
        return DSC_OK;
    const int rc = read_engine(&use, trace, call, err);
    return rc ? rc : cli_engine_check(&use, call->method, call->methods, err);
}

int cli_serve_answer_conditions(dsc_table *t, const dsc_trace *trace, const cli_call *call,
                                dsc_error *err)
{
    const dsc_option_value *v = call->value;
    cli_engine_use use;
    char kind[32];
    int rc = dsc_table_comment(
        t, "not_modeled", "prefix caching, tokenization and HTTP, routing to several engines", err);
    if (rc || !v[SERVE_ENGINE].given)
        return rc;
    rc = read_engine(&use, trace, call, err);
    dsc_option_text(&call->command->option[SERVE_DRAFT_KIND], use.kind, kind, sizeof kind);
    rc = rc ?: dsc_table_comment(t, "engine", cli_engine_word[use.engine], err);
    return rc ? rc : dsc_table_comment(t, "draft_kind", kind, err);
}

int cli_serve_answer_write(dsc_table *t, const cli_call *call, dsc_error *err)
{
    cli_serve_answer a;
    int rc = cli_serve_answer_make(&a, t, err);
    if (!rc && call->json)
        cli_result_print(t, true, true, stdout);
    else if (!rc)
        rc = cli_result_write(t, call, err);
    if (!rc && a.loads && cli_result_terminal() && !call->json)
        rc = cli_serve_answer_print(&a, stdout, err);
    cli_serve_answer_fini(&a);
    return rc;
}

int cli_serve_answer_head(dsc_table *head, const cli_serve_rows *r, FILE *person, dsc_error *err)
{
    dsc_table t = {0};
    cli_serve_answer a = {0};
    int rc = dsc_row_table_result(&t, head, err);
    const size_t known = t.comments;
    for (size_t i = 0; i < r->runs && !rc; i++)
        if (r->run[i].done)
            rc = cli_serve_table_add(&t, &r->run[i], &r->rows, err);
    rc = rc ?: cli_serve_answer_make(&a, &t, err);
    for (size_t i = known; i < t.comments && !rc; i++)
        rc = dsc_table_comment(head, t.key[i], t.value[i], err);
    for (size_t i = 0, row = 0; i < r->runs && !rc && a.loads; i++)
        if (r->run[i].done) {
            r->run[i].gain = a.gain[row];
            r->run[i].advice = cli_serve_advice(&a, row++);
        }
    if (!rc && person && a.loads)
        rc = cli_serve_answer_print(&a, person, err);
    cli_serve_answer_fini(&a);
    dsc_table_fini(&t);
    return rc;
}
