// SPDX-License-Identifier: Apache-2.0
// Reads chats: lines with a list of messages, {"messages": [{"role": "user", "content": "..."},
// ...]} as OpenAI's API has them, or {"conversations": [{"from": "human", "value": "..."}, ...]} as
// ShareGPT's files. Every assistant turn is a request whose prompt is the turns before it, because
// that is what a server of such a conversation receives; or the last turn alone is one
// (options.last_turn). A line that ends with the user and has the answer next to the messages is
// one request.
#include "traces/import/import_chat.h"

#include "traces/import/import_map.h"

#include <stdlib.h>
#include <string.h>

enum {
    PROMPT_BYTES = 64 << 20, // of all turns of a line: the sum grows with the square of the turns
};

static const struct {
    const char *name;
    dsc_chat_role role;
} roles[] = {
    {"system", DSC_CHAT_SYSTEM},       {"developer", DSC_CHAT_SYSTEM},
    {"user", DSC_CHAT_USER},           {"human", DSC_CHAT_USER},
    {"gpt", DSC_CHAT_ASSISTANT},       {"model", DSC_CHAT_ASSISTANT},
    {"assistant", DSC_CHAT_ASSISTANT},
};
enum { ROLES = sizeof roles / sizeof *roles };

static const char answers[] = "response|output|completion|answer";

json_t *dsc_import_messages(const json_t *line)
{
    static const char paths[] = "messages|conversations|request.messages|body.messages|"
                                "request.body.messages";
    json_t *list = dsc_import_any(line, paths, 0);
    return json_is_array(list) ? list : NULL;
}

// Looks next to the tokenizer.
static void choose_beside(struct dsc_import_chat *out, const char *spec)
{
    dsc_chat_found found;
    dsc_error why = {0};
    int rc = dsc_chat_template_beside(&found, spec, &why);
    out->format = rc ? NULL : found.format;
    out->is_own = out->format != NULL;
    if (out->is_own)
        memcpy(out->bos, found.bos, sizeof out->bos);
    if (rc)
        snprintf(out->refusal, sizeof out->refusal,
                 "%.200s; render the file first: python3 contrib/render_chats.py %.120s FILE, or "
                 "name the nearest with --chat-template (none: plain text)",
                 why.message, spec);
}

int dsc_import_chat_choose(struct dsc_import_chat *out, const char *name, const char *spec,
                           dsc_error *err)
{
    const bool own = name && !strcmp(name, "model");
    char names[400];
    *out = (struct dsc_import_chat){.named = name && strcmp(name, "auto") != 0};
    if (out->named && !own) {
        out->format = dsc_chat_template_find(name);
        dsc_chat_template_names(names, sizeof names);
        return out->format
                   ? DSC_OK
                   : dsc_fail(err, DSC_EUSAGE,
                              "chat template '%s' must be auto, model or one of %s", name, names);
    }
    if (spec && strcmp(spec, "bytes") != 0)
        choose_beside(out, spec);
    if (own && !out->format && !*out->refusal)
        return dsc_fail(err, DSC_EUSAGE,
                        "there is no chat template next to the tokenizer (chat_template.jinja, or "
                        "in tokenizer_config.json); name one with --chat-template");
    return DSC_OK;
}

int dsc_import_chat_settle(struct dsc_import_chat *out, const dsc_import_options *options,
                           char note[DSC_IMPORT_NOTE], dsc_error *err)
{
    int rc = dsc_import_chat_choose(out, options->chat_template, options->tokenizer_path, err);
    if (!rc && !out->format && !*out->refusal)
        out->format = dsc_chat_template_find("none");
    if (rc || !out->format)
        return rc;
    const char *from = out->is_own ? ", recognized next to the tokenizer" : "";
    const char *is = dsc_chat_template_name(out->format);
    const char *turns = options->last_turn
                            ? "the last assistant turn of a chat is a request"
                            : "every assistant turn of a chat is a request (--turns last: one)";
    if (!strcmp(is, "none"))
        snprintf(note, DSC_IMPORT_NOTE,
                 "prompts of chats are lines 'user: ...' without a chat template (--chat-template "
                 "NAME); %s",
                 turns);
    else
        snprintf(note, DSC_IMPORT_NOTE, "prompts of chats have the chat template %s%s; %s", is,
                 from, turns);
    return DSC_OK;
}

bool dsc_import_chat_applies(const json_t *line, const dsc_import_options *options)
{
    bool mapped = false;
    for (const dsc_import_field *f = options->fields ? options->fields->field : NULL; f && f->to;
         f++)
        mapped = mapped || !strcmp(f->to, "messages");
    return mapped || (!options->fields && dsc_import_messages(line));
}

// --- messages ----------------------------------------------------------------------------------

// A conversation. The texts of messages are views into the line, or into `owned`.
typedef struct chat {
    dsc_chat_message *message; // [count]
    json_t **text;             // [count] the same as JSON strings, borrowed
    size_t count, answers;     // `answers`: assistant messages
    json_t *owned;             // strings that were joined
} chat;

static void chat_fini(chat *c)
{
    free(c->message);
    free(c->text);
    json_decref(c->owned);
}

// Joins the texts of a message in parts, [{"type": "text", "text": "..."}, ...].
static int join_parts(chat *c, const json_t *parts, size_t i, json_t **out, dsc_error *err)
{
    dsc_buffer joined = {0};
    int rc = dsc_buffer_puts(&joined, "", err);
    for (size_t p = 0; p < json_array_size(parts) && !rc; p++) {
        const json_t *part = json_array_get(parts, p), *text = json_object_get(part, "text");
        dsc_text_view view;
        rc = dsc_import_string(&view, json_is_string(part) ? part : text, err,
                               "messages[%zu].content[%zu].text", i, p);
        if (!rc)
            rc = dsc_buffer_append(&joined, view.bytes, (size_t)view.length, err);
    }
    *out = rc ? NULL : json_stringn_nocheck(joined.data, joined.length);
    if (!rc && (!*out || json_array_append_new(c->owned, *out)))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    dsc_buffer_fini(&joined);
    return rc;
}

static int read_role(const json_t *message, size_t i, dsc_chat_role *out, dsc_error *err)
{
    const json_t *role = dsc_import_any(message, "role|from", 0);
    const char *name = json_string_value(role);
    if (!name)
        return dsc_import_wrong_type(role, "a string", err, "messages[%zu].role", i);
    for (size_t r = 0; r < ROLES; r++)
        if (!strcmp(roles[r].name, name)) {
            *out = roles[r].role;
            return DSC_OK;
        }
    return dsc_fail(err, DSC_EINPUT,
                    "field 'messages[%zu].role' is \"%.60s\"; it must be system, user or assistant "
                    "(calls of tools are not rendered)",
                    i, name);
}

static int read_message(chat *c, const json_t *message, size_t i, dsc_error *err)
{
    json_t *text = dsc_import_any(message, "content|value", 0);
    dsc_chat_message *m = &c->message[i];
    dsc_text_view view = {0};
    if (!json_is_object(message))
        return dsc_import_wrong_type(message, "an object", err, "messages[%zu]", i);
    int rc = read_role(message, i, &m->role, err);
    if (!rc && json_is_array(text))
        rc = join_parts(c, text, i, &text, err);
    if (!rc)
        rc = dsc_import_string(&view, text, err, "messages[%zu].content", i);
    m->text = view.bytes;
    m->length = (size_t)view.length;
    c->text[i] = text;
    c->answers += !rc && m->role == DSC_CHAT_ASSISTANT;
    return rc;
}

static int chat_read(chat *c, const json_t *messages, size_t count, dsc_error *err)
{
    *c = (chat){.count = count, .owned = json_array()};
    int rc = c->owned ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_new(&c->message, count, err);
    if (!rc)
        rc = dsc_new(&c->text, count, err);
    for (size_t i = 0; i < count && !rc; i++)
        rc = read_message(c, json_array_get(messages, i), i, err);
    return rc;
}

// --- prompts -----------------------------------------------------------------------------------

// The messages before number `count` as a prompt.
static int render(json_t **out, const chat *c, size_t count, const dsc_import_options *options,
                  dsc_error *err)
{
    const struct dsc_import_chat *how = options->chat;
    const dsc_chat_template *format = how ? how->format : dsc_chat_template_find("none");
    dsc_buffer text = {0};
    *out = NULL;
    if (!format)
        return dsc_fail(err, DSC_EINPUT, "%s", how->refusal);
    const bool bare = how && how->is_own;
    int rc = dsc_buffer_puts(&text, bare ? how->bos : "", err);
    if (!rc)
        rc = dsc_chat_render(format, c->message, count, &text, err);
    if (!rc)
        *out = json_stringn_nocheck(text.data, text.length);
    if (!rc && *out && bare)
        *out = json_pack("{s:o, s:b}", "text", *out, "add_special_tokens", 0);
    if (!rc && !*out)
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    dsc_buffer_fini(&text);
    return rc;
}

int dsc_import_chat_prompt(json_t **out, const json_t *messages, size_t count,
                           const dsc_import_options *options, dsc_error *err)
{
    chat c;
    int rc = chat_read(&c, messages, count, err);
    if (!rc)
        rc = render(out, &c, count, options, err);
    chat_fini(&c);
    return rc;
}

// --- the driver --------------------------------------------------------------------------------

static int probe(const json_t *line)
{
    const json_t *first = json_array_get(dsc_import_messages(line), 0);
    return 3 * (dsc_import_any(first, "role|from", 0) &&
                dsc_import_any(line, "messages|conversations", 0));
}

// A request with the messages before number `end` as prompt. Of an answer that others follow, only
// the end is known; times and the reason of the line belong to the last.
static int make_request(json_t **out, const chat *c, const json_t *line, size_t end, json_t *output,
                        const dsc_import_options *options, dsc_error *err)
{
    json_t *prompt = NULL;
    *out = json_object();
    int rc = *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    if (!rc)
        rc = dsc_import_gather(*out, dsc_import_common, line, 0, err);
    if (!rc)
        rc = render(&prompt, c, end, options, err);
    if (!rc)
        rc = dsc_import_put_at(*out, "prompt", prompt, err);
    if (!rc)
        rc = dsc_import_put_at(*out, "output", json_incref(output), err);
    if (!rc && end + 1 < c->count) {
        json_object_del(*out, "finish_reason");
        json_object_del(json_object_get(*out, "metadata"), "wall_time");
    }
    if (rc) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

static int add_turn(json_t *requests, const chat *c, const json_t *line, size_t i, size_t number,
                    const dsc_import_options *options, dsc_error *err)
{
    json_t *request;
    json_t *output = i < c->count ? c->text[i] : dsc_import_any(line, answers, 0);
    int rc = make_request(&request, c, line, i, output, options, err);
    return rc ? rc
              : dsc_import_add_request(requests, request, number,
                                       options->last_turn ? 1 : c->answers, err);
}

static int add_turns(json_t *requests, const chat *c, const json_t *line,
                     const dsc_import_options *options, dsc_error *err)
{
    size_t number = 0, bytes = 0;
    int rc = DSC_OK;
    for (size_t i = 0; i < c->count && !rc; i++) {
        if (c->message[i].role == DSC_CHAT_ASSISTANT &&
            (++number == c->answers || !options->last_turn))
            rc = add_turn(requests, c, line, i, number, options, err);
        const json_t *last = json_array_get(requests, json_array_size(requests) - 1);
        const json_t *prompt = json_object_get(last, "prompt");
        if (c->message[i].role == DSC_CHAT_ASSISTANT)
            bytes += json_string_length(json_is_object(prompt) ? json_object_get(prompt, "text")
                                                               : prompt);
        if (!rc && bytes > PROMPT_BYTES)
            rc = dsc_fail(err, DSC_EINPUT,
                          "the prompts of the chat's turns have more than 64 MiB; import its last "
                          "turn (--turns last)");
    }
    return rc;
}

int dsc_import_chat_question(json_t *request, dsc_error *err)
{
    json_t *text = json_object_get(request, "messages");
    if (!json_is_string(text))
        return DSC_OK;
    json_t *list = json_pack("[{s:s, s:O}]", "role", "user", "content", text);
    return dsc_import_put_at(request, "messages", list, err);
}

int dsc_import_chat_expand(const json_t *line, const dsc_import_options *options, json_t *requests,
                           dsc_error *err)
{
    const json_t *messages = dsc_import_messages(line);
    chat c;
    if (!messages)
        return dsc_import_wrong_type(dsc_import_any(line, "messages|conversations", 0),
                                     "an array of messages", err, "messages");
    int rc = chat_read(&c, messages, json_array_size(messages), err);
    const bool open = c.count && c.message && c.message[c.count - 1].role != DSC_CHAT_ASSISTANT;
    if (!rc && open && dsc_import_any(line, answers, 0)) {
        c.answers = 1;
        rc = add_turn(requests, &c, line, c.count, 1, options, err);
    } else if (!rc && !c.answers) {
        rc = dsc_fail(err, DSC_EINPUT,
                      "field 'messages' has no assistant turn, so the line has no output");
    } else if (!rc) {
        rc = add_turns(requests, &c, line, options, err);
    }
    chat_fini(&c);
    return rc;
}

const dsc_import_driver dsc_import_chats = {
    .name = "chat",
    .summary = "chats: messages[] of role and content, or conversations[] of from and value",
    .needs = "messages",
    .documents = true,
    .chats = true,
    .probe = probe,
    .expand = dsc_import_chat_expand,
    .read = dsc_import_request_read,
};
