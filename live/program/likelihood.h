// SPDX-License-Identifier: Apache-2.0
// How likely an output was to the target, beside how likely it should be. A token that is drawn
// from a distribution has an expected -ln p of its entropy, whatever came before. So over an output
// of a lossless rule the sum of -ln p differs from that of the entropies by chance only; counts
// alone hardly show a rule that corrects a rejected token by the wrong distribution.
#ifndef DSC_LIVE_LIKELIHOOD_H
#define DSC_LIVE_LIKELIHOOD_H

#include "live/session/session.h"

typedef struct live_likelihood {
    double nll;     // sum of -ln p of the output's tokens, nats
    double entropy; // sum of the entropies of the distributions that they are drawn from
} live_likelihood;

// By the distributions of `sampling` (temperature > 0); p of a token that they exclude is the
// model's own. Runs prompt and output through the model again and ends the text that was begun.
// `vocab`: of the model.
int live_output_likelihood(live_session *target, int64_t vocab, const live_sampling *sampling,
                           dsc_token_view prompt, dsc_token_view output, live_likelihood *out,
                           dsc_error *err);

#endif
