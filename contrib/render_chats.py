#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders chats and questions with a model's own chat template (Jinja), for templates that
draftscope does not recognize. Requires jinja2 only.

    python3 contrib/render_chats.py MODEL_FOLDER chats.jsonl >prompts.jsonl
    draftscope live run --target MODEL_FOLDER --method ngram --prompts prompts.jsonl

Reads the lines that `draftscope live run --prompts` reads: messages, conversations, prompt, turns,
instruction, question or query, plain or gzip, with tools and chat_template_kwargs of the request.
Writes {"prompt": {"text": ..., "add_special_tokens": false}} with the id, references and, where the
chat ends with an answer, the output, so that `draftscope trace import` can read the result as well.
The environment is that of transformers (apply_chat_template).

The output is what the template renders after the prompt, without the EOS: reasoning and tool calls
as the model writes them. An answer is refused if the template does not show all of it there.
"""
import argparse
import datetime
import gzip
import json
import os
import signal
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "function": "tool"}
REASONING = ("reasoning_content", "reasoning", "thinking")
MARK = "\ue000answer\ue001"  # a text that no chat contains
QUESTIONS = ("instruction", "question", "query")
IDS = ("id", "task_id", "question_id", "custom_id", "request_id", "conversation_id")


def fail(message):
    sys.exit(f"render_chats: {message}")


class Generation(jinja2.ext.Extension):
    """The block {% generation %} of transformers, which renders its body."""
    tags = {"generation"}

    def parse(self, parser):
        parser.stream.skip(1)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


def load_json(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def load_template(folder):
    """The template, the special tokens that it may name, and the texts of all EOS tokens."""
    config, tokens = load_json(folder, "tokenizer_config.json"), {}
    for name, value in config.items():
        value = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(value, str):
            tokens[name] = value
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            text = f.read()
    else:
        text = config.get("chat_template")
        if isinstance(text, list):
            text = next((t["template"] for t in text if t["name"] == "default"), None)
    if not text:
        fail(f"{folder}: neither chat_template.jinja nor 'chat_template' in tokenizer_config.json")
    eos = load_json(folder, "generation_config.json").get("eos_token_id")
    added = config.get("added_tokens_decoder", {})
    eos = [added[str(e)]["content"] for e in (eos if isinstance(eos, list) else [eos])
           if str(e) in added] + [v for k, v in tokens.items() if k == "eos_token" and v]
    return environment().from_string(text), tokens, eos


def find(line, *names):
    """The first of these fields that the line or its request has, or None."""
    request = line.get("request")
    places = [line, request, line.get("body"), isinstance(request, dict) and request.get("body")]
    return next((o[k] for o in places if isinstance(o, dict) for k in names if o.get(k)), None)


def tools_of(line):
    tools, functions = (json.loads(v) if isinstance(v, str) else v
                        for v in (find(line, "tools"), find(line, "functions")))
    return tools or [{"type": "function", "function": f} for f in functions or []] or None


# --- messages, as vLLM hands them to a template ---------------------------------------------------

def text_of(content):
    """A message's content, or the joined texts of its parts."""
    if not isinstance(content, list):
        return content
    parts = [{"text": part} if isinstance(part, str) else part for part in content]
    for kind in (part.get("type", "text") for part in parts):
        if kind not in ("text", "input_text", "output_text"):
            raise ValueError(f"a part of a message is of type {kind}, which is not rendered")
    return "".join(part["text"] for part in parts)


def read_call(call):
    """A tool call with its arguments as an object. Some files lack the level `function`."""
    function = call.get("function", call)
    for field in ("name", "arguments"):
        if function.get(field) is None:
            raise ValueError(f"a tool call without {field}")
    arguments = function["arguments"]
    try:
        arguments = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except ValueError as e:
        raise ValueError(f"the arguments of a tool call are not JSON: {e}") from e
    return {**call, "type": "function", "function": {**function, "arguments": arguments}}


def read_message(message):
    m = {k: v for k, v in message.items() if v is not None and k not in REASONING}
    m["role"] = m.get("role", m.get("from"))
    m["role"] = ROLES.get(m["role"], m["role"])
    # Templates read the reasoning under one of these names; some take an empty field for one.
    reasoning = next((message[k] for k in REASONING if message.get(k)), "")
    m.update((k, reasoning) for k in REASONING if reasoning)
    calls, call = m.pop("tool_calls", None), m.pop("function_call", None)
    if calls or call:
        m["tool_calls"] = [read_call(c) for c in calls or [{"function": call}]]
    m["content"] = text_of(m.get("content", m.get("value")))
    if m["content"] is None and (reasoning or calls or call or m["role"] == "tool"):
        m["content"] = ""
    if not isinstance(m["content"], str) or not isinstance(reasoning, str):
        raise ValueError(f"a message of role {m['role']} without a text as its content")
    for name in ("refusal", "audio"):
        if m.get(name):
            raise ValueError(f"a message has the field {name}, which is not rendered")
    return m


def answer_beside(line):
    """The answer next to the messages as a message, or None."""
    value = next((line[k] for k in ("output", "response", "completion")
                  if isinstance(line.get(k), (str, dict))), None)
    if isinstance(value, dict):
        choices = value.get("choices") or [value]
        if len(choices) != 1:
            raise ValueError(f"the response has {len(choices)} choices, not one")
        value = choices[0].get("message") or choices[0]
        return read_message({"content": value.get("text"), **value, "role": "assistant"})
    more = {k: line[k] for k in (*REASONING, "tool_calls")
            if line.get(k) and isinstance(line[k], (str, list))}
    whole = {"role": "assistant", "content": value, **more}
    return None if value is None and not more else read_message(whole)


def messages_of(line):
    """The messages of a line, and its answer, a message or None."""
    chat = find(line, "messages", "conversations")
    if chat is None and isinstance(line.get("prompt"), list):
        chat = line["prompt"]
    if chat is None:
        text = line.get("prompt")
        if text is None and line.get("turns"):
            text = line["turns"][0]
        for name in QUESTIONS:
            text = line.get(name) if text is None else text
        if not isinstance(text, str):
            raise ValueError("no messages, prompt, turns, instruction, question or query")
        if line.get("instruction") == text and line.get("input"):
            text += "\n" + line["input"]
        chat = [{"role": "user", "content": text}]
    chat = [read_message(m) for m in chat]
    answer = chat.pop() if chat and chat[-1]["role"] == "assistant" else answer_beside(line)
    if all(m["role"] == "assistant" for m in chat):
        raise ValueError("no user message to answer")
    return chat, answer


# --- rendering ------------------------------------------------------------------------------------

def prompt_of(chat, render):
    """The prompt, and its messages. A template without the role `developer` raises or leaves the
    message out: it is then one of role `system`."""
    system = [{**m, "role": "system"} if m["role"] == "developer" else m for m in chat]
    try:
        text = render(chat, True)
        if all(m["content"].strip() in text for m in chat if m["role"] == "developer"):
            return text, chat
    except jinja2.exceptions.TemplateError:
        if system == chat:
            raise
    return render(system, True), system


def strings(value):
    """The strings in a value, at any depth."""
    if not isinstance(value, (dict, list)):
        return [value] if isinstance(value, str) else []
    return [s for v in (value.values() if isinstance(value, dict) else value) for s in strings(v)]


def has_all(output, answer):
    """Whether the output has all texts of the answer, each at a place of its own."""
    calls = [call["function"] for call in answer.get("tool_calls", [])]
    for text in strings([answer.get("reasoning_content", ""), answer["content"],
                         *([call["name"], call["arguments"]] for call in calls)]):
        forms = [text.strip(), *(json.dumps(text, ensure_ascii=a)[1:-1] for a in (False, True))]
        form = next((f for f in forms if f in output), None)
        if form is None:
            return False
        output = output.replace(form, "\0", 1)
    return True


def output_of(chat, answer, prompt, render, eos):
    """What the template renders after the prompt, without the end of the turn."""
    plain = not answer.get("tool_calls") and not answer.get("reasoning_content")
    try:
        whole = render([*chat, answer], False)
        marked = render([*chat, {"role": "assistant", "content": MARK}], False)
    except jinja2.exceptions.TemplateError:
        if not plain:
            raise
        whole = marked = ""
    output = whole[len(prompt):]
    # The turn ends as one with a plain answer does, from its EOS on, or with another EOS.
    end = marked.partition(MARK)[2]
    ends = [end[end.find(e):] for e in eos if e in end] or [end]
    ends += [e + newline for e in eos for newline in ("\n", "")]
    output = next((output[:-len(e)] for e in ends if e and output.endswith(e)), output)
    is_shown = answer["content"] in output if plain else has_all(output, answer)
    if whole.startswith(prompt) and is_shown:
        return output
    if not plain:
        raise ValueError("the template does not show how the model writes this answer (reasoning "
                         "or tool calls)")
    return answer["content"]


def render_line(line, template, tokens, eos):
    chat, answer = messages_of(line)
    given = {**tokens, **(find(line, "chat_template_kwargs") or {}), "tools": tools_of(line)}

    def render(messages, prompt):
        return template.render(messages=messages, add_generation_prompt=prompt, **given)

    text, chat = prompt_of(chat, render)
    ids = [line[name] for name in IDS if isinstance(line.get(name), (str, int))]
    out = {"id": ids[0]} if ids else {}
    out["prompt"] = {"text": text, "add_special_tokens": False}
    if answer:
        out["output"] = output_of(chat, answer, text, render, eos)
    if isinstance(line.get("references"), list):
        out["references"] = line["references"]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the model's folder, or its tokenizer.json")
    parser.add_argument("file", help="JSON lines, plain or .gz; - is standard input")
    parser.add_argument("--timeout", type=int, default=60, metavar="S",
                        help="seconds that one line may take (default 60)")
    args = parser.parse_args()
    folder = args.folder if os.path.isdir(args.folder) else os.path.dirname(args.folder) or "."
    template, tokens, eos = load_template(folder)

    def late(*_):
        raise TimeoutError(f"the template takes more than {args.timeout} s")

    signal.signal(signal.SIGALRM, late)
    if args.file == "-":
        lines = sys.stdin
    else:
        with open(args.file, "rb") as f:
            zipped = f.read(2) == b"\x1f\x8b"
        lines = (gzip.open if zipped else open)(args.file, "rt", encoding="utf-8")
    with lines:
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            signal.alarm(args.timeout)
            try:
                out = render_line(json.loads(text), template, tokens, eos)
            except (ValueError, LookupError, TypeError, AttributeError, TimeoutError,
                    jinja2.exceptions.TemplateError) as e:
                fail(f"{args.file}:{number}: {e}")
            signal.alarm(0)
            print(json.dumps(out, ensure_ascii=False))


if __name__ == "__main__":
    try:
        main()
    except (OSError, jinja2.exceptions.TemplateError) as e:
        fail(e)
