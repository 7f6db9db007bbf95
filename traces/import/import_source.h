// SPDX-License-Identifier: Apache-2.0
// The JSON values of an input, one after the other: its lines; or, where a source writes one JSON
// document instead, the elements of a list or values that span several lines.
//
// A document is told by its first line: it begins with '[', or is '{' alone. Memory is one line and
// one value (DSC_INPUT_LINE_MAX at most each).
#ifndef DSC_TRACES_IMPORT_SOURCE_H
#define DSC_TRACES_IMPORT_SOURCE_H

#include "base/memory.h"
#include "traces/files/input.h"

typedef struct dsc_import_source {
    dsc_input *in;
    enum {
        DSC_SOURCE_NEW,    // nothing was read
        DSC_SOURCE_LINES,  // a value per line
        DSC_SOURCE_VALUES, // values, one after the other
        DSC_SOURCE_LIST,   // inside a list
        DSC_SOURCE_CLOSED, // behind its end
        DSC_SOURCE_BROKEN, // nothing more can be read
    } mode;
    dsc_line line;                 // what is being cut into values
    size_t at;                     // bytes of it that were taken
    int64_t column;                // characters of it that were taken
    int64_t opened, opened_column; // where the list begins
    int64_t seen;                  // elements of the list
    dsc_buffer value;
} dsc_import_source;

// Zero-initialise but for `in`, which the source does not own.
void dsc_import_source_fini(dsc_import_source *s);

// The next value as a line: its number and column are those of the value's first character. It may
// hold line ends. `documents`: whether the input may be one. Errors as dsc_input_line, and
// DSC_EINPUT for a list that is not closed, is followed by something, or lacks an element.
int dsc_import_source_next(dsc_import_source *s, bool documents, dsc_line *out, dsc_error *err);
bool dsc_import_source_broken(const dsc_import_source *s);

#endif
