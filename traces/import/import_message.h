// SPDX-License-Identifier: Apache-2.0
// Messages of chats, as the APIs of servers write them: OpenAI's chats and responses, Anthropic's
// messages, ShareGPT's files. A server takes what a model wrote apart: thoughts, text and calls of
// tools become fields or blocks of their own. Here they become one message again.
#ifndef DSC_TRACES_IMPORT_MESSAGE_H
#define DSC_TRACES_IMPORT_MESSAGE_H

#include "traces/import/import_template.h"

// A conversation. The texts of messages are views into the JSON that was read, or into `owned`.
typedef struct dsc_chat {
    dsc_chat_message *message; // [count]
    size_t count, capacity;
    size_t answers;        // assistant messages
    json_t *owned;         // texts that were joined, arguments that were parsed
    dsc_chat_call **calls; // [call_lists] those of the messages
    size_t call_lists, call_capacity;
} dsc_chat;

// Zero-initialize a chat. These append to it; what a message has and a text cannot hold is noted in
// its `lost`. DSC_EINPUT: a field is missing or of a wrong type; the message names it.

// The first `count` elements of a list of messages, or of the items of OpenAI's Responses API:
//   {"role" or "from", "content" or "value": text or a list of parts}
//   {"role": "assistant", "reasoning_content", "reasoning" or "thinking", "content" (may be null),
//    "refusal", "tool_calls": [{"id", "function": {"name", "arguments"}}], "function_call"}
//   {"role": "tool", "tool_call_id", "content"}
//   {"type": "reasoning", "message", "function_call" or "function_call_output", ...}
// Parts: text, input_text, output_text, refusal, thinking, reasoning_text, tool_use, tool_result,
// or strings; others are lost.
int dsc_chat_read(dsc_chat *c, const json_t *list, size_t count, dsc_error *err);
// A text, or a list of parts, as a message of the system.
int dsc_chat_read_system(dsc_chat *c, const json_t *content, dsc_error *err);
// One answer; `where` names it in messages.
int dsc_chat_read_answer(dsc_chat *c, const json_t *message, const char *where, dsc_error *err);

void dsc_chat_fini(dsc_chat *c);

#endif
