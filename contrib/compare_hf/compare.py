# SPDX-License-Identifier: Apache-2.0
"""Compares draftscope live with transformers' assisted generation on equal checkpoints, greedy.

    python compare.py --draftscope ../../draftscope --target ../../live/demo/target \\
        --draft ../../live/demo/draft --prompts ../../live/demo/prompts.jsonl -o compare.tsv

Requires torch and transformers. Writes one row per prompt with the equality of the texts and the
drafted and accepted tokens of each step, and prints the speeds. The exit code is 1 when a text or a
step differs. README.md describes how the two programs count.
"""
import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.generation import candidate_generator


class Steps:
    """Records the drafted and accepted tokens of each step of transformers' assisted generation."""

    def __init__(self):
        generator = candidate_generator.AssistedCandidateGenerator
        original = generator.update_candidate_strategy
        self.drafted, self.accepted = [], []

        def update(this, input_ids, scores, num_matches):
            self.drafted.append(scores.shape[1] - 1)
            self.accepted.append(int(num_matches))
            return original(this, input_ids, scores, num_matches)
        generator.update_candidate_strategy = update

    def take(self):
        taken = self.drafted, self.accepted
        self.drafted, self.accepted = [], []
        return taken


def read_prompts(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line)["prompt"] for line in f]


def run_transformers(o, prompts):
    """Returns (tokens, drafted, accepted) of each prompt, and (wall, processor) seconds of both
    modes."""
    tokenizer = AutoTokenizer.from_pretrained(o.target)
    target = AutoModelForCausalLM.from_pretrained(o.target, dtype=torch.float32).eval()
    draft = AutoModelForCausalLM.from_pretrained(o.draft, dtype=torch.float32).eval()
    # Disables the default schedule of draft lengths, and the early end of a draft where the
    # assistant's confidence is low.
    draft.generation_config.num_assistant_tokens = o.length
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    steps, runs, seconds = Steps(), [], {"assisted": [0, 0], "plain": [0, 0]}
    for i, prompt in enumerate(prompts[:1] + prompts):  # the first prompt is also the warmup
        ids = tokenizer(prompt, return_tensors="pt")
        out = {}
        for kind, assistant in (("assisted", draft), ("plain", None)):
            steps.take()
            start = time.perf_counter(), time.process_time()
            made = target.generate(**ids, assistant_model=assistant, do_sample=False,
                                   max_new_tokens=o.max_tokens)
            out[kind] = made[0, ids["input_ids"].shape[1]:].tolist()
            if i:
                seconds[kind][0] += time.perf_counter() - start[0]
                seconds[kind][1] += time.process_time() - start[1]
            if assistant is not None:
                drafted, accepted = steps.take()
        if not i:
            continue
        if out["assisted"] != out["plain"]:
            sys.exit(f"prompt {i}: assisted and plain decoding of transformers differ")
        runs.append((out["assisted"], drafted, accepted))
    return runs, seconds


def run_draftscope(o, prompts):
    """Returns the same results for draftscope, with the steps from a recording."""
    models = ["--target", o.target, "--prompts", o.prompts, "--max-tokens", str(o.max_tokens),
              "--threads", str(o.threads), "--device", "cpu", "--requests", str(len(prompts))]
    chain = [*models, "--draft", o.draft, "--method", "draft-model", "--num-speculative-tokens", str(o.length)]
    with tempfile.TemporaryDirectory() as folder:
        trace = folder + "/run.dst"
        subprocess.run([o.draftscope, "live", "record", *chain, "-o", trace, "--num-drafts", "1",
                        "--progress", "never"], check=True)
        lines = subprocess.run([o.draftscope, "trace", "export", trace], check=True,
                               capture_output=True, text=True).stdout.splitlines()
    runs = []
    for line in map(json.loads, lines):
        steps = line["steps"]
        runs.append((line["output"]["tokens"], steps["drafted"], steps["accepted"]))
    none = [*models, "--method", "none"]
    return runs, [{"assisted": measure(o, chain), "plain": measure(o, none)}
                  for _ in range(o.repeats)]


def measure(o, arguments):
    """Returns wall seconds of the requests and processor seconds of the program with loading."""
    before = os.times()
    done = subprocess.run([o.draftscope, "live", "run", *arguments, "--json"], check=True,
                          capture_output=True, text=True)
    after = os.times()
    return [json.loads(done.stdout)["time_s"], after.children_user + after.children_system
            - before.children_user - before.children_system]


def words(numbers):
    return " ".join(map(str, numbers))


def write_rows(o, theirs, ours):
    wrong = 0
    with open(o.o, "w", newline="", encoding="utf-8") as f:
        f.write(f"# transformers {transformers.__version__}, torch {torch.__version__}, "
                f"{platform.machine()}, {o.threads} thread(s), length {o.length}, "
                f"{o.max_tokens} tokens\n")
        out = csv.writer(f, delimiter="\t", lineterminator="\n")
        out.writerow(["prompt", "tokens", "same_text", "same_steps", "calls", "accepted", "drafted",
                      "hf_calls", "hf_accepted", "hf_drafted", "steps", "hf_steps"])
        for i, (a, b) in enumerate(zip(ours, theirs)):
            same = [a[0] == b[0], a[2] == b[2]]
            wrong += not all(same)
            out.writerow([i, len(a[0]), *map(int, same), len(a[2]), sum(a[2]), sum(a[1]),
                          len(b[2]), sum(b[2]), sum(b[1]), words(a[2]), words(b[2])])
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("draftscope", "target", "draft", "prompts"):
        parser.add_argument("--" + name, required=True, metavar="PATH")
    parser.add_argument("--num-speculative-tokens", type=int, default=4, dest="length")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-o", default="compare.tsv", metavar="FILE.tsv")
    o = parser.parse_args()
    o.draftscope = os.path.abspath(o.draftscope)
    torch.set_num_threads(o.threads)
    torch.set_grad_enabled(False)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    prompts = read_prompts(o.prompts)
    times = []
    for _ in range(o.repeats):
        theirs, seconds = run_transformers(o, prompts)
        times.append(seconds)
    ours, measured = run_draftscope(o, prompts)
    wrong = write_rows(o, theirs, ours)
    tokens = sum(len(r[0]) for r in theirs)
    print(f"{len(theirs)} prompts, {tokens} tokens, {wrong} with a different text or steps")
    print("tokens per second, best of", o.repeats)
    for name, runs in (("transformers", times), ("draftscope", measured)):
        for clock, what in enumerate(("wall", "processor")):
            # The minimum is least affected by other programs on the machine.
            plain, drafts = (tokens / min(r[k][clock] for r in runs) for k in ("plain", "assisted"))
            print(f"{name:14}{what:10}plain {plain:8.1f}   drafts of {o.length} {drafts:8.1f}   "
                  f"speedup {drafts / plain:.2f}")
    sys.exit(1 if wrong else 0)


main()
