// SPDX-License-Identifier: Apache-2.0
// A cost from results of `vllm bench serve --save-result --save-detailed`, one file for each load.
// A result is a JSON object with, for each request (vllm/benchmarks/serve.py, commit def9ce8),
//   input_lens, output_lens   tokens
//   ttfts                     seconds to the first token
//   itls                      lists of seconds between the chunks of the stream
//   errors                    "" unless the request failed
// A chunk is what one step of the engine generated for a request, so a mean latency is a mean step
// time as the client sees it (sim/cost/step_times.h). The sequences in a step are the seconds that
// requests took after their first tokens over the duration of the benchmark. With speculation, a
// chunk has the accepted tokens as well; the number of draft tokens is taken from
// spec_decode_draft_tokens where the result has it.
#include "sim/cost/cost.h"

#include "base/json_file.h"
#include "base/memory.h"
#include "sim/cost/step_times.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 32, FILE_MAX = 1 << 30 };
#define SECONDS_MAX 1e6 // of a latency
#define TOKENS_MAX 1e15

static const char *const lists[] = {"output_lens", "ttfts", "itls"};

static int check(const json_t *result, const char *path, dsc_error *err)
{
    const size_t n = json_array_size(json_object_get(result, lists[0]));
    const double duration = json_number_value(json_object_get(result, "duration"));
    const double drafted = json_number_value(json_object_get(result, "spec_decode_draft_tokens"));
    if (!(drafted >= 0 && drafted <= TOKENS_MAX))
        return dsc_fail(err, DSC_EINPUT, "%s: spec_decode_draft_tokens must be from 0 to 1e15",
                        path);
    if (!(duration >= 1e-6 && duration <= 1e3 * SECONDS_MAX))
        return dsc_fail(
            err, DSC_EINPUT,
            "%s: no 'duration' from 1e-6 to 1e9 s; is this a result of vllm bench serve?", path);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!n || json_array_size(json_object_get(result, lists[i])) != n)
            return dsc_fail(err, DSC_EINPUT,
                            "%s: '%s' must be a list with an element for each request; save the "
                            "result with --save-detailed",
                            path, lists[i]);
    return DSC_OK;
}

// Adds up the latencies of a request that did not fail.
static int add_request(const json_t *itls, size_t request, double *steps, double *seconds,
                       const char *path, dsc_error *err)
{
    for (size_t i = 0; i < json_array_size(itls); i++) {
        const json_t *x = json_array_get(itls, i);
        if (!json_is_number(x) ||
            !(json_number_value(x) >= 0 && json_number_value(x) <= SECONDS_MAX))
            return dsc_fail(err, DSC_EINPUT, "%s: itls[%zu][%zu] must be a time from 0 to 1e6 s",
                            path, request, i);
        *seconds += json_number_value(x);
        ++*steps;
    }
    return DSC_OK;
}

static int add_result(const json_t *result, dsc_step_time *t, const char *path, dsc_error *err)
{
    const json_t *itls = json_object_get(result, "itls"),
                 *errors = json_object_get(result, "errors");
    const json_t *lengths = json_object_get(result, "output_lens");
    const json_t *draft_tokens = json_object_get(result, "spec_decode_draft_tokens");
    double steps = 0, seconds = 0, tokens = 0;
    int rc = check(result, path, err);
    for (size_t i = 0; i < json_array_size(itls) && !rc; i++) {
        const char *failed = json_string_value(json_array_get(errors, i));
        if (failed && *failed)
            continue;
        rc = add_request(json_array_get(itls, i), i, &steps, &seconds, path, err);
        tokens += fmax(json_number_value(json_array_get(lengths, i)) - 1, 0);
    }
    if (!rc && !(seconds > 0))
        rc = dsc_fail(err, DSC_EINPUT, "%s: no request has inter-token latencies", path);
    // A stream may join or split chunks a little; drafts make them fewer by far.
    if (!rc && !draft_tokens && tokens > 1.05 * steps)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s: %.0f tokens came in %.0f chunks, so the run was speculative, and the "
                      "result lacks spec_decode_draft_tokens: use prometheus:BEFORE,AFTER",
                      path, tokens, steps);
    if (!rc)
        *t = (dsc_step_time){seconds / steps,
                             seconds / json_number_value(json_object_get(result, "duration")),
                             json_number_value(draft_tokens) / steps};
    return rc;
}

static int open_bench(dsc_cost *cost, const char *text, dsc_error *err)
{
    dsc_step_time t[FILES_MAX];
    size_t n = 0;
    int rc = DSC_OK;
    for (const char *at = text; !rc;) {
        const size_t length = strcspn(at, ",");
        char *path = NULL;
        json_t *result = NULL;
        if (n == FILES_MAX || !length)
            return dsc_fail(err, DSC_EUSAGE,
                            "--cost: 'bench:%.60s' is not bench:FILE[,FILE...] with at most %d "
                            "files",
                            text, FILES_MAX);
        rc = dsc_strndup(&path, at, length, err);
        if (!rc)
            rc = dsc_json_file(&result, path, FILE_MAX, err);
        if (!rc)
            rc = add_result(result, &t[n++], path, err);
        json_decref(result);
        free(path);
        if (!at[length])
            break;
        at += length + 1;
    }
    return rc ? rc : dsc_step_times_fit(cost, t, n, text, err);
}

const dsc_cost_type dsc_cost_bench = {.name = "bench",
                                      .summary = "linear, from results of vllm bench serve",
                                      .usage = "FILE[,FILE...]",
                                      .linear = true,
                                      .open = open_bench};
