// SPDX-License-Identifier: Apache-2.0
// Requests whose drafts are drawn from acceptance rates.
#include "base/rng.h"
#include "sim/serve/serve_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The first tokens of a draft whose rates the same number u passes, at most `most`.
static int32_t survive(const double *rate, int32_t most, double u)
{
    double survival = 1;
    int32_t run = 0;
    while (run < most && u < (survival *= rate[run]))
        run++;
    return run;
}

static int draw_request(dsc_serve_source *s, const dsc_serve_rates *r, int64_t request,
                        double *rate, dsc_error *err)
{
    char id[24];
    dsc_serve_draft *drafts;
    double *survivals;
    int32_t prompt = 0, output = 0;
    r->lengths(r->user, request, &prompt, &output);
    if (prompt < 1 || output < 1 || prompt > DSC_LONGEST_SERVED || output > DSC_LONGEST_SERVED)
        return dsc_fail(err, DSC_EUSAGE,
                        "request %" PRId64 " has a prompt of %d and an output of %d tokens; each "
                        "must be from 1 to %d",
                        request, prompt, output, DSC_LONGEST_SERVED);
    int rc = dsc_new(&drafts, (size_t)output, err);
    if (rc)
        return rc;
    s->item[request] = (dsc_serve_item){.prompt = prompt, .output = output, .draft = drafts};
    s->request[request] = request;
    rc = dsc_new(&survivals, (size_t)r->length, err);
    if (rc)
        return rc;
    s->item[request].survival = survivals;
    r->rates(r->user, request, r->length, rate);
    for (int32_t d = 0; d < r->length; d++)
        survivals[d] = (d ? survivals[d - 1] : 1) * rate[d];
    for (int32_t i = 0; i < output; i++) {
        const double u = dsc_rng_uniform(r->seed, (uint64_t)request, (uint32_t)i, DSC_RNG_ACCEPT);
        const int32_t left = output - 1 - i;
        drafts[i].available = (uint16_t)r->length;
        drafts[i].run = (uint16_t)survive(rate, left < r->length ? left : r->length, u);
    }
    snprintf(id, sizeof id, "%" PRId64, request);
    return dsc_strndup(&s->id[request], id, strlen(id), err);
}

int dsc_serve_source_rates(dsc_serve_source *out, const dsc_serve_rates *r,
                           dsc_serve_drafting drafting, dsc_error *err)
{
    double *rate = NULL;
    *out = (dsc_serve_source){0};
    if (r->requests < 1 || r->length < 0 || r->length > DSC_SERVE_LONGEST)
        return dsc_fail(err, DSC_EUSAGE,
                        "there are %" PRId64 " requests to serve with drafts of %d tokens; at "
                        "least 1 and at most %d are possible",
                        r->requests, r->length, DSC_SERVE_LONGEST);
    int rc = dsc_serve_source_init(out, (size_t)r->requests, err);
    rc = rc ?: dsc_new(&rate, (size_t)r->length + 1, err);
    for (int64_t i = 0; i < r->requests && !rc; i++)
        rc = draw_request(out, r, i, rate, err);
    out->longest = r->length;
    out->drafting = drafting;
    free(rate);
    return rc;
}
