// SPDX-License-Identifier: Apache-2.0
// draftscope live record: runs a method and writes a trace with the probabilities of both models
// along the outputs.
#include "base/json_text.h"
#include "live/program/job.h"
#include "live/program/live.h"
#include "live/program/provenance.h"
#include "live/program/recorder.h"
#include "traces/import/import_record.h"
#include "cli/guard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    METHOD,
    RULE,
    PROMPTS,
    REQUESTS,
    MAX_TOKENS,
    OUTPUT,
    DRAFTS,
    RANK_DEPTH,
    LOGPROBS,
    ROLLOUTS,
    CANDIDATES,
    MARGINALS,
};
static const double SHARD_S = 60;
// clang-format off
static const dsc_option options[] = {
    {.name = "method", .kind = DSC_OPTION_TEXT, .metavar = "NAME", .help = "drafting method"},
    {.name = "rule", .kind = DSC_OPTION_TEXT, .metavar = "NAME",
     .help = "verification rule (default: as for draftscope live run)"},
    {.name = "prompts", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = LIVE_PROMPTS_HELP},
    {.name = "requests", .kind = DSC_OPTION_INT, .metavar = "N", .initial = "0", .min = 0,
     .max = 1000000000, .help = "number of prompts of the file to record; 0: all"},
    {.name = "max-tokens", .kind = DSC_OPTION_INT, .metavar = "M", .initial = "256", .min = 1,
     .max = 1 << 24,
     .help = "maximum new tokens per request; generation stops earlier at EOS"},
    {.name = "output", .letter = 'o', .kind = DSC_OPTION_TEXT, .metavar = "NAME.dst",
     .help = "write the trace to this folder"},
    {DSC_OPTION_NUM_DRAFTS, .initial = "8", .min = 1,
     .max = DSC_STATISTICS_K_MAX,
     .help = "record acceptance statistics for 1 to K drafts per position, as trace reduce does"},
    {.name = "rank-depth", .kind = DSC_OPTION_INT, .metavar = "D", .initial = "5", .min = 1,
     .max = 1024,
     .help = "number of output tokens after each position whose draft ranks are recorded"},
    {.name = "logprobs", .kind = DSC_OPTION_TEXT, .metavar = "none|top:M|dense", .initial = "none",
     .help = "record the distributions of both models: their M most probable tokens, or all"},
    {.name = "rollouts", .kind = DSC_OPTION_INT, .metavar = "G", .initial = "0", .min = 0,
     .max = 1024,
     .help = "record G greedy tokens of the draft model from each position on, and the target's "
             "argmax along them"},
    {.name = "candidates", .kind = DSC_OPTION_TEXT, .metavar = "S:K[:C]",
     .help = "record the candidates of dynamic-tree with S steps and K children at each position: "
             "all, or the C best; sim then replays it and smaller trees"},
    {.name = "marginals", .kind = DSC_OPTION_TEXT, .metavar = "D:M",
     .help = "record the M most probable tokens of Medusa heads at D offsets after each position; "
             "sim then replays parallel and ddtree"},
    LIVE_OPTIONS_TEXT,
    CLI_OPTION_FORCE,
    CLI_OPTION_SEED,
    CLI_OPTION_PROGRESS,
};
// clang-format on

typedef struct context {
    const cli_call *call;
    live_job job;
    live_record record;
    live_recorder *recorder;
    live_draft_vocabulary drafted;
    cli_progress progress;
    dsc_arena arena; // of the current request
} context;

// --- provenance ----------------------------------------------------------------------------------

static json_t *describe(const context *c, live_side side)
{
    live_identity m;
    if (!live_identify(&m, &c->job.pair, side))
        return NULL;
    const live_weights *w = c->job.pair.weights[side];
    const bool head = live_config_is_head(&w->config);
    json_t *o = json_pack("{s:s, s:b, s:s, s:s}", "architecture", m.architecture, "head", head,
                          "dtype", m.dtype, "device", m.device);
    json_object_set_new(o,
                        m.folder  ? "folder"
                        : m.shape ? "shape"
                                  : "layers",
                        dsc_json_text(m.folder  ? m.folder
                                      : m.shape ? m.shape
                                                : m.layers));
    if (*m.config_sha256)
        json_object_set_new(o, "config_sha256", json_string(m.config_sha256));
    json_object_set_new(o, "weights_sha256", json_string(m.weights_sha256));
    return o;
}

static char *make_provenance(const context *c)
{
    const live_sampling *s = &c->job.pair.sampling;
    char prompts[DSC_SHA256_HEX];
    live_hash_prompts(&c->job.prompts, prompts);
    json_t *o = json_pack(
        "{s:s, s:o, s:s, s:s, s:f, s:I, s:f, s:f, s:I, s:I, s:s}", "version", PACKAGE_VERSION,
        "command", dsc_json_text(cli_command_line()), "method", c->job.config.drafter->name, "rule",
        c->job.rule->name, "temperature", s->temperature, "top_k", (json_int_t)s->top_k, "top_p",
        s->top_p, "distribution_temperature", s->temperature > 0 ? s->temperature : 1, "seed",
        (json_int_t)c->call->seed, "max_tokens", (json_int_t)c->call->value[MAX_TOKENS].integer,
        "prompts_sha256", prompts);
    json_object_set_new(o, "eos", live_ends_json(&c->job));
    if (c->job.stop_texts)
        json_object_set_new(o, "stop", live_stops_json(&c->job));
    for (int side = 0; side < LIVE_SIDES; side++) {
        json_t *model = describe(c, (live_side)side);
        if (model)
            json_object_set_new(o, live_side_names[side], model);
    }
    char *text = o ? dsc_json_dump(o, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(o);
    return text;
}

// --- a request -----------------------------------------------------------------------------------

static int on_step(void *user, const dsc_step_record *step, dsc_error *err)
{
    context *c = user;
    int rc = live_recorder_step(c->recorder, step, err);
    return !rc && cli_signal() ? dsc_fail(err, DSC_EINTERRUPT, "stopped") : rc;
}

static int on_position(void *user)
{
    (void)user;
    return cli_signal();
}

// The request as the writer takes it. The output is copied, because the recorder reuses the
// session.
static int make_input(context *c, const live_prompt *p, dsc_request_input *q, dsc_error *err)
{
    const dsc_model *m = live_session_model(c->job.pair.session[LIVE_TARGET]);
    const dsc_request *r = &p->request;
    int32_t *token;
    dsc_token_view *reference;
    dsc_reference_kind *kind;
    dsc_arena_reset(&c->arena);
    int rc = dsc_arena_new(&c->arena, &token, (size_t)m->length, err);
    if (!rc)
        rc = dsc_arena_new(&c->arena, &reference, (size_t)r->references, err);
    if (!rc)
        rc = dsc_arena_new(&c->arena, &kind, (size_t)r->references, err);
    if (rc)
        return rc;
    if (m->length)
        memcpy(token, m->output, (size_t)m->length * sizeof *token);
    for (int64_t i = 0; i < r->references; i++) {
        reference[i] = dsc_request_reference(r, i);
        kind[i] = (dsc_reference_kind)r->reference_kind[i];
    }
    *q = (dsc_request_input){.id = r->id,
                             .prompt = r->prompt,
                             .output = {token, m->length},
                             .prompt_text = r->prompt_text,
                             .references = r->references,
                             .reference = reference,
                             .reference_text = p->reference_text,
                             .kind = kind};
    return DSC_OK;
}

static int record_request(context *c, size_t i, dsc_error *err)
{
    const live_prompt *prompt = &c->job.prompts.item[i];
    dsc_request_input input;
    dsc_buffer text = {0};
    live_recorder_begin(c->recorder);
    int rc = live_run_request(&c->job.run, &prompt->request, err);
    if (!rc)
        rc = make_input(c, prompt, &input, err);
    if (!rc && c->job.pair.tokenizer)
        rc = dsc_import_decode(c->job.pair.tokenizer, input.output.id, (size_t)input.output.count,
                               &text, err);
    if (!rc) {
        input.output_text = (dsc_text_view){text.data, (int64_t)text.length};
        rc = live_recorder_add(c->recorder, &input, err);
    }
    dsc_buffer_fini(&text);
    return rc && rc != DSC_EINTERRUPT ? live_job_failed(&c->job, i, rc, err) : rc;
}

static int record_all(context *c, dsc_error *err)
{
    const int64_t count = (int64_t)c->job.prompts.count;
    int rc = DSC_OK;
    for (int64_t i = 0; i < count && !rc; i++) {
        rc = record_request(c, (size_t)i, err);
        cli_set_patience(LIVE_PATIENCE_S); // from the first request on there is something to keep
        if (!rc && cli_progress_step(&c->progress, i + 1, count) && i + 1 < count)
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    return rc;
}

// --- the trace -----------------------------------------------------------------------------------

// Says what the vocabulary of an EAGLE-3 head allows on the recorded outputs.
static void print_vocabulary(const live_draft_vocabulary *v)
{
    char bound[160] = "";
    if (!v->in || !v->tokens)
        return;
    if (!v->greedy)
        snprintf(
            bound, sizeof bound,
            ", and to which the target assigns a mean probability of %.2f %%: no lossless rule "
            "accepts more of them at a position",
            100 * live_draft_vocabulary_bound(v));
    fprintf(stderr,
            "draftscope: note: the EAGLE-3 head can draft %" PRId64 " of %" PRId64
            " tokens, which are %.2f %% of the output tokens%s\n",
            v->draft_tokens, v->vocab, 100 * live_draft_vocabulary_coverage(v),
            v->greedy ? ": greedy verification accepts at most these" : bound);
}

// Keeps finished requests, however the run ended, unless they could not be written.
static int finish(context *c, int rc, dsc_error *err)
{
    const int64_t n = live_recorder_requests(c->recorder);
    const int64_t excluded = live_recorder_excluded(c->recorder);
    dsc_error second;
    int late = DSC_OK;
    cli_progress_end(&c->progress);
    if (!rc || (n > 0 && rc != DSC_EIO))
        late = live_recorder_commit(c->recorder, &second);
    if (late) {
        *err = second;
        return late;
    }
    if (excluded)
        fprintf(
            stderr,
            "draftscope: note: %" PRId64
            " output tokens are excluded by the target's distribution (temperature, top-k, top-p); "
            "they are recorded with their probability before truncation\n",
            excluded);
    if (n)
        print_vocabulary(&c->drafted);
    if (rc == DSC_EINTERRUPT && n)
        dsc_fail(err, rc, "interrupted: the first %" PRId64 " requests are in %.500s", n,
                 c->call->out);
    else if (rc == DSC_EINTERRUPT)
        dsc_fail(err, rc, "interrupted: nothing was written");
    return rc;
}

static int open_recorder(context *c, dsc_error *err)
{
    const live_pair *p = &c->job.pair;
    const live_weights *draft = p->weights[LIVE_DRAFT];
    const bool own = draft && draft != p->weights[LIVE_TARGET];
    char *provenance = make_provenance(c);
    live_record *o = &c->record;
    if (!provenance)
        return dsc_fail(err, DSC_ENOMEM, "out of memory for the provenance");
    o->target = p->session[LIVE_TARGET];
    o->draft = own ? p->session[LIVE_DRAFT] : NULL;
    o->middle = p->session[LIVE_MIDDLE];
    o->target_config = &p->weights[LIVE_TARGET]->config;
    o->draft_config = own ? &draft->config : NULL;
    o->tokenizer = p->tokenizer;
    o->ends = &c->job.ends;
    o->sampling = p->sampling;
    o->drafted = &c->drafted;
    live_draft_vocabulary_init(&c->drafted, draft,
                               p->sampling.temperature == 0 || c->job.rule->greedy);
    o->provenance = provenance;
    o->stop = on_position;
    int rc = live_recorder_new(&c->recorder, o, err);
    free(provenance);
    return rc;
}

// --- before the first request --------------------------------------------------------------------

// Parses none, top:M or dense.
static int read_rows(live_record *o, const char *text, dsc_error *err)
{
    static const dsc_option top = {
        .name = "rows top", .kind = DSC_OPTION_INT, .min = 1, .max = 1 << 24};
    o->rows = strcmp(text, "none") == 0    ? DSC_ROWS_NONE
              : strcmp(text, "dense") == 0 ? DSC_ROWS_DENSE
                                           : DSC_ROWS_LISTED;
    if (o->rows != DSC_ROWS_LISTED)
        return DSC_OK;
    if (strncmp(text, "top:", 4) != 0)
        return dsc_fail(err, DSC_EUSAGE, "--logprobs: none, top:M or dense expected, not '%.100s'",
                        text);
    return dsc_option_single(&top, text + 4, &o->top, err);
}

static int read_record(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    const dsc_option_value *v = call->value;
    live_record *o = &c->record;
    if (!v[PROMPTS].text)
        return dsc_fail(err, DSC_EUSAGE, "--prompts FILE is required");
    o->path = call->out;
    o->force = call->force;
    o->K = (int)v[DRAFTS].integer;
    o->rank_depth = (int32_t)v[RANK_DEPTH].integer;
    o->rollout = (int32_t)v[ROLLOUTS].integer;
    o->parallel = call->method[0]->parallel;
    o->shard_s = SHARD_S;
    o->limit = v[MAX_TOKENS].integer;
    int rc =
        v[CANDIDATES].text ? live_record_candidates(&o->trees, v[CANDIDATES].text, err) : DSC_OK;
    if (!rc && v[MARGINALS].text)
        rc = live_record_marginals(&o->trees, v[MARGINALS].text, err);
    o->nodes = live_record_nodes(o);
    return rc ? rc : read_rows(o, v[LOGPROBS].text, err);
}

// Refuses columns of a draft model where none is recorded.
static int check_columns(const dsc_option_value *value, dsc_error *err)
{
    static const int of_draft[] = {DRAFTS, RANK_DEPTH, ROLLOUTS, CANDIDATES, MARGINALS};
    for (size_t i = 0; i < sizeof of_draft / sizeof *of_draft; i++)
        if (value[of_draft[i]].given)
            return dsc_fail(err, DSC_EUSAGE, "--%s requires a draft model to record: --draft DIR",
                            options[of_draft[i]].name);
    return DSC_OK;
}

// Runs the cheap checks first, then loads the weights.
static int prepare(context *c, dsc_error *err)
{
    const cli_call *call = c->call;
    const dsc_option_value *v = call->value;
    live_job *job = &c->job;
    live_want want = live_want_of(call->method[0]);
    want.draft |= !want.copy && live_pair_has_draft(call->more);
    int rc = read_record(c, err);
    if (!rc && !want.draft)
        rc = check_columns(v, err);
    job->pair.least_nodes = c->record.nodes;
    if (!rc)
        rc = live_job_begin(job, call, err);
    if (!rc)
        rc = live_run_init(&job->run, &job->pair, &job->config, job->rule, call->seed,
                           v[MAX_TOKENS].integer, false, NULL, err);
    job->run.step = on_step;
    job->run.user = c;
    if (!rc)
        rc = live_job_read(job, &want, err);
    if (!rc)
        rc = live_prompts_read(&job->prompts, v[PROMPTS].text, err);
    const live_record *o = &c->record;
    if (!rc) // rollouts and candidates continue after the text
        rc = live_job_open(job, o->rollout > o->trees.steps ? o->rollout : o->trees.steps, err);
    return rc ? rc : open_recorder(c, err);
}

static void context_fini(context *c)
{
    live_recorder_free(c->recorder);
    live_job_fini(&c->job);
    dsc_arena_fini(&c->arena);
}

static int execute(const cli_call *call, dsc_error *err)
{
    context c = {.call = call};
    int rc = prepare(&c, err);
    if (!rc) {
        cli_progress_init(&c.progress, call->progress, "requests");
        rc = finish(&c, record_all(&c, err), err);
    }
    context_fini(&c);
    return rc;
}

const cli_command live_cmd_record = {
    .name = "record",
    .summary = "record a run with both models' token probabilities",
    CLI_OPTIONS(options),
    .more = {"Models", live_pair_options, LIVE_PAIR_OPTIONS},
    .methods = CLI_METHOD_ONE,
    .usage = "live record --target DIR [--draft DIR] --method NAME --prompts FILE -o NAME.dst "
             "[OPTIONS]",
    .about = "Records a run of real models together with both models' token probabilities: "
             "prompts, outputs, and steps with their times. Later experiments replay the recording "
             "and need no model. With --draft the draft model is recorded even if the method does "
             "not use it. Finished requests are kept when it is interrupted.",
    .what = "no argument",
    .repeated = live_repeated,
    .needs_out = "-o NAME.dst is required",
    .execute = execute,
};
