// SPDX-License-Identifier: Apache-2.0
// The speculative loop on a pair of n-gram models, one core, in output tokens per second of
// processor time; bar: 1 M for `chain`. Learning the models is not in it.
//
//   bench_loop [CORPUS [ROUNDS]]
//
// CSV on stdout, the best of the rounds: method, rule, requests, output tokens, seconds, millions
// per second, block efficiency. Without arguments: the GSM8K training problems of the test data
// folder ($DSC_TEST_DATA, default ../shared/data beside the source), as bytes; exit 77 when absent.
#include "sim/model/model_spec.h"
#include "sim/model/workload.h"
#include "sim/run/run.h"
#include "tests/bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REQUESTS = 4200, TOKENS = 256, PROMPT = 64 };

static void defaults(dsc_config *c, const char *method)
{
    dsc_error err;
    dsc_config_init(c, dsc_drafter_find(method, &err));
    must(dsc_config_prepare(c, &err), &err);
}

static void measure(const dsc_workload *w, const char *method, const char *rule, int rounds)
{
    dsc_error err;
    dsc_config c;
    double best = 0;
    int64_t tokens = 0;
    double efficiency = 0;
    defaults(&c, method);
    const dsc_run_options o = {.engine = DSC_ENGINE_LOOP,
                               .rule = dsc_verifier_find(rule, &err),
                               .workload = w,
                               .threads = 1,
                               .seed = 1};
    for (int i = 0; i < rounds; i++) {
        dsc_results r;
        const double start = cpu_s();
        must(dsc_run(NULL, &c, 1, &o, &r, &err), &err);
        const double took = cpu_s() - start;
        best = i && best < took ? best : took;
        tokens = r.counts[0].output_tokens;
        efficiency = dsc_block_efficiency(&r.counts[0]);
        dsc_results_fini(&r);
    }
    printf("%s,%s,%d,%lld,%.3f,%.3f,%.4f\n", method, rule, REQUESTS, (long long)tokens, best,
           (double)tokens / best * 1e-6, efficiency);
    dsc_config_fini(&c);
}

int main(int argc, char **argv)
{
    const char *data = getenv("DSC_TEST_DATA"), *source = getenv("top_srcdir");
    char corpus[1024], spec[2][1100];
    dsc_tokenizer *bytes;
    dsc_language *pair[2];
    dsc_error err;
    if (data)
        snprintf(corpus, sizeof corpus, "%s/gsm8k/train.jsonl", data);
    else
        snprintf(corpus, sizeof corpus, "%s/../shared/data/gsm8k/train.jsonl",
                 source ? source : ".");
    if (argc > 1)
        snprintf(corpus, sizeof corpus, "%s", argv[1]);
    if (access(corpus, R_OK)) {
        fprintf(stderr, "bench_loop: no %s\n", corpus);
        return 77;
    }
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    snprintf(spec[0], sizeof spec[0], "ngram:%s,order=4", corpus);
    snprintf(spec[1], sizeof spec[1], "ngram:%s,order=2", corpus);
    must(dsc_tokenizer_load(&bytes, "bytes", &err), &err);
    for (int i = 0; i < 2; i++)
        must(
            dsc_language_make(&pair[i], spec[i], i ? DSC_SIDE_DRAFT : DSC_SIDE_TARGET, bytes, &err),
            &err);
    const dsc_workload w = {.target = pair[0],
                            .draft = pair[1],
                            .temperature = 1,
                            .requests = REQUESTS,
                            .prompt_tokens = PROMPT,
                            .max_tokens = TOKENS};
    printf("# %s\n", BENCH_FLAGS);
    printf("method,rule,requests,output_tokens,seconds,M_tokens_per_s,block_efficiency\n");
    measure(&w, "none", "rejection", rounds);
    measure(&w, "draft-model", "rejection", rounds);
    measure(&w, "spectr", "kseq", rounds);
    for (int i = 0; i < 2; i++)
        dsc_language_free(pair[i]);
    dsc_tokenizer_free(bytes);
    return 0;
}
