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

// The largest sum that a path can have at `most` tokens, when its first n are known: probabilities
// do not rise.
static float largest_sum(const dsc_suffix_path *p, int64_t n, int64_t most)
{
    return (p->sum[n] + (float)(most - n) * p->probability[n - 1]) * ROUNDING;
}

// The tokens of a path under the limits, or 0 if their sum of probabilities is at most `score`.
static int64_t better_tokens(const dsc_suffix_index *x, dsc_suffix_path *p, int64_t most,
                             float least, float score)
{
    for (int64_t n = 0; n < most; n++) {
        extend_path(x, p, n + 1);
        if (p->count <= n || p->probability[n] < least)
            return p->sum[n] > score ? n : 0;
        if (largest_sum(p, n + 1, most) <= score)
            return 0;
    }
    return p->sum[most] > score ? most : 0;
}

const dsc_suffix_path *dsc_suffix_paths_choose(dsc_suffix_paths *p, const dsc_suffix_limits *limits,
                                               int64_t *drafted, float *score)
{
    const dsc_suffix_path *best = NULL;
    for (int64_t m = p->match < limits->depth ? p->match : limits->depth; m >= 1; m--) {
        dsc_suffix_path *path = &p->path[p->of[m]];
        const int64_t most = dsc_suffix_most(limits, m);
        if ((float)most <= *score)
            continue;
        const int64_t n = better_tokens(p->index, path, most, (float)limits->probability, *score);
        if (n) {
            *score = path->sum[n];
            best = path;
            *drafted = n;
        }
    }
    return best;
}
