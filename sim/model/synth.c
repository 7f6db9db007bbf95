// SPDX-License-Identifier: Apache-2.0
// Writes synthetic traces: samples outputs from the target and records both models along them.
#include "sim/model/synth.h"

#include "base/memory.h"
#include "base/rng.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The record of one model along the output of a request.
typedef struct record {
    dsc_model_synthetic model;
    double *dist;    // [vocab_size] the distribution at the current position
    int32_t *argmax; // [positions]
    float *entropy;  // [positions] nats
    float *logp;     // [positions] of the output's tokens
    float *tail;     // [positions] of listed rows
    int64_t *offset; // [positions + 1] of listed rows
    int32_t *token;  // listed tokens
    float *row;      // ln of their probabilities, or dense rows
    size_t argmax_capacity, entropy_capacity, logp_capacity, tail_capacity, offset_capacity,
        token_capacity, row_capacity;
    size_t listed;
    dsc_arena arena; // of all but listed tokens and rows
} record;

typedef struct synthesis {
    const dsc_synth *o;
    record record[DSC_SIDES]; // the draft's is unused without one
    bool has[DSC_SIDES];
    dsc_rows_kind kind;
    int32_t *top;   // [rows] tokens of the current row, most probable first
    double *rest;   // [vocab_size] probabilities of the other tokens
    dsc_draft none; // an empty draft: every token is a step
    dsc_dist dist;  // the target's at the current position
} synthesis;

// ln p for a column; -inf is allowed, and a sum above 1 by rounding becomes 0.
static float log_mass(double p)
{
    return (float)log(fmin(p, 1));
}

// --- a position --------------------------------------------------------------------------------

static int grow_position(record *r, int64_t position, dsc_error *err)
{
    size_t need = (size_t)position + 1;
    int rc = dsc_arena_resize(&r->arena, &r->argmax, &r->argmax_capacity, need, err);
    if (!rc)
        rc = dsc_arena_resize(&r->arena, &r->entropy, &r->entropy_capacity, need, err);
    if (!rc)
        rc = dsc_arena_resize(&r->arena, &r->logp, &r->logp_capacity, need, err);
    if (!rc)
        rc = dsc_arena_resize(&r->arena, &r->tail, &r->tail_capacity, need, err);
    return rc ? rc : dsc_arena_resize(&r->arena, &r->offset, &r->offset_capacity, need + 1, err);
}

// Logarithms dominate the cost, and all tokens that never occurred share one probability.
static void describe(record *r, int32_t vocab, int64_t position)
{
    int32_t best = 0;
    double entropy = 0, last = 0, term = 0;
    for (int32_t x = 0; x < vocab; x++) {
        double p = r->dist[x];
        if (p != last)
            term = p > 0 ? p * log(p) : 0;
        last = p;
        entropy -= term;
        if (p > r->dist[best])
            best = x;
    }
    r->argmax[position] = best;
    r->entropy[position] = (float)fmax(entropy, 0);
}

// Finds the most probable tokens of the distribution, and in *tail the mass of the other tokens.
static size_t find_top(synthesis *s, double *tail)
{
    const size_t n = dsc_dist_top(&s->dist, (size_t)s->o->rows, s->rest, s->top);
    *tail = 0;
    for (size_t i = 0; i < n; i++)
        s->rest[s->top[i]] = 0;
    for (int32_t x = 0; x < s->dist.vocab_size; x++)
        *tail += s->rest[x];
    return n;
}

static int add_row(synthesis *s, record *r, int64_t position, dsc_error *err)
{
    size_t n = (size_t)s->o->load.target->vocab_size;
    double tail = 0;
    if (s->kind == DSC_ROWS_LISTED)
        n = find_top(s, &tail);
    int rc = dsc_resize(&r->token, &r->token_capacity, r->listed + n, err);
    if (!rc)
        rc = dsc_resize(&r->row, &r->row_capacity, r->listed + n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        const int32_t x = s->kind == DSC_ROWS_DENSE ? (int32_t)i : s->top[i];
        r->token[r->listed + i] = x;
        r->row[r->listed + i] = log_mass(r->dist[x]);
    }
    r->tail[position] = log_mass(tail);
    r->listed += n;
    r->offset[position + 1] = (int64_t)r->listed;
    return DSC_OK;
}

// Reads the distributions of both models at the position, and records what does not depend on the
// token.
static int look(synthesis *s, int64_t position, dsc_error *err)
{
    int rc = DSC_OK;
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        record *r = &s->record[side];
        if (!s->has[side])
            continue;
        rc = r->model.base.type->score(&r->model.base, &s->none, err);
        if (!rc) // the target comes last
            rc = r->model.base.type->dist(&r->model.base, -1, &s->dist, err);
        if (!rc)
            rc = grow_position(r, position, err);
        if (rc)
            return rc;
        dsc_dist_fill(&s->dist, r->dist);
        describe(r, s->dist.vocab_size, position);
        if (s->kind != DSC_ROWS_NONE)
            rc = add_row(s, r, position, err);
    }
    return rc;
}

// --- a request ---------------------------------------------------------------------------------

static int begin(synthesis *s, int64_t request, dsc_token_view *prompt, dsc_error *err)
{
    const dsc_synth *o = s->o;
    int rc = dsc_workload_prompt(o->load.target, request, o->load.prompt_tokens, prompt, err);
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        record *r = &s->record[side];
        if (!s->has[side])
            continue;
        rc = dsc_model_synthetic_begin(&r->model,
                                       side == DSC_SIDE_TARGET ? o->load.target : o->load.draft,
                                       *prompt, o->load.max_tokens, o->load.temperature, err);
        r->model.request = request;
        r->listed = 0;
        if (!rc)
            rc = grow_position(r, 0, err);
        if (!rc)
            r->offset[0] = 0;
    }
    return rc;
}

// Samples the next token of the output.
static int emit(synthesis *s, int64_t request, dsc_error *err)
{
    dsc_model *target = &s->record[DSC_SIDE_TARGET].model.base;
    int64_t position = target->length;
    int rc = look(s, position, err);
    if (rc)
        return rc;
    double u = dsc_rng_uniform(s->o->seed, (uint64_t)request, (uint32_t)position, DSC_RNG_OUTPUT);
    int32_t token = dsc_dist_sample(&s->dist, u);
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        record *r = &s->record[side];
        if (!s->has[side])
            continue;
        r->logp[position] = log_mass(r->dist[token]);
        rc = r->model.base.type->commit(&r->model.base, &token, 1, err);
    }
    return rc;
}

static dsc_rows rows_of(const synthesis *s, const record *r)
{
    if (s->kind == DSC_ROWS_NONE)
        return (dsc_rows){0};
    return (dsc_rows){.kind = s->kind,
                      .offset = r->offset,
                      .token = r->token,
                      .logp = r->row,
                      .tail = r->tail,
                      .vocab_size = s->o->load.target->vocab_size};
}

static int write_request(synthesis *s, dsc_trace_writer *w, int64_t request, dsc_token_view prompt,
                         dsc_error *err)
{
    const record *target = &s->record[DSC_SIDE_TARGET];
    char id[32];
    int n = snprintf(id, sizeof id, "%" PRId64, request);
    dsc_request_input q = {
        .id = {id, n},
        .prompt = prompt,
        .output = {target->model.base.output, target->model.base.length},
        .target_logp = target->logp,
        .draft_logp = s->record[DSC_SIDE_DRAFT].logp,
    };
    for (int side = 0; side < DSC_SIDES; side++) {
        const record *r = &s->record[side];
        if (!s->has[side])
            continue;
        q.rows[side] = rows_of(s, r);
        q.replayed.argmax[side] = r->argmax;
        q.replayed.entropy[side] = r->entropy;
    }
    return dsc_trace_writer_add(w, &q, err);
}

// --- all of them -------------------------------------------------------------------------------

static int init(synthesis *s, dsc_error *err)
{
    const size_t vocab = (size_t)s->o->load.target->vocab_size;
    dsc_arena *arena = &s->record[DSC_SIDE_TARGET].arena;
    int rc = dsc_arena_new(arena, &s->top, (size_t)s->o->rows, err);
    if (!rc)
        rc = dsc_arena_new(arena, &s->rest, vocab, err);
    for (int side = 0; side < DSC_SIDES && !rc; side++)
        rc = dsc_arena_new(arena, &s->record[side].dist, vocab, err);
    return rc;
}

static void fini(synthesis *s)
{
    for (int side = 0; side < DSC_SIDES; side++) {
        record *r = &s->record[side];
        dsc_model_synthetic_fini(&r->model);
        dsc_arena_fini(&r->arena);
        free(r->token);
        free(r->row);
    }
}

static int open_writer(const synthesis *s, dsc_trace_writer **w, const char *path, dsc_error *err)
{
    const dsc_language *target = s->o->load.target;
    dsc_trace_info info = {
        .tokenizer_name = target->tokenizer_name ? target->tokenizer_name : "none",
        .vocab_size = target->vocab_size,
        .eos_token = target->end_token,
        .has_target_logp = true,
        .has_draft_logp = s->has[DSC_SIDE_DRAFT],
        .format = "synth",
        .provenance = (char *)s->o->provenance,
    };
    for (int side = 0; side < DSC_SIDES; side++) {
        info.rows[side] = s->has[side] ? s->kind : DSC_ROWS_NONE;
        info.has_argmax[side] = info.has_entropy[side] = s->has[side];
    }
    if (target->tokenizer_sha256)
        snprintf(info.tokenizer_sha256, sizeof info.tokenizer_sha256, "%s",
                 target->tokenizer_sha256);
    return dsc_trace_writer_open(w, path, &info, s->o->force, 0, err);
}

static int run(synthesis *s, dsc_trace_writer *w, dsc_error *err)
{
    const dsc_synth *o = s->o;
    int rc = DSC_OK;
    for (int64_t request = 0; request < o->load.requests && !rc; request++) {
        dsc_token_view prompt;
        rc = begin(s, request, &prompt, err);
        while (!rc && !s->record[DSC_SIDE_TARGET].model.base.ended)
            rc = emit(s, request, err);
        if (!rc)
            rc = write_request(s, w, request, prompt, err);
        if (!rc && o->progress && o->progress(o->user, request + 1, o->load.requests))
            rc = dsc_fail(err, DSC_EINTERRUPT,
                          "interrupted after %" PRId64 " requests: nothing was written",
                          request + 1);
    }
    return rc;
}

int dsc_synthesize(const dsc_synth *o, const char *path, dsc_error *err)
{
    synthesis s = {.o = o,
                   .has = {[DSC_SIDE_DRAFT] = o->load.draft != NULL, [DSC_SIDE_TARGET] = true}};
    dsc_trace_writer *w = NULL;
    int rc = dsc_workload_check(&o->load, 0, err);
    if (rc)
        return rc;
    s.kind = o->rows == 0                            ? DSC_ROWS_NONE
             : o->rows >= o->load.target->vocab_size ? DSC_ROWS_DENSE
                                                     : DSC_ROWS_LISTED;
    rc = init(&s, err);
    if (!rc)
        rc = open_writer(&s, &w, path, err);
    if (!rc)
        rc = run(&s, w, err);
    if (!rc) {
        rc = dsc_trace_writer_commit(w, NULL, err);
        w = NULL; // freed, also on failure
    }
    dsc_trace_writer_abort(w);
    fini(&s);
    return rc;
}
