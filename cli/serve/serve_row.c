// SPDX-License-Identifier: Apache-2.0
// A row of a table of draftscope serve as a configuration: its parameters, its name, and whether an
// engine has settings for it.
#include "base/columns.h"
#include "base/number.h"
#include "cli/serve/serve_answer.h"
#include "sim/run/result.h"

#include <math.h>
#include <string.h>

const char *cli_serve_text(const dsc_table *t, size_t row, const char *column)
{
    const int c = dsc_table_find(t, column);
    const char *text =
        c >= 0 && t->column[c].type == DSC_CELL_TEXT ? dsc_table_at(t, row, (size_t)c)->text : NULL;
    return text ? text : "";
}

double cli_serve_number(const dsc_table *t, size_t row, const char *column)
{
    const int c = dsc_table_find(t, column);
    return c < 0 ? NAN : dsc_table_real(t, row, (size_t)c);
}

double cli_serve_within(const dsc_table *t, size_t row)
{
    return cli_serve_number(t, row, "goodput") / cli_serve_number(t, row, "requests_per_s");
}

bool cli_serve_is_schedule(const char *policy)
{
    return !strncmp(policy, "schedule:", 9);
}

int cli_serve_row_config(dsc_config *out, const dsc_table *t, size_t row, dsc_error *err)
{
    const dsc_drafter_type *d = dsc_drafter_find(cli_serve_text(t, row, DSC_COL_METHOD), err);
    int rc = d ? DSC_OK : DSC_EINPUT;
    if (d)
        dsc_config_init(out, d);
    for (size_t o = 0; d && o < d->option_count && !rc; o++) {
        char name[DSC_PARAMETER_NAME], number[DSC_NUMBER_TEXT];
        dsc_parameter_name(&d->option[o], name);
        const char *text = cli_serve_text(t, row, name);
        const double value = cli_serve_number(t, row, name);
        dsc_number_text(value, number);
        text = isnan(value) ? text : number;
        if (d->option[o].kind == DSC_OPTION_TEXT && text == number)
            return dsc_fail(err, DSC_EINPUT, "column %s has numbers, not text", name);
        rc = *text ? dsc_config_set(out, d->option[o].name, text, err) : DSC_OK;
    }
    return rc ? DSC_EINPUT : DSC_OK;
}

// Whether two rows of the method of `row` differ in a column.
static bool varies(const dsc_table *t, size_t row, const char *method, int column)
{
    const int m = dsc_table_find(t, DSC_COL_METHOD);
    const dsc_cell *own = dsc_table_at(t, row, (size_t)column);
    for (size_t r = 0; r < t->rows; r++) {
        const dsc_cell *c = dsc_table_at(t, r, (size_t)column);
        if (!strcmp(dsc_table_at(t, r, (size_t)m)->text, method) &&
            (c->type == DSC_CELL_TEXT
                 ? strcmp(c->text, own->text) != 0
                 : dsc_table_real(t, r, (size_t)column) != dsc_table_real(t, row, (size_t)column)))
            return true;
    }
    return false;
}

static int put_parameter(dsc_buffer *b, const dsc_option *o, const dsc_config *c, size_t index,
                         dsc_error *err)
{
    char text[DSC_NUMBER_TEXT > 64 ? DSC_NUMBER_TEXT : 64];
    const char *value = text;
    if (o->kind == DSC_OPTION_TEXT)
        value = c->text[index] ? c->text[index] : "";
    else if (o->kind == DSC_OPTION_REAL)
        dsc_number_text(c->real[index], text);
    else
        dsc_option_text(o, c->parameter[index], text, sizeof text);
    return dsc_buffer_printf(b, err, " %s=%s", o->name, value);
}

static bool is_default(const dsc_config *c, const dsc_config *initial, size_t o)
{
    const char *x = c->text[o], *y = initial->text[o];
    return c->parameter[o] == initial->parameter[o] &&
           !(c->real[o] < initial->real[o] || c->real[o] > initial->real[o]) &&
           (x && y ? !strcmp(x, y) : x == y);
}

int cli_serve_row_name(dsc_buffer *b, const dsc_table *t, size_t row, dsc_error *err)
{
    dsc_config c, initial;
    const char *policy = cli_serve_text(t, row, "speculation");
    int rc = cli_serve_row_config(&c, t, row, err);
    if (rc)
        return rc;
    const dsc_drafter_type *d = c.drafter;
    dsc_config_init(&initial, d);
    rc = dsc_buffer_puts(b, d->name, err);
    for (size_t o = 0; o < d->option_count && !rc; o++) {
        char name[DSC_PARAMETER_NAME];
        dsc_parameter_name(&d->option[o], name);
        const int column = dsc_table_find(t, name);
        const bool length = !strcmp(d->option[o].name, "num-speculative-tokens");
        if (length
                ? !cli_serve_is_schedule(policy) // whose tiers are the lengths
                : !is_default(&c, &initial, o) || (column >= 0 && varies(t, row, d->name, column)))
            rc = put_parameter(b, &d->option[o], &c, o, err);
    }
    if (!rc && *policy && strcmp(policy, "fixed") != 0)
        rc = dsc_buffer_printf(b, err, " with --speculation %s", policy);
    return rc;
}

const char *cli_serve_row_lacks(const cli_engine_use *use, const dsc_table *t, size_t row)
{
    dsc_config c;
    const char *policy = cli_serve_text(t, row, "speculation");
    const dsc_verifier_type *rule = dsc_verifier_find(cli_serve_text(t, row, DSC_COL_RULE), NULL);
    if (cli_serve_row_config(&c, t, row, NULL) || !rule)
        return "its configuration is not known here";
    const bool tiers = cli_serve_is_schedule(policy) && use->engine == CLI_VLLM &&
                       c.drafter == &dsc_drafter_draft_model;
    if (*policy && strcmp(policy, "fixed") != 0 && !tiers)
        return "it has no such policy";
    return cli_engine_lacks(use, &c, rule);
}
