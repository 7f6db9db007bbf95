// SPDX-License-Identifier: Apache-2.0
// The reduced vocabulary of an EAGLE-3 head (Li et al. 2025, arXiv:2503.01840): its tensor d2t
// contains for each draft token the distance to the target's token.
#ifndef DSC_TRACES_D2T_H
#define DSC_TRACES_D2T_H

#include "base/memory.h"

// Draft token d is the target's token d + offset[d]. column[vocab] becomes the draft token of each
// token of the target, or -1. DSC_EINPUT names the draft token: the target lacks its token, or two
// draft tokens are the same one.
int dsc_d2t_read(int32_t *column, int64_t vocab, const int64_t *offset, int64_t count,
                 dsc_error *err);

#endif
