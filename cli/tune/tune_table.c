// SPDX-License-Identifier: Apache-2.0
// The columns of a tuning result and its rows.
#include "cli/result.h"
#include "cli/tune/tune.h"

#include <inttypes.h>
#include <string.h>

const dsc_column cli_tune_columns[CLI_TUNE_COLUMNS] = {
    {"batch", DSC_CELL_INT, "number of sequences that run together"},
    {"rank", DSC_CELL_INT,
     "rank by the objective on the selection set; 1: best; upper bounds come last"},
    {"method", DSC_CELL_TEXT, "drafting method"},
    {"rule", DSC_CELL_TEXT, "verification rule"},
    {"parameters", DSC_CELL_TEXT,
     "parameters given on the command line; the others have their defaults"},
    {"selection", DSC_CELL_REAL,
     "objective on the selection set (optimistically biased for the "
     "winner)"},
    {"test", DSC_CELL_REAL, "objective on the test set"},
    {"test_low", DSC_CELL_REAL, "95 % interval of test, lower bound (bootstrap over requests)"},
    {"test_high", DSC_CELL_REAL, "95 % interval of test, upper bound (bootstrap over requests)"},
    {"ratio", DSC_CELL_REAL, "test divided by test of the best configuration"},
    {"ratio_low", DSC_CELL_REAL,
     "95 % interval of ratio, lower bound; both sides use the same resamples"},
    {"ratio_high", DSC_CELL_REAL,
     "95 % interval of ratio, upper bound; both sides use the same resamples"},
    {"significant", DSC_CELL_TEXT,
     "yes: the interval of ratio excludes 1, so the configuration differs from the best"},
    {"drafted_per_token", DSC_CELL_REAL,
     "draft tokens verified per output token, over all requests"},
    DSC_METRIC_COLUMNS,
};

int cli_tune_name(dsc_buffer *b, const dsc_trial *x, dsc_error *err)
{
    dsc_config c = dsc_space_at(x->space, x->point);
    if (!x->space->drafter->option_count) // nothing to choose
        return dsc_buffer_puts(b, x->space->drafter->name, err);
    int rc = dsc_buffer_printf(b, err, "%s ", x->space->drafter->name);
    return rc ? rc : dsc_space_words(b, x->space, &c, err);
}

int cli_tune_price_rows(dsc_table *t, const dsc_tune *tune, size_t price, const dsc_standing *s,
                        int64_t top, const char *value, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < tune->trials && (!top || (int64_t)i < top) && !rc; i++) {
        const dsc_trial *x = &tune->trial[s[i].trial];
        dsc_config c = dsc_space_at(x->space, x->point);
        dsc_buffer words = {0};
        rc = dsc_space_words(&words, x->space, &c, err);
        dsc_cell row[CLI_TUNE_COLUMNS + 1] = {cli_integer(tune->options.price[price].batch),
                                              cli_integer((int64_t)i + 1),
                                              cli_text(x->space->drafter->name),
                                              cli_text(x->rule->name),
                                              cli_text(words.data),
                                              cli_real(s[i].selection),
                                              cli_real(s[i].test),
                                              cli_real(s[i].low),
                                              cli_real(s[i].high),
                                              cli_real(s[i].ratio),
                                              cli_real(s[i].ratio_low),
                                              cli_real(s[i].ratio_high),
                                              cli_text(s[i].significant ? "yes" : "no"),
                                              cli_real(dsc_trial_drafted(x))};
        row[CLI_TUNE_COLUMNS] = cli_text(value);
        dsc_metrics_cells(&x->totals.metrics, row + CLI_TUNE_METRICS);
        rc = rc ?: dsc_table_add_row(t, row, err);
        dsc_buffer_fini(&words);
    }
    return rc;
}

int cli_tune_table_columns(dsc_table *t, const char *by, dsc_error *err)
{
    int rc = dsc_table_add_columns(t, cli_tune_columns, CLI_TUNE_COLUMNS, err);
    if (!rc && by && dsc_table_find(t, by) >= 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "--by: metadata field '%.60s' has the name of a result column; choose "
                        "another field",
                        by);
    return rc || !by ? rc
                     : dsc_table_add_column(t, by, DSC_CELL_TEXT,
                                            "value of this metadata field of the requests that the "
                                            "row is of; all: every request",
                                            err);
}

int cli_tune_rows(dsc_table *t, const dsc_tune *found, dsc_standing *const *standing, int64_t top,
                  dsc_error *err)
{
    int rc = cli_tune_table_columns(t, NULL, err);
    for (size_t p = 0; p < found->options.prices && !rc; p++)
        rc = cli_tune_price_rows(t, found, p, standing[p], top, "", err);
    return rc;
}
