// SPDX-License-Identifier: Apache-2.0
// Chats: rendering against the texts of Jinja templates (tests/data/import/chat_templates.jsonl),
// recognizing templates, and the requests of conversations.
#include "tests/unit/import_fixture.h"

#include "tests/close.h"
#include "traces/import/import_template.h"

// --- templates -----------------------------------------------------------------------------------

static void render(const json_t *line, dsc_buffer *out)
{
    enum { MOST = 8 };
    dsc_chat_message message[MOST];
    const json_t *list = json_object_get(line, "messages");
    const char *name = json_string_value(json_object_get(line, "template"));
    const dsc_chat_template *t = dsc_chat_template_find(name);
    assert_non_null(t);
    assert_true(json_array_size(list) <= MOST);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *m = json_array_get(list, i), *text = json_object_get(m, "content");
        const char role = *json_string_value(json_object_get(m, "role"));
        message[i] = (dsc_chat_message){.role = role == 's'   ? DSC_CHAT_SYSTEM
                                                : role == 'u' ? DSC_CHAT_USER
                                                              : DSC_CHAT_ASSISTANT,
                                        .text = json_string_value(text),
                                        .length = json_string_length(text)};
    }
    assert_int_equal(dsc_chat_render(t, message, json_array_size(list), NULL, out, NULL), DSC_OK);
}

// The prompts were rendered by Jinja from the templates of the models.
static void test_rendering(void **state)
{
    (void)state;
    char path[512], text[1 << 16];
    FILE *f = fopen(source_path("tests/data/import/chat_templates.jsonl", path, sizeof path), "r");
    int lines = 0;
    assert_non_null(f);
    for (; fgets(text, sizeof text, f); lines++) {
        dsc_buffer out = {0};
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        render(line, &out);
        assert_string_equal(out.data, json_string_value(json_object_get(line, "prompt")));
        dsc_buffer_fini(&out);
        json_decref(line);
    }
    fclose(f);
    assert_int_equal(lines, 51);
}

static void test_names(void **state)
{
    (void)state;
    static const dsc_chat_message chat[] = {
        {.role = DSC_CHAT_SYSTEM, .text = "S", .length = 1},
        {.role = DSC_CHAT_USER, .text = "U", .length = 1},
        {.role = DSC_CHAT_ASSISTANT, .text = " A ", .length = 3},
        {.role = DSC_CHAT_USER, .text = "V", .length = 1}};
    dsc_buffer out = {0};
    assert_int_equal(dsc_chat_render(dsc_chat_template_find("none"), chat, 4, NULL, &out, NULL),
                     DSC_OK);
    assert_string_equal(out.data, "system: S\nuser: U\nassistant:  A \nuser: V\nassistant:");
    dsc_buffer_fini(&out);
    assert_null(dsc_chat_template_find("no such template"));
}

static void test_recognizing(void **state)
{
    (void)state;
    static const char *const known[][2] = {
        {"{{'<|im_start|>' + message['role'] + '\\n' + content + '<|im_end|>'}}", "chatml"},
        {"'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
         "Face<|im_end|>\n'",
         "smollm2"},
        {"{{ '<|im_start|>system\\n' + system + '<|im_end|>' }}", "chatml"},
        {"<|im_start|> You are Qwen, created by Alibaba Cloud.", "qwen2.5"},
        {"<|im_start|> You are a helpful assistant", "qwen2"},
        {"<|im_start|> content.split('</think>')[-1].lstrip('\\n')", "qwen3"},
        {"<|im_start|>user<|im_sep|>", "phi4"},
        {"<|start_header_id|> <|eot_id|>", "llama3"},
        {"<|start_header_id|> <|eot_id|> Cutting Knowledge Date", "llama3.1"},
        {"<|header_start|> <|header_end|>", "llama4"},
        {"{{ ' [INST] ' + message['content'] }}", "mistral-v1"},
        {"\"[INST]\" [AVAILABLE_TOOLS]", "mistral-v3-tekken"},
        {"\"[INST] \" [AVAILABLE_TOOLS]", "mistral-v3"},
        {"[INST] [SYSTEM_PROMPT] ", "mistral-v7"},
        {"[INST] [SYSTEM_PROMPT]' ", "mistral-v7-tekken"},
        {"[INST] [SYSTEM_PROMPT]' set date_string = \"2025-01-01\"", "mistral-small-2501"},
        {"'[INST] ' <<SYS>>", "llama2"},
        {"<start_of_turn> <end_of_turn>", "gemma"},
        {"<｜Assistant｜> <｜User｜>", "deepseek3"},
        {"<｜Assistant｜> <｜User｜> <think>", "deepseek-r1"},
        {"<|im_start|> <function=example_function_name>", "qwen3-coder"},
        {"<|im_start|> <function=example_function_name> '\\n<think>\\n' + reasoning_content + '",
         "qwen3.5"},
        {"<|im_start|> content.split('</think>')[-1].lstrip('\\n') <tool_call>\\n{\"name\": \" "
         "'<|im_start|>assistant\\n<think>\\n'",
         "qwq"},
        {"<|im_start|> content.split('</think>')[-1].lstrip('\\n') <tool_call>\\n{\"name\": \" "
         "'<|im_start|>assistant\\n<think>\\n' reasoning_content",
         "qwen3-thinking"},
        {"[INST] [SYSTEM_PROMPT]' [ARGS]", "mistral-v13-tekken"},
        {"[INST] [SYSTEM_PROMPT]' [ARGS] [CALL_ID]", "mistral-v11-tekken"},
        {"[INST] [SYSTEM_PROMPT]' [ARGS] '[THINK]'", "magistral"},
        {"[gMASK]<sop> <arg_key> <|observation|> <|user|>\n", "glm4.5"},
        {"<|start|> <|channel|>analysis<|message|> # Valid channels:", "gpt-oss"},
    };
    // Templates of one name, of which those that show it write calls.
    static const struct {
        const char *jinja;
        bool calls;
    } calls[] = {
        {"<|im_start|> <tool_call>", true},
        {"<|im_start|> <tool_call> <function=", false},
        {"<|im_start|>", false},
        {"<|im_start|> content.split('</think>')[-1].lstrip('\\n')", false},
        {"<|im_start|> content.split('</think>')[-1].lstrip('\\n') <tool_call>\\n{\"name\": \"",
         true},
        {"<|start_header_id|> <|eot_id|> Cutting Knowledge Date \"parameters\": ", true},
        {"<|start_header_id|> <|eot_id|> Cutting Knowledge Date", false},
        {"<|start_header_id|> <|eot_id|>", false},
    };
    static const char *const unknown[] = {
        "",
        "'<|im_start|>system\\nYou are Dolphin.<|im_end|>'",
        "'<|im_start|>system\nYou are Dolphin.<|im_end|>'",
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM.<|im_end|>",
        "{{ messages }}",
        "'[INST] ' + content",
        "<|im_start|> <end_of_utterance>",
        "<|im_start|> enable_thinking <think> others",
        "<｜Assistant｜> <｜User｜> thinking"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const dsc_chat_template *t = dsc_chat_template_recognize(known[i][0]);
        assert_non_null(t);
        assert_string_equal(dsc_chat_template_name(t), known[i][1]);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const dsc_chat_template *t = dsc_chat_template_recognize(calls[i].jinja);
        assert_int_equal(t && dsc_chat_calls(t), calls[i].calls);
    }
    assert_true(dsc_chat_calls(dsc_chat_template_find("chatml")));
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(dsc_chat_template_recognize(unknown[i]));
}

// chat_template.jinja comes before tokenizer_config.json, whose field is a text or a list.
static void test_files(void **state)
{
    (void)state;
    char tokenizer[400], config[400], jinja[400];
    dsc_error err;
    dsc_chat_found t;
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", scratch);
    snprintf(config, sizeof config, "%s/tokenizer_config.json", scratch);
    snprintf(jinja, sizeof jinja, "%s/chat_template.jinja", scratch);
    static const struct {
        const char *config, *name, *message;
    } configs[] = {
        {"{}", NULL, NULL},
        {"{\"chat_template\": \"<|im_start|>\"}", "chatml", NULL},
        {"{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"x\"}, {\"name\": "
         "\"default\", \"template\": \"<|im_start|>\"}]}",
         "chatml", NULL},
        {"{\"chat_template\": [{\"name\": \"x\"}]}", NULL, "has no template 'default'"},
        {"{\"chat_template\": \"x\"}", NULL, "the chat template is not one that draftscope knows"},
        {"{", NULL, ": "},
    };
    assert_int_equal(dsc_chat_template_beside(&t, tokenizer, &err), DSC_OK);
    assert_null(t.format);
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        put_file(config, configs[i].config, strlen(configs[i].config));
        int rc = dsc_chat_template_beside(&t, tokenizer, &err);
        if (configs[i].message)
            expect_message(&err, rc, config, configs[i].message);
        else
            assert_int_equal(rc, DSC_OK);
        if (configs[i].name)
            assert_string_equal(dsc_chat_template_name(t.format), configs[i].name);
        else
            assert_null(t.format);
    }
    put_text(jinja, "<start_of_turn> <end_of_turn>");
    put_text(config, "{}");
    assert_int_equal(dsc_chat_template_beside(&t, tokenizer, &err), DSC_OK);
    assert_string_equal(dsc_chat_template_name(t.format), "gemma");
    assert_string_equal(t.bos, "");

    // The template settles the prompts of chats.
    const char chat[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"U\"}, {\"role\": "
                        "\"assistant\", \"content\": \"A\"}]}\n";
    dsc_import_options options = plain;
    options.tokenizer_path = tokenizer;
    opened o = import_good(chat, &options);
    dsc_request q = request(&o, 0);
    expect_text(q.prompt_text, "<start_of_turn>user\nU<end_of_turn>\n<start_of_turn>model\n");
    close_trace(&o);
    unlink(jinja);
    put_file(config, "{\"chat_template\": \"x\"}", 22);
    int rc = import(chat, bytes, &options, NULL, &err);
    expect_message(&err, rc, in_path, "name the nearest with --chat-template");
    o = import_good("{" OK_FIELDS "}\n", &options); // no chat: no template is needed
    close_trace(&o);
    unlink(config);
}

// --- conversations -------------------------------------------------------------------------------

static opened import_chats(const dsc_import_options *options)
{
    char path[512];
    const char *paths[] = {source_path("tests/data/import/chat.jsonl", path, sizeof path)};
    dsc_error err;
    notes[0] = '\0';
    if (dsc_import(paths, 1, bytes, out_path, options, NULL, &err))
        fail_msg("%s", err.message);
    return open_trace(out_path);
}

static void test_turns(void **state)
{
    (void)state;
    dsc_import_options options = plain;
    options.note = keep_note;
    opened o = import_chats(&options);
    assert_string_equal(o.info->format, "chat");
    assert_int_equal(o.info->requests, 3);
    dsc_request q = request(&o, 1);
    expect_text(q.id, "c1/2");
    expect_text(q.prompt_text,
                "system: Be brief.\nuser: Hi\nassistant: Hello there\nuser: More\nassistant:");
    expect_tokens(q.output, "No more$");
    expect_text(q.metadata, "{\"model\":\"m\"}");
    q = request(&o, 2);
    expect_text(q.id, "c2");
    expect_text(q.prompt_text, "user: Q\nassistant:");
    assert_non_null(strstr(notes, "without a chat template"));
    assert_non_null(strstr(notes, "every assistant turn of a chat is a request"));
    assert_non_null(strstr(notes, "the requests are of 2 models, m (2), n (1)"));
    close_trace(&o);
    options.last_turn = true;
    options.chat_template = "chatml";
    options.model = "m";
    o = import_chats(&options);
    assert_int_equal(o.info->requests, 1);
    q = request(&o, 0);
    expect_text(q.id, "c1");
    assert_non_null(strstr(notes, "1 requests of other models were left out"));
    assert_non_null(strstr(o.info->provenance,
                           "\"reading\":{\"chat_template\":\"chatml\",\"turns\":"
                           "\"last\",\"model\":\"m\"}"));
    close_trace(&o);
}

#define CHAT(messages, rest) "{\"messages\": [" messages "]" rest "}"
#define USER "{\"role\": \"user\", \"content\": \"U\"}"

static void test_answer_outside(void **state)
{
    (void)state;
    opened o = import_good(CHAT(USER, ", \"response\": \"R\", \"finish_reason\": \"length\"") "\n",
                           &plain);
    dsc_request q = request(&o, 0);
    expect_text(q.prompt_text, "user: U\nassistant:");
    expect_tokens(q.output, "R");
    close_trace(&o);
}

static void test_bad_chats(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {CHAT(USER, ""), " field 'messages' has no assistant turn, so the line has no output"},
        {CHAT("", ""), " field 'messages' has no assistant turn"},
        {CHAT(USER ", 3", ""), " field 'messages[1]' must be an object, not a number"},
        {CHAT("{\"content\": \"x\"}", ""), " field 'messages[0].role' is missing"},
        {CHAT("{\"role\": \"critic\", \"content\": \"x\"}", ""),
         " field 'messages[0].role' is \"critic\"; it must be system, developer, user, assistant "
         "or "
         "tool"},
        {CHAT("{\"role\": \"user\", \"content\": null}", ""),
         " field 'messages[0].content' is missing"},
        {CHAT("{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}", ""),
         " field 'messages[0].content[0].text' is missing"},
        {"{\"messages\": 3}", " field 'messages' must be an array of messages, not a number"},
    };
    dsc_import_options options = plain;
    dsc_error err;
    char place[400];
    options.format = "chat";
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int rc = import(bad[i][0], bytes, &options, NULL, &err);
        snprintf(place, sizeof place, "%s:1:", in_path);
        expect_message(&err, rc, place, bad[i][1]);
    }
    options.chat_template = "lama3";
    assert_int_equal(import(CHAT(USER, ""), bytes, &options, NULL, &err), DSC_EUSAGE);
    assert_non_null(
        strstr(err.message, "chat template 'lama3' must be auto, model or one of phi4, qwen3"));
}

// Prompts of many turns grow with the square of their number.
static void test_long_chat(void **state)
{
    (void)state;
    enum { TURNS = 400, TEXT = 7000 };
    dsc_buffer b = {0};
    char *text = malloc(TEXT + 1);
    assert_non_null(text);
    memset(text, 'x', TEXT);
    text[TEXT] = '\0';
    dsc_buffer_puts(&b, "{\"messages\": [" USER, NULL);
    for (int i = 0; i < TURNS; i++)
        dsc_buffer_printf(&b, NULL, ", {\"role\": \"assistant\", \"content\": \"%s\"}", text);
    dsc_buffer_puts(&b, "]}\n", NULL);
    dsc_error err;
    int rc = import(b.data, bytes, &plain, NULL, &err);
    expect_message(&err, rc, in_path, "have more than 64 MiB; import its last turn");
    free(text);
    dsc_buffer_fini(&b);
}

SUITE(import_chat)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rendering),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_recognizing),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_answer_outside),
        cmocka_unit_test_teardown(test_bad_chats, no_trace),
        cmocka_unit_test(test_long_chat),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
