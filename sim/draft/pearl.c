// SPDX-License-Identifier: Apache-2.0
// PEARL (Liu et al. 2024, arXiv 2408.11850, Algorithm 2): draft model and target run at the same
// time. In a step the draft model drafts a window of g tokens x_1 .. x_g after the tokens that are
// still pending, while the target makes one call; the step takes the longer of both (theory/pearl.h
// has the closed forms).
//   No tokens pending: the target verifies x_1 from the last committed token alone (pre-verify). If
//     it accepts, x_2 .. x_g are pending; else it emits its correction and a new window begins.
//   Tokens pending: the target verifies all of them and, from the last one, the first token of the
//     new window (post-verify). If it accepts all, the rest of the window is pending, and there is
//     no bonus token, because the target has not scored the last one. Else it emits the accepted
//     tokens and a correction, the other drafted tokens are dropped, and a new window begins.
//
// Ablations. Without pre-verify, the first token of a new window is verified one step later, with
// the rest of the window; the target is idle in the step that begins it, which emits nothing.
// Without post-verify, the tokens drafted while the target verifies the pending ones are dropped;
// the target adds its own token and a new window begins.
//
// The authors' program stops at the length limit with unverified pending tokens in the output, and
// without pre-verify never verifies the first token of a window. Both would change the distribution
// of the output, so neither is done here.
#include "sim/draft/draft_next.h"

#include <string.h>

enum { WINDOW, PRE_VERIFY, POST_VERIFY };
enum { ON, OFF };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "4", .min = 1, .max = 128,
     .help = "window: number of tokens drafted during one forward pass of the target"},
    {.name = "pre-verify", .kind = DSC_OPTION_CHOICE, .choices = "on|off", .initial = "on",
     .help = "test the first token of a window while the rest is drafted"},
    {.name = "post-verify", .kind = DSC_OPTION_CHOICE, .choices = "on|off", .initial = "on",
     .help = "keep the tokens that are drafted while a window is tested"},
};
// clang-format on

typedef struct state {
    dsc_drafter_input in;
    int32_t *pending; // [count] drafted after the output and not verified; room for 2 windows
    size_t count;
    bool begun; // a window is begun: the next step verifies the pending tokens
} state;

// The pending tokens and a window after them.
static int64_t draft_width(const dsc_config *config)
{
    return 1 + 2 * config->parameter[WINDOW];
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    *s = (state){.in = *in};
    return dsc_arena_new(in->arena, &s->pending, 2 * (size_t)in->parameter[WINDOW], err);
}

// Appends the pending tokens and, unless the output ends there, a new window.
static int write_window(const state *s, int64_t length, dsc_draft *draft, dsc_error *err)
{
    int64_t window = s->in.parameter[WINDOW], last = (int64_t)s->count - 1;
    bool ends = last >= 0 && dsc_model_ends(s->in.models->target, last, s->pending[last]);
    dsc_model *target = s->in.models->target;
    int rc = dsc_draft_append_chain(draft, -1, s->pending, s->count, err);
    draft->started = !ends;
    if (!rc && target->type->start) // the target's pass runs while the window is drafted
        rc = target->type->start(target, draft, err);
    if (ends && !rc) // the step that drafted them has made the passes
        return s->in.models->draft->type->score(s->in.models->draft, draft, err);
    return rc ? rc : dsc_draft_next_chain(&s->in, length, window, 0, draft, err);
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    (void)output;
    bool pre = s->in.parameter[PRE_VERIFY] == ON, post = s->in.parameter[POST_VERIFY] == ON;
    draft->kind = s->in.kind;
    int rc = write_window(s, length, draft, err);
    if (rc)
        return rc;
    // The target verifies the pending tokens and, with pre-verify, one more, which needs no pass.
    bool more = pre && (post || !s->begun) && draft->count > s->count;
    size_t tested = s->count + more;
    draft->untested = !s->begun && !tested;
    draft->unscored = tested > 0 && (post || !s->begun);
    // The rest stays pending: the models have scored it, but it is not verified in this step.
    s->count = draft->count - tested;
    memcpy(s->pending, draft->token + tested, s->count * sizeof *s->pending);
    draft->count = draft->proposed = tested;
    return DSC_OK;
}

static int observe(void *memory, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err)
{
    state *s = memory;
    (void)err;
    s->begun = draft->untested || (draft->unscored && verdict->accepted == draft->proposed);
    if (!s->begun)
        s->count = 0;
    return DSC_OK;
}

const dsc_drafter_type dsc_drafter_pearl = {
    .name = "pearl",
    .summary = "a draft model writes a window while the target tests the one before (PEARL)",
    .source = "Liu et al. 2024, PEARL, arXiv 2408.11850",
    .engines = "none",
    .recording = "draft_rank as deep as the draft (greedy)",
    .needs_draft = true,
    .parallel = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .draft_width = draft_width,
    .begin = begin,
    .propose = propose,
    .observe = observe,
};
