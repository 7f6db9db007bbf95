# SPDX-License-Identifier: Apache-2.0
"""Writes the small tokenizers of this folder and golden.jsonl, the results of the Hugging Face
`tokenizers` library (0.23.3) with which tests/unit/test_tokenizer.c compares ours.

    python make.py QUESTIONS.jsonl      (Spec-Bench, hemingkx/Spec-Bench, Apache-2.0)

Not needed to build or to test.
"""
import json
import os
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders as D, models, normalizers as N
from tokenizers import pre_tokenizers as P, processors as PP, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
BYTES = ["<0x%02X>" % b for b in range(256)]
PLAIN = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)


def byte_level(texts, pattern, special, **model):
    t = Tokenizer(models.BPE(**model))
    t.pre_tokenizer = P.Sequence([P.Split(Regex(pattern), "isolated"),
                                  P.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = D.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=P.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s in special])
    return t


def sentencepiece(texts, normalizer, pre_tokenizer, decoder):
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.pre_tokenizer = P.Metaspace()
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=700, limit_alphabet=90, show_progress=False,
        special_tokens=["<unk>", "<s>", "</s>"] + BYTES))
    d = json.loads(t.to_str())
    d["model"].update(fuse_unk=True, byte_fallback=True)
    d["added_tokens"] = [dict(PLAIN, id=i, content=c) for i, c in enumerate(["<unk>", "<s>", "</s>"])]
    t = Tokenizer.from_str(json.dumps(d))
    if normalizer:
        t.normalizer = normalizer
    if pre_tokenizer:
        t.pre_tokenizer = pre_tokenizer
    else:
        d = json.loads(t.to_str())
        d["pre_tokenizer"] = None
        t = Tokenizer.from_str(json.dumps(d))
    t.decoder = decoder
    return t


def build(texts):
    spaces = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    llama3 = byte_level(texts, LLAMA3, ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"],
                        ignore_merges=True)
    bos = llama3.token_to_id("<|begin_of_text|>")
    llama3.post_processor = PP.Sequence([
        PP.ByteLevel(trim_offsets=False),
        PP.TemplateProcessing(single="<|begin_of_text|> $A", pair="$A $B",
                              special_tokens=[("<|begin_of_text|>", bos)])])
    qwen2 = byte_level(texts, QWEN2, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    qwen2.normalizer = N.NFC()
    qwen2.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("café")])
    mistral = sentencepiece(texts, None, P.Metaspace(prepend_scheme="first", split=False), spaces)
    mistral.post_processor = PP.TemplateProcessing(
        single="<s> $A </s>", pair="$A $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    added = sentencepiece(texts, N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), None, spaces)
    added.add_tokens([
        AddedToken("<mask>", lstrip=True, normalized=False, special=True),
        AddedToken("<sep>", rstrip=True, normalized=False),
        AddedToken("<both>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("<se", normalized=False),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("two words", single_word=True), AddedToken("Norm")])
    return {"llama3-style": llama3, "qwen2-style": qwen2, "mistral-style": mistral,
            "added-kinds": added}


FIXED = [
    "", " ", "  ", "\t\n", "\r\n\r\n", "Hello world", " Hello  world ", "I've we'LL don't 'S",
    "1 12 123 1234 12345", "x=y; a[i] += 1;\n\treturn 0;\n\n\n", "naïve café cafe\u0301 ﬁ",
    "привет, мир! 你好，世界。 ภาษา ไทย", "😀👍🏽 e\u0301\u0327 \u200d\ufeff\u180e\u2003x",
    "▁▁lower one▁eighth <0x41><unk>", "a<s>b </s>c", "x  <mask>  y<mask>", "x  <sep>  y<se <sep",
    "a  <both>  b <both><both>", "word words sword word. _word wordé ", "two words, two  words",
    "Norm NormNorm  Norm", "<|begin_of_text|>hi<|eot_id|> <|im_start|>user\n<tool_call>",
    "\u0000\u0001\u007f\u00ad\u0085\u00a0", "e" * 100, "the the the " * 9 + "\n" * 5,
    "ſ'ſ K\u212a 'ſt", "½²Ⅷ٣", "zzzzqqqq" + "🀄" * 3,
]


def fuzz(rng, count):
    assigned = [chr(c) for c in range(0x2FFFF) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
                and not 0x10780 <= c <= 0x107BA]
    pool = FIXED[4:] + list(" \t\n\r\u00a0\u3000.,'") * 3
    for _ in range(count):
        yield "".join(rng.choice(pool) if rng.random() < 0.5 else "".join(rng.sample(assigned, 2))
                      for _ in range(rng.randint(1, 5)))[:120]


def main():
    texts = []
    with open(sys.argv[1], encoding="utf-8") as f:
        for line in f:
            texts += json.loads(line)["turns"]
    texts = texts[:300] + ["C'est l'été, où ça?", "привет мир", "你好世界", "12345 3.14"] * 30
    rng = random.Random(1)
    with open(os.path.join(HERE, "golden.jsonl"), "w", encoding="utf-8") as out:
        for name, t in build(texts).items():
            text = json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":"))
            with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as f:
                f.write(text + "\n")
            for s in FIXED + list(fuzz(rng, 20)):
                ids = t.encode(s, add_special_tokens=False).ids
                row = dict(tokenizer=name, text=s, ids=ids,
                           special=t.encode(s).ids[:3] + t.encode(s).ids[-2:],
                           decoded=t.decode(ids, skip_special_tokens=False),
                           skipped=t.decode(ids, skip_special_tokens=True))
                for key in ("decoded", "skipped"):  # absent: equal to the text
                    if row[key] == s:
                        del row[key]
                out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
