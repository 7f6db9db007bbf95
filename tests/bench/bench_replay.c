// SPDX-License-Identifier: Apache-2.0
// P2: the whole LLMA grid n = 1..8 x k = 1..32 against one configuration of a straightforward
// implementation of the same rule, in one run on one thread; and memory against the trace's size.
//
// Usage: bench_replay [TRACE] [ROUNDS]; prints CSV. Without a trace it makes one of the bundled
// sample, repeated to >= 0.5 M output tokens. The references of a request are memory-mapped and
// warm.
#include "sim/expect.h"
#include "sim/run.h"
#include "tests/bench/llma_baseline.h"
#include "traces/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(int rc, const dsc_error *e)
{
    if (rc) {
        fprintf(stderr, "bench_replay: %s\n", e->message);
        exit(dsc_exit_code(rc));
    }
}

// The sample's answers, again and again, as a trace of at least `tokens` output tokens.
static void make_trace(const char *path, int64_t tokens)
{
    dsc_error e;
    const char *top = getenv("top_srcdir");
    char file[512], tokenizer_file[512];
    const char *paths[512];
    dsc_tokenizer *tokenizer;
    dsc_trace *one;
    dsc_import_options o = {
        .semantics = "paper", .version = "bench", .command = "bench", .force = true};
    snprintf(file, sizeof file, "%s/traces/sample/rag.jsonl", top ? top : ".");
    snprintf(tokenizer_file, sizeof tokenizer_file, "%s/traces/sample/tokenizer.json",
             top ? top : ".");
    must(dsc_tokenizer_load(&tokenizer, tokenizer_file, &e), &e);
    paths[0] = file;
    must(dsc_import(paths, 1, tokenizer, path, &o, NULL, &e), &e);
    must(dsc_trace_open(&one, path, &e), &e);
    size_t copies = (size_t)(tokens / dsc_trace_get_info(one)->output_tokens) + 1;
    dsc_trace_close(one);
    for (size_t i = 0; i < copies && i < 512; i++)
        paths[i] = file;
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
        double start = now_s();
        for (int64_t i = 0; i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            f(&q, n, copied, &c);
        }
        *seconds += now_s() - start;
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
        double start = now_s();
        for (int64_t i = 0; i < dsc_shard_requests(shard); i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            dsc_arena_reset(&arena);
            must(dsc_expect_run(plan, &q, 0, &arena, counts, &e), &e);
        }
        *seconds += now_s() - start;
        dsc_shard_close(shard);
    }
    dsc_arena_fini(&arena);
}

static void check_equal(const dsc_counts *ours, const baseline_counts *theirs)
{
    if (ours->target_calls != theirs->calls || ours->num_drafts != theirs->drafts ||
        ours->num_draft_tokens != theirs->draft_tokens ||
        ours->num_accepted_tokens != theirs->accepted) {
        fprintf(stderr, "bench_replay: the baseline counts something else\n");
        exit(1);
    }
}

static void processor(char *out, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    snprintf(out, size, "unknown");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) {
            snprintf(out, size, "%s", strchr(line, ':') + 2);
            out[strcspn(out, "\n,")] = '\0';
            break;
        }
    if (f)
        fclose(f);
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

int main(int argc, char **argv)
{
    dsc_error e;
    dsc_trace *trace;
    dsc_plan plan;
    dsc_config config[NS * KS];
    dsc_counts counts[NS * KS];
    static int64_t histogram[NS * KS][KS + 1];
    const char *path = argc > 1 ? argv[1] : "bench_replay.dst";
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    if (argc < 2)
        make_trace(path, 500000);
    must(dsc_trace_open(&trace, path, &e), &e);
    for (int c = 0; c < NS * KS; c++)
        config[c] = (dsc_config){&dsc_drafter_llma, {1 + c / KS, 1 + c % KS, 5, 0, 0, 0}};
    must(dsc_plan_init(&plan, config, NS * KS, &e), &e);
    double tokens = (double)dsc_trace_get_info(trace)->output_tokens, best[3] = {1e9, 1e9, 1e9};
    for (int r = 0; r < rounds; r++) {
        double s;
        for (int c = 0; c < NS * KS; c++)
            counts[c] = dsc_counts_zero(histogram[c], KS);
        run_grid(trace, &plan, counts, &s);
        best[0] = s < best[0] ? s : best[0];
        baseline_counts a = run_baseline(trace, baseline_dictionary, 1, 18, &s);
        best[1] = s < best[1] ? s : best[1];
        baseline_counts b = run_baseline(trace, baseline_scan, 1, 18, &s);
        best[2] = s < best[2] ? s : best[2];
        check_equal(&counts[17], &a);
        check_equal(&counts[17], &b);
    }
    char cpu[128];
    processor(cpu, sizeof cpu);
    printf("# cpu: %s; flags: %s\n", cpu, BENCH_FLAGS);
    puts("what,configurations,output_tokens,seconds,token_configurations_per_s,ratio_to_grid");
    static const char *const what[] = {"grid n=1:8 k=1:32", "dictionary n=1 k=18", "scan n=1 k=18"};
    for (int i = 0; i < 3; i++) {
        double configurations = i ? 1 : NS * KS;
        printf("%s,%.0f,%.0f,%.4f,%.4g,%.3f\n", what[i], configurations, tokens, best[i],
               tokens * configurations / best[i], best[0] / best[i]);
    }
    printf("peak memory,,,,%ld KiB,\n", peak_kib());
    dsc_plan_fini(&plan);
    dsc_trace_close(trace);
    return 0;
}
