// SPDX-License-Identifier: Apache-2.0
// Runs the simulator and the importers for predictions: `draftscope sim` on a line of arguments,
// and traces imported into a temporary folder.
#include "cli/simulate.h"
#include "cli/validate/validate.h"
#include "cli/workload.h"
#include "sim/cost/price.h"
#include "sim/run/run.h"
#include "traces/import/import.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

// --- sim --------------------------------------------------------------------------------------

enum { METHOD, COST, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    {.name = "method", .kind = DSC_OPTION_TEXT},
    CLI_OPTION_COST,
};
// clang-format on

enum { WORDS_MAX = 64 };

// Splits `words` at blanks, in place.
static int split(char *words, char *argv[WORDS_MAX])
{
    int argc = 0;
    char *rest = words;
    for (char *w; argc < WORDS_MAX && (w = strsep(&rest, " "));)
        if (*w)
            argv[argc++] = w;
    return argc;
}

static int take(const dsc_counts *counts, const dsc_cost *cost, validate_outcome *out,
                dsc_error *err)
{
    dsc_price price;
    dsc_expected x = dsc_counts_real(counts);
    int rc = dsc_price_run(&price, cost, counts, 1, err);
    *out = (validate_outcome){
        .requests = (double)counts->requests,
        .output_tokens = (double)counts->output_tokens,
        .target_calls = x.target_calls,
        .num_drafts_started = x.num_drafts_started,
        .num_draft_tokens = x.num_draft_tokens,
        .num_accepted_tokens = x.num_accepted_tokens,
        .draft_calls = x.draft_calls,
        .block_efficiency = dsc_block_efficiency(counts),
        .speedup = price.speedup,
    };
    return rc;
}

static int simulate(int argc, char **argv, validate_outcome *out, dsc_error *err)
{
    dsc_option_value value[OPTIONS], load[CLI_WORKLOAD_OPTIONS], parameter[DSC_MAX_PARAMETERS];
    dsc_config config = {0};
    dsc_cost cost = {0};
    cli_workload models = {0};
    dsc_results results = {0};
    dsc_trace *trace = NULL;
    size_t words = 0;
    dsc_option_set sets[3] = {
        {.table = options, .count = OPTIONS, .value = value},
        {.table = cli_workload_options, .count = CLI_WORKLOAD_OPTIONS, .value = load},
    };
    int rc = cli_find_method(sets, 2, argc, argv, &config.drafter, err);
    if (rc)
        return rc;
    sets[2] = (dsc_option_set){
        .table = config.drafter->option, .count = config.drafter->option_count, .value = parameter};
    rc = cli_parse(sets, 3, argc, argv, &words, err);
    if (!rc)
        rc = cli_config_fill(&config, parameter, err);
    if (!rc)
        rc = dsc_cost_parse(&cost, value[COST].text, err);
    if (!rc && words)
        rc = dsc_trace_open(&trace, argv[0], err);
    if (!rc)
        rc = cli_workload_make(&models, load, &config.drafter, 1, trace != NULL, err);
    if (!rc) {
        dsc_run_options run = {.rule =
                                   cli_workload_rule(&models, trace, load[CLI_WORKLOAD_RULE].text,
                                                     config.drafter, err),
                               .workload = &models.load,
                               .widths = !cost.type->linear,
                               .threads = cli_threads(0)};
        rc = run.rule ? dsc_run(trace, &config, 1, &run, &results, err) : DSC_EUSAGE;
    }
    if (!rc) {
        rc = take(&results.counts[0], &cost, out, err);
        dsc_results_fini(&results);
    }
    dsc_cost_fini(&cost);
    cli_workload_free(&models);
    dsc_trace_close(trace);
    dsc_config_fini(&config);
    return rc;
}

// Appends `words` with every {} replaced by `file`.
static int substitute(dsc_buffer *b, const char *words, const char *file, dsc_error *err)
{
    int rc = DSC_OK;
    for (const char *hole; !rc && (hole = strstr(words, "{}")); words = hole + 2) {
        rc = dsc_buffer_append(b, words, (size_t)(hole - words), err);
        if (!rc)
            rc = dsc_buffer_puts(b, file, err);
    }
    return rc ? rc : dsc_buffer_puts(b, words, err);
}

int validate_simulate(const char *words, const char *file, validate_outcome *out, dsc_error *err)
{
    char *word[WORDS_MAX], *full[WORDS_MAX], *copy;
    dsc_buffer made[WORDS_MAX] = {{0}};
    int rc = dsc_strndup(&copy, words, strlen(words), err);
    int n = rc ? 0 : split(copy, word);
    for (int i = 0; i < n && !rc; i++) { // after the split: a file name may contain blanks
        rc = substitute(&made[i], word[i], file, err);
        full[i] = made[i].data;
    }
    if (!rc)
        rc = simulate(n, full, out, err);
    for (int i = 0; i < n; i++)
        dsc_buffer_fini(&made[i]);
    free(copy);
    return rc;
}

// --- imports ----------------------------------------------------------------------------------

int validate_path(char **out, const char *folder, const char *name, dsc_error *err)
{
    dsc_buffer b = {0};
    int rc = dsc_buffer_printf(&b, err, "%s/%s", folder, name);
    *out = b.data;
    return rc;
}

int validate_scratch_open(char **path, dsc_error *err)
{
    const char *folder = getenv("TMPDIR");
    *path = NULL;
    int rc = validate_path(path, folder && *folder ? folder : "/tmp", "draftscope.XXXXXX", err);
    if (!rc && !mkdtemp(*path)) {
        rc = dsc_fail_errno(err, DSC_EIO, errno, "cannot create '%s' (TMPDIR)", *path);
        free(*path);
        *path = NULL;
    }
    return rc;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void validate_scratch_close(char *path)
{
    if (path)
        nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(path);
}

int validate_import_trace(const validate_row *row, const char *scratch, const validate_import *what,
                          dsc_trace **trace, dsc_error *err)
{
    char *file = NULL, *tokens = NULL, *questions = NULL, *out = NULL;
    dsc_tokenizer *tokenizer = NULL;
    dsc_import_options o = {.format = what->format, .force = true};
    int rc = validate_path(&file, row->data, what->file, err);
    if (!rc)
        rc = validate_path(&tokens, row->data, what->tokenizer, err);
    if (!rc && what->questions)
        rc = validate_path(&questions, row->data, what->questions, err);
    if (!rc)
        rc = validate_path(&out, scratch, "trace.dst", err);
    if (!rc)
        rc = dsc_tokenizer_load(&tokenizer, tokens, err);
    o.questions = questions;
    if (!rc)
        rc = dsc_import((const char *const *)&file, 1, tokenizer, out, &o, NULL, err);
    if (!rc)
        rc = dsc_trace_open(trace, out, err);
    dsc_tokenizer_free(tokenizer);
    free(file);
    free(tokens);
    free(questions);
    free(out);
    return rc;
}
