// SPDX-License-Identifier: Apache-2.0
// Reads the JSON values of an input in turn: its lines or, when the source is one JSON document,
// the elements of a list or values that span several lines.
//
// A document is recognized by its first line, which begins with '[' or is '{' alone. Memory is one
// line and one value, at most DSC_INPUT_LINE_MAX each.
#ifndef DSC_TRACES_IMPORT_SOURCE_H
#define DSC_TRACES_IMPORT_SOURCE_H

#include "base/memory.h"
#include "traces/files/input.h"

typedef struct dsc_import_source {
    dsc_input *in;
    enum {
        DSC_SOURCE_NEW,    // nothing was read yet
        DSC_SOURCE_LINES,  // a value per line
        DSC_SOURCE_VALUES, // values that span lines
        DSC_SOURCE_LIST,   // inside a list
        DSC_SOURCE_CLOSED, // after the end of the list
        DSC_SOURCE_BROKEN, // nothing more can be read
    } mode;
    dsc_line line;                 // the line that is being cut into values
    size_t at;                     // bytes of it that were consumed
    int64_t column;                // characters of it that were consumed
    int64_t opened, opened_column; // where the list begins
    int64_t seen;                  // elements of the list
    dsc_buffer value;
} dsc_import_source;

// Zero-initialize all members but `in`, which the source does not own.
void dsc_import_source_fini(dsc_import_source *s);

// The next value as a line; its number and column are those of the value's first character. It may
// contain line ends. `documents`: whether the input may be a document. Errors are those of
// dsc_input_line, and DSC_EINPUT for a list that is not closed, is followed by other text, or lacks
// an element.
int dsc_import_source_next(dsc_import_source *s, bool documents, dsc_line *out, dsc_error *err);
bool dsc_import_source_broken(const dsc_import_source *s);

#endif
