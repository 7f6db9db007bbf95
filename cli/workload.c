// SPDX-License-Identifier: Apache-2.0
// The options of commands that run a synthetic model in place of a trace (--target, --draft,
// --requests, ...), the models that they describe, and the default verification rule.
#include "cli/workload.h"

#include "sim/expect/expect_rule.h"
#include "sim/loop.h"
#include "sim/model/model_spec.h"
#include "traces/trace/recorded_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
const dsc_option cli_workload_options[CLI_WORKLOAD_OPTIONS] = {
    [CLI_WORKLOAD_TARGET] = {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "synthetic target model that runs instead of a trace: ngram:FILE, markov:V, iid:ALPHA "
             "(see: draftscope list models)"},
    [CLI_WORKLOAD_DRAFT] = {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .help = "draft model (default: the draft of a markov or iid pair; for ngram, n-grams one "
             "token shorter than those of --target)"},
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
    const dsc_language_kind *kind;
    dsc_buffer b = {0};
    int rc = dsc_language_find(&kind, model, err);
    if (!rc)
        rc = dsc_buffer_puts(&b, model, err);
    if (!rc && !kind->pair) // a later item of a specification overrides an earlier one
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

int cli_workload_make(cli_workload *w, const dsc_option_value *value,
                      const dsc_drafter_type *const *drafter, size_t drafters, bool trace,
                      dsc_error *err)
{
    const char *model = value[CLI_WORKLOAD_TARGET].text, *draft = value[CLI_WORKLOAD_DRAFT].text,
               *middle = value[CLI_WORKLOAD_MIDDLE].text;
    bool needs_draft = false, needs_middle = false;
    dsc_tokenizer *tokenizer = NULL;
    *w = (cli_workload){0};
    if (trace == (model != NULL))
        return dsc_fail(err, DSC_EUSAGE, "one trace or --target SPEC expected, not %s",
                        trace ? "both" : "neither");
    for (size_t d = 0; d < drafters; d++) {
        needs_draft |= drafter[d]->needs_draft;
        needs_middle |= drafter[d]->needs_middle;
    }
    int rc = model || draft || middle
                 ? dsc_tokenizer_load(&tokenizer, value[CLI_WORKLOAD_TOKENIZER].text, err)
                 : DSC_OK;
    if (!rc && model)
        rc = dsc_language_make(&w->target, model, DSC_SIDE_TARGET, tokenizer, err);
    if (!rc && (draft || (needs_draft && model)))
        rc = make_language(&w->draft, draft, model, w->target, tokenizer, err);
    if (!rc && (middle || (needs_middle && model)))
        rc = make_language(&w->middle, middle, model, w->target, tokenizer, err);
    dsc_tokenizer_free(tokenizer);
    w->load = (dsc_workload){.target = w->target,
                             .draft = w->draft,
                             .middle = w->middle,
                             .temperature = value[CLI_WORKLOAD_TEMPERATURE].real,
                             .requests = value[CLI_WORKLOAD_REQUESTS].integer,
                             .prompt_tokens = value[CLI_WORKLOAD_PROMPT_TOKENS].integer,
                             .max_tokens = value[CLI_WORKLOAD_MAX_TOKENS].integer};
    if (!rc && model)
        rc = dsc_workload_order(&w->order, value[CLI_WORKLOAD_ORDER].text, w->load.requests, err);
    w->load.order = w->order;
    if (rc)
        cli_workload_free(w);
    return rc;
}

// The rule for a recorded output. A sampled output is replayed by the method's sampling rule if the
// trace contains the token probabilities that this rule needs; any other output by `greedy`.
static const dsc_verifier_type *rule_of_trace(const dsc_trace *trace,
                                              const dsc_drafter_type *drafter)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    const double temperature = dsc_trace_recorded_run(info).temperature;
    const dsc_verifier_type *rule = dsc_pair_rule(drafter, false);
    if (!drafter->needs_draft || drafter->needs_off_path || !(temperature > 0))
        return &dsc_verifier_greedy;
    if (!dsc_rule_replays(drafter, rule) || !dsc_rule_recorded(rule, info)) {
        fprintf(stderr,
                "draftscope: rule: greedy, though the trace was recorded at temperature %g: it "
                "lacks the "
                "token probabilities that rule %s needs for method %s\n",
                temperature, rule->name, drafter->name);
        return &dsc_verifier_greedy;
    }
    fprintf(stderr, "draftscope: rule: %s, because the trace was recorded at temperature %g\n",
            rule->name, temperature);
    return rule;
}

const dsc_verifier_type *cli_workload_rule(const cli_workload *w, const dsc_trace *trace,
                                           const char *name, const dsc_drafter_type *drafter,
                                           dsc_error *err)
{
    if (name)
        return dsc_verifier_find(name, err);
    if (trace && !w->load.draft)
        return rule_of_trace(trace, drafter);
    return dsc_pair_rule(drafter, !w->load.target || w->load.temperature == 0);
}

int cli_workload_comments(dsc_table *t, const dsc_option_value *value, dsc_error *err)
{
    int rc = DSC_OK;
    for (int o = 0; o < CLI_WORKLOAD_OPTIONS && !rc; o++)
        if (value[o].text && (value[CLI_WORKLOAD_TARGET].text || value[o].given))
            rc = dsc_table_comment(t, cli_workload_options[o].name, value[o].text, err);
    return rc;
}

void cli_workload_free(cli_workload *w)
{
    dsc_language_free(w->target);
    dsc_language_free(w->draft);
    dsc_language_free(w->middle);
    free(w->order);
    *w = (cli_workload){0};
}
