// SPDX-License-Identifier: Apache-2.0
// The result of draftscope serve: its table with the answer, and the answer for a person.
#include "cli/result.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_answer.h"

#include <string.h>

int cli_serve_answer_conditions(dsc_table *t, const dsc_trace *trace, const cli_call *call,
                                dsc_error *err)
{
    const dsc_option_value *v = call->value;
    char kind[32];
    bool head = false;
    int rc = dsc_table_comment(
        t, "not_modeled", "prefix caching, tokenization and HTTP, routing to several engines", err);
    if (!rc && v[SERVE_SLO].given)
        rc = dsc_table_comment(t, "slo", v[SERVE_SLO].text, err);
    if (rc || !v[SERVE_ENGINE].given)
        return rc;
    rc = cli_recorded_head(&head, trace, err);
    dsc_option_text(&call->command->option[SERVE_DRAFT_KIND],
                    cli_tune_draft_kind(&v[SERVE_DRAFT_KIND], head), kind, sizeof kind);
    if (!rc)
        rc = dsc_table_comment(t, "engine", cli_engine_word[v[SERVE_ENGINE].integer], err);
    return rc ? rc : dsc_table_comment(t, "draft_kind", kind, err);
}

int cli_serve_answer_write(dsc_table *t, const dsc_trace *trace, const cli_call *call,
                           dsc_error *err)
{
    cli_serve_answer a = {0};
    const bool answers = cli_serve_has_answer(t),
               table_only = !strcmp(call->out, "-") && !cli_result_terminal();
    int rc = answers ? cli_serve_answer_conditions(t, trace, call, err) : DSC_OK;
    if (!rc && answers)
        rc = cli_serve_answer_init(&a, t, err);
    if (!rc && answers)
        rc = cli_serve_answer_describe(&a, t, err);
    if (!rc)
        rc = cli_result_write(t, call, err);
    if (!rc && answers && !table_only && !call->json)
        rc = cli_serve_answer_print(&a, stdout, err);
    cli_serve_answer_fini(&a);
    return rc;
}
