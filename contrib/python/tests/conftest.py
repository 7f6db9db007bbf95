# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests: the sample as a trace, and pairs of distributions."""
import os
from pathlib import Path

import numpy as np
import pytest

import draftscope

TOP = Path(os.environ.get("top_srcdir") or Path(__file__).resolve().parents[3])
SAMPLE = TOP / "traces" / "sample"


@pytest.fixture(scope="session")
def top():
    return TOP


@pytest.fixture(scope="session")
def sample():
    return SAMPLE


@pytest.fixture(scope="session")
def rag(tmp_path_factory):
    """29 requests with texts and references."""
    path = tmp_path_factory.mktemp("traces") / "rag.dst"
    return draftscope.import_(SAMPLE / "rag.jsonl", tokenizer=SAMPLE / "tokenizer.json",
                              output=path)


@pytest.fixture
def pairs():
    """Draft and target distributions [20, 50], some tokens without mass on one side."""
    rng = np.random.default_rng(1)
    draft, target = rng.dirichlet(np.full(50, 0.3), 20), rng.dirichlet(np.full(50, 0.3), 20)
    draft[:, 0], target[:, 1] = 0, 0
    return draft / draft.sum(1, keepdims=True), target / target.sum(1, keepdims=True)
