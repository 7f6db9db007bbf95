# SPDX-License-Identifier: Apache-2.0
"""Writes the tiny random checkpoints of tests/oracle/fixtures with expected values by transformers.

    python make_fixtures.py [-o FOLDER] [NAME ...]    (torch, transformers, numpy, safetensors)

With names, only these models are written, and no heads.

Not needed to build or to test. README.md in this folder gives the layout, versions and bounds.
Expected values are computed in float64 from the weights as stored on disk. Every run checks that
decoding from a cache and one forward pass with a tree mask agree, and that an error of 1 % in any
tensor would be detected.
"""
import argparse
import json
import os
import shutil
import zlib

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

TOKENS, CONTEXT, CACHED = 24, 16, 6  # tokens of the sequence, before the tree, decoded one by one
# Nodes 0 and 2, and so 3 and 5, have the same text: two independent drafts that agree.
PARENT = [-1, -1, -1, 0, 0, 2, 3, 3, 6, 5, 8, 1]
SAME = {2: 0, 5: 3}
HEAD_PARENT, HEAD_SAME = [-1, -1, -1, 0, 0, 1, 3, 6], {2: 0}
CHAIN = 5            # greedy steps of the EAGLE head
AGREE = 1e-6         # two computations of the same logits, both in float64 except for the norms
OWN = {torch.float32: 2e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}  # all in one dtype
FELT, FELT_BIAS = 1e-3, 4e-4  # least move of the logits when a tensor, or a bias, is 1 % off

LLAMA3_ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=64)  # wavelengths on both sides and between


YARN_ROPE = dict(rope_type="yarn", factor=4.0, beta_fast=4.0, beta_slow=0.5,
                 original_max_position_embeddings=32)  # the ramp ends within the pairs


def llama_like(kind, vocab, hidden, heads, kv, ffn, **more):
    """Returns a config.json as on the Hub before transformers 5; without `kv`, as before GQA."""
    config = dict(architectures=[kind + "ForCausalLM"], model_type=kind.lower(), bos_token_id=1,
                  eos_token_id=2, hidden_act="silu", hidden_size=hidden, intermediate_size=ffn,
                  max_position_embeddings=64, num_attention_heads=heads, num_hidden_layers=2,
                  num_key_value_heads=kv, rms_norm_eps=1e-3, rope_scaling=None,
                  rope_theta=10000.0, tie_word_embeddings=False, torch_dtype="float32",
                  use_cache=True, vocab_size=vocab)
    config.update(more)
    if kv is None:
        del config["num_key_value_heads"]
    return config


def neox(vocab, hidden, heads, ffn, parallel):
    return dict(architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox", bos_token_id=0,
                eos_token_id=0, hidden_act="gelu", hidden_size=hidden, intermediate_size=ffn,
                layer_norm_eps=1e-3, max_position_embeddings=32, num_attention_heads=heads,
                num_hidden_layers=2, rotary_emb_base=1000, rotary_pct=0.25,
                tie_word_embeddings=False, torch_dtype="float32", use_cache=True,
                use_parallel_residual=parallel, vocab_size=vocab)


def qwen3_moe(vocab, hidden, used, **more):
    """Returns a config.json whose head size is not hidden / heads."""
    return llama_like("Qwen3Moe", vocab, hidden, 3, 1, 20, head_dim=12, model_type="qwen3_moe",
                      **{**dict(num_experts=5, num_experts_per_tok=used, decoder_sparse_step=1,
                                moe_intermediate_size=12, norm_topk_prob=False, mlp_only_layers=[],
                                use_sliding_window=False), **more})


def gemma3(vocab, hidden, ffn, **more):
    """Returns the config.json of a text model as on the Hub before transformers 5."""
    config = llama_like("Gemma3", vocab, hidden, 4, 2, ffn, architectures=["Gemma3ForCausalLM"],
                        model_type="gemma3_text", head_dim=12, num_hidden_layers=3,
                        hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=40,
                        rope_theta=1000.0, rope_local_base_freq=100.0, sliding_window=6,
                        sliding_window_pattern=2, attn_logit_softcapping=None,
                        final_logit_softcapping=None, tie_word_embeddings=True, **more)
    del config["hidden_act"]
    return config


def gemma3_vision(text):
    """Returns the config.json of a model of images and text."""
    vision = dict(model_type="siglip_vision_model", hidden_size=8, image_size=28, patch_size=14,
                  intermediate_size=8, num_attention_heads=2, num_hidden_layers=1)
    return dict(architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3",
                boi_token_index=3, eoi_token_index=4, image_token_index=5, mm_tokens_per_image=4,
                eos_token_id=[2], text_config=text, torch_dtype="float32",
                vision_config=vision, vocab_size=text["vocab_size"])


# name: config, and how it is saved. "new" has transformers 5 write config.json (dtype,
# rope_parameters); otherwise the dict is the file, so transformers reads the old spelling too.
MODELS = {
    "llama": (llama_like("Llama", 67, 32, 4, 2, 24), dict(new=True)),
    "llama_old": (llama_like("Llama", 69, 24, 3, None, 20, rope_scaling=LLAMA3_ROPE),
                  dict(buffers=True)),
    "llama_sharded": (llama_like("Llama", 70, 24, 3, 1, 20), dict(new=True, shard="20KB")),
    "llama_bf16": (llama_like("Llama", 67, 24, 3, 1, 20, torch_dtype="bfloat16"), dict(new=True)),
    "llama_fp16": (llama_like("Llama", 67, 24, 3, 1, 20, torch_dtype="float16"), dict()),
    "llama3": (llama_like("Llama", 91, 32, 2, 1, 20, rope_scaling=LLAMA3_ROPE,
                          tie_word_embeddings=True), dict(new=True)),
    "llama_rope_yarn": (llama_like("Llama", 69, 32, 2, 1, 20, rope_scaling=YARN_ROPE,
                                   rope_theta=1000.0), dict(new=True)),
    "llama_yarn_old": (llama_like("Llama", 73, 32, 2, 1, 20, rope_theta=1000.0, rope_scaling=dict(
        YARN_ROPE, truncate=False, mscale=2.0, mscale_all_dim=0.5)), dict()),
    "llama_dynamic": (llama_like("Llama", 83, 24, 3, 1, 20, rope_scaling=dict(
        rope_type="dynamic", factor=2.0)), dict(new=True)),
    "mistral": (llama_like("Mistral", 73, 32, 2, 1, 20, head_dim=12, sliding_window=None),
                dict(new=True)),
    "mistral_window": (llama_like("Mistral", 69, 24, 2, 1, 20, sliding_window=8), dict()),
    # Configurations of Qwen2 on the Hub contain a sliding window that is switched off.
    "qwen2": (llama_like("Qwen2", 93, 32, 4, 2, 20, tie_word_embeddings=True, sliding_window=4,
                         use_sliding_window=False, max_window_layers=0), dict()),
    "qwen3": (llama_like("Qwen3", 77, 32, 3, 1, 24, tie_word_embeddings=True, head_dim=12),
              dict(new=True)),
    # Layer 0 has no window: max_window_layers.
    "qwen3_window": (llama_like("Qwen3", 73, 32, 3, 1, 24, head_dim=12, sliding_window=6,
                                use_sliding_window=True, max_window_layers=1), dict()),
    # Layer 1 is not rotated; in "smollm3_window" it has a window.
    "smollm3": (llama_like("SmolLM3", 75, 32, 4, 2, 20, no_rope_layer_interval=2,
                           tie_word_embeddings=True, pad_token_id=None),
                dict()),
    "smollm3_window": (llama_like("SmolLM3", 79, 24, 3, 1, 20, no_rope_layers=[1, 0, 1],
                                  num_hidden_layers=3, use_sliding_window=True, sliding_window=6,
                                  mlp_bias=True, pad_token_id=None), dict(new=True)),
    "qwen3_moe": (qwen3_moe(75, 32, 3, norm_topk_prob=True), dict(new=True)),
    # Layers 1 and 3 have experts by the step, of which layer 3 has none after all.
    "qwen3_moe_mixed": (qwen3_moe(79, 32, 2, num_hidden_layers=4, decoder_sparse_step=2,
                                  mlp_only_layers=[3], num_experts=3), dict()),
    # Layer 1 of 3 has no window, as the pattern makes it.
    "gemma3_text": (gemma3(71, 32, 20, rope_scaling=dict(rope_type="linear", factor=4.0)), dict()),
    "gemma3_new": (gemma3(67, 24, 28), dict(new=True)),
    "gemma3_bf16": (gemma3(77, 24, 20, torch_dtype="bfloat16"), dict(new=True)),
    "gemma3_vision": (gemma3_vision(gemma3(73, 24, 20)), dict(vision=True)),
    "gpt2": (dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", bos_token_id=82,
                  activation_function="gelu_new", eos_token_id=82, layer_norm_epsilon=1e-3,
                  n_ctx=32, n_embd=24, n_head=2, n_inner=None, n_layer=2, n_positions=32,
                  vocab_size=83), dict(buffers=True)),
    "gpt_neox": (neox(67, 32, 2, 20, True), dict(buffers=True)),
    "gpt_neox_sequential": (neox(71, 24, 3, 28, False), dict(new=True)),
}
FEATURES = ["llama"]  # whose last hidden states are kept, for the heads


def random(name):
    return np.random.default_rng(zlib.crc32(name.encode()))


def tensor(values, dtype=torch.float32):
    return torch.from_numpy(np.ascontiguousarray(values)).to(dtype)


def fill(module, name, spread=0.3):
    """Fills in norm weights 1 +- .2, normal matrices and larger biases, so that every part has a
    visible effect."""
    for key, p in sorted(module.named_parameters()):
        r = random(name + "/" + key).standard_normal(p.shape)
        if p.ndim > 1:
            r *= spread
        elif key.endswith("weight"):
            r = 1 + 0.2 * r
        else:
            r *= 2.0 if key.endswith(("c_proj.bias", "dense.bias", "4h_to_h.bias")) else 0.7
        p.data = tensor(r, p.dtype)


def relative(got, want):
    """Returns the error that bounds limit: a row's largest difference over its largest value."""
    return float(((got - want).abs().amax(-1) / want.abs().amax(-1)).max())


def tree_tokens(name, parent, same, vocab):
    tokens = [int(t) for t in random(name + "/tree").permutation(vocab)[:len(parent)]]
    for node, other in same.items():
        tokens[node] = tokens[other]
    return tokens


def path(parent, node):
    """Returns the nodes from the root to this one."""
    return path(parent, parent[node]) + [node] if node >= 0 else []


def dress(folder, model):
    """Adds the extra tensors of old checkpoints on the Hub, and GPT-2's names without a prefix."""
    c, file = model.config, os.path.join(folder, "model.safetensors")
    tensors = load_file(file)
    for i in range(c.num_hidden_layers):
        if c.model_type == "llama":
            dim = c.hidden_size // c.num_attention_heads
            tensors[f"model.layers.{i}.self_attn.rotary_emb.inv_freq"] = torch.ones(dim // 2)
            continue
        mask = torch.ones(1, 1, 32, 32).tril()
        if c.model_type == "gpt2":
            tensors[f"transformer.h.{i}.attn.bias"] = mask
        else:
            at = f"gpt_neox.layers.{i}.attention."
            tensors[at + "bias"] = mask.bool()
            tensors[at + "masked_bias"] = torch.tensor(-1e9)
            tensors[at + "rotary_emb.inv_freq"] = torch.ones(2)
    tensors = {k.removeprefix("transformer."): v for k, v in tensors.items()}
    save_file(tensors, file, {"format": "pt"})


def start(out, name, config):
    """Makes a folder that contains config.json only."""
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2)
        f.write("\n")
    return folder


def name_as_hub(folder):
    """Gives the tensors of a multimodal model their names on the Hub before transformers 5."""
    file = os.path.join(folder, "model.safetensors")
    hub = {"model.language_model.": "language_model.model.", "model.": ""}
    tensors = {}
    for key, value in load_file(file).items():
        prefix = next((p for p in hub if key.startswith(p)), "")
        tensors[hub.get(prefix, "") + key.removeprefix(prefix)] = value
    save_file(tensors, file, {"format": "pt"})


def write_checkpoint(out, name, config, new=False, buffers=False, shard="1GB", vision=False):
    folder = start(out, name, config)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    fill(model, name)
    model.to(getattr(torch, config.get("torch_dtype", "float32")))
    ours = os.path.join(folder, "config.json")
    shutil.copy(ours, ours + ".old")
    model.save_pretrained(folder, max_shard_size=shard)
    os.remove(os.path.join(folder, "generation_config.json"))
    if new:
        os.remove(ours + ".old")
    else:
        os.replace(ours + ".old", ours)
    if buffers:
        dress(folder, model)
    if vision:
        name_as_hub(folder)
    return folder, model.eval()


def logits_of(model, ids):
    return model(torch.tensor([ids])).logits[0]


def from_cache(model, ids):
    """Returns the logits of the last tokens, each computed by a forward pass after a KV cache."""
    cache = model(torch.tensor([ids[:-CACHED]]), use_cache=True).past_key_values
    rows = []
    for token in ids[-CACHED:]:
        step = model(torch.tensor([[token]]), past_key_values=cache, use_cache=True)
        rows.append(step.logits[0, 0])
    return torch.stack(rows)


def tree_mask(parent, context, window, dtype):
    """Returns the additive mask [1, 1, n, n] and positions [n] of a context and a tree after it."""
    n = context + len(parent)
    seen = torch.zeros(n, n, dtype=torch.bool)
    seen[:context, :context] = torch.ones(context, context).tril().bool()
    position = torch.arange(n)
    for node in range(len(parent)):
        line = path(parent, node)
        seen[context + node, :context] = True
        seen[context + node, [context + other for other in line]] = True
        position[context + node] = context + len(line) - 1
    if window:
        seen &= position[:, None] - position[None, :] < window
    mask = torch.zeros(n, n, dtype=dtype).masked_fill(~seen, torch.finfo(dtype).min)
    return mask[None, None], position


def by_mask(model, ids, parent, tokens):
    """Returns the logits of the nodes from one forward pass with a tree mask."""
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    mask, position = tree_mask(parent, len(ids), window, model.dtype)
    if len(set(getattr(config, "layer_types", None) or [])) > 1:
        mask = dict(full_attention=tree_mask(parent, len(ids), None, model.dtype)[0],
                    sliding_attention=mask)
    out = model(torch.tensor([ids + tokens]), attention_mask=mask, position_ids=position[None])
    return out.logits[0, len(ids):]


def require(name, what, value, limit, above=False):
    if not (value > limit if above else value < limit):
        bound = "above" if above else "below"
        raise SystemExit(f"{name}: {what} is {value:.2e}, not {bound} {limit}")


def least_felt(name, module, run, want):
    """Moves every tensor by a random 1 %; the least move of the logits and its tensor."""
    moves = {}
    for key, p in module.named_parameters():
        if "vision_tower" in key or "multi_modal_projector" in key:
            continue
        keep = p.data
        p.data = keep * (1 + 0.01 * tensor(random("felt/" + key).standard_normal(p.shape), p.dtype))
        moves[key] = relative(run(), want)
        p.data = keep
        require(name, "the effect of 1 % on " + key, moves[key],
                FELT_BIAS if key.endswith("bias") else FELT, above=True)
    key = min(moves, key=moves.get)
    return moves[key], key


def say(name, **figures):
    print(f"{name:20}", "  ".join(f"{k} {v:.1e}" if isinstance(v, float) else f"{k} {v}"
                                  for k, v in figures.items()))


def save_expected(folder, tensors, **checks):
    # One entry: safetensors writes several in an order that changes from run to run.
    about = dict(checks, torch=torch.__version__, transformers=transformers.__version__)
    about = {"about": json.dumps(about, sort_keys=True)}
    exact = {k: v.to(torch.float32 if v.is_floating_point() else torch.int32).contiguous()
             for k, v in tensors.items()}
    save_file(exact, os.path.join(folder, "expected.safetensors"), about)


def read_back(folder, name, built):
    """Loads the checkpoint in its own dtype; transformers initializes tensors that it lacks."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    for key, want in built.named_parameters():
        if not torch.equal(model.get_parameter(key), want):
            raise SystemExit(f"{name}: {key} was not read back")
    return model


def errors(model, ids, tokens, logits, tree):
    """Returns the errors of one forward pass, of the cached decode and of the tree mask."""
    return (relative(logits_of(model, ids).double(), logits),
            relative(from_cache(model, ids).double(), logits[-CACHED:]),
            relative(by_mask(model, ids[:CONTEXT], PARENT, tokens).double(), tree))


def make_model(out, name, config, options):
    folder, built = write_checkpoint(out, name, config, **options)
    own = read_back(folder, name, built)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    if "num_experts" in config:  # grouped products have no float64
        model.set_experts_implementation("eager")
    vocab = config["vocab_size"]
    embedding = model.get_input_embeddings()
    if hasattr(embedding, "embed_scale"):  # rounded as in its own dtype
        scale = torch.tensor(embedding.scalar_embed_scale).to(own.dtype)
        embedding.embed_scale = scale.double()
    ids = [0, vocab - 1] + [int(t) for t in random(name + "/ids").integers(0, vocab, TOKENS - 2)]
    tokens = tree_tokens(name, PARENT, SAME, vocab)

    logits = logits_of(model, ids)
    texts = [ids[:CONTEXT] + [tokens[i] for i in path(PARENT, node)] for node in range(len(PARENT))]
    tree = torch.stack([logits_of(model, text)[-1] for text in texts])
    _, cached, mask = errors(model, ids, tokens, logits, tree)
    worst = max(errors(own, ids, tokens, logits, tree))
    require(name, "the cached decode's difference", cached, AGREE)
    require(name, "the tree mask's difference", mask, AGREE)
    require(name, "the difference in its own dtype", worst, OWN[own.dtype])
    felt, at = least_felt(name, model, lambda: logits_of(model, ids), logits)
    say(name, cached=cached, mask=mask, own=worst, felt=felt, at=at)

    tensors = dict(tokens=torch.tensor(ids), logits=logits, parent=torch.tensor(PARENT),
                   tree_token=torch.tensor(tokens), tree_logits=tree)
    if name in FEATURES:
        tensors["hidden"] = model.model(torch.tensor([ids])).last_hidden_state[0]
    save_expected(folder, tensors, cached_differs_below=AGREE, mask_differs_below=AGREE)
    return model, ids


class EagleHead(nn.Module):
    """EAGLE-1's head: fc over (embedding of token i, feature i-1), then one decoder layer without
    an input norm, and no final norm. It predicts feature i; the target's LM head makes it logits.
    The pair of token i has position i-1: the public code starts at 0 with the first pair.
    The embedding is the target's, unless the head has one of its own.
    """

    def __init__(self, config, bias, own):
        super().__init__()
        if own:
            self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=bias)
        self.layers = nn.ModuleList([LlamaDecoderLayer(config, 0)])
        self.layers[0].input_layernorm = nn.Identity()
        self.rope = LlamaRotaryEmbedding(config)

    def forward(self, embeddings, features, mask=None, position=None):
        """Returns the predicted features [n, hidden] from inputs of [n, hidden] each."""
        n = len(features)
        if mask is None:
            mask, position = tree_mask([], n, None, features.dtype)
        x = self.fc(torch.cat((embeddings, features), dim=-1))[None]
        rope = self.rope(x, position[None])
        return self.layers[0](x, attention_mask=mask, position_ids=position[None],
                              position_embeddings=rope)[0]


def embedding(head, target):
    return getattr(head, "embed_tokens", target.model.embed_tokens)


def head_tree(head, target, features, ids, parent, tokens):
    """Runs each path as a plain sequence; a node's prediction is the feature of its children."""
    embed = embedding(head, target)
    made = {-1: head(embed(torch.tensor(ids[1:])), features)[-1]}
    for node in range(len(parent)):
        line = path(parent, node)
        pairs = ids[1:] + [tokens[i] for i in line]
        before = [made[parent[i]] for i in line]
        known = torch.cat((features, torch.stack(before)))
        made[node] = head(embed(torch.tensor(pairs)), known)[-1]
    return made


def make_eagle(out, name, target, ids, bias, own=False):
    """Runs the head after `CONTEXT` tokens, of which the target has run all but the last."""
    c = target.config
    config = llama_like("Llama", c.vocab_size, c.hidden_size, 4, 4 if bias else 2, 20,
                        num_hidden_layers=1, bias=bias)
    folder = start(out, name, config)
    head_config = AutoConfig.from_pretrained(folder)
    head_config._attn_implementation = "sdpa"
    head = EagleHead(head_config, bias, own)
    fill(head, name, spread=0.15)  # its features are fed back without a norm and must not grow
    save_file(head.state_dict(), os.path.join(folder, "model.safetensors"), {"format": "pt"})
    head.double()

    ids = ids[:CONTEXT]
    features = target.model(torch.tensor([ids[:-1]])).last_hidden_state[0]
    tokens = tree_tokens(name, HEAD_PARENT, HEAD_SAME, c.vocab_size)
    made = head_tree(head, target, features, ids, HEAD_PARENT, tokens)
    tree = target.lm_head(torch.stack([made[i] for i in range(len(HEAD_PARENT))]))
    mask, position = tree_mask(HEAD_PARENT, CONTEXT - 1, None, torch.float64)
    embedded = embedding(head, target)(torch.tensor(ids[1:] + tokens))
    before = torch.cat((features, torch.stack([made[p] for p in HEAD_PARENT])))
    masked = target.lm_head(head(embedded, before, mask, position)[CONTEXT - 1:])

    pairs = target.lm_head(head(embedded[:CONTEXT - 1], features))
    chain, rows = [], [pairs[-1]]
    for step in range(CHAIN - 1):
        chain.append(int(rows[-1].argmax()))
        line = list(range(-1, step))  # each token's parent is the one before
        rows.append(target.lm_head(head_tree(head, target, features, ids, line, chain)[step]))
    chain.append(int(rows[-1].argmax()))
    rows = torch.stack(rows)
    top = rows.topk(2).values
    figures = dict(mask=relative(masked, tree), margin=float((top[:, 0] - top[:, 1]).min()))
    require(name, "the tree mask's difference", figures["mask"], AGREE)
    require(name, "the margin of a greedy step", figures["margin"], 1e-2, above=True)

    def run():
        return target.lm_head(head(embedding(head, target)(torch.tensor(ids[1:])), features))
    felt, at = least_felt(name, head, run, pairs)
    say(name, **figures, felt=felt, at=at)
    save_expected(folder, dict(tokens=torch.tensor(ids), pair_logits=pairs,
                               chain_token=torch.tensor(chain), chain_logits=rows,
                               parent=torch.tensor(HEAD_PARENT), tree_token=torch.tensor(tokens),
                               tree_logits=tree), mask_differs_below=AGREE)


class MedusaHead(nn.Sequential):
    """Computes lm(x + silu(linear(x))) as published, with keys 0.linear.* and 1.weight."""

    def __init__(self, hidden, vocab):
        block = nn.Module()
        block.linear = nn.Linear(hidden, hidden)
        super().__init__(block, nn.Linear(hidden, vocab, bias=False))

    def forward(self, x):
        return self[1](x + nn.functional.silu(self[0].linear(x)))


def make_medusa(out, name, target, ids, heads):
    folder = start(out, name, dict(base_model_name_or_path="../llama", medusa_num_heads=heads,
                                   medusa_num_layers=1))
    medusa = nn.ModuleList(MedusaHead(target.config.hidden_size, target.config.vocab_size)
                           for _ in range(heads))
    fill(medusa, name)
    save_file(medusa.state_dict(), os.path.join(folder, "model.safetensors"), {"format": "pt"})
    medusa.double()
    feature = target.model(torch.tensor([ids])).last_hidden_state[0, -1]

    def run():
        return torch.stack([head(feature) for head in medusa])
    logits = run()
    felt, at = least_felt(name, medusa, run, logits)
    say(name, felt=felt, at=at)
    save_expected(folder, dict(tokens=torch.tensor(ids), logits=logits))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("-o", default=os.path.join(here, "fixtures"), metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", help="write these models only")
    arguments = parser.parse_args()
    out, names = arguments.o, arguments.names
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    made = {name: make_model(out, name, *spec) for name, spec in MODELS.items()
            if not names or name in names}
    if names:
        return
    target, ids = made["llama"]
    make_eagle(out, "llama_eagle", target, ids, bias=True)
    make_eagle(out, "llama_eagle_nobias", target, ids, bias=False)
    make_eagle(out, "llama_eagle_embed", target, ids, bias=False, own=True)
    make_medusa(out, "llama_medusa", target, ids, heads=2)
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(out) for f in files)
    print(f"{len(made) + 4} folders, {size} bytes")


if __name__ == "__main__":
    main()
