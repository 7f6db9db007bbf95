// SPDX-License-Identifier: Apache-2.0
// Serves recorded steps. A request emits its first token at the end of the prefill, and in each
// later pass what its next step emits. A step waits until the engine has room for all of its
// tokens. A request that was preempted computes its tokens again up to the last one, whose pass is
// that of the step which was interrupted.
#include "sim/serve/serve_script.h"

#include "sim/serve/serve_schedule.h"

#include <string.h>

static void add_draft(dsc_serve_step *step, const dsc_serve_pass *p, int32_t context)
{
    if (!p->draft_passes)
        return;
    step->drafts[p->draft_passes]++;
    step->longest = p->draft_passes > step->longest ? p->draft_passes : step->longest;
    step->draft_context += context;
    step->draft_tokens += p->draft_tokens;
}

// Tokens that a sequence emits.
static int32_t verify(dsc_serve_engine *e, dsc_serve_sequence *s)
{
    dsc_serve_totals *t = e->totals;
    const int32_t after = s->computed + s->scheduled;
    int32_t emitted = 1;
    if (!dsc_serve_decodes(s))
        t->prefill_tokens += s->scheduled;
    if (after < dsc_serve_known(s)) {
        s->computed = after;
        return 0;
    }
    if (s->emitted) {
        const dsc_serve_pass *p = s->pass++;
        if (e->price->overlap)
            add_draft(&e->step, p, s->computed + 1);
        emitted = p->emitted;
        t->num_draft_tokens += p->drafted;
        t->num_accepted_tokens += p->accepted;
        t->num_drafts += p->drafted > 0;
    }
    s->emitted += emitted;
    s->computed = dsc_serve_known(s) - 1;
    s->tokens = 0;
    if (s->emitted == s->output)
        return emitted;
    s->tokens = s->pass->verified;
    if (!e->price->overlap)
        add_draft(&e->step, s->pass, s->computed + 1);
    return emitted;
}

void dsc_serve_script_verify(dsc_serve_engine *e)
{
    dsc_serve_step *step = &e->step;
    memset(step->drafts, 0, sizeof step->drafts);
    for (int64_t i = 0; i < e->running_count; i++) {
        dsc_serve_sequence *s = &e->running[i];
        s->scheduled = s->scheduled ? verify(e, s) : 0;
    }
    for (int32_t k = step->longest; k-- > 1;)
        step->drafts[k] += step->drafts[k + 1];
}
