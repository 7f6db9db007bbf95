# SPDX-License-Identifier: Apache-2.0
"""Writes tests/oracle/fixtures/llama_eagle3_norm, an EAGLE-3 head with norm_before_residual in a folder
as the speculators library saves it, with expected values from torch.

    python make_eagle3_torch.py [-o FOLDER]            (torch, transformers, safetensors)
    python make_eagle3_torch.py --check [-o FOLDER]    compares both EAGLE-3 fixtures with this program

Attention, norms, feed-forward, rotation and the whole target are the classes of transformers, on
double precision numbers (its norms and angles are float32 inside). Only the order of a head's parts
is written here, after speculators, src/speculators/models/eagle3/model_definitions.py and core.py
(c05b95b). make_eagle3.py computes the same without a library, and shares no code with this program.
"""
import argparse
import copy
import json
import os

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig
from transformers.models.llama import modeling_llama as llama

CONTEXT, CHAIN, DRAFT_VOCAB, TAPS, LEAST = 16, 5, 40, [0, 1, 2], 1e-3
PARENT = [-1, -1, 0, 0, 1, 2, 2, 5]
INSIDE = ("bos_token_id", "eos_token_id", "head_dim", "hidden_act", "hidden_size",
          "max_position_embeddings", "num_attention_heads", "num_key_value_heads", "rms_norm_eps",
          "vocab_size")


class Head(torch.nn.Module):
    """One EAGLE-3 block between fc and lm_head; its modules have the names of the tensors."""

    def __init__(self, config, draft_vocab, before):
        super().__init__()
        wide, width = 2 * config.hidden_size, config.head_dim
        self.before = before
        self.fc = torch.nn.Linear(3 * config.hidden_size, config.hidden_size, bias=False)
        layer = llama.LlamaDecoderLayer(config, 0)
        layer.hidden_norm = llama.LlamaRMSNorm(config.hidden_size, config.rms_norm_eps)
        for name, heads in (("q_proj", config.num_attention_heads),
                            ("k_proj", config.num_key_value_heads),
                            ("v_proj", config.num_key_value_heads)):
            setattr(layer.self_attn, name, torch.nn.Linear(wide, heads * width, bias=False))
        self.layers = torch.nn.ModuleList([layer])
        self.norm = llama.LlamaRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = torch.nn.Linear(config.hidden_size, draft_vocab, bias=False)
        self.register_buffer("d2t", torch.zeros(draft_vocab, dtype=torch.int64))
        self.register_buffer("t2d", torch.zeros(config.vocab_size, dtype=torch.bool))
        self.rotary = llama.LlamaRotaryEmbedding(config)
        self.vocab = config.vocab_size

    def forward(self, embedded, features):
        """[n][hidden] each; returns the residual stream after the block."""
        layer, n = self.layers[0], len(embedded)
        normed = layer.hidden_norm(features)
        residual = normed if self.before else features
        x = torch.cat([layer.input_layernorm(embedded), normed], -1)[None]
        turn = self.rotary(x, torch.arange(n)[None])
        mask = torch.full((n, n), -torch.inf, dtype=x.dtype).triu(1)[None, None]
        mixed = layer.self_attn(hidden_states=x, position_embeddings=turn, attention_mask=mask)[0]
        state = residual + mixed[0]
        return state + layer.mlp(layer.post_attention_layernorm(state))

    def logits(self, row):
        out = torch.full((self.vocab,), -torch.inf, dtype=row.dtype)
        out[torch.arange(len(self.d2t)) + self.d2t] = self.lm_head(self.norm(row))
        return out


def target_features(target, ids):
    """The inputs of the layers TAPS, side by side; the number of layers is the last output."""
    kept, layers = {}, target.model.layers

    def before(number):
        def keep(_, inputs):
            kept[number] = inputs[0].reshape(len(ids), -1)
        return keep

    def after(_, __, out):
        kept[len(layers)] = (out[0] if isinstance(out, tuple) else out).reshape(len(ids), -1)

    for i, layer in enumerate(layers):
        layer.register_forward_pre_hook(before(i))
    layers[-1].register_forward_hook(after)
    target(input_ids=torch.tensor([ids]))
    return torch.cat([kept[i] for i in TAPS], -1)


def path(parent, node):
    return [] if node < 0 else path(parent, parent[node]) + [node]


def draft(head, embed, features, ids, parent, tokens):
    """The residual stream after each node (and after the text, -1), each path run as a sequence."""
    made = {-1: head(embed[ids[1:]], features)[-1]}
    for node in range(len(parent)):
        line = path(parent, node)
        rows = torch.stack([made[parent[i]] for i in line])
        made[node] = head(embed[ids[1:] + [tokens[i] for i in line]],
                          torch.cat([features, rows]))[-1]
    return made


def expect(head, embed, taps, ids, parent, tree_token):
    features = head.fc(taps)
    pairs = [head.logits(row) for row in head(embed[ids[1:]], features)]
    made = draft(head, embed, features, ids, parent, tree_token)
    chain, rows = [], [pairs[-1]]
    while len(rows) <= CHAIN:
        top = rows[-1].topk(2)
        if top.values[0] - top.values[1] < 1e-2:
            raise SystemExit("a greedy step is not decided")
        chain.append(int(top.indices[0]))
        line = list(range(-1, len(chain) - 1))  # each token's parent is the one before
        rows.append(head.logits(draft(head, embed, features, ids, line, chain)[len(chain) - 1]))
    return {"tokens": ids, "pair_logits": pairs, "chain_token": chain[:CHAIN],
            "chain_logits": rows[:CHAIN], "parent": parent, "tree_token": tree_token,
            "tree_logits": [head.logits(made[i]) for i in range(len(parent))]}


def tensors_of(expected):
    return {k: torch.stack(v).float() if k.endswith("logits") else torch.tensor(v, dtype=torch.int32)
            for k, v in expected.items()}


def block_config(keys):
    config = LlamaConfig(**keys, num_hidden_layers=1, attention_bias=False, mlp_bias=False)
    config._attn_implementation = "eager"
    return config


def make_head(config):
    draw = torch.Generator().manual_seed(20250303)
    head = Head(config, DRAFT_VOCAB, True).double()
    for p in head.parameters():
        around = 1.0 if p.dim() == 1 else 0.0
        p.copy_((around + torch.rand(p.shape, generator=draw) * 0.6 - 0.3).float())
    ids = torch.randperm(config.vocab_size, generator=draw)[:DRAFT_VOCAB].sort().values
    head.d2t.copy_(ids - torch.arange(DRAFT_VOCAB))
    head.t2d[ids] = True
    return head


def difference(a, b):
    """The largest difference of two rows over the largest magnitude of the second, over all rows."""
    worst = 0.0
    for x, y in zip(a, b):
        known = torch.isfinite(y)
        if not torch.equal(known, torch.isfinite(x)):
            return torch.inf
        worst = max(worst, float((x[known] - y[known]).abs().max() / y[known].abs().max()))
    return worst


def check_sensitive(head, embed, taps, expected):
    """Every tensor, and the order of norm and residual, must show in the logits."""
    def moved(other):
        features = other.fc(taps)
        rows = [other.logits(x) for x in other(embed[expected["tokens"][1:]], features)]
        return difference(rows, expected["pair_logits"])
    draw = torch.Generator().manual_seed(1)
    least = 1.0
    for name, p in head.named_parameters():
        other = copy.deepcopy(head)
        dict(other.named_parameters())[name].mul_(
            1 + 0.02 * torch.rand(p.shape, generator=draw).double() - 0.01)
        least = min(least, moved(other))
        if least < LEAST:
            raise SystemExit(f"{name} hardly shows: {least:.2g}")
    other = copy.deepcopy(head)
    other.before = False
    print(f"a random 1 % of a tensor moves the logits by at least {least:.2g}, "
          f"norm_before_residual false by {moved(other):.2g}")


def check(folder, embed, taps):
    about = json.load(open(os.path.join(folder, "config.json")))
    nested = "transformer_layer_config" in about
    inner = about["transformer_layer_config"] if nested else about
    head = Head(block_config({k: inner[k] for k in (*INSIDE, "intermediate_size")}),
                about["draft_vocab_size"], about.get("norm_before_residual", nested)).double()
    weights = load_file(os.path.join(folder, "model.safetensors"))
    missing, more = head.load_state_dict({k.replace("midlayer.", "layers.0."): v
                                          for k, v in weights.items()}, strict=False)
    assert not more and all(k.startswith("rotary") for k in missing), (missing, more)
    known = load_file(os.path.join(folder, "expected.safetensors"))
    mine = tensors_of(expect(head, embed, taps, known["tokens"].tolist(), known["parent"].tolist(),
                             known["tree_token"].tolist()))
    for name, x in known.items():
        if name.endswith("logits"):
            print(f"{os.path.basename(folder)}: {name} differ by {difference(x, mine[name]):.2g}")
        elif not torch.equal(x, mine[name]):
            raise SystemExit(f"{folder}: {name} differ")


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("-o", default=os.path.join(here, "fixtures"), metavar="FOLDER")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    out = arguments.o
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    target = llama.LlamaForCausalLM.from_pretrained(
        os.path.join(out, "llama"), dtype=torch.float64, attn_implementation="eager")
    embed = target.model.embed_tokens.weight
    ids = load_file(os.path.join(out, "llama", "expected.safetensors"))["tokens"][:CONTEXT].tolist()
    taps = target_features(target, ids[:-1])
    folder = os.path.join(out, "llama_eagle3_norm")
    if arguments.check:
        for name in "llama_eagle3", "llama_eagle3_norm":
            check(os.path.join(out, name), embed, taps)
        return
    about = json.load(open(os.path.join(out, "llama", "config.json")))
    inner = {k: about[k] for k in INSIDE}
    inner.update(intermediate_size=28, rope_theta=10000.0)
    head = make_head(block_config(inner))
    draw = torch.Generator().manual_seed(7)
    tree = torch.randint(about["vocab_size"], (len(PARENT),), generator=draw).tolist()
    tree[1] = tree[0]  # two independent drafts that agree
    expected = expect(head, embed, taps, ids, PARENT, tree)
    check_sensitive(head, embed, taps, expected)
    os.makedirs(folder, exist_ok=True)
    config = {"architectures": ["Eagle3DraftModel"], "draft_vocab_size": DRAFT_VOCAB,
              "dtype": "float32", "eagle_aux_hidden_state_layer_ids": TAPS, "fc_norm": False,
              "norm_before_fc": False, "norm_before_residual": True, "norm_output": False,
              "speculators_config": {"algorithm": "eagle3"}, "speculators_model_type": "eagle3",
              "target_hidden_size": None,
              "transformer_layer_config": {"model_type": "llama", "num_hidden_layers": 1, **inner}}
    with open(os.path.join(folder, "config.json"), "w") as f:
        f.write(json.dumps(config, indent=2) + "\n")
    state = {k: v if v.dtype in (torch.int64, torch.bool) else v.float()
             for k, v in head.state_dict().items() if not k.startswith("rotary")}
    save_file(state, os.path.join(folder, "model.safetensors"))
    save_file(tensors_of(expected), os.path.join(folder, "expected.safetensors"))
    print(f"{folder}: {CONTEXT - 1} pairs, chain {expected['chain_token']}")


if __name__ == "__main__":
    main()
