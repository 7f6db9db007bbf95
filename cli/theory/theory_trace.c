// SPDX-License-Identifier: Apache-2.0
// Distributions recorded in a trace: --trace TRACE, one pair per output token of one request or of
// all requests. Where a distribution is recorded as its most probable tokens and the mass of the
// rest, the pair is a list with an unlisted tail.
#include "cli/theory/theory_rows.h"
#include "traces/trace/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// The position of the reader: request q of an open shard. In a pass over the whole trace, the
// positions of q are pairs first, first + 1, ...
typedef struct recorded {
    dsc_trace *trace;
    dsc_shard *shard;
    int64_t shard_index, in_shard; // of q; in_shard -1: no request was read
    dsc_request q;
    int64_t first;
    bool one_request; // only q is read
    int64_t position; // the only position of q that is read, or -1: all
} recorded;

// The listed tokens of a pair.
struct cli_listed {
    int32_t *id[DSC_SIDES];
    double *probability[DSC_SIDES];
    size_t id_capacity[DSC_SIDES], capacity[DSC_SIDES];
};

void cli_listed_free(struct cli_listed *l)
{
    for (int side = 0; l && side < DSC_SIDES; side++) {
        free(l->id[side]);
        free(l->probability[side]);
    }
    free(l);
}

static void close_trace(void *state)
{
    recorded *s = state;
    dsc_shard_close(s->shard);
    dsc_trace_close(s->trace);
    free(s);
}

// --- traversal -----------------------------------------------------------------------------------

static void rewind_trace(recorded *s)
{
    dsc_shard_close(s->shard);
    s->shard = NULL;
    s->shard_index = s->in_shard = -1;
    s->first = 0;
    s->q = (dsc_request){.index = -1};
}

static int next_request(recorded *s, dsc_error *err)
{
    int rc = DSC_OK;
    s->first += s->q.output.count;
    s->in_shard++;
    while (!rc && (!s->shard || s->in_shard == dsc_shard_requests(s->shard))) {
        dsc_shard_close(s->shard);
        s->shard = NULL;
        s->in_shard = 0;
        if (++s->shard_index == dsc_trace_shards(s->trace))
            return dsc_fail(err, DSC_EINPUT,
                            "%s: the shards contain fewer requests than the manifest states",
                            dsc_trace_path(s->trace));
        rc = dsc_shard_open(&s->shard, s->trace, s->shard_index, err);
    }
    if (!rc)
        dsc_shard_request(s->shard, s->in_shard, &s->q);
    return rc;
}

// Makes q the request of pair i.
static int seek_pair(recorded *s, int64_t i, dsc_error *err)
{
    int rc = DSC_OK;
    if (i < s->first)
        rewind_trace(s);
    while (!rc && i >= s->first + s->q.output.count)
        rc = next_request(s, err);
    return rc;
}

// --- distributions -------------------------------------------------------------------------------

// Where every token is listed, the tail is rounding error.
static bool is_whole(const dsc_row *row, int64_t vocab)
{
    return !row->token || row->count == vocab || row->tail == -INFINITY;
}

// Reads a complete distribution as probabilities or, for a softmax, as log-probabilities.
static int read_dist(const cli_rows *r, const char *what, const dsc_row *row, int64_t vocab,
                     double *to, dsc_error *err)
{
    bool logits = cli_rows_are_logits(r->value);
    if (!logits)
        dsc_row_dist(row, (int32_t)vocab, to);
    for (int64_t x = 0; logits && row->token && x < vocab; x++)
        to[x] = -INFINITY;
    for (int64_t i = 0; logits && i < row->count; i++)
        to[row->token ? row->token[i] : i] = (double)dsc_row_logp(row, i);
    return cli_rows_make_dist(r->value, what, to, vocab, err);
}

// Reads the listed tokens, or all tokens of a dense row.
static int read_listed(const cli_rows *r, const dsc_row *row, int side, cli_pair *p, dsc_error *err)
{
    struct cli_listed *l = p->listed;
    size_t count = (size_t)row->count;
    int rc = dsc_resize(&l->id[side], &l->id_capacity[side], count, err);
    if (!rc)
        rc = dsc_resize(&l->probability[side], &l->capacity[side], count, err);
    if (rc)
        return rc;
    double tail = exp((double)row->tail), sum = tail;
    for (size_t i = 0; i < count; i++) {
        l->id[side][i] = row->token ? row->token[i] : (int32_t)i;
        l->probability[side][i] = exp((double)dsc_row_logp(row, (int64_t)i));
        sum += l->probability[side][i];
    }
    bool scale = r->value[CLI_ROWS_NORMALIZE].given && sum > 0;
    for (size_t i = 0; scale && i < count; i++)
        l->probability[side][i] /= sum;
    *(side == DSC_SIDE_DRAFT ? &p->draft_listed : &p->target_listed) =
        (dsc_partial_row){.id = l->id[side],
                          .probability = l->probability[side],
                          .count = count,
                          .tail = scale ? tail / sum : tail};
    return DSC_OK;
}

// Temperature, top-k and top-p change the mass of the unlisted tail by an unknown amount.
static int refuse_softmax(const cli_rows *r, const char *label, dsc_error *err)
{
    static const int option[] = {CLI_ROWS_TEMPERATURE, CLI_ROWS_TOP_K, CLI_ROWS_TOP_P};
    const dsc_option_value *v = r->value;
    const bool changes[] = {v[CLI_ROWS_TEMPERATURE].real != 1, v[CLI_ROWS_TOP_K].integer != 0,
                            v[CLI_ROWS_TOP_P].real != 1};
    for (int i = 0; i < 3; i++)
        if (changes[i])
            return dsc_fail(err, DSC_EUSAGE,
                            "--%s needs complete distributions, and at %s some probability mass is "
                            "unlisted; record all tokens (live record --logprobs dense)",
                            cli_rows_options[option[i]].name, label);
    return DSC_OK;
}

static int read_sides(const cli_rows *r, const dsc_row row[DSC_SIDES], int64_t vocab, cli_pair *p,
                      dsc_error *err)
{
    static const char *const name[] = {"draft", "target"};
    const recorded *s = r->state;
    int rc = p->whole ? cli_pair_reserve(p, vocab, err) : refuse_softmax(r, p->label, err);
    p->vocab = vocab;
    if (!rc && !p->whole && !p->listed)
        rc = dsc_new(&p->listed, 1, err);
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        char what[512];
        snprintf(what, sizeof what, "%.300s, %s, %s", dsc_trace_path(s->trace), p->label,
                 name[side]);
        rc = p->whole ? read_dist(r, what, &row[side], vocab,
                                  side == DSC_SIDE_DRAFT ? p->draft : p->target, err)
                      : read_listed(r, &row[side], side, p, err);
    }
    return rc;
}

static int read_trace(cli_rows *r, int64_t i, cli_pair *p, dsc_error *err)
{
    recorded *s = r->state;
    dsc_row row[DSC_SIDES];
    int rc = s->one_request ? DSC_OK : seek_pair(s, i, err);
    if (rc)
        return rc;
    int64_t position = !s->one_request ? i - s->first : s->position < 0 ? i : s->position;
    snprintf(p->label, sizeof p->label, "request %" PRId64 " position %" PRId64, s->q.index,
             position);
    for (int side = 0; side < DSC_SIDES; side++)
        if (!dsc_request_row(&s->q, (dsc_model_side)side, position, &row[side]))
            return dsc_fail(err, DSC_EINPUT, "%s: no distribution is recorded at %s",
                            dsc_trace_path(s->trace), p->label);
    int64_t vocab = dsc_trace_get_info(s->trace)->vocab_size;
    p->whole = is_whole(&row[DSC_SIDE_DRAFT], vocab) && is_whole(&row[DSC_SIDE_TARGET], vocab);
    rc = read_sides(r, row, vocab, p, err);
    return rc ? rc : dsc_shard_check(s->shard, err);
}

// --- opening -----------------------------------------------------------------------------------

static int check_recorded(const dsc_trace *t, dsc_error *err)
{
    static const char *const name[] = {"draft", "target"};
    for (int side = 0; side < DSC_SIDES; side++)
        if (dsc_trace_get_info(t)->rows[side] == DSC_ROWS_NONE)
            return dsc_fail(
                err, DSC_EINPUT,
                "%s: the %s distributions are not recorded (tensors rows.%s.offset, .token, .logp "
                "and .tail, or rows.%s.dense); record them with live record --logprobs",
                dsc_trace_path(t), name[side], name[side], name[side]);
    return DSC_OK;
}

static int choose_request(cli_rows *r, recorded *s, int64_t request, dsc_error *err)
{
    const dsc_option_value *position = &r->value[CLI_ROWS_POSITION];
    int64_t requests = dsc_trace_get_info(s->trace)->requests;
    if (request >= requests)
        return dsc_fail(err, DSC_EUSAGE,
                        "--request: there is no request %" PRId64 "; %.300s has requests 0 to "
                        "%" PRId64,
                        request, dsc_trace_path(s->trace), requests - 1);
    int rc = DSC_OK;
    while (!rc && s->q.index < request)
        rc = next_request(s, err);
    s->one_request = true;
    r->count = s->q.output.count;
    if (rc || !position->given)
        return rc;
    if (position->integer >= r->count)
        return dsc_fail(err, DSC_EUSAGE,
                        "--position: there is no output token %" PRId64 "; request %" PRId64
                        " has %" PRId64 " output tokens",
                        position->integer, request, r->count);
    s->position = position->integer;
    r->count = 1;
    return DSC_OK;
}

static int comment_trace(const cli_rows *r, dsc_table *t, dsc_error *err)
{
    const recorded *s = r->state;
    int rc = dsc_table_comment(t, "trace", dsc_trace_path(s->trace), err);
    return rc ? rc : dsc_table_comment(t, "trace_hash", dsc_trace_get_info(s->trace)->hash, err);
}

int cli_open_trace(cli_rows *r, dsc_error *err)
{
    const dsc_option_value *value = r->value;
    recorded *s;
    bool request = value[CLI_ROWS_REQUEST].given;
    if (!request && value[CLI_ROWS_POSITION].given)
        return dsc_fail(err, DSC_EUSAGE, "--position requires --request");
    if (!request && !r->all)
        return dsc_fail(err, DSC_EUSAGE,
                        "--trace needs --request I, or --summary for all requests");
    int rc = dsc_new(&s, 1, err);
    if (rc)
        return rc;
    r->state = s;
    r->read = read_trace;
    r->close = close_trace;
    r->comments = comment_trace;
    s->position = -1;
    rewind_trace(s);
    rc = dsc_trace_open(&s->trace, value[CLI_ROWS_TRACE].text, err);
    if (!rc)
        rc = check_recorded(s->trace, err);
    if (rc)
        return rc;
    r->count = dsc_trace_get_info(s->trace)->output_tokens;
    return request ? choose_request(r, s, value[CLI_ROWS_REQUEST].integer, err) : DSC_OK;
}
