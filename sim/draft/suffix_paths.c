// SPDX-License-Identifier: Apache-2.0
// The most frequent path below each match of a suffix index. As in snowflakedb/ArcticInference
// (csrc/suffix_decoding/suffix_tree.cc at 9d46438, SuffixTree::speculate), probabilities are
// products of quotients in single precision, which decides between drafts that are equally good.
#include "sim/draft/suffix_paths.h"

// A bound of a sum by its largest term holds after rounding if it is larger by this factor: a sum
// of 4096 terms has an error below 4096 / 2^24.
#define ROUNDING 1.001f

int64_t dsc_suffix_most(const dsc_suffix_limits *limits, int64_t m)
{
    const float product = (float)m * (float)limits->factor,
                tokens = product + (float)limits->offset;
    int64_t most = (int64_t)((double)tokens + 1e-6);
    most = most < limits->length ? most : limits->length;
    most = most < limits->depth - m ? most : limits->depth - m;
    return most > 0 ? most : 0;
}

int dsc_suffix_paths_init(dsc_suffix_paths *p, const dsc_suffix_index *index, int32_t depth,
                          int64_t longest, dsc_arena *arena, dsc_error *err)
{
    *p = (dsc_suffix_paths){.index = index, .arena = arena, .longest = longest};
    int rc = dsc_arena_new(arena, &p->path, (size_t)depth, err);
    return rc ? rc : dsc_arena_new(arena, &p->of, (size_t)depth + 1, err);
}

// The next path, which few positions need if there are many already.
static int add_path(dsc_suffix_paths *p, dsc_error *err)
{
    const size_t n = (size_t)p->longest;
    dsc_suffix_path *path = &p->path[p->paths++];
    int rc = dsc_arena_new(p->arena, &path->token, n, err);
    if (!rc)
        rc = dsc_arena_new(p->arena, &path->probability, n, err);
    return rc ? rc : dsc_arena_new(p->arena, &path->sum, n + 1, err);
}

int dsc_suffix_paths_begin(dsc_suffix_paths *p, int32_t state, int32_t m, int32_t least,
                           dsc_error *err)
{
    const dsc_suffix_index *x = p->index;
    int32_t paths = 0;
    int rc = DSC_OK;
    for (; m && x->state[state].count < least; state = x->state[state].link)
        m = x->state[x->state[state].link].length;
    p->match = m;
    for (; m >= 1 && !rc; m--) {
        while (x->state[x->state[state].link].length >= m)
            state = x->state[state].link;
        if (!paths || p->path[paths - 1].state != state) {
            rc = paths == p->paths ? add_path(p, err) : DSC_OK;
            if (rc)
                break;
            dsc_suffix_path *path = &p->path[paths++];
            path->state = path->end = state;
            path->count = 0;
            path->sum[0] = 0;
        }
        p->of[m] = paths - 1;
    }
    return rc;
}

// Extends a path to `most` tokens, if it has as many.
static void extend_path(const dsc_suffix_index *x, dsc_suffix_path *p, int64_t most)
{
    while (p->count < most && p->end >= 0) {
        const int32_t above = x->state[p->end].count, best = x->state[p->end].edge;
        const int32_t count = best < 0 ? 0 : x->state[x->edge[best].to].count;
        p->end = count ? x->edge[best].to : -1;
        if (!count)
            return;
        const float share = (float)count / (float)above,
                    last = p->count ? p->probability[p->count - 1] : 1;
        p->token[p->count] = x->edge[best].token;
        p->probability[p->count] = last * share;
        p->sum[p->count + 1] = p->sum[p->count] + p->probability[p->count];
        p->count++;
    }
}

const dsc_suffix_path *dsc_suffix_paths_choose(dsc_suffix_paths *p, const dsc_suffix_limits *limits,
                                               int64_t *drafted, float *score)
{
    const float least = (float)limits->probability;
    const dsc_suffix_path *best = NULL;
    *score = 0;
    *drafted = 0;
    for (int64_t m = p->match < limits->depth ? p->match : limits->depth; m >= 1; m--) {
        dsc_suffix_path *path = &p->path[p->of[m]];
        int64_t most = dsc_suffix_most(limits, m), n = 0;
        if ((float)most <= *score)
            continue;
        extend_path(p->index, path, 1);
        if (path->count && (float)most * path->probability[0] * ROUNDING <= *score)
            continue;
        extend_path(p->index, path, most);
        while (n < most && n < path->count && path->probability[n] >= least)
            n++;
        if (path->sum[n] > *score) {
            *score = path->sum[n];
            best = path;
            *drafted = n;
        }
    }
    return best;
}
