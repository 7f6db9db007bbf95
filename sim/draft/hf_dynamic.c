// SPDX-License-Identifier: Apache-2.0
// A draft model drafts a chain whose length adapts to its acceptance: the "heuristic" schedule of
// assisted generation in Hugging Face transformers (generation/candidate_generator.py,
// AssistedCandidateGenerator.update_candidate_strategy), which is Spec-Bench's SpS. After a draft
// that was fully accepted the length grows by 2, after any other it shrinks by 1, to no less
// than 1. In transformers it has no upper limit and by default carries over to the next request;
// here each request starts anew (its "heuristic_transient"), so that no result depends on their
// order.
//
// The length depends only on earlier steps, so the draft is a plain chain of samples.
#include "sim/draft/draft_next.h"

#include <inttypes.h>

enum { START, UP, DOWN, LEAST, MOST };
// clang-format off
static const dsc_option options[] = {
    {.name = "num-assistant-tokens", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "5",
     .min = 0, .max = 100000, .help = "number of tokens in the first draft of a request"},
    {.name = "increment", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "2", .min = 0,
     .max = 100000, .help = "tokens added to the draft length after a fully accepted draft"},
    {.name = "decrement", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "1", .min = 0,
     .max = 100000,
     .help = "tokens taken from the draft length after a draft that was not fully accepted"},
    {.name = "min", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "1", .min = 0,
     .max = 100000, .help = "smallest draft length"},
    {.name = "max", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "100000", .min = 0,
     .max = 100000, .help = "largest draft length"},
};
// clang-format on

typedef struct state {
    dsc_drafter_input in;
    int64_t length; // of the next draft
} state;

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    const int64_t *p = config->parameter;
    *prepared = NULL;
    if (p[LEAST] <= p[START] && p[START] <= p[MOST])
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--num-assistant-tokens %" PRId64 " is not from --min %" PRId64
                    " to --max %" PRId64,
                    p[START], p[LEAST], p[MOST]);
}

static int64_t limit(const dsc_config *config)
{
    return config->parameter[MOST];
}

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    (void)err;
    *(state *)memory = (state){*in, in->parameter[START]};
    return DSC_OK;
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    const state *s = memory;
    (void)output;
    return dsc_draft_next_chain(&s->in, length, s->length, 0, draft, err);
}

static int observe(void *memory, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err)
{
    state *s = memory;
    const int64_t *p = s->in.parameter;
    (void)err;
    s->length += verdict->accepted == draft->proposed ? p[UP] : -p[DOWN];
    s->length = s->length < p[LEAST] ? p[LEAST] : s->length > p[MOST] ? p[MOST] : s->length;
    return DSC_OK;
}

const dsc_drafter_type dsc_drafter_hf_dynamic = {
    .name = "hf-dynamic",
    .summary = "a draft model whose draft length adapts to acceptance (transformers' heuristic)",
    .source = "no paper: the heuristic schedule of transformers",
    .engines = "transformers num_assistant_tokens_schedule heuristic_transient",
    .recording = "draft_rank or draft_argmax",
    .needs_draft = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .prepare = prepare,
    .limit = limit,
    .begin = begin,
    .propose = propose,
    .observe = observe,
};
