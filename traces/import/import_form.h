// SPDX-License-Identifier: Apache-2.0
// The rows of the table of chat templates (import_template.c), which import_render.c writes.
#ifndef DSC_TRACES_IMPORT_FORM_H
#define DSC_TRACES_IMPORT_FORM_H

#include "traces/import/import_template.h"

// Bits of a template: what is left out around a text, and where the text of a system message
// stands.
enum {
    TRIM_SYSTEM = 1,
    TRIM_USER = 2,
    TRIM_ASSISTANT = 4,
    TRIM = TRIM_SYSTEM | TRIM_USER | TRIM_ASSISTANT,
    DROP_THINKING = 8,   // of earlier answers, up to </think>
    DROP_LINE_ENDS = 16, // after that
    IN_FIRST_USER = 32,
    IN_LAST_USER = 64,
    KEEP_RECENT_THOUGHTS = 128, // of answers after the last message of the user
};

// How arguments are written, and further rules of calls and results.
enum {
    ARGUMENTS_JSON = 0,       // {"k": "v"}
    ARGUMENTS_PARAMETERS = 1, // <parameter=k>\nv\n</parameter>\n
    ARGUMENTS_KEYS = 2,       // <arg_key>k</arg_key>\n<arg_value>v</arg_value>\n
    ARGUMENTS = 3,
    ONE_CALL = 4,         // an answer calls one tool
    CALLS_ALONE = 8,      // the text of an earlier answer that calls tools is left out
    CALLS_END = 16,       // the last call ends the message
    CALLS_UNBEGUN = 4096, // without what is before the text of an earlier answer
    CALL_ID_FIRST = 32,   // the id of an earlier call stands before its arguments, not after them
    RESULT_QUOTED = 64,   // as a JSON string
    RESULT_JSON = 2048,   // as it is, if it is JSON; else as a JSON string
    RESULT_NAMED = 128,   // the name of the tool stands before it
    RESULT_ID_LAST = 256, // the id of the call stands after it, not before
    NO_BEGIN_AFTER_RESULT = 512, // an answer follows a result without its beginning
    STRIP_THOUGHTS = 1024,       // white space around thoughts, and line ends before the text
};

// How a template writes what an answer has besides its text, and the results of tools.
typedef struct dsc_chat_form {
    const char *thoughts[2]; // around them; NULL: unknown
    const char *begin[2];    // after the beginning of an answer with thoughts, and of one without
    const char *none[2];     // in their place, in answers since the last message of the user and
                             // in earlier ones; NULL: nothing
    const char *text[2];     // around the text of an answer; NULL: nothing
    const char *preamble[2]; // the same before calls; NULL: as text
    // Calls: before the first after a text, and without one; between two; after the last. NULL:
    // unknown.
    const char *calls[4];
    const char *call[3];      // before the name, between name and arguments, after these
    const char *past_call[3]; // in earlier answers; NULL: the same
    const char *id[2];        // around the id of an earlier call; NULL: it is not written
    const char *stop;         // the token that ends an answer with calls, where it differs
    const char *results[3];   // before the first of several, between two, after the last
    const char *result[3];    // around one, and between it and its name or id; or NULL
    unsigned rules;
} dsc_chat_form;

// Where the definitions of tools stand in a prompt.
typedef enum dsc_chat_place {
    TOOLS_IN_SYSTEM,     // after the text of the system message
    TOOLS_FIRST,         // before all messages
    TOOLS_IN_FIRST_USER, // before the text of the first user message, indented
    TOOLS_AT_LAST_USER,  // before the last user message
} dsc_chat_place;

typedef struct dsc_chat_tools {
    dsc_chat_place place;
    const char *before, *between, *after;
    const char *after_system; // between the text of a system message and `before`
    const char *system;       // before the text of the system message, where it differs; or NULL
} dsc_chat_tools;

struct dsc_chat_template {
    const char *name;
    const char *marks[5];                           // the Jinja text contains all of them;
                                                    // none: it is found by its name alone
    const char *absent[3];                          // and none of these
    const char *system[2], *user[2], *assistant[2]; // around a message's text
    const char *tool[2];                            // around a result, where there is no form
    const char *begin;                              // before all messages, or NULL
    const char *begin_answer;
    const char *default_system;    // where the conversation has none; NULL: nothing
    const char *system_with_tools; // the same where there are definitions of tools
    const char *again;             // before every user message but the first
    const char *end;               // the token that ends an answer
    const dsc_chat_form *form;     // NULL: unknown
    const dsc_chat_tools *tools;   // NULL: unknown
    unsigned flags;
};

#endif
