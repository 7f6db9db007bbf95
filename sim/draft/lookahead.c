// SPDX-License-Identifier: Apache-2.0
// Lookahead decoding (Fu et al. 2024, Algorithms 2 to 4): no draft model. In one pass the target
// advances a window of Jacobi iterates (window.h), whose diagonals become phrases of a pool, and
// verifies those phrases of the pool that follow the current token.
//
// `--semantics code` is the authors' greedy decoding: its loop over a guess ends one token early,
// so that N - 2 tokens of a fully correct guess are accepted; and with --pool-from-prompt a step
// adds copies of its last token in place of its tokens. In both, nothing is guessed before the
// window is full, after N - 2 passes, and a sampled target takes the guesses as TOPK drafts (rule
// specinfer). Not modeled: EOS tokens in the window, which the code's sampling replaces at random.
#include "sim/draft/window.h"

#include <string.h>

enum { WINDOW, LEVEL, GUESSES, FROM_PROMPT, SEMANTICS };
enum { OFF, ON };
enum { SEMANTICS_PAPER, SEMANTICS_CODE };
// clang-format off
static const dsc_option options[] = {
    {.name = "window", .kind = DSC_OPTION_INT, .metavar = "W", .initial = "7", .min = 1,
     .max = 4096, .sizes = "1,3,5,7,15",
     .help = "window: positions ahead that each pass of the target works on"},
    {.name = "level", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "5", .min = 2, .max = 64,
     .sizes = "3,4,5",
     .help = "n of the n-grams: a phrase is a token and the N - 1 that follow it"},
    {.name = "guesses", .kind = DSC_OPTION_INT, .metavar = "G", .initial = "7", .min = 0,
     .max = 4096, .sizes = "1,3,7,15",
     .help = "phrases kept of a token, all verified when it is the current one"},
    {.name = "pool-from-prompt", .kind = DSC_OPTION_CHOICE, .choices = "off|on", .initial = "off",
     .help = "also keep the n-grams of the prompt and of the output"},
    {.name = "semantics", .kind = DSC_OPTION_CHOICE, .choices = "paper|code", .initial = "paper",
     .help = "paper: a whole guess and a bonus can be emitted, N tokens; code: N - 1, and "
             "pool-from-prompt remembers a step's last token as often as it emitted tokens"},
};
// clang-format on

typedef struct state {
    dsc_drafter_input in;
    dsc_phrase_pool pool;
    dsc_window window;
    int32_t current; // the last token, or -1
    int32_t *recent; // [level] last tokens, for --pool-from-prompt
    int64_t remembered;
} state;

// Tokens of a guess that can be accepted.
static int64_t usable(const int64_t *parameter)
{
    return parameter[LEVEL] - (parameter[SEMANTICS] == SEMANTICS_CODE ? 2 : 1);
}

static int64_t limit(const dsc_config *config)
{
    return config->parameter[GUESSES] ? usable(config->parameter) : 0;
}

static int64_t width(const dsc_config *config)
{
    const int64_t *p = config->parameter;
    return 1 + dsc_window_nodes(p[WINDOW], p[LEVEL]) + p[GUESSES] * (p[LEVEL] - 1);
}

// Takes one more token of the text; its last N tokens are an n-gram for the pool.
static int remember(state *s, int32_t token, dsc_error *err)
{
    int64_t level = s->in.parameter[LEVEL];
    if (s->remembered == level)
        memmove(s->recent, s->recent + 1, (size_t)(level - 1) * sizeof *s->recent);
    else
        s->remembered++;
    s->recent[s->remembered - 1] = token;
    return s->remembered < level ? DSC_OK
                                 : dsc_phrase_pool_add(&s->pool, s->recent[0], s->recent + 1, err);
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    const int64_t *p = in->parameter;
    dsc_token_view prompt = in->request->prompt;
    *s = (state){.in = *in};
    int rc = dsc_phrase_pool_init(&s->pool, in->arena, p[LEVEL] - 1, p[GUESSES], err);
    if (!rc)
        rc = dsc_window_begin(&s->window, p[WINDOW], p[LEVEL], in, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &s->recent, (size_t)p[LEVEL], err);
    for (int64_t i = 0; i < prompt.count && p[FROM_PROMPT] == ON && !rc; i++)
        rc = remember(s, prompt.id[i], err);
    return rc;
}

// Appends the pool's phrases after the current token. The code verifies their last token too and
// ignores the result.
static int append_guesses(const state *s, dsc_draft *draft, dsc_error *err)
{
    const dsc_phrase_list *list = dsc_phrase_pool_find(&s->pool, s->current);
    int64_t n = usable(s->in.parameter);
    int32_t node = (int32_t)n - 1; // of a guess's last usable token
    int rc = DSC_OK;
    draft->started = list != NULL;
    for (const dsc_phrase *x = list ? list->oldest : NULL; x && !rc; x = x->newer)
        rc = dsc_draft_append_chain(draft, -1, x->token, (size_t)n, err);
    if (n == s->pool.length)
        return rc;
    for (const dsc_phrase *x = list ? list->oldest : NULL; x && !rc; x = x->newer) {
        rc = dsc_draft_append_scored(draft, n ? node : -1, x->token + n, 1, err);
        node += (int32_t)n;
    }
    return rc;
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    dsc_token_view prompt = s->in.request->prompt;
    s->current = length ? output[length - 1] : prompt.count ? prompt.id[prompt.count - 1] : -1;
    int rc = dsc_window_full(&s->window) ? append_guesses(s, draft, err) : DSC_OK;
    return rc ? rc : dsc_window_append(&s->window, -1, draft, err);
}

static int observe(void *memory, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err)
{
    state *s = memory;
    (void)draft;
    int rc = dsc_window_step(&s->window, s->in.models->target, s->current, &s->pool, err);
    bool code = s->in.parameter[SEMANTICS] == SEMANTICS_CODE;
    for (size_t i = 0; i < verdict->count && s->in.parameter[FROM_PROMPT] == ON && !rc; i++)
        rc = remember(s, verdict->token[code ? verdict->count - 1 : i], err);
    return rc;
}

const dsc_drafter_type dsc_drafter_lookahead = {
    .name = "lookahead",
    .summary = "the target drafts for itself by Jacobi iteration (lookahead decoding)",
    .source = "Fu et al. 2024, Lookahead Decoding, arXiv 2402.02057",
    .engines = "none",
    .recording = "none",
    .needs_off_path = true,
    .branches = true,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .limit = limit,
    .width = width,
    .begin = begin,
    .propose = propose,
    .observe = observe,
};
