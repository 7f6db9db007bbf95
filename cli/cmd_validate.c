// SPDX-License-Identifier: Apache-2.0
// draftscope validate: compares predictions with published figures (--published), with the
// results of live runs (--trace and --live), or with two recorded runs of the same requests.
#include "cli/result.h"
#include "cli/validate/validate.h"
#include "cli/validate/validate_live.h"
#include "cli/validate/validate_pair.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const validate_row_type *const rows[] = {
    &validate_spectr_appb, &validate_spectr_table1, &validate_pearl,     &validate_eagle,
    &validate_ouroboros,   &validate_leviathan,     &validate_khisti,    &validate_identity,
    &validate_serving,     &validate_steps,         &validate_specbench, &validate_llma,
};
enum { ROWS = sizeof rows / sizeof *rows };

enum { METHOD, PUBLISHED, TABLES, DATA, CORPUS, BY };
// clang-format off
static const dsc_option options[] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "with two traces: method whose speedup is predicted from the text of the first, with "
             "its options (default: the recorded steps of the second)"},
    {.name = "published", .kind = DSC_OPTION_FLAG,
     .help = "compare with published figures: of the given rows, or of all rows"},
    {.name = "tables", .kind = DSC_OPTION_TEXT, .metavar = "DIR",
     .help = "folder of the tables of figures, ROW.tsv (default: installed, else "
             "tests/validation)"},
    {.name = "data", .kind = DSC_OPTION_TEXT, .metavar = "DIR",
     .help = "folder that contains llma, specbench and tokenizers; rows that need it are skipped "
             "without it"},
    {.name = "corpus", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "text to train n-gram pairs on (default: the bundled sample)"},
    {.name = "by", .kind = DSC_OPTION_TEXT, .metavar = "FIELD",
     .help = "with two traces: compare also the requests with each value of this metadata field "
             "(default: category, where the requests have it)"},
    CLI_OPTIONS_RESULT,
};
// clang-format on
// --- one row ----------------------------------------------------------------------------------

enum { PATH_BYTES = 4096 };

// The given path, else the one next to this program, which may have been moved after its
// installation, else the installed one, else, in a source tree, the local one.
static const char *place(const dsc_option_value *value, const char *moved, const char *installed,
                         const char *here, char path[PATH_BYTES])
{
    if (value->given)
        return value->text;
    if (cli_installed_at(path, PATH_BYTES, 2, moved) && access(path, R_OK) == 0)
        return path;
    return access(installed, R_OK) != 0 && access(here, R_OK) == 0 ? here : installed;
}

// `row` has the paths; its other fields are local to this call.
static int validate(dsc_table *t, const validate_row_type *type, validate_row row, dsc_error *err)
{
    char name[64], *path = NULL;
    dsc_table figures = {0};
    if (type->needs_data && !row.data)
        return validate_report_skipped(t, type->name, "its data are missing (--data DIR)", err);
    snprintf(name, sizeof name, "%s.tsv", type->name);
    int rc = validate_path(&path, row.folder, name, err);
    row.path = path;
    if (!rc)
        rc = validate_read(&row, &figures, type->name, err);
    if (!rc)
        rc = validate_predict_row(type, &row, err);
    snprintf(name, sizeof name, "source of %s", type->name);
    if (!rc)
        rc = dsc_table_comment(t, name, dsc_table_get_comment(&figures, "source"), err);
    if (!rc)
        rc = validate_report(t, type->name, &row, err);
    free(row.figure);
    free(path);
    dsc_table_fini(&figures);
    return rc;
}

static int validate_all(dsc_table *t, const bool *chosen, const dsc_option_value *value,
                        dsc_error *err)
{
    char tables[PATH_BYTES], corpus[PATH_BYTES];
    const validate_row places = {
        .folder = place(&value[TABLES], "share/draftscope/validation", VALIDATION_DIR,
                        "tests/validation", tables),
        .data = value[DATA].text,
        .corpus = place(&value[CORPUS], "share/draftscope/sample/edits.jsonl",
                        SAMPLE_DIR "/edits.jsonl", "traces/sample/edits.jsonl", corpus),
    };
    int rc = cli_result_comments(t, err);
    if (!rc)
        rc = dsc_table_comment(t, "tables", places.folder, err);
    if (!rc)
        rc = dsc_table_comment(t, "corpus", places.corpus, err);
    if (!rc)
        rc = dsc_table_add_columns(t, validate_columns, VALIDATE_COLUMNS, err);
    for (size_t r = 0; r < ROWS && !rc; r++)
        if (chosen[r])
            rc = validate(t, rows[r], places, err);
    return rc;
}

// --- the command ------------------------------------------------------------------------------

static void print_rows(void)
{
    dsc_column row[ROWS];
    for (size_t r = 0; r < ROWS; r++)
        row[r] = (dsc_column){.name = rows[r]->name, .help = rows[r]->summary};
    cli_print_fields("Rows", row, ROWS);
}

// Finds the rows that the words name; all rows if there are none.
static int choose(char **word, size_t words, bool chosen[ROWS], dsc_error *err)
{
    const char *names[ROWS];
    for (size_t r = 0; r < ROWS; r++) {
        names[r] = rows[r]->name;
        chosen[r] = !words;
    }
    for (size_t w = 0; w < words; w++) {
        size_t r = 0;
        while (r < ROWS && strcmp(word[w], names[r]) != 0)
            r++;
        if (r == ROWS)
            return dsc_unknown_name("row", word[w], names, ROWS, "see: draftscope validate --help",
                                    err);
        chosen[r] = true;
    }
    return DSC_OK;
}

enum { PASS, HOLDS, FAIL, DISPUTED, SHOWN, VERDICTS };
static const char *const verdicts[VERDICTS] = {"pass", "holds", "fail", "disputed", "shown"};

// Index of a cell's text in a list; n: it is not there.
static int index_of(const dsc_table *t, size_t row, const char *column, const char *const *name,
                    int n)
{
    const char *text = dsc_table_at(t, row, (size_t)dsc_table_find(t, column))->text;
    int i = 0;
    while (i < n && strcmp(text, name[i]) != 0)
        i++;
    return i;
}

static void print_kind(const char *kind, const size_t count[VERDICTS])
{
    static const char *const words[VERDICTS] = {"within tolerance", "lower bounds hold",
                                                "out of tolerance", "disputed",
                                                "shown without a verdict"};
    const char *separator = ": ";
    for (int v = 0; v < VERDICTS; v++) {
        if (!count[v])
            continue;
        const bool order = v == PASS && strcmp(kind, validate_kinds[VALIDATE_IN_ORDER].name) == 0;
        if (*separator == ':')
            fprintf(stderr, "draftscope: %s", kind);
        fprintf(stderr, "%s%zu %s", separator, count[v], order ? "in the same order" : words[v]);
        separator = ", ";
    }
    if (*separator == ',')
        fputc('\n', stderr);
}

// Prints a summary by kind on stderr; DSC_ECHECK when a figure is out of tolerance.
static int sum_up(const dsc_table *t, dsc_error *err)
{
    size_t count[VALIDATE_KINDS][VERDICTS] = {{0}}, failed = 0, skipped = 0, first = 0;
    const char *kinds[VALIDATE_KINDS];
    for (int k = 0; k < VALIDATE_KINDS; k++)
        kinds[k] = validate_kinds[k].name;
    for (size_t i = 0; i < t->rows; i++) {
        const int v = index_of(t, i, "verdict", verdicts, VERDICTS),
                  k = index_of(t, i, "kind", kinds, VALIDATE_KINDS);
        if (v == VERDICTS || k == VALIDATE_KINDS) {
            skipped++;
            continue;
        }
        count[k][v]++;
        first = v == FAIL && !failed ? i : first;
        failed += v == FAIL;
    }
    if (failed)
        return dsc_fail(err, DSC_ECHECK,
                        "%zu published figures are out of tolerance, first %s, %s, %s: %s", failed,
                        dsc_table_at(t, first, 0)->text, dsc_table_at(t, first, 1)->text,
                        dsc_table_at(t, first, 2)->text, dsc_table_at(t, first, 3)->text);
    for (int k = 0; k < VALIDATE_KINDS; k++)
        print_kind(validate_kinds[k].name, count[k]);
    fprintf(stderr, "draftscope: rows skipped: %zu\n", skipped);
    return DSC_OK;
}

enum way { OF_PUBLISHED, OF_LIVE, OF_PAIR };

// Finds the one comparison that is requested.
static int find_way(const cli_call *call, enum way *out, dsc_error *err)
{
    const bool live = call->more[VALIDATE_TRACE].given || call->more[VALIDATE_LIVE].given,
               published = call->value[PUBLISHED].given;
    *out = published ? OF_PUBLISHED : live ? OF_LIVE : OF_PAIR;
    if (published && live)
        return dsc_fail(err, DSC_EUSAGE,
                        "give either --published, or --trace and --live, not both (see: draftscope "
                        "validate --help)");
    if (live)
        return cli_check_positionals(call->words, 0, 0, "no argument with --live", err);
    if (!published && call->words != 2)
        return dsc_fail(err, DSC_EUSAGE,
                        "give --published, or --trace and --live, or two traces of the same "
                        "requests, without and with speculation (see: draftscope validate --help)");
    if (published && (call->methods || call->value[BY].given))
        return dsc_fail(err, DSC_EUSAGE, "--%s belongs to the comparison of two traces",
                        call->methods ? "method" : "by");
    return DSC_OK;
}

static int validate_two(dsc_table *t, const cli_call *call, size_t *failed, dsc_error *err)
{
    const dsc_option_value *live = call->more;
    const validate_pair_options o = {
        .by = call->value[BY].text,
        .cost = live[VALIDATE_COST].text,
        .resamples = (int)(live[VALIDATE_BOOTSTRAP].integer & ~(int64_t)3),
        .threads = cli_threads(live[VALIDATE_THREADS].integer),
        .seed = (uint64_t)live[VALIDATE_SEED].integer,
        .tolerance = live[VALIDATE_SPEEDUP].real,
    };
    return validate_pair_run(t, call, &o, failed, err);
}

static int sum_up_pair(const dsc_table *t, size_t failed, dsc_error *err)
{
    if (failed)
        return dsc_fail(err, DSC_ECHECK,
                        "%zu of %zu predicted speedups are outside the tolerance and outside the "
                        "interval of the measurement",
                        failed, t->rows);
    fprintf(stderr, "draftscope: matched requests: %s\n", dsc_table_get_comment(t, "matched"));
    return DSC_OK;
}

static int execute(const cli_call *call, dsc_error *err)
{
    validate_summary summary;
    dsc_table t = {0};
    bool chosen[ROWS];
    size_t failed = 0;
    enum way way;
    int rc = find_way(call, &way, err);
    if (!rc && way == OF_PUBLISHED)
        rc = choose(call->word, call->words, chosen, err);
    if (!rc)
        rc = way == OF_PUBLISHED ? validate_all(&t, chosen, call->value, err)
             : way == OF_LIVE    ? validate_live(&t, call->more, &summary, err)
                                 : validate_two(&t, call, &failed, err);
    if (!rc)
        rc = cli_result_write(&t, call, err);
    if (!rc)
        rc = way == OF_PUBLISHED ? sum_up(&t, err)
             : way == OF_LIVE    ? validate_live_sum_up(&summary, err)
                                 : sum_up_pair(&t, failed, err);
    dsc_table_fini(&t);
    return rc;
}

const cli_command cli_validate = {
    .name = "validate",
    .summary = "predictions against published figures and measured runs",
    CLI_OPTIONS(options),
    .more = {"Against live runs", validate_live_options, VALIDATE_LIVE_OPTIONS},
    .methods = CLI_METHOD_MAYBE,
    .usage = "validate [ROW...] --published | --trace NAME.dst --live FILE.jsonl | A.dst B.dst "
             "[OPTIONS]",
    .about = "Compares published figures, or measurements of live runs, with the predictions of "
             "theory or simulation: prints both, the error, and whether it is within the stated "
             "tolerance. No parameter is fitted to a figure that is judged. Two traces A.dst and "
             "B.dst of the same requests, recorded without and with speculation, give the "
             "measured speedup by category with intervals, and the predicted one. The exit code "
             "is 1 when a figure is out of tolerance.",
    .most = -1,
    .what = "rows or two traces",
    .more_help = print_rows,
    .fields = {{"Columns", validate_columns, VALIDATE_COLUMNS},
               {"Kinds", validate_kinds, VALIDATE_KINDS},
               {"Columns with --live", validate_live_columns, VALIDATE_LIVE_COLUMNS},
               {"Columns of two traces", validate_pair_columns, VALIDATE_PAIR_COLUMNS}},
    .execute = execute,
};
