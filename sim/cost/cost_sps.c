// SPDX-License-Identifier: Apache-2.0
// Step times that inference engines profile for themselves to decide how many draft tokens to
// verify, as JSON. M is the number of tokens in a pass of the target, of all sequences, bonus
// tokens included.
//
//   SGLang (dspark_components/dspark_sps_table.py, commit 692c5f7):
//     sample_batch_tokens, sample_steps_per_sec           M, steps per second
//     bias_seconds, bs_probes, alpha_seconds, m_probes, theta_seconds
//                                                         bias + alpha(batch) + theta(M)
//   TensorRT-LLM (_torch/speculative/dspark_planner.py, commit 52cd02d):
//     token_counts, step_time_ms[, fixed_overhead_ms][, batch_sizes, batch_overhead_ms]
//                                                         the same sum, in milliseconds
//     schema_version 2: cost_tables {"B": {token_counts, step_time_ms}}
//                                                         per batch size B; 0 tokens stands for
//                                                         engine_fingerprint.max_draft_len drafts
//
// Between points times are interpolated linearly, also where an engine takes the lower point, which
// makes tokens look free up to the next one; outside of them they are refused. The times are of
// whole steps, so they contain the draft, and speedups over no speculation are unknown.
#include "sim/cost/cost.h"

#include "base/json_file.h"
#include "base/memory.h"
#include "base/sha256.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 16 << 20 };
#define NUMBER_MAX 1e9 // of tokens, sequences, seconds and steps per second

typedef struct curve {
    double batch;  // 0: for all
    double *x, *s; // [count] ascending; seconds
    size_t count;
} curve;

typedef struct sps {
    char *path;
    double bias_s;
    curve alpha; // over the batch size; may be empty
    curve *step; // [steps] over M
    size_t steps;
    dsc_arena memory;
} sps;

static void free_sps(void *model)
{
    sps *m = model;
    if (!m)
        return;
    dsc_arena_fini(&m->memory);
    free(m->path);
    free(m);
}

// --- reading -------------------------------------------------------------------------------------

static int read_list(sps *m, const json_t *from, const char *field, double least, double **out,
                     size_t *count, dsc_error *err)
{
    const json_t *list = json_object_get(from, field);
    *count = json_array_size(list);
    int rc = *count ? dsc_arena_new(&m->memory, out, *count + 1, err)
                    : dsc_fail(err, DSC_EINPUT, "%s: field '%s' must be a list of numbers", m->path,
                               field);
    for (size_t i = 0; i < *count && !rc; i++) {
        const json_t *x = json_array_get(list, i);
        (*out)[i] = json_number_value(x);
        if (!json_is_number(x) || !((*out)[i] >= least && (*out)[i] <= NUMBER_MAX))
            rc = dsc_fail(err, DSC_EINPUT, "%s: %s[%zu] must be a number from %g to %g", m->path,
                          field, i, least, NUMBER_MAX);
    }
    return rc;
}

// Reads the points of a curve; times are divided by `unit`, or steps per second when it is 0.
static int read_curve(sps *m, const json_t *from, const char *x, const char *y, double unit,
                      curve *c, dsc_error *err)
{
    size_t times;
    int rc = read_list(m, from, x, 0, &c->x, &c->count, err);
    if (!rc)
        rc = read_list(m, from, y, 0, &c->s, &times, err);
    if (!rc && times != c->count)
        rc = dsc_fail(err, DSC_EINPUT, "%s: '%s' has %zu elements and '%s' %zu", m->path, x,
                      c->count, y, times);
    for (size_t i = 0; i < c->count && !rc; i++) {
        if (i && !(c->x[i] > c->x[i - 1]))
            rc = dsc_fail(err, DSC_EINPUT, "%s: '%s' must increase", m->path, x);
        if (!rc && unit == 0 && !(c->s[i] >= 1 / NUMBER_MAX))
            rc = dsc_fail(err, DSC_EINPUT, "%s: %s[%zu] must be above 0", m->path, y, i);
        c->s[i] = unit > 0 ? c->s[i] / unit : 1 / c->s[i];
    }
    return rc;
}

static int read_bias(sps *m, const json_t *from, const char *field, double unit, dsc_error *err)
{
    const json_t *x = json_object_get(from, field);
    m->bias_s = json_number_value(x) / unit;
    if (x && !(json_is_number(x) && m->bias_s >= 0 && m->bias_s <= NUMBER_MAX))
        return dsc_fail(err, DSC_EINPUT, "%s: '%s' must be a time from 0 to 1e9 s", m->path, field);
    return DSC_OK;
}

// The curve of one batch size of schema 2. Its point at 0 tokens is the step with whole drafts.
static int read_exact(sps *m, const char *key, const json_t *table, double whole, curve *c,
                      dsc_error *err)
{
    char *end;
    c->batch = (double)strtol(key, &end, 10);
    if (*end || !(c->batch >= 1 && c->batch <= NUMBER_MAX))
        return dsc_fail(err, DSC_EINPUT, "%s: cost_tables has '%.40s', which is no batch size",
                        m->path, key);
    int rc = read_curve(m, table, "token_counts", "step_time_ms", 1000, c, err);
    if (rc || c->x[0] > 0)
        return rc;
    const double native = c->s[0], tokens = c->batch * (whole + 1);
    memmove(c->x, c->x + 1, --c->count * sizeof *c->x);
    memmove(c->s, c->s + 1, c->count * sizeof *c->s);
    if (c->count && c->x[c->count - 1] >= tokens)
        return DSC_OK;
    c->x[c->count] = tokens;
    c->s[c->count++] = native;
    return DSC_OK;
}

static int read_schema_2(sps *m, const json_t *from, dsc_error *err)
{
    json_t *tables = json_object_get(from, "cost_tables"), *table;
    const json_t *whole =
        json_object_get(json_object_get(from, "engine_fingerprint"), "max_draft_len");
    const char *key;
    if (json_integer_value(json_object_get(from, "schema_version")) != 2 ||
        !json_object_size(tables) || json_integer_value(whole) < 1 ||
        json_integer_value(whole) > 65535)
        return dsc_fail(err, DSC_EINPUT,
                        "%s: schema_version must be 2, cost_tables an object that is not empty and "
                        "engine_fingerprint.max_draft_len from 1 to 65535",
                        m->path);
    int rc = dsc_arena_new(&m->memory, &m->step, json_object_size(tables), err);
    json_object_foreach(tables, key, table) if (!rc) rc =
        read_exact(m, key, table, (double)json_integer_value(whole), &m->step[m->steps++], err);
    return rc;
}

static int read_forms(sps *m, const json_t *from, dsc_error *err)
{
    int rc = DSC_OK;
    if (json_object_get(from, "cost_tables"))
        return read_schema_2(m, from, err);
    rc = dsc_arena_new(&m->memory, &m->step, 1, err);
    if (!rc)
        m->step[m->steps++] = (curve){0};
    if (!rc && json_object_get(from, "sample_batch_tokens"))
        return read_curve(m, from, "sample_batch_tokens", "sample_steps_per_sec", 0, m->step, err);
    if (!rc && json_object_get(from, "bias_seconds")) {
        rc = read_bias(m, from, "bias_seconds", 1, err);
        if (!rc)
            rc = read_curve(m, from, "bs_probes", "alpha_seconds", 1, &m->alpha, err);
        return rc ? rc : read_curve(m, from, "m_probes", "theta_seconds", 1, m->step, err);
    }
    if (!rc && json_object_get(from, "token_counts")) {
        rc = read_bias(m, from, "fixed_overhead_ms", 1000, err);
        if (!rc && json_array_size(json_object_get(from, "batch_sizes")))
            rc = read_curve(m, from, "batch_sizes", "batch_overhead_ms", 1000, &m->alpha, err);
        return rc ? rc : read_curve(m, from, "token_counts", "step_time_ms", 1000, m->step, err);
    }
    return rc ? rc
              : dsc_fail(err, DSC_EINPUT,
                         "%s: no table of steps per second of SGLang (sample_batch_tokens, or "
                         "bias_seconds) or of TensorRT-LLM (token_counts, or schema_version 2)",
                         m->path);
}

static int open_sps(dsc_cost *cost, const char *path, dsc_error *err)
{
    sps *m;
    json_t *from = NULL;
    char hash[DSC_SHA256_HEX];
    int rc = dsc_new(&m, 1, err);
    if (rc)
        return rc;
    rc = dsc_strndup(&m->path, path, strlen(path), err);
    if (!rc)
        rc = dsc_json_file(&from, path, FILE_MAX, err);
    if (!rc)
        rc = read_forms(m, from, err);
    for (size_t i = 0; i < m->steps && !rc; i++)
        if (m->step[i].count < 2)
            rc = dsc_fail(err, DSC_EINPUT,
                          "%s: a table of one point was not measured: the engine then takes draft "
                          "tokens for free",
                          path);
    if (!rc)
        rc = dsc_sha256_file(path, hash, err);
    json_decref(from);
    if (rc) {
        free_sps(m);
        return rc;
    }
    cost->model = m;
    cost->no_plain = "the times of this table are of steps with a draft; draftscope live "
                     "profile measures the time of a pass";
    snprintf(cost->note, sizeof cost->note, "table of SHA-256 %s", hash);
    return rc;
}

// --- times ---------------------------------------------------------------------------------------

static int look_up(const sps *m, const curve *c, double x, const char *what, double *s,
                   dsc_error *err)
{
    if (!(x >= c->x[0] && x <= c->x[c->count - 1]))
        return dsc_fail(err, DSC_EINPUT,
                        "%s: %.6g %s were not measured: the table goes from %.0f to %.0f and is "
                        "not extrapolated",
                        m->path, x, what, c->x[0], c->x[c->count - 1]);
    size_t i = 0;
    while (i + 2 < c->count && c->x[i + 1] < x)
        i++;
    *s += c->count > 1 ? c->s[i] + (x - c->x[i]) / (c->x[i + 1] - c->x[i]) * (c->s[i + 1] - c->s[i])
                       : c->s[i];
    return DSC_OK;
}

static int target_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    const sps *m = cost->model;
    const curve *c = NULL;
    for (size_t i = 0; i < m->steps && !c; i++)
        c = m->step[i].batch == 0 || m->step[i].batch == pass.batch ? &m->step[i] : NULL;
    if (!c)
        return dsc_fail(err, DSC_EINPUT, "%s: a batch of %.6g was not measured", m->path,
                        pass.batch);
    *seconds = m->bias_s;
    int rc = m->alpha.count ? look_up(m, &m->alpha, pass.batch, "sequences", seconds, err) : DSC_OK;
    return rc ? rc : look_up(m, c, pass.tokens * pass.batch, "tokens in a pass", seconds, err);
}

// Steps contain their draft.
static int draft_time(const dsc_cost *cost, dsc_pass pass, double *seconds, dsc_error *err)
{
    (void)cost, (void)pass, (void)err;
    *seconds = 0;
    return DSC_OK;
}

const dsc_cost_type dsc_cost_sps = {.name = "sps",
                                    .summary = "step times that SGLang or TensorRT-LLM profiled",
                                    .usage = "FILE",
                                    .open = open_sps,
                                    .close = free_sps,
                                    .target = target_time,
                                    .draft = draft_time};
