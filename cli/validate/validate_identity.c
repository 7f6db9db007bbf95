// SPDX-License-Identifier: Apache-2.0
// Totals that vLLM and SGLang printed, recomputed from their counters by the importers.
#include "cli/validate/validate.h"
#include "traces/import/totals.h"

#include <stdlib.h>
#include <string.h>

// The counter files of a case, in the folder of the tables.
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

static int begin(void *state, const validate_row *row, dsc_error *err)
{
    dsc_table *t = state; // [CASES]
    int rc = DSC_OK;
    for (size_t c = 0; c < CASES && !rc; c++)
        rc = import(&t[c], row, c, err);
    return rc;
}

static void end(void *state)
{
    dsc_table *t = state;
    for (size_t c = 0; c < CASES; c++)
        dsc_table_fini(&t[c]);
}

static int predict(validate_figure *f, const validate_row *row, dsc_error *err)
{
    const dsc_table *t = row->state;
    char quantity[64];
    (void)err;
    // "block_efficiency (printed)" is the column block_efficiency, printed to fewer digits.
    snprintf(quantity, sizeof quantity, "%.*s", (int)strcspn(f->quantity, " "), f->quantity);
    for (size_t c = 0; c < CASES; c++) {
        int column = dsc_table_find(&t[c], quantity);
        if (strcmp(f->where, cases[c].where) == 0 && column >= 0 && t[c].rows)
            f->predicted = dsc_table_real(&t[c], 0, (size_t)column);
    }
    return DSC_OK;
}

const validate_row_type validate_identity = {
    .name = "identity",
    .summary = "totals printed by vLLM and SGLang, recomputed from their counters",
    .state_size = CASES * sizeof(dsc_table),
    .begin = begin,
    .end = end,
    .predict = predict,
};
