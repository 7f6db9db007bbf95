// SPDX-License-Identifier: Apache-2.0
// Cuts a trace: selects requests by index, by their metadata and by Knuth's selection sampling (The
// Art of Computer Programming 3.4.2, algorithm S), then cuts the columns of each to its first
// tokens.
#include "traces/trace/trace_cut.h"

#include "base/rng.h"
#include "traces/trace/trace_copy.h"
#include "traces/trace/trace_groups.h"
#include "traces/trace/trace_manifest.h"
#include "base/json_file.h"
#include "base/json_text.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct cutter {
    const dsc_cut *cut;
    const dsc_join_options *o;
    dsc_trace *trace;
    uint8_t *keeps; // [requests]
    int64_t kept;
    dsc_trace_writer *writer;
    dsc_request_copy copy; // also has the cut columns of one request
    int64_t done;
} cutter;

// --- which requests ----------------------------------------------------------------------------

static int choose(cutter *c, dsc_error *err)
{
    const dsc_cut *cut = c->cut;
    int64_t n = c->trace->info.requests;
    int rc = dsc_new(&c->keeps, (size_t)n, err);
    if (rc)
        return rc;
    if (!cut->request)
        memset(c->keeps, 1, (size_t)n);
    for (size_t i = 0; cut->request && i < cut->requests; i++) {
        if (cut->request[i] < 0 || cut->request[i] >= n)
            return dsc_fail(err, DSC_EUSAGE,
                            "request %" PRId64 " does not exist: %s has %" PRId64
                            " requests, counted from 0",
                            cut->request[i], c->trace->path, n);
        c->keeps[cut->request[i]] = 1;
    }
    for (size_t i = 0; i < cut->wheres && !rc; i++)
        rc = dsc_trace_where(c->trace, cut->where[i], c->keeps, err);
    for (int64_t i = 0; i < n; i++)
        c->kept += c->keeps[i];
    if (!rc && cut->wheres && n && !c->kept)
        return dsc_fail(err, DSC_EUSAGE, "no request of %s is selected and fulfills all conditions",
                        c->trace->path);
    return rc;
}

// Each request in turn stays with probability (still wanted) / (still to come), which makes all
// samples equally likely. The random number is keyed by the request's index.
static int draw_sample(cutter *c, dsc_error *err)
{
    int64_t wanted = c->cut->sample, to_come = c->kept;
    if (!wanted)
        return DSC_OK;
    if (wanted < 0 || wanted > to_come || to_come > UINT32_MAX)
        return dsc_fail(err, DSC_EUSAGE,
                        "cannot sample %" PRId64 " requests out of %" PRId64
                        ": the sample must be 1 to the number of requests",
                        wanted, to_come);
    c->kept = wanted;
    for (int64_t i = 0; i < c->trace->info.requests; i++) {
        if (!c->keeps[i])
            continue;
        uint32_t x =
            dsc_rng_below(c->cut->seed, (uint64_t)i, 0, DSC_RNG_SAMPLE, (uint32_t)to_come--);
        c->keeps[i] = x < wanted;
        wanted -= c->keeps[i];
    }
    return DSC_OK;
}

// --- the columns of one request ----------------------------------------------------------------

// The steps wrote the output, except the first token if it is the prefill's (dsc_steps_kind).
static int cut_steps(cutter *c, int64_t tokens, dsc_request_input *q, dsc_error *err)
{
    dsc_steps *s = &q->steps;
    int64_t all = 0, left = tokens, kept = 0;
    uint16_t *accepted;
    int rc = dsc_arena_new(&c->copy.arena, &accepted, (size_t)s->count, err);
    if (rc)
        return rc;
    for (int64_t i = 0; i < s->count; i++)
        all += (int64_t)s->accepted[i] + 1;
    left -= q->output.count > all; // the prefill's token
    for (; kept < s->count && left > 0; kept++) {
        int64_t most = left - 1;
        accepted[kept] = s->accepted[kept] < most ? s->accepted[kept] : (uint16_t)most;
        left -= (int64_t)accepted[kept] + 1;
    }
    s->accepted = accepted;
    s->count = kept;
    return DSC_OK;
}

static int cut_accept(cutter *c, int64_t tokens, dsc_request_input *q, dsc_error *err)
{
    int rc = DSC_OK;
    for (int d = 0; d < c->trace->info.drafters && !rc; d++) {
        uint16_t *length;
        rc = dsc_arena_new(&c->copy.arena, &length, (size_t)tokens, err);
        for (int64_t j = 0; j < tokens && !rc; j++)
            length[j] = q->accept[d][j] < tokens - j ? q->accept[d][j] : (uint16_t)(tokens - j);
        q->accept[d] = length;
    }
    return rc;
}

static int cut_ranks(cutter *c, int64_t tokens, dsc_request_input *q, dsc_error *err)
{
    int64_t depth = c->trace->info.rank_depth;
    uint16_t *rank;
    int rc = dsc_arena_new(&c->copy.arena, &rank, (size_t)(tokens * depth), err);
    if (rc)
        return rc;
    memcpy(rank, q->replayed.draft_rank, (size_t)(tokens * depth) * sizeof *rank);
    for (int64_t j = 0; j < tokens; j++)
        for (int64_t d = tokens - j; d < depth; d++)
            rank[j * depth + d] = DSC_RANK_NONE;
    q->replayed.draft_rank = rank;
    return DSC_OK;
}

static int cut_output(cutter *c, dsc_request_input *q, dsc_error *err)
{
    const dsc_trace_info *i = &c->trace->info;
    int64_t tokens = c->cut->tokens;
    if (!tokens || q->output.count <= tokens)
        return DSC_OK;
    int rc = i->steps ? cut_steps(c, tokens, q, err) : DSC_OK;
    if (!rc)
        rc = cut_accept(c, tokens, q, err);
    if (!rc && i->has_draft_rank)
        rc = cut_ranks(c, tokens, q, err);
    q->output.count = tokens; // the writer takes this many elements of all other columns
    return rc;
}

// --- the trace ---------------------------------------------------------------------------------

static int copy_request(cutter *c, const dsc_request *q, dsc_error *err)
{
    dsc_request_input in;
    int rc = dsc_request_copy_view(&c->copy, q, &in, err);
    if (!rc)
        rc = cut_output(c, &in, err);
    if (!rc)
        rc = dsc_trace_writer_add(c->writer, &in, err);
    if (rc == DSC_EINPUT)
        dsc_error_prefix(err, rc, "%s", c->trace->path);
    if (!rc && c->o->progress && c->o->progress(c->o->user, ++c->done, c->kept))
        rc = dsc_fail(err, DSC_EINTERRUPT,
                      "interrupted after %" PRId64 " requests; nothing was written", c->done);
    return rc;
}

// A shard without a kept request is not opened.
static int copy_shard(cutter *c, size_t index, dsc_error *err)
{
    dsc_shard *shard;
    const dsc_shard_entry *e = &c->trace->shard[index];
    const uint8_t *keeps = c->keeps + e->first_request;
    if (!e->requests || !memchr(keeps, 1, (size_t)e->requests))
        return DSC_OK;
    int rc = dsc_shard_open(&shard, c->trace, (int64_t)index, err);
    for (int64_t i = 0; i < e->requests && !rc; i++) {
        dsc_request q;
        if (!keeps[i])
            continue;
        dsc_shard_request(shard, i, &q);
        rc = copy_request(c, &q, err);
    }
    if (!rc)
        rc = dsc_shard_check(shard, err);
    dsc_shard_close(shard);
    return rc;
}

// The provenance of the source, and the cut.
static int make_provenance(const cutter *c, char **out, dsc_error *err)
{
    const dsc_cut *cut = c->cut;
    char *plain;
    *out = NULL;
    int rc = dsc_join_provenance(&plain, &c->trace, 1, c->o, err);
    if (rc)
        return rc;
    json_t *all, *o;
    rc = dsc_json_parse(&all, plain, strlen(plain), 0, "provenance", err);
    free(plain);
    if (rc)
        return rc;
    o = json_object();
    int bad = 0;
    if (cut->range)
        bad |= json_object_set_new(o, "requests", dsc_json_text(cut->range));
    if (cut->wheres) {
        json_t *list = json_array();
        for (size_t i = 0; i < cut->wheres; i++)
            bad |= json_array_append_new(list, dsc_json_text(cut->where[i]));
        bad |= json_object_set_new(o, "where", list);
    }
    if (cut->sample) {
        bad |= json_object_set_new(o, "sample", json_integer(cut->sample));
        bad |= json_object_set_new(o, "seed", json_integer((json_int_t)cut->seed));
    }
    if (cut->tokens)
        bad |= json_object_set_new(o, "tokens", json_integer(cut->tokens));
    if (!json_object_set_new(all, "cut", o) && !bad)
        *out = dsc_json_dump(all, JSON_COMPACT);
    json_decref(all);
    return *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory for the provenance");
}

static int open_writer(cutter *c, const char *out, dsc_error *err)
{
    dsc_trace_info info = c->trace->info;
    info.provenance = NULL;
    bool cuts = c->cut->tokens && c->cut->tokens < info.max_output_tokens;
    if (cuts && info.steps == DSC_STEPS_LOGGED)
        return dsc_fail(err, DSC_EUSAGE,
                        "the outputs of %s cannot be cut: its steps are logged, and only aligned "
                        "steps can be cut with the tokens",
                        c->trace->path);
    info.has_text &= !cuts;
    int rc = dsc_trace_writer_open(&c->writer, out, &info, c->o->force, c->o->shard_tokens, err);
    if (!rc && info.has_text != c->trace->info.has_text && c->o->note)
        c->o->note(c->o->user, "text is left out: the text of a cut output is unknown");
    return rc;
}

int dsc_trace_cut(const char *path, const char *out, const dsc_cut *cut, const dsc_join_options *o,
                  dsc_error *err)
{
    cutter c = {.cut = cut, .o = o};
    char *provenance = NULL;
    int rc = cut->tokens < 0
                 ? dsc_fail(err, DSC_EUSAGE, "cannot keep %" PRId64 " tokens: must be at least 0",
                            cut->tokens)
                 : dsc_trace_open(&c.trace, path, err);
    if (!rc)
        rc = dsc_join_check_names(c.trace, out, err);
    if (!rc)
        rc = choose(&c, err);
    if (!rc)
        rc = draw_sample(&c, err);
    if (!rc)
        rc = open_writer(&c, out, err);
    for (size_t s = 0; !rc && s < c.trace->shards; s++)
        rc = copy_shard(&c, s, err);
    if (!rc)
        rc = make_provenance(&c, &provenance, err);
    if (!rc) {
        rc = dsc_trace_writer_commit(c.writer, provenance, err);
        c.writer = NULL;
    }
    dsc_trace_writer_abort(c.writer);
    dsc_trace_close(c.trace);
    dsc_request_copy_fini(&c.copy);
    free(provenance);
    free(c.keeps);
    return rc;
}
