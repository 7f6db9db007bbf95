#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the sorted computation in numpy, to compare with bench_accept. It is run by hand.

Usage: accept_numpy.py [VOCAB [ROUNDS]]

It makes two distributions as bench_accept does (Zipf with a standard normal on the target's
logits), sorts by target/draft with argsort, and computes prefix sums and every acceptance quantity
of bench_accept for k = 1..16. numpy >= 1.25 sorts with AVX-512 or AVX2 where the processor has it.
Prints nanoseconds per token, the median over the rounds; compare it with bench_accept's
ns_per_token on the same machine.
"""
import statistics
import sys
import time

import numpy as np

K = 16


def make_rows(vocab, temperature, rng):
    logits = -np.log(rng.permutation(vocab) + 1.0)
    noisy = logits + rng.standard_normal(vocab)
    rows = [np.exp((x - x.max()) / temperature) for x in (logits, noisy)]
    return [(x / x.sum()).astype(np.float32) for x in rows]


def sort(draft, target):
    with np.errstate(divide="ignore"):
        ratio = target / draft
    order = np.argsort(ratio)
    below = [np.concatenate(([0.0], np.cumsum(x[order], dtype=np.float64)))
             for x in (draft, target)]
    return ratio[order], below[0] / below[0][-1], below[1] / below[1][-1]


def quantities(ratio, p, q):
    """Returns (k, rejection, SpecInfer, k-Seq, rho, OTM) for k = 1..K."""
    def w(c):
        i = np.searchsorted(ratio, c, side="right")
        return (1 - q[i]) - c * (1 - p[i])

    out, c, power = [], 1.0, np.ones_like(p)
    for k in range(1, K + 1):
        left = w(c)
        lo, hi = 1.0, float(k)
        while hi - lo > 1e-9:
            rho = (lo + hi) / 2
            x = w(rho)
            lo, hi = (rho, hi) if ((rho - 1 + x) / rho) ** k < x else (lo, rho)
        power *= p
        out.append((k, 1 - w(1.0), 1 - left, 1 - w(hi), hi, 1 - np.max(power - q)))
        c += left
    return out


def median_ns(f, rounds, vocab):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return statistics.median(times) / vocab * 1e9


def main():
    vocab = int(sys.argv[1]) if len(sys.argv) > 1 else 151936
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    print(f"# numpy {np.__version__}")
    print("vocab,temperature,argsort_ns_per_token,argsort_and_quantities_ns_per_token")
    for temperature in (0.6, 0.8, 1.0):
        draft, target = make_rows(vocab, temperature, np.random.default_rng(1))
        a = median_ns(lambda: sort(draft, target), rounds, vocab)
        b = median_ns(lambda: quantities(*sort(draft, target)), rounds, vocab)
        print(f"{vocab},{temperature:g},{a:.2f},{b:.2f}")


if __name__ == "__main__":
    main()
