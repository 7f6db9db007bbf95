// SPDX-License-Identifier: Apache-2.0
// Checks that lines of results and a trace have the same prompts, models and sampling options, by
// hashes and numbers that both contain.
#include "cli/validate/validate_live.h"
#include "traces/trace/token_hash.h"
#include "traces/trace/trace_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// The provenance of a trace, as live record writes it.
typedef struct origin {
    const dsc_trace *trace;
    json_t *root; // NULL: the trace has none
} origin;

enum { SHOWN = 12 }; // digits of a hash in a message

static int refuse(const validate_results *r, const validate_line *l, const origin *o,
                  const char *what, const char *is, const char *recorded, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "%s:%zu: the %s (hash %.*s) differ from those of %s (hash %.*s)", r->path,
                    l->number, what, SHOWN, *is ? is : "none", dsc_trace_path(o->trace), SHOWN,
                    *recorded ? recorded : "none");
}

static int missing(const origin *o, const char *field, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT,
                    "%s: the provenance has no '%s'; record the trace with this version of live "
                    "record",
                    dsc_trace_path(o->trace), field);
}

// --- models --------------------------------------------------------------------------------------

static int check_model(const validate_results *r, const validate_line *l, const origin *o, int side,
                       dsc_error *err)
{
    const char *name = validate_sides[side];
    const json_t *model = json_object_get(o->root, name);
    const char *weights = json_string_value(json_object_get(model, "weights_sha256"));
    const char *config = json_string_value(json_object_get(model, "config_sha256"));
    const validate_model *m = &l->model[side];
    char field[64];
    if (side && (!model || !m->weights_sha256)) // the line or the trace has no such model
        return DSC_OK;
    snprintf(field, sizeof field, "%s.weights_sha256", name);
    if (!weights)
        return missing(o, field, err);
    snprintf(field, sizeof field, "weights of the %s", name);
    if (strcmp(weights, m->weights_sha256) != 0)
        return refuse(r, l, o, field, m->weights_sha256, weights, err);
    snprintf(field, sizeof field, "settings of the %s (config.json)", name);
    return strcmp(config ? config : "", m->config_sha256) == 0
               ? DSC_OK
               : refuse(r, l, o, field, m->config_sha256, config ? config : "", err);
}

// --- sampling ------------------------------------------------------------------------------------

static int check_number(const validate_results *r, const validate_line *l, const origin *o,
                        const char *name, double is, dsc_error *err)
{
    const json_t *x = json_object_get(o->root, name);
    char a[DSC_NUMBER_TEXT], b[DSC_NUMBER_TEXT];
    if (!json_is_number(x))
        return missing(o, name, err);
    if (json_number_value(x) == is)
        return DSC_OK;
    dsc_number_text(is, a);
    dsc_number_text(json_number_value(x), b);
    return dsc_fail(err, DSC_EINPUT, "%s:%zu: %s is %s, but %s was recorded with %s", r->path,
                    l->number, name, a, dsc_trace_path(o->trace), b);
}

// Compares where outputs end: the stop strings and, where both contain them, the EOS tokens.
static int check_ends(const validate_results *r, const validate_line *l, const origin *o,
                      dsc_error *err)
{
    const char *text = json_string_value(json_object_get(l->root, "stop"));
    json_t *stop = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *recorded = json_object_get(o->root, "stop");
    const json_t *eos = json_object_get(l->root, "eos"), *own = json_object_get(o->root, "eos");
    const bool same = stop && recorded ? json_equal(stop, recorded) : !stop && !recorded;
    const char *what = !same ? "--stop" : eos && own && !json_equal(eos, own) ? "--eos" : NULL;
    json_decref(stop);
    return what ? dsc_fail(err, DSC_EINPUT, "%s:%zu: %s is not that of the run that recorded %s",
                           r->path, l->number, what, dsc_trace_path(o->trace))
                : DSC_OK;
}

static int check_sampling(const validate_results *r, const validate_line *l, const origin *o,
                          dsc_error *err)
{
    int rc = check_number(r, l, o, "temperature", l->temperature, err);
    if (!rc && l->temperature > 0) // argmax does not depend on these
        rc = check_number(r, l, o, "top_k", (double)l->top_k, err);
    if (!rc && l->temperature > 0)
        rc = check_number(r, l, o, "top_p", l->top_p, err);
    if (!rc)
        rc = check_number(r, l, o, "max_tokens", (double)l->max_tokens, err);
    return rc ? rc : check_ends(r, l, o, err);
}

// Outputs of a rule that is not lossless do not have the target distribution, so other rules cannot
// be predicted from them.
static int check_rule(const origin *o, dsc_error *err)
{
    dsc_error ignored;
    const char *name = json_string_value(json_object_get(o->root, "rule"));
    const double t = json_number_value(json_object_get(o->root, "temperature"));
    const dsc_verifier_type *rule = name ? dsc_verifier_find(name, &ignored) : NULL;
    if (!rule)
        return missing(o, "rule", err);
    return t > 0 && (rule->greedy || !rule->lossless)
               ? dsc_fail(err, DSC_EINPUT,
                          "%s: rule %s at temperature %g does not sample from the target "
                          "distribution; record the trace with a lossless rule",
                          dsc_trace_path(o->trace), name, t)
               : DSC_OK;
}

// --- texts ---------------------------------------------------------------------------------------

// Running hashes of the trace's texts from the first request of some lines on.
typedef struct texts {
    int64_t first;
    bool replayed; // only requests with a recorded output
    dsc_sha256 prompts, outputs;
    size_t requests;
} texts;

static bool begins(const texts *t, const validate_line *l)
{
    return t->first == l->first_request && t->replayed == (l->trace_hash != NULL);
}

static int check_texts(const validate_results *r, validate_line *l, const origin *o, const texts *t,
                       dsc_error *err)
{
    char hex[DSC_SHA256_HEX];
    dsc_sha256 prompts = t->prompts, outputs = t->outputs;
    dsc_sha256_final(&prompts, hex);
    if (strcmp(hex, l->prompts_sha256) != 0)
        return refuse(r, l, o, "prompts", l->prompts_sha256, hex, err);
    dsc_sha256_final(&outputs, hex);
    l->outputs_equal = l->trace_hash || strcmp(hex, l->outputs_sha256) == 0;
    return DSC_OK;
}

// Lists the first requests of the lines, each once.
static int list_texts(const validate_results *r, texts **out, size_t *count, dsc_error *err)
{
    int rc = dsc_new(out, r->count, err);
    texts *list = *out;
    *count = 0;
    for (size_t n = 0; n < r->count && !rc; n++) {
        size_t i = 0;
        while (i < *count && !begins(&list[i], &r->line[n]))
            i++;
        if (i < *count)
            continue;
        list[i] = (texts){.first = r->line[n].first_request, .replayed = r->line[n].trace_hash};
        dsc_sha256_init(&list[i].prompts);
        dsc_sha256_init(&list[i].outputs);
        ++*count;
    }
    return rc;
}

// Adds a request to the running hashes and checks the lines that end with it. `all` is its index in
// the trace, `written` its index among the requests with an output.
static int add_texts(validate_results *r, const origin *o, const dsc_request *q, int64_t all,
                     int64_t written, texts *list, size_t count, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        texts *t = &list[i];
        if ((t->replayed && !q->output.count) || (t->replayed ? written : all) < t->first)
            continue;
        dsc_token_hash_add(&t->prompts, q->prompt);
        dsc_token_hash_add(&t->outputs, q->output);
        t->requests++;
        for (size_t n = 0; n < r->count && !rc; n++)
            if (r->line[n].requests.requests == t->requests && begins(t, &r->line[n]))
                rc = check_texts(r, &r->line[n], o, t, err);
    }
    return rc;
}

// Replayed runs skip requests without a recorded output.
static int read_texts(validate_results *r, const origin *o, texts *list, size_t count,
                      dsc_error *err)
{
    int64_t all = 0, written = 0;
    int rc = DSC_OK;
    for (int64_t s = 0; s < dsc_trace_shards(o->trace) && !rc; s++) {
        dsc_shard *shard;
        rc = dsc_shard_open(&shard, o->trace, s, err);
        if (rc)
            return rc;
        for (int64_t i = 0; i < dsc_shard_requests(shard) && !rc; i++) {
            dsc_request q;
            dsc_shard_request(shard, i, &q);
            rc = add_texts(r, o, &q, all++, written, list, count, err);
            written += q.output.count > 0;
        }
        if (!rc)
            rc = dsc_shard_check(shard, err);
        dsc_shard_close(shard);
    }
    for (size_t n = 0; n < r->count && !rc; n++) {
        const validate_line *l = &r->line[n];
        const int64_t there = l->trace_hash ? written : all;
        if ((int64_t)validate_end(l) > there)
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s:%zu: the line has requests up to %zu, but %s has %" PRId64, r->path,
                          l->number, validate_end(l), dsc_trace_path(o->trace), there);
    }
    return rc;
}

static int check_line(const validate_results *r, const validate_line *l, const origin *o,
                      dsc_error *err)
{
    const char *hash = dsc_trace_get_info(o->trace)->hash;
    if (l->trace_hash)
        return strcmp(l->trace_hash, hash) == 0
                   ? DSC_OK
                   : dsc_fail(err, DSC_EINPUT,
                              "%s:%zu: the run replayed trace %.*s, but %s is %.*s", r->path,
                              l->number, SHOWN, l->trace_hash, dsc_trace_path(o->trace), SHOWN,
                              hash);
    int rc = check_rule(o, err);
    for (int s = 0; s < VALIDATE_SIDES && !rc; s++)
        rc = check_model(r, l, o, s, err);
    return rc ? rc : check_sampling(r, l, o, err);
}

int validate_results_check(validate_results *r, const dsc_trace *trace, dsc_error *err)
{
    const dsc_trace_info *info = dsc_trace_get_info(trace);
    origin o = {.trace = trace};
    texts *list = NULL;
    size_t count = 0;
    int rc = dsc_trace_provenance(&o.root, info, err);
    for (size_t i = 0; i < r->count && !rc; i++)
        rc = check_line(r, &r->line[i], &o, err);
    if (!rc)
        rc = list_texts(r, &list, &count, err);
    if (!rc)
        rc = read_texts(r, &o, list, count, err);
    free(list);
    json_decref(o.root);
    return rc;
}
