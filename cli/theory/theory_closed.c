// SPDX-License-Identifier: Apache-2.0
// Runs a command on closed forms: one row for every combination of the list options.
// Acceptance is a list of i.i.d. rates, or what sim/acceptance.h reads: one vector of conditional
// rates by position.
#include "cli/simulate.h"
#include "cli/theory/theory_closed.h"
#include "sim/acceptance.h"
#include "theory/request_effect.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// --- acceptance ----------------------------------------------------------------------------------

typedef struct acceptance {
    double *alpha; // [count], NULL where rates by position are given
    size_t count;
    double *rate;     // [rates] conditional acceptance rates by position, or NULL
    int rates, given; // the first are as given
    bool open;        // and later ones may pay, too
    char note[DSC_ACCEPTANCE_NOTE];
} acceptance;

int cli_theory_append(const dsc_option *o, const char *item, size_t length, double **out,
                      size_t *capacity, size_t *count, dsc_error *err)
{
    char *text = NULL;
    double *real = NULL;
    int64_t *integer = NULL;
    size_t n;
    int rc = dsc_strndup(&text, item, length, err);
    if (!rc)
        rc = o->kind == DSC_OPTION_INT ? dsc_option_list(o, text, &integer, &n, err)
                                       : dsc_option_reals(o, text, &real, &n, err);
    if (!rc)
        rc = dsc_resize(out, capacity, *count + n, err);
    for (size_t i = 0; !rc && i < n; i++)
        (*out)[(*count)++] = real ? real[i] : (double)integer[i];
    free(text);
    free(real);
    free(integer);
    return rc;
}

int cli_theory_vector(const char *option, const char *text, double least, double most, double **out,
                      size_t *count, dsc_error *err)
{
    dsc_option o = {.name = option, .kind = DSC_OPTION_REAL, .least = least, .most = most};
    size_t capacity = 0;
    int rc = DSC_OK;
    *out = NULL;
    *count = 0;
    for (bool more = true; more && !rc;) {
        size_t n = strcspn(text, ",");
        rc = cli_theory_append(&o, text, n, out, &capacity, count, err);
        more = text[n] == ',';
        text += n + more;
    }
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

// Replaces the rates of the median request by those with which all requests together, which write
// the same number of tokens each, need as many target calls at every draft length. The expected
// tokens per call are concave in the length, so these are rates again.
static int add_request_effect(acceptance *a, double sd, dsc_error *err)
{
    static const double widest = 25; // of a logit
    double plain[DSC_EFFECT_POSITIONS + 1], with[DSC_EFFECT_POSITIONS + 1], one = 1;
    dsc_request_effect e = {.positions = a->rates, .sd = sd};
    dsc_conditional_count none[DSC_EFFECT_POSITIONS] = {{0}};
    if (a->rates > DSC_EFFECT_POSITIONS)
        return dsc_fail(err, DSC_EUSAGE,
                        "--request-sd takes at most %d rates by position; %d given",
                        DSC_EFFECT_POSITIONS, a->rates);
    for (int j = 0; j < a->rates; j++) {
        e.rate[j] = a->rate[j];
        e.intercept[j] = fmax(-widest, fmin(widest, log(a->rate[j] / (1 - a->rate[j]))));
    }
    int rc = dsc_request_effect_curve(&e, none, a->rates, &one, 1, a->rates, plain, with, err);
    for (int j = 0; j < a->rates && !rc; j++) {
        const double before = j ? with[j] - with[j - 1] : 1;
        a->rate[j] = before > 0 ? fmin(1, (with[j + 1] - with[j]) / before) : 0;
    }
    return rc;
}

// The one option of acceptance in use as a text that sim/acceptance.h reads; *out is the caller's.
static int acceptance_text(char **out, const cli_command *command, const dsc_option_value *value,
                           dsc_error *err)
{
    static const char *const prefix[CLI_CLOSED_RATES] = {[CLI_CLOSED_ACCEPTANCE] = "",
                                                         [CLI_CLOSED_BY_POSITION] = "conditional:",
                                                         [CLI_CLOSED_LENGTH] = "al:",
                                                         [CLI_CLOSED_HISTOGRAM] = "histogram:"};
    size_t k = 0; // option -k
    dsc_buffer b = {0};
    const char *text = NULL;
    int rc = DSC_OK;
    for (int o = 0; o < CLI_CLOSED_RATES && !rc; o++)
        if (prefix[o] && value[o].given) {
            text = value[o].text;
            rc = dsc_buffer_printf(&b, err, "%s%s", prefix[o], text);
        }
    while (command->option[k].letter != 'k')
        k++;
    const dsc_option_value *length = &value[k];
    if (!rc && value[CLI_CLOSED_LENGTH].given && !strchr(text, '@')) {
        if (!length->given || length->text[strspn(length->text, "0123456789")])
            rc = dsc_fail(err, DSC_EUSAGE,
                          "--acceptance-length %.60s: of drafts of how many tokens? -k K, one "
                          "number, or --acceptance al:%.60s@K",
                          text, text);
        else
            rc = dsc_buffer_printf(&b, err, "@%s", length->text);
    }
    *out = b.data;
    return rc;
}

static int read_rates(acceptance *a, const cli_command *command, const dsc_option_value *value,
                      dsc_error *err)
{
    dsc_acceptance_rates rates = {0};
    char *text;
    int rc = acceptance_text(&text, command, value, err);
    rc = rc ?: dsc_acceptance_rates_read(&rates, text, err);
    const double sd = value[CLI_CLOSED_REQUEST_SD].real;
    const bool iid = !rc && rates.positions == 1 && rates.later == rates.conditional_rate[0];
    if (!rc) {
        a->count = 1;
        memcpy(a->note, rates.note, sizeof a->note);
        rc = dsc_new(iid ? &a->alpha : &a->rate, iid ? 1 : DSC_BLOCK_LONGEST, err);
    }
    if (!rc && iid) {
        *a->alpha = rates.later;
    } else if (!rc) {
        dsc_acceptance_rates_fill(&rates, DSC_BLOCK_LONGEST, a->rate);
        a->given = rates.positions;
        a->open = rates.later > 0;
        a->rates = isnan(rates.later) || sd > 0 || rates.request_sd > 0 ? rates.positions
                                                                        : DSC_BLOCK_LONGEST;
    }
    if (!rc && (sd > 0 || rates.request_sd > 0))
        rc = iid ? dsc_fail(err, DSC_EUSAGE, "an effect of requests needs rates by position")
                 : add_request_effect(a, sd > 0 ? sd : rates.request_sd, err);
    dsc_acceptance_rates_fini(&rates);
    free(text);
    return rc;
}

static int read_acceptance(acceptance *a, const cli_command *command, const dsc_option_value *value,
                           dsc_error *err)
{
    const cli_closed *c = command->form;
    int given = value[CLI_CLOSED_ALPHA].given;
    for (int o = CLI_CLOSED_ACCEPTANCE; o <= CLI_CLOSED_HISTOGRAM && c->by_position; o++)
        given += value[o].given;
    if (c->by_position && given != 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "give exactly one of --alpha, --acceptance, --acceptance-by-position, "
                        "--acceptance-length and --histogram");
    const char *spec = value[CLI_CLOSED_ACCEPTANCE].text;
    const bool conditional = value[CLI_CLOSED_BY_POSITION].given ||
                             (spec && !strncmp(spec, "conditional:", strlen("conditional:")));
    // Other forms are measured over all requests together, not those of the median one.
    if (c->by_position && value[CLI_CLOSED_REQUEST_SD].given && !conditional)
        return dsc_fail(err, DSC_EUSAGE, "--request-sd needs --acceptance-by-position");
    return !c->by_position || value[CLI_CLOSED_ALPHA].given
               ? dsc_option_reals(&command->option[CLI_CLOSED_ALPHA], value[CLI_CLOSED_ALPHA].text,
                                  &a->alpha, &a->count, err)
               : read_rates(a, command, value, err);
}

static double iid_rate(const acceptance *a, size_t i)
{
    double accepted = 0, reach = 1;
    if (!a->rate)
        return a->alpha[i];
    for (int j = 0; j < a->given; j++)
        accepted += reach *= a->rate[j];
    return dsc_iid_rate(accepted, a->given);
}

// --- the grid ------------------------------------------------------------------------------------

typedef struct grid {
    const cli_closed *c;
    const dsc_option *option;
    const dsc_column *column; // [columns]
    size_t columns;
    acceptance acceptance;
    double *real[CLI_CLOSED_AXES]; // the values of an axis are in one of the two; NULL: the default
    int64_t *integer[CLI_CLOSED_AXES];
    size_t count[CLI_CLOSED_AXES];
    double *accepted; // [longest + 1]
    int longest;
} grid;

static int read_axis(grid *g, int a, const dsc_option_value *value, dsc_error *err)
{
    const int axis = g->c->axis[a];
    const dsc_option *o = &g->option[axis];
    g->count[a] = axis == CLI_CLOSED_ALPHA ? g->acceptance.count : 1;
    if (axis == CLI_CLOSED_ALPHA || !value[axis].text)
        return DSC_OK;
    return o->kind == DSC_OPTION_REAL
               ? dsc_option_reals(o, value[axis].text, &g->real[a], &g->count[a], err)
               : dsc_option_list(o, value[axis].text, &g->integer[a], &g->count[a], err);
}

// The longest draft that any row needs.
static int longest_draft(const grid *g, const dsc_option_value *value)
{
    int64_t sum = 0;
    for (int l = 0; l < 2; l++) {
        int64_t most = 0;
        if (!g->c->length[l])
            continue;
        if (!g->option[g->c->length[l]].list)
            most = value[g->c->length[l]].integer;
        for (int a = 0; a < g->c->axes; a++)
            for (size_t i = 0; g->c->axis[a] == g->c->length[l] && i < g->count[a]; i++)
                most = g->integer[a][i] > most ? g->integer[a][i] : most;
        sum += most;
    }
    return (int)sum;
}

static int add_columns(dsc_table *t, const grid *g, const dsc_option_value *value,
                       bool shown[CLI_CLOSED_COLUMNS], dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t c = 0; c < g->columns && !rc; c++) {
        shown[c] = !g->c->shows || g->c->shows(value, g->acceptance.rate != NULL, (int)c);
        if (shown[c])
            rc = dsc_table_add_columns(t, &g->column[c], 1, err);
    }
    return rc;
}

// Sets the point to the values at `index` of the axes.
static int set_point(const grid *g, const size_t *index, cli_point *p, dsc_option_value *value,
                     dsc_error *err)
{
    const int last = g->c->axes - 1;
    p->first = !index[last];
    for (int a = 0; a <= last; a++) {
        const int axis = g->c->axis[a];
        if (axis != CLI_CLOSED_ALPHA) {
            value[axis].real = g->real[a] ? g->real[a][index[a]] : 0;
            value[axis].integer = g->integer[a] ? g->integer[a][index[a]] : 0;
            continue;
        }
        const acceptance *from = &g->acceptance;
        p->acceptance =
            (dsc_acceptance){from->rate ? NAN : from->alpha[index[a]], from->rate, from->rates};
        p->alpha = iid_rate(from, index[a]);
    }
    return p->first ? dsc_block_accepted(&p->acceptance, g->longest, g->accepted, err) : DSC_OK;
}

// The next combination, the last axis first; false after the last one.
static bool step(const grid *g, size_t *index)
{
    for (int a = g->c->axes; a-- > 0;) {
        if (++index[a] < g->count[a])
            return true;
        index[a] = 0;
    }
    return false;
}

// Adds the row of numbers x[columns]; a column of text holds the number of a choice.
static int add_row(dsc_table *t, const grid *g, const double *x, const bool *shown, dsc_error *err)
{
    dsc_cell cell[CLI_CLOSED_COLUMNS];
    char text[64];
    size_t cells = 0;
    for (size_t c = 0; c < g->columns; c++) {
        if (g->column[c].type == DSC_CELL_TEXT)
            dsc_option_text(&g->option[g->c->choice], (int64_t)x[c], text, sizeof text);
        if (shown[c])
            cell[cells++] = g->column[c].type == DSC_CELL_TEXT  ? cli_text(text)
                            : g->column[c].type == DSC_CELL_INT ? cli_integer((int64_t)x[c])
                                                                : cli_real(x[c]);
    }
    return dsc_table_add_row(t, cell, err);
}

static int fill_grid(dsc_table *t, grid *g, dsc_option_value *value, dsc_error *err)
{
    size_t index[CLI_CLOSED_AXES] = {0};
    bool shown[CLI_CLOSED_COLUMNS];
    double x[CLI_CLOSED_COLUMNS];
    cli_point p = {.value = value, .accepted = g->accepted, .longest = g->longest};
    assert(g->columns <= CLI_CLOSED_COLUMNS);
    int rc = add_columns(t, g, value, shown, err);
    for (bool more = true; more && !rc; more = step(g, index)) {
        rc = set_point(g, index, &p, value, err);
        if (!rc)
            rc = g->c->row(&p, x, err);
        if (!rc)
            rc = add_row(t, g, x, shown, err);
    }
    return rc;
}

static int run_grid(dsc_table *t, const cli_command *command, dsc_option_value *value,
                    dsc_error *err)
{
    const cli_closed *c = command->form;
    grid g = {.c = c,
              .option = command->option,
              .column = command->fields[0].field,
              .columns = command->fields[0].count};
    char all[32];
    int rc = read_acceptance(&g.acceptance, command, value, err);
    if (!rc && c->bounded && g.acceptance.given && !g.acceptance.open && !value[c->bounded].given) {
        snprintf(all, sizeof all, "1:%d", g.acceptance.given);
        value[c->bounded].text = all;
        value[c->bounded].integer = g.acceptance.given;
    }
    for (int a = 0; a < c->axes && !rc; a++)
        rc = read_axis(&g, a, value, err);
    if (!rc) {
        g.longest = longest_draft(&g, value);
        rc = dsc_new(&g.accepted, (size_t)g.longest + 1, err);
    }
    if (!rc)
        rc = fill_grid(t, &g, value, err);
    if (!rc)
        cli_note_acceptance(g.acceptance.note);
    for (int a = 0; a < CLI_CLOSED_AXES; a++) {
        free(g.real[a]);
        free(g.integer[a]);
    }
    free(g.acceptance.alpha);
    free(g.acceptance.rate);
    free(g.accepted);
    return rc;
}

// --- the command ---------------------------------------------------------------------------------

int cli_closed_execute(const cli_call *call, dsc_error *err)
{
    const cli_closed *c = call->command->form;
    dsc_option_value value[CLI_MAX_OPTIONS]; // those of a row, in turn
    dsc_table t = {0};
    dsc_error unwritten;
    memcpy(value, call->value, call->command->options * sizeof *value);
    int rc = c->check ? c->check(value, err) : DSC_OK;
    if (!rc)
        rc = cli_result_comments(&t, err);
    if (!rc)
        rc = !c->row || (c->instead && value[c->instead].given)
                 ? c->fill(&t, value, err)
                 : run_grid(&t, call->command, value, err);
    if (rc == DSC_ECHECK && cli_result_write(&t, call, &unwritten))
        rc = (*err = unwritten).status;
    else if (!rc)
        rc = cli_result_write(&t, call, err);
    dsc_table_fini(&t);
    return rc;
}
