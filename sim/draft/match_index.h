// SPDX-License-Identifier: Apache-2.0
// The places where the last tokens of an output occur in its references.
//
// Algorithm: the references are concatenated with sentinels between them; every position is chained
// to the next one whose token has the same hash bucket. A look-up follows the chain of the last
// token and counts how far each occurrence agrees backwards. Building is O(tokens); a look-up is
// O(occurrences of the last token) and stops at the first occurrence with the wanted length.
// Sentinels are negative and token ids are not, so no match or copy crosses references. Internal to
// sim/draft/.
#ifndef DSC_SIM_DRAFT_MATCH_INDEX_H
#define DSC_SIM_DRAFT_MATCH_INDEX_H

#include "traces/trace/trace.h"

typedef struct dsc_match_index {
    int32_t *text; // [count] reference tokens; -1 before, between and after references
    int32_t *end;  // [count] position of the sentinel that ends the reference at this position
    int32_t *next; // [count] next position of the same bucket, or -1
    int32_t *head; // [mask + 1] first position of a bucket, or -1
    int64_t count;
    uint32_t mask;
} dsc_match_index;

typedef struct dsc_match {
    int32_t length; // tokens that agree, 0: no occurrence
    int32_t at;     // position in `text` of the token that follows them
} dsc_match;

enum { DSC_MAX_CAPS = 64 };

// The texts that an index contains: any combination.
enum { DSC_INDEX_DOCUMENTS = 1, DSC_INDEX_TURNS = 2, DSC_INDEX_PROMPT = 4 };

// Builds the index of the selected texts of a request: documents and turns in recorded order, then
// the prompt. All memory is the arena's. DSC_EINPUT: the texts are too long.
int dsc_match_index_build(dsc_match_index *index, const dsc_request *request, int which,
                          dsc_arena *arena, dsc_error *err);

// The longest match of the tokens before output position `length`, for each cap:
// out[c].length = min(longest agreement, cap[c], length). Caps are ascending and >= 1, and their
// number is at most DSC_MAX_CAPS. Among several longest matches: the first one if `tie` is NULL,
// else the one selected by the uniform number *tie in [0, 1).
void dsc_match_find(const dsc_match_index *index, const int32_t *output, int64_t length,
                    const int32_t *cap, size_t caps, const double *tie, dsc_match *out);

#endif
