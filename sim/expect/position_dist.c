// SPDX-License-Identifier: Apache-2.0
// The data that replays several drafts at a recorded position: which of the trace's statistics or
// rows are there, the probability of the output's token, and the distributions that the rule
// computes from them (sim/replay_dist.h).
#include "sim/expect/position_dist.h"

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

int dsc_position_source_find(dsc_position_source *out, const dsc_trace_info *info,
                             const dsc_verifier_type *rule, int drafts, dsc_error *err)
{
    const char *column = rule->replay_dist->column;
    bool logp = info->has_draft_logp && info->has_target_logp;
    const bool *has = (const bool *)((const char *)info + rule->replay_dist->recorded);
    bool recorded = *has && logp;
    *out = (dsc_position_source){.rule = rule,
                                 .drafts = drafts,
                                 .recorded = recorded && info->statistics_k >= drafts,
                                 .statistics_k = info->statistics_k,
                                 .vocab_size = info->vocab_size};
    if (drafts > DSC_POSITION_DRAFTS)
        return dsc_fail(err, DSC_EUSAGE,
                        "rule %s is replayed with at most %d drafts at a position, not with %d",
                        rule->name, DSC_POSITION_DRAFTS, drafts);
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

static int fail_excluded(int64_t position, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "position %" PRId64 ": the output's token has no probability in the target's "
                    "row",
                    position);
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
                        "position %" PRId64 ": neither a column nor a row contains the %s's "
                        "probability of the output's token",
                        position, side == DSC_SIDE_DRAFT ? "draft" : "target");
    return side == DSC_SIDE_TARGET && !isfinite(*logp) ? fail_excluded(position, err) : DSC_OK;
}

// --- the distributions --------------------------------------------------------------------------

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
                        "several drafts need; record more tokens or dense rows (--logprobs dense)",
                        position, side == DSC_SIDE_DRAFT ? "draft" : "target");
    double sum = 0;
    for (size_t x = 0; x < vocab; x++)
        sum += room->row[side][x];
    for (size_t x = 0; x < vocab; x++)
        room->row[side][x] /= sum;
    return DSC_OK;
}

int dsc_position_rows(dsc_position_room *room, const dsc_request *q, int64_t position, size_t vocab,
                      dsc_error *err)
{
    for (dsc_model_side side = 0; side < DSC_SIDES; side++) {
        int rc = fill_row(q, side, position, vocab, room, err);
        if (rc)
            return rc;
    }
    return room->row[DSC_SIDE_TARGET][q->output.id[position]] > 0 ? DSC_OK
                                                                  : fail_excluded(position, err);
}

static int dists_of_rows(const dsc_position_source *source, const dsc_request *q, int64_t position,
                         dsc_position_room *room, double *dist, dsc_error *err)
{
    const size_t vocab = (size_t)source->vocab_size;
    double y[DSC_SIDES];
    int rc = dsc_position_rows(room, q, position, vocab, err);
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++)
        y[side] = room->row[side][q->output.id[position]];
    return rc ? rc
              : source->rule->replay_dist->from_rows(room, vocab, y, source->drafts, dist, err);
}

int dsc_position_dists(const dsc_position_source *source, const dsc_request *q, int64_t position,
                       dsc_position_room *room, double *dist, dsc_error *err)
{
    if (!source->recorded)
        return dists_of_rows(source, q, position, room, dist, err);
    const double y[DSC_SIDES] = {[DSC_SIDE_DRAFT] = exp((double)q->draft_logp[position]),
                                 [DSC_SIDE_TARGET] =
                                     fmax(exp((double)q->target_logp[position]), 1e-300)};
    source->rule->replay_dist->from_statistics(&q->sufficient, position, source->statistics_k, y,
                                               source->drafts, dist);
    return DSC_OK;
}
