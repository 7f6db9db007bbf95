// SPDX-License-Identifier: Apache-2.0
// What `sim`, `sweep` and `tune` simulate on: a trace, or the synthetic models of --target, --draft
// and the options that belong to them; the default verification rule; and notes on stderr:
// references that no request has, distributions of another temperature than the recorded text's.
#include "cli/simulate.h"

#include "sim/expect/expect_rule.h"
#include "sim/loop.h"
#include "sim/model/model_spec.h"
#include "sim/rule_text.h"
#include "traces/trace/recorded_run.h"
#include "traces/trace/trace_json.h"

#include <stdlib.h>
#include <string.h>

// clang-format off
const dsc_option cli_workload_options[CLI_WORKLOAD_OPTIONS] = {
    [CLI_WORKLOAD_TARGET] = {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .synonyms = "acceptance",
     .help = "what runs instead of a trace: a synthetic model, ngram:FILE or markov:V, or (also "
             "--acceptance) acceptance by position, rates:R1,R2,... of all drafts as vLLM prints "
             "it or conditional:H1,H2,... of those that came so far, al:LENGTH@K, iid:ALPHA or a "
             "table of totals (see: draftscope list models)"},
    [CLI_WORKLOAD_DRAFT] = {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "draft model (default: the draft of a markov pair or of acceptance rates; for "
             "ngram, n-grams one token shorter than those of --target)"},
    [CLI_WORKLOAD_MIDDLE] = {.name = "middle", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "model between draft and target of a cascade (default: as for --draft)"},
    [CLI_WORKLOAD_TOKENIZER] = {.name = "tokenizer", .kind = DSC_OPTION_TEXT,
     .metavar = "FILE|bytes", .initial = "bytes",
     .help = "tokenizer of the text that an n-gram model is trained on: a Hugging Face "
             "tokenizer.json, or bytes"},
    [CLI_WORKLOAD_RULE] = {.name = "rule", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "verification rule (default: greedy at temperature 0 and on a trace without a "
             "recorded temperature; else rejection, kseq or specinfer, by how the method drafts)"},
    [CLI_WORKLOAD_TEMPERATURE] = {.name = "temperature", .kind = DSC_OPTION_REAL, .metavar = "T",
     .initial = "1", .least = 0, .most = 1000,
     .help = "sampling temperature of the models of --target and --draft"},
    [CLI_WORKLOAD_REQUESTS] = {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "N",
     .initial = "100", .min = 1, .max = 1000000000, .help = "number of requests, with --target"},
    [CLI_WORKLOAD_PROMPT_TOKENS] = {.name = "prompt-tokens", .kind = DSC_OPTION_INT,
     .metavar = "P", .initial = "32", .min = 1, .max = 1 << 30,
     .help = "longest prompt in tokens, with --target; prompts are the beginnings of held-out "
             "sequences"},
    [CLI_WORKLOAD_MAX_TOKENS] = {.name = "max-tokens", .kind = DSC_OPTION_INT, .metavar = "M",
     .initial = "256", .min = 1, .max = 1 << 30,
     .help = "maximum new tokens per request, with --target; generation stops earlier at EOS"},
    [CLI_WORKLOAD_ORDER] = {.name = "order", .kind = DSC_OPTION_TEXT,
     .metavar = "file|shuffle[:SEED]|consecutive:N[/TASKS]", .initial = "file",
     .help = "order of the requests, with --target; consecutive: N requests of each of 4 tasks in "
             "turn, where the file lists one task after the other"},
};
// clang-format on

// The draft that goes with a target when none is named.
static int default_spec(char **out, const char *model, const dsc_language *target, dsc_error *err)
{
    bool pair;
    dsc_buffer b = {0};
    int rc = dsc_language_is_pair(&pair, model, err);
    if (!rc)
        rc = dsc_buffer_puts(&b, model, err);
    if (!rc && !pair) // a later item of a specification overrides an earlier one
        rc = dsc_buffer_printf(&b, err, ",order=%zu", target->reach > 1 ? target->reach : 1);
    *out = b.data;
    return rc;
}

static int make_language(dsc_language **out, const char *spec, const char *model,
                         const dsc_language *target, const dsc_tokenizer *tokenizer, dsc_error *err)
{
    char *own = NULL;
    int rc = DSC_OK;
    if (!spec && model)
        rc = default_spec(&own, model, target, err);
    if (!rc && (spec || own))
        rc = dsc_language_make(out, spec ? spec : own, DSC_SIDE_DRAFT, tokenizer, err);
    free(own);
    return rc;
}

int cli_simulation_models(cli_simulation *s, const cli_call *call, const cli_model_specs *spec,
                          dsc_error *err)
{
    const char *model = spec->target;
    bool needs_draft = false, needs_middle = false;
    dsc_tokenizer *tokenizer = NULL;
    for (size_t m = 0; m < call->methods; m++) {
        needs_draft |= call->method[m]->needs_draft;
        needs_middle |= call->method[m]->needs_middle;
    }
    int rc = model || spec->draft || spec->middle
                 ? dsc_tokenizer_load(&tokenizer, spec->tokenizer, err)
                 : DSC_OK;
    if (!rc && model)
        rc = dsc_language_make(&s->target, model, DSC_SIDE_TARGET, tokenizer, err);
    const char *rates = spec->draft ? spec->draft : model;
    if (!rc && rates && dsc_acceptance_is(rates))
        rc = dsc_acceptance_rates_read(&s->rates, rates, err);
    if (!rc)
        cli_note_acceptance(s->rates.note);
    if (!rc && (spec->draft || (needs_draft && model)))
        rc = make_language(&s->draft, spec->draft, model, s->target, tokenizer, err);
    if (!rc && (spec->middle || (needs_middle && model)))
        rc = make_language(&s->middle, spec->middle, model, s->target, tokenizer, err);
    dsc_tokenizer_free(tokenizer);
    s->load.target = s->target;
    s->load.draft = s->draft;
    s->load.middle = s->middle;
    return rc;
}

// The models and requests that the options name.
static int make_models(cli_simulation *s, const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->more;
    const cli_model_specs spec = {value[CLI_WORKLOAD_TARGET].text, value[CLI_WORKLOAD_DRAFT].text,
                                  value[CLI_WORKLOAD_MIDDLE].text,
                                  value[CLI_WORKLOAD_TOKENIZER].text};
    if (!s->trace == !spec.target)
        return dsc_fail(err, DSC_EUSAGE, "one trace or --target SPEC expected, not %s",
                        spec.target ? "both" : "neither");
    s->load = (dsc_workload){.temperature = value[CLI_WORKLOAD_TEMPERATURE].real,
                             .requests = value[CLI_WORKLOAD_REQUESTS].integer,
                             .prompt_tokens = value[CLI_WORKLOAD_PROMPT_TOKENS].integer,
                             .max_tokens = value[CLI_WORKLOAD_MAX_TOKENS].integer};
    int rc = cli_simulation_models(s, call, &spec, err);
    if (!rc && s->rates.positions && value[CLI_WORKLOAD_TEMPERATURE].given)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--temperature: acceptance rates are those of the temperature that they were "
                      "measured at");
    if (!rc && spec.target)
        rc = dsc_workload_order(&s->order, value[CLI_WORKLOAD_ORDER].text, s->load.requests, err);
    s->load.order = s->order;
    return rc;
}

// Groups the requests by the field of --by.
static int read_groups(cli_simulation *s, const char *field, dsc_error *err)
{
    if (!field)
        return DSC_OK;
    if (!s->trace)
        return dsc_fail(err, DSC_EUSAGE,
                        "--by %.60s needs a trace; the requests of a model have no metadata",
                        field);
    int rc = dsc_trace_groups_init(&s->by, s->trace, field, err);
    s->run.group = s->by.count ? s->by.of : NULL;
    s->run.groups = (int32_t)s->by.count;
    return rc ? dsc_error_prefix(err, rc, "--by") : DSC_OK;
}

int cli_simulation_open(cli_simulation *s, const cli_call *call, dsc_error *err)
{
    const dsc_option_value *batch = cli_call_value(call, "batch-size");
    *s = (cli_simulation){.run = {.engine = (dsc_engine)cli_call_value(call, "evaluate")->integer,
                                  .threads = call->threads,
                                  .seed = call->seed,
                                  .workload = &s->load,
                                  .progress = cli_progress_step,
                                  .user = s}};
    int rc = call->words ? cli_open_replayed(&s->trace, call->word[0], err) : DSC_OK;
    if (!rc)
        rc = make_models(s, call, err);
    if (!rc)
        rc = read_groups(s, cli_call_value(call, "by")->text, err);
    if (!rc)
        rc = dsc_cost_parse(&s->cost, cli_call_value(call, "cost")->text, err);
    if (!rc && batch->text)
        rc = dsc_option_list(&call->command->option[batch - call->value], batch->text, &s->batch,
                             &s->batches, err);
    s->run.widths = !rc && !s->cost.type->linear;
    if (!rc && s->cost.spread_caveat[0])
        fprintf(stderr, "draftscope: cost: %s\n", s->cost.spread_caveat);
    return rc;
}

void cli_simulation_close(cli_simulation *s)
{
    dsc_language_free(s->target);
    dsc_language_free(s->draft);
    dsc_language_free(s->middle);
    dsc_acceptance_rates_fini(&s->rates);
    free(s->order);
    dsc_cost_fini(&s->cost);
    dsc_trace_groups_fini(&s->by);
    dsc_trace_close(s->trace);
    free(s->batch);
}

// The field of --by and its values, which merge needs.
static int comment_groups(const dsc_trace_groups *by, dsc_table *t, dsc_error *err)
{
    char *values;
    int rc = dsc_trace_groups_text(&values, by, err);
    if (!rc)
        rc = dsc_table_comment(t, "by", by->field, err);
    if (!rc)
        rc = dsc_table_comment(t, "by_values", values, err);
    free(values);
    return rc;
}

// The lossy rules of a list, which mark the whole table.
static int comment_lossy(const char *list, dsc_table *t, dsc_error *err)
{
    int rc = DSC_OK;
    while (list && !rc) {
        char text[128] = "";
        dsc_error ignored;
        const size_t n = dsc_rule_text_length(list);
        snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text), list);
        const dsc_verifier_type *rule = dsc_verifier_find(text, &ignored);
        if (rule && !rule->lossless) {
            char note[256];
            snprintf(note, sizeof note,
                     "rule %s: the output does not have the target's distribution", rule->name);
            rc = dsc_table_comment(t, "LOSSY", note, err);
        }
        list = list[n] ? list + n + 1 : NULL;
    }
    return rc;
}

int cli_simulation_comments(const cli_simulation *s, const cli_call *call, dsc_table *t,
                            dsc_error *err)
{
    const dsc_option_value *value = call->more;
    int rc = cli_comments(t, s->trace, call->seed, cli_call_value(call, "cost")->text, err);
    if (!rc)
        rc = comment_lossy(value[CLI_WORKLOAD_RULE].text, t, err);
    if (!rc && s->cost.spread_caveat[0])
        rc = dsc_table_comment(t, "cost_caveat", s->cost.spread_caveat, err);
    for (int o = 0; o < CLI_WORKLOAD_OPTIONS && !rc; o++)
        if (value[o].text && (value[CLI_WORKLOAD_TARGET].text || value[o].given))
            rc = dsc_table_comment(t, cli_workload_options[o].name, value[o].text, err);
    rc = rc ?: cli_comment_acceptance(t, &s->rates, err);
    return rc || !s->by.field ? rc : comment_groups(&s->by, t, err);
}

// --- the rule ------------------------------------------------------------------------------------

// The rule for a recorded output. A sampled output is replayed by the method's sampling rule if the
// trace contains the token probabilities that this rule needs; any other output by `greedy`.
static const dsc_verifier_type *rule_of_trace(const dsc_trace *trace,
                                              const dsc_drafter_type *drafter, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    dsc_recorded_run run;
    if (dsc_trace_recorded_run(&run, info, err))
        return NULL;
    const double temperature = run.temperature;
    const dsc_verifier_type *rule = dsc_pair_rule(drafter, false);
    if (!drafter->needs_draft || drafter->needs_off_path || !(temperature > 0))
        return &dsc_verifier_greedy;
    if (drafter->recorded && !dsc_rule_replays(drafter, rule)) {
        fprintf(stderr, "draftscope: rule: greedy: under every lossless rule, the most probable "
                        "candidates are accepted as far as the output follows them\n");
        return &dsc_verifier_greedy;
    }
    if (!dsc_rule_replays(drafter, rule) || !dsc_rule_recorded(rule, info)) {
        fprintf(stderr,
                "draftscope: rule: greedy, though the trace was recorded at temperature %g: it "
                "lacks the token probabilities that rule %s needs for method %s\n",
                temperature, rule->name, drafter->name);
        return &dsc_verifier_greedy;
    }
    fprintf(stderr, "draftscope: rule: %s, because the trace was recorded at temperature %g\n",
            rule->name, temperature);
    return rule;
}

const dsc_verifier_type *cli_simulation_rule(const cli_simulation *s, const char *name,
                                             const dsc_drafter_type *drafter, dsc_error *err)
{
    if (name)
        return dsc_verifier_find(name, err);
    if (s->trace && !s->draft)
        return rule_of_trace(s->trace, drafter, err);
    return dsc_pair_rule(drafter, !s->target || s->load.temperature == 0);
}

// --- notes ---------------------------------------------------------------------------------------

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
        if (!rc)
            rc = dsc_shard_check(shard, err);
        dsc_shard_close(shard);
    }
    return rc;
}

int cli_open_replayed(dsc_trace **out, const char *path, dsc_error *err)
{
    int64_t lossy = 0;
    int rc = dsc_trace_open(out, path, err);
    rc = rc ?: dsc_trace_lossy(&lossy, dsc_trace_get_info(*out), err);
    if (!rc && lossy)
        fprintf(stderr,
                "draftscope: warning: the trace comes of an import with --lossy, in which %lld "
                "requests lack a part of what the model wrote or read: the figures of these are of "
                "other texts\n",
                (long long)lossy);
    return rc;
}

void cli_note_acceptance(const char *note)
{
    if (*note)
        fprintf(stderr, "draftscope: acceptance: %s\n", note);
}

int cli_comment_acceptance(dsc_table *t, const dsc_acceptance_rates *rates, dsc_error *err)
{
    dsc_buffer b = {0};
    char number[DSC_NUMBER_TEXT];
    int rc = DSC_OK;
    if (!rates->note[0])
        return DSC_OK;
    for (int i = 0; i < rates->positions && !rc; i++) {
        dsc_number_text(rates->conditional_rate[i], number);
        rc = dsc_buffer_printf(&b, err, "%s%s", i ? ";" : "", number);
    }
    dsc_number_text(rates->later, number);
    if (!isnan(rates->later))
        rc = rc ?: dsc_buffer_printf(&b, err, ", later %s", number);
    rc = rc ?: dsc_buffer_printf(&b, err, " (%s)", rates->note);
    rc = rc ?: dsc_table_comment(t, "acceptance", b.data, err);
    dsc_buffer_fini(&b);
    return rc;
}

int cli_note_missing_references(const dsc_trace *trace, const dsc_language *target,
                                const dsc_drafter_type *drafter, const dsc_option_value *value,
                                dsc_error *err)
{
    const dsc_option *o = dsc_option_find(drafter->option, drafter->option_count, "references");
    if (!o)
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
        else // requests of a model have a prompt, cut from its texts, and no other reference
            found = target->type->text && (!strcmp(chosen, "all") || !strcmp(chosen, "prompt"));
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

int cli_recorded_head(bool *head, const dsc_trace *trace, dsc_error *err)
{
    dsc_recorded_run run = {.head = -1};
    int rc = trace ? dsc_trace_recorded_run(&run, dsc_trace_get_info(trace), err) : DSC_OK;
    *head = run.head == 1;
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
    json_t *origin;
    if (dsc_trace_provenance(&origin, dsc_trace_get_info(trace), NULL))
        return; // a run that has too little memory fails by itself
    json_t *written = json_object_get(origin, "temperature");
    json_t *dists = json_object_get(origin, "distribution_temperature");
    if (json_is_number(written) && json_is_number(dists) && json_number_value(written) == 0)
        fprintf(stderr,
                "draftscope: note: %s: the trace was recorded at temperature 0, but its "
                "distributions have temperature %g; a greedy live run has other counts\n",
                method->name, json_number_value(dists));
    json_decref(origin);
}
