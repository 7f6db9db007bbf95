# SPDX-License-Identifier: Apache-2.0
"""What PyTorch and transformers do on the same machine, measured with their own code.

    python peer.py --draftscope PROGRAM --data DIR -o OUT [--model FILE.gguf] [--device cuda|cpu]

Part `graph`: the time t(n) of a forward pass on n tokens of a Llama-shaped model with random weights, in plain
PyTorch. On a GPU it is a CUDA graph of exactly this context and n, the fastest form that PyTorch has without a
compiler. Its logits are first compared with those of transformers' LlamaForCausalLM on a tiny shape.

Part `transformers`: the speedup of transformers' own prompt lookup and early exit on SmolLM2, predicted from its
own t(n). Its plain outputs, with the argmax of its first layers, become a trace, which `draftscope sim` replays.
Calls and accepted tokens of each request must equal those that transformers counts. Then, for a request,

    plain    = P + (calls - 1) t(1) + calls o
    assisted = P + D + sum over calls with a draft of w tokens of (t(w + 1) + w d + o') - t(1)

P: pass over the prompt; t(n), d: passes on n tokens, and of the early layers on one; D: the early layers' pass
over the prompt, less d; o, o': what a call of transformers' generation loop takes in addition to its passes. The
loop is Python, and for a small model it takes a large part of the time. It is measured on one prompt that is left out
of the comparison, and predictions without it are printed as well. Measured times are medians of interleaved runs.

OUT gets peer-graph.tsv, peer-transformers.tsv and peer.md. Speeds are printed and never judged. Exit codes:
0; 1 a count or a logit differs; 2 usage; 77 something is missing.
"""
import argparse
import bisect
import collections
import contextlib
import datetime
import json
import pathlib
import statistics
import sys
import time
import types

import validate as v

PARTS = ("graph", "transformers")
Shape = collections.namedtuple("Shape", "hidden, inner, layers, heads, kv_heads, vocabulary, tied")
SHAPES = {
    "tiny": Shape(256, 512, 2, 4, 2, 512, False),
    "llama-3-8b": Shape(4096, 14336, 32, 32, 8, 128256, False),
    "llama-3.2-1b": Shape(2048, 8192, 16, 32, 8, 128256, True),
    "llama-2-7b": Shape(4096, 11008, 32, 32, 32, 32000, False),
}
TOKENS = (1, 4, 16, 64)
EPS = 1e-6


# --- time ----------------------------------------------------------------------------------------


def wait(device):
    import torch
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run, device, repeats=5, after=lambda: None):
    """Median seconds of run() until its result is there."""
    times = []
    for _ in range(repeats + 1):
        wait(device)
        begin = time.perf_counter()
        run()
        wait(device)
        times.append(time.perf_counter() - begin)
        after()
    return statistics.median(times[1:])


def device_seconds(run, device, repeats=30):
    """Median seconds that the device itself takes."""
    import torch
    if device == "cpu":
        return seconds(run, device, repeats)
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats + 3)]
    for begin, end in marks:
        begin.record()
        run()
        end.record()
    wait(device)
    return statistics.median(begin.elapsed_time(end) for begin, end in marks[3:]) / 1e3


# --- a Llama-shaped model ------------------------------------------------------------------------


def model_of(shape, dtype, device, tokens, matrix):
    """A model whose matrices are matrix(name, layer, rows, columns), with a KV cache of `tokens`."""
    import torch
    s, d = shape, shape.hidden // shape.heads
    sizes = {"qkv": ((s.heads + 2 * s.kv_heads) * d, s.hidden), "o": (s.hidden, s.heads * d),
             "gate_up": (2 * s.inner, s.hidden), "down": (s.hidden, s.inner)}
    embed = matrix("embed", None, s.vocabulary, s.hidden)
    angle = torch.outer(torch.arange(tokens), 1e4 ** (-torch.arange(0, d, 2) / d))
    cos, sin = angle.cos(), angle.sin()
    return types.SimpleNamespace(
        shape=shape, embed=embed, head=embed if s.tied else matrix("head", None, s.vocabulary, s.hidden),
        norm=torch.ones(s.hidden, dtype=dtype, device=device),
        layers=[{name: matrix(name, i, *size) for name, size in sizes.items()} for i in range(s.layers)],
        # x cos + roll(x) sin turns the pairs (i, i + d/2).
        rope=[torch.cat(x, 1).to(device, dtype)[:, None] for x in ((cos, cos), (-sin, sin))],
        cache=[torch.empty(2, tokens, s.kv_heads, d, dtype=dtype, device=device).normal_()
               for _ in range(s.layers)])


def random_model(shape, dtype, device, tokens):
    import torch
    return model_of(shape, dtype, device, tokens, lambda name, layer, *size: torch.empty(
        *size, dtype=dtype, device=device).normal_(0, .02))


def model_like(theirs, shape, dtype, device, tokens):
    """The model with the weights of a LlamaForCausalLM (whose norms are ones)."""
    import torch
    weights = theirs.state_dict()
    parts = {"qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "o": ("self_attn.o_proj",),
             "gate_up": ("mlp.gate_proj", "mlp.up_proj"), "down": ("mlp.down_proj",)}
    other = {"embed": "model.embed_tokens.weight", "head": "lm_head.weight"}

    def matrix(name, layer, *size):
        keys = [f"model.layers.{layer}.{x}.weight" for x in parts.get(name, ())] or [other[name]]
        return torch.cat([weights[x] for x in keys]).reshape(size).to(device, dtype)
    return model_of(shape, dtype, device, tokens, matrix)


def mask_of(way, n, context, device):
    import torch
    from torch.nn.attention.bias import causal_lower_right
    if n == 1:
        return None
    if way == "causal_lower_right":  # lets SDPA take FlashAttention
        return causal_lower_right(n, context + n)
    return torch.ones(n, context + n, dtype=torch.bool, device=device).tril(context)


def forward(m, ids, context, mask):
    """Logits of ids, which follow `context` tokens in the cache."""
    import torch
    from torch.nn import functional as f
    s, n = m.shape, len(ids)
    cos, sin = (x[context:context + n] for x in m.rope)
    x = f.embedding(ids, m.embed)
    for w, cache in zip(m.layers, m.cache):
        qkv = f.linear(f.rms_norm(x, (s.hidden,), m.norm, EPS), w["qkv"]).view(n, -1, s.hidden // s.heads)
        qk = qkv[:, :s.heads + s.kv_heads]
        qk = torch.addcmul(qk * cos, qk.roll(qk.shape[-1] // 2, -1), sin)
        cache[0, context:context + n] = qk[:, s.heads:]
        cache[1, context:context + n] = qkv[:, s.heads + s.kv_heads:]
        q, k, values = (y.transpose(0, 1)[None] for y in (qk[:, :s.heads], *cache[:, :context + n]))
        y = f.scaled_dot_product_attention(q, k, values, mask, enable_gqa=s.heads != s.kv_heads)
        x.addmm_(y[0].transpose(0, 1).reshape(n, -1), w["o"].T)
        gate, up = f.linear(f.rms_norm(x, (s.hidden,), m.norm, EPS), w["gate_up"]).chunk(2, -1)
        x.addmm_(f.silu(gate) * up, w["down"].T)
    return f.linear(f.rms_norm(x, (s.hidden,), m.norm, EPS), m.head)


def prepared(run, device):
    """run() as a function that replays it (on a GPU as a CUDA graph), and its result."""
    import torch
    if device == "cpu":
        return run, run()
    # Libraries choose kernels and allocate on the stream of the capture, before it.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        out = run()
    graph.replay()
    torch.cuda.synchronize()
    return graph.replay, out


@contextlib.contextmanager
def attention():
    """FlashAttention where it can be used; never cuDNN's, which compiles a plan for each shape."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        yield


def logit_error(way, dtype, device):
    """Largest difference from transformers' logits (in float32, on the CPU), relative to the largest logit:
    of a prompt, of tokens after it, and of one more."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    s = SHAPES["tiny"]
    torch.manual_seed(1)
    theirs = LlamaForCausalLM(LlamaConfig(
        hidden_size=s.hidden, intermediate_size=s.inner, num_hidden_layers=s.layers, initializer_range=.08,
        num_attention_heads=s.heads, num_key_value_heads=s.kv_heads, vocab_size=s.vocabulary)).eval()
    ids = torch.randint(s.vocabulary, (25,))
    want = theirs(ids[None]).logits[0]
    m, worst = model_like(theirs, s, dtype, device, len(ids)), 0
    for begin, end in ((0, 17), (17, 24), (24, 25)):
        new, mask = ids[begin:end].to(device), mask_of(way, end - begin, begin, device)
        _, logits = prepared(lambda n=new, b=begin, k=mask: forward(m, n, b, k), device)
        worst = max(worst, float((logits.float().cpu() - want[begin:end]).abs().max()))
    return worst / float(want.abs().max())
