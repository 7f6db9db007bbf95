# SPDX-License-Identifier: Apache-2.0
"""An interpolated Witten-Bell n-gram model in exact fractions.

Chen and Goodman, "An empirical study of smoothing techniques for language modeling", Harvard
TR-10-98, 1998.
With c(h, x) the number of times that x followed the context h, N(h) their sum over x and T(h) the
number of different x:
    P(x | h) = (1 - other) c(h, x) / N(h) + other P(x | h without its first token),
    other = 1 - (1 - mix) N(h) / (N(h) + T(h)), where mix is 0 for the empty context,
and P = 1 / vocabulary below the empty context. The longest context that occurred is used.
"""
from collections import Counter, defaultdict
from fractions import Fraction

RANKS = 10  # candidates that `best` returns


class NgramModel:
    def __init__(self, sequences, vocabulary, order, mix="0"):
        self.vocabulary, self.order, self.mix = vocabulary, order, Fraction(mix)
        self.count = defaultdict(Counter)  # context -> token -> times
        for s in sequences:
            for t in range(1, len(s)):  # the first token of a sequence is given
                for j in range(min(order - 1, t) + 1):
                    self.count[tuple(s[t - j : t])][s[t]] += 1
        self.ranking = {}  # context -> its best candidates

    def context(self, text):
        """Returns the longest context at the end of `text` that occurred."""
        for j in range(min(self.order - 1, len(text)), -1, -1):
            h = tuple(text[len(text) - j :])
            if h in self.count:
                return h
        return ()

    def probability(self, x, h):
        """Returns P(x | h) for a context that occurred."""
        seen = self.count[h]
        n = sum(seen.values())
        other = 1 - (1 - (self.mix if h else 0)) * Fraction(n, n + len(seen))
        below = self.probability(x, h[1:]) if h else Fraction(1, self.vocabulary)
        return (1 - other) * Fraction(seen[x], n) + other * below

    def candidates(self, h):
        """Returns tokens that include the RANKS most probable ones after h.

        Tokens that did not follow h keep the order that they have after the shorter context, so
        only the first of those can be among the best.
        """
        if not h:
            return range(self.vocabulary)
        return set(self.count[h]) | set(self.sorted(h[1:]))

    def sorted(self, h):
        if h not in self.ranking:
            p = {x: self.probability(x, h) for x in self.candidates(h)}
            self.ranking[h] = sorted(p, key=lambda x: (-p[x], x))[:RANKS]
        return self.ranking[h]

    def best(self, text, rank=0):
        """Returns the most probable token after `text`, or that of that rank; ties: lowest id."""
        return self.sorted(self.context(text))[rank]

    def confidence(self, text, token):
        return self.probability(token, self.context(text))

    def generate(self, prompt, limit, eos):
        """Returns the greedy output: at most `limit` tokens, EOS included."""
        output = []
        while len(output) < limit and (not output or output[-1] != eos):
            output.append(self.best(prompt + output))
        return output
