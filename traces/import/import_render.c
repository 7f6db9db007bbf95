// SPDX-License-Identifier: Apache-2.0
// Writes conversations, and answers that servers took apart, by the forms of the chat templates
// (import_form.h).
#include "base/json_text.h"
#include "traces/import/import_form.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char tag[] = "</think>"; // ends thoughts in a text

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static dsc_text_view trim(dsc_text_view s)
{
    while (s.length && is_space(*s.bytes))
        s.bytes++, s.length--;
    while (s.length && is_space(s.bytes[s.length - 1]))
        s.length--;
    return s;
}

static dsc_text_view drop_line_ends(dsc_text_view s)
{
    while (s.length && *s.bytes == '\n')
        s.bytes++, s.length--;
    return s;
}

static dsc_text_view text_of(const dsc_chat_message *m)
{
    return (dsc_text_view){m->text, (int64_t)m->length};
}

// A piece of a form; NULL: nothing.
static int put(dsc_buffer *out, const char *piece, dsc_error *err)
{
    return piece ? dsc_buffer_puts(out, piece, err) : DSC_OK;
}

static int put_view(dsc_buffer *out, dsc_text_view s, dsc_error *err)
{
    return dsc_buffer_append(out, s.bytes, (size_t)s.length, err);
}

// JSON with the separators of Python, as templates write it. Most models write numbers with few
// digits; 15 of them name every number that has no more.
static int put_json(dsc_buffer *out, const json_t *value, size_t flags, dsc_error *err)
{
    char *text = dsc_json_dump(value, flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    json_t *same = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    if (text && !json_equal(value, same)) {
        free(text);
        text = dsc_json_dump(value, flags | JSON_ENCODE_ANY);
    }
    json_decref(same);
    int rc = text ? dsc_buffer_puts(out, text, err) : dsc_fail(err, DSC_ENOMEM, "out of memory");
    free(text);
    return rc;
}

// --- calls ---------------------------------------------------------------------------------------

// The text of a value in an element: a string as it is, lists and objects as JSON. Templates of
// parameters write true, false and null as Python does.
static int put_value(dsc_buffer *out, const json_t *value, bool python, dsc_error *err)
{
    if (json_is_string(value))
        return dsc_buffer_append(out, json_string_value(value), json_string_length(value), err);
    if (python && (json_is_boolean(value) || json_is_null(value)))
        return put(out,
                   json_is_true(value)    ? "True"
                   : json_is_false(value) ? "False"
                                          : "None",
                   err);
    return put_json(out, value, 0, err);
}

// A list of elements <key>\nvalue\n</key>.
static int put_elements(dsc_buffer *out, const json_t *arguments, bool keys, dsc_error *err)
{
    json_t *o = (json_t *)(uintptr_t)arguments; // Jansson's iterators take no const
    int rc = DSC_OK;
    for (void *at = json_object_iter(o); at && !rc; at = json_object_iter_next(o, at)) {
        rc = put(out, keys ? "<arg_key>" : "<parameter=", err);
        rc = rc ?: put(out, json_object_iter_key(at), err);
        rc = rc ?: put(out, keys ? "</arg_key>\n<arg_value>" : ">\n", err);
        rc = rc ?: put_value(out, json_object_iter_value(at), !keys, err);
        rc = rc ?: put(out, keys ? "</arg_value>\n" : "\n</parameter>\n", err);
    }
    return rc;
}

static int put_arguments(dsc_buffer *out, unsigned rules, const json_t *arguments, dsc_error *err)
{
    if (rules & ARGUMENTS)
        return put_elements(out, arguments, (rules & ARGUMENTS) == ARGUMENTS_KEYS, err);
    if (json_is_string(arguments))
        return dsc_buffer_append(out, json_string_value(arguments), json_string_length(arguments),
                                 err);
    return put_json(out, arguments, 0, err);
}

// Templates of this kind take ids of nine characters; servers give them the last nine.
static dsc_text_view short_id(dsc_text_view id)
{
    enum { CHARACTERS = 9 };
    const int64_t more = id.length - CHARACTERS;
    return more > 0 ? (dsc_text_view){id.bytes + more, CHARACTERS} : id;
}

static int put_id(dsc_buffer *out, const dsc_chat_form *f, dsc_text_view id, dsc_error *err)
{
    int rc = put(out, f->id[0], err);
    rc = rc ?: put_view(out, short_id(id), err);
    return rc ?: put(out, f->id[1], err);
}

static int put_call(dsc_buffer *out, const dsc_chat_form *f, const dsc_chat_call *c, bool past,
                    dsc_error *err)
{
    const char *const *piece = past && f->past_call[0] ? f->past_call : f->call;
    const bool id = past && f->id[0], first = f->rules & CALL_ID_FIRST;
    int rc = put(out, piece[0], err);
    rc = rc ?: put_view(out, c->name, err);
    if (id && first)
        rc = rc ?: put_id(out, f, c->id, err);
    rc = rc ?: put(out, piece[1], err);
    rc = rc ?: put_arguments(out, f->rules, c->arguments, err);
    if (id && !first)
        rc = rc ?: put_id(out, f, c->id, err);
    return rc ?: put(out, piece[2], err);
}

// --- answers -------------------------------------------------------------------------------------

static bool writes_calls(const dsc_chat_template *t, const dsc_chat_message *m)
{
    const dsc_chat_form *f = t->form;
    bool writes = f && f->calls[0] && (m->calls == 1 || !(f->rules & ONE_CALL));
    for (size_t i = 0; i < m->calls && writes && f->rules & ARGUMENTS; i++)
        writes = json_is_object(m->call[i].arguments);
    return writes;
}

unsigned dsc_chat_lacks(const dsc_chat_template *t, const dsc_chat_message *m, bool answer)
{
    const dsc_chat_form *f = t->form;
    unsigned lacks = 0;
    if (m->role == DSC_CHAT_TOOL)
        return t->tool[0] || (f && f->results[0]) ? 0 : DSC_CHAT_RESULTS;
    if (answer && m->thoughts.length && !(f && f->thoughts[0]))
        lacks |= DSC_CHAT_THOUGHTS;
    if (m->calls && !writes_calls(t, m))
        lacks |= DSC_CHAT_CALLS;
    return lacks;
}

// Which answer is written, and how.
typedef struct answer {
    bool past;      // it is a part of the prompt
    bool recent;    // and comes after the last message of the user
    bool is_begun;  // the beginning of its thoughts is written
    bool is_silent; // its thoughts are left out
} answer;

// Whether a source left the thoughts in the text.
static bool thinks_in(dsc_text_view text)
{
    return text.length && memmem(text.bytes, (size_t)text.length, tag, sizeof tag - 1);
}

static int put_thoughts(dsc_buffer *out, const dsc_chat_form *f, const dsc_chat_message *m,
                        dsc_text_view text, answer a, bool *written, dsc_error *err)
{
    const bool strip = f->rules & STRIP_THOUGHTS;
    *written = m->thoughts.length && f->thoughts[0] && !a.is_silent;
    if (!*written)
        return a.past && !thinks_in(text) ? put(out, f->none[!a.recent], err) : DSC_OK;
    int rc = a.is_begun ? DSC_OK : put(out, f->thoughts[0], err);
    rc = rc ?: put_view(out, strip ? trim(m->thoughts) : m->thoughts, err);
    // Thoughts that nothing follows were cut.
    return rc || (!m->length && !m->calls) ? rc : put(out, f->thoughts[1], err);
}

// Thoughts, text and calls, in this order.
static int put_answer(dsc_buffer *out, const dsc_chat_template *t, const dsc_chat_message *m,
                      dsc_text_view text, answer a, dsc_error *err)
{
    const dsc_chat_form *f = t->form;
    const bool calls = m->calls && writes_calls(t, m);
    bool thoughts;
    if (!f)
        return put_view(out, text, err);
    int rc = put_thoughts(out, f, m, text, a, &thoughts, err);
    if (f->rules & STRIP_THOUGHTS && (thoughts || f->text[0]))
        text = drop_line_ends(text);
    // A final answer in channels has its channel even where it is empty.
    const bool alone = calls && a.past && f->rules & CALLS_ALONE;
    const bool says = !alone && (text.length || (!calls && f->preamble[0] && !thoughts));
    const char *const *around = calls && f->preamble[0] ? f->preamble : f->text;
    if (says) {
        rc = rc ?: put(out, around[0], err);
        rc = rc ?: put_view(out, text, err);
        rc = rc ?: put(out, around[1], err);
    }
    for (size_t i = 0; calls && i < m->calls && !rc; i++) {
        rc = put(out, f->calls[i ? 2 : !says], err);
        rc = rc ?: put_call(out, f, &m->call[i], a.past, err);
    }
    return rc || !calls ? rc : put(out, f->calls[3], err);
}

int dsc_chat_answer(const dsc_chat_template *t, const dsc_chat_message *m, bool after_result,
                    dsc_buffer *out, dsc_error *err)
{
    const dsc_chat_form *f = t->form;
    const bool bare = f && after_result && f->rules & NO_BEGIN_AFTER_RESULT;
    const answer a = {.is_begun = f && f->begin[0] && !bare};
    int rc = put(out, "", err); // even an empty answer is a text
    rc = rc ?: put_answer(out, t, m, text_of(m), a, err);
    return rc || !f || !m->calls || !writes_calls(t, m) ? rc : put(out, f->stop, err);
}

// --- prompts -------------------------------------------------------------------------------------

// The text of a message as the template writes it: without the thoughts of an earlier answer, and
// without white space around it.
static dsc_text_view shorten(const dsc_chat_template *t, const dsc_chat_message *m, bool recent)
{
    static const unsigned trims[] = {TRIM_SYSTEM, TRIM_USER, TRIM_ASSISTANT, 0};
    const int64_t size = sizeof tag - 1;
    const bool kept = recent && t->flags & KEEP_RECENT_THOUGHTS;
    dsc_text_view s = text_of(m);
    bool think = t->flags & DROP_THINKING && m->role == DSC_CHAT_ASSISTANT && !kept;
    for (int64_t i = s.length; think && i-- > 0;)
        if (s.length - i >= size && !memcmp(s.bytes + i, tag, (size_t)size)) {
            s = (dsc_text_view){s.bytes + i + size, s.length - i - size};
            s = t->flags & DROP_LINE_ENDS ? drop_line_ends(s) : s;
            break;
        }
    return t->flags & trims[m->role] ? trim(s) : s;
}

bool dsc_chat_calls(const dsc_chat_template *t)
{
    return t->form && t->form->calls[0];
}

bool dsc_chat_defines_tools(const dsc_chat_template *t)
{
    return t->tools != NULL;
}

bool dsc_chat_frames(const dsc_chat_template *t)
{
    return t->form && t->form->text[0];
}

// What is written, and where in it.
typedef struct prompt {
    const dsc_chat_template *t;
    const dsc_chat_message *message; // [count]
    size_t count, at, last_user, users;
    const dsc_chat_message *system; // to put into a message of the user, or NULL
    const json_t *tools;            // not yet written, or NULL
    dsc_buffer *out;
} prompt;

static int put_tools(prompt *p, dsc_error *err)
{
    const dsc_chat_tools *how = p->t->tools;
    const size_t indent = how->place == TOOLS_IN_FIRST_USER ? JSON_INDENT(4) : 0;
    int rc = put(p->out, how->before, err);
    for (size_t i = 0; i < json_array_size(p->tools) && !rc; i++) {
        rc = put(p->out, i ? how->between : NULL, err);
        rc = rc ?: put_json(p->out, json_array_get(p->tools, i), indent, err);
    }
    p->tools = NULL;
    return rc ?: put(p->out, how->after, err);
}

// The definitions, if this is their place.
static int put_tools_at(prompt *p, dsc_chat_place place, dsc_error *err)
{
    return p->tools && p->t->tools->place == place ? put_tools(p, err) : DSC_OK;
}

// `text` may be empty: a message that has the definitions of tools alone.
static int put_system(prompt *p, dsc_text_view text, dsc_error *err)
{
    const dsc_chat_template *t = p->t;
    const char *before = t->system[0];
    if (p->tools && t->tools->system)
        before = t->tools->system;
    int rc = put(p->out, before, err);
    rc = rc ?: put_view(p->out, text, err);
    if (p->tools && t->tools->place == TOOLS_IN_SYSTEM) {
        rc = rc ?: put(p->out, text.length ? t->tools->after_system : NULL, err);
        rc = rc ?: put_tools(p, err);
    }
    return rc ?: put(p->out, t->system[1], err);
}

static int put_default_system(prompt *p, bool tools, dsc_error *err)
{
    const dsc_chat_template *t = p->t;
    const char *text = tools && t->system_with_tools ? t->system_with_tools : t->default_system;
    if (p->count && p->message[0].role == DSC_CHAT_SYSTEM)
        return DSC_OK;
    if (!text && !(p->tools && t->tools->place == TOOLS_IN_SYSTEM))
        return DSC_OK;
    return put_system(p, (dsc_text_view){text ? text : "", text ? (int64_t)strlen(text) : 0}, err);
}

static int put_user(prompt *p, const dsc_chat_message *m, dsc_error *err)
{
    const dsc_chat_template *t = p->t;
    const bool last = p->at == p->last_user;
    const bool here = t->flags & IN_LAST_USER ? last : p->system != NULL;
    int rc = p->users++ && t->again ? put(p->out, t->again, err) : DSC_OK;
    if (last)
        rc = rc ?: put_tools_at(p, TOOLS_AT_LAST_USER, err);
    rc = rc ?: put(p->out, t->user[0], err);
    rc = rc ?: put_tools_at(p, TOOLS_IN_FIRST_USER, err);
    if (here && p->system)
        rc = rc ?: put_system(p, shorten(t, p->system, false), err);
    p->system = here ? NULL : p->system;
    rc = rc ?: put_view(p->out, shorten(t, m, false), err);
    return rc ?: put(p->out, t->user[1], err);
}

static bool is_result(const prompt *p, size_t i)
{
    return i < p->count && p->message[i].role == DSC_CHAT_TOOL;
}

static int put_assistant(prompt *p, const dsc_chat_message *m, dsc_error *err)
{
    const dsc_chat_template *t = p->t;
    const unsigned rules = t->form ? t->form->rules : 0;
    const bool recent = p->at > p->last_user;
    const bool calls = m->calls && writes_calls(t, m);
    const bool bare = (rules & NO_BEGIN_AFTER_RESULT && p->at && is_result(p, p->at - 1)) ||
                      (calls && rules & CALLS_UNBEGUN);
    const answer a = {
        .past = true, .recent = recent, .is_silent = !recent || !(t->flags & KEEP_RECENT_THOUGHTS)};
    int rc = bare ? DSC_OK : put(p->out, t->assistant[0], err);
    rc = rc ?: put_answer(p->out, t, m, shorten(t, m, recent), a, err);
    return rc ?: put(p->out, calls && rules & CALLS_END ? NULL : t->assistant[1], err);
}

// The call of a result: that of its id, else the last one before it.
static dsc_text_view find_tool(const prompt *p, const dsc_chat_message *m)
{
    dsc_text_view last = {"", 0};
    for (size_t i = 0; i < p->at; i++)
        for (size_t c = 0; c < p->message[i].calls; c++) {
            const dsc_chat_call *call = &p->message[i].call[c];
            last = call->name;
            if (m->call_id.length && call->id.length == m->call_id.length &&
                !memcmp(call->id.bytes, m->call_id.bytes, (size_t)m->call_id.length))
                return last;
        }
    return m->tool.length ? m->tool : last;
}

static int put_content(prompt *p, const dsc_chat_message *m, dsc_error *err)
{
    const dsc_text_view text = shorten(p->t, m, false);
    const unsigned rules = p->t->form->rules;
    json_t *quoted = NULL;
    if (!(rules & (RESULT_QUOTED | RESULT_JSON)))
        return put_view(p->out, text, err);
    if (rules & RESULT_JSON)
        quoted = json_loadb(text.bytes, (size_t)text.length, JSON_DECODE_ANY, NULL);
    if (!quoted)
        quoted = json_stringn_nocheck(text.bytes, (size_t)text.length);
    int rc = quoted ? put_json(p->out, quoted, 0, err) : dsc_fail(err, DSC_ENOMEM, "out of memory");
    json_decref(quoted);
    return rc;
}

static int put_result(prompt *p, const dsc_chat_message *m, dsc_error *err)
{
    const dsc_chat_form *f = p->t->form;
    if (!f || !f->results[0]) {
        int rc = put(p->out, p->t->tool[0], err);
        if (p->t->tool[0])
            rc = rc ?: put_view(p->out, text_of(m), err);
        return rc ?: put(p->out, p->t->tool[1], err);
    }
    const bool first = !p->at || !is_result(p, p->at - 1), last = !is_result(p, p->at + 1);
    const bool id_last = f->rules & RESULT_ID_LAST;
    const dsc_text_view key = f->rules & RESULT_NAMED ? find_tool(p, m) : short_id(m->call_id);
    int rc = put(p->out, f->results[first ? 0 : 1], err);
    rc = rc ?: put(p->out, f->result[0], err);
    if (f->result[0] && !id_last) {
        rc = rc ?: put_view(p->out, key, err);
        rc = rc ?: put(p->out, f->result[1], err);
    }
    rc = rc ?: put_content(p, m, err);
    if (f->result[0] && id_last) {
        rc = rc ?: put(p->out, f->result[1], err);
        rc = rc ?: put_view(p->out, key, err);
    }
    rc = rc ?: put(p->out, f->result[2], err);
    return rc ?: put(p->out, last ? f->results[2] : NULL, err);
}

static int put_message(prompt *p, const dsc_chat_message *m, dsc_error *err)
{
    switch (m->role) {
    case DSC_CHAT_SYSTEM:
        if (!(p->t->flags & (IN_FIRST_USER | IN_LAST_USER)))
            return put_system(p, shorten(p->t, m, false), err);
        p->system = m;
        return DSC_OK;
    case DSC_CHAT_USER: return put_user(p, m, err);
    case DSC_CHAT_ASSISTANT: return put_assistant(p, m, err);
    default: return put_result(p, m, err);
    }
}

int dsc_chat_render(const dsc_chat_template *t, const dsc_chat_message *message, size_t count,
                    const dsc_chat_request *request, dsc_buffer *out, dsc_error *err)
{
    const bool tools = request && json_array_size(request->tools);
    const bool without = request && request->without_thoughts;
    prompt p = {.t = t,
                .message = message,
                .count = count,
                .tools = tools && t->tools ? request->tools : NULL,
                .out = out};
    for (size_t i = 0; i < count; i++)
        p.last_user = message[i].role == DSC_CHAT_USER ? i : p.last_user;
    int rc = put(out, t->begin, err);
    rc = rc ?: put_tools_at(&p, TOOLS_FIRST, err);
    rc = rc ?: put_default_system(&p, tools, err);
    for (; p.at < count && !rc; p.at++)
        rc = put_message(&p, &message[p.at], err);
    if (rc || (t->form && t->form->rules & NO_BEGIN_AFTER_RESULT && count &&
               message[count - 1].role == DSC_CHAT_TOOL))
        return rc;
    rc = put(out, t->begin_answer, err);
    return rc ?: put(out, t->form ? t->form->begin[without] : NULL, err);
}
