// SPDX-License-Identifier: Apache-2.0
// Times of turns as a log or a recorder wrote them, and step times by robust least squares.
#include "cli/validate/validate_times.h"

#include "base/statistics.h"
#include "traces/trace/trace_json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

// --- reading ------------------------------------------------------------------------------------

// Number of elements; a value that is no list has one, and no value none.
static size_t length_of(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) : value != NULL;
}

static double element(const json_t *value, size_t i)
{
    const json_t *x = json_is_array(value) ? json_array_get(value, i) : value;
    return json_is_number(x) ? json_number_value(x) : (double)NAN;
}

// The recorded seconds of all steps; NaN without them.
static double step_seconds(const dsc_steps *s)
{
    double sum = 0;
    if (!s->verify_s)
        return NAN;
    for (int64_t i = 0; i < s->count; i++)
        sum += (double)s->verify_s[i] + (s->draft_s ? (double)s->draft_s[i] : 0);
    return sum;
}

static int refuse(const char *name, const dsc_request *q, const char *what, dsc_error *err)
{
    return dsc_fail(err, DSC_EINPUT, "%s: request %.*s: %s", name, (int)q->id.length, q->id.bytes,
                    what);
}

static int add_turn(validate_turns *t, const validate_turn *turn, const char *name,
                    const dsc_request *q, dsc_error *err)
{
    if (!(turn->time_s > 0) || !isfinite(turn->time_s))
        return refuse(name, q, "wall_time is not a positive number of seconds", err);
    if (!(turn->tokens >= 0) || !(turn->term[2] >= 0) || !isfinite(turn->tokens + turn->term[2]))
        return refuse(name, q, "new_tokens or decoding_steps is not a number of at least 0", err);
    int rc = dsc_resize(&t->turn, &t->capacity, t->count + 1, err);
    if (!rc)
        t->turn[t->count++] = *turn;
    return rc;
}

// The trace has no prompt tokens by turn; the model divides them evenly. A turn's context begins
// with the earlier turns' outputs.
static int add_listed(validate_turns *t, const dsc_request *q, const json_t *metadata,
                      const char *name, size_t request, int32_t group, dsc_error *err)
{
    const json_t *time = json_object_get(metadata, "wall_time"),
                 *tokens = json_object_get(metadata, "new_tokens"),
                 *calls = json_object_get(metadata, "decoding_steps");
    const size_t n = length_of(time);
    double written = 0;
    int rc = DSC_OK;
    if (!n || (tokens && length_of(tokens) != n) || (calls && length_of(calls) != n) ||
        (n > 1 && !(tokens && calls)))
        return refuse(
            name, q, "decoding_steps, new_tokens and wall_time are not lists of equal length", err);
    for (size_t i = 0; i < n && !rc; i++) {
        const double w = tokens ? element(tokens, i) : (double)q->output.count,
                     c = calls                ? element(calls, i)
                         : q->steps.count > 0 ? (double)q->steps.count
                                              : w,
                     prompt = (double)q->prompt.count * (double)(i + 1) / (double)n + written;
        const validate_turn turn = {
            request, group, {1, prompt, c, c * (prompt + w / 2)}, w, element(time, i)};
        rc = add_turn(t, &turn, name, q, err);
        written += w;
    }
    return rc;
}

int validate_turns_add(validate_turns *t, const dsc_request *q, const char *name, size_t request,
                       int32_t group, dsc_error *err)
{
    json_t *metadata;
    const double seconds = step_seconds(&q->steps);
    int rc = dsc_request_metadata(&metadata, q, err);
    if (rc)
        return rc;
    if (!metadata)
        metadata = json_object();
    if (!json_object_get(metadata, "wall_time") && isnan(seconds))
        rc = refuse(name, q, "there is no metadata field wall_time and there are no step times",
                    err);
    else if (!json_object_get(metadata, "wall_time"))
        json_object_set_new(metadata, "wall_time", json_real(seconds));
    if (!rc)
        rc = add_listed(t, q, metadata, name, request, group, err);
    json_decref(metadata);
    return rc;
}

void validate_turns_fini(validate_turns *t)
{
    free(t->turn);
    *t = (validate_turns){0};
}

// --- fitting ------------------------------------------------------------------------------------

int validate_turns_fit(const validate_turns *t, const char *name, int32_t without,
                       double x[VALIDATE_TERMS], dsc_error *err)
{
    double *term = NULL, *y = NULL; // [n][VALIDATE_TERMS], [n]
    double scale;
    size_t n = 0;
    int rc = dsc_new(&term, t->count * VALIDATE_TERMS, err);
    if (!rc)
        rc = dsc_new(&y, t->count, err);
    for (size_t i = 0; i < t->count && !rc; i++) {
        const validate_turn *turn = &t->turn[i];
        const double root = sqrt(turn->time_s); // the error of a time grows with it
        if (turn->group == without)
            continue;
        for (int r = 0; r < VALIDATE_TERMS; r++)
            term[n * VALIDATE_TERMS + (size_t)r] = turn->term[r] / root;
        y[n++] = root;
    }
    if (!rc && n < VALIDATE_TERMS)
        rc = dsc_fail(err, DSC_EINPUT, "%s: too few turns to fit step times", name);
    if (!rc)
        rc = dsc_fit_robust(term, VALIDATE_TERMS, y, n, x, &scale, err);
    free(term);
    free(y);
    return rc;
}

double validate_turn_time(const validate_turn *t, const double x[VALIDATE_TERMS])
{
    double s = 0;
    for (int r = 0; r < VALIDATE_TERMS; r++)
        s += x[r] * t->term[r];
    return s;
}
