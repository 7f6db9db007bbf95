// SPDX-License-Identifier: Apache-2.0
// Parametric families of draft and target distributions: --bernoulli P,Q,... and --uniform D,R,...
// (SpecTr, Sun et al. 2023, App. B), and --zipf V,S,NOISE. The densities are in theory/probs.h.
#include "cli/theory/theory_source.h"
#include "theory/probs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 24 };

// Splits `text` at the first comma. *head is owned by the caller.
static int cut_first(const dsc_option *o, const char *text, char **head, const char **rest,
                     dsc_error *err)
{
    size_t n = strcspn(text, ",");
    *head = NULL;
    if (!text[n])
        return dsc_fail(err, DSC_EUSAGE, "--%s: '%.60s' has too few values; give %s", o->name, text,
                        o->metavar);
    *rest = text + n + 1;
    return dsc_strndup(head, text, n, err);
}

static void close_list(void *state)
{
    free(state);
}

// --- Bernoulli: the state is the list P, Q, Q, ... ----------------------------------------------

static int read_bernoulli(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    const double *b = r->state;
    int rc = cli_pair_reserve(p, 2, err);
    if (rc)
        return rc;
    snprintf(p->label, sizeof p->label, "Ber(%.10g) to Ber(%.10g)", b[0], b[1 + i]);
    dsc_probs_bernoulli(b[0], b[1 + i], p->draft, p->target);
    p->whole = true;
    return DSC_OK;
}

int cli_open_bernoulli(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err)
{
    (void)all;
    const dsc_option probability = {.name = "bernoulli",
                                    .kind = DSC_OPTION_REAL,
                                    .metavar = "P,Q[,Q...]",
                                    .least = 0,
                                    .most = 1};
    char *head;
    const char *rest;
    double *first = NULL, *others = NULL, *list = NULL;
    size_t n = 0, m = 0;
    int rc = cut_first(&probability, value[CLI_ROWS_BERNOULLI].text, &head, &rest, err);
    if (!rc)
        rc = dsc_option_reals(&probability, head, &first, &n, err);
    if (!rc && n > 1)
        rc = dsc_fail(err, DSC_EUSAGE, "--bernoulli: P must be one number, not %.60s", head);
    if (!rc)
        rc = dsc_option_reals(&probability, rest, &others, &m, err);
    if (!rc)
        rc = dsc_new(&list, m + 1, err);
    if (!rc) {
        list[0] = first[0];
        memcpy(list + 1, others, m * sizeof *list);
        *r = (cli_rows){value, (int64_t)m, list, read_bernoulli, close_list, NULL};
    }
    free(first);
    free(others);
    free(head);
    return rc;
}

// --- uniform: the state is the list D, R, R, ... ------------------------------------------------

static int read_uniform(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    const int64_t *d = r->state;
    int rc = cli_pair_reserve(p, d[0], err);
    if (rc)
        return rc;
    snprintf(p->label, sizeof p->label, "U(%" PRId64 ") to U(%" PRId64 "/%" PRId64 ")", d[0], d[0],
             d[1 + i]);
    dsc_probs_uniform((size_t)d[0], (size_t)d[1 + i], p->draft, p->target);
    p->whole = true;
    return DSC_OK;
}

int cli_open_uniform(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err)
{
    (void)all;
    dsc_option size = {.name = "uniform",
                       .kind = DSC_OPTION_INT,
                       .metavar = "D,R[,R...]",
                       .min = 1,
                       .max = MOST_TOKENS};
    char *head;
    const char *rest;
    int64_t d = 1, *others = NULL, *list = NULL;
    size_t m = 0;
    int rc = cut_first(&size, value[CLI_ROWS_UNIFORM].text, &head, &rest, err);
    if (!rc)
        rc = dsc_option_single(&size, head, &d, err);
    size.max = d;
    if (!rc)
        rc = dsc_option_list(&size, rest, &others, &m, err);
    for (size_t i = 0; i < m && !rc; i++)
        if (d % others[i])
            rc = dsc_fail(err, DSC_EUSAGE, "--uniform: %" PRId64 " does not divide %" PRId64,
                          others[i], d);
    if (!rc)
        rc = dsc_new(&list, m + 1, err);
    if (!rc) {
        list[0] = d;
        memcpy(list + 1, others, m * sizeof *list);
        *r = (cli_rows){value, (int64_t)m, list, read_uniform, close_list, NULL};
    }
    free(others);
    free(head);
    return rc;
}

// --- Zipf ------------------------------------------------------------------------------------

typedef struct zipf {
    int64_t vocab;
    double exponent, noise;
} zipf;

static int read_zipf(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    (void)i;
    const zipf *z = r->state;
    int rc = cli_pair_reserve(p, z->vocab, err);
    if (rc)
        return rc;
    // No commas: the value of --where pair=... ends at one.
    snprintf(p->label, sizeof p->label, "zipf(%" PRId64 " %.10g %.10g)", z->vocab, z->exponent,
             z->noise);
    dsc_probs_zipf((size_t)z->vocab, z->exponent, z->noise,
                   (uint64_t)r->value[CLI_ROWS_SEED].integer, p->draft, p->target);
    p->whole = true;
    return DSC_OK;
}

static int comment_seed(const cli_rows *r, dsc_table *t, dsc_error *err)
{
    return dsc_table_comment(t, "seed", r->value[CLI_ROWS_SEED].text, err);
}

int cli_open_zipf(cli_rows *r, const dsc_option_value *value, bool all, dsc_error *err)
{
    (void)all;
    const dsc_option vocab = {.name = "zipf",
                              .kind = DSC_OPTION_INT,
                              .metavar = "V,S,NOISE",
                              .min = 1,
                              .max = MOST_TOKENS};
    const dsc_option real = {.name = "zipf", .kind = DSC_OPTION_REAL, .least = 0, .most = 100};
    char *head, *middle = NULL;
    const char *rest, *last;
    double *exponent = NULL, *noise = NULL;
    size_t n = 1, m = 1;
    zipf *z = NULL;
    int rc = cut_first(&vocab, value[CLI_ROWS_ZIPF].text, &head, &rest, err);
    if (!rc)
        rc = cut_first(&vocab, rest, &middle, &last, err);
    if (!rc)
        rc = dsc_new(&z, 1, err);
    if (!rc)
        rc = dsc_option_single(&vocab, head, &z->vocab, err);
    if (!rc)
        rc = dsc_option_reals(&real, middle, &exponent, &n, err);
    if (!rc)
        rc = dsc_option_reals(&real, last, &noise, &m, err);
    if (!rc && (n > 1 || m > 1))
        rc = dsc_fail(err, DSC_EUSAGE, "--zipf: give three numbers, V,S,NOISE");
    if (!rc) {
        z->exponent = exponent[0];
        z->noise = noise[0];
        *r = (cli_rows){value, 1, z, read_zipf, close_list, comment_seed};
        z = NULL;
    }
    free(z);
    free(exponent);
    free(noise);
    free(middle);
    free(head);
    return rc;
}
