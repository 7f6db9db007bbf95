// SPDX-License-Identifier: Apache-2.0
// P2: the whole LLMA grid n = 1..8 x k = 1..32, draft lengths included, against one configuration
// of a straightforward implementation of the same rule, in one run on one thread; and memory
// against the trace's size.
//
// Usage: bench_replay [TRACE] [ROUNDS]; prints CSV; grid_ratio is the grid's time over the row's.
// Without a trace it makes some, of at least 0.5 M output tokens; they are mapped and warm.
#include "sim/expect/expect.h"
#include "sim/run/run.h"
#include "tests/bench/bench.h"
#include "tests/bench/llma_baseline.h"
#include "traces/import/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Where answers come from: the bundled sample, and LLMA's own development set where it is at hand.
static const struct {
    const char *name, *answers, *tokenizer;
    bool data; // beside the source tree, not in it
} sources[] = {
    {"sample", "traces/sample/rag.jsonl", "traces/sample/tokenizer.json", false},
    {"llma-dev", "llma/rag.jsonl", "tokenizers/llama2.json", true},
};
enum { SOURCES = sizeof sources / sizeof *sources };

static const char *find(const char *name, bool data, char out[512])
{
    const char *top = getenv("top_srcdir"), *folder = getenv("DSC_TEST_DATA");
    top = top ? top : ".";
    if (!data)
        snprintf(out, 512, "%s/%s", top, name);
    else if (folder)
        snprintf(out, 512, "%s/%s", folder, name);
    else
        snprintf(out, 512, "%s/../shared/data/%s", top, name);
    return access(out, R_OK) ? NULL : out;
}

// The answers, again and again, as a trace of at least `tokens` output tokens.
static void make_trace(const char *answers, const char *tokenizer_file, const char *path,
                       int64_t tokens)
{
    dsc_error e;
    const char *paths[512];
    dsc_tokenizer *tokenizer;
    dsc_trace *one;
    dsc_import_options o = {
        .semantics = "paper", .version = "bench", .command = "bench", .force = true};
    must(dsc_tokenizer_load(&tokenizer, tokenizer_file, &e), &e);
    paths[0] = answers;
    must(dsc_import(paths, 1, tokenizer, path, &o, NULL, &e), &e);
    must(dsc_trace_open(&one, path, &e), &e);
    size_t copies = (size_t)(tokens / dsc_trace_get_info(one)->output_tokens) + 1;
    dsc_trace_close(one);
    for (size_t i = 0; i < copies && i < 512; i++)
        paths[i] = answers;
    must(dsc_import(paths, copies < 512 ? copies : 512, tokenizer, path, &o, NULL, &e), &e);
    dsc_tokenizer_free(tokenizer);
}

typedef void baseline(const dsc_request *q, int n, int64_t copied, baseline_counts *counts);

static baseline_counts run_baseline(const dsc_trace *trace, baseline *f, int n, int64_t copied,
                                    double *seconds)
{
    dsc_error e;
    baseline_counts c = {0};
    *seconds = 0;
    for (int64_t s = 0; s < dsc_trace_shards(trace); s++) {
        dsc_shard *shard;
        must(dsc_shard_open(&shard, trace, s, &e), &e);
        double start = wall_s();
        for (int64_t i = 0; i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            f(&q, n, copied, &c);
        }
        *seconds += wall_s() - start;
        dsc_shard_close(shard);
    }
    return c;
}

enum { NS = 8, KS = 32 };

// The grid, without opening and checking shards (the baselines are timed without it too).
static void run_grid(const dsc_trace *trace, const dsc_plan *plan, dsc_counts *counts,
                     double *seconds)
{
    dsc_error e;
    dsc_arena arena = {0};
    *seconds = 0;
    for (int64_t s = 0; s < dsc_trace_shards(trace); s++) {
        dsc_shard *shard;
        must(dsc_shard_open(&shard, trace, s, &e), &e);
        double start = wall_s();
        for (int64_t i = 0; i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            dsc_arena_reset(&arena);
            must(dsc_expect_run(plan, &q, 0, &arena, counts, &e), &e);
        }
        *seconds += wall_s() - start;
        dsc_shard_close(shard);
    }
    dsc_arena_fini(&arena);
}

static void check_equal(const dsc_counts *ours, const baseline_counts *theirs)
{
    if (ours->target_calls != theirs->calls || ours->num_drafts_started != theirs->drafts ||
        ours->num_draft_tokens != theirs->draft_tokens ||
        ours->num_accepted_tokens != theirs->accepted) {
        fprintf(stderr, "bench_replay: the baseline counts something else\n");
        exit(1);
    }
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void bench(const char *name, const char *path, int rounds)
{
    dsc_error e;
    dsc_trace *trace;
    dsc_plan plan;
    dsc_config config[NS * KS];
    dsc_counts counts[NS * KS];
    static int64_t lists[NS * KS][3 * (KS + 1)];
    const dsc_counts_room room = {.most = KS, .limit = KS};
    must(dsc_trace_open(&trace, path, &e), &e);
    for (int c = 0; c < NS * KS; c++)
        config[c] = (dsc_config){.drafter = &dsc_drafter_llma,
                                 .parameter = {1 + c / KS, 1 + c % KS, 5, 0, 0, 0}};
    must(dsc_plan_init(&plan, config, NS * KS, &e), &e);
    double tokens = (double)dsc_trace_get_info(trace)->output_tokens, best[3] = {1e9, 1e9, 1e9};
    for (int r = 0; r < rounds; r++) {
        double s;
        memset(lists, 0, sizeof lists);
        for (int c = 0; c < NS * KS; c++)
            counts[c] = dsc_counts_in(lists[c], &room);
        run_grid(trace, &plan, counts, &s);
        best[0] = s < best[0] ? s : best[0];
        baseline_counts a = run_baseline(trace, baseline_dictionary, 1, 18, &s);
        best[1] = s < best[1] ? s : best[1];
        baseline_counts b = run_baseline(trace, baseline_scan, 1, 18, &s);
        best[2] = s < best[2] ? s : best[2];
        check_equal(&counts[17], &a);
        check_equal(&counts[17], &b);
    }
    static const char *const what[] = {"grid n=1:8 k=1:32", "dictionary n=1 k=18", "scan n=1 k=18"};
    for (int i = 0; i < 3; i++) {
        double configurations = i ? 1 : NS * KS;
        printf("%s,%s,%.0f,%.0f,%.4f,%.4g,%.3f\n", name, what[i], configurations, tokens, best[i],
               tokens * configurations / best[i], best[0] / best[i]);
    }
    dsc_plan_fini(&plan);
    dsc_trace_close(trace);
}

int main(int argc, char **argv)
{
    char cpu[128], answers[512], tokenizer[512];
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    processor(cpu, sizeof cpu);
    printf("# cpu: %s; flags: %s\n", cpu, BENCH_FLAGS);
    puts("trace,what,configurations,output_tokens,seconds,token_configurations_per_s,grid_ratio");
    if (argc > 1)
        bench(argv[1], argv[1], rounds);
    for (int i = 0; i < SOURCES && argc < 2; i++) {
        const char *a = find(sources[i].answers, sources[i].data, answers);
        const char *t = find(sources[i].tokenizer, sources[i].data, tokenizer);
        if (!a || !t)
            continue;
        make_trace(a, t, "bench_replay.dst", 500000);
        bench(sources[i].name, "bench_replay.dst", rounds);
    }
    printf("# peak memory: %ld KiB\n", peak_kib());
    return 0;
}
