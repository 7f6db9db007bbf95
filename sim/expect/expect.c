// SPDX-License-Identifier: Apache-2.0
// Exact replay: the steps of a run are a walk over two arrays, the tokens that a draft at each
// position offers and how many of them agree with the output. Stretches where nothing is accepted
// are crossed in one step, and configurations are walked side by side.
#include "sim/expect/expect.h"

#include <string.h>

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

// Whether two configurations differ only in options that bound the draft's length.
static bool same_match_lengths(const dsc_config *a, const dsc_config *b)
{
    for (size_t o = 0; o < a->drafter->option_count; o++)
        if (!a->drafter->option[o].length &&
            (a->parameter[o] != b->parameter[o] || a->real[o] != b->real[o] ||
             !same_text(a->text[o], b->text[o])))
            return false;
    return true;
}

int dsc_plan_init(dsc_plan *plan, const dsc_config *config, size_t count, dsc_error *err)
{
    *plan = (dsc_plan){.config = config, .count = count, .end_token = -1};
    int rc = dsc_arena_new(&plan->memory, &plan->first, count, err);
    if (!rc)
        rc = dsc_arena_new(&plan->memory, &plan->start, count + 1, err);
    if (!rc)
        rc = dsc_arena_new(&plan->memory, &plan->order, count, err);
    if (!rc)
        rc = dsc_arena_new(&plan->memory, &plan->limit, count, err);
    if (rc) {
        dsc_plan_fini(plan);
        return rc;
    }
    plan->start[0] = 0;
    // The members of a group need not be neighbors: each is found by a pass over the rest.
    size_t placed = 0;
    for (size_t c = 0; c < count; c++) {
        int64_t limit = dsc_config_limit(&config[c]);
        plan->limit[c] = (int32_t)(limit > INT32_MAX ? INT32_MAX : limit);
        plan->longest = limit > plan->longest ? limit : plan->longest;
        bool known = false;
        for (size_t g = 0; g < plan->groups && !known; g++)
            known = same_match_lengths(&config[c], &config[plan->first[g]]);
        if (known)
            continue;
        plan->first[plan->groups++] = c;
        for (size_t d = c; d < count; d++)
            if (same_match_lengths(&config[c], &config[d]))
                plan->order[placed++] = d;
        plan->start[plan->groups] = placed;
    }
    return DSC_OK;
}

void dsc_plan_fini(dsc_plan *plan)
{
    dsc_arena_fini(&plan->memory);
    *plan = (dsc_plan){0};
}

// A stretch of a walk: from position i over the positions where nothing can be accepted, one call
// each, up to and including the next one where something can be.
typedef struct stretch {
    int32_t past;  // the position after it, accepted tokens not included
    int32_t run;   // draft tokens that can be accepted at its end; 0 at the end of the output
    int32_t whole; // 1: the draft at its end has no more than these
} stretch;

// Configurations that are counted together, one for each bit of track.edge.
enum { TILE = 32 };

// A group of configurations on one request. Drafts are counted at positions, not along each walk:
// at a position, most configurations of a tile either all begin a call or all pass over it as an
// accepted token. The track contains the counts of the majority, a lane its difference from them.
typedef struct track {
    const dsc_match_lengths *match; // [n]
    int32_t longest;                // no draft has more tokens; >= 1
    stretch *from;                  // [n + 1]; the last is empty and leads to itself
    uint32_t *edge; // [n + 1] lanes that begin or end passing over accepted tokens; 0 between tiles
    int32_t *drafts; // [longest + 1] calls on drafts of m tokens, m < longest
    int32_t *before; // [longest + 1] calls on drafts of fewer than m tokens
    int64_t *tokens; // [longest + 1] draft tokens in these
    int32_t idle;    // calls that began no draft
    int64_t prompt;  // tokens before the output
} track;

// One configuration on its way from the first to the last output token.
typedef struct walker {
    int32_t at, limit;
    uint32_t bit;               // its lane in track.edge
    int64_t *histogram, *whole; // of dsc_counts
    int64_t accepted;
    uint64_t places; // sum over accepted tokens of 2 x place in the output + 1
} walker;

// One configuration of a tile. The last two lines are differences from the majority's counts.
typedef struct lane {
    walker walker;
    dsc_counts *counts;
    int64_t steps;                // of the walker, including those that it waited at the end
    int32_t cut;                  // least of `limit` and track.longest
    int32_t last;                 // the last element of counts->lengths that is used
    int32_t idle, empty, shorter; // calls without a draft, with 0 and with less than `cut` tokens
    int64_t tokens;               // draft tokens in `shorter`
} lane;

static void lay_stretches(const track *t, int32_t n)
{
    const int32_t *available = t->match->available, *run = t->match->run;
    stretch s = t->from[n] = (stretch){.past = n};
    for (int32_t i = n - 1; i >= 0; i--) {
        if (run[i] > 0 || i == n - 1)
            s = (stretch){i + 1, run[i], run[i] == available[i]};
        t->from[i] = s;
    }
}

static inline void advance(const stretch *from, uint32_t *edge, walker *w)
{
    const stretch *s = &from[w->at];
    int32_t a = s->run < w->limit ? s->run : w->limit;
    w->accepted += a;
    w->histogram[a]++;
    w->whole[a] += s->whole;
    w->at = s->past + a;
    edge[s->past] ^= w->bit;
    edge[w->at] ^= w->bit;
    w->places += (uint64_t)(uint32_t)a * (uint32_t)(s->past + w->at); // none is below 0
}

static lane set_out(const track *t, size_t place, int32_t limit, dsc_counts *counts)
{
    int32_t cut = limit < t->longest ? limit : t->longest;
    return (lane){.walker = {.limit = limit,
                             .bit = UINT32_C(1) << place,
                             .histogram = counts->histogram,
                             .whole = counts->whole},
                  .counts = counts,
                  .cut = cut,
                  .last =
                      counts->lengths_length <= cut ? (int32_t)counts->lengths_length - 1 : cut};
}

// Two walkers at a time hide the latency of a step, which depends on the one before. The walker
// that reaches the end first stays on the last, empty stretch.
static void walk_pair(const track *t, int32_t n, lane *first, lane *second)
{
    walker a = first->walker, b = second->walker;
    int64_t steps = 0;
    for (; a.at < n || b.at < n; steps++) {
        advance(t->from, t->edge, &a);
        advance(t->from, t->edge, &b);
    }
    first->walker = a;
    second->walker = b;
    first->steps = second->steps = steps;
}

static void walk(const track *t, int32_t n, lane *l)
{
    for (; l->walker.at < n; l->steps++)
        advance(t->from, t->edge, &l->walker);
}

// Adds `calls` on a draft that has `available` tokens to each lane of `which`.
static inline void differ(lane *lanes, uint32_t which, int32_t available, int32_t calls)
{
    const int32_t m = available > 0 ? available : 0;
    for (; which; which &= which - 1) {
        lane *x = &lanes[__builtin_ctz(which)];
        x->idle += available < 0 ? calls : 0;
        x->empty += m == 0 ? calls : 0;
        if (m >= x->cut)
            continue;
        x->shorter += calls;
        x->tokens += (int64_t)calls * m;
        x->counts->lengths[m < x->last ? m : x->last] += calls;
    }
}

// Counts the calls on drafts of less than `longest` tokens: there is one at each position but the
// accepted ones, which the walks marked in `edge`. All other calls are on the longest drafts.
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
count_drafts(track *t, int32_t n, lane *lanes, size_t count)
{
    const int32_t *available = t->match->available, longest = t->longest;
    const uint32_t all = UINT32_MAX >> (TILE - count);
    uint32_t passed = 0;
    int32_t idle = 0;
    memset(t->drafts, 0, ((size_t)longest + 1) * sizeof *t->drafts);
    for (int32_t i = 0; i < n; i++) {
        passed ^= t->edge[i];
        t->edge[i] = 0;
        if (available[i] >= longest || passed == all)
            continue;
        if (passed && __builtin_popcount(passed) > (int)count / 2) {
            differ(lanes, all & ~passed, available[i], 1);
            continue;
        }
        t->drafts[available[i] > 0 ? available[i] : 0]++;
        idle += available[i] < 0;
        differ(lanes, passed, available[i], -1);
    }
    t->edge[n] = 0;
    t->idle = idle;
    t->before[0] = 0;
    t->tokens[0] = 0;
    for (int32_t m = 0; m < longest; m++) {
        t->before[m + 1] = t->before[m] + t->drafts[m];
        t->tokens[m + 1] = t->tokens[m] + (int64_t)m * t->drafts[m];
    }
}

// `longer`: calls on drafts that have, or are cut to, l->cut tokens.
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
add_lengths(const lane *l, const track *t, int64_t longer)
{
    const int32_t *drafts = t->drafts, last = l->last, limit = l->walker.limit;
    int64_t *lengths = l->counts->lengths;
#pragma omp simd
    for (int32_t m = 0; m < last; m++)
        lengths[m] += drafts[m];
    lengths[last] += longer + t->before[l->cut] - t->before[last];
    if (limit < l->counts->histogram_length)
        l->counts->whole[limit] = l->counts->histogram[limit];
    l->counts->whole[0] = lengths[0]; // calls without a draft
}

// Calls that accept nothing are not counted one by one: each output token is either accepted or a
// call's own. The steps that a walker waited at the end are in the histogram and in `steps`.
static void add_walk(const lane *l, int32_t n, const track *t)
{
    const walker *w = &l->walker;
    dsc_counts *counts = l->counts;
    int64_t calls = n - w->accepted, places = (int64_t)n * (n - 1) / 2, prompt = t->prompt;
    int64_t longer = calls - t->before[l->cut] - l->shorter;
    int64_t draft_tokens = t->tokens[l->cut] + l->tokens + longer * l->cut;
    const int64_t drafts = w->limit ? calls - t->drafts[0] - l->empty : 0;
    counts->histogram[0] += calls - l->steps;
    counts->requests++;
    counts->output_tokens += n;
    counts->target_calls += calls;
    counts->target_call_tokens += calls + draft_tokens;
    counts->target_call_context += calls * prompt + places - ((int64_t)w->places - w->accepted) / 2;
    counts->output_context += n * prompt + places;
    counts->num_drafts_started += calls - t->idle - l->idle;
    counts->num_drafts += drafts;
    counts->num_draft_tokens += draft_tokens;
    counts->num_accepted_tokens += w->accepted;
    const int64_t per_draft = t->match->passes;
    const int64_t passes = per_draft == DSC_PASS_PER_TOKEN ? draft_tokens : per_draft * drafts;
    counts->draft_calls += passes;
    counts->draft_call_tokens += passes;
    add_lengths(l, t, longer);
}

// Walks all configurations of group g, a tile at a time.
static void walk_group(const dsc_plan *plan, size_t g, int32_t n, track *t, dsc_counts *counts)
{
    lay_stretches(t, n);
    for (size_t first = plan->start[g]; first < plan->start[g + 1]; first += TILE) {
        const size_t *order = plan->order + first;
        size_t count = plan->start[g + 1] - first, l = 0;
        lane lanes[TILE];
        count = count < TILE ? count : TILE;
        for (size_t c = 0; c < count; c++)
            lanes[c] = set_out(t, c, plan->limit[order[c]], &counts[order[c]]);
        for (; l + 1 < count; l += 2)
            walk_pair(t, n, &lanes[l], &lanes[l + 1]);
        if (l < count)
            walk(t, n, &lanes[l]);
        count_drafts(t, n, lanes, count);
        for (size_t c = 0; c < count; c++)
            add_walk(&lanes[c], n, t);
    }
}

// The most tokens of a draft of any group, at most plan->longest, at least 1.
static int32_t longest_draft(const dsc_plan *plan, const dsc_match_lengths *match_lengths,
                             int32_t n)
{
    int32_t longest = 1;
    for (size_t g = 0; g < plan->groups; g++) {
        const int32_t *available = match_lengths[g].available;
#pragma omp simd reduction(max : longest)
        for (int32_t i = 0; i < n; i++)
            longest = available[i] > longest ? available[i] : longest;
    }
    return longest > plan->longest && plan->longest ? (int32_t)plan->longest : longest;
}

static int allocate(track *t, size_t n, dsc_arena *arena, dsc_error *err)
{
    const size_t lengths = (size_t)t->longest + 1;
    int rc = dsc_arena_new(arena, &t->from, n + 1, err);
    if (!rc)
        rc = dsc_arena_new(arena, &t->edge, n + 1, err);
    if (!rc)
        rc = dsc_arena_new(arena, &t->drafts, lengths, err);
    if (!rc)
        rc = dsc_arena_new(arena, &t->before, lengths, err);
    if (!rc)
        rc = dsc_arena_new(arena, &t->tokens, lengths, err);
    if (!rc)
        memset(t->edge, 0, (n + 1) * sizeof *t->edge);
    return rc;
}

// The requests that the groups replay. All have the same output.
static int view_requests(const dsc_plan *plan, const dsc_request *request, dsc_arena *arena,
                         dsc_request **out, dsc_error *err)
{
    const dsc_drafter_type *d = plan->config[0].drafter;
    int rc = dsc_arena_new(arena, out, plan->groups, err);
    for (size_t g = 0; g < plan->groups && !rc; g++) {
        (*out)[g] = *request;
        if (d->view)
            rc = d->view(&plan->config[plan->first[g]], plan->trace, &(*out)[g], arena, err);
    }
    return rc;
}

int dsc_expect_run(const dsc_plan *plan, const dsc_request *request, uint64_t seed,
                   dsc_arena *arena, dsc_counts *counts, dsc_error *err)
{
    dsc_request *viewed;
    int rc = view_requests(plan, request, arena, &viewed, err);
    if (rc)
        return rc;
    if (viewed->output.count > INT32_MAX / 4)
        return dsc_fail(err, DSC_EINPUT, "the output has more than %d tokens", INT32_MAX / 4);
    int32_t n = (int32_t)viewed->output.count;
    dsc_drafter_input *input;
    dsc_match_lengths *match_lengths;
    track t = {.prompt = request->prompt.count};
    rc = dsc_arena_new(arena, &input, plan->groups, err);
    if (!rc)
        rc = dsc_arena_new(arena, &match_lengths, plan->groups, err);
    if (rc)
        return rc;
    for (size_t g = 0; g < plan->groups; g++) {
        dsc_history *history = plan->history ? &plan->history[plan->first[g]] : NULL;
        input[g] = (dsc_drafter_input){.request = &viewed[g],
                                       .config = &plan->config[plan->first[g]],
                                       .parameter = plan->config[plan->first[g]].parameter,
                                       .seed = seed,
                                       .arena = arena,
                                       .end_token = plan->end_token,
                                       .history = history};
    }
    for (size_t g = 0; g < plan->groups && !rc; g++) {
        match_lengths[g].passes = 0;
        rc = dsc_arena_new(arena, &match_lengths[g].available, (size_t)n, err);
        if (!rc)
            rc = dsc_arena_new(arena, &match_lengths[g].run, (size_t)n, err);
    }
    if (!rc)
        rc = plan->config[0].drafter->match_lengths(input, plan->groups, plan->longest,
                                                    match_lengths, err);
    if (rc)
        return rc;
    t.longest = longest_draft(plan, match_lengths, n);
    rc = allocate(&t, (size_t)n, arena, err);
    for (size_t g = 0; g < plan->groups && !rc; g++) {
        t.match = &match_lengths[g];
        walk_group(plan, g, n, &t, counts);
    }
    // A call is on one token more than its draft, which is in `lengths`.
    for (size_t c = 0; c < plan->count && !rc; c++)
        if (counts[c].width)
            memcpy(counts[c].width, counts[c].lengths,
                   (size_t)counts[c].lengths_length * sizeof *counts[c].width);
    return rc;
}
