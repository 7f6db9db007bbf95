#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A slow simulator of a serving engine, to compare sim/serve/ with.

serve.py make SEED      prints a small workload
serve.py run <WORKLOAD  simulates it and prints every step and every completed request

It was written from the description of the engine and not from its code: requests are objects in
lists, KV blocks have numbers, and every quantity is found anew at each step. The cost model is
linear. Needs no packages. tests/oracle/serve_events.c prints the same of the engine.
"""
import collections
import random
import sys


class Request:
    def __init__(self, number, arrival, prompt, output, offers, confidence):
        self.number, self.arrival = number, arrival
        self.prompt, self.output, self.offers = prompt, output, offers
        self.confidence = confidence  # of each output token
        self.answer = 0  # output tokens so far
        self.cached = 0  # tokens whose keys and values are in blocks
        self.blocks = set()
        self.draft = 0  # tokens to verify; of a tree: levels
        self.next = 0  # of the steps, where the offers are those
        self.first = self.last = None
        self.preemptions = 0

    def tokens(self):
        return self.prompt + self.answer


# Policies --------------------------------------------------------------------


class Policy:
    """The longest draft in every step."""

    def see(self, accepted):
        pass

    def choose(self, server, plan, emitted, going):
        """Draft lengths of the requests that go on; `plan` is what this step computed."""
        length = self.length(server, plan, going)
        return [min(server.offer(r)[0], length) for r in going]

    def length(self, server, plan, going):
        return server.k


class Oracle(Policy):
    def choose(self, server, plan, emitted, going):
        return [server.offer(r)[1] for r in going]


class Schedule(Policy):
    def __init__(self, text):
        self.ranges = []
        for word in text.split(","):
            requests, length = word.split("=")
            self.ranges.append((int(requests.split("-")[0]), int(length)))

    def length(self, server, plan, going):
        return [length for first, length in self.ranges if first <= len(plan)][-1]


class OffAbove(Policy):
    """No drafts above a rate; arrivals are noted at the step that first sees them."""

    def __init__(self, text, server):
        self.limit, self.window = map(float, text.split(","))
        self.begin, self.noted, self.seen = server.clock, [], 0

    def length(self, server, plan, going):
        tenth = int((server.clock - self.begin) / self.window * 10)
        self.noted += [tenth] * (server.sent - self.seen)
        self.seen = server.sent
        recent = sum(1 for t in self.noted if t > tenth - 10)
        return server.k if recent / self.window <= self.limit else 0


class Slot:
    def __init__(self, settings, longest):
        self.__dict__.update(settings)
        self.lengths = sorted(k for k in self.candidate_steps if k <= longest)
        middle = self.lengths[len(self.lengths) // 2]
        self.length = longest if longest in self.lengths else middle
        self.average, self.batches = self.length - 1.0, 0

    def end_of_batch(self, accepted):
        if self.length:
            mean = sum(accepted) / len(accepted)
            self.average = (1 - self.ema_alpha) * self.average + self.ema_alpha * mean
        self.batches += 1
        later = self.batches - self.warmup_batches
        if later > 0 and later % self.update_interval == 0:
            self.length = self.moved() if self.length else self.probed()

    def probed(self):
        up = [k for k in self.lengths if k > 0]
        if up and self.average < 0:
            self.average = up[0] - 1.0
        return up[0] if up else 0

    def moved(self):
        length, longer = self.length, [k for k in self.lengths if k > self.length]
        for below in sorted((k for k in self.lengths if k < self.length), reverse=True):
            if self.average > (below - 0.5 if below else 0.5) + self.down_hysteresis:
                break
            length = below
        while length >= self.length and longer:
            if self.average <= length - 0.5 + self.up_hysteresis:
                break
            length = longer.pop(0)
        return length


class Ema(Policy):
    """Settings before the first bs= are those of all slots."""

    def __init__(self, text, longest):
        common = {"ema_alpha": 0.2, "update_interval": 5, "warmup_batches": 10,
                  "down_hysteresis": -0.25, "up_hysteresis": 0.0}
        self.slots, settings, self.batch = {}, common, []
        for word in text.split(","):
            name, value = word.split("=")
            if name == "bs":
                settings = self.slots.setdefault(int(value), dict(common))
            elif name == "candidate_steps":
                settings[name] = [int(k) for k in value.split("/")]
            else:
                settings[name] = float(value)
        self.slots = {bs: Slot(settings, longest) for bs, settings in self.slots.items()}

    def slot(self, requests):
        return self.slots[max([bs for bs in self.slots if bs <= requests] or [min(self.slots)])]

    def see(self, accepted):
        self.batch.append(accepted)

    def length(self, server, plan, going):
        verified = self.slot(server.decoding)
        if self.batch or (server.decoding and not verified.length):
            verified.end_of_batch(self.batch)
        self.batch = []
        return self.slot(len(going)).length


class Adaptive(Policy):
    def __init__(self, text, server):
        self.confidence = text or "position"
        if self.confidence == "position":
            self.curve = measured_curve(server.items, server.k)

    def survivals(self, server, request):
        """Of the slots of a request that can be accepted, by depth."""
        most, run = server.offer(request)
        if self.confidence == "oracle":
            return [1.0] * run
        survivals, product = [], 1.0
        for depth in range(most):
            if self.confidence == "calibrated":
                product *= request.confidence[request.answer + depth]
            elif self.confidence == "position":
                product = self.curve[depth]
            else:
                product = float(self.confidence.split(":")[1]) ** (depth + 1)
            survivals.append(product)
        while survivals and survivals[-1] <= 0:
            survivals.pop()
        return survivals

    def choose(self, server, plan, emitted, going):
        slots = []  # in falling order of survival, then by request and depth
        for i, request in enumerate(going):
            slots += [(-s, i, d + 1) for d, s in enumerate(self.survivals(server, request))]
        slots.sort()
        others, decoding, sampled = server.next_step(emitted)
        best, choice = sampled / server.seconds(others, 0), []
        deepest = max((d for _, _, d in slots), default=0)
        for last, (_, _, depth) in enumerate(slots):
            limits = range(depth, deepest + 1) if server.drafting == "each" else [deepest]
            for limit in limits:
                taken = [s for s in slots[: last + 1] if s[2] <= limit]
                if decoding + len(taken) > server.max_num_batched_tokens:
                    continue  # drafts displace prefill, whose time is counted all the same
                expected = 0.0
                for survival, _, _ in taken:
                    expected -= survival
                passes = {"free": 0, "once": 1, "each": limit}[server.drafting]
                rate = (sampled + expected) / server.seconds(others + len(taken), passes)
                if rate > best:
                    best, choice = rate, taken
        return [sum(1 for _, j, _ in choice if j == i) for i in range(len(going))]


def measured_curve(items, longest):
    """The product of the shares of drafts that are accepted one token further, in steps with the
    longest draft."""
    steps = []
    for _, output, offers, _ in items:
        t = 1
        while t < output - 1:
            drafted = min(offers[t][0], longest, output - t - 1)
            steps.append((drafted, min(offers[t][1], drafted)))
            t += steps[-1][1] + 1
    curve, product = [], 1.0
    for depth in range(1, longest + 1):
        tried = sum(1 for drafted, run in steps if drafted >= depth and run >= depth - 1)
        accepted = sum(1 for drafted, run in steps if drafted >= depth and run >= depth)
        product *= accepted / tried if tried else 0.0
        curve.append(product)
    return curve


def make_policy(text, server):
    name, _, rest = text.partition(":")
    if name == "adaptive":
        return Adaptive(rest, server)
    if name == "ema":
        return Ema(rest, server.k) if server.k else Policy()
    if name == "off-above":
        return OffAbove(rest, server)
    return {"fixed": Policy, "oracle": Oracle}[name]() if not rest else Schedule(rest)


# The engine ------------------------------------------------------------------


class Server:
    def __init__(self, workload):
        self.__dict__.update(workload)
        self.clock = 0.0
        self.running, self.waiting = [], collections.deque()
        self.unlimited = self.kv_blocks == 0
        self.free = set(range(self.kv_blocks))
        self.sent = self.done = self.steps = 0
        self.preempted = self.drafted = self.accepted = self.computed_again = 0
        if self.arrivals[0] == "closed":
            for _ in range(min(self.arrivals[1], self.requests)):
                self.send(0.0)
        else:
            self.times = collections.deque(self.arrivals[1][: self.requests])
            self.clock = self.times[0]
            self.receive()
        self.policy = make_policy(self.policy, self)

    def send(self, time):
        self.waiting.append(Request(self.sent, time, *self.items[self.sent % len(self.items)]))
        self.sent += 1

    def receive(self):
        while self.arrivals[0] != "closed" and self.times and self.times[0] <= self.clock:
            self.send(self.times.popleft())

    def closed_loop_answer(self):
        if self.arrivals[0] == "closed" and self.sent < self.requests:
            self.send(self.clock)

    # Schedules ---------------------------------------------------------------

    def nodes(self, request):
        """Tokens of its draft."""
        return self.tree[request.draft] if self.tree else request.draft

    def want(self, request, budget):
        tokens = request.tokens() + self.nodes(request) - request.cached
        if self.script and request.answer:  # a step is whole, or its time has not come
            return tokens if tokens <= budget else min(budget, tokens - request.draft - 1)
        if self.long_prefill_token_threshold:
            tokens = min(tokens, self.long_prefill_token_threshold)
        tokens = min(tokens, budget)
        room = request.cached + tokens - request.tokens()  # for the draft
        if self.tree and room >= 0:
            request.draft = max(i for i in range(request.draft + 1) if self.tree[i] <= room)
            tokens -= room - self.nodes(request)
        return tokens

    def allocate(self, request, tokens, lookahead):
        """Blocks for the cache after this step, and for the draft model's tokens after that."""
        slots = request.cached + tokens + lookahead
        lacking = -(-slots // self.block_size) - len(request.blocks)
        if self.unlimited or lacking <= 0:
            return True
        if lacking > len(self.free):
            return False
        for _ in range(lacking):
            request.blocks.add(self.free.pop())
        return True

    def release(self, request):
        assert not request.blocks & self.free
        self.free |= request.blocks
        request.blocks = set()

    def preempt(self):
        victim = self.running.pop()
        self.release(victim)
        self.computed_again += victim.cached
        victim.cached = 0
        victim.draft = victim.draft if self.script else 0
        victim.preemptions += 1
        self.preempted += 1
        self.waiting.appendleft(victim)
        return victim

    def schedule(self):
        """Pairs of request and tokens."""
        budget, plan, preempting = self.max_num_batched_tokens, [], False
        for request in list(self.running):
            if request not in self.running:
                break  # preempted meanwhile, and so are all newer ones
            tokens = self.want(request, budget)
            if tokens == 0:
                continue
            gone = None
            while gone is not request and not self.allocate(request, tokens, self.lookahead):
                gone, preempting = self.preempt(), True
            if gone is request:
                break
            plan.append((request, tokens))
            budget -= tokens
        while not preempting and self.waiting and budget and len(self.running) < self.max_num_seqs:
            request = self.waiting[0]
            tokens = self.want(request, budget)
            whole = -(-(request.tokens() + self.nodes(request)) // self.block_size)
            if not self.unlimited and whole > len(self.free):
                break  # its first chunk may fit, but not what follows
            if not self.allocate(request, tokens, 0):
                break
            self.running.append(self.waiting.popleft())
            plan.append((request, tokens))
            budget -= tokens
        return plan

    # Computes ----------------------------------------------------------------

    def offer(self, request):
        """The longest draft, and how much of it would be accepted."""
        available, run, _ = request.offers[request.answer]
        most = min(available, self.k, request.output - request.answer - 1)
        return most, min(run, most)

    def verify(self, request, tokens):
        """Returns the number of tokens that the request emits."""
        drafted = request.cached + tokens - request.tokens()
        if drafted < 0:
            request.cached += tokens
            return 0
        accepted = 0
        levels = request.draft if self.tree else drafted
        while accepted < levels and accepted < self.offer(request)[1]:
            accepted += 1
        request.cached = request.tokens() + accepted
        request.answer += accepted + 1
        request.draft = 0
        self.drafted += drafted
        self.accepted += accepted
        if drafted:
            self.policy.see(accepted)
        return accepted + 1

    def seconds(self, tokens, passes):
        return (self.fixed_s + self.per_token_s * tokens + passes * self.draft_s
                + self.overhead_s)

    def next_step(self, emitted):
        """Tokens of the next step without new drafts, how many of them decode, and requests that it
        samples from, if nobody arrives or is preempted and no running request needs a block."""
        left, decoding, sampled, running = self.max_num_batched_tokens, 0, 0, 0
        free = len(self.free)
        for request in self.running:
            if request.answer == request.output:
                free += len(request.blocks)
                continue
            running += 1
            tokens = min(self.want(request, left), 1 if emitted.get(request) else left)
            left -= tokens
            sampled += tokens > 0 and request.cached + tokens >= request.tokens()
            decodes = request.answer and request.cached == request.tokens() - 1
            decoding += tokens if decodes else 0
        for request in self.waiting:
            tokens = self.want(request, left)
            if not tokens or running == self.max_num_seqs:
                break
            if not self.unlimited and -(-request.tokens() // self.block_size) > free:
                break
            free -= -(-tokens // self.block_size)
            running += 1
            left -= tokens
            sampled += tokens >= request.tokens()
        return self.max_num_batched_tokens - left, decoding, sampled

    def follow(self, request, tokens):
        """Serves the next step. Returns the emitted tokens and the passes of the draft model."""
        request.cached += tokens
        if request.cached < request.tokens():
            return 0, 0
        emitted, passes = 1, 0
        if request.answer:
            _, drafted, accepted, emitted, passes = request.offers[request.next]
            request.next += 1
            self.drafted += drafted
            self.accepted += accepted
        request.answer += emitted
        request.cached = request.tokens() - 1
        if request.answer == request.output:
            return emitted, passes if self.script == "overlap" else 0
        request.draft = request.offers[request.next][0]
        return emitted, passes if self.script == "overlap" else request.offers[request.next][4]

    def follow_all(self, plan):
        served = {request: self.follow(request, tokens) for request, tokens in plan}
        longest = max([passes for _, passes in served.values()], default=0)
        return {request: emitted for request, (emitted, _) in served.items()}, longest

    def verify_all(self, plan):
        emitted = {request: self.verify(request, tokens) for request, tokens in plan}
        going = [r for r in self.running if emitted.get(r) and r.answer < r.output]
        drafts = self.policy.choose(self, plan, emitted, going) if self.k else [0] * len(going)
        for request, draft in zip(going, drafts):
            request.draft = draft
        return emitted, max(drafts, default=0)

    def step(self):
        plan = self.schedule()
        seconds = self.fixed_s + self.per_token_s * sum(tokens for _, tokens in plan)
        self.decoding = sum(1 for r, _ in plan if r.answer and r.cached == r.tokens() - 1)
        decoding = sum(t for r, t in plan if r.answer and r.cached == r.tokens() - 1)
        prefill = sum(t for _, t in plan) - decoding
        emitted, longest = self.follow_all(plan) if self.script else self.verify_all(plan)
        passes = {"free": 0, "once": min(longest, 1), "each": longest}[self.drafting]
        if self.script == "overlap":
            self.clock += max(seconds, passes * self.draft_s) + self.overhead_s
        else:
            self.clock += seconds + passes * self.draft_s + self.overhead_s
        self.steps += 1
        line = [f"step {self.clock:.9f} {decoding} {prefill} {len(self.waiting)} {len(self.free)}"]
        for r in self.running:
            draft = 0 if r.answer == r.output else self.nodes(r)
            line.append(f"{r.number}:{emitted.get(r, 0)},{r.cached},{len(r.blocks)},{draft}")
        print(" ".join(line))
        self.finish(emitted)

    def finish(self, emitted):
        complete = []
        for request in self.running:
            if emitted.get(request):
                request.last = self.clock
                request.first = self.clock if request.first is None else request.first
            if request.answer == request.output:
                complete.append(request)
        for r in complete:
            print(f"done {r.number} {r.arrival:.9f} {r.first:.9f} {r.last:.9f} {r.preemptions}")
            self.running.remove(r)
            self.release(r)
            self.done += 1
        for _ in complete:
            self.closed_loop_answer()

    def run(self):
        while self.done < self.requests:
            if not self.running and not self.waiting:
                if self.arrivals[0] != "closed":
                    self.clock = max(self.clock, self.times[0])
                self.receive()
            self.step()
            self.receive()
        assert self.unlimited or len(self.free) == self.kv_blocks
        print(f"end {self.steps} {self.preempted} {self.computed_again} {self.drafted}"
              f" {self.accepted}")


def make_steps(rng, output):
    """Of a request after its first token."""
    steps, left = [], output - 1
    while left > 0:
        accepted = rng.randint(0, min(4, left - 1))
        emitted = rng.choice([accepted + 1, accepted, 0]) if accepted else rng.choice([0, 1])
        accepted = accepted if emitted else 0
        drafted = accepted + rng.randint(0, 3)
        steps.append((drafted + rng.randint(-1, 6) if drafted else 0, drafted, accepted, emitted,
                      rng.randint(0, 5)))
        left -= emitted
    return steps


def make(seed):
    """Costs are sums of powers of two and arrivals have few digits, so that times are exact."""
    rng = random.Random(seed)
    kind = ("chain", "tree", "chain", "script")[seed % 4]
    requests, k = 40, rng.choice([1, 3, 5] if seed % 17 else [0])
    seqs = rng.choice([1, 3, 8, 64])
    limited = rng.random() < .6
    block, lookahead = rng.choice([1, 4, 16]), rng.choice([0, k])
    items = []
    for _ in range(rng.choice([7, 40])):
        prompt, output = rng.randint(1, 90), rng.randint(1, 45)
        offers = []
        for _ in range(output):
            available = rng.choice([0, k, rng.randint(0, 6)])
            offers.append((available, rng.randint(0, available), rng.randint(0, 16)))
        items.append((prompt, output, make_steps(rng, output) if kind == "script" else offers))
    tree = [0]
    while kind == "tree" and len(tree) <= k:
        tree.append(tree[-1] + rng.randint(1, 6))
    widest = tree[-1]
    if kind == "script":
        widest = max((s[0] for _, _, steps in items for s in steps), default=0)
    least = max(-(-(p + o + lookahead + widest) // block) for p, o, _ in items)
    print("requests", requests)
    if rng.random() < .4:
        print("closed", rng.choice([1, 5, 12]))
    else:
        time, times = 0.0, []
        for _ in range(requests):
            time += rng.choice([0, round(rng.expovariate(1 / rng.choice([.05, .3, 2])), 3)])
            times.append(f"{time + .0003:.4f}")
        print("recorded", *times)
    small = rng.randint(1, 4)
    policies = [
        "fixed", "oracle", f"schedule:1-{small}={k},{small + 2}-9={min(k, 1)}",
        f"off-above:{rng.choice([1, 4])},{rng.choice([.5, 2])}",
        f"ema:ema_alpha={rng.choice([.2, .5])},update_interval={rng.randint(1, 3)},"
        f"warmup_batches={rng.randint(0, 3)},bs=1,candidate_steps=0/1/3/5,"
        f"down_hysteresis={rng.choice([0, -.25])},bs={small + 1},candidate_steps=0/1/2",
        "adaptive", "adaptive:oracle", "adaptive:calibrated",
        f"adaptive:constant:{rng.choice([.5, .7])}"]
    policies = policies[:{"chain": 9, "tree": 5, "script": 1}[kind]]
    print("policy", policies[seed % len(policies)], k)
    if kind == "tree":
        print("tree", len(tree), *tree, widest)
    if kind == "script":
        print("script", rng.choice(["turns", "overlap"]), widest)
    print("drafting", "each" if kind == "script" else rng.choice(["free", "once", "each"]))
    print("max_num_seqs", seqs)
    print("max_num_batched_tokens", max(seqs, widest + 1, rng.choice([9, 33, 64, 2048])))
    print("long_prefill_token_threshold", rng.choice([0, 0, 4, 25]))
    print("kv_blocks", int(least * rng.choice([1, 1.3, 2.5])) if limited else 0)
    print("block_size", block)
    print("lookahead", lookahead)
    print("cost", 2**-6, 2**-12, 2**-8, rng.choice([0, 2**-9]))
    for prompt, output, offers in items:
        numbers = " ".join(str(n) for offer in offers for n in offer)
        print("item", prompt, output, *([len(offers)] if kind == "script" else []), numbers)


def read(lines):
    workload = {"items": [], "tree": None, "script": None}
    for line in lines:
        key, *values = line.split()
        if key == "closed":
            workload["arrivals"] = ("closed", int(values[0]))
        elif key == "recorded":
            workload["arrivals"] = ("recorded", [float(v) for v in values])
        elif key == "policy":
            workload["policy"], workload["k"] = values[0], int(values[1])
        elif key in ("drafting", "script"):
            workload[key] = values[0]
        elif key == "tree":
            workload["tree"] = [int(v) for v in values[1:-1]]
        elif key == "cost":
            for name, value in zip(("fixed_s", "per_token_s", "draft_s", "overhead_s"), values):
                workload[name] = float(value)
        elif key == "item":
            numbers = [int(v) for v in values]
            each = numbers[2:] if not workload["script"] else numbers[3:]
            size = 3 if not workload["script"] else 5
            offers = [tuple(each[i : i + size]) for i in range(0, len(each), size)]
            confidence = None if workload["script"] else [c / 16 for _, _, c in offers]
            workload["items"].append((numbers[0], numbers[1], offers, confidence))
        else:
            workload[key] = int(values[0])
    return workload


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(int(sys.argv[2]))
    else:
        Server(read(sys.stdin)).run()
