# SPDX-License-Identifier: Apache-2.0
"""The commands as functions, against the program's own output."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

import draftscope

COST = "linear:0.02,0.0002"


def program(*words):
    return subprocess.run([draftscope.program(), *map(str, words)], check=True, text=True,
                          capture_output=True).stdout


def test_sim(rag):
    frame = draftscope.sim(rag, method="ngram", num_speculative_tokens=4, cost=COST)
    want = json.loads(program("sim", rag.path, "--method", "ngram", "--num-speculative-tokens", 4,
                              "--cost", COST, "--json"))
    assert list(frame.columns) == list(want) and len(frame) == 1
    for name, value in want.items():
        got = frame[name][0]
        assert (got.tolist() if isinstance(value, list) else got) == value
        kind = {int: np.int64, float: np.float64}.get(type(value))
        assert kind is None or frame[name].dtype == kind
    assert frame.attrs["trace_hash"] == rag.hash


def test_sim_tables(rag):
    frame = draftscope.sim(rag, method="ngram", per_request=True)
    assert len(frame) == 29 and frame.output_tokens.sum() == 5385
    assert frame.attrs["trace_hash"] == rag.hash and "requests replayed" not in frame.attrs
    sizes = draftscope.sim(rag, method="ngram", batch_size=[1, 8], cost="linear:0.02,0.001")
    assert sizes.batch.tolist() == [1, 8] and sizes.speedup[0] > sizes.speedup[1]
    target = draftscope.sim(target="markov:20", method="draft-model", requests=5, max_tokens=16)
    assert target.requests[0] == 5


@pytest.mark.parametrize("given", [range(1, 4), [1, 2, 3], "1:3", np.arange(1, 4), (1, 2, 3)])
def test_sweep_and_lists(rag, given):
    frame = draftscope.sweep(rag, method=["ngram", "none"], num_speculative_tokens=given)
    assert frame.method.tolist() == ["ngram"] * 3 + ["none"]
    assert frame.num_speculative_tokens.tolist()[:3] == [1, 2, 3]
    assert frame.num_speculative_tokens.dtype == "Int64" and pd.isna(
        frame.num_speculative_tokens[3])
    assert frame.attrs["trace_hash"] == rag.hash
    assert frame.attrs["columns"]["requests"] == "number of requests replayed"


def test_both_forms_of_a_table_agree(rag, tmp_path):
    names = {}
    for ending in ("tsv", "jsonl"):
        names[ending] = tmp_path / f"sweep.{ending}"
        frame = draftscope.sweep(rag, method="ngram,suffix", num_speculative_tokens="2,4",
                                 output=names[ending])
        again = draftscope.read_table(names[ending])
        pd.testing.assert_frame_equal(frame, again)
        assert again.attrs == frame.attrs
    a, b = (draftscope.read_table(n) for n in names.values())
    pd.testing.assert_frame_equal(a, b, check_dtype=False)
    assert [x for x in a.dtypes if x == object] == [x for x in b.dtypes if x == object]
    draftscope.write_table(b, tmp_path / "again.jsonl")
    pd.testing.assert_frame_equal(draftscope.read_table(tmp_path / "again.jsonl"), b)


def test_tables_that_are_none(tmp_path):
    for text, words in (("", "no line with column names"), ("# a: b\n", "no line"),
                        ("a\tb\n1\n", ":2: 1 fields"), ('{"a": 1}\n{"b": 1}\n', ":2: the row has"),
                        ('{"a": 1}\n{\n', ":2: not a row")):
        (tmp_path / "t").write_text(text)
        with pytest.raises(draftscope.Error, match=words) as e:
            draftscope.read_table(tmp_path / "t")
        assert e.value.exit_code == 4
    with pytest.raises(draftscope.Error, match="No such file"):
        draftscope.read_table(tmp_path / "none")
    (tmp_path / "t").write_bytes(b"%PDF-1.4\n\xb5\xed")
    with pytest.raises(draftscope.Error, match="not text in UTF-8"):
        draftscope.read_table(tmp_path / "t")


def test_arrays_are_traces():
    one, two = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3]), [4, 4, 4, 4]
    options = {"method": "ngram", "num_speculative_tokens": 2}
    listed = draftscope.sim([one, two], **options)
    trace = draftscope.Trace.from_arrays([one, two])
    pd.testing.assert_frame_equal(listed, draftscope.sim(trace, **options))
    assert listed.output_tokens[0] == 13 and listed.num_accepted_tokens[0] > 0
    pairs = draftscope.sim([(one[:3], one[3:])], **options)
    assert pairs.output_tokens[0] == 6
    square = draftscope.sim(np.array([one, one]), **options)
    assert square.requests[0] == 2 and square.output_tokens[0] == 18
    for data, kind, words in (([], ValueError, "empty"), (np.ones((2, 2)), TypeError, "float64"),
                              (one, TypeError, r"\(9,\)"), ([one[None]], ValueError, "dimension"),
                              ([(one, one, one)], ValueError, "pair"),
                              ([[.5]], TypeError, "float")):
        with pytest.raises(kind, match=words):
            draftscope.sim(data, **options)


def test_tune_and_its_answer(rag):
    frame = draftscope.tune(rag, method="ngram", num_speculative_tokens="1:4", cost=COST,
                            batch_size=[1, 8], engine="vllm", top=0)
    answer = draftscope.answer(frame)
    assert [v.batch_size for v in answer.verdicts] == [1, 8]
    for v in answer.verdicts:
        row = frame[(frame.batch == v.batch_size) & (frame["rank"] == 1)].iloc[0]
        assert v.recommend and v.text.startswith("run ngram")
        assert row.parameters == " ".join(f"{k}={x}" for k, x in v.parameters.items())
        none = frame[(frame.batch == v.batch_size) & (frame.method == "none")].iloc[0]
        assert v.speedup == pytest.approx(row.test / none.test, abs=1e-4)
        assert v.low < v.speedup < v.high
    assert any(line.startswith("vllm serve MODEL") for line in answer.settings)
    assert answer.conditions["cost"] == COST and "batch size 8: run ngram" in str(answer)
    with pytest.raises(ValueError, match="no verdict"):
        draftscope.answer(draftscope.sim(rag, method="ngram"))


def test_answer_that_leaves_speculation_off():
    rng = np.random.default_rng(1)
    outputs = rng.integers(0, 30000, (40, 30))
    frame = draftscope.tune(outputs, method="suffix", num_speculative_tokens=8,
                            cost="linear:0.02,0.02")
    verdict = draftscope.answer(frame).verdicts[0]
    assert verdict.recommend is False and verdict.text.startswith("leave speculation off")
    free = draftscope.answer(draftscope.tune(outputs, method="suffix", num_speculative_tokens=8))
    assert free.verdicts[0].recommend is None


def test_serve(rag):
    frame = draftscope.serve(rag, method="ngram", num_speculative_tokens=4, cost=COST, requests=60,
                             arrivals=["poisson:1", "closed:4"])
    assert frame.arrivals.tolist() == ["poisson:1", "closed:4"] * 2
    assert frame.num_speculative_tokens.dtype == "Int64" and frame.qps.dtype == np.float64
    assert any("Poisson arrivals" in line for line in draftscope.answer(frame).load)


def test_advise(sample, tmp_path):
    options = {"tokenizer": sample / "tokenizer.json", "cost": COST, "batch_size": 1,
               "resamples": 200}
    frame = draftscope.advise(sample / "rag.jsonl", output=tmp_path / "rag", arrivals="poisson:1",
                              **options)
    names = sorted(x.name for x in tmp_path.iterdir())
    assert names == ["rag-load.tsv", "rag.dst", "rag.html", "rag.tsv"]
    assert "suffix" in set(frame.method) and draftscope.answer(frame).verdicts[0].recommend
    assert draftscope.answer(frame).load
    lines = (sample / "rag.jsonl").read_text(encoding="utf-8").splitlines(True)
    halves = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for half, part in zip(halves, (lines[:15], lines[15:])):
        half.write_text("".join(part), encoding="utf-8")
    two = draftscope.advise(halves, **options)
    assert two.attrs["trace_hash"] == frame.attrs["trace_hash"]


def test_table():
    frame = draftscope.table("theory accept", zipf="100,1,1", num_drafts="1:3")
    assert frame.k.tolist() == [1, 2, 3] and (frame.kseq <= frame.otm + 1e-12).all()
    tree = draftscope.table("theory tree", acceptance_by_rank="0.7,0.2", budget=6)
    best = draftscope.theory.best_tree([.7, .2], 6, 8, .05)
    assert tree.expected_tokens[0] == pytest.approx(best.expected, abs=1e-3)
    assert len(tree) == len(best.tree)


def test_table_of_lists_and_objects(rag, tmp_path):
    info = draftscope.table("trace info", rag)
    assert len(info) == 1 and info.hash[0] == rag.hash and info.requests[0] == len(rag)
    assert info.recorded[0] == ["tokens", "references", "metadata", "text"]
    assert info.provenance[0]["sources"][0]["file"] == "rag.jsonl"
    frame = draftscope.table("sweep", rag, method="ngram", num_speculative_tokens=[2, 4])
    assert frame.attrs["trace_hash"] == rag.hash and len(frame) == 2
    frame = draftscope.table("advise", rag, cost="linear:0.02,0.0005", batch_size=1,
                             output=tmp_path / "advice")
    assert draftscope.answer(frame).verdicts[0].method


@pytest.mark.parametrize("call, code, words", [
    (lambda t: draftscope.sim(t, method="ngrm"), 2, "did you mean ngram"),
    (lambda t: draftscope.sim(t, method="ngram", num_speculative_tokens=-1), 2, "-1"),
    (lambda t: draftscope.sim(t, method="ngram", no_such_option=1), 2, "no-such-option"),
    (lambda t: draftscope.sim(t, method="draft-model"), 2, ""),
    (lambda t: draftscope.sim("none.dst", method="ngram"), 4, "none.dst"),
    (lambda t: draftscope.plot(draftscope.sweep(t, method="ngram"), "nothing"), 2, "nothing"),
])
def test_errors(rag, call, code, words):
    with pytest.raises(draftscope.Error) as e:
        call(rag)
    assert e.value.exit_code in (code, 4) and words in str(e.value)
    assert "\n" not in str(e.value) and not str(e.value).startswith("draftscope:")
    assert e.value.command.startswith("draftscope ")


def test_program_that_is_missing(monkeypatch, rag):
    monkeypatch.setenv("DRAFTSCOPE", "/nonexistent/draftscope")
    with pytest.raises(draftscope.Error, match="/nonexistent/draftscope") as e:
        draftscope.sim(rag, method="ngram")
    assert e.value.exit_code == 3


def test_version():
    assert program("--version").split()[1] == draftscope.__version__


@pytest.mark.parametrize("thread", [False, True])
def test_interrupt(thread):
    """Ctrl-C, as a terminal and a notebook send it, ends the program too, also when it arrives in
    another thread, where Python notes it without an end to the wait."""
    script = textwrap.dedent(f"""
        import signal, threading, time
        signal.alarm(120)  # an end, whatever happens
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
        import draftscope, draftscope._program as p
        sim, child = draftscope.sim, None  # loads pandas, which starts a program of its own
        def interrupt():
            time.sleep(0.3)
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        class Told(p.subprocess.Popen):
            def communicate(self, *a, **k):
                global child
                if not child:
                    child = self
                    print(self.pid, flush=True)
                    if {thread}:
                        threading.Thread(target=interrupt).start()
                return super().communicate(*a, **k)
        p.subprocess.Popen = Told
        try:
            sim(target="markov:50", method="draft-model", requests=10**9)
        except KeyboardInterrupt:
            print("interrupted", child.returncode, flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as python:
        child = int(python.stdout.readline())
        try:
            if not thread:
                os.killpg(python.pid, signal.SIGINT)
            # The program ended in answer to the interruption, or, before it was ready to answer,
            # by it; it was not killed after the time that it is given.
            assert python.stdout.readline() in ("interrupted 130\n",
                                                f"interrupted {-signal.SIGINT}\n")
            assert python.wait() == 0
            with pytest.raises(ProcessLookupError):
                os.kill(child, 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


# --- figures -------------------------------------------------------------------------------------

def has_gnuplot():
    return subprocess.run(["sh", "-c", "command -v gnuplot"], capture_output=True).returncode == 0


@pytest.mark.skipif(not has_gnuplot(), reason="no gnuplot")
def test_plot(rag, tmp_path):
    path = tmp_path / "sweep.tsv"
    frame = draftscope.sweep(rag, method="ngram", num_speculative_tokens="1:4", output=path)
    figure = draftscope.plot(frame, "length", title="a title")
    assert figure._repr_svg_().lstrip().startswith("<?xml") and "a title" in figure.svg
    assert draftscope.plot(path, "length", title="a title").svg == figure.svg
    other = draftscope.sweep(rag, method="suffix", num_speculative_tokens="1:4")
    both = draftscope.plot([other, path], "length").svg
    assert "suffix" in both and "ngram" in both and "suffix" not in figure.svg
    figure.save(tmp_path / "length.svg")
    assert (tmp_path / "length.svg").read_text() == figure.svg
    with pytest.raises(draftscope.Error, match="exists"):
        figure.save(tmp_path / "length.svg")
    figure.save(tmp_path / "length.svg", force=True)


def test_plot_without_gnuplot(rag, monkeypatch, tmp_path):
    frame = draftscope.sweep(rag, method="ngram", num_speculative_tokens="1:2")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(draftscope.Error, match="gnuplot not found; install it") as e:
        draftscope.plot(frame, "length")
    assert e.value.exit_code == 3
