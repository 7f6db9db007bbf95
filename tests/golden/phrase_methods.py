# SPDX-License-Identifier: Apache-2.0
"""Methods that collect phrases: lookahead decoding (Fu et al. 2024), Ouroboros (Zhao et al. 2024).

A phrase is a key token and the N - 1 tokens that follow it.
"""
from counts import Draft, accepted, run
from model_methods import ends, write
from philox import uniform

DRAFT = 6  # the use of these random numbers (philox.py)


class Pool:
    """Holds the phrases of each key, the oldest first; a repeated phrase becomes the newest."""

    def __init__(self, most):
        self.most, self.phrases = most, {}

    def add(self, key, phrase):
        known = self.phrases.setdefault(key, [])
        if phrase in known:
            known.remove(phrase)
        known.append(phrase)
        if len(known) > self.most:
            del known[0]

    def of(self, key):
        return list(self.phrases.get(key, []))


class Window:
    """Holds Jacobi iterates: level 0 is a sequence after the current token; column i has the tokens
    of levels 1, 2, ... at the i-th position after the current token and continues level 0 up to
    there.
    """

    def __init__(self, r, width, level, seed):
        self.last = level - 2  # the last level
        count = width + level - 3
        prompt = r.prompt or [0]
        self.zero = [prompt[int(seed_uniform(seed, r.index, i) * len(prompt))]
                     for i in range(count)]
        self.columns = [[] for _ in range(count + 1)]

    def full(self):
        return len(self.columns[0]) == self.last

    def tokens(self):
        return len(self.zero) + sum(map(len, self.columns))

    def step(self, model, text, pool):
        """Runs a pass over the window after `text`."""
        new = [model.best(text + self.zero[:i] + column) for i, column in enumerate(self.columns)]
        whole = [column + [token] for column, token in zip(self.columns, new)]
        if self.full():
            for i, phrase in enumerate(whole):
                pool.add(self.zero[i - 1] if i else text[-1], phrase)
            self.zero = [phrase[0] for phrase in whole[1:]]
            self.columns = [phrase[1:] for phrase in whole]
        else:
            self.zero = self.zero[1:]
            self.columns = whole[1:]


def seed_uniform(seed, request, i):
    return uniform(seed, request, 0, DRAFT | i << 8)


def lookahead(requests, counts, target, window, level, guesses, pool_from_prompt, semantics):
    """Runs lookahead decoding. The program (`code`) uses at most N - 2 tokens of a phrase, the
    paper all N - 1."""
    taken = level - 1 - (semantics == "code")
    for r in requests:
        pool, jacobi = Pool(guesses), Window(r, window, level, 0)
        history = list(r.prompt)  # with `code` not the text: see below
        if pool_from_prompt:
            for t in range(level, len(r.prompt) + 1):
                pool.add(r.prompt[t - level], r.prompt[t - level + 1 : t])

        def propose(text, i, r=r, pool=pool, jacobi=jacobi):
            phrases = pool.of(text[-1]) if jacobi.full() else []
            return Draft([phrase[:taken] for phrase in phrases], started=bool(phrases),
                         scored=jacobi.tokens() + len(phrases) * (level - 1 - taken))

        def after(i, n, r=r, pool=pool, jacobi=jacobi, history=history):
            jacobi.step(target, r.prompt + r.output[:i], pool)
            for j in range(n + 1):
                # The greedy program appends the last token of the step each time, hits[max_hit].
                history.append(r.output[i + n] if semantics == "code" else r.output[i + j])
                if pool_from_prompt and len(history) >= level:
                    pool.add(history[-level], history[len(history) - level + 1 :])
        run(r, propose, counts, after)


def draft_by_lookahead(r, i, draft, text, gamma, jacobi, pool, taken):
    """Returns the draft model's tokens, at most gamma, the number of its passes and of the tokens
    in them."""
    path, calls, tokens = [], 0, 0
    while len(path) < gamma and not ends(r, i, path):
        before = text + path
        best, phrases = [], pool.of(before[-1]) if jacobi.full() else []
        calls, tokens = calls + 1, tokens + 1 + jacobi.tokens() + sum(map(len, phrases))
        for phrase in phrases:
            n = 0
            while n < taken and draft.best(before + phrase[:n]) == phrase[n]:
                n += 1
            if n > len(best):
                best = phrase[:n]
        jacobi.step(draft, before, pool)
        for token in best + [draft.best(before + best)]:
            if len(path) < gamma and not ends(r, i, path):
                path.append(token)
    return path, calls, tokens


def phrases_of_rejected(target, text, path, n, level, pool):
    """Adds phrases where the target's argmax tokens along the rejected draft agree with it."""
    reads = [target.best(text + path[: j + 1]) for j in range(len(path))]
    for j in range(n, len(path)):
        phrase, at = [reads[j]], j
        while len(phrase) < level - 1 and at + 1 < len(path) and path[at + 1] == reads[at]:
            at += 1
            phrase.append(reads[at])
        if len(phrase) == level - 1:
            pool.add(path[j], phrase)


def correct(target, text, key, tried, keep, pool):
    """Overwrites the tried phrases, except `keep`, by the target's argmax at their tokens."""
    for number, phrase in enumerate(tried):
        if number != keep:
            reads = [target.best(text + phrase[:j]) for j in range(len(phrase))]
            pool.phrases[key][len(pool.phrases[key]) - len(tried) + number] = reads


def ouroboros(requests, counts, target, draft, length, window, level, phrases, draft_lookahead,
              from_verification, reuse, semantics):
    taken = level - 1 - (semantics == "code")
    pool = Pool(window)
    for r in requests:
        if not reuse:
            pool = Pool(window)
        state = {"jacobi": Window(r, window, level, 0), "path": [], "tried": []}

        def propose(text, i, r=r, state=state):
            if draft_lookahead:
                path, calls, seen = draft_by_lookahead(r, i, draft, text, length, state["jacobi"],
                                                       pool, taken)
            else:
                path = write(r, draft, text, i, length)
                calls = seen = len(path)
            tried = [] if ends(r, i, path) or not phrases else pool.of(path[-1])[-phrases:]
            state["path"], state["tried"] = path, tried
            paths = [path] + [path + phrase[:taken] for phrase in tried]
            matched = sum(target.best(text + path[:j]) == path[j] for j in range(len(path)))
            return Draft(paths, len(path) + taken * len(tried), calls=calls, call_tokens=seen,
                         scored=len(tried) * (level - 1 - taken), extra=matched)

        def after(i, n, r=r, state=state):
            if not from_verification:
                return
            text, path, tried = r.prompt + r.output[:i], state["path"], state["tried"]
            if n < len(path):
                if path[n] != r.output[i + n]:
                    phrases_of_rejected(target, text, path, n, level, pool)
            elif tried:
                # The paper corrects the phrases that are not used, and the program all of them.
                reached = [accepted([path + phrase[:taken]], r.output, i) for phrase in tried]
                used = semantics == "paper" and max(reached) > len(path)
                keep = reached.index(max(reached)) if used else None
                correct(target, text + path, path[-1], tried, keep, pool)
        run(r, propose, counts, after)
