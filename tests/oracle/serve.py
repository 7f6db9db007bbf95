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
    def __init__(self, number, arrival, prompt, output, offers):
        self.number, self.arrival = number, arrival
        self.prompt, self.output, self.offers = prompt, output, offers
        self.answer = 0  # output tokens so far
        self.cached = 0  # tokens whose keys and values are in blocks
        self.blocks = set()
        self.draft = 0  # tokens to verify
        self.first = self.last = None
        self.preemptions = 0

    def tokens(self):
        return self.prompt + self.answer


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

    def send(self, time):
        prompt, output, offers = self.items[self.sent % len(self.items)]
        self.waiting.append(Request(self.sent, time, prompt, output, offers))
        self.sent += 1

    def receive(self):
        while self.arrivals[0] != "closed" and self.times and self.times[0] <= self.clock:
            self.send(self.times.popleft())

    def closed_loop_answer(self):
        if self.arrivals[0] == "closed" and self.sent < self.requests:
            self.send(self.clock)

    # Schedules ---------------------------------------------------------------

    def want(self, request, budget):
        tokens = request.tokens() + request.draft - request.cached
        if self.long_prefill_token_threshold:
            tokens = min(tokens, self.long_prefill_token_threshold)
        return min(tokens, budget)

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
        victim.cached = victim.draft = 0
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
            whole = -(-request.tokens() // self.block_size)
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
        available, run = request.offers[request.answer]
        return min(available, self.k, request.output - request.answer - 1), run

    def verify(self, request, tokens):
        """Returns the number of tokens that the request emits."""
        drafted = request.cached + tokens - request.tokens()
        if drafted < 0:
            request.cached += tokens
            return 0
        accepted = 0
        while accepted < drafted and accepted < self.offer(request)[1]:
            accepted += 1
        request.cached = request.tokens() + accepted
        request.answer += accepted + 1
        request.draft = 0
        self.drafted += drafted
        self.accepted += accepted
        return accepted + 1

    def draft(self, request):
        most, run = self.offer(request)
        if self.policy == "oracle":
            return min(most, run)
        if self.policy == "schedule":
            return min(most, self.k if len(self.running) <= self.small else 1)
        return most

    def step(self):
        plan = self.schedule()
        seconds = self.fixed_s + self.per_token_s * sum(tokens for _, tokens in plan)
        decoding = sum(t for r, t in plan if r.answer and r.cached == r.tokens() - 1)
        prefill = sum(t for _, t in plan) - decoding
        emitted = {request: self.verify(request, tokens) for request, tokens in plan}
        longest = 0
        for request in self.running:
            if emitted.get(request) and request.answer < request.output:
                request.draft = self.draft(request)
                longest = max(longest, request.draft)
        passes = {"free": 0, "once": min(longest, 1), "each": longest}[self.drafting]
        self.clock += seconds + passes * self.draft_s + self.overhead_s
        self.steps += 1
        line = [f"step {self.clock:.9f} {decoding} {prefill} {len(self.waiting)} {len(self.free)}"]
        for r in self.running:
            line.append(f"{r.number}:{emitted.get(r, 0)},{r.cached},{len(r.blocks)},{r.draft}")
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


def make(seed):
    """Costs are sums of powers of two and arrivals have few digits, so that times are exact."""
    rng = random.Random(seed)
    requests, k = 40, rng.choice([0, 1, 3, 5])
    seqs = rng.choice([1, 3, 8, 64])
    limited = rng.random() < .6
    block, lookahead = rng.choice([1, 4, 16]), rng.choice([0, k])
    items = []
    for _ in range(rng.choice([7, 40])):
        prompt, output = rng.randint(1, 90), rng.randint(1, 45)
        offers = []
        for _ in range(output):
            available = rng.choice([0, k, rng.randint(0, 6)])
            offers.append((available, rng.randint(0, available)))
        items.append((prompt, output, offers))
    least = max(-(-(p + o + lookahead) // block) for p, o, _ in items)
    print("requests", requests)
    if rng.random() < .4:
        print("closed", rng.choice([1, 5, 12]))
    else:
        time, times = 0.0, []
        for _ in range(requests):
            time += rng.choice([0, round(rng.expovariate(1 / rng.choice([.05, .3, 2])), 3)])
            times.append(f"{time + .0003:.4f}")
        print("recorded", *times)
    print("policy", rng.choice(["fixed", "fixed", "oracle", "schedule"]), k, rng.randint(1, 4))
    print("drafting", rng.choice(["free", "once", "each"]))
    print("max_num_seqs", seqs)
    print("max_num_batched_tokens", max(seqs, rng.choice([9, 33, 64, 2048])))
    print("long_prefill_token_threshold", rng.choice([0, 0, 4, 25]))
    print("kv_blocks", int(least * rng.choice([1, 1.3, 2.5])) if limited else 0)
    print("block_size", block)
    print("lookahead", lookahead)
    print("cost", 2**-6, 2**-12, 2**-8, rng.choice([0, 2**-9]))
    for prompt, output, offers in items:
        print("item", prompt, output, *(f"{a} {r}" for a, r in offers))


def read(lines):
    workload = {"items": []}
    for line in lines:
        key, *values = line.split()
        if key == "closed":
            workload["arrivals"] = ("closed", int(values[0]))
        elif key == "recorded":
            workload["arrivals"] = ("recorded", [float(v) for v in values])
        elif key == "policy":
            workload["policy"] = values[0]
            workload["k"], workload["small"] = int(values[1]), int(values[2])
        elif key == "drafting":
            workload["drafting"] = values[0]
        elif key == "cost":
            for name, value in zip(("fixed_s", "per_token_s", "draft_s", "overhead_s"), values):
                workload[name] = float(value)
        elif key == "item":
            numbers = [int(v) for v in values]
            offers = list(zip(numbers[2::2], numbers[3::2]))
            workload["items"].append((numbers[0], numbers[1], offers))
        else:
            workload[key] = int(values[0])
    return workload


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(int(sys.argv[2]))
    else:
        Server(read(sys.stdin)).run()
