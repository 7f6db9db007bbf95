// SPDX-License-Identifier: Apache-2.0
// PEARL (Liu et al. 2024, arXiv 2408.11850, Algorithm 2): draft model and target work at the same
// time. A step is one iteration of both, in which the draft model writes `window` tokens x_1 ..
// x_g, behind the tokens that are still pending, while the target makes one call; the longer of the
// two is waited for (theory/pearl.h has the closed forms).
//   before a window is begun: the target tests x_1 from the last committed token alone
//     (pre-verify). Accepted: x_2 .. x_g are pending. Rejected: its correction, begin again.
//   with tokens pending: the target tests them all and, from the last of them, the first of the
//     new window (post-verify). All accepted: the rest of that is pending now, and no bonus token
//     comes, since the target has not seen the last one. Otherwise what was accepted and a
//     correction; whatever else was drafted is dropped, begin again.
//
// Ablations. Without pre-verify the first token of a new window is tested one step later, with the
// rest of it: the step that begins has nothing for the target to do, and emits nothing. Without
// post-verify what is drafted while the target tests the pending tokens is thrown away; the target
// adds its own token behind them and the next window is begun.
//
// The authors' program stops at the length limit with its pending tokens untested in the output,
// and without pre-verify never tests the first token of a window. Neither is done here: the output
// would not be the target's.
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
     .help = "keep what is drafted while a window is tested"},
};
// clang-format on

typedef struct state {
    dsc_drafter_input in;
    int32_t *pending; // [count] drafted behind the output and not tested; room for 2 windows
    size_t count;
    bool begun; // a window is: the next step tests what is pending
} state;

static int64_t limit(const dsc_config *config)
{
    return config->parameter[WINDOW];
}

// What is pending and a window behind it.
static int64_t draft_width(const dsc_config *config)
{
    return 1 + 2 * config->parameter[WINDOW];
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    void *p;
    s->in = *in;
    s->count = 0;
    s->begun = false;
    int rc =
        dsc_arena_alloc(in->arena, &p, 2 * (size_t)in->parameter[WINDOW], sizeof *s->pending, err);
    s->pending = p;
    return rc;
}

// The pending tokens and behind them, unless the output ends there, a new window.
static int write_window(const state *s, int64_t length, dsc_draft *draft, dsc_error *err)
{
    int64_t window = s->in.parameter[WINDOW], last = (int64_t)s->count - 1;
    bool ends = last >= 0 && dsc_model_ends(s->in.models->target, last, s->pending[last]);
    dsc_model *target = s->in.models->target;
    int rc = dsc_draft_append_chain(draft, -1, s->pending, s->count, err);
    draft->started = !ends;
    if (!rc && target->type->start) // where a pass takes time, this is when it runs
        rc = target->type->start(target, draft, err);
    if (ends && !rc) // their distributions are known from the step that drew them
        return s->in.models->draft->type->score(s->in.models->draft, draft, err);
    for (int64_t i = 0; i < window && !ends && !rc; i++)
        rc = dsc_draft_next(&s->in, length, (int32_t)draft->count - 1, draft, &ends, err);
    return rc;
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
    // Tested are the pending tokens and, with pre-verify, one more: it needs no pass of its own.
    bool more = pre && (post || !s->begun) && draft->count > s->count;
    size_t tested = s->count + more;
    draft->untested = !s->begun && !tested;
    draft->unscored = tested > 0 && (post || !s->begun);
    // The rest stays here. The models have scored it and are not asked about it.
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
    .needs_draft = true,
    .parallel = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .limit = limit,
    .draft_width = draft_width,
    .begin = begin,
    .propose = propose,
    .observe = observe,
};
