# SPDX-License-Identifier: Apache-2.0
"""Methods that draft from text: none, oracle, llma, ngram and suffix."""
from fractions import Fraction

from counts import run


def none(requests, counts):
    """Runs without a draft: one token per target call."""
    for r in requests:
        run(r, lambda text, i: ([], 0, False, 0), counts)


def oracle(requests, counts, k):
    """Drafts k correct tokens at every step, never the last token of the output."""
    for r in requests:
        def propose(text, i, r=r):
            path = r.output[:-1][i : i + k]
            return [path], len(path), len(path) > 0, 0
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
                            path = tokens[p + length : p + length + copied]
                            return [path], len(path), True, 0
            return [], 0, False, 0
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
    """Returns a draft of ngram as propose() does."""
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
                return [path], len(path), len(path) > 0, 0
            if end <= len(text) and start < len(text) - n:
                return [text[start:end]], length, True, 0
    return [], 0, False, 0


def ngram_simple(text, i, size_n, size_m):
    """Drafts as common_ngram_simple_draft of llama.cpp; a server has one output token before it."""
    tokens, cur_len = text[:-1], len(text) - 1
    if i == 0 or cur_len <= size_n + size_m + 1:
        return [], 0, False, 0
    pattern = text[-size_n:]
    for j in range(cur_len - size_n - 1, 0, -1):
        if tokens[j : j + size_n] == pattern:
            path = tokens[j + size_n :][:size_m]
            if len(path) >= size_n:
                return [path], len(path), True, 0
            break
    return [], 0, False, 0


class Occurrences:
    """Returns the ends of every string of at most `depth` tokens of a text, in order."""

    def __init__(self, depth):
        self.depth, self.text, self.ends = depth, [], {(): []}

    def append(self, token):
        self.text.append(token)
        for m in range(min(self.depth, len(self.text)) + 1):
            s = tuple(self.text[len(self.text) - m :])
            self.ends.setdefault(s, []).append(len(self.text))

    def following(self, s):
        """Returns the tokens that followed s: token -> (occurrences of s + token, end of the last
        one)."""
        found = {}
        for end in self.ends[s]:
            if end < len(self.text):
                token = self.text[end]
                found[token] = (found.get(token, (0, 0))[0] + 1, end + 1)
        return found


def suffix_tree(seen, s, most, depth, branches, least):
    """Returns the most probable nodes below s: (sum of probabilities, paths).

    The frontier is searched for the most frequent node; of equal ones the first that was found, and
    of siblings the one seen last. `branches` limits the children of a node, 0: no limit.
    """
    occurrences = len(seen.ends[s])
    frontier, nodes, score = [], [], Fraction(0)

    def expand(path):
        if len(s) + len(path) >= depth:
            return
        children = seen.following(s + path)
        order = sorted(children, key=lambda x: (-children[x][0], -children[x][1]))
        for x in order[: branches or None]:
            if Fraction(children[x][0], occurrences) >= least:
                frontier.append((children[x][0], path + (x,)))

    expand(())
    while frontier and len(nodes) < most:
        best = max(range(len(frontier)), key=lambda i: (frontier[i][0], -i))
        count, path = frontier.pop(best)
        nodes.append(list(path))
        score += Fraction(count, occurrences)
        expand(path)
    return score, nodes


def suffix(requests, counts, length, depth, branches, spec_factor, min_probability):
    """Runs SuffixDecoding (Oliaro et al. 2024) on the prompt and the output so far.

    There is a candidate for each m: the draft below the last m tokens. The one with the largest sum
    of probabilities is used, and among equal ones that of the longest m. It has at most
    spec_factor * m tokens and at most `length`.
    """
    factor, least = Fraction(spec_factor), Fraction(min_probability)
    for r in requests:
        seen = Occurrences(depth)

        def propose(text, i, seen=seen):
            return suffix_draft(seen, text, length, depth, branches, factor, least)
        run(r, propose, counts)


def suffix_draft(seen, text, length, depth, branches, factor, least):
    """Returns a draft of suffix as propose() does; its nodes are the paths to them."""
    for token in text[len(seen.text) :]:
        seen.append(token)
    best, nodes = Fraction(0), []
    for m in range(1, min(depth, len(text)) + 1):
        s = tuple(text[len(text) - m :])
        most = min(length, int(factor * m))
        score, found = suffix_tree(seen, s, most, depth, branches, least)
        if found and score >= best:
            best, nodes = score, found
    return nodes, len(nodes), len(nodes) > 0, 0
