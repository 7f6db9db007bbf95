// SPDX-License-Identifier: Apache-2.0
// Opens what `sim`, `sweep` and `tune` simulate on, and prints their notes on standard error:
// references that no request has, and distributions of another temperature than the recorded
// text's.
#include "cli/simulate.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int cli_simulation_open(cli_simulation *s, const cli_call *call, dsc_error *err)
{
    const dsc_option_value *batch = cli_call_value(call, "batch-size"),
                           *engine = cli_call_value(call, "engine");
    *s = (cli_simulation){.run = {.engine = engine ? (dsc_engine)engine->integer : DSC_ENGINE_AUTO,
                                  .threads = call->threads,
                                  .seed = call->seed,
                                  .workload = &s->models.load,
                                  .progress = cli_progress_step,
                                  .user = s}};
    int rc = call->words ? dsc_trace_open(&s->trace, call->word[0], err) : DSC_OK;
    if (!rc)
        rc = cli_workload_make(&s->models, call->more, call->method, call->methods,
                               s->trace != NULL, err);
    if (!rc)
        rc = dsc_cost_parse(&s->cost, cli_call_value(call, "cost")->text, err);
    if (!rc && batch && batch->text)
        rc = dsc_option_list(&call->command->option[batch - call->value], batch->text, &s->batch,
                             &s->batches, err);
    s->run.widths = !rc && !s->cost.type->linear;
    return rc;
}

void cli_simulation_close(cli_simulation *s)
{
    cli_workload_free(&s->models);
    dsc_cost_fini(&s->cost);
    dsc_trace_close(s->trace);
    free(s->batch);
}

const dsc_verifier_type *cli_simulation_rule(const cli_simulation *s, const cli_call *call,
                                             const dsc_drafter_type *method, dsc_error *err)
{
    return cli_workload_rule(&s->models, s->trace, call->more[CLI_WORKLOAD_RULE].text, method, err);
}

// Returns whether any request of the trace has something that --references VALUE may copy from.
static int any_reference(const dsc_trace *trace, const char *chosen, bool *found, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    bool all = strcmp(chosen, "all") == 0, prompt = all || strcmp(chosen, "prompt") == 0;
    uint8_t kind = strcmp(chosen, "turns") == 0 ? DSC_REFERENCE_TURN : DSC_REFERENCE_DOCUMENT;
    *found = (prompt && info->prompt_tokens > 0) || (all && info->references > 0);
    int rc = DSC_OK;
    for (int64_t s = 0; s < dsc_trace_shards(trace) && !*found && !rc && !prompt; s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, trace, s, err);
        for (int64_t i = 0; !rc && i < dsc_shard_requests(shard) && !*found; i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            for (int64_t r = 0; r < q.references; r++)
                *found = *found || q.reference_kind[r] == kind;
        }
        dsc_shard_close(shard);
    }
    return rc;
}

// Requests of a synthetic model have a prompt, cut from its texts, and no other reference.
static bool any_prompt(const dsc_language *target, const char *chosen)
{
    return target->type->text && (strcmp(chosen, "all") == 0 || strcmp(chosen, "prompt") == 0);
}

int cli_note_missing_references(const dsc_trace *trace, const dsc_language *target,
                                const dsc_drafter_type *drafter, const dsc_option_value *value,
                                dsc_error *err)
{
    const dsc_option *o = drafter->option;
    while (o < drafter->option + drafter->option_count && strcmp(o->name, "references"))
        o++;
    if (o == drafter->option + drafter->option_count)
        return DSC_OK;
    int64_t *list;
    size_t n;
    int rc = dsc_option_list(o, value[o - drafter->option].text, &list, &n, err);
    for (size_t i = 0; i < n && !rc; i++) {
        char chosen[64];
        bool found = true;
        dsc_option_text(o, list[i], chosen, sizeof chosen);
        if (trace)
            rc = any_reference(trace, chosen, &found, err);
        else
            found = any_prompt(target, chosen);
        if (!rc && !found)
            fprintf(stderr,
                    "draftscope: note: no request of the %s has references of kind '%s': "
                    "nothing is ever drafted%s\n",
                    trace ? "trace" : "model", chosen,
                    !trace && target->type->text ? " (try --references prompt)" : "");
    }
    free(list);
    return rc;
}

bool cli_reads_ranks(const dsc_engine_choice *engine)
{
    return strncmp(engine->reads, "draft_rank", 10) == 0 ||
           strcmp(engine->reads, "draft_argmax") == 0;
}

void cli_note_temperature(const dsc_trace *trace, const dsc_drafter_type *method,
                          const dsc_engine_choice *engine)
{
    if (!trace || !engine->expected || cli_reads_ranks(engine))
        return;
    json_t *origin = json_loads(dsc_trace_get_info(trace)->provenance, 0, NULL);
    json_t *written = json_object_get(origin, "temperature");
    json_t *dists = json_object_get(origin, "distribution_temperature");
    if (json_is_number(written) && json_is_number(dists) && json_number_value(written) == 0)
        fprintf(stderr,
                "draftscope: note: %s: the trace was recorded at temperature 0, but its "
                "distributions have temperature %g; a greedy live run has other counts\n",
                method->name, json_number_value(dists));
    json_decref(origin);
}
