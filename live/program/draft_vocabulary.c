// SPDX-License-Identifier: Apache-2.0
// Adds up what the vocabulary of an EAGLE-3 head allows on outputs, as draftscope theory vocabulary
// does on a trace; live/program/draft_vocabulary.h.
#include "live/program/draft_vocabulary.h"

#include "theory/vocabulary.h"

#include <math.h>

void live_draft_vocabulary_init(live_draft_vocabulary *v, const live_weights *draft, bool greedy)
{
    *v = (live_draft_vocabulary){.greedy = greedy};
    if (!draft || !draft->drafted)
        return;
    v->in = draft->drafted;
    v->vocab = draft->config.vocab;
    v->draft_tokens = draft->config.draft_vocab;
}

void live_draft_vocabulary_add(live_draft_vocabulary *v, dsc_token_view output)
{
    if (!v->in)
        return;
    v->tokens += output.count;
    v->covered += dsc_vocabulary_covered(output.id, output.count, v->in);
}

void live_draft_vocabulary_add_dist(live_draft_vocabulary *v, const double *target)
{
    if (!v->in)
        return;
    v->positions++;
    v->mass += dsc_vocabulary_limit(target, (size_t)v->vocab, v->in);
}

double live_draft_vocabulary_coverage(const live_draft_vocabulary *v)
{
    return v->tokens ? (double)v->covered / (double)v->tokens : (double)NAN;
}

double live_draft_vocabulary_bound(const live_draft_vocabulary *v)
{
    if (v->greedy)
        return live_draft_vocabulary_coverage(v);
    return v->positions ? v->mass / (double)v->positions : (double)NAN;
}
