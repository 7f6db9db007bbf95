// SPDX-License-Identifier: Apache-2.0
// LLMA (Yang et al. 2023, "Inference with Reference", Algorithms 1 and 2): when the last output
// tokens occur in a reference, the tokens that follow them there are the draft.
//
// The longest match of at least n tokens is used. As in the authors' code, a match is counted up to
// max(max_match, n) tokens, and the first of several longest ones is used. `--semantics code` also
// counts the current token in k, as that code does: k - 1 tokens are copied. The paper's text
// corresponds to --max-match 0 (no cap) and --tie random.
#include "base/rng.h"
#include "sim/draft/match_index.h"
#include "sim/drafter.h"

#include <string.h>

enum { N, K, MAX_MATCH, TIE, SEMANTICS, REFERENCES };
enum { TIE_FIRST, TIE_RANDOM };
enum { SEMANTICS_PAPER, SEMANTICS_CODE };
// clang-format off
static const dsc_option options[] = {
    {.name = "n", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "1", .min = 1, .max = 1024,
     .help = "match length: number of last output tokens that must occur in a reference"},
    {DSC_OPTION_DRAFT_LENGTH, .initial = "18", .min = 0, .max = 1000000, .length = true,
     .help = "copy length: number of tokens copied into the draft (see --semantics)"},
    {.name = "max-match", .kind = DSC_OPTION_INT, .metavar = "L", .initial = "5", .min = 0,
     .max = 1000000,
     .help = "prefer longer matches up to max(L, n) tokens; 0: without limit"},
    {.name = "tie", .kind = DSC_OPTION_CHOICE, .choices = "first|random", .initial = "first",
     .help = "which of several longest matches is copied from"},
    {.name = "semantics", .kind = DSC_OPTION_CHOICE, .choices = "paper|code", .initial = "paper",
     .length = true,
     .help = "paper: N tokens are copied; code: N counts the current token too, N - 1 are copied"},
    {.name = "references", .kind = DSC_OPTION_CHOICE, .choices = "docs|turns|prompt|all",
     .initial = "docs",
     .help = "copy from documents, earlier turns, the prompt, or all (the prompt last)"},
};
// clang-format on

static int64_t limit(const dsc_config *config)
{
    const int64_t *parameter = config->parameter;
    int64_t k = parameter[K];
    return parameter[SEMANTICS] == SEMANTICS_CODE && k > 0 ? k - 1 : k;
}

static int32_t cap_of(const int64_t *parameter)
{
    int64_t cap = parameter[MAX_MATCH] ? parameter[MAX_MATCH] : INT32_MAX;
    return (int32_t)(cap < parameter[N] ? parameter[N] : cap);
}

static int build(dsc_match_index *index, const dsc_drafter_input *in, int64_t references,
                 dsc_error *err)
{
    static const int which[] = {DSC_INDEX_DOCUMENTS, DSC_INDEX_TURNS, DSC_INDEX_PROMPT,
                                DSC_INDEX_DOCUMENTS | DSC_INDEX_TURNS | DSC_INDEX_PROMPT};
    return dsc_match_index_build(index, in->request, which[references], in->arena, err);
}

static double tie_break(const dsc_drafter_input *in, int64_t position)
{
    return dsc_rng_uniform(in->seed, (uint64_t)in->request->index, (uint32_t)position, DSC_RNG_TIE);
}

typedef struct state {
    dsc_match_index index;
    dsc_drafter_input in;
} state;

static int begin(void *memory, const dsc_drafter_input *in, dsc_error *err)
{
    state *s = memory;
    *s = (state){.in = *in};
    return build(&s->index, in, in->parameter[REFERENCES], err);
}

static int propose(void *memory, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err)
{
    const state *s = memory;
    const int64_t *parameter = s->in.parameter;
    int32_t cap = cap_of(parameter);
    bool random = parameter[TIE] == TIE_RANDOM;
    double u = random ? tie_break(&s->in, length) : 0;
    dsc_match m;
    dsc_match_find(&s->index, output, length, &cap, 1, random ? &u : NULL, &m);
    draft->started = m.length >= parameter[N];
    if (!draft->started)
        return DSC_OK;
    int64_t available = s->index.end[m.at - 1] - m.at, most = limit(s->in.config);
    return dsc_draft_append_chain(draft, -1, s->index.text + m.at,
                                  (size_t)(available < most ? available : most), err);
}

// Settings that share an index and a way to break ties, and differ in n and cap.
typedef struct family {
    int64_t references, tie;
    int32_t cap[DSC_MAX_CAPS];      // ascending
    int32_t shortest[DSC_MAX_CAPS]; // the smallest n of each cap
    size_t caps;
    int32_t *length, *available, *run; // [caps][output tokens]; length 0 where no draft starts
} family;

static void add_setting(family *f, const int64_t *parameter)
{
    int32_t cap = cap_of(parameter), n = (int32_t)parameter[N];
    size_t c = 0;
    while (c < f->caps && f->cap[c] < cap)
        c++;
    if (c < f->caps && f->cap[c] == cap) {
        f->shortest[c] = n < f->shortest[c] ? n : f->shortest[c];
        return;
    }
    memmove(f->cap + c + 1, f->cap + c, (f->caps - c) * sizeof *f->cap);
    memmove(f->shortest + c + 1, f->shortest + c, (f->caps - c) * sizeof *f->shortest);
    f->cap[c] = cap;
    f->shortest[c] = n;
    f->caps++;
}

// Number of tokens, up to `most`, from text position `at` on that agree with the output.
static int32_t run_length(const dsc_match_index *x, int32_t at, const int32_t *output, int64_t most)
{
    int32_t run = 0;
    while (run < most && x->text[at + run] == output[run])
        run++;
    return run;
}

// Match, draft and agreement at output position i, for every cap of the family.
static void replay_position(family *f, const dsc_match_index *x, dsc_token_view output, int64_t i,
                            int64_t longest, const dsc_match *match)
{
    int32_t at = 0, available = 0, run = 0;
    for (size_t c = 0; c < f->caps; c++) {
        if (match[c].length < f->shortest[c])
            continue;
        if (match[c].at != at) { // often equal to that of the previous cap
            at = match[c].at;
            available = x->end[at - 1] - at;
            int64_t most = output.count - 1 - i;
            most = most < available ? most : available;
            run = run_length(x, at, output.id + i, most < longest ? most : longest);
        }
        size_t place = c * (size_t)output.count + (size_t)i;
        f->length[place] = match[c].length;
        f->available[place] = available;
        f->run[place] = run;
    }
}

// Finds the match of every family member at every output position.
static int replay(family *f, const dsc_drafter_input *in, int64_t longest, dsc_error *err)
{
    dsc_token_view output = in->request->output;
    int32_t **array[] = {&f->length, &f->available, &f->run};
    dsc_match_index index;
    int rc = build(&index, in, f->references, err);
    const size_t cells = f->caps * (size_t)output.count;
    for (size_t a = 0; a < 3 && !rc; a++) {
        rc = dsc_arena_new(in->arena, array[a], cells, err);
        if (!rc)
            memset(*array[a], 0, cells * sizeof **array[a]);
    }
    for (int64_t i = 0; i < output.count && !rc; i++) {
        dsc_match match[DSC_MAX_CAPS];
        bool random = f->tie == TIE_RANDOM;
        double u = random ? tie_break(in, i) : 0;
        dsc_match_find(&index, output.id, i, f->cap, f->caps, random ? &u : NULL, match);
        replay_position(f, &index, output, i, longest, match);
    }
    return rc;
}

// Selects one setting: a draft starts where the match has at least n tokens.
static void select_starts(const family *f, const dsc_drafter_input *in, dsc_match_lengths *out)
{
    size_t n = (size_t)in->request->output.count, c = 0;
    while (f->cap[c] != cap_of(in->parameter))
        c++;
    const int32_t *length = f->length + c * n, *available = f->available + c * n,
                  *run = f->run + c * n;
    int32_t shortest = (int32_t)in->parameter[N];
    int32_t *restrict to_available = out->available, *restrict to_run = out->run;
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        to_available[i] = length[i] >= shortest ? available[i] : -1;
        to_run[i] = length[i] >= shortest ? run[i] : 0;
    }
}

static int match_lengths(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err)
{
    bool *done;
    int rc = dsc_arena_new(in[0].arena, &done, count, err);
    if (rc)
        return rc;
    memset(done, 0, count * sizeof *done);
    for (size_t first = 0; first < count && !rc; first++) {
        if (done[first])
            continue;
        family f = {.references = in[first].parameter[REFERENCES], .tie = in[first].parameter[TIE]};
        size_t member[DSC_MAX_CAPS], members = 0;
        for (size_t j = first; j < count && members < DSC_MAX_CAPS; j++)
            if (!done[j] && in[j].parameter[REFERENCES] == f.references &&
                in[j].parameter[TIE] == f.tie) {
                add_setting(&f, in[j].parameter);
                member[members++] = j;
                done[j] = true;
            }
        rc = replay(&f, &in[first], longest, err);
        for (size_t m = 0; m < members && !rc; m++)
            select_starts(&f, &in[member[m]], &out[member[m]]);
    }
    return rc;
}

const dsc_drafter_type dsc_drafter_llma = {
    .name = "llma",
    .summary = "copy from references after a match of the last n tokens (LLMA)",
    .source = "Yang et al. 2023, Inference with Reference, arXiv 2304.04487",
    .engines = "none",
    .recording = "token ids and references",
    .state_size = sizeof(state),
    .option = options,
    .option_count = sizeof options / sizeof *options,
    .limit = limit,
    .begin = begin,
    .propose = propose,
    .match_lengths = match_lengths,
};
