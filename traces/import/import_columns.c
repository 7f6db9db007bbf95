// SPDX-License-Identifier: Apache-2.0
// Reads and compares the columns of draftscope's JSON lines: numbers, or arrays of numbers, for
// each output token or step. Fields that share a parameter are in an object with it:
//   "logprobs": [number, ...], "draft_logprobs": [number or null, ...],
//   "draft_argmax": [id, ...], "target_argmax", "draft_entropy": [number, ...], "target_entropy",
//   "draft_ranks": {"depth": D, "ranks": [[rank or null, ...D], ...]},
//   "statistics": {"k": K, "kseq": [[[rho, beta], ...K], ...], "specinfer": [[c, ...K + 1], ...],
//                  "otm": [[number, ...K (K + 3) / 2], ...]},
//   "rollouts": {"length": G, "draft": [[id, ...G], ...], "target": [[id, ...G + 1], ...]},
//   "candidates": {"steps": S, "topk": K, "nodes": C, "token": [[id, ...C], ...],
//                  "parent": [[0, number of an earlier candidate or null, ...C], ...],
//                  "logp": [[number or null, ...C], ...], "scored": [[count, ...S], ...]},
//   "marginals": {"offsets": D, "top": M, "token": [[[id, ...M], ...D], ...],
//                 "logp": [[[number or null, ...M], ...D], ...], "logp_y": [[..., ...D], ...]},
//   "steps": {"aligned": boolean, "accepted": [count, ...], "drafted": [count, ...],
//             "draft_s": [seconds, ...], "verify_s": [seconds, ...]},
//   "accept": {NAME: {"cap": count, "accepted": [count, ...]}, ...}
#include "traces/import/import_record.h"

#include "traces/trace/trace_agree.h"

#include <math.h>
#include <stdlib.h>

const dsc_json_object dsc_json_objects[] = {
    {.name = NULL},
    {"draft_ranks", {"depth"}, 1, 0},
    {"statistics", {"k"}, 1, 1},
    {"rollouts", {"length"}, 1, 2},
    {"candidates", {"steps", "topk", "nodes"}, 3, 3},
    {"marginals", {"offsets", "top"}, 2, 6},
    [DSC_JSON_STEPS] = {"steps", {"aligned"}, 0, 0},
    {0},
};

const dsc_json_column dsc_json_columns[] = {
    {0, "logprobs", COL_TARGET_LOGP},
    {0, "draft_logprobs", COL_DRAFT_LOGP},
    {0, "draft_argmax", COL_DRAFT_ARGMAX},
    {0, "target_argmax", COL_TARGET_ARGMAX},
    {0, "draft_entropy", COL_DRAFT_ENTROPY},
    {0, "target_entropy", COL_TARGET_ENTROPY},
    {1, "ranks", COL_DRAFT_RANK},
    {2, "kseq", COL_KSEQ},
    {2, "specinfer", COL_SPECINFER},
    {2, "otm", COL_OTM},
    {3, "draft", COL_DRAFT_ROLLOUT},
    {3, "target", COL_TARGET_ROLLOUT},
    {4, "token", COL_CANDIDATE_TOKEN},
    {4, "parent", COL_CANDIDATE_PARENT},
    {4, "logp", COL_CANDIDATE_LOGP},
    {4, "scored", COL_CANDIDATE_SCORED},
    {5, "token", COL_MARGINAL_TOKEN},
    {5, "logp", COL_MARGINAL_LOGP},
    {5, "logp_y", COL_MARGINAL_LOGP_Y},
    {DSC_JSON_STEPS, "accepted", COL_STEP_ACCEPTED},
    {DSC_JSON_STEPS, "drafted", COL_STEP_DRAFTED},
    {DSC_JSON_STEPS, "draft_s", COL_STEP_DRAFT_S},
    {DSC_JSON_STEPS, "verify_s", COL_STEP_VERIFY_S},
    {0},
};

enum { LABEL_BYTES = 128 };

// The field of a column, "steps.drafted" or "accept.NAME.accepted".
static const char *label(const dsc_trace_info *info, int column, char out[LABEL_BYTES])
{
    snprintf(out, LABEL_BYTES, "%s", dsc_columns[column].name);
    if (column >= COL_ACCEPT)
        snprintf(out, LABEL_BYTES, "accept.%s.accepted", info->drafter[column - COL_ACCEPT].name);
    for (const dsc_json_column *j = dsc_json_columns; j->name; j++)
        if (j->column == column) {
            const char *object = dsc_json_objects[j->object].name;
            snprintf(out, LABEL_BYTES, "%s%s%s", object ? object : "", object ? "." : "", j->name);
        }
    return out;
}

// --- records -----------------------------------------------------------------------------------

int dsc_import_column_start(dsc_import_record *r, int column, size_t count, void **out,
                            dsc_error *err)
{
    dsc_import_column *c = &r->column[column];
    dsc_field field = dsc_columns[column].field;
    int rc =
        dsc_grow(&c->data, &c->capacity, count, dsc_dtype_bytes(dsc_columns[column].dtype), err);
    if (rc)
        return rc;
    if (!dsc_field_kind(&r->recorded, field))
        dsc_field_set(&r->recorded, field, 1);
    c->count = count;
    r->columns = column < r->columns ? r->columns : column + 1;
    *out = c->data;
    return DSC_OK;
}

int dsc_import_add_drafter(dsc_import_record *r, const char *name, int64_t cap, int *column,
                           dsc_error *err)
{
    dsc_trace_info *info = &r->recorded;
    if (!dsc_drafter_name_valid(name))
        return dsc_fail(err, DSC_EINPUT,
                        "a drafter's name must be 1 to %d letters, digits and _.+-, not '%.100s'",
                        DSC_DRAFTER_NAME_BYTES - 1, name);
    if (cap < 1 || cap > UINT16_MAX)
        return dsc_fail(err, DSC_EINPUT, "the cap of drafter '%s' is %lld; it must be 1 to %d",
                        name, (long long)cap, UINT16_MAX);
    if (info->drafters == DSC_DRAFTERS_MAX)
        return dsc_fail(err, DSC_EINPUT, "more than the limit of %d drafters", DSC_DRAFTERS_MAX);
    if (dsc_drafter_number(info, name) >= 0)
        return dsc_fail(err, DSC_EINPUT, "drafter '%s' is given twice", name);
    dsc_drafter_record *d = &info->drafter[info->drafters];
    strcpy(d->name, name);
    d->cap = (int32_t)cap;
    *column = COL_ACCEPT + info->drafters++;
    return DSC_OK;
}

void dsc_import_columns_reset(dsc_import_record *r)
{
    r->recorded = (dsc_trace_info){0};
    for (int c = 0; c < r->columns; c++)
        r->column[c].count = 0;
}

void dsc_import_columns_fini(dsc_import_record *r)
{
    for (int c = 0; c < r->columns; c++)
        free(r->column[c].data);
}

int dsc_import_columns_finish(const dsc_import_record *r, dsc_error *err)
{
    const dsc_trace_info *info = &r->recorded;
    size_t steps = r->column[COL_STEP_ACCEPTED].count;
    char name[LABEL_BYTES];
    for (int c = 0; c < r->columns; c++) {
        if (!dsc_columns[c].input || !dsc_column_recorded(info, c))
            continue;
        bool of_steps = dsc_columns[c].counted_by == COL_STEP_OFFSET;
        size_t have = r->column[c].count / (size_t)dsc_column_width(info, c);
        size_t want = of_steps ? steps : r->output.tokens.count;
        const char *what = dsc_columns[c].shape == SHAPE_NUMBER ? "numbers" : "rows";
        if (have != want && of_steps)
            return dsc_fail(err, DSC_EINPUT, "field '%s' has %zu %s, but there are %zu steps",
                            label(info, c, name), have, what, want);
        if (have != want)
            return dsc_fail(
                err, DSC_EINPUT,
                "field '%s' has %zu %s, but the output has %zu tokens (including the EOS "
                "token)",
                label(info, c, name), have, what, want);
    }
    return DSC_OK;
}

// --- records of one trace ----------------------------------------------------------------------

void dsc_import_record_describe(const dsc_import_record *r, dsc_trace_info *info)
{
    bool text = info->has_text;
    dsc_recorded_copy(info, &r->recorded);
    info->has_text = text;
}

static int all_or_none(bool before, bool now, const char *field, dsc_error *err)
{
    if (before && !now)
        return dsc_fail(err, DSC_EINPUT, "field '%s' is missing, but earlier requests have it",
                        field);
    if (!before && now)
        return dsc_fail(err, DSC_EINPUT, "field '%s' is present, but earlier requests lack it",
                        field);
    return DSC_OK;
}

static int drafters_agree(const dsc_trace_info *now, const dsc_trace_info *first, dsc_error *err)
{
    int rc = DSC_OK;
    for (int i = 0; i < now->drafters && !rc; i++) {
        const dsc_drafter_record *d = &now->drafter[i];
        int at = dsc_drafter_number(first, d->name);
        char field[LABEL_BYTES];
        snprintf(field, sizeof field, "accept.%s", d->name);
        rc = all_or_none(at >= 0, true, field, err);
        if (!rc && first->drafter[at].cap != d->cap)
            rc = dsc_fail(err, DSC_EINPUT, "field '%s.cap' is %d, but %d in earlier requests",
                          field, (int)d->cap, (int)first->drafter[at].cap);
    }
    for (int i = 0; i < first->drafters && !rc; i++) {
        char field[LABEL_BYTES];
        snprintf(field, sizeof field, "accept.%s", first->drafter[i].name);
        rc = all_or_none(true, dsc_drafter_number(now, first->drafter[i].name) >= 0, field, err);
    }
    return rc;
}

int dsc_import_record_agrees(const dsc_import_record *r, const dsc_trace_info *first,
                             dsc_error *err)
{
    const dsc_trace_info *now = &r->recorded;
    char name[LABEL_BYTES];
    int rc = DSC_OK;
    for (const dsc_json_column *j = dsc_json_columns; j->name && !rc; j++) {
        bool before = dsc_column_recorded(first, j->column);
        if (before != dsc_column_recorded(now, j->column))
            rc = all_or_none(before, !before, label(now, j->column, name), err);
    }
    for (dsc_model_side side = 0; side < DSC_SIDES && !rc; side++)
        rc = all_or_none(first->rows[side], now->rows[side], dsc_rows_name(side, DSC_ROWS_LISTED),
                         err);
    if (!rc && now->steps != first->steps)
        rc = dsc_fail(err, DSC_EINPUT,
                      "field 'steps': the steps are %s, but those of earlier requests %s",
                      now->steps == DSC_STEPS_ALIGNED ? "aligned" : "not aligned",
                      first->steps == DSC_STEPS_ALIGNED ? "are" : "are not");
    for (const dsc_json_object *o = dsc_json_objects; o == dsc_json_objects || o->name; o++)
        for (int i = 0; i < o->parameters && !rc; i++)
            if (dsc_parameter_value(now, o->parameter + i) !=
                    dsc_parameter_value(first, o->parameter + i) &&
                dsc_parameter_needed(first, o->parameter + i))
                rc =
                    dsc_fail(err, DSC_EINPUT, "field '%s.%s' is %d, but %d in earlier requests",
                             o->name, o->member[i], (int)dsc_parameter_value(now, o->parameter + i),
                             (int)dsc_parameter_value(first, o->parameter + i));
    return rc ? rc : drafters_agree(now, first, err);
}

void dsc_import_record_view(const dsc_import_record *r, const dsc_trace_info *first,
                            dsc_request_input *q)
{
    for (dsc_model_side side = 0; side < DSC_SIDES; side++) {
        const dsc_import_column *c = &r->column[dsc_row_column(side, COL_DRAFT_ROW_OFFSET)];
        q->rows[side] = (dsc_rows){.kind = r->recorded.rows[side],
                                   .offset = c[0].data,
                                   .token = c[1].data,
                                   .logp = c[2].data,
                                   .tail = c[3].data};
    }
    q->steps.count = (int64_t)r->column[COL_STEP_ACCEPTED].count;
    for (int c = 0; c < COL_ACCEPT && c < r->columns; c++)
        if (dsc_columns[c].input && dsc_column_recorded(&r->recorded, c))
            dsc_column_set(q, c, dsc_columns[c].input, r->column[c].data);
    for (int i = 0; i < first->drafters; i++)
        q->accept[i] =
            r->column[COL_ACCEPT + dsc_drafter_number(&r->recorded, first->drafter[i].name)].data;
}

// --- JSON --------------------------------------------------------------------------------------

// The state of reading nested arrays.
typedef struct walk {
    const char *field;
    const dsc_column_type *type;
    int dimensions; // including the dimension of positions
    int64_t shape[3];
    size_t index[3]; // index of the current array element
    void *out;
    size_t count; // numbers written
    dsc_error *err;
} walk;

// Names the current element, "field[3][0]", with `depth` indices.
static const char *place(const walk *w, int depth, char out[LABEL_BYTES + 80])
{
    int n = snprintf(out, LABEL_BYTES + 80, "%s", w->field);
    for (int d = 0; d < depth; d++)
        n += snprintf(out + n, (size_t)(LABEL_BYTES + 80 - n), "[%zu]", w->index[d]);
    return out;
}

static int check_arrays(walk *w, const json_t *value, int depth)
{
    char name[LABEL_BYTES + 80];
    if (!json_is_array(value))
        return dsc_import_wrong_type(
            value, depth + 1 < w->dimensions ? "an array of arrays" : "an array of numbers", w->err,
            "%s", place(w, depth, name));
    size_t n = json_array_size(value);
    if (depth && (int64_t)n != w->shape[depth])
        return dsc_fail(w->err, DSC_EINPUT, "field '%s' has %zu elements; it must have %lld",
                        place(w, depth, name), n, (long long)w->shape[depth]);
    int rc = DSC_OK;
    for (size_t i = 0; i < n && depth + 1 < w->dimensions && !rc; i++) {
        w->index[depth] = i;
        rc = check_arrays(w, json_array_get(value, i), depth + 1);
    }
    return rc;
}

static int read_integer(walk *w, const json_t *value)
{
    char name[LABEL_BYTES + 80];
    // The greatest number of 16 bits stands for none: DSC_RANK_NONE, DSC_PARENT_NONE.
    bool ids = w->type->dtype == DSC_U32,
         ranks = w->type->values == VALUES_RANK || w->type->values == VALUES_PARENT;
    json_int_t n = json_integer_value(value), largest = ids ? INT32_MAX : UINT16_MAX - ranks;
    if (!json_is_integer(value) && !(ranks && json_is_null(value)))
        return dsc_import_wrong_type(value, ranks ? "an integer or null" : "an integer", w->err,
                                     "%s", place(w, w->dimensions, name));
    if (n < 0 || n > largest)
        return dsc_fail(w->err, DSC_EINPUT, "field '%s' is %lld; it must be 0 to %lld",
                        place(w, w->dimensions, name), (long long)n, (long long)largest);
    if (ids)
        ((uint32_t *)w->out)[w->count++] = (uint32_t)n;
    else
        ((uint16_t *)w->out)[w->count++] = json_is_null(value) ? DSC_RANK_NONE : (uint16_t)n;
    return DSC_OK;
}

static int read_real(walk *w, const json_t *value)
{
    char name[LABEL_BYTES + 80];
    bool mass = w->type->values == VALUES_LOG_MASS;
    float *out = (float *)w->out + w->count++;
    if (mass && json_is_null(value)) {
        *out = -INFINITY;
        return DSC_OK;
    }
    if (!json_is_number(value))
        return dsc_import_wrong_type(value, mass ? "a number or null" : "a number", w->err, "%s",
                                     place(w, w->dimensions, name));
    double x = json_number_value(value);
    *out = (float)x;
    if (mass || w->type->values == VALUES_LOGP)
        if (!(*out <= 0) || !isfinite(*out))
            return dsc_fail(
                w->err, DSC_EINPUT,
                "field '%s' is %g; the logarithm of a probability must be at most 0 and "
                "above -3.4e38",
                place(w, w->dimensions, name), x);
    if (!isfinite(*out))
        return dsc_fail(w->err, DSC_EINPUT, "field '%s' is %g; the limit is 3.4e38",
                        place(w, w->dimensions, name), x);
    return DSC_OK;
}

static int read_numbers(walk *w, const json_t *value, int depth)
{
    int rc = DSC_OK;
    if (depth == w->dimensions)
        return w->type->dtype == DSC_F32 ? read_real(w, value) : read_integer(w, value);
    for (size_t i = 0; i < json_array_size(value) && !rc; i++) {
        w->index[depth] = i;
        rc = read_numbers(w, json_array_get(value, i), depth + 1);
    }
    return rc;
}

static int read_column(dsc_import_record *r, int column, const json_t *array, dsc_error *err)
{
    char field[LABEL_BYTES];
    walk w = {
        .field = label(&r->recorded, column, field), .type = &dsc_columns[column], .err = err};
    w.dimensions = 1 + dsc_column_shape(&r->recorded, column, w.shape + 1);
    int rc = check_arrays(&w, array, 0); // the size below must match the numbers in the arrays
    if (!rc)
        rc = dsc_import_column_start(
            r, column, json_array_size(array) * (size_t)dsc_column_width(&r->recorded, column),
            &w.out, err);
    return rc ? rc : read_numbers(&w, array, 0);
}

static int read_parameter(const json_t *object, const char *name, const char *member,
                          int32_t largest, int32_t *out, dsc_error *err)
{
    int64_t n = 0;
    int rc = dsc_import_integer(&n, json_object_get(object, member), 1, largest, err, "%s.%s", name,
                                member);
    *out = (int32_t)n;
    return rc;
}

static int read_steps(dsc_import_record *r, const json_t *object, dsc_error *err)
{
    const json_t *aligned = json_object_get(object, "aligned");
    if (aligned && !json_is_boolean(aligned))
        return dsc_import_wrong_type(aligned, "a boolean", err, "steps.aligned");
    if (!json_object_get(object, "accepted"))
        return dsc_import_wrong_type(NULL, "", err, "steps.accepted");
    r->recorded.steps = json_is_true(aligned) ? DSC_STEPS_ALIGNED : DSC_STEPS_LOGGED;
    return DSC_OK;
}

// Every member must be the object's parameter or one of its columns.
static int check_members(const json_t *object, int index, dsc_error *err)
{
    json_t *o = (json_t *)(uintptr_t)object; // Jansson's iterators take no const; nothing changes
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        const char *key = json_object_iter_key(at);
        bool known = false;
        for (int i = 0; i < DSC_JSON_PARAMETERS && dsc_json_objects[index].member[i]; i++)
            known |= !strcmp(key, dsc_json_objects[index].member[i]);
        for (const dsc_json_column *j = dsc_json_columns; j->name && !known; j++)
            known = j->object == index && !strcmp(key, j->name);
        if (!known)
            return dsc_fail(err, DSC_EINPUT, "unknown field '%s.%.100s'",
                            dsc_json_objects[index].name, key);
    }
    return DSC_OK;
}

static int read_object(dsc_import_record *r, const json_t *line, int index, dsc_error *err)
{
    const dsc_json_object *o = &dsc_json_objects[index];
    const json_t *object = o->name ? json_object_get(line, o->name) : line;
    if (!object)
        return DSC_OK;
    if (!json_is_object(object))
        return dsc_import_wrong_type(object, "an object", err, "%s", o->name);
    int rc = o->name ? check_members(object, index, err) : DSC_OK;
    for (int i = 0; i < o->parameters && !rc; i++)
        rc = read_parameter(object, o->name, o->member[i], dsc_parameters[o->parameter + i].largest,
                            dsc_parameter_of(&r->recorded, o->parameter + i), err);
    if (!rc && index == DSC_JSON_STEPS)
        rc = read_steps(r, object, err);
    for (const dsc_json_column *j = dsc_json_columns; j->name && !rc; j++) {
        const json_t *array = j->object == index ? json_object_get(object, j->name) : NULL;
        if (array)
            rc = read_column(r, j->column, array, err);
    }
    return rc;
}

static int read_drafter(dsc_import_record *r, const char *name, const json_t *object,
                        dsc_error *err)
{
    char field[LABEL_BYTES];
    int32_t cap;
    int column, rc;
    snprintf(field, sizeof field, "accept.%.100s", name);
    if (!json_is_object(object))
        return dsc_import_wrong_type(object, "an object", err, "%s", field);
    const json_t *accepted = json_object_get(object, "accepted");
    if (!accepted)
        return dsc_import_wrong_type(NULL, "", err, "%s.accepted", field);
    rc = read_parameter(object, field, "cap", UINT16_MAX, &cap, err);
    if (!rc && json_object_size(object) != 2)
        rc = dsc_fail(err, DSC_EINPUT, "field '%s' must have the members cap and accepted only",
                      field);
    if (!rc)
        rc = dsc_import_add_drafter(r, name, cap, &column, err);
    return rc ? rc : read_column(r, column, accepted, err);
}

int dsc_import_columns_read(dsc_import_record *r, const json_t *line, dsc_error *err)
{
    json_t *accept = json_object_get(line, "accept");
    int rc = DSC_OK;
    for (int i = 0; (i == 0 || dsc_json_objects[i].name) && !rc; i++)
        rc = read_object(r, line, i, err);
    if (!rc && accept && !json_object_size(accept))
        rc =
            dsc_fail(err, DSC_EINPUT, "field 'accept' must be an object with at least one drafter");
    for (void *at = rc ? NULL : json_object_iter(accept); at && !rc;
         at = json_object_iter_next(accept, at))
        rc = read_drafter(r, json_object_iter_key(at), json_object_iter_value(at), err);
    return rc;
}
