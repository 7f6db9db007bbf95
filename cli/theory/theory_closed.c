// SPDX-License-Identifier: Apache-2.0
#include "cli/theory/theory_closed.h"

#include <stdlib.h>
#include <string.h>

static int append_item(const dsc_option *o, const char *item, size_t length, double **out,
                       size_t *capacity, size_t *count, dsc_error *err)
{
    char *text = NULL;
    double *value = NULL;
    size_t values;
    int rc = dsc_strndup(&text, item, length, err);
    if (!rc)
        rc = dsc_option_reals(o, text, &value, &values, err);
    if (!rc) {
        void *p = *out;
        rc = dsc_grow(&p, capacity, *count + values, sizeof **out, err);
        *out = p;
    }
    for (size_t i = 0; !rc && i < values; i++)
        (*out)[(*count)++] = value[i];
    free(text);
    free(value);
    return rc;
}

int cli_theory_vector(const char *option, const char *text, double least, double most, double **out,
                      size_t *count, dsc_error *err)
{
    dsc_option o = {.name = option, .kind = DSC_OPTION_REAL, .least = least, .most = most};
    size_t capacity = 0;
    int rc = DSC_OK;
    *out = NULL;
    *count = 0;
    for (bool more = true; more && !rc;) {
        size_t n = strcspn(text, ",");
        rc = append_item(&o, text, n, out, &capacity, count, err);
        more = text[n] == ',';
        text += n + more;
    }
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

static int conditional_rates_of_histogram(cli_acceptance *l, const double *rounds, size_t bins,
                                          dsc_error *err)
{
    int length = (int)bins - 1, rc = DSC_OK;
    dsc_conditional_count *count = NULL;
    if (length < 1 || length > DSC_BLOCK_LONGEST)
        return dsc_fail(err, DSC_EUSAGE, "--histogram: %zu counts; from 2 to %d are expected", bins,
                        DSC_BLOCK_LONGEST + 1);
    rc = dsc_new(&count, (size_t)length, err);
    if (!rc)
        rc = dsc_new(&l->conditional_rate, (size_t)length, err);
    for (int m = 0; m <= length && !rc; m++)
        rc = rounds[m] == floor(rounds[m])
                 ? dsc_conditional_add(count, length, m, length, (int64_t)rounds[m], err)
                 : dsc_fail(err, DSC_EUSAGE, "--histogram: %g is not a count", rounds[m]);
    for (int j = 0; j < length && !rc; j++) {
        if (!count[j].at_risk)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "--histogram: no round reached position %d, so nothing is known of it",
                          j + 1);
        l->conditional_rate[j] = dsc_conditional_rate(&count[j]);
    }
    l->conditional_rates = length;
    free(count);
    return rc;
}

int cli_acceptance_init(cli_acceptance *l, const dsc_option_value *alpha,
                        const dsc_option_value *conditional_rate, const dsc_option_value *histogram,
                        dsc_error *err)
{
    static const dsc_option rates = CLI_OPTION_ALPHA;
    double *rounds = NULL;
    size_t n;
    if (alpha->given + conditional_rate->given + histogram->given != 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "one of --alpha, --acceptance-by-position and --histogram is expected");
    int rc = DSC_OK;
    l->count = 1;
    if (alpha->given) {
        rc = dsc_option_reals(&rates, alpha->text, &l->alpha, &l->count, err);
    } else if (conditional_rate->given) {
        rc = cli_theory_vector("acceptance-by-position", conditional_rate->text, 0, 1,
                               &l->conditional_rate, &n, err);
        if (!rc && n > DSC_BLOCK_LONGEST)
            rc = dsc_fail(err, DSC_EUSAGE, "--acceptance-by-position: more than %d values",
                          DSC_BLOCK_LONGEST);
        l->conditional_rates = rc ? 0 : (int)n;
    } else {
        rc = cli_theory_vector("histogram", histogram->text, 0, 1e15, &rounds, &n, err);
        if (!rc)
            rc = conditional_rates_of_histogram(l, rounds, n, err);
        free(rounds);
    }
    if (rc)
        cli_acceptance_fini(l);
    return rc;
}

void cli_acceptance_fini(cli_acceptance *l)
{
    free(l->alpha);
    free(l->conditional_rate);
    *l = (cli_acceptance){0};
}

dsc_acceptance cli_acceptance_at(const cli_acceptance *l, size_t i)
{
    return (dsc_acceptance){l->conditional_rate ? NAN : l->alpha[i], l->conditional_rate,
                            l->conditional_rates};
}

double cli_acceptance_iid(const cli_acceptance *l)
{
    double accepted = 0, reach = 1;
    for (int j = 0; j < l->conditional_rates; j++)
        accepted += reach *= l->conditional_rate[j];
    return dsc_iid_rate(accepted, l->conditional_rates);
}

int cli_theory_costs(const dsc_option_value *draft, const dsc_option_value *slope,
                     dsc_block_cost **out, size_t *count, dsc_error *err)
{
    static const dsc_option table[] = {CLI_OPTION_DRAFT_COST, CLI_OPTION_TARGET_SLOPE};
    double *drafts = NULL, *slopes = NULL;
    size_t n = 0, m = 0;
    *out = NULL;
    int rc = dsc_option_reals(&table[0], draft->text, &drafts, &n, err);
    if (!rc)
        rc = dsc_option_reals(&table[1], slope->text, &slopes, &m, err);
    if (!rc) // each list has at most a million values
        rc = dsc_new(out, n * m, err);
    *count = rc ? 0 : n * m;
    for (size_t i = 0; i < *count; i++)
        (*out)[i] = (dsc_block_cost){drafts[i / m], slopes[i % m]};
    free(drafts);
    free(slopes);
    return rc;
}

int cli_theory_begin(const cli_theory_help *h, int argc, char **argv, dsc_option_value *value,
                     bool *done, dsc_error *err)
{
    size_t words;
    dsc_option_set set = {.table = h->option, .count = h->options, .value = value};
    *done = cli_asks_help(argc, argv);
    if (*done) {
        cli_theory_print_help(h);
        return DSC_OK;
    }
    int rc = cli_parse(&set, 1, argc, argv, &words, err);
    return rc ? rc : cli_check_positionals(words, 0, 0, "no argument but options", err);
}
