// SPDX-License-Identifier: Apache-2.0
// Prints a configuration as settings of the engines, as of their documentation in November 2026:
//  - vLLM: --speculative-config, a JSON object (docs/features/speculative_decoding: draft_model.md,
//    n_gram.md, suffix.md); draft lengths by batch size: dynamic_speculative_decoding.md.
//  - SGLang: --speculative-algorithm STANDALONE (docs/advanced_features/speculative_decoding); by
//    batch size for EAGLE drafts only: adaptive_speculative_decoding.
//  - transformers: generate() and the draft model's generation_config.
//  - llama.cpp: llama-server --spec-type, --spec-draft-* (docs/speculative.md), named --draft-max,
//    --draft-min and --draft-p-min before May 2026.
//  - TensorRT-LLM: speculative_config of the file of trtllm-serve --config, 1.4.0rc1. Its
//    draft_len_schedule maps batch sizes to lengths, but whether a key is the first or the last
//    batch size of its range differs between versions, so none is printed.
#include "cli/tune/tune.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// The value of an option that the method must have: the forms below name no other.
static int64_t integer(const dsc_config *c, const char *name)
{
    const dsc_drafter_type *d = c->drafter;
    const dsc_option *o = dsc_option_find(d->option, d->option_count, name);
    assert(o);
    return c->parameter[o - d->option];
}

// An engine's configuration lines for a method. In the text, <NAME> is the value of an option of
// the method, <NAME+1> one more, and <sampling> the setting of vLLM for a rule that samples.
typedef struct form {
    cli_engine engine;
    const dsc_drafter_type *drafter;
    const char *text;
    const char *semantics; // the engine's own prompt lookup, or NULL
    struct {
        const char *option;
        int64_t value;
    } needs[4];        // the only values that the engine has
    const char *lacks; // the reason why it supports no others
} form;

#define NO_SPECULATION "# no speculation: leave the speculative options out\n"
#define VLLM "vllm serve MODEL --speculative-config '{\"method\": "
#define PROBABILISTIC ", \"draft_sample_method\": \"probabilistic\""
#define HF_ASSISTANT(tokens, schedule, threshold)                                                  \
    "draft.generation_config.update(num_assistant_tokens=<" tokens                                 \
    ">, num_assistant_tokens_schedule=\"" schedule "\", assistant_confidence_threshold=" threshold \
    ")\n"                                                                                          \
    "model.generate(**inputs, assistant_model=draft)\n"
#define LLAMA_DRAFT(probability)                                                                   \
    "llama-server -m MODEL -md DRAFT --spec-type draft-simple --spec-draft-n-max "                 \
    "<num-speculative-tokens> --spec-draft-n-min 0 --spec-draft-p-min " probability "\n"

static const form forms[] = {
    {CLI_VLLM, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_VLLM, &dsc_drafter_draft_model,
     .text = VLLM "\"draft_model\", \"model\": \"DRAFT\", \"num_speculative_tokens\": "
                  "<num-speculative-tokens><sampling>}'\n"},
    {CLI_VLLM, &dsc_drafter_ngram,
     .text = VLLM "\"ngram\", \"num_speculative_tokens\": <num-speculative-tokens>, "
                  "\"prompt_lookup_max\": <prompt-lookup-max>, "
                  "\"prompt_lookup_min\": <prompt-lookup-min>}'\n",
     .semantics = "vllm"},
    {CLI_VLLM, &dsc_drafter_suffix,
     .text =
         "# the model runner of version 1 (Arctic Inference); that of version 2 always drafts "
         "num_speculative_tokens\n" VLLM
         "\"suffix\", \"num_speculative_tokens\": <num-speculative-tokens>, "
         "\"suffix_decoding_max_tree_depth\": <depth>, \"suffix_decoding_max_cached_requests\": 0, "
         "\"suffix_decoding_max_spec_factor\": <spec-factor>, "
         "\"suffix_decoding_min_token_prob\": <min-probability>}'\n",
     .needs = {{"branches", 1}}, .lacks = "vLLM's suffix drafts have one branch"},
    {CLI_SGLANG, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_SGLANG, &dsc_drafter_draft_model,
     .text =
         "python3 -m sglang.launch_server --model-path MODEL --speculative-algorithm STANDALONE "
         "--speculative-draft-model-path DRAFT --speculative-num-steps <num-speculative-tokens> "
         "--speculative-eagle-topk 1 --speculative-num-draft-tokens <num-speculative-tokens+1>\n"},
    {CLI_HF, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_HF, &dsc_drafter_draft_model,
     .text = HF_ASSISTANT("num-speculative-tokens", "constant", "0.0")},
    {CLI_HF, &dsc_drafter_ngram,
     .text = "model.generate(**inputs, prompt_lookup_num_tokens=<num-speculative-tokens>, "
             "max_matching_ngram_size=<prompt-lookup-max>)\n",
     .semantics = "transformers", .needs = {{"prompt-lookup-min", 1}},
     .lacks = "transformers tries every match down to one token: --prompt-lookup-min 1"},
    {CLI_HF, &dsc_drafter_hf_dynamic,
     .text = HF_ASSISTANT("num-assistant-tokens", "heuristic", "0.0"),
     .needs = {{"increment", 2}, {"decrement", 1}, {"min", 1}, {"max", 100000}},
     .lacks = "transformers' rule is increment=2, decrement=1, min=1 and the default max"},
    {CLI_HF, &dsc_drafter_threshold,
     .text = "# where scikit-learn is installed, transformers moves the threshold while it "
             "runs\n" HF_ASSISTANT("num-speculative-tokens", "constant",
                                   "<assistant-confidence-threshold>")},
    {CLI_LLAMACPP, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_LLAMACPP, &dsc_drafter_draft_model, .text = LLAMA_DRAFT("0")},
    {CLI_LLAMACPP, &dsc_drafter_threshold,
     .text = "# versions of llama.cpp differ in whether the token that is not sure is still "
             "drafted; here it is\n" LLAMA_DRAFT("<assistant-confidence-threshold>")},
    {CLI_TRTLLM, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_TRTLLM, &dsc_drafter_draft_model,
     .text = "printf 'speculative_config: {decoding_type: DraftTarget, max_draft_len: "
             "<num-speculative-tokens>, speculative_model: DRAFT}\\n' >draft.yaml\n"
             "trtllm-serve MODEL --config draft.yaml\n"},
};
enum { FORMS = sizeof forms / sizeof *forms };

// --- a form's text -----------------------------------------------------------------------------

// Appends the value of the name that `hole` begins with.
static int append_value(dsc_buffer *b, const char *hole, const cli_engine_choice *x, dsc_error *err)
{
    const dsc_drafter_type *d = x->config->drafter;
    const size_t n = strcspn(hole, "+>");
    char name[64], real[DSC_NUMBER_TEXT];
    snprintf(name, sizeof name, "%.*s", (int)n, hole);
    if (strcmp(name, "sampling") == 0)
        return dsc_buffer_puts(b, x->rule->greedy ? "" : PROBABILISTIC, err);
    const dsc_option *o = dsc_option_find(d->option, d->option_count, name);
    assert(o);
    if (o->kind != DSC_OPTION_REAL)
        return dsc_buffer_printf(b, err, "%" PRId64, integer(x->config, name) + (hole[n] == '+'));
    dsc_number_text(x->config->real[o - d->option], real);
    return dsc_buffer_puts(b, real, err);
}

// Remarks that another prompt lookup was tuned than the engine's own.
static int remark_semantics(dsc_buffer *b, const dsc_config *c, const char *own, dsc_error *err)
{
    char tuned[32];
    const dsc_option *o =
        dsc_option_find(c->drafter->option, c->drafter->option_count, "semantics");
    dsc_option_text(o, integer(c, "semantics"), tuned, sizeof tuned);
    if (strcmp(tuned, own) == 0)
        return DSC_OK;
    return dsc_buffer_printf(
        b, err, "# the engine looks up as --semantics %s does; these were tuned with %s\n", own,
        tuned);
}

static int print(dsc_buffer *b, const form *f, const cli_engine_choice *x, dsc_error *err)
{
    const char *text = f->text;
    int rc = f->semantics ? remark_semantics(b, x->config, f->semantics, err) : DSC_OK;
    for (const char *hole; !rc && (hole = strchr(text, '<')); text = strchr(hole, '>') + 1) {
        rc = dsc_buffer_append(b, text, (size_t)(hole - text), err);
        if (!rc)
            rc = append_value(b, hole + 1, x, err);
    }
    return rc ? rc : dsc_buffer_puts(b, text, err);
}

// --- several batch sizes -----------------------------------------------------------------------

// The draft length of a choice; 0: speculation is off.
static int64_t length_of(const cli_engine_choice *x)
{
    return x->config ? integer(x->config, "num-speculative-tokens") : 0;
}

// The draft length of each range of batch sizes; adjacent ranges of the same length are merged. A
// length of 0 switches speculation off. Nothing is set above the greatest batch size that was
// tuned.
static int vllm_schedule(dsc_buffer *b, const cli_engine_choice *choice, size_t choices,
                         dsc_error *err)
{
    int64_t most = 0, from = 1;
    const dsc_verifier_type *rule = NULL;
    dsc_buffer ranges = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < choices && !rc; i++) {
        const int64_t k = length_of(&choice[i]);
        most = k > most ? k : most;
        rule = k ? choice[i].rule : rule;
        if (i + 1 < choices && length_of(&choice[i + 1]) == k)
            continue;
        rc = dsc_buffer_printf(&ranges, err, "%s[%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                               ranges.length ? ", " : "", from, choice[i].batch, k);
        from = choice[i].batch + 1;
    }
    if (!rc)
        rc = dsc_buffer_printf(
            b, err,
            VLLM "\"draft_model\", \"model\": \"DRAFT\", \"num_speculative_tokens\": %" PRId64
                 "%s, \"num_speculative_tokens_per_batch_size\": [%s]}'\n",
            most, rule->greedy ? "" : PROBABILISTIC, ranges.data);
    dsc_buffer_fini(&ranges);
    return rc;
}

// Tiers are for EAGLE heads; a key is the first batch size of its range.
static int sglang_tiers(dsc_buffer *b, const cli_engine_choice *choice, size_t choices,
                        dsc_error *err)
{
    int64_t from = 1;
    int rc = dsc_buffer_puts(b,
                             "# an EAGLE or EAGLE3 draft can have them all at once: "
                             "--speculative-adaptive --speculative-adaptive-config FILE, with\n# {",
                             err);
    for (size_t i = 0; i < choices && !rc; i++) {
        rc = dsc_buffer_printf(b, err, "%s\"%" PRId64 "\": {\"candidate_steps\": [%" PRId64 "]}",
                               i ? ", " : "", from, length_of(&choice[i]));
        from = choice[i].batch + 1;
    }
    return rc ? rc : dsc_buffer_puts(b, "}\n", err);
}

// --- the interface ------------------------------------------------------------------------------

static const form *find(cli_engine engine, const dsc_drafter_type *drafter)
{
    for (size_t f = 0; f < FORMS; f++)
        if (forms[f].engine == engine && forms[f].drafter == drafter)
            return &forms[f];
    return NULL;
}

bool cli_engine_has(cli_engine engine, const dsc_drafter_type *drafter)
{
    return find(engine, drafter) != NULL;
}

const char *cli_engine_lacks(cli_engine engine, const dsc_config *config)
{
    const form *f = find(engine, config->drafter);
    if (!f)
        return "it has no such method";
    for (size_t i = 0; i < sizeof f->needs / sizeof *f->needs && f->needs[i].option; i++)
        if (integer(config, f->needs[i].option) != f->needs[i].value)
            return f->lacks;
    return NULL;
}

int cli_engine_methods(dsc_buffer *out, cli_engine engine, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t f = 0; f < FORMS && !rc; f++)
        if (forms[f].engine == engine && forms[f].drafter != &dsc_drafter_none)
            rc = dsc_buffer_printf(out, err, "%s%s", out->length ? ", " : "",
                                   forms[f].drafter->name);
    return rc;
}

// A chain of no tokens is no speculation.
static bool drafts(const dsc_config *c)
{
    return c && c->drafter != &dsc_drafter_none &&
           (c->drafter != &dsc_drafter_draft_model || integer(c, "num-speculative-tokens") > 0);
}

int cli_engine_lines(dsc_buffer *out, cli_engine engine, const cli_engine_choice *choice,
                     size_t choices, dsc_error *err)
{
    bool chains = choices > 1, any = false;
    int rc = DSC_OK;
    for (size_t i = 0; i < choices; i++) {
        const bool on = drafts(choice[i].config);
        chains &= !on || choice[i].config->drafter == &dsc_drafter_draft_model;
        any |= on;
    }
    if (engine == CLI_VLLM && chains && any)
        return vllm_schedule(out, choice, choices, err);
    for (size_t i = 0; i < choices && !rc; i++) {
        if (choices > 1)
            rc = dsc_buffer_printf(out, err, "# batches of up to %" PRId64 ":\n", choice[i].batch);
        if (!rc)
            rc = drafts(choice[i].config)
                     ? print(out, find(engine, choice[i].config->drafter), &choice[i], err)
                     : dsc_buffer_puts(out, NO_SPECULATION, err);
    }
    if (!rc && engine == CLI_SGLANG && chains && any)
        rc = sglang_tiers(out, choice, choices, err);
    return rc;
}
