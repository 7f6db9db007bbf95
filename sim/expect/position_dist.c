// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/position_dist.h"

#include "theory/kseq.h"
#include "theory/specinfer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void dsc_position_room_fini(dsc_position_room *r)
{
    free(r->row[DSC_SIDE_DRAFT]);
    free(r->row[DSC_SIDE_TARGET]);
    dsc_otm_sampler_free(r->otm);
    *r = (dsc_position_room){0};
}

// --- what is recorded ----------------------------------------------------------------------------

const char *dsc_position_column(const dsc_verifier_type *rule)
{
    return rule == &dsc_verifier_kseq        ? "kseq"
           : rule == &dsc_verifier_specinfer ? "specinfer"
           : rule == &dsc_verifier_otm       ? "otm"
                                             : NULL;
}

static bool has_column(const dsc_trace_info *info, const dsc_verifier_type *rule)
{
    return rule == &dsc_verifier_kseq        ? info->has_kseq
           : rule == &dsc_verifier_specinfer ? info->has_specinfer
                                             : info->has_otm;
}

int dsc_position_source_find(dsc_position_source *out, const dsc_trace_info *info,
                             const dsc_verifier_type *rule, int drafts, dsc_error *err)
{
    const char *column = dsc_position_column(rule);
    bool logp = info->has_draft_logp && info->has_target_logp;
    bool recorded = has_column(info, rule) && logp;
    *out = (dsc_position_source){.rule = rule,
                                 .drafts = drafts,
                                 .recorded = recorded && info->statistics_k >= drafts,
                                 .statistics_k = info->statistics_k,
                                 .vocab_size = info->vocab_size};
    if (drafts > DSC_POSITION_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE, "%d drafts at a position: rule %s is replayed with %d",
                        drafts, rule->name, DSC_POSITION_DRAFTS);
    if (out->recorded || (info->rows[DSC_SIDE_DRAFT] && info->rows[DSC_SIDE_TARGET]))
        return DSC_OK;
    if (recorded)
        return dsc_fail(
            err, DSC_EUSAGE,
            "column %s of the trace goes up to %" PRId32 " drafts, not to %d: "
            "run draftscope trace reduce --num-drafts %d on the trace with log-probabilities",
            column, info->statistics_k, drafts, drafts);
    return dsc_fail(err, DSC_EUSAGE,
                    "the trace lacks per-token probabilities for rule %s with %d drafts (column "
                    "%s%s): record them with live record --logprobs, or run trace reduce "
                    "--num-drafts %d on such a trace",
                    rule->name, drafts, column, logp ? "" : ", draft_logp and target_logp", drafts);
}

int dsc_position_logp(const dsc_request *q, dsc_model_side side, int64_t position, double *logp,
                      dsc_error *err)
{
    const float *column = side == DSC_SIDE_DRAFT ? q->draft_logp : q->target_logp;
    int32_t y = q->output.id[position];
    dsc_row row;
    *logp = column ? (double)column[position] : (double)-INFINITY;
    bool known = column != NULL;
    if (!known && dsc_request_row(q, side, position, &row)) {
        double mass = exp((double)row.tail);
        known = !row.token || row.tail == -INFINITY;
        for (int64_t i = 0; i < row.count; i++) {
            double x = (double)dsc_row_logp(&row, i);
            mass += exp(x);
            if ((row.token ? row.token[i] : i) == y) {
                *logp = x;
                known = true;
            }
        }
        *logp -= log(mass);
    }
    if (!known)
        return dsc_fail(err, DSC_EINPUT,
                        "position %" PRId64 ": neither a column nor a row says how likely the "
                        "output's token was to the %s",
                        position, side == DSC_SIDE_DRAFT ? "draft" : "target");
    if (side == DSC_SIDE_TARGET && !isfinite(*logp))
        return dsc_fail(err, DSC_EINPUT,
                        "position %" PRId64 ": the output's token has no probability in the "
                        "target's row",
                        position);
    return DSC_OK;
}

// --- distributions from statistics
// ------------------------------------------------------------------------

static void dists_of_kseq(const float *rho_beta, double draft_y, double target_y, int drafts,
                          double *dist)
{
    for (int k = 1; k <= drafts; k++) {
        double rho = rho_beta[2 * k - 2], beta = rho_beta[2 * k - 1];
        dsc_kseq s = {k, rho, beta, beta < 1 ? -expm1(k * log1p(-beta)) : 1};
        dsc_kseq_survivors(&s, draft_y, target_y, dist + dsc_position_dist_at(k));
    }
}

// The curve is recorded as c; W(c_i) = c_{i+1} - c_i, and what the last round leaves is of no
// account to those before it.
static void dists_of_specinfer(const float *recorded, double draft_y, double target_y, int drafts,
                               double *dist)
{
    double c[DSC_POSITION_DRAFTS + 1], w[DSC_POSITION_DRAFTS + 1];
    for (int i = 0; i <= drafts; i++)
        c[i] = (double)recorded[i];
    for (int i = 0; i < drafts; i++)
        w[i] = c[i + 1] - c[i];
    w[drafts] = 0;
    for (int k = 1; k <= drafts; k++) {
        const dsc_specinfer s = {.k = k, .accept = 1 - w[k], .c = c, .w = w};
        dsc_specinfer_survivors(&s, draft_y, target_y, dist + dsc_position_dist_at(k));
    }
}

static void dists_of_otm(const float *recorded, int drafts, double *dist)
{
    for (size_t i = 0; i < dsc_position_dist_at(drafts + 1); i++)
        dist[i] = (double)recorded[i];
}

// --- distributions from rows
// ------------------------------------------------------------------------------

static int fill_row(const dsc_request *q, dsc_model_side side, int64_t position, size_t vocab,
                    dsc_position_room *room, dsc_error *err)
{
    dsc_row row;
    int rc = dsc_resize(&room->row[side], &room->capacity[side], vocab, err);
    if (rc)
        return rc;
    if (!dsc_request_row(q, side, position, &row) ||
        dsc_row_dist(&row, (int32_t)vocab, room->row[side]) > 0)
        return dsc_fail(err, DSC_EINPUT,
                        "position %" PRId64 ": the %s's row does not list all of its mass, which "
                        "several drafts need (record more tokens, or dense rows)",
                        position, side == DSC_SIDE_DRAFT ? "draft" : "target");
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        sum += room->row[side][x];
    for (size_t x = 0; x < vocab; x++)
        room->row[side][x] /= sum;
    return DSC_OK;
}

static int otm_of_rows(dsc_position_room *room, size_t vocab, double draft_y, double target_y,
                       int drafts, double *dist, dsc_error *err)
{
    int rc = room->otm ? DSC_OK : dsc_otm_sampler_new(&room->otm, err);
    for (int k = 1; k <= drafts && !rc; k++) {
        rc = dsc_otm_sampler_build(room->otm, room->row[DSC_SIDE_DRAFT], room->row[DSC_SIDE_TARGET],
                                   vocab, k, err);
        if (!rc)
            dsc_otm_sampler_survivors(room->otm, draft_y, target_y, dist + dsc_position_dist_at(k));
    }
    return rc;
}

static int curve_of_rows(const dsc_position_source *source, const dsc_position_room *room,
                         double draft_y, double target_y, double *dist, dsc_error *err)
{
    bool in_rounds = source->rule == &dsc_verifier_specinfer;
    size_t vocab = (size_t)source->vocab_size;
    dsc_curve curve = {0};
    dsc_specinfer rounds = {0};
    int rc =
        dsc_curve_init(&curve, room->row[DSC_SIDE_DRAFT], room->row[DSC_SIDE_TARGET], vocab, err);
    if (!rc && in_rounds)
        rc = dsc_specinfer_init(&rounds, &curve, source->drafts, err);
    for (int k = 1; k <= source->drafts && !rc; k++) {
        double *out = dist + dsc_position_dist_at(k);
        if (in_rounds) { // fewer rounds are the first ones of more
            rounds.k = k;
            dsc_specinfer_survivors(&rounds, draft_y, target_y, out);
        } else {
            dsc_kseq s = dsc_kseq_best(&curve, k);
            dsc_kseq_survivors(&s, draft_y, target_y, out);
        }
    }
    dsc_specinfer_fini(&rounds);
    dsc_curve_fini(&curve);
    return rc;
}

static int dists_of_rows(const dsc_position_source *source, const dsc_request *q, int64_t position,
                         dsc_position_room *room, double *dist, dsc_error *err)
{
    int32_t y = q->output.id[position];
    size_t vocab = (size_t)source->vocab_size;
    for (dsc_model_side side = 0; side < DSC_SIDES; side++) {
        int rc = fill_row(q, side, position, vocab, room, err);
        if (rc)
            return rc;
    }
    double draft_y = room->row[DSC_SIDE_DRAFT][y], target_y = room->row[DSC_SIDE_TARGET][y];
    if (!(target_y > 0))
        return dsc_fail(err, DSC_EINPUT,
                        "position %" PRId64 ": the output's token has no probability in the "
                        "target's row",
                        position);
    return source->rule == &dsc_verifier_otm
               ? otm_of_rows(room, vocab, draft_y, target_y, source->drafts, dist, err)
               : curve_of_rows(source, room, draft_y, target_y, dist, err);
}

int dsc_position_dists(const dsc_position_source *source, const dsc_request *q, int64_t position,
                       dsc_position_room *room, double *dist, dsc_error *err)
{
    if (!source->recorded)
        return dists_of_rows(source, q, position, room, dist, err);
    const dsc_sufficient *s = &q->sufficient;
    int64_t K = source->statistics_k;
    double draft_y = exp((double)q->draft_logp[position]);
    double target_y = fmax(exp((double)q->target_logp[position]), 1e-300);
    if (source->rule == &dsc_verifier_kseq)
        dists_of_kseq(s->kseq + position * 2 * K, draft_y, target_y, source->drafts, dist);
    else if (source->rule == &dsc_verifier_specinfer)
        dists_of_specinfer(s->specinfer + position * (K + 1), draft_y, target_y, source->drafts,
                           dist);
    else
        dists_of_otm(dsc_sufficient_otm(s, source->statistics_k, position, 1), source->drafts,
                     dist);
    return DSC_OK;
}
