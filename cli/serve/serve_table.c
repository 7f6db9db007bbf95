// SPDX-License-Identifier: Apache-2.0
// The tables of draftscope serve: a row per method, configuration, policy and load, or a row per
// request.
#include "base/columns.h"
#include "cli/result.h"
#include "cli/serve/serve.h"
#include "sim/run/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const dsc_column after[] = {
    {"speculation", DSC_CELL_TEXT, "policy that chooses the draft length of each step"},
    {"arrivals", DSC_CELL_TEXT, "process of arrivals, as in --arrivals"},
    {"qps", DSC_CELL_REAL, "requests that arrive per second; nan for clients and listed times"},
    {"clients", DSC_CELL_INT, "clients of a closed loop; 0: an open one"},
};
static const dsc_column load_only[] = {
    {"saturated", DSC_CELL_TEXT,
     "yes: the rate of arrivals is above largest_stable_qps, the queue grows, and times from the "
     "arrival on are nan without --drain; unknown: the run is too short for a steady state"},
};
static const dsc_column regret_only[] = {
    {"best_fixed_k", DSC_CELL_REAL,
     "fixed draft length with the least mean end-to-end time; nan for no speculation"},
    {"regret_fixed", DSC_CELL_REAL,
     "share by which the mean end-to-end time exceeds that of best_fixed_k; negative: it is less"},
    {"regret_oracle", DSC_CELL_REAL,
     "share by which the mean end-to-end time exceeds that of policy oracle"},
};
static const dsc_column calibrated_only[] = {
    {"recorded_brier", DSC_CELL_REAL,
     "Brier score of the draft model's probability of its token as a forecast of its acceptance"},
    {"confidence_brier", DSC_CELL_REAL,
     "Brier score of the calibrated confidence; nan for methods without one"},
    {"calibration_error", DSC_CELL_REAL,
     "expected calibration error of the confidence, in ten bins of equal width"},
};
static const dsc_column request_only[] = {
    {DSC_COL_REQUEST, DSC_CELL_INT, "number of the request in the order of arrival, from 0"},
    {DSC_COL_ID, DSC_CELL_TEXT, "id of the request in the trace"},
    {"prompt_tokens", DSC_CELL_INT, "tokens of the prompt"},
    {DSC_COL_OUTPUT_TOKENS, DSC_CELL_INT, "tokens of the output"},
    {"arrival_s", DSC_CELL_REAL, "arrival, in seconds"},
    {"ttft_s", DSC_CELL_REAL, "time to first token, in seconds"},
    {"tpot_s", DSC_CELL_REAL, "time per output token after the first, in seconds; nan for one"},
    {"e2e_s", DSC_CELL_REAL, "time from the arrival to the last token, in seconds"},
    {"passes", DSC_CELL_INT, "passes that emitted tokens of the request"},
    {"preemptions", DSC_CELL_INT, "times that the request lost its KV cache"},
};
static const dsc_column occupancy_only[] = {
    {"start_s", DSC_CELL_REAL, "begin of a bin of time, in seconds after the first arrival"},
    {"running", DSC_CELL_REAL, "mean number of running requests"},
    {"waiting", DSC_CELL_REAL, "mean number of waiting requests"},
    {"kv_use", DSC_CELL_REAL, "mean share of the KV blocks in use; nan without a limit"},
    {"draft_length", DSC_CELL_REAL,
     "draft tokens of a decoding request in a step, mean; nan without a step"},
    {"accepted_length", DSC_CELL_REAL,
     "accepted draft tokens of a decoding request in a step, mean; nan without a step"},
    {"step_s", DSC_CELL_REAL, "mean time of a step, in seconds"},
    {"steps", DSC_CELL_REAL, "steps; one that several bins share counts in each by its time there"},
    {"seconds", DSC_CELL_REAL, "length of the bin; the last one is shorter"},
};
#define LENGTH(list) (sizeof(list) / sizeof *(list))

void cli_serve_print_policies(void)
{
    puts("\nPolicies of --speculation");
    for (const dsc_serve_policy_type *const *p = dsc_serve_policies(); *p; p++)
        if ((*p)->usage)
            printf("  %-26s%s: %s:%s\n", (*p)->name, (*p)->summary, (*p)->name, (*p)->usage);
        else
            printf("  %-26s%s\n", (*p)->name, (*p)->summary);
}

void cli_serve_visit_columns(cli_fields_visit *visit, void *user)
{
    size_t figures;
    const dsc_column *figure = cli_serve_columns(&figures);
    visit(user, "Columns", after, LENGTH(after));
    visit(user, NULL, load_only, LENGTH(load_only));
    visit(user, NULL, figure, figures);
    visit(user, NULL, cli_serve_gain_columns, CLI_SERVE_GAIN_COLUMNS);
    visit(user, NULL, cli_serve_block_columns, cli_serve_block_columns_count);
    visit(user, "Columns with --regret", regret_only, LENGTH(regret_only));
    visit(user, "Columns with --speculation adaptive:calibrated", calibrated_only,
          LENGTH(calibrated_only));
    visit(user, "Columns with --per-request", request_only, LENGTH(request_only));
    visit(user, "Columns of --occupancy", occupancy_only, LENGTH(occupancy_only));
}

// Parameters of all methods, each name once: numbers are real, as methods without one have NaN.
static int add_parameters(dsc_table *t, const dsc_drafter_type *d, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t o = 0; o < d->option_count && !rc; o++) {
        const dsc_option *option = &d->option[o];
        const bool number = option->kind == DSC_OPTION_INT || option->kind == DSC_OPTION_REAL;
        char name[DSC_PARAMETER_NAME];
        dsc_parameter_name(option, name);
        if (dsc_table_find(t, name) < 0)
            rc = dsc_table_add_column(t, name, number ? DSC_CELL_REAL : DSC_CELL_TEXT, option->help,
                                      err);
    }
    return rc;
}

// What identifies a run.
static int add_run_columns(dsc_table *t, const cli_serve_methods *m, dsc_error *err)
{
    int rc = dsc_table_add_column(t, DSC_COL_METHOD, DSC_CELL_TEXT, "drafting method", err);
    rc = rc ?: dsc_table_add_column(t, DSC_COL_RULE, DSC_CELL_TEXT, "verification rule", err);
    for (size_t d = 0; d < m->drafters && !rc; d++)
        rc = add_parameters(t, m->drafter[d], err);
    return rc ? rc : dsc_table_add_columns(t, after, LENGTH(after), err);
}

static bool any_calibrated(const cli_serve_methods *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->method[i].confidence.count)
            return true;
    return false;
}

int cli_serve_table_columns(dsc_table *t, const cli_serve_methods *m, bool per_request, bool regret,
                            dsc_error *err)
{
    size_t figures;
    const dsc_column *figure = cli_serve_columns(&figures);
    int rc = add_run_columns(t, m, err);
    if (!rc && per_request)
        return dsc_table_add_columns(t, request_only, LENGTH(request_only), err);
    rc = rc ?: dsc_table_add_columns(t, load_only, LENGTH(load_only), err);
    rc = rc ?: dsc_table_add_columns(t, figure, figures, err);
    rc = rc ?: dsc_table_add_columns(t, cli_serve_gain_columns, CLI_SERVE_GAIN_COLUMNS, err);
    rc =
        rc ?: dsc_table_add_columns(t, cli_serve_block_columns, cli_serve_block_columns_count, err);
    if (!rc && regret)
        rc = dsc_table_add_columns(t, regret_only, LENGTH(regret_only), err);
    if (!rc && any_calibrated(m))
        rc = dsc_table_add_columns(t, calibrated_only, LENGTH(calibrated_only), err);
    return rc;
}

// A row under way: a cell of every column, and the texts of some.
typedef struct row {
    const dsc_table *table;
    dsc_cell *cell;
    char word[DSC_MAX_PARAMETERS][DSC_PARAMETER_NAME];
} row;

static void put(row *r, const char *column, dsc_cell x)
{
    r->cell[dsc_table_find(r->table, column)] = x;
}

static void put_config(row *r, const dsc_config *config)
{
    for (size_t o = 0; o < config->drafter->option_count; o++) {
        const dsc_option *option = &config->drafter->option[o];
        char name[DSC_PARAMETER_NAME];
        dsc_parameter_name(option, name);
        if (option->kind == DSC_OPTION_INT)
            put(r, name, cli_real((double)config->parameter[o]));
        else if (option->kind == DSC_OPTION_REAL)
            put(r, name, cli_real(config->real[o]));
        else if (option->kind == DSC_OPTION_TEXT)
            put(r, name, cli_text(config->text[o] ? config->text[o] : ""));
        else {
            dsc_option_text(option, config->parameter[o], r->word[o], DSC_PARAMETER_NAME);
            put(r, name, cli_text(r->word[o]));
        }
    }
}

static void put_run(row *r, const cli_serve_run *run)
{
    const dsc_arrivals *a = &run->load->arrivals;
    const bool rate = a->kind == DSC_ARRIVALS_CONSTANT || a->kind == DSC_ARRIVALS_POISSON ||
                      a->kind == DSC_ARRIVALS_GAMMA;
    for (size_t c = 0; c < r->table->columns; c++)
        r->cell[c] = r->table->column[c].type == DSC_CELL_TEXT ? cli_text("") : dsc_cell_absent();
    put(r, DSC_COL_METHOD, cli_text(run->method->config.drafter->name));
    put(r, DSC_COL_RULE, cli_text(run->method->rule->name));
    put_config(r, &run->method->config);
    put(r, "speculation", cli_text(run->policy));
    put(r, "arrivals", cli_text(run->load->text));
    put(r, "qps", cli_real(rate ? a->rate : NAN));
    put(r, "clients", cli_integer(a->clients));
}

static void put_regret(row *r, const cli_serve_run *run)
{
    const dsc_serve_reference *f = &run->reference;
    const bool known = f->oracle_s > 0;
    const double e2e_s = cli_serve_figure(run, "e2e_mean_s");
    if (dsc_table_find(r->table, regret_only[0].name) < 0)
        return;
    put(r, "best_fixed_k", cli_real(known ? f->best_k : NAN));
    put(r, "regret_fixed", cli_real(known ? dsc_serve_regret(e2e_s, f->fixed_s) : NAN));
    put(r, "regret_oracle", cli_real(known ? dsc_serve_regret(e2e_s, f->oracle_s) : NAN));
}

static void put_calibration(row *r, const dsc_serve_confidence *c)
{
    if (dsc_table_find(r->table, calibrated_only[0].name) < 0)
        return;
    put(r, "recorded_brier", cli_real(c->count ? c->recorded_brier : NAN));
    put(r, "confidence_brier", cli_real(c->count ? c->brier : NAN));
    put(r, "calibration_error", cli_real(c->count ? c->calibration_error : NAN));
}

static int add_figures(dsc_table *t, row *r, const cli_serve_run *run, dsc_error *err)
{
    size_t figures;
    const dsc_column *figure = cli_serve_columns(&figures);
    put(r, "saturated", cli_text(run->saturated ? "yes" : run->steady ? "no" : "unknown"));
    for (size_t i = 0; i < figures; i++)
        put(r, figure[i].name,
            figure[i].type == DSC_CELL_INT ? cli_integer((int64_t)run->figure[i])
                                           : cli_real(run->figure[i]));
    if (run->advice)
        cli_serve_gain_cells(&run->gain, run->advice,
                             &r->cell[dsc_table_find(t, cli_serve_gain_columns[0].name)]);
    put_regret(r, run);
    put_calibration(r, &run->method->confidence);
    cli_serve_block_room room;
    if (run->blocks.blocks) // a row that was read from a file has these cells
        cli_serve_block_cells(&run->blocks,
                              &r->cell[dsc_table_find(t, cli_serve_block_columns[0].name)], &room);
    return dsc_table_add_row(t, r->cell, err);
}

static int add_request(dsc_table *t, row *r, const cli_serve_run *run, int64_t number,
                       dsc_error *err)
{
    const cli_served *s = &run->served[number];
    const dsc_serve_source *source = &run->method->source;
    const dsc_serve_item *item = &source->item[s->item];
    put(r, DSC_COL_REQUEST, cli_integer(number));
    put(r, DSC_COL_ID, cli_text(source->id[s->item]));
    put(r, "prompt_tokens", cli_integer(item->prompt));
    put(r, DSC_COL_OUTPUT_TOKENS, cli_integer(item->output));
    put(r, "arrival_s", cli_real(s->arrival_s));
    put(r, "ttft_s", cli_real(s->first_s - s->arrival_s));
    put(r, "tpot_s",
        cli_real(item->output > 1 ? (s->last_s - s->first_s) / (item->output - 1) : NAN));
    put(r, "e2e_s", cli_real(s->last_s - s->arrival_s));
    put(r, "passes", cli_integer(s->passes));
    put(r, "preemptions", cli_integer(s->preemptions));
    return dsc_table_add_row(t, r->cell, err);
}

int cli_serve_table_add(dsc_table *t, const cli_serve_run *run, const dsc_table *restored,
                        dsc_error *err)
{
    row r = {.table = t};
    int rc = dsc_new(&r.cell, t->columns, err);
    if (rc)
        return rc;
    if (run->row)
        memcpy(r.cell, dsc_table_at(restored, run->row - 1, 0), t->columns * sizeof *r.cell);
    else
        put_run(&r, run);
    rc = add_figures(t, &r, run, err);
    free(r.cell);
    return rc;
}

int cli_serve_table_add_requests(dsc_table *t, const cli_serve_run *run, int64_t first,
                                 int64_t count, dsc_error *err)
{
    row r = {.table = t};
    int rc = dsc_new(&r.cell, t->columns, err);
    if (rc)
        return rc;
    put_run(&r, run);
    for (int64_t i = first; i < first + count && !rc; i++)
        rc = add_request(t, &r, run, i, err);
    free(r.cell);
    return rc;
}

void cli_serve_restore(cli_serve_run *run, const dsc_table *rows, size_t at)
{
    size_t figures;
    const dsc_column *figure = cli_serve_columns(&figures);
    for (size_t i = 0; i < figures; i++)
        run->figure[i] = dsc_table_real(rows, at, (size_t)dsc_table_find(rows, figure[i].name));
}

// --- over time -----------------------------------------------------------------------------------

int cli_serve_occupancy_columns(dsc_table *t, const cli_serve_methods *m, dsc_error *err)
{
    const int rc = add_run_columns(t, m, err);
    return rc ? rc : dsc_table_add_columns(t, occupancy_only, LENGTH(occupancy_only), err);
}

static void put_bin(row *r, const dsc_serve_occupancy *o, size_t i, int64_t kv_blocks)
{
    const double *b = o->bin[i], seconds = dsc_serve_occupancy_seconds(o, i);
    const double value[LENGTH(occupancy_only)] = {
        (double)i * o->width_s,
        b[DSC_SERVE_RUNNING_S] / seconds,
        b[DSC_SERVE_WAITING_S] / seconds,
        kv_blocks ? b[DSC_SERVE_BLOCKS_S] / seconds / (double)kv_blocks : (double)NAN,
        b[DSC_SERVE_DRAFTED] / b[DSC_SERVE_DECODING],
        b[DSC_SERVE_ACCEPTED] / b[DSC_SERVE_DECODING],
        b[DSC_SERVE_BUSY_S] / b[DSC_SERVE_STEPS],
        b[DSC_SERVE_STEPS],
        seconds};
    for (size_t c = 0; c < LENGTH(occupancy_only); c++)
        put(r, occupancy_only[c].name, cli_real(value[c]));
}

int cli_serve_occupancy_add(dsc_table *t, const cli_serve_run *run, int64_t kv_blocks,
                            dsc_error *err)
{
    row r = {.table = t};
    int rc = dsc_new(&r.cell, t->columns, err);
    if (rc)
        return rc;
    put_run(&r, run);
    for (size_t i = 0; i < dsc_serve_occupancy_bins(run->occupancy) && !rc; i++) {
        put_bin(&r, run->occupancy, i, kv_blocks);
        rc = dsc_table_add_row(t, r.cell, err);
    }
    free(r.cell);
    return rc;
}
