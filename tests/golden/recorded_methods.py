# SPDX-License-Identifier: Apache-2.0
"""Recounts `recorded` and `recorded-steps` from the JSON lines, without a draft and without a tree.

A step at output position p of accept lengths a accepts min(a[p], k) tokens, but never the last one of
the output, and writes one more. Recorded steps are added up as they are.
"""
from counts import add


def calls(passes, drafted):
    return drafted if passes == -1 else passes if drafted else 0


def step(counts, drafted, accepted, passes):
    add(counts, drafted, drafted > 0, accepted, calls(passes, drafted))


def recorded(requests, counts, drafter, k, policy="fixed", draft_passes=-1):
    for r in requests:
        lengths, n, p = r["accept"][drafter]["accepted"], len(r["output"]), 0
        counts.requests += 1
        counts.output_tokens += n
        while p < n:
            accepted = min(lengths[p], k, n - 1 - p)
            step(counts, accepted if policy == "oracle" else k, accepted, draft_passes)
            p += accepted + 1


def recorded_steps(requests, counts, length=0, draft_passes=-1):
    for r in requests:
        accepted = r["steps"]["accepted"]
        drafted = r["steps"].get("drafted") or [max(length, a) for a in accepted]
        written, n = sum(accepted) + len(accepted), len(r["output"])
        counts.requests += 1
        if not r["steps"]["aligned"]:
            n = max(n, written)
        counts.output_tokens += n
        for _ in range(n - written):  # tokens that no step wrote
            step(counts, 0, 0, draft_passes)
        beyond = max(written - n, 0)  # the last step was cut
        for i, (a, d) in enumerate(zip(accepted, drafted)):
            step(counts, d, a - (beyond if i + 1 == len(accepted) else 0), draft_passes)
