#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stores what an EAGLE-3 head computes: its logits for a prefix and a greedy chain of three tokens.

    python3 eagle3_fixture.py TARGET HEAD (--tokens ID... | --prompts FILE) -o expected.safetensors

The layout is that of the EAGLE heads in tests/oracle/README.md; tokens outside the draft vocabulary
have minus infinity. Everything is computed in float64 from the weights as stored, except for the
norms and rotary angles, which transformers computes in float32. Each drafted token is checked
against one run over the whole text without the unrolling of the training."""
import argparse
import json
import pathlib

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

import eagle3

CHAIN, AGREE = 3, 1e-5


def features_of(target, ids, layers):
    """Returns the inputs [1, n, 3 H] of these layers; the number of layers is the last output,
    before the final norm."""
    taken, hooks = {}, []
    for i, layer in enumerate(target.model.layers):
        hooks.append(layer.register_forward_pre_hook(
            lambda _, args, i=i: taken.__setitem__(i, args[0])))
        hooks.append(layer.register_forward_hook(
            lambda _, args, out, i=i: taken.__setitem__(i + 1, out)))
    target(input_ids=ids, use_cache=False)
    for hook in hooks:
        hook.remove()
    return torch.cat([taken[i] for i in layers], -1)


def load_head(folder):
    """Returns the head in float64 and the layers that its features come from."""
    config = json.loads((folder / "config.json").read_text())
    head = eagle3.Eagle3(config, config["draft_vocab_size"])
    head.load_state_dict(load_file(folder / "model.safetensors"))
    return head.double().eval(), config["eagle_aux_hidden_state_layer_ids"]


def over_vocabulary(head, rows):
    out = rows.new_full((len(rows), len(head.t2d)), float("-inf"))
    out[:, head.kept()] = rows
    return out


def whole(head, embedded, x, drafted):
    """Returns the last logits after `drafted` earlier steps, each by one causal run."""
    for step in range(drafted + 1):
        n = x.shape[1]
        rotary = head.rotary(x, torch.arange(n)[None])
        last = head.midlayer(embedded[:, :n], x, rotary, [])[:, -1:]
        x = torch.cat([x, last], 1)
    return head.lm_head(head.norm(last))[0, 0]


@torch.no_grad()
def expected(target, head, layers, ids):
    ids, features = list(ids), features_of(target, torch.tensor([ids[:-1]]), layers)
    n, chain, rows = features.shape[1], [], []
    pairs = head(target.model.embed_tokens(torch.tensor([ids[1:]])), features, 1)[0][0]
    for step in range(CHAIN):
        embedded = target.model.embed_tokens(torch.tensor([ids[1:] + chain]))
        rows.append(head(embedded, features, step + 1)[step][0, n - 1])
        other = whole(head, embedded, head.fc(features), step)
        differs = (rows[-1] - other).abs().max() / other.abs().max()
        if differs > AGREE:
            raise SystemExit(f"step {step}: the chain differs from the whole run by {differs:.1e}")
        chain.append(int(head.kept()[rows[-1].argmax()]))
    return {"tokens": torch.tensor(ids, dtype=torch.int32),
            "pair_logits": over_vocabulary(head, pairs).float(),
            "chain_token": torch.tensor(chain, dtype=torch.int32),
            "chain_logits": over_vocabulary(head, torch.stack(rows)).float()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("head", type=pathlib.Path)
    prefix = parser.add_mutually_exclusive_group(required=True)
    prefix.add_argument("--tokens", type=int, nargs="+")
    prefix.add_argument("--prompts", type=pathlib.Path,
                        help="use the first tokens of the first prompt in FILE")
    parser.add_argument("--length", type=int, default=8, help="length of that prefix (8)")
    parser.add_argument("-o", "--out", required=True)
    args = parser.parse_args()
    ids = args.tokens
    if args.prompts:
        tokenizer = Tokenizer.from_file(str(args.target / "tokenizer.json"))
        with open(args.prompts, encoding="utf-8") as f:
            ids = tokenizer.encode(json.loads(f.readline())["prompt"]).ids[:args.length]
    target = LlamaForCausalLM.from_pretrained(args.target, dtype=torch.float64).eval()
    save_file(expected(target, *load_head(args.head), ids), args.out, {"format": "pt"})


if __name__ == "__main__":
    main()
