// SPDX-License-Identifier: Apache-2.0
// Reads recordings of serving load.
//   vllm-vcr: a line per request with counts and times, and {"meta": {...}} in front. Tokens are
//     there when the recorder was started with --record-tokens. itl_tokens[i] tokens arrived at the
//     end of gap i, one without that field; the first chunk has the others. So the chunks are the
//     steps of the run, aligned to the output. Source: neuralmagic/vllm-vcr,
//     crates/sim-trace/src/trace.rs (1332366), TraceRecord.
//   vllm bench serve --save-result --save-detailed: one object with a list per field; the prompts
//     are not saved. Source: vLLM, vllm/benchmarks/serve.py (009e6d4).
#include "traces/import/import_path.h"

#include <math.h>
#include <string.h>

static const dsc_import_field vcr_fields[] = {
    {"output", "output_token_ids", 0, false},
    {"metadata.new_tokens", "output_tokens", 0, true},
    {"metadata.prompt_tokens", "prompt_tokens", 1, false},
    {"metadata.arrival_s", "arrival_ms", 1e-3, false},
    {"metadata.ttft_s", "ttft_ms", 1e-3, false},
    {"metadata.concurrency", "concurrency", 1, false},
    {0},
};

static const dsc_import_field bench_fields[] = {
    {"output", "generated_texts.#", 0, true},
    {"metadata.model", "model_id", 0, false},
    {"metadata.new_tokens", "output_lens.#", 0, false},
    {"metadata.prompt_tokens", "input_lens.#", 1, false},
    {"metadata.arrival_s", "start_times.#", 1, false},
    {"metadata.ttft_s", "ttfts.#", 1, false},
    {"metadata.wall_time", "latencies.#", 1, false},
    {0},
};

// Adds up a list of numbers; NaN when one is not a number of at least 0.
static double sum_of(const json_t *list)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        sum += json_is_number(v) && json_number_value(v) >= 0 ? json_number_value(v) : NAN;
    }
    return sum;
}

// metadata.wall_time = ttft_s + the gaps, where there are gaps and no time is known yet.
static int set_wall_time(json_t *request, const json_t *gaps, double unit, const char *field,
                         dsc_error *err)
{
    const json_t *ttft = dsc_import_at(request, "metadata.ttft_s", 0);
    const double s = sum_of(gaps) * unit + json_number_value(ttft);
    if (!json_is_array(gaps) || !ttft || dsc_import_at(request, "metadata.wall_time", 0))
        return DSC_OK;
    if (!isfinite(s))
        return dsc_fail(err, DSC_EINPUT, "field '%s' must be a list of numbers of at least 0",
                        field);
    return dsc_import_put_at(request, "metadata.wall_time", json_real(s), err);
}

// --- vllm-vcr ------------------------------------------------------------------------------------

static bool is_meta(const json_t *line)
{
    return json_object_size(line) == 1 && json_is_object(json_object_get(line, "meta"));
}

static int probe_vcr(const json_t *line)
{
    const bool record = json_object_get(line, "ttft_ms") &&
                        json_object_get(line, "output_tokens") &&
                        json_object_get(line, "prompt_tokens");
    return 5 * record + 3 * is_meta(line);
}

// The tokens after the first chunk's first, by chunks: without itl_tokens each chunk has one.
static int put_steps(json_t *request, const json_t *line, int64_t tokens, dsc_error *err)
{
    const json_t *bursts = dsc_import_at(line, "itl_tokens", 0);
    const size_t gaps = bursts ? json_array_size(bursts) : (size_t)(tokens > 0 ? tokens - 1 : 0);
    int64_t later = bursts ? 0 : (int64_t)gaps, n;
    json_t *accepted = json_array();
    int rc = accepted ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc && bursts && !json_is_array(bursts))
        rc = dsc_import_wrong_type(bursts, "an array", err, "itl_tokens");
    for (size_t i = 0; i < gaps && !rc; i++) {
        n = 1;
        if (bursts)
            rc = dsc_import_integer(&n, json_array_get(bursts, i), 1, UINT16_MAX + 1, err,
                                    "itl_tokens[%zu]", i);
        later += bursts ? n : 0;
        if (!rc && json_array_append_new(accepted, json_integer(n - 1)))
            rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    const int64_t first = tokens - later;
    if (!rc && (tokens ? first < 1 : gaps > 0))
        rc = dsc_fail(err, DSC_EINPUT,
                      "field 'itl_tokens' adds up to %lld, but the output has only %lld tokens",
                      (long long)later, (long long)tokens);
    if (!rc && first > UINT16_MAX + 1)
        rc = dsc_fail(err, DSC_EINPUT, "the first chunk has %lld tokens; at most %d are possible",
                      (long long)first, UINT16_MAX + 1);
    if (!rc && first > 1 && json_array_insert_new(accepted, 0, json_integer(first - 1)))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_import_put_at(request, "steps.accepted", json_incref(accepted), err);
    if (!rc)
        rc = dsc_import_put_at(request, "steps.aligned", json_true(), err);
    json_decref(accepted);
    return rc;
}

static int expand_vcr(const json_t *line, const dsc_import_options *options, json_t *requests,
                      dsc_error *err)
{
    json_t *request;
    (void)options;
    if (is_meta(line))
        return DSC_OK;
    int rc = dsc_import_request_new(&request, vcr_fields, line, 0, err);
    if (rc)
        return rc;
    const json_t *output = json_object_get(request, "output");
    if (!output)
        rc = dsc_fail(err, DSC_EINPUT,
                      "field 'output_token_ids' is missing, so there are no tokens to replay; "
                      "record with --record-tokens");
    if (!rc)
        rc = put_steps(request, line, (int64_t)json_array_size(output), err);
    if (!rc)
        rc = set_wall_time(request, json_object_get(line, "itl_ms"), 1e-3, "itl_ms", err);
    if (!rc)
        return dsc_import_add_request(requests, request, 1, 1, err);
    json_decref(request);
    return rc;
}

const dsc_import_driver dsc_import_vcr = {
    .name = "vcr",
    .summary = "vllm-vcr's recordings with tokens: arrivals, gaps, bursts (itl_tokens)",
    .needs = "prompt_tokens output_tokens ttft_ms",
    .probe = probe_vcr,
    .expand = expand_vcr,
    .read = dsc_import_request_read,
};

// --- vllm bench serve ----------------------------------------------------------------------------

static int probe_bench(const json_t *line)
{
    return 5 * (json_is_array(json_object_get(line, "generated_texts")) &&
                json_is_array(json_object_get(line, "output_lens")));
}

static int add_benchmark(json_t *requests, const json_t *line, size_t i, double origin,
                         dsc_error *err)
{
    json_t *request;
    const char *failure = json_string_value(dsc_import_at(line, "errors.#", i));
    if (failure && *failure) // a request that failed: counted, left out
        return json_array_append_new(requests, json_null()) ? DSC_ENOMEM : DSC_OK;
    int rc = dsc_import_request_new(&request, bench_fields, line, i, err);
    if (rc)
        return rc;
    const json_t *start = dsc_import_at(request, "metadata.arrival_s", 0);
    if (start)
        rc = dsc_import_put_at(request, "metadata.arrival_s",
                               json_real(json_number_value(start) - origin), err);
    if (!rc)
        rc = set_wall_time(request, dsc_import_at(line, "itls.#", i), 1, "itls", err);
    if (!rc)
        return dsc_import_add_request(requests, request, 1, 1, err);
    json_decref(request);
    return rc;
}

static int expand_bench(const json_t *line, const dsc_import_options *options, json_t *requests,
                        dsc_error *err)
{
    const json_t *texts = json_object_get(line, "generated_texts");
    const json_t *starts = json_object_get(line, "start_times");
    double origin = INFINITY; // start_times are seconds of an arbitrary clock
    (void)options;
    if (!json_is_array(texts))
        return dsc_import_wrong_type(texts, "an array (--save-detailed)", err, "generated_texts");
    for (size_t i = 0; i < json_array_size(starts); i++)
        if (json_is_number(json_array_get(starts, i)))
            origin = fmin(origin, json_number_value(json_array_get(starts, i)));
    int rc = DSC_OK;
    for (size_t i = 0; i < json_array_size(texts) && !rc; i++)
        rc = add_benchmark(requests, line, i, origin, err);
    return rc == DSC_ENOMEM ? dsc_fail(err, rc, "out of memory") : rc;
}

const dsc_import_driver dsc_import_bench = {
    .name = "bench",
    .summary = "vllm bench serve --save-detailed: generated_texts, start_times, ttfts, itls",
    .needs = "generated_texts output_lens",
    .documents = true,
    .probe = probe_bench,
    .expand = expand_bench,
    .read = dsc_import_request_read,
};
