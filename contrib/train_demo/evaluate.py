# SPDX-License-Identifier: Apache-2.0
"""Evaluates the stored models on held-out problems: loss, acceptance of drafted chains, accuracy of
the heads. Every step recomputes all tokens without a KV cache, as a simple reference."""
import math

import torch
import torch.nn.functional as F

import text
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


def head_hits(target, eagle, medusa, texts):
    """Returns the share of positions in the target's greedy text where the argmax of a head at
    depth 1..4 is the target's token, given the target's tokens before it."""
    hits, count = {"eagle": [0] * GAMMA, "medusa": [0] * GAMMA}, 0
    for ids, begin in texts:
        ids = torch.tensor(ids)
        true = features_of(target, ids[None])
        embedded = target.model.embed_tokens(ids)[None]
        guesses = torch.stack(medusa(true[0])).argmax(-1)
        for i in range(begin, len(ids) - GAMMA):  # token i is known, feature i is not
            features = true[:, :i]
            for d in range(GAMMA):
                guess = eagle(embedded[:, 1:i + d + 1], features)[:, -1:]
                features = torch.cat([features, guess], 1)
                hits["eagle"][d] += int(target.lm_head(guess).argmax() == ids[i + d + 1])
                hits["medusa"][d] += int(guesses[d, i - 1] == ids[i + d + 1])
            count += 1
    return {name: [h / count for h in row] for name, row in hits.items()}, count


@torch.no_grad()
def report(target, draft, eagle, medusa, tokenizer, rows, seed):
    documents = text.encode(tokenizer, rows)
    for name, model in ("target", target), ("draft", draft):
        nats, bits = held_out_loss(model, rows, documents)
        print(f"{name}: {nats:.4f} nats per token, {bits:.4f} bits per byte", flush=True)
    prompts = [tokenizer.encode(prompt).ids for prompt, _ in rows[::len(rows) // PROMPTS][:PROMPTS]]
    for temperature in 1, 0:
        generator = torch.Generator().manual_seed(seed)
        out = [speculate(target, draft, p, temperature, generator) for p in prompts]
        drafted, accepted = (sum(o[i] for o in out) for i in (1, 2))
        print(f"temperature {temperature}: accepted {accepted} of {drafted} drafted "
              f"({accepted / drafted:.3f})", flush=True)
        for o in out[:2]:
            print("    " + tokenizer.decode(o[0]).replace("\n", "\n    "))
    greedy = [(o[0], len(p)) for o, p in zip(out, prompts)]
    hits, count = head_hits(target, eagle, medusa, greedy)
    for name, row in hits.items():
        print(f"{name}: accuracy of the argmax at depth 1..{GAMMA}: "
              + ", ".join(f"{h:.3f}" for h in row) + f" ({count} positions)", flush=True)
