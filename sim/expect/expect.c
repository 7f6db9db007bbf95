// SPDX-License-Identifier: Apache-2.0
// Exact replay: the steps of a run are a walk over two arrays, the tokens that a draft at each
// position offers and how many of them agree with the output. Stretches where nothing is accepted
// are crossed in one step, and configurations are walked side by side.
#include "sim/expect/expect.h"

#include <stdlib.h>
#include <string.h>

// Whether two configurations differ only in options that bound the draft's length.
static bool same_match_lengths(const dsc_config *a, const dsc_config *b)
{
    for (size_t o = 0; o < a->drafter->option_count; o++)
        if (!a->drafter->option[o].length &&
            (a->parameter[o] != b->parameter[o] || a->real[o] != b->real[o]))
            return false;
    return true;
}

int dsc_plan_init(dsc_plan *plan, const dsc_config *config, size_t count, dsc_error *err)
{
    *plan = (dsc_plan){.config = config, .count = count, .end_token = -1};
    int rc = dsc_new(&plan->first, count, err);
    if (!rc)
        rc = dsc_new(&plan->start, count + 1, err);
    if (!rc)
        rc = dsc_new(&plan->order, count, err);
    if (!rc)
        rc = dsc_new(&plan->limit, count, err);
    if (rc) {
        dsc_plan_fini(plan);
        return rc;
    }
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
    free(plan->first);
    free(plan->start);
    free(plan->order);
    free(plan->limit);
    *plan = (dsc_plan){0};
}

// A stretch of a walk: from position i over the positions where nothing can be accepted, one call
// each, up to and including the next one where something can be.
typedef struct stretch {
    int32_t past;            // the position after it, accepted tokens not included
    int32_t started, drafts; // drafts started on it; those with a token at least
    int32_t run; // draft tokens that can be accepted at its end; 0 at the end of the output
} stretch;

// Configurations walked side by side: a tile of draft token sums stays in the first-level cache.
enum { TILE = 32 };

typedef struct track {
    stretch *from;   // [n + 1]; the last is empty and leads to itself
    int32_t *tokens; // [n + 1][TILE] draft tokens on the stretch from i, for each limit of the tile
    const int32_t *available; // [n] dsc_match_lengths
    int64_t *lengths; // [longest + 1] positions by draft length; the last element also counts
                      // longer drafts
    int64_t longest;
    int64_t prompt; // tokens before the output
} track;

// A stretch is cut short where its draft tokens might not fit in 32 bits.
static void lay_stretches(stretch *from, const dsc_match_lengths *match_lengths, int32_t n,
                          int64_t longest)
{
    int32_t most = (int32_t)(INT32_MAX / (longest > 0 ? longest : 1));
    stretch s = from[n] = (stretch){n, 0, 0, 0};
    for (int32_t i = n - 1; i >= 0; i--) {
        if (match_lengths->run[i] > 0 || i == n - 1 || s.past - i > most)
            s = (stretch){i + 1, 0, 0, match_lengths->run[i]};
        s.started += match_lengths->available[i] >= 0;
        s.drafts += match_lengths->available[i] > 0;
        from[i] = s;
    }
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

// Draft lengths at all positions, whichever of them calls begin at.
static void count_lengths(track *t, const dsc_match_lengths *match_lengths, int32_t n)
{
    t->available = match_lengths->available;
    memset(t->lengths, 0, (size_t)(t->longest + 1) * sizeof *t->lengths);
    for (int32_t i = 0; i < n; i++)
        t->lengths[clamp(t->available[i], 0, t->longest)]++;
}

// Compiled twice and chosen at run time where the tool chain can do that; the plain loop is the
// specification.
#ifdef HAVE_TARGET_CLONES
__attribute__((target_clones("avx2", "default")))
#endif
static void
lay_tokens(track *t, const dsc_match_lengths *match_lengths, int32_t n, const int32_t limit[TILE])
{
    static const int32_t nothing[TILE];
    memset(t->tokens + (size_t)n * TILE, 0, TILE * sizeof *t->tokens);
    for (int32_t i = n - 1; i >= 0; i--) {
        int32_t available = match_lengths->available[i] > 0 ? match_lengths->available[i] : 0;
        int32_t *row = t->tokens + (size_t)i * TILE;
        const int32_t *rest = t->from[i].past == i + 1 ? nothing : row + TILE;
#pragma omp simd
        for (int l = 0; l < TILE; l++)
            row[l] = (available < limit[l] ? available : limit[l]) + rest[l];
    }
}

// One configuration on its way from the first to the last output token.
typedef struct walker {
    int32_t at, limit;
    const int32_t *tokens; // its lane of track.tokens
    int64_t *histogram, started, drafts, draft_tokens, accepted, stretches;
    // dsc_counts: the positions that are passed over by accepted tokens are taken off `lengths`.
    const int32_t *available;
    int64_t *lengths, *whole;
    int32_t longest; // the last element of `lengths`
    uint64_t places; // sum over accepted tokens of 2 x place in the output + 1
} walker;

// Takes the drafts at the accepted positions [from, from + accepted) off: no call begins there.
// Most of them have the longest draft, so these are counted first.
static inline void pass_over(walker *w, int32_t from, int32_t accepted)
{
    const int32_t *available = w->available + from, longest = w->longest;
    int32_t full = 0;
    w->whole[accepted] += accepted == w->limit || accepted == available[-1];
#pragma omp simd reduction(+ : full)
    for (int32_t i = 0; i < accepted; i++)
        full += available[i] >= longest;
    w->lengths[longest] -= full;
    for (int32_t i = 0; i < accepted && full < accepted; i++)
        if (available[i] < longest)
            w->lengths[available[i] > 0 ? available[i] : 0]--;
}

static inline void advance(const stretch *from, walker *w)
{
    const stretch *s = &from[w->at];
    int32_t a = s->run < w->limit ? s->run : w->limit;
    if (a && w->lengths)
        pass_over(w, s->past, a);
    w->started += s->started;
    w->drafts += s->drafts;
    w->draft_tokens += w->tokens[(size_t)w->at * TILE];
    w->accepted += a;
    w->stretches++;
    w->histogram[a]++;
    w->at = s->past + a;
    w->places += (uint64_t)(uint32_t)a * (uint32_t)(s->past + w->at); // none is below 0
}

// Adds the lengths at all positions; the walker took those at accepted positions off.
static void add_lengths(const walker *w, const track *t, int32_t n, dsc_counts *counts)
{
    int64_t shorter = 0;
    if (!w->lengths)
        return;
    for (int32_t m = 0; m < w->longest; m++) {
        w->lengths[m] += t->lengths[m];
        shorter += t->lengths[m];
    }
    w->lengths[w->longest] += n - shorter;
    counts->whole[0] = w->lengths[0]; // calls without a draft
}

// Calls that accept nothing are not counted one by one: each output token is either accepted or a
// call's own. The steps that a walker waited at the end are in the histogram and in `stretches`.
static void add_walk(const walker *w, int32_t n, const track *t, dsc_counts *counts)
{
    int64_t calls = n - w->accepted, places = (int64_t)n * (n - 1) / 2, prompt = t->prompt;
    counts->histogram[0] += calls - w->stretches;
    counts->requests++;
    counts->output_tokens += n;
    counts->target_calls += calls;
    counts->target_call_tokens += calls + w->draft_tokens;
    counts->target_call_context += calls * prompt + places - ((int64_t)w->places - w->accepted) / 2;
    counts->output_context += n * prompt + places;
    counts->num_drafts_started += w->started;
    counts->num_drafts += w->limit ? w->drafts : 0;
    counts->num_draft_tokens += w->draft_tokens;
    counts->num_accepted_tokens += w->accepted;
    add_lengths(w, t, n, counts);
}

static walker set_out(const track *t, size_t lane, int32_t limit, const dsc_counts *counts)
{
    int64_t longest = counts->lengths_length - 1 < limit ? counts->lengths_length - 1 : limit;
    return (walker){.limit = limit,
                    .tokens = t->tokens + lane,
                    .histogram = counts->histogram,
                    .available = t->available,
                    .lengths = counts->lengths,
                    .whole = counts->whole,
                    .longest = (int32_t)(longest < t->longest ? longest : t->longest)};
}

// Two walkers at a time hide the latency of a step, which depends on the one before. The walker
// that reaches the end first stays on the last, empty stretch.
static void walk_pair(const track *t, int32_t n, size_t lane, const int32_t limit[2],
                      dsc_counts *a_counts, dsc_counts *b_counts)
{
    walker a = set_out(t, lane, limit[0], a_counts), b = set_out(t, lane + 1, limit[1], b_counts);
    while (a.at < n || b.at < n) {
        advance(t->from, &a);
        advance(t->from, &b);
    }
    add_walk(&a, n, t, a_counts);
    add_walk(&b, n, t, b_counts);
}

static void walk(const track *t, int32_t n, size_t lane, int32_t limit, dsc_counts *counts)
{
    walker w = set_out(t, lane, limit, counts);
    while (w.at < n)
        advance(t->from, &w);
    add_walk(&w, n, t, counts);
}

typedef struct scratch {
    dsc_match_lengths *match_lengths; // [groups]
    track track;
} scratch;

static int allocate(const dsc_plan *plan, size_t n, dsc_arena *arena, scratch *s,
                    dsc_drafter_input **input, dsc_error *err)
{
    int rc = dsc_arena_new(arena, input, plan->groups, err);
    if (!rc)
        rc = dsc_arena_new(arena, &s->match_lengths, plan->groups, err);
    if (!rc)
        rc = dsc_arena_new(arena, &s->track.from, n + 1, err);
    if (!rc)
        rc = dsc_arena_new(arena, &s->track.tokens, (n + 1) * TILE, err);
    if (!rc)
        rc = dsc_arena_new(arena, &s->track.lengths, (size_t)s->track.longest + 1, err);
    return rc;
}

// Walks all configurations of group g, a tile at a time.
static void walk_group(const dsc_plan *plan, size_t g, const dsc_match_lengths *match_lengths,
                       int32_t n, track *t, dsc_counts *counts)
{
    lay_stretches(t->from, match_lengths, n, plan->longest);
    count_lengths(t, match_lengths, n);
    for (size_t first = plan->start[g]; first < plan->start[g + 1]; first += TILE) {
        size_t lanes = plan->start[g + 1] - first;
        lanes = lanes < TILE ? lanes : TILE;
        int32_t limit[TILE] = {0};
        for (size_t l = 0; l < lanes; l++)
            limit[l] = plan->limit[plan->order[first + l]];
        lay_tokens(t, match_lengths, n, limit);
        size_t l = 0;
        for (; l + 1 < lanes; l += 2)
            walk_pair(t, n, l, limit + l, &counts[plan->order[first + l]],
                      &counts[plan->order[first + l + 1]]);
        if (l < lanes)
            walk(t, n, l, limit[l], &counts[plan->order[first + l]]);
    }
}

int dsc_expect_run(const dsc_plan *plan, const dsc_request *request, uint64_t seed,
                   dsc_arena *arena, dsc_counts *counts, dsc_error *err)
{
    if (request->output.count > INT32_MAX / 4)
        return dsc_fail(err, DSC_EINPUT, "the output has more than %d tokens", INT32_MAX / 4);
    int32_t n = (int32_t)request->output.count;
    dsc_drafter_input *input;
    scratch s = {.track = {.longest = dsc_lengths_count(plan->longest) - 1,
                           .prompt = request->prompt.count}};
    int rc = allocate(plan, (size_t)n, arena, &s, &input, err);
    if (rc)
        return rc;
    for (size_t g = 0; g < plan->groups; g++)
        input[g] = (dsc_drafter_input){.request = request,
                                       .config = &plan->config[plan->first[g]],
                                       .parameter = plan->config[plan->first[g]].parameter,
                                       .seed = seed,
                                       .arena = arena,
                                       .end_token = plan->end_token};
    rc = plan->config[0].drafter->match_lengths(input, plan->groups, plan->longest, s.match_lengths,
                                                err);
    for (size_t g = 0; g < plan->groups && !rc; g++)
        walk_group(plan, g, &s.match_lengths[g], n, &s.track, counts);
    return rc;
}
