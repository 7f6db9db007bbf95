# SPDX-License-Identifier: Apache-2.0
"""Methods that draft from text: none, oracle, llma, ngram and suffix."""
import struct
from fractions import Fraction

from counts import Draft, run


def none(requests, counts):
    """Runs without a draft: one token per target call."""
    for r in requests:
        run(r, lambda text, i: Draft(), counts)


def oracle(requests, counts, k):
    """Drafts k correct tokens at every step, never the last token of the output."""
    for r in requests:
        def propose(text, i, r=r):
            return Draft([r.output[:-1][i : i + k]])
        run(r, propose, counts)


def llma(requests, counts, n, k, max_match, semantics, references):
    """Runs LLMA by Yang et al. 2023, and by the authors' program.

    The references are searched, in order, for the longest match of the last tokens of the output,
    from max(max_match, n) down to n tokens. The draft is the k tokens after its first occurrence
    (k - 1 by the program, which also counts the current token). max_match 0 has no limit.
    """
    copied = k - (semantics == "code")
    for r in requests:
        where = {"docs": r.documents, "turns": r.turns, "prompt": [r.prompt],
                 "all": r.documents + r.turns + [r.prompt]}[references]

        def propose(text, i, r=r, where=where):
            longest = min(max(max_match, n) if max_match else i, i)
            for length in range(longest, n - 1, -1):
                last = r.output[i - length : i]
                for tokens in where:
                    for p in range(len(tokens) - length + 1):
                        if tokens[p] == last[0] and tokens[p : p + length] == last:
                            return Draft([tokens[p + length : p + length + copied]], started=True)
            return Draft()
        run(r, propose, counts)


def ngram(requests, counts, n_most, n_least, length, semantics):
    """Runs prompt lookup decoding.

    original: Saxena's find_candidate_pred_tokens as Spec-Bench runs it. start_idx = idx + n,
    end_idx = start_idx + length, valid when end_idx <= input_length and start_idx <
    input_length - n.
    transformers: PromptLookupCandidateGenerator. start_idx = idx + n, end_idx = min(start_idx +
    length, input_length), valid when start_idx < end_idx; cut before the first EOS token.
    vllm: _find_longest_matched_ngram_and_propose_tokens. The same occurrence, because the first
    match of the longest n-gram wins; at most `length` of the tokens that follow, with EOS tokens.
    llama.cpp: common_ngram_simple_draft, whose `tokens` lack the last token of the text.
    """
    for r in requests:
        def propose(text, i, r=r):
            return ngram_draft(r, text, i, n_most, n_least, length, semantics)
        run(r, propose, counts)


def ngram_draft(r, text, i, n_most, n_least, length, semantics):
    """Returns a draft of ngram as a Draft."""
    if semantics == "llama.cpp":
        return ngram_simple(text, i, n_most, length)
    for n in range(min(n_most, len(text) - 1), n_least - 1, -1):
        last = text[len(text) - n :]
        for at in range(len(text) - n + 1):
            if text[at] != last[0] or text[at : at + n] != last:
                continue
            start = at + n
            end = start + length
            if semantics in ("transformers", "vllm"):
                path = text[start:end]
                if not path:
                    continue
                if semantics == "transformers" and r.eos in path:
                    path = path[: path.index(r.eos)]
                return Draft([path])
            if end <= len(text) and start < len(text) - n:
                return Draft([text[start:end]])
    return Draft()


def ngram_simple(text, i, size_n, size_m):
    """Drafts as common_ngram_simple_draft of llama.cpp; a server has one output token before it."""
    tokens, cur_len = text[:-1], len(text) - 1
    if i == 0 or cur_len <= size_n + size_m + 1:
        return Draft()
    pattern = text[-size_n:]
    for j in range(cur_len - size_n - 1, 0, -1):
        if tokens[j : j + size_n] == pattern:
            path = tokens[j + size_n :][:size_m]
            if len(path) >= size_n:
                return Draft([path])
            break
    return Draft()


def single(x):
    """Rounds to single precision."""
    return struct.unpack("f", struct.pack("f", x))[0]


class Tree:
    """Counts every string of at most `depth` tokens of the texts that it has.

    children[s] lists [token, count] in the order in which ArcticInference keeps the children of a
    node: by count, and equal counts by the history of the list.
    """

    def __init__(self, depth):
        self.depth, self.count, self.children = depth, {}, {}

    def suffixes(self, text):
        return [tuple(text[len(text) - m :]) for m in range(1, min(self.depth, len(text)) + 1)]

    def append(self, text, token):
        """Counts the token after `text`, the text that it ends."""
        for s in self.suffixes(text):
            if len(s) < self.depth:
                self.rise(self.children.setdefault(s, []), token)
        for s in self.suffixes(text + [token]):
            self.count[s] = self.count.get(s, 0) + 1

    def remove(self, text):
        for i, token in enumerate(text):
            for s in self.suffixes(text[:i]):
                if len(s) < self.depth:
                    self.fall(self.children[s], token)
            for s in self.suffixes(text[: i + 1]):
                self.count[s] -= 1

    @staticmethod
    def rise(children, token):
        at = next((i for i, c in enumerate(children) if c[0] == token), None)
        if at is None:
            children.append([token, 1])
            return
        count, to = children[at][1], at
        if at > 0 and children[at - 1][1] <= count + 1:
            level = children[at - 1][1]
            to = next(i for i, c in enumerate(children) if c[1] == level)
        children.insert(to, [token, count + 1])
        del children[at + 1]

    @staticmethod
    def fall(children, token):
        at = next(i for i, c in enumerate(children) if c[0] == token)
        count = children.pop(at)[1]
        to = next((i for i, c in enumerate(children) if c[1] < count), len(children))
        if count > 1:
            children.insert(to, [token, count - 1])

    def path(self, s, most, least):
        """Returns the most frequent path below s: (sum of probabilities, [path])."""
        path, probability, score = [], 1.0, 0.0
        while len(path) < most and self.children.get(s):
            token, count = self.children[s][0]
            probability = single(probability * single(count / self.count[s]))
            if probability < least:
                break
            path.append(token)
            score = single(score + probability)
            s += (token,)
        return score, [path] if path else []

    def tree(self, s, most, branches, least):
        """Returns the most probable nodes below s: (sum of probabilities, paths).

        The frontier is searched for the most frequent node; of equal ones the first that was found.
        `branches` limits the children of a node, 0: no limit.
        """
        occurrences = self.count[s]
        frontier, nodes, score = [], [], Fraction(0)

        def expand(path):
            for x, count in self.children.get(s + path, [])[: branches or None]:
                if Fraction(count, occurrences) >= least:
                    frontier.append((count, path + (x,)))

        expand(())
        while frontier and len(nodes) < most:
            best = max(range(len(frontier)), key=lambda i: (frontier[i][0], -i))
            count, path = frontier.pop(best)
            nodes.append(list(path))
            score += Fraction(count, occurrences)
            expand(path)
        return score, nodes

    def speculate(self, text, length, branches, factor, offset, least):
        """Returns the best draft of all matches: (sum of probabilities, paths, tokens)."""
        best = (0, [], 0)
        for m in range(1, min(self.depth, len(text))):
            s = tuple(text[len(text) - m :])
            if not self.count.get(s):
                break
            most = min(length, int(single(single(m * single(float(factor))) +
                                          single(float(offset))) + 1e-6))
            if branches == 1:
                score, found = self.path(s, most, single(float(least)))
                tokens = len(found[0]) if found else 0
            else:
                score, found = self.tree(s, most, branches, Fraction(least))
                tokens = len(found)
            if found and score >= best[0]:
                best = score, found, tokens
        return best


def suffix(requests, counts, length, max_tree_depth, branches, max_spec_factor, min_token_prob,
           max_spec_offset="0", max_cached_requests=0):
    """Runs SuffixDecoding as ArcticInference does (cache.py and suffix_tree.cc at 9d46438).

    There are two trees: one of the prompt and the output so far, and one of the outputs of the last
    `max_cached_requests` requests, the current one included. In each there is a candidate for every
    m: the draft below the last m tokens. The one with the largest sum of probabilities is used; of
    equal ones that of the longest m, and of the first tree.
    """
    everyone, outputs = Tree(max_tree_depth), []
    for r in requests:
        own, known = Tree(max_tree_depth), []
        for token in r.prompt:
            own.append(known, token)
            known.append(token)
        outputs.append(r.output)
        if max_cached_requests and len(outputs) > max_cached_requests:
            everyone.remove(outputs.pop(0))

        def add(i, end, r=r, own=own):
            for j in range(i, end):
                own.append(r.prompt + r.output[:j], r.output[j])
                if max_cached_requests:
                    everyone.append(r.output[:j], r.output[j])

        def propose(text, i, own=own):
            how = (length, branches, max_spec_factor, max_spec_offset, min_token_prob)
            best = own.speculate(text, *how)
            if max_cached_requests:
                other = everyone.speculate(text, *how)
                best = other if other[0] > best[0] else best
            return Draft(best[1], best[2])

        run(r, propose, counts, after=lambda i, n, add=add: add(i, i + n + 1))
