// SPDX-License-Identifier: Apache-2.0
// The tokens of a verdict: growing arrays of committed tokens and their nodes.
#include "sim/verdict.h"

#include <stdlib.h>

void dsc_verdict_clear(dsc_verdict *v)
{
    if (v)
        v->accepted = v->count = 0;
}

void dsc_verdict_fini(dsc_verdict *v)
{
    if (!v)
        return;
    free(v->token);
    free(v->node);
    *v = (dsc_verdict){0};
}

static int check(const dsc_verdict *v, dsc_error *err)
{
    return v ? DSC_OK : dsc_fail(err, DSC_EUSAGE, "the verdict v must not be NULL");
}

int dsc_verdict_close(dsc_verdict *v, int32_t token, dsc_error *err)
{
    int rc = check(v, err);
    if (!rc)
        rc = dsc_resize(&v->token, &v->token_capacity, v->count + 1, err);
    if (!rc)
        v->token[v->count++] = token;
    return rc;
}

int dsc_verdict_accept(dsc_verdict *v, int32_t token, int32_t node, dsc_error *err)
{
    int rc = check(v, err);
    if (!rc)
        rc = dsc_resize(&v->node, &v->node_capacity, v->accepted + 1, err);
    if (!rc)
        rc = dsc_verdict_close(v, token, err);
    if (!rc)
        v->node[v->accepted++] = node;
    return rc;
}
