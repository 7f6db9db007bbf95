// SPDX-License-Identifier: Apache-2.0
// SpecTr (Sun et al. 2023, Algorithm 3): K sequences of L tokens, sampled independently from the
// draft model and verified together in one pass of the target. At each position the candidates are
// the sequences that agree with the tokens accepted so far.
#include "sim/draft/draft_next.h"

enum { DRAFTS, LENGTH };
// clang-format off
static const dsc_option options[] = {
    {DSC_OPTION_NUM_DRAFTS, .initial = "4", .min = 1, .max = 64,
     .sizes = "1,2,3,4,8", .column = "drafts",
     .help = "number of draft sequences sampled per step"},
    {DSC_OPTION_DRAFT_LENGTH, .initial = "4", .min = 0, .max = 4096, .sizes = "1,2,3,4,6",
     .help = "number of tokens in each draft sequence"},
};
// clang-format on

typedef struct state {
    dsc_drafter_input in;
    int32_t *tip; // [drafts] last node of each sequence; -2: it has ended
} state;

static int64_t width(const dsc_config *config)
{
    return 1 + config->parameter[DRAFTS] * config->parameter[LENGTH];
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    s->in = *in;
    return dsc_arena_new(in->arena, &s->tip, (size_t)in->parameter[DRAFTS], err);
}

enum { ENDED = -2 };

// Announces the next token of every sequence that has not ended; a sample is keyed by its number in
// the draft.
static int prefetch_all(state *s, int64_t length, const dsc_draft *draft, dsc_error *err)
{
    dsc_prefetch_list f = {.n = 0};
    uint32_t index = (uint32_t)draft->count;
    int rc = DSC_OK;
    for (int64_t k = 0; k < s->in.parameter[DRAFTS] && !rc; k++)
        if (s->tip[k] != ENDED)
            rc = dsc_prefetch(&f, &s->in, length, s->tip[k], index++, err);
    return rc ? rc : dsc_prefetch_end(&f, &s->in, err);
}

// One pass of the draft model gives the next token of every sequence.
static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    (void)output;
    int64_t drafts = s->in.parameter[DRAFTS], open = drafts;
    int rc = DSC_OK;
    draft->kind = s->in.kind;
    draft->started = s->in.parameter[LENGTH] > 0;
    for (int64_t k = 0; k < drafts; k++)
        s->tip[k] = -1;
    for (int64_t i = 0; i < s->in.parameter[LENGTH] && open && !rc; i++) {
        rc = dsc_draft_next_score(&s->in, open, draft, err);
        if (!rc)
            rc = prefetch_all(s, length, draft, err);
        for (int64_t k = 0; k < drafts && !rc; k++) {
            bool ends;
            if (s->tip[k] == ENDED)
                continue;
            rc = dsc_draft_next_append(&s->in, length, s->tip[k], draft, &ends, err);
            s->tip[k] = ends ? ENDED : (int32_t)draft->count - 1;
            open -= ends;
        }
    }
    return rc;
}

const dsc_drafter_type dsc_drafter_spectr = {
    .name = "spectr",
    .summary = "K draft sequences sampled independently from a draft model (SpecTr)",
    .source = "Sun et al. 2023, SpecTr, Algorithm 3, arXiv 2310.15141",
    .engines = "none",
    .recording = "draft_logp, target_logp and the column of the rule (kseq, otm, specinfer); "
                 "whole distributions of both models (gbv)",
    .needs_draft = true,
    .branches = true,
    .kinds = DSC_DRAFT_SAMPLED,
    .replay = DSC_DRAFT_REPLAY_SEQUENCES,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .width = width,
    .begin = begin,
    .propose = propose,
};
