// SPDX-License-Identifier: Apache-2.0
// Prints a configuration as settings of the engines. Their names, and where each was read, are in
// engine_names.c (draftscope list engines -v).
#include "cli/tune/engine.h"

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

// Whether an option, of numbers or choices, has a value.
static bool has_value(const dsc_config *c, const char *name, int64_t value)
{
    const dsc_drafter_type *d = c->drafter;
    const dsc_option *o = dsc_option_find(d->option, d->option_count, name);
    assert(o);
    return o->kind == DSC_OPTION_REAL ? c->real[o - d->option] == (double)value
                                      : c->parameter[o - d->option] == value;
}

// An engine's configuration lines for a method. In the text, <NAME> is the value of an option of
// the method, <NAME+1> one more, <NAME~1> one less, and <sampling> the setting of vLLM for a rule
// that samples.
typedef struct form {
    cli_engine engine;
    const dsc_drafter_type *drafter;
    const char *text;
    cli_draft_kind kind;   // of methods with a draft model
    const char *semantics; // the engine's own prompt lookup, or NULL
    struct {
        const char *option;
        int64_t value;
    } needs[4];        // the only values that the engine has
    const char *lacks; // the reason why it supports no others
} form;

#define NO_SPECULATION "# no speculation: leave the speculative options out\n"
#define VLLM "vllm serve MODEL --speculative-config '{\"method\": "
#define VLLM_CHAIN(method, model)                                                                  \
    VLLM "\"" method "\", " model                                                                  \
         "\"num_speculative_tokens\": <num-speculative-tokens><sampling>}'\n"
#define VLLM_DRAFT "\"model\": \"DRAFT\", "
#define PROBABILISTIC ", \"draft_sample_method\": \"probabilistic\""
#define BLOCK_RULE ", \"rejection_sample_method\": \"block\""
#define SGLANG_CHAIN(algorithm, model)                                                             \
    "python3 -m sglang.launch_server --model-path MODEL --speculative-algorithm " algorithm model  \
    " --speculative-num-steps <num-speculative-tokens> --speculative-eagle-topk 1 "                \
    "--speculative-num-draft-tokens <num-speculative-tokens+1>\n"
#define SGLANG_TREE(algorithm)                                                                     \
    "python3 -m sglang.launch_server --model-path MODEL --speculative-algorithm " algorithm        \
        SGLANG_DRAFT " --speculative-num-steps <num-steps> --speculative-eagle-topk <eagle-topk> " \
    "--speculative-num-draft-tokens <num-draft-tokens>\n"
#define SGLANG_DRAFT " --speculative-draft-model-path DRAFT"
#define HF_ASSISTANT(tokens, schedule, threshold)                                                  \
    "draft.generation_config.update(num_assistant_tokens=<" tokens                                 \
    ">, num_assistant_tokens_schedule=\"" schedule "\", assistant_confidence_threshold=" threshold \
    ")\n"                                                                                          \
    "model.generate(**inputs, assistant_model=draft)\n"
#define LLAMA_DRAFT(type, model, probability)                                                      \
    "llama-server -m MODEL" model " --spec-type " type " --spec-draft-n-max "                      \
    "<num-speculative-tokens> --spec-draft-n-min 0 --spec-draft-p-min " probability "\n"
#define TRTLLM_DRAFT(type, rest)                                                                   \
    "printf 'speculative_config: {\"decoding_type\": \"" type                                      \
    "\", \"max_draft_len\": <num-speculative-tokens>" rest "}\\n' >draft.yaml\n"                   \
    "trtllm-serve MODEL --config draft.yaml\n"
#define TRTLLM_SA ", \"sa_config\": {\"threshold\": <match-threshold>}"
#define TRTLLM_TREE                                                                                \
    "printf 'speculative_config: {\"decoding_type\": \"Eagle3\", \"use_dynamic_tree\": true, "     \
    "\"max_draft_len\": <num-steps>, \"dynamic_tree_max_topK\": <eagle-topk>, "                    \
    "\"max_total_draft_tokens\": <num-draft-tokens~1>" TRTLLM_MODEL "}\\n' >draft.yaml\n"          \
    "trtllm-serve MODEL --config draft.yaml\n"
#define TRTLLM_MODEL ", \"speculative_model\": \"DRAFT\""

static const form forms[] = {
    {CLI_VLLM, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_VLLM, &dsc_drafter_draft_model, .text = VLLM_CHAIN("draft_model", VLLM_DRAFT)},
    {CLI_VLLM, &dsc_drafter_draft_model, .kind = CLI_DRAFT_EAGLE,
     .text = VLLM_CHAIN("eagle", VLLM_DRAFT)},
    {CLI_VLLM, &dsc_drafter_draft_model, .kind = CLI_DRAFT_EAGLE3,
     .text = VLLM_CHAIN("eagle3", VLLM_DRAFT)},
    {CLI_VLLM, &dsc_drafter_draft_model, .kind = CLI_DRAFT_MTP, .text = VLLM_CHAIN("mtp", "")},
    {CLI_VLLM, &dsc_drafter_draft_model, .kind = CLI_DRAFT_MEDUSA,
     .text = VLLM_CHAIN("medusa", VLLM_DRAFT)},
    {CLI_VLLM, &dsc_drafter_ngram,
     .text = VLLM "\"ngram\", \"num_speculative_tokens\": <num-speculative-tokens>, "
                  "\"prompt_lookup_max\": <prompt-lookup-max>, "
                  "\"prompt_lookup_min\": <prompt-lookup-min>}'\n",
     .semantics = "vllm"},
    {CLI_VLLM, &dsc_drafter_suffix,
     .text = "# the model runner of version 1 (Arctic Inference); that of version 2 always drafts "
             "num_speculative_tokens\n" VLLM
             "\"suffix\", \"num_speculative_tokens\": <num-speculative-tokens>, "
             "\"suffix_decoding_max_tree_depth\": <max-tree-depth>, "
             "\"suffix_decoding_max_cached_requests\": <max-cached-requests>, "
             "\"suffix_decoding_max_spec_factor\": <max-spec-factor>, "
             "\"suffix_decoding_min_token_prob\": <min-token-prob>}'\n",
     .needs = {{"branches", 1}, {"max-spec-offset", 0}},
     .lacks = "vLLM's suffix drafts have one branch and no offset: --branches 1 --max-spec-offset "
              "0"},
    {CLI_SGLANG, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_SGLANG, &dsc_drafter_draft_model, .text = SGLANG_CHAIN("STANDALONE", SGLANG_DRAFT)},
    {CLI_SGLANG, &dsc_drafter_draft_model, .kind = CLI_DRAFT_EAGLE,
     .text = SGLANG_CHAIN("EAGLE", SGLANG_DRAFT)},
    {CLI_SGLANG, &dsc_drafter_draft_model, .kind = CLI_DRAFT_EAGLE3,
     .text = SGLANG_CHAIN("EAGLE3", SGLANG_DRAFT)},
    {CLI_SGLANG, &dsc_drafter_draft_model, .kind = CLI_DRAFT_MTP,
     .text = SGLANG_CHAIN("NEXTN", "")},
    {CLI_SGLANG, &dsc_drafter_dynamic_tree, .text = SGLANG_TREE("STANDALONE")},
    {CLI_SGLANG, &dsc_drafter_dynamic_tree, .kind = CLI_DRAFT_EAGLE, .text = SGLANG_TREE("EAGLE")},
    {CLI_SGLANG, &dsc_drafter_dynamic_tree, .kind = CLI_DRAFT_EAGLE3,
     .text = SGLANG_TREE("EAGLE3")},
    {CLI_SGLANG, &dsc_drafter_ngram_tree,
     .text = "python3 -m sglang.launch_server --model-path MODEL --speculative-algorithm NGRAM "
             "--disable-overlap-schedule --speculative-num-draft-tokens <num-draft-tokens> "
             "--speculative-ngram-min-bfs-breadth <min-bfs-breadth> "
             "--speculative-ngram-max-bfs-breadth <max-bfs-breadth> "
             "--speculative-ngram-match-type <match-type> "
             "--speculative-ngram-max-trie-depth <max-trie-depth> "
             "--speculative-ngram-capacity <capacity>\n"},
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
    {CLI_LLAMACPP, &dsc_drafter_draft_model,
     .text = LLAMA_DRAFT("draft-simple", " -md DRAFT", "0")},
    {CLI_LLAMACPP, &dsc_drafter_draft_model, .kind = CLI_DRAFT_EAGLE3,
     .text = LLAMA_DRAFT("draft-eagle3", " -md DRAFT", "0")},
    {CLI_LLAMACPP, &dsc_drafter_draft_model, .kind = CLI_DRAFT_MTP,
     .text = LLAMA_DRAFT("draft-mtp", "", "0")},
    {CLI_LLAMACPP, &dsc_drafter_threshold,
     .text = "# versions of llama.cpp differ in whether the token that is not sure is still "
             "drafted; here it is\n" LLAMA_DRAFT("draft-simple", " -md DRAFT",
                                                 "<assistant-confidence-threshold>")},
    {CLI_LLAMACPP, &dsc_drafter_ngram,
     .text = "llama-server -m MODEL --spec-type ngram-simple --spec-ngram-simple-size-n "
             "<prompt-lookup-max> --spec-ngram-simple-size-m <num-speculative-tokens>\n",
     .semantics = "llama.cpp"},
    {CLI_TRTLLM, &dsc_drafter_none, .text = NO_SPECULATION},
    {CLI_TRTLLM, &dsc_drafter_draft_model, .text = TRTLLM_DRAFT("Draft_Target", TRTLLM_MODEL)},
    {CLI_TRTLLM, &dsc_drafter_draft_model, .kind = CLI_DRAFT_EAGLE3,
     .text = TRTLLM_DRAFT("Eagle3", TRTLLM_MODEL)},
    {CLI_TRTLLM, &dsc_drafter_dynamic_tree, .kind = CLI_DRAFT_EAGLE3, .text = TRTLLM_TREE},
    {CLI_TRTLLM, &dsc_drafter_draft_model, .kind = CLI_DRAFT_MTP, .text = TRTLLM_DRAFT("MTP", "")},
    {CLI_TRTLLM, &dsc_drafter_sa_draft_model, .kind = CLI_DRAFT_EAGLE3,
     .text = TRTLLM_DRAFT("Eagle3", TRTLLM_SA TRTLLM_MODEL)},
    {CLI_TRTLLM, &dsc_drafter_sa_draft_model, .kind = CLI_DRAFT_MTP,
     .text = TRTLLM_DRAFT("MTP", TRTLLM_SA)},
};
enum { FORMS = sizeof forms / sizeof *forms };

// --- a form's text -----------------------------------------------------------------------------

// vLLM's keys for a draft model that samples, and for the rule.
static const char *vllm_sampling(const dsc_verifier_type *rule)
{
    return rule->greedy                  ? ""
           : rule == &dsc_verifier_block ? PROBABILISTIC BLOCK_RULE
                                         : PROBABILISTIC;
}

// Appends the value of the name that `hole` begins with.
static int append_value(dsc_buffer *b, const char *hole, const cli_engine_choice *x, dsc_error *err)
{
    const dsc_drafter_type *d = x->config->drafter;
    const size_t n = strcspn(hole, "+~>");
    char name[64], choice[64], real[DSC_NUMBER_TEXT];
    snprintf(name, sizeof name, "%.*s", (int)n, hole);
    if (strcmp(name, "sampling") == 0)
        return dsc_buffer_puts(b, vllm_sampling(x->rule), err);
    const dsc_option *o = dsc_option_find(d->option, d->option_count, name);
    assert(o);
    if (o->kind == DSC_OPTION_CHOICE) {
        dsc_option_text(o, integer(x->config, name), choice, sizeof choice);
        return dsc_buffer_puts(b, choice, err);
    }
    if (o->kind != DSC_OPTION_REAL)
        return dsc_buffer_printf(b, err, "%" PRId64,
                                 integer(x->config, name) + (hole[n] == '+') - (hole[n] == '~'));
    dsc_number_text(x->config->real[o - d->option], real);
    return dsc_buffer_puts(b, real, err);
}

static int print(dsc_buffer *b, const form *f, const cli_engine_choice *x, dsc_error *err)
{
    const char *text = f->text;
    int rc = DSC_OK;
    for (const char *hole; !rc && (hole = strchr(text, '<')); text = strchr(hole, '>') + 1) {
        rc = dsc_buffer_append(b, text, (size_t)(hole - text), err);
        rc = rc ?: append_value(b, hole + 1, x, err);
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
static int vllm_schedule(dsc_buffer *b, cli_draft_kind kind, const cli_engine_choice *choice,
                         size_t choices, dsc_error *err)
{
    static const char *const method[CLI_DRAFT_KIND_COUNT] = {"draft_model", "eagle", "eagle3",
                                                             "mtp", "medusa"};
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
        rc = dsc_buffer_printf(b, err,
                               VLLM "\"%s\", %s\"num_speculative_tokens\": %" PRId64
                                    "%s, \"num_speculative_tokens_per_batch_size\": [%s]}'\n",
                               method[kind], kind == CLI_DRAFT_MTP ? "" : VLLM_DRAFT, most,
                               vllm_sampling(rule), ranges.data);
    dsc_buffer_fini(&ranges);
    return rc;
}

// Tiers are for EAGLE heads; a key is the first batch size of its range.
static int sglang_tiers(dsc_buffer *b, const cli_engine_choice *choice, size_t choices,
                        dsc_error *err)
{
    int64_t from = 1;
    int rc = dsc_buffer_puts(b,
                             "# all of them at once: "
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

static const form *find(const cli_engine_use *use, const dsc_drafter_type *drafter)
{
    for (size_t f = 0; f < FORMS; f++)
        if (forms[f].engine == use->engine && forms[f].drafter == drafter &&
            (!drafter->needs_draft || forms[f].kind == use->kind))
            return &forms[f];
    return NULL;
}

bool cli_engine_has(const cli_engine_use *use, const dsc_drafter_type *drafter)
{
    return find(use, drafter) != NULL;
}

const char *cli_engine_semantics(const cli_engine_use *use)
{
    const form *f = find(use, &dsc_drafter_ngram);
    return f ? f->semantics : NULL;
}

// Returns whether the n-grams are looked up as the engine does.
static bool same_semantics(const form *f, const dsc_config *c)
{
    char tuned[32];
    const dsc_option *o =
        f->semantics ? dsc_option_find(c->drafter->option, c->drafter->option_count, "semantics")
                     : NULL;
    if (o)
        dsc_option_text(o, c->parameter[o - c->drafter->option], tuned, sizeof tuned);
    return !o || strcmp(tuned, f->semantics) == 0;
}

// TensorRT-LLM verifies S to K S tokens of a tree of S levels with top-k K (llm_args.py).
static bool fits_trtllm(const dsc_config *c)
{
    const int64_t steps = integer(c, "num-steps"), most = steps * integer(c, "eagle-topk");
    const int64_t drafted = integer(c, "num-draft-tokens") - 1;
    return drafted >= steps && drafted <= most;
}

const char *cli_engine_lacks(const cli_engine_use *use, const dsc_config *config,
                             const dsc_verifier_type *rule)
{
    const form *f = find(use, config->drafter);
    if (!f)
        return "it has no such method";
    for (size_t i = 0; i < sizeof f->needs / sizeof *f->needs && f->needs[i].option; i++)
        if (!has_value(config, f->needs[i].option, f->needs[i].value))
            return f->lacks;
    if (use->engine == CLI_TRTLLM && config->drafter == &dsc_drafter_dynamic_tree &&
        !fits_trtllm(config))
        return "its max_total_draft_tokens is from --num-steps to --num-steps x --eagle-topk";
    if (!same_semantics(f, config))
        return "it looks n-grams up in another way (--semantics)";
    if (rule->greedy || rule == &dsc_verifier_rejection)
        return NULL;
    // SGLang accepts the target's sample if it is among the children, as specinfer does for a tree
    // that is not sampled.
    const bool tree = config->drafter == &dsc_drafter_dynamic_tree && use->engine == CLI_SGLANG;
    return (rule == &dsc_verifier_block && use->engine == CLI_VLLM) ||
                   (rule == &dsc_verifier_specinfer && tree)
               ? NULL
               : "it has no such rule";
}

int cli_engine_methods(dsc_buffer *out, const cli_engine_use *use, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t f = 0; f < FORMS && !rc; f++)
        if (forms[f].drafter != &dsc_drafter_none && find(use, forms[f].drafter) == &forms[f])
            rc = dsc_buffer_printf(out, err, "%s%s", out->length ? ", " : "",
                                   forms[f].drafter->name);
    return rc;
}

int cli_engine_check(const cli_engine_use *use, const dsc_drafter_type *const *method,
                     size_t methods, dsc_error *err)
{
    for (size_t m = 0; m < methods; m++)
        if (cli_engine_has(use, method[m]))
            return DSC_OK;
    dsc_buffer has = {0};
    int rc = cli_engine_methods(&has, use, err);
    if (!rc)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--engine %s: the engine supports none of the methods; it supports %s",
                      cli_engine_word[use->engine], has.data);
    dsc_buffer_fini(&has);
    return rc;
}

// A chain of no tokens is no speculation.
static bool drafts(const dsc_config *c)
{
    const bool chain =
        c && (c->drafter == &dsc_drafter_draft_model || c->drafter == &dsc_drafter_sa_draft_model);
    return c && c->drafter != &dsc_drafter_none &&
           (!chain || integer(c, "num-speculative-tokens") > 0);
}

// Whether two choices have the same settings.
static bool same(const cli_engine_choice *a, const cli_engine_choice *b)
{
    const dsc_config *x = a->config, *y = b->config;
    if (!drafts(x) || !drafts(y))
        return !drafts(x) && !drafts(y);
    return x->drafter == y->drafter && a->rule == b->rule &&
           !memcmp(x->parameter, y->parameter, sizeof x->parameter) &&
           !memcmp(x->real, y->real, sizeof x->real);
}

int cli_engine_lines(dsc_buffer *out, const cli_engine_use *use, const cli_engine_choice *choice,
                     size_t choices, dsc_error *err)
{
    bool chains = choices > 1, any = false;
    int rc = DSC_OK;
    for (size_t i = 0; i < choices; i++) {
        const bool on = drafts(choice[i].config);
        chains &= !on || choice[i].config->drafter == &dsc_drafter_draft_model;
        any |= on;
    }
    if (use->engine == CLI_VLLM && chains && any)
        return vllm_schedule(out, use->kind, choice, choices, err);
    for (size_t i = 0; i < choices && !rc; i++) {
        if (i + 1 < choices && same(&choice[i], &choice[i + 1]))
            continue;
        if (choices > 1)
            rc = dsc_buffer_printf(out, err, "# batches of up to %" PRId64 ":\n", choice[i].batch);
        if (!rc)
            rc = drafts(choice[i].config)
                     ? print(out, find(use, choice[i].config->drafter), &choice[i], err)
                     : dsc_buffer_puts(out, NO_SPECULATION, err);
    }
    const bool head = use->kind == CLI_DRAFT_EAGLE || use->kind == CLI_DRAFT_EAGLE3;
    if (!rc && use->engine == CLI_SGLANG && head && chains && any)
        rc = sglang_tiers(out, choice, choices, err);
    return rc;
}

cli_draft_kind cli_tune_draft_kind(const dsc_option_value *given, bool head)
{
    return head && !given->given ? CLI_DRAFT_EAGLE : (cli_draft_kind)given->integer;
}
