// SPDX-License-Identifier: Apache-2.0
// Compares the serving engine with another simulator of a server on the same requests, without
// speculation: medians of latencies, and the time that both take to simulate them.
//
// Usage: bench_serve_peer write REQUESTS QPS >FILE   a line "arrival_us prompt output" per request
//        bench_serve_peer FILE PEER FIXED_US TOKEN_US SEQS TOKENS THRESHOLD [BLOCKS]
//
// PEER is what the other simulator made of FILE: a line "# seconds S" with its time, then a line
// "ttft_us e2e_us" per request, in the order of FILE. A step takes FIXED_US + TOKEN_US x its
// tokens; SEQS, TOKENS and THRESHOLD are vLLM's max_num_seqs, max_num_batched_tokens and
// long_prefill_token_threshold; BLOCKS of 16 tokens are the KV cache (0: without limit). Prints
// CSV; exits with 77 when PEER does not exist.
#include "base/rng.h"
#include "sim/serve/serve_policy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1000000, ROUNDS = 5 };
enum { TTFT, TPOT, E2E, LATENCIES };
static const char *const names[LATENCIES] = {"ttft", "tpot", "e2e"};

typedef struct requests {
    dsc_serve_item *item;
    double *at;              // seconds
    double *time[LATENCIES]; // [count] seconds, of the engine; TPOT is NaN for one token
    int64_t count;
} requests;

static void fail(const char *message)
{
    fprintf(stderr, "bench_serve_peer: %s\n", message);
    exit(2);
}

static void must(int rc, const dsc_error *err)
{
    if (rc)
        fail(err->message);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Poisson arrivals; prompts of 16 to 2000 and outputs of 1 to 600 tokens, long ones rarer.
static int write_requests(int64_t count, double qps)
{
    double at = 0;
    for (int64_t i = 0; i < count; i++) {
        const double a = dsc_rng_uniform(1, (uint64_t)i, 0, DSC_RNG_ARRIVALS);
        const double p = dsc_rng_uniform(1, (uint64_t)i, 0, DSC_RNG_REQUEST);
        const double o = dsc_rng_uniform(1, (uint64_t)i, 0, DSC_RNG_ORDER);
        at += -log1p(-a) / qps;
        printf("%.0f\t%.0f\t%.0f\n", at * 1e6, 16 * pow(125, p), 1 + 599 * o * o);
    }
    return 0;
}

static void read_requests(requests *r, const char *path)
{
    dsc_error err;
    double at, prompt, output;
    FILE *f = fopen(path, "r");
    if (!f)
        fail("no such file of requests");
    must(dsc_new(&r->item, MOST, &err), &err);
    must(dsc_new(&r->at, MOST, &err), &err);
    for (int i = 0; i < LATENCIES; i++)
        must(dsc_new(&r->time[i], MOST, &err), &err);
    while (r->count < MOST && fscanf(f, "%lf %lf %lf", &at, &prompt, &output) == 3) {
        r->item[r->count] = (dsc_serve_item){.prompt = (int32_t)prompt, .output = (int32_t)output};
        r->at[r->count++] = at * 1e-6;
    }
    fclose(f);
}

static int complete(void *user, const dsc_serve_sequence *s, dsc_error *err)
{
    requests *r = user;
    (void)err;
    r->time[TTFT][s->number] = s->first_s - s->arrival_s;
    r->time[TPOT][s->number] = (s->last_s - s->first_s) / (s->output - 1);
    r->time[E2E][s->number] = s->last_s - s->arrival_s;
    return DSC_OK;
}

// Returns the seconds that the fastest of some rounds takes.
static double simulate(requests *r, char **argv, int64_t *preemptions)
{
    char text[100];
    dsc_error err;
    dsc_cost cost;
    dsc_serve_policy policy;
    snprintf(text, sizeof text, "linear:%se-6,%se-6", argv[3], argv[4]);
    must(dsc_cost_parse(&cost, text, &err), &err);
    must(dsc_serve_policy_parse(&policy, "fixed", 0, &err), &err);
    const dsc_serve_pool pool = {.item = r->item, .count = (size_t)r->count};
    const dsc_arrivals arrivals = {
        .kind = DSC_ARRIVALS_LISTED, .rate = 1, .time = r->at, .times = r->count};
    const dsc_serve_price price = {.cost = &cost, .prefill_s = NAN};
    const dsc_serve_options options = {.requests = r->count,
                                       .drain = true,
                                       .max_num_seqs = atoi(argv[5]),
                                       .max_num_batched_tokens = atoi(argv[6]),
                                       .long_prefill_token_threshold = atoi(argv[7]),
                                       .kv_blocks = argv[8] ? atoll(argv[8]) : 0,
                                       .block_size = 16,
                                       .slo_ttft_s = INFINITY,
                                       .slo_tpot_s = INFINITY,
                                       .complete = complete,
                                       .user = r};
    double best = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        dsc_serve_totals t = {0};
        const double start = now_s();
        must(dsc_serve_run(&t, &pool, &arrivals, &price, &policy, &options, &err), &err);
        best = fmin(best, now_s() - start);
        *preemptions = t.preemptions;
        dsc_serve_totals_fini(&t);
    }
    dsc_serve_policy_fini(&policy);
    dsc_cost_fini(&cost);
    return best;
}

// Reads the peer's times into `theirs`; returns the seconds that it took.
static double read_peer(FILE *f, const requests *r, double *const theirs[LATENCIES])
{
    double seconds, ttft, e2e;
    if (fscanf(f, "# seconds %lf", &seconds) != 1)
        fail("the peer's file does not begin with '# seconds S'");
    for (int64_t i = 0; i < r->count; i++) {
        if (fscanf(f, "%lf %lf", &ttft, &e2e) != 2)
            fail("the peer's file has fewer requests");
        theirs[TTFT][i] = ttft * 1e-6;
        theirs[E2E][i] = e2e * 1e-6;
        theirs[TPOT][i] = (e2e - ttft) * 1e-6 / (r->item[i].output - 1);
    }
    return seconds;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median of the finite values, which are sorted.
static double median(double *x, int64_t count)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(x[i]))
            x[n++] = x[i];
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n ? x[n / 2] : (double)NAN;
}

int main(int argc, char **argv)
{
    requests r = {0};
    double *theirs[LATENCIES];
    int64_t preemptions;
    dsc_error err;
    if (argc == 4 && strcmp(argv[1], "write") == 0)
        return write_requests(atoll(argv[2]), atof(argv[3]));
    FILE *peer = argc >= 3 ? fopen(argv[2], "r") : NULL;
    if (!peer) {
        fprintf(stderr, "bench_serve_peer: no results of another simulator\n");
        return 77;
    }
    if (argc != 8 && argc != 9)
        fail("FILE PEER FIXED_US TOKEN_US SEQS TOKENS THRESHOLD [BLOCKS] expected");
    read_requests(&r, argv[1]);
    for (int i = 0; i < LATENCIES; i++)
        must(dsc_new(&theirs[i], (size_t)r.count, &err), &err);
    const double seconds = simulate(&r, argv, &preemptions), peer_s = read_peer(peer, &r, theirs);
    fclose(peer);
    printf("latency,median_s,peer_median_s,difference_percent,largest_difference_s,equal\n");
    for (int i = 0; i < LATENCIES; i++) {
        double most = 0;
        int64_t equal = 0; // to a microsecond, which the peer's times are rounded to
        for (int64_t q = 0; q < r.count; q++) {
            const double apart = fabs(r.time[i][q] - theirs[i][q]);
            most = apart > most ? apart : most;
            equal += !(apart > 1e-6);
        }
        const double ours = median(r.time[i], r.count), other = median(theirs[i], r.count);
        printf("%s,%.6f,%.6f,%+.3f,%.6f,%.4f\n", names[i], ours, other, 100 * (ours / other - 1),
               most, (double)equal / (double)r.count);
    }
    printf("# seconds %.6f, peer %.6f: %.0f times as fast; %" PRId64 " preemptions\n", seconds,
           peer_s, peer_s / seconds, preemptions);
    return 0;
}
