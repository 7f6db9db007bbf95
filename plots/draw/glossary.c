// SPDX-License-Identifier: Apache-2.0
// The titles and labels of the columns that figures and reports show.
#include "plots/draw/glossary.h"

#include <ctype.h>
#include <string.h>

typedef struct known_term {
    const char *column;
    const char *title; // for a heading or an axis, with the unit
    bool less_is_better;
    const char *label; // before a value, if the name is too long for that
} known_term;

static const known_term term[] = {
    {"alpha", "i.i.d. acceptance probability alpha", false, NULL},
    {"n", "match length n (tokens)", false, NULL},
    {"max_match", "longest match (tokens)", false, NULL},
    {"output_tokens", "output tokens", false, NULL},
    {"target_calls", "target calls", true, NULL},
    {"num_drafts_started", "drafts started (triggers)", true, NULL},
    {"num_drafts", "verification steps with a draft", true, NULL},
    {"num_draft_tokens", "draft tokens", true, NULL},
    {"max_cached_requests", "number of cached requests", false, NULL},
    {"max_num_draft_tokens", "draft tokens at most (--num-draft-tokens)", false, NULL},
    {"num_accepted_tokens", "accepted tokens", false, NULL},
    {"draft_acceptance_rate", "draft acceptance rate", false, NULL},
    {"mean_acceptance_length", "mean acceptance length (tokens)", false, NULL},
    {"alpha_iid", "i.i.d. acceptance probability", false, NULL},
    {"block_efficiency", "block efficiency (output tokens per target call)", false, NULL},
    {"speedup", "speedup over decoding without speculation", false, NULL},
    {"speedup_cost_low", "speedup at the slow quartile of measured times", false, NULL},
    {"speedup_cost_high", "speedup at the fast quartile of measured times", false, NULL},
    {"iid_block_efficiency", "block efficiency under i.i.d. acceptance", false, NULL},
    {"test", "objective of tune on the test set", false, NULL},
    {"selection", "objective of tune on the selection set", false, NULL},
    {"tokens_per_s", "tokens per second", false, NULL},
    {"qps", "request rate (requests/s)", false, NULL},
    {"clients", "concurrency (clients of a closed loop)", false, NULL},
    {"ttft_p50_s", "median time to first token (s)", true, NULL},
    {"ttft_p99_s", "p99 time to first token (s)", true, NULL},
    {"tpot_p50_s", "median time per output token (s)", true, NULL},
    {"tpot_p99_s", "p99 time per output token (s)", true, NULL},
    {"e2e_p50_s", "median end-to-end time (s)", true, NULL},
    {"e2e_mean_s", "mean end-to-end time (s)", true, NULL},
    {"goodput", "goodput (requests/s within the SLO)", false, NULL},
    {"batch", "batch size (sequences)", false, NULL},
    {"drafts", "number of drafts K", false, NULL},
    {"num_speculative_tokens", "draft length (tokens)", false, "draft length"},
    {"length", "draft length L (tokens)", false, NULL},
    {"gamma", "draft length (tokens)", false, NULL},
    {"window", "window (tokens)", false, NULL},
    {"depth", "depth (tokens)", false, NULL},
    {"budget", "budget (tokens per target call)", false, NULL},
    {"max", "longest draft (tokens)", false, NULL},
    {"tokens", "tokens in the forward pass", false, NULL},
    {"target_s", "target forward pass (s)", true, NULL},
    {"draft_s", "draft forward pass (s)", true, NULL},
    {"target_pass_ms", "target pass, ms", true, NULL},
    {"draft_passes_ms", "draft passes of a step, ms", true, NULL},
    {"draft_s_per_call", "drafting (seconds per call)", true, NULL},
    {"verify_s_per_call", "verification (seconds per call)", true, NULL},
    {"accept_histogram", "accepted tokens per call", false, NULL},
    {"rejection", "acceptance, single draft", false, NULL},
    {"specinfer", "acceptance, SpecInfer", false, NULL},
    {"specinfer_wor", "acceptance, SpecInfer without replacement", false, NULL},
    {"kseq", "acceptance, k-Seq", false, NULL},
    {"otm", "optimal acceptance (OTM)", false, NULL},
    {"otm_wor", "optimal acceptance without replacement", false, NULL},
    {"otm_greedy", "optimal acceptance, greedy draft set", false, NULL},
};

static const known_term *find_term(const char *column)
{
    for (size_t i = 0; i < sizeof term / sizeof *term; i++)
        if (!strcmp(term[i].column, column))
            return &term[i];
    return NULL;
}

const char *dsc_term_title(const char *column)
{
    const known_term *t = find_term(column);
    return t ? t->title : column;
}

const char *dsc_term_label(const char *column)
{
    const known_term *t = find_term(column);
    return t && t->label ? t->label : column;
}

const char *dsc_term_equals(const char *column)
{
    return dsc_term_label(column) == column ? " = " : " ";
}

bool dsc_term_less_is_better(const char *column)
{
    const known_term *t = find_term(column);
    return t && t->less_is_better;
}

const char *dsc_term_heading(dsc_plot *p, const char *column)
{
    const char *title = dsc_term_title(column), *end = strstr(title, " (");
    if (!end)
        end = strstr(title, " over ");
    int length = end ? (int)(end - title) : (int)strlen(title);
    return dsc_text(p, "%c%.*s", toupper((unsigned char)*title), length - 1, title + 1);
}
