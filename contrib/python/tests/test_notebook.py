# SPDX-License-Identifier: Apache-2.0
"""The example notebook runs: by a kernel where nbclient is installed, and as plain code. So does the code
of docs/python.md."""
import json
import os
import re
import shutil

import pytest

SVG = "image/svg+xml"


@pytest.fixture
def notebook(top, sample, monkeypatch, tmp_path):
    if not shutil.which("gnuplot"):
        pytest.skip("no gnuplot")
    monkeypatch.setenv("DRAFTSCOPE_SAMPLE", str(sample))
    monkeypatch.chdir(tmp_path)
    return top / "contrib" / "python" / "examples" / "sample.ipynb"


def test_cells_as_code(notebook, capsys):
    cells = [c for c in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
             if c["cell_type"] == "code"]
    names = {}
    for cell in cells:
        assert not cell["outputs"] and cell["execution_count"] is None  # stored without results
        exec("".join(cell["source"]), names)
    said = capsys.readouterr().out
    assert "vllm serve MODEL" in said and "rejection" in said
    assert len(names["answer"].verdicts) == 3 and len(names["lengths"]) == 20


def test_cells_in_a_kernel(notebook, tmp_path):
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    os.environ.setdefault("IPYTHONDIR", str(tmp_path))
    book = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [o["data"] for c in book.cells if c.cell_type == "code" for o in c.outputs
             if "data" in o]
    assert any("<svg" in data.get(SVG, "") for data in shown)


def test_page(notebook, top, sample, pairs, tmp_path):
    shutil.copy(sample / "rag.jsonl", tmp_path / "logs.jsonl")
    shutil.copy(sample / "tokenizer.json", tmp_path)
    page = (top / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {"draft": pairs[0], "target": pairs[1]}
    for block in blocks:
        exec(block, names)
    assert len(blocks) >= 3 and len(names["trace"]) == 29 and names["accept"].rejection.shape == (20,)
