# SPDX-License-Identifier: Apache-2.0
"""EAGLE-1 head and Medusa-1 heads of a frozen target. A feature is the target's hidden state after
its final norm, the input of the LM head. Parameters have the names of the published checkpoints."""
import json

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

from language import TARGET, save_tensors, text_loss

EAGLE = TARGET | {"num_hidden_layers": 1}
MEDUSA = {"architectures": ["MedusaModel"], "base_model_name_or_path": "../target",
          "hidden_size": TARGET["hidden_size"], "medusa_num_heads": 4, "medusa_num_layers": 1,
          "model_type": "medusa", "vocab_size": TARGET["vocab_size"]}


class Eagle(nn.Module):
    """Predicts feature i from feature i-1 and the embedding of token i (Li et al. 2024, section
    4.1) by fc and one decoder layer without its first norm. It uses the target's embedding and LM
    head."""

    def __init__(self):
        super().__init__()
        config = LlamaConfig(**EAGLE, attn_implementation="sdpa")
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layers = nn.ModuleList([LlamaDecoderLayer(config, 0)])
        self.layers[0].input_layernorm = nn.Identity()
        self.rotary = LlamaRotaryEmbedding(config)  # has no parameters

    def forward(self, embedded, features):
        x = self.fc(torch.cat([embedded, features], -1))
        positions = torch.arange(x.shape[1])[None]
        return self.layers[0](x, position_embeddings=self.rotary(x, positions))


class Residual(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return x + F.silu(self.linear(x))


class Medusa(nn.ModuleList):
    """Head k predicts token i+2+k from feature i (Cai et al. 2024, section 2.1.1). Every head is
    initialized with the target's LM head."""

    def __init__(self, lm_head):
        vocab, hidden = lm_head.shape
        super().__init__(nn.Sequential(Residual(hidden), nn.Linear(hidden, vocab, bias=False))
                         for _ in range(MEDUSA["medusa_num_heads"]))
        for head in self:
            head[1].weight.data.copy_(lm_head)

    def forward(self, features):
        return [head(features) for head in self]


def features_of(target, ids):
    return target.model(input_ids=ids, use_cache=False).last_hidden_state


def eagle_loss(head, target, ids):
    """Regression loss of the features plus 0.1 times the cross-entropy against the target's
    distributions. Noise on the input features models the error of features that the head drafts."""
    true = features_of(target, ids)
    given = true[:, :-1] + torch.empty_like(true[:, :-1]).uniform_(-0.1, 0.1)
    guess = head(target.model.embed_tokens(ids[:, 1:]), given)
    dist = target.lm_head(true[:, 1:]).softmax(-1)
    cross = -(dist * target.lm_head(guess).log_softmax(-1)).sum(-1).mean()
    return F.smooth_l1_loss(guess, true[:, 1:]) + 0.1 * cross


def medusa_loss(heads, target, ids):
    return sum(0.8**k * text_loss(logits, ids, 2 + k)
               for k, logits in enumerate(heads(features_of(target, ids))))


def save_head(head, folder):
    eagle = LlamaConfig(**EAGLE).to_diff_dict() | {"architectures": ["LlamaForCausalLM"],
                                                   "bias": False}  # of fc
    config = eagle if isinstance(head, Eagle) else MEDUSA
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(
        json.dumps(config | {"dtype": "bfloat16"}, indent=2, sort_keys=True) + "\n")
    save_tensors(head.state_dict(), folder)


def load_head(head, folder):
    head.load_state_dict(load_file(folder / "model.safetensors"))  # copied into float32
    return head.eval().requires_grad_(False)
