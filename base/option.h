// SPDX-License-Identifier: Apache-2.0
// Option tables: one description of an option serves parsing, ranges, help, man page checks and
// the parameters of methods.
//
// Where nothing else is stated, pointers are not NULL and options have a name. Otherwise a function
// that has a status returns DSC_EUSAGE, a search finds nothing, and the others do nothing.
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
    const char *metavar;  // "N", "FILE"; NULL for a flag
    const char *initial;  // default as text, or NULL
    int64_t min, max;     // INT
    double least, most;   // REAL
    const char *choices;  // CHOICE: "paper|code"
    const char *help;     // one line
    bool length;          // of a method: bounds the draft's length and touches nothing else
    bool list;            // takes a list although its set does not
    const char *synonyms; // "length|gamma": further names that it is given by, or NULL
    const char *column;   // name of its result column where that is not `name`, or NULL
    // Of a method: the values that tune tries when the method is given no option, from sizes that
    // pay on a CPU to those of a GPU, with the default among them. A list, or for a TEXT option
    // that takes none, texts divided by |. NULL: the default only.
    const char *sizes;
} dsc_option;

// Number of drafts verified against one target distribution.
#define DSC_OPTION_NUM_DRAFTS                                                                      \
    .name = "num-drafts", .letter = 'K', .kind = DSC_OPTION_INT, .metavar = "K"

typedef struct dsc_option_value {
    const char *text; // as given, or the default, or NULL
    int64_t integer;  // INT and CHOICE, when a single value was given
    double real;      // REAL, when a single value was given
    bool given;       // on the command line
} dsc_option_value;

// One option as it stands on the command line.
typedef struct dsc_option_use {
    const dsc_option *option;
    const char *text;
    bool owned; // given as --OWNER.NAME
} dsc_option_use;

// All of them, in order, repeated ones included. Zero-initialize; free `use`.
typedef struct dsc_option_uses {
    dsc_option_use *use;
    size_t count, capacity;
} dsc_option_uses;
DSC_API int dsc_option_uses_add(dsc_option_uses *uses, const dsc_option_use *use, dsc_error *err);

// A table with the place of its values. A name that several sets have sets all of them;
// --OWNER.NAME sets that of one.
typedef struct dsc_option_set {
    const dsc_option *table;
    size_t count;
    dsc_option_value *value; // [count]
    bool lists;              // INT, CHOICE and REAL options take ranges and lists, left as text for
                             // dsc_option_list and dsc_option_reals
    const char *owner;       // or NULL
    const char *synonyms;    // "a|b": further names of the owner, or NULL
    dsc_option_uses *uses;   // collects every use of its options, or NULL
    const char *elsewhere;   // NULL, or who takes these options: "method pearl". Such a set has no
                             // values; it only serves the message about an unknown option.
} dsc_option_set;

// Parses argv[0, argc) against all sets; what is not an option is moved to argv[0, *positionals),
// in order. "--" ends the options. Later values win. DSC_EUSAGE names the option, the value and the
// limit. An unknown option is reported before anything else, with who takes it or the nearest name.
DSC_API int dsc_options_parse(dsc_option_set *sets, size_t count, int argc, char **argv,
                              size_t *positionals, dsc_error *err);

// DSC_EUSAGE when an option is in none of the sets.
DSC_API int dsc_options_check(const dsc_option_set *sets, size_t count, int argc, char **argv,
                              dsc_error *err);

// Returns whether text[0, length) is one of the words of a list "a|b|c", which may be NULL.
DSC_API bool dsc_is_listed(const char *list, const char *text, size_t length);

// Returns whether the option has this name or synonym.
DSC_API bool dsc_option_is(const dsc_option *o, const char *name, size_t length);

// One value of an INT or CHOICE option. DSC_EUSAGE with name and limits.
DSC_API int dsc_option_single(const dsc_option *o, const char *text, int64_t *out, dsc_error *err);

// A list of values: items joined by commas. An INT item is a value or a range a:b[:step], also
// written a..b or a-b; b is included when the step meets it. At most 1 000 000 values, none twice.
// *out owned by the caller.
DSC_API int dsc_option_list(const dsc_option *o, const char *text, int64_t **out, size_t *count,
                            dsc_error *err);

// A list of values of a REAL option. Its ranges are a:b:step, with values rounded to 12 digits.
DSC_API int dsc_option_reals(const dsc_option *o, const char *text, double **out, size_t *count,
                             dsc_error *err);

// The texts of a TEXT option, joined by commas. *out, with its texts, is one block that the caller
// frees. DSC_EUSAGE: a text is empty or given twice. Internal.
int dsc_option_texts(const dsc_option *o, const char *text, const char ***out, size_t *count,
                     dsc_error *err);

// The option of table[count] that goes by `name`, which may be a synonym; NULL: there is none.
DSC_API const dsc_option *dsc_option_find(const dsc_option *table, size_t count, const char *name);

// One value of a REAL option. DSC_EUSAGE with name and limits.
DSC_API int dsc_option_real(const dsc_option *o, const char *text, double *out, dsc_error *err);

// The text of choice `value` ("code"), or the integer's decimal text, into out[size]. An empty
// text: there is no such choice, or `o` is NULL.
DSC_API void dsc_option_text(const dsc_option *o, int64_t value, char *out, size_t size);

// The help lines of a table. Options without a name are left out.
DSC_API void dsc_option_help(const dsc_option *table, size_t count, FILE *f);

// DSC_EUSAGE: "unknown WHAT 'word' (did you mean NEAREST?)", or, when none is near, "(SEE)". A
// candidate is a name, a list "a|b" of names, or NULL.
DSC_API int dsc_unknown_name(const char *what, const char *word, const char *const *candidates,
                             size_t count, const char *see, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif
