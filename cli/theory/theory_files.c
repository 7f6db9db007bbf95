// SPDX-License-Identifier: Apache-2.0
// Distributions from files: --draft FILE --target FILE, arrays with one distribution per row.
#include "cli/theory/theory_rows.h"
#include "traces/files/array.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct files {
    dsc_array *array[2]; // draft, target
    int64_t *row;        // [count], NULL: all
} files;

static void close_files(void *state)
{
    files *f = state;
    for (int side = 0; side < 2; side++)
        dsc_array_close(f->array[side]);
    free(f->row);
    free(f);
}

static int read_files(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    static const int option[2] = {CLI_ROWS_DRAFT, CLI_ROWS_TARGET};
    const files *f = r->state;
    int64_t row = f->row ? f->row[i] : i, columns = dsc_array_columns(f->array[0]);
    int rc = cli_pair_reserve(p, columns, err);
    for (int side = 0; side < 2 && !rc; side++) {
        char what[512];
        double *to = side ? p->target : p->draft;
        snprintf(what, sizeof what, "%.400s, row %" PRId64, r->value[option[side]].text, row);
        rc = dsc_array_row(f->array[side], row, to, err);
        if (!rc)
            rc = cli_rows_make_dist(r->value, what, to, columns, err);
    }
    snprintf(p->label, sizeof p->label, "row %" PRId64, row);
    p->whole = true;
    return rc;
}

static int check_shapes(const files *f, const dsc_option_value *value, dsc_error *err)
{
    int64_t rows[2], columns[2];
    for (int side = 0; side < 2; side++) {
        rows[side] = dsc_array_rows(f->array[side]);
        columns[side] = dsc_array_columns(f->array[side]);
    }
    if (columns[0] != columns[1])
        return dsc_fail(err, DSC_EINPUT,
                        "--draft %.300s has a vocabulary of %" PRId64 " and --target %.300s of "
                        "%" PRId64 "; they must match",
                        value[CLI_ROWS_DRAFT].text, columns[0], value[CLI_ROWS_TARGET].text,
                        columns[1]);
    if (rows[0] != rows[1])
        return dsc_fail(err, DSC_EINPUT,
                        "--draft %.300s has %" PRId64 " positions and --target %.300s has %" PRId64
                        "; they must match",
                        value[CLI_ROWS_DRAFT].text, rows[0], value[CLI_ROWS_TARGET].text, rows[1]);
    return DSC_OK;
}

static int choose_rows(cli_rows *r, files *f, dsc_error *err)
{
    int64_t rows = dsc_array_rows(f->array[0]);
    size_t count;
    r->count = rows;
    if (!r->value[CLI_ROWS_ROWS].given)
        return DSC_OK;
    int rc = dsc_option_list(&cli_rows_options[CLI_ROWS_ROWS], r->value[CLI_ROWS_ROWS].text,
                             &f->row, &count, err);
    for (size_t i = 0; i < count && !rc; i++)
        if (f->row[i] >= rows)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "--rows: there is no row %" PRId64 "; %.300s has rows 0 to %" PRId64,
                          f->row[i], r->value[CLI_ROWS_DRAFT].text, rows - 1);
    r->count = (int64_t)count;
    return rc;
}

int cli_open_files(cli_rows *r, dsc_error *err)
{
    const dsc_option_value *value = r->value;
    files *f;
    if (!value[CLI_ROWS_TARGET].given)
        return dsc_fail(err, DSC_EUSAGE, "--draft also needs --target FILE");
    int rc = dsc_new(&f, 1, err);
    if (rc)
        return rc;
    r->state = f;
    r->read = read_files;
    r->close = close_files;
    rc = dsc_array_open(&f->array[0], value[CLI_ROWS_DRAFT].text, err);
    if (!rc)
        rc = dsc_array_open(&f->array[1], value[CLI_ROWS_TARGET].text, err);
    if (!rc)
        rc = check_shapes(f, value, err);
    return rc ? rc : choose_rows(r, f, err);
}
