# SPDX-License-Identifier: Apache-2.0
"""Traces: what is read against the exported JSON lines, and what is written against the program."""
import gc
import json
import os
import pickle
import subprocess

import numpy as np
import pytest

import draftscope
from draftscope import Trace

LINES = """\
{"id": "a", "prompt": [1, 5], "output": [7, 2], "references": [[3, 4], {"tokens": [9], "kind": "turn"}], "metadata": {"x": "é"}, "logprobs": [-0.1, 0], "draft_rows": [[[7, -0.105], [9, -2.813]], [[2, 0]]], "target_rows": [[[7, -0.105], -2.3053], [[2, 0], null]]}
{"prompt": [1], "output": [], "references": [], "logprobs": [], "draft_rows": [], "target_rows": []}
{"id": "ü", "prompt": [], "output": [3], "references": [[]], "logprobs": [-1.5], "draft_rows": [[[7, -0.105], -2.3053]], "target_rows": [[[1, -0.105], -2.3053]]}
"""


@pytest.fixture
def ids(tmp_path):
    (tmp_path / "ids.jsonl").write_text(LINES, encoding="utf-8")
    return draftscope.import_(tmp_path / "ids.jsonl", vocab_size=10, output=tmp_path / "ids.dst")


def test_request_against_its_line(ids):
    lines = [json.loads(line) for line in LINES.splitlines()]
    assert len(ids) == 3 and len(list(ids.requests)) == 3 and ids.vocab_size == 10
    for i, (q, line) in enumerate(zip(ids, lines)):
        assert (q.index, q.id, q.metadata) == (i, line.get("id", str(i)), line.get("metadata", {}))
        assert q.prompt.tolist() == line["prompt"] and q.output.tolist() == line["output"]
        assert q.prompt.dtype == np.int32 and q.prompt_text is None
        got = [r.tokens.tolist() for r in q.references]
        assert got == [r["tokens"] if isinstance(r, dict) else r for r in line["references"]]
        np.testing.assert_array_equal(q.column("target.logp_y"), np.float32(line["logprobs"]))
        for side in ("draft", "target"):
            rows = q.rows(side)
            assert len(rows) == len(line[f"{side}_rows"])
            for row, listed in zip(rows, line[f"{side}_rows"]):
                pairs = [x for x in listed if isinstance(x, list)]
                assert row.tokens.tolist() == [t for t, _ in pairs]
                np.testing.assert_array_equal(row.logp, np.float32([x for _, x in pairs]))
                total = np.exp(np.float64([*row.logp, row.tail])).sum()
                assert total == pytest.approx(1, abs=1e-4)
    assert [r.kind for r in ids[0].references] == ["document", "turn"]
    assert ids[-1].id == "ü" and ids[2].output.tolist() == [3]
    for index in (3, -4):
        with pytest.raises(IndexError, match="3 requests"):
            ids[index]
    with pytest.raises(KeyError, match="target.logp_y"):
        ids[0].column("draft.entropy")
    with pytest.raises(ValueError, match="'draft' or 'target'"):
        ids[0].rows("both")


def test_texts(rag):
    out = subprocess.run([draftscope.program(), "trace", "export", rag.path], check=True,
                         capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) == len(rag) == 29
    for q, line in zip(rag, lines):
        assert (q.prompt_text, q.output_text) == (line["prompt"]["text"], line["output"]["text"])
        assert q.prompt.tolist() == line["prompt"]["tokens"]
        assert [r.text for r in q.references] == [r["text"] for r in line["references"]]


def test_views(rag):
    """Arrays are read-only views of the mapped file, and outlive the trace."""
    q = Trace.open(rag.path)[1]
    output, again = q.output, q.output
    assert np.shares_memory(output, again) and not output.flags.writeable
    assert not output.flags.owndata
    with pytest.raises(ValueError):
        output[0] = 1
    want = output.tolist()
    del q, again
    gc.collect()
    assert output.tolist() == want


def test_dense_rows(tmp_path):
    """float32 rows and those of 16 bits."""
    rows = np.log(np.array([[.5, .25, .25], [.125, .75, .125]], np.float32))
    for name, dense in (("f32", rows), ("bf16", (rows.view(np.uint32) >> 16).astype(np.uint16))):
        with draftscope.TraceWriter(str(tmp_path / f"{name}.dst"), 3, ["draft_rows_dense"]) as w:
            w.add("a", [0], [1, 2], columns={"rows.draft.dense": dense})
            w.commit({})
        got = Trace.open(tmp_path / f"{name}.dst")[0].rows("draft")
        for row, want in zip(got, rows):
            np.testing.assert_allclose(row.logp, want, rtol=0 if name == "f32" else 2**-7)
            assert row.tokens.tolist() == [0, 1, 2] and row.tail == -np.inf
        assert Trace.open(tmp_path / f"{name}.dst")[0].rows("target") is None


def test_from_arrays_equals_the_import(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"prompt": [1, 2], "output": [3, 4], "references": [[5]], '
                                      '"metadata": {"c": "x"}, "logprobs": [-0.5, -1]}\n'
                                      '{"prompt": [], "output": [2], "references": [], '
                                      '"logprobs": [0]}\n')
    imported = draftscope.import_(tmp_path / "a.jsonl", vocab_size=6)
    made = Trace.from_arrays([np.array([3, 4], np.uint8), [2]], [[1, 2], np.zeros(0)],
                             references=[[[5]], []], metadata=[{"c": "x"}, None],
                             logprobs=[[-.5, -1], [0]])
    assert made.hash == imported.hash and made.vocab_size == 6
    made.verify()


def test_temporary_traces_are_removed():
    made = Trace.from_arrays([[1, 2]])
    path = made.path
    assert os.path.isdir(path) and len(made) == 1
    del made
    gc.collect()
    assert not os.path.exists(path)


@pytest.mark.parametrize("kind, words, outputs, more", [
    (TypeError, "outputs.0. has the type float64", [np.array([1.5])], {}),
    (ValueError, r"outputs.1. has shape \(1, 1\)", [[1], np.ones((1, 1), int)], {}),
    (ValueError, "prompts has 2 elements", [[1]], {"prompts": [[1], [2]]}),
    (ValueError, "is 4; token ids are from 0 to 3", [[4]], {"vocab_size": 4}),
    (ValueError, r"outputs.0..1. is -1; token ids are from 0", [[3, -1]], {}),
    (ValueError, r"prompts.0..0. is 2147483647", [[1]], {"prompts": [np.array([2**31 - 1])]}),
    (ValueError, "9223372036854775808", [np.array([2**63], np.uint64)], {}),
    (ValueError, "empty or taken", [[1], [2]], {"ids": ["a", "a"]}),
    (ValueError, "target.logp_y", [[1]], {"logprobs": [[.5]]}),
])
def test_arrays_that_are_no_requests(tmp_path, kind, words, outputs, more):
    with pytest.raises(kind, match=words):
        Trace.from_arrays(outputs, path=tmp_path / "no.dst", **more)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind, words, recorded, arguments", [
    (TypeError, "prompt has the type float64", [], {"prompt": [1.5], "output": [1]}),
    (ValueError, r"output has shape \(1, 2\)", [], {"prompt": [1], "output": [[1, 2]]}),
    (ValueError, "kinds has 1", [], {"prompt": [1], "output": [1], "kinds": [0]}),
    (ValueError, "texts must have", ["text"], {"prompt": [1], "output": [1]}),
    (ValueError, "is 4; token ids are from 0 to 3", [], {"prompt": [1], "output": [4]}),
])
def test_requests_that_are_none(tmp_path, kind, words, recorded, arguments):
    with draftscope.TraceWriter(tmp_path / "no.dst", 4, recorded) as writer:
        with pytest.raises(kind, match=words):
            writer.add("a", **arguments)
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_traces(tmp_path, rag):
    def refused(words, path=tmp_path):
        with pytest.raises(draftscope.Error, match=words) as e:
            list(Trace.open(path))
        assert e.value.exit_code == 4

    refused("No such file", tmp_path / "none.dst")
    (tmp_path / "file").write_text("{}")
    refused("is not a trace. Import it first", tmp_path / "file")
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{")
    refused("not the manifest")
    text = open(os.path.join(rag.path, "manifest.json"), encoding="utf-8").read()
    manifest.write_text(text.replace('"requests": 29', '"requests": 28'), encoding="utf-8")
    refused("was changed")
    manifest.write_text(text, encoding="utf-8")
    refused("No such file")
    shard = open(os.path.join(rag.path, "shard-00000.safetensors"), "rb").read()
    (tmp_path / "shard-00000.safetensors").write_bytes(shard[:-64])
    refused("outside the file|has changed")
    (tmp_path / "shard-00000.safetensors").write_bytes(b"\xff" * 64)
    refused("not a shard")
    (tmp_path / "shard-00000.safetensors").write_bytes(shard)
    Trace.open(tmp_path).verify()
    (tmp_path / "one.jsonl").write_text('{"prompt": [1], "output": [1]}\n')
    with pytest.raises(draftscope.Error, match="exists"):
        draftscope.import_(tmp_path / "one.jsonl", output=rag.path, vocab_size=9)


def test_import_errors_name_the_line(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"prompt": [1], "output": [1]}\n{"prompt": [1]\n')
    with pytest.raises(draftscope.Error, match=r"bad\.jsonl:2") as e:
        draftscope.import_(tmp_path / "bad.jsonl", vocab_size=3)
    assert e.value.exit_code == 4 and e.value.command.startswith("draftscope trace import")
    copy = pickle.loads(pickle.dumps(e.value))
    assert (str(copy), copy.exit_code, copy.command) == (str(e.value), 4, e.value.command)
    with pytest.raises(ValueError, match="no log files"):
        draftscope.import_()


def test_info(rag):
    assert rag.info["totals"]["requests"] == 29 and "text" in rag.info["recorded"]
    assert rag.summary()["hash"] == rag.hash
    with pytest.raises(TypeError):
        rag.info["hash"] = ""
