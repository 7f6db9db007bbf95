// SPDX-License-Identifier: Apache-2.0
// Reads answers in MT-bench's format as EAGLE and Medusa write them (import_answers.h): choices[0]
// has "idxs" in addition to new_tokens and wall_time, but no data of single steps. idxs[t] is the
// index of the last step of turn t, from 0 (`for idx in range(max_steps)` in ea_model.py), so the
// turn took idxs[t] + 1 steps. No step is recorded; idxs stays in the metadata.
#include "traces/import/import_answers.h"

static int probe(const json_t *line)
{
    const json_t *choice = json_array_get(json_object_get(line, "choices"), 0);
    return 2 * (json_object_get(line, "question_id") != NULL) +
           2 * (json_object_get(choice, "turns") != NULL) +
           (json_object_get(choice, "idxs") != NULL);
}

// A turn takes at most one step per new token.
static int check_steps(const dsc_answer *a, dsc_error *err)
{
    if (!json_object_get(a->choice, "idxs"))
        return DSC_OK;
    int rc = dsc_answer_check_field(a, "idxs", err);
    for (size_t t = 0; t < a->turns && !rc; t++) {
        int64_t last;
        rc = dsc_answer_count(a, "idxs", t, &last, err);
        // (The prefill's token may be counted or not, and so may a step that was cut to no token.)
        if (!rc && last > a->turn_tokens[t])
            rc = dsc_fail(
                err, DSC_EINPUT,
                "field 'choices[0].idxs': turn %zu has %lld steps, but only %lld new tokens", t,
                (long long)last + 1, (long long)a->turn_tokens[t]);
    }
    return rc;
}

static int read_line(const json_t *line, const dsc_import_options *options, dsc_import_record *out,
                     dsc_error *err)
{
    static const char *const fields[] = {"idxs", "new_tokens", "wall_time", NULL};
    dsc_answer a;
    int rc = dsc_answer_read(&a, line, err);
    if (!rc)
        rc = check_steps(&a, err);
    if (!rc)
        rc = dsc_answer_fill(out, line, &a, options->asked, fields, err);
    return rc;
}

const dsc_import_driver dsc_import_mtbench = {
    .name = "mtbench",
    .summary = "MT-bench answers: turns, new_tokens, idxs (--questions FILE)",
    .needs = "question_id choices",
    .probe = probe,
    .read = read_line,
    .wants_questions = true,
};

const dsc_import_driver dsc_import_eagle = {
    .name = "eagle",
    .summary = "EAGLE's answers in MT-bench's format: turns, new_tokens, idxs (--questions FILE)",
    .needs = "question_id choices",
    .probe = probe, // equal to that of mtbench, which comes first in the list
    .read = read_line,
    .wants_questions = true,
};
