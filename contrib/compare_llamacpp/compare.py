# SPDX-License-Identifier: Apache-2.0
"""Compares the decode speed of draftscope live and llama.cpp on equal random weights.

    python compare.py --draftscope ../../draftscope --work /tmp/models > compare.csv

Requires numpy, gguf and llama-cpp-python. Writes a checkpoint in the shape of SmolLM2-135M (Hugging
Face layout) and a GGUF file of the same weights for each dtype, runs both programs in turn, one
token per pass, and prints the best of the rounds as CSV. README.md describes what is timed.
"""
import argparse
import contextlib
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import gguf
import numpy as np

HIDDEN, HEADS, KV_HEADS, FORWARD, VOCAB = 576, 9, 3, 1536, 49152
HEAD, EPSILON, THETA, POSITIONS = HIDDEN // HEADS, 1e-5, 1e5, 8192
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
          "intermediate_size": FORWARD, "num_attention_heads": HEADS,
          "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB, "tie_word_embeddings": True,
          "rms_norm_eps": EPSILON, "rope_theta": THETA, "max_position_embeddings": POSITIONS,
          "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}
TORCH = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
FILE_TYPE = {"F32": gguf.LlamaFileType.ALL_F32, "BF16": gguf.LlamaFileType.MOSTLY_BF16,
             "F16": gguf.LlamaFileType.MOSTLY_F16}


def matrices(layers):
    """Yields names in both formats, shape, and number of heads whose rows GGUF reorders (0:
    none)."""
    yield "model.embed_tokens", "token_embd", (VOCAB, HIDDEN), 0
    for i in range(layers):
        ours, theirs, kv = f"model.layers.{i}.", f"blk.{i}.", KV_HEADS * HEAD
        yield ours + "self_attn.q_proj", theirs + "attn_q", (HIDDEN, HIDDEN), HEADS
        yield ours + "self_attn.k_proj", theirs + "attn_k", (kv, HIDDEN), KV_HEADS
        yield ours + "self_attn.v_proj", theirs + "attn_v", (kv, HIDDEN), 0
        yield ours + "self_attn.o_proj", theirs + "attn_output", (HIDDEN, HIDDEN), 0
        yield ours + "mlp.gate_proj", theirs + "ffn_gate", (FORWARD, HIDDEN), 0
        yield ours + "mlp.up_proj", theirs + "ffn_up", (FORWARD, HIDDEN), 0
        yield ours + "mlp.down_proj", theirs + "ffn_down", (HIDDEN, FORWARD), 0


def norms(layers):
    for i in range(layers):
        yield f"model.layers.{i}.input_layernorm", f"blk.{i}.attn_norm"
        yield f"model.layers.{i}.post_attention_layernorm", f"blk.{i}.ffn_norm"
    yield "model.norm", "output_norm"


def interleaved(x, heads):
    """llama.cpp rotates neighboring elements, Hugging Face the two halves of a head."""
    if not heads:
        return x
    rows, cols = x.shape
    return x.reshape(heads, 2, rows // heads // 2, cols).swapaxes(1, 2).reshape(rows, cols)


def stored(x, dtype):
    """Converts to the stored type; BF16 is the upper 16 bits of float32."""
    if dtype == "BF16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(np.float16) if dtype == "F16" else x


def draw(dtype, layers):
    """Yields every tensor as (both names, stored array, heads); norms are ones in F32."""
    random = np.random.default_rng(1)
    for ours, theirs, shape, heads in matrices(layers):
        x = random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        yield ours + ".weight", theirs + ".weight", stored(x, dtype), heads
    for ours, theirs in norms(layers):
        yield ours + ".weight", theirs + ".weight", np.ones(HIDDEN, np.float32), 0


def write_safetensors(folder, tensors, dtype, layers):
    header, at = {}, 0
    for name, _, x, _ in tensors:
        kind = "F32" if x.dtype == np.float32 else dtype
        header[name] = {"dtype": kind, "shape": x.shape, "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder + "/model.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for _, _, x, _ in tensors:
            f.write(x.tobytes())
    with open(folder + "/config.json", "w", encoding="utf-8") as f:
        json.dump({**CONFIG, "num_hidden_layers": layers, "torch_dtype": TORCH[dtype]}, f)


def write_gguf(path, tensors, dtype, layers):
    w = gguf.GGUFWriter(path, "llama")
    w.add_file_type(FILE_TYPE[dtype])
    w.add_block_count(layers)
    w.add_context_length(POSITIONS)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(FORWARD)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_layer_norm_rms_eps(EPSILON)
    w.add_rope_freq_base(THETA)
    w.add_rope_dimension_count(HEAD)
    w.add_vocab_size(VOCAB)
    w.add_tokenizer_model("no_vocab")
    for _, name, x, heads in tensors:
        x = interleaved(x, heads)
        if x.dtype == np.uint16:
            w.add_tensor(name, x.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            w.add_tensor(name, x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(work, dtype, layers):
    folder = os.path.join(work, f"{dtype}-{layers}")
    if not os.path.exists(folder + "/done"):
        os.makedirs(folder, exist_ok=True)
        tensors = list(draw(dtype, layers))
        write_safetensors(folder, tensors, dtype, layers)
        write_gguf(folder + "/model.gguf", tensors, dtype, layers)
        with open(folder + "/done", "w", encoding="utf-8"):
            pass
    return folder


@contextlib.contextmanager
def quiet():
    """Discards stderr, where llama.cpp reports the loading of a model."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)


def run_llama(folder, threads, context, tokens):
    """Returns tokens per second of greedy decoding, one token per pass, and the tokens."""
    import llama_cpp as lc
    with quiet():
        model = lc.Llama(folder + "/model.gguf", n_ctx=context + tokens + 8, n_threads=threads,
                         n_threads_batch=threads, n_gpu_layers=0, verbose=False)
    ctx, batch = model.ctx, lc.llama_batch_init(max(context, 1), 0, 1)

    def decode(ids, first):
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i] = token, first + i
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
            batch.logits[i] = i == len(ids) - 1
        if lc.llama_decode(ctx, batch):
            sys.exit("llama_decode failed")
        logits = np.ctypeslib.as_array(lc.llama_get_logits_ith(ctx, -1), shape=(VOCAB,))
        return int(logits.argmax())

    token, out = decode([3 + i % 100 for i in range(context)], 0), []
    start = time.perf_counter()
    for i in range(tokens):
        out.append(token)
        token = decode([token], context + i)
    return tokens / (time.perf_counter() - start), out


def run_draftscope(o, folder, threads, context, tokens):
    """Returns tokens per second from a profile: a pass of one token in the middle of that range."""
    with tempfile.TemporaryDirectory() as scratch:
        table = scratch + "/profile.tsv"
        subprocess.run([o.draftscope, "live", "profile", "--target", folder, "--device", "cpu",
                        "--threads", str(threads), "--tokens", "1", "--context",
                        str(context + tokens // 2), "--prefill-tokens", "0", "--repeats",
                        str(tokens), "-o", table, "--progress", "never"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(table, encoding="utf-8") as f:
            [row] = csv.DictReader((line for line in f if line[0] != "#"), delimiter="\t")
    return 1 / float(row["target_s"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--draftscope", required=True, metavar="PATH")
    parser.add_argument("--work", required=True, metavar="DIR", help="folder for the models")
    parser.add_argument("--dtypes", default="F32,BF16,F16")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=30, help="of the model (30: SmolLM2-135M)")
    o = parser.parse_args()
    import llama_cpp
    print(f"# llama-cpp-python {llama_cpp.__version__}, {platform.machine()}, {o.layers} layers, "
          f"context {o.context}, {o.tokens} passes of one token, load {os.getloadavg()[0]:.1f}")
    print("dtype,threads,draftscope_tokens_s,llamacpp_tokens_s,ratio")
    for dtype in o.dtypes.split(","):
        folder = make(o.work, dtype, o.layers)
        for threads in map(int, o.threads.split(",")):
            ours = theirs = 0
            for _ in range(o.rounds):
                ours = max(ours, run_draftscope(o, folder, threads, o.context, o.tokens))
                theirs = max(theirs, run_llama(folder, threads, o.context, o.tokens)[0])
            print(f"{dtype},{threads},{ours:.1f},{theirs:.1f},{ours / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
