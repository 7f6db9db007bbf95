# SPDX-License-Identifier: Apache-2.0
"""The parts of test_contrib.sh that need Python: check.py PART ARGUMENTS..."""
import functools
import json
import os
import sys

import numpy as np

sys.dont_write_bytecode = True
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(ROOT, "contrib", "python"), os.path.join(ROOT, "tests", "contrib", "fake")]

from draftscope import Trace, TraceWriter, _writer  # noqa: E402


def same(what, got, want, within=0.0):
    got, want = np.asarray(got, float), np.asarray(want, float)
    equal = got.shape == want.shape and np.all((got == want) | (np.abs(got - want) <= within))
    if not equal:
        sys.exit(f"check: {what}: {got}, expected {want}")


# --- reading and writing -------------------------------------------------------------------------

def requests(trace):
    """The requests of a trace, each as a dict by the names of the tensors."""
    for q in Trace.open(trace):
        out = {"id": q.id, "metadata": q.metadata, "prompt.tok": q.prompt, "output.tok": q.output,
               "references": [(int(r.kind == "turn"), r.text, r.tokens) for r in q.references]}
        if q.prompt_text is not None:
            out |= {"prompt.text": q.prompt_text, "output.text": q.output_text}
        out |= {name: q.column(name) for name in q.columns()}
        rows = {f"rows.{side}": q.rows(side) for side in ("draft", "target")}
        out |= {name: listed for name, listed in rows.items() if listed is not None}
        yield out


def read(trace, lines):
    """Compares the requests of Trace with the exported JSON lines."""
    with open(lines, encoding="utf-8") as f:
        said = [json.loads(line) for line in f]
    got = list(requests(trace))
    same("requests", len(got), len(said))
    for i, (q, line) in enumerate(zip(got, said)):
        assert q["id"] == line.get("id", str(i)), q["id"]
        assert q["metadata"] == line.get("metadata", {}), q["metadata"]
        for field, name in (("prompt", "prompt.tok"), ("output", "output.tok"),
                            ("logprobs", "target.logp_y")):
            same(name, q[name], np.float32(line[field]))
        same("references", len(q["references"]), len(line["references"]))
        for (kind, text, tokens), r in zip(q["references"], line["references"]):
            same("reference", tokens, r["tokens"] if isinstance(r, dict) else r)
            assert text is None and kind == (isinstance(r, dict) and r.get("kind") == "turn")
        for side in ("draft", "target"):
            same("rows", len(q[f"rows.{side}"]), len(line[f"{side}_rows"]))
            for (tokens, logp, tail), row in zip(q[f"rows.{side}"], line[f"{side}_rows"]):
                pairs = [x for x in row if isinstance(x, list)]
                same("row", tokens, [t for t, _ in pairs])
                same("row", logp, np.float32([x for _, x in pairs]))
                same("row adds up", np.exp(np.float64([*logp, tail])).sum(), 1, 1e-4)


def columns(trace, folder):
    """Compares every column of `trace export --format npy`, mapped, with Trace."""
    def column(name):
        return np.load(os.path.join(folder, name + ".npy"), mmap_mode="r")

    def part(name, offset, i):
        return column(name)[offset[i]:offset[i + 1]]

    got = list(requests(trace))
    offset = {name: column(name + ".offset")
              for name in ("request.id", "prompt", "output", "metadata", "reference")}
    first = column("request.reference")
    same("requests", len(first), len(got) + 1)
    for i, q in enumerate(got):
        assert bytes(part("request.id", offset["request.id"], i)).decode() == q["id"]
        assert json.loads(bytes(part("metadata", offset["metadata"], i)) or b"{}") == q["metadata"]
        same("prompt", part("prompt.tok", offset["prompt"], i), q["prompt.tok"])
        same("output", part("output.tok", offset["output"], i), q["output.tok"])
        same("references", first[i + 1] - first[i], len(q["references"]))
        for r, (kind, _, tokens) in enumerate(q["references"], first[i]):
            same("kind", column("reference.kind")[r], kind)
            same("reference", part("reference.tok", offset["reference"], r), tokens)
        same("logprobs", part("target.logp_y", offset["output"], i), q["target.logp_y"])
        for side in ("draft", "target"):
            at = column(f"rows.{side}.offset")
            for j, (tokens, logp, tail) in enumerate(q[f"rows.{side}"], offset["output"][i]):
                same("row", part(f"rows.{side}.token", at, j), tokens)
                same("row", part(f"rows.{side}.logp", at, j), logp)
                same("tail", column(f"rows.{side}.tail")[j], tail)


def rows_as_columns(q, side):
    rows = q[f"rows.{side}"]
    flat = {"offset": np.cumsum([0] + [len(r[0]) for r in rows]), "tail": [r[2] for r in rows],
            "token": np.concatenate([[], *(r[0] for r in rows)]),
            "logp": np.concatenate([[], *(r[1] for r in rows)])}
    return {f"rows.{side}.{name}": a for name, a in flat.items()}


def rewrite(trace, out, shard_tokens="8000000"):
    """Writes the requests of a trace with TraceWriter."""
    _writer.SHARD_TOKENS = int(shard_tokens)
    with open(f"{trace}/manifest.json", encoding="utf-8") as f:
        m = json.load(f)
    about = m["tokenizer"]
    recorded = [name for name in m["recorded"] if name not in _writer.ALWAYS]
    with TraceWriter(out, about["vocab_size"], recorded, tokenizer=about["name"],
                     tokenizer_sha256=about["sha256"], eos=about["eos"]) as w:
        for q in requests(trace):
            columns = {name: a for name, a in q.items() if name.startswith(("draft.", "target."))}
            for side in ("draft", "target"):
                columns |= rows_as_columns(q, side) if f"rows.{side}" in q else {}
            kinds, texts, tokens = zip(*q["references"]) if q["references"] else ((), (), ())
            w.add(q["id"], q["prompt.tok"], q["output.tok"], tokens, kinds=list(kinds),
                  texts=(q.get("prompt.text"), q.get("output.text"), texts),
                  metadata=q["metadata"] or None, columns=columns)
        # everything that writers of JSON write in more than one way
        text = "\x00\t\x1f\x7f\"\\é\ud800/"
        w.commit({"source": trace, "real": 0.8, "text": text, "n": [1, True]})


def refused(out):
    """Checks that the writer refuses invalid input and leaves no files of it."""
    def add(prompt, output, columns):
        with TraceWriter(out, 4, ["target_logp"]) as w:
            w.add("a", prompt, output, columns=columns)

    def open_twice():
        with TraceWriter(out, 4):
            TraceWriter(out, 4)

    logp = {"target.logp_y": [-0.5]}
    cases = [
        (FileExistsError, lambda: TraceWriter(__file__, 4)),
        (FileExistsError, lambda: TraceWriter(ROOT, 4, force=True)),
        (FileExistsError, open_twice),
        (ValueError, lambda: TraceWriter(out, 4, ["entropies"])),
    ]
    for request in (([4], [1], logp), ([-1], [1], logp), ([1], [1], {}), ([1], [1, 2], logp),
                    ([1], [1], {"target.logp_y": [0.1]}), ([1], [1], {"target.logp_y": [np.nan]}),
                    ([1], [1], {"target.logp_y": [-np.inf]})):
        cases.append((ValueError, lambda request=request: add(*request)))
    for i, (kind, call) in enumerate(cases):
        try:
            call()
        except kind:
            continue
        sys.exit(f"check: case {i} was taken")
    with TraceWriter(out, 4) as w:
        w.add("a", [1], [2])
        for bad in ("a", "", "\ud800"):
            try:
                w.add(bad, [1], [2])
                sys.exit(f"check: the id {bad!r} was taken")
            except ValueError:
                pass
    assert not os.path.exists(out) and not os.path.exists(out + ".tmp")


# --- export_trace.py -----------------------------------------------------------------------------

def compare(trace, distribution, m, within, temperature=1.0):
    """Compares everything recorded with independent distributions: distribution(side, tokens
    before) returns ln p. m: the number of tokens that a row lists; None: all."""
    positions = 0
    for q in requests(trace):
        output = q["output.tok"].tolist()
        for side in ("draft", "target"):
            for j, y in enumerate(output):
                logp = distribution(side, (*q["prompt.tok"].tolist(), *output[:j])) / temperature
                logp = logp - np.log(np.exp(logp).sum())
                order = np.argsort(-logp)
                same("logp_y", q[f"{side}.logp_y"][j], logp[y], within)
                same("argmax", q[f"{side}.argmax"][j], order[0])
                if f"{side}.entropy" in q:
                    some = logp[logp > -np.inf]
                    same("entropy", q[f"{side}.entropy"][j], -(np.exp(some) * some).sum(), within)
                if side == "draft":
                    same("rank_y", q["draft.rank_y"][j], [order.tolist().index(y)])
                listed = order[:m] if m else np.arange(len(logp))
                tokens, row, tail = q[f"rows.{side}"][j]
                by_token = np.argsort(tokens)
                same("row", np.array(tokens)[by_token], np.sort(listed))
                same("row", row[by_token], logp[np.sort(listed)], within)
                rest = np.exp(logp).sum() - np.exp(logp[listed]).sum()
                same("tail", np.exp(tail), rest if m and m < len(logp) else 0, within)
                positions += 1
    print(f"{trace}: {positions} distributions")
    assert positions > 0


def vllm(trace, draft, target, m):
    from vllm import distribution
    names = {"draft": draft, "target": target}
    compare(trace, lambda side, before: distribution(names[side], before), int(m), 1e-6)


def make_models(tokenizer):
    """Makes two small models with random weights. The draft's vocabulary is padded, as in some
    published models."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    tokens = PreTrainedTokenizerFast(tokenizer_file=tokenizer, eos_token="</s>")
    for name, seed, layers, pad in (("draft", 1, 1, 8), ("target", 2, 2, 0)):
        torch.manual_seed(seed)
        config = LlamaConfig(vocab_size=len(tokens) + pad, hidden_size=32, intermediate_size=64,
                             num_hidden_layers=layers, num_attention_heads=2, bos_token_id=None,
                             eos_token_id=tokens.eos_token_id, max_position_embeddings=1024,
                             initializer_range=0.5)
        LlamaForCausalLM(config).save_pretrained(name)
        tokens.save_pretrained(name)
    return len(tokens) + 8


def transformers(lines, tokenizer):
    """Compares exports of all kinds, in this folder, with one forward pass over all tokens: without
    a KV cache or chunks, in double precision."""
    from draftscope import export_trace
    import torch
    from transformers import AutoModelForCausalLM
    vocab_size = make_models(tokenizer)
    export_trace.CHUNK = 4
    loaded = {side: AutoModelForCausalLM.from_pretrained(side).double()
              for side in ("draft", "target")}

    @functools.cache
    def distribution(side, before):
        logits = loaded[side](torch.tensor([list(before)])).logits[0, -1].detach().numpy()
        wide = np.full(vocab_size, -np.inf)
        wide[:len(logits)] = logits
        return wide

    def export(out, *options):
        export_trace.main([lines, "--target", "target", "--draft", "draft", "--dtype", "float64",
                           "-o", out, *options])

    np.seterr(invalid="ignore")  # -inf less -inf
    export("lists.dst", "--logprobs", "8", "--temperature", "0.7")
    compare("lists.dst", distribution, 8, 5e-6, 0.7)
    export("dense.dst", "--logprobs", "dense")
    compare("dense.dst", distribution, None, 5e-6)
    export("bf16.dst", "--logprobs", "dense-bf16", "--dtype", "float32")
    for q, r in zip(requests("bf16.dst"), requests("dense.dst")):
        for side in ("draft", "target"):
            for (_, got, _), (_, want, _) in zip(q[f"rows.{side}"], r[f"rows.{side}"]):
                some = want > -np.inf
                same("bf16", got[~some], want[~some])
                same("bf16", got[some] / want[some], np.ones(some.sum()), 2**-8)
    export("sampled.dst", "--generate", "12", "--seed", "3", "--logprobs", "4")
    compare("sampled.dst", distribution, 4, 5e-6)
    export("greedy.dst", "--generate", "12", "--greedy", "--logprobs", "1")
    compare("greedy.dst", distribution, 1, 5e-6)
    for q in requests("greedy.dst"):
        same("greedy", q["output.tok"], q["target.argmax"])


def means(trace, table):
    """Checks that the mean acceptance of one draft by `theory`, from dense rows, is sum min."""
    total = [np.minimum(np.exp(np.float64(d)), np.exp(np.float64(t))).sum()
             for q in requests(trace) for (_, d, _), (_, t, _) in zip(q["rows.draft"],
                                                                     q["rows.target"])]
    with open(table, encoding="utf-8") as f:
        row = [json.loads(line) for line in f][-1]
    same("rejection", row["rejection"], np.mean(total), 2e-6)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
