// SPDX-License-Identifier: Apache-2.0
// Reduction in two passes. The first finds the columns that all rows determine, because a trace has
// a column for every request or for none; it reads lists only, because dense rows determine every
// column. The second computes the columns, positions in parallel.
#include "sim/reduce/reduce.h"

#include "base/threads.h"
#include "sim/reduce/reduce_columns.h"
#include "traces/trace/trace_copy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const side_name[DSC_SIDES] = {"draft", "target"};

// The columns that rows can determine.
enum { ARGMAX, ENTROPY = 2, RANK = 4, DISTS, COLUMNS };
static const char *const column_name[COLUMNS] = {"draft_argmax",  "target_argmax",
                                                 "draft_entropy", "target_entropy",
                                                 "draft_rank",    "kseq, specinfer, otm"};

// One per thread.
typedef struct worker {
    float *dist[DSC_SIDES]; // [vocab_size] of lists
    dsc_sufficient_work *work;
    int64_t failed; // the first position that failed, or -1
    dsc_error error;
} worker;

typedef struct reduction {
    const dsc_trace *in;
    const dsc_trace_info *info;
    const dsc_reduce *o;
    bool makes[COLUMNS];
    int32_t rank_depth;
    worker *worker;  // [threads]
    dsc_arena arena; // of c
    dsc_reduced c;   // of one request
    dsc_request_copy copy;
    dsc_trace_writer *out;
    int64_t done; // output tokens
} reduction;

// --- the first pass ------------------------------------------------------------------------------

static void leave_open(reduction *r, int column, int64_t request, int64_t position)
{
    static const bool dist[COLUMNS] = {[ENTROPY] = true, [ENTROPY + 1] = true, [DISTS] = true};
    const dsc_trace_info *info = r->info;
    const bool recorded[COLUMNS] = {info->has_argmax[0],  info->has_argmax[1],
                                    info->has_entropy[0], info->has_entropy[1],
                                    info->has_draft_rank, info->statistics_k > 0};
    char message[512];
    if (!r->makes[column])
        return;
    r->makes[column] = false;
    if (!r->o->note)
        return;
    snprintf(message, sizeof message,
             "%s: %s, because %s at request %" PRId64 ", position %" PRId64, column_name[column],
             recorded[column] ? "kept as recorded" : "left out",
             dist[column] ? "unlisted mass leaves an interval of values"
                          : "an unlisted token may be more probable",
             request, position);
    r->o->note(r->o->user, message);
}

// The log-probability of token y, from its row or else as recorded. NAN: unknown.
static double logp_of(const dsc_request *q, int side, int64_t j, const dsc_row_facts *f)
{
    const float *recorded = side == DSC_SIDE_DRAFT ? q->draft_logp : q->target_logp;
    return f->has_logp_y ? f->logp_y : recorded ? (double)recorded[j] : (double)NAN;
}

static int check_logp(const reduction *r, const dsc_request *q, int side, int64_t j, double logp,
                      dsc_error *err)
{
    if (isnan(logp))
        return dsc_fail(err, DSC_EINPUT,
                        "%.300s: request %" PRId64 ", position %" PRId64
                        ": the %s's row does not list the output's token %" PRId32
                        ", so its probability is unknown",
                        dsc_trace_path(r->in), q->index, j, side_name[side], q->output.id[j]);
    if (side == DSC_SIDE_TARGET && logp == -INFINITY)
        return dsc_fail(err, DSC_EINPUT,
                        "%.300s: request %" PRId64 ", position %" PRId64
                        ": the output's token %" PRId32 " has no probability in the target's row",
                        dsc_trace_path(r->in), q->index, j, q->output.id[j]);
    return DSC_OK;
}

static int survey_position(reduction *r, const dsc_request *q, int64_t j, dsc_error *err)
{
    int rc = DSC_OK;
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        dsc_row row;
        dsc_row_facts f;
        if (!dsc_request_row(q, (dsc_model_side)side, j, &row) || !row.token)
            continue;
        dsc_row_read_listed(&row, q->output.id[j], &f);
        bool whole = dsc_row_is_whole(&row, r->info->vocab_size);
        if (!f.has_argmax)
            leave_open(r, ARGMAX + side, q->index, j);
        if (!whole) {
            leave_open(r, ENTROPY + side, q->index, j);
            leave_open(r, DISTS, q->index, j);
        }
        if (side == DSC_SIDE_DRAFT && !f.has_rank_y)
            leave_open(r, RANK, q->index, j);
        rc = check_logp(r, q, side, j, logp_of(q, side, j, &f), err);
    }
    return rc;
}

static int survey_request(void *user, const dsc_request *q, dsc_error *err)
{
    int rc = DSC_OK;
    for (int64_t j = 0; j < q->output.count && !rc; j++)
        rc = survey_position(user, q, j, err);
    return rc;
}

// --- a position ----------------------------------------------------------------------------------

// A position's row of one side.
typedef struct side_row {
    bool dense;
    dsc_log_row log;
    dsc_row_source source;
    dsc_row_facts facts; // of a dense row known after log was read
    double at_y;         // the value of the output's token, in the unit of the row
} side_row;

static int take_row(const reduction *r, worker *w, const dsc_request *q, int side, int64_t j,
                    side_row *out, dsc_error *err)
{
    int32_t y = q->output.id[j];
    dsc_row row;
    dsc_request_row(q, (dsc_model_side)side, j, &row);
    *out = (side_row){.dense = !row.token};
    double logp;
    if (out->dense) {
        dsc_row_dense(&row, y, &out->log);
        out->source.log = &out->log;
        logp = (double)dsc_row_logp(&row, y);
        out->at_y = exp(logp);
    } else {
        dsc_row_read_listed(&row, y, &out->facts);
        if (dsc_row_is_whole(&row, r->info->vocab_size))
            dsc_row_spread_listed(&row, r->info->vocab_size, w->dist[side], &out->facts);
        out->source.dist = w->dist[side];
        logp = logp_of(q, side, j, &out->facts);
        out->at_y = exp(logp) * out->facts.mass;
    }
    return check_logp(r, q, side, j, logp, err);
}

// Computes the distributions of both rows and, if they are determined, the statistics, in one pass.
static int read_rows(const reduction *r, worker *w, int64_t j, side_row *row, dsc_error *err)
{
    const side_row *draft = &row[DSC_SIDE_DRAFT], *target = &row[DSC_SIDE_TARGET];
    if (r->makes[DISTS])
        return dsc_reduced_dists(&r->c, j, &draft->source, &target->source,
                                 (size_t)r->info->vocab_size, draft->at_y, target->at_y, w->work,
                                 err);
    for (int side = 0; side < DSC_SIDES; side++)
        if (row[side].dense)
            dsc_log_row_read(&row[side].log);
    return DSC_OK;
}

static int reduce_position(const reduction *r, worker *w, const dsc_request *q, int64_t j,
                           dsc_error *err)
{
    side_row row[DSC_SIDES];
    int rc = DSC_OK;
    for (int side = 0; side < DSC_SIDES && !rc; side++)
        rc = take_row(r, w, q, side, j, &row[side], err);
    if (!rc)
        rc = read_rows(r, w, j, row, err);
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        dsc_row_facts *f = &row[side].facts;
        if (row[side].dense)
            dsc_row_dense_facts(&row[side].log, f);
        dsc_reduced_keep(&r->c, side, j, logp_of(q, side, j, f), f);
    }
    return rc;
}

// --- a request -----------------------------------------------------------------------------------

// The failure of the earliest position, independent of the threads.
static int first_failure(const reduction *r, dsc_error *err)
{
    const worker *first = NULL;
    for (int t = 0; t < r->o->threads; t++) {
        const worker *w = &r->worker[t];
        if (w->failed >= 0 && (!first || w->failed < first->failed))
            first = w;
    }
    if (!first)
        return DSC_OK;
    if (err)
        *err = first->error;
    return first->error.status;
}

static int reduce_positions(reduction *r, const dsc_request *q, dsc_error *err)
{
    int64_t n = q->output.count;
    dsc_arena_reset(&r->arena);
    int rc = dsc_reduced_init(&r->c, r->o->K, r->rank_depth, (size_t)n, &r->arena, err);
    if (rc)
        return rc;
#pragma omp parallel for schedule(dynamic) num_threads(r->o->threads) if (n > 1)
    for (int64_t j = 0; j < n; j++) {
        worker *w = &r->worker[omp_get_thread_num()];
        if (w->failed < 0 && reduce_position(r, w, q, j, &w->error))
            w->failed = j;
    }
    dsc_reduced_spread_ranks(&r->c, n);
    return first_failure(r, err);
}

static void put_columns(const reduction *r, dsc_request_input *q)
{
    const dsc_reduced *c = &r->c;
    q->target_logp = c->logp[DSC_SIDE_TARGET];
    q->draft_logp = c->logp[DSC_SIDE_DRAFT];
    for (int side = 0; side < DSC_SIDES; side++) {
        if (r->makes[ARGMAX + side])
            q->replayed.argmax[side] = c->argmax[side];
        if (r->makes[ENTROPY + side])
            q->replayed.entropy[side] = c->entropy[side];
    }
    if (r->makes[RANK])
        q->replayed.draft_rank = c->ranks;
    if (r->makes[DISTS])
        q->sufficient = (dsc_sufficient){c->kseq, c->specinfer, c->otm};
}

static int reduce_request(void *user, const dsc_request *q, dsc_error *err)
{
    reduction *r = user;
    dsc_request_input written;
    int rc = reduce_positions(r, q, err);
    if (!rc)
        rc = dsc_request_copy_view(&r->copy, q, &written, err);
    if (rc)
        return rc;
    put_columns(r, &written);
    rc = dsc_trace_writer_add(r->out, &written, err);
    r->done += q->output.count;
    if (!rc && r->o->progress && r->o->progress(r->o->user, r->done, r->info->output_tokens))
        rc = dsc_fail(err, DSC_EINTERRUPT, "interrupted: nothing was written");
    return rc;
}

// --- all of them ---------------------------------------------------------------------------------

static int open_writer(reduction *r, const char *path, dsc_error *err)
{
    dsc_trace_info info = *r->info;
    info.has_target_logp = info.has_draft_logp = true;
    for (int side = 0; side < DSC_SIDES; side++) {
        info.has_argmax[side] |= r->makes[ARGMAX + side];
        info.has_entropy[side] |= r->makes[ENTROPY + side];
        if (!r->o->keep_rows)
            info.rows[side] = DSC_ROWS_NONE;
    }
    if (r->makes[RANK]) {
        info.has_draft_rank = true;
        info.rank_depth = r->rank_depth;
    }
    if (r->makes[DISTS]) {
        info.has_kseq = info.has_specinfer = info.has_otm = true;
        info.statistics_k = r->o->K;
    }
    if (r->o->provenance)
        info.provenance = (char *)(uintptr_t)r->o->provenance;
    return dsc_trace_writer_open(&r->out, path, &info, r->o->force, 0, err);
}

static int start_workers(reduction *r, dsc_error *err)
{
    size_t vocab = (size_t)r->info->vocab_size;
    int rc = dsc_new(&r->worker, (size_t)r->o->threads, err);
    for (int t = 0; t < r->o->threads && !rc; t++) {
        worker *w = &r->worker[t];
        w->failed = -1;
        for (int side = 0; side < DSC_SIDES && !rc; side++)
            if (r->info->rows[side] == DSC_ROWS_LISTED)
                rc = dsc_new(&w->dist[side], vocab, err);
        if (!rc)
            rc = dsc_sufficient_work_new(&w->work, err);
    }
    return rc;
}

static void fini(reduction *r)
{
    for (int t = 0; r->worker && t < r->o->threads; t++) {
        worker *w = &r->worker[t];
        free(w->dist[DSC_SIDE_DRAFT]);
        free(w->dist[DSC_SIDE_TARGET]);
        dsc_sufficient_work_free(w->work);
    }
    free(r->worker);
    dsc_arena_fini(&r->arena);
    dsc_request_copy_fini(&r->copy);
    dsc_trace_writer_abort(r->out);
}

static int check(const reduction *r, dsc_error *err)
{
    const dsc_reduce *o = r->o;
    if (o->K < 1 || o->K > DSC_STATISTICS_K_MAX || o->rank_depth < 0 || o->rank_depth > 65535 ||
        o->threads < 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "statistics are for 1 to %d drafts, and ranks are 1 to 65535 deep",
                        DSC_STATISTICS_K_MAX);
    for (int side = 0; side < DSC_SIDES; side++)
        if (r->info->rows[side] == DSC_ROWS_NONE)
            return dsc_fail(err, DSC_EINPUT, "%.300s: the rows of the %s are not recorded",
                            dsc_trace_path(r->in), side_name[side]);
    return DSC_OK;
}

int dsc_reduce_trace(const dsc_trace *in, const char *out, const dsc_reduce *o, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(in);
    reduction r = {.in = in, .info = info, .o = o};
    r.rank_depth = o->rank_depth ? o->rank_depth : 1;
    for (int c = 0; c < COLUMNS; c++)
        r.makes[c] = c != RANK || o->rank_depth || !info->has_draft_rank;
    int rc = check(&r, err);
    if (!rc && (info->rows[0] == DSC_ROWS_LISTED || info->rows[1] == DSC_ROWS_LISTED))
        rc = dsc_trace_each(in, survey_request, &r, err);
    if (!rc)
        rc = start_workers(&r, err);
    if (!rc)
        rc = open_writer(&r, out, err);
    if (!rc)
        rc = dsc_trace_each(in, reduce_request, &r, err);
    if (!rc) {
        rc = dsc_trace_writer_commit(r.out, NULL, err);
        r.out = NULL; // freed, also on failure
    }
    fini(&r);
    return rc;
}
