// SPDX-License-Identifier: Apache-2.0
// Compares how probable an output is under the target with its expected value. A token sampled from
// a distribution has an expected -ln p equal to the entropy of the distribution, whatever came
// before. So over an output of a lossless rule the sum of -ln p differs from the sum of the
// entropies by chance only. This reveals a rule that corrects a rejected token by the wrong
// distribution, which accepted counts hardly show.
#ifndef DSC_LIVE_LIKELIHOOD_H
#define DSC_LIVE_LIKELIHOOD_H

#include "live/program/draft_vocabulary.h"
#include "live/session/session.h"

typedef struct live_likelihood {
    double nll;     // sum of -ln p of the output's tokens, nats
    double entropy; // sum of the entropies of the distributions that they are sampled from
} live_likelihood;

// Uses the distributions of `sampling` (temperature > 0); a token that they exclude counts with the
// model's own p. Runs prompt and output through the model again and ends the text that was begun.
// `vocab` is the model's. Adds the distributions to *drafted.
int live_output_likelihood(live_session *target, int64_t vocab, const live_sampling *sampling,
                           dsc_token_view prompt, dsc_token_view output,
                           live_draft_vocabulary *drafted, live_likelihood *out, dsc_error *err);

#endif
