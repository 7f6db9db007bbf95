// SPDX-License-Identifier: Apache-2.0
// Ouroboros (Zhao et al. 2024, arXiv 2402.13720): phrases, remembered by the token that they
// follow, make the draft model faster and its drafts longer.
//
//   section 3.1  the draft model writes by lookahead decoding (window.h): several tokens a pass;
//   section 3.2  K phrases that follow the draft's last token are tried behind it, all in the same
//                pass of the target;
//   section 3.3  what the target says instead of a rejected draft, where draft and target agree,
//                gives phrases, and it corrects the phrases tried in vain;
//   section 3.4  later requests find the phrases of earlier ones.
// Each part can be switched off; without any of them it is `chain`.
//
// `--semantics code` is the authors' code (which is greedy only): of a phrase that is right to its
// end N - 2 tokens are taken, N - 1 with the target's own, where eq. (9) accepts it all and one
// more; and all phrases tried are corrected, where the paper leaves the best one alone. Drafts are
// cut to gamma tokens in both.
#include "sim/draft/draft_next.h"
#include "sim/draft/window.h"

#include <string.h>

enum { LENGTH, WINDOW, LEVEL, PHRASES, LOOKAHEAD, VERIFICATION, REUSE, SEMANTICS };
enum { ON, OFF };
enum { SEMANTICS_PAPER, SEMANTICS_CODE };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "4", .min = 1, .max = 100000,
     .help = "number of tokens that the draft model drafts per step"},
    {.name = "window", .kind = DSC_OPTION_INT, .metavar = "W", .initial = "20", .min = 1,
     .max = 4096, .help = "positions ahead that each pass of the draft model works on; also the "
                          "most phrases kept of a token"},
    {.name = "level", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "7", .min = 2, .max = 64,
     .help = "n of the n-grams: a phrase is a token and the N - 1 that follow it"},
    {.name = "phrases", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "3", .min = 0,
     .max = 4096, .help = "phrases tried behind the draft, the newest of its last token; 0: none"},
    {.name = "draft-lookahead", .kind = DSC_OPTION_CHOICE, .choices = "on|off", .initial = "on",
     .help = "the draft model writes by lookahead decoding; off: a pass for each token"},
    {.name = "from-verification", .kind = DSC_OPTION_CHOICE, .choices = "on|off", .initial = "on",
     .help = "phrases also from what the target says to rejected drafts and tried phrases"},
    {.name = "reuse", .kind = DSC_OPTION_CHOICE, .choices = "on|off", .initial = "on",
     .help = "on: phrases stay from request to request, in the order of the run, which takes one "
             "thread; off: each request begins with none"},
    {.name = "semantics", .kind = DSC_OPTION_CHOICE, .choices = "paper|code", .initial = "paper",
     .help = "paper: a whole phrase can be accepted; code: one token less, and the best phrase "
             "tried is corrected with the others"},
};
// clang-format on

enum { MATCHED };
static const dsc_extra extra[] = {
    {"num_matched_tokens",
     "#Match: tokens of the draft model (phrases not counted) that the target would say after the "
     "draft so far, accepted or not"},
};

typedef struct state {
    dsc_drafter_input in;
    dsc_phrase_pool *pool;
    dsc_window window;
    dsc_phrase **tried; // [suffixes] phrases behind the draft
    int32_t *token;     // [N] of a phrase
    int32_t *right;     // [gamma + 1] what the target says at each token of the draft, and after it
    int64_t length, suffixes;
} state;

// Tokens of a phrase that can be accepted at once.
static int64_t usable(const int64_t *parameter)
{
    return parameter[LEVEL] - (parameter[SEMANTICS] == SEMANTICS_CODE ? 2 : 1);
}

static int64_t limit(const dsc_config *config)
{
    const int64_t *p = config->parameter;
    return p[LENGTH] + (p[PHRASES] ? usable(p) : 0);
}

static int64_t width(const dsc_config *config)
{
    const int64_t *p = config->parameter;
    return 1 + p[LENGTH] + p[PHRASES] * (p[LEVEL] - 1);
}

// The draft, and behind it what the draft model looks at: the phrases of a token, as many as the
// pool keeps, and the window.
static int64_t draft_width(const dsc_config *config)
{
    const int64_t *p = config->parameter;
    return 1 + p[LENGTH] + p[WINDOW] * (p[LEVEL] - 1) + dsc_window_nodes(p[WINDOW], p[LEVEL]);
}

static bool uses_history(const dsc_config *config)
{
    return config->parameter[REUSE] == ON;
}

// --- a request -----------------------------------------------------------------------------------

// The pool of the request, or that of the run.
static int find_pool(state *s, dsc_error *err)
{
    const int64_t *p = s->in.parameter;
    dsc_history *history = p[REUSE] == ON ? s->in.history : NULL;
    dsc_arena *arena = history ? &history->arena : s->in.arena;
    void *pool;
    if (history && history->state) {
        s->pool = history->state;
        return DSC_OK;
    }
    int rc = dsc_arena_alloc(arena, &pool, 1, sizeof *s->pool, err);
    if (!rc)
        rc = dsc_phrase_pool_init(pool, arena, p[LEVEL] - 1, p[WINDOW], err);
    if (rc)
        return rc;
    s->pool = pool;
    if (history)
        history->state = pool;
    return DSC_OK;
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const int64_t *p = in->parameter;
    void *tried, *token, *right;
    *s = (state){.in = *in};
    int rc = find_pool(s, err);
    if (!rc)
        rc = dsc_window_begin(&s->window, p[WINDOW], p[LEVEL], in, err);
    if (!rc)
        rc = dsc_arena_alloc(in->arena, &tried, (size_t)p[PHRASES], sizeof *s->tried, err);
    if (!rc)
        rc = dsc_arena_alloc(in->arena, &token, (size_t)p[LEVEL], sizeof *s->token, err);
    if (!rc)
        rc = dsc_arena_alloc(in->arena, &right, (size_t)p[LENGTH] + 1, sizeof *s->right, err);
    if (rc)
        return rc;
    s->tried = tried;
    s->token = token;
    s->right = right;
    return DSC_OK;
}

// --- drafting ------------------------------------------------------------------------------------

// How far the phrase at nodes [node, node + most) is what `model` says, `first` being what it says
// before them. said[0, result]: those tokens and one more, the model's.
static int follow(dsc_model *model, const dsc_draft *d, int32_t first, int32_t node, int64_t most,
                  int32_t *said, int64_t *agree, dsc_error *err)
{
    int64_t n = 0;
    said[0] = first;
    while (n < most && d->token[node + n] == said[n]) {
        dsc_next next;
        int rc = model->type->next(model, node + (int32_t)n, &next, err);
        if (rc)
            return rc;
        said[++n] = next.token;
    }
    *agree = n;
    return DSC_OK;
}

// The tokens that a pass of the draft model gives: the longest of the guesses, which begin at node
// `base`, and its own next token. s->token[0, *agree]
static int take_guess(state *s, const dsc_draft *d, int32_t tip, int32_t base, int64_t guesses,
                      int64_t *agree, dsc_error *err)
{
    dsc_model *m = s->in.models->draft;
    int64_t best = -1, n;
    dsc_next first;
    int rc = m->type->next(m, tip, &first, err);
    *agree = 0;
    s->token[0] = rc ? 0 : first.token;
    for (int64_t g = 0; g < guesses && !rc; g++) {
        int32_t node = base + (int32_t)(g * s->pool->length);
        rc = follow(m, d, first.token, node, usable(s->in.parameter), s->token, &n, err);
        if (!rc && n > *agree) {
            *agree = n;
            best = node;
        }
    }
    if (!rc && best >= 0) // what is in s->token may be of a later guess
        rc = follow(m, d, first.token, (int32_t)best, *agree, s->token, &n, err);
    return rc;
}

static int32_t current_token(const state *s, const int32_t *output, int64_t length,
                             const dsc_draft *d)
{
    dsc_token_view prompt = s->in.request->prompt;
    return d->count       ? d->token[d->count - 1]
           : length       ? output[length - 1]
           : prompt.count ? prompt.id[prompt.count - 1]
                          : -1;
}

// A pass of the draft model over the pool's phrases of the current token and the window, which are
// taken off the draft again. Appends the tokens that it gives, up to gamma.
static int look_ahead(state *s, int32_t current, dsc_draft *d, bool *ends, dsc_error *err)
{
    int32_t tip = (int32_t)d->count - 1;
    int64_t guesses = 0, agree = 0;
    const dsc_phrase_list *list =
        dsc_window_full(&s->window) ? dsc_phrase_pool_find(s->pool, current) : NULL;
    int rc = DSC_OK;
    for (const dsc_phrase *x = list ? list->oldest : NULL; x && !rc; x = x->newer, guesses++)
        rc = dsc_draft_append_scored(d, tip, x->token, (size_t)s->pool->length, err);
    if (!rc)
        rc = dsc_window_append(&s->window, tip, d, err);
    if (!rc)
        rc = dsc_draft_next_score(&s->in, (int64_t)d->count - tip, d, err);
    if (!rc)
        rc = take_guess(s, d, tip, tip + 1, guesses, &agree, err);
    if (!rc)
        rc = dsc_window_step(&s->window, s->in.models->draft, current, s->pool, err);
    d->count = d->proposed;
    for (int64_t i = 0; i <= agree && !*ends && !rc; i++) {
        if ((int64_t)d->count == s->in.parameter[LENGTH])
            break;
        rc = dsc_draft_append_chain(d, (int32_t)d->count - 1, &s->token[i], 1, err);
        *ends = dsc_model_ends(s->in.models->target, (int64_t)d->count - 1, s->token[i]);
    }
    return rc;
}

// The newest phrases of the draft's last token behind it. The code has the last token of each
// verified and ignores the outcome.
static int append_phrases(state *s, dsc_draft *d, dsc_error *err)
{
    int32_t tip = (int32_t)d->count - 1;
    const dsc_phrase_list *list = dsc_phrase_pool_find(s->pool, d->token[tip]);
    int64_t n = usable(s->in.parameter), most = s->in.parameter[PHRASES];
    int rc = DSC_OK;
    dsc_phrase *x = list ? list->newest : NULL;
    for (int64_t k = 1; x && k < most && x->older; k++)
        x = x->older;
    for (; x && most && !rc; x = x->newer) {
        s->tried[s->suffixes++] = x;
        rc = dsc_draft_append_chain(d, tip, x->token, (size_t)n, err);
    }
    for (int64_t k = 1; k <= s->suffixes && n < s->pool->length && !rc; k++)
        rc = dsc_draft_append_scored(d, n ? tip + (int32_t)(k * n) : tip,
                                     s->tried[k - 1]->token + n, 1, err);
    return rc;
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    int rc = DSC_OK;
    bool ends = false;
    draft->started = true;
    while ((int64_t)draft->count < s->in.parameter[LENGTH] && !ends && !rc) {
        if (s->in.parameter[LOOKAHEAD] == ON)
            rc = look_ahead(s, current_token(s, output, length, draft), draft, &ends, err);
        else
            rc = dsc_draft_next(&s->in, length, (int32_t)draft->count - 1, draft, &ends, err);
    }
    s->length = (int64_t)draft->count;
    s->suffixes = 0;
    return rc || ends ? rc : append_phrases(s, draft, err);
}

// --- learning from the target --------------------------------------------------------------------

// Where the target, reading the rejected part of the draft, goes on as the draft does, its words
// are a phrase: behind draft token j come what the target says after it and after each further
// token that it would have said itself.
static int keep_rejected(state *s, const dsc_draft *d, int64_t accepted, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t j = accepted; j < s->length && !rc; j++) {
        int64_t n = 1;
        while (n < s->pool->length && j + n < s->length && d->token[j + n] == s->right[j + n])
            n++;
        if (n == s->pool->length)
            rc = dsc_phrase_pool_add(s->pool, d->token[j], &s->right[j + 1], err);
    }
    return rc;
}

// Overwrites the phrases tried by what the target said at their tokens. It may make two alike.
static int correct_tried(state *s, const dsc_draft *d, dsc_error *err)
{
    dsc_model *target = s->in.models->target;
    int64_t n = usable(s->in.parameter), most = 0, agree, best = -1;
    int32_t first = s->right[s->length];
    int rc = DSC_OK;
    for (int64_t k = 0; k < s->suffixes && s->in.parameter[SEMANTICS] == SEMANTICS_PAPER && !rc;
         k++) {
        rc = follow(target, d, first, (int32_t)(s->length + k * n), n, s->token, &agree, err);
        if (!rc && agree > most) {
            most = agree;
            best = k;
        }
    }
    for (int64_t k = 0; k < s->suffixes && !rc; k++) {
        int32_t *token = s->tried[k]->token, node = (int32_t)(s->length + k * n);
        if (k == best)
            continue;
        token[0] = first;
        for (int64_t i = 1; i < s->pool->length && !rc; i++, node++) {
            dsc_next next;
            rc = target->type->next(target, node, &next, err);
            if (!rc)
                token[i] = next.token;
        }
    }
    return rc;
}

static int observe(void *memory, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err)
{
    state *s = memory;
    dsc_model *target = s->in.models->target;
    int64_t accepted = (int64_t)verdict->accepted;
    for (int64_t i = 0; i <= s->length; i++) {
        dsc_next next;
        int rc = target->type->next(target, (int32_t)i - 1, &next, err);
        if (rc)
            return rc;
        s->right[i] = next.token;
        s->in.extra[MATCHED] += i < s->length && draft->token[i] == next.token;
    }
    if (s->in.parameter[VERIFICATION] == OFF)
        return DSC_OK;
    if (accepted >= s->length)
        return correct_tried(s, draft, err);
    bool ended = verdict->token[accepted] == draft->token[accepted]; // not rejected
    return ended ? DSC_OK : keep_rejected(s, draft, accepted, err);
}

const dsc_drafter_type dsc_drafter_ouroboros = {
    .name = "ouroboros",
    .summary = "a draft model writes phrase by phrase; phrases lengthen its drafts (Ouroboros)",
    .needs_draft = true,
    .asks_target = true,
    .branches = true,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .extra = extra,
    .extra_count = sizeof extra / sizeof *extra,
    .uses_history = uses_history,
    .limit = limit,
    .width = width,
    .draft_width = draft_width,
    .begin = begin,
    .propose = propose,
    .observe = observe,
};
