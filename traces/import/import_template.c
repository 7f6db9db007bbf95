// SPDX-License-Identifier: Apache-2.0
// The table of chat templates, how they are recognized, and rendering (import_template.h).
// Recognizing follows llama.cpp, src/llama-chat.cpp (0192c12); the texts are those of the models'
// own templates in Hugging Face's format, which differ from llama.cpp's in spaces and in default
// system prompts. tests/unit/test_import_chat.c compares them with texts that the Jinja templates
// rendered.
#include "traces/import/import_template.h"

#include "base/file.h"
#include "traces/files/gguf.h"
#include "traces/tokenizer/ends.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Bits: what is left out around a text, and where the text of a system message stands.
enum {
    TRIM_SYSTEM = 1,
    TRIM_USER = 2,
    TRIM_ASSISTANT = 4,
    TRIM = TRIM_SYSTEM | TRIM_USER | TRIM_ASSISTANT,
    DROP_THINKING = 8,   // of earlier answers, up to </think>
    DROP_LINE_ENDS = 16, // after that
    IN_FIRST_USER = 32,
    IN_LAST_USER = 64,
};

struct dsc_chat_template {
    const char *name;
    const char *marks[3];                           // the Jinja text contains all of them
    const char *absent[2];                          // and none of these
    const char *system[2], *user[2], *assistant[2]; // around a message's text
    const char *begin_answer;
    const char *default_system; // where the conversation has none; NULL: nothing
    const char *again;          // before every user message but the first
    const char *end;            // the token that ends an answer
    unsigned flags;
};

#define CHATML(name_, mark, absent_, system_, flags_)                                              \
    {                                                                                              \
        .name = name_, .marks = {"<|im_start|>", mark}, .absent = {"<end_of_utterance>", absent_}, \
        .system = {"<|im_start|>system\n", "<|im_end|>\n"},                                        \
        .user = {"<|im_start|>user\n", "<|im_end|>\n"},                                            \
        .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},                                  \
        .begin_answer = "<|im_start|>assistant\n", .default_system = system_, .end = "<|im_end|>", \
        .flags = flags_,                                                                           \
    }
#define LLAMA3(name_, mark, system_text, default_)                                                 \
    {                                                                                              \
        .name = name_, .marks = {"<|start_header_id|>", "<|eot_id|>", mark},                       \
        .system = {"<|start_header_id|>system<|end_header_id|>\n\n" system_text, "<|eot_id|>"},    \
        .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},                    \
        .assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},          \
        .begin_answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",                       \
        .default_system = default_, .end = "<|eot_id|>", .flags = TRIM,                            \
    }
// Later models of this family have a default system prompt with the date of the request, which is
// left out.
#define MISTRAL_V7_TEKKEN(name_, mark, default_)                                                   \
    {                                                                                              \
        .name = name_, .marks = {"[INST]", "[SYSTEM_PROMPT]", mark},                               \
        .system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, .user = {"[INST]", "[/INST]"},          \
        .assistant = {"", "</s>"}, .begin_answer = "", .default_system = default_, .end = "</s>",  \
    }
#define DEEPSEEK(name_, mark, absent_, answer, flags_)                                             \
    {                                                                                              \
        .name = name_, .marks = {"<｜Assistant｜>", "<｜User｜>", mark}, .absent = {absent_},      \
        .system = {"", ""}, .user = {"<｜User｜>", ""},                                            \
        .assistant = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"}, .begin_answer = answer,         \
        .end = "<｜end▁of▁sentence｜>", .flags = flags_,                                           \
    }

// The first that fits is taken.
static const dsc_chat_template templates[] = {
    {.name = "phi4",
     .marks = {"<|im_start|>", "<|im_sep|>"},
     .system = {"<|im_start|>system<|im_sep|>", "<|im_end|>"},
     .user = {"<|im_start|>user<|im_sep|>", "<|im_end|>"},
     .assistant = {"<|im_start|>assistant<|im_sep|>", "<|im_end|>"},
     .begin_answer = "<|im_start|>assistant<|im_sep|>",
     .end = "<|im_end|>"},
    CHATML("qwen3", "content.split('</think>')[-1].lstrip('\\n')", "<|vision_start|>", NULL,
           DROP_THINKING | DROP_LINE_ENDS),
    CHATML("qwen2.5", "You are Qwen, created by Alibaba Cloud", "think>",
           "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", 0),
    CHATML("qwen2", "You are a helpful assistant", "think>", "You are a helpful assistant.", 0),
    CHATML("smollm2", "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
           "think>", "You are a helpful AI assistant named SmolLM, trained by Hugging Face", 0),
    CHATML("chatml", NULL, "think>", NULL, 0),
    {.name = "mistral-v7",
     .marks = {"[INST]", "[SYSTEM_PROMPT] "},
     .system = {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"},
     .user = {"[INST] ", "[/INST]"},
     .assistant = {" ", "</s>"},
     .begin_answer = "",
     .end = "</s>"},
    MISTRAL_V7_TEKKEN(
        "mistral-small-2501", "set date_string = \"2025-01-01\"",
        "You are Mistral Small 3, a Large Language Model (LLM) created by Mistral AI, a French "
        "startup "
        "headquartered in Paris.\nYour knowledge base was last updated on 2023-10-01. The current "
        "date is 2025-01-01.\n\nWhen you're not sure about some information, you say that you "
        "don't "
        "have the information and don't make up anything.\nIf the user's question is not clear, "
        "ambiguous, or does not provide enough context for you to accurately answer the question, "
        "you do not try to answer it right away and you rather ask the user to clarify their "
        "request (e.g. \"What are some good restaurants around me?\" => \"Where are you?\" or "
        "\"When is the next flight to Tokyo\" => \"Where do you travel from?\")"),
    MISTRAL_V7_TEKKEN("mistral-v7-tekken", NULL, NULL),
    {.name = "mistral-v1",
     .marks = {"[INST]", " [INST]"},
     .absent = {"<<SYS>>"},
     .system = {"", "\n\n"},
     .user = {" [INST] ", " [/INST]"},
     .assistant = {" ", "</s>"},
     .begin_answer = "",
     .end = "</s>",
     .flags = IN_FIRST_USER},
    {.name = "mistral-v3-tekken",
     .marks = {"[AVAILABLE_TOOLS]", "\"[INST]\""},
     .system = {"", "\n\n"},
     .user = {"[INST]", "[/INST]"},
     .assistant = {"", "</s>"},
     .begin_answer = "",
     .end = "</s>",
     .flags = IN_LAST_USER},
    {.name = "mistral-v3",
     .marks = {"[AVAILABLE_TOOLS]", "[INST]"},
     .system = {"", "\n\n"},
     .user = {"[INST] ", "[/INST]"},
     .assistant = {" ", "</s>"},
     .begin_answer = "",
     .end = "</s>",
     .flags = IN_LAST_USER | TRIM_ASSISTANT},
    {.name = "llama2",
     .marks = {"[INST]", "<<SYS>>"},
     .absent = {"<image>"},
     .system = {"<<SYS>>\n", "\n<</SYS>>\n\n"},
     .user = {"[INST] ", " [/INST]"},
     .assistant = {" ", " </s>"},
     .begin_answer = "",
     .again = "<s>",
     .end = "</s>",
     .flags = IN_FIRST_USER | TRIM_USER | TRIM_ASSISTANT},
    {.name = "phi4-mini",
     .marks = {"<|end|>", "'|>' + message['content'] + '<|end|>'"},
     .system = {"<|system|>", "<|end|>"},
     .user = {"<|user|>", "<|end|>"},
     .assistant = {"<|assistant|>", "<|end|>"},
     .begin_answer = "<|assistant|>",
     .end = "<|end|>"},
    {.name = "phi3",
     .marks = {"<|end|>", "<|assistant|>"},
     .system = {"<|system|>\n", "<|end|>\n"},
     .user = {"<|user|>\n", "<|end|>\n"},
     .assistant = {"<|assistant|>\n", "<|end|>\n"},
     .begin_answer = "<|assistant|>\n",
     .end = "<|end|>"},
    LLAMA3("llama3.1", "Cutting Knowledge Date",
           "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n", ""),
    LLAMA3("llama3", NULL, "", NULL),
    {.name = "llama4",
     .marks = {"<|header_start|>", "<|header_end|>"},
     .system = {"<|header_start|>system<|header_end|>\n\n", "<|eot|>"},
     .user = {"<|header_start|>user<|header_end|>\n\n", "<|eot|>"},
     .assistant = {"<|header_start|>assistant<|header_end|>\n\n", "<|eot|>"},
     .begin_answer = "<|header_start|>assistant<|header_end|>\n\n",
     .end = "<|eot|>",
     .flags = TRIM_SYSTEM},
    {.name = "gemma",
     .marks = {"<start_of_turn>", "<end_of_turn>"},
     .system = {"", "\n\n"},
     .user = {"<start_of_turn>user\n", "<end_of_turn>\n"},
     .assistant = {"<start_of_turn>model\n", "<end_of_turn>\n"},
     .begin_answer = "<start_of_turn>model\n",
     .end = "<end_of_turn>",
     .flags = IN_FIRST_USER | TRIM},
    DEEPSEEK("deepseek-r1", "<think>", "thinking", "<｜Assistant｜><think>\n", DROP_THINKING),
    DEEPSEEK("deepseek3", NULL, "thinking", "<｜Assistant｜>", 0),
    {.name = "deepseek2",
     .marks = {"'User: '", "'Assistant: ' + message['content'] + eos_token"},
     .system = {"", "\n\n"},
     .user = {"User: ", "\n\n"},
     .assistant = {"Assistant: ", "<｜end▁of▁sentence｜>"},
     .begin_answer = "Assistant:",
     .end = "<｜end▁of▁sentence｜>"},
    {.name = "command-r",
     .marks = {"<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"},
     .absent = {"<|START_RESPONSE|>"},
     .system = {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     .user = {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     .assistant = {"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     .begin_answer = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
     .end = "<|END_OF_TURN_TOKEN|>",
     .flags = TRIM},
    {.name = "granite",
     .marks = {"<|start_of_role|>", "<|end_of_role|>"},
     .absent = {"Knowledge Cutoff Date"},
     .system = {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
     .user = {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
     .assistant = {"<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"},
     .begin_answer = "<|start_of_role|>assistant<|end_of_role|>",
     .end = "<|end_of_text|>"},
    {.name = "zephyr",
     .marks = {"<|user|>\\n' + message['content'] + eos_token"},
     .system = {"<|system|>\n", "</s>\n"},
     .user = {"<|user|>\n", "</s>\n"},
     .assistant = {"<|assistant|>\n", "</s>\n"},
     .begin_answer = "<|assistant|>\n",
     .end = "</s>"},
    {.name = "vicuna",
     .marks = {"'USER: '", "'ASSISTANT: '", "'\\n'"},
     .absent = {"SYSTEM: "},
     .system = {"", "\n\n"},
     .user = {"USER: ", "\n"},
     .assistant = {"ASSISTANT: ", "</s>\n"},
     .begin_answer = "ASSISTANT:",
     .end = "</s>",
     .flags = TRIM},
    {.name = "none",
     .system = {"system: ", "\n"},
     .user = {"user: ", "\n"},
     .assistant = {"assistant: ", "\n"},
     .begin_answer = "assistant:"},
};
enum { TEMPLATES = sizeof templates / sizeof *templates };

const dsc_chat_template *dsc_chat_template_find(const char *name)
{
    for (size_t i = 0; i < TEMPLATES; i++)
        if (!strcmp(templates[i].name, name))
            return &templates[i];
    return NULL;
}

const char *dsc_chat_template_name(const dsc_chat_template *t)
{
    return t->name;
}

const char *dsc_chat_template_end(const dsc_chat_template *t)
{
    return t->end;
}

void dsc_chat_template_names(char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < TEMPLATES && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", templates[i].name);
}

// --- recognizing -------------------------------------------------------------------------------

// Many ChatML templates differ in their default system prompt alone. Returns whether each that the
// Jinja text spells out is that of the template.
static bool has_default(const dsc_chat_template *t, const char *jinja)
{
    static const char begin[] = "<|im_start|>system";
    const size_t length = t->default_system ? strlen(t->default_system) : 0;
    while ((jinja = strstr(jinja, begin)) != NULL) {
        jinja += sizeof begin - 1;
        const size_t line_end = *jinja == '\n' ? 1 : !strncmp(jinja, "\\n", 2) ? 2 : 0;
        const char *text = jinja + line_end;
        const bool spelled = line_end && *text && !strchr("'\"{", *text);
        if (spelled && (!length || strncmp(text, t->default_system, length) != 0 ||
                        strncmp(text + length, "<|im_end|>", 10) != 0))
            return false;
    }
    return true;
}

const dsc_chat_template *dsc_chat_template_recognize(const char *jinja)
{
    for (const dsc_chat_template *t = templates; t < templates + TEMPLATES; t++) {
        bool fits = t->marks[0];
        for (int m = 0; m < 2 && fits && t->absent[m]; m++)
            fits = !strstr(jinja, t->absent[m]);
        for (int m = 0; m < 3 && fits && t->marks[m]; m++)
            fits = strstr(jinja, t->marks[m]) != NULL;
        if (fits && has_default(t, jinja))
            return t;
    }
    return NULL;
}

static int recognize(dsc_chat_found *out, const char *jinja, const json_t *config, const char *path,
                     dsc_error *err)
{
    const json_t *bos = json_object_get(config, "bos_token");
    const char *text =
        json_string_value(json_is_object(bos) ? json_object_get(bos, "content") : bos);
    out->format = dsc_chat_template_recognize(jinja);
    if (!out->format)
        return dsc_fail(err, DSC_EINPUT, "%s: the chat template is not one that draftscope knows",
                        path);
    if (text && strstr(jinja, "bos_token") &&
        snprintf(out->bos, sizeof out->bos, "%s", text) >= (int)sizeof out->bos)
        return dsc_fail(err, DSC_EINPUT, "%s: the BOS token has more than %zu bytes", path,
                        sizeof out->bos - 1);
    return DSC_OK;
}

// The field is a string, or a list of named templates, of which "default" counts.
static int recognize_field(dsc_chat_found *out, const json_t *config, const char *path,
                           dsc_error *err)
{
    const json_t *field = json_object_get(config, "chat_template");
    for (size_t i = 0; i < json_array_size(field); i++) {
        const json_t *item = json_array_get(field, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && !strcmp(name, "default")) {
            field = json_object_get(item, "template");
            break;
        }
    }
    if (json_is_string(field))
        return recognize(out, json_string_value(field), config, path, err);
    if (json_is_array(field))
        return dsc_fail(err, DSC_EINPUT, "%s: 'chat_template' has no template 'default'", path);
    return DSC_OK;
}

// Reads chat_template.jinja; *jinja is NULL when there is none.
static int read_jinja(char **jinja, dsc_buffer *path, const char *config_path, dsc_error *err)
{
    enum { LIMIT = 4 << 20 };
    const char *slash = strrchr(config_path, '/');
    const int folder = slash ? (int)(slash - config_path) + 1 : 0;
    if (dsc_gguf_is(config_path))
        return DSC_OK; // it contains all that a folder has
    int rc = dsc_buffer_printf(path, err, "%.*schat_template.jinja", folder, config_path);
    if (rc || access(path->data, F_OK))
        return rc;
    rc = dsc_check_regular(path->data, err);
    return rc ? rc : dsc_read_text(jinja, path->data, LIMIT, err);
}

int dsc_chat_template_beside(dsc_chat_found *out, const char *spec, dsc_error *err)
{
    dsc_buffer config_path = {0}, path = {0};
    json_t *config = NULL;
    char *jinja = NULL;
    *out = (dsc_chat_found){0};
    int rc = dsc_beside_tokenizer(&config, &config_path, spec, "tokenizer_config.json", err);
    if (!rc)
        rc = read_jinja(&jinja, &path, config_path.data, err);
    if (!rc && jinja)
        rc = recognize(out, jinja, config, path.data, err);
    else if (!rc && config)
        rc = recognize_field(out, config, config_path.data, err);
    free(jinja);
    json_decref(config);
    dsc_buffer_fini(&path);
    dsc_buffer_fini(&config_path);
    return rc;
}

// --- rendering ---------------------------------------------------------------------------------

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// The text as the template writes it: without the thoughts of an earlier answer, and without white
// space around it.
static dsc_chat_message shorten(const dsc_chat_template *t, const dsc_chat_message *m)
{
    static const unsigned trim[] = {TRIM_SYSTEM, TRIM_USER, TRIM_ASSISTANT};
    static const char tag[] = "</think>";
    dsc_chat_message s = *m;
    bool think = t->flags & DROP_THINKING && m->role == DSC_CHAT_ASSISTANT;
    for (size_t i = s.length; think && i-- > 0;)
        if (s.length - i >= sizeof tag - 1 && !memcmp(s.text + i, tag, sizeof tag - 1)) {
            s.text += i + sizeof tag - 1;
            s.length -= i + sizeof tag - 1;
            while (t->flags & DROP_LINE_ENDS && s.length && *s.text == '\n')
                s.text++, s.length--;
            break;
        }
    if (!(t->flags & trim[m->role]))
        return s;
    while (s.length && is_space(*s.text))
        s.text++, s.length--;
    while (s.length && is_space(s.text[s.length - 1]))
        s.length--;
    return s;
}

static int put(dsc_buffer *out, const dsc_chat_template *t, const char *const around[2],
               const dsc_chat_message *m, dsc_error *err)
{
    const dsc_chat_message s = shorten(t, m);
    int rc = dsc_buffer_puts(out, around[0], err);
    if (!rc)
        rc = dsc_buffer_append(out, s.text, s.length, err);
    return rc ? rc : dsc_buffer_puts(out, around[1], err);
}

// A user message; `system` is the message to put into it, or NULL.
static int put_user(dsc_buffer *out, const dsc_chat_template *t, const dsc_chat_message *m,
                    const dsc_chat_message *system, bool first, dsc_error *err)
{
    int rc = first || !t->again ? DSC_OK : dsc_buffer_puts(out, t->again, err);
    if (!rc)
        rc = dsc_buffer_puts(out, t->user[0], err);
    if (!rc && system)
        rc = put(out, t, t->system, system, err);
    return rc ? rc : put(out, t, (const char *[]){"", t->user[1]}, m, err);
}

int dsc_chat_render(const dsc_chat_template *t, const dsc_chat_message *message, size_t count,
                    dsc_buffer *out, dsc_error *err)
{
    const bool inside = t->flags & (IN_FIRST_USER | IN_LAST_USER);
    const dsc_chat_message *system = NULL;
    size_t last_user = 0, users = 0;
    int rc = DSC_OK;
    for (size_t i = 0; i < count; i++)
        last_user = message[i].role == DSC_CHAT_USER ? i : last_user;
    if (t->default_system && (!count || message[0].role != DSC_CHAT_SYSTEM)) {
        const dsc_chat_message given = {DSC_CHAT_SYSTEM, t->default_system,
                                        strlen(t->default_system)};
        rc = put(out, t, t->system, &given, err);
    }
    for (size_t i = 0; i < count && !rc; i++) {
        const dsc_chat_message *m = &message[i];
        if (m->role == DSC_CHAT_SYSTEM && inside) {
            system = m;
        } else if (m->role == DSC_CHAT_SYSTEM) {
            rc = put(out, t, t->system, m, err);
        } else if (m->role == DSC_CHAT_ASSISTANT) {
            rc = put(out, t, t->assistant, m, err);
        } else {
            const bool here = t->flags & IN_LAST_USER ? i == last_user : system != NULL;
            rc = put_user(out, t, m, here ? system : NULL, !users++, err);
            system = here ? NULL : system;
        }
    }
    return rc ? rc : dsc_buffer_puts(out, t->begin_answer, err);
}
