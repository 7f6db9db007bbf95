# SPDX-License-Identifier: Apache-2.0
"""Imitates the part of vLLM that draftscope.export_trace uses, with distributions that are a
function of the last two tokens.

As in vLLM, a position lists its m most probable tokens and the prompt's own token, so m or m + 1;
the first position lists none; a request generates at least one token; ranks begin at 1. A model's
name is SEED:VOCABULARY.
"""
from types import SimpleNamespace

import numpy as np

__version__ = "0"
LONGEST = 64
END = 2


def distribution(name, tokens):
    """Returns ln p of every token that may follow `tokens`."""
    seed, vocab_size = map(int, name.split(":"))
    rng = np.random.default_rng([seed, *tokens[-2:]])
    logits = 2 * rng.standard_normal(vocab_size)
    return logits - np.log(np.exp(logits).sum())


class SamplingParams:
    def __init__(self, max_tokens=16, temperature=1.0, prompt_logprobs=None, seed=None):
        self.__dict__.update(locals())


class LLM:
    def __init__(self, model, dtype, max_logprobs, seed, gpu_memory_utilization,
                 enable_prefix_caching):
        assert not enable_prefix_caching  # or prompts would have no log-probabilities
        self.name, self.max_logprobs = model, max_logprobs
        config = SimpleNamespace(max_model_len=LONGEST, get_vocab_size=lambda: len(distribution(model, [0])))
        self.llm_engine = SimpleNamespace(model_config=config)

    def logprobs(self, tokens, i, m):
        logp = distribution(self.name, tokens[:i])
        order = np.argsort(-logp)
        rank = {int(t): r for r, t in enumerate(order, 1)}
        wanted = dict.fromkeys([tokens[i]] + [int(t) for t in order[:m]])
        return {t: SimpleNamespace(logprob=float(logp[t]), rank=rank[t]) for t in wanted}

    def generate(self, prompts, params, use_tqdm):
        tokens = list(prompts[0]["prompt_token_ids"])
        assert len(tokens) + params.max_tokens <= LONGEST and params.max_tokens > 0
        prompt_logprobs = None
        if params.prompt_logprobs is not None:
            assert params.prompt_logprobs <= self.max_logprobs
            prompt_logprobs = [None] + [self.logprobs(tokens, i, params.prompt_logprobs)
                                        for i in range(1, len(tokens))]
        rng, output = np.random.default_rng(params.seed), []
        while len(output) < params.max_tokens and END not in output:
            logp = distribution(self.name, tokens + output)
            greedy = params.temperature == 0
            output.append(int(np.argmax(logp) if greedy else rng.choice(len(logp), p=np.exp(logp))))
        return [SimpleNamespace(prompt_logprobs=prompt_logprobs,
                                outputs=[SimpleNamespace(token_ids=tuple(output))])]
