// SPDX-License-Identifier: Apache-2.0
// draftscope serve: simulates one engine with continuous batching under load, for every method,
// configuration, policy and load side by side, with common random numbers.
#include "base/outfile.h"
#include "base/threads.h"
#include "cli/guard.h"
#include "cli/result.h"
#include "cli/serve/serve.h"
#include "cli/serve/serve_answer.h"
#include "sim/serve/serve_schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// clang-format off
static const dsc_option options[] = {
    [SERVE_METHOD] = {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME[,NAME...]",
     .help = "drafting methods; none is always served as well"},
    [SERVE_TARGET] = {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "SPEC",
     .synonyms = "acceptance",
     .help = "what runs instead of a trace, as for draftscope sim: a model, or (also "
             "--acceptance) rates:R1,R2,..., conditional:H1,H2,..., al:LENGTH@K, iid:ALPHA"},
    [SERVE_PROMPT_TOKENS] = {.name = "prompt-tokens", .kind = DSC_OPTION_TEXT,
     .metavar = "P|DISTRIBUTION", .initial = "128",
     .help = "tokens of each prompt, without a trace: a number, uniform:A:B, lognormal:MEAN,CV, "
             "geometric:MEAN, trace:DIR or file:FILE (LENGTHS in draftscope-serve(1))"},
    [SERVE_MAX_TOKENS] = {.name = "max-tokens", .kind = DSC_OPTION_TEXT,
     .metavar = "M|DISTRIBUTION", .initial = "256",
     .help = "tokens of each output, without a trace: as --prompt-tokens; a table has lengths of "
             "its own"},
    [SERVE_RULE] = {.name = "rule", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "verification rule (default: as for draftscope sim)"},
    [SERVE_COST] = CLI_OPTION_COST,
    [SERVE_PREFILL_TIME] = {.name = "prefill-time", .kind = DSC_OPTION_REAL, .metavar = "S",
     .least = 0, .most = 1e6,
     .help = "seconds of each prefill token in addition to the pass over the other tokens "
             "(default: as the cost model prices them)"},
    [SERVE_OVERHEAD] = {.name = "overhead", .kind = DSC_OPTION_REAL, .metavar = "S",
     .initial = "0", .least = 0, .most = 1e6,
     .help = "seconds of the host for each step of the engine"},
    [SERVE_ARRIVALS] = {.name = "arrivals", .kind = DSC_OPTION_TEXT,
     .metavar = "auto|closed:C|constant:QPS|poisson:QPS|gamma:QPS,CV|recorded[:xSPEED]|file:CSV",
     .help = "how requests arrive; C, QPS and xSPEED are lists or ranges, as in poisson:1:20:1; "
             "auto: poisson from half of the smallest to the largest rate that can be served; may "
             "be repeated"},
    [SERVE_REQUESTS] = {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "N",
     .min = 1, .max = 1000000000,
     .help = "most requests to measure at each load (default: as many as a steady state and "
             "--half-width take, 1000 to 20000, and every time of a list)"},
    [SERVE_DURATION] = {.name = "duration", .kind = DSC_OPTION_REAL, .metavar = "S",
     .least = 1e-6, .most = 1e9,
     .help = "most seconds of arrivals to measure at each rate, in place of --requests"},
    [SERVE_ORDER] = {.name = "order", .kind = DSC_OPTION_CHOICE, .choices = "file|shuffle",
     .initial = "file",
     .help = "requests of the trace in turn, or drawn with replacement by --seed"},
    [SERVE_MAX_NUM_SEQS] = {.name = "max-num-seqs", .kind = DSC_OPTION_INT, .metavar = "N",
     .initial = "256", .min = 1, .max = 1 << 20,
     .help = "most requests that run together"},
    [SERVE_MAX_NUM_BATCHED_TOKENS] = {.name = "max-num-batched-tokens", .kind = DSC_OPTION_INT,
     .metavar = "N", .initial = "2048", .min = 1, .max = 1 << 30,
     .help = "most tokens of a step, prefill and drafts together"},
    [SERVE_LONG_PREFILL] = {.name = "long-prefill-token-threshold", .kind = DSC_OPTION_INT,
     .metavar = "N", .initial = "0", .min = 0, .max = 1 << 30,
     .help = "most prefill tokens of a request in a step; 0: any"},
    [SERVE_KV_BLOCKS] = {.name = "kv-blocks", .kind = DSC_OPTION_INT, .metavar = "N",
     .initial = "0", .min = 0, .max = INT64_MAX / (1 << 20),
     .help = "blocks of the KV cache; 0: without limit"},
    [SERVE_KV_MEMORY] = {.name = "kv-memory", .kind = DSC_OPTION_REAL, .metavar = "BYTES",
     .least = 1, .most = 1e18,
     .help = "bytes of the KV cache in place of --kv-blocks, with --cost roofline:..."},
    [SERVE_BLOCK_SIZE] = {.name = "block-size", .kind = DSC_OPTION_INT, .metavar = "N",
     .initial = "16", .min = 1, .max = 1 << 20, .help = "tokens of a block of the KV cache"},
    [SERVE_SPECULATION] = {.name = "speculation", .kind = DSC_OPTION_TEXT, .metavar = "POLICY",
     .initial = "fixed",
     .help = "policy that chooses draft lengths step by step; may be repeated (POLICIES in "
             "draftscope-serve(1))"},
    [SERVE_REGRET] = {.name = "regret", .kind = DSC_OPTION_FLAG,
     .help = "compare each policy with the best fixed draft length and the oracle; every method "
             "is served with each draft length in addition"},
    [SERVE_SLO] = {.name = "slo", .kind = DSC_OPTION_TEXT, .metavar = "ttft=S,tpot=S",
     .help = "limits in seconds that a request must keep to count in goodput; in gain one that "
             "does not counts a tenth"},
    [SERVE_HALF_WIDTH] = {.name = "half-width", .kind = DSC_OPTION_REAL, .metavar = "SHARE",
     .initial = "0.02", .least = 1e-4, .most = 1,
     .help = "relative half width of the 95 % intervals of mean times that the number of requests "
             "aims at, with at most 3000 for it unless this option, --requests or --duration is "
             "given"},
    [SERVE_DRAIN] = {.name = "drain", .kind = DSC_OPTION_FLAG,
     .help = "serve --requests requests and no others, until the engine is empty, as a benchmark "
             "of N prompts does: all of them count, and all of the time"},
    [SERVE_PER_REQUEST] = {.name = "per-request", .kind = DSC_OPTION_FLAG,
     .help = "print a row per request instead of a row per load"},
    [SERVE_TIMELINE] = {.name = "timeline", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file for the steps and requests of the first method's first load, as trace events "
             "that Perfetto opens"},
    [SERVE_SCHEDULE] = {.name = "schedule", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "file for the steps of the first method's first load, in JSON lines, which draftscope "
             "live profile --schedule runs on models"},
    [SERVE_OCCUPANCY] = {.name = "occupancy", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "table of running and waiting requests, KV use and draft lengths over time, for every "
             "load (see: draftscope plot occupancy)"},
    [SERVE_ENGINE] = {.name = "engine", .kind = DSC_OPTION_CHOICE, .choices = CLI_ENGINES,
     .help = "recommend configurations that this engine has settings for, and print these"},
    [SERVE_DRAFT_KIND] = CLI_OPTION_DRAFT_KIND,
    [SERVE_SHARD] = {.name = "shard", .kind = DSC_OPTION_TEXT, .metavar = "I/N",
     .help = "compute share I of N of the rows, I from 1; merge joins the shares"},
    CLI_OPTIONS_RESULT,
    CLI_OPTION_SEED,
    CLI_OPTION_THREADS,
    CLI_OPTION_PROGRESS,
};
// clang-format on
// These options change no row of the result.
static const char *const without[] = {"output",    "threads",  "shard", "timeline", "schedule",
                                      "occupancy", "progress", "force", "json",     NULL};
static const char *const repeated[] = {"arrivals", "speculation", NULL};

typedef struct context {
    cli_simulation s; // its trace, cost and progress
    const cli_call *call;
    cli_serve_loads loads;
    cli_serve_methods methods;
    const char **policy; // [policies] values of --speculation
    size_t policies;
    dsc_serve_capacity *capacity; // [methods.count * policies], or NULL: closed loops alone
    cli_serve_run *run;           // [runs]
    size_t runs, finished, timed;
    size_t own; // runs of this shard
    dsc_split split;
    cli_serve_rows rows;
    dsc_serve_options options;
    double prefill_s;
    dsc_table table; // of `rows` it is the head
    dsc_outfile timeline_file;
    cli_serve_timeline timeline;
    cli_serve_schedule schedule;
} context;

// A run under way.
typedef struct observer {
    const context *c;
    cli_serve_run *run;
    const dsc_serve_pool *pool;
    cli_serve_timeline *timeline; // or NULL
    cli_serve_schedule *schedule; // or NULL
} observer;

// --- a run ---------------------------------------------------------------------------------------

static int on_pass(void *user, const dsc_serve_engine *engine, dsc_error *err)
{
    const observer *o = user;
    return o->schedule ? cli_serve_schedule_pass(o->schedule, engine, err) : DSC_OK;
}

static int on_step(void *user, const dsc_serve_engine *engine, dsc_error *err)
{
    observer *o = user;
    if (cli_signal())
        return dsc_fail(err, DSC_EINTERRUPT, "stopped");
    cli_serve_blocks_step(&o->run->blocks, engine);
    if (o->timeline)
        cli_serve_timeline_step(o->timeline, engine);
    if (o->schedule)
        cli_serve_schedule_step(o->schedule, engine);
    if (o->run->occupancy)
        dsc_serve_occupancy_add(o->run->occupancy, engine);
    return DSC_OK;
}

static int on_complete(void *user, const dsc_serve_sequence *s, dsc_error *err)
{
    observer *o = user;
    const cli_serve_method *m = o->run->method;
    const size_t at = (size_t)(dsc_serve_item_of(o->pool, s->number) - o->pool->item),
                 item = o->run->load->recorded ? m->order[at] : at;
    (void)err;
    if (o->timeline)
        cli_serve_timeline_request(o->timeline, s, m->source.id[item]);
    if (s->number < o->run->ramp || s->number >= o->run->ramp + o->run->requests)
        return DSC_OK;
    cli_serve_blocks_add(&o->run->blocks, s, at);
    if (o->run->served)
        o->run->served[s->number - o->run->ramp] = (cli_served){.arrival_s = s->arrival_s,
                                                                .first_s = s->first_s,
                                                                .last_s = s->last_s,
                                                                .item = item,
                                                                .preemptions = s->preemptions,
                                                                .passes = s->chunks};
    return DSC_OK;
}

// What a run is served with.
typedef struct setup {
    dsc_serve_pool pool;
    dsc_serve_price price;
    dsc_serve_options options;
} setup;

static setup setup_of(const context *c, observer *o)
{
    const cli_serve_run *run = o->run;
    const cli_serve_method *m = run->method;
    setup s = {.pool = cli_serve_pool(m, run->load, c->call),
               .price = {.cost = &c->s.cost,
                         .drafting = m->source.drafting,
                         .overlap = m->source.overlap,
                         .overhead_s = c->call->value[SERVE_OVERHEAD].real,
                         .prefill_s = c->prefill_s},
               .options = c->options};
    s.options.requests = run->requests;
    s.options.ramp = run->ramp;
    s.options.drain = c->call->value[SERVE_DRAIN].given;
    s.options.lookahead = cli_serve_lookahead(m);
    s.options.step = on_step;
    s.options.user = o;
    return s;
}

static int parse_policy(dsc_serve_policy *out, const cli_serve_run *run, dsc_error *err)
{
    return dsc_serve_policy_parse(out, *run->policy ? run->policy : "fixed",
                                  run->method->source.longest, err);
}

// Serves with the policy of the run. *totals is the caller's to free.
static int serve_with(dsc_serve_totals *totals, const setup *s, const cli_serve_run *run,
                      const dsc_arrivals *arrivals, dsc_error *err)
{
    dsc_serve_policy policy;
    *totals = (dsc_serve_totals){0};
    int rc = parse_policy(&policy, run, err);
    if (rc)
        return rc;
    rc = dsc_serve_run(totals, &s->pool, arrivals, &s->price, &policy, &s->options, err);
    dsc_serve_policy_fini(&policy);
    return rc;
}

// Serves one load and sets the figures of its run.
static int serve(const context *c, observer *o, const dsc_arrivals *arrivals, dsc_error *err)
{
    cli_serve_run *run = o->run;
    setup s = setup_of(c, o);
    dsc_serve_totals totals;
    s.options.pass = on_pass;
    s.options.complete = on_complete;
    o->pool = &s.pool;
    cli_serve_blocks_begin(&run->blocks, &s.options, run->method->source.count);
    const int rc = serve_with(&totals, &s, run, arrivals, err);
    if (!rc)
        cli_serve_figures(run, &totals, &s.options);
    dsc_serve_totals_fini(&totals);
    return rc;
}

// As the measured requests of a run arrive.
static dsc_arrivals settled(const context *c, const cli_serve_run *run)
{
    dsc_arrivals arrivals = cli_serve_arrivals(run->load, &c->methods);
    if (!c->call->value[SERVE_DRAIN].given)
        dsc_arrivals_settle(&arrivals, run->ramp, run->requests);
    return arrivals;
}

static int stop_if_asked(void *user, const dsc_serve_engine *engine, dsc_error *err)
{
    (void)user;
    (void)engine;
    return cli_signal() ? dsc_fail(err, DSC_EINTERRUPT, "stopped") : DSC_OK;
}

// Serves a part of the measured requests again, at a slightly lower rate, which any server can.
static int serve_slower(const context *c, observer *o, const dsc_arrivals *arrivals, dsc_error *err)
{
    const double by = 0.95;
    cli_serve_run *run = o->run;
    setup s = setup_of(c, o);
    dsc_serve_totals totals;
    dsc_arrivals slower = *arrivals;
    slower.rate *= by;
    s.options.requests = cli_serve_blocks_first(&run->blocks, s.options.drain);
    s.options.step = stop_if_asked;
    const int rc = serve_with(&totals, &s, run, &slower, err);
    if (!rc)
        cli_serve_blocks_elasticity(&run->blocks, &totals, by);
    dsc_serve_totals_fini(&totals);
    return rc;
}

static int run_one(context *c, size_t i, dsc_error *err)
{
    cli_serve_run *run = &c->run[i];
    const dsc_arrivals arrivals = settled(c, run);
    observer o = {.c = c, .run = run};
    int rc = DSC_OK;
    if (c->timeline.f && i == c->timed)
        o.timeline = &c->timeline;
    if (c->schedule.file.stream && i == c->timed)
        o.schedule = &c->schedule;
    if (c->call->value[SERVE_PER_REQUEST].given) {
        run->served_count = run->requests;
        rc = dsc_new(&run->served, (size_t)run->served_count, err);
    }
    if (!rc && c->call->value[SERVE_OCCUPANCY].given)
        rc = dsc_new(&run->occupancy, 1, err);
    rc = rc ?: serve(c, &o, &arrivals, err);
    const bool answers = run->steady && !run->saturated && arrivals.kind != DSC_ARRIVALS_CLOSED &&
                         !c->call->value[SERVE_PER_REQUEST].given;
    return rc || !answers ? rc : serve_slower(c, &o, &arrivals, err);
}

// --- capacities and lengths of runs --------------------------------------------------------------

static int find_capacity(const context *c, size_t method, size_t policy, dsc_serve_capacity *out,
                         dsc_error *err)
{
    cli_serve_run run = {.method = &c->methods.method[method],
                         .policy = method ? c->policy[policy] : "",
                         .load = &c->loads.load[0],
                         .requests = 1};
    observer o = {.c = c, .run = &run};
    setup s = setup_of(c, &o);
    dsc_serve_policy parsed;
    s.options.step = stop_if_asked;
    int rc = parse_policy(&parsed, &run, err);
    rc = rc ?: dsc_serve_capacity_find(out, &s.pool, &s.price, &parsed, &s.options, err);
    dsc_serve_policy_fini(&parsed);
    return rc;
}

// Of every method and policy. A server that takes no request at all says so at each load.
static int find_capacities(context *c, dsc_error *err)
{
    const size_t n = c->methods.count * c->policies;
    bool open = false;
    int rc = dsc_new(&c->capacity, n, err);
    for (size_t l = 0; l < c->loads.count; l++)
        open |= c->loads.load[l].arrivals.kind != DSC_ARRIVALS_CLOSED;
    if (rc || !open)
        return rc;
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->call->threads)
    for (size_t i = 0; i < n; i++) {
        dsc_error ignored;
        if (cli_signal() || (i < c->policies && i > 0) || // without drafts there is no policy
            find_capacity(c, i / c->policies, i % c->policies, &c->capacity[i], &ignored))
            c->capacity[i] = (dsc_serve_capacity){.qps = NAN, .running = 1, .alone_s = 1};
    }
    return cli_signal() ? dsc_fail(err, DSC_EINTERRUPT, "interrupted before the first row") : rc;
}

// --- regret --------------------------------------------------------------------------------------

static int find_reference(const void *all, cli_serve_run *run, dsc_error *err)
{
    observer o = {.c = all, .run = run};
    setup s = setup_of(o.c, &o);
    s.options.step = stop_if_asked;
    const dsc_arrivals arrivals = settled(o.c, run);
    return dsc_serve_reference_run(&run->reference, run->method->source.longest, &s.pool, &arrivals,
                                   &s.price, &s.options, err);
}

// --- all runs ------------------------------------------------------------------------------------

static void run_all(context *c)
{
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->call->threads)
    for (size_t i = 0; i < c->runs; i++) {
        cli_serve_run *run = &c->run[i];
        if (cli_signal() || run->elsewhere || run->done)
            continue;
        run->rc = run_one(c, i, &run->error);
#pragma omp critical(draftscope_serve_rows)
        {
            if (!run->rc)
                run->rc = cli_serve_rows_add(&c->rows, i, &run->error);
            run->done = !run->rc;
            c->finished++;
            cli_progress_step(&c->s.progress, (int64_t)c->finished, (int64_t)c->own);
        }
    }
}

// The first failure but for interruptions, in the order of the rows.
static int first_failure(const context *c, dsc_error *err)
{
    for (size_t i = 0; i < c->runs; i++) {
        const cli_serve_run *r = &c->run[i];
        if (!r->rc || r->rc == DSC_EINTERRUPT)
            continue;
        return dsc_fail(err, r->rc, "%s, %s: %.800s%s", r->method->config.drafter->name,
                        r->load->text, r->error.message,
                        r->rc == DSC_EINPUT && isnan(c->prefill_s) && !c->s.cost.type->linear
                            ? " (--prefill-time prices prefill tokens)"
                            : "");
    }
    return DSC_OK;
}

static int make_runs(context *c, dsc_error *err)
{
    const cli_serve_methods *m = &c->methods;
    int rc = dsc_new(&c->run, m->count * c->policies * c->loads.count, err);
    for (size_t i = 0; i < m->count && !rc; i++) {
        const bool none = i == 0;
        for (size_t p = 0; p < (none ? 1 : c->policies); p++)
            for (size_t l = 0; l < c->loads.count; l++)
                c->run[c->runs++] = (cli_serve_run){.method = &m->method[i],
                                                    .policy = none ? "" : c->policy[p],
                                                    .load = &c->loads.load[l],
                                                    .capacity = &c->capacity[i * c->policies + p]};
    }
    if (!rc)
        cli_serve_plan(c->run, c->runs, &c->loads, m, c->call);
    c->timed = m->count > 1 ? c->loads.count : 0;
    if (!rc)
        c->run[c->timed].again =
            c->call->value[SERVE_TIMELINE].given || c->call->value[SERVE_SCHEDULE].given;
    for (size_t i = 0; i < c->runs; i++)
        c->run[i].again |= c->call->value[SERVE_OCCUPANCY].given;
    rc = rc ?: cli_serve_deal(c->run, c->runs, &c->split, err);
    for (size_t i = 0; i < c->runs; i++)
        c->own += !c->run[i].elsewhere;
    return rc;
}

// A policy that cannot be parsed is refused before anything runs.
static int read_policies(context *c, dsc_error *err)
{
    const dsc_option *speculation = &options[SERVE_SPECULATION];
    const cli_call *call = c->call;
    int rc = dsc_new(&c->policy, call->uses.count + 1, err);
    for (size_t u = 0; u < call->uses.count && !rc; u++)
        if (call->uses.use[u].option == speculation)
            c->policy[c->policies++] = call->uses.use[u].text;
    if (!rc && !c->policies)
        c->policy[c->policies++] = call->value[SERVE_SPECULATION].text;
    for (size_t p = 0; p < c->policies && !rc; p++) {
        dsc_serve_policy policy;
        rc = dsc_serve_policy_parse(&policy, c->policy[p], DSC_SERVE_LONGEST, err);
        if (!rc)
            dsc_serve_policy_fini(&policy);
    }
    return rc;
}

// --- options -------------------------------------------------------------------------------------

// Blocks from bytes: a token takes what the roofline's shapes and KV format say.
static int read_kv_memory(context *c, dsc_error *err)
{
    const dsc_option_value *v = c->call->value;
    if (!v[SERVE_KV_MEMORY].given)
        return DSC_OK;
    if (v[SERVE_KV_BLOCKS].given)
        return dsc_fail(err, DSC_EUSAGE, "--kv-memory and --kv-blocks cannot be combined");
    const double bytes = dsc_serve_token_bytes(&c->s.cost) * c->options.block_size;
    if (!(bytes > 0))
        return dsc_fail(err, DSC_EUSAGE,
                        "--kv-memory needs --cost roofline:..., whose shapes give the bytes of a "
                        "token; --kv-blocks N takes blocks with any cost model");
    c->options.kv_blocks = (int64_t)(v[SERVE_KV_MEMORY].real / bytes);
    return c->options.kv_blocks > 0
               ? DSC_OK
               : dsc_fail(err, DSC_EUSAGE,
                          "--kv-memory %.4g: a block of %d tokens takes %.4g bytes",
                          v[SERVE_KV_MEMORY].real, c->options.block_size, bytes);
}

static int check_cost(context *c, dsc_error *err)
{
    const dsc_cost *cost = &c->s.cost;
    const dsc_option_value *prefill = &c->call->value[SERVE_PREFILL_TIME];
    c->prefill_s = prefill->given ? prefill->real : NAN;
    if (cost->type == &dsc_cost_unit)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost is missing: serve needs seconds, as from linear:FIXED_S,"
                        "PER_TOKEN_S[,DRAFT_S] or roofline:TARGET,HARDWARE");
    if (cost->no_plain)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost %.60s has no time of a pass without a draft, which every "
                        "server has: %s",
                        cost->type->name, cost->no_plain);
    if (!prefill->given && !cost->type->linear && cost->type != &dsc_cost_roofline && !cost->mixed)
        return dsc_fail(err, DSC_EUSAGE,
                        "--cost %.60s has no time of prefill tokens: --prefill-time S gives the "
                        "seconds of each, or draftscope live profile measures them",
                        cost->type->name);
    return DSC_OK;
}

static int read_options(context *c, dsc_error *err)
{
    const dsc_option_value *v = c->call->value;
    c->options = (dsc_serve_options){
        .max_num_seqs = (int32_t)v[SERVE_MAX_NUM_SEQS].integer,
        .max_num_batched_tokens = (int32_t)v[SERVE_MAX_NUM_BATCHED_TOKENS].integer,
        .long_prefill_token_threshold = (int32_t)v[SERVE_LONG_PREFILL].integer,
        .kv_blocks = v[SERVE_KV_BLOCKS].integer,
        .block_size = (int32_t)v[SERVE_BLOCK_SIZE].integer};
    if (c->options.max_num_batched_tokens < c->options.max_num_seqs)
        return dsc_fail(err, DSC_EUSAGE,
                        "--max-num-batched-tokens %d is less than --max-num-seqs %d: every running "
                        "request needs a token of a step",
                        c->options.max_num_batched_tokens, c->options.max_num_seqs);
    int rc = cli_serve_read_slo(v[SERVE_SLO].text, &c->options, err);
    rc = rc ?: dsc_cost_parse(&c->s.cost, v[SERVE_COST].text, err);
    rc = rc ?: check_cost(c, err);
    rc = rc ?: read_kv_memory(c, err);
    rc = rc ?: cli_serve_loads_read(&c->loads, c->call, err);
    rc = rc ?: cli_serve_check_engine(c->s.trace, c->call, err);
    return rc ? rc : read_policies(c, err);
}

// A request that can never fit into the KV cache is named before anything runs.
static int check_room(const context *c, dsc_error *err)
{
    const dsc_serve_options *o = &c->options;
    for (size_t i = 0; i < c->methods.count && o->kv_blocks; i++) {
        const dsc_serve_source *s = &c->methods.method[i].source;
        const int64_t ahead = cli_serve_lookahead(&c->methods.method[i]) + s->widest;
        for (size_t q = 0; q < s->count; q++) {
            const int64_t tokens = (int64_t)s->item[q].prompt + s->item[q].output + ahead,
                          blocks = (tokens + o->block_size - 1) / o->block_size;
            if (blocks > o->kv_blocks)
                return dsc_fail(err, DSC_EINPUT,
                                "request '%.80s' has a prompt of %d and an output of %d tokens: it "
                                "needs %" PRId64 " blocks of the KV cache, which has %" PRId64
                                " (--kv-blocks, --kv-memory)",
                                s->id[q], s->item[q].prompt, s->item[q].output, blocks,
                                o->kv_blocks);
        }
    }
    return DSC_OK;
}

// --- the command ---------------------------------------------------------------------------------

// Options that the requests at hand would ignore.
static int check_source(const context *c, dsc_error *err)
{
    const dsc_option_value *v = c->call->value;
    if (c->s.trace && (v[SERVE_PROMPT_TOKENS].given || v[SERVE_MAX_TOKENS].given))
        return dsc_fail(err, DSC_EUSAGE,
                        "--prompt-tokens and --max-tokens are for requests without a trace; those "
                        "of a trace have their own lengths");
    if (v[SERVE_REGRET].given && v[SERVE_PER_REQUEST].given)
        return dsc_fail(err, DSC_EUSAGE, "--regret and --per-request cannot be combined");
    const int rc = cli_serve_models_check(&c->s, c->call, err);
    if (rc)
        return rc;
    return v[SERVE_REQUESTS].given && v[SERVE_DURATION].given
               ? dsc_fail(err, DSC_EUSAGE, "--requests and --duration cannot be combined")
               : DSC_OK;
}

// The trace, if the argument is a folder; a file has totals.
static int open_source(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    const char *target = call->value[SERVE_TARGET].text;
    struct stat st;
    if (!call->words == !target)
        return dsc_fail(err, DSC_EUSAGE, "one trace, one table or --target SPEC expected, not %s",
                        target ? "both" : "neither");
    if (target || (stat(call->word[0], &st) == 0 && S_ISREG(st.st_mode)))
        return DSC_OK;
    return cli_open_replayed(&c->s.trace, call->word[0], err);
}

static int read_requests(context *c, dsc_error *err)
{
    bool recorded = false;
    for (size_t l = 0; l < c->loads.count; l++)
        recorded |= c->loads.load[l].recorded;
    int rc = cli_serve_methods_read(&c->methods, &c->s, c->call,
                                    cli_serve_requests(c->call, &c->loads), recorded, err);
    for (size_t l = 0; l < c->loads.count && !rc; l++)
        rc = cli_serve_check_load(c->call, &c->loads.load[l], &c->methods, err);
    rc = rc ?: cli_serve_methods_admit(&c->methods, c->policy, c->policies, err);
    return rc ? rc : check_room(c, err);
}

// The files of --timeline and --schedule.
static int open_files(context *c, dsc_error *err)
{
    const dsc_option_value *v = c->call->value;
    const cli_serve_run *run = &c->run[c->timed];
    char name[200];
    snprintf(name, sizeof name, "%.60s %.60s %.60s", run->method->config.drafter->name, run->policy,
             run->load->text);
    int rc = v[SERVE_SCHEDULE].text
                 ? cli_serve_schedule_open(&c->schedule, &c->s, c->call, run->method, name, err)
                 : DSC_OK;
    if (rc || !v[SERVE_TIMELINE].text)
        return rc;
    rc = dsc_outfile_open(&c->timeline_file, v[SERVE_TIMELINE].text, c->call->force, err);
    if (rc)
        return rc;
    c->timeline =
        (cli_serve_timeline){.f = c->timeline_file.stream, .overlap = run->method->source.overlap};
    cli_serve_timeline_begin(&c->timeline, name);
    return DSC_OK;
}

static int write_occupancy(const context *c, dsc_error *err)
{
    dsc_table t = {0};
    dsc_outfile f = {0};
    int rc = cli_comments(&t, c->s.trace, c->call->seed, c->call->value[SERVE_COST].text, err);
    rc = rc ?: cli_serve_occupancy_columns(&t, &c->methods, err);
    for (size_t i = 0; i < c->runs && !rc; i++)
        rc = cli_serve_occupancy_add(&t, &c->run[i], c->options.kv_blocks, err);
    rc = rc ?: dsc_outfile_open(&f, c->call->value[SERVE_OCCUPANCY].text, c->call->force, err);
    if (!rc) {
        cli_result_print(&t, false, true, f.stream);
        rc = dsc_outfile_commit(&f, err);
    }
    dsc_table_fini(&t);
    return rc;
}

// Comments and columns of the table, and the file that keeps the rows of finished runs.
static int open_rows(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    const bool per_request = call->value[SERVE_PER_REQUEST].given,
               file = strcmp(call->out, "-") != 0;
    c->rows = (cli_serve_rows){.run = c->run, .runs = c->runs, .per_request = per_request};
    int rc = cli_comments(&c->table, c->s.trace, call->seed, call->value[SERVE_COST].text, err);
    if (!rc && call->value[SERVE_SLO].text)
        rc = dsc_table_comment(&c->table, "slo", call->value[SERVE_SLO].text, err);
    rc = rc ?: cli_comment_acceptance(&c->table, &c->s.rates, err);
    if (!rc && !per_request)
        rc = cli_serve_answer_conditions(&c->table, c->s.trace, call, err);
    if (!rc && file)
        rc = cli_serve_rows_head(&c->table, &c->s, call, &c->loads, &c->methods, err);
    if (!rc)
        rc = cli_serve_table_columns(&c->table, &c->methods, per_request,
                                     call->value[SERVE_REGRET].given, err);
    if (!rc && file)
        rc = cli_serve_rows_open(&c->rows, call, &c->table, &c->split, err);
    c->finished = c->rows.restored;
    if (!rc && c->finished)
        cli_progress_resume(&c->s.progress, c->finished, c->own, "rows");
    return rc;
}

// The rows of all runs that are complete, to standard output.
static int write_table(context *c, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < c->runs && !rc; i++) {
        const cli_serve_run *run = &c->run[i];
        if (run->done)
            rc = c->rows.per_request
                     ? cli_serve_table_add_requests(&c->table, run, 0, run->served_count, err)
                     : cli_serve_table_add(&c->table, run, &c->rows.rows, err);
    }
    return rc ? rc : cli_serve_answer_write(&c->table, c->call, err);
}

static int interrupted(context *c, size_t done, dsc_error *err)
{
    const bool file = c->rows.open;
    cli_serve_rows_close(&c->rows, done);
    return dsc_fail(
        err, DSC_EINTERRUPT, "interrupted: %zu of %zu rows are finished%s%.200s%s", done, c->own,
        !done  ? ""
        : file ? ", in "
               : " and written",
        done && file ? c->call->out : "", done && file ? ".part; the same command goes on" : "");
}

static int finish(context *c, dsc_error *err)
{
    size_t done = 0;
    int rc = first_failure(c, err);
    for (size_t i = 0; i < c->runs; i++)
        done += c->run[i].done;
    const bool stopped = done < c->own || cli_signal();
    if (!rc && done && !c->rows.open)
        rc = write_table(c, err);
    if (!rc && stopped)
        return interrupted(c, done, err);
    if (!rc && c->call->value[SERVE_OCCUPANCY].given)
        rc = write_occupancy(c, err);
    if (!rc && c->rows.open && !c->rows.per_request && !c->call->value[SERVE_SHARD].given)
        rc = cli_serve_answer_head(&c->table, &c->rows, c->call->quiet ? NULL : stdout, err);
    if (!rc && c->rows.open)
        rc = cli_serve_rows_finish(&c->rows, c->call->value[SERVE_SHARD].given, c->call->json, err);
    if (rc)
        cli_serve_rows_close(&c->rows, done);
    if (!rc && c->timeline.f) {
        cli_serve_timeline_end(&c->timeline);
        rc = dsc_outfile_commit(&c->timeline_file, err);
    }
    return rc ? rc : cli_serve_schedule_commit(&c->schedule, err);
}

static void context_fini(context *c)
{
    for (size_t i = 0; i < c->runs; i++) {
        free(c->run[i].served);
        free(c->run[i].occupancy);
    }
    free(c->run);
    free(c->capacity);
    free(c->policy);
    dsc_outfile_abort(&c->timeline_file);
    cli_serve_schedule_fini(&c->schedule);
    cli_serve_rows_close(&c->rows, true);
    dsc_table_fini(&c->table);
    cli_serve_loads_fini(&c->loads);
    cli_serve_methods_fini(&c->methods);
    cli_simulation_close(&c->s);
}

static int execute(const cli_call *call, dsc_error *err)
{
    context c = {.call = call};
    const char *occupancy = call->value[SERVE_OCCUPANCY].text;
    int rc = strcmp(call->out, "-") ? dsc_outfile_check(call->out, call->force, err) : DSC_OK;
    if (!rc && occupancy && strcmp(occupancy, call->out) == 0)
        rc = dsc_fail(err, DSC_EUSAGE, "--occupancy and --output both name '%.200s'", occupancy);
    if (!rc && occupancy)
        rc = dsc_outfile_check(occupancy, call->force, err);
    rc = rc ?: open_source(&c, err);
    rc = rc ?: check_source(&c, err);
    rc = rc ?: cli_serve_read_split(&c.split, call, err);
    rc = rc ?: read_options(&c, err);
    rc = rc ?: read_requests(&c, err);
    rc = rc ?: find_capacities(&c, err);
    if (!rc)
        rc = cli_serve_expand_auto(&c.loads, c.capacity, c.methods.count * c.policies, call->seed,
                                   err);
    rc = rc ?: make_runs(&c, err);
    rc = rc ?: open_files(&c, err);
    cli_progress_init(&c.s.progress, call->progress, "rows");
    rc = rc ?: open_rows(&c, err);
    if (!rc) {
        cli_serve_note_short(c.run, c.runs);
        run_all(&c);
        if (call->value[SERVE_REGRET].given)
            cli_serve_find_references(c.run, c.runs, call->threads, find_reference, &c);
    }
    cli_progress_end(&c.s.progress);
    rc = rc ?: finish(&c, err);
    context_fini(&c);
    return rc;
}

const cli_command cli_serve = {
    .name = "serve",
    .summary = "simulate a server under load, with and without speculation",
    CLI_OPTIONS(options),
    .methods = CLI_METHOD_LISTS,
    .without = without,
    .repeated = repeated,
    .more = {"Models", cli_serve_models_options, SERVE_MODELS_OPTIONS},
    .usage = "serve TRACE --method NAME[,NAME...] --cost COST --arrivals A [OPTIONS]",
    .about =
        "Simulates one engine with continuous batching, as vLLM V1 schedules it, that serves the "
        "requests of a trace: arrivals, prefill in chunks, KV blocks, preemption, drafts. Every "
        "method, configuration, policy and load is a row of one table, with the same requests, "
        "arrivals and random numbers; method none is always among them. Instead of a trace, a "
        "result table (draftscope sim --json, trace import of counters) or --target gives "
        "acceptance "
        "rates. Rows of finished runs are kept in FILE.part while it runs; after an interruption "
        "the same command continues. With --shard I/N each of N processes, on any machines, "
        "computes one share, and draftscope merge joins their files. docs/serving.md says what is "
        "modeled.",
    .more_help = cli_serve_print_policies,
    .more_fields = cli_serve_visit_columns,
    .own_columns = true,
    .execute = execute,
};
