# SPDX-License-Identifier: Apache-2.0
"""Figures of result tables, drawn by draftscope plot, which runs gnuplot."""
from __future__ import annotations

import os
import tempfile
from typing import Any, List, Sequence, Union

import pandas as pd

from draftscope import _program
from draftscope._tables import write_table
from draftscope._trace import Path

Table = Union[pd.DataFrame, Path]


class Figure:
    """A picture. A notebook shows it; save() writes it in any format."""

    def __init__(self, svg: str, kind: str, tables: Sequence[Table], options: Any):
        self.svg = svg  # the picture as SVG text
        self._kind, self._tables, self._options = kind, tables, options

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Path, **options: Any) -> None:
        """Draws the figure into PATH.svg, PATH.pdf or PATH.png; the gnuplot script and the plotted
        numbers are written next to it. Options are those of draftscope plot, such as force=True.

        Raises Error.
        """
        _draw(self._kind, self._tables, {**self._options, **options}, ["-o", os.fspath(path)])

    def __repr__(self) -> str:
        return f"<Figure '{self._kind}'>"


def _draw(kind: str, tables: Sequence[Table], options: Any, more: List[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="draftscope-") as folder:
        paths = []
        for i, one in enumerate(tables):
            if isinstance(one, pd.DataFrame):
                paths.append(os.path.join(folder, f"table{i}.jsonl"))
                write_table(one, paths[-1])
            else:
                paths.append(os.fspath(one))
        out, _ = _program.run(["plot", kind, *paths, *_program.options(options), *more])
    return out


def plot(table: Union[Table, Sequence[Table]], kind: str, **options: Any) -> Figure:
    """Draws a figure of a data frame, of the path of a result table, or of a list of them.

    Args:
        table: what sim, sweep, tune, serve or another command returned or wrote.
        kind: name of the figure, of `draftscope list figures`: "length", "batch", "goodput", ...
        options: options of draftscope plot, such as column="block_efficiency", title="...".

    Returns a Figure. Raises Error: exit code 2 for a figure that the table does not fit, 3 when
    gnuplot is not installed.
    """
    tables: List[Table] = list(table) if isinstance(table, (list, tuple)) else \
        [table]  # type: ignore[list-item]
    options.pop("terminal", None)
    svg = _draw(kind, tables, options, ["--terminal=svg", "-o", "-"])
    return Figure(svg, kind, tables, options)
