// SPDX-License-Identifier: Apache-2.0
// Several drafts at once along a recorded output. Nodes that carry the same path are verified
// together, so a draft is a Markov chain in their number m, from the root's m = 1: m nodes have
// m x children candidates, and m' of these are accepted with the output's token
// (sim/expect/expect_rule.c, follow_levels; sequences are the tree whose nodes below the first
// level have one child).
#include "sim/serve/serve_levels.h"

#include "base/rng.h"
#include "sim/serve/serve_price.h"

#include <inttypes.h>

int dsc_serve_levels_new(dsc_serve_level **out, int32_t *levels, const dsc_config *config,
                         dsc_error *err)
{
    const dsc_drafter_type *d = config->drafter;
    const int64_t most = dsc_config_limit(config);
    const int32_t drafts = dsc_config_drafts(config);
    int32_t nodes[DSC_MAX_LEVELS + 1];
    if (most > DSC_SERVE_LONGEST)
        return dsc_fail(err, DSC_EUSAGE,
                        "method %s drafts %" PRId64
                        " tokens in sequence; a served draft has at most %d",
                        d->name, most, DSC_SERVE_LONGEST);
    *levels = (int32_t)most;
    if (d->levels)
        d->levels(config, nodes);
    const int rc = dsc_new(out, (size_t)most + 1, err);
    for (int32_t i = 1; i <= most && !rc; i++) {
        dsc_serve_level *x = &(*out)[i];
        x->tokens = x[-1].tokens + (d->levels ? nodes[i] : drafts);
        x->draft_tokens = d->levels ? 1 + x[-1].tokens : x->tokens;
    }
    return rc;
}

static int32_t nodes_of(const dsc_serve_level *level, int32_t i)
{
    return i ? level[i].tokens - level[i - 1].tokens : 1;
}

// The number of k candidates that are accepted with the output's token, 0 with the probability of
// dist[0]: the larger numbers have the smaller u.
static int32_t accept(const double *dist, int32_t k, double u)
{
    const double *p = dist + dsc_position_dist_at(k);
    double sum = 0;
    for (int32_t m = k; m > 0; m--)
        if (u < (sum += p[m]))
            return m;
    return 0;
}

// A draft that has been accepted so far.
typedef struct open_draft {
    int64_t from;
    int32_t nodes; // accepted ones of the last level
} open_draft;

int dsc_serve_levels_draw(const dsc_rule_plan *plan, const dsc_serve_level *level, int32_t levels,
                          const dsc_request *q, uint64_t seed, dsc_position_room *room,
                          dsc_arena *arena, dsc_serve_draft *out, dsc_error *err)
{
    const int64_t n = q->output.count;
    double *dist;
    open_draft *open;
    int64_t count = 0;
    int rc = dsc_arena_new(arena, &dist, dsc_position_dist_at(dsc_rule_plan_drafts(plan) + 1), err);
    rc = rc ?: dsc_arena_new(arena, &open, (size_t)levels + 1, err);
    for (int64_t i = 0; i < n && !rc; i++)
        out[i] = (dsc_serve_draft){(uint16_t)levels, 0};
    for (int64_t t = 0; t + 1 < n && levels && !rc; t++) {
        const double u = dsc_rng_uniform(seed, (uint64_t)q->index, (uint32_t)t, DSC_RNG_ACCEPT);
        int64_t kept = 0;
        rc = dsc_rule_plan_dists(plan, q, t, room, dist, err);
        open[count++] = (open_draft){t, 1};
        for (int64_t i = 0; i < count && !rc; i++) {
            const int32_t depth = (int32_t)(t - open[i].from),
                          children = nodes_of(level, depth + 1) / nodes_of(level, depth),
                          nodes = accept(dist, open[i].nodes * children, u);
            out[open[i].from].run += nodes > 0;
            if (nodes && depth + 1 < levels)
                open[kept++] = (open_draft){open[i].from, nodes};
        }
        count = kept;
    }
    return rc;
}
