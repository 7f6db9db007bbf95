// SPDX-License-Identifier: Apache-2.0
// Option tables: one description of an option serves parsing, ranges, help, man page checks and
// the parameters of methods.
#ifndef DSC_BASE_OPTION_H
#define DSC_BASE_OPTION_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dsc_option_kind {
    DSC_OPTION_FLAG,   // no value
    DSC_OPTION_INT,    // an integer in [min, max]
    DSC_OPTION_REAL,   // a finite number in [least, most]
    DSC_OPTION_TEXT,   // any text; the user checks it
    DSC_OPTION_CHOICE, // one of `choices`; its value is the index
} dsc_option_kind;

typedef struct dsc_option {
    const char *name; // "threads": given as --threads VALUE or --threads=VALUE
    char letter;      // 'o': also -o VALUE; 0 for none
    dsc_option_kind kind;
    const char *metavar; // "N", "FILE"; NULL for a flag
    const char *initial; // default as text, or NULL
    int64_t min, max;    // INT
    double least, most;  // REAL
    const char *choices; // CHOICE: "paper|code"
    const char *help;    // one line
    bool length;         // of a method: bounds the draft's length and touches nothing else
    bool list;           // takes a list although its set does not
    const char *also;    // another name that it is known by, or NULL
} dsc_option;

typedef struct dsc_option_value {
    const char *text; // as given, or the default, or NULL
    int64_t integer;  // INT and CHOICE, when a single value was asked for
    double real;      // REAL, likewise
    bool given;       // on the command line
} dsc_option_value;

// A table with the place of its values. `lists`: INT, CHOICE and REAL options take ranges and
// lists, left as text for dsc_option_list and dsc_option_reals. A name that several sets have sets
// all of them; --OWNER.NAME that of one.
typedef struct dsc_option_set {
    const dsc_option *table;
    size_t count;
    dsc_option_value *value; // [count]
    bool lists;
    const char *owner; // or NULL
} dsc_option_set;

// Parses argv[0, argc) against all sets; what is not an option is moved to argv[0, *positionals),
// in order. "--" ends the options. Later values win. DSC_EUSAGE names the option, the value, the
// limit, and the nearest known name of an unknown one.
DSC_API int dsc_options_parse(dsc_option_set *sets, size_t count, int argc, char **argv,
                              size_t *positionals, dsc_error *err);

// One value of an INT or CHOICE option. DSC_EUSAGE with name and limits.
DSC_API int dsc_option_single(const dsc_option *o, const char *text, int64_t *out, dsc_error *err);

// A list of values: items joined by commas, an INT item a value or a range a:b[:step] (b included
// when the step meets it). At most 1 000 000 values, none twice. *out owned by the caller.
DSC_API int dsc_option_list(const dsc_option *o, const char *text, int64_t **out, size_t *count,
                            dsc_error *err);

// The same for a REAL option; its ranges are a:b:step, the values rounded to 12 digits.
DSC_API int dsc_option_reals(const dsc_option *o, const char *text, double **out, size_t *count,
                             dsc_error *err);

// The option of table[count] that goes by `name`, which may be a synonym; NULL: there is none.
DSC_API const dsc_option *dsc_option_find(const dsc_option *table, size_t count, const char *name);

// One value of a REAL option. DSC_EUSAGE with name and limits.
DSC_API int dsc_option_real(const dsc_option *o, const char *text, double *out, dsc_error *err);

// The text of choice `index` in `out` ("code"), or the integer's decimal text.
DSC_API void dsc_option_text(const dsc_option *o, int64_t value, char *out, size_t size);

// The help lines of a table.
DSC_API void dsc_option_help(const dsc_option *table, size_t count, FILE *f);

// DSC_EUSAGE: "unknown WHAT 'word' (did you mean NEAREST?)", or, when none is near, "(SEE)".
DSC_API int dsc_unknown_name(const char *what, const char *word, const char *const *candidates,
                             size_t count, const char *see, dsc_error *err);

// The candidate nearest to `word` by edit distance, or NULL when none is near.
DSC_API const char *dsc_nearest(const char *word, const char *const *candidates, size_t count);

#ifdef __cplusplus
}
#endif

#endif
