// SPDX-License-Identifier: Apache-2.0
// draftscope theory vocabulary: the most that drafts from a reduced vocabulary can accept on a
// trace (sim/expect/vocabulary_bound.h).
#include "base/file.h"
#include "cli/result.h"
#include "cli/theory/theory_closed.h"
#include "sim/expect/vocabulary_bound.h"
#include "traces/files/d2t.h"
#include "traces/files/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { SIZE, MAP, DRAFTS, LENGTH };
// clang-format off
static const dsc_option options[] = {
    [SIZE] = {.name = "draft-vocab-size", .kind = DSC_OPTION_INT, .metavar = "LIST", .min = 1,
     .max = 10000000, .list = true,
     .help = "numbers of tokens; the most frequent ones of the outputs of other requests are the "
             "vocabulary (default: the powers of 2 from 1024 on, and all tokens)"},
    [MAP] = {.name = "token-map", .kind = DSC_OPTION_TEXT, .metavar = "FILE|DIR",
     .help = "file with the token ids of the vocabulary, separated by white space or commas, or "
             "the folder of an EAGLE-3 head, whose tensor d2t is read; in place of "
             "--draft-vocab-size"},
    [DRAFTS] = {.name = "num-drafts", .letter = 'K', .kind = DSC_OPTION_INT, .metavar = "LIST",
     .initial = "1", .min = 1, .max = 64, .list = true,
     .help = "numbers of independent drafts per position, for column otm"},
    [LENGTH] = {.name = "num-speculative-tokens", .letter = 'k', .synonyms = "length|gamma|k",
     .kind = DSC_OPTION_INT, .metavar = "N", .initial = "5", .min = 1, .max = 1000000,
     .help = "draft tokens per step, for column block_efficiency"},
    CLI_OPTIONS_RESULT,
    CLI_OPTION_THREADS,
};
static const dsc_column columns[] = {
    {"draft_vocab_size", DSC_CELL_INT, "tokens that can be drafted"},
    {"positions", DSC_CELL_INT, "output tokens of the trace"},
    {"coverage", DSC_CELL_REAL, "share of the output tokens that can be drafted"},
    {"bound", DSC_CELL_REAL, "mean target probability of the tokens that can be drafted: no "
                             "lossless rule accepts more; without recorded distributions, empty"},
    {"drafts", DSC_CELL_INT, "independent drafts per position, of column otm"},
    {"otm", DSC_CELL_REAL, "mean acceptance of the best rule for the recorded draft distribution, "
                           "restricted to the vocabulary and normalized"},
    {"block_efficiency", DSC_CELL_REAL, "output tokens per target call when every draft token that "
                                        "is in the vocabulary is accepted: no lossless drafter "
                                        "with such drafts has more"},
};
enum { COLUMNS = sizeof columns / sizeof *columns };
static const dsc_column formulas[] = {
    {"bound", DSC_CELL_TEXT, "target(S), with S the vocabulary: an emitted token is a sample of "
     "the target, and an accepted one is in S. SpecTr (Sun et al. 2023), Lemma 1, for any draft "
     "with support S"},
    {"otm", DSC_CELL_TEXT, "1 - max over A of draft_S(A)^K - target(A), with draft_S the draft "
     "distribution restricted to S and normalized; SpecTr Eq. (4)"},
    {"S", DSC_CELL_TEXT, "the most frequent tokens, as in EAGLE-3 (Li et al. 2025, arXiv "
     "2503.01840: d2t, t2d) and FR-Spec (Zhao et al. 2025, arXiv 2502.14856). Requests with an "
     "even number are counted for those with an odd number, and the reverse"},
    {"block_efficiency", DSC_CELL_TEXT, "tokens/calls; a call accepts the output's next tokens up "
     "to the first one outside S, --num-speculative-tokens at most, and adds one"},
};
// clang-format on

typedef struct query {
    dsc_vocabulary_options options;
    int64_t *size;
    int drafts[DSC_VOCABULARY_DRAFTS];
    bool *in;
} query;

// --- the vocabulary ------------------------------------------------------------------------------

static int default_sizes(query *q, int64_t vocab, dsc_error *err)
{
    int rc = dsc_new(&q->size, 64, err);
    for (int64_t n = 1024; n < vocab && !rc; n *= 2)
        q->size[q->options.sizes++] = n;
    if (!rc)
        q->size[q->options.sizes++] = vocab;
    return rc;
}

static int read_d2t(query *q, const dsc_tensor *d2t, int64_t vocab, dsc_error *err)
{
    int32_t *column;
    int rc = dsc_new(&column, (size_t)vocab, err);
    if (!rc)
        rc = dsc_d2t_read(column, vocab, d2t->data, d2t->count, err);
    if (!rc)
        rc = dsc_new(&q->in, (size_t)vocab, err);
    for (int64_t x = 0; x < vocab && !rc; x++)
        q->in[x] = column[x] >= 0;
    free(column);
    return rc;
}

static int read_head(query *q, const char *folder, int64_t vocab, dsc_error *err)
{
    char path[1024];
    dsc_safetensors *file;
    snprintf(path, sizeof path, "%.1000s/model.safetensors", folder);
    int rc = dsc_safetensors_open(&file, path, err);
    if (rc)
        return rc;
    const dsc_tensor *d2t = dsc_safetensors_find(file, "d2t");
    if (!d2t || d2t->dtype != DSC_I64 || d2t->rank != 1)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%.300s: no tensor 'd2t' of 64-bit integers, as an EAGLE-3 head with a "
                      "reduced vocabulary has; give a file of token ids",
                      path);
    else if ((rc = read_d2t(q, d2t, vocab, err)) == DSC_EINPUT)
        dsc_error_prefix(err, rc, "%.300s", path);
    q->options.sizes = 1;
    dsc_safetensors_close(file);
    return rc;
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static int read_map(query *q, const char *path, int64_t vocab, dsc_error *err)
{
    char *text;
    if (is_folder(path))
        return read_head(q, path, vocab, err);
    int rc = dsc_read_text(&text, path, 1 << 28, err);
    if (rc)
        return rc;
    rc = dsc_new(&q->in, (size_t)vocab, err);
    for (const char *at = text; !rc && at[strspn(at, " \t\r\n,")];) {
        char *end;
        at += strspn(at, " \t\r\n,");
        const long long id = strtoll(at, &end, 10);
        if (end == at || id < 0 || id >= vocab)
            rc = dsc_fail(err, DSC_EINPUT, "%.300s: '%.*s' is not a token id from 0 to %" PRId64,
                          path, (int)strcspn(at, " \t\r\n,"), at, vocab - 1);
        else
            q->in[id] = true;
        at = end;
    }
    q->options.sizes = 1;
    free(text);
    return rc;
}

static int read_query(query *q, const cli_call *call, dsc_error *err)
{
    const dsc_option_value *value = call->value;
    const int64_t vocab = dsc_trace_get_info(call->trace)->vocab_size;
    int64_t *list = NULL;
    if (value[SIZE].given && value[MAP].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "--draft-vocab-size and --token-map cannot be combined: each names the "
                        "vocabulary");
    int rc =
        dsc_option_list(&options[DRAFTS], value[DRAFTS].text, &list, &q->options.draft_counts, err);
    if (!rc && q->options.draft_counts > DSC_VOCABULARY_DRAFTS)
        rc = dsc_fail(err, DSC_EUSAGE, "--num-drafts: %zu values; at most %d can be compared",
                      q->options.draft_counts, DSC_VOCABULARY_DRAFTS);
    for (size_t k = 0; k < q->options.draft_counts && !rc; k++)
        q->drafts[k] = (int)list[k];
    free(list);
    if (!rc)
        rc = value[MAP].given    ? read_map(q, value[MAP].text, vocab, err)
             : value[SIZE].given ? dsc_option_list(&options[SIZE], value[SIZE].text, &q->size,
                                                   &q->options.sizes, err)
                                 : default_sizes(q, vocab, err);
    q->options.in = q->in;
    q->options.size = q->size;
    q->options.drafts = q->drafts;
    q->options.longest = value[LENGTH].integer;
    q->options.threads = call->threads;
    return rc;
}

// --- the table -----------------------------------------------------------------------------------

static int fill(dsc_table *t, const query *q, const dsc_vocabulary_bounds *x, dsc_error *err)
{
    const dsc_cell none = dsc_cell_absent();
    int rc = dsc_table_add_columns(t, columns, COLUMNS, err);
    for (size_t s = 0; s < q->options.sizes && !rc; s++)
        for (size_t k = 0; k < q->options.draft_counts && !rc; k++) {
            const dsc_vocabulary_bound *b = &x->bound[s];
            const bool known = !isnan(b->limit);
            const dsc_cell cell[COLUMNS] = {
                cli_integer(b->tokens),
                cli_integer(x->positions),
                cli_real(b->coverage),
                known ? cli_real(b->limit) : none,
                known ? cli_integer(q->drafts[k]) : none,
                known ? cli_real(b->otm[k]) : none,
                cli_real((double)x->positions / (double)b->calls),
            };
            if (k == 0 || known)
                rc = dsc_table_add_row(t, cell, err);
        }
    return rc;
}

static int vocabulary(const cli_call *call, dsc_error *err)
{
    query q = {0};
    dsc_vocabulary_bounds x = {0};
    dsc_table t = {0};
    int rc = read_query(&q, call, err);
    if (!rc)
        rc = dsc_vocabulary_bounds_of(&x, call->trace, &q.options, err);
    if (!rc)
        rc = cli_comments(&t, call->trace, 0, NULL, err);
    if (!rc)
        rc = fill(&t, &q, &x, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    dsc_vocabulary_bounds_fini(&x);
    dsc_table_fini(&t);
    free(q.size);
    free(q.in);
    return rc;
}

const cli_command cli_theory_vocabulary = {
    .name = "vocabulary",
    .summary = "the most that drafts from a reduced vocabulary (EAGLE-3) can accept on a trace",
    CLI_OPTIONS(options),
    .usage = "theory vocabulary TRACE [--draft-vocab-size LIST | --token-map FILE|DIR] [OPTIONS]",
    .about = "Computes bounds for draft heads that cover a part of the vocabulary. Any trace has "
             "the share of its output tokens that such a head could draft; one with recorded "
             "distributions (live record --logprobs dense) has the bound of every lossless rule "
             "and the optimum of the recorded draft model, restricted to that part.",
    .least = 1,
    .most = 1,
    .opens_trace = true,
    .fields = {CLI_FIELDS("Columns", columns), CLI_FIELDS("Formulas", formulas)},
    .execute = vocabulary,
};
