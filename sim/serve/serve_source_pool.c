// SPDX-License-Identifier: Apache-2.0
// What a source of requests contains, and what the engine and its policies get of it.
#include "sim/serve/serve_source.h"

#include <stdlib.h>
#include <string.h>

int dsc_serve_source_init(dsc_serve_source *s, size_t count, dsc_error *err)
{
    int rc = dsc_new(&s->item, count, err);
    if (!rc)
        rc = dsc_new(&s->request, count, err);
    if (!rc)
        rc = dsc_new(&s->id, count, err);
    s->count = rc ? 0 : count;
    return rc;
}

void dsc_serve_source_fini(dsc_serve_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free((dsc_serve_draft *)s->item[i].draft);
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
                        "--speculation %s: a draft of method %s depends on the steps before it, so "
                        "its steps are served as they are: --speculation fixed",
                        name, drafter->name);
    if (s->tree && policy->type == &dsc_serve_policy_adaptive)
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation %s weighs single draft tokens, but a level of method %s has "
                        "several: --speculation fixed, schedule:..., ema, off-above:QPS or oracle",
                        name, drafter->name);
    return DSC_OK;
}
