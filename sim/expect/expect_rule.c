// SPDX-License-Identifier: Apache-2.0
// Conditional replay: for every call that is open at a position, the probability that its drafts
// agree with the output up to there, carried from token to token; sim/expect/renewal.c turns these
// probabilities into expected counts of all draft lengths.
#include "sim/expect/expect_rule.h"

#include "sim/expect/renewal.h"
#include "theory/gbv.h"
#include "traces/trace/recorded_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// How the probability that i tokens in a row are accepted follows from the data of each position.
typedef enum chance {
    MATCH,         // a deterministic draft: its token is the output's or it is not
    PRODUCT,       // one draft, token by token: the product of min(1, draft/target)
    BLOCK,         // one draft, as a whole: the smallest product of the first j <= i draft/target
    OFFSETS,       // as PRODUCT, with the draft's probabilities of the position where a call began
    OFFSETS_BLOCK, // as BLOCK, with these
    ANY,           // k drafts, greedy target: 1 - (1 - product of draft)^k
    PATHS,         // k drafts, the best of them as BLOCK
    SURVIVORS, // drafts in order, m of which continue: a distribution of m for each number before
    LEVELS     // a tree: m nodes continue, and the drafts are the children of all of them
} chance;

struct dsc_rule_group {
    int drafts; // of each configuration; in a tree, at its deepest level
    chance chance;
    size_t first, count;               // in dsc_rule_plan.order; LEVELS: one
    int levels;                        // of the tree
    int32_t nodes[DSC_MAX_LEVELS + 1]; // of each level, the root's first; each divides the next
};

// --- plan ----------------------------------------------------------------------------------------

bool dsc_rule_replays(const dsc_drafter_type *drafter, const dsc_verifier_type *rule)
{
    const bool several = rule->greedy || rule->replay_dist;
    switch (drafter->replay) {
    case DSC_DRAFT_REPLAY_CHAIN: return several || rule->replay != DSC_RULE_REPLAY_NONE;
    case DSC_DRAFT_REPLAY_OFFSETS:
        return !rule->greedy && (rule->replay_dist || rule->replay != DSC_RULE_REPLAY_NONE);
    case DSC_DRAFT_REPLAY_SEQUENCES: return several || rule->replay == DSC_RULE_REPLAY_PATHS;
    case DSC_DRAFT_REPLAY_TREE: return several;
    default: return false;
    }
}

bool dsc_rule_is_by_position(const dsc_drafter_type *drafter, const dsc_verifier_type *rule)
{
    return drafter->replay == DSC_DRAFT_REPLAY_CHAIN || rule->replay != DSC_RULE_REPLAY_PATHS;
}

bool dsc_rule_recorded(const dsc_verifier_type *rule, const dsc_trace_info *info)
{
    dsc_position_source source;
    const bool draft = info->has_draft_logp || info->rows[DSC_SIDE_DRAFT];
    const bool target = info->has_target_logp || info->rows[DSC_SIDE_TARGET];
    if (rule->replay == DSC_RULE_REPLAY_PATHS)
        return info->rows[DSC_SIDE_DRAFT] && info->rows[DSC_SIDE_TARGET];
    return draft && target &&
           (!rule->replay_dist || dsc_position_source_find(&source, info, rule, 1, NULL) == DSC_OK);
}

static bool is_tree(const dsc_drafter_type *drafter)
{
    return drafter->replay == DSC_DRAFT_REPLAY_TREE;
}

static chance chance_of(const dsc_drafter_type *drafter, const dsc_verifier_type *rule, int drafts)
{
    if (is_tree(drafter))
        return LEVELS;
    if (drafter->replay == DSC_DRAFT_REPLAY_OFFSETS)
        return rule->replay == DSC_RULE_REPLAY_BLOCK || rule->replay == DSC_RULE_REPLAY_PATHS
                   ? OFFSETS_BLOCK
                   : OFFSETS;
    if (rule->greedy)
        return drafter->branches ? ANY : MATCH;
    if (rule->replay == DSC_RULE_REPLAY_PATHS)
        return drafter->branches ? PATHS : BLOCK;
    return rule->replay == DSC_RULE_REPLAY_BLOCK ? BLOCK : drafts > 1 ? SURVIVORS : PRODUCT;
}

// By number of drafts, then by length.
typedef struct place {
    int drafts;
    int32_t limit;
    size_t config;
} place;

static int by_place(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->drafts != y->drafts)
        return x->drafts < y->drafts ? -1 : 1;
    if (x->limit != y->limit)
        return x->limit < y->limit ? -1 : 1;
    return (x->config > y->config) - (x->config < y->config);
}

static int sort_configs(dsc_rule_plan *plan, const dsc_config *config, dsc_error *err)
{
    place *p;
    int rc = dsc_arena_new(&plan->memory, &p, plan->count, err);
    if (rc)
        return rc;
    for (size_t c = 0; c < plan->count; c++) {
        int64_t limit = dsc_config_limit(&config[c]);
        p[c] = (place){dsc_config_drafts(&config[c]),
                       (int32_t)(limit > INT32_MAX ? INT32_MAX : limit), c};
    }
    qsort(p, plan->count, sizeof *p, by_place);
    for (size_t i = 0; i < plan->count; i++) {
        plan->order[i] = p[i].config;
        plan->limit[i] = p[i].limit;
        if (!i || p[i].drafts != p[i - 1].drafts || is_tree(config->drafter))
            plan->group[plan->groups++] =
                (dsc_rule_group){.drafts = p[i].drafts,
                                 .chance = chance_of(config->drafter, plan->rule, p[i].drafts),
                                 .first = i};
        if (is_tree(config->drafter))
            plan->group[plan->groups - 1].levels =
                config->drafter->levels(&config[p[i].config], plan->group[plan->groups - 1].nodes);
        plan->group[plan->groups - 1].count++;
    }
    return DSC_OK;
}

static int need(bool has, const dsc_rule_plan *plan, const dsc_drafter_type *drafter,
                const char *column, dsc_error *err)
{
    if (has)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "method %s with rule %s needs column %s of the trace, which draftscope trace "
                    "synth, trace import of per-token logprobs, or trace reduce of rows makes%s",
                    drafter->name, plan->rule->name, column,
                    plan->rule->greedy ? " (sim, sweep and tune also take --draft SPEC)" : "");
}

// Ranks are recorded for each depth up to rank_depth. The argmax is taken to be the same at every
// depth, except that of a head, which is the argmax of a first draft token.
static int check_match(dsc_rule_plan *plan, const dsc_drafter_type *drafter,
                       const dsc_trace_info *info, dsc_error *err)
{
    int32_t longest = plan->limit[plan->count - 1];
    if (info->has_draft_rank && info->rank_depth >= longest)
        plan->rank_depth = info->rank_depth;
    dsc_recorded_run run;
    int rc = dsc_trace_recorded_run(&run, info, err);
    if (rc)
        return rc;
    const bool head = run.head == 1; // its argmax is of a first token
    if (plan->rank_depth || (info->has_argmax[DSC_SIDE_DRAFT] && (!head || longest <= 1)))
        return DSC_OK;
    if (info->has_draft_rank)
        return dsc_fail(err, DSC_EUSAGE,
                        "column draft_rank of the trace is %" PRId32
                        " tokens deep, but drafts have "
                        "%" PRId32 "; run draftscope live record or trace reduce with "
                        "--rank-depth %" PRId32,
                        info->rank_depth, longest, longest);
    return need(false, plan, drafter, "draft_argmax", err);
}

// The place of a sequence among all of them depends on tokens that are not the output's, for which
// there are no statistics.
static int check_rows(dsc_rule_plan *plan, const dsc_drafter_type *drafter,
                      const dsc_trace_info *info, dsc_error *err)
{
    plan->dists.vocab_size = info->vocab_size;
    if (info->rows[DSC_SIDE_DRAFT] && info->rows[DSC_SIDE_TARGET])
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "method %s with rule %s needs the whole distributions of both models at every "
                    "position of the output, which the trace lacks: record them with live record "
                    "--logprobs dense",
                    drafter->name, plan->rule->name);
}

static int check_offsets(dsc_rule_plan *plan, const dsc_config *config, const dsc_trace_info *info,
                         dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < plan->count && !rc; c++)
        rc = config->drafter->recorded(&config[c], info, err);
    plan->offsets = info->marginal_offsets;
    return rc ? rc
              : need(info->has_target_logp || info->rows[DSC_SIDE_TARGET], plan, config->drafter,
                     "target_logp", err);
}

static int check_columns(dsc_rule_plan *plan, const dsc_drafter_type *drafter,
                         const dsc_trace_info *info, dsc_error *err)
{
    const dsc_rule_group *last = &plan->group[plan->groups - 1]; // that of the most drafts
    bool draft = info->has_draft_logp || info->rows[DSC_SIDE_DRAFT];
    bool target = info->has_target_logp || info->rows[DSC_SIDE_TARGET];
    bool several = last->chance == SURVIVORS || (last->chance == LEVELS && last->drafts > 1);
    int rc = DSC_OK;
    if (last->chance == MATCH)
        return check_match(plan, drafter, info, err);
    if (last->chance == PATHS)
        return check_rows(plan, drafter, info, err);
    if (several && !plan->rule->greedy)
        rc = dsc_position_source_find(&plan->dists, info, plan->rule, last->drafts, err);
    else
        rc = need(draft, plan, drafter, "draft_logp", err);
    if (!rc && !plan->rule->greedy && !(several && plan->group[0].drafts > 1))
        rc = need(target, plan, drafter, "target_logp", err);
    if (!rc && last->chance == LEVELS && last->drafts > DSC_POSITION_DRAFTS)
        rc =
            dsc_fail(err, DSC_EUSAGE,
                     "method %s with rule %s is replayed with at most %d drafts on a level, not %d",
                     drafter->name, plan->rule->name, DSC_POSITION_DRAFTS, last->drafts);
    if (!rc && last->chance == LEVELS) // whatever they are made of
        plan->dists.drafts = last->drafts;
    return rc;
}

int dsc_rule_plan_init(dsc_rule_plan *plan, const dsc_config *config, size_t count,
                       const dsc_verifier_type *rule, const dsc_trace_info *info, dsc_error *err)
{
    *plan = (dsc_rule_plan){.rule = rule, .count = count};
    int rc = dsc_arena_new(&plan->memory, &plan->order, count, err);
    if (!rc)
        rc = dsc_arena_new(&plan->memory, &plan->limit, count, err);
    if (!rc)
        rc = dsc_arena_new(&plan->memory, &plan->group, count, err);
    if (!rc)
        rc = sort_configs(plan, config, err);
    if (!rc)
        rc = config->drafter->replay == DSC_DRAFT_REPLAY_OFFSETS
                 ? check_offsets(plan, config, info, err)
                 : check_columns(plan, config->drafter, info, err);
    if (rc)
        dsc_rule_plan_fini(plan);
    return rc;
}

void dsc_rule_plan_fini(dsc_rule_plan *plan)
{
    dsc_arena_fini(&plan->memory);
    *plan = (dsc_rule_plan){0};
}

const char *dsc_rule_plan_reads(const dsc_rule_plan *plan)
{
    chance c = plan->group[plan->groups - 1].chance;
    if (c == MATCH)
        return plan->rank_depth ? "draft_rank" : "draft_argmax";
    if (plan->offsets)
        return "marginals, target_logp";
    if (plan->rule->greedy)
        return "draft_logp";
    if (c == PATHS)
        return "draft rows, target rows";
    if (!plan->dists.rule)
        return "draft_logp, target_logp";
    return plan->dists.recorded ? plan->rule->replay_dist->column : "draft rows, target rows";
}

// --- a request -----------------------------------------------------------------------------------

// The data of one position.
typedef struct facts {
    int64_t t;
    double draft, target, ratio; // probabilities of the output's token; draft/target
    double lower;                // dsc_gbv_lower of that token
    bool same;                   // the draft's most probable token is the output's
    const uint16_t *rank;        // [n][depth], or NULL: `same` holds
    int64_t depth;
    const double *dist;  // of 1, 2, .. drafts (position_dists.h)
    const float *logp_y; // [n][offsets] of dsc_marginals
    int64_t offsets;
} facts;

// The walk of one group with the state of its open calls. Element i of a row belongs to the call
// that began at t + 1 - i, element 0 to the one that begins at t + 1. A step to the next token
// moves the base of all rows down by one.
typedef struct lane_walk {
    dsc_renewal renewal;
    int64_t open; // elements 1 .. open
    double *row;  // [rows][stride]: reach; what else it takes
    size_t rows, stride, base;
    size_t all; // the row that is 1 when a call begins: all drafts continue
    bool paths; // rows of PATHS
} lane_walk;

enum {
    REACH,
    OTHER,
    BEFORE,
    HERE,
    PATH_ROWS
}; // rows; BEFORE, HERE: of PATHS; for SURVIVORS and LEVELS, OTHER + m - 1: Pr(m continue), m = 1
   // ..

static double *elements(const lane_walk *w, size_t row)
{
    return w->row + row * w->stride + w->base;
}

static void begin_call(lane_walk *w)
{
    for (size_t r = 0; r < w->rows; r++)
        elements(w, r)[0] = r == REACH || r == w->all || (w->paths && r != BEFORE);
}

static void slide(lane_walk *w)
{
    if (!w->base) {
        size_t kept = (size_t)w->open + 1, base = w->stride - kept - 1;
        for (size_t r = 0; r < w->rows; r++)
            memmove(elements(w, r) + base, elements(w, r), kept * sizeof *w->row);
        w->base = base;
    }
    w->base--;
    w->open += w->open < w->renewal.longest;
}

static int walk_init(lane_walk *w, const dsc_rule_plan *plan, const dsc_rule_group *g, int64_t n,
                     dsc_arena *arena, dsc_error *err)
{
    *w = (lane_walk){0};
    int rc = dsc_renewal_init(&w->renewal, 0, n, plan->limit + g->first, g->count, arena, err);
    w->paths = g->chance == PATHS;
    w->rows = g->chance == SURVIVORS || g->chance == LEVELS ? 1 + (size_t)g->drafts : 2;
    w->rows = w->paths ? PATH_ROWS : w->rows;
    w->all = g->chance == LEVELS ? OTHER : w->rows - 1; // the root of a tree
    w->stride = 4 * (size_t)w->renewal.longest + 64;
    if (!rc)
        rc = dsc_arena_new(arena, &w->row, w->rows * w->stride, err);
    if (rc)
        return rc;
    w->base = w->stride - 1;
    begin_call(w);
    return DSC_OK;
}

#ifdef HAVE_TARGET_CLONES
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

WIDE static void multiply(double *x, int64_t n, double factor)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

WIDE static void follow_block(double *reach, double *product, int64_t n, double ratio)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double p = product[i] * ratio;
        product[i] = p < 1e300 ? p : 1e300; // keeps the product finite
        reach[i] = reach[i] < p ? reach[i] : p;
    }
}

// dsc_gbv_replay, a token further in every call. Where the draft never goes, nothing that follows
// is accepted.
static void follow_paths(lane_walk *w, const facts *f, int drafts)
{
    double *reach = elements(w, REACH), *product = elements(w, OTHER);
    double *before = elements(w, BEFORE), *here = elements(w, HERE);
    for (int64_t i = 1; i <= w->open; i++) {
        const dsc_gbv_prefix prefix = {before[i], here[i]};
        const double p = dsc_gbv_probability(prefix, f->lower, f->draft, drafts);
        product[i] = fmin(product[i] * p / f->target, 1e300);
        reach[i] = fmin(reach[i], product[i]);
        if (f->draft > 0) {
            const dsc_gbv_prefix next = dsc_gbv_next(prefix, f->lower, f->draft);
            before[i] = next.before;
            here[i] = next.here;
        }
    }
}

static void follow_any(double *reach, double *product, int64_t n, double draft, int drafts)
{
    for (int64_t i = 0; i < n; i++) {
        product[i] *= draft;
        reach[i] = product[i] < 1 ? -expm1(drafts * log1p(-product[i])) : 1;
    }
}

// The call that began i tokens ago drafted this token at offset i - 1.
static void follow_offsets(lane_walk *w, const facts *f, bool block)
{
    double *reach = elements(w, REACH), *product = elements(w, OTHER);
    const double target = log(f->target);
    for (int64_t i = 1; i <= w->open; i++) {
        const double draft = (double)f->logp_y[(f->t + 1 - i) * f->offsets + i - 1];
        const double ratio = exp(fmin(draft - target, 700));
        if (block)
            follow_block(reach + i, product + i, 1, ratio);
        else
            reach[i] *= fmin(ratio, 1);
    }
}

static void follow_match(lane_walk *w, const facts *f)
{
    double *reach = elements(w, REACH);
    for (int64_t i = 1; i <= w->open; i++) {
        int64_t start = f->t + 1 - i;
        bool hit = f->rank ? f->rank[start * f->depth + i - 1] == 0 : f->same;
        reach[i] = hit ? reach[i] : 0;
    }
}

// sum[i] = x[i] factor, or += if `more`.
WIDE static void accumulate(double *sum, const double *x, int64_t n, double factor, bool more)
{
    if (more) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] += x[i] * factor;
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sum[i] = x[i] * factor;
    }
}

// From k drafts to m <= k, in place, in ascending order of m.
static void follow_survivors(lane_walk *w, const double *dist, int drafts)
{
    double *reach = elements(w, REACH) + 1;
    for (int m = 1; m <= drafts; m++) {
        double *to = elements(w, OTHER + (size_t)m - 1) + 1;
        multiply(to, w->open, dist[dsc_position_dist_at(m) + (size_t)m]);
        for (int k = m + 1; k <= drafts; k++)
            accumulate(to, elements(w, OTHER + (size_t)k - 1) + 1, w->open,
                       dist[dsc_position_dist_at(k) + (size_t)m], true);
        accumulate(reach, to, w->open, 1, m > 1);
    }
}

// A node of a tree is sampled after the node above it. Given the text up to a level, all nodes
// sampled there are independent samples of one distribution, however that text was drafted. A rule
// that accepts a token continues with all m nodes that carry it (sim/verify/tree_verify.h), so its
// candidates are their m K children, and its decision, given the output's token, depends only on
// their number and the position. So the levels form a Markov chain in m, from the root's m = 1,
// whose steps have the distributions of m K drafts. (Whole sequences, SURVIVORS, are the tree whose
// nodes below the first level have one child each.)
static void follow_levels(lane_walk *w, const dsc_rule_group *g, const double *dist)
{
    double *reach = elements(w, REACH), to[DSC_POSITION_DRAFTS + 1];
    for (int64_t i = 1; i <= w->open; i++) {
        const int above = g->nodes[i - 1], below = g->nodes[i], children = below / above;
        for (int m = 0; m <= below; m++)
            to[m] = 0;
        for (int m = 1; m <= above; m++) {
            const double p = elements(w, OTHER + (size_t)m - 1)[i];
            const double *step = dist + dsc_position_dist_at(m * children);
            for (int k = 1; k <= m * children; k++)
                to[k] += p * step[k];
        }
        reach[i] = 0;
        for (int m = 1; m <= below; m++) {
            elements(w, OTHER + (size_t)m - 1)[i] = to[m];
            reach[i] += to[m];
        }
    }
}

// Token f->t is accepted, or it ends the calls that are open.
static void follow(lane_walk *w, const dsc_rule_group *g, const facts *f)
{
    static const double least = 0x1p-90;
    slide(w);
    double *reach = elements(w, REACH), *product = elements(w, OTHER);
    switch (g->chance) {
    case MATCH: follow_match(w, f); break;
    case PRODUCT: multiply(reach + 1, w->open, f->ratio < 1 ? f->ratio : 1); break;
    case BLOCK: follow_block(reach + 1, product + 1, w->open, f->ratio); break;
    case OFFSETS: follow_offsets(w, f, false); break;
    case OFFSETS_BLOCK: follow_offsets(w, f, true); break;
    case ANY: follow_any(reach + 1, product + 1, w->open, f->draft, g->drafts); break;
    case PATHS: follow_paths(w, f, g->drafts); break;
    case SURVIVORS: follow_survivors(w, f->dist, g->drafts); break;
    case LEVELS: follow_levels(w, g, f->dist); break;
    }
    while (w->open > 0 && reach[w->open] < least)
        w->open--;
    begin_call(w);
    dsc_renewal_step(&w->renewal, reach, w->open);
}

// Drafts have `limit` tokens in sequence, or as many as the output has left where they begin.
static void add_lengths(const lane_walk *w, size_t lane, int64_t limit, int64_t n, dsc_counts *c)
{
    double *lengths = c->expected->lengths, left = dsc_renewal_calls(&w->renewal, lane);
    const int64_t most = limit < n ? limit : n, longest = c->lengths_length - 1;
    if (!lengths)
        return;
    for (int64_t m = 1; m < most; m++) {
        const double begins = dsc_renewal_begins(&w->renewal, lane, m - 1);
        lengths[m < longest ? m : longest] += begins;
        left -= begins;
    }
    lengths[most < longest ? most : longest] += left;
}

static void add_expected(const dsc_rule_plan *plan, const dsc_rule_group *g, const lane_walk *w,
                         int64_t n, double prompt, dsc_counts *counts)
{
    for (size_t lane = 0; lane < g->count; lane++) {
        dsc_counts *c = &counts[plan->order[g->first + lane]];
        dsc_expected *e = c->expected;
        int32_t limit = plan->limit[g->first + lane];
        double calls = dsc_renewal_calls(&w->renewal, lane);
        double tokens = dsc_renewal_tokens(&w->renewal, lane), above = calls;
        e->target_calls += calls;
        e->num_drafts_started += limit > 0 ? calls : 0;
        e->num_drafts += limit > 0 ? calls : 0;
        add_lengths(w, lane, limit, n, c);
        double drafted = g->chance == LEVELS ? 0 : tokens * g->drafts; // else add_tree's
        e->num_draft_tokens += drafted;
        e->num_accepted_tokens += (double)n - calls;
        e->target_call_tokens += calls + drafted;
        e->target_call_context += calls * prompt + dsc_renewal_places(&w->renewal, lane);
        if (plan->offsets) { // one pass, on one token
            e->draft_calls += limit > 0 ? calls : 0;
            e->draft_call_tokens += limit > 0 ? calls : 0;
        } else { // a pass writes the next token of every draft
            e->draft_calls += tokens;
            e->draft_call_tokens += drafted;
        }
        for (int64_t i = 0; i < c->histogram_length; i++) {
            double beyond =
                i < w->renewal.longest ? dsc_renewal_at_least(&w->renewal, lane, i + 1) : 0;
            const double exactly = fmax(above - beyond, 0);
            e->histogram[i] += exactly;
            if (i == limit && e->whole) // a shorter draft ends with the output
                e->whole[i] += exactly;
            above = beyond;
        }
    }
}

// The expected position where the last call begins. With L levels it accepts at most min(L, n - 1)
// tokens; it accepts i fewer with the probability that a call begins i tokens before the last one
// and reaches it.
static double last_place(const lane_walk *w, int64_t n)
{
    const double *reach = elements(w, REACH);
    const int64_t most = w->renewal.longest;
    double left = 1, sum = 0;
    for (int64_t i = 0; i < most && i <= w->open; i++) {
        const double p = reach[i] * dsc_renewal_begins(&w->renewal, 0, i);
        sum += p * (double)(n - 1 - i);
        left -= p;
    }
    return sum + fmax(left, 0) * (double)(n - 1 - most);
}

// A level takes one pass of the draft model over the nodes above it; the first level's is over the
// tokens that the previous call committed (sim/draft/grow_tree.h). Near the end of the output a
// tree has fewer levels.
static void add_tree(const dsc_rule_plan *plan, const dsc_rule_group *g, const lane_walk *w,
                     int64_t n, dsc_counts *counts)
{
    dsc_expected *e = counts[plan->order[g->first]].expected;
    double with = dsc_renewal_calls(&w->renewal, 0), tokens = 0;
    double draft_call_tokens = 1 + last_place(w, n);
    for (int64_t d = 1; d <= g->levels && d <= n; d++) { // `with`: calls with d tokens left or more
        tokens += with * g->nodes[d];
        draft_call_tokens += d > 1 ? with * g->nodes[d - 1] : 0;
        if (d < g->levels && d < n)
            with -= dsc_renewal_begins(&w->renewal, 0, d - 1);
    }
    e->num_draft_tokens += tokens;
    e->target_call_tokens += tokens;
    e->draft_call_tokens += draft_call_tokens;
}

// Binomial distributions of 1, 2, .. trials with probability p, each computed from the one before.
static void dists_of_draws(double p, int drafts, double *dist)
{
    dist[0] = 1 - p;
    dist[1] = p;
    for (int k = 2; k <= drafts; k++) {
        const double *less = dist + dsc_position_dist_at(k - 1);
        double *x = dist + dsc_position_dist_at(k);
        x[0] = less[0] * (1 - p);
        for (int m = 1; m < k; m++)
            x[m] = less[m] * (1 - p) + less[m - 1] * p;
        x[k] = less[k - 1] * p;
    }
}

// The probabilities of the output's token and of those that come before it.
static int look_at_rows(const dsc_rule_plan *plan, const dsc_request *q, int64_t t,
                        dsc_position_room *room, facts *f, dsc_error *err)
{
    const size_t vocab = (size_t)plan->dists.vocab_size;
    const int32_t y = q->output.id[t];
    int rc = dsc_position_rows(room, q, t, vocab, err);
    if (rc)
        return rc;
    const double *draft = room->row[DSC_SIDE_DRAFT], *target = room->row[DSC_SIDE_TARGET];
    f->draft = draft[y];
    f->target = target[y];
    f->lower = draft[y] > 0 ? fmin(dsc_gbv_lower(draft, target, vocab, y), 1) : 0;
    return DSC_OK;
}

// Reads the data of position t that the plan needs.
static int look(const dsc_rule_plan *plan, const dsc_request *q, int64_t t, dsc_position_room *room,
                double *dist, facts *f, dsc_error *err)
{
    chance c = plan->group[0].chance; // the first group has the fewest drafts
    bool greedy = plan->rule->greedy, dists = plan->dists.rule != NULL;
    bool alone = c == PRODUCT || c == BLOCK || (c == LEVELS && !greedy && !dists);
    double draft = 0, target = 0;
    int rc = DSC_OK;
    *f = (facts){.t = t, .dist = dist};
    if (c == MATCH) {
        f->rank = plan->rank_depth ? q->replayed.draft_rank : NULL;
        f->depth = plan->rank_depth;
        f->same = !f->rank && q->replayed.argmax[DSC_SIDE_DRAFT][t] == q->output.id[t];
    }
    if (c == PATHS)
        return look_at_rows(plan, q, t, room, f, err);
    if (alone || (greedy && c != MATCH))
        rc = dsc_position_logp(q, DSC_SIDE_DRAFT, t, &draft, err);
    if (!rc && (alone || plan->offsets))
        rc = dsc_position_logp(q, DSC_SIDE_TARGET, t, &target, err);
    if (plan->offsets) {
        f->target = exp(target);
        f->logp_y = q->marginals.logp_y;
        f->offsets = plan->offsets;
    }
    if (!rc && dists)
        rc = dsc_position_dists(&plan->dists, q, t, room, dist, err);
    if (greedy)
        f->draft = exp(draft);
    else if (alone)
        f->ratio = exp(draft - target);
    if (c == LEVELS && greedy)
        dists_of_draws(f->draft, plan->dists.drafts, dist);
    else if (c == LEVELS && alone)
        dists_of_draws(fmin(f->ratio, 1), 1, dist);
    return rc;
}

int dsc_rule_plan_drafts(const dsc_rule_plan *plan)
{
    return plan->group[plan->groups - 1].drafts;
}

int dsc_rule_plan_dists(const dsc_rule_plan *plan, const dsc_request *q, int64_t position,
                        dsc_position_room *room, double *dist, dsc_error *err)
{
    const chance c = plan->group[plan->groups - 1].chance;
    facts f;
    const int rc = look(plan, q, position, room, dist, &f, err);
    if (!rc && c == ANY)
        dists_of_draws(f.draft, dsc_rule_plan_drafts(plan), dist);
    if (!rc && c == PRODUCT)
        dists_of_draws(fmin(f.ratio, 1), 1, dist);
    return rc;
}

int dsc_expect_rule_run(const dsc_rule_plan *plan, const dsc_request *request,
                        dsc_position_room *room, dsc_arena *arena, dsc_counts *counts,
                        dsc_error *err)
{
    int64_t n = request->output.count;
    lane_walk *w;
    double *dist;
    for (size_t c = 0; c < plan->count; c++) {
        counts[c].requests++;
        counts[c].output_tokens += n;
        counts[c].output_context += n * request->prompt.count + n * (n - 1) / 2;
    }
    if (!n)
        return DSC_OK;
    int rc = dsc_arena_new(arena, &w, plan->groups, err);
    if (!rc)
        rc = dsc_arena_new(arena, &dist, dsc_position_dist_at(plan->dists.drafts + 1), err);
    for (size_t g = 0; g < plan->groups && !rc; g++)
        rc = walk_init(&w[g], plan, &plan->group[g], n, arena, err);
    for (int64_t t = 0; t + 1 < n && !rc; t++) {
        facts f;
        rc = look(plan, request, t, room, dist, &f, err);
        for (size_t g = 0; g < plan->groups && !rc; g++)
            follow(&w[g], &plan->group[g], &f);
    }
    for (size_t g = 0; g < plan->groups && !rc; g++) {
        add_expected(plan, &plan->group[g], &w[g], n, (double)request->prompt.count, counts);
        if (plan->group[g].chance == LEVELS)
            add_tree(plan, &plan->group[g], &w[g], n, counts);
    }
    return rc;
}
