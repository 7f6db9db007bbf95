// SPDX-License-Identifier: Apache-2.0
// Sums -ln p and entropy over the tokens of an output, from the logits of a teacher-forced pass of
// the target.
#include "live/program/likelihood.h"

#include "base/memory.h"
#include "theory/probs.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct sum {
    const live_sampling *sampling;
    const int32_t *token;
    double *dist; // [vocab]
    size_t vocab;
    live_draft_vocabulary *drafted;
    live_likelihood out;
} sum;

static int fill_dist(sum *s, const float *logits, const live_sampling *how, dsc_error *err)
{
    for (size_t x = 0; x < s->vocab; x++)
        s->dist[x] = logits[x];
    return dsc_probs_softmax("logits", s->dist, s->vocab, how->temperature, how->top_k, how->top_p,
                             err);
}

static int add(void *user, int64_t i, const float *logits, dsc_error *err)
{
    static const live_sampling own = {1, 0, 1};
    sum *s = user;
    const int32_t y = s->token[i];
    int rc = fill_dist(s, logits, s->sampling, err);
    if (rc)
        return rc;
    for (size_t x = 0; x < s->vocab; x++)
        if (s->dist[x] > 0)
            s->out.entropy -= s->dist[x] * log(s->dist[x]);
    live_draft_vocabulary_add_dist(s->drafted, s->dist);
    if (!(s->dist[y] > 0))
        rc = fill_dist(s, logits, &own, err);
    if (!rc)
        s->out.nll -= fmin(log(fmax(s->dist[y], DBL_MIN)), 0);
    return rc;
}

int live_output_likelihood(live_session *target, int64_t vocab, const live_sampling *sampling,
                           dsc_token_view prompt, dsc_token_view output,
                           live_draft_vocabulary *drafted, live_likelihood *out, dsc_error *err)
{
    sum s = {.sampling = sampling, .token = output.id, .vocab = (size_t)vocab, .drafted = drafted};
    int rc = dsc_new(&s.dist, s.vocab, err);
    if (rc)
        return rc;
    rc = live_session_replay(target, prompt, output, add, &s, err);
    free(s.dist);
    *out = s.out;
    return rc;
}
