// SPDX-License-Identifier: Apache-2.0
#include "live/program/likelihood.h"

#include "base/memory.h"
#include "theory/law.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct sum {
    const live_sampling *sampling;
    const int32_t *token;
    double *law; // [vocab]
    size_t vocab;
    live_likelihood out;
} sum;

static int fill_law(sum *s, const float *logits, const live_sampling *how, dsc_error *err)
{
    for (size_t x = 0; x < s->vocab; x++)
        s->law[x] = logits[x];
    return dsc_law_softmax("logits", s->law, s->vocab, how->temperature, how->top_k, how->top_p,
                           err);
}

static int add(void *user, int64_t i, const float *logits, dsc_error *err)
{
    static const live_sampling own = {1, 0, 1};
    sum *s = user;
    const int32_t y = s->token[i];
    int rc = fill_law(s, logits, s->sampling, err);
    if (rc)
        return rc;
    for (size_t x = 0; x < s->vocab; x++)
        if (s->law[x] > 0)
            s->out.entropy -= s->law[x] * log(s->law[x]);
    if (!(s->law[y] > 0))
        rc = fill_law(s, logits, &own, err);
    if (!rc)
        s->out.nll -= fmin(log(fmax(s->law[y], DBL_MIN)), 0);
    return rc;
}

int live_output_likelihood(live_session *target, int64_t vocab, const live_sampling *sampling,
                           dsc_token_view prompt, dsc_token_view output, live_likelihood *out,
                           dsc_error *err)
{
    sum s = {.sampling = sampling, .token = output.id, .vocab = (size_t)vocab};
    void *law;
    int rc = dsc_alloc(&law, s.vocab, sizeof *s.law, err);
    if (rc)
        return rc;
    s.law = law;
    rc = live_session_force(target, prompt, output, add, &s, err);
    free(law);
    *out = s.out;
    return rc;
}
