// SPDX-License-Identifier: Apache-2.0
// What two engines printed beside their own counters: the counters go through the importers, and
// the totals must come out as printed.
#include "cli/validate/validate.h"
#include "traces/import/totals.h"

#include <stdlib.h>
#include <string.h>

// The file of a case, in the folder of the tables.
static const struct {
    const char *where, *driver, *files[2];
} cases[] = {
    {"vLLM, per position", "prometheus", {"identity-vllm-before.txt", "identity-vllm-after.txt"}},
    {"SGLang, histogram", "sglang", {"identity-sglang.json"}},
};
enum { CASES = sizeof cases / sizeof *cases };

static int import(dsc_table *t, const validate_row *row, size_t c, dsc_error *err)
{
    const dsc_totals_driver *driver = dsc_totals_find(cases[c].driver);
    char *path[2] = {NULL, NULL};
    size_t n = 0;
    int rc = DSC_OK;
    for (; n < 2 && cases[c].files[n] && !rc; n++)
        rc = validate_path(&path[n], row->folder, cases[c].files[n], err);
    if (!rc)
        rc = dsc_totals_import(t, driver, (const char *const *)path, n, &(dsc_totals_options){0},
                               NULL, err);
    free(path[0]);
    free(path[1]);
    return rc;
}

static int predict(validate_row *row, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < CASES && !rc; c++) {
        dsc_table t = {0};
        rc = import(&t, row, c, err);
        for (size_t i = 0; i < row->count && !rc; i++) {
            validate_figure *f = &row->figure[i];
            // "mean_acceptance_length (printed)" is that column to fewer digits.
            char quantity[64];
            snprintf(quantity, sizeof quantity, "%.*s", (int)strcspn(f->quantity, " "),
                     f->quantity);
            int column = dsc_table_find(&t, quantity);
            if (strcmp(f->where, cases[c].where) == 0 && column >= 0 && t.rows)
                f->predicted = dsc_table_real(&t, 0, (size_t)column);
        }
        dsc_table_fini(&t);
    }
    return rc;
}

const validate_row_type validate_identity = {
    "identity", "totals that vLLM and SGLang printed, from their counters", false, predict};
