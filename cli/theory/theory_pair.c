// SPDX-License-Identifier: Apache-2.0
// The options that select pairs of distributions, the memory of a pair, and the conversion of
// logits or probabilities as read into a distribution.
#include "cli/theory/theory_rows.h"
#include "theory/probs.h"

// clang-format off
const dsc_option cli_rows_options[CLI_ROWS_OPTIONS] = {
    {.name = "bernoulli", .kind = DSC_OPTION_TEXT, .metavar = "P,Q[,Q...]",
     .help = "draft Bernoulli(P), target Bernoulli(Q), one pair for each Q (SpecTr, App. B)"},
    {.name = "uniform", .kind = DSC_OPTION_TEXT, .metavar = "D,R[,R...]",
     .help = "draft uniform over D tokens, target uniform over D/R, one pair for each divisor R "
             "of D (SpecTr, App. B)"},
    {.name = "zipf", .kind = DSC_OPTION_TEXT, .metavar = "V,S,NOISE",
     .help = "V tokens, draft ~ rank^-S, target ~ draft exp(NOISE z) with z standard normal"},
    {.name = "seed", .kind = DSC_OPTION_INT, .metavar = "S", .initial = "0", .min = 0,
     .max = INT64_MAX, .help = "random seed of --zipf"},
    {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "draft distributions, one per row: .npy, .csv or FILE.safetensors:TENSOR"},
    {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "target distributions, one per row of --draft"},
    {.name = "rows", .kind = DSC_OPTION_INT, .metavar = "LIST", .min = 0, .max = INT64_MAX,
     .list = true, .help = "rows of --draft and --target to compute, from 0, as in 0:9,20 "
                           "(default: all)"},
    {.name = "trace", .kind = DSC_OPTION_TEXT, .metavar = "TRACE",
     .help = "distributions recorded in a trace, one pair per output token"},
    {.name = "request", .kind = DSC_OPTION_INT, .metavar = "I", .min = 0, .max = INT64_MAX,
     .help = "number of the request of --trace, from 0"},
    {.name = "position", .kind = DSC_OPTION_INT, .metavar = "J", .min = 0, .max = INT64_MAX,
     .help = "number of the output token of --request, from 0 (default: all)"},
    {.name = "normalize", .kind = DSC_OPTION_FLAG,
     .help = "divide each distribution by its sum, which must otherwise be within 1e-4 of 1"},
    {.name = "logits", .kind = DSC_OPTION_FLAG,
     .help = "apply a softmax: the input is logits or natural logarithms of probabilities"},
    {.name = "temperature", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "1", .least = 0,
     .most = 1e6, .help = "softmax temperature; 0 keeps the argmax only; implies --logits"},
    {.name = "top-k", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "0", .min = 0,
     .max = INT32_MAX,
     .help = "keep the K most probable tokens after the softmax; 0 keeps all; implies --logits"},
    {.name = "top-p", .kind = DSC_OPTION_REAL, .metavar = "P", .initial = "1", .least = 1e-9,
     .most = 1,
     .help = "keep the most probable tokens with total probability P after the softmax; implies "
             "--logits"},
};
// clang-format on

int cli_pair_reserve(cli_pair *p, int64_t vocab, dsc_error *err)
{
    p->vocab = vocab;
    int rc = dsc_resize(&p->draft, &p->draft_capacity, (size_t)vocab, err);
    if (!rc)
        rc = dsc_resize(&p->target, &p->target_capacity, (size_t)vocab, err);
    return rc;
}

bool cli_rows_are_logits(const dsc_option_value *value)
{
    return value[CLI_ROWS_LOGITS].given || value[CLI_ROWS_TEMPERATURE].given ||
           value[CLI_ROWS_TOP_K].given || value[CLI_ROWS_TOP_P].given;
}

int cli_rows_make_dist(const dsc_option_value *value, const char *what, double *row, int64_t vocab,
                       dsc_error *err)
{
    if (!cli_rows_are_logits(value))
        return dsc_probs_check(what, row, (size_t)vocab, value[CLI_ROWS_NORMALIZE].given, err);
    return dsc_probs_softmax(what, row, (size_t)vocab, value[CLI_ROWS_TEMPERATURE].real,
                             value[CLI_ROWS_TOP_K].integer, value[CLI_ROWS_TOP_P].real, err);
}
