// SPDX-License-Identifier: Apache-2.0
// Reads chats: lines with a list of messages, {"messages": [{"role": "user", "content": "..."},
// ...]} as OpenAI's API has them, or {"conversations": [{"from": "human", "value": "..."}, ...]} as
// ShareGPT's files. Every assistant turn is a request whose prompt is the turns before it, because
// that is what a server of such a conversation receives; or the last turn alone is one
// (options.last_turn). A line that ends with the user and has the answer next to the messages is
// one request. What an answer has besides its text (import_message.h) is written as the model's
// template writes it, or refused, or left out and marked (options.lossy).
#include "traces/import/import_chat.h"

#include "traces/import/import_map.h"
#include "traces/import/import_message.h"

#include <stdlib.h>
#include <string.h>

enum {
    PROMPT_BYTES = 64 << 20, // of all turns of a line: the sum grows with the square of the turns
};

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

// --- what a text cannot hold ---------------------------------------------------------------------

// Kinds of parts by their bit: for the mark of a request; where the source lacks their text; and
// where the template has no form of them.
static const struct {
    unsigned part;
    const char *mark, *without, *unwritten;
} parts[] = {
    {DSC_CHAT_THOUGHTS, "reasoning", "reasoning whose text is not there (encrypted, summarized)",
     "reasoning"},
    {DSC_CHAT_CALLS, "tool calls", "a tool call whose text is not there", "tool calls"},
    {DSC_CHAT_RESULTS, "tool results", "", "the result of a tool"},
    {DSC_CHAT_MEDIA, "media", "a part that is no text (an image, audio, a file)", ""},
    {DSC_CHAT_ORDER, "order", "text or reasoning after a tool call, or reasoning after text", ""},
    {DSC_CHAT_COUNT, "tokens", "", ""},
};
enum { PARTS = sizeof parts / sizeof *parts };

static void lost_text(unsigned lost, char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < PARTS && n < size; i++)
        if (lost & parts[i].part)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", parts[i].mark);
}

// Reports what the source has without its text (`lost`), or the template cannot write (`lacks`).
static int refuse(unsigned lost, unsigned lacks, size_t calls, const char *where,
                  const dsc_chat_template *t, dsc_error *err)
{
    const bool none = !strcmp(dsc_chat_template_name(t), "none");
    char form[80] = "no chat template is known";
    size_t i = 0;
    while (i + 1 < PARTS && !((lost | lacks) & parts[i].part))
        i++;
    if (lost & parts[i].part)
        return dsc_fail(
            err, DSC_EINPUT,
            "field '%s' has %s, which a trace cannot hold; trace import --lossy goes on "
            "and marks the trace",
            where, parts[i].without);
    if (!none)
        snprintf(form, sizeof form, "%.40s has %s", dsc_chat_template_name(t),
                 !(lacks & DSC_CHAT_CALLS) || !dsc_chat_calls(t) ? "no form of it"
                 : calls > 1                                     ? "one call at most"
                                                                 : "no form of such arguments");
    return dsc_fail(
        err, DSC_EINPUT,
        "field '%s' has %s, and how the model's chat template writes it is unknown: %s. "
        "Name that template with --chat-template (chatml, qwen3, llama3.1, mistral-v3, "
        "deepseek-r1, glm4.5, gpt-oss, ...); trace import --lossy leaves it out and marks "
        "the trace",
        where, parts[i].unwritten, form);
}

// The parts of a message that its text will lack are added to *lost, or refused.
static int check_message(const dsc_chat_message *m, bool answer, const char *where,
                         const dsc_import_options *options, unsigned *lost, dsc_error *err)
{
    const dsc_chat_template *none = dsc_chat_template_find("none");
    const dsc_chat_template *t =
        options->chat && options->chat->format ? options->chat->format : none;
    const bool unrecognized = options->chat && !options->chat->format;
    // Templates leave out earlier thoughts, and write the parts of an answer in one order.
    const unsigned gone = answer ? m->lost : m->lost & ~(DSC_CHAT_THOUGHTS | DSC_CHAT_ORDER);
    const unsigned lacks = dsc_chat_lacks(t, m, answer);
    if (lacks && unrecognized && !options->lossy)
        return dsc_fail(err, DSC_EINPUT, "%s", options->chat->refusal);
    if ((gone | lacks) && !options->lossy)
        return refuse(gone, lacks, m->calls, where, t, err);
    *lost |= gone | lacks;
    return DSC_OK;
}

// --- conversations -----------------------------------------------------------------------------

// A conversation with what surrounds it in a line.
typedef struct conversation {
    dsc_chat chat;
    json_t *tools; // their definitions in OpenAI's form, or NULL; owned
} conversation;

static void conversation_fini(conversation *c)
{
    dsc_chat_fini(&c->chat);
    json_decref(c->tools);
}

static json_t *find_around(const json_t *line, const char *name)
{
    static const char *const places[] = {"", "request.", "body.", "request.body."};
    json_t *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s%s", places[i], name);
        found = dsc_import_at(line, path, 0);
    }
    return found;
}

// A definition in the form of OpenAI's chats, from that form, the Responses API (and functions),
// or Anthropic's.
static json_t *define_tool(const json_t *tool)
{
    json_t *schema = dsc_import_any(tool, "parameters|input_schema", 0);
    json_t *description = dsc_import_at(tool, "description", 0);
    if (json_object_get(tool, "function") ||
        !json_object_get(tool, "name")) // or a tool of the server
        return json_incref((json_t *)(uintptr_t)tool);
    return json_pack("{s:s, s:{s:O, s:O*, s:O*}}", "type", "function", "function", "name",
                     json_object_get(tool, "name"), "description", description, "parameters",
                     schema);
}

static int read_tools(conversation *c, const json_t *line, dsc_error *err)
{
    json_t *list = find_around(line, "tools"), *parsed = NULL;
    int rc = DSC_OK;
    list = list ? list : find_around(line, "functions");
    if (json_is_string(list)) // datasets have them as a text
        list = parsed = json_loads(json_string_value(list), 0, NULL);
    if (json_array_size(list) && !(c->tools = json_array()))
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
        const json_t *tool = json_array_get(list, i);
        if (json_is_object(tool) && json_array_append_new(c->tools, define_tool(tool)))
            rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    json_decref(parsed);
    return rc;
}

// `line` NULL: nothing surrounds the messages.
static int conversation_read(conversation *c, const json_t *line, const json_t *messages,
                             size_t count, dsc_error *err)
{
    *c = (conversation){0};
    json_t *system = line ? find_around(line, "system") : NULL;
    if (line && !system)
        system = find_around(line, "instructions");
    const char *first =
        json_string_value(dsc_import_any(json_array_get(messages, 0), "role|from", 0));
    const bool has = first && (!strcmp(first, "system") || !strcmp(first, "developer"));
    int rc = line ? read_tools(c, line, err) : DSC_OK;
    if (!has && (json_is_string(system) || json_is_array(system)))
        rc = rc ?: dsc_chat_read_system(&c->chat, system, err);
    return rc ?: dsc_chat_read(&c->chat, messages, count, err);
}

// --- prompts -----------------------------------------------------------------------------------

static int check_prompt(const conversation *c, size_t count, const dsc_import_options *options,
                        unsigned *lost, dsc_error *err)
{
    int rc = DSC_OK;
    for (size_t i = 0; i < count && !rc; i++) {
        char where[48];
        snprintf(where, sizeof where, "messages[%zu]", c->chat.message[i].source);
        rc = check_message(&c->chat.message[i], false, where, options, lost, err);
    }
    return rc;
}

// The messages before number `count` as a prompt. `silent`: its answer has no thoughts.
static int render(json_t **out, const conversation *c, size_t count, bool silent,
                  const dsc_import_options *options, unsigned *lost, dsc_error *err)
{
    const struct dsc_import_chat *how = options->chat;
    const dsc_chat_template *format = how ? how->format : dsc_chat_template_find("none");
    const dsc_chat_request request = {.tools = c->tools, .without_thoughts = silent};
    dsc_buffer text = {0};
    *out = NULL;
    if (!format)
        return dsc_fail(err, DSC_EINPUT, "%s", how->refusal);
    const bool bare = how && how->is_own;
    int rc = check_prompt(c, count, options, lost, err);
    rc = rc ?: dsc_buffer_puts(&text, bare ? how->bos : "", err);
    rc = rc ?: dsc_chat_render(format, c->chat.message, count, &request, &text, err);
    if (!rc)
        *out = json_stringn_nocheck(text.data, text.length);
    if (!rc && *out && bare)
        *out = json_pack("{s:o, s:b}", "text", *out, "add_special_tokens", 0);
    if (!rc && !*out)
        rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    dsc_buffer_fini(&text);
    return rc;
}

// What follows from a conversation for the request of which it is the prompt.
static void describe(const conversation *c, size_t count, const dsc_import_options *options,
                     dsc_import_prompt *out)
{
    const dsc_chat_template *t = options->chat ? options->chat->format : NULL;
    out->after_result = count && c->chat.message[count - 1].role == DSC_CHAT_TOOL;
    out->tools_left_out = json_array_size(c->tools) && !(t && dsc_chat_defines_tools(t));
}

int dsc_import_chat_prompt(dsc_import_prompt *out, const json_t *line, const json_t *messages,
                           size_t count, bool silent, const dsc_import_options *options,
                           dsc_error *err)
{
    conversation c;
    *out = (dsc_import_prompt){0};
    int rc = conversation_read(&c, line, messages, count, err);
    rc = rc ?: render(&out->text, &c, c.chat.count, silent, options, &out->lost, err);
    if (!rc)
        describe(&c, c.chat.count, options, out);
    conversation_fini(&c);
    return rc;
}

// --- answers -------------------------------------------------------------------------------------

// What a model writes besides the content of a message.
static const char *const others[] = {"reasoning_content", "reasoning",     "thinking",
                                     "tool_calls",        "function_call", "refusal",
                                     "reasoning_details", "audio",         "thinking_blocks"};
enum { OTHERS = sizeof others / sizeof *others };

bool dsc_import_is_plain_answer(const json_t *message)
{
    bool plain = json_is_string(json_object_get(message, "content"));
    for (size_t i = 0; i < OTHERS && plain; i++) {
        const json_t *other = dsc_import_at(message, others[i], 0);
        plain = !other || (json_is_string(other) && !json_string_length(other)) ||
                (json_is_array(other) && !json_array_size(other));
    }
    return plain;
}

int dsc_import_beside(json_t **out, const json_t *line, const json_t *text, dsc_error *err)
{
    *out = json_pack("{s:O}", "content", text);
    bool failed = !*out;
    for (size_t i = 0; i < OTHERS && !failed; i++) {
        json_t *other = dsc_import_at(line, others[i], 0);
        // Fields of a line may be settings of the request: {"effort": "high"}, true.
        const bool written =
            json_is_string(other) || json_is_array(other) || !strcmp(others[i], "function_call");
        failed = other && written && json_object_set(*out, others[i], other);
    }
    return failed ? dsc_fail(err, DSC_ENOMEM, "out of memory") : DSC_OK;
}

// A source may have the thoughts within the text.
static bool is_silent(const dsc_chat_message *m)
{
    static const char tag[] = "</think>";
    return !m->thoughts.length && !memmem(m->text, m->length, tag, sizeof tag - 1);
}

// Writes an answer as the model did.
static int write_answer(const dsc_chat_message *m, const char *where, bool after_result,
                        const dsc_import_options *options, unsigned *lost, dsc_buffer *out,
                        dsc_error *err)
{
    const dsc_chat_template *t = options->chat ? options->chat->format : NULL;
    int rc = check_message(m, true, where, options, lost, err);
    t = t ? t : dsc_chat_template_find("none");
    return rc ?: dsc_chat_answer(t, m, after_result, out, err);
}

int dsc_import_answer(const json_t *message, const char *where, bool after_result,
                      const dsc_import_options *options, bool *silent, unsigned *lost,
                      dsc_buffer *out, dsc_error *err)
{
    dsc_chat c = {0};
    int rc = dsc_chat_read_answer(&c, message, where, err);
    for (size_t i = 0; i < c.count && !rc && silent; i++)
        *silent = is_silent(&c.message[i]);
    if (!rc && c.count != 1)
        rc = dsc_fail(err, DSC_EINPUT, "field '%s' contains the results of tools", where);
    if (out)
        rc = rc ?: write_answer(c.message, where, after_result, options, lost, out, err);
    dsc_chat_fini(&c);
    return rc;
}

int dsc_import_mark(json_t *metadata, unsigned lost, bool tools_left_out, dsc_error *err)
{
    const char *before = json_string_value(json_object_get(metadata, "lossy"));
    char text[96], all[200];
    lost_text(lost, text, sizeof text);
    snprintf(all, sizeof all, "%.90s%s%s", before ? before : "", before ? ", " : "", text);
    if ((lost && json_object_set_new(metadata, "lossy", json_string(all))) ||
        (tools_left_out && json_object_set_new(metadata, "tools_left_out", json_true())))
        return dsc_fail(err, DSC_ENOMEM, "out of memory");
    return DSC_OK;
}

// --- the driver --------------------------------------------------------------------------------

static int probe(const json_t *line)
{
    const json_t *first = json_array_get(dsc_import_messages(line), 0);
    return 3 * (dsc_import_any(first, "role|from", 0) &&
                dsc_import_any(line, "messages|conversations", 0));
}

// An answer as it is in a line: a message of the conversation, or next to it.
typedef struct line_answer {
    size_t end;   // the messages before this one are its prompt
    json_t *text; // what the model wrote; owned
    bool silent;  // without thoughts
    bool is_last; // of its chat
    bool goes_on; // the last answer of a chat that ends with another message
    unsigned lost;
} line_answer;

// A request of an answer. Of an answer that others follow, only the end is known; times and the
// reason of the line belong to the last.
static int make_request(json_t **out, const conversation *c, const json_t *line,
                        const line_answer *a, const dsc_import_options *options, dsc_error *err)
{
    json_t *prompt = NULL;
    dsc_import_prompt about = {0};
    unsigned lost = a->lost;
    *out = json_object();
    int rc = *out ? DSC_OK : dsc_fail(err, DSC_ENOMEM, "out of memory");
    rc = rc ?: dsc_import_gather(*out, dsc_import_common, line, 0, err);
    rc = rc ?: render(&prompt, c, a->end, a->silent, options, &lost, err);
    rc = rc ?: dsc_import_put_at(*out, "prompt", prompt, err);
    rc = rc ?: dsc_import_put_at(*out, "output", json_incref(a->text), err);
    describe(c, a->end, options, &about);
    if (!rc && a->end < c->chat.count && !a->is_last) {
        json_object_del(*out, "finish_reason");
        json_object_del(json_object_get(*out, "metadata"), "wall_time");
    } else {
        rc = rc ?: dsc_import_gather(*out, dsc_import_usage, line, 0, err);
    }
    if (!rc && (lost || about.tools_left_out || a->goes_on)) {
        json_t *metadata = json_object_get(*out, "metadata");
        if (!metadata)
            rc = dsc_import_put_at(*out, "metadata", metadata = json_object(), err);
        rc = rc ?: dsc_import_mark(metadata, lost, about.tools_left_out, err);
        if (!rc && a->goes_on && json_object_set_new(metadata, "unanswered_turn", json_true()))
            rc = dsc_fail(err, DSC_ENOMEM, "out of memory");
    }
    if (rc) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

static int add_request(json_t *requests, const conversation *c, const json_t *line,
                       const line_answer *a, size_t number, const dsc_import_options *options,
                       dsc_error *err)
{
    json_t *request;
    const size_t count = options->last_turn || a->end == c->chat.count ? 1 : c->chat.answers;
    int rc = make_request(&request, c, line, a, options, err);
    return rc ?: dsc_import_add_request(requests, request, number, count, err);
}

static bool follows_result(const conversation *c, size_t i)
{
    return i && c->chat.message[i - 1].role == DSC_CHAT_TOOL;
}

// Takes the text of a buffer.
static int take_text(line_answer *a, dsc_buffer *text, int rc, dsc_error *err)
{
    a->text = rc ? NULL : json_stringn_nocheck(text->data, text->length);
    dsc_buffer_fini(text);
    return rc || a->text ? rc : dsc_fail(err, DSC_ENOMEM, "out of memory");
}

static int add_turn(json_t *requests, const conversation *c, const json_t *line, size_t i,
                    size_t number, const dsc_import_options *options, dsc_error *err)
{
    const dsc_chat_message *m = &c->chat.message[i];
    line_answer a = {.end = i,
                     .silent = is_silent(m),
                     .is_last = number == c->chat.answers,
                     .goes_on = number == c->chat.answers && i + 1 < c->chat.count};
    dsc_buffer text = {0};
    char where[48];
    snprintf(where, sizeof where, "messages[%zu]", m->source);
    int rc = write_answer(m, where, follows_result(c, i), options, &a.lost, &text, err);
    rc = take_text(&a, &text, rc, err);
    rc = rc ?: add_request(requests, c, line, &a, number, options, err);
    json_decref(a.text);
    return rc;
}

static int add_turns(json_t *requests, const conversation *c, const json_t *line,
                     const dsc_import_options *options, dsc_error *err)
{
    size_t number = 0, bytes = 0;
    int rc = DSC_OK;
    for (size_t i = 0; i < c->chat.count && !rc; i++) {
        if (c->chat.message[i].role != DSC_CHAT_ASSISTANT ||
            (++number != c->chat.answers && options->last_turn))
            continue;
        rc = add_turn(requests, c, line, i, number, options, err);
        const json_t *last = json_array_get(requests, json_array_size(requests) - 1);
        const json_t *prompt = json_object_get(last, "prompt");
        bytes +=
            json_string_length(json_is_object(prompt) ? json_object_get(prompt, "text") : prompt);
        if (!rc && bytes > PROMPT_BYTES)
            rc = dsc_fail(err, DSC_EINPUT,
                          "the prompts of the chat's turns have more than 64 MiB; import its last "
                          "turn (--turns last)");
    }
    return rc;
}

// An answer next to the messages: a text, or a message; thoughts and calls may be next to a text.
static int add_outside(json_t *requests, const conversation *c, const json_t *line,
                       const json_t *answer, const dsc_import_options *options, dsc_error *err)
{
    const bool open = follows_result(c, c->chat.count);
    line_answer a = {.end = c->chat.count, .silent = true};
    dsc_buffer text = {0};
    json_t *message = NULL;
    int rc = json_is_string(answer) ? dsc_import_beside(&message, line, answer, err) : DSC_OK;
    rc = rc
             ?: dsc_import_answer(message ? message : answer, "response", open, options, &a.silent,
                                  &a.lost, &text, err);
    json_decref(message);
    rc = take_text(&a, &text, rc, err);
    rc = rc ?: add_request(requests, c, line, &a, 1, options, err);
    json_decref(a.text);
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
    const json_t *messages = dsc_import_messages(line), *answer = dsc_import_any(line, answers, 0);
    conversation c;
    if (!messages)
        return dsc_import_wrong_type(dsc_import_any(line, "messages|conversations", 0),
                                     "an array of messages", err, "messages");
    int rc = conversation_read(&c, line, messages, json_array_size(messages), err);
    const dsc_chat *chat = &c.chat;
    const bool open = chat->count && chat->message[chat->count - 1].role != DSC_CHAT_ASSISTANT;
    if (!rc && open && answer)
        rc = add_outside(requests, &c, line, answer, options, err);
    else if (!rc && !chat->answers)
        rc = dsc_fail(err, DSC_EINPUT,
                      "field 'messages' has no assistant turn, so the line has no output");
    else if (!rc)
        rc = add_turns(requests, &c, line, options, err);
    conversation_fini(&c);
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
