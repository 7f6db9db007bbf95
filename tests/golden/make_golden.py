#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/golden.tsv. Usage: make_golden.py TOP > TOP/tests/golden/golden.tsv"""
import json
import sys
import time
from dataclasses import astuple, fields

import adaptive_methods
import model_methods
import phrase_methods
import recorded_methods
import text_methods
import trie_methods
from bpe import Tokenizer
from counts import Counts
from ngram_model import NgramModel
from sample import Request, load

VOCABULARY = 2048
METHODS = {
    "none": text_methods.none,
    "oracle": text_methods.oracle,
    "llma": text_methods.llma,
    "ngram": text_methods.ngram,
    "ngram-tree": trie_methods.ngram_tree,
    "suffix": text_methods.suffix,
    "draft-model": model_methods.chain,
    "sa-draft-model": model_methods.sa_draft_model,
    "hf-dynamic": model_methods.hf_dynamic,
    "threshold": model_methods.threshold,
    "spectr": model_methods.spectr,
    "spectr-tree": model_methods.spectr_tree,
    "tree": model_methods.tree,
    "dynamic-tree": model_methods.dynamic_tree,
    "sequoia": model_methods.sequoia,
    "cascade": model_methods.cascade,
    "lookahead": phrase_methods.lookahead,
    "ouroboros": phrase_methods.ouroboros,
    "pearl": model_methods.pearl,
    "parallel": model_methods.parallel,
    "ddtree": model_methods.ddtree,
    "adaptive": adaptive_methods.adaptive,
    "adaptive-ngram": adaptive_methods.adaptive_ngram,
    "adaptive-suffix": adaptive_methods.adaptive_suffix,
    "adaptive-recorded": adaptive_methods.adaptive_recorded,
    "recorded": recorded_methods.recorded,
    "recorded-steps": recorded_methods.recorded_steps,
}
TEXT_OPTIONS = {"semantics", "match_type", "references", "max_spec_factor", "max_spec_offset", "min_token_prob", "confidence", "name",
                "widths", "acceptance", "draft_cost", "target_slope", "drafter", "policy",
                "controller", "candidate_steps", "ema_alpha", "down_hysteresis", "up_hysteresis",
                "ucb_semantics", "exploration_weight", "delta", "verify_cost", "history",
                "base_options"}
# Options whose Python argument has another name.
LENGTH = "num-speculative-tokens"
RENAMED = {
    "oracle": {LENGTH: "k"}, "llma": {LENGTH: "k"}, "suffix": {LENGTH: "length"},
    "ngram": {"prompt-lookup-max": "n_most", "prompt-lookup-min": "n_least", LENGTH: "length"},
    "draft-model": {LENGTH: "length"}, "sequoia": {"acceptance-by-rank": "acceptance"},
    "sa-draft-model": {LENGTH: "length", "match-threshold": "threshold"},
    "hf-dynamic": {"num-assistant-tokens": "start", "increment": "up", "decrement": "down",
                   "min": "least", "max": "most"},
    "threshold": {"assistant-confidence-threshold": "confidence", LENGTH: "most"},
    "spectr": {"num-drafts": "drafts", LENGTH: "length"}, "cascade": {LENGTH: "length"},
    "tree": {"tree": "name"}, "spectr-tree": {"branches": "widths"},
    "dynamic-tree": {"num-steps": "steps", "eagle-topk": "k", "num-draft-tokens": "tokens"},
    "ouroboros": {LENGTH: "length"}, "pearl": {LENGTH: "window"},
    "parallel": {LENGTH: "length"}, "ddtree": {LENGTH: "length", "num-draft-tokens": "nodes"},
    "recorded": {LENGTH: "k"}, "recorded-steps": {LENGTH: "length"},
}


def table():
    """Yields the rows to compute: method, options, trace, target, draft, middle, prompt, output."""
    text = ("rag", "cache", "edits", "edge", "past_eos")
    small, short = ("cache", "edits", "edge"), ("cache", "edits", "edge", "past_eos", "few")
    rows = []

    def on_traces(method, options, traces, draft=None, middle=None):
        """Yields rows on recorded outputs; draft and middle are trained on the same trace."""
        for trace in traces:
            models = [f"ngram:{trace},{m},hold=0" if m else None for m in (draft, middle)]
            rows.append((method, options, trace, None, *models, 0, 0))

    def on_models(method, options, draft=None, middle=None, target="order=4,mix=0", trace="rag",
                  prompt=24, output=64):
        models = [f"ngram:{trace},{m},hold=3" if m else None for m in (target, draft, middle)]
        rows.append((method, options, None, *models, prompt, output))

    on_traces("none", "", text)
    on_models("none", "")
    for k in (1, 4, 18, 1000):
        on_traces("oracle", f"{LENGTH}={k}", text)

    for trace, which in (("rag", "docs"), ("rag", "prompt"), ("cache", "docs"), ("edits", "turns"),
                         ("edits", "all")):
        for semantics in ("paper", "code"):
            for n, k in ((1, 1), (1, 4), (1, 18), (2, 8), (3, 18), (5, 32), (8, 18)):
                on_traces("llma", f"n={n} {LENGTH}={k} max-match=5 semantics={semantics} "
                          f"references={which}", [trace])
    for which in ("docs", "turns", "prompt", "all"):
        for n, k, most in ((1, 1, 5), (2, 100, 0), (1, 4, 1), (3, 3, 2)):
            on_traces("llma", f"n={n} {LENGTH}={k} max-match={most} semantics=paper references={which}",
                      ["edge"])
    for which in ("docs", "turns", "prompt", "all"):
        for semantics in ("paper", "code"):
            for n, k, most in ((1, 1, 5), (1, 4, 0), (2, 18, 3), (3, 8, 8), (1, 100, 2)):
                on_traces("llma", f"n={n} {LENGTH}={k} max-match={most} semantics={semantics} "
                          f"references={which}", ["few"])
    on_traces("llma", f"n=1 {LENGTH}=18 max-match=0 semantics=paper references=docs", ["rag", "cache"])

    for semantics in ("original", "transformers", "vllm", "llama.cpp"):
        for most, least, length in ((3, 1, 10), (3, 1, 1), (2, 2, 5), (1, 1, 3), (5, 3, 40)):
            on_traces("ngram", f"prompt-lookup-max={most} prompt-lookup-min={least} "
                      f"{LENGTH}={length} semantics={semantics}", text + ("few",))
        on_traces("ngram", f"prompt-lookup-max=6 prompt-lookup-min=2 {LENGTH}=15 "
                  f"semantics={semantics}", ["few"])
        on_models("ngram", f"prompt-lookup-max=3 prompt-lookup-min=1 {LENGTH}=4 "
                  f"semantics={semantics}")

    for length, depth, branches, factor, least in (
            (24, 24, 1, "1", "0.1"), (4, 24, 1, "1", "0"), (24, 6, 1, "3", "0.5"),
            (32, 16, 0, "2", "0.05"), (8, 8, 2, "1.5", "0.3"), (64, 2, 0, "0.5", "0"),
            (1, 3, 3, "2", "1")):
        on_traces("suffix", f"{LENGTH}={length} max-tree-depth={depth} branches={branches} "
                  f"max-spec-factor={factor} min-token-prob={least}", short)
    for length, depth, branches, factor, least, offset, cached in (
            (24, 24, 1, "1", "0.1", "0", 10000), (24, 24, 1, "1", "0.1", "0", 2),
            (16, 12, 1, "0.7", "0.3", "1.5", 3), (24, 24, 1, "1", "0.1", "0", 1),
            (20, 10, 0, "1", "0.1", "0", 10000), (8, 9, 2, "1.5", "0.2", "1", 2)):
        on_traces("suffix", f"{LENGTH}={length} max-tree-depth={depth} branches={branches} "
                  f"max-spec-factor={factor} min-token-prob={least} max-spec-offset={offset} "
                  f"max-cached-requests={cached}", short)

    for kind in ("BFS", "PROB"):
        for tokens, least, most, depth, capacity in (
                (12, 1, 10, 18, 10000000), (2, 1, 1, 18, 10000000), (64, 2, 4, 6, 10000000),
                (24, 3, 3, 2, 10000000), (8, 1, 8, 12, 300), (16, 1, 10, 18, 19)):
            on_traces("ngram-tree", f"num-draft-tokens={tokens} min-bfs-breadth={least} "
                      f"max-bfs-breadth={most} match-type={kind} max-trie-depth={depth} "
                      f"capacity={capacity}", short)

    drafts = ("order=2,mix=0", "order=3,mix=0", "order=3,mix=0.75")
    for length in (1, 2, 5, 100):
        on_traces("draft-model", f"{LENGTH}={length}", small, drafts[0])
        on_models("draft-model", f"{LENGTH}={length}", drafts[1])
    on_models("draft-model", f"{LENGTH}=7", drafts[2])
    on_traces("draft-model", f"{LENGTH}=4", ["rag"], drafts[1])

    for length, least in ((5, 4), (5, 2), (1, 1), (20, 3), (100, 1), (8, 100000), (0, 1)):
        options = f"{LENGTH}={length} match-threshold={least}"
        on_traces("sa-draft-model", options, small + ("few",), drafts[0])
        on_models("sa-draft-model", options, drafts[1])
    on_traces("sa-draft-model", f"{LENGTH}=4 match-threshold=4", ["rag"], drafts[1])
    on_models("sa-draft-model", f"{LENGTH}=6 match-threshold=2", drafts[2], trace="cache")

    for start, up, down, least, most in ((5, 2, 1, 1, 100000), (1, 1, 1, 1, 4), (20, 3, 5, 2, 20),
                                         (3, 0, 1, 2, 8)):
        options = (f"num-assistant-tokens={start} increment={up} decrement={down} min={least} "
                   f"max={most}")
        on_traces("hf-dynamic", options, small, drafts[1])
        on_models("hf-dynamic", options, drafts[0])

    controllers = (
        "controller=ema", "controller=ema history=run initial-steps=7",
        "controller=ema candidate-steps=0/1/2/8 ema-alpha=0.5 update-interval=2 warmup-batches=1 "
        "down-hysteresis=0.1 up-hysteresis=-0.2",
        "controller=ucb", "controller=ucb history=run candidate-steps=0/2/4/9 draft-cost=0.1",
        "controller=ucb ucb-semantics=code verify-cost=0.02",
        "controller=ucb ucb-semantics=ucb1 exploration-weight=0.5 delta=0.3 history=run",
        "controller=oracle candidate-steps=1/6")
    for options in controllers:
        on_traces("adaptive", options, small, drafts[0])
        on_models("adaptive", options, drafts[1])
        on_traces("adaptive-ngram", options, short)
        on_traces("adaptive-ngram", options + " base-options=semantics=vllm/prompt-lookup-max=4",
                  ["rag", "cache"])
        on_traces("adaptive-suffix", options, small)
        on_traces("adaptive-recorded", options + " base-options=drafter=ngram", ["recorded"])
        on_traces("adaptive-recorded", options + " base-options=draft-passes=1/drafter=eagle",
                  ["recorded"])

    for confidence, most in (("0.4", 20), ("0", 3), ("1", 20), ("0.15", 50), ("0.05", 4)):
        on_traces("threshold", f"assistant-confidence-threshold={confidence} {LENGTH}={most}", small, drafts[1])
        on_models("threshold", f"assistant-confidence-threshold={confidence} {LENGTH}={most}", drafts[2])

    for k, length in ((1, 4), (4, 4), (2, 1), (3, 70)):
        on_models("spectr", f"num-drafts={k} {LENGTH}={length}", drafts[1])
        on_models("spectr", f"num-drafts={k} {LENGTH}={length}", drafts[0], trace="cache")
    for branches in ("2,2,1,1", "1", "3", "1,2,3", "2,1,1,1,1,1,1,1"):
        on_models("spectr-tree", f"branches={branches}", drafts[1])
        on_models("spectr-tree", f"branches={branches}", drafts[0], trace="cache")

    for name in ("eagle", "medusa", "chain:5", "3^3", "10^1", "2^6"):
        on_traces("tree", f"tree={name}", small, drafts[0])
        on_models("tree", f"tree={name}", drafts[1])

    for steps, k, tokens in ((8, 10, 60), (5, 4, 8), (3, 1, 4), (1, 6, 4), (4, 3, 30), (2, 2, 7)):
        options = f"num-steps={steps} eagle-topk={k} num-draft-tokens={tokens}"
        on_traces("dynamic-tree", options, small, drafts[0])
        on_models("dynamic-tree", options, drafts[1])

    seven = model_methods.SEQUOIA
    for budget, depth, acceptance, cost, slope in (
            (2, 1, seven, "0", "0"), (4, 8, seven, "0", "0"), (64, 8, seven, "0", "0"),
            (12, 8, ".6,.2,.07", "0", "0"), (25, 3, ".5,.23,.11,.05", "0", "0"),
            (30, 8, ".7,.17,.06", "0.1", "0.01"), (30, 8, ".7,.17,.06", "0", "0.03"),
            (20, 16, ".9,.04", "0.02", "0")):
        options = (f"budget={budget} depth={depth} acceptance-by-rank={acceptance} draft-cost={cost} "
                   f"target-slope={slope}")
        on_traces("sequoia", options, small, drafts[0])
        on_models("sequoia", options, drafts[1])

    for length in (1, 2, 4, 8):
        on_models("parallel", f"{LENGTH}={length}", drafts[0], prompt=12, output=24)
    for length, nodes in ((1, 4), (2, 8), (3, 16), (3, 1), (2, 48)):
        on_models("ddtree", f"{LENGTH}={length} num-draft-tokens={nodes}", drafts[0], prompt=12,
                  output=24)

    for length, inner in ((10, 3), (1, 1), (5, 4), (6, 100), (100, 2)):
        options = f"{LENGTH}={length} inner-length={inner}"
        on_traces("cascade", options, small, drafts[0], drafts[1])
        on_models("cascade", options, drafts[0], drafts[2])

    for semantics in ("paper", "code"):
        for window, level, guesses, prompt in ((7, 5, 7, "off"), (7, 5, 7, "on"), (1, 3, 1, "on"),
                                               (15, 5, 15, "off"), (4, 7, 20, "on")):
            options = (f"window={window} level={level} guesses={guesses} "
                       f"pool-from-prompt={prompt} semantics={semantics}")
            on_models("lookahead", options)
            on_models("lookahead", options, target="order=3,mix=0", trace="cache")
        for window, level, guesses, prompt in ((1, 2, 3, "off"), (1, 7, 2, "on"), (5, 3, 5, "on"),
                                               (6, 4, 0, "off"), (3, 6, 20, "on")):
            on_models("lookahead", f"window={window} level={level} guesses={guesses} "
                      f"pool-from-prompt={prompt} semantics={semantics}", trace="few")
    on_models("lookahead", "window=3 level=2 guesses=2 pool-from-prompt=off semantics=paper")

    for semantics in ("paper", "code"):
        for length, window, level, phrases, ahead, verify, reuse in (
                (4, 20, 7, 3, "on", "on", "on"), (12, 5, 4, 2, "on", "on", "on"),
                (8, 6, 3, 3, "on", "off", "on"), (6, 6, 4, 3, "on", "on", "off"),
                (12, 5, 3, 4, "off", "on", "on"), (5, 4, 4, 0, "on", "on", "on"),
                (5, 4, 4, 0, "off", "off", "off")):
            options = (f"{LENGTH}={length} window={window} level={level} phrases={phrases} "
                       f"draft-lookahead={ahead} from-verification={verify} reuse={reuse} "
                       f"semantics={semantics}")
            on_models("ouroboros", options, drafts[1])
            on_models("ouroboros", options, drafts[0], target="order=3,mix=0", trace="cache")
            on_models("ouroboros", options, drafts[0], trace="few")
        for length, window, level, phrases, ahead, verify, reuse in (
                (8, 4, 3, 3, "off", "on", "off"), (9, 6, 2, 3, "on", "on", "on"),
                (1, 3, 3, 4, "on", "off", "on"), (7, 1, 3, 1, "on", "on", "on")):
            on_models("ouroboros", f"{LENGTH}={length} window={window} level={level} "
                      f"phrases={phrases} draft-lookahead={ahead} from-verification={verify} "
                      f"reuse={reuse} semantics={semantics}", drafts[0], trace="few")

    for before, after in (("on", "on"), ("on", "off"), ("off", "on"), ("off", "off")):
        for window in (1, 2, 4, 20):
            options = f"{LENGTH}={window} pre-verify={before} post-verify={after}"
            on_models("pearl", options, drafts[1])
        on_traces("pearl", f"{LENGTH}=3 pre-verify={before} post-verify={after}", small, drafts[1])

    for drafter in ("eagle", "ngram"):
        for k in range(1, 9):
            on_traces("recorded", f"drafter={drafter} {LENGTH}={k}", ["recorded"])
            on_traces("recorded", f"drafter={drafter} {LENGTH}={k} policy=oracle draft-passes=1",
                      ["recorded"])
    on_traces("recorded", f"drafter=ngram {LENGTH}=12 draft-passes=0", ["recorded"])
    for passes in (-1, 0, 5):
        on_traces("recorded-steps", f"draft-passes={passes}", ["recorded"])
        for length in (1, 5, 20):
            on_traces("recorded-steps", f"{LENGTH}={length} draft-passes={passes}", ["logged"])
    return rows


class World:
    """Holds the traces and the models that are trained on them."""

    def __init__(self, top):
        tokenizer = Tokenizer(f"{top}/traces/sample/tokenizer.json")
        self.trace = {name: load(top, name, tokenizer) for name in ("rag", "cache", "edits")}
        for name in ("edge", "few", "past_eos"):
            self.trace[name] = load_ids(f"{top}/tests/golden/{name}.jsonl", tokenizer.eos)
        for name in ("recorded", "logged"):
            with open(f"{top}/tests/golden/{name}.jsonl", encoding="utf-8") as lines:
                self.trace[name] = [json.loads(line) for line in lines]
        self.models, self.outputs = {}, {}

    def sequences(self, trace, hold):
        """Returns the sequences to train on, and every hold-th one, which is kept for prompts."""
        every = [r.prompt + r.output for r in self.trace[trace]]
        held = [s for i, s in enumerate(every) if hold and i % hold == hold - 1]
        return [s for i, s in enumerate(every) if not hold or i % hold != hold - 1], held

    def model(self, spec):
        """Returns a model from "ngram:TRACE,order=N,mix=A,hold=H", or None."""
        if spec and spec not in self.models:
            trace, order, mix, hold = (x.split("=")[-1] for x in spec[len("ngram:") :].split(","))
            learned, held = self.sequences(trace, int(hold))
            self.models[spec] = NgramModel(learned, VOCABULARY, int(order), mix), held
        return self.models[spec] if spec else (None, None)

    def requests(self, trace, target, prompt, output):
        """Returns the recorded requests, or one request for each held sequence, answered by the
        target."""
        if trace:
            return self.trace[trace]
        key = (target, prompt, output)
        if key not in self.outputs:
            model, held = self.model(target)
            self.outputs[key] = []
            for index, s in enumerate(held):
                start = s[: min(prompt, len(s) - 1)]
                self.outputs[key].append(Request(start, model.generate(start, output, 1),
                                                 limit=output, index=index))
        return self.outputs[key]


def load_ids(path, eos):
    """Returns requests that are written as token ids."""
    requests = []
    for index, line in enumerate(open(path, encoding="utf-8")):
        r = json.loads(line)
        documents = [t for t in r.get("references", []) if isinstance(t, list)]
        turns = [t["tokens"] for t in r.get("references", []) if isinstance(t, dict)]
        requests.append(Request(r["prompt"], r["output"], documents, turns, len(r["output"]), eos,
                                index))
    return requests


def arguments(method, options):
    """Converts the options "a-b=1 c=on" of a method to arguments of its Python function."""
    result = {}
    for option in options.split():
        name, value = option.split("=", 1)
        name = RENAMED.get(method, {}).get(name, name).replace("-", "_")
        if value in ("on", "off"):
            value = value == "on"
        result[name] = value if name in TEXT_OPTIONS or isinstance(value, bool) else int(value)
    return result


def main():
    world = World(sys.argv[1] if len(sys.argv) > 1 else ".")
    only = sys.argv[2].split(",") if len(sys.argv) > 2 else METHODS
    print("# Written by tests/golden/make_golden.py; counts are totals over the requests")
    print("method", "options", "trace", "target", "draft", "middle", "prompt_tokens", "max_tokens",
          *(f.name for f in fields(Counts)), sep="\t")
    for method, options, trace, *specs, prompt, output in table():
        if method not in only:
            continue
        start, counts = time.time(), Counts()
        requests = world.requests(trace, specs[0], prompt, output)
        models = {name: world.model(spec)[0]
                  for name, spec in zip(("target", "draft", "middle"), specs) if spec}
        if method not in ("lookahead", "ouroboros"):
            models.pop("target", None)  # only its output is needed, which is already computed
        METHODS[method](requests, counts, **models, **arguments(method, options))
        print(method, options or "-", trace or "-", *(s or "-" for s in specs), prompt, output,
              *astuple(counts), sep="\t", flush=True)
        if time.time() - start > 20:
            print(f"{method} {options}: {time.time() - start:.0f} s", file=sys.stderr)


main()
