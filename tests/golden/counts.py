# SPDX-License-Identifier: Apache-2.0
"""Defines the counts of a run, and verifies drafts greedily.

A draft is a list of paths from the last token of the output. The target's greedy output is known
beforehand, so a draft token is accepted when it and all tokens before it on its path are that
output. The last token of an output is always the target's own.
"""
from dataclasses import dataclass, field


@dataclass
class Draft:
    paths: list = field(default_factory=list)
    tokens: int = None       # those of one path, if not given
    started: bool = None     # if there are tokens
    calls: int = 0           # passes of the draft model
    call_tokens: int = None  # tokens in them, one each if not given
    scored: int = 0          # tokens in the target's pass that cannot be accepted
    extra: int = 0           # the method's own counter

    def __post_init__(self):
        if self.tokens is None:
            self.tokens = sum(len(path) for path in self.paths)
        if self.started is None:
            self.started = self.tokens > 0


@dataclass
class Counts:
    requests: int = 0
    output_tokens: int = 0
    target_calls: int = 0
    num_drafts_started: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    draft_calls: int = 0
    draft_call_tokens: int = 0
    target_call_tokens: int = 0
    extra: int = 0
    drafts: int = 0  # nodes() of all drafts, modulo 2^31


def nodes(paths, i):
    """Returns the sum of the hashes of all different prefixes of the paths of a draft at output
    position i."""
    def mix(h, x):
        h = (h ^ (x + 1)) * 0x9E3779B97F4A7C15 % 2**64
        return h ^ h >> 32

    found = set()
    for path in paths:
        h = mix(0, i)
        for token in path:
            h = mix(h, token)
            found.add(h)
    return sum(found)


def accepted(paths, output, i):
    """Returns the number of tokens accepted at output position i: the longest correct prefix of a
    path."""
    best = 0
    for path in paths:
        n = 0
        while n < len(path) and i + n < len(output) - 1 and path[n] == output[i + n]:
            n += 1
        best = max(best, n)
    return best


def run(request, propose, counts, after=None):
    """Runs a request. propose(text, i) returns a Draft.

    `text` is the prompt and the output before position i. after(i, accepted) follows each step.
    """
    i = 0
    counts.requests += 1
    counts.output_tokens += len(request.output)
    while i < len(request.output):
        d = propose(request.prompt + request.output[:i], i)
        n = accepted(d.paths, request.output, i)
        add(counts, d.tokens, d.started, n, d.calls, d.call_tokens, d.scored)
        counts.extra += d.extra
        counts.drafts = (counts.drafts + nodes(d.paths, i)) % 2**31
        if after:
            after(i, n)
        i += n + 1


def add(counts, tokens, started, accepted, calls, call_tokens=None, scored=0):
    """Adds a target call."""
    counts.target_calls += 1
    counts.num_drafts_started += started
    counts.num_drafts += tokens > 0
    counts.num_draft_tokens += tokens
    counts.num_accepted_tokens += accepted
    counts.draft_calls += calls
    counts.draft_call_tokens += calls if call_tokens is None else call_tokens
    counts.target_call_tokens += 1 + tokens + scored
