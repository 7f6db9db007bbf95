# SPDX-License-Identifier: Apache-2.0
"""Defines the counts of a run, and verifies drafts greedily.

A draft is a list of paths from the last token of the output. The target's greedy output is known
beforehand, so a draft token is accepted when it and all tokens before it on its path are that
output. The last token of an output is always the target's own.
"""
from dataclasses import dataclass


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
    """Runs a request. propose(text, i) returns (paths, draft tokens, started, draft calls).

    `text` is the prompt and the output before position i. after(i, accepted) follows each step.
    """
    i = 0
    counts.requests += 1
    counts.output_tokens += len(request.output)
    while i < len(request.output):
        paths, tokens, started, calls = propose(request.prompt + request.output[:i], i)
        n = accepted(paths, request.output, i)
        counts.target_calls += 1
        counts.num_drafts_started += started
        counts.num_drafts += tokens > 0
        counts.num_draft_tokens += tokens
        counts.num_accepted_tokens += n
        counts.draft_calls += calls
        if after:
            after(i, n)
        i += n + 1
