# SPDX-License-Identifier: Apache-2.0
"""Methods with a controller of the draft length: adaptive, adaptive-ngram, adaptive-suffix and
adaptive-recorded.

A controller keeps the whole history of (index of the length, accepted tokens, emitted tokens, cost)
and computes the next length from it: ema from AdaptiveStepSlot of SGLang, ucb from Algorithm 4 of
BanditSpec and from its program.
"""
from math import log, sqrt

import model_methods
import text_methods
from counts import Draft, accepted, add, run


class Ema:
    def __init__(self, candidate_steps, initial_steps, alpha, interval, warmup, down, up):
        self.steps, self.settings = candidate_steps, (alpha, interval, warmup, down, up)
        middle = candidate_steps[len(candidate_steps) // 2]
        self.current = initial_steps if initial_steps in candidate_steps else middle
        self.ema, self.batches = float(self.current - 1), 0

    def choose(self):
        return self.steps.index(self.current)

    def observe(self, accepted, emitted, cost):
        alpha, interval, warmup, down, up = self.settings
        if self.current > 0:
            self.ema = (1 - alpha) * self.ema + alpha * accepted
        self.batches += 1
        if self.batches <= warmup or (self.batches - warmup) % interval:
            return
        at = self.steps.index(self.current)
        if self.current == 0:
            self.current = self.steps[min(at + 1, len(self.steps) - 1)]
            if self.ema < 0:
                self.ema = float(self.current - 1)
            return
        lower = at
        while lower > 0 and self.ema <= (self.steps[lower - 1] or 1) - 0.5 + down:
            lower -= 1
        if lower == at:
            while at + 1 < len(self.steps) and self.ema > self.steps[at] - 0.5 + up:
                at += 1
            lower = at
        self.current = self.steps[lower]


class Oracle:
    """Drafts the tokens that will be accepted: drive() and adaptive_recorded() cut the longest."""
    cuts = True

    def __init__(self, candidate_steps):
        self.last = len(candidate_steps) - 1

    def choose(self):
        return self.last

    def observe(self, accepted, emitted, cost):
        pass


class Ucb:
    def __init__(self, candidate_steps, semantics, weight, delta):
        self.steps, self.semantics, self.weight, self.delta = (candidate_steps, semantics, weight,
                                                               delta)
        self.rewards = [[] for _ in candidate_steps]
        self.chosen = None

    def choose(self):
        arms, t = len(self.steps), sum(map(len, self.rewards))
        self.chosen = t % arms
        if t >= (2 * arms - 1 if self.semantics == "code" else arms):
            bounds = [sum(r) / len(r) + self.radius(len(r), t) for r in self.rewards]
            self.chosen = bounds.index(max(bounds))
        return self.chosen

    def radius(self, n, t):
        if self.semantics == "code":
            return sqrt(self.weight * log(t + 1) / t)
        if self.semantics == "ucb1":
            return sqrt(self.weight * log(t) / n)
        inside = len(self.steps) * t * t * sqrt(1 + n) / self.delta
        return self.steps[-1] / 2 * sqrt((1 + n) / (n * n) * (1 + 2 * log(inside)))

    def observe(self, accepted, emitted, cost):
        self.rewards[self.chosen].append(emitted / cost)


def controllers(controller="ema", candidate_steps="1/3/5/7", initial_steps=-1, ema_alpha="0.2",
                update_interval=5, warmup_batches=10, down_hysteresis="-0.25", up_hysteresis="0",
                ucb_semantics="paper", exploration_weight="6", delta="0.1", draft_cost="0.05",
                verify_cost="0", history="request"):
    """Returns a function that makes the controller of a request, and the costs."""
    steps = sorted({int(k) for k in candidate_steps.split("/")})
    costs = float(draft_cost), float(verify_cost)

    def make():
        if controller == "ema":
            return Ema(steps, initial_steps, float(ema_alpha), update_interval, warmup_batches,
                       float(down_hysteresis), float(up_hysteresis))
        if controller == "oracle":
            return Oracle(steps)
        return Ucb(steps, ucb_semantics, float(exploration_weight), float(delta))
    if history == "run":
        shared = make()
        return steps, costs, lambda: shared
    return steps, costs, make


def drive(requests, counts, draft, options):
    """Runs draft(request) -> f(text, i, length) -> (path, draft calls), at the chosen lengths."""
    steps, (draft_cost, verify_cost), make = controllers(**options)
    for r in requests:
        controller, last, write = make(), {}, draft(r)

        def propose(text, i):
            length = steps[controller.choose()]
            path, calls = write(text, i, length) if length else ([], 0)
            if hasattr(controller, "cuts"):
                path = path[: accepted([path], r.output, i)]
                calls = len(path) if calls else 0
            last.update(length=length, drafted=len(path), calls=calls)
            return Draft([path], calls=calls)

        def after(i, n):
            if last["drafted"] or not last["length"]:
                cost = 1 + draft_cost * last["calls"] + verify_cost * last["drafted"]
                controller.observe(n, n + 1, cost)
        run(r, propose, counts, after)


def adaptive(requests, counts, draft, **options):
    def on(r):
        def write(text, i, length):
            path = model_methods.write(r, draft, text, i, length)
            return path, len(path)
        return write
    drive(requests, counts, on, options)


def base(options, defaults):
    """Returns the options of the base, as keywords with underscores."""
    given = [x.split("=") for x in options.pop("base_options", "").split("/") if x]
    return defaults | {name.replace("-", "_"): value for name, value in given}


def adaptive_ngram(requests, counts, **options):
    b = base(options, {"prompt_lookup_max": "3", "prompt_lookup_min": "1", "semantics": "original"})

    def on(r):
        def write(text, i, length):
            draft = text_methods.ngram_draft(r, text, i, int(b["prompt_lookup_max"]),
                                             int(b["prompt_lookup_min"]), length, b["semantics"])
            return (draft.paths[0] if draft.paths else []), 0
        return write
    drive(requests, counts, on, options)


def adaptive_suffix(requests, counts, **options):
    b = base(options, {"max_tree_depth": "24", "max_spec_factor": "1", "max_spec_offset": "0",
                       "min_token_prob": "0.1"})

    def on(r):
        seen, known = text_methods.Tree(int(b["max_tree_depth"])), []

        def write(text, i, length):
            for token in text[len(known) :]:
                seen.append(known, token)
                known.append(token)
            paths = seen.speculate(text, length, 1, b["max_spec_factor"], b["max_spec_offset"],
                                   b["min_token_prob"])[1]
            return (paths[-1] if paths else []), 0
        return write
    drive(requests, counts, on, options)


def adaptive_recorded(requests, counts, **options):
    """Steps of accept lengths, without tokens; see recorded_methods.py."""
    b = base(options, {"drafter": "", "draft_passes": "-1"})
    steps, (draft_cost, verify_cost), make = controllers(**options)
    for r in requests:
        lengths, n, p = r["accept"][b["drafter"]]["accepted"], len(r["output"]), 0
        controller = make()
        counts.requests += 1
        counts.output_tokens += n
        while p < n:
            k = steps[controller.choose()]
            accepted = min(lengths[p], k, n - 1 - p)
            k = accepted if hasattr(controller, "cuts") else k
            passes = int(b["draft_passes"])
            calls = k if passes == -1 else passes if k else 0
            add(counts, k, k > 0, accepted, calls)
            controller.observe(accepted, accepted + 1, 1 + draft_cost * calls + verify_cost * k)
            p += accepted + 1
