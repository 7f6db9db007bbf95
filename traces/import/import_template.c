// SPDX-License-Identifier: Apache-2.0
// The table of chat templates and how they are recognized (import_template.h).
// Recognizing follows llama.cpp, src/llama-chat.cpp (0192c12); the texts are those of the models'
// own templates in Hugging Face's format, which differ from llama.cpp's in spaces and in default
// system prompts. tests/unit/test_import_chat.c compares them with texts that the Jinja templates
// rendered. The forms of thoughts, calls and results are those of the same templates; where a model
// writes more than its template renders of earlier answers, that is said at the form.
#include "traces/import/import_form.h"

#include "base/file.h"
#include "traces/files/gguf.h"
#include "traces/tokenizer/ends.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// --- forms ---------------------------------------------------------------------------------------

// clang-format off
#define THINK {"<think>\n", "\n</think>\n\n"}
#define NO_THOUGHTS "<think>\n\n</think>\n\n"
// clang-format on
#define HERMES                                                                                     \
    .calls = {"\n", "", "\n", ""},                                                                 \
    .call = {"<tool_call>\n{\"name\": \"", "\", \"arguments\": ", "}\n</tool_call>"},              \
    .results = {"<|im_start|>user\n<tool_response>\n", "\n</tool_response>\n<tool_response>\n",    \
                "\n</tool_response><|im_end|>\n"}
static const dsc_chat_form hermes = {HERMES};
static const dsc_chat_form hermes_thinking = {.thoughts = THINK, HERMES, .rules = STRIP_THOUGHTS};
static const dsc_chat_form qwen3 = {
    .thoughts = THINK,
    .begin = {NULL, NO_THOUGHTS},
    HERMES,
    .rules = STRIP_THOUGHTS,
};
static const dsc_chat_form qwen3_thinking = {
    .thoughts = THINK,
    .begin = {"<think>\n", NO_THOUGHTS},
    HERMES,
    .rules = STRIP_THOUGHTS,
};

#define CODER                                                                                      \
    .calls = {"\n\n", "", "\n", ""},                                                               \
    .call = {"<tool_call>\n<function=", ">\n", "</function>\n</tool_call>"}
static const dsc_chat_form coder = {
    CODER,
    .results = {"<|im_start|>user\n<tool_response>\n", "\n</tool_response>\n<tool_response>\n",
                "\n</tool_response>\n<|im_end|>\n"},
    .rules = ARGUMENTS_PARAMETERS,
};
static const dsc_chat_form qwen3_5 = {
    .thoughts = THINK,
    .begin = {"<think>\n", NO_THOUGHTS},
    .none = {NO_THOUGHTS},
    CODER,
    .results = {"<|im_start|>user\n<tool_response>\n", "\n</tool_response>\n<tool_response>\n",
                "\n</tool_response><|im_end|>\n"},
    .rules = ARGUMENTS_PARAMETERS | STRIP_THOUGHTS,
};

#define IPYTHON "<|start_header_id|>ipython<|end_header_id|>\n\n"
static const dsc_chat_form llama = {
    .calls = {"", "", "", ""},
    .call = {"{\"name\": \"", "\", \"parameters\": ", "}"},
    .results = {IPYTHON, "<|eot_id|>" IPYTHON, "<|eot_id|>"},
    .rules = ONE_CALL | CALLS_ALONE | RESULT_QUOTED,
};

// The model writes no ids: the server makes them. Of the results, mistral_common 1.13 is the
// source.
#define MISTRAL(space, before, between, after, rules_)                                             \
    {                                                                                              \
        .calls = {"[TOOL_CALLS]" space "[", "[TOOL_CALLS]" space "[", ", ", "]"},                  \
        .call = {"{\"name\": \"", "\", \"arguments\": ", "}"}, .id = {", \"id\": \"", "\""},       \
        .results = {"", "", ""}, .result = {before, between, after},                               \
        .rules = CALLS_ALONE | CALLS_UNBEGUN | rules_,                                             \
    }
#define MISTRAL_V3(space)                                                                          \
    MISTRAL(space, "[TOOL_RESULTS]" space "{\"content\": ", ", \"call_id\": \"",                   \
            "\"}[/TOOL_RESULTS]", RESULT_ID_LAST | RESULT_JSON)
#define MISTRAL_V7(space)                                                                          \
    MISTRAL(space, "[TOOL_RESULTS]" space, "[TOOL_CONTENT]" space, "[/TOOL_RESULTS]", 0)
static const dsc_chat_form mistral_v3 = MISTRAL_V3(" "), mistral_v3_tekken = MISTRAL_V3("");
static const dsc_chat_form mistral_v7 = MISTRAL_V7(" "), mistral_v7_tekken = MISTRAL_V7("");
static const dsc_chat_form mistral_v11 = {
    .calls = {"[TOOL_CALLS]", "[TOOL_CALLS]", "[TOOL_CALLS]", ""},
    .call = {"", "[ARGS]", ""},
    .id = {"[CALL_ID]", ""},
    .results = {"", "", ""},
    .result = {"[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"},
    .rules = CALLS_ALONE | CALL_ID_FIRST,
};

#define MISTRAL_V13                                                                                \
    .calls = {"[TOOL_CALLS]", "[TOOL_CALLS]", "[TOOL_CALLS]", ""}, .call = {"", "[ARGS]", ""},     \
    .results = {"[TOOL_RESULTS]", "[/TOOL_RESULTS][TOOL_RESULTS]", "[/TOOL_RESULTS]"}
static const dsc_chat_form mistral_v13 = {MISTRAL_V13};
static const dsc_chat_form magistral = {.thoughts = {"[THINK]", "[/THINK]"}, MISTRAL_V13};

// The model ends several calls with the token that the template writes after the second alone.
#define DEEPSEEK_CALLS                                                                             \
    .calls = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"},   \
    .call = {"<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n",                         \
             "\n```<｜tool▁call▁end｜>"},                                                          \
    .results = {"<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>",                                 \
                "<｜tool▁output▁end｜>\n<｜tool▁output▁begin｜>",                                  \
                "<｜tool▁output▁end｜><｜tool▁outputs▁end｜>"},                                    \
    .rules = NO_BEGIN_AFTER_RESULT | STRIP_THOUGHTS
static const dsc_chat_form deepseek = {DEEPSEEK_CALLS};
static const dsc_chat_form deepseek_thinking = {
    .thoughts = THINK, .begin = {"<think>\n", NO_THOUGHTS}, DEEPSEEK_CALLS};

static const dsc_chat_form glm = {
    .thoughts = {"\n<think>", "</think>"},
    .begin = {NULL, "\n<think></think>"},
    .none = {"\n<think></think>", "\n<think></think>"},
    .text = {"\n", ""},
    .calls = {"\n", "\n", "\n", ""},
    .call = {"<tool_call>", "\n", "</tool_call>"},
    .stop = "<|observation|>",
    .results = {"<|observation|>\n<tool_response>\n", "\n</tool_response>\n<tool_response>\n",
                "\n</tool_response>"},
    .rules = ARGUMENTS_KEYS | STRIP_THOUGHTS,
};

// OpenAI's harmony format. A text before a call is a preamble, in the channel of comments.
static const dsc_chat_form harmony = {
    .thoughts = {"<|channel|>analysis<|message|>", "<|end|><|start|>assistant"},
    .text = {"<|channel|>final<|message|>", ""},
    .preamble = {"<|channel|>commentary<|message|>", "<|end|><|start|>assistant"},
    .calls = {"", "", "", ""},
    .call = {"<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "<|call|>"},
    .past_call = {" to=functions.", "<|channel|>commentary json<|message|>", "<|call|>"},
    .results = {"", "", ""},
    .result = {"<|start|>functions.", " to=assistant<|channel|>commentary<|message|>", "<|end|>"},
    .rules = ONE_CALL | CALLS_END | RESULT_QUOTED | RESULT_NAMED,
};

// --- definitions of tools ------------------------------------------------------------------------

#define HERMES_TOOLS                                                                               \
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are "     \
    "provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
static const dsc_chat_tools hermes_tools = {
    .place = TOOLS_IN_SYSTEM,
    .before = HERMES_TOOLS,
    .between = "\n",
    .after = "\n</tools>\n\nFor each function call, return a json object with function name and "
             "arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": "
             "<function-name>, \"arguments\": <args-json-object>}\n</tool_call>",
    .after_system = "\n\n",
};
static const dsc_chat_tools glm_tools = {
    .place = TOOLS_FIRST,
    .before = "<|system|>\n" HERMES_TOOLS,
    .between = "\n",
    .after = "\n</tools>\n\nFor each function call, output the function name and arguments within "
             "the following XML format:\n<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>"
             "\n<arg_value>{arg-value-1}</arg_value>\n<arg_key>{arg-key-2}</arg_key>\n<arg_value>"
             "{arg-value-2}</arg_value>\n...\n</tool_call>",
};
#define LLAMA3_DATES "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
static const dsc_chat_tools llama_tools = {
    .place = TOOLS_IN_FIRST_USER,
    .before = "Given the following functions, please respond with a JSON for a function call with "
              "its proper arguments that best answers the given prompt.\n\nRespond in the format "
              "{\"name\": function name, \"parameters\": dictionary of argument name and its "
              "value}.Do not use variables.\n\n",
    .between = "\n\n",
    .after = "\n\n",
    .system =
        "<|start_header_id|>system<|end_header_id|>\n\nEnvironment: ipython\nCutting Knowledge "
        "Date: December 2023\nToday Date: 26 Jul 2024\n\n",
};
#define AVAILABLE(space)                                                                           \
    {                                                                                              \
        .place = TOOLS_AT_LAST_USER, .before = "[AVAILABLE_TOOLS]" space "[", .between = ", ",     \
        .after = "][/AVAILABLE_TOOLS]",                                                            \
    }
static const dsc_chat_tools mistral_tools = AVAILABLE(" "), mistral_tekken_tools = AVAILABLE("");

// --- templates -----------------------------------------------------------------------------------

#define CHATML_TEXTS                                                                               \
    .system = {"<|im_start|>system\n", "<|im_end|>\n"},                                            \
    .user = {"<|im_start|>user\n", "<|im_end|>\n"},                                                \
    .assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"},                                      \
    .begin_answer = "<|im_start|>assistant\n", .end = "<|im_end|>"
#define CHATML(name_, mark, absent_, system_, flags_, form_, tools_)                               \
    {                                                                                              \
        .name = name_, .marks = {"<|im_start|>", mark},                                            \
        .absent = {"<end_of_utterance>", absent_, "<function="}, CHATML_TEXTS,                     \
        .default_system = system_, .flags = flags_, .form = form_, .tools = tools_                 \
    }
#define QWEN3(name_, form_, tools_, keep, ...)                                                     \
    {                                                                                              \
        .name = name_, .marks = {"<|im_start|>", SPLIT, __VA_ARGS__},                              \
        .absent = {"<end_of_utterance>", "<|vision_start|>"}, CHATML_TEXTS,                        \
        .flags = DROP_THINKING | DROP_LINE_ENDS | keep, .form = form_, .tools = tools_             \
    }
#define SPLIT "content.split('</think>')[-1].lstrip('\\n')"
#define HERMES_CALL "<tool_call>\\n{\"name\": \""
#define THINKING_BEGUN "'<|im_start|>assistant\\n<think>\\n'"
#define LLAMA3(name_, mark, call, system_text, default_, form_, tools_)                            \
    {                                                                                              \
        .name = name_, .marks = {"<|start_header_id|>", "<|eot_id|>", mark, call},                 \
        .system = {"<|start_header_id|>system<|end_header_id|>\n\n" system_text, "<|eot_id|>"},    \
        .user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},                    \
        .assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},          \
        .begin_answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",                       \
        .default_system = default_, .end = "<|eot_id|>", .flags = TRIM, .form = form_,             \
        .tools = tools_                                                                            \
    }
// Later models of this family have a default system prompt with the date of the request, which is
// left out.
#define MISTRAL_V7_TEKKEN(name_, mark, default_, form_, tools_)                                    \
    {                                                                                              \
        .name = name_, .marks = {"[INST]", "[SYSTEM_PROMPT]", mark},                               \
        .system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}, .user = {"[INST]", "[/INST]"},          \
        .assistant = {"", "</s>"}, .begin_answer = "", .default_system = default_, .end = "</s>",  \
        .form = form_, .tools = tools_                                                             \
    }
#define DEEPSEEK(name_, mark, absent_, flags_, form_)                                              \
    {                                                                                              \
        .name = name_, .marks = {"<｜Assistant｜>", "<｜User｜>", mark}, .absent = {absent_},      \
        .system = {"", ""}, .user = {"<｜User｜>", ""},                                            \
        .assistant = {"<｜Assistant｜>", "<｜end▁of▁sentence｜>"},                                 \
        .begin_answer = "<｜Assistant｜>", .end = "<｜end▁of▁sentence｜>", .flags = flags_,        \
        .form = form_                                                                              \
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
    {.name = "qwen3.5",
     .marks = {"<|im_start|>", "<function=example_function_name>",
               "'\\n<think>\\n' + reasoning_content + '"},
     .absent = {"<|im_start|>tool_response"},
     CHATML_TEXTS,
     .form = &qwen3_5,
     .flags = TRIM | DROP_THINKING | DROP_LINE_ENDS | KEEP_RECENT_THOUGHTS},
    {.name = "qwen3-coder",
     .marks = {"<|im_start|>", "<function=example_function_name>"},
     .absent = {"think>"},
     CHATML_TEXTS,
     .system_with_tools = "You are Qwen, a helpful AI assistant that can interact with a computer "
                          "to solve tasks.",
     .form = &coder},
    QWEN3("qwen3-thinking", &qwen3_thinking, &hermes_tools, KEEP_RECENT_THOUGHTS, HERMES_CALL,
          THINKING_BEGUN, "reasoning_content"),
    QWEN3("qwq", &qwen3_thinking, &hermes_tools, 0, HERMES_CALL, THINKING_BEGUN),
    QWEN3("qwen3", &qwen3, &hermes_tools, KEEP_RECENT_THOUGHTS, HERMES_CALL),
    QWEN3("qwen3", NULL, NULL, 0, NULL), // of another model, whose calls are unknown
    CHATML("qwen2.5", "You are Qwen, created by Alibaba Cloud", "think>",
           "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", 0, &hermes,
           &hermes_tools),
    CHATML("qwen2", "You are a helpful assistant", "think>", "You are a helpful assistant.", 0,
           &hermes, NULL),
    CHATML("smollm2", "You are a helpful AI assistant named SmolLM, trained by Hugging Face",
           "think>", "You are a helpful AI assistant named SmolLM, trained by Hugging Face", 0,
           NULL, NULL),
    // The user's word for all others, whose calls are nearly always these; the templates that are
    // recognized show it.
    {.name = "chatml", .form = &hermes_thinking, CHATML_TEXTS},
    CHATML("chatml", "<tool_call>", "think>", NULL, 0, &hermes, NULL),
    CHATML("chatml", NULL, "think>", NULL, 0, NULL, NULL),
    {.name = "mistral-v7",
     .marks = {"[INST]", "[SYSTEM_PROMPT] "},
     .system = {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"},
     .user = {"[INST] ", "[/INST]"},
     .assistant = {" ", "</s>"},
     .begin_answer = "",
     .end = "</s>",
     .form = &mistral_v7,
     .tools = &mistral_tools},
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
        "\"When is the next flight to Tokyo\" => \"Where do you travel from?\")",
        &mistral_v7_tekken, &mistral_tekken_tools),
    MISTRAL_V7_TEKKEN("mistral-v11-tekken", "[CALL_ID]", NULL, &mistral_v11, &mistral_tekken_tools),
    MISTRAL_V7_TEKKEN("magistral", "'[THINK]'", NULL, &magistral, &mistral_tekken_tools),
    MISTRAL_V7_TEKKEN("mistral-v13-tekken", "[ARGS]", NULL, &mistral_v13, &mistral_tekken_tools),
    MISTRAL_V7_TEKKEN("mistral-v7-tekken", NULL, NULL, &mistral_v7_tekken, &mistral_tekken_tools),
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
     .form = &mistral_v3_tekken,
     .tools = &mistral_tekken_tools,
     .flags = IN_LAST_USER},
    {.name = "mistral-v3",
     .marks = {"[AVAILABLE_TOOLS]", "[INST]"},
     .system = {"", "\n\n"},
     .user = {"[INST] ", "[/INST]"},
     .assistant = {" ", "</s>"},
     .begin_answer = "",
     .end = "</s>",
     .form = &mistral_v3,
     .tools = &mistral_tools,
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
    LLAMA3("llama3.1", "Cutting Knowledge Date", "\"parameters\": ", LLAMA3_DATES, "", &llama,
           &llama_tools),
    LLAMA3("llama3.1", "Cutting Knowledge Date", NULL, LLAMA3_DATES, "", NULL, NULL),
    LLAMA3("llama3", NULL, NULL, "", NULL, NULL, NULL),
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
    DEEPSEEK("deepseek-r1", "<think>", "thinking", DROP_THINKING, &deepseek_thinking),
    DEEPSEEK("deepseek3", NULL, "thinking", 0, &deepseek),
    {.name = "deepseek2",
     .marks = {"'User: '", "'Assistant: ' + message['content'] + eos_token"},
     .system = {"", "\n\n"},
     .user = {"User: ", "\n\n"},
     .assistant = {"Assistant: ", "<｜end▁of▁sentence｜>"},
     .begin_answer = "Assistant:",
     .end = "<｜end▁of▁sentence｜>"},
    {.name = "glm4.5",
     .marks = {"[gMASK]<sop>", "<arg_key>", "<|observation|>", "<|user|>\n"},
     .begin = "[gMASK]<sop>",
     .system = {"<|system|>\n", ""},
     .user = {"<|user|>\n", ""},
     .assistant = {"<|assistant|>", ""},
     .begin_answer = "<|assistant|>",
     .end = "<|user|>",
     .form = &glm,
     .tools = &glm_tools,
     .flags = TRIM_ASSISTANT | DROP_THINKING | DROP_LINE_ENDS | KEEP_RECENT_THOUGHTS},
    // Its system message has the date of the request, a line that is left out.
    {.name = "gpt-oss",
     .marks = {"<|start|>", "<|channel|>analysis<|message|>", "# Valid channels:"},
     .begin =
         "<|start|>system<|message|>You are ChatGPT, a large language model trained by "
         "OpenAI.\nKnowledge cutoff: 2024-06\n\nReasoning: medium\n\n# Valid channels: analysis, "
         "commentary, final. Channel must be included for every message.<|end|>",
     .system = {"<|start|>developer<|message|># Instructions\n\n", "\n\n<|end|>"},
     .user = {"<|start|>user<|message|>", "<|end|>"},
     .assistant = {"<|start|>assistant", "<|end|>"},
     .begin_answer = "<|start|>assistant",
     .end = "<|return|>",
     .form = &harmony,
     .flags = KEEP_RECENT_THOUGHTS},
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
     .tool = {"tool: ", "\n"},
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
    const char *known = t->default_system ? t->default_system : t->system_with_tools;
    const size_t length = known ? strlen(known) : 0;
    while ((jinja = strstr(jinja, begin)) != NULL) {
        jinja += sizeof begin - 1;
        const size_t line_end = *jinja == '\n' ? 1 : !strncmp(jinja, "\\n", 2) ? 2 : 0;
        const char *text = jinja + line_end;
        const bool spelled = line_end && *text && !strchr("'\"{", *text);
        if (spelled && (!length || strncmp(text, known, length) != 0 ||
                        (t->default_system && strncmp(text + length, "<|im_end|>", 10) != 0)))
            return false;
    }
    return true;
}

const dsc_chat_template *dsc_chat_template_recognize(const char *jinja)
{
    for (const dsc_chat_template *t = templates; t < templates + TEMPLATES; t++) {
        bool fits = t->marks[0];
        for (int m = 0; m < 3 && fits && t->absent[m]; m++)
            fits = !strstr(jinja, t->absent[m]);
        for (int m = 0; m < 5 && fits && t->marks[m]; m++)
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
