// SPDX-License-Identifier: Apache-2.0
// Answer files in the format of MT-bench, which Spec-Bench and EAGLE also write, one question per
// line,
//   {"question_id": 81, "category": "writing", "model_id": ...,
//    "choices": [{"index": 0, "turns": [TEXT, ...], "new_tokens": [N, ...],
//                 "wall_time": [SECONDS, ...], ...}]}
// and the questions they answer: {"question_id": 81, "turns": [TEXT, ...]}.
//
// A question becomes one request. Its prompt joins the questions of all turns and its output joins
// the answers, with a line end between turns. The tokens of an answer end with the EOS token where
// the recorded count includes one. Data of single turns stay in the metadata.
#ifndef DSC_TRACES_IMPORT_ANSWERS_H
#define DSC_TRACES_IMPORT_ANSWERS_H

#include "traces/import/import_record.h"

enum { DSC_TURNS_MAX = 1024 };

// One answered question. It points into the JSON value of the line.
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
// Checks that choices[0].FIELD is an array with an element for each turn.
int dsc_answer_check_field(const dsc_answer *a, const char *field, dsc_error *err);

// Sets id, prompt, output and metadata. The metadata contain question_id, category, model_id and,
// of choices[0], the present ones of `fields` (NULL-terminated). `questions` NULL: the prompt is
// empty.
int dsc_answer_fill(dsc_import_record *record, const json_t *line, const dsc_answer *a,
                    const json_t *questions, const char *const *fields, dsc_error *err);

// Reads questions by id: an object {"81": [TEXT, ...]}. *out is a new reference, also on failure.
// DSC_EINPUT names file and line; a duplicate question is an error.
int dsc_questions_load(json_t **out, dsc_input *in, dsc_error *err);

#endif
