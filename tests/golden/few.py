#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes few.jsonl: texts of few different tokens that repeat stretches of themselves, so that
there is always something to find, and ties. Usage: few.py > tests/golden/few.jsonl"""
import json
import random

END = 1  # the EOS token, in some prompts; no output contains it


def text(draw, length, vocabulary, copies):
    words = []
    while len(words) < length:
        if words and copies:
            start = draw.randrange(len(words))
            for j in range(start, start + draw.randrange(20)):
                words.append(words[j])
        words.append(2 + draw.randrange(vocabulary))
    return words[:length]


def main():
    draw = random.Random(1)
    for i in range(60):
        vocabulary = 2 + draw.randrange(30) if i % 2 else 2
        words = text(draw, draw.randrange(2, 150) if i % 20 else 600, vocabulary, i % 3)
        at = draw.randrange(1, min(40, len(words)))
        prompt, output = words[:at], words[at:]
        if i % 4 == 3:
            prompt[draw.randrange(at)] = END
        references = []
        for is_turn in (False, False, True):
            start = draw.randrange(len(output))
            tokens = output[start : start + 30] + text(draw, 10, vocabulary, True)
            references.append({"tokens": tokens, "kind": "turn"} if is_turn else tokens)
        print(json.dumps({"prompt": prompt, "output": output, "references": references}))


main()
