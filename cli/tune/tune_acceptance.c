// SPDX-License-Identifier: Apache-2.0
// Measured acceptance as settings of engines that simulate it, for load tests without a draft model
// that is worth its name:
//  - vLLM: rejection_sample_method synthetic with an unconditional rate for each position.
//  - SGLang: the mean length of a step, the bonus token included, rounded up or down at random.
//  - TensorRT-LLM: the mean number of accepted draft tokens, the bonus token excluded.
// Names and sources are in engine_names.c.
#include "cli/tune/tune.h"

#include <inttypes.h>
#include <math.h>

// The sum of the rates, which is mean_acceptance_length - 1.
static double accepted(const dsc_metrics *m)
{
    double sum = 0;
    for (int64_t i = 0; i < m->positions; i++)
        sum += m->acceptance_rate_pos[i];
    return sum;
}

static int vllm_rates(dsc_buffer *b, const dsc_metrics *m, int64_t tokens, dsc_error *err)
{
    int rc = dsc_buffer_puts(b,
                             "# hides that steps and requests differ, and that acceptance depends "
                             "on the step before\n"
                             "\"rejection_sample_method\": \"synthetic\", "
                             "\"synthetic_acceptance_rates\": [",
                             err);
    for (int64_t i = 0; i < tokens && !rc; i++)
        rc = dsc_buffer_printf(b, err, "%s%.6f", i ? ", " : "",
                               i < m->positions ? fmin(m->acceptance_rate_pos[i], 1) : 0);
    return rc ? rc
              : dsc_buffer_printf(b, err, "], \"num_speculative_tokens\": %" PRId64 "\n", tokens);
}

int cli_tune_acceptance(dsc_buffer *b, cli_acceptance kind, const dsc_metrics *m, int64_t tokens,
                        dsc_error *err)
{
    if (!m->positions)
        return dsc_buffer_puts(b, "# no draft token was accepted or none was drafted\n", err);
    if (kind == CLI_ACCEPTANCE_VLLM)
        return vllm_rates(b, m, tokens, err);
    if (kind == CLI_ACCEPTANCE_SGLANG)
        return dsc_buffer_printf(
            b, err,
            "# hides the distribution of lengths: each step accepts one of the two next to the "
            "mean, the same for the whole batch\n"
            "SGLANG_SIMULATE_ACC_LEN=%.6f SGLANG_SIMULATE_ACC_METHOD=match-expected "
            "SGLANG_SIMULATE_ACC_TOKEN_MODE=real-draft-token\n",
            1 + accepted(m));
    return dsc_buffer_printf(
        b, err,
        "# hides the distribution of lengths: each step accepts one of the two next to the mean\n"
        "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=%.6f\n",
        accepted(m));
}
