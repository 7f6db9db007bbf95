# SPDX-License-Identifier: Apache-2.0
"""The verdict of tune, advise and serve as an object."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

import pandas as pd

JUDGED = re.compile(r"(?P<off>leave speculation off: )?(?:run )?(?P<words>\S+(?: \S+)*?)(?::| is) "
                    r"(?P<speedup>[\d.]+) times as fast .*?"
                    r"\(95 %: (?P<low>[\d.]+) to (?P<high>[\d.]+)\)")


@dataclass(frozen=True)
class Verdict:
    """The verdict for one batch size, on held-out requests."""

    batch_size: int
    recommend: Optional[bool]  # True: run the configuration; False: leave speculation off; None:
    # the data support no verdict, see `text`
    text: str  # the verdict as a sentence
    method: str = ""  # of the configuration that was judged
    parameters: Mapping[str, str] = field(default_factory=dict)  # by option name
    speedup: float = math.nan  # of it to no speculation
    low: float = math.nan  # 95 % interval of the speedup
    high: float = math.nan


@dataclass(frozen=True)
class Answer:
    """What a command recommends. str(answer) prints it."""

    verdicts: Tuple[Verdict, ...]  # one for each batch size
    settings: Tuple[str, ...]  # lines with the settings of --engine; lines with # are remarks
    load: Tuple[str, ...]  # up to which load speculation pays, of serve and advise
    conditions: Mapping[str, str]  # under which the verdict holds: cost, split, resamples, ...

    def __str__(self) -> str:
        lines = [f"batch size {v.batch_size}: {v.text}" for v in self.verdicts]
        return "\n".join([*lines, *self.load, *self.settings])


def _numbered(attrs: Mapping[str, Any], prefix: str) -> List[str]:
    found = [(int(k[len(prefix):]), v) for k, v in attrs.items()
             if k.startswith(prefix) and k[len(prefix):].isdigit()]
    return [v for _, v in sorted(found)]


def _verdict(batch_size: int, text: str) -> Verdict:
    found = JUDGED.match(text)
    recommend = True if text.startswith("run ") else \
        False if text.startswith("leave speculation off") else None
    if not found or recommend is None:
        return Verdict(batch_size, recommend, text)
    words = found["words"].split(" ")
    parameters = dict(w.split("=", 1) for w in words[1:] if "=" in w)
    return Verdict(batch_size, recommend, text, words[0], parameters, float(found["speedup"]),
                   float(found["low"]), float(found["high"]))


def answer(frame: pd.DataFrame) -> Answer:
    """Returns the verdict that a data frame of tune, advise or serve contains.

    Raises ValueError for a frame without one.
    """
    attrs: Dict[str, Any] = {str(k): v for k, v in frame.attrs.items()}
    texts: Dict[int, str] = {}
    if "verdict" in attrs and "batch" in frame and len(frame):
        texts[int(frame["batch"].iloc[0])] = attrs["verdict"]
    for key, value in attrs.items():
        if key.startswith("verdict_batch_"):
            texts[int(key.rpartition("_")[2])] = value
    load = tuple(_numbered(attrs, "load_answer_") + _numbered(attrs, "load_verdict_"))
    if not texts and not load:
        raise ValueError("the data frame has no verdict: it must come from tune, advise or serve, "
                         "and its attrs must be those of the command")
    names = ("trace", "trace_hash", "cost", "objective", "split", "resamples", "note",
             "not_modeled")
    conditions: Dict[str, str] = {name: attrs[name] for name in names if name in attrs}
    return Answer(tuple(_verdict(b, texts[b]) for b in sorted(texts)),
                  tuple(_numbered(attrs, "engine_line_")), load, conditions)
