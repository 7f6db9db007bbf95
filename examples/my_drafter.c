// SPDX-License-Identifier: Apache-2.0
// A drafting method outside the library: it copies the tokens that follow the last output token at
// its last occurrence in the prompt.     my_drafter TRACE.dst [DRAFT_LENGTH]
#include <draftscope.h>

#include <stdio.h>

static int64_t limit(const dsc_config *config)
{
    return config->parameter[0]; // the method's first option
}

static int begin(void *state, const dsc_drafter_input *in, dsc_error *err)
{
    (void)err;
    *(dsc_drafter_input *)state = *in;
    return DSC_OK;
}

static int propose(void *state, const int32_t *output, int64_t length, dsc_draft *d, dsc_error *err)
{
    const dsc_drafter_input *in = (const dsc_drafter_input *)state;
    const dsc_token_view prompt = in->request->prompt;
    int64_t at = length ? prompt.count - 2 : -1;
    while (at >= 0 && prompt.id[at] != output[length - 1])
        at--;
    if (at < 0)
        return DSC_OK; // no draft in this step
    const int64_t rest = prompt.count - ++at, max = in->parameter[0];
    const size_t n = (size_t)(rest < max ? rest : max);
    d->started = true;
    return dsc_draft_append_chain(d, -1, prompt.id + at, n, err);
}

int main(int argc, char **argv)
{
    static dsc_option length; // static: the members that are not set below are 0
    static dsc_drafter_type method;
    static dsc_run_options options;
    static dsc_config config;
    static dsc_results results;
    static dsc_trace *trace;
    static dsc_error err;
    length.name = "num-speculative-tokens", length.kind = DSC_OPTION_INT, length.max = 64;
    method.name = "copy", method.option = &length, method.option_count = 1, method.limit = limit;
    method.state_size = sizeof(dsc_drafter_input), method.begin = begin, method.propose = propose;
    options.threads = 2;
    dsc_config_init(&config, &method);
    if (dsc_config_set(&config, "num-speculative-tokens", argc > 2 ? argv[2] : "4", &err) ||
        dsc_config_prepare(&config, &err) ||
        dsc_trace_open(&trace, argc > 1 ? argv[1] : "", &err) ||
        dsc_run(trace, &config, 1, &options, &results, &err))
        fprintf(stderr, "my_drafter: %s\n", err.message);
    else
        printf("block efficiency %.4f\n", dsc_block_efficiency(&results.counts[0]));
    dsc_results_fini(&results);
    dsc_trace_close(trace);
    return dsc_exit_code(err.status);
}
