// SPDX-License-Identifier: Apache-2.0
// Selects the source of the pairs of distributions from the options, and refuses options that the
// selected source does not have.
#include "cli/theory/theory_rows.h"

#include "cli/theory/theory_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void cli_pair_fini(cli_pair *p)
{
    free(p->draft);
    free(p->target);
    cli_listed_free(p->listed);
    *p = (cli_pair){0};
}

// --- choice of the source --------------------------------------------------------------------

static const struct {
    int option; // selects the source
    int (*open)(cli_rows *r, dsc_error *err);
    uint32_t goes_with; // bits of the other options that the source has
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
            return dsc_fail(err, DSC_EUSAGE,
                            "--%s and --%s cannot be combined: give one source of distributions",
                            cli_rows_options[sources[*source].option].name,
                            cli_rows_options[sources[s].option].name);
        *source = s;
    }
    if (*source < 0)
        return dsc_fail(
            err, DSC_EUSAGE,
            "no distributions given: add --draft FILE --target FILE, --trace TRACE, --bernoulli "
            "P,Q, --uniform D,R or --zipf V,S,NOISE");
    for (int o = 0; o < CLI_ROWS_OPTIONS; o++)
        if (value[o].given && o != sources[*source].option &&
            !(sources[*source].goes_with & 1u << o))
            return dsc_fail(err, DSC_EUSAGE, "--%s and --%s cannot be combined",
                            cli_rows_options[o].name,
                            cli_rows_options[sources[*source].option].name);
    if (value[CLI_ROWS_NORMALIZE].given && cli_rows_are_logits(value))
        return dsc_fail(
            err, DSC_EUSAGE,
            "--normalize applies to probabilities, not to logits: a softmax is already normalized");
    return DSC_OK;
}

int cli_rows_open(cli_rows **out, const dsc_option_value *value, bool all, dsc_error *err)
{
    int source;
    *out = NULL;
    int rc = choose_source(value, &source, err);
    if (!rc)
        rc = dsc_new(out, 1, err);
    if (rc)
        return rc;
    **out = (cli_rows){.value = value, .all = all};
    rc = sources[source].open(*out, err);
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
