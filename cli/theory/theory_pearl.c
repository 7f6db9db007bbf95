// SPDX-License-Identifier: Apache-2.0
// draftscope theory pearl: speedup of drafting and verifying in parallel (PEARL, Liu et al. 2024),
// by draft length; with --published, the paper's tables next to the predictions of the closed
// forms.
#include "cli/theory/theory_closed.h"
#include "theory/pearl.h"
#include "theory/pearl_published.h"

enum { ALPHA, RATIO, WINDOW, FORM, PUBLISHED };
// clang-format off
static const dsc_option options[] = {
    CLI_OPTION_ALPHA,
    {.name = "ratio", .kind = DSC_OPTION_REAL, .metavar = "LIST", .least = 1e-3, .most = 1e6,
     .list = true, .help = "time of a target call divided by time of a draft token (PEARL's c)"},
    {CLI_OPTION_LENGTHS, .initial = "1:12", .min = 1, .max = DSC_BLOCK_LONGEST, .list = true,
     .help = "draft tokens per iteration (PEARL's gamma)"},
    {.name = "form", .kind = DSC_OPTION_CHOICE, .metavar = "LIST",
     .choices = "pearl|no-pre-verify|no-post-verify|speculative",
     .initial = "pearl,no-pre-verify,no-post-verify,speculative", .list = true,
     .help = "state machine: PEARL, its two ablations, or sequential speculative decoding"},
    {.name = "published", .kind = DSC_OPTION_FLAG,
     .help = "print the paper's tables next to the predictions instead; exit code 1 when one is "
             "out of tolerance"},
    CLI_OPTIONS_RESULT,
};
static const dsc_column columns[] = {
    {"alpha", DSC_CELL_REAL, "i.i.d. per-token acceptance probability (alpha_iid)"},
    {"ratio", DSC_CELL_REAL, "time of a target call divided by time of a draft token"},
    {"form", DSC_CELL_TEXT, "pearl, no-pre-verify, no-post-verify or speculative"},
    {"window", DSC_CELL_INT, "draft tokens per iteration; speculative: per target call"},
    {"speedup", DSC_CELL_REAL, "speedup over decoding one token per target call"},
    {"tokens_per_iteration", DSC_CELL_REAL, "output tokens per iteration; speculative: block "
                                            "efficiency"},
    {"best_window", DSC_CELL_INT, "window with the highest speedup, of all windows and not only "
                                  "those listed"},
    {"best_speedup", DSC_CELL_REAL, "speedup at best_window"},
    {"accepted", DSC_CELL_REAL, "expected accepted draft tokens between two corrections (exact)"},
    {"accepted_as_printed", DSC_CELL_REAL, "pearl: accepted by Theorem 2 as it is printed"},
};
static const dsc_column published_columns[] = {
    {"table", DSC_CELL_INT, "number of the paper's table"},
    {"pair", DSC_CELL_TEXT, "draft and target model"},
    {"quantity", DSC_CELL_TEXT, "speedup on HumanEval, accepted draft tokens per step, tokens per "
                                "second, or the best window"},
    {"window", DSC_CELL_INT, "PEARL's window, or the draft length of speculative decoding; 0: the "
                             "window is the predicted quantity"},
    {"alpha", DSC_CELL_REAL, "M/(1 + M), where M is the mean accepted length of Table 4"},
    {"ratio", DSC_CELL_REAL, "ratio of the speeds in Table 7"},
    {"predicted", DSC_CELL_REAL, "value of the closed form, without any fit"},
    {"published", DSC_CELL_REAL, "value printed in the paper"},
    {"error_percent", DSC_CELL_REAL, "relative error of predicted"},
    {"tolerance_percent", DSC_CELL_REAL, "largest |error_percent| that passes; nan: not judged"},
    {"ok", DSC_CELL_TEXT, "yes: within tolerance; no: out of tolerance; -: not judged"},
};
static const dsc_column formulas[] = {
    {"speedup", DSC_CELL_TEXT, "tokens_per_iteration/max(window/ratio, 1): an iteration lasts as "
                               "long as the slower of the two models"},
    {"pearl", DSC_CELL_TEXT, "tokens per iteration 1/(1 - a)/(1 + a/(1 - a^g)) with window g: "
                             "exact for the state machine of PEARL (Liu et al. 2024), Alg. 2"},
    {"no-pre-verify", DSC_CELL_TEXT, "1/(1 - a)/(1 + 1/(1 - a^g))"},
    {"no-post-verify", DSC_CELL_TEXT, "((1 - a) + a (2 + a (1 - a^(g-1))/(1 - a)))/(1 + a)"},
    {"speculative", DSC_CELL_TEXT, "(1 - a^(g+1))/(1 - a)/(1 + g/ratio); Leviathan, Kalman and "
                                   "Matias 2023, Theorem 3.8"},
    {"best_window", DSC_CELL_TEXT, "ratio, rounded to the better of the two adjacent integers; "
                                   "PEARL, Theorem 1"},
    {"accepted", DSC_CELL_TEXT, "a/(1 - a) with post-verify, else a (1 - a^g)/(1 - a)"},
    {"accepted_as_printed", DSC_CELL_TEXT, "1/(1 - a) + 1; PEARL, Theorem 2. The exact value "
                                           "including the correction is 1/(1 - a)"},
};
// clang-format on
enum {
    PUBLISHED_COLUMNS = sizeof published_columns / sizeof *published_columns,
    SPECULATIVE = DSC_PEARL_FORMS // the choice after PEARL's own
};

// --- by window -------------------------------------------------------------------------------

typedef struct quantities {
    double speedup, tokens, accepted, as_printed;
} quantities;

static quantities evaluate(int64_t form, double alpha, int window, double ratio)
{
    quantities q = {.accepted = dsc_iid_accepted(alpha, window), .as_printed = NAN};
    if (form == SPECULATIVE) {
        q.tokens = q.accepted + 1;
        q.speedup = dsc_block_speedup(q.accepted, window, (dsc_block_cost){.draft = 1 / ratio});
        return q;
    }
    q.tokens = dsc_pearl_tokens((dsc_pearl_form)form, alpha, window);
    q.speedup = dsc_pearl_speedup((dsc_pearl_form)form, alpha, window, ratio);
    if (form != DSC_PEARL_NO_POST_VERIFY)
        q.accepted = dsc_pearl_accepted_exact(alpha);
    if (form == DSC_PEARL_FULL)
        q.as_printed = dsc_pearl_accepted_as_printed(alpha);
    return q;
}

static int find_best(cli_point *p, int64_t form, double ratio, dsc_error *err)
{
    if (form == SPECULATIVE)
        return dsc_block_best_length(&p->acceptance, 1, DSC_BLOCK_LONGEST,
                                     (dsc_block_cost){.draft = 1 / ratio}, &p->best, err);
    p->best.length = dsc_pearl_best_window((dsc_pearl_form)form, p->alpha, ratio);
    return DSC_OK;
}

static int compute_row(cli_point *p, double *x, dsc_error *err)
{
    const int64_t form = p->value[FORM].integer;
    const int window = (int)p->value[WINDOW].integer;
    const double ratio = p->value[RATIO].real;
    int rc = p->first ? find_best(p, form, ratio, err) : DSC_OK;
    if (rc)
        return rc;
    const quantities q = evaluate(form, p->alpha, window, ratio);
    const double row[] = {p->alpha,       ratio,
                          (double)form,   window,
                          q.speedup,      q.tokens,
                          p->best.length, evaluate(form, p->alpha, p->best.length, ratio).speedup,
                          q.accepted,     q.as_printed};
    memcpy(x, row, sizeof row);
    return DSC_OK;
}

// --- published tables ------------------------------------------------------------------------

static int fill_published(dsc_table *t, const dsc_option_value *value, dsc_error *err)
{
    size_t wrong = 0, judged = 0;
    int rc = dsc_table_add_columns(t, published_columns, PUBLISHED_COLUMNS, err);
    (void)value;
    for (size_t i = 0; i < dsc_pearl_published_rows() && !rc; i++) {
        const dsc_pearl_row r = dsc_pearl_published_row(i);
        const bool shown = isnan(r.tolerance_percent);
        const dsc_cell cell[PUBLISHED_COLUMNS] = {
            cli_integer(r.table),
            cli_text(r.pair),
            cli_text(r.quantity),
            cli_integer(r.window),
            cli_real(r.rate),
            cli_real(r.ratio),
            cli_real(r.predicted),
            cli_real(r.published),
            cli_real(r.error_percent),
            cli_real(r.tolerance_percent),
            cli_text(shown  ? "-"
                     : r.ok ? "yes"
                            : "no"),
        };
        judged += !shown;
        wrong += !r.ok;
        rc = dsc_table_add_row(t, cell, err);
    }
    return rc || !wrong
               ? rc
               : dsc_fail(err, DSC_ECHECK, "%zu of %zu published figures are out of tolerance",
                          wrong, judged);
}

static int check(const dsc_option_value *value, dsc_error *err)
{
    for (int i = 0; i < PUBLISHED; i++)
        if (value[PUBLISHED].given && value[i].given)
            return dsc_fail(err, DSC_EUSAGE, "--published and --%s cannot be combined",
                            options[i].name);
    return value[PUBLISHED].given || (value[ALPHA].given && value[RATIO].given)
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE, "give --alpha and --ratio, or --published");
}

const cli_command cli_theory_pearl = {
    .name = "pearl",
    .summary = "speedup of drafting and verifying in parallel (PEARL), by draft length",
    CLI_OPTIONS(options),
    .usage = "theory pearl --alpha LIST --ratio LIST [--num-speculative-tokens LIST] [OPTIONS]\n"
             "       draftscope theory pearl --published [OPTIONS]",
    .about = "Computes the speedup of drafting and verifying in parallel, by draft length, under "
             "i.i.d. acceptance. With --published, prints the paper's Tables 1, 3, 4 and 5 next to "
             "the predictions of the closed forms; the exit code is 1 when one is out of "
             "tolerance.",
    .fields = {CLI_FIELDS("Columns", columns), CLI_FIELDS("Formulas", formulas),
               CLI_FIELDS("Columns with --published", published_columns)},
    .execute = cli_closed_execute,
    .form =
        &(const cli_closed){
            .check = check,
            .axis = {RATIO, ALPHA, FORM, WINDOW},
            .axes = 4,
            .row = compute_row,
            .choice = FORM,
            .fill = fill_published,
            .instead = PUBLISHED,
        },
};
