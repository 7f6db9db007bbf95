# SPDX-License-Identifier: Apache-2.0
"""EAGLE-3 head of a frozen target (Li et al. 2025, arXiv:2503.01840).

Names and shapes are those of the public heads: midlayer, fc, norm, lm_head, d2t and t2d of
SafeAILab/EAGLE eagle/model/cnets.py (commit 148042c), which vLLM reads in
vllm/model_executor/models/llama_eagle3.py (commit 00bd149). H is the hidden size of the target."""
import collections
import json

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import (
    LlamaMLP, LlamaRMSNorm, LlamaRotaryEmbedding, apply_rotary_pos_emb, repeat_kv)

from heads import EAGLE
from language import save_tensors

# Layer i means the input of the target's layer i, as in vLLM. The public default [2, n / 2, n - 3]
# is not distinct for the four layers of the target.
LAYERS = [1, 2, 3]
DRAFT_VOCAB = 1536
DEPTH = 3  # drafted steps that the training unrolls
EAGLE3 = EAGLE | {"tie_word_embeddings": False}


class Attention(nn.Module):
    """Attention over pairs of an embedding and a feature, so that q, k and v have 2 H inputs."""

    def __init__(self, config):
        super().__init__()
        self.dim = config.hidden_size // config.num_attention_heads
        self.group = config.num_attention_heads // config.num_key_value_heads
        hidden, shared = config.hidden_size, config.num_key_value_heads * self.dim
        self.q_proj = nn.Linear(2 * hidden, hidden, bias=False)
        self.k_proj = nn.Linear(2 * hidden, shared, bias=False)
        self.v_proj = nn.Linear(2 * hidden, shared, bias=False)
        self.o_proj = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, rotary, cache):
        """x is [1, n, 2 H]; row t is drafted step len(cache) of the text that ends at pair t. It
        attends to the pairs 0..t of step 0 and to row t of every later step, itself included."""
        n = x.shape[1]
        q, k, v = (p(x).view(1, n, -1, self.dim).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = apply_rotary_pos_emb(q, k, *rotary)
        cache.append((repeat_kv(k, self.group), repeat_kv(v, self.group)))
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        scores = [(q @ cache[0][0].transpose(2, 3)).masked_fill(future, float("-inf"))]
        scores += [(q * key).sum(-1, keepdim=True) for key, _ in cache[1:]]
        share = (torch.cat(scores, -1) / self.dim**0.5).softmax(-1)
        out = share[..., :n] @ cache[0][1]
        for step, (_, value) in enumerate(cache[1:]):
            out = out + share[..., n + step, None] * value
        return self.o_proj(out.transpose(1, 2).reshape(1, n, -1))


class Layer(nn.Module):
    """The decoder layer: its residual stream is the feature before hidden_norm."""

    def __init__(self, config):
        super().__init__()
        self.self_attn, self.mlp = Attention(config), LlamaMLP(config)
        for name in "input_layernorm", "hidden_norm", "post_attention_layernorm":
            setattr(self, name, LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps))

    def forward(self, embedded, feature, rotary, cache):
        pair = torch.cat([self.input_layernorm(embedded), self.hidden_norm(feature)], -1)
        x = feature + self.self_attn(pair, rotary, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3(nn.Module):
    """Predicts token i+2 from the target's features up to i and the embeddings up to i+1. It has
    an LM head of its own, over the most frequent tokens; the embedding is the target's."""

    def __init__(self, shape=EAGLE3, draft_vocab=DRAFT_VOCAB):
        super().__init__()
        config = LlamaConfig(**shape)
        self.fc = nn.Linear(len(LAYERS) * config.hidden_size, config.hidden_size, bias=False)
        self.midlayer = Layer(config)
        self.norm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, draft_vocab, bias=False)
        self.register_buffer("d2t", torch.zeros(draft_vocab, dtype=torch.long))
        self.register_buffer("t2d", torch.zeros(config.vocab_size, dtype=torch.bool))
        self.rotary = LlamaRotaryEmbedding(config)  # has no parameters

    def begin(self, target, documents):
        """Chooses the draft vocabulary and starts from the target's norm and LM head, and from an
        fc that passes the highest layer on."""
        count = collections.Counter(t for d in documents for t in d.tolist())
        kept = torch.tensor(sorted(t for t, _ in count.most_common(len(self.d2t))))
        self.d2t.copy_(kept - torch.arange(len(kept)))
        self.t2d[kept] = True
        self.norm.weight.data.copy_(target.model.norm.weight)
        self.lm_head.weight.data.copy_(target.lm_head.weight[kept])
        hidden = self.fc.out_features
        self.fc.weight.data *= 0.1
        self.fc.weight.data[:, -hidden:] += torch.eye(hidden)
        print(f"eagle3: the draft vocabulary covers {sum(count[t] for t in kept.tolist())} of "
              f"{sum(count.values())} training tokens", flush=True)

    def kept(self):
        """Returns the target's id of every draft id."""
        return self.d2t + torch.arange(len(self.d2t))

    def forward(self, embedded, features, depth):
        """embedded [1, n + depth, H] are the embeddings of tokens 1.., features [1, n, 3 H] those
        of tokens 0... Returns the logits [1, n, draft vocabulary] of each of depth steps; row t of
        step d is the distribution of token t + d + 2, given the text before it."""
        n, cache, out = features.shape[1], [], []
        x = self.fc(features)
        for d in range(depth):
            rotary = self.rotary(x, torch.arange(d, d + n)[None])
            x = self.midlayer(embedded[:, d:d + n], x, rotary, cache)
            out.append(self.lm_head(self.norm(x)))
        return out


@torch.no_grad()
def run_target(target, ids):
    """Returns the head's features [1, n, 3 H] and the target's logits [1, n, vocabulary]."""
    out = target(input_ids=ids, use_cache=False, output_hidden_states=True)
    return torch.cat([out.hidden_states[i] for i in LAYERS], -1), out.logits


def eagle3_loss(head, target, ids):
    """Training-time test: the cross-entropy of DEPTH drafted steps, each on the hidden state of
    the step before, against the target's distribution over the draft vocabulary. Step d weighs
    .8^d. Positions whose most probable token lies outside the draft vocabulary do not count, and
    there is no loss of features, as in the public training code."""
    features, logits = run_target(target, ids)
    n = ids.shape[1] - DEPTH
    embedded = target.model.embed_tokens(ids[:, 1:])
    dist = logits[..., head.kept()].softmax(-1)
    counts = head.t2d[logits.argmax(-1)].float()
    loss = 0.0
    for d, guess in enumerate(head(embedded, features[:, :n], DEPTH)):
        at = slice(d + 1, d + 1 + n)
        cross = -(dist[:, at] * guess.log_softmax(-1)).sum(-1)
        loss = loss + 0.8**d * (cross * counts[:, at]).sum() / counts[:, at].sum()
    return loss


def save_eagle3(head, folder):
    config = LlamaConfig(**EAGLE3).to_diff_dict() | {
        "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": len(head.d2t),
        "dtype": "bfloat16", "eagle_aux_hidden_state_layer_ids": LAYERS}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_tensors(head.state_dict(), folder)


def load_eagle3(folder):
    head = Eagle3()
    head.load_state_dict(load_file(folder / "model.safetensors"))  # copied into float32
    return head.eval().requires_grad_(False)
