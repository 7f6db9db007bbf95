// SPDX-License-Identifier: Apache-2.0
// The parts of draftscope serve: the loads that --arrivals names, the requests with their drafts,
// the figures of a run, and the timeline.
#ifndef DSC_CLI_SERVE_H
#define DSC_CLI_SERVE_H

#include "base/outfile.h"
#include "cli/simulate.h"
#include "sim/serve/serve_confidence.h"
#include "sim/serve/serve_occupancy.h"
#include "sim/serve/serve_policy.h"
#include "sim/serve/serve_regret.h"
#include "sim/serve/serve_source.h"
#include "sim/serve/serve_steady.h"
#include "sim/serve/serve_steps.h"
#include "sim/sweep/grid.h"
#include "sim/sweep/row_file.h"
#include "sim/tune/advice_load.h"

// The options of the command, in the order of its table.
enum {
    SERVE_METHOD,
    SERVE_TARGET,
    SERVE_PROMPT_TOKENS,
    SERVE_MAX_TOKENS,
    SERVE_RULE,
    SERVE_COST,
    SERVE_PREFILL_TIME,
    SERVE_OVERHEAD,
    SERVE_ARRIVALS,
    SERVE_REQUESTS,
    SERVE_DURATION,
    SERVE_ORDER,
    SERVE_MAX_NUM_SEQS,
    SERVE_MAX_NUM_BATCHED_TOKENS,
    SERVE_LONG_PREFILL,
    SERVE_KV_BLOCKS,
    SERVE_KV_MEMORY,
    SERVE_BLOCK_SIZE,
    SERVE_SPECULATION,
    SERVE_REGRET,
    SERVE_SLO,
    SERVE_HALF_WIDTH,
    SERVE_DRAIN,
    SERVE_PER_REQUEST,
    SERVE_TIMELINE,
    SERVE_SCHEDULE,
    SERVE_OCCUPANCY,
    SERVE_ENGINE,
    SERVE_DRAFT_KIND,
    SERVE_SHARD
};

// Its options of models and acceptance rates, a second table.
enum {
    SERVE_DRAFT,
    SERVE_MIDDLE,
    SERVE_TOKENIZER,
    SERVE_TEMPERATURE,
    SERVE_REQUEST_SD,
    SERVE_MODELS_OPTIONS
};
extern const dsc_option cli_serve_models_options[SERVE_MODELS_OPTIONS];

// --- loads ---------------------------------------------------------------------------------------

typedef struct cli_serve_load {
    char *text; // "poisson:4"
    dsc_arrivals arrivals;
    double *time; // [times] of file:CSV, or NULL: those of the trace
    int64_t times;
    bool recorded;
    bool automatic; // `auto`, until cli_serve_loads_expand
} cli_serve_load;

typedef struct cli_serve_loads {
    cli_serve_load *load; // [count]
    size_t count, capacity;
} cli_serve_loads; // zero-initialize

// The loads of every --arrivals, whose numbers are lists and ranges: poisson:1:20:1. DSC_EUSAGE;
// DSC_EINPUT: a file of times.
int cli_serve_loads_read(cli_serve_loads *loads, const cli_call *call, dsc_error *err);
// Replaces `auto` by Poisson arrivals at round rates, about eight of them, from `low` to `high`
// requests per second.
int cli_serve_loads_expand(cli_serve_loads *loads, double low, double high, uint64_t seed,
                           dsc_error *err);
void cli_serve_loads_fini(cli_serve_loads *loads);

// Sets the limits of --slo, without one to infinity. `text` may be NULL. DSC_EUSAGE.
int cli_serve_read_slo(const char *text, dsc_serve_options *options, dsc_error *err);

// --- requests and drafts -------------------------------------------------------------------------

typedef struct cli_serve_method {
    dsc_config config; // prepared
    const dsc_verifier_type *rule;
    dsc_serve_source source;
    dsc_serve_confidence confidence;        // of adaptive:calibrated, or empty
    dsc_serve_item *arriving;               // [source.count] in the order of arrivals, or NULL
    const dsc_serve_pass **arriving_script; // [source.count] of them, or NULL
    const size_t *order;                    // [source.count] the item that is arriving[i], or NULL
} cli_serve_method;

typedef struct cli_serve_methods {
    cli_serve_method *method; // [count] the first is `none`
    size_t count, capacity;
    const dsc_drafter_type *drafter[CLI_MAX_METHODS + 1]; // [drafters] each once
    dsc_grid grid[CLI_MAX_METHODS + 1];                   // [drafters] their configurations
    size_t drafters;
    double *time;  // [times] the trace's arrivals, ascending, from 0 on; NULL: not needed
    size_t *order; // [times]
    size_t times;
} cli_serve_methods; // zero-initialize

// Acceptance rates in the place of a trace: those of --target or of a table, which become those of
// the simulation, or a table with a row for each request. DSC_EUSAGE, DSC_EINPUT.
// cli_serve_rates_close frees and takes NULL.
typedef struct cli_serve_rates cli_serve_rates;
int cli_serve_rates_open(cli_serve_rates **out, cli_simulation *s, const cli_call *call,
                         dsc_error *err);
int cli_serve_rates_draw(cli_serve_rates *r, cli_serve_method *m, int64_t requests, dsc_error *err);
void cli_serve_rates_close(cli_serve_rates *r);

// The models of --target, --draft and --middle, which run in addition to the trace or in its place;
// acceptance rates are none. DSC_EUSAGE: cli_serve_models_check also for options that the
// requests at hand would ignore.
int cli_serve_models_check(const cli_simulation *s, const cli_call *call, dsc_error *err);
int cli_serve_models_open(cli_simulation *s, const cli_call *call, int64_t requests,
                          dsc_error *err);

// Reads the requests of the trace, the totals or the model `--target` for `none` and every
// configuration of the command's methods. `recorded`: their arrivals, too. `requests` are served at
// most.
int cli_serve_methods_read(cli_serve_methods *m, cli_simulation *s, const cli_call *call,
                           int64_t requests, bool recorded, dsc_error *err);
void cli_serve_methods_fini(cli_serve_methods *m);
// Token slots that a request reserves for the draft model's tokens.
int32_t cli_serve_lookahead(const cli_serve_method *m);
// The requests of a method for the engine at a load: in the order of the trace's arrivals, in its
// own, or drawn, as the call says.
dsc_serve_pool cli_serve_pool(const cli_serve_method *m, const cli_serve_load *load,
                              const cli_call *call);
// Whether every policy can choose the drafts of every method. DSC_EUSAGE.
int cli_serve_methods_admit(const cli_serve_methods *m, const char *const *policy, size_t policies,
                            dsc_error *err);

// The calibrated confidences of a method's requests, if a policy of the command reads them.
int cli_serve_confidence_read(cli_serve_method *m, const cli_simulation *s, const cli_call *call,
                              dsc_error *err);

// --- a run ---------------------------------------------------------------------------------------

enum { CLI_SERVE_FIGURES = 64 }; // most columns with figures

// A request that was served.
typedef struct cli_served {
    double arrival_s, first_s, last_s;
    size_t item; // of the source
    int32_t preemptions, passes;
} cli_served;

// Sums over blocks of the measured requests, from which the verdict on a load is made
// (sim/tune/advice_load.h). A block has consecutive requests of the source, each with every time
// that it is served, so that blocks differ in their requests. A batch has consecutive requests of
// the run.
enum { CLI_SERVE_BLOCKS = 40, CLI_SERVE_BATCHES = 20 };
typedef struct cli_serve_sums {
    int64_t requests, good;
    double latency_s, engine_s, ttft_s, tpot_s;
    int64_t tpots; // requests with a time per output token
} cli_serve_sums;
typedef struct cli_serve_blocks {
    int64_t first, measured;       // request that is measured first; how many are
    int64_t items;                 // of the source that are served
    size_t blocks, batches;        // in use
    double slo_ttft_s, slo_tpot_s; // limits of a request that is `good`
    cli_serve_sums block[CLI_SERVE_BLOCKS], batch[CLI_SERVE_BATCHES];
    double elasticity; // d log utility / d log rate; NaN: not known
    double passed_s;   // of the engine, not yet in engine_s
    int64_t steps;
} cli_serve_blocks;
// `items`: of the source.
void cli_serve_blocks_begin(cli_serve_blocks *b, const dsc_serve_options *options, size_t items);
void cli_serve_blocks_step(cli_serve_blocks *b, const dsc_serve_engine *engine);
void cli_serve_blocks_add(cli_serve_blocks *b, const dsc_serve_sequence *s, size_t item);
// The number of requests in the first quarter of the batches, or in all.
int64_t cli_serve_blocks_first(const cli_serve_blocks *b, bool all);
// Sets the elasticity: `t` is of the same requests at `by` times the rate, as many as
// cli_serve_blocks_first says.
void cli_serve_blocks_elasticity(cli_serve_blocks *b, const dsc_serve_totals *t, double by);
// Their columns, which are added to a row.
extern const dsc_column cli_serve_block_columns[];
extern const size_t cli_serve_block_columns_count;
// Columns that are known when all rows of a load are: gain, its interval, and the advice.
enum { CLI_SERVE_GAIN_COLUMNS = 4 };
extern const dsc_column cli_serve_gain_columns[CLI_SERVE_GAIN_COLUMNS];
// Sets the cells of these columns, the first of which is cell[0]. `advice` is not copied.
void cli_serve_gain_cells(const dsc_load_gain *g, const char *advice, dsc_cell *cell);
// Sets the cells of these columns, the first of which is cell[0]; lists are in `room`.
typedef struct cli_serve_block_room {
    double reals[2 * (CLI_SERVE_BLOCKS + CLI_SERVE_BATCHES)];
    int64_t numbers[2 * (CLI_SERVE_BLOCKS + CLI_SERVE_BATCHES)];
} cli_serve_block_room;
void cli_serve_block_cells(const cli_serve_blocks *b, dsc_cell *cell, cli_serve_block_room *room);

typedef struct cli_serve_run {
    const cli_serve_method *method;
    const char *policy; // "fixed", ...; "": no speculation
    const cli_serve_load *load;
    double figure[CLI_SERVE_FIGURES];
    cli_serve_blocks blocks;
    dsc_serve_reference reference;      // of --regret
    const dsc_serve_capacity *capacity; // of the method and policy; closed loops have none
    bool saturated;
    bool steady; // the run is long enough, or drains
    bool done;
    dsc_load_gain gain;     // to no speculation at the load, known once `advice` is
    const char *advice;     // column `advice`, or NULL
    bool elsewhere;         // another shard has it
    bool again;             // it runs although its row is on disk, as another file is written of it
    int64_t ramp, requests; // to serve before, and to measure
    int64_t needed;         // of these, for a steady state
    size_t row;             // 1 + that of the table of restored rows; 0: it ran in this process
    cli_served *served;     // [served_count] of --per-request, or NULL
    int64_t served_count;
    dsc_serve_occupancy *occupancy; // of --occupancy, or NULL
    int rc;
    dsc_error error;
} cli_serve_run;

// Sets run->figure.
void cli_serve_figures(cli_serve_run *run, const dsc_serve_totals *t,
                       const dsc_serve_options *options);
double cli_serve_figure(const cli_serve_run *run, const char *column);
const dsc_column *cli_serve_columns(size_t *count);

// --- the length of a run -------------------------------------------------------------------------

// The most requests to measure at a load, INT32_MAX: any number; with --drain, their number.
int64_t cli_serve_limit(const cli_call *call, const cli_serve_load *load,
                        const cli_serve_methods *m);
// How the requests of a load arrive, in the long run.
dsc_arrivals cli_serve_arrivals(const cli_serve_load *load, const cli_serve_methods *m);
// DSC_EUSAGE: options that do not go with the load, or a list of times without a rate.
int cli_serve_check_load(const cli_call *call, const cli_serve_load *load,
                         const cli_serve_methods *m, dsc_error *err);
// How many different requests there are without a trace: with --drain all that are served.
int64_t cli_serve_requests(const cli_call *call, const cli_serve_loads *loads);
// Replaces `auto` by rates from half of the smallest of `count` capacities to the largest one.
// DSC_EINPUT: none is known. DSC_EUSAGE: one is bounded, so that a load may have no times.
int cli_serve_expand_auto(cli_serve_loads *loads, const dsc_serve_capacity *capacity, size_t count,
                          uint64_t seed, dsc_error *err);
// Sets ramp, requests, needed, saturated and steady. Runs of one load are loads->count apart.
void cli_serve_plan(cli_serve_run *run, size_t runs, const cli_serve_loads *loads,
                    const cli_serve_methods *m, const cli_call *call);
// Says on stderr how many runs are too short.
void cli_serve_note_short(const cli_serve_run *run, size_t runs);

// For the help.
void cli_serve_print_policies(void);
void cli_serve_visit_columns(cli_fields_visit *visit, void *user);
// The columns and the rows of a run: one, or one per request.
int cli_serve_table_columns(dsc_table *t, const cli_serve_methods *m, bool per_request, bool regret,
                            dsc_error *err);
// `restored`: the table of run->row.
int cli_serve_table_add(dsc_table *t, const cli_serve_run *run, const dsc_table *restored,
                        dsc_error *err);
int cli_serve_table_add_requests(dsc_table *t, const cli_serve_run *run, int64_t first,
                                 int64_t count, dsc_error *err);
// The same for --occupancy: a row per bin of time.
int cli_serve_occupancy_columns(dsc_table *t, const cli_serve_methods *m, dsc_error *err);
int cli_serve_occupancy_add(dsc_table *t, const cli_serve_run *run, int64_t kv_blocks,
                            dsc_error *err);
// Sets the figures of a run from a row that an earlier process computed.
void cli_serve_restore(cli_serve_run *run, const dsc_table *rows, size_t at);

// --- shards, and rows of finished runs on disk ---------------------------------------------------

// Reads --shard. DSC_EUSAGE: it is wrong, or does not go with other options.
int cli_serve_read_split(dsc_split *out, const cli_call *call, dsc_error *err);
// Sets `elsewhere` of the runs that are of other shards.
int cli_serve_deal(cli_serve_run *run, size_t runs, const dsc_split *split, dsc_error *err);

typedef struct cli_serve_rows {
    cli_serve_run *run; // [runs] of all shards
    size_t runs;
    bool per_request;
    bool open;       // there is a file
    size_t restored; // runs
    dsc_row_file file;
    dsc_split split;
    dsc_table rows; // of restored runs
} cli_serve_rows;   // zero-initialize and set the fields before `open`

// Adds the comments by which an unfinished file, or a shard, is recognized.
int cli_serve_rows_head(dsc_table *head, const cli_simulation *s, const cli_call *call,
                        const cli_serve_loads *loads, const cli_serve_methods *m, dsc_error *err);
// Opens the file of --output, or goes on with it: restored runs are `done`. `head`, the comments
// and columns of the table, remains the caller's.
int cli_serve_rows_open(cli_serve_rows *r, const cli_call *call, const dsc_table *head,
                        const dsc_split *split, dsc_error *err);
// Writes the rows of a run that is done. Called by one thread at a time. Without a file it does
// nothing.
int cli_serve_rows_add(cli_serve_rows *r, size_t run, dsc_error *err);
int cli_serve_rows_finish(cli_serve_rows *r, bool shard, bool json, dsc_error *err);
void cli_serve_rows_close(cli_serve_rows *r, bool keep); // dsc_row_file_close

// --- regret --------------------------------------------------------------------------------------

// Sets run->reference.
typedef int (*cli_serve_reference)(const void *context, cli_serve_run *run, dsc_error *err);

// Sets the reference of every run that is done and has a policy, once for each method and load. A
// failure becomes that of the run.
void cli_serve_find_references(cli_serve_run *run, size_t runs, int threads,
                               cli_serve_reference find, const void *context);

// --- timeline ------------------------------------------------------------------------------------

// Trace events of Chrome (Perfetto opens them): complete events, times in microseconds. A track for
// each phase of the engine's steps and for each request.
typedef struct cli_serve_timeline {
    FILE *f;
    bool overlap; // drafts are computed while the target verifies
    bool begun;
    double end_s; // of the last step
} cli_serve_timeline;
void cli_serve_timeline_begin(cli_serve_timeline *t, const char *run);
void cli_serve_timeline_step(cli_serve_timeline *t, const dsc_serve_engine *e);
void cli_serve_timeline_request(cli_serve_timeline *t, const dsc_serve_sequence *s, const char *id);
void cli_serve_timeline_end(cli_serve_timeline *t);

// --- schedule ------------------------------------------------------------------------------------

// The steps of a run in a file (sim/serve/serve_steps.h).
typedef struct cli_serve_schedule {
    dsc_outfile file;
    dsc_table table; // comments and columns
    dsc_serve_record record;
} cli_serve_schedule; // zero-initialize

// Opens the file of --schedule for a run of a method. `s` has the trace and `name` the run.
// DSC_EUSAGE: dsc_serve_source_records.
int cli_serve_schedule_open(cli_serve_schedule *x, const cli_simulation *s, const cli_call *call,
                            const cli_serve_method *m, const char *name, dsc_error *err);
int cli_serve_schedule_pass(cli_serve_schedule *x, const dsc_serve_engine *e, dsc_error *err);
void cli_serve_schedule_step(cli_serve_schedule *x, const dsc_serve_engine *e);
int cli_serve_schedule_commit(cli_serve_schedule *x, dsc_error *err);
void cli_serve_schedule_fini(cli_serve_schedule *x);

#endif
