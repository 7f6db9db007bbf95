// SPDX-License-Identifier: Apache-2.0
// Which methods of draftscope serve need calibrated confidences.
#include "cli/serve/serve.h"

static bool calibrates(const char *text)
{
    dsc_error ignored;
    dsc_serve_policy policy;
    if (dsc_serve_policy_parse(&policy, text, 1, &ignored))
        return false; // refused elsewhere
    const bool yes = dsc_serve_policy_calibrates(&policy);
    dsc_serve_policy_fini(&policy);
    return yes;
}

int cli_serve_confidence_read(cli_serve_method *m, const cli_simulation *s, const cli_call *call,
                              dsc_error *err)
{
    const dsc_option *speculation = &call->command->option[SERVE_SPECULATION];
    bool needed = false;
    for (size_t u = 0; u < call->uses.count; u++)
        needed |= call->uses.use[u].option == speculation && calibrates(call->uses.use[u].text);
    if (!needed || !m->source.longest || m->source.tree || m->source.script)
        return DSC_OK; // cli_serve_methods_admit refuses trees and recorded steps
    if (!s->trace)
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation adaptive:calibrated needs a trace with the draft model's "
                        "distributions; adaptive:position takes given acceptance rates");
    if (s->draft && m->config.drafter->needs_draft)
        return dsc_fail(err, DSC_EUSAGE,
                        "--speculation adaptive:calibrated reads the distributions of the trace's "
                        "draft model, not those of --draft; adaptive:position needs none");
    return dsc_serve_confidence_read(&m->confidence, &m->source, s->trace, &m->config, m->rule,
                                     call->seed, err);
}
