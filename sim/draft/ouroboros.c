// SPDX-License-Identifier: Apache-2.0
// Ouroboros (Zhao et al. 2024, arXiv 2402.13720): a pool of phrases, found by the token that they
// follow, makes the draft model faster and its drafts longer.
//
//   section 3.1  the draft model runs lookahead decoding (window.h): several tokens per pass;
//   section 3.2  K phrases after the draft's last token are verified in the same pass of the
//   target; section 3.3  the target's argmax tokens along a rejected draft, where draft and target
//   agree,
//                become phrases and correct the phrases that were not accepted;
//   section 3.4  later requests use the phrases of earlier ones.
// Each part can be switched off; without all of them the method is a plain draft-model chain.
//
// `--semantics code` is the authors' code (which is greedy only): it accepts N - 2 tokens of a
// fully correct phrase, N - 1 with the target's own, where eq. (9) accepts the whole phrase and one
// more; and it corrects all tried phrases, where the paper keeps the best one. Both cut drafts to
// gamma tokens.
#include "sim/draft/draft_next.h"
#include "sim/draft/window.h"

#include <string.h>

enum { LENGTH, WINDOW, LEVEL, PHRASES, LOOKAHEAD, VERIFICATION, REUSE, SEMANTICS };
enum { ON, OFF };
enum { SEMANTICS_PAPER, SEMANTICS_CODE };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "4", .min = 1, .max = 100000, .sizes = "2,4,8",
     .help = "number of tokens that the draft model drafts per step"},
    {.name = "window", .kind = DSC_OPTION_INT, .metavar = "W", .initial = "20", .min = 1,
     .max = 4096, .sizes = "2,7,20",
     .help = "positions ahead that each pass of the draft model works on; also the "
             "most phrases kept of a token"},
    {.name = "level", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "7", .min = 2, .max = 64,
     .sizes = "3,7",
     .help = "n of the n-grams: a phrase is a token and the N - 1 that follow it"},
    {.name = "phrases", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "3", .min = 0,
     .max = 4096, .sizes = "0,1,3",
     .help = "number of phrases tried after the draft, the newest of its last token "
             "first; 0: none"},
    {.name = "draft-lookahead", .kind = DSC_OPTION_CHOICE, .choices = "on|off", .initial = "on",
     .sizes = "on,off",
     .help = "the draft model writes by lookahead decoding; off: a pass for each token"},
    {.name = "from-verification", .kind = DSC_OPTION_CHOICE, .choices = "on|off", .initial = "on",
     .help = "collect phrases also from the target's argmax tokens along rejected drafts and along "
             "tried phrases"},
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
     "#Match: tokens of the draft model (phrases not counted) that equal the target's argmax "
     "token there, accepted or not"},
};

typedef struct state {
    dsc_drafter_input in;
    dsc_phrase_pool *pool;
    dsc_window window;
    dsc_phrase **tried; // [suffixes] phrases after the draft
    int32_t *token;     // [N] of a phrase
    int32_t *right;     // [gamma + 1] the target's argmax at each token of the draft and after it
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

// The draft and, after it, the phrases of one token, up to the pool's limit, and the window.
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
    if (history && history->state) {
        s->pool = history->state;
        return DSC_OK;
    }
    int rc = dsc_arena_new(arena, &s->pool, 1, err);
    if (!rc)
        rc = dsc_phrase_pool_init(s->pool, arena, p[LEVEL] - 1, p[WINDOW], err);
    if (!rc && history)
        history->state = s->pool;
    return rc;
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const int64_t *p = in->parameter;
    *s = (state){.in = *in};
    int rc = find_pool(s, err);
    if (!rc)
        rc = dsc_window_begin(&s->window, p[WINDOW], p[LEVEL], in, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->tried, (size_t)p[PHRASES], err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->token, (size_t)p[LEVEL], err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->right, (size_t)p[LENGTH] + 1, err);
    return rc;
}

// --- drafting ------------------------------------------------------------------------------------

// *agree: how many tokens of the phrase at nodes [node, node + most) equal the model's argmax,
// which is `first` before the phrase. argmax[0, *agree]: these tokens and the model's next one.
static int follow(dsc_model *model, const dsc_draft *d, int32_t first, int32_t node, int64_t most,
                  int32_t *argmax, int64_t *agree, dsc_error *err)
{
    int64_t n = 0;
    argmax[0] = first;
    while (n < most && d->token[node + n] == argmax[n]) {
        dsc_next next;
        int rc = model->type->next(model, node + (int32_t)n, &next, err);
        if (rc)
            return rc;
        argmax[++n] = next.token;
    }
    *agree = n;
    return DSC_OK;
}

// The tokens that a pass of the draft model yields, s->token[0, *agree]: the longest correct guess,
// of those that begin at node `base`, and the model's next token.
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
    if (!rc && best >= 0) // s->token may be of a later guess
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

// One pass of the draft model over the pool's phrases after the current token and the window, which
// are removed from the draft again. Appends the tokens that it yields, up to gamma.
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

// Appends the newest phrases after the draft's last token. The code verifies the last token of each
// too and ignores the result.
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

// Where the target's argmax agrees with the rejected part of the draft, the argmax tokens become a
// phrase: the target's tokens after draft token j and after each further draft token that it agrees
// with.
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

// Overwrites the tried phrases by the target's argmax at their tokens. Two may become equal.
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
    .source = "Zhao et al. 2024, Ouroboros, arXiv 2402.13720",
    .engines = "none",
    .recording = "none",
    .needs_draft = true,
    .needs_off_path = true,
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
