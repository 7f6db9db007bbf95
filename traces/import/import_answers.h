// SPDX-License-Identifier: Apache-2.0
// Answer files of the MT-bench kind, which Spec-Bench and EAGLE write: one question per line,
//   {"question_id": 81, "category": "writing", "model_id": ...,
//    "choices": [{"index": 0, "turns": [TEXT, ...], "new_tokens": [N, ...],
//                 "wall_time": [SECONDS, ...], ...}]}
// and the questions they answer: {"question_id": 81, "turns": [TEXT, ...]}.
//
// A question becomes one request. Its prompt is all that was asked, turn after turn, its output all
// that was answered, both with a line end between the turns; the tokens of an answer end with the
// EOS token where the recorded count says so. What belongs to a turn stays in the metadata.
#ifndef DSC_TRACES_IMPORT_ANSWERS_H
#define DSC_TRACES_IMPORT_ANSWERS_H

#include "traces/import/import_record.h"

enum { DSC_TURNS_MAX = 1024 };

// One answered question. Views into the JSON value of the line.
typedef struct dsc_answer {
    const json_t *choice; // choices[0]
    size_t turns;         // 1 to DSC_TURNS_MAX
    int64_t new_tokens;   // of all turns
    int64_t turn_tokens[DSC_TURNS_MAX];
} dsc_answer;

// Reads and checks choices[0].{turns, new_tokens, wall_time}.
int dsc_answer_read(dsc_answer *out, const json_t *line, dsc_error *err);

// Element `turn` of choices[0].FIELD, an integer in [0, 2^31).
int dsc_answer_count(const dsc_answer *a, const char *field, size_t turn, int64_t *out,
                     dsc_error *err);
// That choices[0].FIELD is an array with an element for each turn.
int dsc_answer_check_field(const dsc_answer *a, const char *field, dsc_error *err);

// Fills in id, prompt, output and metadata: question_id, category, model_id, and of choices[0] the
// arrays new_tokens, wall_time and those of `fields` (NULL-terminated) that are there. `questions`:
// as loaded; NULL: the prompt is empty.
int dsc_answer_fill(dsc_import_record *record, const json_t *line, const dsc_answer *a,
                    const json_t *questions, const char *const *fields, dsc_error *err);

// Questions by id: an object {"81": [TEXT, ...]}. *out is a new reference. DSC_EINPUT names file
// and line; also for a question that is there twice.
int dsc_questions_load(json_t **out, const char *path, dsc_error *err);

#endif
