// SPDX-License-Identifier: Apache-2.0
// The titles and labels of the columns that figures and reports show.
#include "plots/draw/glossary.h"

#include <ctype.h>
#include <string.h>

typedef struct known_term {
    const char *column;
    const char *title; // for a heading or an axis, with the unit
    bool less_is_better;
} known_term;

static const known_term term[] = {
    {"alpha", "i.i.d. acceptance probability alpha", false},
    {"n", "match length n (tokens)", false},
    {"max_match", "longest match (tokens)", false},
    {"output_tokens", "output tokens", false},
    {"target_calls", "target calls", true},
    {"num_drafts_started", "drafts started (triggers)", true},
    {"num_drafts", "verification steps with a draft", true},
    {"num_draft_tokens", "draft tokens", true},
    {"num_accepted_tokens", "accepted tokens", false},
    {"draft_acceptance_rate", "draft acceptance rate", false},
    {"mean_acceptance_length", "mean acceptance length (tokens)", false},
    {"alpha_iid", "i.i.d. acceptance probability", false},
    {"block_efficiency", "block efficiency (output tokens per target call)", false},
    {"speedup", "speedup over decoding without speculation", false},
    {"iid_block_efficiency", "block efficiency under i.i.d. acceptance", false},
    {"test", "objective of tune on the test set", false},
    {"selection", "objective of tune on the selection set", false},
    {"tokens_per_s", "tokens per second", false},
    {"batch", "batch size (sequences)", false},
    {"drafts", "number of drafts K", false},
    {"num_speculative_tokens", "draft length (tokens)", false},
    {"length", "draft length L (tokens)", false},
    {"gamma", "draft length (tokens)", false},
    {"window", "window (tokens)", false},
    {"depth", "depth (tokens)", false},
    {"budget", "budget (tokens per target call)", false},
    {"max", "longest draft (tokens)", false},
    {"tokens", "tokens in the forward pass", false},
    {"target_s", "target forward pass (s)", true},
    {"draft_s", "draft forward pass (s)", true},
    {"draft_s_per_call", "drafting (seconds per call)", true},
    {"verify_s_per_call", "verification (seconds per call)", true},
    {"accept_histogram", "accepted tokens per call", false},
    {"rejection", "acceptance, single draft", false},
    {"specinfer", "acceptance, SpecInfer", false},
    {"specinfer_wor", "acceptance, SpecInfer without replacement", false},
    {"kseq", "acceptance, k-Seq", false},
    {"otm", "optimal acceptance (OTM)", false},
    {"otm_wor", "optimal acceptance without replacement", false},
    {"otm_greedy", "optimal acceptance, greedy draft set", false},
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

// Columns whose names are too long before a value.
static const char *const label[][2] = {
    {"num_speculative_tokens", "draft length"},
};

static const char *find_label(const char *column)
{
    for (size_t i = 0; i < sizeof label / sizeof *label; i++)
        if (!strcmp(label[i][0], column))
            return label[i][1];
    return NULL;
}

const char *dsc_term_label(const char *column)
{
    const char *found = find_label(column);
    return found ? found : column;
}

const char *dsc_term_equals(const char *column)
{
    return find_label(column) ? " " : " = ";
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
