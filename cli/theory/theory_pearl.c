// SPDX-License-Identifier: Apache-2.0
// draftscope theory pearl: draft and target at the same time, by window; and PEARL's published
// tables beside what the closed forms predict.
#include "cli/theory/theory_closed.h"
#include "theory/pearl.h"
#include "theory/pearl_published.h"

#include <stdlib.h>

enum { ALPHA, RATIO, WINDOW, FORM, PUBLISHED, JSON, OUT, FORCE, OPTIONS };
// clang-format off
static const dsc_option options[OPTIONS] = {
    CLI_OPTION_ALPHA,
    {.name = "ratio", .kind = DSC_OPTION_REAL, .metavar = "LIST", .least = 1e-3, .most = 1e6,
     .list = true, .help = "target time over draft time (PEARL's c)"},
    {CLI_OPTION_LENGTHS, .initial = "1:12", .min = 1,
     .max = DSC_BLOCK_LONGEST, .list = true,
     .help = "draft tokens per iteration (PEARL's gamma)"},
    {.name = "form", .kind = DSC_OPTION_CHOICE, .metavar = "LIST",
     .choices = "pearl|no-pre-verify|no-post-verify|speculative",
     .initial = "pearl,no-pre-verify,no-post-verify,speculative", .list = true,
     .help = "PEARL, its two ablations, and speculative decoding"},
    {.name = "published", .kind = DSC_OPTION_FLAG,
     .help = "instead: the paper's tables and the prediction; 1 when one is off"},
    CLI_OPTION_JSON,
    CLI_OPTION_OUT,
    CLI_OPTION_FORCE,
};
static const dsc_column columns[] = {
    {"alpha", DSC_CELL_REAL, "acceptance rate of a draft token, the same for each"},
    {"ratio", DSC_CELL_REAL, "target time over draft time"},
    {"form", DSC_CELL_TEXT, "pearl, no-pre-verify, no-post-verify or speculative"},
    {"window", DSC_CELL_INT, "draft tokens per iteration; speculative: per target call"},
    {"speedup", DSC_CELL_REAL, "against one token per target call"},
    {"tokens_per_iteration", DSC_CELL_REAL, "tokens committed; speculative: block efficiency"},
    {"best_window", DSC_CELL_INT, "with the greatest speed-up, whether or not it is listed"},
    {"best_speedup", DSC_CELL_REAL, "there"},
    {"accepted", DSC_CELL_REAL, "draft tokens accepted between two of the target's own (exact)"},
    {"accepted_as_printed", DSC_CELL_REAL, "pearl: what Theorem 2 says as it is printed"},
};
static const dsc_column published_columns[] = {
    {"table", DSC_CELL_INT, "of the paper"},
    {"pair", DSC_CELL_TEXT, "draft and target model"},
    {"quantity", DSC_CELL_TEXT, "speed-ups on HumanEval over one token per call, accepted draft "
                                "tokens per round, tokens per second, the best window"},
    {"window", DSC_CELL_INT, "PEARL's, or the draft length of speculative decoding; 0: it is what "
                             "is predicted"},
    {"alpha", DSC_CELL_REAL, "M/(1 + M), M the mean accepted tokens of Table 4"},
    {"ratio", DSC_CELL_REAL, "of the speeds in Table 7"},
    {"predicted", DSC_CELL_REAL, "by the closed form, nothing fitted"},
    {"published", DSC_CELL_REAL, "by the paper"},
    {"error_percent", DSC_CELL_REAL, "of the prediction"},
    {"tolerance_percent", DSC_CELL_REAL, "nan: shown, not judged"},
    {"ok", DSC_CELL_TEXT, "yes, no, or - when not judged"},
};
static const dsc_column formulas[] = {
    {"speedup", DSC_CELL_TEXT, "tokens_per_iteration/max(window/ratio, 1): an iteration lasts as "
                               "long as the slower of the two models"},
    {"pearl", DSC_CELL_TEXT, "tokens per iteration 1/(1 - a)/(1 + a/(1 - a^g)), g the window: "
                             "exact for the state machine of PEARL (Liu et al. 2024), Alg. 2"},
    {"no-pre-verify", DSC_CELL_TEXT, "1/(1 - a)/(1 + 1/(1 - a^g))"},
    {"no-post-verify", DSC_CELL_TEXT, "((1 - a) + a (2 + a (1 - a^(g-1))/(1 - a)))/(1 + a)"},
    {"speculative", DSC_CELL_TEXT, "(1 - a^(g+1))/(1 - a)/(1 + g/ratio); Leviathan, Kalman and "
                                   "Matias 2023, Theorem 3.8"},
    {"best_window", DSC_CELL_TEXT, "ratio, of whole numbers the better one beside it; PEARL, "
                                   "Theorem 1"},
    {"accepted", DSC_CELL_TEXT, "a/(1 - a) with post-verify, else a (1 - a^g)/(1 - a)"},
    {"accepted_as_printed", DSC_CELL_TEXT, "1/(1 - a) + 1; PEARL, Theorem 2. With the correction "
                                           "counted the exact value is 1/(1 - a)"},
};
// clang-format on
enum {
    COLUMNS = sizeof columns / sizeof *columns,
    PUBLISHED_COLUMNS = sizeof published_columns / sizeof *published_columns,
    SPECULATIVE = DSC_PEARL_FORMS // the choice behind PEARL's own
};

static const cli_theory_help help = {
    .usage = "theory pearl --alpha LIST --ratio LIST [--num-speculative-tokens LIST] [OPTIONS]\n"
             "       draftscope theory pearl --published [OPTIONS]",
    .about = "Speed-up of drafting and verifying at the same time, by window, under i.i.d. "
             "acceptance. With --published, the paper's Tables 1, 3, 4 and 5 beside what the "
             "closed forms predict; exit code 1 when one is out of tolerance.",
    .option = options,
    .options = OPTIONS,
    .column = columns,
    .columns = COLUMNS,
    .formula = formulas,
    .formulas = sizeof formulas / sizeof *formulas,
};

// --- by window -------------------------------------------------------------------------------

typedef struct point {
    double speedup, tokens, accepted, as_printed;
} point;

static point evaluate(int64_t form, double alpha, int window, double ratio)
{
    point p = {.accepted = dsc_iid_accepted(alpha, window), .as_printed = NAN};
    if (form == SPECULATIVE) {
        p.tokens = p.accepted + 1;
        p.speedup = dsc_block_speedup(p.accepted, window, (dsc_block_cost){.draft = 1 / ratio});
        return p;
    }
    p.tokens = dsc_pearl_tokens((dsc_pearl_form)form, alpha, window);
    p.speedup = dsc_pearl_speedup((dsc_pearl_form)form, alpha, window, ratio);
    if (form != DSC_PEARL_NO_POST_VERIFY)
        p.accepted = dsc_pearl_accepted_exact(alpha);
    if (form == DSC_PEARL_FULL)
        p.as_printed = dsc_pearl_accepted_as_printed(alpha);
    return p;
}

static int best_window(int64_t form, double alpha, double ratio, int *window, dsc_error *err)
{
    dsc_block_best best = {0};
    int rc = DSC_OK;
    if (form == SPECULATIVE) {
        dsc_acceptance dist = {.rate = alpha};
        rc = dsc_block_best_length(&dist, 1, DSC_BLOCK_LONGEST,
                                   (dsc_block_cost){.draft = 1 / ratio}, &best, err);
        *window = best.length;
    } else {
        *window = dsc_pearl_best_window((dsc_pearl_form)form, alpha, ratio);
    }
    return rc;
}

// The rows of one rate, ratio and form.
static int add_rows(dsc_table *t, double alpha, double ratio, int64_t form, const int64_t *window,
                    size_t windows, dsc_error *err)
{
    char name[32];
    int best, rc = best_window(form, alpha, ratio, &best, err);
    dsc_option_text(&options[FORM], form, name, sizeof name);
    for (size_t i = 0; i < windows && !rc; i++) {
        point p = evaluate(form, alpha, (int)window[i], ratio);
        dsc_cell cell[COLUMNS] = {
            {.type = DSC_CELL_REAL, .r = alpha},
            {.type = DSC_CELL_REAL, .r = ratio},
            {.type = DSC_CELL_TEXT, .text = name},
            {.type = DSC_CELL_INT, .i = window[i]},
            {.type = DSC_CELL_REAL, .r = p.speedup},
            {.type = DSC_CELL_REAL, .r = p.tokens},
            {.type = DSC_CELL_INT, .i = best},
            {.type = DSC_CELL_REAL, .r = evaluate(form, alpha, best, ratio).speedup},
            {.type = DSC_CELL_REAL, .r = p.accepted},
            {.type = DSC_CELL_REAL, .r = p.as_printed},
        };
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

static int fill(dsc_table *t, const dsc_option_value *value, dsc_error *err)
{
    double *alpha = NULL, *ratio = NULL;
    int64_t *window = NULL, *form = NULL;
    size_t alphas, ratios, windows, forms;
    if (!value[ALPHA].given || !value[RATIO].given)
        return dsc_fail(err, DSC_EUSAGE, "--alpha and --ratio are expected, or --published");
    int rc = dsc_option_reals(&options[ALPHA], value[ALPHA].text, &alpha, &alphas, err);
    if (!rc)
        rc = dsc_option_reals(&options[RATIO], value[RATIO].text, &ratio, &ratios, err);
    if (!rc)
        rc = dsc_option_list(&options[WINDOW], value[WINDOW].text, &window, &windows, err);
    if (!rc)
        rc = dsc_option_list(&options[FORM], value[FORM].text, &form, &forms, err);
    if (!rc)
        rc = cli_theory_columns(t, columns, COLUMNS, err);
    for (size_t r = 0; !rc && r < ratios; r++)
        for (size_t a = 0; !rc && a < alphas; a++)
            for (size_t f = 0; !rc && f < forms; f++)
                rc = add_rows(t, alpha[a], ratio[r], form[f], window, windows, err);
    free(alpha);
    free(ratio);
    free(window);
    free(form);
    return rc;
}

// --- published tables ------------------------------------------------------------------------

static int fill_published(dsc_table *t, size_t *wrong, size_t *judged, dsc_error *err)
{
    int rc = cli_theory_columns(t, published_columns, PUBLISHED_COLUMNS, err);
    *wrong = *judged = 0;
    for (size_t i = 0; i < dsc_pearl_published_rows() && !rc; i++) {
        dsc_pearl_row r = dsc_pearl_published_row(i);
        bool shown = isnan(r.tolerance_percent);
        *judged += !shown;
        *wrong += !r.ok;
        dsc_cell cell[PUBLISHED_COLUMNS] = {
            {.type = DSC_CELL_INT, .i = r.table},
            {.type = DSC_CELL_TEXT, .text = r.pair},
            {.type = DSC_CELL_TEXT, .text = r.quantity},
            {.type = DSC_CELL_INT, .i = r.window},
            {.type = DSC_CELL_REAL, .r = r.rate},
            {.type = DSC_CELL_REAL, .r = r.ratio},
            {.type = DSC_CELL_REAL, .r = r.predicted},
            {.type = DSC_CELL_REAL, .r = r.published},
            {.type = DSC_CELL_REAL, .r = r.error_percent},
            {.type = DSC_CELL_REAL, .r = r.tolerance_percent},
            {.type = DSC_CELL_TEXT,
             .text = shown  ? "-"
                     : r.ok ? "yes"
                            : "no"},
        };
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc;
}

// --published takes nothing that would change what is computed.
static int check_published(const dsc_option_value *value, dsc_error *err)
{
    for (int i = 0; i < PUBLISHED; i++)
        if (value[i].given)
            return dsc_fail(err, DSC_EUSAGE, "--published takes no --%s", options[i].name);
    return DSC_OK;
}

static int run(int argc, char **argv, dsc_error *err)
{
    dsc_option_value value[OPTIONS];
    dsc_table t = {0};
    size_t wrong = 0, judged = 0;
    bool done;
    int rc = cli_theory_begin(&help, argc, argv, value, &done, err);
    if (rc || done) {
        if (!rc)
            cli_print_fields("Columns with --published", published_columns, PUBLISHED_COLUMNS);
        return rc;
    }
    if (value[PUBLISHED].given)
        rc = check_published(value, err);
    if (!rc)
        rc = cli_theory_comments(&t, err);
    if (!rc)
        rc = value[PUBLISHED].given ? fill_published(&t, &wrong, &judged, err)
                                    : fill(&t, value, err);
    if (!rc)
        rc = cli_theory_write(&t, value[JSON].given, value[OUT].text, value[FORCE].given, err);
    dsc_table_fini(&t);
    if (!rc && wrong)
        rc = dsc_fail(err, DSC_ECHECK, "%zu of %zu published figures are out of tolerance", wrong,
                      judged);
    return rc;
}

const cli_command cli_theory_pearl = {
    .name = "pearl",
    .summary = "drafting and verifying at the same time (PEARL), by window",
    .run = run,
    .option = options,
    .options = OPTIONS,
};
