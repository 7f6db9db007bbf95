// SPDX-License-Identifier: Apache-2.0
// What a model writes besides the content of a message: thoughts, calls of tools and their results,
// against the texts of Jinja templates and of the vendors' libraries
// (tests/data/import/chat_calls.jsonl), and in the forms of several APIs.
#include "tests/unit/import_fixture.h"

#include "tests/close.h"
#include "traces/import/import_message.h"
#include "traces/trace/trace_json.h"

// --- templates -----------------------------------------------------------------------------------

static const char *text_of(const json_t *line, const char *name)
{
    return json_string_value(json_object_get(line, name));
}

// The prompt and the answer of a line, as they are rendered here.
static void render(const json_t *line, dsc_buffer *prompt, dsc_buffer *answer)
{
    dsc_chat chat = {0};
    dsc_error err;
    const json_t *list = json_object_get(line, "messages");
    const dsc_chat_template *t = dsc_chat_template_find(text_of(line, "template"));
    assert_non_null(t);
    if (dsc_chat_read(&chat, list, json_array_size(list), &err))
        fail_msg("%s", err.message);
    const size_t last = chat.count - 1;
    const dsc_chat_request about = {.tools = json_object_get(line, "tools"),
                                    .without_thoughts = !chat.message[last].thoughts.length};
    for (size_t i = 0; i < chat.count; i++)
        assert_int_equal(dsc_chat_lacks(t, &chat.message[i], i == last), 0);
    const bool after = last && chat.message[last - 1].role == DSC_CHAT_TOOL;
    assert_int_equal(dsc_chat_render(t, chat.message, last, &about, prompt, NULL), DSC_OK);
    assert_int_equal(dsc_chat_answer(t, &chat.message[last], after, answer, NULL), DSC_OK);
    dsc_chat_fini(&chat);
}

// Where thinking is switched off, Jinja begins the answer with empty thoughts, and here the prompt
// ends with them: the two texts together are the same.
static void test_rendering(void **state)
{
    (void)state;
    char path[512];
    FILE *f = fopen(source_path("tests/data/import/chat_calls.jsonl", path, sizeof path), "r");
    char *text = NULL;
    size_t size = 0;
    int lines = 0, bad = 0;
    assert_non_null(f);
    for (; getline(&text, &size, f) > 0; lines++) {
        dsc_buffer is = {0}, answer = {0}, wanted = {0};
        json_t *line = json_loads(text, 0, NULL);
        assert_non_null(line);
        render(line, &is, &answer);
        dsc_buffer_puts(&is, answer.data, NULL);
        dsc_buffer_printf(&wanted, NULL, "%s%s", text_of(line, "prompt"), text_of(line, "answer"));
        if (strcmp(is.data, wanted.data) != 0) {
            printf("line %d (%s):\n%s\n--- wanted\n%s\n", lines + 1, text_of(line, "template"),
                   is.data, wanted.data);
            bad++;
        }
        dsc_buffer_fini(&is);
        dsc_buffer_fini(&answer);
        dsc_buffer_fini(&wanted);
        json_decref(line);
    }
    free(text);
    fclose(f);
    assert_int_equal(bad, 0);
    assert_int_equal(lines, 166);
}

// --- messages ------------------------------------------------------------------------------------

static json_t *field(const json_t *object, const char *name)
{
    return json_object_get(object, name);
}

// The lines of a case as the input.
static void put_case(const json_t *c)
{
    dsc_buffer b = {0};
    for (size_t i = 0; i < json_array_size(field(c, "lines")); i++) {
        char *line = json_dumps(json_array_get(field(c, "lines"), i), JSON_COMPACT);
        dsc_buffer_printf(&b, NULL, "%s\n", line);
        free(line);
    }
    put_text(in_path, b.data);
    dsc_buffer_fini(&b);
}

static int import_case(const json_t *c, dsc_error *err)
{
    const char *paths[] = {in_path};
    dsc_import_options o = plain;
    o.chat_template = text_of(c, "template");
    o.lossy = json_is_true(field(c, "lossy"));
    o.note = keep_note;
    notes[0] = '\0';
    put_case(c);
    return dsc_import(paths, 1, bytes, out_path, &o, NULL, err);
}

// "</s>" at the end of an output stands for the EOS token.
static void expect_output(const dsc_request *q, const char *wanted)
{
    const size_t length = strlen(wanted), end = strlen("</s>");
    const bool ends = length >= end && !strcmp(wanted + length - end, "</s>");
    const int64_t last = q->output.count ? q->output.id[q->output.count - 1] : -1;
    char text[1024];
    snprintf(text, sizeof text, "%.*s", (int)(length - (ends ? end : 0)), wanted);
    expect_text(q->output_text, text);
    assert_int_equal(last == 257, ends);
}

static void expect_requests(const json_t *wanted)
{
    opened o = open_trace(out_path);
    int lossy = 0;
    int64_t marked;
    assert_int_equal(o.info->requests, json_array_size(wanted));
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        const json_t *r = json_array_get(wanted, i), *part = field(r, "lossy");
        const dsc_request q = request(&o, (int64_t)i);
        json_t *metadata = json_loadb(q.metadata.bytes, (size_t)q.metadata.length, 0, NULL);
        expect_text(q.prompt_text, text_of(r, "prompt"));
        expect_output(&q, text_of(r, "output"));
        assert_true(part ? json_equal(part, field(metadata, "lossy")) : !field(metadata, "lossy"));
        lossy += part != NULL;
        json_decref(metadata);
    }
    assert_int_equal(dsc_trace_lossy(&marked, o.info, NULL), DSC_OK);
    assert_int_equal(marked, lossy);
    close_trace(&o);
}

// Chats, responses and streams of several APIs, each with the prompts and outputs that must come of
// it, or the message.
static void test_messages(void **state)
{
    (void)state;
    char path[512], *text = NULL;
    FILE *f = fopen(source_path("tests/data/import/messages.jsonl", path, sizeof path), "r");
    size_t size = 0;
    int cases = 0;
    assert_non_null(f);
    for (; getline(&text, &size, f) > 0; cases++) {
        json_t *c = json_loads(text, 0, NULL);
        dsc_error err = {0};
        assert_non_null(c);
        printf("%s\n", text_of(c, "about"));
        int rc = import_case(c, &err);
        if (field(c, "error")) {
            char place[300];
            snprintf(place, sizeof place, "%s:", in_path);
            expect_message(&err, rc, place, text_of(c, "error"));
        } else {
            assert_ok(rc, err);
            expect_requests(field(c, "requests"));
        }
        if (field(c, "note"))
            expect_note(text_of(c, "note"));
        remove_trace(out_path);
        json_decref(c);
    }
    free(text);
    fclose(f);
    assert_int_equal(cases, 81);
}

#define USER "{\"role\": \"user\", \"content\": \"U\"}"
#define ANSWER(rest) "{\"role\": \"assistant\", \"content\": \"A\"" rest "}"
#define CHAT(messages) "{\"messages\": [" messages "]}\n"
#define CALL(arguments) "{\"function\": {\"name\": \"f\"" arguments "}}"

// A call in its fields is the same text in the content.
static void test_same_text(void **state)
{
    (void)state;
    dsc_import_options o = plain;
    char hash[2][DSC_SHA256_HEX];
    static const char *const chats[] = {
        CHAT(USER ", " ANSWER(", \"tool_calls\": [" CALL(", \"arguments\": \"{}\"") "]")),
        CHAT(USER ", {\"role\": \"assistant\", \"content\": \"A\\n<tool_call>\\n{\\\"name\\\": "
                  "\\\"f\\\", \\\"arguments\\\": {}}\\n</tool_call>\"}")};
    o.chat_template = "chatml";
    for (int i = 0; i < 2; i++) {
        opened t = import_good(chats[i], &o);
        memcpy(hash[i], t.info->hash, sizeof hash[i]);
        close_trace(&t);
    }
    assert_string_equal(hash[0], hash[1]);
}

// A chat with a bad answer is left out whole, and counted.
static void test_skipping(void **state)
{
    (void)state;
    dsc_import_options o = plain;
    dsc_error err;
    int64_t left_out = 0;
    o.skip_errors = true;
    o.chat_template = "chatml";
    int rc =
        import(CHAT(USER ", " ANSWER("") ", " USER ", " ANSWER(", \"tool_calls\": [" CALL("") "]"))
                   CHAT(USER ", " ANSWER("")),
               bytes, &o, &left_out, &err);
    assert_ok(rc, err);
    assert_int_equal(left_out, 1);
    opened t = open_trace(out_path);
    assert_int_equal(t.info->requests, 1);
    close_trace(&t);
}

SUITE(import_calls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rendering),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_same_text),
        cmocka_unit_test(test_skipping),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
