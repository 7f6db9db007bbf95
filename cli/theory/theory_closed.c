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

static int hazards_of_histogram(cli_laws *l, const double *rounds, size_t bins, dsc_error *err)
{
    int length = (int)bins - 1, rc = DSC_OK;
    dsc_hazard_count *count = NULL;
    if (length < 1 || length > DSC_BLOCK_LONGEST)
        return dsc_fail(err, DSC_EUSAGE, "--histogram: %zu counts; from 2 to %d are expected", bins,
                        DSC_BLOCK_LONGEST + 1);
    rc = dsc_alloc((void **)&count, (size_t)length, sizeof *count, err);
    if (!rc)
        rc = dsc_alloc((void **)&l->hazard, (size_t)length, sizeof *l->hazard, err);
    for (int m = 0; m <= length && !rc; m++)
        rc = rounds[m] == floor(rounds[m])
                 ? dsc_hazard_add(count, length, m, length, (int64_t)rounds[m], err)
                 : dsc_fail(err, DSC_EUSAGE, "--histogram: %g is not a count", rounds[m]);
    for (int j = 0; j < length && !rc; j++) {
        if (!count[j].at_risk)
            rc = dsc_fail(err, DSC_EUSAGE,
                          "--histogram: no round reached position %d, so nothing is known of it",
                          j + 1);
        l->hazard[j] = dsc_hazard_rate(&count[j]);
    }
    l->hazards = length;
    free(count);
    return rc;
}

int cli_laws_init(cli_laws *l, const dsc_option_value *alpha, const dsc_option_value *hazard,
                  const dsc_option_value *histogram, dsc_error *err)
{
    static const dsc_option rates = CLI_OPTION_ALPHA;
    double *rounds = NULL;
    size_t n;
    if (alpha->given + hazard->given + histogram->given != 1)
        return dsc_fail(err, DSC_EUSAGE, "one of --alpha, --hazard and --histogram is expected");
    int rc = DSC_OK;
    l->count = 1;
    if (alpha->given) {
        rc = dsc_option_reals(&rates, alpha->text, &l->alpha, &l->count, err);
    } else if (hazard->given) {
        rc = cli_theory_vector("hazard", hazard->text, 0, 1, &l->hazard, &n, err);
        if (!rc && n > DSC_BLOCK_LONGEST)
            rc = dsc_fail(err, DSC_EUSAGE, "--hazard: more than %d values", DSC_BLOCK_LONGEST);
        l->hazards = rc ? 0 : (int)n;
    } else {
        rc = cli_theory_vector("histogram", histogram->text, 0, 1e15, &rounds, &n, err);
        if (!rc)
            rc = hazards_of_histogram(l, rounds, n, err);
        free(rounds);
    }
    if (rc)
        cli_laws_fini(l);
    return rc;
}

void cli_laws_fini(cli_laws *l)
{
    free(l->alpha);
    free(l->hazard);
    *l = (cli_laws){0};
}

dsc_block_law cli_laws_at(const cli_laws *l, size_t i)
{
    return (dsc_block_law){l->hazard ? NAN : l->alpha[i], l->hazard, l->hazards};
}

double cli_laws_iid(const cli_laws *l)
{
    double accepted = 0, reach = 1;
    for (int j = 0; j < l->hazards; j++)
        accepted += reach *= l->hazard[j];
    return dsc_iid_rate(accepted, l->hazards);
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
        rc = dsc_alloc((void **)out, n * m, sizeof **out, err);
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
    dsc_option_set set = {h->option, h->options, value, false, NULL};
    *done = cli_asks_help(argc, argv);
    if (*done) {
        cli_theory_print_help(h);
        return DSC_OK;
    }
    int rc = dsc_options_parse(&set, 1, argc, argv, &words, err);
    return rc ? rc : cli_check_positionals(words, 0, 0, "no argument but options", err);
}
