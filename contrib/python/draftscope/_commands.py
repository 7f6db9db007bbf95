# SPDX-License-Identifier: Apache-2.0
"""The commands as functions that return data frames.

`data` is a Trace, the path of a trace folder, or token ids: a list of integer arrays [n] (the
outputs), a list of pairs (prompt, output), or an integer array [requests, n] of outputs. Keyword
arguments are the options of the command, with underscores: num_speculative_tokens="1:8" is
--num-speculative-tokens 1:8. A list is joined by commas, range(1, 9) is 1:8, True gives an option
without a value. An option that can be repeated (arrivals, tree, ...) takes a list. An option of one
method is a name with a dot: **{"ngram.num-speculative-tokens": "4,8"}.

Every function raises draftscope.Error with the program's one line and exit code. Ctrl-C, or the
interruption of a notebook, stops the program and raises KeyboardInterrupt.
"""
from __future__ import annotations

import json
import os
import tempfile
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np
import pandas as pd

from draftscope import _program
from draftscope._tables import parse_table, read_table
from draftscope._trace import Path, Trace

Data = Union[Trace, Path, np.ndarray, Sequence[Any]]
REPEATED = ("arrivals", "speculation", "start", "tree", "acceptance_by_rank", "branches")


def _is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def as_trace(data: Data) -> Union[Trace, str]:
    """Returns a trace, or its path, for any form of `data`; arrays are written to a temporary one.

    Raises TypeError and ValueError for arrays of another type or shape.
    """
    if isinstance(data, Trace):
        return data
    if _is_path(data):
        return os.fspath(data)  # type: ignore[arg-type]
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or not np.issubdtype(data.dtype, np.integer):
            raise TypeError(f"an array of shape {data.shape} and type {data.dtype}: outputs in one "
                            "array are integers [requests, tokens]")
        return Trace.from_arrays(list(data))
    requests = list(data)  # type: ignore[arg-type]
    if not requests:
        raise ValueError("there are no requests: the list is empty")
    if all(isinstance(x, tuple) for x in requests):
        if any(len(x) != 2 for x in requests):
            raise ValueError("a request is a pair (prompt, output)")
        return Trace.from_arrays([x[1] for x in requests], [x[0] for x in requests])
    if any(np.ndim(x) != 1 for x in requests):
        raise ValueError("a list of requests contains arrays of one dimension, or pairs (prompt, "
                         "output)")
    return Trace.from_arrays(requests)


def _call(words: Sequence[str], data: Optional[Data], options: Any,
          more: Sequence[str] = ()) -> Tuple[str, List[str]]:
    trace = None if data is None else as_trace(data)
    options.setdefault("progress", "never")
    arguments = [] if trace is None else [os.fspath(trace)]
    return _program.run([*words, *arguments, *_program.options(options, REPEATED), *more])


def _noted(frame: pd.DataFrame, notes: List[str]) -> pd.DataFrame:
    if notes:
        frame.attrs["notes"] = notes
    return frame


def _table_of(words: Sequence[str], data: Optional[Data], options: Any,
              more: Sequence[str] = ()) -> pd.DataFrame:
    """Runs a command with -o, or, without `output`, into a temporary file, and reads the table."""
    output = options.pop("output", None)
    with tempfile.TemporaryDirectory(prefix="draftscope-") as folder:
        path = os.fspath(output) if output is not None else os.path.join(folder, "table.jsonl")
        _, notes = _call(words, data, options, [*more, "-o", path])
        return _noted(read_table(path), notes)


def sim(data: Optional[Data] = None, **options: Any) -> pd.DataFrame:
    """Runs one configuration of a method: draftscope-sim(1).

    Returns one row with the counts, the acceptance metrics and the speedup; with per_request=True
    one for each request, with by="FIELD" one for each of its values, with a list as batch_size one
    for each size. Without `data`, target="SPEC" is a synthetic model.

        sim(trace, method="ngram", num_speculative_tokens=8, cost="linear:0.02,0.0002")
    """
    trace = None if data is None else as_trace(data)
    out, notes = _call(["sim"], trace, options, ["--json"])
    frame = parse_table(out, "sim")
    if not frame.attrs.get("draftscope") and trace is not None:
        path = os.fspath(trace)
        frame.attrs.update(trace=path, trace_hash=Trace.open(path).hash)
    return _noted(frame, notes)


def sweep(data: Optional[Data] = None, **options: Any) -> pd.DataFrame:
    """Runs a grid of configurations: draftscope-sweep(1). Returns one row for each.

    With output="FILE" the table is also kept there, and an interrupted sweep continues from
    FILE.part when it is called again.

        sweep(trace, method=["ngram", "suffix"], num_speculative_tokens="1:8", batch_size=[1, 8])
    """
    return _table_of(["sweep"], data, options)


def tune(data: Optional[Data] = None, **options: Any) -> pd.DataFrame:
    """Finds the best configuration, with confidence intervals: draftscope-tune(1).

    Returns one row for each of the first configurations and batch size; draftscope.answer(frame)
    is the verdict.

        tune(trace, method="ngram", num_speculative_tokens="2:16:2", cost="linear:0.02,0.0002")
    """
    return _table_of(["tune"], data, options, ["--json"])


def serve(data: Optional[Data] = None, **options: Any) -> pd.DataFrame:
    """Simulates a server under load: draftscope-serve(1). Returns one row for each configuration,
    policy and load; draftscope.answer(frame) contains up to which load speculation pays.

        serve(trace, method="ngram", num_speculative_tokens=4, cost="linear:0.02,0.0002",
              arrivals="poisson:1:9:2", requests=500)
    """
    frame = _table_of(["serve"], data, options, ["--json"])
    # Parameters are integers with gaps, where a method lacks them; the first row has none.
    names = list(frame.columns)
    for name in names[names.index("rule") + 1:names.index("speculation")]:
        values = frame[name]
        if values.dtype == np.float64 and values.notna().any() and \
                (values.dropna() == np.floor(values.dropna())).all():
            frame[name] = values.astype("Int64")
    return frame


def advise(data: Union[Data, Sequence[Path]], **options: Any) -> pd.DataFrame:
    """From logs to a verdict: draftscope-advise(1).

    `data` may also be the path of a log file, or a list of them. Returns all configurations that
    were tried; draftscope.answer(frame) is the verdict for each batch size. With output="NAME" the
    trace, the tables and the report are kept as NAME.dst, NAME.tsv, NAME-load.tsv and NAME.html.

        advise("logs.jsonl", tokenizer="tokenizer.json", cost="linear:0.02,0.0005", engine="vllm")
    """
    output = options.pop("output", None)
    several = isinstance(data, (list, tuple)) and bool(data) and all(map(_is_path, data))
    inputs = [os.fspath(x) for x in data] if several else [as_trace(data)]  # type: ignore
    with tempfile.TemporaryDirectory(prefix="draftscope-") as folder:
        name = os.fspath(output) if output is not None else os.path.join(folder, "advice")
        options.setdefault("progress", "never")
        _, notes = _program.run(["advise", *[os.fspath(x) for x in inputs],
                                 *_program.options(options, REPEATED), "-o", name])
        frame = read_table(name + ".tsv")
        if os.path.exists(name + "-load.tsv"):
            load = read_table(name + "-load.tsv")
            frame.attrs.update({k: v for k, v in load.attrs.items()
                                if str(k).startswith("load_")})
    return _noted(frame, notes)


def table(command: str, data: Optional[Data] = None, **options: Any) -> pd.DataFrame:
    """Runs any command that prints JSON lines, and returns its rows: theory accept, theory tree,
    trace info, validate, ...

        table("theory tree", acceptance_by_rank="0.7,0.2", budget=16)
    """
    trace = None if data is None else as_trace(data)
    arguments = [] if trace is None else [os.fspath(trace)]
    out, notes = _program.run([*command.split(), *arguments,
                               *_program.options(options, REPEATED), "--json"])
    try:
        one = json.loads(out)
    except ValueError:
        return _noted(parse_table(out, command), notes)
    rows = one if isinstance(one, list) else [one]
    return _noted(parse_table("\n".join(map(json.dumps, rows)), command), notes)
