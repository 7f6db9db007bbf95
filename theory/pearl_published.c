// SPDX-License-Identifier: Apache-2.0
// The figures of PEARL's tables and the prediction for each; theory/pearl_published.h.
#include "theory/pearl_published.h"

#include "theory/block.h"

#include <math.h>

enum { LEAST_WINDOW = 2, WINDOWS = 5 }; // of Table 5

// The paper's figures of a pair of models; 0: not in the paper.
typedef struct pair {
    const char *name;
    double draft_tokens_per_s, target_tokens_per_s; // Table 7
    double accepted, accepted_speculative;          // Table 4, correction and bonus excluded
    int window, draft_length;                       // PEARL's and that of speculative decoding, as
                                                    // the scripts of its repository set them
    double speedup, speedup_speculative;            // Table 1, HumanEval
    double no_pre_verify, no_post_verify;           // Table 3
    double tokens_per_s[WINDOWS];                   // Table 5, windows 2 .. 6
} pair;

// clang-format off
static const pair pairs[] = {
    {"CodeLlama 7B/34B", 73.38, 27.96, 27.95, 5.27, 3, 6, 2.35, 1.69, 2.21, 1.64,
     {48.67, 65.59, 63.25, 57.26, 58.64}},
    {"CodeLlama 7B/70B", 73.38, 15.33, 26.53, 8.32, 5, 10, 3.79, 2.76, 3.53, 2.57,
     {25.07, 38.57, 49.07, 58.10, 57.05}},
    {"DeepSeek 1.3B/33B", 102.36, 23.64, 29.65, 7.23, 4, 8, 3.48, 2.54, 3.19, 2.37, {0}},
    {"DeepSeek 6.7B/33B", 73.17, 23.64, 39.90, 5.69, 3, 6, 2.75, 2.07, 0, 0,
     {41.47, 65.12, 65.07, 64.42, 63.60}},
};
// clang-format on
enum { PAIRS = sizeof pairs / sizeof *pairs };

// The quantities compared for each pair, in the order of the paper's tables.
typedef enum quantity {
    SPEEDUP,
    SPEEDUP_SPECULATIVE,
    NO_PRE_VERIFY,
    NO_POST_VERIFY,
    ACCEPTED_SPECULATIVE,
    BEST_WINDOW,
    TOKENS_PER_S, // WINDOWS of them
    QUANTITIES = TOKENS_PER_S + WINDOWS
} quantity;

static const struct {
    int table;
    const char *name;
    double tolerance_percent;
} about[] = {
    [SPEEDUP] = {1, "speedup", 6},
    [SPEEDUP_SPECULATIVE] = {1, "speedup_speculative", NAN},
    [NO_PRE_VERIFY] = {3, "speedup_no_pre_verify", 10},
    [NO_POST_VERIFY] = {3, "speedup_no_post_verify", 10},
    [ACCEPTED_SPECULATIVE] = {4, "accepted_speculative", NAN},
    [BEST_WINDOW] = {5, "best_window", 0},
    [TOKENS_PER_S] = {5, "tokens_per_s", NAN},
};

static double rate_of(const pair *p)
{
    return p->accepted / (1 + p->accepted);
}

static double ratio_of(const pair *p)
{
    return p->draft_tokens_per_s / p->target_tokens_per_s;
}

// The best of Table 5's windows; 0 when the table lacks the pair.
static int published_best(const pair *p)
{
    int best = 0;
    for (int i = 1; i < WINDOWS; i++)
        if (p->tokens_per_s[i] > p->tokens_per_s[best])
            best = i;
    return p->tokens_per_s[best] > 0 ? best + LEAST_WINDOW : 0;
}

// The best predicted window among those of the table: the paper tried no others.
static int predicted_best(const pair *p)
{
    int best = LEAST_WINDOW;
    for (int g = LEAST_WINDOW; g < LEAST_WINDOW + WINDOWS; g++)
        if (dsc_pearl_speedup(DSC_PEARL_FULL, rate_of(p), g, ratio_of(p)) >
            dsc_pearl_speedup(DSC_PEARL_FULL, rate_of(p), best, ratio_of(p)))
            best = g;
    return best;
}

// The published and predicted value of quantity q, and the window; published 0: not in the paper.
static double compare(const pair *p, int q, int *window, double *predicted)
{
    double rate = rate_of(p), ratio = ratio_of(p);
    *window = p->window;
    switch (q) {
    case SPEEDUP: *predicted = dsc_pearl_speedup(DSC_PEARL_FULL, rate, p->window, ratio); break;
    case NO_PRE_VERIFY:
        *predicted = dsc_pearl_speedup(DSC_PEARL_NO_PRE_VERIFY, rate, p->window, ratio);
        return p->no_pre_verify;
    case NO_POST_VERIFY:
        *predicted = dsc_pearl_speedup(DSC_PEARL_NO_POST_VERIFY, rate, p->window, ratio);
        return p->no_post_verify;
    case SPEEDUP_SPECULATIVE:
        *window = p->draft_length;
        *predicted = dsc_block_speedup(dsc_iid_accepted(rate, p->draft_length), p->draft_length,
                                       (dsc_block_cost){.draft = 1 / ratio});
        return p->speedup_speculative;
    case ACCEPTED_SPECULATIVE:
        *window = p->draft_length;
        *predicted = dsc_iid_accepted(rate, p->draft_length);
        return p->accepted_speculative;
    case BEST_WINDOW:
        *window = 0;
        *predicted = predicted_best(p);
        return published_best(p);
    default:
        *window = LEAST_WINDOW + q - TOKENS_PER_S;
        *predicted =
            p->target_tokens_per_s * dsc_pearl_speedup(DSC_PEARL_FULL, rate, *window, ratio);
        return p->tokens_per_s[q - TOKENS_PER_S];
    }
    return p->speedup;
}

// Rows are ordered by table: all pairs of a quantity, except Table 5, which goes pair by pair.
static void place(size_t i, int *q, size_t *p)
{
    if (i < BEST_WINDOW * PAIRS) {
        *q = (int)(i / PAIRS);
        *p = i % PAIRS;
    } else {
        i -= BEST_WINDOW * PAIRS;
        *q = BEST_WINDOW + (int)(i % (QUANTITIES - BEST_WINDOW));
        *p = i / (QUANTITIES - BEST_WINDOW);
    }
}

size_t dsc_pearl_published_rows(void)
{
    size_t rows = 0;
    for (size_t i = 0; i < (size_t)PAIRS * QUANTITIES; i++) {
        int q, window;
        size_t p;
        double predicted;
        place(i, &q, &p);
        rows += compare(&pairs[p], q, &window, &predicted) > 0;
    }
    return rows;
}

dsc_pearl_row dsc_pearl_published_row(size_t i)
{
    for (size_t all = 0; all < (size_t)PAIRS * QUANTITIES; all++) {
        int q, window;
        size_t p;
        double predicted;
        place(all, &q, &p);
        double published = compare(&pairs[p], q, &window, &predicted);
        if (!(published > 0) || i--)
            continue;
        int kind = q < TOKENS_PER_S ? q : TOKENS_PER_S;
        double error = 100 * (predicted / published - 1);
        return (dsc_pearl_row){
            .table = about[kind].table,
            .pair = pairs[p].name,
            .quantity = about[kind].name,
            .rate = rate_of(&pairs[p]),
            .ratio = ratio_of(&pairs[p]),
            .window = window,
            .predicted = predicted,
            .published = published,
            .error_percent = error,
            .tolerance_percent = about[kind].tolerance_percent,
            .ok = !(fabs(error) > about[kind].tolerance_percent),
        };
    }
    return (dsc_pearl_row){0};
}
