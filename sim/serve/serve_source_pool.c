// SPDX-License-Identifier: Apache-2.0
// What a source of requests contains, and what the engine and its policies get of it.
#include "sim/serve/serve_source.h"

#include <stdlib.h>
#include <string.h>

int dsc_serve_source_init(dsc_serve_source *s, size_t count, dsc_error *err)
{
    int rc = dsc_new(&s->item, count, err);
    rc = rc ?: dsc_new(&s->request, count, err);
    rc = rc ?: dsc_new(&s->id, count, err);
    s->count = rc ? 0 : count;
    return rc;
}

void dsc_serve_source_fini(dsc_serve_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free((dsc_serve_draft *)s->item[i].draft);
        free((double *)s->item[i].survival);
        free(s->id[i]);
        if (s->script)
            free(s->script[i]);
    }
    free(s->script);
    free(s->tree);
    free(s->item);
    free(s->request);
    free(s->id);
    *s = (dsc_serve_source){0};
}

dsc_serve_pool dsc_serve_source_pool(const dsc_serve_source *s)
{
    return (dsc_serve_pool){.item = s->item,
                            .count = s->count,
                            .tree = s->tree,
                            .script = (const dsc_serve_pass *const *)s->script,
                            .widest = s->widest};
}

int dsc_serve_source_admits(const dsc_serve_source *s, const dsc_drafter_type *drafter,
                            const dsc_serve_policy *policy, dsc_error *err)
{
    const char *name = policy->type->name;
    if (s->script && strcmp(name, "fixed"))
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation %s: a draft of method %s depends on the steps before it or "
                        "has more passes than tokens, so its steps are served as they "
                        "are: --speculation fixed",
                        name, drafter->name);
    if (s->tree && policy->type == &dsc_serve_policy_adaptive)
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation %s weighs single draft tokens, but a level of method %s has "
                        "several: --speculation fixed, schedule:..., ema, off-above:QPS or oracle",
                        name, drafter->name);
    return DSC_OK;
}

size_t dsc_serve_source_steps(const dsc_serve_source *s, size_t i)
{
    size_t steps = 0;
    // The prefill gives the first token.
    for (int32_t emitted = 1; s->script && emitted < s->item[i].output;)
        emitted += s->script[i][steps++].emitted;
    return steps;
}

// A pass of the draft model over one token of a sequence adds one to both counts.
static bool has_wide_passes(const dsc_serve_source *s)
{
    if (s->tree && s->tree[s->longest].draft_tokens > s->longest)
        return true;
    for (size_t i = 0; s->script && i < s->count; i++)
        for (size_t p = 0, n = dsc_serve_source_steps(s, i); p < n; p++)
            if (s->script[i][p].draft_tokens != s->script[i][p].draft_passes)
                return true;
    return false;
}

int dsc_serve_source_records(const dsc_serve_source *s, const dsc_drafter_type *drafter,
                             dsc_error *err)
{
    const bool wide = s->drafting != DSC_SERVE_DRAFT_FREE && has_wide_passes(s);
    return s->overlap || wide
               ? dsc_fail(err, DSC_EUSAGE,
                          "--schedule: method %s %s, which the lines of a schedule do not have; "
                          "they have passes over one token of each sequence after the target's",
                          drafter->name,
                          s->overlap ? "drafts while the target verifies"
                                     : "has passes of the draft model over several tokens")
               : DSC_OK;
}
