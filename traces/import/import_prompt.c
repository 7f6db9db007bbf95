// SPDX-License-Identifier: Apache-2.0
// Reads the lines of a file of prompts (import_prompt.h): recognizes their kind by their fields,
// and turns questions and conversations into prompts with the template of import_chat.c.
#include "traces/import/import_prompt.h"

#include "base/option.h"
#include "traces/import/import_chat.h"
#include "traces/import/import_map.h"

#include <stdlib.h>
#include <string.h>

typedef enum prompt_kind {
    MESSAGES,
    PROMPT,
    TURNS,
    DOCUMENTS,
    INSTRUCTION,
    QUESTION,
    QUERY,
    KINDS,
} prompt_kind;

// Fields by kind: the names that a line of it must have, those that it may have, whose values are
// used or are known answers, and the paths of an id.
static const struct {
    const char *needs, *may, *id;
} kinds[KINDS] = {
    [MESSAGES] = {"messages",
                  "messages|conversations|request|body|response|completion|answer|"
                  "conversation_id|custom_id|request_id|system|tools|functions",
                  "id|custom_id|request_id|conversation_id"},
    [PROMPT] = {"prompt", "task_id|canonical_solution|test|entry_point|completion", "id|task_id"},
    [TURNS] = {"turns", "turns|question_id|reference", "id|question_id"},
    [DOCUMENTS] = {"query and docs", "query|docs|result", "id"},
    [INSTRUCTION] = {"instruction", "instruction|input|response|generator|dataset", "id"},
    [QUESTION] = {"question", "question|answer", "id"},
    [QUERY] = {"query", "query|answer|response", "id"},
};

struct dsc_prompt_reader {
    dsc_prompt_options options;
    struct dsc_import_map map; // of options.map
    struct dsc_import_chat chat;
    dsc_import_options render; // for import_chat.c
    int kind;                  // of the first line, or -1
    json_t *ignored;           // names of fields that were left out, as members
    int64_t rendered, raw;     // questions and conversations by what became of them
    int64_t several;           // lines with more than one turn
};

int dsc_prompt_reader_new(dsc_prompt_reader **out, const dsc_prompt_options *options,
                          dsc_error *err)
{
    int rc = dsc_new(out, 1, err);
    if (rc)
        return rc;
    dsc_prompt_reader *r = *out;
    r->options = *options;
    r->kind = -1;
    r->ignored = json_object();
    r->render = (dsc_import_options){.chat = &r->chat};
    if (!r->ignored)
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc && options->map)
        rc = dsc_import_map_parse(&r->map, options->map, "prompt", err);
    if (!rc)
        rc = dsc_import_chat_choose(&r->chat, options->chat_template, options->tokenizer_spec, err);
    if (rc) {
        dsc_prompt_reader_free(r);
        *out = NULL;
    }
    return rc;
}

void dsc_prompt_reader_free(dsc_prompt_reader *r)
{
    if (!r)
        return;
    dsc_import_map_fini(&r->map);
    json_decref(r->ignored);
    free(r);
}

// --- the kind of a line --------------------------------------------------------------------------

static bool has(const json_t *line, const char *name)
{
    const json_t *value = json_object_get(line, name);
    return value && !json_is_null(value);
}

static bool is_kind(const json_t *line, prompt_kind kind)
{
    switch (kind) {
    case MESSAGES:
        return has(line, "messages") || has(line, "conversations") || dsc_import_messages(line);
    case DOCUMENTS: return has(line, "query") && has(line, "docs");
    default: return has(line, kinds[kind].needs);
    }
}

static int no_kind(const json_t *line, dsc_error *err)
{
    char fields[200] = "";
    size_t n = 0;
    json_t *o = (json_t *)(uintptr_t)line; // Jansson's iterators take no const; nothing changes
    if (json_object_get(line, "prompt"))   // null
        return dsc_import_wrong_type(json_object_get(line, "prompt"), "a text", err, "prompt");
    for (void *at = json_object_iter(o); at && n < sizeof fields; at = json_object_iter_next(o, at))
        n += (size_t)snprintf(fields + n, sizeof fields - n, "%s'%.40s'", n ? ", " : "",
                              json_object_iter_key(at));
    return dsc_fail(
        err, DSC_EINPUT,
        "field 'prompt' is missing, and so are messages, turns, instruction, question "
        "and query; name the field of the prompt: --map prompt=FIELD. The line has %s%s",
        *fields ? fields : "no fields", n >= sizeof fields ? ", ..." : "");
}

// The first line determines the kind of all.
static int settle_kind(dsc_prompt_reader *r, const json_t *line, dsc_error *err)
{
    int kind = 0;
    while (kind < KINDS && !is_kind(line, (prompt_kind)kind))
        kind++;
    if (kind == KINDS)
        return no_kind(line, err);
    if (r->kind >= 0 && kind != r->kind)
        return dsc_fail(
            err, DSC_EINPUT,
            "the line has %s, but the lines before it have %s; all lines of a file must "
            "be of one kind",
            kinds[kind].needs, kinds[r->kind].needs);
    r->kind = kind;
    return DSC_OK;
}

static int note_ignored(dsc_prompt_reader *r, const json_t *line, dsc_error *err)
{
    enum { MOST = 64 };
    json_t *o = (json_t *)(uintptr_t)line; // as above
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        const char *name = json_object_iter_key(at);
        if (dsc_import_is_field(name) || dsc_is_listed("model|category", name, strlen(name)) ||
            dsc_is_listed(kinds[r->kind].may, name, strlen(name)) ||
            json_object_size(r->ignored) >= MOST)
            continue;
        if (json_object_set_new(r->ignored, name, json_true()))
            return dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    return DSC_OK;
}

// --- prompts -------------------------------------------------------------------------------------

// Takes a rendered prompt as the record's text.
static int take(dsc_prompt_reader *r, const json_t *prompt, dsc_import_record *out, dsc_error *err)
{
    const json_t *text = json_is_object(prompt) ? json_object_get(prompt, "text") : prompt;
    const dsc_text_view view = {json_string_value(text), (int64_t)json_string_length(text)};
    r->rendered++;
    out->prompt_is_complete = json_is_object(prompt);
    out->prompt.built.length = 0; // of the question that was rendered, if it was built there
    return dsc_import_put(&out->prompt, "", view, err);
}

static bool is_blank(const json_t *text)
{
    const char *at = json_string_value(text);
    return at && !at[strspn(at, " \t\r\n\v\f")] &&
           strlen(at) == json_string_length(text); // a NUL is no blank
}

// `line`: what surrounds the list, or NULL.
static int read_messages(dsc_prompt_reader *r, const json_t *line, const json_t *list,
                         dsc_import_record *out, dsc_error *err)
{
    size_t count = json_array_size(list);
    dsc_import_prompt prompt;
    if (!json_is_array(list))
        return dsc_import_wrong_type(list, "an array of messages", err, "messages");
    for (; count; count--) { // an answer at the end is left out
        const char *role =
            json_string_value(dsc_import_any(json_array_get(list, count - 1), "role|from", 0));
        if (!role || !dsc_is_listed("assistant|gpt|model", role, strlen(role)))
            break;
    }
    const json_t *last = json_array_get(list, count - 1);
    const char *role = json_string_value(dsc_import_any(last, "role|from", 0));
    if (!count || (role && dsc_is_listed("system|developer", role, strlen(role))))
        return dsc_fail(err, DSC_EINPUT, "field 'messages' has no user message to answer");
    if (is_blank(dsc_import_any(last, "content|value", 0)))
        return dsc_fail(err, DSC_EINPUT, "field 'messages[%zu].content' is empty", count - 1);
    if (!r->chat.format && !*r->chat.refusal)
        return dsc_fail(err, DSC_EINPUT,
                        "messages need a chat template, and there is none next to the tokenizer "
                        "(chat_template.jinja, or in tokenizer_config.json); name one with "
                        "--chat-template (none: plain text)");
    int rc = dsc_import_chat_prompt(&prompt, line, list, count, false, &r->render, err);
    rc = rc ?: take(r, prompt.text, out, err);
    if (!rc && prompt.tools_left_out && json_object_set_new(r->ignored, "tools", json_true()))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    json_decref(prompt.text);
    return rc;
}

// Renders a text as the only message of a conversation.
static int wrap(dsc_prompt_reader *r, dsc_text_view text, dsc_import_record *out, dsc_error *err)
{
    json_t *list = json_pack("[{s:s, s:o}]", "role", "user", "content",
                             json_stringn_nocheck(text.bytes, (size_t)text.length));
    int rc =
        list ? read_messages(r, NULL, list, out, err) : dsc_fail(err, DSC_ENOMEM, "out of memory");
    json_decref(list);
    return rc;
}

// Whether a text is wrapped: a question, if there is a template; a prompt, if the user named one.
static bool is_wrapped(const dsc_prompt_reader *r, bool question)
{
    const bool none = r->chat.format == dsc_chat_template_find("none");
    return r->chat.named ? !none : question && (r->chat.format || *r->chat.refusal);
}

// The text of the record, as built so far, becomes the prompt.
static int settle_text(dsc_prompt_reader *r, bool question, const char *field,
                       dsc_import_record *out, dsc_error *err)
{
    const dsc_text_view text = out->prompt.text;
    json_t *copy = json_stringn_nocheck(text.bytes, (size_t)text.length);
    const bool blank = is_blank(copy);
    json_decref(copy);
    const bool wrapped = is_wrapped(r, question);
    if ((question || wrapped) && blank)
        return dsc_fail(err, DSC_EINPUT, "field '%s' is empty", field);
    if (wrapped)
        return wrap(r, text, out, err);
    r->raw += question;
    return DSC_OK;
}

static int read_question(dsc_prompt_reader *r, const json_t *value, const char *field,
                         dsc_import_record *out, dsc_error *err)
{
    int rc = dsc_import_string(&out->prompt.text, value, err, "%s", field);
    return rc ? rc : settle_text(r, true, field, out, err);
}

static int read_turns(dsc_prompt_reader *r, const json_t *turns, dsc_import_record *out,
                      dsc_error *err)
{
    if (!json_is_array(turns))
        return dsc_import_wrong_type(turns, "an array of strings", err, "turns");
    r->several += json_array_size(turns) > 1;
    return read_question(r, json_array_get(turns, 0), "turns[0]", out, err);
}

// A list of messages under the name of the prompt, as in TRL's datasets.
static bool is_conversation(const json_t *prompt)
{
    const json_t *first = json_array_get(prompt, 0);
    return json_is_object(first) && dsc_import_any(first, "role|from", 0);
}

static int read_prompt(dsc_prompt_reader *r, const json_t *line, dsc_import_record *out,
                       dsc_error *err)
{
    const json_t *value = json_object_get(line, "prompt");
    if (is_conversation(value))
        return read_messages(r, line, value, out, err);
    int rc = dsc_import_prompt_value(value, r->options.vocab_size, out, err);
    if (rc || out->prompt.has_tokens || out->prompt_is_complete)
        return rc;
    return settle_text(r, false, "prompt", out, err);
}

static int read_kind(dsc_prompt_reader *r, const json_t *line, dsc_import_record *out,
                     dsc_error *err)
{
    int rc;
    switch ((prompt_kind)r->kind) {
    case MESSAGES: {
        const json_t *list = dsc_import_messages(line);
        return read_messages(
            r, line, list ? list : dsc_import_any(line, "messages|conversations", 0), out, err);
    }
    case PROMPT: return read_prompt(r, line, out, err);
    case TURNS: return read_turns(r, json_object_get(line, "turns"), out, err);
    case DOCUMENTS:
        rc = dsc_import_llma_prompt(line, out, err);
        return rc ? rc : settle_text(r, false, "query", out, err);
    case INSTRUCTION:
        rc = dsc_import_alpaca_prompt(line, out, err);
        return rc ? rc : settle_text(r, true, "instruction", out, err);
    default: {
        const char *name = kinds[r->kind].needs;
        return read_question(r, json_object_get(line, name), name, out, err);
    }
    }
}

// --- lines ---------------------------------------------------------------------------------------

// The fields that the map names, as a line of draftscope's own. *out is a new reference.
static int apply_map(const dsc_prompt_reader *r, const json_t *line, json_t **out, dsc_error *err)
{
    *out = json_object();
    int rc = *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_import_gather(*out, r->map.field, line, 0, err);
    return rc ? rc : dsc_import_chat_question(*out, err);
}

int dsc_prompt_read(dsc_prompt_reader *r, const json_t *line, dsc_import_record *out,
                    dsc_error *err)
{
    json_t *mapped = NULL;
    if (!json_is_object(line))
        return dsc_import_not_object(line, err);
    int rc = r->options.map ? apply_map(r, line, &mapped, err) : DSC_OK;
    const json_t *from = mapped ? mapped : line;
    if (!rc)
        rc = settle_kind(r, from, err);
    const json_t *id = rc ? NULL : dsc_import_any(from, kinds[r->kind].id, 0);
    if (!rc && !mapped)
        rc = note_ignored(r, line, err);
    if (!rc && id)
        rc = dsc_import_id(out, id, err);
    if (!rc)
        rc = read_kind(r, from, out, err);
    if (!rc && r->kind != DOCUMENTS)
        rc = dsc_import_references(json_object_get(from, "references"), r->options.vocab_size, out,
                                   err);
    json_decref(mapped); // its values are the line's, but for lists that were made
    return rc;
}

int dsc_prompt_read_text(dsc_prompt_reader *r, const char *text, dsc_import_record *out,
                         dsc_error *err)
{
    out->prompt.text = (dsc_text_view){text, (int64_t)strlen(text)};
    return settle_text(r, false, "prompt", out, err);
}

// --- notes ---------------------------------------------------------------------------------------

static void note_rendered(const dsc_prompt_reader *r, char *note, size_t size)
{
    if (r->rendered)
        snprintf(note, size, "prompts have the chat template %s%s",
                 dsc_chat_template_name(r->chat.format),
                 r->chat.is_own ? ", recognized next to the tokenizer" : "");
    else if (r->raw)
        snprintf(note, size, "questions are prompts as they are, without a chat template%s",
                 r->chat.named ? ""
                               : ": there is none next to the tokenizer (--chat-template NAME)");
}

static void note_turns(const dsc_prompt_reader *r, char *note, size_t size)
{
    if (r->several)
        snprintf(note, size, "%lld lines have several turns, of which the first is the prompt",
                 (long long)r->several);
}

static void note_names(const dsc_prompt_reader *r, char *note, size_t size)
{
    const size_t count = json_object_size(r->ignored);
    size_t n = 0;
    if (!count)
        return;
    n += (size_t)snprintf(note, size, "these fields are ignored:");
    for (void *at = json_object_iter(r->ignored); at && n < size - 60;
         at = json_object_iter_next(r->ignored, at))
        n += (size_t)snprintf(note + n, size - n, "%s '%.40s'", note[n - 1] == '\'' ? "," : "",
                              json_object_iter_key(at));
}

bool dsc_prompt_reader_note(const dsc_prompt_reader *r, size_t i, char note[DSC_IMPORT_NOTE])
{
    static void (*const notes[])(const dsc_prompt_reader *, char *,
                                 size_t) = {note_rendered, note_turns, note_names};
    *note = '\0';
    if (i >= sizeof notes / sizeof *notes)
        return false;
    notes[i](r, note, DSC_IMPORT_NOTE);
    return true;
}

const char *dsc_prompt_reader_end(const dsc_prompt_reader *r)
{
    return r->rendered ? dsc_chat_template_end(r->chat.format) : NULL;
}
