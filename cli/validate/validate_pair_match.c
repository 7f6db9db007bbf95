// SPDX-License-Identifier: Apache-2.0
// Matches the requests of two traces: by id where the prompts are also equal, and the others by the
// hash of their prompts, in the order of the traces.
#include "cli/validate/validate_pair.h"

#include "traces/trace/token_hash.h"
#include "traces/trace/trace_agree.h"
#include "traces/trace/trace_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct key {
    char *id;
    char *model; // name of the model by the metadata, or NULL
    char prompt[DSC_SHA256_HEX];
    bool has_prompt;
} key;

typedef struct keys {
    const char *path;
    key *key;                       // [count] by request
    const key **by_id, **by_prompt; // [count] sorted
    size_t count;
} keys;

// The metadata field that importers copy from the responses of servers.
static int read_model(key *to, const dsc_request *q, dsc_error *err)
{
    json_t *metadata;
    int rc = dsc_request_metadata(&metadata, q, err);
    const char *model = json_string_value(json_object_get(metadata, "model"));
    if (model)
        rc = dsc_strndup(&to->model, model, strlen(model), err);
    json_decref(metadata);
    return rc;
}

static int add_key(void *context, const dsc_request *q, dsc_error *err)
{
    keys *k = context;
    key *to = &k->key[k->count];
    dsc_sha256 hash;
    int rc = dsc_strndup(&to->id, q->id.bytes, (size_t)q->id.length, err);
    dsc_sha256_init(&hash);
    dsc_token_hash_add(&hash, q->prompt);
    dsc_sha256_final(&hash, to->prompt);
    to->has_prompt = q->prompt.count > 0;
    k->by_id[k->count] = k->by_prompt[k->count] = to;
    k->count += !rc;
    return rc ? rc : read_model(to, q, err);
}

static int by_id(const void *a, const void *b)
{
    return strcmp((*(const key *const *)a)->id, (*(const key *const *)b)->id);
}

// Equal prompts in the order of the trace.
static int by_prompt(const void *a, const void *b)
{
    const key *x = *(const key *const *)a, *y = *(const key *const *)b;
    int d = strcmp(x->prompt, y->prompt);
    return d ? d : (x > y) - (x < y);
}

static int read_keys(keys *k, const dsc_trace *t, dsc_error *err)
{
    const size_t n = (size_t)dsc_trace_get_info(t)->requests;
    *k = (keys){.path = dsc_trace_path(t)};
    int rc = dsc_new(&k->key, n, err);
    if (!rc)
        rc = dsc_new(&k->by_id, n, err);
    if (!rc)
        rc = dsc_new(&k->by_prompt, n, err);
    if (!rc)
        rc = dsc_trace_each(t, add_key, k, err);
    if (rc || !k->count)
        return rc;
    qsort(k->by_id, k->count, sizeof(key *), by_id);
    qsort(k->by_prompt, k->count, sizeof(key *), by_prompt);
    for (size_t i = 1; i < k->count; i++)
        if (strcmp(k->by_id[i - 1]->id, k->by_id[i]->id) == 0)
            return dsc_fail(err, DSC_EINPUT, "%s: two requests have the id '%.60s'", k->path,
                            k->by_id[i]->id);
    return DSC_OK;
}

static void keys_fini(keys *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->key[i].id);
        free(k->key[i].model);
    }
    free(k->key);
    free(k->by_id);
    free(k->by_prompt);
}

static void join(validate_matches *m, int64_t a, int64_t b)
{
    m->pair[VALIDATE_A][a] = b; // the partner until the pairs are numbered
    m->pair[VALIDATE_B][b] = a;
    m->count++;
}

static void match_ids(validate_matches *m, const keys *a, const keys *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const key *wanted = &b->key[i];
        const key *const *found = bsearch(&wanted, a->by_id, a->count, sizeof(key *), by_id);
        if (found && strcmp((*found)->prompt, wanted->prompt) == 0)
            join(m, *found - a->key, (int64_t)i);
        else
            m->other_prompt += found != NULL;
    }
}

// Both lists are sorted by prompt: a merge of the requests that have no partner yet.
static void match_prompts(validate_matches *m, const keys *a, const keys *b)
{
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const key *x = a->by_prompt[i], *y = b->by_prompt[j];
        const int d = strcmp(x->prompt, y->prompt);
        if (m->pair[VALIDATE_A][x - a->key] >= 0 || !x->has_prompt || d < 0) {
            i++;
        } else if (m->pair[VALIDATE_B][y - b->key] >= 0 || d > 0) {
            j++;
        } else {
            join(m, x - a->key, y - b->key);
            m->by_prompt++;
            i++;
            j++;
        }
    }
}

static int check_models(const validate_matches *m, const keys k[VALIDATE_RUNS], dsc_error *err)
{
    for (size_t i = 0; i < m->count; i++) {
        const key *a = &k[VALIDATE_A].key[m->request[VALIDATE_A][i]],
                  *b = &k[VALIDATE_B].key[m->request[VALIDATE_B][i]];
        if (a->model && b->model && strcmp(a->model, b->model) != 0)
            return dsc_fail(err, DSC_EINPUT,
                            "the runs are of different models: request %.60s of %s is of "
                            "'%.60s', and of %s of '%.60s'",
                            a->id, k[VALIDATE_A].path, a->model, k[VALIDATE_B].path, b->model);
    }
    return DSC_OK;
}

// Numbers the pairs in the order of A.
static int number_pairs(validate_matches *m, size_t requests, dsc_error *err)
{
    int64_t next = 0;
    int rc = DSC_OK;
    for (int r = 0; r < VALIDATE_RUNS && !rc; r++)
        rc = dsc_new(&m->request[r], m->count, err);
    for (size_t i = 0; i < requests && !rc; i++) {
        const int64_t b = m->pair[VALIDATE_A][i];
        if (b < 0)
            continue;
        m->request[VALIDATE_A][next] = (int64_t)i;
        m->request[VALIDATE_B][next] = b;
        m->pair[VALIDATE_A][i] = m->pair[VALIDATE_B][b] = next++;
    }
    return rc;
}

int validate_match(validate_matches *m, dsc_trace *const trace[VALIDATE_RUNS], dsc_error *err)
{
    const dsc_trace_info *info[VALIDATE_RUNS];
    keys k[VALIDATE_RUNS] = {{0}};
    int rc = DSC_OK;
    for (int r = 0; r < VALIDATE_RUNS; r++)
        info[r] = dsc_trace_get_info(trace[r]);
    dsc_error why;
    if (dsc_tokenizers_agree(info[0], dsc_trace_path(trace[0]), info[1], dsc_trace_path(trace[1]),
                             &why))
        return dsc_fail(err, DSC_EINPUT, "the runs are of different models: %.900s", why.message);
    for (int r = 0; r < VALIDATE_RUNS && !rc; r++) {
        rc = read_keys(&k[r], trace[r], err);
        if (!rc)
            rc = dsc_new(&m->pair[r], k[r].count, err);
        for (size_t i = 0; i < k[r].count && !rc; i++)
            m->pair[r][i] = -1;
    }
    if (!rc) {
        match_ids(m, &k[VALIDATE_A], &k[VALIDATE_B]);
        match_prompts(m, &k[VALIDATE_A], &k[VALIDATE_B]);
        rc = number_pairs(m, k[VALIDATE_A].count, err);
    }
    if (!rc && !m->count)
        rc = dsc_fail(err, DSC_EINPUT,
                      "%s and %s have no request in common: neither ids with the same prompt nor "
                      "prompts agree",
                      k[0].path, k[1].path);
    if (!rc)
        rc = check_models(m, k, err);
    for (int r = 0; r < VALIDATE_RUNS; r++)
        keys_fini(&k[r]);
    return rc;
}

void validate_matches_fini(validate_matches *m)
{
    for (int r = 0; r < VALIDATE_RUNS; r++) {
        free(m->request[r]);
        free(m->pair[r]);
    }
    *m = (validate_matches){0};
}
