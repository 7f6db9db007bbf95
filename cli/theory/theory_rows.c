// SPDX-License-Identifier: Apache-2.0
// Selects the source of the pairs of distributions from the options, and refuses options that the
// selected source does not have.
#include "cli/theory/theory_rows.h"

#include <stdlib.h>

void cli_pair_fini(cli_pair *p)
{
    free(p->draft);
    free(p->target);
    cli_listed_free(p->listed);
    *p = (cli_pair){0};
}

// --- choice of the source --------------------------------------------------------------------

// The options of how recorded distributions are read.
enum {
    READING = 1 << CLI_ROWS_NORMALIZE | 1 << CLI_ROWS_LOGITS | 1 << CLI_ROWS_TEMPERATURE |
              1 << CLI_ROWS_TOP_K | 1 << CLI_ROWS_TOP_P
};

static const struct {
    int option; // selects the source
    int (*open)(cli_rows *r, dsc_error *err);
    uint32_t goes_with; // bits of the other options that the source has
} sources[] = {
    {CLI_ROWS_BERNOULLI, cli_open_bernoulli, 0},
    {CLI_ROWS_UNIFORM, cli_open_uniform, 0},
    {CLI_ROWS_ZIPF, cli_open_zipf, 1u << CLI_ROWS_SEED},
    {CLI_ROWS_DRAFT, cli_open_files, 1u << CLI_ROWS_TARGET | 1u << CLI_ROWS_ROWS | READING},
    {CLI_ROWS_TRACE, cli_open_trace, 1u << CLI_ROWS_REQUEST | 1u << CLI_ROWS_POSITION | READING},
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

int cli_rows_open(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err)
{
    int source;
    *r = (cli_rows){.value = value, .all = all};
    int rc = choose_source(value, &source, err);
    return rc ? rc : sources[source].open(r, err);
}

void cli_rows_close(cli_rows *r)
{
    if (r->close)
        r->close(r->state);
}
