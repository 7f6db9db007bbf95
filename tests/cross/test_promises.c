// SPDX-License-Identifier: Apache-2.0
// Every method with every rule on every kind of trace and of synthetic models: what docs/data.md
// and docs/methods.md promise is what dsc_run_choose answers, and so do a run, a sweep, a search
// and a served source. What is accepted runs; a refusal is one line.
#include "tests/unit/model_fixture.h"

#include "sim/model/synth.h"
#include "sim/model/workload.h"
#include "sim/reduce/reduce.h"
#include "sim/serve/serve_source.h"
#include "sim/sweep/sweep.h"
#include "sim/tune/tune.h"
#include "traces/import/import.h"

#include <ctype.h>
#include <stdarg.h>

// --- one trace of each kind, one pair of models of each kind -------------------------------------

enum { TEXT, IDS, STEPS, LOGPROBS, DISTRIBUTIONS, TOP, GREEDY, REDUCED, LENGTHS, TRACES };
static const char *const trace_name[TRACES] = {
    "text", "ids", "steps", "logprobs", "distributions", "top", "greedy", "reduced", "lengths"};
static dsc_trace *traces[TRACES];

enum { MARKOV, IID, NGRAM, MODELS };
static const char *const model_name[MODELS] = {"markov", "iid", "ngram"};
static dsc_language *targets[MODELS], *drafts[MODELS];

static void import(int kind, const char *file, const char *tokenizer)
{
    dsc_error err;
    dsc_tokenizer *t = NULL;
    const dsc_import_options o = {
        .vocab_size = tokenizer ? 0 : 258, .version = "test", .command = "test", .threads = 1};
    if (tokenizer)
        assert_ok(dsc_tokenizer_load(&t, tokenizer, &err), err);
    assert_ok(dsc_import(&file, 1, t, in_scratch(trace_name[kind]), &o, NULL, &err), err);
    dsc_tokenizer_free(t);
}

// Three requests of RAG, as bytes and as the ids of a tokenizer.
static void import_requests(void)
{
    char rag[512], tokenizer[512], lines[400], *line = NULL;
    size_t capacity = 0;
    FILE *in = fopen(source_path("traces/sample/rag.jsonl", rag, sizeof rag), "r");
    snprintf(lines, sizeof lines, "%s", in_scratch("three.jsonl"));
    FILE *out = fopen(lines, "w");
    assert_non_null(in);
    assert_non_null(out);
    for (int i = 0; i < 3; i++) {
        assert_true(getline(&line, &capacity, in) > 0);
        fputs(line, out);
    }
    fclose(in);
    assert_int_equal(fclose(out), 0);
    free(line);
    source_path("traces/sample/tokenizer.json", tokenizer, sizeof tokenizer);
    import(TEXT, lines, "bytes");
    import(IDS, lines, tokenizer);
}

static void synthesize(int kind, int rows, double temperature)
{
    dsc_error err;
    char provenance[40];
    snprintf(provenance, sizeof provenance, "{\"temperature\": %.0f}", temperature);
    const dsc_synth o = {.load = {.target = targets[MARKOV],
                                  .draft = drafts[MARKOV],
                                  .temperature = temperature,
                                  .requests = 3,
                                  .prompt_tokens = 4,
                                  .max_tokens = 24},
                         .rows = rows,
                         .provenance = provenance};
    assert_ok(dsc_synthesize(&o, in_scratch(trace_name[kind]), &err), err);
}

static void open_trace(int kind)
{
    dsc_error err;
    assert_ok(dsc_trace_open(&traces[kind], in_scratch(trace_name[kind]), &err), err);
}

static int make_all(void **state)
{
    dsc_error err;
    char path[512], ngram[512];
    const dsc_reduce o = {.K = 8, .rank_depth = 8, .threads = 1};
    if (make_scratch(state))
        return -1;
    import_requests();
    import(STEPS, source_path("tests/data/import/specbench.jsonl", path, sizeof path), "bytes");
    import(LENGTHS, source_path("tests/data/import/acclen.jsonl", path, sizeof path), NULL);
    snprintf(ngram, sizeof ngram, "ngram:%s,hold=2", in_scratch(trace_name[TEXT]));
    const char *const spec[MODELS] = {"markov:8", "iid:.5", ngram};
    for (int m = 0; m < MODELS; m++) {
        targets[m] = make(spec[m], DSC_SIDE_TARGET);
        drafts[m] = make(spec[m], DSC_SIDE_DRAFT);
    }
    synthesize(LOGPROBS, 0, 1);
    synthesize(DISTRIBUTIONS, 8, 1);
    synthesize(TOP, 4, 1);
    synthesize(GREEDY, 8, 0);
    open_trace(DISTRIBUTIONS);
    assert_ok(dsc_reduce_trace(traces[DISTRIBUTIONS], in_scratch(trace_name[REDUCED]), &o, &err),
              err);
    for (int kind = 0; kind < TRACES; kind++)
        if (!traces[kind])
            open_trace(kind);
    return 0;
}

static int remove_all(void **state)
{
    for (int kind = 0; kind < TRACES; kind++)
        dsc_trace_close(traces[kind]);
    for (int m = 0; m < MODELS; m++) {
        dsc_language_free(targets[m]);
        dsc_language_free(drafts[m]);
    }
    return remove_scratch(state);
}

// --- what is asked -------------------------------------------------------------------------------

typedef struct cell {
    const dsc_drafter_type *method;
    const dsc_verifier_type *rule;
    const char *where; // the kind of trace or of models
    const dsc_trace *trace;
    const dsc_workload *load; // NULL: a trace
    // What only the run finds, because it is in the data and not in the list of columns; or NULL.
    const char *lacks;
    int status; // of that error
} cell;

typedef struct answer {
    int status;
    dsc_engine_choice choice;
    dsc_error err;
} answer;

static int failures; // of one test

static void wrong(const cell *x, const char *format, ...)
{
    char text[2500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s with %s on %s: %s\n", x->method->name, x->rule->name, x->where, text);
    failures++;
}

static cell on_trace(const dsc_drafter_type *method, const dsc_verifier_type *rule, int kind)
{
    const bool several = method == &dsc_drafter_spectr || method == &dsc_drafter_spectr_tree;
    return (cell){.method = method,
                  .rule = rule,
                  .where = trace_name[kind],
                  .trace = traces[kind],
                  .lacks = kind == TOP && several && !rule->greedy ? "does not list all of its mass"
                                                                   : NULL,
                  .status = DSC_EINPUT};
}

// As many models as the method needs, or `models` of target, draft, middle.
static dsc_workload workload(const dsc_drafter_type *method, int kind, int models)
{
    const bool draft = models ? models > 1 : method->needs_draft,
               middle = models ? models > 2 : method->needs_middle;
    return (dsc_workload){.target = targets[kind],
                          .draft = draft ? drafts[kind] : NULL,
                          .middle = middle ? drafts[kind] : NULL,
                          .temperature = 1,
                          .requests = 2,
                          .prompt_tokens = 8,
                          .max_tokens = 8};
}

static cell on_models(const dsc_drafter_type *method, const dsc_verifier_type *rule, int kind,
                      const dsc_workload *load)
{
    const bool at_once = method == &dsc_drafter_parallel || method == &dsc_drafter_ddtree;
    return (cell){.method = method,
                  .rule = rule,
                  .where = model_name[kind],
                  .load = load,
                  .lacks = at_once && kind == NGRAM ? "has no exact marginals" : NULL,
                  .status = DSC_EUSAGE};
}

static dsc_run_options run_options(const cell *x)
{
    return (dsc_run_options){.rule = x->rule, .workload = x->load, .threads = 1};
}

static answer choose(const cell *x, const dsc_config *config)
{
    answer a = {0};
    const dsc_run_options o = run_options(x);
    a.status = dsc_run_choose(x->trace, config, 1, &o, &a.choice, &a.err);
    const char *message = a.err.message;
    if (a.status && (a.status != DSC_EUSAGE || !*message || strchr(message, '\n')))
        wrong(x, "not a refusal in one line: %d, '%s'", a.status, message);
    return a;
}

static answer choose_defaults(const cell *x)
{
    dsc_config config;
    answer a;
    dsc_config_init(&config, x->method);
    assert_ok(dsc_config_prepare(&config, &a.err), a.err);
    a = choose(x, &config);
    dsc_config_fini(&config);
    return a;
}

// Both run, or both refuse with the same words, unless only a run finds what is lacking.
static void compare(const cell *x, const char *who, int rc, const dsc_error *err, const answer *a)
{
    const char *said = rc ? err->message : "", *chosen = a->status ? a->err.message : "";
    if (!a->status && x->lacks) {
        if (rc != x->status || !strstr(said, x->lacks))
            wrong(x, "%s: %d (%s), not '%s'", who, rc, said, x->lacks);
    } else if (rc != a->status || strcmp(said, chosen) != 0) {
        wrong(x, "%s: %d (%s), the chooser: %d (%s)", who, rc, said, a->status, chosen);
    }
}

static void check_run(const cell *x, const dsc_config *config, const answer *a)
{
    dsc_error err;
    dsc_results r;
    const dsc_run_options o = run_options(x);
    const int64_t requests = x->load ? x->load->requests : dsc_trace_get_info(x->trace)->requests;
    const int rc = dsc_run(x->trace, config, 1, &o, &r, &err);
    compare(x, "dsc_run", rc, &err, a);
    if (!rc && (r.counts[0].requests != requests || r.counts[0].output_tokens <= 0))
        wrong(x, "%d of %d requests, %d tokens", (int)r.counts[0].requests, (int)requests,
              (int)r.counts[0].output_tokens);
    dsc_results_fini(&r);
}

static void check_sweep(const cell *x, const answer *a)
{
    answer s = {0};
    dsc_grid grid;
    dsc_option_value value[DSC_MAX_PARAMETERS] = {0};
    const dsc_sweep_options o = {.run = run_options(x)};
    for (size_t i = 0; i < x->method->option_count; i++)
        value[i].text = x->method->option[i].initial;
    assert_ok(dsc_grid_init(&grid, x->method, x->rule, value, &s.err), s.err);
    s.status = dsc_sweep_choose(x->trace, &grid, &o, &s.choice, &s.err);
    if (s.status != a->status || (s.status && strcmp(s.err.message, a->err.message) != 0) ||
        (!s.status &&
         (s.choice.engine != a->choice.engine || strcmp(s.choice.why, a->choice.why) != 0)))
        wrong(x, "dsc_sweep_choose: %d (%s), the chooser: %d (%s)", s.status,
              s.status ? s.err.message : s.choice.why, a->status,
              a->status ? a->err.message : a->choice.why);
    dsc_grid_fini(&grid);
}

static void check_tune(const cell *x, const answer *a)
{
    static const dsc_cost unit = {.type = &dsc_cost_unit, .fixed_s = 1};
    static const dsc_tune_price price = {1, &unit};
    dsc_error err;
    dsc_tune tune;
    dsc_space space;
    const dsc_option_uses defaults = {0};
    const dsc_run_options run = run_options(x);
    const dsc_tune_options o = {.price = &price,
                                .prices = 1,
                                .resamples = 100,
                                .requests = x->load ? x->load->requests
                                                    : dsc_trace_get_info(x->trace)->requests};
    assert_ok(dsc_space_init(&space, x->method, &defaults, NULL, 0, &err), err);
    assert_ok(dsc_tune_init(&tune, &o, &err), err);
    const int rc = dsc_tune_run(&tune, x->trace, &space, &run, &err);
    compare(x, "dsc_tune_run", rc, &err, a);
    if (!rc && tune.trials != 1)
        wrong(x, "dsc_tune_run: %zu trials", tune.trials);
    dsc_tune_fini(&tune);
    dsc_space_fini(&space);
}

// What runs is served, and what is refused is not, but for two reasons: a chain that the text
// determines is served under any lossless rule, as all accept it while it agrees with the output;
// and a rule that does not decide by position (gbv of several drafts) is not served from a trace.
static void check_serve(const cell *x, const dsc_config *config, const answer *a)
{
    dsc_error err;
    dsc_serve_source source;
    const int rc = dsc_serve_source_models(&source, x->trace, config, x->rule, x->load, 0, 1, &err);
    const bool sampled = x->trace && !x->rule->greedy,
               chain = sampled && x->rule->lossless && x->method->match_lengths,
               paths = x->method == &dsc_drafter_spectr && x->rule == &dsc_verifier_gbv,
               unserved = sampled && rc == DSC_EUSAGE && (a->status || paths) &&
                          strstr(err.message, "cannot be served from a trace");
    if (!(chain && !rc) && !unserved)
        compare(x, "dsc_serve_source_models", rc, &err, a);
    if (!rc && !source.count)
        wrong(x, "dsc_serve_source_models: no requests");
    dsc_serve_source_fini(&source);
}

// Asks all of them. Returns the chooser's answer.
static int ask(const cell *x)
{
    dsc_config config;
    dsc_error err;
    dsc_config_init(&config, x->method);
    assert_ok(dsc_config_prepare(&config, &err), err);
    const answer a = choose(x, &config);
    check_run(x, &config, &a);
    check_sweep(x, &a);
    check_tune(x, &a);
    check_serve(x, &config, &a);
    dsc_config_fini(&config);
    return a.status;
}

// --- every pair ----------------------------------------------------------------------------------

static const char *const rule_order[] = {"greedy",    "rejection", "block",         "kseq",
                                         "otm",       "specinfer", "specinfer-wor", "gbv",
                                         "traversal", "ensemble",  "relaxed",       "typical"};
enum { RULES = sizeof rule_order / sizeof *rule_order };

// What a method needs with each of these rules, to run with its default options.
static const struct {
    const char *method, *needs; // [RULES] t: any trace; p: log-probabilities; s: distributions or
                                // statistics; d: distributions; r: ranks as deep as the draft;
                                // m: models; -: nothing suffices. Models suffice for all of these,
                                // but not for o, the recorded output of any trace
} known[] = {
    // clang-format off
    {"none", "ttt--t--tmmm"},
    {"oracle", "tmmmmm-mmmmm"},
    {"llma", "ttt--t--tmmm"},
    {"ngram", "ttt--t--tmmm"},
    {"ngram-tree", "t----m--m--m"},
    {"suffix", "too--t--t--m"},
    {"draft-model", "pppppp-ppmmm"},
    {"sa-draft-model", "pmm--m--mmmm"},
    {"hf-dynamic", "pmmmmm-mmmmm"},
    {"threshold", "mmmmmm-mmmmm"},
    {"adaptive", "pmmmmm-mmmmm"},
    {"adaptive-ngram", "tmm--m--mmmm"},
    {"adaptive-suffix", "tmm--m--mmmm"},
    {"adaptive-recorded", "------------"},
    {"spectr", "p--sss-dm--m"},
    {"spectr-tree", "p--sss--m--m"},
    {"tree", "r----mm-m--m"},
    {"dynamic-tree", "m----m--m--m"},
    {"sequoia", "r----mm-m--m"},
    {"cascade", "mmmmmm-mmmmm"},
    {"lookahead", "m----m--m--m"},
    {"ouroboros", "m----m--m--m"},
    {"pearl", "pmmmmm-mmmmm"},
    {"parallel", "mmmmmm-mmmmm"},
    {"ddtree", "m----m--m--m"},
    {"recorded", "------------"},
    {"recorded-steps", "------------"},
    // clang-format on
};

static bool suffices(int kind, char need)
{
    static const char *const has[TRACES] = {"to",    "to",    "to",    "top", "topsd",
                                            "topsd", "topsd", "topsr", "to"};
    return strchr(has[kind], need) != NULL;
}

static const char *needs_of(const dsc_drafter_type *method)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].method, method->name))
            return known[i].needs;
    fail_msg("method %s is not in the list of this test", method->name);
    return NULL;
}

static void expect(const cell *x, bool accepted)
{
    const int status = ask(x);
    if (status != (accepted ? DSC_OK : DSC_EUSAGE))
        wrong(x, "is %s", status ? "refused" : "accepted");
}

static void every_pair_on_every_trace(void **state)
{
    (void)state;
    failures = 0;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (int r = 0; r < RULES; r++)
            for (int kind = 0; kind < TRACES; kind++) {
                const cell x = on_trace(*d, dsc_verifiers()[r], kind);
                expect(&x, suffices(kind, needs_of(*d)[r]));
            }
    assert_int_equal(failures, 0);
}

static void every_pair_on_every_model(void **state)
{
    (void)state;
    failures = 0;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++)
        for (int r = 0; r < RULES; r++)
            for (int kind = 0; kind < MODELS; kind++) {
                const dsc_workload load = workload(*d, kind, 0);
                const cell x = on_models(*d, dsc_verifiers()[r], kind, &load);
                expect(&x, !strchr("-o", needs_of(*d)[r]));
            }
    assert_int_equal(failures, 0);
}

static void the_list_of_rules_is_complete(void **state)
{
    (void)state;
    for (int r = 0; r < RULES; r++) {
        assert_non_null(dsc_verifiers()[r]);
        assert_string_equal(dsc_verifiers()[r]->name, rule_order[r]);
    }
    assert_null(dsc_verifiers()[RULES]);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(strlen(known[i].needs), RULES);
}

// --- tables of the documentation -----------------------------------------------------------------

enum { ROWS = 40, COLUMNS = 6 };
typedef struct page {
    char *cell[ROWS][COLUMNS];
    int rows;
    char text[200000];
} page;

static char *trim(char *s)
{
    s += strspn(s, " ");
    for (size_t n = strlen(s); n && s[n - 1] == ' '; n--)
        s[n - 1] = '\0';
    return s;
}

// The rows of the table whose head begins with `head`.
static void read_table(page *p, const char *file, const char *head)
{
    char path[512];
    FILE *f = fopen(source_path(file, path, sizeof path), "r");
    assert_non_null(f);
    p->text[fread(p->text, 1, sizeof p->text - 1, f)] = '\0';
    assert_true(feof(f));
    fclose(f);
    p->rows = 0;
    char *at = strstr(p->text, head), *line;
    assert_non_null(at);
    for (int i = 0; (line = strsep(&at, "\n")) && *line == '|'; i++) {
        if (i < 2) // names of the columns and the line below them
            continue;
        assert_true(p->rows < ROWS);
        line++;
        for (int c = 0; c < COLUMNS; c++) {
            char *text = strsep(&line, "|");
            p->cell[p->rows][c] = text ? trim(text) : NULL;
        }
        p->rows++;
    }
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

// Whether a list contains the name: where it begins, or NULL.
static const char *find_name(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at++)
        if ((at == list || !in_name(at[-1])) && !in_name(at[n]))
            return at;
    return NULL;
}

static bool has_pair(const page *p, int row, const char *method, const char *rule)
{
    return find_name(p->cell[row][0], method) && find_name(p->cell[row][1], rule);
}

// "all": every rule; "all others": those that no other row of the method names.
static bool applies(const page *p, int row, const char *method, const char *rule)
{
    const char *rules = p->cell[row][1];
    bool named = false;
    if (!find_name(p->cell[row][0], method))
        return false;
    for (int i = 0; i < p->rows; i++)
        named |= has_pair(p, i, method, rule);
    return !strcmp(rules, "all") ||
           (!strcmp(rules, "all others") ? !named : has_pair(p, row, method, rule));
}

static int yes, no; // promises

// One promise: of the table's column for a kind of trace.
static void keep_promise(const dsc_drafter_type *method, const dsc_verifier_type *rule, int kind,
                         const char *text)
{
    const bool ranks = strstr(text, "from ranks as deep"), // which trace reduce computes
        exact = !strncmp(text, "exact", 5);
    if (!ranks && !exact && strncmp(text, "no", 2) != 0)
        return;
    const cell x = on_trace(method, rule, ranks ? REDUCED : kind);
    const answer a = choose_defaults(&x);
    *(exact ? &yes : &no) += 1;
    if (a.status != (exact ? DSC_OK : DSC_EUSAGE))
        wrong(&x, "docs/data.md: '%s', the chooser: %s", text, a.status ? a.err.message : "yes");
}

static void promises_of_data_md(void **state)
{
    static const int column[][2] = {
        {TEXT, 2}, {IDS, 2}, {STEPS, 3}, {LOGPROBS, 4}, {DISTRIBUTIONS, 5}};
    page *p = *state;
    read_table(p, "docs/data.md", "| method | rule |");
    failures = yes = no = 0;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        bool found = false;
        for (int row = 0; row < p->rows; row++) {
            assert_non_null(p->cell[row][COLUMNS - 1]);
            found |= find_name(p->cell[row][0], (*d)->name) != NULL;
            for (int r = 0; r < RULES; r++)
                for (size_t c = 0; c < sizeof column / sizeof *column; c++)
                    if (applies(p, row, (*d)->name, rule_order[r]))
                        keep_promise(*d, dsc_verifiers()[r], column[c][0],
                                     p->cell[row][column[c][1]]);
        }
        if (!found)
            fail_msg("the table of docs/data.md has no row of method %s", (*d)->name);
    }
    assert_int_equal(failures, 0);
    assert_true(yes > 20);
    assert_true(no > 60);
}

// The number of models beside the target that docs/methods.md says, of the item of a list that has
// one for each method, or one for all.
static int models_of(const char *methods, const char *list, const char *method)
{
    const char *at = find_name(methods, method);
    for (const char *c = methods; c < at && strchr(list, ','); c++)
        if (*c == ',')
            list = strchr(list, ',') + 2;
    return !strncmp(list, "no", 2) ? 0 : !strncmp(list, "two", 3) ? 2 : 1;
}

// A method runs with the models that the page says, and is refused with fewer.
static void models_of_methods_md(void **state)
{
    page *p = *state;
    int refused = 0;
    read_table(p, "docs/methods.md", "| method | draft model |");
    failures = 0;
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        int row = 0;
        while (row < p->rows && !find_name(p->cell[row][0], (*d)->name))
            row++;
        assert_true(row < p->rows);
        const int models = models_of(p->cell[row][0], p->cell[row][1], (*d)->name);
        for (int r = 0; r < RULES; r++)
            for (int there = 0; there <= models; there++) {
                const dsc_workload load = workload(*d, MARKOV, 1 + there);
                const cell x = on_models(*d, dsc_verifiers()[r], MARKOV, &load);
                expect(&x, there == models && !strchr("-o", needs_of(*d)[r]));
                refused += there < models;
            }
    }
    assert_int_equal(failures, 0);
    assert_true(refused > 60);
}

// --- methods that have no default for what they replay -------------------------------------------

static const struct {
    const dsc_drafter_type *method;
    const char *option[2], *value[2];
    int kind;          // the trace that has what the method replays
    const char *rules; // [RULES] +: with this rule
} replayed[] = {
    {&dsc_drafter_recorded, {"drafter"}, {"eagle"}, LENGTHS, "+++--+--+---"},
    {&dsc_drafter_adaptive_recorded,
     {"base-options", "candidate-steps"},
     {"drafter=eagle", "1/3/5"},
     LENGTHS,
     "+-----------"},
    {&dsc_drafter_recorded_steps, {"num-speculative-tokens"}, {"4"}, STEPS, "+++--+--+---"}};

static void recordings_are_replayed_where_they_are(void **state)
{
    (void)state;
    failures = 0;
    for (size_t i = 0; i < sizeof replayed / sizeof *replayed; i++) {
        dsc_config config;
        dsc_error err;
        dsc_config_init(&config, replayed[i].method);
        for (int o = 0; o < 2 && replayed[i].option[o]; o++)
            assert_ok(dsc_config_set(&config, replayed[i].option[o], replayed[i].value[o], &err),
                      err);
        assert_ok(dsc_config_prepare(&config, &err), err);
        for (int r = 0; r < RULES; r++)
            for (int kind = 0; kind < TRACES; kind++) {
                const cell x = on_trace(replayed[i].method, dsc_verifiers()[r], kind);
                const answer a = choose(&x, &config);
                if (!a.status != (kind == replayed[i].kind && replayed[i].rules[r] == '+'))
                    wrong(&x, "%s", a.status ? a.err.message : "accepted");
                check_run(&x, &config, &a);
                check_serve(&x, &config, &a);
            }
        dsc_config_fini(&config);
    }
    assert_int_equal(failures, 0);
}

static int make_page(void **state)
{
    return (*state = malloc(sizeof(page))) ? 0 : -1;
}

static int free_page(void **state)
{
    free(*state);
    return 0;
}

SUITE(promises)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_of_rules_is_complete),
        cmocka_unit_test(every_pair_on_every_trace),
        cmocka_unit_test(every_pair_on_every_model),
        cmocka_unit_test_setup_teardown(promises_of_data_md, make_page, free_page),
        cmocka_unit_test_setup_teardown(models_of_methods_md, make_page, free_page),
        cmocka_unit_test(recordings_are_replayed_where_they_are),
    };
    return cmocka_run_group_tests_name("promises", tests, make_all, remove_all);
}
