// SPDX-License-Identifier: Apache-2.0
#include "cli/theory/theory_rows.h"

#include "cli/theory/theory_source.h"
#include "theory/law.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
const dsc_option cli_rows_options[CLI_ROWS_OPTIONS] = {
    {.name = "bernoulli", .kind = DSC_OPTION_TEXT, .metavar = "P,Q[,Q...]",
     .help = "Ber(P) drafts for Ber(Q), a pair for each Q (SpecTr App. B)"},
    {.name = "uniform", .kind = DSC_OPTION_TEXT, .metavar = "D,R[,R...]",
     .help = "U(D) drafts for U(D/R), a pair for each R, which divides D (SpecTr App. B)"},
    {.name = "zipf", .kind = DSC_OPTION_TEXT, .metavar = "V,S,NOISE",
     .help = "V tokens: draft ~ rank^-S, target ~ draft exp(NOISE z), z normal"},
    {.name = "seed", .kind = DSC_OPTION_INT, .metavar = "S", .initial = "0", .min = 0,
     .max = INT64_MAX, .help = "zipf: seed of z"},
    {.name = "draft", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "draft laws, a row each: .npy, .csv, FILE.safetensors:TENSOR"},
    {.name = "target", .kind = DSC_OPTION_TEXT, .metavar = "FILE",
     .help = "target laws, as many rows"},
    {.name = "rows", .kind = DSC_OPTION_INT, .metavar = "LIST", .min = 0, .max = INT64_MAX,
     .list = true, .help = "files: which rows, from 0, as in 0:9,20; all when not given"},
    {.name = "trace", .kind = DSC_OPTION_TEXT, .metavar = "TRACE",
     .help = "laws recorded in a trace, a pair for each output token"},
    {.name = "request", .kind = DSC_OPTION_INT, .metavar = "I", .min = 0, .max = INT64_MAX,
     .help = "trace: which request, from 0"},
    {.name = "position", .kind = DSC_OPTION_INT, .metavar = "J", .min = 0, .max = INT64_MAX,
     .help = "trace: which output token of the request, from 0; all when not given"},
    {.name = "normalize", .kind = DSC_OPTION_FLAG,
     .help = "divide each row by its sum; without, a sum must be within 1e-4 of 1"},
    {.name = "logits", .kind = DSC_OPTION_FLAG,
     .help = "rows are logits, or ln of probabilities: softmax first"},
    {.name = "temperature", .kind = DSC_OPTION_REAL, .metavar = "T", .initial = "1", .least = 0,
     .most = 1e6, .help = "softmax at this temperature, 0: the largest only; implies --logits"},
    {.name = "top-k", .kind = DSC_OPTION_INT, .metavar = "K", .initial = "0", .min = 0,
     .max = INT32_MAX,
     .help = "then only the K most probable tokens, 0: all; implies --logits"},
    {.name = "top-p", .kind = DSC_OPTION_REAL, .metavar = "P", .initial = "1", .least = 1e-9,
     .most = 1,
     .help = "then only the most probable tokens that reach mass P; implies --logits"},
};
// clang-format on

// --- pairs -----------------------------------------------------------------------------------

int cli_pair_reserve(cli_pair *p, int64_t vocab, dsc_error *err)
{
    p->vocab = vocab;
    if ((size_t)vocab <= p->capacity)
        return DSC_OK;
    free(p->draft);
    free(p->target);
    p->draft = p->target = NULL;
    p->capacity = 0;
    int rc = dsc_alloc((void **)&p->draft, (size_t)vocab, sizeof *p->draft, err);
    if (!rc)
        rc = dsc_alloc((void **)&p->target, (size_t)vocab, sizeof *p->target, err);
    if (!rc)
        p->capacity = (size_t)vocab;
    return rc;
}

void cli_pair_fini(cli_pair *p)
{
    free(p->draft);
    free(p->target);
    cli_listed_free(p->listed);
    *p = (cli_pair){0};
}

bool cli_rows_are_logits(const dsc_option_value *value)
{
    return value[CLI_ROWS_LOGITS].given || value[CLI_ROWS_TEMPERATURE].given ||
           value[CLI_ROWS_TOP_K].given || value[CLI_ROWS_TOP_P].given;
}

int cli_rows_make_law(const dsc_option_value *value, const char *what, double *row, int64_t vocab,
                      dsc_error *err)
{
    if (!cli_rows_are_logits(value))
        return dsc_law_check(what, row, (size_t)vocab, value[CLI_ROWS_NORMALIZE].given, err);
    return dsc_law_softmax(what, row, (size_t)vocab, value[CLI_ROWS_TEMPERATURE].real,
                           value[CLI_ROWS_TOP_K].integer, value[CLI_ROWS_TOP_P].real, err);
}

// --- choice of the source --------------------------------------------------------------------

static const struct {
    int option; // that names the source
    int (*open)(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err);
    uint32_t goes_with; // bits of the other options that make sense with it
} sources[] = {
    {CLI_ROWS_BERNOULLI, cli_open_bernoulli, 0},
    {CLI_ROWS_UNIFORM, cli_open_uniform, 0},
    {CLI_ROWS_ZIPF, cli_open_zipf, 1u << CLI_ROWS_SEED},
    {CLI_ROWS_DRAFT, cli_open_files,
     1u << CLI_ROWS_TARGET | 1u << CLI_ROWS_ROWS | 1u << CLI_ROWS_NORMALIZE |
         1u << CLI_ROWS_LOGITS | 1u << CLI_ROWS_TEMPERATURE | 1u << CLI_ROWS_TOP_K |
         1u << CLI_ROWS_TOP_P},
    {CLI_ROWS_TRACE, cli_open_trace,
     1u << CLI_ROWS_REQUEST | 1u << CLI_ROWS_POSITION | 1u << CLI_ROWS_NORMALIZE |
         1u << CLI_ROWS_LOGITS | 1u << CLI_ROWS_TEMPERATURE | 1u << CLI_ROWS_TOP_K |
         1u << CLI_ROWS_TOP_P},
};
enum { SOURCES = sizeof sources / sizeof *sources };

static int choose_source(const dsc_option_value *value, int *source, dsc_error *err)
{
    *source = -1;
    for (int s = 0; s < SOURCES; s++) {
        if (!value[sources[s].option].given)
            continue;
        if (*source >= 0)
            return dsc_fail(err, DSC_EUSAGE, "--%s and --%s: one source of laws is expected",
                            cli_rows_options[sources[*source].option].name,
                            cli_rows_options[sources[s].option].name);
        *source = s;
    }
    if (*source < 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "laws expected: --draft FILE --target FILE, --trace TRACE, --bernoulli "
                        "P,Q, --uniform D,R or --zipf V,S,NOISE");
    for (int o = 0; o < CLI_ROWS_OPTIONS; o++)
        if (value[o].given && o != sources[*source].option &&
            !(sources[*source].goes_with & 1u << o))
            return dsc_fail(err, DSC_EUSAGE, "--%s does not go with --%s", cli_rows_options[o].name,
                            cli_rows_options[sources[*source].option].name);
    if (value[CLI_ROWS_NORMALIZE].given && cli_rows_are_logits(value))
        return dsc_fail(err, DSC_EUSAGE, "--normalize is for probabilities, not for logits");
    return DSC_OK;
}

int cli_rows_open(cli_rows **out, const dsc_option_value *value, bool all, dsc_error *err)
{
    int source;
    *out = NULL;
    int rc = choose_source(value, &source, err);
    if (!rc)
        rc = dsc_alloc((void **)out, 1, sizeof **out, err);
    if (rc)
        return rc;
    (*out)->value = value;
    rc = sources[source].open(*out, value, all, err);
    if (rc) {
        cli_rows_close(*out);
        *out = NULL;
    }
    return rc;
}

void cli_rows_close(cli_rows *r)
{
    if (!r)
        return;
    if (r->close)
        r->close(r->state);
    free(r);
}

int64_t cli_rows_count(const cli_rows *r)
{
    return r->count;
}

int cli_rows_comments(const cli_rows *r, dsc_table *t, dsc_error *err)
{
    return r->comments ? r->comments(r, t, err) : DSC_OK;
}

int cli_rows_read(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    return r->read(r, i, p, err);
}
