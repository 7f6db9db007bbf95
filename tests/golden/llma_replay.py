#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/sample.tsv: LLMA replay of the bundled sample by a second, plain program.

Needs `pip install tokenizers`; not needed to build or test. Usage: llma_replay.py TOP > sample.tsv
"""
import json
import sys

from tokenizers import Tokenizer

top = sys.argv[1] if len(sys.argv) > 1 else "."
tokenizer = Tokenizer.from_file(f"{top}/traces/sample/tokenizer.json")
EOS = tokenizer.token_to_id("</s>")


def encode(text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def load(name):
    """Yields (prompt, output, documents, turns) as token lists."""
    for line in open(f"{top}/traces/sample/{name}.jsonl", encoding="utf-8"):
        r = json.loads(line)
        if "docs" in r:  # the LLMA authors' format and prompt template
            prompt = "docs:\n" + "\n".join(r["docs"]) + "\nquery: " + r["query"] + "\nanswer:"
            yield encode(prompt), encode(r["result"]["text"]) + [EOS], [encode(d) for d in r["docs"]], []
        else:
            docs, turns = [], []
            for t in r["references"]:
                kind, text = ("document", t) if isinstance(t, str) else (t["kind"], t["text"])
                (turns if kind == "turn" else docs).append(encode(text))
            yield encode(r["prompt"]), encode(r["output"]) + [EOS], docs, turns


def replay(output, references, n, copied, longest=5):
    """Target calls, drafts, draft tokens, accepted tokens of one request."""
    longest = max(longest, n)
    first = {}
    for r, tokens in enumerate(references):
        for length in range(n, longest + 1):
            for p in range(len(tokens) - length + 1):
                first.setdefault(tuple(tokens[p : p + length]), (r, p + length))
    calls = drafts = draft_tokens = accepted = i = 0
    while i < len(output):
        calls += 1
        a = 0
        for length in range(min(longest, i), n - 1, -1):
            at = first.get(tuple(output[i - length : i]))
            if at:
                copy = references[at[0]][at[1] : at[1] + copied]
                drafts += 1
                draft_tokens += len(copy)
                while a < len(copy) and i + a < len(output) - 1 and copy[a] == output[i + a]:
                    a += 1
                break
        accepted += a
        i += a + 1
    return calls, drafts, draft_tokens, accepted


def main():
    print("# Replay of traces/sample by tests/golden/llma_replay.py, totals over requests")
    print("set", "references", "semantics", "n", "k", "requests", "prompt_tokens", "output_tokens",
          "target_calls", "num_drafts", "num_draft_tokens", "num_accepted_tokens", sep="\t")
    for name, which in (("rag", "docs"), ("rag", "prompt"), ("cache", "docs"), ("edits", "turns"),
                        ("edits", "all")):
        rows = list(load(name))
        for semantics in ("paper", "code"):
            for n, k in ((1, 1), (1, 4), (1, 18), (2, 8), (3, 18), (5, 32), (8, 18)):
                totals = [0] * 4
                for prompt, output, docs, turns in rows:
                    refs = {"docs": docs, "turns": turns, "prompt": [prompt],
                            "all": docs + turns + [prompt]}[which]
                    counts = replay(output, refs, n, k - (semantics == "code"))
                    totals = [x + y for x, y in zip(totals, counts)]
                print(name, which, semantics, n, k, len(rows), sum(len(r[0]) for r in rows),
                      sum(len(r[1]) for r in rows), *totals, sep="\t")


main()
