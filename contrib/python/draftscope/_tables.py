# SPDX-License-Identifier: Apache-2.0
"""Result tables as pandas data frames, in both forms of draftscope-trace(5), RESULT TABLES."""
from __future__ import annotations

import json
import math
import os
from typing import Any, Dict, Iterable, List, Optional, Union

import numpy as np
import pandas as pd

from draftscope._program import Error

LISTS = ("acceptance_rate_pos", "conditional_acceptance_rate")  # and names with "histogram"


def read_table(path: Union[str, "os.PathLike[str]"]) -> pd.DataFrame:
    """Reads a result table of any command, tab-separated text or JSON lines.

    Columns are int64 (Int64 where a value is missing), float64 (NaN where one is missing), str, or
    numpy arrays for lists. The comment lines are in `attrs`: attrs["trace_hash"], and the meaning
    of a column in attrs["columns"][name].

    Raises Error (exit code 4) when the file is not a result table.
    """
    try:
        with open(path, encoding="utf-8") as f:
            return parse_table(f.read(), os.fspath(path))
    except OSError as e:
        raise Error(f"{os.fspath(path)}: {e.strerror or e}", 4) from None
    except UnicodeDecodeError:
        raise Error(f"{os.fspath(path)}: not a result table: it is not text in UTF-8", 4) from None


def parse_table(text: str, what: str = "table") -> pd.DataFrame:
    """Returns the data frame of a table's text; `what` stands for it in error messages."""
    return _parse_json(text, what) if text[:1] == "{" else _parse_tsv(text, what)


def _frame(columns: Dict[str, Any], comments: Dict[str, str]) -> pd.DataFrame:
    frame = pd.DataFrame(columns)
    prefix = "column "
    frame.attrs.update({k: v for k, v in comments.items() if not k.startswith(prefix)})
    frame.attrs["columns"] = {k[len(prefix):]: v for k, v in comments.items()
                              if k.startswith(prefix)}
    return frame


def _is_list(name: str) -> bool:
    return name in LISTS or "histogram" in name


def _array(values: Iterable[Any]) -> np.ndarray:
    numbers = [math.nan if v is None else v for v in values]
    whole = all(isinstance(v, int) for v in numbers)
    return np.array(numbers, np.int64 if whole else np.float64)


def _all_numbers(values: Iterable[Any]) -> bool:
    return all(v is None or isinstance(v, (int, float)) for v in values)


def _column(name: str, values: List[Any]) -> Any:
    """A typed column of the values of JSON."""
    some = [v for v in values if v is not None]
    if any(isinstance(v, dict) or isinstance(v, list) and not _all_numbers(v) for v in some):
        column = np.empty(len(values), object)  # of trace info, live list: as JSON has them
        column[:] = values
        return column
    if _is_list(name) or any(isinstance(v, list) for v in some):
        column = np.empty(len(values), object)
        for i, v in enumerate(values):
            column[i] = _array(v if isinstance(v, list) else [] if v is None else [v])
        return column
    if any(isinstance(v, str) for v in some):
        return pd.Series(["" if v is None else str(v) for v in values], dtype=object)
    if some and all(isinstance(v, int) for v in some):
        return pd.array(values, "Int64") if len(some) < len(values) else np.array(values, np.int64)
    return np.array([math.nan if v is None else v for v in values], np.float64)


def _parse_json(text: str, what: str) -> pd.DataFrame:
    comments: Dict[str, str] = {}
    rows: List[Dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as e:
            raise Error(f"{what}:{number}: not a row of a result table: {e}", 4) from None
        if not isinstance(row, dict) or (rows and row.keys() != rows[0].keys()):
            raise Error(f"{what}:{number}: the row has other fields than the first one", 4)
        if number == 1 and row.keys() == {"#"}:
            comments = row["#"]
        else:
            rows.append(row)
    names = list(rows[0]) if rows else []
    return _frame({name: _column(name, [row[name] for row in rows]) for name in names}, comments)


def _number(text: str) -> Optional[Union[int, float]]:
    """A number of tab-separated text; None when the text is none."""
    digits = text[1:] if text[:1] == "-" else text
    if digits.isdigit() and digits.isascii():
        return int(text)
    try:
        return float(text) if "_" not in text and text == text.strip() else None
    except ValueError:
        return None


def _values(name: str, texts: List[str]) -> List[Any]:
    """The fields of a column as values of JSON: the rules of draftscope-trace(5), Values."""
    if _is_list(name) or any(";" in t for t in texts):
        lists = [[_number(x) for x in t.split(";")] if t else [] for t in texts]
        if all(x is not None for one in lists for x in one):
            return lists
    numbers = [_number(t) if t else None for t in texts]
    if all(n is not None or not t for n, t in zip(numbers, texts)) and any(texts):
        whole = all(isinstance(n, int) for n in numbers if n is not None)
        return numbers if whole else [None if n is None else float(n) for n in numbers]
    return list(texts)


def _parse_tsv(text: str, what: str) -> pd.DataFrame:
    comments: Dict[str, str] = {}
    names: List[str] = []
    rows: List[List[str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#") and not names:
            key, _, value = line[1:].strip().partition(": ")
            comments[key] = value
        elif not names:
            names = line.split("\t") if line else []
        elif line or len(names) == 1 and number <= text.count("\n"):
            rows.append(line.split("\t"))
            if len(rows[-1]) != len(names):
                raise Error(f"{what}:{number}: {len(rows[-1])} fields; the header has "
                            f"{len(names)}", 4)
    if not names:
        raise Error(f"{what}: not a result table: it has no line with column names", 4)
    columns = {name: _column(name, _values(name, [row[i] for row in rows]))
               for i, name in enumerate(names)}
    return _frame(columns, comments)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(v) for v in value]
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


def write_table(frame: pd.DataFrame, path: Union[str, "os.PathLike[str]"]) -> None:
    """Writes a data frame as a result table, JSON lines; `attrs` become the comments.

    draftscope plot and report read it, and so does read_table. The index is not written.
    """
    comments = {str(k): v for k, v in frame.attrs.items() if isinstance(v, str)}
    comments.update({f"column {k}": str(v) for k, v in frame.attrs.get("columns", {}).items()
                     if k in frame.columns})
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps({"#": comments}, ensure_ascii=False) + "\n")
        for row in frame.itertuples(index=False, name=None):
            fields = {str(name): _plain(v) for name, v in zip(frame.columns, row)}
            f.write(json.dumps(fields, ensure_ascii=False, allow_nan=False) + "\n")
