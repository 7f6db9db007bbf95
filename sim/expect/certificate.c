// SPDX-License-Identifier: Apache-2.0
// The certificate of a trace: position by position, then means with intervals over requests.
#include "sim/expect/certificate.h"

#include "base/threads.h"
#include "sim/expect/position_dist.h"
#include "theory/gbv.h"
#include "theory/otm.h"
#include "theory/single.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// The rules of a certificate, in the order of its sums: rejection, block, the GBVs, the bounds of
// one token.
enum { REJECTION, BLOCK, FIRST_PATHS, RULES = FIRST_PATHS + 2 * DSC_CERTIFICATE_PATHS };

static const double SAME = 1e-9; // two acceptances that differ by less are equal

// The values of c: powers of 2^(1/4) from 2^-8 to 2^8.
enum { GRID = 65 };

// Probabilities of the sets A = {target/draft <= c} of paths of i + 1 tokens that end at a
// position, [i][c], where the text before it is the output's.
typedef struct path_masses {
    double draft[GRID], target[GRID];
} path_masses;

// One position: the output's token there, and what rules accept at one token whatever it is.
typedef struct place {
    dsc_path_token token;
    double rule[RULES];
} place;

// Sums over the requests, for the interval of a ratio of totals.
typedef struct request_sums {
    double sum, square, cross; // of the request's accepted tokens; with its number of positions
} request_sums;

typedef struct collector {
    dsc_certificate *out;
    const int *paths;
    size_t count;
    int length, threads;
    size_t vocab;
    place *place;        // [capacity] of the request at hand
    path_masses *masses; // [masses_capacity] of the same, [position][length]
    size_t capacity, masses_capacity;
    dsc_position_room *room; // [threads]
    dsc_gbv_order *order;    // [threads]
    request_sums sums[RULES][DSC_CERTIFICATE_LENGTH];
    double squares[DSC_CERTIFICATE_LENGTH];      // of the numbers of positions
    path_masses half[2][DSC_CERTIFICATE_LENGTH]; // sums over the even and over the odd requests
    int64_t ends[2][DSC_CERTIFICATE_LENGTH];     // their numbers of paths
    int64_t requests;
} collector;

// --- a position ----------------------------------------------------------------------------------

static double overlap_of(const double *a, const double *b, size_t vocab)
{
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        sum += fmin(a[x], b[x]);
    return sum;
}

static int look_at_token(const collector *c, const dsc_request *q, int64_t at, int thread,
                         dsc_error *err)
{
    dsc_position_room *room = &c->room[thread];
    const int32_t y = q->output.id[at];
    int rc = dsc_position_rows(room, q, at, c->vocab, err);
    if (rc)
        return rc;
    const double *draft = room->row[DSC_SIDE_DRAFT], *target = room->row[DSC_SIDE_TARGET];
    c->place[at].token = (dsc_path_token){
        draft[y], target[y], draft[y] > 0 ? dsc_gbv_lower(draft, target, c->vocab, y) : 0};
    return DSC_OK;
}

// Paths whose beginning is this much more probable under the draft model are left out of A, because
// a rare one would outweigh all others in the mean.
static const double HEAVIEST = 4;

// The masses of paths whose last token is at this position, whatever it is.
static void add_masses(const collector *c, const dsc_curve *curve, int64_t at)
{
    double ratio = 1; // target/draft of the i tokens of the output before the position
    for (int i = 0; i < c->length && i <= at; i++) {
        path_masses *m = &c->masses[at * c->length + i];
        for (int g = 0; g < GRID; g++) {
            const size_t n = ratio * HEAVIEST < 1
                                 ? 0
                                 : dsc_curve_count(curve, exp2((g - GRID / 2) / 4.0) / ratio);
            m->draft[g] = curve->draft_below[n] / ratio;
            m->target[g] = curve->target_below[n];
        }
        if (i < at && i + 1 < c->length) {
            const dsc_path_token *t = &c->place[at - i - 1].token;
            ratio = t->draft > 0 ? ratio * (t->target / t->draft) : INFINITY;
        }
    }
}

static int look_at_rules(const collector *c, const dsc_request *q, int64_t at, int thread,
                         dsc_error *err)
{
    dsc_position_room *room = &c->room[thread];
    double *rule = c->place[at].rule, *dist = NULL;
    dsc_curve curve = {0};
    int rc = dsc_position_rows(room, q, at, c->vocab, err);
    if (rc)
        return rc;
    const double *draft = room->row[DSC_SIDE_DRAFT], *target = room->row[DSC_SIDE_TARGET];
    rule[REJECTION] = rule[BLOCK] = overlap_of(draft, target, c->vocab);
    rc = dsc_new(&dist, c->vocab, err);
    if (!rc)
        rc = dsc_curve_init(&curve, draft, target, c->vocab, err);
    if (!rc)
        add_masses(c, &curve, at);
    for (size_t k = 0; k < c->count && !rc; k++) {
        rc = dsc_gbv_dist(&c->order[thread], dsc_gbv_root(), draft, target, c->vocab, c->paths[k],
                          dist, err);
        if (rc)
            break;
        rule[FIRST_PATHS + k] = overlap_of(dist, target, c->vocab);
        rule[FIRST_PATHS + DSC_CERTIFICATE_PATHS + k] = dsc_otm_value(&curve, c->paths[k]).accept;
    }
    dsc_curve_fini(&curve);
    free(dist);
    return rc;
}

typedef int (*looker)(const collector *c, const dsc_request *q, int64_t at, int thread,
                      dsc_error *err);

// All positions in parallel. The first error in the order of positions is reported.
static int look_at_all(collector *c, const dsc_request *q, looker look, dsc_error *err)
{
    int64_t failed = q->output.count;
    int rc = DSC_OK;
#pragma omp parallel for schedule(dynamic, 4) num_threads(c->threads)
    for (int64_t i = 0; i < q->output.count; i++) {
        dsc_error problem;
        const int bad = look(c, q, i, omp_get_thread_num(), &problem);
        if (bad) {
#pragma omp critical(draftscope_certificate)
            if (i < failed) {
                failed = i;
                rc = bad;
                *err = problem;
            }
        }
    }
    return rc;
}

// --- a request -----------------------------------------------------------------------------------

static void compare(const collector *c, const double *rule)
{
    dsc_certificate *o = c->out;
    for (size_t k = 0; k < c->count; k++) {
        const double gbv = rule[FIRST_PATHS + k],
                     bound = rule[FIRST_PATHS + DSC_CERTIFICATE_PATHS + k];
        o->gbv[k][0].below += gbv < rule[BLOCK] - SAME;
        o->gbv[k][0].above += gbv > bound + SAME;
        o->block[0].above += k == 0 && rule[BLOCK] > bound + SAME;
        o->rejection[0].above += k == 0 && rule[REJECTION] > bound + SAME;
    }
}

// Adds what every rule accepts of drafts at one position, by length, to sum[rule][length]. The
// first token's acceptance is that over all tokens, which has no sampling noise, in place of that
// given the output's.
static void replay(const collector *c, const dsc_path_token *token, int most, const double *first,
                   double sum[RULES][DSC_CERTIFICATE_LENGTH])
{
    double reach[DSC_CERTIFICATE_LENGTH], alone = 0, whole = 0, product = 1;
    dsc_gbv_replay(token, most, 1, reach);
    for (int i = 0; i < most; i++) {
        product *= dsc_single_given(token[i].draft, token[i].target);
        c->out->rejection[i].below += product < reach[i] - SAME;
        c->out->block[i].below += product > reach[i] + SAME;
        alone += i ? product : first[REJECTION];
        whole += i ? reach[i] : first[BLOCK];
        sum[REJECTION][i] += alone;
        sum[BLOCK][i] += whole;
    }
    for (size_t k = 0; k < c->count; k++) {
        double accepted = 0;
        dsc_gbv_replay(token, most, c->paths[k], reach);
        for (int i = 0; i < most; i++)
            sum[FIRST_PATHS + k][i] += accepted += i ? reach[i] : first[FIRST_PATHS + k];
    }
}

// Adds the bound of every number of paths at one position, by length. The first i + 1 tokens y are
// accepted only where they are the output, P(y), and a path drafts them, 1 - (1 - Q(y))^K, so no
// rule accepts them with a probability above min(1, (1 - (1 - Q(y))^K) / P(y)) given that y, whose
// mean over outputs bounds the rule's; what follows y may shift it at one position.
// The first token's bound is the exact one.
static void add_bounds(const collector *c, const dsc_path_token *token, int most,
                       const double *first, double sum[RULES][DSC_CERTIFICATE_LENGTH])
{
    const int from = FIRST_PATHS + DSC_CERTIFICATE_PATHS;
    for (int k = 0; k < (int)c->count; k++) {
        double draft = 1, target = 1, accepted = 0;
        for (int i = 0; i < most; i++) {
            draft *= token[i].draft;
            target *= token[i].target;
            const double drafted = -expm1(c->paths[k] * log1p(-fmin(draft, 1)));
            const double given = drafted < target ? drafted / target : 1;
            sum[from + k][i] += accepted += i ? given : first[from + k];
        }
    }
}

static void add_halves(collector *c, int64_t at)
{
    const int odd = c->requests % 2;
    for (int i = 0; i < c->length && i <= at; i++) {
        const path_masses *m = &c->masses[at * c->length + i];
        path_masses *sum = &c->half[odd][i];
        c->ends[odd][i]++;
        for (int g = 0; g < GRID; g++) {
            sum->draft[g] += m->draft[g];
            sum->target[g] += m->target[g];
        }
    }
}

static int visit(void *context, const dsc_request *q, dsc_error *err)
{
    collector *c = context;
    double sum[RULES][DSC_CERTIFICATE_LENGTH] = {{0}};
    const int64_t n = q->output.count;
    dsc_path_token token[DSC_CERTIFICATE_LENGTH];
    int rc = dsc_resize(&c->place, &c->capacity, (size_t)n, err);
    if (!rc)
        rc = dsc_resize(&c->masses, &c->masses_capacity, (size_t)n * (size_t)c->length, err);
    if (!rc)
        rc = look_at_all(c, q, look_at_token, err);
    if (!rc)
        rc = look_at_all(c, q, look_at_rules, err);
    for (int64_t s = 0; s < n && !rc; s++) {
        const int most = n - s < c->length ? (int)(n - s) : c->length;
        for (int i = 0; i < most; i++)
            token[i] = c->place[s + i].token;
        compare(c, c->place[s].rule);
        replay(c, token, most, c->place[s].rule, sum);
        add_bounds(c, token, most, c->place[s].rule, sum);
        add_halves(c, s);
        for (int i = 0; i < most; i++)
            c->out->positions[i]++;
    }
    for (int i = 0; i < c->length && i < n && !rc; i++) {
        const double m = (double)(n - i);
        c->squares[i] += m * m;
        for (int r = 0; r < RULES; r++) {
            request_sums *a = &c->sums[r][i];
            a->sum += sum[r][i];
            a->square += sum[r][i] * sum[r][i];
            a->cross += sum[r][i] * m;
        }
    }
    c->requests += n > 0;
    return rc ? dsc_error_prefix(err, rc, "request %" PRId64, q->index) : DSC_OK;
}

// --- the means -----------------------------------------------------------------------------------

static void finish_mean(const collector *c, int rule, int i, dsc_certified *to)
{
    const request_sums *a = &c->sums[rule][i];
    const double n = (double)c->out->positions[i], requests = (double)c->requests;
    const double mean = a->sum / n;
    const double variance = (a->square - 2 * mean * a->cross + mean * mean * c->squares[i]) / n / n;
    to->accepted = mean;
    to->half =
        requests > 1 ? 1.96 * sqrt(fmax(variance, 0) * requests / (requests - 1)) : (double)NAN;
}

// Q(A)^K - P(A) of one half of the requests, with the c that is the best for the other half.
static double excess_of(const collector *c, int i, bool odd, int paths)
{
    double most = 0, there = 0;
    for (int g = 0; g < GRID; g++) {
        double value[2];
        for (int h = 0; h < 2; h++) {
            const double n = (double)c->ends[h][i];
            value[h] =
                pow(fmin(c->half[h][i].draft[g] / n, 1), paths) - c->half[h][i].target[g] / n;
        }
        if (value[!odd] > most) {
            most = value[!odd];
            there = value[odd];
        }
    }
    return there;
}

// The bound of the first i + 1 tokens in the mean, 1 where there is none.
static double bound_of(const collector *c, int i, int paths)
{
    const double even = (double)c->ends[0][i], odd = (double)c->ends[1][i];
    if (!(even > 0 && odd > 0))
        return 1;
    const double excess =
        (even * excess_of(c, i, false, paths) + odd * excess_of(c, i, true, paths)) / (even + odd);
    return 1 - fmax(excess, 0);
}

static void finish(collector *c)
{
    dsc_certificate *o = c->out;
    double step[DSC_CERTIFICATE_PATHS]; // a bound of the acceptance of the first i + 1 tokens
    for (int i = 0; i < c->length && o->positions[i]; i++) {
        finish_mean(c, REJECTION, i, &o->rejection[i]);
        finish_mean(c, BLOCK, i, &o->block[i]);
        for (size_t k = 0; k < c->count; k++) {
            dsc_certified *b = o->bound[k];
            finish_mean(c, FIRST_PATHS + (int)k, i, &o->gbv[k][i]);
            finish_mean(c, FIRST_PATHS + DSC_CERTIFICATE_PATHS + (int)k, i, &b[i]);
            step[k] = i ? fmin(bound_of(c, i, c->paths[k]), step[k]) : b[0].accepted;
            if (i && b[i - 1].accepted + step[k] < b[i].accepted)
                b[i] = (dsc_certified){.accepted = b[i - 1].accepted + step[k], .half = NAN};
        }
    }
}

// --- the trace -----------------------------------------------------------------------------------

static int check(const dsc_trace_info *info, const int *paths, size_t count, int length,
                 dsc_error *err)
{
    if (length < 1 || length > DSC_CERTIFICATE_LENGTH || !count || count > DSC_CERTIFICATE_PATHS)
        return dsc_fail(err, DSC_EUSAGE,
                        "drafts of 1 to %d tokens and 1 to %d numbers of sequences can be compared",
                        DSC_CERTIFICATE_LENGTH, DSC_CERTIFICATE_PATHS);
    for (size_t k = 0; k < count; k++)
        if (paths[k] < 1 || paths[k] > 64)
            return dsc_fail(err, DSC_EUSAGE, "number of sequences %d is not from 1 to 64",
                            paths[k]);
    if (info->rows[DSC_SIDE_DRAFT] == DSC_ROWS_NONE || info->rows[DSC_SIDE_TARGET] == DSC_ROWS_NONE)
        return dsc_fail(err, DSC_EUSAGE,
                        "the trace lacks the distributions of both models; record them with "
                        "draftscope live record --logprobs dense");
    return DSC_OK;
}

int dsc_certify(dsc_certificate *out, const dsc_trace *trace, const int *paths, size_t count,
                int length, int threads, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    collector *c;
    *out = (dsc_certificate){.positions = {0}};
    int rc = check(info, paths, count, length, err);
    if (!rc)
        rc = dsc_new(&c, 1, err);
    if (rc)
        return rc;
    *c = (collector){.out = out,
                     .paths = paths,
                     .count = count,
                     .length = length,
                     .threads = threads,
                     .vocab = (size_t)info->vocab_size};
    rc = dsc_new(&c->room, (size_t)threads, err);
    if (!rc)
        rc = dsc_new(&c->order, (size_t)threads, err);
    if (!rc)
        rc = dsc_trace_each(trace, visit, c, err);
    if (!rc)
        finish(c);
    for (int t = 0; t < threads && c->room; t++)
        dsc_position_room_fini(&c->room[t]);
    for (int t = 0; t < threads && c->order; t++)
        dsc_gbv_order_fini(&c->order[t]);
    free(c->room);
    free(c->order);
    free(c->place);
    free(c->masses);
    free(c);
    return rc;
}
