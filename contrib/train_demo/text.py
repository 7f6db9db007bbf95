# SPDX-License-Identifier: Apache-2.0
"""Training text of the demo models: GSM8K problems as documents, byte-level BPE, packing."""
import collections
import json
import re

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

BOS, EOS = "<s>", "</s>"
BOS_ID, EOS_ID = 0, 1  # the trainer numbers special tokens in order


def problems(path):
    """Returns (prompt, answer) of every problem; the answer begins with the space after
    "Answer:"."""
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return [(f"Question: {row['question'].strip()}\nAnswer:", f" {row['answer'].strip()}")
            for row in rows]


def train_tokenizer(texts, vocab):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=[BOS, EOS], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))  # every byte has a token
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B",
        special_tokens=[(BOS, tokenizer.token_to_id(BOS))])
    return tokenizer


def encode(tokenizer, rows):
    """Returns one 1-D tensor per problem: <s> prompt answer </s>."""
    out = tokenizer.encode_batch([prompt + answer for prompt, answer in rows])
    return [torch.tensor(e.ids + [EOS_ID]) for e in out]


def batches(documents, sequences, length, seed):
    """Yields batches [sequences, length] without end, packed, in a new order every epoch."""
    generator = torch.Generator().manual_seed(seed)
    left = torch.empty(0, dtype=torch.long)
    need = sequences * length
    while True:
        order = torch.randperm(len(documents), generator=generator).tolist()
        left = torch.cat([left] + [documents[i] for i in order])
        while len(left) >= need:
            yield left[:need].view(sequences, length)
            left = left[need:]


def write_prompts(folder, train, test):
    """Writes prompts.jsonl (test problems), problems.jsonl (240 other ones) and references.jsonl:
    the eight test problems that share the most 4-grams of words with two training problems, each
    with the solutions of those two as references."""
    def runs(row):
        words = re.findall(r"\w+", row[0] + row[1])
        return {tuple(words[i:i + 4]) for i in range(len(words) - 3)}

    def write(name, rows):
        with open(folder / name, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    few = test[::len(test) // 16 or 1][:16]
    write("prompts.jsonl", [{"prompt": p} for p, _ in few])
    others = [row for row in test[2::5] if row not in few]
    write("problems.jsonl", [{"prompt": p} for p, _ in others[:240]])
    where, best = collections.defaultdict(list), []
    for i, row in enumerate(train):
        for run in runs(row):
            where[run].append(i)
    for row in test:
        mine = runs(row)
        near = collections.Counter(i for run in mine for i in where.get(run, ())).most_common(2)
        if len(near) == 2:
            share = sum(count for _, count in near) / len(mine)
            best.append((share, row[0], ["".join(train[i]) for i, _ in near]))
    best.sort(key=lambda entry: -entry[0])
    write("references.jsonl", [{"prompt": p, "references": texts} for _, p, texts in best[:8]])
