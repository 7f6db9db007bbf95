// SPDX-License-Identifier: Apache-2.0
// Runs the simulator and the importers for predictions: `draftscope sim` on a line of arguments,
// and traces imported into a temporary folder.
#include "cli/method.h"
#include "cli/simulate.h"
#include "cli/validate/validate.h"
#include "sim/cost/price.h"
#include "sim/run/run.h"
#include "traces/import/import.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

// --- sim --------------------------------------------------------------------------------------

static const dsc_option options[] = {
    {.name = "method", .kind = DSC_OPTION_TEXT},
    CLI_OPTION_COST,
};
static const cli_command simulation = {
    .name = "sim",
    CLI_OPTIONS(options),
    .more = {"Models", cli_workload_options, CLI_WORKLOAD_OPTIONS},
    .methods = CLI_METHOD_ONE,
};

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
    cli_call call;
    cli_simulation s = {0};
    dsc_config config = {0};
    dsc_results results = {0};
    int rc = cli_call_init(&call, &simulation, argc, argv, err);
    config.drafter = call.method[0];
    if (!rc)
        rc = cli_config_fill(&config, call.list[0], err);
    if (!rc)
        rc = cli_simulation_open(&s, &call, err);
    if (!rc)
        rc = (s.run.rule =
                  cli_simulation_rule(&s, call.more[CLI_WORKLOAD_RULE].text, config.drafter, err))
                 ? DSC_OK
                 : DSC_EUSAGE;
    if (!rc)
        rc = dsc_run(s.trace, &config, 1, &s.run, &results, err);
    if (!rc)
        rc = take(&results.counts[0], &s.cost, out, err);
    dsc_results_fini(&results);
    cli_simulation_close(&s);
    dsc_config_fini(&config);
    cli_call_fini(&call);
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

static int make_scratch(char **path, dsc_error *err)
{
    const char *folder = getenv("TMPDIR");
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

void validate_import_close(validate_imported *to)
{
    dsc_trace_close(to->trace);
    if (to->scratch)
        nftw(to->scratch, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    free(to->scratch);
    free(to->path);
}

int validate_import_open(validate_imported *to, const validate_row *row,
                         const validate_import *what, dsc_error *err)
{
    char *file = NULL, *tokens = NULL, *questions = NULL;
    dsc_tokenizer *tokenizer = NULL;
    dsc_import_options o = {.format = what->format, .force = true};
    *to = (validate_imported){0};
    int rc = make_scratch(&to->scratch, err);
    if (!rc)
        rc = validate_path(&to->path, to->scratch, "trace.dst", err);
    if (!rc)
        rc = validate_path(&file, row->data, what->file, err);
    if (!rc)
        rc = validate_path(&tokens, row->data, what->tokenizer, err);
    if (!rc && what->questions)
        rc = validate_path(&questions, row->data, what->questions, err);
    if (!rc)
        rc = dsc_tokenizer_load(&tokenizer, tokens, err);
    o.questions = questions;
    if (!rc)
        rc = dsc_import((const char *const *)&file, 1, tokenizer, to->path, &o, NULL, err);
    if (!rc)
        rc = dsc_trace_open(&to->trace, to->path, err);
    dsc_tokenizer_free(tokenizer);
    free(file);
    free(tokens);
    free(questions);
    return rc;
}
