// SPDX-License-Identifier: Apache-2.0
// Prints a configuration as settings of the engines, as of their documentation in November 2026:
//  - vLLM: --speculative-config, a JSON object (docs/features/speculative_decoding: draft_model.md,
//    n_gram.md, suffix.md); draft lengths by batch size: dynamic_speculative_decoding.md.
//  - SGLang: --speculative-algorithm STANDALONE (docs/advanced_features/speculative_decoding); by
//    batch size for EAGLE drafts only: adaptive_speculative_decoding.
//  - transformers: generate() and the draft model's generation_config.
//  - llama.cpp: llama-server --spec-type, --spec-draft-* (docs/speculative.md), named --draft-max,
//    --draft-min and --draft-p-min before May 2026.
#include "cli/tune/tune_engine.h"

#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Index of an option that the method must have: the tables below name no other.
static size_t option_index(const dsc_config *c, const char *name)
{
    size_t o = 0;
    while (o < c->drafter->option_count && strcmp(c->drafter->option[o].name, name) != 0)
        o++;
    if (o == c->drafter->option_count) {
        fprintf(stderr, "draftscope: method %s has no option %s\n", c->drafter->name, name);
        abort();
    }
    return o;
}

static int64_t integer(const dsc_config *c, const char *name)
{
    return c->parameter[option_index(c, name)];
}

static const char *real(const dsc_config *c, const char *name, char text[DSC_NUMBER_TEXT])
{
    dsc_number_text(c->real[option_index(c, name)], text);
    return text;
}

// An engine's configuration lines for a method. `lacks`: the reason why the engine does not support
// the parameters; NULL: it does.
typedef struct form {
    cli_engine engine;
    const dsc_drafter_type *drafter;
    const char *(*lacks)(const dsc_config *c);
    int (*print)(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err);
} form;

// --- vLLM --------------------------------------------------------------------------------------

static const char *drawn(const cli_engine_choice *x)
{
    return x->rule->greedy ? "" : ", \"draft_sample_method\": \"probabilistic\"";
}

static int vllm_chain(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    return dsc_buffer_printf(b, err,
                             "vllm serve MODEL --speculative-config '{\"method\": \"draft_model\", "
                             "\"model\": \"DRAFT\", \"num_speculative_tokens\": %" PRId64 "%s}'\n",
                             integer(x->config, "num-speculative-tokens"), drawn(x));
}

// The engine's own prompt lookup, where another one was tuned.
static int remark_semantics(dsc_buffer *b, const dsc_config *c, const char *own, dsc_error *err)
{
    char tuned[32];
    const size_t o = option_index(c, "semantics");
    dsc_option_text(&c->drafter->option[o], c->parameter[o], tuned, sizeof tuned);
    if (strcmp(tuned, own) == 0)
        return DSC_OK;
    return dsc_buffer_printf(
        b, err, "# the engine looks up as --semantics %s does; these were tuned with %s\n", own,
        tuned);
}

static int vllm_ngram(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    const dsc_config *c = x->config;
    int rc = remark_semantics(b, c, "vllm", err);
    return rc ? rc
              : dsc_buffer_printf(b, err,
                                  "vllm serve MODEL --speculative-config '{\"method\": \"ngram\", "
                                  "\"num_speculative_tokens\": %" PRId64
                                  ", \"prompt_lookup_max\": %" PRId64
                                  ", \"prompt_lookup_min\": %" PRId64 "}'\n",
                                  integer(c, "num-speculative-tokens"),
                                  integer(c, "prompt-lookup-max"), integer(c, "prompt-lookup-min"));
}

static const char *vllm_suffix_lacks(const dsc_config *c)
{
    return integer(c, "branches") == 1 ? NULL : "vLLM's suffix drafts have one branch";
}

static int vllm_suffix(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    char factor[DSC_NUMBER_TEXT], probability[DSC_NUMBER_TEXT];
    const dsc_config *c = x->config;
    return dsc_buffer_printf(
        b, err,
        "# the model runner of version 1 (Arctic Inference); that of version 2 always drafts "
        "num_speculative_tokens\n"
        "vllm serve MODEL --speculative-config '{\"method\": \"suffix\", "
        "\"num_speculative_tokens\": %" PRId64 ", \"suffix_decoding_max_tree_depth\": %" PRId64
        ", \"suffix_decoding_max_cached_requests\": 0, \"suffix_decoding_max_spec_factor\": %s, "
        "\"suffix_decoding_min_token_prob\": %s}'\n",
        integer(c, "num-speculative-tokens"), integer(c, "depth"), real(c, "spec-factor", factor),
        real(c, "min-probability", probability));
}

// The draft length of each range of batch sizes; adjacent ranges of the same length are merged.
static int vllm_schedule(dsc_buffer *b, const cli_engine_choice *choice, size_t choices,
                         dsc_error *err)
{
    int64_t most = 0, from = 1;
    dsc_buffer ranges = {0};
    int rc = DSC_OK;
    for (size_t i = 0; i < choices && !rc; i++) {
        int64_t k = integer(choice[i].config, "num-speculative-tokens");
        most = k > most ? k : most;
        if (i + 1 < choices && integer(choice[i + 1].config, "num-speculative-tokens") == k)
            continue;
        rc = dsc_buffer_printf(&ranges, err, "%s[%" PRId64 ", %" PRId64 ", %" PRId64 "]",
                               ranges.length ? ", " : "", from, choice[i].batch, k);
        from = choice[i].batch + 1;
    }
    if (!rc)
        rc = dsc_buffer_printf(
            b, err,
            "vllm serve MODEL --speculative-config '{\"method\": \"draft_model\", \"model\": "
            "\"DRAFT\", \"num_speculative_tokens\": %" PRId64
            "%s, \"num_speculative_tokens_per_batch_size\": [%s]}'\n",
            most, drawn(&choice[0]), ranges.data);
    dsc_buffer_fini(&ranges);
    return rc;
}

// --- SGLang ------------------------------------------------------------------------------------

static int sglang_chain(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    int64_t k = integer(x->config, "num-speculative-tokens");
    return dsc_buffer_printf(b, err,
                             "python3 -m sglang.launch_server --model-path MODEL "
                             "--speculative-algorithm STANDALONE "
                             "--speculative-draft-model-path DRAFT --speculative-num-steps %" PRId64
                             " --speculative-eagle-topk 1 --speculative-num-draft-tokens %" PRId64
                             "\n",
                             k, k + 1);
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
                               i ? ", " : "", from,
                               integer(choice[i].config, "num-speculative-tokens"));
        from = choice[i].batch + 1;
    }
    return rc ? rc : dsc_buffer_puts(b, "}\n", err);
}

// --- transformers ------------------------------------------------------------------------------

static int hf_assistant(dsc_buffer *b, int64_t tokens, const char *schedule, const char *confidence,
                        dsc_error *err)
{
    return dsc_buffer_printf(b, err,
                             "draft.generation_config.update(num_assistant_tokens=%" PRId64
                             ", num_assistant_tokens_schedule=\"%s\", "
                             "assistant_confidence_threshold=%s)\n"
                             "model.generate(**inputs, assistant_model=draft)\n",
                             tokens, schedule, confidence);
}

static int hf_chain(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    return hf_assistant(b, integer(x->config, "num-speculative-tokens"), "constant", "0.0", err);
}

static const char *hf_dynamic_lacks(const dsc_config *c)
{
    bool same = integer(c, "increment") == 2 && integer(c, "decrement") == 1 &&
                integer(c, "min") == 1 && integer(c, "max") == 100000;
    return same ? NULL
                : "transformers' rule is increment=2, decrement=1, min=1 and the default max";
}

static int hf_dynamic(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    return hf_assistant(b, integer(x->config, "num-assistant-tokens"), "heuristic", "0.0", err);
}

static int hf_threshold(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    char confidence[DSC_NUMBER_TEXT];
    int rc = dsc_buffer_puts(b,
                             "# where scikit-learn is installed, transformers moves the threshold "
                             "while it runs\n",
                             err);
    return rc ? rc
              : hf_assistant(b, integer(x->config, "num-speculative-tokens"), "constant",
                             real(x->config, "assistant-confidence-threshold", confidence), err);
}

static const char *hf_ngram_lacks(const dsc_config *c)
{
    return integer(c, "prompt-lookup-min") == 1
               ? NULL
               : "transformers tries every match down to one token: "
                 "--prompt-lookup-min 1";
}

static int hf_ngram(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    const dsc_config *c = x->config;
    int rc = remark_semantics(b, c, "transformers", err);
    return rc ? rc
              : dsc_buffer_printf(b, err,
                                  "model.generate(**inputs, prompt_lookup_num_tokens=%" PRId64
                                  ", max_matching_ngram_size=%" PRId64 ")\n",
                                  integer(c, "num-speculative-tokens"),
                                  integer(c, "prompt-lookup-max"));
}

// --- llama.cpp ---------------------------------------------------------------------------------

static int llama_draft(dsc_buffer *b, int64_t most, const char *probability, dsc_error *err)
{
    return dsc_buffer_printf(b, err,
                             "llama-server -m MODEL -md DRAFT --spec-type draft-simple "
                             "--spec-draft-n-max %" PRId64
                             " --spec-draft-n-min 0 --spec-draft-p-min %s\n",
                             most, probability);
}

static int llama_chain(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    return llama_draft(b, integer(x->config, "num-speculative-tokens"), "0", err);
}

static int llama_threshold(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    char confidence[DSC_NUMBER_TEXT];
    int rc = dsc_buffer_puts(b,
                             "# versions of llama.cpp differ in whether the token that is not sure "
                             "is still drafted; here it is\n",
                             err);
    return rc ? rc
              : llama_draft(b, integer(x->config, "num-speculative-tokens"),
                            real(x->config, "assistant-confidence-threshold", confidence), err);
}

// -----------------------------------------------------------------------------------------------

static int nothing(dsc_buffer *b, const cli_engine_choice *x, dsc_error *err)
{
    (void)x;
    return dsc_buffer_puts(b, "# no speculation: leave the speculative options out\n", err);
}

static const form forms[] = {
    {CLI_VLLM, &dsc_drafter_none, NULL, nothing},
    {CLI_VLLM, &dsc_drafter_draft_model, NULL, vllm_chain},
    {CLI_VLLM, &dsc_drafter_ngram, NULL, vllm_ngram},
    {CLI_VLLM, &dsc_drafter_suffix, vllm_suffix_lacks, vllm_suffix},
    {CLI_SGLANG, &dsc_drafter_none, NULL, nothing},
    {CLI_SGLANG, &dsc_drafter_draft_model, NULL, sglang_chain},
    {CLI_HF, &dsc_drafter_none, NULL, nothing},
    {CLI_HF, &dsc_drafter_draft_model, NULL, hf_chain},
    {CLI_HF, &dsc_drafter_ngram, hf_ngram_lacks, hf_ngram},
    {CLI_HF, &dsc_drafter_hf_dynamic, hf_dynamic_lacks, hf_dynamic},
    {CLI_HF, &dsc_drafter_threshold, NULL, hf_threshold},
    {CLI_LLAMACPP, &dsc_drafter_none, NULL, nothing},
    {CLI_LLAMACPP, &dsc_drafter_draft_model, NULL, llama_chain},
    {CLI_LLAMACPP, &dsc_drafter_threshold, NULL, llama_threshold},
};
enum { FORMS = sizeof forms / sizeof *forms };

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
    return f->lacks ? f->lacks(config) : NULL;
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
    return c->drafter != &dsc_drafter_none &&
           (c->drafter != &dsc_drafter_draft_model || integer(c, "num-speculative-tokens") > 0);
}

int cli_engine_lines(dsc_buffer *out, cli_engine engine, const cli_engine_choice *choice,
                     size_t choices, dsc_error *err)
{
    bool chains = choices > 1, any = false;
    int rc = DSC_OK;
    for (size_t i = 0; i < choices; i++) {
        chains &= choice[i].config->drafter == &dsc_drafter_draft_model;
        any |= drafts(choice[i].config);
    }
    if (engine == CLI_VLLM && chains && any)
        return vllm_schedule(out, choice, choices, err);
    for (size_t i = 0; i < choices && !rc; i++) {
        if (choices > 1)
            rc = dsc_buffer_printf(out, err, "# batches of up to %" PRId64 ":\n", choice[i].batch);
        if (!rc)
            rc = drafts(choice[i].config)
                     ? find(engine, choice[i].config->drafter)->print(out, &choice[i], err)
                     : nothing(out, &choice[i], err);
    }
    if (!rc && engine == CLI_SGLANG && chains && any)
        rc = sglang_tiers(out, choice, choices, err);
    return rc;
}
