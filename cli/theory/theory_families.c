// SPDX-License-Identifier: Apache-2.0
// Parametric families of draft and target distributions: --bernoulli P,Q,... and --uniform D,R,...
// (SpecTr, Sun et al. 2023, App. B), and --zipf V,S,NOISE. The densities are in theory/probs.h.
#include "cli/theory/theory_closed.h"
#include "cli/theory/theory_rows.h"
#include "theory/probs.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 24 };

// --- reading the numbers -------------------------------------------------------------------------

// The numbers of an option, of which the last may be a list.
typedef struct family {
    dsc_option number[3]; // [numbers]
    int numbers;
    bool list;
    int (*read)(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err); // the state is the numbers
} family;

static int open_family(cli_rows *r, const char *text, const family *f, dsc_error *err)
{
    double *all = NULL;
    size_t capacity = 0, count = 0;
    int rc = DSC_OK;
    r->read = f->read;
    r->close = free;
    for (int i = 0; i < f->numbers && !rc; i++) {
        const dsc_option *o = &f->number[i];
        const bool last = i + 1 == f->numbers;
        const size_t n = last ? strlen(text) : strcspn(text, ","), before = count;
        if (!last && !text[n])
            return dsc_fail(err, DSC_EUSAGE, "--%s: '%.60s' has too few values; give %s", o->name,
                            text, o->metavar);
        rc = cli_theory_append(o, text, n, &all, &capacity, &count, err);
        r->state = all;
        if (!rc && count > before + 1 && !(last && f->list))
            rc = dsc_fail(err, DSC_EUSAGE, "--%s: '%.*s' is not one number; give %s", o->name,
                          n < 60 ? (int)n : 60, text, o->metavar);
        text += n + 1;
    }
    r->count = f->list ? (int64_t)count - f->numbers + 1 : 1;
    return rc;
}

// --- Bernoulli: the state is P, Q, Q, ... -------------------------------------------------------

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

#define BERNOULLI .name = "bernoulli", .kind = DSC_OPTION_REAL, .metavar = "P,Q[,Q...]"

int cli_open_bernoulli(cli_rows *r, dsc_error *err)
{
    static const family bernoulli = {
        .number = {{BERNOULLI, .most = 1}, {BERNOULLI, .most = 1}},
        .numbers = 2,
        .list = true,
        .read = read_bernoulli,
    };
    return open_family(r, r->value[CLI_ROWS_BERNOULLI].text, &bernoulli, err);
}

// --- uniform: the state is D, R, R, ... ---------------------------------------------------------

static int read_uniform(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    const double *d = r->state;
    int rc = cli_pair_reserve(p, (int64_t)d[0], err);
    if (rc)
        return rc;
    snprintf(p->label, sizeof p->label, "U(%.0f) to U(%.0f/%.0f)", d[0], d[0], d[1 + i]);
    dsc_probs_uniform((size_t)d[0], (size_t)d[1 + i], p->draft, p->target);
    p->whole = true;
    return DSC_OK;
}

#define UNIFORM                                                                                    \
    .name = "uniform", .kind = DSC_OPTION_INT, .metavar = "D,R[,R...]", .min = 1, .max = MOST_TOKENS

int cli_open_uniform(cli_rows *r, dsc_error *err)
{
    static const family uniform = {
        .number = {{UNIFORM}, {UNIFORM}}, .numbers = 2, .list = true, .read = read_uniform};
    int rc = open_family(r, r->value[CLI_ROWS_UNIFORM].text, &uniform, err);
    const double *d = r->state;
    for (int64_t i = 0; i < r->count && !rc; i++)
        if ((int64_t)d[0] % (int64_t)d[1 + i])
            rc = dsc_fail(err, DSC_EUSAGE, "--uniform: %.0f does not divide %.0f", d[1 + i], d[0]);
    return rc;
}

// --- Zipf: the state is V, S, NOISE -------------------------------------------------------------

static int read_zipf(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    (void)i;
    const double *z = r->state;
    int rc = cli_pair_reserve(p, (int64_t)z[0], err);
    if (rc)
        return rc;
    // No commas: the value of --where pair=... ends at one.
    snprintf(p->label, sizeof p->label, "zipf(%.0f %.10g %.10g)", z[0], z[1], z[2]);
    dsc_probs_zipf((size_t)z[0], z[1], z[2], (uint64_t)r->value[CLI_ROWS_SEED].integer, p->draft,
                   p->target);
    p->whole = true;
    return DSC_OK;
}

static int comment_seed(const cli_rows *r, dsc_table *t, dsc_error *err)
{
    return dsc_table_comment(t, "seed", r->value[CLI_ROWS_SEED].text, err);
}

#define ZIPF .name = "zipf", .metavar = "V,S,NOISE"

int cli_open_zipf(cli_rows *r, dsc_error *err)
{
    static const family zipf = {
        .number = {{ZIPF, .kind = DSC_OPTION_INT, .min = 1, .max = MOST_TOKENS},
                   {ZIPF, .kind = DSC_OPTION_REAL, .most = 100},
                   {ZIPF, .kind = DSC_OPTION_REAL, .most = 100}},
        .numbers = 3,
        .read = read_zipf,
    };
    r->comments = comment_seed;
    return open_family(r, r->value[CLI_ROWS_ZIPF].text, &zipf, err);
}
