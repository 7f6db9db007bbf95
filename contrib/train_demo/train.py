#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the demo models of live/demo/ on GSM8K and evaluates them on its test problems."""
import argparse
import pathlib

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

import eagle3
import evaluate
import heads
import language
import text

STAGES = "tokenizer", "target", "draft", "eagle", "eagle3", "medusa", "prompts", "report"
SEQUENCES, TOKENS = 1, 512  # shape of a batch
PLAN = {"target": (4500, 3e-3), "draft": (1500, 4e-3), "eagle": (800, 2e-3),
        "eagle3": (800, 3e-3), "medusa": (700, 1e-3)}  # steps, rate


def load(folder):
    """Loads stored bf16 weights as float32, so that each stage builds on the shipped weights."""
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval().requires_grad_(False)


def learn(stage, args, tokenizer, documents):
    torch.manual_seed(args.seed)
    if stage == "target":
        model = LlamaForCausalLM(LlamaConfig(**language.TARGET))
        run = torch.compile(model) if args.compile else model

        def loss(ids):
            return language.text_loss(language.logits_of(run, ids), ids)
    else:
        target = load(args.out / "target")
        if stage == "draft":
            model, loss_of = LlamaForCausalLM(LlamaConfig(**language.DRAFT)), language.draft_loss
        elif stage == "eagle":
            model, loss_of = heads.Eagle(), heads.eagle_loss
        elif stage == "eagle3":
            model, loss_of = eagle3.Eagle3(), eagle3.eagle3_loss
            model.begin(target, documents)
        else:
            model, loss_of = heads.Medusa(target.lm_head.weight), heads.medusa_loss

        def loss(ids):
            return loss_of(model, target, ids)

    def save():
        if stage in ("target", "draft"):
            language.save_model(model, tokenizer, args.out / stage)
        elif stage == "eagle3":
            eagle3.save_eagle3(model, args.out / stage)
        else:
            heads.save_head(model, args.out / stage)

    stream = text.batches(documents, SEQUENCES, TOKENS, args.seed)
    steps, rate = PLAN[stage]
    language.optimize(stage, model, loss, stream, args.steps or steps, rate, save)


def report(args, tokenizer, test):
    target = load(args.out / "target")
    known = {"eagle": heads.load_head(heads.Eagle(), args.out / "eagle"),
             "medusa": heads.load_head(heads.Medusa(target.lm_head.weight), args.out / "medusa")}
    if (args.out / "eagle3").exists():
        known["eagle3"] = eagle3.load_eagle3(args.out / "eagle3")
    else:
        print(f"{args.out} has no EAGLE-3 head; the stage eagle3 trains it", flush=True)
    evaluate.report(target, load(args.out / "draft"), known, tokenizer, test, args.seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True,
                        help="folder with GSM8K's train.jsonl and test.jsonl")
    parser.add_argument("-o", "--out", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true",
                        help="compile the target for training (faster; needs a C++ compiler)")
    parser.add_argument("--steps", type=int,
                        help="steps of every stage, for a trial (default: its own)")
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES,
                        help="run only these stages on the files in OUT (default: all)")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    train, test = (text.problems(args.data / name) for name in ("train.jsonl", "test.jsonl"))
    stored = args.out / "target" / "tokenizer.json"
    if "tokenizer" in args.stages:
        stored.parent.mkdir(parents=True, exist_ok=True)
        made = text.train_tokenizer([p + a for p, a in train], language.SHAPE["vocab_size"])
        made.save(str(stored))
    tokenizer = Tokenizer.from_file(str(stored))
    documents = text.encode(tokenizer, train)
    for stage in PLAN:
        if stage in args.stages:
            learn(stage, args, tokenizer, documents)
    if "prompts" in args.stages:
        text.write_prompts(args.out, train, test)
    if "report" in args.stages:
        report(args, tokenizer, test)


if __name__ == "__main__":
    main()
