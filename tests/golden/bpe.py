# SPDX-License-Identifier: Apache-2.0
"""A plain byte-level BPE encoder for traces/sample/tokenizer.json.

It follows GPT-2 (Radford et al. 2019): split the text into words, map every byte to a printable
character, then merge the adjacent pair of lowest rank until no pair has a rank.
"""
import json
import unicodedata

CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def byte_characters():
    """Returns GPT-2's printable character for each of the 256 bytes."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    table = {b: chr(b) for b in printable}
    table.update({b: chr(256 + i) for i, b in enumerate(others)})
    return table


def kind(c):
    """Returns the class of a character in GPT-2's pattern."""
    if c.isspace():
        return "space"
    category = unicodedata.category(c)[0]
    return {"L": "letter", "N": "number"}.get(category, "other")


def split(text):
    """Splits by GPT-2's pattern: 's|'t|...| ?letters| ?numbers| ?others|spaces before a
    space|spaces."""
    words, at = [], 0
    while at < len(text):
        short = next((c for c in CONTRACTIONS if text.startswith(c, at)), None)
        if short:
            end = at + len(short)
        else:
            first = at + (text[at] == " " and at + 1 < len(text) and kind(text[at + 1]) != "space")
            end = first + 1
            while end < len(text) and kind(text[end]) == kind(text[first]):
                end += 1
            # The last of several spaces belongs to the word that follows.
            if kind(text[first]) == "space" and end < len(text) and end - at > 1:
                end -= 1
        words.append(text[at:end])
        at = end
    return words


class Tokenizer:
    def __init__(self, path):
        model = json.load(open(path, encoding="utf-8"))["model"]
        self.id = model["vocab"]
        self.rank = {tuple(pair.split(" ")): r for r, pair in enumerate(model["merges"])}
        self.character = byte_characters()
        self.eos = self.id["</s>"]

    def word(self, text):
        pieces = [self.character[b] for b in text.encode("utf-8")]
        while True:
            ranks = [self.rank.get(pair, 1 << 30) for pair in zip(pieces, pieces[1:])]
            if not ranks or min(ranks) == 1 << 30:
                return [self.id[p] for p in pieces]
            i = ranks.index(min(ranks))
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]

    def encode(self, text):
        return [token for word in split(text) for token in self.word(word)]
