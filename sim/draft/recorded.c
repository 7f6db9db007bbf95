// SPDX-License-Identifier: Apache-2.0
// Replays what a drafter did when it was recorded. No draft token is needed: a trace contains how
// many of them the target accepted.
//  - recorded: accept lengths a[p] at every output position p (traces/trace/trace.h). A draft of k
//    tokens from there has min(a[p], k) accepted, so every k up to the recorded cap is exact. With
//    the policy `oracle` each draft has min(a[p], k) tokens, the optimum of each step (the ORACLE
//    of github.com/SpecDecode-Bench/simulator, predictor.py at commit 2fdccbd).
//  - recorded-steps: the steps of a run, as they were.
// Both give the loop and the exact replay a view of the request: accept[0] is the number of tokens
// that match at each position, and accept[1] the number drafted there (NULL: k).
#include "sim/drafter.h"

#include <inttypes.h>
#include <string.h>

enum { DRAFTER, LENGTH, POLICY, PASSES };
enum { FIXED, ORACLE };
enum { STEP_LENGTH, STEP_PASSES };
enum { MOST = 1024 }; // draft tokens of a recorded step
// clang-format off
#define PASSES_OPTION                                                                              \
    {.name = "draft-passes", .kind = DSC_OPTION_INT, .metavar = "P", .initial = "-1", .min = -1,   \
     .max = MOST,                                                                                  \
     .help = "forward passes of the draft model per draft, which the trace does not contain: 0 "   \
             "for n-grams, 1 for Medusa; -1: one per draft token"}
static const dsc_option options[] = {
    {.name = "drafter", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .list = true,
     .help = "the recorded drafter, as trace info lists them; not needed where there is one"},
    {DSC_OPTION_DRAFT_LENGTH, .initial = "5", .min = 1, .max = 65535, .length = true,
     .help = "number of draft tokens per step, at most the recorded cap"},
    {.name = "policy", .kind = DSC_OPTION_CHOICE, .choices = "fixed|oracle", .initial = "fixed",
     .help = "oracle: draft exactly the tokens that will be accepted, at most N (upper bound of "
             "every rule for the draft length)"},
    PASSES_OPTION,
};
static const dsc_option step_options[] = {
    {DSC_OPTION_DRAFT_LENGTH, .initial = "0", .min = 0, .max = MOST,
     .help = "draft tokens of a step, where the trace does not contain them; a step that accepted "
             "more drafted those"},
    PASSES_OPTION,
};
// clang-format on

// --- accept lengths by position ------------------------------------------------------------------

static int no_lengths(const dsc_trace_info *trace, const char *name, dsc_error *err)
{
    char list[256] = "";
    size_t n = 0;
    for (int32_t d = 0; d < trace->drafters && n < sizeof list; d++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", d ? ", " : "",
                              trace->drafter[d].name);
    if (!trace->drafters)
        return dsc_fail(err, DSC_EUSAGE,
                        "method recorded needs accept lengths by position, which the trace lacks "
                        "(trace import --format acclen, or \"accept\" in JSON lines)");
    if (!name)
        return dsc_fail(err, DSC_EUSAGE,
                        "method recorded: the trace has %" PRId32
                        " drafters, so --drafter is needed: %s",
                        trace->drafters, list);
    return dsc_fail(err, DSC_EUSAGE,
                    "--drafter %.64s: the trace has no accept lengths of it, but those of: %s",
                    name, list);
}

static int view_lengths(const dsc_config *config, const dsc_trace_info *trace, dsc_request *q,
                        dsc_arena *arena, dsc_error *err)
{
    const char *name = config->text[DRAFTER];
    const int64_t length = config->parameter[LENGTH];
    int32_t d = 0;
    (void)arena;
    while (name && d < trace->drafters && strcmp(trace->drafter[d].name, name) != 0)
        d++;
    if (d == trace->drafters || (!name && trace->drafters > 1))
        return no_lengths(trace, name, err);
    if (length > trace->drafter[d].cap)
        return dsc_fail(err, DSC_EUSAGE,
                        "--num-speculative-tokens %" PRId64 ": the accept lengths of drafter %s "
                        "were recorded up to %" PRId32,
                        length, trace->drafter[d].name, trace->drafter[d].cap);
    if (q) {
        q->accept[0] = q->accept[d];
        q->accept[1] = NULL;
    }
    return DSC_OK;
}

// --- steps ---------------------------------------------------------------------------------------

// The draft tokens of step i.
static int64_t drafted_by(const dsc_config *config, const dsc_steps *s, int64_t i)
{
    const int64_t length = config->parameter[STEP_LENGTH];
    return s->drafted ? s->drafted[i] : s->accepted[i] > length ? s->accepted[i] : length;
}

static int check_step(const dsc_config *config, const dsc_trace_info *trace, const dsc_steps *s,
                      int64_t i, dsc_error *err)
{
    const int64_t drafted = drafted_by(config, s, i);
    if (drafted <= MOST && s->accepted[i] < trace->max_output_tokens)
        return DSC_OK;
    return dsc_fail(err, DSC_EINPUT,
                    "step %" PRId64 " accepted %d of %" PRId64 " draft tokens; method "
                    "recorded-steps replays drafts of up to %d tokens of which fewer are accepted "
                    "than the longest output has",
                    i, s->accepted[i], drafted, MOST);
}

// Output tokens that no step wrote, such as that of the prefill, are steps without a draft, and
// come first. Logged steps may have written more tokens than the output has in its tokenization;
// the request then has as many as they wrote, of which the last are token 0.
static int view_steps(const dsc_config *config, const dsc_trace_info *trace, dsc_request *q,
                      dsc_arena *arena, dsc_error *err)
{
    if (trace->steps == DSC_STEPS_NONE)
        return dsc_fail(err, DSC_EUSAGE,
                        "method recorded-steps needs recorded steps, which the trace lacks");
    if (!trace->has_step_drafted && !config->parameter[STEP_LENGTH])
        return dsc_fail(err, DSC_EUSAGE,
                        "method recorded-steps: the trace does not contain the number of tokens "
                        "that each step drafted; --num-speculative-tokens N sets it");
    if (!q)
        return DSC_OK;
    const dsc_steps *s = &q->steps;
    int64_t written = 0, n = q->output.count;
    int rc = DSC_OK;
    for (int64_t i = 0; i < s->count && !rc; i++) {
        rc = check_step(config, trace, s, i, err);
        written += (int64_t)s->accepted[i] + 1;
    }
    int64_t at = n > written ? n - written : 0;
    if (trace->steps == DSC_STEPS_LOGGED && written > n)
        n = written;
    uint16_t *accepted, *drafted;
    int32_t *token;
    if (!rc)
        rc = dsc_arena_new(arena, &accepted, (size_t)n, err);
    if (!rc)
        rc = dsc_arena_new(arena, &drafted, (size_t)n, err);
    if (!rc)
        rc = dsc_arena_new(arena, &token, (size_t)n, err);
    if (rc)
        return rc;
    memset(accepted, 0, (size_t)n * sizeof *accepted);
    memset(drafted, 0, (size_t)n * sizeof *drafted);
    for (int64_t i = 0; i < n; i++)
        token[i] = i < q->output.count ? q->output.id[i] : 0;
    for (int64_t i = 0; i < s->count && at < n; at += (int64_t)s->accepted[i++] + 1) {
        accepted[at] = s->accepted[i];
        drafted[at] = (uint16_t)drafted_by(config, s, i);
    }
    q->output = (dsc_token_view){token, n};
    q->accept[0] = accepted;
    q->accept[1] = drafted;
    return DSC_OK;
}

static int64_t most(const dsc_config *config)
{
    (void)config;
    return MOST;
}

// --- drafts --------------------------------------------------------------------------------------

// The last token of an output is always the target's own.
static int64_t matching(const dsc_request *q, int64_t position)
{
    const int64_t left = q->output.count - 1 - position, n = q->accept[0][position];
    return n < left ? n : left;
}

static bool is_bound(const dsc_config *config)
{
    return config->parameter[POLICY] == ORACLE;
}

static bool is_steps(const dsc_config *config)
{
    return config->drafter == &dsc_drafter_recorded_steps;
}

// Draft tokens at a position; 0: no draft.
static int64_t offered(const dsc_drafter_input *in, int64_t position, int64_t longest)
{
    const dsc_request *q = in->request;
    const int64_t n = q->accept[1]           ? q->accept[1][position]
                      : is_bound(in->config) ? matching(q, position)
                                             : longest;
    return n < longest ? n : longest;
}

static int64_t passes_of(const dsc_config *config)
{
    return config->parameter[is_steps(config) ? STEP_PASSES : PASSES];
}

// Appends `n` tokens that are in no output.
static int append_others(dsc_draft *draft, int64_t n, dsc_error *err)
{
    static const int32_t other[] = {-1, -1, -1, -1, -1, -1, -1, -1};
    enum { OTHERS = sizeof other / sizeof *other };
    int rc = DSC_OK;
    for (int64_t m; n > 0 && !rc; n -= m) {
        m = n < OTHERS ? n : OTHERS;
        rc = dsc_draft_append_chain(draft, (int32_t)draft->count - 1, other, (size_t)m, err);
    }
    return rc;
}

static int propose(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    const dsc_drafter_input *in = state;
    const dsc_request *q = in->request;
    const int64_t n = offered(in, length, is_steps(in->config) ? MOST : in->parameter[LENGTH]);
    const int64_t right = matching(q, length) < n ? matching(q, length) : n;
    const int64_t passes = passes_of(in->config);
    (void)output;
    int rc = dsc_draft_append_chain(draft, -1, q->output.id + length, (size_t)right, err);
    if (!rc)
        rc = append_others(draft, n - right, err);
    draft->started = n > 0;
    draft->draft_calls = passes == DSC_PASS_PER_TOKEN ? n : n ? passes : 0;
    draft->draft_call_tokens = draft->draft_calls;
    return rc;
}

static int match_lengths(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err)
{
    (void)err;
    for (size_t j = 0; j < count; j++) {
        out[j].passes = passes_of(in[j].config);
        for (int64_t i = 0; i < in[j].request->output.count; i++) {
            const int64_t n = offered(&in[j], i, longest), run = matching(in[j].request, i);
            out[j].available[i] = n ? (int32_t)n : -1;
            out[j].run[i] = (int32_t)(run < n ? run : n);
        }
    }
    return DSC_OK;
}

#define SHARED                                                                                     \
    .sees_output = true, .state_size = sizeof(dsc_drafter_input), .propose = propose,              \
    .match_lengths = match_lengths

const dsc_drafter_type dsc_drafter_recorded = {
    .name = "recorded",
    .summary = "replays recorded accept lengths by position, for every draft length",
    .source = "Liu et al. 2026, SpecDecode-Bench, arXiv 2601.11580",
    .engines = "none: the method that was recorded",
    .recording = "accept lengths at every position",
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .view = view_lengths,
    .is_bound = is_bound,
    SHARED,
};

const dsc_drafter_type dsc_drafter_recorded_steps = {
    .name = "recorded-steps",
    .summary = "replays the recorded steps of a run, as they were",
    .source = "no paper",
    .engines = "none: the method that was recorded",
    .recording = "steps",
    .synonyms = "steps",
    .option = step_options,
    .option_count = sizeof step_options / sizeof *step_options,
    .view = view_steps,
    .matches_steps = true,
    .limit = most,
    SHARED,
};
