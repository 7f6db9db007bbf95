// SPDX-License-Identifier: Apache-2.0
// Fields of foreign lines by path, and tables of them. A driver whose lines differ from
// draftscope's own (import_jsonl.c) in the names of fields is a table: it makes a request, a JSON
// object in draftscope's form, which dsc_import_request_read then reads.
#ifndef DSC_TRACES_IMPORT_PATH_H
#define DSC_TRACES_IMPORT_PATH_H

#include "traces/import/import_record.h"

// A row of a table: where a field of a request comes from.
typedef struct dsc_import_field {
    const char *to;   // its path in the request: "prompt", "metadata.model"
    const char *from; // paths in the line, the first that is present: "id|request.id"
    double unit;      // not 0: a number of at least 0, times this (0.001: milliseconds to seconds)
    bool required;    // the line must have it
} dsc_import_field;   // a table ends with a row without `to`

// The value at a path of members and indexes, "choices.0.message.content"; '#' stands for `index`.
// A name that contains dots is found, too, where the part before the dot is no member. NULL: it is
// absent or null. `path` may end at '|' instead of NUL.
json_t *dsc_import_at(const json_t *line, const char *path, size_t index);
// The same for the first path of a list "a|b.c".
json_t *dsc_import_any(const json_t *line, const char *paths, size_t index);

// Sets the member at a path of members; objects on the way are made. The reference is stolen.
// DSC_EINPUT: a member on the way is no object.
int dsc_import_put_at(json_t *request, const char *path, json_t *value, dsc_error *err);

// Copies the fields of a table, as references to the same values. `metadata.wall_time`,
// `metadata.arrival_s` and other numbers with a unit are checked; finish reasons become "length" or
// "stop"; a single reference becomes a list. DSC_EINPUT names the field of the line.
int dsc_import_gather(json_t *request, const dsc_import_field *fields, const json_t *line,
                      size_t index, dsc_error *err);

// The rows that lines of many programs have: id, model, category, times, finish_reason.
extern const dsc_import_field dsc_import_common[];
// The row of the number of output tokens that a server counted.
extern const dsc_import_field dsc_import_usage[];

// Whether a finish reason says that a limit ended the output; all others ended by themselves.
bool dsc_import_is_cut(const json_t *reason);

// Makes a request of those rows and the rows of a table. A request without a prompt gets an empty
// one.
int dsc_import_request_new(json_t **out, const dsc_import_field *fields, const json_t *line,
                           size_t index, dsc_error *err);

// Appends a request of a line that has `count`: the id gets the suffix "/NUMBER" (from 1) when
// there are several. The reference is stolen.
int dsc_import_add_request(json_t *requests, json_t *request, size_t number, size_t count,
                           dsc_error *err);

// Reads a request that a table made: one of draftscope's JSON lines, whose metadata may contain
// counts of the source (new_tokens, wall_time).
int dsc_import_request_read(const json_t *request, const dsc_import_options *options,
                            dsc_import_record *out, dsc_error *err);

#endif
