# SPDX-License-Identifier: Apache-2.0
"""Writes tests/oracle/gguf: GGUF files of the checkpoints in tests/oracle/fixtures, blocks of every
tensor type with their numbers, and small tokenizers with the ids of texts.

    python make_gguf.py        (gguf, numpy, safetensors, torch; xllamacpp, which is llama.cpp)

Not needed to build or to test. Names, metadata and blocks are written by gguf-py. The order of rows,
the norms of Gemma and the factors of the rotation are those of llama.cpp's convert_hf_to_gguf.py. The
numbers of blocks are gguf-py's, the ids llama.cpp's.
"""
import json
import math
import os
import sys
import urllib.request

import gguf
import numpy as np
import torch
from gguf.quants import dequantize
from safetensors.numpy import save_file
from safetensors.torch import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES, OUT = os.path.join(HERE, "fixtures"), os.path.join(HERE, "gguf")
TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
ARCHS = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gpt2": "gpt2",
         "gemma3_text": "gemma3"}
MODELS = ["llama", "llama3", "llama_fp16", "llama_bf16", "qwen2", "qwen3", "gpt2",
          "gemma3_new", "gemma3_text"]


def pairs(weights, heads):
    """Puts the rows of a head into the order of llama.cpp's rotation."""
    shape = weights.shape
    return weights.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def rope_factors(config):
    """The numbers that llama.cpp's converter writes for Llama 3."""
    rope = config.get("rope_scaling") or config["rope_parameters"]
    theta = rope.get("rope_theta") or config["rope_theta"]
    head = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    freqs = 1.0 / (theta ** (torch.arange(0, head, 2, dtype=torch.float32) / head))
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    old, factor = rope["original_max_position_embeddings"], rope["factor"]
    out = []
    for freq in freqs:
        wavelength = 2 * math.pi / freq
        if wavelength < old / high:
            out.append(1)
        elif wavelength > old / low:
            out.append(factor)
        else:
            smooth = (old / wavelength - low) / (high - low)
            out.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(out, dtype=np.float32)


def add_metadata(w, config, vocab):
    kind = config["model_type"]
    rope = config.get("rope_parameters") or {}
    heads = config.get("num_attention_heads") or config["n_head"]
    hidden = config.get("hidden_size") or config["n_embd"]
    w.add_block_count(config.get("num_hidden_layers") or config["n_layer"])
    w.add_context_length(config.get("max_position_embeddings") or config["n_positions"])
    w.add_embedding_length(hidden)
    w.add_head_count(heads)
    w.add_feed_forward_length(config.get("intermediate_size") or 4 * hidden)
    w.add_vocab_size(vocab)
    if kind == "gpt2":
        w.add_layer_norm_eps(config["layer_norm_epsilon"])
        return
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_head_count_kv(config["num_key_value_heads"])
    head = config.get("head_dim") or hidden // heads
    w.add_key_length(head)
    w.add_value_length(head)
    w.add_rope_dimension_count(head)
    full = rope.get("full_attention", rope)
    w.add_rope_freq_base(full.get("rope_theta") or config["rope_theta"])
    if kind == "gemma3_text":
        w.add_sliding_window(config["sliding_window"])
        local = config.get("rope_local_base_freq") or rope["sliding_attention"]["rope_theta"]
        w.add_float32("gemma3.rope.freq_base_swa", local)
        if config.get("layer_types"):
            w.add_sliding_window_pattern([t == "sliding_attention" for t in config["layer_types"]])
        else:
            w.add_uint32("gemma3.attention.sliding_window_pattern", config["sliding_window_pattern"])
        scaling = config.get("rope_scaling") or {}
        if scaling:
            w.add_rope_scaling_type(gguf.RopeScalingType(scaling["rope_type"]))
            w.add_rope_scaling_factor(scaling["factor"])


def convert(name):
    folder = os.path.join(FIXTURES, name)
    config = json.load(open(os.path.join(folder, "config.json")))
    arch = ARCHS[config["model_type"]]
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    layers = config.get("num_hidden_layers") or config["n_layer"]
    names = gguf.get_tensor_name_map(
        next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), layers)
    w = gguf.GGUFWriter(os.path.join(OUT, name + ".gguf"), arch)
    embed = next(v for k, v in tensors.items() if k.endswith(("embed_tokens.weight", "wte.weight")))
    add_metadata(w, config, embed.shape[0])
    for key in ("bos_token_id", "eos_token_id"):
        w.add_uint32("tokenizer.ggml." + key, config[key])
    if (config.get("rope_scaling") or config.get("rope_parameters") or {}).get("rope_type") == "llama3":
        w.add_tensor("rope_freqs.weight", rope_factors(config))
    for key, value in tensors.items():
        target = names.get_name(key, try_suffixes=(".weight", ".bias"))
        if target is None:
            continue  # buffers
        kept = {torch.float16: np.float16}.get(value.dtype, np.float32)
        bf16 = value.dtype == torch.bfloat16 and value.ndim > 1
        x = value.to(torch.float32).numpy()
        if arch == "llama" and ".q_proj." in key:
            x = pairs(x, config["num_attention_heads"])
        if arch == "llama" and ".k_proj." in key:
            x = pairs(x, config["num_key_value_heads"])
        if arch == "gpt2" and x.ndim > 1 and key.split(".")[-2] in ("c_attn", "c_fc", "c_proj"):
            x = x.T
        if arch == "gemma3" and key.endswith("norm.weight"):
            x = x + 1
        if arch == "gemma3" and key.endswith("q_norm.weight"):
            # No key has the scale of the scores; files of Gemma 3 have that of the head.
            x = x * math.sqrt(config["head_dim"] / config["query_pre_attn_scalar"])
        if bf16:
            w.add_tensor(target, gguf.quantize(np.ascontiguousarray(x), gguf.GGMLQuantizationType.BF16),
                         raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            w.add_tensor(target, np.ascontiguousarray(x.astype(kept if x.ndim > 1 else np.float32)))
    finish(w)


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def blocks():
    """Random blocks of each type; scales are finite."""
    r = np.random.default_rng(1)
    out = {}
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        numbers, size = gguf.GGML_QUANT_SIZES[kind]
        count = max(8, 256 // numbers * 4)
        raw = r.integers(0, 256, (count, size), dtype=np.uint8)
        if name in ("F32", "F16", "BF16"):
            x = (r.standard_normal(count) * 10.0 ** r.integers(-7, 5, count)).astype(np.float32)
            x[:3] = [0.0, -0.0, 6.1e-6]  # the last one is subnormal in F16
            raw = {"F32": lambda: x.view(np.uint8), "F16": lambda: x.astype(np.float16).view(np.uint8),
                   "BF16": lambda: gguf.quantize(x.reshape(1, -1), kind).view(np.uint8)}[name]()
            raw = raw.reshape(count, size)
        places = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
                  "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}.get(name, [])
        for at in places:
            scale = (r.standard_normal(count) * 10.0 ** r.integers(-6, 1, count)).astype(np.float16)
            scale[0] = -scale[0]
            raw[:, at:at + 2] = scale.view(np.uint8).reshape(count, 2)
        out[name + ".blocks"] = raw.reshape(-1)
        out[name + ".numbers"] = np.array(dequantize(raw.reshape(1, -1), kind), np.float32).reshape(-1)
    save_file(out, os.path.join(OUT, "blocks.safetensors"))


# --- tokenizers ----------------------------------------------------------------------------------

TEXTS = ["Hello world", " hello  world ", "the then there 1234 12.5", "it's the\n\n\nend\t.", "",
         "naïve café 中文 🦙", "<|end|>the<|end|>", "<think>hello</think> x", "a" * 20, "    lo",
         "<s>low lower lowest</s>", "def f(x):\n    return x  # note", "½ ²³ Ⅷ", "<0x41> <unk>"]


def byte_alphabet():
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in own]
    return {b: chr(b) for b in own} | {b: chr(256 + i) for i, b in enumerate(rest)}


def bpe(pre, path):
    words = "the then there hello world lower lowest  return def 's".split(" ")
    alphabet = byte_alphabet()
    tokens, merges = [alphabet[b] for b in range(256)], []
    for word in words + [" " + x for x in words]:
        text = "".join(alphabet[b] for b in word.encode())
        for i in range(1, len(text)):
            if text[:i + 1] not in tokens:
                merges.append(text[:i] + " " + text[i])
                tokens.append(text[:i + 1])
    types = [1] * len(tokens) + [3, 4, 4]
    tokens += ["<|end|>", "<think>", "</think>"]
    tokenizer(path, "gpt2", pre, tokens, types, None, merges,
              {"bos_token_id": len(tokens) - 3, "eos_token_id": len(tokens) - 3})


def pieces(path, prefix):
    words = "the then there hello world lower lowest return def lo low".split()
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    types, scores = [2, 3, 3] + [6] * 256, [0.0] * 259
    normal = []
    for word in words + ["\u2581" + x for x in words]:
        for i in range(1, len(word)):
            if word[:i + 1] not in normal:
                normal.append(word[:i + 1])
            if word[i - 1:i + 1] not in normal:
                normal.append(word[i - 1:i + 1])
    single = sorted(set("".join(words) + "\u2581.,12aéï中"))
    scores += [-float(i) for i in range(len(normal) + len(single))]
    tokens += normal + single
    types += [1] * (len(normal) + len(single))
    # Runs of spaces, as Gemma has them, whose texts have no space put before them.
    for user in ["\n\n", "<think>"] + ([] if prefix else ["  ", "   ", "    "]):
        tokens.append(user)
        types.append(4)
        scores.append(-1000.0)
    tokenizer(path, "llama", "default", tokens, types, scores, None,
              {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0},
              {"add_space_prefix": prefix})


TEMPLATE = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
            "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
            "{{ '<|im_start|>assistant\n' }}{% endif %}")


def tokenizer(path, model, pre, tokens, types, scores, merges, ids, flags={}):
    """A model of one layer, because llama.cpp loads nothing less, and the ids of TEXTS."""
    w = gguf.GGUFWriter(os.path.join(OUT, path + ".gguf"), "llama")
    w.add_block_count(1)
    w.add_context_length(64)
    w.add_embedding_length(8)
    w.add_feed_forward_length(8)
    w.add_head_count(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(8)
    w.add_tokenizer_model(model)
    w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types(types)
    if scores:
        w.add_token_scores(scores)
    if merges:
        w.add_token_merges(merges)
    for key, value in ids.items():
        w.add_uint32("tokenizer.ggml." + key, value)
    for key, value in flags.items():
        w.add_bool("tokenizer.ggml." + key, value)
    w.add_chat_template(TEMPLATE)
    r = np.random.default_rng(2)
    w.add_tensor("token_embd.weight", r.standard_normal((len(tokens), 8)).astype(np.float16))
    for name, rows in (("attn_norm", 0), ("attn_q", 8), ("attn_k", 8), ("attn_v", 8),
                       ("attn_output", 8), ("ffn_norm", 0), ("ffn_gate", 8), ("ffn_up", 8),
                       ("ffn_down", 8)):
        x = r.standard_normal((rows, 8) if rows else 8)
        w.add_tensor(f"blk.0.{name}.weight", x.astype(np.float16 if rows else np.float32))
    w.add_tensor("output_norm.weight", np.ones(8, np.float32))
    finish(w)
    with open(os.path.join(OUT, path + ".jsonl"), "w") as f:
        for text, tokens in zip(TEXTS, llama_cpp(os.path.join(OUT, path + ".gguf"))):
            f.write(json.dumps({"text": text, "ids": tokens}) + "\n")


def llama_cpp(path):
    import xllamacpp
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel, params.warmup = 64, 1, False
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    for text in TEXTS:
        body = {"content": text, "add_special": True, "parse_special": True}
        request = urllib.request.Request(server.listening_address + "/tokenize",
                                         json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        yield json.load(urllib.request.urlopen(request))["tokens"]


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    for model in MODELS:
        convert(model)
    blocks()
    bpe("smollm", "bpe_smollm")
    bpe("llama-bpe", "bpe_llama3")
    pieces("pieces", True)
    pieces("pieces_plain", False)
    sys.stdout.flush()
