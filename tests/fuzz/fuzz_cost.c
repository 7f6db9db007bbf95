// SPDX-License-Identifier: Apache-2.0
// Cost models: tables of measured times, rooflines of a config.json, tables of engines, benchmarks,
// a page of metrics after an empty one. Input: a byte (the kind, in this order), the file.
#include "sim/cost/price.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

#include <math.h>
#include <stdio.h>

FUZZ_FORMAT(cost, .head = 1, .parts = 1, .change = {fuzz_change_lines})

// A pass has a finite time, or the cost model returns an error.
static void check_pass(const dsc_cost *cost, dsc_pass pass)
{
    double target = 0, draft = 0;
    dsc_error err = {0};
    int rc = dsc_cost_target(cost, pass, &target, &err);
    if (rc)
        fuzz_refused(rc, &err);
    else
        fuzz_require(isfinite(target) && target >= 0, "a pass takes a time", NULL);
    rc = dsc_cost_draft(cost, pass, &draft, &err);
    if (rc)
        fuzz_refused(rc, &err);
    else
        fuzz_require(isfinite(draft) && draft >= 0, "a draft takes a time", NULL);
}

FUZZ_TARGET(cost)
{
    fuzz_bytes in = {data, size};
    static const char idle[] = "v:inter_token_latency_seconds_sum 0\n"
                               "v:inter_token_latency_seconds_count 0\n"
                               "v:generation_tokens 0\nv:num_requests_running 0\n";
    static const struct {
        const char *name, *type, *rest; // "TYPE:[IDLE,]FILE[REST]"
    } kinds[] = {{"cost.tsv", "table", ""},
                 {"config.json", "roofline", ",none,h100,memory=1e9"},
                 {"steps.json", "sps", ""},
                 {"bench.json", "bench", ""},
                 {"after.txt", "prometheus", ""}};
    enum { KINDS = sizeof kinds / sizeof *kinds, SERVER = KINDS - 1 };
    const size_t kind = fuzz_byte(&in) % KINDS;
    char before[256] = "", spec[600];
    dsc_error err = {0};
    dsc_cost cost;
    if (kind == SERVER)
        snprintf(before, sizeof before, "%s,", fuzz_file("idle.txt", idle, sizeof idle - 1));
    const char *path = fuzz_file(kinds[kind].name, in.data, in.size);
    snprintf(spec, sizeof spec, "%s:%s%s%s", kinds[kind].type, before, path, kinds[kind].rest);
    int rc = dsc_cost_parse(&cost, spec, &err);
    if (rc) {
        fuzz_refused(rc, &err);
        return 0;
    }
    for (double tokens = 1; tokens <= 64; tokens *= 4)
        for (double context = 0; context <= 2000; context = 10 * context + 2)
            check_pass(&cost, (dsc_pass){tokens, context, tokens, tokens > 1});
    dsc_cost_fini(&cost);
    return 0;
}
