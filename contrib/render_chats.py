#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders chats and questions with a model's own chat template (Jinja), for templates that
draftscope does not recognize. Requires jinja2 only.

    python3 contrib/render_chats.py MODEL_FOLDER chats.jsonl >prompts.jsonl
    draftscope live run --target MODEL_FOLDER --method ngram --prompts prompts.jsonl

Reads the lines that `draftscope live run --prompts` reads: messages, conversations, prompt, turns,
instruction, question or query, plain or gzip. Writes {"prompt": {"text": ..., "add_special_tokens":
false}} with the id, references and, where the chat ends with an answer, the output, so that
`draftscope trace import` can read the result as well. The environment is that of transformers
(apply_chat_template).
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

ROLES = {"human": "user", "gpt": "assistant", "model": "assistant"}
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


def load_template(folder):
    """The template and the special tokens that it may name."""
    config, path = {}, os.path.join(folder, "tokenizer_config.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
    tokens = {}
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
    return environment().from_string(text), tokens


def messages_of(line):
    """The messages of a line, and its answer or None."""
    inside = [line, line.get("request") or {}, line.get("body") or {}]
    chat = next((o[k] for o in inside for k in ("messages", "conversations") if o.get(k)), None)
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
    chat = [{**m, "role": ROLES.get(m.get("role", m.get("from")), m.get("role", m.get("from"))),
             "content": m.get("content", m.get("value"))} for m in chat]
    answer = next((line[k] for k in ("output", "response", "completion")
                   if isinstance(line.get(k), str)), None)
    while chat and chat[-1]["role"] == "assistant":
        answer = chat.pop()["content"]
    if not chat:
        raise ValueError("no user message to answer")
    return chat, answer


def render(line, template, tokens):
    chat, answer = messages_of(line)
    text = template.render(messages=chat, add_generation_prompt=True, **tokens)
    ids = [line[name] for name in IDS if isinstance(line.get(name), (str, int))]
    out = {"id": ids[0]} if ids else {}
    out["prompt"] = {"text": text, "add_special_tokens": False}
    if isinstance(answer, str):
        out["output"] = answer
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
    template, tokens = load_template(folder)

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
                out = render(json.loads(text), template, tokens)
            except (ValueError, KeyError, TypeError, AttributeError, TimeoutError,
                    jinja2.exceptions.TemplateError) as e:
                fail(f"{args.file}:{number}: {e}")
            signal.alarm(0)
            print(json.dumps(out, ensure_ascii=False))


if __name__ == "__main__":
    try:
        main()
    except (OSError, jinja2.exceptions.TemplateError) as e:
        fail(e)
