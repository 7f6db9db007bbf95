# SPDX-License-Identifier: Apache-2.0
"""Evaluates the stored models on held-out problems: loss, acceptance of drafted chains, accuracy of
the heads. Every step recomputes all tokens without a KV cache, as a simple reference."""
import math

import torch
import torch.nn.functional as F

import text
from eagle3 import run_target
from heads import features_of
from language import logits_of, text_loss

GAMMA, LENGTH, PROMPTS = 4, 64, 50


def held_out_loss(model, rows, documents):
    """Returns nats per token and bits per byte, without the first token of a document (<s>)."""
    nats = sum(text_loss(logits_of(model, d[None]), d[None]).item() * (len(d) - 1)
               for d in documents)
    octets = sum(len((prompt + answer).encode()) for prompt, answer in rows)
    return nats / sum(len(d) - 1 for d in documents), nats / octets / math.log(2)


def distributions(model, ids, last, temperature):
    """Returns the next-token distributions after the last positions; one-hot at temperature 0."""
    logits = logits_of(model, torch.tensor([ids]))[0, -last:].double()
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).double()
    return (logits / temperature).softmax(-1)


def speculate(target, draft, prompt, temperature, generator):
    """Runs speculative decoding with chains of GAMMA draft tokens and rejection sampling.

    Returns (ids, number of drafted tokens, number of accepted tokens)."""
    def draw(distribution):
        return torch.multinomial(distribution, 1, generator=generator).item()

    ids, drafted, accepted = list(prompt), 0, 0
    while len(ids) < len(prompt) + LENGTH and text.EOS_ID not in ids:
        start, proposals = len(ids), []
        for _ in range(GAMMA):
            proposals.append(distributions(draft, ids, 1, temperature)[0])
            ids.append(draw(proposals[-1]))
        true = distributions(target, ids, GAMMA + 1, temperature)
        taken, distribution = 0, true[GAMMA]
        for i, y in enumerate(ids[start:]):
            if torch.rand((), generator=generator) * proposals[i][y] >= true[i][y]:
                distribution = (true[i] - proposals[i]).clamp(min=0)
                break
            taken += 1
        ids = ids[:start + taken] + [draw(distribution / distribution.sum())]
        drafted, accepted = drafted + GAMMA, accepted + taken
    if text.EOS_ID in ids:
        ids = ids[:ids.index(text.EOS_ID) + 1]
    return ids, drafted, accepted


def eagle_logits(target, eagle, ids, begin):
    """Returns logits [GAMMA, n, vocabulary] of a chain from every position, on the given text."""
    features = features_of(target, ids[None])
    embedded = target.model.embed_tokens(ids)[None]
    rows = []
    for i in range(begin, len(ids) - GAMMA):  # token i is known, feature i is not
        known = features[:, :i]
        for d in range(GAMMA):
            guess = eagle(embedded[:, 1:i + d + 1], known)[:, -1:]
            known = torch.cat([known, guess], 1)
        rows.append(target.lm_head(known[0, -GAMMA:]))
    return torch.stack(rows, 1)


def eagle3_logits(target, head, ids, begin):
    """The same of an EAGLE-3 head; tokens outside its draft vocabulary have minus infinity."""
    features, _ = run_target(target, ids[None])
    embedded = target.model.embed_tokens(ids[1:])[None]
    steps = head(embedded, features[:, :len(ids) - GAMMA - 1], GAMMA)
    rows = torch.cat(steps)[:, begin - 1:]
    out = rows.new_full((*rows.shape[:2], target.config.vocab_size), float("-inf"))
    out[..., head.kept()] = rows
    return out


def medusa_logits(target, medusa, ids, begin):
    features = features_of(target, ids[None])[0, begin - 1:len(ids) - GAMMA - 1]
    return torch.stack(medusa(features))


LOGITS = {"eagle": eagle_logits, "eagle3": eagle3_logits, "medusa": medusa_logits}


def acceptance(target, logits_fn, head, texts, temperature):
    """Returns the acceptance probability of a drafted token at depth 1..GAMMA at every position of
    the target's text, given the target's tokens before it: [GAMMA, positions]."""
    columns = []
    for ids, begin in texts:
        ids = torch.tensor(ids)
        if len(ids) <= begin + GAMMA:
            continue
        guess, true = logits_fn(target, head, ids, begin), logits_of(target, ids[None])[0]
        at = torch.arange(begin, len(ids) - GAMMA) + torch.arange(GAMMA)[:, None]
        if temperature == 0:
            columns.append((guess.argmax(-1) == ids[at + 1]).double())
        else:
            p, q = ((x / temperature).softmax(-1) for x in (true[at], guess))
            columns.append(torch.minimum(p, q).sum(-1).double())
    return torch.cat(columns, 1)


def report_heads(target, heads, texts, temperature):
    """Prints acceptance by depth and, for greedy chains, the mean number of accepted tokens."""
    for name, logits_fn, head in heads:
        rows = acceptance(target, logits_fn, head, texts, temperature)
        line = ", ".join(f"{x:.3f}" for x in rows.mean(1).tolist())
        chain = rows.cumprod(0).sum(0).mean().item()
        print(f"{name}: temperature {temperature}: acceptance at depth 1..{GAMMA}: {line}"
              + (f"; {chain:.3f} tokens per chain" if temperature == 0 else "")
              + f" ({rows.shape[1]} positions)", flush=True)


@torch.no_grad()
def report(target, draft, heads, tokenizer, rows, seed):
    """heads maps "eagle", "eagle3" and "medusa" to a head each."""
    documents = text.encode(tokenizer, rows)
    for name, model in ("target", target), ("draft", draft):
        nats, bits = held_out_loss(model, rows, documents)
        print(f"{name}: {nats:.4f} nats per token, {bits:.4f} bits per byte", flush=True)
    chosen = rows[::len(rows) // PROMPTS or 1][:PROMPTS]
    prompts = [tokenizer.encode(prompt).ids for prompt, _ in chosen]
    known = [(name, LOGITS[name], head) for name, head in heads.items()]
    for temperature in 1, 0:
        generator = torch.Generator().manual_seed(seed)
        out = [speculate(target, draft, p, temperature, generator) for p in prompts]
        drafted, accepted = (sum(o[i] for o in out) for i in (1, 2))
        print(f"temperature {temperature}: accepted {accepted} of {drafted} drafted "
              f"({accepted / drafted:.3f})", flush=True)
        for o in out[:2]:
            print("    " + tokenizer.decode(o[0]).replace("\n", "\n    "))
        texts = [(o[0], len(p)) for o, p in zip(out, prompts)]
        report_heads(target, known, texts, temperature)
