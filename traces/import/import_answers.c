// SPDX-License-Identifier: Apache-2.0
// Reads answers and questions in MT-bench's format (import_answers.h): checks an answer, joins its
// turns, and looks up its question.
#include "traces/import/import_answers.h"

#include "traces/files/input.h"

#include <math.h>
#include <string.h>

int dsc_answer_check_field(const dsc_answer *a, const char *field, dsc_error *err)
{
    const json_t *array = json_object_get(a->choice, field);
    if (!json_is_array(array))
        return dsc_import_wrong_type(array, "an array", err, "choices[0].%s", field);
    if (json_array_size(array) != a->turns)
        return dsc_fail(err, DSC_EINPUT,
                        "field 'choices[0].%s' has %zu elements, but there are %zu turns", field,
                        json_array_size(array), a->turns);
    return DSC_OK;
}

int dsc_answer_count(const dsc_answer *a, const char *field, size_t turn, int64_t *out,
                     dsc_error *err)
{
    return dsc_import_integer(out, json_array_get(json_object_get(a->choice, field), turn), 0,
                              INT32_MAX, err, "choices[0].%s[%zu]", field, turn);
}

static int check_times(const dsc_answer *a, dsc_error *err)
{
    const json_t *array = json_object_get(a->choice, "wall_time");
    if (!array)
        return DSC_OK;
    int rc = dsc_answer_check_field(a, "wall_time", err);
    for (size_t i = 0; i < a->turns && !rc; i++) {
        const json_t *v = json_array_get(array, i);
        if (!json_is_number(v) || !(json_number_value(v) >= 0))
            rc = dsc_fail(err, DSC_EINPUT,
                          "field 'choices[0].wall_time[%zu]' must be a number of seconds", i);
    }
    return rc;
}

int dsc_answer_read(dsc_answer *out, const json_t *line, dsc_error *err)
{
    const json_t *choices = json_object_get(line, "choices");
    if (!json_is_array(choices))
        return dsc_import_wrong_type(choices, "an array", err, "choices");
    if (json_array_size(choices) != 1)
        return dsc_fail(err, DSC_EINPUT, "field 'choices' has %zu elements; it must have one",
                        json_array_size(choices));
    out->choice = json_array_get(choices, 0);
    const json_t *turns = json_object_get(out->choice, "turns");
    if (!json_is_array(turns))
        return dsc_import_wrong_type(turns, "an array of strings", err, "choices[0].turns");
    out->turns = json_array_size(turns);
    if (out->turns < 1 || out->turns > DSC_TURNS_MAX)
        return dsc_fail(err, DSC_EINPUT,
                        "field 'choices[0].turns' has %zu elements; it must have 1 to %d",
                        out->turns, DSC_TURNS_MAX);
    int rc = dsc_answer_check_field(out, "new_tokens", err);
    if (!rc)
        rc = check_times(out, err);
    out->new_tokens = 0;
    for (size_t i = 0; i < out->turns && !rc; i++) {
        rc = dsc_answer_count(out, "new_tokens", i, &out->turn_tokens[i], err);
        out->new_tokens += rc ? 0 : out->turn_tokens[i];
    }
    return rc;
}

// Joins the strings of `array` in *text with a line end between them. For an output (`turn_tokens`
// not NULL) also adds its turns to the record.
static int join(dsc_import_text *text, const json_t *array, const char *field,
                dsc_import_record *turns_of, const int64_t *turn_tokens, dsc_error *err)
{
    int rc = dsc_import_put(text, "", (dsc_text_view){"", 0}, err);
    for (size_t i = 0; i < json_array_size(array) && !rc; i++) {
        dsc_text_view turn;
        rc = dsc_import_string(&turn, json_array_get(array, i), err, "%s[%zu]", field, i);
        if (!rc)
            rc = dsc_import_put(text, i ? "\n" : "", turn, err);
        if (!rc && turn_tokens)
            rc = dsc_import_add_turn(turns_of, text->built.length - (size_t)turn.length,
                                     (size_t)turn.length, turn_tokens[i], true, err);
    }
    return rc;
}

// Converts a question's id to the key of the questions. DSC_EINPUT unless it is a string or an
// integer.
static int question_key(const json_t *id, char key[DSC_IMPORT_ID_MAX + 1], dsc_error *err)
{
    dsc_import_record r = {0};
    int rc = id ? dsc_import_id(&r, id, err)
                : dsc_fail(err, DSC_EINPUT, "field 'question_id' is missing");
    if (!rc) {
        memcpy(key, r.id.data, r.id.length);
        key[r.id.length] = '\0';
    }
    dsc_import_record_fini(&r);
    return rc;
}

int dsc_answer_fill(dsc_import_record *record, const json_t *line, const dsc_answer *a,
                    const json_t *questions, const char *const *fields, dsc_error *err)
{
    static const char *const own[] = {"question_id", "category", "model_id", NULL};
    char key[DSC_IMPORT_ID_MAX + 1];
    const json_t *asked = NULL;
    int rc = question_key(json_object_get(line, "question_id"), key, err);
    if (!rc)
        rc = dsc_import_id(record, json_object_get(line, "question_id"), err);
    if (!rc && questions) {
        asked = json_object_get(questions, key);
        if (!asked)
            rc =
                dsc_fail(err, DSC_EINPUT, "question %s is missing in the file of --questions", key);
    }
    if (!rc)
        rc = join(&record->prompt, asked, "turns", NULL, NULL, err);
    if (!rc)
        rc = join(&record->output, json_object_get(a->choice, "turns"), "choices[0].turns", record,
                  a->turn_tokens, err);
    const json_t *times = json_object_get(a->choice, "wall_time");
    for (size_t i = 0; i < json_array_size(times); i++)
        record->recorded_s += json_number_value(json_array_get(times, i));
    if (!rc)
        rc = dsc_import_keep(record, line, own, err);
    return rc ? rc : dsc_import_keep(record, a->choice, fields, err);
}

// --- questions ---------------------------------------------------------------------------------

static int add_question(json_t *questions, const json_t *line, dsc_error *err)
{
    char key[DSC_IMPORT_ID_MAX + 1];
    json_t *turns = json_object_get(line, "turns");
    if (!json_is_object(line))
        return dsc_import_not_object(line, err);
    int rc = question_key(json_object_get(line, "question_id"), key, err);
    if (!rc && !json_is_array(turns))
        rc = dsc_import_wrong_type(turns, "an array of strings", err, "turns");
    for (size_t i = 0; i < json_array_size(turns) && !rc; i++) {
        dsc_text_view text;
        rc = dsc_import_string(&text, json_array_get(turns, i), err, "turns[%zu]", i);
    }
    if (!rc && json_object_get(questions, key))
        rc = dsc_fail(err, DSC_EINPUT, "question %s occurs twice", key);
    if (!rc && json_object_set(questions, key, turns))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    return rc;
}

int dsc_questions_load(json_t **out, dsc_input *in, dsc_error *err)
{
    *out = json_object();
    int rc = *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    while (!rc) {
        dsc_line line;
        json_t *json;
        rc = dsc_input_line(in, &line, err);
        if (rc || !line.bytes)
            break;
        rc = dsc_import_parse(&json, &line, dsc_input_name(in), err);
        if (rc)
            break;
        rc = add_question(*out, json, err);
        if (rc)
            dsc_error_prefix(err, rc, "%s:%lld", dsc_input_name(in), (long long)line.number);
        json_decref(json);
    }
    return rc;
}
