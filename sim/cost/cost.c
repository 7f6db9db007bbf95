// SPDX-License-Identifier: Apache-2.0
// The types `unit` and `linear`, the parsing of NAME:PARAMETERS, and the times of passes.
#include "sim/cost/cost_types.h"
#include "sim/cost/mixed_pass.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int open_unit(dsc_cost *cost, const char *text, dsc_error *err)
{
    (void)text, (void)err;
    cost->fixed_s = 1;
    return DSC_OK;
}

static bool parse_seconds(const char **text, char stop, double *out)
{
    char *end;
    if (!strchr("0123456789.", **text) || !**text)
        return false;
    *out = dsc_strtod(*text, &end);
    bool ok = end != *text && *end == stop && isfinite(*out) && *out >= 0;
    *text = end + (stop != '\0');
    return ok;
}

static int open_linear(dsc_cost *cost, const char *text, dsc_error *err)
{
    const char *p = text;
    bool drafts = strchr(p, ',') != strrchr(p, ',');
    if (parse_seconds(&p, ',', &cost->fixed_s) &&
        parse_seconds(&p, drafts ? ',' : '\0', &cost->per_token_s) &&
        (!drafts || parse_seconds(&p, '\0', &cost->draft_s)) &&
        cost->fixed_s + cost->per_token_s > 0)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--cost: 'linear:%.60s' is not linear:FIXED_S,PER_TOKEN_S[,DRAFT_S] with times "
                    "in seconds >= 0, the first two not both 0",
                    text);
}

static bool linear_targets(const dsc_cost *cost, dsc_pass pass, int64_t least, int64_t step,
                           size_t count, double *seconds)
{
    for (size_t i = 0; i < count; i++) {
        const double tokens = (double)(least + (int64_t)i * step) / pass.batch;
        seconds[i] = cost->fixed_s + cost->per_token_s * tokens * pass.batch;
    }
    return true;
}

const dsc_cost_type dsc_cost_unit = {
    .name = "unit", .summary = "a target call costs 1", .linear = true, .open = open_unit};
const dsc_cost_type dsc_cost_linear = {.name = "linear",
                                       .summary = "a fixed time and one per token in the call",
                                       .usage = "FIXED_S,PER_TOKEN_S[,DRAFT_S]",
                                       .linear = true,
                                       .open = open_linear,
                                       .targets = linear_targets};

int dsc_cost_open(dsc_cost *out, const dsc_cost_type *const *types, const char *choices,
                  const char *text, dsc_error *err)
{
    const size_t name = strcspn(text, ":");
    *out = (dsc_cost){0};
    for (const dsc_cost_type *const *t = types; *t; t++) {
        if (strncmp((*t)->name, text, name) || strlen((*t)->name) != name)
            continue;
        if ((text[name] == ':') != ((*t)->usage != NULL))
            return dsc_fail(err, DSC_EUSAGE, "--cost: '%.60s' is not %s%s%s", text, (*t)->name,
                            (*t)->usage ? ":" : "", (*t)->usage ? (*t)->usage : "");
        out->type = *t;
        return (*t)->open(out, text + name + (text[name] == ':'), err);
    }
    return dsc_fail(err, DSC_EUSAGE, "--cost: '%.60s' is unknown; choose %s", text, choices);
}

void dsc_cost_fini(dsc_cost *cost)
{
    if (!cost)
        return;
    if (cost->type && cost->type->close)
        cost->type->close(cost->model);
    *cost = (dsc_cost){0};
}

static int check(const dsc_cost *cost, const dsc_pass *pass, const double *seconds, dsc_error *err)
{
    if (!cost || !cost->type || !seconds)
        return dsc_fail(err, DSC_EUSAGE,
                        "cost and seconds must not be NULL, and dsc_cost_parse initializes a cost");
    const bool finite = isfinite(pass->tokens) && isfinite(pass->context) && isfinite(pass->batch);
    if (finite && pass->tokens >= 0 && pass->context >= 0 && pass->batch > 0)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "a pass of %g tokens after %g with batch size %g: the first two must be at "
                    "least 0 and the batch size above 0",
                    pass->tokens, pass->context, pass->batch);
}

int dsc_cost_target(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    int rc = check(cost, &pass, seconds, err);
    if (rc)
        return rc;
    if (!cost->type->linear)
        return cost->type->target(cost, pass, seconds, err);
    *seconds = cost->fixed_s + cost->per_token_s * pass.tokens * pass.batch;
    return DSC_OK;
}

int dsc_cost_draft(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    int rc = check(cost, &pass, seconds, err);
    if (rc)
        return rc;
    if (!cost->type->linear)
        return cost->type->draft(cost, pass, seconds, err);
    *seconds = cost->draft_s;
    return DSC_OK;
}

int dsc_cost_prefill(const dsc_cost *cost, dsc_pass pass, double tokens, double *seconds,
                     dsc_error *err)
{
    int rc = check(cost, &pass, seconds, err);
    if (!rc && !cost->mixed)
        rc = dsc_fail(err, DSC_EUSAGE, "cost model %s has no time of prefill tokens",
                      cost->type->name);
    if (!rc && !(tokens >= 0 && isfinite(tokens)))
        rc = dsc_fail(err, DSC_EUSAGE, "tokens is %g: prefill tokens must be at least 0", tokens);
    if (rc)
        return rc;
    *seconds = 0;
    return tokens > 0 ? cost->type->prefill(cost, pass, tokens, seconds, err) : DSC_OK;
}

int dsc_cost_drafts(const dsc_cost *cost, dsc_pass pass, double verified, double calls, double rows,
                    double *seconds, dsc_error *err)
{
    double first = 0, later = 0;
    int rc = check(cost, &pass, seconds, err);
    if (!rc && !(verified >= 0 && isfinite(verified)))
        rc = dsc_fail(err, DSC_EUSAGE, "%g verified tokens of a sequence: at least 0 expected",
                      verified);
    if (!rc && !(rows >= 0 && rows <= calls && isfinite(calls)))
        rc = dsc_fail(err, DSC_EUSAGE,
                      "%g drafts in %g passes of the draft model: a draft takes at least one pass",
                      rows, calls);
    const dsc_mixed_pass after = {.decoding = pass.batch,
                                  .decode_tokens = pass.batch * verified,
                                  .decode_context = pass.batch * pass.context};
    if (!rc && rows > 0)
        rc = cost->type->first_draft ? cost->type->first_draft(cost, pass, &after, &first, err)
                                     : dsc_cost_draft(cost, pass, &first, err);
    pass.again = true;
    if (!rc && calls > rows)
        rc = dsc_cost_draft(cost, pass, &later, err);
    if (!rc)
        *seconds = rows * first + (calls - rows) * later;
    return rc;
}
