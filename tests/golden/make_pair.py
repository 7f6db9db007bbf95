#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Measured speedups of Spec-Bench's logs by category, read from the logs as they are, and the same by
# a simple prediction: seconds of a turn = fixed + call x decoding steps, least squares weighted by
# 1/time, fitted to the other categories. Writes the table that tests/cli/test_validate_pair.sh
# compares with `draftscope validate A.dst B.dst`.
#
#   python3 tests/golden/make_pair.py DATA/specbench > tests/golden/pair.tsv
import json
import sys

RUNS = ("eagle", "sps-68m")


def read(folder, name):
    """{question: (category, [(steps, tokens, seconds), ...])}, a triple per turn."""
    log = {}
    with open(f"{folder}/{name}.jsonl", encoding="utf-8") as lines:
        for line in lines:
            answer = json.loads(line)
            choice = answer["choices"][0]
            turns = list(zip(choice["decoding_steps"], choice["new_tokens"], choice["wall_time"]))
            log[answer["question_id"]] = answer["category"], turns
    return log


def fit(log, without):
    """fixed and call of the turns of all other categories, minimizing sum (t - model)^2 / t."""
    n = x = xx = y = xy = 0.0
    for category, turns in log.values():
        if category == without:
            continue
        for steps, _, seconds in turns:
            w = 1 / seconds
            n += w
            x += w * steps
            xx += w * steps * steps
            y += w * seconds
            xy += w * steps * seconds
    call = (n * xy - x * y) / (n * xx - x * x)
    return (y - call * x) / n, call


def predict(log):
    """{question: predicted seconds}."""
    seconds = {}
    for category in {c for c, _ in log.values()}:
        fixed, call = fit(log, category)
        for question, (own, turns) in log.items():
            if own == category:
                seconds[question] = sum(fixed + call * steps for steps, _, _ in turns)
    return seconds


def row(a, b, questions, guess_a, guess_b):
    def tokens(log, q):
        return sum(t for _, t, _ in log[q][1])

    def seconds(log, q):
        return sum(s for _, _, s in log[q][1])

    def total(f, log):
        return sum(f(log, q) for q in questions)

    measured = (total(seconds, a) / total(tokens, a)) / (total(seconds, b) / total(tokens, b))
    rate = [sum(tokens(log, q) / seconds(log, q) for q in questions) for log in (a, b)]
    predicted = (sum(guess_a[q] for q in questions) / total(tokens, a)) / (
        sum(guess_b[q] for q in questions) / total(tokens, b))
    return measured, total(seconds, a) / total(seconds, b), rate[1] / rate[0], predicted


def main():
    folder = sys.argv[1]
    a = read(folder, "vanilla")
    guess_a = predict(a)
    print("run\tcategory\trequests\tmeasured\tper_request\tmean_rate\tsimple_prediction")
    for run in RUNS:
        b = read(folder, run)
        guess_b = predict(b)
        for category in ["all"] + list(dict.fromkeys(c for c, _ in a.values())):
            questions = [q for q in a if q in b and category in ("all", a[q][0])]
            numbers = row(a, b, questions, guess_a, guess_b)
            print(run, category, len(questions), *(f"{x:.9g}" for x in numbers), sep="\t")


main()
