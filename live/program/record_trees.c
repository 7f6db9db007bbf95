// SPDX-License-Identifier: Apache-2.0
// Records the candidates of EAGLE-2's dynamic tree and the marginals of parallel drafters, position
// by position along the output.
#include "live/program/record_trees.h"

#include "base/option.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// --- options -------------------------------------------------------------------------------------

// Reads up to `most` integers separated by colons; *count is their number.
static int read_numbers(const char *text, const dsc_option *option, size_t most, int64_t *out,
                        size_t *count, const char *expected, dsc_error *err)
{
    char part[32];
    int rc = DSC_OK;
    *count = 0;
    for (const char *at = text; !rc; at++) {
        const size_t length = strcspn(at, ":");
        if (*count == most || length >= sizeof part)
            return dsc_fail(err, DSC_EUSAGE, "--%s: %s expected, not '%.100s'", option->name,
                            expected, text);
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        rc = dsc_option_single(&option[*count], part, &out[*count], err);
        ++*count;
        at += length;
        if (!*at)
            break;
    }
    return rc;
}

int live_record_candidates(live_record_trees *t, const char *text, dsc_error *err)
{
    static const dsc_option option[] = {
        {.name = "candidates", .kind = DSC_OPTION_INT, .min = 1, .max = DSC_MAX_LEVELS},
        {.name = "candidates", .kind = DSC_OPTION_INT, .min = 1, .max = 100},
        {.name = "candidates", .kind = DSC_OPTION_INT, .min = 1, .max = UINT16_MAX - 1}};
    int64_t n[3];
    size_t count;
    int rc = read_numbers(text, option, 3, n, &count, "STEPS:TOPK or STEPS:TOPK:NODES", err);
    if (!rc && count < 2)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "--candidates: STEPS:TOPK or STEPS:TOPK:NODES expected, not '%.100s'", text);
    if (rc)
        return rc;
    const int64_t all = dsc_candidate_tree_most(n[0], n[1]);
    if (count == 2 && all > UINT16_MAX - 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "--candidates %.100s: a tree has %" PRId64
                        " candidates; add the number to keep, %" PRId64 ":%" PRId64 ":NODES",
                        text, all, n[0], n[1]);
    t->steps = (int32_t)n[0];
    t->topk = (int32_t)n[1];
    t->nodes = (int32_t)(count == 3 && n[2] < all ? n[2] : all);
    return DSC_OK;
}

int live_record_marginals(live_record_trees *t, const char *text, dsc_error *err)
{
    static const dsc_option option[] = {
        {.name = "marginals", .kind = DSC_OPTION_INT, .min = 1, .max = DSC_MAX_LEVELS},
        {.name = "marginals", .kind = DSC_OPTION_INT, .min = 1, .max = 1024}};
    int64_t n[2];
    size_t count;
    int rc = read_numbers(text, option, 2, n, &count, "OFFSETS:TOP", err);
    if (!rc && count < 2)
        rc = dsc_fail(err, DSC_EUSAGE, "--marginals: OFFSETS:TOP expected, not '%.100s'", text);
    if (rc)
        return rc;
    t->offsets = (int32_t)n[0];
    t->top = (int32_t)n[1];
    return DSC_OK;
}

// --- a request -----------------------------------------------------------------------------------

int live_record_trees_begin(live_record_trees *t, const dsc_drafter_input *in, size_t n,
                            dsc_error *err)
{
    const size_t nodes = n * (size_t)t->nodes, offsets = n * (size_t)t->offsets,
                 top = offsets * (size_t)t->top;
    const int64_t most = t->steps ? dsc_candidate_tree_most(t->steps, t->topk) : 0;
    t->tree.in = *in;
    int rc = t->steps ? dsc_candidate_tree_init(&t->tree, in, t->steps, t->topk, err) : DSC_OK;
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->place, (size_t)most, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->token, nodes, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->parent, nodes, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->logp, nodes, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->scored, n * (size_t)t->steps, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->marginal, top, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->marginal_logp, top, err);
    return rc ? rc : dsc_arena_new(in->arena, &t->logp_y, offsets, err);
}

int live_record_trees_grow(live_record_trees *t, int64_t j, dsc_draft *draft, dsc_error *err)
{
    dsc_candidate_tree *tree = &t->tree;
    const int64_t first = j * t->nodes;
    int rc = dsc_candidate_tree_grow(tree, 1, draft, err);
    if (rc)
        return rc;
    const int32_t count = dsc_candidate_tree_rank(tree, 0);
    memset(t->place, 0, (size_t)count * sizeof *t->place);
    for (int32_t i = 0; i < t->nodes; i++) {
        const int64_t at = first + i;
        t->token[at] = 0;
        t->parent[at] = DSC_PARENT_NONE;
        t->logp[at] = -INFINITY;
        if (i >= count)
            continue;
        const int32_t number = tree->ranked[i].candidate;
        const dsc_candidate *c = &tree->candidate[number];
        t->place[number] = i + 1;
        t->token[at] = c->token;
        t->parent[at] = (uint16_t)(c->parent < 0 ? 0 : t->place[c->parent]);
        t->logp[at] = (float)c->score;
    }
    for (int32_t step = 0; step < t->steps; step++)
        t->scored[j * t->steps + step] = (uint16_t)tree->scored[step];
    return DSC_OK;
}

int live_record_trees_marginals(live_record_trees *t, int64_t j, dsc_token_view output, bool own,
                                double *row, dsc_error *err)
{
    dsc_model *m = t->tree.in.models->draft;
    int rc = DSC_OK;
    for (int32_t offset = 0; offset < t->offsets && !rc; offset++) {
        const int64_t at = j * t->offsets + offset, first = at * t->top, y = j + offset;
        dsc_dist dist;
        rc = m->type->marginal(m, offset, true, &dist, err);
        if (rc)
            break;
        const size_t n = dsc_dist_top(&dist, (size_t)t->top, row, &t->marginal[first]);
        for (size_t i = 0; i < (size_t)t->top; i++) {
            const int64_t cell = first + (int64_t)i;
            t->marginal[cell] = i < n ? t->marginal[cell] : 0;
            t->marginal_logp[cell] =
                i < n ? (float)fmin(0, log(dsc_dist_probability(&dist, t->marginal[cell])))
                      : -INFINITY;
        }
        t->logp_y[at] = 0;
        if (y >= output.count)
            continue;
        rc = own ? DSC_OK : m->type->marginal(m, offset, false, &dist, err);
        if (!rc)
            t->logp_y[at] = (float)fmin(0, log(dsc_dist_probability(&dist, output.id[y])));
    }
    return rc;
}

void live_record_trees_put(const live_record_trees *t, dsc_request_input *q)
{
    if (t->steps)
        q->candidates = (dsc_tree_candidates){t->token, t->parent, t->logp, t->scored};
    if (t->offsets)
        q->marginals = (dsc_marginals){t->marginal, t->marginal_logp, t->logp_y};
}

void live_record_trees_describe(const live_record_trees *t, dsc_trace_info *info)
{
    info->has_candidates = t->steps > 0;
    info->candidate_steps = t->steps;
    info->candidate_topk = t->topk;
    info->candidate_nodes = t->nodes;
    info->has_marginals = t->offsets > 0;
    info->marginal_offsets = t->offsets;
    info->marginal_top = t->top;
}
