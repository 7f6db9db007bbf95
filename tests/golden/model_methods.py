# SPDX-License-Identifier: Apache-2.0
"""Methods with a draft model: chain, hf-dynamic, threshold, spectr, spectr-tree, tree,
dynamic-tree, sequoia, cascade and pearl, all with greedy verification.

Drafting stops at EOS and at the token that fills the output to its limit: no token follows those.
"""
from fractions import Fraction

from counts import Draft, add, nodes, run

# EAGLE-1 (Li et al. 2024): the tree `mc_sim_7b_63` of its program.
EAGLE = """0 1 2 3 0,0 0,1 0,2 1,0 1,1 2,0 2,1 3,0 0,0,0 0,0,1 0,0,2 0,1,0 0,1,1 0,2,0 0,2,1 1,0,0
0,0,0,0 0,0,0,1 0,0,0,2 0,0,0,0,0 0,0,0,0,1"""
# Medusa (Cai et al. 2024): `mc_sim_7b_63` of medusa/model/medusa_choices.py.
MEDUSA = """0 0,0 1 0,1 2 0,0,0 1,0 0,2 3 0,3 4 0,4 2,0 0,5 0,0,1 5 0,6 6 0,7 0,1,0 1,1 7 0,8
0,0,2 3,0 0,9 8 9 1,0,0 0,2,0 1,2 0,0,3 4,0 2,1 0,0,4 0,0,5 0,0,0,0 0,1,1 0,0,6 0,3,0 5,0 1,3
0,0,7 0,0,8 0,0,9 6,0 0,4,0 1,4 7,0 0,1,2 2,0,0 3,1 2,2 8,0 0,5,0 1,5 1,0,1 0,2,1 9,0 0,6,0
0,0,0,1 1,6 0,7,0"""
# The first acceptance rates that Sequoia's program ships (Chen et al. 2024).
SEQUOIA = ".6342,.1079,.0570,.0225,.0195,.0150,.0045"


def ends(r, i, path):
    """Returns whether no token follows a draft path at output position i."""
    return len(path) > 0 and (path[-1] == r.eos or i + len(path) >= r.limit)


def write(r, draft, text, i, length, stop=lambda before, token: False):
    """Returns the draft model's greedy tokens, at most `length`."""
    path = []
    while len(path) < length and not ends(r, i, path):
        before = text + path
        path.append(draft.best(before))
        if stop(before, path[-1]):
            break
    return path


def fresh(r, i):
    """Returns the tokens that a head has not read yet: those of the last step, or one at first."""
    tokens = i - r.read if i else 1
    r.read = i
    return tokens


def chain(requests, counts, draft, length):
    for r in requests:
        def propose(text, i, r=r):
            path = write(r, draft, text, i, length)
            return Draft([path], calls=len(path))
        run(r, propose, counts)


def repeated(text):
    """Returns the length of the longest suffix of text that ends elsewhere too, and the position
    after the first of these places."""
    longest, start = 0, 0
    for end in range(1, len(text)):
        n = 0
        while n < end and text[end - 1 - n] == text[len(text) - 1 - n]:
            n += 1
        if n > longest:
            longest, start = n, end
    return longest, start


def sa_draft_model(requests, counts, draft, length, threshold):
    """Replaces the draft of chain() as SADraftEnhancer of TensorRT-LLM (sa_enhancer.py).

    add_request() builds the automaton of the prompt. extend() adds what later passes emit, so that
    the token of the prompt's own pass is left out.
    """
    for r in requests:
        def propose(text, i, r=r):
            path = write(r, draft, text, i, length)
            calls = len(path)
            if i > 1 and length:
                known = text[: len(text) - i] + text[len(text) - i + 1 :]
                match_len, pos = repeated(known)
                if match_len >= threshold:
                    return Draft([known[pos : pos + length]], started=True, calls=calls, extra=1)
            return Draft([path], calls=calls)
        run(r, propose, counts)


def hf_dynamic(requests, counts, draft, start, up, down, least, most):
    """Runs the "heuristic" schedule of transformers' assisted generation, per request."""
    for r in requests:
        state = {"length": start, "drafted": 0}

        def propose(text, i, r=r, state=state):
            path = write(r, draft, text, i, max(least, min(most, state["length"])))
            state["drafted"] = len(path)
            return Draft([path], calls=len(path))

        def after(i, n, state=state):
            whole = n == state["drafted"]
            state["length"] = max(least, min(most, state["length"] + (up if whole else -down)))
        run(r, propose, counts, after)


def threshold(requests, counts, draft, confidence, most):
    """Ends a draft after the first token with a probability below `confidence`."""
    for r in requests:
        def propose(text, i, r=r):
            def unsure(before, token):
                return draft.confidence(before, token) < Fraction(confidence)
            path = write(r, draft, text, i, most, unsure)
            return Draft([path], calls=len(path))
        run(r, propose, counts)


def spectr(requests, counts, draft, drafts, length):
    """Runs SpecTr, Algorithm 3, at temperature 0, where all sequences are equal."""
    for r in requests:
        def propose(text, i, r=r):
            path = write(r, draft, text, i, length)
            return Draft([path] * drafts, calls=len(path), call_tokens=drafts * len(path))
        run(r, propose, counts)


def spectr_tree(requests, counts, draft, widths):
    """Runs SpecTr, Algorithm 4, at temperature 0, where all children of a node are equal."""
    widths = [int(w) for w in widths.split(",")]
    for r in requests:
        def propose(text, i, r=r):
            path = write(r, draft, text, i, len(widths))
            levels = [1]
            for depth in range(len(path)):
                levels.append(levels[-1] * widths[depth])
            return Draft([path], sum(levels[1:]), calls=len(path),
                         call_tokens=sum(levels[1:-1], fresh(r, i)) if path else 0)
        run(r, propose, counts)


def tree_paths(name):
    """Returns the nodes of a named tree as tuples of ranks, parents first."""
    if name in ("eagle", "medusa"):
        text = {"eagle": EAGLE, "medusa": MEDUSA}[name]
        nodes = [tuple(int(x) for x in path.split(",")) for path in text.split()]
    elif name.startswith("chain:"):
        nodes = [(0,) * d for d in range(1, int(name[6:]) + 1)]
    else:
        k, depth = (int(x) for x in name.split("^"))
        level, nodes = [()], []
        for _ in range(depth):
            level = [path + (rank,) for path in level for rank in range(k)]
            nodes += level
    return sorted(nodes, key=lambda path: (len(path), path))


def draft_tree(requests, counts, draft, nodes):
    """Drafts a tree level by level; a child of rank r is the (r + 1)-th most probable token."""
    for r in requests:
        def propose(text, i, r=r):
            tokens, expanded = {(): []}, set()
            for ranks in nodes:
                above = tokens.get(ranks[:-1])
                if above is None or ends(r, i, above):
                    continue
                tokens[ranks] = above + [draft.best(text + above, ranks[-1])]
                expanded.add(ranks[:-1])
            # The draft model runs once per level that has a node to expand.
            calls = len({len(ranks) for ranks in expanded})
            return Draft(list(tokens.values()), len(tokens) - 1, calls=calls,
                         call_tokens=fresh(r, i) + len(expanded) - 1 if expanded else 0)
        run(r, propose, counts)


def tree(requests, counts, draft, name):
    draft_tree(requests, counts, draft, tree_paths(name))


def dynamic_candidates(r, i, text, draft, steps, k):
    """Grows EAGLE-2's candidates; returns them as (probability, path), the number of passes, and
    of expanded nodes.

    The k best candidates of a level are expanded, the better first. Python's sort keeps the order
    of equal ones.
    """
    every, level, passes, expanded = [], [(Fraction(1), [])], 0, 0
    while level and passes < steps:
        children = []
        for p, path in level:
            for rank in range(k):
                token = draft.best(text + path, rank)
                children.append((p * draft.confidence(text + path, token), path + [token]))
        passes, expanded = passes + 1, expanded + len(level)
        every += children
        best = sorted(children, key=lambda c: -c[0])[:k]
        level = [c for c in best if not ends(r, i, c[1])]
    return every, passes, expanded


def dynamic_tree(requests, counts, draft, steps, k, tokens):
    for r in requests:
        def propose(text, i, r=r):
            every, passes, expanded = dynamic_candidates(r, i, text, draft, steps, k)
            kept = sorted(every, key=lambda c: -c[0])[: tokens - 1]
            return Draft([path for _, path in kept], len(kept), True, passes,
                         fresh(r, i) + expanded - 1)
        run(r, propose, counts)


def sequoia_tree(budget, depth, acceptance, draft_cost, target_slope):
    """Finds the tree with the largest expected speedup.

    A node is accepted with the product of the rates of the ranks on its path. With rates that do
    not increase, the best tree of m nodes consists of the most probable nodes, so the candidates
    are the prefixes of one list for each depth. An ambiguous optimum is an error here.
    """
    rate = [Fraction(x) for x in acceptance.split(",")]
    assert all(a >= b for a, b in zip(rate, rate[1:])), "the rates increase"
    best = []
    for levels in range(1, depth + 1):
        nodes, frontier = [], [(Fraction(1), ())]
        while frontier and len(nodes) < budget + 1:
            top = max(range(len(frontier)), key=lambda i: frontier[i][0])
            p, path = frontier.pop(top)
            nodes.append((p, path))
            if len(path) < levels:
                frontier += [(p * a, path + (rank,)) for rank, a in enumerate(rate)]
        for m in range(1, min(budget, len(nodes)) + 1):
            tied = m < len(nodes) and nodes[m][0] == nodes[m - 1][0]
            chosen = [path for _, path in nodes[1:m]]
            deepest = max([len(path) for path in chosen], default=0)
            expected = sum(p for p, _ in nodes[:m])
            cost = deepest * Fraction(draft_cost) + 1 + (m - 1) * Fraction(target_slope)
            best.append((expected / cost, -deepest, m, tied, chosen))
    value = max(b[0] for b in best)
    optimal = [b for b in best if b[0] == value]
    assert not any(b[3] for b in optimal), "the optimal tree is ambiguous"
    assert len({tuple(sorted(b[4])) for b in optimal}) == 1, "the optimal tree is ambiguous"
    return sorted(optimal[0][4], key=lambda path: (len(path), path))


def sequoia(requests, counts, draft, budget, depth, acceptance, draft_cost, target_slope):
    draft_tree(requests, counts, draft,
               sequoia_tree(budget, depth, acceptance, draft_cost, target_slope))


def cascade(requests, counts, draft, middle, length, inner_length):
    """Drafts the output of the middle model, which runs speculatively with the draft model.

    A round drafts at most inner_length tokens, and no more than leave room for the middle model's
    own token. Passes of both models are counted.
    """
    for r in requests:
        def propose(text, i, r=r):
            path, calls, tokens = [], 0, 0
            while len(path) < length and not ends(r, i, path):
                room = length - len(path) - 1
                inner = write(r, draft, text + path, i + len(path), min(inner_length, room))
                calls += len(inner) + 1
                tokens += 2 * len(inner) + 1
                for token in inner + [None]:
                    if ends(r, i, path):
                        break
                    path.append(middle.best(text + path))
                    if path[-1] != token:
                        break
            return Draft([path], calls=calls, call_tokens=tokens)
        run(r, propose, counts)


def pearl(requests, counts, draft, window, pre_verify, post_verify):
    """Runs PEARL (Liu et al. 2024), Algorithm 2, as a state machine.

    pending: tokens that are drafted and not tested. An iteration is one pass of the target and, at
    the same time, up to `window` passes of the draft model, which continues the pending tokens.
    """
    for r in requests:
        out, i, pending, opened = r.output, 0, [], False
        counts.requests += 1
        counts.output_tokens += len(out)
        while i < len(out):
            new = write(r, draft, r.prompt + out[:i] + pending, i + len(pending), window)
            if ends(r, i, pending):
                new = []
            if not opened:
                tested = new[:1] if pre_verify else []
            else:
                tested = pending + (new[:1] if pre_verify and post_verify else [])
            n = 0
            while n < len(tested) and i + n < len(out) - 1 and tested[n] == out[i + n]:
                n += 1
            # The target's pass has not the last tested token where drafting goes on beside it.
            unscored = len(tested) > 0 and (post_verify or not opened)
            add(counts, len(tested), len(new) > 0, n, len(new), scored=-unscored)
            counts.drafts = (counts.drafts + nodes([tested], i)) % 2**31
            i += n
            if n < len(tested):  # a correction, or the token that ends the output
                i += 1
                pending, opened = [], False
            elif opened and not post_verify:  # the target's own token
                i += 1
                pending, opened = [], False
            else:
                pending, opened = new[1:] if pre_verify else new, True


def marginals(draft, text, offsets):
    """Returns the draft model's distribution at each offset, given `text` only, as lists.

    The model is a bigram model, P(x | h) = (1 - other(h)) c(h, x) / N(h) + other(h) P(x), so that
    only the tokens that followed some h need a sum of their own.
    """
    known = draft.ranking.setdefault("marginals", {})  # by the last token, which is all that counts
    if len(known.get(text[-1], ())) >= offsets:
        return known[text[-1]][:offsets]
    every = range(draft.vocabulary)
    alone = [float(draft.probability(x, ())) for x in every]
    following = {}

    def after(h):  # the share of P(x), and what the tokens that followed h have beyond it
        if h not in following:
            seen = draft.count.get((h,))
            if seen is None:
                following[h] = 1.0, {}
            else:
                n = sum(seen.values())
                other = 1 - (1 - draft.mix) * Fraction(n, n + len(seen))
                following[h] = float(other), {x: float((1 - other) * Fraction(c, n))
                                              for x, c in seen.items()}
        return following[h]

    found, now = [], {text[-1]: 1.0}
    for _ in range(offsets):
        share, row = 0.0, {}
        for h, q in now.items():
            other, listed = after(h)
            share += q * other
            for x, p in listed.items():
                row[x] = row.get(x, 0.0) + q * p
        dist = [share * alone[x] + row.get(x, 0.0) for x in every]
        found.append(dist)
        now = dict(enumerate(dist))
    known[text[-1]] = found
    return found


def offsets_at(r, i, length):
    return min(length, r.limit - i)


def parallel(requests, counts, draft, length):
    for r in requests:
        def propose(text, i, r=r):
            path = []
            for dist in marginals(draft, text, offsets_at(r, i, length)):
                if ends(r, i, path):
                    break
                path.append(max(range(len(dist)), key=lambda x: (dist[x], -x)))
            return Draft([path], calls=min(len(path), 1))
        run(r, propose, counts)


def ddtree(requests, counts, draft, length, nodes):
    """Drafts the most probable paths; sorts all paths over the best `nodes` tokens of each offset."""
    for r in requests:
        def propose(text, i, r=r):
            level, paths = [(1.0, [])], []
            for dist in marginals(draft, text, offsets_at(r, i, length)):
                top = sorted(range(len(dist)), key=lambda x: (-dist[x], x))[:nodes]
                level = [(p * dist[x], path + [x]) for p, path in level if not ends(r, i, path)
                         for x in top]
                level = sorted(level, key=lambda entry: -entry[0])[:nodes]
                paths += level
            paths = [path for p, path in sorted(paths, key=lambda entry: -entry[0])[:nodes] if p > 0]
            return Draft(paths, len(paths), calls=min(len(paths), 1))
        run(r, propose, counts)
