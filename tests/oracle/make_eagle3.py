# SPDX-License-Identifier: Apache-2.0
"""Writes the tiny random EAGLE-3 head of tests/oracle/fixtures/llama_eagle3 with expected values.

    python make_eagle3.py [-o FOLDER]        (no packages)

The target is FOLDER/llama. Everything is computed in double precision from the weights as stored,
one whole sequence at a time without a cache. The semantics are those of vLLM's
vllm/model_executor/models/llama_eagle3.py (583507d): the fused features, or later the head's own
output before its final norm, are the residual; the attention reads both normed inputs.
"""
import argparse
import array
import json
import math
import os
import random
import struct

CONTEXT, CHAIN, DRAFT_VOCAB, TAPS = 16, 5, 40, [0, 1, 2]
PARENT = [-1, -1, -1, 0, 0, 1, 3, 6]
CODE = {"F32": "f", "I64": "q", "I32": "i", "BOOL": "B"}


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, about in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or name.startswith("__pad."):
            continue
        begin, end = about["data_offsets"]
        flat = array.array(CODE[about["dtype"]], data[8 + size + begin:8 + size + end])
        shape = about["shape"]
        rows = len(flat) // shape[-1]
        tensors[name] = (list(flat) if len(shape) == 1 else
                         [list(flat[i * shape[1]:(i + 1) * shape[1]]) for i in range(rows)])
    return tensors


def write(path, tensors):
    """tensors: name -> (dtype, shape, flat list); the widest types first, so that all are aligned."""
    header, body = {}, b""
    for name, (dtype, shape, flat) in tensors.items():
        data = array.array(CODE[dtype], flat).tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body),
                                                                        len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def multiply(matrix, x):
    return [sum(w * v for w, v in zip(row, x)) for row in matrix]


def plus(a, b):
    return [x + y for x, y in zip(a, b)]


def norm(x, weight, epsilon):
    by = 1 / math.sqrt(sum(v * v for v in x) / len(x) + epsilon)
    return [v * by * w for v, w in zip(x, weight)]


def rotate(x, position, theta):
    half = len(x) // 2
    out = list(x)
    for i in range(half):
        angle = position * theta ** (-i / half)
        c, s = math.cos(angle), math.sin(angle)
        out[i], out[i + half] = x[i] * c - x[i + half] * s, x[i + half] * c + x[i] * s
    return out


def attend(layer, inputs, c):
    """Causal attention of rows `inputs` at positions 0, 1, ..."""
    width, heads, kv = c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]

    def split(name, x, position=None):
        y = multiply(layer[f"self_attn.{name}_proj.weight"], x)
        parts = [y[i:i + width] for i in range(0, len(y), width)]
        return parts if position is None else [rotate(p, position, 10000.0) for p in parts]
    q = [split("q", x, i) for i, x in enumerate(inputs)]
    k = [split("k", x, i) for i, x in enumerate(inputs)]
    v = [split("v", x) for x in inputs]
    out = []
    for i in range(len(inputs)):
        mixed = []
        for h in range(heads):
            g = h * kv // heads
            score = [sum(a * b for a, b in zip(q[i][h], k[j][g])) / math.sqrt(width)
                     for j in range(i + 1)]
            weight = [math.exp(s - max(score)) for s in score]
            mixed += [sum(weight[j] * v[j][g][d] for j in range(i + 1)) / sum(weight)
                      for d in range(width)]
        out.append(multiply(layer["self_attn.o_proj.weight"], mixed))
    return out


def feed_forward(layer, x):
    gate, up = multiply(layer["mlp.gate_proj.weight"], x), multiply(layer["mlp.up_proj.weight"], x)
    return multiply(layer["mlp.down_proj.weight"],
                    [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])


def block(layer, state, inputs, c):
    state = [plus(s, a) for s, a in zip(state, attend(layer, inputs, c))]
    after = layer["post_attention_layernorm.weight"]
    return [plus(s, feed_forward(layer, norm(s, after, c["rms_norm_eps"]))) for s in state]


def under(tensors, prefix):
    return {k[len(prefix):]: v for k, v in tensors.items() if k.startswith(prefix)}


def target_features(target, ids, c):
    """The inputs of the layers TAPS, one after another; the number of layers is the last output."""
    state = [target["model.embed_tokens.weight"][i] for i in ids]
    taps = [[] for _ in ids]
    for i in range(c["num_hidden_layers"] + 1):
        if i in TAPS:
            taps = [t + s for t, s in zip(taps, state)]
        if i < c["num_hidden_layers"]:
            layer = under(target, f"model.layers.{i}.")
            first = layer["input_layernorm.weight"]
            state = block(layer, state, [norm(s, first, c["rms_norm_eps"]) for s in state], c)
    return taps


def run_head(head, embedded, features, c):
    """The output rows before the final norm, from rows of [hidden] each."""
    layer, epsilon = under(head, "midlayer."), c["rms_norm_eps"]
    inputs = [norm(e, layer["input_layernorm.weight"], epsilon) +
              norm(f, layer["hidden_norm.weight"], epsilon) for e, f in zip(embedded, features)]
    return block(layer, features, inputs, c)


def logits_of(head, row, c):
    drafted = multiply(head["lm_head.weight"], norm(row, head["norm.weight"], c["rms_norm_eps"]))
    out = [-math.inf] * c["vocab_size"]
    for d, x in enumerate(drafted):
        out[d + head["d2t"][d]] = x
    return out


def path(parent, node):
    line = []
    while node >= 0:
        line.insert(0, node)
        node = parent[node]
    return line


def head_tree(head, embed, features, ids, parent, tokens, c):
    """Runs each path as a plain sequence; a node's output is the feature of its children."""
    made = {-1: run_head(head, [embed[i] for i in ids[1:]], features, c)[-1]}
    for node in range(len(parent)):
        line = path(parent, node)
        embedded = [embed[i] for i in ids[1:] + [tokens[i] for i in line]]
        known = features + [made[parent[i]] for i in line]
        made[node] = run_head(head, embedded, known, c)[-1]
    return made


def make_head(c):
    draw = random.Random(20250303)
    hidden, ffn, width = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    q, kv = c["num_attention_heads"] * width, c["num_key_value_heads"] * width
    ids = sorted(draw.sample(range(c["vocab_size"]), DRAFT_VOCAB))
    tensors = {"d2t": ("I64", [DRAFT_VOCAB], [x - d for d, x in enumerate(ids)])}

    def add(name, *shape):
        around = 1.0 if len(shape) == 1 else 0.0
        flat = [around + draw.uniform(-0.3, 0.3) for _ in range(math.prod(shape))]
        tensors[name + ".weight"] = ("F32", list(shape), flat)
    add("fc", hidden, 3 * hidden)
    for name, rows in ("q", q), ("k", kv), ("v", kv):
        add(f"midlayer.self_attn.{name}_proj", rows, 2 * hidden)
    add("midlayer.self_attn.o_proj", hidden, q)
    for name in "gate", "up":
        add(f"midlayer.mlp.{name}_proj", ffn, hidden)
    add("midlayer.mlp.down_proj", hidden, ffn)
    for name in "input_layernorm", "hidden_norm", "post_attention_layernorm":
        add("midlayer." + name, hidden)
    add("norm", hidden)
    add("lm_head", DRAFT_VOCAB, hidden)
    tensors["t2d"] = ("BOOL", [c["vocab_size"]], [int(i in ids) for i in range(c["vocab_size"])])
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("-o", default=os.path.join(here, "fixtures"), metavar="FOLDER")
    out = parser.parse_args().o
    target = read(os.path.join(out, "llama", "model.safetensors"))
    about = json.load(open(os.path.join(out, "llama", "config.json")))
    c = {k: about[k] for k in ("bos_token_id", "eos_token_id", "head_dim", "hidden_act",
                               "hidden_size", "max_position_embeddings", "num_attention_heads",
                               "num_key_value_heads", "rms_norm_eps", "vocab_size")}
    c.update(architectures=["LlamaForCausalLMEagle3"], model_type="llama", intermediate_size=20,
             num_hidden_layers=1, draft_vocab_size=DRAFT_VOCAB, rope_theta=10000.0,
             eagle_aux_hidden_state_layer_ids=TAPS, tie_word_embeddings=False,
             torch_dtype="float32")
    folder = os.path.join(out, "llama_eagle3")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w") as f:
        f.write(json.dumps(c, indent=2) + "\n")
    write(os.path.join(folder, "model.safetensors"), make_head(c))

    head = read(os.path.join(folder, "model.safetensors"))
    ids = read(os.path.join(out, "llama", "expected.safetensors"))["tokens"][:CONTEXT]
    embed = target["model.embed_tokens.weight"]
    features = [multiply(head["fc.weight"], x) for x in target_features(target, ids[:-1], about)]
    pairs = [logits_of(head, row, c)
             for row in run_head(head, [embed[i] for i in ids[1:]], features, c)]
    draw = random.Random(7)
    tokens = [draw.randrange(c["vocab_size"]) for _ in PARENT]
    tokens[2] = tokens[0]  # two independent drafts that agree
    made = head_tree(head, embed, features, ids, PARENT, tokens, c)
    chain, rows = [], [pairs[-1]]
    while len(rows) <= CHAIN:
        top = sorted(rows[-1])[-2:]
        if top[1] - top[0] < 1e-2:
            raise SystemExit("a greedy step is not decided")
        chain.append(rows[-1].index(top[1]))
        line = list(range(-1, len(chain) - 1))  # each token's parent is the one before
        last = head_tree(head, embed, features, ids, line, chain, c)[len(chain) - 1]
        rows.append(logits_of(head, last, c))

    def matrix(x):
        return "F32", [len(x), len(x[0])], sum(x, [])

    def vector(x):
        return "I32", [len(x)], x
    write(os.path.join(folder, "expected.safetensors"),
          dict(tokens=vector(ids), pair_logits=matrix(pairs), chain_token=vector(chain[:CHAIN]),
               chain_logits=matrix(rows[:CHAIN]), parent=vector(PARENT), tree_token=vector(tokens),
               tree_logits=matrix([logits_of(head, made[i], c) for i in range(len(PARENT))])))
    print(f"{folder}: {len(pairs)} pairs, chain {chain[:CHAIN]}")


if __name__ == "__main__":
    main()
