// SPDX-License-Identifier: Apache-2.0
// Counts of every drafting method against golden.tsv, which independent programs wrote (README.md
// there), and LLMA's counts against the published figures of its authors' development set, which is
// skipped when that file is not at hand.
#include "tests/scratch.h"

#include "base/option.h"
#include "base/table.h"
#include "sim/model/model_spec.h"
#include "sim/model/workload.h"
#include "sim/run/run.h"
#include "traces/import/import.h"

#include <string.h>

// The columns of golden.tsv; the counts begin at REQUESTS.
enum {
    METHOD,
    OPTIONS,
    TRACE,
    TARGET,
    DRAFT,
    MIDDLE,
    PROMPT_TOKENS,
    MAX_TOKENS,
    REQUESTS,
    OUTPUT_TOKENS,
    TARGET_CALLS,
    NUM_DRAFTS_STARTED,
    NUM_DRAFTS,
    NUM_DRAFT_TOKENS,
    NUM_ACCEPTED_TOKENS,
    DRAFT_CALLS,
    DRAFT_CALL_TOKENS,
    TARGET_CALL_TOKENS,
    EXTRA,
    DRAFTS,
    COLUMNS
};

// --- a configuration as text ---------------------------------------------------------------------

// Sets *config from "name=value name=value"; `room` holds the words as long as the configuration.
static void configure(dsc_config *config, const char *method, const char *options, char *room,
                      size_t size)
{
    dsc_error e;
    dsc_config_init(config, dsc_drafter_find(method, &e));
    assert_true(strlen(options) < size);
    strcpy(room, strcmp(options, "-") ? options : "");
    for (char *name = strtok(room, "="); name; name = strtok(NULL, "="))
        assert_ok(dsc_config_set(config, name, strtok(NULL, " "), &e), e);
    assert_ok(dsc_config_prepare(config, &e), e);
}

// --- traces and models
// -----------------------------------------------------------------------------

static dsc_trace *import(const char *file, const char *tokenizer_file, const char *semantics,
                         const char *name)
{
    dsc_error e;
    dsc_tokenizer *tokenizer;
    dsc_trace *trace;
    char path[512];
    dsc_import_options o = {
        .semantics = semantics, .version = "test", .command = "test", .force = true};
    snprintf(path, sizeof path, "%s/%s.dst", scratch, name);
    assert_ok(dsc_tokenizer_load(&tokenizer, tokenizer_file, &e), e);
    assert_ok(dsc_import(&file, 1, tokenizer, path, &o, NULL, &e), e);
    dsc_tokenizer_free(tokenizer);
    assert_ok(dsc_trace_open(&trace, path, &e), e);
    assert_ok(dsc_trace_verify(trace, &e), e);
    return trace;
}

static const struct {
    const char *name, *file;
} input[] = {
    {"rag", "traces/sample/rag.jsonl"},          {"cache", "traces/sample/cache.jsonl"},
    {"edits", "traces/sample/edits.jsonl"},      {"edge", "tests/golden/edge.jsonl"},
    {"few", "tests/golden/few.jsonl"},           {"past_eos", "tests/golden/past_eos.jsonl"},
    {"recorded", "tests/golden/recorded.jsonl"}, {"logged", "tests/golden/logged.jsonl"}};
enum { INPUTS = sizeof input / sizeof *input, MODELS = 32 };

// The data that rows share: the traces, and each model that a row names.
typedef struct world {
    dsc_trace *trace[INPUTS];
    struct {
        char spec[128];
        dsc_language *language;
    } model[MODELS];
    size_t models;
} world;

static dsc_trace *find_trace(const world *w, const char *name)
{
    size_t i = 0;
    if (strcmp(name, "-") == 0)
        return NULL;
    while (i < INPUTS && strcmp(input[i].name, name))
        i++;
    assert_true(i < INPUTS);
    return w->trace[i];
}

// The model of a specification such as "ngram:rag,order=3", which names a trace; "-": none.
static const dsc_language *find_model(world *w, const char *spec, dsc_model_side side)
{
    dsc_error e;
    char full[256];
    size_t i = 0, name = strcspn(spec, ":") + 1, trace = strcspn(spec, ",");
    if (strcmp(spec, "-") == 0)
        return NULL;
    while (i < w->models && strcmp(w->model[i].spec, spec))
        i++;
    if (i == w->models) {
        assert_true(i < MODELS);
        snprintf(full, sizeof full, "%.*s%s/%.*s.dst%s", (int)name, spec, scratch,
                 (int)(trace - name), spec + name, spec + trace);
        snprintf(w->model[i].spec, sizeof w->model[i].spec, "%s", spec);
        assert_ok(dsc_language_make(&w->model[i].language, full, side, NULL, &e), e);
        w->models++;
    }
    return w->model[i].language;
}

static world *open_world(void)
{
    static world w;
    char file[512], tokenizer[512];
    source_path("traces/sample/tokenizer.json", tokenizer, sizeof tokenizer);
    for (size_t i = 0; i < INPUTS; i++)
        w.trace[i] = import(source_path(input[i].file, file, sizeof file), tokenizer, "paper",
                            input[i].name);
    return &w;
}

static void close_world(world *w)
{
    for (size_t i = 0; i < INPUTS; i++)
        dsc_trace_close(w->trace[i]);
    for (size_t i = 0; i < w->models; i++)
        dsc_language_free(w->model[i].language);
}

// --- drafts --------------------------------------------------------------------------------------

// The method of a row, and the sum of the hashes of its drafts' nodes (nodes() of counts.py).
static const dsc_drafter_type *watched;
static _Atomic uint64_t drafts;

static uint64_t mix(uint64_t h, int64_t x)
{
    h = (h ^ (uint64_t)(x + 1)) * 0x9E3779B97F4A7C15;
    return h ^ h >> 32;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Proposes as the method does, and adds the different paths of the draft to the sum.
static int watch(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                 dsc_error *err)
{
    const int rc = watched->propose(state, output, length, draft, err);
    uint64_t *hash = rc || !draft->proposed ? NULL : calloc(draft->proposed, sizeof *hash);
    for (size_t i = 0; hash && i < draft->proposed; i++)
        hash[i] =
            mix(draft->parent[i] < 0 ? mix(0, length) : hash[draft->parent[i]], draft->token[i]);
    if (hash)
        qsort(hash, draft->proposed, sizeof *hash, ascending);
    for (size_t i = 0; hash && i < draft->proposed; i++)
        drafts += i && hash[i] == hash[i - 1] ? 0 : hash[i];
    free(hash);
    return rc;
}

// --- runs ----------------------------------------------------------------------------------------

// Runs one configuration with greedy verification, and sets `drafts`. Drafts that need no model are
// also replayed without the loop, with the same counts.
static dsc_counts run(const dsc_trace *trace, const dsc_config *config, const dsc_workload *models)
{
    dsc_error e;
    dsc_results a, b;
    dsc_run_options o = {.engine = DSC_ENGINE_LOOP, .workload = models, .threads = 2};
    dsc_config seen = *config;
    dsc_drafter_type watching = *config->drafter;
    watched = config->drafter;
    watching.propose = watch;
    drafts = 0;
    if (!strstr(watched->name, "recorded")) // whose drafts are lengths without tokens
        seen.drafter = &watching;
    assert_ok(dsc_run(trace, &seen, 1, &o, &a, &e), e);
    dsc_counts c = a.counts[0];
    const dsc_drafter_type *d = config->drafter;
    if (!models && d->match_lengths && (!d->is_chain || d->is_chain(config))) {
        o.engine = DSC_ENGINE_EXPECT;
        assert_ok(dsc_run(trace, config, 1, &o, &b, &e), e);
        assert_memory_equal(&c, b.counts, DSC_COUNTS_TOTALS * sizeof(int64_t));
        assert_int_equal(c.histogram_length, b.counts->histogram_length);
        assert_memory_equal(c.histogram, b.counts->histogram,
                            (size_t)c.histogram_length * sizeof(int64_t));
        dsc_results_fini(&b);
    }
    dsc_results_fini(&a);
    c.histogram = NULL; // gone with the results
    return c;
}

// Returns the number of counts of a row that differ, and prints them.
static int compare_row(world *w, const dsc_table *golden, size_t row)
{
    const dsc_cell *cell = dsc_table_at(golden, row, 0);
    dsc_config config;
    char words[512];
    int wrong = 0;
    dsc_workload models = {.target = find_model(w, cell[TARGET].text, DSC_SIDE_TARGET),
                           .draft = find_model(w, cell[DRAFT].text, DSC_SIDE_DRAFT),
                           .middle = find_model(w, cell[MIDDLE].text, DSC_SIDE_DRAFT),
                           .requests = cell[REQUESTS].i,
                           .prompt_tokens = cell[PROMPT_TOKENS].i,
                           .max_tokens = cell[MAX_TOKENS].i};
    configure(&config, cell[METHOD].text, cell[OPTIONS].text, words, sizeof words);
    dsc_counts c = run(find_trace(w, cell[TRACE].text), &config,
                       models.target || models.draft ? &models : NULL);
    const int64_t ours[COLUMNS - REQUESTS] = {c.requests,
                                              c.output_tokens,
                                              c.target_calls,
                                              c.num_drafts_started,
                                              c.num_drafts,
                                              c.num_draft_tokens,
                                              c.num_accepted_tokens,
                                              c.draft_calls,
                                              c.draft_call_tokens,
                                              c.target_call_tokens,
                                              c.extra[0],
                                              drafts % (1u << 31)};
    for (int i = REQUESTS; i < COLUMNS; i++)
        if (ours[i - REQUESTS] != cell[i].i && ++wrong)
            print_error("golden.tsv:%zu: %s %s on %s%s: %s is %lld, golden %lld\n",
                        golden->first_line + row, cell[METHOD].text, cell[OPTIONS].text,
                        cell[TRACE].text, cell[TARGET].text, golden->column[i].name,
                        (long long)ours[i - REQUESTS], (long long)cell[i].i);
    dsc_config_fini(&config);
    return wrong;
}

static void read_golden(dsc_table *golden)
{
    dsc_error e;
    char path[512];
    assert_ok(dsc_table_read(golden, source_path("tests/golden/golden.tsv", path, sizeof path), &e),
              e);
    assert_int_equal(golden->columns, COLUMNS);
}

static void counts_equal_the_independent_programs(void **state)
{
    (void)state;
    dsc_table golden;
    int wrong = 0;
    world *w = open_world();
    read_golden(&golden);
    for (size_t r = 0; r < golden.rows; r++)
        wrong += compare_row(w, &golden, r);
    if (wrong)
        fail_msg("%d counts of %zu rows differ", wrong, golden.rows);
    dsc_table_fini(&golden);
    close_world(w);
}

// A method without golden counts fails here.
static void every_method_has_golden_counts(void **state)
{
    (void)state;
    enum { LEAST = 4 };
    dsc_table golden;
    read_golden(&golden);
    for (const dsc_drafter_type *const *d = dsc_drafters(); *d; d++) {
        int rows = 0;
        for (size_t r = 0; r < golden.rows; r++)
            rows += strcmp(dsc_table_at(&golden, r, METHOD)->text, (*d)->name) == 0;
        if (rows < LEAST)
            fail_msg("%s has %d rows in tests/golden/golden.tsv, %d expected (make_golden.py "
                     "writes them)",
                     (*d)->name, rows, LEAST);
    }
    dsc_table_fini(&golden);
}

// --- published figures ---------------------------------------------------------------------------

static dsc_counts run_llma(const dsc_trace *trace, const char *options)
{
    dsc_config config;
    char words[512];
    configure(&config, "llma", options, words, sizeof words);
    dsc_counts c = run(trace, &config, NULL);
    dsc_config_fini(&config);
    return c;
}

// LLMA Table 1 and Figure 4, first row (its RAG development set): per request, to two decimals.
static void published_figures(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        double drafts, accepted, calls;
    } row[] = {
        {"semantics=code num-speculative-tokens=4", 42.76, 62.96, 48.27},
        {"semantics=code num-speculative-tokens=8", 33.11, 72.61, 38.62},
        {"semantics=code num-speculative-tokens=15", 29.05, 76.67, 34.56},
        {"semantics=code num-speculative-tokens=18", 28.51, 77.21, 34.02},
        {"semantics=code num-speculative-tokens=20", 28.14, 77.58, 33.65},
        {"semantics=paper num-speculative-tokens=4", 38.66, 67.06, 44.17},
        {"semantics=paper num-speculative-tokens=18", 28.25, 77.47, 33.76},
        // Exact-n matching without a preference for longer ones.
        {"semantics=paper num-speculative-tokens=18 max-match=1", 32.67, 73.05, 38.18},
    };
    char file[512], tokenizer[512];
    dsc_trace *trace = import(data_path("llma/rag.jsonl", file, sizeof file),
                              data_path("tokenizers/llama2.json", tokenizer, sizeof tokenizer),
                              "code", "rag-published");
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    assert_int_equal(info->requests, 100);
    assert_close((double)info->prompt_tokens / 100, 903.6, 0.05);
    assert_close((double)info->output_tokens / 100, 111.2, 0.05);
    for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
        dsc_counts c = run_llma(trace, row[r].options);
        assert_close((double)c.num_drafts_started / 100, row[r].drafts, 0.005);
        assert_close((double)c.num_accepted_tokens / 100, row[r].accepted, 0.005);
        assert_close((double)c.target_calls / 100, row[r].calls, 0.005);
    }
    // By the paper's text (matches without limit, random ties), the result is within 1 % of the
    // mean over random ties.
    dsc_counts text = run_llma(trace, "semantics=paper k=18 max-match=0 tie=random");
    assert_close((double)text.num_drafts_started / 100, 28.77, 0.2877);
    assert_close((double)text.target_calls / 100, 34.28, 0.3428);
    dsc_trace_close(trace);
}

SUITE(golden)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_has_golden_counts),
        cmocka_unit_test(counts_equal_the_independent_programs),
        cmocka_unit_test(published_figures),
    };
    return cmocka_run_group_tests_name("golden counts", tests, make_scratch, remove_scratch);
}
