// SPDX-License-Identifier: Apache-2.0
// Replays a recorded trace under a drafting method and prints the metrics:
//     replay TRACE.dst METHOD [OPTION=VALUE ...]
//     cc replay.c $(pkg-config --cflags --libs draftscope) -o replay
#include <draftscope.h>

#include <stdio.h>
#include <string.h>

static dsc_run_options options; // zero: greedy verification, every request

static int set_options(dsc_config *config, char **words, int count, dsc_error *err)
{
    int rc = DSC_OK;
    for (int i = 0; i < count && !rc; i++) {
        char *value = strchr(words[i], '=');
        if (value)
            *value++ = '\0';
        rc = dsc_config_set(config, words[i], value, err);
    }
    return rc ? rc : dsc_config_prepare(config, err);
}

static int replay(const char *path, const dsc_config *config, dsc_error *err)
{
    static dsc_results results; // static: zero
    static dsc_trace *trace;
    static dsc_arena arena;
    options.threads = 2;
    int rc = dsc_trace_open(&trace, path, err);
    rc = rc ? rc : dsc_run(trace, config, 1, &options, &results, err);
    if (!rc) {
        const dsc_metric_counts counts = dsc_counts_metrics(&results.counts[0]);
        dsc_metrics m;
        rc = dsc_metrics_init(&m, &counts, &arena, err);
        printf("target_calls            %.0f\n", counts.target_calls);
        printf("block_efficiency        %.4f\n", m.block_efficiency);
        printf("mean_acceptance_length  %.4f\n", m.mean_acceptance_length);
    }
    dsc_arena_fini(&arena);
    dsc_results_fini(&results);
    dsc_trace_close(trace);
    return rc;
}

int main(int argc, char **argv)
{
    dsc_error err;
    dsc_config config;
    if (argc < 3)
        return fprintf(stderr, "usage: replay TRACE.dst METHOD [OPTION=VALUE ...]\n") > 0 ? 2 : 1;
    dsc_config_init(&config, dsc_drafter_find(argv[2], &err));
    int rc = config.drafter ? set_options(&config, argv + 3, argc - 3, &err) : DSC_EUSAGE;
    rc = rc ? rc : replay(argv[1], &config, &err);
    if (rc)
        fprintf(stderr, "replay: %s\n", err.message);
    dsc_config_fini(&config);
    return dsc_exit_code(rc);
}
