# SPDX-License-Identifier: Apache-2.0
"""The method that drafts from a trie of all requests: ngram-tree."""
from collections import OrderedDict

from counts import Draft, run


class Trie:
    """Strings of at most `depth` tokens, each a tuple, with the strings that extend it by one."""

    def __init__(self, depth, capacity):
        self.depth, self.capacity, self.born = depth, capacity, 0
        self.count, self.serial = {}, {(): 0}
        self.children = {(): OrderedDict()}  # token: None, the latest one last
        self.used = OrderedDict()            # the least recently used string first

    def evict(self):
        s, _ = self.used.popitem(last=False)
        assert not self.children.pop(s)
        del self.children[s[:-1]][s[-1]], self.count[s], self.serial[s]

    def insert(self, text):
        for i in range(len(text)):
            s = tuple(text[i : i + self.depth])
            while self.capacity - 1 - len(self.used) < len(s):
                self.evict()
            for n in range(1, len(s) + 1):
                p = s[:n]
                if p not in self.count:
                    self.born += 1
                    self.count[p], self.serial[p] = 0, self.born
                    self.children[p], self.used[p] = OrderedDict(), None
                    self.children[p[:-1]][p[-1]] = None
                self.count[p] += 1
                self.children[p[:-1]].move_to_end(p[-1])
            for n in range(len(s), 0, -1):
                self.used.move_to_end(s[:n])

    def latest(self, s):
        return list(reversed(self.children[s]))

    def frequent(self, s, most):
        return sorted(self.children[s], key=lambda t: (-self.count[s + (t,)], t))[:most]


class Match:
    """The suffixes of a request's text that the trie contains, found from those of the last step."""

    def __init__(self, trie):
        self.trie, self.found, self.length = trie, [], None

    def known(self, s):
        return (s, self.trie.serial[s]) if s in self.trie.count else None

    def extend(self, text):
        depth, recent = self.trie.depth, tuple(text[-self.trie.depth :])
        added = None if self.length is None else len(text) - self.length
        stale = any(f and self.trie.serial.get(f[0]) != f[1] for f in self.found)
        if added is None or added > len(recent) or stale:
            self.found = [self.known(recent[len(recent) - n :]) for n in range(1, len(recent) + 1)]
        else:
            for token in text[len(text) - added :]:
                longer = [self.known(f[0] + (token,)) if f else None for f in self.found]
                self.found = ([self.known((token,))] + longer)[:depth]
        self.length = len(text)
        return [f[0] for f in reversed(self.found) if f and self.trie.children.get(f[0])]


class Heap:
    """A binary heap that orders equal values as libstdc++'s push_heap and pop_heap do."""

    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)
        self.rise(len(self.items) - 1)

    def rise(self, i):
        a = self.items
        while i and a[(i - 1) // 2][0] < a[i][0]:
            a[i], a[(i - 1) // 2] = a[(i - 1) // 2], a[i]
            i = (i - 1) // 2

    def pop(self):
        a = self.items
        top, last, i = a[0], a.pop(), 0
        while 2 * i + 1 < len(a):
            left, right = 2 * i + 1, 2 * i + 2
            down = left if right == len(a) or a[right][0] < a[left][0] else right
            a[i], i = a[down], down
        if a:
            a[i] = last
            self.rise(i)
        return top


def by_recency(trie, anchors, tree, most, least_breadth, most_breadth):
    """Adds paths to the tree, a list of tuples, up to `most`."""
    longest = max(1, trie.depth - 1)
    scale = float(most_breadth - least_breadth) / longest
    for s in anchors:
        queue = [((), (longest - len(s)) * scale + least_breadth)]
        while queue and len(tree) < most:
            path, breadth = queue.pop(0)
            for token in trie.latest(s + path)[: max(1, int(breadth))]:
                if len(tree) == most:
                    break
                if path + (token,) not in tree:
                    tree.append(path + (token,))
                queue.append((path + (token,), breadth - scale))


def by_frequency(trie, anchors, tree, most, most_breadth):
    """Adds paths to the tree, a list of tuples, up to `most`."""
    heap = Heap()

    def offer(s, path, probability):
        tokens = trie.frequent(s + path, most_breadth)
        total = float(sum(trie.count[s + path + (t,)] for t in tokens))
        for t in tokens:
            heap.push((trie.count[s + path + (t,)] / total * probability, path + (t,)))

    for s in anchors:
        if len(tree) == most:
            break
        offer(s, (), 1.0)
        while heap.items and len(tree) < most:
            probability, path = heap.pop()
            if path not in tree:
                tree.append(path)
            offer(s, path, probability)


def ngram_tree(requests, counts, num_draft_tokens=12, min_bfs_breadth=1, max_bfs_breadth=10,
               match_type="BFS", max_trie_depth=18, capacity=10000000):
    """Runs SGLang's NGRAM (ngram_worker.py at 0037c14, cpp_ngram/trie.cpp at 0d1d60f).

    After each step the suffixes of the last tokens of the text are inserted. A draft merges what
    the trie has after each suffix of the text, the longest first.
    """
    trie = Trie(max_trie_depth, capacity)
    for r in requests:
        match = Match(trie)

        def propose(text, i, match=match):
            anchors, tree = match.extend(text), []
            if match_type == "BFS":
                by_recency(trie, anchors, tree, num_draft_tokens - 1, min_bfs_breadth,
                           max_bfs_breadth)
            else:
                by_frequency(trie, anchors, tree, num_draft_tokens - 1, max_bfs_breadth)
            return Draft(tree, len(tree))

        run(r, propose, counts,
            after=lambda i, n, r=r: trie.insert((r.prompt + r.output[: i + n + 1])[-max_trie_depth:]))
