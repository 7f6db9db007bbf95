// SPDX-License-Identifier: Apache-2.0
// Prompt lookup decoding (Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding; the PLD row
// of Spec-Bench): the last n tokens of prompt and output are searched in both, for n from the
// largest to the smallest; the tokens after the first occurrence are the draft.
//
// Three programs, three meanings of "first occurrence", and one that takes the last:
//  - original (Saxena's function, run by Spec-Bench): the first one that all `length` tokens follow
//    and that ends before the last n tokens begin; as many tokens are always copied. (That program
//    proposes the token 100 when nothing is found; here nothing is proposed.)
//  - transformers (Hugging Face's PromptLookupCandidateGenerator): the first one; what follows may
//    be shorter and ends before an EOS token.
//  - vllm (NgramProposer): the first one; what follows may be shorter, EOS tokens included.
// These only bound the position of the occurrence from above, so only the very first occurrence of
// each n-gram can qualify: sim/draft/first_index.h. Unlike LLMA, the first step drafts as well.
//  - llama.cpp (common_ngram_simple_draft in common/ngram-map.cpp at 6870ab7, drafts of
//    --spec-type ngram-simple): the last one of one n that ends before the token next to last, of
//    sim/draft/last_index.h. An occurrence at the beginning of the text does not count. The draft
//    ends before the last token of the text and has n tokens or more; texts of less than n + length
//    + 3 tokens have none. The server drafts from the first token of the output on.
#include "sim/draft/first_index.h"
#include "sim/draft/last_index.h"
#include "sim/drafter.h"

#include <inttypes.h>
#include <string.h>

enum { N_MOST, N_LEAST, LENGTH, SEMANTICS };
enum { VLLM, TRANSFORMERS, ORIGINAL, LLAMA_CPP };
// clang-format off
static const dsc_option options[] = {
    {.name = "prompt-lookup-max", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "3", .min = 1,
     .max = DSC_FIRST_MOST, .help = "longest n-gram that is looked up; it is tried first"},
    {.name = "prompt-lookup-min", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "1", .min = 1,
     .max = DSC_FIRST_MOST,
     .help = "shortest n-gram that is looked up; it is tried last (not used by --semantics "
             "llama.cpp)"},
    {DSC_OPTION_DRAFT_LENGTH, .initial = "10", .min = 1, .max = 1000000,
     .help = "number of tokens copied (see --semantics)"},
    {.name = "semantics", .kind = DSC_OPTION_CHOICE,
     .choices = "vllm|transformers|original|llama.cpp",
     .initial = "original",
     .help = "original: N tokens must follow the first match; vllm: fewer may follow; "
             "transformers: as vllm, up to an EOS token; llama.cpp: the last match of "
             "--prompt-lookup-max tokens, which as many tokens must follow"},
};
// clang-format on

static int prepare(const dsc_config *config, void **prepared, dsc_error *err)
{
    *prepared = NULL;
    if (config->parameter[N_LEAST] <= config->parameter[N_MOST])
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--prompt-lookup-min %" PRId64 " exceeds --prompt-lookup-max %" PRId64,
                    config->parameter[N_LEAST], config->parameter[N_MOST]);
}

// Returns whether the occurrence before `start` of the n-gram before text position `end` qualifies.
static bool serves(const int64_t *parameter, int64_t n, int64_t start, int64_t end)
{
    if (start == 0)
        return false;
    return parameter[SEMANTICS] != ORIGINAL ||
           (start + parameter[LENGTH] <= end && start < end - n);
}

// Where the draft of llama.cpp starts after the n-gram before text position `end`, and its length;
// 0: there is none.
static int64_t last_match(const dsc_last_index *x, int64_t length, int64_t end, int64_t *copied)
{
    int64_t start = end < x->n + length + 3 ? 0 : x->previous[end];
    if (start == end - 1) // it shares all but one token with the n-gram itself
        start = x->previous[start];
    *copied = end - 1 - start < length ? end - 1 - start : length;
    return end > x->prompt && start > x->n && *copied >= x->n ? start : 0;
}

typedef struct state {
    union {
        dsc_first_index index;
        dsc_last_index last; // of llama.cpp
    };
    const int64_t *parameter;
    const dsc_model *target;
} state;

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    s->parameter = in->parameter;
    s->target = in->models->target;
    if (in->parameter[SEMANTICS] == LLAMA_CPP)
        return dsc_last_begin(&s->last, in->request->prompt, in->parameter[N_MOST], in->arena, err);
    return dsc_first_begin(&s->index, in->request->prompt, in->parameter[N_MOST], in->arena, err);
}

static int propose_last(state *s, const int32_t *output, int64_t length, dsc_draft *draft,
                        dsc_error *err)
{
    dsc_last_index *x = &s->last;
    const int64_t known = x->count - x->prompt;
    int64_t copied;
    int rc = dsc_last_append(x, output + known, length - known, err);
    const int64_t start = rc ? 0 : last_match(x, s->parameter[LENGTH], x->count, &copied);
    if (!start)
        return rc;
    draft->started = true;
    return dsc_draft_append_chain(draft, -1, x->text + start, (size_t)copied, err);
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    state *s = memory;
    const int64_t *parameter = s->parameter;
    if (parameter[SEMANTICS] == LLAMA_CPP)
        return propose_last(s, output, length, draft, err);
    dsc_first_index *x = &s->index;
    int64_t known = x->count - x->prompt;
    int rc = dsc_first_append(x, output + known, length - known, err);
    if (rc)
        return rc;
    int64_t n = parameter[N_MOST];
    while (n >= parameter[N_LEAST] && !serves(parameter, n, x->first[n - 1], x->count))
        n--;
    if (n < parameter[N_LEAST])
        return DSC_OK;
    const int32_t *token = x->text + x->first[n - 1];
    int64_t most = x->count - x->first[n - 1], copied = 0;
    most = most < parameter[LENGTH] ? most : parameter[LENGTH];
    bool stops = parameter[SEMANTICS] == TRANSFORMERS;
    while (copied < most && !(stops && dsc_model_is_end(s->target, token[copied])))
        copied++;
    draft->started = copied > 0;
    return dsc_draft_append_chain(draft, -1, token, (size_t)copied, err);
}

// --- replay: all positions at once ---------------------------------------------------------------

// For every output position and every n: where a copy starts, and how many of its tokens agree with
// the recorded output.
typedef struct replay {
    int64_t least, most; // n
    int64_t count;       // output positions
    int32_t *start;      // [count][most - least + 1] positions of the text, 0: no occurrence
    int32_t *run;        // [count][most - least + 1] tokens that agree
    int32_t *end;        // [text] the first position of an EOS token from here on
    int64_t prompt;      // tokens before the output
} replay;

// Number of tokens, up to `most`, from text position `start` to `end` that agree with written[].
static int32_t run_length(const int32_t *text, int64_t start, int64_t end, const int32_t *written,
                          int64_t most)
{
    int64_t run = 0;
    most = most < end - start ? most : end - start;
    while (run < most && text[start + run] == written[run])
        run++;
    return (int32_t)run;
}

static void replay_position(const replay *r, const dsc_first_index *x, const int32_t *output,
                            int64_t i, int64_t longest)
{
    size_t width = (size_t)(r->most - r->least + 1);
    int32_t *start = r->start + (size_t)i * width, *run = r->run + (size_t)i * width;
    int64_t left = r->count - 1 - i, most = left < longest ? left : longest;
    for (size_t c = 0; c < width; c++) {
        start[c] = x->first[r->least - 1 + (int64_t)c];
        if (c && start[c] == start[c - 1])
            run[c] = run[c - 1];
        else
            run[c] = start[c] ? run_length(x->text, start[c], x->count, output + i, most) : 0;
    }
}

static int replay_all(replay *r, const dsc_drafter_input *in, int64_t longest, dsc_error *err)
{
    dsc_token_view output = in->request->output;
    size_t cells = (size_t)output.count * (size_t)(r->most - r->least + 1);
    dsc_first_index x;
    r->count = output.count;
    r->prompt = in->request->prompt.count;
    int rc = dsc_arena_new(in->arena, &r->start, cells, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &r->run, cells, err);
    if (!rc)
        rc = dsc_first_begin(&x, in->request->prompt, r->most, in->arena, err);
    for (int64_t i = 0; i < output.count && !rc; i++) {
        replay_position(r, &x, output.id, i, longest);
        rc = dsc_first_append(&x, output.id + i, 1, err);
    }
    return rc;
}

// The EOS tokens of the text, which --semantics transformers does not copy.
static int find_ends(replay *r, const dsc_drafter_input *in, dsc_error *err)
{
    dsc_token_view prompt = in->request->prompt, output = in->request->output;
    int64_t count = prompt.count + output.count;
    int rc = dsc_arena_new(in->arena, &r->end, (size_t)count + 1, err);
    if (rc)
        return rc;
    r->end[count] = (int32_t)count;
    for (int64_t t = count - 1; t >= 0; t--) {
        int32_t token = t < prompt.count ? prompt.id[t] : output.id[t - prompt.count];
        r->end[t] = token == in->end_token ? (int32_t)t : r->end[t + 1];
    }
    return DSC_OK;
}

// Selects one setting.
static void choose(const replay *r, const int64_t *parameter, dsc_match_lengths *out)
{
    const int64_t width = r->most - r->least + 1;
    for (int64_t i = 0; i < r->count; i++) {
        const int32_t *start = r->start + i * width, *run = r->run + i * width;
        int64_t end = r->prompt + i, n = parameter[N_MOST];
        while (n >= parameter[N_LEAST] && !serves(parameter, n, start[n - r->least], end))
            n--;
        bool found = n >= parameter[N_LEAST];
        int32_t from = found ? start[n - r->least] : 0, available = (int32_t)end - from;
        if (found && parameter[SEMANTICS] == TRANSFORMERS && r->end[from] < end) {
            available = r->end[from] - from;
            found = available > 0;
        }
        out->available[i] = found ? available : -1;
        out->run[i] = !found ? 0 : run[n - r->least] < available ? run[n - r->least] : available;
    }
}

// All positions of one setting of llama.cpp; `x` is of the whole text.
static void replay_last(const dsc_last_index *x, int64_t length, dsc_match_lengths *out)
{
    const int32_t *output = x->text + x->prompt;
    const int64_t count = x->count - x->prompt;
    for (int64_t i = 0; i < count; i++) {
        int64_t copied, most = count - 1 - i;
        const int64_t start = last_match(x, length, x->prompt + i, &copied);
        out->available[i] = start ? (int32_t)copied : -1;
        out->run[i] = start ? run_length(x->text, start, start + copied, output + i, most) : 0;
    }
}

// Settings of llama.cpp share the index of their n-grams.
static int match_last(const dsc_drafter_input *in, size_t count, dsc_match_lengths *out,
                      dsc_error *err)
{
    dsc_last_index index[DSC_FIRST_MOST + 1] = {{0}};
    const dsc_token_view prompt = in->request->prompt, output = in->request->output;
    int rc = DSC_OK;
    for (size_t j = 0; j < count && !rc; j++) {
        const int64_t n = in[j].parameter[N_MOST];
        dsc_last_index *x = &index[n];
        if (in[j].parameter[SEMANTICS] != LLAMA_CPP)
            continue;
        if (!x->n) {
            rc = dsc_last_begin(x, prompt, n, in->arena, err);
            if (!rc)
                rc = dsc_last_append(x, output.id, output.count, err);
        }
        if (!rc)
            replay_last(x, in[j].parameter[LENGTH], &out[j]);
    }
    return rc;
}

static int match_lengths(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err)
{
    replay r = {.least = DSC_FIRST_MOST, .most = 1};
    bool any = false;
    int rc = match_last(in, count, out, err);
    for (size_t j = 0; j < count; j++) {
        int64_t most = in[j].parameter[N_MOST], least = in[j].parameter[N_LEAST];
        if (in[j].parameter[SEMANTICS] == LLAMA_CPP)
            continue;
        any = true;
        r.most = most > r.most ? most : r.most;
        r.least = least < r.least ? least : r.least;
    }
    if (rc || !any)
        return rc;
    rc = find_ends(&r, in, err);
    if (!rc)
        rc = replay_all(&r, in, longest, err);
    for (size_t j = 0; j < count && !rc; j++)
        if (in[j].parameter[SEMANTICS] != LLAMA_CPP)
            choose(&r, in[j].parameter, &out[j]);
    return rc;
}

const dsc_drafter_type dsc_drafter_ngram = {
    .name = "ngram",
    .summary =
        "copy the tokens that followed the last n tokens earlier in the text (prompt lookup)",
    .source = "Saxena 2023, prompt-lookup-decoding, no paper",
    .engines = "vLLM ngram; transformers prompt_lookup_num_tokens; llama.cpp ngram-simple; "
               "TensorRT-LLM NGram is similar",
    .recording = "token ids",
    .synonyms = "pld|prompt-lookup",
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .prepare = prepare,
    .begin = begin,
    .propose = propose,
    .match_lengths = match_lengths,
};
