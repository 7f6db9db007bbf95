// SPDX-License-Identifier: Apache-2.0
// Methods whose draft length is chosen before each step by a controller (sim/controller.h) from
// what earlier steps accepted. The drafts are those of another method, the base, with that length
// as its num-speculative-tokens: a draft model, ngram, suffix, or recorded accept lengths.
//
// A step whose base drafts nothing, because there is no match, tells the controller nothing. UCB's
// reward is the number of emitted tokens by the cost of the step in target calls, 1 + draft-cost *
// passes of the draft model + verify-cost * draft tokens; without costs it is BanditSpec's reward.
//
// The length depends on earlier steps only, so every draft is one that the base could have drafted.
// The controller `oracle` is an upper bound for greedy verification: it cuts the longest draft
// after the last token that the target accepts.
#include "sim/controller.h"
#include "sim/drafter.h"
#include "sim/loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CONTROLLER, CANDIDATES, INITIAL, ALPHA, INTERVAL, WARMUP, DOWN, UP };
enum { SEMANTICS = UP + 1, WEIGHT, DELTA, DRAFT_COST, VERIFY_COST, HISTORY, BASE_OPTIONS };
enum { EMA, UCB, ORACLE };
enum { REQUEST, RUN };
enum { LONGEST = 1024 };
// clang-format off
#define CONTROLLER_OPTIONS                                                                         \
    {.name = "controller", .kind = DSC_OPTION_CHOICE, .choices = "ema|ucb|oracle",                 \
     .initial = "ema",                                                                             \
     .help = "ema: SGLang's moving average of accepted tokens; ucb: upper confidence bounds of "   \
             "tokens by cost (BanditSpec); oracle: the tokens that will be accepted, at most the " \
             "longest candidate (upper bound)"},                                                   \
    {.name = "candidate-steps", .kind = DSC_OPTION_TEXT, .metavar = "K/K/...", .list = true,       \
     .initial = "1/3/5/7",                                                                         \
     .help = "draft lengths to choose from, at most 16; 0: a step without a draft"},               \
    {.name = "initial-steps", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "-1", .min = -1,  \
     .max = LONGEST,                                                                               \
     .help = "first draft length of ema; the middle candidate if it is none of them"},             \
    {.name = "ema-alpha", .kind = DSC_OPTION_REAL, .metavar = "A", .initial = "0.2", .least = 0,   \
     .most = 1, .help = "weight of the last step in the average of ema"},                          \
    {.name = "update-interval", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "5", .min = 1,  \
     .max = 1000000, .help = "steps between two updates of the draft length by ema"},              \
    {.name = "warmup-batches", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "10", .min = 0,  \
     .max = 1000000, .help = "steps before the first update of the draft length by ema"},          \
    {.name = "down-hysteresis", .kind = DSC_OPTION_REAL, .metavar = "H", .initial = "-0.25",       \
     .least = -1000, .most = 1000,                                                                 \
     .help = "added to the average below which ema shortens the draft"},                           \
    {.name = "up-hysteresis", .kind = DSC_OPTION_REAL, .metavar = "H", .initial = "0",             \
     .least = -1000, .most = 1000,                                                                 \
     .help = "added to the average above which ema lengthens the draft"},                          \
    {.name = "ucb-semantics", .kind = DSC_OPTION_CHOICE, .choices = "paper|code|ucb1",             \
     .initial = "paper",                                                                           \
     .help = "confidence radius of ucb: paper: that of UCBSpec; code: that of its program, which " \
             "is equal for all candidates; ucb1: that of UCB1"},                                   \
    {.name = "exploration-weight", .kind = DSC_OPTION_REAL, .metavar = "W", .initial = "6",        \
     .least = 0, .most = 1000, .help = "factor of the logarithm in the radius of code and ucb1"},  \
    {.name = "delta", .kind = DSC_OPTION_REAL, .metavar = "D", .initial = "0.1", .least = 1e-9,    \
     .most = 1, .help = "confidence parameter of the radius of paper"},                            \
    {.name = "draft-cost", .kind = DSC_OPTION_REAL, .metavar = "C", .initial = "0.05",             \
     .least = 0, .most = 1000,                                                                     \
     .help = "cost of a forward pass of the draft model in the reward of ucb, in target calls"},   \
    {.name = "verify-cost", .kind = DSC_OPTION_REAL, .metavar = "C", .initial = "0", .least = 0,   \
     .most = 1000,                                                                                 \
     .help = "cost of the verification of a draft token in the reward of ucb, in target calls"},   \
    {.name = "history", .kind = DSC_OPTION_CHOICE, .choices = "request|run",                       \
     .initial = "request",                                                                         \
     .help = "request: the controller starts anew with each request; run: it continues"}
static const dsc_option options[] = {CONTROLLER_OPTIONS};
static const dsc_option base_options[] = {
    CONTROLLER_OPTIONS,
    {.name = "base-options", .kind = DSC_OPTION_TEXT, .metavar = "NAME=VALUE/...", .list = true,
     .help = "options of the method that drafts, without its draft length; default: its defaults"},
};
// clang-format on

// --- a configuration -----------------------------------------------------------------------------

typedef struct adaptive {
    dsc_config base; // its draft length is the longest candidate
    size_t length;   // index of its option num-speculative-tokens
    dsc_candidates candidates;
    int32_t initial; // index
    char *text;      // of the base's options
} adaptive;

static const dsc_drafter_type *base_of(const dsc_drafter_type *type)
{
    return type == &dsc_drafter_adaptive_ngram      ? &dsc_drafter_ngram
           : type == &dsc_drafter_adaptive_suffix   ? &dsc_drafter_suffix
           : type == &dsc_drafter_adaptive_recorded ? &dsc_drafter_recorded
                                                    : &dsc_drafter_draft_model;
}

static int read_candidates(const dsc_config *config, adaptive *a, dsc_error *err)
{
    const char *given = config->text[CANDIDATES], *text = given;
    if (!dsc_candidates_read(&a->candidates, 0, LONGEST, &text) || *text)
        return dsc_fail(
            err, DSC_EUSAGE,
            "--candidate-steps %.60s: it must be 1 to %d draft lengths from 0 to %d, as "
            "1/3/5/7",
            given, DSC_MOST_CANDIDATES, LONGEST);
    if (!a->candidates.k[a->candidates.count - 1])
        return dsc_fail(err, DSC_EUSAGE,
                        "--candidate-steps %.60s: it must have a draft length above 0, as 0/1/3",
                        given);
    a->initial = a->candidates.count / 2;
    for (int32_t i = 0; i < a->candidates.count; i++)
        if (a->candidates.k[i] == config->parameter[INITIAL])
            a->initial = i;
    return DSC_OK;
}

static int set_base_option(adaptive *a, const char *name, const char *value, dsc_error *err)
{
    const dsc_drafter_type *base = a->base.drafter;
    const dsc_option *option = dsc_option_find(base->option, base->option_count, name);
    if (!value)
        return dsc_fail(err, DSC_EUSAGE, "'%.60s' is not NAME=VALUE", name);
    if (!option)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s has no option '%.60s' (draftscope sim --help --method %s lists "
                        "its options)",
                        base->name, name, base->name);
    if (option == &base->option[a->length])
        return dsc_fail(err, DSC_EUSAGE,
                        "the controller sets %.60s; --candidate-steps lists its values", name);
    return dsc_config_set(&a->base, name, value, err);
}

// "name=value/name=value"; the base's configuration keeps pointers into the copy.
static int set_base_options(adaptive *a, const char *given, dsc_error *err)
{
    const size_t size = strlen(given) + 1;
    int rc = dsc_new(&a->text, size, err);
    if (rc)
        return rc;
    memcpy(a->text, given, size);
    for (char *name = a->text, *next; name && *name && !rc; name = next) {
        next = strchr(name, '/');
        if (next)
            *next++ = '\0';
        char *value = strchr(name, '=');
        if (value)
            *value++ = '\0';
        rc = set_base_option(a, name, value, err);
    }
    return rc ? dsc_error_prefix(err, rc, "--base-options") : DSC_OK;
}

static int prepare_base(const dsc_config *config, adaptive *a, dsc_error *err)
{
    const dsc_drafter_type *base = base_of(config->drafter);
    const dsc_option *length =
        dsc_option_find(base->option, base->option_count, "num-speculative-tokens");
    dsc_config_init(&a->base, base);
    a->length = (size_t)(length - base->option);
    a->base.parameter[a->length] = a->candidates.k[a->candidates.count - 1];
    int rc = DSC_OK;
    if (config->drafter->option_count > BASE_OPTIONS && config->text[BASE_OPTIONS])
        rc = set_base_options(a, config->text[BASE_OPTIONS], err);
    if (!rc)
        rc = dsc_config_prepare(&a->base, err);
    if (!rc && ((base->is_chain && !base->is_chain(&a->base)) ||
                (base->is_bound && base->is_bound(&a->base))))
        rc = dsc_fail(err, DSC_EUSAGE,
                      "method %s: the drafts of method %s with --base-options %.60s are not chains "
                      "of the chosen length; leave out branches and policy",
                      config->drafter->name, base->name, config->text[BASE_OPTIONS]);
    return rc;
}

static void release(void *prepared)
{
    adaptive *a = prepared;
    if (!a)
        return;
    dsc_config_fini(&a->base);
    free(a->text);
    free(a);
}

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    adaptive *a;
    int rc = dsc_new(&a, 1, err);
    *prepared = NULL;
    if (rc)
        return rc;
    *a = (adaptive){0};
    rc = read_candidates(config, a, err);
    if (!rc)
        rc = prepare_base(config, a, err);
    if (rc)
        release(a);
    else
        *prepared = a;
    return rc;
}

static const adaptive *prepared_of(const dsc_config *config)
{
    return config->prepared;
}

static int64_t limit(const dsc_config *config)
{
    return dsc_config_limit(&prepared_of(config)->base);
}

static int64_t width(const dsc_config *config)
{
    return dsc_config_width(&prepared_of(config)->base);
}

static int view(const dsc_config *config, const dsc_trace_info *trace, dsc_request *q,
                dsc_arena *arena, dsc_error *err)
{
    const dsc_config *base = &prepared_of(config)->base;
    return base->drafter->view(base, trace, q, arena, err);
}

static bool is_bound(const dsc_config *config)
{
    return config->parameter[CONTROLLER] == ORACLE;
}

static bool uses_history(const dsc_config *config)
{
    return config->parameter[HISTORY] == RUN;
}

// --- a request -----------------------------------------------------------------------------------

typedef struct controller {
    dsc_ema ema;
    dsc_ucb ucb;
} controller;

typedef struct state {
    dsc_drafter_input in;                  // of the base
    int64_t parameter[DSC_MAX_PARAMETERS]; // of the base, with the length of the step
    const dsc_config *config;
    const adaptive *a;
    void *base; // its state
    controller *c;
    int32_t chosen; // index of the length of the step
} state;

static void begin_controller(state *s)
{
    const int64_t *p = s->config->parameter;
    const double *x = s->config->real;
    s->c->ema = (dsc_ema){.ema_alpha = x[ALPHA],
                          .update_interval = (double)p[INTERVAL],
                          .warmup_batches = (double)p[WARMUP],
                          .down_hysteresis = x[DOWN],
                          .up_hysteresis = x[UP]};
    s->c->ucb = (dsc_ucb){
        .radius = (dsc_ucb_radius)p[SEMANTICS], .delta = x[DELTA], .exploration_weight = x[WEIGHT]};
    dsc_ema_begin(&s->c->ema, &s->a->candidates, s->a->initial);
    dsc_ucb_begin(&s->c->ucb);
}

// The controller of the request, or that of the run.
static int find_controller(state *s, dsc_history *history, dsc_error *err)
{
    if (history && history->state) {
        s->c = history->state;
        return DSC_OK;
    }
    const int rc = dsc_arena_new(history ? &history->arena : s->in.arena, &s->c, 1, err);
    if (rc)
        return rc;
    begin_controller(s);
    if (history)
        history->state = s->c;
    return DSC_OK;
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const adaptive *a = prepared_of(in->config);
    *s = (state){.in = *in, .config = in->config, .a = a};
    memcpy(s->parameter, a->base.parameter, sizeof s->parameter);
    s->in.config = &a->base;
    s->in.parameter = s->parameter;
    s->in.history = NULL;
    if (in->config->parameter[CONTROLLER] == ORACLE && in->kind != DSC_DRAFT_TOPK)
        return dsc_fail(err, DSC_EUSAGE,
                        "--controller oracle: what a rule that samples will accept is not known; "
                        "use --rule greedy");
    int rc = find_controller(s, uses_history(in->config) ? in->history : NULL, err);
    if (!rc)
        rc = dsc_arena_alloc(in->arena, &s->base, a->base.drafter->state_size, 1, err);
    return rc ? rc : dsc_loop_begin(s->base, &s->in, err);
}

// Cuts the draft to the tokens that greedy verification accepts, as if the base had drafted no
// others. A token that ends the output is the target's own (sim/verify/greedy.c).
static int cut_to_accepted(const state *s, dsc_draft *draft, dsc_error *err)
{
    dsc_model *target = s->in.models->target;
    const bool per_token = draft->draft_calls == (int64_t)draft->count;
    size_t n = 0;
    dsc_next next;
    int rc = target->type->score(target, draft, err);
    for (; n < draft->count && !rc; n++) {
        rc = target->type->next(target, (int32_t)n - 1, &next, err);
        if (rc || next.ends || next.token != draft->token[n])
            break;
    }
    draft->count = draft->proposed = n;
    draft->started = n > 0;
    if (per_token || !n)
        draft->draft_calls = draft->draft_call_tokens = (int64_t)n;
    return rc;
}

static int32_t choose(const state *s)
{
    switch (s->config->parameter[CONTROLLER]) {
    case UCB: return dsc_ucb_choose(&s->c->ucb, &s->a->candidates);
    case ORACLE: return s->a->candidates.count - 1;
    default: return s->c->ema.current;
    }
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    s->chosen = choose(s);
    const int32_t k = s->a->candidates.k[s->chosen];
    s->parameter[s->a->length] = k;
    if (!k)
        return DSC_OK;
    const int rc = s->a->base.drafter->propose(s->base, output, length, draft, err);
    return rc || s->config->parameter[CONTROLLER] != ORACLE ? rc : cut_to_accepted(s, draft, err);
}

static int observe(void *memory, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err)
{
    state *s = memory;
    const double *x = s->config->real;
    (void)err;
    const bool is_oracle = s->config->parameter[CONTROLLER] == ORACLE;
    if (is_oracle || (!draft->proposed && s->a->candidates.k[s->chosen]))
        return DSC_OK;
    const double cost =
        1 + x[DRAFT_COST] * (double)draft->draft_calls + x[VERIFY_COST] * (double)draft->proposed;
    if (s->config->parameter[CONTROLLER] == UCB)
        dsc_ucb_update(&s->c->ucb, s->chosen, (double)verdict->count / cost);
    else
        dsc_ema_update(&s->c->ema, &s->a->candidates, (double)verdict->accepted);
    return DSC_OK;
}

// clang-format off
#define SHARED(OPTIONS)                                                                            \
    .state_size = sizeof(state), .option = OPTIONS,                                                \
    .option_count = sizeof OPTIONS / sizeof *OPTIONS, .uses_history = uses_history,                \
    .prepare = prepare, .release = release, .limit = limit, .width = width, .is_bound = is_bound,  \
    .begin = begin, .propose = propose, .observe = observe
// clang-format on

const dsc_drafter_type dsc_drafter_adaptive = {
    .name = "adaptive",
    .summary = "a draft model whose draft length a controller adapts (SGLang's EMA, BanditSpec)",
    .source = "Hou et al. 2025, BanditSpec, arXiv 2505.15141 (ucb); SGLang (ema), no paper",
    .engines = "SGLang --speculative-adaptive (ema)",
    .recording = "draft_rank or draft_argmax",
    .needs_draft = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    SHARED(options),
};

const dsc_drafter_type dsc_drafter_adaptive_ngram = {
    .name = "adaptive-ngram",
    .summary = "ngram with a draft length that a controller adapts",
    .source = "Hou et al. 2025, BanditSpec, arXiv 2505.15141 (ucb); SGLang (ema), no paper",
    .engines = "none",
    .recording = "token ids",
    SHARED(base_options),
};

const dsc_drafter_type dsc_drafter_adaptive_suffix = {
    .name = "adaptive-suffix",
    .summary = "suffix with a largest draft length that a controller adapts",
    .source = "Hou et al. 2025, BanditSpec, arXiv 2505.15141 (ucb); SGLang (ema), no paper",
    .engines = "none",
    .recording = "token ids",
    SHARED(base_options),
};

const dsc_drafter_type dsc_drafter_adaptive_recorded = {
    .name = "adaptive-recorded",
    .summary = "recorded accept lengths with a draft length that a controller adapts",
    .source = "Hou et al. 2025, BanditSpec, arXiv 2505.15141 (ucb); SGLang (ema), no paper",
    .engines = "none",
    .recording = "accept lengths at every position",
    .sees_output = true,
    .view = view,
    SHARED(base_options),
};
