# SPDX-License-Identifier: Apache-2.0
"""Target and draft language model: shapes, losses, optimizer, checkpoints."""
import copy
import math
import pathlib
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import GenerationConfig

import text

SHAPE = dict(
    vocab_size=2048, bos_token_id=text.BOS_ID, eos_token_id=text.EOS_ID, tie_word_embeddings=True,
    max_position_embeddings=2048, rms_norm_eps=1e-5,
    rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
TARGET = SHAPE | dict(hidden_size=192, intermediate_size=512, num_hidden_layers=4,
                      num_attention_heads=6, num_key_value_heads=3, initializer_range=0.06)
DRAFT = SHAPE | dict(hidden_size=96, intermediate_size=256, num_hidden_layers=2,
                     num_attention_heads=3, num_key_value_heads=1, initializer_range=0.08)


def logits_of(model, ids):
    return model(input_ids=ids, use_cache=False).logits


def text_loss(logits, ids, ahead=1):
    """Cross-entropy of logits[:, i] against token i + ahead."""
    return F.cross_entropy(logits[:, :-ahead].flatten(0, 1), ids[:, ahead:].flatten())


def draft_loss(draft, target, ids):
    """KL divergence from the target's distributions, on which the acceptance rate depends."""
    dist = logits_of(target, ids).softmax(-1)
    guess = logits_of(draft, ids).log_softmax(-1)
    return F.kl_div(guess, dist, reduction="none").sum(-1).mean()


def optimize(name, model, loss_of, stream, steps, rate, save):
    """AdamW with linear warmup and cosine decay to 5 % of the rate. Saves the model regularly."""
    warmup = every = 100
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
         {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}],
        betas=(0.9, 0.95), fused=True)
    start, mean = time.monotonic(), 0.0
    for step in range(steps):
        cosine = 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / warmup) * (0.05 + 0.95 * cosine)
        loss = loss_of(next(stream))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        mean += loss.item()
        if (step + 1) % every == 0 or step + 1 == steps:
            print(f"{name}: step {step + 1} of {steps}, loss {mean / (step % every + 1):.4f}, "
                  f"{time.monotonic() - start:.0f} s", flush=True)
            mean = 0.0
            save()


def save_tensors(tensors, folder):
    """Writes bf16, and integers as they are, under a temporary name first, so that readers see
    complete files only."""
    part = pathlib.Path(folder) / "model.safetensors.part"
    save_file({k: (v.detach().to(torch.bfloat16) if v.is_floating_point() else v).contiguous()
               for k, v in tensors.items()}, part, metadata={"format": "pt"})
    part.chmod(0o644)
    part.rename(part.with_suffix(""))


def save_model(model, tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    config = copy.deepcopy(model.config)
    config.architectures, config.dtype = ["LlamaForCausalLM"], torch.bfloat16
    config.save_pretrained(folder)
    GenerationConfig(bos_token_id=text.BOS_ID, eos_token_id=text.EOS_ID).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    # The LM head is tied to the embedding and is not stored twice.
    save_tensors({k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}, folder)
